"""Stiff joints: how fast their forces act, the method that the default takes, and what is said."""
import math
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.operating_point import prepare, state_at
from liedyn.errors import ComputationError
from liedyn.integrators.diagnosis import fastest_motion
from liedyn.simulation.run import run_scenario

CONFIGS = Path(__file__).parents[2] / "configs"
PENDULUM = """
links: {a: {mass: 1.0, com: [0, 0, -0.5], inertia: [0.01, 0.01, 0.01]}}
joints: {j: {type: revolute, parent: world, child: a, axis: [0, 1, 0], %s}}
"""
INERTIA = 0.01 + 0.25
# An arm whose last link is as light as a finger's, with the friction that URDF files give to fingers.
ARM = """
links:
  upper: {mass: 1.0, com: [0, 0, -0.25], inertia: [0.02, 0.02, 0.001]}
  finger: {mass: 0.01, com: [0, 0, -0.02], inertia: [1e-6, 1e-6, 1e-6]}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], damping: 0.5, friction: 0.1}
  knuckle: {type: revolute, parent: upper, child: finger, origin: {xyz: [0, 0, -0.5]}, axis: [0, 1, 0], %s}
"""
START = {"duration": 2, "output_step": 0.02, "initial": {"q": {"shoulder": 1.5}}}


def rate(given, v=0.0, overrides=()) -> float:
    setup = prepare(given, overrides)
    return fastest_motion(setup.problem, 0.0, setup.problem.q, np.full(setup.model.nv, v)).rate


@pytest.mark.parametrize("forces, expected", [
    ("damping: 3.0", 3.0 / INERTIA),
    ("friction: 2.0", 2.0 / 0.01 / INERTIA),                     # smoothed below 0.01 rad/s
    ("stiffness: 50.0", math.sqrt(50.0 / INERTIA)),
    ("damping: 3.0, armature: 0.74", 3.0),
    ("armature: 0.1", 0.0)])
def test_rates_of_one_joint_are_those_of_the_closed_form(scenario, forces, expected):
    assert rate(scenario(PENDULUM % forces)) == pytest.approx(expected, rel=1e-9)


def test_rates_count_pd_laws_and_leave_out_what_is_prescribed_or_not_passive(scenario):
    pd = {"joints": {"j": {"torque": {"pd": {"kp": 400, "kd": 30, "target": 0}}}}}
    assert rate(scenario(PENDULUM % "damping: 1.0", **pd)) == pytest.approx(31.0 / INERTIA, rel=1e-9)
    assert rate(scenario(PENDULUM % "damping: 1.0", **pd, passive=False)) == pytest.approx(30.0 / INERTIA, rel=1e-9)
    assert rate(scenario(PENDULUM % "damping: 1e9", joints={"j": {"prescribe": {"position": 0}}})) == 0.0


def test_rates_count_a_pd_law_and_its_feedforward_once(scenario):
    def law(kp, kd, feedforward):
        return scenario(PENDULUM % "damping: 1.0", joints={"j": {"torque": {"pd": {
            "kp": kp, "kd": kd, "target": 0, "feedforward": feedforward}}}})
    assert rate(law(0, 30, "-5*v(j)")) == pytest.approx(36.0 / INERTIA, rel=1e-9)
    assert rate(law(4e4, 0, "-2e4*q(j)")) == pytest.approx(math.sqrt(6e4 / INERTIA), rel=1e-9)


def test_rates_count_torques_that_are_expressions_of_the_state(scenario):
    """They were ignored: rk4 was selected for a law that it cannot integrate."""
    def law(text, **more):
        return scenario(PENDULUM % "damping: 1.0", joints={"j": {"torque": text}}, **more)
    assert rate(law("-30*v(j) - 5*q(j) + sin(t)")) == pytest.approx(31.0 / INERTIA, rel=1e-9)
    assert rate(law("-4e4*q(j)")) == pytest.approx(math.sqrt(4e4 / INERTIA), rel=1e-9)
    assert rate(law("30*v(j)")) == rate(law("sqrt(q(j))")) == pytest.approx(1 / INERTIA, rel=1e-9)
    run = run_scenario(law("-3e3*v(j)", duration=0.1))
    assert run.scenario.integrator.method == "rodas5p"
    assert stiff_notes(run)[0].startswith("stiff joint j (damping and torque expression, time constant")


def test_rates_count_external_forces_that_are_expressions_of_the_state(scenario):
    """They were ignored: rk4 was selected for a drag that it cannot integrate."""
    def drag(text, at=(0, 0, -1.0)):
        return scenario(PENDULUM % "damping: 1.0", duration=0.1, external_forces=[
            {"link": "a", "point": list(at), "wrench": [0, 0, 0, text, 0, 0]}])
    assert rate(drag("30*v(j)")) == pytest.approx(31.0 / INERTIA, rel=1e-9)           # the point moves at v(j) along -x
    assert rate(drag("4e4*q(j)")) == pytest.approx(math.sqrt(4e4 / INERTIA), rel=1e-9)
    assert rate(drag("30*v(j)", at=(0, 0, 0))) == pytest.approx(1 / INERTIA, rel=1e-9)
    run = run_scenario(drag("3e3*v(j)"))
    assert run.scenario.integrator.method == "rodas5p"
    assert stiff_notes(run)[0].startswith("stiff joint j (damping and external force, time constant")


def steep_friction(scale):
    """Return an elbow under gravity that its friction does not hold. The exact angle at 0.5 s is in `SLIDES`."""
    return {"robot": str(CONFIGS.parent / "robots/double_pendulum.yaml"), "duration": 0.5, "output_step": 0.05,
            "initial": {"q": {"shoulder": 0.3, "elbow": 0.4}},
            "joints": {"elbow": {"torque": f"-v(elbow)/(abs(v(elbow)) + {scale})"}}}


SLIDES = {1e-4: 0.32090, 1e-6: 0.32244, 1e-9: 0.32253, 1e-12: 0.32253}          # by SciPy's Radau, rtol 1e-9, atol 1e-14


@pytest.mark.parametrize("scale", SLIDES)
def test_tolerances_resolve_steep_friction(scale):
    """With atol 1e-8, rodas5p held the elbow at 0.4: linear friction balances any load at a velocity that is zero to atol."""
    run = run_scenario(steep_friction(scale))
    assert run.q[-1, 1] == pytest.approx(SLIDES[scale], abs=2e-5)
    assert run.scenario.integrator.method == "rodas5p"
    assert [w.code for w in run.warnings] == ["stiff-integrator"]
    assert f"atol {run.scenario.integrator.atol:g}" in str(run.warnings[0])


@pytest.mark.parametrize("scale, atol, doubtful", [(1e-9, 1e-8, True), (1e-9, 1e-12, False), (1e-16, 1e-14, True)])
def test_forces_that_a_tolerance_does_not_resolve_are_reported(scale, atol, doubtful):
    run = run_scenario(steep_friction(scale), {"integrator": {"method": "rodas5p", "atol": atol}})
    found = [w for w in run.warnings if w.code == "unresolved-force"]
    assert len(found) == doubtful
    if doubtful:
        advice = "set integrator.atol=1e-10" if atol == 1e-8 else "make the force change over larger velocities"
        assert advice in str(found[0]) and "stiff joint elbow" in str(found[0])


@pytest.mark.parametrize("speed, doubtful", [(1e-9, True), (1e-3, False)])
def test_contact_friction_that_a_tolerance_does_not_resolve_is_reported(speed, doubtful):
    run = run_scenario(CONFIGS / "quadruped_stands.yaml", ["duration=0.3", f"contacts.friction_speed={speed}"])
    assert any(w.code == "unresolved-force" for w in run.warnings) == doubtful


def test_friction_counts_by_its_secant_where_a_joint_moves(scenario):
    """f / v: the rate at which the velocity is reversed in a step."""
    assert rate(scenario(PENDULUM % "friction: 2.0"), v=0.5) == pytest.approx(2.0 / math.hypot(0.5, 0.01) / INERTIA, rel=1e-9)


def test_rates_are_the_largest_eigenvalue_of_damping_through_the_mass_matrix():
    model_path = CONFIGS.parent / "robots/showcase.yaml"
    setup = prepare(model_path)
    from liedyn.joints.joint_model import tree_views
    tree = tree_views.py_func(setup.model.index, setup.model.constants)
    slope = tree.damping + tree.friction / 0.01
    found = np.linalg.eigvals(np.linalg.solve(ld.mass_matrix(setup.model, setup.problem.q), np.diag(slope)))
    springs = np.linalg.eigvals(np.linalg.solve(ld.mass_matrix(setup.model, setup.problem.q), np.diag(tree.stiffness)))
    expected = max(found.real.max(), math.sqrt(springs.real.max()))
    assert rate(model_path) == pytest.approx(expected, rel=1e-9)


def test_constraints_leave_out_what_they_hold(scenario):
    """Two light wheels are geared to a heavy one: they can only rotate with it."""
    robot = """
links: {a: {mass: 1.0, inertia: [1, 1, 1]}, b: {mass: 1.0, inertia: [1e-6, 1e-6, 1e-6]}}
joints:
  heavy: {type: continuous, parent: world, child: a, axis: [0, 0, 1]}
  light: {type: continuous, parent: world, child: b, axis: [0, 0, 1], damping: 1.0, mimic: {joint: heavy, multiplier: 1}}
"""
    assert rate(scenario(robot)) == pytest.approx(1.0, rel=1e-4)
    assert rate(scenario(robot.replace(", mimic: {joint: heavy, multiplier: 1}", ""))) == pytest.approx(1e6, rel=1e-6)


def stiff_notes(result) -> list[str]:
    return [note for note in map(str, result.warnings) if ", time constant " in note]


@pytest.mark.parametrize("passive", ["friction: 0.1", "damping: 1.0", "damping: 0.2, friction: 0.05"])
def test_a_stiff_joint_by_default_moves_as_it_should(scenario, passive):
    """A finger with the friction of its file rotated at 0.3 rad/s by rk4 instead of standing, without a message."""
    given = scenario(ARM % passive, **START)
    default = run_scenario(given)
    converged = run_scenario(given, {"integrator": {"method": "Radau", "rtol": 1e-10, "atol": 1e-12}})
    assert default.scenario.integrator.method == "rodas5p" and len(stiff_notes(default)) == 1
    assert "knuckle" in stiff_notes(default)[0] and "rodas5p" in stiff_notes(default)[0]
    for x, y in ((default.q, converged.q), (default.v, converged.v)):
        assert np.abs(x - y).max() < 1e-3 * np.abs(y).max()      # tolerances ask for 1e-6 a step
    assert default.check["energy_balance_relative"] < 1e-5


@pytest.mark.parametrize("passive, more, words", [
    ("friction: 0.1", {}, "stiff joint knuckle (friction, time"), ("damping: 1.0", {}, "stiff joint knuckle (damping, time"),
    ("damping: 0.2, friction: 0.05", {}, "stiff joint knuckle (damping and friction, time"),
    ("damping: 1.0", {"joints": {"knuckle": {"torque": {"pd": {"kp": 1, "kd": 1, "target": 0}}}}},
     "stiff joint knuckle (damping and pd gains, time"),
])
def test_the_note_names_what_acts(scenario, passive, more, words):
    [note] = stiff_notes(run_scenario(scenario(ARM % passive, **START, **more), {"duration": 0.02}))
    assert note.startswith(words), note


def test_rk4_that_is_named_is_kept_and_its_step_is_noted(scenario):
    given = scenario(ARM % "friction: 0.02", **START)
    for named in ({"method": "rk4"}, {"step": 1e-3}):
        r = run_scenario(given, {"integrator": named})
        assert r.scenario.integrator.method == "rk4"
        assert len(stiff_notes(r)) == 1 and "knuckle" in stiff_notes(r)[0] and "not stable" in stiff_notes(r)[0]


def test_steps_that_are_not_stable_are_told(scenario):
    given = scenario(PENDULUM % "damping: 1000.0", initial={"q": {"j": 1.0}}, integrator={"method": "rk4"})
    slow = run_scenario(given, {"integrator.step": 7.3e-4, "output_step": 7.3e-3, "duration": 0.511})
    # the limit is 2.78 / 3846 s = 7.2e-4 s: barely beyond it
    assert "rk4 is not stable there with steps of 0.00073 s, and the motion is not reliable [" in stiff_notes(slow)[0]
    assert not stiff_notes(run_scenario(given, {"integrator.step": 4e-4}))
    assert not stiff_notes(run_scenario(given, {"integrator.step": 1e-3, "output_step": 5e-4}))      # an output cuts steps short


def test_a_robot_that_rk4_carries_hears_nothing(scenario):
    given = scenario(ARM.replace("friction: 0.1", "friction: 0.5") % "armature: 0.1, damping: 1.0", **START)
    r = run_scenario(given)
    assert r.scenario.integrator.method == "rk4" and not stiff_notes(r)


def test_linearizing_along_a_motion_takes_the_same_method(scenario):
    given = scenario(ARM % "friction: 0.1", **START)
    setup = prepare(given)
    _, _, q, v = state_at(setup, 1.0)
    r = run_scenario(given)
    assert np.abs(v - r.v[50]).max() < 1e-4 * np.abs(r.v).max() and np.abs(q - r.q[50]).max() < 1e-4


@pytest.mark.parametrize("method", ["rodas5p", "Radau", "BDF", "LSODA"])
def test_implicit_methods_say_nothing_on_the_terminal_and_agree(scenario, method, capfd, recwarn):
    given = scenario(ARM % "friction: 1.0", **START)
    r = run_scenario(given, {"integrator": {"method": method, "rtol": 1e-8, "atol": 1e-10}})
    reference = run_scenario(given, {"integrator": {"method": "Radau", "rtol": 1e-10, "atol": 1e-12}})
    assert np.abs(r.q - reference.q).max() < 1e-5
    assert all(one.category is ld.LiedynWarning for one in recwarn.list)
    if method != "LSODA":                                       # whose compiled code of SciPy 1.11 writes a line of its own
        assert capfd.readouterr() == ("", "")


def test_a_link_without_inertia_is_named_with_what_helps(scenario, capfd, recwarn):
    """iCub's head: a point mass on three axes through one point, so that one turn of the neck moves nothing. The advice was
    dopri5, which dies as well."""
    robot = """
links:
  upper: {mass: 1.0, com: [0, 0, -0.25], inertia: [0.02, 0.02, 0.001]}
  yoke: {mass: 0.1}
  cross: {mass: 0.1}
  head: {mass: 1.0, com: [0.02, 0, 0.1]}
joints:
  waist: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], damping: 1.0}
  pitch: {type: revolute, parent: upper, child: yoke, axis: [0, 1, 0], damping: 1.0}
  roll: {type: revolute, parent: yoke, child: cross, axis: [1, 0, 0], damping: 1.0}
  yaw: {type: revolute, parent: cross, child: head, axis: [0, 0, 1], damping: 1.0}
"""
    given = scenario(robot, initial={"q": {"waist": 0.3}})
    for method in ("rk4", "dopri5", "rodas5p", "Radau"):
        with pytest.raises(ComputationError, match=r"prescribe its motion \(joints\.roll\.prescribe\.velocity=0\)") as caught:
            run_scenario(given, {"integrator.method": method})
        assert "\n" not in str(caught.value) and "dopri5" not in str(caught.value)
    assert run_scenario(given, {"joints.roll.prescribe.velocity": 0}).check["energy_balance_relative"] < 1e-5
    assert all(one.category is ld.LiedynWarning for one in recwarn.list)
    if method != "LSODA":                                       # whose compiled code of SciPy 1.11 writes a line of its own
        assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["rodas5p", "Radau", "BDF", "LSODA"])
def test_a_motion_that_blows_up_ends_implicit_methods_in_one_line(scenario, method, capfd, recwarn):
    """q'' = q'^2 is infinite after half a second."""
    given = scenario(PENDULUM % "armature: 0.74", gravity=[0, 0, 0], initial={"v": {"j": 2.0}},
                     joints={"j": {"torque": "v(j)*v(j)"}})
    with pytest.raises(ComputationError, match=r"at t = 0\.4999.*|at t = 0\.5.*|soon after t = 0\.(4999|5).*") as caught:
        run_scenario(given, {"integrator.method": method})
    assert "\n" not in str(caught.value)
    assert "coordinate was j" in str(caught.value) or "force was at j" in str(caught.value)     # by how far the method came
    assert all(one.category is ld.LiedynWarning for one in recwarn.list)
    if method != "LSODA":                                       # whose compiled code of SciPy 1.11 writes a line of its own
        assert capfd.readouterr() == ("", "")
