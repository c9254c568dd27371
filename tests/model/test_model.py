"""What the builder makes of a description: bodies, names, limits, arrays."""
import copy
import dataclasses
import pickle

import numpy as np
import pytest

import liedyn as ld
from liedyn.joints.joint_model import tree_views
from liedyn.model import spatial
from liedyn.model.description import BALL, FREE, HAS_CHILDREN, LAST_CHILD, ONE_DOF, WORLD, Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose
from liedyn.model.model_joint import joint_screws
from matrices import adjoint, exp, inertia, inverse, pose
from rounding import assert_same
from zoo import MOVING, ROBOTS, model_of, random_joint, random_link, state

Z = ((0.0, 0.0, 1.0),)
BODY = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)


def link(name, mass=1.0):
    return Link(name, mass, (0.1, 0.0, 0.2), BODY if mass else (0.0,) * 6)


def revolute(name, parent, child, **given):
    return Joint(name, "revolute", parent, child, axes=Z, **given)


def tree(model):
    """Return the views of the kernels in plain Python."""
    return tree_views.py_func(model.index, model.constants)


def test_order_is_depth_first_in_document_order():
    joints = (revolute("a", "root", "la"), revolute("b", "root", "lb"), revolute("ab", "lb", "lab"), revolute("aa", "la", "laa"))
    model = ld.build(Robot("r", tuple(map(link, ("root", "la", "lb", "lab", "laa"))), joints))
    assert model.joint_names == ("a", "aa", "b", "ab")
    assert model.link_names == ("root", "la", "lb", "lab", "laa")                # as in the document
    np.testing.assert_array_equal(model.link_body, [0, 1, 3, 4, 2])
    np.testing.assert_array_equal(tree(model).parent, [-1, 0, 1, 0, 3])
    assert model.link_parents == (None, "root", "root", "lb", "la")


def test_marks_of_children():
    """A backward pass reaches the last child first."""
    joints = (revolute("a", "root", "la"), revolute("b", "la", "lb"), revolute("c", "la", "lc"), revolute("d", "root", "ld"))
    model = ld.build(Robot("r", tuple(map(link, ("root", "la", "lb", "lc", "ld"))), joints))
    np.testing.assert_array_equal(tree(model).flags & HAS_CHILDREN, [HAS_CHILDREN, HAS_CHILDREN, 0, 0, 0])
    np.testing.assert_array_equal(tree(model).flags & LAST_CHILD, np.array([0, 0, 0, 1, 1]) * LAST_CHILD)


def test_fixed_joints_are_merged_and_stay_links():
    """Inertias add up in the moving body; poses of the welded links are kept."""
    weld = Pose.from_xyz_rpy((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    joints = (revolute("j", "root", "a"), Joint("w1", "fixed", "a", "b", weld), Joint("w2", "fixed", "b", "c", weld),
              Joint("w3", "fixed", "root", "d", weld))
    model = ld.build(Robot("r", (link("root"), link("a"), link("b"), link("c", 0.0), link("d")), joints))
    assert (model.n_bodies, model.nv, model.joint_names) == (2, 1, ("j",))
    np.testing.assert_array_equal(model.link_body, [0, 1, 1, 1, 0])
    X = pose(weld.rotation, weld.translation)
    np.testing.assert_allclose(model.link_pose[3], model.link_pose[1] @ X @ X, atol=1e-15)
    I = inertia(1.0, (0.1, 0, 0.2), BODY)
    to_a = adjoint(inverse(X))
    np.testing.assert_allclose(spatial.inertia_matrix(tree(model).I[10:20]), I + to_a.T @ I @ to_a, atol=1e-15)


@pytest.mark.parametrize("name", ROBOTS)
def test_total_mass_and_bodies(name):
    """Every rotation orthonormal, every moving mass once, ground first."""
    model = model_of(name)
    t, links = tree(model), model.description.links
    R = t.T0.reshape(-1, 12)[:, :9].reshape(-1, 3, 3)
    np.testing.assert_allclose(R @ R.swapaxes(1, 2), np.broadcast_to(np.eye(3), R.shape), atol=2e-15)
    np.testing.assert_allclose(np.linalg.det(R), 1, atol=2e-15)
    moving = sum(link.mass for k, link in enumerate(links) if model.link_body[k] > 0)
    np.testing.assert_allclose(t.I.reshape(-1, 10)[1:, 0].sum(), moving)
    assert t.parent[0] == -1 and (t.parent[1:] < np.arange(1, model.n_bodies)).all()
    ends = [0, *(joint.q.stop for joint in model.joints)]
    assert [joint.q.start for joint in model.joints] == ends[:-1] and ends[-1] == model.nq
    assert model.nq == model.nv + sum(joint.kind in (BALL, FREE) for joint in model.joints)
    np.testing.assert_array_equal(t.dV0, [0, 0, 0, *-model.gravity])


@pytest.mark.parametrize("kind", MOVING)
def test_bodies_of_each_joint_type(kind):
    """Coordinates of compound joints are screws about the z axes of their bodies, massless except for the last."""
    rng = np.random.default_rng(3)
    joint = random_joint(rng, "joint", kind, "root", "child")
    model = ld.build(Robot("one", (random_link(rng, "root"), random_link(rng, "child")), (joint,)))
    count = 1 if kind in ("ball", "free") else model.nv
    made, t = model.joints[0], tree(model)
    assert (made.first_body, made.body, model.n_bodies) == (1, count, count + 1)
    assert made.kind == {"ball": BALL, "free": FREE}.get(kind, ONE_DOF)
    assert (t.I.reshape(-1, 10)[1:-1] == 0).all() and t.I[-10] > 0
    assert (made.screws is None) == (kind in ("ball", "free"))
    assert model.link_body[1] == count


def test_names_and_units_of_coordinates():
    rng = np.random.default_rng(4)
    kinds = ("revolute", "prismatic", "helical", "universal", "cylindrical", "planar", "ball", "free")
    joints = [random_joint(rng, kind, kind, "root", f"l{kind}") for kind in kinds]
    joints += [Joint("gimbal", "euler", "root", "lgimbal", sequence="zxz"),
               Joint("ankle", "screws", "root", "lankle", screws=((0, 0, 1, 0, 0, 0), (0, 0, 0, 1, 0, 0))),
               Joint("knee", "screws", "root", "lknee", screws=((0, 0, 1, 0, 0, 0.1),))]
    model = ld.build(Robot("names", (link("root"), *(random_link(rng, joint.child) for joint in joints)), tuple(joints)))
    assert model.v_names == (
        "revolute", "prismatic", "helical", "universal.1", "universal.2", "cylindrical.angle", "cylindrical.slide", "planar.x",
        "planar.y", "planar.angle", "ball.wx", "ball.wy", "ball.wz", "free.wx", "free.wy", "free.wz", "free.vx", "free.vy",
        "free.vz", "gimbal.z1", "gimbal.x", "gimbal.z2", "ankle.1", "ankle.2", "knee")
    units = "rad m rad rad rad rad m m m rad rad rad rad rad rad rad m m m rad rad rad rad m rad"
    assert model.v_units == tuple(units.split())
    names = "ball.qx ball.qy ball.qz ball.qw free.px free.py free.pz free.qx free.qy free.qz free.qw"
    assert model.q_names[10:21] == tuple(names.split())
    assert model.q_units[10:21] == ("",) * 4 + ("m",) * 3 + ("",) * 4
    assert model.q_names[:10] == model.v_names[:10] and model.q_units[:10] == model.v_units[:10]


def test_indices_by_name():
    model = model_of("every kind, floating")
    assert model.q_index("base") == slice(0, 7) and model.v_index("base") == slice(0, 6)
    for joint in model.joints:
        assert model.joint(joint.name) is joint and model.q_index(joint.name) == joint.q and model.v_index(joint.name) == joint.v
    for k, name in enumerate(model.link_names):
        assert model.link_index(name) == k


def test_a_floating_base_whose_name_is_taken():
    """The free joint of the root is called base, or floating_base if a joint is called base."""
    robot = Robot("r", (link("a"), link("b")), (revolute("base", "a", "b"),), base="floating")
    with pytest.raises(ld.ModelError, match='"base"'):
        ld.build(robot)
    model = ld.build(dataclasses.replace(robot, joints=(revolute("j", "a", "b"),)))
    assert model.joint_names == ("base", "j") and model.joints[0].type == "free" and model.joints[0].parent == WORLD


def test_limits_of_velocity_coordinates():
    """Infinite where the file has none."""
    given = (Coordinate(-1.0, 2.0, 3.0, 4.0),)
    joints = (revolute("j", "a", "b", coordinates=given), Joint("k", "ball", "b", "c"),
              Joint("u", "universal", "c", "d", axes=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
                    coordinates=(Coordinate(lower=-0.5), Coordinate(upper=0.7, effort=9.0))))
    model = ld.build(Robot("r", tuple(map(link, "abcd")), joints))
    inf = np.inf
    np.testing.assert_array_equal(model.lower, [-1, -inf, -inf, -inf, -0.5, -inf])
    np.testing.assert_array_equal(model.upper, [2, inf, inf, inf, inf, 0.7])
    np.testing.assert_array_equal(model.velocity_limit, [3, inf, inf, inf, inf, inf])
    np.testing.assert_array_equal(model.effort_limit, [4, inf, inf, inf, inf, 9])


@pytest.mark.parametrize("name", ROBOTS)
def test_neutral_configuration(name):
    model = model_of(name)
    q = model.neutral()
    assert q.sum() == sum(joint.kind in (BALL, FREE) for joint in model.joints) and set(q) <= {0.0, 1.0}
    for joint in model.joints:
        np.testing.assert_allclose(ld.joint_motion(model, joint.name, q[joint.q])[0], joint.home, atol=1e-15)
    ld.link_poses(model, q)


def test_reprs_are_a_line(tmp_path):
    """Of a model and of its description, with loops, couplings and warnings where there are any."""
    path = tmp_path / "press.yaml"
    path.write_text(
        "name: press\nlinks:\n  a: {mass: 1.5, inertia: [1, 1, 1]}\n  b: {mass: 2, inertia: [1, 1, 1]}\njoints:\n"
        "  turn: {type: revolute, parent: world, child: a, axis: [0, 0, 1]}\n"
        "  slide: {type: prismatic, parent: world, child: b, axis: [1, 0, 0]}\n"
        "couplings:\n  screw: {terms: {turn: 0.1, slide: -1}}\n", encoding="utf-8")
    assert repr(ld.load(path)) == "<Model press: 2 joints, nq 2, nv 2, fixed base; 2 links, 3.5 kg, 1 coupling, 2 warnings>"
    assert repr(ld.load_description(path)) == "<Robot press: 2 links, 2 joints, 1 coupling, fixed base>"
    assert repr(model_of("a lone body")).startswith("<Model zoo8: 1 joint, nq 7, nv 6, floating base; 1 link, ")


def test_models_are_frozen_and_can_be_copied_and_pickled():
    model = model_of("every kind")
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.nv = 3
    q, v, a, tau = state(model, 1, 9)
    bare = len(pickle.dumps(model))
    expected = ld.inverse_dynamics(model, q, v, a), ld.forward_dynamics(model, q[0], v[0], tau[0])
    ld.higher_order_inverse_dynamics(model, q[0], np.stack([v[0], a[0], v[0], a[0]]))
    assert len(pickle.dumps(model)) < bare + 100                              # scratch does not go into copies
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_same(ld.inverse_dynamics(other, q, v, a), expected[0])
        assert_same(ld.forward_dynamics(other, q[0], v[0], tau[0]), expected[1])
    heavier = model._copy(constants=model.constants.copy())
    assert not heavier._cache and heavier._cache is not model._cache


def test_building_twice_gives_the_same_arrays():
    first, second = (ld.build(ROBOTS["every kind twice, floating"]) for _ in range(2))
    np.testing.assert_array_equal(first.constants, second.constants)
    np.testing.assert_array_equal(first.index, second.index)


@pytest.mark.parametrize("screw", [(0, 0, 2.0, 0, 0, 0), (0, 0, 0, 1.0, 2.0, 3.0), (1.0, 2.0, -3.0, 0.3, 0.2, -0.1),
                                   (0, 0, -1.0, 0.5, 0, 0.3), (1e-9, 0, -1.0, 0, 0, 1.0), (0, 3e-8, 0, 1e-8, 0, 0)])
def test_frame_of_a_screw(screw):
    """S = Ad_X (0 0 a, 0 0 b), and the exponential by it."""
    X, (a, b) = spatial.screw_frame(np.array(screw))
    np.testing.assert_allclose(X[:3, :3] @ X[:3, :3].T, np.eye(3), atol=2e-15)
    np.testing.assert_allclose(adjoint(X) @ [0, 0, a, 0, 0, b], screw, rtol=1e-14, atol=1e-15 * np.linalg.norm(screw))
    np.testing.assert_allclose(spatial.exp_screw(np.array(screw), 0.7), exp(0.7 * np.array(screw)), atol=2e-15)


def test_screws_of_joint_types():
    axis = (0.6, 0.0, 0.8)
    given = lambda kind, **more: joint_screws(Joint("j", kind, "a", "b", **more)).tolist()      # noqa: E731
    assert given("helical", axes=(axis,), pitch=0.5) == [[0.6, 0, 0.8, 0.3, 0, 0.4]]
    assert given("cylindrical", axes=(axis,)) == [[0.6, 0, 0.8, 0, 0, 0], [0, 0, 0, 0.6, 0, 0.8]]
    assert given("euler", sequence="xyx") == [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
    assert given("planar", axes=Z) == [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0]]
    with pytest.raises(ld.ModelError, match="joint type 'ball' has no screws"):
        given("ball")
