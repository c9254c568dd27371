"""Arguments and options that several commands share."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

_FILE = click.Path(exists=True, dir_okay=False)

robot_argument = click.argument("robot", type=_FILE)
trajectory_argument = click.argument("trajectory", type=click.Path(exists=True, dir_okay=False, allow_dash=True))

base_option = click.option("--base", type=click.Choice(["fixed", "floating"]), help="Weld the root link to the ground or set it "
                           "free, whatever the file says.")
force_option = click.option("--force", is_flag=True, help="Overwrite an existing result.")
json_option = click.option("--json", "as_json", is_flag=True, help="Report on stdout as JSON.")
robot_option = click.option("-r", "--robot", type=_FILE, help="Robot file; default: the one that the trajectory names.")
strict_option = click.option("--strict", is_flag=True, help="Refuse a robot with findings (see `liedyn check`).")
csv_output_option = click.option("-o", "--output", type=click.Path(), help="CSV to write, `-` for stdout; default: beside "
                                 "TRAJECTORY, with the command's name added.")


def along_options(command: Callable) -> Callable:
    """What inverse, forward and hybrid take."""
    for option in (json_option, force_option, strict_option, base_option, csv_output_option, robot_option, trajectory_argument):
        command = option(command)
    return command


def output_beside(trajectory: str, output: str | None, name: str) -> str:
    """The file to write: as given, else `motion.csv` -> `motion_name.csv`; standard input goes to standard output."""
    if output is not None:
        return output
    path = Path(trajectory)
    return "-" if trajectory == "-" else str(path.with_name(f"{path.stem}_{name}.csv"))
