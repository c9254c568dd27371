"""Runs of robots with linear couplings, which the right-hand side eliminates: against the equations with multipliers."""
import numpy as np
import pytest

import liedyn as ld
from coupled_robots import coupled_robot, coupled_state, reduction
from liedyn.integrators.segment import RightHandSide
from liedyn.kernels.simulation.right_hand_side import RUNNING
from liedyn.simulation.preparation import prepare

LEVELS = {"free": "", "acceleration": "2*cos(3*t)", "velocity": "0.3*sin(3*t)", "position": "0.2*sin(3*t)**2 + {}"}


@pytest.mark.parametrize("code", ["auto", "generic"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("seed", "base"), [(3, "fixed"), (4, "floating")])
def test_rows_satisfy_the_equations_with_multipliers(seed, base, level, code, monkeypatch, worst):
    """Also if the driver of a mimic joint is prescribed, and with a wrench on a link."""
    monkeypatch.setenv("LIEDYN_CODE", code)
    model = coupled_robot(seed, base)
    q, v, _, tau = coupled_state(model, reduction(model)[0], seed)
    driver = next(joint.mimic.joint for joint in model.description.joints if joint.mimic)
    prescribed = np.array([bool(LEVELS[level]) and name == driver for name in model.v_names])
    if LEVELS[level]:                                               # it starts at rest, where its motion begins
        v = 0.0 * v
    joints = {name: {"torque": float(x)} for name, x in zip(model.v_names, tau, strict=True) if "." not in name}
    if LEVELS[level]:
        joints[driver] = {"prescribe": {level: LEVELS[level].format(float(q[model.q_names.index(driver)]))}}
    run = ld.simulate(model, duration=0.02, output_step=0.01, q0=q, v0=v, joints=joints,
                      external_forces=[{"link": model.link_names[-1], "wrench": [0.1, "t", 0, 1.0, "2*t", -3.0]}])
    wrench = np.zeros((3, len(model.link_names), 6))
    wrench[:, [model.link_names.index(name) for name in run.forced_links]] = run.wrench
    expected = ld.constrained_hybrid_dynamics(model, run.q, run.v, run.a, run.tau, prescribed, f_ext=wrench)
    for name in ("a", "tau", "multipliers"):
        x, y = getattr(run, name), getattr(expected, name)
        assert worst(f"eliminated couplings: {name}", np.abs(x - y).max() / np.abs(y).max(), f"{base}, {level}") < 1e-11
    residuals = ld.constraint_residual(model, run.q), ld.constraint_velocity(model, run.q, run.v)
    assert max(np.abs(x).max() for x in residuals) < 1e-14 and run.check["energy_balance_relative"] < 1e-6


@pytest.mark.parametrize(("keys", "is_eliminated"), [
    ({}, True),
    ({"joints": {"index_pip": {"prescribe": {"position": "0"}}}}, True),
    ({"joints": {name: {"prescribe": {"position": "0"}} for name in ("index_pip", "index_dip")}}, False),
    ({"constraints": {"stabilization": "baumgarte"}}, False),
    ({"constraints": {"stabilization": "none"}}, False)])
def test_what_is_eliminated(keys, is_eliminated):
    """A follower and its driver that are both prescribed have separate forces; open couplings need no projections."""
    problem = prepare({"robot": "robots/hand.yaml", "duration": 1, **keys}, {}).problem
    assert (problem.elimination is not None) == is_eliminated != problem.solves_constraints


@pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas5p", "Radau", "generalized_alpha"])
def test_a_located_event_keeps_the_couplings(method):
    """A step of generalized-alpha that ended at an event called a projection that the right-hand side lacked."""
    links = [ld.Link(name, mass=1, com=[0, 0, -0.5], inertia=[0.1, 0.1, 0.01]) for name in "ab"]
    joints = [ld.Joint("a", "continuous", "world", "a", axis=[0, 1, 0]),
              ld.Joint("b", "continuous", "world", "b", axis=[0, 1, 0], mimic=ld.Mimic("a", multiplier=2.0))]
    model = ld.build(ld.Robot("pendulums", links, joints))
    run = ld.simulate(model, duration=0.5, q0=[0.3, 0.6], method=method,
                      events={"low": {"when": "q(a)", "value": 0.1, "do": "record"}})
    assert [event.name for event in run.events] == ["low"] and run.events[0].t == pytest.approx(0.33576398, abs=1e-6)
    at = run.t.searchsorted(run.events[0].t)
    assert run.q[at, 0] == pytest.approx(0.1, abs=1e-9)
    assert np.abs(ld.constraint_residual(model, run.q)).max() < 1e-14


def test_a_right_hand_side_without_projection_brings_followers_back(monkeypatch):
    """The caller did that. A call of the missing projection would have ended the process."""
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    problem = prepare({"robot": "robots/hand.yaml", "duration": 1}, {}).problem
    model, rng, q = problem.model, np.random.default_rng(0), problem.q.copy()
    y, drivers = rng.standard_normal(2 * model.nv + 1), model.elimination().independent
    expected = problem.q + y[:model.nv], y[model.nv:-1].copy()
    assert RightHandSide(problem, problem.signals).bring_back(0.0, False, problem.q, y, q, problem.workspace()) == RUNNING
    for x, value in zip((q, y[model.nv:-1]), expected, strict=True):
        np.testing.assert_allclose(x[drivers], value[drivers], rtol=0, atol=1e-15)
    assert not y[:model.nv].any()
    for residual in ld.constraint_residual(model, q), ld.constraint_velocity(model, q, y[model.nv:-1]):
        assert np.abs(residual).max() < 1e-15


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_derivatives_of_rollouts_are_those_along_the_couplings(base, worst):
    """Against central differences of rollouts from neighbouring states that satisfy the couplings."""
    model = coupled_robot(5, base)
    G, _ = reduction(model)
    q, v, _, tau = coupled_state(model, G, 5)
    rng = np.random.default_rng(0)
    dq, dv, dtau, cost_q, cost_v = G @ rng.standard_normal(G.shape[1]), G @ rng.standard_normal(G.shape[1]), *rng.standard_normal(
        (3, model.nv))
    run = ld.rollout(model, q, v, tau, dt=1e-3, steps=5)
    at_end = np.zeros((2, 6, model.nv))
    at_end[:, -1] = cost_q, cost_v
    by = run.adjoint(*at_end)
    slope, h = by.q0 @ dq + by.v0 @ dv + (by.tau @ dtau).sum(), 1e-5
    ends = [ld.rollout(model, ld.integrate(model, q, s * h * dq), v + s * h * dv, tau + s * h * dtau, dt=1e-3, steps=5)
            for s in (1, -1)]
    expected = (ld.difference(model, run.q[-1], ends[0].q[-1]) - ld.difference(model, run.q[-1], ends[1].q[-1])) @ cost_q
    expected += (ends[0].v[-1] - ends[1].v[-1]) @ cost_v
    assert worst("adjoint with eliminated couplings", abs(slope - expected / (2 * h)) / abs(slope), base) < 1e-7
