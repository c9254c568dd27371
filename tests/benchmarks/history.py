"""Figures of `make bench` with machine and commit: rows of docs/benchmarks/history.csv, which the site draws."""
from __future__ import annotations

import csv
import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

from liedyn import __version__

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "benchmarks" / "history.csv"
COLUMNS = ("date", "commit", "version", "machine", "python", "benchmark", "us", "ratio")


class History:
    """The figures of one run. ratio: times as fast as the other library."""

    def __init__(self) -> None:
        self.figures: list[tuple[str, float, float]] = []

    def add(self, benchmark: str, us: float, ratio: float) -> None:
        self.figures.append((benchmark, us, ratio))

    def append_to(self, path: Path) -> None:
        """Append the rows. A new file gets the line of columns."""
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        about = date, commit(), __version__, machine(), platform.python_version()
        is_new = not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if is_new:
                writer.writerow(COLUMNS)
            writer.writerows((*about, name, f"{us:.4g}", f"{ratio:.4g}") for name, us, ratio in self.figures)


def commit() -> str:
    """Return the commit of the sources, with `-dirty` for changes."""
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=10"], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or "unknown"


def machine() -> str:
    """Return the processor, and the target of the code if it is another one."""
    try:
        names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        names = []
    name = names[0] if names else platform.processor() or platform.machine()
    target = os.environ.get("NUMBA_CPU_NAME")
    return f"{name}, as {target}" if target else name
