"""The robot that a trajectory file was recorded with, as its comments tell."""
from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import replace
from pathlib import Path

from liedyn.errors import Place, TrajectoryError, UsageError
from liedyn.io.csv import Trajectory
from liedyn.io.output import STDIO
from liedyn.loading import load_description, read_model
from liedyn.model.build import build
from liedyn.model.model import Model
from liedyn.simulation.control_laws.motors import with_armatures
from liedyn.simulation.records.motion_columns import header_of, passed_over

_NAMED = 8          # columns of a note


def robot_of(trajectory: Trajectory, robot: str | Path | None = None, *, base: str | None = None,
             strict: bool = False, edits: tuple[str, ...] = ()) -> tuple[Model, tuple[str, ...]]:
    """Model of the robot that moved, with the base, the gravity and the rotors of motors of the recording, and what is to be
    noted.

    Parameters
    ----------
    robot : path, optional
        Robot file; default: the comment `# robot:`, relative to the folder of the trajectory.
    base : "fixed" or "floating", optional
        Default: the comment `# base:`, else as the robot file says.
    strict : bool
        As in `loading.load`.
    edits : ("key.path=value", …), optional
        Of a robot YAML.

    Raises
    ------
    UsageError
        Neither an argument nor a comment names a robot.
    TrajectoryError
        A comment that cannot be used.
    ModelError, CheckFailed
        As `loading.load`.
    """
    header = trajectory.header
    path = Path(robot) if robot is not None else _named_robot(trajectory)
    if base is None and "base" in header and header["base"] not in ("fixed", "floating"):
        raise TrajectoryError("unknown kind of base", place=Place(trajectory.source, key="# base"), found=header["base"],
                              expected="fixed or floating")
    loops = _named_file(trajectory, "loops", "file of loops") if header.get("loops") else None
    base, gravity = base or header.get("base"), _gravity(trajectory)
    if edits:
        described = load_description(path, base, loops, edits)
        model = build(described if gravity is None else replace(described, gravity=gravity))
    else:
        model = read_model(path, base=base, gravity=gravity, loops=loops, strict=strict)
    if "armatures" in header:
        model = _with_rotors(model, trajectory)
    notes = []
    if "robot_sha256" in header and hashlib.sha256(path.read_bytes()).hexdigest() != header["robot_sha256"]:
        notes.append(f"{path} differs from the robot file that {trajectory.source} was recorded with")
    unknown = passed_over(model, trajectory)
    if unknown:
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        notes.append(f"unknown columns of {trajectory.source} are ignored: "
                     f"{', '.join(unknown[:_NAMED])}{more}")
    return model, tuple(notes)


def comments_for(header: dict[str, str], model: Model, output: str) -> dict[str, str]:
    """The comments, with the paths of the robot and of its file of loops relative to the folder of the file `output` in which
    they will stand."""
    folder = "." if output == STDIO else os.path.dirname(os.path.abspath(output))
    named = {key: value for key, value in header_of(model, folder=folder).items() if key in ("robot", "loops")}
    return named | {key: value for key, value in header.items() if key not in ("robot", "loops")}


def _named_robot(trajectory: Trajectory) -> Path:
    named = trajectory.header.get("robot")
    if not named:
        raise UsageError(f"{trajectory.source} does not name a robot; use --robot")
    return _named_file(trajectory, "robot", "robot file", "or use --robot")


def _named_file(trajectory: Trajectory, key: str, what: str, hint: str | None = None) -> Path:
    named = trajectory.header[key]
    folder = Path() if trajectory.source in (None, STDIO) else Path(trajectory.source).parent
    path = Path(os.path.normpath(folder / named))
    if not path.is_file():
        raise TrajectoryError(f"the {what} does not exist", place=Place(trajectory.source, key=f"# {key}"), found=named,
                              expected="a file relative to the folder of the trajectory", hint=hint)
    return path


def _with_rotors(model: Model, trajectory: Trajectory) -> Model:
    """The comment `# armatures: {"elbow": 0.1}`: of joints whose motors a scenario has given rotors."""
    text = trajectory.header["armatures"]
    try:
        given = {str(name): float(x) for name, x in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        given = {"": math.nan}
    single = [joint.name for joint in model.joints if joint.v.stop - joint.v.start == 1]
    if not all(name in single and 0.0 <= x < math.inf for name, x in given.items()):
        raise TrajectoryError("invalid armatures", place=Place(trajectory.source, key="# armatures"), found=text,
                              expected="numbers of at least 0 by joints of the robot with one coordinate")
    return with_armatures(model, given)


def _gravity(trajectory: Trajectory) -> tuple[float, ...] | None:
    """The comment `# gravity: 0 0 -9.81`; brackets and commas may stand in it."""
    text = trajectory.header.get("gravity")
    if text is None:
        return None
    try:
        gravity = tuple(float(x) for x in text.strip("[]()").replace(",", " ").split())
    except ValueError:
        gravity = ()
    if len(gravity) != 3 or not all(map(math.isfinite, gravity)):
        raise TrajectoryError("invalid gravity", place=Place(trajectory.source, key="# gravity"), found=text,
                              expected="three numbers")
    return gravity
