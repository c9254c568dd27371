"""Joints whose Coulomb friction acts as damping, because it is smoothed below `FRICTION_SPEED`: those that it holds creep, since
it is zero at rest, and in those that move slowly throughout it never reaches its level.

That speed is a part of the model of friction, in rad/s or m/s, and so are the times here: they do not follow from the size of the
robot."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.scales import scales_of
from liedyn.joints.kinds import FRICTION_SPEED
from liedyn.joints.tree import tree_of

_LEAST_SPEED = 0.01      # of FRICTION_SPEED: below it, friction holds less than a hundredth of its level
_STEADY = 1.0            # s; a joint creeps while its acceleration would take longer than this to change FRICTION_SPEED
_LEAST_TIME = 0.5        # s; a shorter creep is the end of a motion
_MOVED = 1e-3            # rad, and of the characteristic length: a joint that goes no further is at rest


class Creep:
    """Time, distance and largest speed of each joint with friction while it creeps, and in the whole run. Rows are added block by
    block."""

    def __init__(self, model):
        self.model = model
        self.level = tree_of.py_func(model.index, model.constants).friction
        self.time, self.distance, self.speed, self.way, self.fastest = np.zeros((5, model.nv))

    def add(self, record, prescribed) -> None:
        """prescribed (nv,): what moves as it is told does not creep."""
        if not self.level.any() or len(record.t) < 2:
            return
        speed = np.abs(record.v)
        self.way += np.diff(record.t) @ speed[1:]
        self.fastest = np.maximum(self.fastest, speed.max(axis=0))
        steady = np.abs(record.a) < FRICTION_SPEED / _STEADY
        creeps = (steady & (speed < FRICTION_SPEED) & (speed > _LEAST_SPEED * FRICTION_SPEED) & (self.level > 0.0) & ~prescribed)
        creeps = creeps[1:] & creeps[:-1]
        steps = np.diff(record.t)[:, None] * creeps
        self.time += steps.sum(axis=0)
        self.distance += (steps * speed[1:]).sum(axis=0)
        self.speed = np.maximum(self.speed, np.where(creeps, speed[1:], 0.0).max(axis=0, initial=0.0))

    def notes(self) -> list[str]:
        return self._of_holding() + slow_friction_note(self.model, self.fastest, self.way, self.time > _LEAST_TIME)

    def _of_holding(self) -> list[str]:
        found = [f"{name} ({self.speed[k]:.2g} {unit}/s, {self.distance[k]:.2g} {unit} in {self.time[k]:.3g} s)"
                 for k, (name, unit) in enumerate(zip(self.model.v_names, self.model.v_units, strict=True))
                 if self.time[k] > _LEAST_TIME]
        if not found:
            return []
        more = f", and {len(found) - 3} more" if len(found) > 3 else ""
        return [f"joints that friction holds creep: {', '.join(found[:3])}{more}. Coulomb friction is smoothed below "
                f"{FRICTION_SPEED:g} rad/s or m/s and cannot hold a joint at rest; lock the joint to hold it"]


def slow_friction_note(model, fastest, way, known=False) -> list[str]:
    """Of joints with friction whose largest speed (nv,) stays below `FRICTION_SPEED` although they go a way (nv,) [rad | m]; but
    for those that are `known`."""
    level = tree_of.py_func(model.index, model.constants).friction
    moved = way > _MOVED * scales_of(model).of_all(model.v_units)
    slow = np.flatnonzero((level > 0.0) & moved & (fastest < FRICTION_SPEED) & ~np.asarray(known))
    if not len(slow):
        return []
    told = ", ".join(f"{model.v_names[k]} ({fastest[k]:.2g} {model.v_units[k]}/s)" for k in slow[:3])
    more = f", and {len(slow) - 3} more" if len(slow) > 3 else ""
    return [f"Coulomb friction acts as damping in joints that move slowly throughout: {told}{more}. It is smoothed below "
            f"{FRICTION_SPEED:g} rad/s or m/s, and less than its level below that; passive: false leaves all passive forces out"]
