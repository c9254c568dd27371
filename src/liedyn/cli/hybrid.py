from __future__ import annotations

import click

from liedyn.cli.along import along_command
from liedyn.cli.options import order_option, smooth_option


@along_command(
    "Compute hybrid dynamics along a trajectory.",
    click.option("-p", "--prescribed", multiple=True, required=True, metavar="PATTERN",
                 help="Joints whose acceleration is prescribed, a name or a pattern such as 'leg_*'; may be repeated."),
    order_option, smooth_option)
def hybrid(model, motion, prescribed, order, smooth, progress):
    """Compute hybrid dynamics along TRAJECTORY: the forces of prescribed joints and the accelerations of all others.

    Prescribed joints need columns a (or q or v, from which a is computed), all others need tau. With --order 2, the result also
    has the first two time derivatives. They are computed from columns d1a.elbow, d2a.elbow and d1tau.knee, d2tau.knee, or from
    splines whose error is estimated.

    \b
    Example:  liedyn hybrid motion.csv --prescribed 'panda_joint[1-4]' --prescribed '*finger*'
    writes    motion_hybrid.csv
    Example:  liedyn hybrid motion.csv --prescribed 'base' --order 2
    """
    from liedyn.analyse.along.dynamics_along import dynamics_along
    return dynamics_along(model, motion, "hybrid", prescribed, order=order, smooth=smooth, progress=progress)
