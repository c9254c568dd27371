"""Sensors of a scenario: exact values by closed forms and by other functions, errors that depend on seed and name only, files."""
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import liedyn as ld
from liedyn.errors import ScenarioError, TrajectoryError
from liedyn.integrators.run_state import Record
from liedyn.io.checkpoint_files import Unfinished
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.model.description import Joint
from liedyn.model.links import Link, Pose
from liedyn.simulation import run_recorder
from liedyn.simulation.preparation import prepare
from liedyn.simulation.run import SilentProgress, simulate_file
from liedyn.simulation.segment_problems import RunSegment
from liedyn.simulation.sensors import motion_times, output_segments
from measured_rows import exact, rows_of
from zoo import random_robot, state

ARM = "robots/double_pendulum.yaml"
DISC = """
name: spin
gravity: [0, 0, -9.81]
links: {disc: {mass: 2.0, com: [0.1, 0, 0], inertia: [0.1, 0.1, 0.2]}}
joints: {axle: {type: continuous, parent: world, child: disc, axis: [0, 0, 1]}}
"""
NOISY = {"e": {"type": "encoder", "rate": 100, "noise": 1e-3, "resolution": {"elbow": 0.01}, "zero_offset": {"elbow": 0.5}},
         "m": {"type": "torque", "rate": 50, "noise": 0.1, "offset": 0.2, "scale": {"elbow": 1.1}, "torque_constant": 4}}


def swing(sensors, **more):
    return ld.run_scenario({"robot": ARM, "duration": 0.2, "output_step": 0.02, "initial": {"q": {"shoulder": 1.0}},
                            "sensors": sensors, **more})


@pytest.mark.parametrize("seed", range(4))
def test_an_imu_moves_with_a_link_that_is_welded_in_its_place(seed, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    robot, rng = random_robot(20 + seed, 6, base=("fixed", "floating")[seed % 2]), np.random.default_rng(seed)
    carrier, rpy = robot.links[-1].name, tuple(rng.uniform(-3, 3, 3))
    at = Pose.from_xyz_rpy(tuple(rng.uniform(-1, 1, 3)), rpy)
    model = ld.build(replace(robot, links=(*robot.links, Link("head", 0.0, (0.0, 0.0, 0.0), (0.0,) * 6)),
                             joints=(*robot.joints, Joint("weld", "fixed", carrier, "head", at))))
    q, v, a, _ = state(model, seed, 5)
    R = ld.link_pose(model, q, "head")[:, :3, :3]
    acceleration = ld.link_acceleration(model, q, v, a, "head", frame="local_world_aligned")[:, 3:] - model.gravity
    expected = np.concatenate([ld.link_twist(model, q, v, "head")[:, :3], np.einsum("nji,nj->ni", R, acceleration)], axis=1)
    got = exact(rows_of(model, q, v, a), type="imu", link=carrier, at=at.translation, rpy=rpy)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_sensors_of_a_spinning_disc_have_their_closed_forms(tmp_path):
    (tmp_path / "disc.yaml").write_text(DISC)
    model = ld.load(tmp_path / "disc.yaml")
    w, dw, r, g, m = 3.0, 2.0, 0.5, 9.81, 2.0
    rows = rows_of(model, np.array([[0.7]]), np.array([[w]]), np.array([[dw]]))
    imu = exact(rows, type="imu", link="disc", at=(r, 0.0, 0.0), rpy=(0.0, 0.0, np.pi / 2))        # its x is tangential
    np.testing.assert_allclose(imu, [[0, 0, w, r * dw, r * w**2, g]], rtol=0, atol=1e-12)
    wrench = exact(rows, type="force_torque", joint="axle", at=(0.1, 0.0, 0.0))                    # about the centre of mass
    np.testing.assert_allclose(wrench, [[0, 0, 0.2 * dw, -m * 0.1 * w**2, m * 0.1 * dw, m * g]], rtol=0, atol=1e-12)
    world = exact(rows, type="force_torque", joint="axle", frame="world")
    assert world[0, 5] == pytest.approx(m * g, abs=1e-12)


@pytest.mark.parametrize(("robot", "keys"), [
    ("robots/quadrotor.yaml", {"actuators": {"*": "2 + sin(9*t)"}}),
    ("robots/quadruped.yaml", {"contacts": {"links": {"*_foot": {"point": [0, 0, 0]}}, "sink": 0.01},
                               "initial": {"q": {"base": [0, 0, 0.3, 0, 0, 0, 1]}}})])
def test_the_free_joint_of_a_floating_base_transmits_nothing_under_thrusts_and_contacts(robot, keys, monkeypatch):
    """Wrong or missing wrenches of thrusts and contacts would show as the wrench through this joint."""
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    m = ld.run_scenario({"robot": robot, "duration": 0.01, "output_step": 0.005, **keys, "sensors": {
        "f": {"type": "force_torque", "joint": ld.load(robot).joint_names[0]},
        "i": {"type": "imu", "link": ld.load(robot).link_names[0]}}}).measurements
    assert np.abs(m.values[:, :6]).max() < 1e-10
    assert np.abs(m.values[:, 9:]).max() > 1.0                                 # it does not fall freely


def test_an_attached_body_hangs_on_the_sensor():
    run = swing({"f": {"type": "force_torque", "joint": "elbow"}, "m": {"type": "torque"}}, gravity=[0, 0, -10.0],
                initial={"q": {"shoulder": 0.0}}, events={"load": {"at": 0.1, "do": {"attach": {"link": "lower", "mass": 2.0}}}})
    force = run.measurements["force_torque.f.fz"]
    assert force[5] - force[4] == pytest.approx(20.0, abs=1e-9)


def test_a_force_torque_sensor_has_the_wrench_of_its_joint_and_external_wrenches_act(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    model = ld.build(random_robot(31, 7))
    q, v, a, _ = state(model, 3, 4)
    F = np.random.default_rng(3).standard_normal((4, len(model.link_names), 6))
    rows, expected = rows_of(model, q, v, a, f_ext=F), ld.joint_wrenches(model, q, v, a, f_ext=F)
    for k, joint in enumerate(model.joints):
        np.testing.assert_allclose(exact(rows, type="force_torque", joint=joint.name), expected[:, k], rtol=0,
                                   atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("passive", [True, False])
def test_reactions_of_loops_and_force_elements_act_on_the_links_beyond_a_sensor(passive, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    model = ld.load("robots/toggle_clamp.yaml")
    q, v, a = model.neutral()[None], np.full((1, model.nv), 0.3), np.full((1, model.nv), -0.2)
    multipliers = np.linspace(1.0, 2.0, model.nc)[None]
    acting = model if passive else ld.build(replace(model.description, elements=()))
    expected = ld.joint_wrenches(acting, q, v, a, multipliers=multipliers)
    rows = rows_of(model, q, v, a, multipliers=multipliers, passive=passive)
    for k, name in enumerate(model.joint_names):
        np.testing.assert_allclose(exact(rows, type="force_torque", joint=name), expected[:, k], rtol=0,
                                   atol=1e-12 * np.abs(expected).max())


def test_a_torque_sensor_does_not_measure_the_force_of_stops(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    run = ld.run_scenario({"robot": "robots/bouncing_arm.yaml", "duration": 0.01, "output_step": 0.005, "limits": "stop",
                           "initial": {"q": {"elbow": 1.31}}, "joints": {"elbow": {"torque": 1.5}},
                           "sensors": {"m": {"type": "torque", "joints": ["elbow"]}}})
    assert np.abs(run.stops[:, 1]).max() > 1.0 and np.abs(run.tau[:, 1] - 1.5).max() > 1.0
    np.testing.assert_allclose(run.measurements["tau.elbow"], 1.5, rtol=0, atol=1e-12)


def test_measured_values_are_scaled_shifted_noisy_and_rounded():
    run = swing(NOISY, joints={"elbow": {"torque": "2 + sin(9*t)"}})
    m = run.measurements
    assert m.names == ("q.shoulder", "q.elbow", "tau.shoulder", "tau.elbow", "current.shoulder", "current.elbow")
    assert m.units == ("rad", "rad", "N m", "N m", "A", "A") and len(m.t) == 21 and m.missing == 10
    assert not np.isnan(m["q.elbow"]).any() and np.isnan(m["tau.elbow"]).tolist() == [False, True] * 10 + [False]
    q = m["q.elbow"][::2] - 0.5
    np.testing.assert_allclose(q / 0.01, np.round(q / 0.01), rtol=0, atol=1e-9)
    assert 0.0 < np.abs(q - run.q[:, 1]).max() < 0.01
    tau = m["tau.elbow"][::2]
    assert 0.02 < np.std(tau - 1.1 * run.tau[:, 1] - 0.2) < 0.3 and np.array_equal(m["current.elbow"][::2], tau / 4)
    silent = swing({"m": NOISY["m"] | {"noise": 0}}, joints={"elbow": {"torque": "2 + sin(9*t)"}}).measurements
    np.testing.assert_allclose(silent["tau.elbow"], 1.1 * run.tau[:, 1] + 0.2, rtol=0, atol=1e-13)


def test_noise_depends_on_seed_and_names_only():
    fine = {name: sensor | {"noise": 1e-3, "resolution": 0} for name, sensor in NOISY.items()}
    first, again = swing(fine).measurements, swing(fine).measurements
    assert first == again
    exactly = swing({name: sensor | {"noise": 0} for name, sensor in fine.items()}).measurements
    noise = first.values - exactly.values
    more = {"c": {"type": "imu", "link": "lower", "rate": 30}, **{name: fine[name] for name in reversed(fine)}}
    for other, keys in ((more, {"output_step": 0.07}), (fine, {"integrator": {"method": "rk4", "step": 7e-4}}),
                        (fine, {"integrator": {"method": "dopri5"}}), (fine, {"duration": 0.1, "output_step": 0.1})):
        m, clean = swing(other, **keys).measurements, swing({name: s | {"noise": 0} if "noise" in s else s
                                                              for name, s in other.items()}, **keys).measurements
        for k, name in enumerate(first.names):
            present, expected = ((x[np.isfinite(x)]) for x in (m[name] - clean[name], noise[:, k]))
            np.testing.assert_allclose(present, expected[:len(present)], rtol=0, atol=1e-14, err_msg=name)
    seeded = swing(fine, seed=1).measurements
    assert (seeded["q.elbow"] != first["q.elbow"]).all()
    rates = np.corrcoef(noise[:, 0], noise[:, 1])[0, 1], noise[:, :2].std() / 1e-3
    assert abs(rates[0]) < 0.6 and 0.7 < rates[1] < 1.3


def test_the_motion_and_the_rows_of_the_result_are_those_without_sensors():
    sensors = {"e": {"type": "encoder", "rate": 250}, "i": {"type": "imu", "link": "lower", "rate": 500}}
    events = {"tick": {"every": 0.05, "do": {"set": {"v": {"shoulder": 0.5}}}}}
    for keys in ({}, {"events": events}, {"integrator": {"method": "dopri5"}}):
        run, bare = swing(sensors, **keys), swing({}, **keys)
        assert len(run.measurements.t) == 101
        for name in ("t", "q", "v", "a", "tau", "kinetic", "work"):
            np.testing.assert_allclose(getattr(run, name), getattr(bare, name), rtol=0, atol=1e-12, err_msg=name)
        assert [name for name, _, _ in run.columns if not name.startswith("meas.")] == [name for name, _, _ in bare.columns]


def test_a_sample_at_an_event_measures_the_state_after_it():
    run = swing({"i": {"type": "imu", "link": "upper", "rate": 40}},
                events={"kick": {"at": 0.1, "do": {"set": {"v": {"shoulder": 5.0}}}}})
    m = run.measurements
    assert m["imu.i.wy"][4] == run.v[np.searchsorted(run.t, 0.1, "right") - 1, 0] == 5.0


def test_a_delayed_torque_is_that_of_an_earlier_time():
    m = swing({"m": {"type": "torque", "rate": 130, "delay": 0.0123}}, joints={"elbow": {"torque": "sin(20*t)"}}).measurements
    np.testing.assert_allclose(m["tau.elbow"], np.sin(20 * np.maximum(m.t - 0.0123, 0)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(m.t, np.arange(27) / 130, rtol=0, atol=1e-15)


def test_lost_samples_are_empty_and_trajectories_have_the_last_one(tmp_path):
    sensors = {"e": {"type": "encoder", "rate": 500, "dropout": 0.3}, "i": {"type": "imu", "link": "lower", "rate": 100}}
    run = swing(sensors, seed=3)
    m = run.measurements
    lost = np.isnan(m["q.elbow"])
    assert 0.15 < lost.mean() < 0.45 and np.array_equal(lost, np.isnan(m["q.shoulder"])) and m.missing == lost.sum()
    assert not np.isnan(m["imu.i.ax"][::5]).any()
    columns = {name: x for name, _, x in run.columns}
    for row, t in enumerate(run.t):
        received = np.flatnonzero(~lost & (m.t <= t + 1e-12))
        expected = m["q.elbow"][received[-1]] if len(received) else np.nan
        np.testing.assert_equal(columns["meas.q.elbow"][row], expected)
    run.save(tmp_path / "run")
    read = ld.read_trajectory(tmp_path / "run" / "measurements.csv")
    np.testing.assert_array_equal(read.t, m.t[~lost])
    np.testing.assert_array_equal(read.columns["q.elbow"], m["q.elbow"][~lost])
    np.testing.assert_array_equal(read.columns["imu.i.ax"], m["imu.i.ax"][~lost])
    assert [warning.code for warning in read.warnings] == ["rows-left-out"] and "missing" not in read.header
    recording = run.measured_trajectory()
    assert recording.columns.keys() == read.columns.keys() and recording.warnings == read.warnings
    np.testing.assert_array_equal(recording.t, read.t)
    for name, x in recording.columns.items():
        np.testing.assert_array_equal(x, read.columns[name], err_msg=name)
    named = ld.read_trajectory(tmp_path / "run" / "trajectory.csv")
    np.testing.assert_array_equal(named.columns["meas.q.elbow"], columns["meas.q.elbow"])
    nothing = swing({"e": {"type": "encoder", "rate": 500, "dropout": 1}})
    nothing.save(tmp_path / "nothing")
    for read_samples in (lambda: ld.read_trajectory(tmp_path / "nothing" / "measurements.csv"), nothing.measured_trajectory):
        with pytest.raises(TrajectoryError, match="no row has a value in each column of the motion"):
            read_samples()
    whole = swing({"e": {"type": "encoder", "rate": 500}}).measured_trajectory()
    assert len(whole) == 101 and whole.warnings == ()
    with pytest.raises(ld.UsageError, match="the scenario needs the key sensors"):
        swing({}).measured_trajectory()


def test_a_run_on_disk_has_the_same_measurements(tmp_path, monkeypatch):
    scenario = {"robot": ARM, "duration": 0.2, "output_step": 0.02, "sensors": {"e": {"type": "encoder", "rate": 300}}}
    expected = ld.run_scenario(scenario)
    monkeypatch.setattr(run_recorder, "MAX_BYTES_IN_MEMORY", 100.0)
    disk = Unfinished(tmp_path / "run")
    got = simulate_file(scenario, (), SilentProgress(), disk=disk)
    assert disk.is_open and got.measurements == expected.measurements and np.array_equal(got.q, expected.q)


@pytest.mark.parametrize(("sensor", "words"), [
    ({"rate": 4}, "sensor m has only the sample at the start: its rate is 4 Hz"), ({"rate": 5}, None),
    ({"delay": 0.2}, "sensor m measures only the torque of the start: its delay is 0.2 s"), ({"delay": 0.19}, None)])
def test_sensors_that_measure_only_the_start_are_warned_about(sensor, words):
    prepared = prepare({"robot": ARM, "duration": 0.2, "sensors": {"m": {"type": "torque"} | sensor}}, ())
    assert [warning.message for warning in prepared.warnings if warning.code == "no-effect"] == ([words] if words else [])


def test_times_of_samples_within_rounding_of_rows_are_the_same_rows():
    sensor = SimpleNamespace(sources=np.arange(4) / 10)
    assert np.array_equal(motion_times(np.array([0.0, 0.1, 0.2, 3 * 0.1]), [sensor]), [0.0, 0.1, 0.2, 3 * 0.1])
    record = Record(**{name: np.array([0.0, 0.05, 0.1]) for name in Record._fields})
    segments = output_segments([RunSegment(None, record)], np.array([0.0, 0.1]))
    assert segments[0].record.t.tolist() == [0.0, 0.1]


def test_sensors_are_written_as_in_the_file():
    head = {"type": "imu", "link": "lower", "at": [0, 0, 1], "gyro_bias": 0.1, "accelerometer_noise": [1, 2, 3]}
    sensors = {**NOISY, "i": head,
               "f": {"type": "force_torque", "joint": "elbow", "frame": "world", "force_bias": [0, 0, 1], "dropout": 0.5}}
    scenario = scenario_of({"robot": ARM, "duration": 1, "sensors": sensors})
    assert scenario_of(to_plain(scenario)).sensors == scenario.sensors
    assert scenario.sensors[2].biases == (0.1, 0.1, 0.1, 0, 0, 0) and scenario.sensors[2].noises == (0, 0, 0, 1, 2, 3)


def test_measured_columns_have_names():
    m = swing({"e": {"type": "encoder"}}).measurements
    assert np.array_equal(m.t, swing({}).t) and repr(m) == "<Measurements: 11 samples of 2 columns>"
    with pytest.raises(ld.NameLookupError, match=r"no measured column 'q.elbo'; did you mean q.elbow"):
        m["q.elbo"]


BROKEN = [
    ("{a: 3}", "a mapping"), ("{a: {rate: 10}}", "type"), ("{a: {type: encodr}}", "encodr"), ("{a: {type: lidar}}", "lidar"),
    ("{a: {type: encoder, rate: 0}}", "out of range"), ("{a: {type: encoder, rate: fast}}", "expected a number"),
    ("{a: {type: encoder, rate: 1.0e+9}}", "too many samples"), ("{a: {type: encoder, dropout: 1.5}}", "out of range"),
    ("{a: {type: encoder, dropout: -0.1}}", "out of range"), ("{a: {type: encoder, noise: -1}}", "out of range"),
    ("{a: {type: encoder, noise: {elbo: 1}}}", "no such joint"), ("{a: {type: encoder, noise: {'w*': 1}}}", "matches no"),
    ("{a: {type: encoder, resolution: -0.001}}", "out of range"), ("{a: {type: encoder, offset: 1}}", "does not apply"),
    ("{a: {type: encoder, joints: []}}", "joints"), ("{a: {type: encoder, joints: [wrist]}}", "no such joint"),
    ("{a: {type: encoder}, b: {type: encoder, joints: [elbow]}}", "sensors a and b both measure q.elbow"),
    ("{a: {type: encoder, joints: [elbow], noise: {shoulder: 1}}}", "no such joint"),
    ("{a: {type: torque, delay: -1}}", "out of range"), ("{a: {type: torque, torque_constant: 0}}", "out of range"),
    ("{a: {type: torque, zero_offset: 1}}", "does not apply"), ("{a: {type: imu}}", "link"),
    ("{a: {type: imu, link: lowr}}", "no such link"), ("{a: {type: imu, link: lower, joints: [elbow]}}", "does not apply"),
    ("{a: {type: imu, link: lower, at: [0, 0]}}", "3 numbers"),
    ("{a: {type: imu, link: lower, gyro_noise: [1, 2]}}", "3 numbers"),
    ("{a: {type: imu, link: lower, gyro_noise: [1, 2, -3]}}", "out of range"),
    ("{a: {type: imu, link: lower, noise: 1}}", "does not apply"), ("{a: {type: force_torque}}", "joint"),
    ("{a: {type: force_torque, joint: elbw}}", "no such joint"),
    ("{a: {type: force_torque, joint: elbow, frame: local}}", "frame"),
    ("{a: {type: force_torque, joint: elbow, frame: world, at: [0, 0, 1]}}", "at cannot be combined with this frame"),
    ("{'a b': {type: encoder}}", "the name of a sensor"), ("{a: {type: encoder, rte: 10}}", "did you mean rate")]


@pytest.mark.parametrize("text, words", BROKEN, ids=[text for text, _ in BROKEN])
def test_wrong_sensors_are_errors_with_their_place(text, words):
    with pytest.raises(ScenarioError, match=re.escape(words)) as caught:
        prepare({"robot": ARM, "duration": 1, "sensors": yaml.safe_load(text)}, ())
    assert "sensors" in str(caught.value)
