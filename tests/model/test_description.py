"""Robots that are described in Python: what constructors accept, and the same robots as from files."""
import dataclasses
import random
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from described_arm import arm
from liedyn.model.description import LIMITS, LOOP_TYPES, Coordinate, coordinate_name
from liedyn.model.force_element import FORCE_ELEMENT_TYPES
from liedyn.model.mass_properties import SHAPES
from liedyn.model.spatial import pose, symmetric_matrix
from messages import has_parts

ROOT = Path(__file__).parents[2]
ROBOTS = sorted(path.name for path in (ROOT / "robots").iterdir() if not path.name.endswith("loops.yaml"))
RNG = np.random.default_rng(4)


def numbers(model: ld.Model):
    return model.index, model.constants, model.lower, model.upper, model.velocity_limit, model.effort_limit, model.gravity


def assert_same_numbers(first: ld.Model, second: ld.Model, atol: float = 0.0):
    assert first.joint_names == second.joint_names and first.link_names == second.link_names
    for x, y in zip(numbers(first), numbers(second), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=atol)
    assert first.constraints == second.constraints or atol


# what constructors accept -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("of", [list, tuple, np.array])
def test_vectors_are_lists_tuples_or_arrays(of):
    link = ld.Link("a", np.float64(2), of([1, 2, 3]), of([1, 2, 2]))
    joint = ld.Joint("j", "universal", "world", "a", of([0, 0, 1]), axes=of([[1, 0, 0], [0, 1, 0]]), damping=of([1, 2]))
    same = ld.Link("a", 2.0, (1.0, 2.0, 3.0), (1.0, 0.0, 0.0, 2.0, 0.0, 2.0))
    assert link == same and hash(link) == hash(same) and type(link.mass) is float
    assert joint.origin == ld.Pose(translation=(0.0, 0.0, 1.0)) and joint.axes == ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    assert joint.damping == (1.0, 2.0) and joint.coordinates == (Coordinate(damping=1.0), Coordinate(damping=2.0))
    assert hash(joint) == hash(dataclasses.replace(joint))


def test_an_inertia_is_six_numbers_a_diagonal_or_a_matrix():
    six = (3.0, 0.1, 0.2, 4.0, 0.3, 5.0)
    assert ld.Link("a", 1, inertia=symmetric_matrix(six)).inertia == ld.Link("a", 1, inertia=six).inertia == six
    assert ld.Link("a", 1, inertia=[3, 4, 5]).inertia == ld.Link("a", 1, inertia=np.diag([3, 4, 5])).inertia
    with pytest.raises(ld.ModelError, match='link "a", inertia: the inertia is not symmetric: expected'):
        ld.Link("a", 1, inertia=[[1, 2, 3], [0, 1, 0], [0, 0, 1]])


def test_a_pose_is_a_position_a_pose_or_a_matrix():
    placed = ld.Pose.from_xyz_rpy([0.1, 0.2, 0.3], [0.3, 0.2, 0.1])
    for frame in (placed, pose(placed), pose(placed).tolist(), ld.Pose(pose(placed)[:3, :3], [0.1, 0.2, 0.3])):
        joint = ld.Joint("j", "ball", "world", "a", origin=frame)
        loop = ld.Loop("l", "ball", "world", "a", frame, pose_b=frame)
        assert joint.origin == loop.pose_a == loop.pose_b == placed
    assert ld.Shape.sphere(0.1, pose=[1, 2, 3]).pose == ld.Pose(translation=(1.0, 2.0, 3.0))


def test_limits_are_a_pair_or_a_mapping_and_numbers_are_for_each_coordinate():
    one = ld.Joint("j", "prismatic", "world", "a", axis=[0, 0, 1], limits=(-1, 2), stiffness=3, rest=0.1)
    assert one.coordinates == (Coordinate(-1.0, 2.0, stiffness=3.0, rest=0.1),) and (one.stiffness, one.rest) == (3.0, 0.1)
    more = dataclasses.replace(one, limits={"upper": 5, "velocity": 7, "effort": 9}, rest=0)
    assert more.coordinates == (Coordinate(-1.0, 5.0, 7.0, 9.0, stiffness=3.0),)
    planar = ld.Joint("j", "planar", "world", "a", axis=[0, 0, 1], limits=([-1, -2, -3], 4), armature=(1, 2, 3))
    assert [(c.lower, c.upper, c.armature) for c in planar.coordinates] == [(-1, 4, 1), (-2, 4, 2), (-3, 4, 3)]


def test_a_replaced_number_keeps_all_others():
    link = ld.Link("a", 2, shape=ld.Shape.box(1, 2, 3))
    assert dataclasses.replace(link, mass=3).inertia == link.inertia and dataclasses.replace(link, mass=3).shapes == link.shapes
    model = ld.build(arm())
    assert model.with_changes(mass={"upper": 3.0}).description.links[1].shapes == model.description.links[1].shapes


# inertia of shapes ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", SHAPES)
def test_a_shape_gives_mass_and_inertia_by_mass_or_density(kind):
    sizes = RNG.uniform(0.1, 0.5, len(SHAPES[kind]))
    shape = ld.Shape(kind, sizes, ld.Pose.from_xyz_rpy(rpy=[0.3, 0.2, 0.1]))
    by_density = ld.Link("a", density=500, com=[1, 2, 3], shape=shape)
    by_mass = ld.Link("a", by_density.mass, com=[1, 2, 3], shape=shape)
    assert by_mass == by_density and by_mass.shapes == by_density.shapes
    assert by_mass.shapes[0].pose == ld.Pose.from_xyz_rpy([1, 2, 3], [0.3, 0.2, 0.1])
    moved = ld.Link("a", by_density.mass, shape=by_mass.shapes[0])
    assert moved.com == (1.0, 2.0, 3.0) and moved == by_mass
    assert ld.Link("a", by_density.mass, shapes=by_mass.shapes) == by_mass
    R = pose(shape.pose)[:3, :3]
    straight = ld.Link("a", by_density.mass, shape=ld.Shape(kind, sizes))
    np.testing.assert_allclose(symmetric_matrix(by_mass.inertia), R @ symmetric_matrix(straight.inertia) @ R.T, atol=1e-15)


def test_parts_of_a_body_together_are_the_body():
    """A box of eight boxes, and a body of parts compared with welded links."""
    whole = ld.Link("a", density=800, shape=ld.Shape.box(0.2, 0.4, 0.6))
    parts = [ld.Shape.box(0.1, 0.2, 0.3, pose=[x, y, z]) for x in (-0.05, 0.05) for y in (-0.1, 0.1) for z in (-0.15, 0.15)]
    split = ld.Link("a", density=800, shapes=parts)
    assert split.mass == pytest.approx(whole.mass, rel=1e-14)
    np.testing.assert_allclose(split.com, 0, atol=1e-16)
    np.testing.assert_allclose(split.inertia, whole.inertia, rtol=1e-14, atol=1e-15)
    assert ld.Link("a", whole.mass, shapes=parts).inertia == pytest.approx(split.inertia, rel=1e-14)
    shapes = [ld.Shape.capsule(0.1, 0.3, ld.Pose.from_xyz_rpy([0.1, 0.2, 0.3], [1, 2, 3])), ld.Shape.sphere(0.2, [0, 0, 1])]
    ball = ld.Joint("j", "ball", "world", "a")
    together = ld.build(ld.Robot("r", [ld.Link("a", density=900, shapes=shapes)], [ball]))
    welded = ld.build(ld.Robot("r", [ld.Link("a", density=900, shape=shapes[0]), ld.Link("b", density=900, shape=shapes[1])],
                               [ball, ld.Joint("weld", "fixed", "a", "b")]))
    q = ld.random_configuration(together, RNG)
    np.testing.assert_allclose(ld.mass_matrix(together, q), ld.mass_matrix(welded, q), rtol=1e-13, atol=1e-13)


def test_shapes_are_drawn():
    robot = arm()
    assert set(robot.visuals) == {"turret", "upper", "lower"} and robot.visuals["upper"].shapes == robot.links[1].shapes
    drawn = ld.Link("hand", 1, inertia=[1, 1, 1], shape=ld.Shape.box(1, 1, 1, colour=[1, 0, 0]))
    assert dataclasses.replace(robot, links=[*robot.links[:3], drawn]).visuals["hand"].shapes[0].colour == (1.0, 0.0, 0.0)


# the same robots as from files ------------------------------------------------------------------------------------------

def rebuilt(robot: ld.Robot) -> ld.Robot:
    """Return the robot from the numbers of a description, as a user writes them: lists and arrays, by keywords."""
    links = [ld.Link(link.name, mass=link.mass, com=list(link.com), inertia=symmetric_matrix(link.inertia))
             for link in robot.links]
    joints = []
    for joint in robot.joints:
        axis = {"axis": np.array(joint.axes[0])} if len(joint.axes) == 1 else {"axes": [list(axis) for axis in joint.axes]}
        limits = {name: [getattr(c, name) for c in joint.coordinates] for name in LIMITS}
        each = {name: getattr(joint, name) for name in ("damping", "friction", "armature", "stiffness", "rest")}
        if any(c.rigid_friction for c in joint.coordinates):
            keys = {"level": "friction", "static": "static_friction", "stribeck": "stribeck_speed"}
            values = {key: [getattr(c, name) for c in joint.coordinates] for key, name in keys.items()}
            each["friction"] = {"model": "rigid", **values}
        mimic = joint.mimic and ld.Mimic(joint.mimic.joint, multiplier=joint.mimic.multiplier, offset=joint.mimic.offset)
        joints.append(ld.Joint(joint.name, joint.type, parent=joint.parent, child=joint.child, origin=pose(joint.origin),
                               pitch=joint.pitch, sequence=joint.sequence, screws=np.array(joint.screws), mimic=mimic, **axis,
                               **({"limits": limits} | each if joint.coordinates else {})))
    loops = [ld.Loop(loop.name, loop.type, loop.a, loop.b, pose(loop.pose_a), pose(loop.pose_b), np.array(loop.axes), loop.length,
                     loop.radius, loop.shape, loop.driven) for loop in robot.loops]
    couplings = [ld.Coupling(c.name, {coordinate_name(*term[:2]): term[2] for term in c.terms}, c.offset, function=c.function)
                 for c in robot.couplings]
    actuators = [ld.Actuator(a.name, a.link, np.array(a.position), list(a.axis), a.torque_ratio, a.limits, joints=dict(a.joints))
                 for a in robot.actuators]
    keyframes = [ld.Keyframe(k.name, dict(k.q), {name: np.array(x) for name, x in k.v}) for k in robot.keyframes]
    elements = [ld.ForceElement(e.name, e.type, e.a, e.b, pose_a=pose(e.pose_a), pose_b=pose(e.pose_b),
                                **{name: x for name in FORCE_ELEMENT_TYPES[e.type].parameters
                                   if (x := getattr(e, name)) not in (None, ())}) for e in robot.elements]
    return ld.Robot(robot.name, links, joints, robot.base, np.array(robot.gravity), actuators, loops, couplings,
                    list(robot.actuated), keyframes, elements=elements)


@pytest.mark.filterwarnings("ignore::liedyn.errors.LiedynWarning")
@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_is_the_same_when_it_is_described_in_python(name):
    model = ld.load(ROOT / "robots" / name)
    other = ld.build(rebuilt(model.description))
    assert_same_numbers(model, other)
    assert other.description == model.description


@pytest.mark.filterwarnings("ignore::liedyn.errors.LiedynWarning")
@pytest.mark.parametrize("ending", ["yaml", "urdf"])
def test_a_saved_robot_reads_back_as_the_same_numbers(ending, tmp_path):
    without_armature = [dataclasses.replace(joint, armature=0) for joint in arm().joints]        # which a URDF does not have
    model = ld.build(arm(gravity=[0, 0, -1.6], actuated=["elbow"]) if ending == "yaml" else
                     dataclasses.replace(arm(), joints=without_armature))
    ld.save(model, tmp_path / f"arm.{ending}")
    again = ld.load(tmp_path / f"arm.{ending}")
    q, v, a = RNG.standard_normal((3, 4))
    assert again.joint_names == model.joint_names and again.description.actuated == model.description.actuated
    np.testing.assert_array_equal(ld.inverse_dynamics(again, q, v, a), ld.inverse_dynamics(model, q, v, a))
    for x, y in ((again.lower, model.lower), (again.upper, model.upper), (again.gravity, model.gravity)):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_links_and_joints_does_not_matter(seed):
    """Except for the order of the coordinates: quantities by name are equal."""
    closed = arm(loops=[ld.Loop("rod", "distance", "world", "hand", length=0.5)],
                 couplings=[ld.Coupling("gear", {"shoulder": 1, "elbow": -2})])
    finger = ld.Link("finger", 0.1, [0, 0, 0.05], [1e-4, 1e-4, 1e-5])
    knuckle = ld.Joint("knuckle", "ball", "hand", "finger", [0, 0.02, 0.1])
    robot = dataclasses.replace(closed, links=[*closed.links, finger], joints=[*closed.joints, knuckle])
    order = random.Random(seed)
    other = dataclasses.replace(robot, links=order.sample(robot.links, 5), joints=order.sample(robot.joints, 5))
    first, second = (ld.build(x).spanning_tree() for x in (robot, other))
    q, v, a = ld.random_configuration(first, RNG), *RNG.standard_normal((2, first.nv))
    at_q, at_v = ([k for name in second.joint_names for k in range(*index(name).indices(99))] for index in (first.q_index,
                                                                                                           first.v_index))
    np.testing.assert_allclose(ld.inverse_dynamics(second, q[at_q], v[at_v], a[at_v]),
                               ld.inverse_dynamics(first, q, v, a)[at_v], rtol=1e-12, atol=1e-12)
    assert {c.name for c in ld.build(other).constraints} == {c.name for c in ld.build(robot).constraints}


def test_every_type_of_closure_can_be_described():
    for type_ in LOOP_TYPES:
        sizes = {"distance": {"length": 0.5}, "rolling": {"radius": 0.1}}.get(type_, {})
        loop = ld.Loop("l", type_, "world", "hand", pose_b=[0, 0, 0.1], **sizes)
        assert ld.build(arm(loops=[loop])).nc == len(LOOP_TYPES[type_].labels)


def test_a_floating_base():
    model = ld.build(ld.Robot("body", [ld.Link("body", density=1000, shape=ld.Shape.box(0.1, 0.2, 0.3))], base="floating"))
    assert (model.nq, model.nv, model.joint_names) == (7, 6, ("base",))


# errors -----------------------------------------------------------------------------------------------------------------

HUB = ld.Link("hub", 1, inertia=[1, 1, 1])
SHAPE = ld.Shape.sphere(0.1)


@pytest.mark.parametrize(("describe", "text"), [
    (lambda: ld.Link("a", com=[0, 1]), 'link "a", com: wrong centre of mass: expected 3 numbers, got [0.0, 1.0]'),
    (lambda: ld.Link("a", com="middle"), 'link "a", com: wrong centre of mass: expected 3 numbers, got \'middle\''),
    (lambda: ld.Link("a", "heavy"), 'link "a", mass: wrong mass'),
    (lambda: ld.Link("a", 1, inertia=[1, 2]), 'link "a", inertia: wrong inertia: expected 6 numbers, got [1.0, 2.0]'),
    (lambda: ld.Link("a", shape=SHAPE), 'link "a", shape: a shape needs either mass or density: expected one of mass, density'),
    (lambda: ld.Link("a", 1, density=1, shape=SHAPE), 'link "a", shape: a shape needs either mass or density'),
    (lambda: ld.Link("a", density=1), 'link "a", density: density needs a shape, and no inertia: expected mass, got 1'),
    (lambda: ld.Link("a", density=-1, shape=SHAPE), 'link "a", shape: wrong density: expected a number > 0, got -1.0'),
    (lambda: ld.Link("a", "x", shape=SHAPE), 'link "a", mass: wrong mass'),
    (lambda: ld.Link("a", 1, shape=ld.Shape.box(1, 0, 1)),
     'link "a", shape: wrong y of the box: expected a number > 0, got 0.0'),
    (lambda: ld.Link("a", 1, shape=ld.Shape("cone", [1])),
     'link "a", shape: unknown shape: expected one of box, sphere, cylinder, capsule, got \'cone\''),
    (lambda: ld.Link("a", 1, shape=ld.Shape("box", [1])), 'link "a", shape: wrong sizes of a box: expected x, y, z, got (1.0,)'),
    (lambda: ld.Link("a", 1, com=[0, 0, 1], shape=ld.Shape.sphere(1, [0, 0, 2])),
     'link "a", shape: the centre of the shape is not at com: expected a shape without a position, or no com, got [0.0, 0.0, '
     "2.0]"),
    (lambda: ld.Link("a", 1, com=[0, 0, 1], shapes=[SHAPE, SHAPE]), 'link "a", com: com and shapes cannot be combined … got [0, '
                                                                    '0, 1]'),
    (lambda: ld.Link("a", 1, shape=SHAPE, shapes=[SHAPE]), 'link "a", shape: shape and shapes cannot be combined: expected one '
                                                           'of them'),
    (lambda: ld.Link("a", 1, shape=ld.Shape.sphere(1, ld.Pose(2 * np.eye(3)))),
     'link "a", shape: the rotation of the pose of the sphere is not a rotation matrix … got [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, '
     "0.0, 0.0, 2.0]"),
    (lambda: ld.Link("a", 1, shape=ld.Shape.sphere(1, ld.Pose(translation=[0, 1]))),
     'link "a", shape: wrong pose of the sphere: expected 3 numbers, got [0.0, 1.0]'),
    *((lambda shape=shape: ld.Link("a", 1, inertia=[1, 1, 1], shapes=[shape]), f'link "a", shape: {text}') for shape, text in [
        (ld.Shape.sphere(-1), "wrong radius of the sphere: expected a number > 0, got -1.0"),
        (ld.Shape.cylinder("a", 1), "wrong radius of the cylinder: expected a number > 0, got 'a'"),
        (ld.Shape.sphere(np.nan), "wrong radius of the sphere: expected a number > 0, got nan"),
        (ld.Shape.sphere(1, [0, np.nan, 0]), "not a finite number in the pose of the sphere"),
        (ld.Shape.sphere(1, colour="red"), "wrong colour of the sphere: expected 3 numbers, got 'red'"),
        (ld.Shape.sphere(1, colour=[1, 0]), "wrong colour of the sphere: expected 3 numbers, got [1.0, 0.0]"),
        (ld.Shape.sphere(1, colour=[255, 0, 0]), "wrong colour of the sphere: expected red, green, blue from 0 to 1, got "
                                                 "[255.0, 0.0, 0.0]")]),
    (lambda: ld.Joint("j", "helical", "world", "hub", axis=[0, 0, 1]),
     'joint "j", pitch: a helical joint needs a pitch: expected metres of advance per radian'),
    (lambda: ld.Pose.from_xyz_quaternion([0, 0, 0], [0, 0, 0, 0]),
     "pose: the quaternion has norm 0: expected a unit quaternion x, y, z, w, got [0, 0, 0, 0]"),
    (lambda: ld.Pose.from_xyz_quaternion([0, 0, 0], [0, 0, 0, 2]),
     "pose: the quaternion has norm 2: expected a unit quaternion x, y, z, w, got [0, 0, 0, 2]"),
    (lambda: ld.Pose.from_xyz_quaternion([0, 0, 0], [0, 0, 1]), "pose: wrong quaternion: expected 4 numbers, got [0, 0, 1]"),
    (lambda: ld.Link("a", 1, shape="box"), "Link: shape must be a Shape, got str 'box'"),
    (lambda: ld.Link("a", mas=1), "Link has no argument 'mas'; did you mean 'mass'?"),
    (lambda: ld.Joint("j", "revolut", "world", "hub", damping=1),
     'joint "j", type: unknown joint type: expected one of fixed, revolute … got \'revolut\''),
    (lambda: ld.Joint("j", "revolute", "world", "hub"),
     'joint "j", axis: wrong number of axes: expected 1 for a joint of type revolute, got 0'),
    (lambda: ld.Joint("j", "revolute", "world", "hub", axes=[[1, 0, 0]], axis=[0, 0, 1]),
     'joint "j", axis: axis and axes cannot be combined: expected one of them (dataclasses.replace takes axes=[…])'),
    (lambda: ld.Joint("j", "revolute", "world", "hub", axis="z"), 'joint "j", axis: wrong axis: expected 3 numbers, got \'z\''),
    (lambda: ld.Joint("j", "revolute", "world", "hub", axis=[0, 0, 0]), 'joint "j", axis: the axis is the zero vector'),
    (lambda: ld.Joint("j", "revolute", "world", "hub", axis=[0, 0, 1], limits=3),
     'joint "j", limits: wrong limits: expected (lower, upper), or a dict with any of lower, upper … got 3'),
    (lambda: ld.Joint("j", "revolute", "world", "hub", axis=[0, 0, 1], limits=(2, -2)),
     'joint "j", limits: the limits are swapped'),
    (lambda: ld.Joint("j", "revolute", "world", "hub", axis=[0, 0, 1], limits={"uper": 1}),
     "limits has no argument 'uper'; did you mean 'upper'?"),
    (lambda: ld.Joint("j", "planar", "world", "hub", axis=[0, 0, 1], damping=[1, 2]),
     'joint "j", damping: wrong damping: expected one number, or 3, got 2'),
    (lambda: ld.Joint("j", "fixed", "world", "hub", damping=1), 'joint "j", damping: a fixed joint has no damping'),
    (lambda: ld.Joint("j", "ball", "world", "hub", stiffness=1), 'joint "j", stiffness: a ball joint has no spring'),
    (lambda: ld.Joint("j", "revolute", "world", "hub", axis=[0, 0, 1], pitch=0.1),
     'joint "j", pitch: a revolute joint has no pitch'),
    (lambda: ld.Joint("j", "revolute", "world", "hub", [0, 1], axis=[0, 0, 1]),
     'joint "j", origin: the origin is not a pose: expected a position [x, y, z], a Pose, or a (4, 4) matrix whose last row '
     "is 0 0 0 1, got [0.0, 1.0]"),
    (lambda: ld.Joint("j", "ball", "world", "hub", origin="home"), 'joint "j", origin: the origin is not a pose … got \'home\''),
    (lambda: ld.Joint("j", "ball", "world", "hub", ld.Pose([1, 0, 0])),
     'joint "j", origin: wrong origin: expected 9 numbers, got [1.0, 0.0, 0.0]'),
    (lambda: ld.Joint("j", "ball", "world", "hub", dampng=1), "Joint has no argument 'dampng'; did you mean 'damping'?"),
    (lambda: ld.Joint("j", "ball", "world", "hubs"),
     'joint "j", child: the child is not a link of this robot: expected a link\'s name, got \'hubs\''),
    (lambda: ld.Loop("l", "weld", "world", "hubs"),
     'loop "l", b: frame b is not on a link of this robot: expected a link\'s name or world, got \'hubs\''),
    (lambda: ld.Loop("l", "weld", "world", "hub", pose_b=3), 'loop "l", b: the frame is not a pose … got 3.0'),
    (lambda: ld.Loop("l", "weld", "world", "hub", length=1), 'loop "l", length: a weld closure has no length: got 1.0'),
    (lambda: ld.Loop("l", "weld", "world", "hub", axes=[1], axis=[1, 0, 0]), 'loop "l", axis: axis and axes cannot be combined'),
    (lambda: ld.Coupling("c", {"j": "two"}), 'coupling "c", terms: wrong coefficient'),
    (lambda: ld.Actuator("t", "hub", [0, 1]), 'actuator "t", position: wrong position: expected 3 numbers, got [0.0, 1.0]'),
    (lambda: ld.Robot("r", links=HUB), "Robot: links must be a sequence of Link, got Link <Link hub"),
    (lambda: ld.Robot("r", [HUB], [{"name": "j"}]), "Robot: joints must be a sequence of Joint, got dict {'name': 'j'}"),
    (lambda: ld.Joint("j", "ball", "world", "hub", damping=10**400),
     'joint "j", damping: wrong damping: expected numbers, got '
     "10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000…"),
    (lambda: ld.Link("a", 10**400), "link \"a\", mass: wrong mass: expected a number, got (1000"),
    (lambda: ld.Link("a", 1, [10**400, 0, 0]), "link \"a\", com: wrong centre of mass: expected 3 numbers, got [1000"),
    (lambda: ld.Robot(3, [HUB]), "name: a robot needs a name of printable characters: got 3"),
    (lambda: ld.Robot("r", [HUB], gravity=9.81), "gravity: wrong gravity: expected 3 numbers, got 9.81"),
    (lambda: ld.Robot("r", [HUB], bse="floating"), "Robot has no argument 'bse'; did you mean 'base'?"),
])
def test_errors_name_the_element(describe, text):
    """The constructor raises some of them and `build` others, with the same words."""
    with pytest.raises(ld.LiedynError) as error:
        element = describe()
        kinds = {ld.Link: "links", ld.Joint: "joints", ld.Loop: "loops", ld.Coupling: "couplings", ld.Actuator: "actuators"}
        fields = {"links": [HUB], "joints": [ld.Joint("j", "revolute", "world", "hub", axis=[0, 0, 1])], "base": "fixed"}
        if isinstance(element, ld.Link):
            element = ld.Robot("r", [element])
        elif not isinstance(element, ld.Robot):
            element = ld.Robot("r", **{**fields, kinds[type(element)]: [element]})
        ld.build(element)
    assert has_parts(str(error.value), text)


def test_a_suspicious_robot_warns():
    robot = ld.Robot("r", [HUB], [ld.Joint("j", "revolute", "world", "hub", axis=[0, 0, 2])])
    with pytest.warns(ld.LiedynWarning, match="2 warnings about the robot r .*; the first: j: the axis has length 2"):
        ld.build(robot)


@pytest.mark.parametrize("pair", combinations_with_replacement(["lower", "upper", "velocity", "effort"], 2))
def test_single_limits(pair):
    joint = ld.Joint("j", "revolute", "world", "hub", axis=[0, 0, 1], limits=dict.fromkeys(pair, 2.0))
    assert {name: getattr(joint.coordinates[0], name) for name in pair} == dict.fromkeys(pair, 2.0)


@pytest.mark.parametrize("mimic", ["left", {"joint": "left"}, {"joint": "left", "multiplier": -2.0, "offset": 0.1}])
def test_a_mimic_is_a_name_or_keys(mimic):
    joint = ld.Joint("right", "prismatic", "palm", "finger", axis=[0, 1, 0], mimic=mimic)
    assert joint.mimic == (ld.Mimic(mimic) if isinstance(mimic, str) else ld.Mimic(**mimic))


@pytest.mark.parametrize(("mimic", "message"), [
    (3, "mimic must be a Mimic or Mapping or path, got int"), ({"multiplier": 1.0}, "wrong mimic"),
    ({"joint": "left", "factor": 2.0}, "factor")])
def test_another_mimic_is_an_error(mimic, message):
    with pytest.raises(ld.LiedynError, match=message):
        ld.Joint("right", "prismatic", "palm", "finger", axis=[0, 1, 0], mimic=mimic)


@pytest.mark.parametrize(("sizes", "text"), [(["a", 1], "<Shape cylinder 'a', 1>"), ([0.1, 1], "<Shape cylinder 0.1, 1>"),
                                            ("ab", "<Shape cylinder 'ab'>"), (None, "<Shape cylinder None>")])
def test_shapes_with_wrong_sizes_can_be_printed(sizes, text):
    assert repr(ld.Shape("cylinder", sizes)) == text
