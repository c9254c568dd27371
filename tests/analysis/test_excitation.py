"""Motions for identification: gradients, limits, predicted deviations, symmetries, and errors for what cannot be planned."""
import dataclasses
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import numpy as np
import pytest

import liedyn as ld
from coupled_robots import coupled_robot
from liedyn.analysis import excitation, excitation_optimizer
from liedyn.dynamics.batching import processes
from liedyn.dynamics.inertial_parameters import JOINT_PARAMETERS, contracted_derivatives
from liedyn.model.description import Mimic
from zoo import ROBOTS, model_of, state

ARM = "robots/double_pendulum.yaml"
OPTIONS = {"duration": 4.0, "noise": 0.1, "velocity": 3.0, "torque": 40.0, "harmonics": 3, "starts": 2, "joints": ()}


@pytest.fixture(scope="module")
def arm():
    return ld.load(ARM)


@pytest.fixture(scope="module")
def motion(arm):
    return ld.excite(arm, **OPTIONS)


def fourth_order(function, step):
    """Return the derivative of function(e) at 0 from four values."""
    return (8 * (function(step) - function(-step)) - function(2 * step) + function(-2 * step)) / (12 * step)


# Gradients --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives_of_a_sum_of_entries_of_the_regressor(name):
    """Along a random direction, against differences; with the robot's parameters in one row, against inverse dynamics."""
    model = model_of(name)
    q, v, a, _ = state(model, 3, 9)
    rng = np.random.default_rng(4)
    pi = ld.inertial_parameters(model, passive=True).values
    rows = rng.standard_normal((9, model.nv))
    of_force = contracted_derivatives(model, q, v, a, rows[:, :, None] * pi, True, None)
    for part, D in zip(of_force, ld.inverse_dynamics_derivatives(model, q, v, a), strict=True):
        expected = np.einsum("ni,nik->nk", rows, D)
        assert np.abs(part - expected).max(initial=0.0) < 1e-12 * max(np.abs(expected).max(initial=0.0), 1.0)
    weights = rng.standard_normal(ld.regressor(model, q, v, a, joints=JOINT_PARAMETERS).shape)
    parts = contracted_derivatives(model, q, v, a, weights, True, JOINT_PARAMETERS)
    dq, dv, da = rng.standard_normal((3, 9, model.nv))

    def total(e):
        Y = ld.regressor(model, ld.integrate(model, q, e * dq), v + e * dv, a + e * da, joints=JOINT_PARAMETERS)
        return (weights * Y).sum(axis=(1, 2))

    along = sum((part * direction).sum(axis=1) for part, direction in zip(parts, (dq, dv, da), strict=True))
    assert np.abs(along - fourth_order(total, 1e-4)).max() < 1e-8 * np.abs(along).max()


def experiment(model, criterion="d-optimal", parameters=()):
    """Return an experiment on a robot with unit noise, and coefficients of a motion within its limits."""
    base = ld.base_parameters(model, joints=("damping", "offset"))
    settings = excitation._settings(5.0, None, 3, "fourier", 100.0, criterion, 1, 0)
    out = excitation_optimizer.Experiment(model, base, ("damping", "offset"), np.ones(model.nv),
                                          excitation._limits(model, None, 10.0, 100.0, 1e3), settings,
                                          excitation._chosen(base, parameters, criterion))
    return out, out.random_motion(np.random.default_rng(1))


SINGLE = ["universal", "euler", "one degree of freedom each"]
MODELS = {name: lambda name=name: model_of(name) for name in SINGLE} | {
    "couplings": lambda: coupled_robot(3, types=("revolute", "prismatic", "helical"))}
CASES = [("d-optimal", ()), ("d-optimal", ("h*",)), ("condition", ())]


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_criteria_and_of_limits(name):
    """Differences of the criteria are right to 1e-6: rounding relative to the step, times the condition number.

    The logarithm of the condition number is rounded more and curved less than log det, and needs a longer step.
    """
    model = MODELS[name]()
    for criterion, parameters in CASES[:2] if name == "couplings" else CASES:       # with couplings, it is infinite at random
        e, x = experiment(model, criterion, parameters)
        dx = np.random.default_rng(2).standard_normal(x.shape) * e.unit
        value, gradient = e.criterion(x)
        expected = fourth_order(lambda h, e=e, x=x, dx=dx: e.criterion(x + h * dx)[0],
                                1e-4 if criterion == "condition" else 1e-5)
        assert np.isfinite(value)
        assert abs((gradient * dx).sum() - expected) < 1e-5 * np.linalg.norm(gradient * dx)
    _, _, change_of = e.limit_terms(x, e.samples, *np.ones((2, 2 * 4 * len(e.samples.q) * model.nv)))
    expected = fourth_order(lambda h: e.relative(x + h * dx, e.samples), 1e-6)
    upper, lower = change_of((dx / e.unit).ravel()).reshape(2, *expected.shape)
    assert np.abs(upper - np.where(e.limited, expected, 0.0)).max() < 1e-8 * np.abs(expected).max()
    assert np.array_equal(upper, -lower)


# The motion -------------------------------------------------------------------------------------------------------------

def test_the_motion_is_within_limits_between_its_rows_and_starts_and_ends_at_rest(arm, motion):
    t = np.linspace(0.0, 4.0, 10 * len(motion.trajectory()))
    q, v, a = motion.at(t)
    tau = ld.inverse_dynamics(arm, q, v, a)
    assert np.abs(v).max() <= 3.0 and np.abs(tau).max() <= 40.0
    assert {(use.kind, use.limit) for use in motion.at_limits} <= {("velocity", 3.0), ("velocity", -3.0), ("torque", 40.0),
                                                                   ("torque", -40.0)}
    for use in motion.limits:                                       # peaks between samples are within 1e-4
        x = {"velocity": v, "torque": tau}[use.kind][:, arm.v_names.index(use.coordinate)]
        assert abs(np.abs(x).max() - abs(use.peak)) < 2e-3 * abs(use.limit)
    assert max(np.abs(x[[0, -1]]).max() for x in (v, a)) < 1e-12 and np.abs(q[0] - q[-1]).max() < 1e-12
    h = 1e-6
    assert np.abs((motion.at(t + h).q - motion.at(t - h).q) / (2 * h) - v).max() < 1e-8
    assert np.abs((motion.at(t + h).v - motion.at(t - h).v) / (2 * h) - a).max() < 1e-7


@pytest.mark.parametrize("kind", ["fourier", "splines"])
def test_a_motion_starts_and_ends_at_a_wanted_configuration(arm, kind):
    motion = ld.excite(arm, **OPTIONS | {"starts": 1}, kind=kind, q0={"elbow": 0.5})
    ends, h = motion.at([0.0, 4.0]), 1e-6
    assert np.abs(ends.q - [0.0, 0.5]).max() < 1e-12 and max(np.abs(ends.v).max(), np.abs(ends.a).max()) < 1e-12
    t = np.linspace(0.01, 3.99, 999)
    q, v, a = motion.at(t)
    assert np.abs((motion.at(t + h).q - motion.at(t - h).q) / (2 * h) - v).max() < 1e-8
    assert np.abs((motion.at(t + h).v - motion.at(t - h).v) / (2 * h) - a).max() < 1e-7
    assert 2.7 < np.abs(v).max() <= 3.0 and np.abs(ld.inverse_dynamics(arm, q, v, a)).max() <= 40.0
    assert motion.kind == kind and np.isfinite(motion.log_det) and motion.at(0.5).q.shape == (2,)
    if kind == "splines":
        assert "splines of 5 intervals of 0.8 s" in motion.summary
        with pytest.raises(ld.UsageError, match="splines have no Fourier coefficients"):
            motion.sine  # noqa: B018
    else:
        angles = np.pi / 2 * np.outer(t, np.arange(1, 4))
        assert np.abs(motion.center + np.sin(angles) @ motion.sine + np.cos(angles) @ motion.cosine - q).max() < 1e-12


def test_it_informs_more_than_random_motions_and_more_starts_never_less(arm, motion):
    limits = excitation._limits(arm, None, 3.0, None, 40.0)
    e = excitation_optimizer.Experiment(arm, motion.base, ("offset",), motion.noise, limits,
                                        excitation._settings(4.0, None, 3, "fourier", 100.0, "d-optimal", 1, 0),
                                        np.ones(len(motion.base), bool))
    rng = np.random.default_rng(5)
    rows = len(motion.base) * np.log(401)
    assert max(rows - e.value(e.random_motion(rng)) for _ in range(50)) < motion.log_det - 1.0
    assert len(motion.optima) == 3 and (np.diff(motion.optima) <= 0.0).all()
    assert ld.excite(arm, **OPTIONS).trajectory().columns["q.elbow"].tolist() == motion.trajectory().columns["q.elbow"].tolist()
    assert ld.excite(arm, **OPTIONS | {"seed": 1}).log_det != motion.log_det


def test_the_number_of_processes_does_not_change_the_motion(arm, motion, monkeypatch):
    """Threads stand for processes, with pickled arguments and values."""
    class Pool(ThreadPoolExecutor):
        def map(self, function, arguments):
            return super().map(lambda pair: pickle.loads(pair)[0](pickle.loads(pair)[1]),
                               [pickle.dumps((function, argument)) for argument in arguments])

    pools = []
    monkeypatch.setattr(processes, "_MAX_SEQUENTIAL_SECONDS", 0.0)
    monkeypatch.setattr(processes, "process_pool", lambda count: pools.append(count) or Pool(count))
    other = ld.excite(arm, **OPTIONS, jobs=3)
    assert pools == [3] and np.array_equal(other.sine, motion.sine) and np.array_equal(other.optima, motion.optima)


def test_a_process_that_ends_is_an_error(arm, monkeypatch):
    @contextmanager
    def ended(count):
        raise BrokenProcessPool
        yield

    monkeypatch.setattr(processes, "_MAX_SEQUENTIAL_SECONDS", 0.0)
    monkeypatch.setattr(processes, "process_pool", ended)
    with pytest.raises(ld.ComputationError, match="a worker process ended: it was killed, "):
        ld.excite(arm, **OPTIONS, jobs=2)


def test_criteria_and_chosen_parameters(arm, motion):
    conditioned = ld.excite(arm, **OPTIONS, criterion="condition")
    assert conditioned.condition < motion.condition and conditioned.log_det < motion.log_det
    names = [name for name in motion.names if name.startswith("offset")]
    chosen = ld.excite(arm, **OPTIONS, parameters=["offset.*"])
    k = [motion.names.index(name) for name in names]
    sizes = motion.base.sizes[motion.base.columns][k]

    def information(m):
        return -np.linalg.slogdet(m.covariance[np.ix_(k, k)] / np.outer(sizes, sizes))[1]

    assert abs(information(chosen) - chosen.log_det) < 1e-8 * abs(chosen.log_det)
    assert information(chosen) > information(motion)


def test_an_arm_of_seven_joints_is_well_conditioned():
    """Of the 50 base parameters of a KUKA iiwa, within its limits of position, velocity, acceleration and torque."""
    motion = ld.excite(ld.load("robots/iiwa.yaml"), harmonics=3, starts=1, criterion="condition")
    assert motion.condition < 50.0 and len(motion.base) == 50 and max(use.used for use in motion.limits) <= 1.0


def test_a_period_of_half_the_duration_has_half_the_variance(arm):
    one, two = (ld.excite(arm, **OPTIONS | {"duration": T, "period": 4.0, "rate": 250.0}) for T in (4.0, 8.0))
    assert np.array_equal(one.sine, two.sine)
    assert np.abs(2.0 * (two.deviations / one.deviations)**2 - 1.0).max() < 0.01     # the first row and the last one count once


def test_predicted_deviations_are_those_of_estimates(arm, motion):
    """Errors of 60 noisy recordings in predicted deviations: their squares have the mean 1 +- 0.1 (four deviations)."""
    t = motion.trajectory().t
    q, v, a = motion.at(t)
    tau, rng = ld.inverse_dynamics(arm, q, v, a), np.random.default_rng(0)
    Y = ld.regressor(arm, q, v, a, joints=("offset",))[:, :, motion.base.columns].reshape(-1, len(motion.base))
    errors = np.linalg.lstsq(Y, (0.1 * rng.standard_normal((60, *tau.shape))).reshape(60, -1).T, rcond=None)[0]
    L = np.linalg.cholesky(motion.covariance)
    assert abs((np.linalg.solve(L, errors)**2).mean() - 1.0) < 4.0 * np.sqrt(2.0 / errors.size)
    fit = ld.identify(arm, t, q, tau + 0.1 * rng.standard_normal(tau.shape), v=v, a=a, joints=())
    assert fit.names == motion.names
    assert np.abs(fit.deviations / motion.deviations - 1.0).max() < 0.15          # fitted noise of 402 rows, and its colour
    assert abs(fit.condition / motion.condition - 1.0) < 0.15


@pytest.mark.parametrize("joints", [(), ("damping",)])
def test_a_rehearsal_identifies_what_is_predicted(arm, joints):
    """Errors are about one predicted deviation; another seed gives other errors."""
    motion = ld.excite(arm, **OPTIONS | {"joints": joints})
    for seed, error in ((-1, ld.UsageError), (1.5, ld.UsageError), ("a", ld.ArgumentError)):
        with pytest.raises(error, match="seed must be"):
            motion.rehearse(seed)
    fit = motion.rehearse(3)
    assert fit.names == motion.names and fit.verdict == "the model explains the torques"
    assert np.abs(fit.deviations / motion.deviations - 1.0).max() < 0.15
    errors = (fit.values - motion.base.values) / motion.deviations
    assert 0.3 < np.sqrt(np.mean(errors**2)) < 2.0 and not np.array_equal(motion.rehearse(4).values, fit.values)


def test_a_joint_whose_torque_is_not_measured(arm):
    motion = ld.excite(arm, **OPTIONS | {"noise": {"shoulder": 0.1, "elbow": np.inf}}, offset=False)
    fit = motion.rehearse()
    assert [joint.measured for joint in fit.joints] == [True, False]
    assert np.abs(fit.deviations / motion.deviations - 1.0).max() < 0.15


def test_a_follower_keeps_its_coupling_and_its_limits(arm):
    """The elbow turns half as far as the shoulder. Its velocity limit binds, and the torque of the shoulder moves both."""
    shoulder, elbow = arm.description.joints[:2]
    mimic = dataclasses.replace(elbow, mimic=Mimic(shoulder.name, 0.5, 0.1))
    robot = ld.build(dataclasses.replace(arm.description, joints=(shoulder, mimic, *arm.description.joints[2:])))
    motion = ld.excite(robot, **OPTIONS | {"velocity": {"elbow": 1.0}, "noise": {"shoulder": 0.1}})
    q, v, a = motion.at(np.linspace(0.0, 4.0, 2001))
    assert np.abs(q[:, 1] - 0.5 * q[:, 0] - 0.1).max() < 1e-12 and 0.99 < np.abs(v[:, 1]).max() <= 1.0
    assert np.abs(ld.inverse_dynamics(robot, q, v, a)[:, 0]).max() <= 40.0
    fit = motion.rehearse()
    assert fit.names == motion.names and np.abs(fit.deviations / motion.deviations - 1.0).max() < 0.15


def test_random_postures_of_a_hand_are_within_the_limits_of_all_fingers():
    """The fingers share a motor: one follower depends on twelve joints. Postures fill the ranges of the others."""
    hand = ld.load("robots/hand.yaml")
    settings = excitation._settings(5.0, None, 2, "fourier", 100.0, "d-optimal", 1, 0)
    limits = excitation._limits(hand, None, None, None, None)
    base = ld.base_parameters(hand, joints=())
    e = excitation_optimizer.Experiment(hand, base, (), np.ones(hand.nv), limits, settings, np.ones(len(base), bool))
    rng = np.random.default_rng(1)
    y = np.array([e.random_position(rng) for _ in range(100)])
    q = ld.expand(hand, y)
    assert (q >= limits.lower).all() and (q <= limits.upper).all()
    part = np.ptp(q, axis=0) / (limits.upper - limits.lower)
    assert part[e.independent].min() > 0.3 and part.max() < 1.0
    assert np.abs(y - e.random_position(np.random.default_rng(1))).min(axis=0).max() < 1e-12               # seeded
    x = e.random_motion(rng)
    assert np.abs(e.relative(x, e.samples)).max() < 1.0 and (np.ptp(e.motion(x, e.samples)[0], axis=0) > 0.0).all()


def test_limits_that_couplings_contradict(arm):
    shoulder, elbow = arm.description.joints[:2]
    mimic = dataclasses.replace(elbow, mimic=Mimic(shoulder.name, 0.5, 0.1))
    robot = ld.build(dataclasses.replace(arm.description, joints=(shoulder, mimic, *arm.description.joints[2:])))
    with pytest.raises(ld.ComputationError, match="couplings leave no motion within the position limits of shoulder, elbow;"):
        ld.excite(robot, **OPTIONS | {"position": {"shoulder": (-1.0, 1.0), "elbow": (2.0, 3.0)}})


def test_links_stay_in_a_space_and_away_from_each_other(arm):
    """A third rod folds back to the first; the exact distances are those of the motion between its rows, too."""
    third = ld.Link("third", mass=0.5, shape=ld.Shape.sphere(0.05), com=[0, 0, -0.6])
    joint = ld.Joint("wrist", "continuous", "lower", "third", axis=[0, 1, 0], origin=[0, 0, -1])
    robot = ld.build(dataclasses.replace(arm.description, links=(*arm.description.links, third),
                                         joints=(*arm.description.joints, joint)))
    motion = ld.excite(robot, **OPTIONS | {"harmonics": 2, "starts": 1}, self_distance=0.8, space={"x": (-0.6, 0.8)})
    T, third = ld.link_poses(robot, motion.at(np.linspace(0.0, 4.0, 1501)).q), robot.link_index("third")
    ends = np.stack([(T[:, :2] @ [0, 0, z, 1])[..., 0] for z in (0.0, -1.0)])
    disc = 0.02 * np.sqrt(1.0 - T[:, :2, 0, 2]**2)                                     # half of the extent of a rod's end
    assert (ends - disc).min() > -0.6 and (ends + disc).max() < 0.8
    ball, rod = (T[:, third] @ [0, 0, -0.6, 1])[:, :3], (T[:, 0, None] @ np.column_stack([
        *np.zeros((2, 101)), np.linspace(-1.0, 0.0, 101), np.ones(101)])[..., None])[..., :3, 0]
    distance = np.linalg.norm(rod - ball[:, None], axis=2).min() - 0.05 - 0.02
    use = next(use for use in motion.limits if use.coordinate == "upper and third")
    assert distance > 0.79 and abs(distance - use.peak) < 0.01 and use.kind == "distance" and use.limit == 0.8  # ends are flat
    assert any(use.kind == "distance" for use in motion.at_limits) and motion.not_compared == ()


# Symmetries -------------------------------------------------------------------------------------------------------------

def renamed(arm):
    robot = arm.description
    links = tuple(dataclasses.replace(link, name=f"l_{link.name}") for link in robot.links)
    joints = tuple(dataclasses.replace(joint, name=f"j_{joint.name}", parent=f"l_{joint.parent}" if joint.parent != "world"
                                       else joint.parent, child=f"l_{joint.child}") for joint in robot.joints)
    return ld.build(dataclasses.replace(robot, links=links, joints=joints))


def reordered(arm):
    return ld.build(dataclasses.replace(arm.description, links=arm.description.links[::-1], joints=arm.description.joints[::-1]))


def turned(arm):
    """Return the robot with its base and gravity turned by the same rotation."""
    R = np.array([[0.0, -0.6, 0.8], [1.0, 0.0, 0.0], [0.0, 0.8, 0.6]])
    T = np.eye(4)
    T[:3, :3] = R
    origin = ld.link_pose(arm, arm.neutral(), "upper")                # of the first joint, which is at the world
    return arm.with_changes(gravity=R @ arm.gravity, origin={"shoulder": T @ origin})


@pytest.mark.parametrize("change", [renamed, reordered, turned])
def test_it_does_not_depend_on_names_order_and_orientation(arm, motion, change):
    """The same coefficients have the same information; the search from the same start ends at the same optimum."""
    other = change(arm)
    result = ld.excite(other, **OPTIONS)
    assert abs(result.log_det - motion.log_det) < 1e-3 * abs(motion.log_det) if change is reordered else (
        abs(result.log_det - motion.log_det) < 1e-6 * abs(motion.log_det))


# Errors -----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("options", "text"), [
    ({"duration": -1.0}, "duration must be a number > 0, got -1.0"),
    ({"period": 3.0}, "duration must be a multiple of the period 3 s, so that the motion ends at rest; got 4"),
    ({"harmonics": 1}, "harmonics must be an integer >= 2, got 1"),
    ({"starts": 0}, "starts must be an integer >= 1, got 0"),
    ({"kind": "sines"}, "kind must be one of fourier, splines, got 'sines'"),
    ({"q0": {"elbo": 1.0}}, "q0: no moving joint 'elbo'; did you mean 'elbow'?"),
    ({"q0": {"elbow": 1.0}, "position": {"elbow": (-1.0, 1.0)}}, "the start of the motion is not within 95 % of the limits: the "
     "position of elbow is 1 times its limit"),
    ({"jobs": 0}, "jobs must be an integer >= 1, got 0"),
    ({"rate": 1e9}, "needs more than 10000000 rows"),
    ({"criterion": "trace"}, "criterion must be one of d-optimal, condition, got 'trace'"),
    ({"noise": -1.0}, "noise must be a number > 0, got -1.0"),
    ({"noise": None}, "the torque noise of shoulder, elbow is not known, since the robot file has no effort limit"),
    ({"noise": {"elbow": 0.1, "shoulder": np.inf}}, "the measured torques do not determine"),
    ({"velocity": None, "torque": None}, "shoulder, elbow have no limit, so that a faster motion is always better"),
    ({"velocity": {"elbw": 1.0}}, "velocity: the robot has no moving joint 'elbw' (did you mean elbow?)"),
    ({"position": {"elbow": (1.0, -1.0)}}, "position['elbow'] must be two finite numbers, lower < upper, or -inf and inf, got "
     "(1.0, -1.0)"),
    ({"position": {"elbow": (0.0, np.inf)}}, "position['elbow'] must be two finite numbers, lower < upper, or -inf and inf"),
    ({"torque": {"shoulder": 1e-3}, "position": {"shoulder": (1.0, 2.0)}}, "no random posture is within the limits: of the last "
     "one, the torque of shoulder is "),
    ({"rate": 0.5}, "the 3 rows of the recording do not determine the "),
    ({"noise": 1e-300}, "noise must be from 1e-100 to 1e+100, or inf, got 1e-300 for shoulder"),
    ({"noise": 1e300}, "noise must be from 1e-100 to 1e+100"),
    ({"velocity": 1e-12}, "no motion within the limits excites all "),
    ({"self_distance": -1.0}, "self_distance must be a finite number of metres >= 0, got -1.0"),
    ({"space": {"z": (5.0, np.inf)}}, "no posture is within the distance limits of upper and z > 5 m, lower and z > 5 m;"),
    ({"parameters": ["mas"]}, "no base parameter 'mas'"),
    ({"parameters": ["h*"], "criterion": "condition"}, "the criterion 'condition' is that of all base parameters"),
])
def test_errors_name_the_option(arm, options, text):
    with pytest.raises(ld.LiedynError) as error:
        ld.excite(arm, **OPTIONS | options)
    assert text in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(("options", "text"), [
    ({}, None),
    ({"position": {"elbow": (-1.0, 2.0)}}, None),
    ({"velocity": 9.0}, r"the velocity limits exceed .*: shoulder 9 rad/s \(robot file: 4\), elbow 9 rad/s \(robot file: 5\)"),
    ({"acceleration": {"elbow": 60.0}}, r"the acceleration limits exceed .*: elbow 60 rad/s\^2 \(robot file: 50\)"),
    ({"torque": {"shoulder": 50.0}}, r"the torque limits exceed .*: shoulder 50 N m \(robot file: 40\)"),
    ({"position": {"elbow": (-3.0, 1.0)}}, r"the lower position limits exceed .*: elbow -3 rad \(robot file: -2\)"),
    ({"position": {"elbow": (-1.0, 3.0)}}, r"the upper position limits exceed .*: elbow 3 rad \(robot file: 2\)")])
def test_limits_above_those_of_the_robot_file_are_told(arm, options, text):
    """The default is that of the robot file, where infinite limits are not exceeded."""
    elbow = ld.Joint("elbow", "revolute", "upper", "lower", [0, 0, -1], axis=[0, 1, 0], limits=(-2.0, 2.0))
    shoulder, _, *others = arm.description.joints
    robot = ld.build(dataclasses.replace(arm.description, joints=(shoulder, elbow, *others))).with_changes(
        velocity_limit={"shoulder": 4.0, "elbow": 5.0}, effort_limit={"shoulder": 40.0}, acceleration_limit={"elbow": 50.0})
    arguments = {"position": None, "velocity": None, "acceleration": None, "torque": None} | options
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        excitation._limits(robot, **arguments)
    messages = [str(one.message) for one in caught]
    assert not messages if text is None else len(messages) == 1 and re.search(text, messages[0]), messages


def test_a_large_condition_number_is_finite(arm):
    """Of a slow motion, whose parameters hardly differ in their effects."""
    motion = ld.excite(arm, **OPTIONS | {"velocity": 3e-3, "starts": 1})
    Y = ld.regressor(arm, *motion.at(np.linspace(0.0, 4.0, 401)), joints=("offset",))[:, :, motion.base.columns]
    F = (Y / motion.noise[:, None]).reshape(-1, len(motion.base))
    assert motion.condition == pytest.approx(np.linalg.cond(F / np.linalg.norm(F, axis=0)), rel=1e-3) and motion.condition > 1e6


@pytest.mark.parametrize(("robot", "text"), [
    ("robots/quadrotor.yaml", "excite does not support ball and free joints"),
    ("robots/four_bar.yaml", "excite does not account for the constraints of robot four_bar"),
])
def test_robots_that_are_not_supported(robot, text):
    with pytest.raises(ld.ModelError, match=text):
        ld.excite(ld.load(robot), velocity=1.0, noise=1.0)
