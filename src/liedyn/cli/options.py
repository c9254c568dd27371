"""Arguments and options that several commands share."""
from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, Decorator, arguments_first, with_console
from liedyn.errors import close_to
from liedyn.io.robots import IGNORABLE
from liedyn.io.robots.described_robots import described_file

if TYPE_CHECKING:                       # they import NumPy and Numba
    from liedyn.analysis.recorded_motion import CompletedTrajectory
    from liedyn.arrays import Base
    from liedyn.io.ros_bag import BagOptions
    from liedyn.robot_files import ReadingOptions


class Existing(click.Path):
    """A path that must exist. The error suggests the nearest existing path."""

    def __init__(self, **options: Any):
        super().__init__(exists=True, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path as text. Raise click.BadParameter if it does not exist or is not of the required kind."""
        try:
            return super().convert(described_file(value), param, ctx)
        except click.BadParameter as error:
            if (suggestion := _suggestion(Path(value))) is not None:
                advice = f"Did you mean '{suggestion}'?"
            elif not os.path.exists(value) and _is_example(Path(value)):      # noqa: PTH110 - false for a name that is too long
                advice = "It is an example file: `liedyn examples --copy .` writes all of them."
            else:
                raise
            raise click.BadParameter(f"{error.message.rstrip('.')}. {advice}", ctx, param) from None


def _suggestion(path: Path) -> Path | None:
    """Return the trajectory of a run folder, or the existing path with the nearest name; None if there is none."""
    try:
        trajectory = path / "trajectory.csv"
        if trajectory.is_file() or path.exists():
            return trajectory if trajectory.is_file() else None
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:                                         # also of a name that is too long
        return None
    close = close_to(path.name, names, cutoff=0.7)
    return path.with_name(close[0]) if close else None


def _is_example(path: Path) -> bool:
    """Return whether an example file has this relative path."""
    from liedyn.errors import UsageError
    from liedyn.io.example_files import example_files
    try:
        return path in example_files()
    except UsageError:                                      # an installation without them
        return False


class TrajectoryPath(Existing):
    """A trajectory file, the folder of a ROS bag, or `-`."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, allow_dash=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path as text. Raise click.BadParameter if it does not exist or is another folder."""
        return str(value) if Path(value).is_dir() and is_bag_file(value) else super().convert(value, param, ctx)


def is_bag_file(path: str) -> bool:
    """Return whether this is a file or the folder of a ROS bag."""
    from liedyn.io.ros_bag import is_bag  # imports NumPy
    return is_bag(path)


FILE, TRAJECTORY = Existing(dir_okay=False), TrajectoryPath()

robot_argument = click.argument("robot", type=FILE)

base_option = click.option("--base", type=click.Choice(["fixed", "floating"]), help="Fix the root link to the ground or let "
                           "it float. Default: from the robot file.")
force_option = click.option("--force", is_flag=True, help="Overwrite an existing result.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print a report in JSON to stdout.")
loops_option = click.option("--loops", type=FILE, metavar="FILE", help="YAML file with loops and couplings for the robot file.")
robot_option = click.option("-r", "--robot", type=FILE, help="Robot file. Default: the one named in the trajectory.")
columns_option = click.option("--columns", metavar="MAP|FILE.yaml", help="Names and units of the columns of another CSV, such as "
                              "'t=stamp[ms],q.elbow=joint_3_pos[deg]', or a YAML file with them. Default: NAME.columns.yaml "
                              "next to NAME.csv, if it exists.")
_BAG_OPTIONS: tuple[Decorator, ...] = (
    click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Topic of a ROS bag to read: joint states, "
                 "odometry or tf of a floating base, wrenches; may be repeated. Default: the only one with joint states."),
    click.option("--base-frame", metavar="[WORLD:]FRAME", help="Frame of the floating base in the tf of a ROS bag, such as "
                 "base_link or odom:base_link."),
    click.option("--interpolate", is_flag=True, help="Interpolate topics of a ROS bag with other times at those of the "
                 "first one."),
    click.option("--log-times", is_flag=True, help="Use the times of the recorder of a ROS bag instead of the stamps."))


def bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for ROS bags. The command receives them as `bag`, the keyword arguments of `read_trajectory`."""
    @functools.wraps(command)
    def with_bag(*args: Any, topics: tuple[str, ...], base_frame: str | None, interpolate: bool, log_times: bool,
                 **values: Any) -> Any:
        bag: BagOptions = {"topics": topics, "base_frame": base_frame, "interpolate": interpolate, "log_times": log_times}
        return command(*args, bag=bag, **values)
    return with_options(with_bag, _BAG_OPTIONS)


def with_options(command: Callable[..., Any], options: tuple[Decorator, ...]) -> Callable[..., Any]:
    """Return the command with options, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


ignore_mimic_option = click.option("--ignore-mimic", is_flag=True, help="Leave out mimic joints and couplings of the robot: "
                                   "their joints move independently.")
IGNORE_MIMIC = "ignore_mimic=true"           # the override of a scenario that does the same


def _positive_number(text: str, expected: str) -> float:
    """Return the number of a text, or raise an error that names the expected value."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise click.BadParameter(f"expected {expected}, got {text!r}.")
    return number


def _density(text: str) -> float:
    return _positive_number(text, "a positive number [kg/m^3]")


def _xacro_args(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    for text in values:
        if "=" not in text:
            raise click.BadParameter(f"expected NAME=VALUE, got {text!r}.")
    arguments = dict(text.split("=", 1) for text in values)
    if len(arguments) < len(values):
        raise click.BadParameter(f"expected one value of each argument, got {', '.join(values)}.")
    return arguments


_READING_OPTIONS: tuple[Decorator, ...] = (
    click.option("--inertia-from-meshes", type=_density, metavar="DENSITY", help="Density [kg/m^3] of the links of a URDF "
                 "without inertial, which get the mass and inertia of their shapes and meshes."),
    click.option("--ignore", multiple=True, type=click.Choice(list(IGNORABLE)), help="Leave out parts of an MJCF file that "
                 "change the motion, with a warning; may be repeated."),
    click.option("--xacro-arg", "xacro_args", multiple=True, metavar="NAME=VALUE", callback=_xacro_args,
                 help="Argument of a xacro file; may be repeated."),
    click.option("--package-root", "package_roots", multiple=True, type=Existing(file_okay=False), metavar="FOLDER",
                 help="Folder in which to look for `package://` meshes; may be repeated. Folders above the robot file and ROS "
                 "packages are found without it."))


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for reading a robot file. The command receives those that are used as `reading`."""
    @functools.wraps(command)
    def with_reading(*args: Any, inertia_from_meshes: float | None, ignore: tuple[str, ...], xacro_args: dict[str, str],
                     package_roots: tuple[str, ...], **values: Any) -> Any:
        options = {"inertia_from_meshes": inertia_from_meshes, "ignore": list(ignore), "xacro_args": xacro_args,
                   "package_roots": list(package_roots)}
        return command(*args, reading={key: x for key, x in options.items() if x}, **values)
    return with_options(with_reading, _READING_OPTIONS)


def reading_overrides(reading: ReadingOptions) -> tuple[str, ...]:
    """Return the overrides of a scenario that do the same as these options."""
    return tuple(f"{key}={json.dumps(value)}" for key, value in reading.items())


meshes_option = click.option("--meshes/--no-meshes", default=None, help="Draw the meshes of the robot file, or not. Default: if "
                             "liedyn[meshes] is installed.")
strict_option = click.option("--strict", is_flag=True, help="Treat robot warnings as errors (see `liedyn check`).")
file_kind_argument = click.argument("kind", metavar="scenario|robot|loops|sweep|columns",
                                     type=click.Choice(["scenario", "robot", "loops", "sweep", "columns"]))
text_output_option = click.option("-o", "--output", type=click.Path(), default="-", metavar="FILE",
                                  help="File to write. Default: stdout.")


def seconds_or(*words: str) -> Callable[[str], float | str]:
    """Return a function that reads a positive number of seconds, or one of several words."""
    def read(text: str) -> float | str:
        if text in words:
            return text
        return _positive_number(text, f"a positive number of seconds, or {' or '.join(map(repr, words))}")
    return read


def _checked_override(text: str) -> str:
    from liedyn.io.yaml_values import is_override

    if not is_override(text):
        raise click.UsageError(f"-S {text}: expected -S key.path=value")
    return text


def override_option(example: str = "") -> Decorator:
    """Return the option -S of commands that read a scenario. example: inserted after the first words of its help."""
    return click.option("-S", "overrides", multiple=True, type=_checked_override, metavar="KEY=VALUE",
                        help=f"Override a value of the scenario{example}, or remove a key (KEY=null); may be repeated.")


live_option = click.option("--live", is_flag=True, help="Write a page that simulates a scenario or robot file in the browser.")
slider_option = click.option("--slider", "sliders", multiple=True, metavar="NAME[=LOW:HIGH]", help="With --live: a slider for a "
                             "parameter of the robot, such as mass.hand, or a number of the scenario; may be repeated.")


class RangeOr(click.FloatRange):
    """A number within a range, or a word."""

    def __init__(self, word: str, low: float) -> None:
        super().__init__(low)
        self.word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number or the word."""
        return value if value == self.word else super().convert(value, param, ctx)


class Order(click.IntRange):
    """An integer within a range, with this name in errors."""

    name = "integer"


order_option = click.option("--order", type=Order(0, 170), default=0, show_default=True, metavar="R",      # 171! is no double
                            help="Also compute time derivatives up to this order: columns d1tau, d2tau … and d1a, d2a …")
smooth_option = click.option("--smooth", type=seconds_or("auto"), metavar="SECONDS|auto",
                             help="Compute missing derivatives with least-squares splines of this knot spacing (auto: for each "
                                  "coordinate the one with the smallest estimated error) instead of interpolating splines.")


# Commands over a trajectory: common options, the robot of the trajectory, and output ------------------------------------

_OPTIONS: tuple[Decorator, ...] = (
    click.argument("trajectory", type=TRAJECTORY), robot_option, columns_option, bag_options,
    click.option("-o", "--output", type=click.Path(), metavar="FILE",
                 help="CSV to write, `-` for stdout. Default: next to TRAJECTORY, with the command's name appended."),
    base_option, ignore_mimic_option, reading_options, strict_option, force_option, json_option)


def along_command(short_help: str, *options: Decorator, check: Callable[..., object] | None = None,
                  ) -> Callable[[Callable[..., CompletedTrajectory]], click.Command]:
    """Return a decorator that makes a command over a trajectory from a function.

    The function takes (model, motion, values of the command's options, progress) and returns the result. `check` takes the model
    and the values, and raises for wrong ones.
    """
    def decorate(compute: Callable[..., CompletedTrajectory]) -> click.Command:
        @functools.wraps(compute)
        def command(console: Console, trajectory: str, robot: str | None, columns: str | None, bag: BagOptions,  # noqa: PLR0913 - options
                    base: Base | None, output: str | None, ignore_mimic: bool, reading: ReadingOptions, strict: bool, force: bool,
                    as_json: bool, **values: Any) -> None:
            from liedyn.io.atomic_output import check_output
            from liedyn.io.trajectory_csv import read_trajectory, write_trajectory

            target = _default_output(trajectory, compute.__name__) if output is None else output
            if as_json and target == "-":
                raise click.UsageError("--json and a CSV cannot both be written to stdout; name a file with -o.")

            def check_arguments() -> None:
                from liedyn.analysis.recorded_robot import robot_of
                model, _ = robot_of(read_trajectory(trajectory, columns=columns, **bag), robot, base=base, strict=strict,
                                    ignore_mimic=ignore_mimic, reading=reading)
                if check is not None:
                    check(model, **values)

            with arguments_first(check_arguments):
                check_output(target, force=force)
            motion = read_trajectory(trajectory, columns=columns, **bag)

            # imported here: Numba takes half a second to import
            from liedyn.analysis.recorded_robot import MIMIC_IGNORED, comments_for, ignores_mimic, reading_comment, robot_of

            model, robot_warnings = robot_of(motion, robot, base=base, strict=strict, ignore_mimic=ignore_mimic,
                                             reading=reading)
            console.robot(model)
            with console.progress.stage("computing"):
                result = compute(model, motion, **values, progress=console.progress)
            comments = comments_for(result.header, model, target, motion if robot is None else None)
            comments |= reading_comment(motion, robot, reading, target)
            if ignore_mimic or ignores_mimic(motion):
                comments["mimic"] = MIMIC_IGNORED
            if motion.header.get("attached"):
                comments["without"] = f"bodies attached to {motion.header['attached']}"
            write_trajectory(target, comments, result.t, result.columns, force=force)
            warnings = [*robot_warnings, *result.warnings]
            console.warn(*warnings)
            if as_json:
                compared = {"torque_differences": [each._asdict() for each in result.differences]} if result.differences else {}
                console.result_json({"output": target, "rows": len(result.t), "columns": [name for name, _, _ in result.columns],
                                     **compared, "warnings": [warning.to_dict() for warning in warnings]})
            console.file(target, f"{len(result.columns)} columns, {len(result.t)} rows")

        return click.command(short_help=short_help)(with_console(*_OPTIONS, *options)(command))
    return decorate


def _default_output(trajectory: str, name: str) -> str:
    """Return the output file: `motion.csv` -> `motion_name.csv`; standard input is written to standard output."""
    path = Path(trajectory)
    stem = path.name if path.is_dir() else path.stem
    return "-" if trajectory == "-" else str(path.with_name(f"{stem}_{name}.csv"))
