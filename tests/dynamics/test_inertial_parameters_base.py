"""Base parameters: known counts, an independent rank, torques on fresh states, and their names."""
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

import liedyn as ld
from bridge import file_of
from liedyn.dynamics.inertial_parameters import JOINT_PARAMETERS
from liedyn.model.description import Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose
from other_units import in_units
from zoo import ROBOTS, model_of, random_robot, robots, state

# Six- and seven-axis arms on a vertical first axis: 7 n - 6 (Gautier and Khalil; Gaz et al. 2019 find 43 for the Panda). A
# floating base of ten parameters and n revolute joints: 10 + 7 n. A slide adds four.
COUNTS = {
    ("ur5_robot.urdf", "fixed"): 36, ("ur3_robot.urdf", "fixed"): 36, ("ur10_robot.urdf", "fixed"): 36,
    ("xarm7.urdf", "fixed"): 43, ("panda.urdf", "fixed"): 43 + 8, ("double_pendulum_simple.urdf", "fixed"): 6,
    ("ur5_robot.urdf", "floating"): 10 + 42, ("xarm7.urdf", "floating"): 10 + 49, ("solo12.urdf", "floating"): 10 + 84,
    ("talos_reduced.urdf", "floating"): 10 + 7 * 32, ("quadrotor_base.urdf", "floating"): 10,
}
TEN = ["a1.urdf", "baxter.urdf", "double_pendulum.urdf", "g1_29dof_rev_1_0.urdf", "icub.urdf", "panda.urdf", "solo12.urdf",
       "talos_reduced.urdf", "ur5_robot.urdf", "xarm7.urdf"]


def off(model, base, passive=True, joints=None, seed=77):
    """Of torques on fresh states, relative."""
    q, v, a, _ = state(model, seed, 20)
    tau = ld.inverse_dynamics(model, q, v, a, passive=passive)
    predicted = ld.regressor(model, q, v, a, passive=passive, joints=joints)[..., base.columns] @ base.values
    return np.abs(predicted - tau).max() / max(np.abs(tau).max(), 1e-300)


def rank_by_svd(model, joints, seed=5):
    """Independently: singular values of the stacked regressor of other states, columns normalized. Angles all around: a file
    may limit a joint to nothing (0 to 0)."""
    wide = model._copy(lower=np.full(model.nv, -np.inf), upper=np.full(model.nv, np.inf))
    q, v, a, _ = state(wide, seed, 60 + 600 // model.nv)
    Y = ld.regressor(model, q, v, a, joints=joints)
    Y = Y.reshape(-1, Y.shape[-1])
    norms = np.linalg.norm(Y, axis=0)
    s = np.linalg.svd(np.linalg.qr(Y[:, norms > 1e-10 * norms.max()] / norms[norms > 1e-10 * norms.max()], mode="r"),
                      compute_uv=False)
    return int((s > 1e-8 * s[0]).sum())


@pytest.mark.parametrize("name, base", COUNTS)
def test_known_counts(name, base):
    model = ld.load(file_of(name), base=base).spanning_tree()
    found = ld.base_parameters(model, joints=())
    assert len(found) == COUNTS[name, base] == rank_by_svd(model, ())


def test_the_arm_of_the_panda_has_43():
    """With its fingers welded to the hand."""
    robot = ld.load_description(file_of("panda.urdf"))
    weld = {"panda_finger_joint1", "panda_finger_joint2"}
    model = ld.build(dataclasses.replace(robot, joints=tuple(
        dataclasses.replace(joint, type="fixed", axes=(), coordinates=(), mimic=None) if joint.name in weld else joint
        for joint in robot.joints)))
    assert model.nv == 7 and len(ld.base_parameters(model, joints=())) == 43


@pytest.mark.parametrize("name", TEN)
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_real_robots_on_fresh_states(name, base, worst):
    """To rounding; of ill-conditioned ones (the hand of icub) times their condition."""
    model = ld.load(file_of(name), base=base).spanning_tree()
    found = ld.base_parameters(model)
    assert worst("base parameters of real robots: torque", off(model, found, passive=False), f"{name}, {base}") < 1e-11
    assert len(found) == rank_by_svd(model, None)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("passive", [False, True])
def test_random_robots_on_fresh_states(name, passive, worst):
    model = model_of(name)
    found = ld.base_parameters(model, passive=passive)
    assert worst("base parameters: torque", off(model, found, passive), name) < 1e-12
    np.testing.assert_array_equal(found.matrix[:, found.columns], np.eye(len(found)))
    np.testing.assert_allclose(found.matrix @ found.parameters.values, found.values)


@given(robots)
@settings(max_examples=8, deadline=None)
def test_random_trees_on_fresh_states(robot):
    model = ld.build(robot)
    found = ld.base_parameters(model, passive=True)
    assert off(model, found) < 1e-11
    assert len(found) <= len(found.parameters.names)


@pytest.mark.parametrize("name", ["every kind", "every kind, floating", "one degree of freedom each"])
def test_the_whole_regressor_comes_from_the_columns_kept(name):
    """Y = Y[kept] B: any parameters give the same torques, not only the model's."""
    model = model_of(name)
    found = ld.base_parameters(model, joints=JOINT_PARAMETERS)
    q, v, a, _ = state(model, 11, 9)
    Y = ld.regressor(model, q, v, a, joints=JOINT_PARAMETERS)
    np.testing.assert_allclose(Y[..., found.columns] @ found.matrix, Y, rtol=0, atol=1e-12 * np.abs(Y).max())


@pytest.mark.parametrize("name", ["every kind", "a long chain"])
def test_the_seed_does_not_matter(name):
    model = model_of(name)
    one, two = (ld.base_parameters(model, seed=seed) for seed in (0, 1))
    assert one.names == two.names and one.unidentifiable == two.unidentifiable
    np.testing.assert_allclose(one.matrix, two.matrix, rtol=0, atol=1e-11 * np.abs(one.matrix).max())


def test_the_planar_arm_by_hand():
    """Two links turning about parallel horizontal axes, link 2 at 0.4 m along x of link 1: by hand
    Izz1 + 0.16 m2, hx1 + 0.4 m2, hy1, hx2, hy2, Izz2."""
    turn = {"axes": ((0.0, 0.0, 1.0),)}
    links = tuple(Link(name, 1.0, (0.2, 0.1, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)) for name in ("one", "two"))
    joints = (Joint("hip", "continuous", "world", "one", **turn),
              Joint("knee", "continuous", "one", "two", origin=Pose.from_xyz_rpy((0.4, 0.0, 0.0)), **turn))
    model = ld.build(Robot("2R", links, joints, gravity=(0.0, -9.81, 0.0)))
    found = ld.base_parameters(model)
    assert [found.regrouping(k) for k in range(len(found))] == [
        "hx.one + 0.4 mass.two", "hy.one", "Izz.one + 0.16 mass.two", "hx.two", "hy.two", "Izz.two"]
    assert found.units == ("kg m", "kg m", "kg m^2", "kg m", "kg m", "kg m^2")
    np.testing.assert_allclose(found.values, [0.2 + 0.4, 0.1, 0.15 + 0.16, 0.2, 0.1, 0.15])
    assert set(found.unidentifiable) == {"mass.one", *(f"{x}.{link}" for link in ("one", "two") for x in (
        "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz"))}


def test_the_order_of_links_in_the_file_does_not_matter():
    robot = ld.load_description("robots/panda.yaml")
    turned = ld.build(dataclasses.replace(robot, links=robot.links[::-1], joints=robot.joints[::-1]))
    assert turned.link_names[0] != "panda_link0"
    one, other = ld.base_parameters(ld.build(robot)), ld.base_parameters(turned)
    values = dict(zip(one.names, one.values, strict=True))
    assert set(other.names) == set(one.names)
    np.testing.assert_allclose(other.values, [values[name] for name in other.names], rtol=0, atol=1e-12)


def test_armature_is_regrouped_with_the_inertia_about_the_first_axis():
    model = ld.load(file_of("ur5_robot.urdf"))
    found = ld.base_parameters(model, joints=("armature",))
    assert "armature.shoulder_pan_joint" in found.regrouping(found.names.index("Izz.shoulder_link"))
    assert "armature.shoulder_pan_joint" not in found.names and "armature.wrist_3_joint" in found.names


def test_what_standing_still_can_tell():
    """Only gravity: of each link's ten numbers mass and first moment at most."""
    model = ld.load(file_of("ur5_robot.urdf"))
    q, v, *_ = state(model, 3, 50)
    still = ld.base_parameters(model, states=(q, 0 * v, 0 * v))
    assert all(name.startswith(("h", "mass")) for name in still.names) and len(still) < 15
    tau = ld.gravity_force(model, q)
    Y = ld.regressor(model, q, 0 * v, 0 * v)
    np.testing.assert_allclose(Y[..., still.columns] @ still.values, tau, atol=1e-12 * np.abs(tau).max())


def test_rounded_angles_of_a_file_are_named_as_weak():
    """1.5708 for a right angle: the first axis is not quite vertical, so that two parameters more act a little."""
    model = ld.load(file_of("so100.urdf"))
    found = ld.base_parameters(model)
    assert len(found) == 38 and "hx.shoulder" in found.weak
    assert len(ld.base_parameters(model, tolerance=1e-4)) == 36


def test_too_few_states_have_no_clear_rank():
    model = model_of("a long chain")
    q, v, a, _ = state(model, 3, 40)
    q, v, a = (np.repeat(x[:1], 40, axis=0) * (1 + 10.0**-np.arange(40)[:, None] * 1e-2) for x in (q, v, a))
    with pytest.raises(ld.ComputationError, match=r"the rank of the regressor is not clear .* more states"):
        ld.base_parameters(model, states=(q, v, a))


def test_where_nothing_acts():
    """No gravity and no motion."""
    model = ld.build(dataclasses.replace(ROBOTS["revolute"], gravity=(0.0, 0.0, 0.0)))
    q, v, a, _ = state(model, 3, 5)
    with pytest.raises(ld.ComputationError, match="no generalized force of the robot zoo100 depends on an inertial parameter"):
        ld.base_parameters(model, states=(q, 0 * v, 0 * a))


def test_a_robot_of_rotors_alone():
    motor = Joint("j", "revolute", "a", "b", axes=((0.0, 0.0, 1.0),), coordinates=(Coordinate(armature=0.1),))
    model = ld.build(Robot("rotor", (Link("a", 1.0), Link("b")), (motor,)))
    found = ld.base_parameters(model)
    assert found.regrouping(0) == "Izz.b + armature.j" and found.values == pytest.approx([0.1])


def test_bad_arguments():
    model = model_of("ball")
    with pytest.raises(ld.LiedynError, match="unknown joint parameter 'stiction'"):
        ld.base_parameters(model, joints=("stiction",))
    with pytest.raises(ld.ShapeError, match="q has the wrong shape"):
        ld.base_parameters(model, states=(np.zeros(3), np.zeros(9), np.zeros(9)))


@pytest.mark.parametrize("length, mass, time", [(1e3, 1.0, 1e-2), (1e-3, 1e6, 1e2), (1e3, 1e-6, 1.0), (1e-3, 1.0, 1e-2)])
def test_the_count_and_the_names_are_the_same_in_all_units(length, mass, time):
    """Ranks compared kg with kg m^2, and N with N m: 30 of 52 parameters were lost in millimetres and hundreds of seconds."""
    robot = random_robot(20, 5)
    ours, theirs = ld.build(robot), ld.build(in_units(robot, length, mass, time))
    assert [len(ld.base_parameters(model, passive=True)) for model in (ours, theirs)] == [52, 52]
    linear = ("armature", "damping", "stiffness")            # friction is smoothed below a speed that does not change with units
    one, two = (ld.base_parameters(model, joints=linear) for model in (ours, theirs))
    assert two.names == one.names and two.unidentifiable == one.unidentifiable and two.weak == one.weak
    assert [two.regrouping(k).count(" ") for k in range(len(two))] == [one.regrouping(k).count(" ") for k in range(len(one))]
    in_sizes = [base.matrix / base.sizes[base.columns][:, None] * base.sizes for base in (one, two)]
    np.testing.assert_allclose(*in_sizes, rtol=0, atol=1e-10)
