"""The generalized-alpha method: order in positions, velocities and multipliers, stiffness, redundant constraints, every drive."""
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.operating_point import prepare
from liedyn.errors import ComputationError, UsageError
from liedyn.integrators.generalized_alpha import method_parameters
from liedyn.integrators.problem import Options
from liedyn.integrators.solve import solve

ROBOTS = Path(__file__).parents[2] / "robots"
TIGHT = Options("dopri5", rtol=1e-11, atol=1e-12)


def alpha(step, rho=0.9) -> Options:
    return Options("generalized_alpha", step=step, rho=rho)


@pytest.fixture
def write(tmp_path):
    def file(robot: str, scenario: str = "") -> Path:
        if "\n" in robot:
            (tmp_path / "robot.yaml").write_text(robot)
            robot = tmp_path / "robot.yaml"
        else:
            robot = ROBOTS / f"{robot}.yaml"
        (tmp_path / "s.yaml").write_text(f"robot: {robot}\nduration: 1\noutput_step: 0.1\n{scenario}")
        return tmp_path / "s.yaml"
    return file


PD = "{torque: {pd: {kp: 3, kd: 0.2, target: \"-2.2 + 0.3*sin(4*t)\"}}}"
CASES = {
    "five-bar": ("five_bar", "initial: {q: {left: -2.2, left_elbow: 1.3, right: -0.9, right_elbow: -1.3}}\n"
                 f"joints: {{left: {PD}}}\n", 4e-3),
    "slider-crank": ("slider_crank", "initial: {v: {crank: 4.0}}\n", 2e-3),
    "overconstrained": ("bennett", "initial: {q: {pin_1: 1.0, pin_2: 2.3, pin_3: -1.0}, v: {pin_1: 0.5}}\n", 4e-3),
    "prescribed and driven by forces": ("five_bar", """initial: {q: {left: -2.2, left_elbow: 1.3, right: -0.9, right_elbow: -1.3}}
joints: {right: {prescribe: {position: "-0.9 + 0.2*sin(3*t)**2"}}}
external_forces: [{link: tool, frame: local_world_aligned, wrench: [0, 0, 0, "0.3*cos(5*t)", 0, 0.1]}]
""", 4e-3),
    "platform": ("stewart", "", 4e-3),
    "rolling": ("rolling_disc", "", 4e-3),
    "free tree": ("""base: floating
links:
  body: {mass: 2, com: [0.01, 0, 0], inertia: [0.03, 0.02, 0.05]}
  arm: {mass: 0.5, com: [0, 0, -0.2], inertia: [0.01, 0.01, 0.002]}
  hand: {mass: 0.2, com: [0, 0.02, -0.05], inertia: [0.001, 0.002, 0.0015]}
joints:
  swing: {type: revolute, parent: body, child: arm, axis: [0, 1, 0], origin: {xyz: [0.1, 0, -0.1]}, stiffness: 2,
          limits: {lower: -9, upper: 9}}
  twist: {type: ball, parent: arm, child: hand, origin: {xyz: [0, 0, -0.4]}}
""", "initial: {v: {base: [1, 2, -3, 0.5, 0, 2], swing: 2, twist: [3, -1, 4]}}\n", 4e-3),
}


def off(model, ours, theirs, k=-1):
    """Return the maximum differences of q, v and the multipliers, relative to the maximum of each."""
    size = lambda x: max(np.abs(x).max(initial=0.0), 1e-6)      # noqa: E731 - at rest, rounding moves by 1e-16
    return np.array([np.abs(ld.difference(model, theirs.q[k], ours.q[k])).max() / size(theirs.q),
                     np.abs(ours.v[k] - theirs.v[k]).max() / size(theirs.v),
                     np.abs(ours.multipliers[k] - theirs.multipliers[k]).max(initial=0.0) / size(theirs.multipliers)])


@pytest.mark.parametrize("name", CASES)
def test_second_order(write, worst, name):
    robot, scenario, step = CASES[name]
    problem = prepare(write(robot, scenario)).problem
    times = np.array([0.0, 0.2, 0.4])
    truth, _ = solve(problem, times, TIGHT)
    found = [solve(problem, times, alpha(h))[0] for h in (step, step / 2, step / 4)]
    errors = np.array([off(problem.model, x, truth) for x in found])
    assert worst("generalized alpha, error", errors[-1].max(), name) < 5e-3
    order = np.log2(np.maximum(errors[1], 1e-14) / np.maximum(errors[2], 1e-14))
    for what, one, size in zip(("q", "v", "lambda"), order, errors[2], strict=True):
        assert size < 1e-9 or one > 1.7, f"{what}: order {one:.2f}, {errors[:, :]}"
    if problem.constraints is not None and name != "rolling":
        assert found[-1].residual[:, 0].max() < 1e-9


def test_the_first_step_knows_the_multipliers(write):
    """Without the shifted first alpha, lambda starts with an error of first order (measured: 1.5 after ten steps, rising)."""
    robot, scenario, _ = CASES["five-bar"]
    problem = prepare(write(robot, scenario)).problem
    times = np.array([0.0, 0.02])
    truth, _ = solve(problem, times, TIGHT)
    errors = [off(problem.model, solve(problem, times, alpha(h))[0], truth)[2] for h in (4e-3, 2e-3, 1e-3)]
    assert np.log2(errors[1] / errors[2]) > 1.4


def test_balance_of_the_record(write, worst):
    """The recorded rows satisfy the equations of motion with their multipliers; prescribed coordinates have their forces."""
    robot, scenario, _ = CASES["prescribed and driven by forces"]
    problem = prepare(write(robot, scenario)).problem
    record, _ = solve(problem, np.linspace(0, 0.5, 6), alpha(1e-3))
    model = problem.model
    f_ext = np.zeros((6, len(model.link_names), 6))
    f_ext[:, problem.forced_links] = record.wrench.reshape(6, -1, 6)
    A = ld.constraint_jacobian(model, record.q)
    tree = model.spanning_tree()
    tau = ld.inverse_dynamics(tree, record.q, record.v, record.a, f_ext=f_ext) - np.einsum("nrk,nr->nk", A, record.multipliers)
    assert worst("generalized alpha, balance", np.abs(tau - record.tau).max() / np.abs(record.tau).max()) < 1e-8
    np.testing.assert_allclose(record.q[:, 2], -0.9 + 0.2 * np.sin(3 * record.t)**2, atol=1e-14)


def test_stiff_springs(write, worst):
    """A pendulum on a spring 3e4 times faster than its swing moves as a rigid one, with steps of many oscillations."""
    def pendulum(stiffness, joint):
        return f"""
links: {{arm: {{mass: 0.1, inertia: [0.001, 0.001, 0.001]}}, bob: {{mass: 1, inertia: [0.01, 0.01, 0.01]}}}}
joints:
  swing: {{type: continuous, parent: world, child: arm, axis: [0, 1, 0]}}
  bar: {{type: {joint}, parent: arm, child: bob, origin: {{xyz: [0, 0, -1]}}{stiffness}}}
"""
    stiff = "1.0e+10"
    soft = prepare(write(pendulum(f", axis: [0, 0, 1], stiffness: {stiff}, limits: {{lower: -1, upper: 1}}", "prismatic"),
                         "initial: {q: {swing: 1.0}}\n")).problem
    times = np.array([0.0, 1.0])
    record, statistics = solve(soft, times, alpha(5e-3, rho=0.5))
    model = soft.model
    rigid = prepare(write(pendulum("", "fixed"), "initial: {q: {swing: 1.0}}\n")).problem
    truth, _ = solve(rigid, times, TIGHT)
    assert np.sqrt(float(stiff)) * 5e-3 > 100
    assert statistics.evaluations < 6 * statistics.steps
    assert worst("generalized alpha, stiff", abs(record.q[-1, 0] - truth.q[-1, 0])) < 1e-3
    assert abs(record.q[-1, 1]) < 1e-6 and model.nv == 2


def test_breaks_and_damping(write):
    """The force jumps. Motion is damped with rho = 0 and not with rho = 1; both are of second order."""
    scenario = CASES["five-bar"][1] + "external_forces: [{link: tool, wrench: [0, 0, 0, 1, 0, 0], from: 0.1}]\n"
    problem = prepare(write("five_bar", scenario)).problem
    times = np.array([0.0, 0.05, 0.25])
    truth, _ = solve(problem, times, TIGHT)
    for rho in (0.0, 0.5, 1.0):
        errors = [off(problem.model, solve(problem, times, alpha(h, rho))[0], truth)[:2].max()
                  for h in (4e-3, 2e-3)]
        assert errors[1] < 1e-2 and np.log2(errors[0] / errors[1]) > 1.6


def test_an_open_tree_stays_open(write):
    """The constraints of a model do not act in a problem without constraints."""
    problem = replace(prepare(write("five_bar", CASES["five-bar"][1])).problem, constraints=None)
    record, _ = solve(problem, np.array([0.0, 0.2]), alpha(1e-3))
    truth, _ = solve(problem, np.array([0.0, 0.2]), TIGHT)
    np.testing.assert_allclose(record.q, truth.q, atol=1e-4)
    assert np.abs(ld.constraint_residual(problem.model, record.q[-1])).max() > 1e-3


def test_errors(write):
    with pytest.raises(UsageError, match="rho, the spectral radius at infinity, must lie between 0 and 1, got"):
        method_parameters(1.5, 1e-3)
    problem = prepare(write("five_bar", CASES["five-bar"][1].replace(PD, '{torque: "1/(0.1 - t)"}'))).problem
    with pytest.raises(ComputationError):
        solve(problem, np.array([0.0, 0.2]), alpha(1e-2))


def test_a_break_at_an_output_but_for_rounding_is_no_step():
    """The step of 3e-17 s between them did not converge."""
    scenario = {"robot": "robots/five_bar.yaml", "duration": 0.2, "joints": {"left": {"torque": "0.1*step(t-0.15)"}},
                "integrator": {"method": "generalized_alpha"}}
    rough, fine = (ld.run_scenario({**scenario, "output_step": step}) for step in (0.05, 0.1))
    assert rough.t[3] != 0.15 and rough.t[3] == pytest.approx(0.15, abs=1e-15)
    np.testing.assert_allclose(rough.q[-1], fine.q[-1], atol=1e-9)
