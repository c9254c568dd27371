"""Write the animation of the README from runs of the examples: `python docs/make_clips.py`.

Needs Chromium and ffmpeg as `liedyn replay --video` does, and the packages of `liedyn[test]` for the meshes of the Panda, whose
licence is Apache-2.0.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import cmeel

from liedyn.report.replay.video import find_ffmpeg

DOCS = Path(__file__).resolve().parent
PANDA = Path(cmeel.__file__).parents[1] / "cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf"
HEIGHT, SECONDS, RATE = 300, 6.0, 12                        # pixels, duration, frames per second


class Clip(NamedTuple):
    """A run of an example. speed: seconds of motion per second; crop: width:height:x:y of the part of the video that is shown."""

    scenario: str
    speed: float
    crop: str
    settings: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


CLIPS = (Clip("quadruped_walks", 0.5, "440:400:100:110", (), ("--follow", "body")),
         Clip("panda_computed_torque", 0.8, "330:300:160:140", ("-S", f"robot={PANDA}"), ("--meshes",)),
         Clip("stewart", 0.67, "440:400:100:80"))
VIDEO = "640x560"


def liedyn(*arguments: str) -> None:
    """Run a command of `liedyn`."""
    subprocess.run([sys.executable, "-m", "liedyn", *arguments], check=True, cwd=DOCS.parent)


def make_clip(clip: Clip, folder: Path) -> Path:
    """Simulate and film a clip, and return its video."""
    run, video = str(folder / clip.scenario), folder / f"{clip.scenario}.mp4"
    liedyn("simulate", f"configs/{clip.scenario}.yaml", *clip.settings, "-S", f"duration={SECONDS * clip.speed:g}", "-o", run,
           "--no-plots", "-q")
    liedyn("replay", run, "--video", str(video), "--speed", str(clip.speed), "--fps", str(RATE), "--size", VIDEO,
           *clip.options, "-q")
    return video


def main() -> None:
    """Write docs/hero.gif: the clips next to each other."""
    program = find_ffmpeg()
    if program is None:
        raise SystemExit("ffmpeg is missing: `apt install ffmpeg`, or `pip install imageio-ffmpeg`")
    with tempfile.TemporaryDirectory() as folder:
        videos = [make_clip(clip, Path(folder)) for clip in CLIPS]
        parts = [f"[{k}]crop={clip.crop},scale=-2:{HEIGHT}[c{k}]" for k, clip in enumerate(CLIPS)]
        joined = "".join(f"[c{k}]" for k in range(len(CLIPS))) + f"hstack=inputs={len(CLIPS)},split[a][b]"
        colours = "[a]palettegen=max_colors=64:stats_mode=diff[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
        subprocess.run([program, "-loglevel", "error", "-y", *(x for video in videos for x in ("-i", os.fspath(video))),
                        "-filter_complex", ";".join((*parts, joined, colours)), os.fspath(DOCS / "hero.gif")], check=True)


if __name__ == "__main__":
    main()
