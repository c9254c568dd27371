"""Batches of states in blocks: number k of all states of a block is in one SIMD register of generated code."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, final

import numpy as np

from liedyn.arrays import Array, ArrayLike, Precision, cache_aligned
from liedyn.codegen.specialize import simd_width
from liedyn.errors import ArgumentError, ShapeError
from liedyn.immutable import Immutable

_CACHE_LINE = 64       # bytes


@final                 # functions compare the type: `isinstance` takes 4 % of a call for one state
@dataclass(frozen=True, eq=False, repr=False)
class StateBlocks(Immutable):
    """A batch of states in blocks, which generated code reads and writes without transposing rows.

    Dynamics and their first derivatives take blocks in place of rows (N, n), for all arrays of states, and return blocks.

    Attributes
    ----------
    array : (blocks, ..., width) array of float64 or float32, read-only
        ``array[b, ..., i]`` belongs to state ``width b + i``. width is `StateBlocks.width`: the states that a SIMD register of
        this processor holds. An array that is not C-contiguous and aligned to 64 bytes is copied.
    count : int, optional
        Number of states, at most width - 1 fewer than there are places. The others must be valid states, too. Default: all.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> model, rng = ld.load("robots/double_pendulum.yaml"), np.random.default_rng(0)
    >>> q, v, a = (ld.StateBlocks.of(x) for x in rng.standard_normal((3, 100, 2)))
    >>> ld.inverse_dynamics(model, q, v, a).rows().shape
    (100, 2)
    """

    array: Array
    count: int = -1

    def __post_init__(self) -> None:
        array: Any = self.array
        check_not_masked(array, "array")
        if not isinstance(array, np.ndarray) or array.dtype not in (np.float64, np.float32):
            of = f" of {array.dtype}" if isinstance(array, np.ndarray) else ""
            raise ShapeError(f"StateBlocks: expected an array of float64 or float32, got {type(array).__name__}{of} "
                             "(ld.StateBlocks.of(rows) makes blocks of rows)")
        width = self.width(array.dtype)
        if array.ndim < 3 or array.shape[-1] != width:
            raise ShapeError(f"StateBlocks: expected the shape (blocks, …, {width}) for {array.dtype} on this processor, got "
                             f"{array.shape} (ld.StateBlocks.of(rows) makes blocks of rows)")
        places = len(array) * width
        if self.count == -1:
            object.__setattr__(self, "count", places)
        if type(self.count) is bool or not isinstance(self.count, int | np.integer) or not places - width < self.count <= places:
            raise ShapeError(f"StateBlocks: expected a count from {max(0, places - width + 1)} to {places} for {len(array)} "
                             f"blocks of {width} states, got {self.count!r}")
        if not array.flags.c_contiguous or array.ctypes.data % _CACHE_LINE:
            object.__setattr__(self, "array", aligned_array(array.shape, array.dtype))
            self.array[...] = array
        super().__post_init__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()                             # arrays of pickle and copy have another alignment

    @classmethod
    def of(cls, rows: ArrayLike, dtype: Precision = "float64") -> StateBlocks:
        """Return rows (N, ...) as blocks. Copies of the last state fill the last block.

        dtype: "float64" or "float32", as in the calls.
        """
        kind = np.float32 if is_single(dtype, "StateBlocks.of") else np.float64
        check_not_masked(rows, "rows")
        array = np.asarray(rows)
        if array.ndim < 2 or array.dtype.kind not in "fiub":
            raise ShapeError(f"StateBlocks.of: expected rows (N, …) of numbers, got an array of {array.dtype} of shape "
                             f"{array.shape}")
        return cls(state_blocks(array.astype(kind, copy=False), cls.width(kind)), len(array))

    @staticmethod
    def width(dtype: Precision = "float64") -> int:
        """Number of states of a block on this processor: 8 of float64 with AVX-512, 4 with AVX2; twice as many of float32."""
        return simd_width(is_single(dtype, "StateBlocks.width"))

    def rows(self) -> Array:
        """The states as a new array (N, ...)."""
        rows = np.moveaxis(self.array, -1, 1).reshape(-1, *self.shape)
        return rows[:self.count]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one state."""
        return self.array.shape[1:-1]

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<StateBlocks: {self.count} states of shape {self.shape}, {self.array.dtype} in blocks of {self.array.shape[-1]}>"


States: TypeAlias = ArrayLike | StateBlocks                              # rows, or blocks
BlockMatrices: TypeAlias = tuple[StateBlocks, StateBlocks, StateBlocks]  # first derivatives


def check_not_masked(x: ArrayLike, name: str) -> None:
    """Raise an error for a masked array: its masked values would be used as if they were valid."""
    if any(np.ma.is_masked(part) for part in (x if isinstance(x, (list, tuple)) else (x,))):
        raise ShapeError(f"{name} has masked values (remove these states, or fill the array: "
                         f"{name}.filled(value))")


def is_single(dtype: Precision, name: str) -> bool:
    """Return whether the argument `dtype` of a function is float32. Raises ArgumentError if it is not float64 either."""
    if dtype == "float32":                                      # 1 us less than below
        return True
    try:
        number_type = np.dtype(dtype)
    except TypeError:
        number_type = np.dtype(object)
    if number_type not in (np.float64, np.float32):
        raise ArgumentError(f"{name}: dtype must be float64 or float32, got {dtype!r}")
    return number_type == np.float32


def state_blocks(rows: Array, width: int) -> Array:
    """Return rows (N, ...) as blocks (N / width, ..., width), aligned to cache lines. The last row fills the last block."""
    count, whole = len(rows), len(rows) // width
    blocks = aligned_array((-(-count // width), *rows.shape[1:], width), rows.dtype)
    blocks[:whole] = np.moveaxis(rows[:whole * width].reshape(whole, width, *rows.shape[1:]), 1, -1)
    if whole < len(blocks):
        blocks[whole] = rows[-1][..., None]
        blocks[whole, ..., :count % width] = np.moveaxis(rows[whole * width:], 0, -1)
    return blocks


def aligned_array(shape: tuple[int, ...], dtype: np.dtype[Any], make: Callable[[int], Array] = np.empty) -> Array:
    """Return an uninitialized array that is aligned to cache lines. make: returns an array of so many float64."""
    size = prod(shape)
    memory: Array = cache_aligned(-(-size * dtype.itemsize // 8), make=make).view(dtype)
    return memory[:size].reshape(shape)
