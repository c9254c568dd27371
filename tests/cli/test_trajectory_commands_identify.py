"""The command `liedyn identify`, end to end on small robots: tables, folder, formats, tests on other recordings, and errors."""
import json
import re
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import TWO_BARS, ok, run

ROBOTS = Path(__file__).parents[2] / "robots"


def record(name, model, seed, **changes):
    """Write a recording of the robot: two sines of each joint, and noise of 0.01 N m."""
    true, rng, t = model.with_changes(**changes), np.random.default_rng(seed), np.linspace(0.0, 3.0, 301)
    w, size, phase = rng.uniform(1.0, 6.0, (2, 2)), rng.uniform(0.3, 0.6, (2, 2)), rng.uniform(0.0, 6.0, (2, 2))
    angles = w * t[:, None, None] + phase
    q, v, a = (np.sum(x, axis=1) for x in (size * np.sin(angles), size * w * np.cos(angles), -size * w * w * np.sin(angles)))
    tau = ld.inverse_dynamics(true, q, v, a) + 0.01 * rng.standard_normal(q.shape)
    ld.trajectory_of(model, t, q, v, a, tau=tau).save(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three recordings of a robot whose lower link is heavier than in its file, with gravity of Mars."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bars.yaml").write_text(TWO_BARS)
    model = ld.load("bars.yaml").with_changes(gravity=[0, 0, -3.7])
    for seed, name in enumerate(("first.csv", "second.csv", "third.csv")):
        record(name, model, seed, mass={"lower": 3.0}, inertia={"lower": [0.05, 0.04, 0.02]}, damping={"hip": 0.4})
    return tmp_path


def test_a_robot_from_two_recordings_and_a_test_on_a_third(folder):
    result = ok("identify", "bars.yaml", "first.csv", "second.csv", "--validate", "third.csv", "-o", "out")
    assert result.stdout.count("bars: 10 base parameters of 24, fixed base") == 2 and "first.csv:\n" in result.stdout
    table, _, test = result.stdout.partition("consistent parameters: ")[2].partition("test on third.csv, ")
    rows = {line.split()[0]: line.split() for line in table.splitlines()[2:] if line}
    assert rows["damping.hip"][1] == "0.1" and float(rows["damping.hip"][2]) == pytest.approx(0.4, abs=0.02)
    assert "hx.upper" not in table and "--verbose also prints first and second moments of mass" in table
    assert test.splitlines()[1].split() == ["joint", "explained", "by", "robot", "file", "residual", "of", "robot", "file"]
    assert result.stdout.count("fit to ") == 2 and "fit to second.csv, 301 rows" in result.stdout
    assert all(name in result.stderr for name in ("wrote out/identified.yaml", "out/parameters.json", "out/report.html"))
    page = Path("out/report.html").read_text()
    assert page.count("<svg") == page.count("</svg>") == 3 and "Forces of third.csv, not used for the fit" in page
    assert "mass.lower" in page and "mass.lower" in page.partition("<pre>")[2] and "hx.lower" in page
    assert not re.search(r"(src|href)=.http|<script|<!DOCTYPE svg", page)      # one file, for use without a network
    report = json.loads(Path("out/parameters.json").read_text())
    assert report["recordings"] == ["first.csv", "second.csv"] and len(report["fits"]) == 2
    assert [one["used"] for one in report["validations"]] == [False, True, True]
    test = report["validations"][0]
    assert test["rows"] == 301 and all(x > 0.99 for x in test["explained"].values())
    assert all(test["explained"][name] > test["explained_by_file"][name] for name in ("hip", "knee"))
    assert all(x == pytest.approx(0.01, rel=0.3) for x in test["residual"].values())
    deviations = [one["deviation"] for one in report["parameters"]]
    np.testing.assert_allclose(np.sqrt(np.diag(report["covariance"])), deviations, rtol=1e-12)
    robot = ld.load("out/identified.yaml")
    assert robot.gravity[2] == -9.81                                 # of the robot file
    hip = robot.description.joints[0].coordinate_parameters[0]
    assert hip.damping == next(one["value"] for one in report["parameters"] if one["name"] == "damping.hip")
    expected = dict(zip(ld.base_parameters(robot).names, ld.base_parameters(robot).values, strict=True))
    true = ld.base_parameters(ld.load("bars.yaml").with_changes(mass={"lower": 3.0}, inertia={"lower": [0.05, 0.04, 0.02]}))
    np.testing.assert_allclose([expected[name] for name in true.names], true.values, rtol=0, atol=0.05)


def test_a_recording_without_gravity_has_that_of_the_robot_file(folder):
    """Recordings for the fit have that of Mars, in a comment."""
    record("earth.csv", ld.load("bars.yaml"), 5, mass={"lower": 3.0}, inertia={"lower": [0.05, 0.04, 0.02]}, damping={"hip": 0.4})
    lines = Path("earth.csv").read_text().splitlines(keepends=True)
    Path("earth.csv").write_text("".join(line for line in lines if not line.startswith("#")))
    report = json.loads(ok("identify", "bars.yaml", "first.csv", "--validate", "earth.csv", "--json").stdout)
    assert all(x > 0.99 for test in report["validations"] for x in test["explained"].values())


def test_warnings_name_the_file_of_the_identified_robot(folder):
    Path("still.csv").write_text("t[s],q.hip[rad],q.knee[rad],tau.hip[N m],tau.knee[N m]\n" + "".join(
        f"{0.01 * k},{np.sin(0.05 * k)},{np.cos(0.03 * k)},{1e-9 * np.cos(k)},{1e-9 * np.sin(k * k)}\n" for k in range(200)))
    for output, name in ((["-o", "out"], "out/identified.yaml"), ([], "FOLDER/identified.*")):
        assert f"`liedyn check {name}` lists" in " ".join(ok("identify", "bars.yaml", "still.csv", *output).stderr.split())


def test_only_a_link_its_weight_and_the_mass_of_the_robot(folder):
    options = ("--only", "low*", "--prior-weight", "0.01", "--total-mass", "4.0", "--with", "none", "--no-offset", "--json")
    report = json.loads(ok("identify", "bars.yaml", "first.csv", *options).stdout)
    values = {one["name"]: one for one in report["parameters"]}
    assert values["mass.upper"]["value"] == 1.0 and values["mass.upper"]["deviation"] == 0.0
    assert values["mass.lower"]["value"] == pytest.approx(3.0) and report["prior_weight"] == 0.01
    assert "fixed" in ok("identify", "bars.yaml", "first.csv", "--only", "lower", "-v").stdout
    assert not list(folder.glob("*/parameters.json"))


def test_scales_of_torques(folder):
    arguments = ("identify", "bars.yaml", "first.csv", "--torque-scale", "hip", "--fixed", "*.lower", "-o", "out")
    rows = [line.split() for line in ok(*arguments).stdout.splitlines() if line.startswith("torque_scale.")]
    report = json.loads(Path("out/parameters.json").read_text())
    assert [row[:2] for row in rows] == 2 * [["torque_scale.hip", "1"]]
    assert report["torque_scales"]["hip"]["deviation"] < 0.1 and rows[1][2] == f"{report['torque_scales']['hip']['value']:.5g}"
    fixed = {one["name"]: one["deviation"] for one in report["parameters"]}
    assert fixed["mass.lower"] == fixed["Izz.lower"] == 0.0 and fixed["hx.upper"] > 0.0
    assert "mass.lower" not in ok("parameters", "bars.yaml", "--fixed", "*.lower", "-v").stdout


def test_stribeck_friction_and_the_likeliest_weight_of_the_prior(folder):
    """A rehearsal: a slow motion of a robot with rigid friction, and its estimate in the robot file of the result."""
    Path("true.yaml").write_text(TWO_BARS.replace(
        "damping: 0.1", "damping: 0.1, friction: {model: rigid, level: 0.5, static: 0.9, stribeck: 0.1}"))
    Path("slow.yaml").write_text(
        "robot: true.yaml\nduration: 10\noutput_step: 0.01\njoints:\n"
        "  hip: {prescribe: {position: '0.4*sin(0.9*t) + 0.15*sin(2.3*t)'}}\n"
        "  knee: {prescribe: {position: '0.5*sin(1.1*t) + 0.1*sin(2.9*t + 1)'}}\n"
        "sensors: {a: {type: encoder, rate: 100, noise: 1e-5}, b: {type: torque, rate: 100, noise: 0.02}}\n")
    ok("simulate", "slow.yaml", "-o", "run", "--no-plots")
    Path("file.yaml").write_text(TWO_BARS.replace(
        "damping: 0.1", "damping: 0.1, friction: {model: regularized, level: 0.1, speed: 0.001}"))
    result = ok("identify", "file.yaml", "run/measurements.csv", "--stribeck", "*", "--prior-weight", "auto", "-o", "out")
    report = json.loads(Path("out/parameters.json").read_text())
    rise, speed = (report[key].pop("hip") for key in ("friction_rises", "stribeck_speeds"))
    assert not report["friction_rises"] and 0.01 < report["prior_weight"] < 1e4
    assert rise["value"] == pytest.approx(0.4, abs=0.05) and speed["value"] == pytest.approx(0.1, abs=0.02)
    hip = ld.load("out/identified.yaml").description.joints[0].coordinate_parameters[0]
    assert hip.stribeck_speed == speed["value"] and hip.static_friction == pytest.approx(hip.friction + rise["value"])
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith(("friction_rise.hip", "stribeck_speed.hip"))]
    assert [row[0] for row in rows] == 2 * ["friction_rise.hip", "stribeck_speed.hip"] and rows[3][-1] == "rad/s"
    assert "Stribeck friction of knee" in " ".join(result.stderr.split())
    assert "stribeck_speed.hip" in Path("out/report.html").read_text()
    with_file = ok("identify", "true.yaml", "run/measurements.csv", "--stribeck", "hip").stdout.splitlines()
    assert [line.split()[1] for line in with_file if line.startswith(("friction_rise", "stribeck_speed"))] == 2 * ["0.4", "0.1"]


def test_weights_fixed_and_known_values_and_equal_links(folder):
    options = ("--weight", "second.csv=1e-9", "--fixed", "damping.*", "--prior", "mass.upper=1.2,0.001", "--json")
    report = json.loads(ok("identify", "bars.yaml", "first.csv", "second.csv", *options).stdout)
    values = {one["name"]: (one["value"], one["deviation"]) for one in report["parameters"]}
    single = json.loads(ok("identify", "bars.yaml", "first.csv", *options[2:]).stdout)
    assert values["damping.hip"] == (0.1, 0.0)
    assert values["mass.upper"] == (pytest.approx(1.2, abs=0.01), pytest.approx(0.001, rel=0.01))
    for one in single["parameters"]:
        assert values[one["name"]] == pytest.approx((one["value"], one["deviation"]), rel=1e-4, abs=1e-9)
    both = json.loads(ok("identify", "bars.yaml", "first.csv", "--equal", "upper=lower,x", "--json").stdout)
    values = {one["name"]: one["value"] for one in both["parameters"]}
    assert values["mass.upper"] == pytest.approx(values["mass.lower"])
    assert values["hx.upper"] == pytest.approx(-values["hx.lower"])


def test_a_urdf_keeps_its_text(folder):
    text = (ROBOTS / "double_pendulum.urdf").read_text()
    Path("arm.urdf").write_text(text)
    model = ld.load("arm.urdf")
    record("arm.csv", model, 1, mass={model.link_names[-2]: 1.7})
    ok("identify", "arm.urdf", "arm.csv", "-o", "out")
    written = Path("out/identified.urdf").read_text()
    comments = [line for line in text.splitlines() if "<!--" in line]
    assert comments and all(line in written for line in comments) and written != text
    assert len(written.splitlines()) == len(text.splitlines())
    result = ok("identify", "arm.urdf", "arm.csv", "--with", "armature", "-o", "other")
    assert "is written as robot YAML, since a URDF cannot describe" in result.stderr and Path("other/identified.yaml").is_file()


def test_zero_offsets_of_encoders(folder):
    """In all results: a number where it is determined, nothing where it is not."""
    lines = [line.split(",") for line in Path("first.csv").read_text().splitlines()]
    at = next(k for k, line in enumerate(lines) if line[0].startswith("t["))
    hip = next(k for k, name in enumerate(lines[at]) if name.startswith("q.hip"))
    for line in lines[at + 1:]:
        line[hip] = repr(float(line[hip]) + 0.05)
    Path("offset.csv").write_text("\n".join(map(",".join, lines)) + "\n")
    result = ok("identify", "bars.yaml", "offset.csv", "--zero-offset", "*", "-o", "out")
    report = json.loads(Path("out/parameters.json").read_text())
    offset = report["zero_offsets"].pop("hip")
    assert abs(offset["value"] - 0.05) < 5.0 * offset["deviation"] < 0.02 and not report["zero_offsets"]
    assert report["validations"][0]["explained"]["hip"] > 0.99
    single = {one["name"]: one for one in report["fits"][0]["fit"]["nonlinear"]}
    assert single["zero_offset.hip"]["estimate"] == pytest.approx(offset["value"]) and single["zero_offset.hip"]["unit"] == "rad"
    assert single["zero_offset.knee"]["estimate"] is None and single["zero_offset.knee"]["verdict"] == "not separable"
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("zero_offset.")]
    assert [row[0] for row in rows] == ["zero_offset.hip", "zero_offset.knee", "zero_offset.hip"]
    assert f"{offset['value']:.5g}" == rows[2][2] and rows[1][1:4] == ["0", "NOT", "SEPARABLE"]
    assert "zero_offset.hip" in Path("out/report.html").read_text()
    text = " ".join(result.stderr.split())
    assert "zero offsets of the encoders of knee" in text and "subtract the zero offsets from the readings" in text
    table = ok("parameters", "bars.yaml", "--from", "offset.csv", "--zero-offset", "hip", "-o", "-").stdout.splitlines()
    cells = dict(zip(table[0].split(","), table[-1].split(","), strict=True))
    assert cells["name"] == "zero_offset.hip" and float(cells["estimate"]) == pytest.approx(0.05, abs=0.02)
    for arguments, message in ((["--from", "first.csv", "--zero-offset", "hop"], "matches 'hop'; did you mean hip?"),
                               (["--zero-offset", "hip"], "--zero-offset requires --from"),
                               (["--torque-scale", "hip"], "--torque-scale requires --from"),
                               (["--stribeck", "hip"], "--stribeck requires --from"),
                               (["--from", "first.csv", "--stribeck", "hip"], "estimate the joint parameter friction, too"),
                               (["--from", "first.csv", "--torque-scale", "*"], "of hip, knee are not determined")):
        refused = run("parameters", "bars.yaml", *arguments)
        assert refused.exit_code == 2 and message in " ".join(refused.stderr.split())


def test_errors_come_before_the_computation(folder):
    assert not ok("identify", "bars.yaml", "first.csv", "-o", "out", "-q").stdout
    for arguments, message in ((["first.csv", "-o", "out"], "out already exists"),
                               (["first.csv", "-o", "-"], "The result is a folder"),
                               ([], "Missing argument 'RECORDINGS...'"),
                               (["first.csv", "--prior-weight", "0"], "0.0 is not in the range x>=1e-06"),
                               (["first.csv", "--prior-weight", "none"], "'none' is not a valid float"),
                               (["first.csv", "--total-mass", "0"], "0.0 is not in the range x>0"),
                               (["first.csv", "--total-mass", "0.5", "--only", "lower"], "expected more than 1 kg"),
                               (["first.csv", "--weight", "second.csv=2"], "no recording 'second.csv'"),
                               (["first.csv", "--weight", "first.csv=x"], "weight first.csv=x: expected a number > 0"),
                               (["first.csv", "--fixed", "damping.hop"], "no parameter 'damping.hop'; did you mean"),
                               (["first.csv", "--prior", "mass.lower=1"], "prior of mass.lower must be a value and its standard"),
                               (["first.csv", "--prior", "mass.lower"], "prior 'mass.lower': expected PARAMETER=VALUE,DEVIATION"),
                               (["first.csv", "--equal", "lower=upper,w"], "an axis x, y or z of its mirror image"),
                               (["first.csv", "--only", "lover"], "no moving link 'lover'; did you mean 'lower'?"),
                               (["first.csv", "--with", "none", "--with", "damping"], "--with none cannot be combined"),
                               (["first.csv", "second.csv", "./first.csv"], "./first.csv appears several times"),
                               (["first.csv", "--validate", "fourth.csv"], "fourth.csv")):
        result = run("identify", "bars.yaml", *arguments)
        assert result.exit_code in (2, 3) and message in " ".join(result.stderr.split()), (arguments, result.stderr)
    ok("identify", "bars.yaml", "first.csv", "-o", "out", "--force", "-q")
