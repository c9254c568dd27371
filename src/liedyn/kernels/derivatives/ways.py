"""Ways from coordinates to the ground, where some are prescribed and take no part: orders of sums over the tree."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.joints.kinds import FREE, NV
from liedyn.lie.lanes import absolute, all_less, load


class Ways(NamedTuple):
    """Which coordinates are not prescribed, and how they stand on the tree."""

    up: np.ndarray       # (nv,) the nearest coordinate above that is not prescribed, or -1
    start: np.ndarray    # (nv,) first coordinate of the limb
    loose: np.ndarray    # (nv,) the body if it floats (see `floating`), else 0
    free: np.ndarray     # those not prescribed, in order
    given: np.ndarray    # the prescribed ones, in order
    count: np.ndarray    # (nv + 1,) how many before this coordinate are not prescribed
    before: np.ndarray   # (nv + 1,) the last one before this coordinate that is not prescribed, or -1


@primitive
def ways_of(tree, prescribed, passive, room, eight):
    """room: `ways_memory` integers. eight: whether for eight states, of which each column goes for itself; eight columns of one
    state seldom belong to one limb, and take all that hangs on one top for one."""
    nv, last = prescribed.size, -1
    free_paths(tree, prescribed, room[:nv])
    limbs(tree, room[nv:2 * nv], eight)
    floating(tree, passive, room[2 * nv:3 * nv])
    both_kinds(prescribed, room[3 * nv:4 * nv], room[4 * nv:5 * nv + 1])
    for k in range(nv):
        room[5 * nv + 1 + k] = last
        last = last if prescribed[k] else k
    room[6 * nv + 1] = last
    return ways_in(room, prescribed)


def ways_memory(nv): return 6 * nv + 2


@primitive
def ways_in(room, prescribed):
    """What `ways_of` left there."""
    nv = prescribed.size
    free = room[5 * nv]
    return Ways(room[:nv], room[nv:2 * nv], room[2 * nv:3 * nv], room[3 * nv:3 * nv + free], room[3 * nv + free:4 * nv],
                room[4 * nv:5 * nv + 1], room[5 * nv + 1:6 * nv + 2])


@primitive
def free_paths(tree, prescribed, up):
    for k in range(up.size):
        j = tree.above[k]
        up[k] = up[j] if j >= 0 and prescribed[j] else j


@primitive
def both_kinds(prescribed, order, count):
    """The coordinates that are not prescribed, then those that are; and how many of the first stand before each."""
    nv, n = prescribed.size, 0
    for k in range(nv):
        count[k] = n
        n += 0 if prescribed[k] else 1
    count[nv] = n
    for k in range(nv):
        order[n + k - count[k] if prescribed[k] else count[k]] = k


@primitive
def limbs(tree, start, branches):
    """The tree branches only between limbs, fingers (three coordinates at most) apart; or, if not `branches`, each limb is all
    that hangs on one top."""
    for k in range(start.size):
        start[k] = tree.top[k]
    for k in range(1, start.size if branches else 0):
        j = tree.above[k]
        if j != k - 1 and (j < 0 or tree.last[j] > j + 3):     # here, and at what came first of the same parent
            start[k], start[j + 1] = k, j + 1
    for k in range(1, start.size):
        start[k] = max(start[k], start[k - 1])


@primitive
def floating(tree, passive, loose):
    """Free joints on the ground that resist no motion: their columns of derivatives are known (see `floating_columns`)."""
    for i in range(1, tree.parent.size):
        k, end = tree.iv[i], tree.iv[i] + NV[tree.kind[i]]
        floats = tree.parent[i] == 0 and tree.kind[i] == FREE
        for j in range(k, end if floats else k):
            x = absolute(load(tree.armature, j))
            if passive:
                x = x + absolute(load(tree.damping, j)) + absolute(load(tree.friction, j))
            floats = floats and all_less(x, 5e-324)
        for j in range(k, end):
            loose[j] = i if floats else 0


@primitive
def on_one_way(tree, j, k):
    """Whether one of the two hangs on the other, or is it."""
    return j <= k <= tree.last[j] or k <= j <= tree.last[k]


# coordinates that follow each other ---------------------------------------------------------------------------------
@primitive
def end_of_rows(ways, r, most):
    """Where the rows r, r + 1, … of one limb end, after `most` of them."""
    e = r + 1
    while e < min(ways.start.size, r + most) and ways.start[e] == ways.start[r]:
        e += 1
    return e


# walks: from the last of some coordinates to the first, then to the ground, by what is not prescribed ---------------------
@primitive
def first_of_walk(ways, last, first):
    """Of the walk down from `last` to `first` and on to the ground; or -1."""
    k = ways.before[last + 1]
    return k if k >= first else ways.up[first]


@primitive
def next_on_walk(ways, k, first):
    """What follows k; first: as many as there are coordinates, if the walk goes straight to the ground. Or -1."""
    j = ways.before[k]
    return j if j >= first else ways.up[min(k, first)]
