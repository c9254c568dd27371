"""Functions of nonlinear couplings as programs for the kernels: f and its first three derivatives.

A function is an expression or a table (`description.CouplingFunction`). Derivatives of an expression follow from the rules of
Taylor arithmetic (Griewank and Walther, Evaluating Derivatives, 2008, ch. 13) when the program is built, so that the kernels
(`kernels.constraints.coupling_functions`) only add, multiply and call elementary functions. A table becomes a spline with two
continuous derivatives (`cubic`) or four (`quintic`).
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers
from liedyn.errors import ModelError, Place
from liedyn.model.coupling_expression import BINARY_OPERATIONS, SPLINE_DEGREES, UNARY_OPERATIONS, CouplingFunction

# Programs ---------------------------------------------------------------------------------------------------------------

# An instruction is (operation, out, a, b, c, d). Numbers are in registers, of which INPUT contains the driver at the start; the
# results f, f', f'', f''' are in the registers 0 ... 3 at the end.
OPERATIONS = ("literal", "copy", "add", "subtract", "multiply", "divide", "sqrt", "sin", "cos", "exp", "log", "atan2", "table")
(LITERAL, COPY, ADD, SUBTRACT, MULTIPLY, DIVIDE, SQRT, SIN, COS, EXP, LOG, ATAN2, TABLE) = range(len(OPERATIONS))
INSTRUCTION_SIZE = 6
N_RESULTS = 4
INPUT = N_RESULTS
# A table in the constants of a program: period, its first argument, increase of f in a period, then the start of each piece and
# its ascending coefficients. Without a period (0), the first and the last piece are the straight lines beyond the table.
TABLE_HEADER = 3


class FunctionProgram(NamedTuple):
    """The program of a function.

    code       (k, 6) instructions; indices of `constants` are relative to it
    constants    literals and tables
    registers  number of registers
    """

    code: Integers
    constants: Array
    registers: int

    def moved(self, first: int) -> Integers:
        """Return the instructions for constants that start at `first`."""
        code = self.code.copy()
        for operation, column in ((LITERAL, 2), (TABLE, 3)):
            code[code[:, 0] == operation, column] += first
        return code


def function_program(function: CouplingFunction) -> FunctionProgram:
    """Return the program of the function of a nonlinear coupling."""
    return _table_program(function) if function.points else _expression_program(function)


def evaluate(program: FunctionProgram, x: ArrayLike) -> Array:
    """Return f and its first three derivatives (4, ...) at x (...) by a program; NaN outside the domain of the function."""
    x = np.asarray(x, dtype=float)
    r = [np.zeros_like(x)] * max(program.registers, INPUT + 1)
    r[INPUT] = x
    with np.errstate(all="ignore"):
        for operation, out, a, b, c, d in program.code.tolist():
            if operation == TABLE:
                r[out:out + N_RESULTS] = _table_values(program.constants, r[a], b, c, d)
            else:
                r[out] = _VALUES[operation](program.constants, r, a, b)
    return np.array([np.broadcast_to(value, x.shape) for value in r[:N_RESULTS]])


_SAMPLED_RANGE = 2.0 * math.pi       # [rad | m] about 0, in which the slope of an expression is sampled
_N_SAMPLES = 257


def characteristic_slope(function: CouplingFunction, program: FunctionProgram) -> float:
    """Return the median of |f'| at samples, or their maximum if that is zero; 1 if f is constant.

    The samples of a table are in its range, those of an expression about 0. The result scales residuals and ranks, as the
    coefficient of a linear coupling does.
    """
    low, high = (function.points[0][0], function.points[-1][0]) if function.points else (-_SAMPLED_RANGE, _SAMPLED_RANGE)
    slopes = np.abs(evaluate(program, np.linspace(low, high, _N_SAMPLES))[1])
    finite = slopes[np.isfinite(slopes)]
    return float(np.quantile(finite, 0.5, method="higher")) or float(finite.max(initial=0.0)) or 1.0 if finite.size else 1.0


_VALUES = {
    LITERAL: lambda constants, r, a, b: constants[a],
    COPY: lambda constants, r, a, b: r[a],
    ADD: lambda constants, r, a, b: r[a] + r[b],
    SUBTRACT: lambda constants, r, a, b: r[a] - r[b],
    MULTIPLY: lambda constants, r, a, b: r[a] * r[b],
    DIVIDE: lambda constants, r, a, b: np.divide(r[a], r[b]),
    SQRT: lambda constants, r, a, b: np.sqrt(r[a]),
    SIN: lambda constants, r, a, b: np.sin(r[a]),
    COS: lambda constants, r, a, b: np.cos(r[a]),
    EXP: lambda constants, r, a, b: np.exp(r[a]),
    LOG: lambda constants, r, a, b: np.log(r[a]),
    ATAN2: lambda constants, r, a, b: np.arctan2(r[a], r[b]),
}


# Tables -----------------------------------------------------------------------------------------------------------------

def _table_program(function: CouplingFunction) -> FunctionProgram:
    period, start, increase, breaks, coefficients = table_pieces(function)
    degree = coefficients.shape[1] - 1
    constants = np.concatenate([[period, start, increase], breaks, coefficients.ravel()])
    workspace = degree + 2                                     # the selected piece: its start and its coefficients
    code = np.array([[TABLE, 0, INPUT, 0, len(breaks), degree]], dtype=np.int64)
    return FunctionProgram(code, constants, INPUT + 1 + workspace)


def table_pieces(function: CouplingFunction) -> tuple[float, float, float, Array, Array]:
    """Return period, first argument, increase in a period, starts (n,) and coefficients (n, degree + 1) of the pieces."""
    from scipy.interpolate import CubicSpline, PPoly, make_interp_spline  # only for robots with tables: its import takes 0.4 s

    x, y = np.array(function.points, dtype=float).T
    degree = SPLINE_DEGREES[function.interpolation]
    rate = (y[-1] - y[0]) / (x[-1] - x[0]) if function.periodic else 0.0
    y = y - rate * (x - x[0])                                 # periodic: the part without the increase
    if function.periodic:
        y[-1] = y[0]
    if degree == SPLINE_DEGREES["cubic"]:
        spline = CubicSpline(x, y, bc_type="periodic" if function.periodic else "not-a-knot")
    else:
        spline = PPoly.from_spline(make_interp_spline(x, y, k=degree, bc_type="periodic" if function.periodic else None))
    inside = (np.diff(spline.x) > 0.0) & (spline.x[:-1] < x[-1]) & (spline.x[:-1] >= x[0])
    breaks, coefficients = spline.x[:-1][inside], spline.c[::-1, inside].T.copy()
    if function.periodic:
        coefficients[:, 0] += rate * (breaks - x[0])
        coefficients[:, 1] += rate
        return float(x[-1] - x[0]), float(x[0]), float(rate * (x[-1] - x[0])), breaks, coefficients
    lines = np.zeros((2, degree + 1))
    lines[0, :2] = coefficients[0, :2]
    lines[1, :2] = float(spline(x[-1])), float(spline(x[-1], 1))
    return (0.0, float(x[0]), 0.0, np.concatenate([breaks[:1], breaks, x[-1:]]),
            np.concatenate([lines[:1], coefficients, lines[1:]]))


def _table_values(constants: Array, x: Array, first: int, pieces: int, degree: int) -> list[Array]:
    period, start, increase = constants[first:first + TABLE_HEADER]
    turns = np.floor((x - start) / period) if period else 0.0
    y = x - turns * period
    breaks = constants[first + TABLE_HEADER:][:pieces]
    k = np.searchsorted(breaks[1:], y, side="right")
    c = constants[first + TABLE_HEADER + pieces:].reshape(-1, degree + 1)[k]
    s, p = y - breaks[k], [np.zeros_like(x)] * N_RESULTS
    for i in range(degree, -1, -1):
        p = [p[0] * s + c[..., i], p[1] * s + p[0], p[2] * s + p[1], p[3] * s + p[2]]
    return [p[0] + turns * increase, p[1], 2.0 * p[2], 6.0 * p[3]]


# Expressions ------------------------------------------------------------------------------------------------------------

_Value: TypeAlias = "float | int"                    # a constant, or the index of an operation
_Jet: TypeAlias = "tuple[_Value, _Value, _Value, _Value]"       # f and its first three derivatives


def _expression_program(function: CouplingFunction) -> FunctionProgram:
    operations = _Operations()
    stack: list[_Jet] = []
    for name, value in function.operations:
        if name == "literal":
            stack.append((float(value), 0.0, 0.0, 0.0))
        elif name == "driver":
            stack.append((operations.driver, 1.0, 0.0, 0.0))
        else:
            arguments = [stack.pop() for _ in range(2 if name in BINARY_OPERATIONS else 1)][::-1]
            stack.append(getattr(operations, name)(*arguments))
    return operations.program(stack[-1])


def check_operations(function: CouplingFunction, place: Place) -> None:
    """Raise ModelError unless the operations of an expression are known and leave one number."""
    depth = 0
    for name, value in function.operations:
        if name in ("literal", "driver"):
            depth += 1
        elif name in (*UNARY_OPERATIONS, *BINARY_OPERATIONS):
            depth -= name in BINARY_OPERATIONS
        else:
            raise ModelError("unknown operation of a function", place=place, found=name,
                             expected=", ".join(("literal", "driver", *UNARY_OPERATIONS, *BINARY_OPERATIONS)))
        if depth < 1 or not math.isfinite(value):
            break
    if depth != 1:
        raise ModelError("the operations of a function must leave one number", place=place, found=function.text or None)


_MAX_REPEATED = 16           # a power of a larger exponent is computed by the exponential function


@dataclass
class _Operations:
    """Operations on numbers and jets. An int is the index of an operation, a float is a constant."""

    entries: list[tuple[int, _Value, _Value]] = field(default_factory=lambda: [(COPY, INPUT, 0)])
    known: dict[tuple[Any, ...], int] = field(default_factory=dict)
    driver: int = 0

    # constants ------------------------------------------------------------------------------------------------------------
    def _emit(self, operation: int, a: _Value, b: _Value = 0.0) -> _Value:
        if isinstance(a, float) and isinstance(b, float):
            r = [a, b]
            with np.errstate(all="ignore"):
                return float(_VALUES[operation](np.zeros(0), r, 0, 1))
        key = (operation, a, b, type(a), type(b))
        if key not in self.known:
            self.known[key] = len(self.entries)
            self.entries.append((operation, a, b))
        return self.known[key]

    def _sum(self, *terms: _Value) -> _Value:
        total: _Value = 0.0
        for x in terms:
            if isinstance(x, float) and x == 0.0:
                continue
            total = x if isinstance(total, float) and total == 0.0 else self._emit(ADD, total, x)
        return total

    def _difference(self, a: _Value, b: _Value) -> _Value:
        return a if isinstance(b, float) and b == 0.0 else self._emit(SUBTRACT, a, b)

    def _product(self, *factors: _Value) -> _Value:
        constant = 1.0
        result: _Value | None = None
        for x in factors:
            if isinstance(x, float):
                constant *= x
            else:
                result = x if result is None else self._emit(MULTIPLY, result, x)
        if result is None or constant == 0.0:
            return constant
        return result if constant == 1.0 else self._emit(MULTIPLY, result, constant)

    def _quotient(self, a: _Value, b: _Value) -> _Value:
        return 0.0 if isinstance(a, float) and a == 0.0 and not isinstance(b, float) else self._emit(DIVIDE, a, b)

    # jets ---------------------------------------------------------------------------------------------------------------
    def _chain(self, u: _Jet, g: Sequence[_Value]) -> _Jet:
        """Return the jet of g(u) from g and its derivatives with respect to u."""
        product, total = self._product, self._sum
        return (g[0], product(g[1], u[1]), total(product(g[2], u[1], u[1]), product(g[1], u[2])),
                total(product(g[3], u[1], u[1], u[1]), product(3.0, g[2], u[1], u[2]), product(g[1], u[3])))

    def negative(self, u: _Jet) -> _Jet:
        return tuple(self._product(-1.0, x) for x in u)        # type: ignore[return-value]

    def add(self, u: _Jet, v: _Jet) -> _Jet:
        return tuple(self._sum(x, y) for x, y in zip(u, v, strict=True))        # type: ignore[return-value]

    def subtract(self, u: _Jet, v: _Jet) -> _Jet:
        return tuple(self._difference(x, y) for x, y in zip(u, v, strict=True))        # type: ignore[return-value]

    def multiply(self, u: _Jet, v: _Jet) -> _Jet:
        product, total = self._product, self._sum
        return (product(u[0], v[0]), total(product(u[1], v[0]), product(u[0], v[1])),
                total(product(u[2], v[0]), product(2.0, u[1], v[1]), product(u[0], v[2])),
                total(product(u[3], v[0]), product(3.0, u[2], v[1]), product(3.0, u[1], v[2]), product(u[0], v[3])))

    def divide(self, u: _Jet, v: _Jet) -> _Jet:
        product, total = self._product, self._sum
        f = self._quotient(u[0], v[0])
        df = self._quotient(self._difference(u[1], product(f, v[1])), v[0])
        ddf = self._quotient(self._difference(u[2], total(product(2.0, df, v[1]), product(f, v[2]))), v[0])
        dddf = self._quotient(self._difference(u[3], total(product(3.0, ddf, v[1]), product(3.0, df, v[2]),
                                                           product(f, v[3]))), v[0])
        return f, df, ddf, dddf

    def power(self, u: _Jet, v: _Jet) -> _Jet:
        p = v[0]
        if not isinstance(p, float):
            return self.exp(self.multiply(v, self.log(u)))
        if p.is_integer() and abs(p) <= _MAX_REPEATED:
            g = [self._product(float(math.prod(p - i for i in range(k))), self._integer_power(u[0], int(p) - k))
                 for k in range(N_RESULTS)]
        else:
            log = self._emit(LOG, u[0])
            g = [self._product(float(math.prod(p - i for i in range(k))), self._emit(EXP, self._product(p - k, log)))
                 for k in range(N_RESULTS)]
        return self._chain(u, g)

    def _integer_power(self, x: _Value, n: int) -> _Value:
        if n < 0:
            return self._quotient(1.0, self._integer_power(x, -n))
        return self._product(*[x] * n) if n else 1.0

    def sin(self, u: _Jet) -> _Jet:
        s, c = self._emit(SIN, u[0]), self._emit(COS, u[0])
        return self._chain(u, (s, c, self._product(-1.0, s), self._product(-1.0, c)))

    def cos(self, u: _Jet) -> _Jet:
        s, c = self._emit(SIN, u[0]), self._emit(COS, u[0])
        return self._chain(u, (c, self._product(-1.0, s), self._product(-1.0, c), s))

    def tan(self, u: _Jet) -> _Jet:
        return self.divide(self.sin(u), self.cos(u))

    def exp(self, u: _Jet) -> _Jet:
        f = self._emit(EXP, u[0])
        return self._chain(u, (f, f, f, f))

    def log(self, u: _Jet) -> _Jet:
        x = self._quotient(1.0, u[0])
        return self._chain(u, (self._emit(LOG, u[0]), x, self._product(-1.0, x, x), self._product(2.0, x, x, x)))

    def sqrt(self, u: _Jet) -> _Jet:
        root = self._emit(SQRT, u[0])
        x, slope = self._quotient(1.0, u[0]), self._quotient(0.5, root)
        return self._chain(u, (root, slope, self._product(-0.5, slope, x), self._product(0.75, slope, x, x)))

    def sinh(self, u: _Jet) -> _Jet:
        s, c = self._hyperbolic(u[0])
        return self._chain(u, (s, c, s, c))

    def cosh(self, u: _Jet) -> _Jet:
        s, c = self._hyperbolic(u[0])
        return self._chain(u, (c, s, c, s))

    def _hyperbolic(self, x: _Value) -> tuple[_Value, _Value]:
        up, down = self._emit(EXP, x), self._emit(EXP, self._product(-1.0, x))
        return self._product(0.5, self._difference(up, down)), self._product(0.5, self._sum(up, down))

    def tanh(self, u: _Jet) -> _Jet:
        t = self._difference(1.0, self._quotient(2.0, self._sum(1.0, self._emit(EXP, self._product(2.0, u[0])))))
        slope = self._difference(1.0, self._product(t, t))
        return self._chain(u, (t, slope, self._product(-2.0, t, slope),
                               self._product(-2.0, slope, self._difference(1.0, self._product(3.0, t, t)))))

    def atan(self, u: _Jet) -> _Jet:
        return self.atan2(u, (1.0, 0.0, 0.0, 0.0))

    def asin(self, u: _Jet) -> _Jet:
        return self.atan2(u, self._cosine_of_arcsine(u))

    def acos(self, u: _Jet) -> _Jet:
        return self.atan2(self._cosine_of_arcsine(u), u)

    def _cosine_of_arcsine(self, u: _Jet) -> _Jet:
        unity: _Jet = (1.0, 0.0, 0.0, 0.0)
        return self.sqrt(self.multiply(self.subtract(unity, u), self.add(unity, u)))

    def atan2(self, y: _Jet, x: _Jet) -> _Jet:
        """f' = (x y' - y x') / (x^2 + y^2), and the derivatives of this quotient."""
        product, total, difference = self._product, self._sum, self._difference
        n = (difference(product(x[0], y[1]), product(y[0], x[1])),
             difference(product(x[0], y[2]), product(y[0], x[2])),
             difference(total(product(x[1], y[2]), product(x[0], y[3])), total(product(y[1], x[2]), product(y[0], x[3]))))
        d = self.add(self.multiply(x, x), self.multiply(y, y))
        df = self._quotient(n[0], d[0])
        ddf = self._quotient(difference(n[1], product(df, d[1])), d[0])
        dddf = self._quotient(difference(n[2], total(product(2.0, ddf, d[1]), product(df, d[2]))), d[0])
        return self._emit(ATAN2, y[0], x[0]), df, ddf, dddf

    # programs -----------------------------------------------------------------------------------------------------------
    def program(self, results: _Jet) -> FunctionProgram:
        """Return the instructions. A register is used again after the last operation that reads it."""
        last = {x: len(self.entries) for x in results if isinstance(x, int)}
        live: set[int] = set(last)
        for k in range(len(self.entries) - 1, 0, -1):
            if k in live:
                for x in self.entries[k][1:]:
                    if isinstance(x, int):
                        live.add(x)
                        last.setdefault(x, k)
        writer = _ProgramWriter({0: INPUT}, INPUT + 1)
        for k in range(1, len(self.entries)):
            if k in live:
                operation, a, b = self.entries[k]
                operands = [writer.register_of(x) for x in ((a, b) if operation in _WITH_TWO else (a,))]
                writer.release(x for x in (a, b) if not isinstance(x, int) or last.get(x) == k)
                writer.write(operation, k, *operands)
        for k, x in enumerate(results):
            if isinstance(x, int):
                writer.code.append((COPY, k, writer.registers[x], 0, 0, 0))
            else:
                writer.code.append((LITERAL, k, writer.number(x), 0, 0, 0))
        return FunctionProgram(np.array(writer.code, dtype=np.int64).reshape(-1, INSTRUCTION_SIZE), np.array(writer.constants),
                               writer.count)


_WITH_TWO = (ADD, SUBTRACT, MULTIPLY, DIVIDE, ATAN2)


@dataclass
class _ProgramWriter:
    """Instructions so far, and the register of each operation."""

    registers: dict[int, int]
    count: int
    code: list[tuple[int, ...]] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    literals: dict[float, int] = field(default_factory=dict)

    def register_of(self, x: _Value) -> int:
        """Return the register of an operation, or of a constant, which is written to one."""
        if isinstance(x, int):
            return self.registers[x]
        if x not in self.literals:
            self.literals[x] = self._take()
            self.code.append((LITERAL, self.literals[x], self.number(x), 0, 0, 0))
        return self.literals[x]

    def number(self, x: float) -> int:
        """Return the index of a number."""
        self.constants.append(x)
        return len(self.constants) - 1

    def release(self, values: Iterable[_Value]) -> None:
        """Make the registers of values available again."""
        for x in dict.fromkeys(values):
            place = self.registers[x] if isinstance(x, int) else self.literals.pop(x, None)
            if place is not None and place not in self.free:
                self.free.append(place)

    def write(self, operation: int, k: int, *operands: int) -> None:
        """Write operation k."""
        self.registers[k] = self._take()
        self.code.append((operation, self.registers[k], *operands, *(0,) * (4 - len(operands))))

    def _take(self) -> int:
        if self.free:
            return self.free.pop()
        self.count += 1
        return self.count - 1
