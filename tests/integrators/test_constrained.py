"""Orders and drift of the integrators under constraints."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from integrators.problems import free_motion
from liedyn.integrators.problem import Options, Ties
from liedyn.integrators.solve import SCIPY_METHODS, solve
from liedyn.io.robot_yaml import read_robot_yaml
from simulate.constrained import FOUR_BAR, HANGING

NO_DRIVES = np.zeros(0, dtype=np.int64)
EXACT = Options("dopri5", rtol=1e-13, atol=1e-14)


def model_of(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("robots") / "robot.yaml"
    path.write_text(text)
    return ld.build(read_robot_yaml(path))


@pytest.fixture(scope="module")
def linkage(tmp_path_factory):
    """A four-bar whose crank turns: model, and its problem with the constraints kept by projection."""
    model = model_of(tmp_path_factory, FOUR_BAR)
    q = ld.assemble(model, [1.0, -0.5, 1.5], fixed=["crank"]).q
    v = ld.project_velocity(model, q, [4.0, 0.0, 0.0], prescribed=[True, False, False])
    return model, replace(free_motion(model, q, v), ties=Ties(NO_DRIVES))


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    """A free body on a ball closure, quickly turning: charts that are no vector spaces."""
    model = model_of(tmp_path_factory, HANGING.replace(", driven: true", ""))
    q = ld.assemble(model, fixed=[]).q
    v = ld.project_velocity(model, q, [1.5, -2.0, 3.0, 0.0, 0.0, 0.0])
    return model, replace(free_motion(model, q, v), ties=Ties(NO_DRIVES))


def end_error(model, record, reference):
    dq = ld.difference(model, reference.q[-1], record.q[-1])
    return max(np.abs(dq).max(), np.abs(record.v[-1] - reference.v[-1]).max())


@pytest.mark.parametrize("name", ["linkage", "pendulum"])
@pytest.mark.parametrize("method, order, steps", [("rk4", 4, (1 / 50, 1 / 100, 1 / 200)),
                                                  ("dopri5", 5, (1 / 25, 1 / 50, 1 / 100))])
def test_projection_keeps_the_order(request, name, method, order, steps, worst):
    """Position and velocity end on the constraints, and the error still falls with the order of the method."""
    model, problem = request.getfixturevalue(name)
    times = np.array([0.0, 1.0])
    reference = solve(problem, times, EXACT)[0]
    errors = []
    for h in steps:
        options = Options("rk4", h) if method == "rk4" else Options("dopri5", rtol=1.0, atol=1.0, max_step=h)
        record, statistics = solve(problem, times, options)
        assert record.residual.max() < 1e-10 and statistics.loops.drift > 1e-13
        errors.append(end_error(model, record, reference))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    worst(f"order of {method} under projection, from {order}", abs(orders[-1] - order), name)
    assert np.all(np.abs(orders - order) < 0.6) and abs(orders[-1] - order) < 0.35, orders


def test_constraint_forces_have_the_order_of_the_state(linkage):
    """Multipliers are functions of the state: theirs is the same order."""
    _, problem = linkage
    times = np.array([0.0, 1.0])
    reference = solve(problem, times, EXACT)[0].multipliers[-1]
    errors = [np.abs(solve(problem, times, Options("rk4", h))[0].multipliers[-1] - reference).max() for h in (0.02, 0.01, 0.005)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 4) < 0.5), orders


@pytest.mark.parametrize("method", SCIPY_METHODS)
def test_scipy_goes_back_onto_the_constraints(pendulum, method):
    model, problem = pendulum
    times = np.linspace(0, 1, 11)
    reference = solve(problem, times, EXACT)[0]
    record, statistics = solve(problem, times, Options(method, rtol=1e-8, atol=1e-10))
    assert record.residual.max() < 1e-11
    assert statistics.loops.drift < 1e-6                         # of one step; of LSODA since its last restart
    assert end_error(model, record, reference) < 2e-5


def test_energy_of_conservative_mechanisms_over_a_long_run(linkage, pendulum, worst):
    """20 s at rk4, 1 ms: the energy keeps to 1e-8 of what is exchanged, the residual to rounding."""
    for name, (model, problem) in (("linkage", linkage), ("pendulum", pendulum)):
        record, _ = solve(problem, np.linspace(0, 20, 201), Options("rk4", 1e-3))
        kinetic, potential = ld.energy(model, record.q, record.v)
        total = kinetic + potential
        assert worst("energy of mechanisms over 20 s", np.abs(total - total[0]).max() / np.ptp(kinetic), name) < 1e-8
        assert worst("residual over 20 s", record.residual[:, 0].max(), name) < 1e-11


def test_a_model_with_loops_may_run_as_an_open_tree(linkage):
    """Without `ties` the constraints are left out."""
    model, problem = linkage
    record, statistics = solve(replace(problem, ties=None), np.array([0.0, 0.5]), Options("rk4", 1e-3))
    assert statistics.loops is None and record.multipliers.shape == (2, 0)
    assert np.abs(ld.constraint_residual(model, record.q[-1])).max() > 1e-2
