"""Functions of nonlinear couplings: programs against forty digits, splines against SciPy, and what is an error."""
from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.interpolate import CubicSpline, make_interp_spline

import liedyn as ld
from liedyn.model.coupling_expression import UNARY_OPERATIONS, CouplingFunction, read_expression
from liedyn.model.coupling_functions import TABLE_HEADER, characteristic_slope, evaluate, function_program
from liedyn.model.description import Coupling, Joint, Mimic, Robot
from liedyn.model.links import Link
from loop_reference import function_value
from messages import has_parts

_POWERS = ("2", "3", "7", "0", "1", "20", "(-1)", "(-3)", "0.5", "1.7", "(-0.3)")
EXPRESSIONS = [*(f"{name}(0.4*q + 0.3)" for name in UNARY_OPERATIONS if name != "negative"), *(f"(q + 2)**{p}" for p in _POWERS),
               "-q", "q", "2", "atan2(sin(q), 2*cos(q) + q)", "(q + 2)**q", "q**3", "0.1*(1 - cos(q))", "q - q", "1/(1 + q**2)",
               "pi*q + e", "sin(q)*exp(-q)/(1.5 + cos(2*q)) - sqrt(q + 1)"]


class _Names:
    """Functions of mpmath with the names of an expression."""

    def __getattr__(self, name):
        return getattr(mp, name)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_programs_give_exact_derivatives(text):
    function = read_expression(text, "cam", None)
    if "atan2" in text:
        def f(x): return mp.atan2(mp.sin(x), 2 * mp.cos(x) + x)
    else:
        def f(x): return function_value(function, x, _Names())
    program = function_program(function)
    with mp.workdps(40):
        for x in (0.37, 1.21):
            expected = [f(mpf(x)), *(mp.diff(f, mpf(x), k) for k in (1, 2, 3))]
            for ours, truth in zip(evaluate(program, x), expected, strict=True):
                assert abs(ours - float(truth)) <= 2e-14 * (1 + abs(float(truth))), (x, ours, truth)


def test_registers_are_used_again():
    """A long sum needs few registers."""
    text = " + ".join(f"sin({k}*q)" for k in range(1, 40))
    assert function_program(read_expression(text, "cam", None)).registers < 20


@pytest.mark.parametrize("text, value", [("q", 1.0), ("3", 1.0), ("-2*q", 2.0), ("q**2", 2 * np.pi)])
def test_characteristic_slope(text, value):
    function = read_expression(text, "cam", None)
    assert characteristic_slope(function, function_program(function)) == pytest.approx(value, rel=0.02)


X = np.sort(np.random.default_rng(5).uniform(-1.0, 2.0, 9))
Y = np.random.default_rng(6).standard_normal(9)


def table(x=X, y=Y, **options):
    return CouplingFunction(points=tuple(zip(map(float, x), map(float, y), strict=True)), **options)


@pytest.mark.parametrize("interpolation", ["cubic", "quintic"])
def test_a_table_is_the_spline_of_scipy(interpolation):
    spline = CubicSpline(X, Y) if interpolation == "cubic" else make_interp_spline(X, Y, k=5)
    at = np.linspace(X[0] + 1e-9, X[-1] - 1e-9, 301)
    ours = evaluate(function_program(table(interpolation=interpolation)), at)
    for k in range(4):
        truth = spline(at, k)
        np.testing.assert_allclose(ours[k], truth, rtol=0, atol=1e-11 * np.abs(truth).max())


@pytest.mark.parametrize("interpolation", ["cubic", "quintic"])
def test_straight_lines_continue_a_table(interpolation):
    program = function_program(table(interpolation=interpolation))
    for end, step in ((X[0], -1.5), (X[-1], 2.5)):
        f, df, _, _ = evaluate(program, end)
        np.testing.assert_allclose(evaluate(program, end + step), [f + step * df, df, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("interpolation", ["cubic", "quintic"])
@pytest.mark.parametrize("turns", [0, 1, -2])
def test_a_periodic_table_continues(interpolation, turns):
    y = np.append(Y[:-1], Y[0] + 2 * np.pi * turns)
    program, period = function_program(table(y=y, interpolation=interpolation, periodic=True)), X[-1] - X[0]
    at = np.linspace(X[0], X[-1], 40)[:-1]
    ours = evaluate(program, at)
    np.testing.assert_allclose(evaluate(program, X[:-1])[0], y[:-1], atol=1e-12)
    for n in (-3, 1, 2):
        shifted = evaluate(program, at + 1e-12 + n * period)
        np.testing.assert_allclose(shifted[0], ours[0] + n * 2 * np.pi * turns, atol=1e-9)
        np.testing.assert_allclose(shifted[1:3], ours[1:3], atol=1e-8 * np.abs(ours[1:3]).max())
    smooth = 3 if interpolation == "cubic" else 4                 # continuous where the period ends
    left, right = evaluate(program, X[-1] - 1e-9), evaluate(program, X[-1] + 1e-9)
    assert np.abs(left - right)[1:smooth].max() < 1e-5 * np.abs(ours).max()


def test_pieces_of_a_table():
    program = function_program(table())
    assert program.constants.size == TABLE_HEADER + 10 + 10 * 4          # eight pieces, and straight lines on both sides


# what is an error ---------------------------------------------------------------------------------------------------

LINKS = tuple(Link(name, 1.0, (0.1, 0.2, 0.3), (0.3, 0.0, 0.0, 0.4, 0.0, 0.5)) for name in "abc")
JOINTS = (Joint("ja", "continuous", "world", "a", axes=((0, 0, 1),)), Joint("jb", "prismatic", "a", "b", axes=((0, 1, 0),)),
          Joint("jc", "continuous", "b", "c", axes=((1, 0, 0),)))
ROBOT = Robot("r", LINKS, JOINTS)
SINE = CouplingFunction("sin(q)", (("driver", 0.0), ("sin", 0.0)))


def coupled(*functions, terms=None, joints=JOINTS, linear=()):
    pairs = terms or [("jc", "ja"), ("jb", "jc")]
    couplings = tuple(Coupling(f"cam{k}", ((follower, "", 1.0), (driver, "", 0.0)), function=function)
                      for k, (function, (follower, driver)) in enumerate(zip(functions, pairs, strict=False)))
    return replace(ROBOT, couplings=(*couplings, *linear), joints=joints)


STEEP = table(np.arange(5), [0, 1, 2, 1, 0.5], periodic=True)


@pytest.mark.parametrize("robot, text", [
    (coupled(SINE, terms=[("ja", "ja")]), 'the coordinate "ja" appears twice'),
    (coupled(SINE, terms=[("jc", "jx")]), "unknown joint in a coupling: expected a joint's name, or joint.label, got 'jx'"),
    (coupled(replace(SINE, operations=(("driver", 0.0), ("sine", 0.0)))), "unknown operation of a function … got 'sine'"),
    (coupled(replace(SINE, operations=(("driver", 0.0), ("add", 0.0)))), "the operations of a function must leave one number"),
    (coupled(replace(SINE, operations=())), "the operations of a function must leave one number"),
    (coupled(table(X[:3], Y[:3])), "wrong number of points for cubic interpolation: expected 4 to 2000, got 3"),
    (coupled(table(X[:5], Y[:5], interpolation="quintic")), "for quintic interpolation: expected 6 to 2000, got 5"),
    (coupled(table(interpolation="linear")), "unknown interpolation: expected one of cubic, quintic, got 'linear'"),
    (coupled(table([0, 1, 1, 2, 3], Y[:5])), "the driver's positions in a table must increase: expected a number > 1, "
                                             "got 1.0"),
    (coupled(table(y=[*Y[:-1], np.nan])), "not a finite number in the table"),
    (coupled(STEEP), "the last value of a periodic table must be the first one, or whole turns more: expected 0, got 0.5"),
    (coupled(STEEP, terms=[("jb", "ja")]), "the last value of a periodic table must be the first one: expected 0, got 0.5"),
    (coupled(table(units=("m", "rad"))), "the column of the driver has the unit of another quantity: expected rad, got 'm'"),
    (coupled(SINE, SINE, terms=[("jc", "ja"), ("ja", "jc")]), "the follower of coupling cam0 depends on itself"),
    (coupled(SINE, SINE, terms=[("jc", "ja"), ("jc", "jb")]), "the follower of coupling cam1 is also determined by another"),
    (coupled(SINE, joints=(*JOINTS[:2], replace(JOINTS[2], mimic=Mimic("jb")))), None),
    (coupled(SINE, SINE, terms=[("jc", "ja"), ("jb", "ja")], linear=(Coupling("gear", (("jb", "", 1.0), ("jc", "", 2.0))),)),
     "is also determined by another coupling"),
])
def test_broken_couplings(robot, text):
    if text is None:                                   # jb follows the follower jc, since the mimic is solved for jb
        assert ld.build(robot).independent == ("ja",)
        return
    with pytest.raises(ld.ModelError) as caught:
        ld.build(robot)
    assert has_parts(str(caught.value), text) and "\n" not in str(caught.value)


def test_couplings_in_python():
    """The arguments are the keys of a robot file."""
    one = ld.Coupling("cam", follower="jc", driver="ja", function="0.3*sin(ja)")
    assert one.function == read_expression("0.3*sin(ja)", "ja", None) and one.terms == (("jc", "", 1.0), ("ja", "", 0.0))
    two = ld.Coupling("cam", follower="jc", driver="ja", table=np.column_stack([X, Y]), interpolation="quintic")
    assert two.function == table(interpolation="quintic")
    assert replace(two, name="other") == ld.Coupling("other", two.terms, function=two.function)
    np.testing.assert_allclose(ld.expand(ld.build(replace(ROBOT, couplings=(one,))), [0.4, 0.1]), [0.4, 0.1, 0.3 * np.sin(0.4)])


@pytest.mark.parametrize("arguments, text", [
    ({"follower": "jc", "function": "q"}, "a nonlinear coupling has a follower and a driver, and neither terms nor an offset"),
    ({"follower": "jc", "driver": "ja", "function": "q", "offset": 1}, "and neither terms nor an offset"),
    ({"follower": "jc", "driver": "ja"}, "a nonlinear coupling takes a function or a table"),
    ({"follower": "jc", "driver": "ja", "function": "q", "table": [[0, 1], [1, 2]]}, "takes a function or a table"),
    ({"follower": "jc", "driver": "ja", "function": "abs(q)"}, 'coupling "cam", function: abs has kinks or jumps')])
def test_broken_couplings_in_python(arguments, text):
    with pytest.raises(ld.ModelError) as caught:
        ld.Coupling("cam", **arguments)
    assert has_parts(str(caught.value), text) and "\n" not in str(caught.value)


def test_a_robot_without_functions_has_the_arrays_that_it_had():
    model = ld.load("robots/hand.yaml")
    assert model.loop_index[[5, 7]].tolist() == [0, 0] and model.n_frames == len(model.constraints)
    terms = int(model.loop_index[2])
    assert model.loop_constants.size == 27 * len(model.constraints) + terms
