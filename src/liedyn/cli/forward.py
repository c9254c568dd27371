from __future__ import annotations

import click

from liedyn.cli.along import compute_along
from liedyn.cli.console import with_console
from liedyn.cli.options import along_options, order_option, smooth_option


@click.command(short_help="Joint accelerations along a trajectory.")
@along_options
@order_option
@smooth_option
@with_console
def forward(order, smooth, console, **options):
    """Joint accelerations along TRAJECTORY, a CSV of q, v and tau, at each row's state.

    Nothing is integrated: for the motion that forces cause, see `liedyn simulate`. With --order 2: a, a' and a'' as a.elbow,
    d1a.elbow and d2a.elbow, from columns d1tau.elbow and d2tau.elbow or by splines, whose error is estimated.

    \b
    Example:  liedyn forward runs/panda_hybrid/trajectory.csv
    writes    runs/panda_hybrid/trajectory_forward.csv
    Example:  liedyn forward motion_inverse.csv --order 2
    """
    def compute(model, motion):
        from liedyn.simulate.along import forward_along
        return forward_along(model, motion, order=order, smooth=smooth, progress=console.progress)

    compute_along(compute, "forward", console=console, **options)
