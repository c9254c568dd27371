"""How far results are off because velocities and accelerations were derived from samples, and what a person is told of it.

The motion is derived twice more, in another way and with noise of its own size added (`Motion.variants`). What comes out then
differs from the result by about the result's error.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from liedyn.analyse.along.derive import POINTS
from liedyn.analyse.along.manifold_spline import errors, sizes_to_judge_by
from liedyn.analyse.along.recorded_motion import Motion

UNRELIABLE = 0.1                        # of a result's own size
_NAMED = 24                             # columns in one message
_FEWEST = 4                             # rows; fewer have no second way to derive


@np.errstate(over="ignore", invalid="ignore")               # of huge numbers: 50% or more
def error_notes(motion: Motion, found: np.ndarray, compute: Callable[[Motion], np.ndarray], names: Sequence[str],
                units: Sequence[str], smoothing: str | None) -> list[str]:
    """The estimated error of the worst column of `found` (N, n), and a line for each cause why columns are not reliable.

    compute: the same results of another motion; smoothing: the option that smooths, None where there is none. Nothing is said
    where nothing was derived."""
    if not motion.variants:
        return []
    if len(found) < _FEWEST:
        return [f"{len(found)} rows are not enough to estimate the error of what is derived"]
    others = [compute(variant)[:, None] for variant in motion.variants]
    ends = min(POINTS // 2, len(found) // 4)
    inner, outer, size = (x[0] for x in errors(found[:, None], others, ends))
    judged = sizes_to_judge_by(size, units)
    worst = int((inner / judged).argmax())
    told = [f"{percent(error / of)} ({error:.2g} {unit})" for error, of, unit in zip(inner, judged, units, strict=True)]
    alike = np.array([unit == units[worst] for unit in units])
    most = int(np.where(alike, inner, -1.0).argmax())
    largest = f"; the largest is {inner[most]:.2g} {units[most]} ({names[most]})" if most != worst else ""
    at_ends = f", {percent((outer / judged).max())} within {ends} rows of the ends" if ends else ""
    notes = [f"estimated error of the worst column: {names[worst]} {told[worst]}{at_ends}{largest}"]
    by_way, by_noise = (errors(found[:, None], [other], ends)[0][0] for other in others)
    causes = {}
    for k in sorted(np.flatnonzero(inner > UNRELIABLE * judged), key=lambda k: -inner[k] / judged[k]):
        causes.setdefault(by_noise[k] > 2.0 * by_way[k], []).append(f"{names[k]}, off by {told[k]}")
    return notes + [f"NOT RELIABLE: {named_first(columns)}: {mend(noisy, 'rows', smoothing)}"
                    for noisy, columns in causes.items()]


def named_first(columns: Sequence[str]) -> str:
    """What is off, the worst first: all columns of a robot, the first of the many of a Jacobian."""
    more = len(columns) - _NAMED
    return "; ".join([*columns[:_NAMED], *([f"and {more} more"] if more > 0 else [])])


def mend(noisy: bool, between: str, smoothing: str | None) -> str:
    """What may be wrong and what to do about it; between: what may be too far apart, "rows" or "knots"."""
    if noisy:
        smooths = f"use {smoothing}, or " if smoothing else ""
        return (f"the noise of the rows is amplified, or they are too far apart; {smooths}give measured "
                "derivatives as columns")
    return f"no spline fits the motion: it hardly moves, has kinks, or the {between} are too far apart"


def percent(x: float) -> str:
    """An error that is most of what was found tells nothing of the size of the truth."""
    return f"{100 * x:.2g}%" if x < 0.5 else "50% or more"
