"""The SIMD number: each operation gives in each lane what float64 gives, NaN included."""
import numpy as np
import pytest
from mpmath import mp
from numba import njit
from numba.core.errors import TypingError

from compiled import KINDS, evaluate, probe
from exact import error, exact
from liedyn.kernels.batch_blocks import load_block, states_per_block, unpack_block
from liedyn.lie.simd import (
    SIMD_WIDTH,
    SINCOS_RANGE,
    absolute,
    all_less,
    atan2,
    lane,
    load,
    maximum,
    nearest,
    number_like,
    simd_width,
    sincos,
    sqrt,
    store,
    where_less,
    with_lane,
)

EPS = np.finfo(float).eps
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-310, 1e300, -1e300, np.inf, -np.inf, np.nan, 3.0, np.pi]
PAIRS = np.array([(x, y) for x in SPECIAL for y in SPECIAL])


@probe
def arithmetic(x, y):
    a, b = load(x, 0), load(x, 1)
    store(y, 0, a + b)
    store(y, 1, a - b)
    store(y, 2, a * b)
    store(y, 3, a / b)
    store(y, 4, -a)
    store(y, 5, 2.0 + a)
    store(y, 6, a - 2.0)
    store(y, 7, 3.0 * a)
    store(y, 8, 1.0 / b)
    store(y, 9, number_like(x, 7.0))
    store(y, 10, 8.0)                       # a float64 is spread over the lanes


@probe
def selection(x, y):
    a, b = load(x, 0), load(x, 1)
    store(y, 0, where_less(a, b, a, b))
    store(y, 1, where_less(a, 1.0, 10.0, 20.0))
    store(y, 2, maximum(a, b))
    store(y, 3, absolute(a))
    store(y, 4, sqrt(absolute(a)))
    store(y, 5, nearest(a))
    store(y, 6, atan2(a, b))


@pytest.mark.parametrize("kind", KINDS)
def test_arithmetic_is_ieee_in_each_lane(kind):
    """Exact except for division, which may multiply by the reciprocal (1 ulp; not for divisors whose reciprocal overflows),
    and for the sign of zero."""
    rows = np.vstack([PAIRS, np.random.default_rng(0).standard_normal((100, 2))])
    out = evaluate(arithmetic, rows, 11, kind)
    a, b = rows.T
    with np.errstate(all="ignore"):
        expected = np.column_stack([a + b, a - b, a * b, a / b, -a, 2 + a, a - 2, 3 * a, 1 / b, 7 + 0 * a, 8 + 0 * a])
    expected[:, 9:] = 7, 8
    keep = ~(abs(b) < 1e-300)
    np.testing.assert_allclose(out[keep], expected[keep], rtol=2 * EPS)
    np.testing.assert_array_equal(np.abs(out[:, [0, 1, 2, 4, 5, 6, 7, 9, 10]]), np.abs(expected[:, [0, 1, 2, 4, 5, 6, 7, 9, 10]]))


@pytest.mark.parametrize("kind", KINDS)
def test_selection(kind):
    out = evaluate(selection, PAIRS, 7, kind)
    a, b = PAIRS.T
    with np.errstate(all="ignore"):
        less, below = a < b, a < 1               # False with NaN, so the second choice
        np.testing.assert_array_equal(out[:, 0], np.where(less, a, b))
        np.testing.assert_array_equal(out[:, 1], np.where(below, 10, 20))
        np.testing.assert_array_equal(out[:, 2], np.where(less, b, a))
        np.testing.assert_array_equal(out[:, 3], abs(a))
        np.testing.assert_allclose(out[:, 4], np.sqrt(abs(a)), rtol=EPS)
        np.testing.assert_array_equal(out[:, 5], np.rint(a))
        np.testing.assert_allclose(out[:, 6], np.arctan2(a, b), rtol=2 * EPS)


@probe
def reduction(x, y):
    a = load(x, 0)
    y[0] = 1.0 if all_less(a, 1.0) else 0.0
    y[1] = simd_width(a)
    y[2] = lane(a, simd_width(a) - 1)
    y[3] = lane(with_lane(a, 0, -9.0), 0)


def reduced(values):
    """Of one float64 or of eight lanes."""
    out = np.empty(4)
    reduction(np.array(values, dtype=float) if len(values) == 1 else np.array([values], dtype=float), out)
    return out


def test_all_less_of_a_single_number():
    assert reduced([0.5]).tolist() == [1, 1, 0.5, -9]
    assert reduced([2.0]).tolist() == [0, 1, 2, -9]
    assert reduced([np.nan])[0] == 0


@pytest.mark.parametrize("k", range(SIMD_WIDTH))
def test_nan_in_any_lane_is_seen(k):
    """A NaN anywhere but in the last lane used to get lost: a batch with NaN gave NaN instead of an error."""
    values = [-3.0, 0.1, 0.2, -5.0, 0.3, 0.0, -1.0, 0.5]
    assert reduced(values)[:3].tolist() == [1, 8, 0.5]
    for large in (np.nan, np.inf, 1.0):
        assert reduced([*values[:k], large, *values[k + 1:]])[0] == 0


@probe
def sines(x, y):
    s, c = sincos(load(x, 0))
    store(y, 0, s)
    store(y, 1, c)


def sines_of(x, kind):
    return evaluate(sines, np.reshape(x, (-1, 1)), 2, kind)


def error_of_sines(x, kind):
    """Largest error against forty digits."""
    a = exact(x)
    return error(sines_of(x, kind), np.column_stack([np.vectorize(f, otypes=[object])(a) for f in (mp.sin, mp.cos)]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1.0, 100.0, 0.999 * SINCOS_RANGE, 1e6, 1e15])
def test_sincos_against_forty_digits(kind, size, worst):
    """Measured 1.6e-16 below 1e5; 1.1e-16 of the C library beyond."""
    x = np.random.default_rng(1).uniform(-size, size, 4000)
    assert worst(f"sincos, |x| < {size:.0e}", error_of_sines(x, kind)) < 2.3e-16


@pytest.mark.parametrize("kind", KINDS)
def test_sincos_at_multiples_of_a_quarter_turn(kind, worst):
    """Where the reduction cancels most: the double nearest k pi/4, and its neighbours. Measured 1.7e-16."""
    k = np.concatenate([np.arange(-50, 51), np.random.default_rng(2).integers(-120000, 120001, 500)])
    x = k * (np.pi / 4)
    x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])
    assert worst("sincos near k pi/4", error_of_sines(x, kind)) < 2.3e-16
    assert (sines_of([0.0, -0.0], kind) == [[0, 1], [0, 1]]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_small_sines_keep_their_relative_accuracy(kind):
    x = 10.0**np.random.default_rng(3).uniform(-300, -1, 500)
    np.testing.assert_allclose(sines_of(x, kind)[:, 0], np.sin(x), rtol=2 * EPS)


@pytest.mark.parametrize("kind", KINDS)
def test_sincos_of_nan_and_infinity_is_nan(kind):
    assert np.isnan(sines_of([np.nan, np.inf, -np.inf], kind)).all()


def test_one_large_angle_among_eight_spoils_no_other():
    x = np.array([0.3, 1.0, 1e9, -2.0, 1e5, 0.0, 3e7, 1.5])
    np.testing.assert_allclose(sines_of(x, "Lanes"), np.column_stack([np.sin(x), np.cos(x)]), atol=2e-16, rtol=0)


@probe
def to_block(batch, first, block):
    load_block(batch, first, block)
    return states_per_block(block)


@probe
def from_block(block, batch, first):
    unpack_block(block, batch, first)


@pytest.mark.parametrize("n", [*range(1, 18), 24, 31])
def test_pack_and_unpack_keep_within_their_rows(n):
    """Eight rows to lanes and back, for any number of columns and of rows left over; nothing else is touched."""
    for count in (1, 2, 7, 8, 9, 15, 16, 17):
        batch = np.random.default_rng(n).standard_normal((count, n))
        memory = np.full(count * n + 32, 777.0)               # what lies before and after must stay
        out = memory[16:16 + count * n].reshape(count, n)
        for first in range(0, count, 8):
            block = np.full((n + 2, 8), 555.0)
            assert to_block(batch, first, block[1:n + 1]) == 8
            rows = [min(first + k, count - 1) for k in range(8)]      # beyond the end: the last row again
            np.testing.assert_array_equal(block[1:n + 1].T, batch[rows])
            assert (block[[0, -1]] == 555).all()
            from_block(block[1:n + 1], out, first)
        np.testing.assert_array_equal(out, batch)
        assert (memory[:16] == 777).all() and (memory[16 + count * n:] == 777).all()


def test_pack_and_unpack_of_a_single_row():
    batch, block, out = np.arange(12.0).reshape(3, 4), np.empty(4), np.zeros((3, 4))
    assert to_block(batch, 1, block) == 1
    from_block(block, out, 2)
    assert out.tolist() == [[0] * 4, [0] * 4, [4, 5, 6, 7]]


def test_strided_arrays_are_refused():
    """A load knows no strides: it would read other numbers."""
    @njit
    def third(x):
        return load(x, 2)

    x = np.arange(10.0)
    assert third(x) == 2.0
    with pytest.raises(TypingError):
        third(x[::2])
