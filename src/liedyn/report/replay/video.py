"""The page of a motion as a video: Chromium draws each frame, ffmpeg puts them together."""
from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from liedyn.errors import ComputationError, UsageError
from liedyn.io.output import check_output, told
from liedyn.report.replay.browser import Page, browser, chromium
from liedyn.report.replay.packed import unpacked
from liedyn.report.replay.page import data_of

# how ffmpeg writes each kind of file
_KINDS = {".mp4": ("-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p", "-movflags", "+faststart"),
          ".webm": ("-c:v", "libvpx-vp9", "-crf", "32", "-b:v", "0", "-pix_fmt", "yuv420p", "-row-mt", "1", "-cpu-used", "4"),
          ".gif": ("-vf", "split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=bayer")}
MOST_FRAMES = 20_000
_OR = ", or record the motion with the button Video of the page"


def check_video(output: str, *, force: bool) -> tuple[str, str]:
    """The programs that draw and write it, Chromium and ffmpeg. Raises UsageError, before any work is done, where one is missing,
    the ending is none of mp4, webm and gif, or the file exists already."""
    ending = Path(output).suffix.lower()
    if ending not in _KINDS:
        raise UsageError(f"{output} is not the name of a video: it must end in {', '.join(_KINDS)}")
    check_output(output, force=force)
    drawer = chromium()
    if drawer is None or os.name != "posix":
        raise UsageError("videos are drawn by Chromium or Chrome, and there is none on the path; install it (on Debian "
                         f"`apt install chromium`){_OR}")
    writer = _ffmpeg()
    if writer is None:
        raise UsageError("videos are written by ffmpeg, and there is none on the path; install it (on Debian "
                         f"`apt install ffmpeg`, or `pip install imageio-ffmpeg`){_OR}")
    return drawer, writer


def _ffmpeg() -> str | None:
    found = shutil.which("ffmpeg")
    if found is None and find_spec("imageio_ffmpeg") is not None:
        from imageio_ffmpeg import get_ffmpeg_exe
        try:
            found = get_ffmpeg_exe()
        except RuntimeError:                                    # a package without its program
            return None
    return found


def write_video(page: str, output: str, *, size: tuple[int, int] = (1280, 720), rate: float = 30.0, speed: float = 1.0,
                force: bool = False, progress: Callable[[float], None] = lambda share: None) -> int:
    """Write the motion of a page (HTML) as mp4, webm or gif, and return the number of frames.

    size : width and height in pixels, even numbers;  rate : frames a second;  speed : seconds of motion in a second
    Raises UsageError as `check_video`, and where there would be too many frames; ComputationError where a program fails.
    """
    drawer, writer = check_video(output, force=force)
    target, times = Path(output), _times(page, rate, speed)
    with told(target.parent), tempfile.TemporaryDirectory(prefix="liedyn-video-") as folder:
        source = Path(folder, "page.html")
        source.write_text(page, encoding="utf-8")
        film = Path(folder, f"film{target.suffix.lower()}")
        with browser(drawer) as tab:
            tab.open(source.absolute().as_uri(), *size)
            _show(tab)
            _encode(writer, film, tab, times, rate, progress)
        shutil.move(film, target)
    return len(times)


def _times(page: str, rate: float, speed: float) -> list[float]:
    """Of the frames, from the first to the last time of all runs in the page."""
    ends = [unpacked(one["t"])[[0, -1], 0] for one in data_of(page)["runs"]]
    start, end = min(float(a) for a, _ in ends), max(float(b) for _, b in ends)
    count = int((end - start) * rate / speed + 1e-6) + 1
    if count > MOST_FRAMES:
        raise UsageError(f"the video would have {count} frames, more than {MOST_FRAMES}; a larger --speed or a lower --fps makes "
                         "them fewer")
    return [min(end, start + k * speed / rate) for k in range(count)]


def _show(tab: Page) -> None:
    """Wait until the page shows the motion, and let it do so without its controls."""
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
            with process, suppress(BrokenPipeError):            # where it has ended, it tells why below
                for k, t in enumerate(times):
                    tab.ask(f"replay.still({t!r})")
                    picture = tab.call("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"]
                    process.stdin.write(base64.b64decode(picture))
                    process.stdin.flush()
                    progress((k + 1) / len(times))
        except BrokenPipeError:                                 # what was left for it when it ended
            pass
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode != 0:
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-1:] or [f"status {process.returncode}"]
            raise ComputationError(f"ffmpeg failed: {last[0]}")
