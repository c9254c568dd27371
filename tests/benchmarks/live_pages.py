"""Live pages in headless Chromium: the part of a core that the simulation takes in real time, while the mouse pulls a link."""
from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from liedyn.report.replay.live import write_live
from liedyn.report.replay.video import browser, chromium

ROOT = Path(__file__).parents[2]
# scenario, link that the mouse pulls, and the largest part of a core
PAGES = (("panda_hybrid", "panda_hand", 0.2), ("quadruped_stands", "body", 1.0))


class Share(NamedTuple):
    """Seconds of computation for a second of motion, the least of several intervals; length of a step [s]; kB of the page."""

    share: float
    step: float
    size: float


def share(name: str, link: str, intervals: int = 12, seconds: float = 0.25) -> Share:
    """Return the figures of the live page of configs/NAME.yaml."""
    with tempfile.TemporaryDirectory() as folder, browser(chromium()) as tab:
        path = Path(folder, "page.html")
        report, _ = write_live(ROOT / f"configs/{name}.yaml", path)
        tab.open(path.as_uri(), 800, 600)
        tab.wait_for("window.replay")
        times = [float(x) for x in tab.ask(f"""(() => {{
            const live = replay.viewer.main.live, times = [];
            live.grab({link!r}, replay.position({link!r}));
            for (let k = 1; k <= {intervals}; k++) {{
              const begin = performance.now();
              live.simulation.run({seconds} * k, () => live.setPull());
              times.push((performance.now() - begin) / 1000);
            }}
            if (live.ended) throw new Error(live.ended);
            return times.join(" ");
        }})()""").split()]
    return Share(min(times) / seconds, report["step"], report["bytes"] / 1000)


def report(line) -> None:
    print("\nlive pages in Chromium, part of a core in real time")
    if chromium() is None:
        print("no Chromium or Chrome on the path")
        return
    for name, link, most in PAGES:
        one = share(name, link)
        line(one.share < most, f"{name:17s} steps of {1000 * one.step:g} ms, {one.size:.0f} kB: {100 * one.share:.1f} % "
             f"(asked {100 * most:g} %)")


if __name__ == "__main__":
    report(lambda holds, text: print("ok  " if holds else "MISS", text))
