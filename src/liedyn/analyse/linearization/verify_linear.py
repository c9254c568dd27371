"""Checks a linearization against extrapolated differences of the scenario's own right-hand side."""
from __future__ import annotations

import numpy as np

from liedyn.analyse.linearization.independent import chart
from liedyn.analyse.linearization.instant import Instant, instant
from liedyn.analyse.linearization.linear_system import LinearSystem
from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.loops.constraints import nearest_velocity, project_configuration
from liedyn.dynamics.manifold import difference, integrate
from liedyn.dynamics.scales import scales_of
from liedyn.errors import ComputationError
from liedyn.joints.kinds import FRICTION_SPEED
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.simulation.driven_loops import drives_at
from liedyn.simulation.extrapolation import Compared, compare, condition_of, own_error, rough, slope, surest_slope

_STEP = 0.02                 # of characteristic units: results are smooth over it, and rounding is small beside it
_TOUCHING = 1.0, 1e-2, 1e-4  # of the step, where links touch: contacts are a millimetre deep, and creep a millimetre a second
_WITHIN = 1e-3               # of the step, where it leads beyond the domain of a law


def differences(problem, here: Instant, u, system: LinearSystem, update=lambda fraction: None,
                acting: bool = True) -> dict[str, Compared]:
    """{"A", "B", "C", "D"}: largest difference, relative to the largest entry of the rows of the same kind (q, v, a, …), in
    characteristic units.

    `problem` is a `frozen` one; `u` (nv + actuators,) what is added to its inputs here, or None. acting: whether forces answer to
    integrals.
    """
    model = problem.model
    nv, actuators, n = model.nv, len(model.description.actuators), len(system.states)
    u = np.zeros(nv + actuators) if u is None else u
    inputs, index = _input_numbers(model, system), _coordinates(model, system)
    f, sums = len(index), problem.schedule.integral
    deviated = _deviated_tied(problem, here, index) if problem.ties is not None else _deviated(model, here)

    def outcome(x, w):
        z = here.integral.copy()
        z[sums] += acting * x[2 * f:n]
        return _outcome(problem, here, *deviated(x[:f], x[f:2 * f]), u + w, z, index, sums, system.outputs) / rows

    condition = float(condition_of(model, here.q[None], problem.schedule.level == TORQUE)[0])
    units = scales_of(model)
    by_state, by_input, of_outputs = map(units.of_all, (system.state_units, system.input_units, system.output_units))
    rows = np.concatenate([by_state / units.time, of_outputs])
    x, w, found = np.diag(by_state), np.eye(nv + actuators), []
    steps = (_STEP,) if problem.contacts is None else tuple(share * _STEP for share in _TOUCHING)
    for k, name in enumerate(system.states):
        rate, _, coordinate = name.partition(".")
        bends = (2 * FRICTION_SPEED / by_state[k],) if rate == "v" and problem.passive and rough(model, coordinate) else ()
        found.append(_surest(lambda h, k=k: outcome(h * x[k], 0 * u), steps + bends, condition))
        update(k / n)
    found += [_surest(lambda h, k=k, size=size: outcome(0 * x[0], h * size * w[k]), (1.0,), condition)
              for k, size in zip(inputs, by_input, strict=True)]
    theirs, doubt = (np.column_stack(columns) for columns in zip(*found, strict=True))
    doubt += own_error(condition, theirs)
    ours = np.vstack([np.hstack([system.A, system.B]), np.hstack([system.C, system.D])])
    ours = ours * np.concatenate([by_state, by_input]) / rows[:, None]
    kinds = [f"state {name.partition('.')[0]}" for name in system.states] + [name.partition(".")[0] for name in system.outputs]
    return _compare(ours, theirs, doubt, np.array(kinds), n)


def _coordinates(model, system) -> np.ndarray:
    """Numbers of the coordinates whose positions are states."""
    return np.array([model.v_names.index(name.partition(".")[2]) for name in system.states if name.startswith("q.")])


def _deviated(model, here: Instant):
    """State (q, v) by deviations dq, dv."""
    return lambda dq, dv: (integrate(model, here.q, dq), here.v + dv)


def _deviated_tied(problem, here: Instant, index):
    """The same by deviations of the independent coordinates, which the others follow."""
    model, drive = problem.model, drives_at(problem, here.t)
    given = np.isin(np.arange(model.nv), index)
    Z = chart(model, here.q, here.v, given, drive).Z

    def deviated(dq, dv):
        q = project_configuration(model, integrate(model, here.q, Z @ dq), prescribed=given, drive=drive)
        v = here.v.copy()
        v[index] += dv
        return q, nearest_velocity(model, q, v, prescribed=given, drive=drive)
    return deviated


def _surest(f, steps: tuple[float, ...], condition: float):
    try:
        return surest_slope(f, steps, condition)
    except ComputationError:                       # beyond the domain of a law
        return surest_slope(f, tuple(_WITHIN * h for h in steps), condition)


def _input_numbers(model, system) -> list[int]:
    """Numbers of the system's inputs among the coordinates and actuators."""
    names = [*model.v_names, *(f"thrust.{actuator.name}" for actuator in model.description.actuators)]
    return [names.index(name if name.startswith("thrust.") else name.partition(".")[2]) for name in system.inputs]


def _outcome(problem, here: Instant, q, v, u, z, index, sums, outputs) -> np.ndarray:
    """Rates of the states, of coordinates `index` and integrals of coordinates `sums`, then the outputs, of a state near
    `here`."""
    model = problem.model
    there = instant(problem, here.t, q, v, u, z)
    values = {"q": difference(model, here.q, q), "v": v, "a": there.a, "tau": there.tau}
    places = link_poses(model, q)[:, :3, 3] if any(name.startswith("p.") for name in outputs) else None
    y = []
    for name in outputs:
        kind, _, rest = name.partition(".")
        if kind == "p":
            link, _, axis = rest.rpartition(".")
            y.append(places[model.link_index(link), "xyz".index(axis)])
        else:
            y.append(values[kind][model.v_names.index(rest)])
    return np.concatenate([_rate_of_deviation(model, here, q, v)[index], there.a[index], there.integral_rate[sums], y])


def _rate_of_deviation(model, here: Instant, q, v) -> np.ndarray:
    """d(dq)/dt of the deviation from a motion through `here` at its velocity, by differences along both motions."""
    units = scales_of(model)
    fast = np.abs(v / units.of_all(model.v_units)).max(initial=1.0 / units.time)
    change = lambda s: difference(model, integrate(model, here.q, s * here.v), integrate(model, q, s * v))      # noqa: E731
    return slope(change, _STEP / fast, 3)[0]


def _compare(ours, theirs, doubt, kinds, n: int) -> dict[str, Compared]:
    """Of the four blocks that meet at row and column n; each entry against the largest one of its rows' kind in its block."""
    scale = np.ones(ours.shape)
    for kind in set(kinds):
        rows = kinds == kind
        for columns in (slice(None, n), slice(n, None)):
            block = np.abs(theirs[rows, columns])
            scale[rows, columns] = block.max(initial=0.0) or 1.0
            doubt[rows, columns] = doubt[rows, columns].max(axis=0, initial=0.0)
    halves = slice(None, n), slice(n, None)
    blocks = {"A": (0, 0), "B": (0, 1), "C": (1, 0), "D": (1, 1)}
    return {name: compare(*(x[halves[i], halves[j]] for x in (ours, theirs, doubt, scale))) for name, (i, j) in blocks.items()}
