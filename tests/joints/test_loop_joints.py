"""Closures of every kind between two free bodies: what they measure, what they leave free, what their rows forbid."""
from functools import cache

import numpy as np
import pytest

import liedyn as ld
import loop_reference as reference
from bridge import relative
from differences import by_q
from liedyn.model.description import COUPLING, LOOP_TYPES, WORLD, Joint, Loop, Robot
from loop_zoo import KINDS, free_pose, matrix, random_closure
from matrices import adjoint, derivative, exp, inverse, pose, quaternion
from zoo import random_link, unit

CLOSURES = KINDS[:-1]                    # all but couplings
AXIAL = ("revolute", "prismatic", "cylindrical", "planar")
EVERY = pytest.mark.parametrize("kind", CLOSURES)


def bodies(loops=()):
    rng = np.random.default_rng(11)
    links = tuple(random_link(rng, name) for name in "ab")
    return ld.build(Robot("pair", links, tuple(Joint(f"free_{x}", "free", WORLD, x) for x in "ab"), loops=tuple(loops)))


@cache
def pair(kind):
    """Return two free bodies with one closure, and a closed configuration."""
    rng, model = np.random.default_rng([12, KINDS.index(kind)]), bodies()
    q = ld.random_configuration(model, rng)
    return bodies([random_closure(rng, kind, "tip", model, q, "a", "b")]), q


def standing(model, T_ab, rng):
    """Return q with frame B (of the file) at T_ab in frame A."""
    loop, = model.description.loops
    T_a = pose(np.reshape(np.linalg.qr(rng.standard_normal((3, 3)))[0], (3, 3)), rng.uniform(-1, 1, 3))
    if np.linalg.det(T_a[:3, :3]) < 0:
        T_a[:3, 2] *= -1
    T_b = T_a @ matrix(loop.pose_a) @ T_ab @ inverse(matrix(loop.pose_b))
    return np.concatenate([np.r_[T[:3, 3], quaternion(T[:3, :3])] for T in (T_a, T_b)])


def residual_at(model, T_ab, seed=0):
    return ld.constraint_residual(model, standing(model, T_ab, np.random.default_rng(seed)))


def test_rows_are_those_of_the_table():
    assert [one.kind for one in LOOP_TYPES.values()] == list(range(9)) and COUPLING == 9
    assert [len(one.labels) for one in LOOP_TYPES.values()] == [6, 5, 5, 4, 3, 3, 4, 1, 3]


@EVERY
def test_closed_wherever_it_is_free_to_go(kind, worst):
    model, _ = pair(kind)
    loop, rng = model.description.loops[0], np.random.default_rng(13)
    q = np.array([standing(model, free_pose(rng, kind, loop.axes, loop.length, loop.radius), rng) for _ in range(20)])
    assert worst("closures: residual where closed", np.abs(ld.constraint_residual(model, q)).max(), kind) < 1e-14


@EVERY
def test_rows_are_the_derivative_of_the_residual(kind, worst):
    """For each coordinate of both bodies, in closed configurations. Rolling constrains the height only: the normal row of A."""
    model, q = pair(kind)
    A = ld.constraint_jacobian(model, q)
    if model.description.loops[0].type == "rolling":
        (T_a, _), (T_b, _), _ = reference.frames(model, q, model.description.loops[0], None)
        n = (inverse(T_b) @ T_a)[:3, 2]
        A = np.outer(n, n) @ A
    numeric = by_q(lambda x: ld.constraint_residual(model, x), model, q, 0.003)
    assert worst("closures: A against differences of the residual", relative(numeric, A), kind) < 1e-11


@EVERY
def test_rows_and_bias_anywhere(kind, worst):
    """In open configurations too, A and gamma are those of the equations: gamma = dA/dt v."""
    model, _ = pair(kind)
    rng = np.random.default_rng(14)
    for _ in range(5):
        q, v = ld.random_configuration(model, rng), rng.standard_normal(12)
        A, _ = reference.equations(model, q)
        assert worst("closures: A", relative(ld.constraint_jacobian(model, q), A), kind) < 1e-13
        gamma = ld.constraint_bias(model, q, v)
        assert worst("closures: gamma", relative(gamma, reference.bias(model, q, v), 1.0), kind) < 1e-10
        own = derivative(lambda t, q=q, v=v: ld.constraint_jacobian(model, ld.integrate(model, q, t * v)) @ v, 0.003)
        assert worst("closures: gamma = dA/dt v", relative(gamma, own, 1.0), kind) < 1e-10


@EVERY
def test_rank(kind):
    """The rows are independent at a generic pose, and a rigid motion of the pair violates none."""
    model, q = pair(kind)
    A = ld.constraint_jacobian(model, q)
    s = np.linalg.svd(A, compute_uv=False)
    assert s[-1] > 1e-3 * s[0] and A.shape == (model.nc, 12)
    V = np.random.default_rng(15).standard_normal(6)
    v = np.concatenate([adjoint(inverse(ld.link_pose(model, q, x))) @ V for x in "ab"])
    assert np.abs(A @ v).max() < 1e-14


@pytest.mark.parametrize("kind", AXIAL)
@pytest.mark.parametrize("angle", [1e-9, 1e-4, 0.3, 1.5, 3.0, np.pi])
def test_misalignment_is_twice_the_sine_of_half_the_angle(kind, angle):
    """Also of opposite axes, where it has no direction; weld and prismatic, which hold all of the rotation, measure its angle."""
    model, _ = pair(kind)
    loop, rng = model.description.loops[0], np.random.default_rng(16)
    axis = np.array(loop.axes[0]) / np.linalg.norm(loop.axes[0])
    across = np.cross(axis, unit(rng))
    across /= np.linalg.norm(across)
    out = residual_at(model, exp(np.r_[angle * across, 0, 0, 0]))
    turn = [k for k, label in enumerate(model.constraints[0].labels) if label.startswith("w")]
    expected = angle if kind == "prismatic" else 2 * np.sin(angle / 2)
    near = 1e-14 if angle < 2 else 1e-13 if angle < 3.1 else 1e-7        # a rounding of R is 1e-8 rad where the angle is pi
    assert abs(np.linalg.norm(out[turn]) - expected) < near
    assert np.abs(np.delete(out, turn)).max(initial=0.0) < 1e-14


@pytest.mark.parametrize("kind", ["weld", "ball", "universal", *AXIAL])
def test_offsets_are_lengths_in_frame_b(kind):
    """Aligned frames at a distance p: the components of R^T p that the closure does not leave free."""
    model, _ = pair(kind)
    loop, rng = model.description.loops[0], np.random.default_rng(17)
    T = free_pose(rng, kind, loop.axes, 0.0, 0.0)
    p = rng.uniform(-1, 1, 3)
    at_rest = T[:3, :3].T @ T[:3, 3]
    T[:3, 3] = p
    out = residual_at(model, T)
    own = reference.turns(loop)[1][:3, :3].T @ (T[:3, :3].T @ p)
    expected = [own["xyz".index(label[1])] for label in model.constraints[0].labels if label.startswith("v")]
    linear = [k for k, label in enumerate(model.constraints[0].labels) if label.startswith("v")]
    assert relative(out[linear], expected) < 1e-14 and np.abs(np.delete(out, linear)).max(initial=0.0) < 1e-14
    assert np.isfinite(at_rest).all()


def test_rotation_of_a_weld():
    model, _ = pair("weld")
    w = np.array([0.3, -0.7, 0.4])
    assert relative(residual_at(model, exp(np.r_[w, 0, 0, 0]))[:3], w) < 1e-14


def test_angle_of_a_universal_joint():
    """x of A against y of B: the cosine of the angle between them."""
    model, _ = pair("universal")
    loop, rng = model.description.loops[0], np.random.default_rng(18)
    R = exp(np.r_[rng.standard_normal(3), 0, 0, 0])[:3, :3]
    x, y = (np.array(axis) / np.linalg.norm(axis) for axis in loop.axes)
    assert abs(residual_at(model, pose(R, np.zeros(3)))[0] - x @ R @ y) < 1e-15


def test_length_and_height():
    rng = np.random.default_rng(19)
    for kind in ("distance", "rolling", "sphere"):
        model, _ = pair(kind)
        loop = model.description.loops[0]
        T = free_pose(rng, kind, loop.axes, loop.length, loop.radius)
        if kind == "distance":
            T[:3, 3] *= 1.5
            assert relative(residual_at(model, T), [0.5 * loop.length]) < 1e-14
        else:
            T[2, 3] += 0.07                          # the lowest point over the plane, along the plane's normal in B
            own = reference.turns(loop)[1][:3, :3].T @ T[:3, :3].T @ [0, 0, 0.07]
            assert relative(residual_at(model, T), own) < 1e-13


def test_a_disc_rolls_along_a_plane(worst):
    """With the rate w about its axle it moves at r w; tilting rotates it about the point of contact."""
    loop = Loop("wheel", "rolling", WORLD, "b", radius=0.25, axes=((0, 1, 0),))
    model = bodies([loop])
    q = np.r_[0, 0, 0, 0, 0, 0, 1, 0.3, -0.2, 0.25, 0, 0, 0, 1]
    A = ld.constraint_jacobian(model, q)[:, 6:]
    assert np.abs(A @ np.r_[0, 2.0, 0, 0.5, 0, 0]).max() < 1e-15           # spin 2 rad/s, 0.5 m/s
    assert np.abs(A @ np.r_[1.0, 0, 0, 0, -0.25, 0]).max() < 1e-15         # falls over about the contact
    assert np.abs(A @ np.r_[0, 0, 3.0, 0, 0, 0]).max() < 1e-15             # turns on the spot
    assert np.linalg.matrix_rank(A) == 3 and np.abs(ld.constraint_residual(model, q)).max() < 1e-15


def test_where_a_closure_has_no_direction():
    """Coincident points of a rod, a disc flat on the plane, opposite axes: numbers remain finite."""
    flat = exp(np.r_[0, 0, 0, 0, 0, 0.1])
    for kind in ("distance", "rolling", *AXIAL):
        model, _ = pair(kind)
        loop, rng = model.description.loops[0], np.random.default_rng(20)
        T = np.eye(4)
        if kind == "rolling":                        # B turned so that its axle is the normal
            T = flat @ pose(reference.turn_of(loop.axes[0], 2).T, np.zeros(3))
        elif kind != "distance":
            axis = np.array(loop.axes[0]) / np.linalg.norm(loop.axes[0])
            across = np.cross(axis, unit(rng))
            T = exp(np.r_[np.pi * across / np.linalg.norm(across), 0, 0, 0])
        q = standing(model, T, rng)
        for values in (ld.constraint_residual(model, q), ld.constraint_jacobian(model, q),
                       ld.constraint_bias(model, q, np.ones(12))):
            assert np.isfinite(values).all()
