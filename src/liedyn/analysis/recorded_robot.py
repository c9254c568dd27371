"""The robot that a trajectory file was recorded with, from its comments, and the comments of files that are computed from it."""
from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from liedyn.arrays import Array, Base
from liedyn.errors import (
    LiedynError,
    LiedynWarning,
    Place,
    TrajectoryError,
    UsageError,
    WarningLog,
    list_names,
)
from liedyn.io.atomic_output import STDIO
from liedyn.io.column_map import MapArgument
from liedyn.io.recorded_paths import relative_path, text_digest
from liedyn.io.robots.robot_yaml import robot_digest
from liedyn.io.robots.visual_shapes import with_mesh_files
from liedyn.io.ros_bag import BASE, BagOptions
from liedyn.io.trajectory_csv import Trajectory, read_trajectory
from liedyn.model.description import Robot
from liedyn.model.links import LinkVisuals
from liedyn.model.model import Model, build
from liedyn.robot_files import ReadingOptions, load_description, read_model, without_couplings
from liedyn.simulation.control.motors import with_armatures
from liedyn.simulation.trajectory_columns import (
    check_mapped_columns,
    column_units,
    trajectory_header,
    unused_columns,
    with_current_names,
)

MIMIC_IGNORED = "ignored"          # comment `# mimic:` of results that leave mimic joints and couplings out
_NAMED = 8          # maximum number of columns named in a warning


def robot_of(trajectory: Trajectory, robot: str | Path | None = None, *, base: Base | None = None,
             strict: bool = False, ignore_mimic: bool = False,
             reading: ReadingOptions | None = None, edits: tuple[str, ...] = ()) -> tuple[Model, tuple[LiedynWarning, ...]]:
    """Return the model of the recorded robot with the base, gravity and rotor inertias of the recording, and warnings.

    Parameters
    ----------
    robot : path, optional
        Robot file; default: the comment `# model:`, the model that a run was computed with, else the comment `# robot:`. Both are
        relative to the folder of the trajectory.
    base : "fixed" or "floating", optional
        Default: the comment `# base:`, else as the robot file says.
    strict, ignore_mimic : bool
        As in `robot_files.load`. The comment `# mimic: ignored` also leaves mimic joints and couplings out.
    reading : dict, optional
        Further options of `robot_files.load` for the robot file. They replace those of the comment `# robot_options:`, which
        applies if a comment names the robot.
    edits : ("key.path=value", …), optional
        Changes of a robot YAML.

    Raises
    ------
    UsageError
        If neither an argument nor a comment names a robot.
    TrajectoryError
        For a comment that cannot be used.
    ModelError, CheckFailed
        As `robot_files.load`.
    """
    header, warnings = trajectory.header, WarningLog()
    recorded = _recorded_model(trajectory) if robot is None and header.get("model") else None
    path = Path(robot) if robot is not None else recorded or _named_robot(trajectory)
    if robot is None and recorded is None and header.get("model"):
        warnings.add("model-missing",
                     f"{header['model']}, the model that {trajectory.source} was recorded with, is missing: {path} is used "
                     "instead")
    base = base or recorded_base(trajectory)
    loops = _named_file(trajectory, "loops", "loops file") if header.get("loops") and recorded is None else None
    ignored = ignore_mimic or ignores_mimic(trajectory)
    named: ReadingOptions = recorded_reading(trajectory) if robot is None else {}
    options: ReadingOptions = {**(named if recorded is None else {}), **(reading or {})}
    model = read_model(path, base=base, loops=loops, strict=strict, ignore_mimic=ignored, overrides=edits, **options)
    model, _ = as_recorded(model, trajectory)
    source = _path_of(trajectory, "robot") if recorded and header.get("robot") else path
    if source != path and source.is_file():                # shapes and meshes are in the robot file
        roots = options.get("package_roots") or named.get("package_roots", ())
        model = build(with_mesh_files(_described_in(model.description, os.fspath(source)), roots))
    if "robot_sha256" in header and source.is_file() and robot_digest(source) != header["robot_sha256"]:
        warnings.add("robot-changed",
                     f"{source} differs from the robot file that {trajectory.source} was recorded with"
                     + ("; the model of the run is used" if recorded else ""))
    return model, (*trajectory.warnings, *warnings, *attached_warnings(trajectory), *base_warnings(model, trajectory),
                   *unknown_warnings(model, trajectory))


_OPTIONS = "robot_options"          # comment of results of a robot file that was read with options


def recorded_reading(trajectory: Trajectory) -> ReadingOptions:
    """Return the options of the comment `# robot_options: {"ignore": ["fluid"]}`. Raise TrajectoryError for others."""
    text = trajectory.header.get(_OPTIONS)
    try:
        options = {} if text is None else json.loads(text)
    except ValueError:
        options = None
    if not isinstance(options, dict) or not options.keys() <= ReadingOptions.__annotations__.keys():
        raise TrajectoryError("wrong value", place=Place(trajectory.source, key=f"# {_OPTIONS}"), found=text,
                              expected=f"a JSON object with any of {', '.join(ReadingOptions.__annotations__)}")
    if "package_roots" in options:
        options["package_roots"] = [_path_in(trajectory, root) for root in options["package_roots"]]
    return cast(ReadingOptions, options)


def reading_comment(trajectory: Trajectory, robot: str | None, reading: ReadingOptions, output: str) -> dict[str, str]:
    """Return the comment with the options of the robot file of a result, `robot` or that of the recording; empty without.

    Its paths are relative to the folder of `output`.
    """
    options: ReadingOptions = {**(recorded_reading(trajectory) if robot is None else {}), **reading}
    return options_comment(options, _folder_of(output))


def options_comment(options: ReadingOptions, folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the comment with options of a robot file, with paths relative to `folder`; empty without options."""
    if "package_roots" in options:
        options = {**options, "package_roots": [relative_path(root, folder) for root in options["package_roots"]]}
    return {_OPTIONS: json.dumps(options)} if options else {}


def _folder_of(output: str) -> str:
    return "." if output == STDIO else str(Path(output).absolute().parent)


def converted(source: str, output: str, robot: str | None = None, *, base: Base | None = None, columns: MapArgument | None = None,
              bag: BagOptions | None = None,
              reading: ReadingOptions | None = None) -> tuple[Trajectory, tuple[LiedynWarning, ...]]:
    """Return the trajectory of a foreign CSV or a ROS bag with comments for the file `output`, and warnings.

    Columns are checked against the robot, if one is given or named in the file. The comments name it, all columns have units, and
    they are in the order of the robot's joints.
    """
    motion = read_trajectory(source, columns=columns, **(bag or {}))
    if robot is None and not {"robot", "model"} & motion.header.keys():
        if reading:
            raise UsageError(f"{source} names no robot, to which {', '.join(reading)} apply; give one (--robot or robot=)")
        return motion, motion.warnings
    model, warnings = robot_of(motion, robot, base=base, reading=reading)
    motion = with_current_names(model, motion)
    header = {key: x for key, x in trajectory_header(model, passive=motion.passive).items() if key not in ("robot", "loops")}
    comments = comments_for(motion.header | header, model, output, motion if robot is None else None)
    comments |= reading_comment(motion, robot, reading or {}, output)
    return replace(motion, header=comments, source=output, units=column_units(model, motion),
                   columns=_columns_in_order(model, motion)), warnings


def _columns_in_order(model: Model, trajectory: Trajectory) -> dict[str, Array]:
    """Return the columns: kinds such as q in the order of the file, and coordinates of each in the order of the model."""
    kinds = [*dict.fromkeys(name.partition(".")[0] for name in trajectory.columns)]

    def place(name: str) -> tuple[int, int]:
        kind, _, coordinate = name.partition(".")
        names = {"q": model.q_names, "a": model.a_names, "tau": model.tau_names}.get(kind, model.v_names)
        return kinds.index(kind), names.index(coordinate) if coordinate in names else len(names)

    return {name: trajectory.columns[name] for name in sorted(trajectory.columns, key=place)}


def as_recorded(model: Model, trajectory: Trajectory) -> tuple[Model, tuple[LiedynWarning, ...]]:
    """Return the model with the gravity and the rotor inertias of the recording, and warnings where those of the model differ.

    Couplings are left out where the recording leaves them out.

    Raises TrajectoryError for a comment that cannot be used.
    """
    name, warnings = trajectory.source or "the trajectory", WarningLog()
    gravity, armatures = _gravity(trajectory), _armatures(model, trajectory)
    if gravity is not None and gravity != tuple(model.gravity):
        recorded_gravity, model_gravity = (" ".join(f"{x:.6g}" for x in vector) for vector in (gravity, model.gravity))
        warnings.add("gravity-differs",
                     f"the gravity of {name}, {recorded_gravity} m/s^2, is used instead of that of the model, "
                     f"{model_gravity} m/s^2")
        model = model.with_changes(gravity=gravity)
    model_armatures = {joint.name: joint.coordinate_parameters[0].armature for joint in model.description.joints
                       if joint.name in armatures}
    differing = {joint: x for joint, x in armatures.items() if x != model_armatures[joint]}
    if differing:
        listing = ", ".join(f"{joint} {x:.6g} (model: {model_armatures[joint]:.6g})" for joint, x in differing.items())
        warnings.add("armature-differs", f"the armatures of {name} are used instead of those of the model: {listing}")
        model = with_armatures(model, differing)
    free = without_couplings(model.description)
    if ignores_mimic(trajectory) and free != model.description:
        warnings.add("mimic-ignored", f"mimic joints and couplings of the model are left out, as in {name}")
        model = build(free)
    return model, tuple(warnings)


def ignores_mimic(trajectory: Trajectory) -> bool:
    """Return whether the recording leaves out mimic joints and couplings: whether it has the comment `# mimic: ignored`.

    Raises TrajectoryError for another value.
    """
    text = trajectory.header.get("mimic")
    if text not in (None, MIMIC_IGNORED):
        raise TrajectoryError("wrong value", place=Place(trajectory.source, key="# mimic"), found=text, expected=MIMIC_IGNORED,
                              hint="delete the comment to obey mimic joints and couplings")
    return text is not None


def unknown_warnings(model: Model, trajectory: Trajectory) -> list[LiedynWarning]:
    """Return messages about columns that belong to no joint, link or constraint of the robot, and about those without a map.

    Raises TrajectoryError for an entry of the map of the trajectory with a target that the robot does not have.
    """
    check_mapped_columns(model, trajectory)
    unknown, source, messages = unused_columns(model, trajectory), trajectory.source or "the trajectory", []
    if unknown:
        messages.append(LiedynWarning("unknown-columns",
                                      f"unknown columns of {source} are ignored: {list_names(unknown, _NAMED)}"))
    mapping = trajectory.mapping
    named = [] if mapping is None else [each.text for each in mapping.sources.values() if each.unit == "name"]
    if mapping is not None and (mapping.ignored or mapping.automatic or named):
        text = f"the columns of {source} are mapped" + (f" by {mapping.file}" if mapping.file else "")
        if named:
            text += f"; units are those of their names: {list_names(named, _NAMED)}"
        if mapping.ignored:
            text += f"; others are ignored: {list_names(mapping.ignored, _NAMED)}"
        messages.append(LiedynWarning("columns-mapped", text))
    return messages


def base_warnings(model: Model, trajectory: Trajectory) -> list[LiedynWarning]:
    """Return a warning if the comment `# base_frame:` of a ROS bag is not the link that the joint `base` moves."""
    frame, base = trajectory.header.get("base_frame"), next((joint for joint in model.joints if joint.name == BASE), None)
    if frame is None or base is None or base.child == frame:
        return []
    return [LiedynWarning("other-base-frame",
                          f"{trajectory.source or 'the trajectory'} contains the motion of frame {frame}, but the base of the "
                          f"robot {model.name} is link {base.child}")]


def attached_warnings(trajectory: Trajectory) -> list[LiedynWarning]:
    """Return a warning if bodies were attached to the robot during the run, since the model does not have them."""
    attached = trajectory.header.get("attached")
    warning = LiedynWarning("attached-bodies",
                            f"{trajectory.source or 'the trajectory'} was recorded with bodies attached to {attached}: they are "
                            "not included in results")
    return [warning] if attached else []


def _described_in(robot: Robot, source: str) -> Robot:
    """Return the robot with the source file `source` and the visual shapes of that file, or its own if it cannot be read."""
    visuals: Mapping[str, LinkVisuals] = robot.visuals
    with suppress(LiedynError):                                # it may have changed since it was recorded
        visuals = load_description(source).visuals
    loops = tuple(replace(loop, place=Place(source)) for loop in robot.loops)
    couplings = tuple(replace(coupling, place=Place(source)) for coupling in robot.couplings)
    elements = tuple(replace(element, place=Place(source)) for element in robot.elements)
    return replace(robot, loops=loops, couplings=couplings, elements=elements, source=source, visuals=visuals)


def comments_for(header: dict[str, str], model: Model, output: str,
                 recorded: Trajectory | None = None) -> dict[str, str]:
    """Return comments with the paths of the robot, its file of loops and the model of the run relative to the folder of `output`.

    output    file that gets the comments
    recorded  trajectory that names the robot; None: the results are those of another robot, and the model of the run is not named
    """
    folder = _folder_of(output)
    if recorded is not None and recorded.header.get("model"):
        paths = {key: relative_path(_path_of(recorded, key), folder)
                 for key in ("robot", "loops", "model") if recorded.header.get(key)}
        hashes = {key: recorded.header[key] for key in ("robot_sha256", "model_sha256") if key in recorded.header}
        return paths | {key: value for key, value in header.items() if key not in (*paths, "robot", "loops")} | hashes
    named = {key: value for key, value in trajectory_header(model, folder=folder).items() if key in ("robot", "loops")}
    return named | {key: value for key, value in header.items() if key not in ("robot", "loops", "model", "model_sha256")}


def _recorded_model(trajectory: Trajectory) -> Path | None:
    """Return the file of the model that a run was computed with, None if missing. Raise TrajectoryError if it was changed."""
    path = _path_of(trajectory, "model")
    if not path.is_file():
        return None
    if _sha256(path) != trajectory.header.get("model_sha256"):
        raise TrajectoryError(f"{path} is not the model that the run was computed with",
                              place=Place(trajectory.source, key="# model"), expected="the file that the run has written",
                              hint="or give another robot file")
    return path


def _sha256(path: Path) -> str:
    return text_digest(path.read_bytes())


def _path_of(trajectory: Trajectory, key: str) -> Path:
    return _path_in(trajectory, trajectory.header[key])


def _path_in(trajectory: Trajectory, path: str) -> Path:
    """Return a path that a comment of a trajectory names."""
    folder = Path() if trajectory.source in (None, STDIO) else Path(trajectory.source).parent
    return Path(os.path.normpath(folder / path))


def _named_robot(trajectory: Trajectory) -> Path:
    named = trajectory.header.get("robot")
    if not named:
        raise UsageError(f"{trajectory.source} does not name a robot; give a robot file (--robot or robot=)")
    return _named_file(trajectory, "robot", "robot file", "or give another robot file")


def _named_file(trajectory: Trajectory, key: str, subject: str, hint: str | None = None) -> Path:
    named = trajectory.header[key]
    path = _path_of(trajectory, key)
    if not path.is_file():
        raise TrajectoryError(f"the {subject} does not exist", place=Place(trajectory.source, key=f"# {key}"), found=named,
                              expected="a file relative to the folder of the trajectory", hint=hint)
    return path


def recorded_base(trajectory: Trajectory) -> Base | None:
    """Return the kind of base of the comment `# base:`; None without it."""
    match trajectory.header.get("base"):
        case "fixed":
            return "fixed"
        case "floating":
            return "floating"
        case None:
            return None
        case text:
            raise TrajectoryError("unknown kind of base", place=Place(trajectory.source, key="# base"), found=text,
                                  expected="fixed or floating")


def _armatures(model: Model, trajectory: Trajectory) -> dict[str, float]:
    """Return the rotor inertias {joint: armature} of the comment `# armatures: {"elbow": 0.1}`, added by a scenario."""
    text = trajectory.header.get("armatures")
    if text is None:
        return {}
    try:
        armatures = {str(name): float(x) for name, x in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        armatures = {"": math.nan}
    single = [joint.name for joint in model.joints if joint.v.stop - joint.v.start == 1]
    if not all(name in single and 0.0 <= x < math.inf for name, x in armatures.items()):
        raise TrajectoryError("invalid armatures", place=Place(trajectory.source, key="# armatures"), found=text,
                              expected="numbers >= 0, by joints with one coordinate")
    return armatures


def _gravity(trajectory: Trajectory) -> tuple[float, ...] | None:
    """Return the gravity of the comment `# gravity: 0 0 -9.81` (brackets and commas are allowed); None without it."""
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
