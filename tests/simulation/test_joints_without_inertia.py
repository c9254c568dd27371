"""Runs of robots with joints that move no inertia: an error before the run, or the run of the robot with the link welded."""
import numpy as np
import pytest

import liedyn as ld

INERTIAL = ('<inertial><origin xyz="0.2 0.02 0"/><mass value="{}"/>'
            '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>')
LIMIT = '<limit lower="-30" upper="30" effort="100" velocity="100"/>'


def arm(tmp_path, kind="revolute"):
    """Return two links, and a tool without inertia."""
    moving = "" if kind == "fixed" else f'<axis xyz="1 0 0"/>{LIMIT}'
    (tmp_path / f"{kind}.urdf").write_text(
        f'<robot name="arm"><link name="base"/><link name="l1">{INERTIAL.format(1)}</link>'
        f'<link name="l2">{INERTIAL.format(0.5)}</link><link name="tool"/>'
        f'<joint name="j1" type="revolute"><parent link="base"/><child link="l1"/><axis xyz="0 1 0"/>{LIMIT}</joint>'
        f'<joint name="j2" type="revolute"><parent link="l1"/><child link="l2"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>{LIMIT}'
        f'</joint><joint name="j3" type="{kind}"><parent link="l2"/><child link="tool"/><origin xyz="0.3 0 0"/>{moving}</joint>'
        '</robot>')
    return str(tmp_path / f"{kind}.urdf")


METHODS = pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas5p", "generalized_alpha"])
NAMED = (r"the acceleration of joint 'j3' is not defined: the joint moves link \"tool\", which has no inertia; prescribe its "
         r"motion \(joints.j3.prescribe.velocity=0\), or give the link mass and inertia, or the joint armature")


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@METHODS
def test_a_run_with_the_joint_prescribed_is_that_of_the_welded_robot(tmp_path, method):
    common = {"duration": 0.2, "output_step": 0.05, "integrator": {"method": method}}
    run = ld.run_scenario({"robot": arm(tmp_path), "joints": {"j3": {"prescribe": {"position": "sin(3*t)"}}}, **common})
    welded = ld.run_scenario({"robot": arm(tmp_path, "fixed"), **common})
    np.testing.assert_allclose(run.q[:, :2], welded.q, atol=1e-7)
    assert np.abs(run.tau[:, 2]).max() < 1e-12
    assert run.check["inverse_dynamics_residual"] < 1e-9


@METHODS
def test_a_torque_driven_joint_without_inertia_is_an_error_before_the_run(tmp_path, method):
    with pytest.raises(ld.ComputationError, match=NAMED):
        ld.run_scenario({"robot": arm(tmp_path), "duration": 0.2, "integrator": {"method": method}})


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
def test_a_later_phase_is_checked_before_the_run(tmp_path):
    scenario = {"robot": arm(tmp_path), "duration": 0.2,
                "phases": {"one": {"joints": {"j3": {"prescribe": {"velocity": 1.0}}}}, "two": {}},
                "events": {"go": {"at": 0.1, "do": {"phase": "two"}}}}
    with pytest.raises(ld.ComputationError, match="the acceleration of joint 'j3' is not defined") as caught:
        ld.run_scenario(scenario)
    assert caught.value.at == 0.0


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
def test_impulses_beside_a_joint_without_inertia(tmp_path):
    """A lock of another joint inverts the mass matrix."""
    common = {"duration": 0.2, "output_step": 0.05, "events": {"lock": {"at": 0.1, "do": {"lock": "j1"}}}}
    run = ld.run_scenario({"robot": arm(tmp_path), "joints": {"j3": {"prescribe": {"velocity": 1.0}}}, **common})
    welded = ld.run_scenario({"robot": arm(tmp_path, "fixed"), **common})
    np.testing.assert_allclose(run.q[:, :2], welded.q, atol=1e-9)
    np.testing.assert_allclose(run.q[-1, 2], 0.2, atol=1e-12)


def gripper(tmp_path, left, right):
    (tmp_path / "gripper.urdf").write_text(
        f'<robot name="gripper"><link name="hand">{INERTIAL.format(1)}</link>'
        + "".join(f'<link name="{name}">{INERTIAL.format(mass) if mass else ""}</link>'
                  for name, mass in (("l", left), ("r", right)))
        + f'<joint name="f1" type="prismatic"><parent link="hand"/><child link="l"/><axis xyz="0 1 0"/>{LIMIT}</joint>'
        f'<joint name="f2" type="prismatic"><parent link="hand"/><child link="r"/><axis xyz="0 -1 0"/>{LIMIT}<mimic joint="f1"/>'
        '</joint></robot>')
    return str(tmp_path / "gripper.urdf")


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@METHODS
@pytest.mark.parametrize(("left", "right"), [(0.1, 0), (0, 0.1)])
def test_a_mimic_joint_without_inertia(tmp_path, method, left, right):
    """The reduced inertia is 0.1 kg, whichever finger has the mass. The constraint transmits the force to that finger."""
    scenario = {"robot": gripper(tmp_path, left, right), "duration": 0.1, "integrator": {"method": method}}
    run = ld.run_scenario(scenario | {"joints": {"f1": {"torque": 1.0}}})
    np.testing.assert_allclose(run.q[-1], 0.5 * 10.0 * 0.1**2, rtol=1e-8)
    np.testing.assert_allclose(np.abs(run.multipliers), 1.0 if right else 0.0, atol=1e-7)
    assert run.check["inverse_dynamics_residual"] < 1e-6
    assert abs(run.check["energy_balance_relative"]) < 1e-8
    run = ld.run_scenario(scenario | {"joints": {"f1": {"prescribe": {"position": "0.1*t**2"}}}})
    np.testing.assert_allclose(run.tau[:, 0], 0.02, atol=1e-6)
    np.testing.assert_allclose(run.q[-1], 0.001, rtol=1e-7)


def test_a_gripper_without_inertia_names_its_joints(tmp_path):
    with pytest.raises(ld.ComputationError, match="the acceleration of joint 'f2' is not defined"):
        ld.run_scenario({"robot": gripper(tmp_path, 0, 0), "duration": 0.1})
