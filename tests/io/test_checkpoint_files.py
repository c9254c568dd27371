"""The folder of an unfinished run: what is saved is read, and damage and other versions are errors."""
import hashlib

import numpy as np
import pytest

from liedyn.errors import UsageError
from liedyn.io import checkpoint_files
from liedyn.io.atomic_output import CHECKPOINT
from liedyn.io.checkpoint_files import Unfinished, join_arrays, read_checkpoint, split_arrays

STATE = {"t": 0.5, "rhs": {"constraints": {"multipliers": np.arange(3.0)}, "name": "x"}, "k": np.array(4)}
ROWS = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def saved(tmp_path):
    """Return the folder of a run that has ended after three rows and a checkpoint."""
    run = Unfinished(tmp_path / "run")
    run.command = {"scenario": "a.yaml"}
    run.begin()
    run.append(ROWS)
    run.save(STATE)
    run.close(finished=False)
    return tmp_path / "run"


def test_arrays_of_a_nested_state_are_stored_by_path():
    arrays, values = split_arrays(STATE)
    assert set(arrays) == {"rhs.constraints.multipliers", "k"} and values == {"t": 0.5, "rhs": {"constraints": {}, "name": "x"}}
    assert join_arrays(values, arrays)["rhs"]["constraints"]["multipliers"] is STATE["rhs"]["constraints"]["multipliers"]


def test_a_run_continues_after_the_rows_of_its_checkpoint(saved):
    with (saved.with_name("run.unfinished") / "rows").open("ab") as file:
        file.write(b"rows that no checkpoint counts")
    run = Unfinished(saved)
    state = run.load()
    assert state["t"] == 0.5 and np.array_equal(state["rhs"]["constraints"]["multipliers"], [0, 1, 2])
    assert read_checkpoint(run.path)["file"]["command"] == {"scenario": "a.yaml"}
    run.append(ROWS[:1])
    assert np.array_equal(run.table(4), np.vstack([ROWS, ROWS[:1]]))
    run.close(finished=True)
    assert not run.path.exists()


def test_arrays_next_to_the_rows_are_zero_and_removed(saved):
    run = Unfinished(saved)
    run.load()
    assert not run.room("energies", (3, 2)).any() and run.room("nothing", (0, 2)).shape == (0, 2)
    assert {path.name for path in run.path.iterdir()} >= {"energies", "rows"}
    run.close(finished=False)
    assert not (run.path / "energies").exists() and (run.path / "rows").exists()


@pytest.mark.parametrize("name", ["rows", CHECKPOINT])
def test_damaged_files_are_errors(saved, name):
    path = saved.with_name("run.unfinished") / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    run = Unfinished(saved)
    with pytest.raises(UsageError, match="is damaged: the run cannot be resumed"):
        run.load()
    run.close(finished=False)


def test_a_checkpoint_of_another_version_is_an_error(saved, monkeypatch):
    monkeypatch.setattr(checkpoint_files, "_VERSION", "another")
    with pytest.raises(UsageError, match="started by another version of liedyn"):
        read_checkpoint(saved.with_name("run.unfinished"))
    content = b"PK\x05\x06" + bytes(18)                                 # an archive without entries
    (saved.with_name("run.unfinished") / CHECKPOINT).write_bytes(hashlib.sha256(content).digest() + content)
    with pytest.raises(UsageError, match="started by another version of liedyn"):
        read_checkpoint(saved.with_name("run.unfinished"))


def test_a_run_that_another_process_computes_is_an_error(saved):
    first, second = Unfinished(saved), Unfinished(saved)
    first.load()
    with pytest.raises(UsageError, match="another process is computing"):
        second.begin()
    first.close(finished=False)
