"""Read-only views and equality of values with arrays."""
from dataclasses import dataclass, field

import numpy as np
import pytest

from liedyn.immutable import Immutable, read_only, same


@dataclass(frozen=True, eq=False)
class Motion(Immutable):
    """Arrays, a name, and a value that does not count."""

    q: np.ndarray
    name: str
    seconds: float = field(default=0.0, compare=False)


def test_objects_are_equal_if_their_fields_are():
    x = Motion(np.ones(2), "a")
    assert x == Motion(np.ones(2), "a", 5.0) and hash(x) == hash(Motion(np.ones(2), "a", 5.0))
    assert x not in (Motion(np.zeros(2), "a"), Motion(np.ones(2), "b"), (np.ones(2), "a")) and not x.q.flags.writeable


def test_views_are_read_only_and_share_memory():
    x, locked = np.zeros(3), read_only(np.ones(2))
    nested = read_only({"a": [x, 1], "b": (locked, "text")})
    assert not nested["a"][0].flags.writeable and np.shares_memory(nested["a"][0], x) and x.flags.writeable
    assert nested["b"][0] is locked
    with pytest.raises(ValueError, match="read-only"):
        nested["a"][0][0] = 1.0


def test_values_without_arrays_are_returned_unchanged():
    for value in ({"a": [1, (2, "b")]}, (1, 2), [read_only(np.zeros(1))], None):
        assert read_only(value) is value


@pytest.mark.parametrize("x, y, equal", [
    (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True), (np.array([1.0]), np.array([2.0]), False),
    (np.zeros(2), np.zeros((1, 2)), False), (np.zeros(1), 0.0, False), (np.nan, float("nan"), True),
    ({"a": np.ones(2)}, {"a": np.ones(2)}, True), ({"a": 1}, {"b": 1}, False), ([1, (2,)], [1, (2,)], True),
    ([1], (1,), False), ((1, 2), (1,), False), (1, 1.0, True), ("a", "b", False)])
def test_equality_compares_arrays_by_elements(x, y, equal):
    assert same(x, y) is equal and same(y, x) is equal
