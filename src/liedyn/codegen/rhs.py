"""The right-hand side of a simulation as a line: robot, joint modes, signals and wrenches of one scenario.

What stays outside is what would not be short: curves are inputs, evaluated before each call.
"""
from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from liedyn.codegen.llvm_ir import SEGMENT
from liedyn.codegen.scenario_inputs import ScenarioTables
from liedyn.codegen.specialize import GeneratedBatchFunction, folder, kept_batch, kept_parts, processor, wanted, width
from liedyn.codegen.trace import Array, Trace, bounds_of_angles, constants_of, cut, plain, written
from liedyn.codegen.trace_derivatives import tangent
from liedyn.codegen.tracer import Operations, Tracer, zeros
from liedyn.kernels.constraints import stages
from liedyn.kernels.constraints.stages import desk_memory
from liedyn.kernels.hybrid_dynamics import hybrid_memory
from liedyn.kernels.simulation.rate_evaluation import TERMS
from liedyn.kernels.simulation.signals import CLOCK, CONSTANT, HELD_CLOCK, ORDER, PROGRAM, READING, SWITCH, TIME
from liedyn.model.model import on_cache_lines
from liedyn.numba_tools import compile_cache
from liedyn.numba_tools.decorators import address_of

# Signals read in Python, by the source of the kernels: a few values need no compilation ---------------------------------

def read_signal(signals, k: int, t: float, q, v) -> tuple[float, float, float]:
    """Value and two time derivatives of signal k: as `kernels.simulation.signals.signal`."""
    stack = np.zeros(3 * max(1, int(signals.count[k])))
    with np.errstate(all="ignore"):
        x, dx, ddx = plain("kernels.simulation.signals").signal(signals, k, np.float64(t), q, v, stack)
    return float(x), float(dx), float(ddx)


def instructions(signals, k: int) -> np.ndarray:
    """Of signal k; none where it is no program."""
    first = signals.first[k]
    return signals.code[first:first + signals.count[k]] if signals.kind[k] == PROGRAM else np.zeros(0, dtype=np.int64)


def depends_on_time(signals, k: int) -> bool:
    """Whether signal k reads the time: a program with a time in it, a curve that is not constant."""
    if signals.kind[k] in (CONSTANT, PROGRAM):
        return bool(np.isin(instructions(signals, k) & 255, (TIME, CLOCK, HELD_CLOCK)).any())
    first, count = signals.first[k], signals.count[k]
    pieces = signals.coefficients.reshape(-1, ORDER)[first:first + count]
    return bool(pieces[:, 1:].any() or (pieces[:, 0] != pieces[0, 0]).any())


def state_on_reference(law, signals, t: float, q, v, flag) -> bool:
    """As `kernels.simulation.elastic_joint_law.state_on_reference`."""
    with np.errstate(all="ignore"):
        return plain("kernels.simulation.elastic_joint_law").state_on_reference(law, signals, np.float64(t), q, v, flag)


# Lines of the parts of constrained motion (`kernels.constraints.stages`), for one robot; loops where a line would be too long ---

@dataclass(frozen=True)
class StageKey:
    """What parts depend on, besides the model: masks (nv,) of what is prescribed in motion and in projections of position and
    velocity; whether springs and damping act, Baumgarte's stabilization, external wrenches."""

    prescribed: tuple[bool, ...]
    fixed: tuple[bool, ...]
    held: tuple[bool, ...]
    passive: bool
    stabilized: bool
    forced: bool


# groups of parts: the first of two leaves numbers to the second; what of `StageKey` they depend on
_GROUPS = {(stages.EQUATIONS, stages.COMPLETED): ("prescribed", "passive", "stabilized", "forced"), (stages.RESIDUALS,): (),
           (stages.VELOCITIES,): (), (stages.HOLONOMIC, stages.MOVED): ("fixed",), (stages.ROWS, stages.CHANGED): ("held",)}


def addresses(model, ask: StageKey, which=stages.PARTS, loops: bool = False) -> np.ndarray:
    """(8,) addresses of parts, 0 of those that are not in `which`. loops: no lines."""
    found = np.zeros(len(stages.PARTS), dtype=np.int64)
    for group, depends in _GROUPS.items():
        if set(group) & set(which):
            content = ask.forced, *(getattr(ask, name) for name in depends)
            lines = () if loops or not wanted() else _lines(model, group, content, ask)
            for k, part in enumerate(group):
                found[part] = lines[k].get_function_address("one") if lines else address_of(stages.BY_LOOPS[part])
    return found


def _lines(model, group, content, ask):
    key = "parts", group, content
    if key not in model._cache:
        arrays = (model.index, model.constants, model.loop_index, model.loop_constants)
        name = compile_cache.digest(*(x.tobytes() for x in arrays), repr((group, content, processor())).encode())
        place = folder("kernels.constraints.stages.parts", "codegen.rhs")
        model._cache[key] = kept_parts(place, name, lambda: record_parts(model, group, ask))
    return model._cache[key]


# recording --------------------------------------------------------------------------------------------------------
class MechanismTracing:
    """The parts over numbers that record. desk: where they read and write, whose arrays may be exchanged for others."""

    def __init__(self, model, tree, forced: bool, numbers=None):
        """numbers: of the desk; None: zeros."""
        sizes = desk_sizes(model, forced)
        n, _, nv, m, *_ = sizes
        self.kernels, self.tree, nc = plain("kernels.constraints.stages"), tree, len(model.constraints)
        self.loops = plain("joints.loop_joints").loops_of(model.loop_index, model.loop_constants)
        numbers = zeros(desk_memory(*sizes, 0)) if numbers is None else numbers
        self.desk = plain("kernels.constraints.stages").desk_views(numbers, *sizes)
        self.work = self.kernels.part_work(zeros(self.kernels.part_memory(n, nv, nc, m)), n, nv, nc, m)

    def write(self, what: str, *options) -> None:
        """write("rows", mask, holonomic) and so on: `write_rows` of `kernels.constraints.stages`."""
        getattr(self.kernels, f"write_{what}")(self.tree, self.loops, *options, self.desk, self.work)


def desk_sizes(model, forced: bool) -> tuple[int, ...]:
    """What the size of a desk depends on."""
    return model.n_bodies, model.nq, model.nv, model.nc, sum(one.driven for one in model.constraints), forced


def record_parts(model, group, ask: StageKey) -> list[Trace]:
    """The parts of a group as functions of the desk alone. Where there are two, the second is what rests on the multipliers.
    Raises NotALine."""
    tape = Operations()
    numbers = tape.inputs("desk", desk_memory(*desk_sizes(model, ask.forced), 0))
    before = numbers.copy()
    mechanism = MechanismTracing(model, plain("joints.joint_model").tree_of(model.index, model.constants), ask.forced, numbers)
    late = {x.k for x in mechanism.desk.multipliers}
    prescribed, fixed, held = (np.array(mask) for mask in (ask.prescribed, ask.fixed, ask.held))
    options = {stages.EQUATIONS: ("equations", prescribed, ask.stabilized, ask.passive),
               stages.COMPLETED: ("completed", prescribed, ask.passive), stages.RESIDUALS: ("residuals",),
               stages.VELOCITIES: ("velocities",), stages.HOLONOMIC: ("rows", fixed, True), stages.MOVED: ("moved", fixed),
               stages.ROWS: ("rows", held, False), stages.CHANGED: ("change", held)}
    for part in group:
        mechanism.write(*options[part])
    whole = Trace(tape, (Array("desk", len(numbers), written(before, numbers)),), tuple(bounds_of_angles(tape)), ())
    return cut(whole, late, "desk") if len(group) == 2 else [whole]


# step -------------------------------------------------------------------------------------------------------------------

_ENTRY, _TIED = "kernels.simulation.right_hand_side.right_hand_side", "kernels.simulation.rate_evaluation.tied_right_hand_side"


@dataclass(frozen=True)
class GeneratedRhs:
    """i64 one(t, q0, y, curves, held, values; q, v, a, tau, wrench, dy, verdict, readings, desk), pointers to float64.

    t, q0, y    as for `right_hand_side`
    curves      (5 c,) Taylor coefficients at t of the signals `curves`
    held        of the switches of the state: see `Signals`; their sides are read
    values      (k,) `numbers`: gains, constants, clocks, stops, materials of contacts and state feedback of the scenario: no part
                of the code
    verdict     (2,) a code, and the signal that is not finite
    readings    (s,) of each switch its argument
    desk        see `kernels.constraints.stages`: read and written under constraints

    Under constraints three functions are called with these: `address` writes the equations of the multipliers, `second` goes on
    when they are known; `back` writes q, v and the drives at t of the state that is to go back onto the constraints.

    Returns 1 where the line does not hold, as for angles beyond the range of its sine: what is written is then worthless.
    """

    address: int
    second: int
    back: int
    curves: np.ndarray
    numbers: np.ndarray
    engines: tuple


def step_of(tables: ScenarioTables) -> GeneratedRhs | None:
    """None where loops do the work: too many operations, a law whose references have kinks, an old LLVM."""
    if not wanted():
        return None
    engines = kept_parts(folder(_TIED if tables.tied else _ENTRY, "codegen.rhs"), tables.name(),
                         lambda: record_tied(tables) if tables.tied else [record_step(tables)])
    if not engines:
        return None
    addresses = [engine.get_function_address("one") for engine in engines]
    return GeneratedRhs(*(addresses if tables.tied else (*addresses, 0, 0)), tables.curves, tables.numbers, engines)


class RhsTracing:
    """What recordings of a scenario begin with: inputs, and what the right-hand side works on."""

    def __init__(self, tables: ScenarioTables, sizes: dict[str, int], varying: tuple[int, ...] = ()):
        """sizes: of the inputs; varying: places of constants of the robot that are inputs, too."""
        self.tape, model, plant = Operations(), tables.model, tables.plant
        self.given = {name: self.tape.inputs(name, size) for name, size in sizes.items()}
        self.motion, nq, nv, slots = plain("kernels.simulation.right_hand_side"), model.nq, model.nv, len(plant.slot_link)
        self.tree = plain("joints.joint_model").tree_of(model.index, constants_of(self.tape, model, varying))
        self.work = self.motion.MotionWorkspace(*map(zeros, (
            nq, nv, nv, nv, 6 * model.n_bodies if slots else 0, 6 * slots, 3 + 3 * tables.signals.code.size, 2,
            hybrid_memory(model.n_bodies, nv), 2 * len(tables.schedule.integral))))


class _ScenarioTracing(RhsTracing):
    """desk: how many numbers it has."""

    def __init__(self, tables: ScenarioTables, desk: int = 0):
        nq, n, held = tables.model.nq, 2 * tables.model.nv + len(tables.schedule.integral) + 1, tables.signals.held.size
        super().__init__(tables, {"t": 1, "q0": nq, "y": n, "curves": TERMS * len(tables.curves), "held": held,
                                  "values": len(tables.numbers)})
        self.t, self.q0, self.y, self.dy = self.given["t"][0], self.given["q0"], self.given["y"], zeros(n)
        self.over = tables.over(self.given["values"], self.t, self.given["curves"], self.given["held"])
        self.desk = self.tape.inputs("desk", desk)
        self.before = self.desk.copy()

    def recording(self, **results) -> Trace:
        """results: what arrays hold; those that are not in it are not written."""
        w = self.work
        sizes = {"q": w.q.size, "v": w.v.size, "a": w.v.size, "tau": w.v.size, "wrench": w.wrench.size, "dy": self.dy.size,
                 "verdict": 2, "readings": self.over.signals.held.size // SWITCH}
        arrays = [Array(name, x.size, (None,) * x.size) for name, x in self.given.items()]
        for name, size in sizes.items():
            after = results.get(name, (None,) * size)
            arrays.append(Array(name, size, tuple(x if x is None or isinstance(x, Tracer) else float(x) for x in after)))
        arrays.append(Array("desk", len(self.desk), written(self.before, self.desk)))
        return Trace(self.tape, tuple(arrays), tuple(bounds_of_angles(self.tape)), ())

    def motion_recorded(self, code) -> Trace:
        w = self.work
        return self.recording(q=w.q, v=w.v, a=w.a, tau=w.tau, wrench=w.wrench, dy=self.dy, verdict=[code, w.flag[0]],
                              readings=self.over.signals.held[READING::SWITCH])


def record_step(tables: ScenarioTables) -> Trace:
    s = _ScenarioTracing(tables)
    return s.motion_recorded(_rates(s))


def _rates(s: _ScenarioTracing):
    """Of an open tree, into s.dy. Returns the code."""
    with np.errstate(all="ignore"):
        return s.motion.right_hand_side(s.tree, *s.over[1:4], s.t, s.q0, s.y, s.dy, s.work)


def record_slopes(tables: ScenarioTables) -> Trace:
    """Derivatives of the rates of [x; v; z] along a direction of these: arrays `direction`, `by`. Raises NotALine."""
    s = _ScenarioTracing(tables)
    _rates(s)
    n = len(s.dy) - 1
    direction = s.tape.inputs("direction", n)
    by = tangent(s.tape, zip(s.y, direction, strict=False), s.dy[:n])
    arrays = [Array(name, len(x), (None,) * len(x), True) for name, x in s.given.items() if len(x)]
    arrays += [Array("direction", n, (None,) * n), Array("by", n, tuple(by))]
    return Trace(s.tape, tuple(arrays), (), ())


def record_tied(tables: ScenarioTables) -> list[Trace]:
    """`address`, `second` and `back` of a `GeneratedRhs`."""
    late = _ConstrainedTracing(tables)
    motion, back = late.record_motion(), _ConstrainedTracing(tables).record_back()
    return [*cut(motion, {x.k for x in late.mechanism.desk.multipliers}, "desk"), back]


class _ConstrainedTracing(_ScenarioTracing):
    def __init__(self, tables: ScenarioTables):
        forced = len(tables.plant.slot_link) > 0
        super().__init__(tables, desk_memory(*desk_sizes(tables.model, forced), 0))
        self.mechanism = MechanismTracing(tables.model, self.tree, forced, self.desk)

    def record_motion(self) -> Trace:
        """The whole of a right-hand side, from multipliers that are inputs."""
        s, w, desk, _, plant, schedule, signals, tied = self.motion, self.work, self.mechanism.desk, *self.over
        with np.errstate(all="ignore"):
            s.set_out(self.tree, plant, schedule, signals, self.t, self.q0, self.y, w)
        self._move_drives()
        self.mechanism.desk = desk._replace(q=w.q, v=w.v, a=w.a, tau=w.tau, f_ext=w.F)
        passive = bool(plant.passive[0])
        self.mechanism.write("equations", plant.prescribed, tied.stabilized, passive)
        self.mechanism.write("completed", plant.prescribed, passive)
        w.a[:], w.tau[:] = desk.found_a, desk.found_tau
        with np.errstate(all="ignore"):
            s.watch(schedule, signals, self.t, w)
        power = desk.power[0]
        for x, rate in zip(desk.multipliers, desk.drive_rate, strict=True):
            power = power + x * rate
        return self.motion_recorded(s.rates(self.tree, plant, signals, self.y, desk.deficit[0], power, self.dy, w))

    def record_back(self) -> Trace:
        """q, v and drives of a state that is to go back onto the constraints, on the desk."""
        w, nv, (_, _, schedule, signals, _) = self.work, self.work.v.size, self.over
        with np.errstate(all="ignore"):
            plain("kernels.manifold").retract(self.tree, self.q0, self.y[:nv], w.q)
            w.v[:] = self.y[nv:2 * nv]
            w.flag[0] = -1.0
            self.motion.impose(schedule, signals, self.t, w.q, w.v, w)
        self._move_drives()
        self.mechanism.desk.q[:], self.mechanism.desk.v[:] = w.q, w.v
        return self.recording(verdict=[None, w.flag[0]])

    def _move_drives(self) -> None:
        tied = SimpleNamespace(**self.over.tied._asdict(), drive=self.mechanism.desk.drive)
        with np.errstate(all="ignore"):
            plain("kernels.simulation.right_hand_side").move_drives(self.over.signals, tied, self.t, self.work)


# The derivative of the right-hand side of a simulation by its state, as a line: for implicit methods --------------------

# The rates are recorded as for a `GeneratedRhs`, then their tangent along a direction of the state. Each direction is a state of
# a batch, so a register holds as many as it has numbers. What the directions share, the state and what a `Line` holds, is read
# once.

_OF_LINE = "t", "q0", "y", "curves", "held", "numbers"         # as a `GeneratedRhs` takes them


class RhsJacobian:
    """Of one run. Called with a `kernels.simulation.rate_evaluation.GeneratedCall`, q0 and y: the (n - 1, n - 1) derivative of
    the rates of [x; v; z] by these, at the time and with the signals of the last call of the line."""

    def __init__(self, batch: GeneratedBatchFunction, n: int):
        self.batch, self.y, self.by, self.directions = batch, np.zeros(n), np.zeros((n - 1, n - 1)), np.eye(n - 1)
        self.scratch, self.shared, self.run = on_cache_lines(max(batch.scratch, 8)), (), None

    def __call__(self, line, q0, y) -> np.ndarray:
        if self.run is None or self.shared[0] is not line or self.shared[1] is not q0:
            self.shared, given = (line, q0), line._asdict() | {"q0": q0, "y": self.y}
            arrays = [*(given[name] for name in _OF_LINE), self.directions, self.by]
            self.run = self.batch.bound([x for x in arrays if x.size], self.scratch)        # finding addresses takes 8 us
        self.y[:] = y
        self.run(0, len(self.by))
        return self.by.T


def slopes_of(tables: ScenarioTables) -> GeneratedBatchFunction | None:
    """For `RhsJacobian`. None where there is no line: too many operations, a function without a known derivative, an old LLVM."""
    if not wanted() or not tables.model.nv:
        return None
    place = folder("kernels.simulation.right_hand_side.right_hand_side", "codegen.rhs")
    return kept_batch(tables.model, place, tables.name("slopes", width()), lambda: record_slopes(tables), SEGMENT)
