"""Whole processes: what a person waits for."""
from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCENARIO = Path(__file__).parents[2] / "configs/panda_hybrid.yaml"
_UNPINNED = "import os, sys; os.sched_setaffinity(0, range(os.cpu_count())); os.execv(sys.argv[1], sys.argv[1:])"
HELP, WARM, COLD = 0.3, 2.0, 60.0             # s


def wall(arguments: list[str], **environment: str) -> float:
    """Return the seconds of a process. A failing one is an error."""
    command = [sys.executable, "-m", "liedyn", *arguments]
    if hasattr(os, "sched_setaffinity"):             # this process is pinned, what it starts is not
        command = [sys.executable, "-c", _UNPINNED, *command]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - began


def report(line) -> None:
    print("\nwhole processes (s)")
    with tempfile.TemporaryDirectory() as folder:
        simulate = ["simulate", str(SCENARIO), "-o", f"{folder}/run", "--force"]
        cold = wall(simulate, LIEDYN_CACHE_DIR=f"{folder}/cache")
        warm = statistics.median(wall(simulate, LIEDYN_CACHE_DIR=f"{folder}/cache") for _ in range(5))
        shown = statistics.median(wall(["--help"]) for _ in range(7))
    line(cold < COLD, f"first run ever of panda_hybrid, compilation included: {cold:.1f} (asked {COLD:g})")
    line(warm < WARM, f"panda_hybrid with a warm cache, pictures included: {warm:.2f} (asked {WARM:g})")
    line(shown < HELP, f"liedyn --help: {shown:.3f} (asked {HELP:g})")
