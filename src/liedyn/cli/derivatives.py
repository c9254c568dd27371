from __future__ import annotations

import click

from liedyn.cli.along import along_command


@along_command(
    "Compute derivatives of the dynamics along a trajectory.",
    click.option("--of", type=click.Choice(["inverse", "forward", "hybrid"]), default="inverse", show_default=True,
                 help="What to differentiate: joint forces, accelerations, or the result of hybrid dynamics."),
    click.option("-p", "--prescribed", multiple=True, metavar="PATTERN",
                 help="With --of hybrid: joints whose acceleration is prescribed; may be repeated."),
    click.option("--by", multiple=True, metavar="PATTERN",
                 help="What to differentiate by, such as 'q.*', v.elbow, mass.hand, 'com.hand.*', 'origin.elbow.*', gravity.z; "
                      "may be repeated. Default: q, v and the input (a or tau) of all coordinates."),
    click.option("--joint", "joints", multiple=True, metavar="PATTERN",
                 help="Joints whose force or acceleration is differentiated; may be repeated. Default: all."),
    click.option("--verify", is_flag=True,
                 help="Compare some rows with extrapolated finite differences; exit status 4 if they differ."))
def derivatives(model, motion, of, prescribed, by, joints, verify, progress):
    """Compute derivatives of the dynamics along TRAJECTORY, one column each, such as dtau.elbow/dq.shoulder.

    Derivatives by q are tangent: for ball and free joints, by small rotations and translations along the body axes
    (q.base.wx …).

    \b
    Example:  liedyn derivatives runs/ur5_excite/trajectory.csv --joint wrist_1_joint --by 'mass.*' --by 'friction.*'
    writes    runs/ur5_excite/trajectory_derivatives.csv
    Example:  liedyn derivatives motion.csv --of forward --joint elbow --by 'mass.*' --by 'com.hand.*' --verify
    """
    from liedyn.analyse.along.derivatives_along import derivatives_along
    return derivatives_along(model, motion, of=of, prescribed=prescribed, by=by, joints=joints, verify=verify,
                             progress=progress)
