"""Loop closures: their constraint equations as wrenches, residuals, and derivatives.

A closure connects frame A of one link and frame B of another. T = T_ab = (R, p) is the pose of B in A; V is the twist of B
relative to A, in B. An equation is a wrench F in B that does no work on the free motions of the closure: F . V = 0. For the lower
pairs, which are subgroups of SE(3), the equations are unit wrenches of B. The other kinds have one direction g, which depends on
the pose (`closure_direction`):

    universal   g.w = 0     g = y x (R^T x): x of A and y of B stay perpendicular
    distance    g.v = 0     g = R^T p / |p|
    rolling     v + w x g   g from B's origin to the point of contact of a disc about z, or of a sphere, with A's plane z = 0
"""
from typing import NamedTuple

import numpy as np

from liedyn.lie.se3 import unit6
from liedyn.lie.simd import maximum, sqrt, where_less
from liedyn.lie.so3 import log3
from liedyn.lie.vectors import add3, add_cross, cross, dot3, rotate_back, scale3, sub3
from liedyn.model.description import BALL_CLOSURE, DISTANCE, PRISMATIC, ROLLING, UNIVERSAL, WELD
from liedyn.numba_tools.decorators import inline_kernel, jitable
from liedyn.numba_tools.numba_internals import split_workspace

HEADER = 8
RECORD_SIZE = 11                    # numbers of a constraint in `index`
CONSTRAINT_MOTION_SIZE = 24         # numbers of a driven closure's motion: pose 12, twist 6, rate of the twist 6
_TINY = 1e-300

# unit wrenches (0 … 2 moments, 3 … 5 forces, axes of B) of the lower pairs: one octal digit per equation, the last one first
_AXES = (0o543210, 0o54310, 0o43210, 0o4310, 0o510, 0o543)


class Constraints(NamedTuple):
    """Constraints of a model for kernels: views into `Model.loop_index` and `Model.loop_constants`.

    There is one record for each constraint (closures, then couplings). The views are few because each costs a call of one state
    some nanoseconds.
    """

    record: np.ndarray         # (nc, RECORD_SIZE): KIND …
    term_v: np.ndarray         # (terms,) coordinates of couplings, in v
    term_q: np.ndarray         # (terms,) in q
    chains: np.ndarray         # bodies whose joints a constraint can move, children first
    shared_first: np.ndarray   # (nc (nc + 1)/2 + 1,) start in `shared` for each pair of constraints
    shared: np.ndarray         # coordinates that can move both constraints of a pair
    code: np.ndarray           # instructions of the functions of nonlinear couplings (`model.coupling_functions`)
    pose: np.ndarray           # (24nc,) frames A and B in their bodies
    extent: np.ndarray         # (2nc,) length, radius or offset; then for rolling: negative for a sphere, else a disc
    length: np.ndarray         # (nc,) characteristic length of the loop, 0 of a coupling
    coefficient: np.ndarray    # (terms,)
    function_constants: np.ndarray        # of `code`: literals and tables


# fields of a record: bodies, equations, nearest common ancestor, index of the driven closure (or -1), start and number of its
# terms and of its chain
KIND, BODY_A, BODY_B, FIRST, EQUATION_COUNT, COMMON, DRIVEN, TERM, TERM_COUNT, CHAIN, CHAIN_LENGTH = range(RECORD_SIZE)
CODE, CODE_SIZE = BODY_A, BODY_B      # of a nonlinear coupling, which has no bodies: start of its code, number of instructions


@inline_kernel
def constraint_views(index, constants):
    """Return the `Constraints` whose arrays are views into index and constants."""
    n, terms, chained = index[0], index[2], index[4]
    pairs = n * (n + 1) // 2 + 1
    views = split_workspace(index, (HEADER, RECORD_SIZE * n, terms, terms, chained, pairs, index[6] - pairs))
    return Constraints(views[1].reshape(n, RECORD_SIZE),
                       *(views[2:] + split_workspace(constants, (24 * n, 2 * n, n, terms))))


@jitable
def frame_count(index):
    """Return the number of frames in workspaces: one for each constraint, then those with registers of coupling functions."""
    return index[0] + index[5]


@inline_kernel
def unpack_constraints(packed):
    """Return index and constants of the loops, which follow those of the tree (`model.constraint_arrays.packed_model`)."""
    index = packed.view(np.int64)
    i = HEADER + RECORD_SIZE * index[0] + 2 * index[2] + index[4] + index[6] + index[7]
    return index[:i], split_workspace(packed, (i,))[1]


# directions -------------------------------------------------------------------------------------------------------
@inline_kernel
def closure_direction(kind, T, extent, sphere):
    """Return g of the kinds that have one, else zero."""
    R, p = T
    zero = p[0] - p[0]
    if kind == UNIVERSAL:
        return R[2], zero, -R[0]
    if kind == DISTANCE:
        y = rotate_back(R, p)
        return scale3(1.0 / sqrt(maximum(dot3(y, y), zero + _TINY)), y)
    if kind == ROLLING:
        n = contact_direction(R, sphere)
        return scale3(-extent, n[0])
    return zero, zero, zero


@inline_kernel
def contact_direction(R, sphere):
    """Return the unit vector away from the plane's point of contact, in B, and its length before normalization."""
    n = R[6], R[7], R[8]
    one = R[6] * 0.0 + 1.0
    if sphere < 0.0:
        return n, one
    size = sqrt(maximum(n[0] * n[0] + n[1] * n[1], one * _TINY))
    return (n[0] / size, n[1] / size, n[2] * 0.0), size


@inline_kernel
def closure_direction_rate(kind, T, V, g, extent, sphere):
    """Return dg/dt while B moves with the twist V relative to A."""
    R, p = T
    w, zero = V[0], p[0] - p[0]
    if kind == UNIVERSAL:
        x = cross((R[0], R[1], R[2]), w)
        return x[2], zero, -x[0]
    if kind == DISTANCE:
        y = rotate_back(R, p)
        dy = add_cross(V[1], y, w)
        return scale3(1.0 / sqrt(maximum(dot3(y, y), zero + _TINY)), sub3(dy, scale3(dot3(g, dy), g)))
    if kind == ROLLING:
        n = cross((R[6], R[7], R[8]), w)
        if sphere < 0.0:
            return scale3(-extent, n)
        e, size = contact_direction(R, sphere)
        flat = n[0], n[1], zero
        return scale3(-extent / size, sub3(flat, scale3(dot3(e, flat), e)))
    return zero, zero, zero


@inline_kernel
def closure_direction_curvature(kind, T, V, S, extent, sphere):
    """Return the derivative of `closure_direction_rate` of V while B moves along S and the components of V are constant."""
    R, p = T
    zero = p[0] - p[0]
    if kind == UNIVERSAL:
        x = cross(cross((R[0], R[1], R[2]), S[0]), V[0])
        return x[2], zero, -x[0]
    if kind == DISTANCE:
        y = rotate_back(R, p)
        dy = add_cross(S[1], y, S[0])
        return unit_curvature(y, add_cross(V[1], y, V[0]), dy, cross(dy, V[0]))
    if kind == ROLLING:
        n = R[6], R[7], R[8]
        x, z = cross(n, V[0]), cross(n, S[0])
        xz = cross(z, V[0])
        if sphere >= 0.0:
            xz = unit_curvature((n[0], n[1], zero), (x[0], x[1], zero), (z[0], z[1], zero), (xz[0], xz[1], zero))
        return scale3(-extent, xz)
    return zero, zero, zero


@inline_kernel
def unit_curvature(y, x, z, xz):
    """Return the second derivative of y/|y| along x, then z. xz: that of y."""
    size = 1.0 / sqrt(maximum(dot3(y, y), y[0] * 0.0 + _TINY))
    e, x, z, xz = scale3(size, y), scale3(size, x), scale3(size, z), scale3(size, xz)
    ex, ez = dot3(e, x), dot3(e, z)
    dx, dz = sub3(x, scale3(ex, e)), sub3(z, scale3(ez, e))
    across = sub3(xz, scale3(dot3(e, xz), e))
    return sub3(sub3(across, scale3(ex, dz)), add3(scale3(ez, dx), scale3(dot3(dx, dz), e)))


# equations --------------------------------------------------------------------------------------------------------
@inline_kernel
def equation_axis(kind, r):
    """Return the component 0 … 5 [m; f] in frame B of the unit wrench of equation r of a closure of this kind."""
    return (_AXES[kind] >> (3 * r)) & 7


@inline_kernel
def closure_equation(kind, r, g):
    """Return equation r, a wrench in B."""
    zero = g[0] - g[0]
    rest = zero, zero, zero
    if kind <= BALL_CLOSURE:
        return unit6(equation_axis(kind, r), zero)
    if kind == UNIVERSAL:
        return (g, rest) if r == 0 else unit6(2 + r, zero)
    if kind == DISTANCE:
        return rest, g
    e = unit6(3 + r, zero)
    return cross(g, e[1]), e[1]                                    # (w x g) . e = w . (g x e)


@inline_kernel
def height_equation(r, g, n):
    """Return equation r of the derivative of a rolling body's height along the plane's normal n, in B."""
    x = n[0] if r == 0 else (n[1] if r == 1 else n[2])
    return scale3(x, cross(g, n)), scale3(x, n)


@inline_kernel
def equation_rate(kind, r, dg):
    """Return the derivative of equation r for a change dg of the direction."""
    zero = dg[0] - dg[0]
    rest = zero, zero, zero
    if kind == UNIVERSAL and r == 0:
        return dg, rest
    if kind == DISTANCE:
        return rest, dg
    if kind == ROLLING:
        return cross(dg, unit6(3 + r, zero)[1]), rest
    return rest, rest


# residuals --------------------------------------------------------------------------------------------------------
@inline_kernel
def misalignment(R):
    """Return the rotation of B that aligns its z axis with A's: (x, y, 0) of length 2 sin(angle/2); 2 for opposite axes."""
    h = 1.0 + R[8]
    zero = h - h
    f = sqrt(2.0 / maximum(h, zero + 1e-30))
    return where_less(h, 1e-15, zero + 2.0, R[7] * f), where_less(h, 1e-15, zero, -R[6] * f), zero


@inline_kernel
def loop_closure_error(kind, T):
    """Return an angular and a linear vector whose derivative is V where they vanish: the residuals of the lower pairs."""
    R, p = T
    zero = p[0] - p[0]
    y = rotate_back(R, p)
    if kind in (BALL_CLOSURE, UNIVERSAL):
        return (zero, zero, zero), y
    turn = log3(R) if kind in (WELD, PRISMATIC) else misalignment(R)
    return turn, sub3(y, cross(y, turn))


@inline_kernel
def equation_residual(kind, r, T, g, error, extent):
    """Return the residual of equation r. Its derivative is the equation where the residual vanishes."""
    R, p = T
    turn, y = error
    if kind == DISTANCE:
        return sqrt(maximum(dot3(p, p), p[0] * 0.0)) - extent
    if kind == ROLLING:                              # height of the lowest point over the plane
        n = R[6], R[7], R[8]
        h = p[2] + dot3(n, g)
        return h * n[0] if r == 0 else (h * n[1] if r == 1 else h * n[2])
    if kind == UNIVERSAL:
        return R[1] if r == 0 else (y[0] if r == 1 else (y[1] if r == 2 else y[2]))
    k = equation_axis(kind, r)
    x = turn if k < 3 else y
    k = k if k < 3 else k - 3
    return x[0] if k == 0 else (x[1] if k == 1 else x[2])


@inline_kernel
def pose_like(T, zero):
    """Return the pose in numbers of the kind of `zero`."""
    R, p = T
    return ((R[0] + zero, R[1] + zero, R[2] + zero, R[3] + zero, R[4] + zero, R[5] + zero, R[6] + zero, R[7] + zero,
             R[8] + zero), (p[0] + zero, p[1] + zero, p[2] + zero))
