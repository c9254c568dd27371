"""The clips of the home page and of the README, and the live pages of the home page.

The build of the site writes live pages, in which the scenarios are simulated (`write_live_pages`). `static/gallery.js` replaces
a clip by its page on demand; without JavaScript, WebAssembly or WebGL 2 there are clips only.

`python docs/site_pages/gallery.py [NAME …]` renders clips of the home page, or all, and `… hero` the animation of the README. It
needs Chromium and ffmpeg, and for the meshes of the Panda the package example-robot-data (their licence is Apache-2.0).
"""
from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from liedyn.report.replay.live import write_live
from liedyn.report.replay.page import ReplayOptions

ROOT = Path(__file__).resolve().parents[2]
CLIPS = Path(__file__).parent / "static" / "clips"
LIVE = "live"                                               # folder of the live pages in _static of the site
SECONDS, SIZE, RATE = 4, "480x360", 20                      # of a clip; pixels, frames per second
HERO_SECONDS, HERO_SIZE, HERO_RATE, HERO_HEIGHT = 6, "640x560", 12, 300


class Clip(NamedTuple):
    """A scenario of configs/, what it shows, the page that explains it, and how it is drawn.

    options  of `liedyn simulate`
    follow   link that the camera follows
    view     more options of `liedyn replay`
    live     overrides for the live page; None: the scenario has none
    """

    name: str
    title: str
    page: str
    options: tuple[str, ...] = ()
    follow: str = ""
    view: tuple[str, ...] = ()
    speed: float = 1.0
    live: tuple[str, ...] | None = ()


GALLERY = (
    Clip("quadruped_walks", "A quadruped walks on compliant contacts", "scenarios/contact.md", follow="body",
         live=("events=null",)),                    # they only record
    Clip("panda_hybrid", "Hybrid dynamics: prescribed and free joints in one arm", "tutorials/first-motion.md",
         ("duration=4",), view=("--trace", "panda_hand")),
    Clip("stewart", "A Stewart platform with closed loops", "loops.md"),
    Clip("humanoid_dive", "A dive with two and a half somersaults", "tutorials/floating-robot.md",
         follow="pelvis", speed=0.5),
    Clip("cart_pole", "A cart-pole, balanced by feedback", "tutorials/control.md", ("duration=4",)),
    Clip("slider_crank", "A slider-crank and its reactions", "tutorials/mechanism.md", speed=0.04),
    Clip("delta_computed_torque", "A delta robot by computed torque", "scenarios/control.md", speed=0.5,
         live=None),                                # its law computes with the loops
    Clip("hexarotor_circle", "A hexarotor flies a circle", "linearization.md", ("duration=4",)),
)


def gallery_page() -> str:
    """A container of the clips with their commands and links."""
    return "\n".join(("::::{container} gallery", *map(_figure, GALLERY), "::::"))


def _figure(clip: Clip) -> str:
    live = "" if clip.live is None else f' data-live="_static/{LIVE}/{clip.name}.html"'
    video = (f'<video src="_static/clips/{clip.name}.mp4" autoplay loop muted playsinline preload="metadata" '
             f'aria-label="{clip.title}"{live}></video>')
    return f":::{{container}} clip\n{video}\n\n[{clip.title}]({clip.page})\n\n`liedyn simulate configs/{clip.name}.yaml`\n:::"


def write_live_pages(folder: Path, clips: tuple[Clip, ...] = GALLERY) -> None:
    """Write NAME.html of each clip that has a live page."""
    folder.mkdir(parents=True, exist_ok=True)
    for clip in clips:
        if clip.live is not None:
            write_live(ROOT / "configs" / f"{clip.name}.yaml", folder / f"{clip.name}.html",
                       ReplayOptions(follow=clip.follow, speed=clip.speed), overrides=clip.live, force=True)


def render(clip: Clip, folder: str) -> None:
    """Write static/clips/NAME.mp4 from a run in the folder."""
    video = _film(clip, folder, SIZE, RATE)
    CLIPS.mkdir(parents=True, exist_ok=True)
    _call("ffmpeg", "-v", "error", "-y", "-i", video, "-t", SECONDS, "-c:v", "libx264", "-crf", 30, "-preset", "veryslow",
          "-pix_fmt", "yuv420p", "-movflags", "+faststart", CLIPS / video.name)


def render_hero(folder: str) -> None:
    """Write docs/hero.gif, three clips next to each other. Each has the part of its video of this width:height:x:y."""
    import cmeel

    panda = Path(cmeel.__file__).parents[1] / "cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf"
    clips = {"440:400:100:110": Clip("quadruped_walks", "", "", follow="body", speed=0.5),
             "330:300:160:140": Clip("panda_computed_torque", "", "", (f"robot={panda}",), view=("--meshes",), speed=0.8),
             "440:400:100:80": Clip("stewart", "", "", speed=0.67)}
    videos = [_film(clip, folder, HERO_SIZE, HERO_RATE) for clip in clips.values()]
    parts = [f"[{k}]crop={crop},scale=-2:{HERO_HEIGHT}[c{k}]" for k, crop in enumerate(clips)]
    joined = "".join(f"[c{k}]" for k in range(len(clips))) + f"hstack=inputs={len(clips)},split[a][b]"
    colours = "[a]palettegen=max_colors=64:stats_mode=diff[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
    _call("ffmpeg", "-v", "error", "-y", *(word for video in videos for word in ("-t", HERO_SECONDS, "-i", video)),
          "-filter_complex", ";".join((*parts, joined, colours)), ROOT / "docs" / "hero.gif")


def _film(clip: Clip, folder: str, size: str, rate: int) -> Path:
    """Simulate a scenario, and write and return the video of its motion."""
    settings = [word for option in clip.options for word in ("-S", option)]
    run, video = Path(folder, clip.name), Path(folder, f"{clip.name}.mp4")
    follow = ("--follow", clip.follow) if clip.follow else ()
    _call("liedyn", "simulate", ROOT / "configs" / f"{clip.name}.yaml", *settings, "--no-plots", "-q", "-o", run)
    _call("liedyn", "replay", run, "--video", video, "--size", size, "--fps", rate, "--speed", clip.speed, *follow,
          *clip.view)
    return video


def _call(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        if "hero" in sys.argv[1:]:
            render_hero(temporary)
        for one in GALLERY:
            if not sys.argv[1:] or one.name in sys.argv[1:]:
                render(one, temporary)
