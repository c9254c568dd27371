"""Time derivatives of inverse dynamics without any formula for them: inverse dynamics of order 0 in complex arithmetic
(`complex_step`, from the description) at points on a circle in complex time about the instant in question, and Cauchy's integral,

    tau^(k) = k! / rho^k  mean_m tau(rho e^{i theta_m}) e^{-i k theta_m}.

No difference is taken: the error is that of the values, 1e-16 of the largest on the circle, times k!/rho^k.

The velocities are polynomials in time; coordinates of 1-DoF joints are their integrals, poses of ball and free joints the power
series that solves dT/dt = T [V]. Inverse dynamics is analytic in all of them except for friction, whose root has branches where a
velocity is +-i FRICTION_SPEED: passive forces are left out.
"""
from math import factorial

import numpy as np
from scipy.spatial.transform import Rotation

from complex_step import Reference, adjoint, hat, pose

RADIUS, POINTS = 0.5, 64
TERMS = 60           # of a pose: the terms of its series fall faster than 0.5^k


class AtComplexTime(Reference):
    """The robot at the complex time t from its state q, velocities (k, nv) and wrenches on links (k, n_links, 6) by their
    derivatives at 0. frame: of the wrenches."""

    def __init__(self, model, q, v_derivatives, t, f_ext_derivatives=None, frame="local"):
        self.start, self.t, self.twists = q, t, v_derivatives
        x = np.array(q, complex)
        integrals = np.concatenate([np.zeros((1, model.nv)), v_derivatives])
        for joint in model.joints:
            if joint.screws is not None:
                x[joint.q] = x[joint.q] + polynomial(integrals[:, joint.v], t)
        super().__init__(model, x, polynomial(v_derivatives, t))
        if f_ext_derivatives is not None:
            F = polynomial(f_ext_derivatives, t)
            for link, T in zip(self.links, self._poses(), strict=True):
                link.F = in_link(F[link.place], T, frame)

    def _joint(self, joint, described):
        if joint.screws is not None:
            return super()._joint(joint, described)
        u, p = self.start[joint.q][-4:], self.start[joint.q][:3] if joint.type == "free" else np.zeros(3)
        S = np.eye(6, dtype=complex)[:, :joint.v.stop - joint.v.start]
        T = pose(Rotation.from_quat(u).as_matrix(), p) @ self._moved(self.twists[:, joint.v] @ S.T)
        return self._home(described) @ T, S, np.zeros_like(S)

    def _moved(self, V):
        """Return T(t) of dT/dt = T [V], T(0) = 1."""
        V = [hat(x / factorial(k)) for k, x in enumerate(V)]
        series = [np.eye(4, dtype=complex)]
        for k in range(TERMS):
            series.append(sum(series[k - j] @ V[j] for j in range(min(k + 1, len(V)))) / (k + 1))
        return sum(X * self.t**k for k, X in enumerate(series))

    def _poses(self):
        """Return the poses of all links in the world."""
        out = []
        for link in self.links:
            out.append(link.T if link.parent < 0 else out[link.parent] @ link.T)
        return out

    def tau(self):
        M, b = self.equation(passive=False)
        return M @ polynomial(self.twists[1:], self.t) + b


def polynomial(derivatives, t):
    return sum(x * (t**k / factorial(k)) for k, x in enumerate(derivatives))


def in_link(F, T, frame):
    """Return a wrench along link axes about the link's origin, from one in `frame`. T: the link's pose."""
    if frame == "world":
        return adjoint(T).T @ F
    R = T[:3, :3]
    return F if frame == "local" else np.concatenate([R.T @ F[:3], R.T @ F[3:]])


def inverse_derivatives(model, q, v_derivatives, orders, f_ext_derivatives=None, frame="local"):
    """tau^(k) (orders, nv), without passive forces, for k = 0 … orders - 1; v_derivatives and wrenches of any length: what
    they do not name is zero."""
    times = RADIUS * np.exp(2j * np.pi * np.arange(POINTS) / POINTS)
    # values at conjugate times are conjugate: half of them are enough, and the result is real
    half = [AtComplexTime(model, q, v_derivatives, t, f_ext_derivatives, frame).tau() for t in times[:POINTS // 2 + 1]]
    values = np.concatenate([half, np.conj(half[POINTS // 2 - 1:0:-1])])
    return np.array([np.real(values.T @ times**-k) / POINTS * factorial(k) for k in range(orders)])
