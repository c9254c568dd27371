"""Checks of a recorded motion: angles that wrap by 2 pi, exceeded limits, wrong rates, units of angles and times."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from liedyn.analysis.numerical_differentiation import ROUNDING, derivatives
from liedyn.arrays import Array, Mask
from liedyn.dynamics.manifold import difference
from liedyn.dynamics.scales import model_scales
from liedyn.errors import LiedynWarning, list_names, summarized
from liedyn.io.column_expressions import negative, with_unit, written
from liedyn.io.column_map import columns_option
from liedyn.io.trajectory_csv import Trajectory
from liedyn.io.units import unit_of
from liedyn.model.model import Model
from liedyn.simulation.limits import limit_warnings, limits_exceeded
from liedyn.simulation.name_binding import unwrap_angle, v_to_q_indices

_DEGREES = 2.0           # angles may be in degrees if one of them exceeds its limit by this factor
GAP = 10.0              # times the median step: rows are missing there
_TURN = 360.0            # jump of an angle in degrees that wraps
_JUMP = 60.0             # degrees: maximum change between rows without a jump, and maximum deviation of a jump from _TURN
_FEW = 0.1               # of the jump: maximum of the median change between rows
# Angles without limits may be in degrees if one of them
_SLIGHT_RANGE = 1.0      # of an angle: it moves little in rad, and does not move in degrees
_SWING = 4 * np.pi       # rad: turns by more than this in both directions,
_FAST = 20.0             # rad/s: faster than this,
_MOVING = 2 * np.pi      # rad: while every angle that moves has at least this range (not so for wheels of vehicles),
_MOST = 2 * _TURN        # and no value exceeds two turns in degrees: motors and propellers turn farther
_MIN_ROWS = 5            # minimum number of rows for a comparison of a rate with the changes of its quantity
_COMPARED = 20           # number of parts of the time over which these are compared
_NOISE_FACTOR = 9.0      # of the variance of the differences that noise causes: larger differences are significant
_FINE = 0.5              # second differences relative to the values: if larger, rows are too far apart for the trapezoidal rule
_CONTRADICTS = 0.3       # of the change: the integral of a wrong rate differs by more
_PROPORTIONAL = 0.9      # squared correlation: a higher one means that the rate is wrong by a factor
# of the maximum change of a coordinate with the same unit: a coordinate that changes less is not compared
_STANDS = 0.01
_NAMED = 8               # maximum number of columns in a message
_COMPARED_NAMES = 12     # the same, of measured torques


def unwrapped(model: Model, q: Array) -> tuple[Array, list[LiedynWarning]]:
    """Return configurations (N, nq) without jumps by full turns, and a warning if there were any.

    Angles that seem to be in degrees are not unwrapped. Raises TrajectoryError where limits exclude the unwrapped angles.
    """
    out, names = q, []
    if len(q) and np.abs(q).max() > 2 * np.pi and _degrees_by_limits(model, q)[0]:
        return q, []
    for k, i in enumerate(v_to_q_indices(model)):
        if i < 0 or model.v_units[k] != "rad" or _degrees_wrap(q[:, i]) or not _wraps(np.diff(q[:, i])):
            continue
        x, jumps = unwrap_angle(q[:, i], model.v_names[k], model.lower[k], model.upper[k])
        if jumps:
            out = out.copy() if out is q else out
            out[:, i] = x
            names.append(f"{model.v_names[k]} ({jumps} times)")
    return out, [LiedynWarning("angles-unwrapped",
                               f"angles that jump by 2 pi were unwrapped: {', '.join(names)}")] if names else []


def recording_warnings(model: Model, t: Array, q: Array, v: Array, tau: Array, a: Array | None = None,
                       trajectory: Trajectory | None = None) -> list[LiedynWarning]:
    """Return warnings about exceeded limits, and those of `unit_warnings`. tau is (N, nv)."""
    return [*limit_warnings(limits_exceeded(model, t, q, v, tau), recorded=True), *unit_warnings(model, t, q, v, a, trajectory)]


def unit_warnings(model: Model, t: Array, q: Array, v: Array | None, a: Array | None = None,
                  trajectory: Trajectory | None = None) -> list[LiedynWarning]:
    """Return warnings about units of angles and times, and about velocities and accelerations that contradict positions.

    q is (N, nq); v and a are (N, nv). Without v or a, velocities or accelerations are not checked.
    trajectory: what they were read from.
    """
    measured = v is not None and (trajectory is None or any(name.startswith("v.") for name in trajectory.columns))
    if v is None:
        with np.errstate(all="ignore"):
            v = derivatives(model, t, q)[0]
    contradictions = _contradictions(model, t, q, v, a)
    unit = _unit_of_times(model, t, q, contradictions, trajectory, measured=measured)
    is_own = trajectory is not None and "model" in trajectory.header         # the result of a run: its units are known
    contradictions = contradictions if measured else []
    rates = [wrong for wrong in contradictions if not is_own and _is_of_degrees(model, wrong)]
    warnings = ([_time_warning(t, unit, trajectory, measured=measured)] if unit else
                _contradiction_warnings(model, [wrong for wrong in contradictions if wrong not in rates], trajectory))
    reason, kinds, names = "" if is_own else _in_degrees(model, q, v), ["q"], None
    if reason:
        kinds, names = _kinds_in_degrees(model, t, q, v, a), _names_in_degrees(model, q)
    elif rates:
        reason = f"v.{rates[0].coordinate} is {rates[0].ratio:.3g} times the rate of {rates[0].source}"
        names = [wrong.coordinate for wrong in rates]
        factors = [np.radians(1.0) if name in names else 1.0 for name in model.q_names]
        if {name for name in _moving(model, q * factors) if model.v_units[model.v_names.index(name)] == "rad"} <= {*names}:
            names = None
    if reason:
        conversion = conversion_hint(model, trajectory, {kind: _IN_DEGREES[kind] for kind in kinds}, names) if trajectory else ""
        warnings.append(LiedynWarning("degrees", f"the angles seem to be in degrees: {reason}; "
                                      f"{conversion or 'the columns must be in rad'}"))
    return warnings


# measured and computed torques ------------------------------------------------------------------------------------------

MEASURED = "measured"       # kind of the columns of measured torques next to computed ones
_COMPUTED = 1e-9            # of the measured torque: a smaller difference is rounding
_LIKE = 0.5                 # squared correlation: torques with a higher one are alike, except for a factor
ALIKE = 0.8                # the same for one joint alone, whose friction may be large
_COMMON = 1.5               # ratios of joints within this factor of the common one have it in common
_FAR = 2.0                  # from a factor of 1: neither a robot file nor friction cause so much


@summarized
class TorqueDifference(NamedTuple):
    """Root mean square of the difference of measured and computed torques of a coordinate [N m | N].

    relative  to that of the measured torques
    """

    coordinate: str
    unit: str
    rms: float
    relative: float

    def __str__(self) -> str:
        return f"{self.coordinate} {self.rms:.3g} {self.unit} ({100 * self.relative:.3g} %)"


def torque_differences(model: Model, measured: Array, computed: Array,
                       ends: int) -> tuple[tuple[TorqueDifference, ...], list[LiedynWarning]]:
    """Return the differences of torques (N, nv), without coordinates that have no measured torque, and messages about them.

    If all differences are rounding, the torques were computed, and there is nothing to compare. Measured torques of followers
    count at the joints that they follow, as computed ones do.

    ends  number of rows at each end that are not compared
    """
    rows = slice(ends, len(measured) - ends)
    if model.nc and model.has_only_linear_couplings:
        measured, computed = (x @ model.elimination().projection for x in (measured, computed))
    scales = model_scales(model).force_scales(model.v_units)
    compared = np.flatnonzero(np.abs(measured / scales).max(axis=0, initial=0.0) > ROUNDING)
    differences = tuple(TorqueDifference(model.v_names[k], model.tau_units[k], rms, rms / np.sqrt(np.mean(measured[:, k]**2)))
                        for k in map(int, compared)
                        for rms in [float(np.sqrt(np.mean((measured[rows, k] - computed[rows, k])**2)))])
    if all(difference.relative < _COMPUTED for difference in differences):
        return (), []
    listing = list_names([*map(str, differences)], _COMPARED_NAMES)
    messages = [LiedynWarning("torques-compared", f"measured and computed torques differ by (rms): {listing}")]
    measured, computed = ((x / scales)[rows][:, compared] for x in (measured, computed))
    wrong = _wrong_scales([model.v_names[k] for k in compared], measured, computed)
    if wrong:
        messages.append(LiedynWarning("torque-scale", f"the measured torques are {wrong}: check their signs and units, such as "
                                      "mA instead of N m, and the masses of the robot file"))
    return differences, messages


def _wrong_scales(names: Sequence[str], measured: Array, computed: Array) -> str:
    """Return a text with ratios of measured to computed torques (N, n) that are far from 1; empty if there are none.

    One ratio for all coordinates if they have it in common, otherwise one for each coordinate whose torques are alike.
    """
    common = torque_scale(measured, computed) if np.abs(computed).max(initial=0.0) > ROUNDING else math.nan
    single = {name: torque_scale(x, y, ALIKE) for name, x, y in zip(names, measured.T, computed.T, strict=True)
              if np.abs(y).max(initial=0.0) > ROUNDING}
    known = [scale for scale in single.values() if math.isfinite(scale)]
    if is_far(common) and all(1.0 / _COMMON < scale / common < _COMMON for scale in known):
        return f"about {scale_text(common)} times the computed ones"
    far = [f"{scale_text(scale)} ({name})" for name, scale in single.items() if is_far(scale)]
    return f"the computed ones times about {list_names(far, _COMPARED_NAMES)}" if far else ""


def torque_scale(measured: Array, expected: Array, like: float = _LIKE) -> float:
    """Return the ratio of torques to expected ones (least squares); NaN if their squared correlation is below `like`."""
    product, squares = np.vdot(measured, expected), np.vdot(expected, expected)
    return float(product / squares) if squares and product**2 > like * squares * np.vdot(measured, measured) else math.nan


def is_far(scale: float) -> bool:
    """Return whether a ratio of torques is so far from 1 that these may be in other units."""
    return math.isfinite(scale) and not 1.0 / _FAR < scale < _FAR


_TORQUE_UNITS = {"rad": ("Nmm", "Ncm", "kNm"), "m": ("mN", "kN")}
_SCALE_ERROR = 0.4          # maximum error of a ratio to torques of the robot file, relative to that of a unit


def torque_unit(scale: float, unit: str) -> str:
    """Return the unit in which torques or forces seem to be, from their ratio to expected ones; empty if none fits.

    unit  of the coordinate, rad or m
    """
    for text in _TORQUE_UNITS.get(unit, ()):
        known = unit_of(text)
        if known is not None and abs(abs(scale) * known.multiply / known.divide - 1.0) < _SCALE_ERROR:
            return text
    return ""


def scale_text(scale: float) -> str:
    """Return a ratio as text: 1000 rather than 1e+03."""
    return f"{float(f'{scale:.3g}'):g}"


# units of times ---------------------------------------------------------------------------------------------------------

TIME_UNITS = {"ms": 1e3, "us": 1e6, "ns": 1e9}
_CALENDAR = 1e9, 4e9        # s: of the years 2001 to 2096
_RATIO_ERROR = 0.1          # maximum error of a measured ratio, relative to that of a unit
_SHORTEST_STEP = 1e-5       # s: no recording has shorter steps
_SLOW = 0.05                # of the fastest coordinate: slower ones need not contradict their velocities
_LONGEST_STEP = 0.5         # s: longer steps, of at least _MANY_ROWS, may be in another unit
_MANY_ROWS = 100


def _unit_of_times(model: Model, t: Array, q: Array, contradictions: Sequence[_Contradiction], trajectory: Trajectory | None, *,
                   measured: bool) -> str:
    """Return ms, us or ns if the times seem to be in this unit instead of s, else an empty text.

    They do if all measured velocities are larger than the rates of the positions by this factor. Without measured velocities,
    they do if the first time is of this century in that unit, or if steps are longer than those of recordings.
    """
    header, mapping = ({}, None) if trajectory is None else (trajectory.header, trajectory.mapping)
    source = None if mapping is None else mapping.sources.get("t")
    if "liedyn" in header or (source is not None and source.unit) or len(t) < _MIN_ROWS:
        return ""
    step = float(np.median(np.diff(t)))
    if measured:
        factors = {unit: factor for unit, factor in TIME_UNITS.items() if step / factor > _SHORTEST_STEP and contradictions
                   and all(abs(wrong.ratio / factor - 1.0) < _RATIO_ERROR for wrong in contradictions)}
        names = {wrong.coordinate for wrong in contradictions if wrong.kind == "v"}
        return next(iter(factors), "") if factors and _moving(model, q) <= names else ""
    start = float(header.get("start", t[0]))
    for unit, factor in TIME_UNITS.items():
        if _CALENDAR[0] <= start / factor <= _CALENDAR[1]:
            return unit
    if step < _LONGEST_STEP or len(t) < _MANY_ROWS:
        return ""
    return next((unit for unit, factor in TIME_UNITS.items() if step / factor < _LONGEST_STEP), "ns")


def _moving(model: Model, q: Array) -> set[str]:
    """Return the coordinates that move much, compared with those of the same unit."""
    steps, units = np.abs(difference(model, q[:-1], q[1:])).mean(axis=0), np.array(model.v_units)
    return {name for name, step, unit in zip(model.v_names, steps, units, strict=True)
            if step > _SLOW * steps[units == unit].max()}


def _time_warning(t: Array, unit: str, trajectory: Trajectory | None, *, measured: bool) -> LiedynWarning:
    mapping, remedy = None if trajectory is None else trajectory.mapping, "the times must be in s"
    if mapping is not None and "t" in mapping.sources:
        remedy = f"write t={with_unit(mapping.sources['t'].text, unit)} in the map of the columns"
    elif trajectory is not None and mapping is None:
        remedy = f"convert them with {columns_option({'t': f't[{unit}]'})}"
    reason = (f"velocities are {TIME_UNITS[unit]:g} times the rates of the positions" if measured else
              f"the median step is {np.median(np.diff(t)):.4g} s")
    return LiedynWarning("time-unit", f"the times seem to be in {unit}: {reason}; {remedy}")


# units of angles --------------------------------------------------------------------------------------------------------

_IN_DEGREES = {"q": "deg", "v": "deg/s", "a": "deg/s^2"}


def _kinds_in_degrees(model: Model, t: Array, q: Array, v: Array, a: Array | None) -> list[str]:
    """Return q, and v and a if these are the rates of angles in degrees, rather than rates in radians."""
    places = [(k, i) for k, i in enumerate(v_to_q_indices(model)) if i >= 0 and model.v_units[k] == "rad"]
    x, kinds = q[:, [i for _, i in places]], ["q"]
    for kind, rates in (("v", v), ("a", a)):
        if rates is None:
            break
        rate = rates[:, [k for k, _ in places]]
        moved, integral = np.diff(x, axis=0).ravel(), (0.5 * (rate[1:] + rate[:-1]) * np.diff(t)[:, None]).ravel()
        if _ratio(integral, moved) < np.sqrt(np.radians(1.0)):             # closer to rates in radians
            break
        x, kinds = rate, [*kinds, kind]
    return kinds


def conversion_hint(model: Model, trajectory: Trajectory, units: Mapping[str, str], names: Sequence[str] | None = None,
                base: str = "rad") -> str:
    """Return what converts columns from other units {kind: unit}: the option --columns, or the key of a map.

    units  with "-" before those of columns with the wrong sign; "-" alone if the unit is right
    names  of the coordinates; default: all whose unit is `base`

    Empty if the map of the trajectory already gives units of these columns.
    """
    units = {kind: unit for kind, unit in units.items() if any(name.startswith(f"{kind}.") for name in trajectory.columns)}
    whole = [name for k, name in enumerate(model.v_names) if model.v_units[k] == base]
    columns = {f"{kind}.{name}": unit for kind, unit in units.items() for name in (whole if names is None else names)
               if (kind != "q" or name in model.q_names) and f"{kind}.{name}" in trajectory.columns}
    all_columns = set(model.v_units) == {base} and len(model.q_names) == model.nv and (names is None or [*names] == whole)
    mapping = trajectory.mapping
    sources = {} if mapping is None else dict(mapping.sources)
    has_units = "-" not in units.values() and any(sources[name].unit in ("map", "name", "default")
                                                  for name in columns if name in sources)
    has_right_signs = not any(unit.startswith("-") for unit in units.values())
    if not columns or has_units:
        return ""
    if all_columns and mapping is None:
        return f"convert them with {columns_option({f'{kind}.*': _converted(f'{kind}.*', unit) for kind, unit in units.items()})}"
    if all_columns and has_right_signs and not any(trajectory.units[name] for name in columns):
        if mapping is not None and mapping.source_text is not None:
            text = ",".join((mapping.source_text, *(f"{kind}=[{unit}]" for kind, unit in units.items())))
            return f"convert them with {columns_option(text)}"
        if mapping is not None and mapping.file is not None:
            text = ", ".join(f"{kind}: {unit}" for kind, unit in units.items())
            return f"convert them with the line `units: {{{text}}}` in {mapping.file}"
    entries = {name: source.text for name, source in sources.items()}
    entries |= {name: _converted(entries.get(name, written(name)), unit) for name, unit in columns.items()}
    option = columns_option(entries)
    return f"convert them with {option}" if option else ""


def _converted(text: str, unit: str) -> str:
    """Return an expression in this unit, with the other sign if the unit starts with "-"."""
    if unit.startswith("-"):
        return negative(_converted(text, unit[1:]) if unit[1:] else text)
    return f"{text}[{unit}]" if text.endswith(".*") else with_unit(text, unit)


# rates ------------------------------------------------------------------------------------------------------------------

_RATES = {("rad", "v"): ("deg/s", "rpm", "mrad/s", "rev/s"), ("rad", "a"): ("deg/s^2", "rpm/s", "mrad/s^2", "rev/s^2"),
          ("m", "v"): ("mm/s", "cm/s"), ("m", "a"): ("mm/s^2", "cm/s^2")}


@dataclass(frozen=True, slots=True)
class _Contradiction:
    """A column that is not the rate of another wrong.

    ratio  to the rate; NaN if the column is not proportional to it
    """

    coordinate: str
    kind: str
    source: str
    ratio: float

    def guess(self, unit: str) -> str:
        """Return the unit in which the column may be, with "-" before it for the wrong sign, or an empty text.

        unit: of the coordinate; it is empty in the result.
        """
        sign = "-" if self.ratio < 0.0 else ""
        if abs(self.ratio + 1.0) < _RATIO_ERROR:
            return sign
        for text in _RATES[unit, self.kind]:
            known = unit_of(text)
            if known is not None and abs(abs(self.ratio) * known.multiply / known.divide - 1.0) < _RATIO_ERROR:
                return sign + text
        return ""


def _is_of_degrees(model: Model, wrong: _Contradiction) -> bool:
    """Return whether a velocity is the rate in radians of an angle in degrees."""
    return (wrong.kind == "v" and model.v_units[model.v_names.index(wrong.coordinate)] == "rad"
            and abs(wrong.ratio / np.radians(1.0) - 1.0) < _RATIO_ERROR)


def _contradiction_warnings(model: Model, contradictions: Sequence[_Contradiction],
                            trajectory: Trajectory | None) -> list[LiedynWarning]:
    """Return a warning for each factor, unit and kind of columns."""
    units = dict(zip(model.v_names, model.v_units, strict=True))
    alike: dict[tuple[str, str, str], list[_Contradiction]] = {}
    for wrong in contradictions:
        unit = units[wrong.coordinate]
        alike.setdefault((wrong.kind, wrong.guess(unit) or f"{wrong.ratio:.3g}", unit), []).append(wrong)
    warnings = []
    for (kind, _, unit), group in alike.items():
        names, ratio = [wrong.coordinate for wrong in group], float(np.median([wrong.ratio for wrong in group]))
        columns = list_names([f"{kind}.{name}" for name in names], _NAMED)
        sources = list_names([*dict.fromkeys(wrong.source for wrong in group)], _NAMED)
        are, rates = ("is", "rate") if len(group) == 1 else ("are", "rates")
        if math.isnan(ratio):
            text = f"{columns} {are} not the {rates} of {sources}"
        elif ratio == 0.0:
            text = f"{columns} {are} zero, although {sources} change{'s' if len(group) == 1 else ''}"
        else:
            known = group[0].guess(unit)
            conversion = conversion_hint(model, trajectory, {kind: known}, names, unit) if trajectory and known else ""
            hints = [*[f"in {known.removeprefix('-')}"] * (known not in ("", "-")), *["wrong sign"] * (ratio < 0.0)]
            hint = f" ({', '.join(hints)}?)" if hints else ""
            text = f"{columns} {are} {ratio:.3g} times the {rates} of {sources}{hint}{'; ' * bool(conversion)}{conversion}"
        warnings.append(LiedynWarning("contradicting-rates", text))
    return warnings


def _contradictions(model: Model, t: Array, q: Array, v: Array, a: Array | None) -> list[_Contradiction]:
    """Return columns of v that are not the rates of q, and columns of a that are not the rates of correct v."""
    if len(t) < _MIN_ROWS:
        return []
    steps = difference(model, q[:-1], q[1:])
    angles = (np.array(v_to_q_indices(model)) >= 0) & (np.array(model.v_units) == "rad")
    for k in np.flatnonzero(angles):
        if _wraps(steps[:, k]):
            steps[:, k] -= _full_turns(steps[:, k])
    positions = [f"q.{name if i >= 0 else name.rpartition('.')[0]}"
                 for name, i in zip(model.v_names, v_to_q_indices(model), strict=True)]
    contradictions = _wrong_rates(model, t, np.vstack([np.zeros(model.nv), np.cumsum(steps, axis=0)]), v, "v", positions)
    if a is not None:
        contradictions = _wrong_rates(model, t, v, a, "a", [f"v.{name}" for name in model.v_names]) | contradictions
    return [contradictions[name] for name in model.v_names if name in contradictions]


def _wrong_rates(model: Model, t: Array, x: Array, rate: Array, kind: str,
                 sources: Sequence[str]) -> dict[str, _Contradiction]:
    """Return {coordinate: contradiction} for columns of `rate` (N, nv) that are not the time derivatives of x (N, nv).

    Changes of x are compared with integrals of the rate over parts of the time. Differences within noise are accepted. Intervals
    that contain an event and coordinates whose rows are too far apart are not compared.

    kind     "v" or "a"
    sources  names of the columns of x
    """
    dt, m = np.diff(t), max(len(t) // _COMPARED, 1)
    area = np.vstack([np.zeros(rate.shape[1]), np.cumsum(0.5 * (rate[1:] + rate[:-1]) * dt[:, None], axis=0)])
    whole = _without_events(dt, m)
    moved, integral = ((y[m:] - y[:-m])[whole] for y in (x, area))
    if not len(moved):
        return {}
    size, bend = np.sqrt(np.mean(rate**2, axis=0)), np.diff(rate, 2, axis=0)[_without_events(dt, 2)]
    fine = np.sqrt(np.sum(bend**2, axis=0) / max(len(bend), 1)) <= _FINE * size
    both = np.maximum(np.mean(moved**2, axis=0), np.mean(integral**2, axis=0))
    mean_square = np.mean((moved - integral)**2, axis=0)
    noise = 2.0 * _noise_variance(x, dt) + m * np.median(dt)**2 * _noise_variance(rate, dt)
    units = np.array(model.v_units)
    largest = np.array([both[units == unit].max() for unit in units])
    scales = model_scales(model)
    rounding = ROUNDING * scales.unit_scales(units) / (scales.time if kind == "a" else 1.0)
    differs = fine & (mean_square > _CONTRADICTS**2 * both + _NOISE_FACTOR * noise)
    differs &= both > np.maximum(_STANDS**2 * largest, rounding**2)
    contradictions = {}
    for k in map(int, np.flatnonzero(differs)):
        name, ratio = model.v_names[k], _ratio(integral[:, k], moved[:, k])
        proportional = ratio * _ratio(moved[:, k], integral[:, k]) > _PROPORTIONAL
        contradictions[name] = _Contradiction(name, kind, sources[k], ratio if proportional or size[k] == 0.0 else np.nan)
    return contradictions


def _without_events(dt: Array, rows: int) -> Mask:
    """Return a mask of rows after which the next `rows` steps contain no event (two rows with the same time) and no gap."""
    events = np.concatenate([[0], np.cumsum((dt <= 0.0) | (dt > GAP * np.median(dt)))])
    without: Mask = events[rows:] == events[:-rows]
    return without


def _noise_variance(x: Array, dt: Array) -> Array:
    """Return the variance (n,) of independent noise in columns x (N, n), from third differences (small if x is smooth)."""
    bends = np.diff(x, 3, axis=0)[_without_events(dt, 3)]
    squares: Array = np.sum(bends**2, axis=0)
    return squares / (20.0 * max(len(bends), 1))


def _ratio(y: Array, x: Array) -> float:
    """Return the least-squares solution of y = ratio x for columns (N,)."""
    squares = float(x @ x)
    return float(x @ y) / squares if squares else 0.0


def _in_degrees(model: Model, q: Array, v: Array) -> str:
    """Return the reason why angles seem to be in degrees; empty if they do not.

    They do if all angles with limits are within these after conversion from degrees, and an angle is far beyond its limits. They
    also do if an angle without limits jumps by 360 or turns in both directions by many turns.
    """
    text, unlimited = _degrees_by_limits(model, q)
    return text or ("" if unlimited is None else _without_limits(model, q, v, unlimited))


def _names_in_degrees(model: Model, q: Array) -> list[str] | None:
    """Return the angles with limits that exceed them or a turn, if others that move do not; otherwise None for all angles."""
    places = [(k, i) for k, i in enumerate(v_to_q_indices(model)) if i >= 0 and model.v_units[k] == "rad"]
    largest = {model.v_names[k]: float(np.abs(q[:, i]).max()) for k, i in places}
    reach = {model.v_names[k]: float(np.fmin(max(abs(model.lower[k]), abs(model.upper[k])), 2.0 * np.pi)) for k, i in places}
    names = [name for name, x in largest.items() if x > reach[name]]
    still = {model.v_names[k] for k, i in places if np.ptp(q[:, i]) < _SLIGHT_RANGE}
    return names if len(names) < len(places) - len(still - {*names}) else None


def _degrees_by_limits(model: Model, q: Array) -> tuple[str, list[tuple[int, int]] | None]:
    """Return the reason as `_in_degrees` for angles with limits, and the places (k, i) of those without, in v and q.

    The places are None if an angle exceeds its limit also after conversion from degrees.
    """
    worst, text, unlimited = 0.0, "", []
    for k, i in enumerate(v_to_q_indices(model)):
        if i < 0 or model.v_units[k] != "rad":
            continue
        if not (model.lower[k] < model.upper[k] and np.isfinite([model.lower[k], model.upper[k]]).all()):
            unlimited.append((k, i))
            continue
        reach = max(abs(model.lower[k]), abs(model.upper[k]))
        largest = float(np.abs(q[:, i]).max())
        if np.radians(largest) > reach:
            return "", None
        if largest > max(_DEGREES * reach, worst * reach):
            worst = largest / reach
            text = f"{model.v_names[k]} reaches {largest:.4g} rad, its limit is {reach:.4g} rad"
    return text, unlimited


def _without_limits(model: Model, q: Array, v: Array, places: list[tuple[int, int]]) -> str:
    """Return the reason as `_in_degrees` for angles without limits, at places (k, i) in v and q."""
    for k, i in places:
        if _degrees_wrap(q[:, i]):
            return f"{model.v_names[k]} jumps by {np.abs(np.diff(q[:, i])).max():.4g} rad between two rows"
    if set(model.v_units) != {"rad"} or min(v_to_q_indices(model)) < 0:           # wheels of vehicles turn in both directions
        return ""
    moved = np.ptp(q, axis=0)
    if (moved[moved > 0] < _MOVING).any() or np.abs(q).max() > _MOST:
        return ""
    for k, i in places:
        steps = np.diff(q[:, i])
        if min(steps[steps > 0].sum(), -steps[steps < 0].sum()) > _SWING and np.abs(v[:, k]).max() > _FAST:
            return f"{model.v_names[k]} oscillates by {np.ptp(q[:, i]):.4g} rad"
    return ""


def _degrees_wrap(x: Array) -> bool:
    """Return whether samples x (N,) jump by about 360 and are continuous elsewhere."""
    steps = np.abs(np.diff(x))
    jumps = np.abs(steps - _TURN) < _JUMP
    return bool(jumps.any() and np.median(steps) < _FEW * _TURN and steps[~jumps].max(initial=0.0) < _JUMP)


def _wraps(steps: Array) -> bool:
    """Return whether steps (N,) of an angle are smoother without full turns. Those of an angle in degrees are not."""
    wrapped = steps - _full_turns(steps)
    return bool(np.abs(np.diff(wrapped)).sum() < np.abs(np.diff(steps)).sum())


def _full_turns(steps: Array) -> Array:
    turns: Array = 2 * np.pi * np.round(steps / (2 * np.pi))
    return turns
