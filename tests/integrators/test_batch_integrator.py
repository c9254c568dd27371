"""Steps that all runs of a batch share, coefficients of curves at their times, and parts of threads."""
from types import SimpleNamespace

import numpy as np
import pytest

from liedyn.integrators.batch_integrator import BatchStates, curve_coefficients, make_grid, thread_borders
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS
from liedyn.kernels.simulation.rollout_loop import RUNS_PER_BLOCK
from liedyn.kernels.simulation.signals import ORDER


def schedule(*breaks):
    breaks = np.array(breaks, dtype=float)
    return SimpleNamespace(breaks=breaks, before=np.nextafter(breaks, -np.inf))


@pytest.mark.parametrize("breaks", [(), (0.25,), (0.1, 0.3 + 1e-17, 0.77), (5.0,)])
@pytest.mark.parametrize("step", [0.03, 0.1, 7.0])
def test_steps_end_at_outputs_and_breaks_and_are_not_longer(breaks, step):
    times = np.linspace(0.0, 1.0, 11)
    grid = make_grid(schedule(*breaks), times, step)
    h, t, middle, end = grid.clocks[:-1].T
    stops = np.append(t, 1.0)
    assert grid.steps == len(h) and h.max() <= step * (1 + 1e-9) and h.min() > 0
    np.testing.assert_allclose(np.diff(stops), h, atol=1e-15)
    assert np.array_equal(t[grid.row[:-1] >= 0], times[:-1]) and grid.row[-1] == 10
    assert grid.row[grid.row >= 0].tolist() == list(range(11))
    for stop in breaks[:3]:
        if stop < 1.0:
            k = int(np.abs(t - stop).argmin())
            assert t[k] == pytest.approx(stop, abs=1e-15) and (end[k - 1] < stop or stop == times[3])
    assert np.all(middle <= end) and np.all(end <= np.append(t[1:], 1.0) + 1e-15)


def test_coefficients_of_curves_are_those_of_their_taylor_series():
    rng = np.random.default_rng(0)
    coefficients = rng.standard_normal((3, ORDER))
    signals = SimpleNamespace(first=np.array([0, 1]), count=np.array([1, 2]), breaks=np.array([0.0, 0.0, 1.0]),
                              coefficients=coefficients)
    grid = make_grid(schedule(), np.array([0.0, 2.0]), 0.4)
    out = curve_coefficients(signals, np.array([1]), grid.clocks).reshape(len(grid.clocks), -1, CURVE_COEFFICIENTS)
    for k, times in enumerate(grid.clocks[:, 1:]):
        for i, t in enumerate(times):
            piece = np.polynomial.Polynomial(coefficients[2 if t >= 1.0 else 1])
            s = t - (1.0 if t >= 1.0 else 0.0)
            exact = [piece(s), piece.deriv()(s), piece.deriv(2)(s) / 2.0, piece.deriv(3)(s) / 6.0, piece.deriv(4)(s) / 24.0]
            np.testing.assert_allclose(out[k, i], exact[:CURVE_COEFFICIENTS], rtol=1e-12, atol=1e-12)


def test_runs_start_with_unknown_events_and_without_energy():
    q, last = np.ones((2, 3)), np.array([4, 5])
    states = BatchStates.from_states(q, np.zeros((2, 3)), last, events=2)
    assert np.array_equal(states.q, q) and not np.shares_memory(states.q, q) and not np.shares_memory(states.last, last)
    assert np.isnan(states.auxiliary[:, 3:7]).all() and not states.auxiliary[:, :3].any() and not states.auxiliary[:, 7:].any()
    assert (states.ended == -1).all() and not states.first_step.any() and not states.codes.any()


@pytest.mark.parametrize("runs, threads", [(1, 4), (RUNS_PER_BLOCK, 2), (10 * RUNS_PER_BLOCK + 3, 4), (1000, 1)])
def test_parts_of_threads_are_whole_blocks(runs, threads):
    borders = thread_borders(runs, threads)
    assert borders[0] == 0 and borders[-1] == runs and np.all(np.diff(borders) > 0) and len(borders) - 1 <= threads
    assert all(border % RUNS_PER_BLOCK == 0 for border in borders[:-1])
