"""Orders and drift of the integrators under constraints."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from integrators.problems import free_motion
from liedyn.integrators.problem import ConstraintOptions, Options
from liedyn.integrators.solve import SCIPY_METHODS, solve
from liedyn.io.robots.robot_yaml import read_robot_yaml
from loop_zoo import CLOSURES, looped_of, motion
from simulation.constrained import FOUR_BAR, HANGING

NO_DRIVES = np.zeros(0, dtype=np.int64)
EXACT = Options("dopri5", rtol=1e-13, atol=1e-14)


def model_of(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("robots") / "robot.yaml"
    path.write_text(text)
    return ld.build(read_robot_yaml(path))


@pytest.fixture(scope="module")
def linkage(tmp_path_factory):
    """Return a four-bar with a moving crank, and its problem whose constraints are projected."""
    model = model_of(tmp_path_factory, FOUR_BAR)
    q = ld.assemble(model, [1.0, -0.5, 1.5], fixed=["crank"]).q
    v = ld.project_velocity(model, q, [4.0, 0.0, 0.0], prescribed=[True, False, False])
    return model, replace(free_motion(model, q, v), constraints=ConstraintOptions(NO_DRIVES))


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    """Return a fast free body on a ball closure: its charts are not vector spaces."""
    model = model_of(tmp_path_factory, HANGING.replace(", driven: true", ""))
    q = ld.assemble(model, fixed=[]).q
    v = ld.project_velocity(model, q, [1.5, -2.0, 3.0, 0.0, 0.0, 0.0])
    return model, replace(free_motion(model, q, v), constraints=ConstraintOptions(NO_DRIVES))


def end_error(model, record, reference):
    dq = ld.difference(model, reference.q[-1], record.q[-1])
    return max(np.abs(dq).max(), np.abs(record.v[-1] - reference.v[-1]).max())


def largest_error(model, problem, options, ends=(0.6, 0.8, 1.0)):
    """Return the maximum over several durations: at a single one, the error may change its sign with the step."""
    times = [np.array([0.0, end]) for end in ends]
    return max(end_error(model, solve(problem, t, options)[0], solve(problem, t, EXACT)[0]) for t in times)


@pytest.mark.parametrize("name", ["linkage", "pendulum"])
@pytest.mark.parametrize("method, order, steps", [("rk4", 4, (1 / 50, 1 / 100, 1 / 200)),
                                                  ("dopri5", 5, (1 / 25, 1 / 50, 1 / 100))])
def test_projection_keeps_the_order(request, name, method, order, steps, worst):
    """Position and velocity satisfy the constraints, and the error decreases with the order of the method."""
    model, problem = request.getfixturevalue(name)
    options = [Options(method, h, 1.0, 1.0, h) for h in steps]
    errors = [largest_error(model, problem, one) for one in options]
    slope = np.log2(errors[0] / errors[-1]) / np.log2(steps[0] / steps[-1])
    worst(f"{method} under projection: order below {order} by", order - slope, name)
    assert slope > order - 0.3, errors                        # more where the projection takes the larger part of the error off
    assert solve(problem, np.array([0.0, 1.0]), options[0])[0].residual.max() < 1e-10


def test_constraint_forces_have_the_order_of_the_state(linkage):
    """Multipliers are functions of the state, so they have at least its order."""
    _, problem = linkage
    times = np.array([0.0, 1.0])
    reference = solve(problem, times, EXACT)[0].multipliers[-1]
    errors = [np.abs(solve(problem, times, Options("rk4", h))[0].multipliers[-1] - reference).max() for h in (0.02, 0.01, 0.005)]
    assert np.log2(errors[0] / errors[-1]) / 2 > 3.7, errors


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_scipy_goes_back_onto_the_constraints(pendulum, method):
    model, problem = pendulum
    times = np.linspace(0, 1, 11)
    reference = solve(problem, times, EXACT)[0]
    record, statistics = solve(problem, times, Options(method, rtol=1e-8, atol=1e-10))
    assert record.residual.max() < 1e-11
    assert statistics.loops.drift < 1e-6                         # of one step; of LSODA since its last restart
    assert end_error(model, record, reference) < 2e-5


def test_the_drift_that_is_told_is_that_before_a_projection(linkage):
    """One step with projection starts as one without, and returns to the constraints."""
    _, problem = linkage
    step = np.array([0.0, 0.02]), Options("rk4", 0.02)
    free = solve(replace(problem, constraints=ConstraintOptions(NO_DRIVES, 0.0)), *step)[0].residual[-1, 0]
    record, statistics = solve(problem, *step)
    assert free > 1e-9 and record.residual.max() < 1e-12
    assert statistics.loops.drift == pytest.approx(free, rel=1e-6)


def test_without_projection_the_drift_has_the_order_too(linkage):
    """It is not rounding for a linkage. A body on a ball closure, whose charts are rotations about it, has no drift."""
    _, problem = linkage
    drifts = [solve(replace(problem, constraints=ConstraintOptions(NO_DRIVES, 0.0)), np.array([0.0, 1.0]),
                    Options("rk4", h))[0].residual[-1, 0]
              for h in (0.01, 0.005)]
    assert 3.5 < np.log2(drifts[0] / drifts[1]) < 5.5 and drifts[1] > 1e-11, drifts


def test_energy_of_conservative_mechanisms_over_a_long_run(linkage, pendulum, worst):
    """In 20 s with rk4 and 1 ms, the energy is constant to 1e-8 of the exchanged energy, the residual to rounding."""
    for name, (model, problem) in (("linkage", linkage), ("pendulum", pendulum)):
        record, _ = solve(problem, np.linspace(0, 20, 201), Options("rk4", 1e-3))
        kinetic, potential = ld.energy(model, record.q, record.v)
        total = kinetic + potential
        assert worst("energy of mechanisms over 20 s", np.abs(total - total[0]).max() / np.ptp(kinetic), name) < 1e-8
        assert worst("residual over 20 s", record.residual[:, 0].max(), name) < 1e-11


@pytest.mark.parametrize("name", CLOSURES)
def test_every_closure_in_trees_of_every_joint(name, worst, monkeypatch):
    """Random trees of screws, ball and free joints with passive forces: closed, and in balance with what those take away."""
    monkeypatch.setenv("LIEDYN_CODE", "generic")               # code of eleven robots takes 15 s to compile
    case = looped_of(name)
    q, v, _, _ = motion(case)
    problem = replace(free_motion(case.model, q, v), constraints=ConstraintOptions(NO_DRIVES))
    record, _ = solve(problem, np.linspace(0, 0.1, 11), Options("dopri5", rtol=1e-9, atol=1e-11))
    kinetic, potential = ld.energy(case.model, record.q, record.v)
    balance = kinetic + potential - record.supplied_energy
    scale = np.ptp(kinetic) + np.ptp(potential) + np.ptp(record.supplied_energy)
    assert worst("residual of closures in runs", record.residual.max(), name) < 1e-10 * (1 + np.abs(record.v).max())
    assert worst("energy of closures in runs", np.abs(balance - balance[0]).max() / scale, name) < 1e-6


def test_a_model_with_loops_may_run_as_an_open_tree(linkage):
    """Without `constraints` the constraints are left out."""
    model, problem = linkage
    record, statistics = solve(replace(problem, constraints=None), np.array([0.0, 0.5]), Options("rk4", 1e-3))
    assert statistics.loops is None and record.multipliers.shape == (2, 0)
    assert np.abs(ld.constraint_residual(model, record.q[-1])).max() > 1e-2
