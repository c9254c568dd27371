"""How a joint's motion, force and passive force change along a direction: of its coordinates, its placement, its screw.

Source: K1 (53)-(63), Lemma 3, Corollaries 1-2.

With T the pose in the parent, dh = T^-1 dT/dp. What the coordinates do to it is S dq, and goes through
the joint's kind; what parameters of the model do is a general twist. The screw of a joint may change in all six components, also
away from its z axis: the frames of the bodies stay as they are, so a change of S is a change of S only.

State (q, v, V, …) may be float64 while what runs along directions (dq, pV, …) is Lanes: eight directions of one state."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.joints.kinds import FRICTION_SPEED, NV, SCREW
from liedyn.joints.motion import joint_motion, screw
from liedyn.lie.lanes import load, sqrt, store
from liedyn.lie.rows import load_pose, load_twist
from liedyn.lie.screw import ad_screw, screw_add
from liedyn.lie.se3 import Ad, Ad_inv, ad, add, dexp, dot, minus_dad, scale, sub, zero6


class Changes(NamedTuple):
    """Rates of the model's parameters along a direction: all empty where they stay as they are."""

    dV0: np.ndarray        # (6,) acceleration of the ground: [0; -g]
    T0: np.ndarray         # (6n,) twists T0^-1 dT0/dp
    S: np.ndarray          # (6n,) screws, in the body frame; ball and free joints have none
    I: np.ndarray          # (10n,) mass, first moment, second moment
    armature: np.ndarray   # (nv,) each
    damping: np.ndarray
    friction: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray


@primitive
def changes_of(x, n, nv):
    """Views into a flat array of `changes_size` numbers, or of none."""
    s = 6 + 22 * n
    return Changes(x[:6], x[6:6 + 6 * n], x[6 + 6 * n:6 + 12 * n], x[6 + 12 * n:s], x[s:s + nv], x[s + nv:s + 2 * nv],
                   x[s + 2 * nv:s + 3 * nv], x[s + 3 * nv:s + 4 * nv], x[s + 4 * nv:s + 5 * nv])


def changes_size(n, nv): return 6 + 22 * n + 5 * nv


# coordinates ------------------------------------------------------------------------------------------------------
@primitive
def joint_less(tree, i, V, v):
    """V - S v: what the parent gives to V (or to dV, with a for v)."""
    if tree.kind[i] == SCREW:
        return screw_add(V, screw(tree, i), -load(v, tree.iv[i]))
    return sub(V, joint_motion(tree, i, v))


@primitive
def joint_eta_along(tree, i, pV, v, zero):
    """ad_pV S v, where pV runs along directions and v does not; `zero` gives the kind of number."""
    if tree.kind[i] == SCREW:
        w, u = ad_screw(pV, screw(tree, i), load(v, tree.iv[i]))
        return (w[0], w[1], zero), (u[0], u[1], zero)
    return ad(pV, joint_motion(tree, i, v))


@primitive
def joint_minus_dad(tree, i, dq, F):
    """-ad*_{S dq} F (K1 (60))."""
    if tree.kind[i] == SCREW:
        S, x = screw(tree, i), load(dq, tree.iv[i])
        (m, f), a, b = F, S[0] * x, S[1] * x
        zero = a - a
        return (-(a * m[1] + b * f[1]), a * m[0] + b * f[0], zero), (-(a * f[1]), a * f[0], zero)
    return minus_dad(joint_motion(tree, i, dq), F)


# parameters of the model ---------------------------------------------------------------------------------------------
@primitive
def placement_change(tree, i, T, q, changes):
    """dh of the joint's placement and screw: Ad_{M^-1} of T0^-1 dT0, and of M = exp(S q) the right Jacobian on dS q."""
    dh = Ad_inv(T, Ad(load_pose(tree.T0, i), load_twist(changes.T0, i)))
    if tree.kind[i] == SCREW:
        S, x = screw(tree, i), load(q, tree.iq[i])
        zero = x - x
        back = (zero, zero, -(S[0] * x)), (zero, zero, -(S[1] * x))
        return add(dh, dexp(back, scale(x, load_twist(changes.S, i))))
    return dh


@primitive
def screw_change(tree, i, changes, x, zero):
    """dS x of a screw joint; ball and free joints keep their S."""
    if tree.kind[i] == SCREW:
        return scale(load(x, tree.iv[i]), load_twist(changes.S, i))
    return zero6(zero)


@primitive
def add_screw_change_force(tree, i, changes, F, tau):
    """tau += dS^T F."""
    if tree.kind[i] == SCREW:
        k = tree.iv[i]
        store(tau, k, load(tau, k) + dot(load_twist(changes.S, i), F))


# passive forces ---------------------------------------------------------------------------------------------------
@primitive
def less_passive_change(tree, q, v, dq, dv, changes, tau):
    """tau -= what springs, damping and friction give more along the direction (see `joints.passive`)."""
    for i in range(1, tree.parent.size):
        for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
            x = load(v, k)
            r = 1.0 / sqrt(x * x + FRICTION_SPEED * FRICTION_SPEED)
            slope = load(tree.damping, k) + load(tree.friction, k) * (FRICTION_SPEED * FRICTION_SPEED * (r * r * r))
            force = load(tau, k) + slope * load(dv, k)
            if changes.damping.size:
                force = force + (load(changes.damping, k) * x + load(changes.friction, k) * (x * r))
            if tree.kind[i] == SCREW:
                force = force + load(tree.stiffness, k) * load(dq, k)
                if changes.rest.size:
                    force = force - load(tree.stiffness, k) * load(changes.rest, k)
                    force = force + load(changes.stiffness, k) * (load(q, tree.iq[i]) - load(tree.rest, k))
            store(tau, k, force)
