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
            (({"sholder": 1},), ld.NameLookupError, "target: the robot has no moving joint 'sholder' (did you mean shoulder?)"),
            (({"elbow": 0.5},), ld.UsageError, "no acceleration limit of elbow"),
            (({"elbow": 2.0},), ld.ConfigurationError, "the target of elbow is 2 rad; its limits are -1 to 1"),
            (({"shoulder": np.nan},), ld.ConfigurationError, "not finite"),
            (([1.0],), ld.ShapeError, "target"),
            (([[0.0, 0.0]],), ld.UsageError, "target must be one configuration")):
        with pytest.raises(kind) as error:
            ld.plan_move(model, *arguments)
        assert message in str(error.value)
    for options, message in (({"acceleration": -1}, "acceleration must be a number > 0"), ({"jerk": "x"}, "jerk must be"),
                             ({"velocity": {"wrist": 1}}, "no moving joint 'wrist'"), ({"duration": 0}, "duration must be"),
                             ({"duration": 0.1}, "the motion takes at least"), ({"a0": [0, np.inf]}, "a0")):
        with pytest.raises(ld.LiedynError, match=message):
            ld.plan_move(model, {"shoulder": 1.0}, **options)
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
