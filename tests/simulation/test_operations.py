"""Each operation of expressions, in every interpreter: values of numbers and arrays, jets, Taylor series, intervals, traces,
and derivatives of outputs of sweeps."""
import re
from pathlib import Path

import numpy as np
import pytest

from liedyn.batch.output_expressions import BINARY_FUNCTIONS, UNARY_FUNCTIONS
from liedyn.batch.sensitivities import _RULES
from liedyn.codegen.operations import LIBM
from liedyn.codegen.operations import OPERATIONS as TRACED
from liedyn.codegen.trace import traced_module
from liedyn.dynamics.finite_differences import numerical_derivative
from liedyn.kernels.simulation import signals as code
from liedyn.kernels.simulation.signal_series import series_stack_size, signal_series
from liedyn.kernels.simulation.signals import Signals, evaluate_signal
from liedyn.simulation.signals.expression import FUNCTIONS
from liedyn.simulation.signals.operations import OPERATIONS, apply, constant, time

SLOPE, TIMES = 0.8, [0.31, 0.57]
EVERY = pytest.mark.parametrize("one", OPERATIONS.values(), ids=lambda one: one.name)
TIME = pytest.mark.parametrize("t", TIMES)


def arguments(one, t):
    """Return SLOPE t, and the constant 0.7 as a second argument: within the domain of each operation, away from corners."""
    return (SLOPE * t, 0.7)[:one.arguments]


def program(one) -> Signals:
    words = [code.TIME, code.LITERAL, code.MULTIPLY, code.LITERAL + 256, one.code]
    i, f = (lambda *a: np.array(a, dtype=np.int64)), (lambda *a: np.array(a, dtype=float))
    words = words if one.arguments == 2 else words[:3] + words[4:]
    return Signals(i(code.PROGRAM), i(0), i(len(words)), f(), f(), i(*words), f(SLOPE, 0.7))


def jet(one, t):
    return evaluate_signal(program(one), 0, t, np.zeros(1), np.zeros(1), np.zeros(9))


def differences(f, t, h=0.01):
    return numerical_derivative(lambda steps: [f(float(t + s)) for s in steps], h, levels=3)


def test_the_table_has_every_opcode():
    assert sorted(OPERATIONS) == list(range(code.FIRST_UNARY, code.PIECE))


@TIME
@EVERY
def test_values_of_numbers_and_of_arrays(one, t):
    x = arguments(one, t)
    assert one.array(*map(np.array, x)) == pytest.approx(one.value(*x), rel=1e-15)


@TIME
@EVERY
def test_jets(one, t):
    found = jet(one, t)
    assert found[0] == pytest.approx(one.value(*arguments(one, t)), rel=1e-15)
    assert found[1] == pytest.approx(differences(lambda s: one.value(*arguments(one, s)), t), abs=1e-10)
    assert found[2] == pytest.approx(differences(lambda s: jet(one, s)[1], t), abs=1e-9)


@TIME
@EVERY
def test_taylor_series(one, t):
    def series(t):
        out = np.empty(4)
        signal_series(program(one), 0, t, np.empty(series_stack_size(3, 3)), out)
        return out
    found = series(t)
    value, rate, second = jet(one, t)
    np.testing.assert_allclose(found[:3], [value, rate, second / 2], rtol=1e-14, atol=1e-14)
    assert found[3] == pytest.approx(differences(lambda s: series(s)[2], t) / 3, abs=1e-8)


@EVERY
def test_intervals(one):
    start = np.array(TIMES)
    t = time(start, start + 0.05)
    x = apply(code.MULTIPLY, t, constant(SLOPE, start))
    low, high, slow, fast = apply(one.code, *(x, constant(0.7, start))[:one.arguments])
    for part in np.linspace(0, 1, 7):
        values, rates, _ = np.array([jet(one, float(s)) for s in start + 0.05 * part]).T
        assert (low <= values).all() and (values <= high).all() and (slow <= rates).all() and (rates <= fast).all()
    assert (high - low < 0.3).all() and (fast - slow < 3.0).all()


@pytest.mark.parametrize("name, parity", [("sin", -1), ("tan", -1), ("abs", 1), ("cosh", 1), ("atan", -1)])
@pytest.mark.parametrize("ends", [(-0.4, 0.3), (0.2, 0.9), (-3.0, 1.2), (1e6 - 0.2, 1e6 + 0.3), (-2e6, 0.5), (3e6, 3e6 + 0.1)])
def test_intervals_of_odd_and_even_functions_mirror(name, parity, ends):
    """Angles beyond 1e6 rad, where periodic functions get their full range, are so on both sides of zero."""
    one, (begin, end) = next(one for one in OPERATIONS.values() if one.name == name), (np.array([x]) for x in ends)
    low, high = apply(one.code, time(begin, end))[:2]
    mirrored = apply(one.code, time(-end, -begin))[:2]
    np.testing.assert_allclose(mirrored, (low, high) if parity > 0 else (-high, -low), rtol=1e-9)


@TIME
@EVERY
def test_traced_code(one, t):
    """The plain Python of the kernel, which is traced for generated code."""
    module = traced_module("kernels.simulation.signals")
    x, *y = arguments(one, t)
    jets = (x, SLOPE, 0.0), *((z, 0.0, 0.0) for z in y)
    found = (module.binary if y else module.unary)(one.code, *(number for one_jet in jets for number in one_jet))
    np.testing.assert_allclose(found, jet(one, t), rtol=1e-13, atol=1e-15)


def test_every_function_of_a_trace_has_a_derivative():
    assert [name for name in LIBM if TRACED[name].derivative is None] == ["pow"]    # such signals use those of jets


@TIME
@EVERY
def test_derivatives_of_outputs_of_sweeps(one, t):
    if one.name == "step":
        pytest.skip("it is a comparison there")
    x = arguments(one, t)
    slope = _RULES[one.array](*map(np.array, x))[0]
    assert slope * SLOPE == pytest.approx(jet(one, t)[1], rel=1e-13, abs=1e-15)


def test_functions_of_scenarios_sweeps_and_documents_are_the_same():
    assert {*UNARY_FUNCTIONS, *BINARY_FUNCTIONS, "clip"} == set(FUNCTIONS)
    text = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    assert set(re.search(r"and the functions `([^`]*)`", text)[1].split()) == set(FUNCTIONS)
