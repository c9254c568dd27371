"""Joints that lock while they move: a planar arm of three joints and an industrial arm of six, as in Müller, Forward Dynamics of
Variable Topology Mechanisms: The Case of Constraint Activation (arXiv 2604.19419), with other numbers.

What is known of a lock: impulses act along locked coordinates alone, so that the momenta (M v)_k of all others stay; of all v
with these momenta and locked coordinates at rest there is one; 1/2 dv^T M dv is lost. Everything here is computed by NumPy from
Lagrange's equations with multipliers."""
import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import liedyn as ld
from complex_step import Reference

TIGHT = {"method": "dop853", "rtol": 1e-13, "atol": 1e-14}
LENGTH, MASS, COM, INERTIA = (0.5, 0.4, 0.3), (3.0, 2.0, 1.0), (0.3, 0.15, 0.2), (0.08, 0.05, 0.02)


def planar_arm() -> dict:
    links = {f"l{k}": {"mass": m, "com": [c, 0, 0], "inertia": [0.01, 0.01, I]}
             for k, (m, c, I) in enumerate(zip(MASS, COM, INERTIA, strict=True))}
    joints = {f"j{k}": {"type": "continuous", "parent": f"l{k - 1}" if k else "world", "child": f"l{k}", "axis": [0, 0, 1],
                        "origin": {"xyz": [LENGTH[k - 1] if k else 0, 0, 0]}} for k in range(3)}
    return {"name": "arm", "gravity": [0, 0, -9.81], "links": links, "joints": joints}


class PlanarArm:
    """In angles p of the links against the world: 2 T = sum_ij A_ij cos(p_i - p_j) p_i' p_j'."""

    def __init__(self):
        A = np.zeros((3, 3))
        for k in range(3):
            arm = np.array([*LENGTH[:k], COM[k], 0, 0])[:3]
            A += MASS[k] * np.outer(arm, arm)
        self.A = A + np.diag(INERTIA)

    def mass(self, p):
        return self.A * np.cos(p[:, None] - p)

    def rates(self, y, rows):
        """Of [p; p'] under the constraints rows p' = 0: M p'' + A sin(p_i - p_j) p_j'^2 = rows^T x."""
        p, u = np.split(y, 2)
        return np.r_[u, kkt(self.mass(p), rows, -(self.A * np.sin(p[:, None] - p)) @ u**2, np.zeros(len(rows)))]


def kkt(M, G, right, b):
    """x of M x - G^T p = right, G x = b."""
    system = np.block([[M, -G.T], [G, np.zeros((len(G), len(G)))]])
    return np.linalg.solve(system, np.r_[right, b])[:len(M)]


def relative(locked) -> np.ndarray:
    """Return the rows of p' that are speeds of locked joints."""
    return (np.eye(3) - np.eye(3, k=-1))[list(locked)]


def test_a_planar_arm_locks_joint_by_joint(scenario, worst):
    """The wrist locks, then the elbow, then the shoulder. Until then nothing turns the arm about its first axis: the momentum
    along it stays for the whole run, and once all links are one body, its speed is that momentum over its inertia."""
    locks = {"j2": 0.4, "j1": 0.9, "j0": 1.5}
    run = ld.run_scenario(scenario(json.dumps(planar_arm()), duration=2.0, output_step=0.05, integrator=TIGHT,
                                   initial={"q": {"j1": 0.6, "j2": -1.1}, "v": {"j0": 1.0, "j1": -2.5, "j2": 4.0}},
                                   events={joint: {"at": t, "do": {"lock": joint}} for joint, t in locks.items()}))
    arm, y, begun, locked = PlanarArm(), np.r_[0, 0.6, -0.5, 1.0, -1.5, 2.5], 0.0, []
    momentum = (arm.mass(y[:3]) @ y[3:]).sum()
    for one, (joint, t) in zip(run.events, locks.items(), strict=True):
        rows = relative(locked)
        y = solve_ivp(lambda t, y, rows=rows: arm.rates(y, rows), (begun, t), y, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
        before, after = np.flatnonzero(run.t == t)
        assert worst("planar arm before a lock", state_gap(run, before, y), joint) < 1e-10
        locked.append(int(joint[1]))
        M, u = arm.mass(y[:3]), y[3:].copy()
        y[3:] = kkt(M, relative(locked), M @ u, np.zeros(len(locked)))
        assert worst("planar arm after a lock", state_gap(run, after, y), joint) < 1e-10
        assert worst("energy lost by a lock", abs(one.lost - 0.5 * (y[3:] - u) @ M @ (y[3:] - u)), joint) < 1e-12
        M = ld.mass_matrix(run.model, run.q[before])
        free = [k for k in range(3) if k not in locked]
        kept = M[free] @ (run.v[after] - run.v[before])
        assert worst("momentum kept by a lock", np.abs(kept).max(initial=0.0) / momentum, joint) < 1e-13
        begun = t
    total = np.array([(arm.mass(np.cumsum(q)) @ np.cumsum(v)).sum() for q, v in zip(run.q, run.v, strict=True)])
    turning = run.t < locks["j0"]
    assert worst("momentum of a planar arm", np.abs(total[turning] / momentum - 1).max()) < 1e-12       # of 1.5 s, by the method
    rigid = np.flatnonzero(run.t == locks["j1"])[1]
    speed = momentum / arm.mass(np.cumsum(run.q[rigid])).sum()
    assert worst("speed of one body", np.abs(run.v[rigid:][run.t[rigid:] < locks["j0"]][:, 0] / speed - 1).max()) < 1e-12
    assert run.events[2].lost == pytest.approx(momentum * speed / 2, rel=1e-12)
    assert np.abs(run.v[-1]).max() < 1e-15                    # rounding of what kept the first locks at rest
    assert run.check["energy_balance_relative"] < 1e-12


def state_gap(run, row, y) -> float:
    return np.abs(np.r_[np.cumsum(run.q[row]), np.cumsum(run.v[row])] - y).max()


def test_an_industrial_arm_locks_its_joints_in_motion(worst):
    """A UR5 that moves under gravity and torques: the last joint locks, then the elbow and the wrist at once, then the base. M
    and bias by a plain NumPy implementation of the tree."""
    locks = {0.15: ["wrist_3_joint"], 0.3: ["elbow_joint", "wrist_1_joint"], 0.4: ["shoulder_pan_joint"]}
    torque = np.array([5.0, -20.0, 10.0, 1.0, -0.5, 0.2])
    robot = "robots/ur5.yaml"
    names = ld.load(robot).v_names
    run = ld.run_scenario({
        "robot": robot, "duration": 0.5, "output_step": 0.05, "integrator": TIGHT, "passive": False,
        "initial": {"q": dict(zip(names, [0.2, -1.0, 0.9, -0.6, 0.5, 0.3], strict=True)),
                    "v": dict(zip(names, [1.0, -0.5, 1.5, -2.0, 1.2, 3.0], strict=True))},
        "joints": dict(zip(names, ({"torque": x} for x in torque), strict=True)),
        "events": {f"lock {t}": {"at": t, "do": {"lock": joints}} for t, joints in locks.items()}})
    model, begun, y, locked = run.model, 0.0, np.r_[run.q[0], run.v[0]], []

    def rates(t, y):
        M, b = (np.real(x) for x in Reference(model, *np.split(y, 2)).equation(passive=False))
        return np.r_[y[6:], kkt(M, np.eye(6)[locked], torque - b, np.zeros(len(locked)))]

    for one, (t, joints) in zip(run.events, locks.items(), strict=True):
        y = solve_ivp(rates, (begun, t), y, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
        before, after = np.flatnonzero(run.t == t)
        assert worst("UR5 before a lock", np.abs(np.r_[run.q[before], run.v[before]] - y).max(), str(joints)) < 1e-9
        q, v = run.q[before], run.v[before]
        locked += [names.index(joint) for joint in joints]
        M = np.real(Reference(model, q, v).equation(passive=False)[0])
        expected = kkt(M, np.eye(6)[locked], M @ v, np.zeros(len(locked)))
        assert worst("UR5 after a lock", np.abs(run.v[after] - expected).max(), str(joints)) < 1e-13 * np.linalg.cond(M)
        free = [k for k in range(6) if k not in locked]
        kept = M[free] @ (run.v[after] - v)
        assert worst("momentum kept by a lock", np.abs(kept).max() / np.abs(M @ v).max(), str(joints)) < 1e-13
        dv = expected - v
        assert worst("energy lost by a lock", abs(one.lost - 0.5 * dv @ M @ dv), str(joints)) < 1e-12
        assert np.abs(one.impulse[free]).max() < 1e-12 and (one.impulse[locked[-len(joints):]] != 0).all()
        y, begun = np.r_[q, expected], t
    assert run.check["energy_balance_relative"] < 1e-11
