"""Rollouts as functions of JAX, with their exact adjoint as derivative: `jax.grad`, `jit` and `vmap` go through them.

    import jax
    jax.config.update("jax_enable_x64", True)
    from liedyn.interop.jax import rollout_function

    roll = rollout_function(model, dt=1e-3, steps=200)
    slope = jax.grad(lambda tau: roll(q0, v0, tau)[1][-1].sum())(tau)

The steps run on this machine's processor, outside of JAX (`jax.pure_callback`).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from liedyn.arrays import Method
from liedyn.errors import ShapeError
from liedyn.model.model import Model
from liedyn.rollouts.inputs import Feedback
from liedyn.rollouts.rollout import RolloutMap


def rollout_function(model: Model, *, dt: float, steps: int, method: Method = "rk4", passive: bool = True,
                     feedback: Feedback | None = None,
                     contacts: Mapping[str, Any] | None = None) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """Return a function (q0, v0, tau) -> (q, v) of JAX arrays, (…, nq), (…, nv), (…, S, nv) -> (…, S + 1, nq), (…, S + 1, nv).

    tau may also be (…, 1, nv), or (nv,), for all steps.
    Derivatives with respect to quaternions have no component normal to the unit sphere. States after the end of a run are NaN.
    For the other arguments and errors see `liedyn.rollout`.
    """
    nq, nv = model.nq, model.nv
    rolled = RolloutMap(model, dt=dt, steps=steps, method=method, passive=passive, feedback=feedback, contacts=contacts)

    def forward(q0, v0, tau):
        run = rolled.run(q0, v0, tau)
        return run.q.astype(q0.dtype), run.v.astype(q0.dtype)

    def backward(q0, v0, tau, d_q, d_v):
        return tuple(x.astype(q0.dtype) for x in rolled.back(rolled.run(q0, v0, tau), q0, d_q, d_v))

    def called(function, shapes, *arrays):
        """Outside of JAX. shapes: of what a run has."""
        found = tuple(jax.ShapeDtypeStruct((*arrays[0].shape[:-1], *shape), arrays[0].dtype) for shape in shapes)
        return jax.pure_callback(function, found, *arrays, vmap_method="broadcast_all")

    @jax.custom_vjp
    def roll(q0, v0, tau):
        return called(forward, ((steps + 1, nq), (steps + 1, nv)), q0, v0, tau)

    def first(q0, v0, tau):
        return roll(q0, v0, tau), (q0, v0, tau)

    def then(given, cotangents):
        return called(backward, ((nq,), (nv,), (steps, nv)), *given, *cotangents)

    roll.defvjp(first, then)
    return lambda q0, v0, tau: roll(*_spread(model, steps, *map(jnp.asarray, (q0, v0, tau))))


def _spread(model: Model, steps: int, q0, v0, tau):
    """Return the arguments broadcast to all runs and steps, of one type. Errors in a callback would be hard to read."""
    tau = tau[None] if tau.ndim == 1 else tau
    given = ("q0", q0, (model.nq,)), ("v0", v0, (model.nv,)), ("tau", tau, (steps, model.nv))
    for name, x, own in given:
        found = x.shape[-len(own):]
        if x.ndim < len(own) or found[-1] != own[-1] or (len(own) == 2 and found[0] not in (1, steps)):
            raise ShapeError(f"{name} has the wrong shape; found {x.shape}, expected (…, {', '.join(map(str, own))})")
    lead = jnp.broadcast_shapes(*(x.shape[:-len(own)] for _, x, own in given))
    kind = jnp.result_type(q0, v0, tau, 0.0)                   # integers become floating-point numbers
    return [jnp.broadcast_to(x, (*lead, *own)).astype(kind) for _, x, own in given]
