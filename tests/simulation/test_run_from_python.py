"""Scenarios and overrides as dicts, and what a Result offers in Python."""
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld

ROOT = Path(__file__).parents[2]
PENDULUM = {"robot": ROOT / "robots/double_pendulum.yaml", "duration": 0.2, "output_step": 0.05,
            "initial": {"q": {"shoulder": np.float64(0.3)}}, "joints": {"elbow": {"torque": np.array([0.5])}}}


def test_a_scenario_is_a_dict(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(f"robot: {ROOT / 'robots/double_pendulum.yaml'}\nduration: 0.2\noutput_step: 0.05\n"
                    "initial: {q: {shoulder: 0.3}}\njoints: {elbow: {torque: [0.5]}}\n", encoding="utf-8")
    from_dict, from_file = ld.run_scenario(PENDULUM), ld.run_scenario(path)
    assert from_dict.scenario == from_file.scenario
    assert np.array_equal(from_dict.q, from_file.q)                     # the same computation twice


def test_overrides_are_a_dict_a_list_or_one_text():
    runs = [ld.run_scenario(PENDULUM, given) for given in (
        {"duration": 0.1, "joints.elbow": {"torque": 0.0}}, ["duration=0.1", "joints.elbow.torque=0"])]
    assert runs[0].scenario == runs[1].scenario and runs[0].t[-1] == 0.1
    assert ld.run_scenario(PENDULUM, "duration=0.1").t[-1] == 0.1


@pytest.mark.parametrize("change, message", [
    ({"robot": "nowhere.yaml"}, r"scenario: robot: no such robot file.*got 'nowhere.yaml'"),
    ({"duration": float("nan")}, "scenario: duration: not a finite number"),
    ({"seed": object()}, "scenario: invalid values: found object"),
    ({"joints": {"elbow": {"torq": 1}}}, r"scenario: joints.elbow.torq: unknown key.*did you mean torque\?"),
    ({"duration": {1: 2}}, "scenario: duration: expected"),
])
def test_a_bad_dict_is_refused_by_key(change, message):
    with pytest.raises(ld.ScenarioError, match=message):
        ld.run_scenario(PENDULUM | change)


@pytest.mark.parametrize("overrides, message", [
    ({"integratr.step": 1}, "integratr: unknown key"), ([3], r"not an override.*got 3"),
    ({"duration": None}, "the key duration is missing"),
    ({"duration": object()}, "duration: invalid values"),
])
def test_bad_overrides_are_refused(overrides, message):
    with pytest.raises(ld.ScenarioError, match=message):
        ld.run_scenario(PENDULUM, overrides)


def test_the_repr_of_a_result_is_short_and_says_what_to_do_next():
    """It had 68,884 characters."""
    lines = repr(ld.run_scenario(PENDULUM)).splitlines()
    assert lines[0] == "<Result double_pendulum: 0.2 s in 200 steps (rk4), 5 rows, nq 2, nv 2"
    assert lines[1].startswith("  energy balance ") and "inverse dynamics residual" in lines[1]
    assert "run.to_pandas()" in lines[2] and len(lines) == 3 and max(map(len, lines)) < 120


def test_information_is_not_counted_as_a_warning():
    run = ld.run_scenario(PENDULUM)
    notes = (ld.LiedynWarning("nothing-moves", "at rest"), ld.LiedynWarning("stiff-step", "stiff"))
    assert [one.level for one in notes] == ["information", "warning"]
    assert ", 1 warning (run.warnings)" in repr(replace(run, warnings=notes))
    assert "warning" not in repr(replace(run, warnings=notes[:1]))


def test_the_repr_of_a_result_that_ended_early_says_why():
    pushed = PENDULUM | {"joints": {"*": {"torque": "1e4*exp(300*t)"}}, "integrator": {"method": "rk4", "step": 0.01}}
    with pytest.raises(ld.ComputationError) as caught:
        ld.run_scenario(pushed)
    run = caught.value.result
    assert f"\n  diverged: {run.reason}\n" in repr(run) and run.reason


def test_a_result_as_a_data_frame_has_the_columns_of_its_file(tmp_path):
    import pandas

    from liedyn.report.run_folder import write_run
    result = ld.run_scenario(PENDULUM)
    write_run(result, tmp_path / "run", plots=False)
    written = pandas.read_csv(tmp_path / "run/trajectory.csv", comment="#", index_col=0)
    pandas.testing.assert_frame_equal(result.to_pandas(), written, rtol=1e-14)      # as pandas reads decimals


def test_linearize_takes_the_loops_of_the_scenario(tmp_path):
    """Its key `loops` was ignored."""
    (tmp_path / "arm.yaml").write_text(
        "links:\n  a: {mass: 1, com: [0.5, 0, 0], inertia: [1, 1, 1]}\n  b: {mass: 1, com: [0.5, 0, 0], inertia: [1, 1, 1]}\n"
        "joints:\n  one: {type: revolute, parent: world, child: a, axis: [0, 1, 0]}\n"
        "  two: {type: revolute, parent: world, child: b, axis: [0, 1, 0]}\n", encoding="utf-8")
    (tmp_path / "gear.yaml").write_text("couplings:\n  gear: {terms: {one: 1, two: -2}}\n", encoding="utf-8")
    (tmp_path / "s.yaml").write_text("robot: arm.yaml\nloops: gear.yaml\nduration: 1\n", encoding="utf-8")
    assert ld.linearize_scenario(tmp_path / "s.yaml").system.A.shape == (2, 2)          # one degree of freedom, not two
