"""Names and patterns of a scenario bound to the names of a model."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import numpy as np

from liedyn.codegen.trace import traced_module
from liedyn.dynamics.kinematics import link_pose, link_twist
from liedyn.errors import LiedynWarning, Place, ScenarioError, TrajectoryError, UsageError, nearest
from liedyn.integrators.contact_forces import twist_jacobian
from liedyn.io.scenarios.scenario import Pd, Rule, Scenario
from liedyn.kernels.simulation.signals import COMPONENTS, NUMBERS_PER_POINT, Points, Signals
from liedyn.model.spatial import skew


def bind_rules(rules: Sequence[Rule], names: Sequence[str], what: str, fixed: Sequence[str] = ()) -> dict[str, Rule]:
    """The rule that holds for each name: its own, else that of the longest pattern that matches, "*" last.

    Raises ScenarioError for a pattern that matches nothing (but "*") and for two equally long ones that match one name.
    """
    best: dict[str, tuple[float, Rule]] = {}
    for rule in rules:
        for name, rank in _matches(rule, names, what, fixed):
            other = best.get(name)
            if other and other[0] == rank:
                raise ScenarioError(f"{what} {name} matches two patterns of the same length", place=rule.place,
                                    found=f"{other[1].pattern} and {rule.pattern}", hint=f"give {name} a separate entry")
            if not other or other[0] < rank:
                best[name] = rank, rule
    return {name: best[name][1] for name in names if name in best}


def bind_joints(rules: Sequence[Rule], model, names: Sequence[str] | None = None) -> dict[str, Rule]:
    """`bind` to these joints, by default all that move."""
    fixed = [joint.name for joint in model.description.joints if joint.name not in model.joint_names]
    return bind_rules(rules, model.joint_names if names is None else names, "joint", fixed)


def phase_rules(scenario: Scenario, model, phase: str | None) -> dict[str, Rule]:
    """What each joint does in a phase: the phase's rule for it, else the scenario's. A run begins in the first phase."""
    own = next((one.joints for one in scenario.phases if one.name == phase), ())
    return bind_joints(scenario.joints, model) | bind_joints(own, model)


def continuous_pid(scenario: Scenario) -> Pd | None:
    """A pid law whose integral is part of the state; None where there is none, or where laws are sampled."""
    rules = (*scenario.joints, *(rule for phase in scenario.phases for rule in phase.joints))
    laws = (rule.value for rule in rules if isinstance(rule.value, Pd) and rule.value.ki is not None)
    return next(laws, None) if scenario.sampling is None else None


def find_index(name: str, names: Sequence[str], what: str, place: Place) -> int:
    """Index of a name; ScenarioError listing close ones."""
    if name not in names:
        raise unknown_name_error(name, names, what, place)
    return list(names).index(name)


def matching_names(pattern: str, names: Sequence[str]) -> list[str]:
    """The names that a pattern speaks of: the one that it is, whatever signs are in it, else those that match it."""
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def select(patterns: str | Sequence[str], names: Sequence[str], what: str, error: Callable[[str], Exception] | None = None,
           shown: Sequence[str] | None = None) -> list[int]:
    """Indices of the names that one or several patterns match, in the order of the patterns, each once.

    Raises `error(pattern)` for a pattern that matches nothing, by default a UsageError that suggests close names or else lists
    those that exist. what: a name is, for this message. shown: listed instead of `names`."""
    found: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        hits = matching_names(pattern, names)
        if not hits and error:
            raise error(pattern)
        if not hits:
            hint = nearest(pattern, names, 3, 0.5) or f"there are {format_names(names if shown is None else shown, 12) or 'none'}"
            raise UsageError(f"no {what} matches {pattern!r}; {hint}")
        found.update(dict.fromkeys(hits))
    return [names.index(name) for name in found]


def joint_coordinates(model, patterns: str | Sequence[str], what: str = "moving joint") -> np.ndarray:
    """(nv,) bool: velocity coordinates of the joints that patterns match. Raises as `select` does."""
    return joint_mask([model.joint_names[k] for k in select(patterns, model.joint_names, what)], model)


def format_names(names: Sequence[str], most: int) -> str:
    """So many of the names, for a message."""
    return ", ".join([*names[:most], *(["…"] if len(names) > most else [])])


def unknown_name_error(name: str, names: Sequence[str], what: str, place: Place, problem: str = "no such") -> ScenarioError:
    """The error for a name that the robot does not have."""
    if not names:
        return ScenarioError(f"the robot has no {what}s", place=place, found=name)
    hint, shown = nearest(name, names, 3, 0.5), [*names[:8], *(["…"] if len(names) > 8 else [])]
    return ScenarioError(f"{problem} {what}", place=place, found=name, expected=None if hint else f"one of {', '.join(shown)}",
                         hint=hint)


def _matches(rule: Rule, names: Sequence[str], what: str, fixed: Sequence[str]) -> list[tuple[str, float]]:
    """Names that the rule speaks of, and how specific it is."""
    if rule.pattern in names:
        return [(rule.pattern, float("inf"))]
    if rule.pattern == "*":
        return [(name, 0.0) for name in names]
    hits = [(name, float(len(rule.pattern))) for name in matching_names(rule.pattern, names)]
    if hits:
        return hits
    if rule.pattern in fixed:
        raise ScenarioError(f"joint {rule.pattern} is fixed: it has no coordinates", place=rule.place)
    is_pattern = any(sign in rule.pattern for sign in "*?[")
    raise unknown_name_error(rule.pattern, names, what, rule.place, "the pattern matches no" if is_pattern else "no such")


# Values of joints that a scenario or a recording gives: an initial state, one that a law is about, angles that wrap -----

_UNIT_NORM = 1e-6                # a quaternion typed with seven digits is meant to be a unit one
_TURN = 2.0 * math.pi
_WRAP_TOLERANCE = 0.5            # rad: a change between rows that is as close to full turns is a wrap of the angle
_ROUNDING = 1e-12                # of a norm: a change that is not worth a word


def v_to_q_indices(model) -> np.ndarray:
    """(nv,) index in q of each velocity coordinate; -1 for those of ball and free joints, which have none of their own."""
    q_of_v = np.full(model.nv, -1, dtype=np.int64)
    for joint in model.joints:
        if joint.screws is not None:
            q_of_v[joint.v] = np.arange(joint.q.start, joint.q.stop)
    return q_of_v


def joint_mask(names, model) -> np.ndarray:
    """(nv,) bool: those of these joints."""
    return np.array([joint.name in names for joint in model.joints for _ in range(joint.v.start, joint.v.stop)], dtype=bool)


def coordinate_value(given, k: int, n: int, name: str, place: Place, what: str):
    """What is given for coordinate k of the n of joint `name`: one for all, or a tuple of n. what: these are, for messages."""
    if not isinstance(given, tuple):
        return given
    if len(given) != n:
        raise ScenarioError(f"joint {name} has {n} coordinate{'s' * (n != 1)}", place=place, found=f"{len(given)} {what}",
                            expected=f"a list of {n}" if n > 1 else "one value")
    return given[k]


def write_values(values: np.ndarray, rules: tuple[Rule, ...], model, index, default_rules: dict | None = None) -> dict[str, Rule]:
    """Write the values of joints, those of `default_rules` where `rules` give none; the rule by joint."""
    bound = (default_rules or {}) | bind_joints(rules, model)
    for name, rule in bound.items():
        part = index(name)
        if len(rule.value) != part.stop - part.start:
            raise ScenarioError(f"joint {name}: wrong number of values", place=rule.place,
                                found=len(rule.value), expected=str(part.stop - part.start))
        values[part] = rule.value
    return bound


def unwrap_angle(x: np.ndarray, name: str, lower: float, upper: float) -> tuple[np.ndarray, int]:
    """Samples x (N,) of an angle [rad] without jumps by full turns, and how many jumps there were. TrajectoryError where the
    limits exclude the other turns; limits that are equal are none."""
    steps = np.diff(x)
    turns = np.round(steps / _TURN)
    turns[np.abs(steps - _TURN * turns) > _WRAP_TOLERANCE] = 0.0
    if not turns.any():
        return x, 0
    out = x - _TURN * np.r_[0.0, np.cumsum(turns)]
    if lower < upper and (out.min() < lower or out.max() > upper):
        row = int(np.flatnonzero(turns)[0]) + 1
        raise TrajectoryError(f"{name} jumps by a full turn at row {row + 1}, and its limits exclude further turns",
                              found=f"{x[row - 1]:.6g} rad, then {x[row]:.6g} rad",
                              expected=f"a continuous angle within [{lower:.4g}, {upper:.4g}] rad",
                              hint="velocities cannot be derived from an angle that jumps; give v and a as columns")
    return out, int(np.count_nonzero(turns))


def normalize_quaternions(q: np.ndarray, rules: dict[str, Rule], model) -> list[LiedynWarning]:
    """Check, and rid of rounding, the quaternions of ball and free joints among `rules`. Returns warnings."""
    found = []
    for joint in model.joints:
        if joint.name in rules and joint.screws is None:
            found += _normalize_quaternion(q[joint.q], joint.name, rules[joint.name].place)
    return found


def _normalize_quaternion(part: np.ndarray, name: str, place: Place) -> list[LiedynWarning]:
    """In a ball or free joint's coordinates."""
    quaternion = part[-4:]
    norm = math.hypot(*quaternion)                             # does not overflow
    if abs(norm - 1.0) > _UNIT_NORM:
        unit = ", ".join(f"{x:.9g}" for x in quaternion / norm) if norm > 0.0 else "0, 0, 0, 1"
        raise ScenarioError(f"the quaternion x y z w of joint {name} is not of unit norm", place=place, found=round(norm, 9),
                            expected="norm 1", hint=f"the unit quaternion is [{unit}]")
    quaternion /= norm
    return [LiedynWarning("quaternion-scaled",
                          f"the quaternion had norm {norm!r}; it was scaled to "
                          "1", place=place)] if abs(norm - 1.0) > _ROUNDING else []


# What expressions read besides coordinates: points of links, at a given state, and their derivatives by it --------------

def body_path(model, link: int) -> list[int]:
    """Bodies from the ground to that of a link."""
    parent, path, body = model.index[8:8 + model.n_bodies], [], int(model.link_body[link])
    while body > 0:
        path.append(body)
        body = int(parent[body])
    return path[::-1]


def concatenate_paths(paths) -> tuple[np.ndarray, np.ndarray]:
    """Where each begins in all of them, consecutively; and these."""
    return np.cumsum([0, *map(len, paths)]).astype(np.int64), np.concatenate([[], *paths]).astype(np.int64)


def make_points(model, keys) -> Points:
    """keys: link and place on it, of each point."""
    links = np.array([link for link, _ in keys], dtype=np.int64)
    return Points(links, *concatenate_paths([body_path(model, link) for link in links]),
                  np.array([at for _, at in keys], dtype=float).reshape(-1))


def with_measured_values(model, signals: Signals, q, v) -> Signals:
    """The signals, where the points of links are those of a state. Joint forces are not known here."""
    if not signals.measured.size:
        return signals
    measured, kernels = np.zeros(signals.measured.size), traced_module("kernels.simulation.signals")
    tree = traced_module("joints.joint_model").tree_views(model.index, model.constants)
    kernels.measure_points(signals.points, tree, np.asarray(q, dtype=float), np.asarray(v, dtype=float), measured)
    return signals._replace(measured=measured)


def measured_gradient(model, signals: Signals, i: int, q, v) -> np.ndarray:
    """(2 nv,) derivative by [dq; dv] of number i of what is measured, of a point:
    d(R u) = R (du + dphi x u), where the link turns by dphi = J_w dq."""
    (j, component), points = divmod(i - model.nv, NUMBERS_PER_POINT), signals.points
    model, link, p = model.spanning_tree(), model.link_names[points.link[j]], points.at[3 * j:3 * j + 3]
    R, V = link_pose(model, q, link)[:3, :3], link_twist(model, q, v, link)
    J, dV = twist_jacobian(model, q, v, link)
    turned = np.hstack([J[:3], 0 * J[:3]])
    if component < 3:
        return (R @ np.hstack([J[3:] - skew(p) @ J[:3], 0 * J[3:]]))[component]
    u, du = (V[3:] + np.cross(V[:3], p), dV[3:] - skew(p) @ dV[:3]) if component < 6 else (V[:3], dV[:3])
    return (R @ (du - skew(u) @ turned))[component % 3]


def measured_name(model, signals: Signals, i: int) -> str:
    """For messages."""
    j, component = divmod(i - model.nv, NUMBERS_PER_POINT)
    return f"{COMPONENTS[component]}({model.link_names[signals.points.link[j]]})"
