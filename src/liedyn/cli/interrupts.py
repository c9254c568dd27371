"""Ctrl-C and SIGTERM while a run is computed: it ends between two steps, and its rows are written."""
from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_HEARD = signal.SIGINT, signal.SIGTERM


@contextmanager
def asked_to_stop(run) -> Iterator[None]:
    """In the block the first of these signals sets `run.stop` where the run is `listening`; another one, or one at another
    time, ends the process as ever."""
    def heard(number, frame):
        if run.listening and not run.stop:
            run.stop = number
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    before = {}
    try:
        for number in _HEARD:
            before[number] = signal.signal(number, heard)
    except ValueError:                                         # in a thread: signals are heard by the main one
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
