"""Rollouts as functions of PyTorch, with their exact adjoint as derivative.

    import torch
    from liedyn.interop.torch import rollout_function

    roll = rollout_function(model, dt=1e-3, steps=200)
    tau = torch.zeros(200, model.nv, dtype=torch.float64, requires_grad=True)
    roll(q0, v0, tau)[1][-1].sum().backward()                 # tau.grad

The steps run on this machine's processor; tensors of other devices are copied to it and back.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from liedyn.arrays import Array, Method
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.rollouts.inputs import Feedback
from liedyn.rollouts.rollout import RolloutMap


@explained
def rollout_function(model: Model, *, dt: float, steps: int, method: Method = "rk4", passive: bool = True,
                     feedback: Feedback | None = None,
                     contacts: Mapping[str, Any] | None = None) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """Return a function (q0, v0, tau) -> (q, v) of tensors, (…, nq), (…, nv), (…, S, nv) -> (…, S + 1, nq), (…, S + 1, nv).

    The result has the device of q0 and, if q0 holds floating-point numbers, its type. Derivatives with respect to quaternions
    have no component normal to the unit sphere. States after the end of a run are NaN. For the other arguments and errors see
    `liedyn.rollout`.
    """
    rollouts = RolloutMap(model, dt=dt, steps=steps, method=method, passive=passive, feedback=feedback, contacts=contacts)

    def roll(q0: Any, v0: Any, tau: Any) -> tuple[torch.Tensor, torch.Tensor]:
        tensors = (torch.as_tensor(x) for x in (q0, v0, tau))
        q, v, _ = _Roll.apply(rollouts, *(x if x.is_floating_point() else x.double() for x in tensors))
        return q, v

    return roll


class _Roll(torch.autograd.Function):  # type: ignore[misc]
    """A rollout with its adjoint. The third result is the rollout itself, from which the derivative is computed."""

    @staticmethod
    def forward(rollouts: RolloutMap, q0: torch.Tensor, v0: torch.Tensor, tau: torch.Tensor) -> tuple[Any, ...]:
        run = rollouts.run(*map(_to_numpy, (q0, v0, tau)))
        return _like(q0, run.q), _like(q0, run.v), run

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.rollouts, ctx.run = inputs[0], output[2]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, d_q: torch.Tensor, d_v: torch.Tensor, _: Any) -> tuple[torch.Tensor | None, ...]:
        inputs = ctx.saved_tensors
        gradients = ctx.rollouts.back(ctx.run, _to_numpy(inputs[0]), inputs[2], _to_numpy(d_q), _to_numpy(d_v))
        return None, *(_like(x, gradient).sum_to_size(x.shape) for x, gradient in zip(inputs, gradients, strict=True))


def _to_numpy(x: torch.Tensor) -> Array:
    array: Array = x.detach().to("cpu", torch.float64).numpy()
    return array


def _like(x: torch.Tensor, array: Array) -> torch.Tensor:
    return torch.from_numpy(np.require(array, requirements="W")).to(x)          # results of rollouts are read-only
