"""Why a run ended early: what its message names."""
import math

import pytest

import liedyn as ld
from liedyn.analysis.operating_point import prepare
from liedyn.integrators.diagnosis import failure, probable_cause, worst_conditioned_motion
from liedyn.integrators.problem import Options
from liedyn.integrators.segment import evaluate_state
from liedyn.kernels.simulation.right_hand_side import NOT_FINITE

PENDULUM = """\
name: pendulum
links: {a: {mass: 1, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}, b: {mass: 1, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}}
joints:
  j: {type: continuous, parent: world, child: a, axis: [0, 1, 0]}
  k: {type: continuous, parent: a, child: b, axis: [0, 1, 0], origin: {xyz: [0, 0, -1]}}
"""


@pytest.mark.parametrize("joint", ["j", "k"])
def test_a_signal_that_is_not_finite_is_named_with_its_place(tmp_path, joint):
    (tmp_path / "pendulum.yaml").write_text(PENDULUM)
    (tmp_path / "run.yaml").write_text("robot: pendulum.yaml\nduration: 1\nintegrator: {method: rk4, step: 1.0e-2}\n"
                                       f"joints:\n  {joint}: {{torque: sqrt(0.5 - t)}}\n")
    with pytest.raises(ld.ComputationError, match=rf"run\.yaml:5: joints\.{joint}\.torque: the signal of torque of {joint} "
                                                  r"is not a finite number at or soon after t = 0\.5"):
        ld.run_scenario(tmp_path / "run.yaml")


@pytest.mark.parametrize("height, expected", [(-3.0, "; the contact of a had a penetration of 3"), (5.0, "")])
def test_the_depth_of_a_contact_is_named_where_there_is_one(tmp_path, height, expected):
    """A robot that starts below the ground is ejected."""
    (tmp_path / "ball.yaml").write_text("name: ball\nlinks: {a: {mass: 1, inertia: [0.1, 0.1, 0.1]}}\n"
                                        "joints: {z: {type: prismatic, parent: world, child: a, axis: [0, 0, 1]}}\n")
    setup = prepare({"robot": str(tmp_path / "ball.yaml"), "duration": 1, "initial": {"q": {"z": height}},
                     "contacts": {"links": {"a": {"point": [0, 0, 0]}}}})
    state = evaluate_state(setup.problem, 0.0, setup.problem.q, setup.problem.v)
    error = failure(setup.problem, NOT_FINITE, 0.5, state, None, Options())
    assert (f"{expected} m" in str(error)) if expected else "penetration" not in str(error)


@pytest.mark.parametrize("prescribed, expected, names", [
    ([], 1 - math.sqrt(0.75), ["x", "y"]), (["y"], 1.0, ["x"]), (["x"], 1.0, ["y"]), (["x", "y"], 1.0, [""])])
def test_the_motion_with_the_least_inertia(tmp_path, prescribed, expected, names):
    """Sliders along one axis, of 1 kg on 3 kg: M = [[4, -3], [-3, 3]] has eigenvalues 1 -+ 3 / sqrt(12) after scaling to unit
    inertia, if positions of the second are measured backwards."""
    (tmp_path / "robot.yaml").write_text(
        "links: {a: {mass: 1}, b: {mass: 3}}\njoints:\n"
        "  x: {type: prismatic, parent: world, child: a, axis: [1, 0, 0], limits: {lower: -9, upper: 9}}\n"
        "  y: {type: prismatic, parent: a, child: b, axis: [-1, 0, 0], limits: {lower: -9, upper: 9}}\n")
    joints = {joint: {"prescribe": {"position": 0}} for joint in prescribed}
    problem = prepare({"robot": str(tmp_path / "robot.yaml"), "duration": 1, "joints": joints}).problem
    least, coordinate = worst_conditioned_motion(problem, problem.q)
    assert least == pytest.approx(expected, rel=1e-12) and coordinate in names


@pytest.mark.parametrize("options, expected", [
    (Options(step=1.0), ""),
    (Options(step=1.5), "at rest, the forces at x have a time constant of 5.0e-01 s, too short for steps of 1.5 s"),
    (Options("Radau", step=1.5), ""), (None, "")])
def test_forces_are_too_fast_for_a_step_beyond_the_stability_limit(tmp_path, options, expected):
    """A mass of 1 kg on a spring of 4 N/m has the rate 2 1/s; rk4 is stable up to 2.8 of its inverse."""
    (tmp_path / "robot.yaml").write_text("links: {a: {mass: 1}}\njoints: {x: {type: prismatic, parent: world, child: a, "
                                         "axis: [1, 0, 0], stiffness: 4, limits: {lower: -9, upper: 9}}}\n")
    problem = prepare({"robot": str(tmp_path / "robot.yaml"), "duration": 1, "integrator": {"method": "rk4"}}).problem
    assert probable_cause(problem, options) == (expected, True)
