"""The command line, and scripts of configs/, called from a test."""
import importlib.util
import inspect
import re
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from liedyn.cli.app import main

# click 8.1 mixes the streams unless it is told not to; later versions keep them apart and do not know the option
_APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}


_PROGRESS = re.compile(r"^.* …( \d+%)? \(\d+ s(; [^)\n]*)?\)\n", re.MULTILINE)


class Said(NamedTuple):
    """What a command left; stderr without the lines about progress, which a slow machine adds anywhere."""

    exit_code: int
    stdout: str
    stderr: str
    exception: BaseException | None

    @property
    def output(self) -> str:
        return self.stdout + self.stderr

TWO_BARS = """
name: bars
links:
  upper: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}
  lower: {mass: 2, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}
joints:
  hip: {type: revolute, parent: world, child: upper, axis: [0, 1, 0], limits: {lower: -9, upper: 9}, damping: 0.1}
  knee: {type: continuous, parent: upper, child: lower, axis: [0, 1, 0], origin: {xyz: [0, 0, -0.4]}}
"""


def run(*args, **options) -> Said:
    result = CliRunner(**_APART).invoke(main, [str(arg) for arg in args], **options)
    return Said(result.exit_code, result.stdout, _PROGRESS.sub("", result.stderr), result.exception)


def ok(*args, **options) -> Said:
    result = run(*args, **options)
    assert result.exit_code == 0, result.output
    return result


def said(result: Said) -> list[str]:
    return result.stderr.splitlines()


def script_of(name: str):
    """Return configs/NAME.py as a module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / f"configs/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
