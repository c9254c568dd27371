"""Functions of time for excitations: at rest at both ends, and their derivatives."""
import numpy as np
import pytest

from liedyn.analysis.excitation_series import SERIES, FourierSeries

PERIOD = 4.0
EVERY = pytest.mark.parametrize("kind, from_start", [("fourier", False), ("fourier", True), ("splines", False)])


@EVERY
@pytest.mark.parametrize("harmonics", [3, 5])
def test_motions_are_at_rest_at_the_start_and_at_the_end(kind, from_start, harmonics):
    series = SERIES[kind](PERIOD, harmonics, from_start)
    ends = series.at(np.array([0.0, PERIOD * (1 - 1e-12)]))
    assert ends.q.shape == (2, series.size) == (2, 2 * harmonics - 1)
    assert np.abs(ends.v).max() < 1e-9 and np.abs(ends.a).max() < 1e-7
    np.testing.assert_allclose(ends.q[0], ends.q[1], atol=1e-9)
    assert np.array_equal(ends.q[:, 0], [1.0, 1.0])
    if from_start or kind == "splines":
        assert np.abs(ends.q[0, 1:]).max() < 1e-12
    assert np.linalg.matrix_rank(series.basis(200).q) == series.size


@EVERY
def test_velocities_and_accelerations_are_derivatives(kind, from_start):
    series, t, h = SERIES[kind](PERIOD, 4, from_start), np.linspace(0.1, 3.9, 23), 1e-5
    ahead, behind, basis = series.at(t + h), series.at(t - h), series.at(t)
    np.testing.assert_allclose(basis.v, (ahead.q - behind.q) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(basis.a, (ahead.v - behind.v) / (2 * h), atol=1e-7)


@pytest.mark.parametrize("from_start", [False, True])
def test_sine_and_cosine_coefficients_are_the_same_motion(from_start):
    series, x = FourierSeries(PERIOD, 3, from_start), np.random.default_rng(0).standard_normal((5, 2))
    center, sine, cosine = series.center_sine_and_cosine(x)
    t = np.linspace(0, PERIOD, 17)
    angles = np.outer(t, series.frequency)
    np.testing.assert_allclose(series.at(t).q @ x, center + np.sin(angles) @ sine + np.cos(angles) @ cosine, atol=1e-12)
