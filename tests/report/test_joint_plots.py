"""Grids of panels: what is drawn where, and that names stay within reach of each other."""
from dataclasses import replace

import numpy as np
import pytest

from liedyn.report.plots import palette, style
from liedyn.report.plots.joint_plots import PANELS_A_PAGE, draw_energy, draw_group
from liedyn.report.plots.plot_data import Energy, Group, PlotData, Series, Skeleton
from liedyn.report.plots.save_plots import figures
from liedyn.report.plots.spatial_plots import draw_motion

T = np.linspace(0, 2, 101)


def series(joint, values=None, unit="rad", label="", **more):
    return Series(joint, label, unit, np.sin(T) if values is None else values, **more)


def draw(*curves):
    figure, = draw_group(Group("positions", "Joint positions", curves, kind="q"), PlotData("arm", T, ()))
    return figure


def texts(axes):
    return [text.get_text() for text in axes.texts]


def curves(axes):
    return [line for line in axes.lines if len(line.get_xdata()) > 2]


@pytest.mark.parametrize("n", [1, 2, 7, 12, 37])
def test_a_panel_a_joint(n):
    figure = draw(*(series(f"joint{k}", np.sin(T + k)) for k in range(n)))
    assert len(figure.axes) == n
    for k, axes in enumerate(figure.axes):
        line, = curves(axes)
        assert np.array_equal(line.get_ydata(), np.sin(T + k)) and np.array_equal(line.get_xdata(), T)
        assert texts(axes).count(f"joint{k}") == 1
        assert ("angle [rad]" in texts(axes)) == (axes.get_position().x0 == figure.axes[0].get_position().x0)


@pytest.mark.parametrize("size", [1.0, 1e-13, 1e13])
def test_values_of_any_size_fill_their_panels(size):
    axes, = draw(series("x", size * np.sin(T), unit="m")).axes
    low, high = np.array(axes.get_ylim()) / size
    assert -0.2 < low < 0.0 and 1.0 < high < 1.2


@pytest.mark.parametrize("limit", [1.0, 1e-10])
def test_a_limit_that_is_passed_by_half_is_told_however_small(limit):
    axes, = draw(series("x", 1.5 * limit * np.sin(T), unit="m", upper=limit)).axes
    assert "over limit" in texts(axes)


@pytest.mark.parametrize("n", [1, 2, 7, 37])
def test_panels_do_not_overlap_and_stay_on_the_page(n):
    boxes = [axes.get_position() for axes in draw(*(series(f"joint{k}") for k in range(n))).axes]
    for k, a in enumerate(boxes):
        assert 0 < a.x0 < a.x1 < 1 and 0 < a.y0 < a.y1 < 1
        assert not any(a.overlaps(b) for b in boxes[k + 1:])


@pytest.mark.parametrize("n", [1, 2, 7, 37])
def test_each_column_ends_with_a_time_axis(n):
    axes = draw(*(series(f"joint{k}") for k in range(n))).axes
    assert sum("t [s]" in texts(a) for a in axes) == len({round(a.get_position().x0, 6) for a in axes})


def test_many_joints_make_pages_of_nearly_the_same_size():
    group = Group("torques", "Generalized forces", tuple(series(f"j{k}") for k in range(PANELS_A_PAGE + 20)))
    pages = figures(PlotData("arm", T, (group,)))
    assert list(pages) == ["torques-1", "torques-2"]
    assert [len(figure.axes) for figure in pages.values()] == [30, 30]
    assert pages["torques-2"].texts[0].get_text() == "Generalized forces  (2 of 2)"


def test_components_of_a_joint_share_a_panel_by_unit():
    figure = draw(*(series("base", unit="m", label=x) for x in ("px", "py", "pz")),
                  *(series("base", unit="", label=x) for x in ("qx", "qy", "qz", "qw")), series("elbow"))
    assert [len(curves(axes)) for axes in figure.axes] == [3, 4, 1]
    assert texts(draw(series("tube", unit="m", label="slide")).axes[0])[-3:] == ["position [m]", "tube", "slide"]
    assert texts(figure.axes[0])[-4:] == ["base", "px", "py", "pz"]
    assert [line.get_color() for line in figure.axes[0].lines] == [palette.VERMILLION, palette.GREEN, palette.BLUE]
    colours = [line.get_color() for line in figure.axes[1].lines]
    assert len(set(colours)) == 4 and colours[:3] == list(palette.AXES.values())


def dashed(axes):
    return [line.get_ydata()[0] for line in axes.lines if len(line.get_xdata()) == 2]


def test_limits_are_drawn_only_near_the_values():
    near, far, none = draw(series("a", lower=-0.3, upper=1.2), series("b", lower=-9, upper=9), series("c")).axes
    assert dashed(near) == [-0.3, 1.2] and dashed(far) == [] and dashed(none) == []
    assert near.get_ylim()[0] < -0.3 and near.get_ylim()[1] > 1.2
    assert "over limit" not in texts(near)


def test_values_beyond_a_limit_are_said():
    axes, = draw(series("a", lower=-9, upper=0.5)).axes
    assert dashed(axes) == [0.5] and "over limit" in texts(axes)


@pytest.mark.parametrize("values, expected", [
    (np.zeros_like(T), (-1.2, 1.2)),
    (np.full_like(T, 0.3), (0.285, 0.315)),
])
def test_constant_values(values, expected):
    axes, = draw(series("still", values)).axes
    assert axes.get_ylim() == pytest.approx(expected)


@pytest.mark.parametrize("values", [np.zeros_like(T), 1e-15 * np.sin(40 * T)])          # rounding errors next to a curve of 1
def test_panels_of_zeros_are_listed_and_not_drawn(values):
    figure = draw(series("still", values), series("moving"), *(series("base", 0 * T, "N", x) for x in ("fx", "fy")))
    assert len(figure.axes) == 1 and figure.notes == ["zero, not drawn: still [rad], base [N]"]
    assert "zero, not drawn: still [rad], base [N]" in figure.texts[1].get_text()


def test_moments_that_are_rounding_of_forces_are_not_drawn():
    figure = draw(series("pin", 1e-15 * np.sin(40 * T), "N m", "mx"), series("pin", T, "N", "fx"))
    assert len(figure.axes) == 1 and figure.notes == ["zero, not drawn: pin [N·m]"]
    assert len(draw(series("pin", 1e-6 * T, "N m", "mx"), series("pin", T, "N", "fx")).axes) == 2


@pytest.mark.parametrize("labels, title", [
    (("", ""), "Reactions of couplings"), (("mx", "fx"), "Reactions of loops (on link b)"), (("fx", ""), "all")])
def test_reactions_are_called_by_what_they_are(labels, title):
    curves = tuple(series(f"j{k}", T, "N", label) for k, label in enumerate(labels))
    figure, = draw_group(Group("reactions", "all", curves, axes="world axes", kind="reaction"), PlotData("", T, ()))
    assert figure.texts[0].get_text() == title
    assert ("world axes" in [t.get_text() for t in figure.texts]) == any(labels)


@pytest.mark.parametrize("labels, columns", [(("mx", "my", "mz"), 1), (("",), 2)])
def test_long_headings_have_the_width_of_a_column(labels, columns):
    curves = tuple(series(f"joint{k}", T, "N", label) for k in range(3) for label in labels)
    figure, = draw_group(Group("w", "w", curves), PlotData("", T, (), look=palette.Look(3.5, paper=True)))
    assert len({axes.get_position().x0 for axes in figure.axes}) == columns


def test_residuals_of_zero_are_not_drawn():
    energy = Energy(T, T, T, 1e-9 * T)
    for drift, panels in ((0 * T, 2), (1e-18 + 0 * T, 3)):
        figure = draw_energy(energy, PlotData("", T, (), drift=drift))
        assert len(figure.axes) == panels and ("zero, not drawn: constraints" in figure.notes) == (panels == 2)


def test_torques_and_forces_are_called_so():
    def title(*units):
        curves = tuple(series(f"j{k}", unit=unit) for k, unit in enumerate(units))
        return draw_group(Group("torques", "Forces of joints", curves, kind="tau"), PlotData("", T, ()))[0].texts[0].get_text()
    assert [title("N m"), title("N"), title("N m", "N")] == ["Joint torques", "Joint forces", "Joint torques and forces"]


def test_a_position_without_a_unit_is_no_quaternion():
    def names(*curves):
        axes = draw_group(Group("positions", "Joint positions", curves, kind="q"), PlotData("", T, ()))[0].axes[0]
        return {"position", "quaternion"} & {axes.get_ylabel(), *texts(axes)}
    assert names(series("elbow", unit="")) == {"position"}
    assert names(*(series("base", 0.5 + 0 * T, "", x) for x in ("qx", "qw"))) == {"quaternion"}


def test_events_phases_and_contacts_are_marked():
    push = Group("contacts", "Contacts", (series("foot", np.maximum(np.sin(4 * T), 0), "N", "force"),
                                          series("toe", 0 * T, "N", "force"), series("toe", T, "m", "depth")), kind="contact")
    touches = {"foot": np.sin(4 * T) > 0, "toe": T < 0}
    data = PlotData("dog", T, (push,), phase="flight", contacts=touches,
                    events=((0.5, "lands", "stance"), (1.5, "jumps", "flight"), (1.6, "record", "")))
    assert data.phases == [(0.0, 0.5, "flight"), (0.5, 1.5, "stance"), (1.5, 2.0, "flight")]
    figure, = draw_group(push, data)
    axes, = figure.axes
    assert [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2] == [0.5, 1.5, 1.6]
    assert "stance" in texts(axes)
    assert "marks: lands (at 0.5 s), jumps (at 1.5 s), record (at 1.6 s)" in figure.texts[1].get_text()
    assert figure.notes == ["never in contact, not drawn: toe"]
    shaded, = (c for c in axes.collections if c.get_label() == "contact")
    assert shaded.get_paths() and not shaded.get_hatch()
    (axes,), = (figure.axes for figure in draw_group(push, replace(data, look=palette.Look(3.5, paper=True))))
    shaded, = (c for c in axes.collections if c.get_label() == "contact")
    assert shaded.get_hatch()                                                # in print, unlike phases
    assert not PlotData("dog", T, (push,)).phases and not PlotData("dog", T, (push,), events=((0.5, "record", ""),)).phases


def test_print_has_patterns_small_text_and_no_title():
    curves = tuple(series("base", np.sin(T + k), "m", x) for k, x in enumerate("xyz"))
    group = Group("positions", "Joint positions", curves, kind="q")
    figure, = draw_group(group, PlotData("arm", T, (), look=palette.Look(3.5, paper=True)))
    axes, = figure.axes
    assert figure.get_figwidth() == 3.5 and not figure.texts
    assert len({str(line.get_linestyle()) + str(line._unscaled_dash_pattern) for line in axes.lines}) == 3
    assert {text.get_size() for text in axes.texts} == {8.0} and "··· z" in texts(axes)


@pytest.mark.parametrize("width, columns", [(3.5, 2), (7.0, 3), (1.5, 1)])
def test_a_width_arranges_panels(width, columns):
    group = Group("positions", "Joint positions", tuple(series(f"joint{k}") for k in range(9)), kind="q")
    figure, = draw_group(group, PlotData("arm", T, (), look=palette.Look(width)))
    assert figure.get_figwidth() == width and style.count_columns(figure.axes) == columns


@pytest.mark.parametrize("size", [(5.0, 3.0), (20.0, 12.0), (1.0, 0.8)])
def test_another_size_keeps_margins_and_labels(size):
    figure = draw(*(series(f"joint{k}") for k in range(3)))
    def boxes():
        return np.array([axes.get_position().get_points() * figure.get_size_inches() for axes in figure.axes])
    before = boxes()
    figure.set_size_inches(*size)
    after = boxes()
    assert tuple(figure.get_size_inches()) == size
    if size[0] > 1.0:                                                      # margins that fit remain
        assert after[0, 0, 0] == pytest.approx(before[0, 0, 0]) and after[1, 0, 0] - after[0, 1, 0] == pytest.approx(
            before[1, 0, 0] - before[0, 1, 0])
        assert size[1] - after[0, 1, 1] == pytest.approx(figure_top(figure, draw))
    figure.draw_without_rendering()
    for axes in figure.axes:
        labels = [text for text in axes.texts if text.get_text() == "joint1"]
        assert len(labels) <= 1 and 0 < axes.get_position().x0 < axes.get_position().x1 <= 1.0


def figure_top(figure, again):
    """Return the height above the first row, of a figure that was not resized."""
    other = again(*(series(f"joint{k}") for k in range(3)))
    return other.get_figheight() * (1 - other.axes[0].get_position().y1)


def test_a_small_curve_is_seen_beside_a_large_one():
    small = draw(series("shoulder", 80 * np.sin(T)), series("wrist", 0.01 * np.sin(T))).axes[1]
    assert small.get_ylim()[1] < 0.012


def test_prescribed_joints_have_warm_colours_and_a_key():
    figure = draw(series("a", prescribed=True), series("b"), *(series("ball", label=x, prescribed=True) for x in ("wx", "wy")),
                  *(series("base", label=x) for x in ("wx", "wy")))
    colours = [[line.get_color() for line in axes.lines] for axes in figure.axes]
    red_and_green = [palette.VERMILLION, palette.GREEN]
    assert colours == [[palette.ORANGE], [palette.BLUE], red_and_green, red_and_green]
    assert "— prescribed motion" in [text.get_text() for text in figure.texts]
    assert "— prescribed motion" not in [text.get_text() for text in draw(series("a")).texts]


def test_equal_curves_are_both_seen():
    axes, = draw(*(series("ball", 0 * T, label=x) for x in ("wx", "wy", "wz"))).axes
    widths = [line.get_linewidth() for line in axes.lines]
    assert widths == sorted(widths, reverse=True) and len(set(widths)) == 3


def test_a_single_instant_is_drawn():
    instant = PlotData("", np.array([1.0]), ())
    figures = draw_group(Group("torques", "Forces of joints", (series("a", np.array([2.0])),)), instant)
    assert figures[0].axes[0].get_xlim() == (0.5, 1.5)


@pytest.mark.parametrize("n", [7, 37])
def test_long_names_do_not_reach_the_next_panel(n):
    figure = draw(*(series(f"left_gripper_finger_joint_with_a_long_name_{k}", upper=0.1) for k in range(n)))
    figure.draw_without_rendering()
    for axes in figure.axes:
        name_end = max(text.get_window_extent().x1 for text in axes.texts)
        others = [a.get_window_extent().x0 for a in figure.axes if a.get_window_extent().x0 > axes.get_window_extent().x1]
        assert name_end < min(others, default=figure.bbox.x1)


def test_many_labels_fit_above_a_narrow_panel():
    curves = tuple(s for foot in ("front", "hind") for s in (
        series(foot, unit="N", label="force"), series(foot, T, "N", "tangential"), series(foot, T, "", "utilization")))
    group = Group("contacts", "Contacts", curves, kind="contact")
    figure, = draw_group(group, PlotData("dog", T, (group,), look=palette.Look(3.5, paper=True)))
    figure.draw_without_rendering()
    first, second = figure.axes[:2]
    ends = [text.get_window_extent().x1 for text in first.texts if text.get_text().endswith(("force", "tangential"))]
    assert len(ends) == 2 and max(ends) < figure.bbox.x1
    assert "utilization" in texts(second) and not any(text.endswith("— utilization") for text in texts(second))


def test_equal_scales_remain_in_another_size():
    figure = draw_motion(Skeleton(T, np.zeros((len(T), 2, 3)) + np.array([[0, 0, 0], [1.0, 0, 1]]), ((0, 1),)))
    figure.set_size_inches(3.5, 6.0)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    box, (x0, x1), (y0, y1) = axes.get_window_extent(), axes.get_xlim(), axes.get_ylim()
    assert (x1 - x0) / box.width == pytest.approx((y1 - y0) / box.height)


# --- style -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("values, labels", [
    ([-1.0, 0.0, 1.0], ["-1", "0", "1"]),
    ([-0.5, -1e-17, 0.5], ["-0.5", "0.0", "0.5"]),
    ([0.28, 0.3, 0.32], ["0.28", "0.30", "0.32"]),
    ([1e6, 2e6], ["1e+06", "2e+06"]),
    ([0.0, 2e-7], ["0", "2e-07"]),
    ([3.0], ["3"]),
    ([], []),
])
def test_tick_labels(values, labels):
    assert style.tick_labels(values) == labels


def test_ticks_are_round_and_within():
    assert style.ticks(-1.05, 1.05, 3) == [-1, 0, 1]
    assert style.ticks(0, 5, 6) == [0, 1, 2, 3, 4, 5]


def test_thinning_keeps_peaks():
    t = np.linspace(0, 1, 100_000)
    x = np.zeros_like(t)
    x[54_321], x[54_322] = 7, -7
    short_t, short_x = style.thinned(t, x)
    assert len(short_t) <= style.MOST_POINTS and short_x.max() == 7 and short_x.min() == -7
    assert np.all(np.diff(short_t) > 0)


def test_shortened_names_keep_both_ends():
    assert style.shortened("panda_joint1", 12) == "panda_joint1"
    assert style.shortened("left_gripper_finger_joint_3", 12) == "left_…oint_3"


def test_lines_of_a_subtitle_do_not_end_within_parentheses():
    events = tuple((0.01 * k, f"event_{k % 4}", "") for k in range(1, 60))
    figure, = draw_group(Group("positions", "Joint positions", (series("hip", T, "rad"),), kind="q"),
                         PlotData("dog", T, (), events=events))
    lines = [text.get_text() for text in figure.texts[1:] if "event" in text.get_text()]
    assert len(lines) > 1 and lines[0].startswith("dog · marks: event_1 (15 times, from 0.01 s), ")
    assert all(line.count("(") == line.count(")") and "\u00a0" not in line for line in lines)


def test_a_name_is_whole_where_a_smaller_heading_fits():
    figure, (axes,) = style.panels(1, 1, 3.6, 1.7, "Outputs")
    style.heading(axes, "elbow_at_2_s [rad]", "-0.05103, 90 % within -0.8465 … 0.5733")
    name, remark = axes.texts
    assert name.get_text() == "elbow_at_2_s [rad]" and name.get_size() == remark.get_size() < figure.look.name
    style.heading(axes, "x" * 80)
    assert "…" in axes.texts[-1].get_text()


@pytest.mark.parametrize("unit", ["N", "m", "m/s", ""])
def test_contacts_are_shaded_in_panels_of_each_unit(unit):
    group = Group("contacts", "Contacts", (series("foot", T, unit, "force"),), kind="contact")
    figure, = draw_group(group, PlotData("dog", T, (group,), contacts={"foot": T > 0.5}))
    assert [c.get_label() for c in figure.axes[0].collections].count("contact") == 1


@pytest.mark.parametrize("across, poses", [(1.0, 1), (0.0, 10)])
def test_outlines_in_space_are_drawn_for_the_last_pose_only(across, poses):
    """In a plane they are rectangles and circles, which do not hide each other."""
    corners = np.array([[0, 0, 0], [1, across, 0.5], [0, 0, 1], [0.2, across, 1], [0, across, 1.2], [0, 0, 1.2]])
    moved = T[:, None, None] * np.array([0.3, 0, 0]) + corners
    figure = draw_motion(Skeleton(T, moved, ((0, 1),), outlines=((2, 3, 4, 5),)))
    closed = [c for c in figure.axes[0].collections if hasattr(c, "get_segments") and c.get_zorder() in (4, 11)
              and any(len(line) == 5 for line in c.get_segments())]
    assert len(closed) == poses
