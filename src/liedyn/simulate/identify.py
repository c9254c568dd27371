"""Identification: base parameters estimated from a recorded motion and its joint forces."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from liedyn.dynamics.base_parameters import BaseParameters, base_parameters
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.regressor import regressor
from liedyn.errors import ModelError, Place, TrajectoryError
from liedyn.io.csv import read_trajectory
from liedyn.loading import load
from liedyn.model.model import Model
from liedyn.simulate.recorded import robot_of
from liedyn.simulate.recorded_motion import motion_of, require

POOR = 0.3            # a parameter is poorly excited where its standard deviation is this part of its value
_UNSEEN = 1e-9        # a direction with this part of the largest singular value is not excited at all
_ROUNDS = 5           # of weights; the first has none
_LEAST_NOISE = 1e-12  # of the largest force: exact data are weighted as if they had rounding only


@dataclass(frozen=True, eq=False)
class Identification:
    """What a motion tells of the base parameters.

    base         the base parameters (those of the robot file in `base.values`)
    estimate     (b,) weighted least squares; in directions that the motion does not excite, the robot file's
    deviation    (b,) standard deviations; infinite where the motion does not excite the parameter
    poor         names of those whose deviation is more than 30% of the estimate
    condition    of the weighted regressor along the motion, its columns normalized
    residual     (nv,) root mean square of what force is left over [N m | N]
    force        (nv,) root mean square of the force
    rows         how many rows of the trajectory were used
    notes        what a person should know before trusting the result
    """

    base: BaseParameters
    estimate: np.ndarray
    deviation: np.ndarray
    poor: tuple[str, ...]
    condition: float
    residual: np.ndarray
    force: np.ndarray
    rows: int
    notes: tuple[str, ...]


def identify(model, trajectory, *, joints: Sequence[str] | None = None, tolerance: float | None = None) -> Identification:
    """Estimate the base parameters of a model from a trajectory of q and tau (v and a are derived where it has none).

    Parameters
    ----------
    model : Model
        Its geometry is taken as true, and so is what is not estimated: joint parameters without a column, external wrenches
        of the trajectory's fext columns.
    trajectory : liedyn.io.csv.Trajectory
    joints : sequence of "armature", "damping", "friction", "stiffness", optional
        Joint parameters to estimate; default: those that the model has.
    tolerance : float, optional
        As in `base_parameters`.

    Returns
    -------
    Identification

    Raises
    ------
    TrajectoryError
        Without tau, or with fewer equations than parameters.
    ComputationError, NameLookupError

    Notes
    -----
    Least squares tells the noise of each joint's force; with its inverse as weight the equations are solved again (Gautier
    1997), some rounds. Standard deviations take q, v, a as exact: filter them first.
    """
    motion = motion_of(model, trajectory, derive_a=True)
    require(trajectory, motion.tau, "tau", "the joint forces")
    chosen = {"passive": motion.passive, "joints": joints}
    base = base_parameters(model, **chosen, **({} if tolerance is None else {"tolerance": tolerance}))
    Y = regressor(model, motion.q, motion.v, motion.a, **chosen)
    modelled = inverse_dynamics(model, motion.q, motion.v, motion.a, f_ext=motion.f_ext, passive=motion.passive)
    rhs = motion.tau - (modelled - Y @ base.parameters.values)        # less what is not estimated
    if rhs.size < len(base):
        raise TrajectoryError("the trajectory is too short for so many parameters", place=Place(trajectory.source),
                              found=f"{rhs.size} equations", expected=f"at least {len(base)}")
    equations = _compressed(Y[:, :, base.columns], rhs - Y[:, :, base.columns] @ base.values)
    least = _LEAST_NOISE * np.abs(rhs).max(initial=1e-300)
    freedom = np.sqrt(rhs.size / max(rhs.size - len(base), 1))
    noise = np.ones(model.nv)
    for _ in range(_ROUNDS):
        change, deviation, condition = _solve(equations, noise)
        residual = _residual(equations, change, len(rhs))
        noise = np.maximum(freedom * residual, least)
    estimate = base.values + change
    return Identification(base, estimate, deviation, _poor(base, estimate, deviation), condition, residual,
                          np.sqrt(np.mean(motion.tau**2, axis=0)), len(rhs), (*motion.notes, *_doubts(base, deviation)))


def _compressed(W: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """(nv, k, b + 1): for each joint few equations [W | rhs] with the same least squares as its N rows (QR)."""
    return np.array([np.linalg.qr(np.column_stack([W[:, k], rhs[:, k]]), mode="r") for k in range(W.shape[1])])


def _residual(equations: np.ndarray, x: np.ndarray, rows: int) -> np.ndarray:
    """(nv,) root mean square over the rows."""
    return np.linalg.norm(equations @ np.r_[x, -1.0], axis=1) / np.sqrt(rows)


def _solve(equations: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Solution, standard deviations and condition of equations whose noise differs from joint to joint; zero in directions that
    are not excited."""
    weighted = (equations / noise[:, None, None]).reshape(-1, equations.shape[2])
    A, y = weighted[:, :-1], weighted[:, -1]
    scale = np.linalg.norm(A, axis=0)
    seen = scale > _UNSEEN * scale.max(initial=0.0)
    safe = np.where(seen, scale, 1.0)
    U, s, Vt = np.linalg.svd(np.where(seen, A / safe, 0.0), full_matrices=False)
    good = s > _UNSEEN * s[0]
    x = Vt[good].T @ (U[:, good].T @ y / s[good])
    blind = 1.0 - (Vt[good] ** 2).sum(axis=0)                            # how much of each parameter is in no excited direction
    variance = ((Vt[good] / s[good][:, None]) ** 2).sum(axis=0)
    deviation = np.where(blind > 1e-6, np.inf, np.sqrt(variance) / safe)
    return x / safe, deviation, float(s[0] / s[-1]) if good.all() and seen.all() else np.inf


def _poor(base: BaseParameters, estimate: np.ndarray, deviation: np.ndarray) -> tuple[str, ...]:
    """Names of the poorly known; a deviation that is nothing beside all parameters of its unit is none."""
    least = {unit: 1e-6 * max(abs(x) for x, u in zip(estimate, base.units, strict=True) if u == unit) for unit in set(base.units)}
    return tuple(name for name, unit, x, s in zip(base.names, base.units, estimate, deviation, strict=True)
                 if not s <= POOR * max(abs(x), least[unit]))


def _doubts(base: BaseParameters, deviation: np.ndarray) -> list[str]:
    unseen = [name for name, s in zip(base.names, deviation, strict=True) if not np.isfinite(s)]
    if not unseen:
        return []
    return [f"the motion does not excite {len(unseen)} of {len(base)} base parameters ({', '.join(unseen[:6])}"
            f"{', …' if len(unseen) > 6 else ''}): these are the robot file's"]


# for the command ---------------------------------------------------------------------------------------------------
class Found(NamedTuple):
    model: Model
    base: BaseParameters
    fit: Identification | None
    notes: tuple[str, ...]


def parameters_of(robot, trajectory=None, *, base: str | None = None, strict: bool = False, joints: Sequence[str] = (),
                  tolerance: float | None = None) -> Found:
    """Base parameters of a robot file, fitted to a trajectory file where there is one (with its base and gravity).

    joints: as in `base_parameters`; none: those that the robot has; "none": none of them."""
    kinds = None if not joints else tuple(what for what in joints if what != "none")
    if trajectory is None:
        model = load(robot, base=base, strict=strict)
        if not model.nv:
            raise ModelError(f"the robot {model.name} has no moving joint: no force depends on its parameters")
        given = {} if tolerance is None else {"tolerance": tolerance}
        return Found(model, base_parameters(model, passive=True, joints=kinds, **given), None, ())
    motion = read_trajectory(trajectory)
    model, notes = robot_of(motion, robot, base=base, strict=strict)
    fit = identify(model, motion, joints=kinds, tolerance=tolerance)
    return Found(model, fit.base, fit, (*notes, *fit.notes))
