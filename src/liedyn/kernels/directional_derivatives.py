"""Directional derivatives of inverse and hybrid dynamics (K1 (64), Tables 5-7).

A direction changes the state (dq, dv, da), the external wrenches and the parameters of the model. Inverse dynamics runs once,
then the table once for eight directions of one state, or for each direction of eight states. In the code pX is dX/dp, and dV
remains the acceleration.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import (
    accumulate_children,
    joint_add,
    joint_eta,
    joint_motion,
    propagate_to_parent,
    screw,
    store_joint_force,
    tree_views,
)
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, load_block, load_motion, store_block, unpack_block
from liedyn.kernels.couplings import coupling_views
from liedyn.kernels.force_elements import subtract_element_tangent
from liedyn.kernels.hybrid_dynamics import hybrid, hybrid_workspace, hybrid_workspace_size, load_input, solution_code
from liedyn.kernels.kinematics import load_wrenches
from liedyn.kernels.mass_matrix import solve_articulated, sweep_workspace
from liedyn.kernels.newton_euler import newton_euler, newton_euler_workspace, newton_euler_workspace_size
from liedyn.lie.inertia import momentum
from liedyn.lie.se3 import Ad, Ad_inv, ad, ad_screw, add, dAd_inv, dexp, dot, neg_dad, scale, screw_add, sub, sub_dad, zero6
from liedyn.lie.simd import SIMD_WIDTH, load, number_like, sqrt, store
from liedyn.lie.vectors import load_pose, load_rigid, load_twist, store_twist
from liedyn.model.description import NV, ONE_DOF
from liedyn.numba_tools.decorators import entry_point, inline_kernel, kernel
from liedyn.numba_tools.deferred_kernels import call_deferred
from liedyn.numba_tools.numba_internals import split_workspace

# Directional derivatives of a joint's motion, force and passive force: by its coordinates, placement and screw ----------

# Source: K1 (53)-(63), Lemma 3, Corollaries 1-2.
#
# With T the pose in the parent, dh = T^-1 dT/dp. Coordinates contribute S dq, which depends on the kind of joint; parameters of
# the model contribute a general twist. The screw of a joint may change in all six components, also away from its z axis: the
# frames of the bodies do not change.
#
# The state (q, v, V, …) may be float64 while directional quantities (dq, pV, …) are SIMD numbers: eight directions of one
# state.

class ModelTangent(NamedTuple):
    """Derivatives of the model's parameters along a direction. All arrays are empty if they do not change."""

    dV0: np.ndarray        # (6,) acceleration of the ground: [0; -g]
    T0: np.ndarray         # (6n,) twists T0^-1 dT0/dp
    S: np.ndarray          # (6n,) screws, in the body frame; ball and free joints have none
    I: np.ndarray          # (10n,) mass, first moment, second moment
    armature: np.ndarray   # (nv,) each
    damping: np.ndarray
    friction: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    friction_speed: np.ndarray


@inline_kernel
def parameter_tangent(x, n, nv):
    """Return views into a flat array of `parameter_tangent_size` numbers, or of none."""
    s = 6 + 22 * n
    return ModelTangent(x[:6], x[6:6 + 6 * n], x[6 + 6 * n:6 + 12 * n], x[6 + 12 * n:s], x[s:s + nv], x[s + nv:s + 2 * nv],
                        x[s + 2 * nv:s + 3 * nv], x[s + 3 * nv:s + 4 * nv], x[s + 4 * nv:s + 5 * nv],
                        x[s + 5 * nv:s + 6 * nv])


def parameter_tangent_size(n, nv):
    """Return the size of the tangent of a model's arrays for n bodies and nv coordinates."""
    return 6 + 22 * n + 6 * nv


# coordinates ------------------------------------------------------------------------------------------------------
@inline_kernel
def joint_subtract(tree, i, V, v):
    """Return V - S v: the part of V (or of dV, with a for v) that the parent contributes."""
    if tree.kind[i] == ONE_DOF:
        return screw_add(V, screw(tree, i), -load(v, tree.iv[i]))
    return sub(V, joint_motion(tree, i, v))


@inline_kernel
def joint_eta_directional(tree, i, pV, v, zero):
    """Return ad_pV S v, where pV is directional and v is not. `zero` gives the kind of number."""
    if tree.kind[i] == ONE_DOF:
        w, u = ad_screw(pV, screw(tree, i), load(v, tree.iv[i]))
        return (w[0], w[1], zero), (u[0], u[1], zero)
    return ad(pV, joint_motion(tree, i, v))


@inline_kernel
def joint_neg_dad(tree, i, dq, F):
    """Return -ad*_{S dq} F (K1 (60))."""
    if tree.kind[i] == ONE_DOF:
        S, x = screw(tree, i), load(dq, tree.iv[i])
        (m, f), a, b = F, S[0] * x, S[1] * x
        zero = a - a
        return (-(a * m[1] + b * f[1]), a * m[0] + b * f[0], zero), (-(a * f[1]), a * f[0], zero)
    return neg_dad(joint_motion(tree, i, dq), F)


# parameters of the model ---------------------------------------------------------------------------------------------
@inline_kernel
def placement_tangent(tree, i, T, q, tangent):
    """Return the part of dh from the joint's placement and screw.

    It is Ad_{M^-1} of T0^-1 dT0, and for M = exp(S q) the right Jacobian times dS q.
    """
    dh = Ad_inv(T, Ad(load_pose(tree.T0, i), load_twist(tangent.T0, i)))
    if tree.kind[i] == ONE_DOF:
        S, x = screw(tree, i), load(q, tree.iq[i])
        zero = x - x
        back = (zero, zero, -(S[0] * x)), (zero, zero, -(S[1] * x))
        return add(dh, dexp(back, scale(x, load_twist(tangent.S, i))))
    return dh


@inline_kernel
def screw_tangent(tree, i, tangent, x, zero):
    """Return dS x of a screw joint; ball and free joints have a constant S."""
    if tree.kind[i] == ONE_DOF:
        return scale(load(x, tree.iv[i]), load_twist(tangent.S, i))
    return zero6(zero)


@inline_kernel
def add_screw_tangent_force(tree, i, tangent, F, tau):
    """Add dS^T F to tau."""
    if tree.kind[i] == ONE_DOF:
        k = tree.iv[i]
        store(tau, k, load(tau, k) + dot(load_twist(tangent.S, i), F))


# passive forces ---------------------------------------------------------------------------------------------------
@inline_kernel
def subtract_passive_tangent(tree, q, v, dq, dv, tangent, tau):
    """Subtract the directional derivative of passive forces from tau (see `joints.joint_model`)."""
    for i in range(1, tree.parent.size):
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            x, s = load(v, k), load(tree.friction_speed, k)
            r = 1.0 / sqrt(x * x + s * s)
            steepness = load(tree.friction, k) * s * (r * r * r)
            slope = load(tree.damping, k) + steepness * s
            force = load(tau, k) + slope * load(dv, k)
            if tangent.damping.size:
                force = force + (load(tangent.damping, k) * x + load(tangent.friction, k) * (x * r))
                force = force - steepness * x * load(tangent.friction_speed, k)
            if tree.kind[i] == ONE_DOF:
                force = force + load(tree.stiffness, k) * load(dq, k)
                if tangent.rest.size:
                    force = force - load(tree.stiffness, k) * load(tangent.rest, k)
                    force = force + load(tangent.stiffness, k) * (load(q, tree.iq[i]) - load(tree.rest, k))
            store(tau, k, force)


# directional inverse ----------------------------------------------------------------------------------------------------

class DirectionWorkspace(NamedTuple):
    """Directional derivatives of a tree."""

    pV: np.ndarray     # (6n,) of the twist
    pdV: np.ndarray    # (6n,) of its component-wise rate
    pF: np.ndarray     # (6n,) of the wrench that the joint transmits
    dh: np.ndarray     # (6n,) part of T^-1 dT/dp from parameters of the model


@inline_kernel
def direction_workspace(memory, n):
    """Return the `DirectionWorkspace` whose arrays are views into `memory`."""
    return DirectionWorkspace(*split_workspace(memory, (6 * n, 6 * n, 6 * n, 6 * n))[:-1])


def direction_workspace_size(n, nv, nl):
    """Return the size of the arrays of `direction_views`."""
    return 5 * nv + 6 * nl + 6 * n + parameter_tangent_size(n, nv) + 24 * n


@kernel
def newton_euler_direction(tree, q, v, a, passive, base, dq, dv, da, dF_ext, flat_tangent, dtau, ws):
    """Write the derivatives dtau (nv).

    base          `NewtonEulerWorkspace` of the state
    dF_ext        (6n) derivatives of wrenches on bodies, or empty
    flat_tangent  numbers of a `ModelTangent`, or empty
    """
    tangent = parameter_tangent(flat_tangent, tree.parent.size, tree.armature.shape[0])
    has_tangent = flat_tangent.size > 0
    directional_twists(tree, q, v, a, base, dq, dv, da, has_tangent, tangent, ws)
    directional_wrenches(tree, base, dq, dF_ext, has_tangent, tangent, dtau, ws)
    for k in range(tree.armature.shape[0]):
        force = load(dtau, k) + load(tree.armature, k) * load(da, k)
        store(dtau, k, force + load(tangent.armature, k) * load(a, k) if has_tangent else force)
    if passive:
        subtract_passive_tangent(tree, q, v, dq, dv, tangent, dtau)
        if tree.element.size:
            call_deferred(subtract_element_tangent, (tree, q, v, dq, dv, dtau))


@inline_kernel
def directional_twists(tree, q, v, a, base, dq, dv, da, has_tangent, tangent, ws):
    """Write pV, pdV and dh, parents first.

    With dh = S dq, -ad_{dh} of the parent's contributions is ad_Vp S dq and ad_dVp S dq.
    """
    zero = number_like(dq, 0.0)
    rest = zero6(zero)
    store_twist(ws.pV, 0, rest)
    store_twist(ws.pdV, 0, load_twist(tangent.dV0, 0) if has_tangent else rest)
    for i in range(1, tree.parent.size):
        p, T, V = tree.parent[i], load_pose(base.T, i), load_twist(base.V, i)
        Vp = joint_subtract(tree, i, V, v)                                      # Ad_{T^-1} of the parent's V and dV
        dVp = joint_subtract(tree, i, sub(load_twist(base.dV, i), joint_eta(tree, i, V, v)), a)
        pV = add(Ad_inv(T, load_twist(ws.pV, p)), joint_eta(tree, i, Vp, dq))
        pdV = add(Ad_inv(T, load_twist(ws.pdV, p)), joint_eta(tree, i, dVp, dq))
        pV = joint_add(tree, i, pV, dv)
        pdV = add(joint_add(tree, i, pdV, da), joint_eta(tree, i, V, dv))
        if has_tangent:
            dh, pSv = placement_tangent(tree, i, T, q, tangent), screw_tangent(tree, i, tangent, v, zero)
            store_twist(ws.dh, i, dh)
            pV = sub(add(pV, pSv), ad(dh, Vp))
            pdV = sub(add(pdV, add(screw_tangent(tree, i, tangent, a, zero), ad(V, pSv))), ad(dh, dVp))
        store_twist(ws.pV, i, pV)
        store_twist(ws.pdV, i, add(pdV, joint_eta_directional(tree, i, pV, v, zero)))


@inline_kernel
def directional_wrenches(tree, base, dq, dF_ext, has_tangent, tangent, dtau, ws):
    """Write pF, children first, and dtau = S^T pF + pS^T F."""
    for i in range(tree.parent.size - 1, 0, -1):
        I, V, F, pV = load_rigid(tree.I, i), load_twist(base.V, i), load_twist(base.F, i), load_twist(ws.pV, i)
        P, pP = momentum(I, V), momentum(I, pV)
        pF = momentum(I, load_twist(ws.pdV, i))
        if has_tangent:
            dI = load_rigid(tangent.I, i)
            pP, pF = add(pP, momentum(dI, V)), add(pF, momentum(dI, load_twist(base.dV, i)))
        pF = sub_dad(sub_dad(pF, pV, P), V, pP)
        if dF_ext.size:
            pF = sub(pF, load_twist(dF_ext, i))
        pF = accumulate_children(tree, i, pF, ws.pF)
        store_twist(ws.pF, i, pF)
        store_joint_force(tree, i, pF, dtau)
        if has_tangent:
            add_screw_tangent_force(tree, i, tangent, F, dtau)
            pF = sub_dad(pF, load_twist(ws.dh, i), F)
        propagate_to_parent(tree, i, dAd_inv(load_pose(base.T, i), add(pF, joint_neg_dad(tree, i, dq, F))), ws.pF)


class Direction(NamedTuple):
    """Arrays of eight directions of one state, or of one direction of eight states, and of their derivatives."""

    motion: np.ndarray    # dq, dv, da and for hybrid dynamics dtau (nv each)
    links: np.ndarray     # (6 n_links,) wrenches in link frames, or empty
    F_ext: np.ndarray     # (6n,) the same on bodies
    tangent: np.ndarray
    dtau: np.ndarray      # (nv,)
    ws: np.ndarray


@inline_kernel
def direction_views(memory, motion, links, tangent, n, nv):
    """Return views into `direction_workspace_size` numbers. motion, links, tangent: sizes of these arrays."""
    return Direction(*split_workspace(memory, (motion, links, 6 * n, tangent, nv)))


@inline_kernel
def load_direction(tree, motion, df_ext, tangent, j, row, D):
    """Copy direction j of state `row`, and the ones after it, to D.

    An array of one direction or one row serves all. Returns a code, and wrenches on bodies or an empty array.
    """
    load_block(motion[min(j, motion.shape[0] - 1)], row, D.motion)
    if D.tangent.size:
        load_block(tangent[min(j, tangent.shape[0] - 1)], row, D.tangent)
    return load_wrenches(tree, df_ext[min(j, df_ext.shape[0] - 1)], row, D.links, D.F_ext)


# batches ----------------------------------------------------------------------------------------------------------------
def inverse_directions_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `inverse_directions` for one state (see `Model.sizes`)."""
    return newton_euler_workspace_size(n, nv) + nq + 3 * nv + 6 * nl + 6 * n + direction_workspace_size(n, nv, nl)


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,:,::1], f8[:,:,::1], "
             "f8[:,:,::1],"
             " f8[:,::1], f8[:,:,::1], i8, i8)", nogil=True)
def inverse_directions(index, constants, memory, q, v, a, f_ext, passive, motion, df_ext, tangent, tau, dtau, first, last):
    """Write derivatives of states first … last - 1 of N along K directions of each, or along N directions of one state.

    Eight states at a time; or eight directions, where q, v, a, f_ext and tau have one row.

    tau      (N, nv)
    dtau     (K, N, nv)
    motion   (K or 1, N or 1, 3 nv): dq, dv, da
    df_ext   (…, 6 n_links), or without columns
    tangent  (…, parameter_tangent_size), or without columns
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows = q.shape[0]
    sizes = (nq, nv, nv, nv, 6 * nl, 6 * n, newton_euler_workspace_size(n, nv))
    tree, parts = tree_views(index, constants), split_workspace(memory, sizes)
    Q, V, A, Tau, links, bodies, room, m = parts
    base, D = newton_euler_workspace(room, n, nv), direction_views(m, motion.shape[2], df_ext.shape[2], tangent.shape[2], n, nv)
    (dq, dv, da, _), ws = split_workspace(D.motion, (nv, nv, nv)), direction_workspace(D.ws, n)
    for k in range(first, last, SIMD_WIDTH):
        if k == first or rows > 1:
            bad_f_ext, F = load_wrenches(tree, f_ext, k, links, bodies)
            code = load_motion(tree, q, v, a, k, Q, V, A) or bad_f_ext
            if code != OK:
                return code
            newton_euler(tree, tree.I, Q, V, A, F, passive and index[4] != 0, Tau, base)
            if not store_block(Tau, tau, k):
                return BAD_RESULT
        for j in range(dtau.shape[0]):
            code, dF = load_direction(tree, motion, df_ext, tangent, j, k, D)
            if code != OK:
                return code
            newton_euler_direction(tree, Q, V, A, passive, base, dq, dv, da, dF, D.tangent, D.dtau, ws)
            if not store_block(D.dtau, dtau[j], k):
                return BAD_RESULT
    return OK


# Forward and hybrid dynamics differentiated along directions (K1 (64), Tables 6-7) --------------------------------------

# The tables propagate the derivative of each articulated inertia, 21 numbers for each body and direction. Their equations are
# linear in the unknown da, and the factors of M are known, so here the same result comes from three steps with vectors only:
#
#     r    = the derivative of inverse dynamics at the solution (Table 5), with da = 0 where it is unknown
#     da   = M_vv^-1 (dtau - r)_v               v: not prescribed; one sweep with the factors U, Psi of Table 4
#     dtau = r_u + M_uv da_v                    u: prescribed; the same sweep
#
# Forward dynamics is the case without prescribed coordinates. The tests implement Tables 6 and 7 literally; both agree up to
# rounding.

@inline_kernel
def hybrid_direction(tree, prescribed, q, v, a, passive, base, factors, D, dF, nv):
    """Complete da and dtau of D.motion: the one that is given is read, the other is written.

    base: `NewtonEulerWorkspace` at the solution; factors: `HybridWorkspace`.
    """
    dq, dv, da, dtau = split_workspace(D.motion, (nv, nv, nv))
    n, zero = tree.parent.size, number_like(dq, 0.0)
    for k in range(nv):
        if not prescribed[k]:
            store(da, k, zero)
    newton_euler_direction(tree, q, v, a, passive, base, dq, dv, da, dF, D.tangent, D.dtau, direction_workspace(D.ws, n))
    x, force, room = split_workspace(D.ws, (nv, nv))                   # Table 5 needs it no more
    ws = sweep_workspace(factors, room, n, nv)
    for k in range(nv):
        if prescribed[k]:
            store(x, k, zero)                                  # r contains their M da
        else:
            store(force, k, load(dtau, k) - load(D.dtau, k))
    solve_articulated(tree, prescribed, base.T, x, force, ws)
    for k in range(nv):
        if prescribed[k]:
            store(dtau, k, load(D.dtau, k) + load(force, k))
        else:
            store(da, k, load(x, k))


def hybrid_direction_workspace_size(n, nv, nl):
    """Return the size of the workspace, which a sweep (12n + nv numbers, after two arrays of nv) and Table 5 (24n) share."""
    return direction_workspace_size(n, nv, nl) + max(0, 3 * nv - 12 * n)


# batches ----------------------------------------------------------------------------------------------------------------
def hybrid_directions_workspace_size(n, nq, nv, nl):
    """Return the size (numbers) of the workspace of `hybrid_directions` for one state (see `Model.sizes`)."""
    state_size = nq + 4 * nv + 6 * nl + 6 * n + hybrid_workspace_size(n, nv) + newton_euler_workspace_size(n, nv)
    return state_size + hybrid_direction_workspace_size(n, nv, nl)


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], b1[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1, f8[:,:,::1],"
             " f8[:,:,::1], f8[:,:,::1], f8[:,:,::1], i8, i8)", nogil=True)
def hybrid_directions(index, constants, memory, prescribed, q, v, a, tau, f_ext, passive, motion, df_ext, tangent, out, first,
                      last):
    """Write derivatives as `inverse_directions` does; complete a and tau in place.

    out     (K, N, 2 nv): [da; dtau]
    motion  (…, 4 nv): dq, dv, da, dtau
    """
    n, nq, nv, nl = index[0], index[1], index[2], index[3]
    rows = q.shape[0]
    tree = tree_views(index, constants)
    parts = split_workspace(memory, (nq, nv, nv, nv, nv, 6 * nl, 6 * n, hybrid_workspace_size(n, nv),
                                     newton_euler_workspace_size(n, nv)))
    Q, V, A, Tau, again, links, bodies, room, other, m = parts
    factors, base = hybrid_workspace(room, n, nv), newton_euler_workspace(other, n, nv)
    D = direction_views(m, 4 * nv, df_ext.shape[2], tangent.shape[2], n, nv)
    for k in range(first, last, SIMD_WIDTH):
        if k == first or rows > 1:
            bad_f_ext, F = load_wrenches(tree, f_ext, k, links, bodies)
            code = load_input(tree, coupling_views(index, constants), prescribed, q, v, a, tau, k, Q, V, A, Tau) or bad_f_ext
            if code == OK:
                code = solution_code(hybrid(tree, prescribed, Q, V, A, Tau, F, passive and index[4] != 0, factors), A, Tau)
            if code != OK:
                return code
            unpack_block(A, a, k)
            unpack_block(Tau, tau, k)
            newton_euler(tree, tree.I, Q, V, A, F, False, again, base)
        for j in range(out.shape[0]):
            code, dF = load_direction(tree, motion, df_ext, tangent, j, k, D)
            if code != OK:
                return code
            hybrid_direction(tree, prescribed, Q, V, A, passive, base, factors, D, dF, nv)
            if not store_block(D.motion[2 * nv:], out[j], k):
                return BAD_RESULT
    return OK
