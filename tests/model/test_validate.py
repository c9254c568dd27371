"""Descriptions that are errors, those that are doubted, and what validation fills in."""
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from liedyn.errors import ModelError
from liedyn.model.description import Actuator, Coordinate, Joint, Mimic, Robot
from liedyn.model.link_tree import build_link_tree, links_by_body, merge_links
from liedyn.model.links import Link, Pose
from liedyn.model.validate import validate
from liedyn.warning_codes import WARNING_CODES
from messages import has_parts

BALL = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
A, B, C = (Link(name, 1.0, (0.0, 0.0, 0.0), BALL) for name in "abc")
LIMITED = (Coordinate(-1.0, 1.0),)
J = Joint("j", "revolute", "a", "b", axes=((0.0, 0.0, 1.0),), coordinates=LIMITED)
K = Joint("k", "revolute", "b", "c", axes=((0.0, 0.0, 1.0),), coordinates=LIMITED)
CHAIN = Robot("r", (A, B, C), (J, K))


def refused(robot: Robot) -> str:
    with pytest.raises(ModelError) as caught:
        validate(robot)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def found(robot: Robot) -> list[tuple[str, str]]:
    warnings = validate(robot).warnings
    assert {warning.code for warning in warnings} <= WARNING_CODES.keys()
    return [(warning.code, warning.place.key) for warning in warnings]


def with_joint(**changes) -> Robot:
    return replace(CHAIN, joints=(J, replace(K, **changes)))


def with_link(**changes) -> Robot:
    return replace(CHAIN, links=(A, B, replace(C, **changes)))


def test_a_good_robot_is_returned_as_it_is():
    assert validate(CHAIN) == CHAIN and found(CHAIN) == []


def test_coordinates_are_filled_in_and_axes_made_unit():
    robot = validate(with_joint(type="universal", axes=((2.0, 0.0, 0.0), (0.0, 3.0, 4.0)), coordinates=()))
    assert robot.joints[1].coordinates == (Coordinate(), Coordinate())
    assert robot.joints[1].axes == ((1.0, 0.0, 0.0), (0.0, 0.6, 0.8))
    assert [warning.message for warning in robot.warnings] == ["the axis has length 2; it was scaled to 1",
                                                               "the axis has length 5; it was scaled to 1"]


def test_screws_are_never_scaled():
    screws = ((0.0, 0.0, 2.0, 0.0, 0.0, 0.0),)
    assert validate(with_joint(type="screws", axes=(), screws=screws, coordinates=())).joints[1].screws == screws


def test_validation_twice_changes_nothing():
    once = validate(with_joint(axes=((0.0, 0.0, 2.0),), mimic=Mimic("j")))
    assert validate(once) == once and validate(once).warnings == once.warnings


@pytest.mark.parametrize("robot, text", [
    (replace(CHAIN, base="loose"), "base: unknown base: expected fixed or floating, got 'loose'"),
    (replace(CHAIN, gravity=(0, 0, math.nan)), "gravity: not a finite number in the gravity: got [0.0, 0.0, nan]"),
    (replace(CHAIN, name="a\nb"), "name: a robot needs a name of printable characters"),
    (Robot("r", (), ()), "no links in this robot: expected at least one link"),
    (with_link(mass=-1.0), 'link "c", mass: negative mass: expected zero or more, got -1.0'),
    (with_link(mass=math.inf), 'link "c", mass: not a finite number in the mass: got inf'),
    (with_link(com=(0, 0)), 'link "c", com: wrong centre of mass: expected 3 numbers, got [0.0, 0.0]'),
    (with_link(com=("x", 0, 0)), "expected 3 numbers"),
    (with_link(inertia=(1, 0, 0, 1, 0, math.nan)), 'link "c", inertia: not a finite number in the inertia'),
    (with_link(inertia=(1, 0, 0, 1, 0, -1e-6)),
     'link "c", inertia: the inertia is not positive semidefinite … got [-1e-06, 1.0, 1.0]'),
    (with_link(inertia=(0.1, 0.2, 0.2, 0, 0, 0)), "(six numbers are xx, xy, xz, yy, yz, zz)"),
    (with_link(name="b"), 'link "b": two links are called "b"'),
    (with_link(name=""), 'link "": a link needs a name'),
    (with_joint(name="j"), 'joint "j": two joints are called "j"'),
    (with_joint(child="b"), 'joint "k", child: a link cannot be its own child: got \'b\''),
    (with_joint(parent="c", child="b"), 'link "b" has two parents: it is also the child of joint "j"'),
    (with_joint(child="d"), 'joint "k", child: the child is not a link of this robot: expected a link\'s name, got \'d\''),
    (with_joint(parent="bb"), "the parent is not a link of this robot: expected a link's name, got 'bb' (did you mean b?)"),
    (with_joint(child="world"), "the ground cannot be a child"),
    (with_joint(child="a"), 'joint "j": the joints form a cycle: a -> b -> a: expected a tree'),
    (replace(CHAIN, joints=(J,)), 'link "c": not connected: 2 links are not the child of a joint: expected one root link, '
                                  "got ['a', 'c']"),
    (replace(CHAIN, joints=(replace(J, parent="world"), K)), 'link "a": the link is not connected'),
    (replace(CHAIN, links=(B, C), joints=(replace(J, parent="world"), K), base="floating"), "a floating base needs a root link"),
    (replace(CHAIN, joints=(replace(J, name="base"), K), base="floating"),
     'joint "base": a coordinate of the floating base is also called "base": expected another name'),
    (with_joint(type="hinge"), 'joint "k", type: unknown joint type: expected one of fixed, revolute … got \'hinge\''),
    (with_joint(axes=()), "wrong number of axes: expected 1 for a joint of type revolute, got 0"),
    (with_joint(axes=((0, 0, 1e-12),)), "the axis is the zero vector: expected a non-zero vector, got [0.0, 0.0, 1e-12]"),
    (with_joint(axes=((0, math.inf, 0),)), "not a finite number in the axis"),
    (with_joint(type="universal", axes=((1, 0, 0), (2, 1e-9, 0)), coordinates=()), "the two axes are parallel"),
    (with_joint(type="helical", pitch=math.nan), 'joint "k", pitch: not a finite number'),
    (with_joint(type="euler", axes=(), sequence="zyy", coordinates=()), "wrong sequence of Euler angles … got 'zyy'"),
    (with_joint(type="euler", axes=(), sequence="zy", coordinates=()), "wrong sequence of Euler angles"),
    (with_joint(type="screws", axes=(), coordinates=()), "wrong number of screws: expected 1 to 6, got 0"),
    (with_joint(type="screws", axes=(), screws=((1, 0, 0, 0, 0, 0),) * 7, coordinates=()), "expected 1 to 6, got 7"),
    (with_joint(type="screws", axes=(), screws=((0,) * 6,), coordinates=()), "a screw is the zero vector"),
    (with_joint(coordinates=LIMITED * 2), "wrong number of coordinates: expected 1 for a joint of type revolute, got 2"),
    (with_joint(coordinates=(Coordinate(1, -1),)),
     'joint "k", limits: the limits are swapped: expected the lower limit first, got [1, -1]'),
    (with_joint(coordinates=(Coordinate(math.nan, 1),)),
     "a limit is not a number: expected lower, upper … got [nan, 1, "),
    (with_joint(coordinates=(Coordinate(math.inf),)), "a limit is not a number"),
    (with_joint(type="ball", axes=(), coordinates=(Coordinate(stiffness=1.0),) * 3), "a ball joint has no spring"),
    (with_joint(type="ball", axes=(), coordinates=LIMITED * 3), "a ball joint has no lower and upper limit"),
    (with_joint(type="continuous"), "a continuous joint has no lower and upper limit"),
    (with_joint(origin=Pose((2.0, 0, 0, 0, 1, 0, 0, 0, 1))), 'joint "k", origin: the rotation of the origin is not a rotation '
                                                             "matrix"),
    (with_joint(origin=Pose((-1.0, 0, 0, 0, 1, 0, 0, 0, 1))), "expected an orthonormal right-handed matrix"),
    (with_joint(origin=Pose(translation=(0, 0, math.nan))), "not a finite number in the origin"),
    (with_joint(mimic=Mimic("j", math.nan)), "not a finite number in the multiplier and offset"),
    (replace(CHAIN, actuators=(Actuator("f", "d"),)), 'actuator "f", link: the actuator is not on a link'),
    (replace(CHAIN, actuators=(Actuator("f", "a", axis=(0, 0, 0)),)), 'actuator "f", axis: the axis is the zero vector'),
    (replace(CHAIN, actuators=(Actuator("f", "a", torque_ratio=math.nan),)), 'actuator "f", torque_ratio: not a finite'),
    (replace(CHAIN, actuators=(Actuator("f", "a"),) * 2), 'two actuators are called "f"'),
])
def test_errors_name_element_found_and_expected(robot, text):
    assert has_parts(refused(robot), text)


@pytest.mark.parametrize("name", ["damping", "friction", "armature", "stiffness"])
def test_negative_passive_forces_are_refused(name):
    text = f'joint "k", {name}: negative {name}: expected zero or more, got -1.0'
    assert refused(with_joint(coordinates=(Coordinate(**{name: -1.0}),))) == text


@pytest.mark.parametrize("robot, warnings", [
    (with_joint(coordinates=()), [("limits-missing", "k")]),
    (with_joint(type="prismatic", coordinates=(Coordinate(upper=1.0),)), [("limits-missing", "k")]),
    (with_joint(type="helical", coordinates=()), []),
    (with_joint(coordinates=(Coordinate(0.5, 0.5),)), [("limits-zero-range", "k")]),
    (with_joint(coordinates=(Coordinate(-170.0, 170.0),)), [("limits-units", "k")]),
    (with_joint(coordinates=(Coordinate(-1.0, 90.0),)), [("limits-units", "k")]),
    (with_joint(coordinates=(Coordinate(-12.5, 5.0),)), []),                        # less than two turns each way
    (with_joint(coordinates=(Coordinate(-18.85, 18.85),)), []),                     # three turns
    (with_joint(coordinates=(Coordinate(-1e16, 1e16),)), []),                       # no limit
    (with_joint(type="prismatic", coordinates=(Coordinate(-50.0, 50.0),)), []),     # a rail
    (with_joint(origin=Pose(translation=(0.0, 400.0, 333.0))), [("lengths-units", "k")]),
    (with_joint(origin=Pose(translation=(0.0, 90.0, 0.0))), []),
    (with_joint(coordinates=(Coordinate(-1, 1, velocity=-1.0, effort=-2.0),)), [("limits-negative", "k")] * 2),
    (with_joint(axes=((0, 0.6, 0.8001),)), [("axis-not-unit", "k")]),
    (with_joint(axes=((0, 0.417025, 0.908894),)), []),                              # six digits: rounding
    (with_joint(mimic=Mimic("j")), []),
    (with_joint(type="fixed", axes=(), coordinates=(), mimic=Mimic("j")), []),
    (with_joint(type="euler", axes=(), sequence="zyz", coordinates=()), [("singular-at-zero", "k")]),
    (with_joint(type="euler", axes=(), sequence="zyx", coordinates=()), []),
    (with_joint(type="screws", axes=(), coordinates=(), screws=((0, 0, 1, 0, 0, 0), (0, 0, 2, 0, 0, 0))),
     [("singular-at-zero", "k")]),
    (with_joint(type="screws", axes=(), coordinates=(), screws=((0, 0, 1, 0, 0, 0), (0, 0, 1, 0, 1e-3, 0))), []),
    (with_joint(type="screws", axes=(), coordinates=(), screws=((0, 0, 1, 0, 0, 0), (0, 0, 1, 0, 1e-10, 0))), []),  # large units
    (with_link(inertia=(1, 0, 0, 1, 0, 2.001)), [("triangle-inequality", "c")]),
    (with_link(inertia=(1, 0, 0, 1, 0, 2)), []),                                    # a flat plate
    (with_link(inertia=(0,) * 6), [("point-mass", "c")]),
    (with_link(inertia=(-1e-20, 0, 0, 0, 0, -0.0)), [("point-mass", "c")]),         # zeros written by a program
    (with_link(inertia=(101, 0, 0, 101, 0, 101)), [("inertia-far-off", "c")]),
    (with_link(inertia=(9e-9, 0, 0, 9e-9, 0, 9e-9)), [("inertia-far-off", "c")]),
    (with_link(mass=0.0), [("inertia-far-off", "c")]),
    (with_link(mass=0.0, inertia=(0,) * 6), []),                                    # a frame
])
def test_findings(robot, warnings):
    assert found(robot) == warnings


def test_a_link_that_does_not_move_is_not_doubted_unless_the_base_floats():
    robot = replace(CHAIN, links=(replace(A, inertia=(0,) * 6), B, C))
    assert found(robot) == []
    assert found(replace(robot, base="floating")) == [("point-mass", "a")]


def test_a_point_mass_that_cannot_turn_is_not_doubted():
    points = tuple(replace(link, inertia=(0,) * 6) for link in CHAIN.links)
    slides = tuple(replace(joint, type="prismatic", axes=((0, 0, 1.0),)) for joint in CHAIN.joints)
    turning = {1: ["c"], 0: ["b", "c"]}
    assert "point-mass" not in dict(found(replace(CHAIN, links=points, joints=slides)))
    for k, names in turning.items():
        joints = tuple(joint if i == k else slide for i, (joint, slide) in enumerate(zip(CHAIN.joints, slides, strict=True)))
        assert [name for code, name in found(replace(CHAIN, links=points, joints=joints)) if code == "point-mass"] == names


def test_welded_links_are_judged_as_one_body():
    """An impossible inertia is valid if a welded one compensates for it: the moving body counts."""
    welded = replace(K, type="fixed", axes=(), coordinates=())
    plate = replace(C, inertia=(0.1, 0, 0, 0.1, 0, 0.3))
    assert found(replace(CHAIN, links=(A, B, plate), joints=(J, welded))) == []
    assert found(replace(CHAIN, links=(A, replace(B, mass=0.0, inertia=(0,) * 6), plate), joints=(J, welded))) == [
        ("triangle-inequality", "b")]
    impossible = replace(C, inertia=(-0.1, 0, 0, 0.1, 0, 0.1))
    assert found(replace(CHAIN, links=(A, B, impossible), joints=(J, welded))) == [("negative-inertia", "c")]
    assert 'link "c", inertia: the inertia is not' in refused(replace(CHAIN, links=(A, B, impossible)))


def test_messages_of_findings():
    robot = with_joint(coordinates=())
    assert [str(warning) for warning in validate(robot).warnings] == [
        "k: the revolute joint has no lower and upper limit (give it limits, or type: continuous if it turns without limits) "
        "[limits-missing]"]


def test_rounding_of_an_inertia_is_allowed():
    assert found(with_link(inertia=(1, 0, 0, 1, 0, -5e-10))) == []
    assert "not positive semidefinite" in refused(with_link(inertia=(1, 0, 0, 1, 0, -5e-9)))


def test_merged_body_against_point_masses():
    """Two links of point masses on the axes, welded with an offset and a turn: mass, com and inertia of all the points."""
    def cloud(name, points):
        com = points.mean(axis=0)
        d = points - com
        I = sum(x @ x * np.eye(3) - np.outer(x, x) for x in d)
        return Link(name, float(len(points)), tuple(com), (I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]))
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(5, 3)), rng.normal(size=(7, 3))
    origin = Pose.from_xyz_rpy((1, 2, 3), (0.1, 0.7, -2.0))
    robot = Robot("r", (cloud("a", first), cloud("b", second)), (Joint("j", "fixed", "a", "b", origin),))
    tree = build_link_tree(robot)
    body = merge_links(tree, "a", links_by_body(tree)["a"])
    moved = second @ np.reshape(origin.rotation, (3, 3)).T + origin.translation
    together = cloud("ab", np.vstack([first, moved]))
    assert body.mass == together.mass
    np.testing.assert_allclose(body.com, together.com, rtol=1e-13)
    np.testing.assert_allclose(body.inertia[np.triu_indices(3)], together.inertia, rtol=1e-12)


def test_order_of_a_tree_is_depth_first_in_document_order():
    links = tuple(replace(A, name=name) for name in "abcdef")
    ends = {"q": "be", "p": "ab", "s": "ac", "r": "cf", "t": "bd"}
    joints = tuple(replace(J, name=name, parent=parent, child=child) for name, (parent, child) in ends.items())
    tree = build_link_tree(Robot("r", links, joints))
    assert [joint.name for joint in tree.joints] == ["p", "q", "t", "s", "r"] and tree.root == "a"


def test_a_chain_of_a_thousand_links_is_checked_in_linear_time():
    n = 1000
    links = tuple(replace(A, name=f"l{k}") for k in range(n))
    joints = tuple(replace(J, name=f"j{k}", parent=f"l{k}", child=f"l{k + 1}") for k in range(n - 1))
    assert found(Robot("chain", links, joints)) == []
    ring = (*joints[1:], replace(J, name="back", parent=f"l{n - 1}", child="l1"), replace(J, name="j0", parent="l0", child="x"))
    assert "form a cycle" in refused(Robot("ring", (*links, replace(A, name="x")), ring))
