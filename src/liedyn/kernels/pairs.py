"""Joints in pairs: the mass matrix, and the derivatives of inverse dynamics by q and v.

For a coordinate k of body i and a coordinate l of i or of what i hangs on, with what both see at one origin:

    M_kl = s_k^T I s_l
    dtau_k/dq_l = (I s_k)^T zeta_l + (B^T s_k)^T psi_l        dtau_l/dq_k = s_l^T (I zeta_k + B psi_k - ad*_{s_k} F)
    dtau_k/dv_l = (I s_k)^T phi_l  + (B^T s_k)^T s_l          dtau_l/dv_k = s_l^T (I phi_k + B s_k)

I, B, F belong to all that hangs on i; psi = ad_{Ad V_p} s, zeta = ad_{Ad dV_p} s + ad_{Ad V_p} psi, phi = psi + ad_V s: what
q_l and v_l do to the twists and accelerations of all bodies behind them, V's own turning taken out (K1 Table 5 with
dp = dq_l, dv_l, closed over the tree; the same as Singh, Russell, Wensing 2022). Pairs on different branches give zero.
"""
from liedyn.jit import apart, primitive
from liedyn.joints.columns import along_axes, along_screw, joint_twist, store_along
from liedyn.joints.kinds import FREE, NV, SCREW
from liedyn.kernels.aligned import (
    first_of,
    hand_to_parent,
    is_base,
    load_coriolis,
    load_inertia,
    load_sums,
    load_wrench,
    store_wrench,
    sums_of,
)
from liedyn.kernels.outgoing import hand_on
from liedyn.lie.blocks import put, states_in
from liedyn.lie.coriolis import coriolis_transposed, coriolis_wrench
from liedyn.lie.inertia import momentum
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.rows import load3, load9, load_twist, store_apart, store_twist
from liedyn.lie.se3 import ad, add, dot, minus_dad
from liedyn.lie.shift import shift_twist, shift_wrench
from liedyn.lie.vec3 import add3, cross, dot3


@primitive
def mass_pairs(tree, work, M, loose, Dv, sides):
    """Writes M (nv nv) by columns where a row's coordinate hangs on the column's or is it, armature included; nothing elsewhere.
    Of dtau/dv the columns of rotations of a floating base, which know of no acceleration: of one state into Dv, of eight into
    `sides` behind the first. loose: see `Ways`."""
    nv, base = tree.armature.shape[0], 0
    for i in range(1, tree.parent.size):
        I, base = load_inertia(work.sums, i), base_of(tree, i, base)
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            s = load_twist(work.s, k)
            P, j = momentum(I, s), i
            for l in range(tree.iv[i], k + 1):
                store(M, l * nv + k, dot(P, load_twist(work.s, l)))
            store(M, k * nv + k, load(M, k * nv + k) + load(tree.armature, k))
            while tree.parent[j] > base:
                P = shift_wrench(load3(work.p, 3 * j), P)
                j = tree.parent[j]
                store_along(tree, j, P, work.R, work.s, M, tree.iv[j] * nv + k, nv)
            if base > 0:
                o = tree.iv[base] * nv + k
                if i != base:
                    P = shift_wrench(load3(work.p, 3 * j), P)
                    store_apart(M, o, nv, P[0])
                    store_apart(M, o + 3 * nv, nv, P[1])
                if loose[tree.iv[base]] > 0:
                    x = by_turning(work, base, P, coriolis_transposed(load_coriolis(work.sums, i), s))
                    if states_in(M) > 1:
                        store_apart(sides, nv + k, nv, x)
                    else:
                        put_row(Dv, nv, k, tree.iv[base], x)


@primitive
def add_accelerations(tree, x, work):
    """zeta and F of `work`, made with the accelerations a, become those of a + x. dV is used up."""
    zero = number_like(x, 0.0)
    rest = (zero, zero, zero), (zero, zero, zero)
    store_twist(work.dV, 0, rest)
    for i in range(1, tree.parent.size):
        D = shift_twist(load3(work.p, 3 * i), load_twist(work.dV, tree.parent[i]))
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            store_twist(work.zeta, k, add(load_twist(work.zeta, k), ad(D, load_twist(work.s, k))))
        store_wrench(work.sums, i, add(load_wrench(work.sums, i), momentum(load_inertia(work.sums, i), D)))
        store_twist(work.dV, i, add(D, joint_twist(tree, i, load9(work.R, 9 * i), x)))
    for i in range(1, tree.parent.size):
        store_twist(work.dV, i, rest)
    for i in range(tree.parent.size - 1, 0, -1):                     # dV: what the joints of all that hangs on i add to F
        Sx = joint_twist(tree, i, load9(work.R, 9 * i), x)
        Q = add(load_twist(work.dV, i), momentum(load_inertia(work.sums, i), Sx))
        store_wrench(work.sums, i, add(load_wrench(work.sums, i), Q))
        up = tree.parent[i]
        store_twist(work.dV, up, add(load_twist(work.dV, up), shift_wrench(load3(work.p, 3 * i), Q)))


@apart("work")
def derivative_pairs(tree, loose, f_ext, work, Dq, Dv, M, with_mass, out):
    """Writes dtau/dq in Dq, dtau/dv in Dv and, if asked, M (see `blocks.put`): only where two coordinates stand on one way
    from the ground. With M, which is without armature, sums are made on the way, f_ext with them, and handed from body to body;
    else they are those of `work`. loose: columns with such a body are left alone; or empty. out: see `outgoing`."""
    nv, base, on_ground = tree.armature.shape[0], 0, tree.parent.size
    for o in range(1, tree.parent.size):
        i = tree.parent.size - o if with_mass else o
        if i < on_ground or tree.parent[i] == 0:
            on_ground = first_of(tree, i)
            base = on_ground if is_base(tree, on_ground) else 0
        hand_on(out)
        I, F, B = sums_of(tree, i, f_ext, work) if with_mass else load_sums(work.sums, i)
        first, end = tree.iv[i], tree.iv[i] + NV[tree.kind[i]]
        for k in range(first, end):
            s, psi = load_twist(work.s, k), load_twist(work.psi, k)
            P, g = momentum(I, s), coriolis_transposed(B, s)
            Q = add(momentum(I, load_twist(work.zeta, k)), coriolis_wrench(B, psi[0]))
            G = add(momentum(I, load_twist(work.phi, k)), coriolis_wrench(B, s[0]))
            row_of_pairs(tree, loose, work, Dq, Dv, k, i, P, g)
            for l in range(first, k + 1 if with_mass else first):
                m = dot(P, load_twist(work.s, l))                # one rounding for both halves
                put(M, nv, l, k, m)
                put(M, nv, k, l, m)
            Q, j = add(Q, minus_dad(s, F)), i
            while tree.parent[j] > base:
                p = load3(work.p, 3 * j)
                P, Q, G = shift_wrench(p, P), shift_wrench(p, Q), shift_wrench(p, G)
                j = tree.parent[j]
                row_of_pairs(tree, loose, work, Dq, Dv, k, j, P, g)
                column_of_pairs(tree, work, Dq, k, j, Q, False)
                column_of_pairs(tree, work, Dv, k, j, G, False)
                if with_mass:
                    column_of_pairs(tree, work, M, k, j, P, True)
            if base > 0 and i != base:
                p = load3(work.p, 3 * j)
                P, Q, G = shift_wrench(p, P), shift_wrench(p, Q), shift_wrench(p, G)
                pairs_with_base(tree, loose, work, Dq, Dv, M, with_mass, k, base, P, Q, G, g)
        if with_mass:
            hand_to_parent(tree, i, I, F, B, work)


@primitive
def pairs_with_base(tree, loose, work, Dq, Dv, M, with_mass, k, base, P, Q, G, g):
    """Column and row k where they meet a free base: s_l are columns of the unit matrix, psi_l is zero, zeta_l = ad_g s_l of
    gravity g alone."""
    nv, l, zero = tree.armature.shape[0], tree.iv[base], number_like(work.V, 0.0)
    put_six(Dq, nv, k, l, Q, False)
    put_six(Dv, nv, k, l, G, False)
    if with_mass:
        put_six(M, nv, k, l, P, True)
    if loose.size == 0 or loose[l] == 0:
        put_row(Dq, nv, k, l, cross(P[1], load3(work.g, 3 * base)))
        put_row(Dq, nv, k, l + 3, (zero, zero, zero))
        put_row(Dv, nv, k, l, by_turning(work, base, P, g))
        put_row(Dv, nv, k, l + 3, cross(P[1], load3(work.V, 6 * base)))


@primitive
def base_of(tree, i, base):
    """The free body on the ground that body i hangs on or is, or 0; base: that of body i - 1."""
    if tree.parent[i] > 0:
        return base
    return i if is_base(tree, i) else 0


@primitive
def by_turning(work, base, P, g):
    """P^T phi_l + g^T s_l of a free base's rotations: phi_l = ad_V s_l."""
    V = load_twist(work.V, base)
    return add3(g, add3(cross(P[0], V[0]), cross(P[1], V[1])))


@primitive
def column_of_pairs(tree, work, X, k, j, F, both):
    """S_j^T F into column k of X and, if both, into row k."""
    nv, l = tree.armature.shape[0], tree.iv[j]
    if tree.kind[j] == SCREW:
        x = along_screw(tree, work.s, j, F)
        put(X, nv, k, l, x)
        if both:
            put(X, nv, l, k, x)
    else:
        m, f = along_axes(work.R, j, F)
        put_three(X, nv, k, l, m, both)
        if tree.kind[j] == FREE:
            put_three(X, nv, k, l + 3, f, both)


@primitive
def put_six(X, nv, k, l, F, both):
    put_three(X, nv, k, l, F[0], both)
    put_three(X, nv, k, l + 3, F[1], both)


@primitive
def put_row(X, nv, k, l, x):
    for r in range(3):
        put(X, nv, l + r, k, x[r])


@primitive
def put_three(X, nv, k, l, x, both):
    for r in range(3):
        put(X, nv, k, l + r, x[r])
        if both:
            put(X, nv, l + r, k, x[r])


@primitive
def row_of_pairs(tree, loose, work, Dq, Dv, k, j, P, g):
    """dtau_k by q_l and v_l of body j."""
    nv, first = tree.armature.shape[0], tree.iv[j]
    if loose.size == 0 or loose[first] == 0:
        for l in range(first, first + NV[tree.kind[j]]):
            put(Dq, nv, l, k, dot(P, load_twist(work.zeta, l)) + dot3(g, load3(work.psi, 6 * l)))
            put(Dv, nv, l, k, dot(P, load_twist(work.phi, l)) + dot3(g, load3(work.s, 6 * l)))
