"""Point-to-point motions of robots: limits, followers, ball and free joints, and how they change with units, order and sign."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from other_units import in_units
from zoo import MOVING, random_robot


def pendulum(**limits):
    return ld.load("robots/double_pendulum.yaml").with_changes(**limits)


@pytest.mark.parametrize("seed, base, straight", [(1, "fixed", False), (2, "floating", False), (3, "floating", True)])
def test_motions_of_every_joint_type(seed, base, straight):
    """They start and end where they should, velocities and accelerations are rates of q, and each limit is reached or kept."""
    model = ld.build(random_robot(seed, len(MOVING), base=base, types=MOVING))
    rng = np.random.default_rng(seed)
    q0 = ld.random_configuration(model, rng)
    q1 = ld.integrate(model, q0, 0.2 * rng.normal(size=model.nv))
    inside = np.array([model.q_index(joint.name).start for joint in model.joints if joint.screws is not None])
    limits = {"velocity": 0.7, "acceleration": 2.0, "jerk": 15.0}
    model = model.with_changes(lower={j.name: -9.0 for j in model.joints if j.screws is not None and j.type != "continuous"},
                               upper={j.name: 9.0 for j in model.joints if j.screws is not None and j.type != "continuous"})
    move = ld.plan_move(model, q1, q0, straight=straight, **limits)
    assert len(inside) and move.limiting and (not straight or len(move.limiting) > 5)
    first, last, late = move.at([0.0, move.duration]), move.at(move.duration), move.at(move.duration + 1.0)
    assert np.abs(ld.difference(model, first.q[0], q0)).max() < 1e-14 and not first.v[0].any()
    assert np.abs(ld.difference(model, last.q, q1)).max() < 1e-13 and np.abs(last.v).max() < 1e-14 and not late.a.any()
    t, h = np.linspace(0.05, 0.93, 23) * move.duration, 1e-5
    here, ahead, behind = move.at(t), move.at(t + h), move.at(t - h)
    rate = (ld.difference(model, here.q, ahead.q) - ld.difference(model, here.q, behind.q)) / (2 * h)
    assert np.abs(rate - here.v).max() < 1e-7
    smooth = np.abs(t[:, None] - move.knots).min(axis=1) > h
    assert np.abs((ahead.v - behind.v) / (2 * h) - here.a)[smooth].max() < 1e-6
    dense = move.at(np.linspace(0.0, move.duration, 999))
    assert np.abs(dense.v).max() <= 0.7 * (1 + 1e-9) and np.abs(dense.a).max() <= 2.0 * (1 + 1e-6)
    alone = [ld.plan_move(model, {joint.name: q1[joint.q]}, q0, **limits).duration for joint in model.joints]
    if straight:
        way = ld.difference(model, q0, q1)
        assert np.abs(dense.v - np.outer(dense.v @ way, way) / (way @ way)).max() < 1e-12
        assert move.duration >= max(alone) * (1 - 1e-9)
    else:
        assert move.duration == pytest.approx(max(alone), rel=1e-6)         # the slowest joint decides


def test_units_mirror_order_and_start():
    """Time and length in other units, a mirrored, a reversed and a reordered motion take the corresponding time."""
    robot = random_robot(5, 6, types=("revolute", "prismatic", "helical", "cylindrical"))
    model = ld.build(robot)
    q0 = 0.1 * np.arange(model.nq) / model.nq
    q1 = q0 + 0.15 * np.cos(np.arange(model.nq))
    move = ld.plan_move(model, q1, q0)
    assert ld.plan_move(model, q0, q1).duration == pytest.approx(move.duration, rel=1e-12)
    length, time = 7.0, 3.0
    other = ld.build(in_units(robot, length=length, time=time, mass=2.0))
    size = np.where(np.array(model.q_units) == "m", length, 1.0)
    assert ld.plan_move(other, q1 * size, q0 * size).duration == pytest.approx(move.duration * time, rel=1e-9)
    def mirror(joint):
        return replace(joint, coordinates=tuple(replace(c, lower=-c.upper, upper=-c.lower) for c in joint.coordinates))
    mirrored = ld.build(replace(robot, joints=tuple(map(mirror, robot.joints))))
    assert ld.plan_move(mirrored, -q1, -q0).duration == pytest.approx(move.duration, rel=1e-12)
    assert np.allclose(ld.plan_move(mirrored, -q1, -q0).at(0.3).q, -move.at(0.3).q, atol=1e-13)
    backward = ld.build(replace(robot, joints=robot.joints[::-1]))
    names = {name: q for name, q in zip(model.q_names, q1, strict=True)}
    start = {name: q for name, q in zip(model.q_names, q0, strict=True)}
    again = ld.plan_move(backward, [names[name] for name in backward.q_names], [start[name] for name in backward.q_names])
    assert again.duration == pytest.approx(move.duration, rel=1e-12)


@pytest.mark.parametrize("multiplier, velocity, acceleration, jerk, limiting", [
    (1.0, 0.3, 4.0, None, {"a", "b"}), (-3.0, 2.0, 4.0, None, {"b"}), (1.0, 2.0, 1.0, None, {"b"}),
    (0.1, 9.0, 9.0, None, {"a"}), (2.0, 9.0, 9.0, 9.0, {"b"}), (-0.5, 0.4, 9.0, 2.0, {"b"})])
def test_limits_of_a_follower_act_as_those_of_its_driver(multiplier, velocity, acceleration, jerk, limiting):
    """Motions took up to twice as long, since all of the motion became slower, and the summary named the driver."""
    links = [ld.Link("a", 1, [0, 0, 0], [0.1] * 3), ld.Link("b", 1, [0, 0, 0], [0.1] * 3)]
    own = {"lower": -9, "upper": 9, "velocity": 2.0, "acceleration": 4.0}
    model = ld.build(ld.Robot("r", links, [
        ld.Joint("a", "revolute", "world", "a", axis=[0, 0, 1], limits=own | {"jerk": 20.0 if jerk else np.inf}),
        ld.Joint("b", "revolute", "a", "b", axis=[0, 0, 1], mimic=ld.Mimic("a", multiplier=multiplier),
                 limits={"lower": -9, "upper": 9, "velocity": velocity, "acceleration": acceleration, "jerk": jerk or np.inf})]))
    size = abs(multiplier)
    limits = {"velocity": min(2.0, velocity / size), "acceleration": min(4.0, acceleration / size)}
    limits |= {"jerk": min(20.0, jerk / size)} if jerk else {}
    for v0 in (None, [0.1, 0.1 * multiplier]):
        if v0 and jerk is None:
            continue                                           # one motion from a velocity suffices
        move = ld.plan_move(model, {"a": 1.0}, v0=v0)
        alone = ld.plan_move(model, {"a": 1.0}, v0=v0, **{key: {"a": x, "b": 1e9} for key, x in limits.items()})
        assert move.duration == pytest.approx(alone.duration, rel=1e-9)
        assert v0 or set(move.limiting) == limiting


def test_names_take_precedence_over_patterns_also_of_coordinates():
    """A later pattern replaced the limit of a joint that had been named, and patterns did not match coordinates."""
    model = pendulum()
    slow = ld.plan_move(model, {"elbow": 1.0}, acceleration=1.0).duration
    for limits in ({"elbow": 1.0, "*": 5.0}, {"*": 5.0, "elbow": 1.0}, {"e*": 5.0, "elb*": 1.0}, {"elb*": 1.0, "e*": 5.0}):
        assert ld.plan_move(model, {"elbow": 1.0}, acceleration=limits).duration == slow
    free = ld.build(ld.Robot("r", [ld.Link("a", 1, [0, 0, 0], [0.1] * 3)], [ld.Joint("base", "free", "world", "a")]))
    far = {"base": [0, 0, 1, 0, 0, 0, 1]}
    for limits in ({"base.v*": 4.0, "*": 1.0}, {"base": 1.0, "base.vz": 4.0}, {"*": 1.0, "base": 4.0}, {"b?se": 4.0}):
        assert ld.plan_move(free, far, acceleration=limits).duration == pytest.approx(1.0, rel=1e-12)
    with pytest.raises(ld.NameLookupError, match=r"no moving joint 'bsae'"):
        ld.plan_move(free, far, acceleration={"bsae": 1.0})


def test_the_robot_rests_before_a_motion_that_starts_at_rest():
    """The first part of the motion continued before its start: x = a t^2 / 2."""
    for jerk in (None, 10.0):
        move = ld.plan_move(pendulum(), {"shoulder": 1.0, "elbow": 0.3}, [0.1, 0.2], velocity=1.0, acceleration=3.0, jerk=jerk)
        q, v, a = move.at([-5.0, -1e-3, np.nextafter(0.0, -1.0)])
        assert q.tolist() == [[0.1, 0.2]] * 3 and not v.any() and not a.any()


def test_what_a_start_exceeds_is_named():
    """An initial acceleration led to five times the maximum velocity without a message."""
    model = pendulum()
    limits = {"velocity": 1.0, "acceleration": 3.0, "jerk": 1.0}
    with pytest.warns(ld.LiedynWarning, match=r"velocity of shoulder reaches 5\.4, its limit is 1 \[beyond-limits\]"):
        move = ld.plan_move(model, {"shoulder": 1.0}, v0=[0.9, 0], a0=[3.0, 0], **limits)
    assert np.abs(move.at(np.linspace(0, move.duration, 9999)).v).max() == pytest.approx(5.4, rel=1e-5)
    with pytest.warns(ld.LiedynWarning, match="acceleration of shoulder reaches 4, its limit is 3"):
        ld.plan_move(model, {"shoulder": 1.0}, a0=[4.0, 0], velocity=90.0, acceleration=3.0, jerk=1e3)
    with pytest.raises(ld.UsageError, match="a0 of shoulder has no effect without a jerk limit"):
        ld.plan_move(model, {"shoulder": 1.0}, a0=[3.0, 0], velocity=1.0, acceleration=3.0)


@pytest.mark.parametrize("scale", [1e200, 1e-300])
def test_extreme_limits_cause_no_warning(scale):
    model = pendulum()
    ld.plan_move(model, {"shoulder": 1.0}, velocity=scale, acceleration=scale).at(np.array([0.0, 1.0, 1e300]))
    with pytest.raises(ld.ComputationError, match="the motion is not finite under these limits"):
        ld.plan_move(model, {"shoulder": 1e200}, acceleration=1e-200, velocity=1e300)


def test_followers_stay_within_their_limits():
    """A follower with twice the velocity of its joint halves that; one by a function, too."""
    links = [ld.Link("a", 1, [0, 0, 0], [0.1] * 3), ld.Link("b", 1, [0, 0, 0], [0.1] * 3)]
    def joints(b):
        return [ld.Joint("a", "revolute", "world", "a", axis=[0, 0, 1], limits={"velocity": 2.0, "acceleration": 4.0}), b]
    twice = ld.build(ld.Robot("r", links, joints(ld.Joint("b", "revolute", "a", "b", axis=[1, 0, 0], limits={"velocity": 1.0},
                                                          mimic=ld.Mimic("a", multiplier=2.0)))))
    move = ld.plan_move(twice, {"a": 3.0})
    speeds = move.at(np.linspace(0, move.duration, 999)).v
    assert np.abs(speeds[:, 1]).max() == pytest.approx(1.0, rel=2e-3) and np.abs(speeds[:, 1]).max() <= 1.0
    assert move.at(move.duration).q == pytest.approx([3.0, 6.0])
    slow = twice.with_changes(acceleration_limit={"b": 2.0})
    move = ld.plan_move(slow, {"a": 3.0}, velocity={"b": 100.0})
    assert np.abs(move.at(np.linspace(0, move.duration, 999)).a[:, 1]).max() == pytest.approx(2.0, rel=3e-3)
    free = ld.plan_move(twice, {"a": 3.0}, velocity={"b": 100.0})
    assert np.abs(free.at(np.linspace(0, free.duration, 99)).v[:, 0]).max() == pytest.approx(2.0)
    with pytest.raises(ld.UsageError, match="target: joint b follows other joints"):
        ld.plan_move(twice, {"b": 1.0})


def test_wrong_input():
    robot = ld.load_description("robots/double_pendulum.yaml")
    elbow = replace(robot.joints[1], type="revolute", limits=(-1.0, 1.0))
    model = ld.build(replace(robot, joints=(robot.joints[0], elbow, *robot.joints[2:])))
    model = model.with_changes(acceleration_limit={"shoulder": 3.0})
    for arguments, kind, message in (
            (({"sholder": 1},), ld.NameLookupError, "target: no moving joint 'sholder'; did you mean 'shoulder'?"),
            (({"elbow": 0.5},), ld.UsageError, "no acceleration limit of elbow"),
            (({"elbow": 2.0},), ld.ConfigurationError, "the target of elbow is 2 rad; its limits are -1 to 1"),
            (({"shoulder": np.nan},), ld.ConfigurationError, "not finite"),
            (([1.0],), ld.ShapeError, "target"), ((None,), ld.UsageError, "target: expected a configuration or values by joint"),
            (([[0.0, 0.0]],), ld.UsageError, "target must be one configuration")):
        with pytest.raises(kind) as error:
            ld.plan_move(model, *arguments)
        assert message in str(error.value)
    for options, message in (({"acceleration": -1}, "acceleration must be a number > 0"), ({"jerk": "x"}, "jerk must be"),
                             ({"velocity": {"wrist": 1}}, "no moving joint 'wrist'"),
                             ({"jerk": True}, "jerk must be a number > 0, got True"),
                             ({"acceleration": np.inf}, "acceleration must be a finite number"),
                             ({"duration": 0}, "duration must be"),
                             ({"duration": 0.1}, "the motion takes at least"), ({"a0": [0, np.inf]}, "a0")):
        with pytest.raises(ld.LiedynError, match=message):
            ld.plan_move(model, {"shoulder": 1.0}, **options)
    with pytest.warns(ld.LiedynWarning, match="elbow starts at 3 rad, above its limit 1 rad"):
        ld.plan_move(model, {"elbow": 0.5}, {"elbow": 3.0}, acceleration=3.0)
    with pytest.raises(ld.ComputationError, match=r"elbow reaches 2\.75 rad during the motion; its limits are -1 to 1"):
        ld.plan_move(model, {"elbow": 0.9}, {"elbow": 0.5}, [0, 3.0], acceleration=2.0)
    bars = ld.load("robots/four_bar.yaml")
    with pytest.raises(ld.ModelError, match="does not support robots with loops"):
        ld.plan_move(bars, bars.neutral(), acceleration=1.0)
    ball = ld.build(ld.Robot("r", [ld.Link("a", 1, [0, 0, 0], [0.1] * 3)], [ld.Joint("a", "ball", "world", "a")]))
    with pytest.raises(ld.UsageError, match="v0 is not along the motion"):
        ld.plan_move(ball, [0.1, 0, 0, np.sqrt(0.99)], v0=[0, 1, 0], acceleration=1.0)


def test_no_motion_and_rows_of_the_trajectory(tmp_path):
    model = pendulum()
    rest = ld.plan_move(model, {}, [0.1, 0.2], duration=2.0)
    assert rest.duration == 2.0 and rest.at([0, 1.0]).q.tolist() == [[0.1, 0.2]] * 2 and not rest.limiting
    move = ld.plan_move(model, {"shoulder": 1.0}, acceleration=3.0)
    t = move.trajectory(0.1).t
    assert t[:-1].tolist() == [round(0.1 * k, 10) for k in range(len(t) - 1)] and t[-1] == move.duration
    with pytest.raises(ld.UsageError, match="step must be a number of seconds > 0"):
        move.trajectory(0.0)
    with pytest.raises(ld.UsageError, match="needs more than 10000000 rows"):
        move.trajectory(1e-9)
    motion = ld.motion_of(model, move.trajectory(0.05))
    assert np.array_equal(motion.v, move.trajectory(0.05).columns["v.shoulder"][:, None] * [1, 0])
