"""`limits` of a scenario, from its YAML and back."""
from __future__ import annotations

from liedyn.io.scenarios.scenario import Rule
from liedyn.io.scenarios.stop_keys import LIMIT_STOPS, MODES, WORDS, LimitStops
from liedyn.io.yaml_text import Node


def read_limits(node: Node, method: str) -> LimitStops | None:
    """None where limits are only noted. method: of the integrator."""
    if node.kind == "text":
        mode = WORDS[node.choice(tuple(WORDS))]
        found = LimitStops(mode, place=node.place) if mode else None
    elif node.kind == "mapping":
        found = _stops(node)
    else:
        raise node.wrong(f"one of {', '.join(WORDS)}, or a mapping with {', '.join(LIMIT_STOPS)}")
    if found and method == "generalized_alpha":              # its Newton iteration does not know the slopes of stops
        raise node.problem("generalized_alpha does not go with stops at limits", expected="another integrator.method")
    return found


def _stops(node: Node) -> LimitStops:
    given = node.mapping(LIMIT_STOPS)
    mode = LIMIT_STOPS.kind_of(given)
    LIMIT_STOPS.check_kind(given, mode, f"{mode} stops")
    if "stiffness" in given and "sink" in given:
        raise given["sink"].problem("both stiffness and sink", expected="one of them")
    values = {key: LIMIT_STOPS.value(given, key) for key in MODES[mode] if key in given}
    joints = tuple(Rule(child.text(), "stop", child.place) for child in given["joints"].items(least=1, of="joints")) \
        if "joints" in given else ()
    return LimitStops(mode, **values, joints=joints, place=node.place)


def plain_limits(stops: LimitStops) -> dict:
    """As in the file."""
    values = {key: getattr(stops, key) for key in MODES[stops.mode]}
    return {"mode": stops.mode, **{key: value for key, value in values.items() if value is not None},
            **({"joints": [rule.pattern for rule in stops.joints]} if stops.joints else {})}
