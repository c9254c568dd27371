"""Constrained dynamics by plain matrices: rows from body Jacobians of links, gamma by differences along the motion, and
accelerations, multipliers, forces from dense equations and singular values. M, b and Jacobians are liedyn's, held to
their references in `identities`; nothing here comes from its kernels of constraints."""
from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.model.description import WORLD, Coupling
from matrices import adjoint, derivative, exp, inverse, pose

RANK = 1e-9             # of the largest singular value

# which components [w; v] of the twist of B relative to A, in B, a lower pair forbids
_ROWS = {"weld": range(6), "revolute": (0, 1, 3, 4, 5), "prismatic": (0, 1, 2, 3, 4), "cylindrical": (0, 1, 3, 4),
         "planar": (0, 1, 5), "ball": (3, 4, 5)}


def turn_of(axis, k: int):
    """Return the minimum rotation (3, 3) that takes unit vector k to the axis."""
    e, n = np.eye(3)[k], np.asarray(axis) / np.linalg.norm(axis)
    w = np.cross(e, n)
    s = np.linalg.norm(w)
    return Rotation.from_rotvec(w / s * np.arctan2(s, e @ n) if s else 0 * w).as_matrix()


def described(model):
    """Return each constraint of the model with its description."""
    robot = model.description
    mimics = [Coupling(j.name, ((j.name, "", 1.0), (j.mimic.joint, "", -j.mimic.multiplier)), j.mimic.offset)
              for j in robot.joints if j.mimic]
    return (*robot.loops, *robot.couplings, *mimics)


def turns(loop):
    """Return the rotations (4, 4) from frames A and B of the file to those of the equations."""
    eye = np.eye(3)
    if loop.type == "universal":
        R = turn_of(loop.axes[0], 0), turn_of(loop.axes[1], 1)
    elif loop.type == "rolling":
        R = eye, turn_of(loop.axes[0], 2) if loop.axes else eye
    else:
        R = (turn_of(loop.axes[0], 2) if loop.axes else eye,) * 2
    return [pose(x, np.zeros(3)) for x in R]


def frames(model, q, loop, constraint_motion):
    """Return world poses of frames A and B, their Jacobians [w; v] in the frames (6, nv), and the prescribed twist of A (6,)."""
    out, V_d = [], np.zeros(6)
    for link, where, turn, moved in ((loop.a, loop.pose_a, turns(loop)[0], loop.name in (constraint_motion or {})),
                                     (loop.b, loop.pose_b, turns(loop)[1], False)):
        T, J = np.eye(4), np.zeros((6, model.nv))
        if link != WORLD:
            T, J = ld.link_pose(model, q, link), ld.jacobian(model, q, link)
        own = pose(where.rotation, where.translation)
        if moved:
            D, V_d = constraint_motion[loop.name][0], adjoint(inverse(turn)) @ constraint_motion[loop.name][1]
            own = own @ D
        own = own @ turn
        out.append((T @ own, adjoint(inverse(own)) @ J))
    return *out, V_d


def rows(loop, T):
    """Return the rows (m, 6) that multiply the twist of B relative to A, in B, at T_ab."""
    R, p = T[:3, :3], T[:3, 3]
    eye = np.eye(6)
    if loop.type in _ROWS:
        return eye[list(_ROWS[loop.type])]
    if loop.type == "universal":
        return np.vstack([np.r_[np.cross([0, 1, 0], R.T @ [1, 0, 0]), 0, 0, 0], eye[3:]])
    if loop.type == "distance":
        return np.r_[0, 0, 0, R.T @ p / np.linalg.norm(p)][None]
    n = R.T @ [0, 0, 1]                              # rolling: the velocity of B's matter at c
    if loop.shape == "disc":
        n = n * [1, 1, 0] / np.linalg.norm(n[:2])
    c = -loop.radius * n
    return np.hstack([-np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]]), np.eye(3)])


def coupling_row(model, coupling, q):
    x, names = np.zeros(model.nv), [f"{joint}.{label}" if label else joint for joint, label, _ in coupling.terms]
    for name, (*_, c) in zip(names, coupling.terms, strict=True):
        x[model.v_names.index(name)] = c
    if coupling.function is not None:
        x[model.v_names.index(names[1])] = -function_slope(coupling.function, q[model.q_names.index(names[1])])
    return x[None]


def function_slope(function, x):
    """Return f' of a nonlinear coupling: of an expression by a complex step, of a table by SciPy."""
    if function.points:
        points = np.array(function.points).T
        return CubicSpline(*points)(np.clip(x, points[0, 0], points[0, -1]), 1)      # straight lines continue it
    return function_value(function, x + 1e-30j).imag / 1e-30


def function_value(function, x, names=np):
    """Return f(x), with the functions of a module that has those of NumPy."""
    stack, two = [], {"add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
                      "divide": lambda a, b: a / b, "power": lambda a, b: a**b}
    for name, value in function.operations:
        if name in ("literal", "driver"):
            stack.append(x if name == "driver" else value)
        elif name in two:
            b, a = stack.pop(), stack.pop()
            stack.append(two[name](a, b))
        else:
            a = stack.pop()
            stack.append(-a if name == "negative" else getattr(names, name)(a))
    return stack[-1]


def equations(model, q, constraint_motion=None):
    """Return A (m, nv) and the prescribed right-hand side u (m,) of A v = u."""
    A, u = [], []
    for one in described(model):
        if isinstance(one, Coupling):
            A.append(coupling_row(model, one, q))
            u.append(np.zeros(1))
            continue
        (T_a, J_a), (T_b, J_b), V_d = frames(model, q, one, constraint_motion)
        T = inverse(T_a) @ T_b
        F, back = rows(one, T), adjoint(inverse(T))
        A.append(F @ (J_b - back @ J_a))
        u.append(F @ back @ V_d)
    return np.vstack(A), np.concatenate(u)


def later(constraint_motion, t):
    """Return the drive after a time, to first order in the rate of its twist, which suffices for a derivative at 0."""
    return {name: (T @ exp(t * V + t * t / 2 * dV), V + t * dV, dV) for name, (T, V, dV) in (constraint_motion or {}).items()}


def bias(model, q, v, constraint_motion=None, h=0.0005):
    """Return gamma: d/dt (A v - u) along the motion q(t) with constant v."""
    def off(t):
        A, u = equations(model, ld.integrate(model, q, t * v), later(constraint_motion, t))
        return A @ v - u
    return derivative(off, h)


def spanning_tree(model, q, v, **options):
    """Return M and b of M a + b = tau of the open tree."""
    return ld.mass_matrix(model, q), ld.inverse_dynamics(model.spanning_tree(), q, v, np.zeros(model.nv), **options)


def hybrid(model, q, v, a, tau, prescribed, constraint_motion=None, extra=0.0, **options):
    """a, tau, multipliers of least norm, and how much rounding the equations may amplify (their condition).

    extra: what is added to gamma. A a + gamma = 0 in the metric of M_vv: a_v is that of the open tree, and the least
    correction in that metric."""
    u, w = prescribed, ~prescribed
    M, b = spanning_tree(model, q, v, **options)
    A, _ = equations(model, q, constraint_motion)
    gamma = bias(model, q, v, constraint_motion) + extra
    a, tau = np.where(u, a, 0.0), np.where(w, tau, 0.0)
    L = np.linalg.cholesky(M[np.ix_(w, w)])
    free = np.linalg.solve(M[np.ix_(w, w)], (tau - b - M @ a)[w])
    B = np.linalg.solve(L, A[:, w].T).T                            # A_v L^-T
    U, s, V = np.linalg.svd(B, full_matrices=False)
    kept = s * np.linalg.norm(L) > RANK * np.linalg.norm(A)        # not of s: what is prescribed may leave nothing but rounding
    U, s, V = U[:, kept], s[kept], V[kept]
    y = -V.T @ (U.T @ (gamma + A[:, u] @ a[u] + A[:, w] @ free) / s)
    a[w] = free + np.linalg.solve(L.T, y)
    multipliers = np.linalg.pinv(A[:, w].T, rcond=RANK) @ (L @ y)
    tau[u] = (M @ a + b - A.T @ multipliers)[u]
    condition = (s[0] / s[-1])**2 * np.linalg.cond(M) if len(s) else np.linalg.cond(M)
    return a, tau, multipliers, condition


def forward(model, q, v, tau, constraint_motion=None, **options):
    none = np.zeros(model.nv, dtype=bool)
    return hybrid(model, q, v, tau, tau, none, constraint_motion, **options)


def inverse_program(A, tau_r, tau_p, mask, force_weights, multiplier_weights):
    """tau, multipliers of the quadratic program
    min sum (w tau)^2 + sum (u lambda)^2 over tau of the mask, with tau + A^T lambda = tau_r, by its KKT equations."""
    m, nv = A.shape
    n = int(mask.sum())
    E = np.zeros((nv, n + m))
    E[mask, np.arange(n)] = 1.0
    E[:, n:] = A.T
    d = np.where(mask, tau_r, tau_r - tau_p)
    H = np.diag(np.r_[np.asarray(force_weights)**2 * np.ones(n), np.asarray(multiplier_weights)**2 * np.ones(m)])
    K = np.block([[H, E.T], [E, np.zeros((nv, nv))]])
    x = np.linalg.lstsq(K, np.r_[np.zeros(n + m), d], rcond=1e-13)[0]
    tau = tau_p.copy()
    tau[mask] = x[:n]
    return tau, x[n:n + m]
