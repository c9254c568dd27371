"""Tendons over joints as inputs: their forces are constant columns, like torques on these joints, wherever thrusts act."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code
from liedyn.analysis.trajectory_dynamics import higher_order_along
from liedyn.errors import ArgumentError, ModelError, TrajectoryError, UsageError
from liedyn.simulation.control.thrusts import thrust_columns, thrust_entries

FINGER = Path(__file__).parents[2] / "robots" / "tendon_finger.yaml"
ARMS = np.array([[0.01, 0.007, 0.004], [-0.009, -0.004, -0.003]])
# joints that turn, slide and screw, with origins and axes of all directions, a fixed joint between, on a floating base
MIXED = """
base: floating
links: {a: {mass: 2, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}, c: {}, d: {mass: 1, inertia: [1, 1, 1]},
        e: {mass: 1, inertia: [1, 1, 1]}, f: {mass: 1, inertia: [1, 1, 1]}}
joints:
  turn: {type: continuous, parent: a, child: b, axis: [1, 2, -1], origin: {xyz: [0.3, 0.1, -0.2], rpy: [0.4, -1.1, 0.7]}}
  weld: {type: fixed, parent: b, child: c, origin: {xyz: [0.3, -0.4, 0.2], rpy: [1.4, 0.1, -0.7]}}
  slide: {type: prismatic, parent: c, child: d, axis: [0.3, 1, -1], origin: {xyz: [-0.3, 0.5, 0.2], rpy: [0.2, 1.3, 0.5]}}
  nut: {type: helical, pitch: 0.3, parent: d, child: e, axis: [1, 1, 0], origin: {xyz: [0.1, 0.2, 0.3], rpy: [0.3, 0.1, 0]}}
  screw: {type: screws, screws: [[0.4, -1.2, 0.7, 0.5, 0.3, -0.9]], parent: a, child: f, origin: {xyz: [0, 0.4, 1]}}
actuators:
  all: {joints: {turn: 0.3, slide: -0.7, nut: 1.2, screw: -0.4}}
  thruster: {link: f, position: [1, 2, 3], axis: [1, 0, 1], torque_ratio: 0.1}
  slider: {joints: {slide: 2}}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A heavy finger, whose motion needs no short steps."""
    path = tmp_path_factory.mktemp("robots") / "finger.yaml"
    path.write_text(FINGER.read_text().replace("density: 1100", "density: 110000"))
    return ld.load(path)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    path = tmp_path_factory.mktemp("robots") / "mixed.yaml"
    path.write_text(MIXED)
    return ld.load(path)


def scenario(model: ld.Model, **keys) -> dict:
    return {"robot": str(model.source), "duration": 0.05, "output_step": 0.01, "integrator": {"method": "rk4", "step": 0.01},
            "initial": {"q": {"mcp": 0.3, "pip": 0.2}}} | keys


def test_wrenches_of_a_tendon_are_forces_on_its_joints(mixed):
    """At any configuration, the wrenches on links, constant in their frames, have the power of the forces on the joints."""
    rng, expected = np.random.default_rng(0), np.zeros((mixed.nv, 2))
    for column, joints in enumerate(({"turn": 0.3, "slide": -0.7, "nut": 1.2, "screw": -0.4}, {"slide": 2.0})):
        for name, factor in joints.items():
            expected[mixed.v_index(name), column] = factor
    for _ in range(3):
        q = ld.integrate(mixed, mixed.neutral(), rng.standard_normal(mixed.nv))
        forces = np.zeros((mixed.nv, 3))
        for j, link, wrench in thrust_entries(mixed, range(3)):
            forces[:, j] += ld.jacobian(mixed, q, mixed.link_names[link]).T @ wrench
        np.testing.assert_allclose(forces, thrust_columns(mixed, q), atol=1e-14)
        np.testing.assert_array_equal(thrust_columns(mixed, q)[:, [0, 2]], expected)


def test_rollouts_have_the_motion_of_the_torques(mixed):
    """Thrusts u move the robot as tau = B u; they are not part of tau, of joints that move freely or by a prescribed motion."""
    rng = np.random.default_rng(1)
    q0, v0 = ld.integrate(mixed, mixed.neutral(), rng.standard_normal(mixed.nv)), rng.standard_normal(mixed.nv)
    u, prescribed = np.array([3.0, 0.0, -2.0]), np.arange(mixed.nv) == mixed.v_index("turn").start
    B = thrust_columns(mixed, q0)
    for mask in (None, prescribed):
        pulled, driven = (ld.rollout(mixed, q0, v0, tau, dt=1e-3, steps=5, prescribed=mask, forces=True)
                          for tau in (np.r_[np.zeros(mixed.nv), u], B @ u))
        np.testing.assert_allclose(pulled.q, driven.q, atol=1e-14)
        np.testing.assert_allclose(pulled.a, driven.a, atol=1e-12)
        free = ~prescribed if mask is not None else prescribed | True
        np.testing.assert_array_equal(pulled.tau[:, free], 0.0)
        np.testing.assert_allclose(pulled.tau[:, ~free] + (B @ u)[~free], driven.tau[:, ~free], atol=1e-12)
        np.testing.assert_array_equal(pulled.thrusts, np.tile(u, (6, 1)))


def test_scenarios_have_the_motion_of_the_torques(model):
    """Constants, signals of the state, and limits; columns and checks."""
    fine = {"integrator": {"method": "rk4", "step": 0.001}}
    run = ld.run_scenario(scenario(model, actuators={"flexor": "20 - 10*q(mcp)", "extensor": -2}, saturate=True, **fine))
    expected = np.c_[20 - 10 * run.q[:, 0], np.zeros(len(run.t))]                 # the extensor only pulls
    np.testing.assert_allclose(run.thrusts, expected, atol=1e-12)
    assert [name for name, *_ in run.columns if name.startswith("thrust.")] == ["thrust.flexor", "thrust.extensor"]
    torques = ld.run_scenario(scenario(model, joints={
        joint: {"torque": f"{arm}*(20 - 10*q(mcp))"} for joint, arm in zip(model.joint_names, ARMS[0], strict=True)}, **fine))
    np.testing.assert_allclose(run.q, torques.q, atol=1e-13)
    np.testing.assert_allclose(run.tau, 0.0, atol=0)
    assert run.check["energy_balance_relative"] < 1e-8 and run.check["inverse_dynamics_residual"] < 1e-12


@pytest.fixture(scope="module")
def system(model):
    return ld.linearize_scenario({"robot": str(model.source), "duration": 1, "initial": {"q": {"mcp": 0.3, "pip": 0.2}},
                                  "actuators": {"flexor": 3}}, inputs="thrust.*")


@pytest.fixture(scope="module")
def gain(system):
    return system.system.lqr({"q.*": 1, "v.*": 0.01}, 0.1)


def test_columns_of_the_linear_model(model, system):
    """B is M^-1 times the lever arms; the closed loop and its limits agree with differences."""
    np.testing.assert_allclose(system.system.B[3:], np.linalg.solve(ld.mass_matrix(model, system.here.q), ARMS.T), rtol=1e-10)
    np.testing.assert_array_equal(system.system.B[:3], 0.0)
    assert list(system.system.inputs) == ["thrust.flexor", "thrust.extensor"]
    law = {"law": "state_feedback", "gain": {"thrust.flexor": {"q.mcp": 9, "v.dip": 0.2}, "thrust.extensor": {"q.pip": -4}},
           "setpoint": {"q": {"mcp": 0.1}}}
    for limits in ({}, {"saturate": {"thrust.extensor": [4, 5]}}):
        closed = ld.linearize_scenario(scenario(model, actuators={"flexor": "3 + q(pip)"}, control=law, **limits), verify=True)
        assert max(x.excess for x in closed.differences.values()) < 1e-9
    assert not np.allclose(closed.system.A[3:, :3], system.system.A[3:, :3])


def test_feedback_of_scenarios_rollouts_and_controllers_is_the_same(model, gain):
    law = {"law": "state_feedback", "gain": gain.by_name, "setpoint": {}}
    run = ld.run_scenario(scenario(model, control=law))
    hold = run.thrusts[0] + gain.matrix @ np.r_[run.q[0], run.v[0]]                # of the setpoint
    feedback = ld.Feedback.by_name(model, gain.by_name, model.neutral())
    with generated_code():
        many = ld.rollout(model, [run.q[0]] * 2, np.zeros(3), np.r_[np.zeros(3), hold], dt=0.01, steps=5, feedback=feedback,
                          forces=True)
        linear = many.linearize()
    for name in ("q", "v", "thrusts"):
        np.testing.assert_allclose(getattr(many, name)[0], getattr(run, name), atol=1e-11)
    u, h = np.r_[np.zeros(3), hold], 1e-4
    ends = [ld.rollout(model, run.q[0], np.zeros(3), u + change * np.eye(5)[4], dt=0.01, steps=1, feedback=feedback)
            for change in (h, -h)]
    np.testing.assert_allclose(linear.B[0, 0, 3:, 4], (ends[0].v[-1] - ends[1].v[-1]) / (2 * h), rtol=1e-6)
    sampled = scenario(model, sampling={"rate": 100})
    by_law = ld.run_scenario(sampled | {"control": law})
    by_function = ld.run_scenario(sampled, controller=lambda t, q, v: dict(zip(
        gain.rows, hold - gain.matrix @ np.r_[q, v], strict=True)))
    np.testing.assert_allclose(by_function.q, by_law.q, atol=1e-12)
    np.testing.assert_allclose(by_function.thrusts, by_law.thrusts, atol=1e-10)


def test_files_and_attached_robots_keep_tendons(model, tmp_path):
    ld.save(model, tmp_path / "written.yaml")
    assert ld.load(tmp_path / "written.yaml").description.actuators == model.description.actuators
    base = ld.Robot("base", [ld.Link("plate", mass=1, inertia=[1, 1, 1])], [])
    both = ld.attach(base, model, parent="plate", prefix="left_").description
    assert both.actuators[0].joints == (("left_mcp", 0.01), ("left_pip", 0.007), ("left_dip", 0.004))
    assert both.actuators[0].link == ""


def test_variants_in_which_wrenches_differ_are_refused(mixed):
    """A revolute joint pulls on its parent by a moment, which lengths do not change."""
    q0, u = mixed.neutral(), np.r_[np.zeros(mixed.nv), 1.0, 0.0, 0.0]
    moved = ld.Variants(mixed, {"origin.slide.vx": [0.0, 0.1]})
    with pytest.raises(UsageError, match="the origin of joint slide varies, on which the wrenches of tendon all depend"):
        ld.rollout(moved, q0, np.zeros(mixed.nv), u, dt=1e-3, steps=1)
    for axis in ("vx", "vz"):
        turned = ld.Variants(mixed, {f"screw.slide.{axis}": [1.0, 1.5]})
        with pytest.raises(UsageError, match="the axis of joint slide varies"):
            ld.rollout(turned, q0, np.zeros(mixed.nv), u, dt=1e-3, steps=1)
    first, *others = mixed.description.actuators
    for actuators in ((replace(first, joints=(("slide", 9.0),)), *others), others):
        other = ld.build(replace(mixed.description, actuators=actuators))
        with pytest.raises(UsageError, match="robot 1 of the variants has other actuators than robot 0"):
            ld.rollout(ld.Variants([mixed, other]), q0, np.zeros(mixed.nv), u, dt=1e-3, steps=1)
    longer = ld.Variants(ld.load(FINGER), {"origin.pip.vz": [0.0, 0.01]})
    pulled, driven = (ld.rollout(longer, np.zeros(3), np.zeros(3), tau, dt=1e-3, steps=3)
                      for tau in (np.r_[np.zeros(3), 5.0, 0.0], 5.0 * ARMS[0]))
    np.testing.assert_allclose(pulled.q, driven.q, atol=1e-15)


def test_a_thrust_beyond_limits_that_do_not_act_is_a_warning(model):
    run = ld.run_scenario(scenario(model, actuators={"flexor": 70.0, "extensor": -1e-3}))
    assert [w.message for w in run.warnings if w.message.startswith("thrust limits")] == [
        "thrust limits are exceeded: thrust.extensor from t = 0 s (worst -0.001 N at t = 0 s, limit 0 N), thrust.flexor from "
        "t = 0 s (worst 70 N at t = 0 s, limit 60 N); limits are not enforced (saturate: true enforces them)"]
    run = ld.run_scenario(scenario(model, actuators={"flexor": 70.0}, saturate=True))
    assert "force-limited" in {w.code for w in run.warnings}
    assert not any(w.message.startswith("thrust limits") for w in run.warnings)


def test_recorded_thrusts_act_without_columns_of_wrenches(model, tmp_path):
    """Columns fext of runs contain the wrenches of thrusts. Where they are missing, the thrusts are taken."""
    run = ld.run_scenario(scenario(model, actuators={"flexor": "3+sin(9*t)", "extensor": 1.0}))
    run.save(tmp_path / "run")
    file = ld.read_trajectory(tmp_path / "run" / "trajectory.csv")
    thrusts = replace(file, columns={name: x for name, x in file.columns.items() if not name.startswith("fext.")})
    for trajectory in (file, thrusts):
        motion = ld.motion_of(model, trajectory)
        np.testing.assert_allclose(ld.inverse_dynamics(model, motion.q, motion.v, motion.a, f_ext=motion.f_ext), 0.0, atol=1e-11)
    with pytest.raises(TrajectoryError, match="time derivatives require the wrenches of thrusts"):
        higher_order_along(model, thrusts, 1, of="inverse")
    with pytest.raises(TrajectoryError, match=r"no actuator of this column.*did you mean thrust.flexor"):
        ld.motion_of(model, replace(thrusts, columns=thrusts.columns | {"thrust.flexors": thrusts.t}))


def test_fixed_joints_leave_a_tendon(model):
    """Its force on a fixed joint is an internal one of a body."""
    fixed = ld.fix_joints(model, {"pip": 0.4})
    flexor, _ = fixed.description.actuators
    assert flexor.joints == (("mcp", 0.01), ("dip", 0.004))
    q, f = np.array([0.3, 0.4, 0.1]), np.array([30.0, 2.0])
    a, _ = ld.hybrid_dynamics(model, q, np.zeros(3), np.zeros(3), ARMS.T @ f, np.array([False, True, False]))
    tau = thrust_columns(fixed, q[[0, 2]]) @ f
    np.testing.assert_allclose(ld.forward_dynamics(fixed, q[[0, 2]], np.zeros(2), tau), a[[0, 2]], rtol=1e-12)
    assert ld.fix_joints(model, dict.fromkeys(("mcp", "pip", "dip"), 0.0)).description.actuators == ()


@pytest.mark.parametrize(("actuator", "parts"), [
    (ld.Actuator("t", joints={"mpc": 1}), ('actuator "t", joints: unknown joint', "'mpc'", "did you mean mcp")),
    (ld.Actuator("t", joints={"base": 1}), ("joints with one coordinate, and base is of type ball",)),
    (ld.Actuator("t", joints={"mcp": np.nan}), ("coefficient of mcp",)),
    (ld.Actuator("t", joints={"mcp": 0}), ("the tendon moves no joint",)),
    (ld.Actuator("t", joints=[("mcp", 1), ("mcp", 2)]), ("two terms of a joint", "one factor for each joint")),
    (ld.Actuator("t", joints={"mcp": 1}, torque_ratio=0.1), ("torque_ratio does not apply to a tendon", "joints and limits")),
    (ld.Actuator("t", "middle", joints={"mcp": 1}), ("a thruster on a link, or a tendon over joints", "one of them")),
    (ld.Actuator("t"), ("the actuator is not on a link", "or joints of a tendon"))])
def test_errors_name_what_a_tendon_needs(model, actuator, parts):
    robot = model.description
    robot = replace(robot, joints=(*robot.joints, ld.Joint("base", "ball", "distal", "tip")), actuators=(actuator,),
                    links=(*robot.links, ld.Link("tip", mass=1, inertia=[1, 1, 1])))
    with pytest.raises(ModelError) as error:
        ld.build(robot)
    assert all(part in str(error.value) for part in parts)


@pytest.mark.parametrize("joints", [["mcp"], "mcp", [("mcp", 1, 2)], None])
def test_joints_of_another_form_are_named(joints):
    with pytest.raises(ArgumentError, match=r"Actuator: joints must be \{joint: factor\}"):
        ld.Actuator("t", joints=joints)


def test_setpoints_are_held_where_a_joint_of_the_tendons_follows_another(model, tmp_path):
    """The force on the follower acts on its driver. Two thrusts hold two independent joints at rest anywhere."""
    *others, dip = model.description.joints
    robot = ld.build(replace(model.description, joints=(*others, replace(dip, mimic=ld.Mimic("pip", 0.6)))))
    ld.save(robot, tmp_path / "coupled.yaml")
    rest = {"mcp": 0.4, "pip": 0.7}
    law = {"law": "state_feedback", "gain": {"thrust.flexor": {"q.mcp": 9}, "thrust.extensor": {"q.pip": -4}},
           "setpoint": {"q": rest}}
    run = ld.run_scenario(scenario(robot, robot=str(tmp_path / "coupled.yaml"), control=law, initial={"q": rest}))
    assert "setpoint-not-at-rest" not in {w.code for w in run.warnings}
    np.testing.assert_allclose(run.q, np.tile([0.4, 0.7, 0.42], (len(run.t), 1)), atol=1e-11)


@pytest.mark.parametrize(("keys", "parts"), [
    ("{joints: {mcp: 1}, axis: [1, 0, 0]}", ("axis does not apply to a tendon over joints",)),
    ("{joints: {mcp: a}}", ("mcp", "a number")),
    ("{joints: {mcp: 1}, limits: [1, 0]}", ("the minimum thrust is not below the maximum",))])
def test_errors_of_files(tmp_path, keys, parts):
    text = FINGER.read_text()
    (tmp_path / "finger.yaml").write_text(text[:text.index("actuators:")] + f"actuators: {{t: {keys}}}")
    with pytest.raises(ModelError) as error:
        ld.load(tmp_path / "finger.yaml")
    assert all(part in str(error.value) for part in parts)
