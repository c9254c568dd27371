"""Arguments of the full Jacobians: what is accepted, errors and their texts; what a call leaves behind, in any
thread; and robots far away, long, or without joints."""
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from complex_step import Reference
from liedyn.dynamics.batching import calls, threads
from liedyn.dynamics.derivatives import ForwardDerivatives, HybridDerivatives, InverseDerivatives
from liedyn.kernels.hybrid_dynamics_derivatives import hybrid_derivatives_batch
from liedyn.kernels.inverse_dynamics_derivatives import inverse_derivatives_batch
from liedyn.model.description import WORLD, Joint, Robot
from liedyn.model.links import Link, Pose
from liedyn.numba_tools.decorators import compile_entry_point
from rounding import alike, assert_same
from zoo import floats, model_of, random_link, random_robot, state, unit

NAME = "every kind, floating"          # nq 35, nv 32


def hybrid(model, q, v, a, tau, **options):
    return ld.hybrid_dynamics_derivatives(model, q, v, a, tau, np.arange(model.nv) % 3 == 0, **options)


CALLS = {
    "inverse": ((0, 1, 2), ld.inverse_dynamics_derivatives, InverseDerivatives),
    "forward": ((0, 1, 3), ld.forward_dynamics_derivatives, ForwardDerivatives),
    "hybrid": ((0, 1, 2, 3), hybrid, HybridDerivatives),
}
EVERY = pytest.mark.parametrize(("which", "function", "kind"), CALLS.values(), ids=CALLS)
SIZES = pytest.mark.parametrize("size", [(), (1,), (11,)], ids=["one", "batch of one", "batch"])
ARGUMENTS = ("q", "v", "a", "tau")


def arrays(which, size=(), seed=1):
    states = state(model_of(NAME), seed, size)
    return [states[k].copy() for k in which]


def refused(error, function, *given, **options) -> str:
    with pytest.raises(error) as caught:
        function(*given, **options)
    assert isinstance(caught.value, ld.LiedynError) and "\n" not in str(caught.value)
    return str(caught.value)


# what is accepted -------------------------------------------------------------------------------------------------
@EVERY
@SIZES
def test_arguments_are_left_alone_and_results_are_new(which, function, kind, size):
    """No result is a view of the scratch, or of another call's result."""
    model = model_of(NAME)
    given = arrays(which, size)
    before = [x.copy() for x in given]
    constants = model.constants.copy(), model.index.copy()
    first = function(model, *given)
    assert isinstance(first, kind) and all(x.dtype == np.float64 for x in first[:3])
    assert all(x.shape == (*size, model.nv, model.nv) for x in first[:3])
    kept = [x.copy() for x in first]
    second = function(model, *arrays(which, size, seed=2))
    for x in first[:3]:
        assert x.flags.writeable
        assert not any(np.shares_memory(x, y) for y in (*given, *second, calls.thread_workspace(1)))
    for x, y in zip((*given, *first, model.constants, model.index), (*before, *kept, *constants), strict=True):
        np.testing.assert_array_equal(x, y)


@EVERY
@SIZES
def test_lists_and_other_arrays_are_accepted(which, function, kind, size):
    """Read-only, strided, Fortran-ordered, of another byte order; lists; all bitwise alike."""
    model = model_of(NAME)
    given = arrays(which, size)
    expected = [x.copy() for x in function(model, *given)]

    def read_only(x):
        x = x.copy()
        x.flags.writeable = False
        return x

    for other in (read_only, lambda x: np.repeat(x, 3, axis=-1)[..., ::3], np.asfortranarray, lambda x: x.astype(">f8"),
                  lambda x: x.tolist(), lambda x: np.broadcast_to(x, (3, *x.shape))[1]):
        for x, y in zip(function(model, *map(other, given)), expected, strict=True):
            assert_same(x, y)


@EVERY
def test_passive_may_be_any_truth_value(which, function, kind):
    model = model_of(NAME)
    given = arrays(which)
    for size in ((), (3,)):
        given = arrays(which, size)
        for value, same in ((1, True), (np.True_, True), (0, False), (np.array(False), False)):
            for x, y in zip(function(model, *given, passive=value), function(model, *given, passive=same), strict=True):
                assert_same(x, y)


@EVERY
def test_leading_axes_are_spread(which, function, kind):
    """(2, 3), states against one q, one state against many wrenches, an empty batch."""
    model = model_of(NAME)
    given = arrays(which, (2, 3))
    flat = function(model, *(x.reshape(6, -1) for x in given))
    for x, y in zip(function(model, *given)[:3], flat[:3], strict=True):
        assert_same(x, y.reshape(2, 3, model.nv, model.nv))
    mixed = function(model, given[0][0, 0], *(x[:, :1] for x in given[1:-1]), given[-1])
    rows = np.broadcast_to(given[0][0, 0], given[0].shape), *(np.repeat(x[:, :1], 3, axis=1) for x in given[1:-1]), given[-1]
    for x, y in zip(mixed[:3], function(model, *rows)[:3], strict=True):
        assert_same(x, y)
    assert all(x.shape == (2, 0, model.nv, model.nv) for x in function(model, *(x[:, :0] for x in given))[:3])
    F = np.random.default_rng(0).standard_normal((9, len(model.link_names), 6))
    one = [x[0, 0] for x in given]
    many = function(model, *one, f_ext=F)
    for x, y in zip(many[:3], function(model, *one, f_ext=F[4])[:3], strict=True):
        assert x.shape == (9, model.nv, model.nv) and relative(x[4], y) < 1e-11


@EVERY
def test_wrenches_by_name_are_those_of_the_array(which, function, kind):
    model = model_of(NAME)
    for size in ((), (9,)):
        F = np.random.default_rng(1).standard_normal((*size, len(model.link_names), 6))
        given = arrays(which, size)
        expected = function(model, *given, f_ext=F)
        named = function(model, *given, f_ext={name: F[..., k, :] for k, name in enumerate(model.link_names)})
        for x, y in zip(named, expected, strict=True):
            assert_same(x, y)
        assert relative(expected[0], function(model, *given)[0]) > 1e-3


@EVERY
def test_remainders_and_places_in_a_batch_do_not_matter(which, function, kind):
    """Sizes 1 to 17: each state gives bitwise the same on Lanes, at any position."""
    model = model_of(NAME)
    given = arrays(which, (17,))
    expected = function(model, *given)[:3]
    for count in range(1, 17):
        for rows in (slice(count), slice(17 - count, None)):
            for x, y in zip(function(model, *(x[rows] for x in given))[:3], expected, strict=True):
                assert_same(x, y[rows])


# errors --------------------------------------------------------------------------------------------------
@EVERY
@SIZES
def test_wrong_shapes_are_refused_by_name(which, function, kind, size):
    model = model_of(NAME)
    for k, index in enumerate(which):
        given, n = arrays(which, size), model.nq if index == 0 else model.nv
        for wrong in (given[k][..., :-1], np.zeros((*size, n + 1)), np.zeros(()), np.zeros((n, 3)), 1.0):
            given[k] = wrong
            assert refused(ld.ShapeError, function, model, *given) == (
                f"{ARGUMENTS[index]} has the wrong shape: expected (…, {n}), got {np.shape(wrong)}")


@EVERY
def test_what_is_no_array_of_numbers_is_refused(which, function, kind):
    model = model_of(NAME)
    for k, index in enumerate(which):
        for wrong, found in (("abc", "str"), (None, "NoneType"), ([1, [2, 3]], "list"),
                             (np.ones(40, dtype=complex), "ndarray of complex128")):
            given = arrays(which)
            given[k] = wrong
            assert refused(ld.ShapeError, function, model, *given) == (
                f"{ARGUMENTS[index]} is not an array of numbers: got {found}")


@EVERY
def test_leading_axes_that_do_not_fit_are_refused(which, function, kind):
    given = arrays(which, (6,))
    given[-1] = given[-1][:4]
    text = refused(ld.ShapeError, function, model_of(NAME), *given)
    assert text.startswith("leading axes do not match: ") and f"{ARGUMENTS[which[-1]]} (4, " in text


@EVERY
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_with_coordinate_and_state(which, function, kind, bad):
    """Hybrid: where they are read, every third a and the other tau."""
    model = model_of(NAME)
    for k, index in enumerate(which):
        names, name = model.q_names if index == 0 else model.v_names, ARGUMENTS[index]
        for c in (0, 9, 30) if index < 3 else (1, 8, len(names) - 1):
            given = arrays(which)
            given[k][c] = bad
            assert refused(ld.ConfigurationError, function, model, *given) == (
                f"{name}[{c}] ({names[c]}) is not finite: got {bad}")
            for row in (0, 7, 10):
                given = arrays(which, (11,))
                given[k][row, c] = bad
                assert refused(ld.ConfigurationError, function, model, *given) == (
                    f"{name}[{c}] ({names[c]}) of state {row} is not finite: got {bad}")


@EVERY
def test_quaternions_must_be_of_unit_norm(which, function, kind):
    model = model_of(NAME)
    joint = [joint for joint in model.joints if joint.type == "ball"][-1]
    where = slice(joint.q.stop - 4, joint.q.stop)
    given = arrays(which)
    given[0][where] *= 1.001
    assert refused(ld.ConfigurationError, function, model, *given) == (
        f"the quaternion of joint {joint.name!r} is not of unit norm: expected |q| = 1 within 5e-10, got 1.001 "
        "(normalize it first)")
    given = arrays(which, (11,))
    given[0][10, where] = 0
    assert f"joint {joint.name!r} in state 10 is not of unit norm: expected |q| = 1 within 5e-10, got 0 " in refused(
        ld.ConfigurationError, function, model, *given)


@pytest.mark.parametrize(("mask", "found"), [
    (np.zeros(31, dtype=bool), "bool of shape (31,)"), (np.zeros((2, 32), dtype=bool), "bool of shape (2, 32)"),
    (np.zeros(32), "float64 of shape (32,)"), ([0] * 32, "int64 of shape (32,)")])
@SIZES
def test_masks_of_the_wrong_kind_are_refused(mask, found, size):
    model = model_of(NAME)
    assert refused(ld.ShapeError, ld.hybrid_dynamics_derivatives, model, *state(model, 1, size), mask) == (
        f"prescribed is a mask over v: expected bool (32,), got {found}")


def test_masks_may_be_lists_read_only_or_strided():
    model = model_of(NAME)
    mask = np.arange(32) % 3 == 0
    frozen = mask.copy()
    frozen.flags.writeable = False
    expected = ld.hybrid_dynamics_derivatives(model, *state(model), mask)
    for other in (mask.tolist(), frozen, np.repeat(mask, 2)[::2]):
        for x, y in zip(ld.hybrid_dynamics_derivatives(model, *state(model), other), expected, strict=True):
            assert_same(x, y)


@SIZES
def test_the_mask_of_a_result_does_not_change_with_the_callers(size):
    model = model_of(NAME)
    mask = np.arange(32) % 3 == 0
    result = ld.hybrid_dynamics_derivatives(model, *state(model, 1, size), mask)
    expected = result.split()
    mask[:] = ~mask
    np.testing.assert_array_equal(result.prescribed, ~mask)
    for x, y in zip(result.split(), expected, strict=True):
        assert_same(x, y)


def test_many_masks_take_turns_in_threads():
    """Each result has the mask of its own call and what belongs to it, also where one array is written anew from call to call."""
    model, given = model_of(NAME), state(model_of(NAME))
    masks = np.random.default_rng(0).random((70, model.nv)) < 0.5
    expected = [ld.hybrid_dynamics_derivatives(model, *given, mask) for mask in masks.tolist()]

    def turns(first):
        own, good = np.zeros(model.nv, bool), True
        for k in (*range(first, len(masks), 3), *[first, first + 1] * 20):
            own[:] = masks[k]
            found = ld.hybrid_dynamics_derivatives(model, *given, own)
            good = good and all(map(alike, found, expected[k]))
        return good
    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(turns, range(6)))


def test_accelerations_with_as_many_numbers_behind_as_wrenches_have_are_refused():
    """Also where the mask is known, on the short way."""
    model, mask = model_of(NAME), np.arange(32) % 3 == 0
    q, v, a, tau = state(model)
    n = 6 * len(model.link_names)
    for _ in range(2):
        ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
        assert refused(ld.ShapeError, ld.hybrid_dynamics_derivatives, model, q, v, np.append(a, np.zeros(n)), tau, mask) == (
            f"a has the wrong shape: expected (…, 32), got ({32 + n},)")


@EVERY
def test_external_wrenches_that_are_refused(which, function, kind):
    model = model_of(NAME)
    n = len(model.link_names)
    for size in ((), (11,)):
        of = lambda f, size=size: refused(ValueError, function, model, *arrays(which, size), f_ext=f)      # noqa: E731
        assert of(np.zeros((n - 1, 6))) == f"f_ext has the wrong shape: expected (…, {n}, 6), got ({n - 1}, 6)"
        assert of({"rot": np.zeros(6)}) == "f_ext: no link 'rot'; did you mean 'root'?"
        for row in range(11 if size else 1):
            wrench = np.zeros((*size, n, 6))
            wrench[(row, 2, 2) if size else (2, 2)] = np.inf
            assert of(wrench) == "f_ext contains NaN or infinite values"


@EVERY
@pytest.mark.parametrize("size", [(), (11,)])
def test_overflow_is_an_error_and_never_nan(which, function, kind, size):
    model = model_of(NAME)
    for huge in (1e120, 1e155, 1e200, 1e306):
        for k in range(len(which)):
            given = arrays(which, size)
            given[k][..., 0 if which[k] == 0 else slice(None)] *= huge
            try:
                value = function(model, *given)
            except ld.ComputationError as error:
                assert str(error) == "the result is not finite: the state is too large for double precision"
            else:
                assert all(np.isfinite(x).all() for x in value[:3])


# a call leaves nothing behind -------------------------------------------------------------------------------------
@EVERY
def test_a_refused_call_spoils_no_later_one(which, function, kind):
    """The scratch is kept, NaN and all."""
    model = model_of(NAME)
    for size in ((), (11,)):
        expected = [x.copy() for x in function(model, *arrays(which, size))]
        for value in (np.nan, 1e306):
            wrong = arrays(which, size)
            wrong[1][...] = value
            refused(ValueError if np.isnan(value) else ld.ComputationError, function, model, *wrong)
            for x, y in zip(function(model, *arrays(which, size)), expected, strict=True):
                assert_same(x, y)


def test_masks_and_functions_take_turns_on_one_scratch():
    """Entries that are zero for one mask are not for another."""
    model = model_of("every kind")
    states = {size: state(model, 1, size) for size in ((), (11,))}
    masks = [np.arange(model.nv) % n == 0 for n in (2, 3, 5, 100)]

    def all_of_them(order):
        return {(size, k): [x.copy() for x in (ld.hybrid_dynamics_derivatives(model, *states[size], masks[k]) if k < 4 else
                                               ld.forward_dynamics_derivatives(model, *(states[size][j] for j in (0, 1, 3))))]
                for size in states for k in order}
    once, again = all_of_them(range(5)), all_of_them((3, 4, 1, 0, 2))
    for key, result in once.items():
        for x, y in zip(result, again[key], strict=True):
            assert_same(x, y)


@pytest.mark.parametrize("name", [NAME, "every kind", "every kind twice, floating", "a long chain", "a lone body",
                                  "one degree of freedom each", "no passive forces, floating"])
def test_what_others_left_in_the_scratch_does_not_matter(name):
    """Trees on one top and on several, all kinds of masks, batches with rest: only what is read is cleared."""
    model = model_of(name)
    rng = np.random.default_rng(0)
    masks = [rng.random(model.nv) < part for part in (0.0, 0.2, 0.5, 0.8, 1.0)] + [np.arange(model.nv) % 2 == 0]
    for count in (8, 19):
        q, v, a, tau = state(model, 1, (count,))
        asked = [(ld.inverse_dynamics_derivatives, (q, v, a)), (ld.forward_dynamics_derivatives, (q, v, tau)),
                 *((ld.hybrid_dynamics_derivatives, (q, v, a, tau, mask)) for mask in masks)]
        f_ext = rng.standard_normal((count, len(model.link_names), 6))
        for (function, given), more in product(asked, ({}, {"passive": False}, {"f_ext": f_ext})):
            first = function(model, *given, **more)
            for left in (np.nan, 777.0):                                                   # NaN would be seen, and all done again
                calls.thread_workspace(1)                                                           # as others take it
                calls._thread.memory[:] = left
                for x, y in zip(first[:3], function(model, *given, **more), strict=False):
                    assert_same(x, y)


@EVERY
def test_threads_of_python_do_not_disturb_each_other(which, function, kind):
    """One model, single calls and batches from eight threads at once."""
    model = model_of(NAME)
    jobs = [arrays(which, size, seed) for seed in range(6) for size in ((), (3,), (40,))]
    expected = [function(model, *given) for given in jobs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda given: function(model, *given), jobs * 20))
    for k, result in enumerate(found):
        for x, y in zip(result, expected[k % len(jobs)], strict=True):
            assert_same(x, y)


@EVERY
def test_own_threads_do_not_matter(which, function, kind, monkeypatch):
    model = model_of(NAME)
    given = arrays(which, (101,))
    expected = function(model, *given)
    monkeypatch.setattr(threads, "_MIN_WORK_PER_THREAD", 1)
    monkeypatch.setattr(threads, "cores", lambda: 3)
    for x, y in zip(function(model, *given), expected, strict=True):
        assert_same(x, y)


@EVERY
def test_batches_allocate_little_more_than_their_results(which, function, kind):
    """Three matrices a state, and no other array that grows with the batch: less than nv."""
    model = model_of(NAME)
    counts, row = (400, 2000), 3 * model.nv**2
    cases = {count: arrays(which, (count,)) for count in counts}

    def peak(count):
        tracemalloc.start()
        function(model, *cases[count])
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found - count * row * 8
    for count in counts:
        function(model, *cases[count])
    small, large = map(peak, counts)
    assert large - small < 1600 * model.nv * 8


def test_single_calls_compile_once():
    """For arguments of any type: the entries know one signature for each kind of number."""
    model = model_of(NAME)
    q = state(model)[0]
    for given in (lambda x: x.astype(np.float32), lambda x: x.tolist(), lambda x: x.astype(">f8")):
        v, a, tau = map(given, state(model)[1:])
        ld.inverse_dynamics_derivatives(model, q, v, a)
        ld.forward_dynamics_derivatives(model, q, v, tau)
        hybrid(model, q, v, a, tau)
        ld.forward_dynamics_derivatives(model, q, v, tau, f_ext=given(np.ones((len(model.link_names), 6))))
    for entry in (inverse_derivatives_batch, hybrid_derivatives_batch):
        assert len(entry.signatures) <= 2 and not compile_entry_point(entry)


# awkward robots ---------------------------------------------------------------------------------------------------
def test_a_robot_without_joints_gives_empty_matrices():
    body = Link("a", 1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    model = ld.build(Robot("welded", (body, replace(body, name="b")), (Joint("weld", "fixed", "a", "b"),)))
    for lead in ((), (9,), (0,), (2, 3)):
        x, mask = np.zeros((*lead, 0)), np.zeros(0, bool)
        for F in (None, np.zeros((*lead, 2, 6))):
            for result in (ld.inverse_dynamics_derivatives(model, x, x, x, f_ext=F),
                           ld.forward_dynamics_derivatives(model, x, x, x, f_ext=F),
                           ld.hybrid_dynamics_derivatives(model, x, x, x, x, mask, f_ext=F)[:3],
                           ld.hybrid_dynamics_derivatives(model, x, x, x, x, mask, f_ext=F).split()):
                assert all(y.shape == (*lead, 0, 0) for y in result)


def moved(robot, far):
    """The same robot with everything on the ground `far` away."""
    def away(pose): return Pose(pose.rotation, floats(np.add(pose.translation, far)))
    return ld.build(replace(robot, joints=tuple(replace(joint, origin=away(joint.origin)) if joint.parent == WORLD else joint
                                                for joint in robot.joints)))


@SIZES
def test_nothing_is_lost_far_from_the_origin(size):
    """Of a robot on the ground 1e6 m away, and of a floating one: bitwise, since no distance to the origin enters."""
    robot = random_robot(21, 9, grounded=True)
    near, far = ld.build(robot), moved(robot, (1e6, -2e6, 3e6))
    floating = model_of(NAME)
    q, v, a, tau = state(near, 1, size)
    Q, *rest = state(floating, 1, size)
    away = Q.copy()
    away[..., :3] += 1e6
    for function in (lambda m, q, v, a, tau: ld.inverse_dynamics_derivatives(m, q, v, a),
                     lambda m, q, v, a, tau: ld.forward_dynamics_derivatives(m, q, v, tau), hybrid):
        for x, y in zip(function(far, q, v, a, tau), function(near, q, v, a, tau), strict=True):
            assert_same(x, y)
        for x, y in zip(function(floating, away, *rest), function(floating, Q, *rest), strict=True):
            assert_same(x, y)


def chain_of(n, rng):
    """Bodies on revolute joints, 0.15 m apart."""
    links = [random_link(rng, f"link{k}") for k in range(n + 1)]
    joints = [Joint(f"joint{k}", "revolute", f"link{k}", f"link{k + 1}", Pose.from_xyz_quaternion((0.0, 0.0, 0.15), (0, 0, 0, 1)),
                    axes=(floats(unit(rng)),)) for k in range(n)]
    return ld.build(Robot("chain", tuple(links), tuple(joints)))


@pytest.fixture(scope="module")
def chain():
    """A hundred bodies on revolute joints, 0.15 m apart, and nine states in which it swings."""
    model = chain_of(100, np.random.default_rng(5))
    q, v, a, tau = state(model, 2, 9)
    return model, 0.3 * q, 0.3 * v, a, tau


@pytest.mark.parametrize("one", [False, True], ids=["batch", "one by one"])
def test_a_chain_of_a_hundred_bodies_keeps_its_digits(chain, one, worst):
    """Against complex arithmetic, and M^-1 against M: eps cond(M), with cond(M) about 5e6."""
    model, q, v, a, tau = chain
    inverse, forward = ld.inverse_dynamics_derivatives(model, q, v, a), ld.forward_dynamics_derivatives(model, q, v, tau)
    if one:
        forward = ForwardDerivatives(*map(np.stack, zip(*[ld.forward_dynamics_derivatives(model, *x)
                                                          for x in zip(q, v, tau, strict=True)], strict=True)))
    e = np.eye(model.nv)
    for k in (0, 37, 99):
        for what, x, moved in (("q", inverse.dtau_dq, {"dq": e[k]}), ("v", inverse.dtau_dv, {"dv": e[k]})):
            expected = Reference(model, q[0], v[0], **moved).inverse(a[0])[1]
            assert worst(f"a hundred bodies, dtau by {what}", relative(x[0][:, k], expected), str(k)) < 1e-12
    for M, N, Dq, q1, v1, tau1 in zip(inverse.M, forward.M_inverse, forward.da_dq, q, v, tau, strict=True):
        cond = np.linalg.cond(M)
        assert worst("a hundred bodies, M^-1 M - 1, over eps cond(M)", relative(M @ N, np.eye(100)) / 2.2e-16 / cond) < 10
        at = ld.inverse_dynamics_derivatives(model, q1, v1, ld.forward_dynamics(model, q1, v1, tau1))
        size = np.abs(M) @ np.abs(Dq)
        assert worst("a hundred bodies, M da + dtau, over terms", np.abs(M @ Dq + at.dtau_dq).max() / size.max()) < 1e-10


def test_one_state_of_a_chain_of_five_hundred_and_thirty_bodies(worst):
    """More blocks of eight columns than bits of a number; cond(M) is about 1e9. What is exchanged stays as symmetric as M: errors
    that grow from exchange to exchange would make pivots vanish."""
    rng, n = np.random.default_rng(5), 530
    model = chain_of(n, rng)
    q, v, a, tau = (0.1 * x for x in state(model, 2))
    M, mask = ld.mass_matrix(model, q), rng.random(n) < 0.3
    size = 2.2e-16 * np.linalg.cond(M)
    N = ld.forward_dynamics_derivatives(model, q, v, tau).M_inverse
    assert worst("a long chain, one state, M^-1 M - 1, over eps cond(M)", relative(M @ N, np.eye(n)) / size) < 10
    U, w = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask).dy_du, ~mask
    rest = relative(M[np.ix_(w, w)] @ U[np.ix_(w, w)], np.eye(w.sum())) / size
    assert worst("a long chain, one state, hybrid, over eps cond(M)", rest) < 10
    assert worst("a long chain, one state, asymmetry", relative(N, N.T)) < 1e-12
    assert worst("a long chain, one state, U_vu + U_uv^T", relative(U[np.ix_(w, mask)], -U[np.ix_(mask, w)].T)) < 3e-12
