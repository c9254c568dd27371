"""Drawing in a separate process, which imports Matplotlib while the caller computes, and then forks.

`liedyn simulate configs/panda_hybrid.yaml` takes 1.9 s with it and 2.9 s without, on two cores. The process gets the plot data, a
folder and formats by pickle through a pipe, and returns the written files.
"""
from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:                       # NumPy is imported later, while the process starts
    from liedyn.report.plots.plot_data import PlotData
    from liedyn.report.plots.saved_plots import SavedPlots


class PlotProcess:
    """Context manager of a process that draws plots: it starts on entry and ends on exit.

    If the process fails or is not wanted (`idle`), the caller draws; the plots are the same.
    """

    def __init__(self, *, idle: bool = False):
        self._idle = idle
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PlotProcess:
        if self._idle:
            return self
        command = [sys.executable, "-P", "-m", __name__]        # -P: modules of the working folder are not imported
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:
            self._process = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def save_figures(self, recording: PlotData, folder: str | Path, formats: Sequence[str]) -> SavedPlots:
        """Run `save_plots.save_figures` in the process, or here if that fails."""
        process, self._process = self._process, None
        if process is not None:
            try:
                saved: SavedPlots = pickle.loads(process.communicate(pickle.dumps((recording, folder, formats)))[0])
                return saved
            except (OSError, EOFError, pickle.UnpicklingError):
                pass
        from liedyn.report.plots.save_plots import save_figures
        return save_figures(recording, folder, formats)


def _serve_one_order() -> None:
    from liedyn.report.plots.save_plots import save_figures, warm_up

    gc.disable()                        # the process is short-lived; collecting takes a third of making a figure
    warm_up()
    order = pickle.load(sys.stdin.buffer)
    drawn = _draw_in_two(*order) if _can_fork() and (os.cpu_count() or 1) > 1 else save_figures(*order)
    sys.stdout.buffer.write(pickle.dumps(drawn))
    sys.stdout.buffer.flush()
    os._exit(0)                         # the end of Matplotlib would take 0.1 s, for which the caller would wait


def _can_fork() -> bool:
    """Return whether a child may draw after a fork. Not on Windows, nor on macOS, whose libraries do not support it."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def _draw_in_two(recording: PlotData, folder: str | Path, formats: Sequence[str]) -> SavedPlots:
    """Draw every second kind of figure in a fork of this process, which has no threads."""
    from liedyn.report.plots.save_plots import save_share
    from liedyn.report.plots.saved_plots import SavedPlots

    read, write = os.pipe()
    if os.fork() == 0:
        try:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(save_share(recording, folder, formats, 1), pipe)
        finally:
            os._exit(0)
    os.close(write)
    ours = save_share(recording, folder, formats, 0)
    with os.fdopen(read, "rb") as pipe:
        theirs = pickle.load(pipe)      # EOFError if the fork failed: then the caller draws
    return sum(chain.from_iterable(zip_longest(ours, theirs, fillvalue=SavedPlots())), SavedPlots())


if __name__ == "__main__":
    _serve_one_order()
