"""Default classes: an element's attributes with those of its class, the class's parents and `main`."""
from __future__ import annotations

from dataclasses import replace

from liedyn.errors import nearest
from liedyn.io.robots.mjcf.tree import Element, Written

MAIN = "main"
ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
ACTUATORS = ("general", "motor", "position", "velocity", "intvelocity", "orientation", "pid", "damper", "cylinder", "muscle",
              "adhesion", "dcmotor")


class Defaults:
    """Attributes by class and tag, inherited ones included."""

    def __init__(self, root: Element):
        self.classes: dict[str, dict[str, dict[str, Written]]] = {MAIN: {}}
        for section in root.every("default"):
            name = section.text("class", MAIN)
            if name != MAIN and len(self.classes) == 1:
                self.classes[name] = self.classes[MAIN]                # the outermost class may have another name
            self._read(section, self.classes[MAIN])

    def _read(self, section: Element, attributes: dict[str, dict[str, Written]]) -> None:
        for child in section.children:
            if child.tag != "default":
                tag = _kind(child.tag)
                attributes[tag] = merged(attributes.get(tag, {}), child)
        for child in section.every("default"):
            name = child.require("class")
            if name in self.classes:
                raise child.problem("the default class is defined twice", "class", found=name)
            self.classes[name] = {tag: dict(values) for tag, values in attributes.items()}
            self._read(child, self.classes[name])

    def of(self, element: Element, childclass: str = MAIN, kind: str | None = None) -> Element:
        """The element with all that its class gives it. kind: the tag of its defaults, where that is another."""
        name = element.text("class", childclass)
        self.check(name, element, "class")
        return replace(element, attributes=merged(self.classes[name].get(kind or _kind(element.tag), {}), element))

    def check(self, name: str, element: Element, attribute: str) -> None:
        if name not in self.classes:
            raise element.problem("unknown default class", attribute, found=name, expected="one of " + ", ".join(self.classes),
                                  hint=nearest(name, self.classes))


def merged(inherited: dict[str, Written], element: Element) -> dict[str, Written]:
    """Own attributes over inherited ones; of the orientations one remains."""
    own = element.attributes
    if any(key in own for key in ORIENTATIONS):
        inherited = {key: written for key, written in inherited.items() if key not in ORIENTATIONS}
    return inherited | own


def _kind(tag: str) -> str:
    """All actuators share their defaults."""
    return "actuator" if tag in ACTUATORS else tag
