"""Inverse, forward and hybrid dynamics with their time derivatives at the rows of a trajectory file.

Quantities that the file lacks are derived by splines (`analysis.numerical_differentiation`). The dynamics are computed twice
more, with splines of another degree and with added noise. The differences of the results are reported as their estimated error.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from liedyn.analysis.numerical_differentiation import (
    SmoothingFit,
    body_velocities,
    check_rows,
    continued,
    degree_for,
    errors,
    misses,
    noise,
    of_unit_norm,
    one_sided,
    sizes_to_judge_by,
    spline_derivatives,
    with_noise,
)
from liedyn.analysis.recorded_motion import (
    UNRELIABLE,
    CompletedTrajectory,
    header_along,
    mend,
    naming,
    percent,
    positions_of,
    prescribed_of,
    recorded_limit_warnings,
    require_forces,
    unwrapped,
)
from liedyn.dynamics.time_derivatives import (
    higher_order_forward_dynamics,
    higher_order_hybrid_dynamics,
    higher_order_inverse_dynamics,
)
from liedyn.errors import ComputationError, LiedynWarning, UsageError, WarningLog
from liedyn.io.trajectory_csv import check_no_events
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model
from liedyn.numba_tools.compile_cache import FIRST_RUN_MESSAGE
from liedyn.simulation.name_binding import format_names
from liedyn.simulation.trajectory_columns import (
    WRENCH,
    bind_columns,
    bind_wrench_rate,
    derivative_kind,
    motion_columns,
    wrench_columns,
    wrench_components,
)

# Quantities and their time derivatives, from a file or from splines -----------------------------------------------------

_DRAWS = 16                             # number of samples of noise whose effects are averaged
_COARSE, _FINE = Fraction(3, 2), Fraction(6, 5)     # ratio of consecutive numbers of rows per knot that are tried
_NAMED = 8                              # maximum number of columns whose knot spacings a message lists


@dataclass(frozen=True, eq=False)
class Chain:
    """A quantity and its successive time derivatives, such as tau, d1tau, d2tau.

    names   kinds of columns; "q" is followed by "v", on the manifold of `model`
    arrays  (N, n) each, or None if the file has none; the first is not None
    units   (n,) units of the first, which decide what is comparable
    labels  (n,) names of the columns; default: those of the coordinates
    """

    model: Model
    names: list[str]
    arrays: list[np.ndarray | None]
    units: tuple[str, ...]
    labels: tuple[str, ...] = ()

    def gaps(self) -> list[tuple[int, int]]:
        """Return pairs (given, last): the entries given + 1 … last are missing."""
        known = [k for k, x in enumerate(self.arrays) if x is not None]
        return [(k, stop - 1) for k, stop in zip(known, [*known[1:], len(self.arrays)], strict=True) if stop > k + 1]

    def samples(self, k: int) -> np.ndarray:
        """Return the samples of entry k to which a spline is fitted."""
        return continued(self.model, self.arrays[k]) if self.names[k] == "q" else self.arrays[k]

    def filled(self, t: np.ndarray, fit: SmoothingFit) -> list[np.ndarray]:
        """Return all entries, (N, n) each, with missing ones derived by splines.

        An entry from which others are derived is replaced by its spline if that smooths. If fit.noisy, noise is added to all
        entries of the file.
        """
        out = [x if x is None or not fit.noisy else self._with_noise(t, k) for k, x in enumerate(self.arrays)]
        for given, last in self.gaps():
            own, of_motion = fit.of(self.names[given]), self.names[given] == "q"
            found = spline_derivatives(t, self.samples(given), last - given, own)
            out[given + 1:last + 1] = (body_velocities(self.model, found) if of_motion else found[:, 1:]).swapaxes(0, 1)
            along = of_unit_norm(self.model, found[:, 0]) if of_motion else found[:, 0]
            out[given] = along if own.noisy else np.where(np.equal(own.samples, 1), self.arrays[given], along)
        return out

    def _with_noise(self, t: np.ndarray, k: int) -> np.ndarray:
        x = with_noise(t, self.samples(k), seed=k)
        return of_unit_norm(self.model, x) if self.names[k] == "q" else x

    def doubt(self, t: np.ndarray, rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the estimated error and the size (n,) of the last entry of each gap."""
        entries = [self.filled(t, fit) for fit in (SmoothingFit(rows), *SmoothingFit(rows).checks())]
        found = []
        for given, last in self.gaps():
            x, *others = (entry[last][:, None] for entry in entries)
            error, _, size = errors(x, others, one_sided(len(t), last - given, rows))
            found.append((error[0], size[0]))
        return found

    def columns(self, k: int) -> tuple[str, ...]:
        """Return the names of the columns of entry k."""
        return self.labels or (self.model.q_names if self.names[k] == "q" else self.model.v_names)

    def blocks(self, k: int) -> list[slice]:
        """Return the groups of columns of entry k with a common spline: the four of a quaternion, otherwise single ones."""
        turns = [] if self.names[k] != "q" else [slice(joint.q.stop - 4, joint.q.stop) for joint in self.model.joints
                                                 if joint.kind != ONE_DOF]
        single = set(range(self.arrays[k].shape[1])) - {i for turn in turns for i in range(turn.start, turn.stop)}
        return sorted([*turns, *(slice(i, i + 1) for i in single)], key=lambda block: block.start)


def knot_spacings(t: np.ndarray, chains: list[Chain],
                  smooth: float | str | None) -> tuple[dict[str, np.ndarray], list[LiedynWarning]]:
    """Return the rows per knot {kind: (n,)} of the columns to which splines are fitted, and warnings.

    With "auto", each column gets the spacing that minimizes the estimated error of its highest derivative. Otherwise the spacing
    is that of `rows_per_knot`.
    """
    gaps = [(chain, *gap) for chain in chains for gap in chain.gaps()]
    if smooth == "auto" and gaps:
        for _, given, last in gaps:
            check_rows(t, last - given, 1)
        return {chain.names[given]: _quietest_of_each(t, chain, given, last) for chain, given, last in gaps}, []
    rows, warnings = rows_per_knot(t, chains, smooth)
    return {chain.names[given]: np.full(chain.arrays[given].shape[1], rows) for chain, given, _ in gaps}, warnings


def rows_per_knot(t: np.ndarray, chains: list[Chain], smooth: float | str | None) -> tuple[int, list[LiedynWarning]]:
    """Return the rows per knot of least-squares splines, and warnings; 1 means that splines interpolate all rows.

    smooth  distance of knots [s]; "auto": the distance with the least estimated error; None: 1

    Raises TrajectoryError for too few rows.
    """
    gaps = [(chain, *gap) for chain in chains for gap in chain.gaps()]
    for _, given, last in gaps:
        check_rows(t, last - given, 1)
    if smooth is None or not gaps:
        return 1, [LiedynWarning("smoothing-unused",
                                 "nothing is derived, so that --smooth has nothing to smooth")] if smooth is not None else []
    if smooth == "auto":
        return _quietest(t, chains, gaps), []
    step = float(np.median(np.diff(t)))
    rows = min(max(1, round(smooth / step)), len(t))
    if rows == 1:
        return 1, [LiedynWarning("smoothing-unused",
                                 f"--smooth {smooth:g} is no longer than the step of the trajectory, {step:.3g} s: nothing is "
                                 "smoothed")]
    missed = [chain.names[given] for chain, given, last in gaps if _missed(t, chain, given, last, rows)]
    if not missed:
        return rows, []
    return rows, [LiedynWarning("smoothing-too-strong",
                                f"splines with knots {smooth:g} s apart leave out more of {missed[0]} than its noise, and may be "
                                "further off than estimated; take a shorter --smooth, or --smooth auto")]


def _quietest_of_each(t: np.ndarray, chain: Chain, given: int, last: int) -> np.ndarray:
    """Return the rows per knot (n,) with the least error of each column of the entry from which `last` is derived.

    All columns of a quaternion have the same number.
    """
    x, highest, blocks = chain.samples(given), last - given, chain.blocks(given)
    variance, draws = noise(t, x) ** 2, np.random.default_rng(0).standard_normal((len(t), _DRAWS))
    best, least, follows = np.ones(x.shape[1], dtype=int), np.full(len(blocks), np.inf), np.ones(len(blocks), dtype=bool)
    for rows in _numbers(len(t), _FINE):
        if rows > 1:
            missed = misses(t, x, highest, rows)
            follows &= [not missed[block].any() for block in blocks]
        if not follows.any():
            break
        ends = one_sided(len(t), highest, rows)
        found, other, drawn = (spline_derivatives(t, samples, highest, fit)[ends:len(t) - ends, highest]
                               for samples, fit in ((x, SmoothingFit(rows)), (x, SmoothingFit(rows, raised=2)),
                                                    (draws, SmoothingFit(rows))))
        square = np.mean((other - found) ** 2, axis=0) + variance * np.mean(drawn**2)
        for k, block in enumerate(blocks):
            error = float(square[block].sum())
            if follows[k] and error < least[k]:
                least[k], best[block] = error, rows
    return best


def _numbers(most: int, factor: Fraction) -> Iterator[int]:
    """Yield the numbers of rows per knot that are tried, below `most`."""
    rows = 1
    while rows < most:
        yield rows
        rows = max(rows + 1, int(rows * factor))


def _quietest(t: np.ndarray, chains: list[Chain], gaps) -> int:
    """Return the rows per knot with the least error of the worst coordinate.

    The error of a coordinate is relative to its size where its error is least.
    """
    tried, error, size = [], [], []
    for rows in _numbers(len(t), _COARSE):
        if rows > 1 and any(_missed(t, chain, given, last, rows, alike=True) for chain, given, last in gaps):
            break
        doubts = [doubt for chain in chains for doubt in chain.doubt(t, rows)]
        tried.append(rows)
        error.append(np.concatenate([x for x, _ in doubts]))
        size.append(np.concatenate([x for _, x in doubts]))
    units = [f"{k} {unit}" for k, (chain, _, _) in enumerate(gaps) for unit in chain.units]
    error, size = np.array(error), np.array(size)
    size = np.take_along_axis(size, error.argmin(axis=0)[None], axis=0)
    return tried[int((error / sizes_to_judge_by(size, units)).max(axis=1).argmin())]


def _missed(t: np.ndarray, chain: Chain, given: int, last: int, rows: int, *, alike: bool = False) -> bool:
    """Return whether splines with so many rows per knot leave out more than the noise of a coordinate.

    alike  True: coordinates with the same unit are assumed to have the noise of the noisiest one
    """
    check_rows(t, last - given, rows)
    units = (chain.model.q_units if chain.names[given] == "q" else chain.units) if alike else None
    return bool(misses(t, chain.samples(given), last - given, rows, units).any())


def derivations(t: np.ndarray, chains: list[Chain], rows: Mapping[str, np.ndarray]) -> list[str]:
    """Return texts about which quantities are derived, and how. rows: from `knot_spacings`."""
    out = []
    for chain in chains:
        for given, last in chain.gaps():
            *others, name = chain.names[given + 1:last + 1]
            what = f"{', '.join(others)} and {name} are" if others else f"{name} is"
            way = _way(rows[chain.names[given]], chain.columns(given), float(np.median(np.diff(t))))
            out.append(f"{what} derived from {chain.names[given]} by splines of degree {degree_for(last - given)} {way}")
    return out


def _way(rows: np.ndarray, names: Sequence[str], step: float) -> str:
    """Return the knot spacing as text."""
    least, most = int(rows.min()), int(rows.max())
    if most == 1:
        return "through every row"
    if least == most:
        return f"with a knot every {most} rows ({most * step:.3g} s)"
    each = format_names([f"{name} {count}" for name, count in zip(names, rows, strict=True)], _NAMED)
    return f"with a knot every {least} to {most} rows ({least * step:.3g} to {most * step:.3g} s): {each}"


# dynamics with time derivatives along a trajectory ------------------------------------------------------------------------

_ROWS = 4096                            # number of rows that are computed at a time
_NOTHING = 1e-6                         # of a result: minimum scale of its derivatives, integrated over the whole motion


@dataclass(frozen=True, eq=False)
class HigherOrderRequest:
    """The dynamics and time derivatives to compute.

    of                 "inverse", "forward" or "hybrid"
    order              highest time derivative of the results
    prescribed         (nv,) bool: coordinates whose motion is given
    wrench_components  components of external wrenches that act, such as "hand.fx"
    passive            whether springs, damping and friction of the joints act
    """

    of: str
    order: int
    prescribed: np.ndarray
    wrench_components: list[str]
    passive: bool

    def name(self, k: int, j: int) -> str:
        """Return the kind of the columns of the k-th derivative of the result at coordinate j."""
        return derivative_kind("tau" if self.prescribed[j] else "a", k)

    def answer(self, a: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return the results among a and tau and their derivatives (N, order + 1, nv)."""
        return np.where(self.prescribed, tau, a)


@dataclass(frozen=True, eq=False)
class State:
    """Inputs of the dynamics: q (N, nq), and v (N, K, nv), tau (N, K, nv), wrench (N, K, components) with their derivatives."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray | None
    wrench: np.ndarray | None


def higher_order_along(model: Model, trajectory, order: int, *, of: str, patterns=(), smooth: float | str | None = None,
                       progress=None) -> CompletedTrajectory:
    """Return forces ("inverse"), accelerations ("forward") or both ("hybrid") with their first `order` time derivatives.

    Derivatives are taken from columns d1a, d2a, …, d1tau, …, d1fext, …. Missing ones are derived from the highest given
    derivative below them, or from q. Warnings report which are derived, and the estimated errors of the results.

    Parameters
    ----------
    patterns : of joint names, for "hybrid": the joints whose motion is given
    smooth : float or "auto", optional
        Distance between the knots of least-squares splines [s]; default: splines interpolate all rows. "auto" takes, for each
        coordinate, the distance that minimizes the estimated error of its highest derivative.
    progress : optional
        An object with `stage(text)`, a context, and `update(fraction)`.

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
        from liedyn.simulation.run import SilentProgress
        progress = SilentProgress()
    check_no_events(trajectory, "time derivatives")
    t, q, unwrapping = trajectory.t, positions_of(model, trajectory), []
    if bind_columns(model, trajectory, "v") is None:
        with naming(trajectory):
            q, unwrapping = unwrapped(model, q)
    passive = trajectory.passive
    asked = HigherOrderRequest(of, order, prescribed_of(model, of, patterns), wrench_components(model, trajectory), passive)
    chains = _chains(model, trajectory, asked, q)
    with progress.stage("deriving what the file lacks"), naming(trajectory):
        rows, warnings = knot_spacings(t, chains, smooth)
    header = header_along(model, trajectory, passive)
    fits = [SmoothingFit(rows)]
    derived = derivations(t, chains, rows)
    if derived:
        header["derived"] = "; ".join(derived)
        fits += SmoothingFit(rows).checks()

    def result_of(fit: SmoothingFit) -> tuple[State, tuple[np.ndarray, np.ndarray]]:
        with progress.stage("deriving what the file lacks"):
            state = _state(chains, t, fit)
        with progress.stage(f"computing ({FIRST_RUN_MESSAGE})"):
            return state, _compute(model, asked, state, progress)

    (state, found), *others = map(result_of, fits)
    columns = _columns(model, asked, state, *found)
    limits = recorded_limit_warnings(model, t, state.q, state.v[:, 0], found[1][:, 0])
    if derived:
        answers = [asked.answer(*each) for each in (found, *(other for _, other in others))]
        warnings = [*(LiedynWarning("derived-motion", text) for text in derived), *warnings, *unwrapping, *limits,
                    *_errors(model, asked, chains, t, rows, answers, smooth, lambda fit: asked.answer(*result_of(fit)[1]))]
    else:
        warnings = [*warnings, *unwrapping, *limits]
    return CompletedTrajectory(header, t, columns, tuple(warnings))


def _chains(model: Model, trajectory, asked: HigherOrderRequest, q) -> list[Chain]:
    """Return the chains of the motion, of joint forces if they are inputs, and of external wrenches."""
    kinds = ["v", *(derivative_kind("a", k) for k in range(asked.order + 1))] if asked.prescribed.any() else ["v"]
    chains = [Chain(model, ["q", *kinds], [q, *(bind_columns(model, trajectory, kind) for kind in kinds)], model.v_units)]
    if not asked.prescribed.all():
        kinds = [derivative_kind("tau", k) for k in range(asked.order + 1)]
        arrays = [bind_columns(model, trajectory, kind) for kind in kinds]
        require_forces(trajectory, arrays[0], asked.of)
        chains.append(Chain(model, kinds, arrays, model.v_units))
    arrays = [bind_wrench_rate(model, trajectory, asked.wrench_components, k) for k in range(asked.order + 1)]
    if asked.wrench_components:
        units = tuple("m" if name.endswith(("mx", "my", "mz")) else "f" for name in asked.wrench_components)
        chains.append(Chain(model, [derivative_kind("fext", k) for k in range(asked.order + 1)], arrays, units,
                            tuple(asked.wrench_components)))
    return chains


def _state(chains: list[Chain], t: np.ndarray, fit: SmoothingFit) -> State:
    filled = {chain.names[0]: chain.filled(t, fit) for chain in chains}
    q, *v = filled.pop("q")
    stacked = {kind: np.stack(arrays, axis=1) for kind, arrays in filled.items()}
    return State(q, np.stack(v, axis=1), stacked.get("tau"), stacked.get("fext"))


def _compute(model: Model, asked: HigherOrderRequest, state: State, progress) -> tuple[np.ndarray, np.ndarray]:
    """Return a and tau with their derivatives, (N, order + 1, nv) each."""
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


def _wrenches(asked: HigherOrderRequest, state: State, rows) -> dict[str, np.ndarray] | None:
    """Return external wrenches {link: (rows, K, 6)}; components that the file does not have are zero."""
    if state.wrench is None:
        return None
    wrench = state.wrench[rows]
    out: dict[str, np.ndarray] = {}
    for j, name in enumerate(asked.wrench_components):
        link, _, part = name.rpartition(".")
        out.setdefault(link, np.zeros((*wrench.shape[:2], 6)))[:, :, WRENCH.index(part)] = wrench[:, :, j]
    return out


def _columns(model: Model, asked: HigherOrderRequest, state: State, a, tau) -> list[tuple[str, str, np.ndarray]]:
    orders = range(asked.order + 1)
    rates = {derivative_kind(kind, k): x[:, k] for kind, x in (("a", a), ("tau", tau)) for k in orders}
    wrenches = wrench_columns(asked.wrench_components, state.wrench.swapaxes(0, 1)) if asked.wrench_components else []
    return motion_columns(model, q=state.q, v=state.v[:, 0], **rates) + wrenches


def _errors(model: Model, asked: HigherOrderRequest, chains: list[Chain], t, rows: dict[str, np.ndarray], answers, smooth,
            answer_of: Callable[[SmoothingFit], np.ndarray]) -> WarningLog:
    """Return warnings with the estimated errors of the results of each order, and about results that are not reliable.

    answers    results of the fit, then of its checks
    answer_of  function that returns the results of another fit
    """
    found, *others = answers
    units = [f"{unit} {given}" for unit, given in zip(model.v_units, asked.prescribed, strict=True)]
    most = {kind: int(x.max(initial=1)) for kind, x in rows.items()}
    ends = max(one_sided(len(found), last - given, most[chain.names[given]]) for chain in chains for given, last in chain.gaps())
    inner, outer, size = errors(found, others, ends)
    span = t[-1] - t[0]
    size = sizes_to_judge_by(np.maximum(size, _NOTHING * size[:1] / span ** np.arange(len(size))[:, None]), units)
    inner, outer = inner / size, outer / size
    worst = [int(k) for k in inner.argmax(axis=1)]
    worst_text = ", ".join(f"{asked.name(k, j)} {percent(inner[k, j])}" for k, j in enumerate(worst))
    warnings = WarningLog()
    warnings.add("estimated-error",
                 f"estimated error of the worst coordinate: {worst_text} ({model.v_names[worst[-1]]}), "
                 f"{percent(outer[-1].max())} within {ends} rows of the ends")
    bad = np.flatnonzero(inner.max(axis=1) > UNRELIABLE)
    if len(bad):
        k, j = bad[0], worst[bad[0]]
        by_spline, by_noise = (errors(found, [other], ends)[0][k, j] for other in others)
        noisy = by_noise > 2.0 * by_spline
        if smooth == "auto":            # it balances both errors: noise is the cause if results without smoothing are noisy
            exact, disturbed = answer_of(SmoothingFit()), answer_of(SmoothingFit(noisy=True))
            noisy = errors(exact, [disturbed], ends)[0][k, j] > UNRELIABLE * size[k, j]
        named: dict[str, list[str]] = {}
        first = (inner > UNRELIABLE).argmax(axis=0)                           # lowest order with a large error
        off = np.flatnonzero((inner > UNRELIABLE).any(axis=0))
        for i in sorted(off, key=lambda i: (first[i], -inner[first[i], i])):
            what = f"{asked.name(first[i], i)}{' and higher derivatives' if first[i] < asked.order else ''}"
            named.setdefault(what, []).append(f"{percent(inner[first[i], i])} ({model.v_names[i]})")
        columns = [f"{what}, off by {', '.join(figures)}" for what, figures in named.items()]
        warnings.add("not-reliable", f"NOT RELIABLE: {'; '.join(columns)}: {_mend(noisy, max(most.values()), smooth)}")
    return warnings


def _mend(noisy: bool, rows: int, smooth) -> str:
    if smooth == "auto":
        return mend(False, "rows", None) if not noisy else (
            "the noise of the rows is too large for their number, and no knot spacing has a smaller estimated error; give "
            "measured derivatives as columns")
    return mend(noisy, "rows" if rows == 1 else "knots", "--smooth auto" if rows == 1 else "a longer --smooth or --smooth auto")
