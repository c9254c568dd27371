"""Inverse, forward and hybrid dynamics along the rows of a trajectory file."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from liedyn.analyse.along.derived_error import error_notes
from liedyn.analyse.along.higher_order_along import higher_order_along
from liedyn.analyse.along.mechanisms_along import inverse_of_mechanism, motion_of_mechanism, motors_of, refuse_open_rows
from liedyn.analyse.along.recorded_motion import Along, Motion, Outcome, mask_of, motion_of, require
from liedyn.analyse.along.transmitted_wrenches import reactions_along, wrench_columns, wrench_comments
from liedyn.dynamics.hybrid import forward_dynamics, hybrid_dynamics
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.loops.constraints import constraint_residual
from liedyn.errors import ConfigurationError, UsageError
from liedyn.model.model import Model
from liedyn.simulation.records.motion_columns import columns_of, constraint_columns, header_of


@dataclass(frozen=True, eq=False)
class Setting:
    """Dynamics along a motion, before it is computed. compute(motion): at the rows of this motion, or of another one;
    prescribed: (nv,) bool, the coordinates whose force is found and not given."""

    motion: Motion
    compute: Callable[[Motion], Outcome]
    prescribed: np.ndarray
    notes: tuple[str, ...] = ()


def inverse_along(model: Model, trajectory, actuated=(), criterion: str = "unique", *, order: int = 0,
                  smooth: float | str | None = None, wrenches: str | None = None, progress=None) -> Along:
    """Joint forces along a trajectory of q; v and a are derived from it where the file has none.

    With an `order`, or `smooth`: with so many of their time derivatives, see `higher_order_along`.

    External wrenches are taken from columns fext.<link>.<component>, and from the comment `# passive:` whether joint
    springs, damping and friction act. Of a robot with constraints: forces of its actuated joints, those whose names match a
    pattern or, without patterns, those with a force in the trajectory. Raises TrajectoryError, UsageError."""
    for option, given in (("actuated", actuated), ("criterion", criterion != "unique")):
        if given and not model.nc:
            raise UsageError(f"the robot {model.name} has no constraints: every joint's force follows from the motion, "
                             f"--{option} does not apply")
    if order or smooth is not None:
        if wrenches:
            raise UsageError("--wrenches cannot be combined with --order and --smooth: write v and a first with "
                             "--smooth, then use --wrenches on the result")
        return higher_order_along(model, trajectory, order, of="inverse", smooth=smooth, progress=progress)
    return _along(model, trajectory, inverse_setting(model, trajectory, actuated, criterion), wrenches)


def inverse_setting(model: Model, trajectory, actuated=(), criterion: str = "unique") -> Setting:
    motion, notes = motion_of(model, trajectory, derive_a=True), []
    if model.nc:
        refuse_open_rows(model, trajectory, motion)
        motors, notes = motors_of(model, motion, mask_of(model, actuated))

    def compute(motion: Motion):
        if model.nc:
            return inverse_of_mechanism(model, motion, motors, criterion)
        tau = inverse_dynamics(model, motion.q, motion.v, motion.a, f_ext=motion.f_ext, passive=motion.passive)
        return Outcome(motion.a, tau)

    return Setting(motion, compute, np.ones(model.nv, dtype=bool), tuple(notes))


def forward_along(model: Model, trajectory, *, order: int = 0, smooth: float | str | None = None, progress=None) -> Along:
    """Accelerations along a trajectory of q (and v) and tau. Raises TrajectoryError, ComputationError.

    With an `order`, or `smooth`: with so many of their time derivatives, see `higher_order_along`."""
    if order or smooth is not None:
        return higher_order_along(model, trajectory, order, of="forward", smooth=smooth, progress=progress)
    return _along(model, trajectory, forward_setting(model, trajectory))


def forward_setting(model: Model, trajectory) -> Setting:
    motion = motion_of(model, trajectory, derive_a=False)
    require(trajectory, motion.tau, "tau", "the joint forces")
    nothing = np.zeros(model.nv, dtype=bool)
    if model.nc:
        refuse_open_rows(model, trajectory, motion)

    def compute(motion: Motion):
        if model.nc:
            return motion_of_mechanism(model, motion, None, motion.tau, nothing)
        return Outcome(forward_dynamics(model, motion.q, motion.v, motion.tau, f_ext=motion.f_ext, passive=motion.passive),
                      motion.tau)

    return Setting(motion, compute, nothing)


def hybrid_along(model: Model, trajectory, patterns, *, order: int = 0, smooth: float | str | None = None,
                 progress=None) -> Along:
    """Forces of the joints whose names match one of `patterns`, accelerations of the others.

    Accelerations of the matching joints are derived where the file has none. Raises TrajectoryError, UsageError.

    With an `order`, or `smooth`: with so many of their time derivatives, see `higher_order_along`."""
    if order or smooth is not None:
        return higher_order_along(model, trajectory, order, of="hybrid", patterns=patterns, smooth=smooth, progress=progress)
    return _along(model, trajectory, hybrid_setting(model, trajectory, patterns))


def hybrid_setting(model: Model, trajectory, patterns) -> Setting:
    prescribed = mask_of(model, patterns)
    motion = motion_of(model, trajectory, derive_a=bool(prescribed.any()))
    if not prescribed.all():
        require(trajectory, motion.tau, "tau", "the joint forces of the joints that are not prescribed")
    if model.nc:
        refuse_open_rows(model, trajectory, motion)

    def compute(motion: Motion):
        a, tau = (np.zeros_like(motion.v) if x is None else x for x in (motion.a, motion.tau))
        if model.nc:
            return motion_of_mechanism(model, motion, a, tau, prescribed)
        return Outcome(*hybrid_dynamics(model, motion.q, motion.v, a, tau, prescribed, f_ext=motion.f_ext,
                                       passive=motion.passive))

    return Setting(motion, compute, prescribed)


def outcome_of(setting: Setting, motion: Motion) -> Outcome:
    """ConfigurationError where forces are not finite."""
    found = setting.compute(motion)
    if not np.isfinite(found.tau).all():
        raise ConfigurationError("the joint forces are not finite")
    return found


def _along(model: Model, trajectory, setting: Setting, axes: str | None = None) -> Along:
    """The trajectory with what is found. axes: those of the wrenches that joints transmit, None for none."""
    motion = setting.motion
    found = outcome_of(setting, motion)
    header = {**trajectory.header, **{k: v for k, v in header_of(model, passive=motion.passive).items() if k != "robot"}}
    columns = columns_along(model, motion, found)
    if found.multipliers is not None:
        reactions = reactions_along(model, motion.q, found.multipliers, axes or "world")
        columns += constraint_columns(model, found.multipliers, reactions,
                                      np.abs(constraint_residual(model, motion.q)).max(axis=1))
    if axes:
        header |= wrench_comments(model, axes)
        columns += wrench_columns(model, replace(motion, a=found.a), found.multipliers, axes)
    doubts = _doubts(model, motion, found, setting.compute, setting.prescribed)
    return Along(header, trajectory.t, columns, (*motion.notes, *setting.notes, *found.notes, *doubts))


def columns_along(model: Model, motion: Motion, found: Outcome) -> list[tuple[str, str, np.ndarray]]:
    """The motion with what was found, and the wrenches that act, as columns of a trajectory."""
    which = [k for k in range(len(model.link_names)) if motion.f_ext is not None and motion.f_ext[:, k].any()]
    return columns_of(model, tuple(model.link_names[k] for k in which), motion.f_ext[:, which] if which else None,
                      q=motion.q, v=motion.v, a=found.a, tau=found.tau)


def _doubts(model: Model, motion: Motion, found: Outcome, compute: Callable[[Motion], Outcome], prescribed) -> list[str]:
    """How far the result is off where velocities or accelerations were derived."""
    forces, accelerations = ({name: unit for name, unit, _ in columns_of(model, **{kind: found.a})} for kind in ("tau", "a"))
    chosen = [force if given else acceleration for force, acceleration, given in zip(
        forces.items(), accelerations.items(), prescribed, strict=True)]

    def results(result: Outcome) -> np.ndarray:
        return np.where(prescribed, result.tau, result.a)

    return error_notes(motion, results(found), lambda other: results(compute(other)), [name for name, _ in chosen],
                       [unit for _, unit in chosen], None if model.nc else "--smooth auto")
