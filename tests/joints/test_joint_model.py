"""What each kind of joint does, from its definition: products of matrix exponentials, SciPy's rotations, differences."""
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.model.description import Joint, Robot
from liedyn.model.links import Pose
from matrices import bracket, derivative, exp, inverse, log, pose, skew
from zoo import MOVING, SEQUENCES, model_of, random_joint, random_link, state

CASES = [(kind, seed) for kind in MOVING for seed in range(3)]


def lone_joint(kind, seed):
    """Return a robot of one joint between two links."""
    rng = np.random.default_rng(seed)
    joint = random_joint(rng, "joint", kind, "root", "child")
    return ld.build(Robot("one", (random_link(rng, "root"), random_link(rng, "child")), (joint,))), joint


def turn(axis, angle):
    return pose(Rotation.from_rotvec(angle * np.asarray(axis)).as_matrix(), [0, 0, 0])


def slide(direction, distance):
    return pose(np.eye(3), distance * np.asarray(direction))


def unit(axis):
    return np.array(axis) / np.linalg.norm(axis)


def motion(joint: Joint, q):
    """Return the motion (4, 4) of a joint by its definition."""
    if joint.type == "free":
        return pose(Rotation.from_quat(q[3:]).as_matrix(), q[:3])
    if joint.type == "ball":
        return pose(Rotation.from_quat(q).as_matrix(), [0, 0, 0])
    if joint.type == "euler":
        return pose(Rotation.from_euler(joint.sequence.upper(), q).as_matrix(), [0, 0, 0])      # capitals: intrinsic
    if joint.type == "screws":
        T = np.eye(4)
        for screw, x in zip(joint.screws, q, strict=True):
            T = T @ exp(np.array(screw) * x)
        return T
    axis = unit(joint.axes[0]) if joint.axes else None
    if joint.type in ("revolute", "continuous"):
        return turn(axis, q[0])
    if joint.type == "prismatic":
        return slide(axis, q[0])
    if joint.type == "helical":
        return turn(axis, q[0]) @ slide(axis, joint.pitch * q[0])
    if joint.type == "cylindrical":
        return turn(axis, q[0]) @ slide(axis, q[1])
    if joint.type == "universal":
        return turn(axis, q[0]) @ turn(unit(joint.axes[1]), q[1])
    if joint.type == "planar":
        to_normal = Rotation.from_rotvec(np.cross([0, 0, 1], axis) / np.hypot(*axis[:2]) * np.arccos(axis[2])).as_matrix()
        return slide(to_normal[:, 0], q[0]) @ slide(to_normal[:, 1], q[1]) @ turn(axis, q[2])
    return pytest.fail(f"write the motion of a {joint.type} joint here, by its definition")


def origin(joint: Joint):
    return pose(joint.origin.rotation, joint.origin.translation)


def moved(kind, q, x):
    """Return q (+) x of one joint, without liedyn."""
    if kind == "ball":
        return (Rotation.from_quat(q) * Rotation.from_rotvec(x)).as_quat()
    if kind == "free":
        T = pose(Rotation.from_quat(q[3:]).as_matrix(), q[:3]) @ exp(x)
        return np.r_[T[:3, 3], Rotation.from_matrix(T[:3, :3]).as_quat()]
    return q + x


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_pose_by_the_definition_of_the_joint(kind, seed):
    """Both of `joint_motion` and of the kernel, which sees screws about z axes and massless bodies between.
    Checks: PBP (23); PL (14)."""
    model, joint = lone_joint(kind, seed)
    q = state(model, seed, 10)[0]
    expected = [origin(joint) @ motion(joint, x) for x in q]
    np.testing.assert_allclose([ld.joint_motion(model, "joint", x)[0] for x in q], expected, atol=3e-15)
    np.testing.assert_allclose(ld.link_pose(model, q, "child"), expected, atol=3e-15)
    np.testing.assert_allclose([ld.link_pose(model, x, "child") for x in q], expected, atol=3e-15)


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_jacobian_of_a_joint_is_the_derivative_of_its_pose(kind, seed):
    """S: T^-1 dT along each coordinate. Measured 1e-12, the accuracy of the difference. Checks: K1 (61), (62), Corollary 2."""
    model, joint = lone_joint(kind, seed)
    q, v = state(model, seed)[:2]
    T, S, _ = ld.joint_motion(model, "joint", q, v)

    def along(x):
        return derivative(lambda h: log(inverse(T) @ origin(joint) @ motion(joint, moved(kind, q, h * x))))

    np.testing.assert_allclose(S, np.array([along(e) for e in np.eye(model.nv)]).T, atol=3e-11)
    np.testing.assert_allclose(S @ v, along(v), atol=3e-11)


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_derivative_of_a_joint_jacobian(kind, seed):
    model, _ = lone_joint(kind, seed)
    q, v = state(model, seed)[:2]
    dS = ld.joint_motion(model, "joint", q, v)[2]
    expected = derivative(lambda h: ld.joint_motion(model, "joint", moved(kind, q, h * v))[1])
    np.testing.assert_allclose(dS, expected, atol=3e-11)
    assert not ld.joint_motion(model, "joint", q)[2].any()                     # without v


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_euler_angles_of_every_sequence(sequence):
    joint = Joint("joint", "euler", "root", "child", Pose(), sequence=sequence)
    rng = np.random.default_rng(0)
    model = ld.build(Robot("one", (random_link(rng, "root"), random_link(rng, "child")), (joint,)))
    q = rng.uniform(-3, 3, (20, 3))
    np.testing.assert_allclose(ld.link_pose(model, q, "child")[:, :3, :3],
                               Rotation.from_euler(sequence.upper(), q).as_matrix(), atol=2e-15)


def test_planar_joint_about_z_slides_along_x_and_y_of_its_frame():
    joint = Joint("joint", "planar", "root", "child", Pose(), axes=((0.0, 0.0, 1.0),))
    rng = np.random.default_rng(0)
    model = ld.build(Robot("one", (random_link(rng, "root"), random_link(rng, "child")), (joint,)))
    assert model.v_names == ("joint.x", "joint.y", "joint.angle")
    expected = pose(Rotation.from_rotvec([0, 0, 0.4]).as_matrix(), [1, 2, 0])
    np.testing.assert_allclose(ld.link_pose(model, [1, 2, 0.4], "child"), expected, atol=1e-15)


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (1e-9, 0.0, -1.0), (0.0, 1e-5, -1.0), (1e-300, 0.0, 1.0)])
def test_axes_at_and_near_minus_z(axis):
    """The shortest rotation from z is not unique there."""
    rng = np.random.default_rng(0)
    links = (random_link(rng, "root"), random_link(rng, "child"))
    model = ld.build(Robot("one", links, (Joint("joint", "helical", "root", "child", axes=(axis,), pitch=0.1),)))
    expected = turn(unit(axis), 0.7) @ slide(unit(axis), 0.07)
    np.testing.assert_allclose(ld.link_pose(model, [0.7], "child"), expected, atol=1e-15)


def test_twist_of_a_joint_of_many_screws_needs_its_jacobian_and_its_rate():
    """Checks: K1 (36), (40). V = S v and dV = S a + dS v of the child against a parent at rest."""
    for name in ("universal", "cylindrical", "planar", "euler", "screws"):
        model = model_of(name)
        joint = model.joints[0]
        q, v, a, _ = state(model, 4)
        _, S, dS = ld.joint_motion(model, joint.name, q[joint.q], v[joint.v])
        np.testing.assert_allclose(ld.link_twist(model, q, v, joint.child), S @ v[joint.v], atol=1e-14)
        dV = S @ a[joint.v] + dS @ v[joint.v]
        np.testing.assert_allclose(ld.link_acceleration(model, q, v, a, joint.child), dV, atol=1e-13)


def test_reference_matrices_are_what_they_say():
    """The reference of these tests is tested: exp with log, ad as the derivative of Ad."""
    x = np.array([0.3, -0.5, 0.2, 1.0, 2.0, -0.4])
    np.testing.assert_allclose(log(exp(x)), x, atol=1e-14)
    np.testing.assert_allclose(skew(x[:3]) @ x[3:], np.cross(x[:3], x[3:]))
    from matrices import adjoint
    np.testing.assert_allclose(derivative(lambda h: adjoint(exp(h * x))), bracket(x), atol=1e-12)
