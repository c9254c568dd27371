"""Joints that friction holds: smoothed Coulomb friction lets them creep, because it is zero at rest."""
from __future__ import annotations

import numpy as np

from liedyn.joints.kinds import FRICTION_SPEED
from liedyn.joints.tree import tree_of

_LEAST_SPEED = 0.01      # of FRICTION_SPEED: below it, friction holds less than a hundredth of its level
_STEADY = 1.0            # s; a joint creeps while its acceleration would take longer than this to change FRICTION_SPEED
_LEAST_TIME = 0.5        # s; a shorter creep is the end of a motion


class Creep:
    """Time, distance and largest speed of each joint with friction while it creeps. Rows are added block by block."""

    def __init__(self, model):
        self.model = model
        self.level = tree_of.py_func(model.index, model.constants).friction
        self.time, self.distance, self.speed = np.zeros((3, model.nv))

    def add(self, record) -> None:
        if not self.level.any() or len(record.t) < 2:
            return
        speed = np.abs(record.v)
        steady = np.abs(record.a) < FRICTION_SPEED / _STEADY
        creeps = (steady & (speed < FRICTION_SPEED) & (speed > _LEAST_SPEED * FRICTION_SPEED) & (self.level > 0.0))
        creeps = creeps[1:] & creeps[:-1]
        steps = np.diff(record.t)[:, None] * creeps
        self.time += steps.sum(axis=0)
        self.distance += (steps * speed[1:]).sum(axis=0)
        self.speed = np.maximum(self.speed, np.where(creeps, speed[1:], 0.0).max(axis=0, initial=0.0))

    def notes(self) -> list[str]:
        found = [f"{name} ({self.speed[k]:.2g} {unit}/s, {self.distance[k]:.2g} {unit} in {self.time[k]:.3g} s)"
                 for k, (name, unit) in enumerate(zip(self.model.v_names, self.model.v_units, strict=True))
                 if self.time[k] > _LEAST_TIME]
        if not found:
            return []
        more = f", and {len(found) - 3} more" if len(found) > 3 else ""
        return [f"joints that friction holds creep: {', '.join(found[:3])}{more}. Coulomb friction is smoothed below "
                f"{FRICTION_SPEED:g} rad/s or m/s and cannot hold a joint at rest; lock the joint to hold it"]
