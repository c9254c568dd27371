"""Videos of a motion: frames that Chromium draws, given to ffmpeg; what is missing is named."""
import os
import shutil
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.report.replay import video
from liedyn.report.replay.video import chromium
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header

SIGNATURE = b"\x89PNG\r\n\x1a\n"
needs_chromium = pytest.mark.skipif(chromium() is None, reason="no Chromium or Chrome: `apt install chromium` on Debian")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Create a run of 0.5 s of a rotating bar in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("bar.yaml").write_text("links: {bar: {mass: 1, com: [1, 0, 0], shape: {box: [1, 0.1, 0.1]}}}\n"
                                "joints: {hinge: {type: continuous, parent: world, child: bar, axis: [0, 0, 1]}}\n")
    model, t = ld.load("bar.yaml"), np.linspace(0, 0.5, 31)
    Path("run").mkdir()
    write_trajectory(Path("run/trajectory.csv"), trajectory_header(model, folder=Path("run")), t,
                     motion_columns(model, q=4 * t[:, None], v=4 + 0 * t[:, None]))
    return tmp_path


def program(folder: Path, name: str, text: str, monkeypatch) -> None:
    """Create an executable of that name, first on the path."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")


@needs_chromium
def test_frames_are_drawn_one_by_one(folder, monkeypatch):
    """0.5 s at 8 frames a second and half the speed give 9 different plots of this size."""
    program(folder, "ffmpeg", 'for last; do :; done; echo "$@" > said; exec cat > "$last"', monkeypatch)
    said = ok("replay", "run", "--video", "bar.mp4", "--fps", 8, "--speed", 0.5, "--size", "320x180")
    assert said.stderr == "wrote bar.mp4: 9 frames\n" and not Path("run/replay.html").exists()
    pictures = Path("bar.mp4").read_bytes().split(SIGNATURE)[1:]
    assert len(set(pictures)) == 9
    assert {tuple(np.frombuffer(picture[8:16], ">u4")) for picture in pictures} == {(320, 180)}      # of the head of a PNG
    assert "-framerate 8 " in Path("said").read_text()
    said = run("replay", "run", "--video", "bar.mp4")
    assert said.exit_code == 2 and "bar.mp4 already exists; --force or force=True overwrites it" in said.stderr


@needs_chromium
@pytest.mark.skipif(video.find_ffmpeg() is None, reason="no ffmpeg: `apt install ffmpeg`, or `pip install imageio-ffmpeg`")
@pytest.mark.parametrize("name", ["bar.mp4", "bar.gif"])
def test_ffmpeg_takes_the_frames(folder, name):
    ok("replay", "run", "--video", name, "--fps", 5, "--size", "160x90", "-o", "page.html")
    said = subprocess.run([video.find_ffmpeg(), "-i", name, "-f", "null", "-"], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and "160x90" in said.stderr and Path("page.html").is_file()


def test_what_ffmpeg_says_is_told(folder, monkeypatch):
    class Tab:                                                  # as a page in Chromium answers
        def ask(self, script):
            return None

        def call(self, method, **options):
            return {"data": 100_000 * "AAAA"}                   # more than a pipe holds

    program(folder, "failing", "cat > /dev/null; echo 'Unknown encoder: libx264' >&2; exit 1", monkeypatch)
    with pytest.raises(ld.ComputationError, match="ffmpeg failed: Unknown encoder: libx264"):
        video._encode(str(folder / "bin" / "failing"), folder / "bar.mp4", Tab(), [0.0, 1.0], 30.0, lambda share: None)
    program(folder, "silent", "exit 3", monkeypatch)
    with pytest.raises(ld.ComputationError, match="ffmpeg failed: status 3"):
        video._encode(str(folder / "bin" / "silent"), folder / "bar.mp4", Tab(), [0.0, 1.0], 30.0, lambda share: None)


def test_missing_programs_and_wrong_names_are_told(folder, monkeypatch):
    found = {"chromium": "/bin/true", "ffmpeg": None}
    monkeypatch.setattr(video, "chromium", lambda: found["chromium"])
    monkeypatch.setattr(shutil, "which", lambda name: found.get(name))
    monkeypatch.setattr(video, "find_spec", lambda name: None)
    said = run("replay", "run", "--video", "bar.mp4")
    assert said.exit_code == 2 and "videos require ffmpeg, which is not on the path; install it" in said.stderr
    found["ffmpeg"] = "/bin/true"
    said = run("replay", "run", "--video", "bar.mp4", "--fps", 120, "--speed", 0.001)
    assert said.exit_code == 2 and "the video would have 60001 frames, more than 20000" in said.stderr
    found["chromium"] = None
    said = run("replay", "run", "--video", "bar.mp4")
    assert said.exit_code == 2 and "videos require Chromium or Chrome, which is not on the path" in said.stderr
    said = run("replay", "run", "--video", "bar.avi")
    assert said.exit_code == 2 and "bar.avi is not the name of a video: it must end in .mp4, .webm" in said.stderr
    said = run("replay", "run", "--video", "bar.mp4", "--size", "101x90")
    assert said.exit_code == 2 and "in even numbers of pixels, such as 1280x720, got '101x90'" in said.stderr


@needs_chromium
def test_a_browser_that_ends_at_once_is_told(folder, monkeypatch):
    program(folder, "chromium", "exit 3", monkeypatch)
    program(folder, "ffmpeg", "cat > /dev/null", monkeypatch)
    said = run("replay", "run", "--video", "bar.mp4")
    assert said.exit_code == 1 and "Chromium ended early" in said.stderr


def test_an_option_in_place_of_the_file_is_named():
    """`-o` was taken as the file, and `v.mp4` was "unexpected"."""
    said = run("replay", ".", "--video", "-o", "v.mp4")
    assert said.exit_code == 2 and "'--video': expected a file name, got '-o'" in said.stderr
