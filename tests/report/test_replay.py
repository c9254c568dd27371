"""The page of a motion: what is packed in it is the motion, it is small, and it fetches nothing."""
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.io.robots.visual_shapes import link_shapes
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.report.replay.meshes import packed, unpacked
from liedyn.report.replay.page import RATE, SCRIPTS, data_of, frames_of
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header

ROOT = Path(__file__).parents[2]
ROBOT = """
links:
  cart: {mass: 1, shape: {box: [0.4, 0.2, 0.1]}}
  bar: {mass: 1, com: [0, 0, -1], inertia: [1, 1, 1]}
  tip</script><b>: {}
joints:
  rail: {type: prismatic, parent: world, child: cart, axis: [1, 0, 0]}
  hinge: {type: continuous, parent: cart, child: bar, axis: [0, 1, 0], origin: {xyz: [0, 0, -0.1]}}
  end: {type: fixed, parent: bar, child: tip</script><b>, origin: {xyz: [0, 0, -2]}}
"""


def motion_of(model, seconds, rate, seed=0):
    """Return (t, q) of a smooth motion of every coordinate; quaternions of ball and free joints rotate."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate) + 1) / rate
    v = rng.standard_normal(model.nv) * np.where(np.array(model.v_units) == "m", 0.2, 1.0)
    swing = np.sin(np.outer(t, 1 + rng.random(model.nv)) * 3)
    return t, ld.integrate(model, ld.random_configuration(model, rng), swing * v)


def write_run(folder, robot, seconds, rate=250, extra=()):
    model = ld.load(robot)
    t, q = motion_of(model, seconds, rate)
    v = np.gradient(q[:, :1], axis=0) + np.zeros((1, model.nv))
    folder.mkdir(parents=True)
    write_trajectory(folder / "trajectory.csv", trajectory_header(model, folder=folder), t,
                     [*motion_columns(model, q=q, v=v, tau=np.cos(v)), *((name, unit, x(t)) for name, unit, x in extra)])
    return model, t, q


def poses_in(page):
    """Return (t, {link: (F, 3, 3) rotations and (F, 3) positions}) of a page."""
    data, = data_of(page)["runs"]
    t, p = unpacked(data["t"])[:, 0], unpacked(data["positions"]).reshape(data["t"]["rows"], -1, 3)
    x, y, z, w = np.moveaxis(unpacked(data["turns"]).reshape(*p.shape[:2], 4), -1, 0)
    R = np.moveaxis(np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                              [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                              [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]), (0, 1), (-2, -1))
    links = {}
    for link in data["scene"]["links"]:
        own, at = np.reshape(link["at"][:9], (3, 3)), np.array(link["at"][9:])
        b = link["body"]
        links[link["name"]] = (R[:, b] @ own, R[:, b] @ at + p[:, b]) if b >= 0 else (own, at + np.zeros((len(t), 3)))
    return t, links


def test_packed_numbers_come_back_to_half_a_step():
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.standard_normal(50).cumsum(), 1e3 * rng.standard_normal(50), np.full(50, -7.0),
                         1e12 * rng.random(50)])
    pack = packed(x, [1e-5, 1e-2, 1e-5, 1.0])
    assert (np.abs(unpacked(pack) - x) <= 0.5001 * np.array(pack["steps"]) + 1e-15).all()
    assert pack["steps"][:3] == [1e-5, 1e-2, 1e-5] and pack["steps"][3] > 500        # 32 bits do not hold finer ones
    assert unpacked(packed(np.zeros((3, 0)), 1.0)).shape == (3, 0)


def test_frames_hold_events_and_no_more_than_sixty_a_second():
    t = np.sort(np.append(np.arange(0, 2.0005, 0.001), [0.5, 1.25]))                 # events at rows: twice the time
    keep = frames_of(t)
    kept = t[keep]
    assert kept[0] == 0 and kept[-1] == t[-1] and np.diff(keep).min() > 0
    assert (kept == 0.5).sum() == (kept == 1.25).sum() == 2
    assert len(keep) <= 2 * RATE + 6 and np.diff(kept).max() < 2 / RATE
    assert frames_of(np.array([3.0])).tolist() == [0] and frames_of(np.array([0.0, 1.0, 9.0])).tolist() == [0, 1, 2]


@pytest.mark.parametrize("robot, seconds, largest", [("panda", 5.0, 400_000), ("humanoid", 30.0, 1_500_000),
                                                     ("showcase", 1.0, 400_000)])
def test_the_page_holds_the_motion_and_is_small(tmp_path, robot, seconds, largest):
    """Positions to 1e-4 m at all frames; showcase has joints of every kind. Sizes are those of the data: without the viewer."""
    model, t, q = write_run(tmp_path / "run", ROOT / f"robots/{robot}.yaml", seconds, 125)
    report = json.loads(ok("replay", tmp_path / "run", "--json").stdout)
    page = (tmp_path / "run" / "replay.html").read_text(encoding="utf-8")
    shown, links = poses_in(page)
    rows = np.array([np.abs(t - s).argmin() for s in shown])
    assert np.abs(t[rows] - shown).max() < 1e-6 and len(shown) == report["frames"] <= RATE * seconds + 1
    T = ld.link_poses(model, q[rows])
    for k, link in enumerate(model.link_names):
        assert np.abs(links[link][1] - T[:, k, :3, 3]).max() < 1e-4, link
        assert np.abs(links[link][0] - T[:, k, :3, :3]).max() < 1e-4, link
    assert len(json.dumps(data_of(page))) < largest
    data = data_of(page)["runs"][0]
    names = [name for plot in data["plots"] if plot["title"] == "positions" for name, _ in plot["curves"]]      # by unit
    curves = unpacked(data["curves"])[:, [names.index(name) for name in model.q_names]]
    assert np.abs(curves - q[rows]).max() < 1e-4 * np.ptp(q, axis=0).max()


@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_small_robots_move_on_the_page(tmp_path, size):
    """Positions are accurate to 1e-4 of the robot's length."""
    path = tmp_path / "arm.yaml"
    path.write_text(f"links: {{a: {{mass: 1, com: [0, 0, {-size}]}}, b: {{mass: 1, com: [0, 0, {-size}]}}}}\n"
                    "joints:\n  p: {type: continuous, parent: world, child: a, axis: [0, 1, 0]}\n"
                    f"  r: {{type: continuous, parent: a, child: b, axis: [0, 1, 0], origin: {{xyz: [0, 0, {-size}]}}}}\n")
    model, t, q = write_run(tmp_path / "run", path, 1.0, 125)
    ok("replay", tmp_path / "run")
    shown, links = poses_in((tmp_path / "run" / "replay.html").read_text(encoding="utf-8"))
    rows = np.array([np.abs(t - s).argmin() for s in shown])
    assert np.abs(links["b"][1] - ld.link_poses(model, q[rows])[:, 1, :3, 3]).max() < 1e-4 * size


def test_the_page_fetches_nothing_and_takes_any_name(tmp_path):
    (tmp_path / "cart.yaml").write_text(ROBOT)
    write_run(tmp_path / "run", tmp_path / "cart.yaml", 0.2)
    ok("replay", tmp_path / "run", "--trace", "tip</script><b>", "--follow", "bar")
    page = (tmp_path / "run" / "replay.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]+\.[a-z]|@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|import\(", page)
    assert page.count("</script>") == 2 and "<b>" not in page
    data = data_of(page)
    assert data["traces"] == ["tip</script><b>"] and data["follow"] == "bar"
    scene = data["runs"][0]["scene"]
    box, slide, axis = scene["solids"]
    assert (box["link"], box["kind"], box["sizes"]) == ("cart", "box", [0.4, 0.2, 0.1])
    assert [(one["link"], one["kind"]) for one in (slide, axis)] == [("cart", "box"), ("bar", "drum")]


def test_forces_are_drawn_where_they_act(tmp_path):
    """A force f at a point r of a link, written as a wrench about its origin, is an arrow on the line through r along f."""
    (tmp_path / "cart.yaml").write_text(ROBOT)
    r, f = np.array([0.1, 0.2, -0.8]), np.array([1.0, -2.0, 3.0])
    parts = zip(("mx", "my", "mz", "fx", "fy", "fz"), (*np.cross(r, f), *f), strict=True)
    extra = [(f"fext.bar.{part}", "", lambda t, x=x: x + 0 * t) for part, x in parts]
    model, _, q = write_run(tmp_path / "run", tmp_path / "cart.yaml", 0.2, 50, extra)
    ok("replay", tmp_path / "run")
    data, = data_of((tmp_path / "run" / "replay.html").read_text(encoding="utf-8"))["runs"]
    assert [(one["link"], one["kind"]) for one in data["arrows"]["of"]] == [("bar", "force")]        # and no moment is left over
    foot, vector = np.split(unpacked(data["arrows"]), 2, axis=1)
    T = ld.link_poses(model, q)[:, model.link_index("bar")]
    assert np.abs(vector - T[:, :3, :3] @ f).max() < 1e-3
    away = T[:, :3, :3] @ r + T[:, :3, 3] - foot
    assert np.abs(np.cross(away, vector)).max() < 2e-3 * np.linalg.norm(f)


def test_motors_and_joint_wrenches_have_plots(tmp_path):
    (tmp_path / "cart.yaml").write_text(ROBOT)
    extra = [("motor.hinge.torque", "N m", np.cos), ("motor.hinge.speed", "rad/s", np.sin), ("wrench.hinge.mx", "N m", np.exp)]
    _, t, _ = write_run(tmp_path / "run", tmp_path / "cart.yaml", 0.2, 50, extra)
    ok("replay", tmp_path / "run")
    data, = data_of((tmp_path / "run" / "replay.html").read_text(encoding="utf-8"))["runs"]
    curves, place = unpacked(data["curves"]), 0
    found = {}
    for plot in data["plots"]:
        found[plot["title"]] = plot["curves"], curves[:, place:place + len(plot["curves"])]
        place += len(plot["curves"])
    for title, name, unit, x in (("motor torques", "hinge.torque", "N m", np.cos),
                                 ("motor speeds", "hinge.speed", "rad/s", np.sin),
                                 ("wrenches of joints", "hinge.mx", "N m", np.exp)):
        names, values = found[title]
        assert names == [[name, unit]]
        assert np.abs(values[:, 0] - x(t)).max() < 1e-4                     # a curve has 10,000 levels


def test_events_and_phases_become_marks(tmp_path):
    (tmp_path / "cart.yaml").write_text(ROBOT)
    write_run(tmp_path / "run", tmp_path / "cart.yaml", 0.2)
    (tmp_path / "run" / "events.csv").write_text("t[s],event,phase,energy_lost[J]\n0.125,\"lift, off\",flight,0.0\n")
    told = {"status": "diverged", "reason": "too fast", "scenario": {"phases": {"stance": {}, "flight": {}}}}
    (tmp_path / "run" / "run.json").write_text(json.dumps(told))
    ok("replay", tmp_path / "run")
    data, = data_of((tmp_path / "run" / "replay.html").read_text(encoding="utf-8"))["runs"]
    assert data["marks"] == [[0.125, "lift, off", "flight"]] and data["phase"] == "stance"
    assert (data["name"], data["robot"], data["status"], data["reason"]) == ("run", "cart", "diverged", "too fast")
    (tmp_path / "run" / "events.csv").write_text("t[s],event,phase\nsoon,lift,\n")
    result = run("replay", tmp_path / "run", "--force")
    assert result.exit_code == 3 and "events.csv:2" in result.stderr


def test_outputs_ghosts_and_refusals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cart.yaml").write_text(ROBOT)
    write_run(Path("run"), "cart.yaml", 0.2)
    write_run(Path("other"), "cart.yaml", 0.4)
    assert ok("replay", "run").stderr.startswith("wrote run/replay.html: 13 frames, ")
    assert "run/replay.html already exists; --force or force=True overwrites it" in run("replay", "run").stderr
    ok("replay", "run", "--against", "other", "-o", "both.html")
    assert [one["name"] for one in data_of(Path("both.html").read_text())["runs"]] == ["run", "other"]
    shutil.copy("run/trajectory.csv", "motion.csv")
    assert run("replay", "motion.csv").exit_code == 3                                 # its comment names ../cart.yaml
    assert "wrote motion_replay.html" in ok("replay", "motion.csv", "--robot", "cart.yaml").stderr
    assert ok("replay", "run", "-o", "-").stdout.startswith("<!DOCTYPE html>")
    for args, words in ((("run", "--trace", "bat"), "no link 'bat'; did you mean 'bar'?"), ((".",), "is not a run folder"),
                        (("run", "--follow", "x", "-o", "y.html"), "no link 'x'"), (("run", "-o", "-", "--json"), "--json")):
        result = run("replay", *args, "--force")
        assert result.exit_code in (2, 3) and words in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr
    assert not Path("y.html").exists()


def test_shapes_of_robot_files(tmp_path):
    (tmp_path / "a.urdf").write_text("""<robot name="a">
<link name="one"><visual><origin xyz="0 0 1" rpy="0 0 0"/><geometry><cylinder radius="0.1" length="2"/></geometry>
<material name="grass"/></visual>
<collision><geometry><box size="1 2 3"/></geometry></collision></link>
<link name="two"><visual><geometry><mesh filename="x.stl"/></geometry>
<material name="grass"><color rgba="0 0.5 1.5 1"/></material></visual>
<collision><geometry><box size="1 2 3"/></geometry></collision></link>
<link name="three"><visual><geometry><sphere radius="none"/></geometry></visual></link></robot>""")
    shapes = link_shapes(ld.load_description(tmp_path / "a.urdf"))
    found = {link: [(one.kind, one.sizes, one.pose.translation, one.colour) for one in group] for link, group in shapes.items()}
    assert found == {"one": [("cylinder", (0.1, 2.0), (0.0, 0.0, 1.0), (0.0, 0.5, 1.0))],
                     "two": [("box", (1.0, 2.0, 3.0), (0.0, 0.0, 0.0), None)]}
    assert link_shapes(ld.load_description(ROOT / "robots/ur5.yaml"))


def test_scripts_are_in_the_package():
    folder = ROOT / "src/liedyn/report/replay"
    assert sorted(SCRIPTS) == sorted(path.name for path in folder.glob("*.js"))


def test_all_that_is_drawn_is_in_sight(tmp_path):
    """The box that the camera looks at is around shapes and sticks in all poses; its diagonal at first is the robot's size."""
    (tmp_path / "cart.yaml").write_text(ROBOT)
    _, _, q = write_run(tmp_path / "run", tmp_path / "cart.yaml", 1.0, 50)
    ok("replay", tmp_path / "run")
    scene = data_of((tmp_path / "run" / "replay.html").read_text(encoding="utf-8"))["runs"][0]["scene"]
    x, angle = q.T
    bar = [np.stack([x - r * np.sin(angle), 0 * x, -0.1 - r * np.cos(angle)], axis=1) for r in (0, 2)]            # its ends
    box = [np.stack([x + side * 0.2, 0 * x + side * 0.1, 0 * x + side * 0.05], axis=1) for side in (-1, 1)]
    cloud = np.array([*bar, *box])
    assert np.allclose(scene["bounds"], [cloud.min(axis=(0, 1)), cloud.max(axis=(0, 1))], atol=1e-6)
    assert scene["size"] == pytest.approx(np.linalg.norm(np.ptp(cloud[:, 0], axis=0)), abs=1e-6)
