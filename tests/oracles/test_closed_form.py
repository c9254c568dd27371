"""Machines whose equations of motion stand in books, written out here."""
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from bridge import relative
from liedyn.model.description import WORLD, Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose
from matrices import adjoint, bracket, exp, inertia, inverse, pose, quaternion
from zoo import floats, random_link

G = 9.81
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
RNG = np.random.default_rng(0)
STATES = RNG.uniform(-2, 2, (9, 3, 2))                   # q, v, a of two coordinates


def body(name, mass, com, inertia_):
    """inertia_: three principal ones about the centre of mass."""
    return Link(name, mass, floats(com), (inertia_[0], 0.0, 0.0, inertia_[1], 0.0, inertia_[2]))


def holds(model, equation, states, tolerance=1e-13):
    """equation(q, v, a) -> tau: inverse dynamics and forward dynamics, one state and a batch."""
    q, v, a = states.swapaxes(0, 1)
    tau = np.array([equation(*row) for row in states])
    assert relative(ld.inverse_dynamics(model, q, v, a), tau) < tolerance
    assert relative([ld.inverse_dynamics(model, *row) for row in states], tau) < tolerance
    assert relative(ld.forward_dynamics(model, q, v, tau), a) < 1e3 * tolerance
    assert relative([ld.forward_dynamics(model, *row) for row in zip(q, v, tau, strict=True)], a) < 1e3 * tolerance


def test_pendulum():
    """(I + m l^2) a + m g l sin q, about y, hanging at q = 0; the pull of its joint."""
    m, l, I = 1.3, 0.4, 0.05
    rod, pin = body("rod", m, (0, 0, -l), (I, I, 0.001)), Joint("pin", "revolute", WORLD, "rod", axes=(Y,))
    model = ld.build(Robot("pendulum", (rod,), (pin,)))
    holds(model, lambda q, v, a: (I + m * l**2) * a + m * G * l * np.sin(q), STATES[..., :1])
    q, v, a = STATES[0, :, :1]
    s, c = np.sin(q[0]), np.cos(q[0])
    outward = m * (l * v[0]**2 + G * c)                                    # tension along the rod, towards the pin
    across = m * (l * a[0] + G * s)
    # in the rod's frame: z from the centre of mass to the pin, positive a moves the centre along -x
    np.testing.assert_allclose(ld.joint_wrenches(model, q, v, a)[0, 3:], [-across, 0, outward], atol=1e-14)
    np.testing.assert_allclose(ld.energy(model, q, v), ((I + m * l**2) * v[0]**2 / 2, -m * G * l * c))


def test_double_pendulum():
    m1, m2, l1, c1, c2, I1, I2 = 1.1, 0.7, 0.5, 0.3, 0.25, 0.02, 0.01
    links = (body("upper", m1, (0, 0, -c1), (I1, I1, 0.001)), body("lower", m2, (0, 0, -c2), (I2, I2, 0.001)))
    joints = (Joint("shoulder", "revolute", WORLD, "upper", axes=(Y,)),
              Joint("elbow", "revolute", "upper", "lower", Pose(translation=(0.0, 0.0, -l1)), axes=(Y,)))

    def equation(q, v, a):
        c, s = np.cos(q[1]), np.sin(q[1])
        m11 = I1 + I2 + m1 * c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * c)
        m12 = I2 + m2 * (c2**2 + l1 * c2 * c)
        m22 = I2 + m2 * c2**2
        h = -m2 * l1 * c2 * s
        lower = m2 * G * c2 * np.sin(q[0] + q[1])
        upper = (m1 * c1 + m2 * l1) * G * np.sin(q[0])
        return np.array([m11 * a[0] + m12 * a[1] + h * (2 * v[0] * v[1] + v[1]**2) + upper + lower,
                         m12 * a[0] + m22 * a[1] - h * v[0]**2 + lower])

    holds(ld.build(Robot("double", links, joints)), equation, STATES)


def test_two_revolute_arm_of_park_bobrow_and_ploen():
    """PBP (60)-(64) for any two axes in space. The printed entries hold products of velocities (sum the rows), and (63) lacks
    its minus. With B = Ad_exp(-A2 x2) A1 and B' = Ad_exp(-A2 x2) [A1, A2]:
    tau = M ddx + (2 <B', B> dx1 dx2 + <B', A2> dx2^2, -<B', B> dx1^2).
    Checks: PBP (60)-(64)."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        w, p = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
        w /= np.linalg.norm(w, axis=1)[:, None]
        first, second = random_link(rng, "first"), random_link(rng, "second")
        origins = [Pose(translation=floats(p[0])), Pose(translation=floats(p[1] - p[0]))]
        joints = (Joint("one", "revolute", WORLD, "first", origins[0], axes=(floats(w[0]),)),
                  Joint("two", "revolute", "first", "second", origins[1], axes=(floats(w[1]),)))
        model = ld.build(Robot("2R", (first, second), joints, gravity=(0.0, 0.0, 0.0)))
        A1, A2 = (np.r_[w[k], np.cross(p[k], w[k])] for k in (0, 1))                     # screws at home, world frame
        I1, I2 = (inertia(link.mass, p[k] + link.com, link.inertia) for k, link in enumerate((first, second)))

        def equation(x, dx, ddx, A1=A1, A2=A2, I1=I1, I2=I2):
            back = adjoint(exp(-A2 * x[1]))
            B, dB = back @ A1, back @ bracket(A1) @ A2
            M = np.array([[A1 @ I1 @ A1 + B @ I2 @ B, B @ I2 @ A2], [B @ I2 @ A2, A2 @ I2 @ A2]])
            return M @ ddx + [2 * dB @ I2 @ B * dx[0] * dx[1] + dB @ I2 @ A2 * dx[1]**2, -dB @ I2 @ B * dx[0]**2]

        holds(model, equation, STATES, 1e-12)


def test_free_rigid_body_obeys_eulers_equations():
    """I dw + w x I w = m about the centre of mass; m (dv + w x v) = f, in the body frame."""
    m, I = 2.0, np.array([0.3, 0.5, 0.7])
    model = ld.build(Robot("body", (body("body", m, (0, 0, 0), I),), (), base="floating"))
    q = ld.random_configuration(model, RNG, 9)
    v, wrench = RNG.standard_normal((2, 9, 6))
    R = Rotation.from_quat(q[:, 3:])
    w, u, moment, force = v[:, :3], v[:, 3:], wrench[:, :3], wrench[:, 3:]
    gravity = R.inv().apply([0, 0, -G])
    a = np.hstack([(moment - np.cross(w, I * w)) / I, force / m + gravity - np.cross(w, u)])
    np.testing.assert_allclose(ld.forward_dynamics(model, q, v, wrench), a, atol=1e-13)
    np.testing.assert_allclose([ld.forward_dynamics(model, *row) for row in zip(q, v, wrench, strict=True)], a, atol=1e-13)
    np.testing.assert_allclose(ld.forward_dynamics(model, q, v, 0 * wrench, f_ext={"body": wrench}), a, atol=1e-13)
    np.testing.assert_allclose(ld.energy(model, q, v)[0], (w**2 @ I + m * (u**2).sum(1)) / 2, rtol=1e-14)
    spin = R.apply(I * w) + np.cross(q[:, :3], m * R.apply(u))
    np.testing.assert_allclose(ld.momentum(model, q, v), np.hstack([spin, m * R.apply(u)]), atol=1e-13)


def test_cart_and_pole():
    M, m, l, I = 2.0, 0.5, 0.6, 0.03
    links = (body("cart", M, (0, 0, 0), (1.0, 1.0, 1.0)), body("pole", m, (0, 0, l), (I, I, 0.001)))
    joints = (Joint("rail", "prismatic", WORLD, "cart", axes=(X,)), Joint("pin", "continuous", "cart", "pole", axes=(Y,)))

    def equation(q, v, a):
        c, s = np.cos(q[1]), np.sin(q[1])
        return np.array([(M + m) * a[0] + m * l * c * a[1] - m * l * s * v[1]**2,
                         m * l * c * a[0] + (I + m * l**2) * a[1] - m * G * l * s])

    holds(ld.build(Robot("cart-pole", links, joints)), equation, STATES)


def test_a_nut_on_a_screw():
    """Helical joint of pitch h along z: (I + m h^2) a + m g h = tau; hybrid: what holds it at a given acceleration."""
    m, I, h = 0.8, 0.002, 0.03
    nut = (Joint("thread", "helical", WORLD, "nut", axes=(Z,), pitch=h),)
    model = ld.build(Robot("nut", (body("nut", m, (0, 0, 0.1), (0.1, 0.1, I)),), nut))
    holds(model, lambda q, v, a: (I + m * h**2) * a + m * G * h, STATES[..., :1])
    np.testing.assert_allclose(ld.forward_dynamics(model, [0.3], [1.0], [0.0]), [-m * G * h / (I + m * h**2)])
    np.testing.assert_allclose(ld.link_pose(model, [np.pi], "nut"), pose(np.diag([-1, -1, 1]), [0, 0, h * np.pi]), atol=1e-15)
    wedge = np.array([0, 0, m * G * I / (I + m * h**2)])      # the thread carries less than the weight, the nut gives way
    np.testing.assert_allclose(ld.joint_wrenches(model, [0.3], [0.0], [-m * G * h / (I + m * h**2)])[0, 3:], wedge, atol=1e-14)


TOP = {"m": 1.5, "l": 0.3, "I": (0.2, 0.2, 0.08)}           # I about the tip: transverse, axial


def top(joint: dict):
    m, l, (I1, _, I3) = TOP["m"], TOP["l"], TOP["I"]
    return ld.build(Robot("top", (body("top", m, (0, 0, l), (I1 - m * l**2, I1 - m * l**2, I3)),),
                          (Joint("tip", parent=WORLD, child="top", **joint),)))


@pytest.mark.parametrize("nutation", [0.3, 1.0, 1.5, 2.5])
def test_steady_precession_of_a_spinning_top(nutation):
    """I1 P^2 cos n - I3 w3 P + m g l = 0 has two precession rates P: the nutation then stays. In Euler angles and as a ball."""
    m, l, (I1, _, I3) = TOP["m"], TOP["l"], TOP["I"]
    w3 = 25.0
    for rate in np.roots([I1 * np.cos(nutation), -I3 * w3, m * G * l]):
        spin = w3 - rate * np.cos(nutation)
        q, v = np.array([0.4, nutation, -0.9]), np.array([rate, 0.0, spin])
        euler = top({"type": "euler", "sequence": "zxz"})
        np.testing.assert_allclose(ld.forward_dynamics(euler, q, v, np.zeros(3)), 0, atol=1e-11 * rate**2 + 1e-10)
        ball = top({"type": "ball"})
        R = Rotation.from_euler("ZXZ", q)
        w = R.inv().apply([0, 0, rate]) + np.array([0, 0, spin])             # body frame …
        dw = -np.cross([0, 0, spin], w)                                      # … in which it turns back with the spin
        ours = ld.forward_dynamics(ball, R.as_quat(), w, np.zeros(3))
        np.testing.assert_allclose(ours, dw, atol=1e-10 * abs(dw).max() + 1e-11)


def test_top_in_euler_angles_obeys_lagrange():
    """L = I1 (t'^2 + p'^2 sin^2 t)/2 + I3 (s' + p' cos t)^2/2 - m g l cos t, in precession p, nutation t, spin s."""
    m, l, (I1, _, I3) = TOP["m"], TOP["l"], TOP["I"]

    def equation(q, v, a):
        c, s = np.cos(q[1]), np.sin(q[1])
        w3, dw3 = v[2] + v[0] * c, a[2] + a[0] * c - v[0] * v[1] * s
        return np.array([I1 * (a[0] * s**2 + 2 * v[0] * v[1] * s * c) + I3 * (dw3 * c - w3 * v[1] * s),
                         I1 * (a[1] - v[0]**2 * s * c) + I3 * w3 * v[0] * s - m * G * l * s,
                         I3 * dw3])

    states = np.random.default_rng(4).uniform(0.3, 2.5, (9, 3, 3))
    holds(top({"type": "euler", "sequence": "zxz"}), equation, states)


def test_spring_damper_and_rotor():
    """m a + J a + d v + k (x - x0) + m g = tau."""
    coordinate = Coordinate(damping=0.7, stiffness=30.0, rest=0.2, armature=0.4)
    model = ld.build(Robot("mass", (body("mass", 2.0, (0, 0, 0), (1.0, 1.0, 1.0)),),
                           (Joint("rail", "prismatic", WORLD, "mass", axes=(Z,), coordinates=(coordinate,)),)))
    holds(model, lambda q, v, a: 2.4 * a + 0.7 * v + 30 * (q - 0.2) + 2 * G, STATES[..., :1])
    np.testing.assert_allclose(ld.energy(model, [0.5], [2.0]), (0.5 * 2.4 * 4, 2 * G * 0.5 + 0.5 * 30 * 0.3**2))
    np.testing.assert_allclose(ld.mass_matrix(model, [0.5]), [[2.4]])


def test_masses_on_a_turntable_feel_centrifugal_and_coriolis_forces():
    """Polar coordinates: r^2 m p'' + 2 m r r' p' and m r'' - m r p'^2, a cylindrical arm's slide turned outwards."""
    m, table = 1.7, 0.3
    links = (body("table", 5.0, (0, 0, 0), (1.0, 1.0, table)), body("mass", m, (0, 0, 0), (0.0, 0.0, 0.0)))
    joints = (Joint("turn", "revolute", WORLD, "table", axes=(Z,)), Joint("slide", "prismatic", "table", "mass", axes=(X,)))

    def equation(q, v, a):
        return np.array([(table + m * q[1]**2) * a[0] + 2 * m * q[1] * v[0] * v[1], m * a[1] - m * q[1] * v[0]**2])

    holds(ld.build(Robot("turntable", links, joints)), equation, STATES)


def test_hybrid_cart_and_pole():
    """The cart follows a given acceleration: the pole is a pendulum in an accelerated frame, and the rail takes the rest."""
    M, m, l, I = 2.0, 0.5, 0.6, 0.03
    links = (body("cart", M, (0, 0, 0), (1.0, 1.0, 1.0)), body("pole", m, (0, 0, l), (I, I, 0.001)))
    joints = (Joint("rail", "prismatic", WORLD, "cart", axes=(X,)), Joint("pin", "continuous", "cart", "pole", axes=(Y,)))
    model = ld.build(Robot("cart-pole", links, joints))
    for q, v, (given, torque) in STATES:
        a, tau = ld.hybrid_dynamics(model, q, v, [given, np.nan], [np.nan, torque], [True, False])
        c, s = np.cos(q[1]), np.sin(q[1])
        swing = (torque + m * G * l * s - m * l * c * given) / (I + m * l**2)
        np.testing.assert_allclose(a, [given, swing], rtol=1e-13)
        push = (M + m) * given + m * l * c * swing - m * l * s * v[1]**2
        np.testing.assert_allclose(tau, [push, torque], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("case", [0, 1])
def test_aerial_manipulator_of_the_reference_data(case, worst):
    """Base and two arms, outputs of another group's program in spatial coordinates (AGF; order zero here)."""
    data = json.loads((Path(__file__).parent / "aerial_manipulator.json").read_text(encoding="utf-8"))
    m, given = data["model"], data["cases"][case]
    names = [f"body{k}" for k in range(m["num_bodies"])]
    links, joints, home = [], [], []
    for k, name in enumerate(names):
        J = np.array(m["inertia_about_com_body_axes"][k])
        links.append(Link(name, m["mass"][k], floats(m["com_in_body_frame"][k]), floats(J[np.triu_indices(3)])))
        A = np.array(m["Ap"][k])
        home.append(A if k == 0 else home[m["parent"][k]] @ A)
        if k:
            screw = adjoint(inverse(home[k])) @ np.array(m["Y"][k])              # in the body's own frame
            joints.append(Joint(f"joint{k}", "screws", names[m["parent"][k]], name,
                                Pose(floats(A[:3, :3].ravel()), floats(A[:3, 3])), screws=(floats(screw),)))
    model = ld.build(Robot("aerial", tuple(links), tuple(joints), base="floating", gravity=(0.0, 0.0, -data["g"])))
    C, V, joint = np.array(given["inputs"]["C0_1"]), given["inputs"]["V_derivs"], np.array(given["inputs"]["q_derivs"])[1:]
    order = [int(name[5:]) - 1 for name in model.joint_names[1:]]
    to_body = adjoint(inverse(C))
    q = np.r_[C[:3, 3], quaternion(C[:3, :3]), joint[order, 0]]
    v = np.r_[to_body @ V[0], joint[order, 1]]
    a = np.r_[to_body @ V[1], joint[order, 2]]
    poses = ld.link_poses(model, q)
    F = np.array([adjoint(T).T @ W[0] for T, W in zip(poses, given["inputs"]["Wapp"], strict=True)])
    expected = np.r_[adjoint(C).T @ given["outputs"]["Qbase"][0], np.array(given["outputs"]["tau"])[1:, 0][order]]
    assert worst("aerial manipulator, order 0", relative(ld.inverse_dynamics(model, q, v, a, f_ext=F), expected)) < 1e-13
    back = ld.forward_dynamics(model, q, v, expected, f_ext=F)
    assert relative(back, a) < 1e-11
