"""Progress of `liedyn batch`: what it says while code is compiled, and how it estimates the time that is left."""
import contextlib
from types import SimpleNamespace

from liedyn.batch import run_batch
from liedyn.cli import batch


def texts_of(monkeypatch, calls) -> list[str]:
    """Return the texts of progress for calls (time, finished runs, all runs)."""
    texts, clock = [], [0.0]
    console = SimpleNamespace(progress=SimpleNamespace(stage=lambda _name: contextlib.nullcontext(),
                                                       update=lambda _fraction, text: texts.append(text())))
    monkeypatch.setattr(batch, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(run_batch, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def run(_folder, progress):
        for clock[0], done, count in calls:
            progress(done, count)
    batch._run(SimpleNamespace(run=run), "runs/x", console)
    return texts


def test_the_estimate_leaves_out_the_compilation(monkeypatch):
    """The estimate was 550 s at the first run, which took 22 s. All others took 6 s."""
    texts = texts_of(monkeypatch, [(0.0, 0, 61), (22.0, 1, 61), (23.0, 11, 61), (25.0, 31, 61)])
    assert texts == ["0 of 61 runs; the first run loads or compiles code: 4 to 45 s", "1 of 61 runs",
                     "11 of 61 runs; 10 runs a second, 5 s left", "31 of 61 runs; 10 runs a second, 3 s left"]


def test_a_resumed_batch_counts_its_own_runs(monkeypatch):
    texts = texts_of(monkeypatch, [(0.0, 40, 60), (5.0, 42, 60), (6.0, 44, 60)])
    assert texts == ["40 of 60 runs; the first run loads or compiles code: 4 to 45 s", "42 of 60 runs",
                     "44 of 60 runs; 2 runs a second, 8 s left"]


def test_a_batch_that_is_complete_loads_no_code(monkeypatch):
    assert texts_of(monkeypatch, [(0.0, 60, 60)]) == ["60 of 60 runs"]
