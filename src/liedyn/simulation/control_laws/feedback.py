"""What a scenario's laws answer to a small change of the state: derivatives of its signals and of its external wrenches.

A change of the state is x = [dq; dv] (2 nv), dq in tangent coordinates.
"""
from __future__ import annotations

import numpy as np

from liedyn.codegen.signals import read_signal
from liedyn.dynamics.kinematics import jacobian, link_pose
from liedyn.dynamics.tangent_numbers import tangent_of_numbers
from liedyn.errors import ComputationError
from liedyn.integrators.stop_forces import stop_slopes
from liedyn.integrators.touch import touch_slopes
from liedyn.jit import kernel
from liedyn.joints.kinds import FRICTION_SPEED
from liedyn.joints.tree import tree_of
from liedyn.kernels.simulation.elastic_law import drive_motors
from liedyn.kernels.simulation.signals import LITERAL, MEASURED, OF_STATE, PROGRAM, STATE_Q, STATE_V, TIME, TORQUE
from liedyn.model.spatial import skew
from liedyn.simulation.control_laws.joint_law_slopes import with_joint_laws
from liedyn.simulation.control_laws.moving_targets import rate_gradient, standing
from liedyn.simulation.extrapolation import slope
from liedyn.simulation.measured import measured_at, measured_name, measured_slope

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
    if problem.law is not None:
        out = out + _motor_slopes(problem, t, q, v)
    out = out if problem.joint_laws is None else with_joint_laws(problem, t, q, v, out, integral)
    return out if problem.stops is None else out + stop_slopes(problem, q, v)


@kernel
def law_torques(index, constants, law, signals, t, work):
    """Into work.tau, at work.q, work.v. False: a reference is not finite."""
    for k in range(work.tau.size):
        work.tau[k] = 0.0
    work.flag[0] = -1.0
    drive_motors(law, tree_of(index, constants), signals, t, work)
    return work.flag[0] < 0.0


def _motor_slopes(problem, t: float, q, v) -> np.ndarray:
    """(nv, 2 nv) derivative of the torques of `control`, by extrapolated differences: good to ten digits."""
    model, nv, work = problem.model, problem.model.nv, problem.work()

    def along(x):
        def torques(s):
            work.q[:], work.v[:] = q + s * x[:nv], v + s * x[nv:]          # all joints are of plain coordinates
            if not law_torques(model.index, model.constants, problem.law, problem.signals, t, work):
                raise ComputationError(f"a desired motion of control is not finite at t = {t:.6g} s")
            return work.tau.copy()
        return torques

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


def signal_gradient(problem, k: int, t: float, q, v) -> np.ndarray:
    """(2 nv,) derivative of signal k by the state, exact: the program is run with the coordinate in the place of time, so
    that its jets carry the derivative by it; the same with a point of a link. Raises ComputationError where there is none."""
    signals, model = problem.signals, problem.model
    raw = {STATE_Q: np.zeros(model.nq), STATE_V: np.zeros(model.nv)}
    if signals.kind[k] != PROGRAM:
        return np.zeros(2 * model.nv)
    words, by_points = standing(signals.code[signals.first[k]:][:signals.count[k]]), np.zeros(2 * model.nv)
    if not np.isin(words & 255, OF_STATE).any():
        return by_points
    if (words & 255 == MEASURED).any():
        signals = measured_at(model, signals, q, v)
    known = np.where(words == TIME, LITERAL + 256 * len(signals.literals), words)
    for word in np.unique(words[np.isin(words & 255, (STATE_Q, STATE_V, MEASURED))]):
        kind, i = int(word) & 255, int(word) >> 8
        alone = signals._replace(kind=np.array([PROGRAM]), first=np.zeros(1, dtype=np.int64), count=np.array([len(words)]),
                                 code=np.where(words == word, TIME, known), literals=np.append(signals.literals, t))
        slope = read_signal(alone, 0, float({STATE_Q: q, STATE_V: v, MEASURED: signals.measured}[kind][i]), q, v)[1]
        if kind == MEASURED:
            by_points += slope * measured_slope(model, signals, i, q, v)
        else:
            raw[kind][i] = slope
        if not np.isfinite(slope):
            name = f"q({model.q_names[i]})" if kind == STATE_Q else f"v({model.v_names[i]})" if kind == STATE_V else \
                measured_name(model, signals, i)
            where = f"{problem.signal_places[k]}: " if str(problem.signal_places[k]) else ""
            raise ComputationError(f"{where}the {problem.signal_names[k]} has no derivative by {name} at t = {t:.6g} s")
    return np.concatenate([tangent_of_numbers(model, q, raw[STATE_Q]), raw[STATE_V]]) + by_points


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
