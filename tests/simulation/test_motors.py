"""Motors in four quadrants: closed forms of DC motors and of gears with losses, electrical power, maps, thermal loads, errors."""
from __future__ import annotations

import math

import numpy as np
import pytest

from controlled_robots import ARM, FINE, FORCES, GEAR, INERTIA, ROTOR, WHEEL
from liedyn.analysis.linearize import linearize_scenario
from liedyn.errors import ScenarioError
from liedyn.io.scenarios.scenario import Motor
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.model.description import FRICTION_SPEED
from liedyn.simulation.control.motors import map_values, motor_powers, thermal_load, torque_limit
from liedyn.simulation.run import run_scenario

VOLTS, OHMS, CONSTANT = 48.0, 0.5, 0.1
DC = {"gear": GEAR, "voltage": VOLTS, "resistance": OHMS, "torque_constant": CONSTANT, "inertia": ROTOR}
TOTAL = INERTIA + GEAR**2 * ROTOR
LOSSY = {"gear": GEAR, "gear_efficiency": {"forward": 0.8, "backward": 0.5}, "resistance": OHMS, "torque_constant": CONSTANT}


@pytest.fixture
def wheel(scenario):
    """A run of a wheel with this motor and force, and its columns by name, without `motor.axle.`."""
    def run(motor, torque, speed=0.0, **keys):
        result = run_scenario(scenario(WHEEL, output_step=0.02, integrator=dict(FINE), motors={"axle": motor},
                                       joints={"axle": {"torque": torque}}, initial={"v": {"axle": speed}}, **keys))
        return result, {name.removeprefix("motor.axle."): x for name, _, x in result.columns if name.startswith("motor.axle.")}
    return run


def close(value, expected):
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12 * max(np.abs(expected).max(), 1.0))


# torque-speed -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("speed", [0.0, 15.0, -4.0], ids=["run-up", "beyond no-load speed", "plugging"])
def test_a_dc_motor_approaches_its_no_load_speed(wheel, speed):
    """J v' = n k (V - k n v) / R from any speed. The electrical power is V I; it is negative beyond the no-load speed."""
    run, columns = wheel(DC, 1e6, speed)
    no_load, rate = VOLTS / CONSTANT / GEAR, (GEAR * CONSTANT)**2 / OHMS / TOTAL
    np.testing.assert_allclose(run.v[:, 0], no_load + (speed - no_load) * np.exp(-rate * run.t), rtol=0, atol=1e-10)
    current = columns["torque"] / CONSTANT
    close(columns["power"], VOLTS * current)
    close(columns["power"], run.tau[:, 0] * run.v[:, 0] + columns["copper"])
    assert (columns["power"][0] < 0.0) == (speed > no_load)
    assert run.check["energy_balance_relative"] < 1e-9


def test_a_curve_that_goes_on_beyond_the_no_load_speed_brakes(wheel):
    """Without a command the motor must brake: v' = n T(n v) / J with T = -0.5 (n v - 400) / 100 N m."""
    run, _ = wheel({"gear": GEAR, "curve": [[0, 0.5], [400, 0], [500, -0.5]]}, 0, 10.0, duration=0.2)
    rate = GEAR**2 * 0.005 / INERTIA
    np.testing.assert_allclose(run.v[:, 0], 8.0 + 2.0 * np.exp(-rate * run.t), rtol=0, atol=1e-10)


FALLING, MACHINE = ((0, 2.0), (100, 0.0), (200, -2.0)), {"voltage": 10.0, "resistance": 2.0, "torque_constant": 0.5}


@pytest.mark.parametrize("keys, other, speeds, torques", [
    ({"curve": FALLING}, math.inf, [-50, 50, 150, 300], [2, 1, -1, -2]),
    ({"curve": FALLING, "peak": 0.5}, math.inf, [0, 75, 80, 120, 125, 180], [0.5, 0.5, 0.4, -0.4, -0.5, -0.5]),
    ({"curve": FALLING[:2]}, 1.0, [0, 50, 75], [1, 1, 0.5]),
    (MACHINE, math.inf, [-100, 0, 20, 40], [15, 2.5, 0, -2.5]),
    (MACHINE | {"current": 3.0}, math.inf, [0, 8, 20, 32, 90], [1.5, 1.5, 0, -1.5, -1.5]),
    ({"torque_constant": 0.5, "current": 3.0, "peak": 4.0}, math.inf, [0, 90], [1.5, 1.5])])
def test_limits_of_torque(keys, other, speeds, torques):
    np.testing.assert_allclose(torque_limit(Motor(**keys), other)(np.array(speeds)), torques, atol=1e-14)


def test_speeds_in_rpm(scenario, tmp_path):
    (tmp_path / "curve.csv").write_text("speed[rpm],torque[mNm]\n0,500\n3000,0\n")
    read = scenario_of(scenario(WHEEL, motors={"axle": {"curve": str(tmp_path / "curve.csv")}})).motors[0].value
    assert read.curve == ((0.0, 0.5), (pytest.approx(100 * math.pi), 0.0))


# gears ------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("torque, speed, factor", [(10, 1.0, 0.8), (-10, -1.0, 0.8), (-10, 5.0, 2.0), (10, -5.0, 2.0)])
def test_gears_lose_power_in_both_directions(wheel, torque, speed, factor):
    """The joint gets 0.8 n T from a driving motor; 2 n T brake it where it drives the motor. About rest the loss is smoothed."""
    run, columns = wheel(LOSSY, torque, speed, duration=0.14)
    smooth = np.abs(run.v[:, 0]) / np.hypot(run.v[:, 0], FRICTION_SPEED)
    force = torque * (1 + (factor - 1) * smooth)
    close(run.tau[:, 0], force)
    np.testing.assert_allclose(run.v[:, 0], speed + factor * torque / INERTIA * run.t, rtol=0, atol=2e-3)
    close(columns["torque"], np.full(len(run.t), torque / GEAR))
    close(columns["power"], run.tau[:, 0] * run.v[:, 0] + columns["gear"] + columns["copper"])
    assert (columns["gear"] > 0.0).all() and run.check["energy_balance_relative"] < 1e-9


def test_each_limit_that_acts_is_told(wheel):
    """A limit of `saturate` below the curve of the motor, and above it."""
    for share, code in ((0.5, "force-limited"), (2.0, "motor-limited")):
        run, columns = wheel({"gear": GEAR, "peak": 1.0}, 5.0 * GEAR, saturate={"axle": share * GEAR})
        assert [x.code for x in run.warnings if x.code.endswith("limited")] == [code]
        assert columns["torque"].max() == pytest.approx(min(share, 1.0))


def test_a_gear_passes_rest(wheel):
    """From braking to driving, with the switch of the speed; the motor's torque is the command throughout."""
    run, columns = wheel(LOSSY, 10, -1.0, duration=0.3)
    assert run.v[0, 0] < 0 < run.v[-1, 0]
    close(columns["torque"], np.full(len(run.t), 10 / GEAR))


def test_derivatives_of_limits_and_gears(scenario):
    for speed in (2.0, -2.0, 0.05):
        keys = scenario(WHEEL, motors={"axle": LOSSY}, joints={"axle": {"torque": "30*cos(q) - 2*v"}},
                        initial={"v": {"axle": speed}})
        assert all(x.off < 1e-8 for x in linearize_scenario(keys, at=0.0, verify=True).differences.values())
    found = linearize_scenario(scenario(WHEEL, motors={"axle": DC | {"gear_efficiency": 0.9}}, joints={"axle": {"torque": 1e6}},
                                        initial={"v": {"axle": 2.0}}), at=0.0, verify=True)
    assert all(x.off < 1e-8 for x in found.differences.values())
    assert found.system.A[1, 1] == pytest.approx(-0.9 * (GEAR * CONSTANT)**2 / OHMS / TOTAL, rel=1e-4)


def test_generic_kernels_and_computed_torque_agree(scenario, monkeypatch):
    """Losses of one joint that a law drives and of one that a signal drives."""
    motors = {"elbow": {"gear": 80, "gear_efficiency": 0.8, "curve": [[-50, 0.12], [100, 0.09], [400, -0.05]]},
              "slide": {"gear": 50, "gear_efficiency": {"forward": 0.9, "backward": 0.6}}}
    keys = scenario(ARM, duration=0.3, output_step=0.02, integrator=dict(FINE), motors=motors,
                    joints={name: FORCES[name] for name in ("shoulder", "slide")},
                    control={"law": "computed_torque", "bandwidth": 8, "motion": {"elbow": "0.4*sin(7*t)"}})
    runs = []
    for kind in ("auto", "generic"):
        monkeypatch.setenv("LIEDYN_CODE", kind)
        runs.append(run_scenario(keys))
    for name in ("q", "v", "tau"):
        np.testing.assert_allclose(getattr(runs[0], name), getattr(runs[1], name), rtol=0, atol=1e-8)
    columns = {name: x for name, _, x in runs[0].columns}
    np.testing.assert_allclose(columns["motor.slide.torque"], 30 * np.cos(8 * runs[0].t) / 50, atol=1e-12)
    found = linearize_scenario(keys, at=0.11, verify=True)
    assert all(x.off < 1e-7 for x in found.differences.values())


def test_sampled_torques_pass_the_gear_once(wheel):
    run, columns = wheel(LOSSY, {"pd": {"kp": 0, "kd": 5, "target": 0}}, 2.0, sampling={"rate": 50}, duration=0.1)
    assert columns["torque"][0] == pytest.approx(-10 / GEAR, abs=1e-12)
    assert run.tau[0, 0] == pytest.approx(-20, rel=1e-4)


# losses -----------------------------------------------------------------------------------------------------------------

TORQUE, SPEED = np.array([0.5, -0.5, 0.25, -1.0]), np.array([100.0, 100.0, -50.0, -300.0])
LOSS_ROWS = ((0.0, 0.0, 1.0), (0.0, 1.0, 3.0), (200.0, 0.0, 5.0), (200.0, 1.0, 11.0))


def test_maps_are_bilinear_and_symmetric():
    close(map_values(LOSS_ROWS, SPEED, TORQUE), np.array([5.0, 5.0, 2.75, 11.0]))
    signed = tuple((sign * a, b, c) for a, b, c in LOSS_ROWS for sign in (1, -1) if a or sign > 0)
    close(map_values(signed, SPEED, TORQUE)[[0, 2]], np.array([5.0, 2.75]))


@pytest.mark.parametrize("keys, losses", [
    ({"loss_map": LOSS_ROWS}, [5, 5, 2.75, 11]),
    ({"efficiency_map": tuple((*row[:2], 0.8) for row in LOSS_ROWS)}, [12.5, 10, 2.5, 75])])
@pytest.mark.parametrize("regeneration", [True, False])
def test_the_electrical_power_is_the_mechanical_power_and_the_losses(keys, losses, regeneration):
    motor = Motor(resistance=OHMS, torque_constant=CONSTANT, regeneration=regeneration, **keys)
    output = 0.9 * TORQUE * SPEED
    powers = motor_powers(Motor(**{name: getattr(motor, name) for name in Motor.__slots__} | {"gear_efficiency": (0.9, 0.9)}),
                          TORQUE, SPEED, output)
    close(powers["losses"], np.array(losses, dtype=float))
    assert ("copper" in powers) == ("loss_map" in keys)
    close(powers.pop("power"), output + sum(powers.values()))
    assert ("braking" in powers) != regeneration


def test_energies_of_a_run_and_its_warnings(wheel, tmp_path):
    motor = LOSSY | {"loss_map": [list(row) for row in LOSS_ROWS], "thermal": {"continuous": 0.1, "time_constant": 0.5}}
    run, columns = wheel(motor, "10*cos(4*t)", 2.0, duration=1)
    energies = run.motor_energies["axle"]
    assert set(energies) == {"joint", "gear", "copper", "losses", "power"}
    assert energies["power"] == pytest.approx(sum(x for name, x in energies.items() if name != "power"), abs=1e-10)
    assert energies["joint"] == pytest.approx(run.work[-1], abs=0.05)
    codes = {x.code for x in run.warnings}
    assert {"motor-overheated", "motor-beyond-map"} <= codes and "motor-energy-inaccurate" not in codes
    assert columns["load"][0] == 0.0 and columns["load"].max() > 1.0
    coarse, _ = wheel(LOSSY, "10*exp(-60*t)", 2.0, duration=1)
    assert "motor-energy-inaccurate" in {x.code for x in coarse.warnings}


def test_the_load_of_a_winding():
    """Constant torque: a closed form; a square that grows linearly: x = c (t - T + T e^(-t/T))."""
    t = np.array([0.0, 0.1, 0.5, 0.5, 2.0, 9.0])
    close(thermal_load((0.5, 2.0, 0.3), t, np.full(6, 0.75)), 2.25 + (0.3 - 2.25) * np.exp(-t / 2))
    close(thermal_load((1.0, 2.0, 0.0), t, np.sqrt(t)), t - 2.0 + 2.0 * np.exp(-t / 2))


# files ------------------------------------------------------------------------------------------------------------------

EVERY = {"axle": {"gear": 3, "voltage": 12, "current": 4, "resistance": 1, "torque_constant": 0.2, "peak": 0.6, "inertia": 1e-4,
                  "gear_efficiency": {"forward": 0.9}, "loss_map": [list(row) for row in LOSS_ROWS], "regeneration": False,
                  "thermal": {"continuous": 0.2, "time_constant": 30, "initial": 0.1}}}


MAPPED = {"axle": {"gear_efficiency": 0.9, "efficiency_map": [[0, 0, 0.5], [0, 1, 0.5], [9, 0, 1], [9, 1, 0.9]]}}


@pytest.mark.parametrize("motors", [EVERY, MAPPED], ids=["every key", "efficiency map"])
def test_it_reads_back_what_it_writes(scenario, motors):
    read = scenario_of(scenario(WHEEL, motors=motors))
    assert scenario_of(to_plain(read)) == read


@pytest.mark.parametrize("keys, message", [
    ({"voltage": 12}, r"voltage requires resistance.*expected the key resistance"),
    ({"current": 12}, "current requires torque_constant"),
    ({"resistance": 1}, "resistance requires torque_constant"),
    ({"curve": [[0, 1]], "voltage": 1, "resistance": 1, "torque_constant": 1}, "curve cannot be combined with voltage"),
    ({"loss_map": LOSS_ROWS, "efficiency_map": LOSS_ROWS}, "out of range|cannot be combined"),
    ({"curve": [[0, 1], [10, -2]]}, r"the maximum torque at 10 rad/s is below the minimum.*expected at least -1 N m, got -2.0"),
    ({"curve": [[0, -1], [10, -2]]}, "the motor has no torque at any speed"),
    ({"gear_efficiency": 0}, r"gear_efficiency: out of range: expected a number > 0 and <= 1, got 0"),
    ({"gear_efficiency": {"backward": 1.2}}, r"gear_efficiency\.backward: out of range"),
    ({"gear_efficiency": {"reverse": 0.9}}, "unknown key"),
    ({"loss_map": LOSS_ROWS[:3] + LOSS_ROWS[:1]}, "one row for each combination"),
    ({"loss_map": [(a, b, -c) for a, b, c in LOSS_ROWS]}, r"a value of the map is out of range: expected at least 0, got -1.0"),
    ({"efficiency_map": LOSS_ROWS}, "a value of the map is out of range: expected from 0.001 to 1, got 3.0"),
    ({"regeneration": False}, "regeneration requires losses"),
    ({"thermal": {"continuous": 1}}, "the key time_constant is missing"),
    ({"thermal": {"continuous": 0, "time_constant": 1}}, r"thermal\.continuous: out of range"),
    ({"peak": -1}, r"motors\.axle\.peak")])
def test_bad_values_are_told_in_a_line(scenario, keys, message):
    with pytest.raises(ScenarioError, match=message) as caught:
        run_scenario(scenario(WHEEL, motors={"axle": keys}))
    assert "\n" not in str(caught.value)


def test_a_curve_in_other_units_is_an_error(scenario, tmp_path):
    (tmp_path / "curve.csv").write_text("speed[m/s],torque[N m]\n0,500\n3000,0\n")
    with pytest.raises(ScenarioError, match="a column of a motor has another unit: expected rad/s, got 'm/s'"):
        run_scenario(scenario(WHEEL, motors={"axle": {"curve": str(tmp_path / "curve.csv")}}))
