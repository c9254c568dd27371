from __future__ import annotations

import click

from liedyn.cli.along import compute_along
from liedyn.cli.console import with_console
from liedyn.cli.options import along_options


@click.command(short_help="Joint accelerations along a trajectory.")
@along_options
@with_console
def forward(**options):
    """Joint accelerations along TRAJECTORY, a CSV of q, v and tau, at each row's state.

    Nothing is integrated: for the motion that forces cause, see `liedyn simulate`.

    \b
    Example:  liedyn forward runs/panda_hybrid/trajectory.csv
    writes    runs/panda_hybrid/trajectory_forward.csv
    """
    def compute(model, motion):
        from liedyn.simulate.along import forward_along
        return forward_along(model, motion)

    compute_along(compute, "forward", **options)
