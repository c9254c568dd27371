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
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from liedyn.arrays import Array
from liedyn.batch.evaluator import COMPLETE, SampleTable
from liedyn.errors import UsageError
from liedyn.io.atomic_output import check_folder, open_folder, remove, scratch_folder, translate_os_errors
from liedyn.io.sweep_file import Sweep

if TYPE_CHECKING:
    from pyarrow import Table

MARK, RUNS_TABLE, CSV_TABLE, CHUNKS, TRAJECTORIES = "batch.json", "runs.parquet", "runs.csv", "chunks", "trajectories"
_ROW_GROUP = 65536       # rows of the table per row group
_NUMBER = re.compile(r"(?<!\w)[-+]?\d[\d.]*(e[-+]?\d+)?")                # numbers, in which reasons of one kind differ


def _is_list_of_texts(x: object) -> bool:
    return isinstance(x, list) and all(isinstance(text, str) for text in x)


def _is_list_of_parameters(x: object) -> bool:
    return isinstance(x, list) and all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in x)


# keys of batch.json that are read: (check, description of valid values)
_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "runs_in_a_chunk": (lambda x: type(x) is int and x >= 1, "an integer >= 1"),
    "identity": (lambda x: isinstance(x, str), "text"), "overrides": (_is_list_of_texts, "a list of text"),
    "source": (lambda x: x is None or isinstance(x, str), "a path"),
    "outputs": (lambda x: isinstance(x, dict), "a mapping of expressions by name"),
    "parameters": (_is_list_of_parameters, "a list of mappings with key, name and scale"),
}


class TableSummary(NamedTuple):
    """Summary of the table of a batch.

    counts          number of runs with each status
    n_with_warning  number of complete runs with a warning
    failure         most frequent reason of the runs that are not complete, apart from its numbers: the number of runs with it,
                    and its text in the first of them
    """

    counts: dict[str, int]
    n_with_warning: int
    failure: tuple[int, str]


class ResultStore:
    """The folder of a batch. trajectories: whether trajectories are stored."""

    def __init__(self, folder: str | os.PathLike[str], trajectories: bool = False):
        self.folder, self.trajectories = Path(folder), trajectories

    def open(self, force: bool, resume: bool) -> dict[str, Any] | None:
        """Return the content of batch.json of an earlier batch in the folder, or None.

        force   remove an earlier batch
        resume  continue an earlier batch

        Raises UsageError if there is an earlier batch that must not be changed.
        """
        check_folder(self.folder, mark=MARK, force=True)
        if not (self.folder / MARK).exists():
            return None
        if resume:
            return self.description()
        if not force:
            raise UsageError(f"{self.folder} already exists; --resume computes the missing runs, --force starts over")
        with translate_os_errors(self.folder):
            for path in sorted(self.folder.iterdir(), key=lambda path: path.name == MARK):            # the mark goes last
                remove(path)
        return None

    def read(self, columns: list[str] | None = None) -> Table:
        """Return the table, or some of its columns. Raises UsageError if there is no table yet."""
        from pyarrow import parquet
        if not (self.folder / RUNS_TABLE).is_file():
            raise UsageError(f"{self.folder} has no table yet: `liedyn batch … --resume` computes the missing runs")
        return parquet.read_table(self.folder / RUNS_TABLE, columns=columns)

    def description(self) -> dict[str, Any] | None:
        """Return the content of batch.json, or None if it does not exist. Raises UsageError if it is not valid."""
        try:
            content = json.loads((self.folder / MARK).read_text(encoding="utf-8"))
        except OSError:
            return None
        except ValueError as error:
            raise UsageError(f"{self.folder / MARK} is damaged: {error} (--force starts over)") from None
        description: dict[str, Any] = content if isinstance(content, dict) else dict.fromkeys(_KEYS, content)
        for key, (is_valid, expected) in _KEYS.items():
            if not isinstance(content, dict) or (key in description and not is_valid(description[key])):
                raise UsageError(f"{self.folder / MARK} is damaged: {key}: expected {expected}, "
                                 f"got {json.dumps(description[key])[:60]} (--force starts over)")
        return description

    def write_description(self, description: dict[str, Any]) -> None:
        """Write batch.json, and create the folder if it does not exist."""
        text = json.dumps(description, indent=2) + "\n"
        if self.description() is None:
            try:
                with open_folder(self.folder, mark=MARK) as part:
                    (part / MARK).write_text(text, encoding="utf-8", newline="\n")
            except UsageError:
                if self.description() is None:                 # else another shard was faster
                    raise
        with translate_os_errors(self.folder):
            with scratch_folder(self.folder) as part:
                (part / MARK).write_text(text, encoding="utf-8", newline="\n")
                (part / MARK).replace(self.folder / MARK)
            for name in (CHUNKS, *([TRAJECTORIES] if self.trajectories else [])):
                (self.folder / name).mkdir(exist_ok=True)

    @property
    def has_csv(self) -> bool:
        """Whether the table also exists as runs.csv, which is then rewritten with the table."""
        return (self.folder / CSV_TABLE).is_file()

    def remove_tables(self) -> None:
        """Remove the tables of another sweep while chunks of this one are missing."""
        for name in (RUNS_TABLE, CSV_TABLE):
            remove(self.folder / name)

    def has_chunk(self, name: str) -> bool:
        """Return whether the chunk with this name is complete."""
        return (self.folder / CHUNKS / f"{name}.parquet").is_file()

    def write_chunk(self, name: str, sweep: Sweep, table: SampleTable) -> None:
        """Write a chunk. Trajectories are written first: a chunk counts as complete when its rows of the table exist."""
        from pyarrow import parquet
        file, trajectories = f"{name}.parquet", table.trajectories
        with translate_os_errors(self.folder), scratch_folder(self.folder) as part:
            if trajectories:
                parquet.write_table(_trajectories_table(trajectories), part / "trajectory")
                (part / "trajectory").replace(self.folder / TRAJECTORIES / file)
            parquet.write_table(runs_table(sweep, table), part / "runs")
            (part / "runs").replace(self.folder / CHUNKS / file)

    def write_table(self, names: Sequence[str], csv: bool) -> TableSummary:
        """Assemble the table from the chunks with these names, and remove other chunks. csv: also write runs.csv."""
        import pyarrow as pa
        from pyarrow import parquet
        statistics, waiting = _Statistics(), []
        chunks = [self.folder / CHUNKS / f"{name}.parquet" for name in names]
        with translate_os_errors(self.folder), scratch_folder(self.folder) as part:
            with parquet.ParquetWriter(part / RUNS_TABLE, parquet.read_schema(chunks[0])) as writer:
                for k, path in enumerate(chunks):
                    table = parquet.read_table(path)
                    statistics.add(table)
                    waiting.append(table)
                    if sum(map(len, waiting)) >= _ROW_GROUP or k == len(names) - 1:
                        writer.write_table(pa.concat_tables(waiting))
                        waiting.clear()
            self._unify_trajectory_columns(names, part)
            if csv:
                _write_csv(part / RUNS_TABLE, part / CSV_TABLE)
                (part / CSV_TABLE).replace(self.folder / CSV_TABLE)
            (part / RUNS_TABLE).replace(self.folder / RUNS_TABLE)
        self._remove_others(set(names))
        return statistics.summary()

    def _remove_others(self, names: set[str]) -> None:
        """Remove files of chunks with other names, and trajectories if they are not stored."""
        for folder in (CHUNKS, TRAJECTORIES):
            for path in (self.folder / folder).glob("*.parquet"):
                if path.stem not in names or (folder == TRAJECTORIES and not self.trajectories):
                    remove(path)

    def _unify_trajectory_columns(self, names: Iterable[str], part: Path) -> None:
        """Add missing columns to each file of trajectories, filled with null.

        Readers of a folder use the schema of its first file.
        """
        import pyarrow as pa
        from pyarrow import parquet
        files = [path for path in (self.folder / TRAJECTORIES / f"{name}.parquet" for name in names)
                 if self.trajectories and path.is_file()]
        if not files:
            return
        schemas = [parquet.read_schema(path) for path in files]
        schema_of_all = pa.unify_schemas(schemas)
        for path, schema in zip(files, schemas, strict=True):
            if schema.names != schema_of_all.names:
                table = pa.concat_tables([schema_of_all.empty_table(), parquet.read_table(path)], promote_options="default")
                parquet.write_table(table, part / "trajectory")
                (part / "trajectory").replace(path)


class _Statistics:
    """Counts of statuses, warnings and reasons over the chunks of a table."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.n_with_warning = 0
        self.reasons: Counter[str] = Counter()                 # of runs that are not complete, without numbers
        self.first_texts: dict[str, str] = {}

    def add(self, table: Table) -> None:
        """Count the runs of a chunk."""
        import pyarrow.compute as pc
        for entry in pc.value_counts(table["status"]).to_pylist():
            self.counts[entry["values"]] = self.counts.get(entry["values"], 0) + entry["counts"]
        has_warning = pc.and_(pc.equal(table["status"], COMPLETE), pc.not_equal(table["reason"], ""))
        self.n_with_warning += pc.sum(has_warning).as_py() or 0
        for text in table.filter(pc.not_equal(table["status"], COMPLETE))["reason"].to_pylist():
            kind = _NUMBER.sub("", text)
            self.reasons[kind] += 1
            self.first_texts.setdefault(kind, text)

    def summary(self) -> TableSummary:
        """Return the counts of all chunks that were added."""
        kind, count = self.reasons.most_common(1)[0] if self.reasons else ("", 0)
        return TableSummary(self.counts, self.n_with_warning, (count, self.first_texts.get(kind, "")))


def runs_table(sweep: Sweep, table: SampleTable) -> Table:
    """Return the rows of a table: one column per varied parameter and per output.

    Outputs of runs that are not complete are null.
    """
    import pyarrow as pa
    columns = {"number": pa.array(table.number, pa.int64())}
    for parameter, x in zip(sweep.parameters, table.values, strict=True):
        is_numeric = isinstance(x, np.ndarray)
        columns[parameter.name] = pa.array(x, pa.float64()) if is_numeric else pa.array(list(map(_cell_text, x)), pa.string())
    for k, output in enumerate(sweep.outputs):
        columns[output.name] = pa.array(table.outputs[:, k], pa.float64(), mask=np.isnan(table.outputs[:, k]))
    columns["energy_balance"] = pa.array(table.energy_balance, pa.float64(), mask=np.isnan(table.energy_balance))
    columns |= {"status": pa.array(table.status, pa.string()), "reason": pa.array(table.reason, pa.string()),
                "seconds": pa.array(table.seconds, pa.float64()), "hash": pa.array(table.hash, pa.string())}
    return pa.table(columns)


def _trajectories_table(columns: dict[str, Array]) -> Table:
    import pyarrow as pa
    return pa.table({title: pa.array(x, mask=np.isnan(x)) for title, x in columns.items()})


def _write_csv(source: Path, target: Path) -> None:
    from pyarrow import csv, parquet
    with parquet.ParquetFile(source) as file, csv.CSVWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches():
            writer.write_batch(batch)


def _cell_text(x: object) -> str:
    return x if isinstance(x, str) else json.dumps(x)
