"""A whole step of a simulation as a line over many runs side by side: the integrator, recorded with the right-hand side that it
calls. Runs share robot, modes and signals, and the times of their steps; each has its own state, numbers (gains, constants,
torques) and, if asked, parameters of the robot.

Constraints are solved by rows that are chosen in advance, and each step ends with a projection onto them (`_Mechanism`).
A run in which an event happens within the step stays before it (`_Runs.unless_events`); steps of other lengths find when.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from liedyn import code_cache
from liedyn.codegen.adjoint import adjoint
from liedyn.codegen.lines import Batch, build, folder, wanted, width
from liedyn.codegen.mechanism import sizes_of
from liedyn.codegen.plain import plain
from liedyn.codegen.recording import Array, Recording, bounds_of_angles, written
from liedyn.codegen.step import content, curves_of, values_of, with_inputs
from liedyn.codegen.tangent import tangent
from liedyn.kernels.loops.by_parts import LOOP_OPEN
from liedyn.kernels.loops.chosen_rows import FAIR
from liedyn.kernels.loops.desk import desk_memory
from liedyn.kernels.recursions.hybrid import hybrid_memory
from liedyn.kernels.simulation.by_line import REFUSED, TERMS
from liedyn.kernels.simulation.right_hand_side import EVENT, RUNNING
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.lie.recorded import NotALine, Tape, absolute, numbers, where_less, zeros

TIMES = 3            # of a step, at which signals are read: its beginning, middle and end
METHODS = "rk4", "semi_implicit"
Rows = tuple[tuple[int, ...], ...]
PROJECTIONS = 2      # of the position after a step: the first leaves the square of its drift
OPEN = 1e-5          # rad or m: what the last of them squares
DEPENDENT_ROWS, BAD_READING = 9, 10          # codes beside those of `right_hand_side` and `by_parts`


@dataclass(frozen=True)
class WholeStep:
    """step(clock, curves, values, q, v, work, code, varying): one step of each run, in place.

    clock     (1, 4) length of the step, and its times
    curves    (1, 15 c) Taylor coefficients at these of the signals `curves`
    values    (N, k) numbers, for a run by itself `numbers`: those of a `Step`, then those of state feedback, see `law_numbers`
    q, v      (N, nq), (N, nv)
    work      (N, 1 + events) supplied, then of each event the sign of its reading: 0 not known yet, NaN it happens no more
    code      (N, 1) of `right_hand_side`, REFUSED for angles beyond the range of sines, LOOP_OPEN where a step opens a loop too
              far, DEPENDENT_ROWS where the chosen rows of the constraints depend on each other, BAD_READING where that of an
              event is not finite: else RUNNING. What is written of a run with another code is worthless, but for EVENT: one
              happens within the step, and nothing is written
    varying   (N, m) constants of the model at the places that the line was made for

    rows(clock, curves, values, q, v, work, a, tau, wrench, code, varying): accelerations, forces and wrenches of each run, at
    clock[1], and what is prescribed there into q, v.

    within() is made when it is needed: step(clock, curves, values, q, v, work, reading, code, varying) with clocks (N, 4) of each
    run, whatever happens in between, and what events read at the end (N, events).
    """

    step: Batch
    rows: Batch
    curves: np.ndarray
    numbers: np.ndarray
    within: Callable[[], Batch | None]


def law_numbers(laws) -> np.ndarray:
    """Of state feedback: gains that are not zero, then the state and the forces that it is about."""
    if laws is None or not laws.row.size or (laws.row < 0).all():
        return np.zeros(0)
    return np.concatenate([laws.gain[laws.gain != 0.0], laws.about_q, laws.about_v, laws.about_tau])


def whole_step(model, plant, schedule, signals, method: str, varying: tuple[int, ...] = (), rows: Rows = (),
               directions: tuple[int, ...] = (), rates: bool = False) -> WholeStep | None:
    """None where there is no line: too many operations, a law that decides on numbers, switches of the state, integrals of pid
    laws, driven loops, an old LLVM.
    method: one of METHODS; varying: places in model.constants that differ from run to run; rows: of the constraints of the model
    that projections of the position, those of the velocity, and motions rest on; directions: of the events whose readings
    schedule.watch names, 1 rising, -1 falling, 0 both; rates: with those along a direction, see `record_step_with_rates`."""
    if not wanted() or signals.held.size or len(schedule.watch) != len(directions) or schedule.integral.size or model.nv == 0:
        return None
    step, after = (record_step_with_rates, record_rows_with_rates) if rates else (record_whole_step, record_rows)
    lines = [_kept(record, model, plant, schedule, signals, asked, varying, rows, directions)
             for record, asked in ((step, method), (after, ""))]
    if not all(lines):
        return None
    numbers = np.concatenate([values_of(plant, schedule, signals), law_numbers(plant.joint_laws)])
    within = cache(partial(_kept, record_step_within, model, plant, schedule, signals, method, varying, rows, directions))
    return WholeStep(*lines, curves_of(plant, schedule, signals), numbers, within)


def adjoint_step(model, plant, schedule, signals, method: str, varying: tuple[int, ...] = (), rows: Rows = ()) -> Batch | None:
    """step(clock, curves, values, q, v, work, by_q, by_v, by_values, by_varying, code, varying): see `record_adjoint`."""
    return _kept(record_adjoint, model, plant, schedule, signals, method, varying, rows)


def _kept(record, model, plant, schedule, signals, asked: str, varying, rows, directions=()) -> Batch | None:
    """With the model and on disk."""
    place = folder("kernels.simulation.right_hand_side.right_hand_side", "codegen.whole_step")
    pattern = plant._replace(joint_laws=with_law(plant.joint_laws, np.ones(law_numbers(plant.joint_laws).size)))
    asked_for = repr((record.__name__, asked, varying, rows, directions, width()))
    closures = (model.loop_index.tobytes(), model.loop_constants.tobytes()) if rows else ()
    name = code_cache.digest(*content(model, pattern, schedule, signals), *closures, asked_for.encode())
    if name in model._cache:
        return model._cache[name]

    def make():
        try:
            recording = record(model, plant, schedule, signals, asked, varying, rows, *([directions] if directions else []))
        except NotALine:
            recording = None
        return build(recording, width())
    built = code_cache.kept_or_made(place, name, make)
    model._cache[name] = Batch(built) if built.code else None
    return model._cache[name]


class _Runs:
    """What a recording begins with: inputs, and what the right-hand side works on."""

    shared: tuple[str, ...] = ("clock", "curves")                # by all runs

    def __init__(self, model, plant, schedule, signals, varying, rows, directions=()):
        self.tape, self.directions, self.watched = Tape(), directions, schedule.watch
        tape, schedule = self.tape, schedule._replace(watch=schedule.watch[:0])          # events are read after steps alone
        nq, nv, slots = model.nq, model.nv, len(plant.slot_link)
        curves, count = curves_of(plant, schedule, signals), len(values_of(plant, schedule, signals))
        sizes = {"clock": 1 + TIMES, "curves": TIMES * TERMS * len(curves),
                 "values": count + law_numbers(plant.joint_laws).size, "q": nq, "v": nv, "work": 1 + len(directions)}
        self.given = given = {name: tape.inputs(name, size) for name, size in sizes.items()}
        self.varying = tape.inputs("varying", len(varying))
        constants = model.constants
        if varying:
            constants = constants.astype(object)
            constants[list(varying)] = self.varying
        self.tree = plain("joints.tree").tree_of(model.index, constants)
        sides = zeros(0)
        at = [with_inputs(plant, schedule, signals, curves, given["values"][:count], taken, sides)
              for taken in given["curves"].reshape(TIMES, -1)]
        laws = with_law(at[0][0].joint_laws, given["values"][count:])
        self.plant, self.schedule, self.signals = at[0][0]._replace(joint_laws=laws), at[0][1], [one[2] for one in at]
        self.motion = plain("kernels.simulation.right_hand_side")
        self.work = self.motion.MotionWork(*map(zeros, (
            nq, nv, nv, nv, 6 * model.n_bodies if slots else 0, 6 * slots, 3 + 3 * signals.code.size, 2,
            hybrid_memory(model.n_bodies, nv), 0)))
        self.mechanism = _Mechanism(self, model, rows) if rows else None

    def rates(self, k: int, q0, y):
        """(dy, code) at time k of the step."""
        dy = zeros(len(y))
        with np.errstate(all="ignore"):
            if self.mechanism:
                return dy, self.mechanism.rates(k, q0, y, dy)
            code = self.motion.right_hand_side(self.tree, self.plant, self.schedule, self.signals[k], self.given["clock"][1 + k],
                                               q0, y, dy, self.work)
        return dy, code

    def at_rest(self, v):
        """A state in the chart about its own configuration."""
        return np.concatenate([zeros(len(v)), v, self.given["work"][:1]])

    def readings(self, q, v) -> list:
        """Of events, at the end of the step."""
        signals, w, signal = self.signals[-1], self.work, plain("kernels.simulation.signals").signal
        plain("kernels.simulation.link_points").look_at_points(signals.points, self.tree, q, v, signals.measured)
        return [signal(signals, k, self.given["clock"][TIMES], q, v, w.stack)[0] for k in self.watched]

    def unless_events(self, code, **after):
        """(code, what the arrays hold after the step): as before it where an event happens."""
        sides, readings = [], self.readings(after["q"], after["v"])
        happens = unread = float(RUNNING)
        for x, side, direction in zip(readings, self.given["work"][1:], self.directions, strict=True):
            sign = where_less(x, 0.0, -1.0, where_less(0.0, x, 1.0, 0.0))
            passed, known = side * x, absolute(side)
            sides.append(where_less(passed, 0.0, sign, where_less(known, 0.5, sign, side)))
            there = where_less(0.0, direction * x, float(EVENT), happens) if direction else float(EVENT)
            happens = where_less(passed, 0.0, there, happens)
            unread = where_less(absolute(x), np.inf, unread, float(BAD_READING))
        code, after["work"] = _first(code, unread, happens), [*after["work"], *sides]
        return code, {name: [where_less(code, RUNNING + 0.5, x, y) for x, y in zip(values, self.given[name], strict=True)]
                      for name, values in after.items()}

    def recording(self, code, **results) -> Recording:
        """results: what arrays hold afterwards."""
        for x, bound in bounds_of_angles(self.tape):
            code = where_less(x, bound, code, float(REFUSED))
        arrays = []
        for name, x in self.given.items():
            shared = name in self.shared
            arrays.append(Array(name, len(x), written(x, results.pop(name)) if name in results else (None,) * len(x), shared))
        arrays += [Array(name, len(x), written(zeros(len(x)), x)) for name, x in results.items()]
        arrays.append(Array("code", 1, (code,)))
        arrays.append(Array("varying", len(self.varying), (None,) * len(self.varying)))
        return Recording(self.tape, tuple(arrays), (), ())


class _Mechanism:
    """The constraints of a robot: the parts of `kernels.loops.parts`, with `solve_chosen` between them."""

    def __init__(self, runs: _Runs, model, rows: Rows):
        if any(one.driven for one in model.constraints):
            raise NotALine
        self.runs, sizes = runs, sizes_of(model, len(runs.plant.slot_link) > 0)
        n, nv, nc, m = model.n_bodies, model.nv, len(model.constraints), model.nc
        self.parts, chosen = plain("kernels.loops.parts"), plain("kernels.loops.chosen_rows")
        self.loops = plain("joints.closures").loops_of(model.loop_index, model.loop_constants)
        self.desk = plain("kernels.loops.desk").desk_views(zeros(desk_memory(*sizes, 0)), *sizes)
        self.room = self.parts.part_work(zeros(self.parts.part_memory(n, nv, nc, m)), n, nv, nc, m)
        self.rows, self.solve_chosen = [np.array(x, dtype=np.int64) for x in rows], chosen.solve_chosen
        self.rest = np.zeros(nv, dtype=bool)

    def solve(self, rows, rhs):
        """Multipliers on the desk. Returns the least pivot."""
        desk, k = self.desk, len(rows)
        return self.solve_chosen(rows, desk.solver.null, desk.solver.size, rhs, desk.multipliers, zeros(k * (k + 2)))

    def rates(self, k: int, q0, y, dy):
        """As `tied_right_hand_side`. Returns a code."""
        s, w, p = self.runs, self.runs.work, self.runs.plant
        s.motion.set_out(s.tree, p, s.schedule, s.signals[k], s.given["clock"][1 + k], q0, y, w)
        self.desk = d = self.desk._replace(q=w.q, v=w.v, a=w.a, tau=w.tau, f_ext=w.F)
        passive = bool(p.passive[0])
        self.parts.write_equations(s.tree, self.loops, p.prescribed, False, passive, d, self.room)
        pivot = self.solve(self.rows[2], d.rhs)
        self.parts.write_completed(s.tree, self.loops, p.prescribed, passive, d, self.room)
        w.a[:], w.tau[:] = d.found_a, d.found_tau
        code = s.motion.rates(s.tree, p, s.signals[k], y, d.deficit[0], d.power[0], dy, w)
        return where_less(FAIR, pivot, code, float(DEPENDENT_ROWS))

    def close(self, q, v):
        """Moves q, v back onto the constraints, as `by_parts.close` does, with a fixed number of steps. Returns a code."""
        tree, code = self.runs.tree, float(RUNNING)
        self.desk = d = self.desk._replace(q=q, v=v)
        for _ in range(PROJECTIONS):
            self.parts.write_residuals(tree, self.loops, d, self.room)
            self.parts.write_rows(tree, self.loops, self.rest, True, d, self.room)
            pivot = self.solve(self.rows[0], -d.residual)
            self.parts.write_moved(tree, self.loops, self.rest, d, self.room)
            q[:] = d.moved
            code = where_less(FAIR, pivot, code, float(DEPENDENT_ROWS))
        for x in d.residual:                                  # before the last step, which squares it
            code = where_less(absolute(x), OPEN, code, float(LOOP_OPEN))
        self.parts.write_rows(tree, self.loops, self.rest, False, d, self.room)
        pivot = self.solve(self.rows[1], -d.velocity)
        self.parts.write_change(tree, self.loops, self.rest, d, self.room)
        v[:] = v + d.change
        return where_less(FAIR, pivot, code, float(DEPENDENT_ROWS))


def with_law(laws, numbers):
    """Other numbers in the place of `law_numbers`."""
    if not len(numbers):
        return laws
    gain, places = laws.gain.astype(numbers.dtype), laws.gain != 0.0
    ends = np.cumsum([np.count_nonzero(places), laws.about_q.size, laws.about_v.size])
    gain[places], q, v, tau = np.split(numbers, ends)
    return laws._replace(gain=gain, about_q=q, about_v=v, about_tau=tau)


def record_whole_step(model, plant, schedule, signals, method: str, varying: tuple[int, ...] = (), rows: Rows = (),
                      directions: tuple[int, ...] = ()) -> Recording:
    runs = _Runs(model, plant, schedule, signals, varying, rows, directions)
    (code, work), q, v = _after(runs, method)
    if not directions:
        return runs.recording(code, q=q, v=v, work=work)
    code, after = runs.unless_events(code, q=q, v=v, work=work)
    return runs.recording(code, **after)


def record_step_within(model, plant, schedule, signals, method: str, varying: tuple[int, ...], rows: Rows,
                       directions: tuple[int, ...]) -> Recording:
    runs = _Runs(model, plant, schedule, signals, varying, rows, directions)
    runs.shared = ("curves",)
    (code, work), q, v = _after(runs, method)
    return runs.recording(code, q=q, v=v, work=[*work, *runs.given["work"][1:]], reading=numbers(runs.readings(q, v)))


def _after(runs: _Runs, method: str):
    """(code, work), q, v at the end of the step."""
    code, q0, y = _STEPS[method](runs)
    w, nv = runs.work, len(runs.work.v)
    plain("joints.retraction").retract(runs.tree, q0, y[:nv], w.q)
    w.v[:] = y[nv:2 * nv]
    runs.motion.impose(runs.schedule, runs.signals[-1], runs.given["clock"][TIMES], w.q, w.v, w)
    if runs.mechanism:
        code = _first(code, runs.mechanism.close(w.q, w.v))
    return (code, y[-1:]), w.q, w.v


def _rk4(runs: _Runs):
    """The classical method in the chart about the configuration at the beginning. (code, origin of the chart, y at the end)."""
    q0, y0, h = runs.given["q"], runs.at_rest(runs.given["v"]), runs.given["clock"][0]
    k1, c1 = runs.rates(0, q0, y0)
    k2, c2 = runs.rates(1, q0, y0 + k1 * (0.5 * h))
    k3, c3 = runs.rates(1, q0, y0 + k2 * (0.5 * h))
    k4, c4 = runs.rates(2, q0, y0 + k3 * h)
    return _first(c1, c2, c3, c4), q0, y0 + (k1 + 2.0 * (k2 + k3) + k4) * (h / 6.0)


def _semi_implicit(runs: _Runs):
    """Symplectic Euler: v' = v + h a(q, v), q' = q (+) h v'."""
    q0, y0, h, nv = runs.given["q"], runs.at_rest(runs.given["v"]), runs.given["clock"][0], len(runs.given["v"])
    k, code = runs.rates(0, q0, y0)
    y = y0 + k * h
    y[:nv] = y[nv:2 * nv] * h
    return code, q0, y


_STEPS = {"rk4": _rk4, "semi_implicit": _semi_implicit}


def _first(*codes):
    """The first that is not RUNNING."""
    found = float(RUNNING)
    for code in reversed(codes):
        found = where_less(RUNNING + 0.5, code, code, found)
    return found


def record_adjoint(model, plant, schedule, signals, method: str, varying: tuple[int, ...] = (), rows: Rows = ()) -> Recording:
    """Derivatives of a cost by the state after a step become those by the state before it: arrays by_q, by_v, in place, by the
    numbers of q (quaternions are not tangent); and those by the values and parameters: by_values, by_varying."""
    runs = _Runs(model, plant, schedule, signals, varying, rows)
    _, q, v = _after(runs, method)
    given = {"by_q": runs.tape.inputs("by_q", model.nq), "by_v": runs.tape.inputs("by_v", model.nv)}
    back = adjoint(runs.tape, zip([*q, *v], [*given["by_q"], *given["by_v"]], strict=True))
    found = {f"by_{name}": numbers([back(x) for x in inputs])
             for name, inputs in (*((name, runs.given[name]) for name in ("q", "v", "values")), ("varying", runs.varying))}
    runs.given |= given
    return runs.recording(float(RUNNING), **found)


def record_step_with_rates(model, plant, schedule, signals, method: str, varying: tuple[int, ...] = (),
                           rows: Rows = ()) -> Recording:
    """A step and the rates of its results along a direction: the rates of q, v, values and varying stand behind their numbers,
    that of the work behind those of q. Rates of q are those of its numbers (quaternions are not tangent)."""
    runs = _Runs(model, plant, schedule, signals, varying, rows)
    (code, work), q, v = _after(runs, method)
    dq, dv, dwork = np.split(_rates_along(runs, [*q, *v, *work]), [len(q), len(q) + len(v)])
    return runs.recording(code, q=np.concatenate([q, dq, dwork]), v=np.concatenate([v, dv]), work=work)


def record_rows_with_rates(model, plant, schedule, signals, _: str = "", varying: tuple[int, ...] = (),
                           rows: Rows = ()) -> Recording:
    """As `record_rows` for what nothing is prescribed of: accelerations and forces, each with rates behind; in the place of
    wrenches the rates of the kinetic and potential energy."""
    runs = _Runs(model, plant, schedule, signals, varying, rows)
    _, code = runs.rates(0, runs.given["q"], runs.at_rest(runs.given["v"]))
    a, tau = runs.work.a.copy(), runs.work.tau.copy()
    da, dtau, of_energies = np.split(_rates_along(runs, [*a, *tau, *_energies(runs)]), [len(a), 2 * len(a)])
    return runs.recording(code, a=np.concatenate([a, da]), tau=np.concatenate([tau, dtau]), wrench=of_energies)


def _rates_along(runs: _Runs, results: list) -> np.ndarray:
    """Of results. The direction becomes inputs of the recording."""
    tape, given, pairs = runs.tape, runs.given | {"varying": runs.varying}, []
    for name, x in (("q", [*given["q"], *given["work"]]), *((name, given[name]) for name in ("v", "values", "varying"))):
        own = given[name]
        rates = numbers([tape.record("input", name, len(own) + k) for k in range(len(x))])
        given[name] = np.concatenate([own, rates])
        pairs += zip(x, rates, strict=True)
    runs.varying, runs.given = given.pop("varying"), given
    return numbers(tangent(tape, pairs, results))


def _energies(runs: _Runs) -> list:
    """Kinetic and potential."""
    kernels, q, v, out = plain("kernels.recursions.energy"), runs.given["q"], runs.given["v"], zeros(2)
    n = runs.tree.parent.size
    work = kernels.kinematics_work(zeros(kernels.kinematics_memory(n)), n)
    kernels.kinematics(runs.tree, q, v, v, kernels.TWISTS, work)
    kernels.energy(runs.tree, q, v, work, out)
    return [*out]


def record_rows(model, plant, schedule, signals, _: str = "", varying: tuple[int, ...] = (), rows: Rows = (),
                directions: tuple[int, ...] = ()) -> Recording:
    runs = _Runs(model, plant, schedule, signals, varying, rows, directions)
    _, code = runs.rates(0, runs.given["q"], runs.at_rest(runs.given["v"]))
    w, q, v = runs.work, runs.given["q"].copy(), runs.given["v"].copy()
    for joint in model.joints:
        if (schedule.level[joint.v] != TORQUE).any():
            q[joint.q], v[joint.v] = w.q[joint.q], w.v[joint.v]
    return runs.recording(code, q=q, v=v, a=w.a, tau=w.tau, wrench=w.wrench)
