"""Inverse, forward and hybrid dynamics with their time derivatives along the rows of a trajectory file.

What the file lacks is derived by splines (`manifold_spline`), and carried through the dynamics twice more, by splines of another
degree and with noise added: what the results then differ by is told as their error.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from liedyn.analyse.along.chains import Chain, derivations, knot_spacings
from liedyn.analyse.along.derived_error import UNRELIABLE, mend, percent
from liedyn.analyse.along.manifold_spline import Fit, errors, one_sided, sizes_to_judge_by
from liedyn.analyse.along.recorded_checks import recorded_limit_notes, unwrapped
from liedyn.analyse.along.recorded_motion import Along, header_along, naming, positions_of, prescribed_of, require_forces
from liedyn.code_cache import FIRST_RUN
from liedyn.dynamics.series.higher_order import (
    higher_order_forward_dynamics,
    higher_order_hybrid_dynamics,
    higher_order_inverse_dynamics,
)
from liedyn.errors import ComputationError, UsageError
from liedyn.io.csv import refuse_events
from liedyn.model.model import Model
from liedyn.simulation.records.motion_columns import (
    WRENCH,
    bind,
    bind_wrench_rate,
    columns_of,
    forced,
    rate_of,
    wrench_columns,
)

_ROWS = 4096                            # that cross into the kernels at a time
_NOTHING = 1e-6                         # of a result: a derivative that changes it by less over the whole motion is none


@dataclass(frozen=True, eq=False)
class Question:
    """of: "inverse", "forward" or "hybrid"; prescribed (nv,) bool: coordinates whose motion is given; forced: components of
    external wrenches that act, as "hand.fx"."""

    of: str
    order: int
    prescribed: np.ndarray
    forced: list[str]
    passive: bool

    def name(self, k: int, j: int) -> str:
        """Kind of the columns of the k-th derivative of what comes out at coordinate j."""
        return rate_of("tau" if self.prescribed[j] else "a", k)

    def answer(self, a: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """What comes out of these, with their derivatives (N, order + 1, nv)."""
        return np.where(self.prescribed, tau, a)


@dataclass(frozen=True, eq=False)
class State:
    """What goes into the dynamics: q (N, nq), and v (N, K, nv), tau (N, K, nv), wrench (N, K, forced) with their derivatives."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray | None
    wrench: np.ndarray | None


def higher_order_along(model: Model, trajectory, order: int, *, of: str, patterns=(), smooth: float | str | None = None,
                       progress=None) -> Along:
    """Forces (of="inverse"), accelerations ("forward") or both ("hybrid") with their first `order` time derivatives.

    Derivatives are taken from columns d1a, d2a, …, d1tau, …, d1fext, …; those that are missing are derived from the last that is
    there before them, in the end from q. Notes tell which, and how far the results are estimated to be off.

    Parameters
    ----------
    patterns : of joint names, for "hybrid": the joints whose motion is given
    smooth : float or "auto", optional
        Seconds between the knots of least-squares splines; without it, splines go through every row. "auto" takes, for each
        coordinate, the distance that makes the estimated error of its highest derivative least.
    progress : optional
        With `stage(text)`, a context, and `update(fraction)`.

    Raises
    ------
    TrajectoryError, ComputationError
    UsageError
        For a robot with constraints, and for a pattern that matches nothing.
    """
    if model.nc:
        raise UsageError(f"the robot {model.name} has constraints (loops, couplings): time derivatives of its dynamics are "
                         "not available; omit --order and --smooth")
    if progress is None:
        from liedyn.simulation.run import Silent
        progress = Silent()
    refuse_events(trajectory, "time derivatives")
    t, q, unwrapping = trajectory.t, positions_of(model, trajectory), []
    if bind(model, trajectory, "v") is None:
        with naming(trajectory):
            q, unwrapping = unwrapped(model, q)
    passive = trajectory.passive
    asked = Question(of, order, prescribed_of(model, of, patterns), forced(model, trajectory), passive)
    chains = _chains(model, trajectory, asked, q)
    with progress.stage("deriving what the file lacks"), naming(trajectory):
        rows, notes = knot_spacings(t, chains, smooth)
    header = header_along(model, trajectory, passive)
    fits = [Fit(rows)]
    derived = derivations(t, chains, rows)
    if derived:
        header["derived"] = "; ".join(derived)
        fits += Fit(rows).checks()

    def result_of(fit: Fit) -> tuple[State, tuple[np.ndarray, np.ndarray]]:
        with progress.stage("deriving what the file lacks"):
            state = _state(chains, t, fit)
        with progress.stage(f"computing ({FIRST_RUN})"):
            return state, _compute(model, asked, state, progress)

    (state, found), *others = map(result_of, fits)
    columns = _columns(model, asked, state, *found)
    limits = recorded_limit_notes(model, t, state.q, state.v[:, 0], found[1][:, 0])
    if derived:
        answers = [asked.answer(*each) for each in (found, *(other for _, other in others))]
        notes = [*derived, *notes, *unwrapping, *limits,
                 *_errors(model, asked, chains, t, rows, answers, smooth, lambda fit: asked.answer(*result_of(fit)[1]))]
    else:
        notes = [*notes, *unwrapping, *limits]
    return Along(header, t, columns, tuple(notes))


def _chains(model: Model, trajectory, asked: Question, q) -> list[Chain]:
    """Of the motion, of the joint forces where they go in, of the external wrenches."""
    kinds = ["v", *(rate_of("a", k) for k in range(asked.order + 1))] if asked.prescribed.any() else ["v"]
    chains = [Chain(model, ["q", *kinds], [q, *(bind(model, trajectory, kind) for kind in kinds)], model.v_units)]
    if not asked.prescribed.all():
        kinds = [rate_of("tau", k) for k in range(asked.order + 1)]
        arrays = [bind(model, trajectory, kind) for kind in kinds]
        require_forces(trajectory, arrays[0], asked.of)
        chains.append(Chain(model, kinds, arrays, model.v_units))
    arrays = [bind_wrench_rate(model, trajectory, asked.forced, k) for k in range(asked.order + 1)]
    if asked.forced:
        units = tuple("m" if name.endswith(("mx", "my", "mz")) else "f" for name in asked.forced)
        chains.append(Chain(model, [rate_of("fext", k) for k in range(asked.order + 1)], arrays, units, tuple(asked.forced)))
    return chains


def _state(chains: list[Chain], t: np.ndarray, fit: Fit) -> State:
    filled = {chain.names[0]: chain.filled(t, fit) for chain in chains}
    q, *v = filled.pop("q")
    stacked = {kind: np.stack(arrays, axis=1) for kind, arrays in filled.items()}
    return State(q, np.stack(v, axis=1), stacked.get("tau"), stacked.get("fext"))


def _compute(model: Model, asked: Question, state: State, progress) -> tuple[np.ndarray, np.ndarray]:
    """a and tau with their derivatives, (N, order + 1, nv) each."""
    count = len(state.q)
    a, tau = (np.zeros((count, asked.order + 1, model.nv)) for _ in range(2))
    if asked.prescribed.any():
        a[:] = state.v[:, 1:]
    if state.tau is not None:
        tau[:] = state.tau
    for start in range(0, count, _ROWS):
        rows = slice(start, start + _ROWS)
        q, v = state.q[rows], state.v[rows]
        given = {"passive": asked.passive, "f_ext_derivatives": _wrenches(asked, state, rows)}
        if asked.of == "inverse":
            tau[rows] = higher_order_inverse_dynamics(model, q, v, **given)
        elif asked.of == "forward":
            a[rows] = higher_order_forward_dynamics(model, q, v[:, 0], tau[rows], **given)
        else:
            a[rows], tau[rows] = higher_order_hybrid_dynamics(model, q, v[:, 0], a[rows], tau[rows], asked.prescribed, **given)
        progress.update(min(1.0, rows.stop / count))
    for x, what in ((a, "accelerations"), (tau, "joint forces")):
        if not np.isfinite(x).all():
            raise ComputationError(f"the {what} or their derivatives are not finite: nothing is written")
    return a, tau


def _wrenches(asked: Question, state: State, rows) -> dict[str, np.ndarray] | None:
    """{link: (rows, K, 6)}; components that the file does not have are zero."""
    if state.wrench is None:
        return None
    wrench = state.wrench[rows]
    out: dict[str, np.ndarray] = {}
    for j, name in enumerate(asked.forced):
        link, _, part = name.rpartition(".")
        out.setdefault(link, np.zeros((*wrench.shape[:2], 6)))[:, :, WRENCH.index(part)] = wrench[:, :, j]
    return out


def _columns(model: Model, asked: Question, state: State, a, tau) -> list[tuple[str, str, np.ndarray]]:
    orders = range(asked.order + 1)
    rates = {rate_of(kind, k): x[:, k] for kind, x in (("a", a), ("tau", tau)) for k in orders}
    wrenches = wrench_columns(asked.forced, state.wrench.swapaxes(0, 1)) if asked.forced else []
    return columns_of(model, q=state.q, v=state.v[:, 0], **rates) + wrenches


def _errors(model: Model, asked: Question, chains: list[Chain], t, rows: dict[str, np.ndarray], answers, smooth,
            answer_of: Callable[[Fit], np.ndarray]) -> list[str]:
    """How far the results are off, order by order; a second line where they are not to be relied on from some order on.

    answers: those of the fit, then of its checks; answer_of(fit): of another one."""
    found, *others = answers
    units = [f"{unit} {given}" for unit, given in zip(model.v_units, asked.prescribed, strict=True)]
    most = {kind: int(x.max(initial=1)) for kind, x in rows.items()}
    ends = max(one_sided(len(found), last - given, most[chain.names[given]]) for chain in chains for given, last in chain.gaps())
    inner, outer, size = errors(found, others, ends)
    span = t[-1] - t[0]
    size = sizes_to_judge_by(np.maximum(size, _NOTHING * size[:1] / span ** np.arange(len(size))[:, None]), units)
    inner, outer = inner / size, outer / size
    worst = [int(k) for k in inner.argmax(axis=1)]
    listed = ", ".join(f"{asked.name(k, j)} {percent(inner[k, j])}" for k, j in enumerate(worst))
    notes = [f"estimated error of the worst coordinate: {listed} ({model.v_names[worst[-1]]}), {percent(outer[-1].max())} "
             f"within {ends} rows of the ends"]
    bad = np.flatnonzero(inner.max(axis=1) > UNRELIABLE)
    if len(bad):
        k, j = bad[0], worst[bad[0]]
        by_spline, by_noise = (errors(found, [other], ends)[0][k, j] for other in others)
        noisy = by_noise > 2.0 * by_spline
        if smooth == "auto":            # which balances both errors: at fault is the noise if it is what demands smoothing
            exact, disturbed = answer_of(Fit()), answer_of(Fit(noisy=True))
            noisy = errors(exact, [disturbed], ends)[0][k, j] > UNRELIABLE * size[k, j]
        named: dict[str, list[str]] = {}
        first = (inner > UNRELIABLE).argmax(axis=0)                           # order from which a coordinate is off
        off = np.flatnonzero((inner > UNRELIABLE).any(axis=0))
        for i in sorted(off, key=lambda i: (first[i], -inner[first[i], i])):
            what = f"{asked.name(first[i], i)}{' and higher derivatives' if first[i] < asked.order else ''}"
            named.setdefault(what, []).append(f"{percent(inner[first[i], i])} ({model.v_names[i]})")
        columns = [f"{what}, off by {', '.join(figures)}" for what, figures in named.items()]
        notes.append(f"NOT RELIABLE: {'; '.join(columns)}: {_mend(noisy, max(most.values()), smooth)}")
    return notes


def _mend(noisy: bool, rows: int, smooth) -> str:
    if smooth == "auto":
        return mend(False, "rows", None) if not noisy else (
            "the noise of the rows is too large for their number, and no knot spacing has a smaller estimated error; give "
            "measured derivatives as columns")
    return mend(noisy, "rows" if rows == 1 else "knots", "--smooth auto" if rows == 1 else "a longer --smooth or --smooth auto")
