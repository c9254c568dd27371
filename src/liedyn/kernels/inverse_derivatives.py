"""Inverse dynamics differentiated by q and v: O(n depth), and M on the way."""
from liedyn.jit import entry, primitive
from liedyn.joints.kinds import SCREW
from liedyn.joints.passive import resistance_slope
from liedyn.joints.tree import parts, tree_of
from liedyn.kernels.aligned import aligned_memory, aligned_motion, aligned_work, gather_bodies
from liedyn.kernels.checks import BAD_RESULT, OK, SHAPE, bad_motion, finite, fits, has_room
from liedyn.kernels.kinematics import gather
from liedyn.kernels.pairs import derivative_columns, derivative_pairs
from liedyn.kernels.results import clear
from liedyn.lie.blocks import get, pack, put, settle, stream_filled, whole_lines
from liedyn.lie.lanes import load, number_like


@primitive
def inverse_derivatives(tree, q, v, a, f_ext, passive, Dq, Dv, M, memory, n, nv):
    """Writes dtau/dq, dtau/dv and M (see `blocks.put`), where they are not zero for all states."""
    work, rest = aligned_work(memory, n, nv)
    zeta, phi = rest[:6 * nv], rest[6 * nv:]
    aligned_motion(tree, q, v, a, f_ext, work)
    gather_bodies(tree, work)
    derivative_columns(tree, work, zeta, phi)
    derivative_pairs(tree, tree.above[:0], work, zeta, phi, Dq, Dv, M, True)
    zero = number_like(v, 0.0)
    for k in range(nv):
        put(M, nv, k, k, get(M, nv, k, k, zero) + load(tree.armature, k))
    if passive:
        add_passive_slopes(tree, v, Dq, Dv)


@primitive
def add_passive_slopes(tree, v, Dq, Dv):
    """Springs in dtau/dq, damping and friction in dtau/dv: their forces are not asked of the motors."""
    nv, zero = tree.armature.shape[0], number_like(v, 0.0)
    for i in range(1, tree.parent.size):
        k = tree.iv[i]
        if tree.kind[i] == SCREW:
            put(Dq, nv, k, k, get(Dq, nv, k, k, zero) + load(tree.stiffness, k))
    for k in range(nv):
        put(Dv, nv, k, k, get(Dv, nv, k, k, zero) + resistance_slope(tree, k, v))


# from Python ------------------------------------------------------------------------------------------------------
def inverse_derivatives_memory(n, nv): return aligned_memory(n, nv) + 12 * nv + 6 * n


def inverse_derivatives_batch_memory(n, nq, nv, nl):
    return inverse_derivatives_memory(n, nv) + nq + 2 * nv + 6 * nl + 3 * nv * nv + 24


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
    x, y, z = Dq.reshape(nv * nv), Dv.reshape(nv * nv), M.reshape(nv * nv)
    clear(x)
    clear(y)
    clear(z)
    inverse_derivatives(tree, q, v, a, F, passive and index[4] != 0, x, y, z, memory[6 * n:], n, nv)
    return OK if finite(x, nv * nv) and finite(y, nv * nv) and finite(z, nv * nv) else BAD_RESULT


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, b1[::1], f8[:,::1], i8, i8)",
       nogil=True)
def inverse_derivatives_batch(index, constants, memory, q, v, a, f_ext, passive, filled, out, first, last):
    """States first … last - 1 of a batch, eight at a time; out (N, 3 `whole_lines`(nv nv) or
    more): dtau/dq, dtau/dv, M by columns.

    filled: which lines of eight of a matrix hold more than zeros."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows = q.shape[0]
    if q.shape[1] != nq or not (fits(v, rows, nv) and fits(a, rows, nv) and has_room(out, rows, 3 * whole_lines(nv * nv))):
        return SHAPE
    tree, m, size = tree_of(index, constants), memory, whole_lines(nv * nv)
    Q, V, A, m = m[:nq], m[nq:nq + nv], m[nq + nv:nq + 2 * nv], m[nq + 2 * nv:]
    f, X, m = m[:6 * nl if f_ext.size else 0], m[6 * nl:6 * nl + 3 * size], m[6 * nl + 3 * size:]
    Dq, Dv, M = X[:size], X[size:2 * size], X[2 * size:]
    passive = passive and index[4] != 0
    clear(X)
    for k in range(first, last, 8):
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
        inverse_derivatives(tree, Q, V, A, F, passive, Dq, Dv, M, m[6 * n:], n, nv)
        good = stream_filled(Dq, out, k, 0, filled)
        good = stream_filled(Dv, out, k, size, filled) and good
        if not (stream_filled(M, out, k, 2 * size, filled) and good):
            return BAD_RESULT
    settle()
    return OK
