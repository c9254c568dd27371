"""What dynamics of mechanisms along the rows of a trajectory file needs besides: closed rows, and who is actuated."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from liedyn.analyse.along.recorded_motion import Motion
from liedyn.dynamics.loops.constrained_inverse import constrained_inverse_dynamics
from liedyn.dynamics.loops.constraints import constraint_bias, constraint_jacobian, constraint_residual, constraint_velocity
from liedyn.dynamics.loops.rank import column_scale, least_solution, row_scale, size_of_rates
from liedyn.errors import Place, TrajectoryError, UsageError

_CLOSED = 1e-5          # rad or lengths of the loop; of velocities, of the largest: six digits in a file, times lever arms
_MOVED = 1e-6           # of the largest acceleration: accelerations that were moved more than rounding does are told of


def motors_of(model, motion, actuated):
    """(nv,) bool, the joints that are actuated, and a note: those asked for or, where none is, those with a force in the
    trajectory."""
    if actuated.any():
        return actuated, []
    actuated = np.zeros(model.nv, dtype=bool) if motion.tau is None else np.abs(motion.tau).max(axis=0) > 0.0
    if not actuated.any():
        raise UsageError(f"the robot {model.name} has constraints: which of its joints are actuated? Name them, for instance "
                         f"--actuated {model.joint_names[0]} (or record forces: joints with a force are taken)")
    names = ", ".join(name for name, on in zip(model.v_names, actuated, strict=True) if on)
    return actuated, [f"actuated joints (those with forces in the trajectory): {names}"]


def inverse_of_mechanism(model, motion, actuated, criterion) -> Motion:
    """With joint forces, and accelerations that obey the constraints. actuated: (nv,) bool."""
    a, notes = obedient(model, motion)
    found = constrained_inverse_dynamics(model, motion.q, motion.v, a, actuated, criterion=criterion, f_ext=motion.f_ext,
                                         passive=motion.passive)
    return replace(motion, a=a, tau=found.tau, multipliers=found.multipliers, notes=(*motion.notes, *notes))


def obedient(model, motion):
    """Accelerations moved, least, to where they obey the constraints (those derived from positions do so nearly), and a note if
    that is more than rounding."""
    A = constraint_jacobian(model, motion.q)
    off = np.einsum("nrk,nk->nr", A, motion.a) + constraint_bias(model, motion.q, motion.v)
    change = least_solution(model, A, off[..., None])[..., 0]
    size, moved = size_of_rates(model, motion.a, 2).max(), np.abs(change / column_scale(model)).max(initial=0.0)
    note = f"accelerations were moved onto the constraints, by up to {moved:.2g} of {size:.3g}"
    return motion.a - change, [note] if moved > _MOVED * size else []


def closed(model, trajectory, motion: Motion) -> Motion:
    """The motion, derived velocities moved, least, to where they obey the constraints: deriving magnifies rounding of positions.

    Raises TrajectoryError for positions, and for given velocities, that violate the constraints."""
    driven = [one.name for one in model.constraints if one.driven]
    if driven:
        raise UsageError(f"the closure {driven[0]} of {model.name} is driven: its motion is not in a trajectory file; "
                         "simulate it, or use the library (drive=…)")
    _refuse_open(model, trajectory, "position", constraint_residual(model, motion.q), _CLOSED)
    most = _CLOSED * size_of_rates(model, motion.v, 1).max(initial=0.0)
    if any(name.startswith("v.") for name in trajectory.columns):
        _refuse_open(model, trajectory, "velocity", constraint_velocity(model, motion.q, motion.v), most)
        return motion
    v, moved = _allowed(model, motion)
    note = f"derived velocities were moved onto the constraints, by up to {moved:.2g} of {most / _CLOSED:.3g}"
    variants = tuple(replace(one, v=_allowed(model, one)[0]) for one in motion.variants)
    return replace(motion, v=v, variants=variants, notes=(*motion.notes, *([note] if moved > most else [])))


def _allowed(model, motion: Motion) -> tuple[np.ndarray, float]:
    """Velocities (N, nv) that the constraints allow, and the largest change, in radians and lengths of the loops."""
    off = constraint_velocity(model, motion.q, motion.v)
    change = least_solution(model, constraint_jacobian(model, motion.q), off[..., None])[..., 0]
    return motion.v - change, float(np.abs(change / column_scale(model)).max(initial=0.0))


def _refuse_open(model, trajectory, what: str, x: np.ndarray, most: float) -> None:
    """x (N, m): residuals."""
    off = np.abs(x) * row_scale(model)
    if off.max(initial=0.0) > most:
        k, r = np.unravel_index(np.argmax(off), x.shape)
        raise TrajectoryError(f"the {what} violates the constraints", place=Place(trajectory.source, int(trajectory.lines[k])),
                              found=f"a residual of {abs(x[k, r]):.3g} in {model.row_names[r]}", expected=f"at most {most:.1g}",
                              hint="does the trajectory belong to this robot? (liedyn assemble closes a configuration)")
