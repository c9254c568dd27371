"""Robots of the package robot_descriptions, which downloads them: a package of the same form stands in for it."""
import sys
from pathlib import Path

import pytest

import liedyn as ld
from command_line import ok, run

ROOT = Path(__file__).parents[2]
URDF, MJCF = ROOT / "robots" / "double_pendulum.urdf", ROOT / "robots" / "hopper.xml"


@pytest.fixture
def descriptions(tmp_path, monkeypatch):
    """Return a function that creates the package of (name, text of its module)."""
    def make(**modules: str) -> None:
        folder = tmp_path / "packages" / "robot_descriptions"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f"DESCRIPTIONS = {dict.fromkeys(modules)!r}\n", encoding="utf-8")
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.chdir(tmp_path)
    yield make
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        del sys.modules[name]


@pytest.mark.parametrize(("key", "file"), [("URDF_PATH", URDF), ("MJCF_PATH", MJCF)])
def test_a_description_is_the_robot_of_its_file(descriptions, key, file):
    descriptions(arm_description=f"{key} = {str(file)!r}")
    model = ld.load("robot_descriptions:arm_description")
    assert model.source == str(file) and model.joint_names == ld.load(file).joint_names
    assert ld.load_description("robot_descriptions:arm_description").name == model.name


def test_commands_and_scenarios_take_descriptions(descriptions, tmp_path):
    descriptions(arm_description=f"URDF_PATH = {str(URDF)!r}")
    assert ok("info", "robot_descriptions:arm_description").stdout == ok("info", URDF).stdout
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "fall.yaml").write_text("robot: robot_descriptions:arm_description\nduration: 0.1\n", encoding="utf-8")
    ok("simulate", "sub/fall.yaml", "--no-plots", "-o", "run")
    motion = ok("inverse", "run/trajectory.csv", "-r", "robot_descriptions:arm_description", "-o", "forces.csv")
    assert "wrote forces.csv" in motion.stderr


def test_a_description_with_arguments_names_its_file_and_them(descriptions):
    descriptions(arm_description="XACRO_PATH = '/a/arm.urdf.xacro'\nXACRO_ARGS = {'dof': '7'}\n")
    with pytest.raises(ld.ModelError, match=r"arguments: got '/a/arm\.urdf\.xacro' .*'dof': '7'.* or --xacro-arg for each"):
        ld.load("robot_descriptions:arm_description")


@pytest.mark.parametrize(("module", "message"), [
    ("raise OSError('no network')", "cannot download the description: no network"),
    ("SRDF_PATH = 'a.srdf'", "the description has no file of a robot: expected a URDF, MJCF or xacro file"),
])
def test_a_description_that_cannot_be_used_is_an_error(descriptions, module, message):
    descriptions(arm_description=module)
    done = run("info", "robot_descriptions:arm_description")
    assert done.exit_code == 3 and message in done.stderr and "robot_descriptions:arm_description" in done.stderr


def test_an_unknown_description_suggests_the_nearest(descriptions):
    descriptions(panda_description="")
    with pytest.raises(ld.ModelError, match=r"no such description.*did you mean panda_description"):
        ld.load("robot_descriptions:panda_descripton")


def test_the_package_is_named_if_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    monkeypatch.setattr("liedyn.io.robots.described_robots.find_spec", lambda name: None)
    with pytest.raises(ld.ModelError, match=r"robot_descriptions is not installed .*pip install 'liedyn\[descriptions\]'"):
        ld.load("robot_descriptions:panda_description")
