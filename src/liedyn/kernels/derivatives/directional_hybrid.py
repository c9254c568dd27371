"""Forward and hybrid dynamics differentiated along directions (K1 (64), Tables 6-7).

The tables carry the derivative of each articulated inertia, 21 numbers a body and direction. What they solve is linear in the
unknown da, and M is known in factors already, so here the same result comes from three steps that carry vectors only:

    r    = the derivative of inverse dynamics at the solution (Table 5), with da = 0 where it is asked for
    da   = M_vv^-1 (dtau - r)_v               v: not prescribed; one sweep with the factors U, Psi of Table 4
    dtau = r_u + M_uv da_v                    u: prescribed; the same sweep

Forward dynamics is the case of none prescribed. The tests keep Tables 6 and 7 to the letter and find both equal to rounding."""
from liedyn.jit import entry, primitive
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, give
from liedyn.kernels.derivatives.directional_inverse import (
    direction_memory,
    direction_of,
    direction_work,
    newton_euler_direction,
    pack_direction,
)
from liedyn.kernels.recursions.hybrid import hybrid, hybrid_memory, hybrid_work, solved, take_input
from liedyn.kernels.recursions.inverse_mass import sweep, sweep_work
from liedyn.kernels.recursions.kinematics import gather
from liedyn.kernels.recursions.newton_euler import newton_euler, newton_euler_memory, newton_euler_work
from liedyn.lie.blocks import unpack
from liedyn.lie.lanes import WIDTH, load, number_like, store
from liedyn.seam.views import carve


@primitive
def hybrid_direction(tree, prescribed, q, v, a, passive, base, factors, D, dF, nv):
    """Completes da and dtau of D.motion: the one given is read and the other written. base: NewtonEulerWork at the solution;
    factors: HybridWork."""
    dq, dv, da, dtau = carve(D.motion, (nv, nv, nv))
    n, zero = tree.parent.size, number_like(dq, 0.0)
    for k in range(nv):
        if not prescribed[k]:
            store(da, k, zero)
    newton_euler_direction(tree, q, v, a, passive, base, dq, dv, da, dF, D.changes, D.dtau, direction_work(D.work, n))
    x, force, room = carve(D.work, (nv, nv))                   # Table 5 is done with it
    work = sweep_work(factors, room, n, nv)
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
    own = nq + 4 * nv + 6 * nl + 6 * n + hybrid_memory(n, nv) + newton_euler_memory(n, nv)
    return own + hybrid_direction_memory(n, nv, nl)


@entry("i8(i8[::1], f8[::1], f8[:,::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,:,::1],"
       " f8[:,:,::1], f8[:,:,::1], f8[:,:,::1], i8, i8)", nogil=True)
def hybrid_directions(index, constants, memory, prescribed, q, v, a, tau, f_ext, passive, motion, df_ext, changes, out, first,
                      last):
    """As `inverse_directions`; a and tau are completed in place. out (K, N, 2nv): [da; dtau]; motion (…, 4nv): dq, dv, da,
    dtau."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows = q.shape[0]
    tree, parts = tree_of(index, constants), carve(
        memory, (nq, nv, nv, nv, nv, 6 * nl, 6 * n, hybrid_memory(n, nv), newton_euler_memory(n, nv)))
    Q, V, A, Tau, again, links, bodies, room, other, m = parts
    factors, base = hybrid_work(room, n, nv), newton_euler_work(other, n, nv)
    D = direction_of(m, 4 * nv, df_ext.shape[2], changes.shape[2], n, nv)
    for k in range(first, last, WIDTH):
        if k == first or rows > 1:
            bad_f_ext, F = gather(tree, f_ext, k, links, bodies)
            code = take_input(tree, prescribed, q, v, a, tau, k, Q, V, A, Tau) or bad_f_ext
            if code == OK:
                code = solved(hybrid(tree, prescribed, Q, V, A, Tau, F, passive and index[4] != 0, factors), A, Tau)
            if code != OK:
                return code
            unpack(A, a, k)
            unpack(Tau, tau, k)
            newton_euler(tree, tree.I, Q, V, A, F, False, again, base)
        for j in range(out.shape[0]):
            code, dF = pack_direction(tree, motion, df_ext, changes, j, k, D)
            if code != OK:
                return code
            hybrid_direction(tree, prescribed, Q, V, A, passive, base, factors, D, dF, nv)
            if not give(D.motion[2 * nv:], out[j], k):
                return BAD_RESULT
    return OK
