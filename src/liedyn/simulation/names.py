"""Names and patterns of a scenario bound to the names of a model."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from liedyn.errors import Place, ScenarioError, UsageError, nearest
from liedyn.io.scenarios.scenario import Pd, Rule, Scenario


def bind(rules: Sequence[Rule], names: Sequence[str], what: str, fixed: Sequence[str] = ()) -> dict[str, Rule]:
    """The rule that holds for each name: its own, else that of the longest pattern that matches, "*" last.

    Raises ScenarioError for a pattern that matches nothing (but "*") and for two equally long ones that match one name.
    """
    best: dict[str, tuple[float, Rule]] = {}
    for rule in rules:
        for name, rank in _matches(rule, names, what, fixed):
            other = best.get(name)
            if other and other[0] == rank:
                raise ScenarioError(f"{what} {name} matches two patterns of the same length", place=rule.place,
                                    found=f"{other[1].pattern} and {rule.pattern}", hint=f"give {name} an entry of its own")
            if not other or other[0] < rank:
                best[name] = rank, rule
    return {name: best[name][1] for name in names if name in best}


def bind_joints(rules: Sequence[Rule], model, names: Sequence[str] | None = None) -> dict[str, Rule]:
    """`bind` to these joints, by default all that move."""
    fixed = [joint.name for joint in model.description.joints if joint.name not in model.joint_names]
    return bind(rules, model.joint_names if names is None else names, "joint", fixed)


def phase_rules(scenario: Scenario, model, phase: str | None) -> dict[str, Rule]:
    """What each joint does in a phase: the phase's rule for it, else the scenario's. A run begins in the first phase."""
    own = next((one.joints for one in scenario.phases if one.name == phase), ())
    return bind_joints(scenario.joints, model) | bind_joints(own, model)


def continuous_pid(scenario: Scenario) -> Pd | None:
    """A pid law whose integral is part of the state; None where there is none, or where laws are sampled."""
    rules = (*scenario.joints, *(rule for phase in scenario.phases for rule in phase.joints))
    laws = (rule.value for rule in rules if isinstance(rule.value, Pd) and rule.value.ki is not None)
    return next(laws, None) if scenario.sampling is None else None


def find(name: str, names: Sequence[str], what: str, place: Place) -> int:
    """Index of a name; ScenarioError listing close ones."""
    if name not in names:
        raise unknown(name, names, what, place)
    return list(names).index(name)


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """The names that a pattern speaks of: the one that it is, whatever signs are in it, else those that match it."""
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def named(patterns: str | Sequence[str], names: Sequence[str], refusal: Callable[[str], str]) -> list[str]:
    """The names that patterns, one or several, speak of: in the order of the patterns, each once. refusal(pattern): what the
    UsageError says of one that matches nothing."""
    found: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        hits = matching(pattern, names)
        if not hits:
            raise UsageError(refusal(pattern))
        found.update(dict.fromkeys(hits))
    return list(found)


def listed(names: Sequence[str], most: int) -> str:
    """So many of the names, for a message."""
    return ", ".join([*names[:most], *(["…"] if len(names) > most else [])])


def unknown(name: str, names: Sequence[str], what: str, place: Place, problem: str = "no such") -> ScenarioError:
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
    hits = [(name, float(len(rule.pattern))) for name in matching(rule.pattern, names)]
    if hits:
        return hits
    if rule.pattern in fixed:
        raise ScenarioError(f"joint {rule.pattern} is fixed: it has no coordinates", place=rule.place)
    is_pattern = any(sign in rule.pattern for sign in "*?[")
    raise unknown(rule.pattern, names, what, rule.place, "the pattern matches no" if is_pattern else "no such")
