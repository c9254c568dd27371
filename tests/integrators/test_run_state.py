"""Arrays of the state of a run by name, and memory of rows that is released."""
from typing import NamedTuple

import numpy as np
import pytest

from liedyn.integrators import run_state
from liedyn.integrators.run_state import arrays_of, load_arrays, mapped_zeros, release_memory


class Inner(NamedTuple):
    x: np.ndarray
    size: int


class Outer(NamedTuple):
    inner: Inner
    pair: tuple
    y: np.ndarray


def outer(value):
    return Outer(Inner(np.full(2, value), 7), (np.full(3, value), "text"), np.full((1, 2), value))


def test_arrays_are_named_by_fields_and_indices_and_shared():
    x = outer(1.0)
    arrays = arrays_of(x)
    assert set(arrays) == {"inner", "pair", "y"} and set(arrays["inner"]) == {"x"} and set(arrays["pair"]) == {"0"}
    assert arrays["inner"]["x"] is x.inner.x and arrays["pair"]["0"] is x.pair[0]


def test_loaded_arrays_are_written_in_place():
    x, y = outer(0.0), outer(2.0)
    memory = x.inner.x
    load_arrays(x, arrays_of(y))
    assert x.inner.x is memory and all(np.all(a == 2.0) for a in (x.inner.x, x.pair[0], x.y))
    with pytest.raises(KeyError, match="y"):
        load_arrays(x, {"inner": {"x": memory}, "pair": {"0": x.pair[0]}})


@pytest.mark.parametrize("limit", [0, 1 << 40])
def test_rows_that_are_released_are_zero_or_unchanged(limit, monkeypatch):
    monkeypatch.setattr(run_state, "_MIN_MAPPED_SIZE", limit)
    x = mapped_zeros((3000, 4))
    assert x.shape == (3000, 4) and not x.any()
    x[...] = 5.0
    release_memory(x, 2000)
    assert np.all(x[2000:] == 5.0) and np.isin(x[:2000], [0.0, 5.0]).all()
    assert np.all(x == 5.0) == (limit > 0 or not hasattr(run_state.mmap, "MADV_DONTNEED"))
