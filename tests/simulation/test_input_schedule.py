"""A scenario bound to a model: what ends up in the arrays of the compiled loop."""
import math

import numpy as np
import pytest

from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.robots.robot_yaml import read_robot_yaml
from liedyn.io.scenarios.scenario_file import read_scenario
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.kernels.simulation.signals import ACCELERATION, POSITION, TORQUE, VELOCITY, evaluate_signal
from liedyn.model.model import build
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.signals.signal_compiler import merge_times, snap_to_breaks

LINK = "{mass: 1.0, inertia: [0.01, 0.01, 0.01]}"
ROBOT = f"""\
links: {{a: {LINK}, b: {LINK}, c: {LINK}, d: {LINK}, e: {LINK}, tip: {LINK}}}
joints:
  leg_1: {{type: revolute, parent: world, child: a, axis: [0, 1, 0], limits: {{lower: -1, upper: 1}}}}
  leg_12: {{type: revolute, parent: a, child: b, axis: [0, 1, 0], limits: {{lower: -1, upper: 1}}}}
  rail: {{type: prismatic, parent: b, child: c, axis: [1, 0, 0]}}
  ball: {{type: ball, parent: c, child: d}}
  uni: {{type: universal, parent: d, child: e, axes: [[1, 0, 0], [0, 1, 0]]}}
  weld: {{type: fixed, parent: e, child: tip, origin: {{xyz: [0, 0, 1]}}}}
actuators:
  rotor1: {{link: e, position: [0.2, 0, 0], axis: [0, 0, 1], torque_ratio: 0.5}}
  rotor2: {{link: tip, position: [0, 0.1, 0], axis: [0, 0, 2], torque_ratio: -0.5}}
"""
FLYING = f"base: floating\nlinks: {{body: {LINK}, arm: {LINK}}}\n" \
         "joints: {elbow: {type: revolute, parent: body, child: arm, axis: [0, 1, 0]}}\n"
LEG_1, LEG_12, RAIL, BALL, UNI = 0, 1, 2, 3, 6                        # first velocity coordinates; nv = 8


@pytest.fixture
def compiled(tmp_path):
    """Compile the body of a scenario of 2 s."""
    def run(body: str, robot: str = ROBOT) -> InitialValueProblem:
        (tmp_path / "robot.yaml").write_text(robot)
        (tmp_path / "s.yaml").write_text("robot: robot.yaml\nduration: 2\n" + body)
        problem, _, run.warnings = compile_schedule(read_scenario(tmp_path / "s.yaml"),
                                                    build(read_robot_yaml(tmp_path / "robot.yaml")))
        return problem

    run.folder = tmp_path
    return run


def jet(c: InitialValueProblem, k: int, t: float, q=None, v=None) -> tuple[float, float, float]:
    return evaluate_signal(c.signals, k, t, c.q if q is None else q, c.v if v is None else v, np.zeros(c.stack_size))


def value(c: InitialValueProblem, i: int, t: float, **state) -> float:
    return jet(c, c.schedule.signal[i], t, **state)[0]


def test_nothing_said_is_no_torque(compiled):
    c = compiled("")
    assert list(c.schedule.level) == [TORQUE] * 8 and list(c.schedule.target) == [-1] * 8
    assert [value(c, i, 1.0) for i in range(8)] == [0] * 8
    assert list(c.q) == [0, 0, 0, 0, 0, 0, 1, 0, 0] and list(c.v) == [0] * 8
    assert list(c.schedule.q_of_v) == [0, 1, 2, -1, -1, -1, 7, 8]
    assert c.schedule.force_link.shape == (0,) and c.schedule.breaks.shape == (0,)
    assert compiled.warnings == () and len(c.signal_names) == 1


def test_the_most_specific_entry_wins_whatever_the_order(compiled):
    c = compiled("joints: {leg_1: {torque: 1}, '*': {torque: 2}, 'leg_?': {torque: 3}, 'leg_1*': {torque: 4}, '?*': {torque: 5}}")
    assert [value(c, i, 0.0) for i in range(8)] == [1, 4, 5, 5, 5, 5, 5, 5]


def test_a_lone_star_loses_even_to_another_single_letter(compiled):
    robot = FLYING.replace("elbow", "x")
    c = compiled("joints: {'?': {torque: 3}, '*': {torque: 2}}", robot)
    assert [value(c, i, 0.0) for i in range(7)] == [2] * 6 + [3]


def test_torque_by_component_and_by_own_coordinate(compiled):
    c = compiled("""joints:
  ball: {torque: ["t", "2*v", 3]}
  '*': {torque: "-10*q - v"}
""")
    q, v = np.arange(9.0), np.arange(8.0) / 10
    assert [value(c, i, 0.5, q=q, v=v) for i in range(8)] == pytest.approx(
        [0, -10.1, -20.2, 0.5, 2 * 0.4, 3, -70.6, -80.7])
    assert c.signal_names[c.schedule.signal[BALL + 1]] == "torque of ball.wy"
    assert c.signal_locations[c.schedule.signal[BALL + 1]].key == "joints.ball.torque[1]"


def test_expressions_read_other_coordinates_by_name(compiled):
    c = compiled("joints: {leg_1: {torque: 'q(uni.2) + 10*v(ball.wx) + 100*q(leg_12)'}}")
    q, v = np.arange(9.0), np.arange(8.0)
    assert value(c, LEG_1, 0.0, q=q, v=v) == 8 + 10 * 3 + 100 * 1


def test_expressions_read_the_coordinates_of_free_and_ball_joints_by_name(compiled):
    c = compiled("joints: {elbow: {torque: 'q(base.pz) + 10*v(base.wz) + 100*q(base.qw)'}}", FLYING)
    q, v = np.arange(8.0), np.arange(7.0)
    assert value(c, 6, 0.0, q=q, v=v) == 2 + 10 * 2 + 100 * 6
    with pytest.raises(ValueError, match=r"joint base has 7 coordinates: expected one of q\(base.px\), "):
        compiled("joints: {elbow: {torque: q(base)}}", FLYING)


def test_own_q_of_a_ball_joint_does_not_exist(compiled):
    with pytest.raises(ValueError, match=r"s\.yaml:3: joints\.ball\.torque: q needs the name of a joint here: expected "
                                         r"q\(joint\)"):
        compiled("joints: {ball: {torque: -q}}")


def test_prescribed_levels_and_initial_state(compiled):
    c = compiled("""joints:
  leg_1: {prescribe: {acceleration: "0.5*sin(2*t)"}}
  leg_12: {prescribe: {velocity: {sine: {amplitude: 2, frequency: 0.5, phase: 1, offset: 3}}}}
  rail: {prescribe: {position: {quintic: [[-1, 0], [1, 2]]}}}
  ball: {prescribe: {velocity: [t, 1+t, 2]}}
  uni: {prescribe: {velocity: 0}}
initial: {q: {leg_1: 0.25, leg_12: -0.5, uni: [0.1, 0.2]}, v: {leg_1: -1, leg_12: 4.68294197}}
""")
    assert list(c.schedule.level) == [ACCELERATION, VELOCITY, POSITION] + [VELOCITY] * 5
    # a quintic from rest to rest passes its middle with 15/8 of the mean speed (here 1) and no acceleration
    np.testing.assert_allclose(c.q, [0.25, -0.5, 1, 0, 0, 0, 1, 0.1, 0.2], atol=1e-15)
    np.testing.assert_allclose(c.v, [-1, 3 + 2 * math.sin(1), 15 / 8, 0, 1, 2, 0, 0], atol=1e-14)
    t = 0.3
    assert jet(c, c.schedule.signal[LEG_12], t) == pytest.approx(
        (3 + 2 * math.sin(math.pi * t + 1), 2 * math.pi * math.cos(math.pi * t + 1), -2 * math.pi**2 * math.sin(math.pi * t + 1)))
    assert jet(c, c.schedule.signal[BALL + 1], t) == (1.3, 1, 0)
    assert compiled.warnings == ()


def test_pd(compiled):
    c = compiled("""joints:
  leg_1: {torque: {pd: {kp: 50, kd: 5, target: "sin(t)", feedforward: "0.1*q"}}}
  uni: {torque: {pd: {kp: [1, 2], kd: 3, target: [0.1, {spline: [[0, 0], [1, 1]]}]}}}
""")
    s = c.schedule
    assert (s.kp[LEG_1], s.kd[LEG_1]) == (50, 5) and list(s.kp[UNI:]) == [1, 2] and list(s.kd[UNI:]) == [3, 3]
    assert jet(c, s.target[LEG_1], 0.5)[:2] == pytest.approx((math.sin(0.5), math.cos(0.5)))
    assert value(c, LEG_1, 0.0, q=np.full(9, 2.0)) == 0.2
    assert jet(c, s.target[UNI + 1], 0.5)[:2] == pytest.approx((0.5, 1.5))
    assert list(s.target >= 0) == [True] + [False] * 5 + [True] * 2 and list(s.level) == [TORQUE] * 8


def test_a_free_base(compiled):
    c = compiled("""initial: {q: {base: [1, 2, 3, 0, 0, 0.6, 0.8], elbow: 0.5}, v: {base: [1, 2, 3, 4, 5, 6]}}
joints: {base: {torque: [0, 0, 0, 0, 0, "v"]}}
""", FLYING)
    assert list(c.q) == [1, 2, 3, 0, 0, 0.6, 0.8, 0.5] and list(c.v) == [1, 2, 3, 4, 5, 6, 0]
    assert list(c.schedule.q_of_v) == [-1] * 6 + [7]
    assert value(c, 5, 0.0) == 6
    with pytest.raises(ValueError, match="the position of base, a free joint, is prescribed as a pose: expected waypoints, "
                                         "or rpy with three signals and xyz with three"):
        compiled("joints: {base: {prescribe: {position: [0, 0, 0, 0, 0, 0]}}}", FLYING)


def test_initial_values_by_pattern(compiled):
    c = compiled("initial: {q: {'leg_*': 0.5, leg_12: 0.25}}")
    assert list(c.q[:2]) == [0.5, 0.25]


def test_a_quaternion_is_rid_of_rounding_and_that_is_said(compiled):
    c = compiled("initial: {q: {ball: [0, 0, 0.70710678, 0.70710678]}}")
    np.testing.assert_allclose(c.q[3:7], [0, 0, math.sqrt(0.5), math.sqrt(0.5)], rtol=1e-15)
    assert len(compiled.warnings) == 1
    assert "s.yaml:3: initial.q.ball: the quaternion had norm 0.99999999" in str(compiled.warnings[0])
    compiled("initial: {q: {ball: [0, 0, 0.6, 0.8]}}")
    assert compiled.warnings == ()


def test_limits_violated_at_the_start_are_a_warning(compiled):
    compiled("initial: {q: {leg_1: 1.5}}\njoints: {leg_12: {prescribe: {position: -2}}}")
    assert [one.message for one in compiled.warnings] == [
        "position limits are exceeded: leg_1 starts at 1.5 rad, above its limit 1 rad; leg_12 starts at -2 rad, below its limit "
        "-1 rad"]


def test_constant_wrench_is_one_entry_others_one_a_component(compiled):
    c = compiled("""external_forces:
  - {link: c, wrench: [1, 2, 3, 4, 5, 6], point: [0.1, 0.2, 0.3], from: 0.5, until: 1.5}
  - {link: tip, frame: local, wrench: [1, 0, 0, "sin(t)", 0, t], point: [0, 0, 2]}
  - {link: a, wrench: [0, 0, 0, 0, 0, 0]}
""")
    s = c.schedule
    basis, point = s.force_basis.reshape(-1, 6), s.force_point.reshape(-1, 3)
    assert list(s.force_link) == [2, 5, 5, 5] and list(s.force_world) == [1, 0, 0, 0]
    assert list(basis[0]) == [1, 2, 3, 4, 5, 6] and list(point[0]) == [0.1, 0.2, 0.3]
    assert (s.force_from[0], s.force_until[0]) == (0.5, 1.5) and list(s.breaks) == [0.5, 1.5]
    assert list(s.force_from[1:]) == [-math.inf] * 3 and list(s.force_until[1:]) == [math.inf] * 3
    # about the link's origin: p x f = (0, 0, 2) x (sin t, 0, t) = (0, 2 sin t, 0)
    t = 0.4
    total = sum(b * jet(c, k, t)[0] for b, k in zip(basis[1:], s.force_signal[1:], strict=True))
    np.testing.assert_allclose(total, [1, 2 * math.sin(t), 0, math.sin(t), 0, t], atol=1e-15)
    assert not point[1:].any()
    assert c.signal_names[s.force_signal[1]] == "fx of external force 2 on link tip"


def test_actuators(compiled):
    c = compiled("actuators: {rotor1: 5.0, 'rotor*': '4 + q(leg_1)'}")
    s = c.schedule
    basis = s.force_basis.reshape(-1, 6)
    np.testing.assert_allclose(basis[0], [0, -0.2, 0.5, 0, 0, 1], atol=1e-15)      # p x n = (0.2, 0, 0) x z
    np.testing.assert_allclose(basis[1], [0.1, 0, -0.5, 0, 0, 1], atol=1e-15)      # the axis made of unit length
    assert list(s.force_link) == [4, 5] and list(s.force_world) == [0, 0]
    assert jet(c, s.force_signal[0], 0.0)[0] == 5 and jet(c, s.force_signal[1], 0.0, q=np.ones(9))[0] == 5
    assert c.signal_names[s.force_signal[1]] == "thrust of actuator rotor2"


def test_actuators_of_a_robot_without(compiled):
    with pytest.raises(ValueError, match=r"actuators\.rotor1: the robot has no actuators"):
        compiled("actuators: {rotor1: 1}", FLYING)


def test_breaks_are_the_knots_and_windows_inside_the_run(compiled):
    c = compiled("""joints:
  leg_1: {prescribe: {position: {quintic: [[0, 0], [0.30000000000000004, 1], [5, 2]]}}}
  leg_12: {torque: {spline: [[-1, 0], [1, 1], [2, 0]]}}
external_forces:
  - {link: c, wrench: [0, 0, 0, 0, 0, 1], from: 0.3, until: 0.7}
  - {link: c, wrench: [0, 0, 0, 0, 0, t], until: 7}
""")
    s = c.schedule
    assert list(s.breaks) == [0.3, 0.7, 1.0]
    assert s.force_from[0] == 0.3
    # rounding apart is the same time: the piece after 0.3 counts at 0.3, so that a step from there sees its own side
    assert 0.3 in c.signals.breaks and 0.30000000000000004 not in c.signals.breaks


def test_the_last_row_shows_the_motion_and_the_force_that_arrive_there(compiled):
    """Torques of the last row do not jump if a run ends with its waypoints or with a push."""
    c = compiled("""joints:
  leg_1: {prescribe: {position: {spline: [[0, 0], [1, 1], [2, 0]]}}}
external_forces:
  - {link: c, wrench: [0, 0, 0, 0, 0, 1], from: 1, until: 2}
""")
    before, at = (jet(c, c.schedule.signal[LEG_1], t)[2] for t in (2 - 1e-9, 2.0))
    assert at == pytest.approx(before, abs=1e-6) and abs(at) > 1
    assert c.schedule.force_until[0] > 2


def test_merging_and_snapping_times():
    assert list(merge_times(np.array([0.0, 1e-13, 2.0, 1.0, 1.0 + 1e-13, -math.inf, math.inf, 0.5, 3.0]), 2.0)) == [0.5, 1.0]
    assert merge_times(np.empty(0), 2.0).shape == (0,)
    breaks = np.array([0.5, 1.0])
    times = np.array([-math.inf, 0.5 + 1e-13, 0.7, 1.0 - 1e-13, 1.5, math.inf])
    assert list(snap_to_breaks(times, breaks, 2.0)) == [-math.inf, 0.5, 0.7, 1.0, 1.5, math.inf]
    assert list(snap_to_breaks(np.array([0.5 + 1e-13, 3.0]), breaks[:1], 2.0)) == [0.5, 3.0]


def test_csv_by_name_and_by_default(compiled):
    t = np.linspace(0, 2, 41)
    write_trajectory(compiled.folder / "ref.csv", {}, t, [
        ("q.leg_1", "rad", np.sin(t)), ("tau.leg_12", "N m", t), ("tau.rail", "N", 2 * t), ("x", "", t**2),
        ("v.uni.1", "rad/s", t), ("v.uni.2", "rad/s", 1 - t), ("a.ball.wx", "rad/s^2", t), ("f", "N", t)])
    c = compiled("""joints:
  leg_1: {prescribe: {position: {csv: {file: ref.csv}}}}
  leg_12: {torque: {csv: {file: ref.csv}}}
  rail:
    torque:
      pd: {kp: 1, target: {csv: {file: ref.csv, column: "x[m]", interpolation: cubic}}, feedforward: {csv: {file: ref.csv}}}
  ball: {prescribe: {acceleration: [{csv: {file: ref.csv, column: a.ball.wx}}, 0, 0]}}
  uni: {prescribe: {velocity: {csv: {file: ref.csv}}}}
external_forces:
  - {link: c, wrench: [0, 0, 0, 0, 0, {csv: {file: ref.csv, column: f}}]}
""")
    s = c.schedule
    for x in (0.0, 0.777, 2.0):
        # the second derivative of a quintic spline is of fourth order: 0.05^4 = 6e-6
        np.testing.assert_allclose(jet(c, s.signal[LEG_1], x), [math.sin(x), math.cos(x), -math.sin(x)], atol=6e-6)
        assert value(c, LEG_12, x) == pytest.approx(x)
        assert jet(c, s.target[RAIL], x)[:2] == pytest.approx((x**2, 2 * x), abs=1e-12)
        assert value(c, RAIL, x) == pytest.approx(2 * x)
        assert (value(c, UNI, x), value(c, UNI + 1, x)) == pytest.approx((x, 1 - x), abs=1e-12)
        assert jet(c, s.force_signal[0], x)[0] == pytest.approx(x)
    assert c.v[LEG_1] == pytest.approx(1, abs=1e-8) and c.v[UNI + 1] == pytest.approx(1)
    np.testing.assert_allclose(s.breaks, t[1:-1], atol=1e-15)       # of the straight lines


def test_smooth_csv_makes_no_breaks(compiled):
    t = np.linspace(0, 2, 41)
    write_trajectory(compiled.folder / "ref.csv", {}, t, [("q.leg_1", "rad", t)])
    assert compiled("joints: {leg_1: {prescribe: {position: {csv: {file: ref.csv}}}}}").schedule.breaks.shape == (0,)


def test_a_csv_need_cover_only_the_window_of_its_force(compiled):
    write_trajectory(compiled.folder / "ref.csv", {}, [0.5, 1.0], [("f", "N", [0.0, 1.0])])
    force = ("external_forces:\n"
             "  - {{link: c, wrench: [0, 0, 0, 0, 0, {{csv: {{file: ref.csv, column: f}}}}], from: {}, until: 1}}\n")
    c = compiled(force.format(0.5))
    assert jet(c, c.schedule.force_signal[0], 0.75)[0] == 0.5
    with pytest.raises(ValueError, match=r"expected 0\.4 to 1 s, got '0\.5 to 1 s'"):
        compiled(force.format(0.4))


def test_the_stack_is_as_deep_as_the_deepest_program(compiled):
    assert compiled("").stack_size == 3
    assert compiled("joints: {leg_1: {torque: 't+(t+(t+(t+t)))'}}").stack_size == 15


def test_arrays_are_what_the_kernels_were_compiled_for(compiled):
    for c in (compiled(""), compiled("joints: {leg_1: {torque: sin(t)}, leg_12: {torque: {spline: [[0, 0], [1, 1]]}}}")):
        integers = {"kind", "first", "count", "code", "level", "signal", "target", "q_of_v", "force_link", "force_world",
                    "force_signal", "force_actuator", "watch", "link", "path", "integral"}
        poses = c.schedule.poses
        for table in (c.signals._replace(points=c.signals.clocks), c.signals.points,
                      c.schedule._replace(poses=c.schedule.breaks), poses):
            for name, array in table._asdict().items():
                name = name if table is not poses else "signal"
                assert array.dtype == (np.int64 if name in integers else np.float64), name
                assert array.ndim == 1 and array.flags.c_contiguous, name
