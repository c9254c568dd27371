"""Force elements between two frames A and B of any two bodies: springs, dampers, gas springs, cables, torsion springs, bushings.

An element acts on B with a wrench F(X, U) of the pose X of B in A and the twist U of B relative to A, both in frame A; the
opposite wrench acts on A. With the column C_k, the twist of B relative to A for a unit velocity of coordinate k, its generalized
force is C_k^T F. Of coordinates that move both frames alike, C_k is zero: only the joints between the two bodies take part.

An element along one coordinate x (a distance, or an angle about an axis) has the gradient n = dx/d(motion), a wrench:

    x' = n^T U,    F = -(dE/dx + r) n

with the stored energy E(x) and a resistance r(x, x'). A change of the configuration moves B relative to A by the twist eta. The
body of column k moves relative to A by eta_k (the part of eta of the joints between this body and A): dC_k = ad_{eta_k} C_k.
"""
from functools import partial

import numpy as np

from liedyn.joints.joint_model import (
    ELEMENT_COUNT,
    common_body,
    constants_sizes,
    joint_add,
    joint_column,
    joint_pose,
    passive_force,
    tree_views,
)
from liedyn.kernels.batch_blocks import BAD_RESULT, OK, load_state, store_block
from liedyn.lie.se3 import Ad, Ad_inv, ad, add, compose, dAd, dAd_inv, dot, identity, inverse, neg, neg_dad, scale, sub, zero6
from liedyn.lie.simd import SIMD_WIDTH, atan2, exp, expm1, load, log1p, maximum, number_like, sqrt, store, where_less
from liedyn.lie.so3 import dexp_inv3, half_cot, horner, log3
from liedyn.lie.vectors import add3, add_cross, cross, dot3, load_pose, scale3, sub3
from liedyn.model.description import INDEX_HEADER, NV
from liedyn.model.force_element import (
    BUSHING,
    CABLE,
    ELEMENT_SIZE,
    GAS,
    GAS_ISOTHERMAL,
    GAS_VALUES,
    PIECE_SIZE,
    TORSION,
)
from liedyn.numba_tools.decorators import entry_point, inline_kernel, internal_kernel, kernel
from liedyn.numba_tools.deferred_kernels import call_deferred, defer
from liedyn.numba_tools.numba_internals import split_workspace

# Law of an element: energy and resistance of its coordinate ---------------------------------------------------------------

@internal_kernel
def piecewise_polynomial(values, o, pieces, x):
    """Return the value and two derivatives at x of pieces (start, five ascending coefficients) from values[o] on."""
    zero = x - x
    start, c0, c1 = zero + load(values, o), zero + load(values, o + 1), zero + load(values, o + 2)
    c2, c3, c4 = zero + load(values, o + 3), zero + load(values, o + 4), zero + load(values, o + 5)
    for k in range(1, pieces):
        p = o + PIECE_SIZE * k
        b = zero + load(values, p)
        c0 = where_less(x, b, c0, zero + load(values, p + 1))
        c1 = where_less(x, b, c1, zero + load(values, p + 2))
        c2 = where_less(x, b, c2, zero + load(values, p + 3))
        c3 = where_less(x, b, c3, zero + load(values, p + 4))
        c4 = where_less(x, b, c4, zero + load(values, p + 5))
        start = where_less(x, b, start, b)
    s = x - start
    return (c0 + s * (c1 + s * (c2 + s * (c3 + s * c4))), c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4))),
            2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4)))


@internal_kernel
def stored_energy(tree, e, x):
    """Return the energy E of element e at its coordinate x, dE/dx and the second derivative."""
    kind, o = tree.element[ELEMENT_SIZE * e], tree.element[ELEMENT_SIZE * e + 3] + 1
    if kind in (GAS, GAS_ISOTHERMAL):
        F, h, n, longest = (load(tree.element_values, o), load(tree.element_values, o + 1), load(tree.element_values, o + 2),
                            load(tree.element_values, o + 3))
        t = (x - longest) / h
        log_y = log1p(t)                               # y = 1 + t: volume of the gas relative to that of the extended spring
        push = F * exp(-n * log_y)
        E = -(F * h) * log_y if kind == GAS_ISOTHERMAL else F * h * expm1((1.0 - n) * log_y) / (n - 1.0)
        return E, -push, n * push / (h * (1.0 + t))
    return piecewise_polynomial(tree.element_values, o, tree.element[ELEMENT_SIZE * e + 4], x)


@internal_kernel
def element_law(tree, e, x, rate):
    """Return dE/dx, the resistance r, and the derivatives of their sum with respect to x and to its rate."""
    o, zero = ELEMENT_SIZE * e, x - x
    kind, pieces = tree.element[o], tree.element[o + 5]
    _, elastic, slope = stored_energy(tree, e, x)
    r, by_x, by_rate = zero, slope, zero
    if pieces > 0:
        first = tree.element[o + 3] + 1 + (GAS_VALUES if kind in (GAS, GAS_ISOTHERMAL) else
                                           PIECE_SIZE * tree.element[o + 4])
        _, r, by_rate = piecewise_polynomial(tree.element_values, first, pieces, rate)
        if kind == CABLE:                                       # |r| <= dE/dx: a cable never pushes, and its force is continuous
            low, high = r + elastic, elastic - r                 # negative where the resistance reaches its bound
            by_x = by_x + where_less(high, 0.0, slope, where_less(low, 0.0, -slope, zero))
            by_rate = where_less(high, 0.0, zero, where_less(low, 0.0, zero, by_rate))
            r = where_less(high, 0.0, elastic, where_less(low, 0.0, -elastic, r))
    return elastic, r, by_x, by_rate


@internal_kernel
def axial_gradient(tree, e, X):
    """Return the distance of the origins of A and B and its gradient, a wrench.

    The first value of the element is added in square: zero, or so small that it is rounding. It gives elements without force at
    distance zero a direction there.
    """
    w, p = load(tree.element_values, tree.element[ELEMENT_SIZE * e + 3]), X[1]
    l = sqrt(dot3(p, p) + w * w)
    zero = l - l
    return l, ((zero, zero, zero), scale3(1.0 / l, p))


@internal_kernel
def torsion_gradient(X):
    """Return the angle of B about the z axis of A, and its gradient, a wrench."""
    R = X[0]
    s, c = R[3] - R[1], R[0] + R[4]
    f = 1.0 / (s * s + c * c)
    zero = s - s
    return atan2(s, c), ((f * (s * R[7] - c * R[6]), -f * (c * R[7] + s * R[6]), zero + 1.0), (zero, zero, zero))


@internal_kernel
def element_gradient(tree, e, X):
    """Return the coordinate of an element and its gradient."""
    if tree.element[ELEMENT_SIZE * e] == TORSION:
        return torsion_gradient(X)
    return axial_gradient(tree, e, X)


@internal_kernel
def gradient_derivative(tree, e, X, x, n, eta):
    """Return the change of the gradient n where B moves relative to A by eta."""
    zero = x - x
    w = eta[0]
    if tree.element[ELEMENT_SIZE * e] == TORSION:
        R = X[0]
        a, b, s, c = R[6], R[7], R[3] - R[1], R[0] + R[4]
        da, db = w[0] * R[3] - w[1] * R[0], w[0] * R[4] - w[1] * R[1]
        ds, dc = w[2] * c - w[0] * a - w[1] * b, w[1] * a - w[0] * b - w[2] * s
        f = 1.0 / (s * s + c * c)
        df = -2.0 * f * (s * ds + c * dc)
        return ((f * (ds * b + s * db - dc * a - c * da) + df * n[0][0], -f * (dc * b + c * db + ds * a + s * da) + df * n[0][1],
                 zero), (zero, zero, zero))
    u, dp = n[1], add_cross(eta[1], w, X[1])
    return (zero, zero, zero), scale3(1.0 / x, sub3(dp, scale3(dot3(u, dp), u)))


# Bushings: energy 1/2 d^T K d of the displacement d = [rotation vector; position] of B in A ---------------------------------

@internal_kernel
def matrix_product(tree, o, x):
    """Return the product of the 6x6 matrix at element_values[o] and a displacement or its rate."""
    a = x[0][0], x[0][1], x[0][2], x[1][0], x[1][1], x[1][2]
    y = (matrix_row(tree, o, a), matrix_row(tree, o + 6, a), matrix_row(tree, o + 12, a))
    return y, (matrix_row(tree, o + 18, a), matrix_row(tree, o + 24, a), matrix_row(tree, o + 30, a))


@inline_kernel
def matrix_row(tree, o, a):
    """Return the product of six numbers at element_values[o] with a."""
    total = a[0] - a[0]
    for k in range(6):
        total = total + load(tree.element_values, o + k) * a[k]
    return total


@internal_kernel
def displacement(X, U):
    """Return the displacement d of B in A and its rate."""
    angle = log3(X[0])
    return (angle, X[1]), (dexp_inv3(angle, U[0]), add_cross(U[1], U[0], X[1]))


@internal_kernel
def bushing_wrench(tree, e, X, U):
    """Return the wrench on B."""
    o = tree.element[ELEMENT_SIZE * e + 3]
    d, rate = displacement(X, U)
    m, f = add(matrix_product(tree, o, d), matrix_product(tree, o + 36, rate))
    return neg((add_cross(dexp_inv3(scale3(-1.0, d[0]), m), X[1], f), f))


# coefficients of the derivative of (1 - t/2 cot(t/2))/t^2 with respect to t^2, from |B_2n|/(2n)!
_KAPPA = tuple((k + 1) * c for k, c in enumerate((
    1.0 / 720.0, 1.0 / 30240.0, 1.0 / 1209600.0, 1.0 / 47900160.0, 691.0 / 1307674368000.0, 1.0 / 74724249600.0,
    3617.0 / 10670622842880000.0, 43867.0 / 5109094217170944000.0, 174611.0 / 802857662698291200000.0,
    77683.0 / 14101100039391805440000.0)))


@internal_kernel
def dexp_inv3_derivative(w, dw, x):
    """Return the derivative of `dexp_inv3(w, x)` with respect to w in the direction dw."""
    tt = dot3(w, w)
    h, kappa = half_cot(tt)
    far = (0.125 - 0.5 * h * kappa - kappa) / maximum(tt, tt * 0.0 + 1.0)
    slope = where_less(tt, 1.0, horner(tt, _KAPPA), far)
    wx, dwx = cross(w, x), cross(dw, x)
    second = add3(cross(dw, wx), cross(w, dwx))
    return add3(scale3(-0.5, dwx), add3(scale3(2.0 * slope * dot3(w, dw), cross(w, wx)), scale3(kappa, second)))


@internal_kernel
def bushing_wrench_derivative(tree, e, X, U, eta, dU):
    """Return the change of the wrench on B where B moves relative to A by eta, and U changes by dU."""
    o = tree.element[ELEMENT_SIZE * e + 3]
    d, rate = displacement(X, U)
    da, dp = dexp_inv3(d[0], eta[0]), add_cross(eta[1], eta[0], X[1])
    drate = (add3(dexp_inv3_derivative(d[0], da, U[0]), dexp_inv3(d[0], dU[0])),
             add3(add_cross(dU[1], dU[0], X[1]), cross(U[0], dp)))
    m, f = add(matrix_product(tree, o, d), matrix_product(tree, o + 36, rate))
    dm, df = add(matrix_product(tree, o, (da, dp)), matrix_product(tree, o + 36, drate))
    back = scale3(-1.0, d[0])
    turned = add3(dexp_inv3_derivative(back, scale3(-1.0, da), m), dexp_inv3(back, dm))
    return neg((add3(turned, add3(cross(dp, f), cross(X[1], df))), df))


# Wrench of an element -----------------------------------------------------------------------------------------------------

@internal_kernel
def element_wrench(tree, e, X, U):
    """Return the wrench F on B about the origin of A, in frame A."""
    if tree.element[ELEMENT_SIZE * e] == BUSHING:
        return bushing_wrench(tree, e, X, U)
    x, n = element_gradient(tree, e, X)
    elastic, r, _, _ = element_law(tree, e, x, dot(n, U))
    return scale(-(elastic + r), n)


@internal_kernel
def element_wrench_derivative(tree, e, X, U, eta, dU):
    """Return F, and its change where B moves relative to A by eta, and U changes by dU."""
    if tree.element[ELEMENT_SIZE * e] == BUSHING:
        return bushing_wrench(tree, e, X, U), bushing_wrench_derivative(tree, e, X, U, eta, dU)
    x, n = element_gradient(tree, e, X)
    dn = gradient_derivative(tree, e, X, x, n, eta)
    elastic, r, by_x, by_rate = element_law(tree, e, x, dot(n, U))
    change = by_x * dot(n, eta) + by_rate * (dot(dn, U) + dot(n, dU))
    return scale(-(elastic + r), n), neg(add(scale(change, n), scale(elastic + r, dn)))


# The two sides of an element -----------------------------------------------------------------------------------------------

@inline_kernel
def common_body_of_element(tree, e):
    """Return the last body that carries both frames of an element."""
    return common_body(tree, tree.element[ELEMENT_SIZE * e + 1], tree.element[ELEMENT_SIZE * e + 2])


@internal_kernel
def pose_in_parent(tree, i, q, T):
    """Return the pose of a frame in the parent of body i from its pose T in the body."""
    return compose(joint_pose(tree, i, q), T)


@inline_kernel
def frame_in_body(tree, k, q):
    """Return the pose of frame k (2 e: A of element e, 2 e + 1: B) in its body."""
    return compose(identity(number_like(q, 0.0)), load_pose(tree.element_pose, k))


@internal_kernel
def side_motion(tree, k, common, q, v):
    """Return the pose of frame k relative to the common body, and its twist relative to it, in the frame."""
    T, i = frame_in_body(tree, k, q), tree.element[ELEMENT_SIZE * (k // 2) + 1 + k % 2]
    rest = zero6(number_like(q, 0.0))
    V = rest
    while i != common:
        V = add(V, Ad_inv(T, joint_add(tree, i, rest, v)))
        T = pose_in_parent(tree, i, q, T)
        i = tree.parent[i]
    return T, V


@internal_kernel
def element_motion(tree, e, common, q, v):
    """Return the pose X of B in A, and the twist U of B relative to A, in frame A."""
    Ta, Va = side_motion(tree, 2 * e, common, q, v)
    Tb, Vb = side_motion(tree, 2 * e + 1, common, q, v)
    X = compose(inverse(Ta), Tb)
    return X, sub(Ad(X, Vb), Va)


@internal_kernel
def add_side_force(tree, k, common, q, F, out):
    """Add to out (nv,) the generalized force of the wrench F at frame k, in that frame."""
    T, i = frame_in_body(tree, k, q), tree.element[ELEMENT_SIZE * (k // 2) + 1 + k % 2]
    zero = number_like(q, 0.0)
    while i != common:
        G = dAd_inv(T, F)
        for c in range(NV[tree.kind[i]]):
            o = tree.iv[i] + c
            store(out, o, load(out, o) + dot(G, joint_column(tree, i, c, zero)))
        T = pose_in_parent(tree, i, q, T)
        i = tree.parent[i]


@internal_kernel
def side_direction(tree, k, common, q, v, dq, dv):
    """Return sums over the joints between frame k and the common body, in the frame: S v, S dq, ad_(S dq beyond) S v, S dv."""
    T, i = frame_in_body(tree, k, q), tree.element[ELEMENT_SIZE * (k // 2) + 1 + k % 2]
    rest = zero6(number_like(q, 0.0))
    V, E, W, P = rest, rest, rest, rest
    while i != common:
        Sv = Ad_inv(T, joint_add(tree, i, rest, v))
        W = add(W, ad(E, Sv))
        V, P = add(V, Sv), add(P, Ad_inv(T, joint_add(tree, i, rest, dv)))
        E = add(E, Ad_inv(T, joint_add(tree, i, rest, dq)))
        T = pose_in_parent(tree, i, q, T)
        i = tree.parent[i]
    return V, E, W, P


@internal_kernel
def add_side_force_tangent(tree, k, common, q, dq, F, dF, out):
    """Add to out the change of the generalized force of the wrench F at frame k.

    dF: its change without the motion of the joints between the frame and the common body.
    """
    T, i = frame_in_body(tree, k, q), tree.element[ELEMENT_SIZE * (k // 2) + 1 + k % 2]
    zero = number_like(q, 0.0)
    rest = zero6(zero)
    E = rest
    while i != common:
        G = dAd_inv(T, add(dF, neg_dad(E, F)))
        for c in range(NV[tree.kind[i]]):
            o = tree.iv[i] + c
            store(out, o, load(out, o) + dot(G, joint_column(tree, i, c, zero)))
        E = add(E, Ad_inv(T, joint_add(tree, i, rest, dq)))
        T = pose_in_parent(tree, i, q, T)
        i = tree.parent[i]


# Generalized forces of all elements ----------------------------------------------------------------------------------------

@inline_kernel
def passive_forces(tree, q, v, out):
    """Write out (nv,): forces of springs, damping and friction of the joints, and of force elements, which add to tau."""
    passive_force(tree, q, v, out)
    if tree.element.size:
        call_deferred(add_element_forces, (tree, q, v, out))


@kernel
def add_element_forces(tree, q, v, out):
    """Add the generalized forces of the elements to out (nv,)."""
    for e in range(tree.element.size // ELEMENT_SIZE):
        common = common_body_of_element(tree, e)
        X, U = element_motion(tree, e, common, q, v)
        F = element_wrench(tree, e, X, U)
        add_side_force(tree, 2 * e, common, q, neg(F), out)
        add_side_force(tree, 2 * e + 1, common, q, dAd(X, F), out)
    return 0


@kernel
def subtract_element_tangent(tree, q, v, dq, dv, out):
    """Subtract the change of the generalized forces along dq (tangent) and dv from out (nv,)."""
    for e in range(tree.element.size // ELEMENT_SIZE):
        subtract_one_element_tangent(tree, e, q, v, dq, dv, out)
    return 0


@internal_kernel
def subtract_one_element_tangent(tree, e, q, v, dq, dv, out):
    """Do the same for one element."""
    common = common_body_of_element(tree, e)
    X, U = element_motion(tree, e, common, q, v)
    _, Ea, Wa, Pa = side_direction(tree, 2 * e, common, q, v, dq, dv)
    Vb, Eb, Wb, Pb = side_direction(tree, 2 * e + 1, common, q, v, dq, dv)
    eta = sub(Ad(X, Eb), Ea)
    dU = add(sub(Wa, Pa), add(ad(eta, Ad(X, Vb)), Ad(X, sub(Pb, Wb))))
    F, dF = element_wrench_derivative(tree, e, X, U, eta, dU)
    add_side_force_tangent(tree, 2 * e, common, q, dq, F, dF, out)
    add_side_force_tangent(tree, 2 * e + 1, common, q, dq, neg(dAd(X, F)), dAd(X, sub(neg_dad(eta, F), dF)), out)


@kernel
def subtract_element_derivatives(tree, q, v, Dq, Dv, memory):
    """Subtract the derivatives of the generalized forces with respect to q and v from Dq and Dv (nv nv, by rows).

    memory   (3 nv,) workspace
    """
    nv, zero = tree.armature.shape[0], number_like(q, 0.0)
    rest, unit, column, _ = split_workspace(memory, (nv, nv, nv))
    for k in range(nv):
        store(rest, k, zero)
        store(unit, k, zero)
        store(column, k, zero)
    for e in range(tree.element.size // ELEMENT_SIZE):
        common = common_body_of_element(tree, e)
        for side in range(2):
            i = tree.element[ELEMENT_SIZE * e + 1 + side]
            while i != common:
                for k in range(tree.iv[i], tree.iv[i] + NV[tree.kind[i]]):
                    store(unit, k, zero + 1.0)
                    subtract_one_element_tangent(tree, e, q, v, unit, rest, column)
                    move_column(column, nv, k, Dq)
                    subtract_one_element_tangent(tree, e, q, v, rest, unit, column)
                    move_column(column, nv, k, Dv)
                    store(unit, k, zero)
                i = tree.parent[i]
    return 0


@inline_kernel
def move_column(column, nv, k, D):
    """Add a column (nv,) to column k of D (nv nv, by rows), and set it to zero."""
    zero = number_like(column, 0.0)
    for r in range(nv):
        store(D, r * nv + k, load(D, r * nv + k) + load(column, r))
        store(column, r, zero)


@kernel
def add_element_energy(tree, q, out):
    """Add the energy stored in all elements to out[0]."""
    energy = load(out, 0)
    for e in range(tree.element.size // ELEMENT_SIZE):
        common = common_body_of_element(tree, e)
        X = element_pose(tree, e, common, q)
        energy = energy + one_element_energy(tree, e, X)
    store(out, 0, energy)
    return 0


@internal_kernel
def one_element_energy(tree, e, X):
    """Return the energy stored in element e, with B at the pose X in A."""
    if tree.element[ELEMENT_SIZE * e] == BUSHING:
        d = log3(X[0]), X[1]
        return 0.5 * dot(matrix_product(tree, tree.element[ELEMENT_SIZE * e + 3], d), d)
    x, _ = element_gradient(tree, e, X)
    return stored_energy(tree, e, x)[0]


@inline_kernel
def element_pose(tree, e, common, q):
    """Return the pose of B in A."""
    return compose(inverse(frame_in_common(tree, 2 * e, common, q)), frame_in_common(tree, 2 * e + 1, common, q))


@internal_kernel
def frame_in_common(tree, k, common, q):
    """Return the pose of frame k relative to the common body."""
    T, i = frame_in_body(tree, k, q), tree.element[ELEMENT_SIZE * (k // 2) + 1 + k % 2]
    while i != common:
        T = pose_in_parent(tree, i, q, T)
        i = tree.parent[i]
    return T


@internal_kernel
def one_element_power(tree, e, X, U):
    """Return the power of the resistance of element e, which is negative or zero."""
    if tree.element[ELEMENT_SIZE * e] == BUSHING:
        _, rate = displacement(X, U)
        return -dot(matrix_product(tree, tree.element[ELEMENT_SIZE * e + 3] + 36, rate), rate)
    x, n = element_gradient(tree, e, X)
    rate = dot(n, U)
    return -element_law(tree, e, x, rate)[1] * rate


@kernel
def store_element_power(tree, q, v, out):
    """Write the power of the resistances of all elements to out[0]."""
    power = number_like(q, 0.0)
    for e in range(tree.element.size // ELEMENT_SIZE):
        X, U = element_motion(tree, e, common_body_of_element(tree, e), q, v)
        power = power + one_element_power(tree, e, X, U)
    store(out, 0, power)
    return 0


# Calls of the kernels above from others: few robots have elements, so that callers do not contain them ----------------------

def _example(kind, arrays):
    """Return a tree and arrays. kind 0: of one state; 1: of a state in each SIMD lane; 2: also of a robot in each lane."""
    index = np.zeros(INDEX_HEADER, dtype=np.int64)
    constants = np.zeros((sum(constants_sizes(index)), SIMD_WIDTH) if kind == 2 else sum(constants_sizes(index)))
    x = np.zeros((1, SIMD_WIDTH) if kind else 1)
    return tree_views.py_func(index, constants), *(x,) * arrays


for _kernel, _arrays in ((add_element_forces, 3), (subtract_element_tangent, 5), (subtract_element_derivatives, 5),
                         (add_element_energy, 2), (store_element_power, 3)):
    defer(_kernel, *[partial(_example, kind, _arrays) for kind in range(3)])


# batches --------------------------------------------------------------------------------------------------------------------

# numbers that `element_states` writes for each element: the coordinate, its rate, the force that shortens it (of a bushing zero,
# as its coordinate), the energy, the power of the resistance, the wrench on B in frame A, and the same in frame B
COORDINATE, RATE, FORCE, ENERGY, POWER, WRENCH_A, WRENCH_B, STATE_SIZE = 0, 1, 2, 3, 4, 5, 11, 17


@entry_point("i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8, i8)", nogil=True)
def element_states(index, constants, memory, q, v, out, first, last):
    """Write out (N, STATE_SIZE elements) of the states first … last - 1. Workspace: the size of a state and its results."""
    nq, nv, n = index[1], index[2], index[ELEMENT_COUNT]
    tree, (Q, V, x, _) = tree_views(index, constants), split_workspace(memory, (nq, nv, STATE_SIZE * n))
    for k in range(first, last, SIMD_WIDTH):
        code = load_state(tree, q, v, k, Q, V)
        if code != OK:
            return code
        for e in range(n):
            write_element_state(tree, e, Q, V, x[STATE_SIZE * e:STATE_SIZE * e + STATE_SIZE])
        if not store_block(x, out, k):
            return BAD_RESULT
    return OK


@inline_kernel
def write_element_state(tree, e, q, v, out):
    """Write the numbers of an element to out."""
    X, U = element_motion(tree, e, common_body_of_element(tree, e), q, v)
    F = element_wrench(tree, e, X, U)
    x, rate, force = number_like(q, 0.0), number_like(q, 0.0), number_like(q, 0.0)
    if tree.element[ELEMENT_SIZE * e] != BUSHING:
        x, n = element_gradient(tree, e, X)
        rate = dot(n, U)
        elastic, r, _, _ = element_law(tree, e, x, rate)
        force = elastic + r
    store(out, COORDINATE, x)
    store(out, RATE, rate)
    store(out, FORCE, force)
    store(out, ENERGY, one_element_energy(tree, e, X))
    store(out, POWER, one_element_power(tree, e, X, U))
    G = dAd(X, F)
    for k in range(3):
        store(out, WRENCH_A + k, F[0][k])
        store(out, WRENCH_A + 3 + k, F[1][k])
        store(out, WRENCH_B + k, G[0][k])
        store(out, WRENCH_B + 3 + k, G[1][k])
