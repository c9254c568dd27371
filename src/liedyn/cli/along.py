"""What the commands over a trajectory have in common: which robot it is of, and writing the result."""
from __future__ import annotations

from collections.abc import Callable

import click

from liedyn.cli.console import Console
from liedyn.cli.options import output_beside


def compute_along(compute: Callable, name: str, console: Console, trajectory: str, robot: str | None, base: str | None,
                  output: str | None, strict: bool, force: bool, as_json: bool) -> None:
    """Read TRAJECTORY, apply `compute(model, trajectory)`, write what it gives."""
    from liedyn.io.csv import read_trajectory, write_trajectory
    from liedyn.io.output import check_output

    target = output_beside(trajectory, output, name)
    if as_json and target == "-":
        raise click.UsageError("--json and a CSV cannot both go to stdout; name a file with -o.")
    check_output(target, force=force)
    motion = read_trajectory(trajectory, events=True)

    from liedyn.analyse.along.robot_of_file import comments_for, robot_of  # only now: Numba takes half a second to import

    model, notes = robot_of(motion, robot, base=base, strict=strict)
    console.robot(model)
    with console.progress.stage("computing (the first run compiles the kernels)"):
        result = compute(model, motion)
    write_trajectory(target, comments_for(result.header, model, target), result.t, result.columns, force=force)
    links = motion.header.get("attached")
    carried = f"the run of this file had bodies attached to {links}: results are those of the robot without them"
    notes = [*notes, *([carried] if links else []), *result.notes]
    console.notes(notes)
    if as_json:
        console.result_json({"output": target, "rows": len(result.t), "columns": [name for name, _, _ in result.columns],
                             "notes": notes})
    if target != "-":
        console.wrote_file(target, f": {len(result.columns)} columns, {len(result.t)} rows")
