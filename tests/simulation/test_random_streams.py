"""Streams of random numbers: the same in all parts and on all systems, different by name and by seed."""
import numpy as np
import pytest

from liedyn.simulation.random_streams import NOISE_BLOCK, MeasurementNoise, normal_stream, random_stream


def test_a_stream_does_not_depend_on_its_parts():
    whole = random_stream(7, "mass", 0, 1000)
    parts = np.concatenate([random_stream(7, "mass", first, first + 125) for first in range(0, 1000, 125)])
    np.testing.assert_array_equal(parts, whole)
    assert whole.min() > 0.0 and whole.max() < 1.0


def test_a_stream_is_that_of_its_seed_and_name():
    a, b, c = random_stream(7, "mass", 0, 4000), random_stream(8, "mass", 0, 4000), random_stream(7, "mass.a", 0, 4000)
    for x, y in ((a, b), (a, c), (b, c)):
        assert abs(np.corrcoef(x, y)[0, 1]) < 0.08                 # five standard deviations of 4,000 independent pairs
    assert random_stream(7, "mass", 0, 2) == pytest.approx([0.3872220222547466, 0.7102500195737218], abs=0)


def test_normal_numbers_have_mean_0_and_deviation_1():
    x = normal_stream(3, "noise", 0, 10_000)
    assert abs(x.mean()) < 0.05 and abs(x.std() - 1.0) < 0.04      # five standard deviations


def test_errors_depend_on_the_name_and_not_on_the_order_of_coordinates():
    noise = MeasurementNoise(5, ("hip", "knee"), np.array([[0.1, 0.0], [0.2, 0.3]]))
    turned = MeasurementNoise(5, ("knee", "hip"), np.array([[0.0, 0.1], [0.3, 0.2]]))
    errors = noise.block(NOISE_BLOCK)
    np.testing.assert_array_equal(errors[..., ::-1], turned.block(NOISE_BLOCK))
    assert errors.shape == (NOISE_BLOCK, 2, 2) and not errors[:, 0, 1].any()
    assert not np.array_equal(errors[:, 0, 0] / 0.1, errors[:, 1, 0] / 0.2)
    np.testing.assert_array_equal(errors[:, 1, 1], 0.3 * normal_stream(5, "measurement of v.knee", NOISE_BLOCK, 2 * NOISE_BLOCK))
