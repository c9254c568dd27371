"""Contact of spheres and points of links with planes of the world, with planes of other links, and with other spheres.

Normal force (Hunt and Crossley 1975), never below zero, and regularized Coulomb friction at the point of contact:

    N = k s(d)^n s(1 + c d'),        f_t = -mu N u_t / sqrt(u_t^2 + e^2),        s(x) = max(x, 0)

d: depth, u_t: slip velocity, e: regularization speed. In the smooth form, s is the parabola (x + w)^2 / 4w for |x| < w. The point
of contact is the lowest one of a sphere on a plane, and the middle of the overlap of two spheres. Equal and opposite forces act
on both bodies there.

A contact that sticks has a spring and a damper along the plane, in series with dry friction. With its stretch z, a state of the
run, and the coefficient mu(u) = mu + (mu_s - mu) exp(-u_t^2 / e^2):

    f_t = -min(1, mu(u) N / |w|) w,    w = k_t z + c_t u_t,    z' = -(f_t + k_t z) / c_t

Below the limit of friction, z' = u_t: the spring holds, without creep (Cundall and Strack 1979, as a differential equation). z is
in the frame of link a, where z' gets the term -omega x z, and vanishes without contact.

A plane of the world is transformed into the frame of the link, so that no rotation into the world is needed. A contact of two
links depends on their relative motion only: it is computed from the last body that carries both.
"""
from typing import NamedTuple

import numpy as np

from liedyn.joints.joint_model import joint_add, joint_column, joint_pose, tree_views
from liedyn.kernels.simulation.signals import SWITCH_SIZE, link_pose_and_twist, register_zero_crossing
from liedyn.lie.se3 import Ad, Ad_inv, ad, add, compose, dAd, dot, inverse, neg, neg_dad, sub
from liedyn.lie.simd import exp, load, maximum, number_like, sqrt, where_less
from liedyn.lie.vectors import (
    add3,
    add_cross,
    add_rotate,
    cross,
    dot3,
    load3,
    load_pose,
    load_twist,
    rotate,
    rotate_back,
    scale3,
    store3,
    store_twist,
    sub3,
)
from liedyn.model.description import NV
from liedyn.numba_tools.decorators import inline_kernel, internal_kernel, kernel

# indices in the material of a contact, and their number
(STIFFNESS, DAMPING, FRICTION, REGULARIZATION_SPEED, WIDTH, STATIC_FRICTION, STICK_STIFFNESS, STICK_DAMPING,
 MATERIAL_SIZE) = range(9)
GROUND, PLANE, SPHERE = range(3)        # Contacts.kind: contact with a plane of the world, a plane or a sphere of another link
DAMPING_WIDTH = 0.5           # width w of s(1 + c d') in the smooth form
TINY = 1e-200                 # N^2: added to the square of a force, whose root has a derivative at zero
NO_CONTACT = -1e300           # m: lower bound of the depths of a group


class Contacts(NamedTuple):
    """m pairs of a sphere of a link a and the plane or sphere that it touches."""

    link: np.ndarray       # (m,) int64: a
    slot: np.ndarray       # (m,) int64: row of `MotionWorkspace.wrench`
    first: np.ndarray      # (m + 1,) int64: path[first[j]:first[j + 1]] is the path of contact j
    path: np.ndarray       # int64: bodies to that of a, from the ground or from below the last body that carries both links
    centre: np.ndarray     # (3m,) of the sphere, link frame
    radius: np.ndarray     # (m,) 0: a point
    kind: np.ndarray       # (m,) int64
    other: np.ndarray      # (m,) int64: the other link b; a for GROUND
    other_slot: np.ndarray     # (m,) int64: slot, first and path of b
    other_first: np.ndarray    # (m + 1,) int64
    other_path: np.ndarray     # int64
    normal: np.ndarray     # (3m,) of the plane, in the world or in the frame of b; centre of the sphere of b
    height: np.ndarray     # (m,) of the origin of the world or of b above the plane; radius of the sphere of b
    doubled_exponent: np.ndarray  # (m,) int64: 2n, from 2 to 4
    smooth: np.ndarray     # (m,) bool: the smooth form
    material: np.ndarray   # (MATERIAL_SIZE m,) k [N/m^n], c [s/m], mu, e [m/s], w [m], mu_s, k_t [N/m], c_t [N s/m]
    stretch: np.ndarray    # (m,) int64: first entry of the stretch z in `MotionWorkspace.z`; -1: the contact does not stick
    weight_share: np.ndarray  # (m,) share of the weight [N] for estimates of the time constant
    scales_with_weight: np.ndarray    # (m,) bool: k is proportional to the weight of the robot (`sink`)
    switch: np.ndarray     # (g,) int64: switches of the state that read the depth of a group of contacts, for events
    group: np.ndarray      # (g + 1,) int64: member[group[i]:group[i + 1]] are the contacts of group i
    member: np.ndarray     # int64: contacts
    depth: np.ndarray      # (m,) depths at the last evaluation


@kernel
def contact_wrenches(contacts, tree, switches, ws):
    """Add the contact forces to ws.wrench, and store the maximum depth of each group in `switches`.

    If contacts is None, nothing is compiled.
    """
    if contacts is None:
        return
    for j in range(contacts.link.size):
        s = contacts.slot[j]
        if contacts.kind[j] == GROUND:
            n, h, V = plane_in_link(contacts, j, tree, ws.q, ws.v)
            d, p = depth_on_plane(contacts, j, n, h)
            F = contact_wrench(contacts, j, d, n, p, V, ws.z)
        else:
            X, V = relative_motion(contacts, j, tree, ws.q, ws.v)
            d, n, p = contact_geometry(contacts, j, X)
            F, o = contact_wrench(contacts, j, d, n, p, V, ws.z), contacts.other_slot[j]
            store_twist(ws.wrench, o, sub(load_twist(ws.wrench, o), dAd(X, F)))
        store_twist(ws.wrench, s, add(load_twist(ws.wrench, s), F))
        contacts.depth[j] = d
    for g in range(contacts.switch.size):
        d = number_like(ws.q, NO_CONTACT)
        for k in range(contacts.group[g], contacts.group[g + 1]):
            d = maximum(d, contacts.depth[contacts.member[k]])
        register_zero_crossing(switches, SWITCH_SIZE * contacts.switch[g], d)


@inline_kernel
def plane_in_link(contacts, j, tree, q, v):
    """Return the normal of the plane, the height of the origin of the link above it, and the twist of the link, in its frame."""
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


@inline_kernel
def relative_motion(contacts, j, tree, q, v):
    """Return the pose of b in a, and the twist of a minus that of b, in the frame of a."""
    Ta, Va = link_pose_and_twist(contacts.path, contacts.first[j], contacts.first[j + 1], contacts.link[j], tree, q, v)
    Tb, Vb = link_pose_and_twist(contacts.other_path, contacts.other_first[j], contacts.other_first[j + 1], contacts.other[j],
                                 tree, q, v)
    X = compose(inverse(Ta), Tb)
    return X, sub(Va, Ad(X, Vb))


@inline_kernel
def depth_on_plane(contacts, j, n, h):
    """Return the depth and the lowest point of the sphere, if the origin of the link is at height h above a plane of normal n."""
    p = sub3(load3(contacts.centre, 3 * j), scale3(contacts.radius[j], n))
    return -h - dot3(n, p), p


@inline_kernel
def contact_geometry(contacts, j, X):
    """Return depth, normal (towards the sphere of a) and point of contact in the frame of a. X: pose of b in a."""
    x = load3(contacts.normal, 3 * j)
    if contacts.kind[j] != SPHERE:
        n = rotate(X[0], x)
        d, p = depth_on_plane(contacts, j, n, contacts.height[j] - dot3(n, X[1]))
    else:
        x = add_rotate(X[1], X[0], x)
        y = sub3(load3(contacts.centre, 3 * j), x)
        l = sqrt(dot3(y, y))
        n, d = scale3(1.0 / l, y), contacts.radius[j] + contacts.height[j] - l
        p = add3(x, scale3(contacts.height[j] - 0.5 * d, n))
    return d, n, p


@inline_kernel
def contact_wrench(contacts, j, d, n, p, V, z):
    """Return the wrench [m; f] on link a about its origin, in its frame.

    d  depth
    n  normal
    p  point of contact
    V  twist of a relative to the other body
    z  stretches, then their rates, which are written
    """
    mu, e = load(contacts.material, MATERIAL_SIZE * j + FRICTION), load(contacts.material,
                                                                        MATERIAL_SIZE * j + REGULARIZATION_SPEED)
    rate, slip = approach_and_slip(n, p, V)
    N = normal_force(contacts, j, d, rate)
    if contacts.stretch[j] < 0:
        f = sub3(scale3(N, n), scale3(mu * N / sqrt(dot3(slip, slip) + e * e), slip))
    else:
        t, dz = sticking_friction(contacts, j, N, n, slip, V[0], load3(z, contacts.stretch[j]))
        store3(z, z.size // 2 + contacts.stretch[j], dz)
        f = add3(scale3(N, n), t)
    return cross(p, f), f


@inline_kernel
def sticking_friction(contacts, j, N, n, slip, w, z):
    """Return the friction of a contact that sticks, and the rate of its stretch z.

    w  angular velocity of a relative to the other body
    """
    m = MATERIAL_SIZE * j
    mu, e, static = (load(contacts.material, m + FRICTION), load(contacts.material, m + REGULARIZATION_SPEED),
                     load(contacts.material, m + STATIC_FRICTION))
    k, c = load(contacts.material, m + STICK_STIFFNESS), load(contacts.material, m + STICK_DAMPING)
    spring = scale3(k, sub3(z, scale3(dot3(n, z), n)))
    trial = add3(spring, scale3(c, slip))
    limit = (mu + (static - mu) * exp(-(dot3(slip, slip) / (e * e)))) * N
    size = sqrt(dot3(trial, trial) + TINY)
    trial = scale3(where_less(limit, size, limit / size, 1.0), trial)
    return scale3(-1.0, trial), sub3(scale3(1.0 / c, sub3(trial, scale3(k, z))), cross(w, z))


@inline_kernel
def approach_and_slip(n, p, V):
    """Return the rate of the depth, and the tangential velocity, at the point p of a body with the twist V."""
    u = add_cross(V[1], V[0], p)
    rate = -dot3(n, u)
    return rate, (u[0] + rate * n[0], u[1] + rate * n[1], u[2] + rate * n[2])


@inline_kernel
def normal_force(contacts, j, d, rate):
    """Return the normal force N at depth d, if the depth grows with `rate`."""
    m = MATERIAL_SIZE * j
    k, c, w = load(contacts.material, m + STIFFNESS), load(contacts.material, m + DAMPING), load(contacts.material, m + WIDTH)
    if contacts.smooth[j]:
        elastic_force = k * half_power(smooth_positive_part(d, w), contacts.doubled_exponent[j])
        N = elastic_force * smooth_positive_part(1.0 + c * rate, DAMPING_WIDTH)
    else:
        N = k * half_power(where_less(0.0, d, d, 0.0), contacts.doubled_exponent[j]) * (1.0 + c * rate)
        N = where_less(0.0, N, N, 0.0)
    return N


@inline_kernel
def smooth_positive_part(x, w):
    """Return s(x) of the smooth form with the width w."""
    return where_less(w, x, x, where_less(-w, x, (x + w) * (x + w) / (4.0 * w), 0.0))


@inline_kernel
def half_power(d, doubled_exponent):
    """Return d^(doubled_exponent / 2) for d >= 0."""
    x = d
    if doubled_exponent == 3:
        x = d * sqrt(d)
    if doubled_exponent == 4:
        x = d * d
    return x


# Contacts at many states ------------------------------------------------------------------------------------------------

_ZERO_TWIST = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0)

# offsets of the quantities that `contact_states` writes, and their total size
NORMAL, POINT, SLIP, DEPTH, FORCE, GROUND_POINT, TANGENTIAL, CONTACT_STATE_SIZE = 0, 3, 6, 9, 10, 11, 14, 15


@kernel
def contact_states(index, constants, contacts, q, v, stretch, out):
    """Write the contacts at the states q (N, nq), v (N, nv), stretch (N, 3s) into out (N, m, CONTACT_STATE_SIZE).

    Numbers are float64. Normal, point and slip are in the frame of link a. The ground point is the point of contact in the world
    for GROUND, else 0.
    """
    tree = tree_views(index, constants)
    for i in range(len(q)):
        for j in range(contacts.link.size):
            x, (T, Va, X, Vb) = out[i, j], motion_of_pair(contacts, j, tree, q[i], v[i])
            d, n, p = contact_geometry(contacts, j, X)
            rate, slip = approach_and_slip(n, p, sub(Va, Vb))
            store3(x, NORMAL, n)
            store3(x, POINT, p)
            store3(x, SLIP, slip)
            x[DEPTH], x[FORCE] = d, normal_force(contacts, j, d, rate)
            x[TANGENTIAL] = friction_size(contacts, j, x[FORCE], n, slip, stretch[i])
            store3(x, GROUND_POINT, add_rotate(T[1], T[0], p) if contacts.kind[j] == GROUND else _ZERO_TWIST[0])


@internal_kernel
def friction_size(contacts, j, N, n, slip, stretch):
    """Return the magnitude of the friction of contact j. stretch: of the contacts that stick."""
    m = MATERIAL_SIZE * j
    if contacts.stretch[j] < 0:
        e = contacts.material[m + REGULARIZATION_SPEED]
        return contacts.material[m + FRICTION] * N * sqrt(dot3(slip, slip) / (dot3(slip, slip) + e * e))
    first = contacts.stretch[j]
    for k in range(contacts.stretch.size):
        if contacts.stretch[k] >= 0 and contacts.stretch[k] < contacts.stretch[j]:
            first = min(first, contacts.stretch[k])
    t, _ = sticking_friction(contacts, j, N, n, slip, slip, load3(stretch, contacts.stretch[j] - first))
    return sqrt(dot3(t, t))


@internal_kernel
def motion_of_pair(contacts, j, tree, q, v):
    """Return the pose of a relative to the start of its path, the twist of a, the pose of b in a, and the twist of b.

    For GROUND, b is the world. Both twists are in the frame of a.
    """
    Ta, Va = link_pose_and_twist(contacts.path, contacts.first[j], contacts.first[j + 1], contacts.link[j], tree, q, v)
    Tb, Vb = _IDENTITY, _ZERO_TWIST
    if contacts.kind[j] != GROUND:
        Tb, Vb = link_pose_and_twist(contacts.other_path, contacts.other_first[j], contacts.other_first[j + 1],
                                     contacts.other[j], tree, q, v)
    X = compose(inverse(Ta), Tb)
    return Ta, Va, X, Ad(X, Vb)


# Derivative of the generalized force of contacts with respect to the state -----------------------------------------------

# All is in the frame of the link a of a contact. X is the pose of the link b (or of the world) in a, U the twist of a minus that
# of b. A change of a coordinate moves b relative to a by the twist eta, and changes U by dU; column k of the relative Jacobian C
# is eta of q_k:
#
#     joints of a:  C = -J,       dU =  ad_{V before} J       - ad_eta Ad_X V_b
#     joints of b:  C = Ad_X J,   dU = -Ad_X ad_{V before} J  - ad_eta Ad_X V_b
#
# for a change of q_k, where V before is the twist of the joints nearer to the ground, and eta = 0, dU = -C for a change of v_k.
# The wrench F on a changes by dF(eta, dU), that on b, in the frame of b, by -Ad*_X (dF + ad*_eta F). In joints that carry both
# links, the sum of the two is -ad*_eta F.


@kernel
def contact_wrench_jacobian(index, constants, contacts, q, v, C, E, out):
    """Add to out (nv, 2 nv) the derivative of the generalized force of all contacts with respect to [q; v].

    The part that the change of J^T contributes, with each wrench constant in the frame of its link, is left out. C, E: (6 nv,)
    workspace. Numbers are float64.
    """
    tree = tree_views(index, constants)
    for j in range(contacts.link.size):
        a, b = contacts.link[j], contacts.other[j]
        on_a = contacts.first[j], contacts.first[j + 1]
        on_b = contacts.other_first[j], contacts.other_first[j + 1]
        _, Va, X, Vb = motion_of_pair(contacts, j, tree, q, v)
        U = sub(Va, Vb)
        d, n, p = contact_geometry(contacts, j, X)
        if not normal_force(contacts, j, d, approach_and_slip(n, p, U)[0]) > 0.0:
            continue
        store_relative_columns(contacts.path, on_a[0], on_a[1], a, tree, q, v, -1.0, _IDENTITY, Va, C, E)
        if contacts.kind[j] != GROUND:
            store_relative_columns(contacts.other_path, on_b[0], on_b[1], b, tree, q, v, 1.0, X, Vb, C, E)
        add_force_columns(contacts.path, on_a[0], on_a[1], contacts, j, tree, q, X, Vb, U, C, E, out)
        if contacts.kind[j] != GROUND:
            add_force_columns(contacts.other_path, on_b[0], on_b[1], contacts, j, tree, q, X, Vb, U, C, E, out)


@kernel
def store_relative_columns(path, first, last, link, tree, q, v, sign, X, V, C, E):
    """Write the columns of C and E of the joints along a path, in the frame of a.

    E is dU without -ad_eta Ad_X V_b: ad_{V before} J for joints of a (sign -1), -ad_{V before} J for those of b (sign 1).

    X  pose of the link in a
    V  twist of the link, in the frame of a
    """
    T = load_pose(tree.link_pose, link)
    for k in range(last - 1, first - 1, -1):
        i = path[k]
        V = sub(V, Ad(X, Ad_inv(T, joint_add(tree, i, _ZERO_TWIST, v))))
        for c in range(NV[tree.kind[i]]):
            J = Ad(X, Ad_inv(T, joint_column(tree, i, c, 0.0)))
            o = tree.iv[i] + c
            store_twist(C, o, J if sign > 0.0 else neg(J))
            store_twist(E, o, neg(ad(V, J)) if sign > 0.0 else ad(V, J))
        T = compose(joint_pose(tree, i, q), T)


@kernel
def add_force_columns(path, first, last, contacts, j, tree, q, X, Vb, U, C, E, out):
    """Add the columns of the joints along a path to out."""
    nv = tree.armature.size
    for k in range(first, last):
        i = path[k]
        for c in range(NV[tree.kind[i]]):
            o = tree.iv[i] + c
            eta = load_twist(C, o)
            F, dF = wrench_derivative(contacts, j, X, U, eta, sub(load_twist(E, o), ad(eta, Vb)))
            turned = neg_dad(eta, F)
            add_force_column(contacts, j, tree, C, dF, sub(dF, turned), o, out)
            add_shared_force_column(contacts, j, tree, q, turned, o, out)
            F, dF = wrench_derivative(contacts, j, X, U, _ZERO_TWIST, neg(eta))
            add_force_column(contacts, j, tree, C, dF, dF, nv + o, out)


@inline_kernel
def add_force_column(contacts, j, tree, C, on_a, on_b, column, out):
    """Add the generalized force of the wrench on_a on a and -on_b on b to a column of out, both in the frame of a."""
    for k in range(contacts.first[j], contacts.first[j + 1]):
        i = contacts.path[k]
        for c in range(NV[tree.kind[i]]):
            out[tree.iv[i] + c, column] -= dot(on_a, load_twist(C, tree.iv[i] + c))
    for k in range(contacts.other_first[j], contacts.other_first[j + 1]):
        i = contacts.other_path[k]
        for c in range(NV[tree.kind[i]]):
            out[tree.iv[i] + c, column] -= dot(on_b, load_twist(C, tree.iv[i] + c))


@kernel
def add_shared_force_column(contacts, j, tree, q, F, column, out):
    """Add the generalized force of F on a, in the joints that carry both links, to a column of out."""
    T, i = load_pose(tree.link_pose, contacts.link[j]), tree.link_body[contacts.link[j]]
    for k in range(contacts.first[j + 1] - 1, contacts.first[j] - 1, -1):
        i = contacts.path[k]
        T = compose(joint_pose(tree, i, q), T)
        i = tree.parent[i]
    while i > 0:
        for c in range(NV[tree.kind[i]]):
            out[tree.iv[i] + c, column] += dot(F, Ad_inv(T, joint_column(tree, i, c, 0.0)))
        T = compose(joint_pose(tree, i, q), T)
        i = tree.parent[i]


@kernel
def wrench_derivative(contacts, j, X, U, eta, dU):
    """Return F, the wrench on a, and dF. X, U, eta, dU: as above."""
    d, n, p = contact_geometry(contacts, j, X)
    x = load3(contacts.normal, 3 * j)
    if contacts.kind[j] == SPHERE:
        x = sub3(p, scale3(contacts.height[j] - 0.5 * d, n))                  # centre of the sphere of b
        dx = add_cross(eta[1], eta[0], x)
        l = contacts.radius[j] + contacts.height[j] - d
        dd = dot3(n, dx)
        dn = scale3(-1.0 / l, sub3(dx, scale3(dd, n)))
        dp = sub3(add3(dx, scale3(contacts.height[j] - 0.5 * d, dn)), scale3(0.5 * dd, n))
    else:
        x = X[1]                                                              # height of a point p above b: h_b + n (p - x)
        dn = cross(eta[0], n)
        dp = scale3(-contacts.radius[j], dn)
        dd = dot3(n, add_cross(eta[1], eta[0], x)) - dot3(dn, sub3(load3(contacts.centre, 3 * j), x))
    u = add_cross(U[1], U[0], p)
    du = add3(add_cross(dU[1], dU[0], p), cross(U[0], dp))
    rate, drate = -dot3(n, u), -dot3(dn, u) - dot3(n, du)
    N, dN = normal_force(contacts, j, d, rate), normal_derivative(contacts, j, d, rate, dd, drate)
    mu, e = contacts.material[MATERIAL_SIZE * j + FRICTION], contacts.material[MATERIAL_SIZE * j + REGULARIZATION_SPEED]
    slip, dslip = add3(u, scale3(rate, n)), add3(du, add3(scale3(drate, n), scale3(rate, dn)))
    s = 1.0 / sqrt(dot3(slip, slip) + e * e)
    ds = -s * s * s * dot3(slip, dslip)
    direction = sub3(n, scale3(mu * s, slip))
    f = scale3(N, direction)
    df = add3(scale3(dN, direction), scale3(N, sub3(dn, scale3(mu, add3(scale3(ds, slip), scale3(s, dslip))))))
    return (cross(p, f), f), (add3(cross(dp, f), cross(p, df)), df)


@inline_kernel
def normal_derivative(contacts, j, d, rate, dd, drate):
    """Return the change of a positive normal force due to changes dd of the depth and drate of its rate."""
    m = MATERIAL_SIZE * j
    k, c, w, n = (contacts.material[m + STIFFNESS], contacts.material[m + DAMPING], contacts.material[m + WIDTH],
                  0.5 * contacts.doubled_exponent[j])
    g, dg, s, ds = 1.0 + c * rate, c * drate, d, dd
    if contacts.smooth[j]:
        dg, ds = dg * regularized_derivative(g, DAMPING_WIDTH), ds * regularized_derivative(s, w)
        g, s = smooth_positive_part(g, DAMPING_WIDTH), smooth_positive_part(s, w)
    x = half_power(s, contacts.doubled_exponent[j])
    return k * (x * dg + n * x / s * ds * g)


@inline_kernel
def regularized_derivative(x, w):
    """Return the derivative of s(x) in the smooth form with the width w."""
    return min(max((x + w) / (2.0 * w), 0.0), 1.0)
