"""Results appear whole or not at all, and never over somebody's work."""
import os
import stat

import pytest

from liedyn.errors import UsageError
from liedyn.io import output
from liedyn.io.output import check_folder, check_output, open_folder, open_output


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
    with pytest.raises(UsageError, match="there is no folder"):
        check_output(tmp_path / "none" / "x.csv")
    check_output(tmp_path / "x.csv")
    check_output("-")


def test_a_disk_error_is_told_in_one_line(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(output.os, "replace", full)
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
    with pytest.raises(UsageError, match=r"arm exists already; --force overwrites it"):
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
    with pytest.raises(UsageError, match=r"holds other files and no run\.json: it is not replaced"):
        fill(tmp_path, force=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_an_empty_folder_is_used(tmp_path):
    (tmp_path / "arm").mkdir()
    fill(tmp_path / "arm")
    assert os.listdir(tmp_path / "arm") == ["run.json"]


def test_folders_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file; a folder is needed"):
        check_folder(tmp_path / "file", mark="run.json")
    with pytest.raises(UsageError, match="file is no folder"):
        check_folder(tmp_path / "file" / "arm", mark="run.json")


def test_a_full_disk_brings_the_old_folder_back(tmp_path, monkeypatch):
    fill(tmp_path / "arm", "old")
    replace, calls = os.replace, []

    def second_fails(a, b):
        calls.append(a)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        replace(a, b)
    monkeypatch.setattr(output.os, "replace", second_fails)
    with pytest.raises(UsageError, match="No space left on device"):
        fill(tmp_path / "arm", force=True)
    assert (tmp_path / "arm" / "run.json").read_text() == "old" and os.listdir(tmp_path) == ["arm"]
