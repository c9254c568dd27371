from __future__ import annotations

import click

from liedyn.cli.along import compute_along
from liedyn.cli.console import with_console
from liedyn.cli.options import along_options


@click.command(short_help="Joint forces along a trajectory.")
@along_options
@with_console
def inverse(**options):
    """Joint forces along TRAJECTORY, a CSV of q (and v, a where it has them).

    Columns bind by name (q.elbow[rad], v.elbow[rad/s], …) in any order; v and a that are missing are derived from q.

    \b
    Example:  liedyn inverse runs/panda_hybrid/trajectory.csv
    writes    runs/panda_hybrid/trajectory_inverse.csv
    Example:  liedyn inverse motion.csv --robot arm.urdf -o - | head
    """
    def compute(model, motion):
        from liedyn.simulate.along import inverse_along
        return inverse_along(model, motion)

    compute_along(compute, "inverse", **options)
