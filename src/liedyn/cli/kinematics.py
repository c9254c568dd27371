from __future__ import annotations

import click

from liedyn.cli.along import along_command


@along_command(
    "Compute the motion of links along a trajectory.",
    click.option("-l", "--link", "links", multiple=True, metavar="PATTERN",
                 help="A link, or a pattern of links; may be repeated."),
    click.option("--point", type=float, nargs=3, metavar="X Y Z",
                 help="A point of the link, in its axes [m]. Default: its origin."),
    click.option("--frame", type=click.Choice(["local", "local_world_aligned", "world"]), default="local_world_aligned",
                 show_default=True, help="Frame of twist, acceleration and Jacobian: link axes, about the point; world axes, "
                 "about the point; world axes, about the world's origin."),
    click.option("--jacobian", is_flag=True, help="Also write the Jacobian and the manipulability."),
    click.option("--com", is_flag=True, help="Write the centre of mass, its velocity and acceleration."),
    click.option("--momentum", is_flag=True,
                 help="Write the linear momentum, and the angular momentum about the centre of mass."),
    click.option("--zmp", is_flag=True, help="Write the zero-moment point (of gravity and inertia) on the plane z = 0."))
def kinematics(model, motion, links, point, frame, jacobian, com, momentum, zmp, progress):
    """Compute poses, twists and accelerations of links along TRAJECTORY, a CSV of q and, optionally, v and a.

    Columns are pose.hand.px[m], twist.hand.vx[m/s], speed.hand[m/s], acceleration.hand.vx[m/s^2], …; with --jacobian also
    jacobian.hand.vx/elbow[m/rad], … Missing v and a are computed from q. `liedyn plot` draws the result.

    \b
    Example:  liedyn kinematics runs/panda_hybrid/trajectory.csv --link panda_hand --jacobian
    writes    runs/panda_hybrid/trajectory_kinematics.csv
    Example:  liedyn kinematics motion.csv --robot arm.urdf --link hand --point 0 0 0.1 --frame local
    Example:  liedyn kinematics runs/quadruped_walks/trajectory.csv --link '*_foot' --com --momentum --zmp
    """
    from liedyn.analyse.along.kinematics_along import kinematics_along
    return kinematics_along(model, motion, links, point=point, frame=frame, jacobian=jacobian, com=com, momentum=momentum,
                            zmp=zmp)
