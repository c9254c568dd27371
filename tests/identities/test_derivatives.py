"""Full Jacobians of inverse, forward and hybrid dynamics: against complex arithmetic (no differences: to rounding), against
differences of the dynamics, and what must hold between them; over every kind of joint, any mask, passive forces, wrenches,
both numbers.

Tolerances. Inverse dynamics: some roundings of the largest entry. Forward and hybrid solve with M_vv, so rounding may grow by
its condition, at most that of M: bounds are in eps cond(M)."""
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import liedyn as ld
from bridge import relative, worst_state
from complex_step import Reference
from joint_forces import figures
from matrices import derivative
from rounding import assert_same
from zoo import ROBOTS, random_robot, robots, state
from zoo import model_of as zoo_model

SEPARATE = "separate trees"            # four on one ground, every kind of joint
EVERY = pytest.mark.parametrize("name", [*ROBOTS, SEPARATE])
PASSIVE = pytest.mark.parametrize("passive", [True, False], ids=["passive", "bare"])
exploring = settings(max_examples=20, deadline=None, derandomize=True, database=None)
EPS = np.finfo(float).eps
INVERSE, SOLVED = 2e-14, 10            # of the largest entry; of eps cond(M) times that
BATCH = 19                             # two blocks of Lanes and a remainder


@cache
def model_of(name):
    return ld.build(random_robot(21, 12, grounded=True)) if name == SEPARATE else zoo_model(name)


def masks(model, seed=0):
    """Nothing, everything, any coordinates, every other joint, the first coordinate, all but the last."""
    nv, rng = model.nv, np.random.default_rng(seed)
    joints, first, but_last = np.zeros(nv, bool), np.arange(nv) == 0, np.arange(nv) < nv - 1
    for joint in model.joints[::2]:
        joints[joint.v] = True
    return joints & False, joints | True, rng.random(nv) < 0.5, rng.random(nv) < 0.2, joints, first, but_last


def wrench(model, seed, size=()):
    return np.random.default_rng([seed, 8]).standard_normal((*size, len(model.link_names), 6))


def cond(model, q):
    return np.linalg.cond(ld.mass_matrix(model, q)) if model.nv else 1.0


class Columns:
    """Derivatives by complex arithmetic, a coordinate at a time; with external wrenches."""

    def __init__(self, model, q, v, F, passive=True):
        def along(**moved):
            reference = Reference(model, q, v, f_ext=F, **moved)
            equation = reference.equation(passive)                       # once for all that is asked of it
            reference.equation = lambda passive: equation
            return reference
        self.eye = np.eye(model.nv)
        self.still = along()
        self.moved = [[along(**{name: e}) for e in self.eye] for name in ("dq", "dv")]

    def inverse(self, a):
        """dtau_dq, dtau_dv, M."""
        given = [(x, {}) for x in self.moved[0]], [(x, {}) for x in self.moved[1]], [(self.still, {"da": e}) for e in self.eye]
        return [np.array([x.inverse(a, **more)[1] for x, more in some]).T for some in given]

    def hybrid(self, a, tau, mask):
        """da_dq, da_dv, da_du, dtau_dq, dtau_dv, dtau_du."""
        inputs = [{"da": np.where(mask, e, 0), "dtau": np.where(mask, 0, e)} for e in self.eye]
        given = [(x, {}) for x in self.moved[0]], [(x, {}) for x in self.moved[1]], [(self.still, more) for more in inputs]
        found = [[x.hybrid(a, tau, mask, **more)[2:] for x, more in some] for some in given]
        return [np.array([pair[k] for pair in some]).T for k in (0, 1) for some in found]


def split_hybrid(*given, **options):
    """da_dq, da_dv, da_du, dtau_dq, dtau_dv, dtau_du."""
    return ld.hybrid_dynamics_derivatives(*given, **options).split()


def sizes(model, q, expected):
    """What errors are relative to at least: da by u for da, since the slope of friction, f w/(v^2 + w)^(3/2), comes out of
    complex arithmetic as a difference of terms 1e4 times as large; M da for dtau, a sum with it that may nearly cancel."""
    M, da = np.abs(ld.mass_matrix(model, q)), np.abs(expected[:3])
    return [da[2].max()] * 3 + [max((M @ x).max(), 1.0) for x in da]


def nan_where(x, unread):
    return np.where(unread, np.nan, x)


# against references -----------------------------------------------------------------------------------------------
@PASSIVE
@EVERY
def test_inverse_derivatives_agree_with_complex_arithmetic(name, passive, worst):
    model = model_of(name)
    (q, v, a, _), F = state(model, 1), wrench(model, 1)
    expected = Columns(model, q, v, F, passive).inverse(a)
    ours = ld.inverse_dynamics_derivatives(model, q, v, a, f_ext=F, passive=passive)
    for what, x, y in zip("qva", ours, expected, strict=True):
        assert x.shape == (model.nv, model.nv)
        assert worst(f"inverse derivatives by {what}, complex step", relative(x, y), name) < INVERSE


@PASSIVE
@EVERY
def test_forward_and_hybrid_derivatives_agree_with_complex_arithmetic(name, passive, worst):
    """What is not to be read is NaN."""
    model = model_of(name)
    (q, v, a, tau), F = state(model, 2), wrench(model, 2)
    columns = Columns(model, q, v, F, passive)
    for mask in masks(model):
        expected = columns.hybrid(a, tau, mask)
        given = q, v, nan_where(a, ~mask), nan_where(tau, mask), mask
        ours = split_hybrid(model, *given, f_ext=F, passive=passive)
        for field, x, y, size in zip(ours._fields, ours, expected, sizes(model, q, expected), strict=True):
            assert x.shape == (model.nv, model.nv)
            off = relative(x, y, size) / EPS / cond(model, q)
            assert worst("hybrid derivatives, complex step, over eps cond(M)", off, f"{name}, {field}") < SOLVED
    forward = ld.forward_dynamics_derivatives(model, q, v, tau, f_ext=F, passive=passive)
    for x, y in zip(forward, columns.hybrid(a, tau, masks(model)[0]), strict=False):
        off = relative(x, y, np.abs(forward.M_inverse).max())
        assert worst("forward derivatives, complex step", off, name) < SOLVED * EPS * cond(model, q)


@exploring
@given(robots, st.integers(0, 1000))
def test_derivatives_of_random_robots(robot, seed):
    """Any tree, any mask. Screws that nearly depend on each other make M worse conditioned than the zoo's: the bound follows."""
    model = ld.build(robot)
    (q, v, a, tau), F = state(model, seed), wrench(model, seed)
    columns, bound = Columns(model, q, v, F), max(INVERSE, SOLVED * EPS * cond(model, q))
    for x, y in zip(ld.inverse_dynamics_derivatives(model, q, v, a, f_ext=F), columns.inverse(a), strict=True):
        assert relative(x, y, 1.0) < INVERSE              # 1: what the wrenches contribute, where all nearly cancels
    for mask in masks(model, seed)[:4]:
        ours = split_hybrid(model, q, v, a, tau, mask, f_ext=F)
        expected = columns.hybrid(a, tau, mask)
        for x, y, size in zip(ours, expected, sizes(model, q, expected), strict=True):
            assert relative(x, y, size) < bound


@EVERY
def test_derivatives_agree_with_differences(name, worst):
    """Independent of any reference: along q (+) e d and v + e d for all d at once; without friction, whose scale is 0.01 rad/s.
    The differences' own error is what is seen: 1e-12 of the values that they are taken of, times cond(M) where M is solved.
    Checks: K1 Tables 5-7."""
    model = model_of(name)
    (q, v, a, tau), F, eye = state(model, 3), wrench(model, 3), 0.2 * np.eye(model.nv)
    mask = np.arange(model.nv) % 2 == 0

    def by_q(function):
        return 5 * derivative(lambda e: np.array(function(ld.integrate(model, q, e * eye), v))).swapaxes(-1, -2)

    def by_v(function):
        return 5 * derivative(lambda e: np.array(function(q, v + e * eye))).swapaxes(-1, -2)

    def inverse(q, v): return ld.inverse_dynamics(model, q, v, a, f_ext=F, passive=False)
    def hybrid(q, v): return ld.hybrid_dynamics(model, q, v, a, tau, mask, f_ext=F, passive=False)
    ours = ld.inverse_dynamics_derivatives(model, q, v, a, f_ext=F, passive=False)
    for x, y in zip(ours, (by_q(inverse), by_v(inverse)), strict=False):
        assert worst("inverse derivatives, differences", relative(x, y), name) < 1e-10
    ours = split_hybrid(model, q, v, a, tau, mask, f_ext=F, passive=False)
    for x, y in zip((ours[0], ours[3], ours[1], ours[4]), (*by_q(hybrid), *by_v(hybrid)), strict=True):
        assert worst("hybrid derivatives, differences", relative(x, y), name) < 1e-8


# against each other -----------------------------------------------------------------------------------------------
@EVERY
def test_derivatives_by_the_inputs_are_M_and_its_inverse(name, worst):
    """M to rounding, armature included; M^-1 within eps cond(M); both symmetric as far."""
    model = model_of(name)
    q, v, a, tau = state(model, 4)
    M, N = ld.mass_matrix(model, q), ld.inverse_mass_matrix(model, q)
    ours = ld.inverse_dynamics_derivatives(model, q, v, a).M, ld.forward_dynamics_derivatives(model, q, v, tau).M_inverse
    assert worst("M of inverse derivatives", relative(ours[0], M), name) < INVERSE
    assert worst("M^-1 of forward derivatives, over eps cond(M)", relative(ours[1], N) / EPS / cond(model, q), name) < SOLVED
    assert worst("M^-1 M - 1, over eps cond(M)", relative(ours[1] @ M, np.eye(model.nv)) / EPS / cond(model, q), name) < SOLVED
    assert relative(ours[0], ours[0].T) < INVERSE
    assert worst("M^-1 less its transpose, over eps cond(M)", relative(ours[1], ours[1].T) / EPS / cond(model, q), name) < SOLVED


@EVERY
def test_forward_derivatives_are_those_of_inverse_dynamics_at_the_solution(name, worst):
    """da = -M^-1 dtau, for q and v."""
    model = model_of(name)
    (q, v, _, tau), F = state(model, 5), wrench(model, 5)
    forward = ld.forward_dynamics_derivatives(model, q, v, tau, f_ext=F)
    inverse = ld.inverse_dynamics_derivatives(model, q, v, ld.forward_dynamics(model, q, v, tau, f_ext=F), f_ext=F)
    for x, y in ((forward.da_dq, inverse.dtau_dq), (forward.da_dv, inverse.dtau_dv)):
        off = relative(x, -forward.M_inverse @ y) / EPS / cond(model, q)
        assert worst("da = -M^-1 dtau, over eps cond(M)", off, name) < SOLVED
        assert worst("M da = -dtau", relative(inverse.M @ x, -y), name) < SOLVED * EPS * cond(model, q)


@EVERY
def test_hybrid_derivatives_become_forward_and_inverse_ones(name, worst):
    model = model_of(name)
    (q, v, a, tau), F, eye = state(model, 6), wrench(model, 6), np.eye(model.nv)
    none, every, *_ = masks(model)
    da_dq, da_dv, da_du, *inputs = split_hybrid(model, q, v, np.full_like(a, np.nan), tau, none, f_ext=F)
    for x, y in zip((da_dq, da_dv, da_du), ld.forward_dynamics_derivatives(model, q, v, tau, f_ext=F), strict=True):
        assert_same(x, y)
    for x, y in zip(inputs, (0 * eye, 0 * eye, eye), strict=True):
        np.testing.assert_array_equal(x, y)
    *inputs, dq, dv, du = split_hybrid(model, q, v, a, np.full_like(tau, np.nan), every, f_ext=F)
    for x, y in zip((dq, dv, du), ld.inverse_dynamics_derivatives(model, q, v, a, f_ext=F), strict=True):
        assert worst("hybrid derivatives, all prescribed, against inverse ones", relative(x, y), name) < INVERSE
    for x, y in zip(inputs, (0 * eye, 0 * eye, eye), strict=True):
        np.testing.assert_array_equal(x, y)


@EVERY
def test_derivatives_of_hybrid_dynamics_undo_those_of_inverse_dynamics(name, worst):
    """The completed motion satisfies the equation, and so do its derivatives: dtau = dID + M da, relative to their terms."""
    model = model_of(name)
    (q, v, a, tau), F = state(model, 7), wrench(model, 7)
    for mask in masks(model, 1):
        h = split_hybrid(model, q, v, a, tau, mask, f_ext=F)
        i = ld.inverse_dynamics_derivatives(model, q, v, ld.hybrid_dynamics(model, q, v, a, tau, mask, f_ext=F)[0], f_ext=F)
        size = [np.abs(i.M) @ np.abs(x) for x in h[:3]]
        for x, y, z, s in zip(h[3:], h[:3], (i.dtau_dq, i.dtau_dv, 0 * i.M), size, strict=True):
            off = np.abs(x - z - i.M @ y).max() / max((s + np.abs(z)).max(), 1)
            assert worst("dtau = dID + M da", off / EPS / cond(model, q), name) < SOLVED


@EVERY
def test_rows_of_inputs_are_exact(name):
    """Where six matrices are asked for: zero by q and v, a unit row by u. The other rows are those of the three."""
    model = model_of(name)
    eye = np.eye(model.nv)
    for size in ((), (9,)):
        q, v, a, tau = state(model, 8, size)
        for mask in masks(model, 2):
            three = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
            h = three.split()
            np.testing.assert_array_equal(three.prescribed, mask)
            for x, da, dtau in zip(three[:3], h[:3], h[3:], strict=True):
                assert x.shape == da.shape == dtau.shape == (*size, model.nv, model.nv)
                np.testing.assert_array_equal(x, np.where(mask[:, None], dtau, da))
            for rows, blocks in ((mask, h[:3]), (~mask, h[3:])):
                for x, y in zip(blocks, (0 * eye, 0 * eye, eye), strict=True):
                    np.testing.assert_array_equal(x[..., rows, :], np.broadcast_to(y[rows], (*size, rows.sum(), model.nv)))


def related(model):
    """(nv, nv): whether one coordinate moves the other; whether both hang on one coordinate at the ground."""
    parent = {}
    for joint in model.joints:
        parent[joint.child] = joint
    links = dict(zip(model.link_names, model.link_parents, strict=True))
    on_way = np.zeros((model.nv, model.nv), bool)
    for joint in model.joints:
        link = joint.child
        while link is not None:
            if link in parent:
                on_way[joint.v, parent[link].v] = True
            link = links[link]
    on_way = on_way | on_way.T
    together = on_way.copy()
    for _ in range(model.nv.bit_length()):
        together = together @ together
    return on_way, together


@EVERY
def test_what_does_not_move_each_other_gives_exact_zeros(name):
    """Of inverse dynamics: branches; of forward dynamics: trees that share nothing but the ground. Both numbers."""
    model = model_of(name)
    on_way, together = related(model)
    mask = masks(model, 3)[2]
    for size in ((), (11,)):
        (q, v, a, tau), F = state(model, 9, size), wrench(model, 9, size)
        for x in ld.inverse_dynamics_derivatives(model, q, v, a, f_ext=F):
            assert not x[..., ~on_way].any()
            assert x[..., on_way].any() or not x.any()
        for x in (*ld.forward_dynamics_derivatives(model, q, v, tau, f_ext=F),
                  *split_hybrid(model, q, v, a, tau, mask, f_ext=F)):
            assert not x[..., ~together].any()


def test_there_are_branches_and_separate_trees_among_the_robots():
    on_way, together = related(model_of(SEPARATE))
    assert not together.all() and (together & ~on_way).any()
    assert len(np.unique(model_of(SEPARATE).paths[1])) == 4


# both numbers -----------------------------------------------------------------------------------------------------
@PASSIVE
@EVERY
def test_a_batch_is_its_states(name, passive, worst):
    """Lanes and float64 sum in other orders: rounding, times cond(M) where M is solved. dtau is a sum with M da, so no more is
    asked of it than of da."""
    model = model_of(name)
    states, F, mask = state(model, 10, BATCH), wrench(model, 10, (BATCH,)), masks(model, 4)[2]
    worst_cond = max(cond(model, q) for q in states[0])

    def inverse(q, v, a, tau, F): return ld.inverse_dynamics_derivatives(model, q, v, a, f_ext=F, passive=passive)
    def forward(q, v, a, tau, F): return ld.forward_dynamics_derivatives(model, q, v, tau, f_ext=F, passive=passive)
    def hybrid(q, v, a, tau, F): return split_hybrid(model, q, v, a, tau, mask, f_ext=F, passive=passive)
    for function, bound in ((inverse, INVERSE), (forward, SOLVED * EPS * worst_cond), (hybrid, SOLVED * EPS * worst_cond)):
        together, alone = function(*states, F), [function(*row) for row in zip(*states, F, strict=True)]
        for k, x in enumerate(together):
            off = worst_state(x, np.array([one[k] for one in alone]), np.abs(together[k % 3]).max() if k > 2 else 0.0)
            assert worst(f"{function.__name__} derivatives, Lanes against float64", off, name) < bound


# other arguments --------------------------------------------------------------------------------------------------
@EVERY
def test_passive_forces_add_their_slopes_and_nothing_else(name, worst):
    """Stiffness to dtau/dq; d + f w/(v^2 + w)^(3/2), with w the square of the friction speed, to dtau/dv."""
    model = model_of(name)
    q, v, a, _ = state(model, 11, BATCH)
    spring = figures(model, "stiffness")                 # zero where there is no spring: ball and free joints
    w = figures(model, "friction_speed")**2
    friction = figures(model, "friction") * w / (v**2 + w)**1.5
    for rows in (slice(None), 0):
        given = q[rows], v[rows], a[rows]
        one, two = (ld.inverse_dynamics_derivatives(model, *given, passive=x) for x in (True, False))
        slope = (figures(model, "damping") + friction)[rows]
        size = np.abs(two.dtau_dv).max()
        assert worst("springs in dtau/dq", relative(one.dtau_dq - two.dtau_dq, np.eye(model.nv) * spring,
                                                    np.abs(two.dtau_dq).max()), name) < 1e-15
        assert worst("damping in dtau/dv", relative(one.dtau_dv - two.dtau_dv, np.eye(model.nv) * slope[..., None, :], size),
                     name) < 1e-15
        assert_same(one.M, two.M)


@EVERY
def test_unread_numbers_may_be_nan_in_a_batch_too(name):
    model = model_of(name)
    q, v, a, tau = state(model, 12, 9)
    for mask in masks(model, 5):
        read = split_hybrid(model, q, v, a, tau, mask)
        unread = split_hybrid(model, q, v, nan_where(a, ~mask), nan_where(tau, mask), mask)
        for x, y in zip(unread, read, strict=True):
            assert_same(x, y)


@EVERY
def test_derivatives_by_external_wrenches_are_those_of_the_jacobians(name, worst):
    """dtau/dF = -J^T, da/dF = M^-1 J^T, in the link's frame, and what hybrid dynamics makes of both."""
    model = model_of(name)
    q, v, a, tau = state(model, 13)
    unit, mask = np.eye(6), masks(model, 7)[2]
    inverse, forward = ld.inverse_dynamics_derivatives(model, q, v, a), ld.forward_dynamics_derivatives(model, q, v, tau)
    hybrid, bound = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask), SOLVED * EPS * cond(model, q)
    for link in model.link_names[::3]:
        J, moved = ld.jacobian(model, q, link), {"df_ext": {link: unit}}
        dtau = ld.inverse_dynamics_directional(model, q, v, a, **moved)[1].T
        assert worst("inverse derivatives by wrenches", relative(inverse.wrt_wrench(J), dtau, 1.0), name) < INVERSE
        da = ld.forward_dynamics_directional(model, q, v, tau, **moved)[1].T
        off = relative(forward.wrt_wrench(J), da, np.abs(forward.M_inverse).max())
        assert worst("forward derivatives by wrenches", off, name) < bound
        da, dtau = (x.T for x in ld.hybrid_dynamics_directional(model, q, v, a, tau, mask, **moved)[2:])
        off = relative(hybrid.wrt_wrench(J), np.where(mask[:, None], dtau, da), np.abs(hybrid.dy_du).max())
        assert worst("hybrid derivatives by wrenches", off, name) < bound


@EVERY
def test_products_with_directions_are_directional_derivatives(name, worst):
    """A batch of states and as many directions of q, v and the inputs at once."""
    model = model_of(name)
    (q, v, a, tau), F, mask = state(model, 14, 9), wrench(model, 14, (9,)), masks(model, 6)[2]
    dq, dv, du = np.random.default_rng(14).standard_normal((3, 9, model.nv))

    def along(x, y, z): return np.einsum("...ij,...j", x, dq) + np.einsum("...ij,...j", y, dv) + np.einsum("...ij,...j", z, du)
    inverse = ld.inverse_dynamics_derivatives(model, q, v, a, f_ext=F)
    dtau = ld.inverse_dynamics_directional(model, q, v, a, dq=dq, dv=dv, da=du, f_ext=F)[1]
    assert worst("inverse derivatives, directional", relative(along(*inverse), dtau), name) < INVERSE
    hybrid = split_hybrid(model, q, v, a, tau, mask, f_ext=F)
    da, dtau = ld.hybrid_dynamics_directional(model, q, v, a, tau, mask, dq=dq, dv=dv, da=du, dtau=du, f_ext=F)[2:]
    bound = SOLVED * max(cond(model, x) for x in q)
    for x, y in ((along(*hybrid[:3]), da), (along(*hybrid[3:]), dtau)):
        assert worst("hybrid derivatives, directional", relative(x, y), name) < bound * EPS
