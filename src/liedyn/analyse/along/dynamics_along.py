"""Inverse, forward and hybrid dynamics along the rows of a trajectory file."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from liedyn.analyse.along.derived_error import error_notes
from liedyn.analyse.along.higher_order_along import higher_order_along
from liedyn.analyse.along.mechanisms_along import closed, inverse_of_mechanism, motors_of
from liedyn.analyse.along.recorded_checks import recorded_limit_notes
from liedyn.analyse.along.recorded_motion import (
    Along,
    Motion,
    columns_of_motion,
    header_along,
    mask_of,
    motion_for,
    prescribed_of,
)
from liedyn.analyse.along.transmitted_wrenches import joint_wrenches_along, reactions_along, wrench_comments
from liedyn.dynamics.hybrid import forward_dynamics, hybrid_dynamics
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.loops.constrained import constrained_hybrid_dynamics
from liedyn.dynamics.loops.constraints import constraint_residual
from liedyn.errors import ConfigurationError, UsageError
from liedyn.model.model import Model
from liedyn.simulation.records.motion_columns import columns_of, constraint_columns, joint_wrench_columns
from liedyn.simulation.run_checks.creep import slow_friction_note


@dataclass(frozen=True, eq=False)
class Setting:
    """Dynamics along a motion, before it is computed. compute(model, motion): this motion, or another one, with a and tau
    complete; prescribed: (nv,) bool, the coordinates whose force is found and not given."""

    model: Model
    motion: Motion
    compute: Callable[[Model, Motion], Motion]
    prescribed: np.ndarray


def dynamics_along(model: Model, trajectory, of: str, prescribed=(), *, actuated=(), criterion: str = "unique", order: int = 0,
                   smooth: float | str | None = None, wrenches: str | None = None, progress=None) -> Along:
    """Inverse, forward or hybrid dynamics along a trajectory of q; v and a are derived from it where the file has none.

    External wrenches are taken from columns fext.<link>.<component>, and from the comment `# passive:` whether joint
    springs, damping and friction act.

    Parameters
    ----------
    of : "inverse", "forward" or "hybrid"
        What comes out: joint forces; accelerations, by the forces of the file; or forces of the prescribed joints and
        accelerations of the others.
    prescribed : patterns of joint names, for "hybrid"
    actuated, criterion
        For "inverse" of a robot with constraints: patterns of actuated joints, by default those with a force in the
        trajectory; and as in `constrained_inverse_dynamics`.
    order, smooth, progress
        With an `order`, or `smooth`: also so many time derivatives, see `higher_order_along`.
    wrenches : "world", "link" or "joint", optional
        Also the wrenches that joints transmit, in these axes.

    Raises
    ------
    TrajectoryError, UsageError, ComputationError
    """
    for option, given in (("actuated", actuated), ("criterion", criterion != "unique")):
        if given and not model.nc:
            raise UsageError(f"the robot {model.name} has no constraints: every joint's force follows from the motion, "
                             f"--{option} does not apply")
    if order or smooth is not None:
        if wrenches:
            raise UsageError("--wrenches cannot be combined with --order and --smooth: write v and a first with "
                             "--smooth, then use --wrenches on the result")
        return higher_order_along(model, trajectory, order, of=of, patterns=prescribed, smooth=smooth, progress=progress)
    return _along(model, trajectory, setting_of(model, trajectory, of, prescribed, actuated, criterion), wrenches)


def setting_of(model: Model, trajectory, of: str, prescribed=(), actuated=(), criterion: str = "unique") -> Setting:
    """As for `dynamics_along`."""
    mask = prescribed_of(model, of, prescribed)
    motion = motion_for(model, trajectory, of, mask)
    if model.nc:
        motion = closed(model, trajectory, motion)
        if of == "inverse":
            motors, notes = motors_of(model, motion, mask_of(model, actuated))
            motion = replace(motion, notes=(*motion.notes, *notes))

    def compute(model: Model, motion: Motion) -> Motion:
        state, given = (model, motion.q, motion.v), {"f_ext": motion.f_ext, "passive": motion.passive}
        if of == "inverse":
            if model.nc:
                return inverse_of_mechanism(model, motion, motors, criterion)
            return replace(motion, tau=inverse_dynamics(*state, motion.a, **given))
        a, tau = (np.zeros_like(motion.v) if x is None else x for x in (motion.a, motion.tau))
        if model.nc:
            found = constrained_hybrid_dynamics(*state, a, tau, mask, **given)
            return replace(motion, a=found.a, tau=found.tau, multipliers=found.multipliers)
        if of == "forward":
            return replace(motion, a=forward_dynamics(*state, tau, **given))
        a, tau = hybrid_dynamics(*state, a, tau, mask, **given)
        return replace(motion, a=a, tau=tau)

    return Setting(model, motion, compute, mask)


def completed(setting: Setting, motion: Motion) -> Motion:
    """ConfigurationError where forces are not finite."""
    found = setting.compute(setting.model, motion)
    if not np.isfinite(found.tau).all():
        raise ConfigurationError("the joint forces are not finite")
    return found


def _along(model: Model, trajectory, setting: Setting, axes: str | None = None) -> Along:
    """The trajectory with what is found. axes: those of the wrenches that joints transmit, None for none."""
    motion = completed(setting, setting.motion)
    header, columns = header_along(model, trajectory, motion.passive), columns_of_motion(model, motion)
    if motion.multipliers is not None:
        reactions = reactions_along(model, motion.q, motion.multipliers, axes or "world")
        columns += constraint_columns(model, motion.multipliers, reactions,
                                      np.abs(constraint_residual(model, motion.q)).max(axis=1))
    if axes:
        header |= wrench_comments(model, axes)
        columns += joint_wrench_columns(joint_wrenches_along(model, motion, axes))
    limits = recorded_limit_notes(model, trajectory.t, motion.q, motion.v, motion.tau)
    slow = _slow_friction(model, trajectory.t, motion) if motion.passive else []
    return Along(header, trajectory.t, columns, (*motion.notes, *limits, *slow, *_doubts(model, setting, motion)))


def _slow_friction(model: Model, t: np.ndarray, motion: Motion) -> list[str]:
    speed = np.abs(motion.v)
    return slow_friction_note(model, speed.max(axis=0, initial=0.0), np.diff(t) @ speed[1:])


def _doubts(model: Model, setting: Setting, found: Motion) -> list[str]:
    """How far the result is off where velocities or accelerations were derived."""
    forces, accelerations = (columns_of(model, **{kind: found.a}) for kind in ("tau", "a"))
    chosen = [force if given else acceleration
              for force, acceleration, given in zip(forces, accelerations, setting.prescribed, strict=True)]

    def results(motion: Motion) -> np.ndarray:
        return np.where(setting.prescribed, motion.tau, motion.a)

    return error_notes(found, results(found), lambda other: results(setting.compute(model, other)), [name for name, *_ in chosen],
                       [unit for _, unit, _ in chosen], None if model.nc else "--smooth auto")
