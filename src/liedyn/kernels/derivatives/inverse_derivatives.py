"""Inverse dynamics differentiated by q and v: O(n depth), and M on the way."""
from liedyn.jit import entry, primitive
from liedyn.joints.kinds import NV, SCREW
from liedyn.joints.passive import resistance_slope
from liedyn.joints.tree import parts, tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, SHAPE, bad_motion, finite, fits, has_room
from liedyn.kernels.derivatives.aligned import (
    aligned_memory,
    aligned_motion,
    aligned_work,
    first_of,
    hand_to_parent,
    is_base,
    sums_of,
)
from liedyn.kernels.derivatives.pairs import pairs_of_body
from liedyn.kernels.recursions.kinematics import gather
from liedyn.kernels.recursions.outgoing import OUTGOING, all_given, hand_on, outgoing, take
from liedyn.kernels.recursions.results import clear, clear_unwritten
from liedyn.lie.blocks import pack, settle, whole_lines
from liedyn.lie.lanes import load, number_like
from liedyn.lie.matrices import get, put
from liedyn.spans import flat


@primitive
def inverse_derivatives(tree, q, v, a, f_ext, passive, Dq, Dv, M, memory, n, nv, out):
    """Writes dtau/dq, dtau/dv and M (see `matrices.put`), where they are not zero for all states. out: see `outgoing`."""
    work, _ = aligned_work(memory, n, nv)
    aligned_motion(tree, q, v, a, work, out)
    base, on_ground, none, zero = 0, n, tree.above[:0], number_like(v, 0.0)
    for i in range(n - 1, 0, -1):
        if i < on_ground:
            on_ground = first_of(tree, i)
            base = on_ground if is_base(tree, on_ground) else 0
        hand_on(out)
        I, F, B = sums_of(tree, i, f_ext, work)
        pairs_of_body(tree, none, work, Dq, Dv, M, True, i, base, I, F, B)
        hand_to_parent(tree, i, I, F, B, work)
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            put(M, nv, k, k, get(M, nv, k, k, zero) + load(tree.armature, k))
        if passive:
            add_passive_slopes(tree, i, v, Dq, Dv)


@primitive
def add_passive_slopes(tree, i, v, Dq, Dv):
    """Springs of joint i in dtau/dq, damping and friction in dtau/dv: their forces are not asked of the motors."""
    nv, first, zero = tree.armature.shape[0], tree.iv[i], number_like(v, 0.0)
    if tree.kind[i] == SCREW:
        put(Dq, nv, first, first, get(Dq, nv, first, first, zero) + load(tree.stiffness, first))
    for k in range(first, first + NV[tree.kind[i]]):
        put(Dv, nv, k, k, get(Dv, nv, k, k, zero) + resistance_slope(tree, k, v))


# from Python ------------------------------------------------------------------------------------------------------
def inverse_derivatives_memory(n, nv): return aligned_memory(n, nv) + 6 * n


def inverse_derivatives_batch_memory(n, nq, nv, nl):
    return inverse_derivatives_memory(n, nv) + nq + 2 * nv + 6 * nl + 6 * nv * nv + 48 + OUTGOING


@entry("i8(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], b1, f8[:,::1], f8[:,::1], f8[:,::1])")
def inverse_derivatives_one(machine, q, v, a, f_ext, passive, Dq, Dv, M):
    """One state. f_ext (6 n_links) in link frames, or empty. Dq, Dv, M (nv, nv). Returns a code of `checks`."""
    index, constants, memory = parts(machine)
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    if (q.size != nq or v.size != nv or a.size != nv or Dq.size != nv * nv or Dv.size != nv * nv or M.size != nv * nv
            or (f_ext.size and f_ext.size != 6 * nl)):
        return SHAPE
    tree = tree_of(index, constants)
    code = bad_motion(tree, q, v, a, nq, nv)
    if code != OK:
        return code
    code, F = gather(tree, f_ext, memory, n, nl)
    if code != OK:
        return code
    x, y, z = flat(Dq), flat(Dv), flat(M)
    clear(x)
    clear(y)
    clear(z)
    inverse_derivatives(tree, q, v, a, F, passive and index[4] != 0, x, y, z, memory[6 * n:], n, nv, None)
    return OK if finite(x, nv * nv) and finite(y, nv * nv) and finite(z, nv * nv) else BAD_RESULT


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, b1[::1], f8[:,::1], b1, b1, i8, i8)",
       nogil=True)
def inverse_derivatives_batch(index, constants, memory, q, v, a, f_ext, passive, filled, out, past, cleared, first,
                              last):
    """States first … last - 1 of a batch, eight at a time; out (N up to eights, 3 `whole_lines`(nv nv) or more; see `has_room`):
    dtau/dq, dtau/dv, M by columns.

    filled: which lines of eight of a matrix hold more than zeros; past: see `give_line`; cleared: whether memory is as the
    last such call for this model left it."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows = q.shape[0]
    if q.shape[1] != nq or not (fits(v, rows, nv) and fits(a, rows, nv) and has_room(out, rows, 3 * whole_lines(nv * nv))):
        return SHAPE
    tree, m, size = tree_of(index, constants), memory, whole_lines(nv * nv)
    Q, V, A, m = m[:nq], m[nq:nq + nv], m[nq + nv:nq + 2 * nv], m[nq + 2 * nv:]
    f, X, m = m[:6 * nl if f_ext.size else 0], m[6 * nl:6 * nl + 6 * size], m[6 * nl + 6 * size:]
    going, m, at = outgoing(X, out, filled, past, m), m[OUTGOING:], 0
    passive = passive and index[4] != 0
    if not cleared:
        clear_unwritten(tree, filled, True, X, size, 6)
    for k in range(first, last, 8):
        Dq, Dv, M = X[at:at + size], X[at + size:at + 2 * size], X[at + 2 * size:at + 3 * size]
        pack(q, k, Q)
        pack(v, k, V)
        pack(a, k, A)
        code = bad_motion(tree, Q, V, A, nq, nv)
        if f_ext.size:
            pack(f_ext, k, f)
        bad_f_ext, F = gather(tree, f, m, n, nl)
        code = code if code != OK else bad_f_ext
        if code != OK:
            return code
        inverse_derivatives(tree, Q, V, A, F, passive, Dq, Dv, M, m[6 * n:], n, nv, going)
        take(going, k, 3, size, at, size, 0, size, 0, 2 * (n - 1))    # while the next eight are made, where the last were
        at = 3 * size - at
    good = all_given(going)
    settle()
    return OK if good else BAD_RESULT
