"""Identification of a robot from recordings: fits, consistent parameters and their test, for the command `identify`."""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from liedyn.analysis.consistent_parameters import ConsistentParameters, Validation, consistent_parameters
from liedyn.analysis.identification import Identification, identify
from liedyn.analysis.parameter_constraints import equal_of_texts, prior_of_texts, weights_of_texts
from liedyn.analysis.recorded_robot import recorded_base, robot_of
from liedyn.arrays import Base
from liedyn.dynamics.inertial_parameters import TOLERANCE
from liedyn.errors import LiedynWarning, UsageError, WarningLog
from liedyn.io.ros_bag import BagOptions
from liedyn.io.trajectory_csv import read_trajectory
from liedyn.model.model import Model
from liedyn.robot_files import ReadingOptions, read_model


class IdentifiedRobot(NamedTuple):
    """Result of the command `identify`.

    model        the robot of the robot file with the estimated parameters
    recordings   names of the files
    fits         of each recording
    consistent   parameters of all recordings
    tested       names of the files of `validations`: further recordings, which were not used for the fits, and `recordings`
    validations  forces of the parameters on these files
    """

    model: Model
    recordings: tuple[str, ...]
    fits: tuple[Identification, ...]
    consistent: ConsistentParameters
    tested: tuple[str, ...]
    validations: tuple[Validation, ...]
    warnings: tuple[LiedynWarning, ...]


def identified_robot(  # noqa: PLR0913 - options of the command
        robot: str | Path, recordings: Sequence[str], *, validate: Sequence[str] = (), columns: str | None = None,
        bag: BagOptions | None = None, base: Base | None = None, strict: bool = False, ignore_mimic: bool = False,
        reading: ReadingOptions | None = None, joints: Sequence[str] = (), offset: bool = True,
        zero_offsets: Sequence[str] = (), torque_scales: Sequence[str] = (),
        stribeck: Sequence[str] = (), smooth: float | str | None = "auto",
        tolerance: float | None = None, weights: Sequence[str] = (), prior_weight: float | str = 1.0,
        only: Sequence[str] | None = None, fixed: Sequence[str] = (), prior: Sequence[str] = (), equal: Sequence[str] = (),
        total_mass: float | None = None) -> IdentifiedRobot:
    """Return the robot of a robot file with the parameters of one or several recordings.

    columns, bag    map of the columns of the recordings, and how ROS bags are read, as in `read_trajectory`
    joints          as in `base_parameters`; empty: those that the robot has; "none": none of them
    offset, fixed, zero_offsets, torque_scales, stribeck, smooth  as in `identify`
    prior_weight, only, total_mass  as in `consistent_parameters`
    weights, prior, equal  as there, as texts "second.csv=0.25", "mass.hand=0.73,0.01" and "left=right" or "left=right,y"
    validate        recordings for the test
    """
    kinds = None if not joints else tuple(kind for kind in joints if kind != "none")
    files = [os.path.realpath(path) for path in recordings]
    if repeated := [path for k, path in enumerate(recordings) if files[k] in files[:k]]:
        raise UsageError(f"{repeated[0]} appears several times in the recordings: its information must not count more than once")
    motions = [read_trajectory(path, columns=columns, **(bag or {})) for path in (*recordings, *validate)]
    robots = [robot_of(motion, robot, base=base, strict=strict, ignore_mimic=ignore_mimic, reading=reading) for motion in motions]
    warnings, fits = WarningLog(), list[Identification]()
    for motion, (model, messages) in zip(motions, robots, strict=True):
        warnings.extend(messages)
        if len(fits) < len(recordings):
            fits.append(identify(model, motion, joints=kinds, offset=offset, fixed=fixed, zero_offsets=zero_offsets,
                                 torque_scales=torque_scales, stribeck=stribeck, smooth=smooth,
                                 tolerance=TOLERANCE if tolerance is None else tolerance))
            warnings.extend(fits[-1].warnings)
    consistent = consistent_parameters(fits, weights=weights_of_texts(weights, recordings), prior_weight=prior_weight, only=only,
                                       prior=prior_of_texts(prior), equal=equal_of_texts(equal),
                                       total_mass=total_mass)
    warnings.extend(consistent.warnings)
    order = (*range(len(recordings), len(motions)), *range(len(recordings)))
    # with gravity and armatures of each recording; without its comments, those of the robot file
    validations = tuple(replace(consistent, model=consistent.applied_to(robots[k][0])).validate(
        motions[k], smooth=smooth) for k in order)
    for validation in validations:
        warnings.extend(validation.warnings)
    in_file = read_model(robot, base=base or recorded_base(motions[0]), ignore_mimic=ignore_mimic, **(reading or {}))
    model = consistent.applied_to(in_file)
    return IdentifiedRobot(model, tuple(recordings), tuple(fits), consistent, (*validate, *recordings), validations,
                           tuple(warnings))
