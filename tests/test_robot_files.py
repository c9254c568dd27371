"""Robots to files and back: what both formats can say comes back to the bit, placements to rounding, and the rest is exact in
other words or refused with a list."""
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from bridge import PinocchioBridge, file_of, full, relative, urdf_files
from liedyn.errors import ModelError, UsageError
from liedyn.io.robots.visual_shapes import link_shapes
from liedyn.io.robots.write_robot_yaml import error, pose_to_dict, quaternion_error, quaternion_of, rpy_of
from liedyn.model.description import FRICTION_SPEED, INDEX_HEADER, WORLD, Coordinate, Coupling, Joint, Loop, Mimic, Robot
from liedyn.model.links import Link, Pose
from liedyn.model.validate import validate
from liedyn.robot_files import convert, load_description
from zoo import MOVING, ROBOTS, random_joint, random_link, random_robot

ROOT = Path(__file__).parents[1]
FILES = [*sorted((ROOT / "robots").glob("*.yaml")), *sorted((ROOT / "robots").glob("*.urdf"))]
REFUSED = ("romeo.urdf", "romeo_laas_small.urdf", "ur3.urdf")            # see oracles/test_pinocchio
ROUNDING = 2e-15                     # of the nine entries of a rotation, each a sum of two products of sines


def without_rotations(robot: Robot) -> Robot:
    """All that must come back to the bit. Coordinates without figures are as good as none."""
    def plain(pose):
        return Pose(translation=pose.translation)
    joints = tuple(replace(joint, origin=plain(joint.origin), coordinates=joint.coordinate_parameters) for joint in robot.joints)
    loops = tuple(replace(loop, pose_a=plain(loop.pose_a), pose_b=plain(loop.pose_b)) for loop in robot.loops)
    return replace(robot, joints=joints, loops=loops)


def rotations(robot: Robot) -> np.ndarray:
    poses = [joint.origin for joint in robot.joints] + [pose for loop in robot.loops for pose in (loop.pose_a, loop.pose_b)]
    return np.array([pose.rotation for pose in poses]).reshape(-1, 9)


def assert_same(robot: Robot, other: Robot, worst, where: str) -> None:
    assert without_rotations(robot) == without_rotations(other)
    off = np.abs(rotations(robot) - rotations(other)).max(initial=0.0)
    assert worst("saved: rotation of a placement", off, where) < ROUNDING


def there_and_back(robot: Robot, path: Path) -> Robot:
    ld.save(robot, path)
    return load_description(path)


def bodies(model) -> list[np.ndarray]:
    """What of a model decides how it moves: the arrays of its bodies, without those of its links."""
    n, links = model.n_bodies, len(model.link_names)
    c, frames = model.constants, 6 + 2 * n + 32 * n
    return [model.index[INDEX_HEADER:INDEX_HEADER + 2 * n], c[:frames], c[frames + 12 * links:]]


# --- rotations -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rpy", [(0, 0, 0), (1.57, 0, 0), (0, 0, 3.14159), (0.1, 1.5707963267948966, -0.2), (3, -1.5708, 3),
                                 (1.5708, 1.5708, 0), (-2, 0.3, 4), (0.1, 2, 0.3), (0, 1.5707963, 0)])
def test_angles_of_a_file_are_found_again(rpy):
    """Or others of the same rotation, where the pitch is a right angle or more."""
    R = Pose.from_xyz_rpy(rpy=rpy).rotation
    assert error(R, rpy_of(R)) <= 2.3e-16
    if abs(rpy[1]) < 1.5 and max(map(abs, rpy)) < 3.1415:
        assert rpy_of(R) == rpy


def test_a_zero_beside_a_right_angle_stays_zero():
    R = Pose.from_xyz_rpy(rpy=(0.0, np.pi / 2, 0.3)).rotation
    assert rpy_of(R) == (0.0, np.pi / 2, 0.3)


def test_random_rotations():
    rng = np.random.default_rng(1)
    special = rng.choice([-1.0, 0.0, 1.0], (50, 4))
    special[:, 3] += 1e-9
    for x in (*rng.standard_normal((50, 4)), *special):
        R = Pose.from_xyz_quaternion((0, 0, 0), x / np.linalg.norm(x)).rotation
        assert error(R, rpy_of(R)) < ROUNDING
        assert quaternion_error(R, quaternion_of(R)) < ROUNDING


def test_the_closer_of_angles_and_quaternion_is_written():
    """Angles of a file stay as they are; of random rotations, each form is the closer one of some."""
    for rpy in ((0.0, np.pi / 2, 0.3), (0.0, 0.0, np.pi / 2), (np.pi, 0.0, 0.0), (0.1, 0.2, 0.3)):
        assert pose_to_dict(Pose.from_xyz_rpy(rpy=rpy)) == {"rpy": list(rpy)}
    rng, forms = np.random.default_rng(2), set()
    for x in rng.standard_normal((50, 4)):
        pose = Pose.from_xyz_quaternion((0, 0, 0), x / np.linalg.norm(x))
        (form, numbers), = pose_to_dict(pose).items()
        errors = {"rpy": error(pose.rotation, rpy_of(pose.rotation)),
                  "quaternion": quaternion_error(pose.rotation, quaternion_of(pose.rotation))}
        assert errors[form] == min(errors.values()) and len(numbers) == (3 if form == "rpy" else 4)
        forms.add(form)
    assert forms == {"rpy", "quaternion"}


# --- robot YAML ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_robot_of_the_collection_through_yaml(path, tmp_path, worst):
    robot = load_description(path)
    assert_same(robot, there_and_back(robot, tmp_path / "robot.yaml"), worst, path.name)


@pytest.mark.parametrize("path", [path for path in urdf_files() if path.name not in REFUSED], ids=lambda path: path.stem)
def test_every_urdf_through_yaml(path, tmp_path, worst):
    """All but mimics without effect, which have no place there."""
    robot = load_description(path)
    names = {joint.name for joint in robot.joints}
    joints = tuple(replace(joint, mimic=joint.mimic if joint.labels and joint.mimic and joint.mimic.joint in names else None)
                   for joint in robot.joints)
    assert_same(replace(robot, joints=joints), there_and_back(robot, tmp_path / "robot.yaml"), worst, path.stem)


@pytest.mark.parametrize("name", ROBOTS)
def test_random_trees_through_yaml(name, tmp_path, worst):
    robot = validate(ROBOTS[name])
    assert_same(robot, there_and_back(robot, tmp_path / "robot.yaml"), worst, name)


def test_odd_names_and_numbers(tmp_path, worst):
    names = ["yes", "1e5", "a: b", "a, b", "{x}", "é", " a ", '"q"', "'", "null", "# no", "x" * 1500, "<&>", "-", "a b}"]
    links = (Link("root", 1.0, inertia=(1.0,) * 3 + (2.0, 0.5, 3.0)),
             *(Link(name, 0.1 + 0.2, (-0.0, 1e-300, 0.1 + 0.2), (1.0, 0.0, 0.0, 1.0, 0.0, 1e-5 + 1)) for name in names))
    joints = tuple(Joint(f"j{name}", "cylindrical", "root", name, axes=((0.0, 0.0, 1.0),),
                         coordinates=(Coordinate(lower=-1.0), Coordinate(effort=3.0, damping=0.1))) for name in names)
    couplings = (Coupling("c", tuple((joint.name, "slide", 1.0) for joint in joints), 0.5),)
    robot = Robot("odd: name", links, joints, "floating", (0.0, 1e-3, 0.0), couplings=couplings)
    found = there_and_back(robot, tmp_path / "robot.yaml")
    assert found.couplings[0].terms == tuple((f"{joint.name}.slide", "", 1.0) for joint in joints)
    assert_same(robot, replace(found, couplings=couplings), worst, "odd names")
    assert str(found.links[1].com) == "(-0.0, 1e-300, 0.30000000000000004)"


def test_odd_names_through_urdf(tmp_path, worst):
    names = ["a&b", "<x>", '"q"', "'", " a ", "é", "a  b", "]]>", "&amp;", "1"]
    links = (Link("root"), *(Link(name, 1.0, inertia=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)) for name in names))
    joints = tuple(Joint(f"j{name}", "continuous", "root", name, axes=((0.0, 0.0, 1.0),),
                         mimic=Mimic(f"j{names[-1]}", 2.0) if name != "1" else None) for name in names)
    robot = Robot("<&>", links, joints)
    assert_same(robot, there_and_back(robot, tmp_path / "robot.urdf"), worst, "odd names")


# --- URDF ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["panda.urdf", "talos_reduced.urdf", "go2.urdf", "tiago_no_hand.urdf", "double_pendulum.urdf",
                                  "allegro_right_hand.urdf"])
def test_urdf_through_urdf(name, tmp_path, worst):
    robot = load_description(file_of(name))
    assert_same(robot, there_and_back(robot, tmp_path / "robot.urdf"), worst, name)


@pytest.mark.parametrize("name", ["ur5.yaml", "asymmetric_body.yaml"])
def test_yaml_through_urdf_moves_alike(name, tmp_path):
    """M and the bias force of a few, besides the arrays of all."""
    model = ld.load(ROOT / "robots" / name)
    ld.save(model, tmp_path / "robot.urdf")
    other = ld.load(tmp_path / "robot.urdf")
    rng = np.random.default_rng(0)
    q, v = ld.random_configuration(model, rng), rng.standard_normal(model.nv)
    assert other.q_names == model.q_names and other.v_names == model.v_names
    assert relative(ld.mass_matrix(other, q), ld.mass_matrix(model, q)) < 1e-14
    assert relative(ld.bias_force(other, q, v), ld.bias_force(model, q, v)) < 1e-13


def sayable(seed: int, kinds, base="fixed", grounded=False) -> Robot:
    """A random tree that a URDF can describe: no springs, rotors, pitch or speeds of friction, unit screws, standard gravity."""
    robot = random_robot(seed, 10, base=base, types=kinds, grounded=grounded)
    def plain(joint):
        same = joint.type == "free"
        c = joint.coordinate_parameters[:1] * 6 if same else joint.coordinate_parameters
        c = tuple(replace(x, stiffness=0.0, rest=0.0, armature=0.0, friction_speed=FRICTION_SPEED) for x in c)
        if same:
            c = tuple(replace(x, velocity=np.inf, effort=np.inf, acceleration=np.inf, jerk=np.inf) for x in c)
        screws = []
        for S in joint.screws:
            w, v = np.array(S[:3]), np.array(S[3:])
            v = v - w * (w @ v) / (w @ w) if w.any() else v
            screws.append(tuple(float(x) for x in np.r_[w, v] / np.linalg.norm(w if w.any() else v)))
        return replace(joint, coordinates=c, screws=tuple(screws))
    return replace(robot, joints=tuple(map(plain, robot.joints)), gravity=(0.0, 0.0, -9.81))


EXACT = tuple(kind for kind in MOVING if kind not in ("helical", "ball"))


@pytest.mark.parametrize("seed, base, grounded", [(1, "fixed", False), (2, "floating", False), (3, "fixed", True)])
def test_other_joints_become_revolute_and_prismatic_ones(seed, base, grounded, tmp_path, worst):
    """The same bodies in the same order, so the same dynamics; coordinates and links keep names and order."""
    robot = sayable(seed, EXACT, base, grounded)
    model = ld.build(robot)
    warnings = ld.save(robot, tmp_path / "robot.urdf")
    other = ld.load(tmp_path / "robot.urdf")
    assert any("massless links between" in note for note in map(str, warnings))
    assert other.v_names == model.v_names and other.q_names == model.q_names
    assert other.link_names[:len(model.link_names)] == model.link_names
    for ours, theirs in zip(bodies(model), bodies(other), strict=True):
        assert worst("saved: arrays of a URDF of other joints", relative(theirs, ours), str(seed)) < 1e-13
    for limit in ("lower", "upper", "velocity_limit", "effort_limit", "acceleration_limit", "jerk_limit"):
        assert np.array_equal(getattr(other, limit), getattr(model, limit))
    through = ld.build(there_and_back(load_description(tmp_path / "robot.urdf"), tmp_path / "robot.yaml"))
    assert np.array_equal(through.index, other.index) and relative(through.constants, other.constants) < 1e-14


def test_pinocchio_reads_what_is_written(tmp_path):
    """Its M and bias force are those of our model: the text means the same to another reader."""
    robot = sayable(5, ("revolute", "prismatic", "universal", "cylindrical", "euler", "continuous"))
    model = ld.build(robot)
    ld.save(robot, tmp_path / "robot.urdf")
    bridge = PinocchioBridge(tmp_path / "robot.urdf", ld.load(tmp_path / "robot.urdf"))
    import pinocchio as pin
    rng = np.random.default_rng(0)
    q, v = ld.random_configuration(model, rng), rng.standard_normal(model.nv)
    theirs = full(pin.crba(bridge.pin, bridge.data, bridge.q(q)))[np.ix_(bridge.v, bridge.v)]
    assert relative(ld.mass_matrix(model, q), theirs) < 1e-13
    V = np.empty(model.nv)
    V[bridge.v] = v
    bias = pin.rnea(bridge.pin, bridge.data, bridge.q(q), V, 0 * V)[bridge.v]
    assert relative(ld.inverse_dynamics(model, q, v, 0 * v, passive=False), bias) < 1e-12


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_robot_that_a_urdf_can_say(path, tmp_path):
    """The same bodies and constraints; or a list of what would be lost."""
    robot = load_description(path)
    lost = [loss for loss in convert(robot, "urdf", "robot.urdf").losses if loss.dynamics]
    if lost:
        with pytest.raises(ModelError, match="cannot describe the dynamics of this robot"):
            ld.save(robot, tmp_path / "robot.urdf")
        return
    ld.save(robot, tmp_path / "robot.urdf")
    model, other = ld.build(robot), ld.load(tmp_path / "robot.urdf")
    assert (other.q_names, other.v_names,
            other.constraint_equation_names) == (model.q_names, model.v_names, model.constraint_equation_names)
    assert other.link_names[:len(model.link_names)] == model.link_names
    for ours, theirs in zip(bodies(model), bodies(other), strict=True):
        assert relative(theirs, ours) < 1e-13
    if model.nc:
        assert relative(other.loop_constants, model.loop_constants) < 1e-13


@pytest.mark.parametrize("name", ["four_bar.yaml", "closures.yaml", "gripper.urdf"])
def test_loops_stand_beside_a_urdf(name, tmp_path):
    model = ld.load(ROOT / "robots" / name)
    warnings = ld.save(model, tmp_path / "robot.urdf")
    other = ld.load(tmp_path / "robot.urdf")
    assert any("robot.loops.yaml" in note for note in map(str, warnings))
    assert other.constraint_equation_names == model.constraint_equation_names and other.v_names == model.v_names
    assert relative(other.loop_constants, model.loop_constants) < 1e-14
    assert other.description.warnings == () or name == "gripper.urdf"


def test_couplings_name_the_coordinates_of_split_joints(tmp_path):
    rng = np.random.default_rng(0)
    links = tuple(random_link(rng, name) for name in ("a", "b"))
    joints = (replace(random_joint(rng, "u", "universal", WORLD, "a", springs=False)),
              random_joint(rng, "e", "euler", "a", "b", springs=False))
    letter = joints[1].labels[0]
    robot = Robot("r", links, joints, couplings=(Coupling("c", (("u", "2", 1.0), ("e", letter, -2.0)), 0.1),))
    ld.save(robot, tmp_path / "robot.urdf")
    assert ld.load(tmp_path / "robot.urdf").description.couplings[0].terms == (("u.2", "", 1.0), (f"e.{letter}", "", -2.0))


# --- what a URDF cannot say ------------------------------------------------------------------------------------------

def one_joint(kind: str = "revolute", **given) -> Robot:
    figures = {key: given.pop(key) for key in list(given) if key in Coordinate.__dataclass_fields__}
    axes = {"ball": (), "free": (), "fixed": (), "screws": ()}.get(kind, ((0.0, 0.0, 1.0),))
    own = {key: given.pop(key) for key in ("pitch", "screws") if key in given}
    joint = Joint("j", kind, WORLD, "a", axes=axes, **own)
    joint = replace(joint, coordinates=(Coordinate(**figures),) * len(joint.labels))
    return Robot("r", (Link("a", 1.0, inertia=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)),), (joint,), **given)


@pytest.mark.parametrize("robot, message", [
    (one_joint(stiffness=2.0), "j: the spring of stiffness 2 is left out"),
    (one_joint(armature=0.5), "j: the armature 0.5 is left out"),
    (one_joint("ball"), "j: the ball joint becomes three revolute joints about x, y and z"),
    (one_joint("helical", pitch=0.1), "j: the helical motion becomes a revolute joint and a prismatic one that mimics it"),
    (one_joint("screws", screws=((0.0, 0.0, 2.0, 0.0, 0.0, 0.0),)), "j: the screw has length 2 and is scaled to 1"),
    (one_joint(gravity=(0.0, 0.0, -1.62)), r"gravity: \[0, 0, -1.62\] becomes the default"),
])
def test_other_dynamics_are_refused_or_lossy(robot, message, tmp_path):
    path = tmp_path / "robot.urdf"
    with pytest.raises(ModelError, match=rf"cannot describe the dynamics of this robot: {message}.*\(--lossy or lossy=True"):
        ld.save(robot, path)
    assert not path.exists()
    warnings = ld.save(robot, path, lossy=True)
    assert any(str(one).startswith(message.split(":")[0]) for one in warnings)
    ld.load(path)
    ld.save(robot, tmp_path / "robot.yaml")                                   # a robot YAML can say them all


def test_free_joints_have_one_damping(tmp_path):
    robot = one_joint("free", damping=0.5, velocity=3.0)
    _, lost = ld.save(robot, tmp_path / "robot.urdf")
    assert str(lost) == "j: the limits of a free joint are left out [not-written]"
    assert load_description(tmp_path / "robot.urdf").joints[0].coordinates == (Coordinate(damping=0.5),) * 6
    joint = replace(robot.joints[0], coordinates=(Coordinate(damping=0.5), *(Coordinate(),) * 5))
    with pytest.raises(ModelError, match="j: damping and friction, which differ between its coordinates, are left out"):
        ld.save(replace(robot, joints=(joint,)), tmp_path / "other.urdf")


def test_planar_joints_with_limits_are_split(tmp_path):
    ld.save(one_joint("planar", damping=0.5), tmp_path / "a.urdf")
    assert load_description(tmp_path / "a.urdf").joints[0].type == "planar"
    ld.save(one_joint("planar", damping=0.5, upper=2.0), tmp_path / "b.urdf")
    joints = load_description(tmp_path / "b.urdf").joints
    assert [(joint.name, joint.type, joint.coordinates[0].upper) for joint in joints] == [
        ("j.x", "prismatic", 2.0), ("j.y", "prismatic", 2.0), ("j.angle", "revolute", 2.0)]


def test_limits_of_1e300_are_none(tmp_path):
    """Other readers require a <limit> with all numbers, so there are some."""
    robot = one_joint("prismatic", upper=1.0)
    ld.save(robot, tmp_path / "robot.urdf")
    assert '<limit lower="-1e+300" upper="1" effort="1e+300" velocity="1e+300"/>' in (tmp_path / "robot.urdf").read_text()
    assert load_description(tmp_path / "robot.urdf").joints[0].coordinates == (Coordinate(upper=1.0),)


def test_a_helical_joint_moves_alike_with_one_coordinate_more(tmp_path):
    robot = one_joint("helical", pitch=0.1)
    ld.save(robot, tmp_path / "robot.urdf", lossy=True)
    model, other = ld.build(robot), ld.load(tmp_path / "robot.urdf")
    assert other.v_names == ("j", "j.slide") and other.nc == 1
    a = ld.forward_dynamics(model, [0.3], [0.2], [0.7])
    found = ld.constrained_forward_dynamics(other, [0.3, 0.03], [0.2, 0.02], [0.7, 0.0]).a
    assert np.allclose(found, [a[0], 0.1 * a[0]], rtol=1e-12)


def test_without_its_armature_a_joint_moves_no_inertia(tmp_path):
    rotor = Robot("r", (Link("a"),), (Joint("j", "continuous", WORLD, "a", axes=((0.0, 0.0, 1.0),),
                                            coordinates=(Coordinate(armature=1.0),)),))
    ld.save(rotor, tmp_path / "robot.urdf", lossy=True)
    assert ld.build(rotor).moves_inertia and not ld.load(tmp_path / "robot.urdf").moves_inertia


def test_a_mimic_of_nothing_is_a_warning_of_a_urdf_and_an_error_elsewhere(tmp_path):
    robot = one_joint()
    ld.save(robot, tmp_path / "robot.urdf", lossy=True)
    text = (tmp_path / "robot.urdf").read_text()
    (tmp_path / "robot.urdf").write_text(text.replace("</joint>", '<mimic joint="nobody"/></joint>'))
    warned = load_description(tmp_path / "robot.urdf")
    assert warned.joints[0].mimic is None
    assert "j: mimics nobody, which does not exist; it moves independently [mimic]" in str(warned.warnings[-1])
    ld.save(warned, tmp_path / "again.urdf")
    assert '<mimic joint="nobody"/>' in (tmp_path / "again.urdf").read_text()                 # the text of the file
    with pytest.raises(ModelError, match=r"mimic: unknown joint in a coupling: .*got 'nobody'"):
        ld.save(replace(robot, joints=(replace(robot.joints[0], mimic=Mimic("nobody")),)), tmp_path / "robot.yaml")


def test_colours_of_shapes_stay(tmp_path):
    (tmp_path / "a.urdf").write_text('<robot name="a"><link name="one"><visual><geometry><sphere radius="1"/></geometry>'
                                     '<material name="m"><color rgba="0.25 0.5 1 1"/></material></visual></link></robot>')
    ld.save(load_description(tmp_path / "a.urdf"), tmp_path / "b.urdf", lossy=True)
    assert link_shapes(ld.load_description(tmp_path / "b.urdf")) == link_shapes(ld.load_description(tmp_path / "a.urdf"))
    assert link_shapes(ld.load_description(tmp_path / "b.urdf"))["one"][0].colour == (0.25, 0.5, 1.0)


@pytest.mark.parametrize("name", ["ur5.yaml", "asymmetric_body.yaml", "hopper.xml"])
def test_shapes_for_pictures(name, tmp_path):
    """Primitives stay; a capsule is a cylinder and two spheres."""
    source = ROOT / "robots" / name
    ld.save(load_description(source), tmp_path / "robot.urdf", lossy=True)
    written, known = link_shapes(ld.load_description(tmp_path / "robot.urdf")), link_shapes(ld.load_description(source))
    assert set(written) == set(known)
    for link, shapes in known.items():
        kinds = [("cylinder", "sphere", "sphere") if one.kind == "capsule" else (one.kind,) for one in shapes]
        assert [one.kind for one in written[link]] == [kind for group in kinds for kind in group]
        first, same = shapes[0], written[link][0]
        assert (same.sizes, same.pose.translation) == (first.sizes, first.pose.translation)
        assert np.allclose(same.pose.rotation, first.pose.rotation, rtol=0, atol=ROUNDING)
        if first.kind == "capsule":
            ends = np.subtract(written[link][2].pose.translation, written[link][1].pose.translation)
            assert np.allclose(ends, first.sizes[1] * np.array(first.pose.rotation[2::3]), rtol=1e-12)


def test_shapes_of_a_urdf_are_noted(tmp_path):
    lost = map(str, ld.save(ld.load(file_of("panda.urdf")), tmp_path / "panda.yaml"))
    assert "shapes: meshes and collision shapes are left out; primitives are written for drawing [not-written]" in lost


def shaped() -> Robot:
    """A robot of Python with drawn shapes, several shapes, a massless link with a shape, and one without."""
    tilted = ld.Pose.from_xyz_rpy([0.1, 0, 0.2], [0.3, 0.2, 0.1])
    links = [ld.Link("box", 3, [0, 0, 0.2], [0.03, 0.03, 0.01], shape=ld.Shape.box(0.1, 0.2, 0.3)),
             ld.Link("two", density=800, shapes=[ld.Shape.cylinder(0.1, 0.3, tilted, [1, 0, 0.5]), ld.Shape.sphere(0.1)]),
             ld.Link("capsule", 1, [0, 0, 0.1], shape=ld.Shape.capsule(0.05, 0.2)),
             ld.Link("frame", inertia=np.zeros((3, 3)), shapes=[ld.Shape.sphere(0.02)]), ld.Link("plain")]
    names = ("world", *(link.name for link in links))
    axes = {"continuous": {"axis": [0, 1, 0]}, "ball": {}, "fixed": {}}
    types = ("continuous", "continuous", "ball", "fixed", "fixed")
    return Robot("shaped", links, [ld.Joint(f"j{k}", kind, names[k], names[k + 1], **axes[kind]) for k, kind in enumerate(types)])


def test_shapes_stay_in_a_yaml(tmp_path):
    """They were left out, with a warning."""
    robot = shaped()
    assert ld.save(robot, tmp_path / "robot.yaml") == ()
    read = load_description(tmp_path / "robot.yaml")
    assert read == ld.build(robot).description and link_shapes(read) == link_shapes(robot) and len(link_shapes(read)) == 4


def test_shapes_of_a_robot_of_python_are_in_its_run_folder(tmp_path):
    model = ld.build(shaped())
    ld.write_run(ld.simulate(model, duration=0.01), tmp_path / "run", plots=False)
    assert link_shapes(load_description(tmp_path / "run/model.yaml")) == link_shapes(model.description)


@pytest.mark.parametrize("text, message", [
    ("shape: {sphere: {radius: 1}}, shapes: [{sphere: {radius: 1}}], mass: 1", "links.a.shapes: shape and shapes cannot be "
                                                                               "combined"),
    ("shapes: [{sphere: {radius: 1}}], mass: 1, com: [0, 0, 1]", "links.a.com: com and shapes cannot be combined"),
    ("shapes: [{sphere: {radius: 1}}]", "links.a.shapes: a shape needs either mass or density"),
    ("shapes: [{sphere: {radius: 1}, box: [1, 1, 1]}], mass: 1", "links.a.shapes.0.: .*one of box, sphere, cylinder, capsule"),
    ("shapes: [{xyz: [0, 0, 1]}], mass: 1", "links.a.shapes.0.: .*one of box, sphere, cylinder, capsule"),
    ("shapes: [{sphere: {radius: 1}, colour: [2, 0, 0]}], mass: 1", "wrong colour of the sphere"),
    ("inertia: [1, 1, 1], density: 3, shapes: [{sphere: {radius: 1}}]", "links.a.density: density needs a shape, and no inertia"),
    ("mass: 1, rpy: [0, 0, 1], shapes: [{sphere: {radius: 1}}]", "links.a.rpy: rpy requires a shape")])
def test_wrong_shapes_of_a_yaml(text, message, tmp_path):
    (tmp_path / "robot.yaml").write_text(f"links:\n  a: {{{text}}}\n")
    with pytest.raises(ModelError, match=rf"robot.yaml:2: {message}" if message.startswith("links") else message):
        load_description(tmp_path / "robot.yaml")


# --- files -----------------------------------------------------------------------------------------------------------

def test_files_are_replaced_by_force_only(tmp_path):
    path = tmp_path / "robot.yaml"
    ld.save(one_joint(), path)
    with pytest.raises(UsageError, match="already exists; --force or force=True overwrites it"):
        ld.save(one_joint("prismatic"), path)
    ld.save(one_joint("prismatic"), path, force=True)
    assert load_description(path).joints[0].type == "prismatic"


@pytest.mark.parametrize("name, message", [
    ("robot.sdf", r"unknown file name extension: expected .urdf, .yaml, .yml"), ("robot", "unknown file name extension"),
    ("robot.loops.yaml", "is the name of a loops file"), ("no/robot.urdf", "does not exist")])
def test_names_that_are_refused(name, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        ld.save(one_joint(), tmp_path / name)


def test_both_files_of_a_mechanism_or_none(tmp_path):
    robot = replace(one_joint(), loops=(Loop("l", "ball", WORLD, "a"),))
    (tmp_path / "robot.loops.yaml").write_text("loops: {}\n")
    with pytest.raises(UsageError, match=r"robot.loops.yaml already exists"):
        ld.save(robot, tmp_path / "robot.urdf")
    assert not (tmp_path / "robot.urdf").exists()
    ld.save(robot, tmp_path / "robot.urdf", force=True)
    with pytest.raises(UsageError, match=r"a loops file next to .* would add 1 constraint\(s\)"):
        ld.save(one_joint(), tmp_path / "robot.urdf", force=True)
