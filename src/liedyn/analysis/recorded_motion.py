"""Motions of trajectory files: their arrays in the order of the coordinates of a model, completed by derived rates."""
from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import NamedTuple, TypedDict

import numpy as np

from liedyn.analysis.numerical_differentiation import (
    POINTS,
    continued,
    derivatives,
    of_unit_norm,
    other_points,
    rates,
    with_noise,
)
from liedyn.analysis.recording_checks import TorqueDifference, unwrapped
from liedyn.arrays import Array, ArrayLike, Mask, Wrenches
from liedyn.dynamics.batching.arrays import as_array, wrenches
from liedyn.dynamics.batching.calls import check_finite, find_non_unit_quaternion
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.constraints.rank import coordinate_scales
from liedyn.errors import (
    ConfigurationError,
    LiedynError,
    LiedynWarning,
    Place,
    ShapeError,
    TrajectoryError,
    UsageError,
    list_names,
    nearest,
    summarized,
    warn,
)
from liedyn.io.column_map import columns_option
from liedyn.io.csv_table import foreign_title
from liedyn.io.trajectory_csv import Trajectory, check_no_events, read_trajectory
from liedyn.io.units import unit_in_name
from liedyn.model.description import Robot
from liedyn.model.model import Model
from liedyn.robot_files import load_description, read_model, yaml_of
from liedyn.simulation.control.thrusts import thrust_entries
from liedyn.simulation.name_binding import joint_coordinates, v_to_q_indices
from liedyn.simulation.trajectory_columns import (
    bind_columns,
    bind_wrenches,
    check_column_unit,
    check_mapped_columns,
    column_location,
    motion_columns,
    thrust_names,
    trajectory_header,
    wrench_components,
)

# begin and end of names of columns, as a map reads them without quotes
_PREFIX, _SUFFIX = re.compile(r"(?:[^\W\d][\w.]*)?"), re.compile(r"[\w.]*")
_FOLLOWS = 0.01     # of the range of a follower: maximum RMS difference of its recorded positions from its coupling
_ROUNDED = 1e-5     # of the range, or of the maximum rate: files with six digits differ by less
_NAMED = 8          # maximum number of columns in a message
_RATE = {"q": "", "v": "/s", "a": "/s^2"}
_UNIT_NORM = 4e-10                      # error of the norm of a quaternion written with ten digits; a larger error is rejected


@dataclass(frozen=True, eq=False)
class CompletedTrajectory:
    """A trajectory with computed columns, ready for `io.trajectory_csv.write_trajectory`.

    header    {key: text} comments
    t         (N,) times [s]
    columns   (name, unit, (N,) values) each
    warnings  warnings about the motion and the results
    differences   of measured and computed torques
    """

    header: dict[str, str]
    t: Array
    columns: list[tuple[str, str, Array]]
    warnings: tuple[LiedynWarning, ...]
    differences: tuple[TorqueDifference, ...] = ()


@dataclass(frozen=True, eq=False)
class RecordedArrays:
    """Arrays of a recording of N samples, in the order of the model's coordinates.

    q          (N, nq) configurations
    v, a, tau  (N, nv) velocities, accelerations, generalized forces; None if missing. Forces that were not measured are NaN
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


class DynamicsOptions(TypedDict):
    """External wrenches and passive forces, as keyword arguments of dynamics functions."""

    f_ext: Array | None
    passive: bool


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

    @property
    def options(self) -> DynamicsOptions:
        """Options of dynamics functions for this motion."""
        return {"f_ext": self.f_ext, "passive": self.passive}

    @property
    def a_or_zero(self) -> Array:
        """Accelerations; zero if the motion has none, as dynamics do not read them then."""
        return np.zeros_like(self.v) if self.a is None else self.a

    @property
    def tau_or_zero(self) -> Array:
        """Generalized forces; zero where the motion has none, as dynamics do not read them then."""
        return np.zeros_like(self.v) if self.tau is None else np.nan_to_num(self.tau)


def prescribed_of(model: Model, of: str, patterns: Sequence[str]) -> Mask:
    """Return the mask (nv,) of coordinates whose acceleration is an input and whose force is a result.

    of        "inverse", "forward" or "hybrid"
    patterns  of joint names, for "hybrid"
    """
    return joint_coordinates(model, patterns) if of == "hybrid" else np.full(model.nv, of == "inverse")


def header_along(model: Model, trajectory: Trajectory, passive: bool) -> dict[str, str]:
    """Return the comments of a trajectory, updated for the model and `passive` of a computation."""
    return trajectory.header | {key: x for key, x in trajectory_header(model, passive=passive).items() if key != "robot"}


def motion_for(model: Model, trajectory: Trajectory, of: str, prescribed: Mask) -> SampledMotion:
    """Return the motion of a trajectory with the arrays that "inverse", "forward" or "hybrid" dynamics need.

    Missing velocities and accelerations are derived. Raises TrajectoryError for missing forces.
    """
    motion = motion_of_trajectory(model, trajectory, derive_a=bool(prescribed.any()))
    if not prescribed.all():
        require_forces(model, trajectory, motion.tau, of, prescribed)
    return motion


def motion_of_trajectory(model: Model, trajectory: Trajectory, *, derive_a: bool) -> SampledMotion:
    """Return the motion of a trajectory, with missing velocities and, if `derive_a`, missing accelerations derived.

    Raises TrajectoryError, also for events in a trajectory from which something must be derived.
    """
    arrays, unwrapping = recorded_arrays(model, trajectory), list[LiedynWarning]()
    with naming(trajectory):
        if arrays.v is None:
            q, unwrapping = unwrapped(model, arrays.q)
            arrays = replace(arrays, q=q)
        arrays = on_couplings(model, arrays)
    if arrays.v is not None and (arrays.a is not None or not derive_a):
        return SampledMotion(arrays.q, arrays.v, arrays.a, arrays.tau, arrays.f_ext, arrays.passive, arrays.warnings)
    required = (("velocities", arrays.v, True), ("accelerations", arrays.a, derive_a))
    missing = " and ".join(name for name, x, is_required in required if x is None and is_required)
    check_no_events(trajectory, missing)
    source = "velocities" if arrays.v is not None else "positions"
    warning = LiedynWarning("derived-motion",
                            f"{missing} are derived from the {source}, by polynomials through seven neighbouring rows")
    with naming(trajectory):
        derived = _derived_motion(model, trajectory.t, arrays, derive_a)
        variants = (_derived_motion(model, trajectory.t, arrays, derive_a, points=other_points(len(arrays.q))),
                    _derived_motion(model, trajectory.t, arrays, derive_a, noisy=True))
    return replace(derived, warnings=(*unwrapping, *arrays.warnings, warning), variants=variants)


def on_couplings(model: Model, motion: RecordedArrays) -> RecordedArrays:
    """Return the recording with followers of linear couplings moved to their values, from which encoders differ by noise.

    A warning gives differences of more than rounding. Raises TrajectoryError for positions that contradict the couplings.
    """
    if not (model.nc and model.has_only_linear_couplings):
        return motion
    recorded = {kind: x for kind, x in (("q", motion.q), ("v", motion.v), ("a", motion.a)) if x is not None}
    followed = dict(zip(recorded, follow_couplings(model, *recorded.values()), strict=True))
    ranges, places, moved = np.fmin(model.upper - model.lower, coordinate_scales(model)), v_to_q_indices(model), []
    for k in model.elimination().follower:
        for kind, x in recorded.items():
            i = places[k] if kind == "q" else k
            error = np.abs(followed[kind][:, i] - x[:, i])
            largest, size, unit = error.max(initial=0.0), np.abs(x).max(initial=0.0), model.v_units[k] + _RATE[kind]
            if kind == "q":
                _check_follower(model.v_names[k], unit, error, _FOLLOWS * max(np.ptp(x[:, i]), ranges[k]))
                size = ranges[k]
            if largest > _ROUNDED * size:
                moved.append(f"{kind}.{model.v_names[k]} by up to {largest:.2g} {unit}")
    warnings = [LiedynWarning("moved-onto-constraints", "recorded values differ from the couplings, whose values are used "
                              f"instead: {list_names(moved, _NAMED)}")] if moved else []
    return replace(motion, q=followed["q"], v=followed.get("v"), a=followed.get("a"), warnings=(*motion.warnings, *warnings))


def _check_follower(name: str, unit: str, error: Array, limit: float) -> None:
    """Raise TrajectoryError if positions differ by error (N,) from those of a coupling, and the RMS exceeds the limit."""
    rms = float(np.sqrt(np.mean(error**2)))
    if rms > limit:
        raise TrajectoryError(f"the positions of {name} contradict its coupling", found=f"a difference of {rms:.3g} {unit} (rms)",
                              expected=f"at most {limit:.2g} {unit}",
                              hint=f"leave out the columns of {name}; if it moves independently, use --ignore-mimic "
                                   "(ignore_mimic=True)")


def columns_of_motion(model: Model, motion: RecordedArrays) -> list[tuple[str, str, Array]]:
    """Return the motion and the nonzero external wrenches as columns of a trajectory."""
    links: tuple[str, ...] = ()
    wrench = None
    if motion.f_ext is not None and motion.f_ext.any():
        loaded = np.flatnonzero(motion.f_ext.any(axis=(0, 2)))
        links, wrench = tuple(model.link_names[k] for k in loaded), motion.f_ext[:, loaded]
    return motion_columns(model, links, wrench, q=motion.q, v=motion.v, a=motion.a, tau=motion.tau)


def recorded_arrays(model: Model, trajectory: Trajectory) -> RecordedArrays:
    """Return the arrays of a trajectory file; v, a, tau and f_ext are None where the file has no columns for them."""
    check_mapped_columns(model, trajectory)
    q = positions_of(model, trajectory)
    v, a, tau = (bind_columns(model, trajectory, kind, partial=kind == "tau") for kind in ("v", "a", "tau"))
    return RecordedArrays(q, v, a, tau, _external_wrenches(model, trajectory), trajectory.passive)


def _external_wrenches(model: Model, trajectory: Trajectory) -> Array | None:
    """Return the (N, n_links, 6) wrenches of the columns fext, and those of thrusts that they do not contain."""
    out = bind_wrenches(model, trajectory)
    for j, column in thrusts_without_wrenches(model, trajectory).items():
        check_column_unit(trajectory, column, "N")
        out = np.zeros((len(trajectory.t), len(model.link_names), 6)) if out is None else out
        for _, link, wrench in thrust_entries(model, [j]):
            out[:, link] += trajectory.columns[column][:, None] * wrench
    return out


def thrusts_without_wrenches(model: Model, trajectory: Trajectory) -> dict[int, str]:
    """Return the columns of thrusts by actuator, without those whose wrenches are in columns fext of all their links.

    Raises TrajectoryError for a thrust that no actuator has, unless there are columns fext.
    """
    names, wrenches = thrust_names(model), {name.rpartition(".")[0] for name in wrench_components(model, trajectory)}
    for column in trajectory.columns:
        if column.startswith("thrust.") and column not in names and not wrenches:
            raise TrajectoryError("the robot has no actuator of this column", place=column_location(trajectory, column),
                                  expected=list_names(names, 6) or "a robot with actuators", hint=nearest(column, names))
    return {j: name for j, name in enumerate(names) if name in trajectory.columns
            and not {model.link_names[link] for _, link, _ in thrust_entries(model, [j])} <= wrenches}


def motion_of_arrays(model: Model, t: ArrayLike, q: ArrayLike | None, v: ArrayLike | None, a: ArrayLike | None,
                     tau: ArrayLike | None, f_ext: Wrenches | None, passive: bool | None) -> tuple[Array, RecordedArrays]:
    """Return times and motion of arrays: t (N,), q (N, nq), v, a, tau (N, nv). Columns of tau that were not measured are NaN.

    Raises ShapeError, ConfigurationError, and UsageError if q is None.
    """
    times = as_array(t, "t", ())
    if times.ndim != 1 or not len(times):
        raise ShapeError(f"t has the wrong shape: expected (N,) with at least one time, got {times.shape}")
    positions = _samples(q, "q", len(times), model.nq)
    if positions is None:
        raise missing_array("q")
    arrays = {name: _samples(x, name, len(times), model.nv) for name, x in (("tau", tau), ("v", v), ("a", a))}
    F = wrenches(model, f_ext)
    F = None if F is None else np.broadcast_to(F, (len(times), *F.shape[-2:]))
    names = {"q": model.q_names, **dict.fromkeys(arrays, model.v_names)}
    for name, array in {"t": times, "q": positions, **arrays, "f_ext": F}.items():
        if array is not None:
            measured = np.where(np.isnan(array).all(axis=0), 0.0, array) if name == "tau" else array
            check_finite(name, measured, names.get(name, ()), array.ndim - 1, "row")
    decreasing = np.flatnonzero(np.diff(times) <= 0)
    if len(decreasing):
        k = int(decreasing[0]) + 1
        raise ConfigurationError(f"the times do not increase: t[{k}] is {float(times[k])!r} after {float(times[k - 1])!r}")
    invalid = find_non_unit_row(model, positions)
    if invalid:
        joint, row, norm = invalid
        raise ConfigurationError(f"the quaternion of joint {joint} is not of unit norm in row {row}: |q| = {norm:.9g}")
    return times, RecordedArrays(positions, arrays["v"], arrays["a"], arrays["tau"], F, passive is not False)


def missing_array(name: str) -> UsageError:
    """Return the error for an array that was not given."""
    return UsageError(f"{name} is missing: give t, q and tau as arrays, or a trajectory file")


def _samples(x: ArrayLike | None, name: str, rows: int, columns: int) -> Array | None:
    """Return an array (rows, columns), or None if x is None. Raises ShapeError."""
    if x is None:
        return None
    array = as_array(x, name, (rows, columns))
    if array.ndim != 2:
        raise ShapeError(f"{name} has the wrong shape: expected ({rows}, {columns}), got {array.shape}")
    return array


def _derived_motion(model: Model, t: Array, arrays: RecordedArrays, derive_a: bool, points: int = POINTS,
                    noisy: bool = False) -> SampledMotion:
    """Return the motion with missing v and a derived by polynomials through `points` rows.

    noisy  whether noise is added to the samples first
    """
    a: Array | None
    if arrays.v is not None:
        v, a = arrays.v, rates(t, with_noise(t, arrays.v) if noisy else arrays.v, points)
    else:
        q = of_unit_norm(model, with_noise(t, continued(model, arrays.q))) if noisy else arrays.q
        v, derived = derivatives(model, t, q, points)
        a = derived if derive_a and arrays.a is None else arrays.a
    return SampledMotion(arrays.q, v, a, arrays.tau, arrays.f_ext, arrays.passive)


def positions_of(model: Model, trajectory: Trajectory) -> Array:
    """Return the configurations (N, nq) of the file. Raise TrajectoryError if missing or not of unit norm."""
    if not model.nv:
        raise TrajectoryError(f"the robot {model.name} has no moving joint: there is nothing to compute",
                              place=Place(trajectory.source))
    columns = bind_columns(model, trajectory, "q")
    names = [name for name in trajectory.columns if name.startswith("q.")]
    if columns is None and names:
        raise TrajectoryError(f"no column belongs to a joint of the robot {model.name}", place=Place(trajectory.source),
                              found=", ".join(names), expected=list_names([f"q.{name}" for name in model.q_names], 4),
                              hint=_map_hint(model, trajectory) or
                              "is this the motion of another robot? See docs/files.md#trajectory-csv")
    q = require_columns(trajectory, columns, "q", "the positions", _map_hint(model, trajectory))
    invalid = find_non_unit_row(model, q)
    if invalid:
        joint, row, norm = invalid
        raise TrajectoryError(f"the quaternion of joint {joint} is not of unit norm",
                              place=Place(trajectory.source, int(trajectory.lines[row])), found=f"|q| = {norm:.9g}", expected="1",
                              hint="write at least ten digits")
    return q


def _map_hint(model: Model, trajectory: Trajectory) -> str | None:
    """Return a hint with the map of columns that are named as the coordinates, perhaps after a prefix or before a unit."""
    patterns: Counter[tuple[str, str]] = Counter()
    for title in trajectory.columns:
        column = foreign_title(title)[0]
        matches = [(len(name), prefix, suffix) for name in model.q_names for prefix, joint, suffix in [column.rpartition(name)]
                   if joint and (not suffix or unit_in_name(column))]
        if matches:
            _, prefix, suffix = max(matches)
            patterns[prefix, suffix] += 1
    pattern = next((f"{prefix}*{suffix}" for (prefix, suffix), _ in patterns.most_common(1)
                    if _PREFIX.fullmatch(prefix) and _SUFFIX.fullmatch(suffix)), None)
    return None if pattern is None else f"{columns_option({'q.*': pattern})} reads columns named as joints"


def find_non_unit_row(model: Model, q: Array) -> tuple[str, int, float] | None:
    """Return joint, row and norm of the first quaternion in samples q (N, nq) that is not of unit norm; None if there is none."""
    for joint, quaternion in model.quaternions.items():
        row_and_norm = find_non_unit_quaternion(q[:, quaternion], _UNIT_NORM)
        if row_and_norm:
            return joint, *row_and_norm
    return None


@contextmanager
def naming(trajectory: Trajectory) -> Iterator[None]:
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


def require_forces(model: Model, trajectory: Trajectory, tau: Array | None, of: str, prescribed: Mask) -> Array:
    """Return tau. Raise TrajectoryError if the trajectory lacks generalized forces of coordinates that are not prescribed."""
    joints = " of the joints that are not prescribed" if of == "hybrid" else ""
    forces = require_columns(trajectory, tau, "tau", f"the generalized forces{joints}")
    if np.isnan(forces[:, ~prescribed]).any():
        bind_columns(model, trajectory, "tau")                 # names the missing column
    return np.nan_to_num(forces)


def require_columns(trajectory: Trajectory, array: Array | None, kind: str, quantity: str, hint: str | None = None) -> Array:
    """Return the array. Raise TrajectoryError if the trajectory has no columns of this kind (array is None)."""
    if array is None:
        raise TrajectoryError(f"there are no columns of {quantity}", place=Place(trajectory.source),
                              found=", ".join(trajectory.columns), expected=f"{kind}.<joint>", hint=hint)
    return array

# Trajectories to and from arrays in the order of a model's coordinates --------------------------------------------------

@summarized
class RecordedMotion(NamedTuple):
    """Arrays of a trajectory of N rows.

    t        (N,) time [s]
    q        (N, nq) configurations [rad | m]
    v, a     (N, nv) velocities and accelerations
    tau      (N, nv) generalized forces [N m | N], NaN for coordinates without a column; None if the trajectory has none
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
    source = trajectory if isinstance(trajectory, Trajectory) else read_trajectory(os.fspath(trajectory))
    motion = motion_of_trajectory(model, source, derive_a=True)
    warn(motion.warnings)
    return RecordedMotion(source.t, motion.q, motion.v, motion.a_or_zero, motion.tau, motion.f_ext)


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
        Velocities, accelerations, generalized forces [N m | N]. Forces that are NaN in all rows get no column.
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
    times, motion = motion_of_arrays(model, t, q, v, a, tau, f_ext, passive)
    columns = [column for column in columns_of_motion(model, motion) if not np.isnan(column[2]).all()]
    header = trajectory_header(model, passive=passive)
    return Trajectory(header, times, {name: x for name, _, x in columns}, {name: unit for name, unit, _ in columns},
                      model="" if _is_of_file(model, header) else yaml_of(model))


def _is_of_file(model: Model, header: dict[str, str]) -> bool:
    """Return whether the comments robot, loops, base and gravity define the model completely."""
    def with_recorded(robot: Robot) -> Robot:
        return replace(robot, base=model.base, gravity=model.description.gravity)

    path, loops = header.get("robot"), header.get("loops")
    if path is None:
        return False
    expected = with_recorded(model.description)
    try:                                                            # building may change the spanning tree
        return (with_recorded(load_description(path, model.base, loops)) == expected
                or with_recorded(read_model(path, base=model.base, loops=loops).description) == expected)
    except LiedynError:
        return False
