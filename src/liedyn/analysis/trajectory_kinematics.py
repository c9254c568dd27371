"""Poses, twists, accelerations and Jacobians of links, centre of mass, momentum and zero-moment point along a trajectory file."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from liedyn.analysis.numerical_differentiation import error_warnings, term_sizes
from liedyn.analysis.recorded_motion import CompletedTrajectory, SampledMotion, header_along, motion_of_trajectory
from liedyn.analysis.recording_checks import unit_warnings
from liedyn.analysis.trajectory_derivatives import LARGEST, quotient
from liedyn.arrays import Array, Frame
from liedyn.dynamics.batching.arrays import (
    LOCAL,
    LOCAL_WORLD_ALIGNED,
    WORLD,
    accelerations_in_frame,
    check_frame,
    twists_in_frame,
)
from liedyn.dynamics.dynamics import moving_links, newton_euler_residual
from liedyn.dynamics.kinematics import all_link_motions, centre_of_mass, jacobian, momentum
from liedyn.dynamics.manifold import continuous_quaternions
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, LiedynWarning, UsageError
from liedyn.io.csv_table import LONGEST_LINE
from liedyn.io.trajectory_csv import MAY_BE_EMPTY, Trajectory
from liedyn.model.model import Model
from liedyn.simulation.name_binding import select

_TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
_AXES = {LOCAL: "axes of the link, about its point",
         LOCAL_WORLD_ALIGNED: "world axes, about the link's point; the acceleration is the second derivative of its position",
         WORLD: "world axes, about the world's origin"}
_FEWEST_NEWTONS = 1e-9                   # of the weight: with a smaller vertical force, the zero-moment point is undefined

Columns = list[tuple[str, str, Array]]


@dataclass(frozen=True, eq=False)
class KinematicsRequest:
    """The kinematic quantities to compute.

    links                                  names of links
    point                                  (3,) point in each link [m]
    frame                                  of twists, accelerations and Jacobians
    jacobian, com, momentum, zmp           whether these are computed
    """

    links: tuple[str, ...]
    point: Array
    frame: Frame
    jacobian: bool = False
    com: bool = False
    momentum: bool = False
    zmp: bool = False


def kinematics_along(  # noqa: PLR0913 (independent options of the command)
        model: Model, trajectory: Trajectory, links: Sequence[str] = (), *, point: Sequence[float] | None = None,
        frame: Frame = "local_world_aligned", jacobian: bool = False, com: bool = False, momentum: bool = False,
        zmp: bool = False) -> CompletedTrajectory:
    """Return the motion of points of links and of the whole robot along a trajectory of q; missing v and a are derived.

    Parameters
    ----------
    links : names or patterns
        For each: pose of the link's axes at the point, twist, speed of the point, acceleration.
    point : (3,), optional
        In the link [m]; default: its origin. For one link only.
    frame : "local", "local_world_aligned" or "world"
        Of twist, acceleration and Jacobian, as in `link_acceleration`.
    jacobian : bool
        Also the Jacobians and, for a robot without constraints, the manipulabilities (Yoshikawa 1985): sqrt det J J^T of all six
        rows and of the three rows of position.
    com, momentum, zmp : bool
        Centre of mass, its velocity and acceleration; angular momentum about it and linear momentum; zero-moment point.

    Raises
    ------
    UsageError, TrajectoryError
    ComputationError
        If the zero-moment point is not defined at any time, because no vertical force acts. If it is defined in some rows, it is
        NaN in the others, with a warning.

    Notes
    -----
    Zero-moment point (Vukobratovic and Borovac 2004): let [m; f] be the sum of the wrenches that must act on the moving bodies in
    addition to their weight, about the world's origin. Then x = -m_y / f_z, y = m_x / f_z on the plane z = 0, where
    [m; f] has no moment about x and y. External wrenches are not considered: where only the ground acts, the point is its
    centre of pressure.
    """
    request = kinematics_request(model, links, point, frame, jacobian, com=com, momentum=momentum, zmp=zmp)
    motion = motion_of_trajectory(model, trajectory, derive_a=True)
    columns = _columns(model, request, motion)
    flight = _flight_warnings(trajectory.t, columns) if zmp else []
    undefined = np.any(np.isnan(np.column_stack([x for *_, x in columns])), axis=1)
    header = header_along(model, trajectory, motion.passive)
    header.pop("reaction", None)
    if request.links:
        header["frame"] = frame_comment(frame, point)
    fixed = ("pose.", "jacobian.", "manipulability.")        # depend only on q, which is never derived

    def derived(columns: Columns) -> Columns:
        return [column for column in columns if not column[0].startswith(fixed)]

    def values(columns: Columns) -> Array:
        x = np.column_stack([x for *_, x in derived(columns)])
        may_be_empty = np.array([name in MAY_BE_EMPTY for name, *_ in derived(columns)])
        return np.where(undefined[:, None] & may_be_empty, 0.0, x)

    def terms(ends: int) -> Array:
        parts = [values(_columns(model, request, _without(motion, joint.v))) for joint in model.joints]
        is_sum = np.array([not name.startswith("zmp.") for name, *_ in derived(columns)])
        return np.where(is_sum, term_sizes(values(columns), parts, ends), 0.0)

    names, units = zip(*((name, unit) for name, unit, _ in derived(columns)), strict=True)
    uncertainty = error_warnings(values(columns), motion.variants, lambda variant: values(_columns(model, request, variant)),
                                 names, units, model_scales(model).unit_scales(units),
                                 None if model.nc else "liedyn inverse --smooth auto first", terms)
    loops = LiedynWarning("no-manipulability",
                          f"the manipulability is not computed, because {model.name} has constraints; Jacobians are with "
                          "respect to all joints of its tree")
    missing = [loops] if model.nc and jacobian and links else []
    checks = unit_warnings(model, trajectory.t, motion.q, motion.v, motion.a, trajectory)
    return CompletedTrajectory(header, trajectory.t, columns, (*motion.warnings, *checks, *flight, *uncertainty, *missing))


def frame_comment(frame: str, point: Sequence[float] | None) -> str:
    """Return the comment of the file that names the axes, and the point if it is not the link's origin."""
    at = "" if point is None else f"; the point is {' '.join(repr(float(x)) for x in point)} in the link"
    return f"{frame}: {_AXES[frame]}{at}"


def kinematics_request(model: Model, patterns: Sequence[str], point: Sequence[float] | None, frame: Frame, jacobian: bool,
                       **whole: bool) -> KinematicsRequest:
    """Return the request for patterns of link names. Raise UsageError for arguments that cannot be combined."""
    check_frame(frame)

    links = [model.link_names[k] for k in select(patterns, model.link_names, "link of --link")]
    if not links and not any(whole.values()):
        raise UsageError("there is nothing to compute: name a link with --link NAME, or use --com, --momentum or --zmp")
    if not links and (point is not None or jacobian):
        raise UsageError(f"{'--point' if point is not None else '--jacobian'} needs --link NAME")
    if point is not None and len(links) > 1:
        raise UsageError(f"--point is in the axes of one link; there are {len(links)}: {', '.join(links)}")
    p = np.array((0.0, 0.0, 0.0) if point is None else point, dtype=float)
    if p.shape != (3,) or not np.isfinite(p).all():
        raise UsageError(f"--point: expected three finite numbers [m], got {' '.join(map(str, p))}")
    if jacobian:
        count = 6 * model.nv * len(links)
        length = 6 * sum(len(f"jacobian.{link}.wx/{name}[m/rad],") for link in links for name in model.v_names)
        if count > LARGEST or 2 * length > LONGEST_LINE:
            raise UsageError(f"the Jacobians would have {count} columns, at most {LARGEST} are written, in a header line of "
                             f"{LONGEST_LINE} characters: name fewer links")
    return KinematicsRequest(tuple(links), p, frame, jacobian, **whole)


def _without(motion: SampledMotion, v: slice) -> SampledMotion:
    """Return a motion in which a joint with these velocities does not move: its results lack the term of this joint."""
    moves = np.ones(motion.v.shape[1])
    moves[v] = 0.0
    return replace(motion, v=motion.v * moves, a=motion.a_or_zero * moves)


def _columns(model: Model, request: KinematicsRequest, motion: SampledMotion) -> Columns:
    out: Columns = []
    T, V, dV = all_link_motions(model, motion.q, motion.v, motion.a_or_zero)
    for link in request.links:
        k = model.link_index(link)
        out += _link_columns(request, link, T[:, k], V[:, k], dV[:, k])
        if request.jacobian:
            out += _jacobian_columns(model, request, link, motion.q, T[:, k])
    if request.com or request.momentum or request.zmp:
        out += _whole_columns(model, request, motion)
    return out


def _link_columns(request: KinematicsRequest, link: str, T: Array, V: Array, dV: Array) -> Columns:
    T, V, dV = _at_point(T, request.point), _shifted(V, request.point), _shifted(dV, request.point)
    speed = np.linalg.norm(V[:, 3:], axis=1)
    pose = np.concatenate([T[:, :3, 3], continuous_quaternions(T[:, :3, :3])], axis=1)
    out = _named(f"pose.{link}", ("px", "py", "pz", "qx", "qy", "qz", "qw"), ["m"] * 3 + [""] * 4, pose)
    out += _named(f"twist.{link}", _TWIST, ["rad/s"] * 3 + ["m/s"] * 3, twists_in_frame(request.frame, T, V))
    out += [(f"speed.{link}", "m/s", speed)]
    return out + _named(f"acceleration.{link}", tuple(f"d{part}" for part in _TWIST), ["rad/s^2"] * 3 + ["m/s^2"] * 3,
                        accelerations_in_frame(request.frame, T, V, dV))


def _jacobian_columns(model: Model, request: KinematicsRequest, link: str, q: Array, T: Array) -> Columns:
    local = _shifted(np.swapaxes(jacobian(model, q, link, frame="local"), 1, 2), request.point)     # (N, nv, 6): rows are twists
    J = twists_in_frame(request.frame, _at_point(T, request.point)[:, None], local)
    out = [(f"jacobian.{link}.{part}/{name}", quotient("rad" if row < 3 else "m", unit), J[:, k, row])
           for row, part in enumerate(_TWIST) for k, (name, unit) in enumerate(zip(model.v_names, model.v_units, strict=True))]
    if model.nc:
        return out
    return [*out, (f"manipulability.{link}", "", _volume(local)),
            (f"manipulability.{link}.position", "", _volume(local[..., 3:]))]


def _volume(rows: Array) -> Array:
    """Return sqrt det J J^T from J^T (N, nv, m): the product of the singular values; 0 if nv < m."""
    n, m = rows.shape[1:]
    volume: Array = np.prod(np.linalg.svd(rows, compute_uv=False), axis=1) if n >= m else np.zeros(len(rows))
    return volume


def _whole_columns(model: Model, request: KinematicsRequest, motion: SampledMotion) -> Columns:
    moving = moving_links(model)
    mass = sum(link.mass for link, moves in zip(model.description.links, moving, strict=True) if moves)
    c, h = centre_of_mass(model, motion.q), momentum(model, motion.q, motion.v)
    rate = newton_euler_residual(model, motion.q, motion.v, motion.a_or_zero, gravity=False)[:, moving].sum(axis=1)
    axes = ("x", "y", "z")
    out: Columns = []
    if request.com:
        for name, unit, x in (("position", "m", c), ("velocity", "m/s", h[:, 3:] / mass),
                              ("acceleration", "m/s^2", rate[:, 3:] / mass)):
            out += _named(f"com.{name}", axes, [unit] * 3, x)
    if request.momentum:
        out += _named("momentum.angular", axes, ["kg m^2/s"] * 3, h[:, :3] - np.cross(c, h[:, 3:]))
        out += _named("momentum.linear", axes, ["kg m/s"] * 3, h[:, 3:])
    if request.zmp:
        weight = mass * np.asarray(model.gravity)
        m, f = rate[:, :3] - np.cross(c, weight), rate[:, 3:] - weight
        min_force = _FEWEST_NEWTONS * model_scales(model).unit_scale("N")
        vertical = np.where(np.abs(f[:, 2]) > min_force, f[:, 2], np.nan)         # in free flight the point is not defined
        out += [("zmp.x", "m", -m[:, 1] / vertical), ("zmp.y", "m", m[:, 0] / vertical), ("zmp.force", "N", f[:, 2])]
    return out


def _flight_warnings(t: Array, columns: Columns) -> list[LiedynWarning]:
    """Return a warning if the zero-moment point is undefined in some rows. Raise ComputationError if it is undefined in all."""
    flight = np.isnan(next(x for name, _, x in columns if name == "zmp.x"))
    if flight.all():
        raise ComputationError("the zero-moment point is not defined: no vertical force acts on the robot at any time (free "
                               "fall, or no gravity); omit --zmp")
    if not flight.any():
        return []
    return [LiedynWarning("zmp-undefined",
                          f"the zero-moment point is not defined in {flight.sum()} of {len(t)} rows, the first at t = "
                          f"{float(t[np.argmax(flight)])!r}, where no vertical force acts on the robot: these cells are empty")]


def _named(kind: str, parts: Sequence[str], units: Sequence[str], x: Array) -> Columns:
    return [(f"{kind}.{part}", unit, x[:, k]) for k, (part, unit) in enumerate(zip(parts, units, strict=True))]


def _at_point(T: Array, point: Array) -> Array:
    out = T.copy()
    out[..., :3, 3] += T[..., :3, :3] @ point
    return out


def _shifted(V: Array, point: Array) -> Array:
    """Return local twists [w; v] about a point of the link instead of its origin: v + w x point."""
    return np.concatenate([V[..., :3], V[..., 3:] + np.cross(V[..., :3], point)], axis=-1)
