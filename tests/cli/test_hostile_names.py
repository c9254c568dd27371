"""Whatever the names of joints, links, columns and files hold: nothing of it reaches a path, a terminal or a CSV as it is, and
results are read back under the same names."""
import csv
import json
import os
from pathlib import Path

import pytest
import yaml

from command_line import ok, run
from liedyn.io.trajectory_csv import read_trajectory

JOINTS = ["=1+1$x$", " ", "..", "@SUM(A1)", 'q"u,o;te', "a\\x41/b", "größe[1]", "-$\\frac$"]
LINKS = ["../../link", "  ", "=HYPERLINK", "a,b", "$y$", "+1", ".", "{0}%s"]
FILE = "x\x1b[2J\x9b\u202egnp\n"                # a name that clears the screen, turns the direction of writing, starts a line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a chain of all joints and links, and a scenario that names each joint."""
    monkeypatch.chdir(tmp_path)
    links = {name: {"mass": 1, "com": [0, 0, -0.2], "inertia": [0.02, 0.02, 0.01]} for name in LINKS}
    joints = {name: {"type": "revolute", "parent": parent, "child": child, "axis": [0, 1, 0], "limits": {"lower": -9, "upper": 9}}
              for name, parent, child in zip(JOINTS, ["world", *LINKS], LINKS, strict=False)}
    dump(tmp_path / "arm.yaml", {"name": "=arm/..", "links": links, "joints": joints})
    dump(tmp_path / "run.yaml", {"robot": "arm.yaml", "duration": 0.01, "integrator": {"method": "rk4", "step": 1e-3},
                                 "initial": {"q": {name: 0.1 for name in JOINTS}},
                                 "joints": {name: {"prescribe": {"acceleration": 1}} for name in JOINTS[::2]},
                                 "external_forces": [{"link": LINKS[3], "wrench": [0, 0, 0, 0, 0, 1]}]})
    return tmp_path


def dump(path, content):
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")


def check_text(result):
    """Check that all characters of a command's output are printable."""
    for text in (result.stdout, result.stderr):
        assert all(line.isprintable() for line in text.replace("\r\x1b[K", "").split("\n")), repr(text)
    return result


def check_csv(path):
    """Check that each cell is printable and no formula, also where a spreadsheet splits a comment into cells."""
    for row in csv.reader(Path(path).read_text(encoding="utf-8").splitlines()):
        for cell in row:
            assert cell.isprintable() and cell.lstrip()[:1] not in ("=", "@")
            assert cell[:1] not in ("+", "-") or float(cell) < 1


def test_names_of_joints_and_links_from_end_to_end(folder):
    before = {path.name for path in folder.iterdir()}
    check_text(ok("simulate", "run.yaml"))
    assert {path.name for path in folder.iterdir()} == {*before, "runs"} and os.listdir("runs") == ["run"]
    motion = read_trajectory("runs/run/trajectory.csv")
    check_csv("runs/run/trajectory.csv")
    assert [name for name in motion.columns if name.startswith("q.")] == [f"q.{name}" for name in JOINTS]
    assert next(name for name in motion.columns if name.startswith("fext.")) == f"fext.{LINKS[3]}.mx"
    for text in (check_text(ok("info", "arm.yaml")).stdout, check_text(ok("info", "arm.yaml", "-v", "--json")).stdout):
        assert "SUM(A1)" in text
    check_text(ok("inverse", "runs/run/trajectory.csv", "-o", "again.csv"))
    check_csv("again.csv")
    again = read_trajectory("again.csv")
    assert [name for name in again.columns if name.startswith("tau.")] == [f"tau.{name}" for name in JOINTS]
    assert again.header["prescribed"] == motion.header["prescribed"]
    result = check_text(ok("plot", "again.csv", "-o", "pictures", "-f", "svg"))
    assert "ignored" not in result.stderr and not any(set(name) & set("=@$ ,") for name in os.listdir("pictures"))
    check_text(ok("parameters", "arm.yaml", "-o", "parameters.csv"))
    check_csv("parameters.csv")
    check_text(ok("linearize", "run.yaml", "-o", "linear", "--no-plots"))
    for name in ("A", "B", "C", "D"):
        check_csv(f"linear/{name}.csv")
    check_text(run("check", "arm.yaml", "--json"))


def test_the_colours_of_what_is_prescribed_follow_any_name(folder):
    from liedyn.report.plots.plot_data import prescribed_comment, prescribed_of_comments

    assert prescribed_of_comments(prescribed_comment(JOINTS)) == JOINTS
    ok("simulate", "run.yaml", "--no-plots")
    assert prescribed_of_comments(read_trajectory("runs/run/trajectory.csv").header) == JOINTS[::2]


def test_names_of_files(folder):
    robot, scenario, motion = f"{FILE}.yaml", f"{FILE}s.yaml", f"{FILE}.csv"
    (folder / "arm.yaml").rename(folder / robot)
    dump(folder / scenario, yaml.safe_load(Path("run.yaml").read_text(encoding="utf-8")) | {"robot": robot})
    for args in (["info", robot], ["info", robot, "--json"], ["info", "-v", robot], ["check", robot],
                 ["simulate", scenario, "-v"], ["assemble", robot], ["linearize", scenario]):
        check_text(run(*args))
    (folder / "runs").joinpath("x_[2J__gnp_s", "trajectory.csv").rename(motion)
    check_csv(motion)
    assert read_trajectory(motion).header["robot"] == f"../../{robot}"
    check_text(ok("inverse", motion, "-r", robot))
    check_csv(f"{FILE}_inverse.csv")
    assert read_trajectory(f"{FILE}_inverse.csv").header["robot"] == robot
    for args in (["plot", f"{FILE}_inverse.csv", "-f", "svg"], ["inverse", motion, "-r", robot], ["inverse", motion],
                 ["inverse", motion, "-r", f"{FILE}.yml"], ["simulate", scenario], ["info", f"{FILE}none"]):
        check_text(run(*args))
    Path(robot).write_text("links: {}\n")
    check_text(run("check", robot, motion))
    Path(robot).write_text("links: [1")
    assert check_text(run("info", robot)).exit_code == 3


def test_names_of_columns(folder):
    """U+009B starts an escape sequence and U+202E reverses the direction of writing. Both were printed unchanged."""
    ok("simulate", "run.yaml", "--no-plots")
    rows = Path("runs/run/trajectory.csv").read_text(encoding="utf-8").splitlines()
    rows = [row if row.startswith("#") else row + (",q.\x9b2J\u202e\x1b[1m" if row.startswith("t[s]") else ",0") for row in rows]
    Path("runs/run/trajectory.csv").write_text("\n".join(rows), encoding="utf-8")
    result = check_text(ok("inverse", "runs/run/trajectory.csv"))
    assert r"q.\x9b2J\u202e\x1b[1m" in result.stderr
    check_text(ok("plot", "runs/run", "-f", "svg"))
    Path("alone.csv").write_text("t,q.\x9b2J\u202e\x1b[1m\n0,0\n1,1\n", encoding="utf-8")
    check_text(ok("plot", "alone.csv", "-f", "svg", "-f", "pdf"))
    Path("bad.csv").write_text("t,q.\x9b2J\u202e\x1b[1m\n0,x\n1,1\n", encoding="utf-8")
    assert r"\x9b2J\u202e\x1b[1m" in check_text(run("plot", "bad.csv")).stderr


@pytest.mark.parametrize("name", ["a\x9bb", "a\u202eb", "a\x1b[1mb", "a\nb", "a\x85b", "\u2028"])
@pytest.mark.parametrize("kind", ["joints", "links", "name"])
def test_a_robot_s_names_have_to_print(folder, kind, name):
    robot = yaml.safe_load(Path("arm.yaml").read_text(encoding="utf-8"))
    if kind == "name":
        robot["name"] = name
    else:
        robot[kind][name] = dict(robot[kind][LINKS[0] if kind == "links" else JOINTS[0]])
    Path("bad.yaml").write_text(json.dumps(robot), encoding="utf-8")
    for args in (["info", "bad.yaml"], ["check", "bad.yaml"], ["simulate", "bad.yaml"]):
        assert check_text(run(*args)).exit_code == 3


@pytest.mark.parametrize("error", ["no_such", "\x9b2J\u202e", "$x$", "a\nb"])
def test_names_in_errors(folder, error):
    scenario = yaml.safe_load(Path("run.yaml").read_text(encoding="utf-8"))
    scenario["initial"]["q"][error] = 1
    Path("bad.yaml").write_text(json.dumps(scenario), encoding="utf-8")
    result = check_text(run("simulate", "bad.yaml"))
    assert result.exit_code == 3 and result.stderr.count("\n") == 1
    result = check_text(run("simulate", "run.yaml", "-S", f"initial.q.{error}=1"))
    assert result.exit_code in (2, 3)
    check_text(run("info", "arm.yaml", f"--{error}"))
    check_text(run(error))


@pytest.mark.parametrize("name", ["..yaml", "...yaml"])
def test_a_scenario_called_by_dots_writes_below_runs(folder, name):
    Path("run.yaml").rename(name)
    ok("simulate", name, "--no-plots")
    (made,) = os.listdir("runs")
    assert set(made) == {"_"} and Path("runs", made, "run.json").is_file() and not Path("run.json").exists()
