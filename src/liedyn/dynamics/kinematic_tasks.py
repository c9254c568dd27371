"""Kinematic tasks of links: poses, positions, directions, distances, the centre of mass; and their equations for kernels."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.dynamics.batching.arrays import as_array, as_single_state, common_leading_axes, constraint_motion_array
from liedyn.dynamics.batching.calls import check_configuration, check_quaternion
from liedyn.dynamics.constraints.rank import equation_weights
from liedyn.dynamics.joint_values import with_joint_values
from liedyn.dynamics.manifold import continuous_quaternions
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ConfigurationError, ShapeError, UsageError, summarized
from liedyn.immutable import Immutable
from liedyn.joints.loop_joints import CONSTRAINT_MOTION_SIZE
from liedyn.kernels.task_equations import (
    DIRECTION,
    DISTANCE,
    EQUATION_COUNTS,
    LOOK_AT,
    MASS_CENTRE,
    ORIENTATION,
    POSITION,
    POSTURE,
    WORLD_LINK,
)
from liedyn.kernels.task_solver import MAX_LEVELS
from liedyn.model.description import WORLD
from liedyn.model.model import Model

_ROTATION_ERROR = 1e-6         # maximum entry of R^T R - 1: of matrices that were written with seven digits
_GOALS = ("pose", "position", "orientation", "direction", "look_at", "distance", "centre_of_mass")


@summarized
@dataclass(frozen=True, eq=False, kw_only=True)
class Task(Immutable):
    """What a link, or the whole robot, must reach. Goals of one task may be combined, such as a position and a direction.

    Each goal is one value, or an array of them (N, ...) for N targets.

    link            name of the link
    pose            (4, 4) matrix, or (7,) position [m] and unit quaternion x y z w, of the link's frame
    position        (3,) of a point of the link [m]
    orientation     (3, 3) rotation, or (4,) unit quaternion x y z w, of the link's frame
    direction       (3,) to which the axis of the link points
    look_at         (3,) point to which the axis of the link points, seen from `point` [m]
    distance        of `point` from `reference_point` [m], > 0
    centre_of_mass  (3,) of the whole robot [m]; without a link
    point           (3,) in the link [m]; default: its origin
    axis            (3,) in the link; default: z
    relative_to     link in whose axes all goals are; default: the world
    reference_point (3,) of that link, or of the world [m]; default: its origin
    axes            axes along which a position counts, such as "xy" for a centre of mass above the feet
    weight          factor of the residual, compared with tasks of the same priority
    priority        1, 2, …; tasks with a larger number are pursued as far as those with a smaller one allow
    name            in messages; default: the link

    Examples
    --------
    >>> ld.Task(link="tip", position=[-0.4, 0, 0.2])
    <Task: link tip, position (-0.4, 0, 0.2)>
    """

    link: str | None = None
    pose: ArrayLike | None = None
    position: ArrayLike | None = None
    orientation: ArrayLike | None = None
    direction: ArrayLike | None = None
    look_at: ArrayLike | None = None
    distance: ArrayLike | None = None
    centre_of_mass: ArrayLike | None = None
    point: ArrayLike = (0.0, 0.0, 0.0)
    axis: ArrayLike = (0.0, 0.0, 1.0)
    relative_to: str | None = None
    reference_point: ArrayLike = (0.0, 0.0, 0.0)
    axes: str = "xyz"
    weight: float = 1.0
    priority: int = 1
    name: str | None = None

    @property
    def label(self) -> str:
        """The name of the task in messages."""
        return self.name or self.link or "centre of mass"


_USERS = {"point": ("pose", "position", "look_at", "distance"), "axis": ("direction", "look_at"),
          "reference_point": ("distance",)}

Tasks: TypeAlias = Mapping[str, ArrayLike] | Task | Sequence[Task]


class Block(NamedTuple):
    """Equations of one goal. target (..., k): of `kernels.task_equations`; mask: the equations that count."""

    kind: int
    link_a: int
    link_b: int
    target: Array
    mask: tuple[bool, ...]
    task: int


class TaskEquations(NamedTuple):
    """The equations of all tasks, for kernels.

    blocks       int64: see `kernels.task_equations`
    target       (N, …)
    lead         leading axes of the targets
    edges        first equation of each level, and the end
    scale, weight, tolerance   (m,): see `kernels.task_solver.TaskProblem`
    task         (m,) of each equation; -1: constraints and the posture
    is_angle     (m,)
    labels       of the tasks
    has_posture  whether the last level is a posture
    far          (N,) largest coordinate of positions [m]
    """

    blocks: Integers
    target: Array
    lead: tuple[int, ...]
    edges: list[int]
    scale: Array
    weight: Array
    tolerance: Array
    task: Integers
    is_angle: Mask
    labels: tuple[str, ...]
    has_posture: bool
    far: Array


def task_list(tasks: Tasks) -> list[Task]:
    """Return the tasks. In a mapping, values are poses, or positions if their last axis has three numbers."""
    if isinstance(tasks, Task):
        tasks = [tasks]
    elif isinstance(tasks, Mapping):
        tasks = [_task_of_value(link, value) for link, value in tasks.items()]
    out = list(tasks)
    for task in out:
        if not isinstance(task, Task):
            raise UsageError(f"tasks: expected a dict {{link: pose or position}} or ld.Task objects, got {type(task).__name__}")
    if not out:
        raise UsageError("tasks: nothing to reach: expected a dict {link: pose or position} or a list of ld.Task")
    return out


def _task_of_value(link: str, value: ArrayLike) -> Task:
    shape = _shape(value)
    return Task(link=link, position=value) if shape[-1:] == (3,) else Task(link=link, pose=value)


def task_equations_of(model: Model, tasks: Sequence[Task], posture: tuple[Array, Array] | None, tolerance: float,
                      constraint_motion: Mapping[str, Any] | None = None) -> TaskEquations:
    """Return the equations of tasks in the order of their priorities, after those of the constraints.

    posture: configuration (nq,) and weights (nv,) of its coordinates.
    """
    order = sorted(range(len(tasks)), key=lambda k: _checked_priority(tasks[k]))
    blocks = [block for k in order for block in _blocks(model, tasks[k], k)]
    priorities = [tasks[block.task].priority for block in blocks]
    if len(set(priorities)) > MAX_LEVELS - 2:
        raise UsageError(f"tasks: at most {MAX_LEVELS - 2} different priorities, got {len(set(priorities))}")
    length, nc, nv = model_scales(model).length, model.nc, model.nv
    labels = tuple(task.label for task in tasks)
    motion = constraint_motion_array(model, constraint_motion)
    named = [("constraint_motion", motion, 1)] if model.driven else []
    lead = common_leading_axes(*named, *((labels[block.task], block.target, 1) for block in blocks),
                               axes="leading axes of targets")
    parts = [*(x for _, x, _ in named), *(block.target for block in blocks), *([posture[0]] if posture else [])]
    target = np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])).reshape(prod(lead), x.shape[-1]) for x in parts], axis=1)
    firsts = CONSTRAINT_MOTION_SIZE * model.driven + np.cumsum([0, *(block.target.shape[-1] for block in blocks)])
    rows = [(block.kind, block.link_a, block.link_b, firsts[k]) for k, block in enumerate(blocks)]
    counts = [EQUATION_COUNTS[block.kind] for block in blocks]
    if posture:
        rows.append((POSTURE, 0, WORLD_LINK, firsts[-1]))
    m, extra = sum(counts), nv if posture else 0
    is_angle = np.repeat([block.kind in (ORIENTATION, DIRECTION, LOOK_AT) for block in blocks], counts).astype(bool)
    mask = np.concatenate([np.array(block.mask) for block in blocks])
    weight = np.repeat([_checked_weight(tasks[block.task]) for block in blocks], counts)
    v_angle = np.array([unit != "m" for unit in model.v_units], dtype=bool)
    scale = np.concatenate([equation_weights(model), np.where(mask, np.where(is_angle, 1.0, 1.0 / length), 0.0),
                            np.where(v_angle, 1.0, 1.0 / length) * (posture[1] > 0.0) if posture else []])
    level_ends = nc + np.cumsum(counts)
    edges = [0, nc, *(int(end) for k, end in enumerate(level_ends) if k + 1 == len(blocks) or priorities[k + 1] != priorities[k])]
    return TaskEquations(
        np.array(rows, dtype=np.int64).ravel(), target, lead, [*edges, nc + m + extra] if posture else edges, scale,
        np.concatenate([np.ones(nc), weight, posture[1] if posture else []]),
        np.concatenate([np.full(nc, min(tolerance, _CLOSED)), np.full(m, tolerance / np.sqrt(3.0)), np.full(extra, np.inf)]),
        np.concatenate([np.full(nc, -1), np.repeat([block.task for block in blocks], counts), np.full(extra, -1)]),
        np.concatenate([np.zeros(nc, bool), is_angle, np.zeros(extra, bool)]), labels, posture is not None,
        _largest_coordinate(blocks, lead))


def _largest_coordinate(blocks: Sequence[Block], lead: tuple[int, ...]) -> Array:
    """Return the largest coordinate (N,) of the positions among the numbers of the blocks."""
    far = np.zeros(lead)
    for block in blocks:
        first = {ORIENTATION: 4, DIRECTION: 6, LOOK_AT: 3}.get(block.kind, 0)
        far = np.maximum(far, np.abs(block.target[..., first:]).max(axis=-1, initial=0.0))
    return far.reshape(-1)


_CLOSED = 1e-12          # as `assemble`: maximum dimensionless residual of constraints


def _checked_priority(task: Task) -> int:
    if not isinstance(task.priority, (int, np.integer)) or isinstance(task.priority, bool) or task.priority < 1:
        raise UsageError(f"task {task.label}: priority: expected an integer >= 1, got {task.priority!r}")
    return int(task.priority)


def _checked_weight(task: Task) -> float:
    if isinstance(task.weight, bool) or not isinstance(task.weight, (int, float, np.number)) or not 0.0 < task.weight < np.inf:
        raise UsageError(f"task {task.label}: weight: expected a number > 0, got {task.weight!r}")
    return float(task.weight)


# goals ------------------------------------------------------------------------------------------------------------------

def _blocks(model: Model, task: Task, k: int) -> list[Block]:
    """Return the equations of task number k."""
    goals = [name for name in _GOALS if getattr(task, name) is not None]
    place = f"task {task.label}: "
    if not goals:
        raise UsageError(f"{place}no goal: expected one of {', '.join(_GOALS)}")
    if ("centre_of_mass" in goals) != (task.link is None) or (task.link is None and len(goals) > 1):
        raise UsageError(f"{place}" + ("centre_of_mass is a goal of the whole robot: leave out the link and other goals"
                                       if "centre_of_mass" in goals else "expected the name of a link"))
    if "pose" in goals and {"position", "orientation"} & set(goals):
        raise UsageError(f"{place}pose already contains position and orientation; leave one of them out")
    for name, users in _USERS.items():
        if not set(users).intersection(goals) and not np.array_equal(getattr(task, name), getattr(Task, name)):
            raise UsageError(f"{place}{name} has no effect: it requires {' or '.join(users)}")
    link = WORLD_LINK if task.link is None else model.link_index(task.link)
    reference = WORLD_LINK if task.relative_to in (None, WORLD) else model.link_index(str(task.relative_to))
    if link == reference and task.link is not None:
        raise UsageError(f"{place}relative_to is the link itself; name another link")
    mask = _axes_mask(task, place)
    out: list[Block] = []
    for goal in goals:
        for kind, target in _GOAL_TARGETS[goal](task, place):
            part = mask if kind in (POSITION, MASS_CENTRE) else (True,) * EQUATION_COUNTS[kind]
            out.append(Block(kind, link, reference, target, part, k))
    if not all(mask) and not any(block.kind in (POSITION, MASS_CENTRE) for block in out):
        raise UsageError(f"{place}axes select coordinates of a position; the task has none")
    if "centre_of_mass" in goals and not any(each.mass > 0.0 for each in model.description.links):
        raise UsageError(f"{place}the robot has no mass, so its centre of mass is not defined")
    return out


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(np.shape(x))


def _axes_mask(task: Task, place: str) -> tuple[bool, ...]:
    if not isinstance(task.axes, str) or not task.axes or set(task.axes) - set("xyz"):
        raise UsageError(f"{place}axes: expected some of x, y, z such as 'xy', got {task.axes!r}")
    return tuple(axis in task.axes for axis in "xyz")


def _finite(task: Task, name: str, place: str, last: tuple[int, ...]) -> Array:
    """Return a finite array (..., *last) of a field."""
    x = as_array(getattr(task, name), f"{place}{name}", last)
    if not np.isfinite(x).all():
        raise ConfigurationError(f"{place}{name} is not finite")
    return x


def _unit(task: Task, name: str, place: str) -> Array:
    x = _finite(task, name, place, (3,))
    norm = np.linalg.norm(x, axis=-1, keepdims=True)
    if not (norm > 0.0).all():
        raise ConfigurationError(f"{place}{name} has no direction: its three numbers are zero")
    unit: Array = x / norm
    return unit


def _joined(*parts: Array) -> Array:
    """Return arrays (..., k) joined along the last axis."""
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in parts], axis=-1)


def _position_target(task: Task, place: str) -> list[tuple[int, Array]]:
    return [(POSITION, _joined(_finite(task, "point", place, (3,)), _finite(task, "position", place, (3,))))]


def _orientation_target(task: Task, place: str) -> list[tuple[int, Array]]:
    shape = _shape(task.orientation)
    if shape[-2:] == (3, 3):
        return [(ORIENTATION, _quaternions(_finite(task, "orientation", place, (3, 3)), f"{place}orientation"))]
    if shape[-1:] == (4,):
        u = _finite(task, "orientation", place, (4,))
        return [(ORIENTATION, _normalized(u, f"{place}orientation"))]
    raise ShapeError(f"{place}orientation has the wrong shape: expected (…, 4) or (…, 3, 3), got {shape}")


def _pose_target(task: Task, place: str) -> list[tuple[int, Array]]:
    shape = _shape(task.pose)
    if shape[-2:] == (4, 4):
        T = _finite(task, "pose", place, (4, 4))
        if np.abs(T[..., 3, :] - [0.0, 0.0, 0.0, 1.0]).max(initial=0.0) > _ROTATION_ERROR:
            raise ConfigurationError(f"{place}pose: the last row of a (4, 4) matrix must be 0 0 0 1")
        p, u = T[..., :3, 3], _quaternions(T[..., :3, :3], f"{place}pose")
    elif shape[-1:] == (7,):
        x = _finite(task, "pose", place, (7,))
        p, u = x[..., :3], _normalized(x[..., 3:], f"{place}pose")
    else:
        raise ShapeError(f"{place}pose has the wrong shape, got {shape}: expected (…, 4, 4), or (…, 7) for x y z and a "
                         "quaternion x y z w")
    return [(POSITION, _joined(_finite(task, "point", place, (3,)), p)), (ORIENTATION, u)]


def _quaternions(R: Array, name: str) -> Array:
    """Return unit quaternions (..., 4) of rotations (..., 3, 3)."""
    error = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(initial=0.0)
    if error > _ROTATION_ERROR or (np.linalg.det(R) < 0.0).any():
        raise ConfigurationError(f"{name} is not a rotation: R^T R differs from 1 by {error:.2g}, or its determinant is negative")
    return continuous_quaternions(R.reshape(-1, 3, 3)).reshape(*R.shape[:-2], 4)


def _normalized(u: Array, name: str) -> Array:
    norm = np.linalg.norm(u, axis=-1, keepdims=True)
    if np.abs(norm - 1.0).max(initial=0.0) > _ROTATION_ERROR:
        check_quaternion(name, u, "target")
    unit: Array = u / norm
    return unit


def _direction_target(task: Task, place: str) -> list[tuple[int, Array]]:
    return [(DIRECTION, _joined(_unit(task, "axis", place), _unit(task, "direction", place)))]


def _look_at_target(task: Task, place: str) -> list[tuple[int, Array]]:
    return [(LOOK_AT, _joined(_unit(task, "axis", place), _finite(task, "point", place, (3,)),
                              _finite(task, "look_at", place, (3,))))]


def _distance_target(task: Task, place: str) -> list[tuple[int, Array]]:
    x = _finite(task, "distance", place, ())[..., None]
    if not (x > 0.0).all():
        raise ConfigurationError(f"{place}distance: expected > 0, got {float(x.min()):g} (for coincident points use position)")
    return [(DISTANCE, _joined(_finite(task, "point", place, (3,)), _finite(task, "reference_point", place, (3,)), x))]


def _centre_target(task: Task, place: str) -> list[tuple[int, Array]]:
    return [(MASS_CENTRE, _finite(task, "centre_of_mass", place, (3,)))]


_GOAL_TARGETS: dict[str, Callable[[Task, str], list[tuple[int, Array]]]] = {
    "pose": _pose_target, "position": _position_target, "orientation": _orientation_target, "direction": _direction_target,
    "look_at": _look_at_target, "distance": _distance_target, "centre_of_mass": _centre_target}


def posture_of(model: Model, posture: ArrayLike | Mapping[str, ArrayLike]) -> tuple[Array, Array]:
    """Return the configuration (nq,) of a preference and the weights (nv,) of its coordinates: 1 for those that are given."""
    if not isinstance(posture, Mapping):
        q = as_single_state(posture, "posture", (model.nq,))
        check_configuration(model, q, "posture")
        return q, np.ones(model.nv)
    q, weight = with_joint_values(model, model.neutral(), posture, "posture"), np.zeros(model.nv)
    for name in posture:
        weight[model.v_index(name)] = 1.0
    return q, weight
