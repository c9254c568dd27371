"""Formulas of SymPy: those of a textbook, values of the package, and parameters of robots as expressions."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.model_parameters import parameter_value, with_parameters
from liedyn.interop.robot_parameters import RobotParameters
from liedyn.interop.traced_functions import FUNCTIONS
from liedyn.interop.trigonometric_polynomials import TrigonometricPolynomial, UnsupportedOperationError, fraction
from liedyn.joints.joint_model import tree_views
from traced_cases import OF_LOOPS
from zoo import model_of, state

sympy = pytest.importorskip("sympy")
# a 2R arm: masses, distances of the centres of mass and lengths, inertias about the centres of mass
ARM = {"mass.upper": "m1", "mass.lower": "m2", "com.upper.z": "-c1", "com.lower.z": "-c2", "inertia.upper.yy": "J1",
       "inertia.lower.yy": "J2", "origin.elbow.vz": "1 - l1", "gravity.z": "-g"}
QUOTIENTS = ("forward_dynamics", "hybrid_dynamics", "inverse_mass_matrix", "forward_dynamics_derivatives", "centre_of_mass",
             "difference", "hybrid_dynamics_derivatives", *OF_LOOPS)


@pytest.fixture(scope="module")
def arm():
    return ld.load("robots/double_pendulum.yaml")


def parsed(text: str, m: ld.Symbolic):
    """Return the expression of a text in the symbols of formulas."""
    symbols = {x for array in m.inputs.values() for x in array} | {s for x in m.parameters.values() for s in x.free_symbols}
    return sympy.sympify(text, locals={x.name: x for x in symbols}, rational=True)


def test_the_mass_matrix_is_that_of_the_textbook(arm):
    """Murray, Li and Sastry 1994, (4.11): alpha, beta, delta; angles from the vertical do not change it."""
    m = ld.symbolic(arm, "mass_matrix", ARM)
    alpha, beta, delta = "J1 + J2 + m1*c1**2 + m2*(l1**2 + c2**2)", "m2*l1*c2", "J2 + m2*c2**2"
    rows = [[f"{alpha} + 2*{beta}*cos(q2)", f"{delta} + {beta}*cos(q2)"], [f"{delta} + {beta}*cos(q2)", delta]]
    assert m.expression == sympy.Matrix([[sympy.expand(parsed(x, m)) for x in row] for row in rows])
    assert m.latex().startswith(r"M = \left[\begin{matrix}J_{1} + J_{2} + c_{1}^{2} m_{1}") and "$" in m._repr_latex_()


def test_coriolis_and_gravity_forces_are_those_of_the_textbook(arm):
    """Murray, Li and Sastry 1994, (4.12): beta sin(q2) times velocities."""
    C = ld.symbolic(arm, "coriolis_matrix", ARM)
    rows = [["-m2*l1*c2*sin(q2)*v2", "-m2*l1*c2*sin(q2)*(v1 + v2)"], ["m2*l1*c2*sin(q2)*v1", "0"]]
    assert C.expression == sympy.Matrix([[sympy.expand(parsed(x, C)) for x in row] for row in rows])
    g = ld.symbolic(arm, "gravity_force", ARM)
    entries = ["(m1*c1 + m2*l1)*g*sin(q1) + m2*c2*g*sin(q1 + q2)", "m2*c2*g*sin(q1 + q2)"]
    assert g.expression == sympy.Matrix([sympy.expand(parsed(x, g)) for x in entries])
    symbols = ld.symbolic(arm, "christoffel_symbols", ARM)
    assert symbols.latex().splitlines()[0] == r"\Gamma_{112} = c_{2} l_{1} m_{2} \sin{\left(q_{2} \right)}"
    assert len(symbols.latex().splitlines()) == 4


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name not in QUOTIENTS])
def test_formulas_have_the_values_of_the_package(function, arm, worst):
    """Of an arm with other numbers."""
    traced = FUNCTIONS[function]
    options = {"link": "tip", "frame": "world"}
    options = {option: options[option] for option in traced.options if option in options}
    numbers = {"m1": 1.3, "m2": 0.7, "c1": 0.4, "c2": 0.3, "J1": 0.2, "J2": 0.1, "l1": 0.9, "g": 9.0}
    robot = ld.build(with_parameters(arm, {"mass.upper": 1.3, "mass.lower": 0.7, "com.upper.z": -0.4, "com.lower.z": -0.3,
                                           "inertia.upper.yy": 0.2, "inertia.lower.yy": 0.1, "origin.elbow.vz": 0.1,
                                           "gravity.z": -9.0}))
    values = dict(zip(traced.inputs, np.random.default_rng(0).standard_normal((len(traced.inputs), 2)), strict=True))
    formulas = ld.symbolic(arm, function, ARM, **options)
    numbers |= {symbol.name: x for name, array in formulas.inputs.items() for symbol, x in zip(array, values[name], strict=True)}
    expected = traced.compute(robot, *values.values(), **options)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, x in zip(formulas.results.values(), expected, strict=True):
        evaluated = np.array(sympy.sympify(found).subs({parsed(name, formulas): x for name, x in numbers.items()}), dtype=float)
        assert worst("SymPy", np.abs(evaluated.ravel() - np.ravel(x)).max() / max(np.abs(x).max(), 1.0), function) < 1e-13


def test_formulas_with_quotients_are_those_of_the_package(arm):
    f = ld.symbolic(arm, "forward_dynamics", {"mass.lower": "m"}, simplify=False)
    numbers = dict(zip([*f.inputs["q"], *f.inputs["v"], *f.inputs["tau"], sympy.Symbol("m", real=True)],
                       [0.3, -0.2, 1.0, 0.5, 0.1, 0.2, 0.6], strict=True))
    expected = ld.forward_dynamics(arm.with_changes(mass={"lower": 0.6}), [0.3, -0.2], [1.0, 0.5], [0.1, 0.2])
    np.testing.assert_allclose(np.array(f.expression.subs(numbers), dtype=float).ravel(), expected, rtol=1e-13)
    inverse = ld.symbolic(arm, "inverse_mass_matrix").expression
    product = inverse * ld.symbolic(arm, "mass_matrix").expression
    assert np.abs(np.array(product.subs({x: 0.3 for x in product.free_symbols}), dtype=float) - np.eye(2)).max() < 1e-13


@pytest.mark.parametrize("name", ["universal", "free", "springs"])
def test_constants_are_those_of_robots_with_these_parameters(name):
    """All parameters at once, as numbers."""
    model = model_of(name) if name != "springs" else ld.load("robots/double_pendulum.yaml")
    rng = np.random.default_rng(0)
    described = {joint.name for joint in model.description.joints if joint.type != "fixed"}
    names = [x for x in ld.parameter_names(model)
             if not x.startswith(("screw.", "pitch.", "origin.", "friction_speed.", "rest."))
             or (x.startswith("origin.") and x[-2] == "v" and x.split(".")[1] in described)]
    numbers = {x: parameter_value(model, x) + (0.5 if x.endswith(("xx", "yy", "zz")) else 0.05) * rng.uniform(0.9, 1.1)
               for x in names}                                       # positive semidefinite inertias
    of_robot = RobotParameters(model, names)
    changed = ld.build(with_parameters(of_robot.model, numbers))
    constants = of_robot.model.constants.copy()
    constants[list(of_robot.varying)] = of_robot.values(numbers, float)
    found, expected = (tree_views.py_func(model.index, x) for x in (constants, changed.constants))
    for field in ("I", "T0", "dV0", "armature", "damping", "friction", "stiffness"):
        np.testing.assert_allclose(getattr(found, field), getattr(expected, field), rtol=0, atol=1e-13, err_msg=field)
    assert not np.allclose(found.I, tree_views.py_func(model.index, model.constants).I)


@pytest.mark.parametrize("name", ["universal", "free"])
def test_functions_of_casadi_read_parameters(name, worst):
    pytest.importorskip("casadi")
    model = model_of(name)
    q, v, _, tau = (x[0] for x in state(model, 2, (1,)))
    link, coordinate = model.description.links[-1].name, model.v_names[-1]
    numbers = {f"mass.{link}": 1.7, f"com.{link}.x": 0.12, f"inertia.{link}.xy": 0.003, f"damping.{coordinate}": 0.4,
               "gravity.z": -3.7}
    f = ld.casadi_function(model, "forward_dynamics", parameters=[*numbers])
    assert f.name_in() == ["q", "v", "tau", "parameters"]
    expected = ld.forward_dynamics(ld.build(with_parameters(model, numbers)), q, v, tau)
    found = f(q, v, tau, [*numbers.values()]).full().ravel()
    assert worst("CasADi, parameters", np.abs(found - expected).max() / np.abs(expected).max(), name) < 1e-12


@pytest.mark.parametrize(("parameters", "error", "words"), [
    ({"mass.uper": "m"}, ld.LiedynError, "did you mean 'mass.upper'"),
    ({"origin.elbow.wx": "x"}, ld.UsageError, "direction of an axis"),
    ({"origin.tip_mount.vx": "x"}, ld.UsageError, "moves links within a body"),
    ({"mass.upper": "sqrt(m)"}, ld.UsageError, "polynomial"), ({"mass.upper": "m +"}, ld.UsageError, "no expression")])
def test_unknown_parameters_and_expressions_are_errors(parameters, error, words, arm):
    with pytest.raises(error, match=words):
        ld.symbolic(arm, "mass_matrix", parameters)


def test_parameters_without_expressions_get_symbols(arm):
    m = ld.symbolic(arm, "mass_matrix", ["mass.lower", "com.lower.z"])
    assert {x.name for x in m.expression.free_symbols} == {"m_lower", "c_lower_z", "q2"}
    assert repr(m).startswith("M = Matrix(")


def test_without_sympy_the_error_names_the_command(monkeypatch, arm):
    monkeypatch.setattr("liedyn.interop.sympy.find_spec", lambda name: None)
    with pytest.raises(ld.UsageError, match=r"pip install 'liedyn\[sympy\]'"):
        ld.symbolic(arm, "mass_matrix")


def test_polynomials_have_one_form():
    """sin^2 + cos^2 is 1; what is no polynomial is an error; fractions of small numbers are exact."""
    x = TrigonometricPolynomial(2, 2, {(1, 0, 0, 0): (fraction(2.0), fraction(0.0))})
    one = x.constant(1.0)
    assert (x.sin() * x.sin() + x.cos() * x.cos()).terms == one.terms and (x - x).terms == {}
    assert ((x + one) / x.constant(0.5)).terms == (x + x + one + one).terms
    for invalid in (lambda: one / x, lambda: (x * x.constant(0.3)).sin(), lambda: (x + one).cos(),
                    lambda: x.constant(float("nan"))):
        with pytest.raises(UnsupportedOperationError):
            invalid()
    assert fraction(0.1 * 3) == fraction(0.3) and fraction(np.pi).denominator > 10**6


def test_mimic_joints_are_part_of_formulas():
    model = ld.load("robots/hand.yaml")
    m = ld.symbolic(model, "gravity_force")
    q, *_ = follow_couplings(model, np.full(model.nq, 0.3))
    found = np.array(m.expression.subs(dict(zip(m.inputs["q"], q, strict=True))), dtype=float).ravel()
    np.testing.assert_allclose(found, ld.gravity_force(model, q), atol=1e-14)


@pytest.mark.parametrize("name", ["beta", "gamma", "S", "N", "Q", "O", "E", "I", "re"])
def test_names_in_expressions_are_symbols(name):
    M = ld.symbolic(ld.load("robots/double_pendulum.yaml"), "gravity_force", {"mass.lower": f"2*{name}"})
    assert [str(x) for x in M.parameters["mass.lower"].free_symbols] == [name]


@pytest.mark.parametrize("text", ["__import__('os').getpid()", "lambda", "[1]", "a.b", "m1 +", "True"])
def test_texts_that_are_no_expressions_are_errors(text):
    with pytest.raises(ld.UsageError, match="is no expression: expected numbers, names"):
        ld.symbolic(ld.load("robots/double_pendulum.yaml"), "gravity_force", {"mass.lower": text})


def test_names_of_coordinates_are_no_symbols_of_parameters():
    with pytest.raises(ld.UsageError, match=r"mass\.lower: q1 is the name of a coordinate"):
        ld.symbolic(ld.load("robots/double_pendulum.yaml"), "gravity_force", {"mass.lower": "q1"})


@pytest.mark.parametrize(("robot", "function", "most"), [("panda", "forward_dynamics", 500), ("panda", "mass_matrix", 500),
                                                         ("ur5", "forward_dynamics", 500)])
def test_functions_whose_formulas_would_take_hours_are_refused(robot, function, most):
    with pytest.raises(ld.UsageError, match=rf"{function} of the robot {robot} has .* operations, .*: expected at most {most}"):
        ld.symbolic(ld.load(f"robots/{robot}.yaml"), function)
