"""Bode plots: their frequencies, numbers in the CSV, and which systems they draw."""
import csv

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.transfer_function import plot_frequencies
from liedyn.errors import UsageError
from liedyn.report.linearization_report import write_linearization
from liedyn.report.plots import palette
from liedyn.report.plots.bode_plot import check_bode, draw_bode, phases, response_units


@pytest.fixture(scope="module")
def result():
    return ld.linearize_scenario("configs/cart_pole.yaml", equilibrium=True, open_loop=True, inputs="tau.cart")


def test_frequencies_of_a_plot_include_poles_and_zeros_but_no_undamped_pole(result):
    w = plot_frequencies(result.system)
    assert w[0] == pytest.approx(0.1) and w[-1] == pytest.approx(100) and (np.diff(w) > 0).all()
    model = ld.load("robots/double_pendulum.yaml")
    system = ld.linearize(model, [0, 0], [0, 0], [0, 0], inputs="tau.elbow", outputs="q.elbow")
    distance = np.abs(plot_frequencies(system)[:, None] / np.abs(system.poles.imag) - 1).min(axis=0)
    assert (distance > 1e-5).all() and (distance < 2e-4).all()
    assert np.isfinite(system.frequency_response(plot_frequencies(system))).all()


def test_the_csv_of_a_frequency_response(result, tmp_path):
    write_linearization(result, tmp_path / "out", plots=False, bode=True)
    with (tmp_path / "out/frequency_response.csv").open(encoding="utf-8", newline="") as file:
        titles, *rows = csv.reader(file)
    assert titles == ["w[rad/s]", "magnitude.q.cart/tau.cart[m/N]", "phase.q.cart/tau.cart[deg]",
                      "magnitude.q.pole/tau.cart[rad/N]", "phase.q.pole/tau.cart[deg]"]
    numbers = np.array(rows, dtype=float)
    G = result.system.frequency_response(numbers[:, 0])[:, :, 0]
    np.testing.assert_allclose(numbers[:, 1::2] * np.exp(1j * np.radians(numbers[:, 2::2])), G, rtol=1e-12, atol=1e-12)
    write_linearization(result, tmp_path / "none", plots=False)
    assert not (tmp_path / "none/frequency_response.csv").exists()


def test_phases_are_continuous():
    """Of two integrators from -180, and of three more lags down to -450 degrees."""
    w = np.logspace(-2, 2, 50)[:, None, None]
    np.testing.assert_allclose(phases(-1.0 / w**2 + 0j)[:, 0, 0], -180)
    lag = phases(-1.0 / (w**2 * (1 + 1j * w)**3))
    assert (np.diff(lag[:, 0, 0]) < 0).all() and lag[-1, 0, 0] == pytest.approx(-450, abs=3)


def test_units_of_responses(result):
    wide = ld.linearize_scenario("configs/cart_pole.yaml", equilibrium=True, open_loop=True).system
    assert response_units(wide) == [["m/N", "m/(N m)"], ["rad/N", "rad/(N m)"]]


@pytest.mark.parametrize("look", [palette.SCREEN, palette.Look(3.5, paper=True)])
def test_curves_of_a_bode_plot(result, look):
    system = result.system
    w = np.logspace(-1, 1, 20)
    G = system.frequency_response(w)
    G[:, 1] = 0.0
    figure = draw_bode(system, w, G, "title", look)
    figure.draw_without_rendering()
    magnitude, phase = (axes.lines for axes in figure.axes)
    assert len(magnitude) == len(phase) == 1                   # without the output that does not respond, which is named
    np.testing.assert_allclose(magnitude[0].get_ydata(), np.log10(np.abs(G[:, 0, 0])))
    assert any("no effect on q.pole" in text.get_text() for text in figure.axes[0].texts)


@pytest.mark.parametrize("inputs, outputs, message", [
    ([], "*", r"a Bode plot: expected 1 to 4 inputs, got 0 \(select them, such as --inputs input\)"),
    ("*", "*", r"a Bode plot: expected 1 to 6 outputs, got 8 \(select them, such as --outputs q\.cart\)")])
def test_too_many_curves(inputs, outputs, message):
    model = ld.load("robots/cart_pole.yaml")
    system = ld.linearize(model, model.neutral(), [0, 0], [0, 0], outputs=["q.*", "v.*", "a.*", "tau.*"])
    with pytest.raises(UsageError, match=message):
        check_bode(system.select(inputs, outputs))
    assert check_bode(system.select("tau.cart", "q.*")) is None
