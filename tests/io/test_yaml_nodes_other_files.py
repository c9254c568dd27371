"""A scenario may name any file, and its messages may end in a log: no message quotes a file that is not of the expected kind."""
import pytest

import liedyn as ld
from command_line import run
from liedyn.errors import ComputationError, LiedynError
from liedyn.io.sweep_file import read_sweep

SECRET = "hunter2"
CONTENTS = {
    "a line": "hunter2\n", "passwords": "root:hunter2:0:0:root:/root:/bin/sh\nhunter2:x:1:1::/:/bin/false\n",
    "two cells": "hunter2,hunter2\nhunter2,hunter2\n", "a password above numbers": "hunter2\n12345\n",
    "numbers": "1,2\n3,hunter2\n", "keys": "KEY: hunter2\n", "secret keys": "hunter2: 1\n", "a list": "- hunter2\n",
    "a setting": "[x]\nkey=hunter2\n", "quotes": '"hunter2,"hunter2"\n', "an alias": "*hunter2\n", "a tag": "!hunter2 x\n",
    "brackets": "{hunter2: [", "XML": "<hunter2/>", "broken XML": "<hunter2>hunter2<", "text in XML": "<robot>hunter2</robot>",
    "a solid": "solid hunter2\nfacet normal hunter2 hunter2 0\n", "vertices": "v hunter2 0 1\nf 1 2 3\n"}
ROBOT = """\
links: {bar: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}}
joints: {hip: {type: continuous, parent: world, child: bar, axis: [0, 1, 0]}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "bar.yaml").write_text(ROBOT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scenario(**keys):
    return lambda file: ld.run_scenario({"robot": "bar.yaml", "duration": 0.01}
                                        | {key: value(file) for key, value in keys.items()})


def sweep(file):
    with open("sweep.yaml", "w", encoding="utf-8") as out:
        out.write("scenario: bar.yaml\noutputs: {x: final(q(hip))}\n"
                  f"parameters: [{{key: duration, csv: {{file: {file}, column: kp}}}}]\n")
    read_sweep("sweep.yaml")


READERS = {
    "a signal": ("x", scenario(joints=lambda file: {"hip": {"torque": {"csv": {"file": file, "column": "tau.hip"}}}})),
    "a gain": ("csv", scenario(control=lambda file: {"law": "state_feedback", "setpoint": {}, "gain": file})),
    "an initial state": ("csv", scenario(initial=lambda file: {"from": file})),
    "a trajectory": ("csv", ld.read_trajectory), "a sweep's column": ("csv", sweep), "a sweep": ("yaml", read_sweep),
    "a robot": ("yaml", ld.load), "a URDF": ("urdf", ld.load), "an MJCF file": ("mjcf", ld.load), "XML": ("xml", ld.load),
    "loops": ("yaml", lambda file: ld.load("bar.yaml", loops=file)), "a scenario": ("yaml", ld.run_scenario)}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", CONTENTS)
def test_messages_do_not_quote_files_of_another_kind(folder, reader, content):
    ending, read = READERS[reader]
    (folder / f"other.{ending}").write_text(CONTENTS[content])
    with pytest.raises(LiedynError) as error:
        read(f"other.{ending}")
    text = str(error.value)
    assert SECRET not in text and "other" in text and "\n" not in text


@pytest.mark.parametrize("kind", ["stl", "obj", "dae", "ply", "gltf"])
@pytest.mark.parametrize("content", CONTENTS)
def test_messages_do_not_quote_what_is_no_mesh(folder, kind, content):
    pytest.importorskip("trimesh")
    from liedyn.io.mesh_files import read_mesh
    (folder / f"other.{kind}").write_text(CONTENTS[content])
    with pytest.raises(ComputationError) as error:
        read_mesh(folder / f"other.{kind}")
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("command", ["inverse", "replay", "kinematics", "plot"])
def test_commands_do_not_quote_what_is_no_trajectory(folder, command):
    (folder / "other.csv").write_text(CONTENTS["passwords"])
    found = run(command, "other.csv", "--robot", "bar.yaml")
    assert found.exit_code and SECRET not in found.output and "there is no column `t`" in found.output
