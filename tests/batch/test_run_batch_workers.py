"""Processes that compute chunks may be killed at any moment."""
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import killed_batches
from liedyn.batch import run_batch
from liedyn.batch.run_batch import PreparedSweep
from liedyn.errors import ComputationError
from liedyn.io.sweep_file import read_sweep
from sweeps import DRAWN, OUTPUTS, batch, without_seconds, written

ADAPTIVE = "overrides: {duration: 2, integrator: {method: dopri5, rtol: 1.0e-9, atol: 1.0e-10}}\n"
ALONE = f"{ADAPTIVE}{DRAWN.replace('- {key: robot', '# {')}samples: 40\n{OUTPUTS}trajectories: {{columns: ['q.*']}}\n"


def test_a_batch_that_is_killed_and_resumed_is_that_which_was_left_alone(tmp_path):
    path = written(tmp_path, ALONE)
    PreparedSweep(read_sweep(path), killed_batches.SIZE).run(tmp_path / "alone")
    found = killed_batches.killed(str(path), tmp_path / "killed", kills=2, seed=3)
    assert found["failed"] == 0 and "not finished" not in found
    assert killed_batches.difference(tmp_path / "killed", tmp_path / "alone") == ""


class Breaking:
    """An executor in this process that breaks with its third task, as often as it is asked to."""

    def __init__(self, times):
        self.times, self.opened = times, 0

    @contextmanager
    def open(self):
        self.opened += 1
        self.count = 0
        yield self

    def submit(self, function, *arguments):
        self.count += 1
        future = Future()
        if self.count > 2 and self.opened <= self.times:
            future.set_exception(BrokenProcessPool("killed"))
        else:
            future.set_result(function(*arguments))
        return future


def test_chunks_of_a_worker_that_ended_are_computed_by_another(tmp_path):
    found = batch(tmp_path, f"{DRAWN}samples: 40\n{OUTPUTS}", 8)
    found.run(tmp_path / "alone")
    executor = Breaking(times=2)
    job = run_batch.Job(found.sweep, str(tmp_path / "broken"), found.identity)
    store = run_batch.ResultStore(job.folder, False)
    store.write_description({})
    chunks = [found.chunk(k) for k in range(found.chunks)]
    assert sum(run_batch._run_on_executors(executor.open, job, chunks, 3, (BrokenProcessPool,))) == 40
    assert executor.opened == 3
    assert store.write_table([chunk.name for chunk in chunks], False) == ({"complete": 40}, 0, (0, ""))
    assert without_seconds(tmp_path / "broken") == without_seconds(tmp_path / "alone")


@pytest.mark.parametrize(("loading", "seconds", "expected"), [(30.0, 0.1, 0), (30.0, 1.0, 38), (0.1, 1.0, 38)])
def test_processes_are_started_by_the_time_of_runs_without_loading_code(tmp_path, monkeypatch, loading, seconds, expected):
    found, clock, elsewhere = batch(tmp_path, f"{DRAWN}samples: 40\n{OUTPUTS}", 2), SimpleNamespace(t=0.0), []

    def write_chunk(evaluator, store, chunk, progress):
        for run in range(chunk.first, chunk.until):
            clock.t += seconds if run else loading + seconds
            progress(1)

    def in_processes(job, chunks, jobs):
        elsewhere.extend(chunks)
        return iter([2] * len(chunks))

    monkeypatch.setattr(run_batch, "time", SimpleNamespace(perf_counter=lambda: clock.t))
    monkeypatch.setattr(run_batch, "write_chunk", write_chunk)
    monkeypatch.setattr(run_batch, "run_in_processes", in_processes)
    monkeypatch.setattr(type(found.evaluator), "is_vectorized", False)
    done = []
    found._compute(run_batch.ResultStore(tmp_path, False), [found.chunk(k) for k in range(20)], 2, None, done.append)
    assert 2 * len(elsewhere) == expected and sum(done) == 40


def test_workers_that_end_again_and_again_are_told(tmp_path):
    found = batch(tmp_path, f"{DRAWN}samples: 40\n", 8)
    job = run_batch.Job(found.sweep, str(tmp_path), found.identity)

    @contextmanager
    def broken():
        raise BrokenProcessPool("killed")
        yield

    with pytest.raises(ComputationError, match=r"workers terminated 5 times in a row \(killed, or out of memory\): killed; "):
        list(run_batch._run_on_executors(broken, job, [found.chunk(0)], 3, (BrokenProcessPool,)))


def test_a_worker_refuses_another_scenario_than_the_client_has(tmp_path):
    found = batch(tmp_path, f"{DRAWN}samples: 8\n", 8)
    job = run_batch.Job(found.sweep, str(tmp_path / "out"), "another identity")
    with pytest.raises(run_batch.UsageError, match="version of liedyn of this worker differs from that of the batch") as error:
        run_batch.run_chunk(job, run_batch.Chunk("x", 0, 8))
    assert str(error.value).endswith(f": {found.sweep.begins_with}")
