"""`Scenario` -> plain values in the layout of its file."""
from __future__ import annotations

import math
import os

from liedyn.io.scenarios.contact_keys import plain_contacts
from liedyn.io.scenarios.event_keys import plain_event, plain_phase
from liedyn.io.scenarios.joint_keys import plain_drive
from liedyn.io.scenarios.law_keys import plain_control
from liedyn.io.scenarios.motor_keys import plain_motor
from liedyn.io.scenarios.sampling_keys import plain_sampling
from liedyn.io.scenarios.scenario import METHODS, STABILIZATIONS, ExternalForce, Scenario, Stabilization
from liedyn.io.scenarios.signal_keys import plain_numbers, plain_rules, plain_signal
from liedyn.io.scenarios.stop_keys import plain_limits
from liedyn.io.write_yaml import FilePath, plain


def to_plain(scenario: Scenario, folder: str | os.PathLike | None = None) -> dict:
    """The resolved scenario as plain values in the layout of the file: written as YAML it reads back equal.

    Paths are relative to `folder`, or absolute.
    """
    one, kept, start = scenario, scenario.stabilization, scenario.initial_from
    integrator = {key: getattr(one.integrator, key) for key in ("method", *METHODS[one.integrator.method])}
    return plain({
        "robot": FilePath(one.robot), "loops": one.loops and FilePath(one.loops), "base": one.base, "gravity": one.gravity,
        "duration": one.duration, "output_step": one.output_step, "passive": one.passive, "seed": one.seed,
        "integrator": {key: value for key, value in integrator.items() if value != math.inf},
        "initial": {"q": plain_rules(one.initial_q, plain_numbers), "v": plain_rules(one.initial_v, plain_numbers),
                    "assemble": None if one.assemble else False, "from": start and FilePath(start.file)},
        "constraints": {"stabilization": kept.method, **{key: getattr(kept, key) for key in STABILIZATIONS[kept.method]}}
        if kept != Stabilization() else None,
        "drives": plain_rules(one.drives, plain_drive) or None, "control": one.control and plain_control(one.control),
        "sampling": one.sampling and plain_sampling(one.sampling), "saturate": plain_rules(one.saturate) or None,
        "motors": plain_rules(one.motors, plain_motor) or None, "limits": one.limits and plain_limits(one.limits),
        "contacts": one.contacts and plain_contacts(one.contacts),
        "joints": plain_rules(one.joints, plain_drive), "actuators": plain_rules(one.actuators, plain_signal),
        "external_forces": list(map(_plain_force, one.forces)),
        "phases": {phase.name: plain_phase(phase) for phase in one.phases} or None,
        "events": {event.name: plain_event(event) for event in one.events} or None}, folder)


def _plain_force(force: ExternalForce) -> dict:
    return {"link": force.link, "frame": force.frame, "wrench": plain_signal(force.wrench), "point": force.point,
            "from": force.start if math.isfinite(force.start) else None, "until": force.end if math.isfinite(force.end) else None}
