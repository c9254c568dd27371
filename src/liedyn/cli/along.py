"""What the commands over a trajectory have in common: their options, which robot it is of, and writing the result."""
from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import FILE_OR_STDIN, base_option, force_option, json_option, robot_option, strict_option

_OPTIONS = (
    click.argument("trajectory", type=FILE_OR_STDIN), robot_option,
    click.option("-o", "--output", type=click.Path(), help="CSV to write, `-` for stdout. Default: beside TRAJECTORY, with the "
                 "command's name appended."),
    base_option, strict_option, force_option, json_option)


def along_command(short_help: str, *options: Callable) -> Callable:
    """A command over a trajectory. It is given as a function (model, motion, values of its own options, progress) -> result."""
    def decorated(compute: Callable) -> click.Command:
        @functools.wraps(compute)
        def command(console, trajectory, robot, base, output, strict, force, as_json, **own):
            from liedyn.io.csv import read_trajectory, write_trajectory
            from liedyn.io.output import check_output

            target = _beside(trajectory, compute.__name__) if output is None else output
            if as_json and target == "-":
                raise click.UsageError("--json and a CSV cannot both go to stdout; name a file with -o.")
            check_output(target, force=force)
            motion = read_trajectory(trajectory, events=True)

            # only now: Numba takes half a second to import
            from liedyn.analyse.along.robot_of_file import comments_for, robot_of
            from liedyn.code_cache import FIRST_RUN

            model, notes = robot_of(motion, robot, base=base, strict=strict)
            console.robot(model)
            with console.progress.stage(f"computing ({FIRST_RUN})"):
                result = compute(model, motion, **own, progress=console.progress)
            comments = comments_for(result.header, model, target, motion if robot is None else None)
            if motion.header.get("attached"):
                comments["without"] = f"bodies attached to {motion.header['attached']}"
            write_trajectory(target, comments, result.t, result.columns, force=force)
            notes = [*notes, *result.notes]
            console.notes(notes)
            if as_json:
                console.result_json({"output": target, "rows": len(result.t), "columns": [name for name, _, _ in result.columns],
                                     "notes": notes})
            if target != "-":
                console.wrote_file(target, f": {len(result.columns)} columns, {len(result.t)} rows")

        return click.command(short_help=short_help)(with_console(*_OPTIONS, *options)(command))
    return decorated


def _beside(trajectory: str, name: str) -> str:
    """The file to write: `motion.csv` -> `motion_name.csv`; standard input goes to standard output."""
    path = Path(trajectory)
    return "-" if trajectory == "-" else str(path.with_name(f"{path.stem}_{name}.csv"))
