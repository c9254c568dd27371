"""Faults of single columns of a recording: outliers, jumps, gaps, constant positions, saturated torques."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from liedyn.analysis.recording_checks import GAP
from liedyn.arrays import Array, Integers, Mask
from liedyn.errors import LiedynWarning, list_names
from liedyn.model.model import Model
from liedyn.simulation.name_binding import v_to_q_indices

# errors of interpolation between four neighbours, from which a row is an outlier or a jump:
_OUTSTANDING = 20.0 # times the median error,
_LARGE = 2.0        # times the median change between rows,
_ISOLATED = 4.0     # times the errors at rows that are 3 to 5 rows away,
_APART = 0.5        # of the error: an outlier differs from both next rows by more, to the same side,
_HIGHER = 1.2       # times those of the next rows, which distinguishes an outlier from a jump
_RESTS = 0.1          # of the largest movement of a position in the same time: one that moves less is at rest
_WINDOWS = 200          # part of a recording in which a movement is measured
_CONSTANT = 10      # minimum number of rows with the same position, and of the median number of such rows
_MOVES = 0.05       # of the range of another coordinate: it moves
_SATURATED = 5      # minimum number of rows at the extreme of a torque, and of those at the next smaller one
_COARSE = 1.5       # steps of an encoder from row to row (median): with fewer, the encoder is coarse
_ROUNDED_STEP = 0.1 # of a step of a coarse encoder: steps of a rounded recording differ by less
_NAMED = 4          # maximum number of times in a message


def signal_warnings(model: Model, t: Array, q: Array, tau: Array, *, derived: bool) -> list[LiedynWarning]:
    """Return warnings about outliers, jumps and coarse resolutions of positions, and gaps between rows.

    q is (N, nq), tau (N, nv).

    derived  whether velocities are derived from the positions, so that gaps matter
    """
    dt = np.diff(t)
    warnings = [] if not derived else [*_gap_warnings(t, dt)]
    if len(t) < _CONSTANT:
        return warnings
    for name, unit, x in _positions(model, q):
        spikes, jumps = _isolated(x, dt)
        warnings += [*_spike_warnings(t, f"q.{name}", unit, x, spikes),
                     *_jump_warnings(t, f"q.{name}", unit, x, jumps), *_resolution_warnings(f"q.{name}", unit, x)]
    for k, (name, unit) in enumerate(zip(model.v_names, model.tau_units, strict=True)):
        warnings += _spike_warnings(t, f"tau.{name}", unit, tau[:, k], _isolated(tau[:, k], dt)[0])
    return warnings


def suspect_warnings(model: Model, t: Array, q: Array, tau: Array) -> list[LiedynWarning]:
    """Return warnings about constant positions while other joints move, and about saturated torques.

    Both may be right, so they are causes of a misfit only if there is one.
    """
    positions = list(_positions(model, q))
    moves = [_moving(x) for _, _, x in positions]
    warnings = []
    for k, (name, _, x) in enumerate(positions):
        first, last = _longest_constant(x)
        moving_then = [moving[first:last].any() for j, moving in enumerate(moves) if j != k]
        if last > first and (any(moving_then) or not moving_then):
            warnings.append(LiedynWarning(
                "constant-positions", f"q.{name} is constant from t = {t[first]:.6g} to {t[last - 1]:.6g} s"
                + (", while other joints move" if moving_then else "") + ": the encoder may be stuck"))
    moving_rows = np.any(moves, axis=0) if moves else np.ones(len(t), dtype=bool)
    for k, (name, unit) in enumerate(zip(model.v_names, model.tau_units, strict=True)):
        for extreme, word in ((tau[:, k].max(), "maximum"), (tau[:, k].min(), "minimum")):
            if rows := _rows_at_extreme(tau[moving_rows, k], float(extreme)):
                warnings.append(LiedynWarning(
                    "saturated-torques", f"tau.{name} is at its {word} of {extreme:.6g} {unit} in {rows} of {len(t)} rows: "
                    "the sensor or the motor may be saturated"))
    return warnings


def _positions(model: Model, q: Array) -> Iterator[tuple[str, str, Array]]:
    """Yield name, unit and samples (N,) of the coordinates with one position, of angles without jumps by full turns."""
    for k, i in enumerate(v_to_q_indices(model)):
        if i >= 0:
            yield model.v_names[k], model.v_units[k], np.unwrap(q[:, i]) if model.v_units[k] == "rad" else q[:, i]


def _isolated(x: Array, dt: Array) -> tuple[Integers, Integers]:
    """Return the rows that differ from their neighbours, and the first rows after a jump to other values.

    The error of cubic interpolation between the four neighbours shows both: it is s at a spike of size s and -2/3 s next to
    it, and -s/2 and s/2 at the two rows of a jump of size s.
    """
    error = np.zeros(len(x))
    error[2:-2] = x[2:-2] - (4.0 * (x[1:-3] + x[3:-1]) - x[:-4] - x[4:]) / 6.0
    size, steps = np.abs(error), np.abs(np.diff(x))
    threshold = max(_OUTSTANDING * float(np.median(size)), _LARGE * float(np.median(steps[steps > 0.0])) if steps.any() else 0.0)
    padded = np.pad(size, 5)
    quiet = np.max([padded[5 + k:len(x) + 5 + k] for k in (-5, -4, -3, 3, 4, 5)], axis=0)
    gap = np.flatnonzero(dt > GAP * np.median(dt))
    near = np.zeros(len(x), dtype=bool)
    for k in range(-2, 4):
        near[np.clip(gap + k, 0, len(x) - 1)] = True
    large = (size > threshold) & (size > _ISOLATED * quiet) & ~near
    previous, following = np.r_[0.0, size[:-1]], np.r_[size[1:], 0.0]
    rise, fall = np.r_[0.0, np.diff(x)], np.r_[-np.diff(x), 0.0]
    apart = (rise * fall > 0.0) & (np.minimum(np.abs(rise), np.abs(fall)) > _APART * size)
    spikes = np.flatnonzero(large & apart & (size > _HIGHER * np.maximum(previous, following)))
    jumps = np.flatnonzero(large & np.r_[False, large[:-1]] & (size < _HIGHER * previous) & (previous < _HIGHER * size))
    return spikes, jumps


def _spike_warnings(t: Array, column: str, unit: str, x: Array, rows: Integers) -> Iterator[LiedynWarning]:
    if len(rows):
        size = np.minimum(np.abs(x[rows] - x[rows - 1]), np.abs(x[rows] - x[rows + 1])).max()
        yield LiedynWarning("outliers", f"{column} differs from its neighbours by up to {size:.3g} {unit} in {len(rows)} "
                            f"row{'s' * (len(rows) > 1)} ({_times(t[rows])}): omit these rows")


def _jump_warnings(t: Array, column: str, unit: str, x: Array, rows: Integers) -> Iterator[LiedynWarning]:
    if len(rows):
        size = np.abs(x[rows] - x[rows - 1]).max()
        yield LiedynWarning("position-jumps", f"{column} jumps by up to {size:.3g} {unit} from one row to the next "
                            f"({_times(t[rows])}): rows are missing, or the encoder has lost its zero")


def _resolution_warnings(column: str, unit: str, x: Array) -> Iterator[LiedynWarning]:
    steps = np.abs(np.diff(x))
    changes = steps[steps > 0.0]
    if len(changes) <= _CONSTANT or len(np.unique(x)) >= len(x) / 2:
        return
    step = float(changes.min())
    is_rounded = np.abs(changes / step - np.round(changes / step)).max() < _ROUNDED_STEP
    if is_rounded and np.median(steps[_in_motion(x)]) < _COARSE * step:
        yield LiedynWarning("coarse-positions", f"{column} changes in steps of {step:.3g} {unit}, and by at most one step in "
                            "most rows: the resolution of the encoder is too coarse for this rate, and deviations may be too "
                            "small")


def _in_motion(x: Array) -> Integers:
    """Return the rows at which a position moves by more than a part of its largest movement in as many rows: not at rest."""
    n = max(_CONSTANT, len(x) // _WINDOWS)
    if len(x) <= 2 * n:
        return np.arange(len(x) - 1)
    travel = np.abs(x[2 * n:] - x[:-2 * n])
    return n + np.flatnonzero(travel > _RESTS * travel.max(initial=0.0))


def _gap_warnings(t: Array, dt: Array) -> Iterator[LiedynWarning]:
    median = float(np.median(dt)) if len(dt) else 0.0
    gaps = np.flatnonzero(dt > GAP * median)
    if len(gaps):
        yield LiedynWarning("time-gaps", f"the times have {len(gaps)} gap{'s' * (len(gaps) > 1)} of up to {dt[gaps].max():.3g} s "
                            f"({_times(t[gaps])}), while the median step is {median:.3g} s: velocities and accelerations near "
                            "them are wrong")


def _times(times: Array) -> str:
    return f"t = {list_names([f'{x:.6g}' for x in times], _NAMED)} s"


def _moving(x: Array) -> Mask:
    """Return whether a position moves at each row, by more than a part of its range in _CONSTANT rows."""
    far = np.zeros(len(x), dtype=bool)
    n = _CONSTANT
    if len(x) > 2 * n:
        far[n:-n] = np.abs(x[2 * n:] - x[:-2 * n]) > _MOVES * np.ptp(x)
    return far


def _longest_constant(x: Array) -> tuple[int, int]:
    """Return the first row and that after the last of the longest part with the same value; twice zero if none is long."""
    ends = np.flatnonzero(np.diff(x) != 0.0) + 1
    borders = np.r_[0, ends, len(x)]
    lengths = np.diff(borders)
    k = int(lengths.argmax())
    typical = float(np.median(np.delete(lengths, k))) if len(lengths) > 1 else 1.0
    if lengths[k] < _CONSTANT * max(typical, 1.0):
        return 0, 0
    return int(borders[k]), int(borders[k + 1])


def _rows_at_extreme(x: Array, extreme: float) -> int:
    """Return the number of rows at an extreme of a torque; zero if it is not much larger than that at other values."""
    values, counts = np.unique(x, return_counts=True)
    if len(values) < 2 or extreme not in (values[0], values[-1]):
        return 0
    rows, following = (counts[0], counts[1]) if extreme == values[0] else (counts[-1], counts[-2])
    return int(rows) if rows >= _SATURATED * max(following, 1) else 0
