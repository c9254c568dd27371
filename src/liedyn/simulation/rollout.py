"""`ld.rollout`: many motions of one robot, or of variants of it, side by side with a fixed step."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from types import SimpleNamespace

import numpy as np

from liedyn.codegen.lines import wanted
from liedyn.codegen.whole_step import METHODS, WholeStep
from liedyn.dynamics.calling.annotations import Array, ArrayLike
from liedyn.dynamics.calling.calls import as_array
from liedyn.dynamics.calling.results import hand_over
from liedyn.dynamics.manifold import integrate
from liedyn.dynamics.variants import Variants
from liedyn.errors import ComputationError, ConfigurationError, ShapeError, UsageError
from liedyn.integrators.many_runs import Driven, Grid, Outputs, Runs, SideBySide, line_of
from liedyn.integrators.problem import Keeper, Options, Problem, Start, Ties
from liedyn.integrators.solve import solve_stretch
from liedyn.kernels.simulation.line_stages import REFUSED
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, NOT_FINITE, SINGULAR
from liedyn.kernels.simulation.signals import CONSTANT, Poses, Schedule, Signals
from liedyn.model.model import Model
from liedyn.simulation.laws import no_laws
from liedyn.simulation.rollout_adjoint import RolloutAdjoint, adjoint_of
from liedyn.simulation.schedule import coordinates

REASONS = {BAD_SIGNAL: "a torque is not finite", SINGULAR: "a joint's articulated inertia vanishes",
           NOT_FINITE: "the motion is no longer finite", REFUSED: "an angle is beyond 1e5 rad, or no longer finite"}


@dataclass(frozen=True, eq=False)
class Feedback:
    """State feedback, computed at each stage of a step: tau += -gain [q (-) about_q; v - about_v].

    gain      (…, nv, 2 nv) [N m or N per rad or m, and per their rates]; leading axes are runs
    about_q   (…, nq) or (…, S, nq) with an axis of steps: then it is constant in each step; q (-) about_q is a tangent deviation
    about_v   (…, nv) or (…, S, nv); default: zero
    """

    gain: ArrayLike
    about_q: ArrayLike
    about_v: ArrayLike | None = None

    @classmethod
    def pd(cls, kp: ArrayLike, kd: ArrayLike, target: ArrayLike, target_v: ArrayLike | None = None) -> Feedback:
        """tau += kp (target - q) + kd (target_v - v), with gains (…, nv) or numbers."""
        kp, kd = np.broadcast_arrays(np.asarray(kp, dtype=float), np.asarray(kd, dtype=float))
        if kp.ndim == 0:
            raise ShapeError("kp and kd are numbers; found no coordinate, expected (…, nv), for example np.full(model.nv, kp)")
        eye = np.eye(kp.shape[-1])
        return cls(np.concatenate([kp[..., None] * eye, kd[..., None] * eye], axis=-1), target, target_v)


@dataclass(frozen=True, eq=False, repr=False)
class Rollout:
    """Motions of many runs.

    t          (R,) [s] output times: every `every` steps, and the end
    q, v       (…, R, nq), (…, R, nv); NaN after the end of a run
    a, tau     (…, R, nv) at the output times, if `forces` was asked for; else None
    ended_at   (…,) [s] where a run diverged, NaN where it is complete
    reasons    of those that diverged, by their index among the runs (flattened)
    """

    t: Array
    q: Array
    v: Array
    a: Array | None
    tau: Array | None
    ended_at: Array
    reasons: dict[int, str]
    _back: Callable | None = field(default=None)

    def adjoint(self, d_q: ArrayLike | None = None, d_v: ArrayLike | None = None,
                parameters: Sequence[str] = ()) -> RolloutAdjoint:
        """Derivatives of a cost by what the runs began with: exact for the steps that were computed.

        Needs ``every=1``.

        Parameters
        ----------
        d_q, d_v : (…, S + 1, nv), optional
            Derivatives of the cost by each state alone, those by q tangent: by x of q (+) x. Default: zero.
        parameters : sequence of str, optional
            Names of `parameter_names`: masses, inertias, gravity, armature, damping, friction, springs.

        Raises
        ------
        UsageError
            If states in between were not kept, for a policy, and for robots without straight-line code.
        """
        if self._back is None:
            raise UsageError("the adjoint needs each state, joint forces by array, and straight-line code; found every > 1, a "
                             "policy, or a robot with loops (use every=1)")
        return self._back(self, d_q, d_v, tuple(parameters))

    @property
    def complete(self) -> Array:
        """(…,) bool."""
        return np.isnan(self.ended_at)

    def __repr__(self) -> str:
        bad = np.count_nonzero(~self.complete)
        return (f"<Rollout: {self.ended_at.size} runs of {self.t[-1]:g} s, {len(self.t)} rows, nq {self.q.shape[-1]}, "
                f"nv {self.v.shape[-1]}{f', {bad} diverged' if bad else ''}>")


def rollout(model: Model | Variants, q0: ArrayLike, v0: ArrayLike, tau: ArrayLike | Callable | None = None, *, dt: float,
            steps: int, method: str = "rk4", every: int = 1, feedback: Feedback | None = None, passive: bool = True,
            last: ArrayLike | None = None, forces: bool = False, out: tuple[Array, Array] | None = None) -> Rollout:
    """Simulate many runs at once: as many states to a register as the processor has, on all cores.

    Parameters
    ----------
    model : Model or Variants
        With `Variants`, run k is of robot k.
    q0, v0 : (…, nq), (…, nv)
        Initial states; their leading axes, and those of the other arguments, are the runs.
    tau : array or callable, optional
        Joint forces [N m | N], held during each step: (nv,) for all, or (…, S, nv) with an axis of steps, S = steps or 1.
        Or a policy, called once a step: ``policy(t, q, v)`` takes the time [s] and all states, (…, nq) and (…, nv), and returns
        (…, nv).
    dt : float
        Step [s].
    steps : int
    method : {"rk4", "semi_implicit"}
        Of fourth order; or symplectic Euler, v' = v + dt a(q, v), q' = q (+) dt v', one evaluation a step.
    every : int
        Steps between two outputs.
    feedback : Feedback, optional
        Added to tau. Its law is computed at each stage, so that rk4 keeps its order.
    passive : bool
        Whether joint springs, damping and friction act.
    last : (…,) int, optional
        Steps of each run, at most `steps`; default: all of them.
    forces : bool
        Whether accelerations and joint forces at the outputs are returned, too.
    out : (q, v), optional
        Arrays (…, R, nq) and (…, R, nv) that take the result.

    Returns
    -------
    Rollout
        Runs that diverge end there, with time and reason; the others go on.

    Raises
    ------
    ShapeError, ConfigurationError
        For wrong shapes, numbers that are not finite and quaternions that are not of unit norm.
    UsageError
        For semi_implicit where the robot has loops, or no straight-line code.

    Notes
    -----
    Arrays with ``__dlpack__`` (PyTorch, JAX) are taken without a copy where they lie in this machine's memory as float64.
    """
    variants = model if isinstance(model, Variants) else None
    model = variants.model if variants else model
    _check_numbers(method, dt, steps, every)
    runs = _Given(model, variants, q0, v0, tau, feedback, last, steps)
    places, numbers = variants.varying if variants else ((), np.zeros((runs.count, 0)))
    problem, line = _prepared(model, runs.pattern, passive, method, places)
    engine = line and SideBySide(problem, line, numbers)
    rows = np.unique([*range(0, steps + 1, every), steps])
    found = Outputs.of(runs.count, len(rows), model.nq, model.nv, 2 * model.nv if forces else 0)
    moving = Runs.from_states(runs.q, runs.v, runs.last)
    if engine is not None:
        _side_by_side(engine, runs, moving, found, dt, rows)
        reasons = {int(k): REASONS[int(moving.codes[k])] for k in np.flatnonzero(moving.ended >= 0)}
    else:
        reasons = _one_by_one(problem, variants, runs, moving, found, dt, rows, method)
    ended = np.where(moving.ended >= 0, moving.ended * dt, np.nan).reshape(runs.lead)
    q, v, *more = (x.reshape(*runs.lead, *x.shape[1:]) for x in (found.q, found.v, found.more))
    q, v = hand_over((q, v), out)
    a, tau = (more[0][..., :model.nv], more[0][..., model.nv:]) if forces else (None, None)
    back = None
    if engine is not None and every == 1 and runs.policy is None:
        back = partial(_adjoint, engine, runs, clocks_of(steps, dt), method)
    return Rollout(dt * rows, q, v, a, tau, ended, reasons, back)


def _adjoint(engine, runs, clocks, method, out: Rollout, d_q, d_v, parameters) -> RolloutAdjoint:
    return adjoint_of(engine, runs, out, clocks, method, d_q, d_v, parameters)


def clocks_of(steps: int, dt: float) -> np.ndarray:
    """(S + 1, 4) for `WholeStep`."""
    t = dt * np.arange(steps + 1)
    return np.stack([np.full(steps + 1, dt), t, t + 0.5 * dt, t + dt], axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class RolloutDerivatives:
    """What the end of each run answers to: rows are the end's state, tangent x of q (+) x, then v; 2 nv of them.

    q0, v0   (…, 2 nv, nv) by the initial state, of q0 tangent
    tau      (…, 2 nv, S, nv) by the joint forces of each step
    """

    q0: Array
    v0: Array
    tau: Array

    def __repr__(self) -> str:
        return f"<RolloutDerivatives: {prod(self.q0.shape[:-2])} runs, {self.tau.shape[-2]} steps, nv {self.q0.shape[-1]}>"


def rollout_derivatives(model: Model | Variants, q0: ArrayLike, v0: ArrayLike, tau: ArrayLike | None = None, *, dt: float,
                        steps: int, method: str = "rk4", feedback: Feedback | None = None,
                        passive: bool = True) -> RolloutDerivatives:
    """Exact derivatives of the end of each run by its initial state and its joint forces: those of the steps as they are
    computed. For arguments and errors see `rollout`; for the derivatives of one cost `Rollout.adjoint` is cheaper.

    Each of the 2 nv rows is an adjoint of its own.
    """
    run = rollout(model, q0, v0, tau, dt=dt, steps=steps, method=method, feedback=feedback, passive=passive)
    nv, lead = run.v.shape[-1], run.ended_at.shape
    rows = []
    for k in range(2 * nv):
        unit = np.zeros((*lead, steps + 1, nv))
        unit[..., -1, k % nv] = 1.0
        rows.append(run.adjoint(unit, None) if k < nv else run.adjoint(None, unit))
    return RolloutDerivatives(*(np.stack([getattr(row, name) for row in rows], axis=len(lead)) for name in ("q0", "v0", "tau")))


def _check_numbers(method, dt, steps, every) -> None:
    if method not in METHODS:
        raise UsageError(f"method is not known; found {method!r}, expected {' or '.join(METHODS)}")
    if not (np.isfinite(dt) and dt > 0.0):
        raise UsageError(f"dt is not a step; found {dt!r}, expected a number of seconds above 0")
    for name, x in (("steps", steps), ("every", every)):
        if isinstance(x, bool) or int(x) != x or x < 1:
            raise UsageError(f"{name} is not a number of steps; found {x!r}, expected an integer of at least 1")


class _Given:
    """The arguments as rows of runs."""

    def __init__(self, model, variants, q0, v0, tau, feedback, last, steps: int):
        self.model, self.variants, self.steps = model, variants, steps
        q0, v0 = as_array(_imported(q0), "q0", (model.nq,)), as_array(_imported(v0), "v0", (model.nv,))
        self.policy = tau if callable(tau) else None
        tau = np.zeros((1, model.nv)) if tau is None or self.policy else as_array(_imported(tau), "tau", (model.nv,))
        tau = tau.reshape(1, -1) if tau.ndim == 1 else tau
        named = [("q0", q0, 1), ("v0", v0, 1), ("tau", tau, 2)]
        if last is not None:
            named.append(("last", np.asarray(last), 0))
        if feedback is not None:
            gain = as_array(_imported(feedback.gain), "feedback.gain", (model.nv, 2 * model.nv))
            about_q = as_array(_imported(feedback.about_q), "feedback.about_q", (model.nq,))
            about_v = np.zeros(model.nv) if feedback.about_v is None else as_array(
                _imported(feedback.about_v), "feedback.about_v", (model.nv,))
            moves = any(x.ndim > 1 and x.shape[-2] == steps != 1 for x in (about_q, about_v))
            if moves:
                about_q, about_v = (x[None] if x.ndim == 1 else x for x in (about_q, about_v))
            named += [("feedback.gain", gain, 2)]
            named += [(f"feedback.about_{name}", x, 1 + moves) for name, x in (("q", about_q), ("v", about_v))]
        robots = [(len(variants),)] if variants else []
        try:
            lead = np.broadcast_shapes(*(x.shape[:x.ndim - own] for _, x, own in named), *robots)
        except ValueError:
            shapes = ", ".join(f"{name} {x.shape}" for name, x, _ in named)
            also = f", {len(variants)} variants" if variants else ""
            raise ShapeError(f"the axes of runs do not match: {shapes}{also}") from None
        self.lead, self.count = lead, prod(lead)
        rows = {name: np.broadcast_to(x, lead + x.shape[x.ndim - own:]).reshape(self.count, *x.shape[x.ndim - own:])
                for name, x, own in named}
        _check_finite(rows)
        self.q, self.v, self.tau = (np.ascontiguousarray(rows[name]) for name in ("q0", "v0", "tau"))
        integrate(model, self.q, np.zeros(model.nv))                    # names a quaternion that is not of unit norm
        self._check_steps("tau", self.tau)
        self.last = np.full(self.count, steps) if last is None else self._lasts(rows["last"])
        self.pattern = self.about = None
        if feedback is not None:
            self._bind(rows)

    def _bind(self, rows) -> None:
        gain, q, v = rows["feedback.gain"], rows["feedback.about_q"], rows["feedback.about_v"]
        self.pattern = (gain != 0.0).any(axis=0)
        fixed = [x if x.ndim == 2 else x[:, 0] for x in (q, v)]
        integrate(self.model, fixed[0], np.zeros(self.model.nv))
        self.gains = gain[:, self.pattern]
        self.law = np.concatenate([self.gains, *fixed, np.zeros((self.count, self.model.nv))], axis=1)
        self.about = [x if x.ndim == 3 else x[:, None] for x in (q, v)] if q.ndim == 3 or v.ndim == 3 else None
        for name, x in zip(("feedback.about_q", "feedback.about_v"), self.about or (), strict=False):
            self._check_steps(name, x)

    def _check_steps(self, name: str, x) -> None:
        if x.shape[1] not in (1, self.steps):
            raise ShapeError(f"{name} has the wrong number of steps; found {x.shape[1]}, expected {self.steps} or 1")

    def _lasts(self, last) -> np.ndarray:
        if last.dtype.kind not in "iu" or (last < 1).any() or (last > self.steps).any():
            raise UsageError(f"last counts the steps of each run; found {last.dtype} from {last.min()} to {last.max()}, "
                             f"expected integers from 1 to {self.steps}")
        return last.astype(np.int64)

    def driven(self, tau: np.ndarray, step: int | None = None) -> Driven:
        """Joint forces (N, 1 or S, nv), and what moves of the feedback, in all steps or in one."""
        nv = self.model.nv
        if self.about is None:
            return Driven(np.arange(nv), np.require(tau, requirements="CW"))
        first = nv + self.gains.shape[1]
        places = np.r_[np.arange(nv), first + np.arange(self.model.nq + nv)]
        about = self.about if step is None else [x[:, min(step, x.shape[1] - 1)][:, None] for x in self.about]
        length = max(x.shape[1] for x in (tau, *about))
        series = [np.broadcast_to(x, (self.count, length, x.shape[2])) for x in (tau, *about)]
        return Driven(places, np.concatenate(series, axis=2))

    def values(self) -> np.ndarray:
        """(N, k) numbers of each run, to be written to."""
        return np.concatenate([self.tau[:, 0]] + ([] if self.pattern is None else [self.law]), axis=1)


def _imported(x):
    """What other libraries hold, as NumPy sees it."""
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack__"):
        return x
    try:
        return np.from_dlpack(x)
    except (RuntimeError, BufferError, TypeError):             # on another device, or with gradients: as its own conversion says
        return np.asarray(x)


def _check_finite(rows: dict[str, np.ndarray]) -> None:
    for name, x in rows.items():
        bad = np.argwhere(~np.isfinite(x))
        if len(bad):
            place = ", ".join(map(str, bad[0][1:]))
            raise ConfigurationError(f"{name}[{place}] of run {bad[0][0]} is not finite; found {x[tuple(bad[0])]}")


def _prepared(model, pattern, passive: bool, method: str, places) -> tuple[Problem, WholeStep | None]:
    """Kept with the model: a policy or a gradient descent asks for many short rollouts."""
    key = "rollout", None if pattern is None else pattern.tobytes(), bool(passive), method, places, wanted()
    if key not in model._cache:
        problem = _problem(model, pattern, passive)
        model._cache[key] = problem, line_of(problem, method, places)
    return model._cache[key]


def _problem(model, pattern, passive: bool) -> Problem:
    """Joint forces that are constants, 1 N m each; and feedback with these gains that are not zero."""
    nv, none, no = model.nv, np.zeros(0), np.zeros(0, dtype=np.int64)
    each = np.arange(nv)
    schedule = Schedule(np.zeros(nv, dtype=np.int64), each, np.full(nv, -1), np.zeros(nv), np.zeros(nv), coordinates(model),
                        no, no, none, none, no, none, none, none, none, poses=Poses(*[no] * 5))
    signals = Signals(np.full(nv, CONSTANT), each, np.ones(nv, dtype=np.int64), none, none, no, np.ones(nv))
    laws = None
    if pattern is not None:
        laws = no_laws(model, np.full(nv, np.inf), np.zeros(nv, dtype=bool), np.zeros(nv, dtype=bool))._replace(
            acts=np.array([False, True, False]), row=each, gain=pattern.astype(float).reshape(-1), about_q=model.neutral(),
            about_tau=np.zeros(nv))
    ties = Ties(no) if model.nc else None
    return Problem(model, schedule, signals, model.neutral(), np.zeros(nv), 3, passive=passive, ties=ties, joint_laws=laws)


def _side_by_side(engine: SideBySide, runs: _Given, moving: Runs, found: Outputs, dt: float, rows: np.ndarray) -> None:
    steps, values, row = runs.steps, runs.values(), np.full(runs.steps + 1, -1)
    row[rows] = np.arange(len(rows))
    clocks = clocks_of(steps, dt)
    if runs.policy is None:
        engine.advance(moving, Grid(clocks, row), found, values, runs.driven(runs.tau))
        return
    for s in range(steps):
        asked = _asked(runs, s * dt, moving.q, moving.v)
        before = moving.ended.copy()
        moving.last[:] = runs.last - s                             # of this call
        shown = np.array([row[s], row[s + 1] if s + 1 == steps else -1])
        engine.advance(moving, Grid(clocks[s:s + 2], shown), found, values, runs.driven(asked[:, None], s))
        moving.ended[(moving.ended >= 0) & (before < 0)] += s


def _asked(runs: _Given, t: float, q, v) -> np.ndarray:
    """Joint forces by the policy."""
    nv = runs.model.nv
    given = runs.policy(float(t), q.reshape(*runs.lead, -1).copy(), v.reshape(*runs.lead, -1).copy())
    given = as_array(_imported(given), "what the policy returns", (nv,))
    try:
        return np.ascontiguousarray(np.broadcast_to(given, (*runs.lead, nv)).reshape(runs.count, nv))
    except ValueError:
        raise ShapeError(f"what the policy returns has the wrong shape; found {given.shape}, expected "
                         f"{(*runs.lead, nv)}") from None


class _Held:
    """Joint forces of one run, as `HeldTorques` wants them: row k of a series from k dt on."""

    def __init__(self, series: np.ndarray, dt: float, first: int = 0):
        self.series, self.dt, self.k = series, dt, first
        self.torque = series[0]

    @property
    def due(self) -> float:
        return (self.k + 1) * self.dt if self.k + 1 < len(self.series) else np.inf

    def act(self, problem, t, q0, y) -> None:
        while self.due <= t * (1.0 + 1e-15):
            self.k += 1
        self.torque = self.series[min(self.k, len(self.series) - 1)]


class _Rows(Keeper):
    """Knows how many rows of a run are done, also where it fails."""

    record, count = None, (0,)

    def follow(self, record, count) -> None:
        self.record, self.count = record, count


def _one_by_one(problem: Problem, variants, runs: _Given, moving: Runs, found: Outputs, dt: float, rows, method: str) -> dict:
    """By the compiled loop of a single run. Returns the reasons of those that diverged."""
    why = "loops" if problem.model.nc else "no straight-line code (ld.plan says why)"
    for asked, what in ((method != "rk4", f"method {method!r}"), (runs.policy is not None, "a policy"),
                        (runs.pattern is not None and runs.about is not None, "feedback about a state that moves")):
        if asked:
            raise UsageError(f"{what} is not available here: the robot has {why}; use rk4, with joint forces by array")
    reasons = {}
    for k in range(runs.count):
        own, kept, shown = _own(problem, variants, runs, k), _Rows(), rows <= runs.last[k]
        times = np.unique(dt * np.append(rows[shown], runs.last[k]))
        try:
            solve_stretch(own, Start(0.0, own.q, own.v), times, Options(step=dt), controller=_Held(runs.tau[k], dt), keeper=kept)
        except ComputationError as error:
            moving.ended[k], reasons[k] = round((error.at or 0.0) / dt), str(error)
        record, count = kept.record, min(int(kept.count[0]), np.count_nonzero(shown))
        found.q[k, :count], found.v[k, :count], found.work[k, :count] = record.q[:count], record.v[:count], record.work[:count]
        if found.more.shape[2]:
            found.more[k, :count] = np.concatenate([record.a, record.tau], axis=1)[:count]
    return reasons


def _own(problem: Problem, variants, runs: _Given, k: int) -> Problem:
    model = problem.model if variants is None else replace(problem.model, constants=variants.constants[k])
    laws = problem.joint_laws
    if laws is not None:
        nv, gain = model.nv, np.zeros(2 * model.nv**2)
        gain[runs.pattern.reshape(-1)] = runs.gains[k]
        q, v = runs.law[k, runs.gains.shape[1]:][:model.nq], runs.law[k, runs.gains.shape[1] + model.nq:][:nv]
        laws = laws._replace(gain=gain, about_q=q, about_v=v)
    signals = SimpleNamespace(signal=np.arange(model.nv))
    return replace(problem, model=model, q=runs.q[k], v=runs.v[k], joint_laws=laws, sampled=signals)
