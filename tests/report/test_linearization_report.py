"""The plot, the table and the folder of a linearization."""
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import block_diag

from liedyn.analysis.linear_system import LinearSystem
from liedyn.analysis.linearize import linearize_scenario
from liedyn.errors import CheckFailed, UsageError
from liedyn.report.linearization_report import _COLOURS, check, draw_modes, matrices, summary, text, write_linearization
from liedyn.report.plots import palette

ROOT = Path(__file__).parents[2]


def system(values, names=None):
    """Return diagonal blocks with these eigenvalues; pairs for complex ones."""
    blocks = [np.array([[v.real, v.imag], [-v.imag, v.real]]) if v.imag else np.array([[v.real]]) for v in map(complex, values)]
    n = sum(map(len, blocks))
    A, k = np.zeros((n, n)), 0
    for block in blocks:
        A[k:k + len(block), k:k + len(block)] = block
        k += len(block)
    names = names or [f"q.{k}" for k in range(n)]
    units, moving = ("",) * n, np.ones(n, dtype=bool)
    return LinearSystem(A, np.eye(n), np.eye(n), np.zeros((n, n)), tuple(names), (), (), units, (), (), moving)


@pytest.fixture(scope="module")
def result():
    return linearize_scenario(ROOT / "configs/cart_pole.yaml", equilibrium=True, open_loop=True, inputs=["tau.cart"], verify=True)


def marks(figure):
    """Return {label: (x, y)} of the marks in the plane."""
    return {line.get_label(): (float(line.get_xdata()[0]), float(line.get_ydata()[0]), line.get_color())
            for line in figure.axes[0].lines if line.get_label().startswith("mode")}


def test_each_mode_has_its_mark_side_and_colour():
    s = system([2, -1 + 3j, -200, 0])
    found = marks(draw_modes(s))
    signs = {"mode 1": (1, 0, "unstable"), "mode 2": (0, 0, "neutral"), "mode 3": (-1, 1, "stable"), "mode 4": (-1, 0, "stable")}
    for name, (x, y, word) in signs.items():
        assert (np.sign(found[name][0]), np.sign(found[name][1]), found[name][2]) == (x, y, _COLOURS[word]), name
    assert found["mode 4"][0] < found["mode 3"][0]


@pytest.mark.parametrize("values", [[0], [0, 0], [1e-7j, 1e7], [-1e9, -1e-9], [5], [], [-1 + 1j] * 40])
def test_any_eigenvalues_fit_into_the_picture(values):
    figure = draw_modes(system(values), "title")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    for x, y, _ in marks(figure).values():
        assert axes.get_xlim()[0] < x < axes.get_xlim()[1] and axes.get_ylim()[0] < y < axes.get_ylim()[1]


def test_each_mode_says_how_it_moves():
    figure = draw_modes(system([2, -0.5, -1 + 3j, 0.6 + 0.8j, 2j, 0, 0]))
    words = {text.get_text() for text in figure.axes[1].texts}
    assert {"grows in 0.5 s", "decays in 2 s", "0.503 Hz, damping 0.32", "0.159 Hz, damping -0.6", "0.318 Hz, damping 0",
            "stays"} <= words


def chain(length, value=0j):
    """Return a Jordan chain with this eigenvalue, of pairs if it is complex."""
    block = np.array([[value.real, value.imag], [-value.imag, value.real]]) if value.imag else np.array([[value.real]])
    return np.kron(np.eye(length), block) + np.kron(np.eye(length, k=1), np.eye(len(block)))


def of_matrix(A):
    return replace(system([0] * len(A)), A=A)


def test_each_chain_says_how_it_grows():
    figure = draw_modes(of_matrix(block_diag(chain(4), chain(2), chain(2, 2j), [[-1]])))
    words = {text.get_text() for text in figure.axes[1].texts}
    assert {"chain of 4, grows like t^3", "0.318 Hz, chain of 2, grows like t", "decays in 1 s"} <= words
    assert [text.get_text() for text in figure.texts][-4:] == ["6 unstable", "4 drifting", "0 neutral", "1 stable"]
    assert marks(figure)["mode 1"] == (0.0, 0.0, _COLOURS["unstable"]) and marks(figure)["mode 2"][2] == _COLOURS["drifting"]


@pytest.mark.parametrize("others", [3, 40])
def test_words_of_modes_lie_in_the_picture(others):
    figure = draw_modes(of_matrix(block_diag(chain(4, 2.5j), -np.diag(1 + np.arange(others)))))
    figure.draw_without_rendering()
    for words in figure.axes[1].texts:
        box = words.get_window_extent()
        assert figure.bbox.y0 <= box.y0 and max(box.y1 - figure.bbox.y1, box.x1 - figure.bbox.x1) <= 0, words.get_text()


def test_coordinates_stand_in_the_robots_order():
    figure = draw_modes(system([-1, -2, -3], ["q.zeta", "q.alpha", "q.mid"]))
    names = [text.get_text() for text in figure.axes[1].texts]
    assert names[:3] == ["zeta", "alpha", "mid"]


def test_many_coordinates_show_those_that_move_most():
    figure = draw_modes(system(-np.arange(1.0, 61)))
    assert len([t for t in figure.axes[1].texts if t.get_ha() == "right"]) == 30


def test_the_folder_holds_what_numpy_and_people_read(result, tmp_path):
    written = write_linearization(result, tmp_path / "out", formats=("svg",))
    assert [str(p.relative_to(tmp_path / "out")) for p in written.paths] == [
        *(f"{name}.csv" for name in ("A", "B", "C", "D", "Ad", "Bd")), "system.npz", "linear.json", "plots/modes.svg"]
    assert all(path.is_file() for path in written.paths)
    rows = (tmp_path / "out/B.csv").read_text().splitlines()
    assert rows[0] == "B,tau.cart[N]" and rows[3].startswith("v.cart[m/s],0.9756")
    again = np.genfromtxt(tmp_path / "out/A.csv", delimiter=",", skip_header=1)[:, 1:]
    assert np.array_equal(again, result.system.A)
    with np.load(tmp_path / "out/system.npz") as data:
        assert np.array_equal(data["Ad"], result.Ad) and list(data["states"]) == list(result.system.states)
        assert float(data["step"]) == 0.02
    told = json.loads((tmp_path / "out/linear.json").read_text())
    assert told == json.loads(json.dumps(summary(result, tmp_path / "out"))) and told["at_rest"] is True
    assert told["modes"][0]["eigenvalue"][0] == pytest.approx(3.97384, abs=1e-5) and told["modes"][1]["time_constant"] is None
    with pytest.raises(UsageError, match="already exists; --force or force=True overwrites it"):
        write_linearization(result, tmp_path / "out")


def test_the_same_bytes_each_time(result, tmp_path):
    one, two = (write_linearization(result, tmp_path / name, formats=("png", "svg")) for name in "ab")
    for a, b in zip(one.paths, two.paths, strict=True):
        assert a.read_bytes() == b.read_bytes(), a.name


def test_matrices_carry_names_and_units(result):
    tables = matrices(result)
    assert tables["D"][1:] == (["q.cart[m]", "q.pole[rad]"], ["tau.cart[N]"]) and tables["Ad"][0].shape == (4, 4)


def test_the_table_tells_modes_ranks_and_differences(result):
    lines = text(result).splitlines()
    assert lines[0] == "cart_pole at rest: 4 states, 1 input, 2 outputs; unstable"
    assert lines[2].split() == ["3.9738", "-0.2516", "unstable", "pole", "100%"]
    assert lines[3].split() == ["0", "(2x)", "drifting", "cart", "100%"]
    assert lines[5] == "  0: Jordan chain of 2; grows like t: cart"
    assert lines[6] == "equilibrium at cart 0 m, pole 0 rad"
    assert lines[-4:-2] == ["controllable: 4 of 4 states; observable: 4 of 4", "transmission zeros [1/s]: none"]
    assert lines[-2].startswith("maximum relative difference from extrapolated finite differences: A ")
    collocated = replace(result, system=result.system.select(outputs="q.cart"))
    assert "transmission zeros [1/s]: 3.836, -3.836" in text(collocated) and max(map(len, lines)) <= 80
    assert summary(collocated)["zeros"] == [[pytest.approx(3.835978, abs=1e-6), 0], [pytest.approx(-3.835978, abs=1e-6), 0]]
    assert summary(collocated)["poles"][1:3] == [[0, 0], [0, 0]]
    assert "… and 2 more, in linear.json" in text(result, max_modes=1)
    assert text(result, max_modes=2) == text(result)


def test_a_difference_beyond_the_bound_fails():
    """The law has a kink: the derivative on one side differs from differences across it."""
    bent = linearize_scenario(ROOT / "configs/cart_pole.yaml", verify=True, overrides=["joints.pole={torque: 'abs(v)'}"])
    with pytest.raises(CheckFailed, match=r"differs from extrapolated finite differences by A .* more than 1e-06: a force may"):
        check(bent)
    assert check(linearize_scenario(ROOT / "configs/cart_pole.yaml")) is None


@pytest.mark.parametrize("width, is_below", [(3.5, True), (7.0, True), (9.0, False)])
def test_pictures_for_print_have_their_width_and_markers(width, is_below):
    """In a narrow picture the map is below. Stabilities have separate markers, also in the legend, and there is no title."""
    figure = draw_modes(system([2, -0.5, -1 + 3j, 0.6 + 0.8j, 2j, 0, 0]), "title", palette.Look(width, paper=True))
    figure.draw_without_rendering()
    plane, shares = (axes.get_position() for axes in figure.axes)
    assert figure.get_figwidth() == width and (shares.y1 < plane.y0) == is_below and shares.x1 <= 1.0 and shares.y0 > 0.0
    assert [text.get_text() for text in figure.texts] == ["× 3 unstable", "+ 0 drifting", "□ 4 neutral", "○ 3 stable"]
    assert {line.get_marker() for line in figure.axes[0].lines} >= {"x", "s", "o"}
    for words in (*figure.axes[0].texts, *figure.axes[1].texts):
        box = words.get_window_extent()
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and figure.bbox.y0 <= box.y0, words.get_text()
