"""The command line, called from a test."""
from click.testing import CliRunner

from liedyn.cli import main


def run(*args, **options):
    return CliRunner().invoke(main, [str(arg) for arg in args], **options)


def ok(*args, **options):
    result = run(*args, **options)
    assert result.exit_code == 0, result.output
    return result


def said(result) -> list[str]:
    """What the command said, without the progress of a compilation."""
    return [line for line in result.stderr.splitlines() if "… " not in line]
