"""Motors: closed forms of a wheel along a curve, SciPy's integration of an arm with the limits in NumPy, slopes, sampled laws,
columns and notes, and errors."""
from __future__ import annotations

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from scipy.integrate import solve_ivp

import liedyn as ld
from controlled_robots import ARM, FINE, FORCES, GEAR, INERTIA, ROTOR, WHEEL
from liedyn.analysis.linearize import linearize_scenario
from liedyn.cli.app import main
from liedyn.errors import ScenarioError
from liedyn.io.scenarios.scenario_file import read_scenario, scenario_of, to_plain
from liedyn.io.trajectory_csv import read_trajectory
from liedyn.simulation.run import run_scenario

MOTORS = {"elbow": {"gear": 80, "curve": [[-50, 0.12], [100, 0.09], [400, 0]]},
          "slide": {"gear": 500, "curve": [[0, 0.03], [200, 0.03], [600, 0.005]], "inertia": 1e-6}}



@pytest.fixture
def of(scenario):
    """Return a scenario of a second with these keys, as a dict."""
    def make(robot: str = WHEEL, **keys) -> dict:
        return scenario(robot, **{"output_step": 0.02, "integrator": dict(FINE), **keys})
    return make


def top(motor, v):
    """Return the maximum force of a joint at its velocity."""
    speeds, torques = np.array(motor["curve"]).T
    return motor["gear"] * np.interp(motor["gear"] * v, speeds, torques)


@pytest.mark.parametrize("integrator", [FINE, {"method": "rk4", "step": 1e-3},
                                        {"method": "rodas5p", "rtol": 1e-11, "atol": 1e-12}], ids=lambda given: given["method"])
def test_a_wheel_comes_to_its_no_load_speed(of, integrator):
    """The torque is constant up to 100 rad/s of the motor, then decreases linearly to 0 at 300 rad/s."""
    motor = {"gear": GEAR, "curve": [[0, 0.5], [100, 0.5], [300, 0]], "inertia": ROTOR}
    run = run_scenario(of(motors={"axle": motor}, joints={"axle": {"torque": 1000}}, integrator=integrator))
    total = INERTIA + GEAR**2 * ROTOR
    knee = 100 / GEAR / (GEAR * 0.5 / total)                                     # s, with constant acceleration
    rate = GEAR**2 * 0.5 / 200 / total
    v = np.where(run.t < knee, GEAR * 0.5 / total * run.t, 300 / GEAR - 200 / GEAR * np.exp(-rate * (run.t - knee)))
    assert 0.1 < knee < 0.3
    np.testing.assert_allclose(run.v[:, 0], v, rtol=0, atol=1e-9)
    columns = {name: (unit, x) for name, unit, x in run.columns}
    assert columns["motor.axle.torque"][0] == "N m" and columns["motor.axle.speed"][0] == "rad/s"
    np.testing.assert_allclose(columns["motor.axle.speed"][1], GEAR * v, rtol=0, atol=1e-7)
    np.testing.assert_allclose(columns["motor.axle.torque"][1], np.interp(GEAR * v, [0, 100, 300], [0.5, 0.5, 0]), atol=1e-9)
    messages = [one.message for one in run.warnings]
    assert f"the motor of axle is at its curve from t = 0 s, in {len(run.t)} of {len(run.t)} rows" in messages
    assert run.check["energy_balance_relative"] < 1e-9


@pytest.mark.parametrize("curve, braking", [([[0, 0.5], [300, 0]], 0.5), ([[-50, 0.2], [0, 0.5], [300, 0]], 0.2)])
def test_a_wheel_brakes_with_the_torque_below_zero_speed(of, curve, braking):
    run = run_scenario(of(motors={"*": {"gear": GEAR, "curve": curve}}, joints={"axle": {"torque": -1000}}, duration=0.1,
                          initial={"v": {"axle": 5.0}}))                         # 250 rad/s of the motor, against the torque
    np.testing.assert_allclose(run.v[:, 0], 5.0 - GEAR * braking / INERTIA * run.t, rtol=0, atol=1e-9)


def test_an_arm_moves_as_by_scipy(of, worst):
    """Limits of both kinds, rotor and rack are computed by NumPy with forward dynamics."""
    run = run_scenario(of(ARM, motors=MOTORS, joints=FORCES, saturate={"elbow": 6, "shoulder": 15}))
    model, force = run.model, []

    def tau(t, q, v):
        asked = [20 * np.sin(9 * t), 60 * (1.5 * np.sin(7 * t) - q[1]) + 2 * (10.5 * np.cos(7 * t) - v[1]), 30 * np.cos(8 * t)]
        high = [15, min(6, top(MOTORS["elbow"], v[1])), top(MOTORS["slide"], v[2])]
        low = [-15, -min(6, top(MOTORS["elbow"], -v[1])), -top(MOTORS["slide"], -v[2])]
        return np.clip(asked, low, high)
    y = solve_ivp(lambda t, y: np.r_[y[3:], ld.forward_dynamics(model, y[:3], y[3:], tau(t, y[:3], y[3:]))], (0, 1), np.zeros(6),
                  "DOP853", t_eval=run.t, rtol=1e-12, atol=1e-13, max_step=1e-3).y.T
    assert worst("motors of an arm", np.abs(np.hstack([run.q, run.v]) - y).max()) < 1e-7         # SciPy passes kinks
    force = np.array([tau(*x) for x in zip(run.t, run.q, run.v, strict=True)])
    np.testing.assert_allclose(run.tau, force, atol=1e-8)
    assert model.description.joints[2].coordinates[0].armature == 500**2 * 1e-6
    assert run.check["energy_balance_relative"] < 1e-9 and run.armatures == {"slide": 0.25}
    assert any("the motor of slide is at its curve" in note for note in map(str, run.warnings))
    for limit in ("shoulder is at its limit of 15 N m", "elbow is at its limit of 6 N m"):
        assert any(f"the force of {limit}" in note for note in map(str, run.warnings))


def test_a_prescribed_motion_that_needs_more_is_told(of):
    motor = {"gear": GEAR, "curve": [[0, 0.5], [300, 0]]}
    joints = {"axle": {"prescribe": {"position": "0.5*t*t*t"}}}
    run = run_scenario(of(motors={"axle": motor}, joints=joints, duration=3, output_step=0.01))
    need = 3 * INERTIA * run.t > GEAR * np.interp(1.5 * GEAR * run.t**2, [0, 300], [0.5, 0])
    assert 0 < np.count_nonzero(need) < len(need)
    assert any(f"the prescribed motion of axle requires more torque than the curve of its motor allows, from t = "
               f"{run.t[np.argmax(need)]:.6g} s, in {np.count_nonzero(need)} of 301 rows" in x for x in map(str, run.warnings))
    np.testing.assert_allclose(run.tau[:, 0], 3 * INERTIA * run.t, atol=1e-12)


@pytest.mark.parametrize("speed, slope", [(1.0, -GEAR**2 * 0.5 / 300), (-1.0, 0.0)])
def test_linear_models_have_the_slope_of_the_curve(of, speed, slope):
    keys = of(motors={"axle": {"gear": GEAR, "curve": [[0, 0.5], [300, 0]]}}, joints={"axle": {"torque": "90 - 3*q - v"}},
              initial={"v": {"axle": speed}})
    found = linearize_scenario(keys, at=0.0, verify=True)
    np.testing.assert_allclose(found.system.A, [[0, 1], [0, slope / INERTIA]], atol=1e-9)
    assert all(x.off < 1e-8 for x in found.differences.values())
    arm = linearize_scenario(of(ARM, motors=MOTORS, joints=FORCES, saturate=True), at=0.31, verify=True)
    assert all(x.off < 1e-8 for x in arm.differences.values())
    assert arm.here.tau[2] == pytest.approx(-top(MOTORS["slide"], -arm.here.v[2]), abs=1e-9)       # less than it is asked for


def test_loops_give_the_same(of, monkeypatch):
    forces = FORCES | {"shoulder": {"torque": {"pid": {"kp": 60, "ki": 50, "kd": 2, "target": "sin(5*t)"}}}}
    keys = of(ARM, motors=MOTORS, joints=forces, saturate=True, duration=0.4)
    line = run_scenario(keys)
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    loops = run_scenario(keys)
    for name in ("q", "v", "tau", "work"):
        np.testing.assert_allclose(getattr(loops, name), getattr(line, name), rtol=0, atol=1e-9)      # stiff gains, rounding


def test_sampled_torques_meet_the_curve(of):
    """Constant torques are limited by the present speed, and the integral does not wind up meanwhile."""
    motor = {"gear": GEAR, "curve": [[0, 0.5], [100, 0.5], [300, 0]]}
    law = {"pid": {"kp": 200, "ki": 400, "kd": 5, "target": 3}}
    run = run_scenario(of(motors={"axle": motor}, joints={"axle": {"torque": law}}, sampling={"rate": 50}, duration=2,
                          output_step=0.01))
    high, low = top(motor, run.v[:, 0]), -top(motor, -run.v[:, 0])
    assert (run.tau[:, 0] <= high + 1e-9).all() and (run.tau[:, 0] >= low - 1e-9).all()
    assert np.count_nonzero(run.tau[:, 0] > high - 1e-9) > 10
    z, t = 0.0, run.t
    for k in range(0, 200, 2):                                 # samples are every other row
        e, v = 3 - run.q[k, 0], run.v[k, 0]
        asked, step = 200 * e - 5 * v + z, 400 / 50 * e
        assert run.tau[k, 0] == pytest.approx(np.clip(asked, -top(motor, -v), top(motor, v)), abs=1e-8), t[k]
        if not (asked > top(motor, v) and step > 0) and not (asked < -top(motor, -v) and step < 0):
            z += step


def test_other_commands_know_the_rotors(of, tmp_path):
    keys = of(ARM, motors=MOTORS, joints=FORCES, duration=0.1)
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(keys))
    done = CliRunner().invoke(main, ["simulate", str(tmp_path / "run.yaml"), "-o", str(tmp_path / "run"), "--no-plots"])
    assert done.exit_code == 0, done.output
    csv = tmp_path / "run" / "trajectory.csv"
    again = CliRunner().invoke(main, ["inverse", str(csv), "-o", str(tmp_path / "again.csv")])
    assert again.exit_code == 0 and "unknown columns" not in again.output
    one, other = (read_trajectory(path).columns["tau.slide"] for path in (csv, tmp_path / "again.csv"))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
    assert '# armatures: {"slide": 0.25}' in (tmp_path / "again.csv").read_text()          # 500^2 1e-6
    text = csv.read_text()
    for broken in ('{"slid": 0.25}', '{"slide": -1}', '{"slide": NaN}', "0.25", '{"slide"'):
        csv.write_text(text.replace('{"slide": 0.25}', broken))
        again = CliRunner().invoke(main, ["inverse", str(csv), "-o", str(tmp_path / "again.csv"), "--force"])
        assert again.exit_code == 3 and "invalid armatures" in again.output


def test_it_reads_back_what_it_writes(of, tmp_path):
    s = scenario_of(of(ARM, motors=MOTORS | {"*": {"gear": 3}}))
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(to_plain(s, tmp_path), sort_keys=False))
    assert read_scenario(tmp_path / "again.yaml") == s


@pytest.mark.parametrize("robot, motors, message", [
    (WHEEL, {"axel": {"gear": 2}}, r"no such joint.*got 'axel'"),
    (WHEEL, {"axle": {"gear": 0}}, r"motors\.axle\.gear"),
    (WHEEL, {"axle": {"ratio": 2}}, "unknown key"),
    (WHEEL, {"axle": {"inertia": -1}}, r"motors\.axle\.inertia"),
    (WHEEL, {"axle": {"curve": []}}, r"motors\.axle\.curve"),
    (WHEEL, {"axle": {"curve": [[0, 1], [0, 2]]}}, "speeds must increase: expected a speed > 0, got 0"),
    (WHEEL, {"axle": {"curve": [[0, 1], [10, 1e10]]}}, "the torque of a motor's curve is out of range"),
    (WHEEL, {"axle": {"curve": [[0, 0]]}}, "the motor has no torque at any speed"),
    (ARM, {"shoulder": {"inertia": 1e-4}}, r"joint shoulder already has an armature in the robot file.*got 'inertia: 0.0001, "),
    (WHEEL.replace("continuous", "ball").replace(", axis: [0, 0, 1]", ""), {"axle": {"gear": 2}},
     "joint axle has 3 coordinates: motors require joints with one")])
def test_bad_values_are_told_in_a_line(of, robot, motors, message):
    with pytest.raises(ScenarioError, match=message) as caught:
        run_scenario(of(robot, motors=motors))
    assert "\n" not in str(caught.value)
