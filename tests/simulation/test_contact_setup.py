"""Contact of links with planes: against the law's own solutions, closed forms, balances, differences."""
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import liedyn as ld
from complex_step import Reference
from contact_law import contact_wrenches, derivative
from differences import by_each
from liedyn.analysis.linearize import linearize_scenario
from liedyn.analysis.operating_point import prepare
from liedyn.integrators.contact_forces import contact_forces, materials
from liedyn.integrators.diagnosis import fastest_motion
from liedyn.integrators.problem import Options, SegmentStart
from liedyn.integrators.scipy_solvers import SolverStepper
from liedyn.integrators.segment import RightHandSide
from liedyn.io.scenarios.scenario import Contact, Plane, Rule, Scenario, Shape
from liedyn.simulation.control.law_derivatives import wrench_force_jacobian
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.run import run_scenario
from zoo import model_of

STANDS = Path(__file__).parents[2] / "configs" / "quadruped_stands.yaml"
G = 9.81
BALL = "base: floating\nlinks: {ball: {shape: {sphere: {radius: 0.1}}, mass: 2.0}}"
BLOCK = "base: floating\nlinks: {block: {shape: {box: [0.4, 0.4, 0.2]}, mass: 2.0}}"
TIGHT = {"method": "dopri5", "rtol": 1e-12, "atol": 1e-13}


def ball(scenario, height=0.3, **material):
    return scenario(BALL, output_step=0.01, integrator=TIGHT, initial={"q": {"base": [0, 0, height, 0, 0, 0, 1]}},
                    contacts={"links": {"ball": {"sphere": {"radius": 0.1}}}, **material})


@pytest.mark.parametrize("material", [
    {}, {"exponent": 1, "damping": 0.5}, {"exponent": 2, "sink": 1e-4, "damping": 0.1}, {"stiffness": 1e6, "damping": 0}])
def test_a_ball_bounces_as_the_law_itself_says(scenario, material, worst):
    """Height and speed are compared with the equation of one coordinate, integrated by SciPy at 1e-13."""
    run = run_scenario(ball(scenario, **material))
    n, c = material.get("exponent", 1.5), material.get("damping", 2.0)
    k = material.get("stiffness", 2 * G / material.get("sink", 1e-3)**n)

    def law(t, y):
        d = max(0.1 - y[0], 0.0)
        return y[1], max(k * d**n * (1 - c * y[1]), 0.0) / 2 - G

    reference = solve_ivp(law, (0, 1), [0.3, 0.0], method="DOP853", rtol=1e-13, atol=1e-13, max_step=1e-3, t_eval=run.t).y
    assert worst("bouncing ball", np.abs(run.q[:, 2] - reference[0]).max(), str(material)) < 1e-8
    assert np.abs(run.v[:, 5] - reference[1]).max() < 1e-6
    assert run.v[:, 5].max() > 0.1                                               # it did bounce
    assert run.check["energy_balance_relative"] < 1e-9


def test_a_ball_without_damping_comes_back_and_with_damping_loses_what_the_law_takes(scenario):
    """First integral of the law: with u = -d' after and w = d' before, (c w - log(1 + c w)) = -c u - log(1 - c u)."""
    for c in (0.0, 0.3):
        run = run_scenario(ball(scenario, damping=c, sink=1e-6), {"duration": 0.21, "output_step": 1e-5})
        first = np.argmax(run.contacts.force[:, 0] > 0)
        left = first + np.argmax(run.contacts.force[first:, 0] == 0)
        w, u = math.sqrt(2 * G * 0.2), run.v[left, 5]
        if c == 0.0:
            assert u == pytest.approx(w, rel=1e-3)                               # the weight acts during contact, too
        else:
            assert c * w - math.log1p(c * w) == pytest.approx(-c * u - math.log1p(-c * u), rel=0.02)


def test_a_resting_ball_sinks_by_the_stated_depth(scenario):
    run = run_scenario(ball(scenario, 0.1, sink=2e-3), {"duration": 4})
    assert run.contacts.depth[-1, 0] == pytest.approx(2e-3, rel=1e-8)
    assert run.contacts.force[-1, 0] == pytest.approx(2 * G, rel=1e-8)
    assert run.contacts.centre[-1] == pytest.approx([0, 0, -2e-3], abs=1e-10)


def on_slope(scenario, angle, speed, **material):
    """Return a block on a plane that falls along x, at its depth at rest."""
    s, c = math.sin(angle), math.cos(angle)
    at = (0.1 - 1e-3 * c**(1 / 1.5)) * np.array([s, 0, c])
    return scenario(BLOCK, initial={"q": {"base": [*at, 0, math.sin(angle / 2), 0, math.cos(angle / 2)]},
                                    "v": {"base": [0, 0, 0, speed, 0, 0]}},
                    contacts={"links": {"block": {"box": [0.4, 0.4, 0.2]}}, "planes": {"slope": {"normal": [s, 0, c]}},
                              **material})


def test_a_block_slides_down_with_the_acceleration_of_coulomb(scenario, worst):
    angle, mu = 0.5, 0.3
    run = run_scenario(on_slope(scenario, angle, 2.0, friction=mu, friction_speed=1e-4),
                       {"duration": 4, "integrator.method": "dopri5", "integrator.rtol": 1e-10})
    along = run.v[:, 3:] @ [1, 0, 0]                                     # body axes: the block lies on the slope
    late = run.t > 3
    acceleration = np.diff(along[late]) / np.diff(run.t[late])
    expected = G * (math.sin(angle) - mu * math.cos(angle))
    assert worst("sliding block", np.abs(acceleration - expected).max()) < 1e-6
    assert run.contacts.names[0] == "block.1" and (run.contacts.force[-1] > 0).sum() == 4


def test_a_block_that_sticks_creeps_as_slowly_as_stated(scenario):
    """At a share s of the maximum friction it creeps at e s / sqrt(1 - s^2): below e up to s = 0.7."""
    angle, mu, e = 0.3, 0.6, 1e-3
    run = run_scenario(on_slope(scenario, angle, 0.0, friction=mu, friction_speed=e), {"duration": 3})
    s = math.tan(angle) / mu
    assert "rodas5p" in str(run.warnings[0]) and "contact of block" in str(run.warnings[0])
    slip = run.contacts.slip[-1][run.contacts.force[-1] > 0]
    assert (slip < e).all()
    assert slip == pytest.approx(np.full(4, e * s / math.sqrt(1 - s * s)), rel=1e-4)
    columns = {name: x[-1] for name, _, x in run.columns}
    for k in range(1, 5):
        force, tangential, used = (columns[f"contact.block.{k}.{what}"] for what in ("force", "tangential", "utilization"))
        assert used == pytest.approx(s, rel=1e-4) and tangential == pytest.approx(math.tan(angle) * force, rel=1e-4)


def test_a_rolling_ball_has_five_sevenths_of_a_sliding_one(scenario):
    """It touches the slope at its lowest point, where it creeps at the constant speed that friction requires."""
    angle = 0.2
    s, c = math.sin(angle), math.cos(angle)
    given = scenario(BALL, initial={"q": {"base": [*((0.1 - 1e-3 * c**(1 / 1.5)) * np.array([s, 0, c])), 0, 0, 0, 1]}},
                     contacts={"links": {"ball": {"sphere": {"radius": 0.1}}}, "planes": {"slope": {"normal": [s, 0, c]}}})
    run = run_scenario(given, {"duration": 3, "integrator.method": "dopri5"})
    assert run.v[-1, 3:] @ run.v[-1, 3:] > 1
    late = run.t > 2
    speed = np.linalg.norm(np.diff(run.q[late, :3], axis=0), axis=1) / np.diff(run.t[late])
    assert np.diff(speed) / np.diff(run.t[late])[1:] == pytest.approx(np.full(len(speed) - 1, 5 / 7 * G * s), rel=1e-4)


# the quadruped -------------------------------------------------------------------------------------------------------------
def test_four_feet_carry_the_weight_at_rest(worst):
    found = ld.find_equilibrium(STANDS, at=0.9)
    setup = prepare(STANDS)
    force = contact_forces(setup.model, setup.problem.contacts, found.q[None], np.zeros((1, setup.model.nv))).force[0]
    weight = G * sum(link.mass for link in setup.model.description.links)
    assert (force > 0.2 * weight).all()
    assert worst("weight on four feet", abs(force.sum() / weight - 1)) < 1e-10
    assert np.linalg.eigvals(found.system.A).real.max() < 1e-6


def test_wrenches_of_a_run_are_those_of_its_contacts(worst):
    """Their vertical forces are the normal forces."""
    run = run_scenario(STANDS, {"duration": 0.5})
    f_ext = np.zeros((len(run.t), len(run.model.link_names), 6))
    for k, link in enumerate(run.forced_links):
        f_ext[:, run.model.link_index(link)] = run.wrench[:, k]
    world = np.zeros(len(run.t))
    for link in run.forced_links:
        R = ld.link_pose(run.model, run.q, link)[:, :3, :3]
        world += np.einsum("nj,nj->n", R[:, 2], f_ext[:, run.model.link_index(link), 3:])
    assert worst("normal forces", np.abs(world - run.contacts.force.sum(axis=1)).max() / 100) < 1e-12


def test_energy_balance_of_a_landing(worst):
    run = run_scenario(STANDS, {"duration": 0.3, "integrator": TIGHT})
    assert run.contacts.force.max() > 50
    assert worst("balance of a landing", run.check["energy_balance_relative"]) < 1e-9


def test_columns_of_contacts():
    run = run_scenario(STANDS, {"duration": 0.1})
    units = {name: unit for name, unit, _ in run.columns if name.startswith("contact.FL_foot")}
    assert units == {"contact.FL_foot.force": "N", "contact.FL_foot.depth": "m", "contact.FL_foot.slip": "m/s",
                     "contact.FL_foot.tangential": "N", "contact.FL_foot.utilization": ""}
    columns = {name: x for name, _, x in run.columns}
    assert columns["cop.x"][0] == 0.0 and columns["cop.x"][-1] == run.contacts.centre[-1, 0] != 0.0
    assert np.isnan(run.contacts.centre[0]).all() and np.isfinite(run.contacts.centre[-1]).all()
    assert {"FL_foot", "FR_foot", "HL_foot", "HR_foot"} < set(run.forced_links)


# the state of an awkward robot ---------------------------------------------------------------------------------------------
def awkward():
    """Return feet, a box and a capsule on two tilted planes."""
    return prepare(STANDS, {"initial.q.base.2": 0.29, "contacts": {
        "links": {"*_foot": {"sphere": {"radius": 0.0175}},
                  "body": {"box": [0.3, 0.2, 0.62], "rpy": [0.1, 0.2, 0.3], "exponent": 2},
                  "FL_thigh": [{"capsule": {"radius": 0.02, "length": 0.2}, "at": [0, 0, -0.1]}, {"point": [0, 0, -0.3]}]},
        "planes": {"ground": {"normal": [0.1, 0.05, 1]}, "wall": {"point": [0.2, 0, 0], "normal": [-2, 0, 0]}}}})


def state(setup, seed=0):
    rng, nv = np.random.default_rng(seed), setup.model.nv
    return ld.integrate(setup.model, setup.problem.q, 0.05 * rng.standard_normal(nv)), 0.3 * rng.standard_normal(nv)


def evaluated(problem, q, v):
    rhs, work, nv = RightHandSide(problem, problem.signals), problem.workspace(), problem.model.nv
    y, K = np.r_[np.zeros(nv), v, 0.0], np.zeros((2, 2 * nv + 1))
    assert rhs.evaluate(0.0, q.copy(), y, K, 0, work) == 0
    return work, K[0]


def test_wrenches_of_the_kernel_are_those_of_the_law(worst):
    setup = awkward()
    problem, (q, v) = setup.problem, state(setup)
    work, _ = evaluated(problem, q, v)
    at, expected = contact_forces(setup.model, problem.contacts, q[None], v[None]), {}
    _, _, mu, e, *_ = materials(problem.contacts)
    assert (at.force > 0).sum() > 5
    for j, link in enumerate(problem.contacts.link):
        slip = at.slip[0, j]
        f = at.force[0, j] * (at.normal[0, j] - mu[j] * slip / math.sqrt(slip @ slip + e[j]**2))
        expected[link] = expected.get(link, 0.0) + np.r_[np.cross(at.point[0, j], f), f]
    for k, link in enumerate(problem.forced_links):
        if link in expected:
            difference = np.abs(work.wrench[6 * k:6 * k + 6] - expected[link]).max()
            assert worst("wrenches of contacts", difference / (1 + at.force.max())) < 1e-12


def every_kind():
    """Return a link behind every kind of joint, deep in soft ground."""
    model = model_of("every kind, floating")
    contact = Contact((Rule("*", (Shape("sphere", (0.1,), (0.1, 0.0, 0.2)),)),),
                      (Plane("ground", (0.0, 0.0, 3.0), (0.2, 0.1, 1.0)),),
                      (("stiffness", 10.0), ("damping", 0.1), ("friction_speed", 1.0)))
    problem = compile_schedule(Scenario("robot", 1.0, 0.1, contacts=contact), model).problem
    return SimpleNamespace(model=model, problem=problem)


@pytest.mark.parametrize("setup, h", [(awkward, 1e-6), (every_kind, 1e-3)])
def test_slopes_of_contact_are_those_of_differences(setup, h, worst):
    """Of the generalized force, less what standing wrenches would give: what implicit methods and linearization are told."""
    setup = setup()
    problem, model, (q, v) = setup.problem, setup.model, state(setup, 1)
    links = [model.link_names[k] for k in problem.forced_links]
    still = evaluated(problem, q, v)[0].wrench.reshape(-1, 6)

    def force(x):
        there = ld.integrate(model, q, x[:model.nv])
        wrench = evaluated(problem, there, v + x[model.nv:])[0].wrench.reshape(-1, 6)
        return sum(ld.jacobian(model, q, link).T @ (F - F0) for link, F, F0 in zip(links, wrench, still, strict=True))

    found, expected = wrench_force_jacobian(problem, 0.0, q, v), by_each(force, 2 * model.nv, h)
    assert worst("slopes of contacts", np.abs(found - expected).max() / np.abs(expected).max()) < 1e-8    # rounding / h


def slopes_by_complex_step(setup, q, v):
    """Wrenches of contacts, the derivative by [dq; dv] of the generalized force that they give less what they would give standing
    still in their links' frames, and that of the accelerations."""
    model, problem = setup.model, setup.problem
    work, _ = evaluated(problem, q, v)
    links = [model.link_names[k] for k in problem.forced_links]
    J, push, answer = {link: ld.jacobian(model, q, link) for link in links}, [], []
    for x in np.eye(2 * model.nv):
        dq, dv = np.split(x, 2)
        F = contact_wrenches(Reference(model, q, v, dq=dq, dv=dv), problem.contacts)
        F, dF = np.real(F), derivative(F)
        push.append(sum(J[link].T @ dF[model.link_index(link)] for link in links))
        there = Reference(model, q, v, dq=dq, dv=dv, f_ext=F, df_ext=dF)
        dtau = law_of(problem, x)
        answer.append(there.hybrid(work.a, work.tau, problem.prescribed, dtau=dtau, passive=problem.passive)[2])
    return F, np.column_stack(push), np.column_stack(answer)


def law_of(problem, x):
    """Return the derivatives of pd laws with constant targets."""
    dq, dv = np.split(x, 2)
    return np.where(problem.schedule.target >= 0, -problem.schedule.kp * dq - problem.schedule.kd * dv, 0.0)


@pytest.mark.parametrize("setup", [awkward, every_kind])
def test_slopes_of_contact_are_those_of_a_complex_step(setup, worst):
    """Of a law of NumPy's own, and of the accelerations by equations of motion in complex numbers: what implicit methods and
    linearization are told, to rounding."""
    setup = setup()
    problem, model, (q, v) = setup.problem, setup.model, state(setup, 1)
    F, push, answer = slopes_by_complex_step(setup, q, v)
    work, _ = evaluated(problem, q, v)
    for k, link in enumerate(problem.forced_links):
        assert np.abs(work.wrench[6 * k:6 * k + 6] - F[link]).max() < 1e-12 * (1 + np.abs(F).max())
    found = wrench_force_jacobian(problem, 0.0, q, v)
    assert worst("slopes of contacts, complex step", np.abs(found - push).max() / np.abs(push).max()) < 1e-12
    problem = replace(problem, q=q)
    run = SolverStepper(problem, SegmentStart(0.0, q, v), np.array([0.0, 1.0]), Options("Radau"))
    nv = model.nv
    J = run.evaluate_jacobian(0.0, np.r_[np.zeros(nv), v, 0.0])[nv:2 * nv, :2 * nv]
    assert worst("Jacobian of contacts, complex step", np.abs(J - answer).max() / np.abs(answer).max()) < 1e-12


def test_linearization_in_contact_is_that_of_a_complex_step(worst):
    """A quadruped has just landed, and slides and sinks on its feet."""
    found, setup = linearize_scenario(STANDS, at=0.1), prepare(STANDS)
    q, v, nv = found.here.q, found.here.v, setup.model.nv
    _, _, answer = slopes_by_complex_step(setup, q, v)
    assert (contact_forces(setup.model, setup.problem.contacts, q[None], v[None]).force > 0).sum() >= 2
    assert worst("linearization in contact, complex step",
                 np.abs(found.system.A[nv:] - answer).max() / np.abs(answer).max()) < 1e-12


def test_linearization_of_a_resting_ball_is_a_damped_spring(scenario):
    """m dz'' = -n k d^(n-1) dz - c m g dz', and k d^n = m g; tangential friction is a damper mu m g / e."""
    A = ld.find_equilibrium(ball(scenario, 0.099, damping=1.5)).system.A
    assert A[11, 5] == pytest.approx(-1.5 * G / 1e-3, rel=1e-9)
    assert A[11, 11] == pytest.approx(-1.5 * G, rel=1e-9)
    assert A[9, 9] == pytest.approx(-0.8 * G / 1e-3, rel=1e-9)


def test_linearization_of_a_standing_robot_agrees_with_differences(worst):
    """The steps of the differences of `--verify` are small relative to depth and creep."""
    found = linearize_scenario(STANDS, at=0.9, verify=True).differences
    assert worst("linearization in contact", found["A"].off) < 1e-9
    assert found["A"].doubt < 1e-5


def test_how_fast_a_contact_acts(scenario):
    """For a ball: friction mu N / e over the inertia at a point of its surface, and the spring of its normal direction."""
    setup = prepare(ball(scenario, damping=0.0), ())
    problem, rest = setup.problem, np.zeros(6)
    assert fastest_motion(problem, 0.0, problem.q, rest).rate == pytest.approx(0.8 * G / 1e-3 * 3.5, rel=1e-9)
    assert fastest_motion(problem, 0.0, problem.q, rest, False).rate == 0.0                         # it is in the air
    smooth = prepare(ball(scenario, damping=0.0, friction=0.0), ()).problem
    assert fastest_motion(smooth, 0.0, smooth.q, rest).rate == pytest.approx(math.sqrt(1.5 * G / 1e-3), rel=1e-9)


def test_a_mechanism_falls_on_the_ground(worst):
    """Contact forces act through the loop of a five-bar, and their work is part of the balance."""
    run = run_scenario(STANDS.parent / "five_bar_swing.yaml", {
        "duration": 0.6, "output_step": 0.02,
        "contacts": {"links": {"tool": {"sphere": {"radius": 0.02}}}, "planes": {"table": {"point": [0, 0, 0.35]}}}})
    assert run.contacts.force.max() > 5 and run.drift.max() < 1e-11
    assert worst("balance of a mechanism in contact", run.check["energy_balance_relative"]) < 1e-8
    assert run.check["inverse_dynamics_residual"] < 1e-10


def test_a_payload_makes_contacts_no_stiffer(scenario):
    """A ball at rest doubles its mass: it sinks deeper by the law, and its force is twice its weight."""
    run = run_scenario(ball(scenario, 0.099), {"duration": 3, "events": {"load": {"at": 0.5, "do": {"attach": {
        "link": "ball", "mass": 2.0, "com": [0, 0, 0], "inertia": [0.01, 0.01, 0.01]}}}}})
    assert run.contacts.force[-1, 0] == pytest.approx(4 * G, rel=1e-6)
    assert run.contacts.depth[-1, 0] == pytest.approx(1e-3 * 2**(1 / 1.5), rel=1e-6)
    assert run.check["energy_balance_relative"] < 1e-8
