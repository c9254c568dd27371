from __future__ import annotations

import click

from liedyn.cli.along import along_command
from liedyn.cli.options import order_option, smooth_option


@along_command(
    "Compute joint forces along a trajectory.",
    click.option("-a", "--actuated", multiple=True, metavar="PATTERN", help="For a robot with loops: joints that have a "
                 "motor, a name or a pattern; may be repeated. Default: those with a force in TRAJECTORY."),
    click.option("--criterion", type=click.Choice(["unique", "least_torque", "least_constraint_force"]), default="unique",
                 show_default=True, help="For a robot with loops and more motors than its motion needs: how to choose the "
                 "forces."),
    click.option("--wrenches", type=click.Choice(["world", "link", "joint"]), help="Also write the wrench that each joint "
                 "transmits (fixed joints too), in axes of the world, the child link or the joint's frame, and reactions of "
                 "loops likewise."),
    order_option, smooth_option)
def inverse(model, motion, actuated, criterion, wrenches, order, smooth, progress):
    """Compute the joint forces along TRAJECTORY, a CSV of q and, optionally, v and a.

    Columns are matched by name (q.elbow[rad], v.elbow[rad/s], …), in any order. Missing v and a are computed from q. With
    --order 2, the result also has the time derivatives d1tau.elbow[N m/s] and d2tau.elbow[N m/s^2]. They are computed from
    columns d1a.elbow[rad/s^3] and d2a.elbow[rad/s^4], or from splines whose error is estimated.

    \b
    Example:  liedyn inverse runs/panda_hybrid/trajectory.csv
    writes    runs/panda_hybrid/trajectory_inverse.csv
    Example:  liedyn inverse motion.csv --robot arm.urdf -o - | head
    Example:  liedyn inverse motion.csv --robot arm.urdf --order 2 --smooth auto
    Example:  liedyn inverse runs/four_bar/trajectory.csv --wrenches world
    Example:  liedyn inverse runs/five_bar_redundant/trajectory.csv --criterion least_torque
    """
    from liedyn.analyse.along.dynamics_along import dynamics_along
    return dynamics_along(model, motion, "inverse", actuated=actuated, criterion=criterion, order=order, smooth=smooth,
                          wrenches=wrenches, progress=progress)
