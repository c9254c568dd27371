"""Inverse, forward and hybrid dynamics and their derivatives with respect to a scalar p as printed by Kim 2012 (v1.01).

Plain NumPy, one state, 6x6 matrices, to read next to the paper and as a reference: Tables 6 and 7 propagate derivatives of
articulated inertias, the kernels propagate vectors instead. Names are the paper's; pX is dX/dp. A joint has S(q) (6, k) and
its rate dS, and all of its coordinates are prescribed or none. Beyond the paper, rotors add to S^T I S and passive forces to tau.

Source: K1 (64), Tables 2-7.
"""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.kinematics import joint_motion
from liedyn.errors import ShapeError, summarized
from liedyn.joints.joint_model import tree_views
from liedyn.model.model import Model
from liedyn.model.model_joint import ModelJoint
from liedyn.model.spatial import adjoint, inertia_from_link, inertia_matrix, inverse, transform_inertia
from liedyn.model.spatial import bracket as ad


def kim_tables(model: Model, q: ArrayLike, v: ArrayLike, *, dq: ArrayLike | None = None, dv: ArrayLike | None = None,
               f_ext: ArrayLike | None = None, df_ext: ArrayLike | None = None) -> KimTables:
    """Return the tables of one state of a robot, which depends on p by dq, dv (nv,) and df_ext; their defaults are zero.

    q (nq,), v (nv,), f_ext (n_links, 6): as in `inverse_dynamics_directional`. Passive forces are zero; they, and derivatives
    of the robot's parameters with respect to p, can be set in the result and its bodies.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.kim_tables(model, q, v).table_2([0.0, 1.0]).round(3)          # as inverse_dynamics
    array([5.786, 0.724])
    """
    q, v = as_array(q, "q", (model.nq,)), as_array(v, "v", (model.nv,))
    dq, dv = (np.zeros(model.nv) if x is None else as_array(x, name, (model.nv,)) for x, name in ((dq, "dq"), (dv, "dv")))
    F, dF = (np.zeros((len(model.link_names), 6)) if x is None else as_array(x, name, (len(model.link_names), 6))
             for x, name in ((f_ext, "f_ext"), (df_ext, "df_ext")))
    if q.ndim > 1 or v.ndim > 1 or dq.ndim > 1 or dv.ndim > 1 or F.ndim > 2 or dF.ndim > 2:
        raise ShapeError("the tables are computed for one state: leading axes are not supported")
    bodies = [_body(model, joint, q[joint.q], v[joint.v], dq[joint.v], dv[joint.v], F, dF) for joint in model.joints]
    armature = tree_views.py_func(model.index, model.constants).armature
    return KimTables(bodies, np.r_[np.zeros(3), -model.gravity], v, dv, armature)


@summarized
@dataclass(eq=False)
class Body:
    """A body and the joint that moves it, as input of the tables.

    parent          index of the parent among the bodies, which precedes the index of the body; -1: the ground
    at              slice of v: the joint's coordinates
    T               (4, 4) pose in the parent; h = T^-1 dT/dp (6,)
    S, dS           (6, k) the joint's screws in the body, and their rate; pS, pdS
    I, F_ext        (6, 6) inertia, (6,) external wrench; pI, pF_ext
    """

    parent: int
    at: slice
    T: Array
    h: Array
    S: Array
    pS: Array
    dS: Array
    pdS: Array
    I: Array
    F_ext: Array
    pI: Array = field(default_factory=lambda: np.zeros((6, 6)))
    pF_ext: Array = field(default_factory=lambda: np.zeros(6))


@summarized
@dataclass(eq=False)
class KimTables:
    """Tables 2 to 7 for bodies at a velocity v (nv,), pv = dv/dp.

    dV0                  (6,) acceleration of the ground, [0; -g]; pdV0
    rotor, passive       (nv,) armature, and forces of springs, damping and friction, which add to tau; p_rotor, p_passive
    """

    bodies: list[Body]
    dV0: Array
    v: Array
    pv: Array
    rotor: Array
    pdV0: Array = field(default_factory=lambda: np.zeros(6))
    p_rotor: Array = field(default_factory=lambda: np.zeros(1))
    passive: Array = field(default_factory=lambda: np.zeros(1))
    p_passive: Array = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        zero = np.zeros(len(self.v))
        self.p_rotor, self.passive, self.p_passive = self.p_rotor + zero, self.passive + zero, self.p_passive + zero

    # values -----------------------------------------------------------------------------------------------------------
    def table_2(self, a: ArrayLike) -> Array:
        """Return tau for accelerations a (nv,): inverse dynamics (K1 Table 2)."""
        return self.table_5(a, np.zeros(len(self.v)))[0]

    def table_3(self, tau: ArrayLike) -> Array:
        """Return a for generalized forces tau (nv,): forward dynamics (K1 Table 3)."""
        return self.table_6(tau, np.zeros(len(self.v)))[0]

    def table_4(self, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike) -> tuple[Array, Array]:
        """Return all of a and tau: hybrid dynamics (K1 Table 4). prescribed (nv,): whether the input is a, else tau."""
        return self.table_7(a, tau, prescribed, np.zeros(len(self.v)), np.zeros(len(self.v)))[:2]

    # derivatives ------------------------------------------------------------------------------------------------------
    def table_5(self, a: ArrayLike, pa: ArrayLike) -> tuple[Array, Array]:
        """Return tau and dtau/dp: derivative of inverse dynamics (K1 Table 5)."""
        a, pa = np.asarray(a, dtype=float), np.asarray(pa, dtype=float)
        links = self._velocity_pass()
        for b in links:                                                                                 # forward
            x, px, dVp = a[b.at], pa[b.at], b.Ad @ b.parent_body.dV
            b.dV = dVp + b.S @ x + b.eta
            b.pdV = b.Ad @ b.parent_body.pdV - ad(b.h) @ dVp + b.pS @ x + b.S @ px + b.p_eta
            b.F, b.pF = b.I @ b.dV + b.B, b.pI @ b.dV + b.I @ b.pdV + b.pB
        tau, p_tau = self._motor_forces(a, pa)
        for b in links[::-1]:                                                                           # backward
            tau[b.at] += b.S.T @ b.F
            p_tau[b.at] += b.pS.T @ b.F + b.S.T @ b.pF
            b.parent_body.F = b.parent_body.F + b.Ad.T @ b.F
            b.parent_body.pF = b.parent_body.pF + b.Ad.T @ (b.pF - ad(b.h).T @ b.F)                                 # (60)
        return tau, p_tau

    def table_6(self, tau: ArrayLike, p_tau: ArrayLike) -> tuple[Array, Array]:
        """Return a and da/dp: derivative of forward dynamics (K1 Table 6)."""
        none = np.zeros(len(self.v))
        return self.table_7(none, tau, none > 0, none, p_tau)[::2]

    def table_7(self, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, pa: ArrayLike,
                p_tau: ArrayLike) -> tuple[Array, Array, Array, Array]:
        """Return all of a, tau, da/dp and dtau/dp: derivative of hybrid dynamics (K1 Table 7).

        The rows for joints that are not prescribed are those of Table 6, and the values are those of Table 4.
        """
        a, tau, pa, p_tau = (np.array(x, dtype=float) for x in (a, tau, pa, p_tau))
        mask, links = np.asarray(prescribed, dtype=bool), self._velocity_pass()
        for b in links:
            b.prescribed = bool(mask[b.at].all())                                                 # a fixed joint, too
            if mask[b.at].any() and not b.prescribed:
                raise ShapeError("all coordinates of a joint must be prescribed, or none of them")
            b.AI, b.pAI, b.AB, b.pAB = b.I, b.pI, b.B, b.pB
        for b in links[::-1]:                                                                           # backward
            if b.prescribed:
                _eliminate_prescribed(b, a[b.at], pa[b.at])
            else:
                _eliminate_free(b, (tau + self.passive)[b.at], (p_tau + self.p_passive)[b.at], np.diag(self.rotor[b.at]),
                                np.diag(self.p_rotor[b.at]))
            turn = b.Pi @ ad(b.h)
            b.parent_body.AI = b.parent_body.AI + b.Ad.T @ b.Pi @ b.Ad
            b.parent_body.AB = b.parent_body.AB + b.Ad.T @ b.beta
            b.parent_body.pAI = b.parent_body.pAI + b.Ad.T @ (b.pPi - turn - turn.T) @ b.Ad
            b.parent_body.pAB = b.parent_body.pAB + b.Ad.T @ (b.p_beta - ad(b.h).T @ b.beta)
        for b in links:                                                                                 # forward again
            dVp = b.Ad @ b.parent_body.dV + b.eta
            pdVp = b.Ad @ b.parent_body.pdV - ad(b.h) @ b.Ad @ b.parent_body.dV + b.p_eta
            if not b.prescribed:
                rest = b.tau - b.S.T @ (b.AI @ dVp + b.AB)
                p_rest = b.p_tau - b.pS.T @ (b.AI @ dVp + b.AB) - b.S.T @ (b.pAI @ dVp + b.AI @ pdVp + b.pAB)
                a[b.at], pa[b.at] = b.Psi @ rest, b.pPsi @ rest + b.Psi @ p_rest
            b.dV, b.pdV = dVp + b.S @ a[b.at], pdVp + b.pS @ a[b.at] + b.S @ pa[b.at]
            b.F, b.pF = b.AI @ b.dV + b.AB, b.pAI @ b.dV + b.AI @ b.pdV + b.pAB
        motors, p_motors = self._motor_forces(a, pa)
        for b in (b for b in links if b.prescribed):
            tau[b.at] = b.S.T @ b.F + motors[b.at]
            p_tau[b.at] = b.pS.T @ b.F + b.S.T @ b.pF + p_motors[b.at]
        return a, tau, pa, p_tau

    def _velocity_pass(self) -> list[_BodyState]:
        """Return the first recursion of each table: V, eta = ad_V S v + dS v, B = -ad*_V I V - F_ext, and their derivatives."""
        links: list[_BodyState] = []
        ground = _BodyState(_ground())
        ground.dV, ground.pdV = self.dV0, self.pdV0
        for body in self.bodies:
            b = _BodyState(body, links[body.parent] if body.parent >= 0 else ground)
            v, pv, Vp = self.v[b.at], self.pv[b.at], b.Ad @ b.parent_body.V
            b.V = Vp + b.S @ v
            b.pV = b.Ad @ b.parent_body.pV - ad(b.h) @ Vp + b.pS @ v + b.S @ pv
            b.eta = ad(b.V) @ b.S @ v + b.dS @ v
            b.p_eta = ad(b.pV) @ b.S @ v + ad(b.V) @ (b.pS @ v + b.S @ pv) + b.pdS @ v + b.dS @ pv
            b.B = -ad(b.V).T @ b.I @ b.V - b.F_ext
            b.pB = -ad(b.pV).T @ b.I @ b.V - ad(b.V).T @ (b.pI @ b.V + b.I @ b.pV) - b.pF_ext
            links.append(b)
        return links

    def _motor_forces(self, a: Array, pa: Array) -> tuple[Array, Array]:
        return self.rotor * a - self.passive, self.p_rotor * a + self.rotor * pa - self.p_passive


def _eliminate_prescribed(b: _BodyState, x: Array, px: Array) -> None:
    """Write Pi and beta of a joint with the prescribed acceleration x."""
    b.Pi, b.pPi = b.AI, b.pAI
    b.beta = b.AB + b.AI @ (b.eta + b.S @ x)
    b.p_beta = b.pAB + b.pAI @ (b.eta + b.S @ x) + b.AI @ (b.p_eta + b.pS @ x + b.S @ px)


def _eliminate_free(b: _BodyState, tau: Array, p_tau: Array, rotor: Array, p_rotor: Array) -> None:
    """Write Psi, Pi and beta of a joint with the force tau."""
    b.tau, b.p_tau = tau, p_tau
    U = b.AI @ b.S
    b.Psi = np.asarray(np.linalg.inv(b.S.T @ U + rotor), dtype=np.float64)
    once = b.pS.T @ U
    b.pPsi = -b.Psi @ (b.S.T @ b.pAI @ b.S + once + once.T + p_rotor) @ b.Psi
    b.Pi = b.AI - U @ b.Psi @ U.T
    once = (b.pAI @ b.S + b.AI @ b.pS) @ b.Psi @ U.T
    b.pPi = b.pAI - (U @ b.pPsi @ U.T + once + once.T)
    rest = tau - b.S.T @ (b.AI @ b.eta + b.AB)
    p_rest = p_tau - b.pS.T @ (b.AI @ b.eta + b.AB) - b.S.T @ (b.pAI @ b.eta + b.AI @ b.p_eta + b.pAB)
    b.beta = b.AB + b.AI @ (b.eta + b.S @ b.Psi @ rest)
    b.p_beta = (b.pAB + b.pAI @ (b.eta + b.S @ b.Psi @ rest)
                + b.AI @ (b.p_eta + (b.pS @ b.Psi + b.S @ b.pPsi) @ rest + b.S @ b.Psi @ p_rest))


class _BodyState(Body):
    """A body and its quantities in a table, by the paper's names. The ground is its own parent."""

    def __init__(self, body: Body, parent_body: _BodyState | None = None):
        vars(self).update(vars(body))
        self.parent_body, self.prescribed = parent_body or self, False
        self.Ad = adjoint(inverse(body.T))                       # Ad_{T^-1}
        self.V = self.pV = self.dV = self.pdV = self.eta = self.p_eta = np.zeros(6)
        self.F = self.pF = self.B = self.pB = self.AB = self.pAB = self.beta = self.p_beta = np.zeros(6)
        self.AI = self.pAI = self.Pi = self.pPi = np.zeros((6, 6))
        self.tau = self.p_tau = np.zeros(len(body.S[0]))
        self.Psi = self.pPsi = np.zeros((len(self.tau), len(self.tau)))


def _ground() -> Body:
    """Return the ground: a body without joint and inertia."""
    twist, screws = np.zeros(6), np.zeros((6, 0))
    return Body(-1, slice(0), np.eye(4), twist, screws, screws, screws, screws, np.zeros((6, 6)), twist)


# from a model -----------------------------------------------------------------------------------------------------------
def _body(model: Model, joint: ModelJoint, q: Array, v: Array, dq: Array, dv: Array, F: Array, dF: Array) -> Body:
    """Return the body of a joint: its child link and the links fixed to it, in the child's frame."""
    pose, S, dS = joint_motion(model, joint.name, q, v)
    pS, pdS = np.zeros((6, len(v))), np.zeros((6, len(v)))
    if joint.screws is not None:
        pS = joint_motion(model, joint.name, q, dq)[2]
        for j in range(len(v)):                                     # dS_j = -ad S_j of the screws after it, times v
            later = slice(j + 1, None)
            moves, p_moves = S[:, later] @ v[later], pS[:, later] @ v[later] + S[:, later] @ dv[later]
            pdS[:, j] = -ad(p_moves) @ S[:, j] - ad(moves) @ pS[:, j]
    frame = inverse(model.link_pose[model.link_index(joint.child)])
    links = {k: frame @ model.link_pose[k] for k in np.flatnonzero(model.link_body == joint.body)}
    robot = {link.name: link for link in model.description.links}
    inertias = (inertia_matrix(transform_inertia(X, inertia_from_link(robot[model.link_names[k]]))) for k, X in links.items())
    I = sum(inertias, np.zeros((6, 6)))
    wrench, p_wrench = (sum((adjoint(inverse(X)).T @ f[k] for k, X in links.items()), np.zeros(6)) for f in (F, dF))
    parent, place = _parent(model, joint)
    return Body(parent, joint.v, place @ pose, S @ dq, S, pS, dS, pdS, I, wrench, pF_ext=p_wrench)


def _parent(model: Model, joint: ModelJoint) -> tuple[int, Array]:
    """Return the index of the parent body, and the pose of the parent link in it."""
    if joint.parent not in model.link_names:
        return -1, np.eye(4)
    k = model.link_index(joint.parent)
    for i, other in enumerate(model.joints):
        if other.body == model.link_body[k]:
            return i, inverse(model.link_pose[model.link_index(other.child)]) @ model.link_pose[k]
    return -1, model.link_pose[k]
