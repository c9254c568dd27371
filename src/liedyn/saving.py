"""From a model to a file: finds the format by the file's ending."""
from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from liedyn.errors import ModelError, Place, UsageError, warn
from liedyn.model.build import build
from liedyn.model.description import Robot
from liedyn.model.model import Model
from liedyn.model.urdf_subset import Loss, Subset, as_urdf

FORMATS = {".urdf": "urdf", ".yaml": "yaml", ".yml": "yaml"}
_CALLED = {"urdf": "URDF", "yaml": "robot YAML"}


@dataclass(frozen=True, slots=True)
class Conversion:
    """A robot as text of a format.

    text, loops  of the robot file, and of the loops file beside a URDF; None where none is needed
    robot        what the text describes
    rewritten    what was put otherwise and means the same
    losses       what the format cannot say (`Loss`)
    """

    format: str
    text: str
    loops: str | None
    robot: Robot
    rewritten: tuple[str, ...]
    losses: tuple[Loss, ...]

    def check(self, *, lossy: bool = False, source: str | None = None) -> None:
        """ModelError where the robot of the text would move otherwise, or, with `lossy`, could not be computed."""
        lost = [loss for loss in self.losses if loss.dynamics]
        if lost and not lossy:
            more = f", and {len(lost) - 3} more" if len(lost) > 3 else ""
            raise ModelError(f"a {_CALLED[self.format]} cannot describe the dynamics of this robot: "
                             f"{'; '.join(map(str, lost[:3]))}{more}", place=Place(source),
                             hint="--lossy or lossy=True writes what remains, and lists all that is lost")
        if not lost:
            return
        try:
            build(self.robot)
        except ModelError as error:
            raise ModelError(f"what a {_CALLED[self.format]} can describe of this robot cannot be computed: {error}") from None

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.rewritten, *map(str, self.losses))


def save(model: Model | Robot, path: str | os.PathLike[str], *, lossy: bool = False, force: bool = False) -> tuple[str, ...]:
    """Write a robot as URDF or robot YAML, by the ending of `path`.

    Numbers are preserved exactly, rotations of placements up to rounding. What URDF cannot express is written in an equivalent
    form where there is one: a universal joint, for example, becomes two revolute joints with a massless link between them. Loops
    and couplings of a URDF are written to a loops file beside it, `arm.loops.yaml` beside `arm.urdf`, which `load` reads.

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
    notes : tuple of str
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
    ('the ground is a link "world"',)
    >>> ld.load("pendulum.urdf")
    <Model double_pendulum: 2 joints, nq 2, nv 2, fixed base; 4 links, 2 kg>
    """
    path = Path(path)
    converted = convert(model, format_of(path), path.name)
    converted.check(lossy=lossy, source=model.source)
    write(converted, path, force=force)
    warn(converted.notes)
    return converted.notes


def format_of(path: Path) -> str:
    """The format that the ending of a file to write names; UsageError for others."""
    if path.name.endswith("loops.yaml"):
        raise UsageError(f"{path} is the name of a loops file; expected another name for a robot")
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        raise UsageError(f"{path}: unknown file name extension; expected {', '.join(FORMATS)}")
    return found


def convert(model: Model | Robot, format: str, name: str | None = None) -> Conversion:
    """The text of a robot in a format, "urdf" or "yaml", with what it cannot say; the robot is validated first.

    name: of the file; None: the text stands alone, so that a URDF cannot have loops and couplings."""
    robot = model if isinstance(model, Robot) else model.description
    build(robot)
    from liedyn.io.robots.write_robot_yaml import loops_yaml, robot_yaml
    from liedyn.io.robots.write_urdf import urdf
    shapes, lost = _shapes(robot.source, format)
    if format == "yaml":
        subset = _as_yaml(robot)
        return Conversion(format, robot_yaml(subset.robot), None, subset.robot, (), (*subset.losses, *lost))
    subset, loops = as_urdf(robot), None
    if robot.loops or robot.couplings:
        if name is None:
            subset.losses += [Loss(one.name, "the constraint is left out: it needs a loops file beside the URDF")
                              for one in (*robot.loops, *robot.couplings)]
        else:
            loops = loops_yaml(subset.robot, name)
            subset.rewritten.append(f"loops and couplings are in {loops_beside(Path(name))}, which other programs do not read")
    text = urdf(subset.robot, shapes)
    return Conversion(format, text, loops, subset.robot, tuple(subset.rewritten), (*subset.losses, *lost))


def loops_beside(path: Path) -> Path:
    return path.with_suffix(".loops.yaml")


def write(converted: Conversion, path: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Write the text, and the loops file where there is one: both or none. UsageError where a file exists, or where a loops file
    that stands beside would add its constraints to the robot."""
    from liedyn.io.output import check_output, open_output
    from liedyn.io.robots.loops import loops_beside as found_beside
    texts = {path: converted.text}
    if converted.loops is not None:
        texts[loops_beside(path)] = converted.loops
    elif converted.format == "urdf" and (found := found_beside(path)[0]) is not None:
        count = len(found.loops) + len(found.couplings)
        raise UsageError(f"a loops file beside {path} would add {count} constraint(s) to the robot; move it, or use "
                         "another name")
    for file in texts:
        check_output(file, force=force)
    with ExitStack() as files:
        for file, text in texts.items():
            files.enter_context(open_output(file, force=force)).write(text)
    return tuple(texts)


def _shapes(source: str | None, format: str):
    """Primitives for pictures by link, and what of the shapes is lost. A description has inertias only: they are in its file, if
    that is still there."""
    if source is None or not os.path.isfile(source):
        return {}, ()
    from liedyn.shape_files import count_shaped, link_shapes
    count, of_yaml = count_shaped(source), Path(source).suffix.lower() in (".yaml", ".yml")
    if count and format == "yaml":
        message = f"those of {count} link{'s' * (count > 1)} are left out; their inertias are written"
    elif count and not of_yaml:
        message = "meshes and collision shapes are left out; primitives are written for pictures"
    else:
        return link_shapes(source), ()
    return link_shapes(source), (Loss("shapes", message, dynamics=False),)


def yaml_of(model: Model) -> str:
    """The text of a robot YAML from which `load` builds the same model."""
    from liedyn.io.robots.write_robot_yaml import robot_yaml
    return robot_yaml(_as_yaml(model.description).robot)


def _as_yaml(robot: Robot) -> Subset:
    """A robot YAML says everything but a mimic of what does not exist or does not move."""
    names, out = {joint.name for joint in robot.joints}, Subset(robot)
    for joint in robot.joints:
        if joint.mimic and (joint.type == "fixed" or joint.mimic.joint not in names):
            message = f"its mimic of {joint.mimic.joint}, which has no effect, is left out"
            out.losses.append(Loss(joint.name, message, dynamics=False))
    lost = {loss.element for loss in out.losses}
    out.robot = replace(robot, joints=tuple(replace(j, mimic=None) if j.name in lost else j for j in robot.joints))
    return out
