"""Passivity-based control that adapts inertial parameters (Slotine and Li 1987), in their natural metric (Lee, Kwon, Park 2018).

With the error e = q - r of the desired motion r and the estimate ^ of the parameters,

    v_r = r' - lambda e,    a_r = r'' - lambda (v - r'),    s = v - v_r = e' + lambda e
    tau = M^ a_r + C^ v_r + g^ - passive forces - K s

A link is its pseudo-inertia P = [[Sigma, h], [h^T, m]], Sigma = tr(A)/2 1 - A: the second moments of its mass about the link's
origin, which are positive definite. With the matrix L for which tr(L P) = s^T Y pi, the estimate moves by

    P^' = -gamma P^ L P^

It stays positive definite, and with dM/dt - 2C skew,

    V = s^T M s / 2 + sum of D(P, P^) / gamma,    D(P, P^) = log(det P^ / det P) + tr(P^^-1 P) - 4,    V' = -s^T K s

Y^T s of a link is the row of `kernels.regressor` for the twist V - V_r in place of the screw of a joint, so the law is O(n).

Where some parameters of a link are fixed, the others move by the metric of the remaining ones. If W g is the rate for
Y^T s = g, its inverse is the metric, and the rate of the others is that of the Schur complement of W for the fixed ones.
"""
from typing import NamedTuple

import numpy as np

from liedyn.kernels.newton_euler import add_joint_forces
from liedyn.kernels.regressor import reference_row
from liedyn.kernels.simulation.signals import evaluate_signal, flag_nonfinite
from liedyn.kernels.slotine_li import ReferenceMotion, reference_forces, reference_motions, reference_vectors
from liedyn.lie.inertia import add_rigid, rigid_like, rigid_to_parent
from liedyn.lie.se3 import Ad_inv, compose, identity, sub
from liedyn.lie.simd import load, number_like, store
from liedyn.lie.vectors import (
    add3,
    add6,
    congruence,
    dot3,
    load_pose,
    load_rigid,
    load_twist,
    scale3,
    store_rigid,
    symmetric_to_full,
    symv3,
)
from liedyn.numba_tools.decorators import inline_kernel, kernel

N_PARAMETERS = 10        # of a link: m, h, A


class SlotineLi(NamedTuple):
    """The law, and its workspace. n bodies, L links with adapted parameters."""

    signal: np.ndarray       # (nv,) int64 desired motion, -1: prescribed
    damping: np.ndarray      # (nv,) K
    bandwidth: np.ndarray    # (1,) lambda
    gain: np.ndarray         # (1,) gamma [1/J]
    inertia: np.ndarray      # (10n,) of the bodies without these links
    link: np.ndarray         # (L,) int64
    parameters: np.ndarray   # (10L,) of these links; of adapted ones the initial estimate
    state: np.ndarray        # (10L,) int64 index in MotionWorkspace.z of an adapted parameter, -1: fixed
    v_r: np.ndarray          # (nv,) workspace, as all below
    a_r: np.ndarray          # (nv,)
    tau: np.ndarray          # (nv,)
    passive: np.ndarray      # (nv,)
    estimate: np.ndarray     # (10L,)
    I: np.ndarray            # (10n,)
    T: np.ndarray            # (12n,)
    V: np.ndarray            # (6n,)
    V_r: np.ndarray          # (6n,)
    dV_r: np.ndarray         # (6n,)
    F: np.ndarray            # (6n,)
    W: np.ndarray            # (100,)


WORKSPACE_FIELDS = SlotineLi._fields[SlotineLi._fields.index("v_r"):]


def estimate_count(laws):
    """Return the number of adapted parameters of `JointLaws`, or of None."""
    return 0 if laws is None or laws.slotine_li is None else int(np.count_nonzero(laws.slotine_li.state >= 0))


@kernel
def apply_slotine_li(law, tree, passive, q_of_v, signals, t, ws):
    """Add the forces of the law to ws.tau, and write the rates of the estimate to ws.z. law: SlotineLi or None (not compiled)."""
    if law is None:
        return
    set_reference(law, q_of_v, signals, t, ws)
    load_estimate(law, tree, ws)
    motion = ReferenceMotion(law.T, law.V, law.V_r, law.dV_r)
    reference_motions(tree, ws.q, ws.v, law.v_r, law.a_r, motion)
    reference_forces(tree, law.I, law.F, law.tau, motion)
    add_joint_forces(tree, ws.q, ws.v, law.a_r, passive[0], law.tau, law.passive)
    for k in range(law.signal.size):
        if law.signal[k] >= 0:
            ws.tau[k] += law.tau[k] - law.damping[k] * (ws.v[k] - law.v_r[k])
    for j in range(law.link.size):
        adapt_link(law, tree, j, motion, ws)


@inline_kernel
def set_reference(law, q_of_v, signals, t, ws):
    """Write v_r and a_r. Those of prescribed coordinates are their motion."""
    for k in range(law.signal.size):
        law.v_r[k], law.a_r[k] = ws.v[k], ws.a[k]
        if law.signal[k] >= 0:
            r, dr, ddr = evaluate_signal(signals, law.signal[k], t, ws.q, ws.v, ws.stack)
            flag_nonfinite(ws.flag, law.signal[k], r + dr + ddr)
            law.v_r[k] = dr - law.bandwidth[0] * (ws.q[q_of_v[k]] - r)
            law.a_r[k] = ddr - law.bandwidth[0] * (ws.v[k] - dr)


@inline_kernel
def load_estimate(law, tree, ws):
    """Write the estimated parameters of the links, and the inertias of the bodies with them."""
    zero = number_like(ws.q, 0.0)
    for i in range(tree.parent.size):
        store_rigid(law.I, i, rigid_like(load_rigid(law.inertia, i), zero))
    for j in range(law.link.size):
        for r in range(N_PARAMETERS * j, N_PARAMETERS * (j + 1)):
            store(law.estimate, r, ws.z[law.state[r]] if law.state[r] >= 0 else law.parameters[r] + zero)
        i, T = tree.link_body[law.link[j]], compose(identity(zero), load_pose(tree.link_pose, law.link[j]))
        store_rigid(law.I, i, add_rigid(load_rigid(law.I, i), rigid_to_parent(T, load_rigid(law.estimate, j))))


@inline_kernel
def adapt_link(law, tree, j, motion, ws):
    """Write the rates of the adapted parameters of link j of the law."""
    link, n, zero = law.link[j], ws.z.size // 2, number_like(ws.q, 0.0)
    i, T = tree.link_body[link], compose(identity(zero), load_pose(tree.link_pose, link))
    vectors, y = reference_vectors(motion, i, T)
    g = reference_row(Ad_inv(T, sub(load_twist(motion.V, i), load_twist(motion.V_r, i))), vectors, y)
    P, fixed = load_rigid(law.estimate, j), 0
    for r in range(N_PARAMETERS):
        if law.state[N_PARAMETERS * j + r] < 0:
            fixed += 1
    if fixed:
        restricted_metric(law, j, P, zero)
        for r in range(N_PARAMETERS):
            k = law.state[N_PARAMETERS * j + r]
            if k >= 0:
                rate = zero
                for c in range(N_PARAMETERS):
                    rate = rate + load(law.W, N_PARAMETERS * r + c) * g[c]
                ws.z[n + k] = -law.gain[0] * rate
    else:
        rates = natural_rate(P, g)
        for r in range(N_PARAMETERS):
            ws.z[n + law.state[N_PARAMETERS * j + r]] = -law.gain[0] * rates[r]


@inline_kernel
def natural_rate(I, g):
    """Return the ten numbers (m, h, A) of P L P, where tr(L P) = g . (m, h, A) for all P."""
    m, h, A = I
    t = 0.5 * (A[0] + A[3] + A[5])
    S = (t - A[0], -A[1], -A[2], t - A[3], -A[4], t - A[5])
    Lambda = (g[7] + g[9], -0.5 * g[5], -0.5 * g[6], g[4] + g[9], -0.5 * g[8], g[4] + g[7])
    b = (0.5 * g[1], 0.5 * g[2], 0.5 * g[3])
    Sb, Lh, bh = symv3(S, b), symv3(Lambda, h), dot3(b, h)
    c = add3(Sb, scale3(0.5 * g[0], h))                                        # h c^T + c h^T has the other terms with h h^T
    outer = (2.0 * h[0] * c[0], h[0] * c[1] + h[1] * c[0], h[0] * c[2] + h[2] * c[0], 2.0 * h[1] * c[1],
             h[1] * c[2] + h[2] * c[1], 2.0 * h[2] * c[2])
    X = add6(congruence(symmetric_to_full(S), Lambda), outer)
    x = X[0] + X[3] + X[5]
    dh = add3(symv3(S, add3(Lh, scale3(m, b))), scale3(bh + m * g[0], h))
    return (dot3(h, Lh) + 2.0 * m * bh + m * m * g[0], dh[0], dh[1], dh[2],
            x - X[0], -X[1], -X[2], x - X[3], -X[4], x - X[5])


@inline_kernel
def restricted_metric(law, j, P, zero):
    """Write W, the inverse of the metric of the adapted parameters of link j; rows and columns of the fixed ones are zero."""
    W, n = law.W, N_PARAMETERS
    for c in range(n):
        x = natural_rate(P, (unit_entry(c, 0, zero), unit_entry(c, 1, zero), unit_entry(c, 2, zero), unit_entry(c, 3, zero),
                             unit_entry(c, 4, zero), unit_entry(c, 5, zero), unit_entry(c, 6, zero), unit_entry(c, 7, zero),
                             unit_entry(c, 8, zero), unit_entry(c, 9, zero)))
        for r in range(n):
            store(W, n * r + c, x[r])
    for c in range(n):
        if law.state[n * j + c] < 0:
            pivot = load(W, n * c + c)
            for r in range(n):
                ratio = load(W, n * r + c) / pivot
                for k in range(n):
                    if r != c:
                        store(W, n * r + k, load(W, n * r + k) - ratio * load(W, n * c + k))
            for k in range(n):
                store(W, n * c + k, zero)
                store(W, n * k + c, zero)


@inline_kernel
def unit_entry(c, r, zero):
    """Return entry r of unit vector c."""
    return zero + 1.0 if r == c else zero
