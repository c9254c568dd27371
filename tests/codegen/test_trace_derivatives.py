"""Derivatives of lines, forward: operations against complex steps, right-hand sides against derivatives of the dynamics."""
from types import SimpleNamespace

import numpy as np
import pytest

import liedyn as ld
from codegen.test_batch_step_contacts import problem_of
from liedyn.codegen.operations import c_math
from liedyn.codegen.specialize import is_supported
from liedyn.codegen.targets.target import NUMPY, Expressions
from liedyn.codegen.trace_derivatives import tangent
from liedyn.codegen.tracer import NotTraceableError, Operations, operand, sincos, sqrt, where_less
from liedyn.integrators.problem import Options, SegmentStart
from liedyn.integrators.scipy_solvers import SolverStepper
from zoo import model_of

pytestmark = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")
H = 1e-30
FUNCTIONS = "sqrt", "exp", "log", "expm1", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "atan", "asin", "acos"


def operations(x, y, functions, choose):
    """Return each operation once, for numbers from 0.2 to 0.8."""
    f = functions
    return [x + y, x - y, x * y, x / y, -x, 2.0 - x, f.sqrt(x * y), f.exp(x), f.log(y), f.expm1(y), f.log1p(x), f.sin(x),
            f.cos(x), f.tan(y), f.tanh(x), f.sinh(y), f.cosh(x), f.atan(x), f.asin(x), f.acos(y),
            choose(x, y, x * x, y), choose(y, x, x * x, y)]


def evaluated(ops: Operations, results, values: dict) -> list[float]:
    """Evaluate in plain Python."""
    target = Expressions(NUMPY, values)
    with np.errstate(divide="ignore", invalid="ignore"):
        list(target.walk(ops, range(len(ops.operations))))
    return [target.value(operand(x)) for x in results]


def test_tangents_of_operations_are_complex_steps():
    ops = Operations(libm=True)
    (x, y), (dx, dy) = ops.inputs("x", 2), ops.inputs("dx", 2)
    rates = tangent(ops, [(x, dx), (y, dy)], operations(x, y, c_math, where_less))
    numpys = SimpleNamespace(**{name: NUMPY[name] for name in FUNCTIONS})
    for a, b in np.random.default_rng(0).uniform(0.2, 0.8, (20, 2)):
        found = evaluated(ops, rates, {"x": [a, b], "dx": [0.7, -1.3]})
        expected = operations(a + 0.7j * H, b - 1.3j * H, numpys, lambda p, q, yes, no: yes if p.real < q.real else no)
        np.testing.assert_allclose(found, np.imag(expected) / H, rtol=1e-13, atol=1e-14)


def test_sines_of_lines_have_cosines_for_tangents():
    """The operations of a sine must not be differentiated individually: they round the angle to turns."""
    ops = Operations()
    x, = ops.inputs("x", 1)
    s, c = sincos(x)
    rates = tangent(ops, [(x, 2.0)], [s, c])
    assert [ops.operations[rate.k][0] for rate in rates] == ["fmul", "fmul"]
    assert ops.operations[rates[0].k][1:] in ((c.k, 2.0), (2.0, c.k))


def test_a_force_that_begins_has_a_tangent():
    """d sqrt(d) at d = 0, as of a foot in the air, must not be 0 times infinity."""
    ops = Operations(libm=True)
    x, = ops.inputs("x", 1)
    d = where_less(0.0, x, x, 0.0)
    rate, = tangent(ops, [(x, 1.0)], [d * sqrt(d)])
    assert evaluated(ops, [rate], {"x": [-1.0]}) == [0.0]
    assert evaluated(ops, [rate], {"x": [0.25]}) == [0.75]


def test_a_function_without_a_known_tangent_is_none():
    ops = Operations()
    x, = ops.inputs("x", 1)
    with pytest.raises(NotTraceableError):
        tangent(ops, [(x, 1.0)], [x**1.5])


@pytest.mark.parametrize("name", ["revolute", "ball", "free"])
def test_slopes_of_right_hand_sides_with_contact_are_those_of_the_dynamics(name, worst):
    """Generated code agrees with derivatives of hybrid dynamics, contact and the chart."""
    model, rng = model_of(name), np.random.default_rng(1)
    problem = problem_of(model)
    run = SolverStepper(problem, SegmentStart(0.0, problem.q, problem.v), np.array([0.0, 1.0]), Options("rodas5p"))
    for _ in range(4):
        run.state.q[:] = ld.integrate(model, problem.q, 0.3 * rng.standard_normal(model.nv))
        y = np.r_[0.3 * rng.standard_normal(model.nv), rng.standard_normal(model.nv), 0.7]
        run.jacobian(0.3, y)
        from_generated, other = run.jacobian.from_generated(y), run.jacobian.from_derivatives(0.3, y)
        # 1e-10: rounding of articulated inertias of wrists near a singular position, in other orders of sums
        assert worst("slopes by lines", np.abs(from_generated - other).max() / np.abs(other).max(), name) < 1e-10
