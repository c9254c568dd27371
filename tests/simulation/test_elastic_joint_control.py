"""Laws for robots with elastic joints: Spong's equations, the linear equation of the error, torques by differences, and errors.

The reference is plain NumPy: a textbook arm of two links in a vertical plane, and finite differences along motions.
"""
from __future__ import annotations

from math import comb, factorial
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.linalg import expm

import liedyn as ld
from liedyn.analysis.linearize import linearize_scenario
from liedyn.analysis.operating_point import instant
from liedyn.errors import ScenarioError
from liedyn.io.robots.robot_yaml import read_robot_yaml
from liedyn.io.scenarios.scenario_file import read_scenario, to_plain
from liedyn.model.model import build
from liedyn.simulation.control.elastic_joint_control import elastic_joints, rigid_robot
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.run import run_scenario

ROOT = Path(__file__).parents[2]
# Two links in the x-z plane, angles from the vertical; the second motor's joint stands turned and shifted along its axis, and its
# spring turned once more: only the common axis counts.
M1, M2, A1, C1, C2, I1, I2, G = 3.0, 2.0, 0.5, 0.25, 0.2, 0.05, 0.03, 9.81
B, K, REST, DAMPING = np.array([0.4, 0.2]), np.array([300.0, 150.0]), np.array([0.01, -0.02]), np.array([0.5, 0.0])
ROBOT = f"""\
links:
  gear_1: {{}}
  upper: {{mass: {M1}, com: [0, 0, {C1}], inertia: [{I1}, {I1}, 0.001]}}
  gear_2: {{}}
  lower: {{mass: {M2}, com: [0, 0, {C2}], inertia: [{I2}, {I2}, 0.001]}}
joints:
  m1: {{type: revolute, parent: world, child: gear_1, axis: [0, 1, 0], armature: {B[0]}, damping: {DAMPING[0]}}}
  s1: {{type: continuous, parent: gear_1, child: upper, axis: [0, 1, 0], stiffness: {K[0]}, rest: {REST[0]}}}
  m2: {{type: revolute, parent: upper, child: gear_2, axis: [0, 0, -1], armature: {B[1]},
       origin: {{xyz: [0, 0.1, {A1}], rpy: [1.5707963267948966, 0, 0]}}}}
  s2: {{type: continuous, parent: gear_2, child: lower, axis: [0, 1, 0], stiffness: {K[1]}, rest: {REST[1]},
       origin: {{xyz: [0, 0, 0.1], rpy: [-1.5707963267948966, 0, 0]}}}}
"""
MOTION = 'm1: "0.4 + 0.5*sin(3*t)", m2: "0.8*cos(2*t) - 0.3*t"'
SCENARIO = "robot: robot.yaml\nduration: 1\noutput_step: 0.01\n"
POLES = (-12.0, -15.0, -20.0, -30.0)
MOTORS, SPRINGS = [0, 2], [1, 3]


@pytest.fixture
def scenario(tmp_path):
    """Return the path of a scenario whose `control` contains the text."""
    def write(control: str = f"law: feedback_linearization, poles: {list(POLES)}, motion: {{{MOTION}}}", more: str = "",
              robot: str = ROBOT) -> Path:
        (tmp_path / "robot.yaml").write_text(robot)
        (tmp_path / "s.yaml").write_text(SCENARIO + (f"control: {{{control}}}\n" if control else "") + more)
        return tmp_path / "s.yaml"
    return write


def compiled(path):
    s = read_scenario(path)
    model = build(read_robot_yaml(s.robot))
    return compile_schedule(s, model).problem, model


def warnings(path):
    s = read_scenario(path)
    return [str(warning) for warning in compile_schedule(s, build(read_robot_yaml(s.robot))).warnings]


def references(t: float) -> np.ndarray:
    """Return the values (5, 2) that MOTION prescribes, and four derivatives."""
    first = [0.4 * (k == 0) + 0.5 * 3**k * np.sin(3 * t + k * np.pi / 2) for k in range(5)]
    second = [0.8 * 2**k * np.cos(2 * t + k * np.pi / 2) - 0.3 * t * (k == 0) - 0.3 * (k == 1) for k in range(5)]
    return np.column_stack([first, second])


# Spong's equations by hand ----------------------------------------------------------------------------------------------
def mass_of(q) -> np.ndarray:
    x, far = M2 * A1 * C2 * np.cos(q[1]), I2 + M2 * C2**2
    return np.array([[I1 + M1 * C1**2 + M2 * A1**2 + far + 2 * x, far + x], [far + x, far]])


def bias_of(q, v) -> np.ndarray:
    """Return h = C v + gravity."""
    x, outer = M2 * A1 * C2 * np.sin(q[1]), -M2 * C2 * G * np.sin(q[0] + q[1])
    inner = -(M1 * C1 + M2 * A1) * G * np.sin(q[0])
    return np.array([-x * (2 * v[0] * v[1] + v[1]**2) + inner + outer, x * v[0]**2 + outer])


def links_of(q, v):
    """Return q and v of the links, the forces of the springs and their rates, from the robot's state."""
    q, v = np.asarray(q), np.asarray(v)
    return q[MOTORS] + q[SPRINGS], v[MOTORS] + v[SPRINGS], -K * (q[SPRINGS] - REST), -K * v[SPRINGS]


def accelerations(q, v, force) -> np.ndarray:
    return np.linalg.solve(mass_of(q), force - bias_of(q, v))


def jerks(q, v, force, rate, h: float = 1e-3) -> np.ndarray:
    """Return d/dt of the accelerations along the motion, by differences of order six."""
    a = accelerations(q, v, force)

    def at(s):
        return accelerations(q + v * s + a * s**2 / 2, v + a * s, force + rate * s)
    return sum(w * (at(k * h) - at(-k * h)) for k, w in ((1, 45), (2, -9), (3, 1))) / (60 * h)


def snap_of_inverse(q, v, a, jerk, u, h: float = 2e-3) -> np.ndarray:
    """Return the second time derivative of M a + h along q(t), by differences of order six."""
    def at(s):
        x = [np.array([q, v, a, jerk, u])[k:] for k in range(3)]
        q_, v_, a_ = (sum(one * s**k / factorial(k) for k, one in enumerate(part)) for part in x)
        return mass_of(q_) @ a_ + bias_of(q_, v_)
    return (-490 * at(0.0) + sum(w * (at(k * h) + at(-k * h)) for k, w in ((1, 270), (2, -27), (3, 2)))) / (180 * h**2)


def test_the_equations_of_motion_are_those_of_spong(scenario, rng=np.random.default_rng(0)):                  # noqa: B008
    model = build(read_robot_yaml(scenario().with_name("robot.yaml")))
    for _ in range(5):
        q, v, tau = rng.normal(size=4), rng.normal(size=4), np.zeros(4)
        tau[MOTORS] = rng.normal(size=2) * 10
        a = ld.forward_dynamics(model, q, v, tau)
        links, rates, force, _ = links_of(q, v)
        np.testing.assert_allclose(B * a[MOTORS] + DAMPING * v[MOTORS] + force, tau[MOTORS], atol=1e-11)
        np.testing.assert_allclose(mass_of(links) @ (a[MOTORS] + a[SPRINGS]) + bias_of(links, rates), force, atol=1e-11)


def test_the_rigid_robot_is_the_same_without_rotors_and_springs(scenario):
    model = build(read_robot_yaml(scenario().with_name("robot.yaml")))
    joints = elastic_joints(model)
    assert [(one.motor, one.spring) for one in joints] == [("m1", "s1"), ("m2", "s2")]
    rigid = rigid_robot(model, joints)
    assert rigid.joint_names == ("m1", "m2") and rigid.link_names == ("upper", "lower") and not rigid.has_passive_forces
    q, v = np.array([0.3, -0.8]), np.array([1.0, 2.0])
    np.testing.assert_allclose(ld.mass_matrix(rigid, q), mass_of(q), atol=1e-14)
    np.testing.assert_allclose(ld.inverse_dynamics(rigid, q, v, np.zeros(2)), bias_of(q, v), atol=1e-13)


# the law ----------------------------------------------------------------------------------------------------------------
def test_the_torque_is_what_differences_of_inverse_dynamics_ask_for(scenario):
    c, _ = compiled(scenario())
    problem, poly, t = c, np.poly(POLES), 0.3
    q, v = np.array([0.5, 0.03, -0.4, -0.05]), np.array([0.7, -0.1, -1.2, 0.3])
    links, rates, force, rate = links_of(q, v)
    a, jerk = accelerations(links, rates, force), jerks(links, rates, force, rate)
    r = references(t)
    u = r[4] + sum(poly[k] * (r[4 - k] - x) for k, x in ((1, jerk), (2, a), (3, rates), (4, links)))
    bend = snap_of_inverse(links, rates, a, jerk, u) / K
    tau = instant(problem, t, q, v).tau
    # differences: rounding of forces of 30 N m over h^2, beside 1e-8 of the step itself, times B / K
    np.testing.assert_allclose(tau[MOTORS], B * (a + bend) + force + DAMPING * v[MOTORS], rtol=1e-8)
    assert (tau[SPRINGS] == 0).all()


def test_computed_torque_takes_the_motors_for_the_links(scenario):
    c, _ = compiled(scenario(f"law: computed_torque, poles: [-10, -30], motion: {{{MOTION}}}"))
    q, v, t = np.array([0.5, 0.03, -0.4, -0.05]), np.array([0.7, -0.1, -1.2, 0.3]), 0.3
    r = references(t)
    a = r[2] + 40 * (r[1] - v[MOTORS]) + 300 * (r[0] - q[MOTORS])
    expected = (mass_of(q[MOTORS]) + np.diag(B)) @ a + bias_of(q[MOTORS], v[MOTORS]) + DAMPING * v[MOTORS]
    np.testing.assert_allclose(instant(c, t, q, v).tau[MOTORS], expected, rtol=1e-12)


def test_a_torque_of_a_joint_is_added(scenario):
    tau = []
    for more in ("", "joints: {m1: {torque: 3}, s2: {torque: 0.5}}\n"):
        c, _ = compiled(scenario(more=more))
        tau.append(instant(c, 0.0, c.q, c.v).tau)
    np.testing.assert_allclose(tau[1] - tau[0], [3, 0, 0, 0.5], atol=1e-10)


def test_it_starts_where_the_motion_does(scenario):
    """Links start at the reference with its velocity, acceleration and jerk, unless `initial` is given."""
    c, _ = compiled(scenario())
    links, rates, force, rate = links_of(c.q, c.v)
    found = [links, rates, accelerations(links, rates, force), jerks(links, rates, force, rate)]
    np.testing.assert_allclose(found, references(0.0)[:4], rtol=1e-8, atol=1e-8)
    given, _ = compiled(scenario(more="initial: {q: {m1: 0.1}, v: {s2: 0.2}}\n"))
    assert given.q[0] == 0.1 and given.v[3] == 0.2
    assert (given.q[1:] == c.q[1:]).all() and (given.v[:3] == c.v[:3]).all()


# closed loop ------------------------------------------------------------------------------------------------------------
def companion(poles) -> np.ndarray:
    A = np.eye(len(poles), k=1)
    A[-1] = -np.poly(poles)[:0:-1]
    return A


def test_the_error_obeys_its_linear_equation(scenario):
    """From an initial error, each joint follows the matrix exponential, although the arm is not linear."""
    result = run_scenario(scenario(more="initial: {q: {m1: 0.6, s2: -0.03}, v: {m1: -1, m2: 0.5}}\n"), ["integrator.step=5e-4"])
    links, rates, force, rate = links_of(result.q[0], result.v[0])
    start = np.array([links, rates, accelerations(links, rates, force), jerks(links, rates, force, rate)]) - references(0.0)[:4]
    expected = np.array([expm(companion(POLES) * t) @ start for t in result.t])[:, 0]
    assert np.abs(expected).max() > 0.2
    # differences give the first jerk to about 1e-8 rad/s^3; the integrator's error is about 1e-9
    np.testing.assert_allclose(result.tracking.error, expected, atol=1e-7)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "DOP853"])
def test_without_an_initial_error_there_is_none(scenario, method):
    given = [] if method == "rk4" else ["integrator.rtol=1e-11", "integrator.atol=1e-13"]
    result = run_scenario(scenario(), [f"integrator.method={method}", *given])
    assert result.tracking.names == ("m1", "m2") and result.tracking.units == ("rad", "rad")
    np.testing.assert_allclose(result.tracking.reference, [references(t)[0] for t in result.t], atol=1e-15)
    np.testing.assert_array_equal(result.tracking.link, result.q[:, MOTORS] + result.q[:, SPRINGS])
    assert result.check["tracking_error"] == np.abs(result.tracking.error).max() < 1e-9
    assert result.check["inverse_dynamics_residual"] < 1e-12 and result.warnings == ()


def test_taking_the_joints_for_rigid_costs_degrees(scenario):
    result = run_scenario(scenario(), ["control.law=computed_torque", "control.bandwidth=20"])
    assert 0.02 < result.check["tracking_error"] < 0.3 and " rad (" in result.summary.partition(", maximum tracking error ")[2]
    motors = result.q[:, MOTORS] - result.tracking.reference
    assert np.abs(motors).max() < result.check["tracking_error"]                        # the motors do follow


def test_linearized_the_closed_loop_has_the_poles_that_were_asked_for(scenario):
    """At a constant pose: eigenvalues of a moving one have no meaning."""
    path = scenario(f"law: feedback_linearization, poles: {list(POLES)}, motion: {{m1: 0.4, m2: -0.7}}")
    closed = linearize_scenario(path).system
    np.testing.assert_allclose(np.sort(closed.eigenvalues.real), np.sort(np.repeat(POLES, 2)), rtol=1e-4)
    assert np.abs(closed.eigenvalues.imag).max() < 1e-2                # double ones scatter by a root of the rounding
    opened = linearize_scenario(path, open_loop=True).system
    assert opened.eigenvalues.real.max() > 0.1                         # the arm would fall


# the scenario that comes with it -----------------------------------------------------------------------------------------
def test_the_arm_follows_until_it_is_pushed_and_finds_back():
    path = ROOT / "configs" / "elastic_arm.yaml"
    result, rigid = run_scenario(path), run_scenario(path, ["control.law=computed_torque"])
    error, t = np.abs(result.tracking.error), result.t
    assert error[t < 3].max() < 1e-10 and error[(t > 3) & (t < 3.3)].max() > 1e-2 and error[-1].max() < 1e-8
    assert np.abs(rigid.tracking.error)[t < 3].max(axis=0).min() > 1e-2
    late = (t > 3.2) & (t < 3.6)                                       # (c0 + c1 s + c2 s^2 + c3 s^3) exp(-20 s)
    s = t[late] - 3.1
    for e in result.tracking.error[late].T:
        scaled = e * np.exp(20 * s)
        fit = np.polynomial.Polynomial.fit(s, scaled, 3)(s)
        assert np.abs(fit - scaled).max() < 1e-6 * np.abs(scaled).max()


# scenario files ------------------------------------------------------------------------------------------------------------
def test_it_reads_back_what_it_writes(scenario, tmp_path):
    for text in ("law: computed_torque, bandwidth: 20, motion: {m1: 0.1, 'm*': {sine: {amplitude: 1, frequency: 2}}}",
                 f"law: feedback_linearization, poles: {list(POLES)}, motion: {{{MOTION}}}"):
        s = read_scenario(scenario(text))
        (tmp_path / "again.yaml").write_text(yaml.safe_dump(to_plain(s, tmp_path), sort_keys=False))
        assert read_scenario(tmp_path / "again.yaml") == s


def test_overrides_choose_between_poles_and_bandwidth(scenario):
    control = read_scenario(scenario(), ["control.bandwidth=9"]).control
    assert control.bandwidth == 9 and control.poles == ()
    control = read_scenario(scenario(), ["control.bandwidth=9", "control.poles=[-1,-2,-3,-4]"]).control
    assert control.bandwidth is None and control.poles == (-1, -2, -3, -4)


def test_gains_are_binomial_for_a_bandwidth(scenario):
    c, _ = compiled(scenario(f"law: feedback_linearization, bandwidth: 3, motion: {{{MOTION}}}"))
    np.testing.assert_allclose(c.law.gains, [comb(4, k) * 3.0**(4 - k) for k in range(4)], rtol=1e-14)


def test_a_motion_with_corners_is_run_with_a_note(scenario):
    text = "law: feedback_linearization, bandwidth: 20, motion: {m1: {quintic: [[0, 0], [0.5, %s], [1, 0]]}, m2: 0}"
    note, = warnings(scenario(text % 1e-9))                       # judged by the motion, not by 1 rad/s^3
    assert "the jerk of the motion of m1 jumps" in note
    text = text % 1
    note, = warnings(scenario(text))
    assert "the jerk of the motion of m1 jumps at t = 0.5 s. An elastic joint cannot follow it" in note
    assert "s.yaml:4: control" in note
    assert warnings(scenario(text.replace("feedback_linearization", "computed_torque"))) == []


def test_a_smooth_motion_of_many_pieces_has_no_jumps(scenario, tmp_path):
    """Each piece of a spline of samples is compared with the previous one."""
    t = np.linspace(0.0, 1.0, 11)
    np.savetxt(tmp_path / "m.csv", np.column_stack([t, 0.3 * t - 0.5 * t**2 + t**4]), delimiter=",", header="t[s],x", comments="")
    motion = "{csv: {file: m.csv, column: x, interpolation: quintic}}"
    assert warnings(scenario(f"law: feedback_linearization, bandwidth: 20, motion: {{m1: {motion}, m2: 0}}")) == []


CONTROL = "law: feedback_linearization, bandwidth: 20, motion: {m1: 0, m2: 0}"
BAD_CONTROL = {
    "no law": ("motion: {m1: 0}, bandwidth: 2", "the key law is missing: expected one of feedback_linearization, "
                                                "computed_torque, task_space, slotine_li, gravity_compensation, state_feedback"),
    "another law": (CONTROL.replace("feedback", "feedbak"), "did you mean feedback_linearization?"),
    "no motion": ("law: computed_torque, bandwidth: 2", "the key motion is missing"),
    "an unknown key": (CONTROL + ", gain: 3", "gain does not apply to the law feedback_linearization: expected motion, "
                                              "bandwidth, poles"),
    "no poles": ("law: computed_torque, motion: {m1: 0, m2: 0}", "takes exactly one of bandwidth, poles: got neither"),
    "both": (CONTROL + ", poles: [-1, -2, -3, -4]", "takes exactly one of bandwidth, poles: got bandwidth and poles"),
    "a bandwidth of zero": (CONTROL.replace("20", "0"), "out of range: expected a number > 0, got 0"),
    "three poles": (CONTROL.replace("bandwidth: 20", "poles: [-1, -2, -3]"), "a list of 4 poles for feedback_linearization"),
    "four for computed torque": ("law: computed_torque, motion: {m1: 0}, poles: [-1, -2, -3, -4]", "a list of 2 poles"),
    "an unstable pole": (CONTROL.replace("bandwidth: 20", "poles: [-1, -2, 3, -4]"),
        "unstable pole: expected a negative pole [1/s], got 3"),
    "a joint left out": (CONTROL.replace(", m2: 0", ""), "the motion of m2 is missing"),
    "a spring": (CONTROL.replace("m2", "s2"), "s2 is a spring; the motion of its link is named by the motor's joint: "
                                              "expected m2, got 's2'"),
    "an unknown joint": (CONTROL.replace("m2", "m3"), "no such motor's joint: got 'm3'"),
    "a motion of the state": (CONTROL.replace("m2: 0", 'm2: "q"'), "this signal is a function of time only"),
    "no fourth derivative": (CONTROL.replace("m2: 0", 'm2: "sqrt(t)"'), "m2 does not have four finite derivatives at t = 0"),
    "a jump": (CONTROL.replace("m2: 0", "m2: {quintic: [[0, 0], [0.5, 1, 2]]}"), "would start or stop with a velocity jump"),
    "straight lines": (CONTROL.replace("m2: 0", "m2: {csv: {file: m.csv, column: x, interpolation: linear}}"), "no acceleration"),
}


@pytest.mark.parametrize(("control", "message"), BAD_CONTROL.values(), ids=BAD_CONTROL)
def test_bad_values_are_told_with_their_place(scenario, control, message):
    path = scenario(control)
    path.with_name("m.csv").write_text("t[s],x\n0,0\n1,1\n2,1\n")
    with pytest.raises(ScenarioError) as caught:
        compiled(path)
    assert message in str(caught.value)
    assert "s.yaml:4: control" in str(caught.value)


BAD_ROBOT = {
    "a joint without spring": (", stiffness: 150.0", "", "the law requires that all joints are elastic; joint m2 is not, "
                               "because joint s2 behind it has no stiffness"),
    "damping of the spring": (", stiffness: 150.0", ", stiffness: 150.0, damping: 1",
        "its spring s2 has damping, friction or armature: expected a motor's joint with armature and, behind a link without "
        "mass, a joint about the same axis with stiffness"),
    "a motor with a spring": (f"damping: {DAMPING[0]}", "stiffness: 3", "joint m1 is not, because it has a spring"),
    "mass between": ("gear_1: {}", "gear_1: {mass: 1, inertia: [1, 1, 1]}", "its link gear_1 has mass, inertia or an act"),
    "another axis": ("child: gear_2, axis: [0, 0, -1]", "child: gear_2, axis: [1, 0, 0]", "joint s2 behind it has another"),
    "opposite": ("child: gear_2, axis: [0, 0, -1]", "child: gear_2, axis: [0, 0, 1]", "joint s2 behind it has another axis"),
    "a ball": ("type: revolute, parent: world, child: gear_1, axis: [0, 1, 0], armature: 0.4, damping: 0.5",
               "type: ball, parent: world, child: gear_1, armature: 0.4", "joint m1 is not, because it is of type ball"),
    "a loop": ("joints:\n", "couplings: {belt: {terms: {m1: 1, m2: 1}}}\njoints:\n",
        "robots with loops or couplings: got 'belt'"),
    "floating": ("links:\n", "base: floating\nlinks:\n  body: {mass: 1, inertia: [1, 1, 1]}\n",
                 "joint base is not, because it is of type free: expected a motor's joint with armature and, behind a link "
                 "without mass, a joint about the same axis with stiffness"),
}


@pytest.mark.parametrize(("old", "new", "message"), BAD_ROBOT.values(), ids=BAD_ROBOT)
def test_robots_that_the_law_is_not_for_are_refused_by_name(scenario, old, new, message):
    assert old in ROBOT
    robot = ROBOT.replace(old, new)
    if "floating" in new:
        robot = robot.replace("parent: world", "parent: body")
    with pytest.raises(ScenarioError) as caught:
        compiled(scenario(CONTROL, robot=robot))
    assert message in str(caught.value) and "s.yaml:4: control" in str(caught.value)


def test_branching_behind_a_motor_is_refused(scenario):
    robot = ROBOT.replace("joints:\n", "joints:\n  extra: {type: revolute, parent: gear_1, child: fin, axis: [1, 0, 0]}\n")
    robot = robot.replace("links:\n", "links:\n  fin: {mass: 1, inertia: [1, 1, 1]}\n")
    with pytest.raises(ScenarioError, match="joint m1 is not, because its link gear_1 carries 2 joints"):
        compiled(scenario(CONTROL, robot=robot))


def test_prescribed_joints_and_passive_false_are_refused(scenario):
    with pytest.raises(ScenarioError, match=r"joint s1 is prescribed, but control drives it \(a torque in `joints` is added"):
        compiled(scenario(CONTROL, more="joints: {s1: {prescribe: {velocity: 0}}}\n"))
    with pytest.raises(ScenarioError, match="passive: false switches off the springs of the elastic joints: expected "
                                            "passive: true"):
        compiled(scenario(CONTROL, more="passive: false\n"))
