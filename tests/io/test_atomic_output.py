"""Results appear whole or not at all, and never over somebody's work."""
import contextlib
import io
import os
import stat
import subprocess
import sys

import pytest

from liedyn.errors import ComputationError, UsageError
from liedyn.io import atomic_output
from liedyn.io.atomic_output import check_folder, check_output, open_folder, open_output, path_part, stem_of


def write(path, force=False):
    with open_output(path, force=force) as file:
        file.write("new")


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    with pytest.raises(KeyboardInterrupt), open_output(tmp_path / "x.csv") as file:
        file.write("half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_a_failure_by_force_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("mine")
    with pytest.raises(RuntimeError), open_output(path, force=True) as file:
        file.write("half")
        raise RuntimeError
    assert path.read_text() == "mine" and os.listdir(tmp_path) == ["x.csv"]


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(UsageError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        check_output(tmp_path / "none" / "x.csv")
    check_output(tmp_path / "x.csv")
    check_output("-")


def test_a_disk_error_is_told_in_one_line(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(atomic_output.os, "link", full)
    monkeypatch.setattr(atomic_output.os, "replace", full)
    with pytest.raises(UsageError, match=r"x\.csv cannot be written: No space left on device"):
        write(tmp_path / "x.csv")
    assert os.listdir(tmp_path) == []


def test_a_link_stays_a_link_and_permissions_follow_the_umask(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write(tmp_path / "link.csv", force=True)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "real.csv").stat().st_mode) == 0o666 & ~umask


def test_a_device_is_written_to_and_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe)
        assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# --- folders ---------------------------------------------------------------------------------------------------------

def fill(path, text="new", force=False):
    with open_folder(path, mark="run.json", force=force) as folder:
        (folder / "run.json").write_text(text)


def test_a_folder_appears_with_those_above_it(tmp_path):
    fill(tmp_path / "runs" / "arm")
    assert os.listdir(tmp_path / "runs") == ["arm"]
    assert (tmp_path / "runs" / "arm" / "run.json").read_text() == "new"


def test_a_folder_that_fails_does_not_appear(tmp_path):
    with pytest.raises(RuntimeError), open_folder(tmp_path / "arm", mark="run.json") as folder:
        (folder / "half").write_text("")
        raise RuntimeError
    assert os.listdir(tmp_path) == []


def test_an_existing_folder_is_replaced_only_by_force(tmp_path):
    fill(tmp_path / "arm", "old")
    (tmp_path / "arm" / "old.png").write_text("")
    with pytest.raises(UsageError, match=r"arm already exists; --force or force=True overwrites it"):
        fill(tmp_path / "arm")
    fill(tmp_path / "arm", force=True)
    assert os.listdir(tmp_path) == ["arm"] and os.listdir(tmp_path / "arm") == ["run.json"]


def test_a_failure_by_force_leaves_the_old_folder(tmp_path):
    fill(tmp_path / "arm", "old")
    with pytest.raises(RuntimeError), open_folder(tmp_path / "arm", mark="run.json", force=True):
        raise RuntimeError
    assert (tmp_path / "arm" / "run.json").read_text() == "old" and os.listdir(tmp_path) == ["arm"]


def test_a_folder_of_other_files_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match=r"contains other files and no run\.json, so it is not replaced"):
        fill(tmp_path, force=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_an_empty_folder_is_used(tmp_path):
    (tmp_path / "arm").mkdir()
    fill(tmp_path / "arm")
    assert os.listdir(tmp_path / "arm") == ["run.json"]


def test_folders_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file: expected a folder"):
        check_folder(tmp_path / "file", mark="run.json")
    with pytest.raises(UsageError, match="file is not a folder"):
        check_folder(tmp_path / "file" / "arm", mark="run.json")


# --- interrupts, killed processes, several at once -------------------------------------------------------------------

def no_exchange(*_):
    return False


def stands(folder) -> str:
    """Return the only complete result in the folder, and check that nothing else is there."""
    assert os.listdir(folder) == ["arm"] and os.listdir(folder / "arm") == ["run.json"]
    return (folder / "arm" / "run.json").read_text()


@pytest.mark.parametrize("exchange", [atomic_output._exchange, no_exchange], ids=["exchange", "two renames"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")], ids=["Ctrl-C", "full disk"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(4))
def test_an_interrupt_at_a_rename_leaves_the_old_or_the_new_result(tmp_path, monkeypatch, exchange, error, after, step):
    """An interrupt between two renames lost both results."""
    fill(tmp_path / "arm", "old")
    steps = []

    def failing(function):
        def call(*paths):
            steps.append(paths)
            if len(steps) - 1 == step and not after:
                raise error
            done = function(*paths)
            if len(steps) - 1 == step:
                raise error
            return done
        return call
    monkeypatch.setattr(atomic_output, "_exchange", failing(exchange))
    monkeypatch.setattr(atomic_output.os, "rename", failing(os.rename))
    try:
        fill(tmp_path / "arm", force=True)
    except (KeyboardInterrupt, UsageError):
        assert stands(tmp_path) in ("old", "new")
    else:
        assert stands(tmp_path) == "new"


def test_an_interrupt_while_the_old_result_is_removed(tmp_path, monkeypatch):
    fill(tmp_path / "arm", "old")
    rmtree, calls = atomic_output.shutil.rmtree, []

    def once(*args, **options):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        rmtree(*args, **options)
    monkeypatch.setattr(atomic_output.shutil, "rmtree", once)
    with pytest.raises(KeyboardInterrupt, match="arm is written"):
        fill(tmp_path / "arm", force=True)
    assert stands(tmp_path) == "new"


def test_without_an_exchange_the_folder_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_output, "_exchange", no_exchange)
    fill(tmp_path / "arm", "old")
    fill(tmp_path / "arm", force=True)
    assert stands(tmp_path) == "new"


def test_a_system_without_the_function_exchanges_nothing(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").touch()
    monkeypatch.setattr("ctypes.CDLL", lambda _name: object())
    assert not atomic_output._exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "a.txt").exists()


def test_files_are_not_replaced_without_force(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    for write in (atomic_output.check_output, lambda path: atomic_output.open_output(path).__enter__()):
        with pytest.raises(UsageError, match="already exists"):
            write(path)
    atomic_output.check_output(path, force=True)
    assert path.read_text() == "old"


def test_the_exchange_says_whether_it_was_done(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "x").write_text("")
    done = atomic_output._exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "x").exists() == done
    assert not atomic_output._exchange(tmp_path / "a", tmp_path / "none")


WRITER = """\
import sys
from liedyn.errors import UsageError
from liedyn.io.atomic_output import open_folder, open_output
path, kind = sys.argv[1:]
try:
    if kind == "folder":
        with open_folder(path, mark="run.json") as part:
            (part / "run.json").write_text("theirs")
            print("ready", flush=True)
            sys.stdin.readline()
    else:
        with open_output(path) as file:
            file.write("theirs")
            file.flush()
            print("ready", flush=True)
            sys.stdin.readline()
except UsageError as error:
    sys.exit(str(error))
"""


@contextlib.contextmanager
def writers(path, kind, count):
    """Start processes that are about to write the same result. `finish` continues one and returns its status and message."""
    started = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        for process in started:
            assert process.stdout.readline() == "ready\n"
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_of_three_processes_without_force_one_wins(tmp_path, kind):
    with writers(tmp_path / "arm", kind, 3) as started:
        for process in started:
            process.stdin.write("\n")
            process.stdin.flush()
        told = [process.communicate()[1] for process in started]
        lost = [text for text in told if text]
        assert sorted(process.returncode for process in started) == [0, 1, 1]
        assert lost == [f"{tmp_path / 'arm'} already exists; --force or force=True overwrites it\n"] * 2
    assert os.listdir(tmp_path) == ["arm"]


@pytest.mark.skipif(not atomic_output.fcntl, reason="this system has no locks")
@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, kind):
    with writers(tmp_path / "theirs", kind, 1) as (process,):
        process.kill()
        process.wait()
        (left,) = os.listdir(tmp_path)
        assert left.startswith(".liedyn-") and left.endswith(".part")
        fill(tmp_path / "arm")
    assert stands(tmp_path) == "new"


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_a_living_process_writes_is_left_to_it(tmp_path, kind):
    with writers(tmp_path / "theirs", kind, 1) as (process,):
        fill(tmp_path / "arm")
        write(tmp_path / "x.csv")
        assert len(os.listdir(tmp_path)) == 3
        process.communicate("\n")
        assert process.returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["arm", "theirs", "x.csv"]


def test_without_locks_nothing_is_removed_and_all_is_written(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(95, "Operation not supported")
    if atomic_output.fcntl:
        monkeypatch.setattr(atomic_output.fcntl, "flock", unsupported)
    left = tmp_path / ".liedyn-0123456789abcdef.part"
    left.mkdir()
    fill(tmp_path / "arm")
    write(tmp_path / "x.csv")
    assert sorted(os.listdir(tmp_path)) == [left.name, "arm", "x.csv"]


def test_hidden_files_of_others_are_left_alone(tmp_path):
    names = [".liedyn-notes.part", ".arm.part", ".arm.123.part", "liedyn-0123456789abcdef.part"]
    for name in names:
        (tmp_path / name).mkdir()
    fill(tmp_path / "arm")
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "arm"])


def test_a_failure_leaves_no_new_folders_above(tmp_path):
    with pytest.raises(RuntimeError), open_folder(tmp_path / "a" / "b" / "arm", mark="run.json"):
        raise RuntimeError
    assert os.listdir(tmp_path) == []


def test_a_file_system_without_links(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(1, "Operation not permitted")
    monkeypatch.setattr(atomic_output.os, "link", unsupported)
    write(tmp_path / "x.csv")
    assert os.listdir(tmp_path) == ["x.csv"]


def test_a_full_disk_while_writing_is_told(tmp_path):
    with pytest.raises(UsageError, match="cannot be written"), open_output(tmp_path / "x.csv"):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_in_a_folder_names_the_folder(tmp_path):
    """The message named a file in the hidden temporary folder."""
    with pytest.raises(UsageError) as told, open_folder(tmp_path / "arm", mark="run.json") as part, \
            open_output(part / "x.csv"):
        raise OSError(28, "No space left on device")
    assert str(told.value) == f"{tmp_path / 'arm'} cannot be written: No space left on device"
    assert os.listdir(tmp_path) == []


def test_a_file_on_standard_output_is_utf8_whatever_the_terminal_takes(monkeypatch):
    for encoding in ("ascii", "latin-1", "utf-8"):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
        with open_output("-") as file:
            file.write("q.größe\n")
        assert raw.getvalue() == "q.größe\n".encode() and sys.stdout.encoding == encoding


def test_a_closed_standard_output_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(ComputationError, match="standard output is closed"), open_output("-"):
        pass


@pytest.mark.parametrize("path, name", [
    ("robots/arm.urdf", "arm"), ("arm.urdf.xacro", "arm"), ("Arm.URDF.XACRO", "Arm"), ("arm.xacro", "arm"),
    ("arm.v2.urdf", "arm.v2"), ("arm.loops.yaml", "arm"),
    ("loops.yaml", "loops"), (".loops.yaml", ".loops"), ("swing", "swing"), (".hidden", ".hidden")])
def test_names_of_files_without_their_endings(path, name):
    assert stem_of(path) == name


@pytest.mark.parametrize("text, part", [("arm", "arm"), ("..", "__"), (".", "_"), ("", "_"), ("a/b\\c", "a_b_c"),
                                        ("x\x1b[2J\n", "x_[2J_"), ("\u202e", "_"), ("größe.v2", "größe.v2"), ("...", "___")])
def test_parts_of_paths(text, part):
    assert path_part(text) == part
