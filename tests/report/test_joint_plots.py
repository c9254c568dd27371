"""Grids of panels: what is drawn where, and that names stay within reach of each other."""
import numpy as np
import pytest

from liedyn.report.plots import style
from liedyn.report.plots.joint_plots import PANELS_A_PAGE, draw_group
from liedyn.report.plots.plot_data import Group, PlotData, Series
from liedyn.report.plots.save_plots import figures

T = np.linspace(0, 2, 101)


def series(joint, values=None, unit="rad", label="", **more):
    return Series(joint, label, unit, np.sin(T) if values is None else values, **more)


def draw(*curves):
    figure, = draw_group(Group("positions", "Joint positions", curves), T, "arm")
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
        assert texts(axes).count(f"joint{k}") == 1 and "rad" in texts(axes)


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
    assert texts(draw(series("tube", unit="m", label="slide")).axes[0])[-3:] == ["tube", "m", "slide"]
    assert texts(figure.axes[0])[-5:] == ["base", "m", "px", "py", "pz"]
    colours = [line.get_color() for line in figure.axes[1].lines]
    assert len(set(colours)) == 4


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
    (1e-15 * np.sin(40 * T), (-1.2, 1.2)),              # rounding errors beside a curve of 1 do not fill the panel
])
def test_constant_values(values, expected):
    axes = draw(series("still", values), series("moving")).axes[0]
    assert axes.get_ylim() == pytest.approx(expected)


def test_a_small_curve_is_seen_beside_a_large_one():
    small = draw(series("shoulder", 80 * np.sin(T)), series("wrist", 0.01 * np.sin(T))).axes[1]
    assert small.get_ylim()[1] < 0.012


def test_prescribed_joints_have_warm_colours_and_a_key():
    figure = draw(series("a", prescribed=True), series("b"), *(series("ball", label=x, prescribed=True) for x in ("wx", "wy")),
                  *(series("base", label=x) for x in ("wx", "wy")))
    colours = [[line.get_color() for line in axes.lines] for axes in figure.axes]
    assert colours == [[style.VERMILLION], [style.BLUE], list(style.WARM[:2]), list(style.COOL[:2])]
    assert "— prescribed motion" in [text.get_text() for text in figure.texts]
    assert "— prescribed motion" not in [text.get_text() for text in draw(series("a")).texts]


def test_equal_curves_are_both_seen():
    axes, = draw(*(series("ball", 0 * T, label=x) for x in ("wx", "wy", "wz"))).axes
    widths = [line.get_linewidth() for line in axes.lines]
    assert widths == sorted(widths, reverse=True) and len(set(widths)) == 3


def test_a_single_instant_is_drawn():
    figures = draw_group(Group("torques", "Generalized forces", (series("a", np.array([2.0])),)), np.array([1.0]))
    assert figures[0].axes[0].get_xlim() == (0.5, 1.5)


@pytest.mark.parametrize("n", [7, 37])
def test_long_names_do_not_reach_the_next_panel(n):
    figure = draw(*(series(f"left_gripper_finger_joint_with_a_long_name_{k}", upper=0.1) for k in range(n)))
    figure.draw_without_rendering()
    for axes in figure.axes:
        name_end = max(text.get_window_extent().x1 for text in axes.texts)
        others = [a.get_window_extent().x0 for a in figure.axes if a.get_window_extent().x0 > axes.get_window_extent().x1]
        assert name_end < min(others, default=figure.bbox.x1)


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
