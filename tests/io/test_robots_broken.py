"""Broken robot files: each gives one clear line with file, line and element, whoever notices it (loader or validation)."""
from __future__ import annotations

import pytest

from liedyn.errors import ModelError
from liedyn.io.robots.robot_yaml import read_robot_yaml
from liedyn.io.robots.urdf import read_urdf
from liedyn.model.description import JOINT_TYPES
from liedyn.model.validate import validate
from messages import has_parts

URDF_HEAD = """\
<robot name="r">
  <link name="a"/>
  <link name="b">
    <inertial>
      <origin xyz="0 0 1"/>
      <mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
  </link>
  <joint name="j" type="revolute">
    <parent link="a"/>
    <child link="b"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
    <dynamics damping="0.1"/>
  </joint>
</robot>
"""
YAML_HEAD = """\
name: r
base: fixed
links:
  a:
    mass: 1
    inertia: [1, 1, 1]
  b: {mass: 1, inertia: [1, 1, 1]}
joints:
  j:
    type: revolute
    parent: world
    child: a
    axis: [0, 0, 1]
    limits: {lower: -1, upper: 1}
  k: {type: ball, parent: a, child: b}
"""


def urdf(old: str, new: str) -> bytes:
    return swap(URDF_HEAD, old, new)


def yaml(old: str, new: str) -> bytes:
    return swap(YAML_HEAD, old, new)


def swap(text: str, old: str, new: str) -> bytes:
    assert text.count(old) == 1
    return text.replace(old, new).encode()


# name of the file, its contents, line of the error (None: the whole file), what the message says after the place
URDF = {
    "empty": (b"", None, "the file is empty"),
    "blank": (b" \n\n ", None, "the file is empty"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x00", None, "this is a binary file: expected text in UTF-8"),
    "not-xml": (b"hello", 1, "not valid XML: text before the first element"),
    "not-utf8": (urdf('robot name="r"', 'robot name="\xff"').decode().encode("latin-1"), 1,
                 "not valid XML: the byte 0xff is not a character in UTF-8 (save the file as UTF-8, or name its encoding"),
    "cut-off": (URDF_HEAD[:300].encode(), 13, "not valid XML: the tag <axi> is not closed with >"),
    "mismatched-tag": (urdf("</joint>", "</link>"), 16, "not valid XML: </link> closes <joint> of line 10"),
    "doctype": (b'<!DOCTYPE robot>\n' + URDF_HEAD.encode(), 1, "a DOCTYPE is not accepted"),
    "entity-bomb": (b'<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;&a;">]>\n<robot name="&b;"/>', 2,
                    "a DOCTYPE is not accepted"),
    "external-entity": (b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>', 1, "a DOCTYPE is not"),
    "undefined-entity": (urdf('"1 0"'.replace('"1 0"', 'upper="1"'), 'upper="&lol;"'), 14,
                         "not valid XML: undefined entity &lol;"),
    "huge-nesting": (b"<robot>\n" + b"<a>" * 100_000, 2, "too deeply nested: expected at most 50 levels"),
    "other-format": (b'<sdf version="1.6"/>', 1,
                     "not a URDF file: expected <robot>, got '<sdf>' (SDF files are not supported)"),
    "no-links": (b'<robot name="r"/>', 1, "no links in this robot"),
    "unexpanded-xacro": (b'<robot xmlns:xacro="x">\n<xacro:include filename="a"/></robot>', 2,
                         "a xacro macro is not expanded: got '<xacro:include>' (give a xacro file"),
    "xacro-macro": (urdf('<link name="a"/>', '<link name="a"/>\n  <xacro:gripper side="left"/>'), 3,
                    "a xacro macro is not expanded: got '<xacro:gripper>' (give a xacro file"),
    "xacro-expression": (urdf('"0 0 1"/>\n      <mass', '"0 0 ${h}"/>\n      <mass'), 5,
                         'link "b", <origin xyz>: a xacro expression: expected 3 numbers, got \'0 0 ${h}\''),
    "link-without-name": (urdf('<link name="a"/>', "<link/>"), 2, "<link> has no name"),
    "duplicate-link": (urdf('<link name="a"/>', '<link name="b"/>'), 3, 'link "b": two links are called "b" (first on line 2)'),
    "joint-without-type": (urdf(' type="revolute"', ""), 10,
        'joint "j": the joint has no type: expected one of revolute, continuous, prismatic, fixed, floating, planar'),
    "unknown-type": (urdf("revolute", "revolut"), 10,
                     'joint "j": unknown joint type: expected one of revolute, continuous, prismatic, fixed, floating, '
                     "planar, got 'revolut' (did you mean revolute?)"),
    "no-parent": (urdf('<parent link="a"/>', ""), 10, 'joint "j": the joint has no <parent>'),
    "no-child": (urdf('<child link="b"/>', ""), 10, 'joint "j": the joint has no <child>'),
    "parent-without-link": (urdf('<parent link="a"/>', "<parent/>"), 11,
                            'joint "j", <parent link>: the attribute link is missing'),
    "unknown-link": (urdf('<child link="b"/>', '<child link="bb"/>'), 12,
                     'joint "j", <child link>: the child is not a link of this robot: expected a link\'s name, got \'bb\' (did '
                     "you mean b?)"),
    "own-child": (urdf('<parent link="a"/>', '<parent link="b"/>'), 12,
                  'joint "j", <child link>: a link cannot be its own child'),
    "ground-as-child": (urdf('<child link="b"/>', '<child link="world"/>'), 12, "the ground cannot be a child"),
    "zero-axis": (urdf('axis xyz="0 0 1"', 'axis xyz="0 0 0"'), 13,
                  'joint "j", <axis xyz>: the axis is the zero vector: expected a non-zero vector, got [0.0, 0.0, 0.0]'),
    "short-axis": (urdf('axis xyz="0 0 1"', 'axis xyz="0 1"'), 13,
                   'joint "j", <axis xyz>: expected 3 numbers, got \'0 1\''),
    "axis-nan": (urdf('axis xyz="0 0 1"', 'axis xyz="0 nan 1"'), 13,
                 'joint "j", <axis xyz>: not a finite number: expected 3 numbers, got \'0 nan 1\''),
    "limits-swapped": (urdf('lower="-1" upper="1"', 'lower="1" upper="-1"'), 14,
                       'joint "j", <limit>: the limits are swapped: expected the lower limit first, got [1.0, -1.0]'),
    "limit-infinite": (urdf('upper="1"', 'upper="inf"'), 14,
        'joint "j", <limit upper>: not a finite number: expected a number, got \'inf\''),
    "limit-text": (urdf('upper="1"', 'upper="1_0"'), 14,
                   'joint "j", <limit upper>: expected a number, got \'1_0\''),
    "negative-damping": (urdf('damping="0.1"', 'damping="-0.1"'), 15,
                         'joint "j", <dynamics>: negative damping: expected zero or more, got -0.1'),
    "negative-mass": (urdf('mass value="1"', 'mass value="-1"'), 6,
                      'link "b", <mass value>: negative mass: expected zero or more, got -1.0'),
    "mass-overflow": (urdf('mass value="1"', 'mass value="1e999"'), 6, 'link "b", <mass value>: not a finite number'),
    "no-mass": (urdf('<mass value="1"/>', ""), 4, 'link "b": <inertial> has no <mass>: expected <mass value="…"/>'),
    "no-mass-value": (urdf('mass value="1"', "mass"), 6, 'link "b", <mass value>: the attribute value is missing'),
    "no-izz": (urdf(' izz="1"', ""), 7, 'link "b", <inertia izz>: the attribute izz is missing: expected a number'),
    "inertia-nan": (urdf('ixx="1"', 'ixx="NaN"'), 7,
        'link "b", <inertia ixx>: not a finite number: expected a number, got \'NaN\''),
    "negative-inertia": (urdf('ixx="1"', 'ixx="-1"'), 7,
                         'link "b", <inertia>: the inertia is not positive semidefinite … got [-1.0, 1.0, 1.0]'),
    "indefinite-inertia": (urdf('ixy="0"', 'ixy="2"'), 7, "the inertia is not positive semidefinite … got [-1.0, 1.0, 3.0]"),
    "duplicate-attribute": (urdf('lower="-1"', 'lower="-1" lower="0"'), 14, "not valid XML: duplicate attribute lower"),
    "unconnected": (urdf('<link name="a"/>', '<link name="a"/><link name="c"/>'), 2,
                    'link "c": not connected: 2 links are not the child of a joint: expected one root link, got [\'a\', \'c\']'),
    "two-parents": (urdf("</robot>", '<joint name="k" type="fixed"><parent link="a"/>\n<child link="b"/></joint></robot>'), 18,
                    'joint "k", <child link>: link "b" has two parents: it is also the child of joint "j" (first on line 10)'),
    "cycle": (urdf("</robot>", '<joint name="k" type="fixed"><parent link="b"/><child link="a"/></joint></robot>'), 10,
              'joint "j": the joints form a cycle: a -> b -> a: expected a tree'),
    "duplicate-joint": (urdf("</robot>", '<link name="c"/><joint name="j" type="fixed"><parent link="b"/>'
                             '<child link="c"/></joint></robot>'), 17, 'joint "j": two joints are called "j" (first on line 10)'),
    "name-with-newline": (urdf('joint name="j"', 'joint name="j&#10;"'), 10, r'joint "j\n": a joint needs a name of printable'),
}

YAML = {
    "empty": (b"", None, "the file is empty"),
    "binary": (b"\x7fELF\x02\x01\x00", None, "this is a binary file: expected text in UTF-8"),
    "not-utf8": (b"name: r\nlinks: {\xff: }", 2, "this is not a text file: expected text in UTF-8"),
    "syntax": (yaml("axis: [0, 0, 1]", "axis: [0, 0, 1"), 14, "not valid YAML: "),
    "tab": (yaml("    mass: 1\n", "\tmass: 1\n"), 5, "not valid YAML: "),
    "a-list": (b"- 1\n- 2\n", 1, "not a file of this kind: expected a mapping (key: value)"),
    "two-documents": (YAML_HEAD.encode() + b"---\nname: s\n", 16, "more than one YAML document"),
    "alias-bomb": (b"l0: &l0 [1]\n" + b"".join(b"l%d: &l%d [%s1]\n" % (k, k, b"*l%d, " % (k - 1) * 9) for k in range(1, 99)), 6,
                   "l5[5]: YAML aliases add too many values: expected at most 100000"),
    "alias": (yaml("mass: 1\n    inertia", "mass: &m -1\n    inertia").replace(b"b: {mass: 1", b"b: {mass: *m"), 5,
              "links.a.mass: negative mass: expected zero or more, got -1.0"),
    "huge-nesting": (b"links: " + b"{a: " * 10_000, 1, "too deeply nested: expected at most 50 levels"),
    "tag": (yaml("mass: 1\n    inertia", "mass: !!python/name:os.system 1\n    inertia"), 5,
            "links.a.mass: YAML tags are not supported"),
    "no-links": (b"name: r\n", 1, "the key links is missing: expected the links by name"),
    "empty-links": (b"name: r\nlinks: {}\n", None, "no links in this robot"),
    "unknown-key": (yaml("name: r", "nmae: r"), 1,
                    "nmae: unknown key: expected one of name, base, gravity, links, joints, actuators, include, loops, "
                    "couplings, actuated, elements, keyframes (did you mean name?)"),
    "unknown-link-key": (yaml("    inertia: [1, 1, 1]", "    inertai: [1, 1, 1]"), 6,
                         "links.a.inertai: unknown key: expected one of mass, com, inertia, shape, shapes, density, rpy (did "
                         "you mean inertia?)"),
    "unknown-joint-key": (yaml("    axis: [0, 0, 1]", "    axis: [0, 0, 1]\n    dampng: 1"), 14,
                          "joints.j.dampng: unknown key: expected one of type, parent, child, origin, axis, limits, damping, "
                          "friction, armature, stiffness, rest, mimic (did you mean damping?)"),
    "unknown-limit": (yaml("{lower: -1", "{low: -1"), 14,
                      "joints.j.limits.low: unknown key: expected one of lower, upper, velocity, effort"),
    "duplicate-key": (yaml("    mass: 1\n", "    mass: 1\n    mass: 2\n"), 6,
                      "links.a.mass: duplicate key, first on line 5"),
    "duplicate-link": (yaml("  b: {mass", "  a: {mass"), 7, "links.a: duplicate key, first on line 4"),
    "base": (yaml("base: fixed", "base: float"), 2,
             "base: expected one of fixed, floating, got float (did you mean floating?)"),
    "gravity": (yaml("base: fixed", "gravity: -9.81"), 2, "gravity: expected a list of 3 numbers, got -9.81"),
    "mass-text": (yaml("    mass: 1\n", "    mass: 1 kg\n"), 5, "links.a.mass: expected a number, got 1 kg"),
    "mass-bool": (yaml("    mass: 1\n", "    mass: true\n"), 5, "links.a.mass: expected a number, got true"),
    "mass-nan": (yaml("    mass: 1\n", "    mass: .nan\n"), 5,
                 "links.a.mass: not a finite number: expected a number, got .nan"),
    "mass-nothing": (yaml("    mass: 1\n", "    mass:\n"), 5, "links.a.mass: no value: expected a number"),
    "mass-negative": (yaml("    mass: 1\n", "    mass: -1\n"), 5,
                      "links.a.mass: negative mass: expected zero or more, got -1.0"),
    "mass-huge": (yaml("    mass: 1\n", "    mass: 1e31\n"), 5,
                  "links.a.mass: number too large in the mass: expected at most 1e+30 in magnitude, got 1e+31"),
    "com-huge": (yaml("    mass: 1\n", "    mass: 1\n    com: [0, 1e155, 0]\n"), 6,
                 "links.a.com: number too large in the centre of mass: expected at most 1e+30 in magnitude, got [0.0, "
                 "1e+155, 0.0]"),
    "inertia-huge": (yaml("    inertia: [1, 1, 1]", "    inertia: [1e155, 1e155, 1e200]"), 6,
                     "links.a.inertia: number too large in the inertia"),
    "gain-huge": (yaml("axis: [0, 0, 1]", "axis: [0, 0, 1]\n    damping: -1e40"), 14, "number too large in the damping"),
    "inertia-count": (yaml("    inertia: [1, 1, 1]", "    inertia: [1, 1]"), 6,
                      "links.a.inertia: expected a list of 3 numbers (xx, yy, zz) or 6 (xx, xy, xz, yy, yz, zz), got [1, 1]"),
    "inertia-negative": (yaml("    inertia: [1, 1, 1]", "    inertia: [1, 1, -1]"), 6,
                         "links.a.inertia: the inertia is not positive semidefinite … got [-1.0, 1.0, 1.0]"),
    "density-alone": (yaml("    inertia: [1, 1, 1]", "    density: 1"), 6, "links.a.density: density requires a shape"),
    "shape-and-inertia": (yaml("    mass: 1\n", "    shape: {sphere: {radius: 1}}\n"), 6,
                          "links.a.inertia: shape and inertia cannot be combined"),
    "shape-alone": (yaml("    mass: 1\n    inertia: [1, 1, 1]\n", "    shape: {sphere: {radius: 1}}\n"), 4,
                    "links.a: a shape needs either mass or density: expected one of mass, density, got ['shape']"),
    "shape-unknown": (yaml("    inertia: [1, 1, 1]", "    shape: {shpere: {radius: 1}}"), 6,
                      "links.a.shape.shpere: unknown key: expected one of box, sphere, cylinder, capsule (did you mean sphere?)"),
    "shape-size": (yaml("    inertia: [1, 1, 1]", "    shape: {capsule: {radius: 1}}"), 6,
                   "links.a.shape.capsule: the key length is missing: expected a length in metres"),
    "shape-huge": (yaml("    inertia: [1, 1, 1]", "    shape: {sphere: {radius: 1e200}}"), 6,
                   "links.a.shape.sphere.radius: out of range: expected a number > 0 and <= 1e+30, got 1e200"),
    "shape-negative": (yaml("    inertia: [1, 1, 1]", "    shape: {box: [1, -1, 1]}"), 6,
                       "links.a.shape.box[1]: out of range: expected a number > 0 and <= 1e+30, got -1"),
    "scenario": (b"robot: arm.yaml\nduration: 1\n", 1,
                 "robot: the file names a robot file but does not describe a robot: expected links and joints, got arm.yaml (use "
                 "that "
                 "file)"),
    "no-type": (yaml("    type: revolute\n", ""), 9,
        f"joints.j: the key type is missing: expected one of fixed, {', '.join([*JOINT_TYPES][1:])}, curve"),
    "unknown-type": (yaml("type: ball", "type: sperical"), 15,
                     "joints.k.type: expected one of curve, fixed … got sperical"),
    "no-axis": (yaml("    axis: [0, 0, 1]\n", ""), 9, "joints.j: the key axis is missing: expected a list of 3 numbers"),
    "zero-axis": (yaml("axis: [0, 0, 1]", "axis: [0, 0, 0]"), 13,
                  "joints.j.axis: the axis is the zero vector: expected a non-zero vector, got [0.0, 0.0, 0.0]"),
    "huge-axis": (yaml("axis: [0, 0, 1]", "axis: [1.7e308, 1.7e308, 0]"), 13, "joints.j.axis: number too large in the axis"),
    "axis-of-a-ball": (yaml("type: ball,", "type: ball, axis: [0, 0, 1],"), 15, "joints.k.axis: a ball joint has no axis"),
    "limits-swapped": (yaml("lower: -1, upper: 1", "lower: 1, upper: -1"), 14,
                       "joints.j.limits: the limits are swapped: expected the lower limit first, got [1.0, -1.0]"),
    "limits-of-continuous": (yaml("type: revolute", "type: continuous"), 14,
                             "joints.j.limits.lower: a continuous joint has no lower"),
    "limits-of-ball": (yaml("type: ball", "type: ball, limits: {upper: 1}"), 15,
                       "joints.k.limits.upper: a ball joint has no upper"),
    "spring-of-ball": (yaml("type: ball", "type: ball, stiffness: 1"), 15, "joints.k.stiffness: a ball joint has no stiffness"),
    "damping-of-fixed": (yaml("type: ball", "type: fixed, damping: 1"), 15, "joints.k.damping: a fixed joint has no damping"),
    "damping-count": (yaml("type: ball", "type: ball, damping: [1, 2]"), 15,
                      "joints.k.damping: expected a list of 3 numbers, got [1, 2]"),
    "damping-negative": (yaml("type: ball", "type: ball, damping: [1, 2, -3]"), 15,
                         "joints.k.damping: negative damping: expected zero or more, got -3.0"),
    "armature-negative": (yaml("type: ball", "type: ball, armature: -1"), 15, "joints.k.armature: negative armature"),
    "universal-parallel": (yaml("type: ball", "type: universal, axes: [[1, 0, 0], [-2, 0, 0]]"), 15,
                           "joints.k.axes: the two axes are parallel: expected two directions, got [[1.0, 0.0, 0.0], [-2.0, "
                           "0.0, 0.0]]"),
    "universal-one-axis": (yaml("type: ball", "type: universal, axes: [[1, 0, 0]]"), 15, "expected a list of 2 axes"),
    "helical-no-pitch": (yaml("type: ball", "type: helical, axis: [1, 0, 0]"), 15, "joints.k: the key pitch is missing"),
    "euler-sequence": (yaml("type: ball", "type: euler, sequence: zzx"), 15,
                       "joints.k.sequence: wrong sequence of Euler angles: expected three of the letters x y z … got 'zzx'"),
    "seven-screws": (yaml("type: ball", f"type: screws, screws: {[[1, 0, 0, 0, 0, 0]] * 7}"), 15,
                     "expected a list of 1 to 6 screws"),
    "zero-screw": (yaml("type: ball", "type: screws, screws: [[0, 0, 0, 0, 0, 0]]"), 15, "joints.k.screws: a screw is the zero "
                                                                                         "vector"),
    "short-screw": (yaml("type: ball", "type: screws, screws: [[0, 0, 1]]"), 15,
                    "joints.k.screws[0]: expected a list of 6 numbers, got [0, 0, 1]"),
    "quaternion-norm": (yaml("type: ball", "type: ball, origin: {quaternion: [0, 0, 1, 1]}"), 15,
                        "joints.k.origin.quaternion: the quaternion has norm 1.414214: expected a unit quaternion x, y, z, "
                        "w, got [0, 0, 1, 1]"),
    "rpy-and-quaternion": (yaml("type: ball", "type: ball, origin: {rpy: [0, 0, 0], quaternion: [0, 0, 0, 1]}"), 15,
                           "joints.k.origin.rpy: rpy and quaternion cannot be combined"),
    "unknown-link": (yaml("parent: a,", "parent: aa,"), 15,
        "joints.k.parent: the parent is not a link of this robot: expected a link's name, got 'aa'"),
    "two-parents": (yaml("parent: a, child: b", "parent: b, child: a"), 15,
                    'joints.k.child: link "a" has two parents: it is also the child of joint "j" (first on line 9)'),
    "cycle": (yaml("parent: world", "parent: b"), 9, "joints.j: the joints form a cycle: b -> a -> b: expected a tree"),
    "unconnected": (yaml("  b: {mass", "  c: {}\n  b: {mass"), 7,
                    "links.c: the link is not connected: expected a joint with this link as child (join it to world with"),
    "floating-on-the-ground": (yaml("base: fixed", "base: floating"), 11,
                               "joints.j.parent: a floating base needs a root link, but this joint is attached to the ground"),
    "coordinate-twice": (yaml("  k: {type: ball, parent: a, child: b}",
                              "  k: {type: ball, parent: a, child: b}\n"
                              "  k.wx: {type: continuous, axis: [1, 0, 0], parent: b, child: c}"
                              ).replace(b"joints:", b"  c: {}\njoints:"), 17,
                         'joints.k.wx: a coordinate of joint "k" is also called "k.wx": expected another name'),
    "actuator-link": (YAML_HEAD.encode() + b"actuators:\n  f: {link: c}\n", 17,
                      "actuators.f.link: the actuator is not on a link of this robot: expected a link's name, or joints of a "
                      "tendon, got 'c'"),
    "actuator-axis": (YAML_HEAD.encode() + b"actuators:\n  f: {link: b, axis: [0, 0, 0]}\n", 17,
                      "actuators.f.axis: the axis is the zero"),
    "actuator-key": (YAML_HEAD.encode() + b"actuators:\n  f: {link: b, ratio: 1}\n", 17, "actuators.f.ratio: unknown key"),
}


def message(read, path) -> str:
    with pytest.raises(ModelError) as caught:
        validate(read(path))
    text = str(caught.value)
    assert "\n" not in text and text.isprintable()
    assert caught.value.exit_status == 3
    return text


@pytest.mark.parametrize("name", URDF)
def test_broken_urdf(tmp_path, name):
    contents, line, expected = URDF[name]
    path = tmp_path / f"{name}.urdf"
    path.write_bytes(contents)
    place = f"{path}: " if line is None else f"{path}:{line}: "
    text = message(read_urdf, path)
    assert text.startswith(place) and has_parts(text, expected)


@pytest.mark.parametrize("name", YAML)
def test_broken_yaml(tmp_path, name):
    contents, line, expected = YAML[name]
    path = tmp_path / f"{name}.yaml"
    path.write_bytes(contents)
    place = f"{path}: " if line is None else f"{path}:{line}: "
    text = message(read_robot_yaml, path)
    assert text.startswith(place) and has_parts(text, expected)


def test_the_samples_that_are_broken_are_whole_without_it(tmp_path):
    (tmp_path / "r.urdf").write_text(URDF_HEAD)
    (tmp_path / "r.yaml").write_text(YAML_HEAD)
    assert validate(read_urdf(tmp_path / "r.urdf")).warnings == ()
    assert validate(read_robot_yaml(tmp_path / "r.yaml")).warnings == ()


@pytest.mark.parametrize("read", [read_urdf, read_robot_yaml])
def test_missing_file_and_directory(tmp_path, read):
    assert message(read, tmp_path / "none.urdf") == f"{tmp_path / 'none.urdf'}: no such file"
    assert message(read, tmp_path) == f"{tmp_path}: this is a directory: expected a file"


@pytest.mark.parametrize("read, comment", [(read_urdf, b"<!-- %s -->"), (read_robot_yaml, b"# %s")])
def test_too_large_a_file(tmp_path, read, comment):
    path = tmp_path / "big"
    path.write_bytes(comment % (b"x" * 10_000_001))
    assert message(read, path) == f"{path}: the file is too large: expected at most 10 MB"
