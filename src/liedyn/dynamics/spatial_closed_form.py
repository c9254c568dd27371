"""The equations of motion and their first time derivative in closed form, in spatial coordinates, and those of a floating base.

Source: Ali, Gabellieri and Franchi, AGF (10)-(19), (31)-(40), Proposition 1, Lemma 1, Table 2.

Plain NumPy for one state with dense block matrices, as a readable reference like `closed_form` for the body form of Park, Bobrow
and Ploen. All twists, screws, inertias and wrenches are in world axes about the world's origin, so that the matrix of sums along
the tree contains ones and zeros only:

    S = diag(S_i), S_i = Ad_{T_i} (screws of body i)     A = diag(ad_{V_i})        dS/dt = A S
    J = L S, L = (1 - P)^-1                              B = diag(Ad*_{T_i^-1} I_i Ad_{T_i^-1})      dB/dt = -A^T B - B A
    V = J v,  tau = J^T (d/dt(B V) - B G - W),           G = [0; g] of every body, W the external wrenches

which gives M = J^T B J, C = J^T (B dJ - A^T B J), and so on. The available text of AGF has lost its formulas. These were derived
again for joints of any kind: S_i has one column per coordinate.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Array, ArrayLike, BaseFrame, Integers, Mask
from liedyn.dynamics.batching.arrays import LOCAL, WORLD, as_array, check_frame, common_leading_axes
from liedyn.dynamics.batching.calls import check_finite, check_quaternion
from liedyn.dynamics.closed_form import block, block_diagonal, closed_form, finite_single_state, skew_forms
from liedyn.errors import ConfigurationError, ShapeError
from liedyn.immutable import Immutable, read_only_property
from liedyn.kernels.batch_blocks import QUATERNION_TOLERANCE
from liedyn.model.model import Model
from liedyn.model.spatial import adjoint, bracket, inertia_matrix, inverse, rotation


def spatial_closed_form(model: Model, q: ArrayLike, *, base_frame: BaseFrame = "local") -> SpatialClosedForm:
    """The equations of motion of one state in spatial form, and their first time derivative: see `SpatialClosedForm`.

    Parameters
    ----------
    q : (nq,) array
        One state [rad | m].
    base_frame : "local" or "world"
        The coordinates of a floating base in v, a, tau: its twist and wrench in its own frame, as everywhere in liedyn, or in the
        world's, its right-invariant (spatial) twist and spatial wrench, as in AGF (see `spatial_twists`).

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> f = ld.spatial_closed_form(model, [0.3, -0.2])
    >>> np.allclose(f.J.T @ f.B @ f.J, ld.mass_matrix(model, [0.3, -0.2]))
    True
    """
    check_frame(base_frame, "base_frame", (LOCAL, WORLD))
    if base_frame == WORLD and model.base != "floating":
        raise ShapeError('base_frame="world" requires a floating base; the base of this robot is fixed')
    body = closed_form(model, q)
    poses: list[Array] = []
    for p, offset, motion in zip(body.parent, body.offset, body.motion, strict=True):
        poses.append((poses[p] if p >= 0 else np.eye(4)) @ offset @ motion)
    screws = [adjoint(T) @ S for T, S in zip(poses, body.screws, strict=True)]
    if base_frame == WORLD:
        screws[0] = np.eye(6)
    return SpatialClosedForm(
        parent=body.parent, columns=body.columns, poses=np.reshape(poses, (-1, 4, 4)), screws=tuple(screws),
        constant=np.arange(model.nv) < (6 if base_frame == WORLD else 0), rigid=body.rigid, armature=body.armature,
        gravity=body.gravity, link_block=model.link_body - 1)


@dataclass(frozen=True, eq=False, repr=False)
class SpatialClosedForm(Immutable):
    """One state of a robot as block matrices, N blocks. Passive forces are not in it; rotors (armature) are.

    parent      (N,) block of the parent, -1 for the ground; blocks are bodies, as in `ClosedForm`
    columns     slices of v: the coordinates of block i
    poses       (N, 4, 4) of the blocks in the world: of the links that `ClosedForm.links` names
    screws      (6, k_i) S_i: screws of block i, spatial, at this instant
    constant    (nv,) bool: coordinates with a constant screw, those of a base in spatial coordinates
    rigid       (N, 10) mass, first and second moment of the body in its frame
    armature    (nv,), gravity (3,) m/s^2
    link_block  (n_links,) block of a link, -1 for the ground

    v, a, jerk (nv,): velocity and its component-wise derivatives. wrenches, wrench_rates (n_links, 6): spatial wrenches [m; f] on
    links, along world axes about the world's origin, and their component-wise rates.

    Matrices of the body form `ClosedForm` (PL) are related to these by `X` = diag(Ad_{T_i}):
    S = X S_body, L = X G X^-1, J = X G S_body, B = X^-T J_body X^-1, and gravity -G = X G P0 dV_0.
    """

    parent: Integers
    columns: tuple[slice, ...]
    poses: Array
    screws: tuple[Array, ...]
    constant: Mask
    rigid: Array
    armature: Array
    gravity: Array
    link_block: Integers

    def __repr__(self) -> str:
        return f"<SpatialClosedForm: {len(self.parent)} blocks, nv {len(self.armature)}>"

    # factors ----------------------------------------------------------------------------------------------------
    @read_only_property
    def P(self) -> Array:
        """(6N, 6N) parents: the unit matrix at block (i, parent of i). Its transpose is that of the children (AGF (31))."""
        N = len(self.parent)
        tree = np.zeros((N, N))
        moved = self.parent >= 0
        tree[np.flatnonzero(moved), self.parent[moved]] = 1
        return np.asarray(np.kron(tree, np.eye(6)), dtype=np.float64)

    @read_only_property
    def L(self) -> Array:
        """(6N, 6N) (1 - P)^-1 = 1 + P + P^2 + …: ones where block j is i or above it."""
        out = np.eye(len(self.P))
        for i, p in enumerate(self.parent):
            if p >= 0:
                out[block(i)] += out[block(p)]
        return out

    @read_only_property
    def S(self) -> Array:
        """(6N, nv) block-diagonal screws."""
        out = np.zeros((6 * len(self.parent), len(self.armature)))
        for i, (screws, columns) in enumerate(zip(self.screws, self.columns, strict=True)):
            out[block(i), columns] = screws
        return out

    @read_only_property
    def J(self) -> Array:
        """(6N, nv) L S: spatial twists of all bodies are J v (AGF (33))."""
        return self.L @ self.S

    @read_only_property
    def B(self) -> Array:
        """(6N, 6N) block-diagonal spatial inertias (AGF (60))."""
        back = adjoint(inverse(self.poses))
        return block_diagonal(np.swapaxes(back, -1, -2) @ inertia_matrix(self.rigid) @ back)

    @read_only_property
    def X(self) -> Array:
        """(6N, 6N) block-diagonal Ad_{T_i}: from body coordinates to spatial ones."""
        return block_diagonal(adjoint(self.poses))

    @property
    def G(self) -> Array:
        """(6N,) gravity of every body (AGF (36), (63))."""
        return np.tile(np.r_[0, 0, 0, self.gravity], len(self.parent))

    # their rates ------------------------------------------------------------------------------------------------
    def twists(self, v: ArrayLike) -> Array:
        """(6N,) V = J v."""
        return self.J @ self._rates("v", v)

    def A(self, v: ArrayLike) -> Array:
        """(6N, 6N) block-diagonal ad of the bodies' twists."""
        return _brackets(self.twists(v))

    def S_rate(self, v: ArrayLike) -> Array:
        """(6N, nv) dS/dt = A S (AGF (6), (7))."""
        return self.A(v) @ self.S * ~self.constant

    def J_rate(self, v: ArrayLike) -> Array:
        """(6N, nv) dJ/dt."""
        return self.L @ self.S_rate(v)

    def B_rate(self, v: ArrayLike) -> Array:
        """(6N, 6N) dB/dt = -A^T B - B A (AGF (61))."""
        half = self.B @ self.A(v)
        return -half - half.T

    def twist_rates(self, v: ArrayLike, a: ArrayLike) -> Array:
        """(6N,) dV/dt = J a + dJ v (AGF (34), (35))."""
        return self.J @ self._rates("a", a) + self.J_rate(v) @ self._rates("v", v)

    def A_rate(self, v: ArrayLike, a: ArrayLike) -> Array:
        """(6N, 6N) dA/dt: ad of dV/dt."""
        return _brackets(self.twist_rates(v, a))

    def J_second_rate(self, v: ArrayLike, a: ArrayLike) -> Array:
        """(6N, nv) d^2J/dt^2 = L (dA + A A) S (AGF (39), (40))."""
        A = self.A(v)
        return self.L @ ((self.A_rate(v, a) + A @ A) @ self.S * ~self.constant)

    # order 0: M a + C v + g = tau + tau_ext ------------------------------------------------------------------------
    @property
    def mass_matrix(self) -> Array:
        """(nv, nv) J^T B J, and armature on the diagonal (AGF (11))."""
        return self.J.T @ self.B @ self.J + np.diag(self.armature)

    def coriolis_matrix(self, v: ArrayLike) -> Array:
        """(nv, nv) J^T (B dJ - A^T B J): C v are the Coriolis and centrifugal forces, and dM/dt - 2C is skew.

        Source: AGF (21), (32), Lemma 1."""
        return self.J.T @ self._H(v)

    def ploen_coriolis_matrix(self, v: ArrayLike) -> Array:
        """(nv, nv) Ploen's matrix (37) from spatial factors: J^T (B (dJ - A J) + X^-T C~ X^-1 J).

        It differs from Lemma 1 by the skew form of each body: Ploen's C~ there, I ad_V - ad_V^T I here. Both are skew and give
        -ad*_V I V for the twist V itself. The floating base's coordinates must be the body ones."""
        if self.constant.any():
            raise ShapeError("Ploen's matrix requires body coordinates of the base, got base_frame='world'")
        to_body = adjoint(inverse(self.poses))
        back, screws = block_diagonal(to_body), [X @ S for X, S in zip(to_body, self.screws, strict=True)]
        form = back.T @ skew_forms(self.rigid, (back @ self.twists(v)).reshape(-1, 6), screws) @ back
        return self.J.T @ (self.B @ (self.J_rate(v) - self.A(v) @ self.J) + form @ self.J)

    @property
    def gravity_force(self) -> Array:
        """(nv,) -J^T B G (AGF (12))."""
        return -self.J.T @ self.B @ self.G

    def external_force(self, wrenches: ArrayLike) -> Array:
        """(nv,) J^T W (AGF (13))."""
        return self.J.T @ self._on_bodies("wrenches", wrenches)

    def inverse_dynamics(self, v: ArrayLike, a: ArrayLike, wrenches: ArrayLike | None = None) -> Array:
        """(nv,) tau = M a + C v + g - tau_ext (AGF (10), (37))."""
        v, a = self._rates("v", v), self._rates("a", a)
        tau = self.mass_matrix @ a + self.coriolis_matrix(v) @ v + self.gravity_force
        return tau if wrenches is None else tau - self.external_force(wrenches)

    # order 1: M jerk + (dM + C) a + dC v + dg = dtau + dtau_ext ----------------------------------------------------------
    def mass_matrix_rate(self, v: ArrayLike) -> Array:
        """(nv, nv) dM/dt (AGF (15))."""
        half = self.J.T @ self.B @ self.J_rate(v)
        return half + half.T + self.J.T @ self.B_rate(v) @ self.J

    def coriolis_matrix_rate(self, v: ArrayLike, a: ArrayLike) -> Array:
        """(nv, nv) dC/dt of Lemma 1's C along v, a (AGF (16), (17), (38))."""
        A, dA, dJ, dB = self.A(v), self.A_rate(v, a), self.J_rate(v), self.B_rate(v)
        dH = dB @ dJ + self.B @ self.J_second_rate(v, a) - (dA.T @ self.B + A.T @ dB) @ self.J - A.T @ self.B @ dJ
        return dJ.T @ self._H(v) + self.J.T @ dH

    def gravity_force_rate(self, v: ArrayLike) -> Array:
        """(nv,) dg/dt (AGF (18))."""
        return -(self.J_rate(v).T @ self.B + self.J.T @ self.B_rate(v)) @ self.G

    def external_force_rate(self, v: ArrayLike, wrenches: ArrayLike, wrench_rates: ArrayLike) -> Array:
        """(nv,) d(tau_ext)/dt = dJ^T W + J^T dW (AGF (19))."""
        return (self.J_rate(v).T @ self._on_bodies("wrenches", wrenches)
                + self.J.T @ self._on_bodies("wrench_rates", wrench_rates))

    def inverse_dynamics_rate(self, v: ArrayLike, a: ArrayLike, jerk: ArrayLike, wrenches: ArrayLike | None = None,
                              wrench_rates: ArrayLike | None = None) -> Array:
        """(nv,) dtau/dt = M jerk + (dM + C) a + dC v + dg - d(tau_ext) (AGF (14), (38)-(40)).

        Without wrench_rates, wrenches are constant in the world.
        """
        v, a, jerk = self._rates("v", v), self._rates("a", a), self._rates("jerk", jerk)
        dtau = (self.mass_matrix @ jerk + (self.mass_matrix_rate(v) + self.coriolis_matrix(v)) @ a
                + self.coriolis_matrix_rate(v, a) @ v + self.gravity_force_rate(v))
        if wrenches is None and wrench_rates is None:
            return dtau
        none = np.zeros((len(self.link_block), 6))
        return dtau - self.external_force_rate(v, none if wrenches is None else wrenches,
                                               none if wrench_rates is None else wrench_rates)

    def _H(self, v: ArrayLike) -> Array:
        """(6N, nv) B dJ - A^T B J."""
        return self.B @ self.J_rate(v) - self.A(v).T @ self.B @ self.J

    def _on_bodies(self, name: str, wrenches: ArrayLike) -> Array:
        """(6N,) W: those of the links that each body carries, summed."""
        on_links = finite_single_state(name, wrenches, len(self.link_block), 6)
        out = np.zeros((len(self.parent), 6))
        on = self.link_block >= 0
        np.add.at(out, self.link_block[on], on_links[on])
        return out.ravel()

    def _rates(self, name: str, x: ArrayLike) -> Array:
        return finite_single_state(name, x, *self.armature.shape)


def _brackets(twists: Array) -> Array:
    return block_diagonal(bracket(twists.reshape(-1, 6)))


# A floating base's twist and wrench, and their time derivatives of any order, between body and spatial coordinates ------

# Body coordinates are those of liedyn everywhere: in the base's frame, dT/dt = T [V]. Spatial (right-invariant) ones are in the
# world's frame about the world's origin, dT/dt = [V_s] T, as Ali, Gabellieri and Franchi use them:
#
#     V_s = Ad_T V,    F_s = Ad*_{T^-1} F,    d(Ad_T)/dt = Ad_T ad_V
#
# Derivatives are component by component, so those of V_s are not Ad_T of those of V from the second on. All computations use
# truncated Taylor coefficients, in which a product of functions is a Cauchy sum.

def spatial_twists(base: ArrayLike, twists: ArrayLike) -> Array:
    """Spatial twist of a floating base and its derivatives, from those of its body twist.

    Parameters
    ----------
    base : (..., 4, 4) or (..., 7) array
        Pose of the base in the world, or its coordinates px py pz qx qy qz qw [m].
    twists : (..., k, 6) array
        Body twist [w; v] and its first k - 1 time derivatives, component by component [rad/s | m/s, then per s each].

    Returns
    -------
    (..., k, 6) array
        The same of the spatial twist ``Ad_T V``: v is the velocity of the point of the base that is at the world's origin.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Source: AGF (20), Remark 1. `body_twists` is the inverse.

    Examples
    --------
    >>> base = [1, 0, 0, 0, 0, 0, 1]             # one metre along x
    >>> ld.spatial_twists(base, [[0, 0, 2.0, 0, 0, 0]]).round(3)
    array([[ 0.,  0.,  2.,  0., -2.,  0.]])
    """
    T, V, _ = _arguments(base, twists)
    return _derivatives(_product(_transport(adjoint(T), V, V.shape[-2]), V))


def body_twists(base: ArrayLike, twists: ArrayLike) -> Array:
    """Body twist of a floating base and its derivatives, from those of its spatial twist: the inverse of `spatial_twists`.

    base (..., 4, 4) or (..., 7): pose, as in `spatial_twists`; twists (..., k, 6): spatial twist and its derivatives.
    Returns (..., k, 6). Raises ShapeError, ConfigurationError.

    Examples
    --------
    >>> base = [1, 0, 0, 0, 0, 0, 1]             # one metre along x
    >>> ld.body_twists(base, [[0, 0, 2.0, 0, -2.0, 0]]).round(3)
    array([[0., 0., 2., 0., 0., 0.]])
    """
    T, V, _ = _arguments(base, twists)          # T^-1 has the body twist -V_s and the spatial twist -V
    return _derivatives(_product(_transport(adjoint(inverse(T)), -V, V.shape[-2]), V))


def spatial_wrenches(base: ArrayLike, twists: ArrayLike, wrenches: ArrayLike) -> Array:
    """Spatial wrench on a floating base and its derivatives, from those of the body wrench.

    Parameters
    ----------
    base : (..., 4, 4) or (..., 7) array
        As in `spatial_twists`.
    twists : (..., k - 1 or more, 6) array
        Body twist and its derivatives; those from the (k - 1)st on are ignored.
    wrenches : (..., k, 6) array
        Body wrench [m; f] and its first k - 1 time derivatives, component by component [N m | N, then per s each].

    Returns
    -------
    (..., k, 6) array
        The same of the spatial wrench ``Ad*_{T^-1} F``: world axes, moment about the world's origin.

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> base = [1, 0, 0, 0, 0, 0, 1]             # one metre along x
    >>> ld.spatial_wrenches(base, np.zeros((0, 6)), [[0, 0, 0, 0, 0, 5.0]]).round(3)
    array([[ 0., -5.,  0.,  0.,  0.,  5.]])
    """
    T, V, F = _arguments(base, twists, wrenches)
    return _derivatives(_product(_dual(_transport(adjoint(T), V, F.shape[-2])), F))


def body_wrenches(base: ArrayLike, twists: ArrayLike, wrenches: ArrayLike) -> Array:
    """Body wrench on a floating base and its derivatives, from those of the spatial wrench: the inverse of `spatial_wrenches`.

    base (..., 4, 4) or (..., 7): pose, as in `spatial_twists`; twists (..., k - 1 or more, 6): body twist and its derivatives;
    wrenches (..., k, 6): spatial wrench and its derivatives. Returns (..., k, 6). Raises ShapeError, ConfigurationError.

    Examples
    --------
    >>> base = [1, 0, 0, 0, 0, 0, 1]             # one metre along x
    >>> ld.body_wrenches(base, np.zeros((0, 6)), [[0, -5.0, 0, 0, 0, 5.0]]).round(3)
    array([[0., 0., 0., 0., 0., 5.]])
    """
    T, V, F = _arguments(base, twists, wrenches)
    return _derivatives(_product(_transport(adjoint(T), V, F.shape[-2]).swapaxes(-1, -2), F))      # Ad*_T is Ad_T^T


# series: x_k = x^(k)/k! on the axis before those of a matrix or vector ------------------------------------------------------
def _transport(X: Array, V: Array, count: int) -> Array:
    """Return (..., count, 6, 6) series of Ad_T from X = Ad_T at t = 0: (k + 1) X_{k+1} = sum_j X_j ad_{V_{k-j}}."""
    ad = bracket(V)
    out = np.zeros((*np.broadcast_shapes(X.shape[:-2], V.shape[:-2]), count, 6, 6))
    out[..., :1, :, :] = X[..., None, :, :]
    for k in range(count - 1):
        out[..., k + 1, :, :] = np.einsum("...jab,...jbc->...ac", out[..., :k + 1, :, :], ad[..., k::-1, :, :]) / (k + 1)
    return out


def _dual(X: Array) -> Array:
    """Return the series of Ad*_{T^-1} from that of Ad_T: [[R, 0], [P, R]] -> [[R, P], [0, R]]."""
    R, P = X[..., :3, :3], X[..., 3:, :3]
    return np.block([[R, P], [np.zeros_like(R), R]])


def _product(X: Array, y: Array) -> Array:
    """Return (..., k, 6) Cauchy sums of the series X (..., k, 6, 6) and y (..., k, 6)."""
    lead, count = np.broadcast_shapes(X.shape[:-3], y.shape[:-2]), y.shape[-2]
    out = np.empty((*lead, count, 6))
    for k in range(count):
        out[..., k, :] = np.einsum("...jab,...jb->...a", X[..., :k + 1, :, :], y[..., k::-1, :])
    return out


def _derivatives(x: Array) -> Array:
    return x * _factorials(x.shape[-2])


def _factorials(count: int) -> Array:
    return np.cumprod([1.0, *range(1, count)], dtype=np.float64)[:count, None]


# arguments --------------------------------------------------------------------------------------------------------------
def _arguments(base: ArrayLike, twists: ArrayLike, wrenches: ArrayLike | None = None) -> tuple[Array, Array, Array]:
    """Return poses, and the series of twists and of wrenches (twists again if there are no wrenches)."""
    T, V = _pose(base), _taylor("twists", twists)
    F = V if wrenches is None else _taylor("wrenches", wrenches)
    common_leading_axes(("base", T, 2), ("twists", V, 2), *[("wrenches", F, 2)] * (wrenches is not None))
    if V.shape[-2] < F.shape[-2] - 1:
        raise ShapeError(f"wrenches to order {F.shape[-2] - 1} require twists to order {F.shape[-2] - 2} at least: "
                         f"expected {F.shape[-2] - 1} derivatives, got {V.shape[-2]}")
    return T, V, F


def _taylor(name: str, x: ArrayLike) -> Array:
    derivatives = as_array(x, name, (6,))
    if derivatives.ndim < 2:
        raise ShapeError(f"{name} has the wrong shape: expected (…, k, 6), derivatives of order 0 … k - 1, "
                         f"got {derivatives.shape}")
    check_finite(name, derivatives, n_axes=2)
    return derivatives / _factorials(derivatives.shape[-2])


def _pose(base: ArrayLike) -> Array:
    """Return (..., 4, 4) from either form."""
    q = as_array(base, "base", ())
    if q.ndim and q.shape[-1] == 7:
        check_finite("base", q)
        check_quaternion("joint 'base'", q[..., 3:])
        T = np.zeros((*q.shape[:-1], 4, 4))
        T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = rotation(q[..., 3:]), q[..., :3], 1.0
        return T
    if q.shape[-2:] != (4, 4):
        raise ShapeError(f"base has the wrong shape: expected a pose (…, 4, 4) or coordinates (…, 7), got {q.shape}")
    R = q[..., :3, :3]
    error = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(initial=0.0)
    if not (error < QUATERNION_TOLERANCE and np.isfinite(q).all() and (np.linalg.det(R) > 0).all()):
        raise ConfigurationError("base is not a pose: expected finite numbers and a right-handed rotation R with "
                                 f"|R R^T - 1| within {QUATERNION_TOLERANCE:g}, got {error:.3g}")
    return q
