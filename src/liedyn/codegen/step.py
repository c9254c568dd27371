"""The right-hand side of a simulation as a line: robot, joint modes, signals and wrenches of one scenario.

What stays outside is what would not be short: curves are inputs, evaluated before each call.
"""
from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from liedyn import code_cache
from liedyn.codegen.compiled import loaded, processor
from liedyn.codegen.lines import folder, kept_parts, wanted
from liedyn.codegen.mechanism import sizes_of
from liedyn.codegen.plain import plain
from liedyn.codegen.recording import Array, Recording, bounds_of_angles, cut, written
from liedyn.codegen.tangent import tangent
from liedyn.kernels.loops.desk import desk_memory
from liedyn.kernels.recursions.hybrid import hybrid_memory
from liedyn.kernels.simulation.by_line import TERMS
from liedyn.kernels.simulation.joint_laws import GIVEN, SCRATCH
from liedyn.kernels.simulation.signals import CONSTANT, POLYNOMIAL, READING, SIDE, SWITCH
from liedyn.kernels.simulation.task_law import GIVEN as TASK
from liedyn.kernels.simulation.task_law import SCRATCH as OF_TASK
from liedyn.lie.recorded import NotALine, Recorded, Tape, zeros

_ENTRY, _TIED = "kernels.simulation.right_hand_side.right_hand_side", "kernels.simulation.by_loops.tied_right_hand_side"


@dataclass(frozen=True)
class Tied:
    """What the line depends on under constraints: signals and turns as in `LoopPlant`, whether Baumgarte's stabilization acts."""

    signal: np.ndarray
    turn: np.ndarray
    stabilized: bool


@dataclass(frozen=True)
class Step:
    """i64 one(t, q0, y, curves, held, values; q, v, a, tau, wrench, dy, verdict, readings, desk), pointers to float64.

    t, q0, y    as for `right_hand_side`
    curves      (5 c,) Taylor coefficients at t of the signals `curves`
    held        of the switches of the state: see `Signals`; their sides are read
    values      (k,) `numbers`: gains, constants, clocks, stops and materials of contacts of the scenario: no part of the code
    verdict     (2,) a code, and the signal that is not finite
    readings    (s,) of each switch its argument
    desk        see `kernels.loops.desk`: read and written under constraints

    Under constraints three functions are called with these: `address` writes the equations of the multipliers, `second` goes on
    when they are known; `back` writes q, v and the drives at t of the state that is to go back onto the constraints.

    Returns 1 where the line does not hold, as for angles beyond the range of its sine: what is written is then worthless.
    """

    address: int
    second: int
    back: int
    size: int
    curves: np.ndarray
    numbers: np.ndarray
    engines: tuple


def step_of(model, plant, schedule, signals, tied: Tied | None = None) -> Step | None:
    """None where loops do the work: too many operations, a law whose references have kinks, an old LLVM."""
    if not wanted():
        return None
    curves, values = curves_of(plant, schedule, signals, tied), values_of(plant, schedule, signals)
    place, name = folder(_TIED if tied else _ENTRY, "codegen.step"), _name(model, plant, schedule, signals, tied)
    size, codes = kept_parts(place, name, lambda: _recordings(model, plant, schedule, signals, tied))
    if not codes:
        return None
    engines = tuple(map(loaded, codes))
    addresses = [engine.get_function_address("one") for engine in engines]
    return Step(*(addresses if tied else (*addresses, 0, 0)), size, curves, values, engines)


def _recordings(model, plant, schedule, signals, tied) -> list[Recording]:
    """Nothing where they decide on a number."""
    try:
        return record_tied(model, plant, schedule, signals, tied) if tied else [record_step(model, plant, schedule, signals)]
    except NotALine:
        return []


def _name(model, plant, schedule, signals, tied=None) -> str:
    return code_cache.digest(*content(model, plant, schedule, signals, tied))


def content(model, plant, schedule, signals, tied=None) -> list[bytes]:
    """What the code depends on: not on times of breaks, on curves, or on `values`."""
    shape = schedule._replace(kp=schedule.kp != 0.0, kd=schedule.kd != 0.0, breaks=np.zeros(0), before=np.zeros(0),
                              poses=schedule.poses.q)
    constant, literals = _constants(signals), signals.literals.copy()
    literals[constant] = 1.0
    first, count = (np.where(signals.kind == POLYNOMIAL, 0, x) for x in (signals.first, signals.count))
    kinds = signals._replace(first=first, count=count, literals=literals, breaks=np.zeros(0), coefficients=np.zeros(0),
                             held=np.array([signals.held.size]), measured=np.array([signals.measured.size]), points=(),
                             clocks=np.array([signals.clocks.size]))
    law = () if plant.law is None else [getattr(plant.law, name) for name in _OF_LAW]
    touch = () if plant.contacts is None else plant.contacts._replace(material=np.zeros(0), share=np.zeros(0))
    joint_laws = () if plant.joint_laws is None else [getattr(plant.joint_laws, name) for name in GIVEN]
    task = () if plant.joint_laws is None or plant.joint_laws.task is None else _of_task(plant.joint_laws.task)
    stops = plant.stops._replace(numbers=np.zeros(0), applied=np.zeros(0))
    arrays = (plant.prescribed, plant.slot, plant.slot_link, plant.passive, *shape, *schedule.poses, *kinds, *signals.points,
              *law, *touch, *joint_laws, *task, *stops)
    if tied:
        arrays += (model.loop_index, model.loop_constants, tied.signal, tied.turn, np.array([tied.stabilized]))
    return [model.index.tobytes(), model.constants.tobytes(), repr(processor()).encode(),
            *(np.asarray(x).tobytes() for x in arrays)]


def _of_task(task) -> list[np.ndarray]:
    return [*(getattr(task, name) for name in TASK if name != "poses"), *task.poses]


_OF_LAW = ("index", "constants", "elastic", "motor", "spring", "stiffness", "rest", "inertia", "gains", "signal", "free")


def curves_of(plant, schedule, signals, tied=None) -> np.ndarray:
    """Signals in use that are curves."""
    used = [schedule.signal, schedule.target[schedule.target >= 0], schedule.force_signal,
            schedule.watch[schedule.watch >= 0], schedule.poses.signal[schedule.poses.signal >= 0],
            tied.signal if tied else [], [] if plant.law is None else plant.law.signal,
            *_of_joint_laws(plant.joint_laws)]
    used = np.unique(np.concatenate(used)).astype(int)
    used = used[used >= 0]
    return used[signals.kind[used] == POLYNOMIAL]


def _of_joint_laws(laws) -> list[np.ndarray]:
    """Signals that are used; -1: none."""
    if laws is None:
        return []
    return [laws.signal[laws.driven], laws.held, *([] if laws.task is None else [laws.task.poses.signal])]


def _constants(signals) -> np.ndarray:
    """Places in literals of constant signals that are not zero."""
    places = signals.first[signals.kind == CONSTANT]
    return places[signals.literals[places] != 0.0]


def values_of(plant, schedule, signals) -> np.ndarray:
    gains = (x[x != 0.0] for x in (schedule.kp, schedule.kd))
    materials = [] if plant.contacts is None else plant.contacts.material
    return np.concatenate([signals.literals[_constants(signals)], *gains, signals.clocks, plant.stops.numbers, materials])


class _Scenario:
    """What a recording begins with: inputs, and arrays for what comes out."""

    def __init__(self, model, plant, schedule, signals, tied=None, desk: int = 0):
        self.tape = Tape()
        nq, nv, m, slots = model.nq, model.nv, len(schedule.integral), len(plant.slot_link)
        curves, count = curves_of(plant, schedule, signals, tied), len(values_of(plant, schedule, signals))
        self.switches = signals.held.size // SWITCH
        sizes = {"t": 1, "q0": nq, "y": 2 * nv + m + 1, "curves": TERMS * len(curves), "held": signals.held.size, "values": count}
        self.given = {name: self.tape.inputs(name, size) for name, size in sizes.items()}
        self.desk = self.tape.inputs("desk", desk)
        self.plant, self.schedule, self.signals = with_inputs(
            plant, schedule, signals, curves, *(self.given[name] for name in ("values", "curves", "held")))
        sizes_of_work = (nq, nv, nv, nv, 6 * model.n_bodies if slots else 0, 6 * slots, 3 + 3 * signals.code.size, 2,
                         hybrid_memory(model.n_bodies, nv), 2 * m)
        self.work = plain("kernels.simulation.right_hand_side").MotionWork(*map(zeros, sizes_of_work))
        self.dy, self.tree = zeros(2 * nv + m + 1), plain("joints.tree").tree_of(model.index, model.constants)
        self.before = self.desk.copy()

    @property
    def readings(self):
        return self.signals.held[READING::SWITCH]

    def recording(self, results) -> Recording:
        """results: what arrays hold; those that are not in it are not written."""
        nv = self.work.v.size
        sizes = {"q": self.work.q.size, "v": nv, "a": nv, "tau": nv,
                 "wrench": self.work.wrench.size, "dy": self.dy.size, "verdict": 2, "readings": self.switches}
        arrays = [Array(name, x.size, (None,) * x.size) for name, x in self.given.items()]
        for name, size in sizes.items():
            after = results.get(name, (None,) * size)
            arrays.append(Array(name, size, tuple(x if x is None or isinstance(x, Recorded) else float(x) for x in after)))
        arrays.append(Array("desk", len(self.desk), written(self.before, self.desk)))
        return Recording(self.tape, tuple(arrays), tuple(bounds_of_angles(self.tape)), ())


def record_step(model, plant, schedule, signals) -> Recording:
    s = _Scenario(model, plant, schedule, signals)
    return s.recording(_results(s, _rates(s)))


def _rates(s: _Scenario):
    """Of an open tree, into s.dy. Returns the code."""
    with np.errstate(all="ignore"):
        return plain("kernels.simulation.right_hand_side").right_hand_side(
            s.tree, s.plant, s.schedule, s.signals, s.given["t"][0], s.given["q0"], s.given["y"], s.dy, s.work)


def record_slopes(model, plant, schedule, signals) -> Recording:
    """Derivatives of the rates of [x; v; z] along a direction of these: arrays `direction`, `by`. Raises NotALine."""
    s = _Scenario(model, plant, schedule, signals)
    _rates(s)
    n = len(s.dy) - 1
    direction = s.tape.inputs("direction", n)
    by = tangent(s.tape, zip(s.given["y"], direction, strict=False), s.dy[:n])
    arrays = [Array(name, len(x), (None,) * len(x), True) for name, x in s.given.items() if len(x)]
    arrays += [Array("direction", n, (None,) * n), Array("by", n, tuple(by))]
    return Recording(s.tape, tuple(arrays), (), ())


def _results(s, code) -> dict:
    return {"q": s.work.q, "v": s.work.v, "a": s.work.a, "tau": s.work.tau, "wrench": s.work.wrench, "dy": s.dy,
            "verdict": [code, s.work.flag[0]], "readings": s.readings}


def record_tied(model, plant, schedule, signals, tied: Tied) -> list[Recording]:
    """`address`, `second` and `back` of a `Step`."""
    sizes = sizes_of(model, len(plant.slot_link) > 0)
    size = desk_memory(*sizes, 0)
    s = _Scenario(model, plant, schedule, signals, tied, size)
    late = _record_motion(model, s, tied, sizes)
    b = _Scenario(model, plant, schedule, signals, tied, size)
    _record_back(b, tied, sizes)
    return [*cut(late, {x.k for x in _desk(s, sizes).multipliers}, "desk"), b.recording({"verdict": [None, b.work.flag[0]]})]


def _desk(s, sizes):
    n, nq, nv, m, driven, forced = sizes
    return plain("kernels.loops.desk").desk_views(s.desk, n, nq, nv, m, driven, forced)


def _record_motion(model, s, tied, sizes) -> Recording:
    """The whole of a right-hand side, from multipliers that are inputs."""
    motion, parts = plain("kernels.simulation.right_hand_side"), plain("kernels.loops.parts")
    w, t, y, desk, nc = s.work, s.given["t"][0], s.given["y"], _desk(s, sizes), len(model.constraints)
    with np.errstate(all="ignore"):
        motion.set_out(s.tree, s.plant, s.schedule, s.signals, t, s.given["q0"], y, w)
        plain("kernels.loops.loop_motion").move_drives(
            s.signals, SimpleNamespace(signal=tied.signal, turn=tied.turn, drive=desk.drive), t, w)
    desk = desk._replace(q=w.q, v=w.v, a=w.a, tau=w.tau, f_ext=w.F)
    loops = plain("joints.closures").loops_of(model.loop_index, model.loop_constants)
    size = model.n_bodies, model.nv, nc, model.nc
    room = parts.part_work(zeros(parts.part_memory(*size)), *size)
    passive, prescribed = bool(s.plant.passive[0]), s.plant.prescribed
    parts.write_equations(s.tree, loops, prescribed, tied.stabilized, passive, desk, room)
    parts.write_completed(s.tree, loops, prescribed, passive, desk, room)
    w.a[:], w.tau[:] = desk.found_a, desk.found_tau
    with np.errstate(all="ignore"):
        motion.watch(s.schedule, s.signals, t, w)
    power = desk.power[0]
    for x, rate in zip(desk.multipliers, desk.drive_rate, strict=True):
        power = power + x * rate
    code = motion.rates(s.tree, s.plant, s.signals, y, desk.deficit[0], power, s.dy, w)
    return s.recording(_results(s, code))


def _record_back(s, tied, sizes) -> None:
    """q, v and drives of a state that is to go back onto the constraints, on the desk."""
    motion, w, t, desk = plain("kernels.simulation.right_hand_side"), s.work, s.given["t"][0], _desk(s, sizes)
    nv = w.v.size
    with np.errstate(all="ignore"):
        plain("joints.retraction").retract(s.tree, s.given["q0"], s.given["y"][:nv], w.q)
        w.v[:] = s.given["y"][nv:2 * nv]
        w.flag[0] = -1.0
        motion.impose(s.schedule, s.signals, t, w.q, w.v, w)
        plain("kernels.loops.loop_motion").move_drives(
            s.signals, SimpleNamespace(signal=tied.signal, turn=tied.turn, drive=desk.drive), t, w)
    desk.q[:], desk.v[:] = w.q, w.v


def with_inputs(plant, schedule, signals, curves, values, coefficients, held):
    """Over what the line reads: curves, sides and numbers. Of a curve, Taylor coefficients stand in the place of its breaks."""
    plant = plant._replace(law=_law_of(plant.law), contacts=_contacts_of(plant.contacts, values),
                           joint_laws=_joint_laws_of(plant.joint_laws), stops=_stops_of(plant, values))
    return plant, *_signals_of(schedule, signals, curves, values, coefficients, held)


def _signals_of(schedule, signals, curves, values, coefficients, given):
    first, literals = signals.first.copy(), signals.literals.astype(object)
    first[curves] = TERMS * np.arange(len(curves))
    constant, kp, kd = _constants(signals), schedule.kp.astype(object), schedule.kd.astype(object)
    first_kp = len(constant)
    first_kd = first_kp + np.count_nonzero(schedule.kp)
    end = first_kd + np.count_nonzero(schedule.kd)
    clocks = values[end:end + signals.clocks.size]
    literals[constant] = values[:first_kp]
    kp[schedule.kp != 0.0], kd[schedule.kd != 0.0] = values[first_kp:first_kd], values[first_kd:end]
    held = zeros(signals.held.size)
    held[SIDE::SWITCH] = given[SIDE::SWITCH]
    return (schedule._replace(kp=kp, kd=kd),
            signals._replace(first=first, literals=literals, breaks=coefficients, held=held,
                             measured=zeros(signals.measured.size), clocks=clocks))


def _contacts_of(contacts, values):
    """Materials stand at the end of the values."""
    return contacts and contacts._replace(material=values[len(values) - contacts.material.size:],
                                          depth=zeros(contacts.depth.size))


def _stops_of(plant, values):
    """Their numbers stand before the materials of contacts."""
    end = len(values) - (0 if plant.contacts is None else plant.contacts.material.size)
    numbers = values[end - plant.stops.numbers.size:end]
    return plant.stops._replace(numbers=numbers, applied=zeros(plant.stops.applied.size))


def _law_of(law):
    """Over recorded numbers."""
    if law is None:
        return None
    room = {name: zeros(getattr(law, name).size) for name in ("q", "v", "a", "tau", "series", "memory", "stack")}
    return law._replace(reference=zeros(law.reference.size).reshape(law.reference.shape), **room)


def _joint_laws_of(laws):
    """Over recorded numbers."""
    if laws is None:
        return None
    task = laws.task and laws.task._replace(**{name: zeros(getattr(laws.task, name).size) for name in OF_TASK})
    return laws._replace(task=task, **{name: zeros(getattr(laws, name).size) for name in SCRATCH})


def _jet(original):
    def polynomial(breaks, coefficients, first, count, t):
        if breaks.dtype != object:
            return original(breaks, coefficients, first, count, t)
        return breaks[first], breaks[first + 1], 2.0 * breaks[first + 2]
    return polynomial


def _series(original):
    def polynomial_series(breaks, coefficients, first, count, t, stack, out):
        if breaks.dtype != object:
            return original(breaks, coefficients, first, count, t, stack, out)
        out[:] = breaks[first:first + len(out)]
    return polynomial_series


def _stands_still(x) -> bool:
    return not any(isinstance(y, Recorded) or y != 0.0 for y in x[1:])


_jets, _of_any_order = plain("kernels.simulation.signals"), plain("kernels.simulation.signal_series")
_jets.polynomial = _jet(_jets.polynomial)
_of_any_order.polynomial_series, _of_any_order.stands_still = _series(_of_any_order.polynomial_series), _stands_still
