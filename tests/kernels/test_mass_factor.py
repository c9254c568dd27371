"""M = L^T D L over trees, its inverse and its products, against dense matrices; any coordinates left out; eight states.

Tolerances: rounding times the condition of M, 4e4 at most here."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from compiled import probe
from liedyn.joints.tree import tree_of
from liedyn.kernels.mass_product import minus_product
from liedyn.kernels.mass_solve import solve_vector
from liedyn.kernels.pivot_transform import pivot_transform
from liedyn.kernels.ways import ways_of
from liedyn.lie.lanes import largest
from liedyn.model.description import Coordinate, Joint, Link, Robot
from mass_matrices import EVERY, UNTOUCHED, masks, on_way, robot, together
from zoo import random_link, random_pose, state

NUMBERS = pytest.mark.parametrize("kind", ["float64", "Lanes"])
BOUND = 1e-10


@probe
def solve(index, constants, prescribed, room, M, Psi, A, x, rows):
    """M becomes L; A holds U, E, W, Z, X = -N W, Y = -N Z, V, of which some columns become -N V, P = W - U W and Q = Z - U Z,
    each of `rows` rows; x = M^-1 x. Returns the deficit."""
    tree, nv, k = tree_of(index, constants), prescribed.size, rows
    ways = ways_of(tree, prescribed, True, room, True)
    deficit = largest(pivot_transform(tree, prescribed, ways, M, Psi, x, A, rows))
    solve_vector(tree, prescribed, ways, M, Psi, x, A[3 * rows:], rows)
    minus_product(tree, prescribed, ways, Psi, A, (0, k, 2 * k, 3 * k, 4 * k, 5 * k), 0, nv, None, None)
    minus_product(tree, prescribed, ways, Psi, A, (0, k, 2 * k, 3 * k, 7 * k, 8 * k), 0, nv, True, None)
    return deficit


@probe
def ways(index, constants, prescribed, room, eight):
    ways_of(tree_of(index, constants), prescribed, True, room, eight)


class Solved:
    """Runs `solve` for eight states of a model, and gives matrices back as (8, nv, nv)."""

    def __init__(self, model, mask):
        self.model, nv, rng = model, model.nv, np.random.default_rng(2)
        self.M = ld.mass_matrix(model, state(model, 1, 8)[0])
        self.rhs = rng.standard_normal((8, nv))
        self.W, self.Z = np.where(on_way(model), rng.standard_normal((2, 8, nv, nv)), 0.0)
        lower = np.where(np.tril(on_way(model) | (mask & mask[:, None])), self.M, UNTOUCHED)
        spare = np.full((8, 5), UNTOUCHED)                          # beyond M, where the factor may read
        L = numbers(np.concatenate([lower.reshape(8, -1), spare], axis=1))
        Psi, x = numbers(np.full((8, nv), UNTOUCHED)), numbers(self.rhs)
        A, room = np.zeros((9, nv * nv, 8)), np.full(8 * nv + 1, -7)
        A[0] = columns(np.broadcast_to(np.where(together(model), np.nan, UNTOUCHED), (8, nv, nv)))
        A[1] = np.nan
        A[2], A[3], A[6] = columns(self.W), columns(self.Z), columns(self.W)
        A[4:6] = UNTOUCHED
        A[7:] = UNTOUCHED
        self.deficit = solve(model.index, model.constants, mask, room, L, Psi, A.reshape(-1, 8), x, nv * nv)
        self.start, self.loose = room[2 * nv:4 * nv].reshape(2, nv)
        self.L, self.D = L.T[:, :nv * nv].reshape(-1, nv, nv), 1 / Psi.T
        self.x, (self.U, self.E, self.X, self.Y, self.V) = x.T, (matrices(X, nv) for X in A[[0, 1, 4, 5, 6]])
        self.P, self.Q = (matrices(X, nv) for X in A[7:])
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
    """(8, nv, nv) as `blocks.put` puts it."""
    return np.ascontiguousarray(A.swapaxes(1, 2).reshape(8, -1).T)


def matrices(X, nv):
    return X.T.reshape(8, nv, nv).swapaxes(1, 2)


@EVERY
def test_the_factor_multiplied_out_is_M(name, worst):
    """L has ones on its diagonal and stands in the places of M that the tree has, D on the diagonal; nothing else is written."""
    model = robot(name)
    for mask in masks(model):
        s, w, n = Solved(model, mask), ~mask, np.flatnonzero(~mask)
        places = np.tril(on_way(model), -1) & w[:, None] & w
        assert (s.L[:, ~np.tril(on_way(model) | (mask & mask[:, None]))] == UNTOUCHED).all()
        assert (s.D[:, mask] == 1 / UNTOUCHED).all()
        assert relative(np.diagonal(s.L, 0, 1, 2)[:, w], s.D[:, w]) < 1e-15
        assert s.deficit < 0
        kept = np.tril(on_way(model)) & ~(w[:, None] & w)                  # read later, for the forces where prescribed
        np.testing.assert_array_equal(s.L[:, kept], s.M[:, kept])
        for L, D, M in zip(s.L, s.D, s.M, strict=True):
            L, M = (np.where(places, L, 0.0) + np.eye(model.nv))[np.ix_(n, n)], M[np.ix_(n, n)]
            assert worst("L^T D L", relative(L.T @ np.diag(D[n]) @ L, M), name) < 1e-14


@EVERY
def test_inverse_and_products(name, worst):
    """The principal pivot transform, symmetric to the last bit but for the sign, with nothing left of what stood there; products
    with two matrices; one vector and, of floating bases, three columns solved."""
    model = robot(name)
    for mask in masks(model):
        s, n = Solved(model, mask), np.flatnonzero(~mask)
        U, expected = np.where(together(model), s.U, 0.0), principal_pivot_transform(s.M, mask)
        np.testing.assert_array_equal(U.swapaxes(1, 2), np.where(mask[:, None] == mask, U, -U))
        assert (s.U[:, ~together(model)] == UNTOUCHED).all()
        assert worst("U", relative(U, expected), name) < BOUND
        np.testing.assert_array_equal(s.x[:, mask], s.rhs[:, mask])
        left = s.loose > 0
        for x, A in ((s.X, s.W), (s.Y, s.Z)):
            written = together(model) & ~mask[:, None] & ~left
            assert worst("-N W", relative(x[:, written], (-s.N @ A)[:, written]), name) < 1e-13
            assert (x[:, ~written] == UNTOUCHED).all()
        for x, A in ((s.P, s.W), (s.Q, s.Z)):
            written = together(model) & ~left
            expected = np.where(mask[:, None], A, 0.0) - U @ np.where(mask[:, None], 0.0, A)
            assert worst("W_u - U W", relative(x[:, written], expected[:, written]), name) < BOUND
            assert (x[:, ~written] == UNTOUCHED).all()
        turns = np.flatnonzero(left)
        turns = turns[np.arange(turns.size) % 6 < 3]
        expected = s.W.copy()
        expected[:, n[:, None], turns] = (-s.N @ s.W)[:, n[:, None], turns]
        assert worst("-N W of rotations", relative(s.V, expected), name) < BOUND
        untouched = np.delete(s.V, turns, axis=-1), np.delete(s.W, turns, axis=-1)
        np.testing.assert_array_equal(*untouched)
        np.testing.assert_array_equal(s.V[:, mask], s.W[:, mask])
        for N, M, x, rhs in zip(s.N, s.M, s.x, s.rhs, strict=True):
            inverse = np.zeros_like(M)
            inverse[np.ix_(n, n)] = np.linalg.inv(M[np.ix_(n, n)])
            assert worst("M_vv^-1", relative(N, inverse), name) < BOUND
            assert worst("M_vv^-1 x", relative(x[n], inverse[np.ix_(n, n)] @ rhs[n]), name) < BOUND


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
def test_pivots_are_articulated_inertias(name, worst):
    """The force on a coordinate for its unit acceleration, with all before it held and all behind it loose (K1 Table 3).
    Rounding is relative to M_kk, of which elimination takes away what yields."""
    model = robot(name)
    s = Solved(model, np.zeros(model.nv, bool))
    q, zero = state(model, 1, 8)[0], np.zeros((8, model.nv))
    for k in range(model.nv):
        held, unit = np.arange(model.nv) <= k, np.arange(model.nv) == k
        moved, still = (ld.hybrid_dynamics(model, q, zero, a, zero, held, passive=False)[1][:, k] for a in (zero + unit, zero))
        size = np.abs(still).max() + s.M[:, k, k].max()
        assert worst("pivots", np.abs(moved - still - s.D[:, k]).max() / size, name) < 1e-12


@NUMBERS
@EVERY
def test_ways_over_free_coordinates(name, kind):
    """By climbing and counting; and limbs, within which the tree of eight states does not branch but for fingers."""
    model = robot(name)
    above, top, last = model.paths
    for mask in masks(model):
        expected, room, nv = np.empty(model.nv, int), np.full(8 * model.nv + 1, -7), model.nv
        ways(model.index, model.constants, mask, room, kind == "Lanes")
        up, run, start, _, order, chain = room[:6 * nv].reshape(6, nv)
        for k in range(model.nv):
            expected[k] = above[k]
            while expected[k] >= 0 and mask[expected[k]]:
                expected[k] = above[expected[k]]
        np.testing.assert_array_equal(up, expected)
        o, related = 0, on_way(model)
        while o < nv:                                            # of a chain, all that is free is related to all or to none
            rows = order[o:o + chain[o]]
            others = np.setdiff1d(np.flatnonzero(~mask), rows)
            assert (chain[o:o + len(rows)] == len(rows)).all() and len(rows) < 4
            assert len(set(start[rows])) == 1 == len(set(mask[rows]))
            assert (related[np.ix_(rows, others)] == related[rows[0], others]).all() and related[np.ix_(rows, rows)].all()
            o += len(rows)
        np.testing.assert_array_equal(order, [*np.flatnonzero(~mask), *np.flatnonzero(mask)])
        np.testing.assert_array_equal(room[6 * nv:7 * nv + 1], [(~mask[:k]).sum() for k in range(model.nv + 1)])
        steps = [k > 0 and expected[k] == k - 1 for k in range(model.nv)]
        np.testing.assert_array_equal(run, [max(j for j in range(k + 1) if not steps[j]) for k in range(model.nv)])
        if kind == "float64":
            np.testing.assert_array_equal(start, top)
        for k in range(model.nv if kind == "Lanes" else 0):
            assert start[start[k]] == start[k] <= k <= last[start[k]]
            j, branches = above[start[k]], np.flatnonzero(above == above[k])
            assert j < 0 or (above == j).sum() > 1                              # it begins at a branch
            assert len(branches) == 1 or start[k] == k or last[above[k]] <= above[k] + 3


@EVERY
def test_rows_of_other_limbs_follow_from_what_they_hang_on(name, worst):
    """x_K = -E x_A for every column of M^-1 that moves nothing in the limb K."""
    model = robot(name)
    for mask in masks(model):
        s, limbs = Solved(model, mask), 0
        free = np.flatnonzero(~mask)
        for k in free:
            j = model.paths[0][s.start[k]]
            if j >= 0:
                way = [a for a in free if a <= j <= model.paths[2][a]]
                columns = [c for c in free if c < s.start[k] or c > model.paths[2][s.start[k]]]
                expected = -np.einsum("sa,sac->sc", s.E[:, k, way], s.N[:, way][:, :, columns])
                assert worst("rows by roots", relative(s.N[:, k, columns], expected, 1e-3 * np.abs(s.N).max()), name) < 1e-10
                limbs += 1
        assert limbs or name not in ("every kind", "forest") or mask.all()


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
