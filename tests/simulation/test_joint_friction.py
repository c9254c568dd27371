"""Rigid friction of joints in runs: closed forms, identities, and every method, loop, stop, event and controller with it."""
from __future__ import annotations

import math
import os
from contextlib import nullcontext

import numpy as np
import pytest
from click.testing import CliRunner

import liedyn as ld
from code_kinds import generated_code
from liedyn.cli.app import main
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.simulation.joint_friction import FrictionMode, JointFriction
from liedyn.simulation.preparation import prepare

G, SLOPE = 9.81, math.radians(20)
HOLD = 2 * 2 * G * math.sin(SLOPE)                                      # twice the weight along the slope of the block of 2 kg
INERTIA = [0.01, 0.01, 0.01]
METHODS = ["rk4", "dopri5", "dop853", "rodas5p", "Radau", "BDF", "LSODA", "generalized_alpha", "variational"]


def rigid(level, **more):
    return {"model": "rigid", "level": level, **more}


def block(**friction):
    slope = ld.Pose.from_xyz_rpy(rpy=(0, SLOPE, 0))
    return ld.build(ld.Robot("block", links=[ld.Link("block", 2.0, inertia=INERTIA)], joints=[
        ld.Joint("slide", "prismatic", "world", "block", slope, axis=[1, 0, 0], limits=(-99, 99), friction=rigid(**friction))]))


def arm(levels, **more):
    links = [ld.Link(f"l{k}", 1.0, com=[0.25, 0, 0], inertia=[0.001, 0.02, 0.02]) for k in range(len(levels))]
    joints = [ld.Joint(f"j{k}", "revolute", f"l{k - 1}" if k else "world", f"l{k}", [0.5 * (k > 0), 0, 0], axis=[0, 1, 0],
                       limits=(-9, 9), friction=rigid(level, **more)) for k, level in enumerate(levels)]
    return ld.build(ld.Robot("arm", links=links, joints=joints))


def four_bar(levels, gravity=(0, 0, -G)):
    bodies = {"crank": (1.0, 0.1), "coupler": (1.5, 0.25), "rocker": (1.2, 0.2)}
    links = [ld.Link(name, mass, com=[x, 0, 0], inertia=[1e-3, 0.02, 0.02]) for name, (mass, x) in bodies.items()]
    parents = (("a", "world", "crank", 0.0), ("b", "crank", "coupler", 0.2), ("c", "world", "rocker", 0.5))
    joints = [ld.Joint(name, "continuous", parent, child, [x, 0, 0], axis=[0, 1, 0], friction=rigid(level))
              for (name, parent, child, x), level in zip(parents, levels, strict=True)]
    loop = ld.Loop("d", "revolute", "coupler", "rocker", pose_a=[0.5, 0, 0], pose_b=[0.4, 0, 0], axes=[[0, 1, 0]])
    return ld.build(ld.Robot("four_bar", links=links, joints=joints, loops=[loop], gravity=gravity))


START = {"a": -0.5662802995245618, "b": -0.03937539006383087, "c": -1.3698339369776293}


def events(run):
    return [(event.name, event.t) for event in run.events]


def check_law(run, levels, tolerance=1e-9):
    """Check that friction opposes the motion at its level, is below it at rest, and takes the energy level times path."""
    moving = np.abs(run.v) > 1e-7
    assert np.abs(run.friction + np.sign(run.v) * levels)[moving].max() < tolerance
    assert (np.abs(run.friction) <= np.array(levels) + tolerance).all()
    assert moving.any() and not moving.all()


@pytest.mark.parametrize("method", METHODS)
def test_a_block_on_a_slope_holds_and_stops_where_friction_ends_its_motion(method):
    held = ld.simulate(block(level=HOLD), duration=10, method=method)
    assert np.abs(held.q).max() == 0.0 and not held.events
    np.testing.assert_allclose(held.friction, -HOLD / 2, rtol=1e-12)
    np.testing.assert_array_equal(held.tau, 0.0)
    run = ld.simulate(block(level=HOLD), duration=1, method=method, v0=[1.0])
    t = 1.0 / (HOLD / 4)                                                 # the block brakes by half of the friction
    assert events(run) == [("slide sticks", pytest.approx(t, abs=1e-12))]
    np.testing.assert_allclose(run.q[-1], [t / 2], rtol=1e-12)
    np.testing.assert_allclose(run.work[-1], -HOLD * t / 2, rtol=1e-12)
    assert run.check["energy_balance_relative"] < 1e-12
    assert run.columns[4][0] == "friction.slide" and not run.warnings


def test_friction_that_contradicts_its_law_is_reported(monkeypatch):
    """Energies are balanced for any friction; the law is checked independently."""
    coefficients = JointFriction.coefficients
    monkeypatch.setattr(JointFriction, "coefficients", lambda *args: tuple(0.99 * x for x in coefficients(*args)))
    with pytest.warns(ld.LiedynWarning, match=r"friction contradicts its law in slide \(from t = 0 s\)"):
        run = ld.simulate(block(level=HOLD), duration=0.1, v0=[1.0])
    assert run.check["energy_balance_relative"] < 1e-12 and [x.code for x in run.warnings] == ["friction-law"]


def test_generated_code_agrees():
    runs = []
    for code in (nullcontext, generated_code):
        with code():
            runs.append(ld.simulate(block(level=HOLD, static=1.5 * HOLD, stribeck=0.3), duration=1, v0=[1.0]))
    assert events(runs[0]) == [(name, pytest.approx(t, rel=1e-13)) for name, t in events(runs[1])]
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=1e-12, atol=1e-14)


def test_static_level_holds_until_it_is_exceeded():
    model = block(level=HOLD / 4, static=HOLD)                          # the weight is between the two
    run = ld.simulate(model, duration=2, method="dopri5", joints={"slide": {"torque": "6*t"}})
    t = (HOLD / 2) / 6
    assert events(run) == [("slide slides", pytest.approx(t, abs=1e-9))]
    t = run.t[-1] - t                                                   # a = (HOLD - HOLD/4 + 6 t) / 2 from there on
    np.testing.assert_allclose(run.v[-1], [(0.75 * HOLD * t + 3 * t**2) / 2], rtol=1e-9)


STIFFNESS, MASS, SPEED, LEVEL, STATIC = 50.0, 2.0, 0.1, 4.0, 6.0


def on_a_belt(**friction):
    links = [ld.Link("belt", 1.0, inertia=INERTIA), ld.Link("block", MASS, inertia=INERTIA)]
    return ld.build(ld.Robot("belt", links=links, joints=[
        ld.Joint("drive", "prismatic", "world", "belt", axis=[1, 0, 0], limits=(-9, 9)),
        ld.Joint("slip", "prismatic", "belt", "block", axis=[1, 0, 0], limits=(-9, 9), friction=rigid(**friction))]))


def stick_slip(method, **friction):
    spring = {"torque": f"-{STIFFNESS}*(q(drive) + q(slip))"}
    return ld.simulate(on_a_belt(**friction), duration=6, method=method, v0={"drive": SPEED},
                       joints={"drive": {"prescribe": {"velocity": SPEED}}, "slip": spring})


@pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas5p"])
def test_stick_slip_on_a_belt_has_the_period_of_the_closed_form(method):
    run = stick_slip(method, level=LEVEL, static=STATIC)
    w, size = math.sqrt(STIFFNESS / MASS), (STATIC - LEVEL) / STIFFNESS
    slips, sticks = 2 * (math.pi - math.atan(size * w / SPEED)) / w, 2 * size / SPEED
    expected, t = [], STATIC / STIFFNESS / SPEED
    while t < 6:
        expected += [("slip slides", t), ("slip sticks", t + slips)]
        t += slips + sticks
    assert events(run) == [(name, pytest.approx(t, abs=5e-8)) for name, t in expected if t < 6]
    assert run.check["energy_balance_relative"] < 1e-6


def test_the_stribeck_curve_is_that_of_its_speed():
    run = stick_slip("dopri5", level=LEVEL, static=STATIC, stribeck=0.05)
    v, force = run.v[:, 1], run.friction[:, 1]
    moving = np.abs(v) > 1e-6
    curve = -np.sign(v) * (LEVEL + (STATIC - LEVEL) * np.exp(-(v / 0.05) ** 2))
    np.testing.assert_allclose(force[moving], curve[moving], rtol=1e-12)
    assert moving.any() and run.check["energy_balance_relative"] < 1e-6


def test_prescribed_joints_need_the_torque_of_friction():
    run = ld.simulate(on_a_belt(level=LEVEL, static=STATIC, stribeck=0.05), duration=1, method="dopri5",
                      joints={"drive": {"prescribe": {"velocity": 0}}, "slip": {"prescribe": {"position": "0.1*sin(6*t)"}}})
    np.testing.assert_allclose(run.tau[:, 1], MASS * run.a[:, 1] - run.friction[:, 1], atol=1e-12)
    np.testing.assert_allclose(run.friction[0], [0, -LEVEL], rtol=1e-9)
    assert run.check["energy_balance_relative"] < 1e-5


@pytest.mark.parametrize("method", ["rk4", "dopri5", "variational", "generalized_alpha"])
def test_joints_of_an_arm_stick_and_slide_in_turn(method):
    levels = [4.0, 2.0, 0.7]
    run = ld.simulate(arm(levels), duration=1.2, method=method, q0=[0.2, -0.3, 0.1], v0=[0, 0, 3.0], output_step=0.002)
    check_law(run, levels)
    assert [name for name, _ in events(run)] == ["j2 sticks", "j1 slides", "j2 slides", "j2 sticks", "j1 sticks", "j1 slides",
                                                 "j0 sticks", "j2 slides", "j1 sticks", "j0 slides", "j2 sticks"]
    path = np.abs(np.diff(run.q, axis=0)).sum(axis=0) @ levels
    np.testing.assert_allclose(run.work[-1], -path, rtol=1e-6)
    assert run.check["energy_balance_relative"] < 1e-5


def test_rigid_friction_is_the_limit_of_regularized_friction():
    """Friction tanh(v / s) with a small s, by an expression and an implicit method, is the reference."""
    levels, q0 = [4.0, 2.0, 0.7], [0.2, -0.3, 0.1]
    exact = ld.simulate(arm(levels), duration=0.6, method="dopri5", q0=q0, v0=[0, 0, 3.0])
    errors = []
    for speed in (1e-3, 1e-4):
        smooth = ld.simulate(arm([0.0] * 3), duration=0.6, method="rodas5p", q0=q0, v0=[0, 0, 3.0],
                             tau={f"j{k}": f"-{level}*tanh(v/{speed})" for k, level in enumerate(levels)})
        errors.append(np.abs(smooth.q[-1] - exact.q[-1]).max())
    assert errors[1] < 0.15 * errors[0] < 1e-3


@pytest.mark.parametrize("method", ["rk4", "Radau"])
def test_a_four_bar_stops_with_all_its_joints(method):
    levels = [0.5, 0.3, 0.2]
    run = ld.simulate(four_bar(levels), duration=2, method=method, initial={"q": START}, output_step=0.002)
    assert [name for name, _ in events(run)] == ["a and b and c stick"]
    check_law(run, levels)
    path = np.abs(np.diff(run.q, axis=0)).sum(axis=0) @ levels
    np.testing.assert_allclose(run.work[-1], -path, rtol=1e-6)
    assert any(warning.code == "friction-not-unique" for warning in run.warnings)


def test_a_four_bar_slides_beyond_the_friction_of_all_its_joints():
    levels = [2.0, 1.0, 1.5]
    run = ld.simulate(four_bar(levels, (0, 0, 0)), duration=1, method="dopri5", initial={"q": START},
                      joints={"a": {"torque": "8*sin(t)"}})
    motion = np.linalg.svd(ld.constraint_jacobian(run.model, run.q[0]))[2][-1]
    capacity = np.abs(motion / motion[0]) @ levels
    assert events(run) == [("a and b and c slide", pytest.approx(math.asin(capacity / 8), rel=1e-9))]


def test_a_follower_adds_its_friction_to_that_of_its_driver():
    more = {"axis": [0, 1, 0], "limits": (-9, 9)}
    gripper = ld.build(ld.Robot("gripper", gravity=(0, 0, 0), links=[ld.Link(x, 1.0, inertia=INERTIA) for x in "ab"], joints=[
        ld.Joint("left", "prismatic", "world", "a", friction=rigid(1.0), **more),
        ld.Joint("right", "prismatic", "world", "b", mimic=ld.Mimic("left", -1), friction=rigid(0.5), **more)]))
    run = ld.simulate(gripper, duration=4, method="dopri5", joints={"left": {"torque": "t"}})
    assert events(run) == [("left and right slide", pytest.approx(1.5, abs=1e-9))]
    np.testing.assert_allclose(run.v[-1], [2.5**2 / 2 / 2, -2.5**2 / 2 / 2], rtol=1e-8)
    run = ld.simulate(gripper, duration=4, method="dopri5", v0={"left": 1.0, "right": -1.0})
    assert events(run) == [("left and right stick", pytest.approx(2 / 1.5, abs=1e-9))]


def test_a_joint_slides_on_at_a_dead_centre():
    """The velocity of the rocker is zero while the crank moves: friction cannot hold the rocker there."""
    run = ld.simulate(four_bar([0.0, 0.0, 0.2]), duration=1.5, method="dopri5", initial={"q": START})
    assert not run.events and (np.diff(np.sign(run.v[:, 2])) != 0).any()
    assert run.check["energy_balance_relative"] < 1e-6


@pytest.mark.parametrize("friction", [HOLD / 4, HOLD])
def test_a_block_at_its_hard_stop(friction):
    """It rests at the stop until a force exceeds friction, or sticks before it."""
    model = block(level=friction).with_changes(upper={"slide": 0.05}, lower={"slide": -99.0})
    run = ld.simulate(model, duration=3, method="dopri5", v0=[0.5], limits="hard", joints={"slide": {"torque": "-20*t"}})
    brakes = friction / 2 - G * math.sin(SLOPE)                          # of the motion down the slope, without the torque
    t = (friction + HOLD / 2) / 20
    assert events(run)[-1] == ("slide slides", pytest.approx(t, abs=1e-9))
    assert (run.q.max() == pytest.approx(0.05, abs=1e-12)) == (brakes < 2.0)
    assert run.check["energy_balance_relative"] < 1e-6


def test_sampled_torques_release_a_joint():
    run = ld.simulate(block(level=HOLD), duration=1, method="rk4", rate=10,
                      tau=lambda t, q, v: [0.6 * HOLD if 0.25 < t < 0.55 else 0.0])
    assert events(run)[0] == ("slide slides", pytest.approx(0.3, abs=1e-9)) and not run.warnings
    push, brake = 0.1 * HOLD / 2, 0.5 * HOLD / 2
    assert events(run)[1] == ("slide sticks", pytest.approx(0.6 + 0.3 * push / brake, abs=1e-9))
    np.testing.assert_allclose(run.q[-1], [push * 0.3**2 / 2 * (1 + push / brake)], rtol=1e-9)


def test_an_impulse_moves_a_joint_that_sticks():
    kick = {"kick": {"at": 0.5, "do": {"set": {"v": {"slide": 1.0}}}}}
    run = ld.simulate(block(level=HOLD), duration=2, events=kick)
    t = 1.0 / (HOLD / 4)
    assert events(run) == [("kick", 0.5), ("slide slides", 0.5), ("slide sticks", pytest.approx(0.5 + t, abs=1e-9))]
    np.testing.assert_allclose(run.q[-1], [t / 2], rtol=1e-9)


def test_a_checkpoint_contains_the_modes():
    settings = {"robot": os.devnull, "duration": 1.0}
    problems, restored = (prepare(settings, (), model=arm([4.0, 2.0, 0.7])).hybrid_simulation.problems for _ in range(2))
    problems.change(friction=tuple(FrictionMode(friction, direction, direction > 0)
                                   for friction, direction in zip(problems.frictions, (0, 1, -1), strict=True)))
    restored.load_state_dict(problems.state_dict())
    assert restored.hybrid_state == problems.hybrid_state and restored.hybrid_state.friction[1].at_rest


@pytest.mark.parametrize(("change", "message"), [
    ({"static": 1.0}, "below the level in motion"), ({"stribeck": 0.1}, "Stribeck"), ({"static": math.nan}, "finite"),
    ({"speed": 0.0}, "speed that smooths friction"), ({"model": "stiff"}, "wrong friction"),
    ({"model": "regularized", "static": 3.0}, "belong to rigid")])
def test_wrong_friction_is_an_error_with_its_place(change, message):
    with pytest.raises(ld.LiedynError, match=message):
        block(**{"level": 2.0, **change}) if "model" not in change else ld.build(ld.Robot(
            "x", links=[ld.Link("a", 1.0, inertia=INERTIA)], joints=[
                ld.Joint("j", "prismatic", "world", "a", axis=[1, 0, 0], friction={"level": 2.0, **change})]))


def test_ball_joints_are_errors_by_name():
    with pytest.raises(ld.ModelError, match="not supported for a ball joint"):
        ld.build(ld.Robot("x", links=[ld.Link("a", 1.0, inertia=INERTIA)],
                          joints=[ld.Joint("j", "ball", "world", "a", friction=rigid(1.0))]))


def test_a_joint_that_passes_a_dead_centre_in_long_steps_slides_on():
    """The return to the constraints changed its velocity from zero, and to stop it would have stopped the mechanism: an error."""
    tau = np.repeat(np.random.default_rng(7).uniform(-20.0, 20.0, (6, 3)), 10, axis=0)
    run = ld.rollout(four_bar([1.0, 0.5, 2.0]), [*START.values()], np.zeros(3), tau, dt=1e-2, steps=60)
    assert not run.reasons and np.abs(run.v[-1, 0]) > 1.0


# rollouts ---------------------------------------------------------------------------------------------------------------
def final_rows(run, t):
    """Return the states of a run at times t, after the events of these times."""
    rows = np.searchsorted(run.t, t + 1e-12, side="right") - 1
    return run.q[rows], run.v[rows]


def test_rollouts_of_a_block_hold_and_stop():
    runs = ld.rollout(block(level=HOLD), np.zeros((3, 1)), [[0.0], [1.0], [-1.0]], dt=1e-2, steps=100, forces=True)
    assert runs.q[:, -1, 0] == pytest.approx([0.0, 2 / HOLD, -2 / (3 * HOLD)], abs=1e-14) and not runs.warnings
    assert (runs.v[:, -1] == 0.0).all() and (runs.a[:, -1] == 0.0).all() and (runs.tau == 0.0).all()
    assert np.isnan(runs.ended_at).all() and (runs.q[0] == 0.0).all()


@pytest.mark.parametrize("case", ["series", "feedback", "loop", "prescribed"])
def test_rollouts_with_rigid_friction_are_the_runs_of_simulate(case):
    """The modes are decided by the same code: states at the steps are equal."""
    options, keys = {}, {}
    model = four_bar([1.0, 2.0, 4.0]) if case == "loop" else arm([2.0, 2.4], static=2.5, stribeck=0.2)
    tau = np.repeat(np.outer([9.0, 0.0, 0.0, -9.0, 0.0, 0.0], np.arange(model.nv) == 0), 10, axis=0)
    q0 = [*START.values()] if case == "loop" else [0.4, -0.3]
    if case == "feedback":
        tau, options = None, {"feedback": ld.Feedback.pd(3.0 * np.ones(2), np.ones(2), [0.0, 1.5])}
        keys = {"joints": {"j0": {"torque": {"pd": {"kp": 3, "kd": 1, "target": 0}}},
                           "j1": {"torque": {"pd": {"kp": 3, "kd": 1, "target": 1.5}}}}}
    if case == "prescribed":
        model, tau = arm([2.0, 6.0]), tau[:, ::-1]
        options = {"prescribed": [True, False], "a": [0.7, 0.0]}
        keys = {"joints": {"j0": {"prescribe": {"acceleration": 0.7}}}}
    if tau is not None:
        keys |= {"tau": tau, "rate": 100}
    runs = ld.rollout(model, [q0, q0], np.zeros(model.nv), None if tau is None else [tau, 0 * tau], dt=1e-2, steps=60, **options)
    run = ld.simulate(model, duration=0.6, q0=q0, method="rk4", integrator={"step": 1e-2}, output_step=1e-2, **keys)
    assert run.events
    q, v = final_rows(run, runs.t)
    np.testing.assert_allclose(runs.q[0], q, rtol=0, atol=1e-11)
    np.testing.assert_allclose(runs.v[0], v, rtol=0, atol=1e-10)
    assert case == "feedback" or np.abs(runs.q[1, -1] - runs.q[0, -1]).max() > 1e-3


@pytest.mark.parametrize(("option", "name"), [
    ({"method": "semi_implicit"}, "method 'semi_implicit'"), ({"tau": lambda t, q, v: 0 * q}, "a policy"),
    ({"events": {"end": {"when": "q(slide)", "value": 1, "do": "stop"}}}, "an event")])
def test_options_that_rigid_friction_excludes_are_named(option, name):
    with pytest.raises(ld.UsageError, match=f"{name} requires a robot without rigid friction, which slide has; use ld.simulate"):
        ld.rollout(block(level=1.0), [[0.0]], [[0.0]], dt=1e-3, steps=2, **option)
    ld.rollout(block(level=1.0), [[0.0]], [[0.0]], dt=1e-3, steps=2, passive=False, **option)


def test_derivatives_steppers_and_variants_need_another_friction():
    model = block(level=1.0)
    run = ld.rollout(model, [[0.0]], [[0.0]], dt=1e-3, steps=2)
    with pytest.raises(ld.UsageError, match="requires a robot without rigid friction"):
        run.adjoint(None, np.zeros((1, 3, 1)))
    with pytest.raises(ld.UsageError, match="Stepper requires a robot without rigid friction, which slide has"):
        ld.Stepper(model, 1e-3)
    with pytest.raises(ld.UsageError, match="a rollout of variants requires a robot without rigid friction"):
        ld.rollout(ld.Variants(model, {"mass.block": [1.0, 2.0]}), [0.0], [0.0], dt=1e-3, steps=2)
    with pytest.raises(ld.ModelError, match="variant 1 has rigid friction in other joints than variant 0"):
        ld.Variants([model, ld.build(ld.Robot("block", links=model.description.links, joints=[
            model.description.joints[0].with_friction(1.0)]))])


def test_functions_of_a_state_use_regularized_friction():
    model = block(level=HOLD)
    assert ld.inverse_dynamics(model, [0.0], [1.0], [0.0])[0] == pytest.approx(HOLD / math.hypot(1, 0.01) - HOLD / 2, rel=1e-12)
    run = ld.simulate(model, duration=0.1, v0=[1.0], passive=False)
    assert run.friction is None and run.v[-1, 0] > 1.0


def test_friction_of_a_scenario_replaces_that_of_the_robot():
    """Also of a URDF; patterns match, names take precedence, and nothing of the friction of the file stays."""
    model = ld.load("robots/double_pendulum.urdf")
    run = ld.simulate(model, duration=0.1, friction={"*": {"model": "rigid", "level": 40.0}, "elbow": 0.3})
    shoulder, elbow = (joint.coordinates[0] for joint in run.model.description.joints if joint.labels)
    assert (shoulder.friction, shoulder.rigid_friction, elbow.friction, elbow.rigid_friction) == (40.0, 1.0, 0.3, 0.0)
    again = ld.simulate(run.model, duration=0.1, friction={"shoulder": {"model": "regularized", "level": 2.0, "speed": 0.05}})
    first = next(joint.coordinates[0] for joint in again.model.description.joints if joint.name == "shoulder")
    assert (first.friction, first.friction_speed, first.rigid_friction) == (2.0, 0.05, 0.0)
    assert to_plain(run.scenario)["friction"]["elbow"]["level"] == 0.3


@pytest.mark.parametrize(("friction", "message"), [
    ({"elbw": 1.0}, "friction.elbw: no such joint"), ({"elbow": -1.0}, "joint elbow: negative friction"),
    ({"elbow": [1.0, 2.0]}, "joint elbow: wrong friction"), ({"elbow": {"level": 1.0}}, "the key model is missing"),
    ({"elbow": {"model": "rigid", "level": 1.0, "static": 0.5}}, "friction.elbow: joint elbow: the static level")])
def test_wrong_friction_of_a_scenario_is_an_error(friction, message):
    with pytest.raises(ld.ScenarioError, match=message):
        ld.simulate(ld.load("robots/double_pendulum.urdf"), duration=0.1, friction=friction)


def test_joints_of_a_hand_reach_their_levels_at_the_same_time():
    """Four fingers of a whippletree, with joints that follow others: the modes of all joints are decided at once."""
    run = ld.run_scenario("configs/hand.yaml", {"friction": {"*": {"model": "rigid", "level": 0.002}}})
    fingers = {f"{name}_mcp" for name in ("long", "ring", "little")}
    assert any(fingers <= set(event.name.removesuffix(" slide").split(" and ")) for event in run.events)
    check_law(run, 0.002)
    assert len(run.events) < 30 and run.check["energy_balance_relative"] < 1e-9


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
def test_joints_that_are_released_at_times_that_differ_by_rounding_slide_on(share):
    links = [ld.Link(x, mass, inertia=INERTIA) for x, mass in (("l", 1.0), ("r", share))]
    joints = [ld.Joint(name, "prismatic", "world", name, axis=[1, 0, 0], limits=(-9, 9), friction=rigid(0.7 * mass))
              for name, mass in (("l", 1.0), ("r", share))]
    run = ld.simulate(ld.build(ld.Robot("two", links=links, joints=joints)), duration=1.5, method="dopri5",
                      joints={"l": {"torque": "sin(1.7*t)"}, "r": {"torque": f"{share}*sin(1.7*t)"}})
    np.testing.assert_allclose([t for _, t in events(run)], math.asin(0.7) / 1.7, rtol=1e-9)
    assert {name for name, _ in events(run)} in ({"l and r slide"}, {"l slides", "r slides"})
    np.testing.assert_allclose(run.q[:, 0], run.q[:, 1], atol=1e-9)


def test_inverse_dynamics_of_a_file_says_that_friction_is_regularized(tmp_path):
    run = ld.simulate(block(level=HOLD), duration=0.1, v0=[1.0])
    run.save(tmp_path / "run")
    done = CliRunner().invoke(main, ["inverse", str(tmp_path / "run/trajectory.csv"), "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 0 and "rigid friction of slide acts as regularized friction here" in done.stderr


def test_a_joint_sticks_and_slides_under_a_law_that_adapts():
    """Whether it sticks is decided with the estimate of that time, with which the motion ended, and not with the first one."""
    law = {"law": "slotine_li", "bandwidth": 5, "kd": 5, "motion": {"slide": "0.5*sin(2*t)"}, "adapt": True,
           "adaptation_gain": 50}
    run = ld.simulate(block(level=2.0, static=4.0), duration=3.5, control=law)
    check_law(run, [2.0], tolerance=2.0 + 1e-9)                            # at rest up to the static level
    names = [name for name, _ in events(run)]
    assert names == ["slide sticks", "slide slides"] * (len(names) // 2) and len(names) >= 4
    assert np.ptp(run.adaptation.estimate, axis=0).max() > 0.1
