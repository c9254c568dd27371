"""Motions and robots of trajectory files, checks of recorded motions, and estimated errors of derived quantities."""
from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from liedyn.analysis.numerical_differentiation import (
    POINTS,
    continued,
    derivatives,
    errors,
    of_unit_norm,
    other_points,
    rates,
    sizes_to_judge_by,
    with_noise,
)
from liedyn.arrays import Array, ArrayLike, Wrenches
from liedyn.dynamics.batching.arrays import as_array, wrenches
from liedyn.dynamics.batching.calls import check_finite, find_non_unit_quaternion
from liedyn.dynamics.kinematics import difference
from liedyn.errors import (
    ConfigurationError,
    LiedynError,
    LiedynWarning,
    Place,
    ShapeError,
    TrajectoryError,
    UsageError,
    WarningLog,
    warn,
)
from liedyn.io.atomic_output import STDIO
from liedyn.io.robots.robot_formats import format_of_file
from liedyn.io.trajectory_csv import Trajectory, check_no_events, read_trajectory
from liedyn.model.description import ONE_DOF, Robot
from liedyn.model.model import Model, build
from liedyn.robot_files import load_description, read_model, yaml_of
from liedyn.simulation.control.joint_control import with_armatures
from liedyn.simulation.limits import limit_warnings, limits_exceeded
from liedyn.simulation.name_binding import joint_coordinates, unwrap_angle, v_to_q_indices
from liedyn.simulation.trajectory_columns import bind_columns, bind_wrenches, motion_columns, trajectory_header, unused_columns

# The robot that a trajectory file was recorded with, from its comments --------------------------------------------------

_NAMED = 8          # maximum number of columns named in a warning


def robot_of(trajectory: Trajectory, robot: str | Path | None = None, *, base: str | None = None,
             strict: bool = False, edits: tuple[str, ...] = ()) -> tuple[Model, tuple[LiedynWarning, ...]]:
    """Return the model of the recorded robot with the base, gravity and rotor inertias of the recording, and warnings.

    Parameters
    ----------
    robot : path, optional
        Robot file; default: the comment `# model:`, the model that a run was computed with, else the comment `# robot:`. Both are
        relative to the folder of the trajectory.
    base : "fixed" or "floating", optional
        Default: the comment `# base:`, else as the robot file says.
    strict : bool
        As in `robot_files.load`.
    edits : ("key.path=value", …), optional
        Changes of a robot YAML.

    Raises
    ------
    UsageError
        If neither an argument nor a comment names a robot.
    TrajectoryError
        For a comment that cannot be used.
    ModelError, CheckFailed
        As `robot_files.load`.
    """
    header, warnings = trajectory.header, WarningLog()
    recorded = _recorded_model(trajectory) if robot is None and header.get("model") else None
    path = Path(robot) if robot is not None else recorded or _named_robot(trajectory)
    if robot is None and recorded is None and header.get("model"):
        warnings.add("model-missing",
                     f"{header['model']}, the model that {trajectory.source} was recorded with, is missing: {path} is used")
    if base is None and "base" in header and header["base"] not in ("fixed", "floating"):
        raise TrajectoryError("unknown kind of base", place=Place(trajectory.source, key="# base"), found=header["base"],
                              expected="fixed or floating")
    loops = _named_file(trajectory, "loops", "file of loops") if header.get("loops") and recorded is None else None
    base = base or header.get("base")
    if edits:
        model = build(load_description(path, base, loops, edits))
    else:
        model = read_model(path, base=base, loops=loops, strict=strict)
    model, _ = as_recorded(model, trajectory)
    source = _path_of(trajectory, "robot") if recorded and header.get("robot") else path
    if source != path and source.is_file():                # shapes and meshes are in the robot file
        model = build(_described_in(model.description, os.fspath(source)))
    if "robot_sha256" in header and source.is_file() and _sha256(source) != header["robot_sha256"]:
        warnings.add("robot-changed",
                     f"{source} differs from the robot file that {trajectory.source} was recorded with"
                     + ("; the model of the run is used" if recorded else ""))
    return model, (*warnings, *attached_warnings(trajectory), *unknown_warnings(model, trajectory))


def as_recorded(model: Model, trajectory: Trajectory) -> tuple[Model, tuple[LiedynWarning, ...]]:
    """Return the model with the gravity and the rotor inertias of the recording, and warnings where those of the model differ.

    Raises TrajectoryError for a comment that cannot be used.
    """
    name, warnings = trajectory.source or "the trajectory", WarningLog()
    gravity, armatures = _gravity(trajectory), _armatures(model, trajectory)
    if gravity is not None and gravity != tuple(model.gravity):
        there, here = (" ".join(f"{x:.6g}" for x in vector) for vector in (gravity, model.gravity))
        warnings.add("gravity-differs",
                     f"the gravity of {name}, {there} m/s^2, is used instead of that of the model, {here} m/s^2")
        model = model.with_changes(gravity=gravity)
    own = {joint.name: joint.coordinate_parameters[0].armature for joint in model.description.joints if joint.name in armatures}
    other = {joint: x for joint, x in armatures.items() if x != own[joint]}
    if other:
        listing = ", ".join(f"{joint} {x:.6g} (model: {own[joint]:.6g})" for joint, x in other.items())
        warnings.add("armature-differs", f"the armatures of {name} are used instead of those of the model: {listing}")
        model = with_armatures(model, other)
    return model, tuple(warnings)


def unknown_warnings(model: Model, trajectory: Trajectory) -> list[LiedynWarning]:
    """Return a warning about columns that belong to no joint, link or constraint of the robot, if there are any."""
    unknown = unused_columns(model, trajectory)
    more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
    warning = LiedynWarning("unknown-columns",
                            f"unknown columns of {trajectory.source or 'the trajectory'} are ignored: "
                            f"{', '.join(unknown[:_NAMED])}{more}")
    return [warning] if unknown else []


def attached_warnings(trajectory: Trajectory) -> list[LiedynWarning]:
    """Return a warning if bodies were attached to the robot during the run, since the model does not have them."""
    attached = trajectory.header.get("attached")
    warning = LiedynWarning("attached-bodies",
                            f"the run of this file had bodies attached to {attached}: results are those of the robot without "
                            "them")
    return [warning] if attached else []


def _described_in(robot: Robot, source: str) -> Robot:
    """Return the robot with the source file `source` and the visual shapes of that file."""
    visuals = {}
    with suppress(LiedynError):                                # it may have changed since it was recorded
        visuals = format_of_file(Path(source)).read(Path(source)).visuals
    loops, couplings = (tuple(replace(one, place=Place(source)) for one in part) for part in (robot.loops, robot.couplings))
    return replace(robot, loops=loops, couplings=couplings, source=source, visuals=visuals)


def comments_for(header: dict[str, str], model: Model, output: str,
                 recorded: Trajectory | None = None) -> dict[str, str]:
    """Return comments with the paths of the robot, its file of loops and the model of the run relative to the folder of `output`.

    output    file that gets the comments
    recorded  trajectory that names the robot; None: the results are those of another robot, and the model of the run is not named
    """
    folder = "." if output == STDIO else os.path.dirname(os.path.abspath(output))
    if recorded is not None and recorded.header.get("model"):
        paths = {key: Path(os.path.relpath(_path_of(recorded, key), folder)).as_posix()
                 for key in ("robot", "loops", "model") if recorded.header.get(key)}
        kept = {key: recorded.header[key] for key in ("robot_sha256", "model_sha256") if key in recorded.header}
        return paths | {key: value for key, value in header.items() if key not in (*paths, "robot", "loops")} | kept
    named = {key: value for key, value in trajectory_header(model, folder=folder).items() if key in ("robot", "loops")}
    return named | {key: value for key, value in header.items() if key not in ("robot", "loops", "model", "model_sha256")}


def _recorded_model(trajectory: Trajectory) -> Path | None:
    """Return the file of the model that a run was computed with, None if missing. Raise TrajectoryError if it was changed."""
    path = _path_of(trajectory, "model")
    if not path.is_file():
        return None
    if _sha256(path) != trajectory.header.get("model_sha256"):
        raise TrajectoryError(f"{path} is not the model that the run was computed with",
                              place=Place(trajectory.source, key="# model"), expected="the file that the run has written",
                              hint="or use --robot")
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _path_of(trajectory: Trajectory, key: str) -> Path:
    folder = Path() if trajectory.source in (None, STDIO) else Path(trajectory.source).parent
    return Path(os.path.normpath(folder / trajectory.header[key]))


def _named_robot(trajectory: Trajectory) -> Path:
    named = trajectory.header.get("robot")
    if not named:
        raise UsageError(f"{trajectory.source} does not name a robot; use --robot")
    return _named_file(trajectory, "robot", "robot file", "or use --robot")


def _named_file(trajectory: Trajectory, key: str, what: str, hint: str | None = None) -> Path:
    named = trajectory.header[key]
    path = _path_of(trajectory, key)
    if not path.is_file():
        raise TrajectoryError(f"the {what} does not exist", place=Place(trajectory.source, key=f"# {key}"), found=named,
                              expected="a file relative to the folder of the trajectory", hint=hint)
    return path


def _armatures(model: Model, trajectory: Trajectory) -> dict[str, float]:
    """Return the rotor inertias {joint: armature} of the comment `# armatures: {"elbow": 0.1}`, added by a scenario."""
    text = trajectory.header.get("armatures")
    if text is None:
        return {}
    try:
        given = {str(name): float(x) for name, x in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        given = {"": math.nan}
    single = [joint.name for joint in model.joints if joint.v.stop - joint.v.start == 1]
    if not all(name in single and 0.0 <= x < math.inf for name, x in given.items()):
        raise TrajectoryError("invalid armatures", place=Place(trajectory.source, key="# armatures"), found=text,
                              expected="numbers of at least 0 by joints of the robot with one coordinate")
    return given


def _gravity(trajectory: Trajectory) -> tuple[float, ...] | None:
    """Return the gravity of the comment `# gravity: 0 0 -9.81` (brackets and commas are allowed); None without it."""
    text = trajectory.header.get("gravity")
    if text is None:
        return None
    try:
        gravity = tuple(float(x) for x in text.strip("[]()").replace(",", " ").split())
    except ValueError:
        gravity = ()
    if len(gravity) != 3 or not all(map(math.isfinite, gravity)):
        raise TrajectoryError("invalid gravity", place=Place(trajectory.source, key="# gravity"), found=text,
                              expected="three numbers")
    return gravity


# Checks of a recorded motion: angles that wrap by 2 pi, limits that it exceeds, angles that seem to be in degrees -------

_DEGREES = 2.0           # angles may be in degrees if one of them exceeds its limit by this factor
_TURN = 360.0            # jump of an angle in degrees that wraps
_JUMP = 60.0             # degrees: maximum change between rows without a jump, and maximum deviation of a jump from _TURN
_FEW = 0.1               # of the jump: maximum of the median change between rows
# Angles without limits may be in degrees if one of them
_SWING = 4 * np.pi       # rad: turns by more than this in both directions,
_FAST = 20.0             # rad/s: faster than this,
_MOVING = 2 * np.pi      # rad: while every angle that moves has at least this range (not so for wheels of vehicles),
_MIN_ROWS = 5            # minimum number of rows for a comparison of a rate with the changes of its quantity
_COMPARED = 20           # number of parts of the time over which these are compared
_NOISE_FACTOR = 9.0      # of the variance of the differences that noise causes: larger differences are significant
_FINE = 0.5              # second differences relative to the values: if larger, rows are too far apart for the trapezoidal rule
_CONTRADICTS = 0.3       # of the change: the integral of a wrong rate differs by more
_PROPORTIONAL = 0.9      # squared correlation: a higher one means that the rate is wrong by a factor
# of the largest change of a coordinate with the same unit: a coordinate that changes less is not compared
_STANDS = 0.01
_MOST = 2 * _TURN        # and no value exceeds two turns in degrees: motors and propellers turn farther


def unwrapped(model: Model, q: np.ndarray) -> tuple[np.ndarray, list[LiedynWarning]]:
    """Return configurations (N, nq) without jumps by full turns, and a warning if there were any.

    Raises TrajectoryError where limits exclude the unwrapped angles.
    """
    out, names = q, []
    for k, i in enumerate(v_to_q_indices(model)):
        if i < 0 or model.v_units[k] != "rad" or _degrees_wrap(q[:, i]):
            continue
        x, jumps = unwrap_angle(q[:, i], model.v_names[k], model.lower[k], model.upper[k])
        if jumps:
            out = out.copy() if out is q else out
            out[:, i] = x
            names.append(f"{model.v_names[k]} ({jumps} times)")
    return out, [LiedynWarning("angles-unwrapped",
                               f"angles that jump by 2 pi were unwrapped: {', '.join(names)}")] if names else []


def recorded_limit_warnings(model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray,
                            a: np.ndarray | None = None) -> list[LiedynWarning]:
    """Return warnings about exceeded limits, angles in degrees, and velocities and accelerations that contradict positions.

    q is (N, nq); v, tau and a are (N, nv). Without a, accelerations are not checked.
    """
    warnings = [*limit_warnings(limits_exceeded(model, t, q, v, tau), recorded=True), *_contradictions(model, t, q, v, a)]
    degrees = _in_degrees(model, q, v)
    return warnings + ([LiedynWarning("degrees",
                                      f"are the angles in degrees? {degrees}; the columns must be in rad")] if degrees else [])


def _contradictions(model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray | None) -> list[LiedynWarning]:
    """Return warnings about columns of v that are not the rates of q, and columns of a that are not the rates of correct v."""
    if len(t) < _MIN_ROWS:
        return []
    steps = difference(model, q[:-1], q[1:])
    angles = (np.array(v_to_q_indices(model)) >= 0) & (np.array(model.v_units) == "rad")
    steps[:, angles] -= 2 * np.pi * np.round(steps[:, angles] / (2 * np.pi))                  # angles may wrap
    positions = [f"q.{name if i >= 0 else name.rpartition('.')[0]}"
                 for name, i in zip(model.v_names, v_to_q_indices(model), strict=True)]
    found = _wrong_rates(model, t, np.vstack([np.zeros(model.nv), np.cumsum(steps, axis=0)]), v, "v", positions)
    if a is not None:
        found = _wrong_rates(model, t, v, a, "a", [f"v.{name}" for name in model.v_names]) | found
    return [LiedynWarning("contradicting-rates", found[name]) for name in model.v_names if name in found]


def _wrong_rates(model: Model, t: np.ndarray, x: np.ndarray, rate: np.ndarray, kind: str,
                 sources: Sequence[str]) -> dict[str, str]:
    """Return {coordinate: message} for columns of `rate` (N, nv) that are not the time derivatives of x (N, nv).

    Changes of x are compared with integrals of the rate over parts of the time. Differences within noise are accepted. Intervals
    that contain an event and coordinates whose rows are too far apart are not compared.

    kind     "v" or "a", for the message
    sources  names of the columns of x, for the message
    """
    dt, m = np.diff(t), max(len(t) // _COMPARED, 1)
    area = np.vstack([np.zeros(rate.shape[1]), np.cumsum(0.5 * (rate[1:] + rate[:-1]) * dt[:, None], axis=0)])
    whole = _without_events(dt, m)
    moved, integral = ((y[m:] - y[:-m])[whole] for y in (x, area))
    if not len(moved):
        return {}
    size, bend = np.sqrt(np.mean(rate**2, axis=0)), np.diff(rate, 2, axis=0)[_without_events(dt, 2)]
    fine = np.sqrt(np.sum(bend**2, axis=0) / max(len(bend), 1)) <= _FINE * size
    both = np.maximum(np.mean(moved**2, axis=0), np.mean(integral**2, axis=0))
    off = np.mean((moved - integral)**2, axis=0)
    noise = 2.0 * _noise_variance(x, dt) + m * np.median(dt)**2 * _noise_variance(rate, dt)
    units = np.array(model.v_units)
    largest = np.array([both[units == unit].max() for unit in units])
    differs = fine & (off > _CONTRADICTS**2 * both + _NOISE_FACTOR * noise) & (both > _STANDS**2 * largest)
    found = {}
    for k in np.flatnonzero(differs):
        name, ratio = model.v_names[k], _ratio(integral[:, k], moved[:, k])
        if size[k] == 0.0:
            found[name] = f"{kind}.{name} is zero, although {sources[k]} changes"
        elif ratio * _ratio(moved[:, k], integral[:, k]) > _PROPORTIONAL:
            guess = " (degrees?)" if abs(ratio / np.degrees(1.0) - 1.0) < _CONTRADICTS else " (its sign?)" if ratio < 0.0 else ""
            found[name] = f"{kind}.{name} is {ratio:.3g} times the rate of {sources[k]}{guess}"
        else:
            found[name] = f"{kind}.{name} is not the rate of {sources[k]}"
    return found


def _without_events(dt: np.ndarray, rows: int) -> np.ndarray:
    """Return a mask of rows after which the next `rows` steps contain no event (two rows with the same time)."""
    events = np.concatenate([[0], np.cumsum(dt <= 0.0)])
    return events[rows:] == events[:-rows]


def _noise_variance(x: np.ndarray, dt: np.ndarray) -> np.ndarray:
    """Return the variance (n,) of independent noise in columns x (N, n), from third differences (small if x is smooth)."""
    bends = np.diff(x, 3, axis=0)[_without_events(dt, 3)]
    return np.sum(bends**2, axis=0) / (20.0 * max(len(bends), 1))


def _ratio(y: np.ndarray, x: np.ndarray) -> float:
    """Return the least-squares solution of y = ratio x for columns (N,)."""
    squares = float(x @ x)
    return float(x @ y) / squares if squares else 0.0


def _in_degrees(model: Model, q: np.ndarray, v: np.ndarray) -> str:
    """Return the reason why angles seem to be in degrees; empty if they do not.

    They do if all angles with limits are within these after conversion from degrees, and an angle is far beyond its limits. They
    also do if an angle without limits jumps by 360 or turns in both directions by many turns.
    """
    worst, text, unlimited = 0.0, "", []
    for k, i in enumerate(v_to_q_indices(model)):
        if i < 0 or model.v_units[k] != "rad":
            continue
        if not (model.lower[k] < model.upper[k] and np.isfinite([model.lower[k], model.upper[k]]).all()):
            unlimited.append((k, i))
            continue
        reach = max(abs(model.lower[k]), abs(model.upper[k]))
        largest = float(np.abs(q[:, i]).max())
        if np.radians(largest) > reach:
            return ""
        if largest > max(_DEGREES * reach, worst * reach):
            worst = largest / reach
            text = f"{model.v_names[k]} reaches {largest:.4g} rad, its limit is {reach:.4g} rad"
    return text or _without_limits(model, q, v, unlimited)


def _without_limits(model: Model, q: np.ndarray, v: np.ndarray, places: list[tuple[int, int]]) -> str:
    """Return the reason as `_in_degrees` for angles without limits, at places (k, i) in v and q."""
    for k, i in places:
        if _degrees_wrap(q[:, i]):
            return f"{model.v_names[k]} jumps by {np.abs(np.diff(q[:, i])).max():.4g} rad between two rows"
    if set(model.v_units) != {"rad"} or min(v_to_q_indices(model)) < 0:           # wheels of vehicles turn in both directions
        return ""
    moved = np.ptp(q, axis=0)
    if (moved[moved > 0] < _MOVING).any() or np.abs(q).max() > _MOST:
        return ""
    for k, i in places:
        steps = np.diff(q[:, i])
        if min(steps[steps > 0].sum(), -steps[steps < 0].sum()) > _SWING and np.abs(v[:, k]).max() > _FAST:
            return f"{model.v_names[k]} turns to and fro by {np.ptp(q[:, i]):.4g} rad"
    return ""


def _degrees_wrap(x: np.ndarray) -> bool:
    """Return whether samples x (N,) jump by about 360 and are continuous elsewhere."""
    steps = np.abs(np.diff(x))
    jumps = np.abs(steps - _TURN) < _JUMP
    return bool(jumps.any() and np.median(steps) < _FEW * _TURN and steps[~jumps].max(initial=0.0) < _JUMP)


# recorded motion --------------------------------------------------------------------------------------------------------

_UNIT_NORM = 4e-10                      # error of the norm of a quaternion written with ten digits; a larger error is rejected


@dataclass(frozen=True, eq=False)
class CompletedTrajectory:
    """A trajectory with computed columns, ready for `io.trajectory_csv.write_trajectory`.

    header    {key: text} comments
    t         (N,) times [s]
    columns   (name, unit, (N,) values) each
    warnings  warnings about the motion and the results
    """

    header: dict[str, str]
    t: np.ndarray
    columns: list[tuple[str, str, np.ndarray]]
    warnings: tuple[LiedynWarning, ...]


@dataclass(frozen=True, eq=False)
class RecordedArrays:
    """Arrays of a recording of N samples, in the order of the model's coordinates.

    q          (N, nq) configurations
    v, a, tau  (N, nv) velocities, accelerations, joint forces; None if missing
    f_ext      (N, n_links, 6) external wrenches in link frames; None without external wrenches
    passive    whether springs, damping and friction of the joints act
    """

    q: Array
    v: Array | None
    a: Array | None
    tau: Array | None
    f_ext: Array | None
    passive: bool
    warnings: tuple[LiedynWarning, ...] = ()


@dataclass(frozen=True, eq=False)
class SampledMotion(RecordedArrays):
    """A motion of N samples, whose velocities are known and whose a and tau dynamics can complete.

    variants     the same motion with v and a derived in another way, and from positions with added noise, for error estimates;
                 empty if nothing is derived
    multipliers  (N, nc) multipliers of constraints; None before they are computed
    """

    v: Array
    variants: tuple[SampledMotion, ...] = ()
    multipliers: Array | None = None


def prescribed_of(model: Model, of: str, patterns) -> np.ndarray:
    """Return the mask (nv,) of coordinates whose acceleration is an input and whose force is a result.

    of        "inverse", "forward" or "hybrid"
    patterns  of joint names, for "hybrid"
    """
    return joint_coordinates(model, patterns) if of == "hybrid" else np.full(model.nv, of == "inverse")


def header_along(model: Model, trajectory, passive: bool) -> dict[str, str]:
    """Return the comments of a trajectory, updated for the model and `passive` of a computation."""
    return trajectory.header | {key: x for key, x in trajectory_header(model, passive=passive).items() if key != "robot"}


def motion_for(model: Model, trajectory, of: str, prescribed: np.ndarray) -> SampledMotion:
    """Return the motion of a trajectory with the arrays that "inverse", "forward" or "hybrid" dynamics need.

    Missing velocities and accelerations are derived. Raises TrajectoryError for missing forces.
    """
    motion = motion_of_trajectory(model, trajectory, derive_a=bool(prescribed.any()))
    if not prescribed.all():
        require_forces(trajectory, motion.tau, of)
    return motion


def motion_of_trajectory(model: Model, trajectory, *, derive_a: bool) -> SampledMotion:
    """Return the motion of a trajectory, with missing velocities and, if `derive_a`, missing accelerations derived.

    Raises TrajectoryError, also for events in a trajectory from which something must be derived.
    """
    arrays = recorded_arrays(model, trajectory)
    if arrays.v is not None and (arrays.a is not None or not derive_a):
        return SampledMotion(arrays.q, arrays.v, arrays.a, arrays.tau, arrays.f_ext, arrays.passive)
    required = (("velocities", arrays.v, True), ("accelerations", arrays.a, derive_a))
    missing = " and ".join(name for name, x, is_required in required if x is None and is_required)
    check_no_events(trajectory, missing)
    source = "velocities" if arrays.v is not None else "positions"
    warning = LiedynWarning("derived-motion",
                            f"{missing} are derived from the {source}, by polynomials through seven neighbouring rows")
    unwrapping: list[LiedynWarning] = []
    with naming(trajectory):
        if arrays.v is None:
            q, unwrapping = unwrapped(model, arrays.q)
            arrays = replace(arrays, q=q)
        derived = _derived_motion(model, trajectory.t, arrays, derive_a)
        variants = (_derived_motion(model, trajectory.t, arrays, derive_a, points=other_points(len(arrays.q))),
                    _derived_motion(model, trajectory.t, arrays, derive_a, noisy=True))
    return replace(derived, warnings=(*unwrapping, warning), variants=variants)


def columns_of_motion(model: Model, motion: RecordedArrays) -> list[tuple[str, str, np.ndarray]]:
    """Return the motion and the nonzero external wrenches as columns of a trajectory."""
    which = [k for k in range(len(model.link_names)) if motion.f_ext is not None and motion.f_ext[:, k].any()]
    return motion_columns(model, tuple(model.link_names[k] for k in which), motion.f_ext[:, which] if which else None,
                          q=motion.q, v=motion.v, a=motion.a, tau=motion.tau)


def recorded_arrays(model: Model, trajectory: Trajectory) -> RecordedArrays:
    """Return the arrays of a trajectory file; v, a, tau and f_ext are None where the file has no columns for them."""
    q = positions_of(model, trajectory)
    v, a, tau = (bind_columns(model, trajectory, kind) for kind in ("v", "a", "tau"))
    return RecordedArrays(q, v, a, tau, bind_wrenches(model, trajectory), trajectory.passive)


def motion_of_arrays(model: Model, t, q, tau, v=None, a=None, f_ext=None, passive: bool | None = None, needed=("q", "tau")):
    """Return times and motion of arrays: t (N,), q (N, nq), tau, v, a (N, nv).

    needed  names of the arrays that must not be None

    Raises ShapeError, ConfigurationError, UsageError.
    """
    t = as_array(t, "t", ())
    if t.ndim != 1 or not len(t):
        raise ShapeError(f"t has the wrong shape; found {t.shape}, expected (N,)")
    arrays = {}
    for name, x, columns in (("q", q, model.nq), ("tau", tau, model.nv), ("v", v, model.nv), ("a", a, model.nv)):
        if x is None and name in needed:
            raise UsageError(f"{name} is missing: give t, q and tau as arrays, or a trajectory file")
        arrays[name] = None if x is None else as_array(x, name, (len(t), columns))
        if x is not None and arrays[name].ndim != 2:
            raise ShapeError(f"{name} has the wrong shape; found {arrays[name].shape}, expected ({len(t)}, {columns})")
    F = wrenches(model, f_ext)
    F = None if F is None else np.broadcast_to(F, (len(t), *F.shape[-2:]))
    names = {"q": model.q_names, **dict.fromkeys(("tau", "v", "a"), model.v_names)}
    for name, x in {"t": t, **arrays, "f_ext": F}.items():
        if x is not None:
            check_finite(name, x, names.get(name, ()), x.ndim - 1, "row")
    back = np.flatnonzero(np.diff(t) <= 0)
    if len(back):
        k = int(back[0]) + 1
        raise ConfigurationError(f"the times do not increase: t[{k}] is {float(t[k])!r} after {float(t[k - 1])!r}")
    off = off_unit(model, arrays["q"])
    if off:
        raise ConfigurationError(f"the quaternion of joint {off[0]} is not of unit norm in row {off[1]}: |q| = {off[2]:.9g}")
    return t, RecordedArrays(arrays["q"], arrays["v"], arrays["a"], arrays["tau"], F, passive is not False)


def _derived_motion(model: Model, t: Array, arrays: RecordedArrays, derive_a: bool, points: int = POINTS,
                    noisy: bool = False) -> SampledMotion:
    """Return the motion with missing v and a derived by polynomials through `points` rows.

    noisy  whether noise is added to the samples first
    """
    if arrays.v is not None:
        v, a = arrays.v, rates(t, with_noise(t, arrays.v) if noisy else arrays.v, points)
    else:
        q = of_unit_norm(model, with_noise(t, continued(model, arrays.q))) if noisy else arrays.q
        v, a = derivatives(model, t, q, points)
        a = a if derive_a and arrays.a is None else arrays.a
    return SampledMotion(arrays.q, v, a, arrays.tau, arrays.f_ext, arrays.passive)


def positions_of(model: Model, trajectory) -> np.ndarray:
    """Return the configurations (N, nq) of the file. Raise TrajectoryError if missing or not of unit norm."""
    if not model.nv:
        raise TrajectoryError(f"the robot {model.name} has no moving joint: there is nothing to compute",
                              place=Place(trajectory.source))
    q = bind_columns(model, trajectory, "q")
    others = [name for name in trajectory.columns if name.startswith("q.")]
    if q is None and others:
        raise TrajectoryError(f"no column belongs to a joint of the robot {model.name}", place=Place(trajectory.source),
                              found=", ".join(others), expected=", ".join(f"q.{name}" for name in model.q_names[:4]),
                              hint="is this the motion of another robot? See docs/files.md#trajectory-csv")
    require(trajectory, q, "q", "the positions")
    off = off_unit(model, q)
    if off:
        joint, row, norm = off
        raise TrajectoryError(f"the quaternion of joint {joint} is not of unit norm",
                              place=Place(trajectory.source, int(trajectory.lines[row])), found=f"|q| = {norm:.9g}", expected="1",
                              hint="write at least ten digits")
    return q


def off_unit(model: Model, q: np.ndarray) -> tuple[str, int, float] | None:
    """Return joint, row and norm of the first quaternion in samples q (N, nq) that is not of unit norm; None if there is none."""
    for joint in model.joints:
        if joint.kind != ONE_DOF:
            found = find_non_unit_quaternion(q[:, joint.q.stop - 4:joint.q.stop], _UNIT_NORM)
            if found:
                return joint.name, *found
    return None


@contextmanager
def naming(trajectory):
    """Add the name of the file to errors of numerical functions. Overflows are ignored: results are checked afterwards."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (np.linalg.LinAlgError, ConfigurationError):
        raise TrajectoryError("derivatives cannot be computed for this file", place=Place(trajectory.source),
                              expected="smaller values, or times that are more evenly spaced") from None
    except TrajectoryError as error:
        if error.place is not None:
            raise
        raise TrajectoryError(error.message, place=Place(trajectory.source), found=error.found, expected=error.expected,
                              hint=error.hint) from None


def require_forces(trajectory, tau, of: str) -> None:
    """Raise TrajectoryError if the trajectory has no joint forces (tau is None)."""
    require(trajectory, tau, "tau", f"the joint forces{' of the joints that are not prescribed' if of == 'hybrid' else ''}")


def require(trajectory, array, kind: str, what: str) -> None:
    """Raise TrajectoryError if the trajectory has no columns of a kind (array is None)."""
    if array is None:
        raise TrajectoryError(f"there are no columns of {what}", place=Place(trajectory.source),
                              found=", ".join(trajectory.columns), expected=f"{kind}.<joint>")


# Trajectories to and from arrays in the order of a model's coordinates --------------------------------------------------

class RecordedMotion(NamedTuple):
    """Arrays of a trajectory of N rows.

    t        (N,) time [s]
    q        (N, nq) configurations [rad | m]
    v, a     (N, nv) velocities and accelerations
    tau      (N, nv) joint forces [N m | N]; None if the trajectory has none
    f_ext    (N, n_links, 6) external wrenches [m; f] on the links, in link frames [N m | N]; None if it has none

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> q = np.outer(np.linspace(0, 1, 101) ** 2, [1.0, 2.0])
    >>> motion = ld.motion_of(model, ld.trajectory_of(model, np.linspace(0, 1, 101), q))
    >>> motion.v[-1].round(3), motion.tau is None
    (array([2., 4.]), True)
    """

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array | None
    f_ext: Array | None


def motion_of(model: Model, trajectory: Trajectory | str | PathLike[str]) -> RecordedMotion:
    """Return the arrays of a trajectory in the order of the model's coordinates; columns are matched by name.

    Missing v and a are derived by polynomials through seven neighbouring rows on the manifold, as in `liedyn inverse`. This
    amplifies the noise of measured positions; `identify` smooths them.

    Parameters
    ----------
    model : Model
    trajectory : Trajectory or path

    Raises
    ------
    TrajectoryError
        With file, line and column: for a file that cannot be read, missing columns, wrong units, quaternions that are not of unit
        norm; and for derivatives across an event, where two rows have the same time.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 1, 101)
    >>> motion = ld.motion_of(model, ld.trajectory_of(model, t, np.outer(t**2, [1.0, 2.0])))
    >>> motion.a[50].round(3)
    array([2., 4.])
    """
    source = trajectory if isinstance(trajectory, Trajectory) else read_trajectory(trajectory, events=True)
    motion = motion_of_trajectory(model, source, derive_a=True)
    warn(motion.warnings)
    return RecordedMotion(source.t, motion.q, motion.v, motion.a, motion.tau, motion.f_ext)


def trajectory_of(model: Model, t: ArrayLike, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None,
                  tau: ArrayLike | None = None, *, f_ext: Wrenches | None = None, passive: bool = True) -> Trajectory:
    """Return a trajectory of arrays with the names and units of the model's coordinates, for `Trajectory.save` and commands.

    Parameters
    ----------
    model : Model
        Its robot file, base and gravity are written as comments. If it differs from its robot file in more than that, as after
        `with_changes`, `save` writes it next to the trajectory; commands use it.
    t : (N,) array
        Times [s], increasing.
    q : (N, nq) array
        Configurations [rad | m]; ball and free joints hold unit quaternions x y z w.
    v, a, tau : (N, nv) arrays, optional
        Velocities, accelerations, joint forces [N m | N].
    f_ext : (N, n_links, 6) array or {link name: (N, 6) array}, optional
        External wrenches [m; f] on links, in link frames about their origins [N m | N]; links without a wrench get no columns.
    passive : bool
        Whether springs, damping and friction of the joints act in addition to tau.

    Raises
    ------
    ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.trajectory_of(model, [0.0, 0.1], [[0.3, 0.0], [0.2, 0.1]]).save("motion.csv", force=True)
    >>> ld.read_trajectory("motion.csv").columns["q.elbow"]
    array([0. , 0.1])
    """
    t, motion = motion_of_arrays(model, t, q, tau, v, a, f_ext, passive, needed=("q",))
    columns = columns_of_motion(model, motion)
    header = trajectory_header(model, passive=passive)
    return Trajectory(header, t, {name: x for name, _, x in columns}, {name: unit for name, unit, _ in columns},
                      model="" if _is_of_file(model, header) else yaml_of(model))


def _is_of_file(model: Model, header: dict[str, str]) -> bool:
    """Return whether the comments robot, loops, base and gravity define the model completely."""
    def known(robot: Robot) -> Robot:
        return replace(robot, base=model.base, gravity=model.description.gravity)
    if "robot" not in header:
        return False
    expected, of_file = known(model.description), {"base": model.base, "loops": header.get("loops")}
    try:                                                            # building may change the spanning tree
        return any(known(robot()) == expected for robot in (lambda: load_description(header["robot"], **of_file),
                                                            lambda: read_model(header["robot"], **of_file).description))
    except LiedynError:
        return False


# derived error ----------------------------------------------------------------------------------------------------------

# Velocities and accelerations that are derived from samples have errors. The motion is derived twice more: in another way, and
# with added noise of the same size (`SampledMotion.variants`). The results then differ by about their error.

Motion = TypeVar("Motion")
UNRELIABLE = 0.1                        # error relative to the size of a result: results with a larger one are not reliable
_NAMED_COLUMNS = 24                     # maximum number of columns in one message
_FEWEST = 4                             # minimum number of rows for a second way to derive


@np.errstate(over="ignore", invalid="ignore")               # errors of huge numbers are reported as 50% or more
def error_warnings(found: np.ndarray, variants: Sequence[Motion], compute: Callable[[Motion], np.ndarray], names: Sequence[str],
                   units: Sequence[str], smoothing: str | None) -> list[LiedynWarning]:
    """Return a warning with the estimated error of the worst column, and one for each cause of columns that are not reliable.

    found         (N, n) results
    variants      motions that were derived in other ways
    compute       function that returns the same results for another motion
    names, units  of the columns
    smoothing     command-line option that smooths, or None

    Returns an empty list if nothing was derived.
    """
    if not variants:
        return []
    if len(found) < _FEWEST:
        return [LiedynWarning("estimated-error", f"{len(found)} rows are not enough to estimate the error of what is derived")]
    others = [compute(variant)[:, None] for variant in variants]
    ends = min(POINTS // 2, len(found) // 4)
    inner, outer, size = (x[0] for x in errors(found[:, None], others, ends))
    judged = sizes_to_judge_by(size, units)
    worst = int((inner / judged).argmax())
    told = [f"{percent(error / of)} ({error:.2g} {unit})" for error, of, unit in zip(inner, judged, units, strict=True)]
    alike = np.array([unit == units[worst] for unit in units])
    most = int(np.where(alike, inner, -1.0).argmax())
    largest = f"; the largest is {inner[most]:.2g} {units[most]} ({names[most]})" if most != worst else ""
    at_ends = f", {percent((outer / judged).max())} within {ends} rows of the ends" if ends else ""
    warnings = [LiedynWarning("estimated-error",
                              f"estimated error of the worst column: {names[worst]} {told[worst]}{at_ends}{largest}")]
    by_way, by_noise = (errors(found[:, None], [other], ends)[0][0] for other in others)
    causes = {}
    for k in sorted(np.flatnonzero(inner > UNRELIABLE * judged), key=lambda k: -inner[k] / judged[k]):
        causes.setdefault(by_noise[k] > 2.0 * by_way[k], []).append(f"{names[k]}, off by {told[k]}")
    return warnings + [LiedynWarning("not-reliable", f"NOT RELIABLE: {named_first(columns)}: {mend(noisy, 'rows', smoothing)}")
                       for noisy, columns in causes.items()]


def named_first(columns: Sequence[str]) -> str:
    """Return the texts of the worst columns, joined, with the number of those left out."""
    more = len(columns) - _NAMED_COLUMNS
    return "; ".join([*columns[:_NAMED_COLUMNS], *([f"and {more} more"] if more > 0 else [])])


def mend(noisy: bool, between: str, smoothing: str | None) -> str:
    """Return the probable cause of an error and its remedy.

    noisy    whether noise is the cause
    between  "rows" or "knots", which may be too far apart
    """
    if noisy:
        smooths = f"use {smoothing}, or " if smoothing else ""
        return (f"the noise of the rows is amplified, or they are too far apart; {smooths}give measured "
                "derivatives as columns")
    return f"no spline fits the motion: it hardly moves, has kinks, or the {between} are too far apart"


def percent(x: float) -> str:
    """Return a relative error as text, without a number from 50% on: then the size of the true value is unknown."""
    return f"{100 * x:.2g}%" if x < 0.5 else "50% or more"
