"""The page of a robot with sliders: the scripts move it as the library does, and loops stay closed."""
import json
import shutil
import subprocess
import webbrowser
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.dynamics.constraints.rank import equation_weights
from liedyn.report.replay.page import data_of
from liedyn.report.replay.scene import bodies_of
from liedyn.report.replay.video import browser, chromium

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "src/liedyn/report/replay"
LOOPS = {"gripper.urdf": ROOT / "robots/gripper.loops.yaml"}


@pytest.fixture(autouse=True)
def opened(monkeypatch):
    """Return the addresses that would be opened: no test starts a browser."""
    addresses = []
    monkeypatch.setattr(webbrowser, "open", lambda address: addresses.append(address) or True)
    return addresses


def model_and_page(tmp_path, name, *options):
    """Return the model of a robot file, and the data of its page as `liedyn view` writes it."""
    path = tmp_path / "page.html"
    loops = ("--loops", LOOPS[name]) if name in LOOPS else ()
    ok("view", ROOT / "robots" / name, "--no-open", "-o", path, "--force", *loops, *options)
    base = {"base": "floating"} if "--floating" in options else {}
    model = ld.load(ROOT / "robots" / name, **base, **({"loops": LOOPS[name]} if loops else {}))
    return model, data_of(path.read_text(encoding="utf-8"))


def in_scripts(mechanism, script):
    """What a script returns that gets the mechanism of a page as m: from Node.js, or from a browser."""
    code = "\n".join((SCRIPTS / name).read_text(encoding="utf-8") for name in ("vectors.js", "mechanism.js"))
    body = f"(() => {{ {code}\nconst m = new Mechanism({json.dumps(mechanism)});\n{script} }})()"
    if shutil.which("node"):
        answer = subprocess.run(["node", "-"], input=f"console.log(JSON.stringify({body}))", capture_output=True, text=True,
                                check=True)
        return json.loads(answer.stdout)
    if chromium() is None:
        pytest.skip("neither Node.js nor Chromium is on the path")
    with browser(chromium()) as page:
        page.open("about:blank", 200, 200)
        return page.ask(body)


@pytest.mark.parametrize("name, options", [
    ("showcase.yaml", ()), ("panda.yaml", ()), ("hand.yaml", ()), ("cam_valve.yaml", ()), ("quadruped.yaml", ("--floating",)),
    ("closures.yaml", ()), ("stewart.yaml", ()), ("rolling_disc.yaml", ()), ("bricard.yaml", ()), ("delta.yaml", ())])
def test_scripts_place_links_and_measure_loops_as_the_library(tmp_path, name, options):
    """Poses of all bodies, followers of mimic joints and couplings, residuals of loops: to rounding, at random configurations."""
    model, data = model_and_page(tmp_path, name, *options)
    rng = np.random.default_rng(7)
    q = np.array([ld.random_configuration(model, rng) for _ in range(4)])
    answers = in_scripts(data["runs"][0]["mechanism"], f"""return {json.dumps(q.tolist())}.map((q) => {{
        m.follow(q);
        return [m.framesOf(m.poses(q)), m.residual(q), q];
    }});""")
    followed = np.array([each for _, _, each in answers])
    if model.has_only_couplings:
        assert np.abs(followed - q).max() < 1e-13 * max(1.0, np.abs(q).max())         # random ones satisfy their couplings
    poses = np.array([frames for frames, _, _ in answers]).reshape(len(q), -1, 4, 4).swapaxes(-1, -2)
    first, _ = bodies_of(model)
    wanted = ld.link_poses(model, followed)[:, first]
    assert np.abs(poses - wanted).max() < 1e-12 * max(1.0, np.abs(wanted).max())
    if model.constraints:
        of_loops = np.concatenate([np.full(one.rows.stop - one.rows.start, one.type != "coupling") for one in model.constraints])
        residual = (ld.constraint_residual(model, followed) * equation_weights(model))[:, of_loops]
        assert np.abs(np.array([r for _, r, _ in answers]) - residual).max(initial=0.0) < 1e-12


@pytest.mark.parametrize("name, part, change", [("four_bar.yaml", "crank", 2.0), ("four_bar.yaml", "knee", 0.3),
                                                ("five_bar.yaml", "left", -1.0), ("delta.yaml", "motor_1", 0.3),
                                                ("gripper.urdf", "left_crank", 0.3), ("closures.yaml", "input_shaft", 0.5)])
def test_a_slider_moves_the_mechanism_with_closed_loops(tmp_path, name, part, change):
    model, data = model_and_page(tmp_path, name)
    mechanism = data["runs"][0]["mechanism"]
    place = next(one["q"] for one in mechanism["parts"] if one["name"] == part)
    target = mechanism["q"][place] + change
    arrived, q = in_scripts(mechanism, f"""
        const part = m.parts.find((one) => one.name === {json.dumps(part)});
        return [m.move(part, [{target}]), m.q];""")
    assert arrived and q[place] == pytest.approx(target, abs=1e-12)
    assert np.abs(ld.constraint_residual(model, q) * equation_weights(model)).max() < 1e-8
    assert (np.array(q)[[one["q"] for one in mechanism["parts"] if one["kind"] == 0]] >= [
        -np.inf if one["lower"] is None else one["lower"] - 1e-12 for one in mechanism["parts"] if one["kind"] == 0]).all()


def test_a_slider_stops_where_loops_end(tmp_path):
    """The rocker of a four-bar linkage stops at its dead point; a platform moves up by 0.1 m, and not beyond its limits."""
    model, data = model_and_page(tmp_path, "four_bar.yaml", "--q", "rocker=1.6")
    mechanism = data["runs"][0]["mechanism"]
    script = "const part = m.parts.find(({ name }) => name === '%s'); return [m.move(part, %s), m.q];"
    arrived, q = in_scripts(mechanism, script % ("rocker", [0.6]))
    assert not arrived and np.abs(ld.constraint_residual(model, q)).max() < 1e-8
    assert ld.assemble(model, [*q[:2], q[2] + 1e-3], fixed=["rocker"]).residual < 1e-11
    with pytest.raises(ld.ComputationError):                                          # a hundredth of a stride further is no loop
        ld.assemble(model, [*q[:2], q[2] - 0.02], fixed=["rocker"])
    model, data = model_and_page(tmp_path, "stewart.yaml")
    mechanism = data["runs"][0]["mechanism"]
    up = [*mechanism["q"][:2], mechanism["q"][2] + 0.1, *mechanism["q"][3:7]]
    arrived, q = in_scripts(mechanism, script % ("platform", up))
    assert arrived and np.allclose(q[:7], up, atol=1e-9) and np.abs(ld.constraint_residual(model, q)).max() < 1e-8


def test_other_motors_stay_where_they_are(tmp_path):
    _, data = model_and_page(tmp_path, "delta.yaml")
    mechanism = data["runs"][0]["mechanism"]
    motors = [one["q"] for one in mechanism["parts"] if one["name"].startswith("motor")]
    q = in_scripts(mechanism, f"m.move(m.parts.find(({{ name }}) => name === 'motor_1'), [{mechanism['q'][motors[0]]} + 0.2]);"
                              "return m.q;")
    assert np.array(q)[motors] - np.array(mechanism["q"])[motors] == pytest.approx([0.2, 0, 0], abs=1e-9)


def test_parts_have_limits_and_followers_name_their_drivers(tmp_path):
    _, data = model_and_page(tmp_path, "hand.yaml")
    parts = {one["name"]: one for one in data["runs"][0]["mechanism"]["parts"]}
    model = ld.load(ROOT / "robots/hand.yaml")
    for name, one in parts.items():
        limits = [None if not np.isfinite(x) else x for x in (model.lower[one["v"]], model.upper[one["v"]])]
        assert [one["lower"], one["upper"]] == limits and bool(one["follows"]) == (name not in model.independent)
    assert set(", ".join(one["follows"] for one in parts.values() if one["follows"]).split(", ")) <= parts.keys()


def test_the_page_opens_within_limits_and_at_a_configuration(tmp_path):
    model, data = model_and_page(tmp_path, "panda.yaml")
    q = np.array(data["runs"][0]["mechanism"]["q"])
    assert (q >= model.lower).all() and (q <= model.upper).all() and q[3] != 0.0      # zero is not within the limits of joint 4
    _, data = model_and_page(tmp_path, "panda.yaml", "--q", "panda_joint2=0.3", "--q", "panda_joint4=-1")
    assert data["runs"][0]["mechanism"]["q"][:4] == [0, 0.3, 0, -1]
    for crank in (1.2, 4.0):                                                          # the others adapt
        model, data = model_and_page(tmp_path, "four_bar.yaml", "--q", f"crank={crank}")
        q = data["runs"][0]["mechanism"]["q"]
        assert q[0] == crank and np.abs(ld.constraint_residual(model, q)).max() < 1e-11
    model, data = model_and_page(tmp_path, "four_bar.yaml", "--q", "rocker=1.2")      # no loop is closed there
    q = data["runs"][0]["mechanism"]["q"]
    assert abs(q[2] - 1.2) > 0.1 and np.abs(ld.constraint_residual(model, q)).max() < 1e-11


def test_messages_are_at_their_links(tmp_path):
    (tmp_path / "arm.urdf").write_text("""<robot name="arm"><link name="base"/><link name="fore"><inertial><mass value="1"/>
<inertia ixx="0.001" iyy="0.001" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="fore"/><axis xyz="0 1 0"/></joint></robot>""")
    ok("view", tmp_path / "arm.urdf", "--no-open", "-o", tmp_path / "arm.html")
    scene = data_of((tmp_path / "arm.html").read_text(encoding="utf-8"))["runs"][0]
    assert {(one["code"], one["link"]) for one in scene["mechanism"]["messages"]} >= {("triangle-inequality", "fore")}
    fore = next(one for one in scene["scene"]["links"] if one["name"] == "fore")
    assert fore["mass"] == 1.0 and fore["inertia"] == pytest.approx([0.001, 0.001, 1.0])
    collision, = scene["scene"]["collision"]
    assert (collision["link"], collision["kind"], collision["sizes"]) == ("fore", "sphere", [0.1, 0.1, 0.1])


def test_pages_without_a_name_are_one_file_per_robot(tmp_path, monkeypatch):
    """The folder belongs to the user. A folder that another user could have created is not used."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = ld.load(ROOT / "robots/double_pendulum.yaml")
    path = ld.view(model, open_browser=False)
    assert path == ld.view(model, open_browser=False) and [*path.parent.iterdir()] == [path]
    path.parent.rename(tmp_path / "foreign")
    path.parent.symlink_to(tmp_path / "foreign")
    other = ld.view(model, open_browser=False)
    assert other.parent != path.parent and other.name == path.name


def test_the_browser_opens_what_was_written(tmp_path, opened, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    robot = ROOT / "robots/double_pendulum.yaml"
    assert ok("view", robot, "-o", tmp_path / "one.html").stderr.splitlines() == [f"wrote {tmp_path / 'one.html'}"]
    assert opened == [(tmp_path / "one.html").as_uri()]
    report = json.loads(ok("view", robot, "--no-open", "--json").stdout)
    assert len(opened) == 1 and Path(report["file"]).name == "double_pendulum.html"
    model = ld.load(robot)
    path = ld.view(model, {"elbow": 0.5}, output=tmp_path / "two.html")
    assert opened[1:] == [path.as_uri()]
    assert data_of(path.read_text(encoding="utf-8"))["runs"][0]["mechanism"]["q"] == [0, 0.5]
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    with pytest.warns(ld.LiedynWarning, match="no browser was found; open .*two.html"):
        ld.view(model, [0.1, 0.2], output=path, force=True)


def test_open_loops_are_drawn_with_a_warning(tmp_path):
    far = np.eye(4)
    far[0, 3] = 9.0
    apart = ld.load(ROOT / "robots/four_bar.yaml").with_changes(origin={"rocker": far})
    with pytest.warns(ld.LiedynWarning, match="drawn with open loops: .*cannot be closed"):
        ld.view(apart, output=tmp_path / "open.html", open_browser=False)


def test_values_that_the_robot_cannot_have_are_reported(tmp_path):
    """Values beyond limits, and those that loops or couplings change."""
    def said(name, *q):
        return ok("view", ROOT / "robots" / name, "--no-open", "-o", tmp_path / "page.html", "--force",
                  *(part for value in q for part in ("--q", value))).stderr
    assert "panda_joint2 is drawn at 3 rad, above its limit" in said("panda.yaml", "panda_joint2=3")
    assert "[beyond-limits]" not in said("panda.yaml", "panda_joint2=1")
    assert "the loops or couplings; the robot is drawn with changes of rocker by" in said("four_bar.yaml", "rocker=1.2")
    assert "view-moved" not in said("four_bar.yaml", "crank=1.2")
    model = ld.load(ROOT / "robots/hand.yaml")
    follower = next(name for name in model.joint_names if name not in model.independent)
    assert f"changes of {follower} by -0.3 rad" in said("hand.yaml", f"{follower}=0.3")
    with pytest.warns(ld.LiedynWarning, match="changes of .* by"):
        ld.view(model, [0.3 if name == follower else 0.0 for name in model.joint_names], output=tmp_path / "two.html",
                open_browser=False)


@pytest.mark.parametrize("options, words", [
    (("--q", "elbwo=1"), "no moving joint 'elbwo'"), (("--q", "elbow=x"), "is not a finite number"),
    (("--floating", "--base", "fixed"), "contradict"), (("-o", "nowhere/x.html"), "does not exist"),
    (("--meshes",), "has no meshes")])
def test_wrong_options_are_one_line(tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    said = run("view", ROOT / "robots/double_pendulum.yaml", "--no-open", *options)
    assert said.exit_code == 2 and words in said.stderr and len(said.stderr.splitlines()) == 1, said.stderr


def test_wrong_values_come_before_an_existing_page(tmp_path):
    (tmp_path / "page.html").touch()
    said = run("view", ROOT / "robots/double_pendulum.yaml", "--no-open", "-o", tmp_path / "page.html", "--q", "elbwo=1")
    assert said.exit_code == 2 and "no moving joint 'elbwo'" in said.stderr


def test_wrong_configurations_raise(tmp_path):
    model = ld.load(ROOT / "robots/double_pendulum.yaml")
    for q, error in (([0.0], ld.ShapeError), ({"elbow": [1, 2]}, ld.ShapeError), ({"elbwo": 1}, ld.NameLookupError)):
        with pytest.raises(error):
            ld.view(model, q, output=tmp_path / "no.html", open_browser=False)
    assert not (tmp_path / "no.html").exists()
