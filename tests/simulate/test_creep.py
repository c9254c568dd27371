"""Smoothed friction holds nothing at rest: a run says which joints creep, and how fast."""
import math

import numpy as np
import pytest

import liedyn as ld
from liedyn.analyse.along.dynamics_along import dynamics_along
from liedyn.io.csv import Trajectory

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
    """With friction twice the weight along the slope, the smoothed friction is half its level at 0.01 / sqrt(3) m/s."""
    weight = 2 * 9.81 * math.sin(math.radians(20))
    result = run(tmp_path, 2 * weight)
    assert result.v[-1, 0] == pytest.approx(0.01 / math.sqrt(3), rel=1e-3)
    note, = [note for note in result.notes if "creep" in note]
    assert note.startswith("joints that friction holds creep: x (0.0058 m/s, 0.01")


def test_nothing_creeps_without_load_or_while_it_slides(tmp_path):
    weight = 2 * 9.81 * math.sin(math.radians(20))
    assert not any("creep" in note for note in run(tmp_path, 5, angle=0).notes)
    assert not any("creep" in note for note in run(tmp_path, weight / 2).notes)


@pytest.mark.parametrize(("speed", "told"), [(0.004, True), (0.05, False)])
def test_friction_of_a_motion_that_is_slow_throughout_is_said_to_be_damping(tmp_path, speed, told):
    """A prescribed motion does not creep, and a fast one is friction."""
    result = run(tmp_path, 5, angle=0, joints={"x": {"prescribe": {"velocity": speed}}})
    assert not any("creep" in note for note in result.notes)
    notes = [note for note in result.notes if note.startswith("Coulomb friction acts as damping")]
    assert len(notes) == told and all("x (0.004 m/s)" in note for note in notes)


@pytest.mark.parametrize(("speed", "told"), [(0.004, True), (0.05, False)])
def test_recorded_motions_are_told_the_same(tmp_path, speed, told):
    path = tmp_path / "block.yaml"
    path.write_text(BLOCK.format(angle=0, friction=5))
    t = np.linspace(0.0, 1.0, 11)
    motion = Trajectory({}, t, {"q.x": speed * t, "v.x": np.full(11, speed), "a.x": np.zeros(11)},
                        {"q.x": "m", "v.x": "m/s", "a.x": "m/s^2"}, None, np.arange(2, 13))
    notes = dynamics_along(ld.load(path), motion, "inverse").notes
    assert sum(note.startswith("Coulomb friction acts as damping") for note in notes) == told
