"""Texts of sweeps: positions, units, steps, and one line for each mistake."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.driver_sweep import sweep_of_texts

MODEL = ld.load(Path(__file__).parents[2] / "robots/four_bar.yaml")
DRIVER = MODEL.v_names[0]


@pytest.mark.parametrize("text, first, last, count", [
    ("0:4deg:4", 0.0, np.radians(4), 5), ("0deg:0.1rad:2", 0.0, 0.1, 3), (" 0.01 : 0.02 : 1", 0.01, 0.02, 2),
    ("1deg:2:1", np.radians(1), 2.0, 2)])
def test_positions_are_those_of_the_text(text, first, last, count, monkeypatch):
    sweeps = []
    monkeypatch.setattr("liedyn.analysis.driver_sweep.kinematic_sweep",
                        lambda *arguments, **options: sweeps.append((*arguments, options)))
    sweep_of_texts(MODEL, f"{DRIVER}={text}")
    (model, name, positions, _, options), = sweeps
    assert model is MODEL and name == DRIVER
    assert options["limits"] is True and options["driven"] == []
    np.testing.assert_allclose(positions, np.linspace(first, last, count), rtol=1e-15)


@pytest.mark.parametrize("text, message", [
    (DRIVER, "expected JOINT=FROM:TO"), (f"{DRIVER}=0", "expected JOINT=FROM:TO"), (f"{DRIVER}=0:x", "expected JOINT=FROM:TO"),
    (f"{DRIVER}=0:1:0", "with 1 to 100000 steps"), (f"{DRIVER}=0:1:100001", "with 1 to 100000 steps"),
    (f"{DRIVER}=0:1:2:3", "expected JOINT=FROM:TO"), (f"{DRIVER}=1:1", "expected two different positions"),
    (f"{DRIVER}=0:1m", f"{DRIVER} is in rad: expected a unit such as deg, got 'm'"),
    ("nothing=0:1", "no coordinate 'nothing'; the robot has ")])
def test_other_texts_are_errors(text, message):
    with pytest.raises(ld.UsageError) as caught:
        sweep_of_texts(MODEL, text)
    assert message in str(caught.value) and "--sweep" in str(caught.value)
