"""Broken files of recordings and of robots with couplings and motors: each gives one line that says what to do."""
import re
from pathlib import Path

import pytest

from command_line import run, said

ROBOTS = Path(__file__).parents[2] / "robots"
ARM = """links: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}}
joints:
  j1: {type: revolute, parent: world, child: a, axis: [0, 1, 0], limits: {lower: -1, upper: 1}}
  j2: {type: revolute, parent: a, child: b, axis: [0, 1, 0], origin: {xyz: [0, 0, 1]}, limits: {lower: -1, upper: 1}MORE}
"""
BAD_QUOTE = ("<robot name='x'><link name='a'><inertial><mass value='1'/><inertia ixx=1 ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/>"
             "</inertial></link></robot>")
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True))
FILES = {
    "arm.yaml": ARM.replace("MORE", ""), "mimic.yaml": ARM.replace("MORE", ", mimic: {joint: j1}"),
    "itself.yaml": ARM.replace("MORE", ", mimic: {joint: j2}"), "nobody.yaml": ARM.replace("MORE", ", mimic: {joint: jx}"),
    "contradiction.yaml": ARM.replace("MORE", ", mimic: {joint: j1}") + "couplings: {c: {terms: {j1: 1, j2: -1}, offset: 0.3}}\n",
    "motor.yaml": ARM.replace("MORE", "") + "actuated: [j1, j3]\n",
    "twice.yaml": ARM.replace("MORE", "") + "actuated: [j1, j1]\n",
    "word.yaml": ARM.replace("MORE", "") + "actuated: j1\n", "alias.yaml": "a: &a [1, 2]\nb: *c\n", "bomb.yaml": BOMB,
    "quote.urdf": BAD_QUOTE, "log.csv": "stamp,a_pos,b_pos\n0,0,0\n100,1,2\n200,2,3\n",
    "angle.columns.yaml": "q.j1: a_pos[deg]\n",
    "m.csv": "t,q.shoulder\n0,0\n0.1,0.1\n", "empty.bag": "", "text.mcap": "hello", "bag/metadata.yaml": "x: 1\n",
    "ignore.yaml": "robot: mimic.yaml\nduration: 1\nignore_mimic: maybe\n",
    "held.yaml": f"robot: {ROBOTS / 'five_bar.yaml'}\nduration: 1\ncontrol: {{law: gravity_compensation, joints: [left]}}\n",
    "task.yaml": f"robot: {ROBOTS / 'five_bar.yaml'}\nduration: 1\ncontrol: {{law: task_space, link: tool, bandwidth: 5, "
                 "target: {xyz: [0, 0, 0]}}\n"}
LOG = ("inverse", "log.csv", "--robot", "arm.yaml", "--columns")
CASES = {
    "an unknown unit": ((*LOG, "t=stamp[ms],q.j1=a_pos[furlong],q.j2=b_pos"),
        "q.j1: unknown unit: expected a unit such as .* got 'furlong'"),
    "a column that the log lacks": ((*LOG, "t=stamp[ms],q.j1=c_pos[deg]"),
        "no such column: expected one of stamp, a_pos, b_pos, got 'c_pos'"),
    "a bracket that is open": ((*LOG, "t=stamp[ms],q.j1=a_pos[deg"), r"not an expression of a column.*got 'a_pos\[deg'"),
    "a joint that the robot lacks": ((*LOG, "t=stamp[ms],q.j7=a_pos[deg],q.j1=a_pos,q.j2=b_pos"),
        "no such column: expected one of q.j1, q.j2, got 'q.j7'"),
    "a target twice": ((*LOG, "t=stamp[ms],q.j1=a_pos,q.j1=b_pos"), "two entries have the same target"),
    "a factor that is no number": ((*LOG, "t=stamp[ms],q.j1=a_pos*x,q.j2=b_pos"),
        "no such column: expected one of stamp, a_pos, b_pos, got 'x'"),
    "a map without its key": ((*LOG, "angle.columns.yaml"),
        "angle.columns.yaml:1: .*it has none of the keys: expected one of columns, units, names, robot"),
    "no map": ((*LOG, "none.columns.yaml"), "none.columns.yaml: no such file"),
    "a log without a map": (LOG[:4], r"log.csv:1: there is no column `t`: .*--columns .*t=stamp"),
    "a motion of another robot": (("inverse", "m.csv", "--robot", "arm.yaml"), "no column belongs to a joint of the robot arm"),
    "a motor of no joint": (("info", "motor.yaml"),
        r"motor.yaml:5: actuated\[1\]: expected one of j1, j2, got j3"),
    "a motor twice": (("info", "twice.yaml"), "twice.yaml: actuated: an actuated joint is named twice: got 'j1'"),
    "a motor without a list": (("info", "word.yaml"),
        "word.yaml:5: actuated: expected a list of at least 1 names of joints, got j1"),
    "a joint that mimics itself": (("info", "itself.yaml"), "itself.yaml:4: joints.j2.mimic: the joint mimics itself"),
    "a mimic of nobody": (("info", "nobody.yaml"),
        "nobody.yaml:4: joints.j2.mimic.joint: expected one of j1, j2, got jx"),
    "couplings that contradict": (("info", "contradiction.yaml"),
        "contradiction.yaml:4: joints.j2.mimic: the coupling j2 contradicts"),
    "an alias of nothing": (("info", "alias.yaml"), "alias.yaml:2: b: the YAML alias has no anchor before it"),
    "aliases of aliases": (("info", "bomb.yaml"), "bomb.yaml:5: .*YAML aliases add too many values: expected at most 100000"),
    "an attribute without quotes": (("info", "quote.urdf"), "quote.urdf:1: not valid XML: the value of the attribute ixx"),
    "a switch that is a word": (("simulate", "ignore.yaml"),
        "ignore.yaml:3: ignore_mimic: expected true or false, got maybe"),
    "an option that is misspelled": (("simulate", "arm.yaml", "--ignore-mimics"),
        "Did you mean one of: '--ignore', '--ignore-mimic'"),
    "a law that does not hold a mechanism": (("simulate", "held.yaml"),
        "held.yaml:3: control: gravity compensation does not hold"),
    "a law that loops exclude": (("simulate", "task.yaml"),
        "task.yaml:3: control: task_space does not support robots with loops"),
    "an empty bag": (("inverse", "empty.bag", "--robot", "arm.yaml"),
        "empty.bag: the bag cannot be read: expected a complete bag"),
    "a bag of text": (("inverse", "text.mcap", "--robot", "arm.yaml"),
        "text.mcap: the bag cannot be read: .*`mcap recover` repairs"),
    "a bag without its data": (("inverse", "bag", "--robot", "arm.yaml"), "bag: the bag cannot be read: .*`ros2 bag reindex`"),
    "no bag": (("inverse", "nobag/", "--robot", "arm.yaml"), "File 'nobag/' does not exist"),
    "a format that is only read": (("convert", "arm.yaml", "-o", "arm.mjcf"),
        "arm.mjcf: unknown file name extension: expected .urdf"),
    "a robot with the name of a loops file": (("convert", "arm.yaml", "-o", "q.loops.yaml"),
        "q.loops.yaml is the name of a loops file"),
}


@pytest.mark.parametrize(("command", "message"), CASES.values(), ids=CASES)
def test_a_broken_input_is_told_in_one_line(tmp_path, monkeypatch, command, message):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    before = sorted(tmp_path.rglob("*"))
    result = run(*command)
    *others, line = said(result)
    assert result.exit_code in (2, 3) and not others and re.match("error: ", line)
    assert re.search(message, line), line
    assert sorted(tmp_path.rglob("*")) == before
