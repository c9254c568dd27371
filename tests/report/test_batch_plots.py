"""Pictures of batches: first-order indices against a closed form, envelopes against NumPy, and what is drawn of a folder."""
import numpy as np
import pytest

from liedyn.errors import UsageError
from liedyn.report.plots import palette
from liedyn.report.plots.batch_plots import draw_histograms, draw_indices, first_order, plot_batch
from sweeps import DRAWN, OUTPUTS, batch


def test_first_order_indices_of_ishigamis_function():
    """sin x + 7 sin^2 y + 0.1 z^4 sin x over (-pi, pi)^3: variances of the parts in closed form (Ishigami and Homma, 1990)."""
    x, y, z = np.random.default_rng(0).uniform(-np.pi, np.pi, (3, 20_000))
    found = [first_order(one, np.sin(x) + 7 * np.sin(y)**2 + 0.1 * z**4 * np.sin(x)) for one in (x, y, z)]
    first, second = 0.5 * (1 + 0.1 * np.pi**4 / 5)**2, 49 / 8
    total = first + second + 0.01 * np.pi**8 * 8 / 225
    assert np.allclose(found, [first / total, second / total, 0.0], atol=0.015)           # of 20,000 samples


def test_of_few_values_and_of_constants():
    x = np.repeat([1.0, 2.0, 3.0], 100)
    assert first_order(x, x**2) == pytest.approx(1.0)
    assert first_order(x, np.ones(300)) == 0.0 and first_order(np.ones(300), x) == 0.0


def test_histograms_span_the_values():
    x = np.random.default_rng(0).uniform(0.0, 2.0, 100)
    axes, constant = draw_histograms({"x": x, "one": np.ones(9)}, "").axes
    assert axes.get_xlim() == (x.min(), x.max())
    assert constant.get_xlim() == (0.95, 1.05)


def test_bars_have_their_names_and_a_constant_has_no_shares():
    x, name = np.linspace(0, 1, 60), "robot.stiffness.shoulder"
    figure = draw_indices({name: x}, {"peak": x, "still": np.ones(60)}, "", palette.Look(3.5, paper=True))
    assert len({axes.get_position().x0 for axes in figure.axes}) == 1
    assert 3.5 * figure.axes[0].get_position().x0 > 0.06 * len(name)
    figure.canvas.draw()
    assert ["constant" in [text.get_text() for text in axes.texts] for axes in figure.axes] == [False, True]


def test_envelopes_are_quantiles_over_the_runs(tmp_path):
    from pyarrow import parquet

    from liedyn.report.plots.batch_plots import _envelopes
    batch(tmp_path, f"{DRAWN}samples: 70\n{OUTPUTS}trajectories: {{columns: [q.elbow, tau.elbow]}}\n", 32).run(tmp_path / "out")
    found = _envelopes(tmp_path / "out")
    assert [(one.name, one.unit) for one in found] == [("q.elbow", "rad"), ("tau.elbow", "N m")]
    rows = parquet.read_table(tmp_path / "out" / "trajectories")
    number, t, q = (rows[name].to_numpy() for name in ("number", "t[s]", "q.elbow[rad]"))
    curves = q[np.lexsort((t, number))].reshape(len(np.unique(number)), -1)
    want = np.quantile(curves, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)
    assert np.allclose(found[0].quantiles[:, ::20], want, atol=1e-12)           # rows stand at every 20th time of the plot
    written, warnings = plot_batch(tmp_path / "out", tmp_path / "plots", ["png"])
    pictures = ("scatter", "indices", "histograms", "tornado", "envelopes")
    assert {path.name for path in written.paths} == {f"{name}.png" for name in pictures}
    assert not written.failures and not warnings


def test_runs_that_are_not_complete_are_told_and_not_drawn(tmp_path):
    text = f"parameters: [{{key: robot.mass.lower, list: [1, -1, 1.2]}}]\n{OUTPUTS}"
    batch(tmp_path, text).run(tmp_path / "out")
    written, warnings = plot_batch(tmp_path / "out", tmp_path / "plots", ["png"])
    assert [one.message for one in warnings] == ["1 of 3 runs are not complete and not drawn"] and len(written.paths) == 3
    text = "parameters: [{key: duration, list: [0.3, 0.1]}]\noutputs: {late: 'at(0.2, t)', never: 'at(2, t)', last: final(t)}\n"
    batch(tmp_path, text).run(tmp_path / "empty")
    written, warnings = plot_batch(tmp_path / "empty", tmp_path / "plots_of_empty", ["png"])
    assert [one.message for one in warnings] == ["late is empty in 1 of 2 runs", "never is empty in 2 of 2 runs"]
    assert len(written.paths) == 3
    (tmp_path / "out" / "runs.parquet").unlink()
    with pytest.raises(UsageError, match="has no table yet: `liedyn batch … --resume` computes the missing runs"):
        plot_batch(tmp_path / "out", tmp_path / "plots", ["png"])
