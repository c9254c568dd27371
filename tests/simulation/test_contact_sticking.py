"""Contacts that stick (`stick`): closed forms of blocks and balls, several feet, other links, and changes of the world."""
from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld

G, SLOPE, MU = 9.81, math.radians(20), 0.8
NORMAL, DOWN = np.array([math.sin(SLOPE), 0, math.cos(SLOPE)]), np.array([math.cos(SLOPE), 0, -math.sin(SLOPE)])
FEET = [{"point": [x, y, 0]} for x in (-0.2, 0.2) for y in (-0.1, 0.1)]          # at the height of the centre of mass
MASS, SINK = 2.0, 1e-4
UPRIGHT = Rotation.identity()


def block(turn=UPRIGHT):
    return ld.build(ld.Robot("block", base="floating", links=[ld.Link("block", MASS, inertia=[0.01, 0.02, 0.02])],
                             gravity=turn.apply([0, 0, -G]).tolist()))


def run_on_slope(speed=0.0, turn=UPRIGHT, duration=1.0, method="rodas5p", feet=FEET, along=DOWN, scenario=None,
                 **material):
    """The motion of a block of four feet on a slope, and its velocity at the start along the slope; turn: of the world."""
    place, pose = turn.apply(-SINK * math.cos(SLOPE) * NORMAL), turn * Rotation.from_euler("y", SLOPE)
    v = [0, 0, 0, *pose.inv().apply(speed * turn.apply(along))]
    contacts = {"links": {"block": feet}, "planes": {"ramp": {"normal": turn.apply(NORMAL).tolist()}}, "friction": MU,
                "sink": SINK, "exponent": 1, "damping": 20, "stick": 1e-5, **material}
    return ld.simulate(block(turn), duration=duration, contacts=contacts, integrator=method if isinstance(method, dict) else {
        "method": method}, initial={"q": {"base": [*place, *pose.as_quat()]}, "v": {"base": v}}, **(scenario or {}))


RK4 = {"method": "rk4", "step": 1e-4}


@pytest.mark.parametrize("method", ["rodas5p", "Radau", "BDF", "LSODA", "dopri5", RK4], ids=str)
def test_a_block_on_four_feet_stays(method):
    """After its springs have relaxed, it does not move by 1e-9 m; friction of all feet is the weight along the slope."""
    run = run_on_slope(duration=2.0 if method == RK4 else 10.0, method=method, **({"stick": 1e-4} if method == RK4 else {}))
    late = run.t > 1.0
    assert np.ptp(run.q[late], axis=0).max() < 1e-9
    assert run.contacts.tangential[-1].sum() == pytest.approx(MASS * G * math.sin(SLOPE), rel=1e-6)
    assert run.contacts.utilization[-1].max() < 1.0 and run.check["energy_balance_relative"] < 1e-5
    assert not [x for x in run.warnings if x.level == "warning"]


@pytest.mark.parametrize("stick", [1e-6, 1e-7])
def test_a_block_stops_at_the_distance_of_rigid_friction(stick):
    run = run_on_slope(1.0, duration=0.5, stick=stick)
    distance = 1.0 / (2 * G * (MU * math.cos(SLOPE) - math.sin(SLOPE)))
    assert run.q[-1, :3] @ DOWN - run.q[0, :3] @ DOWN == pytest.approx(distance, abs=2 * stick)
    assert np.abs(run.v[-1]).max() < 1e-6


def test_a_block_below_the_critical_friction_slides_on():
    run = run_on_slope(1.0, friction=0.3)
    path = run.t - 0.5 * G * (0.3 * math.cos(SLOPE) - math.sin(SLOPE)) * run.t**2
    np.testing.assert_allclose((run.q[:, :3] - run.q[0, :3]) @ DOWN, path, atol=1e-5)
    np.testing.assert_allclose(run.contacts.utilization[5:], 1.0, rtol=1e-6)


def test_sliding_across_the_slope_turns_down():
    """Friction opposes the velocity, which turns: the motion of a point with friction by another integrator."""
    from scipy.integrate import solve_ivp
    across = np.cross(NORMAL, DOWN)

    def rate(_, y):
        return [y[2], y[3], *(np.array([0, G * math.sin(SLOPE)]) - 0.3 * G * math.cos(SLOPE) * y[2:] / np.hypot(*y[2:]))]
    run = run_on_slope(1.0, along=across, friction=0.3, stick=1e-6, duration=0.5)
    expected = solve_ivp(rate, (0, 0.5), [0, 0, 1, 0], rtol=1e-10, atol=1e-12).y[:2, -1]
    moved = run.q[-1, :3] - run.q[0, :3]
    np.testing.assert_allclose([moved @ across, moved @ DOWN], expected, atol=2e-3)


def test_results_turn_with_the_world():
    turn = Rotation.from_rotvec([0.4, -1.1, 0.7])
    one, other = run_on_slope(0.3, duration=0.3), run_on_slope(0.3, turn, duration=0.3)
    np.testing.assert_allclose(other.q[:, :3], turn.apply(np.array(one.q[:, :3])), atol=1e-7)
    np.testing.assert_allclose(other.contacts.tangential, one.contacts.tangential, atol=1e-4)


def test_the_order_of_feet_does_not_matter():
    one, other = run_on_slope(0.3, duration=0.3), run_on_slope(0.3, duration=0.3, feet=FEET[::-1])
    np.testing.assert_allclose(other.q, one.q, atol=1e-8)
    np.testing.assert_allclose(other.contacts.tangential, one.contacts.tangential[:, ::-1], atol=1e-4)


def test_a_static_level_holds_more_than_motion():
    """A force grows until the static level; from there on the level in motion brakes."""
    force = MASS * G * (0.9 * math.cos(SLOPE) - math.sin(SLOPE))
    push = [{"link": "block", "wrench": [0, 0, 0, *(f"{float(x) * force}*t" for x in DOWN)], "point": [0, 0, 0]}]
    run = run_on_slope(duration=1.5, friction=0.5, static_friction=0.9, friction_speed=0.01, scenario={"external_forces": push})
    speed = run.v[:, 3:] @ Rotation.from_euler("y", SLOPE).inv().apply(DOWN)
    assert speed[(run.t > 0.1) & (run.t < 0.98)].max() < 1e-3 and speed[-1] > 1.0
    a = np.gradient(speed, run.t)[-5]
    assert a == pytest.approx(force / MASS * run.t[-5] + G * (math.sin(SLOPE) - 0.5 * math.cos(SLOPE)), rel=1e-3)


def test_a_ball_rolls_down_a_slope():
    """a = 5/7 g sin(slope): the spring turns with the contact, not with the ball."""
    radius = 0.1
    ball = ld.build(ld.Robot("ball", base="floating", links=[ld.Link("ball", MASS, inertia=[0.4 * MASS * radius**2] * 3)]))
    contacts = {"links": {"ball": {"sphere": {"radius": radius}}}, "planes": {"ramp": {"normal": NORMAL.tolist()}}, "sink": 1e-5,
                "exponent": 1, "damping": 50, "stick": 1e-5, "friction": 0.4}
    run = ld.simulate(ball, duration=1.0, contacts=contacts, integrator={"method": "rodas5p"},
                      initial={"q": {"base": [*((radius - 1e-5) * NORMAL), 0, 0, 0, 1]}})
    assert (run.q[-1, :3] - run.q[0, :3]) @ DOWN == pytest.approx(5 / 14 * G * math.sin(SLOPE), rel=1e-3)
    assert run.contacts.slip[run.t > 0.2].max() < 1e-4
    assert run.contacts.tangential[-1, 0] == pytest.approx(2 / 7 * MASS * G * math.sin(SLOPE), rel=1e-3)


def test_a_block_moves_with_the_plane_of_another_link():
    tray = ld.Joint("tray", "prismatic", "world", "tray", axis=[1, 0, 0])
    joints = [tray, ld.Joint("block", "free", "world", "block", [0, 0, -SINK])]
    links = [ld.Link("tray", 1.0), ld.Link("block", MASS, inertia=[0.01, 0.02, 0.02])]
    model = ld.build(ld.Robot("tray", links=links, joints=joints))
    contacts = {"links": {"block": FEET}, "planes": {"top": {"link": "tray"}}, "friction": MU, "sink": SINK, "exponent": 1,
                "damping": 20, "stick": 1e-5}
    run = ld.simulate(model, duration=2.0, contacts=contacts, integrator={"method": "rodas5p"},
                      joints={"tray": {"prescribe": {"position": "0.1*(1 - cos(6*t))"}}, "block": {"torque": 0}})
    apart = run.q[:, 1] - run.q[:, 0]
    assert np.abs(apart).max() < 1e-4 and np.abs(run.q[:, 0]).max() > 0.19


def test_stretches_continue_after_events():
    change = {"phases": {"one": {}, "two": {}}, "events": {"x": {"at": 0.4, "do": {"phase": "two"}}}}
    one, other = run_on_slope(duration=0.8), run_on_slope(duration=0.8, scenario=change)
    np.testing.assert_allclose(other.q[-1], one.q[-1], atol=1e-9)


@pytest.mark.parametrize(("material", "message"), [
    ({"stick": None, "static_friction": 0.9}, "static_friction requires stick"), ({"static_friction": 0.5}, "is below friction"),
    ({"friction": 0.0}, "without friction cannot stick"), ({"stick": 0.0}, "stick: out of range")])
def test_wrong_materials_are_errors(material, message):
    values = {key: value for key, value in {"stick": 1e-5, **material}.items() if value is not None}
    with pytest.raises(ld.ScenarioError, match=message):
        ld.simulate(block(), duration=0.1, contacts={"links": {"block": FEET}, **values})


def test_rollouts_are_the_runs_of_simulate():
    """Also with the forces of contacts, which depend on their stretches, and beside a run that does not slide."""
    run = run_on_slope(0.3, duration=0.1, method={"method": "rk4", "step": 2e-4}, stick=1e-4, scenario={"output_step": 0.01})
    contacts = {"links": {"block": FEET}, "planes": {"ramp": {"normal": NORMAL.tolist()}}, "friction": MU,
                "sink": SINK, "exponent": 1, "damping": 20, "stick": 1e-4}
    model = block()
    runs = ld.rollout(model, run.q[0], [run.v[0], 0 * run.v[0]], dt=2e-4, steps=500, every=50, contacts=contacts)
    np.testing.assert_allclose(runs.q[0], run.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(runs.contacts.tangential[0], run.contacts.tangential, rtol=0, atol=1e-6)
    assert (runs.contacts.tangential[1, -1] < 0.9 * runs.contacts.tangential[0, 2]).all() and not runs.warnings
    with pytest.warns(ld.LiedynWarning, match=r"\(1 of 2\) begin without the stretch .* \(block\.1, block\.2, .*\[contacts-un"):
        ld.rollout(model, runs.q[:, -1], runs.v[:, -1] + [[0.0], [1e-3]], dt=2e-4, steps=2, contacts=contacts)


def test_variants_have_the_stiffness_of_their_weight():
    contacts = {"links": {"block": FEET}, "planes": {"ramp": {"normal": NORMAL.tolist()}}, "friction": MU, "sink": SINK,
                "exponent": 1, "damping": 20, "stick": 1e-4}
    pose = [*(-SINK * math.cos(SLOPE) * NORMAL), *Rotation.from_euler("y", SLOPE).as_quat()]
    masses = np.array([MASS, 1.5 * MASS])
    runs = ld.rollout(ld.Variants(block(), {"mass.block": masses}), pose, np.zeros(6), dt=5e-4, steps=1000, every=500,
                      contacts=contacts)
    np.testing.assert_allclose(runs.contacts.tangential[:, -1].sum(axis=1), masses * G * math.sin(SLOPE), rtol=1e-5)


def test_linear_systems_and_fast_rollouts_are_errors_by_name():
    contacts, model = {"links": {"block": FEET[:2]}, "stick": 1e-5}, block()
    for option, name in (({"method": "semi_implicit"}, "method 'semi_implicit'"), ({"tau": lambda t, q, v: 0 * v}, "a policy")):
        message = rf"{name} requires contacts that do not stick, unlike block\.1, block\.2 .*; use rk4 with tau as an array"
        with pytest.raises(ld.UsageError, match=message):
            ld.rollout(model, [model.neutral()], np.zeros((1, 6)), dt=1e-3, steps=2, contacts=contacts, **option)
    with pytest.raises(ld.UsageError, match=r"an event requires contacts that do not stick.*; use ld\.simulate"):
        ld.rollout(model, [model.neutral()], np.zeros((1, 6)), dt=1e-3, steps=2, contacts=contacts,
                   events={"low": {"when": "z(block)", "value": 0.1, "do": "stop"}})
    with pytest.raises(ld.UsageError, match="Stepper requires contacts that do not stick"):
        ld.Stepper(model, 1e-3, contacts=contacts)
    with pytest.raises(ld.UsageError, match="contacts that stick have no linear system"):
        ld.linearize_scenario({"robot": "robots/quadruped.yaml", "duration": 1.0, "contacts": {
            "links": {"*_foot": {"sphere": {"radius": 0.02}}}, "stick": 1e-4}})


def test_a_hard_stop_carries_what_the_contact_does_not():
    """A block is pressed along the ground into a hard stop, where the spring of its contact stays stretched."""
    links, axes = [ld.Link("carrier"), ld.Link("block", MASS, inertia=[0.01, 0.02, 0.02])], [[1, 0, 0], [0, 0, 1]]
    joints = [ld.Joint("x", "prismatic", "world", "carrier", axis=axes[0], limits=(-1, 0.05)),
              ld.Joint("z", "prismatic", "carrier", "block", axis=axes[1])]
    contacts = {"links": {"block": [{"point": [0, 0, 0]}]}, "friction": 0.5, "stick": 1e-3}
    run = ld.simulate(ld.build(ld.Robot("block", links=links, joints=joints)), duration=0.5, contacts=contacts, limits="hard",
                      q0={"z": -1e-3}, tau={"x": 12.0})
    assert run.q[-1, 0] == 0.05 and run.contacts.tangential[-1] == pytest.approx(0.5 * MASS * G, rel=1e-3)
    assert run.stops[-1, 0] == pytest.approx(run.contacts.tangential[-1, 0] - 12.0, abs=1e-9)
    assert run.tau[-1, 0] == pytest.approx(12.0 + run.stops[-1, 0], abs=1e-9)
