from __future__ import annotations

import click

from liedyn.cli.along import compute_along
from liedyn.cli.console import with_console
from liedyn.cli.options import along_options


@click.command(short_help="Forces of prescribed joints, accelerations of the others.")
@along_options
@click.option("-p", "--prescribed", multiple=True, required=True, metavar="PATTERN",
              help="Joints whose acceleration is given, a name or a pattern such as 'leg_*'; may be repeated.")
@with_console
def hybrid(prescribed, **options):
    """Hybrid dynamics along TRAJECTORY: forces of the prescribed joints, accelerations of all others.

    Prescribed joints need columns a (or q or v to derive it from), all others tau.

    \b
    Example:  liedyn hybrid motion.csv --prescribed 'panda_joint[1-4]' --prescribed '*finger*'
    writes    motion_hybrid.csv
    """
    def compute(model, motion):
        from liedyn.simulate.along import hybrid_along
        return hybrid_along(model, motion, prescribed)

    compute_along(compute, "hybrid", **options)
