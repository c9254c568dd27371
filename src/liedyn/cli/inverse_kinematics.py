"""The command `ik`: configurations in which a link reaches a target."""
from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, arguments_first, with_console
from liedyn.cli.options import (
    FILE,
    TRAJECTORY,
    base_option,
    force_option,
    json_option,
    loops_option,
    reading_options,
    robot_argument,
    strict_option,
    with_options,
)

if TYPE_CHECKING:                       # imports NumPy
    from liedyn.arrays import Base
    from liedyn.dynamics.kinematic_tasks import Task
    from liedyn.robot_files import ReadingOptions


class Numbers(click.ParamType):         # type: ignore[type-arg]  # versions of click differ
    """Finite numbers, separated by commas."""

    name = "numbers"

    def __init__(self, count: int):
        self.count = count

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Return the numbers. Raise click.BadParameter for another text."""
        if isinstance(value, tuple):
            return value
        try:
            values = tuple(map(float, str(value).split(",")))
        except ValueError:
            values = ()
        if len(values) != self.count or not all(map(math.isfinite, values)):
            self.fail(f"expected {self.count} numbers separated by commas, got {value!r}.", param, ctx)
        return values


_TARGET_OPTIONS = (
    click.option("-l", "--link", metavar="NAME", help="Link that must reach the target."),
    click.option("--pose", type=Numbers(6), metavar="X,Y,Z,R,P,Y", help="Position [m] and roll, pitch, yaw [rad] of the link."),
    click.option("--position", type=Numbers(3), metavar="X,Y,Z", help="Position of the link [m]."),
    click.option("--rpy", type=Numbers(3), metavar="R,P,Y", help="Orientation of the link: roll, pitch, yaw [rad]."),
    click.option("--quaternion", type=Numbers(4), metavar="X,Y,Z,W", help="Orientation of the link as a unit quaternion."),
    click.option("--direction", type=Numbers(3), metavar="X,Y,Z", help="Direction of the axis of the link."),
    click.option("--look-at", type=Numbers(3), metavar="X,Y,Z", help="Point to which the axis of the link points [m]."),
    click.option("--distance", type=click.FloatRange(0, min_open=True), metavar="M",
                 help="Distance of the link from the origin of --relative-to, or of the world [m]."),
    click.option("--com", type=Numbers(3), metavar="X,Y,Z", help="Centre of mass of the robot [m]."),
    click.option("--axis", type=Numbers(3), metavar="X,Y,Z",
                 help="Axis of the link for --direction and --look-at. Default: its z."),
    click.option("--point", type=Numbers(3), metavar="X,Y,Z",
                 help="Point of the link that has the position [m]. Default: its origin."),
    click.option("--relative-to", metavar="LINK", help="Link in whose axes the target is. Default: the world."))


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a target of a link or of the centre of mass, for `tasks_of_options`."""
    return with_options(command, _TARGET_OPTIONS)


@click.command(short_help="Find a configuration in which a link reaches a target.")
@robot_argument
@target_options
@click.option("--tasks", "task_file", type=FILE, metavar="FILE.yaml", help="List of tasks with the fields of `ld.Task`, such as "
              "priority and weight.")
@click.option("--targets", type=TRAJECTORY, metavar="FILE.csv", help="Path of targets: columns pose.LINK.px[m] … qw, "
              "com.position.x[m] …, as `liedyn kinematics` writes them.")
@click.option("--independent", is_flag=True, help="Rows of --targets are separate targets: each search starts from --q, then at "
              "random.")
@click.option("--q", "q", multiple=True, metavar="JOINT=VALUE", help="Initial guess of a joint's coordinates (separated by "
              "commas); may be repeated. Default: zero, or the middle of limits that exclude it.")
@click.option("--posture", multiple=True, metavar="JOINT=VALUE", help="Preferred coordinates of a joint, as far as the "
              "target allows; may be repeated.")
@click.option("--fix", "fixed", multiple=True, metavar="PATTERN", help="Joints that stay at the guess; may be repeated.")
@click.option("--restarts", type=click.IntRange(0), metavar="N", help="Maximum number of further searches at random "
              "configurations. Default: 40.")
@click.option("--seed", type=click.IntRange(0), metavar="N", default=0, show_default=True, help="Seed of these configurations.")
@click.option("--no-limits", is_flag=True, help="Ignore the limits of joint positions.")
@click.option("--tolerance", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=1e-10, show_default=True,
              help="Maximum error [rad, or m per characteristic length of the robot].")
@click.option("--nearest", is_flag=True, help="Also write configurations that miss their targets.")
@loops_option
@click.option("-o", "--output", type=click.Path(), default="-", help="File to write, .yaml or .csv. Default: stdout, YAML of "
              "one target, CSV of a path.")
@with_console(base_option, reading_options, strict_option, force_option, json_option)
def ik(robot: str, task_file: str | None, targets: str | None, independent: bool, q: tuple[str, ...], posture: tuple[str, ...],         # noqa: PLR0913
       fixed: tuple[str, ...], restarts: int | None, seed: int, no_limits: bool, tolerance: float, nearest: bool,
       loops: str | None, output: str | None, base: Base | None, reading: ReadingOptions, strict: bool, force: bool,
       as_json: bool, console: Console, **goals: Any) -> None:
    """Find a configuration of ROBOT in which a link reaches a target, within the joint limits and with loops closed.

    The result of one target can be copied to `initial:` of a scenario. A path is followed without jumps: each search starts
    from the row before. If a target is not reached, the exit status is 1, a message says by how much it is missed, and nothing
    is written without --nearest.

    \b
    Examples:
      liedyn ik robots/panda.yaml --link panda_hand \\
          --position 0.4,0,0.5 --rpy 3.14,0,0
      liedyn ik robots/ur5.yaml --link tool0 --position 0.4,0.2,0.3 \\
          --direction 0,0,-1 --posture elbow_joint=1.5
      liedyn ik robots/panda.yaml --targets path.csv -o joints.csv
      liedyn ik robots/quadruped.yaml --base floating --tasks tasks.yaml
    """
    from liedyn.io.atomic_output import check_output

    if as_json and output == "-":
        output = None

    def prepare() -> tuple[Any, ...]:
        from liedyn.analysis.recorded_robot import robot_of
        from liedyn.analysis.target_paths import SearchOptions, tasks_of_file, tasks_of_trajectory
        from liedyn.io.trajectory_csv import read_trajectory
        from liedyn.robot_files import read_model
        options = SearchOptions(q, posture, fixed, restarts, seed, not no_limits, tolerance)
        tasks = tasks_of_file(task_file) if task_file else []
        if targets is None:
            if independent:
                raise click.UsageError("--independent requires --targets.")
            tasks += tasks_of_options(**goals)
            return read_model(robot, base=base, loops=loops, strict=strict, **reading), tasks, options, None
        extra = [name for name, value in goals.items() if value is not None and name not in ("link", "point")]
        if extra:
            raise click.UsageError(f"--{extra[0].replace('_', '-')} cannot be combined with --targets.")
        if loops is not None:
            raise click.UsageError("--loops cannot be combined with --targets.")
        path = read_trajectory(targets)
        model, _ = robot_of(path, robot, base=base, strict=strict, reading=reading)
        return model, tasks_of_trajectory(model, path, goals["link"], goals["point"]) + tasks, options, path

    if output:
        with arguments_first(prepare):
            check_output(output, force=force, endings=(".csv",) if targets else (".yaml", ".yml", ".csv"))

    from liedyn.analysis.recorded_robot import options_comment
    from liedyn.analysis.target_paths import reach_targets
    from liedyn.errors import ComputationError
    from liedyn.report.result_summary import reached_text, reached_to_dict, write_reached

    model, tasks, options, path = prepare()
    if not tasks:
        raise click.UsageError("no target: give --link NAME with --position X,Y,Z, --com X,Y,Z, --tasks FILE.yaml, or "
                               "--targets FILE.csv.")
    console.robot(model)
    with console.progress.stage("searching"):
        solution = reach_targets(model, tasks, options, path=path is not None and not independent)
    console.message(reached_text(model, solution))
    all_reached = bool(solution.reached.all())
    console.warn(*(warning for warning in solution.warnings if all_reached or nearest or warning.code != "target-missed"))
    if as_json:
        console.result_json(reached_to_dict(model, solution))
    if output and (all_reached or nearest):
        comments = options_comment(reading, Path() if output == "-" else Path(output).absolute().parent)
        write_reached(model, solution, path, output, comments, force=force)
        console.file(output)
    if not all_reached:
        count = "" if path is None else f"{int((~solution.reached).sum())} of {solution.reached.size} targets are "
        hint = "" if path is None or independent else " (--independent also searches from --q and at random)"
        raise ComputationError(f"{count or 'the target is '}not reached: {solution.miss()}{hint}")


def tasks_of_options(link: str | None, com: tuple[float, ...] | None, rpy: tuple[float, ...] | None,
                     quaternion: tuple[float, ...] | None, **values: Any) -> list[Task]:
    """Return the tasks of the options. Raise click.UsageError for options that contradict each other."""
    from liedyn.dynamics.kinematic_tasks import Task
    from liedyn.model.links import Pose
    from liedyn.model.spatial import pose

    if rpy is not None and quaternion is not None:
        raise click.UsageError("--rpy and --quaternion both give the orientation; leave one of them out.")
    used = {name: value for name, value in values.items() if value is not None}
    if "pose" in used:
        used["pose"] = pose(Pose.from_xyz_rpy(used["pose"][:3], used["pose"][3:]))
    goals = [name for name in used if name not in ("point", "axis", "relative_to")]
    if rpy is not None or quaternion is not None:
        goals.append("rpy" if quaternion is None else "quaternion")
        used["orientation"] = quaternion if rpy is None else pose(Pose.from_xyz_rpy((0.0, 0.0, 0.0), rpy))[:3, :3]
    of_link = [*goals, *(name for name in ("axis", "point") if name in used)]
    if of_link and link is None:
        raise click.UsageError(f"--{of_link[0].replace('_', '-')} requires --link NAME.")
    if link is not None and not goals:
        raise click.UsageError("--link requires a target, such as --position X,Y,Z.")
    out = [Task(link=link, **used)] if goals else []
    return out if com is None else [*out, Task(centre_of_mass=com, relative_to=values["relative_to"])]
