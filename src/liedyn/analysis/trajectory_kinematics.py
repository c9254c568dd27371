"""Poses, twists, accelerations and Jacobians of links, centre of mass, momentum and zero-moment point along a trajectory file."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from liedyn.analysis.numerical_differentiation import error_warnings
from liedyn.analysis.recorded_motion import CompletedTrajectory, SampledMotion, header_along, motion_of_trajectory
from liedyn.analysis.trajectory_derivatives import LARGEST, quotient
from liedyn.dynamics.batching.arrays import LOCAL, LOCAL_WORLD_ALIGNED, WORLD, check_frame, twists_in_frame
from liedyn.dynamics.dynamics import moving_links, newton_euler_residual
from liedyn.dynamics.kinematics import all_link_motions, centre_of_mass, continuous_quaternions, jacobian, momentum
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, LiedynWarning, UsageError
from liedyn.io.csv_table import LONGEST_LINE
from liedyn.io.trajectory_csv import MAY_BE_EMPTY
from liedyn.model.model import Model
from liedyn.simulation.name_binding import select

_TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
_AXES = {LOCAL: "axes of the link, about its point",
         LOCAL_WORLD_ALIGNED: "world axes, about the link's point; the acceleration is the second derivative of its position",
         WORLD: "world axes, about the world's origin"}
_FEWEST_NEWTONS = 1e-9                   # of the weight: with a smaller vertical force, the zero-moment point is undefined

Columns = list[tuple[str, str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class KinematicsRequest:
    """The kinematic quantities to compute.

    links                                  names of links
    point                                  (3,) point in each link [m]
    frame                                  of twists, accelerations and Jacobians
    jacobian, com, momentum, zmp           whether these are computed
    """

    links: tuple[str, ...]
    point: np.ndarray
    frame: str
    jacobian: bool = False
    com: bool = False
    momentum: bool = False
    zmp: bool = False


def kinematics_along(model: Model, trajectory, links: Sequence[str] = (), *, point: Sequence[float] | None = None,
                     frame: str = LOCAL_WORLD_ALIGNED, jacobian: bool = False, com: bool = False, momentum: bool = False,
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
    asked = _question(model, links, point, frame, jacobian, com=com, momentum=momentum, zmp=zmp)
    motion = motion_of_trajectory(model, trajectory, derive_a=True)
    columns = _columns(model, asked, motion)
    flight = _flight_warnings(trajectory.t, columns) if zmp else []
    undefined = np.isnan(np.column_stack([x for *_, x in columns])).any(axis=1)
    header = header_along(model, trajectory, motion.passive)
    header.pop("reaction", None)
    if asked.links:
        header["frame"] = frame_comment(frame, point)
    fixed = ("pose.", "jacobian.", "manipulability.")        # depend only on q, which is never derived

    def derived(found: Columns) -> Columns:
        return [one for one in found if not one[0].startswith(fixed)]

    def values(found: Columns) -> np.ndarray:
        x = np.column_stack([x for *_, x in derived(found)])
        return np.where(undefined[:, None] & [name in MAY_BE_EMPTY for name, *_ in derived(found)], 0.0, x)

    names, units = zip(*((name, unit) for name, unit, _ in derived(columns)), strict=True)
    doubts = error_warnings(values(columns), motion.variants, lambda other: values(_columns(model, asked, other)), names, units,
                            None if model.nc else "liedyn inverse --smooth auto first")
    loops = LiedynWarning("no-manipulability",
                          f"no manipulability: the constraints of {model.name} bind its joints; Jacobians are by all joints of "
                          "its tree")
    missing = [loops] if model.nc and jacobian and links else []
    return CompletedTrajectory(header, trajectory.t, columns, (*motion.warnings, *flight, *doubts, *missing))


def frame_comment(frame: str, point: Sequence[float] | None) -> str:
    """Return the comment of the file that names the axes, and the point if it is not the link's origin."""
    at = "" if point is None else f"; the point is {' '.join(repr(float(x)) for x in point)} in the link"
    return f"{frame}: {_AXES[frame]}{at}"


def _question(model: Model, patterns, point, frame, jacobian: bool, **whole: bool) -> KinematicsRequest:
    """Return the request for patterns of link names. Raise UsageError for arguments that cannot be combined."""
    check_frame(frame)

    links = [model.link_names[k] for k in select(patterns, model.link_names, "link of --link")]
    if not links and not any(whole.values()):
        raise UsageError("there is nothing to compute: name a link with --link NAME, or use --com, --momentum or --zmp")
    if not links and (point is not None or jacobian):
        raise UsageError(f"{'--point' if point is not None else '--jacobian'} needs --link NAME")
    if point is not None and len(links) > 1:
        raise UsageError(f"--point is in the axes of one link; there are {len(links)}: {', '.join(links)}")
    p = np.zeros(3) if point is None else np.array(point, dtype=float)
    if p.shape != (3,) or not np.isfinite(p).all():
        raise UsageError(f"--point: expected three finite numbers [m]; found {' '.join(map(str, point))}")
    if jacobian:
        count = 6 * model.nv * len(links)
        length = 6 * sum(len(f"jacobian.{link}.wx/{name}[m/rad],") for link in links for name in model.v_names)
        if count > LARGEST or 2 * length > LONGEST_LINE:
            raise UsageError(f"the Jacobians would have {count} columns, at most {LARGEST} are written, in a header line of "
                             f"{LONGEST_LINE} characters: name fewer links")
    return KinematicsRequest(tuple(links), p, frame, jacobian, **whole)


def _columns(model: Model, asked: KinematicsRequest, motion: SampledMotion) -> Columns:
    out: Columns = []
    T, V, dV = all_link_motions(model, motion.q, motion.v, motion.a)
    for link in asked.links:
        k = model.link_index(link)
        out += _link_columns(asked, link, T[:, k], V[:, k], dV[:, k])
        if asked.jacobian:
            out += _jacobian_columns(model, asked, link, motion.q, T[:, k])
    if asked.com or asked.momentum or asked.zmp:
        out += _whole_columns(model, asked, motion)
    return out


def _link_columns(asked: KinematicsRequest, link: str, T, V, dV) -> Columns:
    T, V, dV = _at_point(T, asked.point), _shifted(V, asked.point), _shifted(dV, asked.point)
    speed = np.linalg.norm(V[:, 3:], axis=1)
    if asked.frame == LOCAL_WORLD_ALIGNED:                                 # d(R v)/dt = R (dv + w x v)
        dV = np.concatenate([dV[:, :3], dV[:, 3:] + np.cross(V[:, :3], V[:, 3:])], axis=1)
    pose = np.concatenate([T[:, :3, 3], continuous_quaternions(T[:, :3, :3])], axis=1)
    out = _named(f"pose.{link}", ("px", "py", "pz", "qx", "qy", "qz", "qw"), ["m"] * 3 + [""] * 4, pose)
    out += _named(f"twist.{link}", _TWIST, ["rad/s"] * 3 + ["m/s"] * 3, twists_in_frame(asked.frame, T, V))
    out += [(f"speed.{link}", "m/s", speed)]
    return out + _named(f"acceleration.{link}", _TWIST, ["rad/s^2"] * 3 + ["m/s^2"] * 3, twists_in_frame(asked.frame, T, dV))


def _jacobian_columns(model: Model, asked: KinematicsRequest, link: str, q, T) -> Columns:
    local = _shifted(np.swapaxes(jacobian(model, q, link, frame=LOCAL), 1, 2), asked.point)     # (N, nv, 6): rows are twists
    J = twists_in_frame(asked.frame, _at_point(T, asked.point)[:, None], local)
    out = [(f"jacobian.{link}.{part}/{name}", quotient("rad" if row < 3 else "m", unit), J[:, k, row])
           for row, part in enumerate(_TWIST) for k, (name, unit) in enumerate(zip(model.v_names, model.v_units, strict=True))]
    if model.nc:
        return out
    return [*out, (f"manipulability.{link}", "", _volume(local)),
            (f"manipulability.{link}.position", "", _volume(local[..., 3:]))]


def _volume(rows) -> np.ndarray:
    """Return sqrt det J J^T from J^T (N, nv, m): the product of the singular values; 0 if nv < m."""
    n, m = rows.shape[1:]
    return np.prod(np.linalg.svd(rows, compute_uv=False), axis=1) if n >= m else np.zeros(len(rows))


def _whole_columns(model: Model, asked: KinematicsRequest, motion: SampledMotion) -> Columns:
    moving = moving_links(model)
    mass = sum(link.mass for link, moves in zip(model.description.links, moving, strict=True) if moves)
    c, h = centre_of_mass(model, motion.q), momentum(model, motion.q, motion.v)
    rate = newton_euler_residual(model, motion.q, motion.v, motion.a, gravity=False)[:, moving].sum(axis=1)
    axes, out = ("x", "y", "z"), []
    if asked.com:
        for name, unit, x in (("position", "m", c), ("velocity", "m/s", h[:, 3:] / mass),
                              ("acceleration", "m/s^2", rate[:, 3:] / mass)):
            out += _named(f"com.{name}", axes, [unit] * 3, x)
    if asked.momentum:
        out += _named("momentum.angular", axes, ["kg m^2/s"] * 3, h[:, :3] - np.cross(c, h[:, 3:]))
        out += _named("momentum.linear", axes, ["kg m/s"] * 3, h[:, 3:])
    if asked.zmp:
        weight = mass * np.asarray(model.gravity)
        m, f = rate[:, :3] - np.cross(c, weight), rate[:, 3:] - weight
        least = _FEWEST_NEWTONS * model_scales(model).unit_scale("N")
        vertical = np.where(np.abs(f[:, 2]) > least, f[:, 2], np.nan)         # in free flight the point is not defined
        out += [("zmp.x", "m", -m[:, 1] / vertical), ("zmp.y", "m", m[:, 0] / vertical), ("zmp.force", "N", f[:, 2])]
    return out


def _flight_warnings(t, columns: Columns) -> list[LiedynWarning]:
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


def _named(kind: str, parts: Sequence[str], units: Sequence[str], x) -> Columns:
    return [(f"{kind}.{part}", unit, x[:, k]) for k, (part, unit) in enumerate(zip(parts, units, strict=True))]


def _at_point(T, point) -> np.ndarray:
    out = T.copy()
    out[..., :3, 3] += T[..., :3, :3] @ point
    return out


def _shifted(V, point) -> np.ndarray:
    """Return local twists [w; v] about a point of the link instead of its origin: v + w x point."""
    return np.concatenate([V[..., :3], V[..., 3:] + np.cross(V[..., :3], point)], axis=-1)
