"""The mechanisms of robots/ against closed forms and published answers: positions, accelerations, forces. Their runs in time are
in tests/scenarios/test_mechanism_runs.py."""
from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
import mechanisms as known
from bridge import relative

ROBOTS = Path(__file__).parents[2] / "robots"

# degrees of freedom and rows, as mechanism theory counts them: rows that follow from others are not counted twice
DEGREES = {
    "four_bar": (1, 5), "slider_crank": (1, 5), "five_bar": (2, 5), "five_bar_redundant": (2, 5), "n_four_bar": (1, 10),
    "bricard": (1, 5), "bennett": (1, 5), "andrews": (1, 15), "delta": (3, 18), "stewart": (6, 18), "rolling_disc": (3, 3),
    "hand": (10, 6), "gripper": (1, 11), "toggle_clamp": (1, 5), "jansen_leg": (1, 15),
}


@cache
def model(name: str):
    return ld.load(ROBOTS / f"{name}.{'urdf' if name == 'gripper' else 'yaml'}")


def configuration(name: str, **places) -> np.ndarray:
    q = model(name).neutral().copy()
    for joint, value in places.items():
        q[model(name).q_index(joint)] = value
    return q


def velocity(name: str, **rates) -> np.ndarray:
    v = np.zeros(model(name).nv)
    for joint, value in rates.items():
        v[model(name).v_index(joint)] = value
    return v


def closed(name: str, q) -> np.ndarray:
    assert np.abs(ld.constraint_residual(model(name), q)).max() < 2e-13, name
    return q


def four_bar_states(crank, rate, acceleration):
    """Return q, v, a of robots/four_bar.yaml in its tree: crank, knee (relative), rocker."""
    one, two, three = known.four_bar(0.2, 0.1, 0.25, 0.25, crank, rate, acceleration, sign=-1)
    return [np.stack([one_, two_ - one_, three_], -1)
            for one_, two_, three_ in zip(*((x.q, x.v, x.a) for x in (one, two, three)), strict=True)]


def slider_crank_states(crank, rate, acceleration):
    one, two, block = known.slider_crank(crank, rate, acceleration)
    return [np.stack([one_, two_ - one_, x], -1)
            for one_, two_, x in zip((one.q, one.v, one.a), (two.q, two.v, two.a), block, strict=True)]


def example(name: str) -> np.ndarray:
    """Return a closed configuration of a robot, away from singular ones."""
    angles = dict(zip(known.ANDREWS, known.ANDREWS_START, strict=True))
    arm = known.delta_arm(0, np.array([0, 0, -0.75]))
    guesses = {
        "four_bar": lambda: four_bar_states(0.7, 1, 0)[0], "slider_crank": lambda: slider_crank_states(0.7, 1, 0)[0],
        **dict.fromkeys(("five_bar", "five_bar_redundant"),
                        lambda: configuration("five_bar", left=-1.9, left_elbow=1.3, right=-0.8, right_elbow=-1.5)),
        "n_four_bar": lambda: configuration("n_four_bar", A0=0.4, B0=-0.4, B1=0.4, C1=-0.4, B2=0.4),
        "bricard": lambda: known.bricard_angles(1.1), "bennett": lambda: known.bennett_angles(4.0),
        "andrews": lambda: configuration("andrews", **angles),
        "delta": lambda: configuration("delta", platform=[0, 0, -0.75, 0, 0, 0, 1], **{f"motor_{k}": arm for k in (1, 2, 3)},
                                       **{f"elbow_{k}{side}": [0.3, 0] for k in (1, 2, 3) for side in "lr"}),
        "stewart": lambda: configuration("stewart", platform=[0, 0, 0.6, 0, 0, 0, 1], foot_1=[0.2, -0.37], foot_2=[-0.2, -0.37],
                                         foot_3=[0.24, 0.34], foot_4=[0.41, 0.02], foot_5=[-0.41, 0.02], foot_6=[-0.24, 0.34],
                                         **{f"leg_{k}": 0.655 for k in range(1, 7)}),
        "rolling_disc": lambda: disc_state(1.1, 0.3, 2.0, -8.0)[0],
        "hand": lambda: configuration("hand", thumb_ip=0.1),
        "gripper": lambda: configuration("gripper", left_crank=-0.5, left_pad=0.5, left_bar=-0.5, right_crank=-0.5, right_pad=0.5,
                                         right_bar=-0.5),
        "jansen_leg": lambda: configuration("jansen_leg", crank=0.4, upper=2.1, lower=-2.6, plate=1.3, rocker=-1.2, hanger=2.4,
                                            shank=-2.4),
        "toggle_clamp": lambda: configuration("toggle_clamp", crank=0.6, knee=-1.2, ram=0.2 * (1 - np.cos(0.6))),
    }
    return ld.project_configuration(model(name), guesses[name]())


# every mechanism -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEGREES)
def test_has_the_degrees_of_freedom_of_the_books(name):
    degrees, rows = DEGREES[name]
    q = closed(name, example(name))
    J = ld.constraint_jacobian(model(name), q)
    assert len(J) == model(name).nc == rows
    assert model(name).nv - np.linalg.matrix_rank(J, tol=1e-9) == degrees
    motion = ld.constrained_forward_dynamics(model(name), q, np.zeros(model(name).nv), np.zeros(model(name).nv))
    assert motion.independent.sum() == model(name).nv - degrees


def test_every_mechanism_of_robots_is_in_the_table():
    """Closures are in test_closures, cams in dynamics/test_nonlinear_couplings."""
    names = {path.stem for path in ROBOTS.glob("*.*") if not path.name.endswith(".loops.yaml")}
    assert {name for name in names if name not in DEGREES and model_has_constraints(name)} == {"closures", "cam_valve"}


def model_has_constraints(name: str) -> bool:
    path = ROBOTS / f"{name}.yaml"
    return "\nloops:" in (text := path.read_text() if path.exists() else "") or "\ncouplings:" in text


# four-bar and slider-crank: closed forms ---------------------------------------------------------------------------------

CRANKS = np.random.default_rng(4).uniform([-7, -6, -40], [7, 6, 40], (12, 3)).T       # angle, rate, acceleration
DRIVEN = np.array([True, False, False])                                              # the crank, of three joints


@pytest.mark.parametrize("name, states", [("four_bar", four_bar_states), ("slider_crank", slider_crank_states)])
def test_crank_mechanism_follows_its_closed_form(name, states, worst):
    """The crank is prescribed. Position, velocity and acceleration of the others agree, for one state and a batch."""
    q, v, a = states(*CRANKS)
    closed(name, q)
    assert np.abs(ld.constraint_velocity(model(name), q, v)).max() < 1e-14 * np.abs(v).max()
    moved = ld.project_velocity(model(name), q, np.where(DRIVEN, v, 0), prescribed=DRIVEN)
    assert worst(f"{name}: velocity", relative(moved, v)) < 1e-13
    found = ld.constrained_hybrid_dynamics(model(name), q, v, np.where(DRIVEN, a, np.nan), np.zeros_like(a), DRIVEN)
    assert worst(f"{name}: acceleration", relative(found.a, a)) < 1e-13
    single = [ld.constrained_hybrid_dynamics(model(name), *row, np.zeros(3), DRIVEN) for row in zip(q, v, a, strict=True)]
    assert relative([row.a for row in single], a) < 1e-13


def test_torque_of_the_slider_crank_is_the_rate_of_its_energy(worst):
    q, v, a = slider_crank_states(*CRANKS)
    found = ld.constrained_hybrid_dynamics(model("slider_crank"), q, v, a, np.zeros_like(a), DRIVEN).tau[:, 0]
    assert worst("slider-crank: torque of the crank", relative(found, known.slider_crank_torque(*CRANKS))) < 1e-13


def test_torque_of_the_four_bar_is_the_rate_of_its_energy(worst):
    q, v, a = four_bar_states(*CRANKS)
    one, two, three = known.four_bar(0.2, 0.1, 0.25, 0.25, *CRANKS, sign=-1)
    tau, section = 0, 7850 * 0.005 * 0.02
    for start, length, bar in ((0, 0.1, one), (one.point(0.1), 0.5, two), (0, 0.25, three)):
        mass = section * length
        tau = tau + known.power(mass, mass * (length**2 + 0.02**2) / 12, start + bar.point(length / 2), bar, known.G) / one.v
    found = ld.constrained_hybrid_dynamics(model("four_bar"), q, v, a, np.zeros_like(a), DRIVEN).tau[:, 0]
    assert worst("four-bar: torque of the crank", relative(found, tau)) < 1e-13


def test_foot_of_jansens_leg_is_that_of_his_lengths(worst):
    """Pin by pin from two lengths each; the foot is nearly straight on the ground for 45 % of a turn."""
    leg, angles = model("jansen_leg"), np.linspace(0.4, 0.4 + 2 * np.pi, 61)
    sweep = ld.kinematic_sweep(leg, "crank", angles, closed("jansen_leg", example("jansen_leg")))
    foot, expected = ld.link_pose(leg, sweep.q, "foot")[:, :3, 3], known.jansen_foot(angles)
    error = np.abs(foot[:, 0] + 1j * (foot[:, 2] - 1.0) - expected).max()
    assert worst("foot of Jansen's leg over a turn [m]", float(error)) < 1e-13
    low = known.jansen_foot(np.linspace(0, 2 * np.pi, 1000))
    ground = low[low.imag < low.imag.min() + 0.012]
    assert 0.44 < len(ground) / 1000 < 0.46 and 0.58 < np.ptp(ground.real) < 0.6 and 0.22 < np.ptp(low.imag) < 0.23


def test_torque_of_the_toggle_clamp_is_that_of_lagranges_equation(worst):
    """By hand, of the crank's angle alone: bars, ram, the pad that only presses, the return spring and the one-sided damper."""
    angle, rate, acceleration = np.random.default_rng(6).uniform([-0.06, -5, -40], [1.4, 5, 40], (40, 3)).T
    angle[:10] *= 0.1                                                        # where the pad is pressed
    s, c, L, M = np.sin(angle), np.cos(angle), 0.1, 7850 * np.pi * 0.012**2 * 0.05
    bar = 7850 * 0.02 * 0.01 * 0.1
    inertia = bar * (0.02**2 + 0.1**2) / 12
    A = 2 * inertia + bar * L**2 / 4 + bar * (L**2 / 4 * c**2 + 2.25 * L**2 * s**2) + M * 4 * L**2 * s**2
    dA = bar * (2.25 - 0.25) * L**2 * 2 * s * c + M * 8 * L**2 * s * c
    weight = known.G * s * L * (0.5 * bar + 1.5 * bar + 2 * M)
    pressed = np.maximum(0.03 - (0.25 - 2 * L * c - 0.025), 0.0)
    pad = -2e4 * pressed * 2 * L * s                                         # the potential rises as the pad is compressed
    x, z = -0.09 * s + 0.2, 0.05 - 0.09 * c                                  # from the frame to the crank
    length = np.hypot(x, z)
    slope = (-0.09 * c * x + 0.09 * s * z) / length
    damping = np.where(slope * rate > 0, 10.0, 2.0)
    tau = A * acceleration + 0.5 * dA * rate**2 + weight + pad + (60 * (length - 0.1) + damping * slope * rate) * slope
    knee, ram = -2 * angle, 2 * L * (1 - c)
    q = np.stack([angle, knee, ram], -1)
    v = np.stack([rate, -2 * rate, 2 * L * s * rate], -1)
    a = np.stack([acceleration, -2 * acceleration, 2 * L * (s * acceleration + c * rate**2)], -1)
    closed("toggle_clamp", q)
    found = ld.constrained_hybrid_dynamics(model("toggle_clamp"), q, v, np.where(DRIVEN, a, np.nan), np.zeros_like(a), DRIVEN)
    assert (pressed > 0).sum() > 5 and relative(found.a, a) < 1e-12
    assert worst("toggle clamp: torque of the crank", relative(found.tau[:, 0], tau)) < 1e-12


def test_foot_of_chebyshevs_linkage_goes_straight():
    """During half a turn of the crank, it is within 0.0098 crank lengths of a line, over four of them."""
    q, _, _ = four_bar_states(np.linspace(np.pi / 2, 3 * np.pi / 2, 91), np.ones(91), np.zeros(91))
    foot = ld.link_pose(model("four_bar"), q, "foot")[:, :3, 3]
    assert np.ptp(foot[:, 0]) == pytest.approx(0.4, abs=1e-12)
    assert 0.00097 < np.ptp(foot[:, 2]) < 0.00098


# Andrews' squeezer mechanism -------------------------------------------------------------------------------------------


def andrews_torque(q) -> np.ndarray:
    tau, found = np.zeros(7), model("andrews")
    tau[found.v_index("beta")] = 0.033
    tau[found.v_index("gamma")] = known.andrews_spring(q[found.q_index("gamma")][0])
    return tau


def andrews_order() -> list[int]:
    return [model("andrews").v_index(name).start for name in known.ANDREWS]


def test_andrews_starts_with_the_published_accelerations():
    q = closed("andrews", configuration("andrews", **dict(zip(known.ANDREWS, known.ANDREWS_START, strict=True))))
    a = ld.constrained_forward_dynamics(model("andrews"), q, np.zeros(7), andrews_torque(q)).a[andrews_order()]
    assert relative(a, known.ANDREWS_START_A) < 1e-13


def test_andrews_ends_with_the_published_accelerations_and_forces():
    """At the published end state, whose ten correct digits the accelerations amplify; forces of the pins, in the world."""
    q = configuration("andrews", **dict(zip(known.ANDREWS, known.ANDREWS_END, strict=True)))
    v = velocity("andrews", **dict(zip(known.ANDREWS, known.ANDREWS_END_V, strict=True)))
    motion = ld.constrained_forward_dynamics(model("andrews"), q, v, andrews_torque(q))
    assert relative(motion.a[andrews_order()], known.ANDREWS_END_A) < 1e-6
    forces = [ld.link_pose(model("andrews"), q, link)[:3, :3] @ motion.multipliers[5 * k + 2:5 * k + 5]
              for k, link in enumerate(("K3", "K4", "K6"))]
    # published: of K2 - K3 etc. in M a = f - G^T lambda; ours: of K3 - K2 in M a = f + A^T lambda
    assert relative(np.array(forces)[:, :2], known.ANDREWS_END_FORCES) < 1e-6


def test_andrews_reaches_the_published_state():
    """SciPy integrates constrained accelerations to the Test Set's solution at t = 0.03 s, without projections."""
    from scipy.integrate import solve_ivp
    found, order = model("andrews"), andrews_order()
    q = configuration("andrews", **dict(zip(known.ANDREWS, known.ANDREWS_START, strict=True)))

    def rates(t, y):
        return np.r_[y[7:], ld.constrained_forward_dynamics(found, y[:7], y[7:], andrews_torque(y[:7])).a]

    end = solve_ivp(rates, (0, 0.03), np.r_[q, np.zeros(7)], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    assert np.abs(end[:7][order] - known.ANDREWS_END).max() < 3e-9               # our own equations, integrated alike, differ by
    assert relative(end[7:][order], known.ANDREWS_END_V) < 1e-9                  # as much: 1.4e-9 and 3.8e-10
    assert np.abs(ld.constraint_residual(found, end[:7])).max() < 1e-9           # 35 mm bars


# overconstrained linkages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, angles, bars, gravity", [
    ("bennett", known.bennett_angles, known.bennett_bars, (0, 0, -known.G)),
    ("bricard", known.bricard_angles, known.bricard_bars, (0, -known.G, 0))])
def test_overconstrained_linkage_moves_as_its_closed_form(name, angles, bars, gravity, worst):
    """Accelerations of the closed form, by differences of sixth order of the angles along their curve."""
    cycle, rng, h = known.Cycle(bars, gravity), np.random.default_rng(6), 0.01
    states = rng.uniform([0, -3], [2 * np.pi, 3], (16, 2))
    first = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
    second = np.array([2, -27, 270, -490, 270, -27, 2]) / 180
    q, v, a = [], [], []
    for s, ds in states:
        around = np.array([angles(s + k * h) for k in range(-3, 4)])
        d, dd = first @ around / h, second @ around / h**2
        q, v, a = [*q, angles(s)], [*v, d * ds], [*a, dd * ds**2 + d * cycle.acceleration(s, ds)]
    closed(name, np.array(q))
    motion = ld.constrained_forward_dynamics(model(name), np.array(q), np.array(v), np.zeros_like(v))
    assert worst(f"{name}: acceleration", relative(motion.a, a)) < 1e-8          # of the differences
    assert (motion.independent.sum(-1) == model(name).nv - 1).all()
    T, V = ld.energy(model(name), np.array(q), np.array(v))
    assert relative(T, [cycle.J_V(s)[0] * ds**2 / 2 for s, ds in states]) < 1e-9
    assert relative(V - V[0], [cycle.J_V(s)[2] - cycle.J_V(states[0, 0])[2] for s, _ in states]) < 1e-12


def test_n_four_bar_falls_as_one_pendulum():
    """(1 + 2) theta'' = 3.5 g sin(theta) for two windows: 3 uprights of 1/3 kg m^2, 2 beams of 1 kg m^2."""
    theta, rate = np.random.default_rng(2).uniform(-1.4, 1.4, (2, 10))
    way = np.array([1, -1, 1, -1, 1.0])
    q, v = closed("n_four_bar", theta[:, None] * way), rate[:, None] * way
    a = ld.constrained_forward_dynamics(model("n_four_bar"), q, v, np.zeros_like(v)).a
    assert relative(a, 3.5 / 3 * known.G * np.sin(theta)[:, None] * way) < 1e-12


# rolling disc ----------------------------------------------------------------------------------------------------------


def disc_state(tilt, dtilt, turning, spin) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity from Routh's figures: z of the disc points uphill, its x is minus the horizontal tangent."""
    from scipy.spatial.transform import Rotation
    r = 0.1
    R = Rotation.from_euler("x", np.pi / 2 - tilt)
    return (np.r_[0, 0, r * np.sin(tilt), R.as_quat()],
            np.array([-dtilt, spin, turning * np.sin(tilt), r * spin, r * dtilt, 0]))


def test_rolling_disc_obeys_rouths_equations(worst):
    rng = np.random.default_rng(8)
    figures = np.column_stack([rng.uniform(0.3, 2.8, 12), rng.uniform([-2, -5, -15], [2, 5, 15], (12, 3))])
    q, v = (np.array(x) for x in zip(*(disc_state(*row) for row in figures), strict=True))
    found = model("rolling_disc")
    assert np.abs(ld.constraint_residual(found, q)).max() < 1e-16
    assert np.abs(ld.constraint_velocity(found, q, v)).max() < 1e-14
    a = ld.constrained_forward_dynamics(found, q, v, np.zeros((12, 6))).a
    for (tilt, dtilt, turning, spin), rates in zip(figures, a, strict=True):
        ddtilt, dturning, dspin = known.rolling_disc_rates(1.0, 0.1, (tilt, dtilt, turning, spin))[1:]
        # body components: the frame of the tangent turns in the disc by the rate -relative about the axle
        relative_spin = spin - turning * np.cos(tilt)
        uphill = turning * np.sin(tilt)
        duphill = dturning * np.sin(tilt) + turning * np.cos(tilt) * dtilt
        expected = [-ddtilt - relative_spin * uphill, dspin, duphill - relative_spin * dtilt]
        assert worst("rolling disc: angular acceleration", relative(rates[:3], expected)) < 1e-12


# parallel robots -------------------------------------------------------------------------------------------------------


def test_delta_closes_where_its_inverse_kinematics_says():
    rng, found = np.random.default_rng(11), model("delta")
    for place in rng.uniform([-0.2, -0.2, -0.9], [0.2, 0.2, -0.7], (6, 3)):
        q = example("delta")
        q[:3] = place
        arms = [known.delta_arm(2 * np.pi * k / 3, place) for k in range(3)]
        for k, angle in enumerate(arms):
            q[found.q_index(f"motor_{k + 1}")] = angle
        kept = np.zeros(found.nv, bool)
        kept[[found.v_index(f"motor_{k}").start for k in (1, 2, 3)]] = True
        q = closed("delta", ld.project_configuration(found, q, prescribed=kept))
        np.testing.assert_allclose(q[:7], [*place, 0, 0, 0, 1], atol=1e-9)       # and the platform does not turn
        np.testing.assert_allclose([q[found.q_index(f"motor_{k + 1}")][0] for k in range(3)], arms, atol=1e-15)


def test_legs_of_the_stewart_platform_have_the_lengths_of_the_closed_form():
    rng, found = np.random.default_rng(12), model("stewart")
    for w in rng.uniform(-0.2, 0.2, (6, 3)):
        place = [0.05, -0.03, 0.65] + 0.2 * w
        q = example("stewart")
        q[:7] = ld.integrate(found, q, np.r_[w, 0, 0, 0, np.zeros(18)])[:7]
        q[:3] = place
        kept = np.arange(found.nv) < 6
        q = closed("stewart", ld.project_configuration(found, q, prescribed=kept))
        lengths = known.stewart_legs(place, ld.link_pose(found, q, "platform")[:3, :3])
        found_lengths = [q[found.q_index(f"leg_{k + 1}")][0] for k in range(6)]
        np.testing.assert_allclose(found_lengths, lengths, atol=1e-6)            # coordinates are rounded to a micrometre


@pytest.mark.parametrize("name, motors", [("stewart", [f"leg_{k}" for k in range(1, 7)]),
                                          ("delta", [f"motor_{k}" for k in (1, 2, 3)])])
def test_motors_at_rest_give_the_power_of_the_weight(name, motors, worst):
    """Virtual power: for each motion of the platform, the forces of the motors balance the weight of the mechanism."""
    found, q = model(name), closed(name, example(name))
    columns = [found.v_index(motor).start for motor in motors]
    prescribed = np.isin(np.arange(found.nv), columns)
    rest = np.zeros(found.nv)
    motion = ld.constrained_hybrid_dynamics(found, q, rest, rest, rest, prescribed)
    assert np.abs(motion.a).max() < 1e-10 and np.abs(motion.tau[~prescribed]).max() == 0
    for column in columns:
        v = ld.project_velocity(found, q, np.eye(found.nv)[column], prescribed=prescribed)
        assert worst(f"{name}: weight", abs(motion.tau @ v - ld.gravity_force(found, q) @ v)) < 1e-9
