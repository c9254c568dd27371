"""Colours and sizes that all plots share, without Matplotlib."""
from __future__ import annotations

from dataclasses import dataclass

from liedyn.errors import UsageError

# Okabe and Ito's palette, told apart by colour-blind readers too; yellow is left out: too pale on white
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
AXES = {"x": VERMILLION, "y": GREEN, "z": BLUE}                           # components of vectors, directions of the world
CURVES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
MORE_CURVES = ("#8F3F00", "#00785A", "#9A4F78", "#6B7F8E", "#D62728", "#7B68EE", "#66A61E", "#A6761D", "#E7298A", "#17A2A8",
               "#F08080", "#8C8C00", "#9467BD", "#4FBF8B")                # in pages, where many curves share a panel
WARM = (ORANGE, VERMILLION, PURPLE, "#8F3F00", "#8C6D00", "#7D3F60")      # what is prescribed,
COOL = (BLUE, GREEN, SKY, "#003F63", "#005C43", "#6B7F8E")                # what follows from the forces
INK, FAINT, HATCHING, GRID, BAND = "#222222", "#777777", "#C4C4C4", "#E3E3E3", "#F3F3F3"

PAPER_WIDTHS = (3.5, 7.0)               # inches: one and two columns of a page
NARROWEST, WIDEST = 1.5, 40.0           # inches: of figures


@dataclass(frozen=True)
class Look:
    """How figures look.

    width    of figures [inches]; None: by their panels
    paper    for print: 8 points, no title, patterns of lines and hatching that survive grey print
    """

    width: float | None = None
    paper: bool = False

    @property
    def formats(self) -> tuple[str, str]:
        """Default formats of the files."""
        return ("pdf", "svg") if self.paper else ("png", "svg")

    @property
    def narrow(self) -> bool:
        """Whether the figure is that of one column of a page."""
        return self.width is not None and self.width < 5.0

    @property
    def title(self) -> float:
        """Size of titles [points]."""
        return 8.0 if self.paper else 13.0

    @property
    def name(self) -> float:
        """Size of names of panels and keys [points]."""
        return 8.0 if self.paper else 9.0

    @property
    def label(self) -> float:
        """Size of labels of ticks [points]."""
        return 8.0 if self.paper else 7.5


SCREEN = Look()


def look_of(style: str, width: float | None = None) -> Look:
    """Return the look of figures of a style and a width [inches]. Raise UsageError for one that does not exist."""
    if style not in ("screen", "paper"):
        raise UsageError(f"unknown style {style!r}: expected screen or paper")
    if width is not None and not NARROWEST <= width <= WIDEST:
        raise UsageError(f"the width of a figure must be {NARROWEST:g} to {WIDEST:g} inches, got {width!r}")
    return Look(width if width is not None or style == "screen" else PAPER_WIDTHS[0], style == "paper")


LINES = (("-", "—"), ((0, (5, 1.5)), "– –"), ((0, (1.2, 1.2)), "···"), ((0, (6, 1.5, 1.2, 1.5)), "– ·"),
         ((0, (2.5, 1.2)), "- -"), ((0, (6, 1.2, 1.2, 1.2, 1.2, 1.2)), "– ··"))        # patterns, and their signs in keys
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx")


def component_colour(label: str) -> str | None:
    """Return the colour of a component such as "fx" or "qw"; None for another label."""
    part, axis = label[:-1], label[-1:]
    if part not in ("", "p", "q", "w", "v", "dw", "dv", "m", "f"):
        return None
    return AXES.get(axis) or (PURPLE if label == "qw" else None)
