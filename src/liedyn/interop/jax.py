"""Rollouts as functions of JAX, with their exact adjoint as derivative: `jax.grad`, `jit` and `vmap` go through them.

    import jax
    jax.config.update("jax_enable_x64", True)
    from liedyn.interop.jax import rollout_function

    roll = rollout_function(model, dt=1e-3, steps=200)
    gradient = jax.grad(lambda tau: roll(q0, v0, tau)[1][-1].sum())(tau)

The steps run on this machine's processor, outside of JAX (`jax.pure_callback`).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from liedyn.arrays import Method
from liedyn.errors import ShapeError
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.rollouts.inputs import Feedback
from liedyn.rollouts.rollout import RolloutMap
from liedyn.simulation.control.thrusts import input_count


@explained
def rollout_function(model: Model, *, dt: float, steps: int, method: Method = "rk4", passive: bool = True,
                     feedback: Feedback | None = None,
                     contacts: Mapping[str, Any] | None = None) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """Return a function (q0, v0, tau) -> (q, v) of JAX arrays, (…, nq), (…, nv), (…, S, nv) -> (…, S + 1, nq), (…, S + 1, nv).

    tau may also be (…, 1, nv), or (nv,), for all steps.
    Derivatives with respect to quaternions have no component normal to the unit sphere. States after the end of a run are NaN.
    For the other arguments and errors see `liedyn.rollout`.
    """
    nq, nv = model.nq, model.nv
    rollouts = RolloutMap(model, dt=dt, steps=steps, method=method, passive=passive, feedback=feedback, contacts=contacts)

    def forward(q0: Any, v0: Any, tau: Any) -> tuple[Any, Any]:
        run = rollouts.run(q0, v0, tau)
        return run.q.astype(q0.dtype), run.v.astype(q0.dtype)

    def backward(q0: Any, v0: Any, tau: Any, d_q: Any, d_v: Any) -> tuple[Any, ...]:
        return tuple(x.astype(q0.dtype) for x in rollouts.back(rollouts.run(q0, v0, tau), q0, tau, d_q, d_v))

    def call(function: Callable[..., tuple[Any, ...]], shapes: Sequence[tuple[int, ...]], *arrays: Any) -> Any:
        """Call a function outside of JAX. shapes: of its results for one run."""
        results = tuple(jax.ShapeDtypeStruct((*arrays[0].shape[:-1], *shape), arrays[0].dtype)
                        for shape in shapes)
        return jax.pure_callback(function, results, *arrays, vmap_method="broadcast_all")

    @jax.custom_vjp
    def roll(q0: Any, v0: Any, tau: Any) -> Any:
        return call(forward, ((steps + 1, nq), (steps + 1, nv)), q0, v0, tau)

    def roll_forward(q0: Any, v0: Any, tau: Any) -> tuple[Any, tuple[Any, Any, Any]]:
        return roll(q0, v0, tau), (q0, v0, tau)

    def roll_backward(inputs: tuple[Any, Any, Any], cotangents: tuple[Any, Any]) -> Any:
        return call(backward, ((nq,), (nv,), (steps, inputs[2].shape[-1])), *inputs, *cotangents)

    roll.defvjp(roll_forward, roll_backward)
    return lambda q0, v0, tau: roll(*_spread(model, steps, *map(jnp.asarray, (q0, v0, tau))))


def _spread(model: Model, steps: int, q0: jax.Array, v0: jax.Array, tau: jax.Array) -> list[jax.Array]:
    """Return the arguments broadcast to all runs and steps, of one type. Errors in a callback would be hard to read."""
    tau = tau[None] if tau.ndim == 1 else tau
    columns = input_count(model) if tau.shape[-1] == input_count(model) else model.nv             # with or without thrusts
    arguments: tuple[tuple[str, jax.Array, tuple[int, ...]], ...] = (
        ("q0", q0, (model.nq,)), ("v0", v0, (model.nv,)), ("tau", tau, (steps, columns)))
    for name, x, shape in arguments:
        last = x.shape[-len(shape):]
        if x.ndim < len(shape) or last[-1] != shape[-1] or (len(shape) == 2 and last[0] not in (1, steps)):
            raise ShapeError(f"{name} has the wrong shape: expected (…, {', '.join(map(str, shape))}), got {x.shape}")
    lead = jnp.broadcast_shapes(*(x.shape[:-len(shape)] for _, x, shape in arguments))
    kind = jnp.result_type(q0, v0, tau, 0.0)                   # integers become floating-point numbers
    return [jnp.broadcast_to(x, (*lead, *shape)).astype(kind) for _, x, shape in arguments]
