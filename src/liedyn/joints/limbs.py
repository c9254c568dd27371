"""A robot's limbs side by side: of one state, the chains that end its tree go through the kernels together, a lane each.

`limbs` (made by `model.limbs`) is one array: a header of integers, the trunk (all other bodies) and a chain as `joints.tree`
reads them, the constants of groups of up to eight chains, which differ by lane, and scratch. In a chain body 0 is none, body 1
the body of the trunk that the limb hangs on, and the limb's own bodies are 2 … n - 1; shorter limbs and empty lanes go on with
massless bodies whose joints have an armature of 1 and nothing that moves them.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.joints.tree import Tree, tree_of
from liedyn.lie.lanes import WIDTH, load, store
from liedyn.spans import span

HEADER = 16
HUNG_ON, FIRST = 1, 2       # bodies of a chain: the one of the trunk, and the limb's first


class Limbs(NamedTuple):
    trunk: Tree             # its coordinates are numbered as the robot's; slot[i] is i
    groups: int             # of up to eight limbs
    n: int                  # bodies of a chain
    nq: int                 # of the robot
    nv: int
    passive: bool           # whether springs, damping or friction act anywhere
    rubs: bool              # whether friction does
    chain: np.ndarray       # `index` of a chain
    used: np.ndarray        # (groups,) lanes that hold a limb
    on: np.ndarray          # (8 groups,) the body of the trunk: 0 is the ground
    adds: np.ndarray        # (8 groups,) whether a limb before it hangs on the same body
    of_q: np.ndarray        # (m,) which of q each coordinate of a limb is
    of_v: np.ndarray        # (m,) which of v
    cell: np.ndarray        # (m,) where it stands among the coordinates of all lanes
    constants: np.ndarray   # (rows, 8) of all groups
    scratch: np.ndarray     # zero where nothing is written: what drives the massless bodies


@primitive
def limbs_of(array):
    h = array.view(np.int64)
    groups, n, nq, nv, m, passive, rubs = h[0], h[1], h[2], h[3], h[4], h[5], h[6]
    trunk, figures, chain, lists, constants, scratch = h[8], h[9], h[10], h[11], h[12], h[13]
    on = lists + groups
    of = on + 2 * WIDTH * groups
    wide = array.reshape(array.size // WIDTH, WIDTH)
    return Limbs(tree_of(span(h, trunk, chain - trunk), span(array, figures, constants - figures)), groups, n, nq, nv,
                 passive != 0, rubs != 0, span(h, chain, lists - chain), span(h, lists, groups), span(h, on, WIDTH * groups),
                 span(h, on + WIDTH * groups, WIDTH * groups), span(h, of, m), span(h, of + m, m), span(h, of + 2 * m, m),
                 span(wide, constants // WIDTH, (scratch - constants) // WIDTH), span(array, scratch, array.size - scratch))


@primitive
def chains_of(limbs, g):
    """The chains of group g as one tree."""
    rows = limbs.constants.shape[0] // limbs.groups
    return tree_of(limbs.chain, span(limbs.constants, g * rows, rows))


@primitive
def in_lanes(memory):
    """What is left of the scratch, in Lanes: it ends on a border of cache lines, so that they begin on one."""
    rows = memory.size // WIDTH
    return (span(memory, memory.size - WIDTH * rows, WIDTH * rows).reshape(rows, WIDTH),)


@primitive
def rows_of(limbs):
    """How many Lanes the coordinates of all limbs are."""
    return limbs.groups * (limbs.n - FIRST)


@primitive
def group_of(limbs, g, x):
    """The part of group g in the coordinates x of all limbs, or in rows or series of them."""
    k = x.shape[0] // limbs.groups
    return (span(x, g * k, k),)


@primitive
def to_lanes(limbs, x, of, out):
    """What each limb needs of the robot's coordinates x."""
    y = out.reshape(out.size)
    for j in range(of.size):
        store(y, limbs.cell[j], load(x, of[j]))


@primitive
def from_lanes(limbs, x, out):
    y = x.reshape(x.size)
    for j in range(limbs.of_v.size):
        store(out, limbs.of_v[j], load(y, limbs.cell[j]))


@primitive
def series_to_lanes(limbs, K, x, out):
    """The same for series of K coefficients, and coefficient k of coordinate c at c K + k."""
    y = out.reshape(out.size)
    for j in range(limbs.of_v.size):
        row, lane = limbs.cell[j] // WIDTH, limbs.cell[j] % WIDTH
        for k in range(K):
            store(y, WIDTH * (row * K + k) + lane, load(x, limbs.of_v[j] * K + k))


@primitive
def rows_to_lanes(limbs, K, x, out):
    """The same for K rows of coordinates x, each group's rows together."""
    y, one = out.reshape(out.size), WIDTH * (limbs.n - FIRST)
    for j in range(limbs.of_v.size):
        cell = limbs.cell[j] + limbs.cell[j] // one * one * (K - 1)
        for k in range(K):
            store(y, cell + one * k, load(x, k * limbs.nv + limbs.of_v[j]))


@primitive
def rows_from_lanes(limbs, K, x, out):
    y, one = x.reshape(x.size), WIDTH * (limbs.n - FIRST)
    for j in range(limbs.of_v.size):
        cell = limbs.cell[j] + limbs.cell[j] // one * one * (K - 1)
        for k in range(K):
            store(out, k * limbs.nv + limbs.of_v[j], load(y, cell + one * k))


@primitive
def from_trunk(limbs, g, size, X, Y):
    """`size` numbers of each body that a limb of group g hangs on, from those of the trunk X to those of the chains Y."""
    y = Y.reshape(Y.size)
    for k in range(limbs.used[g]):
        i = limbs.on[WIDTH * g + k]
        for c in range(size):
            store(y, WIDTH * (size * HUNG_ON + c) + k, load(X, size * i + c))


@primitive
def add_to_trunk(limbs, g, size, X, Y):
    """What the limbs of group g hand to the trunk, `size` numbers each in the rows of X, to its bodies' in Y."""
    x = X.reshape(X.size)
    for k in range(limbs.used[g]):
        i = limbs.on[WIDTH * g + k]
        if limbs.adds[WIDTH * g + k]:
            for c in range(size):
                store(Y, size * i + c, load(Y, size * i + c) + load(x, WIDTH * c + k))
        else:
            for c in range(size):
                store(Y, size * i + c, load(x, WIDTH * c + k))
