"""Inverse dynamics differentiated along directions (K1 (64), Table 5).

One direction moves the state (dq, dv, da), the external wrenches and the figures of the model at once. Inverse dynamics
runs once, then the table once for eight directions of one state, or for each direction of eight states. In the code pX is
dX/dp, and dV stays the acceleration."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import entry, kernel, primitive
from liedyn.joints.children import hand_to_parent, with_children
from liedyn.joints.motion import joint_add, joint_eta, store_joint_force
from liedyn.joints.perturbation import (
    add_screw_change_force,
    changes_of,
    changes_size,
    joint_eta_along,
    joint_less,
    joint_minus_dad,
    less_passive_change,
    placement_change,
    screw_change,
)
from liedyn.joints.tree import tree_of
from liedyn.kernels.checks import BAD_RESULT, OK, give, take_motion
from liedyn.kernels.recursions.kinematics import gather
from liedyn.kernels.recursions.newton_euler import newton_euler, newton_euler_memory, newton_euler_work
from liedyn.lie.blocks import pack
from liedyn.lie.inertia import momentum
from liedyn.lie.lanes import WIDTH, load, number_like, store
from liedyn.lie.rows import load_pose, load_rigid, load_twist, store_twist
from liedyn.lie.se3 import Ad_inv, ad, add, dAd_inv, less_dad, sub, zero6
from liedyn.seam.views import carve


class DirectionWork(NamedTuple):
    pV: np.ndarray     # (6n,) of the twist
    pdV: np.ndarray    # (6n,) of its component-wise rate
    pF: np.ndarray     # (6n,) of the wrench that the joint transmits
    dh: np.ndarray     # (6n,) what changed figures do to T^-1 dT/dp, coordinates apart


@primitive
def direction_work(memory, n):
    return DirectionWork(*carve(memory, (6 * n, 6 * n, 6 * n, 6 * n))[:-1])


def direction_memory(n, nv, nl):
    """Of `direction_of`: dq dv da dtau, wrenches on links and bodies, changes, result, work."""
    return 5 * nv + 6 * nl + 6 * n + changes_size(n, nv) + 24 * n


@kernel
def newton_euler_direction(tree, q, v, a, passive, base, dq, dv, da, dF_ext, flat_changes, dtau, work):
    """Writes dtau (nv) and work. base: NewtonEulerWork of the state. dF_ext (6n) on bodies, or empty; flat_changes: see
    `joints.perturbation`, or empty."""
    changes = changes_of(flat_changes, tree.parent.size, tree.armature.shape[0])
    changed = flat_changes.size > 0
    twists_along(tree, q, v, a, base, dq, dv, da, changed, changes, work)
    wrenches_along(tree, base, dq, dF_ext, changed, changes, dtau, work)
    for k in range(tree.armature.shape[0]):
        force = load(dtau, k) + load(tree.armature, k) * load(da, k)
        store(dtau, k, force + load(changes.armature, k) * load(a, k) if changed else force)
    if passive:
        less_passive_change(tree, q, v, dq, dv, changes, dtau)


@primitive
def twists_along(tree, q, v, a, base, dq, dv, da, changed, changes, work):
    """Forward, parents first. -ad_{dh} of what the parent gives is, for dh = S dq, ad_Vp S dq and ad_dVp S dq."""
    zero = number_like(dq, 0.0)
    rest = zero6(zero)
    store_twist(work.pV, 0, rest)
    store_twist(work.pdV, 0, load_twist(changes.dV0, 0) if changed else rest)
    for i in range(1, tree.parent.size):
        p, T, V = tree.parent[i], load_pose(base.T, i), load_twist(base.V, i)
        Vp = joint_less(tree, i, V, v)                                      # Ad_{T^-1} of the parent's V and dV
        dVp = joint_less(tree, i, sub(load_twist(base.dV, i), joint_eta(tree, i, V, v)), a)
        pV = add(Ad_inv(T, load_twist(work.pV, p)), joint_eta(tree, i, Vp, dq))
        pdV = add(Ad_inv(T, load_twist(work.pdV, p)), joint_eta(tree, i, dVp, dq))
        pV = joint_add(tree, i, pV, dv)
        pdV = add(joint_add(tree, i, pdV, da), joint_eta(tree, i, V, dv))
        if changed:
            dh, pSv = placement_change(tree, i, T, q, changes), screw_change(tree, i, changes, v, zero)
            store_twist(work.dh, i, dh)
            pV = sub(add(pV, pSv), ad(dh, Vp))
            pdV = sub(add(pdV, add(screw_change(tree, i, changes, a, zero), ad(V, pSv))), ad(dh, dVp))
        store_twist(work.pV, i, pV)
        store_twist(work.pdV, i, add(pdV, joint_eta_along(tree, i, pV, v, zero)))


@primitive
def wrenches_along(tree, base, dq, dF_ext, changed, changes, dtau, work):
    """Backward, children first: pF, and S^T pF + pS^T F into dtau."""
    for i in range(tree.parent.size - 1, 0, -1):
        I, V, F, pV = load_rigid(tree.I, i), load_twist(base.V, i), load_twist(base.F, i), load_twist(work.pV, i)
        P, pP = momentum(I, V), momentum(I, pV)
        pF = momentum(I, load_twist(work.pdV, i))
        if changed:
            dI = load_rigid(changes.I, i)
            pP, pF = add(pP, momentum(dI, V)), add(pF, momentum(dI, load_twist(base.dV, i)))
        pF = less_dad(less_dad(pF, pV, P), V, pP)
        if dF_ext.size:
            pF = sub(pF, load_twist(dF_ext, i))
        pF = with_children(tree, i, pF, work.pF)
        store_twist(work.pF, i, pF)
        store_joint_force(tree, i, pF, dtau)
        if changed:
            add_screw_change_force(tree, i, changes, F, dtau)
            pF = less_dad(pF, load_twist(work.dh, i), F)
        hand_to_parent(tree, i, dAd_inv(load_pose(base.T, i), add(pF, joint_minus_dad(tree, i, dq, F))), work.pF)


class Direction(NamedTuple):
    """Eight directions of one state, or one of eight states, and where their derivatives go."""

    motion: np.ndarray    # dq, dv, da and for hybrid dynamics dtau (nv each)
    links: np.ndarray     # (6 n_links,) wrenches in link frames, or empty
    F_ext: np.ndarray     # (6n,) the same on bodies
    changes: np.ndarray
    dtau: np.ndarray      # (nv,)
    work: np.ndarray


@primitive
def direction_of(memory, motion, links, changes, n, nv):
    """Views into `direction_memory` numbers; motion, links, changes: how many numbers of each there are."""
    return Direction(*carve(memory, (motion, links, 6 * n, changes, nv)))


@primitive
def pack_direction(tree, motion, df_ext, changes, j, row, D):
    """Direction j of state `row` and those after it; an array of one direction or one row serves all. Returns a code, and
    wrenches on bodies or nothing."""
    pack(motion[min(j, motion.shape[0] - 1)], row, D.motion)
    if D.changes.size:
        pack(changes[min(j, changes.shape[0] - 1)], row, D.changes)
    return gather(tree, df_ext[min(j, df_ext.shape[0] - 1)], row, D.links, D.F_ext)


# from Python ------------------------------------------------------------------------------------------------------
def inverse_directions_memory(n, nq, nv, nl):
    return newton_euler_memory(n, nv) + nq + 3 * nv + 6 * nl + 6 * n + direction_memory(n, nv, nl)


@entry("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,:,::1], f8[:,:,::1], f8[:,:,::1],"
       " f8[:,::1], f8[:,:,::1], i8, i8)", nogil=True)
def inverse_directions(index, constants, memory, q, v, a, f_ext, passive, motion, df_ext, changes, tau, dtau, first, last):
    """States first … last - 1 of N, eight at a time, K directions of each; or N directions of one state: then q, v, a, f_ext and
    tau have one row. tau (N, nv), dtau (K, N, nv). motion (K or 1, N or 1, 3nv): dq, dv, da; df_ext (…, 6 n_links) and changes
    (…, changes_size) may have no columns."""
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows = q.shape[0]
    tree, parts = tree_of(index, constants), carve(memory, (nq, nv, nv, nv, 6 * nl, 6 * n, newton_euler_memory(n, nv)))
    Q, V, A, Tau, links, bodies, room, m = parts
    base, D = newton_euler_work(room, n, nv), direction_of(m, motion.shape[2], df_ext.shape[2], changes.shape[2], n, nv)
    (dq, dv, da, _), work = carve(D.motion, (nv, nv, nv)), direction_work(D.work, n)
    for k in range(first, last, WIDTH):
        if k == first or rows > 1:
            bad_f_ext, F = gather(tree, f_ext, k, links, bodies)
            code = take_motion(tree, q, v, a, k, Q, V, A) or bad_f_ext
            if code != OK:
                return code
            newton_euler(tree, tree.I, Q, V, A, F, passive and index[4] != 0, Tau, base)
            if not give(Tau, tau, k):
                return BAD_RESULT
        for j in range(dtau.shape[0]):
            code, dF = pack_direction(tree, motion, df_ext, changes, j, k, D)
            if code != OK:
                return code
            newton_euler_direction(tree, Q, V, A, passive, base, dq, dv, da, dF, D.changes, D.dtau, work)
            if not give(D.dtau, dtau[j], k):
                return BAD_RESULT
    return OK
