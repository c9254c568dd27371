"""Control laws of robots with loops: their forces are those of constrained inverse dynamics at the actuated joints."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from degenerate_mechanisms import parallelogram
from liedyn.errors import ComputationError, ScenarioError
from liedyn.integrators.diagnosis import failure
from liedyn.kernels.constraints.driver import OUT_OF_RANGE
from liedyn.kernels.simulation.right_hand_side import NOT_FINITE
from liedyn.robot_files import load
from liedyn.simulation.preparation import prepare
from messages import has_parts

ROBOTS = Path(__file__).parents[2] / "robots"
FIVE_BAR = {"robot": str(ROBOTS / "five_bar.yaml"), "duration": 1.0,
            "initial": {"q": {"left": -1.9, "left_elbow": 0.98, "right": -1.2, "right_elbow": -1.0}}}
FOUR_BAR = {"robot": str(ROBOTS / "four_bar.yaml"), "duration": 0.5, "initial": {"q": {"crank": 1.2, "knee": 0.2, "rocker": 1.8}}}
DELTA = {"robot": str(ROBOTS / "delta.yaml"), "duration": 0.2, "initial": {"q": {"platform": [0, 0, -0.75, 0, 0, 0, 1]}}}
TRACKS = {"law": "computed_torque", "motion": {"left": "-1.9 + 0.2*sin(3*t)", "right": "-1.2 + 0.1*t"}, "poles": [-8, -9]}

pytestmark = [pytest.mark.filterwarnings("ignore:the initial:UserWarning"),
              pytest.mark.filterwarnings("ignore:the mechanism passed:UserWarning")]


def balanced(result, passive=True):
    """Return the forces of the actuated joints that produce the motion of a run."""
    return ld.constrained_inverse_dynamics(result.model, result.q, result.v, result.a, passive=passive).tau


@pytest.mark.parametrize("scenario", [FIVE_BAR, FOUR_BAR, DELTA], ids=["five_bar", "four_bar", "delta"])
def test_gravity_compensation_holds_the_mechanism_still(scenario):
    result = ld.run_scenario({**scenario, "control": {"law": "gravity_compensation"}, "passive": False})
    np.testing.assert_allclose(result.q, np.tile(result.q[0], (len(result.t), 1)), atol=1e-10)
    rest = np.zeros_like(result.v)
    expected = ld.constrained_inverse_dynamics(result.model, result.q, rest, rest, passive=False).tau
    np.testing.assert_allclose(result.tau, expected, atol=1e-10 * np.abs(expected).max())
    assert np.abs(expected).max() > 0.01


@pytest.mark.parametrize("integrator", [{"method": "rk4"}, {"method": "Radau", "rtol": 1e-10, "atol": 1e-12},
                                        {"method": "dopri5", "rtol": 1e-10, "atol": 1e-12}], ids=lambda x: x["method"])
def test_computed_torque_gives_the_error_its_poles(integrator):
    initial = {"q": {**FIVE_BAR["initial"]["q"], "left": -1.85}}
    result = ld.run_scenario({**FIVE_BAR, "initial": initial, "control": TRACKS, "integrator": integrator})
    t, (left, right) = result.t, (result.model.v_index(name).start for name in ("left", "right"))
    error = result.q[0, left] + 1.9
    rate = result.v[0, left] - 0.6
    slow, fast = (rate + 9 * error) * np.exp(-8 * t), (rate + 8 * error) * np.exp(-9 * t)
    np.testing.assert_allclose(result.q[:, left], -1.9 + 0.2 * np.sin(3 * t) + slow - fast, atol=1e-7)
    np.testing.assert_allclose(result.q[:, right], -1.2 + 0.1 * t, atol=1e-7)
    assert error > 0.04
    np.testing.assert_allclose(result.tau, balanced(result), atol=1e-7)


def test_computed_torque_of_one_motor_leaves_the_forces_of_the_others():
    result = ld.run_scenario({**FIVE_BAR, "duration": 0.2, "joints": {"right": {"torque": "0.05*sin(9*t)"}},
                              "control": {"law": "computed_torque", "motion": {"left": "-1.9 + 0.2*t**2"}, "poles": [-8, -9]}})
    left, right = (result.model.v_index(name).start for name in ("left", "right"))
    np.testing.assert_allclose(result.q[:, left], -1.9 + 0.2 * result.t**2, atol=1e-8)
    np.testing.assert_allclose(result.tau[:, right], 0.05 * np.sin(9 * result.t), atol=1e-12)
    np.testing.assert_allclose(result.tau, balanced(result), atol=1e-7)


def test_a_start_on_the_references_moves_passive_joints_first():
    result = ld.run_scenario({**FIVE_BAR, "initial": {"q": {"left_elbow": 1.1, "right_elbow": -0.9}}, "control": TRACKS})
    np.testing.assert_allclose(result.q[0, [0, 2]], [-1.9, -1.2], atol=1e-12)
    np.testing.assert_allclose(result.v[0, [0, 2]], [0.6, 0.1], atol=1e-12)


def test_pd_laws_with_gravity_reach_their_targets():
    laws = {name: {"torque": {"pd": {"kp": 5, "kd": 0.5, "target": target, "gravity": True}}}
            for name, target in (("left", -1.8), ("right", -1.3))}
    result = ld.run_scenario({**FIVE_BAR, "duration": 4.0, "joints": laws})
    np.testing.assert_allclose(result.q[-1, [0, 2]], [-1.8, -1.3], atol=1e-7)


def test_sampled_laws_hold_the_torques_between_samples():
    result = ld.run_scenario({**FIVE_BAR, "control": TRACKS, "sampling": {"rate": 1000}, "output_step": 0.0005})
    np.testing.assert_allclose(result.tau[0:-1:2, [0, 2]], result.tau[1::2, [0, 2]], rtol=1e-12)
    np.testing.assert_allclose(result.q[:, 0], -1.9 + 0.2 * np.sin(3 * result.t), atol=2e-4)


@pytest.mark.parametrize(("control", "poles"), [
    ({**TRACKS, "motion": {"left": -1.9, "right": -1.2}}, [-9, -9, -8, -8]), ({"law": "gravity_compensation"}, [0, 0, 0, 0])],
    ids=["computed_torque", "gravity_compensation"])
def test_linearization_has_the_poles_of_the_law(control, poles):
    system = ld.linearize_scenario({**FIVE_BAR, "control": control}).system
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(system.A).real), poles, atol=1e-5)


def test_linearization_of_a_moving_mechanism_agrees_with_differences():
    """In the coordinates of the motors, the error has the poles of the law, also in motion."""
    system = ld.linearize_scenario({**FIVE_BAR, "control": TRACKS}, at=0.3, independent=["left", "right"]).system
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(system.A).real), [-9, -9, -8, -8], atol=1e-6)


def test_the_law_of_a_mimic_joint_is_the_same_by_elimination_and_by_multipliers(tmp_path):
    """A loop that adds no constraint selects the multipliers."""
    robot = """
links:
  a: {mass: 1.0, com: [0.1, 0, -0.3], inertia: [0.02, 0.03, 0.01]}
  b: {mass: 0.7, com: [0, 0.1, -0.2], inertia: [0.02, 0.01, 0.01]}
  c: {mass: 0.5, com: [0.1, 0, -0.2], inertia: [0.01, 0.01, 0.01]}
joints:
  j1: {type: continuous, parent: world, child: a, axis: [0, 1, 0], damping: 0.3, armature: 0.1}
  j2: {type: continuous, parent: a, child: b, axis: [1, 0, 0], origin: {xyz: [0, 0, -0.6]}, mimic: {joint: j1, multiplier: 0.5}}
  j3: {type: continuous, parent: world, child: c, axis: [0, 1, 0]}
actuated: [j1, j3]
"""
    forces = []
    for k, loops in enumerate(["", "loops: {pin: {type: revolute, a: world, b: c, axis: [0, 1, 0]}}\n"]):
        (tmp_path / f"{k}.yaml").write_text(f"name: robot{robot}{loops}")
        result = ld.run_scenario({"robot": str(tmp_path / f"{k}.yaml"), "duration": 0.5, "integrator": {"method": "dopri5"},
                                  "initial": {"q": {"j1": 0.3, "j2": 0.15}},
                                  "control": {"law": "computed_torque", "motion": {"*": "0.3 + sin(t)"}, "poles": [-3, -4]}})
        forces.append(result.tau)
    np.testing.assert_allclose(*forces, atol=1e-6)


def without_actuated(tmp_path, name):
    text = (ROBOTS / f"{name}.yaml").read_text()
    (tmp_path / f"{name}.yaml").write_text(text[:text.index("actuated:")])
    return str(tmp_path / f"{name}.yaml")


BAD = {
    "unknown": ({"law": "gravity_compensation"}, "the actuated joints of the robot are not known: expected `joints` of the law "
                "with names of joints, or the key `actuated` of the robot file"),
    "too few": ({"law": "gravity_compensation", "joints": ["left"]}, "gravity compensation does not hold the robot … got 'left; "
                "1 degree of freedom remains'"),
    "too many": ({"law": "gravity_compensation", "joints": ["*"]},
                 "gravity compensation drives joints that depend on each other, or cannot move: expected"),
    "motions that depend on each other": (
        {"law": "computed_torque", "motion": {"left": 0, "right": 0, "left_elbow": 0}, "bandwidth": 5},
        "computed torque drives joints that depend on each other, or cannot move … got 'left, left_elbow, right, 1 more than"),
    "task space": ({"law": "task_space", "link": "tool", "target": {"xyz": [0, 0, 0]}, "bandwidth": 5},
                   "task_space does not support robots with loops … got 'pin'"),
    "state feedback": ({"law": "state_feedback", "gain": [[0] * 8] * 2, "joints": ["left", "right"], "setpoint": {}},
                       "state_feedback does not support robots with loops … got 'pin'"),
}


@pytest.mark.parametrize(("control", "message"), BAD.values(), ids=BAD)
def test_a_law_whose_forces_are_not_determined_is_refused(tmp_path, control, message):
    with pytest.raises(ScenarioError) as caught:
        ld.run_scenario({**FIVE_BAR, "robot": without_actuated(tmp_path, "five_bar"), "control": control})
    assert has_parts(str(caught.value), message)


RIGID = """
links: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}, c: {mass: 1, inertia: [1, 1, 1]}}
joints:
  j: {type: continuous, parent: world, child: a, axis: [0, -1, 0]}
  k: {type: continuous, parent: world, child: b, axis: [0, -1, 0], origin: {xyz: [1, 0, 0]}}
  free: {type: continuous, parent: b, child: c, axis: [0, -1, 0], origin: {xyz: [1, 0, 0]}}
loops: {pin: {type: revolute, a: {link: a, xyz: [1, 0, 0]}, b: {link: b, xyz: [1, 0, 0]}, axis: [0, 1, 0]}}
"""


def test_a_joint_that_loops_fix_is_named(tmp_path):
    (tmp_path / "robot.yaml").write_text(RIGID)
    scenario = {"robot": str(tmp_path / "robot.yaml"), "duration": 0.1, "initial": {"q": {"j": np.pi / 3, "k": 2 * np.pi / 3}}}
    with pytest.raises(ScenarioError, match="got 'j, free, 1 more than the loops leave independent; j cannot move'"):
        prepare({**scenario, "control": {"law": "gravity_compensation", "joints": ["j", "free"]}}, ())


@pytest.mark.parametrize(("keys", "codes"), [
    ({"control": {"law": "gravity_compensation", "joints": ["left", "left_elbow"]}}, ["joint-without-motor"]),
    ({"control": {"law": "computed_torque", "bandwidth": 5, "motion": {"left": -1.9, "right_elbow": -1}}},
     ["joint-without-motor"]),
    ({"joints": {"left_elbow": {"torque": {"pd": {"target": 0, "kp": 1, "kd": 1}}}}}, ["joint-without-motor"]),
    ({"joints": {"left_elbow": {"torque": "sin(t)"}}}, ["passive-torque"]),
    ({"joints": {"*": {"torque": 0}}}, []), ({"joints": {"left": {"torque": 1}}}, []),
    ({"control": {"law": "gravity_compensation"}}, []),
    ({"control": {"law": "computed_torque", "bandwidth": 5, "motion": {"left*": -1.9}}}, [])])
def test_joints_without_motor_are_named(keys, codes):
    """`actuated` of the five-bar names left and right."""
    messages = [warning for warning in prepare({**FIVE_BAR, **keys}, ()).warnings if "actuated" in str(warning)]
    assert [message.code for message in messages] == codes
    assert all("elbow, which `actuated` of the robot file does not name" in str(message) for message in messages)


def test_laws_refuse_driven_loops(tmp_path):
    text = (ROBOTS / "five_bar.yaml").read_text().replace("pin: {", "pin: {driven: true, ")
    (tmp_path / "robot.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=r"gravity_compensation does not support driven loops.*got 'pin'"):
        ld.run_scenario({**FIVE_BAR, "robot": str(tmp_path / "robot.yaml"), "control": {"law": "gravity_compensation"}})


def test_a_motion_through_a_dead_centre_of_the_actuator_ends_with_an_error():
    """The rocker cannot pass its limit, where the crank and the coupler are in line."""
    control = {"law": "computed_torque", "motion": {"rocker": "1.8 + 2*t"}, "poles": [-8, -9]}
    with pytest.raises(ComputationError, match=r"the constraint pin cannot be closed .* singular configuration"):
        ld.run_scenario({**FOUR_BAR, "control": control, "duration": 2.0})


@pytest.fixture
def flat_at_half(tmp_path):
    """Return the scenario of a parallelogram whose driven crank makes it flat at 0.5 s."""
    robot = parallelogram(0.4).robot
    ld.save(robot, tmp_path / "robot.yaml")
    a, b, c = (joint.name for joint in robot.joints)
    return {"robot": str(tmp_path / "robot.yaml"), "duration": 0.7, "passive": False, "integrator": {"method": "dopri5"},
            "initial": {"q": {a: -0.5, b: 0.5, c: -0.5}, "v": {a: 1.0, b: -1.0, c: 1.0}},
            "control": {"law": "computed_torque", "motion": {a: "t - 0.5"}, "bandwidth": 9}}


@pytest.mark.parametrize(("step", "names_row"), [(0.25, True), (0.35, False)])
def test_a_row_in_a_singular_configuration_is_named(flat_at_half, step, names_row):
    """Forces that the motion determines are continuous there; those of the row are others."""
    result = ld.run_scenario({**flat_at_half, "output_step": step})
    told, = (str(warning) for warning in result.warnings if warning.code == "singular-configuration")
    assert ("forces and multipliers are not determined in the row at t = 0.5 s: omit it" in told) is names_row


@pytest.mark.parametrize("code", [NOT_FINITE, OUT_OF_RANGE])            # compiled methods, those of SciPy
def test_a_law_that_fails_in_a_singular_configuration_names_it(flat_at_half, code):
    problem = prepare(flat_at_half, ()).problem
    text = str(failure(problem, code, 0.5, problem.workspace()))
    assert "no longer finite soon after t = 0.5 s: the mechanism may be at a singular configuration, where forces of " in text


def test_actuated_joints_of_a_tree_are_the_default(tmp_path):
    source = ROBOTS / "double_pendulum.yaml"
    robot = load(source)
    (tmp_path / "robot.yaml").write_text(source.read_text() + f"\nactuated: [{robot.joint_names[0]}]\n")
    result = ld.run_scenario({"robot": str(tmp_path / "robot.yaml"), "duration": 0.01, "passive": False,
                              "initial": {"q": dict.fromkeys(robot.joint_names, 0.4)},
                              "control": {"law": "gravity_compensation"}})
    expected = ld.gravity_force(robot, result.q[0])
    np.testing.assert_allclose(result.tau[0], [expected[0], 0.0], atol=1e-12)
    assert abs(expected[1]) > 0.1


@pytest.mark.parametrize("keys", [
    {"events": {"stop": {"at": 0.1, "do": {"lock": "left_elbow"}}}},
    {"phases": {"first": {}, "then": {"joints": {"left_elbow": {"prescribe": {"acceleration": 0}}}}},
     "events": {"stop": {"at": 0.1, "do": {"phase": "then"}}}}], ids=["lock", "phase"])
def test_a_joint_that_is_fixed_later(keys):
    """Gravity compensation used arbitrary forces, and computed torque ended with numbers that are not finite."""
    scenario = {**FIVE_BAR, "duration": 0.2, **keys}
    result = ld.run_scenario({**scenario, "control": {"law": "gravity_compensation"}})
    left = result.model.v_index("left").start
    np.testing.assert_allclose(result.tau[:, left], result.tau[0, left], rtol=1e-9)
    with pytest.raises(ComputationError, match=r"drives joints that depend on each other.* from t = 0.1 s: left, "):
        ld.run_scenario({**scenario, "control": TRACKS})
