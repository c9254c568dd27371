"""The mechanisms' scenarios do what their first lines promise: closed forms and published answers, over time."""
from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator
from scipy.spatial.transform import Rotation

import liedyn as ld
import mechanisms as known
from liedyn.simulation.run import Result, run_scenario

CONFIGS = Path(__file__).parents[2] / "configs"
NAMES = ["andrews", "bennett", "bricard", "cam_valve", "closures", "delta", "delta_computed_torque", "delta_guided", "engine",
         "five_bar", "five_bar_redundant", "five_bar_swing", "four_bar", "gripper", "hand", "knee", "n_four_bar",
         "rolling_disc", "slider_crank", "stewart"]


@cache
def run(name: str) -> Result:
    return run_scenario(CONFIGS / f"{name}.yaml")


def joint(result: Result, name: str, of: str = "q") -> np.ndarray:
    """Return a joint's column of q, v, a or tau."""
    columns = result.model.q_index(name) if of == "q" else result.model.v_index(name)
    return getattr(result, of)[:, columns][:, 0]


def place(result: Result, link: str) -> np.ndarray:
    return ld.link_pose(result.model, result.q, link)[:, :3, 3]


def drive(result: Result) -> dict:
    """Return the circle of delta_guided in closed form: the only scenario with a driven loop."""
    if "guide" not in [part.name for part in result.model.constraints]:
        return {}
    T, V, dV = np.tile(np.eye(4), (len(result.t), 1, 1)), np.zeros((len(result.t), 6)), np.zeros((len(result.t), 6))
    t, w = result.t, np.pi
    T[:, :3, 3] = guide(t)
    V[:, 3:] = np.stack([-0.15 * w * np.sin(w * t), 0.15 * w * np.cos(w * t), 0.06 * w * np.cos(2 * w * t)], 1)
    dV[:, 3:] = np.stack([-0.15 * w**2 * np.cos(w * t), -0.15 * w**2 * np.sin(w * t), -0.12 * w**2 * np.sin(2 * w * t)], 1)
    return {"guide": (T, V, dV)}


def guide(t) -> np.ndarray:
    return np.stack([0.15 * np.cos(np.pi * t), 0.15 * np.sin(np.pi * t), -0.8 + 0.03 * np.sin(2 * np.pi * t)], 1)


def test_the_cam_opens_the_valve():
    """Elliptic gears turn the cam by Kepler's law of angles; the lift is at most 10 mm, and the energy is balanced."""
    result = run("cam_valve")
    q, cam, valve = (joint(result, name) for name in ("input", "cam", "valve"))
    ratio = (1 - 0.25) / (1 + 0.25)
    np.testing.assert_allclose(np.tan(cam / 2) * np.cos(q / 2), -ratio * np.sin(q / 2), atol=1e-9 * np.abs(np.tan(cam / 2)).max())
    assert np.abs(cam + q).max() < 0.51 and q[-1] - q[0] > 18              # three turns without a jump
    assert valve.max() == pytest.approx(0.01, abs=2e-5) and valve.min() > -1e-4
    energy = result.kinetic + result.potential - result.work
    assert np.ptp(energy) < 1e-7 * result.kinetic.max()


def test_the_knee_slides_while_it_bends():
    """The shank is where the functions of the knee's angle say, and the energy is balanced between the stops."""
    result = run("knee")
    knee, model = joint(result, "knee"), result.model
    relative = np.linalg.solve(ld.link_pose(model, result.q, "thigh"), ld.link_pose(model, result.q, "shank"))
    expected = np.stack([-0.012 * np.sin(knee), 0 * knee, -0.42 - 0.004 * (1 - np.cos(knee))], 1)
    np.testing.assert_allclose(relative[:, :3, 3], expected, atol=1e-10)
    turn = Rotation.from_matrix(relative[:, :3, :3]).as_euler("ZYX")
    np.testing.assert_allclose(turn[:, 0], 0.1 * (1 - np.cos(knee)), atol=1e-10)
    assert np.ptp(knee) > 1.0 and np.ptp(joint(result, "carriage")) > 5.0 and knee.min() > -0.21


@pytest.mark.parametrize("name", NAMES)
def test_stays_closed(name, worst):
    """Position and velocity satisfy the loops in every output row."""
    result = run(name)
    residual = np.abs(ld.constraint_residual(result.model, result.q, constraint_motion=drive(result) or None)).max()
    rate = np.abs(ld.constraint_velocity(result.model, result.q, result.v, constraint_motion=drive(result) or None)).max()
    assert worst("residual of mechanisms [rad, m]", residual, name) < 1e-10
    assert worst("their closures' velocity, relative", rate / (1 + np.abs(result.v).max()), name) < 1e-9


def test_foot_of_the_four_bar_goes_straight_for_half_of_each_turn():
    result = run("four_bar")
    rest = 0 * result.t
    one, two, three = known.four_bar(0.2, 0.1, 0.25, 0.25, 4 * np.pi / 3 * result.t, 4 * np.pi / 3 + rest, rest, sign=-1)
    foot, expected = place(result, "foot"), 0.42j + one.point(0.1)[0] + two.point(0.5)[0]
    np.testing.assert_allclose(foot[:, 0] + 1j * foot[:, 2], expected, atol=1e-10)
    down = np.cos(one.q) <= 1e-9
    assert np.ptp(foot[down, 2]) < 0.001 < 0.08 < np.ptp(foot[:, 2])
    assert np.ptp(foot[down, 0]) == pytest.approx(0.4, abs=1e-3)
    np.testing.assert_allclose(np.exp(1j * joint(result, "rocker")), np.exp(1j * three.q), atol=1e-10)


def test_block_of_the_slider_crank_follows_its_closed_form():
    result = run("slider_crank")
    crank = 150 * result.t, 150 + 0 * result.t, 0 * result.t
    for of, expected in zip("qva", known.slider_crank(*crank)[2], strict=True):
        np.testing.assert_allclose(joint(result, "block", of), expected, atol=1e-9 * np.abs(expected).max())
    torque = known.slider_crank_torque(*crank)
    np.testing.assert_allclose(joint(result, "crank", "tau"), torque, atol=1e-9 * np.abs(torque).max())


def test_the_engine_obeys_lagranges_equation_of_its_crank():
    """The gas force of the table, which repeats after two turns, and the load of the crank."""
    result = run("engine")
    q, v, a = (joint(result, "crank", of) for of in "qva")
    degrees, force = np.loadtxt(CONFIGS / "engine_gas.csv", delimiter=",", skiprows=2).T
    angle = np.radians(np.concatenate([degrees[:-1] - 720, degrees[:-1], degrees + 720]))
    gas = PchipInterpolator(angle, np.concatenate([force[:-1], force[:-1], force]))(q % (4 * np.pi))
    torque = gas * known.slider_crank(q, v, a)[2][1] / v - 0.006 * v
    np.testing.assert_allclose(known.slider_crank_torque(q, v, a), torque, atol=1e-9 * np.abs(torque).max())
    assert q[-1] > 4 * np.pi and np.abs(gas).max() > 300


def test_five_bar_draws_its_circle():
    result = run("five_bar")
    circle = np.stack([0.06 * np.cos(2 * result.t), 0 * result.t, 0.25 + 0.06 * np.sin(2 * result.t)], 1)
    np.testing.assert_allclose(place(result, "tool"), circle, atol=1e-9)


def test_third_motor_of_the_five_bar_takes_its_part():
    """The shoulders supply the power of the elbow: the sum is the power of the tool and the bars."""
    result = run("five_bar_redundant")
    np.testing.assert_array_equal(joint(result, "left_elbow", "tau"), 0.6)
    power = np.sum(result.tau * result.v, 1)
    energy = sum(ld.energy(result.model, result.q, result.v))
    work = np.r_[0, np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(result.t))]
    np.testing.assert_allclose(work, energy - energy[0], atol=2e-4)


def test_delta_carries_along_its_arch_and_never_turns():
    result = run("delta")
    platform = result.q[:, result.model.q_index("platform")]
    np.testing.assert_allclose(platform[:, 3:], np.tile([0, 0, 0, 1], (len(result.t), 1)), atol=1e-9)
    assert platform[:, 2].max() == pytest.approx(-0.75, abs=1e-3)
    for t, x, z in ((0, -0.1525, -0.8), (0.3, 0, -0.75), (0.6, 0.1525, -0.8), (1.2, -0.1525, -0.8)):
        np.testing.assert_allclose(platform[np.searchsorted(result.t, t - 1e-9), :3], [x, 0, z], atol=2e-6)


def test_guided_delta_follows_the_hand():
    result = run("delta_guided")
    np.testing.assert_allclose(place(result, "gripper"), guide(result.t), atol=1e-9)
    assert (result.tau == 0).all() and not result.prescribed.any()


def test_stewart_platform_goes_where_its_legs_say():
    """Coordinates of the joints are rounded to a micrometre, and so is the platform's error."""
    result = run("stewart")
    t, platform = result.t, result.q[:, result.model.q_index("platform")]
    roll = Rotation.from_quat(platform[:, 3:]).as_rotvec()
    np.testing.assert_allclose(platform[:, :3], np.stack([0 * t, 0 * t, 0.64 - 0.04 * np.cos(np.pi * t)], 1), atol=1e-6)
    np.testing.assert_allclose(roll, np.stack([0.2 * np.sin(np.pi * t / 2)**3, 0 * t, 0 * t], 1), atol=3e-6)
    legs = [result.model.v_index(f"leg_{k}").start for k in range(1, 7)]
    assert (np.delete(result.tau, legs, 1) == 0).all()
    assert 40 * 9.81 < result.tau[:, legs].sum(1).mean() < 1.5 * 65.2 * 9.81


def test_andrews_reaches_the_published_state(worst):
    """Reference solution of the Test Set for IVP Solvers at 0.03 s, see tests/support/mechanisms.py."""
    result = run("andrews")
    end = np.array([joint(result, name)[-1] for name in known.ANDREWS])
    rates = np.array([joint(result, name, "v")[-1] for name in known.ANDREWS])
    assert worst("Andrews' squeezer at 0.03 s [rad]", np.abs(end - known.ANDREWS_END).max()) < 1e-7
    assert np.abs(rates - known.ANDREWS_END_V).max() < 1e-8 * np.abs(known.ANDREWS_END_V).max()


def test_bricard_rolls_through_as_its_closed_form(worst):
    result = run("bricard")
    along = known.Cycle(known.bricard_bars, (0, -known.G, 0)).motion(np.pi / 4, 0.0, result.t)
    expected = np.array([known.bricard_angles(s) for s in along])
    assert worst("Bricard's mechanism over 10 s [rad]", np.abs(result.q - expected).max()) < 1e-6
    assert np.abs(result.q[500] - result.q[0]).max() < 1e-3           # and is back after 5 s


def test_bricard_agrees_with_exudyn():
    """Exudyn (J. Gerstmayr), TestModels/bricardMechanism.py, checks the norm of its coordinates after 1 s, with 1000 steps of
    its generalized alpha method: 4.172189649307425, of which 2 are degrees of freedom and redundant constraints. A bar's seven
    coordinates are the way of its first end and the change of its Euler parameters."""
    result = run("bricard")
    q = result.q[[0, 100]]
    assert result.t[100] == pytest.approx(1)
    Z, Y = (lambda angle: Rotation.from_euler("z", angle)), Rotation.from_euler("y", -np.pi / 2)
    references = (Rotation.identity(), Z(-np.pi / 2), Y, Z(np.pi), Z(np.pi / 2))
    total = 0.0
    for bar, reference in enumerate(references, 1):
        start, end = ld.link_pose(result.model, q, f"bar_{bar}")
        p, p0 = ((Rotation.from_matrix(T[:3, :3]) * reference).as_quat() for T in (end, start))
        total += np.sum((end - start)[:3, 3]**2) + min(np.sum((p - p0)**2), np.sum((p + p0)**2))
    assert 2 + np.sqrt(total) == pytest.approx(4.172189649307425, abs=3e-6)      # its steps are of second order


def test_bennett_swings_as_its_closed_form(worst):
    result = run("bennett")
    along = known.Cycle(known.bennett_bars, (0, 0, -known.G)).motion(joint(result, "pin_1")[0], 0.0, result.t)
    assert worst("Bennett's linkage over 10 s [rad]", np.abs(joint(result, "pin_1") - along).max()) < 1e-6
    assert np.ptp(along) > 5.9


def test_n_four_bar_goes_straight_through_its_singular_configurations(worst):
    result = run("n_four_bar")
    theta = known.pendulum_of_windows(2, result.t)
    B0 = place(result, "beam_1")[:, :2]
    assert np.ptp(theta) > 6 * np.pi                                   # several turns, two passages each
    assert worst("N-four-bar over 10 s [m]", np.abs(B0 - np.stack([np.sin(theta), np.cos(theta)], 1)).max()) < 1e-4


def test_rolling_disc_obeys_rouths_equations(worst):
    result = run("rolling_disc")
    R = Rotation.from_quat(result.q[:, 3:])
    axle = R.apply([0, 1, 0])
    tilt, _, _, spin = known.rolling_disc(1.0, 0.1, (np.pi / 3, 0.0, 2.0, -10.0), result.t)
    assert worst("rolling disc over 6 s [rad]", np.abs(np.arccos(axle[:, 2]) - tilt).max()) < 1e-7
    np.testing.assert_allclose(result.v[:, 1], spin, atol=1e-6)
    assert np.abs(result.balance).max() < 1e-8


def test_hand_closes_on_where_one_finger_stays():
    result = run("hand")
    assert joint(result, "index_mcp")[-1] == pytest.approx(0.36, abs=0.02)
    for finger in ("long", "ring", "little"):
        assert joint(result, f"{finger}_mcp")[-1] > 0.85
        np.testing.assert_allclose(joint(result, f"{finger}_dip"), 2 / 3 * joint(result, f"{finger}_pip"), atol=1e-10)


def test_pads_of_the_gripper_stay_parallel():
    result = run("gripper")
    for pad in ("left_pad", "right_pad"):
        poses = ld.link_pose(result.model, result.q, pad)
        np.testing.assert_allclose(poses[:, :3, :3], np.tile(np.eye(3), (len(result.t), 1, 1)), atol=1e-9)
    left, right = place(result, "left_pad"), place(result, "right_pad")
    np.testing.assert_allclose(left * [-1, 1, 1], right, atol=1e-10)
    assert np.ptp(left[:, 0]) > 0.04


def test_pieces_of_the_closures_move_by_their_formulas():
    result = run("closures")
    q = joint(result, "input_shaft")
    np.testing.assert_allclose(q, 2 * np.pi * result.t, atol=1e-12)
    out = np.arctan2(np.sin(q), np.cos(q) * np.cos(np.pi / 6))
    np.testing.assert_allclose(np.exp(1j * joint(result, "output_shaft")), np.exp(1j * out), atol=1e-9)
    np.testing.assert_allclose(joint(result, "lower_shaft"), joint(result, "upper_shaft"), atol=1e-10)
    marble = result.q[:, result.model.q_index("marble")]
    along = 5 / 14 * 9.81 * np.sin(0.2) * result.t**2
    np.testing.assert_allclose(np.linalg.norm(marble[:, :3] - marble[0, :3], axis=1), along, atol=1e-9)
