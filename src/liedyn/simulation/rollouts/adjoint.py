"""Derivatives of a cost through the steps of a rollout: the adjoint of what was computed, step by step."""
from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from liedyn.codegen.lines import width
from liedyn.codegen.steps.adjoint_step import adjoint_step
from liedyn.dynamics.calling.annotations import Array, ArrayLike
from liedyn.dynamics.calling.arguments import as_array
from liedyn.dynamics.calling.calls import scratch
from liedyn.dynamics.calling.threads import on_threads
from liedyn.dynamics.parameters.model_parameters import rates_of
from liedyn.dynamics.tangent_numbers import numbers_of_tangent, tangent_of_numbers
from liedyn.errors import ShapeError, UsageError
from liedyn.immutable import Immutable
from liedyn.integrators.many_runs import curves_at, shares
from liedyn.jit import prepare
from liedyn.joints.tree import tree_of
from liedyn.kernels.simulation.contact import MATERIAL, STIFFNESS
from liedyn.kernels.simulation.roll import TOGETHER, roll_back
from liedyn.model.minimal_inertias import minimal_inertias
from liedyn.model.spatial import unflat
from liedyn.simulation.contact import weight_gradient, weight_of


@dataclass(frozen=True, eq=False, repr=False)
class RolloutAdjoint(Immutable):
    """Derivatives of a cost, by run; NaN for runs that ended early, or passed a singular configuration of the constraints.

    q0, v0      (…, nv) by the initial state; of q0 tangent: by x of q0 (+) x
    tau         (…, S, nv) by the joint forces of each step, zero where prescribed
    a           (…, S, nv) by the accelerations of each step, zero where not prescribed; None where nothing is
    gain        (…, nv, 2 nv) by the gains of the feedback, zero where a gain is zero; None without
    parameters  (…, m) by the parameters that were asked for, in their order

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> runs = ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=100)
    >>> d_q = np.zeros((101, 2))
    >>> d_q[-1, 0] = 1.0              # the cost is the angle of the shoulder at the end
    >>> runs.adjoint(d_q, parameters=["mass.lower"]).q0.round(3)
    array([0.941, 0.058])
    """

    q0: Array
    v0: Array
    tau: Array
    a: Array | None
    gain: Array | None
    parameters: Array

    def __repr__(self) -> str:
        return f"<RolloutAdjoint: {prod(self.q0.shape[:-1])} runs, {self.tau.shape[-2]} steps, nv {self.q0.shape[-1]}>"


def adjoint_of(engines, given, clocks, method: str, out, d_q: ArrayLike | None, d_v: ArrayLike | None,
               parameters: tuple[str, ...]) -> RolloutAdjoint:
    """engines: a `SideBySide` of each stretch of the rollout; given: its arguments; out: its states, one for each step. See
    `Rollout.adjoint`."""
    model, count, steps = given.model, given.count, given.steps
    if given.variants and parameters:
        raise UsageError("derivatives by parameters are for runs of one model; found variants")
    if given.variants:
        places, numbers = given.varying
        rates = np.zeros((0, len(places)))
    else:
        places, rates = _constants_of(model, parameters)
        numbers = np.broadcast_to(model.constants[places], (count, len(places)))
    lines = [_line_of(engine, given, mask, method, tuple(map(int, places)))
             for engine, (_, _, mask) in zip(engines, given.stretches, strict=True)]
    q, v = (np.require(x.reshape(count, *x.shape[-2:]), requirements="CW") for x in (out.q, out.v))
    tangent, d_v = (None if x is None else _cotangent(name, x, (*given.lead, steps + 1, model.nv)).reshape(v.shape)
                    for name, x in (("d_q", d_q), ("d_v", d_v)))
    ended = np.isnan(q[np.arange(count), given.last]).any(axis=1)
    ended[given.alone] = True
    last = np.where(ended, 0, given.last)
    rest, safe = model.neutral(), q
    if (last < steps).any():                                   # what comes after the end of a run does not count
        after = (np.arange(steps + 1) > last[:, None])[..., None]
        safe = np.where(after, rest, q)
        tangent, d_v = (x if x is None else np.where(after, 0.0, x) for x in (tangent, d_v))
    d_q = np.zeros(q.shape) if tangent is None else numbers_of_tangent(model, safe, tangent)
    d_v = np.zeros(v.shape) if d_v is None else d_v
    values = given.values()
    k, l = values.shape[1], len(places)
    by_q, by_v, by_values, by_constants = (np.zeros((count, n)) for n in (model.nq, model.nv, k, l))
    parts, numbers = [], np.require(numbers, requirements="CW")
    prepare(roll_back)
    for engine, line, (first, until, _) in zip(engines[::-1], lines[::-1], given.stretches[::-1], strict=True):
        driven, own = given.driven(first, until), clocks[first:until + 1]
        if until < steps:                                      # what began with the state at its end has counted it
            d_q[:, until], d_v[:, until] = 0.0, 0.0
        states = [np.require(x[:, first:until + 1], requirements="CW") for x in (q, v, d_q, d_v)]
        by_series, curves = np.zeros((count, until - first, len(driven.places))), curves_at(
            engine.problem.signals, engine.line.curves, own)

        def part(i, j, line=line, driven=driven, own=own, states=states, by_series=by_series, curves=curves, first=first):
            room = scratch(TOGETHER * (2 * (model.nq + model.nv + k + l) + 2) + line.scratch)
            return roll_back(line.address, width(), own, curves, driven.places, driven.series, values, *states[:2], numbers,
                             last - first, *states[2:], by_q, by_v, by_series, by_values, by_constants, rest, room, i, j)

        on_threads(part, shares(count))
        parts.append(by_series[..., :model.nv])
    by_driving = np.concatenate(parts[::-1], axis=1) if len(parts) > 1 else parts[0]
    masks = np.broadcast_to(given.masks, (steps, model.nv))
    found = [tangent_of_numbers(model, safe[:, 0], by_q), by_v, by_driving, by_constants @ rates.T]
    if parameters and given.contacts is not None:
        found[3] += _by_weight(given, by_values, places, rates, parameters)
    if masks.any():
        found[2] = np.where(masks, 0.0, by_driving)
        found.append(np.where(masks, by_driving, 0.0))
    if given.pattern is not None:
        gain = np.zeros((count, model.nv, 2 * model.nv))
        gain[:, given.pattern] = by_values[:, given.first_gain:given.first_gain + given.gains.shape[1]]
        found.append(gain)
    for x in found:
        x[ended] = np.nan
    q0, v0, tau, by_parameters, *more = (x.reshape(*given.lead, *x.shape[1:]) for x in found)
    by_a = more.pop(0) if masks.any() else None
    return RolloutAdjoint(q0, v0, tau, by_a, more[0] if more else None, by_parameters)


def _by_weight(given, by_values, places, rates, parameters: tuple[str, ...]) -> np.ndarray:
    """(N, m) derivatives of the cost with respect to parameters, through the stiffness of contacts with `sink`, which is
    proportional to the weight. places, rates (m, places): as of `_constants_of`."""
    bound, model = given.contacts.bound, given.model
    if not bound.weighed.any():
        return np.zeros((len(by_values), len(rates)))
    by_gravity = rates[:, places < 6].any(axis=1)
    if by_gravity.any() and not model.gravity.any():           # the weight is that of 9.81 m/s^2 there: discontinuous
        raise UsageError(f"the adjoint has no derivative by {parameters[int(np.argmax(by_gravity))]!r}: without gravity, the "
                         "stiffness of contacts that `sink` gives is discontinuous; give `stiffness`")
    by_k = (by_values[:, model.nv:given.first_gain] * bound.material).reshape(len(by_values), -1, MATERIAL)[..., STIFFNESS]
    return np.outer(by_k[:, bound.weighed].sum(axis=1) / weight_of(model, model.constants),
                    rates @ weight_gradient(model)[places])


def _line_of(engine, given, mask, method: str, places):
    line = adjoint_step(engine.problem.tables(), method, places, given.rows.get(mask.tobytes(), ()))
    if line is None:
        raise UsageError("the adjoint of a step of this robot has no straight-line code: too many operations")
    return line


def _cotangent(name: str, x, shape) -> np.ndarray:
    """Derivatives of the cost by states (…, S + 1, nv), in memory of their own."""
    x = as_array(x, name, shape[-1:])
    try:
        return np.array(np.broadcast_to(x, shape))
    except ValueError:
        raise ShapeError(f"{name} has the wrong shape; found {x.shape}, expected {shape}: each step and the end") from None


def _constants_of(model, parameters: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Places in the constants of a model that the parameters change, and by how much each (parameters, places)."""
    n, nv = model.n_bodies, model.nv
    tree, dense = tree_of.py_func(model.index, model.constants), np.zeros((len(parameters), model.constants.size))
    for row, name in enumerate(parameters):
        found, rates = rates_of(model, name), tree_of.py_func(model.index, dense[row])
        changes = np.zeros(6 + 22 * n + 5 * nv)                 # of gravity, of what moves joints, of inertias, of coordinates
        here = found.at < changes.size
        changes[found.at[here]] = found.values[here]
        rates.dV0[:], rates.I[:] = changes[:6], changes[6 + 12 * n:6 + 22 * n]
        rates.J[:] = minimal_inertias(tree.parent, tree.kind, tree.S.reshape(n, 2), unflat(tree.T0.reshape(n, 12)),
                                      rates.I.reshape(n, 10)).ravel()
        for k, x in enumerate((rates.armature, rates.damping, rates.friction, rates.stiffness, rates.rest)):
            x[:] = changes[6 + 22 * n + k * nv:][:nv]
        if not dense[row].any() and found.at.size:
            raise UsageError(f"the adjoint has no derivative by {name!r}: it moves a joint (masses, inertias, gravity, "
                             "armature, damping, friction and springs are available)")
    places = np.flatnonzero(dense.any(axis=0))
    return places, dense[:, places]
