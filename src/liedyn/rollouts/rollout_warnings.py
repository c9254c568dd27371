"""Warnings about rollouts: steps that are too long, singular configurations, creeping joints, exceeded limits."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

import numpy as np

from liedyn.arrays import Integers
from liedyn.dynamics.constraints.constraints import constraint_jacobian
from liedyn.dynamics.constraints.rank import scaled_equations, scaled_rank
from liedyn.dynamics.dynamics import inverse_mass_matrix
from liedyn.errors import ComputationError, LiedynWarning, list_names
from liedyn.integrators.diagnosis import GAINS_LABEL, STABILITY_LIMIT, FastestMotion, fastest_motion
from liedyn.integrators.problem import InitialValueProblem
from liedyn.joints.joint_model import tree_views
from liedyn.model.model import Model
from liedyn.model.model_cache import ModelValue
from liedyn.rollouts.engine import robot_of_run, with_robot
from liedyn.rollouts.inputs import RolloutInputs
from liedyn.simulation.limits import position_limit_warnings
from liedyn.simulation.run_checks import MIN_CREEP_TIME, measure_creep, smoothed_friction, spaced_rows

_MIN_ALIGNMENT = 0.5      # minimum |product of cosines| between the equations at two outputs at which its sign is significant
STABILITY_LIMITS = {"rk4": STABILITY_LIMIT, "semi_implicit": 2.0}        # of the step multiplied by the fastest rate
_MAX_EXTREME_RUNS = 16    # whose steps are checked


@dataclass
class _WarningHistory:
    """Earlier rollouts of a model.

    without_warnings  arguments of the last rollout without warnings, except its states
    limits_reported   whether a warning about position limits was returned
    """

    without_warnings: tuple[Any, ...] | None = None
    limits_reported: bool = False


_WARNING_HISTORY = ModelValue("warnings of rollouts")


def checked_runs(runs: RolloutInputs, problem: InitialValueProblem, dt: float, method: str, *,
                 without_warnings: bool = False) -> bool:
    """Return whether the last rollout of this model or these variants had the same arguments, except states, and no warnings.

    `without_warnings` stores that this rollout has none. This avoids `stiff_warnings`, which takes longer than a short rollout of
    a training loop.
    """
    if runs.contacts is not None or problem.directions:
        return False
    gains = b"" if runs.pattern is None else runs.pattern.tobytes() + runs.largest_gains[_extreme_runs(runs)].tobytes()
    history = runs.model.cached(_WARNING_HISTORY, _WarningHistory)
    alike = (dt, method, problem.passive, runs.masks.tobytes(), gains, runs.variants and ref(runs.variants))
    if without_warnings:
        history.without_warnings = alike
    return history.without_warnings == alike


def warnings_of(event_warnings: Sequence[LiedynWarning], problem: InitialValueProblem, runs: RolloutInputs, dt: float,
                method: str, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[LiedynWarning, ...]:
    """Return all warnings about a rollout with states q (…, R, nq), v (…, R, nv) at t (R,). event_warnings: about its events."""
    first, flat = np.unravel_index(0, runs.lead), [x.reshape(runs.count, *x.shape[-2:]) for x in (q, v)]
    return (*event_warnings, *runs.warnings, *stiff_warnings(problem, runs, dt, method, t, *flat),
            *singular_warnings(problem, runs, t, q[first]), *state_warnings(problem, runs, t, q))


def state_warnings(problem: InitialValueProblem, runs: RolloutInputs, t: np.ndarray, q: np.ndarray) -> list[LiedynWarning]:
    """Return the warnings about the states of all runs, which take little time to compute."""
    rows = spaced_rows(t)
    beyond = position_limit_warnings(runs.model, t[rows], q.reshape(runs.count, *q.shape[-2:])[:, rows])
    return [*creep_warnings(problem, runs, t, q), *beyond]


def from_states(warning: LiedynWarning) -> bool:
    """Return whether a warning is one of `state_warnings`."""
    return warning.code in ("friction-creep", "beyond-limits")


def drop_reported(model: Model, warnings: Sequence[LiedynWarning]) -> list[LiedynWarning]:
    """Return the warnings without those on limits, if some were returned before.

    In a training loop, each rollout may exceed the limits.
    """
    beyond = [warning for warning in warnings if warning.code == "beyond-limits"]
    history = model.cached(_WARNING_HISTORY, _WarningHistory)
    new_warnings = [warning for warning in warnings if not (history.limits_reported and warning in beyond)]
    history.limits_reported = history.limits_reported or bool(beyond)
    return new_warnings


def creep_warnings(problem: InitialValueProblem, runs: RolloutInputs, t: np.ndarray, q: np.ndarray) -> list[LiedynWarning]:
    """Return a warning if joints creep because friction is smoothed."""
    model = runs.model if runs.variants else problem.model               # without rigid friction
    if not problem.passive or t[-1] <= MIN_CREEP_TIME:             # saves time in many short rollouts
        return []
    constants = [model.constants] if runs.variants is None else map(runs.variants.constants_of, range(len(runs.variants)))
    friction = np.array([smoothed_friction(model, each) for each in constants])
    if not friction[:, 0].any():
        return []
    return measure_creep(model, friction[runs.robot], t, q.reshape(runs.count, *q.shape[-2:])).warnings()


_STRETCHED_ENDS = ModelValue("final states of rollouts in which contacts are stretched")


def stretch_warnings(runs: RolloutInputs, q: np.ndarray, v: np.ndarray) -> list[LiedynWarning]:
    """Return a warning if runs begin at the final states of the last rollout with contacts that stick.

    q (N, R, nq), v (N, R, nv): states of the runs
    """
    if runs.stretches is None or runs.contacts is None:
        return []
    ends: set[bytes] = runs.model.cached(_STRETCHED_ENDS, set)
    chained = sum(q[k, 0].tobytes() + v[k, 0].tobytes() in ends for k in range(runs.count))
    last = np.maximum(np.count_nonzero(np.isfinite(v).all(axis=2), axis=1) - 1, 0)
    ends.clear()
    ends.update(q[k, i].tobytes() + v[k, i].tobytes() for k, i in enumerate(last) if i and runs.stretches[k, i].any())
    names = list_names(runs.contacts.sticking, 4)
    return [LiedynWarning("contacts-unstretched", f"runs that continue a rollout ({chained} of {runs.count}) begin without the "
                          f"stretch of contacts that stick ({names}), so that their friction begins at zero: compute the motion "
                          "in one rollout")] if chained else []


def singular_warnings(problem: InitialValueProblem, runs: RolloutInputs, t: np.ndarray,
                      q: np.ndarray) -> tuple[LiedynWarning, ...]:
    """Return a warning if mechanisms passed singular configurations.

    It covers runs that were repeated sequentially, and the first run at its outputs t (R,), q (R, nq).
    """
    passed = dict(runs.singular_times)
    first = None if 0 in passed or not runs.rows or not problem.solves_constraints else _singular_time(problem, runs, t, q)
    if first is not None:
        passed[0] = first
    if not passed:
        return ()
    k = min(passed, key=lambda k: (passed[k], k))
    more_runs = f" (and those of {len(passed) - 1} more runs)" if len(passed) > 1 else ""
    return (LiedynWarning("singular-configuration",
                          f"the mechanism of run {k} passed a singular configuration at t = {passed[k]:.6g} s{more_runs}: "
                          "constraints became dependent. The motion may branch there, and was continued on one branch"),)


def _singular_time(problem: InitialValueProblem, runs: RolloutInputs, t: np.ndarray, q: np.ndarray) -> float | None:
    """Return the time at which the independent equations of the first run became dependent, or None.

    It is at an output, or between two of them if the orientation of the equations is reversed: then the determinant of A(t1)
    A(t2)^T is negative, which it is not for small motions without a singular configuration.
    """
    model, whole = robot_of_run(runs, 0), np.isfinite(q).all(axis=1)
    rows = np.array(next(iter(runs.rows.values()))[2], dtype=int)
    if not len(rows) or not whole.any():
        return None
    A = np.where(problem.prescribed, 0.0, scaled_equations(model, constraint_jacobian(model, q[whole])))[:, rows]
    singular, t = scaled_rank(A) < min(A.shape[1:]), t[whole]
    if singular.any():
        return float(t[np.argmax(singular)])
    size = np.linalg.det(A @ np.swapaxes(A, 1, 2))
    turned = np.linalg.det(A[:-1] @ np.swapaxes(A[1:], 1, 2)) < -_MIN_ALIGNMENT * np.sqrt(size[:-1] * size[1:])
    return float(0.5 * (t[:-1] + t[1:])[np.argmax(turned)]) if turned.any() else None


def stiff_warnings(problem: InitialValueProblem, runs: RolloutInputs, dt: float, method: str, t: np.ndarray, q: np.ndarray,
                   v: np.ndarray) -> tuple[LiedynWarning, ...]:
    """Return a warning if forces of joints, contacts and feedback act faster than the step can resolve.

    Evaluated at some outputs t (R,), q (N, R, nq), v (N, R, nv) of the runs with extreme robots and gains, and of those that have
    probably the fastest forces.
    """
    fast = [] if runs.variants is None else _rate_estimates(runs).argmax(axis=0).tolist()
    motions = [(fastest, int(k)) for k in dict.fromkeys((0, *fast, *_extreme_runs(runs)))
               for fastest in _fastest_motions(_problem_with_gains(problem, runs, k), t, q[k], v[k])]
    fastest, k = max(motions, key=lambda x: x[0].rate, default=(FastestMotion(0.0, "", 0.0), 0))
    limit = STABILITY_LIMITS[method]
    if fastest.rate * dt <= limit:
        return ()
    description = fastest.description.replace(GAINS_LABEL, "gains")
    run = f" in run {k}" if k else ""
    return (LiedynWarning("stiff-step",
                          f"dt is too long: {description} at t = {fastest.t:.6g} s{run}, and {method} is not stable there with "
                          f"steps over {limit / fastest.rate:.1g} s; the motion is not reliable"),)


def _extreme_runs(runs: RolloutInputs) -> Integers:
    """Return the first run and the runs with the minimum and maximum of each number of robots and each gain that differs."""
    tables = [] if runs.variants is None else [runs.variants.varying[1][runs.robot]]
    tables += [] if runs.pattern is None else [runs.largest_gains]
    extremes = [k for x in tables for k in (*x.argmin(axis=0), *x.argmax(axis=0))]
    return np.array(list(dict.fromkeys((0, *extremes)))[:_MAX_EXTREME_RUNS])


def _rate_estimates(runs: RolloutInputs) -> np.ndarray:
    """Return (N, 2) upper bounds of the rates by damping, with friction, and of their squares by springs, in initial states.

    `checked_runs` does not depend on them: they change with the states.
    """
    model, nv = runs.model, runs.model.nv
    index = tree_views.py_func(model.index, np.arange(len(model.constants), dtype=np.float64))
    assert runs.variants is not None
    damping, friction, speed, stiffness = (runs.variants.constants_at(x.astype(np.int64))[runs.robot]
                                    for x in (index.damping, index.friction, index.friction_speed, index.stiffness))
    try:
        with runs.with_run_robots() as robots:
            inverse = np.diagonal(inverse_mass_matrix(robots, runs.q), axis1=1, axis2=2)
    except ComputationError:                                   # a joint without inertia
        inverse = np.ones((runs.count, nv))
    return np.column_stack([(inverse * (damping + friction / speed)).sum(axis=1), (inverse * stiffness).sum(axis=1)])


def _problem_with_gains(problem: InitialValueProblem, runs: RolloutInputs, k: int) -> InitialValueProblem:
    """Return the problem with the robot of run k and with its feedback gains of a coordinate on itself as pd laws."""
    at = with_robot(problem, runs, k)
    if runs.pattern is None:
        return at
    nv, gain = runs.model.nv, np.zeros(runs.pattern.shape)
    gain[runs.pattern] = runs.largest_gains[k]
    kp, kd = (np.maximum(np.diag(x), 0.0) for x in (gain[:nv, :nv], gain[:nv, nv:]))
    return replace(at, schedule=at.schedule._replace(kp=kp, kd=kd, target=np.where(kp + kd > 0.0, 0, -1)))


def _fastest_motions(problem: InitialValueProblem, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> list[FastestMotion]:
    """Return the fastest motion at some of the outputs t (R,), q (R, nq), v (R, nv) of a run."""
    whole = np.flatnonzero(np.isfinite(q).all(axis=1))
    if not len(whole):
        return []
    some = np.unique(whole[np.linspace(0, len(whole) - 1, 8).astype(int)])
    return [fastest_motion(problem, float(t[k]), q[k], v[k], False) for k in some]
