"""SE(3) as plain matrices: the reference that compiled algebra and kernels are held against.

Twists [w; v], wrenches [m; f]; nothing here comes from liedyn."""
import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation


def skew(x):
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0.0]])


def hat(V):
    """Return the matrix (4, 4) of a twist."""
    out = np.zeros((4, 4))
    out[:3, :3], out[:3, 3] = skew(V[:3]), V[3:]
    return out


def exp(V):
    """Return the pose (4, 4) by the matrix exponential."""
    return expm(hat(V))


def log(T):
    """Twist of a pose of less than half a turn: the rotation by SciPy, the translation by the series of its Jacobian."""
    w = Rotation.from_matrix(T[:3, :3]).as_rotvec()
    J, term = np.eye(3), np.eye(3)
    for k in range(2, 40):
        term = term @ skew(w) / k
        J = J + term
    return np.r_[w, np.linalg.solve(J, T[:3, 3])]


def pose(R, p):
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = np.reshape(R, (3, 3)), p
    return out


def inverse(T):
    return np.linalg.inv(T)


def adjoint(T):
    """Return Ad_T of T = T_ab, which takes twists in b to twists in a; its transpose takes wrenches in a to wrenches in b."""
    R, out = T[:3, :3], np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = R
    out[3:, :3] = skew(T[:3, 3]) @ R
    return out


def bracket(V):
    """Return ad_V. Minus its transpose takes a momentum to its rate."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = skew(V[:3])
    out[3:, :3] = skew(V[3:])
    return out


def inertia(mass, com, about_com, R=None):
    """Return the generalized inertia (6, 6) about the frame's origin. `about_com`: six numbers or (3, 3), along axes R."""
    J = np.asarray(about_com, dtype=float)
    if J.shape == (6,):
        J = np.array([[J[0], J[1], J[2]], [J[1], J[3], J[4]], [J[2], J[4], J[5]]])
    J = J if R is None else R @ J @ R.T
    c = skew(com)
    return np.block([[J + mass * c @ c.T, mass * c], [mass * c.T, mass * np.eye(3)]])


def quaternion(R):
    """Return the quaternion x y z w of a rotation."""
    return Rotation.from_matrix(R).as_quat()


def random_rotations(rng, n):
    """Return uniformly distributed rotations (n, 3, 3)."""
    return Rotation.from_quat(rng.standard_normal((n, 4))).as_matrix()


# weights of the eighth-order central difference: f'(0) = sum w_k (f(kh) - f(-kh))/h, error h^8 f^(9)/630
_WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def derivative(f, h: float = 0.02):
    """Return df/dt at 0, to about 1e-12 of the function's size if it varies over a unit of time."""
    return sum(w * (f(k * h) - f(-k * h)) for k, w in enumerate(_WEIGHTS, 1)) / h
