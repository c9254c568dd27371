"""Prescribed poses of ball and free joints: by signals, waypoints or the columns of a recorded motion."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.codegen.rhs import read_signal
from liedyn.codegen.trace import traced_module
from liedyn.dynamics.scales import Scales, model_scales
from liedyn.errors import Place, ScenarioError
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.scenario import Column, Constant, Motion, Prescribe, Waypoints
from liedyn.kernels.simulation.right_hand_side import MotionWorkspace
from liedyn.kernels.simulation.signals import ORDER, POSITION, VELOCITY, Poses
from liedyn.model.model import Model
from liedyn.model.spatial import angle_functions, right_jacobian
from liedyn.simulation.signals.curves import Curve, extend_constant, make_finite_curve, spline
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose

# A curve of rotations through waypoints whose angular velocity and acceleration are continuous --------------------------

# Between waypoints i and i + 1, R = R_i exp x(t) with a cubic rotation vector x; the rates at the waypoints make the angular
# acceleration continuous (the construction of SciPy's `RotationSpline`, after Y. Park, I. Kang, B. Ravani, Smooth invariant
# interpolation of rotations, ACM Transactions on Graphics 16, 1997):
#
#     2 J_i w_i / h_i + 4 (1/h_i + 1/h_{i+1}) w_{i+1} + 2 J_{i+1}^-1 w_{i+2} / h_{i+1} = 6 (r_i / h_i^2 + r_{i+1} / h_{i+1}^2) -
# N_i
#
# with r_i = log(R_i^T R_{i+1}), J_i the right Jacobian of exp there, and N_i the part of the angular acceleration at the end of
# piece i that is quadratic in the rate.

MAX_TURN = 3.1                       # rad: the direction of a larger turn between two waypoints depends on rounding
_MAX_ITERATIONS = 500
_RATE_TOLERANCE = 32e-16  # of the maximum rate: rounding of the banded equations


class SplineNotSolvedError(ValueError):
    """The iteration for the rates at the waypoints does not converge: the rotation is too fast for its waypoints."""


def rotation_spline(t: Array, quaternions: Array, first: ArrayLike = (0.0, 0.0, 0.0),
                    last: ArrayLike = (0.0, 0.0, 0.0)) -> tuple[Array, Array]:
    """Return quaternions without jumps of sign, and coefficients (n - 1, 3, 4) of rotation vectors in powers of t - t_i.

    t            (n,) increasing
    quaternions  (n, 4) x y z w
    first, last  angular velocities in the body at the ends [rad/s]

    The powers are ascending. Raises SplineNotSolvedError.
    """
    u = _align_signs(np.array(quaternions, dtype=float))
    r, h = _rotation_vectors(u[:-1], u[1:]), np.diff(t)[:, None]
    w = _waypoint_rates(r, h, np.array(first, dtype=float), np.array(last, dtype=float))
    dx0, dx1 = w[:-1], np.linalg.solve(right_jacobian(r), w[1:, :, None])[..., 0]
    # cubic from 0 to r with these rates at the ends
    coefficients = np.stack([np.zeros_like(r), dx0, (3 * r / h - 2 * dx0 - dx1) / h, (dx0 + dx1 - 2 * r / h) / h**2], axis=-1)
    return u, coefficients


def rotation_curves(t: Array, u: Array, coefficients: Array, constant_ends: bool) -> list[Curve]:
    """Return the curves of the three rotation vector components and the four quaternion components.

    constant_ends   whether they are constant before and after the waypoints, which then are knots; otherwise the first and the
                    last piece continue
    """
    pieces = np.zeros((7, len(t) - 1, ORDER))
    pieces[:3, :, :4], pieces[3:, :, 0] = coefficients.transpose(1, 0, 2), u[:-1].T
    curves = [Curve(t[:-1].copy(), piece, t if constant_ends else np.empty(0)) for piece in pieces]
    ends = np.vstack([np.zeros((3, 2)), u[[0, -1]].T])
    return [extend_constant(curve, t, x) for curve, x in zip(curves, ends, strict=True)] if constant_ends else curves


def rate_at_start(t: Array, quaternions: Array) -> Array:
    """Return the angular velocity in the body at the first of a few samples, from the polynomial through their rotation vectors.

    For the last sample, pass the samples in reverse order.
    """
    x = _rotation_vectors(np.repeat(quaternions[:1], len(t), axis=0), quaternions)
    return np.asarray(np.linalg.solve(np.vander(t[1:] - t[0], len(t), increasing=True)[:, 1:], x[1:])[0])


def largest_turn(quaternions: Array) -> tuple[int, float]:
    """Return the index of the waypoint before the maximum rotation between two waypoints, and its angle [rad]."""
    angle = np.linalg.norm(_rotation_vectors(quaternions[:-1], quaternions[1:]), axis=1)
    return int(np.argmax(angle)), float(angle.max(initial=0.0))


# rates at the waypoints ---------------------------------------------------------------------------------------------------
def _waypoint_rates(r: Array, h: Array, first: Array, last: Array) -> Array:
    """Return the (n, 3) rates at the waypoints, by iteration over the quadratic part."""
    from scipy.linalg import solve_banded

    n = len(r) - 1                                            # inner waypoints
    w = np.vstack([first, (r / h)[1:], last])
    if n == 0:
        return w
    J, eye = right_jacobian(r), np.eye(3)
    J_inv = np.linalg.inv(J)
    blocks = {-1: 2 * J[1:n] / h[1:n, None], 0: 4 * (1 / h[:-1] + 1 / h[1:])[..., None] * eye,
              1: 2 * J_inv[1:n] / h[1:n, None]}
    banded = _banded_matrix(blocks, n)
    steady = 6 * (r[:-1] / h[:-1]**2 + r[1:] / h[1:]**2)
    steady[0] -= 2 * J[0] @ first / h[0]
    steady[-1] -= 2 * J_inv[n] @ last / h[n]
    fastest = np.abs(r / h).max()
    for _ in range(_MAX_ITERATIONS):
        b = steady - _quadratic(r[:-1], np.einsum("nij,nj->ni", J_inv[:-1], w[1:-1]))
        rates = solve_banded((5, 5), banded, b.ravel()).reshape(n, 3)
        change = np.abs(rates - w[1:-1]).max()
        w[1:-1] = rates
        if change <= _RATE_TOLERANCE * max(fastest, np.abs(rates).max()):
            return w
        if not np.isfinite(change):
            break
    raise SplineNotSolvedError


def _banded_matrix(blocks: Mapping[int, Array], n: int) -> Array:
    """Return 3 x 3 blocks on three diagonals in the format of `scipy.linalg.solve_banded`."""
    A = np.zeros((11, 3 * n))
    for offset, stack in blocks.items():
        for i, j in np.ndindex(3, 3):
            A[5 - 3 * offset + i - j, 3 * max(offset, 0) + j::3][:len(stack)] = stack[:, i, j]
    return A


def _quadratic(x: Array, dx: Array) -> Array:
    """Return dw - J ddx for the rate dx of a rotation vector x, see `lie.so3.rotation_vector_motion`."""
    _, _, c, slope_b, slope_c = angle_functions(np.sum(x * x, axis=1))
    y = np.cross(x, dx)
    rate = 2 * np.sum(x * dx, axis=1)
    return np.asarray(c[:, None] * np.cross(dx, y) + rate[:, None] * (slope_c[:, None] * np.cross(x, y) - slope_b[:, None] * y))


def _rotation_vectors(u: Array, r: Array) -> Array:
    """Return the (n, 3) rotation vectors from the rotations u to r, with angles of at most pi."""
    from scipy.spatial.transform import Rotation
    return np.asarray((Rotation.from_quat(u).inv() * Rotation.from_quat(r)).as_rotvec())


def _align_signs(u: Array) -> Array:
    """Return the quaternions with the sign nearest to the previous one."""
    turned = np.r_[u[0, 3] < 0.0, np.sum(u[:-1] * u[1:], axis=1) < 0.0]
    return np.asarray(u * np.where(np.cumsum(turned) % 2 == 1, -1.0, 1.0)[:, None])


# prescribed poses -------------------------------------------------------------------------------------------------------

_AXES = ("x", "y", "z", "roll", "pitch", "yaw")
_UNUSED = -1
_END_ROWS = 4            # number of rows from which the rate at the end of a recorded motion is computed
_UNIT_NORM = 1e-6        # tolerance of norms: quaternions with seven digits are accepted


class PoseTable:
    """Prescribed poses, added one by one; `poses` returns them as arrays for the kernels."""

    def __init__(self, model: Model, compiler: SignalCompiler):
        self.model, self.compiler = model, compiler
        self.rows: list[tuple[int, int, bool, bool]] = []
        self.signals: list[int] = []

    def add(self, name: str, drive: Prescribe, n: int) -> list[int]:
        """Add the pose of joint `name` with n coordinates, 3 or 6. Return the signal of each coordinate, for messages."""
        motion, free = drive.signals, n == 6
        if isinstance(motion, Waypoints):
            signals = self._waypoints(name, motion, free)
        elif isinstance(motion, Motion):
            if motion.xyz and not free:
                raise _no_position_error(name, motion.xyz[0].place)
            signals = motion_signals(self.compiler, name, motion)
        elif isinstance(motion, Column) and motion.name is None:
            signals = self._recorded_pose(name, motion, free)
        else:
            raise ScenarioError(f"the position of {name}, a {'free' if free else 'ball'} joint, is prescribed as a pose",
                                place=drive.place, expected="waypoints, or rpy with three signals"
                                + (" and xyz with three" if free else ""))
        self._append(self.model.q_index(name).start, self.model.v_index(name).start, free, signals)
        return [*signals[3:6], *(signals[:3] if free else ())]

    def add_target(self, name: str, motion: Motion | Waypoints) -> None:
        """Add a pose that belongs to no joint."""
        if isinstance(motion, Waypoints):
            self._append(0, 0, True, self._waypoints(name, motion, True))
        else:
            self._append(0, 0, True, motion_signals(self.compiler, name, motion))

    def _append(self, q: int, v: int, free: bool, signals: list[int]) -> None:
        self.rows.append((q, v, free, len(signals) == 10))
        self.signals += signals + [_UNUSED] * (10 - len(signals))

    @property
    def poses(self) -> Poses:
        """The poses as arrays for the kernels."""
        q, v, free, uses_rotation_vector = np.array(self.rows, dtype=np.int64).reshape(-1, 4).T.copy()
        return Poses(q, v, free, uses_rotation_vector, np.array(self.signals, dtype=np.int64))

    def _waypoints(self, name: str, waypoints: Waypoints, free: bool) -> list[int]:
        points = waypoints.points
        turns = np.array([point.turn for point in points])
        place = next((point.place for point in points if point.xyz), None)
        if place is not None and not free:
            raise _no_position_error(name, place)
        t = np.array([point.t for point in points])
        turn = _pose_rotation(name, waypoints.place, t, turns, constant_ends=True)
        position = [make_finite_curve(waypoints.place, spline, [(point.t, (point.xyz or (0.0,) * 3)[k]) for point in points])
                    for k in range(3)]
        return [self._add_curve(curve, _pose_purpose(axis, name), waypoints)
                for axis, curve in zip((*_AXES, *("quaternion",) * 4), (*position, *turn), strict=True)]

    def _recorded_pose(self, name: str, source: Column, free: bool) -> list[int]:
        """Return the signals of the pose in all rows of a CSV."""
        q = self.model.q_index(name)
        names = self.model.q_names[q]
        t, turns = np.empty(0), []
        for column in names[-4:]:
            t, x, _ = self.compiler.samples(replace(source, name=f"q.{column}"), _pose_purpose("quaternion", name))
            turns.append(x)
        u = np.column_stack(turns)
        norm = np.linalg.norm(u, axis=1)
        k = int(np.argmax(np.abs(norm - 1.0)))
        if not abs(norm[k] - 1.0) <= _UNIT_NORM:
            raise ScenarioError(f"the quaternion of {name} in {source.file} is not of unit norm at t = {t[k]:g} s",
                                place=source.place, found=float(norm[k]), expected="norm 1")
        turn = _pose_rotation(name, source.place, t, u / norm[:, None], constant_ends=False)
        position = [self.compiler.add(replace(source, name=f"q.{column}"), _pose_purpose(axis, name))
                    for axis, column in zip(_AXES, names[:3], strict=False)] if free else [_UNUSED] * 3
        return [*position, *(self._add_curve(curve, _pose_purpose(axis, name), source)
                             for axis, curve in zip((*_AXES[3:], *("quaternion",) * 4), turn, strict=True))]

    def _add_curve(self, curve: Curve, purpose: SignalPurpose, source: Waypoints | Column) -> int:
        if not np.isfinite(curve.coefficients).all():
            raise ScenarioError("the curve is not finite", place=source.place, expected="smaller values, or times farther apart")
        return self.compiler.add_program(curve, purpose, source.place)


def motion_signals(compiler: SignalCompiler, name: str, motion: Motion) -> list[int]:
    """Add the signals x y z roll pitch yaw of a motion with this name, and return their indices."""
    zero = (Constant(0.0, place=motion.place),) * 3
    for signal in (*motion.xyz, *motion.rpy):
        if isinstance(signal, Column) and signal.name is None:
            raise ScenarioError("the key column is missing", place=signal.place, expected="the name of a column")
    return [compiler.add(signal, _pose_purpose(axis, name))
            for axis, signal in zip(_AXES, (*(motion.xyz or zero), *(motion.rpy or zero)), strict=True)]


def _pose_purpose(axis: str, name: str) -> SignalPurpose:
    unit = "m" if axis in "xyz" else "rad" if axis in _AXES else ""
    return SignalPurpose(f"{axis} of {name}", state=False, unit=unit, interpolate="quintic", derivatives=2)


def _pose_rotation(name: str, place: Place, t: Array, turns: Array, constant_ends: bool) -> list[Curve]:
    k, angle = largest_turn(turns)
    if angle > MAX_TURN:
        raise ScenarioError(f"{name} turns by {angle:.4g} rad from t = {t[k]:g} s to the next pose at t = {t[k + 1]:g} s",
                            place=place, expected=f"at most {MAX_TURN:g} rad, since it takes the shorter direction",
                            hint="add a pose between them")
    first, last = np.zeros((2, 3)) if constant_ends else (rate_at_start(t[::step][:_END_ROWS], turns[::step][:_END_ROWS])
                                                          for step in (1, -1))
    try:
        with np.errstate(all="ignore"):
            return rotation_curves(t, *rotation_spline(t, turns, first, last), constant_ends)
    except ValueError:                                         # no convergence, or not finite where times are too close
        raise ScenarioError(f"no smooth rotation through the poses of {name} was found", place=place,
                            expected="poses that turn less from one to the next, or times farther apart") from None


def _no_position_error(name: str, place: Place) -> ScenarioError:
    return ScenarioError(f"{name} is a ball joint: it has no position", place=place, found="xyz", expected="rpy alone")


# prescribed motions -----------------------------------------------------------------------------------------------------
class PrescribedPose(NamedTuple):
    """A ball or free joint with prescribed pose, or one coordinate with prescribed position or velocity.

    q, v   its slices; q is empty at velocity level
    """

    joint: str
    name: str
    q: slice
    v: slice
    is_pose: bool
    model: Model

    def mismatch(self, state: tuple[Array, Array], target: tuple[Array, Array]) -> tuple[float, float]:
        """Return the maximum differences of positions and of velocities.

        Each is relative to the maximum value of its unit and to the characteristic size. A quaternion equals its negative.
        """
        q, begins, scales = state[0][self.q].copy(), target[0][self.q], model_scales(self.model)
        if self.is_pose and q[-4:] @ begins[-4:] < 0.0:
            q[-4:] *= -1.0
        rates = [f"{unit}/s" for unit in self.model.v_units[self.v]]
        return _relative_difference(q, begins, self.model.q_units[self.q],
                                    scales), _relative_difference(state[1][self.v], target[1][self.v], rates, scales)

    def format(self, x: Array) -> str:
        """Return the coordinates as text for messages."""
        components = ", ".join(f"{number:.9g}" for number in x)
        return f"[{components}]" if self.is_pose else components


def _relative_difference(values: Array, target: Array, units: Sequence[str], scales: Scales) -> float:
    gap = 0.0
    for unit in set(units):
        same = np.array(units) == unit
        gap = max(gap, float(np.abs(values - target)[same].max() / np.abs(target[same]).max(initial=scales.unit_scale(unit))))
    return gap


def prescribed_motions(problem: InitialValueProblem) -> list[PrescribedPose]:
    """Return the motions that are prescribed at position or velocity level."""
    motions, schedule = [], problem.schedule
    for joint in problem.model.joints:
        if joint.screws is None and schedule.level[joint.v.start] == POSITION:
            motions.append(PrescribedPose(joint.name, joint.name, joint.q, joint.v, True, problem.model))
            continue
        for k in range(joint.v.start, joint.v.stop):
            if schedule.level[k] in (POSITION, VELOCITY):
                i = schedule.q_of_v[k]
                q = slice(i, i + 1) if schedule.level[k] == POSITION else slice(0)
                motions.append(PrescribedPose(joint.name, problem.model.v_names[k], q, slice(k, k + 1), False, problem.model))
    return motions


def prescribed_state(problem: InitialValueProblem, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """Return q and v with the prescribed motions at time t. Raises ScenarioError if a signal is not finite."""
    schedule, signals, poses = problem.schedule, problem.signals, problem.schedule.poses
    q, v, work = np.array(q, dtype=float), np.array(v, dtype=float), problem.workspace()
    work.q[:], work.v[:] = q, v
    for motion in prescribed_motions(problem):
        if not motion.is_pose:
            x, dx = _finite_signal(problem, schedule.signal[motion.v.start], t, work, 2)
            q[motion.q], v[motion.v] = x, x if schedule.level[motion.v] == VELOCITY else dx
    for k in poses.signal[poses.signal >= 0]:
        _finite_signal(problem, k, t, work, 3)
    with np.errstate(all="ignore"):
        traced_module("kernels.simulation.signals").prescribe_poses(poses, signals, np.float64(t), q, v, np.zeros_like(v), work)
    return q, v


def _finite_signal(problem: InitialValueProblem, k: int, t: float, work: MotionWorkspace, count: int) -> tuple[float, ...]:
    """Return signal k and its derivatives, `count` numbers. Raises ScenarioError if they are not finite."""
    jet = read_signal(problem.signals, k, t, work.q, work.v)[:count]
    if not np.isfinite(jet).all():
        raise ScenarioError(f"the {problem.signal_names[k]} is not finite at t = {t:g}", place=problem.signal_locations[k],
                            found=f"{jet[0]}, derivative{'s' * (count > 2)} {' and '.join(map(str, jet[1:]))}")
    return jet
