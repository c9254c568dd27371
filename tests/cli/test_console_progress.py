"""Progress: silent when it is short, told when it is long."""
import io
import threading
import time
from types import SimpleNamespace

import pytest

from liedyn.cli import console
from liedyn.cli.console import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Make lines due immediately and stop the time. Return a list with the time."""
    now = [0.0]
    monkeypatch.setattr(console, "_REDRAW", 0.005)
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def wait_for(holds):
    """Wait until the thread has printed it; the test fails after a time."""
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_short_work_says_nothing():
    stream = Terminal()
    with Progress(stream=stream).stage("simulating"):
        pass
    assert stream.getvalue().replace("\r\x1b[K", "") == ""


def test_a_terminal_line_is_redrawn_and_removed(clock):
    stream = Terminal()
    bar = Progress(stream=stream, delay=0)
    with bar.stage("simulating"):
        wait_for(lambda: "simulating … (0 s)" in stream.getvalue())
        bar.update(0.42)
        wait_for(lambda: "simulating … 42% (0 s)" in stream.getvalue())
    assert stream.getvalue().endswith("\r\x1b[K") and "\n" not in stream.getvalue()


def test_elsewhere_lines_are_few(clock):
    stream = io.StringIO()
    bar = Progress(stream=stream, delay=3600)                # the thread waits; what it would tell is asked for here
    with bar.stage("simulating"):
        bar._report()
        bar.update(0.5)
        for now in (4.0, 5.0, 9.0, 10.0):
            clock[0] = now
            bar._report()
    assert stream.getvalue() == "simulating … (0 s)\nsimulating … 50% (5 s)\nsimulating … 50% (10 s)\n"
    clock[0] = 0.0
    with bar.stage("compiling"):                             # without progress, the time alone changes
        for now in (0.0, 19.0, 20.0):
            clock[0] = now
            bar._report()
    assert stream.getvalue().endswith("\ncompiling … (0 s)\ncompiling … (20 s)\n")


def test_the_innermost_stage_is_told(clock):
    stream = io.StringIO()
    bar = Progress(stream=stream, delay=0)
    with bar.stage("simulating"):
        bar.update(0.5)
        with bar.stage("compiling kernels, first run only"):
            wait_for(lambda: "compiling kernels, first run only … (0 s)\n" in stream.getvalue())
        mark = len(stream.getvalue())
        wait_for(lambda: "simulating … (0 s)\n" in stream.getvalue()[mark:])


def test_quiet_starts_no_thread():
    before, stream = threading.active_count(), Terminal()
    bar = Progress(quiet=True, stream=stream, delay=0)
    with bar.stage("simulating"):
        bar.update(0.5)
        assert threading.active_count() == before
    assert stream.getvalue() == ""


def test_the_thread_ends_with_the_work_and_after_an_error():
    before, bar = threading.active_count(), Progress(stream=io.StringIO(), delay=0)
    for _ in range(3):
        with pytest.raises(RuntimeError), bar.stage("simulating"):
            raise RuntimeError
    assert threading.active_count() == before


def test_a_closed_stream_does_not_stop_the_work(clock):
    stream = io.StringIO()
    bar = Progress(stream=stream, delay=0)
    stream.close()
    with bar.stage("simulating"):
        wait_for(lambda: bar._quiet)


def test_details_are_computed_when_they_are_displayed(clock):
    stream, times = io.StringIO(), iter(("9 s left", "4 s left"))
    bar = Progress(stream=stream, delay=3600)
    with bar.stage("simulating"):
        bar.update(0.5, lambda: next(times))
        for now in (5.0, 10.0):
            clock[0] = now
            bar._report()
    assert stream.getvalue() == "simulating … 50% (5 s; 9 s left)\nsimulating … 50% (10 s; 4 s left)\n"
