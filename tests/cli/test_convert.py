"""`liedyn convert`: what it writes and says, and how it refuses."""
import json
from pathlib import Path

from command_line import ok, run, said

ROBOTS = Path(__file__).parents[2] / "robots"
SPRING = """\
links: {a: {mass: 1, inertia: [1, 1, 1]}}
joints: {j: {type: continuous, parent: world, child: a, axis: [0, 0, 1], stiffness: 2, armature: 0.1}}
"""


def test_there_and_back(tmp_path):
    """The second URDF is the first."""
    first, second, between = tmp_path / "a.urdf", tmp_path / "b.urdf", tmp_path / "a.yaml"
    assert said(ok("convert", ROBOTS / "ur5.yaml", "-o", first)) == [
        "liedyn: note: shapes: those of 6 links are left out; their inertias are written", f"wrote {first}"]
    ok("convert", first, "-o", between)
    ok("convert", between, "-o", second)
    assert first.read_text() == second.read_text()


def test_a_mechanism_has_a_loops_file_beside(tmp_path):
    path = tmp_path / "bar.urdf"
    done = ok("convert", ROBOTS / "four_bar.yaml", "-o", path, "--json")
    shapes = {"element": "shapes", "message": "those of 3 links are left out; their inertias are written", "dynamics": False}
    beside = "loops and couplings are in bar.loops.yaml, which other programs do not read"
    assert json.loads(done.stdout) == {
        "files": [str(path), str(tmp_path / "bar.loops.yaml")], "format": "urdf", "losses": [shapes],
        "rewritten": ['the ground is a link "world"', beside]}
    assert "constraints: 1 loop" in ok("info", path).stdout


def test_losses_are_listed_and_refused(tmp_path):
    robot, path = tmp_path / "spring.yaml", tmp_path / "spring.urdf"
    robot.write_text(SPRING)
    done = run("convert", robot, "-o", path)
    assert done.exit_code == 3 and not path.exists()
    assert said(done) == ['liedyn: note: the ground is a link "world"', "liedyn: note: j: the spring of stiffness 2 is left out",
                          "liedyn: note: j: the armature 0.1 is left out",
                          f"liedyn: error: {robot}: a URDF cannot describe the dynamics of this robot: j: the spring of "
                          "stiffness 2 is left out; j: the armature 0.1 is left out (--lossy or lossy=True writes what remains)"]
    done = ok("convert", robot, "-o", path, "--lossy", "--json")
    assert json.loads(done.stdout)["losses"][1] == {"element": "j", "message": "the armature 0.1 is left out", "dynamics": True}


def test_standard_output(tmp_path):
    done = ok("convert", ROBOTS / "asymmetric_body.yaml", "--base", "fixed", "-o", "-", "--to", "urdf")
    assert done.stdout.startswith('<?xml version="1.0"?>\n<robot name="asymmetric_body">') and "floating" not in done.stdout
    assert 'type="floating"' in ok("convert", ROBOTS / "asymmetric_body.yaml", "-o", "-", "--to", "urdf").stdout
    done = run("convert", ROBOTS / "four_bar.yaml", "-o", "-", "--to", "urdf")
    assert done.exit_code == 3 and "pin: the constraint is left out: it needs a loops file beside the URDF" in done.stderr
    assert ok("convert", ROBOTS / "four_bar.yaml", "-o", "-", "--to", "yaml").stdout.startswith("name: four_bar\n")


def test_wrong_usage(tmp_path):
    robot, path = ROBOTS / "ur5.yaml", tmp_path / "a.urdf"
    for arguments, message in (
            (("-o", "-"), "--to is needed with `-o -`, and only there"), (("-o", path, "--to", "yaml"), "and only there"),
            (("-o", "-", "--to", "urdf", "--json"), "would both write to stdout"), ((), "Missing option '-o'"),
            (("-o", tmp_path / "a.obj"), "unknown file name extension")):
        done = run("convert", robot, *arguments)
        assert done.exit_code == 2 and message in done.stderr, done.stderr
    ok("convert", robot, "-o", path)
    done = run("convert", robot, "-o", path)
    assert done.exit_code == 2 and said(done)[1:] == [f"liedyn: error: {path} exists already; --force overwrites it"]
    ok("convert", robot, "-o", path, "--force")
