"""The model for kernels: views into its two flat arrays (AGF (27), Figure 1: parents and children).

`index` (int64) holds    [n, nq, nv, n_links, passive forces?, friction?, followers, terms, force elements, their numbers], then
                         parent, kind, iq, iv, flags, slot (n each), link_body (n_links), above, top, last (nv each), and six
                         integers of each force element (`kernels.force_elements`).
`constants` (numbers)    dV0 (6), S (2n), T0 (12n), I (10n), J (10n), link_pose (12 n_links),
                         armature, damping, friction, stiffness, rest, floor (nv each), frames (24 each) and numbers of force
                         elements.
Where coupled coordinates are eliminated, both end with the followers and the terms of their values (`kernels.couplings`).

Body 0 is the ground; parents come before their children. `constants` may be (m, 8): then each lane has another model with the
same flags.
"""
from typing import NamedTuple

import numpy as np

from liedyn.lie.inertia import add_sym6, rank_one_downdate, remove_z_inertia, sym6_to_parent, symv6
from liedyn.lie.inertia import rigid_to_parent as rigid_of_parent
from liedyn.lie.se3 import ad, ad_screw, add, dot, scale, screw_add, screw_dot, screw_pose, unit6
from liedyn.lie.simd import load, maximum, number_like, sincos, sqrt, store
from liedyn.lie.so3 import quaternion_rotation
from liedyn.lie.vectors import (
    add_rotate,
    load3,
    load_pose,
    load_sym6,
    load_twist,
    matmul3,
    store3_strided,
    store_sym6,
    store_twist,
)
from liedyn.model.description import (
    BALL,
    FREE,
    HAS_CHILDREN,
    INDEX_HEADER,
    LAST_CHILD,
    NO_AXIAL_INERTIA,
    NV,
    ONE_DOF,
)
from liedyn.model.force_element import ELEMENT_SIZE
from liedyn.numba_tools.decorators import inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace

# entries of the header: followers of couplings, terms of their values, force elements, and their numbers
FOLLOWER_COUNT, TERM_COUNT, ELEMENT_COUNT, ELEMENT_NUMBERS = 6, 7, 8, 9


class Tree(NamedTuple):
    """Arrays of a model with n bodies."""

    parent: np.ndarray      # (n,) body indices
    kind: np.ndarray        # (n,) joint of body i to its parent: ONE_DOF, BALL, FREE
    iq: np.ndarray          # (n,) first coordinate in q
    iv: np.ndarray          # (n,) first coordinate in v
    flags: np.ndarray       # (n,) HAS_CHILDREN | LAST_CHILD | ROTATES | TRANSLATES | NO_AXIAL_INERTIA, see `model.description`
    slot: np.ndarray        # (n,) position of the sum over the children of body i in a backward pass; reused when free
    link_body: np.ndarray   # (n_links,) body that carries the link
    above: np.ndarray       # (nv,) the coordinate before this one on the path from the ground, or -1
    top: np.ndarray         # (nv,) the first coordinate on that path
    last: np.ndarray        # (nv,) the last coordinate that this one moves; it moves all coordinates up to that one
    element: np.ndarray     # (6 elements,) integers of each force element: see `model.force_element`
    dV0: np.ndarray         # (6,) acceleration of the ground: [0; -g]
    S: np.ndarray           # (2n,) screws
    T0: np.ndarray          # (12n,) pose in the parent at q = 0
    I: np.ndarray           # (10n,) mass, first moment, second moment
    J: np.ndarray           # (10n,) minimal inertias, enough for generalized forces: see `model.spatial`
    link_pose: np.ndarray   # (12 n_links,) pose of the link in its body
    armature: np.ndarray    # (nv,)
    damping: np.ndarray     # (nv,)
    friction: np.ndarray    # (nv,)
    stiffness: np.ndarray   # (nv,)
    rest: np.ndarray        # (nv,)
    friction_speed: np.ndarray  # (nv,) below it, friction is smoothed
    floor: np.ndarray       # (nv,) a pivot below it is rounding
    element_pose: np.ndarray    # (24 elements,) frames A and B of each force element in their bodies
    element_values: np.ndarray  # numbers of the force elements


@jitable
def index_sizes(index):
    """Return the sizes of the arrays in `Model.index` of a tree."""
    n, nv = index[0], index[2]
    return INDEX_HEADER, n, n, n, n, n, n, index[3], nv, nv, nv, ELEMENT_SIZE * index[ELEMENT_COUNT]


@jitable
def constants_sizes(index):
    """Return the sizes of the arrays in `Model.constants` of a tree."""
    n, nv = index[0], index[2]
    return (6, 2 * n, 12 * n, 10 * n, 10 * n, 12 * index[3], nv, nv, nv, nv, nv, nv, nv, 24 * index[ELEMENT_COUNT],
            index[ELEMENT_NUMBERS])


@inline_kernel
def tree_views(index, constants):
    """Return the `Tree` whose arrays are views into index and constants."""
    return Tree(*(split_workspace(index, index_sizes(index))[1:-1] + split_workspace(constants, constants_sizes(index))[:-1]))


@inline_kernel
def tree_of_law(index, constants, tree):
    """Return the tree of the model of a control law, or `tree` if the law has no model."""
    if index.size:
        return tree_views(index, constants)
    return tree


@inline_kernel
def unpack_model(packed):
    """Return index, constants and workspace from one array: each array that Python passes costs 0.1 us."""
    index = packed.view(np.int64)
    i = sum(index_sizes(index))
    _, constants, workspace = split_workspace(packed, (i, sum(constants_sizes(index))))
    return index[:i], constants, workspace


# Pose, twist, velocity product and force of a joint, for all kinds (K1 (35)-(40); PBP (23); PL (14)) --------------------

@inline_kernel
def screw(tree, i):
    """Return the screw (a, b) about z of body i."""
    return load(tree.S, 2 * i), load(tree.S, 2 * i + 1)


@inline_kernel
def common_body(tree, a, b):
    """Return the last body that is on the paths from the ground to both bodies. Parents have smaller numbers."""
    while a != b:
        if a > b:
            a = tree.parent[a]
        else:
            b = tree.parent[b]
    return a


@inline_kernel
def load_quaternion(q, o):
    """Return the quaternion x y z w at q[o] … q[o + 3]."""
    return load(q, o), load(q, o + 1), load(q, o + 2), load(q, o + 3)


@inline_kernel
def joint_pose(tree, i, q):
    """Return the pose T of body i in its parent."""
    o = tree.iq[i]
    T0 = load_pose(tree.T0, i)
    if tree.kind[i] == ONE_DOF:
        S, x = screw(tree, i), load(q, o)
        s, c = sincos(S[0] * x)
        return screw_pose(T0, S, s, c, x)
    if tree.kind[i] == BALL:
        R = quaternion_rotation(load_quaternion(q, o))
        zero = R[0] - R[0]
        return matmul3(T0[0], R), (T0[1][0] + zero, T0[1][1] + zero, T0[1][2] + zero)
    return matmul3(T0[0], quaternion_rotation(load_quaternion(q, o + 3))), add_rotate(T0[1], T0[0], load3(q, o))


@inline_kernel
def joint_motion(tree, i, v):
    """Return S v of a ball or free joint."""
    o = tree.iv[i]
    w = load3(v, o)
    if tree.kind[i] == BALL:
        zero = w[0] - w[0]
        return w, (zero, zero, zero)
    return w, load3(v, o + 3)


@inline_kernel
def joint_add(tree, i, V, v):
    """Return V + S v. v: velocities or accelerations of all coordinates."""
    if tree.kind[i] == ONE_DOF:
        return screw_add(V, screw(tree, i), load(v, tree.iv[i]))
    return add(V, joint_motion(tree, i, v))


@inline_kernel
def joint_eta(tree, i, V, v):
    """Return eta = ad_V S v (K1 Table 4; dS/dt is zero for all kinds)."""
    if tree.kind[i] == ONE_DOF:
        return ad_screw(V, screw(tree, i), load(v, tree.iv[i]))
    return ad(V, joint_motion(tree, i, v))


@inline_kernel
def store_joint_force(tree, i, F, tau):
    """Write tau = S^T F."""
    store_joint_force_strided(tree, i, F, tau, tree.iv[i], 1)


@inline_kernel
def store_joint_force_strided(tree, i, F, x, o, step):
    """Write S^T F to x[o], x[o + step], …; F is in the frame of the body."""
    if tree.kind[i] == ONE_DOF:
        store(x, o, screw_dot(screw(tree, i), F))
    else:
        store3_strided(x, o, step, F[0])
        if tree.kind[i] == FREE:
            store3_strided(x, o + 3 * step, step, F[1])


@inline_kernel
def joint_column(tree, i, c, zero):
    """Return column c of S in the body frame; `zero` gives the kind of number."""
    if tree.kind[i] == ONE_DOF:
        S = screw(tree, i)
        return (zero, zero, zero + S[0]), (zero, zero, zero + S[1])
    return unit6(c, zero)


@inline_kernel
def inertia_to_parent(tree, i, q, T, X):
    """Return a symmetric 6x6 of body i, at pose T in its parent, in the frame of the parent. Traces replace this function."""
    return sym6_to_parent(T, X)


@inline_kernel
def rigid_to_parent(tree, i, q, T, I):
    """Return the rigid body I of body i in the frame of the parent."""
    return rigid_of_parent(T, I)


# Sums over the children of a body in a backward pass (children first); `sums` has space for one sum per body ------------

@inline_kernel
def accumulate_children(tree, i, F, sums):
    """Return F plus the sum of the wrenches that the children of body i propagated."""
    return add(F, load_twist(sums, i)) if tree.flags[i] & HAS_CHILDREN else F


@inline_kernel
def propagate_to_parent(tree, i, F, sums):
    """Add the wrench F, transformed to the frame of the parent of body i, to the parent's sum; the ground has no sum."""
    p = tree.parent[i]
    if p > 0:
        store_twist(sums, p, F if tree.flags[i] & LAST_CHILD else add(F, load_twist(sums, p)))


@inline_kernel
def accumulate_children_inertia(tree, i, X, sums):
    """Return X plus the sum of the symmetric 6x6 that the children of body i propagated."""
    return add_sym6(X, load_sym6(sums, i)) if tree.flags[i] & HAS_CHILDREN else X


@inline_kernel
def propagate_inertia_to_parent(tree, i, X, sums):
    """Add the symmetric 6x6 X, in the frame of the parent of body i, to the parent's sum; the ground has no sum."""
    p = tree.parent[i]
    if p > 0:
        store_sym6(sums, p, X if tree.flags[i] & LAST_CHILD else add_sym6(X, load_sym6(sums, p)))


# Passive generalized forces: damping, smoothed Coulomb friction, springs; and the energy of the springs -----------------------

@inline_kernel
def resistance(tree, k, v):
    """Return damping and friction of one coordinate: -d v - f v / sqrt(v^2 + v_s^2)."""
    x, s = load(v, k), load(tree.friction_speed, k)
    return -(load(tree.damping, k) * x + load(tree.friction, k) * x / sqrt(x * x + s * s))


@inline_kernel
def passive_force(tree, q, v, out):
    """Write out (nv,): forces of springs, damping and friction, which add to tau."""
    for i in range(1, tree.parent.size):
        o = tree.iv[i]
        for k in range(o, o + NV[tree.kind[i]]):
            force = resistance(tree, k, v)
            if tree.kind[i] == ONE_DOF:
                force = force - load(tree.stiffness, k) * (load(q, tree.iq[i]) - load(tree.rest, k))
            store(out, k, force)


@inline_kernel
def resistance_derivative(tree, k, v):
    """Return minus the derivative of `resistance` with respect to the velocity."""
    x, s = load(v, k), load(tree.friction_speed, k)
    r, w = 1.0 / (x * x + s * s), s * s
    return load(tree.damping, k) + load(tree.friction, k) * w * r * sqrt(r)


@inline_kernel
def resistance_curvature(tree, k, v):
    """Return the derivative of `resistance_derivative` with respect to the velocity."""
    x, s = load(v, k), load(tree.friction_speed, k)
    r, w = 1.0 / (x * x + s * s), s * s
    return -3.0 * load(tree.friction, k) * w * x * r * r * sqrt(r)


@inline_kernel
def spring_energy(tree, q):
    """Return the potential energy of all joint springs: 1/2 k (q - rest)^2."""
    energy = number_like(q, 0.0)
    for i in range(1, tree.parent.size):
        if tree.kind[i] == ONE_DOF:
            k = tree.iv[i]
            x = load(q, tree.iq[i]) - load(tree.rest, k)
            energy = energy + 0.5 * load(tree.stiffness, k) * x * x
    return energy


# Elimination of a joint from its body's articulated equation, and its solution afterwards -------------------------------

# Source: K1 (42)-(52), Table 4; AGF (45)-(50).
#
# In the equation F = AI dV + AB of body i, with dV = Ad_{T^-1} dV_p + eta + sum_c S_c a_c, the columns S_c are eliminated one
# after another, so any mask of prescribed coordinates is possible in a joint of several coordinates. For each column,
# U = AI S_c and D = S_c^T U + armature, and
#
#     not prescribed:  Psi = 1/D, u = tau + passive - S_c^T AB:  AI -= U Psi U^T, AB += U Psi u;  then a = Psi (u - U^T dV)
#     prescribed:      Psi = D,   u = S_c^T AB:                  AB += U a;             then tau = u + U^T dV + Psi a - passive
#
# with dV without the columns eliminated before and without S_c a_c. The remaining AI is Pi. U and Psi depend on q only.

@inline_kernel
def eliminate_joint(tree, i, AI, prescribed, ws):
    """Store U and Psi. Return Pi, and by how much the smallest D is below its floor: positive for a vanishing inertia."""
    Pi, zero = AI, AI[0][0] - AI[0][0]
    deficit = zero - 1.0
    for c in range(NV[tree.kind[i]]):
        k, S = tree.iv[i] + c, joint_column(tree, i, c, zero)
        U = symv6(Pi, S)
        D = dot(U, S) + load(tree.armature, k)
        Psi = D
        if not prescribed[k]:
            Psi = 1.0 / D
            Pi = rank_one_downdate(Pi, U, Psi)
            if tree.flags[i] & NO_AXIAL_INERTIA:
                Pi = remove_z_inertia(Pi)                       # constant zeros: 7 % fewer operations in generated code
            deficit = maximum(deficit, load(tree.floor, k) - D)
        store_twist(ws.U, k, U)
        store(ws.Psi, k, Psi)
    return Pi, deficit


@inline_kernel
def eliminate_joint_bias(tree, i, AB, prescribed, passive, a, tau, ws):
    """Store u. Return AB after the elimination of the columns."""
    zero = AB[0][0] - AB[0][0]
    for c in range(NV[tree.kind[i]]):
        k, S = tree.iv[i] + c, joint_column(tree, i, c, zero)
        U, SAB = load_twist(ws.U, k), dot(AB, S)
        if prescribed[k]:
            store(ws.u, k, SAB)
            AB = add(AB, scale(load(a, k), U))
        else:
            u = load(tau, k) - SAB
            if passive:
                u = u + load(ws.passive, k)
            store(ws.u, k, u)
            AB = add(AB, scale(load(ws.Psi, k) * u, U))
    return AB


@inline_kernel
def solve_joint(tree, i, dV, prescribed, passive, a, tau, ws):
    """Return dV of the body from Ad_{T^-1} dV_p + eta. Write a where not prescribed and tau where prescribed."""
    zero = dV[0][0] - dV[0][0]
    for c in range(NV[tree.kind[i]] - 1, -1, -1):
        k, S = tree.iv[i] + c, joint_column(tree, i, c, zero)
        Psi, u, UdV = load(ws.Psi, k), load(ws.u, k), dot(load_twist(ws.U, k), dV)
        if prescribed[k]:
            x = load(a, k)
            force = u + UdV + Psi * x
            if passive:
                force = force - load(ws.passive, k)
            store(tau, k, force)
        else:
            x = Psi * (u - UdV)
            store(a, k, x)
        dV = add(dV, scale(x, S))
    return dV
