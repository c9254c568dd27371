"""A batch of one state is computed as if it were no batch; and later calls with any number of states skip the preparation."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen import python_call
from liedyn.codegen.specialize import GeneratedBatchFunction, is_supported
from liedyn.dynamics.batching import calls
from liedyn.model.description import Coordinate, Joint
from liedyn.model.links import Link

LINKS = Link("upper", 1.0, (0.5, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)), Link("lower", 1.0, (0.5, 0.1, 0.0))
ARM = ld.Robot("arm", LINKS, (
    Joint("one", "continuous", "world", "upper", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate(damping=0.1),)),
    Joint("two", "continuous", "upper", "lower", axes=((0.0, 0.0, 1.0),))))
Q, V, A, TAU = np.array([[0.3, -0.2], [1.0, 0.5], [0.1, 0.2], [0.7, -0.4]])
MASK = np.array([True, False])
CALLS = {
    "inverse_dynamics": lambda m, q, v, a, tau: ld.inverse_dynamics(m, q, v, a),
    "forward_dynamics": lambda m, q, v, a, tau: ld.forward_dynamics(m, q, v, tau),
    "hybrid_dynamics": lambda m, q, v, a, tau: ld.hybrid_dynamics(m, q, v, a, tau, MASK),
    "mass_matrix": lambda m, q, v, a, tau: ld.mass_matrix(m, q),
    "bias_force": lambda m, q, v, a, tau: ld.bias_force(m, q, v),
    "gravity_force": lambda m, q, v, a, tau: ld.gravity_force(m, q),
    "forward_dynamics_derivatives": lambda m, q, v, a, tau: tuple(ld.forward_dynamics_derivatives(m, q, v, tau)),
    "energy": lambda m, q, v, a, tau: ld.energy(m, q, v),
    "centre_of_mass": lambda m, q, v, a, tau: ld.centre_of_mass(m, q),
    "forward_dynamics, out": lambda m, q, v, a, tau: ld.forward_dynamics(m, q, v, tau, passive=False, out=np.empty(tau.shape)),
    "higher orders": lambda m, q, v, a, tau: ld.higher_order_inverse_dynamics(m, q, np.stack([v, a, tau], axis=-2)),
}
LINES = pytest.mark.skipif(not is_supported(), reason="this LLVM is too old for generated functions")


@pytest.fixture(scope="module")
def model():
    return ld.build(ARM)


@pytest.mark.parametrize("name", CALLS)
def test_a_batch_of_one_takes_the_way_of_one_state(name, model, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    call, one = CALLS[name], np.array([Q, V, A, TAU])
    expected = call(model, *one)
    expected = expected if isinstance(expected, tuple) else (expected,)
    monkeypatch.setattr(calls, "broadcast_states", lambda *args: pytest.fail("the arrays are prepared as a batch"))
    for x, y in zip(several(call(model, *one[:, None])), expected, strict=True):
        assert x.shape == (1, *np.shape(y)) and np.array_equal(x[0], y)


def several(found) -> tuple:
    return found if isinstance(found, tuple) else (found,)


@LINES
@pytest.mark.parametrize("name", CALLS)
def test_one_state_takes_the_way_that_a_batch_of_one_has_left(name, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    call, one, model = CALLS[name], np.array([Q, V, A, TAU]), ld.build(ARM)
    expected = several(call(model, *one[:, None]))
    monkeypatch.setattr(calls, "broadcast_states", lambda *args: pytest.fail("the arrays are prepared as a batch"))
    for given, lead in ((one, ()), (one[:, None], (1,))):
        for x, y in zip(several(call(model, *given)), expected, strict=True):
            assert np.shape(x) == (*lead, *y.shape[1:]) and np.array_equal(x, y.reshape(np.shape(x)))


@LINES
@pytest.mark.parametrize("ctypes_only", [False, True])
def test_a_batch_of_one_beside_one_state_is_a_batch(ctypes_only, monkeypatch):
    """Also if an argument is overwritten. An `out` of the other shape is an error."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    if ctypes_only:
        monkeypatch.setattr(python_call, "is_supported", lambda: False)
    model = ld.build(ARM)
    tau, (a, force) = ld.inverse_dynamics(model, Q, V, A), ld.hybrid_dynamics(model, Q, V, A, TAU, MASK)
    for k in range(3):
        given = [x[None] if i == k else x for i, x in enumerate((Q, V, A))]
        assert np.array_equal(ld.inverse_dynamics(model, *given), tau[None])
        for out in (np.empty(2), np.empty((2, 2)), np.empty((1, 1, 2))):
            with pytest.raises(ld.ShapeError, match="out has the wrong shape"):
                ld.inverse_dynamics(model, *given, out=out)
    with pytest.raises(ld.ShapeError, match="out has the wrong shape"):
        ld.inverse_dynamics(model, Q, V, A, out=np.empty((1, 2)))
    for k in range(4):
        found = ld.hybrid_dynamics(model, *[x[None] if i == k else x for i, x in enumerate((Q, V, A, TAU))], MASK)
        assert np.array_equal(found, [a[None], force[None]])
    twice = np.array([Q, Q])
    assert ld.inverse_dynamics(model, twice, V, A).shape == (2, 2)


def test_options_are_looked_up_and_not_inspected(model, monkeypatch):
    """The signature would take 12 to 30 us at each call."""
    expected = ld.inverse_dynamics(model, Q, V, A, passive=False)
    monkeypatch.setattr("liedyn.public_calls.known", lambda *args: pytest.fail("inspected"))
    monkeypatch.setattr("inspect.signature", lambda *args: pytest.fail("inspected"))
    out = np.empty(2)
    assert ld.inverse_dynamics(model, Q, V, A, passive=False, out=out) is out and np.array_equal(out, expected)


def test_one_robot_of_others_is_not_computed_as_the_model():
    """Functions for one state that the model has cached are those of its own numbers."""
    model, heavy = ld.build(ARM), ld.build(ARM).with_changes(mass={"lower": 3.0})
    for x in (Q, Q[None]):
        ld.inverse_dynamics(model, x, V, A), ld.mass_matrix(model, x)
    with ld.Variants.of_numbers(model, range(len(heavy.constants)), heavy.constants[None]).in_place_of_the_model() as robot:
        tau, M = ld.inverse_dynamics(robot, Q[None], V[None], A[None]), ld.mass_matrix(robot, Q[None])
    assert np.allclose(tau[0], ld.inverse_dynamics(heavy, Q, V, A), rtol=1e-13)
    assert np.allclose(M[0], ld.mass_matrix(heavy, Q), rtol=1e-13)


def test_what_is_no_batch_of_one_is_computed_all_the_same(model):
    tau = ld.inverse_dynamics(model, Q, V, A)
    for q, v, shape in ((Q[None], V, (1, 2)), (Q[None, None], V[None], (1, 1, 2)), (np.stack([Q, Q]), V[None], (2, 2)),
                        (Q[None].tolist(), V, (1, 2)), (np.empty((0, 2)), V[None], (0, 2))):
        found = ld.inverse_dynamics(model, q, v, A)
        assert found.shape == shape and np.allclose(found, tau, rtol=1e-13, atol=0)
    out = np.empty((1, 2))
    assert ld.inverse_dynamics(model, Q[None], V[None], A[None], out=out) is out and np.allclose(out, tau, rtol=1e-13, atol=0)
    F = np.zeros((1, 2, 6))
    F[0, 1, 5] = 1.0
    found = ld.inverse_dynamics(model, Q[None], V[None], A[None], f_ext=F)
    assert found.shape == (1, 2) and np.allclose(found[0], ld.inverse_dynamics(model, Q, V, A, f_ext=F[0]), rtol=1e-13)
    with pytest.raises(ld.ConfigurationError, match=r"q\[0\] \(one\) is not finite"):
        ld.inverse_dynamics(model, np.array([[np.nan, 0.0]]), V[None], A[None])
    assert ld.Variants([model]).inverse_dynamics(Q[None], V[None], A[None]).shape == (1, 2)


# functions whose arguments are all arrays (N, n), and inputs only
BATCH_CALLS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "forward_dynamics_derivatives", "energy",
               "forward_dynamics, out")


@LINES
@pytest.mark.parametrize("name", BATCH_CALLS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_later_call_of_a_batch_gives_its_arrays_to_the_generated_function(name, threads, monkeypatch):
    """With another number of states, arrays that may not be written, and several threads. The first call has other states."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    monkeypatch.setattr(calls, "chunks", lambda count, bodies, unit=8: [0, count] if threads == 1 else [0, count // 2, count])
    call, model, states = CALLS[name], ld.build(ARM), np.random.default_rng(0).standard_normal((4, 13, 2))
    states.flags.writeable = False
    expected = several(call(model, *states))
    call(model, *states[:, :3] + 1.0)
    monkeypatch.setattr(calls, "broadcast_states", lambda *args: pytest.fail("the arrays are prepared"))
    for x, y in zip(several(call(model, *states)), expected, strict=True):
        assert x.dtype == y.dtype and np.array_equal(x, y)


@LINES
def test_a_later_call_that_the_generated_function_cannot_take_is_prepared(monkeypatch):
    """Other layouts, types and shapes, results over arguments, and errors: as in the first call."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model, states = ld.build(ARM), np.random.default_rng(0).standard_normal((4, 13, 2))
    q, v, _, tau = states
    expected = ld.forward_dynamics(model, q, v, tau)
    unaligned = np.frombuffer(b"x" + v.tobytes(), offset=1).reshape(v.shape)
    for x in (np.asfortranarray(v), v.tolist(), v.repeat(2, 0)[::2], unaligned):
        assert np.array_equal(ld.forward_dynamics(model, q, x, tau), expected)
    single = q.astype(np.float32)
    assert np.array_equal(ld.forward_dynamics(model, single, v, tau), ld.forward_dynamics(model, np.float64(single), v, tau))
    assert np.array_equal(ld.forward_dynamics(model, q, v[0], tau)[0], expected[0])
    assert ld.forward_dynamics(model, q[:, None], v, tau).shape == (13, 13, 2)
    for shared in (tau.copy(), np.concatenate([tau, tau])[:13]):
        assert np.array_equal(ld.forward_dynamics(model, q, v, shared, out=shared), expected) and np.array_equal(shared, expected)
    generated = next(x for x in model.single_calls.values() if isinstance(x, GeneratedBatchFunction))
    arrays, workspace = (q, v, np.empty((13, 2)), tau), calls.thread_workspace(generated.workspace_size)
    codes = [generated.call(*arrays, workspace, *ends) for ends in ((0, 13), (0, 14), (-1, 13))]
    assert codes == [0, python_call.INVALID_ARGUMENTS, python_call.INVALID_ARGUMENTS]
    bad = v.copy()
    bad[5, 1] = np.inf
    for wrong, error, text in ((bad, ld.ConfigurationError, r"v\[1\] \(two\) of state 5 is not finite"),
                               (v[:4], ld.ShapeError, "do not match"), (v[:, :1], ld.ShapeError, "v has the wrong shape")):
        with pytest.raises(error, match=text):
            ld.forward_dynamics(model, q, wrong, tau)
    with pytest.raises(ld.ShapeError, match="out has the wrong shape"):
        ld.forward_dynamics(model, q, v, tau, out=np.empty((12, 2)))
    read_only = np.empty((13, 2))
    read_only.flags.writeable = False
    with pytest.raises(ld.ShapeError, match="out"):
        ld.forward_dynamics(model, q, v, tau, out=read_only)


@LINES
def test_later_calls_in_single_precision(monkeypatch):
    """One state and several; a state that single precision cannot compute is computed again."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model, states = ld.build(ARM), np.random.default_rng(0).standard_normal((4, 13, 2)).astype(np.float32)
    q, v, _, tau = states
    expected = ld.forward_dynamics(model, q, v, tau, dtype="float32")
    far = q.copy()
    far[2] += 1e6                                         # beyond the range of sines in single precision
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "broadcast_states", lambda *args: pytest.fail("the arrays are prepared"))
        assert np.array_equal(ld.forward_dynamics(model, q, v, tau, dtype="float32"), expected)
        one = ld.forward_dynamics(model, q[3], v[3], tau[3], dtype="float32")
        assert one.shape == (2,) and np.array_equal(one, expected[3])
        out = np.empty((13, 2), np.float32)
        assert ld.forward_dynamics(model, q, v, tau, dtype="float32", out=out) is out and np.array_equal(out, expected)
    found = ld.forward_dynamics(model, far, v, tau, dtype="float32")
    np.testing.assert_allclose(found[2], ld.forward_dynamics(model, np.float64(far[2]), v[2], tau[2]), rtol=1e-6)
    assert np.array_equal(np.delete(found, 2, 0), np.delete(expected, 2, 0))
