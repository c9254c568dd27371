"""`contacts` of a scenario: what is read, what is written back, errors."""
import numpy as np
import pytest
import yaml

from liedyn.errors import ModelError, ScenarioError
from liedyn.io.scenarios.scenario import Contact, Material, Plane, Rule, Shape
from liedyn.io.scenarios.scenario_file import read_scenario, to_plain
from liedyn.kernels.simulation.contact import MATERIAL_SIZE
from liedyn.robot_files import load
from liedyn.simulation.contact_setup import bind_contacts
from liedyn.simulation.preparation import prepare
from messages import has_parts

ROBOT = """\
base: floating
links:
  body: {mass: 3.0, inertia: [0.1, 0.1, 0.1]}
  left_foot: {mass: 0.5, inertia: [0.01, 0.01, 0.01]}
  right_foot: {mass: 0.5, inertia: [0.01, 0.01, 0.01]}
joints:
  left: {type: revolute, parent: body, child: left_foot, axis: [0, 1, 0]}
  right: {type: revolute, parent: body, child: right_foot, axis: [0, 1, 0]}
"""
FIXED = """\
links: {base: {}, arm: {mass: 1, inertia: [1, 1, 1]}}
joints:
  weld: {type: fixed, parent: world, child: base}
  j: {type: revolute, parent: base, child: arm, axis: [0, 1, 0]}
"""


@pytest.fixture
def read(tmp_path):
    def reading(contacts: str, more: str = ""):
        (tmp_path / "robot.yaml").write_text(ROBOT)
        path = tmp_path / "scenario.yaml"
        path.write_text(f"robot: robot.yaml\nduration: 1\n{more}contacts: {contacts}\n")
        return read_scenario(path)
    return reading


@pytest.fixture
def bound(tmp_path):
    def binding(contact, robot=ROBOT, gravity=(0.0, 0.0, -9.81)):
        (tmp_path / "robot.yaml").write_text(robot)
        return bind_contacts(contact, load(tmp_path / "robot.yaml", gravity=gravity))
    return binding


def test_feet_on_the_ground_take_one_line(read, bound):
    contact = read("{links: {'*_foot': {sphere: {radius: 0.02}}}}").contacts
    assert contact == Contact((Rule("*_foot", (Shape("sphere", (0.02,)),)),), (Plane("ground"),))
    found, names = bound(contact)
    assert names == ("left_foot", "right_foot")
    share = 4.0 * 9.81 / 2                                                   # each carries half of 4 kg
    assert found.material.reshape(2, MATERIAL_SIZE)[:, :4] == pytest.approx(np.tile([share / 1e-3**1.5, 2.0, 0.8, 1e-3], (2, 1)))
    assert found.normal.tolist() == [0, 0, 1, 0, 0, 1] and found.height.tolist() == [0, 0]


EVERYTHING = """
  links:
    body: [{box: [0.2, 0.4, 0.6], at: [0.1, 0.2, 0.3], rpy: [0, 0, 1.5707963267948966], friction: 0.1}, {point: [0, 0, 1]}]
    left_foot: {capsule: {radius: 0.1, length: 0.4}, sink: 0.002, exponent: 2}
  planes:
    ground: {point: [0, 0, -1]}
    ramp: {normal: [3, 0, 4], point: [1, 0, 0]}
  stiffness: 5000
  damping: 0
  friction: 0.5
  friction_speed: 0.01"""


def test_shapes_planes_and_materials(read, bound):
    found, names = bound(read(EVERYTHING).contacts)
    assert names[:4] == ("body.1.ground", "body.1.ramp", "body.2.ground", "body.2.ramp")
    assert names[16:] == ("body.9.ground", "body.9.ramp", "left_foot.1.ground", "left_foot.1.ramp", "left_foot.2.ground",
                          "left_foot.2.ramp")
    centre, material = found.centre.reshape(-1, 3), found.material.reshape(-1, MATERIAL_SIZE)[:, :4]
    # the box is turned by a quarter: its y lies along the link's x
    assert np.abs(centre[:16] - [0.1, 0.2, 0.3]) == pytest.approx(np.tile([0.2, 0.1, 0.3], (16, 1)))
    assert len({tuple(x) for x in centre[:16].round(9)}) == 8
    assert centre[16].tolist() == [0, 0, 1] and centre[18].tolist() == [0, 0, -0.2] and centre[20].tolist() == [0, 0, 0.2]
    assert found.radius.tolist() == [0.0] * 18 + [0.1] * 4
    assert found.height[:2] == pytest.approx([1.0, -0.6]) and found.normal[3:6] == pytest.approx([0.6, 0, 0.8])
    assert material[0].tolist() == [5000, 0, 0.1, 0.01] and material[16].tolist() == [5000, 0, 0.5, 0.01]
    share = 4.0 * 9.81 / 7                                                   # four corners, a point, two ends
    assert material[18] == pytest.approx([share / 0.002**2, 0, 0.5, 0.01])
    assert found.doubled_exponent.tolist() == [3] * 18 + [4] * 4


def test_what_is_written_reads_back(read, tmp_path):
    scenario = read(EVERYTHING)
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(to_plain(scenario, tmp_path)))
    assert read_scenario(tmp_path / "again.yaml") == scenario


def test_without_gravity_the_weight_on_earth_counts(bound):
    contact = Contact((Rule("body", (Shape("point", ()),)),))
    assert bound(contact, gravity=(0, 0, 0))[0].material[0] == pytest.approx(bound(contact)[0].material[0])
    assert Material().sink == 1e-3


FOOT = "{left_foot: {sphere: {radius: 0.02}%s}}"
BROKEN = {"a word": ("ground", "", "contacts: expected a mapping (key: value), got ground"),
          "unknown key": ("{feet: {}}", "contacts.feet",
              "unknown key: expected one of links, planes, pairs, friction, stiffness, sink, exponent, damping, "
              "friction_speed, stick, static_friction, smooth"),
          "no links": ("{friction: 1}", "", "the key links is missing: expected contact shapes by link: {foot: {sphere: "
                                            "{radius: 0.02}}}"),
          "empty links": ("{links: {}}", "links", "no link has a contact shape"),
          "unknown shape": ("{links: {body: {ball: 1}}}", "links.body.ball",
              "unknown key: expected one of point, sphere, capsule, box, at, rpy, friction, stiffness, sink, exponent, "
              "damping, friction_speed, stick, static_friction, smooth"),
          "no shape": ("{links: {body: {friction: 1}}}", "links.body",
                       "exactly one of point, sphere, capsule, box: got nothing"),
          "two shapes": ("{links: {body: {point: [0, 0, 0], box: [1, 1, 1]}}}", "links.body", "got point, box"),
          "no radius": ("{links: {body: {sphere: {}}}}", "sphere", "the key radius is missing: expected a length in metres"),
          "a number as a sphere": ("{links: {body: {sphere: 0.1}}}", "sphere", "expected a mapping … got 0.1"),
          "negative radius": ("{links: {body: {sphere: {radius: -1}}}}", "radius", "out of range … got -1"),
          "flat box": ("{links: {body: {box: [1, 1, 0]}}}", "box[2]", "out of range … got 0"),
          "point in a plane": ("{links: {body: {point: [1, 1]}}}", "point", "expected a list of 3 numbers"),
          "point at": ("{links: {body: {point: [0, 0, 0], at: [0, 0, 1]}}}", "at", "at does not apply to a point"),
          "turned sphere": ("{links: {body: {sphere: {radius: 1}, rpy: [0, 0, 1]}}}", "rpy", "rpy does not apply to a sphere"),
          "no shapes in a list": ("{links: {body: []}}", "links.body", "expected a list of at least 1 shapes"),
          "negative friction": (f"{{links: {FOOT % ''}, friction: -0.1}}", "contacts.friction", "out of range … got -0.1"),
          "friction of a shape": (f"{{links: {FOOT % ', friction: no'}}}", "links.left_foot.friction", " … got no"),
          "stiffness zero": (f"{{links: {FOOT % ''}, stiffness: 0}}", "stiffness",
                             "out of range: expected a number > 0 and <= 1e+30, got 0"),
          "negative damping": (f"{{links: {FOOT % ''}, damping: -1}}", "damping", "out of range"),
          "no creep": (f"{{links: {FOOT % ''}, friction_speed: 0}}", "friction_speed",
                       "out of range: expected a number >= 1e-20 and <= 1e+20, got 0"),
          "exponent": (f"{{links: {FOOT % ''}, exponent: 1.2}}", "exponent", "expected one of 1, 1.5, 2, got 1.2"),
          "twice stiff": (f"{{links: {FOOT % ''}, sink: 0.1, stiffness: 1}}", "sink",
                          "stiffness and sink cannot be combined: expected one of them"),
          "zero normal": (f"{{links: {FOOT % ''}, planes: {{hill: {{normal: [0, 0, 0]}}}}}}", "planes.hill.normal",
                          "the normal of a plane is zero: expected the direction out of the ground, such as [0, 0, 1], got "
                          "[0, 0, 0]"),
          "no plane": (f"{{links: {FOOT % ''}, planes: {{}}}}", "planes",
              "no plane: expected {ground: {point: [0, 0, 0], normal: [0, 0, 1]}}"),
          "unknown key of a plane": (f"{{links: {FOOT % ''}, planes: {{g: {{z: 0}}}}}}", "planes.g.z",
                                     "unknown key: expected one of point, normal"),}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_contacts_give_one_line(name, read):
    text, key, message = BROKEN[name]
    with pytest.raises(ScenarioError) as caught:
        read(text)
    line = str(caught.value)
    assert key in line and has_parts(line, message) and "scenario.yaml:3" in line and "\n" not in line


def test_a_method_that_cannot_integrate_contacts_is_refused(read):
    with pytest.raises(ScenarioError, match=r"scenario.yaml:4: contacts: contacts are not supported by generalized_alpha: "
                                            "expected another integrator.method, such as Radau"):
        read(f"{{links: {FOOT % ''}}}", "integrator: {method: generalized_alpha}\n")


@pytest.mark.parametrize("height, warnings", [(0.0, ["tip starts with a penetration of 0.01 m and a force of 1e+03 times the "
                                                     "weight"]), (0.011, [])])
def test_a_contact_that_begins_deep_is_noted(tmp_path, height, warnings):
    """The force is linear, m g at 1e-5 m: a thousand times the weight at 0.01 m."""
    robot = {"links": {"tip": {"mass": 2.0}}, "joints": {
        "z": {"type": "prismatic", "parent": "world", "child": "tip", "axis": [0, 0, 1]}}}
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(robot))
    found = prepare({"robot": str(tmp_path / "robot.yaml"), "duration": 1, "initial": {"q": {"z": height}}, "contacts": {
        "links": {"tip": {"sphere": {"radius": 0.01}}}, "sink": 1e-5, "exponent": 1}}, ()).warnings
    assert len(found) == len(warnings) and all(words in str(note) for words, note in zip(warnings, found, strict=True))


@pytest.mark.parametrize("pattern, robot, message", [
    ("left_fot", ROBOT, "no such link: got 'left_fot' (did you mean left_foot or"),
    ("wheel*", ROBOT, "the pattern matches no link … got 'wheel*'"),
    ("base", FIXED, "the link base is fixed to the world, and so are the planes"),
    ("b*", FIXED, "no moving link has a contact shape"),
    ("arm", FIXED.replace("mass: 1", "mass: 0"), "the robot has no moving mass, so sink does not give a stiffness (give")])
def test_links_that_cannot_touch(pattern, robot, message, bound):
    with pytest.raises(ScenarioError) as caught:
        bound(Contact((Rule(pattern, (Shape("point", ()),)),)), robot)
    assert has_parts(str(caught.value), message)


def test_a_key_in_a_mapping_next_to_which_it_belongs_has_a_hint(tmp_path):
    """`at` in a sphere, and keys of a link in its shape, were unknown keys without a hint."""
    (tmp_path / "robot.yaml").write_text(ROBOT)
    (tmp_path / "s.yaml").write_text("robot: robot.yaml\nduration: 1\ncontacts:\n"
                                     "  links: {left_foot: {sphere: {radius: 0.1, at: [0, 0, 0]}}}\n")
    with pytest.raises(ScenarioError, match=r"s.yaml:4: contacts.links.left_foot.sphere.at: unknown key: expected one of "
                                            r"radius \(at belongs next to sphere, not in it\)"):
        read_scenario(tmp_path / "s.yaml")
    (tmp_path / "robot.yaml").write_text("links: {a: {mass: 1, shape: {cylinder: {radius: 1, length: 1, rpy: [0, 0, 1]}}}}")
    with pytest.raises(ModelError, match=r"rpy: unknown key.*\(rpy belongs next to shape, not in it\)"):
        load(tmp_path / "robot.yaml")
