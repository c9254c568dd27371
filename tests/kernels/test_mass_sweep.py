"""The principal pivot transform of M by rows of one state, and what is made with it, against dense matrices; any coordinates
prescribed. Tolerances: rounding times the condition of M, 4e4 at most here."""
import numpy as np

import liedyn as ld
from bridge import relative
from compiled import probe
from liedyn.joints.tree import tree_of
from liedyn.kernels.derivatives.ways import ways_memory, ways_of
from liedyn.kernels.loops.pivot_transform import pivot_transform
from liedyn.kernels.recursions.mass_product import minus_product
from mass_matrices import EVERY, masks, on_way, robot, together
from zoo import state

BOUND = 1e-9               # cond(M) of the trees, up to 1e5, times some roundings; LLVM 14 of Numba 0.60 reaches 2e-10


@probe
def swept(index, constants, prescribed, room, M, F, order, A, x, rows):
    """A: U, M, W, Z, scratch twice, W_u - U W, Z_u - U Z, each of `rows` rows; x = M_vv^-1 x. Returns the deficit."""
    tree, blocks, k = tree_of(index, constants), rows // prescribed.size, rows
    ways = ways_of(tree, prescribed, True, room, False)
    deficit = pivot_transform(tree, prescribed, ways, M, x, F, order, A, rows)
    minus_product(tree, prescribed, ways, M, A, (0, 0, 2 * k, 3 * k, 6 * k, 7 * k), 0, blocks, None)
    return deficit


class Swept:
    """Runs `swept` for a state of a model."""

    def __init__(self, model, mask):
        nv, rng = model.nv, np.random.default_rng(3)
        self.M = ld.mass_matrix(model, state(model, 1)[0])
        self.rhs, (self.W, self.Z) = rng.standard_normal(nv), np.where(on_way(model), rng.standard_normal((2, nv, nv)), 0.0)
        lower, self.x = np.where(np.tril(on_way(model)), self.M, np.nan).T.reshape(-1), self.rhs.copy()
        rows = -(-nv // 8) * nv
        A, room = np.zeros((8, rows, 8)), np.full(ways_memory(nv), -7)
        A[0], A[2], A[3], A[4:6] = np.nan, by_rows(self.W), by_rows(self.Z), np.nan
        self.deficit = swept(model.index, model.constants, mask, room, lower, np.full(3 * nv, np.nan), np.full(nv, -7),
                             A.reshape(-1, 8), self.x, rows)
        self.U, self.X, self.Y = (X.reshape(-1, nv, 8).swapaxes(0, 1).reshape(nv, -1) for X in A[[0, 6, 7]])


def by_rows(A):
    """(nv, nv) as `matrices.put` puts it for one state."""
    nv = len(A)
    wide = np.zeros((nv, -(-nv // 8) * 8))
    wide[:, :nv] = A
    return np.ascontiguousarray(wide.reshape(nv, -1, 8).swapaxes(0, 1)).reshape(-1, 8)


@EVERY
def test_rows_are_those_of_the_transform(name, worst):
    """All four parts; zeros between what stands on different ground, and in what fills up the last lanes."""
    model = robot(name)
    for mask in masks(model):
        s, U, n, u = Swept(model, mask), np.empty((model.nv, model.nv)), np.flatnonzero(~mask), np.flatnonzero(mask)
        inverse = np.linalg.inv(s.M[np.ix_(n, n)])
        U[np.ix_(n, n)], U[np.ix_(u, n)] = inverse, s.M[np.ix_(u, n)] @ inverse
        U[np.ix_(n, u)] = -U[np.ix_(u, n)].T
        U[np.ix_(u, u)] = s.M[np.ix_(u, u)] - U[np.ix_(u, n)] @ s.M[np.ix_(n, u)]
        for a in (n, u):
            for b in (n, u):
                place = np.ix_(a, b)
                assert worst("pivot transform by rows", relative(s.U[place], U[place]), name) < BOUND
        assert not s.U[:, :model.nv][~together(model)].any() and not s.U[:, model.nv:].any()


@EVERY
def test_products_and_solution(name, worst):
    model = robot(name)
    for mask in masks(model):
        s, w = Swept(model, mask), ~mask
        U = np.where(w, s.U[:, :model.nv], 0.0)
        for x, A in ((s.X, s.W), (s.Y, s.Z)):
            expected = np.where(mask[:, None], A, 0.0) - U @ A
            assert worst("W_u - U W, one state", relative(x[:, :model.nv], expected), name) < 1e-13
            assert not x[:, model.nv:].any()
        np.testing.assert_array_equal(s.x[mask], s.rhs[mask])
        M = s.M[np.ix_(w, w)]
        assert worst("M_vv^-1 x, one state", relative(s.x[w], np.linalg.solve(M, s.rhs[w])), name) < BOUND
        rest = np.abs(M @ s.x[w] - s.rhs[w]) / (np.abs(M) @ np.abs(s.x[w]) + np.abs(s.rhs[w]))
        assert mask.all() or worst("what the solution leaves, one state", rest.max(), name) < 1e-14


@EVERY
def test_the_smallest_pivot_above_its_floor_is_found(name, worst):
    """A pivot is what is left of M_kk when all free coordinates behind k yield; of those of one run three are made at a time."""
    model = robot(name)
    floor = model.constants[-model.nv:]
    for mask in masks(model):
        free, M, short = np.flatnonzero(~mask), Swept(model, mask).M, [-1.0]
        for k in free:
            b = free[free > k]
            yields = M[k, b] @ np.linalg.solve(M[np.ix_(b, b)], M[b, k])
            short.append(floor[k] - (M[k, k] - yields))
        found = Swept(model, mask).deficit
        assert worst("shortfall of pivots", abs(found - max(short)) / np.abs(M).max(), name) < 1e-12
