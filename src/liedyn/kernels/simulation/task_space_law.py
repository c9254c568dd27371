"""Task-space tracking: accelerations of joints with which a point of a link follows a desired pose.

With the Jacobian J of the link at the point (world axes), J a + dJ v is the acceleration of the point and the angular
acceleration of the link. The law requires

    p'' = r'' + k_1 (r' - p') + k_0 (r - p),      phi'' = -k_1 phi' - k_0 phi,      R_desired = R exp(phi),

so that the errors r - p and phi (a rotation vector, link axes) satisfy e'' + k_1 e' + k_0 e = 0. Among all a with these
accelerations, it takes the one nearest to a_0 in the metric of the mass matrix (Gauss; Khatib 1987),

    a = a_0 + M^-1 J^T lambda,      (J M^-1 J^T) lambda = required - dJ v - J a_0,

with a_0 = -k_1 v + M^-1 f. The force f_k of a coordinate with a posture alone would give it the acceleration k_0 (posture_k -
q_k): motion in the null space of the task comes to rest where these forces are in balance. Prescribed coordinates keep their
accelerations.

J M^-1 J^T is scaled such that rotation and translation each have the mean diagonal 1, and diagonalized: the result does not
depend on the axes of the world or on units. An eigenvalue x below DAMPING_THRESHOLD becomes x + (DAMPING_THRESHOLD - x)^2 /
DAMPING_THRESHOLD: then the task is not followed exactly, and accelerations stay bounded. Along a direction in which no joint
moves the link, x and J^T are zero: the law has no effect.
"""
from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.kernels.hybrid_dynamics import factor_mass_matrix, solve_factored
from liedyn.kernels.kinematics import LOCAL_WORLD_ALIGNED, jacobian, load_column, store_column
from liedyn.kernels.mass_matrix import composite_rigid_body, composite_workspace
from liedyn.kernels.simulation.signals import Poses, evaluate_vector3, link_pose_and_twist, pose_rotation
from liedyn.lie.simd import maximum, number_like, sqrt, where_less
from liedyn.lie.so3 import dexp_inv3, log3, quaternion_rotation, rotation_vector_motion
from liedyn.lie.vectors import add3, add_cross, cross, dot3, load3, matmul3, neg3, rotate, rotate_back, scale3, sub3, transpose
from liedyn.numba_tools.decorators import inline_kernel, kernel

DAMPING_THRESHOLD = 1e-3
SWEEPS = 6               # of Jacobi's method, which converges quadratically: 6 x 6 matrices are diagonal to rounding after 5 to 6
_TINY = 1e-300           # avoids division by zero
_ROTATION_THRESHOLD = 1e-40           # of a scaled matrix: with entries below 1e-20, a pair of directions is not rotated
# of the distance from the world's origin: a point that is closer to all axes is moved by rounding alone
AXIS_TOLERANCE = 1e-9


class Task(NamedTuple):
    """A desired pose of a link, gains, and workspace of the law."""

    link: np.ndarray         # (1,) int64
    path: np.ndarray         # int64 bodies from the ground to the link's
    point: np.ndarray        # (3,) link frame
    rows: np.ndarray         # (m,) int64 of the Jacobian: 0 … 2 angular, 3 … 5 linear
    poses: Poses             # one: the desired pose of the link's frame, with the origin at the point
    posture: np.ndarray      # (nv,)
    has_posture: np.ndarray         # (nv,) bool: has a posture
    fixed: np.ndarray        # (nv,) bool: prescribed
    J: np.ndarray            # (6 nv,) workspace, as all below
    dJ: np.ndarray           # (6 nv,)
    M: np.ndarray            # (nv nv,)
    L: np.ndarray            # (nv nv,)
    Psi: np.ndarray          # (nv,)
    X: np.ndarray            # (m nv,) rows of J M^-1
    A: np.ndarray            # (m m,) J M^-1 J^T, then diagonal
    D: np.ndarray            # (m,) inverse eigenvalues, damped
    scale: np.ndarray        # (m,)
    jacobi_rotations: np.ndarray        # (SWEEPS m (m - 1),) cosines and sines
    reach: np.ndarray        # (1,) square of AXIS_TOLERANCE times the distance of the point from the origin of the world
    r: np.ndarray            # (m,)
    memory: np.ndarray       # (22 n,)


INPUT_FIELDS = Task._fields[:Task._fields.index("J")]
WORKSPACE_FIELDS = Task._fields[Task._fields.index("J"):]


@kernel
def apply_task_law(task, laws, tree, q_of_v, signals, t, ws):
    """Write laws.a of driven coordinates. task: Task or None (then nothing is compiled)."""
    if task is None:
        return
    m, nv = task.rows.size, laws.a.size
    desired = desired_acceleration(task, laws.gains, tree, signals, t, ws)
    mobility(task, tree, ws.q)
    set_posture_acceleration(task, laws, tree, q_of_v, ws)
    for i in range(m):
        row = task.rows[i]
        x = desired[row // 3][row % 3]
        for k in range(nv):
            x -= task.dJ[row * nv + k] * ws.v[k] + task.J[row * nv + k] * laws.a[k]
        task.r[i] = x
    solve_mobility(task, ws)
    for k in range(nv):
        if not task.fixed[k]:
            for i in range(m):
                laws.a[k] += task.X[i * nv + k] * task.r[i]


@inline_kernel
def set_posture_acceleration(task, laws, tree, q_of_v, ws):
    """Write a_0 to laws.a."""
    nv, x = laws.a.size, laws.x
    for k in range(nv):
        if not task.fixed[k]:
            laws.a[k] = -laws.gains[1] * ws.v[k]
    for k in range(nv):
        if task.has_posture[k] and not task.fixed[k]:
            for i in range(nv):
                x[i] = 1.0 if i == k else 0.0
            solve_factored(tree, task.fixed, task.L, task.Psi, x)
            factor = laws.gains[0] * (task.posture[k] - ws.q[q_of_v[k]]) / x[k]
            for i in range(nv):
                if not task.fixed[i]:
                    laws.a[i] += factor * x[i]


@inline_kernel
def desired_acceleration(task, gains, tree, signals, t, ws):
    """Write J and dJ at the point. Return the required angular and linear accelerations, in world axes."""
    nv = ws.v.size
    T, V = link_pose_and_twist(task.path, int64(0), task.path.size, task.link[0], tree, ws.q, ws.v)
    R, p, w = T[0], rotate(T[0], load3(task.point, 0)), rotate(T[0], V[0])
    jacobian(tree, task.link[0], int64(LOCAL_WORLD_ALIGNED), ws.q, ws.v, task.J, task.dJ)
    for k in range(nv):
        S, dS = load_column(task.J, k, nv), load_column(task.dJ, k, nv)
        store_column(task.dJ, k, nv, (dS[0], add3(add_cross(dS[1], dS[0], p), cross(S[0], cross(w, p)))))
        store_column(task.J, k, nv, (S[0], add_cross(S[1], S[0], p)))
    task.reach[0] = AXIS_TOLERANCE * AXIS_TOLERANCE * (dot3(T[1], T[1]) + dot3(p, p))
    x, dx, ddx = evaluate_vector3(signals, task.poses.signal, int64(0), t, ws)
    e, de = sub3(x, add3(T[1], p)), sub3(dx, add_cross(rotate(R, V[1]), w, p))
    moving = add3(ddx, add3(scale3(gains[1], de), scale3(gains[0], e)))
    u, w_desired, dw_desired = pose_rotation(task.poses, int64(0), signals, t, ws)
    E = matmul3(transpose(R), quaternion_rotation(u))         # exp(phi)
    phi, seen = log3(E), rotate_back(E, V[0])
    w_error = sub3(w_desired, seen)
    rate = dexp_inv3(neg3(phi), w_error)
    _, dw_error = rotation_vector_motion(phi, rate, neg3(add3(scale3(gains[1], rate), scale3(gains[0], phi))))
    turning = rotate(E, add_cross(sub3(dw_desired, dw_error), w_error, seen))
    return rotate(R, turning), moving


@inline_kernel
def mobility(task, tree, q):
    """Write X = J M^-1 and A = J M^-1 J^T, over the coordinates that are not prescribed."""
    m, nv = task.rows.size, task.Psi.size
    composite_rigid_body(tree, q, task.M, composite_workspace(task.memory, tree.parent.size))
    factor_mass_matrix(tree, task.fixed, task.M, task.L, task.Psi)
    for i in range(m):
        x = task.X[i * nv:(i + 1) * nv]
        for k in range(nv):
            x[k] = task.J[task.rows[i] * nv + k]
        solve_factored(tree, task.fixed, task.L, task.Psi, x)
        for j in range(i + 1):
            total = 0.0
            for k in range(nv):
                if not task.fixed[k]:
                    total += task.J[task.rows[j] * nv + k] * x[k]
            task.A[i * m + j] = total
            task.A[j * m + i] = total


@inline_kernel
def scale_mobility(task, ws):
    """Make A and r dimensionless: angular and linear rows are divided by the root of their mean mobility, stored in `scale`."""
    m = task.rows.size
    for i in range(m):
        task.scale[i] = mobility_scale(task, mean_mobility(task, i), task.rows[i] // 3, ws)
    for i in range(m):
        task.r[i] *= task.scale[i]
        for j in range(m):
            task.A[i * m + j] *= task.scale[i] * task.scale[j]


@inline_kernel
def mean_mobility(task, i):
    """Return the mean over the three axes of angular or linear motion, whichever row i belongs to."""
    m, total = task.rows.size, 0.0
    for j in range(m):
        if task.rows[j] // 3 == task.rows[i] // 3:
            total += task.A[j * m + j]
    return total / 3.0


@inline_kernel
def mobility_scale(task, mean, moves, ws):
    """Return 1 / sqrt(mean), or 0 where the mean is rounding: the point is on all joint axes, or no joint turns the link."""
    rounding = number_like(ws.q, _TINY)
    if moves:
        for k in range(task.Psi.size):
            if not task.fixed[k]:
                w = load_column(task.J, k, task.Psi.size)[0]
                rounding += dot3(w, w) * task.reach[0] / task.M[k * task.Psi.size + k]
    return where_less(rounding, mean, 1.0 / sqrt(maximum(mean, _TINY)), 0.0 * mean)


@inline_kernel
def rotate_to_axes(task):
    """Diagonalize A by cyclic Jacobi rotations, and rotate r to the eigenvectors. `jacobi_rotations` gets cosines and sines."""
    m, A, r, at = task.rows.size, task.A, task.r, 0
    for _ in range(SWEEPS):
        for i in range(m):
            for j in range(i + 1, m):
                c, s = jacobi_rotation(A[i * m + i], A[i * m + j], A[j * m + j])
                for k in range(m):                             # columns, then rows
                    x, y = A[k * m + i], A[k * m + j]
                    A[k * m + i], A[k * m + j] = c * x - s * y, s * x + c * y
                for k in range(m):
                    x, y = A[i * m + k], A[j * m + k]
                    A[i * m + k], A[j * m + k] = c * x - s * y, s * x + c * y
                r[i], r[j] = c * r[i] - s * r[j], s * r[i] + c * r[j]
                task.jacobi_rotations[at], task.jacobi_rotations[at + 1] = c, s
                at += 2


@inline_kernel
def jacobi_rotation(a, b, d):
    """Return cosine and sine that diagonalize [[a, b], [b, d]], by at most an eighth of a turn; no rotation if it is diagonal."""
    half = 0.5 * (d - a)
    size = half * half + b * b
    root = sqrt(maximum(size, 0.0 * size + _ROTATION_THRESHOLD))
    t = b / where_less(_ROTATION_THRESHOLD, size, where_less(half, 0.0 * half, half - root, half + root), 1.0 + 0.0 * size)
    c = 1.0 / sqrt(1.0 + t * t)
    return c, t * c


@inline_kernel
def rotate_back_from_axes(task):
    """Rotate r back from the eigenvectors."""
    m, r, at = task.rows.size, task.r, task.jacobi_rotations.size
    for _ in range(SWEEPS):
        for i in range(m - 1, -1, -1):
            for j in range(m - 1, i, -1):
                at -= 2
                c, s = task.jacobi_rotations[at], task.jacobi_rotations[at + 1]
                r[i], r[j] = c * r[i] + s * r[j], c * r[j] - s * r[i]


@inline_kernel
def damped_inverse(x):
    """Return 1 / x of an eigenvalue, bounded where x is below DAMPING_THRESHOLD: see above. Negative values are rounding."""
    x = maximum(x, 0.0 * x)
    lack = maximum(DAMPING_THRESHOLD - x, 0.0 * x)
    return 1.0 / (x + lack * lack / DAMPING_THRESHOLD)


@inline_kernel
def solve_mobility(task, ws):
    """Replace r by lambda."""
    m, A, r = task.rows.size, task.A, task.r
    scale_mobility(task, ws)
    rotate_to_axes(task)
    for i in range(m):
        task.D[i] = damped_inverse(A[i * m + i])
        r[i] *= task.D[i]
    rotate_back_from_axes(task)
    for i in range(m):
        r[i] *= task.scale[i]
