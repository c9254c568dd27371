"""Some runs of a batch again, from its folder: those with given numbers, or with the smallest or largest value of an output."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from liedyn.batch.chunk import FAILED, by_loops_of, hashes
from liedyn.batch.run_batch import Batch
from liedyn.batch.store import Store
from liedyn.errors import ComputationError, UsageError, nearest
from liedyn.io.sweep import SIMULATE
from liedyn.io.sweep_file import read_sweep
from liedyn.simulation.run import Result, Silent, simulate_prepared

_LEAST, _LARGEST, _FEW = "min:", "max:", 4


@dataclass(frozen=True, eq=False)
class Rerun:
    """varied: what varied, each with its value, for people; result: of a run that diverged, the rows before that."""

    number: int
    varied: tuple[str, ...]
    result: Result


def chosen_runs(folder: str | os.PathLike, wanted: Sequence[str]) -> list[int]:
    """Numbers of runs of a batch. wanted: numbers such as "7", ranges "0-3", `min:OUTPUT`, `max:OUTPUT`; none: a few, evenly
    spread. Raises UsageError for what the table does not have."""
    table = Store(folder).read()
    count, numbers = len(table), []
    if not wanted:
        numbers = np.unique(np.linspace(0, count - 1, min(_FEW, count)).round().astype(int)).tolist()
    for one in wanted:
        if one.startswith((_LEAST, _LARGEST)):
            numbers.append(_extreme(folder, table, one))
            continue
        first, _, last = one.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise UsageError(f"--runs {one}: not a number of a run, a range such as 0-3, min:OUTPUT or max:OUTPUT")
        numbers += range(int(first), int(last or first) + 1)
    beyond = [number for number in numbers if number >= count]
    if beyond:
        raise UsageError(f"there is no run {beyond[0]}: {folder} has {count} runs, from 0 to {count - 1}")
    return list(dict.fromkeys(numbers))


def rerun(folder: str | os.PathLike, numbers: Iterable[int],
          progress: Callable[[float], None] = lambda share: None) -> list[Rerun]:
    """Simulate runs of a batch again; they are what they were, for they are made of the same numbers.

    Raises UsageError where the files of the batch have changed since, or a run failed before it began.
    """
    store, numbers = Store(folder), list(numbers)
    about, table = store.about() or {}, store.read()
    if about.get("job", SIMULATE) != SIMULATE:
        raise UsageError(f"the runs of {folder} are no simulations but of the job {about['job']}: `liedyn batch … --rerun K` "
                         "writes the CSV of one")
    source = about.get("source")
    if not source or not Path(source).is_file():
        raise UsageError(f"the sweep of {folder} no longer exists: {source or 'it was not a file'}")
    batch = Batch(replace(read_sweep(source), overrides=tuple(about["overrides"])))
    found = []
    for done, number in enumerate(numbers):
        progress(done / len(numbers))
        row, = table.slice(number, 1).to_pylist()
        if number >= batch.count or hashes(batch.identity, number, batch.binding.values(number, number + 1)) != [row["hash"]]:
            raise UsageError(f"{source}, its scenario or its robot has changed since {folder} was written: "
                             f"`liedyn batch {source} -o {folder} --resume` computes it anew")
        if row["status"] == FAILED:
            raise UsageError(f"run {number} has no motion: {row['reason']}")
        found.append(Rerun(number, _varied(about, row), _result(batch, number)))
    return found


def _result(batch: Batch, number: int) -> Result:
    run = batch.binding.run(number)
    try:
        with by_loops_of(run.model, batch.binding.prepared.model):
            return simulate_prepared(run, Silent(), trials=False)
    except ComputationError as error:
        if error.result is None:
            raise
        return error.result


def _varied(about: dict, row: dict) -> tuple[str, ...]:
    values = ((one["name"], row[one["name"]]) for one in about["vary"])
    return tuple(f"{name} {x:.4g}" if isinstance(x, float) else f"{name} {x}" for name, x in values)


def _extreme(folder, table, wanted: str) -> int:
    name = wanted[len(_LEAST):]
    outputs = [*(Store(folder).about() or {}).get("outputs", {})]
    if name not in outputs:
        raise UsageError(f"--runs {wanted}: the batch has no output {name!r}; "
                         + (nearest(name, outputs) or f"it has {', '.join(outputs) or 'none'}"))
    x = np.array(table[name].to_pylist(), dtype=float)               # NaN of runs that are not complete
    if np.isnan(x).all():
        raise UsageError(f"--runs {wanted}: no run is complete")
    return int((np.nanargmin if wanted.startswith(_LEAST) else np.nanargmax)(x))
