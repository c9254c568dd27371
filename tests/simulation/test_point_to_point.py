"""Fastest motions against closed forms, and the key `move` of scenarios."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.operating_point import prepare as linearization_setup
from liedyn.errors import ComputationError, ScenarioError
from liedyn.simulation.signals.point_to_point import MotionLimits, PointState, fastest_motion, stop_and_go

inf = np.inf


def one(x, v=0.0, a=0.0):
    return PointState(*(np.array([float(value)]) for value in (x, v, a)))


def limits(v, a, j):
    return MotionLimits(*(np.array([float(value)]) for value in (v, a, j)))


def jets(curve, t):
    """Return value and three derivatives at times, without the evaluation of liedyn."""
    k = np.clip(np.searchsorted(curve.breaks, t, side="right") - 1, 0, None)
    out = []
    for time, piece in zip(t, k, strict=True):
        p = np.polynomial.Polynomial(curve.coefficients[piece])
        out.append([p.deriv(order)(time - curve.breaks[piece]) for order in range(4)])
    return np.array(out).T


def trapezoid(d, v, a):
    """Return the duration from rest to rest: constant acceleration, possibly constant velocity, constant deceleration."""
    return d / v + v / a if d >= v * v / a else 2 * np.sqrt(d / a)


def s_curve(d, v, a, j):
    """Return the duration with a jerk limit: up to seven phases."""
    rise = a / j + v / a if v * j >= a * a else 2 * np.sqrt(v / j)           # to the maximum velocity
    if d >= v * rise:
        return rise + d / v
    if d >= 2 * a**3 / j**2:                                                 # reaches the maximum acceleration only
        return a / j + np.sqrt((a / j)**2 + 4 * d / a)
    return 4 * np.cbrt(d / (2 * j))


@pytest.mark.parametrize("scale, time", [(1.0, 1.0), (1e-6, 1.0), (1e5, 1e-3), (1.0, 1e4)])
@pytest.mark.parametrize("d, v, a, j", [(1, 1, 2, inf), (0.1, 1, 2, inf), (-3, 0.5, 4, inf), (1, inf, 1, inf), (2, 1, 2, 10),
                                        (-1, 5, 2, 10), (0.001, 5, 2, 10), (3, 1, 2, 1.5), (5, inf, 2, 7), (0.02, 1, 30, 40)])
def test_durations_are_those_of_the_closed_form(d, v, a, j, scale, time):
    length, start, target = abs(d) * scale, 0.3 * scale, (0.3 + d) * scale
    v, a, j = v * scale / time, a * scale / time**2, j * scale / time**3
    motion = fastest_motion(one(start), np.array([target]), limits(v, a, j))
    expected = trapezoid(length, v, a) if j == inf else s_curve(length, v, a, j)
    assert motion.duration == pytest.approx(expected, rel=1e-7)
    t = np.linspace(0.0, motion.duration, 301)
    x, dx, ddx, dddx = jets(motion.curves[0], t)
    assert np.abs(dx).max() <= v * (1 + 1e-7) and np.abs(ddx[1:-1]).max() <= a * (1 + 1e-7)
    assert j == inf or np.abs(dddx[1:-1]).max() <= j * (1 + 1e-6)
    assert x[-1] == target and dx[-1] == ddx[-1] == 0.0
    arrival = jets(motion.curves[0], np.array([np.nextafter(motion.curves[0].breaks[-1], 0.0)]))
    assert arrival[0, 0] == pytest.approx(target, abs=1e-13 * max(abs(target), length))
    assert arrival[1, 0] == pytest.approx(0.0, abs=1e-12 * length / motion.duration)


@pytest.mark.parametrize("v0", [-2.0, -0.3, 0.4, 1.7, 3.0])
@pytest.mark.parametrize("d", [-1.0, 0.0, 0.2, 2.0])
def test_from_a_velocity_without_other_limits_it_is_bang_bang(d, v0):
    """Maximum acceleration, then maximum deceleration, of a point that can stop before the target or has to return."""
    a = 1.5
    stop = v0 * abs(v0) / (2 * a)
    s = np.sign(d - stop) or 1.0
    peak = np.sqrt(max(v0 * v0 / 2 + s * a * d, 0.0))                        # speed at the switch, towards s
    expected = (2 * peak - s * v0) / a
    assert fastest_motion(one(0, v0), np.array([d]), limits(inf, a, inf)).duration == pytest.approx(expected, rel=1e-7)


def test_motions_from_any_state_are_continuous_and_end_at_rest():
    rng = np.random.default_rng(4)
    for k in range(60):
        j = np.array([inf, 30.0][k % 2])
        v, a, start = rng.uniform(0.5, 3), rng.uniform(0.5, 9), (rng.normal(), rng.normal(), rng.normal() * (k % 2))
        target = rng.normal()
        motion = fastest_motion(one(*start), np.array([target]), limits(v, a, j))
        curve = motion.curves[0]
        assert jets(curve, np.zeros(1))[:2 + k % 2, 0] == pytest.approx(start[:2 + k % 2], abs=1e-12)
        before = jets(curve, np.nextafter(curve.breaks[1:], -inf))
        after = jets(curve, curve.breaks[1:])
        orders = 3 if k % 2 else 2
        assert np.abs(before - after)[:orders].max(initial=0.0) < 1e-10 * (1 + np.abs(after[:orders]).max(initial=0.0))
        assert jets(curve, np.array([motion.duration + 1]))[:, 0].tolist() == [target, 0, 0, 0]


@pytest.mark.parametrize("start, target, bounds, duration", [
    ((-0.3091, -0.8275, 4.094), -0.3108, (1.158, 5.401, 7.231), 3.0),
    ((0.9741, -0.04857, 0.0), 5.831, (0.1281, 7.371, inf), 97.0),
    ((0.2768, 0.05042, 0.0), -0.1612, (0.1132, 28.4, inf), 12.0)])
def test_longer_motions_from_a_velocity_end_exactly_at_their_target(start, target, bounds, duration):
    """Ruckig misses these by about 1e-9."""
    v, a, _ = bounds
    shortest = fastest_motion(one(*start), np.array([target]), limits(*bounds)).duration
    curve = fastest_motion(one(*start), np.array([target]), limits(*bounds), max(duration, 1.5 * shortest)).curves[0]
    arrival = jets(curve, np.array([np.nextafter(curve.breaks[-1], -inf)]))[:, 0]
    assert abs(arrival[0] - target) < 1e-12 and abs(arrival[1]) < 1e-12 * v and (bounds[2] == inf or abs(arrival[2]) < 1e-12 * a)


def test_coordinates_arrive_together_and_longer_durations_are_kept():
    start, target = PointState(*np.zeros((3, 3))), np.array([1.0, -0.2, 0.0])
    bounds = MotionLimits(*np.array([[1.0] * 3, [2.0] * 3, [9.0] * 3]))
    motion = fastest_motion(start, target, bounds)
    assert motion.duration == pytest.approx(motion.shortest[0]) and motion.shortest[1] < motion.duration
    for curve, x in zip(motion.curves, target, strict=True):
        assert jets(curve, np.array([motion.duration * 0.999]))[0, 0] == pytest.approx(x, abs=1e-4)
        assert x == 0.0 or abs(jets(curve, np.array([motion.duration * 0.8]))[0, 0] - x) > 1e-3
    assert fastest_motion(start, target, bounds, 3.0).duration == pytest.approx(3.0)
    with pytest.raises(ComputationError, match=r"at least 1\.\d+ s under these limits, longer than the 0.5 s"):
        fastest_motion(start, target, bounds, 0.5)


def test_stops_and_waits():
    curve = stop_and_go([(0.5, 0.0, 0.0, 0.0), (None, 1.0), (3.0, 0.5), (None, 0.5)], limits(1, 2, inf))
    x, dx, *_ = jets(curve, np.array([0.0, 0.5, 2.0, 2.9, 3.0, 5.0]))
    assert x == pytest.approx([0, 0, 1, 1, 1, 0.5], abs=1e-14) and dx == pytest.approx(0, abs=1e-14)
    assert curve.breaks[0] < 0.5 and (np.diff(curve.breaks) > 0).all()
    with pytest.raises(ComputationError, match=r"the motion to point 2 starts at 1.2 s; the motion before it ends at 2 s"):
        stop_and_go([(0.5, 0.0, 0.0, 0.0), (None, 1.0), (1.2, 0.5)], limits(1, 2, inf))


PENDULUM = {"robot": "robots/double_pendulum.yaml", "duration": 2.0,
            "integrator": {"method": "dop853", "rtol": 1e-10, "atol": 1e-12}}


def scenario(move, **more):
    return PENDULUM | {"joints": {"shoulder": {"prescribe": {"position": {"move": move, **more}}}}}


def test_a_scenario_follows_it():
    """The joint moves as one that is prescribed by the expressions of the trapezoid."""
    result = ld.run_scenario(scenario([[0.2, 0.1], [1.1]], limits={"velocity": 1, "acceleration": 2}))
    t = result.t - 0.2
    expected = np.select([t < 0, t < 0.5, t < 1, t < 1.5], [0.1, 0.1 + t**2, 0.35 + (t - 0.5), 1.1 - (1.5 - t)**2], 1.1)
    assert result.q[:, 0] == pytest.approx(expected, abs=1e-12)
    assert {0.2, 0.7, 1.2, 1.7} <= set(np.round(result.t, 12))              # steps end where the acceleration jumps


def test_limits_of_the_robot_and_those_next_to_a_move(tmp_path):
    robot = ld.load_description("robots/double_pendulum.yaml")
    limited = ld.build(robot).with_changes(velocity_limit={"shoulder": 0.8}, acceleration_limit={"shoulder": 3.0},
                                           jerk_limit={"shoulder": 20.0})
    ld.save(limited.description, tmp_path / "limited.yaml")
    def of(**more):
        return ld.run_scenario(scenario([[0, 0], [1.0]], **more) | {"robot": str(tmp_path / "limited.yaml")})
    by_robot = of()
    assert np.array_equal(by_robot.q, of(limits="robot").q)
    assert np.abs(by_robot.v[:, 0]).max() == pytest.approx(0.8, abs=1e-9)
    end = by_robot.t[np.flatnonzero(by_robot.q[:, 0] < 1.0 - 1e-12)[-1]]
    assert end == pytest.approx(s_curve(1.0, 0.8, 3.0, 20.0), abs=0.02)
    assert np.abs(of(limits={"velocity": 0.6}).v[:, 0]).max() == pytest.approx(0.6, abs=1e-9)


@pytest.mark.parametrize("move, more, message", [
    ([[0, 0], [1]], {}, "the position of shoulder has no acceleration limit"),
    ([[0, 0], [1]], {"limits": {"acceleration": 0}}, "out of range: expected a number > 0"),
    ([[0, 0], [1]], {"limits": "fast"}, "expected robot, or a mapping with velocity, acceleration, jerk"),
    ([[0, 0], [0.2, 1], [0.3, 0]], {"limits": {"acceleration": 1}},
     "the motion to point 2 starts at 0.3 s; the motion before it ends at"),
    ([[0.5, 0, 1], [1]], {"limits": {"acceleration": 1}}, "the motion would start with a velocity jump"),
    ([[0, 0, 0, 0.1], [1]], {"limits": {"acceleration": 1}}, "acceleration of a move has no effect without a jerk limit"),
    ([[0, 0]], {"limits": {"acceleration": 1}}, "expected a list of at least 2 points"),
    ([[0, 0], [1, 2, 3]], {"limits": {"acceleration": 1}}, "numbers: x, or t and x")])
def test_wrong_moves(move, more, message):
    with pytest.raises(ScenarioError, match=message.replace("(", r"\(")):
        ld.run_scenario(scenario(move, **more))


def test_limits_that_the_start_exceeds_are_named():
    """The run followed a faster motion than its limits allow without a message."""
    setup = linearization_setup(scenario([[0, 0, 0.9, 3.0], [1]], limits={"velocity": 1, "acceleration": 3, "jerk": 1}))
    assert [str(warning) for warning in setup.warnings] == [
        "scenario: joints.shoulder.prescribe.position.move: from its initial state, the position of shoulder exceeds a limit: "
        "the velocity reaches 5.4, the limit is 1 [beyond-limits]"]


def test_a_force_is_no_move_and_other_curves_have_no_limits():
    force = {"move": [[0, 0], [1]], "limits": {"acceleration": 1}}
    for of_joint, message in (({"torque": force}, "elbow.torque.move: a move is a position, not a torque"),
                              ({"torque": [force]}, "a move is a position, not a torque of elbow"),
                              ({"prescribe": {"acceleration": force}}, "a move is a position, not a")):
        with pytest.raises(ScenarioError, match=message):
            ld.run_scenario(PENDULUM | {"joints": {"elbow": of_joint}})
    spline = {"spline": [[0, 0], [1, 1]], "limits": "robot"}
    with pytest.raises(ScenarioError, match="limits cannot be combined with spline"):
        ld.run_scenario(PENDULUM | {"joints": {"elbow": {"prescribe": {"position": spline}}}})
