"""A page in a Chromium without a window, driven over a pair of pipes with its DevTools protocol: no port, no package."""
from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from liedyn.errors import ComputationError

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_PLACES = ("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium")
_FLAGS = ("--headless=new", "--remote-debugging-pipe", "--hide-scrollbars", "--mute-audio", "--no-first-run",
          "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
          "--force-device-scale-factor=1", "--use-gl=angle", "--use-angle=swiftshader",       # draws on any machine, alike on all
          "--enable-unsafe-swiftshader")
_PATIENCE = 60.0        # seconds that an answer may take


def chromium() -> str | None:
    """The Chromium of this machine, or Chrome; None where none is found."""
    return next(filter(None, map(shutil.which, (*_NAMES, *_PLACES))), None)


class Page:
    """A tab. events: (method, parameters) of what the browser told, as far as its answers have been read."""

    def __init__(self, read: int, write: int):
        self.read, self.write = read, write
        self.session = ""
        self.number, self.rest = 0, b""
        self.events: list[tuple[str, dict]] = []

    def call(self, method: str, **parameters) -> dict:
        """What the browser answers. Raises ComputationError where it refuses, ends or stays silent."""
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
                    raise ComputationError(f"Chromium refuses {method}: {answer['error'].get('message')}")
                return answer["result"]
            if "method" in answer:
                self.events.append((answer["method"], answer.get("params", {})))

    def _next(self, until: float) -> dict:
        parts = []
        while b"\0" not in self.rest:
            parts.append(self.rest)
            ready, _, _ = select.select([self.read], [], [], max(0.0, until - time.monotonic()))
            self.rest = os.read(self.read, 1 << 20) if ready else b""
            if not self.rest:
                raise ComputationError("Chromium ended early" if ready else f"Chromium gave no answer for {_PATIENCE:g} s")
        head, _, self.rest = self.rest.partition(b"\0")
        return json.loads(b"".join(parts) + head)

    def open(self, address: str, width: int, height: int) -> None:
        """Load a page into a picture of so many pixels; `events` then also tells its requests, errors and messages."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=address)
        self.wait_for("location.href !== 'about:blank' && document.readyState === 'complete'")

    def ask(self, script: str):
        """The value of an expression in the page; of a promise, what it becomes. Raises ComputationError with what it throws."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise ComputationError(f"the page failed: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def wait_for(self, condition: str, seconds: float = _PATIENCE) -> None:
        """Until the expression is true in the page."""
        until = time.monotonic() + seconds
        while not self.ask(f"Boolean({condition})"):
            if time.monotonic() > until:
                raise ComputationError(f"the page did not come to `{condition}` in {seconds:g} s")
            time.sleep(0.02)


@contextmanager
def browser(program: str) -> Iterator[Page]:
    """A Chromium that ends with the block, and leaves nothing behind. Raises ComputationError where it does not start.

    Where its sandbox does not run, as for root and in some containers, it goes without: it opens our own page only.
    """
    with tempfile.TemporaryDirectory(prefix="liedyn-chromium-", ignore_cleanup_errors=True) as profile:
        for sandbox in (() if os.geteuid() == 0 else ((),)) + (("--no-sandbox",),):
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
    """A process that reads our messages from its file 3 and answers on 4; it and what it started end with the block."""
    pipes = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'
    process = subprocess.Popen(["/bin/sh", "-c", pipes, "sh", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, process_group=0)
    try:
        yield Page(process.stdout.fileno(), process.stdin.fileno())
    finally:
        process.stdin.close()               # politely by the closed pipes, then not
        process.stdout.close()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
