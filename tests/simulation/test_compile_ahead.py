"""Compiling beforehand: every function is in a group, and what a group has compiled is not compiled again."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.cli import robot_commands as command
from liedyn.simulation import compile_ahead

ROBOTS = Path(__file__).parents[2] / "robots"
# What compiles nothing, or only what others in a group do.
OTHERS = {"load", "load_description", "build", "curve_joint", "fix_joints", "warmup", "random_configuration", "random_motion",
          "expand", "reduce", "joint_motion", "inertial_parameters",
          "parameter_names", "spatial_twists", "body_twists", "spatial_wrenches", "body_wrenches", "closed_form",
          "spatial_closed_form", "sectional_curvature", "scalar_curvature", "identify",
          "consistent_parameters", "linearize_scenario", "find_equilibrium",
          "run_scenario", "read_trajectory", "assemble", "assemblies", "kinematic_sweep", "plan", "kim_tables", "simulate",
          "rollout", "rollout_derivatives", "write_run", "figure_of", "replay_of", "save", "trajectory_of", "motion_of", "view",
          "plan_move", "excite", "attach", "tvlqr", "casadi_function", "symbolic", "casadi_right_hand_side", "to_device"}


def test_every_function_is_in_a_group():
    functions = {name for name in ld.__all__ if callable(getattr(ld, name)) and not isinstance(getattr(ld, name), type)}
    grouped = [name for group in compile_ahead.GROUPS.values() for name in group]
    assert len(grouped) == len(set(grouped))
    assert functions == set(grouped) | OTHERS and not set(grouped) & OTHERS


def test_the_command_offers_the_groups():
    assert (*compile_ahead.GROUPS, "all") == command.GROUPS


@pytest.fixture
def nothing_runs(monkeypatch):
    """Run nothing and list the steps only."""
    monkeypatch.setattr(compile_ahead, "_call", lambda *args: None)
    monkeypatch.setattr(compile_ahead, "_run", lambda *args: None)
    monkeypatch.setattr(ld, "assemble", lambda *args: None)


@pytest.mark.parametrize("what, robot, groups", [
    (None, None, ["dynamics", "simulate"]), (None, "panda.yaml", ["dynamics", "simulate"]),
    (None, "four_bar.yaml", ["dynamics", "simulate", "loops"]), ("derivatives", "four_bar.yaml", ["derivatives"]),
    (["loops", "dynamics"], None, ["dynamics", "loops"]), ("all", None, list(compile_ahead.GROUPS))])
def test_which_groups_are_compiled(nothing_runs, what, robot, groups):
    done = ld.warmup(what, robot=robot and ROBOTS / robot)
    assert list(dict.fromkeys(step.group for step in done.steps)) == groups


@pytest.mark.parametrize("group", compile_ahead.GROUPS)
def test_each_group_runs(group):
    """Each function is called once for one state and once for a batch."""
    done = ld.warmup(group)
    assert {step.group for step in done.steps} == {group} and all(step.seconds >= 0 for step in done.steps)
    assert set(compile_ahead.GROUPS[group]) <= {step.function for step in done.steps}
    assert done.files > 0 and done.size > 0 and Path(done.cache).is_dir()


def test_unknown_groups_are_refused(nothing_runs):
    with pytest.raises(ld.LiedynError, match=r"unknown group of functions 'dynamic': expected one of dynamics, .*, all"):
        ld.warmup(["dynamic"])
    result = run("warmup", "--what", "dynamic")
    assert result.exit_code == 2 and "'dynamic' is not one of 'dynamics'" in result.stderr


def test_the_command(nothing_runs):
    result = ok("warmup", ROBOTS / "four_bar.yaml", "--json")
    report = json.loads(result.stdout)
    assert report["files"] >= 0 and Path(report["cache"]).is_dir()
    assert ("loops", "mobility") in [(step["group"], step["function"]) for step in report["steps"]]
    assert f"; the cache {report['cache']} holds {report['files']} compiled functions" in result.stderr
    assert ok("warmup", "-q").stderr == ""
    assert "  inverse_dynamics (dynamics)\n" in ok("warmup", "-v").stderr
    result = run("warmup", ROBOTS / "no_robot.yaml")
    assert result.exit_code == 2 and "no_robot.yaml' does not exist" in result.stderr


LATER = """
import sys
import numpy as np
import liedyn as ld
from liedyn.numba_tools import compile_cache
written = []
compile_cache._write = lambda path, content: written.append(path)
model = ld.load(sys.argv[1])
x = np.ones(model.nv)
ld.regressor(model, x, x, x), ld.slotine_li_regressor(model, x, x, x, x), ld.energy_regressor(model, x, x)
print(written)
"""


def test_a_later_process_compiles_nothing(tmp_path):
    environment = os.environ | {"LIEDYN_CACHE_DIR": str(tmp_path), "LIEDYN_CODE": "generic"}     # lines are those of a robot
    done = subprocess.run([sys.executable, "-m", "liedyn", "warmup", "--what", "parameters", "--json"], env=environment,
                          capture_output=True, text=True, timeout=900, check=True)
    report = json.loads(done.stdout)
    assert report["cache"] == str(tmp_path)
    assert report["files"] == sum(path.is_file() for path in tmp_path.rglob("*")) > 0
    assert report["size"] == sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert "once:" not in done.stderr                                      # stages of warmup say what is compiled, and only they
    done = subprocess.run([sys.executable, "-c", LATER, ROBOTS / "cart_pole.yaml"], env=environment, capture_output=True,
                          text=True, timeout=600, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_state_of_a_batch_is_the_state_repeated():
    model = ld.load(ROBOTS / "cart_pole.yaml")
    seen = []

    def function(model, q, v_derivatives, link=None):
        seen.append((q, v_derivatives))
    compile_ahead._call(function, model, np.array([0.1, 0.2]), ((), (3,)))
    assert [q.shape for q, _ in seen] == [(2,), (3, 2)] and [v.shape for _, v in seen] == [(2, 2), (3, 2, 2)]
