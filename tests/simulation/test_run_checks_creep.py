"""Smoothed friction holds nothing at rest: a run says which joints creep, and how fast."""
import math

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.trajectory_dynamics import dynamics_along
from liedyn.io.trajectory_csv import Trajectory

BLOCK = """
name: block
links: {{b: {{mass: 2}}}}
joints:
  x: {{type: prismatic, parent: world, child: b, axis: [1, 0, 0], origin: {{rpy: [0, {angle}, 0]}}, friction: {friction}}}
"""


def run(tmp_path, friction, angle=0.349065850398866, **options):
    path = tmp_path / "block.yaml"
    path.write_text(BLOCK.format(angle=angle, friction=friction))
    return ld.simulate(ld.load(path), duration=2, output_step=0.1, **options)


def test_a_block_that_friction_holds_is_said_to_creep(tmp_path):
    """With friction of twice the weight along the slope, smoothed friction is half its level at 0.01 / sqrt(3) m/s."""
    weight = 2 * 9.81 * math.sin(math.radians(20))
    result = run(tmp_path, 2 * weight)
    assert result.v[-1, 0] == pytest.approx(0.01 / math.sqrt(3), rel=1e-3)
    note, = [note for note in map(str, result.warnings) if "creep" in note]
    assert note.startswith("joints held by friction creep: x (0.0058 m/s, 0.01")


def test_nothing_creeps_without_load_or_while_it_slides(tmp_path):
    weight = 2 * 9.81 * math.sin(math.radians(20))
    assert not any("creep" in note for note in map(str, run(tmp_path, 5, angle=0).warnings))
    assert not any("creep" in note for note in map(str, run(tmp_path, weight / 2).warnings))


@pytest.mark.parametrize(("speed", "told"), [(0.004, True), (0.05, False)])
def test_friction_of_a_motion_that_is_slow_throughout_is_said_to_be_damping(tmp_path, speed, told):
    """A prescribed motion does not creep, and in a fast one friction is friction."""
    result = run(tmp_path, 5, angle=0, joints={"x": {"prescribe": {"velocity": speed}}})
    assert not any("creep" in note for note in map(str, result.warnings))
    warnings = [note for note in map(str, result.warnings) if note.startswith("Coulomb friction acts as damping")]
    assert len(warnings) == told and all("x (0.004 m/s)" in note for note in warnings)


@pytest.mark.parametrize(("speed", "told"), [(0.004, True), (0.05, False)])
def test_recorded_motions_are_told_the_same(tmp_path, speed, told):
    path = tmp_path / "block.yaml"
    path.write_text(BLOCK.format(angle=0, friction=5))
    t = np.linspace(0.0, 1.0, 11)
    motion = Trajectory({}, t, {"q.x": speed * t, "v.x": np.full(11, speed), "a.x": np.zeros(11)},
                        {"q.x": "m", "v.x": "m/s", "a.x": "m/s^2"}, None, np.arange(2, 13))
    warnings = list(map(str, dynamics_along(ld.load(path), motion, "inverse").warnings))
    assert sum(note.startswith("Coulomb friction acts as damping") for note in warnings) == told


WEIGHT = 2 * 9.81 * math.sin(math.radians(20))


def creeping(warnings) -> list[str]:
    return [one.message for one in warnings if one.code == "friction-creep"]


@pytest.mark.parametrize("law, creeps", [
    ("-{F}*sign(v)", True), ("-{F}*tanh(v/0.01)", True), ("-{F}*v/sqrt(v**2 + 1e-4)", True), ("-{F}*clip(v/0.01, -1, 1)", True),
    ("-{D}*v", False), ("{G}", False), ("-{D}*clip(v, -20, 20)", False)])
def test_laws_that_are_friction_are_said_to_creep(tmp_path, law, creeps):
    """A law with twice the weight along the slope. A damper that lowers the block as slowly does not, nor a force in balance."""
    text = law.format(F=2 * WEIGHT, D=WEIGHT / 0.006, G=-WEIGHT)
    warnings = creeping(run(tmp_path, 0, tau={"x": text}).warnings)
    assert len(warnings) == creeps, warnings
    assert not creeps or "sign(v)" in warnings[0]


def test_a_law_counts_without_the_friction_of_joints(tmp_path):
    tau = {"x": f"-{2 * WEIGHT}*tanh(v/0.01)"}
    assert creeping(run(tmp_path, 2 * WEIGHT, tau=tau, passive=False).warnings)
    assert not creeping(run(tmp_path, 2 * WEIGHT, tau={"x": f"{-WEIGHT}"}, v0=[0.006], passive=False).warnings)


@pytest.fixture
def block(tmp_path):
    path = tmp_path / "block.yaml"
    path.write_text(BLOCK.format(angle=0.349065850398866, friction=2 * WEIGHT))
    return ld.load(path)


OPTIONS = {"dt": 1e-3, "steps": 1000, "every": 10}


def test_a_rollout_tells_how_many_runs_creep(block):
    """Also after an earlier check: whether a run creeps depends on the states."""
    hold = {"tau": [[[0.0]], [[-WEIGHT]], [[0.0]]]}
    for _ in range(2):
        with pytest.warns(ld.LiedynWarning, match="joints held by friction creep in 2 of 3 runs: x "):
            runs = ld.rollout(block, [[0.0]] * 3, [0.0], **hold, **OPTIONS)
    note, = creeping(runs.warnings)
    assert "x (0.0058 m/s, 0.005" in note
    assert not creeping(ld.rollout(block, [0.0], [0.0], [-WEIGHT], **OPTIONS).warnings)
    with pytest.warns(ld.LiedynWarning, match="creep: x "):                        # another run of a model that was clean before
        ld.rollout(block, [0.0], [0.0], **OPTIONS)
    assert not creeping(ld.rollout(block, [0.0], [0.0], passive=False, **OPTIONS).warnings)
    assert not creeping(ld.rollout(block, [0.0], [0.0], **OPTIONS | {"steps": 400}).warnings)


def test_variants_creep_where_they_have_friction(block):
    robots = ld.Variants([block, *(block.with_changes(friction={"x": share * WEIGHT}) for share in (0.5, 1.5))])
    runs = ld.rollout(robots, [0.0], [0.0], **OPTIONS)
    note, = creeping(runs.warnings)
    assert "creep in 2 of 3 runs: x (0.0089 m/s" in note           # 0.01 s / sqrt(1 - s^2) with s = 2/3


def test_a_run_that_diverges_does_not_creep(block):
    runs = ld.rollout(block, [[0.0], [0.0]], [[0.0], [1e300]], **OPTIONS)
    assert creeping(runs.warnings)[0].startswith("joints held by friction creep in 1 of 2 runs")
