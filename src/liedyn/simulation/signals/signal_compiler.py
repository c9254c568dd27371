"""Compiler of the signals of a scenario into the flat arrays of `kernels.simulation.signals`."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.errors import ComputationError, Place, ScenarioError, TrajectoryError, WarningLog, nearest
from liedyn.io.ros_bag import is_bag
from liedyn.io.scenarios.scenario import (
    PHASE_START,
    Column,
    Constant,
    Expression,
    Move,
    Quintic,
    RelativeTime,
    Signal,
    Sine,
    Spline,
    Table,
)
from liedyn.io.trajectory_csv import Trajectory, read_trajectory, repeated_row
from liedyn.io.units import unit_of
from liedyn.kernels.simulation import signals as code
from liedyn.kernels.simulation.signals import NUMBERS_PER_POINT
from liedyn.model.model import Model
from liedyn.simulation.limits import motion_limits
from liedyn.simulation.name_binding import find_index, make_points, unknown_name_error, unwrap_angle
from liedyn.simulation.signals.curves import (
    MIN_ROWS,
    SAME_TIME,
    Curve,
    extend_constant,
    interpolant,
    make_finite_curve,
    quintic,
    spline,
)
from liedyn.simulation.signals.expression import (
    LINK_FUNCTIONS,
    SignalProgram,
    compile_expression,
    moved_literals,
    with_clock_origins,
)
from liedyn.simulation.signals.point_to_point import LIMIT_TOLERANCE, MotionLimits, peak_rate, stop_and_go
from liedyn.simulation.signals.state_tables import table_program
from liedyn.simulation.signals.switching_times import MAX_SWITCHES, switches_in_time, switches_of_state

# signal table -----------------------------------------------------------------------------------------------------------

_ANY_ANGLE = 8 * math.pi         # rad: angles of a table without units that reach further may be in degrees
_REST_TOLERANCE = 1e-6          # of the maximum velocity: slower is at rest


@dataclass(frozen=True, slots=True)
class SignalPurpose:
    """The use of a signal.

    name         for messages: "torque of elbow"
    state        whether it may depend on q, v and points of links
    forces       whether it may depend on generalized forces; then switches of clocks are located as switches of the state
    q, v         its own coordinate: index in q (None: it has none) and in v
    column       default column of a CSV file
    unit         required unit of a CSV column that has a unit
    interpolate  default interpolation
    derivatives  number of time derivatives that are used
    window       interval of time in which it is used; None: the whole run
    """

    name: str
    state: bool = True
    forces: bool = False
    q: int | None = None
    v: int | None = None
    column: str | None = None
    unit: str = ""
    interpolate: str = "linear"
    derivatives: int = 0
    window: tuple[float, float] | None = None


class SignalCompiler:
    """Collects signals; `arrays` returns them for the kernels.

    phases     whether there are phases, with which clocks may start
    events     names of events, with which clocks may start
    clocks     clocks that signals read: the name of an event, or PHASE_START
    warnings   warnings about signals
    """

    def __init__(self, model: Model, duration: float, q_of_v: Integers, phases: bool = False, events: tuple[str, ...] = ()):
        self.model, self.duration, self.q_of_v, self.phases, self.events = model, duration, q_of_v, phases, events
        self.clocks: list[str] = []
        self._points: dict[tuple[int, tuple[float, float, float]], int] = {}
        self._measures = False
        self.warnings = WarningLog()
        self.stack_size = 3
        self._signals: list[tuple[float | SignalProgram | Curve, SignalPurpose, Place]] = []
        self._reserved = 0                                      # number of reserved switches
        self._reserved_for: list[tuple[str, Place]] = []
        self._constants: dict[float, int] = {}
        self._files: dict[str, Trajectory] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the signals, then those of reserved switches."""
        return (*(purpose.name for _, purpose, _ in self._signals), *(name for name, _ in self._reserved_for))

    @property
    def locations(self) -> tuple[Place, ...]:
        """Locations of the signals in the file, then those of reserved switches."""
        return (*(place for _, _, place in self._signals), *(place for _, place in self._reserved_for))

    def reserve_switches(self, count: int, name: str = "", place: Place | None = None) -> int:
        """Reserve `count` switches of the state that belong to no program, and return the index of the first.

        name, place: of a pair of switches, for messages. Switches without a name must be reserved first.
        """
        self._reserved += count
        if name:
            self._reserved_for.append((name, place or Place()))
        return self._reserved - count

    def joint_purpose(self, role: str, i: int) -> SignalPurpose:
        """Return the purpose of a signal for velocity coordinate i. role: torque, target, position, velocity or acceleration."""
        model, name = self.model, self.model.v_names[i]
        q = int(self.q_of_v[i]) if self.q_of_v[i] >= 0 else None
        unit = model.v_units[i]
        column, dimension, derivatives = {
            "torque": (f"tau.{model.tau_names[i]}", {"rad": "N m", "m": "N"}[unit], 0),
            "target": (f"q.{name}", unit, 1), "position": (f"q.{name}", unit, 2),
            "velocity": (f"v.{name}", f"{unit}/s", 1), "acceleration": (f"a.{model.a_names[i]}", f"{unit}/s^2", 0)}[role]
        return SignalPurpose(f"{role} of {name}", state=role in ("torque", "target"), q=q, v=i, column=column, unit=dimension,
                             interpolate="linear" if role == "torque" else "quintic", derivatives=derivatives)

    def add(self, signal: Signal, purpose: SignalPurpose) -> int:
        """Compile and add a signal; return its index."""
        return self.add_program(self.compile(signal, purpose), purpose, signal.place)

    def add_target(self, signal: Signal, purpose: SignalPurpose, rate: bool) -> int:
        """Compile and add the target of a pd law; return its index.

        rate: whether its time derivative is used. Then the state that the target reads contributes its rate.
        """
        compiled = self.compile(signal, purpose)
        if isinstance(compiled, SignalProgram) and rate:
            text = signal.text if isinstance(signal, Expression) else None
            compiled = replace(compiled, code=tuple(self._moving_instruction(word, signal.place, text) for word in compiled.code))
        return self.add_program(compiled, purpose, signal.place)

    def _moving_instruction(self, word: int, place: Place, text: str | None) -> int:
        """Return the instruction that also reads the rate of a state. Raises ScenarioError if the rate is not available."""
        operation, i = word & 255, word >> 8
        if operation == code.STATE_Q and i in self.q_of_v:
            return code.MOVING_Q + 256 * (i + code.RATE * int(np.flatnonzero(self.q_of_v == i)[0]))
        if operation == code.MEASURED and (i - self.model.nv) % NUMBERS_PER_POINT < 3:
            return code.MOVING_POINT + 256 * i
        if operation in code.STATE_OPERATIONS:
            raise ScenarioError("the time derivative of the target, which kd requires, is not available", place=place, found=text,
                                expected="q(joint) of joints with one coordinate, x(link), y(link), z(link), and times",
                                hint="or kd: 0 and a feedforward")
        return word

    def add_program(self, compiled: float | SignalProgram | Curve, purpose: SignalPurpose, place: Place | None = None,
                    exclusive: bool = False) -> int:
        """Add a result of `compile`, and return its index.

        exclusive: whether no other signal may share a constant, because a run changes it.
        """
        index = len(self._signals)
        if isinstance(compiled, float) and not exclusive and self._constants.setdefault(compiled, index) < index:
            return self._constants[compiled]
        if isinstance(compiled, SignalProgram):
            self.stack_size = max(self.stack_size, 3 * compiled.depth)
        self._signals.append((compiled, purpose, place or Place()))
        return index

    def constant_value(self, index: int) -> float | None:
        """Return the value of a signal that is constant, or None."""
        compiled = self._signals[index][0]
        return compiled if isinstance(compiled, float) else None

    def compile(self, signal: Signal, purpose: SignalPurpose) -> float | SignalProgram | Curve:
        """Return the constant, program or curve of a signal."""
        if isinstance(signal, Constant):
            return signal.value
        if isinstance(signal, Expression):
            program = compile_expression(signal.text, signal.place, purpose.state, self._resolver(signal.place, purpose))
            return program if program.constant is None else program.constant
        if isinstance(signal, RelativeTime):
            return self._relative_curve(signal, purpose)
        if isinstance(signal, Column):
            return self._column(signal, purpose)
        if isinstance(signal, Table):
            return self._table(signal, purpose)
        return self._curve(signal, purpose)

    def _curve(self, signal: Quintic | Spline | Sine | Move, purpose: SignalPurpose) -> SignalProgram | Curve:
        """Return the curve or the program of a function of time."""
        if isinstance(signal, Sine):
            text = f"sin({2.0 * math.pi * signal.frequency!r}*t + {signal.phase!r})*{signal.amplitude!r} + {signal.offset!r}"
            return compile_expression(text, signal.place, False, self._resolver(signal.place, purpose))
        if isinstance(signal, Spline):
            return make_finite_curve(signal.place, spline, signal.points)
        if isinstance(signal, Move):
            return self._move(signal, purpose)
        if purpose.derivatives >= 2:
            self._check_rest(signal)
        return make_finite_curve(signal.place, quintic, signal.points)

    def _move(self, signal: Move, purpose: SignalPurpose) -> Curve:
        """Return the curve of the fastest motions between points, under the limits of the signal or of the robot."""
        if purpose.column is not None and not purpose.column.startswith("q."):
            raise ScenarioError(f"a move is a position, not a {purpose.name}", place=signal.place, expected="another curve")
        names, k = ("velocity", "acceleration", "jerk"), purpose.v
        robot = [math.inf if k is None else float(motion_limits(self.model, name)[k]) for name in names]
        velocity, acceleration, jerk = (limit if (value := getattr(signal, name)) is None else value
                                        for name, limit in zip(names, robot, strict=True))
        if not math.isfinite(acceleration):
            raise ScenarioError(f"the {purpose.name} has no acceleration limit", place=signal.place,
                                expected="limits: {acceleration: …} next to move, or in the limits of the joint")
        if signal.points[0][2] and (signal.points[0][0] or 0.0) > 0.0 and purpose.derivatives >= 2:
            raise ScenarioError("the motion would start with a velocity jump", place=signal.place,
                                found=f"velocity {signal.points[0][2]:g} at t = {signal.points[0][0]:g}",
                                expected="zero velocity")
        if signal.points[0][3] and not math.isfinite(jerk):
            raise ScenarioError("the initial acceleration of a move has no effect without a jerk limit, since it may jump",
                                place=signal.place, found=signal.points[0][3], expected="zero, or limits: {jerk: …}")
        limits = MotionLimits(*(np.array([x]) for x in (velocity, acceleration, jerk)))
        try:
            curve = make_finite_curve(signal.place, stop_and_go, signal.points, limits)
        except ComputationError as error:
            raise ScenarioError(str(error), place=signal.place) from None
        for order, (name, limit) in enumerate(zip(names[:2], (velocity, acceleration), strict=True), 1):
            if (peak := peak_rate(curve, order)) > limit * (1.0 + LIMIT_TOLERANCE):
                self.warnings.add("beyond-limits", f"from its initial state, the {purpose.name} exceeds a limit: the {name} "
                                  f"reaches {peak:.6g}, the limit is {limit:.6g}", place=signal.place)
        return curve

    def _table(self, table: Table, purpose: SignalPurpose) -> SignalProgram:
        """Return the program of a table."""
        resolve = self._resolver(table.place.at("of"), purpose)
        programs = [compile_expression(text, table.place.at("of"), purpose.state, resolve) for text in table.of]
        self._check_units(table, programs, purpose)
        program = table_program(table, programs)
        if purpose.derivatives >= 2 and (table.interpolation == "linear" or (table.outside == "hold" and not table.period)):
            raise ScenarioError("the motion of this table would have velocity jumps", place=table.place,
                                found=f"interpolation: {table.interpolation}, outside: {table.outside}",
                                expected="interpolation monotone or cubic, and outside error or linear")
        return program

    def _check_units(self, table: Table, programs: Sequence[SignalProgram], purpose: SignalPurpose) -> None:
        """Raise ScenarioError for columns whose units contradict the expressions or the signal; warn of angles in degrees."""
        sizes = np.abs(np.array(table.points)).max(axis=0)
        quantities = [*((text, self._unit_of(program)) for text, program in zip(table.of, programs, strict=True)),
                      (purpose.name, purpose.unit)]
        for (name, expected), unit, size in zip(quantities, table.units or ("",) * len(sizes), sizes, strict=True):
            if unit and expected and unit_of(unit) != unit_of(expected):
                raise ScenarioError(f"the table of {name} has another unit", place=table.place.at("points"), found=unit,
                                    expected=expected)
            if not unit and expected == "rad" and size > _ANY_ANGLE:
                self.warnings.add("table-units", f"the table does not seem to be in rad: {name} reaches {size:g} rad; give its "
                                  'columns units, such as "angle[deg]"', place=table.place.at("points"))

    def _unit_of(self, program: SignalProgram) -> str:
        """Return the unit of a program that only reads a number of the state or the time; else empty."""
        operation, i, model = program.code[0] & 255, program.code[0] >> 8, self.model
        if len(program.code) > 1 or operation not in (code.STATE_Q, code.STATE_V, code.MEASURED, code.TIME):
            return ""
        if operation == code.MEASURED:
            return ("m", "m/s", "rad/s")[(i - model.nv) % NUMBERS_PER_POINT // 3]
        if operation == code.STATE_Q:
            return model.q_units[i] or ""
        return "s" if operation == code.TIME else f"{model.v_units[i]}/s"

    def origins(self, start_times: Mapping[str, float]) -> Array:
        """Return the start time of each clock; -inf if it has not started."""
        return np.array([start_times.get(name, -math.inf) for name in self.clocks], dtype=float)

    def knots(self, origins: Array) -> Array:
        """Return the times at which a curve is not smooth."""
        return np.concatenate([np.empty(0),
                               *(x.with_clock_origin(origins).knots for x, _, _ in self._signals if isinstance(x, Curve))])

    def switches(self, origins: Array) -> tuple[Array, WarningLog]:
        """Return windows of time (k, 2) in which a step, sign, abs, min … of an expression switches, and warnings.

        There is a warning for each signal whose switches are not all known.
        """
        windows, warnings = [np.empty((0, 2))], WarningLog()
        for x, purpose, place in self._signals:
            if not isinstance(x, SignalProgram):
                continue
            switches = switches_in_time(x if purpose.forces else with_clock_origins(x, origins),
                                        *(purpose.window or (0.0, self.duration)))
            windows.append(switches.windows)
            if not switches.complete:
                warnings.add("many-switches",
                             f"the {purpose.name} has more switching times than can be located (at most {MAX_SWITCHES}): "
                             f"adaptive methods take steps of at most {self.duration / MAX_SWITCHES:.3g} s", place=place)
        return np.concatenate(windows), warnings

    def arrays(self, breaks: Array, origins: Array) -> code.Signals:
        """Return all signals as arrays. Breaks of curves that equal one of `breaks` to rounding are set to it."""
        table: list[tuple[int, int, int]] = []                 # kind, index of the first number and their count
        words: list[int] = []
        literals: list[float] = []
        pieces, coefficients = [np.empty(0)], [np.empty((0, code.ORDER))]
        begun, switches = 0, self._reserved
        for compiled, purpose, _ in self._signals:
            x = compiled.with_clock_origin(origins) if isinstance(compiled, Curve) else compiled
            if isinstance(x, float):
                kind, start, n = code.CONSTANT, len(literals), 1
                literals.append(x)
            elif isinstance(x, Curve):
                within = _begin_within(x.breaks, self.duration)
                kind, start, n = code.POLYNOMIAL, begun, int(within.sum())
                pieces.append(snap_to_breaks(x.breaks[within], breaks, self.duration))
                coefficients.append(x.coefficients[within])
                begun += n
            else:
                kind, start, n = code.PROGRAM, len(words), len(x.code)
                words += moved_literals(x.code, len(literals))
                literals += x.literals
                for i in switches_of_state(x, purpose.forces):
                    switches += 1
                    words[start + i] += 256 * switches
            table.append((kind, start, n))
        kinds, first, count = np.array(table, dtype=np.int64).reshape(-1, 3).T.copy()
        measured = np.zeros(self.model.nv + NUMBERS_PER_POINT * len(self._points) if self._measures else 0)
        return code.Signals(kinds, first, count, np.concatenate(pieces), np.concatenate(coefficients).reshape(-1),
                            np.array(words, dtype=np.int64), np.array(literals, dtype=float),
                            np.tile([np.nan, 0.0, 0.0, 0.0], switches), measured,
                            make_points(self.model, list(self._points)), origins)

    def _clock(self, name: str, place: Place) -> int:
        """Return the index of the clock that starts with the phase or with an event."""
        if name == PHASE_START and not self.phases:
            raise ScenarioError("times relative to a phase require phases", place=place, expected="the key phases, or t")
        if name != PHASE_START and not self.events:
            raise ScenarioError("times relative to an event require events", place=place, found=name,
                                expected="the key events")
        if name != PHASE_START:
            find_index(name, self.events, "event", place)
        if name not in self.clocks:
            self.clocks.append(name)
        return self.clocks.index(name)

    def _relative_curve(self, signal: RelativeTime, purpose: SignalPurpose) -> SignalProgram | Curve:
        """Return a curve or program whose time starts with a phase or an event."""
        clock = self._clock(signal.start, signal.place)
        if isinstance(signal.curve, Column):
            return replace(self._column(signal.curve, replace(purpose, window=(0.0, 0.0)), constant_ends=True), clock=clock)
        compiled = self._curve(signal.curve, purpose)
        if isinstance(compiled, SignalProgram):                       # a sine, which is undefined at infinite time
            words = tuple(code.FROZEN_CLOCK + 256 * clock if word == code.TIME else word for word in compiled.code)
            return replace(compiled, code=words)
        return replace(compiled, clock=clock)

    def _resolver(self, place: Place, purpose: SignalPurpose) -> Callable[..., int]:
        """Return the function `resolve` of `compile_expression` for a signal."""
        model = self.model

        def resolve(kind: str, name: str | None, point: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> int:
            if kind == "phase":
                return self._clock(PHASE_START, place)
            if name is None:
                index = purpose.q if kind == "q" else purpose.v
                if index is None:
                    raise ScenarioError(f"{kind} needs the name of a joint here", place=place, expected=f"{kind}(joint)")
                return index
            if kind == "since":
                return self._clock(name, place)
            if kind in LINK_FUNCTIONS:
                self._measures, key = True, (find_index(name, model.link_names, "link", place), point)
                return model.nv + NUMBERS_PER_POINT * self._points.setdefault(key, len(self._points)) + LINK_FUNCTIONS.index(kind)
            if kind == "tau" and not purpose.forces:
                raise ScenarioError("only events may read joint torques and forces, "
                                    "tau(joint)", place=place, found=f"tau({name})",
                                    expected="q(joint), v(joint), or a link's position such as z(link)")
            self._measures = self._measures or kind == "tau"
            names = model.q_names if kind == "q" else model.v_names
            if name in names:
                return names.index(name)
            parts = [other for other in names if other.startswith(f"{name}.")]
            if name in model.joint_names and parts:
                raise ScenarioError(f"joint {name} has {len(parts)} coordinates", place=place, found=f"{kind}({name})",
                                    expected=f"one of {', '.join(f'{kind}({part})' for part in parts)}")
            raise unknown_name_error(name, names, "joint", place)

        return resolve

    def _check_rest(self, waypoints: Quintic) -> None:
        """Raise ScenarioError if a prescribed position moves at its first or last waypoint, where it becomes constant."""
        for (t, _, velocity, _), inside in ((waypoints.points[0], waypoints.points[0][0] > 0.0),
                                            (waypoints.points[-1], waypoints.points[-1][0] < self.duration)):
            if inside and velocity != 0.0:
                raise ScenarioError("the motion would start or stop with a velocity jump", place=waypoints.place,
                                    found=f"velocity {velocity:g} at t = {t:g}", expected="zero velocity at the first and last "
                                                                                          "point",
                                    hint=f"or waypoints from 0 to {self.duration:g} s")

    def _column(self, column: Column, purpose: SignalPurpose, constant_ends: bool = False) -> Curve:
        """Return the curve of a CSV column; if constant_ends, it is constant before and after its samples."""
        t, x, interpolation = self.samples(column, purpose)
        curve = make_finite_curve(column.place, interpolant, t, x, interpolation)
        if constant_ends and purpose.derivatives >= 2 and abs(curve.end_rate(t[-1])) > _REST_TOLERANCE * np.abs(
            curve.coefficients[:, 1]).max():
            raise ScenarioError(f"the motion in {column.file} would stop with a velocity jump at its end",
                                place=column.place.at("file"),
                                found=f"velocity {curve.end_rate(t[-1]):.3g} at t = {t[-1]:g}",
                                expected="a motion that ends at rest")
        return extend_constant(curve, t, x) if constant_ends else curve

    def samples(self, column: Column, purpose: SignalPurpose) -> tuple[Array, Array, str]:
        """Return times and values of the column, and the interpolation."""
        name = re.sub(r"\s*\[[^\[\]]*\]\s*\Z", "", column.name).strip() if column.name is not None else purpose.column
        if name is None:
            raise ScenarioError("the key column is missing", place=column.place, expected=f"the column with the {purpose.name}")
        trajectory = self._read_file(column)
        if name not in trajectory.columns:
            raise ScenarioError(f"the CSV {column.file} has no such column", place=column.place.at("column"), found=name,
                                expected=f"one of {', '.join(trajectory.columns)}",
                                hint=nearest(name, trajectory.columns))
        unit = trajectory.units.get(name, "")
        if unit and purpose.unit and _plain_unit(unit) != _plain_unit(purpose.unit):
            raise ScenarioError(f"column {name} of {column.file} has the wrong unit", place=column.place.at("column"), found=unit,
                                expected=purpose.unit)
        interpolation = column.interpolation or purpose.interpolate
        if interpolation == "linear" and purpose.derivatives >= 2:
            raise ScenarioError("linear interpolation has no acceleration at its points", place=column.place.at("interpolation"),
                                found=interpolation,
                                expected="interpolation cubic or quintic")
        self._check_range(column, trajectory, purpose, interpolation)
        x = trajectory.columns[name]
        return trajectory.t, self._unwrap(column, purpose, name, x) if purpose.unit == "rad" else x, interpolation

    def _unwrap(self, source: Column, purpose: SignalPurpose, column: str, x: Array) -> Array:
        """Return the angles without jumps by full turns, with a warning.

        Raises ScenarioError if the limits of the joint exclude them.
        """
        limits = (-math.inf, math.inf) if purpose.v is None else (self.model.lower[purpose.v], self.model.upper[purpose.v])
        try:
            x, jumps = unwrap_angle(x, f"column {column} of {source.file}", *limits)
        except TrajectoryError as error:
            raise ScenarioError(error.message, place=source.place, found=error.found, expected=error.expected,
                                hint="a motion that jumps cannot be followed; record the angle without jumps") from None
        if jumps:
            self.warnings.add("angles-unwrapped",
                              f"angles that jump by 2 pi in column {column} of {source.file} were unwrapped ({jumps} "
                              "times)", place=source.place)
        return x

    def _read_file(self, column: Column) -> Trajectory:
        if column.file not in self._files:
            path = Path(column.file)
            if not path.exists() or (path.is_dir() and not is_bag(path)):
                raise ScenarioError("no such CSV file", place=column.place.at("file"), found=column.file)
            trajectory = read_trajectory(column.file)
            self.warnings.extend(trajectory.warnings)
            k = repeated_row(trajectory)
            if k is not None:
                raise ScenarioError("two rows of a signal have one time, before and after an event",
                                    place=column.place.at("file"),
                                    found=f"t = {trajectory.t[k]:.9g} s in {column.file}, line {trajectory.lines[k]}",
                                    expected="increasing times: leave one of the two rows out")
            self._files[column.file] = trajectory
        return self._files[column.file]

    def _check_range(self, column: Column, trajectory: Trajectory, purpose: SignalPurpose, interpolation: str) -> None:
        """Raise ScenarioError if the CSV file has too few rows, or does not cover the time in which the signal is used."""
        t, min_rows = trajectory.t, MIN_ROWS[interpolation]
        if len(t) < min_rows:
            raise ScenarioError(f"{interpolation} interpolation needs {min_rows} rows", place=column.place.at("file"),
                                found=f"{len(t)} in {column.file}")
        start, end = purpose.window or (0.0, self.duration)
        slack = 1e-9 * max(self.duration, 1.0)
        if start < end and (t[0] > start + slack or t[-1] < end - slack):
            raise ScenarioError(f"the CSV {column.file} does not cover the required time", place=column.place.at("file"),
                                found=f"{t[0]:g} to {t[-1]:g} s", expected=f"{start:g} to {end:g} s")


def _begin_within(starts: Array, duration: float) -> Mask:
    """Return whether each piece begins before the end of the run.

    At the end, the piece that arrives there is evaluated, not a piece that begins there.
    """
    within = np.asarray(starts < duration * (1 - SAME_TIME))
    within[0] = True
    return within


def merge_times(times: Array, duration: float) -> Array:
    """Return the sorted times inside (0, duration). Times that differ by rounding only are merged."""
    slack = SAME_TIME * duration
    times = np.unique(times[(times > slack) & (times < duration - slack)])
    return times[np.diff(times, prepend=-math.inf) > slack]


def merge_windows(times: Array, windows: Array, duration: float) -> tuple[Array, Array]:
    """Return break points, and the last time before each of them.

    A time that equals a window to rounding is replaced by it: curves can be shifted, expressions cannot. Overlapping windows are
    merged: the break point is their end, and the last time before it is their start.

    times    from `merge_times`
    windows  (k, 2) in which a signal switches, mostly between neighbouring floats
    """
    slack = SAME_TIME * duration
    windows = windows[(windows[:, 0] > slack) & (windows[:, 1] < duration - slack)]
    windows = windows[np.argsort(windows[:, 0])]
    low, high = windows[:, 0], np.maximum.accumulate(windows[:, 1])
    begins = np.flatnonzero(np.r_[True, low[1:] - high[:-1] > slack]) if len(windows) else np.empty(0, dtype=int)
    low, high = low[begins], high[np.r_[begins[1:], len(windows)] - 1] if len(begins) else high
    k = np.searchsorted(low, times + slack, side="right") - 1
    same = (k >= 0) & (times - high[k] <= slack) if len(low) else np.zeros(len(times), dtype=bool)
    breaks, before = np.r_[times[~same], high], np.r_[np.nextafter(times[~same], -np.inf), low]
    order = np.argsort(breaks)
    return breaks[order], before[order]


def snap_to_breaks(times: Array, breaks: Array, duration: float) -> Array:
    """Return times, with those that equal a break point to rounding replaced by it."""
    if not len(breaks) or not len(times):
        return times
    above = np.clip(np.searchsorted(breaks, times), 1, len(breaks) - 1) if len(breaks) > 1 else np.zeros(len(times), dtype=int)
    nearest = np.where(np.abs(breaks[above] - times) < np.abs(breaks[above - 1] - times), breaks[above], breaks[above - 1])
    return np.where(np.abs(nearest - times) <= 2 * SAME_TIME * duration, nearest, times)


def _plain_unit(unit: str) -> str:
    return re.sub(r"[\s·*^]", "", unit).replace("²", "2")
