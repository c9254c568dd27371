"""What README and docs/ show is run: Python and commands of a page in their order, in a folder with configs/ and robots/.

A block after a comment `<!-- not run: REASON -->` is not run, nor one after `<!-- requires: PACKAGE -->` without this package.
A YAML block whose first line is `# NAME.yaml` is written to that file, as a reader would. Commands in a line of text are run
after the blocks of their page."""
import logging
import os
import re
import shlex
import webbrowser
from importlib.util import find_spec
from pathlib import Path

import pytest

import command_line
from document_pages import PAGES, blocks, command_lines, name_of, outside_blocks
from liedyn.cli.app import main
from liedyn.io.example_files import copy_examples
from opencl import has_opencl

COMMANDS = {name: main.get_command(None, name) for name in main.list_commands(None)}
# Programs other than liedyn
NOT_RUN = {"make": "makes the environment that this test runs in, or calls this test", "pip": "installs",
           "cc": "tests/interop/test_c_files.py compiles", "source": "the environment is there",
           "python3": "makes the environment", "python": "scripts of configs/ and tests/, which have tests of their own"}
NOT_RUN_INLINE = {"simulate runs/panda_hybrid --resume": "of a run that was interrupted: tests/cli/test_simulate_resume.py",
                  "simulate runs/NAME --resume": "the same",
                  "inverse --smooth auto": "no trajectory is named",
                  "ik robots/panda.yaml --targets path.csv -o joints.csv": "docs/how-to/inverse-kinematics.md does it",
                  "excite robots/ur5.yaml -o excite.csv": "docs/parameters.md does it",
                  "parameters robots/ur5.yaml --from motion.csv --with friction": "the same",
                  "identify robots/ur5.yaml motion.csv --with friction -o identified": "the same",
                  "identify robots/ur5.yaml motion.csv --only wrist_3_link": "the same"}
# What a reader waits for, but a test need not
SHORTER = {"excite robots/ur5.yaml -o excite.csv": ["--starts", "2", "--force"],
           "excite robots/ur5.yaml --self-distance 0.02 --floor 0.01 -o above.csv": ["--starts", "1", "--harmonics", "2"],
           "excite robots/ur5.yaml --with friction --with damping --velocity 2 --self-distance 0.02 --floor 0.01 --starts 4 "
           "-o excite.csv": ["--starts", "1", "--harmonics", "3"],
           **{f"simulate rehearsal.yaml{options}": ["-S", "sensors.encoders.rate=100", "-S", "sensors.currents.rate=100"]
              for options in ("", " -o runs/tilted -S gravity=[0.342, 0, -9.804]")},
           **{f"simulate track.yaml -o runs/{options}": ["-S", "duration=2"]
              for options in ("before", "after -S control.model.robot=identified/identified.yaml")},
           "simulate configs/ur5_excite.yaml": ["-S", "output_step=0.08"],
           "plot runs/panda_hybrid --style paper --quantities tau,energy --joints panda_joint[1-4] --from 1 --until 4 -o paper":
               ["--joints", "panda_joint[1-4]", "--from", "0", "--until", "0.1"]}
# Files of the reader, each made from one of the repository, and what stands for names in them
STAND_INS = {"RUN1": "configs/double_pendulum.yaml", "RUN2": "configs/double_pendulum.yaml",
             "motion.csv": "robots/double_pendulum.yaml", "recording.csv": "robots/ur5.yaml",
             "runs/panda_hybrid": "configs/panda_hybrid.yaml", "runs/quadruped_walks": "configs/quadruped_walks.yaml",
             "my.yaml": "configs/double_pendulum.yaml",
             "sweep.yaml": "configs/sweeps/pendulum_release.yaml"}
NAMES = {"arm.urdf": "robots/double_pendulum.yaml", "robot.urdf": "robots/double_pendulum.urdf", "hand": "tip",
         "wrist=0.5": "elbow=0.5", "finger=0.02": "elbow=0.02",
         "panda_joint[1-4]": "shoulder"}
_INLINE = re.compile(r"`liedyn ([a-z]+ [^`]+)`")
_FILE = re.compile(r"# ([\w/.]+\.(?:yaml|csv))\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder with the example files, which an installed package contains."""
    copy_examples(tmp_path)
    monkeypatch.setattr(webbrowser, "open", lambda address: True)
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("liedyn")
    level = logger.level
    yield tmp_path
    logger.setLevel(level)                      # which docs/running.md sets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_runs(page, folder):
    names: dict = {"__name__": "__main__"}
    for block in blocks(page):
        if block.not_run or (block.requires and not is_available(block.requires)):
            continue
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        elif block.language == "sh":
            for line in command_lines(block.text):
                run_line(line)
        elif block.language == "yaml" and (name := _FILE.match(block.text)):
            Path(name[1]).write_text(block.text, encoding="utf-8")
    for command in dict.fromkeys(_INLINE.findall(outside_blocks(page))):
        words = shlex.split(command)
        if command not in NOT_RUN_INLINE and not all(word.startswith("-") for word in words[1:]):     # else it is only mentioned
            run_inline(words)


def is_available(package: str) -> bool:
    """Return whether a package is installed and has what it needs."""
    return has_opencl() if package == "pyopencl" else find_spec(package) is not None


def run_line(line: str) -> None:
    words = shlex.split(line, comments=True)
    if not words or words[0] in NOT_RUN:
        return
    assert words[0] == "liedyn", line
    if ">" in words:
        Path(words[-1]).write_text(run(words[1:-2]).stdout, encoding="utf-8")
    else:
        run(words[1:])


def run_inline(words: list[str]) -> None:
    """Run a command of a line of text: a simulation for a tenth of a second, others over existing results."""
    options = {option for parameter in COMMANDS[words[0]].params for option in parameter.opts}
    run(words + ["-S", "duration=0.1"] * (words[0] == "simulate") + ["--force"] * ("--force" in options))


def run(words: list[str]) -> command_line.Said:
    """Run a command without pictures of simulations, which other tests check."""
    for word in words:
        stand_in(word)
    pictures = words[0] == "simulate" and not {"--no-plots", "--dry-run", "--print-config"} & set(words)
    return command_line.ok(*(NAMES.get(word, word) for word in words), *SHORTER.get(" ".join(words), ()),
                           *["--no-plots"] * pictures)


def stand_in(name: str) -> None:
    """Create a file of the reader if it is missing: a copy, or a motion of a tenth of a second."""
    source = STAND_INS.get(name)
    if source is None or os.path.exists(name):
        return
    if name.endswith(".yaml"):
        text, folder = Path(source).read_text(encoding="utf-8"), os.path.dirname(source)
        Path(name).write_text(re.sub(r"\b(robot|scenario): (\S+)", rf"\1: {folder}/\2", text), encoding="utf-8")
        return
    folder = "made" if name.endswith(".csv") else name
    command_line.ok("simulate", source, "-S", "duration=0.1", "-S", "output_step=0.002", "-o", folder, "--no-plots", "--force")
    if name.endswith(".csv"):
        text = Path(folder, "trajectory.csv").read_text(encoding="utf-8")
        Path(name).write_text(re.sub("^# robot: .*", f"# robot: {source}", text), encoding="utf-8")
