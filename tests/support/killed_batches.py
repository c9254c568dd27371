"""A batch whose processes are killed again and again, and resumed, ends with the table of one that was left alone.

    python tests/support/killed_batches.py SWEEP FOLDER KILLS [SEED] [--dask]

In turn SIGKILL ends the client or one of its workers at a random moment; with --dask workers of a cluster of this machine, its
scheduler, or the client. Prints what happened; status 1 where the table differs, or has a run twice or not at all.
"""
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import liedyn.batch.run_batch as run_batch
from liedyn.batch.run_batch import PreparedSweep
from liedyn.io.sweep_file import read_sweep

SIZE = 8                 # runs to a chunk


def compute(sweep: str, folder: str, scheduler: str | None) -> None:
    run_batch._MAX_SEQUENTIAL_SECONDS = 0.0                    # processes at once
    PreparedSweep(read_sweep(sweep), SIZE).run(folder, resume=True, jobs=2, scheduler=scheduler)


def client(sweep: str, folder: Path, scheduler: str | None) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, __file__, "--client", sweep, str(folder), scheduler or ""])


def children(process: int) -> list[int]:
    """Return the worker processes of a process, without its resource tracker."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = status.read_text().split(" ", 1)
            line = Path(status.parent, "cmdline").read_bytes()
        except OSError:
            continue
        if int(rest.rpartition(")")[2].split()[1]) == process and b"spawn_main" in line:
            found.append(int(number))
    return found


def killed(sweep: str, folder: Path, kills: int, seed: int, dask: bool = False) -> dict[str, int]:
    chance, found = random.Random(seed), {"client": 0, "worker": 0, "scheduler": 0, "attempts": 0, "failed": 0}
    cluster = Cluster(folder.parent) if dask else None
    running, left = None, kills
    try:
        while True:
            if running is None:
                if cluster:
                    cluster.mend()
                running = client(sweep, folder, cluster and cluster.address)
                found["attempts"] += 1
            try:
                status = running.wait(chance.uniform(0.5, 4.0) if left else 300)
            except subprocess.TimeoutExpired:
                who = chance.choice(["client", "worker", *(["scheduler"] if dask else [])])
                victims = [running.pid] if who == "client" else cluster.pids(who) if cluster else children(running.pid)
                if victims:
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    found[who] += 1
                    left -= 1
                    if cluster:
                        time.sleep(0.2)
                        cluster.mend()
                continue
            found["failed"] += status not in (0, -signal.SIGKILL)
            running = None
            if status == 0:
                return found
            if found["attempts"] > 2 * kills + 5:
                return found | {"not finished": 1}
    finally:
        if running is not None:
            running.kill()
        if cluster:
            cluster.close()


class Cluster:
    """A scheduler and two workers, each a separate process."""

    def __init__(self, place: Path):
        self.place, self.port = place, 20000 + os.getpid() % 20000
        self.address, self.processes = f"tcp://127.0.0.1:{self.port}", {}
        self.mend()

    def mend(self) -> None:
        """Start the processes that are missing."""
        from shutil import which
        dask = which("dask", path=os.path.dirname(sys.executable))
        commands = {"scheduler": [dask, "scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]}
        commands |= {f"worker {k}": [dask, "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
                                     "--death-timeout", "60", "--local-directory", str(self.place)] for k in range(2)}
        for name, command in commands.items():
            if name not in self.processes or self.processes[name].poll() is not None:
                self.processes[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def pids(self, who: str) -> list[int]:
        return [one.pid for name, one in self.processes.items() if name.startswith(who)]

    def close(self) -> None:
        for one in self.processes.values():
            one.kill()
            one.wait()


def difference(folder: Path, alone: Path) -> str:
    """Return the difference between the tables of two folders, or ""."""
    from pyarrow import parquet
    tables = [parquet.read_table(one / "runs.parquet").drop_columns(["seconds"]) for one in (folder, alone)]
    if not tables[0].equals(tables[1]):
        return "the tables differ"
    if (alone / "trajectories").is_dir():
        names = [sorted(path.name for path in (one / "trajectories").iterdir()) for one in (folder, alone)]
        rows = [parquet.read_table(one / "trajectories") for one in (folder, alone)]
        if names[0] != names[1] or not rows[0].equals(rows[1]):
            return "the trajectories differ"
    return ""


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        compute(*sys.argv[2:4], sys.argv[4] or None)
        sys.exit(0)
    arguments = [one for one in sys.argv[1:] if one != "--dask"]
    place = Path(arguments[1])
    PreparedSweep(read_sweep(arguments[0]), SIZE).run(place / "alone", force=True)
    result = killed(arguments[0], place / "killed", int(arguments[2]), int(arguments[3]) if len(arguments) > 3 else 0,
                    "--dask" in sys.argv)
    print(result, difference(place / "killed", place / "alone") or "equal")
    sys.exit(bool(difference(place / "killed", place / "alone")))
