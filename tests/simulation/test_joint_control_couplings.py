"""Control laws of robots with mimic joints and couplings: they act on the independent joints, and know the followers."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ScenarioError
from liedyn.simulation.preparation import prepare

ROBOT = """
name: coupled
links:
  a: {mass: 1.0, com: [0, 0, -0.3], inertia: [0.02, 0.03, 0.01]}
  b: {mass: 0.7, com: [0, 0.1, -0.2], inertia: [0.02, 0.01, 0.01]}
  c: {mass: 0.5, com: [0.1, 0, -0.2], inertia: [0.01, 0.01, 0.01]}
  d: {mass: 0.4, com: [0.1, 0, -0.1], inertia: [0.01, 0.01, 0.01]}
joints:
  j1: {type: continuous, parent: world, child: a, axis: [0, 1, 0], damping: 0.3, armature: 0.1}
  j2: {type: continuous, parent: a, child: b, axis: [0.6, 0.8, 0], origin: {xyz: [0, 0, -0.6]}, stiffness: 3}
  j3: {type: prismatic, parent: b, child: c, axis: [0, 0, 1], origin: {xyz: [0, 0, -0.4]}, armature: 0.2, damping: 0.4,
       limits: {lower: -9, upper: 9, velocity: 99, effort: 99}, mimic: {joint: j1, multiplier: 0.5, offset: 0.1}}
  j4: {type: continuous, parent: a, child: d, axis: [1, 0, 0], friction: 0.2, mimic: {joint: j3, multiplier: -2}}
"""
START = {"q": {"j1": 0.3, "j2": -0.2, "j3": 0.25, "j4": -0.5}}


@pytest.fixture(params=["auto", "generic"])
def run(tmp_path, request, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", request.param)
    (tmp_path / "robot.yaml").write_text(ROBOT)

    def run(**scenario):
        given = {"robot": str(tmp_path / "robot.yaml"), "duration": 1.0, "initial": START, **scenario}
        return ld.run_scenario(given)
    return run


def test_gravity_compensation_holds_the_robot_still(run):
    for passive in (False, True):
        result = run(control={"law": "gravity_compensation"}, passive=passive, joints={"j2": {"torque": -0.6}} if passive else {})
        static = ld.inverse_dynamics(result.model, result.q[0], *np.zeros((2, 4)), passive=passive)
        np.testing.assert_allclose(result.tau[0], static, atol=1e-12)
        assert np.abs(result.v).max() < 1e-10 and not result.tau[:, 2:].any()


@pytest.mark.parametrize("method", ["rk4", "Radau"])
@pytest.mark.parametrize("motion", [{"*": "0.3*sin(2*t)"}, {"j1": "0.3*sin(2*t)"}, {"j2": "0.2*cos(t)"}])
def test_computed_torque_gives_the_error_its_poles(run, motion, method):
    result = run(control={"law": "computed_torque", "motion": motion, "poles": [-8, -9]},
                 joints={"j2": {"torque": 0.1}} if list(motion) == ["j1"] else {},
                 integrator={"method": method, **({} if method == "rk4" else {"rtol": 1e-10, "atol": 1e-12})})
    t, model = result.t, result.model
    driven = [0, 1] if "*" in motion else [model.v_names.index(name) for name in motion]
    for k in driven:
        reference, rate = (0.2 * np.cos(t), 0.0) if "j2" in motion else (0.3 * np.sin(2 * t), 0.6)
        begin, speed = result.q[0, k] - reference[0], -rate + result.v[0, k]
        slow = (speed + 9 * begin) * np.exp(-8 * t)                                  # e'' + 17 e' + 72 e = 0
        np.testing.assert_allclose(result.q[:, k] - reference, slow - (speed + 8 * begin) * np.exp(-9 * t), atol=1e-7)
    mask = np.isin(np.arange(4), driven)
    _, tau = ld.hybrid_dynamics(model, result.q, result.v, result.a, result.tau, mask)
    np.testing.assert_allclose(result.tau, tau, atol=1e-9)
    assert not result.tau[:, 2:].any()


def test_pd_with_gravity_reaches_its_target(run):
    law = {"kp": 60, "kd": 15, "target": 0.4, "gravity": True}
    other = {**law, "kp": 600, "target": -0.1}
    result = run(duration=8.0, joints={"j1": {"torque": {"pd": law}}, "j2": {"torque": {"pd": other}}}, passive=False)
    np.testing.assert_allclose(result.q[-1], [0.4, -0.1, 0.3, -0.6], atol=1e-6)


def test_state_feedback_begins_at_a_setpoint_on_the_couplings(run):
    gain = [[50, 0, 0, 0, 9, 0, 0, 0], [0, 50, 0, 0, 0, 9, 0, 0]]
    law = {"law": "state_feedback", "joints": ["j1", "j2"], "gain": gain, "setpoint": {"q": {"j1": 0.2, "j2": 0.1}}}
    result = run(duration=4.0, control=law, initial={"q": {"j1": 0.2, "j2": 0.1, "j3": 0.2, "j4": -0.4}})
    np.testing.assert_allclose(result.q, np.tile(result.q[0], (len(result.t), 1)), atol=1e-9)
    law["setpoint"]["q"]["j3"] = 0.5
    with pytest.raises(ScenarioError, match=r"the setpoint contradicts a coupling .*: expected \[0\.2\], got \[0\.5\]"):
        run(control=law)


def test_steep_friction_of_a_follower_is_that_of_its_driver(run):
    """Radau did not end: differences for its Jacobian were longer than the range of velocities in which this friction changes."""
    runs = [run(joints={joint: {"torque": f"-5*v({joint})/(abs(v({joint})) + 1e-9)"}}) for joint in ("j4", "j1")]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-5)               # j4 moves by -1 of j1
    assert all(result.statistics.steps < 1000 and np.ptp(result.q[:, 0]) > 0.01 for result in runs)


def test_linearization_has_the_poles_of_computed_torque(run, tmp_path):
    (tmp_path / "robot.yaml").write_text(ROBOT)
    given = {"robot": str(tmp_path / "robot.yaml"), "duration": 1.0, "initial": START,
             "control": {"law": "computed_torque", "motion": {"*": "0.3*sin(2*t)"}, "poles": [-8, -9]}}
    system = ld.linearize_scenario(given, at=0.3)
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(system.system.A).real), [-9, -9, -8, -8], atol=1e-6)


def test_a_motion_of_a_follower_and_task_space_are_refused(run):
    with pytest.raises(ScenarioError, match=r"joint j3 follows other joints by a coupling: expected a motion of the .* j1, j2"):
        run(control={"law": "computed_torque", "motion": {"j3": "t"}, "poles": [-8, -9]})
    with pytest.raises(ScenarioError, match="task_space does not support robots with couplings"):
        run(control={"law": "task_space", "link": "c", "target": {"xyz": [0.1, 0, -1]}, "bandwidth": 5})


@pytest.mark.parametrize("keys", [
    {"control": {"law": "gravity_compensation", "joints": ["j4"]}},
    {"joints": {"j3": {"torque": {"pd": {"kp": 10, "kd": 1, "target": 0.2, "gravity": True}}}}}])
def test_gravity_compensation_of_a_follower_alone_is_an_error(run, keys):
    """It had no effect, without a message: gravity forces act on the drivers."""
    with pytest.raises(ScenarioError, match=r"gravity compensation of j[34], which follows j1, has no effect"):
        run(**keys)


def test_gravity_compensation_of_a_follower_and_its_driver(run):
    result = run(control={"law": "gravity_compensation", "joints": ["j1", "j3"]}, passive=False, duration=0.01)
    static = ld.inverse_dynamics(result.model, result.q[0], *np.zeros((2, 4)), passive=False)
    np.testing.assert_allclose(result.tau[0], np.where([True, False, False, False], static, 0.0), atol=1e-12)


@pytest.mark.parametrize("keys", [{"control": {"law": "gravity_compensation", "joints": ["j2"]}},
                                  {"joints": {"j2": {"torque": {"pd": {"target": 0, "kp": 1, "kd": 1, "gravity": True}}}}}])
def test_a_joint_that_couplings_fix_cannot_be_driven_by_name(tmp_path, keys):
    (tmp_path / "robot.yaml").write_text(f"{ROBOT}couplings: {{lock: {{terms: {{j2: 1}}}}}}")
    with pytest.raises(ScenarioError, match="joint j2 cannot move, since couplings fix it: a law has no effect there"):
        prepare({"robot": str(tmp_path / "robot.yaml"), "duration": 1.0, **keys}, ())


def test_a_row_of_a_gain_that_the_law_does_not_drive_is_named(tmp_path):
    (tmp_path / "robot.yaml").write_text(f"{ROBOT}actuated: [j1]")
    control = {"law": "state_feedback", "gain": {"tau.j2": {"q.j2": 3.0}}, "setpoint": {"q": {}}}
    with pytest.raises(ScenarioError, match="joint j2 is not among the joints that the law drives: expected `joints` of the law"):
        prepare({"robot": str(tmp_path / "robot.yaml"), "duration": 1.0, "control": control}, ())


def test_motors_at_followers_drive_the_joints_that_they_follow(tmp_path):
    """A URDF often has its transmission at the mimic joint."""
    (tmp_path / "robot.yaml").write_text(ROBOT + "actuated: [j4, j2]\n")
    for law in ({"law": "gravity_compensation"}, {"law": "gravity_compensation", "joints": ["j1", "j2"]},
                {"law": "computed_torque", "motion": {"j1": 0.3, "j2": -0.2}, "bandwidth": 5}):
        result = ld.run_scenario({"robot": str(tmp_path / "robot.yaml"), "duration": 0.1, "initial": START, "control": law,
                                  "passive": False})
        assert np.abs(result.v).max() < 1e-9
        assert "joint-without-motor" not in [warning.code for warning in result.warnings]
    problem = {"robot": str(tmp_path / "robot.yaml"), "duration": 1, "initial": START}
    (tmp_path / "robot.yaml").write_text(ROBOT + "actuated: [j2]\n")
    codes = [warning.code for warning in prepare(problem | {"control": {"law": "gravity_compensation", "joints": ["j1", "j2"]}},
                                                 {}).warnings]
    assert "joint-without-motor" in codes
