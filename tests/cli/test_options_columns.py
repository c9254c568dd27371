"""--columns of the commands that read a trajectory: a log with foreign names and degrees gives what our own file gives."""
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run, said
from liedyn.io.trajectory_csv import read_trajectory

ROOT = Path(__file__).parents[2]
UR5 = ROOT / "robots/ur5.yaml"
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
T = np.round(np.arange(60) * 0.02, 2)
MAP = ("t=stamp[ms],q.*_joint=pos_*[deg],q.elbow_joint=-(\"elbow pos\" - 4096)*0.0125[deg],v.*_joint=vel_*[rpm],"
       "a.*_joint=acc_*[deg/s^2],tau.*_joint=cur_*[mA]*13.2")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Return own.csv of a motion with its forces, and log.csv of the same motion as a controller logs it."""
    monkeypatch.chdir(tmp_path)
    model = ld.load(UR5)
    phase, w = np.arange(6), 2 * np.pi * np.array([0.4, 0.4, 0.6, 0.6, 0.5, 0.5])
    angle = np.outer(T, w) + phase
    q, v, a = 0.5 * np.sin(angle), 0.5 * w * np.cos(angle), -0.5 * w**2 * np.sin(angle)
    tau = ld.inverse_dynamics(model, q, v, a)
    ld.trajectory_of(model, T, q, v, a, tau).save("own.csv")
    columns = {"stamp": np.round(T * 1e3), "mode": ["RUN"] * len(T)}
    for k, name in enumerate(JOINTS):
        columns |= {"elbow pos" if name == "elbow" else f"pos_{name}": np.degrees(q[:, k])}
        columns |= {f"vel_{name}": v[:, k] * 30 / np.pi, f"acc_{name}": np.degrees(a[:, k]), f"cur_{name}": tau[:, k] / 13.2e-3}
    columns["elbow pos"] = 4096 - columns["elbow pos"] / 0.0125
    rows = zip(*(x if isinstance(x, list) else map(repr, x.tolist()) for x in columns.values()), strict=True)
    Path("log.csv").write_text("\n".join([",".join(columns), *map(",".join, rows)]) + "\n")
    return model


def table(path, kind):
    trajectory = read_trajectory(path)
    return np.column_stack([x for name, x in trajectory.columns.items() if name.startswith(f"{kind}.")])


@pytest.mark.parametrize("command, kinds", [
    (["inverse"], ["tau"]), (["forward"], ["a"]), (["hybrid", "-p", "wrist*"], ["a", "tau"]),
    (["kinematics", "--link", "tool0", "--com"], ["pose", "twist", "acceleration", "com"]),
    (["derivatives", "--joint", "elbow_joint"], ["dtau"])])
def test_a_log_and_our_own_file_give_the_same_results(model, command, kinds):
    """Relative to the maximum of a column, since the conversion of units rounds."""
    name, *options = command
    ok(name, "own.csv", *options, "-o", "expected.csv")
    result = ok(name, "log.csv", "--columns", MAP, "-r", UR5, *options, "-o", "found.csv")
    assert said(result)[0] == ("information: the columns of log.csv are mapped; others are ignored: mode "
                               "[columns-mapped]")
    expected, found = read_trajectory("expected.csv"), read_trajectory("found.csv")
    assert list(found.columns) == list(expected.columns) and found.units == expected.units
    assert found.t.tolist() == expected.t.tolist()
    chosen = [column for column in expected.columns if re.split(r"[./]", column)[0] in kinds]
    assert chosen
    for column in chosen:
        x, y = expected.columns[column], found.columns[column]
        scale = np.abs(x).max() if np.abs(x).max() > 1e-9 else 1.0
        assert np.abs(y - x).max() <= 1e-12 * scale * (100 if kinds == ["a"] else 1), column


def test_results_need_no_map(model):
    """Names and units are those of liedyn. The comment records the map, which gives the same result again."""
    ok("inverse", "log.csv", "--columns", MAP, "-r", UR5)
    found = read_trajectory("log_inverse.csv")
    assert found.units["q.elbow_joint"] == "rad" and found.header["columns"].startswith("t=stamp[ms],q.shoulder_pan_joint=")
    assert said(ok("forward", "log_inverse.csv"))[-1].startswith("wrote log_inverse_forward.csv")
    ok("inverse", "log.csv", "--columns", found.header["columns"], "-r", UR5, "-o", "again.csv")
    assert read_trajectory("again.csv").columns["tau.elbow_joint"].tolist() == found.columns["tau.elbow_joint"].tolist()


def test_identification_reads_the_same_motion(model):
    options = "--with", "none", "--no-offset", "--json"
    expected, found = (json.loads(ok("parameters", UR5, "--from", path, *columns, *options).stdout)
                       for path, columns in (("own.csv", []), ("log.csv", ["--columns", MAP])))
    values = [[one["estimate"] for one in report["base_parameters"]] for report in (expected, found)]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6, atol=1e-9)
    refused = run("parameters", UR5, "--columns", MAP)
    assert refused.exit_code == 2 and "--columns requires --from" in refused.stderr


def test_plot_and_replay(model):
    assert "wrote" in ok("plot", "log.csv", "--columns", MAP, "-f", "png").stderr                  # without a robot, too
    found = ok("plot", "log.csv", "--columns", MAP, "-r", UR5, "-f", "png", "-o", "drawn", "--json")
    assert any("positions" in path or "q" in path for path in json.loads(found.stdout)["plots"])
    ok("replay", "log.csv", "--columns", MAP, "-r", UR5, "-o", "page.html", "--against", "own.csv")
    for command in (["plot", "log.csv", "-o", "other"], ["replay", "log.csv", "-o", "other.html"]):
        result = run(*command, "--columns", MAP + ",q.no=stamp", "-r", UR5)
        assert result.exit_code == 3 and "columns: q.no: the robot ur5 has no such column" in result.stderr


def test_batches_along_a_log(model):
    """A text, a YAML file in the sweep's folder, and the file next to the log give the same table."""
    sweep = ("job: inverse\ntrajectory: ../log.csv\nrobot: {}\n{}\n"
             "parameters: [{{key: robot.mass.wrist_3_link, list: [0.5, 1]}}]\noutputs: {{x: max(abs(tau.elbow_joint))}}\n")
    columns = {name: text for name, text in (entry.split("=", 1) for entry in MAP.split(","))}
    Path("sweeps").mkdir()
    Path("sweeps/map.yaml").write_text(json.dumps({"columns": columns}))
    texts = {"text": f"columns: {json.dumps(MAP)}", "file": "columns: map.yaml", "next": ""}
    tables = []
    for name, text in texts.items():
        Path(f"sweeps/{name}.yaml").write_text(sweep.format(UR5, text))
        if name == "next":
            Path("log.columns.yaml").write_text(json.dumps({"columns": columns}))
        ok("batch", f"sweeps/{name}.yaml", "-o", name, "--csv")
        tables.append([line.split(",")[:3] for line in Path(name, "runs.csv").read_text().splitlines() if line[0] != "#"])
    assert tables[0] == tables[1] == tables[2] and len(tables[0]) == 3


def test_a_changed_map_is_another_batch(model):
    from liedyn.batch.run_batch import PreparedSweep
    from liedyn.io.sweep_file import read_sweep
    columns = dict(entry.split("=", 1) for entry in MAP.split(","))
    Path("sweep.yaml").write_text(f"job: inverse\ntrajectory: log.csv\nrobot: {UR5}\n"
                                  "parameters: [{key: robot.mass.wrist_3_link, list: [0.5, 1]}]\n")
    identities = []
    for change in ({}, {"q.elbow_joint": "-(\"elbow pos\" - 4000)*0.0125[deg]"}):
        Path("log.columns.yaml").write_text(json.dumps({"columns": columns | change}))
        identities.append(PreparedSweep(read_sweep("sweep.yaml")).identity)
    assert identities[0] != identities[1]


@pytest.mark.parametrize("columns, words", [
    (MAP + ",q.elbo_joint=stamp", "columns: q.elbo_joint: the robot ur5 has no such column: expected one of "
                                  "q.shoulder_pan_joint, q.shoulder_lift_joint, q.elbow_joint, q.wrist_1_joint, "
                                  "q.wrist_2_joint, q.wrist_3_joint, got 'q.elbo_joint' (did you mean q.elbow_joint?)"),
    (MAP + ",fext.hand.fx=stamp", "columns: fext.hand.fx: the robot ur5 has no such column"),
    (MAP.replace("0.0125[deg]", "0.0125[mm]"), "columns: q.elbow_joint: wrong unit: expected rad, got 'm'"),
    (MAP.replace("pos_*[deg]", "pos_*[deg/s]"), "columns: q.shoulder_pan_joint: wrong unit: expected rad, got 'rad/s'"),
    (MAP.replace("cur_*[mA]*13.2", "cur_*[mA]"), "columns: tau.*_joint: a current cannot be used as a force"),
    ("no.yaml", "no.yaml: no such file"),
])
def test_maps_that_do_not_fit_the_robot(model, columns, words):
    result = run("inverse", "log.csv", "--columns", columns, "-r", UR5)
    assert result.exit_code == 3 and len(said(result)) == 1, result.stderr
    assert result.stderr.startswith(f"error: {words}"), result.stderr
    assert not Path("log_inverse.csv").exists()


def test_columns_of_a_pattern_that_the_robot_lacks_are_ignored(model):
    result = ok("inverse", "log.csv", "--columns", MAP.replace("v.*_joint", "v.*"), "-r", UR5)
    assert "unknown columns of log.csv are ignored: v.shoulder_pan, v.shoulder_lift" in result.stderr


# --- suggestions -----------------------------------------------------------------------------------------------------

def write_log(path, titles, rows):
    Path(path).write_text("\n".join([titles, *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n")


def option_of(text):
    """Return the option --columns of a message as a shell reads it."""
    words = shlex.split(re.search(r"--columns \(or columns=\) (.*?)(?:\)$|\)\n| \[degrees\])", text + "\n")[1])
    assert len(words) == 1
    return words[0]


@pytest.mark.parametrize("given, expected", [
    (None, "q.*=q.*[deg],v.*=v.*[deg/s],a.*=a.*[deg/s^2]"),
    ("t=t,q.*=q.*", "t=t,q.*=q.*,q=[deg],v=[deg/s],a=[deg/s^2]"),
])
def test_the_message_about_degrees_prints_an_option_that_works(model, given, expected):
    own = read_trajectory("own.csv")
    q, v, a = (np.degrees(np.column_stack([own.columns[f"{kind}.{name}"] for name in model.v_names])) * 4 for kind in "qva")
    ld.trajectory_of(model, T, q, v, a).save("degrees.csv")
    Path("degrees.csv").write_text(re.sub(r"\[rad[^\]]*\]", "", Path("degrees.csv").read_text()))
    before = ["--columns", given] if given else []
    result = ok("inverse", "degrees.csv", *before, "-o", "wrong.csv")
    assert "the angles seem to be in degrees: " in result.stderr
    option = option_of(next(line for line in said(result) if "to be in degrees" in line))
    assert option == expected
    again = ok("inverse", "degrees.csv", "--columns", option, "-o", "right.csv")
    assert "degrees?" not in again.stderr
    np.testing.assert_allclose(table("right.csv", "q"), q * np.pi / 180, rtol=1e-14)
    np.testing.assert_allclose(table("right.csv", "a"), a * np.pi / 180, rtol=1e-14)


def test_the_message_about_degrees_names_the_file_of_the_map(model):
    rows = np.column_stack([T * 1e3, 200 * np.sin(np.outer(T, np.arange(1, 7)))])
    write_log("raw.csv", ",".join(["stamp", *JOINTS]), rows)
    columns = {"t": "stamp[ms]"} | {f"q.{name}_joint": name for name in JOINTS}
    Path("raw.columns.yaml").write_text(json.dumps({"columns": columns}))
    result = ok("inverse", "raw.csv", "-r", UR5)
    assert "convert them with the line `units: {q: deg}` in raw.columns.yaml" in result.stderr
    Path("raw.columns.yaml").write_text(Path("raw.columns.yaml").read_text()[:-1] + ', "units": {"q": "deg"}}')
    assert "degrees?" not in ok("inverse", "raw.csv", "-r", UR5, "--force").stderr


def test_the_message_about_degrees_for_a_robot_with_prismatic_joints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cart.yaml").write_text("""
links: {cart: {mass: 1}, pole: {mass: 1, com: [0, 0, 0.3], inertia: [0.01, 0.01, 0.01]}}
joints:
  x: {type: prismatic, parent: world, child: cart, axis: [1, 0, 0], limits: {lower: -9, upper: 9}}
  pole: {type: revolute, parent: cart, child: pole, axis: [0, 1, 0], limits: {lower: -1, upper: 1}}
""")
    rows = np.column_stack([T, np.sin(T), 50 * np.sin(T)])
    write_log("raw.csv", "s,x,p q", rows)
    result = ok("inverse", "raw.csv", "-r", "cart.yaml", "--columns", 't=s,q.x=x,q.pole="p q"')
    option = option_of(next(line for line in said(result) if "to be in degrees" in line))
    assert option == 't=s,q.x=x,q.pole="p q"[deg]'
    ok("inverse", "raw.csv", "-r", "cart.yaml", "--columns", option, "--force")
    np.testing.assert_allclose(read_trajectory("raw_inverse.csv").columns["q.pole"], np.radians(rows[:, 2]), rtol=1e-15)
    Path("own.csv").write_text(Path("raw.csv").read_text().replace("s,x,p q", "t,q.x,q.pole"))
    option = option_of(next(line for line in said(ok("inverse", "own.csv", "-r", "cart.yaml")) if "to be in degrees" in line))
    assert option == "q.pole=q.pole[deg]"


def test_an_error_about_units_prints_an_option_that_works(model):
    text = Path("own.csv").read_text()
    Path("own.csv").write_text(text.replace("[rad]", "[deg]").replace("[rad/s]", "[deg/s]").replace("t[s]", "t[ms]"))
    for _ in range(3):
        result = run("inverse", "own.csv", "-o", "out.csv")
        if "time is not in seconds" in result.stderr:
            Path("own.csv").write_text(Path("own.csv").read_text().replace("t[ms]", "t[s]"))
            continue
        assert "expected rad, got 'deg' (convert them with --columns (or columns=) 'q.*=q.*,v.*=v.*')" in result.stderr
    ok("inverse", "own.csv", "-o", "out.csv", "--columns", "q.*=q.*,v.*=v.*")
    assert read_trajectory("out.csv").units["v.elbow_joint"] == "rad/s"


# --- the example of the repository -----------------------------------------------------------------------------------

def test_the_example_finds_its_map_and_its_robot(tmp_path):
    result = ok("inverse", ROOT / "configs/logs/ur5_log.csv", "-o", tmp_path / "torques.csv")
    assert "ur5_log.columns.yaml; others are ignored: mode, tcp_force [columns-mapped]" in said(result)[0]
    log, found = ld.read_trajectory(ROOT / "configs/logs/ur5_log.csv"), read_trajectory(tmp_path / "torques.csv")
    for name in found.columns:
        if name.startswith("tau."):                            # the currents of the log are in whole mA: 7 mN m at most
            assert np.abs(found.columns[name] - log.columns[name]).max() < 0.02 + 0.01 * np.abs(log.columns[name]).max()


@pytest.mark.parametrize("command", ["inverse", "forward", "hybrid", "kinematics", "derivatives", "parameters", "plot", "replay"])
def test_help(command):
    assert "--columns" in ok(command, "--help").stdout


def test_template_and_schema():
    assert "columns:" in ok("template", "columns").stdout
    assert json.loads(ok("schema", "columns").stdout)["title"] == "liedyn column map"


@pytest.mark.parametrize("titles, columns", [
    ("t,q.shoulder (deg),q.elbow (deg)", "q.*=q.*"), ("t,q.shoulder_deg,q.elbow_deg", "q.*=q.*_deg"),
    ("t,shoulder (deg),elbow (deg)", "q.*=*"), ("t,pos_shoulder_deg,pos_elbow_deg", "q.*=pos_*_deg")])
def test_titles_with_units_have_a_hint_that_reads_them(tmp_path, titles, columns):
    rows = "".join(f"{0.01 * k},{0.3 * k},{20 - 0.2 * k}\n" for k in range(30))
    (tmp_path / "log.csv").write_text(f"{titles}\n{rows}")
    robot = ROOT / "robots/double_pendulum.yaml"
    failed = run("inverse", tmp_path / "log.csv", "--robot", robot, "-o", tmp_path / "out.csv")
    assert failed.exit_code == 3 and f"'{columns}' reads columns named as joints" in failed.stderr
    ok("inverse", tmp_path / "log.csv", "--robot", robot, "--columns", columns, "-o", tmp_path / "out.csv")
    assert ld.read_trajectory(tmp_path / "out.csv").columns["q.elbow"][0] == pytest.approx(np.radians(20.0))
