"""Locations of the elements of a robot description, as errors name them."""
from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.errors import ElementPlace, Place, escape_nonprintable

if TYPE_CHECKING:
    from liedyn.model.link_tree import Element


def element_location(element: Element, part: str | None = None) -> Place:
    """Return the location of a link, joint, … or of a part of it such as `axis`. Without a file, it contains the name."""
    place = element.place
    key = place.key or f'{type(element).__name__.lower()} "{escape_nonprintable(str(element.name))}"'
    if part is None:
        return Place(place.file, place.line, key)
    if isinstance(place, ElementPlace):
        return place.at(part)
    return Place(place.file, place.line, f"{key}, {part}")
