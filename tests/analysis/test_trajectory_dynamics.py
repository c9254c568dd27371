"""Dynamics along trajectory files, and derivatives that these lack."""
import warnings
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.numerical_differentiation import derivatives
from liedyn.analysis.recorded_robot import robot_of
from liedyn.analysis.trajectory_dynamics import dynamics_along
from liedyn.errors import LiedynError, TrajectoryError, UsageError
from liedyn.io.trajectory_csv import read_trajectory, write_trajectory
from liedyn.report.run_folder import write_run
from liedyn.simulation.run import run_scenario
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return run folders of a floating robot with prescribed joints, and of a fixed one with an external force."""
    folder = tmp_path_factory.mktemp("runs")
    out = {}
    for name in ("quadruped_righting", "panda_hybrid"):
        result = run_scenario(ROOT / f"configs/{name}.yaml", ["duration=2.6", "output_step=0.005"])
        write_run(result, folder / name, plots=False)
        out[name] = (result, folder / name / "trajectory.csv")
    return out


@pytest.mark.parametrize("name", ["quadruped_righting", "panda_hybrid"])
def test_inverse_gives_back_what_the_simulation_applied(recorded, name):
    result, path = recorded[name]
    motion = read_trajectory(path)
    model, warnings = robot_of(motion)
    assert warnings == ()
    along = dynamics_along(model, motion, "inverse")
    got = {n: x for n, _, x in along.columns}
    tau = np.column_stack([got[f"tau.{n}"] for n in model.tau_names])
    assert np.abs(tau - result.tau).max() < 1e-11 * max(np.abs(result.tau).max(), 1)
    assert along.warnings == ()


def test_columns_that_fit_nothing_are_named(recorded, tmp_path):
    _, path = recorded["panda_hybrid"]
    lines = path.read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if not line.startswith("#"))
    unknown = ["temperature", "d1v.panda_joint1", "d1tua.panda_joint1", "q.panda_jiont1", "fext.hand.fw",
               *(f"note{k}" for k in range(9))]
    names = ["d1tau.panda_joint1", *unknown]
    lines[at] += "," + ",".join(names)
    lines[at + 1:] = [line + ",0" * len(names) for line in lines[at + 1:]]
    other = tmp_path / "trajectory.csv"
    other.write_text("\n".join(lines) + "\n")
    _, (note,) = robot_of(read_trajectory(other), ROOT / "robots/panda.yaml")
    assert note.message.endswith("are ignored: temperature, d1v.panda_joint1, d1tua.panda_joint1, "
                                 "q.panda_jiont1, fext.hand.fw, note0, note1, note2 and 6 more")


@pytest.mark.parametrize("name", ["quadruped_righting", "panda_hybrid"])
def test_forward_and_hybrid_give_back_the_accelerations(recorded, name):
    result, path = recorded[name]
    motion = read_trajectory(path)
    model, _ = robot_of(motion)
    forward = {n: x for n, _, x in dynamics_along(model, motion, "forward").columns}
    patterns = [model.joint_names[1], model.joint_names[2][:-1] + "*"]
    hybrid = {n: x for n, _, x in dynamics_along(model, motion, "hybrid", patterns).columns}
    scale = np.abs(result.a).max()
    for columns in (forward, hybrid):
        a = np.column_stack([columns[f"a.{n}"] for n in model.a_names])
        assert np.abs(a - result.a).max() < 1e-9 * scale


def test_missing_velocities_and_accelerations_are_derived_and_told(recorded, tmp_path):
    """From positions at 5 ms of a tumbling floating robot: v to 1e-8, a to 1e-5 of their size away from breaks."""
    result, _ = recorded["quadruped_righting"]
    write_trajectory(tmp_path / "q.csv", trajectory_header(result.model, folder=tmp_path), result.t,
                     motion_columns(result.model, q=result.q))
    motion = read_trajectory(tmp_path / "q.csv")
    model, _ = robot_of(motion)
    along = dynamics_along(model, motion, "inverse")
    assert "velocities and accelerations are derived" in str(along.warnings[0])
    got = {n: x for n, _, x in along.columns}
    v = np.column_stack([got[f"v.{n}"] for n in model.v_names])
    assert np.median(np.abs(v - result.v)) < 1e-7


def test_derivatives_on_the_manifold_have_their_order():
    """A free body that turns and flies on a known path: error falls by 2^6 (v) and 2^5 (a) when the grid is halved."""
    model = ld.load(ROOT / "robots/asymmetric_body.yaml", base="floating")
    result = run_scenario(ROOT / "configs/tennis_racket.yaml",
                          ["duration=4", "output_step=0.02", "integrator={method: dopri5, rtol: 1e-13, atol: 1e-14}"])
    errors = []
    for stride in (4, 2, 1):
        v, a = derivatives(model, result.t[::stride], result.q[::stride])
        inner = slice(8 // stride * 2, -8 // stride * 2)
        errors.append((np.abs(v - result.v[::stride])[inner].max(), np.abs(a - result.a[::stride])[inner].max()))
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert orders[0, 0] > 5.5 and orders[0, 1] > 4.5, (orders, errors)
    assert errors[-1][0] < 1e-7


def edited(path: Path, tmp_path: Path, edit) -> Path:
    lines = path.read_text().splitlines()
    out = tmp_path / "edited.csv"
    out.write_text("\n".join(edit(lines)) + "\n")
    return out


def without_columns(prefix):
    def edit(lines):
        header = next(k for k, line in enumerate(lines) if not line.startswith("#"))
        names = lines[header].split(",")
        keep = [k for k, name in enumerate(names) if not name.startswith(prefix)]
        return lines[:header] + [",".join(np.array(line.split(","))[keep]) for line in lines[header:]]
    return edit


def test_missing_columns_are_named(recorded, tmp_path):
    _, path = recorded["panda_hybrid"]
    model, _ = robot_of(read_trajectory(path))
    with pytest.raises(TrajectoryError, match=r"there are no columns of the positions.*expected q\.<joint>"):
        dynamics_along(model, read_trajectory(edited(path, tmp_path, without_columns("q."))), "inverse")
    with pytest.raises(TrajectoryError, match=r"no column belongs to a joint of the robot ur5: expected q\.shoulder_pan_joint, .*"
                       r"got 'q\.panda_joint1, .*another robot"):
        dynamics_along(ld.load(ROOT / "robots/ur5.yaml"), read_trajectory(path), "inverse")
    with pytest.raises(TrajectoryError, match=r"there are no columns of the generalized forces.*tau\.<joint>"):
        dynamics_along(model, read_trajectory(edited(path, tmp_path, without_columns("tau."))), "forward")
    with pytest.raises(TrajectoryError, match=r"column q\.panda_joint3: a column is missing: expected one for each "
                                              r"coordinate, because there is q\.panda_joint1"):
        dynamics_along(model, read_trajectory(edited(path, tmp_path, without_columns("q.panda_joint3"))), "inverse")
    with pytest.raises(UsageError, match="no moving joint matches 'leg_\\*'"):
        dynamics_along(model, read_trajectory(path), "hybrid", ["leg_*"])


def test_units_and_links_that_do_not_fit_are_named(recorded, tmp_path):
    _, path = recorded["panda_hybrid"]
    model, _ = robot_of(read_trajectory(path))
    degrees = edited(path, tmp_path, lambda lines: [line.replace("q.panda_joint2[rad]", "q.panda_joint2[deg]") for line in lines])
    with pytest.raises(TrajectoryError, match=r"column q\.panda_joint2: wrong unit: expected rad, got 'deg'"):
        dynamics_along(model, read_trajectory(degrees), "inverse")
    foot = edited(path, tmp_path, lambda lines: [line.replace("fext.panda_hand", "fext.panda_foot") for line in lines])
    with pytest.raises(TrajectoryError, match=r"fext\.panda_foot.*the robot has no link of this column"):
        dynamics_along(model, read_trajectory(foot), "inverse")


def test_a_quaternion_that_is_not_unit_names_its_line(recorded, tmp_path):
    _, path = recorded["quadruped_righting"]
    model, _ = robot_of(read_trajectory(path))

    def edit(lines):
        header = next(k for k, line in enumerate(lines) if not line.startswith("#"))
        k = lines[header].split(",").index("q.base.qw")
        row = lines[header + 3].split(",")
        row[k] = "0.9"
        lines[header + 3] = ",".join(row)
        return lines

    with pytest.raises(TrajectoryError, match=r"edited\.csv:\d+: the quaternion of joint base is not of unit norm"):
        dynamics_along(model, read_trajectory(edited(path, tmp_path, edit)), "inverse")


def test_too_few_rows_to_differentiate(recorded, tmp_path):
    result, _ = recorded["panda_hybrid"]
    write_trajectory(tmp_path / "two.csv", trajectory_header(result.model, folder=tmp_path), result.t[:2],
                     motion_columns(result.model, q=result.q[:2]))
    with pytest.raises(TrajectoryError, match=r"2 row.s. are not enough"):
        dynamics_along(result.model, read_trajectory(tmp_path / "two.csv"), "inverse")


@pytest.mark.parametrize("rows, said", [
    (["0,0.1", "1,1e308", "2,-1e308", "3,0.2"], "the result is not finite: the state is too large"),
    (["0,0.1", "5e-324,0.1", "1,0.3", "2,0.2"], r"m\.csv: derivatives cannot be computed for this file: expected smaller "
                                                r"values, or times that are more evenly spaced"),
], ids=["values", "times"])
def test_a_motion_whose_derivatives_overflow_is_refused_without_warnings_of_numpy(tmp_path, rows, said):
    (tmp_path / "one.yaml").write_text("links: {a: {mass: 1, inertia: [1, 1, 1]}}\n"
                                       "joints: {j: {type: prismatic, parent: world, child: a, axis: [1, 0, 0], "
                                       "limits: {lower: -9, upper: 9}}}\n")
    (tmp_path / "m.csv").write_text("\n".join(["t[s],q.j[m]", *rows]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LiedynError, match=said):
            dynamics_along(ld.load(tmp_path / "one.yaml"), read_trajectory(tmp_path / "m.csv"), "inverse")


@pytest.mark.parametrize("factor, noise", [(1.0, 0.1), (1000.0, 0.0), (-1.0, 0.0), (0.3, 0.0)])
@pytest.mark.parametrize("smooth", [None, "auto"])
def test_measured_torques_are_compared_with_computed_ones(factor, noise, smooth):
    model, t = ld.load(ROOT / "robots/double_pendulum.yaml"), np.linspace(0.0, 2.0, 201)
    q, v = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1), np.stack([2 * np.cos(2 * t), -3 * np.sin(3 * t)], axis=1)
    a = -q * [4.0, 9.0]
    tau = ld.inverse_dynamics(model, q, v, a)
    measured = factor * tau + noise * np.random.default_rng(0).standard_normal(tau.shape)
    along = dynamics_along(model, ld.trajectory_of(model, t, q, v, a, tau), "inverse", smooth=smooth)
    assert along.differences == () and not any(name.startswith("measured") for name, *_ in along.columns)      # rounding
    along = dynamics_along(model, ld.trajectory_of(model, t, q, v, a, measured), "inverse", smooth=smooth)
    columns = {name: x for name, _, x in along.columns}
    rms = np.sqrt(np.mean((measured - tau)**2, axis=0))
    for k, name in enumerate(model.v_names):
        np.testing.assert_array_equal(columns[f"measured.{name}"], measured[:, k])
        np.testing.assert_allclose(columns[f"tau.{name}"], tau[:, k], atol=1e-9)
        assert along.differences[k].rms == pytest.approx(rms[k], rel=1e-6)
        assert along.differences[k].relative == pytest.approx(rms[k] / np.sqrt(np.mean(measured[:, k]**2)), rel=1e-6)
    message, = (one.message for one in along.warnings if one.code == "torques-compared")
    assert message == "measured and computed torques differ by (rms): " + ", ".join(map(str, along.differences))
    scales = [one.message for one in along.warnings if one.code == "torque-scale"]
    assert len(scales) == (factor != 1.0) and all(f"about {factor:g} times the computed ones" in text for text in scales)


@pytest.mark.parametrize(("factors", "text"), [
    ((1.0, 10.0), "the measured torques are the computed ones times about 10 (elbow): check"),
    ((-1.0, 1.0), "the measured torques are the computed ones times about -1 (shoulder): check"),
    ((0.1, -2.5), "the measured torques are the computed ones times about 0.1 (shoulder), -2.5 (elbow): check"),
    ((10.0, 11.0), "times the computed ones: check"), ((1.5, 0.6), ""), ((1.0, None), "")])
def test_a_wrong_scale_of_one_joint_is_named(factors, text):
    """Only a factor common to all joints was named. None: a torque that is unrelated to the computed one."""
    model, t = ld.load(ROOT / "robots/double_pendulum.yaml"), np.linspace(0.0, 4.0, 401)
    q = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1)
    tau = ld.inverse_dynamics(model, *ld.motion_of(model, ld.trajectory_of(model, t, q))[1:4])
    other = 9 * np.sign(np.sin(9 * t))
    measured = np.stack([x * factor if factor else other for x, factor in zip(tau.T, factors, strict=True)], axis=1)
    along = dynamics_along(model, ld.trajectory_of(model, t, q, tau=measured), "inverse")
    found = [one.message for one in along.warnings if one.code == "torque-scale"]
    assert len(found) == bool(text) and all(text in message for message in found)


def test_only_joints_with_a_measured_torque_are_compared():
    model, t = ld.load(ROOT / "robots/double_pendulum.yaml"), np.linspace(0.0, 2.0, 201)
    q, tau = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1), np.stack([np.ones(201), np.zeros(201)], axis=1)
    recorded = ld.trajectory_of(model, t, q, tau=tau)
    assert [each.coordinate for each in dynamics_along(model, recorded, "inverse").differences] == ["shoulder"]
    assert dynamics_along(model, recorded, "hybrid", ["elbow"]).differences == ()
    assert dynamics_along(model, recorded, "forward").differences == ()


def test_a_missing_torque_is_needed_only_where_it_is_an_input():
    model, t = ld.load(ROOT / "robots/double_pendulum.yaml"), np.linspace(0.0, 2.0, 201)
    q = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1)
    recorded = ld.trajectory_of(model, t, q, tau=np.stack([np.ones(201), np.full(201, np.nan)], axis=1))
    for options in {}, {"smooth": 0.1}:
        assert [each.coordinate for each in dynamics_along(model, recorded, "inverse", **options).differences] == ["shoulder"]
        columns = {name: x for name, _, x in dynamics_along(model, recorded, "hybrid", ["elbow"], **options).columns}
        assert (columns["tau.shoulder"] == 1.0).all() and np.isfinite(columns["tau.elbow"]).all()
        for of, prescribed in ("forward", ()), ("hybrid", ["shoulder"]):
            with pytest.raises(ld.TrajectoryError, match=r"column tau.elbow: a column is missing: [^(]*$"):   # no tau.elbow=0
                dynamics_along(model, recorded, of, prescribed, **options)


ON_A_SLIDE = """links:
  a: {mass: 1, inertia: [0.02, 0.02, 0.02]}
  b: {mass: 1, com: [0.2, 0, 0], inertia: [0.02, 0.02, 0.02]}
joints:
  x: {type: prismatic, parent: world, child: a, axis: [1, 0, 0], limits: {lower: -9, upper: 9}}
  turn: {type: continuous, parent: a, child: b, axis: [0, 1, 0]}
"""


@pytest.mark.parametrize("smooth", [None, "auto"])
@pytest.mark.parametrize("speed", [0.0, 0.3])
def test_results_that_are_rounding_are_not_called_unreliable(tmp_path, smooth, speed):
    """The weight has no force along the slide and no moment about the joint: errors of 1e-13 N are compared with 20 N."""
    (tmp_path / "slide.yaml").write_text(ON_A_SLIDE)
    model, t = ld.load(tmp_path / "slide.yaml"), 0.01 * np.arange(200)
    q = np.stack([0.1 + speed * t, np.full(200, np.pi / 2)], axis=1)
    along = dynamics_along(model, ld.trajectory_of(model, t, q), "inverse", smooth=smooth)
    assert np.abs(np.column_stack([x for name, _, x in along.columns if name.startswith("tau")])).max() < 1e-9
    assert "not-reliable" not in {one.code for one in along.warnings}
    noisy = q + 1e-4 * np.random.default_rng(0).standard_normal(q.shape)
    if smooth is None:
        along = dynamics_along(model, ld.trajectory_of(model, t, noisy), "inverse")
        assert "not-reliable" in {one.code for one in along.warnings}


def test_velocities_of_rounding_satisfy_constraints_and_contradict_nothing():
    model = ld.load(ROOT / "robots/four_bar.yaml")
    t, q = 0.01 * np.arange(50), np.tile(ld.assemble(model, [1.0, 0.0, 0.0], fixed=["crank"]).q, (50, 1))
    noise = 1e-17 * np.random.default_rng(0).standard_normal((2, *q.shape))
    recorded = ld.trajectory_of(model, t, q, noise[0], noise[1], np.tile([1.0, 0.0, 0.0], (50, 1)))
    codes = {one.code for one in dynamics_along(model, recorded, "inverse").warnings}
    assert not codes & {"contradicting-rates", "moved-onto-constraints", "not-reliable"}
