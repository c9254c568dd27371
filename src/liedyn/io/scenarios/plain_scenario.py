"""`Scenario` -> plain values in the layout of its file."""
from __future__ import annotations

import math
import os

from liedyn.io.scenarios.contact_file import plain_contacts
from liedyn.io.scenarios.events import plain_event, plain_phase
from liedyn.io.scenarios.motor_keys import plain_motor
from liedyn.io.scenarios.sampling import plain_sampling
from liedyn.io.scenarios.scenario import (
    METHODS,
    STABILIZATIONS,
    Begun,
    Column,
    Constant,
    Control,
    Drive,
    Expression,
    ExternalForce,
    Motion,
    Prescribe,
    Quintic,
    Rule,
    Scenario,
    Signal,
    Sine,
    Stabilization,
    Torque,
)
from liedyn.io.scenarios.stop_file import plain_limits
from liedyn.io.scenarios.waypoints import Waypoints, plain_waypoints


def to_plain(scenario: Scenario, folder: str | os.PathLike | None = None) -> dict:
    """The resolved scenario as plain values in the layout of the file: written as YAML it reads back equal.

    Paths are relative to `folder`, or absolute.
    """
    def path(file: str) -> str:
        return os.path.abspath(file) if folder is None else os.path.relpath(file, folder)

    def rules(group: tuple[Rule, ...], plain) -> dict:
        return {rule.pattern: plain(rule.value) for rule in group}

    def numbers(values: tuple[float, ...]):
        return values[0] if len(values) == 1 else list(values)

    def signal(value: Signal | tuple[Signal, ...]):
        return [_plain_signal(s, path) for s in value] if isinstance(value, tuple) else _plain_signal(value, path)

    def drive(value: Drive | Motion) -> dict:
        if isinstance(value, Motion):
            return {key: signal(getattr(value, key)) for key in ("xyz", "rpy") if getattr(value, key)}
        if isinstance(value, Prescribe) and isinstance(value.signals, Motion):
            return {"prescribe": {value.level: drive(value.signals)}}
        if isinstance(value, Prescribe) and isinstance(value.signals, Waypoints):
            return {"prescribe": {value.level: {"waypoints": plain_waypoints(value.signals)}}}
        if isinstance(value, Prescribe):
            return {"prescribe": {value.level: signal(value.signals)}}
        if isinstance(value, Torque):
            return {"torque": signal(value.signals)}
        gains = {key: list(g) if isinstance(g, tuple) else g
                 for key, g in (("kp", value.kp), ("ki", value.ki), ("kd", value.kd)) if g is not None}
        gravity = {"gravity": True} if value.gravity else {}
        given = gains | {"target": signal(value.target), "feedforward": signal(value.feedforward)} | gravity
        return {"torque": {"pd" if value.ki is None else "pid": given}}

    def law(value: Control) -> dict:
        named = {"law": value.law, **({"joints": [rule.pattern for rule in value.joints]} if value.joints else {})}
        if value.law == "gravity_compensation":
            return named
        if value.law == "state_feedback":
            about = {"q": rules(value.about_q, numbers), "v": rules(value.about_v, numbers)}
            gain = {name: dict(zip(value.columns, row, strict=True)) for name, row in zip(value.rows, value.gain, strict=True)} \
                if value.rows else [list(row) for row in value.gain]
            return named | {"gain": gain, "about": about}
        poles = {"poles": list(value.poles)} if value.poles else {"bandwidth": value.bandwidth}
        if value.law == "task_space":
            target = {"waypoints": plain_waypoints(value.target)} if isinstance(value.target, Waypoints) else drive(value.target)
            posture = {"posture": rules(value.posture, numbers)} if value.posture else {}
            return {"law": value.law, "link": value.link, "point": list(value.point), "target": target, **poles, **posture}
        return {"law": value.law, "motion": rules(value.motion, signal), **poles}

    kept = scenario.stabilization
    integrator = {key: getattr(scenario.integrator, key) for key in ("method", *METHODS[scenario.integrator.method])}
    values = {
        "robot": path(scenario.robot), "loops": scenario.loops and path(scenario.loops), "base": scenario.base,
        "gravity": scenario.gravity and list(scenario.gravity),
        "duration": scenario.duration, "output_step": scenario.output_step, "passive": scenario.passive, "seed": scenario.seed,
        "integrator": {key: value for key, value in integrator.items() if value != math.inf},
        "initial": {"q": rules(scenario.initial_q, numbers), "v": rules(scenario.initial_v, numbers),
                    **({} if scenario.assemble else {"assemble": False}),
                    **({"from": path(scenario.initial_from.file)} if scenario.initial_from else {})},
        "constraints": {"stabilization": kept.method, **{key: getattr(kept, key) for key in STABILIZATIONS[kept.method]}}
        if kept != Stabilization() else None,
        "drives": rules(scenario.drives, drive) or None, "control": scenario.control and law(scenario.control),
        "sampling": scenario.sampling and plain_sampling(scenario.sampling),
        "saturate": {rule.pattern: rule.value for rule in scenario.saturate} or None,
        "motors": rules(scenario.motors, plain_motor) or None,
        "limits": scenario.limits and plain_limits(scenario.limits),
        "contacts": scenario.contacts and plain_contacts(scenario.contacts),
        "joints": rules(scenario.joints, drive), "actuators": rules(scenario.actuators, signal),
        "external_forces": [_plain_force(force, signal) for force in scenario.forces],
        "phases": {one.name: plain_phase(one, lambda group: rules(group, drive)) for one in scenario.phases} or None,
        "events": {one.name: plain_event(one, lambda group: rules(group, numbers)) for one in scenario.events} or None}
    return {key: value for key, value in values.items() if value is not None}


def _plain_force(force: ExternalForce, signal) -> dict:
    window = {"from": force.start, "until": force.end}
    return {"link": force.link, "frame": force.frame, "wrench": signal(force.wrench), "point": list(force.point),
            **{key: value for key, value in window.items() if math.isfinite(value)}}


def _plain_signal(signal: Signal, path):
    if isinstance(signal, Constant):
        return signal.value
    if isinstance(signal, Expression):
        return signal.text
    if isinstance(signal, Begun):
        return {**_plain_signal(signal.curve, path), "from": signal.start}
    if isinstance(signal, Column):
        named = {"column": signal.name, "interpolation": signal.interpolation}
        return {"csv": {"file": path(signal.file), **{key: value for key, value in named.items() if value is not None}}}
    if isinstance(signal, Sine):
        return {"sine": {key: getattr(signal, key) for key in ("amplitude", "frequency", "phase", "offset")}}
    return {"quintic" if isinstance(signal, Quintic) else "spline": [list(point) for point in signal.points]}
