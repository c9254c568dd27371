"""Dynamics and kinematics of a robot as formulas of SymPy, in its coordinates and in parameters of the robot.

    import liedyn as ld

    M = ld.symbolic(model, "mass_matrix", {"mass.upper": "m1", "com.upper.z": "-l1/2"})
    M.expression, M.latex()

The operations of the robot's trace are evaluated in exact arithmetic with trigonometric polynomials, which have one form.
"""
from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from liedyn.arrays import ArrayLike, Frame
from liedyn.codegen.operations import LIBM
from liedyn.codegen.targets.target import Expressions, UnsupportedOperationError
from liedyn.codegen.trace import VARYING
from liedyn.errors import UsageError
from liedyn.interop.robot_parameters import RobotParameters
from liedyn.interop.traced_functions import FunctionTrace, trace_function
from liedyn.interop.trigonometric_polynomials import TrigonometricPolynomial, fraction
from liedyn.model.model import Model
from liedyn.public_calls import explained

# below it, relative to the maximum coefficient of the same power of the parameters in a result, a coefficient is a rounding error
_ROUNDING = 1e-12
# operations of a function: its formulas take seconds up to about this number, and minutes to hours beyond; of those that SymPy
# simplifies, because they have quotients
_MOST_OPERATIONS, _MOST_SIMPLIFIED = 500, 150
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fdiv": operator.truediv, "quotient": operator.truediv,
    "fneg": operator.neg}
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow}
_FUNCTIONS = "sqrt", "sin", "cos", "tan", "exp", "log"
_LETTERS = {"mass": "m", "com": "c", "inertia": "I", "gravity": "g", "origin": "d"}


@dataclass(frozen=True, repr=False)
class Symbolic:
    """Formulas of a function of a robot.

    function    name of the function
    inputs      symbols of its arrays by name: q1, q2, … of q, likewise v and a, tau
    parameters  expressions of the parameters of the robot, by name
    results     results by name: matrices, vectors as columns, or arrays with three axes, all of SymPy

    Examples
    --------
    >>> M = ld.symbolic(ld.load("robots/double_pendulum.yaml"), "mass_matrix", {"com.lower.z": "-c"})
    >>> M.expression[0, 1], M.inputs["q"]
    (c**2 + c*cos(q2) + 2503/30000, (q1, q2))
    """

    function: str
    inputs: dict[str, tuple[Any, ...]]
    parameters: dict[str, Any]
    results: dict[str, Any]

    @property
    def expression(self) -> Any:
        """The result, or the tuple of all results."""
        results = tuple(self.results.values())
        return results[0] if len(results) == 1 else results

    def latex(self) -> str:
        """Return the results as equations in LaTeX, one per line. Of arrays with three axes, entries that are not zero."""
        sympy, lines = _sympy(), []
        for name, x in self.results.items():
            head = sympy.latex(sympy.Symbol(name))
            if getattr(x, "shape", ()) and len(x.shape) > 2:
                lines += [f"{head}_{{{''.join(str(i + 1) for i in index)}}} = {sympy.latex(x[index])}"
                          for index in np.ndindex(*x.shape) if x[index] != 0]
            else:
                lines.append(f"{head} = {sympy.latex(x)}")
        return "\n".join(lines)

    def _repr_latex_(self) -> str:
        lines = self.latex().replace("\n", r" \\ ")
        return rf"$\displaystyle \begin{{gathered}} {lines} \end{{gathered}}$"

    def __repr__(self) -> str:
        """Return the results as text."""
        return "\n".join(f"{name} = {x}" for name, x in self.results.items())


@explained
def symbolic(model: Model, function: str, parameters: Mapping[str, Any] | Sequence[str] = (), *, link: str | None = None,
             frame: Frame | None = None, passive: bool | None = None, prescribed: ArrayLike | None = None,
             simplify: bool = True) -> Symbolic:
    """Return a function of the package for one robot as formulas of SymPy.

    Formulas without a quotient have one form: sums of products of symbols and sines or cosines of sums of angles. Formulas with
    quotients, such as those of forward_dynamics, are simplified by SymPy, which takes half a minute for two joints.

    Parameters
    ----------
    model : Model
    function : str
        As for `casadi_function`.
    parameters : {parameter: expression}, or sequence of parameters
        Parameters of the robot that are symbols. The names are those of `parameter_names`; expressions are polynomials, as text
        or of SymPy: {"mass.upper": "m1", "com.upper.z": "-l1/2"}. A sequence gives each of them a symbol. Positions of joints,
        "origin.elbow.vz", are changes along the axes of the joint's frame. All other numbers are those of the robot.
    link, frame, passive, prescribed
        As for `casadi_function`.
    simplify : bool
        Whether SymPy simplifies formulas with quotients.

    Returns
    -------
    Symbolic

    Raises
    ------
    UsageError
        If SymPy is not installed, an option is missing or does not belong to the function, a parameter is not supported, or the
        function has too many operations for a formula.
    NameLookupError
        For an unknown function, link or parameter.
    ModelError
        For the dynamics of a robot with loops, or a robot without a moving joint.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.symbolic(model, "gravity_force", {"gravity.z": "-g"})
    g = Matrix([[3*g*sin(q1)/2 + g*sin(q1 + q2)/2], [g*sin(q1 + q2)/2]])
    """
    sympy = _sympy()
    expressions = _expressions(sympy, parameters)
    of_robot = RobotParameters(model, list(expressions)) if expressions else None
    traced = trace_function(model, function, {"link": link, "frame": frame, "passive": passive, "prescribed": prescribed},
                            of_robot)
    inputs = {name: tuple(sympy.Symbol(f"{name}{'_' * name[-1].isdigit()}{k + 1}", real=True)
                          for k in range(size)) for name, size in traced.inputs.items()}
    of_inputs = {symbol for array in inputs.values() for symbol in array}
    for name, x in expressions.items():
        if same := x.free_symbols & of_inputs:
            raise UsageError(f"{name}: {min(map(str, same))} is the name of a coordinate: expected another symbol")
    _check_size(traced, function, _MOST_OPERATIONS)
    try:
        results = _polynomials(sympy, traced, inputs, expressions, of_robot)
    except UnsupportedOperationError:
        if simplify:
            _check_size(traced, function, _MOST_SIMPLIFIED, " where there are quotients, or simplify=False")
        results = _quotients(sympy, traced, inputs, expressions, of_robot, simplify)
    return Symbolic(function, inputs, expressions, results)


def _check_size(traced: FunctionTrace, function: str, limit: int, otherwise: str = "") -> None:
    """Raise UsageError for more operations than `limit`, whose formulas take minutes to hours."""
    if traced.trace.size > limit:
        raise UsageError(f"{function} of the robot {traced.model.name} has {traced.trace.size:,} operations, too many for a "
                         f"formula: expected at most {limit}{otherwise}; casadi_function and code in C have no such limit")


def _sympy() -> Any:
    if find_spec("sympy") is None:
        raise UsageError("symbolic requires the package sympy: pip install 'liedyn[sympy]'")
    return import_module("sympy")


def _expressions(sympy: Any, parameters: Mapping[str, Any] | Iterable[str]) -> dict[str, Any]:
    """Return the expressions of the parameters. Their symbols are real; names without an expression get one."""
    if not isinstance(parameters, Mapping):
        parameters = dict.fromkeys([parameters] if isinstance(parameters, str) else parameters, "")
    parsed = {}
    for name, x in parameters.items():
        try:
            expression = (sympy.sympify(x, rational=True, strict=True) if not isinstance(x, str) else
                          _parsed(sympy, ast.parse(x.strip().replace("^", "**"), mode="eval").body) if x else
                          sympy.Symbol(_symbol_name(name)))
            symbols = {symbol: sympy.Symbol(symbol.name, real=True) for symbol in expression.free_symbols}
        except (sympy.SympifyError, TypeError, SyntaxError, AttributeError):
            raise UsageError(f"{name}: {x!r} is no expression: expected numbers, names that are no keywords of Python, "
                             f"+ - * / **, pi, and {', '.join(_FUNCTIONS)}") from None
        parsed[name] = expression.subs(symbols)
    return parsed


def _parsed(sympy: Any, node: ast.AST) -> Any:
    """Return a syntax tree as an expression, in which all names but pi and functions are symbols. Raises SyntaxError."""
    match node:
        case ast.Constant(value=int() | float() as x) if not isinstance(x, bool):
            return sympy.Rational(str(x))
        case ast.Name(id=name):
            return sympy.pi if name == "pi" else sympy.Symbol(name, real=True)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=x):
            return -_parsed(sympy, x) if isinstance(op, ast.USub) else _parsed(sympy, x)
        case ast.BinOp(left=x, op=op, right=y) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_parsed(sympy, x), _parsed(sympy, y))
        case ast.Call(func=ast.Name(id=name), args=[x], keywords=[]) if name in _FUNCTIONS:
            return getattr(sympy, name)(_parsed(sympy, x))
    raise SyntaxError


def _symbol_name(parameter: str) -> str:
    """Return a name such as m_upper for mass.upper."""
    head, *rest = parameter.split(".")
    return "_".join([_LETTERS.get(head, head), *rest])


# formulas without quotients -----------------------------------------------------------------------------------------------

def _polynomials(sympy: Any, traced: FunctionTrace, inputs: Mapping[str, Sequence[Any]], parameters: Mapping[str, Any],
                 of_robot: RobotParameters | None) -> dict[str, Any]:
    """Return the results. Raises UnsupportedOperationError if they are no trigonometric polynomials."""
    symbols = sorted({symbol for x in parameters.values() for symbol in x.free_symbols}, key=str)
    symbols += [symbol for name, array in inputs.items() if name != "q" for symbol in array] + [*inputs.get("q", ())]
    n, angles = len(symbols), len(inputs.get("q", ()))
    powers = np.eye(n, n + angles, dtype=int).tolist()
    symbol = {x: TrigonometricPolynomial(n, angles, {tuple(powers[k]): (Fraction(1), Fraction(0))})
              for k, x in enumerate(symbols)}
    unit = TrigonometricPolynomial(n, angles, {}).constant(1.0)
    arrays: dict[str, Any] = {name: [symbol[x] for x in array] for name, array in inputs.items()}
    if of_robot is not None:
        polynomials = {name: _polynomial(sympy, name, x, symbol, unit) for name, x in parameters.items()}
        arrays[VARYING] = of_robot.values(polynomials, unit.constant)
    results = traced.evaluate(Expressions(_ARITHMETIC | {"sin": TrigonometricPolynomial.sin, "cos": TrigonometricPolynomial.cos},
                                         arrays, unit.constant))
    return {name: _shaped(sympy, x, _formulas(sympy, list(x.ravel()), symbols)) for name, x in results.items()}


def _polynomial(sympy: Any, name: str, expression: Any, symbol: Mapping[Any, TrigonometricPolynomial],
                unit: TrigonometricPolynomial) -> TrigonometricPolynomial:
    """Return the expression of a parameter as a polynomial."""
    symbols = sorted(expression.free_symbols, key=str)
    try:
        terms = sympy.Poly(expression, *symbols).terms() if symbols else [((), expression)]
        coefficients = [unit.constant(fraction(float(x)) if not x.is_Rational else Fraction(int(x.p), int(x.q)))
                        for _, x in terms]
    except (sympy.PolynomialError, TypeError):
        raise UsageError(f"{name}: expected a polynomial in symbols, got {expression}") from None
    total = unit.constant(0.0)
    for (powers, _), term in zip(terms, coefficients, strict=True):
        total = total + reduce(operator.mul, [symbol[x] for x, power in zip(symbols, powers, strict=True) for _ in range(power)],
                               term)
    return total


def _formulas(sympy: Any, polynomials: Sequence[TrigonometricPolynomial], symbols: Sequence[Any]) -> list[Any]:
    """Return polynomials as expressions of SymPy, without terms that are rounding errors."""
    n, largest = len(symbols), dict[tuple[int, ...], Fraction]()
    for x in polynomials:
        for powers, (re, im) in x.terms.items():
            largest[powers[:n]] = max(largest.get(powers[:n], Fraction(0)), abs(re), abs(im))
    formulas = []
    for x in polynomials:
        total, angles = [], symbols[n - x.angles:]
        for powers, (re, im) in x.terms.items():
            turns = powers[n:]
            first = next((k for k in turns if k), 0)
            if first < 0:                                    # the conjugate of another term
                continue
            factor, angle = (2 if first else 1), sum(k * q for k, q in zip(turns, angles, strict=True))
            monomial = sympy.Mul(*(symbol**k for symbol, k in zip(symbols, powers, strict=False)))
            for part, function in ((re, sympy.cos), (-im, sympy.sin)):
                if abs(part) > _ROUNDING * largest[powers[:n]]:
                    total.append(_number(sympy, factor * part) * monomial * function(angle))
        formulas.append(sympy.Add(*total))
    return formulas


def _number(sympy: Any, x: Any) -> Any:
    """Return a number as a fraction, or as a decimal number if it is no fraction of small numbers."""
    small = fraction(float(x))
    return sympy.Rational(small.numerator, small.denominator) if small.denominator <= 10**6 else sympy.Float(float(x))


def _shaped(sympy: Any, x: np.ndarray, formulas: Sequence[Any]) -> Any:
    """Return formulas in the shape of an array: a number, a column, a matrix, or an array with three axes."""
    if not x.ndim:
        return formulas[0]
    if x.ndim > 2:
        return sympy.ImmutableDenseNDimArray(formulas, x.shape)
    return sympy.ImmutableDenseMatrix(len(x), x.size // len(x), formulas)


# formulas with quotients ----------------------------------------------------------------------------------------------------

def _quotients(sympy: Any, traced: FunctionTrace, inputs: Mapping[str, Sequence[Any]], parameters: Mapping[str, Any],
               of_robot: RobotParameters | None, simplify: bool) -> dict[str, Any]:
    def constant(x: float) -> Any:
        return _number(sympy, fraction(x))

    arrays: dict[str, Any] = dict(inputs)
    if of_robot is not None:
        arrays[VARYING] = of_robot.values(parameters, constant)
    table = _ARITHMETIC | {"fabs": sympy.Abs, "sqrt": sympy.sqrt,
                           "less": lambda a, b, yes, no: sympy.Piecewise((yes, a < b), (no, True)),
                           **{name: partial(_library, sympy, name) for name in LIBM}}
    return {name: _shaped(sympy, x, [sympy.simplify(y) if simplify else y for y in x.ravel()])
            for name, x in traced.evaluate(Expressions(table, arrays, constant)).items()}


def _library(sympy: Any, name: str, *x: Any) -> Any:
    """Return a function of the C library."""
    of_others: dict[str, Callable[..., Any]] = {"pow": operator.pow, "expm1": lambda y: sympy.exp(y) - 1,
                                                "log1p": lambda y: sympy.log(1 + y)}
    return (of_others[name] if name in of_others else getattr(sympy, name))(*x)
