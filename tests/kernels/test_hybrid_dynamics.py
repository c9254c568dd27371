"""M_vv = L^T D L over the tree, solutions with it, pivots and what is made of it all, against dense matrices; any coordinates
prescribed.

Tolerances: rounding times the condition of M, 4e4 at most here."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from compiled import probe
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.batch_blocks import SMALLEST_NORMAL, is_below
from liedyn.kernels.hybrid_dynamics import factor_mass_matrix, solve_factored, solve_matrix
from liedyn.model.description import Coordinate, Joint, Robot
from liedyn.model.links import Link
from mass_matrices import EVERY, masks, on_way, robot, together
from zoo import random_link, random_pose, state

NUMBERS = pytest.mark.parametrize("kind", ["float64", "Lanes"])
BOUND = 1e-9               # cond(M) of the trees, up to 1e5, times some roundings; LLVM 14 of Numba 0.60 reaches 2e-10


@probe
def solved(index, constants, prescribed, M, L, Psi, x, X, upper):
    tree = tree_views(index, constants)
    deficit = factor_mass_matrix(tree, prescribed, M, L, Psi)
    solve_factored(tree, prescribed, L, Psi, x)
    solve_matrix(tree, prescribed, L, Psi, X, upper)
    return is_below(deficit, SMALLEST_NORMAL)


class Solved:
    """Runs `solved` for one state of a model, or eight, and gives numbers back as (states, …). What is not to be read is NaN."""

    def __init__(self, model, mask, kind, floor=None, upper=False):
        nv, rng = model.nv, np.random.default_rng(2)
        constants = model.constants.copy()
        if floor is not None:
            constants[-nv:] = floor
        self.M = ld.mass_matrix(model, state(model, 1, 8 if kind == "Lanes" else 1)[0])
        count = len(self.M)

        def numbers(x):
            return x.reshape(count, -1).T.copy() if kind == "Lanes" else x.ravel().copy()
        self.X = np.where(on_way(model), rng.standard_normal((count, nv, nv)), 0.0)
        if upper:
            self.X = np.where(np.eye(nv, dtype=bool), self.X, 0.0)
        self.x = rng.standard_normal((count, nv))
        x, X, L = numbers(self.x), numbers(self.X), numbers(np.full_like(self.X, np.nan))
        Psi = numbers(np.full_like(self.x, np.nan))
        self.sound = solved(model.index, constants, mask, numbers(self.M), L, Psi, x, X, upper)
        self.found_x, self.found_X = x.T.reshape(count, nv), X.T.reshape(count, nv, nv)


@NUMBERS
@EVERY
def test_solutions_with_M(name, kind, worst):
    """x_v = M_vv^-1 x_v, X_v = -M_vv^-1 X_v; prescribed rows are unchanged."""
    model = robot(name)
    for mask in masks(model):
        s, w = Solved(model, mask, kind), ~mask
        M = s.M[:, w][:, :, w]
        expected = np.linalg.solve(M, s.x[:, w, None])[..., 0]
        assert worst("M_vv^-1 x", relative(s.found_x[:, w], expected, 1e-3), name) < BOUND
        assert (s.found_x[:, mask] == s.x[:, mask]).all()
        assert worst("-M_vv^-1 X", relative(s.found_X[:, w], -np.linalg.solve(M, s.X[:, w]), 1e-3), name) < BOUND
        assert (s.found_X[:, mask] == s.X[:, mask]).all() and not s.found_X[:, ~together(model)].any()


@NUMBERS
@EVERY
def test_of_a_diagonal_all_is_found_on_and_right_of_the_diagonal(name, kind, worst):
    model = robot(name)
    for mask in masks(model):
        s, w = Solved(model, mask, kind, upper=True), ~mask
        D = np.where(mask, 0.0, np.einsum("skk->sk", s.X))
        expected = np.zeros_like(s.X)
        expected[np.ix_(range(len(expected)), w, w)] = -np.linalg.inv(s.M[:, w][:, :, w]) * D[:, None, w]
        found = np.where(mask, 0.0, np.triu(s.found_X))[:, w]
        assert worst("-M_vv^-1 D, upper half", relative(found, np.triu(expected)[:, w], 1e-3), name) < BOUND


@NUMBERS
@EVERY
def test_a_pivot_below_its_floor_is_found(name, kind):
    """Each pivot is what is left of M_kk when all that is free behind k yields (K1 Table 3: the articulated inertia): a floor
    above the smallest of the states is told, below it is not."""
    model = robot(name)
    for mask in masks(model):
        M = Solved(model, mask, kind).M
        for k in np.flatnonzero(~mask):
            b = np.flatnonzero(~mask & (np.arange(model.nv) > k))
            yields = np.einsum("sb,sb->s", M[:, k, b], np.linalg.solve(M[:, b[:, None], b], M[:, b, k, None])[..., 0])
            pivot = (M[:, k, k] - yields).min()
            for share, found in ((1 + 1e-6, True), (1 - 1e-6, False)):
                floor = np.where(np.arange(model.nv) == k, share * pivot, 0.0)
                assert Solved(model, mask, kind, floor).sound != found


@NUMBERS
@EVERY
def test_derivatives_by_the_inputs_are_the_principal_pivot_transform_of_M(name, kind, worst):
    """Through the public function, in more states than one block: U_vv = M_vv^-1 = N, U_uv = M_uv N, U_vu = -U_uv^T, to the
    last bit, U_uu = M_uu - M_uv N M_vu."""
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
            assert (y[np.ix_(n, u)] == -y[np.ix_(u, n)].T).all()
            assert not y[~together(model)].any()


# a joint without inertia ------------------------------------------------------------------------------------------
VANISHES = "a joint's articulated inertia vanishes in this configuration: its acceleration is not defined"


@pytest.fixture(scope="module")
def gimbal():
    """Return an Euler joint between two simple ones, in gimbal lock and in another configuration."""
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
    """The model is regular; in one configuration the point mass lies on the axis that moves it."""
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
