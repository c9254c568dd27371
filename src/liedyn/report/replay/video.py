"""Video of the page of a motion: Chromium draws each frame, ffmpeg encodes them."""
from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from liedyn.errors import ComputationError, UsageError
from liedyn.io.atomic_output import check_output, translate_os_errors
from liedyn.report.replay.meshes import unpacked
from liedyn.report.replay.page import data_of

# A page in a headless Chromium, controlled through a pair of pipes with its DevTools protocol: no port, no package -------

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_PLACES = ("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium")
_FLAGS = ("--headless=new", "--remote-debugging-pipe", "--hide-scrollbars", "--mute-audio", "--no-first-run",
          "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
          "--force-device-scale-factor=1", "--use-gl=angle", "--use-angle=swiftshader",       # same image on all machines
          "--enable-unsafe-swiftshader")
_PATIENCE = 60.0        # time limit for a response [s]


def chromium() -> str | None:
    """Return the path of Chromium or Chrome on this machine; None if neither is found."""
    return next(filter(None, map(shutil.which, (*_NAMES, *_PLACES))), None)


class Page:
    """A browser tab. events: (method, parameters) of the browser's notifications that have been read."""

    def __init__(self, read: int, write: int):
        self.read, self.write = read, write
        self.session = ""
        self.number, self.rest = 0, b""
        self.events: list[tuple[str, dict[str, Any]]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the browser's response. Raise ComputationError for an error response, an exit, or a timeout."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        text = json.dumps(message | ({"sessionId": self.session} if self.session else {})).encode() + b"\0"
        try:
            while text:
                text = text[os.write(self.write, text):]
        except BrokenPipeError:
            raise ComputationError("Chromium ended early") from None
        until = time.monotonic() + _PATIENCE
        while True:
            answer = self._next(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise ComputationError(f"Chromium returned an error for {method}: {answer['error'].get('message')}")
                return dict(answer["result"])
            if "method" in answer:
                self.events.append((answer["method"], answer.get("params", {})))

    def _next(self, until: float) -> dict[str, Any]:
        parts = []
        while b"\0" not in self.rest:
            parts.append(self.rest)
            ready, _, _ = select.select([self.read], [], [], max(0.0, until - time.monotonic()))
            self.rest = os.read(self.read, 1 << 20) if ready else b""
            if not self.rest:
                raise ComputationError("Chromium ended early" if ready else f"Chromium timed out after {_PATIENCE:g} s")
        head, _, self.rest = self.rest.partition(b"\0")
        return dict(json.loads(b"".join(parts) + head))

    def open(self, address: str, width: int, height: int) -> None:
        """Load a page into a viewport of this size in pixels. `events` then contains its requests, errors and messages."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=address)
        self.wait_for("location.href !== 'about:blank' && document.readyState === 'complete'")

    def ask(self, script: str) -> Any:
        """Return the value of an expression in the page; of a promise, the resolved value.

        Raises ComputationError with the text of an exception.
        """
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise ComputationError(f"the page failed: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until the expression is true in the page."""
        until = time.monotonic() + _PATIENCE
        while not self.ask(f"Boolean({condition})"):
            if time.monotonic() > until:
                raise ComputationError(f"the page did not reach `{condition}` within {_PATIENCE:g} s")
            time.sleep(0.02)


@contextmanager
def browser(program: str) -> Iterator[Page]:
    """Start a Chromium that ends with the block and leaves no files behind. Raise ComputationError if it does not start.

    If its sandbox does not work, as for root and in some containers, it runs without: it opens only pages of this package.
    """
    with tempfile.TemporaryDirectory(prefix="liedyn-chromium-", ignore_cleanup_errors=True) as profile:
        as_root = getattr(os, "geteuid", lambda: 1)() == 0
        for sandbox in (() if as_root else ((),)) + (("--no-sandbox",),):
            with _started([program, *_FLAGS, *sandbox, f"--user-data-dir={profile}"]) as page:
                try:
                    page.call("Browser.getVersion")
                except ComputationError:
                    if sandbox:
                        raise
                    continue
                yield page
                return


@contextmanager
def _started(command: list[str]) -> Iterator[Page]:
    """Start a process that reads messages from its file 3 and writes to file 4.

    It ends with the block, including its child processes.
    """
    pipes = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'
    process = subprocess.Popen(["/bin/sh", "-c", pipes, "sh", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, process_group=0)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Page(process.stdout.fileno(), process.stdin.fileno())
    finally:
        process.stdin.close()               # regular exit by closed pipes, then kill
        process.stdout.close()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# video ------------------------------------------------------------------------------------------------------------------

# options of ffmpeg for each format
_KINDS = {".mp4": ("-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p", "-movflags", "+faststart"),
          ".webm": ("-c:v", "libvpx-vp9", "-crf", "32", "-b:v", "0", "-pix_fmt", "yuv420p", "-row-mt", "1", "-cpu-used", "4"),
          ".gif": ("-vf", "split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=bayer")}
MOST_FRAMES = 20_000
_OR = ", or record the motion with the button Video of the page"


def check_video(output: str, *, force: bool) -> tuple[str, str]:
    """Return the paths of Chromium and ffmpeg.

    Raises UsageError before any work is done if one is missing, the ending is none of mp4, webm and gif, or the file exists.
    """
    ending = Path(output).suffix.lower()
    if ending not in _KINDS:
        raise UsageError(f"{output} is not the name of a video: it must end in {', '.join(_KINDS)}")
    check_output(output, force=force)
    drawer = chromium()
    if not hasattr(os, "killpg"):                               # Windows: Chromium has no pipes as files 3 and 4
        raise UsageError(f"videos cannot be drawn on this system; run liedyn in WSL{_OR}")
    if drawer is None:
        raise UsageError("videos require Chromium or Chrome, which is not on the path; install it (on Debian "
                         f"`apt install chromium`){_OR}")
    writer = find_ffmpeg()
    if writer is None:
        raise UsageError("videos require ffmpeg, which is not on the path; install it (on Debian "
                         f"`apt install ffmpeg`, or `pip install imageio-ffmpeg`){_OR}")
    return drawer, writer


def find_ffmpeg() -> str | None:
    """Return the path of ffmpeg, on the path or of the package imageio-ffmpeg; None if neither is there."""
    program = shutil.which("ffmpeg")
    if program is None and find_spec("imageio_ffmpeg") is not None:
        from imageio_ffmpeg import get_ffmpeg_exe
        try:
            program = get_ffmpeg_exe()
        except RuntimeError:                                    # the package contains no program
            return None
    return program


def write_video(page: str, output: str, *, size: tuple[int, int], rate: float, speed: float, force: bool,
                progress: Callable[[float], None]) -> int:
    """Write the motion of a page (HTML) as mp4, webm or gif, and return the number of frames.

    size : width and height in pixels, even numbers;  rate : frames per second;  speed : seconds of motion per second
    Raises UsageError as `check_video`, and for too many frames; ComputationError if a program fails.
    """
    drawer, writer = check_video(output, force=force)
    target, times = Path(output), _times(page, rate, speed)
    with translate_os_errors(target.parent), tempfile.TemporaryDirectory(prefix="liedyn-video-") as folder:
        source = Path(folder, "page.html")
        source.write_text(page, encoding="utf-8", newline="\n")
        film = Path(folder, f"film{target.suffix.lower()}")
        with browser(drawer) as tab:
            tab.open(source.absolute().as_uri(), *size)
            _show(tab)
            _encode(writer, film, tab, times, rate, progress)
        shutil.move(film, target)
    return len(times)


def _times(page: str, rate: float, speed: float) -> list[float]:
    """Return the times of the frames, from the first to the last time of all runs in the page."""
    ends = [unpacked(run["t"])[[0, -1], 0] for run in data_of(page)["runs"]]
    start, end = min(float(a) for a, _ in ends), max(float(b) for _, b in ends)
    count = int((end - start) * rate / speed + 1e-6) + 1
    if count > MOST_FRAMES:
        raise UsageError(f"the video would have {count} frames, more than {MOST_FRAMES}; a larger --speed or a lower --fps makes "
                         "them fewer")
    return [min(end, start + k * speed / rate) for k in range(count)]


def _show(tab: Page) -> None:
    """Wait until the page shows the motion, and hide its controls."""
    tab.wait_for("window.replay || !document.getElementById('problem').hidden")
    problem = tab.ask("document.getElementById('problem').textContent")
    if problem:
        raise ComputationError(problem)
    tab.ask("replay.film()")


def _encode(writer: str, film: Path, tab: Page, times: list[float], rate: float, progress: Callable[[float], None]) -> None:
    command = [writer, "-loglevel", "error", "-y", "-f", "image2pipe", "-framerate", f"{rate:g}", "-c:v", "png", "-i", "-",
               *_KINDS[film.suffix], str(film)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
        try:
            assert process.stdin is not None
            with process, suppress(BrokenPipeError):            # its error message is read below
                for k, t in enumerate(times):
                    tab.ask(f"replay.still({t!r})")
                    picture = tab.call("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"]
                    process.stdin.write(base64.b64decode(picture))
                    process.stdin.flush()
                    progress((k + 1) / len(times))
        except BrokenPipeError:                                 # it ended before it read all frames
            pass
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode != 0:
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-1:] or [f"status {process.returncode}"]
            raise ComputationError(f"ffmpeg failed: {last[0]}")
