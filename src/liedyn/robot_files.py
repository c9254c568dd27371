"""Models of robot files and of descriptions, and models as robot files. The file name extension selects the format."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np

from liedyn.arrays import ArrayLike, Base
from liedyn.errors import CheckFailed, LiedynWarning, ModelError, Place, UsageError, counted, list_names, of_level, warn
from liedyn.io.atomic_output import check_output, open_output
from liedyn.io.robots.described_robots import described_file
from liedyn.io.robots.robot_formats import (
    FORMATS,
    RobotFormat,
    format_of_file,
    formats_of_ending,
    in_words,
    written_endings,
    written_formats,
)
from liedyn.io.robots.robot_yaml import loops_beside, loops_path_of, read_loops_file, robot_of_loops
from liedyn.io.robots.visual_shapes import link_shapes, with_located_files, with_mesh_files
from liedyn.io.robots.write_robot_yaml import Omission, as_yaml, loops_yaml, robot_yaml
from liedyn.model.composition import attach_robot, mount_name
from liedyn.model.curve_joint import curve_joint
from liedyn.model.description import Coupling, CurveJoint, Joint, Loop, Robot
from liedyn.model.force_element import ForceElement
from liedyn.model.links import Pose, PoseLike, Shapes, vector
from liedyn.model.model import Model
from liedyn.model.model import build as build_model
from liedyn.model.validate import loader_warnings

XacroArguments: TypeAlias = Mapping[str, object] | tuple[tuple[str, object], ...]              # or pairs, which are hashable


class ReadingOptions(TypedDict, total=False):
    """Options of `load` for what a robot file says."""

    inertia_from_meshes: float | None
    ignore: Sequence[str]
    xacro_args: XacroArguments | None
    package_roots: Sequence[str | os.PathLike[str]]


def load_description(path: str | os.PathLike[str], base: Base | None = None, loops: str | os.PathLike[str] | None = None,
                     overrides: tuple[str, ...] = (), *, inertia_from_meshes: float | None = None,
                     ignore: Sequence[str] = (), xacro_args: XacroArguments | None = None,
                     package_roots: Sequence[str | os.PathLike[str]] = ()) -> Robot:
    """Read a robot file as a description, which `build` turns into a model.

    Parameters
    ----------
    path : path
        URDF, MJCF (ending .xml), YAML (ending .yaml or .yml), or another format of `FORMATS`; or a loops file (ending
        loops.yaml), with the robot that it names; or the name of a description, "robot_descriptions:panda_description".
    base, loops, inertia_from_meshes, ignore, xacro_args, package_roots
        As for `load`.
    overrides : sequence of "key.path=value"
        Replace values of a robot YAML.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        With file, line and element.

    Examples
    --------
    >>> robot = ld.load_description("robots/double_pendulum.yaml")
    >>> robot.joints[1].name, robot.joints[1].axes
    ('elbow', ((0.0, 1.0, 0.0),))
    """
    return _read_description(path, base, loops, overrides, (), inertia_from_meshes=inertia_from_meshes, ignore=ignore,
                             xacro_args=xacro_args, package_roots=package_roots)


def _read_description(path: str | os.PathLike[str], base: Base | None, loops: str | os.PathLike[str] | None,   # noqa: PLR0913
                      overrides: tuple[str, ...], including: tuple[str, ...], *, inertia_from_meshes: float | None = None,
                      ignore: Sequence[str] = (), xacro_args: XacroArguments | None = None,
                      package_roots: Sequence[str | os.PathLike[str]] = ()) -> Robot:
    """Return the robot of `load_description`. including: files that include this one, the first one first."""
    path = Path(described_file(path))
    if path.name.endswith("loops.yaml") and loops is None:
        return _read_description(path.parent / robot_of_loops(path), base, path, overrides, including,
                                 inertia_from_meshes=inertia_from_meshes, ignore=ignore, xacro_args=xacro_args,
                                 package_roots=package_roots)
    format = format_of_file(path)
    if overrides and not format.has_keys:
        raise ModelError("keys can be changed in robot YAML files only", place=Place(str(path)), found=overrides[0],
                         hint="name a parameter instead, such as mass.link or damping.joint")
    if isinstance(ignore, str):
        ignore = (ignore,)
    if ignore and not format.can_ignore:
        raise ModelError("parts can be ignored in MJCF files only", place=Place(str(path)), found=", ".join(ignore))
    if xacro_args and format is not FORMATS.get("urdf"):
        raise ModelError("xacro arguments apply only to files with the ending .xacro", place=Place(str(path)),
                         found=", ".join(dict(xacro_args)))
    arguments = overrides or tuple(ignore) or dict(xacro_args or ())
    options = {"load": partial(_read_included, (*including, os.fspath(path)))} if format.can_include else {}
    robot = format.read(path, arguments, **options) if arguments else format.read(path, **options)
    if package_roots:
        robot = with_mesh_files(robot, package_roots)
    if inertia_from_meshes is not None:
        robot = _with_inertia_of_shapes(robot, inertia_from_meshes, format)
    robot = _with_constraints(robot, path, loops, format)
    if base not in (None, "fixed", "floating"):
        raise ModelError("unknown kind of base", found=base, expected="fixed or floating")
    return dataclasses.replace(robot, base=base) if base else robot


def _read_included(including: tuple[str, ...], path: str, place: Place, *, loops: str | None = None, ignore_mimic: bool = False,
                   **reading: Unpack[ReadingOptions]) -> Robot:
    """Return a robot that the last file of `including` includes at `place`, with the paths of its meshes."""
    if os.path.realpath(path) in map(os.path.realpath, including):
        files = " -> ".join(map(os.path.basename, [*including, path]))
        raise ModelError("robot files include each other in a cycle", place=place, found=files)
    try:
        robot = _read_description(path, None, loops, (), including, **reading)
    except ModelError as error:
        if error.place is None or error.place.file == place.file:
            raise
        hint = "; ".join(filter(None, (error.hint, f"included at {place}")))
        raise type(error)(error.message, place=error.place, found=error.found, expected=error.expected, hint=hint) from error
    return with_located_files(without_couplings(robot) if ignore_mimic else robot)


def _with_inertia_of_shapes(robot: Robot, density: float, format: RobotFormat) -> Robot:
    if format is not FORMATS.get("urdf"):
        raise ModelError(f"inertias from meshes are supported for URDF only; a {format.title} file has inertias",
                         place=Place(robot.source), expected="no density")
    from liedyn.io.robots.shape_inertia import with_inertia_of_shapes
    return with_inertia_of_shapes(robot, density)


def load(path: str | os.PathLike[str], *, base: Base | None = None, gravity: ArrayLike | None = None,        # noqa: PLR0913
         loops: str | os.PathLike[str] | None = None, strict: bool = False, ignore_mimic: bool = False,
         inertia_from_meshes: float | None = None, ignore: Sequence[str] = (),
         xacro_args: XacroArguments | None = None, package_roots: Sequence[str | os.PathLike[str]] = ()) -> Model:
    """Read a robot file (URDF, YAML or MJCF) as a model.

    Parameters
    ----------
    path : str or Path
        Robot file, or the name of a description of the package robot_descriptions: "robot_descriptions:panda_description".
    base : "fixed" or "floating", optional
        Whether the root link is welded to the ground or free; default: from the file (URDF: fixed).
    gravity : three numbers, optional
        Acceleration of gravity in the world [m/s^2]; default: from the file, else (0, 0, -9.81).
    loops : str or Path, optional
        YAML file of closures and couplings, added to those of the robot file. Default: for arm.urdf, arm.loops.yaml next to it,
        else loops.yaml next to it if its key `robot` names arm.urdf.
    strict : bool
        Warnings about the robot (see `model.warnings`) become an error, information does not. By default, a robot that has
        warnings is loaded with one `LiedynWarning`.
    ignore_mimic : bool
        Whether mimic joints and couplings are left out, so that their joints move independently.
    inertia_from_meshes : number, optional
        Density [kg/m^3] of the links of a URDF that have no `<inertial>`: uniform bodies of their collision shapes and meshes,
        or of the visible ones. A mesh whose surface is not closed counts as its convex hull. Requires trimesh.
    ignore : sequence of names, optional
        Parts of an MJCF file that change the motion and are not computed, which are left out with a warning: `"fluid"`,
        `"gravcomp"`, `"tendons"`, `"free-joints"`, `"springs"`, `"couplings"`, `"plugins"`, `"flex"`. Otherwise, they are errors.
    xacro_args : {name: value}, optional
        Arguments (`xacro:arg`) of a xacro file, which xacrodoc expands. Its expressions are executed.
    package_roots : sequence of paths, optional
        Further folders in which to look for ``package://`` meshes.

    Raises
    ------
    ModelError
        For a robot that cannot be computed correctly, with file, line and element.
    CheckFailed
        With `strict`, for a robot that has warnings.

    Examples
    --------
    >>> ld.load("robots/double_pendulum.yaml")
    <Model double_pendulum: 2 joints, nq 2, nv 2, fixed base; 3 links, 2 kg>
    >>> ld.load("robots/double_pendulum.yaml", gravity=[0, 0, -1.62]).gravity
    array([ 0.  ,  0.  , -1.62])
    """
    model = read_model(path, base=base, gravity=gravity, loops=loops, strict=strict, ignore_mimic=ignore_mimic,
                       inertia_from_meshes=inertia_from_meshes, ignore=ignore, xacro_args=xacro_args, package_roots=package_roots)
    warn(robot_file_warnings(model))
    return model


def build(robot: Robot) -> Model:
    """Validate a robot description and return its model.

    Parameters
    ----------
    robot : Robot
        From `load_description`, or created in Python. If it has warnings (see `model.warnings`), one `LiedynWarning` is issued.

    Returns
    -------
    Model

    Raises
    ------
    ModelError
        If the robot is not valid, or its couplings contradict each other, with the link or joint.

    Examples
    --------
    >>> robot = ld.load_description("robots/asymmetric_body.yaml")
    >>> ld.build(dataclasses.replace(robot, gravity=[0, 0, -1.62])).gravity
    array([ 0.  ,  0.  , -1.62])
    """
    model = build_model(robot)
    warn(robot_file_warnings(model))
    return model


def attach(model: Model | Robot, other: Model | Robot, *, parent: str, prefix: str = "", origin: PoseLike = Pose(),   # noqa: B008
           joint: str | Mapping[str, Any] = "fixed") -> Model:
    """Return the model of a robot with a copy of another one at a link, such as an arm with a gripper.

    The copy has the links, joints, limits, mimics, couplings, loops, force elements, actuators, keyframes and shapes of the
    other robot. `include` in a robot YAML does the same.

    Parameters
    ----------
    model : Model, or Robot as `load_description` returns it
        The robot, whose name, base and gravity the result has.
    other : Model or Robot
        The robot to attach. Its floating base, if any, is replaced by `joint`; joints at its ground start at a link `ground`.
    parent : str
        Name of the link that carries it; "world" is the ground.
    prefix : str
        Is added to all names of the other robot.
    origin : Pose, position [m] or (4, 4) array
        Pose of its root link, or of its ground, in the parent link.
    joint : type of joint, or dict
        Joint that carries it: a type such as "free", or arguments of `Joint`, such as {"type": "revolute", "axis": [0, 0, 1]},
        or of `curve_joint` with the type "curve".
        Its name is the prefix and "mount" unless the dict has a `name`.

    Returns
    -------
    Model

    Raises
    ------
    ModelError
        If the robot has no such link, for names that both robots have, and for a robot that is not valid.

    Examples
    --------
    >>> arm, hand = ld.load("robots/ur5.yaml"), ld.load("robots/gripper.urdf")
    >>> both = ld.attach(arm, hand, parent="tool0", prefix="hand_")
    >>> both.joint_names[5:8], both.nq
    (('wrist_3_joint', 'hand_left_crank', 'hand_left_pad'), 12)
    >>> ld.attach(both, hand, parent="world", prefix="second_", origin=[0, 1, 0], joint="free").nv
    24
    """
    robot, part = (with_located_files(_unrepeated(each)) for each in (model, other))
    arguments = {"type": joint} if isinstance(joint, str) else dict(joint)
    name = arguments.pop("name", mount_name(part, prefix))
    arguments |= {"parent": parent, "child": "", "origin": origin}
    if arguments.get("type") == "curve":
        del arguments["type"]
        mount: Joint | CurveJoint = curve_joint(name, **{"coordinate": ""} | arguments)
    else:
        mount = Joint(name, **{"type": "fixed"} | arguments)
    return build(attach_robot(dataclasses.replace(robot, source=None), part, mount, prefix))


def _unrepeated(robot: Model | Robot) -> Robot:
    """Return the description of a robot, without warnings that building it repeats."""
    if isinstance(robot, Robot):
        return robot
    return dataclasses.replace(robot.description, warnings=loader_warnings(robot.description))


def read_model(path: str | os.PathLike[str], *, base: Base | None = None, gravity: ArrayLike | None = None,     # noqa: PLR0913 - as `load`
               loops: str | os.PathLike[str] | None = None, strict: bool = False, ignore_mimic: bool = False,
               inertia_from_meshes: float | None = None, ignore: Sequence[str] = (),
               xacro_args: XacroArguments | None = None, package_roots: Sequence[str | os.PathLike[str]] = (),
               overrides: tuple[str, ...] = ()) -> Model:
    """Return the model of a robot file as `load`, without issuing a warning: for callers that return or print the warnings.

    overrides: as for `load_description`.
    """
    robot = load_description(path, base, loops, overrides, inertia_from_meshes=inertia_from_meshes, ignore=ignore,
                             xacro_args=xacro_args, package_roots=package_roots)
    if gravity is not None:
        robot = dataclasses.replace(robot, gravity=vector(np.asarray(gravity, dtype=float)))
    if ignore_mimic:
        robot = without_couplings(robot)
    model = build_model(robot)
    if strict and (warnings := of_level("warning", model.warnings)):
        raise CheckFailed(f"{len(warnings)} warning(s) in {path}, the first: {warnings[0]}")
    return model


def without_couplings(robot: Robot) -> Robot:
    """Return the robot without mimic joints and couplings; their joints move independently."""
    joints = tuple(dataclasses.replace(joint, mimic=None) for joint in robot.joints)
    return dataclasses.replace(robot, joints=joints, couplings=())


def robot_file_warnings(model: Model) -> list[LiedynWarning]:
    """Return a list of one warning that the robot of a model has warnings, or an empty list if it has none."""
    warnings = of_level("warning", model.warnings)
    if not warnings:
        return []
    count = len(warnings)
    return [LiedynWarning("robot-warnings", f"{counted(count, 'warning')} about the robot {model.name} "
                          f"(model.warnings lists {'it' if count == 1 else 'them'}); the first: {warnings[0]}")]


def _with_constraints(robot: Robot, path: Path, loops: str | os.PathLike[str] | None, format: RobotFormat) -> Robot:
    """Return the robot with the constraints of its loops file, and with the warnings about that file."""
    if loops is None and format.has_constraints:
        return robot
    file, warnings = loops_beside(path) if loops is None else (read_loops_file(loops), ())
    if file is None:
        return dataclasses.replace(robot, warnings=(*robot.warnings, *warnings))
    return dataclasses.replace(robot, loops=(*robot.loops, *file.loops), couplings=(*robot.couplings, *file.couplings),
                               actuated=file.actuated or robot.actuated, elements=(*robot.elements, *file.elements))


# Writing a model to a file ----------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Conversion:
    """The text of a robot in a file format.

    text       contents of the robot file
    loops      contents of the loops file next to a URDF, or None if none is needed
    robot      description that the text contains
    rewritten  messages about parts that are written in an equivalent form
    losses     parts that the format cannot describe (`Omission`)
    """

    format: str
    text: str
    loops: str | None
    robot: Robot
    rewritten: tuple[str, ...]
    losses: tuple[Omission, ...]

    def check(self, *, lossy: bool = False, source: str | None = None) -> None:
        """Raise ModelError if the text loses dynamics of the robot or, with `lossy`, if the remaining robot is not computable."""
        title, lost = FORMATS[self.format].title, [loss for loss in self.losses if loss.dynamics]
        if lost and not lossy:
            raise ModelError(f"a {title} cannot describe the dynamics of this robot: "
                             f"{list_names([*map(str, lost)], 3, '; ')}", place=Place(source),
                             hint="--lossy or lossy=True omits these parts and lists them")
        if not lost:
            return
        try:
            build_model(self.robot)
        except ModelError as error:
            raise ModelError(f"the part of this robot that a {title} can describe is not a valid model: {error}") from None

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """The messages and losses as warnings."""
        return (*(LiedynWarning("written-differently", text) for text in self.rewritten),
                *(LiedynWarning("not-written", loss.message, place=Place(key=loss.element)) for loss in self.losses))


def save(model: Model | Robot, path: str | os.PathLike[str], *, lossy: bool = False,
         force: bool = False) -> tuple[LiedynWarning, ...]:
    """Write a robot as URDF or robot YAML, by the ending of `path`.

    Numbers are preserved exactly, rotations of placements up to rounding. What URDF cannot express is written in an equivalent
    form where there is one: a universal joint, for example, becomes two revolute joints with a massless link between them. Loops
    and couplings of a URDF are written to a loops file next to it, `arm.loops.yaml` next to `arm.urdf`, which `load` reads.

    A robot that was read from a URDF, and is written as one, keeps the text of its file, with meshes and comments. Only what
    differs changes.

    Parameters
    ----------
    model : Model, or Robot as `load_description` returns it
    path : str or Path
        With the ending .urdf, .yaml or .yml.
    lossy : bool
        Write even if the format cannot describe the dynamics, such as springs in a URDF; what it cannot describe is left out.
    force : bool
        Overwrite existing files.

    Returns
    -------
    warnings : tuple of LiedynWarning
        What was written in another form and what was lost; empty where the format describes everything.

    Raises
    ------
    ModelError
        For a robot that is not valid, or whose dynamics the format cannot describe.
    UsageError
        Where a file exists and `force` is not given, or the ending is another.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.save(model, "pendulum.urdf", force=True)
    (<LiedynWarning the ground is a link "world" [written-differently]>,)
    >>> ld.load("pendulum.urdf")
    <Model double_pendulum: 2 joints, nq 2, nv 2, fixed base; 4 links, 2 kg>
    """
    path = Path(path)
    converted = convert(model, format_of(path), path.name, path.parent)
    converted.check(lossy=lossy, source=model.source)
    write(converted, path, force=force)
    warn(converted.warnings)
    return converted.warnings


def format_of(path: Path) -> str:
    """Return the format for the extension of an output file. Raise UsageError if there is none."""
    if path.name.endswith("loops.yaml"):
        raise UsageError(f"{path} is the name of a loops file: expected another name for a robot")
    formats_of_ending(path)
    endings = written_endings()
    if path.suffix.lower() not in endings:
        raise UsageError(f"{path}: unknown file name extension: expected {', '.join(endings)}")
    return endings[path.suffix.lower()]


def convert(model: Model | Robot, format: str, name: str | None = None, folder: Path | None = None) -> Conversion:
    """Validate a robot and return its text in a format such as "urdf", with the parts that the format cannot describe.

    name    file name, which names the loops file of a URDF. None: there is no loops file, so loops and couplings of a URDF are
            reported as losses
    folder  of the file, to which paths in it are relative; None: they stay as they are
    """
    robot = model if isinstance(model, Robot) else model.description
    build_model(robot)
    target, loops = FORMATS.get(format), None
    if target is None or target.write is None:
        raise UsageError(f"unknown format {format!r}: expected {in_words(list(written_formats()))}")
    shapes, lost = _shapes(robot, target)
    names = {link.name for link in robot.links}
    nameless = tuple(name for name in robot.visuals if name not in names)
    subset, text = target.write(robot, shapes)
    patched = target.patch(subset.robot, folder) if target.patch else None
    if patched is not None:
        (text, nameless), lost = patched, ()
    elif target.patch and Path(robot.source or "").suffix.lower() == ".urdf":
        message = (f"the text of {robot.source} cannot be kept (it is gone, not in UTF-8, or describes another robot): meshes, "
                   "collision shapes, comments and other elements are left out; primitives are written for drawing")
        lost = (Omission("file", message, dynamics=False),)
    lost += tuple(Omission(name, "its shapes are left out: the robot has no link of this name (was it renamed?)", dynamics=False)
                  for name in nameless)
    constraints: tuple[Loop | Coupling | ForceElement, ...] = (*robot.loops, *robot.couplings, *robot.elements)
    if constraints and not target.has_constraints:
        if name is None:
            message = f"it is left out: it needs a loops file next to the {target.title}"
            subset.losses += [Omission(constraint.name, message) for constraint in constraints]
        else:
            loops = loops_yaml(subset.robot, name)
            subset.rewritten.append(f"loops, couplings and force elements are in {loops_path_of(Path(name))}, which other "
                                    "programs do not read")
    return Conversion(format, text, loops, subset.robot, tuple(subset.rewritten), (*subset.losses, *lost))


def write(converted: Conversion, path: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Write the text, and the loops file if there is one, both or none. Return the paths.

    Raises UsageError if a file exists, or if an existing loops file next to it would add its constraints to the robot.
    """
    texts = {path: converted.text}
    if converted.loops is not None:
        texts[loops_path_of(path)] = converted.loops
    elif not FORMATS[converted.format].has_constraints and (file := loops_beside(path)[0]) is not None:
        count = len(file.loops) + len(file.couplings) + len(file.elements)
        raise UsageError(f"a loops file next to {path} would add {count} constraint(s) or element(s) to the robot; move it, or "
                         "use another name")
    for output in texts:
        check_output(output, force=force)
    with ExitStack() as files:
        for output, text in texts.items():
            files.enter_context(open_output(output, force=force)).write(text)
    return tuple(texts)


def _shapes(robot: Robot, target: RobotFormat) -> tuple[Shapes, tuple[Omission, ...]]:
    """Return the primitives for drawing by link, and an `Omission` if not all shapes can be written."""
    shapes, count = link_shapes(robot), len(robot.visuals)
    if count and not target.writes_shapes:
        message = f"those of {counted(count, 'link')} are left out; their inertias are written"
    elif not all(visuals.complete for visuals in robot.visuals.values()):
        message = "meshes and collision shapes are left out; primitives are written for drawing"
    else:
        return shapes, ()
    return shapes, (Omission("shapes", message, dynamics=False),)


def yaml_of(model: Model) -> str:
    """Return the text of a robot YAML from which `load` builds the same model, with its primitives for drawing."""
    return robot_yaml(as_yaml(model.description).robot, link_shapes(model.description))
