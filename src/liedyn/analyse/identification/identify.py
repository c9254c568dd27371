"""Identification: base parameters estimated from a recorded motion and its joint forces."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import NamedTuple

import numpy as np

from liedyn.analyse.along.manifold_spline import noise as noise_of
from liedyn.analyse.along.recorded_checks import unwrapped
from liedyn.analyse.along.recorded_motion import Motion, given_motion, motion_of_arrays, naming, require
from liedyn.analyse.along.robot_of_file import as_recorded, attached_notes, robot_of, unknown_notes
from liedyn.analyse.identification.fit_check import ESTIMABLE, JointFit, joint_fits
from liedyn.analyse.identification.noisy_samples import NoisySamples, noisy_samples
from liedyn.analyse.identification.weighted_fit import Solution, compressed, effect_of_noise, fit, solve, variance_by_force
from liedyn.arrays import Mask
from liedyn.dynamics.calling.annotations import Array, ArrayLike, Wrenches
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.parameters.base_parameters import BaseParameters, base_parameters
from liedyn.dynamics.parameters.regressor import joint_kinds, regressor
from liedyn.dynamics.scales import scales_of
from liedyn.errors import ModelError, TrajectoryError, UsageError, warn
from liedyn.immutable import Immutable
from liedyn.io.csv import Trajectory, read_trajectory, refuse_events
from liedyn.loading import read_model
from liedyn.model.model import Model
from liedyn.simulation.names import listed

RELIABLE, IMPRECISE, UNRELIABLE, UNSEEN, MIXED, UNPHYSICAL = VERDICTS = (
    "reliable", "imprecise", "not reliable", "not excited", "not separable", "not physical")
_IMPRECISE = 0.3      # deviation relative to the value from which an estimate is imprecise
_MATERIAL = 0.01      # of a joint's torque (rms): a value with a smaller effect is judged as if it had this effect
_LEAST_NOISE = 1e-12  # of the largest force, in characteristic units: exact data are weighted as if they had rounding only
_DRAWS = 8            # pairs of draws of noise
_NOISE = 0.1          # a parameter is not reliable where this part of what tells it is noise
_SHARE = 1e-3         # of what tells a parameter: a joint that contributes less does not spoil it
_NEGATIVE = 4.0       # deviations below zero from which a sum of masses, moments of inertia and losses is negative
_POSITIVE = ("mass", "Ixx", "Iyy", "Izz", "armature", "damping", "friction")       # of every physical robot
_ONE_FACTOR = 1.5     # ratio between the largest and the smallest of ratios that count as one factor
_PASSIVE = ("damping", "friction", "stiffness")
_FAR = 3.0            # from a factor of 1: a robot file does not differ so much in all values at once
_SEVERAL = 3          # values that all have another sign than the robot file, if no value is impossible
_SLIGHT = 0.01        # a systematic error that leaves the deviation below this part of the value does no harm


@dataclass(frozen=True, eq=False, repr=False)
class Identification(Immutable):
    """What a motion tells of the base parameters.

    values       (b,) estimates: weighted least squares; in directions that the motion does not excite, the robot file's
    deviations   (b,) standard deviations; infinite where the motion does not excite the parameter, or only with others
    relative     (b,) deviations relative to the values. A value whose effect is below 1% of each joint's torque is replaced by
                 the value with an effect of 1%
    verdicts     (b,) of "reliable"; "imprecise": the deviation is right, but more than 30% of the value; "not reliable": noise,
                 smoothing or a torque that the model lacks biases the value by more than its deviation, or the value depends on
                 a joint whose torque the model does not explain; "not excited": the value is that of the robot file; "not
                 separable": the motion determines combinations with other parameters only. The value alone has no meaning;
                 "not physical": the value is certainly negative, but a sum of masses, moments of inertia, armature, damping
                 and friction
    misfits      (b,) joints whose torque the model does not explain and on which the value depends, "" where there are none
    scale_errors (b,) by how much the value may be off because the measured torque of one joint has a wrong scale that is too
                 small to be found (`JointFit.scale`; 1 where the scale is not tested). Deviations do not contain it
    base         the base parameters: what they stand for; those of the robot file are `base.values`
    condition    of the weighted regressor along the motion, its columns normalized
    joints       (nv,) test of each joint's residual: noise, autocorrelation, and what torque the model may lack (`JointFit`)
    residual     (nv,) root mean square of what force is left over [N m | N]
    force        (nv,) root mean square of the force
    rows         how many rows of the trajectory were used
    notes        what a person should know before trusting the result

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 2, 401)
    >>> q = np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)
    >>> m = ld.motion_of(model, ld.trajectory_of(model, t, q))
    >>> fit = ld.identify(model, t, q, ld.inverse_dynamics(model, *m[1:4]), v=m.v, a=m.a)
    >>> fit.names[1], fit.units[1], fit.verdicts[1], fit.verdict
    ('hz.upper', 'kg m', 'reliable', 'the model explains the torques')
    """

    values: Array
    deviations: Array
    relative: Array
    verdicts: tuple[str, ...]
    misfits: tuple[str, ...]
    scale_errors: Array
    base: BaseParameters
    condition: float
    joints: tuple[JointFit, ...]
    residual: Array
    force: Array
    rows: int
    notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    @property
    def units(self) -> tuple[str, ...]:
        return self.base.units

    @property
    def reliable(self) -> Mask:
        """(b,) bool: the verdict is "reliable"."""
        return np.array([verdict == RELIABLE for verdict in self.verdicts], dtype=bool)

    @property
    def verdict(self) -> str:
        """Whether the model explains the torques; otherwise the joints with a misfit."""
        misfit = [joint.joint for joint in self.joints if not joint.explained]
        return f"the model does not explain the torques of {listed(misfit, 6)}" if misfit else "the model explains the torques"

    @property
    def premise(self) -> str:
        """What the values and deviations suppose of the measured torques, and how far the fit has tested it."""
        tested = [f"{joint.joint} {100 * joint.scale:.2g} %" for joint in self.joints if joint.scale < 1.0]
        rest = [joint.joint for joint in self.joints if not joint.scale < 1.0]
        known = "; ".join([*([f"tested to {listed(tested, 6)}"] if tested else []),
                           *([f"not tested: {listed(rest, 6)}"] if rest else [])])
        return (f"values and deviations hold if the scales of the measured torques are right ({known}; a common scale cannot be "
                "tested)")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        sure = self.verdicts.count(RELIABLE)
        lines = [f"Identification of {len(self)} base parameters from {self.rows} rows: {sure} reliable, condition "
                 f"{self.condition:.3g}; {self.verdict}"]
        wide = max(map(len, self.names), default=0)
        for name, x, s, unit, verdict in zip(self.names, self.values, self.deviations, self.units, self.verdicts, strict=True):
            mark = "" if verdict == RELIABLE else f"  {verdict.upper()}"
            lines.append(f"  {name.ljust(wide)}  {x:12.6g} ± {s:<8.2g} {unit}{mark}")
        return "\n".join([*lines, f"  {self.premise}"])


def identify(model: Model, t: ArrayLike | str | PathLike[str] | Trajectory, q: ArrayLike | None = None,
             tau: ArrayLike | None = None, *, v: ArrayLike | None = None, a: ArrayLike | None = None,
             f_ext: Wrenches | None = None, passive: bool | None = None, joints: Sequence[str] | None = None,
             offset: bool = True, smooth: float | str | None = "auto", tolerance: float | None = None) -> Identification:
    """Estimate the base parameters of a model from a recorded motion and its joint forces.

        fit = ld.identify(model, t, q, tau)                  # arrays
        fit = ld.identify(model, "motion.csv")               # a trajectory file

    Parameters
    ----------
    model : Model
        Its geometry is taken as true, and so is what is not estimated: joint parameters without a column, external wrenches.
    t : (N,) array, path or Trajectory
        Times [s], increasing; or a file that holds t, q, tau and perhaps v, a and external wrenches. Its comments `gravity` and
        `armatures` replace those of the model; a note reports a difference.
    q : (N, nq) array
        Configurations [rad | m]; ball and free joints hold unit quaternions x y z w.
    tau : (N, nv) array
        Joint forces [N m | N].
    v, a : (N, nv) arrays, optional
        Velocities [rad/s | m/s] and accelerations, where they were measured. What is missing is derived.
    f_ext : (N, n_links, 6) array or {link name: (N, 6) array}, optional
        External wrench [m; f] on each link, in the link frame, about its origin.
    passive : bool, optional
        Whether springs, damping and friction acted. Default: as the file says, else True. If they did not, none of them can be
        estimated.
    joints : sequence of "armature", "damping", "friction", "stiffness", optional
        Joint parameters to estimate; default: those that the model has.
    offset : bool
        Whether a constant torque of each joint is estimated, too (parameters offset.<coordinate>).
    smooth : "auto", float or None
        How v and a are derived where they are missing: by least-squares splines with knots so many seconds apart, or "auto":
        where the estimated error of a is least. None: by splines through every row, which magnify noise.
    tolerance : float, optional
        As in `base_parameters`.

    Returns
    -------
    Identification

    Raises
    ------
    TrajectoryError
        Without tau, or with fewer equations than parameters.
    UsageError
        For springs, damping or friction in `joints` if they did not act.
    ShapeError, ConfigurationError, ComputationError, NameLookupError

    Notes
    -----
    Forces and regressor pass the low-pass filter of the splines, one equation a knot (parallel filtering and decimation, Gautier
    1997). Least squares estimates the noise of each joint's force; with its inverse as weight, the equations are solved again,
    for some rounds. The noise of q, v, a is measured from their high differences. With as much noise added again, the change of
    the estimate gives its deviation and its bias due to noise (simulation and extrapolation, Cook and Stefanski 1994).

    The residual of each joint is tested for autocorrelation, which widens the deviations (effective number of samples), and for
    torques that the model lacks: offset, friction, damping, spring, scale of the torque, time shift (score tests). If one is
    significant, or the residual is coloured and larger than the noise, estimates that depend on this joint are not reliable. A
    wrong scale common to all torques, or of a joint whose parameters no other joint's torque depends on, cannot be found: values
    and deviations suppose right scales.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 2, 401)
    >>> q = np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)
    >>> motion = ld.motion_of(model, ld.trajectory_of(model, t, q))
    >>> tau = ld.inverse_dynamics(model, motion.q, motion.v, motion.a)
    >>> ld.identify(model, t, q, tau, v=motion.v, a=motion.a).values.round(3)
    array([ 0.   , -1.5  ,  1.333,  0.   , -0.5  ,  0.333,  0.   ,  0.   ])
    """
    smooth = _checked(smooth)
    source = read_trajectory(t, events=True) if isinstance(t, (str, PathLike)) else t
    if not isinstance(source, Trajectory):
        return _warned(_identify(model, *motion_of_arrays(model, t, q, tau, v, a, f_ext, passive), joints, offset, smooth,
                                 tolerance))
    if any(x is not None for x in (q, tau, v, a, f_ext)):
        raise UsageError("a trajectory file holds q, tau, v, a and f_ext: give either the file or arrays")
    model, differing = as_recorded(model, source)
    source, jumps = _without_jumps(model, source, smooth)
    motion = given_motion(model, source)
    motion = replace(motion, notes=(*motion.notes, *differing, *attached_notes(source), *unknown_notes(model, source), *jumps))
    require(source, motion.tau, "tau", "the joint forces")
    if passive is not None:
        motion = replace(motion, passive=passive)
    with naming(source):
        found = _identify(model, source.t, motion, joints, offset, smooth, tolerance)
    return _warned(found)


def _without_jumps(model: Model, source: Trajectory, smooth) -> tuple[Trajectory, list[str]]:
    """The rows of a file with increasing times: of two rows at one event, the one before it. Equations that hold row by row need
    no other change; what is derived or smoothed across a jump would be wrong, which is an error."""
    first = np.r_[True, np.diff(source.t) > 0.0]
    if first.all():
        return source, []
    given = given_motion(model, source)
    missing = [name for name, x in (("v", given.v), ("a", given.a)) if x is None]
    if missing:
        refuse_events(source, " and ".join(missing))
    if smooth not in (None, "auto"):
        refuse_events(source, "a smooth motion")
    kept = replace(source, t=source.t[first], columns={name: x[first] for name, x in source.columns.items()},
                   lines=source.lines[first])
    return kept, [f"the motion jumps at events: of two rows at one time, the second is left out ({len(first) - len(kept)} rows)"]


def _warned(found: Identification) -> Identification:
    warn(found.notes)
    return found


def _checked(smooth) -> float | str | None:
    if smooth in (None, "none"):
        return None
    if smooth == "auto" or (isinstance(smooth, (int, float)) and 0.0 < smooth < math.inf):
        return smooth
    raise UsageError(f"smooth is {smooth!r}; expected 'auto', a positive number of seconds, or None")


def _identify(model: Model, t, motion: Motion, joints, offset: bool, smooth, tolerance: float | None) -> Identification:
    kinds = joint_kinds(model, motion.passive, joints)
    idle = [] if motion.passive else [kind for kind in kinds if kind in _PASSIVE]
    if idle:
        raise UsageError(f"{listed(idle, 6)} did not act in this recording (passive is False) and cannot be estimated: omit it "
                         "from the joint parameters, or use passive=True, the comment `# passive: true` of a file")
    chosen = {"passive": motion.passive, "joints": (*kinds, "offset") if offset and "offset" not in kinds else kinds}
    base = base_parameters(model, **chosen, **({} if tolerance is None else {"tolerance": tolerance}))
    if motion.v is None:
        q, unwrapping = unwrapped(model, motion.q)
        motion = replace(motion, q=q, notes=(*motion.notes, *unwrapping))
    samples, notes = noisy_samples(model, t, motion, smooth)
    rows = _Rows(model, base, motion, samples, chosen)
    raw = rows.equations()
    W = rows.filtered(raw)
    if raw.shape[0] * raw.shape[1] < len(base):
        raise TrajectoryError("the trajectory is too short for so many parameters",
                              found=f"{raw.shape[0] * raw.shape[1]} equations", expected=f"at least {len(base)}")
    forces = scales_of(model).of_forces(model.v_units)
    least = _LEAST_NOISE * forces * (np.abs(motion.tau / forces).max(initial=0.0) or 1.0)
    found = fit(W, least, base.sizes[base.columns])
    values = base.values + found.x
    left = raw @ np.r_[found.x, -1.0]
    tested, shifts, rescaled = rows.tested(W, found, left, least)
    sizes = _sizes(raw, values, motion.tau[samples.inner])
    deviations, trusted, misfits = _doubts(rows, W, found, tested, shifts, sizes)
    untested = np.minimum([joint.scale for joint in tested], 1.0)
    scale_errors = np.where(found.blind, np.inf, np.abs(rescaled * untested[:, None]).max(axis=0))
    relative = np.divide(deviations, sizes, out=np.full_like(sizes, np.inf), where=np.isfinite(deviations) & (sizes > 0.0))
    verdicts = tuple(MIXED if mixed else UNSEEN if blind else UNRELIABLE if not good else IMPRECISE if ratio > _IMPRECISE
                     else RELIABLE for mixed, blind, good, ratio in zip(found.mixed, found.blind, trusted, relative, strict=True))
    verdicts = _physical(base, values, deviations, sizes, verdicts)
    explained = all(joint.explained for joint in tested)
    if motion.v is not None or motion.a is not None:
        mend = "omit the given v and a, so that they are derived from smoothed positions"
    elif smooth != "auto":
        mend = "smooth the positions with auto"
    elif explained:
        mend = "use data with less noise, or a longer or faster motion"
    else:
        mend = "add what the model lacks first"
    residual, force = (np.sqrt(np.mean(x**2, axis=0)) for x in (left, motion.tau))
    notes = [*motion.notes, *notes, *_fit_notes(model, tested, residual, force, kinds, motion.passive),
             *_notes(base, verdicts, misfits, mend), *_unlike_notes(base, values, sizes, verdicts)]
    return Identification(values, deviations, relative, verdicts, misfits, scale_errors, base, found.condition, tested,
                          residual, force, len(raw), tuple(notes))


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a motion as equations for changes of the base parameters."""

    model: Model
    base: BaseParameters
    motion: Motion
    samples: NoisySamples
    chosen: dict

    def equations(self, **how) -> np.ndarray:
        """(N inner, nv, b + 1), the last column what force the model does not explain. how: as in `NoisySamples.states`."""
        inner = self.samples.inner
        states = self.samples.states(**how)
        f_ext = None if self.motion.f_ext is None else self.motion.f_ext[inner]
        Y = regressor(self.model, *states, **self.chosen)[:, :, self.base.columns]
        modelled = inverse_dynamics(self.model, *states, f_ext=f_ext, passive=self.motion.passive)
        return np.concatenate([Y, (self.motion.tau[inner] - modelled)[:, :, None]], axis=2)

    def filtered(self, W: np.ndarray) -> np.ndarray:
        """(n, nv, b + 1)"""
        return self.samples.filter(W.reshape(len(W), -1)).reshape(-1, *W.shape[1:])

    def tested(self, W: np.ndarray, found: Solution, left: np.ndarray,
               least: np.ndarray) -> tuple[tuple[JointFit, ...], np.ndarray, np.ndarray]:
        """As `joint_fits`. left (N inner, nv): modelled minus measured torque."""
        inner, t = self.samples.inner, self.samples.t
        q, v, _ = self.samples.states()
        tau = self.motion.tau
        return joint_fits(self.model, t[inner], q, v, tau[inner] + left, W, found, self.samples.filter, noise_of(t, tau), least)

    def noisier(self):
        """Pairs of equations of states with noise added and subtracted."""
        rng = np.random.default_rng(0)
        for _ in range(_DRAWS):
            draw = self.samples.draw(rng)
            yield tuple(self.filtered(self.equations(more=[None if x is None else sign * x for x in draw])) for sign in (1, -1))


def _doubts(rows: _Rows, W: np.ndarray, found: Solution, tested: Sequence[JointFit], shifts: np.ndarray,
            sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Standard deviations, whether they and the values can be relied on, and the joints with a misfit that values depend on.

    A deviation is that by the noise of the forces and of the states and, beside it, what is systematic: the bias by the noise,
    by how much more than chance a spline of another degree changes the value, and what a torque that the model lacks may do."""
    effect = effect_of_noise(found, rows.noisier())
    of_force = np.maximum(np.sqrt(np.maximum(found.noise**2 - effect.force**2, 0.0)), 0.3 * found.noise)
    inflation, misfit = (np.array([getattr(joint, name) for joint in tested])[:, None] for name in ("inflation", "deviations"))
    own = variance_by_force(W, found, found.noise) * inflation             # as if all that is left over were noise of the forces
    deviation = np.sqrt(np.maximum(own.sum(axis=0), (variance_by_force(W, found, of_force) * inflation).sum(axis=0)
                                   + effect.variance))
    unknown = np.sqrt((own * misfit**2).sum(axis=0))    # of a torque as large as what is visible (Cauchy-Schwarz)
    systematic = np.hypot(np.hypot(effect.bias, unknown), np.abs(shifts).sum(axis=0))
    if rows.samples.derives:
        other = solve(compressed(rows.filtered(rows.equations(raised=2))), found.noise, found.sizes).x
        systematic = np.hypot(systematic, np.maximum(np.abs(other - found.x) - deviation, 0.0))
    total = np.hypot(deviation, systematic)
    tells = W.shape[0] * W.shape[1] > len(found.x)                         # otherwise nothing is left over to judge noise by
    trusted = tells & (effect.share <= _NOISE) & ~((systematic > deviation) & (total > _SLIGHT * sizes))
    share = np.divide(own, own.sum(axis=0), out=np.zeros_like(own), where=own > 0.0)
    spoilt = np.array([not joint.explained for joint in tested])[:, None] & (share > _SHARE)
    misfits = tuple(listed([joint.joint for joint, off in zip(tested, column, strict=True) if off], 6) for column in spoilt.T)
    return np.where(found.blind, np.inf, total), trusted & ~spoilt.any(axis=0), misfits


def _sizes(raw: np.ndarray, values: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """(b,) of the values, at least that which makes 1% of the torque of a joint."""
    effect, force = np.sqrt(np.mean(raw[:, :, :-1] ** 2, axis=0)), np.sqrt(np.mean(tau**2, axis=0))
    strongest = np.divide(effect, force[:, None], out=np.zeros_like(effect), where=force[:, None] > 0.0).max(axis=0)
    return np.maximum(np.abs(values), np.divide(_MATERIAL, strongest, out=np.zeros_like(strongest), where=strongest > 0.0))


def _physical(base: BaseParameters, values: np.ndarray, deviations: np.ndarray, sizes: np.ndarray,
              verdicts: tuple[str, ...]) -> tuple[str, ...]:
    """The verdicts, with "not physical" for what is determined, certainly negative, and a sum of what no robot has negative. The
    effect of the value must be at least 1% of the torque of a joint: less may be the effect of something that is not modelled."""
    positive = np.array([name.partition(".")[0] in _POSITIVE for name in base.parameters.names])
    of_positive = (base.matrix[:, ~positive] == 0.0).all(axis=1) & (base.matrix >= 0.0).all(axis=1)
    negative = of_positive & (values < -_NEGATIVE * deviations) & (-values >= sizes)
    return tuple(UNPHYSICAL if bad and verdict in (RELIABLE, IMPRECISE) else verdict
                 for bad, verdict in zip(negative, verdicts, strict=True))


def _unlike_notes(base: BaseParameters, values: np.ndarray, sizes: np.ndarray, verdicts: Sequence[str]) -> list[str]:
    """What cannot be, and whether all that is well determined differs from the robot file by its sign or by one factor."""
    known = np.array([verdict in (RELIABLE, UNPHYSICAL) for verdict in verdicts], dtype=bool)
    known &= (np.abs(values) >= sizes) & (np.abs(base.values) > _LEAST_NOISE * base.sizes[base.columns])
    ratios = values[known] / base.values[known]
    impossible = [name for name, verdict in zip(base.names, verdicts, strict=True) if verdict == UNPHYSICAL]
    hints = []
    if len(ratios) and (ratios < 0.0).all() and (impossible or len(ratios) >= _SEVERAL):
        hints.append(f"all {len(ratios)} well-determined values have another sign than in the robot file: are the signs of the "
                     "torques right?")
    size = np.abs(ratios)
    if len(ratios) > 1 and size.max() < _ONE_FACTOR * size.min() and not 1.0 / _FAR < (factor := np.median(size)) < _FAR:
        times = float(f"{factor:.3g}")                                   # 1000 rather than 1e+03
        hints.append(f"all {len(ratios)} well-determined values are about {times:g} times those of the robot file: are the units "
                     "of the torques right?")
    if not impossible:
        return hints
    hints = hints or ["check the signs of the torques, and the axes of the joints and the gravity of the robot file"]
    return [f"NOT PHYSICAL: {len(impossible)} of {len(base)} base parameters ({listed(impossible, 6)}): negative, but no mass, "
            f"moment of inertia, armature, damping or friction is negative; {'; '.join(hints)}"]


def _resembles(joint: JointFit) -> str:
    if joint.candidate:
        return f"like {joint.candidate} ({joint.deviations:.3g} deviations)"
    if not joint.noise > 0.0:
        return "coloured, without noise"
    return f"coloured, {joint.residual / (joint.passed * joint.noise):.2g} times the noise"


def _fit_notes(model: Model, tested: Sequence[JointFit], residual: np.ndarray, force: np.ndarray,
               estimated: Sequence[str], passive: bool) -> list[str]:
    misfit = [(joint, f"{left:.3g} of {of:.3g} {'N' if unit == 'm' else 'N m'}")
              for joint, left, of, unit in zip(tested, residual, force, model.v_units, strict=True) if not joint.explained]
    coloured = [joint.joint for joint in tested if not joint.white and joint.material]
    notes = []
    if misfit:
        what = "; ".join(f"{joint.joint}: residual force {figures}, {_resembles(joint)}" for joint, figures in misfit[:6])
        found = dict.fromkeys(ESTIMABLE[joint.candidate] for joint, _ in misfit if joint.candidate in ESTIMABLE)
        more = [kind for kind in found if kind not in estimated]
        kinds = [kind for kind in estimated if kind != "offset"] + more
        how = (f" (joints={kinds}; --with {' --with '.join(kinds)}{'' if passive else '; passive=True, # passive: true'})"
               if more else "")
        notes.append(f"the model does not explain the measured torques ({what}): add what is missing to the robot file or to the "
                     f"estimated parameters{how}, or check the recording")
    if coloured:
        notes.append(f"the residuals of {listed(coloured, 6)} are not white: the deviations count fewer independent samples")
    return notes


def _notes(base: BaseParameters, verdicts: Sequence[str], misfits: Sequence[str], mend: str) -> list[str]:
    unseen, mixed, biased = ([name for name, verdict in zip(base.names, verdicts, strict=True) if verdict == which]
                             for which in (UNSEEN, MIXED, UNRELIABLE))
    spoilt = [name for name, verdict, misfit in zip(base.names, verdicts, misfits, strict=True)
              if verdict == UNRELIABLE and misfit]
    biased = [name for name in biased if name not in spoilt]
    notes = []
    if unseen:
        notes.append(f"the motion does not excite {len(unseen)} of {len(base)} base parameters ({listed(unseen, 6)}): "
                     "their values are those of the robot file")
    if mixed:
        notes.append(f"the motion does not separate {len(mixed)} of {len(base)} base parameters ({listed(mixed, 6)}): it "
                     "determines combinations of them only. Their values fit the torques together; one of them alone has no "
                     "meaning")
    if spoilt:
        notes.append(f"NOT RELIABLE: {len(spoilt)} of {len(base)} base parameters ({listed(spoilt, 6)}): they depend on joints "
                     "whose torque the model does not explain, because it lacks a torque, or by noise of the motion or its "
                     f"smoothing; {mend}")
    if biased:
        notes.append(f"NOT RELIABLE: {len(biased)} of {len(base)} base parameters ({listed(biased, 6)}): noise of the motion or "
                     f"its smoothing may bias them by more than their deviation; {mend}")
    return notes


# for the command ---------------------------------------------------------------------------------------------------
class Found(NamedTuple):
    model: Model
    base: BaseParameters
    fit: Identification | None
    notes: tuple[str, ...]


def parameters_of(robot, trajectory=None, *, base: str | None = None, strict: bool = False, joints: Sequence[str] = (),
                  offset: bool = True, smooth: float | str | None = "auto", tolerance: float | None = None) -> Found:
    """Base parameters of a robot file, fitted to a trajectory file where there is one (with its base and gravity).

    joints: as in `base_parameters`; none: those that the robot has; "none": none of them. offset, smooth: as in
    `identify`."""
    kinds = None if not joints else tuple(what for what in joints if what != "none")
    if trajectory is None:
        model = read_model(robot, base=base, strict=strict)
        if not model.nv:
            raise ModelError(f"the robot {model.name} has no moving joint: no force depends on its parameters")
        given = {} if tolerance is None else {"tolerance": tolerance}
        return Found(model, base_parameters(model, passive=True, joints=kinds, **given), None, ())
    motion = read_trajectory(trajectory, events=True)
    model, notes = robot_of(motion, robot, base=base, strict=strict)
    found = identify(model, motion, joints=kinds, offset=offset, smooth=smooth, tolerance=tolerance)
    return Found(model, found.base, found, tuple(dict.fromkeys((*notes, *found.notes))))
