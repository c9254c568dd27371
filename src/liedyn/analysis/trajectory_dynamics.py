"""Inverse, forward and hybrid dynamics along the rows of a trajectory file."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from liedyn.analysis.recorded_motion import (
    CompletedTrajectory,
    SampledMotion,
    columns_of_motion,
    error_warnings,
    header_along,
    motion_for,
    prescribed_of,
    recorded_limit_warnings,
)
from liedyn.analysis.trajectory_time_derivatives import higher_order_along
from liedyn.dynamics.batching.arrays import WORLD, wrenches_in_frame
from liedyn.dynamics.constraints.constrained_dynamics import constrained_hybrid_dynamics
from liedyn.dynamics.constraints.constrained_inverse import constrained_inverse_dynamics
from liedyn.dynamics.constraints.constraints import (
    closure_wrenches,
    constraint_bias,
    constraint_jacobian,
    constraint_residual,
    constraint_velocity,
    constraint_wrenches,
)
from liedyn.dynamics.constraints.rank import coordinate_scales, equation_weights, least_norm_solution, rate_magnitude
from liedyn.dynamics.dynamics import forward_dynamics, hybrid_dynamics, inverse_dynamics, newton_euler_residual
from liedyn.dynamics.kinematics import link_poses
from liedyn.errors import ConfigurationError, LiedynWarning, Place, TrajectoryError, UsageError
from liedyn.model.model import Model
from liedyn.model.spatial import pose
from liedyn.simulation.name_binding import joint_coordinates
from liedyn.simulation.run_checks import slow_friction_warnings
from liedyn.simulation.trajectory_columns import constraint_columns, joint_wrench_columns, motion_columns, reaction_comment

# What dynamics of mechanisms along the rows of a trajectory file needs besides: closed rows, and who is actuated --------

_CLOSED = 1e-5          # rad or lengths of the loop; of velocities, of the largest: six digits in a file, times lever arms
_MOVED = 1e-6           # of the largest acceleration: accelerations that were moved more than rounding does are told of


def motors_of(model, motion, actuated):
    """(nv,) bool, the joints that are actuated, and a warning: those asked for or, where none is, those with a force in the
    trajectory."""
    if actuated.any():
        return actuated, []
    actuated = np.zeros(model.nv, dtype=bool) if motion.tau is None else np.abs(motion.tau).max(axis=0) > 0.0
    if not actuated.any():
        raise UsageError(f"the robot {model.name} has constraints: which of its joints are actuated? Name them, for instance "
                         f"--actuated {model.joint_names[0]} (or record forces: joints with a force are taken)")
    names = ", ".join(name for name, on in zip(model.v_names, actuated, strict=True) if on)
    return actuated, [LiedynWarning("actuated-joints", f"actuated joints (those with forces in the trajectory): {names}")]


def inverse_of_mechanism(model, motion, actuated, criterion) -> SampledMotion:
    """With joint forces, and accelerations that obey the constraints. actuated: (nv,) bool."""
    a, warnings = obedient(model, motion)
    found = constrained_inverse_dynamics(model, motion.q, motion.v, a, actuated, criterion=criterion, f_ext=motion.f_ext,
                                         passive=motion.passive)
    return replace(motion, a=a, tau=found.tau, multipliers=found.multipliers, warnings=(*motion.warnings, *warnings))


def obedient(model, motion):
    """Accelerations moved, least, to where they obey the constraints (those derived from positions do so nearly), and a warning
    if that is more than rounding."""
    A = constraint_jacobian(model, motion.q)
    off = np.einsum("nrk,nk->nr", A, motion.a) + constraint_bias(model, motion.q, motion.v)
    change = least_norm_solution(model, A, off[..., None])[..., 0]
    size, moved = rate_magnitude(model, motion.a, 2).max(), np.abs(change / coordinate_scales(model)).max(initial=0.0)
    warning = LiedynWarning("moved-onto-constraints",
                            f"accelerations were moved onto the constraints, by up to {moved:.2g} of {size:.3g}")
    return motion.a - change, [warning] if moved > _MOVED * size else []


def closed(model, trajectory, motion: SampledMotion) -> SampledMotion:
    """The motion, derived velocities moved, least, to where they obey the constraints: deriving magnifies rounding of positions.

    Raises TrajectoryError for positions, and for given velocities, that violate the constraints."""
    driven = [one.name for one in model.constraints if one.driven]
    if driven:
        raise UsageError(f"the closure {driven[0]} of {model.name} is driven: its motion is not in a trajectory file; "
                         "simulate it, or use the library (constraint_motion=…)")
    _check_closed(model, trajectory, "position", constraint_residual(model, motion.q), _CLOSED)
    most = _CLOSED * rate_magnitude(model, motion.v, 1).max(initial=0.0)
    if any(name.startswith("v.") for name in trajectory.columns):
        _check_closed(model, trajectory, "velocity", constraint_velocity(model, motion.q, motion.v), most)
        return motion
    v, moved = _allowed(model, motion)
    warning = LiedynWarning("moved-onto-constraints",
                            f"derived velocities were moved onto the constraints, by up to {moved:.2g} of {most / _CLOSED:.3g}")
    variants = tuple(replace(one, v=_allowed(model, one)[0]) for one in motion.variants)
    return replace(motion, v=v, variants=variants, warnings=(*motion.warnings, *([warning] if moved > most else [])))


def _allowed(model, motion: SampledMotion) -> tuple[np.ndarray, float]:
    """Velocities (N, nv) that the constraints allow, and the largest change, in radians and lengths of the loops."""
    off = constraint_velocity(model, motion.q, motion.v)
    change = least_norm_solution(model, constraint_jacobian(model, motion.q), off[..., None])[..., 0]
    return motion.v - change, float(np.abs(change / coordinate_scales(model)).max(initial=0.0))


def _check_closed(model, trajectory, what: str, x: np.ndarray, most: float) -> None:
    """x (N, m): residuals."""
    off = np.abs(x) * equation_weights(model)
    if off.max(initial=0.0) > most:
        k, r = np.unravel_index(np.argmax(off), x.shape)
        raise TrajectoryError(f"the {what} violates the constraints", place=Place(trajectory.source, int(trajectory.lines[k])),
                              found=f"a residual of {abs(x[k, r]):.3g} in {model.constraint_equation_names[r]}",
                              expected=f"at most {most:.1g}",
                              hint="does the trajectory belong to this robot? (liedyn assemble closes a configuration)")


# transmitted wrenches ---------------------------------------------------------------------------------------------------

# What joints transmit along a motion, fixed joints and the cut joints of loops among them, in axes that a person chooses.

AXES = ("world", "link", "joint")
_OF_JOINTS = {"world": "world axes", "link": "axes of the child link",
              "joint": "axes of the joint's frame, fixed in the parent link"}
_OF_LOOPS = {"world": "world axes", "link": "axes of link b", "joint": "axes of frame b"}


def joint_wrenches_along(model: Model, motion, axes: str) -> dict[str, np.ndarray]:
    """{joint: (N, 6)} [m; f] [N m | N]: wrench on the child link from the parent link, about the child link's origin.

    All joints, fixed ones too, and the free joint of a floating base. A joint carries what the links beyond it need, less the
    external wrenches and the reactions of loops on them.

    motion : with q, v, a, f_ext and, of a robot with constraints, multipliers (`SampledMotion`); axes of `AXES`.
    """
    T = link_poses(model, motion.q)
    carried = newton_euler_residual(model, motion.q, motion.v, motion.a)
    if motion.f_ext is not None:
        carried = carried - wrenches_in_frame(WORLD, T, motion.f_ext)
    if motion.multipliers is not None:
        carried = carried - wrenches_in_frame(WORLD, T, constraint_wrenches(model, motion.q, motion.multipliers))
    joints = {one.name: (one.parent, one.child, pose(one.origin)) for one in model.description.joints}
    joints |= {one.name: (one.parent, one.child, one.home) for one in model.joints if one.name not in joints}
    out = {}
    for name in _outermost_first(joints):
        parent, child, home = joints[name]
        k = model.link_index(child)
        F, R = carried[:, k], T[:, k, :3, :3]
        inwards = parent in model.link_names
        if inwards:
            above = model.link_index(parent)
            carried[:, above] += F
        m, f = F[:, :3] - np.cross(T[:, k, :3, 3], F[:, 3:]), F[:, 3:]
        if axes == "joint":
            R = (T[:, above, :3, :3] if inwards else np.eye(3)) @ home[:3, :3]
        if axes != "world":
            m, f = (np.einsum("nji,nj->ni", np.broadcast_to(R, (len(m), 3, 3)), x) for x in (m, f))
        out[name] = np.concatenate([m, f], axis=1)
    return {name: out[name] for name in joints}


def reactions_along(model: Model, q: np.ndarray, multipliers: np.ndarray, axes: str) -> np.ndarray:
    """(N, n_closures, 6): on link b from link a, about the origin of frame b, in `axes`: "joint" are those of frame b."""
    if axes == "world":
        return closure_wrenches(model, q, multipliers)
    F = closure_wrenches(model, q, multipliers, frame="local")
    if axes == "link":
        for k, loop in enumerate(model.description.loops):
            R = pose(loop.pose_b)[:3, :3]
            F[:, k] = np.concatenate([F[:, k, :3] @ R.T, F[:, k, 3:] @ R.T], axis=1)
    return F


def wrench_comments(model: Model, axes: str) -> dict[str, str]:
    """Comments of the file that name the axes."""
    out = {"wrench": f"on the child link from the parent link, with the motor's force; {_OF_JOINTS[axes]}, about the child "
                     "link's origin"}
    if model.description.loops:
        out["reaction"] = reaction_comment(_OF_LOOPS[axes])
    return out


def _outermost_first(joints: dict[str, tuple]) -> list[str]:
    """Names of joints, each before the one that carries its parent link."""
    carrier = {child: parent for parent, child, _ in joints.values()}

    def depth(link: str) -> int:
        count = 0
        while link in carrier:
            link, count = carrier[link], count + 1
        return count
    return sorted(joints, key=lambda name: -depth(joints[name][1]))


# dynamics along ---------------------------------------------------------------------------------------------------------

@dataclass(frozen=True, eq=False)
class DynamicsRequest:
    """Dynamics along a motion, before it is computed. compute(model, motion): this motion, or another one, with a and tau
    complete; prescribed: (nv,) bool, the coordinates whose force is found and not given."""

    model: Model
    motion: SampledMotion
    compute: Callable[[Model, SampledMotion], SampledMotion]
    prescribed: np.ndarray


def dynamics_along(model: Model, trajectory, of: str, prescribed=(), *, actuated=(), criterion: str = "unique", order: int = 0,
                   smooth: float | str | None = None, wrenches: str | None = None, progress=None) -> CompletedTrajectory:
    """Inverse, forward or hybrid dynamics along a trajectory of q; v and a are derived from it where the file has none.

    External wrenches are taken from columns fext.<link>.<component>, and from the comment `# passive:` whether joint
    springs, damping and friction act.

    Parameters
    ----------
    of : "inverse", "forward" or "hybrid"
        What comes out: joint forces; accelerations, by the forces of the file; or forces of the prescribed joints and
        accelerations of the others.
    prescribed : patterns of joint names, for "hybrid"
    actuated, criterion
        For "inverse" of a robot with constraints: patterns of actuated joints, by default those with a force in the
        trajectory; and as in `constrained_inverse_dynamics`.
    order, smooth, progress
        With an `order`, or `smooth`: also so many time derivatives, see `higher_order_along`.
    wrenches : "world", "link" or "joint", optional
        Also the wrenches that joints transmit, in these axes.

    Raises
    ------
    TrajectoryError, UsageError, ComputationError
    """
    for option, given in (("actuated", actuated), ("criterion", criterion != "unique")):
        if given and not model.nc:
            raise UsageError(f"the robot {model.name} has no constraints: every joint's force follows from the motion, "
                             f"--{option} does not apply")
    if order or smooth is not None:
        if wrenches:
            raise UsageError("--wrenches cannot be combined with --order and --smooth: write v and a first with "
                             "--smooth, then use --wrenches on the result")
        return higher_order_along(model, trajectory, order, of=of, patterns=prescribed, smooth=smooth, progress=progress)
    return _along(model, trajectory, setting_of(model, trajectory, of, prescribed, actuated, criterion), wrenches)


def setting_of(model: Model, trajectory, of: str, prescribed=(), actuated=(), criterion: str = "unique") -> DynamicsRequest:
    """As for `dynamics_along`."""
    mask = prescribed_of(model, of, prescribed)
    motion = motion_for(model, trajectory, of, mask)
    if model.nc:
        motion = closed(model, trajectory, motion)
        if of == "inverse":
            motors, warnings = motors_of(model, motion, joint_coordinates(model, actuated))
            motion = replace(motion, warnings=(*motion.warnings, *warnings))

    def compute(model: Model, motion: SampledMotion) -> SampledMotion:
        state, given = (model, motion.q, motion.v), {"f_ext": motion.f_ext, "passive": motion.passive}
        if of == "inverse":
            if model.nc:
                return inverse_of_mechanism(model, motion, motors, criterion)
            return replace(motion, tau=inverse_dynamics(*state, motion.a, **given))
        a, tau = (np.zeros_like(motion.v) if x is None else x for x in (motion.a, motion.tau))
        if model.nc:
            found = constrained_hybrid_dynamics(*state, a, tau, mask, **given)
            return replace(motion, a=found.a, tau=found.tau, multipliers=found.multipliers)
        if of == "forward":
            return replace(motion, a=forward_dynamics(*state, tau, **given))
        a, tau = hybrid_dynamics(*state, a, tau, mask, **given)
        return replace(motion, a=a, tau=tau)

    return DynamicsRequest(model, motion, compute, mask)


def completed(setting: DynamicsRequest, motion: SampledMotion) -> SampledMotion:
    """ConfigurationError where forces are not finite."""
    found = setting.compute(setting.model, motion)
    if not np.isfinite(found.tau).all():
        raise ConfigurationError("the joint forces are not finite")
    return found


def _along(model: Model, trajectory, setting: DynamicsRequest, axes: str | None = None) -> CompletedTrajectory:
    """The trajectory with what is found. axes: those of the wrenches that joints transmit, None for none."""
    motion = completed(setting, setting.motion)
    header, columns = header_along(model, trajectory, motion.passive), columns_of_motion(model, motion)
    if motion.multipliers is not None:
        reactions = reactions_along(model, motion.q, motion.multipliers, axes or "world")
        columns += constraint_columns(model, motion.multipliers, reactions,
                                      np.abs(constraint_residual(model, motion.q)).max(axis=1))
    if axes:
        header |= wrench_comments(model, axes)
        columns += joint_wrench_columns(joint_wrenches_along(model, motion, axes))
    limits = recorded_limit_warnings(model, trajectory.t, motion.q, motion.v, motion.tau, setting.motion.a)
    slow = _slow_friction(model, trajectory.t, motion) if motion.passive else []
    return CompletedTrajectory(header, trajectory.t, columns,
                               (*motion.warnings, *limits, *slow, *_doubts(model, setting, motion)))


def _slow_friction(model: Model, t: np.ndarray, motion: SampledMotion) -> list[LiedynWarning]:
    speed = np.abs(motion.v)
    return slow_friction_warnings(model, speed.max(axis=0, initial=0.0), np.diff(t) @ speed[1:])


def _doubts(model: Model, setting: DynamicsRequest, found: SampledMotion) -> list[LiedynWarning]:
    """How far the result is off where velocities or accelerations were derived."""
    forces, accelerations = (motion_columns(model, **{kind: found.a}) for kind in ("tau", "a"))
    chosen = [force if given else acceleration
              for force, acceleration, given in zip(forces, accelerations, setting.prescribed, strict=True)]

    def results(motion: SampledMotion) -> np.ndarray:
        return np.where(setting.prescribed, motion.tau, motion.a)

    return error_warnings(found, results(found), lambda other: results(setting.compute(model, other)),
                          [name for name, *_ in chosen], [unit for _, unit, _ in chosen], None if model.nc else "--smooth auto")
