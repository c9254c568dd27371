"""What must not matter: where the world's frame stands, which frames the links have, how a joint is put together."""
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from bridge import relative
from liedyn.model.description import BALL, FREE, WORLD, Joint, Robot
from liedyn.model.links import Link, Pose
from matrices import adjoint, exp, inverse, quaternion
from zoo import ROBOTS, floats, model_of, random_link, random_pose, random_robot, state

EVERY = pytest.mark.parametrize("name", ROBOTS)
TWIST = np.array([0.7, -1.1, 0.4, 2.0, -3.0, 1.0])


def pose_of(T) -> Pose:
    return Pose.from_xyz_quaternion(floats(T[:3, 3]), floats(quaternion(T[:3, :3])))


def matrix_of(pose: Pose):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(pose.rotation, (3, 3)), pose.translation
    return T


def moved_world(robot: Robot, X) -> Robot:
    """The robot seen from another world frame: everything on the ground moves by X, gravity turns with it."""
    gravity = floats(X[:3, :3] @ np.array(robot.gravity))
    if any(joint.parent == WORLD for joint in robot.joints):
        joints = [replace(j, origin=pose_of(X @ matrix_of(j.origin))) if j.parent == WORLD else j for j in robot.joints]
    else:
        children = {joint.child for joint in robot.joints}
        root = next(link.name for link in robot.links if link.name not in children)
        joints = list(robot.joints)
        if robot.base == "fixed":
            joints.insert(0, Joint("to world", "fixed", WORLD, root, pose_of(X)))
    return replace(robot, joints=tuple(joints), gravity=gravity)


@EVERY
def test_the_frame_of_the_world_does_not_matter(name):
    """Robot and gravity turned and moved together: the same forces, accelerations, energy (except for its zero)."""
    model, X = model_of(name), exp(TWIST)
    other = ld.build(moved_world(ROBOTS[name], X))
    q, v, a, tau = state(model, 1)
    p = q.copy()
    if model.base == "floating":
        base = model.q_index("base")
        T = X @ ld.joint_motion(model, "base", q[base])[0]
        p[base] = np.r_[T[:3, 3], quaternion(T[:3, :3])]
    assert other.v_names == model.v_names
    assert relative(ld.inverse_dynamics(other, p, v, a), ld.inverse_dynamics(model, q, v, a)) < 1e-13
    assert relative(ld.forward_dynamics(other, p, v, tau), ld.forward_dynamics(model, q, v, tau)) < 1e-10
    assert relative(ld.mass_matrix(other, p), ld.mass_matrix(model, q)) < 1e-13
    np.testing.assert_allclose(ld.link_poses(other, p), X @ ld.link_poses(model, q), atol=1e-13)
    np.testing.assert_allclose(ld.momentum(other, p, v), adjoint(inverse(X)).T @ ld.momentum(model, q, v),
                               atol=1e-13 * max(1, np.abs(ld.momentum(model, q, v)).max()))
    assert ld.energy(other, p, v)[0] == pytest.approx(ld.energy(model, q, v)[0], rel=1e-13)


def reframed(robot: Robot, rng) -> Robot:
    """Each link's mass moves to a link welded on it in another frame, and what hung on it hangs there."""
    links, joints, frames = [], [], {}
    for link in robot.links:
        frames[link.name] = random_pose(rng)
        X = matrix_of(frames[link.name])
        R, com = X[:3, :3].T, inverse(X) @ [*link.com, 1]
        xx, xy, xz, yy, yz, zz = link.inertia
        J = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        links += [Link(link.name), Link(f"{link.name}'", link.mass, floats(com[:3]), floats(J[np.triu_indices(3)]))]
        joints.append(Joint(f"{link.name} weld", "fixed", link.name, f"{link.name}'", frames[link.name]))
    for joint in robot.joints:
        if joint.parent == WORLD:
            joints.append(joint)
        else:
            origin = pose_of(inverse(matrix_of(frames[joint.parent])) @ matrix_of(joint.origin))
            joints.append(replace(joint, parent=f"{joint.parent}'", origin=origin))
    moving = [joint.name for joint in robot.joints]
    joints.sort(key=lambda joint: moving.index(joint.name) if joint.name in moving else -1)
    return replace(robot, links=tuple(links), joints=tuple(joints))


def permuted(model, other):
    """Where the coordinates of `model` stand in `other`, whose joints may come in another order."""
    q = np.concatenate([np.arange(other.nq)[other.q_index(name)] for name in model.joint_names])
    v = np.concatenate([np.arange(other.nv)[other.v_index(name)] for name in model.joint_names])
    return q, v


@EVERY
def test_frames_of_links_do_not_matter(name):
    model = model_of(name)
    other = ld.build(reframed(ROBOTS[name], np.random.default_rng(5)))
    at_q, at_v = permuted(model, other)
    q, v, a, tau = state(model, 2)

    def there(x, at):
        out = np.empty_like(x)
        out[at] = x
        return out

    p, w, b, force = there(q, at_q), there(v, at_v), there(a, at_v), there(tau, at_v)
    assert relative(ld.inverse_dynamics(other, p, w, b)[at_v], ld.inverse_dynamics(model, q, v, a)) < 1e-13
    assert relative(ld.forward_dynamics(other, p, w, force)[at_v], ld.forward_dynamics(model, q, v, tau)) < 1e-9
    assert relative(ld.mass_matrix(other, p)[np.ix_(at_v, at_v)], ld.mass_matrix(model, q)) < 1e-13
    for link in model.link_names:
        np.testing.assert_allclose(ld.link_pose(other, p, link), ld.link_pose(model, q, link), atol=1e-13)


AXES = [tuple(map(float, row)) for row in Rotation.from_rotvec([0.3, -0.4, 0.5]).as_matrix()]
SAME = {
    "universal": ({"type": "universal", "axes": (AXES[0], AXES[1])},
                  [{"type": "revolute", "axes": (AXES[0],)}, {"type": "revolute", "axes": (AXES[1],)}]),
    "cylindrical": ({"type": "cylindrical", "axes": (AXES[0],)},
                    [{"type": "revolute", "axes": (AXES[0],)}, {"type": "prismatic", "axes": (AXES[0],)}]),
    "planar": ({"type": "planar", "axes": ((0.0, 0.0, 1.0),)},
               [{"type": "prismatic", "axes": ((1.0, 0.0, 0.0),)}, {"type": "prismatic", "axes": ((0.0, 1.0, 0.0),)},
                {"type": "continuous", "axes": ((0.0, 0.0, 1.0),)}]),
    "euler": ({"type": "euler", "sequence": "zyx"},
              [{"type": "revolute", "axes": (axis,)} for axis in ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))]),
    "screws": ({"type": "screws", "screws": ((*AXES[0], 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, *AXES[1]),
                                             (*AXES[2], *(0.2 * x for x in AXES[2])))},
               [{"type": "revolute", "axes": (AXES[0],)}, {"type": "prismatic", "axes": (AXES[1],)},
                {"type": "helical", "axes": (AXES[2],), "pitch": 0.2}]),
}


def put_together(kind):
    """A robot with a compound joint between two arms, and the same with simple joints and massless links."""
    rng = np.random.default_rng(8)
    links = [random_link(rng, name) for name in ("root", "first", "second", "third")]
    before = Joint("before", "revolute", "root", "first", random_pose(rng), axes=(AXES[2],))
    after = Joint("after", "revolute", "second", "third", random_pose(rng), axes=(AXES[0],))
    origin = random_pose(rng)
    compound, parts = SAME[kind]
    one = Robot("one", tuple(links), (before, Joint("joint", parent="first", child="second", origin=origin, **compound), after))
    names = ["first", *[f"between{k}" for k in range(len(parts) - 1)], "second"]
    chain = [Joint(f"part{k}", parent=names[k], child=names[k + 1], origin=origin if k == 0 else Pose(), **part)
             for k, part in enumerate(parts)]
    between = [Link(name) for name in names[1:-1]]
    return ld.build(one), ld.build(Robot("many", (*links, *between), (before, *chain, after)))


@pytest.mark.parametrize("kind", SAME)
def test_a_compound_joint_is_its_parts_with_massless_links_between(kind):
    one, many = put_together(kind)
    q, v, a, tau = state(one, 3, 9)
    assert relative(ld.inverse_dynamics(many, q, v, a), ld.inverse_dynamics(one, q, v, a)) < 1e-14
    assert relative(ld.forward_dynamics(many, q, v, tau), ld.forward_dynamics(one, q, v, tau)) < 1e-11
    assert relative(ld.mass_matrix(many, q), ld.mass_matrix(one, q)) < 1e-14
    np.testing.assert_allclose(ld.link_pose(many, q, "third"), ld.link_pose(one, q, "third"), atol=1e-14)


@pytest.mark.parametrize(("quaternion_kind", "screws"), [("ball", False), ("free", True)])
def test_ball_and_free_joints_are_three_and_six_screws(quaternion_kind, screws):
    """The same motion in other coordinates: v = S w, a = S dw + dS w, and power is kept: tau_w = S^T tau."""
    rng = np.random.default_rng(9)
    links = tuple(random_link(rng, name) for name in ("root", "first", "second"))
    origin = random_pose(rng)
    after = Joint("after", "revolute", "first", "second", random_pose(rng), axes=(AXES[1],))
    slides = [(0.0, 0.0, 0.0, *row) for row in np.eye(3).tolist()]
    turns = [(*np.eye(3).tolist()[k], 0.0, 0.0, 0.0) for k in (2, 1, 0)]
    other = Joint("joint", "screws", "root", "first", origin, screws=tuple([*(slides if screws else []), *turns]))
    model = ld.build(Robot("q", links, (Joint("joint", quaternion_kind, "root", "first", origin), after)))
    chain = ld.build(Robot("s", links, (other, after)))
    x, w, dw = rng.uniform(-1, 1, (3, chain.nv))
    T, S, dS = ld.joint_motion(chain, "joint", x[:-1], w[:-1])
    T = inverse(matrix_of(origin)) @ T
    kind = model.joints[0].kind
    assert kind in (BALL, FREE)
    rows = slice(0, model.nv - 1)
    q = np.r_[T[:3, 3] if kind == FREE else [], quaternion(T[:3, :3]), x[-1]]
    v = np.r_[(S @ w[:-1])[rows], w[-1]]
    a = np.r_[(S @ dw[:-1] + dS @ w[:-1])[rows], dw[-1]]
    np.testing.assert_allclose(ld.link_pose(model, q, "second"), ld.link_pose(chain, x, "second"), atol=1e-14)
    tau = ld.inverse_dynamics(model, q, v, a)
    np.testing.assert_allclose(ld.inverse_dynamics(chain, x, w, dw), np.r_[S[rows].T @ tau[:-1], tau[-1]], atol=1e-12)


def test_order_of_branches_does_not_matter():
    """Joints written in another order: other coordinates, the same physics by name."""
    robot = random_robot(51, 10)
    model = ld.build(robot)
    other = ld.build(replace(robot, joints=robot.joints[::-1], links=robot.links[::-1]))
    assert other.joint_names != model.joint_names
    at_q, at_v = permuted(model, other)
    q, v, a, _ = state(model, 4)
    p, w, b = np.empty_like(q), np.empty_like(v), np.empty_like(a)
    p[at_q], w[at_v], b[at_v] = q, v, a
    assert relative(ld.inverse_dynamics(other, p, w, b)[at_v], ld.inverse_dynamics(model, q, v, a)) < 1e-14


def test_gravity_is_an_accelerated_frame():
    """A floating robot thrown: with no other force its base falls with g and no joint notices."""
    model = ld.build(random_robot(52, 6, types=("revolute", "prismatic"), base="floating", springs=False))
    q = state(model, 5)[0]
    zero = np.zeros(model.nv)
    a = ld.forward_dynamics(model, q, zero, zero)
    R = ld.link_pose(model, q, "root")[:3, :3]
    np.testing.assert_allclose(a, np.r_[0, 0, 0, R.T @ model.gravity, np.zeros(model.nv - 6)], atol=1e-12)
