"""Rollouts with contacts: as the simulation of one scenario, at rest under the weight, with a note where they are too stiff."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.model.description import Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose
from rollouts.test_rollout_adjoint import differences

QUADRUPED = "robots/quadruped.yaml"
SOFT = {"links": {"*_foot": {"sphere": {"radius": 0.0175}}}, "friction_speed": 0.1, "sink": 0.003}


@pytest.fixture(scope="module")
def stands():
    """Return the quadruped above its feet, with servos that hold its legs."""
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
    assert found.a.shape == (2, 2, model.nv) and found.warnings == ()


def test_a_cost_changes_as_the_adjoint_says(stands, worst):
    """Feet are on the ground and slip; contact begins smoothly."""
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
    assert "stiff contact of" in str(stiff.warnings[0]) and "semi_implicit is not stable there with steps over" in repr(stiff)
    gains = ld.Feedback.pd([1e5, 0.0], [0.0, 0.0], [0.0, 0.0])
    hard = ld.rollout(ld.load("robots/double_pendulum.yaml"), [0.1, 0.0], [0.0, 0.0], dt=2e-2, steps=3, feedback=gains)
    assert "dt is too long: stiff joint shoulder (gains, time constant " in str(hard.warnings[0])


def test_a_step_that_is_too_long_for_one_robot_or_gain_is_reported():
    """Only the first run was checked, so that the order of robots decided about the warning."""
    model = ld.load("robots/double_pendulum.yaml")
    robots = [model.with_changes(damping={"elbow": x}) for x in (0.1, 0.2, 1e3, 0.3)]
    arguments = [0.1, 0.0], [0.0, 0.0]
    assert not ld.rollout(ld.Variants([robots[0], robots[3]]), *arguments, dt=1e-3, steps=3).warnings
    for order, k in ((robots, 2), (robots[::-1], 1), (robots[2:], 0)):
        [warning] = ld.rollout(ld.Variants(order), *arguments, dt=1e-3, steps=3).warnings
        assert "stiff joint elbow (damping, time constant " in str(warning)
        assert f" s{f' in run {k}' if k else ''}, and rk4 is not stable" in str(warning)
    # the robot of run 3 is extreme in none of its numbers, but in their quotient
    damped = [model.with_changes(damping={"elbow": d}, mass={"lower": m}, inertia={"lower": [m * i, 0, 0, m * i, 0, m * i]})
              for d, m, i in ((3.0, 3.0, 0.1), (0.1, 1e-3, 1.0), (20.0, 9.0, 1.0), (10.0, 2e-3, 1.0), (1.0, 1.0, 0.1))]
    [warning] = ld.rollout(ld.Variants(damped), *arguments, dt=1e-3, steps=3).warnings
    assert " s in run 3, and rk4 is not stable" in str(warning)
    gains = np.zeros((3, 2, 4))
    gains[:, 0, 0] = 1.0
    for stiff in (0, 1):
        gains[1, 0, 0] = 1e8 if stiff else 1.0
        found = ld.rollout(model, np.tile(arguments[0], (3, 1)), arguments[1], dt=1e-3, steps=4,
                           feedback=ld.Feedback(gains, [0, 0]))
        assert len(found.warnings) == stiff
        if stiff:
            assert "stiff joint shoulder (gains, " in str(found.warnings[0]) and " in run 1, " in str(found.warnings[0])


@pytest.mark.parametrize(("contacts", "error", "message"), [
    (3, ld.UsageError, "contacts is a mapping as in a scenario.*got int"),
    ({"links": {"paw": {"sphere": {"radius": 0.02}}}}, ld.ScenarioError, "paw"),
    ({"links": {"*_foot": {"sphere": {"radius": -1}}}}, ld.ScenarioError, "radius"),
    ({"link": {}}, ld.ScenarioError, "link")])
def test_what_is_refused(stands, contacts, error, message):
    model, q, _ = stands
    with pytest.raises(error, match=message):
        ld.rollout(model, q, np.zeros(model.nv), dt=1e-3, steps=1, contacts=contacts)


def falling(mass, gravity=9.81):
    """Return a body that falls onto the ground along z, and one that swings on it."""
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
    with pytest.raises(ld.UsageError, match=r"no derivative with respect to 'gravity.z': without gravity, the stiffness of c"):
        weightless.adjoint(d_q, parameters=["gravity.z"])


def leg(base, joint="revolute"):
    """Return a body, a leg and a toe; the body of a fixed base slides along z."""
    links = tuple(Link(name, m, com=com, inertia=(0.02, 0, 0.001, 0.03, 0, 0.015)) for name, m, com in (
        ("body", 2.0, (0.01, 0.0, 0.02)), ("leg", 1.0, (0.0, 0.0, -0.1)), ("toe", 0.3, (0.02, 0.0, -0.01))))
    slide = (Joint("slide", "prismatic", "world", "body", axes=((0.0, 0.0, 1.0),), coordinates=(Coordinate(),)),)
    hip, ankle = (Joint(name, joint, parent, child, Pose.from_xyz_rpy(xyz), axes=((0.0, 1.0, 0.0),) if joint != "ball" else (),
                        coordinates=(Coordinate(damping=0.1),) * (3 if joint == "ball" else 1)) for name, parent, child, xyz in (
        ("hip", "body", "leg", (0.1, 0.0, -0.05)), ("ankle", "leg", "toe", (0.0, 0.0, -0.2))))
    return ld.build(Robot("leg", links, (*(slide if base == "fixed" else ()), hip, ankle), base, (0.3, 0.2, -9.81)))


POINTS = {"sphere": {"sphere": {"radius": 0.02}, "at": [0.0, 0.0, -0.03]}, "box": {"box": [0.1, 0.06, 0.1]},
          "points": [{"point": [0.03, 0.02, -0.05]}, {"point": [-0.03, 0.01, -0.05]}]}
TOUCHING = {                                                           # height of the body where they are 2 to 4 mm deep
    "body, sphere": (0.047, {"links": {"body": POINTS["sphere"]}}),
    "leg, sphere": (0.097, {"links": {"leg": POINTS["sphere"]}}),
    "toe, sphere": (0.297, {"links": {"toe": POINTS["sphere"]}}),
    "toe, points": (0.297, {"links": {"toe": POINTS["points"]}}),
    # moments are forces there
    "toe, a point at 1 m": (1.247, {"links": {"toe": {"point": [0.0, 0.0, -1.0]}}, "friction_speed": 1.0}),
    "toe, box": (0.297, {"links": {"toe": POINTS["box"]}}),
    "body and toe": (0.297, {"links": {"toe": POINTS["sphere"], "body": {"sphere": {"radius": 0.02}, "at": [0, 0, -0.28]}}}),
    "toe on a plane of the body": (0.5, {"links": {"toe": POINTS["points"]}, "planes": {"table": {
        "link": "body", "point": [0, 0, -0.297], "normal": [0, 0, 1]}}}),
    "toe on body": (0.5, {"links": {"toe": POINTS["sphere"], "body": {"sphere": {"radius": 0.1}, "at": [0.1, 0, -0.398]}},
                          "pairs": [["toe", "body"]]}),
}


METHODS = "rk4", "semi_implicit"


def touching(model, where, rng):
    """Return a configuration near the neutral one, and the contacts."""
    height, contacts = TOUCHING[where]
    q = model.neutral()
    q[2 if model.nq > 6 else 0] = height
    return ld.integrate(model, q, 0.002 * rng.uniform(-1, 1, model.nv)), {"friction_speed": 0.05} | contacts


@pytest.mark.parametrize(("where", "material", "base", "method"), [
    *((where, "sink", base, METHODS[(i + k) % 2])
      for i, base in enumerate(("fixed", "floating")) for k, where in enumerate(TOUCHING) if base == "floating" or k % 4 == 0),
    *(("toe, sphere", material, "floating", method) for material, method in (
        ("sink", "semi_implicit"), ("stiffness", "rk4"), ("stiffness", "semi_implicit")))])
def test_derivatives_with_contacts_of_any_link(where, material, base, method, worst):
    """With respect to masses, gravity, the initial state and generalized forces, against differences."""
    model, steps, rng = leg(base), 8, np.random.default_rng(3)
    q, contacts = touching(model, where, rng)
    v, tau = 0.05 * rng.standard_normal(model.nv), 0.1 * rng.standard_normal((steps, model.nv))
    options = {"dt": 2e-4, "steps": steps, "method": method,
               "contacts": contacts | ({"sink": 0.005} if material == "sink" else {"stiffness": 6e4})}
    x, (d_q, d_v) = rng.standard_normal((3, steps, model.nv)), rng.standard_normal((2, steps + 1, model.nv))
    first = ld.rollout(model, q, v, tau, **options)
    pushes, free = first.contacts.force > 0.5, first.contacts.force == 0.0
    assert (pushes.all(axis=0) | free.all(axis=0)).all() and pushes.any()           # differences meet no beginning of a contact
    links, gravity = ["body", "leg", "toe"], np.array(model.gravity)
    found = first.adjoint(d_q, d_v, [*(f"mass.{link}" for link in links), *(f"gravity.{axis}" for axis in "xyz")])

    def cost(model=model, q=q, v=v, tau=tau):
        run = ld.rollout(model, q, v, tau, **options)
        return (d_q * ld.difference(model, first.q, run.q)).sum() + (d_v * run.v).sum()
    # along one direction of all masses, and one of gravity: each difference compiles a robot
    masses, d_masses, d_gravity = np.array([2.0, 1.0, 0.3]), rng.uniform(0.5, 1.0, 3), rng.standard_normal(3)

    def robot_with(masses):
        return model.with_changes(mass=dict(zip(links, masses.tolist(), strict=True)))
    pairs = {"masses": (found.parameters[:3] @ d_masses, differences(lambda e: cost(robot_with(masses + e * d_masses)))),
             "gravity": (found.parameters[3:] @ d_gravity,
                         differences(lambda e: cost(model.with_changes(gravity=gravity + e * d_gravity)))),
             "q0": (found.q0 @ x[0, 0], differences(lambda e: cost(q=ld.integrate(model, q, e * x[0, 0])), 1e-5)),
             "v0": (found.v0 @ x[1, 0], differences(lambda e: cost(v=v + e * x[1, 0]))),
             "tau": ((found.tau * x[2]).sum(), differences(lambda e: cost(tau=tau + e * x[2])))}
    name = f"{where}, {material}, {base}, {method}"
    for what, (rate, expected) in pairs.items():
        assert worst(f"adjoint with contacts of any link: {what}", np.abs(np.subtract(rate, expected)).max()
                     / np.abs(expected).max(), name) < 1e-7                             # the rounding of differences: 1e-8


def test_the_adjoint_of_variants_with_sink_is_that_of_each(worst):
    models, rng = [leg("floating").with_changes(mass={"leg": m}) for m in (0.5, 2.0)], np.random.default_rng(4)
    q, contacts = touching(models[0], "toe, a point at 1 m", rng)
    options = {"dt": 2e-4, "steps": 8, "method": "semi_implicit", "contacts": contacts | {"sink": 0.005}}
    d_v = rng.standard_normal((2, 9, models[0].nv))
    found = ld.rollout(ld.Variants(models), q, np.zeros(models[0].nv), **options).adjoint(None, d_v)
    for k, model in enumerate(models):
        expected = ld.rollout(model, q, np.zeros(model.nv), **options).adjoint(None, d_v[k])
        for what in ("q0", "v0", "tau"):
            x, y = getattr(found, what)[k], getattr(expected, what)
            assert worst("adjoint of variants with contacts", np.abs(x - y).max() / np.abs(y).max(), what) < 1e-11


def test_the_step_is_judged_once_for_the_same_robots_and_gains(monkeypatch):
    """Whether a rollout was judged before depended on its states, and took longer than a short rollout."""
    from liedyn.rollouts import rollout_warnings
    model = ld.load("robots/double_pendulum.yaml")
    robots = ld.Variants(model, {"mass.lower": [1.0, 2.0, 3.0], "damping.*": [0.3, 0.1, 0.2]})
    laws = ld.Feedback.pd(np.array([[9.0, 8.0], [7.0, 6.0], [5.0, 9.0]]), [0.5, 0.5], [0.0, 0.0])
    judged = []
    monkeypatch.setattr(rollout_warnings, "_rate_estimates", lambda runs: judged.append(runs) or np.zeros((runs.count, 2)))
    for k in range(4):
        q = np.random.default_rng(k).uniform(-3, 3, (3, 2))
        last = ld.rollout(robots, q, np.zeros(2), dt=1e-3, steps=2, feedback=laws)
    assert len(judged) == 1
    assert not last.warnings and len(judged) == 2              # who asks for them gets those of this rollout
