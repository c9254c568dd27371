"""A format of robot files is an entry of `FORMATS`, which loading, saving, scenarios, drawing and commands read."""
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.cli.app import main
from liedyn.io.robots.robot_formats import FORMATS, RobotFormat, written_endings
from liedyn.io.robots.visual_shapes import link_shapes
from liedyn.io.robots.write_robot_yaml import Omission, Subset
from liedyn.model.description import Joint, Link, LinkShape, LinkVisuals, Pose, Robot
from liedyn.robot_files import load_description

ROOT = Path(__file__).parents[2]
ROD = Link("rod", 1.0, (0.0, 0.0, -0.5), (0.1, 0.0, 0.0, 0.1, 0.0, 0.001))


def read_pendulum(path: Path) -> Robot:
    """{"mass": ...}"""
    mass = json.loads(path.read_text(encoding="utf-8"))["mass"]
    return Robot(path.stem, (replace(ROD, mass=mass),), (Joint("hinge", "continuous", "world", "rod", axes=((0.0, 1.0, 0.0),)),),
                 source=str(path), visuals={"rod": LinkVisuals((LinkShape("sphere", (0.1,), Pose()),))})


def write_pendulum(robot: Robot, shapes) -> tuple[Subset, str]:
    lost = [Omission(joint.name, "its damping is left out") for joint in robot.joints if joint.coordinate_parameters[0].damping]
    return Subset(robot, losses=lost), json.dumps({"mass": robot.links[0].mass, "shapes": sorted(shapes)})


@pytest.fixture
def pendulum(tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, "pendulum", RobotFormat("pendulum file", (".pendulum",), read_pendulum, write_pendulum,
                                                         writes_shapes=True))
    path = tmp_path / "robot.pendulum"
    path.write_text(json.dumps({"mass": 2.0}), encoding="utf-8")
    return path


def test_an_added_format_is_loaded_and_saved(pendulum, tmp_path):
    model = ld.load(pendulum)
    assert model.joint_names == ("hinge",) and model.description.links[0].mass == 2.0
    assert ld.save(model, tmp_path / "copy.pendulum") == ()
    assert json.loads((tmp_path / "copy.pendulum").read_text()) == {"mass": 2.0, "shapes": ["rod"]}
    with pytest.raises(ld.ModelError, match=r"a pendulum file cannot describe the dynamics .*: hinge: its damping is left out"):
        ld.save(model.with_changes(damping={"hinge": 1.0}), tmp_path / "damped.pendulum")


def test_an_added_format_has_shapes_and_may_have_a_loops_file(pendulum, tmp_path):
    assert link_shapes(load_description(pendulum))["rod"][0].kind == "sphere"
    ld.save(ld.load(pendulum), tmp_path / "drawn.urdf")
    assert "<sphere" in (tmp_path / "drawn.urdf").read_text()
    pendulum.with_name("robot.loops.yaml").write_text("couplings: {still: {terms: {hinge: 1}}}")
    assert ld.load(pendulum).nc == 1


def test_an_added_format_is_simulated_and_converted_by_commands(pendulum, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ok("convert", pendulum, "-o", "robot.yaml")
    assert ok("convert", "robot.yaml", "-o", "-", "--to", "pendulum").stdout.startswith("{")
    ok("simulate", pendulum, "-S", "duration=0.1", "-o", "run", "--no-plots")
    assert "expected urdf, yaml or pendulum" in run("convert", pendulum, "-o", "-", "--to", "sdf").stderr


def test_only_formats_with_keys_take_overrides(pendulum):
    with pytest.raises(ld.ModelError, match="only a robot YAML has keys"):
        ld.load_description(pendulum, overrides=("mass=1",))


def test_a_format_of_an_installed_package_is_found(tmp_path):
    """By an entry point, when a file has an unknown ending."""
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[liedyn.formats]\nempty = other:EMPTY\n")
    (tmp_path / "other.py").write_text("from liedyn.io.robots.robot_formats import RobotFormat\n"
                                       "from liedyn.model.description import Link, Robot\n"
                                       "def read(path): return Robot('r', (Link('a'),), ())\n"
                                       "EMPTY = RobotFormat('empty file', ('.empty',), read)\n")
    (tmp_path / "robot.empty").touch()
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import liedyn; print(liedyn.load('robot.empty').link_names)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "('a',)\n", done.stderr


def test_texts_name_all_formats():
    """Of commands, and of the documents."""
    helps = [main.help, *(main.get_command(None, name).help for name in ("info", "convert"))]
    for one in FORMATS.values():
        name = one.title.rpartition(" ")[2]
        assert all(name in text for text in helps)
        assert name in (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    output = next(option for option in main.get_command(None, "convert").params if option.name == "output")
    assert all(ending in output.help for ending in written_endings())
