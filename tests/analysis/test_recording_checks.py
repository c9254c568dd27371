"""Recorded motions that a command must not take as they are: angles that wrap, in degrees, beyond limits."""
import dataclasses
import re
import shlex

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.recording_checks import recording_warnings, unit_warnings
from liedyn.analysis.trajectory_dynamics import dynamics_along
from liedyn.io.column_map import columns_option
from liedyn.io.trajectory_csv import write_trajectory
from zoo import random_robot

ARM = """
name: two
links:
  a: {mass: 1, com: [0.2, 0, 0], inertia: [0.02, 0.02, 0.02]}
  b: {mass: 1, com: [0.2, 0, 0], inertia: [0.02, 0.02, 0.02]}
joints:
  turn: {type: continuous, parent: world, child: a, axis: [0, 1, 0]}
  bend: {type: revolute, parent: a, child: b, axis: [0, 1, 0], origin: {xyz: [0.4, 0, 0]},
         limits: {lower: -3.5, upper: 3.5, velocity: 3, effort: 20}}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("two") / "two.yaml"
    path.write_text(ARM)
    return ld.load(path)


T = np.arange(301) * 0.01


def column(along, name):
    return next(x for key, _, x in along.columns if key == name)


@pytest.mark.parametrize("smooth", [None, "auto"])
def test_an_angle_that_wraps_gives_the_torques_of_the_continuous_one(model, smooth):
    q = np.stack([3.0 * T, 0.3 * np.sin(T)], axis=1)
    wrapped = q.copy()
    wrapped[:, 0] = (q[:, 0] + np.pi) % (2 * np.pi) - np.pi
    one, other = (dynamics_along(model, ld.trajectory_of(model, T, x), "inverse", smooth=smooth) for x in (q, wrapped))
    assert any("unwrapped: turn (1 times)" in note
               for note in map(str, other.warnings)) and not any("unwrapped" in note for note in map(str, one.warnings))
    for name in ("tau.turn", "tau.bend"):
        np.testing.assert_allclose(column(other, name), column(one, name), rtol=0, atol=1e-6)
    fits = [ld.identify(model, T, x, np.stack([np.sin(T), np.cos(T)], axis=1)) for x in (q, wrapped)]
    np.testing.assert_allclose(fits[1].residual, fits[0].residual, rtol=1e-3, atol=1e-6)


def test_an_angle_that_wraps_although_limits_exclude_it_is_an_error(model):
    q = np.stack([0.0 * T, (3.0 * T + np.pi) % (2 * np.pi) - np.pi], axis=1)
    with pytest.raises(ld.TrajectoryError, match="bend jumps by a full turn at row 106, and its limits exclude further turns"):
        dynamics_along(model, ld.trajectory_of(model, T, q), "inverse")


def test_limits_that_a_recording_exceeds_are_reported_and_degrees_suspected(model):
    q = np.stack([0.5 * T, 0.8 * np.sin(T)], axis=1)
    fine = dynamics_along(model, ld.trajectory_of(model, T, q), "inverse")
    assert not any("limits" in note or "degrees" in note for note in map(str, fine.warnings))
    warnings = list(map(str, dynamics_along(model, ld.trajectory_of(model, T, np.degrees(q)), "inverse").warnings))
    for kind in ("position", "velocity", "effort"):
        assert any(note.startswith(f"{kind} limits are exceeded: bend from t = ") for note in warnings), warnings
    assert any("the angles seem to be in degrees: bend reaches 45.84" in note for note in warnings), warnings


PENDULUM = ARM.split("         limits")[0].rstrip(", \n") + "}\n"
SWING = np.stack([0.8 * np.sin(3 * T), 0.5 * np.sin(4 * T)], axis=1)
IN_DEGREES = {
    "wrap at 360": (np.degrees(np.stack([3 * T, np.sin(T)], axis=1)) % 360, "turn jumps by 358"),
    "wrap at 180": ((np.degrees(np.stack([3 * T, 0.1 * T], axis=1)) + 180) % 360 - 180, "turn jumps by 358"),
    "swing": (np.degrees(SWING), "turn oscillates by 91.67"),
}
IN_RADIANS = {
    "swing": SWING, "wheels": np.stack([50 * T, -120 * T], axis=1),
    "wheels that slow down": np.stack([50 * T, 60 * np.sin(T / 2)], axis=1),
    "wrap": np.stack([(3 * T) % (2 * np.pi), (20 * T) % (2 * np.pi)], axis=1), "to and fro, slowly": 10 * SWING / 3,
    "a flywheel on a pendulum": np.stack([0.3 * np.sin(3 * T), 60 * np.sin(4 * T)], axis=1),
    "fast rotors": np.stack([2000 * np.sin(T), 900 * np.sin(2 * T)], axis=1),
    "a wheel of few rows": np.stack([360 * T / 0.01, 0 * T], axis=1),
}


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    path = tmp_path_factory.mktemp("free") / "two.yaml"
    path.write_text(PENDULUM.replace("type: revolute", "type: continuous"))
    return ld.load(path)


@pytest.mark.parametrize("case", IN_DEGREES)
@pytest.mark.parametrize("columns", ["q", "q v a"])
def test_degrees_of_joints_without_limits_are_suspected(pendulum, case, columns):
    q, text = IN_DEGREES[case]
    v = np.degrees(np.gradient(q, 0.01, axis=0)) if columns != "q" else None
    warnings = list(map(str, dynamics_along(pendulum, ld.trajectory_of(pendulum, T, q, v, v), "inverse").warnings))
    assert any(f"the angles seem to be in degrees: {text}" in note for note in warnings), warnings
    assert not any("unwrapped" in note for note in warnings)


@pytest.mark.parametrize("case", IN_RADIANS)
def test_radians_of_joints_without_limits_are_not_suspected(pendulum, case):
    warnings = list(map(str, dynamics_along(pendulum, ld.trajectory_of(pendulum, T, IN_RADIANS[case]), "inverse").warnings))
    assert not any("degrees" in note for note in warnings), warnings


def test_wheels_of_a_vehicle_are_not_suspected(tmp_path):
    """The vehicle drives straight ahead, forward and backward."""
    body = """  body: {mass: 1, com: [0.2, 0, 0], inertia: [0.02, 0.02, 0.02]}
joints:
  x: {type: prismatic, parent: world, child: body, axis: [1, 0, 0], limits: {lower: -9, upper: 9}}"""
    text = PENDULUM.replace("revolute", "continuous").replace("joints:", body, 1)
    (tmp_path / "car.yaml").write_text(text.replace("parent: world, child: a", "parent: body, child: a"))
    car = ld.load(tmp_path / "car.yaml")
    swing = np.degrees(SWING[:, 0])
    motion = ld.trajectory_of(car, T, np.stack([0.05 * swing, swing, swing], axis=1))
    warnings = list(map(str, dynamics_along(car, motion, "inverse").warnings))
    assert not any("degrees" in note for note in warnings), warnings


@pytest.mark.parametrize("exact", [0.7 + 0.0 * T, 0.3 * np.sin(1.3 * T)], ids=["at rest", "a logged command"])
def test_a_coordinate_without_noise_does_not_prevent_smoothing(model, exact):
    rng = np.random.default_rng(0)
    q = np.stack([np.sin(2 * T) + 1e-4 * rng.standard_normal(len(T)), exact], axis=1)
    along = dynamics_along(model, ld.trajectory_of(model, T, q), "inverse", smooth="auto")
    assert "with a knot every" in str(along.warnings[0]) and not any("NOT RELIABLE" in note for note in map(str, along.warnings))


def test_measured_columns_that_contradict_each_other_are_reported(model):
    """Velocities in degrees, of the wrong sign or of another joint gave wrong torques without a message; noise, a wrapped angle
    and an offset do not matter."""
    def warnings(q, v, a):
        found = dynamics_along(model, ld.trajectory_of(model, T, q, v, a), "inverse").warnings
        return [one.message for one in found if one.code == "contradicting-rates"]
    q, v, a = (np.stack(x, axis=1) for x in ((np.sin(2 * T), np.cos(3 * T)), (2 * np.cos(2 * T), -3 * np.sin(3 * T)),
                                             (-4 * np.sin(2 * T), -9 * np.cos(3 * T))))
    noise = np.random.default_rng(0).standard_normal((3, *q.shape))
    assert not warnings(q, v, a)
    assert not warnings(q + 2e-3 * noise[0], v + 0.1 * noise[1] + 0.02, a + 0.3 * noise[2])
    assert not warnings(np.stack([(q[:, 0] + 4.0) % (2 * np.pi), q[:, 1]], axis=1), v, a)
    still = q * [1, 0]
    assert not warnings(still, v * [1, 0] + [0, 0.01], a * [1, 0])            # the offset of a joint that is at rest
    both, convert = "v.turn, v.bend are {} times the rates of q.turn, q.bend", "convert them with --columns (or columns=) "
    for factor, ratio, unit in ((np.degrees(1.0), "57.3", "deg/s"), (30 / np.pi, "9.55", "rpm"), (0.5 / np.pi, "0.159", "rev/s")):
        assert warnings(q, factor * v, factor * a) == [f"{both.format(ratio)} (in {unit}?); {convert}'v.*=v.*[{unit}]'"]
    assert warnings(q, v * [1, 30 / np.pi], a) == ["v.bend is 9.55 times the rate of q.bend (in rpm?); "
                                                   f"{convert}'v.bend=v.bend[rpm]'"]
    assert warnings(q, v * [1, -1], a * [1, -1]) == ["v.bend is -1 times the rate of q.bend (wrong sign?); "
                                                           f"{convert}v.bend=-v.bend"]
    assert warnings(q, -v, -a) == [f"{both.format('-1')} (wrong sign?); {convert}'v.*=-v.*'"]
    assert warnings(q, v * [1, -3], a)[0].endswith("v.bend is -3 times the rate of q.bend (wrong sign?)")
    assert warnings(q, v * np.degrees([-1, -1]), None)[0].endswith(f"(in deg/s, wrong sign?); {convert}'v.*=-v.*[deg/s]'")
    assert warnings(q, v * [-1, -np.degrees(1.0)], a) == [
        f"v.turn is -1 times the rate of q.turn (wrong sign?); {convert}v.turn=-v.turn",
        f"v.bend is -57.3 times the rate of q.bend (in deg/s, wrong sign?); {convert}'v.bend=-v.bend[deg/s]'"]
    assert [text.partition(" the ")[0] for text in warnings(q, v * [-2, -3], a)] == ["v.turn is -2 times", "v.bend is -3 times"]
    assert warnings(q, np.degrees(v), a)[0].startswith(f"{both.format('57.3')} (in deg/s?)")              # and not that of a
    assert warnings(q, v, a * [3, 1]) == ["a.turn is 3 times the rate of v.turn"]
    assert warnings(q, v[:, ::-1], a[:, ::-1]) == ["v.turn, v.bend are not the rates of q.turn, q.bend"]


@pytest.mark.parametrize("names", [("left arm", "arm"), ("arm-1", "arm-2"), ("r/j1", "r/j2"), ("ns:a", "ns:b"), ("a,b", "c"),
                                   ("x'y", "z"), ('x"y', "z"), ("a=b", "c"), ("1", "2"), ("e", "pi"), ("a.b", "c.d"), ("é", "ü")])
@pytest.mark.parametrize("factor, unit", [(-1.0, ""), (np.degrees(1.0), "[deg/s]"), (-np.degrees(1.0), "[deg/s]")])
@pytest.mark.parametrize("mapped", [False, True])
def test_the_map_in_a_warning_converts_the_column(names, factor, unit, mapped, tmp_path):
    """The text of the warning, read as by a shell, converts the velocities for every name of a joint."""
    links = [ld.Link(f"link {k}", 1.0, [0.2, 0.0, 0.0], [0.1, 0.1, 0.1]) for k in range(2)]
    joints = [ld.Joint(name, "continuous", parent, link.name, axis=[0, 1, 0])
              for name, parent, link in zip(names, ("world", "link 0"), links, strict=True)]
    model, file = ld.build(ld.Robot("odd", links=links, joints=joints)), tmp_path / "motion.csv"
    write_trajectory(file, {}, T, [(f"{kind}.{name}", "", x[:, k] * (factor if (kind, k) == ("v", 0) else 1.0))
                                   for kind, x in (("q", Q), ("v", V)) for k, name in enumerate(names)])
    trajectory = ld.read_trajectory(file, columns={"t": "t"} if mapped else None)
    warning, = unit_warnings(model, T, Q, V * [factor, 1.0], trajectory=trajectory)
    text, = shlex.split(warning.message.partition("(or columns=) ")[2])
    assert text.endswith(unit)
    np.testing.assert_allclose(ld.read_trajectory(file, columns=text).columns[f"v.{names[0]}"], V[:, 0], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", ["a*", "x'y\"z"])
def test_a_map_cannot_contain_some_names(name):
    assert not columns_option({f"v.{name}": "x"}) and columns_option({"v.*": "x*"}) == "--columns (or columns=) 'v.*=x*'"


def rate_warnings(model, t, q, v=None, a=None):
    found = dynamics_along(model, ld.trajectory_of(model, t, q, v, a), "inverse").warnings
    return [one.message for one in found if one.code == "contradicting-rates"]


def contradicting(messages):
    """Return the columns that the messages name."""
    return [name for note in messages for name in re.split(" is | are ", note)[0].split(", ")]


@pytest.mark.parametrize("rows", [5, 8, 19, 21, 401])
def test_contradicting_rates_of_few_rows(model, rows):
    t = np.linspace(0.0, 0.1 * rows, rows) if rows < 100 else T[:rows]
    q, v = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1), np.stack([2 * np.cos(2 * t), -3 * np.sin(3 * t)], axis=1)
    a = -q * [4, 9]
    assert not rate_warnings(model, t, q, v, a)
    for wrong in (np.degrees(v), -v):
        assert contradicting(rate_warnings(model, t, q, wrong, a)) == ["v.turn", "v.bend"]


@pytest.mark.parametrize("amplitude, noise", [(0.01, 5e-4), (0.01, 1e-3), (1.0, 1e-2)])
def test_noise_of_positions_contradicts_no_velocity(model, amplitude, noise):
    rng = np.random.default_rng(0)
    exact = amplitude * np.stack([np.sin(T), np.cos(1.3 * T)], axis=1)
    v, a = amplitude * np.stack([np.cos(T), -1.3 * np.sin(1.3 * T)], axis=1), -exact * [1.0, 1.69]
    for q in (exact + noise * rng.standard_normal(exact.shape), np.round(exact / noise) * noise):          # an encoder
        assert not rate_warnings(model, T, q, v, a)
        assert sorted(contradicting(rate_warnings(model, T, q, np.degrees(v), a))) == ["v.bend", "v.turn"]


def test_columns_of_zeros(model):
    q, v = np.stack([np.sin(2 * T), np.cos(3 * T)], axis=1), np.stack([2 * np.cos(2 * T), -3 * np.sin(3 * T)], axis=1)
    zero = 0 * v
    assert rate_warnings(model, T, q, zero, zero) == ["v.turn, v.bend are zero, although q.turn, q.bend change"]
    assert rate_warnings(model, T, q, v, zero) == ["a.turn, a.bend are zero, although v.turn, v.bend change"]
    assert not rate_warnings(model, T, 0 * q, 0 * v, 0 * v)


def test_rows_of_an_event(model):
    """The velocity jumps at an event; other rows are compared. `dynamics_along` gets such rows from files of runs only."""
    def found(q, v, a):
        return [one.message for one in recording_warnings(model, t, q, v, 0 * v, a) if one.code == "contradicting-rates"]
    t, k = np.insert(T, 100, T[100]), np.arange(len(T) + 1) > 100
    speed = np.where(k, 0.5, -1.0)
    q, v = np.stack([(t - t[100]) * speed, np.sin(t)], axis=1), np.stack([speed, np.cos(t)], axis=1)
    a = np.stack([0 * t, -np.sin(t)], axis=1)
    assert not found(q, v, a)
    assert contradicting(found(q, np.degrees(v), a)) == ["v.turn", "v.bend"]
    assert found(q, v, 2 * a) == ["a.bend is 2 times the rate of v.bend"]


def test_velocities_of_ball_and_free_joints(model):
    """Ball and free joints have no separate column of positions for each velocity."""
    robot = random_robot(5, 4, types=("ball", "revolute"), base="floating")
    model = ld.build(robot)
    t = np.linspace(0.0, 2.0, 201)
    rng = np.random.default_rng(5)
    rate = rng.uniform(-1.0, 1.0, model.nv)
    q = ld.integrate(model, ld.random_configuration(model, rng), np.outer(np.sin(t), rate))
    v = ld.difference(model, q[:-2], q[2:]) / (t[2] - t[0])
    t, q = t[1:-1], q[1:-1]
    assert not rate_warnings(model, t, q, v)
    ball = next(joint for joint in model.joints if joint.type == "ball")
    for joint in (model.joints[0], ball):
        wrong = v.copy()
        wrong[:, joint.v] *= -1.0
        found = rate_warnings(model, t, q, wrong)
        assert sorted(contradicting(found)) == sorted(f"v.{name}" for name in model.v_names[joint.v])
        assert all(f"-1 times the rates of q.{joint.name} (wrong sign?); convert them with " in note for note in found)


# times in other units ---------------------------------------------------------------------------------------------------

def time_warnings(model, t, q, v=None, header=()):
    motion = ld.trajectory_of(model, t, q, v)
    motion = dataclasses.replace(motion, header={key: x for key, x in motion.header.items() if key != "liedyn"} | dict(header))
    return [one.message for one in dynamics_along(model, motion, "inverse").warnings if one.code == "time-unit"]


Q, V = np.stack([np.sin(2 * T), np.cos(3 * T)], axis=1), np.stack([2 * np.cos(2 * T), -3 * np.sin(3 * T)], axis=1)


@pytest.mark.parametrize("unit, factor", [("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
def test_times_in_other_units_are_suspected(model, unit, factor):
    remedy = f"convert them with --columns (or columns=) 't=t[{unit}]'"
    of_steps = f"the median step is {0.01 * factor:.4g} s"
    of_rates = f"velocities are {factor:g} times the rates of the positions"
    assert time_warnings(model, factor * T, Q) == [f"the times seem to be in {unit}: {of_steps}; {remedy}"]
    assert time_warnings(model, factor * T, Q, V) == [f"the times seem to be in {unit}: {of_rates}; {remedy}"]
    assert not time_warnings(model, factor * T, Q, V / factor)                # slow, but consistent
    assert not time_warnings(model, factor * T, Q, header={"liedyn": "0.1.0"})
    assert "time-unit" in {one.code for one in ld.identify(model, factor * T, Q, Q).warnings}


def test_times_in_seconds_are_not_suspected(model):
    assert not time_warnings(model, T, Q) and not time_warnings(model, T, Q, V)
    assert not time_warnings(model, 49 * T, Q)                                # steps of 0.49 s
    assert not time_warnings(model, 1e3 * T[:50], Q[:50])                     # few rows
    assert not time_warnings(model, T, Q, V * [1e3, 1.0])                     # one column only
    assert not time_warnings(model, 1e-3 * T, Q, V)                           # steps of 10 us: velocities are wrong


def test_a_time_of_this_century_shows_its_unit(tmp_path, model):
    for unit, factor in (("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        rows = (f"{int((1700000000 + t) * factor)},{a},{b}" for t, (a, b) in zip(0.25 * np.arange(8), Q[:8], strict=True))
        (tmp_path / "log.csv").write_text("\n".join(["stamp,q.turn,q.bend", *rows]))
        motion = ld.read_trajectory(tmp_path / "log.csv", columns="t=stamp")
        message, = (one.message for one in dynamics_along(model, motion, "inverse").warnings if one.code == "time-unit")
        assert message.startswith(f"the times seem to be in {unit}: ")
        assert message.endswith(f"write t=stamp[{unit}] in the map of the columns")
        motion = ld.read_trajectory(tmp_path / "log.csv", columns=f"t=stamp[{unit}]")
        assert "time-unit" not in {one.code for one in dynamics_along(model, motion, "inverse").warnings}


@pytest.mark.parametrize("kinds", ["q", "qv"])
def test_missing_rows_contradict_nothing(model, kinds):
    """Rates over a gap were compared with the trapezoidal rule, also where velocities were derived from positions."""
    q = np.column_stack([np.sin(1.3 * T), np.cos(2.1 * T)])
    v = np.column_stack([1.3 * np.cos(1.3 * T), -2.1 * np.sin(2.1 * T)])
    some = (T < 1.0) | (T > 2.2)
    recorded = ld.trajectory_of(model, T[some], *((q[some], v[some])[:len(kinds)]))
    warnings = dynamics_along(model, recorded, "inverse").warnings
    assert not {warning.code for warning in warnings} & {"contradicting-rates", "time-unit"}


def test_degrees_are_not_suspected_in_results_of_runs(model):
    """A falling arm exceeds its limits by far, but the units of a result are known."""
    q = np.column_stack([0.0 * T, 4.0 * np.sin(2.0 * T)]) * 2.0
    for header, is_suspected in ({}, True), ({"model": "model.yaml"}, False):
        recorded = dataclasses.replace(ld.trajectory_of(model, T, q), header=header)
        codes = {warning.code for warning in recording_warnings(model, T, q, 0.0 * q, 0.0 * q, trajectory=recorded)}
        assert ("degrees" in codes) is is_suspected


def test_measured_torques_of_followers_count_at_their_drivers():
    """Two fingers each have a motor that carries half of the force: the sum is the force of the driver."""
    links = [ld.Link(name, mass=1) for name in ("left", "right")]
    joints = [ld.Joint("left", "prismatic", "world", "left", axis=[1, 0, 0]),
              ld.Joint("right", "prismatic", "world", "right", axis=[-1, 0, 0], mimic=ld.Mimic("left"))]
    model = ld.build(ld.Robot("fingers", links, joints))
    y = np.sin(2.0 * T)[:, None]
    q, v, a = ld.expand(model, y, 2.0 * np.cos(2.0 * T)[:, None], -4.0 * y)
    half = np.column_stack([-4.0 * y, -4.0 * y])
    for factor, expected in (1.0, set()), (0.25, {"torques-compared", "torque-scale"}):
        recorded = ld.trajectory_of(model, T, q, v, a, factor * half)
        along = dynamics_along(model, recorded, "inverse")
        assert {warning.code for warning in along.warnings} & {"torques-compared", "torque-scale"} == expected
