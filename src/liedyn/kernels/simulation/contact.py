"""Contact of spheres and points of links with planes that are fixed in the world.

Normal force (Hunt and Crossley 1975), never below zero, and regularized Coulomb friction at the sphere's lowest point:

    N = k d^n (1 + c d'),        f_t = -mu N u_t / sqrt(u_t^2 + e^2)

d: depth, u_t: slip, e: creep speed. The plane is carried into the link's frame, so that no rotation of the world is needed; the
twist is that of the recursion of `hybrid`, which a line computes once.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.joints.motion import joint_add, joint_pose
from liedyn.lie.lanes import load, number_like, sqrt, where_less
from liedyn.lie.rows import load3, load_pose, load_twist, store_twist
from liedyn.lie.se3 import Ad_inv, add
from liedyn.lie.vec3 import cross, dot3, plus_cross, rotate_back, scale3, sub3

STIFFNESS, DAMPING, FRICTION, CREEP, MATERIAL = range(5)        # places in a contact's material, and their number


class Contacts(NamedTuple):
    """m pairs of a sphere and a plane."""

    link: np.ndarray       # (m,) int64
    slot: np.ndarray       # (m,) int64: row of `MotionWork.wrench`
    first: np.ndarray      # (m + 1,) int64: the part of `path` of each contact
    path: np.ndarray       # int64: bodies from the ground to the link's
    centre: np.ndarray     # (3m,) of the sphere, link frame
    radius: np.ndarray     # (m,) 0: a point
    normal: np.ndarray     # (3m,) of the plane, world
    height: np.ndarray     # (m,) of the world's origin above the plane
    twice: np.ndarray      # (m,) int64: 2n, from 2 to 4
    material: np.ndarray   # (MATERIAL m,) k [N/m^n], c [s/m], mu, e [m/s]
    share: np.ndarray      # (m,) of the weight [N]: for estimates of how fast a contact acts


@primitive
def push_contacts(contacts, tree, work):
    """Adds contact forces to work.wrench. contacts: Contacts, or None: then nothing is compiled."""
    if contacts is not None:
        add_contact_wrenches(contacts, tree, work)


@kernel
def add_contact_wrenches(contacts, tree, work):
    for j in range(contacts.link.size):
        n, h, V = in_link(contacts, j, tree, work.q, work.v)
        s = contacts.slot[j]
        store_twist(work.wrench, s, add(load_twist(work.wrench, s), contact_wrench(contacts, j, n, h, V)))


@primitive
def in_link(contacts, j, tree, q, v):
    """Seen from the link: the plane's normal, the height of the link's origin above it, the link's twist."""
    zero, n = number_like(q, 0.0), load3(contacts.normal, 3 * j)
    n, h, V = (zero + n[0], zero + n[1], zero + n[2]), zero + contacts.height[j], ((zero, zero, zero), (zero, zero, zero))
    for k in range(contacts.first[j], contacts.first[j + 1]):
        i = contacts.path[k]
        T = joint_pose(tree, i, q)
        V = joint_add(tree, i, Ad_inv(T, V), v)
        h = h + dot3(n, T[1])
        n = rotate_back(T[0], n)
    X = load_pose(tree.link_pose, contacts.link[j])
    return rotate_back(X[0], n), h + dot3(n, X[1]), Ad_inv(X, V)


@primitive
def contact_wrench(contacts, j, n, h, V):
    """[m; f] on the link, about its origin, in its frame."""
    m = MATERIAL * j
    k, c = load(contacts.material, m + STIFFNESS), load(contacts.material, m + DAMPING)
    mu, e = load(contacts.material, m + FRICTION), load(contacts.material, m + CREEP)
    p = sub3(load3(contacts.centre, 3 * j), scale3(contacts.radius[j], n))
    d = -h - dot3(n, p)
    d = where_less(0.0, d, d, 0.0)
    u = plus_cross(V[1], V[0], p)
    rate = -dot3(n, u)
    N = k * power(d, contacts.twice[j]) * (1.0 + c * rate)
    N = where_less(0.0, N, N, 0.0)
    slip = (u[0] + rate * n[0], u[1] + rate * n[1], u[2] + rate * n[2])
    f = sub3(scale3(N, n), scale3(mu * N / sqrt(dot3(slip, slip) + e * e), slip))
    return cross(p, f), f


@primitive
def power(d, twice):
    """d^(twice / 2), d not negative."""
    x = d
    if twice == 3:
        x = d * sqrt(d)
    if twice == 4:
        x = d * d
    return x
