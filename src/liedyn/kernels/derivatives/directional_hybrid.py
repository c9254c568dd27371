"""Forward and hybrid dynamics differentiated along directions (K1 (64), Tables 6-7).

The tables carry the derivative of each articulated inertia, 21 numbers a body and direction. What they solve is linear in the
unknown da, and M is known in factors already, so here the same result comes from three steps that carry vectors only:

    r    = the derivative of inverse dynamics at the solution (Table 5), with da = 0 where it is asked for
    da   = M_vv^-1 (dtau - r)_v               v: not prescribed; one sweep with the factors U, Psi of Table 4
    dtau = r_u + M_uv da_v                    u: prescribed; the same sweep

Forward dynamics is the case of none prescribed. The tests keep Tables 6 and 7 to the letter and find both equal to rounding."""
from liedyn.jit import entry, primitive
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, SHAPE, finite, fits
from liedyn.kernels.derivatives.directional_inverse import (
    direction_memory,
    direction_of,
    direction_work,
    newton_euler_direction,
    pack_direction,
)
from liedyn.kernels.recursions.hybrid import bad_input, hybrid, hybrid_work, solved
from liedyn.kernels.recursions.inverse_mass import sweep, sweep_work
from liedyn.kernels.recursions.kinematics import gather
from liedyn.kernels.recursions.newton_euler import newton_euler, newton_euler_work
from liedyn.lie.blocks import pack, unpack
from liedyn.lie.lanes import load, number_like, store


@primitive
def hybrid_direction(tree, prescribed, q, v, a, passive, base, factors, D, dF, nv):
    """Completes da and dtau of D.motion: the one given is read and the other written. base: NewtonEulerWork at the solution;
    factors: HybridWork."""
    dq, dv, da, dtau = D.motion[:nv], D.motion[nv:2 * nv], D.motion[2 * nv:3 * nv], D.motion[3 * nv:]
    n = tree.parent.size
    zero = number_like(dq, 0.0)
    for k in range(nv):
        if not prescribed[k]:
            store(da, k, zero)
    newton_euler_direction(tree, q, v, a, passive, base, dq, dv, da, dF, D.changes, D.dtau, direction_work(D.work, n))
    memory = D.work                                            # Table 5 is done with it
    x, force, work = memory[:nv], memory[nv:2 * nv], sweep_work(factors, memory[2 * nv:], n, nv)
    for k in range(nv):
        if prescribed[k]:
            store(x, k, zero)                                  # r has M da of these in it
        else:
            store(force, k, load(dtau, k) - load(D.dtau, k))
    sweep(tree, prescribed, base.T, x, force, work)
    for k in range(nv):
        if prescribed[k]:
            store(dtau, k, load(D.dtau, k) + load(force, k))
        else:
            store(da, k, load(x, k))


def hybrid_direction_memory(n, nv, nl):
    """A sweep takes 12n + nv numbers, Table 5 24n: with two arrays of nv before it, it may need more."""
    return direction_memory(n, nv, nl) + max(0, 3 * nv - 12 * n)


# from Python ------------------------------------------------------------------------------------------------------
def hybrid_directions_memory(n, nq, nv, nl):
    return 87 * n + 14 * nv + nq + 6 * nl + hybrid_direction_memory(n, nv, nl)


@entry("i8(i8[::1], f8[::1], f8[:,::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,:,::1],"
       " f8[:,:,::1], f8[:,:,::1], f8[:,:,::1], i8, i8)", nogil=True)
def hybrid_directions(index, constants, memory, prescribed, q, v, a, tau, f_ext, passive, motion, df_ext, changes, out, first,
                      last):
    """As `inverse_directions`; a and tau are completed in place. out (K, N, 2nv): [da; dtau]; motion (…, 4nv): dq, dv, da,
    dtau."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows = q.shape[0]
    if q.shape[1] != nq or not (fits(v, rows, nv) and fits(a, rows, nv) and fits(tau, rows, nv)):
        return SHAPE
    tree, m = tree_of(index, constants), memory
    Q, V, A, Tau, m = m[:nq], m[nq:nq + nv], m[nq + nv:nq + 2 * nv], m[nq + 2 * nv:nq + 3 * nv], m[nq + 3 * nv:]
    f, bodies, m = m[:6 * nl if f_ext.size else 0], m[6 * nl:6 * nl + 6 * n], m[6 * nl + 6 * n:]
    factors, again, m = hybrid_work(m, n, nv), m[51 * n + 9 * nv:51 * n + 10 * nv], m[51 * n + 10 * nv:]
    F, base = bodies[:6 * n if f_ext.size else 0], newton_euler_work(m, n, nv)
    D = direction_of(m[30 * n + nv:], 4 * nv, df_ext.shape[2], changes.shape[2], n, nv, nl)
    for k in range(first, last, 8):
        if k == first or rows > 1:
            pack(q, k, Q)
            pack(v, k, V)
            pack(a, k, A)
            pack(tau, k, Tau)
            if f.size:
                pack(f_ext, k, f)
            code, bad_f_ext = bad_input(tree, prescribed, Q, V, A, Tau, nq, nv), gather(tree, f, bodies, n, nl)[0]
            code = code if code != OK else bad_f_ext
            if code == OK:
                code = solved(hybrid(tree, prescribed, Q, V, A, Tau, F, passive and index[4] != 0, factors), A, Tau, nv)
            if code != OK:
                return code
            unpack(A, a, k)
            unpack(Tau, tau, k)
            newton_euler(tree, Q, V, A, F, False, again, base)
        for j in range(out.shape[0]):
            code, dF = pack_direction(tree, motion[min(j, motion.shape[0] - 1)], df_ext[min(j, df_ext.shape[0] - 1)],
                                      changes[min(j, changes.shape[0] - 1)], k, D, n, nl)
            if code != OK:
                return code
            hybrid_direction(tree, prescribed, Q, V, A, passive, base, factors, D, dF, nv)
            if not finite(D.motion[2 * nv:], 2 * nv):
                return BAD_RESULT
            unpack(D.motion[2 * nv:], out[j], k)
    return OK
