"""Whether the result of a run will fit into memory and onto the disk: estimated before it starts."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from liedyn.errors import ComputationError
from liedyn.integrators.problem import Problem

_IN_MEMORY = 80          # bytes a number of a result that stays in memory: the record, its checks, columns made of it
_A_ROW, _SOME = 40, 64_000_000      # bytes where the rows go to disk: of a row its time, and copies of that; some rows
_ON_DISK = 28            # bytes a number: 20 of the CSV, 8 of the rows while the run is not finished
_ENOUGH = 100e6          # bytes: less than this needs no looking


def check_room(problem: Problem, rows: int, folder: str | os.PathLike | None = None) -> None:
    """Refuse a run of so many rows whose result needs more memory than is free, or more disk than is free where `folder` is or
    will be. Without a folder the rows stay in memory. Raises ComputationError with the estimate."""
    memory, disk = size_of_result(problem, rows, folder is not None)
    _refuse(memory, available_memory(), rows, "memory")
    if folder is not None:
        free, place = free_disk(folder)
        _refuse(disk, free, rows, f"disk in {place}")


def free_disk(folder: str | os.PathLike) -> tuple[int, Path]:
    """Bytes that are free where a folder is or will be, and the folder there that exists."""
    place = next(p for p in (Path(folder).absolute(), *Path(folder).absolute().parents) if p.is_dir())
    return shutil.disk_usage(place).free, place


def size_of_result(problem: Problem, rows: int, to_disk: bool) -> tuple[int, int]:
    """Bytes that a result of so many rows takes in memory and on disk, about."""
    numbers = rows * numbers_of_a_row(problem)
    memory = numbers * _IN_MEMORY
    return min(memory, rows * _A_ROW + _SOME) if to_disk else memory, numbers * _ON_DISK


def numbers_of_a_row(problem: Problem) -> int:
    """Time, state, accelerations, forces, wrenches, contacts, stops, energies, multipliers."""
    model = problem.model
    touching = 0 if problem.contacts is None else 3 * len(problem.contacts.link) + 3
    stops = 0 if problem.stops is None else len(np.unique(problem.stops.coordinate)) + len(problem.guards)
    tied = model.nc if problem.ties is not None else 0
    return model.nq + 3 * model.nv + 6 * len(problem.forced_links) + touching + stops + tied + 6


def available_memory() -> float:
    """Bytes that a process may still take, as far as the system tells: infinite where it does not."""
    limit, used = _figure("/sys/fs/cgroup/memory.max"), _figure("/sys/fs/cgroup/memory.current")
    return min(_figure("/proc/meminfo", "MemAvailable:", 1024.0), limit - used if used < limit else limit)


def _figure(path: str, key: str = "", unit: float = 1.0) -> float:
    """The number behind `key` in a file of the system; infinite where there is none."""
    try:
        words = Path(path).read_text(encoding="ascii").split()
        return float(words[words.index(key) + 1 if key else 0]) * unit
    except (OSError, ValueError, IndexError):
        return float("inf")                                    # also for the word max


def _refuse(needed: float, free: float, rows: int, what: str) -> None:
    if needed > max(free, _ENOUGH):
        raise ComputationError(f"the result of {rows} rows needs about {needed / 1e9:.3g} GB of {what}; {free / 1e9:.3g} GB are "
                               "free (a larger output_step makes fewer rows; --force-long or force_long=True tries anyway)")
