"""Rollouts with contacts: as the simulation of one scenario, at rest under the weight, with a note where they are too stiff."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.model.description import Coordinate, Joint, Link, Robot
from simulate.test_rollout_adjoint import differences

QUADRUPED = "robots/quadruped.yaml"
SOFT = {"links": {"*_foot": {"sphere": {"radius": 0.0175}}}, "creep": 0.1, "sink": 0.003}


@pytest.fixture(scope="module")
def stands():
    """The quadruped above its feet, and servos that hold its legs."""
    model = ld.load(QUADRUPED)
    q = model.neutral()
    q[model.q_index("base")] = 0, 0, 0.31, 0, 0, 0, 1
    for leg in ("FL", "FR", "HL", "HR"):
        q[model.q_index(f"{leg}_hip")], q[model.q_index(f"{leg}_knee")] = 0.8, -1.6
    legs = np.arange(model.nv) >= 6
    return model, q, ld.Feedback.pd(np.where(legs, 100.0, 0.0), np.where(legs, 4.0, 0.0), q)


def test_a_run_is_that_of_the_scenario(stands, worst):
    model, q, servos = stands
    found = ld.rollout(model, q, np.zeros(model.nv), dt=5e-4, steps=120, every=10, contacts=SOFT, feedback=servos)
    pd = {"torque": {"pd": {"kp": 100, "kd": 4, "target": 0}}}
    run = ld.simulate(QUADRUPED, duration=0.06, output_step=0.005, integrator={"method": "rk4", "step": 5e-4}, contacts=SOFT,
                      initial={"q": {"base": [0, 0, 0.31, 0, 0, 0, 1], "*_hip": 0.8, "*_knee": -1.6}},
                      joints={"base": {"torque": 0}, "*_abd": pd} | {
                          pattern: {"torque": {"pd": {"kp": 100, "kd": 4, "target": x}}}
                          for pattern, x in (("*_hip", 0.8), ("*_knee", -1.6))})
    assert run.contacts.force[-1].min() > 5.0
    for what in ("q", "v"):
        x, y = getattr(found, what), getattr(run, what)
        assert worst("rollout with contacts", np.abs(x - y).max() / np.abs(y).max(), what) < 1e-11
    assert found.contacts.names == run.contacts.names
    for what in ("force", "depth", "slip", "centre"):
        x, y = (np.nan_to_num(getattr(motion, what)) for motion in (found.contacts, run.contacts))
        assert worst("rollout: contacts", np.abs(x - y).max() / np.abs(y).max(), what) < 1e-9


def test_feet_carry_the_weight_of_each_variant(stands, worst):
    model, q, servos = stands
    heavy = ld.load(QUADRUPED, gravity=(0, 0, -12.0))
    found = ld.rollout(ld.Variants([model, heavy]), np.tile(q, (2, 1)), np.zeros(model.nv), dt=5e-4, steps=6000, every=6000,
                       method="semi_implicit", contacts=SOFT, feedback=servos, forces=True)
    mass = sum(link.mass for link in model.description.links)
    total = found.contacts.force[:, -1].sum(axis=1)
    # what still moves: creep, so that the centre of mass accelerates a little
    assert worst("weight on the feet", np.abs(total / (mass * np.array([9.81, 12.0])) - 1.0).max()) < 1e-3
    assert found.a.shape == (2, 2, model.nv) and found.notes == ()


def test_a_cost_changes_as_the_adjoint_says(stands, worst):
    """Feet on the ground, with slip; contact begins smoothly."""
    model, q, servos = stands
    rng = np.random.default_rng(0)
    q, steps = q.copy(), 20
    q[2] = 0.295
    v, tau = rng.uniform(-0.1, 0.1, model.nv), rng.standard_normal((steps, model.nv))
    x = rng.standard_normal((3, *tau.shape))
    d_v = rng.standard_normal((steps + 1, model.nv))
    options = {"dt": 5e-4, "steps": steps, "method": "semi_implicit", "contacts": SOFT | {"smooth": 2e-3}, "feedback": servos}
    first = ld.rollout(model, q, v, tau, **options)
    assert (first.contacts.force > 1.0).all()
    found = first.adjoint(None, d_v)

    def cost(e):
        run = ld.rollout(model, ld.integrate(model, q, e * x[0, 0]), v + e * x[1, 0], tau + e * x[2], **options)
        return (d_v * run.v).sum()
    rate = found.q0 @ x[0, 0] + found.v0 @ x[1, 0] + (found.tau * x[2]).sum()
    expected = differences(cost, 1e-5)
    assert worst("adjoint with contacts", abs(rate - expected) / abs(expected)) < 1e-8
    assert np.isfinite(found.gain).all() and np.abs(found.gain).max() > 0.0


def test_a_step_that_is_too_long_is_said(stands):
    model, q, servos = stands
    stiff = ld.rollout(model, q, np.zeros(model.nv), dt=5e-4, steps=400, every=10, feedback=servos, method="semi_implicit",
                       contacts={"links": SOFT["links"]})
    assert "the contact of" in stiff.notes[0] and "semi_implicit is not stable there with steps over" in repr(stiff)
    gains = ld.Feedback.pd([1e5, 0.0], [0.0, 0.0], [0.0, 0.0])
    hard = ld.rollout(ld.load("robots/double_pendulum.yaml"), [0.1, 0.0], [0.0, 0.0], dt=2e-2, steps=3, feedback=gains)
    assert "springs or gains of" in hard.notes[0]


@pytest.mark.parametrize(("contacts", "error", "message"), [
    (3, ld.UsageError, "contacts is a mapping as in a scenario; found int"),
    ({"links": {"paw": {"sphere": {"radius": 0.02}}}}, ld.ScenarioError, "paw"),
    ({"links": {"*_foot": {"sphere": {"radius": -1}}}}, ld.ScenarioError, "radius"),
    ({"link": {}}, ld.ScenarioError, "link")])
def test_what_is_refused(stands, contacts, error, message):
    model, q, _ = stands
    with pytest.raises(error, match=message):
        ld.rollout(model, q, np.zeros(model.nv), dt=1e-3, steps=1, contacts=contacts)


def falling(mass, gravity=9.81):
    """A body that falls onto the ground along z, and one that swings on it."""
    links = (Link("body", mass, inertia=(0.1, 0, 0, 0.1, 0, 0.1)),
             Link("arm", 0.2 * mass, inertia=(0.01, 0, 0, 0.01, 0, 0.01)))
    joints = (Joint("z", "prismatic", "world", "body", axes=((0.0, 0.0, 1.0),), coordinates=(Coordinate(),)),
              Joint("swing", "continuous", "body", "arm", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate(),)))
    return ld.build(Robot("falling", links=links, joints=joints, gravity=(0.0, 0.0, -gravity)))


FALLING = {"dt": 1e-3, "steps": 200, "contacts": {"links": {"body": {"sphere": {"radius": 0.1}}}, "sink": 0.01, "smooth": 2e-3}}


@pytest.mark.parametrize("masses", [(1.0, 3.0), (3.0, 1.0)])
def test_each_variant_sinks_under_its_own_weight(masses):
    """With a stiffness proportional to the weight, the motion does not depend on the mass; the force is proportional to it."""
    runs = ld.rollout(ld.Variants([falling(m) for m in masses]), [0.12, 0.1], [0.0, 0.0], **FALLING)
    assert np.abs(runs.q[0] - runs.q[1]).max() < 1e-12
    force = runs.contacts.force[:, -1, 0] / masses
    assert force[0] > 1.0 and abs(force[0] / force[1] - 1.0) < 1e-10
    stiff = FALLING | {"contacts": FALLING["contacts"] | {"stiffness": 1200.0}}
    del stiff["contacts"]["sink"]
    runs = ld.rollout(ld.Variants([falling(m) for m in masses]), [0.12, 0.1], [0.0, 0.0], **stiff)
    alone = [ld.rollout(falling(m), [0.12, 0.1], [0.0, 0.0], **stiff) for m in masses]
    assert np.abs(runs.q - [run.q for run in alone]).max() < 1e-12 and np.abs(runs.q[0] - runs.q[1]).max() > 1e-3


def test_the_adjoint_includes_the_stiffness_that_the_weight_gives(worst):
    """Inertias do not act here: no mass changes the motion; gravity changes it as differences show."""
    runs = ld.rollout(falling(2.0), [0.12, 0.1], [0.0, 0.0], **FALLING)
    d_q = np.zeros((201, 2))
    d_q[-1, 0] = 1.0
    body, arm, gravity = runs.adjoint(d_q, parameters=["mass.body", "mass.arm", "gravity.z"]).parameters
    assert abs(body) < 1e-12 and abs(arm) < 1e-12
    expected = -differences(lambda e: ld.rollout(falling(2.0, 9.81 + e), [0.12, 0.1], [0.0, 0.0], **FALLING).q[-1, 0])
    assert worst("adjoint with respect to gravity, with sink", abs(gravity / expected - 1.0)) < 1e-8
    weightless = ld.rollout(falling(2.0, 0.0), [0.12, 0.1], [0.0, 0.0], **FALLING)
    with pytest.raises(ld.UsageError, match=r"no derivative by 'gravity.z': without gravity, the stiffness of contacts"):
        weightless.adjoint(d_q, parameters=["gravity.z"])
