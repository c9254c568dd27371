"""A run that is killed again and again, and resumed, ends with the file of one that was left alone.

    python tests/support/killed_runs.py SCENARIO KILLS [SEED]

Each attempt is a separate process (a fork of this one, which has compiled everything) that SIGKILL ends at a random moment:
while it computes, writes a checkpoint, or writes its result. A run that comes to its end is compared, and another one begins.
Prints what happened; status 1 where a file differs.
"""
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import liedyn.simulation.run_recorder as rows
from liedyn.cli.app import main
from liedyn.io.atomic_output import is_unfinished

_FILES = "trajectory.csv", "events.csv"


def attempt(scenario: str, folder: Path, *options: str) -> int:
    """Return the process number of a process that simulates."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            rows.CHECKPOINT_PERIOD, rows._MAX_TIME_FRACTION = 0.02, 1.0
            main(["simulate", scenario, "-o", str(folder), "--no-plots", "-q", *options], standalone_mode=False)
            status = 0
        except BaseException as error:
            status = getattr(error, "exit_code", 1)
        finally:
            os._exit(status)
    return child


def same(one: Path, other: Path) -> bool:
    there = [name for name in _FILES if (one / name).exists()]
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in there)


def killed(scenario: str, kills: int, seed: int) -> dict[str, int]:
    chance, found = random.Random(seed), {"kills": 0, "with a checkpoint": 0, "compared": 0, "different": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as place:
        alone, run = Path(place, "alone"), Path(place, "run")
        main(["simulate", scenario, "-o", str(alone), "--no-plots", "-q"], standalone_mode=False)      # compiles
        shutil.rmtree(alone)
        began = time.perf_counter()
        os.waitpid(attempt(scenario, alone), 0)
        duration = time.perf_counter() - began
        while found["kills"] < kills or is_unfinished(run) or not found["compared"]:
            child = attempt(scenario, run, "--resume")
            if found["kills"] < kills:
                time.sleep(chance.uniform(0.1, 0.6) * duration)
                os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            if os.WIFSIGNALED(status):
                found["kills"] += 1
                found["with a checkpoint"] += is_unfinished(run)
            elif status:
                found["refused"] += 1
                break
            else:
                found["compared"] += 1
                found["different"] += not same(alone, run)
                shutil.rmtree(run)
    return found


if __name__ == "__main__":
    result = killed(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    print(result)
    sys.exit(bool(result["different"] or result["refused"] or not result["compared"]))
