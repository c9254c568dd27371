"""Times at which expressions switch, and bounds by interval arithmetic."""
import math
import zlib

import numpy as np
import pytest

from liedyn.errors import Place
from liedyn.kernels.simulation import signals as code
from liedyn.kernels.simulation.signals import PROGRAM, Signals, evaluate_signal
from liedyn.simulation.signals import operations
from liedyn.simulation.signals.expression import compile_expression
from liedyn.simulation.signals.switching_times import MAX_SWITCHES, switches_in_time


def program(text):
    return compile_expression(text, Place(), True, lambda kind, name: 0)


def values(program, times):
    """Return the kernel's values and derivatives (k, 3)."""
    i, f = (lambda *x: np.array(x, dtype=np.int64)), (lambda *x: np.array(x, dtype=float))
    table = Signals(i(PROGRAM), i(0), i(len(program.code)), f(), f(), i(*program.code), f(*program.literals))
    stack, none = np.zeros(3 * program.depth), np.zeros(1)
    return np.array([evaluate_signal(table, 0, float(t), none, none, stack) for t in times])


def waves(level, w, end):
    """Return the roots of sin(w t) = level in (0, end)."""
    a = math.asin(level)
    turns = 2 * math.pi * np.arange(-1, w * end)
    roots = np.concatenate([(a + turns) / w, (math.pi - a + turns) / w])
    return np.sort(roots[(roots > 0) & (roots < end)])


@pytest.mark.parametrize("text, end, expected", [
    ("step(t-2.0003)-step(t-2.3003)", 10.0, [2.0003, 2.3003]),
    ("step(t-1e-5)-step(t-2e-5)", 10.0, [1e-5, 2e-5]),
    ("sign(t-0.3)", 1.0, [0.3]), ("abs(2*t-1)", 1.0, [0.5]), ("clip(t, 0.2, 0.7)", 1.0, [0.2, 0.7]),
    ("min(t, 1-t)", 2.0, [0.5]), ("max(t, 1, 3-t)", 4.0, [1.0, 1.5]), ("floor(2*t)", 2.0, [0.5, 1.0, 1.5]),
    ("t-3*floor(t/3)", 10.0, [3.0, 6.0, 9.0]), ("min(1, step(t-0.3))", 1.0, [0.3]),
    ("step(exp(-t)-0.5)", 10.0, [math.log(2)]), ("step(tanh(t)-0.5)", 3.0, [math.atanh(0.5)]),
    ("step(log(t+1)-1)", 3.0, [math.e - 1]), ("step(sinh(t)-2)", 3.0, [math.asinh(2)]), ("step(cosh(t)-2)", 3.0, [math.acosh(2)]),
    ("step(t**3-2)", 3.0, [2 ** (1 / 3)]), ("step(2**t-3)", 3.0, [math.log2(3)]), ("step(t**1.5-2)", 3.0, [2 ** (2 / 3)]),
    ("step(1/(t+1)-0.4)", 3.0, [1.5]), ("step(sqrt(t+1)-1.5)", 3.0, [1.25]), ("step(atan(t)-1)", 3.0, [math.tan(1)]),
    ("step(atan2(t, 2)-0.5)", 3.0, [2 * math.tan(0.5)]), ("step(tan(t/3)-1)", 3.0, [0.75 * math.pi]),
    ("abs(sin(t))", 10.0, [math.pi, 2 * math.pi, 3 * math.pi]), ("sqrt(max(0, cos(t)))", 6.0, [0.5 * math.pi, 1.5 * math.pi]),
    ("atan(tan(t))", 8.0, [0.5 * math.pi, 1.5 * math.pi, 2.5 * math.pi]), ("atan2(sin(t), cos(t))", 8.0, [math.pi]),
    ("step(sin(1000*t)-0.9999)", 10.0, waves(0.9999, 1000.0, 10.0)), ("step(step(t-1)*t-2)", 3.0, [1.0, 2.0]),
    ("step(t-1)*q", 2.0, [1.0]), ("sin(3*t)*exp(-t)+q", 2.0, []), ("step(q-t)", 2.0, []), ("step(t*t+1)", 2.0, []),
])
def test_switches_lie_where_closed_forms_say(text, end, expected):
    """To a few roundings of t and of the functions; outside a window, the kernel's value is that of the side."""
    found = switches_in_time(program(text), 0.0, end)
    expected = np.sort(expected)
    assert found.complete and found.windows.shape == (len(expected), 2)
    slack = 40 * np.spacing(np.maximum(expected, end / 10))     # of narrow peaks of sin(1000 t): slopes of 1e-2 of it
    assert (np.abs(found.windows[:, 0] - expected) <= slack).all() and (np.abs(found.windows[:, 1] - expected) <= slack).all()


@pytest.mark.parametrize("text", ["step(0.25-t)", "step(t-0.25)", "floor(1-4*t)", "floor(4*t)", "4*step(0.95-t)*step(t-0.7)",
                                  "sign(0.25-t)", "step(exp(-t)-0.5)"])
def test_a_window_begins_with_the_value_before_and_ends_with_that_after(text):
    """'step(0.25-t)' was on its new side at the last time before its break: 91 steps where there should be 8."""
    for low, high in switches_in_time(program(text), 0.0, 0.99).windows:
        before, first, last, after = values(program(text), [low - 1e-3, low, high, high + 1e-3])[:, 0]
        assert before == first != last == after


def test_a_step_that_is_touched_from_below_has_a_narrow_window():
    """cos(t) rounds to 1 within 2e-8 of a turn: the window is the first of these times, not all of them."""
    low, high = switches_in_time(program("floor(cos(t))"), 0.0, 7.0).windows[-1]
    assert high - low < 1e-14 and high == pytest.approx(2 * math.pi, abs=1e-7)


def test_kinks_where_an_argument_only_touches():
    """asin(sin(t)) has corners where sin(t) is 1: they are found to the root of rounding, as touching roots can be."""
    found = switches_in_time(program("asin(sin(3*t))"), 0.0, 10.0)
    np.testing.assert_allclose(found.windows[:, 1], (np.arange(10) + 0.5) * math.pi / 3, rtol=0, atol=1e-7)
    assert found.complete


@pytest.mark.parametrize("text", ["step(sin(1e6*t))", "step(cos(t)**2+sin(t)**2-1)", "step(t-6*floor(t*1e5))"])
def test_what_cannot_be_located_is_told(text):
    assert not switches_in_time(program(text), 0.0, 10.0).complete


def test_many_switches_up_to_the_bound():
    assert len(switches_in_time(program(f"floor({MAX_SWITCHES - 1}*t)"), 0.0, 1.0).windows) == MAX_SWITCHES - 2


RANDOM = ["sin(3*t)", "cos(2*t-1)", "tan(t/4)", "exp(-t)", "tanh(t-1)", "(t-1.3)", "abs(t-0.7)", "sqrt(t+0.1)", "atan(3*t-2)",
          "sinh(t/2)", "cosh(t-1)", "log(t+0.2)", "asin(t/4)", "acos(t/5)", "t**3", "(t+1)**-2", "(t+1)**0.7", "min(t, 1.1)",
          "max(t, sin(5*t))", "floor(3*t)", "sign(t-1.9)", "step(sin(7*t))", "atan2(t-1, 0.5-t)", "1/(t+0.5)", "2**t"]


def expressions(count):
    rng = np.random.default_rng(zlib.crc32(b"expressions"))
    for _ in range(count):
        a, b, c = rng.choice(RANDOM, 3)
        yield f"{a}{rng.choice(list('+-*'))}{b}*{rng.uniform(0.2, 2):.3f}-{c}"


@pytest.mark.parametrize("text", [*RANDOM, *expressions(25)])
def test_bounds_hold_and_switches_are_complete(text):
    """Between switches the kernel's value and derivative lie within the bounds at 1000 random times; the step of the expression
    at its mean has, between neighbouring windows, one value."""
    p, rng = program(text), np.random.default_rng(1)
    start = np.sort(rng.uniform(0, 3, 50))
    end = start + rng.uniform(0, 0.1, 50)
    t = operations.time(start, end)
    stack = []
    for word in p.code:
        operation = word & 255
        if operation < code.FIRST_UNARY:
            stack.append(t if operation == code.TIME else operations.constant(p.literals[word >> 8], start))
        else:
            x = [stack.pop() for _ in range(1 if operation < code.FIRST_BINARY else 2)][::-1]
            stack.append(operations.apply(operation, *x))
    low, high, slow, fast = stack[0]
    for k in range(20):
        value, slope, _ = values(p, start + (end - start) * k / 19).T
        assert (low <= value).all() and (value <= high).all() and (slow <= slope).all() and (slope <= fast).all()
    level = values(p, np.linspace(0.01, 2.99, 100))[:, 0].mean().item()
    p = program(f"step({text}-({level!r}))")
    found = switches_in_time(p, 0.0, 3.0)
    assert found.complete
    edges = np.r_[0.0, found.windows.reshape(-1), 3.0].reshape(-1, 2)
    for a, b in edges[edges[:, 0] + 1e-9 < edges[:, 1]]:
        inside = values(p, np.r_[a if a > 0 else 1e-9, np.linspace(a, b, 42)[1:-1], b if b < 3 else 3 - 1e-8])[:, 0]
        assert (inside == inside[0]).all(), (a, b)
