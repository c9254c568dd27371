"""Looks of figures, and colours of components."""
import pytest

from liedyn.errors import UsageError
from liedyn.report.plots.palette import AXES, PAPER_WIDTHS, PURPLE, component_colour, look_of


@pytest.mark.parametrize("style, width, expected, formats, narrow", [
    ("screen", None, None, ("png", "svg"), False), ("screen", 4.0, 4.0, ("png", "svg"), True),
    ("paper", None, PAPER_WIDTHS[0], ("pdf", "svg"), True), ("paper", 7.0, 7.0, ("pdf", "svg"), False)])
def test_a_look_has_the_width_and_the_formats_of_its_style(style, width, expected, formats, narrow):
    look = look_of(style, width)
    assert (look.width, look.formats, look.narrow, look.paper) == (expected, formats, narrow, style == "paper")
    assert (look.title > 8.0) == (style == "screen")


@pytest.mark.parametrize("style, width, text", [
    ("print", None, "unknown style 'print': expected screen or paper"), ("paper", 1.0, "must be 1.5 to 40 inches, got 1.0"),
    ("screen", 41.0, "got 41.0")])
def test_other_looks_are_errors(style, width, text):
    with pytest.raises(UsageError, match=text):
        look_of(style, width)


def test_components_have_the_colours_of_their_axes():
    assert {component_colour(f"{part}{axis}") for part in ("p", "w", "f", "dv") for axis in "x"} == {AXES["x"]}
    assert component_colour("qw") == PURPLE and component_colour("z") == AXES["z"]
    assert [component_colour(label) for label in ("pw", "elbow_x", "t", "")] == [None] * 4
