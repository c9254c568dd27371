"""Contact of spheres and points of links with planes, which are fixed in the world or carried by a link, and with each other.

Normal force (Hunt and Crossley 1975), never below zero, and regularized Coulomb friction at the point of contact:

    N = k s(d)^n s(1 + c d'),        f_t = -mu N u_t / sqrt(u_t^2 + e^2),        s(x) = max(x, 0)

d: depth, u_t: slip, e: creep speed. In the smooth form, s has the parabola (x + w)^2 / 4w for |x| < w. The point of contact is
the lowest one of a sphere on a plane, and the middle of the overlap of two spheres. Forces act on both bodies there, equal and
opposite.

A plane of the world is carried into the link's frame, so that no rotation of the world is needed. Of two links only the relative
motion counts: it is followed from the last body that carries both.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.joints.motion import joint_add, joint_pose
from liedyn.kernels.simulation.link_points import along
from liedyn.kernels.simulation.signals import SWITCH, look
from liedyn.lie.lanes import load, maximum, number_like, sqrt, where_less
from liedyn.lie.rows import load3, load_pose, load_twist, store_twist
from liedyn.lie.se3 import Ad, Ad_inv, add, compose, dAd, inverse, sub
from liedyn.lie.vec3 import add3, cross, dot3, plus_cross, plus_rotate, rotate, rotate_back, scale3, sub3

STIFFNESS, DAMPING, FRICTION, CREEP, WIDTH, MATERIAL = range(6)        # places in a contact's material, and their number
GROUND, PLANE, SPHERE = range(3)        # Contacts.kind: a plane of the world is touched, a plane or a sphere of another link
SOFT = 0.5               # of the smooth form: width of s where the factor of damping reaches zero
NEVER = -1e300           # m: the depth of no contact


class Contacts(NamedTuple):
    """m pairs of a sphere (of a link a) and what it touches."""

    link: np.ndarray       # (m,) int64: a
    slot: np.ndarray       # (m,) int64: row of `MotionWork.wrench`
    first: np.ndarray      # (m + 1,) int64: the part of `path` of each contact
    path: np.ndarray       # int64: bodies to that of a, from the ground or from below the last body that carries both links
    centre: np.ndarray     # (3m,) of the sphere, link frame
    radius: np.ndarray     # (m,) 0: a point
    kind: np.ndarray       # (m,) int64
    other: np.ndarray      # (m,) int64: the link b that is touched; a itself at the GROUND
    other_slot: np.ndarray     # (m,) int64
    other_first: np.ndarray    # (m + 1,) int64
    other_path: np.ndarray     # int64
    normal: np.ndarray     # (3m,) of the plane, in the world or in the frame of b; centre of the sphere of b
    height: np.ndarray     # (m,) of the origin of the world or of b above the plane; radius of the sphere of b
    twice: np.ndarray      # (m,) int64: 2n, from 2 to 4
    smooth: np.ndarray     # (m,) bool: the smooth form
    material: np.ndarray   # (MATERIAL m,) k [N/m^n], c [s/m], mu, e [m/s], w [m]
    share: np.ndarray      # (m,) of the weight [N]: for estimates of how fast a contact acts
    weighed: np.ndarray    # (m,) bool: k is proportional to the weight of the robot (`sink`)
    switch: np.ndarray     # (g,) int64: switches of the state that read the depth of a group of contacts, for events
    group: np.ndarray      # (g + 1,) int64: the part of `member` of each group
    member: np.ndarray     # int64: contacts
    depth: np.ndarray      # (m,) scratch


@kernel
def push_contacts(contacts, tree, held, work):
    """Adds contact forces to work.wrench. contacts: Contacts, or None: then nothing is compiled."""
    if contacts is None:
        return
    for j in range(contacts.link.size):
        s = contacts.slot[j]
        if contacts.kind[j] == GROUND:
            n, h, V = in_link(contacts, j, tree, work.q, work.v)
            d, p = depth_on_plane(contacts, j, n, h)
            F = contact_wrench(contacts, j, d, n, p, V)
        else:
            X, V = of_links(contacts, j, tree, work.q, work.v)
            d, n, p = touching(contacts, j, X)
            F, o = contact_wrench(contacts, j, d, n, p, V), contacts.other_slot[j]
            store_twist(work.wrench, o, sub(load_twist(work.wrench, o), dAd(X, F)))
        store_twist(work.wrench, s, add(load_twist(work.wrench, s), F))
        contacts.depth[j] = d
    for g in range(contacts.switch.size):
        d = number_like(work.q, NEVER)
        for k in range(contacts.group[g], contacts.group[g + 1]):
            d = maximum(d, contacts.depth[contacts.member[k]])
        look(held, SWITCH * contacts.switch[g], d)


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
def of_links(contacts, j, tree, q, v):
    """Pose of b in a, and the twist of a less that of b, in the frame of a."""
    Ta, Va = along(contacts.path, contacts.first[j], contacts.first[j + 1], contacts.link[j], tree, q, v)
    Tb, Vb = along(contacts.other_path, contacts.other_first[j], contacts.other_first[j + 1], contacts.other[j], tree, q, v)
    X = compose(inverse(Ta), Tb)
    return X, sub(Va, Ad(X, Vb))


@primitive
def depth_on_plane(contacts, j, n, h):
    """Depth and the lowest point of the sphere, where the origin of the link is at h above a plane of normal n."""
    p = sub3(load3(contacts.centre, 3 * j), scale3(contacts.radius[j], n))
    return -h - dot3(n, p), p


@primitive
def touching(contacts, j, X):
    """Depth, normal (towards the sphere of a) and point of contact in the frame of a, where X is the pose of b in a."""
    x = load3(contacts.normal, 3 * j)
    if contacts.kind[j] != SPHERE:
        n = rotate(X[0], x)
        d, p = depth_on_plane(contacts, j, n, contacts.height[j] - dot3(n, X[1]))
    else:
        x = plus_rotate(X[1], X[0], x)
        y = sub3(load3(contacts.centre, 3 * j), x)
        l = sqrt(dot3(y, y))
        n, d = scale3(1.0 / l, y), contacts.radius[j] + contacts.height[j] - l
        p = add3(x, scale3(contacts.height[j] - 0.5 * d, n))
    return d, n, p


@primitive
def contact_wrench(contacts, j, d, n, p, V):
    """[m; f] on the link a, about its origin, in its frame. V: its twist against what it touches."""
    mu, e = load(contacts.material, MATERIAL * j + FRICTION), load(contacts.material, MATERIAL * j + CREEP)
    u = plus_cross(V[1], V[0], p)
    rate = -dot3(n, u)
    N = normal_force(contacts, j, d, rate)
    slip = (u[0] + rate * n[0], u[1] + rate * n[1], u[2] + rate * n[2])
    f = sub3(scale3(N, n), scale3(mu * N / sqrt(dot3(slip, slip) + e * e), slip))
    return cross(p, f), f


@primitive
def normal_force(contacts, j, d, rate):
    m = MATERIAL * j
    k, c, w = load(contacts.material, m + STIFFNESS), load(contacts.material, m + DAMPING), load(contacts.material, m + WIDTH)
    if contacts.smooth[j]:
        N = k * power(softened(d, w), contacts.twice[j]) * softened(1.0 + c * rate, SOFT)
    else:
        N = k * power(where_less(0.0, d, d, 0.0), contacts.twice[j]) * (1.0 + c * rate)
        N = where_less(0.0, N, N, 0.0)
    return N


@primitive
def softened(x, w):
    """s(x) of the smooth form with the width w."""
    return where_less(w, x, x, where_less(-w, x, (x + w) * (x + w) / (4.0 * w), 0.0))


@primitive
def power(d, twice):
    """d^(twice / 2), d not negative."""
    x = d
    if twice == 3:
        x = d * sqrt(d)
    if twice == 4:
        x = d * d
    return x
