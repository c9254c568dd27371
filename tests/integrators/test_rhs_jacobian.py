"""The Jacobian that implicit methods get, against extrapolated differences of the rates themselves."""
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
import zoo
from coupled_robots import coupled_robot
from integrators.problems import free_motion
from liedyn.dynamics.finite_differences import extrapolated_derivative
from liedyn.integrators.problem import Options, SegmentStart
from liedyn.integrators.rhs_jacobian import chart_jacobian
from liedyn.integrators.scipy_solvers import SolverStepper
from liedyn.io.scenarios.scenario import Constant, Expression, ExternalForce, Pd, Prescribe, Rule, Scenario, Torque
from liedyn.model.spatial import skew
from liedyn.simulation.input_schedule import compile_schedule

TIME = 0.3
ROBOTS = Path(__file__).parents[2] / "robots"


def scenario_for(model, rng) -> Scenario:
    """Every kind of drive: on joints of plain coordinates pd laws, laws of the state and prescribed motions; on a ball or free
    joint a prescribed acceleration or velocity, or torques; and pushes that read the state, in axes of the world and the link."""
    plain = [joint for joint in model.joints if joint.q.stop - joint.q.start == joint.v.stop - joint.v.start]
    rules, name = [], plain[0].name if plain else None
    link = model.link_names[-1]
    law = f"t + 0.4*x({link})*z({link}, 0.1, 0.2, 0) - 0.3*vy({link}, 0, 0.3, 0)*wz({link}) + cos(wx({link})) - 0.2*vz({link})"
    target = f"0.3*t*x({link}) + 0.2*z({link}, 0, 0.1, 0)**2*y({link})"
    if name and plain[0].v.stop - plain[0].v.start == 1:
        law, target = f"2*sin(q({name})) - 3*v({name})*v({name}) + {law}", f"{target}*sin(q({name})) + q({name})"
    law = Expression(law)
    for joint in model.joints:
        n = joint.v.stop - joint.v.start
        drives = [Torque(law), Prescribe("velocity", (Expression("sin(3*t)"),) * n),
                  Prescribe("acceleration", (Expression("cos(2*t)"),) * n)]
        if joint in plain:
            drives += [Pd(5.0, 0.5, Expression(target), law), Prescribe("position", (Expression("0.2*sin(2*t)"),) * n)]
        rules.append(Rule(joint.name, drives[rng.integers(len(drives))]))
    zero = Constant(0.0)
    pushes = tuple(ExternalForce(link, frame, (zero, law, zero, Constant(2.0), zero, law), (0.1, 0.2, -0.1))
                   for frame in FRAMES)
    return Scenario("zoo", 1.0, 0.1, joints=tuple(rules), forces=pushes)


FRAMES = "world", "local"


def differences(run, y):
    """Return the Jacobian by differences, and its possible error."""
    def rates(h, k):
        return run.evaluate_trial(TIME, y + h * np.eye(y.size)[k])[1][:-1]
    found = [extrapolated_derivative(lambda h, k=k: rates(h, k), 0.02) for k in range(y.size)]
    return (np.column_stack(columns) for columns in zip(*found, strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_jacobian_is_that_of_the_rates_on_random_trees(seed):
    """Every kind of joint, drive and law, at 0.3 rad and 0.3 m from the anchor of the chart."""
    model = ld.build(zoo.random_robot(seed, 5, base="floating" if seed % 3 == 0 else "fixed"))
    rng = np.random.default_rng(seed)
    problem = compile_schedule(scenario_for(model, rng), model).problem
    problem = replace(problem, q=ld.random_configuration(model, rng))
    run = SolverStepper(problem, SegmentStart(0.0, problem.q, problem.v), np.array([0.0, 1.0]), Options("Radau"))
    y = np.concatenate([0.3 * rng.uniform(-1, 1, model.nv), rng.standard_normal(model.nv), [0.0]])
    J = run.evaluate_jacobian(TIME, y)
    theirs, doubt = differences(run, y)
    scale = np.abs(theirs).max()
    # friction about rest has peaks 0.01 wide, which differences see less sharply: each says how sharply
    assert (np.abs(J[:-1] - theirs) <= 1e-8 * scale + 30 * doubt).all(), np.abs(J[:-1] - theirs).max() / scale
    assert not J[-1].any() and not J[:, -1].any()


def test_jacobian_without_laws_is_by_differences():
    """A problem without derivatives of its laws gets forward differences, accurate to the root of a rounding."""
    model = ld.build(zoo.random_robot(3, 4, springs=False))
    rng = np.random.default_rng(3)
    exact = free_motion(model, ld.random_configuration(model, rng), np.zeros(model.nv))
    y = np.concatenate([np.zeros(model.nv), rng.standard_normal(model.nv), [0.0]])
    def zero(problem, t, q, v):
        return (np.zeros((model.nv, 2 * model.nv)),) * 2
    A, B = (SolverStepper(problem, SegmentStart(0.0, problem.q, problem.v), np.array([0.0, 1.0]),
                       Options("BDF")).evaluate_jacobian(TIME, y)
            for problem in (exact, replace(exact, input_jacobian=zero)))
    assert np.abs(A - B).max() < 1e-5 * np.abs(B).max()


def test_jacobian_of_a_state_beyond_all_numbers_is_finite():
    """A trial step that diverged caused 'array must not contain infs or NaNs'; it keeps the previous Jacobian."""
    model = ld.build(zoo.random_robot(1, 4))
    problem = free_motion(model, model.neutral(), np.zeros(model.nv))
    run = SolverStepper(problem, SegmentStart(0.0, problem.q, problem.v), np.array([0.0, 1.0]), Options("Radau"))
    y = np.zeros(2 * model.nv + 1)
    before = run.evaluate_jacobian(TIME, y).copy()
    y[model.nv:-1] = 1e200
    assert np.array_equal(run.evaluate_jacobian(TIME, y), before) and np.isfinite(before).all()


@pytest.mark.parametrize("n", [3, 6], ids=["ball", "free"])
def test_chart_slopes_to_the_end_of_a_chart(n):
    """Up to rotations of 1.6 rad, where the solver begins a new chart; P' by differences of P v."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, v = rng.standard_normal(n), rng.standard_normal(n)
        x[:3] *= 1.6 / np.linalg.norm(x[:3])
        P, by_x = chart_jacobian(x, v)
        theirs = np.column_stack([extrapolated_derivative(lambda h, u=u, x=x, v=v: chart_jacobian(x + h * u, v)[0] @ v, 0.02)[0]
                                  for u in np.eye(n)])
        assert np.abs(by_x - theirs).max() < 1e-9
        w = np.linalg.norm(x[:3])
        A = skew(x[:3])
        turning = np.eye(3) + A / 2 + (1 - w / 2 / np.tan(w / 2)) * A @ A / w**2          # in closed form
        assert np.abs(P[:3, :3] - turning).max() < 1e-13                                  # rounding of thirty terms


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "delta", "gripper", "hand", 0, 1, 2, 3])
def test_jacobian_of_a_constrained_robot_with_an_expression_is_exact(name):
    """In directions that the constraints allow; each step projects the others."""
    path = ROBOTS / f"{name}.urdf" if name == "gripper" else ROBOTS / f"{name}.yaml"
    model = ld.load(path) if isinstance(name, str) else coupled_robot(name, "floating" if name % 2 else "fixed")
    rng = np.random.default_rng(5)
    joint = next(joint.name for joint in model.joints if joint.v.stop - joint.v.start == 1)
    law = Expression(f"t - 3*sin(q({joint})) - v({joint})/(abs(v({joint})) + 0.1)")
    scenario = Scenario("closed", 1.0, 0.1, joints=(Rule(joint, Torque(law)),))
    problem = compile_schedule(scenario, model).problem
    q = ld.project_configuration(model, ld.random_configuration(model, rng)) if isinstance(name, int) else ld.assemble(model).q
    problem = replace(problem, q=q)
    run = SolverStepper(problem, SegmentStart(0.0, problem.q, problem.v), np.array([0.0, 1.0]), Options("Radau"))
    v = ld.project_velocity(model, q, rng.standard_normal(model.nv))
    y = np.concatenate([np.zeros(model.nv), v, [0.0]])
    J = run.evaluate_jacobian(TIME, y)
    assert run.jacobian.exact
    for _ in range(3):
        x = ld.project_velocity(model, q, rng.standard_normal(model.nv))

        def moved(h, x=x):
            at = ld.project_configuration(model, ld.integrate(model, q, h * x))
            return np.concatenate([ld.difference(model, q, at), ld.project_velocity(model, at, v), [0.0]])

        def pushed(h, x=x):
            return np.concatenate([np.zeros(model.nv), v + h * x, [0.0]])

        for states in moved, pushed:
            direction, _ = extrapolated_derivative(states, 0.02)
            expected, doubt = extrapolated_derivative(lambda h, states=states: run.evaluate_trial(TIME, states(h))[1][:-1], 0.02)
            error = np.abs(J[:-1] @ direction - expected)
            assert (error <= 1e-7 * np.abs(expected).max() + 30 * doubt).all(), error.max() / np.abs(expected).max()


def test_before_any_jacobian_one_that_cannot_be_computed_is_zero():
    model = ld.load(ROBOTS / "double_pendulum.yaml")
    problem = compile_schedule(scenario_for(model, np.random.default_rng(0)), model).problem
    run = SolverStepper(problem, SegmentStart(0.0, problem.q, problem.v), np.array([0.0, 1.0]), Options("Radau"))
    y = np.full(2 * model.nv + 1, np.nan)
    assert not run.evaluate_jacobian(TIME, y).any()
    regular = run.evaluate_jacobian(TIME, np.zeros(y.size))
    assert regular.any() and np.array_equal(run.evaluate_jacobian(TIME, y), regular)
