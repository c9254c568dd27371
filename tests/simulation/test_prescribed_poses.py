"""Poses of ball and free joints as prescribed motions: curves against SciPy, runs against robots that carry the base by hinges
and slides, forces against inverse dynamics of the curve."""
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation, RotationSpline

import liedyn as ld
from liedyn.analysis.linearize import linearize_scenario
from liedyn.errors import ScenarioError
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.prescribed_poses import SplineNotSolvedError, prescribed_state, rotation_spline

ROOT = Path(__file__).parents[2]
ARM = {"upper": {"mass": 1.2, "com": [0.05, 0, -0.3], "inertia": [0.06, 0.05, 0.004, 0.06, 0.002, 0.02]},
       "lower": {"mass": 0.7, "com": [0, 0.02, -0.25], "inertia": [0.03, 0.03, 0.002]}}
JOINTS = {"shoulder": {"type": "ball", "parent": "body", "child": "upper", "origin": {"xyz": [0.1, 0.2, 0]}},
          "elbow": {"type": "revolute", "parent": "upper", "child": "lower", "origin": {"xyz": [0, 0, -0.6]}, "axis": [0, 1, 0],
                    "damping": 0.05}}
BODY = {"mass": 4.0, "com": [0.02, -0.01, 0.05], "inertia": [0.2, 0.01, 0.02, 0.3, 0.005, 0.25]}
FLYING = {"name": "flying", "base": "floating", "links": {"body": BODY, **ARM}, "joints": JOINTS}
SLIDES = ("x", "y", "z", "yaw", "pitch", "roll")
CARRIED = {"name": "carried", "base": "fixed", "links": {**{f"c{k}": {} for k in range(5)}, "body": BODY, **ARM}, "joints": {
    **{name: {"type": "prismatic" if k < 3 else "continuous", "parent": "world" if k == 0 else f"c{k - 1}",
              "child": "body" if k == 5 else f"c{k}", "axis": [int(k in (0, 5)), int(k in (1, 4)), int(k in (2, 3))]}
       for k, name in enumerate(SLIDES)}, **JOINTS}}
POSE = {"xyz": ["0.3*sin(2*t)", {"sine": {"amplitude": 0.2, "frequency": 0.4}}, "1 + 0.1*cos(3*t)"],
        "rpy": ["0.4*sin(3*t)", "0.3*cos(2*t)", "1.5*t"]}
TIGHT = {"method": "dopri5", "rtol": 1e-12, "atol": 1e-13}
START = {"q": {"elbow": 0.4, "shoulder": [0.1, 0.2, 0, 0.974679434480896]}, "v": {"elbow": -0.5, "shoulder": [0.3, -0.2, 1]}}
WAYPOINTS = [{"t": 0.2, "xyz": [0, 0, 0.5]}, {"t": 0.7, "xyz": [0.1, 0.2, 0.6], "rpy": [0.5, -0.3, 1.0]},
             {"t": 1.1, "xyz": [0.3, 0.2, 0.4], "quaternion": [0, -0.6, 0, -0.8]},
             {"t": 1.8, "xyz": [0, 0, 0.5], "rpy": [0, 0, 2.5]}]


@pytest.fixture
def given(scenario):
    def keys(robot=FLYING, pose=POSE, joint="base", **more):
        joints = {joint: {"prescribe": {"position": pose}}} if pose else {}
        return scenario(json.dumps(robot), **{"integrator": TIGHT, "output_step": 0.01, "initial": START,
                                              "joints": joints | more.pop("joints", {}), **more})
    return keys


def pose_at(t):
    """Return positions (N, 3) and rotations, programmed independently."""
    p = np.column_stack([0.3 * np.sin(2 * t), 0.2 * np.sin(0.8 * np.pi * t), 1 + 0.1 * np.cos(3 * t)])
    return p, Rotation.from_euler("ZYX", np.column_stack([1.5 * t, 0.3 * np.cos(2 * t), 0.4 * np.sin(3 * t)]))


def differences(f, t, h=0.02):
    """Return the first and second derivative by differences of eighth order."""
    c1, c2 = [4 / 5, -1 / 5, 4 / 105, -1 / 280], [8 / 5, -1 / 5, 8 / 315, -1 / 560]
    first = sum(c * (f(t + (k + 1) * h) - f(t - (k + 1) * h)) for k, c in enumerate(c1)) / h
    second = (sum(c * (f(t + (k + 1) * h) + f(t - (k + 1) * h)) for k, c in enumerate(c2)) - 205 / 72 * f(t)) / h**2
    return first, second


# curves --------------------------------------------------------------------------------------------------------------
class Settled(RotationSpline):
    TOL, MAX_ITER = 1e-15, 500


@pytest.mark.parametrize("count, size", [(2, 1.0), (3, 1.8), (8, 0.5), (8, 1.6), (40, 1.2)])
def test_rotations_through_waypoints_are_those_of_scipy(count, size, worst):
    rng = np.random.default_rng(count)
    t, turns = np.cumsum(rng.uniform(0.3, 1.5, count)), [Rotation.random(random_state=count)]
    for _ in range(count - 1):
        turns.append(turns[-1] * Rotation.from_rotvec(rng.uniform(-1, 1, 3) * size))
    turns = Rotation.concatenate(turns)
    ends = [(turns[k].inv() * turns[k + 1]).as_rotvec() / (t[k + 1] - t[k]) for k in (0, count - 2)]      # SciPy's choice
    u, coefficients = rotation_spline(t, turns.as_quat() * np.where(np.arange(count) % 2, -1, 1)[:, None], *ends)
    s = np.linspace(t[0], t[-1], 200)
    k = np.clip(np.searchsorted(t, s, side="right") - 1, 0, count - 2)
    x = np.einsum("nij,nj->ni", coefficients[k], (s - t[k])[:, None] ** np.arange(4))
    off = (Rotation.from_quat(u[k]) * Rotation.from_rotvec(x)).inv() * Settled(t, turns)(s)
    assert worst("rotation spline against SciPy", off.magnitude().max(), f"{count} waypoints") < 1e-12


def test_a_rotation_without_a_curve_is_told():
    with pytest.raises(SplineNotSolvedError):
        turns = Rotation.from_rotvec([[0, 0, 0], [3, 0, 0], [0, 3, 0]]).as_quat()
        rotation_spline([0, 1e-3, 1], turns, (0, 1e4, 0), (9e3, 0, 1e5))


def test_waypoints_are_passed_with_continuous_acceleration(given):
    scenario = scenario_of(given(pose={"waypoints": WAYPOINTS}, duration=2))
    assert scenario_of(to_plain(scenario)).joints == scenario.joints
    model = ld.load(scenario.robot)
    c = compile_schedule(scenario, model).problem
    assert list(c.schedule.breaks) == [0.2, 0.7, 1.1, 1.8]

    def at(t):
        return prescribed_state(c, t, c.q, c.v)

    for one in WAYPOINTS:
        q, _ = at(one["t"])
        angles = Rotation.from_euler("xyz", one.get("rpy", [0, 0, 0]))
        turn = Rotation.from_quat(one["quaternion"]) if "quaternion" in one else angles
        np.testing.assert_allclose(q[:3], one["xyz"], atol=1e-15)
        assert (turn.inv() * Rotation.from_quat(q[3:7])).magnitude() < 1e-15
    for t in (0.0, 0.2, 1.8, 2.0):
        assert np.abs(at(t)[1][:6]).max() < 1e-14
    h = 1e-4
    for t in (0.7, 1.1):
        before, here, after = (at(t + s * h)[1][:6] for s in (-1, 0, 1))
        left = (3 * here - 4 * before + at(t - 2 * h)[1][:6]) / (2 * h)
        right = (-3 * here + 4 * after - at(t + 2 * h)[1][:6]) / (2 * h)
        np.testing.assert_allclose(left, right, atol=1e-4)                # where it is 20 rad/s^2 and more
    t = np.linspace(0.21, 1.79, 80)
    states = [(at(s - 1e-5), at(s), at(s + 1e-5)) for s in t if min(abs(s - x) for x in (0.7, 1.1)) > 1e-3]
    rate = ld.difference(model, *(np.array([one[k][0] for one in states]) for k in (0, 2))) / 2e-5
    np.testing.assert_allclose(rate[:, :6], np.array([one[1][1] for one in states])[:, :6], atol=1e-7)


# runs ----------------------------------------------------------------------------------------------------------------
def test_a_prescribed_base_is_exact_and_its_force_is_that_of_inverse_dynamics(given, worst):
    run = ld.run_scenario(given())
    p, R = pose_at(run.t)
    np.testing.assert_allclose(run.q[:, :3], p, atol=1e-15)
    assert (R.inv() * Rotation.from_quat(run.q[:, 3:7])).magnitude().max() < 1e-15
    assert np.abs(np.diff(run.q[:, 3:7], axis=0)).max() < 0.1              # no jump to the other sign
    dp, ddp = differences(lambda t: pose_at(t)[0], run.t)
    dR, ddR = differences(lambda t: pose_at(t)[1].as_matrix(), run.t)
    M = R.as_matrix()
    W = np.einsum("nji,njk->nik", M, dR)
    dW = np.einsum("nji,njk->nik", dR, dR) + np.einsum("nji,njk->nik", M, ddR)
    w, dw = (np.column_stack([X[:, 2, 1], X[:, 0, 2], X[:, 1, 0]]) for X in (W, dW))
    v = np.einsum("nji,nj->ni", M, dp)
    dv = np.einsum("nji,nj->ni", M, ddp) - np.cross(w, v)
    assert worst("prescribed twist", np.abs(run.v[:, :6] - np.hstack([w, v])).max()) < 1e-10
    assert worst("prescribed acceleration", np.abs(run.a[:, :6] - np.hstack([dw, dv])).max()) < 1e-8
    tau = ld.inverse_dynamics(run.model, run.q, np.hstack([w, v, run.v[:, 6:]]), np.hstack([dw, dv, run.a[:, 6:]]))
    assert worst("force of a prescribed base", np.abs(run.tau - tau).max()) < 1e-6
    assert worst("balance with a prescribed base", run.check["energy_balance_relative"]) < 1e-9
    np.testing.assert_allclose(run.power["base"], np.sum(run.tau[:, :6] * run.v[:, :6], axis=1), atol=1e-12)
    assert [(name, unit) for name, unit, _ in run.columns if name.startswith("power")] == [("power.base", "W")]
    assert run.prescribed.tolist() == [True] * 6 + [False] * 4


def test_the_base_carried_by_slides_and_hinges_moves_the_robot_alike(given, worst):
    """The same motion of the base by six joints with one coordinate each, which other code prescribes."""
    signals = dict(zip(SLIDES, [*POSE["xyz"], *POSE["rpy"][::-1]], strict=True))
    here = ld.run_scenario(given())
    joints = {name: {"prescribe": {"position": x}} for name, x in signals.items()}
    there = ld.run_scenario(given(CARRIED, pose=None, joints=joints))
    for kind in ("v", "a", "tau"):
        assert worst("base carried", np.abs(getattr(here, kind)[:, 6:] - getattr(there, kind)[:, 6:]).max(), kind) < 1e-8
    np.testing.assert_allclose(here.q[:, 7:], there.q[:, 6:], atol=1e-9)
    np.testing.assert_allclose(here.power["base"], sum(there.power[name] for name in SLIDES), atol=1e-8)
    assert list(there.power) == list(SLIDES)


@pytest.mark.parametrize("method, order", [("rk4", 4), ("generalized_alpha", 2)])
def test_methods_keep_their_order(given, method, order, worst):
    exact = ld.run_scenario(given(duration=0.4, output_step=0.4))
    errors = [np.abs(ld.run_scenario(given(duration=0.4, output_step=0.4, integrator={"method": method, "step": step})).v[-1, 6:]
                     - exact.v[-1, 6:]).max() for step in (0.02, 0.01)]
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.3


@pytest.mark.parametrize("method", ["dop853", "rodas5p", "Radau"])
def test_every_method_follows_the_pose(given, method, worst):
    exact = ld.run_scenario(given())
    run = ld.run_scenario(given(integrator={"method": method, "rtol": 1e-9, "atol": 1e-11}))
    np.testing.assert_allclose(run.q[:, :7], exact.q[:, :7], atol=1e-15)
    np.testing.assert_allclose(run.v[:, :6], exact.v[:, :6], atol=1e-14)
    assert worst("other methods", np.abs(run.v - exact.v).max(), method) < 2e-7 and run.statistics.steps < 700


def test_loops_do_what_lines_do(given, monkeypatch):
    more = dict(integrator={"method": "rk4"}, duration=0.05, joints={"shoulder": {"prescribe": {"position": {"waypoints": [
        {"t": 0}, {"t": 0.03, "rpy": [0.1, 0, 0.2]}]}}}}, initial={})
    line = ld.run_scenario(given(**more))
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    loops = ld.run_scenario(given(**more))
    for kind in ("q", "v", "a", "tau"):
        np.testing.assert_allclose(getattr(line, kind), getattr(loops, kind), atol=1e-11)


def test_a_recorded_free_motion_takes_no_force(given, tmp_path):
    """The recorded motion of a tumbling body is prescribed: the force on its base is the error of the interpolation."""
    body = {"name": "body", "base": "floating", "links": {"body": BODY}}
    start = {"q": {"base": [0, 0, 1, 0, 0, 0, 1]}, "v": {"base": [2, 3, 1, 0.5, 0, 2]}}
    sizes = []
    for rows in (50, 100):
        free = ld.run_scenario(given(body, pose=None, initial=start, output_step=1 / rows))
        names = [f"q.base.{x}" for x in ("px", "py", "pz", "qx", "qy", "qz", "qw")]
        np.savetxt(tmp_path / "motion.csv", np.column_stack([free.t, free.q]), "%.17g", ",", header=",".join(["t[s]", *names]),
                   comments="")
        run = ld.run_scenario(given(body, pose={"csv": {"file": str(tmp_path / "motion.csv")}}, initial={}, output_step=0.013))
        np.testing.assert_allclose(run.v[-1], ld.run_scenario(given(body, pose=None, initial=start)).v[-1], atol=1e-3)
        sizes.append(np.abs(run.tau[10:-10]).max())
    assert sizes[0] < 0.05 and 3 < sizes[0] / sizes[1] < 6               # a cubic: second order in its acceleration


def test_a_linearization_takes_the_acceleration_of_the_base_for_an_input(given):
    found = linearize_scenario(given(), at=0.3)
    p, _ = pose_at(np.array([0.3]))
    np.testing.assert_allclose(found.here.q[:3], p[0], atol=1e-15)
    assert {f"a.base.{x}" for x in ("dwx", "dwy", "dwz", "dvx", "dvy", "dvz")} <= set(found.system.inputs)
    assert found.system.A.shape == (20, 20) and np.isfinite(found.system.A).all()


def test_a_platform_that_is_moved_moves_its_legs(scenario):
    """A Stewart platform with loops: the legs have the lengths that `configs/stewart.yaml` prescribes in closed form, and the
    platform takes the power that they take there."""
    there = yaml.safe_load((ROOT / "configs/stewart.yaml").read_text())
    there |= {"robot": str(ROOT / "robots/stewart.yaml"), "duration": 1}
    pose = {"xyz": [0, 0, "0.64 - 0.04*cos(pi*t)"], "rpy": ["0.2*sin(pi*t/2)**3", 0, 0]}
    here = ld.run_scenario(there | {"joints": {"platform": {"prescribe": {"position": pose}}}})
    there = ld.run_scenario(there)
    for kind in ("q", "v", "a"):
        np.testing.assert_allclose(getattr(here, kind), getattr(there, kind), atol=1e-9)
    np.testing.assert_allclose(here.power["platform"], sum(there.power.values()), atol=1e-8)


# phases --------------------------------------------------------------------------------------------------------------
def grab(pose, **phase):
    return {"phases": {"free": {}, "held": {"joints": {"base": {"prescribe": {"position": pose}}}, **phase}},
            "events": {"grab": {"at": 0.5, "do": {"phase": "held"}}}}


def test_a_phase_takes_hold_of_a_base_where_it_is(given):
    """A base that is released in motion is prescribed along its free motion: no force, no jump. Elsewhere it is an error."""
    body = {"name": "body", "base": "floating", "links": {"body": {**BODY, "com": [0, 0, 0]}}}
    throw = {"q": {"base": [0, 0, 1, 0, 0, 0, 1]}, "v": {"base": [0, 0, 2, 0.5, 0, 3]}}
    body["links"]["body"]["inertia"] = [0.2, 0.3, 0.25]
    fly = {"xyz": ["0.5*t", 0, "1 + 3*t - 4.905*t**2"], "rpy": [0, 0, "2*t"]}
    run = ld.run_scenario(given(body, pose=None, initial=throw, **grab(fly)))
    assert np.abs(run.tau).max() < 1e-10 and np.abs(run.events[0].dv).max() < 1e-12
    still = {"xyz": [0.25, 0, "2.5 - 4.905*0.25"], "rpy": [0, 0, 1]}
    with pytest.raises(ScenarioError, match=r"phase held prescribes the twist \[.*\] of base from t = 0.5 s on, where it is .*"
                                            "expected a motion without a jump, or impulsive: true in the phase"):
        ld.run_scenario(given(body, pose=None, initial=throw, **grab(still)))
    run = ld.run_scenario(given(body, pose=None, initial=throw, **grab(still, impulsive=True)))
    one, speed = run.events[0], 3 - 9.81 / 2
    M = ld.mass_matrix(run.model, run.q[0])
    before = np.array([0, 0, 2, *Rotation.from_rotvec([0, 0, -1]).apply([0.5, 0, speed])])
    np.testing.assert_allclose(one.impulse[:6], -M @ before, atol=1e-9)
    assert one.change == pytest.approx(-0.5 * before @ M @ before, rel=1e-9)
    assert run.check["energy_balance_relative"] < 1e-9 and not run.v[-1].any()
    with pytest.raises(ScenarioError, match=r"phase held prescribes the pose \[0.3, .*\] of base .*"
                                            "expected a motion that starts at the position of the joint"):
        ld.run_scenario(given(body, pose=None, initial=throw, **grab(still | {"xyz": [0.3, 0, 1]}, impulsive=True)))
