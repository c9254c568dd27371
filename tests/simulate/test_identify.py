"""Identification of base parameters from recorded motions: exact data, noise, what a motion does not excite, what is known."""
import dataclasses

import numpy as np
import pytest

import liedyn as ld
from bridge import file_of
from liedyn.io.csv import Trajectory
from liedyn.simulate.columns import columns_of, header_of
from zoo import ROBOTS, model_of

ROWS = 400


def recorded(model, *, seed=1, noise=0.0, rows=ROWS, passive=True, f_ext=None, still=False, without=()):
    """A motion of a few sines per joint through the middle of its range, with its joint forces; noise by the largest force."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 6, rows)
    x, v, a = np.zeros((3, rows, model.nv))
    for k in range(model.nv):
        for w in () if still else rng.uniform(0.5, 4, 3):
            size, phase = rng.uniform(0.1, 0.5), rng.uniform(0, 6)
            x[:, k] += size * np.sin(w * t + phase)
            v[:, k] += size * w * np.cos(w * t + phase)
            a[:, k] -= size * w * w * np.sin(w * t + phase)
    q = ld.integrate(model, np.broadcast_to(model.neutral(), (rows, model.nq)), x)
    tau = ld.inverse_dynamics(model, q, v, a, f_ext=f_ext, passive=passive)
    tau = tau + noise * np.abs(tau).max(axis=0) * rng.standard_normal(tau.shape)
    arrays = {name: y for name, y in (("q", q), ("v", v), ("a", a), ("tau", tau)) if name not in without}
    forced = [] if f_ext is None else [k for k in range(len(model.link_names)) if f_ext[:, k].any()]
    wrench = f_ext[:, forced].reshape(rows, -1) if forced else None
    columns = columns_of(model, tuple(model.link_names[k] for k in forced), wrench, **arrays)
    return Trajectory({**header_of(model, passive=passive)}, t, {name: y for name, _, y in columns},
                      {name: unit for name, unit, _ in columns}, "motion.csv", np.arange(rows) + 3)


@pytest.fixture(scope="module")
def ur5():
    return ld.load(file_of("ur5_robot.urdf"))


def other_robot(model, seed=3):
    """The same geometry with other masses, frictions and springs."""
    rng = np.random.default_rng(seed)
    robot = model.description
    links = tuple(dataclasses.replace(link, mass=link.mass * rng.uniform(0.8, 1.2), com=tuple(rng.uniform(-0.1, 0.1, 3)))
                  for link in robot.links)
    joints = tuple(dataclasses.replace(joint, coordinates=tuple(
        dataclasses.replace(c, damping=rng.uniform(0.1, 1), friction=rng.uniform(0.1, 1)) for c in joint.coordinates))
        for joint in robot.joints)
    return ld.build(dataclasses.replace(robot, links=links, joints=joints))


def test_exact_data_give_the_parameters_of_the_robot_that_moved(ur5, worst):
    truth = other_robot(ur5)
    fit = ld.identify(ur5, recorded(truth), joints=("damping", "friction"))
    expected = fit.base.matrix @ ld.inertial_parameters(truth, joints=("damping", "friction")).values
    off = np.abs(fit.values - expected).max() / np.abs(expected).max()
    assert worst("identification from exact data", off, "ur5") < 1e-10
    assert np.abs(fit.base.values - expected).max() > 0.1 and len(fit.base) == 36 + 12
    assert (fit.residual < 1e-10 * fit.force).all() and fit.rows == ROWS and fit.notes == ()
    assert fit.poor == () and fit.condition < 1e4


def test_noise_is_measured_and_deviations_are_true(ur5):
    """Of all parameters and three recordings, errors in units of the standard deviation are standard normal."""
    joints = ("damping", "friction")
    truth = other_robot(ur5)
    errors = []
    for seed in range(3):
        fit = ld.identify(ur5, recorded(truth, noise=0.02, seed=seed), joints=joints)
        expected = fit.base.matrix @ ld.inertial_parameters(truth, joints=joints).values
        errors.append((fit.values - expected) / fit.deviations)
    errors = np.concatenate(errors)
    assert 0.8 < errors.std() < 1.2 and np.abs(errors).max() < 4.5
    assert fit.poor and set(fit.poor) < set(fit.base.names)


def test_joints_count_by_their_own_noise(ur5):
    """Noise on one strong joint does not spoil the parameters of the weak ones: weights."""
    clean = recorded(ur5)
    rng = np.random.default_rng(4)
    name = "tau.shoulder_lift_joint"
    noisy = dataclasses.replace(clean, columns={**clean.columns, name: clean.columns[name] + rng.standard_normal(ROWS)})
    fit = ld.identify(ur5, noisy)
    at = fit.base.names.index("Iyy.wrist_3_link")
    assert abs(fit.values[at] - fit.base.values[at]) < 1e-8
    assert fit.residual[1] > 0.9 and fit.residual[5] < 1e-8


def test_velocities_and_accelerations_are_derived_where_missing(ur5):
    fit = ld.identify(ur5, recorded(ur5, without=("v", "a")))
    assert fit.notes[0].startswith("v and a are derived from q by splines of degree 7")
    assert (fit.residual < 1e-4 * fit.force.max()).all()


def test_what_a_motion_does_not_excite_stays_as_in_the_file(ur5):
    fit = ld.identify(ur5, recorded(ur5, still=True))
    assert np.isinf(fit.condition)
    unseen = np.isinf(fit.deviations)
    assert unseen.sum() > 20 and set(np.array(fit.base.names)[unseen]) <= set(fit.poor)
    np.testing.assert_allclose(fit.values, fit.base.values, rtol=0, atol=1e-9)
    assert f"the motion does not excite {unseen.sum()} of 36 base parameters (" in fit.notes[-1]


@pytest.mark.parametrize("name", ["every kind", "every kind, floating", "screws", "ball"])
def test_every_kind_of_joint(name):
    model = model_of(name)
    fit = ld.identify(model, recorded(model))
    assert (fit.residual < 1e-9 * fit.force.max()).all()
    seen = np.isfinite(fit.deviations)
    np.testing.assert_allclose(fit.values[seen], fit.base.values[seen], rtol=0, atol=1e-5 * np.abs(fit.base.values).max())


def test_known_wrenches_and_joint_forces_are_taken_off():
    """External wrenches, and the damping, friction and springs that are not estimated."""
    model = ld.build(ROBOTS["every kind"])
    f_ext = np.random.default_rng(2).standard_normal((ROWS, len(model.link_names), 6))
    fit = ld.identify(model, recorded(model, f_ext=f_ext), joints=())
    assert not any("damping" in name for name in fit.base.parameters.names)
    assert (fit.residual < 1e-9 * fit.force.max()).all()


def test_a_recording_without_passive_forces():
    model = model_of("every kind")
    fit = ld.identify(model, recorded(model, passive=False))
    assert not any(name.startswith(("damping", "friction", "stiffness")) for name in fit.base.names)
    assert (fit.residual < 1e-9 * fit.force.max()).all()


def test_no_forces_or_too_few_rows(ur5):
    with pytest.raises(ld.TrajectoryError, match=r"there are no columns of the joint forces; .* expected tau.<joint>"):
        ld.identify(ur5, recorded(ur5, without=("tau",)))
    with pytest.raises(ld.TrajectoryError, match="too short for so many parameters; found '30 equations'; expected at least 36"):
        ld.identify(ur5, recorded(ur5, rows=5))
