"""Where an entry's results stand while it works, and how they leave it.

Of one state they are made in their row of the batch, of eight in a block (n, 8) that is zero for all states but in those groups
of eight rows that are `filled`: most of a tensor belongs to joints of different branches. Handing out 1024 states of a humanoid
so takes 16 us a state for 45 (Christoffel symbols) and 10 for 24 (regressor)."""
from numba.extending import overload

from liedyn.jit import primitive
from liedyn.kernels.checks import finite
from liedyn.lie.blocks import states_in, unpack_filled
from liedyn.lie.lanes import number_like, store


@primitive
def clear(X):
    zero = number_like(X, 0.0)
    for k in range(X.shape[0]):
        store(X, k, zero)


@primitive
def block_size(memory, size):
    """How many numbers of memory a block of `size` takes."""
    return size if states_in(memory) > 1 else 0


def place(block, batch, k): ...
def hand_out(result, batch, k, filled, past): ...


@overload(place, inline="always")
def _place(block, batch, k):
    """For the results of state k, or of k … k + 7: zeros, or what the last states left in a block that was cleared at first.

    In a tuple, since compiled functions return no view alone."""
    if block.ndim == 2:
        return lambda block, batch, k: (block,)

    def row(block, batch, k):
        x = batch[k]
        clear(x)
        return (x,)
    return row


@overload(hand_out, inline="always")
def _hand_out(result, batch, k, filled, past):
    """The results into rows k … of the batch, past the caches or through them. Returns whether all are finite."""
    if result.ndim == 2:
        return lambda result, batch, k, filled, past: unpack_filled(result, batch, k, filled, past)
    return lambda result, batch, k, filled, past: finite(result, result.shape[0])
