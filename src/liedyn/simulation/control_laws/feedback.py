"""What a scenario's laws answer to a small change of the state: derivatives of its signals and of its external wrenches.

A change of the state is x = [dq; dv] (2 nv), dq in tangent coordinates.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from liedyn.codegen.steps.signals import read_signal
from liedyn.dynamics.kinematics import jacobian, link_pose
from liedyn.dynamics.manifold import integrate
from liedyn.integrators.evaluation import evaluated
from liedyn.integrators.right_hand_side import RightHandSide
from liedyn.integrators.stop_forces import stop_slopes
from liedyn.integrators.touch import touch_slopes
from liedyn.joints.kinds import FRICTION_SPEED
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.model.spatial import skew
from liedyn.simulation.control_laws.joint_law_slopes import with_joint_laws
from liedyn.simulation.control_laws.signal_slopes import rate_gradient, signal_gradient
from liedyn.simulation.extrapolation import slope
from liedyn.simulation.measured import measured_at

_STEP = 0.1              # rad, rad/s: the first of those that are extrapolated


def law_slopes(problem, t: float, q, v) -> tuple[np.ndarray, np.ndarray]:
    """`joint_laws` and `wrench_laws`."""
    return joint_laws(problem, t, q, v), wrench_laws(problem, t, q, v)


def joint_laws(problem, t: float, q, v, integral=None) -> np.ndarray:
    """(nv, 2 nv) derivative of the joint forces that torque signals, pd laws, `control` and stops give; zero where
    prescribed. integral (nv,): of pid laws, None: zero."""
    schedule, nv = problem.schedule, problem.model.nv
    out = np.zeros((nv, 2 * nv))
    for k in np.flatnonzero(schedule.level == TORQUE):
        out[k] = signal_gradient(problem, schedule.signal[k], t, q, v)
        if schedule.target[k] >= 0:
            out[k] += schedule.kp[k] * signal_gradient(problem, schedule.target[k], t, q, v)
            if schedule.kd[k] != 0.0:
                out[k] += schedule.kd[k] * rate_gradient(problem, schedule.target[k], t, q, v)
            out[k, k] -= schedule.kp[k]
            out[k, nv + k] -= schedule.kd[k]
    laws, alone = problem.joint_laws, problem.without_stops
    if problem.law is not None:                                # limits of its torques have kinks
        motors, unlimited = problem.law.motor, alone if laws is None else replace(alone, joint_laws=None)
        out[motors] = _by_differences(unlimited, t, q, v, integral, motors)
    if laws is not None and laws.task is not None:
        out[laws.driven] = _by_differences(alone, t, q, v, integral, laws.driven)
    elif laws is not None:
        out = with_joint_laws(problem, t, q, v, out, integral)
    return out if problem.stops is None else out + stop_slopes(problem, q, v)


def _by_differences(problem, t: float, q, v, integral, driven) -> np.ndarray:
    """(driven, 2 nv) derivative of joint forces where `elastic_law` or `task_law` acts, by extrapolated differences: good to ten
    digits."""
    nv, sides = problem.model.nv, RightHandSide(problem, problem.signals)

    def along(x):
        return lambda s: evaluated(problem, t, integrate(problem.model, q, s * x[:nv]), v + s * x[nv:], sides,
                                   integral).tau[driven]
    return np.column_stack([slope(along(x), _STEP)[0] for x in np.eye(2 * nv)])


def wrench_laws(problem, t: float, q, v) -> np.ndarray:
    """(nv, 2 nv) derivative of the generalized force sum J^T F of the external wrenches F and of contacts, less what it
    would be if each F stood still in its link's frame: by their signals, by the turning of the link against the world's
    axes, and by the law of contact."""
    model, schedule, nv = problem.model, problem.schedule, problem.model.nv
    out = np.zeros((nv, 2 * nv)) if problem.contacts is None else touch_slopes(model, problem.contacts, q, v)
    basis, point = schedule.force_basis.reshape(-1, 6), schedule.force_point.reshape(-1, 3)
    for j in np.flatnonzero((schedule.force_from <= t) & (t < schedule.force_until)):
        link = model.link_names[schedule.force_link[j]]
        J, F = jacobian(model, q, link), basis[j]
        dF = np.zeros((6, 2 * nv))
        if schedule.force_world[j]:
            back = link_pose(model, q, link)[:3, :3].T
            m, f = back @ F[:3], back @ F[3:]
            F = np.r_[m + np.cross(point[j], f), f]
            # d(R^T f) = (R^T f) x w where the link turns by w
            turned = np.vstack([skew(m) + skew(point[j]) @ skew(f), skew(f)])
            x = read_signal(measured_at(model, problem.signals, q, v), schedule.force_signal[j], t, q, v)[0]
            dF[:, :nv] = x * turned @ J[:3]
        out += J.T @ (dF + np.outer(F, signal_gradient(problem, schedule.force_signal[j], t, q, v)))
    return out


def friction_note(model, v) -> list[str]:
    """Says where Coulomb friction, which is smoothed about rest, acts as a strong damper."""
    slow = []
    for joint in model.description.joints:
        if joint.name in model.joint_names and joint.coordinates:
            part = model.v_index(joint.name)
            slow += [name for name, coordinate, rate in zip(model.v_names[part], joint.coordinates, v[part], strict=True)
                     if coordinate.friction and abs(rate) < FRICTION_SPEED]
    if not slow:
        return []
    return [f"{', '.join(slow[:4])}{', …' if len(slow) > 4 else ''}: Coulomb friction below {FRICTION_SPEED:g} rad/s or m/s acts "
            "as a damper; -S passive=false leaves all passive forces out"]
