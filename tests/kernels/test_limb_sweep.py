"""The principal pivot transform of M by limbs of eight states, and products with it, against dense matrices; any coordinates
prescribed.

Tolerances: rounding times the condition of M, 4e4 at most here."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from compiled import probe
from liedyn.joints.tree import tree_of
from liedyn.kernels.derivatives.ways import first_of_walk, next_on_walk, ways_memory, ways_of
from liedyn.kernels.loops.pivot_transform import pivot_transform
from liedyn.kernels.recursions.mass_product import minus_product
from liedyn.lie.lanes import largest
from liedyn.model.description import Coordinate, Joint, Link, Robot
from mass_matrices import EVERY, UNTOUCHED, masks, on_way, robot, together
from zoo import random_link, random_pose, state

NUMBERS = pytest.mark.parametrize("kind", ["float64", "Lanes"])
BOUND = 1e-9               # cond(M) of the trees, up to 1e5, times some roundings; LLVM 14 of Numba 0.60 reaches 2e-10


@probe
def solve(index, constants, prescribed, room, F, order, sides, A, rows):
    """A: U, M and then E, W, Z, X = W_u - U W and Y = Z_u - U Z, each of `rows` rows; sides solved. Returns what is positive if
    a pivot is too small."""
    tree, nv, k = tree_of(index, constants), prescribed.size, rows
    ways = ways_of(tree, prescribed, True, room, True)
    deficit = largest(pivot_transform(tree, prescribed, ways, A[k:2 * k], sides, F, order, A, rows))
    minus_product(tree, prescribed, ways, sides, A, (0, k, 2 * k, 3 * k, 4 * k, 5 * k), 0, nv, None)
    return deficit


@probe
def ways(index, constants, prescribed, room, eight):
    ways_of(tree_of(index, constants), prescribed, True, room, eight)


@probe
def walk(index, constants, prescribed, room, last, first, out):
    """Into out; returns how many."""
    ways, n = ways_of(tree_of(index, constants), prescribed, True, room, True), 0
    k = first_of_walk(ways, last, first)
    while k >= 0:
        out[n] = k
        n, k = n + 1, next_on_walk(ways, k, first)
    return n


@probe
def straight(index, constants, prescribed, room, k, out):
    """The same from k to the ground."""
    ways, n = ways_of(tree_of(index, constants), prescribed, True, room, True), 0
    while k >= 0:
        out[n] = k
        n, k = n + 1, next_on_walk(ways, k, prescribed.size)
    return n


class Solved:
    """Runs `solve` for eight states of a model, and gives matrices back as (8, nv, nv)."""

    def __init__(self, model, mask, floor=None):
        self.model, nv, rng = model, model.nv, np.random.default_rng(2)
        constants = model.constants.copy()
        if floor is not None:
            constants[-nv:] = floor
        self.M = ld.mass_matrix(model, state(model, 1, 8)[0])
        self.W, self.Z = np.where(on_way(model), rng.standard_normal((2, 8, nv, nv)), 0.0)
        self.rhs = rng.standard_normal((8, 4, nv))
        sides = numbers(self.rhs.reshape(8, -1))
        A, room, order = np.zeros((6, nv * nv, 8)), np.full(ways_memory(nv), -7), np.full(nv, -7)
        A[0] = columns(np.broadcast_to(np.where(together(model), np.nan, UNTOUCHED), (8, nv, nv)))
        A[1] = columns(np.where(np.tril(on_way(model)), self.M, np.nan))
        A[2], A[3] = columns(self.W), columns(self.Z)
        A[4:] = UNTOUCHED
        F = numbers(np.full((8, 3 * nv), np.nan))
        self.deficit = solve(model.index, constants, mask, room, F, order, sides, A.reshape(-1, 8), nv * nv)
        self.start, self.loose = room[nv:3 * nv].reshape(2, nv)
        self.sides = sides.T.reshape(8, 4, nv)
        self.U, self.E, self.X, self.Y = (matrices(X, nv) for X in A[[0, 1, 4, 5]])
        self.N = np.where(mask | mask[:, None] | ~together(model), 0.0, self.U)


def principal_pivot_transform(M, mask):
    v, u, U = np.flatnonzero(~mask), np.flatnonzero(mask), np.empty_like(M)
    U[:, v[:, None], v] = np.linalg.inv(M[:, v[:, None], v])
    U[:, u[:, None], v] = M[:, u[:, None], v] @ U[:, v[:, None], v]
    U[:, v[:, None], u] = -U[:, u[:, None], v].swapaxes(1, 2)
    U[:, u[:, None], u] = M[:, u[:, None], u] + M[:, u[:, None], v] @ U[:, v[:, None], u]
    return U


def numbers(x):
    return x.T.copy()


def columns(A):
    """(8, nv, nv) as `matrices.put` puts it."""
    return np.ascontiguousarray(A.swapaxes(1, 2).reshape(8, -1).T)


def matrices(X, nv):
    return X.T.reshape(8, nv, nv).swapaxes(1, 2)


@EVERY
def test_transform_products_and_solutions(name, worst):
    """The principal pivot transform, symmetric to the last bit but for the sign, with nothing left of what stood there; products
    with two matrices; one right side and, of floating bases, three more."""
    model = robot(name)
    for mask in masks(model):
        s, n, u = Solved(model, mask), np.flatnonzero(~mask), np.flatnonzero(mask)
        assert s.deficit < 0
        U, expected = np.where(together(model), s.U, 0.0), principal_pivot_transform(s.M, mask)
        np.testing.assert_array_equal(U.swapaxes(1, 2), np.where(mask[:, None] == mask, U, -U))
        assert (s.U[:, ~together(model)] == UNTOUCHED).all()
        assert worst("U", relative(U, expected), name) < BOUND
        left = s.loose > 0
        for x, A in ((s.X, s.W), (s.Y, s.Z)):
            written = together(model) & ~left
            expected = np.where(mask[:, None], A, 0.0) - U @ np.where(mask[:, None], 0.0, A)
            assert worst("W_u - U W", relative(x[:, written], expected[:, written]), name) < BOUND
            free = written & ~mask[:, None]
            assert worst("-N W", relative(x[:, free], (-s.N @ A)[:, free]), name) < 1e-13
            assert (x[:, ~written] == UNTOUCHED).all()
        floats = left[model.paths[1]]
        for M, x, y in zip(s.M, s.sides, s.rhs, strict=True):
            inverse, forces = np.linalg.inv(M[np.ix_(n, n)]), M[np.ix_(u, n)]
            assert not x[0, u].any()
            assert worst("M_vv^-1 x", relative(x[0, n], inverse @ y[0, n]), name) < BOUND
            M_vv, solved = M[np.ix_(n, n)], x[0, n]
            rest = np.abs(M_vv @ solved - y[0, n]) / (np.abs(M_vv) @ np.abs(solved) + np.abs(y[0, n]))
            assert mask.all() or worst("what the solution leaves", rest.max(), name) < 1e-14
            w = y[1:].copy()
            w[:, n] = -y[1:, n] @ inverse
            w[:, u] += w[:, n] @ forces.T
            np.testing.assert_array_equal(x[1:, ~floats], y[1:, ~floats])
            assert worst("-M_vv^-1 y and y_u + M_uv w", relative(x[1:, floats], w[:, floats]), name) < BOUND


@NUMBERS
@EVERY
def test_derivatives_by_the_inputs_are_the_principal_pivot_transform_of_M(name, kind, worst):
    """Through the public function, in more states than one block: U_vv = M_vv^-1 = N, U_uv = M_uv N, U_vu = -U_uv^T, in batches
    to the last bit, U_uu = M_uu - M_uv N M_vu."""
    model = robot(name)
    q = state(model, 1, 19 if kind == "Lanes" else 1)[0]
    q = q if kind == "Lanes" else q[0]
    zero, masses = np.zeros((*q.shape[:-1], model.nv)), ld.mass_matrix(model, q).reshape(-1, model.nv, model.nv)
    for mask in masks(model):
        n, u = np.flatnonzero(~mask), np.flatnonzero(mask)
        by_u = ld.hybrid_dynamics_derivatives(model, q, zero, zero, zero, mask)
        for M, y in zip(masses, by_u.dy_du.reshape(-1, model.nv, model.nv), strict=True):
            inverse = np.linalg.inv(M[np.ix_(n, n)])
            assert worst(f"dy_du = M_vv^-1, {kind}", relative(y[np.ix_(n, n)], inverse), name) < BOUND
            assert worst(f"M_uv M_vv^-1, {kind}", relative(y[np.ix_(u, n)], M[np.ix_(u, n)] @ inverse), name) < BOUND
            rest = M[np.ix_(u, u)] - M[np.ix_(u, n)] @ inverse @ M[np.ix_(n, u)]
            assert worst(f"M_uu - M_uv M_vv^-1 M_vu, {kind}", relative(y[np.ix_(u, u)], rest), name) < BOUND
            assert worst(f"U_vu + U_uv^T, {kind}", relative(y[np.ix_(n, u)], -y[np.ix_(u, n)].T), name) < 1e-14
            assert kind == "float64" or (y[np.ix_(n, u)] == -y[np.ix_(u, n)].T).all()
            assert not y[~together(model)].any()


@EVERY
def test_a_pivot_below_its_floor_is_found(name):
    """Each pivot is what is left of M_kk when all that is free behind k yields (K1 Table 3: the articulated inertia): a floor
    above the smallest of eight states is told, below it is not, wherever the coordinate stands in its limb."""
    model = robot(name)
    for mask in masks(model):
        M = Solved(model, mask).M
        for k in np.flatnonzero(~mask):
            b = np.flatnonzero(~mask & (np.arange(model.nv) > k))
            yields = np.einsum("sb,sb->s", M[:, k, b], np.linalg.solve(M[:, b[:, None], b], M[:, b, k, None])[..., 0])
            pivot = (M[:, k, k] - yields).min()
            for share, found in ((1 + 1e-6, True), (1 - 1e-6, False)):
                floor = np.where(np.arange(model.nv) == k, share * pivot, 0.0)
                assert (Solved(model, mask, floor).deficit > 0) == found


@EVERY
def test_walks_over_free_coordinates(name):
    """From all that hangs on a coordinate, or from one on its way, to the ground: down the order, then up the tree."""
    model = robot(name)
    above, _, last = model.paths
    for mask in masks(model):
        room, out = np.full(ways_memory(model.nv), -7), np.empty(model.nv, int)
        for first in range(model.nv):
            k, way = above[first], []
            while k >= 0:
                way, k = [*way, k], above[k]
            for end in (last[first], model.nv - 1):                            # columns of one state end anywhere
                n = walk(model.index, model.constants, mask, room, end, first, out)
                assert [*out[:n]] == [k for k in [*range(end, first - 1, -1), *way] if not mask[k]]
            start = next((k for k in way if not mask[k]), -1)
            n = straight(model.index, model.constants, mask, room, start, out)
            assert [*out[:n]] == [k for k in way if not mask[k]]


@NUMBERS
@EVERY
def test_ways_over_free_coordinates(name, kind):
    """By climbing and counting; and limbs, within which the tree of eight states does not branch but for fingers."""
    model = robot(name)
    above, top, last = model.paths
    for mask in masks(model):
        expected, room, nv = np.empty(model.nv, int), np.full(ways_memory(model.nv), -7), model.nv
        ways(model.index, model.constants, mask, room, kind == "Lanes")
        up, start, _, order = room[:4 * nv].reshape(4, nv)
        for k in range(model.nv):
            expected[k] = above[k]
            while expected[k] >= 0 and mask[expected[k]]:
                expected[k] = above[expected[k]]
        np.testing.assert_array_equal(up, expected)
        np.testing.assert_array_equal(order, [*np.flatnonzero(~mask), *np.flatnonzero(mask)])
        np.testing.assert_array_equal(room[4 * nv:5 * nv + 1], [(~mask[:k]).sum() for k in range(model.nv + 1)])
        np.testing.assert_array_equal(room[5 * nv + 1:], [max(np.flatnonzero(~mask[:k]), default=-1) for k in range(nv + 1)])
        if kind == "float64":
            np.testing.assert_array_equal(start, top)
        for k in range(model.nv if kind == "Lanes" else 0):
            assert start[start[k]] == start[k] <= k <= last[start[k]]
            j, branches = above[start[k]], np.flatnonzero(above == above[k])
            assert j < 0 or (above == j).sum() > 1                              # it begins at a branch
            assert len(branches) == 1 or start[k] == k or last[above[k]] <= above[k] + 3


@EVERY
def test_rows_of_other_limbs_follow_from_what_they_hang_on(name, worst):
    """x_K = -E x_A for every column of U that moves nothing in the limb K or behind it: accelerations, and forces where K is
    prescribed."""
    model = robot(name)
    above, _, last = model.paths
    for mask in masks(model):
        s, limbs, k = Solved(model, mask), 0, np.arange(model.nv)
        U = np.where(together(model), s.U, 0.0)
        for r in k:
            first = s.start[r]
            j = above[first]
            if j >= 0:
                moves = (k <= j) & (last >= j)
                columns = ((k < first) | (k > last[first])) & ~(moves & mask)
                way = moves & ~mask
                expected = -np.einsum("sa,sac->sc", s.E[:, r, way], U[:, way][:, :, columns])
                assert worst("rows by roots", relative(U[:, r, columns], expected, 1e-3 * np.abs(U).max()), name) < 1e-10
                limbs += 1
        assert limbs or name not in ("every kind", "forest")


# a joint without inertia ------------------------------------------------------------------------------------------
VANISHES = "a joint's articulated inertia vanishes in this configuration: its acceleration is not defined"


@pytest.fixture(scope="module")
def gimbal():
    """An Euler joint between two simple ones, in gimbal lock, and in another configuration."""
    rng = np.random.default_rng(1)
    links = tuple(random_link(rng, name) for name in ("root", "first", "second", "third"))
    model = ld.build(Robot("gimbal", links, (
        Joint("before", "revolute", "root", "first", random_pose(rng), axes=((0.0, 0.0, 1.0),)),
        Joint("joint", "euler", "first", "second", random_pose(rng), sequence="zyx", coordinates=(Coordinate(),) * 3),
        Joint("after", "revolute", "second", "third", random_pose(rng), axes=((0.0, 1.0, 0.0),)))))
    q, v, a, tau = state(model, 1)
    locked, loose = q.copy(), q.copy()
    locked[1:4], loose[1:4] = (0.4, np.pi / 2, -0.7), (0.4, 0.3, -0.7)
    return model, locked, loose, v, a, tau


def test_derivatives_of_a_singular_joint_are_refused(gimbal):
    model, locked, loose, v, a, tau = gimbal
    before = np.arange(model.nv) == 0
    for q in (locked, np.array([locked] * 9), np.array([loose] * 10 + [locked]), np.array([[locked]])):
        given = (np.broadcast_to(x, (*q.shape[:-1], model.nv)) for x in (v, a, tau))
        v1, a1, tau1 = given
        for function in (lambda: ld.forward_dynamics_derivatives(model, q, v1, tau1),      # noqa: B023
                         lambda: ld.hybrid_dynamics_derivatives(model, q, v1, a1, tau1, before)):     # noqa: B023
            with pytest.raises(ld.ComputationError) as caught:
                function()
            assert str(caught.value).startswith(VANISHES)
        assert np.isfinite(ld.inverse_dynamics_derivatives(model, q, v1, a1)).all()                 # what it takes is defined
    assert np.isfinite(ld.forward_dynamics_derivatives(model, loose, v, tau)).all()               # nothing is left behind


@pytest.mark.parametrize("held", [1, 3])
def test_a_mask_that_leaves_an_inertia_makes_a_singular_joint_harmless(gimbal, held, worst):
    """One of the two parallel axes prescribed: the others have what they move. The force on it is that on the other, given: its
    derivatives are zero, so errors are relative to no less than 1."""
    model, locked, _, v, a, tau = gimbal
    mask = np.arange(model.nv) == held
    one = ld.hybrid_dynamics_derivatives(model, locked, v, a, tau, mask).split()
    many = ld.hybrid_dynamics_derivatives(model, *(np.array([x] * 9) for x in (locked, v, a, tau)), mask).split()
    for x, y in zip(many, one, strict=True):
        assert worst("singular joint made harmless, Lanes against float64", relative(x, np.array([y] * 9), 1.0)) < 1e-11
    M, w = ld.mass_matrix(model, locked), ~mask
    assert relative(one.da_du[np.ix_(w, w)], np.linalg.inv(M[np.ix_(w, w)])) < 1e-11


@pytest.mark.parametrize("states", [1, 11])
@pytest.mark.parametrize("before", range(4))
def test_a_mass_on_the_axis_at_the_end_of_a_tree_is_refused(before, states):
    """Regular as a model; in one configuration the point mass stands on the axis that should move it."""
    rng = np.random.default_rng(before)
    links = [random_link(rng, f"link{i}") for i in range(before + 1)]
    held = [Joint(f"joint{i}", "revolute", f"link{i}", f"link{i + 1}", random_pose(rng), axes=((0.0, 0.0, 1.0),))
            for i in range(before)]
    model = ld.build(Robot("point", (*links, Link("arm"), Link("point", 2.0, (0.0, 0.0, 0.0), (0.0,) * 6)), (
        *held, Joint("turn", "revolute", f"link{before}", "arm", axes=((0.0, 0.0, 1.0),)),
        Joint("slide", "prismatic", "arm", "point", axes=((1.0, 0.0, 0.0),)))))
    zero, k = np.zeros((states, model.nv)), np.arange(model.nv)
    q = np.full_like(zero, 0.1)
    q[-2:-1, -1] = q[-1, -1] = 0.0
    q, zero, regular = (q, zero, q + 0.1) if states > 1 else (q[0], zero[0], q[0] + 0.1)
    with pytest.raises(ld.ComputationError, match=VANISHES):
        ld.forward_dynamics_derivatives(model, q, zero, zero)
    for mask in (k == before + 1, k < before):
        with pytest.raises(ld.ComputationError, match=VANISHES):
            ld.hybrid_dynamics_derivatives(model, q, zero, zero, zero, mask)
    assert np.isfinite(ld.hybrid_dynamics_derivatives(model, q, zero, zero, zero, k == before).split()).all()
    assert np.isfinite(ld.forward_dynamics_derivatives(model, regular, zero, zero)).all()
