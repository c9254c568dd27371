"""Runs as MCAP, read back: they hold the motion, what is drawn of the robot moves with it, and forces act where they act."""
import json
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header

ROBOT = """
links:
  crank: {mass: 1, shape: {box: [0.4, 0.1, 0.1]}, com: [0.5, 0, 0]}
  rod: {mass: 1, com: [1, 0, 0], inertia: [0.1, 0.1, 0.1]}
  slider: {mass: 1, shape: {capsule: {radius: 0.1, length: 0.3}}}
joints:
  turn: {type: continuous, parent: world, child: crank, axis: [0, 0, 1]}
  pin: {type: continuous, parent: crank, child: rod, axis: [0, 0, 1], origin: {xyz: [1, 0, 0]}}
  slide: {type: prismatic, parent: world, child: slider, axis: [1, 0, 0], origin: {xyz: [2.5, 0, 0]}}
"""
FORCE = (1.0, 2.0, 2.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("robot.yaml").write_text(ROBOT)
    return tmp_path


def motion(name: str, scale: float, first: float = 0.0):
    model, t = ld.load("robot.yaml"), first + np.arange(31) / 30
    q = scale * np.column_stack([2 * t, -3 * t, np.sin(t)])
    push = [(f"fext.slider.{part}", "N", x + 0 * t) for part, x in zip(("fx", "fy", "fz"), FORCE, strict=True)]
    Path(name).mkdir()
    write_trajectory(Path(name, "trajectory.csv"), trajectory_header(model, folder=Path(name)), t,
                     [*motion_columns(model, q=q, v=0 * q), *push])
    return model, t, q


def messages(path: str) -> dict[str, list[tuple[float, dict]]]:
    """Return (time [s], message) by topic; the messages agree with their schemas."""
    import jsonschema
    from mcap.reader import make_reader
    found, times = {}, []
    with open(path, "rb") as file:
        for schema, channel, message in make_reader(file).iter_messages(log_time_order=False):
            value = json.loads(message.data)
            assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
            if channel.topic not in found:                                          # the others are like it
                jsonschema.validate(value, json.loads(schema.data))
            found.setdefault(channel.topic, []).append((message.log_time / 1e9, value))
            times.append(message.log_time)
    assert times == sorted(times)
    return found


def matrix(pose: dict, position: str = "position", turn: str = "orientation") -> np.ndarray:
    x, y, z, w = (pose[turn][k] for k in "xyzw")
    T = np.eye(4)
    T[:3, :3] = [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                 [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                 [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    T[:3, 3] = [pose[position][k] for k in "xyz"]
    return T


def test_a_run_as_mcap(folder):
    model, t, q = motion("run", 1.0, first=-0.5)
    Path("run/events.csv").write_text("t[s],event,phase\n0.0,hit,flight\n")
    said = ok("replay", "run", "--mcap", "run.mcap")
    found = messages("run.mcap")
    count = sum(map(len, found.values()))
    assert said.stderr == f"wrote run.mcap: {count} messages\n" and not Path("run/replay.html").exists()
    assert set(found) == {"/tf", "/robot", "/forces", "/events", "/q", "/v", "/fext"}

    T = ld.link_poses(model, q)
    assert np.allclose([time for time, _ in found["/tf"]], t + 0.5, atol=1e-9)          # MCAP has no times below 0
    for (_, message), expected in zip(found["/tf"], T, strict=True):
        poses = {one["child_frame_id"]: matrix(one, "translation", "rotation") for one in message["transforms"]}
        assert {one["parent_frame_id"] for one in message["transforms"]} == {"world"}
        assert all(np.abs(poses[link] - expected[k]).max() < 1e-6 for k, link in enumerate(model.link_names))
    assert [message for _, message in found["/q"]] == [dict(zip(model.q_names, row, strict=True)) for row in q.tolist()]
    assert found["/events"][0][0] == 0.5 and found["/events"][0][1]["message"] == "hit, then flight"

    (_, scene), = found["/robot"]
    entities = {one["frame_id"]: one for one in scene["entities"]}
    assert all(one["frame_locked"] for one in scene["entities"]) and set(entities) == {"crank", "rod", "slider"}
    box, = entities["crank"]["cubes"]
    assert box["size"] == {"x": 0.4, "y": 0.1, "z": 0.1} and np.allclose(matrix(box["pose"])[:3, 3], [0.5, 0, 0])
    assert len(entities["slider"]["spheres"]) == 2
    assert entities["slider"]["cylinders"][0]["size"] == {"x": 0.2, "y": 0.2, "z": 0.3}

    for (_, message), pose in zip(found["/forces"], T[:, model.link_index("slider")], strict=True):
        arrow, = message["entities"][0]["arrows"]
        assert message["entities"][0]["frame_id"] == "world"
        foot = matrix(arrow["pose"])
        assert np.abs(foot[:3, 0] - pose[:3, :3] @ FORCE / 3).max() < 1e-6               # it points along x
        away = foot[:3, 3] - pose[:3, 3]
        assert np.abs(np.cross(away, foot[:3, 0])).max() < 1e-6


def test_sticks_between_moving_points_move(folder):
    """A link that slides has a stick from the other link to its position."""
    text = ROBOT.replace("shape: {capsule: {radius: 0.1, length: 0.3}}", "inertia: [0.1, 0.1, 0.1]")
    Path("robot.yaml").write_text(text.replace("parent: world, child: slider", "parent: rod, child: slider"))
    model, _, q = motion("run", 1.0)
    ok("replay", "run", "--mcap", "run.mcap")
    (_, robot), *moving = messages("run.mcap")["/robot"]
    assert "rods" not in [one["id"] for one in robot["entities"]]
    for (_, message), T in zip(moving, ld.link_poses(model, q)[..., :3, 3], strict=True):
        entity, = message["entities"]
        line, = entity["lines"]
        ends = np.array([[point[k] for k in "xyz"] for point in line["points"]])
        assert (entity["id"], entity["frame_id"], line["type"]) == ("rods", "world", 2)
        assert np.abs(ends - T[[model.link_index("rod"), model.link_index("slider")]]).max() < 1e-6


def test_runs_side_by_side_have_names(folder):
    motion("one", 1.0)
    motion("two", 2.0)
    ok("replay", "one", "--against", "two", "--mcap", "both.mcap", "-o", "both.html")
    found = messages("both.mcap")
    assert {"/one/tf", "/two/tf", "/one/robot", "/two/q"} <= set(found) and Path("both.html").is_file()
    assert found["/two/tf"][0][1]["transforms"][0]["child_frame_id"] == "two/crank"
    assert {one["frame_id"] for one in found["/two/robot"][0][1]["entities"]} == {"two/crank", "two/rod", "two/slider"}
    said = run("replay", "one", "--mcap", "both.mcap")
    assert said.exit_code == 2 and "both.mcap already exists; --force or force=True overwrites it" in said.stderr


def test_the_missing_package_is_named(folder, monkeypatch):
    monkeypatch.setattr("liedyn.report.replay.mcap.find_spec", lambda name: None)
    motion("run", 1.0)
    said = run("replay", "run", "--mcap", "run.mcap")
    assert said.exit_code == 2 and "writing MCAP files requires the package mcap: pip install 'liedyn[mcap]'" in said.stderr
