"""`liedyn demo` and `liedyn examples`. tests/release runs them from a wheel."""
import json
import webbrowser
from pathlib import Path

import pytest

from command_line import ok, run, said
from liedyn.cli import example_commands
from liedyn.io import example_files
from liedyn.io.example_files import DEMOS, demo_file, title_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened(monkeypatch):
    """Return the pages that a desktop would open."""
    pages = []
    monkeypatch.setattr(webbrowser, "open", lambda address: pages.append(address) or True)
    monkeypatch.setenv("DISPLAY", ":0")
    return pages


def test_the_list_has_every_demo_with_the_title_of_its_scenario(folder):
    lines = ok("demo").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(DEMOS) == list(json.loads(ok("demo", "--json").stdout))
    for line, name in zip(lines, DEMOS, strict=True):
        title = line.split(maxsplit=1)[1]
        assert demo_file(name).is_relative_to(ROOT / "configs") and f"# {title}" in demo_file(name).read_text(encoding="utf-8")
        assert len(line) <= 80


def test_a_demo_is_computed_once_and_opened_each_time(folder, opened, monkeypatch):
    first, page = ok("demo", "pendulum"), folder / "runs" / "demo_pendulum" / "replay.html"
    written = page.stat().st_mtime_ns
    assert opened == [page.as_uri()] and "wrote" in first.stderr and "in a browser" not in first.stderr
    again = ok("demo", "pendulum", "--json")
    assert opened == [page.as_uri()] * 2 and page.stat().st_mtime_ns == written
    assert "--force runs the example again" in again.stderr and json.loads(again.stdout)["status"] == "complete"
    computed = []
    monkeypatch.setattr(example_commands, "_compute", lambda *arguments: computed.append(arguments[:3]))
    ok("demo", "pendulum", "--force", "--no-open")
    assert len(opened) == 2 and computed == [(demo_file("pendulum"), Path("runs", "demo_pendulum"), True)]


@pytest.mark.parametrize("options", [["--no-open"], []])
def test_without_a_browser_the_page_is_named(folder, opened, monkeypatch, options):
    (folder / "run").mkdir()
    (folder / "run" / "replay.html").touch()
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER") if not options else ():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    done = ok("demo", "arm", "-o", "run", *options)
    assert opened == [] and said(done)[-1] == f"open {Path('run', 'replay.html')} in a browser"


def test_a_wrong_demo_and_a_folder_of_another_kind_are_errors(folder):
    assert "'arn' is not one of 'arm'" in run("demo", "arn").stderr
    (folder / "other").mkdir()
    (folder / "other" / "notes.txt").touch()
    done = run("demo", "arm", "-o", "other")
    assert done.exit_code == 2 and "no run.json, so it is not replaced" in done.stderr


def test_copied_examples_are_those_of_the_repository_and_run(folder):
    lines, folder_name, listed = ok("examples").stdout.splitlines(), "", []
    for line in lines:
        if line.endswith("/"):
            folder_name = line
        elif line[2] != " ":                                 # else the next line of a title
            listed.append(folder_name + line.split()[0])
    titles = json.loads(ok("examples", "--json").stdout)
    assert listed == list(titles) and "notebooks/1_first_motion.ipynb" in listed and max(map(len, lines)) <= 80
    assert [path for path, title in titles.items() if len(title) < 10 and not path.endswith(".csv")] == []
    done = ok("examples", "--copy", "ex")
    folders = ", ".join(str(Path("ex", name)) for name in ("configs", "notebooks", "robots"))
    assert f"wrote {len(listed)} files to {folders}" in done.stderr
    for name in listed:
        assert (folder / "ex" / name).read_bytes() == (ROOT / name).read_bytes()
    assert not [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder / "ex").as_posix() not in listed]
    ok("simulate", "ex/configs/double_pendulum.yaml", "--dry-run")


def test_own_changes_of_copied_examples_are_not_overwritten(folder):
    ok("examples", "--copy", ".")
    ok("examples", "--copy", ".")                            # the same content
    own = folder / "robots" / "ur5.yaml"
    own.write_text("own", encoding="utf-8")
    (folder / "robots" / "panda.yaml").unlink()
    done = run("examples", "--copy", ".")
    assert done.exit_code == 2 and f"already exist: {Path('robots', 'ur5.yaml')}; --force or force=True" in done.stderr
    assert own.read_text(encoding="utf-8") == "own" and not (folder / "robots" / "panda.yaml").exists()
    ok("examples", "--copy", ".", "--force")
    assert own.read_bytes() == (ROOT / "robots" / "ur5.yaml").read_bytes()


def test_a_folder_that_cannot_be_written_is_an_error(folder):
    (folder / "file").touch()
    done = run("examples", "--copy", "file")
    assert done.exit_code == 2 and "cannot be written" in done.stderr and "Traceback" not in done.stderr


def test_a_missing_example_file_leads_to_the_command(folder, monkeypatch):
    assert "`liedyn examples --copy .` writes" in run("info", "robots/panda.yaml").stderr
    assert "liedyn examples" not in run("info", "robots/nothing.yaml").stderr
    monkeypatch.setattr(example_files, "_PACKAGE", folder / "a" / "b")          # an installation without them
    assert "does not exist" in run("info", "robots/panda.yaml").stderr
    assert "no example files" in run("examples").stderr


@pytest.mark.parametrize(("text", "title"), [
    ("# Free fall: of a stone.\n", "Free fall"), ("# An arm\n# of 2.5 kg. It moves.\nlinks: {}\n", "An arm of 2.5 kg"),
    ("# SciPy's method 8(5,3) (of 1980)\n", "SciPy's method 8(5,3)"), ("links: {}\n# comment\n", ""), ("", "")])
def test_titles(tmp_path, text, title):
    (tmp_path / "robot.yaml").write_text(text, encoding="utf-8")
    assert title_of(tmp_path / "robot.yaml") == title
