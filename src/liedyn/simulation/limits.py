"""Limits of a robot: starts within them, and violations. Limits that do not act on a motion are checked after the run."""
from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.dynamics.joint_values import neutral_within_limits
from liedyn.errors import LiedynWarning, WarningLog, list_names
from liedyn.io.scenarios.scenario import Prescribe, Rule, Scenario
from liedyn.model.model import Model
from liedyn.simulation.name_binding import bind_joints, v_to_q_indices

KINDS = "position", "velocity", "effort", "thrust"
_ROUNDING = 1e-9         # of the limits and the span of the motion: tolerance for motions that are prescribed up to a limit
_SUGGESTIONS = {"position": " (limits: stop enforces them)", "velocity": "", "effort": " (saturate: true enforces them)",
                "thrust": " (saturate: true enforces them)"}
_FIXED = "; limits are not enforced while a joint is prescribed or locked"
EXCEEDED = tuple(f"{kind} limits are exceeded" for kind in KINDS)         # start of the warnings
_START_TOLERANCE = 1e-6      # of the limits, for initial values: users round numbers
_DEGREES = 2.0               # a start beyond its limits by this factor, and beyond a turn, may be in degrees
_MAX_NAMES = 3               # maximum number of coordinates in a warning; run.json contains all


@dataclass(frozen=True)
class LimitViolation:
    """A coordinate beyond its limit.

    kind          one of KINDS
    coordinate    its name
    unit          of `worst` and `limit`
    first         time of the first violation [s]
    at            time of the worst violation [s]
    worst         signed value at `at`
    limit         limit on that side
    """

    kind: str
    coordinate: str
    unit: str
    first: float
    at: float
    worst: float
    limit: float

    def __str__(self) -> str:
        return (f"{self.coordinate} from t = {self.first:.6g} s (worst {self.worst:.4g} {self.unit} at t = {self.at:.6g} s, "
                f"limit {self.limit:.4g} {self.unit})")


def limits_exceeded(model: Model, t: Array, q: Array, v: Array, tau: Array) -> tuple[LimitViolation, ...]:
    """Return the violations by kind, in the order of the model.

    t (N,), q (N, nq), v, tau (N, nv). A velocity or effort limit of 0 and a position range of zero width mean no limit, as in
    many URDF files. Ball and free joints have no limits.
    """
    violations, q_of_v, speed, effort = [], _position_indices(model), *velocity_and_force_limits(model)
    for k in range(model.nv):
        unit = model.v_units[k]
        rows = [("velocity", unit + "/s", v[:, k], -speed[k], speed[k]),
                ("effort", model.tau_units[k], tau[:, k], -effort[k], effort[k])]
        if k in q_of_v:
            rows.append(("position", unit, q[:, q_of_v[k]], model.lower[k], model.upper[k]))
        violations += [excess for row in rows if (excess := limit_violation(t, model.v_names[k], *row))]
    return tuple(sorted(violations, key=lambda excess: KINDS.index(excess.kind)))


def _position_indices(model: Model) -> dict[int, int]:
    """Return the index in q of each velocity coordinate with position limits."""
    return {k: int(i) for k, i in enumerate(v_to_q_indices(model)) if i >= 0 and model.lower[k] < model.upper[k]}


def motion_limits(model: Model, name: str) -> Array:
    """Return the (nv,) limits of magnitudes of velocity, acceleration or jerk (name); infinite without limit."""
    limits: Array = getattr(model, f"{name}_limit")
    return np.where(limits == 0.0, np.inf, np.abs(limits))


def velocity_and_force_limits(model: Model) -> tuple[Array, Array]:
    """Return the (nv,) limits of velocities and efforts; infinite without limit."""
    speed, effort = (np.where(x == 0.0, np.inf, x) for x in (model.velocity_limit, model.effort_limit))
    return speed, effort


def runs_beyond_limits(model: Model, q: Array, v: Array, tau: Array | None) -> Mask:
    """Return (n,) whether `limits_exceeded` may find violations in runs q (n, R, nq), v, tau (n, R, nv).

    tau   None if there are no effort limits
    """
    speed, effort = velocity_and_force_limits(model)
    q_of_v = _position_indices(model)
    k, x = [*q_of_v], q[..., [*q_of_v.values()]]
    beyond = np.any((x < model.lower[k]) | (x > model.upper[k]), axis=(1, 2)) | np.any(np.abs(v) > speed, axis=(1, 2))
    return np.asarray(beyond if tau is None else beyond | np.any(np.abs(tau) > effort, axis=(1, 2)))


def position_limit_warnings(model: Model, t: Array, q: Array) -> list[LiedynWarning]:
    """Return a warning about the coordinates that exceed their position limits in runs q (n, R, nq) at t (R,).

    q is NaN after the end of a run.
    """
    violations, beyond = [], np.zeros(len(q), dtype=bool)
    for k, i in _position_indices(model).items():
        x, lower, upper = q[..., i], model.lower[k], model.upper[k]
        slack = _ROUNDING * max((abs(limit) for limit in (lower, upper) if np.isfinite(limit)), default=0.0)
        excess_of = np.maximum(lower - x, x - upper) - slack
        excess_of[np.isnan(excess_of)] = -np.inf
        farthest = excess_of.max(axis=1, initial=-np.inf)
        if not (farthest > 0.0).any():
            continue
        run = int(np.argmax(farthest))
        whole = np.isfinite(x[run])
        excess = limit_violation(t[whole], model.v_names[k], "position", model.v_units[k], x[run, whole], lower, upper)
        if excess is not None:                                             # None: rounding only
            violations.append((excess, run))
            beyond |= farthest > 0.0
    if not violations:
        return []
    violations.sort(key=lambda item: -abs(item[0].worst - item[0].limit) / max(abs(item[0].limit), 1.0))
    single = len(q) == 1
    named = list_names([f"{excess}" if single else f"{excess} in run {run}" for excess, run in violations], _MAX_NAMES)
    how_many = "" if single else f" in {np.count_nonzero(beyond)} of {len(q)} runs"
    return [LiedynWarning("beyond-limits",
                          f"{EXCEEDED[0]}{how_many}: {named}; limits are not enforced in rollouts")]


def merge_violations(earlier: Iterable[LimitViolation], later: Iterable[LimitViolation]) -> tuple[LimitViolation, ...]:
    """Return the violations of two parts of a motion, merged by kind and coordinate."""
    worst = {(excess.kind, excess.coordinate): excess for excess in earlier}
    for violation in later:
        known = worst.get((violation.kind, violation.coordinate))
        if known is None:
            worst[violation.kind, violation.coordinate] = violation
        else:
            farther = abs(violation.worst - violation.limit) > abs(known.worst - known.limit)
            first = min(known.first, violation.first)
            worst[violation.kind, violation.coordinate] = replace(violation if farther else known, first=first)
    return tuple(worst.values())


def limit_violation(t: Array, name: str, kind: str, unit: str, x: Array, lower: float, upper: float) -> LimitViolation | None:
    """Return the violation of [lower, upper] by x (N,); None without violation."""
    slack = _ROUNDING * max([np.ptp(x), *(abs(limit) for limit in (lower, upper) if np.isfinite(limit))])
    beyond = np.maximum(lower - slack - x, x - upper - slack)
    if not (beyond > 0.0).any():
        return None
    first, worst = int(np.argmax(beyond > 0.0)), int(np.argmax(beyond))
    return LimitViolation(kind, name, unit, float(t[first]), float(t[worst]), float(x[worst]),
                          float(upper if x[worst] > upper else lower))


def start_within_limits(scenario: Scenario, model: Model) -> Scenario:
    """Return the scenario of a robot file with initial positions for joints whose limits exclude zero, and a message.

    A scenario file is returned as it is. Joints that have an initial value, a prescribed motion or a law, and those that follow
    others, are left as they are.
    """
    if scenario.source != scenario.robot or scenario.initial_from is not None or scenario.control is not None:
        return scenario
    bound = {*bind_joints(scenario.initial_q, model), *bind_joints(scenario.initial_guess, model),
             *(name for name, rule in bind_joints(scenario.joints, model).items() if isinstance(rule.value, Prescribe))}
    start, neutral, rules, starts = neutral_within_limits(model, bound), model.neutral(), [], []
    for joint in model.joints:
        moved = np.flatnonzero(start[joint.q] != neutral[joint.q])
        if moved.size:
            inside = start[joint.q]
            rules.append(Rule(joint.name, tuple(map(float, inside))))
            names, units = model.v_names[joint.v], model.v_units[joint.v]
            starts += [f"{names[i]} = {inside[i]:.4g} {units[i]}" for i in moved]
    if not rules:
        return scenario
    message = f"zero is outside the limits of joints: the run starts at {list_names(starts, _MAX_NAMES)}"
    return replace(scenario, initial_q=(*scenario.initial_q, *rules),
                   warnings=(*scenario.warnings, LiedynWarning("started-within-limits", message)))


def start_warnings(model: Model, q: Array, verb: str = "starts at") -> list[LiedynWarning]:
    """Return a warning about coordinates whose initial position q (nq,) is beyond their limits. verb: between name and value."""
    messages, degrees = [], False
    for k, i in _position_indices(model).items():
        x, lower, upper = q[i], model.lower[k], model.upper[k]
        slack = _START_TOLERANCE * max((abs(limit) for limit in (lower, upper) if np.isfinite(limit)), default=0.0)
        if x < lower - slack or x > upper + slack:
            unit, (side, limit) = model.v_units[k], ("below", lower) if x < lower else ("above", upper)
            messages.append(f"{model.v_names[k]} {verb} {x:g} {unit}, {side} its limit {limit:g} {unit}")
            degrees |= unit == "rad" and abs(x) > max(_DEGREES * abs(limit), 2.0 * math.pi)
    hint = "check whether the angles are in degrees" if degrees else None
    return [LiedynWarning("beyond-limits", f"{EXCEEDED[0]}: {list_names(messages, _MAX_NAMES, '; ')}",
                          hint=hint)] if messages else []


def limit_warnings(exceeded: Iterable[LimitViolation], fixed: Iterable[LimitViolation] = (), stopped: Collection[str] = (), *,
                   recorded: bool = False) -> WarningLog:
    """Return one warning for each kind of limit, the worst violation first.

    exceeded   violations of joints moved by forces
    fixed      violations of joints while they are prescribed or locked, on which limits never act
    stopped    names of coordinates with stops, which yield a little
    recorded   whether the motion is recorded

    Positions that are worst at t = 0 are omitted unless the motion is recorded, because `start_warnings` reports them.
    """
    warnings = WarningLog()
    for kind in KINDS:
        mend = " (limits.joints excludes them)" if stopped and kind == "position" else _SUGGESTIONS[kind]
        why = "" if recorded else f"; limits are not enforced{mend}"
        free = [violation for violation in exceeded if not (kind == "position" and violation.coordinate in stopped)]
        groups = ((merge_violations(free, fixed), why),) if kind == "velocity" else ((free, why), (fixed, _FIXED))
        for group, reason in groups:
            violations = [violation for violation in group
                          if violation.kind == kind and (recorded or kind != "position" or violation.at != 0.0)]
            if violations:
                warnings.add("beyond-limits", f"{EXCEEDED[KINDS.index(kind)]}: {_describe_worst(violations)}{reason}")
    return warnings


def _describe_worst(group: list[LimitViolation]) -> str:
    """Return a description of the worst violations of one kind."""
    min_size = 1.0 if group[0].kind == "position" else 1e-300
    group = sorted(group, key=lambda violation: -abs(violation.worst - violation.limit) / max(abs(violation.limit), min_size))
    return list_names([str(violation) for violation in group], _MAX_NAMES)
