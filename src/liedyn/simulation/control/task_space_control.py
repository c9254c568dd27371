"""The scenario's `control: {law: task_space}`, bound to a model, and the tracking error of control laws.

See `kernels.simulation.task_space_law`.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from liedyn.arrays import Array, Integers, Mask
from liedyn.dynamics.dynamics import mass_matrix
from liedyn.dynamics.kinematics import jacobian, link_pose
from liedyn.errors import LiedynWarning, ScenarioError
from liedyn.immutable import Immutable
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.scenario import Control, Motion, Waypoints
from liedyn.kernels.mass_matrix import composite_workspace_size
from liedyn.kernels.simulation.joint_laws import JointLaws
from liedyn.kernels.simulation.signals import evaluate_signals
from liedyn.kernels.simulation.task_space_law import AXIS_TOLERANCE, DAMPING_THRESHOLD, SWEEPS, Task
from liedyn.model.model import Model
from liedyn.simulation.control.control_law import LawContext, describe_rows, error_gains
from liedyn.simulation.control.elastic_joint_control import is_elastic
from liedyn.simulation.name_binding import body_path, find_index, write_values
from liedyn.simulation.prescribed_poses import PoseTable

if TYPE_CHECKING:
    from liedyn.simulation.segment_problems import RunSegment  # imports this module

# Tracking of joints and links under `control` ---------------------------------------------------------------------------

@dataclass(frozen=True, eq=False)
class Tracking(Immutable):
    """Motion of joints or of a link next to the desired motion.

    Columns are joints, elastic ones under the name of the motor's joint. In task space, they are the axes of the link, and the
    angle between its orientation and that of its target.

    link       (N, n) positions of joints, or of the link [rad | m]
    reference  (N, n) desired positions
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    link: Array
    reference: Array

    @property
    def error(self) -> Array:
        """(N, n) link minus reference."""
        return self.link - self.reference

    @property
    def columns(self) -> list[tuple[str, str, Array]]:
        """(name, unit, (N,) array) link.<joint> and reference.<joint>, for the trajectory file."""
        return [(f"{kind}.{name}", unit, values[:, k]) for kind, values in (("link", self.link), ("reference", self.reference))
                for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True))]


def signal_values(problem: InitialValueProblem, signal_indices: Integers, t: Array, order: int = 0) -> Array:
    """Return (N, n) the values of signals `signal_indices`, functions of time, at the times t (N,).

    order: of their time derivative, 0 to 2
    """
    out, stack = np.zeros((len(t), len(signal_indices))), np.zeros(problem.stack_size)
    evaluate_signals(problem.signals, signal_indices.astype(np.int64), np.array(t), problem.q, problem.v, stack, order, out)
    return out


# task space -------------------------------------------------------------------------------------------------------------

_ROTATION, _TRANSLATION = (0, 1, 2), (3, 4, 5)
_MOBILITY_TOLERANCE = 1e-12         # of the scaled mean mobility over a run: below, no joint moves the link in that direction


def bind_task_space(context: LawContext, laws: JointLaws) -> JointLaws:
    """Return the laws with the task-space law, which drives all coordinates that are not prescribed now."""
    return laws._replace(driven=~context.prescribed, prescribed=laws.all.copy(), gains=error_gains(context.control),
                         task=_bind_task(context))


def _bind_task(context: LawContext) -> Task:
    """Return the task of the law.

    Raises ScenarioError for a robot with a joint without motor, and for a link that the law cannot move.
    """
    control, model, prescribed = context.control, context.law_model, context.prescribed
    for joint in model.joints:
        if joint.type == "free" and not prescribed[joint.v].all():
            raise ScenarioError(f"task_space drives all joints, but {joint.name} is free: no motor acts there",
                                place=control.place, hint="prescribe its motion, or base: fixed")
    if is_elastic(model):
        raise ScenarioError("task_space does not support elastic joints, which this robot has", place=control.place.at("law"),
                            expected="law: feedback_linearization")
    for each in (context.model, model):
        link = find_index(control.link, each.link_names, "link", control.place.at("link"))
    poses = PoseTable(context.model, context.compiler)
    assert control.target is not None                        # the law's schema requires it
    poses.add_target(f"target of {control.link}", control.target)
    nv, rows = model.nv, np.array((*(_ROTATION if _controls_rotation(control.target) else ()),
                                   *(_TRANSLATION if _controls_position(control.target) else ())))
    posture, has_posture = _posture(control, model)
    m, n, path = len(rows), model.n_bodies, np.array(body_path(model, link), dtype=np.int64)
    sizes = 6 * nv, 6 * nv, nv * nv, nv * nv, nv, m * nv, m * m, m, m, SWEEPS * m * (m - 1), 1, m, composite_workspace_size(n)
    task = Task(np.array([link]), path, np.array(control.point, dtype=float), rows, poses.poses, posture, has_posture,
                np.array(prescribed), *map(np.zeros, sizes))
    if not jacobian(model, model.neutral(), control.link)[:, ~task.fixed].any():
        raise ScenarioError(f"task_space cannot move the link {control.link}: no joint between it and the base is controlled",
                            place=control.place.at("link"))
    return task


def _controls_rotation(target: Motion | Waypoints) -> bool:
    """Return whether the target has an orientation."""
    return bool(target.rpy) if isinstance(target, Motion) else any(point.rpy or point.quaternion for point in target.points)


def _controls_position(target: Motion | Waypoints) -> bool:
    """Return whether the target has a position."""
    if isinstance(target, Motion):
        return bool(target.xyz)
    return any(point.xyz for point in target.points) or not _controls_rotation(target)


def _posture(control: Control, model: Model) -> tuple[Array, Mask]:
    """Return the positions (nv,) of the posture, and the mask of the joints that have one."""
    q, posture, has_posture = model.neutral(), np.zeros(model.nv), np.zeros(model.nv, dtype=bool)
    rules = write_values(q, control.posture, model, model.q_index)
    for name, rule in rules.items():
        joint = model.joint(name)
        if joint.screws is None:
            raise ScenarioError(f"posture is not supported for {joint.type} joints: got {name}", place=rule.place)
        posture[joint.v], has_posture[joint.v] = q[joint.q], True
    return posture, has_posture


# after a run ----------------------------------------------------------------------------------------------------------
def task_tracking(problem: InitialValueProblem, task: Task, t: Array, q: Array) -> Tracking:
    """Return the position of the point and of its target, by axis, and the angle between both orientations."""
    name = problem.law_model.link_names[task.link[0]]
    names: list[str] = []
    units: list[str] = []
    link: list[Array] = []
    reference: list[Array] = []
    T, p = link_pose(problem.model, q, name), signal_values(problem, task.poses.signal[:3], t)
    if 3 in task.rows:
        names, units = [f"{name}.{axis}" for axis in "xyz"], ["m"] * 3
        link, reference = [T[:, :3, :3] @ task.point + T[:, :3, 3]], [p]
    if 0 in task.rows:
        error = Rotation.from_matrix(T[:, :3, :3]).inv() * _orientation(problem, task, t)
        names, units = [*names, f"{name}.angle"], [*units, "rad"]
        link, reference = [*link, error.magnitude()[:, None]], [*reference, np.zeros((len(t), 1))]
    return Tracking(tuple(names), tuple(units), np.hstack(link), np.hstack(reference))


def _orientation(problem: InitialValueProblem, task: Task, t: Array) -> Rotation:
    """Return the orientations of the target at the times t (N,)."""
    x = signal_values(problem, task.poses.signal[3:6], t)
    if not task.poses.uses_rotation_vector[0]:
        return Rotation.from_euler("xyz", x)
    return Rotation.from_quat(signal_values(problem, task.poses.signal[6:10], t)) * Rotation.from_rotvec(x)


def task_space_warnings(segments: Sequence[RunSegment]) -> list[LiedynWarning]:
    """Return a warning if the link is close to a singular configuration at output times."""
    parts, name = [np.zeros(0)], ""
    for segment in segments:
        problem, rows = segment.problem if segment.problem.sampled is None else segment.problem.sampled.law, segment.record.q
        if problem.joint_laws is None or problem.joint_laws.task is None:
            parts.append(np.full(len(rows), np.inf))
        else:
            task = problem.joint_laws.task
            name = problem.law_model.link_names[task.link[0]]
            parts.append(smallest_mobility(problem.law_model if problem.control_model else segment.model, task, rows))
    mobility, t = np.concatenate(parts), np.concatenate([np.zeros(0), *(segment.record.t for segment in segments)])
    near = mobility < DAMPING_THRESHOLD
    if not near.any():
        return []
    return [LiedynWarning("task-singular",
                          f"{name} is close to a singular configuration {describe_rows(t, near)} (the closest at "
                          f"t = {t[np.argmin(mobility)]:.6g} s): task_space is damped there, and the target is not followed "
                          "exactly")]


def smallest_mobility(model: Model, task: Task, q: Array) -> Array:
    """Return (N,) the minimum eigenvalue of the scaled J M^-1 J^T (see `task_space_law`).

    Directions in which no joint moves the link are omitted; they must be fixed in the world.
    """
    A = _scaled_mobility(model, task, q)
    unmoved = np.linalg.eigvalsh(A.mean(axis=0)) < _MOBILITY_TOLERANCE if len(A) else np.zeros(0, dtype=bool)
    return np.asarray(np.linalg.eigvalsh(A)[:, np.count_nonzero(unmoved)], dtype=float)


def _scaled_mobility(model: Model, task: Task, q: Array) -> Array:
    """Return the scaled J M^-1 J^T (N, m, m), as in the kernel."""
    name, free = model.link_names[task.link[0]], ~task.fixed
    J, T = jacobian(model, q, name, frame="local_world_aligned"), link_pose(model, q, name)
    arm = np.einsum("nij,j->ni", T[:, :3, :3], task.point)
    J[:, 3:] -= np.cross(arm[:, :, None], J[:, :3], axis=1)
    M = mass_matrix(model, q)[:, free][:, :, free]
    turning, J = J[:, :3, free], J[:, task.rows][:, :, free]
    A, kind = J @ np.linalg.solve(M, np.swapaxes(J, 1, 2)), task.rows // 3
    reach = AXIS_TOLERANCE**2 * ((T[:, :3, 3]**2).sum(axis=1) + ((T[:, :3, 3] + arm)**2).sum(axis=1))
    rounding = reach * (turning**2 / np.einsum("nii->ni", M)[:, None]).sum(axis=(1, 2))
    mean = np.stack([np.einsum("nii->n", A[:, kind == k][:, :, kind == k]) / 3 for k in kind], axis=1)
    moved = mean > np.where(kind == 1, rounding[:, None], 0.0)
    scale = np.where(moved, 1.0 / np.sqrt(np.where(moved, mean, 1.0)), 0.0)
    return A * scale[:, :, None] * scale[:, None]
