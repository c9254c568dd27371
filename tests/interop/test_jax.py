"""Functions of a robot and rollouts under jax.jit, vmap, jvp and grad."""
from importlib import import_module

import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.interop.traced_functions import FUNCTIONS
from zoo import model_of, state

STEPS, DT = 15, 2e-3


@pytest.fixture
def jax():
    import jax
    jax.config.update("jax_enable_x64", True)
    return jax


@pytest.mark.parametrize("name", ["universal", "free"])
def test_gradients_are_those_of_the_adjoint_and_of_differences(name, jax, worst):
    from liedyn.interop.jax import rollout_function
    model, rng = model_of(name), np.random.default_rng(0)
    q, v, _, _ = (x[0] for x in state(model, 3, (1,)))
    tau, w = rng.standard_normal((STEPS, model.nv)), rng.standard_normal((STEPS + 1, model.nv))
    roll = rollout_function(model, dt=DT, steps=STEPS, method="semi_implicit", passive=False)
    weight = rng.standard_normal((STEPS + 1, model.nq))

    def cost(q0, v0, tau):
        q, v = roll(q0, v0, tau)
        return (weight * q).sum() + (w * v**2).sum()
    found = jax.jit(jax.grad(cost, argnums=(0, 1, 2)))(q, 0.3 * v, tau)
    x = [rng.standard_normal(model.nv), rng.standard_normal(model.nv), rng.standard_normal(tau.shape)]

    def moved(e):
        run = ld.rollout(model, ld.integrate(model, q, e * x[0]), 0.3 * v + e * x[1], tau + e * x[2], dt=DT, steps=STEPS,
                         method="semi_implicit", passive=False)
        return (weight * run.q).sum() + (w * run.v**2).sum()
    e = 1e-4
    expected = (8 * (moved(e) - moved(-e)) - (moved(2 * e) - moved(-2 * e))) / (12 * e)
    by_q = (ld.integrate(model, q, 1e-6 * x[0]) - ld.integrate(model, q, -1e-6 * x[0])) / 2e-6       # of the numbers of q
    rate = by_q @ found[0] + x[1] @ found[1] + (x[2] * found[2]).sum()
    # differences of q keep 1e-9
    assert worst("jax: gradient", abs(rate - expected) / abs(expected), name) < 1e-7


def test_batches_and_broadcast_arguments(jax):
    from liedyn.interop.jax import rollout_function
    model, rng = model_of("universal"), np.random.default_rng(1)
    q, v, _, _ = state(model, 3, (4,))
    tau = rng.standard_normal((1, STEPS, model.nv))
    roll = rollout_function(model, dt=DT, steps=STEPS, method="semi_implicit")
    whole = jax.grad(lambda tau: (roll(q, v, tau)[1]**2).sum())(tau)
    each = jax.vmap(jax.grad(lambda tau, q, v: (roll(q, v, tau)[1]**2).sum()), in_axes=(None, 0, 0))(tau[0], q, v)
    assert whole.shape == tau.shape
    np.testing.assert_allclose(whole[0], each.sum(axis=0), rtol=0, atol=1e-12 * np.abs(whole).max())
    np.testing.assert_array_equal(roll(q, v, tau)[0], ld.rollout(model, q, v, tau, dt=DT, steps=STEPS, method="semi_implicit").q)


def test_integers_one_force_for_all_steps_and_wrong_shapes(jax):
    from liedyn.interop.jax import rollout_function
    model = ld.load("robots/double_pendulum.yaml")
    roll = rollout_function(model, dt=DT, steps=STEPS, method="semi_implicit")
    expected = ld.rollout(model, [0, 1], [1, 0], dt=DT, steps=STEPS, method="semi_implicit")
    np.testing.assert_array_equal(roll(np.array([0, 1]), np.array([1, 0]), np.zeros((1, 2), int))[0], expected.q)
    assert roll(np.zeros((3, 2)), np.zeros(2), np.zeros(2))[0].shape == (3, STEPS + 1, 2)
    with pytest.raises(ld.ShapeError, match=r"v0 has the wrong shape: expected \(…, 2\), got \(3,\)"):
        roll(np.zeros(2), np.zeros(3), np.zeros(2))
    with pytest.raises(ld.ShapeError, match=r"tau has the wrong shape: expected \(…, 15, 2\), got \(3, 2\)"):
        roll(np.zeros(2), np.zeros(2), np.zeros((3, 2)))


def test_flags(jax):
    from liedyn.interop.jax import rollout_function
    model = model_of("universal")
    q, v, a, _ = (x[0] for x in state(model, 3, (1,)))
    for flag in (True, False):
        tau = ld.inverse_dynamics(model, q, v, a, passive=jax.numpy.array(flag))
        np.testing.assert_array_equal(tau, ld.inverse_dynamics(model, q, v, a, passive=flag))
    with pytest.raises(ld.ArgumentError, match="passive must be True or False, got 'no'"):
        rollout_function(model, dt=DT, steps=STEPS, passive="no")


# a robot with quaternions, a floating one, one with mimic joints, and results of several shapes
CASES = [("top", "forward_dynamics"), ("top", "difference"), ("top", "energy"), ("asymmetric_body", "hybrid_dynamics"),
         ("top", "link_pose"), ("hand", "inverse_dynamics"), ("double_pendulum", "regressor")]


@pytest.mark.parametrize(("name", "function"), CASES)
def test_values_and_derivatives_of_functions(name, function, jax, worst):
    """Forward derivatives against differences along the configurations, and those in reverse against the forward ones."""
    from liedyn.interop.jax import robot_function
    model = ld.load(f"robots/{name}.yaml")
    q, v, a, tau = state(model, 2, (3,))
    if model.nc:
        q, v, a = follow_couplings(model, q, v, a)
    of_name = {"q": q, "v": v, "a": a, "tau": tau, "q0": q, "q1": ld.integrate(model, q, 0.3 * v)}
    x = [of_name[name] for name in FUNCTIONS[function].inputs]
    options = {"link": model.link_names[-1], "prescribed": np.arange(model.nv) % 2 == 0}
    options = {name: options[name] for name in FUNCTIONS[function].options if name in options}
    f = robot_function(model, function, **options)
    arguments = [options.pop("prescribed")] if "prescribed" in options else []

    def compute(*x):
        results = FUNCTIONS[function].compute(model, *x, *arguments, **options)
        return results if isinstance(results, tuple) else (results,)

    rng = np.random.default_rng(4)
    moves = [rng.standard_normal((3, model.nv)) for _ in x]                # along the configurations, or of v, a and tau
    if model.nc:
        moves = [np.broadcast_to(follow_couplings(model, q[0], move[0], move[0])[1], move.shape) for move in moves]

    def moved(e):
        return [ld.integrate(model, y, e * move) if y.shape[-1] == model.nq and name.startswith("q") else y + e * move
                for name, y, move in zip(FUNCTIONS[function].inputs, x, moves, strict=True)]

    def difference_of(values):
        """Return the rates of arrays as functions of e at 0."""
        h = 2e-4
        return [(8 * (b - c) - (d - e)) / (12 * h) for b, c, d, e in zip(*map(values, (h, -h, 2 * h, -2 * h)), strict=True)]
    rates, expected = difference_of(moved), difference_of(lambda e: compute(*moved(e)))

    def each(y):
        return y if isinstance(y, tuple) else (y,)

    @jax.jit
    def all_of(x, rates, costs):
        values, found = jax.jvp(lambda *x: each(f(*x)), x, rates)
        return values, found, jax.vjp(lambda *x: each(f(*x)), *x)[1](costs)
    costs = tuple(rng.standard_normal(y.shape) for y in compute(*x))
    values, found, back = all_of(tuple(x), tuple(rates), costs)
    for y, z in zip(values, compute(*x), strict=True):
        assert worst("jax: values", np.abs(y - z).max() / max(np.abs(z).max(), 1.0), function) < 1e-13
    for y, z in zip(found, expected, strict=True):
        assert worst("jax: forward derivatives", np.abs(y - z).max() / max(np.abs(z).max(), 1.0), function) < 1e-8
    forward = sum((cost * y).sum() for cost, y in zip(costs, found, strict=True))
    reverse = sum((y * rate).sum() for y, rate in zip(back, rates, strict=True))
    assert worst("jax: reverse derivatives", abs(reverse - forward) / abs(forward), function) < 1e-12
    for name, y, z in zip(FUNCTIONS[function].inputs, x, back, strict=True):                    # none normal to the unit sphere
        for place in model.quaternions.values() if name.startswith("q") else ():
            assert np.abs((y[:, place] * z[:, place]).sum(-1)).max() <= 1e-13 * np.abs(z).max()


def test_jacobians_hessians_batches_and_loops_of_functions(jax):
    from liedyn.interop.jax import robot_function
    jnp, model = jax.numpy, ld.load("robots/double_pendulum.yaml")
    q, v, _, tau = state(model, 2, (3,))
    f = robot_function(model, "forward_dynamics")
    expected = ld.forward_dynamics_derivatives(model, q, v, tau)
    for jacobian in jax.jacfwd, jax.jacrev:
        found = jax.jit(jax.vmap(jacobian(f, argnums=(0, 1, 2))))(q, v, tau)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.abs(y).max())
    gradient = jax.jit(jax.grad(lambda q: f(q, v[0], tau[0]).sum()))
    hessian = jax.jit(jax.hessian(lambda q: f(q, v[0], tau[0]).sum()))(q[0])
    differences = [(8 * (gradient(q[0] + e) - gradient(q[0] - e)) - gradient(q[0] + 2 * e) + gradient(q[0] - 2 * e)) / 12e-3
                   for e in 1e-3 * np.eye(model.nv)]
    np.testing.assert_allclose(hessian, differences, rtol=0, atol=1e-8 * np.abs(hessian).max())
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-12 * np.abs(hessian).max())
    nested = jax.jit(jax.vmap(jax.vmap(f, (None, 1, None)), (0, None, None), out_axes=1))(q, v.T, tau[0])     # [state of v, of q]
    np.testing.assert_array_equal(nested, ld.forward_dynamics(model, q[None], v[:, None], tau[0]))
    assert f(q[:0], v[:0], tau[0]).shape == (0, model.nv)

    def step(state, _):
        q, v = state
        v = v + 1e-3 * f(q, v, tau[0])
        return (q + 1e-3 * v, v), None
    last = jax.jit(lambda q, v: jax.lax.scan(step, (q, v), length=20)[0])(q[0], v[0])
    run = ld.rollout(model, q[0], v[0], tau[:1], dt=1e-3, steps=20, method="semi_implicit")
    np.testing.assert_allclose(last[0], run.q[-1], rtol=0, atol=1e-13)
    np.testing.assert_array_equal(jax.pmap(f)(*(jnp.asarray(x[None]) for x in (q, v, tau)))[0], f(q, v, tau))


def test_states_that_are_not_valid_are_nan(jax):
    from liedyn.interop.jax import robot_function
    model = ld.load("robots/top.yaml")
    q, v, _, tau = state(model, 2, (4,))
    f, place = robot_function(model, "forward_dynamics"), next(iter(model.quaternions.values()))
    q[1, place] *= 1.1
    v[2, 0] = np.nan
    a, rate = map(np.asarray, jax.jit(lambda q, v, tau: jax.jvp(f, (q, v, tau), (0 * q, v, tau)))(q, v, tau))
    for x in a, rate:
        np.testing.assert_array_equal(np.isnan(x).all(-1), [False, True, True, False])
        np.testing.assert_array_equal(np.isnan(x).any(-1), [False, True, True, False])
    np.testing.assert_array_equal(a[[0, 3]], ld.forward_dynamics(model, q[[0, 3]], v[[0, 3]], tau[[0, 3]]))


def test_precision(jax):
    """Double precision needs the numbers of 64 bits that JAX has by an option only."""
    from liedyn.interop.jax import robot_function, rollout_function
    model = ld.load("robots/double_pendulum.yaml")
    q, v, _, tau = state(model, 2, (5,))
    expected = ld.forward_dynamics(model, q, v, tau)
    single = robot_function(model, "forward_dynamics", dtype="float32")
    runs = {dtype: rollout_function(model, dt=DT, steps=3, dtype=dtype) for dtype in ("float32", "float64")}
    assert robot_function(model, "forward_dynamics")(q.astype("float32"), v, tau).dtype == "float64"
    jax.config.update("jax_enable_x64", False)
    try:
        found, gradient = single(q, v, tau), jax.grad(lambda tau: single(q, v, tau).sum())(tau)
        run = runs["float32"](q, v, tau[:, None])
        with pytest.raises(ld.UsageError, match=r"forward_dynamics in double precision needs .*jax_enable_x64.*float32"):
            robot_function(model, "forward_dynamics")(q, v, tau)
        with pytest.raises(ld.UsageError, match="rollout_function in double precision needs"):
            runs["float64"](q, v, tau[:, None])
    finally:
        jax.config.update("jax_enable_x64", True)
    assert {x.dtype.name for x in (found, gradient, *run)} == {"float32"}
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    np.testing.assert_allclose(run[0], runs["float64"](q, v, tau[:, None])[0], rtol=0, atol=1e-5)
    with pytest.raises(ld.ArgumentError, match="dtype must be float64 or float32, got 'float16'"):
        robot_function(model, "forward_dynamics", dtype="float16")


def test_arguments_that_are_errors(jax):
    from liedyn.interop.jax import robot_function, rollout_function
    export, model = import_module("jax.export"), ld.load("robots/double_pendulum.yaml")
    f, q = robot_function(model, "mass_matrix"), np.zeros(2)
    with pytest.raises(ld.NameLookupError, match="did you mean 'forward_dynamics'"):
        robot_function(model, "forward_dynamic")
    with pytest.raises(ld.ModelError, match="four_bar"):
        robot_function(ld.load("robots/four_bar.yaml"), "forward_dynamics")
    with pytest.raises(ld.UsageError, match="mass_matrix takes the arrays q, got 2"):
        f(q, q)
    with pytest.raises(ld.ShapeError, match=r"q has the wrong shape: expected \(…, 2\), got \(3,\)"):
        f(np.zeros(3))
    with pytest.raises(ld.ShapeError, match=r"leading axes do not match: q \(3, 2\), v \(4, 2\), a \(2,\)"):
        robot_function(ld.load("robots/double_pendulum.yaml"), "inverse_dynamics")(np.zeros((3, 2)), np.zeros((4, 2)), q)
    with pytest.raises(ld.ArgumentError, match="q must contain real numbers, got complex128"):
        f(q + 1j)
    with pytest.raises(ld.UsageError, match="mass_matrix of double_pendulum runs on the platform cpu of JAX only"):
        export.export(jax.jit(f), platforms=["cuda"])(q)
    roll = jax.jit(rollout_function(model, dt=DT, steps=2))
    with pytest.raises(RuntimeError, match=r"ConfigurationError: q0\[0\] \(shoulder\) is not finite"):
        roll(np.array([np.nan, 0.0]), q, np.zeros(2))


def test_functions_without_operations_and_derivatives(jax):
    from liedyn.codegen.array_functions import ArrayFunction
    from liedyn.codegen.tracer import Operations, object_array
    from liedyn.interop.jax import _Call, robot_function
    rail = ld.Joint("rail", "prismatic", "world", "block", axes=((1, 0, 0),), limits=(-1, 1))
    model = ld.build(ld.Robot("slide", [ld.Link("block", mass=2.0)], [rail]))
    f, q = robot_function(model, "mass_matrix"), np.ones((3, 1))
    for x, y in zip(jax.jvp(f, (q,), (q,)), (2.0, 0.0), strict=True):
        np.testing.assert_array_equal(x, np.full((3, 1, 1), y))
    assert np.isnan(f([np.nan])).all()
    ops = Operations()
    power = ArrayFunction(ops, {"x": (1,)}, {"y": object_array([ops.emit("pow", ops.inputs("x", 1)[0].k, 2.5)])}, 1.0)
    call = _Call(power, model, "the power")
    with pytest.raises(ld.UsageError, match="the power has no derivative: an expression of the robot contains a power"):
        call.derivative(power.tangent, ("x",))
