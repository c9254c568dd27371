"""Batches in single precision: errors within the documented bounds, and double precision where they would be larger."""
import warnings
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code
from degenerate_mechanisms import wrist
from liedyn.codegen import trace as traces
from liedyn.codegen.specialize import is_supported
from liedyn.codegen.targets.target import NUMPY, Expressions
from liedyn.codegen.trace import STATUS, make_trace
from liedyn.dynamics.batching.arrays import number_type
from liedyn.dynamics.batching.calls import intercepted_specialization
from zoo import model_of, state

ROBOTS = Path(__file__).parents[2] / "robots"
MODEL = model_of("ball")
MASK = np.arange(MODEL.nv) % 3 == 0
LINK = MODEL.link_names[-1]
FUNCTIONS = {
    "inverse_dynamics": lambda q, v, x, y, **how: ld.inverse_dynamics(MODEL, q, v, x, **how),
    "forward_dynamics": lambda q, v, x, y, **how: ld.forward_dynamics(MODEL, q, v, x, **how),
    "hybrid_dynamics": lambda q, v, x, y, **how: ld.hybrid_dynamics(MODEL, q, v, x, y, MASK, **how),
    "bias_force": lambda q, v, x, y, **how: ld.bias_force(MODEL, q, v, **how),
    "gravity_force": lambda q, v, x, y, **how: ld.gravity_force(MODEL, q, **how),
    "mass_matrix": lambda q, v, x, y, **how: ld.mass_matrix(MODEL, q, **how),
    "inverse_mass_matrix": lambda q, v, x, y, **how: ld.inverse_mass_matrix(MODEL, q, **how),
    "inverse_dynamics_derivatives": lambda q, v, x, y, **how: ld.inverse_dynamics_derivatives(MODEL, q, v, x, **how),
    "forward_dynamics_derivatives": lambda q, v, x, y, **how: ld.forward_dynamics_derivatives(MODEL, q, v, x, **how),
    "hybrid_dynamics_derivatives": lambda q, v, x, y, **how: ld.hybrid_dynamics_derivatives(MODEL, q, v, x, y, MASK, **how),
    "link_pose": lambda q, v, x, y, **how: ld.link_pose(MODEL, q, LINK, **how),
    "link_poses": lambda q, v, x, y, **how: ld.link_poses(MODEL, q, **how),
    "link_twist": lambda q, v, x, y, **how: ld.link_twist(MODEL, q, v, LINK, frame="world", **how),
    "link_acceleration": lambda q, v, x, y, **how: ld.link_acceleration(MODEL, q, v, x, LINK, **how),
    "jacobian": lambda q, v, x, y, **how: ld.jacobian(MODEL, q, LINK, frame="world", **how),
    "jacobian_derivative": lambda q, v, x, y, **how: ld.jacobian_derivative(MODEL, q, v, LINK, **how),
}
WITH_OUT = [*FUNCTIONS][:3] + [*FUNCTIONS][5:10]
needs_code = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read generated code")
SINGLE = {"dtype": "float32"}


def arrays(result):
    return [x for x in ([result] if isinstance(result, np.ndarray) else result) if x.dtype.kind == "f"]


def single(x):
    return x.astype(np.float32)


def error(x, exact):
    """Error of each state, relative to the maximum of its result."""
    axes = tuple(range(1, exact.ndim))
    return np.abs(x - exact).max(axes) / np.abs(exact).max(axes)


# errors -----------------------------------------------------------------------------------------------------------------

# documented in docs/python.md: functions, their inputs, largest median and maximum of errors
BOUNDS = {"inverse_dynamics": ("qva", 3e-7, 1e-5), "mass_matrix": ("q", 3e-7, 1e-6), "jacobian": ("ql", 3e-7, 1e-6),
          "inverse_dynamics_derivatives": ("qva", 3e-7, 1e-5),
          "forward_dynamics": ("qva", 3e-7, 2e-3), "inverse_mass_matrix": ("q", 3e-7, 2e-3),
          "forward_dynamics_derivatives": ("qva", 2e-6, 5e-3)}
TRACED = [*(("ur5.yaml", name) for name in BOUNDS), *(("quadruped.yaml", name) for name in [*BOUNDS][:5]),
          ("showcase.yaml", "forward_dynamics_derivatives"), ("humanoid.yaml", "forward_dynamics")]


@pytest.mark.parametrize(("robot", "name"), TRACED)
def test_errors_are_within_their_bounds(robot, name):
    """Traces in single precision, operation by operation, compared with double precision."""
    model = ld.load(ROBOTS / robot).spanning_tree()
    rng, count = np.random.default_rng(4), 200
    inputs = {"q": ld.random_configuration(model, rng, count), "v": rng.standard_normal((count, model.nv)),
              "a": rng.standard_normal((count, model.nv)), "l": model.link_names[-1]}
    letters, median, maximum = BOUNDS[name]
    given = [inputs[x] for x in letters]
    specialization, model = intercepted_specialization(getattr(ld, name), model, *given)
    trace = make_trace(model, specialization, single=True)
    named = {array.name: np.zeros((array.size, count), np.float32) for array in trace.arrays} | dict(
        zip(("q", "v", *("tau" if "forward" in name else "a",)), map(np.transpose, map(single, filter(
            lambda x: not isinstance(x, str), given))), strict=False))
    if "derivatives" in name and "forward" in name:
        named["tau"] = named["u"] = single(inputs["a"]).T
    with np.errstate(all="ignore"):
        results = Expressions(NUMPY, named, np.float32).results(trace)
    status = np.broadcast_to(np.asarray(results.pop(STATUS)[0]), count) == 1.0
    exact = arrays(getattr(ld, name)(model, *given))
    assert status.mean() > (0.95 if robot == "humanoid.yaml" else 0.999)
    for found, x in zip((x for x in results.values() if any(y is not None for y in x)), exact, strict=True):
        found = np.array([np.broadcast_to(np.float32(y), count) for y in found]).T
        errors = error(found[status], x.reshape(count, -1)[status])
        assert np.median(errors) < median and errors.max() < maximum, (np.median(errors), errors.max())


@needs_code
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_of_float32_and_nearly_those_of_float64(name):
    function, given = FUNCTIONS[name], state(MODEL, 1, (2, 19))
    with generated_code():
        exact, found = arrays(function(*given)), arrays(function(*given, **SINGLE))
        rounded = arrays(function(*map(single, given), dtype=np.float32))
    assert len(exact) == len(found) == len(rounded)
    for x, y, z in zip(exact, found, rounded, strict=True):
        assert y.dtype == z.dtype == np.float32 and x.shape == y.shape == z.shape
        assert 0.0 < error(y, x).max() < 1e-4 and error(z, x).max() < 1e-4       # computed in single precision
    assert number_type() == np.float64


@needs_code
@pytest.mark.parametrize("lead", [(), (1,), (40,), (0,)])
def test_any_number_of_states(lead):
    given = state(MODEL, 1, lead)
    with generated_code():
        for name in ("inverse_dynamics", "forward_dynamics"):
            exact, found = FUNCTIONS[name](*given), FUNCTIONS[name](*given, **SINGLE)
            assert found.dtype == np.float32 and np.allclose(found, exact, rtol=1e-4, atol=1e-4 * np.abs(exact).max(initial=0.0))


@needs_code
@pytest.mark.parametrize("name", WITH_OUT)
def test_results_are_written_to_out_of_float32(name):
    function, given = FUNCTIONS[name], state(MODEL, 1, (9,))
    with generated_code():
        expected = arrays(function(*given, **SINGLE))
        out = tuple(np.full_like(x, np.nan) for x in expected)
        found = arrays(function(*given, out=out if len(out) > 1 else out[0], **SINGLE))
        for x, y, z in zip(expected, found, out, strict=True):
            assert y is z and np.array_equal(x, y)
        with pytest.raises(ld.ShapeError, match="is not an array of float32: got ndarray of float64"):
            function(*given, out=tuple(x.astype(float) for x in out) if len(out) > 1 else out[0].astype(float), **SINGLE)


# states that single precision cannot compute ------------------------------------------------------------------------------

@needs_code
@pytest.mark.parametrize("lead", [(20,), (4, 5)])
def test_states_with_small_inertias_are_computed_in_double_precision(lead):
    model, rng = wrist(), np.random.default_rng(3)
    q, v, tau = rng.uniform(-1.0, 1.0, (3, *lead, 3))
    near = np.zeros(lead, dtype=bool)
    near.flat[[0, 7]] = True
    q[..., 1] = np.where(near, np.pi / 2 - 1e-4, q[..., 1])
    with generated_code(), warnings.catch_warnings():
        warnings.simplefilter("error")
        exact, found = ld.forward_dynamics(model, q, v, tau), ld.forward_dynamics(model, q, v, tau, **SINGLE)
        out = single(tau)
        assert ld.forward_dynamics(model, q, v, out, out=out, **SINGLE) is out           # arguments are needed again
    assert np.array_equal(found[near], single(exact[near])) and not np.array_equal(found[~near], single(exact[~near]))
    assert np.abs(exact[near]).max() > 1e3 and error(found[~near], exact[~near]).max() < 1e-4
    assert error(out[near], exact[near]).max() < 1e-6


@needs_code
def test_a_batch_mostly_in_double_precision_is_a_warning():
    model = wrist()
    q = np.tile([0.0, np.pi / 2 - 1e-4, 0.0], (8, 1))
    with generated_code(), pytest.warns(ld.LiedynWarning, match=r"computes 8 of 8 states in double precision") as caught:
        found = ld.mass_matrix(model, q, **SINGLE), ld.inverse_mass_matrix(model, q, **SINGLE)
    assert [x.message.code for x in caught] == ["double-precision"] and found[1].dtype == np.float32
    assert np.array_equal(found[1], single(ld.inverse_mass_matrix(model, q)))


def test_generic_kernels_compute_in_double_precision(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    q, v, a, _ = state(MODEL, 1, (9,))
    with pytest.warns(ld.LiedynWarning, match="inverse_dynamics of robot .* computes 9 of 9 states in double precision"):
        found = ld.inverse_dynamics(MODEL, q, v, a, **SINGLE)
    assert np.array_equal(found, single(ld.inverse_dynamics(MODEL, q, v, a)))


@needs_code
def test_angles_of_many_turns_are_computed_in_double_precision():
    model, q = wrist(), np.full((8, 3), 0.3)
    q[2] = 1e4
    with generated_code():
        found, exact = (ld.link_poses(model, q, dtype=dtype) for dtype in ("float32", "float64"))
    assert np.abs(found - exact).max() < 1e-6 and np.array_equal(found[2], single(exact[2]))


@needs_code
def test_errors_name_the_state():
    model, q = wrist(), np.full((4, 5, 3), 0.3)
    q[2, 3, 1] = np.nan
    with generated_code():
        with pytest.raises(ld.ConfigurationError, match=r"q\[1\] \(j1\) of state 13 is not finite"):
            ld.gravity_force(model, q, **SINGLE)
        states = []
        found = ld.gravity_force(model, q, on_error=lambda state, _: states.append(state), **SINGLE)
        flat = ld.gravity_force(model, q.reshape(20, 3), on_error=lambda state, _: states.append(state), **SINGLE)
    assert states == [(2, 3), 13] and np.isnan(found[2, 3]).all() and np.isfinite(np.delete(flat, 13, axis=0)).all()
    with pytest.raises(ld.ShapeError, match="leading axes do not match"):
        ld.inverse_dynamics(model, q, np.zeros((2, 3)), np.zeros(3), **SINGLE)
    assert number_type() == np.float64


@needs_code
def test_quaternions_may_be_rounded_but_not_be_of_another_norm():
    q, v, a, _ = map(single, state(MODEL, 1, (9,)))
    columns = next(iter(MODEL.quaternions.values()))
    q[3, columns] *= np.float32(1 + 2e-6)                     # within the tolerance of single precision
    with generated_code():
        assert np.isfinite(ld.inverse_dynamics(MODEL, q, v, a, **SINGLE)).all()
        q[3, columns] *= np.float32(1.001)
        with pytest.raises(ld.ConfigurationError, match="in state 3 is not of unit norm"):
            ld.inverse_dynamics(MODEL, q, v, a, **SINGLE)


# arguments --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float16", "single precision", int, np.complex128, None, 3])
def test_other_types_are_errors(dtype):
    q = state(MODEL, 1, (9,))[0]
    if dtype is None:                                          # NumPy's default
        assert ld.mass_matrix(MODEL, q, dtype=dtype).dtype == np.float64
        return
    with pytest.raises(ld.ArgumentError, match="mass_matrix: dtype must be float64 or float32, got "):
        ld.mass_matrix(MODEL, q, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float64", float, np.float64, np.dtype("float64"), "double"])
def test_double_precision_may_be_named(dtype):
    q = state(MODEL, 1, (9,))[0]
    assert np.array_equal(ld.mass_matrix(MODEL, q, dtype=dtype), ld.mass_matrix(MODEL, q))


def test_loops_couplings_and_variants_are_errors():
    four_bar = ld.load(ROBOTS / "four_bar.yaml")
    with pytest.raises(ld.ModelError, match=r"mass_matrix of four_bar is not available in single precision.*spanning_tree"):
        ld.mass_matrix(four_bar, four_bar.neutral(), **SINGLE)
    variants = ld.Variants([MODEL, MODEL])
    with pytest.raises(ld.ModelError, match="parameters that vary"):
        variants.mass_matrix(state(MODEL, 1, (2,))[0], **SINGLE)


def test_thresholds_next_to_zero_stay_positive():
    assert traces.single_bound(1e-300) == traces.SINGLE_NORMAL and traces.single_bound(1e-9) == traces.SINGLE_UNIT
