"""Batches on threads: exceptions, children of the process, its end. Time-outs only end what hangs."""
import os
import random
import signal
import subprocess
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.batching import arrays, threads
from liedyn.errors import UsageError
from zoo import model_of

HANGS = 600          # seconds: a guard, not a measure


@pytest.fixture
def four(monkeypatch):
    """Four threads, whatever the machine has."""
    threads._pool.cache_clear()
    monkeypatch.setattr(threads, "cores", lambda: 4)
    monkeypatch.setattr(threads, "_MIN_WORK_PER_THREAD", 1)
    yield
    threads._pool.cache_clear()


class Interrupted(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such signals")
def test_an_interrupted_batch_leaves_later_results_right(four, monkeypatch):
    """Helpers wrote on into memory that the next call of that size had got; and an interrupt while the pool took a lock stopped
    all later batches for ever."""
    monkeypatch.setattr(arrays, "_pool", [])
    monkeypatch.setattr(arrays, "_MIN_POOLED_SIZE", 0)                          # results as large ones are
    model, rng, delays = model_of("universal"), np.random.default_rng(1), random.Random(1)
    first, second = (ld.random_configuration(model, rng, 4000) for _ in range(2))
    expected = ld.mass_matrix(model, second).copy()

    def stop(*_):
        raise Interrupted
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, delays.uniform(1e-6, 1e-3))
                ld.mass_matrix(model, first)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                pass
            np.testing.assert_array_equal(ld.mass_matrix(model, second), expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_batch_leaves_when_its_helpers_have_ended(four):
    """An exception in the calling thread, while a helper is at work."""
    caller, helping, go_on, written = threading.get_ident(), threading.Event(), threading.Event(), []

    def part(first, last):
        if threading.get_ident() == caller:
            assert helping.wait(HANGS)
            threading.Timer(0.05, go_on.set).start()
            raise KeyboardInterrupt
        helping.set()
        assert go_on.wait(HANGS)
        written.append(first)

    with pytest.raises(KeyboardInterrupt):
        threads.run_on_threads(part, [0, 8, 16])
    assert len(written) == 1


def test_an_error_in_a_helper_is_the_calls_error(four):
    caller, failed = threading.get_ident(), threading.Event()

    def part(first, last):
        if threading.get_ident() == caller:
            assert failed.wait(HANGS)
            return
        failed.set()
        raise MemoryError("no room for scratch")

    with pytest.raises(MemoryError, match="no room for scratch"):
        threads.run_on_threads(part, [0, 8, 16])
    edges = list(range(0, 400, 8))
    assert threads.run_on_threads(lambda first, last: (first, last), edges) == list(pairwise(edges))


def test_a_caller_may_ask_for_fewer_threads(four):
    with threads.limit_threads(2):
        assert len(threads.chunks(1000, 5)) == 3
        with threads.limit_threads(None):
            assert len(threads.chunks(1000, 5)) == 5
        other = []
        one = threading.Thread(target=lambda: other.append(threads.chunks(1000, 5)))
        one.start()
        one.join(HANGS)
        assert len(other[0]) == 5                              # of another thread
    with threads.limit_threads(9):
        assert len(threads.chunks(1000, 5)) == 5


def test_without_helpers_the_caller_does_all(monkeypatch):
    def none(*_):
        raise RuntimeError("can't start new thread")
    threads._pool.cache_clear()
    monkeypatch.setattr(threads, "start_new_thread", none)
    monkeypatch.setattr(threads, "cores", lambda: 4)
    assert threads.run_on_threads(lambda first, last: last - first, [0, 8, 16, 20]) == [8, 8, 4]
    threads._pool.cache_clear()


def test_a_thread_that_still_writes_keeps_the_memory(monkeypatch):
    """After a second interrupt only it holds the rows."""
    monkeypatch.setattr(arrays, "_pool", [])
    monkeypatch.setattr(arrays, "_MIN_POOLED_SIZE", 0)
    result = arrays.acquire_buffer((16, 8))
    rows = result.reshape(8, 16)
    del result
    other = arrays.acquire_buffer((16, 8))
    assert not np.shares_memory(rows, other)
    there = rows.__array_interface__["data"][0]
    del rows
    assert arrays.acquire_buffer((16, 8)).__array_interface__["data"][0] == there


PROGRAM = """
import atexit, multiprocessing, os, sys, threading
import numpy as np
import liedyn as ld
from liedyn.dynamics.batching import threads
from liedyn.model.description import Joint, Robot
from liedyn.model.links import Link

threads.cores = lambda: 3                               # whatever the machine has
link = lambda name: Link(name, 1.0, (0.1, 0.0, 0.2), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
model = ld.build(Robot("r", (link("a"), link("b")), (Joint("j", "revolute", "a", "b", axes=((0.0, 1.0, 0.0),)),)))
q = np.linspace(0.0, 3.0, 20000)[:, None]
expected = np.array([ld.gravity_force(model, q[k]) for k in range(0, 20000, 1000)])

def batch():
    assert len(threads.chunks(len(q), model.n_bodies)) == 4
    np.testing.assert_allclose(ld.gravity_force(model, q)[::1000], expected, atol=1e-12)   # rounding of numbers near 1

def deeper(context):
    batch()
    child(context, batch)

def child(context, work, *given):
    process = context.Process(target=work, args=given)
    process.start()
    process.join(HANGS)
    assert process.exitcode == 0, process.exitcode

def in_a_thread(work, *given):
    failed = []
    def run():
        try:
            work(*given)
        except BaseException as error:
            failed.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failed, failed
""".replace("HANGS", str(HANGS))


def run(tmp_path, body: str) -> str:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM + body, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=2 * HANGS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_child_process_computes_batches(tmp_path, method):
    """A forked child waited for threads that only its parent has."""
    assert run(tmp_path, f"""
if __name__ == "__main__":
    if {method!r} in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context({method!r})
        batch()
        child(context, batch)
        child(context, deeper, context)                  # a child that has one
        in_a_thread(child, context, deeper, context)     # started by a thread, as loaders of data are
        batch()
    print("done")
""") == "done\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_child_forked_while_threads_compute(tmp_path):
    assert run(tmp_path, """
if __name__ == "__main__":
    context, over = multiprocessing.get_context("fork"), threading.Event()
    def busy():
        while not over.is_set():
            batch()
    batch()
    workers = [threading.Thread(target=busy) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(10):
            child(context, batch)
    finally:
        over.set()
    for worker in workers:
        worker.join()
    print("done")
""") == "done\n"


@pytest.mark.parametrize("before", ["batch()", "pass"])
def test_a_batch_at_the_end_of_python(tmp_path, before):
    """No thread can be started any more."""
    assert run(tmp_path, f"""
{before}
@atexit.register
def last():
    batch()
    print("done")
""") == "done\n"


def test_a_python_without_its_lock_is_refused(monkeypatch):
    """Single calls share scratch of their model."""
    threads.check_gil()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(UsageError) as caught:
        threads.check_gil()
    assert str(caught.value) == ("liedyn needs Python's global interpreter lock, which is switched off here "
                                 "(start this free-threaded Python with PYTHON_GIL=1, or use the standard build)")
