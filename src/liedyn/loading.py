"""From a file to a model: finds the format by the file's ending."""
from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from liedyn.dynamics.calling.annotations import ArrayLike, Base
from liedyn.errors import CheckFailed, ModelError, Place, warn
from liedyn.model.description import Robot
from liedyn.model.model import Model


def load_description(path: str | os.PathLike[str], base: Base | None = None, loops: str | os.PathLike[str] | None = None,
                     overrides: tuple[str, ...] = ()) -> Robot:
    """Description of a robot file: what it says, before it is made computable.

    Parameters
    ----------
    path : path
        URDF, MJCF (ending .xml), or YAML (ending .yaml or .yml); or a loops file (ending loops.yaml), with the robot that it
        names.
    base, loops
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
    path = Path(path)
    if path.name.endswith("loops.yaml") and loops is None:
        from liedyn.io.robots.loops import robot_of_loops
        return load_description(path.parent / robot_of_loops(path), base, path, overrides)
    kind = path.suffix.lower()
    if kind in (".yaml", ".yml"):
        from liedyn.io.robots.robot_yaml import read_robot_yaml as read
    elif kind == ".mjcf" or (kind == ".xml" and _is_mjcf(path)):
        from liedyn.io.robots.mjcf.read import read_mjcf as read
    elif kind in (".urdf", ".xml", ".xacro"):
        from liedyn.io.robots.urdf import read_urdf as read
    else:
        raise ModelError("unknown file name extension", place=Place(str(path)), found=path.suffix or "no extension",
                         expected=".urdf, .yaml, .yml or .xml")
    if overrides and kind not in (".yaml", ".yml"):
        raise ModelError("only a robot YAML has keys that can be changed", place=Place(str(path)), found=overrides[0],
                         hint="name a parameter instead, such as mass.link or damping.joint")
    robot = _with_constraints(read(path, overrides) if overrides else read(path), path, loops)
    if base not in (None, "fixed", "floating"):
        raise ModelError("unknown kind of base", found=base, expected="fixed or floating")
    return dataclasses.replace(robot, base=base) if base else robot


def load(path: str | os.PathLike[str], *, base: Base | None = None, gravity: ArrayLike | None = None,
         loops: str | os.PathLike[str] | None = None, strict: bool = False) -> Model:
    """Model of a robot file (URDF, YAML or MJCF).

    Parameters
    ----------
    path : str or Path
    base : "fixed" or "floating", optional
        Whether the root link is welded to the ground or free; default: from the file (URDF: fixed).
    gravity : three numbers, optional
        Acceleration of gravity in the world [m/s^2]; default: from the file, else (0, 0, -9.81).
    loops : str or Path, optional
        YAML file of closures and couplings, added to those of the robot file. Default: for arm.urdf, arm.loops.yaml beside it,
        else loops.yaml beside it if its key `robot` names arm.urdf.
    strict : bool
        Findings (see `model.findings`) become an error. By default, a robot that has some is loaded with one `LiedynWarning`.

    Raises
    ------
    ModelError
        For a robot that cannot be computed correctly, with file, line and element.
    CheckFailed
        With `strict`, for a robot that has findings.

    Examples
    --------
    >>> ld.load("robots/double_pendulum.yaml")
    <Model double_pendulum: 2 joints, nq 2, nv 2, fixed base; 3 links, 2 kg>
    >>> ld.load("robots/double_pendulum.yaml", gravity=[0, 0, -1.62]).gravity
    array([ 0.  ,  0.  , -1.62])
    """
    model = read_model(path, base=base, gravity=gravity, loops=loops, strict=strict)
    warn(findings_note(model))
    return model


def read_model(path: str | os.PathLike[str], *, base: Base | None = None, gravity: ArrayLike | None = None,
               loops: str | os.PathLike[str] | None = None, strict: bool = False) -> Model:
    """`load` without a warning: for callers that return or print what is doubtful."""
    from liedyn.model.build import build
    robot = load_description(path, base, loops)
    if gravity is not None:
        robot = dataclasses.replace(robot, gravity=tuple(float(x) for x in gravity))
    model = build(robot)
    if strict and model.findings:
        first = model.findings[0]
        raise CheckFailed(f"{len(model.findings)} finding(s) in {path}, the first: {first}")
    return model


def findings_note(model: Model) -> list[str]:
    """A line about the findings of a robot; none without."""
    if not model.findings:
        return []
    one = len(model.findings) == 1
    return [f"{len(model.findings)} finding{'' if one else 's'} about the robot {model.name} (model.findings lists "
            f"{'it' if one else 'them'}); the first: {model.findings[0]}"]


def _with_constraints(robot: Robot, path: Path, loops) -> Robot:
    from liedyn.io.robots.loops import loops_beside, read_loops_file
    findings = ()
    if loops is not None:
        found = read_loops_file(loops)
    elif path.suffix.lower() in (".yaml", ".yml"):
        return robot
    else:
        found, findings = loops_beside(path)
    if found is None:
        return dataclasses.replace(robot, findings=(*robot.findings, *findings)) if findings else robot
    return dataclasses.replace(robot, loops=(*robot.loops, *found.loops), couplings=(*robot.couplings, *found.couplings))


def _is_mjcf(path: Path) -> bool:
    from liedyn.io.robots.xml_reader import root_tag
    return root_tag(path) == "mujoco"
