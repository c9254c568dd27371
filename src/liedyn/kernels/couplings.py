"""Elimination of coupled coordinates: followers f move with independent coordinates d by q_f = sum r q_d + c.

With G = dq/dy for the independent coordinates y, the equations of the tree M a + b = tau become G^T M G a_y + G^T b = G^T tau
(K2 §3 with a constant null space). States stay in full coordinates: followers are computed from the independent coordinates;
forces of followers are added to those of the coordinates that move them, and are zero afterwards. N is G with zero columns for
followers: N v = v where v satisfies the couplings.

The couplings are at the end of a model's `index` and `constants` (`dynamics.constraints.couplings` writes them).
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import FOLLOWER_COUNT, TERM_COUNT, Tree, constants_sizes, index_sizes
from liedyn.kernels.batch_blocks import BAD_FOLLOWER_A, BAD_FOLLOWER_Q, BAD_FOLLOWER_V, BAD_TAU, OK, is_below
from liedyn.lie.simd import absolute, load, number_like, store
from liedyn.numba_tools.decorators import inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace

FOLLOWER_TOLERANCE = 1e-9          # difference of a given follower from its value, relative to the terms of that value


class Couplings(NamedTuple):
    """Followers, the terms of their values, and the pattern of the reduced mass matrix. Empty for other models."""

    follower: np.ndarray      # (nf,) index in v
    follower_q: np.ndarray    # (nf,) index in q
    prescribed: np.ndarray    # (nf,) whether the acceleration is given, too: then it is compared, and the force is zero
    first: np.ndarray         # (nf + 1,) first term of each follower, and the number of terms
    term: np.ndarray          # (terms,) independent coordinate, in v
    term_q: np.ndarray        # (terms,) the same in q
    above: np.ndarray         # (nv,) as in `Tree`, for the coordinates that G^T M G couples
    top: np.ndarray           # (nv,)
    last: np.ndarray          # (nv,)
    ratio: np.ndarray         # (terms,)
    offset: np.ndarray        # (nf,)
    rounding: np.ndarray      # (3 nf,) difference that is rounding at rest, of q, v and a


_NO_INDEX, _NO_NUMBERS = np.zeros(0, dtype=np.int64), np.zeros(0)
NO_COUPLINGS = Couplings(*(_NO_INDEX,) * 9, *(_NO_NUMBERS,) * 3)


@jitable
def coupling_index_sizes(index):
    """Return the sizes of the arrays of `Couplings` in `index`."""
    nv, nf, terms = index[2], index[FOLLOWER_COUNT], index[TERM_COUNT]
    present = 1 if nf else 0
    return nf, nf, nf, (nf + 1) * present, terms, terms, nv * present, nv * present, nv * present


@inline_kernel
def coupling_views(index, constants):
    """Return the `Couplings` whose arrays are views into index and constants."""
    nf, terms = index[FOLLOWER_COUNT], index[TERM_COUNT]
    integers = split_workspace(index, index_sizes(index))[-1]
    after_tree = split_workspace(constants, constants_sizes(index))[-1]
    return Couplings(*(split_workspace(integers, coupling_index_sizes(index))[:-1]
                       + split_workspace(after_tree, (terms, nf, 3 * nf))[:-1]))


@inline_kernel
def with_pattern(tree, couplings):
    """Return the tree with the paths of the reduced mass matrix."""
    return Tree(tree.parent, tree.kind, tree.iq, tree.iv, tree.flags, tree.slot, tree.link_body, couplings.above, couplings.top,
                couplings.last, tree.element, tree.dV0, tree.S, tree.T0, tree.I, tree.J, tree.link_pose, tree.armature,
                tree.damping, tree.friction, tree.stiffness, tree.rest, tree.friction_speed, tree.floor, tree.element_pose,
                tree.element_values)


@inline_kernel
def square(x):
    """Return the square of a number."""
    return x * x


@inline_kernel
def follower_value(couplings, f, x, places, level):
    """Return the value of follower f, at level 0 its position."""
    value = number_like(x, 0.0)
    if level == 0:
        value = value + load(couplings.offset, f)
    for t in range(couplings.first[f], couplings.first[f + 1]):
        value = value + load(couplings.ratio, t) * load(x, places[t])
    return value


@inline_kernel
def is_follower_value(couplings, f, x, value, places, level):
    """Return whether x contains the value of follower f, but for rounding: relative to its terms, as squares."""
    difference = load(x, (couplings.follower_q if level == 0 else couplings.follower)[f]) - value
    allowed = number_like(x, 0.0) + square(load(couplings.rounding, level * couplings.follower.size + f))
    if level == 0:
        allowed = allowed + square(FOLLOWER_TOLERANCE * load(couplings.offset, f))
    for t in range(couplings.first[f], couplings.first[f + 1]):
        allowed = allowed + square(FOLLOWER_TOLERANCE * load(couplings.ratio, t)) * square(load(x, places[t]))
    return is_below(square(difference) - allowed, 0.0)


@inline_kernel
def close_positions(couplings, q):
    """Replace the positions of followers by their values. Return BAD_FOLLOWER_Q if one has another value, or OK."""
    code = OK
    for f in range(couplings.follower.size):
        value = follower_value(couplings, f, q, couplings.term_q, 0)
        if not is_follower_value(couplings, f, q, value, couplings.term_q, 0):
            code = BAD_FOLLOWER_Q
        store(q, couplings.follower_q[f], value)
    return code


@inline_kernel
def close_rates(couplings, x, level):
    """Replace the velocities (level 1) or accelerations (level 2) of followers by their values. Return a code."""
    code = OK
    for f in range(couplings.follower.size):
        value = follower_value(couplings, f, x, couplings.term, level)
        if not is_follower_value(couplings, f, x, value, couplings.term, level):
            code = BAD_FOLLOWER_V if level == 1 else BAD_FOLLOWER_A
        store(x, couplings.follower[f], value)
    return code


@inline_kernel
def close_state(couplings, q, v):
    """Replace positions and velocities of followers by their values. Return a code."""
    return close_positions(couplings, q) or close_rates(couplings, v, 1)


@inline_kernel
def close_motion(couplings, q, v, a):
    """Replace positions, velocities and accelerations of followers by their values. Return a code."""
    return close_state(couplings, q, v) or close_rates(couplings, a, 2)


@inline_kernel
def expand_rates(couplings, x):
    """Write the values of followers to velocities or accelerations x (nv,)."""
    for f in range(couplings.follower.size):
        value = follower_value(couplings, f, x, couplings.term, 1)
        store(x, couplings.follower[f], value)


@inline_kernel
def follow(couplings, q, v):
    """Write the values of followers to q and v. couplings: None for other robots."""
    if couplings is not None:
        for f in range(couplings.follower.size):
            value = follower_value(couplings, f, q, couplings.term_q, 0)
            store(q, couplings.follower_q[f], value)
        expand_rates(couplings, v)


@inline_kernel
def load_followers(couplings, a, tau):
    """Check prescribed accelerations of followers, and forces of the others. Return a code."""
    code = OK
    for f in range(couplings.follower.size):
        k = couplings.follower[f]
        if couplings.prescribed[f]:
            value = follower_value(couplings, f, a, couplings.term, 2)
            if not is_follower_value(couplings, f, a, value, couplings.term, 2):
                code = BAD_FOLLOWER_A
        else:
            store(a, k, number_like(a, 0.0))
            if not is_below(absolute(load(tau, k) * 0.0), 1.0):
                code = BAD_TAU
    return code


@inline_kernel
def follower_force(couplings, f, tau):
    """Return the given force of a follower: zero where its acceleration is prescribed."""
    return number_like(tau, 0.0) if couplings.prescribed[f] else load(tau, couplings.follower[f])


@inline_kernel
def subtract_follower_forces(couplings, tau, x):
    """Subtract the given forces of followers from x (nv,)."""
    for f in range(couplings.follower.size):
        k = couplings.follower[f]
        store(x, k, load(x, k) - follower_force(couplings, f, tau))


@inline_kernel
def store_follower_forces(couplings, tau, x):
    """Write the given forces of followers to x (nv,)."""
    for f in range(couplings.follower.size):
        store(x, couplings.follower[f], follower_force(couplings, f, tau))


@inline_kernel
def fold_forces(couplings, x):
    """Replace forces x (nv,) by N^T x, which are zero at followers."""
    fold_rows(couplings, x, 1)


@inline_kernel
def fold_rows(couplings, X, columns):
    """Replace X (nv columns, by rows) by N^T X: rows of followers are added to those of the coordinates that move them."""
    zero = number_like(X, 0.0)
    for f in range(couplings.follower.size):
        row = couplings.follower[f] * columns
        for t in range(couplings.first[f], couplings.first[f + 1]):
            to = couplings.term[t] * columns
            for c in range(columns):
                store(X, to + c, load(X, to + c) + load(couplings.ratio, t) * load(X, row + c))
        for c in range(columns):
            store(X, row + c, zero)


@inline_kernel
def fold_columns(couplings, X, rows, columns):
    """Replace X (rows columns, by rows) by X N: columns of followers are added to those of the coordinates that move them."""
    zero = number_like(X, 0.0)
    for f in range(couplings.follower.size):
        for r in range(rows):
            x = load(X, r * columns + couplings.follower[f])
            for t in range(couplings.first[f], couplings.first[f + 1]):
                to = r * columns + couplings.term[t]
                store(X, to, load(X, to) + load(couplings.ratio, t) * x)
            store(X, r * columns + couplings.follower[f], zero)


@inline_kernel
def fold_matrix(couplings, X, nv):
    """Replace X (nv nv, by rows) by N^T X N."""
    fold_columns(couplings, X, nv, nv)
    fold_rows(couplings, X, nv)


@inline_kernel
def expand_solution_derivatives(couplings, prescribed, Dq, Dv, Du):
    """Complete derivatives (nv nv each, by rows) of hybrid dynamics with respect to q, v and the inputs.

    Before, rows and columns of followers are zero. Rows become those of accelerations, zero where these are prescribed; columns
    of Du those of forces of followers, which act on the coordinates that move them.
    """
    nv = prescribed.size
    for f in range(couplings.follower.size):
        k = couplings.follower[f]
        for t in range(couplings.first[f], couplings.first[f + 1] if not couplings.prescribed[f] else couplings.first[f]):
            d, r = couplings.term[t], load(couplings.ratio, t)
            if prescribed[d]:
                store(Du, d * nv + k, load(Du, d * nv + k) - r)
            else:
                for i in range(nv):
                    store(Du, i * nv + k, load(Du, i * nv + k) + r * load(Du, i * nv + d))
    for f in range(couplings.follower.size):
        k = couplings.follower[f]
        for t in range(couplings.first[f], couplings.first[f + 1] if not couplings.prescribed[f] else couplings.first[f]):
            d, r = couplings.term[t], load(couplings.ratio, t)
            if prescribed[d]:
                store(Du, k * nv + d, load(Du, k * nv + d) + r)
            else:
                for c in range(nv):
                    store(Dq, k * nv + c, load(Dq, k * nv + c) + r * load(Dq, d * nv + c))
                    store(Dv, k * nv + c, load(Dv, k * nv + c) + r * load(Dv, d * nv + c))
                    store(Du, k * nv + c, load(Du, k * nv + c) + r * load(Du, d * nv + c))
