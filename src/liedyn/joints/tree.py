"""A model as kernels see it: the views into its two flat arrays (AGF (27), Figure 1: parents and children).

`index` (int64) holds    [n, nq, nv, n_links, passive forces?, friction?, 0, 0] then parent, kind, iq, iv, marks, slot (n each),
                         link_body (n_links), above, top, last (nv each).
`constants` (numbers)    dV0 (6), S (2n), T0 (12n), I (10n), J (10n), link_pose (12 n_links),
                         armature, damping, friction, stiffness, rest, floor (nv each).

Body 0 is the ground; bodies stand parents first. `constants` may be (m, 8): then each lane has a model of its own, of the same
marks.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import everywhere, primitive
from liedyn.seam.views import carve

HEADER = 8


class Tree(NamedTuple):
    parent: np.ndarray      # (n,) body indices
    kind: np.ndarray        # (n,) joint of body i to its parent: SCREW, BALL, FREE
    iq: np.ndarray          # (n,) first coordinate in q
    iv: np.ndarray          # (n,) first coordinate in v
    marks: np.ndarray       # (n,) HAS_CHILDREN | LAST_CHILD | TURNS | SLIDES | BARE, see `joints.kinds`
    slot: np.ndarray        # (n,) where a backward pass gathers what the children of body i hand to it: reused when free
    link_body: np.ndarray   # (n_links,) body that carries the link
    above: np.ndarray       # (nv,) the coordinate before this one on the way from the ground, or -1
    top: np.ndarray         # (nv,) the first coordinate on that way
    last: np.ndarray        # (nv,) the last coordinate that this one moves: it moves all from its own to that one
    dV0: np.ndarray         # (6,) acceleration of the ground: [0; -g]
    S: np.ndarray           # (2n,) screws
    T0: np.ndarray          # (12n,) pose in the parent at q = 0
    I: np.ndarray           # (10n,) mass, first moment, second moment
    J: np.ndarray           # (10n,) minimal inertias, for what is asked of coordinates alone: see `model.minimal_inertias`
    link_pose: np.ndarray   # (12 n_links,) pose of the link in its body
    armature: np.ndarray    # (nv,)
    damping: np.ndarray     # (nv,)
    friction: np.ndarray    # (nv,)
    stiffness: np.ndarray   # (nv,)
    rest: np.ndarray        # (nv,)
    floor: np.ndarray       # (nv,) a pivot below it is rounding


@everywhere
def index_sizes(n, nv, nl): return HEADER, n, n, n, n, n, n, nl, nv, nv, nv


@everywhere
def constants_sizes(n, nv, nl): return 6, 2 * n, 12 * n, 10 * n, 10 * n, 12 * nl, nv, nv, nv, nv, nv, nv


@primitive
def tree_of(index, constants):
    n, nv, nl = index[0], index[2], index[3]
    return Tree(*(carve(index, index_sizes(n, nv, nl))[1:-1] + carve(constants, constants_sizes(n, nv, nl))[:-1]))


@primitive
def parts(machine):
    """index, constants and scratch, which cross from Python as one array: each array costs 0.1 us."""
    index = machine.view(np.int64)
    n, nv, nl = index[0], index[2], index[3]
    i = sum(index_sizes(n, nv, nl))
    _, constants, scratch = carve(machine, (i, sum(constants_sizes(n, nv, nl))))
    return index[:i], constants, scratch
