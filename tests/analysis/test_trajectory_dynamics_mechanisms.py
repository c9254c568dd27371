"""Dynamics of mechanisms along trajectory files."""
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from liedyn.analysis.recorded_robot import robot_of
from liedyn.analysis.trajectory_dynamics import dynamics_along
from liedyn.dynamics.constraints.constrained_inverse import constrained_inverse_derivatives, constrained_inverse_dynamics
from liedyn.dynamics.constraints.constraints import constraint_velocity
from liedyn.errors import ComputationError, TrajectoryError, UsageError
from liedyn.io.trajectory_csv import read_trajectory
from liedyn.model.model import build
from liedyn.report.run_folder import write_run
from liedyn.robot_files import load
from liedyn.simulation.run import run_scenario
from liedyn.simulation.trajectory_columns import WRENCH

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return runs of five-bars with two and with three motors."""
    folder, out = tmp_path_factory.mktemp("runs"), {}
    for name in ("five_bar", "five_bar_redundant"):
        result = run_scenario(ROOT / f"configs/{name}.yaml", ["duration=0.5", "output_step=0.005"])
        write_run(result, folder / name, plots=False)
        motion = read_trajectory(folder / name / "trajectory.csv")
        out[name] = result, motion, robot_of(motion)[0]
    return out


def without_actuated(model):
    """Return the robot of a file that does not state which joints have motors."""
    return build(replace(model.description, actuated=()))


def columns(along, kind, names):
    found = {name: x for name, _, x in along.columns}
    return np.column_stack([found[f"{kind}.{name}"] for name in names])


def test_inverse_gives_back_the_motors_forces(recorded):
    result, motion, model = recorded["five_bar"]
    along = dynamics_along(model, motion, "inverse", actuated=["left", "right"])
    scale = np.abs(result.tau).max()
    assert np.abs(columns(along, "tau", model.v_names) - result.tau).max() < 1e-9 * scale
    loop, = model.description.loops
    names = [f"{loop.name}.{part}" for part in WRENCH]
    assert np.abs(columns(along, "reaction", names) - result.reactions[:, 0]).max() < 1e-9 * np.abs(result.reactions).max()
    assert {name: x for name, _, x in along.columns}["drift"].max() < 1e-10
    taken = dynamics_along(without_actuated(model), motion, "inverse")
    assert "actuated joints (those with forces in the trajectory): left, right" in [one.message for one in taken.warnings]


def test_the_robot_file_says_which_joints_are_actuated(recorded):
    result, motion, model = recorded["five_bar"]
    assert model.actuated == ("left", "right")
    along = dynamics_along(model, motion, "inverse")
    assert np.abs(columns(along, "tau", model.v_names) - result.tau).max() < 1e-9 * np.abs(result.tau).max()
    assert "actuated-joints" not in [one.code for one in along.warnings]
    q, v, a = result.q[7], result.v[7], result.a[7]
    ours = constrained_inverse_dynamics(model, q, v, a).tau
    np.testing.assert_array_equal(ours, constrained_inverse_dynamics(model, q, v, a, ["left", "right"]).tau)
    np.testing.assert_array_equal(constrained_inverse_derivatives(model, q, v, a).dtau_da,
                                  constrained_inverse_derivatives(model, q, v, a, ["left", "right"]).dtau_da)
    with pytest.raises(UsageError, match="the actuated joints of five_bar are not known: name them, such as"):
        constrained_inverse_dynamics(without_actuated(model), q, v, a)
    other = build(replace(model.description, actuated=("left", "left_elbow")))           # the recording has a force of right
    along = dynamics_along(other, motion, "inverse")
    assert not columns(along, "tau", model.v_names)[:, 2:].any()
    message, = (one.message for one in along.warnings if one.code == "actuated-joints")
    assert message == "the trajectory has forces of right, which the robot file does not call actuated: they are not used"


def test_redundant_motors_need_a_criterion(recorded):
    result, motion, model = recorded["five_bar_redundant"]
    with pytest.raises(ComputationError, match="least_torque"):
        dynamics_along(model, motion, "inverse")
    least = columns(dynamics_along(model, motion, "inverse", criterion="least_torque"), "tau", model.v_names)
    assert (np.linalg.norm(least, axis=1) < np.linalg.norm(result.tau, axis=1)).all()
    assert not least[:, model.v_index("right_elbow")].any()


def test_forward_and_hybrid_obey_the_constraints(recorded):
    result, motion, model = recorded["five_bar"]
    scale = np.abs(result.a).max()
    for along in (dynamics_along(model, motion, "forward"), dynamics_along(model, motion, "hybrid", ["left", "right"])):
        assert np.abs(columns(along, "a", model.v_names) - result.a).max() < 1e-8 * scale


def test_positions_alone_are_enough(recorded):
    result, motion, model = recorded["five_bar"]
    bare = replace(motion, columns={name: x for name, x in motion.columns.items() if name.startswith("q.")})
    along = dynamics_along(model, bare, "inverse", actuated=["left", "right"])
    assert np.abs(columns(along, "tau", model.v_names) - result.tau)[5:-5].max() < 1e-3 * np.abs(result.tau).max()
    along = dynamics_along(model, bare, "inverse")
    assert np.abs(columns(along, "tau", model.v_names) - result.tau)[5:-5].max() < 1e-3 * np.abs(result.tau).max()
    with pytest.raises(UsageError, match="name its actuated joints by the option --actuated"):
        dynamics_along(without_actuated(model), bare, "inverse")


def test_rounded_positions_are_enough(recorded):
    """Differentiation magnifies rounding: velocities that violate the constraints caused an error about another robot."""
    result, motion, model = recorded["five_bar"]
    rounded = {name: x.round(6) for name, x in motion.columns.items() if name.startswith("q.")}
    bare = replace(motion, columns=rounded)
    forced = replace(motion, columns=rounded | {name: x for name, x in motion.columns.items() if name.startswith("tau.")})
    for of, given, actuated in (("inverse", bare, ["left", "right"]), ("forward", forced, ())):
        along = dynamics_along(model, given, of, actuated=actuated)
        v = columns(along, "v", model.v_names)
        assert np.abs(constraint_velocity(model, columns(along, "q", model.q_names), v)).max() < 1e-12
        assert any(note.startswith("derived velocities were projected onto the constraints") for note in map(str, along.warnings))
    along = dynamics_along(model, bare, "inverse", actuated=["left", "right"])
    off = (columns(along, "tau", model.v_names) - result.tau)[5:-5]
    told, = (note for note in map(str, along.warnings) if note.startswith("estimated error of the worst column"))
    error, = re.findall(r"\(([0-9.e-]+) N m\)", told)
    assert 0.3 * float(error) < np.sqrt(np.mean(off**2, axis=0)).max() < 3.0 * float(error)


def test_given_velocities_off_the_constraints_are_an_error(recorded):
    _, motion, model = recorded["five_bar"]
    with pytest.raises(TrajectoryError, match="the velocity violates the constraints"):
        off = {**motion.columns, "v.right": motion.columns["v.right"] + 0.01}
        dynamics_along(model, replace(motion, columns=off), "inverse", actuated=["left", "right"])


def test_what_is_wrong_is_named(recorded, tmp_path):
    _, motion, model = recorded["five_bar"]
    right = motion.columns["q.right"].copy()
    right[7] += 1e-3
    with pytest.raises(TrajectoryError, match=r"the position violates the constraints: .*got 'a residual of .* in pin\.v"):
        dynamics_along(model, replace(motion, columns={**motion.columns, "q.right": right}), "inverse",
                       actuated=["left", "right"])
    with pytest.raises(UsageError, match="has no constraints"):
        dynamics_along(load(ROOT / "robots/double_pendulum.yaml"), motion_of_pendulum(tmp_path), "inverse", actuated=["shoulder"])
    with pytest.raises(UsageError, match="no moving joint matches 'hip'"):
        dynamics_along(model, motion, "inverse", actuated=["hip"])


def motion_of_pendulum(folder):
    write_run(run_scenario(ROOT / "configs/double_pendulum.yaml", ["duration=0.1"]), folder / "run", plots=False)
    return read_trajectory(folder / "run/trajectory.csv")
