"""Energy, base path, replay, and saving all plots."""
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from liedyn.report.plots.joint_plots import draw_energy
from liedyn.report.plots.plot_data import BasePath, Energy, Group, PlotData, Series, Skeleton, TrackedReferences
from liedyn.report.plots.save_plots import figures, save_figures
from liedyn.report.plots.spatial_plots import (
    CURVE_PARTS,
    FLASHES,
    _widths,
    best_view,
    draw_base_path,
    draw_motion,
    smoothed,
    turned,
    view_from,
)

T = np.linspace(0, 2, 201)


def pendulum(normal="y"):
    """Return points (F, 3, 3) of a plane double pendulum."""
    angles = np.stack([np.sin(3 * T), np.cos(2 * T)], axis=1).cumsum(axis=1)
    links = np.stack([np.sin(angles), np.zeros_like(angles), -np.cos(angles)], axis=-1)
    if normal == "x":
        links = links[..., [1, 0, 2]]
    return np.concatenate([np.zeros((len(T), 1, 3)), links.cumsum(axis=1)], axis=1)


def skeleton(**more):
    return Skeleton(T, pendulum(), ((0, 1), (1, 2)), **more)


def recording(**more):
    return PlotData("arm", T, (Group("positions", "Joint positions", (Series("elbow", "", "rad", np.sin(T)),)),), **more)


def labelled(figure):
    return {line.get_label(): line for axes in figure.axes for line in axes.lines if not line.get_label().startswith("_")}


def energy_figure(energy, **more):
    return draw_energy(energy, PlotData("", T, (), **more))


def path_figure(base, t=T):
    return draw_base_path(base, PlotData("", t, ()))


def test_energy_is_counted_from_the_start():
    energy = Energy(np.cos(T) ** 2, 5 + np.sin(T) ** 2, work=0 * T, residual=1e-12 * T)
    lines = labelled(energy_figure(energy))
    assert np.allclose(lines["potential (0 at the start)"].get_ydata(), np.sin(T) ** 2)
    assert np.allclose(lines["total"].get_ydata(), 1)
    assert np.allclose(lines["initial + supplied work"].get_ydata(), 1)
    assert lines["balance residual"].get_ydata()[0] == pytest.approx(np.log10(2e-12) - 18)           # zero has no logarithm
    assert lines["balance residual"].get_ydata()[-1] == pytest.approx(np.log10(2e-12))


@pytest.mark.parametrize("size", [1.0, 1e-20])
def test_energies_of_any_size_fill_their_axes(size):
    figure = energy_figure(Energy(size * np.cos(T) ** 2, size * np.sin(T) ** 2, residual=size * 1e-6 * T))
    low, high = np.array(figure.axes[0].get_ylim()) / size
    assert -0.2 < low < 0.0 and 1.0 < high < 1.2
    assert labelled(figure)["balance residual"].get_ydata()[-1] == pytest.approx(np.log10(2e-6 * size))


def test_energy_without_balance_has_one_axes():
    assert len(energy_figure(Energy(T, T)).axes) == 1
    assert len(energy_figure(Energy(T, T, residual=0 * T)).axes) == 2


def test_the_residual_of_constraints_stands_below_the_energy():
    """With the balance and without; the axes do not touch, and the recording hands it over."""
    drift = 1e-13 * (1 + T)
    for energy, count in ((Energy(T, T, residual=1e-9 * T), 3), (Energy(T, T), 2)):
        figure = energy_figure(energy, drift=drift)
        assert len(figure.axes) == count
        boxes = [axes.get_position() for axes in figure.axes]
        assert all(below.y1 < above.y0 for above, below in pairwise(boxes)) and boxes[-1].y0 > 0
        assert labelled(figure)["constraint residual"].get_ydata()[-1] == pytest.approx(np.log10(3e-13))
    whole = figures(recording(energy=Energy(T, T), drift=drift))
    assert "constraint residual" in labelled(whole["energy"])


def test_names_of_equal_energies_do_not_lie_on_each_other():
    figure = energy_figure(Energy(0 * T, 0 * T, work=0 * T))
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts
             if text.get_text().split("\n")[0] in ("kinetic", "potential", "total", "initial +")]
    assert len(boxes) == 4
    frame = figure.axes[0].get_window_extent()
    assert all(frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in boxes)
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[k + 1:])


def test_base_path_shows_position_and_angles():
    yaw = 3 * T
    base = BasePath(np.column_stack([T, 2 * T, 1 + 0 * T]), np.column_stack([0 * T, 0 * T, np.sin(yaw / 2), np.cos(yaw / 2)]))
    figure = path_figure(base, T)
    lines = labelled(figure)
    assert np.array_equal(figure.axes[2].lines[1].get_ydata(), 2 * T)
    assert np.allclose(figure.axes[3].lines[2].get_ydata(), yaw)
    assert {"start", "end"} <= lines.keys()


def test_turns_are_counted_about_the_axes_of_the_world():
    angle = np.linspace(0, 5 * np.pi, 40)
    for axis in np.eye(3):
        spin = np.column_stack([np.sin(angle / 2)[:, None] * axis, np.cos(angle / 2)])
        spin[20:] *= -1                                                    # the same rotations
        assert np.allclose(turned(spin), angle[:, None] * axis)
    tilted = Rotation.from_rotvec(np.outer(angle, [0, 0, 1])) * Rotation.from_rotvec([0.3, 0.2, 0.1])
    assert np.allclose(turned(tilted.as_quat()), angle[:, None] * [0, 0, 1])


def test_a_base_at_rest_is_drawn():
    rest = BasePath(np.tile([0.0, 0.0, 1.0], (len(T), 1)), np.tile([0.0, 0.0, 0.0, 1.0], (len(T), 1)))
    path_figure(rest, T).draw_without_rendering()


@pytest.mark.parametrize("rows", [1, 2])
def test_a_body_with_one_or_two_rows_is_drawn(rows):
    """There are fewer points than directions of space; a curve of one row is a point."""
    rest = BasePath(np.tile([0.0, 0.0, 1.0], (rows, 1)), np.tile([0.0, 0.0, 0.0, 1.0], (rows, 1)))
    figure = path_figure(rest, T[:rows])
    figure.draw_without_rendering()
    assert {line.get_marker() for line in figure.axes[2].lines} == {"o" if rows == 1 else "None"}
    draw_motion(Skeleton(T[:rows], pendulum()[:rows, :2], ((0, 1),))).draw_without_rendering()
    view = best_view(np.zeros((rows, 1, 3)))
    assert np.allclose([view.right @ view.right, view.up @ view.up, view.right @ view.up], [1, 1, 0])


def test_trails_pass_through_every_frame():
    collections = [c for c in draw_motion(skeleton()).axes[0].collections if hasattr(c, "get_segments")]
    trail = next(c.get_segments() for c in collections if len(c.get_segments()) > 20)
    path = np.concatenate([trail[0], *(piece[1:] for piece in trail[1:])])
    assert np.allclose(path[::CURVE_PARTS], best_view(pendulum())(pendulum()[:, 2]))


def test_the_trail_of_a_fast_swing_is_no_polygon():
    angle = np.linspace(0, 2 * np.pi, 13)                                  # a frame each 30 degrees
    radius = np.linalg.norm(smoothed(np.column_stack([np.cos(angle), np.sin(angle)]), 6)[6:-6], axis=1)
    assert np.abs(radius - 1).max() < 0.006                                # chords: 0.034
    assert np.array_equal(smoothed(np.array([[0.0, 0.0], [2.0, 4.0]]), 2), [[0, 0], [1, 2], [2, 4]])


def test_start_and_end_of_a_round_trip_share_a_name():
    angle = 2 * np.pi * T / T[-1]
    there_and_back = np.column_stack([np.cos(angle), np.sin(angle), 0 * T])
    base = BasePath(there_and_back, np.tile([0.0, 0.0, 0.0, 1.0], (len(T), 1)))
    texts = [text.get_text() for text in path_figure(base, T).axes[0].texts]
    assert "start, end" in texts and "end" not in texts


@pytest.mark.parametrize("normal, right", [("y", [1, 0, 0]), ("x", [0, 1, 0])])
def test_plane_motion_is_seen_square_on(normal, right):
    view = best_view(pendulum(normal))
    assert view.flat and np.allclose(view.right, right, atol=1e-9)


def test_motion_in_space_is_seen_from_above_and_from_its_side():
    sweep = np.zeros((len(T), 2, 3))
    sweep[:, 1] = np.column_stack([np.cos(T), 0.1 * np.sin(T), 0.3 * T])
    view = best_view(sweep)
    assert not view.flat and abs(view.right @ [1, 0, 0]) > 0.9
    assert np.allclose([view.right @ view.up, view.right @ view.right, view.up @ view.up], [0, 1, 1])


def test_views_keep_up_and_right():
    front = view_from(-90, 0)                                              # from -y: x to the right, z up
    assert np.allclose(front(np.eye(3)), [[1, 0], [0, 0], [0, 1]])


def test_replay_draws_the_skeleton_at_each_flash():
    figure = draw_motion(skeleton(masses=np.array([0, 1.0, 2.0])))
    segments = [c.get_segments() for c in figure.axes[0].collections if hasattr(c, "get_segments")]
    last = best_view(pendulum())(pendulum()[-1])
    assert any(len(s) == 2 and np.allclose(s[1], last[1:]) for s in segments)
    poses = [s for s in segments if len(s) == 2 and np.allclose(s[0][0], [0, 0])]
    assert len(poses) == FLASHES + 1                                       # the last one twice: with its white edge
    assert figure.axes[0].get_aspect() == 1.0
    (x0, x1), (y0, y1) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    box = figure.axes[0].get_window_extent()
    assert (x1 - x0) / box.width == pytest.approx((y1 - y0) / box.height)  # a metre is as long either way


def test_limbs_are_thicker_where_more_hangs_on_them():
    tree = Skeleton(T, np.zeros((len(T), 5, 3)), ((3, 4), (0, 1), (1, 2), (1, 3)))
    widths = dict(zip(tree.edges, _widths(tree), strict=True))
    assert widths[(0, 1)] > widths[(1, 3)] > widths[(3, 4)] == widths[(1, 2)]


def test_only_what_is_known_is_drawn():
    assert list(figures(recording())) == ["positions"]
    base = BasePath(np.zeros((len(T), 3)), np.tile([0, 0, 0, 1.0], (len(T), 1)))
    everything = recording(energy=Energy(T, T), base=base, skeleton=skeleton())
    assert list(figures(everything)) == ["motion", "positions", "energy", "base_path"]


def test_saved_pictures_are_of_their_kind_and_the_same_each_time(tmp_path):
    whole = recording(energy=Energy(T, T, residual=T), skeleton=skeleton())
    first, second = save_figures(whole, tmp_path / "a").paths, save_figures(whole, tmp_path / "b").paths
    assert [path.name for path in first] == [f"{name}.{ending}" for name in ("motion", "positions", "energy")
                                             for ending in ("png", "svg")]
    for a, b in zip(first, second, strict=True):
        content = a.read_bytes()
        assert content == b.read_bytes()
        assert content.startswith(b"\x89PNG") if a.suffix == ".png" else b"<svg" in content[:1000]


def test_figures_leave_no_trace_in_pyplot():
    import subprocess
    import sys
    code = "import sys; import liedyn.report.plots.save_plots; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("name", ["$\\frac$", "a$b$c", "$x", "\x1b[31mred\x9b2J", "\u202egnp.exe", "a\nb", "关节",
                                  "_hidden", "%s {0}"])
def test_a_name_is_drawn_whatever_signs_it_holds(tmp_path, name):
    """Two $ were read as a formula, and no plot was drawn."""
    named = PlotData(name, T, (Group("positions", name, (Series(name, name, "rad", T), Series(name, "", name, T))),),
                      Energy(T, T), tracking=(TrackedReferences(name, T, {name: (name, T, T)}),
                                              TrackedReferences(name, T, {name: (name, T, T)})))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = save_figures(named, tmp_path, ("png", "svg", "pdf"))
    assert not written.failures and len(written.paths) == 9
    svg = (tmp_path / "positions.svg").read_text(encoding="utf-8")
    assert all(c.isprintable() or c == "\n" for c in svg)


def test_a_picture_that_fails_costs_no_other(tmp_path, monkeypatch):
    def broken(*_):
        raise ArithmeticError("no plot today")
    monkeypatch.setattr("liedyn.report.plots.save_plots.draw_energy", broken)
    written = save_figures(recording(energy=Energy(T, T)), tmp_path, ("svg",))
    assert written.failures == {"energy": "ArithmeticError: no plot today"}
    assert [path.name for path in written.paths] == ["positions.svg"]


def test_half_a_picture_is_no_picture(tmp_path, monkeypatch):
    def half(figure, file, **_):
        Path(file).write_text("half")
        raise OSError(28, "No space left on device")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", half)
    written = save_figures(recording(), tmp_path, ("svg",))
    assert list(written.failures) == ["positions"] and not written.paths and not list(tmp_path.iterdir())


def test_pictures_in_space_name_the_axes_of_the_world():
    """Seen along y, only x and z; from a corner, all three, each where its axis points."""
    def letters(figure):
        return {text.get_text(): np.array(text.get_position()) for axes in figure.axes for text in axes.texts
                if text.get_text() in set("xyz")}

    assert set(letters(draw_motion(skeleton()))) == {"x", "z"}
    moved = Skeleton(T, pendulum() + 0.3 * np.sin(5 * T)[:, None, None] * np.array([[[0, 1, 0], [0, 2, 0], [0, 1, 1]]]),
                     ((0, 1), (1, 2)))
    offsets = letters(draw_motion(moved))
    view = best_view(moved.points)
    assert set(offsets) == set("xyz")
    for k, letter in enumerate("xyz"):
        along = view(np.eye(3)[k])
        assert np.allclose(offsets[letter], 8 * along / np.linalg.norm(along))
