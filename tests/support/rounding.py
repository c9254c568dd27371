"""Arrays that two ways of computing give: equal except for rounding, which compilers and processors may do in another order."""
import numpy as np

# Of the largest number of the array: a thousand roundings, or one that cond(M) of the test robots, up to 1e4, magnifies.
ROUNDING = 1e-12


def alike(x, y) -> bool:
    """Return whether x and y have the same shape, are finite and differ by rounding only."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    return x.shape == y.shape and bool(np.all(np.abs(x - y) <= ROUNDING * np.abs(y).max(initial=0.0)))


def assert_same(x, y) -> None:
    """Assert that x and y differ by rounding only (see `alike`)."""
    if not alike(x, y):
        np.testing.assert_array_equal(x, y)                      # shows where
        raise AssertionError
