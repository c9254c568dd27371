"""Contact of links with each other and with planes that links carry; the smooth form; touch and lift as events."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from complex_step import Reference
from contact_law import contact_wrenches, derivative
from liedyn.analysis.operating_point import prepare
from liedyn.dynamics.finite_differences import extrapolated_derivative
from liedyn.errors import ScenarioError
from liedyn.integrators.contact_forces import contact_forces, materials
from liedyn.integrators.segment import RightHandSide
from liedyn.io.scenarios.scenario import Contact, Pair, Plane, Rule, Scenario, Shape
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.kernels.simulation.contact import MATERIAL_SIZE
from liedyn.simulation.control.law_derivatives import wrench_force_jacobian
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.run import run_scenario
from messages import has_parts
from zoo import model_of

TIGHT = {"method": "dopri5", "rtol": 1e-12, "atol": 1e-13}
# two bodies in space, the second given against the first; the first is hit off its centre of mass
BODIES = """
base: floating
links: {a: {mass: 2.0, com: [0.01, 0.02, 0], inertia: [0.01, 0.012, 0.015]}, b: {mass: 1.0, inertia: [0.004, 0.004, 0.004]}}
joints: {fly: {type: free, parent: a, child: b}}
"""
# a table that a drive moves, with a tray on a tilted hinge, and a ball
TABLE = """
links:
  ball: {shape: {sphere: {radius: 0.1}}, mass: 2.0}
  table: {mass: 3.0, inertia: [0.1, 0.1, 0.1]}
  tray: {mass: 1.0, com: [0.1, 0, 0], inertia: [0.01, 0.02, 0.03]}
joints:
  fly: {type: free, parent: world, child: ball}
  lift: {type: prismatic, parent: world, child: table, axis: [0, 0, 1]}
  hinge: {type: revolute, parent: table, child: tray, axis: [0, 1, 0.2], origin: {xyz: [0.5, 0, 0.1], rpy: [0.1, 0, 0]}}
"""
G = 9.81


def evaluated(problem, q, v):
    """Return wrenches by link."""
    rhs, work, nv = RightHandSide(problem, problem.signals), problem.workspace(), problem.model.nv
    y, K = np.r_[np.zeros(nv), v, 0.0], np.zeros((2, 2 * nv + 1))
    assert rhs.evaluate(0.0, q.copy(), y, K, 0, work) == 0
    return dict(zip((problem.model.link_names[k] for k in problem.forced_links), work.wrench.reshape(-1, 6).copy(), strict=True))


def of_two(scenario, **contacts):
    return scenario(BODIES, gravity=[0, 0, 0], duration=0.6, output_step=0.01, integrator=TIGHT,
                    initial={"q": {"fly": [0.3, 0.05, 0.02, 0, 0, 0, 1]},
                             "v": {"base": [0.3, 0.2, 0.5, 0.4, 0, 0], "fly": [0, 0, 0, -0.6, 0, 0]}},
                    contacts={"links": {"a": {"sphere": {"radius": 0.1}}, "b": {"capsule": {"radius": 0.08, "length": 0.02}}},
                              "planes": {}, "pairs": [["a", "b"]], "friction": 0.5, "stiffness": 1e5, **contacts})


@pytest.mark.parametrize("form", [{}, {"smooth": 1e-4}], ids=["law", "smooth"])
def test_two_bodies_collide_in_space_and_keep_their_momentum(scenario, form, worst):
    run = run_scenario(of_two(scenario, **form), {"events": {"hit": {"when": "touch(a, b)", "do": "record"},
                                                             "off": {"when": {"lift": "b"}, "do": "record"}}})
    momentum = np.array([ld.momentum(run.model, q, v) for q, v in zip(run.q, run.v, strict=True)])
    assert run.contacts.names == ("a.b.1", "a.b.2") and run.contacts.force.max() > 10 and run.contacts.slip.max() > 0.1
    assert worst("momentum of a pair", np.abs(momentum - momentum[0]).max()) < 1e-12        # of the integration
    assert run.check["energy_balance_relative"] < 1e-9
    # both events are rows twice, at which the depth passes zero
    assert [event.name for event in run.events] == ["hit", "off"]
    deepest = run.contacts.depth.max(axis=1)
    for event in run.events:
        before, after = np.flatnonzero(run.t == event.t)
        speed = np.abs(np.diff(deepest)[before - 1] / np.diff(run.t)[before - 1])
        assert worst("time of touch and lift", abs(deepest[after]) / speed) < 1e-12
        assert deepest[before] == deepest[after]


def pile(scenario, **contacts):
    """Return a ball on a tray, a plane of the world, and the ball in contact with a sphere of the hinge."""
    return prepare(scenario(
        TABLE, initial={"q": {"fly": [0.55, 0.05, 0.26, 0.1, 0.2, 0.3, 0.927361849549570], "lift": 0.05, "hinge": 0.2},
                        "v": {"fly": [0.3, 0.2, 0.1, 0.1, -0.3, -0.2], "lift": 0.4, "hinge": -0.7}},
        contacts={"links": {"ball": {"sphere": {"radius": 0.1}},
                            "tray": {"capsule": {"radius": 0.05, "length": 0.2}, "at": [0, 0.1, 0.04]}},
                  "planes": {"top": {"link": "tray", "point": [0, 0, 0.03], "normal": [0.1, 0, 1]},
                             "ground": {"point": [0, 0, 0.21]}},
                  "pairs": [["ball", "tray"]], "stiffness": 1e4, "damping": 0.3, **contacts}), ())


def only(problem, which):
    """Return the problem with these contacts only; the others have no stiffness."""
    material = problem.contacts.material.reshape(-1, MATERIAL_SIZE).copy()
    material[~which, 0] = 0.0
    return replace(problem, contacts=problem.contacts._replace(material=material.reshape(-1)))


FORMS = [{}, {"smooth": 0.2}, {"smooth": 0.2, "exponent": 1}]


@pytest.mark.parametrize("form", FORMS, ids=["law", "smooth", "smooth, linear"])
def test_action_and_reaction_and_their_slopes(scenario, form, worst):
    """Forces on both links cancel in the world and are those of `contact_forces`; derivatives are those of differences."""
    setup = pile(scenario, **form)
    problem, model, q, v = setup.problem, setup.model, setup.problem.q, setup.problem.v
    at = contact_forces(model, problem.contacts, q[None], v[None])
    assert set(problem.contacts.kind[at.force[0] > 0]) == {0, 1, 2}              # the ground, a plane of a link, a pair
    total = np.zeros(6)
    for link, F in evaluated(only(problem, problem.contacts.kind > 0), q, v).items():
        T = ld.link_pose(model, q, link)
        f = T[:3, :3] @ F[3:]
        total += np.r_[T[:3, :3] @ F[:3] + np.cross(T[:3, 3], f), f]
    assert worst("action and reaction", np.abs(total).max() / at.force.max()) < 1e-13
    _, _, mu, e, *_ = materials(problem.contacts)
    for j in range(len(mu)):
        slip = at.slip[0, j]
        f = at.force[0, j] * (at.normal[0, j] - mu[j] * slip / np.sqrt(slip @ slip + e[j]**2))
        found = evaluated(only(problem, np.arange(len(mu)) == j), q, v)[model.link_names[problem.contacts.link[j]]]
        assert np.abs(found - np.r_[np.cross(at.point[0, j], f), f]).max() < 1e-11 * (1 + at.force.max())
    links = [model.link_names[k] for k in problem.forced_links]
    still = evaluated(problem, q, v)

    def force(x):
        there = ld.integrate(model, q, x[:model.nv])
        wrench = evaluated(problem, there, v + x[model.nv:])
        return sum(ld.jacobian(model, q, link).T @ (wrench[link] - still[link]) for link in links)

    expected = np.column_stack([extrapolated_derivative(lambda h, x=x: force(h * x), 2e-3)[0] for x in np.eye(2 * model.nv)])
    found = wrench_force_jacobian(problem, 0.0, q, v)
    assert worst("slopes of contacts of links", np.abs(found - expected).max() / np.abs(expected).max()) < 1e-11


@pytest.mark.parametrize("form", FORMS, ids=["law", "smooth", "smooth, linear"])
def test_slopes_of_contacts_of_links_are_those_of_a_complex_step(scenario, form, worst):
    """Of a law of NumPy's own: spheres on a plane of the world, on one that a link carries, and of two links."""
    setup = pile(scenario, **form)
    problem, model, q, v = setup.problem, setup.model, setup.problem.q, setup.problem.v
    links, push = [model.link_names[k] for k in problem.forced_links], []
    for x in np.eye(2 * model.nv):
        dq, dv = np.split(x, 2)
        F = contact_wrenches(Reference(model, q, v, dq=dq, dv=dv), problem.contacts)
        push.append(sum(ld.jacobian(model, q, link).T @ derivative(F[model.link_index(link)]) for link in links))
    for link, found in evaluated(problem, q, v).items():
        assert np.abs(found - np.real(F[model.link_index(link)])).max() < 1e-12 * (1 + np.abs(F).max())
    found, push = wrench_force_jacobian(problem, 0.0, q, v), np.column_stack(push)
    assert worst("slopes of contacts of links, complex step", np.abs(found - push).max() / np.abs(push).max()) < 1e-12


def test_slopes_of_links_that_turn_with_one_hand_are_those_of_a_complex_step(worst):
    """Their wrenches cancel in the joints below the hand, whereas their changes in link frames do not."""
    model, rng = model_of("revolute"), np.random.default_rng(2)
    *_, hand, palm, finger = model.link_names
    ends = tuple(Rule(name, (Shape("sphere", (0.6,), (0.1, 0.2, 0.3)),)) for name in (hand, palm, finger))
    pairs = Pair((palm, finger)), Pair((hand, finger))
    contact = Contact(ends, (Plane("carried", (0.0, 0.0, 1.0), (0.1, 0.2, 1.0), palm),), (("stiffness", 10.0),), pairs)
    problem = compile_schedule(Scenario("robot", 1.0, 0.1, contacts=contact), model).problem
    q, v, push = ld.random_configuration(model, rng), rng.standard_normal(model.nv), []
    for x in np.eye(2 * model.nv):
        dq, dv = np.split(x, 2)
        F = derivative(contact_wrenches(Reference(model, q, v, dq=dq, dv=dv), problem.contacts))
        push.append(sum(ld.jacobian(model, q, name).T @ F[model.link_index(name)] for name in (hand, palm, finger)))
    found, push = wrench_force_jacobian(problem, 0.0, q, v), np.column_stack(push)
    assert np.abs(push[0]).max() > 0.1 and set(problem.contacts.kind) == {1, 2}
    assert worst("slopes of contacts of links, complex step", np.abs(found - push).max() / np.abs(push).max()) < 1e-12


def test_a_ball_rides_on_a_table_that_is_driven(scenario, worst):
    """The table has a constant upward acceleration, which adds to the ball's weight."""
    run = run_scenario(scenario(TABLE, duration=1.5, output_step=0.01, integrator={"method": "dopri5"},
        initial={"q": {"fly": [0.5, 0, 0.199, 0, 0, 0, 1]}},
        joints={"lift": {"prescribe": {"position": "0.6*t**2"}}, "hinge": {"prescribe": {"position": 0}}},
        contacts={"links": {"ball": {"sphere": {"radius": 0.1}}}, "planes": {"deck": {"link": "table", "point": [0, 0, 0.1]}},
                  "stiffness": 2 * G / 1e-3**1.5}))
    assert worst("ball on a driven table", abs(run.contacts.force[-1, 0] / (2 * (G + 1.2)) - 1)) < 1e-6
    assert run.q[-1, 2] > 1.0 and run.contacts.centre is not None and np.isnan(run.contacts.centre).all()
    assert run.check["energy_balance_relative"] < 1e-7


ADAPTIVE = {"rtol": 1e-10, "atol": 1e-12}


@pytest.mark.parametrize("method, when", [
    ({"method": "rk4", "step": 1e-3}, "touch(ball)"), ({"method": "dopri5"} | ADAPTIVE, {"touch": "ball"}),
    ({"method": "dop853"} | ADAPTIVE, "touch(b*, floor)"), ({"method": "rodas5p"} | ADAPTIVE, "touch( ball )"),
    ({"method": "Radau"} | ADAPTIVE, "touch(ball, floor)")], ids=str)
def test_a_falling_ball_touches_at_its_time_and_changes_the_phase(scenario, method, when, worst):
    """t = sqrt(2 h / g); then a brake holds the drive, which moved freely before, and the run continues through the bounce."""
    run = run_scenario(scenario(
        TABLE, duration=0.25, output_step=0.05, integrator=method, initial={"q": {"fly": [2, 0, 0.3, 0, 0, 0, 1]}},
        joints={"lift": {"prescribe": {"acceleration": 0}}, "hinge": {"prescribe": {"acceleration": 0}}},
        phases={"falls": {}, "lies": {"joints": {"lift": {"prescribe": {"acceleration": 2}}}}},
        contacts={"links": {"ball": {"sphere": {"radius": 0.1}}}, "planes": {"floor": {}}, "sink": 0.01},
        events={"hit": {"when": when, "do": {"phase": "lies"}, "once": True}}))
    t = np.sqrt(2 * 0.2 / G)
    assert [(event.name, event.phase) for event in run.events] == [("hit", "lies")]
    assert worst("time of a touch", abs(run.events[0].t - t), method["method"]) < 1e-12
    assert run.v[-1, run.model.v_index("lift")] == pytest.approx(2 * (0.25 - t), rel=1e-9)
    before, after = np.flatnonzero(run.t == run.events[0].t)
    assert np.abs(run.contacts.depth[[before, after], 0]).max() < 1e-12 and run.contacts.force[-1, 0] > 0


def test_touch_and_lift_are_written_as_they_are_read(scenario, tmp_path):
    given = of_two(scenario, smooth=1e-4) | {"events": {"hit": {"when": {"touch": "a"}, "do": "record"},
                                                        "off": {"when": "lift(a , b)", "do": {"record": True}}}}
    plain = to_plain(scenario_of(given, ()), tmp_path)
    assert plain["events"]["hit"]["when"] == "touch(a)" and plain["events"]["off"]["when"] == "lift(a, b)"
    assert plain["events"]["off"]["direction"] == "falling" and plain["contacts"]["pairs"] == [["a", "b"]]
    again = scenario_of(plain | {"robot": given["robot"]}, ())
    assert again.events == scenario_of(given, ()).events and again.contacts == scenario_of(given, ()).contacts


@pytest.mark.parametrize("contacts, events, message", [
    ({"pairs": [["a", "c"]]}, {}, "no such link: expected one of a, b, got 'c'"),
    ({"pairs": [["a", "a"]]}, {}, "the link a cannot touch itself"),
    ({"pairs": [["a"]]}, {}, "contacts.pairs[0]: expected a list of 2 names of links, got ['a']"),
    ({"links": {"a": {"sphere": {"radius": 0.1}}}}, {}, "the link b of a pair has no shape"),
    ({"planes": {"deck": {"link": "c"}}}, {}, "no such link: expected one of a, b, got 'c'"),
    ({"smooth": 0}, {}, "contacts.smooth: out of range … got 0"),
    ({}, {"when": "touch(c)"}, "no such link: expected one of a, b, got 'c'"),
    ({}, {"when": "touch(a, ground)"}, "no such plane or link: expected one of b, a, got 'ground'"),
    ({}, {"when": "touch()"}, "expected touch(link), lift(link), touch(link, plane) or touch(link, link)"),
    ({}, {"when": {"hit": "a"}}, "events.hit.when.hit: unknown key: expected one of touch, lift"),
    ({}, {"when": {"touch": "a", "lift": "a"}}, "expected an expression, or touch(link)"),
    ({}, {"when": "lift(a)", "value": 1}, "value does not apply to touch and lift"),
])
def test_what_cannot_touch_is_told(scenario, contacts, events, message):
    with pytest.raises(ScenarioError) as caught:
        prepare(of_two(scenario, **contacts), {"events": {"hit": {**events, "do": "record"}}} if events else ())
    assert has_parts(str(caught.value), message) and "\n" not in str(caught.value)
