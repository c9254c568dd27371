"""Colours of the visuals of a URDF, for pictures."""
from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree

Colour = tuple[float, float, float]                 # red, green, blue from 0 to 1
Materials = Mapping[str | None, Colour | None]


def materials_of(robot: ElementTree.Element) -> Materials:
    """Of the <robot>, by name; visuals of any link may use those that one of them defines."""
    every = [*robot.iterfind("material"), *robot.iterfind("link/visual/material")]
    return {material.get("name"): colour for material in reversed(every) if (colour := _colour(material))}


def colour_of(visual: ElementTree.Element, materials: Materials) -> Colour | None:
    """None of a visual without a material, or with one that has no colour."""
    material = visual.find("material")
    return None if material is None else _colour(material) or materials.get(material.get("name"))


def _colour(material: ElementTree.Element) -> Colour | None:
    colour = material.find("color")
    try:
        red, green, blue, *_ = (min(1.0, max(0.0, float(x))) for x in ({} if colour is None else colour).get("rgba", "").split())
    except ValueError:
        return None
    return red, green, blue
