"""Closures and couplings in files: every key, a file next to a URDF, and errors with their lines."""
from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ModelError
from liedyn.io.robots.robot_yaml import read_loops_file, read_robot_yaml
from liedyn.model.description import Coupling, Loop, Mimic
from liedyn.model.links import Pose
from messages import has_parts

cmeel = pytest.importorskip("cmeel")
REAL = Path(cmeel.__file__).parents[1] / "cmeel.prefix/share/example-robot-data/robots"

HEAD = """\
links:
  a: {mass: 1, inertia: [1, 1, 1]}
  b: {mass: 1, inertia: [1, 1, 1]}
  c: {mass: 1, inertia: [1, 1, 1]}
joints:
  ja: {type: revolute, parent: world, child: a, axis: [0, 0, 1], limits: {lower: -1, upper: 1}}
  jb: {type: revolute, parent: a, child: b, axis: [0, 0, 1], limits: {lower: -1, upper: 1}}
  jc: {type: cylindrical, parent: b, child: c, axis: [0, 0, 1]}
"""
CONSTRAINTS = """\
loops:
  tip: {type: revolute, a: {link: c, xyz: [0.3, 0, 0], rpy: [0, 0, 1.5707963267948966]}, b: {link: a}, axis: [0, 1, 0]}
  rod: {type: distance, a: a, b: {link: c, quaternion: [0, 0, 0.6, 0.8]}, length: 0.4}
  hook: {type: universal, a: a, b: c, axes: [[1, 0, 0], [0, 0, 1]]}
  wheel: {type: rolling, a: world, b: c, radius: 0.1, axis: [0, 1, 0]}
  marble: {type: rolling, a: world, b: c, radius: 0.2, shape: sphere}
  tool: {type: ball, a: world, b: c, driven: true}
  slot: {type: planar, a: world, b: b}
couplings:
  gear: {terms: {jb: 1, ja: -1.2}, offset: 0.1}
  screw: {terms: {jc.slide: 1, jc.angle: -0.01}}
"""
URDF = """\
<robot name="arm"><link name="world"/><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="ja" type="revolute"><parent link="world"/><child link="a"/><limit lower="-1" upper="1"/></joint>
<joint name="jb" type="revolute"><parent link="a"/><child link="b"/><limit lower="-1" upper="1"/>
<mimic joint="ja" multiplier="-2" offset="0.5"/></joint></robot>
"""
ROD = "loops: {rod: {type: distance, a: world, b: {link: b, xyz: [0, 1, 0]}, length: 2}}\n"


def write(tmp_path, text, name="robot.yaml"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_every_key(tmp_path):
    robot = read_robot_yaml(write(tmp_path, HEAD + CONSTRAINTS))
    quarter, turn = Pose.from_xyz_rpy((0.3, 0, 0), (0, 0, math.pi / 2)), Pose.from_xyz_quaternion((0, 0, 0), (0, 0, 0.6, 0.8))
    assert robot.loops == (
        Loop("tip", "revolute", "c", "a", quarter, axes=((0, 1, 0),)), Loop("rod", "distance", "a", "c", pose_b=turn, length=0.4),
        Loop("hook", "universal", "a", "c", axes=((1, 0, 0), (0, 0, 1))),
        Loop("wheel", "rolling", "world", "c", axes=((0, 1, 0),), radius=0.1),
        Loop("marble", "rolling", "world", "c", radius=0.2, shape="sphere"), Loop("tool", "ball", "world", "c", driven=True),
        Loop("slot", "planar", "world", "b"))
    assert robot.couplings == (Coupling("gear", (("jb", "", 1), ("ja", "", -1.2)), 0.1),
                               Coupling("screw", (("jc.slide", "", 1), ("jc.angle", "", -0.01))))
    assert str(robot.loops[1].place) == f"{robot.source}:11: loops.rod"
    assert str(robot.loops[1].place.at("length")) == f"{robot.source}:11: loops.rod.length"
    model = ld.load(robot.source)
    assert model.nc == 5 + 1 + 4 + 3 + 3 + 3 + 3 + 1 + 1 and model.warnings == ()
    assert model.description.couplings[1].terms == (("jc", "slide", 1.0), ("jc", "angle", -0.01))
    assert model.constraint("screw").units == ("m",)


def test_mimic_of_a_joint(tmp_path):
    text = HEAD.replace("upper: 1}}\n  jc", "upper: 1}, mimic: {joint: ja, multiplier: 1.2, offset: -0.1}}\n  jc")
    robot = read_robot_yaml(write(tmp_path, text))
    assert robot.joints[1].mimic == Mimic("ja", 1.2, -0.1)
    model = ld.load(robot.source)
    assert model.constraint_equation_names == ("jb",) and model.warnings == ()
    assert model.loop_constants[-2:].tolist() == [1.0, -1.2]


BROKEN = {
    "type": ("loops: {tip: {type: hinge, a: a, b: c}}",
             "loops.tip.type: expected one of weld, revolute … got hinge"),
    "no type": ("loops: {tip: {a: a, b: c}}", "loops.tip: the key type is missing: expected one of weld, revolute, "
                                              "prismatic, cylindrical, planar, ball, universal, distance, rolling"),
    "no frame": ("loops: {tip: {type: weld, a: a}}",
        "loops.tip: the key b is missing: expected a link's name, or link with xyz and rpy"),
    "no link": ("loops: {tip: {type: weld, a: {xyz: [0, 0, 0]}, b: c}}", "loops.tip.a: the key link is missing"),
    "frame": ("loops: {tip: {type: weld, a: 3, b: c}}", "loops.tip.a: expected a mapping … got 3"),
    "frame key": ("loops: {tip: {type: weld, a: {link: a, axis: [0, 0, 1]}, b: c}}",
                  "loops.tip.a.axis: unknown key: expected one of link, xyz, rpy, quaternion"),
    "quaternion": ("loops: {tip: {type: weld, a: {link: a, quaternion: [0, 0, 0, 2]}, b: c}}", "the quaternion has norm 2"),
    "no length": ("loops: {tip: {type: distance, a: a, b: c}}", "loops.tip: the key length is missing: expected metres"),
    "length": ("loops: {tip: {type: distance, a: a, b: c, length: 0}}",
               "loops.tip.length: out of range: expected a number > 0 and <= 1e+30, got 0"),
    "radius": ("loops: {tip: {type: rolling, a: a, b: c}}", "loops.tip: the key radius is missing"),
    "shape": ("loops: {tip: {type: rolling, a: a, b: c, radius: 1, shape: cone}}",
              "loops.tip.shape: expected one of disc, sphere, got cone"),
    "sphere's axis": ("loops: {tip: {type: rolling, a: a, b: c, radius: 1, shape: sphere, axis: [0, 0, 1]}}",
                      "loops.tip.axis: a sphere has no axis"),
    "other's key": ("loops: {tip: {type: ball, a: a, b: c, length: 1}}", "loops.tip.length: a ball closure has no length"),
    "unknown key": ("loops: {tip: {type: ball, a: a, b: c, drive: true}}",
                    "loops.tip.drive: unknown key: expected one of type, a, b, driven (did you mean driven?)"),
    "axes": ("loops: {tip: {type: universal, a: a, b: c, axes: [[1, 0, 0]]}}",
             "loops.tip.axes: expected a list of 2 axes, got [[1, 0, 0]]"),
    "zero axis": ("loops: {tip: {type: revolute, a: a, b: c, axis: [0, 0, 0]}}", "loops.tip.axis: the axis is the zero vector"),
    "driven": ("loops: {tip: {type: ball, a: a, b: c, driven: 1}}",
               "loops.tip.driven: expected true or false, got 1"),
    "link": ("loops: {tip: {type: ball, a: a, b: d}}",
        "loops.tip.b: frame b is not on a link of this robot: expected a link's name or world, got 'd'"),
    "itself": ("loops: {tip: {type: ball, a: a, b: a}}",
        "loops.tip.b: the loop joins a link to itself: expected two links, got 'a'"),
    "twice": ("loops: {x: {type: ball, a: a, b: c}}\ncouplings: {x: {terms: {ja: 1}}}",
              'couplings.x: two constraints are called "x" '
              "(first on line 9)"),
    "terms": ("couplings: {gear: {offset: 1}}", "couplings.gear: the key terms is missing: expected coefficients by joint: "
                                                "{joint1: 1, joint2: -2}, or follower, driver and function or table"),
    "term": ("couplings: {gear: {terms: {ja: x}}}", "couplings.gear.terms.ja: expected a number, got x"),
    "no term": ("couplings: {gear: {terms: {}}}", "couplings.gear.terms: the coupling has no terms"),
    "joint": ("couplings: {gear: {terms: {jx: 1}}}",
        "couplings.gear.terms: unknown joint in a coupling: expected a joint's name, or joint.label, got 'jx'"),
    "label": ("couplings: {gear: {terms: {jc: 1}}}",
              'couplings.gear.terms: joint "jc" has 2 coordinates: expected one of jc.angle, jc.slide, got \'jc\''),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_constraints(tmp_path, name):
    text, expected = BROKEN[name]
    path = write(tmp_path, HEAD + text + "\n")
    with pytest.raises(ModelError) as caught:
        ld.load(path)
    line = 10 if name == "twice" else 9
    text = str(caught.value)
    assert text.startswith(f"{path}:{line}: ") and has_parts(text, expected) and "\n" not in text


@pytest.mark.parametrize("mimic, expected", [
    ("{joint: jx}", "joints.jd.mimic.joint: expected one of ja, jb, jc, jd, got jx"),
    ("{multiplier: 2}", "joints.jd.mimic: the key joint is missing: expected the name of the joint to follow"),
    ("{joint: ja, factor: 2}", "joints.jd.mimic.factor: unknown key: expected one of joint, multiplier, offset"),
    ("{joint: jd}", 'joints.jd.mimic: the joint mimics itself'),
    ("{joint: jc}", 'joints.jd.mimic: joint "jc" has 2 coordinates')])
def test_broken_mimics(tmp_path, mimic, expected):
    text = HEAD.replace("joints:", "  d: {mass: 1, inertia: [1, 1, 1]}\njoints:")
    path = write(tmp_path, text + f"  jd: {{type: continuous, parent: c, child: d, axis: [0, 0, 1], mimic: {mimic}}}\n")
    with pytest.raises(ModelError) as caught:
        ld.load(path)
    assert str(caught.value).startswith(f"{path}:10: ") and expected in str(caught.value)


def test_a_ball_joint_has_no_mimic(tmp_path):
    path = write(tmp_path, "links: {a: {mass: 1}}\njoints:\n  j: {type: ball, parent: world, child: a, mimic: {joint: j}}\n")
    with pytest.raises(ModelError, match=r":3: joints\.j\.mimic: a ball joint has no mimic"):
        ld.load(path)


# next to a URDF ------------------------------------------------------------------------------------------------------

def test_a_mimic_of_a_urdf_is_a_coupling(tmp_path):
    """jb + 2 ja = 0.5."""
    model = ld.load(write(tmp_path, URDF, "arm.urdf"))
    assert (model.constraint_equation_names, model.warnings) == (("jb",), ())
    assert model.loop_constants[24] == 0.5 and model.loop_constants[-2:].tolist() == [1.0, 2.0]


def test_a_file_of_the_robot_s_name_is_found(tmp_path):
    write(tmp_path, ROD, "arm.loops.yaml")
    model = ld.load(write(tmp_path, URDF, "arm.urdf"))
    assert model.constraint_equation_names == ("rod", "jb") and model.warnings == ()
    assert str(model.description.loops[0].place) == f"{tmp_path / 'arm.loops.yaml'}:1: loops.rod"


@pytest.mark.parametrize("robot, rows, warnings", [
    ("arm.urdf", ("rod", "jb"), []), ("../arm/arm.urdf", ("rod", "jb"), []), ("leg.urdf", ("jb",), []),
    (None, ("jb",), ["loops-unused"])])
def test_the_common_file_counts_if_it_names_the_robot(tmp_path, robot, rows, warnings):
    write(tmp_path, (f"robot: {robot}\n" if robot else "") + ROD, "loops.yaml")
    model = ld.load(write(tmp_path, URDF, "arm.urdf"))
    assert model.constraint_equation_names == rows and [warning.code for warning in model.warnings] == warnings
    if warnings:
        assert str(model.warnings[0]) == (f"{tmp_path / 'loops.yaml'}: loops.yaml: does not name a robot and is ignored; "
                                          "add robot: arm.urdf [loops-unused]")


def test_a_file_given_by_name_adds_to_the_robot_s_own(tmp_path):
    extra = write(tmp_path, ROD, "extra.yaml")
    assert ld.load(write(tmp_path, URDF, "arm.urdf"), loops=extra).constraint_equation_names == ("rod", "jb")
    model = ld.load(write(tmp_path, HEAD + CONSTRAINTS.replace("rod:", "bar:")), loops=extra)
    assert [one.name for one in model.constraints][-4:] == ["slot", "rod", "gear", "screw"]
    with pytest.raises(ModelError, match='two constraints are called "rod"'):
        ld.load(write(tmp_path, HEAD + CONSTRAINTS), loops=extra)
    with pytest.raises(ModelError, match="no such file"):
        ld.load(tmp_path / "arm.urdf", loops=tmp_path / "none.yaml")


def test_a_file_of_constraints_stands_for_the_robot_that_it_names(tmp_path):
    write(tmp_path, URDF, "arm.urdf")
    path = write(tmp_path, "robot: arm.urdf\n" + ROD, "held.loops.yaml")
    assert ld.load(path).constraint_equation_names == ("rod", "jb")
    assert ld.load(tmp_path / "arm.urdf").constraint_equation_names == ("jb",)
    with pytest.raises(ModelError, match=r"loops.yaml: the loops file does not name a robot: expected the key robot"):
        ld.load(write(tmp_path, ROD, "loops.yaml"))


def test_a_file_of_constraints_has_no_other_keys(tmp_path):
    with pytest.raises(ModelError, match=r":1: not a file of this kind: .*: expected one of robot, loops, couplings, actuated"):
        read_loops_file(write(tmp_path, HEAD))


# real robots --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("file, count", [("panda.urdf", 1), ("baxter.urdf", 2), ("pr2.urdf", 10),
                                         ("talos_full_v2.urdf", 12), ("talos_reduced.urdf", 0), ("tiago_pro.urdf", 10),
                                         ("alex_psyonic_hands.urdf", 0)])
def test_mimics_of_real_robots(file, count):
    """Mimics of fixed joints have no effect. Those of Alex's hands follow joints that its file lacks: warnings."""
    path, = REAL.rglob(file)
    model = ld.load(path)
    assert len(model.constraints) == model.nc == count
    assert sum(warning.code == "mimic" for warning in model.warnings) == (8 if "alex" in file else 0)
    for one, given in zip(model.constraints, (j for j in model.description.joints if j.mimic), strict=False):
        assert one.name == given.name and np.isfinite(given.mimic.multiplier)


# --- the robot by a path ----------------------------------------------------------------------------------------------

@pytest.fixture
def folders(tmp_path):
    """Create arm/arm.urdf, and another arm.urdf in its parent folder."""
    for folder in (tmp_path / "arm", tmp_path):
        folder.mkdir(exist_ok=True)
        write(folder, URDF, "arm.urdf")
    return tmp_path


@pytest.mark.parametrize("robot", ["../arm/arm.urdf", "./arm.urdf", "{}/arm/arm.urdf"])
def test_a_path_to_the_robot_is_followed(folders, robot):
    """Every path with a slash ended in `ValueError: Invalid name`."""
    path = write(folders / "arm", f"robot: {robot.format(folders)}\n" + ROD, "loops.yaml")
    assert len(ld.load(path).description.loops) == 1
    assert len(ld.load(folders / "arm" / "arm.urdf").description.loops) == 1


def test_a_file_of_loops_elsewhere(folders):
    path = write(folders, "robot: arm/arm.urdf\n" + ROD, "held.loops.yaml")
    assert ld.load(path).source == str(folders / "arm" / "arm.urdf")


def test_loops_of_another_file_of_that_name_are_passed_over(folders):
    path = write(folders, "robot: arm/arm.urdf\n" + ROD, "loops.yaml")
    model = ld.load(folders / "arm.urdf")
    assert not model.description.loops
    assert [str(f) for f in model.warnings] == [f"{path}: loops.yaml: belongs to another file of that name, arm/arm.urdf, and is "
                                                "ignored [loops-unused]"]


@pytest.mark.parametrize("robot", ["none/arm.urdf", "/", "..", ".", '""', '"a\\0b"', "no/ending", '"x\\n.urdf"'])
def test_a_robot_that_is_no_file_is_told(folders, robot):
    path = write(folders / "arm", f"robot: {robot}\n" + ROD, "loops.yaml")
    with pytest.raises(ModelError):
        ld.load(path)


@pytest.mark.parametrize("name", ["a/b", "../x", "/", "a\\\\b"])
def test_a_closure_with_a_slash_in_its_name(tmp_path, name):
    write(tmp_path, URDF, "arm.urdf")
    path = write(tmp_path, "robot: arm.urdf\n" + ROD.replace("rod:", f'"{name}":'), "held.loops.yaml")
    assert ld.load(path).constraints[0].name == name.replace("\\\\", "\\")
