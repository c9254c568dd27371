"""The folder of a batch: chunks, each written atomically, and the table that is assembled from them.

    batch.json                 the sweep and the results of the checks before the first run
    chunks/<name>.parquet      rows of the table; the name is a hash of the inputs of the runs
    trajectories/<name>.parquet
    runs.parquet               the table, written when all chunks are complete
"""
from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.batch.evaluator import COMPLETE
from liedyn.errors import UsageError
from liedyn.io.atomic_output import check_folder, open_folder, remove, scratch_folder, translate_os_errors
from liedyn.io.sweep_file import Sweep

if TYPE_CHECKING:                       # plots of a batch need no dynamics
    from liedyn.batch.evaluator import SampleTable

MARK, RUNS, TEXT, CHUNKS, TRAJECTORIES = "batch.json", "runs.parquet", "runs.csv", "chunks", "trajectories"
_GROUP = 65536           # rows of the table per row group
_NUMBER = re.compile(r"(?<!\w)[-+]?\d[\d.]*(e[-+]?\d+)?")                # numbers, in which reasons of one kind differ


def _texts(x) -> bool:
    return isinstance(x, list) and all(isinstance(one, str) for one in x)


# keys of batch.json that are read: (check, description of valid values)
_TOLD = {
    "runs_in_a_chunk": (lambda x: type(x) is int and x >= 1, "a whole number from 1 on"),
    "identity": (lambda x: isinstance(x, str), "text"), "overrides": (_texts, "a list of text"),
    "source": (lambda x: x is None or isinstance(x, str), "a path"),
    "outputs": (lambda x: isinstance(x, dict), "a mapping of expressions by name"),
    "parameters": (lambda x: isinstance(x, list) and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in x),
                   "a list of mappings with key, name and scale"),
}


class ResultStore:
    """The folder of a batch. trajectories: whether trajectories are stored."""

    def __init__(self, folder: str | os.PathLike, trajectories: bool = False):
        self.folder, self.trajectories = Path(folder), trajectories

    def begin(self, force: bool, resume: bool) -> dict | None:
        """Return the content of batch.json of an earlier batch in the folder, or None.

        Raises UsageError if it must not be changed.
        """
        check_folder(self.folder, mark=MARK, force=True)
        if not (self.folder / MARK).exists():
            return None
        if resume:
            return self.about()
        if not force:
            raise UsageError(f"{self.folder} exists already; --resume computes what is missing, --force starts anew")
        with translate_os_errors(self.folder):
            for one in sorted(self.folder.iterdir(), key=lambda path: path.name == MARK):             # the mark goes last
                remove(one)
        return None

    def read(self, columns: list[str] | None = None):
        """Return the table, or some of its columns. Raises UsageError if there is no table yet."""
        from pyarrow import parquet
        if not (self.folder / RUNS).is_file():
            raise UsageError(f"{self.folder} has no table yet: `liedyn batch … --resume` computes what is missing")
        return parquet.read_table(self.folder / RUNS, columns=columns)

    def about(self) -> dict | None:
        """Return the content of batch.json, or None if it does not exist. Raises UsageError if it is not valid."""
        try:
            found = json.loads((self.folder / MARK).read_text(encoding="utf-8"))
        except OSError:
            return None
        except ValueError as error:
            raise UsageError(f"{self.folder / MARK} is damaged: {error} (--force starts anew)") from None
        for key, (good, expected) in _TOLD.items():
            if not isinstance(found, dict) or (key in found and not good(found[key])):
                x = found.get(key) if isinstance(found, dict) else found
                raise UsageError(f"{self.folder / MARK} is damaged: {key}: found {json.dumps(x)[:60]}, expected {expected} "
                                 "(--force starts anew)")
        return found

    def tell(self, about: dict) -> None:
        """Write batch.json, and create the folder if it does not exist."""
        text = json.dumps(about, indent=2) + "\n"
        if self.about() is None:
            try:
                with open_folder(self.folder, mark=MARK) as part:
                    (part / MARK).write_text(text, encoding="utf-8")
            except UsageError:
                if self.about() is None:                       # else another shard was faster
                    raise
        with translate_os_errors(self.folder):
            with scratch_folder(self.folder) as part:
                (part / MARK).write_text(text, encoding="utf-8")
                os.replace(part / MARK, self.folder / MARK)
            for name in (CHUNKS, *([TRAJECTORIES] if self.trajectories else [])):
                (self.folder / name).mkdir(exist_ok=True)

    @property
    def has_csv(self) -> bool:
        """Whether the table also exists as runs.csv, which is then rewritten with the table."""
        return (self.folder / TEXT).is_file()

    def remove_tables(self) -> None:
        """Remove the tables of another sweep while chunks of this one are missing."""
        for name in (RUNS, TEXT):
            remove(self.folder / name)

    def has(self, name: str) -> bool:
        return (self.folder / CHUNKS / f"{name}.parquet").is_file()

    def write(self, name: str, sweep: Sweep, table: SampleTable) -> None:
        """Write a chunk. Trajectories are written first: a chunk counts as complete when its rows of the table exist."""
        from pyarrow import parquet
        file, trajectories = f"{name}.parquet", table.trajectories
        with translate_os_errors(self.folder), scratch_folder(self.folder) as part:
            if trajectories:
                parquet.write_table(_trajectories_table(trajectories), part / "trajectory")
                os.replace(part / "trajectory", self.folder / TRAJECTORIES / file)
            parquet.write_table(runs_table(sweep, table), part / "runs")
            os.replace(part / "runs", self.folder / CHUNKS / file)

    def finish(self, names: Iterable[str], csv: bool) -> tuple[dict[str, int], int, tuple[int, str]]:
        """Assemble the table from the chunks with these names, and remove the chunks of other sweeps. csv: write runs.csv, too.

        Returns the number of runs with each status; the number of complete runs with a warning; and the most frequent reason of
        the runs that are not complete, apart from its numbers: how many runs have it, and its text in the first of them.
        """
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import parquet
        names, counts, doubtful, waiting = list(names), {}, 0, []
        kinds, texts = Counter(), {}                           # of reasons why runs are not complete
        with translate_os_errors(self.folder), scratch_folder(self.folder) as part:
            writer = None
            for k, name in enumerate(names):
                table = parquet.read_table(self.folder / CHUNKS / f"{name}.parquet")
                for one in pc.value_counts(table["status"]).to_pylist():
                    counts[one["values"]] = counts.get(one["values"], 0) + one["counts"]
                doubts = pc.and_(pc.equal(table["status"], COMPLETE), pc.not_equal(table["reason"], ""))
                doubtful += pc.sum(doubts).as_py() or 0
                for text in table.filter(pc.not_equal(table["status"], COMPLETE))["reason"].to_pylist():
                    kind = _NUMBER.sub("", text)
                    kinds[kind] += 1
                    texts.setdefault(kind, text)
                writer = writer or parquet.ParquetWriter(part / RUNS, table.schema)
                waiting.append(table)
                if sum(map(len, waiting)) >= _GROUP or k == len(names) - 1:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting.clear()
            writer.close()
            self._give_all_columns(names, part)
            if csv:
                _write_csv(part / RUNS, part / TEXT)
                os.replace(part / TEXT, self.folder / TEXT)
            os.replace(part / RUNS, self.folder / RUNS)
        ours = set(names)
        for place in (CHUNKS, TRAJECTORIES):
            for path in (self.folder / place).glob("*.parquet"):
                if path.stem not in ours or (place == TRAJECTORIES and not self.trajectories):
                    remove(path)
        kind, frequent = kinds.most_common(1)[0] if kinds else ("", 0)
        return counts, doubtful, (frequent, texts.get(kind, ""))

    def _give_all_columns(self, names: list[str], part: Path) -> None:
        """Add missing columns to each file of trajectories, filled with null.

        Readers of a folder use the schema of its first file.
        """
        import pyarrow as pa
        from pyarrow import parquet
        files = [path for path in (self.folder / TRAJECTORIES / f"{name}.parquet" for name in names)
                 if self.trajectories and path.is_file()]
        schemas = [parquet.read_schema(path) for path in files]
        whole = pa.unify_schemas(schemas) if schemas else None
        for path, schema in zip(files, schemas, strict=True):
            if schema.names != whole.names:
                table = pa.concat_tables([whole.empty_table(), parquet.read_table(path)], promote_options="default")
                parquet.write_table(table, part / "trajectory")
                os.replace(part / "trajectory", path)


def runs_table(sweep: Sweep, table: SampleTable):
    """Return the rows of a table: one column per varied parameter and per output.

    Outputs of runs that are not complete are null.
    """
    import pyarrow as pa
    columns = {"number": pa.array(table.number, pa.int64())}
    for one, x in zip(sweep.parameters, table.values, strict=True):
        numbers = isinstance(x, np.ndarray)
        columns[one.name] = pa.array(x, pa.float64()) if numbers else pa.array([_text(y) for y in x], pa.string())
    for k, output in enumerate(sweep.outputs):
        columns[output.name] = pa.array(table.outputs[:, k], pa.float64(), mask=np.isnan(table.outputs[:, k]))
    columns["energy_balance"] = pa.array(table.energy_balance, pa.float64(), mask=np.isnan(table.energy_balance))
    columns |= {"status": pa.array(table.status, pa.string()), "reason": pa.array(table.reason, pa.string()),
                "seconds": pa.array(table.seconds, pa.float64()), "hash": pa.array(table.hash, pa.string())}
    return pa.table(columns)


def _trajectories_table(columns: dict[str, np.ndarray]):
    import pyarrow as pa
    return pa.table({title: pa.array(x, mask=np.isnan(x)) for title, x in columns.items()})


def _write_csv(source: Path, target: Path) -> None:
    from pyarrow import csv, parquet
    with parquet.ParquetFile(source) as file, csv.CSVWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches():
            writer.write_batch(batch)


def _text(x) -> str:
    return x if isinstance(x, str) else json.dumps(x)
