"""on_error: batches of which some states cannot be computed."""
import inspect

import numpy as np
import pytest

import liedyn as ld
from loop_zoo import LOOPED as LOOPED_NAMES
from loop_zoo import looped_of, motion
from zoo import model_of, state

TREE, LOOPED, N = model_of("every kind, floating"), looped_of("closed twice"), 23
CLOSED = LOOPED.model
MASK = np.arange(TREE.nv) % 3 == 0
NONE = np.zeros(CLOSED.nv, dtype=bool)
# Single states continue other numbers than batches, and others stand next to them: a thousand roundings, magnified by cond(M) <=
# 1e4.
SAME = 1e-9


def tree_states(seed=1, size=(N,)):
    q, v, a, tau = state(TREE, seed, size)
    rows = np.stack([v, a, tau], axis=-2)
    return {"q": q, "v": v, "a": a, "tau": tau, "v_r": tau, "a_r": a,
            "q0": q, "q1": ld.integrate(TREE, q, 0.1 * v), "dv": v, "v_derivatives": rows,
            "a_derivatives": rows, "tau_derivatives": rows, "link": "link3", "prescribed": MASK, "x": a,
            "dq": 2 * a, "da": v, "dtau": v, "parameters": {"mass.link3": 0.5}, "of": "hybrid", "names": ["mass.link3"]}


def closed_states(seed=1, size=(N,)):
    q, v, _, tau = (x.copy() for x in motion(LOOPED, seed, size))
    made = ld.constrained_forward_dynamics(CLOSED, q, v, tau)
    return {"q": q, "v": v, "tau": tau, "a": made.a, "multipliers": made.multipliers, "x": v, "prescribed": NONE,
            "actuated": ~NONE, "criterion": "least_torque"}


def arguments_of(function, states):
    wanted = inspect.signature(function).parameters
    return {name: x for name, x in states.items() if name in wanted}


FUNCTIONS = {name: getattr(ld, name) for name in ld.__all__ if inspect.isfunction(getattr(ld, name))
             and "on_error" in inspect.signature(getattr(ld, name)).parameters}
OF_LOOPS = [name for name in FUNCTIONS if name.startswith(("constrained", "constraint", "project", "closure", "balance"))]
EVERY = pytest.mark.parametrize("name", FUNCTIONS)


def case(name, size=(N,)):
    function = FUNCTIONS[name]
    return (function, CLOSED, closed_states(size=size)) if name in OF_LOOPS else (function, TREE, tree_states(size=size))


def fields(result):
    return [result] if isinstance(result, np.ndarray) else list(result)


def assert_same_but(found, expected, failed):
    """Assert the same type, with NaN, False or None at the states that failed."""
    assert type(found) is type(expected)
    for x, y in zip(fields(found), fields(expected), strict=True):
        if np.ndim(y) and np.shape(y)[:1] != (N,) and np.shape(x) == np.shape(y):
            np.testing.assert_array_equal(x, y)                       # a mask: of no state
            continue
        good = np.setdiff1d(np.arange(N), failed)
        assert x.shape == y.shape and x.dtype.kind == y.dtype.kind
        if x.dtype.kind == "f":
            scale = np.abs(y).max(initial=1.0)
            assert np.isnan(x[failed]).all() and (np.abs(x[good] - y[good]) <= SAME * scale).all()
        else:
            assert (x[failed] == np.zeros((), x.dtype)).all() and (x[good] == y[good]).all()


def test_functions_that_take_batches_have_it():
    assert len(FUNCTIONS) > 40
    assert {"inverse_dynamics", "forward_dynamics", "hybrid_dynamics", "mass_matrix", "forward_dynamics_derivatives",
            "constrained_forward_dynamics", "higher_order_forward_dynamics", "link_pose", "integrate"} <= set(FUNCTIONS)


@EVERY
def test_states_that_can_be_computed_are_not_lost(name):
    """One NaN among thousands of states raised an error, and all other results were lost."""
    function, model, states = case(name)
    given = arguments_of(function, states)
    expected = function(model, **given)
    first = next(iter(given))
    bad, failed = {**given, first: given[first].copy()}, [3, 11, 12, 22]
    bad[first][failed, -1] = np.nan
    with pytest.raises(ld.ConfigurationError):
        function(model, **bad)
    found = {}
    assert_same_but(function(model, **bad, on_error=found.__setitem__), expected, failed)
    assert sorted(found) == failed
    for error in found.values():
        assert isinstance(error, ld.ConfigurationError) and str(error).startswith(f"{first}[")
    assert_same_but(function(model, **bad, on_error="nan"), expected, failed)


@EVERY
def test_a_batch_without_failures_is_as_ever(name):
    function, model, states = case(name)
    given = arguments_of(function, states)
    found = function(model, **given, on_error=lambda *_: pytest.fail("nothing failed"))
    assert_same_but(found, function(model, **given), [])


@EVERY
def test_batches_of_no_states(name):
    """Two functions ended in an error of NumPy about a shape, two in one of liedyn."""
    function, model, states = case(name)
    given = arguments_of(function, states)
    expected = fields(function(model, **given))
    for size in ((0,), (0, 3), (2, 0)):
        none = {key: np.empty((*size, *x.shape[1:]), x.dtype) if isinstance(x, np.ndarray) and len(x) == N else x
                for key, x in given.items()}
        for x, y in zip(fields(function(model, **none)), expected, strict=True):
            assert np.shape(x) == ((*size, *y.shape[1:]) if np.shape(y)[:1] == (N,) else np.shape(y))


@EVERY
def test_all_states_may_fail_and_one_alone(name):
    function, model, states = case(name)
    given = arguments_of(function, states)
    expected, first = function(model, **given), next(iter(given))
    bad, found = {**given, first: np.full_like(given[first], np.nan)}, {}
    assert_same_but(function(model, **bad, on_error=found.__setitem__), expected, list(range(N)))
    assert list(found) == list(range(N))
    one, found = {k: x[3] if isinstance(x, np.ndarray) and len(x) == N else x for k, x in bad.items()}, {}
    result, wanted = fields(function(model, **one, on_error=found.__setitem__)), fields(expected)
    assert list(found) == [()]
    for x, y in zip(result, wanted, strict=True):
        if np.ndim(y) and len(y) == N and np.asarray(x).dtype.kind == "f":
            assert np.shape(x) == np.shape(y)[1:] and np.isnan(x).all()


def test_indices_of_many_axes_and_what_is_spread():
    q, v, _, tau = state(TREE, 2, (3, 4))
    one = v[0, 0]
    expected = ld.forward_dynamics(TREE, q, one, tau[:, :1])
    q[2, 1, 0] = np.inf
    found = {}
    a = ld.forward_dynamics(TREE, q, one, tau[:, :1], on_error=found.__setitem__)
    assert list(found) == [(2, 1)] and "is not finite: got inf" in str(found[2, 1])
    assert np.isnan(a[2, 1]).all()
    a[2, 1] = expected[2, 1]
    np.testing.assert_allclose(a, expected, rtol=SAME, atol=SAME * np.abs(expected).max())


def test_every_kind_of_failure_says_why():
    q, v, _, tau = state(TREE, 4, (N,))
    ball = next(joint for joint in TREE.joints if joint.type == "ball")
    v[1, 2], q[5, ball.q.stop - 1], v[8] = np.nan, 7.0, 1e200
    found = {}
    a = ld.forward_dynamics(TREE, q, v, tau, on_error=found.__setitem__)
    assert sorted(found) == [1, 5, 8] == np.flatnonzero(np.isnan(a).any(axis=1)).tolist()
    assert str(found[1]) == f"v[2] ({TREE.v_names[2]}) is not finite: got nan"
    assert "is not of unit norm" in str(found[5])
    assert isinstance(found[8], ld.ComputationError) and "too large for double precision" in str(found[8])


def test_wrenches_of_states_go_with_them():
    q, v, _, tau = state(TREE, 5, (N,))
    F = np.random.default_rng(6).standard_normal((N, len(TREE.link_names), 6))
    expected = ld.forward_dynamics(TREE, q, v, tau, f_ext=F)
    F[7, 2, 1] = np.nan
    by_name = {name: F[:, k] for k, name in enumerate(TREE.link_names)}
    for f_ext in (F, by_name):
        found = {}
        assert_same_but(ld.forward_dynamics(TREE, q, v, tau, f_ext=f_ext, on_error=found.__setitem__), expected, [7])
        assert str(found[7]) == "f_ext contains NaN or infinite values"


def test_a_drive_and_configurations_that_cannot_be_closed():
    case = looped_of(next(name for name in LOOPED_NAMES if name.startswith("driven")))
    model, q = case.model, np.tile(case.q, (N, 1))
    constraint_motion = {name: tuple(np.broadcast_to(x, (N, *np.shape(x))).copy() for x in motion) for name,
                         motion in case.constraint_motion.items()}
    expected = ld.project_configuration(model, q, constraint_motion=constraint_motion)
    for T, *_ in constraint_motion.values():
        T[4, :3, 3] += 1e3                                            # farther away than anything is long
    found = {}
    assert_same_but(ld.project_configuration(model, q, constraint_motion=constraint_motion, on_error=found.__setitem__), expected,
                    [4])
    assert list(found) == [4] and isinstance(found[4], ld.ComputationError)


def test_what_is_wrong_with_all_states_is_an_error_as_ever():
    q, v, _, tau = state(TREE, 7, (N,))
    with pytest.raises(ld.ShapeError, match="v has the wrong shape"):
        ld.forward_dynamics(TREE, q, v[:, 1:], tau, on_error="nan")
    with pytest.raises(ld.LiedynError, match="no link 'hand'"):
        ld.jacobian(TREE, q, "hand", on_error="nan")
    with pytest.raises(ld.ModelError):
        ld.constrained_forward_dynamics(TREE, q, v, tau, on_error="nan")


@pytest.mark.parametrize("wrong", ["warn", "NaN", None, True, {}, []])
def test_other_values_are_refused(wrong):
    with pytest.raises(ld.ShapeError) as caught:
        ld.mass_matrix(TREE, TREE.neutral(), on_error=wrong)
    assert str(caught.value) == ('on_error must be "raise", "nan" or a function of a state\'s index and its error, '
                                 f"got {wrong!r}")


def test_a_wrench_or_a_drive_that_is_not_finite_fails_its_state_only():
    F = np.zeros((N, len(CLOSED.link_names), 6))
    given = arguments_of(ld.constrained_forward_dynamics, closed_states())
    expected = ld.constrained_forward_dynamics(CLOSED, **given, f_ext=F)
    F[9, 1, 2] = np.inf
    found = {}
    assert_same_but(ld.constrained_forward_dynamics(CLOSED, **given, f_ext=F, on_error=found.__setitem__), expected, [9])
    assert list(found) == [9] and isinstance(found[9], ld.ConfigurationError)


def test_directions_of_one_state_fail_one_by_one():
    """The results of the state have its axes, whether its directions fail or not."""
    q, v, a, _ = state(TREE, 4)
    dq = np.random.default_rng(4).normal(size=(5, TREE.nv))
    tau, dtau = ld.inverse_dynamics_directional(TREE, q, v, a, dq=dq)
    dq[2, 0], found = np.nan, {}
    one, some = ld.inverse_dynamics_directional(TREE, q, v, a, dq=dq, on_error=found.__setitem__)
    good = [0, 1, 3, 4]
    assert list(found) == [2] and "dq" in str(found[2]) and one.shape == tau.shape and some.shape == dtau.shape
    assert np.isnan(some[2]).all() and np.abs(some[good] - dtau[good]).max() <= SAME * np.abs(dtau).max()
    assert np.abs(one - tau).max() <= SAME * np.abs(tau).max()
    v[0] = np.nan
    one, some = ld.inverse_dynamics_directional(TREE, q, v, a, dq=dq, on_error="nan")
    assert one.shape == tau.shape and some.shape == dtau.shape and np.isnan(one).all() and np.isnan(some).all()
