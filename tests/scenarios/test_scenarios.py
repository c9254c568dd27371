"""The scenarios that come with liedyn show what their first lines promise, and stay within the robots' limits."""
from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.special import ellipk

import liedyn as ld
from liedyn.simulation.run import Result, run_scenario

CONFIGS = Path(__file__).parents[2] / "configs"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.yaml"))


@cache
def run(name: str) -> Result:
    return run_scenario(CONFIGS / f"{name}.yaml")


def rotations(quaternions: np.ndarray) -> np.ndarray:
    return Rotation.from_quat(quaternions).as_matrix()


def turned(sine, cosine) -> float:
    """Return the angle from the first to the last row, including full turns."""
    angle = np.unwrap(np.arctan2(sine, cosine))
    return angle[-1] - angle[0]


@pytest.mark.parametrize("name", NAMES)
def test_stays_within_limits(name):
    result = run(name)
    model = result.model
    depth = 1e-9 if result.stops is None else 0.01         # compliant stops yield by 0.01 rad under the effort limit
    for joint in model.joints:
        q, v = result.q[:, joint.q], result.v[:, joint.v]
        if joint.type not in ("ball", "free"):
            assert (q >= model.lower[joint.v] - depth).all() and (q <= model.upper[joint.v] + depth).all(), joint.name
        assert (np.abs(v) <= model.velocity_limit[joint.v] * (1 + 1e-12)).all(), joint.name         # a move reaches it
        assert (np.abs(result.tau[:, joint.v]) <= model.effort_limit[joint.v]).all(), joint.name
    expected = ("the initial ",) + ("the mechanism passed a singular",) * (name == "n_four_bar")   # loops are closed at the start
    expected += ("the force of panda_joint2 is at its limit of 87 N m from t = 0 s",) * (name == "panda_computed_torque")
    expected += ("the motor of shoulder_pan_joint is at its curve from t = 0.37 s",) * (name == "ur5_motors")
    expected += ("thrust.rotor",) * (name == "quadrotor_lqr")                                  # at 0 and 6 N at first
    expected += ("thrust.flexor", "thrust.extensor") * (name == "tendon_finger")               # they only pull
    expected += ("joints held by friction creep",) * (name == "ur5_limp")
    springs = {"passive-torque"} if name == "andrews" else set()
    assert [note for note in result.warnings if not str(note).startswith(expected) and note.code not in springs] == []


@pytest.mark.parametrize("name", NAMES)
def test_balances_its_energy(name):
    """Adaptive runs satisfy their tolerances; rk4 with these steps is better than 1e-8."""
    assert run(name).check["energy_balance_relative"] < 1e-7
    assert run(name).check["inverse_dynamics_residual"] < 1e-11


def test_panda_comes_back_later_with_a_limited_motor():
    result, free = run("panda_computed_torque"), run_scenario(CONFIGS / "panda_computed_torque.yaml", {"saturate": False})
    t, e, ideal = result.t, np.abs(result.tracking.error[:, 1]), free.tracking.error[:, 1]
    before = t < 3
    np.testing.assert_allclose(ideal[before], (0.2 * (1 + 12 * t) * np.exp(-12 * t))[before], atol=1e-8)
    assert np.abs(free.tau[:, 1]).max() == pytest.approx(132, abs=0.5)
    assert np.abs(result.tau[:, 1]).max() == pytest.approx(87, rel=1e-12)
    early = (t > 0.05) & (t < 1)
    assert (e[early] > ideal[early]).all() and e[(t > 1.5) & before].max() < 1e-6
    assert np.abs(result.tracking.error[:, [0, 2]]).max() < 0.2


def test_arm_holds_its_posture_on_a_moving_deck():
    """The deck moves as in the file; it carries the weight, except for the motion; the arm deflects by half a degree."""
    result = run("panda_on_ship")
    deck = Rotation.from_quat(result.q[:, 3:7])
    np.testing.assert_allclose(deck.as_euler("ZYX")[:, 2], 0.21 * np.sin(2 * np.pi * result.t / 8 + 1), atol=1e-12)
    weight = 9.81 * sum(link.mass for link in result.model.description.links)
    force = deck.apply(result.tau[:, 3:6].copy())[:, 2]
    assert np.abs(force / weight - 1).max() < 0.08 and abs(force[result.t < 24].mean() / weight - 1) < 0.005
    assert np.abs(result.q[:, 7:14] - [0.4, 0.3, 0, -1.8, 0, 2.1, 0.8]).max() < 0.01


def test_panda_dangles_only_where_it_is_driven_by_no_force():
    result = run("panda_hybrid")
    names = [name for name, prescribed in zip(result.model.v_names, result.prescribed, strict=True) if not prescribed]
    assert names == ["panda_joint4", "panda_joint6", "panda_joint7"]
    free = result.model.v_index("panda_joint6")
    assert (result.tau[:, free] == 0).all() and np.ptp(result.q[:, free]) > 0.5
    heights = [ld.link_pose(result.model, q, "panda_hand_tcp")[2, 3] for q in result.q[::10]]
    assert min(heights) > 0                                       # the hand stays above the table


def test_limp_arm_sinks_and_comes_to_rest():
    """Few steps where explicit methods would need very many; the smoothed friction lets it creep."""
    result = run("ur5_limp")
    assert result.potential[-1] < result.potential[0] - 10 and np.abs(result.v[-1]).max() < 0.3
    assert result.statistics.steps < 1500


def test_double_pendulum_keeps_its_energy_for_a_minute():
    result = run("double_pendulum")
    assert np.abs(result.balance).max() < 1e-8 * abs(result.kinetic[0] + result.potential[0])


def test_both_double_pendulums_agree():
    rk4, dop853 = run("double_pendulum"), run("double_pendulum_dop853")
    np.testing.assert_allclose(rk4.t[:251], dop853.t[:251], atol=1e-12)
    np.testing.assert_allclose(rk4.q[:251], dop853.q[:251], atol=1e-7)          # the first 5 s, before chaos parts them


def test_hexarotor_holds_its_place_by_feedback():
    result = run("hexarotor_feedback")
    place, t = result.q[:, :3], result.t
    before_the_gust = (t > 5.5) & (t < 6)
    assert np.abs(place[before_the_gust] - [1, 0.5, 2.5]).max() < 0.02
    assert 0.2 < (place[:, 1] - 0.5).max() < 0.5                  # 4 N blow it aside,
    assert np.abs(place[-1] - [1, 0.5, 2.5]).max() < 0.05         # and it comes back
    assert np.abs(result.q[:, 3:6]).max() < math.sin(0.08 / 2)    # level all the time
    hover = run("hexarotor_hover")
    assert np.linalg.norm(hover.q[-1, :2]) > 1                    # which equal thrusts do not


def test_quadrotor_recovers_by_its_thrusts():
    """Rolled by 60 degrees and 1.5 m away, with thrusts from 0 to 6 N, it returns to hover."""
    result = run("quadrotor_lqr")
    assert np.linalg.norm(result.q[0, :2]) == pytest.approx(1.5) and 2 * math.acos(result.q[0, 6]) == pytest.approx(math.pi / 3)
    np.testing.assert_allclose(result.q[-1], [0, 0, 2, 0, 0, 0, 1], atol=1e-4)
    np.testing.assert_allclose(result.thrusts[-1], 9.81 / 4, atol=1e-3)
    assert result.thrusts.min() == 0.0 and result.thrusts.max() == pytest.approx(6.0, rel=1e-12)


def test_quadruped_rolls_over_without_angular_momentum():
    result = run("quadruped_righting")
    R = rotations(result.q[:, 3:7])
    assert turned(R[:, 2, 1], R[:, 2, 2]) == pytest.approx(-math.pi, abs=0.01)
    assert np.abs(ld.momentum(result.model, result.q, result.v)).max() < 1e-7


def test_diver_turns_two_and_a_half_times_and_flies_a_parabola():
    result = run("humanoid_dive")
    R, t = rotations(result.q[:, 3:7]), result.t
    assert turned(R[:, 0, 2], R[:, 2, 2]) + 0.25 == pytest.approx(5 * math.pi, abs=0.3)
    assert result.v[:, 1].max() > 4 * result.v[0, 1]
    com = ld.centre_of_mass(result.model, result.q)
    np.testing.assert_allclose(com[:, 2], com[0, 2] + 5 * t - 9.81 * t**2 / 2, atol=2e-3)        # take-off rounded to 1 mm/s
    hands = [ld.link_pose(result.model, result.q[-1], f"{side}_hand")[2, 3] for side in ("left", "right")]
    assert 0 < min(hands) < 0.3 < result.q[-1, 2]                 # head first, the hands about to touch the water


def test_top_precesses_at_the_rate_of_the_closed_form():
    A, C, mgl, s = 15.234375, 0.46875, 15 * 9.81, 150.0
    rate = (C * s - math.sqrt((C * s) ** 2 - 4 * A * 0.5 * mgl)) / (2 * A * 0.5)
    result = run("top_precession")
    axle = rotations(result.q)[:, :, 2]
    np.testing.assert_allclose(axle[:, 2], 0.5, atol=1e-6)
    assert turned(axle[:, 1], axle[:, 0]) / result.t[-1] == pytest.approx(rate, rel=1e-6)


def test_nutating_top_keeps_what_it_must():
    """Spin about the axle and angular momentum about the vertical are constant; the axle passes the vertical."""
    result = run("top_nutation")
    R = rotations(result.q)
    np.testing.assert_allclose(result.v[:, 2], 150, rtol=1e-8)
    spin = np.einsum("tij,j,tj->ti", R, [15.234375, 15.234375, 0.46875], result.v)
    np.testing.assert_allclose(spin[:, 2], spin[0, 2], rtol=1e-6)
    assert R[:, 2, 2].min() < -0.999


def test_tennis_racket_flips_when_elliptic_functions_say():
    I1, I2, I3 = 4.2 / 1200 * np.array([5, 10, 13])
    w = np.array([0, 5, 0.05])
    energy2, momentum2 = I2 * w[1] ** 2 + I3 * w[2] ** 2, (I2 * w[1]) ** 2 + (I3 * w[2]) ** 2
    m = (I2 - I1) * (energy2 * I3 - momentum2) / ((I3 - I2) * (momentum2 - energy2 * I1))
    half = 2 * ellipk(m) / math.sqrt((I3 - I2) * (momentum2 - energy2 * I1) / (I1 * I2 * I3))
    result = run("tennis_racket")
    t, wy = result.t, result.v[:, 1]
    k = np.nonzero(wy[:-1] * wy[1:] < 0)[0]
    flips = t[k] - wy[k] * (t[k + 1] - t[k]) / (wy[k + 1] - wy[k])
    np.testing.assert_allclose(flips, half * (0.5 + np.arange(len(flips))), atol=1e-4)
    assert len(flips) == 13
    h = ld.momentum(result.model, result.q, result.v)
    assert np.abs(h - h[0]).max() < 1e-10


def test_hexarotor_flies_its_circle():
    result = run("hexarotor_circle")
    np.testing.assert_allclose(np.hypot(result.q[:, 0], result.q[:, 1]), 1, atol=1e-9)
    np.testing.assert_allclose(result.q[-1, :3], [1, 0, 2], atol=1e-3)
    cruise = (result.t > 2) & (result.t < 3.9)
    assert result.tau[cruise, 4].mean() == pytest.approx(4 * 0.9**2, rel=0.1)   # m v^2 / r on the whole


def test_hexarotor_turns_by_its_propellers():
    result = run("hexarotor_hover")
    R = rotations(result.q[:, 3:7])
    assert turned(R[:, 1, 0], R[:, 0, 0]) == pytest.approx(math.pi / 2, abs=0.1)
    before = result.t < 2.2
    assert R[before, 2, 2].min() > math.cos(math.radians(3)) and np.ptp(result.q[before, 2]) < 0.02


def test_ur5_carries_its_own_weight_along_the_path():
    result = run("ur5_track")
    assert result.prescribed.all()
    gravity = ld.gravity_force(result.model, result.q)
    pushed = (result.t > 2.45) & (result.t < 5.55)
    assert np.abs(result.tau - gravity)[~pushed].max() < 0.25 * np.abs(gravity).max()


def test_showcase_prescribes_drives_and_leaves_alone():
    result = run("showcase")
    assert 0 < result.prescribed.sum() < result.model.nv
    assert set(result.forced_links) == {"balloon", "bob", "lamp"}


def test_hopper_bounces_and_falls_freely_between():
    """Three touches; in flight its centre of mass has the acceleration of gravity; each apex is lower than the one before."""
    result = run("hopper")
    model, touching = result.model, result.contacts.force[:, 0] > 0
    assert np.count_nonzero(np.diff(touching.astype(int)) == 1) == 3
    apex = [result.q[~touching & part, 2].max() for part in (result.t < 0.3, (result.t > 0.3) & (result.t < 0.8), result.t > 0.9)]
    assert 0.9 == apex[0] > apex[1] > apex[2] > 0.7
    flying = np.flatnonzero(~touching)[::20]
    for k in flying:
        rate = ld.inverse_dynamics(model, result.q[k], result.v[k], result.a[k], passive=False)[3:6]      # no force acts
        assert np.abs(rate).max() < 1e-9


def test_quadruped_trots_over_a_metre_without_falling():
    """Diagonal feet touch and lift in turn with each other, 3.2 times a second; the body stays level, in line, and up."""
    result = run("quadruped_walks")
    assert result.q[-1, 0] > 1.0 and abs(result.q[-1, 1]) < 0.05
    assert rotations(result.q[:, 3:7])[:, 2, 2].min() > 0.99 and result.q[:, 2].min() > 0.27
    assert "knee" not in {event.name for event in result.events}
    for leg in ("FL", "HR"):
        words = [event.name.split()[1] for event in result.events if event.name.startswith(leg)]
        assert len(words) > 12 and all(one != next_one for one, next_one in pairwise(words))
        touches = np.array([event.t for event in result.events if event.name == f"{leg} touches" and event.t > 1.0])
        assert np.diff(touches) == pytest.approx(np.full(len(touches) - 1, 2 * math.pi / 20), rel=0.05)


def test_humanoid_falls_and_comes_to_rest():
    result = run("humanoid_falls")
    assert result.kinetic.max() > 200 and result.kinetic[-1] < 1e-3
    touching = {name for name, force in zip(result.contacts.names, result.contacts.force[-1], strict=True) if force > 5}
    assert {"left_shank", "right_shank", "left_forearm", "right_forearm"} <= touching
    weight = 9.81 * sum(link.mass for link in result.model.description.links)
    assert result.contacts.force[-1].sum() == pytest.approx(weight, rel=1e-2)
