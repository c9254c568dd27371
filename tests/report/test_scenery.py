"""What a scenario adds to the page: planes, contact shapes, targets, waypoints, attached bodies, from results and run folders."""
import json
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok
from liedyn.report.replay.meshes import unpacked
from liedyn.report.replay.page import data_of
from liedyn.report.replay.scenery import scenery
from liedyn.report.replay.sources import ReplayRun

ROOT = Path(__file__).parents[2]


def scenery_of(model, scenario, marks=(), columns=None, rows=1):
    q = np.tile(model.neutral(), (rows, 1))
    run = ReplayRun("run", model, np.arange(float(rows)), q, columns or {}, {}, marks=tuple(marks), scenario=scenario)
    return scenery(run, np.arange(rows), 1.0)


@pytest.fixture(scope="module")
def model():
    return ld.load(ROOT / "robots/double_pendulum.yaml")


def test_planes_have_their_normal_and_move_with_their_link(model):
    planes = {"ramp": {"point": [0.0, 0.0, -0.9], "normal": [3.0, 0.0, 4.0], "link": None},
              "plate": {"point": [0.3, 0.0, 0.0], "normal": [-1.0, 0.0, 0.0], "link": "upper"}}
    ramp, plate = scenery_of(model, {"contacts": {"planes": planes}})["planes"]
    assert ramp["body"] == -1 and ramp["at"][9:] == [0, 0, -0.9] and np.allclose(ramp["at"][2:9:3], [0.6, 0, 0.8])
    assert plate["body"] >= 0 and plate["name"] == "plate" and np.allclose(plate["at"][2:9:3], [-1, 0, 0])
    R = np.reshape(ramp["at"][:9], (3, 3))
    assert np.allclose(R @ R.T, np.eye(3)) and np.linalg.det(R) > 0


def test_contact_shapes_are_where_they_touch(model):
    shapes = {"lower": [{"point": [0.1, 0.2, 0.3]}, {"box": [0.1, 0.2, 0.3], "at": [0, 0, 1], "rpy": [0, 0, np.pi / 2]}],
              "up*": {"capsule": {"radius": 0.1, "length": 0.5}, "at": [0, 0, -1]}}
    point, box, *capsule = scenery_of(model, {"contacts": {"links": shapes}})["contacts"]
    assert (point["link"], point["kind"], point["at"][9:]) == ("lower", "sphere", [0.1, 0.2, 0.3])
    assert (box["kind"], box["sizes"]) == ("box", [0.1, 0.2, 0.3])
    assert np.allclose(np.reshape(box["at"][:9], (3, 3)), [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert [(one["link"], one["kind"], one["at"][11]) for one in capsule] == [
        ("upper", "cylinder", -1), ("upper", "sphere", -1.25), ("upper", "sphere", -0.75)]


def test_targets_are_the_columns_of_the_run(model):
    path = np.array([[0.0, 0.1, 0.2], [0.3, 0.4, 0.5], [1.0, -1.0, 2.0]])
    columns = {f"reference.lower.{axis}": path[:, k] for k, axis in enumerate("xyz")} | {"reference.upper.angle": path[:, 0]}
    target, = scenery_of(model, {}, columns=columns, rows=3)["targets"]
    assert target["name"] == "lower" and np.abs(unpacked(target) - path).max() <= 1e-4


def test_waypoints_are_poses_in_the_world(model):
    points = [{"t": 0.5, "xyz": [1, 2, 3]}, {"t": 2.0, "rpy": [0, 0, np.pi / 2]}, {"t": 3.0, "quaternion": [1.0, 0, 0, 0]}]
    found = scenery_of(model, {"control": {"link": "lower", "target": {"waypoints": points}}})["waypoints"]
    assert [one["name"] for one in found] == ["lower, 0.5 s", "lower, 2 s", "lower, 3 s"]
    assert found[0]["at"][9:] == [1, 2, 3] and np.allclose(found[1]["at"][:9], [0, -1, 0, 1, 0, 0, 0, 0, 1])
    assert np.allclose(found[2]["at"][:9], np.diag([1, -1, -1]).ravel())
    quadruped = ld.load(ROOT / "robots/quadruped.yaml", base="floating")
    base = quadruped.joint_names[0]
    joints = {base: {"prescribe": {"position": {"waypoints": points}}}, "*": {"torque": 0.0}}
    assert [one["at"] for one in scenery_of(quadruped, {"joints": joints})["waypoints"]] == [one["at"] for one in found]


def test_bodies_are_attached_between_their_events(model):
    attach = {"link": "lower", "mass": 2.0, "com": [0, 0, 0.5], "inertia": [0.008, 0, 0, 0.008, 0, 0.008]}
    events = {"pick": {"do": [{"attach": attach}]}, "place": {"do": {"detach": "lower"}}, "blow": {"do": "stop"}}
    marks = [(1.0, "pick", ""), (1.5, "blow", ""), (2.0, "place", ""), (3.0, "pick", "")]
    first, second = scenery_of(model, {"events": events}, marks)["payloads"]
    assert (first["from"], first["until"], second["from"], second["until"]) == (1.0, 2.0, 3.0, None)
    assert first["link"] == "lower" and first["at"][9:] == [0, 0, 0.5]
    assert first["sizes"] == pytest.approx([0.1] * 3)                       # a ball of 2 kg with 2/5 m r^2 = 0.008 kg m^2


def test_results_and_run_folders_have_the_same_scenery(tmp_path):
    scenario = {"robot": str(ROOT / "robots/double_pendulum.yaml"), "duration": 0.2, "integrator": {"method": "rodas5p"},
                "contacts": {"links": {"lower": {"sphere": {"radius": 0.05}}},
                             "planes": {"ramp": {"point": [0, 0, -5], "normal": [0.1, 0, 1]}}},
                "events": {"pick": {"at": 0.1, "do": {"attach": {"link": "lower", "mass": 0.1}}}}}
    result = ld.run_scenario(scenario)
    ld.write_run(result, tmp_path / "run", plots=False)
    ok("replay", tmp_path / "run")
    of_folder = data_of((tmp_path / "run" / "replay.html").read_text(encoding="utf-8"))["runs"][0]["scenery"]
    of_result = data_of(ld.replay_of(result))["runs"][0]["scenery"]
    assert json.dumps(of_folder) == json.dumps(of_result)
    assert [len(of_result[key]) for key in ("planes", "contacts", "payloads", "targets")] == [1, 1, 1, 0]
