"""The scenario's `control: {law: task_space}`, bound to a model: see `kernels.simulation.task_law`."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from liedyn.dynamics.kinematics import jacobian, link_pose
from liedyn.dynamics.mass import mass_matrix
from liedyn.errors import ScenarioError
from liedyn.io.scenarios.scenario import Control, Motion
from liedyn.kernels.recursions.composite import composite_memory
from liedyn.kernels.simulation.task_law import DAMPED, Task
from liedyn.simulation.control_laws.control import is_elastic
from liedyn.simulation.control_laws.tracking import Tracking, values_at
from liedyn.simulation.joint_values import write_values
from liedyn.simulation.measured import path_to
from liedyn.simulation.names import find
from liedyn.simulation.prescribed_poses import PoseTable
from liedyn.simulation.signals.signal_table import SignalTable

_TURNING, _MOVING = (0, 1, 2), (3, 4, 5)
_UNMOVED = 1e-12         # of the mean mobility: an axis along which nothing moves the link


def bind_task(control: Control, model, table: SignalTable, prescribed) -> Task:
    """prescribed (nv,): now; the law drives all other coordinates. Raises ScenarioError for a robot with a joint that has no
    motor, and for a link that the law cannot move."""
    for joint in model.joints:
        if joint.type == "free" and not prescribed[joint.v].all():
            raise ScenarioError(f"task_space drives all joints, but {joint.name} is free: no motor acts there",
                                place=control.place, hint="prescribe its motion, or base: fixed")
    if is_elastic(model):
        raise ScenarioError("task_space is for rigid joints: the robot's are elastic", place=control.place,
                            expected="law: feedback_linearization")
    link, poses = find(control.link, model.link_names, "link", control.place), PoseTable(model, table)
    poses.add_target(f"target of {control.link}", control.target)
    nv, rows = model.nv, np.array((*(_TURNING if _turns(control) else ()), *(_MOVING if _moves(control) else ())))
    posture, kept = _posture(control, model)
    m, n, path = len(rows), model.n_bodies, np.array(path_to(model, link), dtype=np.int64)
    sizes = 6 * nv, 6 * nv, nv * nv, nv * nv, nv, m * nv, m * m, m, m, composite_memory(n)
    task = Task(np.array([link]), path, np.array(control.point, dtype=float), rows, poses.poses, posture, kept,
                np.array(prescribed), *map(np.zeros, sizes))
    if not jacobian(model, model.neutral(), control.link)[:, ~task.fixed].any():
        raise ScenarioError(f"task_space cannot move the link {control.link}: no joint that is not prescribed is below it",
                            place=control.place)
    return task


def _turns(control: Control) -> bool:
    target = control.target
    return bool(target.rpy) if isinstance(target, Motion) else any(one.rpy or one.quaternion for one in target.points)


def _moves(control: Control) -> bool:
    target = control.target
    return bool(target.xyz) if isinstance(target, Motion) else any(one.xyz for one in target.points) or not _turns(control)


def _posture(control: Control, model) -> tuple[np.ndarray, np.ndarray]:
    """(nv,) positions, and where they are given."""
    q, posture, kept = model.neutral(), np.zeros(model.nv), np.zeros(model.nv, dtype=bool)
    rules = write_values(q, control.posture, model, model.q_index)
    for name, rule in rules.items():
        joint = model.joint(name)
        if joint.screws is None:
            raise ScenarioError(f"joint {name} is a {joint.type} joint: it has no posture", place=rule.place)
        posture[joint.v], kept[joint.v] = q[joint.q], True
    return posture, kept


# after a run ----------------------------------------------------------------------------------------------------------
def task_tracking(problem, task: Task, t, q) -> Tracking:
    """Position of the point and of its target, by axis; and the angle between both orientations."""
    name, names, units, link, reference = problem.model.link_names[task.link[0]], [], [], [], []
    T, p = link_pose(problem.model, q, name), values_at(problem, task.poses.signal[:3], t)
    if 3 in task.rows:
        names, units = [f"{name}.{axis}" for axis in "xyz"], ["m"] * 3
        link, reference = [T[:, :3, :3] @ task.point + T[:, :3, 3]], [p]
    if 0 in task.rows:
        error = Rotation.from_matrix(T[:, :3, :3]).inv() * _orientation(problem, task, t)
        names, units = [*names, f"{name}.angle"], [*units, "rad"]
        link, reference = [*link, error.magnitude()[:, None]], [*reference, np.zeros((len(t), 1))]
    return Tracking(tuple(names), tuple(units), np.hstack(link), np.hstack(reference))


def _orientation(problem, task: Task, t) -> Rotation:
    x = values_at(problem, task.poses.signal[3:6], t)
    if not task.poses.curved[0]:
        return Rotation.from_euler("xyz", x)
    return Rotation.from_quat(values_at(problem, task.poses.signal[6:10], t)) * Rotation.from_rotvec(x)


def task_notes(parts) -> list[str]:
    """Where the link is close to a singular configuration, at output times."""
    pivots, name = [np.zeros(0)], ""
    for part in parts:
        problem, rows = part.problem if part.problem.sampled is None else part.problem.sampled.law, part.record.q
        if problem.joint_laws is None or problem.joint_laws.task is None:
            pivots.append(np.full(len(rows), np.inf))
        else:
            task = problem.joint_laws.task
            name = part.model.link_names[task.link[0]]
            pivots.append(_pivots(part.model, task, rows))
    pivots, t = np.concatenate(pivots), np.concatenate([np.zeros(0), *(part.record.t for part in parts)])
    damped = pivots < DAMPED
    return [f"{name} is close to a singular configuration from t = {t[damped][0]:.6g} s, in {np.count_nonzero(damped)} of "
            f"{len(t)} rows (the closest at t = {t[np.argmin(pivots)]:.6g} s): task_space is damped there, and the target is not "
            "followed exactly"] if damped.any() else []


def _pivots(model, task: Task, q) -> np.ndarray:
    """(N,) the smallest pivot of J M^-1 J^T relative to the mean of its diagonal."""
    name, free = model.link_names[task.link[0]], ~task.fixed
    J, T = jacobian(model, q, name, frame="local_world_aligned"), link_pose(model, q, name)
    arm = np.einsum("nij,j->ni", T[:, :3, :3], task.point)
    J[:, 3:] -= np.cross(arm[:, :, None], J[:, :3], axis=1)
    J = J[:, task.rows][:, :, free]
    M = mass_matrix(model, q)[:, free][:, :, free]
    A = J @ np.linalg.solve(M, np.swapaxes(J, 1, 2))
    diagonal, kind, least = np.einsum("nii->in", A), task.rows // 3, np.full(len(q), np.inf)
    L, D = np.zeros_like(A), np.zeros_like(diagonal)
    for i in range(len(kind)):
        mean = diagonal[kind == kind[i]].sum(axis=0) / 3
        moved = diagonal[i] > _UNMOVED * np.maximum(mean, 1e-300)         # others are axes along which nothing moves the link
        ratio = (diagonal[i] - np.einsum("nk,nk,kn->n", L[:, i], L[:, i], D)) / np.where(moved, mean, 1.0)
        D[i] = np.where(moved, mean * np.maximum(ratio, _UNMOVED), 0.0)
        least = np.where(moved, np.minimum(least, ratio), least)
        L[:, :, i] = ((A[:, :, i] - np.einsum("njk,nk,kn->nj", L, L[:, i], D)).T / np.where(moved, D[i], np.inf)).T
    return least
