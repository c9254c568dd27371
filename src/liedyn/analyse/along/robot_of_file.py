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
from liedyn.model.description import Robot
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
        Robot file; default: the comment `# model:`, the model that a run was computed with, else the comment `# robot:`. Both are
        relative to the folder of the trajectory.
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
    header, notes = trajectory.header, []
    recorded = _recorded_model(trajectory) if robot is None and header.get("model") else None
    path = Path(robot) if robot is not None else recorded or _named_robot(trajectory)
    if robot is None and recorded is None and header.get("model"):
        notes.append(f"{header['model']}, the model that {trajectory.source} was recorded with, is missing: {path} is used")
    if base is None and "base" in header and header["base"] not in ("fixed", "floating"):
        raise TrajectoryError("unknown kind of base", place=Place(trajectory.source, key="# base"), found=header["base"],
                              expected="fixed or floating")
    loops = _named_file(trajectory, "loops", "file of loops") if header.get("loops") and recorded is None else None
    base = base or header.get("base")
    if edits:
        model = build(load_description(path, base, loops, edits))
    else:
        model = read_model(path, base=base, loops=loops, strict=strict)
    model, _ = as_recorded(model, trajectory)
    source = _path_of(trajectory, "robot") if recorded and header.get("robot") else path
    if source != path and source.is_file():                # shapes and meshes are in the robot file
        model = build(_described_in(model.description, os.fspath(source)))
    if "robot_sha256" in header and source.is_file() and _sha256(source) != header["robot_sha256"]:
        notes.append(f"{source} differs from the robot file that {trajectory.source} was recorded with"
                     + ("; the model of the run is used" if recorded else ""))
    return model, (*notes, *attached_notes(trajectory), *unknown_notes(model, trajectory))


def as_recorded(model: Model, trajectory: Trajectory) -> tuple[Model, tuple[str, ...]]:
    """The model with the gravity and the rotors of motors of the recording, and a message where those of the model differ.

    Raises TrajectoryError for a comment that cannot be used."""
    name, notes = trajectory.source or "the trajectory", []
    gravity, armatures = _gravity(trajectory), _armatures(model, trajectory)
    if gravity is not None and gravity != tuple(model.gravity):
        there, here = (" ".join(f"{x:.6g}" for x in vector) for vector in (gravity, model.gravity))
        notes.append(f"the gravity of {name}, {there} m/s^2, is used instead of that of the model, {here} m/s^2")
        model = model.with_changes(gravity=gravity)
    own = {joint.name: joint.figures[0].armature for joint in model.description.joints if joint.name in armatures}
    other = {joint: x for joint, x in armatures.items() if x != own[joint]}
    if other:
        listing = ", ".join(f"{joint} {x:.6g} (model: {own[joint]:.6g})" for joint, x in other.items())
        notes.append(f"the armatures of {name} are used instead of those of the model: {listing}")
        model = with_armatures(model, other)
    return model, tuple(notes)


def unknown_notes(model: Model, trajectory: Trajectory) -> list[str]:
    """A message that names columns of nothing that the robot has."""
    unknown = passed_over(model, trajectory)
    more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
    text = f"unknown columns of {trajectory.source or 'the trajectory'} are ignored: {', '.join(unknown[:_NAMED])}{more}"
    return [text] if unknown else []


def attached_notes(trajectory: Trajectory) -> list[str]:
    """A message where bodies were attached in the course of the run, which the model does not have."""
    attached = trajectory.header.get("attached")
    text = f"the run of this file had bodies attached to {attached}: results are those of the robot without them"
    return [text] if attached else []


def _described_in(robot: Robot, source: str) -> Robot:
    """The robot with the file `source` as its own."""
    loops, couplings = (tuple(replace(one, place=Place(source)) for one in part) for part in (robot.loops, robot.couplings))
    return replace(robot, loops=loops, couplings=couplings, source=source)


def comments_for(header: dict[str, str], model: Model, output: str,
                 recorded: Trajectory | None = None) -> dict[str, str]:
    """The comments, with the paths of the robot, of its file of loops and of the model of the run relative to the folder of the
    file `output` in which they will stand.

    recorded: the trajectory that names the robot; None where the results are those of another one, so that the model of the run
    is not named."""
    folder = "." if output == STDIO else os.path.dirname(os.path.abspath(output))
    if recorded is not None and recorded.header.get("model"):
        paths = {key: Path(os.path.relpath(_path_of(recorded, key), folder)).as_posix()
                 for key in ("robot", "loops", "model") if recorded.header.get(key)}
        kept = {key: recorded.header[key] for key in ("robot_sha256", "model_sha256") if key in recorded.header}
        return paths | {key: value for key, value in header.items() if key not in (*paths, "robot", "loops")} | kept
    named = {key: value for key, value in header_of(model, folder=folder).items() if key in ("robot", "loops")}
    return named | {key: value for key, value in header.items() if key not in ("robot", "loops", "model", "model_sha256")}


def _recorded_model(trajectory: Trajectory) -> Path | None:
    """The model that a run was computed with; None where it is missing. Raises TrajectoryError where the file was changed."""
    path = _path_of(trajectory, "model")
    if not path.is_file():
        return None
    if _sha256(path) != trajectory.header.get("model_sha256"):
        raise TrajectoryError(f"{path} is not the model that the run was computed with",
                              place=Place(trajectory.source, key="# model"), expected="the file that the run has written",
                              hint="or use --robot")
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _path_of(trajectory: Trajectory, key: str) -> Path:
    folder = Path() if trajectory.source in (None, STDIO) else Path(trajectory.source).parent
    return Path(os.path.normpath(folder / trajectory.header[key]))


def _named_robot(trajectory: Trajectory) -> Path:
    named = trajectory.header.get("robot")
    if not named:
        raise UsageError(f"{trajectory.source} does not name a robot; use --robot")
    return _named_file(trajectory, "robot", "robot file", "or use --robot")


def _named_file(trajectory: Trajectory, key: str, what: str, hint: str | None = None) -> Path:
    named = trajectory.header[key]
    path = _path_of(trajectory, key)
    if not path.is_file():
        raise TrajectoryError(f"the {what} does not exist", place=Place(trajectory.source, key=f"# {key}"), found=named,
                              expected="a file relative to the folder of the trajectory", hint=hint)
    return path


def _armatures(model: Model, trajectory: Trajectory) -> dict[str, float]:
    """The comment `# armatures: {"elbow": 0.1}`: of joints whose motors a scenario has given rotors."""
    text = trajectory.header.get("armatures")
    if text is None:
        return {}
    try:
        given = {str(name): float(x) for name, x in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        given = {"": math.nan}
    single = [joint.name for joint in model.joints if joint.v.stop - joint.v.start == 1]
    if not all(name in single and 0.0 <= x < math.inf for name, x in given.items()):
        raise TrajectoryError("invalid armatures", place=Place(trajectory.source, key="# armatures"), found=text,
                              expected="numbers of at least 0 by joints of the robot with one coordinate")
    return given


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
