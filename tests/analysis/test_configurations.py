"""Configurations at rest: found where there are some, refused with a reason where there is none."""
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.configurations import find_equilibrium
from liedyn.analysis.linearize import linearize_scenario
from liedyn.errors import ComputationError, UsageError
from liedyn.model.description import WORLD, Coordinate, Joint, Robot
from liedyn.model.links import Link
from other_units import in_units
from zoo import random_robot

ROOT = Path(__file__).parents[2]
ARM = """
links:
  upper: {mass: 1.0, com: [0, 0, -0.25], inertia: [0.02, 0.02, 0.001]}
  lower: {mass: 0.8, com: [0, 0, -0.2], inertia: [0.01, 0.01, 0.001]}
  hand: {mass: 0.2, com: [0, 0, -0.05], inertia: [0.001, 0.001, 0.001]}
joints:
  shoulder: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], damping: 0.2, limits: {lower: -2, upper: 2}}
  elbow: {type: revolute, parent: upper, child: lower, origin: {xyz: [0, 0, -0.5]}, axis: [0, 1, 0],
          limits: {lower: -2.5, upper: 2.5}}
  wrist: {type: ball, parent: lower, child: hand, origin: {xyz: [0, 0, -0.4]}, damping: 0.01}
"""
BODY = """
base: floating
links: {body: {mass: 2, inertia: [0.02, 0.03, 0.04]}}
joints: {}
"""

BALL = (0.01, 0.0, 0.0, 0.01, 0.0, 0.01)


@pytest.fixture
def write(tmp_path):
    def file(scenario: str, robot: str = ARM) -> Path:
        (tmp_path / "robot.yaml").write_text(robot)
        (tmp_path / "s.yaml").write_text("robot: robot.yaml\nduration: 1\n" + scenario)
        return tmp_path / "s.yaml"
    return file


def test_a_hanging_arm_is_at_rest_straight_down(write):
    found = find_equilibrium(write("initial: {q: {shoulder: 0.4, elbow: -0.3, wrist: [0.3, 0, 0, 0.9539392014169457]}}\n"))
    np.testing.assert_allclose(found.q[:4], 0, atol=1e-9)          # the hand keeps a turn about the vertical
    assert found.residual < 1e-8 and not found.u.any() and found.offset == {} and found.warnings == ()
    assert found.system.stability in ("stable", "neutral")         # it turns freely about its long axis


def test_an_upright_pendulum_is_found_and_unstable():
    found = find_equilibrium(ROOT / "configs/double_pendulum.yaml", overrides=["initial.q={shoulder: 3.0, elbow: 0.1}"])
    np.testing.assert_allclose(found.q, [np.pi, 0], atol=1e-9)
    assert found.system.stability == "unstable"


def test_pd_laws_sag_under_gravity(write):
    path = write("""initial: {q: {shoulder: 0.6, elbow: 0.4}}
joints:
  shoulder: {torque: {pd: {kp: 40, kd: 4, target: 0.6}}}
  elbow: {torque: {pd: {kp: 20, kd: 2, target: 0.4}}}
  wrist: {torque: ["-0.1*v", "-0.1*v", "-0.1*v - 0.2*q(wrist.qz)"]}
""")
    found = find_equilibrium(path)
    model = ld.load(path.with_name("robot.yaml"))
    q, rest = found.q, np.zeros(model.nv)
    applied = np.array([40 * (0.6 - q[0]), 20 * (0.4 - q[1]), 0, 0, -0.2 * q[4]])
    np.testing.assert_allclose(ld.inverse_dynamics(model, q, rest, rest), applied, atol=1e-9)
    np.testing.assert_allclose(found.tau, applied, atol=1e-9)
    assert 0.01 < 0.6 - q[0] < 0.2 and found.system.stability == "stable"


def test_a_held_joint_gets_the_force_that_it_takes(write):
    path = write("initial: {q: {shoulder: 1.0, elbow: 0.5}}\njoints: {shoulder: {torque: 2.0}}\n")
    found = find_equilibrium(path, hold=["shoulder"])
    model = ld.load(path.with_name("robot.yaml"))
    np.testing.assert_allclose(found.q[:2], [1, -1], atol=1e-9)    # the forearm hangs down
    needed = ld.gravity_force(model, found.q)[0]
    assert found.tau[0] == pytest.approx(needed) and found.offset == {"tau.shoulder": pytest.approx(needed - 2.0)}
    result = linearize_scenario(path, equilibrium=True, hold=["shoulder"], verify=True)
    assert np.abs(result.here.a).max() < 1e-8 and result.here.tau[0] == pytest.approx(needed)
    assert result.offset == found.offset and max(one.off for one in result.differences.values()) < 1e-8


def test_a_held_joint_keeps_its_law(write):
    """Its force is added to the law, whose derivatives stay in A."""
    path = write("initial: {q: {shoulder: 1.0, elbow: -1}}\njoints: {shoulder: {torque: {pd: {kp: 300, kd: 30, target: 0}}}}\n")
    found = find_equilibrium(path, hold=["shoulder", "elbow"])
    assert found.q[:2] == pytest.approx([1, -1]) and found.offset["tau.shoulder"] == pytest.approx(found.tau[0] + 300)
    bare = linearize_scenario(path, equilibrium=True, hold=["shoulder", "elbow"], open_loop=True).system
    change = found.system.A - bare.A
    np.testing.assert_allclose(change[5:, 0], -300 * bare.B[5:, 0], rtol=1e-8, atol=1e-8)
    assert np.abs(change[5:, 0]).max() > 100


def test_thrusts_that_hover():
    """Six equal ones, by symmetry and least change: 6 u cos(20 deg) = 4 g."""
    path = ROOT / "configs/hexarotor_hover.yaml"
    found = find_equilibrium(path, overrides=["actuators={}"], hold=["rotor*"])
    assert list(found.offset) == [f"thrust.rotor{k}" for k in range(1, 7)]
    np.testing.assert_allclose(list(found.offset.values()), 6.959722631992465, rtol=1e-9)
    assert (found.system.stability, found.system.growth) == ("unstable", 3)       # the servos hold the arms; the body tilts and
    zero = next(mode for mode in found.system.modes if mode.eigenvalue == 0)       # accelerates sideways, nothing brings it back
    assert zero.chains == (4, 4, 2, 2) and zero.count == 12
    assert sorted(name for name, share in zero.fastest.items() if share > 1e-9) == ["base.vx", "base.vy"]
    result = linearize_scenario(path, equilibrium=True, overrides=["actuators={}"], hold=["rotor*"], verify=True,
                                inputs=["thrust.*"])
    assert max(one.off for one in result.differences.values()) < 1e-8 and result.system.controllable == len(result.system.states)


def test_prescribed_joints_are_held_where_they_are(write):
    path = write('joints: {shoulder: {prescribe: {position: "0.5 + 0.2*sin(3*t)"}}}\n')
    found = find_equilibrium(path, at=0.3)
    assert found.q[0] == pytest.approx(0.5 + 0.2 * np.sin(0.9)) and found.q[0] + found.q[1] == pytest.approx(0)
    assert [one.message for one in found.warnings] == [
        "shoulder: the prescribed motion is not at rest at t = 0.3 s; the equilibrium is computed with these joints fixed"]
    assert not find_equilibrium(write("joints: {shoulder: {prescribe: {position: 0.5}}}\n")).warnings


def test_forces_that_change_are_told(write):
    warnings = [one.message for one in find_equilibrium(write("joints: {elbow: {torque: 0.1*t}}\n"), at=0.5).warnings]
    assert warnings == ["forces depend on time: the equilibrium is computed for their values at t = 0.5 s"]
    assert not find_equilibrium(write("joints: {elbow: {torque: 0.1*q}}\n")).warnings


@pytest.mark.parametrize("scenario", [
    "joints: {elbow: {torque: 0.1*step(t - 0.5)}}\n", "joints: {elbow: {torque: step(t - 0.5)*sin(t)}}\n",
    "joints: {elbow: {torque: {pd: {kp: 20, kd: 2, target: 0.5*step(t - 0.5)}}}}\n",
    "joints: {elbow: {torque: {spline: [[0, 0], [0.5, 0], [1, 0.1]]}}}\n",
    "external_forces: [{link: lower, wrench: [0, 0, 0, 1, 0, 0], from: 0.5}]\n",
    "external_forces: [{link: lower, wrench: [0, 0, 0, 1, 0, 0], until: 0.5}]\n",
])
def test_forces_that_change_later_are_told(write, scenario):
    warnings = [one.message for one in find_equilibrium(write(scenario)).warnings]
    assert warnings == ["forces depend on time: the equilibrium is computed for their values at t = 0 s"]


@pytest.mark.parametrize("scenario", [
    "external_forces: [{link: lower, wrench: [0, 0, 0, 1, 0, 0], from: 0, until: 1}]\n",
    "joints: {elbow: {torque: {spline: [[0, 0.1], [0.5, 0.1], [1, 0.1]]}}}\n",
    "joints: {shoulder: {prescribe: {position: 0.5*step(t - 2)}}}\n",
])
def test_forces_that_do_not_change(write, scenario):
    assert not find_equilibrium(write(scenario)).warnings


def test_a_wrench_of_the_world_turns_a_pendulum_aside(write):
    path = write("external_forces:\n  - {link: lower, wrench: [0, 0, 0, 3, 0, 0], point: [0, 0, -0.4]}\n")
    found = find_equilibrium(path)
    assert np.tan(-(found.q[0] + found.q[1])) == pytest.approx(3 / (9.81 * (0.8 * 0.5 + 0.2)), rel=1e-8)
    assert found.system.stability == "neutral"


@pytest.mark.parametrize("scenario, words", [
    ("", "a residual acceleration of -9.81 m/s^2 remains at base.vz (no force balances base: prescribe its motion, give it a "
         'force or a wrench, or --fix base or hold=["base"])'),
    ("external_forces: [{link: body, wrench: [0, 0, 1, 0, 0, 19.62]}]\n", "acceleration of 25 rad/s^2 remains at base.wz"),
])
def test_a_body_that_nothing_carries(write, scenario, words):
    with pytest.raises(ComputationError, match=re.escape(words)):
        find_equilibrium(write(scenario, BODY))


def test_thrusters_are_named_where_there_are_some():
    """Also those that are not yet held: advice that is followed is not given again."""
    path, rotors = ROOT / "configs/hexarotor_hover.yaml", [f"rotor{k}" for k in range(1, 7)]
    all_of_them = re.escape(f"{' '.join(f'--fix {name}' for name in rotors)} or hold={json.dumps(rotors)}")
    with pytest.raises(ComputationError, match=f"no force balances base: compute thrusts with {all_of_them}, or prescribe"):
        find_equilibrium(path, overrides=["actuators={}"])
    with pytest.raises(ComputationError, match=f"fixed thrusts do not balance base: compute all thrusts with {all_of_them}, or"):
        find_equilibrium(path, overrides=["actuators={}"], hold=["rotor1"])
    assert find_equilibrium(path, overrides=["actuators={}"], hold=rotors).offset


def test_a_body_that_is_carried_rests(write):
    found = find_equilibrium(write("external_forces: [{link: body, wrench: [0, 0, 0, 0, 0, 19.62]}]\n", BODY))
    assert found.residual < 1e-8
    assert find_equilibrium(write("", BODY), hold=["base"]).offset["tau.base.fz"] == pytest.approx(19.62)
    assert find_equilibrium(write("gravity: [0, 0, 0]\n", BODY)).residual == 0


def test_limits_are_kept(write):
    """Straight down lies beyond the limit; without limits it is found."""
    robot = ARM.replace("limits: {lower: -2, upper: 2}", "limits: {lower: 0.3, upper: 2}")
    path = write("initial: {q: {shoulder: 0.5}}\n", robot)
    with pytest.raises(ComputationError, match="no equilibrium was found near the configuration at t = 0 s: a residual "
                                               "acceleration of .* remains at "
                                               r"shoulder; at a limit: shoulder \(--fix or hold=\[…\] keeps joints fixed\)"):
        find_equilibrium(path)
    assert find_equilibrium(path, hold=["shoulder"]).q[:2] == pytest.approx([0.5, -0.5])


def test_a_torque_beyond_what_gravity_can_balance(write):
    with pytest.raises(ComputationError, match=r"no equilibrium was found .*(or hold=\[.\w+.\] holds it|at a limit)"):
        find_equilibrium(write("joints: {elbow: {torque: 50}}\n"))


def test_hold_must_match_something(write):
    with pytest.raises(UsageError, match=r"no joint or actuator to fix matches 'knee'; the names are shoulder"):
        find_equilibrium(write(""), hold=["knee"])


def test_rest_is_kept_by_a_simulation(write):
    """Started at the equilibrium, the motion stays there."""
    path = write("""initial: {q: {shoulder: 0.6, elbow: 0.4}}
joints:
  shoulder: {torque: {pd: {kp: 40, kd: 4, target: 0.6}}}
  elbow: {torque: {pd: {kp: 20, kd: 2, target: 0.4}}}
""")
    q = find_equilibrium(path).q
    run = ld.run_scenario(path, [f"initial.q={{shoulder: {q[0]:.17g}, elbow: {q[1]:.17g}, wrist: {q[2:].tolist()}}}"])
    assert np.abs(ld.difference(run.model, q, run.q)).max() < 1e-8


def test_a_robot_without_free_joints_rests_anywhere(write):
    found = find_equilibrium(write("joints: {'*': {prescribe: {velocity: 0}}}\n"))
    assert found.residual == 0 and found.q == pytest.approx([0, 0, 0, 0, 0, 1])


# --- of a model -------------------------------------------------------------------------------------------------------------

def test_a_model_under_constant_forces_finds_its_place():
    model = ld.load(ROOT / "robots/double_pendulum.yaml")
    found = find_equilibrium(model, [0.1, 0.1], tau=[1.0, 0.0])
    np.testing.assert_allclose(ld.gravity_force(model, found.q), [1, 0], atol=1e-8)
    np.testing.assert_allclose(found.tau, [1, 0], atol=1e-12)
    assert found.offset == {} and not found.u.any() and found.system.inputs == ("tau.shoulder", "tau.elbow")
    np.testing.assert_allclose(find_equilibrium(model, [3.0, 0.1]).q, [np.pi, 0], atol=1e-8)
    np.testing.assert_allclose(find_equilibrium(model).q, 0, atol=1e-9)


def test_a_model_is_held_and_its_springs_left_out(write):
    held = find_equilibrium(ld.load(ROOT / "robots/double_pendulum.yaml"), [0.5, 0.1], hold="shoulder")
    assert held.q == pytest.approx([0.5, -0.5]) and set(held.offset) == {"tau.shoulder"}
    path = write("", ARM.replace("damping: 0.2", "stiffness: 30, rest: 0.5"))
    model = ld.load(path.with_name("robot.yaml"))
    sprung, loose = (find_equilibrium(model, passive=passive).q[0] for passive in (True, False))
    assert 0.3 < sprung < 0.5 and loose == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("given, error, words", [
    ({"q": [1.0]}, ld.ShapeError, r"q has the wrong shape: expected \(2,\), got \(1,\)"),
    ({"q": [[1.0, 0.0]]}, ld.ShapeError, r"q has the wrong shape: expected \(2,\), got \(1, 2\)"),
    ({"q": [np.nan, 0.0]}, ld.ConfigurationError, "is not finite"),
    ({"tau": [1.0]}, ld.ShapeError, "tau has the wrong shape"),
    ({"tau": [[1.0, 2.0]]}, ld.ShapeError, r"tau has the wrong shape: expected \(2,\), got \(1, 2\)"),
    ({"tau": [np.inf, 0.0]}, ld.ConfigurationError, r"tau\[0\] \(shoulder\) is not finite"),
    ({"overrides": {"gravity": [0, 0, 0]}}, UsageError, "at, overrides and strict require a file or scenario; use"),
    ({"at": 1.0}, UsageError, "at, overrides and strict require a file or scenario; use"),
    ({"tau": [1e3, 0.0]}, ComputationError, "no equilibrium was found near the configuration"),
])
def test_what_is_refused_of_a_model(given, error, words):
    with pytest.raises(error, match=words):
        find_equilibrium(ld.load(ROOT / "robots/double_pendulum.yaml"), **given)


@pytest.mark.parametrize("given", [{"q": [0, 0]}, {"tau": [0, 0]}, {"passive": False}])
def test_a_file_has_its_own_state_and_forces(given):
    with pytest.raises(UsageError, match="q, tau and passive require a Model; for a scenario use overrides"):
        find_equilibrium(ROOT / "robots/double_pendulum.yaml", **given)


@pytest.mark.parametrize("length, mass, time", [(1e3, 1.0, 1.0), (1e-3, 1.0, 1.0), (1e3, 1e-6, 1e-2), (1.0, 1.0, 1e2)])
def test_the_same_equilibrium_is_found_in_all_units(length, mass, time):
    """Steps were at most 0.7 m and guesses 0.2 m away, whatever a metre is: a slide of 400 mm was not found in millimetres."""
    turn, slide = Coordinate(), Coordinate(stiffness=40.0)
    robot = Robot("polar", (Link("arm", 0.5, (0.0, 0.0, -0.1), BALL), Link("bob", 2.0, (0.0, 0.0, -0.1), BALL)), (
        Joint("pivot", "continuous", WORLD, "arm", axes=((0.0, 1.0, 0.0),), coordinates=(turn,)),
        Joint("slide", "prismatic", "arm", "bob", axes=((0.0, 0.0, -1.0),), coordinates=(slide,))))
    found = find_equilibrium(ld.build(in_units(robot, length, mass, time)), [0.7, 0.1 * length])
    np.testing.assert_allclose(found.q / [1.0, length], [0.0, 2.0 * 9.81 / 40.0], atol=1e-9)           # k x = m g, straight down
    assert found.system.stability == "neutral"


def test_an_equilibrium_that_is_not_reached_from_the_given_configuration_is_reported():
    """A body on a free joint under a constant force: the search from nearby stops, and restarts find another place."""
    robot = random_robot(12345, 8, grounded=True)
    model = ld.build(replace(robot, joints=tuple(replace(j, coordinates=tuple(replace(c, friction=0.0) for c in j.coordinates))
                                                 for j in robot.joints)))
    rng = np.random.default_rng(2)
    q, zero = ld.random_configuration(model, rng), np.zeros(model.nv)
    start = ld.integrate(model, q, rng.uniform(-0.01, 0.01, model.nv))
    tau = ld.inverse_dynamics(model, q, zero, zero)
    with pytest.warns(ld.LiedynWarning, match="the search did not converge from the given configuration; the equilibrium was "
                                              "found "):
        far = ld.find_equilibrium(model, start, tau=tau)
    assert np.abs(ld.difference(model, start, far.q)).max() > 0.1
    near = ld.find_equilibrium(model, start, tau=tau, hold="joint7")
    assert near.warnings == () and np.abs(ld.difference(model, start, near.q)).max() < 0.1


@pytest.mark.parametrize("more", [{"overrides": ("passive=false",)}, {"at": 0.5}, {"strict": True}])
def test_what_a_scenario_only_has_is_refused_for_a_model(more):
    with pytest.raises(ld.UsageError, match="at, overrides and strict require a file or scenario"):
        ld.find_equilibrium(ld.load("robots/double_pendulum.yaml"), [0.1, 0.0], **more)
