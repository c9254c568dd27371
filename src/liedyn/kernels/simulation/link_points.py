"""Positions and velocities of points of links, in world axes: what expressions of a scenario read.

Along the path from the ground to the link: X = X T_i, V = Ad_{T_i^-1} V + S dq. A line computes twists that the dynamics needs,
too, only once, and leaves out what no expression reads.
"""
from typing import NamedTuple

from numpy import int64, ndarray, zeros

from liedyn.jit import kernel, primitive
from liedyn.joints.motion import joint_add, joint_pose
from liedyn.lie.lanes import number_like
from liedyn.lie.rows import load3, load_pose
from liedyn.lie.se3 import Ad_inv, compose
from liedyn.lie.vec3 import plus_cross, plus_rotate, rotate

COMPONENTS = ("x", "y", "z", "vx", "vy", "vz", "wx", "wy", "wz")      # position, velocity, angular velocity of the link
NUMBERS = 9


class Points(NamedTuple):
    """p points of links."""

    link: ndarray        # (p,) int64
    first: ndarray       # (p + 1,) int64: the part of `path` of each point
    path: ndarray        # int64: bodies from the ground to the link's
    at: ndarray          # (3p,) link frame


NO_POINTS = Points(zeros(0, dtype=int64), zeros(1, dtype=int64), zeros(0, dtype=int64), zeros(0))


@kernel
def look_at_points(points, tree, q, v, measured):
    """Into the last 9p numbers of `measured`."""
    o = measured.size - NUMBERS * points.link.size
    for j in range(points.link.size):
        x, u, w = point_motion(points, j, tree, q, v)
        for k in range(3):
            measured[o + k], measured[o + 3 + k], measured[o + 6 + k] = x[k], u[k], w[k]
        o += NUMBERS


@primitive
def point_motion(points, j, tree, q, v):
    """Position, velocity and angular velocity in world axes."""
    X, V = along(points.path, points.first[j], points.first[j + 1], points.link[j], tree, q, v)
    p = load3(points.at, 3 * j)
    return plus_rotate(X[1], X[0], p), rotate(X[0], plus_cross(V[1], V[0], p)), rotate(X[0], V[0])


@primitive
def along(path, first, last, link, tree, q, v):
    """Pose and twist of a link, seen from where its path begins; twist in the link's frame."""
    zero = number_like(q, 0.0)
    one = zero + 1.0
    T, V = ((one, zero, zero, zero, one, zero, zero, zero, one), (zero, zero, zero)), ((zero, zero, zero), (zero, zero, zero))
    for k in range(first, last):
        i = path[k]
        X = joint_pose(tree, i, q)
        V = joint_add(tree, i, Ad_inv(X, V), v)
        T = compose(T, X)
    X = load_pose(tree.link_pose, link)
    return compose(T, X), Ad_inv(X, V)


@primitive
def measure_forces(tau, measured):
    """Into the first nv numbers of `measured`, where there are any."""
    if measured.size:
        for k in range(tau.size):
            measured[k] = tau[k]
