"""Taylor series of external wrenches on bodies, from those on links in one of three frames.

In link frames they only move to their body. Others turn against it: with the body's pose T(t) = T(0) D(t) in the world and E the
series of Ad_D = [R 0; B R], E' = E ad_V, a wrench that is F in the world is Ad*_D (Ad*_{T(0)} F) on the body. V is the body's
twist against the ground, which is V of the kernels less the ground's own (0, -g t).

Source: AGF (67)-(70).
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.joints.motion import joint_pose
from liedyn.joints.series import MOTION, load_twist_row, store_twist_row
from liedyn.kernels.frames import LOCAL, LOCAL_WORLD_ALIGNED, WORLD
from liedyn.kernels.recursions.kinematics import wrenches_on_bodies
from liedyn.kernels.series.taylor import scale_rows
from liedyn.lie.lanes import absolute, all_less, load, number_like, store
from liedyn.lie.rows import add_to_twist, load3, load9, load_pose, load_twist, store3, store9, store_pose, store_twist
from liedyn.lie.se3 import compose, dAd, zero6
from liedyn.lie.vec3 import plus_cross, plus_rotate_back, rotate_back, scale3, sub3
from liedyn.seam.views import carve


class WrenchSeries(NamedTuple):
    given: bool
    frame: int
    links: np.ndarray      # (6 n_links (K - 1),) order by order
    F: np.ndarray          # (6n (K - 1),) on bodies, order by order
    T: np.ndarray          # (12n,) poses of bodies in the world; from here on empty where the frame is LOCAL
    E: np.ndarray          # (18nK,)
    fall: np.ndarray       # (3nK,) acceleration of the ground, seen from the bodies
    still: np.ndarray      # (6 n_links K,) wrenches seen from where their bodies stand at t = 0
    weight: np.ndarray     # (n,) zero where a body bears none


@primitive
def wrench_series_work(m, n, nl, K, frame, given):
    rows = K - 1 if given else 0
    moving = 1 if given and frame != LOCAL else 0
    sizes = 6 * nl * rows, 6 * n * rows, 12 * n * moving, 18 * n * K * moving, 3 * n * K * moving, 6 * nl * K * moving, n * moving
    return WrenchSeries(given, frame, *carve(m, sizes)[:-1])


def wrench_series_memory(n, nl, K): return 6 * (nl + n) * K + 13 * n + (21 * n + 6 * nl) * K


@kernel
def begin_wrenches(tree, K, q, loads):
    """From the links' derivatives in `loads.links` to what `advance_wrenches` needs."""
    n, nl, zero = tree.parent.size, tree.link_body.size, number_like(q, 0.0)
    scale_rows(loads.links, K - 1, 6 * nl, False)
    if loads.frame == LOCAL:
        for k in range(K - 1):
            wrenches_on_bodies(tree, loads.links[6 * nl * k:], loads.F[6 * n * k:6 * n * (k + 1)])
    else:
        one = zero + 1.0
        unit = one, zero, zero, zero, one, zero, zero, zero, one
        store_pose(loads.T, 0, (unit, (zero, zero, zero)))
        for i in range(n):
            if i > 0:
                store_pose(loads.T, i, compose(load_pose(loads.T, tree.parent[i]), joint_pose(tree, i, q)))
            e = MOTION * K * i
            store9(loads.E, e, unit)
            store9(loads.E, e + 9, (zero, zero, zero, zero, zero, zero, zero, zero, zero))
            store3(loads.fall, 3 * K * i, rotate_back(load9(loads.T, 12 * i), load3(tree.dV0, 3)))
            store(loads.weight, i, zero)
        for link in range(nl):
            b = tree.link_body[link]
            T = load_pose(loads.T, b)
            at = (T[0], (zero, zero, zero)) if loads.frame == LOCAL_WORLD_ALIGNED else T
            for k in range(K - 1):
                F = load_twist(loads.links, nl * k + link)
                store_twist(loads.still, link * K + k, dAd(at, F))
                for x in (F[0][0], F[0][1], F[0][2], F[1][0], F[1][1], F[1][2]):
                    store(loads.weight, b, load(loads.weight, b) + absolute(x))


@kernel
def advance_wrenches(tree, K, k, V, loads):
    """Coefficient k of the wrenches on bodies, which must be called for 0, 1, … k in turn; needs V up to k - 1."""
    n, zero = tree.parent.size, number_like(V, 0.0)
    if loads.frame == LOCAL:
        return
    for i in range(n):
        store_twist(loads.F, n * k + i, zero6(zero))
        if k > 0 and not all_less(load(loads.weight, i), 1e-300):
            advance_world_motion(i, K, k, V, loads)
    for link in range(tree.link_body.size):
        b = tree.link_body[link]
        if not all_less(load(loads.weight, b), 1e-300):
            m, f = zero6(zero)
            for j in range(k + 1):
                e, W = MOTION * (K * b + j), load_twist(loads.still, link * K + k - j)
                R = load9(loads.E, e)
                m, f = plus_rotate_back(m, R, W[0]), plus_rotate_back(f, R, W[1])
                if loads.frame == WORLD:
                    m = plus_rotate_back(m, load9(loads.E, e + 9), W[1])
            if loads.frame == LOCAL_WORLD_ALIGNED:                              # the link's origin stands still in the body
                m = plus_cross(m, load3(tree.link_pose, 12 * link + 9), f)
            add_to_twist(loads.F, n * k + b, (m, f))


@primitive
def advance_world_motion(i, K, k, V, loads):
    """Coefficient k of E' = E ad_V, row by row, and of the fall."""
    zero, e = number_like(V, 0.0), MOTION * K * i
    for row in range(3):
        r, b = zero6(zero)
        for j in range(k):
            w, u = load_twist(V, i * K + k - 1 - j)
            if j < k - 1:
                u = sub3(u, load3(loads.fall, 3 * (K * i + k - 2 - j)))
            x, y = load_twist_row(loads.E, e + MOTION * j + 3 * row)
            r, b = plus_cross(r, x, w), plus_cross(plus_cross(b, y, w), x, u)
        store_twist_row(loads.E, e + MOTION * k + 3 * row, scale3(1.0 / k, r), scale3(1.0 / k, b))
    fall = load3(loads.fall, 3 * K * i)
    store3(loads.fall, 3 * (K * i + k), rotate_back(load9(loads.E, e + MOTION * k), fall))
