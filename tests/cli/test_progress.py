"""Progress: silent when it is short, told when it is long."""
import io
import threading
import time

import pytest

from liedyn.cli import progress
from liedyn.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(progress, "_REDRAW", 0.005)
    monkeypatch.setattr(progress, "_REPEAT", 0.02)


def wait_for(stream, text):
    end = time.monotonic() + 5
    while text not in stream.getvalue():
        assert time.monotonic() < end, stream.getvalue()
        time.sleep(0.002)


def test_short_work_says_nothing():
    stream = Terminal()
    with Progress(stream=stream).stage("simulating"):
        pass
    assert stream.getvalue().replace("\r\x1b[K", "") == ""


def test_a_terminal_line_is_redrawn_and_removed(quick):
    stream = Terminal()
    bar = Progress(stream=stream, delay=0)
    with bar.stage("simulating"):
        wait_for(stream, "simulating … (0 s)")
        bar.update(0.42)
        wait_for(stream, "simulating … 42% (0 s)")
    assert stream.getvalue().endswith("\r\x1b[K") and "\n" not in stream.getvalue()


def test_elsewhere_lines_are_few(quick):
    stream = io.StringIO()
    bar = Progress(stream=stream, delay=0)
    started = time.monotonic()
    with bar.stage("simulating"):
        wait_for(stream, "simulating … (0 s)\n")
        bar.update(0.5)
        wait_for(stream, "simulating … 50% (0 s)\n")
    assert "\r" not in stream.getvalue()
    assert stream.getvalue().count("\n") <= 2 + (time.monotonic() - started) / 0.02


def test_the_innermost_stage_is_told(quick):
    stream = io.StringIO()
    bar = Progress(stream=stream, delay=0)
    with bar.stage("simulating"):
        bar.update(0.5)
        with bar.stage("compiling kernels, first run only"):
            wait_for(stream, "compiling kernels, first run only … (0 s)\n")
        mark = len(stream.getvalue())
        end = time.monotonic() + 5
        while "simulating … (0 s)\n" not in stream.getvalue()[mark:] and time.monotonic() < end:
            time.sleep(0.002)
    assert "simulating … (0 s)\n" in stream.getvalue()[mark:]


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


def test_a_closed_stream_does_not_stop_the_work(quick):
    stream = io.StringIO()
    with Progress(stream=stream, delay=0).stage("simulating"):
        stream.close()
        time.sleep(0.05)
