"""Forward and hybrid dynamics differentiated by q, v and the inputs, from inverse dynamics ID at the solution:

    da_v = -M_vv^-1 (dID)_v,    dtau_u = (dID)_u + M_uv da_v

for what is torque-specified (v) and prescribed (u); by the inputs (tau_v, da_u) the principal pivot transform of M, U
(see `pivot_transform`).

These are K1 Tables 6 and 7 solved for all directions at once: no recursion a coordinate; of M, U is made once over the tree,
and columns go eight at a time of one state, or one of eight.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import callee, entry, primitive
from liedyn.joints.tree import parts, tree_of
from liedyn.kernels.checks import (
    BAD_A,
    BAD_RESULT,
    BAD_TAU,
    BAD_V,
    OK,
    OTHER_MASK,
    SHAPE,
    SINGULAR,
    bad_configuration,
    finite,
    finite_at,
    fits,
    has_room,
)
from liedyn.kernels.derivatives.aligned import (
    aligned_forces,
    aligned_memory,
    aligned_motion,
    aligned_work,
    gather_bodies,
)
from liedyn.kernels.derivatives.inverse_derivatives import add_passive_slopes
from liedyn.kernels.derivatives.pairs import add_accelerations, derivative_pairs, mass_pairs
from liedyn.kernels.derivatives.ways import ways_in, ways_memory, ways_of
from liedyn.kernels.loops.pivot_transform import pivot_transform
from liedyn.kernels.recursions.hybrid import bad_input
from liedyn.kernels.recursions.kinematics import gather
from liedyn.kernels.recursions.mass_product import minus_product
from liedyn.kernels.recursions.newton_euler import add_rotors_less_passive
from liedyn.kernels.recursions.outgoing import OUTGOING, all_given, outgoing, take
from liedyn.kernels.recursions.results import clear, clear_unwritten
from liedyn.lie.blocks import pack, settle, states_in, whole_lines
from liedyn.lie.lanes import largest, load, number_like, store
from liedyn.lie.matrices import get, integers, put, unpack_rows
from liedyn.lie.rows import load3
from liedyn.lie.vec3 import cross
from liedyn.spans import span, table


class SolutionWork(NamedTuple):
    M: np.ndarray      # (nv nv,) of one state; of eight it stands among the matrices
    sides: np.ndarray  # (4 nv,) unknown accelerations, and of eight states dtau/dv by the rotations of a floating base
    tau: np.ndarray    # (nv,)
    F: np.ndarray      # (3nv,) scratch
    order: np.ndarray  # (nv,) int64, scratch


@primitive
def solution_work(memory, nv):
    size = nv * nv if states_in(memory) == 1 else 0
    m = memory[size:]
    (order,) = integers(m[8 * nv:9 * nv])
    return SolutionWork(memory[:size], m[:4 * nv], m[4 * nv:5 * nv], m[5 * nv:8 * nv], order)


def solution_memory(nv): return 9 * nv


@primitive
def hybrid_derivatives(tree, prescribed, ways, q, v, a, tau, f_ext, passive, A, rows, M, work, solution, out, row):
    """Writes U, E of eight states or M of one, and Dq and Dv, where not zero, into the matrices A (see `_MATRICES`). M: room for
    it. Returns a positive number if a joint's articulated inertia vanishes. out: see `outgoing`; U goes to its rows `row` …."""
    nv, x = prescribed.size, solution.sides
    zero = number_like(q, 0.0)
    for k in range(nv):
        store(x, k, load(a, k) if prescribed[k] else zero)
    aligned_motion(tree, q, v, x, work, out)
    gather_bodies(tree, f_ext, work)
    Dq, Dv = A[2 * rows:3 * rows], A[3 * rows:4 * rows]
    mass_pairs(tree, work, M, ways.loose, Dv, x)
    aligned_forces(tree, work, solution.tau)
    add_rotors_less_passive(tree, q, v, x, passive, solution.tau, solution.F)
    for k in range(nv):
        store(x, k, zero if prescribed[k] else load(tau, k) - load(solution.tau, k))
    deficit = pivot_transform(tree, prescribed, ways, M, x, solution.F, solution.order, A, rows)
    if out is not None:
        take(out, row, 1, rows, 0, 0, 2 * rows, 0, 0, tree.parent.size - 1)
    add_accelerations(tree, x, work)
    derivative_pairs(tree, ways.loose, work, Dq, Dv, out)
    for i in range(1, tree.parent.size if passive else 1):
        add_passive_slopes(tree, i, v, Dq, Dv)
    return largest(deficit)


@primitive
def floating_columns(tree, prescribed, ways, work, v, N, Xq, Xv, first, end):
    """Columns first … end - 1 of dy/dq and dy/dv (Xq, Xv begin with the first) by what carries a floating robot as a whole.

    Carried elsewhere, it moves alike. Turned, it feels gravity g from elsewhere, and with a linear velocity u added, alone the
    change of that, w x u in its frame: its accelerations differ by those of the base, d da_v = d(R^T g) - w x u. A base
    acceleration that is prescribed stays: that is as if less by so much were prescribed, of which N holds the effect."""
    nv, one_by_one = ways.loose.size, states_in(v) > 1
    zero = number_like(v, 0.0)
    for c in range(first, end):
        i = ways.loose[c]
        if i:
            k, X = tree.iv[i], Xv
            b, low, high = load3(v, k), tree.top[c], tree.last[tree.top[c]]
            if c < k + 3:
                b, X = load3(work.g, 3 * i), Xq
            for r in range(low, high + 1 if one_by_one else low):
                put(Xq, nv, c - first, r, zero)
                if c >= k + 3:
                    put(Xv, nv, c - first, r, zero)
            o = (c - k) % 3
            x = cross((1.0 if o == 0 else 0.0, 1.0 if o == 1 else 0.0, 1.0 if o == 2 else 0.0), b)
            for r in range(3):
                l = k + 3 + r
                if not prescribed[l]:
                    put(X, nv, c - first, l, get(X, nv, c - first, l, zero) + x[r])
                elif r != o:
                    for j in range(low, high + 1):
                        put(X, nv, c - first, j, get(X, nv, c - first, j, zero) - x[r] * get(N, nv, l, j, zero))


@primitive
def floating_rotations(tree, ways, sides, X, first, end):
    """Columns first … end - 1 of dy/dv by the rotations of a floating base, of eight states: from where `from_the_ground` left
    them. X begins with the first."""
    nv = tree.above.size
    for c in range(first, end):
        k = c - tree.iv[ways.loose[c]]
        if ways.loose[c] > 0 and k < 3:
            for r in range(tree.top[c], tree.last[tree.top[c]] + 1):
                store(X, (c - first) * nv + r, load(sides, (1 + k) * nv + r))


# from Python ------------------------------------------------------------------------------------------------------
def derivatives_memory(n, nv): return aligned_memory(n, nv) + solution_memory(nv) + 6 * n


def one_memory(n, nv): return _MATRICES * 8 * -(-nv // 8) * nv + nv * nv + derivatives_memory(n, nv)


def kept_memory(nv): return 1 + ways_memory(nv) + (nv + 7) // 8


def batch_memory(n, nq, nv, nl):
    return derivatives_memory(n, nv) + nq + 3 * nv + 6 * nl + _MATRICES * (nv * nv + 7) + 33 * nv + 1 + OUTGOING


# Matrices of `rows` Lanes each, in this order: U; of one state M, of eight first M, then E; dID by q and v, of eight states
# without the columns of a floating base; the results.
_MATRICES = 6


@primitive
def matrices_of_one(memory, nv):
    """The matrices of one state, from scratch that starts on a border of cache lines; their rows; and the rest."""
    rows = -(-nv // 8) * nv
    size = _MATRICES * 8 * rows
    return table(memory, _MATRICES * rows, 8), rows, span(memory, size, memory.size - size)


@primitive
def kept(memory, nv):
    """What stays from call to call for a mask: room for `kept_ways`, and the mask."""
    k = memory.size - (nv + 7) // 8
    return memory[:k].view(np.int64), memory[k:].view(np.bool_)[:nv]


@primitive
def kept_ways(tree, prescribed, passive, room):
    """`ways_of`, made at the first call and where `passive` is another than at the last. room: zero at first."""
    mark = 2 if passive else 1
    if room[0] != mark:
        room[0] = mark
        ways_of(tree, prescribed, passive, room[1:], False)
    return ways_in(room[1:], prescribed)


@entry("i8(f8[::1], b1[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], b1, f8[:,::1], f8[:,::1], f8[:,::1])")
def hybrid_derivatives_one(machine, prescribed, memo, q, v, a, tau, passive, Xq, Xv, Xu):
    """One state that nothing pushes: tau where prescribed and a elsewhere, by q, v and what is given (nv, nv each). memo: what is
    `kept` for a mask; OTHER_MASK where prescribed is another."""
    index, _, _ = parts(machine)
    room, expected = kept(memo, index[2])
    if not sizes_fit(index, q, v, a, tau, prescribed, Xq, Xv, Xu):
        return SHAPE
    if different(prescribed, expected):
        return OTHER_MASK
    return not_pushed(machine, prescribed, room, q, v, a, tau, passive, Xq, Xv, Xu)


@entry("i8(f8[::1], b1[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], b1, f8[:,::1], f8[:,::1], f8[:,::1])")
def pushed_derivatives_one(machine, prescribed, memo, q, v, a, tau, f_ext, passive, Xq, Xv, Xu):
    """The same with wrenches f_ext (6 n_links) on links: compiled for itself, since to ask for them at each body takes 1%."""
    index, _, _ = parts(machine)
    room, expected = kept(memo, index[2])
    if not sizes_fit(index, q, v, a, tau, prescribed, Xq, Xv, Xu) or f_ext.size != 6 * index[3]:
        return SHAPE
    if different(prescribed, expected):
        return OTHER_MASK
    return matrices_into(machine, prescribed, room, q, v, a, tau, f_ext, passive, Xq, Xv, Xu)


@primitive
def sizes_fit(index, q, v, a, tau, prescribed, Xq, Xv, Xu):
    nq, nv = index[1], index[2]
    return (q.size == nq and v.size == nv and a.size == nv and tau.size == nv and prescribed.size == nv and Xq.size == nv * nv
            and Xv.size == nv * nv and Xu.size == nv * nv)


@callee
def not_pushed(machine, prescribed, room, q, v, a, tau, passive, Xq, Xv, Xu):
    """`matrices_into` without wrenches. Apart from its entry it takes 3% of an arm's single call less."""
    return matrices_into(machine, prescribed, room, q, v, a, tau, span(machine, 0, 0), passive, Xq, Xv, Xu)


@primitive
def matrices_into(machine, prescribed, room, q, v, a, tau, f_ext, passive, Xq, Xv, Xu):
    """The derivatives of one state: a code. room: what is `kept` for the mask; f_ext: may be empty."""
    index, constants, memory = parts(machine)
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    tree, passive = tree_of(index, constants), passive and index[4] != 0
    ways = kept_ways(tree, prescribed, passive, room)
    code = bad_given(tree, ways, q, v, a, tau, nq, nv)
    if code != OK:
        return code
    A, rows, m = matrices_of_one(memory, nv)
    work, rest = aligned_work(m[6 * n:], n, nv)
    solution, F = solution_work(rest, nv), f_ext
    if f_ext.size > 0:
        code, F = gather(tree, f_ext, m, n, nl)
        if code != OK:
            return code
    clear(A[rows:4 * rows])
    if hybrid_derivatives(tree, prescribed, ways, q, v, a, tau, F, passive, A, rows, solution.M, work, solution, None, 0) > 0.0:
        return SINGULAR
    clear(A[4 * rows:])
    at = 0, rows, 2 * rows, 3 * rows, 4 * rows, 5 * rows
    minus_product(tree, prescribed, ways, solution.tau, A, at, 0, -(-nv // 8), None)
    floating_columns(tree, prescribed, ways, work, v, A[:rows], A[4 * rows:], A[5 * rows:], 0, nv)
    good = unpack_rows(A[4 * rows:5 * rows], Xq) and unpack_rows(A[5 * rows:], Xv) and unpack_rows(A[:rows], Xu)
    return OK if good else BAD_RESULT


@primitive
def different(x, y):
    """Whether two masks of one size are."""
    any_is = False
    for k in range(x.size):
        any_is |= x[k] != y[k]
    return any_is


@primitive
def bad_given(tree, ways, q, v, a, tau, nq, nv):
    """`bad_input` by the ways of the mask: 1% of an arm's single call less, but of a batch 1% more."""
    code = bad_configuration(tree, q, nq)
    if code == OK and not finite(v, nv):
        code = BAD_V
    if code == OK and not finite_at(a, ways.given):
        code = BAD_A
    if code == OK and not finite_at(tau, ways.free):
        code = BAD_TAU
    return code


@entry("i8(i8[::1], f8[::1], f8[:,::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, b1[::1], "
       "f8[:,::1], b1, b1, i8, i8)", nogil=True)
def hybrid_derivatives_batch(index, constants, memory, prescribed, q, v, a, tau, f_ext, passive, filled, out, past, cleared,
                             first, last):
    """States first … last - 1 of a batch, eight at a time; out (N up to eights, 3 `whole_lines`(nv nv) or more; see `has_room`):
    da and dtau by q, by v and by the inputs, each by columns.

    filled: which lines of eight of a matrix hold more than zeros; past: see `give_line`; cleared: whether memory is as the
    last such call for this model left it."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows = q.shape[0]
    if (q.shape[1] != nq or not (fits(v, rows, nv) and fits(a, rows, nv) and fits(tau, rows, nv)) or prescribed.size != nv
            or not has_room(out, rows, 3 * whole_lines(nv * nv))):
        return SHAPE
    tree, m = tree_of(index, constants), memory
    wide, count = whole_lines(nv * nv), whole_lines(6 * nv + 2) // 8
    Q, V, dV, Tau, m = m[:nq], m[nq:nq + nv], m[nq + nv:nq + 2 * nv], m[nq + 2 * nv:nq + 3 * nv], m[nq + 3 * nv:]
    f, m = m[:6 * nl if f_ext.size else 0], m[6 * nl:]
    A, m = m[:_MATRICES * wide + 32 * nv], m[_MATRICES * wide + 32 * nv:]
    going, m = outgoing(A, out, filled, past, m), m[OUTGOING:]
    room, m = m[:count].reshape(8 * count).view(np.int64), m[count:]
    work, rest = aligned_work(m[6 * n:], n, nv)
    solution = solution_work(rest, nv)
    passive = passive and index[4] != 0
    ways = ways_of(tree, prescribed, passive, room, True)
    if not cleared:
        clear_matrices(tree, filled, A, wide)
    for k in range(first, last, 8):
        pack(q, k, Q)
        pack(v, k, V)
        if ways.given.size > 0:
            pack(a, k, dV)
        pack(tau, k, Tau)
        code = bad_input(tree, prescribed, Q, V, dV, Tau, nq, nv)
        if f_ext.size:
            pack(f_ext, k, f)
        bad_f_ext, F = gather(tree, f, m, n, nl)
        code = code if code != OK else bad_f_ext
        if code != OK:
            return code
        M = A[wide:2 * wide]
        if hybrid_derivatives(tree, prescribed, ways, Q, V, dV, Tau, F, passive, A, wide, M, work, solution, going, k) > 0.0:
            return SINGULAR
        columns_of_eight(tree, prescribed, ways, V, A, wide, work, solution.sides, going, k)
    good = all_given(going)
    settle()
    return OK if good else BAD_RESULT


@primitive
def clear_matrices(tree, filled, A, wide):
    """Where no number is ever written, but some are read or handed on."""
    # of U and E a few numbers beside a limb are read and not used: subnormal ones that others left took 150 cycles each, 15% of
    # all of a humanoid
    clear(A[:2 * wide])
    if one_top(tree):
        clear(A[4 * wide:4 * wide + 4 * min(8 * tree.above.size, wide)])    # see `columns_of_eight`
    else:
        clear_unwritten(tree, filled, False, A[4 * wide:], wide, 2)


@primitive
def one_top(tree):
    """Whether everything hangs on one coordinate: then no entry of M^-1 is zero for all states."""
    return tree.last.size > 0 and tree.last[0] == tree.last.size - 1


@primitive
def columns_of_eight(tree, prescribed, ways, v, A, wide, work, sides, out, row):
    """dtau_u and da_v by q and v from dID by the same (see `_MATRICES`), eight columns at a time; out: see `outgoing`. With U in
    the place of M_vv^-1, dtau_u = dID_u - U_uv dID_v is the same product."""
    n, nv, near, some = tree.parent.size, tree.above.size, one_top(tree), min(8 * tree.above.size, wide)
    for c in range(0, nv, 8):
        end, o = min(c + 8, nv), c * nv
        size, Xq, Xv = whole_lines(end * nv) - o, 4 * wide + o, 5 * wide + o
        if near:                                   # in two places in turn, where no zeros must stay
            Xq = 4 * wide + (c // 8 % 2) * 2 * some
            Xv = Xq + some
        minus_product(tree, prescribed, ways, sides, A, (0, wide, 2 * wide, 3 * wide, Xq, Xv), c, end, out)
        floating_rotations(tree, ways, sides, A[Xv:], c, end)
        floating_columns(tree, prescribed, ways, work, v, A[:wide], A[Xq:], A[Xv:], c, end)
        times = n - 1 if end == nv else -(-nv // 6) * min(8, nv - end)           # of the next eight bodies or columns
        take(out, row, 2, size, Xq, Xv - Xq, o, wide, o // 8, times)
