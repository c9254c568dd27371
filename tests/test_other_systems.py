"""What differs on Windows and macOS: locks, forks, owners, renames, drives, line ends and names, each by substitution."""
import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import liedyn as ld
from command_line import ok
from liedyn.analysis.recorded_robot import robot_of
from liedyn.cli import simulate
from liedyn.dynamics.batching import threads
from liedyn.errors import ComputationError, UsageError
from liedyn.io import atomic_output
from liedyn.io.atomic_output import hold, is_unfinished, open_folder
from liedyn.io.checkpoint_files import Unfinished
from liedyn.io.ros_bag import is_bag
from liedyn.numba_tools import compile_cache
from liedyn.report.plots import drawing
from liedyn.report.replay import video
from liedyn.robot_files import yaml_of
from sources import nodes_of

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
# Names that these systems lack
NOT_IN_WINDOWS = ("fork", "register_at_fork", "geteuid", "getuid", "killpg", "sched_getaffinity", "O_NOFOLLOW", "O_CLOEXEC")


def with_crlf(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


# locks, processes, owners -----------------------------------------------------------------------------------------------

def test_a_simulation_runs_without_what_windows_lacks(tmp_path):
    script = f"""
import os, sys
import matplotlib.figure, numba.core.caching, scipy.integrate, multiprocessing, yaml
for name in {NOT_IN_WINDOWS}:
    delattr(os, name)
sys.modules["fcntl"] = sys.modules["resource"] = sys.modules["pwd"] = None
from liedyn.cli.app import main
main(["simulate", {str(ROOT / "robots" / "double_pendulum.yaml")!r}, "-S", "duration=0.1", "-o", "run", "--no-plots"])
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
                          env=os.environ | {"PYTHONPATH": str(ROOT / "src")})
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path)) == ["run"] and (tmp_path / "run" / "run.json").is_file()


def test_without_locks_a_file_is_held_by_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_output, "fcntl", None)
    monkeypatch.setattr(compile_cache, "fcntl", None)
    compile_cache._lock(tmp_path / "folder" / "code")
    assert hold(tmp_path) == -1 and os.listdir(tmp_path) == []


def test_without_owners_the_cache_is_used(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    with pytest.raises(compile_cache._UnusableFileError):
        compile_cache._check_owner(tmp_path.lstat())
    monkeypatch.delattr(os, "geteuid")
    compile_cache._check_owner(tmp_path.lstat())


@pytest.mark.parametrize(("platform", "fork"), [("linux", True), ("darwin", False), ("win32", False)])
def test_figures_are_drawn_in_a_fork_on_linux_only(monkeypatch, platform, fork):
    monkeypatch.setattr(sys, "platform", platform)
    if platform == "win32":
        monkeypatch.delattr(os, "fork")
    assert drawing._can_fork() == fork


def test_videos_need_the_pipes_of_posix(monkeypatch):
    monkeypatch.delattr(os, "geteuid")
    with pytest.raises(ComputationError, match="Chromium ended early"), video.browser("/bin/false"):
        pass
    monkeypatch.delattr(os, "killpg")
    with pytest.raises(UsageError, match="cannot be drawn on this system; run liedyn in WSL, or record"):
        video.check_video("motion.mp4", force=False)


def test_without_affinities_all_cores_are_used(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(threads, "quota", lambda: 1 << 30)
    monkeypatch.setenv("LIEDYN_THREADS", "")
    assert threads.cores.__wrapped__() == 3


# renames ----------------------------------------------------------------------------------------------------------------

def rename_of_windows(path: Path, target: Path) -> None:
    """Renames over nothing."""
    if Path(target).exists():
        raise FileExistsError(17, "Cannot create a file when that file already exists", str(target))
    os.rename(path, target)


def test_folders_appear_where_nothing_can_be_renamed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_output, "fcntl", None)
    monkeypatch.setattr(atomic_output, "_exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", rename_of_windows)
    target = tmp_path / "run"
    target.mkdir()                                          # empty
    for content, force in (("first", False), ("second", True)):
        with open_folder(target, mark="mark", force=force) as part:
            (part / "mark").write_text(content, encoding="utf-8")
        assert (target / "mark").read_text(encoding="utf-8") == content
    with pytest.raises(UsageError, match="already exists"), open_folder(target, mark="mark"):
        pass
    assert os.listdir(tmp_path) == ["run"]


def test_a_run_is_finished_if_its_rows_are_still_open(tmp_path, monkeypatch):
    """Windows does not rename a folder with an open file."""
    disk = Unfinished(tmp_path / "run")
    disk.begin()
    disk.save({})
    assert is_unfinished(tmp_path / "run")

    def refuse(*_):
        raise PermissionError(13, "Access is denied")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        disk.close(finished=True)
    assert not is_unfinished(tmp_path / "run")
    Unfinished(tmp_path / "run").begin()                    # the next run starts


# paths, line ends, names ------------------------------------------------------------------------------------------------

def test_the_name_of_a_run_may_end_in_any_separator(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    disk = Unfinished("run")
    disk.begin()
    disk.save({})
    disk.close(finished=False)
    monkeypatch.setattr(os, "sep", "\\")
    monkeypatch.setattr(os, "altsep", "/")
    assert simulate._Run().convert("run.unfinished\\", None, None) == simulate._Run().convert("run/", None, None) == "run"


@pytest.mark.parametrize("name", ["panda.yaml", "closures.yaml", "gripper.urdf", "hopper.xml"])
def test_robot_files_with_crlf_are_the_same_robots(tmp_path, name):
    for path in (ROOT / "robots").glob(f"{Path(name).stem}.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
        with_crlf(tmp_path / path.name)
    assert b"\r\n" in (tmp_path / name).read_bytes()
    assert yaml_of(ld.load(tmp_path / name)) == yaml_of(ld.load(ROOT / "robots" / name))


def test_a_run_folder_with_crlf_is_the_same_run(tmp_path):
    """Git may convert line ends: the model is that of the run."""
    run = ld.simulate(ROOT / "robots" / "double_pendulum.yaml", duration=0.01, q0=[0.3, 0.0])
    folder = tmp_path / "run"
    ld.write_run(run, folder, plots=False)
    assert not [path for path in folder.iterdir() if b"\r" in path.read_bytes()]
    for path in folder.iterdir():
        with_crlf(path)
    motion = ld.read_trajectory(folder / "trajectory.csv")
    model, warnings = robot_of(motion)
    assert model.nv == 2 and not warnings and (motion.t == run.t).all()
    (folder / "model.yaml").write_bytes((folder / "model.yaml").read_bytes().replace(b"mass: 1", b"mass: 2"))
    with pytest.raises(ld.TrajectoryError, match="not the model that the run was computed with"):
        robot_of(ld.read_trajectory(folder / "trajectory.csv"))


def test_texts_have_an_encoding_and_line_ends_of_their_own():
    """Else those of the system."""
    calls = [(path.name, node.lineno, node.func.attr, {each.arg for each in node.keywords})
             for path in SOURCES for node in nodes_of(path)
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "console"
             and (node.func.attr in ("read_text", "write_text") or (node.func.attr == "open" and "'w'" in ast.unparse(node)))]
    assert len(calls) > 15
    assert not [call for call in calls if "encoding" not in call[3] or ("newline" not in call[3] and call[2] != "read_text")]


def test_endings_of_files_count_without_case(tmp_path, monkeypatch):
    """Programs of Windows write MOTION.CSV."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "robots" / "double_pendulum.urdf", "ARM.URDF")
    rows = "".join(f"{k},{k},0\n" for k in range(9))
    Path("MOTION.CSV").write_text(f"t[s],q.shoulder,q.elbow\n{rows}", encoding="utf-8")
    ok("convert", "MOTION.CSV", "-r", "ARM.URDF", "-o", "OUT.CSV")
    assert ld.read_trajectory("OUT.CSV").columns["q.shoulder"].tolist() == list(range(9))
    (tmp_path / "bag").mkdir()
    (tmp_path / "bag" / "LOG.DB3").touch()
    assert is_bag("LOG.BAG") and is_bag("log.Mcap") and is_bag("bag") and not is_bag("log.csv")


def test_files_of_the_repository_have_names_for_all_systems():
    """Different without case, no names of devices, no characters that Windows forbids."""
    paths = [path.relative_to(ROOT) for folder in ("src", "tests", "docs", "robots", "configs", "packaging", ".github")
             for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    assert len(paths) > 500 and len({str(path).casefold() for path in paths}) == len(paths)
    devices = {"con", "prn", "aux", "nul", *(f"{port}{k}" for port in ("com", "lpt") for k in range(1, 10))}
    assert not [path for path in paths if path.stem.casefold() in devices or set(path.name) & set('<>:"|?*\\')
                or path.name.endswith((" ", "."))]
