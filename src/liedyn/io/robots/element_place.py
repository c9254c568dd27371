"""Where a link or joint stands in its file, and where each of its parts does."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from liedyn.errors import Place


@dataclass(frozen=True, slots=True)
class ElementPlace(Place):
    """The place of a link or joint that also knows the line of its parts (`mass`, `axis`, `limits`, …), so that checks made
    long after reading still name the line at fault."""

    parts: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)

    def at(self, part: str) -> Place:
        """The place of a part; that of the element where the part is not written in the file."""
        return self.parts.get(part) or Place(self.file, self.line, self.key)
