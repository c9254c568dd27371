"""The command line: each command parses, loads, makes one library call, writes and echoes.

Commands import the library inside their functions, so that `--help` needs neither NumPy nor Numba.
"""
from __future__ import annotations

import importlib

import click

from liedyn import __version__
from liedyn.errors import LiedynError

_COMMANDS = ("simulate", "inverse", "forward", "hybrid", "info", "check", "plot")


class _Commands(click.Group):
    """Imports a command when it is asked for, and is the one place where a LiedynError becomes a message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        return getattr(importlib.import_module(f"liedyn.cli.{name}"), name)

    def invoke(self, ctx: click.Context):
        try:
            return super().invoke(ctx)
        except LiedynError as error:
            click.echo(f"liedyn: error: {error}", err=True)
            ctx.exit(error.exit_status)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="%(prog)s %(version)s")
def main():
    """Inverse, forward and hybrid dynamics of robots: robot file in, motion and forces out.

    \b
    liedyn simulate configs/panda_hybrid.yaml          run a scenario; pictures and CSV in runs/panda_hybrid/
    liedyn inverse runs/panda_hybrid/trajectory.csv    the joint forces along a motion
    liedyn info robots/panda.yaml                      what a robot file holds

    Exit status: 0 done, 1 the computation failed, 2 wrong usage, 3 invalid input, 4 a check did not hold.
    """
