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

from liedyn.arrays import Method
from liedyn.model.model import Model
from liedyn.rollouts.inputs import Feedback
from liedyn.rollouts.rollout import RolloutMap


def rollout_function(model: Model, *, dt: float, steps: int, method: Method = "rk4", passive: bool = True,
                     feedback: Feedback | None = None,
                     contacts: Mapping[str, Any] | None = None) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """Return a function (q0, v0, tau) -> (q, v) of tensors, (…, nq), (…, nv), (…, S, nv) -> (…, S + 1, nq), (…, S + 1, nv).

    The result has the device of q0 and, if q0 holds floating-point numbers, its type. Derivatives with respect to quaternions
    have no component normal to the unit sphere. States after the end of a run are NaN. For the other arguments and errors see
    `liedyn.rollout`.
    """
    rolled = RolloutMap(model, dt=dt, steps=steps, method=method, passive=passive, feedback=feedback, contacts=contacts)

    def roll(q0, v0, tau):
        tensors = (torch.as_tensor(x) for x in (q0, v0, tau))
        return _Roll.apply(rolled, *(x if x.is_floating_point() else x.double() for x in tensors))[:2]

    return roll


class _Roll(torch.autograd.Function):  # type: ignore[misc]
    """A rollout with its adjoint. The third result is the rollout itself, from which the derivative is computed."""

    @staticmethod
    def forward(rolled, q0, v0, tau):
        run = rolled.run(*map(_numbers, (q0, v0, tau)))
        return _like(q0, run.q), _like(q0, run.v), run

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.rolled, ctx.run = inputs[0], output[2]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx, d_q, d_v, _):
        given = ctx.saved_tensors
        shares = ctx.rolled.back(ctx.run, _numbers(given[0]), _numbers(d_q), _numbers(d_v))
        return None, *(_like(x, share).sum_to_size(x.shape) for x, share in zip(given, shares, strict=True))


def _numbers(x):
    return x.detach().to("cpu", torch.float64).numpy()


def _like(x, numbers):
    return torch.from_numpy(np.require(numbers, requirements="W")).to(x)          # results of rollouts are read-only
