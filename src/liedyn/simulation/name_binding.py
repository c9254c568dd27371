"""Names and patterns of a scenario, bound to the names of a model."""
from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.codegen.trace import traced_module
from liedyn.dynamics.kinematics import link_pose, link_twist
from liedyn.errors import LiedynWarning, Place, ScenarioError, TrajectoryError, UsageError, list_names, nearest
from liedyn.integrators.contact_forces import twist_jacobian
from liedyn.io.scenarios.scenario import Pd, Rule, Scenario
from liedyn.kernels.simulation.signals import COMPONENTS, NUMBERS_PER_POINT, Points, Signals
from liedyn.model.description import INDEX_HEADER
from liedyn.model.model import Model
from liedyn.model.name_patterns import matching_names, most_specific, pattern_rank
from liedyn.model.spatial import full_turns, skew

Value = TypeVar("Value")


def bind_rules(rules: Sequence[Rule], names: Sequence[str], kind: str, fixed: Sequence[str] = ()) -> dict[str, Rule]:
    """Return the rule of each name: its own rule, otherwise that of the longest matching pattern, "*" last.

    Raises ScenarioError for a pattern other than "*" without match, and for two patterns of equal length that match one name.
    """
    def conflict(name: str, first: Rule, second: Rule) -> ScenarioError:
        return ScenarioError(f"{kind} {name} matches two patterns of the same length", place=second.place,
                             found=f"{first.pattern} and {second.pattern}", hint=f"give {name} a separate entry")

    best = most_specific(((name, rank, rule) for rule in rules for name, rank in _matches(rule, names, kind, fixed)), conflict)
    return {name: best[name] for name in names if name in best}


def bind_joints(rules: Sequence[Rule], model: Model, names: Sequence[str] | None = None) -> dict[str, Rule]:
    """Return the rules of these joints (`bind_rules`), by default of all that move."""
    fixed = [joint.name for joint in model.description.joints if joint.name not in model.joint_names]
    return bind_rules(rules, model.joint_names if names is None else names, "joint", fixed)


def phase_rules(scenario: Scenario, model: Model, name: str | None) -> dict[str, Rule]:
    """Return the rule of each joint in a phase: the rule of the phase, otherwise that of the scenario."""
    rules = next((phase.joints for phase in scenario.phases if phase.name == name), ())
    return bind_joints(scenario.joints, model) | bind_joints(rules, model)


def continuous_pid(scenario: Scenario) -> Pd | None:
    """Return a pid law whose integral is part of the state; None if there is none, or if laws are sampled."""
    rules = (*scenario.joints, *(rule for phase in scenario.phases for rule in phase.joints))
    laws = (rule.value for rule in rules if isinstance(rule.value, Pd) and rule.value.ki is not None)
    return next(laws, None) if scenario.sampling is None else None


def find_index(name: str, names: Sequence[str], kind: str, place: Place) -> int:
    """Return the index of a name. Raises ScenarioError with similar names if there is none."""
    if name not in names:
        raise unknown_name_error(name, names, kind, place)
    return list(names).index(name)


def find_indices(selected: Iterable[str], names: Sequence[str], kind: str, place: Place) -> list[int]:
    """Return the indices of the selected names. Raises ScenarioError for a name that does not exist or is repeated."""
    indices: list[int] = []
    for name in selected:
        index = find_index(name, names, kind, place)
        if index in indices:
            raise ScenarioError(f"a {kind} is given twice", place=place, found=name)
        indices.append(index)
    return indices


def select(patterns: str | Sequence[str], names: Sequence[str], kind: str, error: Callable[[str], Exception] | None = None,
           listed: Sequence[str] | None = None) -> list[int]:
    """Return the indices of the names that match one or several patterns, in the order of the patterns, without repetition.

    kind    of the names, for messages
    error   (pattern) -> the exception for a pattern without match; by default a UsageError with similar or all names
    listed  names in this message, instead of `names`
    """
    selected: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        hits = matching_names(pattern, names)
        if not hits and error:
            raise error(pattern)
        if not hits:
            same_quantity = [name for name in names if "." in str(pattern) and name.startswith(pattern.partition(".")[0] + ".")]
            similar = nearest(pattern, same_quantity or names, 3, 0.5)
            all_names = list_names(same_quantity or (names if listed is None else listed), 12) or "none"
            raise UsageError(f"no {kind} matches {pattern!r}; {similar or f'the names are {all_names}'}")
        selected.update(dict.fromkeys(hits))
    return [names.index(name) for name in selected]


def joint_coordinates(model: Model, patterns: str | Sequence[str]) -> Mask:
    """Return the (nv,) mask of the velocity coordinates of the joints that match the patterns. Raises as `select` does."""
    return joint_mask([model.joint_names[k] for k in select(patterns, model.joint_names, "moving joint")], model)


def unknown_name_error(name: str, names: Sequence[str], kind: str, place: Place, problem: str = "no such") -> ScenarioError:
    """Return the error for a name that the robot does not have."""
    if not names:
        return ScenarioError(f"the robot has no {kind}s", place=place, found=name)
    hint = nearest(name, names, 3, 0.5)
    return ScenarioError(f"{problem} {kind}", place=place, found=name,
                         expected=None if hint else f"one of {list_names(names, 8)}", hint=hint)


def _matches(rule: Rule, names: Sequence[str], kind: str, fixed: Sequence[str]) -> list[tuple[str, float]]:
    """Return the names that the rule matches, with the specificity of the match."""
    hits = [(name, pattern_rank(rule.pattern, names)) for name in matching_names(rule.pattern, names)]
    if hits or rule.pattern == "*":
        return hits
    if rule.pattern in fixed:
        raise ScenarioError(f"joint {rule.pattern} is fixed: it has no coordinates", place=rule.place)
    is_pattern = any(sign in rule.pattern for sign in "*?[")
    raise unknown_name_error(rule.pattern, names, kind, rule.place, "the pattern matches no" if is_pattern else "no such")


# Values of joints in a scenario or a recording: initial states, reference states, angles that wrap ----------------------

_UNIT_NORM = 1e-6                # tolerance of norms: quaternions with seven digits are accepted
_ROUNDING = 1e-12                # of a norm: smaller changes cause no warning


def v_to_q_indices(model: Model) -> Integers:
    """Return the (nv,) index in q of each velocity coordinate; -1 for ball and free joints."""
    q_of_v = np.full(model.nv, -1, dtype=np.int64)
    for joint in model.joints:
        if joint.screws is not None:
            q_of_v[joint.v] = np.arange(joint.q.start, joint.q.stop)
    return q_of_v


def joint_mask(names: Collection[str], model: Model) -> Mask:
    """Return the (nv,) mask of the velocity coordinates of these joints."""
    return np.array([joint.name in names for joint in model.joints for _ in range(joint.v.start, joint.v.stop)], dtype=bool)


def coordinate_value(values: tuple[Value, ...], k: int, n: int, name: str, place: Place, kind: str) -> Value:
    """Return the value for coordinate k of the n coordinates of joint `name`, which needs n values.

    kind    of the values, for messages

    Raises ScenarioError for another number of values.
    """
    if len(values) != n:
        raise ScenarioError(f"joint {name} has {n} coordinate{'s' * (n != 1)}", place=place, found=f"{len(values)} {kind}",
                            expected=f"a list of {n}" if n > 1 else "one value")
    return values[k]


def write_values(values: Array, rules: Sequence[Rule], model: Model, index: Callable[[str], slice],
                 default_rules: Mapping[str, Rule] | None = None) -> dict[str, Rule]:
    """Write the values of joints and return the rule of each joint. `default_rules` apply to joints without rule."""
    bound = dict(default_rules or {}) | bind_joints(rules, model)
    for name, rule in bound.items():
        part, coordinates = index(name), np.atleast_1d(np.asarray(rule.value, dtype=float))
        if len(coordinates) != part.stop - part.start:
            raise ScenarioError(f"joint {name}: wrong number of values", place=rule.place,
                                found=len(coordinates), expected=str(part.stop - part.start))
        values[part] = coordinates
    return bound


def unwrap_angle(x: Array, name: str, lower: float, upper: float) -> tuple[Array, int]:
    """Return samples x (N,) of an angle [rad] without jumps by full turns, and the number of jumps.

    Raises TrajectoryError where the limits exclude the other turns. Equal limits are ignored.
    """
    turns = full_turns(x)
    jumps = np.flatnonzero(np.diff(turns))
    if not len(jumps):
        return x, 0
    out = x - turns
    if lower < upper and (out.min() < lower or out.max() > upper):
        row = int(jumps[0]) + 1
        raise TrajectoryError(f"{name} jumps by a full turn at row {row + 1}, and its limits exclude further turns",
                              found=f"{x[row - 1]:.6g} rad, then {x[row]:.6g} rad",
                              expected=f"a continuous angle within [{lower:.4g}, {upper:.4g}] rad",
                              hint="velocities cannot be derived from an angle that jumps; give v and a as columns")
    return out, len(jumps)


def normalize_quaternions(q: Array, rules: Mapping[str, Rule], model: Model) -> list[LiedynWarning]:
    """Check and normalize the quaternions of ball and free joints among `rules`, and return warnings."""
    messages = []
    for joint in model.joints:
        if joint.name in rules and joint.screws is None:
            messages += _normalize_quaternion(q[joint.q], joint.name, rules[joint.name].place)
    return messages


def _normalize_quaternion(part: Array, name: str, place: Place) -> list[LiedynWarning]:
    """Check and normalize the quaternion in the coordinates of a ball or free joint."""
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


# Points of links in expressions: their motion at a state, and its derivatives with respect to the state -----------------

def body_path(model: Model, link: int) -> list[int]:
    """Return the bodies from the ground to that of a link."""
    parent, path, body = model.index[INDEX_HEADER:INDEX_HEADER + model.n_bodies], [], int(model.link_body[link])
    while body > 0:
        path.append(body)
        body = int(parent[body])
    return path[::-1]


def concatenate_paths(paths: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """Return the start of each path in the concatenation of all, and the concatenation."""
    return np.cumsum([0, *map(len, paths)]).astype(np.int64), np.concatenate([[], *paths]).astype(np.int64)


def make_points(model: Model, keys: Sequence[tuple[int, Sequence[float]]]) -> Points:
    """Return the points of these links (index) at these positions in link coordinates [m]."""
    links = np.array([link for link, _ in keys], dtype=np.int64)
    return Points(links, *concatenate_paths([body_path(model, link) for link in links]),
                  np.array([at for _, at in keys], dtype=float).reshape(-1))


def with_measured_values(model: Model, signals: Signals, q: Array, v: Array) -> Signals:
    """Return the signals with the values of points of links at a state. Generalized forces are not set."""
    if not signals.measured.size:
        return signals
    measured, kernels = np.zeros(signals.measured.size), traced_module("kernels.simulation.signals")
    tree = traced_module("joints.joint_model").tree_views(model.index, model.constants)
    kernels.measure_points(signals.points, tree, np.asarray(q, dtype=float), np.asarray(v, dtype=float), measured)
    return signals._replace(measured=measured)


def measured_gradient(model: Model, signals: Signals, i: int, q: Array, v: Array) -> Array:
    """Return the (2 nv,) derivative of measured number i, of a point, with respect to [dq; dv].

    d(R u) = R (du + dphi x u), where the link turns by dphi = J_w dq.
    """
    (j, component), points = divmod(i - model.nv, NUMBERS_PER_POINT), signals.points
    model, link, p = model.spanning_tree(), model.link_names[points.link[j]], points.at[3 * j:3 * j + 3]
    R, V = link_pose(model, q, link)[:3, :3], link_twist(model, q, v, link)
    J, dV = twist_jacobian(model, q, v, link)
    turned = np.hstack([J[:3], 0 * J[:3]])
    if component < 3:
        gradient: Array = R @ np.hstack([J[3:] - skew(p) @ J[:3], 0 * J[3:]])
    else:
        u, du = (V[3:] + np.cross(V[:3], p), dV[3:] - skew(p) @ dV[:3]) if component < 6 else (V[:3], dV[:3])
        gradient = R @ (du - skew(u) @ turned)
    return np.asarray(gradient[component % 3])


def measured_name(model: Model, signals: Signals, i: int) -> str:
    """Return the name of measured number i for messages."""
    j, component = divmod(i - model.nv, NUMBERS_PER_POINT)
    return f"{COMPONENTS[component]}({model.link_names[signals.points.link[j]]})"
