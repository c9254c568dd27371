"""Derivatives of the dynamics along files: what is given, what is derived, and whether its error is what is said."""
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.trajectory_dynamics import dynamics_along
from liedyn.errors import ComputationError, TrajectoryError, UsageError
from liedyn.io.trajectory_csv import read_trajectory, write_trajectory
from sampled_motion import motion, noisy, record, table
from spatial_series import reference_inverse

ROOT = Path(__file__).parents[2]
T = np.arange(80) * 0.02
ORDER = 3
ROBOTS = ["hexarotor_arms", "showcase", "ur5"]      # a floating base; ball joints and every other kind; friction and rotors


@pytest.fixture(scope="module", params=ROBOTS)
def model(request):
    return ld.load(ROOT / f"robots/{request.param}.yaml")


@pytest.fixture(scope="module")
def hexarotor():
    return ld.load(ROOT / "robots/hexarotor_arms.yaml")


def load_on(link, t, orders):
    """Return columns of a changing force along y and its derivatives."""
    return [(f"{f'd{k}' if k else ''}fext.{link}.fy", f"N/s^{k}" if k > 1 else "N/s" if k else "N",
             3.0 * 1.5**k * np.sin(1.5 * t + k * np.pi / 2)) for k in range(orders)]


def given(model, q, v, orders):
    """Return all inputs of inverse dynamics as columns."""
    return {"q": q, "v": v[:, 0], "a": v[:, 1], **{f"d{k}a": v[:, k + 1] for k in range(1, orders)}}


def columns(along):
    return {name: x for name, _, x in along.columns}


def read(path, model, t, extra=(), **arrays):
    return read_trajectory(record(path, model, t, extra, **arrays))


def rms(x):
    return np.sqrt(np.mean(x**2, axis=0))


# what the file gives -----------------------------------------------------------------------------------------------
def test_given_derivatives_are_taken_as_they_are(model, tmp_path):
    """A few rows agree with the reference. Nothing is derived, so there is no message."""
    q, v = motion(model, T, ORDER + 2)
    link = model.link_names[-1]
    file = read(tmp_path / "motion.csv", model, T, load_on(link, T, ORDER + 1), **given(model, q, v, ORDER + 1))
    along = dynamics_along(model, file, "inverse", order=ORDER)
    assert not [note for note in map(str, along.warnings) if "limits are exceeded" not in note] and "derived" not in along.header
    tau = table(model, columns(along), "tau", ORDER + 1)
    force = np.stack([x for _, _, x in load_on(link, T, ORDER + 1)], axis=1)
    for row in (0, 40, 79):
        wrench = np.zeros((ORDER + 1, len(model.link_names), 6))
        wrench[:, model.link_index(link), 4] = force[row]
        expected = reference_inverse(model, q[row], v[row], wrench)
        assert (np.abs(tau[row] - expected) < 1e-11 * np.abs(expected).max(axis=1, keepdims=True)).all()


def test_inverse_then_forward_returns_the_motion(model, tmp_path):
    """Forward and hybrid dynamics read external forces and all derivatives from the file that inverse dynamics wrote."""
    q, v = motion(model, T, ORDER + 2)
    extra = load_on(model.link_names[-1], T, ORDER + 1)
    made = dynamics_along(model, read(tmp_path / "motion.csv", model, T, extra, **given(model, q, v, ORDER + 1)), "inverse",
                          order=ORDER)
    write_trajectory(tmp_path / "forces.csv", made.header, made.t, made.columns)
    forces = read_trajectory(tmp_path / "forces.csv")
    tau = table(model, forces.columns, "tau", ORDER + 1)
    for along in (dynamics_along(model, forces, "forward", order=ORDER),
                  dynamics_along(model, forces, "hybrid", [model.joint_names[1]], order=ORDER),
                  dynamics_along(model, forces, "hybrid", ["*"], order=ORDER)):
        assert not [note for note in map(str, along.warnings) if "limits are exceeded" not in note]
        assert [name for name, _, _ in along.columns] == [name for name, _, _ in made.columns]
        found = columns(along)
        for kind, expected in (("a", v[:, 1:]), ("tau", tau)):
            error = np.abs(table(model, found, kind, ORDER + 1) - expected).max(axis=(0, 2))
            assert (error < [1e-9, 1e-8, 1e-7, 1e-6] * np.abs(expected).max(axis=(0, 2))).all(), (kind, error)


def test_passive_forces_are_left_out_where_the_file_says_so(tmp_path):
    model = ld.load(ROOT / "robots/ur5.yaml")
    q, v = motion(model, T, ORDER + 2)
    file = read(tmp_path / "motion.csv", model, T, **given(model, q, v, ORDER + 1))
    file.header["passive"] = "false"
    tau = table(model, columns(dynamics_along(model, file, "inverse", order=ORDER)), "tau", ORDER + 1)
    assert np.allclose(tau[7], reference_inverse(model, q[7], v[7], passive=False), rtol=0, atol=1e-9)


# what is derived ---------------------------------------------------------------------------------------------------
def claims(along, kind):
    """Return the relative errors of each order that the messages state."""
    note = next(note for note in map(str, along.warnings) if note.startswith("estimated error"))
    return [float(x) / 100 if x else np.inf for x in re.findall(rf"(?:d\d+)?{kind} (?:50% or more|([0-9.e-]+)%)", note)]


def test_from_positions_with_the_error_that_is_told(model, tmp_path):
    q, v = motion(model, T, 4)
    file = read(tmp_path / "all.csv", model, T, **given(model, q, v, 3))
    true = table(model, columns(dynamics_along(model, file, "inverse", order=2)),
                 "tau", 3)
    along = dynamics_along(model, read(tmp_path / "q.csv", model, T, q=q), "inverse", order=2)
    assert along.warnings[0].message == along.header["derived"]
    assert along.warnings[0].message == "v, a, d1a and d2a are derived from q by splines of degree 9 through every row"
    tau = table(model, columns(along), "tau", 3)
    inner = slice(20, -20)
    size = rms(true[inner])
    error = (rms((tau - true)[inner]) / np.maximum(size, 1e-3 * size.max())).max(axis=1)
    told = claims(along, "tau")
    assert len(told) == 3 and (np.array(told) > error / 5).all() and told[2] < 1e-3, (told, error)
    assert not any("NOT RELIABLE" in note for note in map(str, along.warnings))


@pytest.mark.parametrize("size", [1e-7, 1e-5])
def test_noise_is_told_and_smoothed(hexarotor, tmp_path, size):
    t = np.arange(400) * 0.01
    q, v = motion(hexarotor, t, 4)
    true = ld.higher_order_inverse_dynamics(hexarotor, q, v)
    file = read(tmp_path / "q.csv", hexarotor, t, q=noisy(hexarotor, q, size))
    rough = dynamics_along(hexarotor, file, "inverse", order=2)
    last = rough.warnings[-1].message
    assert last.startswith("NOT RELIABLE: ") and "use --smooth auto" in last
    assert last.count("% (") + last.count("50% or more (") > 1        # all coordinates that are off
    assert claims(rough, "tau")[2] == np.inf
    smooth = dynamics_along(hexarotor, file, "inverse", order=2, smooth="auto")
    told_of_ends = [one.message for one in smooth.warnings if "NOT RELIABLE" in one.message]
    assert all(message.startswith("NOT RELIABLE within ") for message in told_of_ends)
    inner = slice(100, -100)
    tau = table(hexarotor, columns(smooth), "tau", 3)
    error = (rms((tau - true)[inner]) / rms(true[inner])).max(axis=1)
    told = np.array(claims(smooth, "tau"))
    assert (told > error / 5).all() and (told < 5 * error).all() and error[2] < 0.1, (told, error)
    at_ends = np.r_[0:100, 300:400]
    error = (rms((tau - true)[at_ends]) / rms(true[inner])).max()
    assert bool(told_of_ends) == (error > 0.05), (told_of_ends, error)


def test_forces_are_derived_in_forward_dynamics(model, tmp_path):
    """Without friction, which changes its sign between two rows."""
    q, v = motion(model, T, 4)
    tau = ld.higher_order_inverse_dynamics(model, q, v, passive=False)
    file = read(tmp_path / "tau.csv", model, T, q=q, v=v[:, 0], tau=tau[:, 0])
    file.header["passive"] = "false"
    along = dynamics_along(model, file, "forward", order=2)
    assert along.warnings[0].message == "d1tau and d2tau are derived from tau by splines of degree 7 through every row"
    a = table(model, columns(along), "a", 3)
    inner = slice(20, -20)
    size = rms(v[inner, 1:])
    error = (rms((a - v[:, 1:])[inner]) / np.maximum(size, 1e-3 * size.max())).max(axis=1)
    assert (np.array(claims(along, "a")) + 1e-13 > error / 5).all() and error[2] < 1e-2, error


def test_friction_that_turns_between_rows_is_told(tmp_path):
    model = ld.load(ROOT / "robots/showcase.yaml")
    q, v = motion(model, T, 4)
    tau = ld.higher_order_inverse_dynamics(model, q, v)
    along = dynamics_along(model, read(tmp_path / "tau.csv", model, T, q=q, v=v[:, 0], tau=tau[:, 0]), "forward", order=2)
    assert str(along.warnings[-1]).startswith("NOT RELIABLE: d2a, error 50% or more") and "has kinks" in str(along.warnings[-1])


def test_hybrid_derives_both(hexarotor, tmp_path):
    q, v = motion(hexarotor, T, 4)
    tau = ld.higher_order_inverse_dynamics(hexarotor, q, v)
    link = hexarotor.link_names[-1]
    file = read(tmp_path / "m.csv", hexarotor, T, load_on(link, T, 1), q=q, tau=tau[:, 0])
    along = dynamics_along(hexarotor, file, "hybrid", ["left_*"], order=2)
    assert [one.message.partition(" by ")[0] for one in along.warnings[:3]] == [
        "v, a, d1a and d2a are derived from q", "d1tau and d2tau are derived from tau", "d1fext and d2fext are derived from fext"]
    found = columns(along)
    left = [name.startswith("left_") for name in hexarotor.v_names]
    assert np.allclose(table(hexarotor, found, "a", 3)[20:-20, :, left], v[20:-20, 1:, left], rtol=0, atol=1e-4)
    for name, _, force in load_on(link, T, 3):
        assert np.allclose(found[name][20:-20], force[20:-20], rtol=0, atol=1e-5)


def test_the_highest_given_derivative_is_the_one_to_derive_from(hexarotor, tmp_path):
    q, v = motion(hexarotor, T, 5)
    file = read(tmp_path / "a.csv", hexarotor, T, q=q, v=v[:, 0], a=v[:, 1], d3a=v[:, 4])
    along = dynamics_along(hexarotor, file, "inverse", order=3)
    assert along.warnings[0].message == "d1a and d2a are derived from a by splines of degree 7 through every row"
    assert (table(hexarotor, columns(along), "a", 4)[:, 3] == v[:, 4]).all()
    along = dynamics_along(hexarotor, read(tmp_path / "v.csv", hexarotor, T, q=q, v=v[:, 0]), "inverse", order=1)
    assert str(along.warnings[0]).startswith("a and d1a are derived from v ")
    along = dynamics_along(hexarotor, read(tmp_path / "v.csv", hexarotor, T, q=q, a=v[:, 1]), "inverse", order=0, smooth=0.04)
    assert along.warnings[0].message == "v is derived from q by splines of degree 7 with a knot every 2 rows (0.04 s)"


def test_kinks_are_told(hexarotor, tmp_path):
    """A joint moves back and forth at constant speed."""
    t = np.arange(400) * 0.01
    q, _ = motion(hexarotor, t, 1)
    q[:, hexarotor.q_index("left_2")] = np.abs((t[:, None] % 1.0) - 0.5)
    file = read(tmp_path / "q.csv", hexarotor, t, q=q)
    for smooth, which in ((None, "rows"), (0.1, "knots")):
        warnings = [one.message for one in dynamics_along(hexarotor, file, "inverse", order=2, smooth=smooth).warnings]
        assert warnings[-1].startswith("NOT RELIABLE: ")
        assert warnings[-1].endswith(f": no spline fits the motion: it hardly moves, has kinks, or the {which} are too far "
                                     "apart")


def test_a_robot_at_rest_is_no_alarm(tmp_path):
    """The derivatives of its forces are rounding. They are not judged relative to themselves."""
    model = ld.load(ROOT / "robots/double_pendulum.yaml")
    t = np.arange(40) * 0.01
    along = dynamics_along(model, read(tmp_path / "rest.csv", model, t, q=np.full((40, model.nq), 0.3)), "inverse", order=2)
    assert not any("NOT RELIABLE" in note for note in map(str, along.warnings))


def test_rows_too_far_apart_are_told(hexarotor, tmp_path):
    t = np.arange(60) * 0.8
    q, _ = motion(hexarotor, t, 1)
    warnings = list(map(str, dynamics_along(hexarotor, read(tmp_path / "q.csv", hexarotor, t, q=q), "inverse", order=2).warnings))
    assert warnings[-1].startswith("NOT RELIABLE: ") and "too far apart" in warnings[-1]


def test_smoothing_that_is_too_much_or_nothing_is_told(hexarotor, tmp_path):
    t = np.arange(1500) * 0.02
    q, v = motion(hexarotor, t, 4)
    file = read(tmp_path / "q.csv", hexarotor, t, q=noisy(hexarotor, q, 1e-5))
    warnings = list(map(str, dynamics_along(hexarotor, file, "inverse", order=2, smooth=2.0).warnings))
    assert "a knot spacing of 2 s removes more than the noise of q" in warnings[1]
    warnings = [one.message for one in dynamics_along(hexarotor, file, "inverse", order=2, smooth=0.025).warnings]
    assert "smooth = 0.025 s does not exceed the step of the trajectory, 0.02 s: nothing is smoothed" in warnings
    file = read(tmp_path / "all.csv", hexarotor, t, **given(hexarotor, q, v, 3))
    warnings = [one.message for one in dynamics_along(hexarotor, file, "inverse", order=2, smooth=0.1).warnings]
    assert warnings == ["smooth has no effect: no quantity is derived"]


def test_a_joint_that_stands_still_raises_no_alarm(hexarotor, tmp_path):
    q, _ = motion(hexarotor, T, 1)
    q[:, hexarotor.q_index("right_2")] = 0.3
    warnings = list(map(str, dynamics_along(hexarotor, read(tmp_path / "q.csv", hexarotor, T, q=q), "inverse", order=2).warnings))
    assert len(warnings) == 2


# errors ---------------------------------------------------------------------------------------------------
def test_too_few_rows(hexarotor, tmp_path):
    q, _ = motion(hexarotor, T[:11], 1)
    file = read(tmp_path / "q.csv", hexarotor, T[:11], q=q)
    with pytest.raises(TrajectoryError, match=r"not enough for derivatives of order 4 with a spline of degree 9; at least "
                                              r"12"):
        dynamics_along(hexarotor, file, "inverse", order=2)
    for smooth in (0.05, "auto"):
        with pytest.raises(TrajectoryError, match="not enough"):
            dynamics_along(hexarotor, file, "inverse", order=2, smooth=smooth)
    one = read(tmp_path / "one.csv", hexarotor, T[:1], q=q[:1])
    with pytest.raises(TrajectoryError, match=r"1 row.s. are not enough"):
        dynamics_along(hexarotor, one, "inverse", order=1)


def test_one_row_is_enough_where_nothing_is_derived(hexarotor, tmp_path):
    q, v = motion(hexarotor, T[:1], 4)
    file = read(tmp_path / "one.csv", hexarotor, T[:1], **given(hexarotor, q, v, 3))
    along = dynamics_along(hexarotor, file, "inverse", order=2)
    assert not [note for note in map(str, along.warnings) if "limits are exceeded" not in note] and len(along.t) == 1


def test_orders_that_no_samples_give(hexarotor, tmp_path):
    q, _ = motion(hexarotor, T, 1)
    file = read(tmp_path / "q.csv", hexarotor, T, q=q)
    with pytest.raises(TrajectoryError, match=r"order 102 cannot be computed from samples \(the maximum order is 20\)"):
        dynamics_along(hexarotor, file, "inverse", order=100)


def test_robots_with_loops_are_refused(tmp_path):
    model = ld.load(ROOT / "robots/four_bar.yaml")
    file = read(tmp_path / "q.csv", model, T, q=np.zeros((len(T), model.nq)))
    for compute in (partial(dynamics_along, of=of, prescribed=["*"]) for of in ("inverse", "forward", "hybrid")):
        with pytest.raises(UsageError, match=f"the robot {model.name} has loops: .*; omit --order and"):
            compute(model, file, order=1)


def test_derivatives_of_robots_with_loops_are_refused(tmp_path):
    """They were those of the open tree, without a message."""
    from liedyn.analysis.trajectory_derivatives import derivatives_along
    model = ld.load(ROOT / "robots/four_bar.yaml")
    file = read(tmp_path / "q.csv", model, T, q=np.zeros((len(T), model.nq)))
    with pytest.raises(UsageError, match=r"the robot four_bar has loops: derivatives along"):
        derivatives_along(model, file)


def test_missing_forces_are_named(hexarotor, tmp_path):
    q, v = motion(hexarotor, T, 4)
    file = read(tmp_path / "q.csv", hexarotor, T, **given(hexarotor, q, v, 3))
    with pytest.raises(TrajectoryError, match=r"there are no columns of the generalized forces: expected tau\.<joint>"):
        dynamics_along(hexarotor, file, "forward", order=2)
    with pytest.raises(TrajectoryError, match=r"the generalized forces of the joints that are not prescribed"):
        dynamics_along(hexarotor, file, "hybrid", ["left_*"], order=2)
    with pytest.raises(UsageError, match="--actuated does not apply"):
        dynamics_along(hexarotor, file, "inverse", actuated=["left_*"], order=2)
    for order in (0, 2):
        with pytest.raises(UsageError, match="--criterion does not apply"):
            dynamics_along(hexarotor, file, "inverse", criterion="least_torque", order=order)
    with pytest.raises(UsageError, match="no moving joint matches 'leg_\\*'"):
        dynamics_along(hexarotor, file, "hybrid", ["leg_*"], order=2)


def test_numbers_too_large_are_refused(hexarotor, tmp_path):
    q, v = motion(hexarotor, T, 3)
    v[3, 2] = 1e308
    v[3, 0] = 1e200
    with pytest.raises((ComputationError, ld.errors.ConfigurationError), match="finite"):
        dynamics_along(hexarotor, read(tmp_path / "m.csv", hexarotor, T, **given(hexarotor, q, v, 2)), "inverse", order=1)
