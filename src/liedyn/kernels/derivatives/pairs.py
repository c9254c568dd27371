"""Joints in pairs: the mass matrix, and the derivatives of inverse dynamics by q and v.

For a coordinate k of body i and a coordinate l of i or of what i hangs on, with what both see at one origin:

    M_kl = s_k^T I s_l
    dtau_k/dq_l = (I s_k)^T zeta_l + (B^T s_k)^T psi_l        dtau_l/dq_k = s_l^T (I zeta_k + B psi_k - ad*_{s_k} F)
    dtau_k/dv_l = (I s_k)^T phi_l  + (B^T s_k)^T s_l          dtau_l/dv_k = s_l^T (I phi_k + B s_k)

I, B, F belong to all that hangs on i; psi = ad_{Ad V_p} s, zeta = ad_{Ad dV_p} s + ad_{Ad V_p} psi, phi = psi + ad_V s, which
of a screw is 2 psi: what q_l and v_l do to the twists and accelerations of all bodies behind them, V's own turning taken out (K1
Table 5 with dp = dq_l, dv_l, closed over the tree; the same as Singh, Russell, Wensing 2022). Pairs on different branches give
zero.
"""
from liedyn.jit import apart, primitive
from liedyn.joints.columns import along_axes, joint_twist, store_along
from liedyn.joints.kinds import FREE, NV, SCREW, SLIDES
from liedyn.kernels.derivatives.aligned import (
    is_base,
    load_coriolis,
    load_inertia,
    load_sums,
    load_wrench,
    store_wrench,
)
from liedyn.kernels.recursions.outgoing import hand_on
from liedyn.lie.blocks import states_in
from liedyn.lie.body_coriolis import coriolis_transposed, coriolis_wrench
from liedyn.lie.inertia import momentum
from liedyn.lie.lanes import load, number_like, store
from liedyn.lie.matrices import put
from liedyn.lie.rows import load3, load9, load_twist, store_apart, store_twist
from liedyn.lie.se3 import add, dot, less_dad, plus_ad, scale
from liedyn.lie.shift import shift_twist, shift_wrench
from liedyn.lie.vec3 import cross, dot3, plus_cross, plus_dot3


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
            store_twist(work.zeta, k, plus_ad(load_twist(work.zeta, k), D, load_twist(work.s, k)))
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
def derivative_pairs(tree, loose, work, Dq, Dv, out):
    """`pairs_of_body` of all bodies, with their sums as they stand in `work`. out: see `outgoing`."""
    base = 0
    for i in range(1, tree.parent.size):
        base = base_of(tree, i, base)
        hand_on(out)
        I, F, B = load_sums(work.sums, i)
        pairs_of_body(tree, loose, work, Dq, Dv, Dv, False, i, base, I, F, B)


@primitive
def pairs_of_body(tree, loose, work, Dq, Dv, M, with_mass, i, base, I, F, B):
    """Writes dtau/dq in Dq, dtau/dv in Dv and, if asked, M, which is without armature (see `matrices.put`), where a coordinate of
    body i meets one that it hangs on, or of i. I, F, B: sums over all that hangs on i; base: see `base_of`; loose: columns with
    such a body are left alone; or empty."""
    nv, first, end = tree.armature.shape[0], tree.iv[i], tree.iv[i] + NV[tree.kind[i]]
    for k in range(first, end):
        s, psi = load_twist(work.s, k), load_twist(work.psi, k)
        P, g = momentum(I, s), coriolis_transposed(B, s)
        Q = add(momentum(I, load_twist(work.zeta, k)), coriolis_wrench(B, psi[0]))
        phi = scale(2.0, psi) if tree.kind[i] == SCREW else load_twist(work.phi, k)
        G = add(momentum(I, phi), coriolis_wrench(B, s[0]))
        row_of_pairs(tree, loose, work, Dq, Dv, k, i, P, g)
        for l in range(first, k + 1 if with_mass else first):
            m = dot(P, load_twist(work.s, l))                # one rounding for both halves
            put(M, nv, l, k, m)
            put(M, nv, k, l, m)
        Q, j = less_dad(Q, s, F), i
        while tree.parent[j] > base:
            p = load3(work.p, 3 * j)
            P, Q, G = shift_wrench(p, P), shift_wrench(p, Q), shift_wrench(p, G)
            j = tree.parent[j]
            row_of_pairs(tree, loose, work, Dq, Dv, k, j, P, g)
            if tree.kind[j] == SCREW:
                column_with_screw(tree, work, Dq, Dv, M, with_mass, k, j, P, Q, G)
            else:
                column_of_pairs(tree, work, Dq, k, j, Q, False)
                column_of_pairs(tree, work, Dv, k, j, G, False)
                if with_mass:
                    column_of_pairs(tree, work, M, k, j, P, True)
        if base > 0 and i != base:
            p = load3(work.p, 3 * j)
            P, Q, G = shift_wrench(p, P), shift_wrench(p, Q), shift_wrench(p, G)
            pairs_with_base(tree, loose, work, Dq, Dv, M, with_mass, k, base, P, Q, G, g)


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
    return plus_cross(plus_cross(g, P[0], V[0]), P[1], V[1])


@primitive
def column_with_screw(tree, work, Dq, Dv, M, with_mass, k, j, P, Q, G):
    """S_j^T of Q, G and P into column k of Dq, Dv and, if asked, M, there into row k too."""
    nv, l = tree.armature.shape[0], tree.iv[j]
    s = load3(work.s, 6 * l)
    x, y, m = dot3(s, Q[0]), dot3(s, G[0]), dot3(s, P[0])
    if tree.marks[j] & SLIDES:                                     # most joints only turn
        s = load3(work.s, 6 * l + 3)
        x, y, m = plus_dot3(x, s, Q[1]), plus_dot3(y, s, G[1]), plus_dot3(m, s, P[1])
    put(Dq, nv, k, l, x)
    put(Dv, nv, k, l, y)
    if with_mass:
        put(M, nv, k, l, m)
        put(M, nv, l, k, m)


@primitive
def column_of_pairs(tree, work, X, k, j, F, both):
    """S_j^T F of a ball or a free joint into column k of X and, if both, into row k."""
    nv, l = tree.armature.shape[0], tree.iv[j]
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
    if tree.kind[j] == SCREW:
        s, psi, zeta = load3(work.s, 6 * first), load_twist(work.psi, first), load_twist(work.zeta, first)
        put(Dq, nv, first, k, plus_dot3(plus_dot3(dot3(g, psi[0]), P[0], zeta[0]), P[1], zeta[1]))
        put(Dv, nv, first, k, dot3(g, s) + 2.0 * plus_dot3(dot3(P[0], psi[0]), P[1], psi[1]))
    elif loose.size == 0 or loose[first] == 0:
        for l in range(first, first + NV[tree.kind[j]]):
            put(Dq, nv, l, k, dot(P, load_twist(work.zeta, l)) + dot3(g, load3(work.psi, 6 * l)))
            put(Dv, nv, l, k, dot(P, load_twist(work.phi, l)) + dot3(g, load3(work.s, 6 * l)))
