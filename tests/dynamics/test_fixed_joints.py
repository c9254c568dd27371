"""Models with fixed joints: the dynamics are those of hybrid dynamics with these joints at rest."""
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from coupled_robots import coupled_robot, equations
from liedyn.errors import ConfigurationError, ModelError, NameLookupError, ShapeError, UsageError
from zoo import ROBOTS, model_of, random_robot, state

ROOT = Path(__file__).parents[2]
SMALL = {"rtol": 1e-9, "atol": 1e-9}


def positions(model, q, names):
    return {name: q[model.q_index(name)] for name in names}


def free(model, names, kind):
    """Indices of the coordinates of the other joints."""
    return [k for joint in model.joints if joint.name not in names for k in range(*getattr(joint, kind).indices(10_000))]


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics_are_hybrid_dynamics_at_rest(name, half):
    model = model_of(name)
    names = model.joint_names[half::2]
    q, v, a, tau = state(model, 3)
    reduced, (iq, iv) = ld.fix_joints(model, positions(model, q, names)), (free(model, names, kind) for kind in "qv")
    assert reduced.joint_names == tuple(each for each in model.joint_names if each not in names)
    np.testing.assert_allclose(ld.link_poses(reduced, q[iq]), ld.link_poses(model, q), **SMALL)
    at_rest = np.isin(np.arange(model.nv), iv)
    v, a, wrench = v * at_rest, a * at_rest, {model.link_names[-1]: np.arange(6.0)}
    expected = ld.hybrid_dynamics(model, q, v, a, tau, ~at_rest, f_ext=wrench)[0][iv]
    if reduced.nv:
        found = ld.forward_dynamics(reduced, q[iq], v[iv], tau[iv], f_ext=wrench)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
        np.testing.assert_allclose(ld.inverse_dynamics(reduced, q[iq], v[iv], a[iv]), ld.inverse_dynamics(model, q, v, a)[iv],
                                   rtol=1e-8, atol=1e-8)


def test_joints_are_fixed_in_any_order():
    model = model_of("every kind, floating")
    q = state(model, 4)[0]
    first, second = positions(model, q, model.joint_names[1:4]), positions(model, q, model.joint_names[5:9])
    once, twice = ld.fix_joints(model, first | second), ld.fix_joints(ld.fix_joints(model, second), first)
    np.testing.assert_allclose(once.constants, twice.constants, rtol=1e-12, atol=1e-12)
    assert ld.fix_joints(model, {}).v_names == model.v_names


@pytest.mark.parametrize("seed", range(6))
def test_couplings_determine_further_joints(seed):
    """Positions that satisfy the equations of the reduced robot satisfy those of the whole one, with the fixed coordinates."""
    model = coupled_robot(seed)
    driver = next(joint.mimic.joint for joint in model.description.joints if joint.mimic)
    gear = next((term[0] for coupling in model.description.couplings for term in coupling.terms), driver)
    q = ld.expand(model, ld.reduce(model, state(model, seed)[0]))
    reduced = ld.fix_joints(model, positions(model, q, {driver, gear}))
    lost = set(model.joint_names) - set(reduced.joint_names)
    assert {joint.name for joint in model.description.joints if joint.mimic and joint.mimic.joint == driver} <= lost
    whole, rest = q.copy(), free(model, lost, "q")
    whole[rest] = ld.expand(reduced, ld.reduce(reduced, state(reduced, seed)[0])) if reduced.nc else state(reduced, seed)[0]
    A, b = equations(model)
    qv = np.concatenate([whole[joint.q][:joint.v.stop - joint.v.start] for joint in model.joints])
    np.testing.assert_allclose(A @ qv, b, atol=1e-9)
    np.testing.assert_allclose(ld.link_poses(reduced, whole[rest]), ld.link_poses(model, whole), **SMALL)


def test_a_joint_along_a_curve_is_fixed_with_its_components():
    curve = ld.curve_joint("knee", "world", "shank", "pitch", {"x": "0.1*sin(knee)", "z": "0.2*knee**2"})
    model = ld.build(ld.Robot("leg", [ld.Link("shank", 1.0, inertia=[0.1, 0.1, 0.1])], [curve]))
    reduced = ld.fix_joints(model, {"knee": 0.6})
    assert reduced.nv == reduced.nc == 0
    np.testing.assert_allclose(ld.link_pose(reduced, [], "shank")[:3, 3], [0.1 * np.sin(0.6), 0.0, 0.2 * 0.36], atol=1e-14)
    with pytest.raises(ModelError, match=r"the coupling knee.x determines the joint knee.x: expected its driver knee among"):
        ld.fix_joints(model, {"knee.x": 0.05})


def test_loops_remain_or_are_removed_if_they_are_rigid():
    model = ld.load(ROOT / "robots/four_bar.yaml")
    q = ld.assemble(model, [1.2, 0.0, 0.0], fixed=["crank"]).q
    part = ld.fix_joints(model, {"crank": q[0]})
    assert part.nv == 2 and part.nc == model.nc and np.abs(ld.constraint_residual(part, q[1:])).max() < 1e-9
    whole = ld.fix_joints(model, dict(zip(model.joint_names, q, strict=True)))
    assert whole.nv == whole.nc == 0 and whole.link_names == model.link_names
    with pytest.raises(ConfigurationError, match=r"leave no motion between the links of the loop .* which is open by 0"):
        ld.fix_joints(model, dict.fromkeys(model.joint_names, 0.3))


def test_all_other_parts_of_the_robot_remain():
    model = ld.load(ROOT / "robots/hexarotor_arms.yaml")
    name = model.joint_names[1]
    description = replace(model.description, actuated=tuple(model.joint_names[1:]),
                          keyframes=[ld.Keyframe("bent", q={each: 0.2 for each in model.joint_names[1:]})])
    reduced = ld.fix_joints(ld.build(description), {name: 0.4, "base": [0.1, 0.2, 0.3, 0, 0, 0, 1]})
    assert reduced.base == "fixed" and reduced.description.actuators == model.description.actuators
    assert reduced.description.actuated == reduced.joint_names == model.joint_names[2:]
    assert (reduced.keyframes["bent"].q == 0.2).all() and reduced.link_names == model.link_names
    np.testing.assert_allclose(ld.link_pose(reduced, reduced.neutral(), model.joints[0].child)[:3, 3], [0.1, 0.2, 0.3])


def test_names_and_values_are_checked():
    model = model_of("every kind")
    joints = {joint.type: joint.name for joint in model.joints}
    with pytest.raises(NameLookupError, match="no moving joint 'jint0'"):
        ld.fix_joints(model, {"jint0": 0.0})
    with pytest.raises(ShapeError, match=rf"fix_joints: the joint {joints['ball']} has 4 coordinates: got \(3,\)"):
        ld.fix_joints(model, {joints["ball"]: [0, 0, 0]})
    with pytest.raises(ConfigurationError, match="norm"):
        ld.fix_joints(model, {joints["ball"]: [0, 0, 0, 2]})
    with pytest.raises(ConfigurationError, match="is not finite"):
        ld.fix_joints(model, {joints["revolute"]: np.nan})
    for values in (None, "joint0", ["joint0"]):                # raised AttributeError
        with pytest.raises(UsageError, match=r"fix_joints: expected {joint: coordinates}, got "):
            ld.fix_joints(model, values)
    for value in ("x", None, 1j):                              # raised ValueError
        with pytest.raises(ShapeError, match=rf"fix_joints: {joints['revolute']} is not an array of numbers"):
            ld.fix_joints(model, {joints["revolute"]: value})


def test_a_floating_root_link_called_world_is_not_fixed_to_itself():
    model = ld.load(ROOT / "robots/double_pendulum.urdf", base="floating")
    with pytest.raises(ConfigurationError, match="the floating base cannot be fixed, since the root link is called world"):
        ld.fix_joints(model, {"base": [0, 0, 1, 0, 0, 0, 1]})


def test_coordinates_beyond_limits_are_named():
    model = ld.load(ROOT / "robots/ur5.yaml")
    with pytest.warns(ld.LiedynWarning, match=r"elbow_joint is fixed at 7 rad, its limits are -6\.28319 to 6\.28319 \[beyond"):
        ld.fix_joints(model, {"elbow_joint": 7.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.fix_joints(model, {"elbow_joint": 6.283186})        # rounded to six digits


def test_couplings_that_the_values_contradict_are_named():
    robot = random_robot(1, 4, types=("revolute", "universal"), chain=True)
    single, other = [joint.name for joint in robot.joints if joint.type == "revolute"]
    double = next(joint.name for joint in robot.joints if joint.type == "universal")
    model = ld.build(replace(robot, couplings=[ld.Coupling("gear", {single: 1.0, other: -2.0}, offset=0.1)]))
    with pytest.raises(ConfigurationError, match=rf"contradict the coupling gear: {single} = 0.5, {other} = 0.5"):
        ld.fix_joints(model, {single: 0.5, other: 0.5})
    assert ld.fix_joints(model, {single: 0.5, other: 0.2}).nc == 0
    model = ld.build(replace(robot, couplings=[ld.Coupling("gear", {single: 1.0, f"{double}.1": -2.0})]))
    with pytest.raises(ModelError, match=rf"only some coordinates of the joint {double}: expected also .*got '{double}.1'"):
        ld.fix_joints(model, {single: 0.5})


def test_a_coupling_of_more_joints_remains_with_another_offset():
    robot = random_robot(2, 4, types=("revolute", "prismatic"), chain=True, springs=False)
    first, second, third, _ = (joint.name for joint in robot.joints if joint.type != "fixed")
    model = ld.build(replace(robot, couplings=[ld.Coupling("gears", {first: 1.0, second: -2.0, third: 0.5}, offset=0.3)]))
    reduced = ld.fix_joints(model, {first: 0.7})
    q = ld.expand(reduced, [0.1, 0.4])
    assert reduced.nc == 1 and 0.7 - 2.0 * q[reduced.q_index(second)] + 0.5 * q[reduced.q_index(third)] == pytest.approx([0.3])


def test_force_elements_remain_or_are_removed_if_their_links_become_one_body():
    """A spring without a free length keeps that at zero coordinates, where the fixed joint was not."""
    def rod(name):
        return ld.Link(name, 1.0, [0, 0, -0.5], [0.1, 0.1, 0.01])
    joints = [ld.Joint("a", "revolute", "world", "A", axis=[0, 1, 0]),
              ld.Joint("b", "revolute", "A", "B", axis=[0, 1, 0], origin=[0, 0, -1.0]),
              ld.Joint("c", "revolute", "B", "C", axis=[1, 0, 0], origin=[0, 0, -1.0])]
    elements = [ld.ForceElement("spring", "spring", "world", "C", pose_a=[0.7, 0.2, 0], pose_b=[0, 0.1, -0.8], stiffness=80.0,
                                damping=3.0),
                ld.ForceElement("torsion", "torsion", "A", "B", stiffness=5.0, axis=[0, 1, 0], rest=0.2),
                ld.ForceElement("bushing", "bushing", "A", "C", stiffness=[1, 2, 3, 4, 5, 6.0], damping=[0.1] * 6)]
    model = ld.build(ld.Robot("r", [rod("A"), rod("B"), rod("C")], joints, elements=elements))
    q, v, a = np.random.default_rng(0).normal(size=(3, 3))
    v[1] = a[1] = 0.0
    reduced = ld.fix_joints(model, {"b": q[1]})
    assert [element.name for element in reduced.description.elements] == ["spring", "bushing"]
    np.testing.assert_allclose(ld.inverse_dynamics(reduced, q[::2], v[::2], a[::2]), ld.inverse_dynamics(model, q, v, a)[::2],
                               rtol=1e-12, atol=1e-12)
    assert not ld.fix_joints(model, dict(zip("abc", q, strict=True))).description.elements
