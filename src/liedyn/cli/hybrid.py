from __future__ import annotations

import click

from liedyn.cli.along import compute_along
from liedyn.cli.console import with_console
from liedyn.cli.options import along_options, order_option, smooth_option


@click.command(short_help="Forces of prescribed joints, accelerations of the others.")
@along_options
@click.option("-p", "--prescribed", multiple=True, required=True, metavar="PATTERN",
              help="Joints whose acceleration is given, a name or a pattern such as 'leg_*'; may be repeated.")
@order_option
@smooth_option
@with_console
def hybrid(prescribed, order, smooth, console, **options):
    """Hybrid dynamics along TRAJECTORY: forces of the prescribed joints, accelerations of all others.

    Prescribed joints need columns a (or q or v to derive it from), all others tau. With --order 2 also the first two
    time derivatives of these: d1a.elbow, d2a.elbow and d1tau.knee, d2tau.knee, or splines, whose error is estimated.

    \b
    Example:  liedyn hybrid motion.csv --prescribed 'panda_joint[1-4]' --prescribed '*finger*'
    writes    motion_hybrid.csv
    Example:  liedyn hybrid motion.csv --prescribed 'base' --order 2
    """
    def compute(model, motion):
        from liedyn.simulate.along import hybrid_along
        return hybrid_along(model, motion, prescribed, order=order, smooth=smooth, progress=console.progress)

    compute_along(compute, "hybrid", console=console, **options)
