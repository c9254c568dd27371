"""Inverse kinematics: configurations in which links have poses, positions, directions or distances, for one or many targets."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask, short
from liedyn.codegen.specialize import GeneratedFunction, data_address, generated_function, is_enabled, specialization_of
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.batching.calls import check_configuration, thread_workspace
from liedyn.dynamics.batching.threads import chunks, run_on_threads
from liedyn.dynamics.constraints.assembly import coordinate_mask
from liedyn.dynamics.constraints.rank import equation_weights
from liedyn.dynamics.joint_values import neutral_within_limits, with_joint_values
from liedyn.dynamics.kinematic_tasks import TaskEquations, Tasks, posture_of, task_equations_of, task_list
from liedyn.dynamics.manifold import difference, generator_of_seed
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, LiedynWarning, ShapeError, UsageError, list_names, warn
from liedyn.immutable import Immutable
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.batch_blocks import OK
from liedyn.kernels.task_equations import task_equations, task_equations_generic, task_workspace_size
from liedyn.kernels.task_solver import (
    N_STATISTICS,
    REACHED,
    STARTS,
    STEPS,
    solve_tasks,
    task_solver_workspace_size,
)
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model
from liedyn.numba_tools.decorators import compile_entry_point, entry_point_address

_ROUNDING = 32 * np.finfo(float).eps   # of the maximum distance from the world's origin: error of a position
_JUMP = 0.5                            # rad, or lengths of the robot: a larger change between rows of a path is reported
_SPREAD = np.pi                        # rad, or lengths of the robot: of random starts of coordinates without limits
_WORK = 30                             # a target takes as long as so many evaluations of the kinematics
_MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class InverseKinematics(Immutable):
    """Configurations for targets, as returned by `inverse_kinematics`. Leading axes are those of the targets.

    q                (..., nq)
    reached          (...,) whether all tasks are fulfilled, with loops closed and within the limits
    position_error   (..., tasks) remaining distance of each task [m]; 0 for a task without positions
    angle_error      (..., tasks) remaining angle of each task [rad]; 0 for a task without rotations
    closure_error    (...,) maximum residual of loops and couplings [rad | m]
    iterations       (...,) steps, of all searches
    searches         (...,) number of starts: 1 if the guess led to the target
    tasks            names of the tasks
    at_limits        names of coordinates that are at a limit, for each target that is not reached: {target number: names}
    warnings         tuple of LiedynWarning

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.inverse_kinematics(model, {"tip": [-0.4, 0, 0.2]}, [0.3, 0.4])
    <InverseKinematics: reached, q [...], error ... m, 0 rad, ... iterations>
    """

    q: Array
    reached: Mask
    position_error: Array
    angle_error: Array
    closure_error: Array
    iterations: Integers
    searches: Integers
    tasks: tuple[str, ...]
    at_limits: dict[int, tuple[str, ...]] = field(default_factory=dict, compare=False)
    warnings: tuple[LiedynWarning, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        if self.reached.ndim == 0:
            how = "reached" if self.reached else "not reached"
            return (f"<InverseKinematics: {how}, q {short(self.q)}, error {self.position_error.max():.2g} m, "
                    f"{self.angle_error.max():.2g} rad, {int(self.iterations)} iterations>")
        if not self.reached.size:
            return "<InverseKinematics: no targets>"
        if self.reached.all():
            return f"<InverseKinematics: all {self.reached.size} targets reached, {self.iterations.mean():.3g} iterations each>"
        return f"<InverseKinematics: {int(self.reached.sum())} of {self.reached.size} targets reached; {self.miss()}>"

    def miss(self) -> str:
        """Return which task misses its target most, and by how much; an empty text if all are reached."""
        if self.reached.all():
            return ""
        missed, count = ~self.reached.reshape(-1), len(self.tasks)
        p, a = self.position_error.reshape(-1, count), self.angle_error.reshape(-1, count)
        size = np.where(missed[:, None], p / max(float(p.max()), _SMALL) + a / max(float(a.max()), _SMALL), -1.0)
        k, task = np.unravel_index(int(np.argmax(size)), size.shape)
        place = "" if self.reached.ndim == 0 else f"target {k}: "
        limits = self.at_limits.get(int(k), ())
        at = f"; at limits: {list_names(limits, 6)}" if limits else ""
        closure = float(self.closure_error.reshape(-1)[k])
        opened = f"; loops are open by {closure:.3g}" if closure > _OPEN else ""
        return f"{place}{self.tasks[task]} misses by {p[k, task]:.3g} m and {a[k, task]:.3g} rad{at}{opened}"


_OPEN = 1e-9             # a smaller residual of loops is not reported
_SMALL = 1e-9            # m or rad: a smaller error is rounding next to a task that is missed


def inverse_kinematics(model: Model, tasks: Tasks, q0: ArrayLike | Mapping[str, ArrayLike] | None = None, *,  # noqa: PLR0913 - independent options
                       posture: ArrayLike | Mapping[str, ArrayLike] | None = None, fixed: Sequence[str] = (), path: bool = False,
                       restarts: int | None = None, seed: int = 0, limits: bool = True, tolerance: float = 1e-10,
                       constraint_motion: Mapping[str, Any] | None = None) -> InverseKinematics:
    """Return configurations that fulfil tasks such as poses of links, with loops closed and within joint limits.

    Parameters
    ----------
    model : Model
    tasks : {link: pose or position}, or Task, or a list of them
        Poses are (..., 4, 4), or (..., 7) with a quaternion x y z w; positions (..., 3). Leading axes are those of the targets.
        For directions, distances, priorities, … see `Task`.
    q0 : (nq,) or (..., nq) array, or {joint: position}, optional
        Guess, from which the first search starts, within the limits. Default, and joints without a value: neutral, or the middle
        of limits that exclude it.
    posture : (nq,) array, or {joint: position}, optional
        Preferred configuration. Among the configurations that fulfil the tasks, the search moves to the one nearest to it.
    fixed : names, optional
        Joints, or coordinates such as "u.1", that keep the values of the guess.
    path : bool
        Whether the targets (N, ...) are one motion: each search starts at the previous configuration, after a target that was
        missed also at the last one that was reached. Random configurations are tried until a target is reached.
    restarts : int, optional
        Maximum number of further starts at random configurations if the guess does not lead to the target. Default: 40.
    seed : int
        Seed of these starts. A target has the same starts in any batch.
    limits : bool
        Whether positions stay within the limits of the joints.
    tolerance : float
        Maximum error of a target that counts as reached [rad, or m per characteristic length of the robot].
    constraint_motion : optional
        Motion of the frames of driven loops, as for `constraint_residual`.

    Returns
    -------
    InverseKinematics
        For a target that is not reached, the configuration with the smallest error, and a warning.

    Raises
    ------
    UsageError, NameLookupError, ShapeError, ConfigurationError

    Notes
    -----
    Levenberg-Marquardt steps on the configuration manifold with exact Jacobians. Tasks with a
    larger `priority` number are solved in the null space of the others.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> solution = ld.inverse_kinematics(model, {"tip": [-0.4, 0, 0.2]}, [0.3, 0.4])
    >>> bool(solution.reached), ld.link_pose(model, solution.q, "tip")[:3, 3].round(9) + 0.0
    (True, array([-0.4,  0. ,  0.2]))
    """
    if not model.nv:
        raise UsageError(f"{model.name} has no moving joint")
    if not (isinstance(tolerance, (int, float, np.number)) and 0.0 < tolerance < 1.0):
        raise UsageError(f"tolerance: expected a number between 0 and 1, got {tolerance!r}")
    if restarts is not None and (isinstance(restarts, bool) or not isinstance(restarts, (int, np.integer)) or restarts < 0):
        raise UsageError(f"restarts: expected an integer >= 0, got {restarts!r}")
    preference = None if posture is None else posture_of(model, posture)
    equations = task_equations_of(model, task_list(tasks), preference, float(tolerance), constraint_motion)
    if path and len(equations.lead) != 1:
        raise ShapeError(f"path: expected targets (N, …) with one leading axis, got leading axes {equations.lead}")
    guess, lead = _guess(model, q0, equations.lead, limits)
    if path and guess.shape[0] != 1:
        raise ShapeError(f"path: q0 is the guess of the first target: expected ({model.nq},), got {len(guess)} guesses")
    count = int(np.prod(lead, dtype=int))
    if equations.lead != lead:
        size = equations.target.shape[1]
        equations = equations._replace(
            target=np.broadcast_to(equations.target.reshape(*equations.lead, size), (*lead, size)).reshape(count, size),
            far=np.broadcast_to(equations.far.reshape(equations.lead), lead).reshape(-1))
    searcher = _Searcher(model, equations, coordinate_mask(model, fixed), limits)
    q, residual, statistics = searcher.solve(guess, count, path, 40 if restarts is None else int(restarts), seed)
    return _result(model, equations, searcher, lead, q, residual, statistics, path)


def _guess(model: Model, q0: ArrayLike | Mapping[str, ArrayLike] | None, lead: tuple[int, ...],
           limits: bool) -> tuple[Array, tuple[int, ...]]:
    """Return the guesses (N or 1, nq), and the leading axes of targets and guesses."""
    if q0 is None or isinstance(q0, Mapping):
        start = neutral_within_limits(model) if limits else model.neutral()
        return with_joint_values(model, start, q0 or {}, "q0")[None], lead
    q = as_array(q0, "q0", (model.nq,))
    check_configuration(model, q, "q0")
    if q.ndim == 1:
        return q[None].copy(), lead
    try:
        whole = np.broadcast_shapes(lead, q.shape[:-1])
    except ValueError:
        raise ShapeError(f"q0 does not match the targets: got {q.shape}, with targets {lead}") from None
    return np.broadcast_to(q, (*whole, model.nq)).reshape(-1, model.nq).copy(), whole


class _Searcher:
    """The arrays of a call for the kernels."""

    def __init__(self, model: Model, equations: TaskEquations, locked: Mask, limits: bool):
        self.model, self.equations, self.locked = model, equations, locked
        tree, nv = tree_views.py_func(model.index, model.constants), model.nv
        single = np.flatnonzero(tree.kind[1:] == ONE_DOF) + 1
        v, S = tree.iv[single], tree.S.reshape(-1, 2)
        self.q_of_v, turns = np.full(nv, -1, dtype=np.int64), np.zeros(nv, dtype=np.int64)
        self.q_of_v[v] = tree.iq[single]
        turns[v] = (np.abs(np.abs(S[single, 0]) - 1.0) < 1e-12) & (S[single, 1] == 0.0) & (not model.nc) & ~locked[v]
        self.lower, self.upper = (np.array(x) if limits else np.full(nv, end)
                                  for x, end in ((model.lower, -np.inf), (model.upper, np.inf)))
        length = model_scales(model).length
        slides = np.array(model.v_units) == "m"
        self.unit = np.where(slides, length, 1.0)
        self.levels = len(equations.edges) - 1
        self.arrays = np.concatenate([equations.edges, self.q_of_v, locked, turns, slides]).astype(np.int64)
        self.factors = np.concatenate([equations.scale, equations.weight, equations.tolerance, self.unit, self.lower, self.upper])

    def solve(self, guess: Array, count: int, path: bool, restarts: int, seed: int) -> tuple[Array, Array, Array]:
        """Return q (N, nq), dimensionless residuals (N, m) and statistics of the targets."""
        model, e = self.model, self.equations
        m, nv = len(e.scale), model.nv
        starts = _SPREAD * self.unit * generator_of_seed(seed).uniform(-1.0, 1.0, (restarts, nv)) * ~self.locked
        target = np.ascontiguousarray(np.column_stack([e.target, self._rounding(guess, count)]))
        results = np.zeros((count, model.nq)), np.zeros((count, m)), np.zeros((count, N_STATISTICS))
        if not count:
            return results
        compile_entry_point(solve_tasks)
        for generic in (False, True):
            code = self._run(generic, starts, guess, target, results, path)
            if code == OK:
                return results
        raise ComputationError("the tasks cannot be computed at the guess: its positions are too large, or not finite")

    def _rounding(self, guess: Array, count: int) -> Array:
        """Return the rounding of positions (N,) [m]: it depends on the distances from the world's origin."""
        e, q_units = self.equations, np.array(self.model.q_units)
        fixed = np.abs(tree_views.py_func(self.model.index, self.model.constants).T0.reshape(-1, 12)[:, 9:]).max(initial=0.0)
        far = np.abs(guess[:, q_units == "m"]).max(axis=1, initial=fixed)
        rounding: Array = _ROUNDING * np.maximum(np.broadcast_to(far, (count,)), np.broadcast_to(e.far, (count,)))
        return rounding

    @property
    def _workspace_size(self) -> int:
        model, e = self.model, self.equations
        frames = model.n_frames if model.nc else 0
        return int(task_workspace_size(model.n_bodies, model.nq, model.nv, frames, len(e.scale), model.driven, e.target.shape[1]))

    def _generated(self) -> GeneratedFunction | None:
        """Return the generated code of the equations; None if generic kernels are to be used."""
        if not is_enabled():
            return None
        model, e = self.model, self.equations
        m = len(e.scale)
        arrays = np.zeros((1, model.nq)), e.target[:1], np.zeros((1, m)), np.zeros((1, m * model.nv))
        specialization = specialization_of(task_equations, self._workspace_size, (e.blocks, *model._arrays[2:4]), arrays)
        return generated_function(model, specialization, [x.shape[1:] for x in arrays])

    def _header(self, workspace: Array) -> Integers:
        """Return the numbers of `task_equations_generic`. The arrays must exist as long as they are used."""
        arrays = (*self.model._arrays[:4], self.equations.blocks, workspace)
        entries = [number for x in arrays for number in (data_address(x) if x.size else 0, x.size)]
        return np.array([*entries, self.equations.target.shape[1], len(self.equations.scale)], dtype=np.int64)

    def _run(self, generic: bool, starts: Array, guess: Array, target: Array, results: tuple[Array, ...], path: bool) -> int:
        index, constants, *_ = self.model._arrays
        nq, nv, m, size = self.model.nq, self.model.nv, len(self.equations.scale), self._workspace_size
        generated = None if generic else self._generated()
        address = entry_point_address(task_equations_generic) if generated is None else generated.address
        whole = np.concatenate([[generated is None, self.levels, self.equations.has_posture, path, _MAX_STEPS],
                                self.arrays]).astype(np.int64)
        edges = [0, len(target)] if path else chunks(len(target), _WORK * self.model.n_bodies)
        solver_size = task_solver_workspace_size(nq, nv, m)

        def part(first: int, last: int) -> int:
            memory = thread_workspace(solver_size + size)
            header = self._header(memory[solver_size:])
            code: int = solve_tasks(address, data_address(header), index, constants, whole, self.factors, memory, starts, guess,
                                    target, *results, first, last)
            return code

        codes = [part(edges[0], edges[1])] if len(edges) == 2 else run_on_threads(part, edges)
        return next((code for code in codes if code != OK), OK)

    def equations_at(self, q: Array, target: int = 0) -> tuple[Array, Array]:
        """Return the residual (m,) and its derivative (m, nv) of a target at q (nq,)."""
        m, nv = len(self.equations.scale), self.model.nv
        arrays = [np.array(q, dtype=float), self.equations.target[target].copy(), np.zeros(m), np.zeros(m * nv)]
        generated = self._generated()
        if generated is None or generated.call(*arrays) != OK:
            compile_entry_point(task_equations_generic)
            workspace = np.zeros(self._workspace_size)
            header = self._header(workspace)
            task_equations_generic(data_address(header), *map(data_address, arrays))
        return arrays[2], arrays[3].reshape(m, nv)

    def fixed_beyond_limits(self, q: Array) -> tuple[str, ...]:
        """Return the names of fixed coordinates that are beyond their limits in q (N, nq)."""
        x = q[:, np.maximum(self.q_of_v, 0)]
        beyond = self.locked & (self.q_of_v >= 0) & ((x < self.lower) | (x > self.upper)).any(axis=0)
        return tuple(self.model.v_names[k] for k in np.flatnonzero(beyond))

    def at_limits(self, q: Array, target: int) -> tuple[str, ...]:
        """Return the names of coordinates that are at a limit in q (nq,) and move what misses the target."""
        x = q[np.maximum(self.q_of_v, 0)]
        at = (self.q_of_v >= 0) & ((x <= self.lower) | (x >= self.upper))
        if not at.any():
            return ()
        moves = (self.equations_at(q, target)[1][self.equations.task >= 0] != 0.0).any(axis=0) | (self.model.nc > 0)
        return tuple(self.model.v_names[k] for k in np.flatnonzero(at & moves))


def _result(model: Model, equations: TaskEquations, searcher: _Searcher, lead: tuple[int, ...], q: Array, residual: Array,
            statistics: Array, path: bool) -> InverseKinematics:
    length, nc = model_scales(model).length, model.nc
    errors = []
    for angle in (False, True):
        rows = [(equations.task == k) & (equations.is_angle == angle) for k in range(len(equations.labels))]
        errors.append(np.stack([np.linalg.norm(residual[:, mine], axis=1) for mine in rows], axis=-1))
    reached = statistics[:, REACHED] > 0.0
    closure = np.abs(residual[:, :nc] / equation_weights(model)).max(axis=1, initial=0.0)
    limits = {int(k): names for k in np.flatnonzero(~reached) if (names := searcher.at_limits(q[k], int(k)))}
    shape = (*lead, len(equations.labels))
    solution = InverseKinematics(
        q.reshape(*lead, model.nq), reached.reshape(lead), (length * errors[0]).reshape(shape), errors[1].reshape(shape),
        closure.reshape(lead), statistics[:, STEPS].astype(np.int64).reshape(lead),
        statistics[:, STARTS].astype(np.int64).reshape(lead), equations.labels, limits)
    warnings = _warnings(model, searcher, solution, q, path)
    warn(warnings)
    object.__setattr__(solution, "warnings", tuple(warnings))
    return solution


def _warnings(model: Model, searcher: _Searcher, solution: InverseKinematics, q: Array, path: bool) -> list[LiedynWarning]:
    out = []
    if names := searcher.fixed_beyond_limits(q):
        out.append(LiedynWarning("beyond-limits", f"fixed coordinates are beyond their limits: {list_names(names, 6)}"))
    if not solution.reached.all():
        count = "the target is" if solution.reached.ndim == 0 else \
            f"{int((~solution.reached).sum())} of {solution.reached.size} targets are"
        out.append(LiedynWarning("target-missed", f"{count} not reached; {solution.miss()}"))
    if path and len(q) > 1:
        steps = np.abs(difference(model, q[:-1], q[1:])) / searcher.unit
        row, k = np.unravel_index(int(np.argmax(steps)), steps.shape)
        if steps[row, k] > _JUMP:
            out.append(LiedynWarning("path-jumps", f"{model.v_names[k]} moves by {steps[row, k] * searcher.unit[k]:.3g} "
                                     f"{model.v_units[k]} between targets {row} and {row + 1} of the path: the targets are far "
                                     "apart, or near a singular configuration"))
    return out
