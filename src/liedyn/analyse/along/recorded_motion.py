"""What a trajectory file gives to a computation along its rows, and what comes out."""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from liedyn.analyse.along.derive import POINTS, derivatives, other_points, rates
from liedyn.analyse.along.manifold_spline import continued, of_unit_norm, with_noise
from liedyn.analyse.along.recorded_checks import unwrapped
from liedyn.dynamics.calling.arguments import as_array, wrenches
from liedyn.errors import ConfigurationError, Place, ShapeError, TrajectoryError, UsageError
from liedyn.io.csv import refuse_events
from liedyn.model.model import Model
from liedyn.simulation.names import named
from liedyn.simulation.records.motion_columns import bind, bind_wrenches, columns_of, header_of

_UNIT_NORM = 4e-10                      # of a norm: a quaternion written with ten digits; less is a mistake in the file


@dataclass(frozen=True, eq=False)
class Along:
    """A completed trajectory, ready for `io.csv.write_trajectory`."""

    header: dict[str, str]
    t: np.ndarray
    columns: list[tuple[str, str, np.ndarray]]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Motion:
    """Of a file, and what dynamics makes of it. variants: the same motion with v and a derived in another way, and from positions
    with more noise, for telling what results are off; none where nothing is derived. multipliers: of constraints, once known."""

    q: np.ndarray
    v: np.ndarray | None
    a: np.ndarray | None
    tau: np.ndarray | None
    f_ext: np.ndarray | None
    passive: bool
    notes: tuple[str, ...]
    variants: tuple[Motion, ...] = ()
    multipliers: np.ndarray | None = None


def mask_of(model: Model, patterns) -> np.ndarray:
    """(nv,) bool: coordinates of the joints whose names match a pattern. UsageError for one that matches nothing."""
    mask = np.zeros(model.nv, dtype=bool)
    known = ", ".join(model.joint_names) or "none"
    for name in named(patterns, model.joint_names, lambda pattern: f"no moving joint matches {pattern!r}; the robot has {known}"):
        mask[model.v_index(name)] = True
    return mask


def prescribed_of(model: Model, of: str, patterns) -> np.ndarray:
    """(nv,) bool: coordinates whose acceleration goes into "inverse", "forward" or "hybrid" dynamics, and whose force comes out.
    patterns: of joint names, for "hybrid"."""
    return mask_of(model, patterns) if of == "hybrid" else np.full(model.nv, of == "inverse")


def header_along(model: Model, trajectory, passive: bool) -> dict[str, str]:
    """The comments of a trajectory, and with what was computed."""
    return trajectory.header | {key: x for key, x in header_of(model, passive=passive).items() if key != "robot"}


def motion_for(model: Model, trajectory, of: str, prescribed: np.ndarray) -> Motion:
    """What dynamics needs of a file."""
    motion = motion_of(model, trajectory, derive_a=bool(prescribed.any()))
    if not prescribed.all():
        require_forces(trajectory, motion.tau, of)
    return motion


def motion_of(model: Model, trajectory, *, derive_a: bool) -> Motion:
    given = given_motion(model, trajectory)
    needed = (("velocities", given.v, True), ("accelerations", given.a, derive_a))
    missing = [name for name, x, derive in needed if x is None and derive]
    if not missing:
        return given
    refuse_events(trajectory, " and ".join(missing))
    source = "velocities" if given.v is not None else "positions"
    note = f"{' and '.join(missing)} are derived from the {source}, by polynomials through seven neighbouring rows"
    with naming(trajectory):
        if given.v is None:
            q, unwrapping = unwrapped(model, given.q)
            given = replace(given, q=q, notes=(*given.notes, *unwrapping))
        derived, *others = (_derived(model, trajectory.t, given, derive_a, **way) for way in (
            {}, {"points": other_points(len(given.q))}, {"noisy": True}))
    return replace(derived, notes=(*given.notes, note), variants=tuple(others))


def columns_of_motion(model: Model, motion: Motion) -> list[tuple[str, str, np.ndarray]]:
    """The motion, and the external wrenches that act, as columns of a trajectory."""
    which = [k for k in range(len(model.link_names)) if motion.f_ext is not None and motion.f_ext[:, k].any()]
    return columns_of(model, tuple(model.link_names[k] for k in which), motion.f_ext[:, which] if which else None,
                      q=motion.q, v=motion.v, a=motion.a, tau=motion.tau)


def given_motion(model: Model, trajectory) -> Motion:
    """What the file holds, v and a None where it does not."""
    q = positions_of(model, trajectory)
    v, a, tau = (bind(model, trajectory, kind) for kind in ("v", "a", "tau"))
    passive = trajectory.passive
    return Motion(q, v, a, tau, bind_wrenches(model, trajectory), passive, ())


def motion_of_arrays(model: Model, t, q, tau, v=None, a=None, f_ext=None, passive: bool | None = None, needed=("q", "tau")):
    """Times and motion of arrays: t (N,), q (N, nq), tau, v, a (N, nv). Raises ShapeError, ConfigurationError, UsageError."""
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
    for name, x in {"t": t, **arrays, "f_ext": F}.items():
        if x is not None and not np.isfinite(x).all():
            raise ConfigurationError(f"{name} is not finite at index {np.argwhere(~np.isfinite(x))[0].tolist()}")
    back = np.flatnonzero(np.diff(t) <= 0)
    if len(back):
        k = int(back[0]) + 1
        raise ConfigurationError(f"the times do not increase: t[{k}] is {float(t[k])!r} after {float(t[k - 1])!r}")
    off = off_unit(model, arrays["q"])
    if off:
        raise ConfigurationError(f"the quaternion of joint {off[0]} is not of unit norm in row {off[1]}: |q| = {off[2]:.9g}")
    return t, Motion(arrays["q"], arrays["v"], arrays["a"], arrays["tau"], F, passive is not False, ())


def _derived(model: Model, t, given: Motion, derive_a: bool, points: int = POINTS, noisy: bool = False) -> Motion:
    """The motion with what it lacks, by polynomials through so many rows, with noise added or without."""
    if given.v is not None:
        return replace(given, a=rates(t, with_noise(t, given.v) if noisy else given.v, points))
    q = of_unit_norm(model, with_noise(t, continued(model, given.q))) if noisy else given.q
    v, a = derivatives(model, t, q, points)
    return replace(given, v=v, a=a if derive_a and given.a is None else given.a)


def positions_of(model: Model, trajectory) -> np.ndarray:
    """(N, nq) of the file. Refuses quaternions that are not of unit norm, with the line."""
    if not model.nv:
        raise TrajectoryError(f"the robot {model.name} has no moving joint: there is nothing to compute",
                              place=Place(trajectory.source))
    q = bind(model, trajectory, "q")
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
    """The first quaternion in samples q (N, nq) that is not of unit norm: joint, row, norm."""
    for joint in model.joints:
        if joint.type in ("ball", "free"):
            with np.errstate(over="ignore"):
                norms = np.linalg.norm(q[:, joint.q.stop - 4:joint.q.stop], axis=1)
            bad = np.flatnonzero(np.abs(norms - 1) > _UNIT_NORM)
            if len(bad):
                return joint.name, int(bad[0]), float(norms[bad[0]])
    return None


@contextmanager
def naming(trajectory):
    """Gives the file's name to errors that know the numbers only. What overflows shows in the result, which must be finite."""
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
    require(trajectory, tau, "tau", f"the joint forces{' of the joints that are not prescribed' if of == 'hybrid' else ''}")


def require(trajectory, array, kind: str, what: str) -> None:
    if array is None:
        raise TrajectoryError(f"there are no columns of {what}", place=Place(trajectory.source),
                              found=", ".join(trajectory.columns), expected=f"{kind}.<joint>")
