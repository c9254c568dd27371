"""Files of kinematic tasks for inverse kinematics: a YAML or JSON list of mappings with the fields of `Task`."""
from __future__ import annotations

import os
from typing import Any

from liedyn.errors import TrajectoryError
from liedyn.io.file_schema import Field, Integer, Number, OneOf, Schema, Text, Vector
from liedyn.io.robots.robot_schema import POSE
from liedyn.io.yaml_nodes import read_yaml

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
