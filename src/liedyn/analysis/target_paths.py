"""Targets of inverse kinematics from files of tasks and trajectory files of poses, and the search for them in `liedyn ik`."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.analysis.configurations import configuration_of, positions_of
from liedyn.arrays import Array
from liedyn.dynamics.inverse_kinematics import InverseKinematics, inverse_kinematics
from liedyn.dynamics.joint_values import neutral_within_limits
from liedyn.dynamics.kinematic_tasks import Task
from liedyn.errors import Place, TrajectoryError, list_names
from liedyn.io.file_schema import Field, Integer, Number, OneOf, Schema, Text, Vector
from liedyn.io.robots.robot_schema import POSE
from liedyn.io.trajectory_csv import Trajectory
from liedyn.io.yaml_nodes import read_yaml
from liedyn.model.links import Pose
from liedyn.model.model import Model
from liedyn.model.spatial import pose
from liedyn.simulation.name_binding import select
from liedyn.simulation.trajectory_columns import check_column_unit

_POSITION, _QUATERNION = ("px", "py", "pz"), ("qx", "qy", "qz", "qw")
_CENTRE = ("com.position.x", "com.position.y", "com.position.z")
# a file of tasks: a YAML or JSON list of mappings with the fields of `Task`
TASK = Schema("task", (
    Field("link", Text(), "link that must reach the target; none for `centre_of_mass`"),
    Field("pose", OneOf((POSE, Vector(7)), "task_pose"), "`{xyz, rpy}` or `{xyz, quaternion}` [m, rad], or seven numbers"),
    Field("position", Vector(3), "of the link or its `point` [m]"),
    Field("orientation", Vector(4), "of the link, as a unit quaternion `[x, y, z, w]`"),
    Field("direction", Vector(3), "to which the axis of the link points"),
    Field("look_at", Vector(3), "point to which the axis of the link points [m]"),
    Field("distance", Number(above=0), "of `point` from `reference_point` [m]"),
    Field("centre_of_mass", Vector(3), "of the robot [m]"),
    Field("point", Vector(3), "of the link [m]", "its origin"),
    Field("axis", Vector(3), "of the link", "z"),
    Field("relative_to", Text(), "link in whose axes all goals are", "the world"),
    Field("reference_point", Vector(3), "of that link [m]", "its origin"),
    Field("axes", Text(), "along which a position counts, such as `xy`", "xyz"),
    Field("weight", Number(above=0), "of the residual, compared with tasks of the same priority", 1),
    Field("priority", Integer(minimum=1), "tasks with a larger number are pursued as far as the others allow", 1),
    Field("name", Text(), "in messages", "the link")))


def read_tasks(path: str | os.PathLike[str]) -> tuple[dict[str, Any], ...]:
    """Return the fields of each task of a file. Raise TrajectoryError, with its line, for other contents."""
    root = read_yaml(path, TrajectoryError)
    if root.kind != "list" or not root.value:
        raise root.wrong("a list of tasks, such as [{link: hand, position: [0.4, 0, 0.5]}]")
    return tuple(TASK.read(node) for node in root.value)


def tasks_of_trajectory(model: Model, trajectory: Trajectory, link: str | None = None,
                        point: Sequence[float] | None = None) -> list[Task]:
    """Return the tasks of a file with columns pose.LINK.px … qw and com.position.x … z, as `liedyn kinematics` writes them.

    Three columns px, py, pz of a link are its positions, four columns qx … qw its orientations.

    link   name or pattern of the links that are used; default: all
    point  (3,) of the links; default: that of the comment `# frame`, else the origins
    """
    names = {name.split(".", 1)[1].rpartition(".")[0] for name in trajectory.columns if name.startswith("pose.")}
    links = [name for name in model.link_names if name in names]
    if unknown := sorted(names - set(links)):
        raise TrajectoryError(f"poses of links that {model.name} does not have", place=Place(trajectory.source),
                              found=list_names(unknown, 4), expected=list_names(model.link_names, 8))
    if link is not None:
        links = [links[k] for k in select(link, links, "link with columns pose.LINK.px …")]
    at = _point_of(trajectory) if point is None else point
    tasks = [Task(link=name, **goals, point=at if "position" in goals else Task.point) for name in links
             if (goals := _columns_of(trajectory, name))]
    if link is None and set(_CENTRE) <= trajectory.columns.keys():
        tasks.append(Task(centre_of_mass=_stacked(trajectory, _CENTRE, "m")))
    if not tasks:
        raise TrajectoryError("no targets", place=Place(trajectory.source), found=list_names([*trajectory.columns], 4),
                              expected="columns such as pose.hand.px[m], pose.hand.py[m], pose.hand.pz[m], pose.hand.qx, …, "
                                       "as `liedyn kinematics` writes them")
    return tasks


def _columns_of(trajectory: Trajectory, link: str) -> dict[str, Any]:
    """Return the goals of a link. Raise TrajectoryError if components are missing."""
    goals: dict[str, Any] = {}
    for goal, parts in (("position", _POSITION), ("orientation", _QUATERNION)):
        columns = [f"pose.{link}.{part}" for part in parts]
        missing = [name for name in columns if name not in trajectory.columns]
        if len(missing) == len(columns):
            continue
        if missing:
            raise TrajectoryError(f"the {goal} of {link} is incomplete", place=Place(trajectory.source),
                                  found=", ".join(name for name in columns if name not in missing), expected=", ".join(columns))
        goals[goal] = _stacked(trajectory, columns, "m" if goal == "position" else "")
    return goals


def _stacked(trajectory: Trajectory, names: Sequence[str], unit: str) -> Array:
    for name in names:
        check_column_unit(trajectory, name, unit)
    return np.column_stack([trajectory.columns[name] for name in names])


def _point_of(trajectory: Trajectory) -> tuple[float, ...]:
    """Return the point of the links to which the poses of a file refer, from its comment `# frame`."""
    match = re.search(r"the point is (\S+) (\S+) (\S+) in the link", trajectory.header.get("frame", ""))
    return tuple(map(float, match.groups())) if match else (0.0, 0.0, 0.0)


def tasks_of_file(path: str) -> list[Task]:
    """Return the tasks of a YAML or JSON file."""
    tasks: list[dict[str, Any]] = [{name: pose(x) if isinstance(x, Pose) else x for name, x in values.items()}
                                   for values in read_tasks(path)]
    return [Task(**values) for values in tasks]


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search of `liedyn ik`."""

    q: tuple[str, ...] = ()
    posture: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    restarts: int | None = None
    seed: int = 0
    limits: bool = True
    tolerance: float = 1e-10


def reach_targets(model: Model, tasks: Sequence[Task], options: SearchOptions, *, path: bool = False) -> InverseKinematics:
    """Return configurations for tasks, from options of the command line."""
    guess = configuration_of(model, options.q, neutral_within_limits(model))
    fixed = [model.joint_names[k] for k in select(options.fixed, model.joint_names, "joint to fix")]
    return inverse_kinematics(model, tasks, guess, posture=_posture(model, options.posture), fixed=fixed, path=path,
                              restarts=options.restarts, seed=options.seed, limits=options.limits, tolerance=options.tolerance)


def _posture(model: Model, texts: Sequence[str]) -> Mapping[str, Array] | None:
    return {name: np.array(values) for name, values in positions_of(model, texts, "posture").items()} or None
