"""Checks a linearization against extrapolated differences of the scenario's own right-hand side."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.kinematics import link_pose
from liedyn.dynamics.manifold import difference, integrate
from liedyn.simulate.instant import Instant, instant
from liedyn.simulate.linear_system import LinearSystem

BOUND = 1e-6                 # of the relative differences; those of a sound linearization are about 1e-9
_STEP = 1e-3                 # rad, m, rad/s, m/s, and for inputs (on which all depends linearly) a thousand times as much


def differences(problem, here: Instant, u, system: LinearSystem) -> dict[str, float]:
    """{"A", "B", "C", "D"}: largest difference, relative to the largest entry of the rows of the same kind (q, v, a, …).

    `problem` is a `frozen` one; `u` (nv + actuators,) what is added to its inputs here, or None.
    """
    model = problem.model
    nv, actuators = model.nv, len(model.description.actuators)
    u = np.zeros(nv + actuators) if u is None else u
    inputs = _input_numbers(model, system)

    def outcome(x, w):
        return _outcome(problem, here, x[:nv], x[nv:], u + w, system.outputs)

    zero_x, zero_w = np.zeros(2 * nv), np.zeros(nv + actuators)
    by_x = [_slope(lambda h, k=k: outcome(h * np.eye(2 * nv)[k], zero_w), _STEP) for k in range(2 * nv)]
    by_u = [_slope(lambda h, k=k: outcome(zero_x, h * np.eye(nv + actuators)[k]), 1e3 * _STEP) for k in inputs]
    empty = np.zeros((2 * nv + len(system.outputs), 0))
    x, w = (np.column_stack(columns) if columns else empty for columns in (by_x, by_u))
    ours = np.vstack([np.hstack([system.A, system.B]), np.hstack([system.C, system.D])])
    kinds = [f"state {name.partition('.')[0]}" for name in system.states] + [name.partition(".")[0] for name in system.outputs]
    return _compare(ours, np.hstack([x, w]), np.array(kinds), 2 * nv)


def _input_numbers(model, system) -> list[int]:
    """Numbers of the system's inputs among the coordinates and actuators."""
    names = [*model.v_names, *(f"thrust.{actuator.name}" for actuator in model.description.actuators)]
    return [names.index(name if name.startswith("thrust.") else name.partition(".")[2]) for name in system.inputs]


def _outcome(problem, here: Instant, dq, dv, u, outputs) -> np.ndarray:
    """Rates of the states, then the outputs, of a state deviated from `here`."""
    model = problem.model
    q, v = integrate(model, here.q, dq), here.v + dv
    there = instant(problem, here.t, q, v, u)
    places: dict[str, np.ndarray] = {}
    values = {"q": difference(model, here.q, q), "v": v, "a": there.a, "tau": there.tau}
    y = []
    for name in outputs:
        kind, _, rest = name.partition(".")
        if kind == "p":
            link, _, axis = rest.rpartition(".")
            if link not in places:
                places[link] = link_pose(model, q, link)[:3, 3]
            y.append(places[link]["xyz".index(axis)])
        else:
            y.append(values[kind][model.v_names.index(rest)])
    return np.concatenate([_rate_of_deviation(model, here, q, v), there.a, y])


def _rate_of_deviation(model, here: Instant, q, v) -> np.ndarray:
    """d(dq)/dt of the deviation from a motion through `here` at its velocity, by differences along both motions."""
    fast = max(1.0, np.abs(v).max(initial=0.0))
    return _slope(lambda s: difference(model, integrate(model, here.q, s * here.v), integrate(model, q, s * v)), 0.02 / fast)


def _slope(f, h: float):
    """Derivative of f at 0: central differences, extrapolated twice (error of order h^6)."""
    d = [(f(s) - f(-s)) / (2 * s) for s in (h, h / 2, h / 4)]
    once = [(4 * b - a) / 3 for a, b in ((d[0], d[1]), (d[1], d[2]))]
    return (16 * once[1] - once[0]) / 15


def _compare(ours, theirs, kinds, n: int) -> dict[str, float]:
    """Largest relative differences of the four blocks that meet at row and column n."""
    scale = np.ones(ours.shape)
    for kind in set(kinds):
        rows = kinds == kind
        for columns in (slice(None, n), slice(n, None)):
            block = np.abs(theirs[rows, columns])
            scale[rows, columns] = block.max(initial=0.0) or 1.0
    relative = np.abs(ours - theirs) / scale
    blocks = {"A": relative[:n, :n], "B": relative[:n, n:], "C": relative[n:, :n], "D": relative[n:, n:]}
    return {name: float(block.max(initial=0.0)) for name, block in blocks.items()}
