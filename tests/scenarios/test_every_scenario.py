"""Every scenario of configs/ through the commands, shortened: what `simulate` writes is what the others read."""
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok
from liedyn.io.scenarios.scenario_file import read_scenario
from liedyn.io.trajectory_csv import read_trajectory

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
SHORT = ("-S", "duration=0.06", "-S", "output_step=0.01")


def worst(again, original, kind: str) -> float:
    """Return the maximum difference of the columns of a kind, relative to the maximum of their values."""
    names = [name for name in original.columns if name.startswith(kind + ".")]
    assert names
    scale = max(np.abs(original.columns[name]).max() for name in names) + 1
    return max(np.abs(again.columns[name] - original.columns[name]).max() for name in names) / scale


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_a_run_has_what_other_commands_compute_from_it(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ok("simulate", config, "--no-plots", *SHORT)
    csv = f"runs/{config.stem}/trajectory.csv"
    scenario = read_scenario(config)
    model = ld.load(scenario.robot, loops=scenario.loops)
    check = check_constraints if model.constraints else check_inverse_and_forward
    check(csv, read_trajectory(csv), model)


def check_inverse_and_forward(csv, original, _model):
    """Check that `inverse` and `forward` return what the simulation of a tree wrote."""
    said = ok("inverse", csv).stderr
    if any(name.startswith("friction.") for name in original.columns):       # functions of a state smooth rigid friction
        assert "[friction-regularized]" in said
        return
    assert worst(read_trajectory(csv.replace(".csv", "_inverse.csv")), original, "tau") < 1e-11
    ok("forward", csv, "-o", "forward.csv")
    assert worst(read_trajectory("forward.csv"), original, "a") < 1e-8    # rounding times the condition of M


def check_constraints(_csv, original, model):
    """Check that a run has the forces of its constraints, and closed loops."""
    names = [f"reaction.{one.name}{part}" for one in model.constraints
             for part in ([""] if one.type == "coupling" else [".mx", ".my", ".mz", ".fx", ".fy", ".fz"])]
    assert [name for name in original.columns if name.startswith("reaction.")] == names
    assert np.abs(original.columns["drift"]).max() < 1e-10


def test_one_command_reads_what_another_writes(tmp_path):
    """simulate, then inverse | forward | hybrid > file, as three processes in a shell."""
    liedyn = f"{sys.executable} -m liedyn"
    scenario = next(path for path in CONFIGS if path.stem == "panda_hybrid")
    script = f"""set -e -o pipefail
        {liedyn} simulate {scenario} --no-plots -q -S duration=0.06
        {liedyn} inverse runs/panda_hybrid/trajectory.csv -o - |
        {liedyn} forward - | {liedyn} hybrid - -p '*finger*' > again.csv"""
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again, original = (read_trajectory(tmp_path / name) for name in ("again.csv", "runs/panda_hybrid/trajectory.csv"))
    assert np.array_equal(again.t, original.t)
    assert worst(again, original, "a") < 1e-8 and worst(again, original, "tau") < 1e-9
