"""The tree of a model in notebooks."""
import dataclasses
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from described_arm import arm

ROBOTS = sorted(path for path in (Path(__file__).parents[2] / "robots").iterdir() if not path.name.endswith("loops.yaml"))


def parsed(model: ld.Model) -> ElementTree.Element:
    """Return the HTML, which is also valid XML, as a tree."""
    return ElementTree.fromstring(model._repr_html_())


def lines(root: ElementTree.Element) -> list[str]:
    """Return the text of each link."""
    return ["".join((item.find("details/summary") if item.find("details") is not None else item).itertext())
            for item in root.iter("li")]


@pytest.mark.filterwarnings("ignore::liedyn.errors.LiedynWarning")
@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.name)
def test_every_robot_has_a_tree_of_all_its_links(path):
    model = ld.load(path)
    text = model._repr_html_()
    names = [item.text for item in parsed(model).iter("b")]
    for name in (*model.link_names, *(c.name for c in model.constraints)):
        assert name in names or name in text
    assert not any(word in text for word in ("http", "<script", "src="))                 # offline
    assert len(text) < 1000 + 500 * (len(model.link_names) + len(model.constraints) + len(model.warnings))


def test_a_link_has_its_mass_its_joint_and_the_limits():
    robot = arm(loops=[ld.Loop("rod", "distance", "world", "hand", length=0.5)], actuators=[ld.Actuator("fan", "hand")],
                couplings=[ld.Coupling("gear", {"yaw": 1, "elbow": 2})])
    limited = dataclasses.replace(robot.joints[2], limits={"velocity": 5, "effort": 40})
    text = lines(parsed(ld.build(dataclasses.replace(robot, joints=[*robot.joints[:2], limited, robot.joints[3]]))))
    assert text[0].startswith("world") and text[1] == "yaw (revolute) → turret 3.054 kg -3 to 3 rad"
    assert "elbow (revolute) → lower 1.767 kg -2 to 2 rad, 5 rad/s, 40 N m" in text
    assert {"rod distance closure of world and hand", "gear coupling of yaw and elbow", "fan on hand"} <= set(text)


@pytest.mark.filterwarnings("ignore::liedyn.errors.LiedynWarning")
def test_a_root_and_a_mimic_joint():
    floating = ld.build(ld.Robot("r", [ld.Link("a", 1, inertia=[1, 1, 1])], base="floating"))
    assert "a 1 kg (free)" in lines(parsed(floating))
    joints = [ld.Joint("j", "planar", "world", "a", axis=[0, 0, 1], limits=([-1, -2, -3], 3)),
              ld.Joint("k", "prismatic", "world", "b", axis=[0, 0, 1]),
              ld.Joint("l", "prismatic", "world", "c", axis=[0, 0, 1], mimic=ld.Mimic("k"))]
    model = ld.build(ld.Robot("r", [ld.Link(name, 1, inertia=[1, 1, 1]) for name in "abc"], joints))
    assert lines(parsed(model))[1:4] == ["j (planar) → a 1 kg x -1 to 3 m; y -2 to 3 m; angle -3 to 3 rad",
                                         "k (prismatic) → b 1 kg", "l (prismatic follows k) → c 1 kg"]


def test_hostile_names_are_escaped():
    name = "<script>alert('\u202e')</script>&"
    model = ld.build(ld.Robot("<b>", [ld.Link("<i>", 1, inertia=[1, 1, 1])], [ld.Joint("<x>&", "ball", "world", "<i>")]))
    assert "&lt;x&gt;&amp;" in model._repr_html_() and parsed(model).find("b").text == "<b>"
    from liedyn.model.model_html import _text
    assert _text(name) == "&lt;script&gt;alert(&#x27;\\u202e&#x27;)&lt;/script&gt;&amp;"


@pytest.mark.filterwarnings("ignore::liedyn.errors.LiedynWarning")
def test_a_long_chain_is_written_and_a_very_large_robot_is_counted():
    def chain(n):
        links = [ld.Link(f"l{k}", 1, inertia=np.ones(3)) for k in range(n)]
        joints = [ld.Joint(f"j{k}", "continuous", f"l{k - 1}" if k else "world", f"l{k}", axis=[0, 0, 1]) for k in range(n)]
        return ld.build(ld.Robot("chain", links, joints))

    assert chain(400)._repr_html_().count("<li>") == 401 + len(chain(400).warnings)
    assert "The tree of 501 links is not shown" in chain(501)._repr_html_()
