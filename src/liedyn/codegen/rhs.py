"""The right-hand side of a simulation as a line: robot, joint modes, signals and wrenches of one scenario.

What stays outside is what would not be short: curves are inputs, evaluated before each call.
"""
from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from liedyn.codegen.llvm_ir import MAX_SEGMENT_OPERATIONS
from liedyn.codegen.scenario_inputs import ScenarioTables
from liedyn.codegen.specialize import (
    GeneratedBatchFunction,
    cache_folder,
    is_enabled,
    load_or_build_batch_function,
    load_or_build_engines,
    processor,
    simd_width,
)
from liedyn.codegen.trace import Array, Trace, angle_bounds, new_values, split_trace, traced_constants, traced_module
from liedyn.codegen.trace_derivatives import tangent
from liedyn.codegen.tracer import Operations, Tracer, zeros
from liedyn.kernels.constraints import stages
from liedyn.kernels.constraints.stages import constraint_workspace_size
from liedyn.kernels.hybrid_dynamics import hybrid_workspace_size
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS
from liedyn.kernels.simulation.signals import CLOCK, CONSTANT, FROZEN_CLOCK, ORDER, PROGRAM, SWITCH_SIZE, SWITCH_VALUE, TIME
from liedyn.model.model import cache_aligned
from liedyn.numba_tools import compile_cache
from liedyn.numba_tools.decorators import entry_point_address

# Signals read in Python, by the source of the kernels: a few values need no compilation ---------------------------------

def read_signal(signals, k: int, t: float, q, v) -> tuple[float, float, float]:
    """Value and two time derivatives of signal k: as `kernels.simulation.signals.evaluate_signal`."""
    stack = np.zeros(3 * max(1, int(signals.count[k])))
    with np.errstate(all="ignore"):
        x, dx, ddx = traced_module("kernels.simulation.signals").evaluate_signal(signals, k, np.float64(t), q, v, stack)
    return float(x), float(dx), float(ddx)


def signal_instructions(signals, k: int) -> np.ndarray:
    """Of signal k; none where it is no program."""
    first = signals.first[k]
    return signals.code[first:first + signals.count[k]] if signals.kind[k] == PROGRAM else np.zeros(0, dtype=np.int64)


def depends_on_time(signals, k: int) -> bool:
    """Whether signal k reads the time: a program with a time in it, a curve that is not constant."""
    if signals.kind[k] in (CONSTANT, PROGRAM):
        return bool(np.isin(signal_instructions(signals, k) & 255, (TIME, CLOCK, FROZEN_CLOCK)).any())
    first, count = signals.first[k], signals.count[k]
    pieces = signals.coefficients.reshape(-1, ORDER)[first:first + count]
    return bool(pieces[:, 1:].any() or (pieces[:, 0] != pieces[0, 0]).any())


def state_on_reference(law, signals, t: float, q, v, flag) -> bool:
    """As `kernels.simulation.elastic_joint_law.state_on_reference`."""
    with np.errstate(all="ignore"):
        return traced_module("kernels.simulation.elastic_joint_law").state_on_reference(law, signals, np.float64(t), q, v, flag)


# Lines of the parts of constrained motion (`kernels.constraints.stages`), for one robot; loops where a line would be too long ---

@dataclass(frozen=True)
class StageKey:
    """What parts depend on, besides the model: masks (nv,) of what is prescribed in motion and in projections of position and
    velocity; whether springs and damping act, Baumgarte's stabilization, external wrenches."""

    prescribed: tuple[bool, ...]
    fixed_position: tuple[bool, ...]
    fixed_velocity: tuple[bool, ...]
    passive: bool
    stabilized: bool
    has_wrenches: bool


# groups of parts: the first of two leaves numbers to the second; what of `StageKey` they depend on
_GROUPS = {(stages.EQUATIONS, stages.SOLUTION): ("prescribed", "passive", "stabilized", "has_wrenches"), (stages.RESIDUALS,): (),
           (stages.VELOCITIES,): (), (stages.HOLONOMIC, stages.POSITION_CORRECTION): ("fixed_position",),
           (stages.PFAFFIAN, stages.VELOCITY_CORRECTION): ("fixed_velocity",)}


def stage_addresses(model, ask: StageKey, which=stages.STAGES, loops: bool = False) -> np.ndarray:
    """(8,) addresses of parts, 0 of those that are not in `which`. loops: no lines."""
    found = np.zeros(len(stages.STAGES), dtype=np.int64)
    for group, depends in _GROUPS.items():
        if set(group) & set(which):
            content = ask.has_wrenches, *(getattr(ask, name) for name in depends)
            lines = () if loops or not is_enabled() else _stage_engines(model, group, content, ask)
            for k, part in enumerate(group):
                found[part] = lines[k].get_function_address("one") if lines else entry_point_address(stages.GENERIC_STAGES[part])
    return found


@dataclass(frozen=True)
class StageEnginesKey:
    """group: of stages; content: what of `StageKey` they depend on."""

    group: tuple[int, ...]
    content: tuple


def _stage_engines(model, group, content, ask):
    def load():
        arrays = (model.index, model.constants, model.loop_index, model.loop_constants)
        name = compile_cache.digest(*(x.tobytes() for x in arrays), repr((group, content, processor())).encode())
        place = cache_folder("kernels.constraints.stages.parts", "codegen.rhs")
        return load_or_build_engines(place, name, lambda: trace_stages(model, group, ask))
    return model.cached(StageEnginesKey(group, content), load)


# recording --------------------------------------------------------------------------------------------------------
class MechanismTracing:
    """The parts over numbers that record. desk: where they read and write, whose arrays may be exchanged for others."""

    def __init__(self, model, tree, has_wrenches: bool, numbers=None):
        """numbers: of the desk; None: zeros."""
        sizes = constraint_workspace_sizes(model, has_wrenches)
        n, _, nv, m, *_ = sizes
        self.kernels, self.tree, nc = traced_module("kernels.constraints.stages"), tree, len(model.constraints)
        self.loops = traced_module("joints.loop_joints").constraint_views(model.loop_index, model.loop_constants)
        numbers = zeros(constraint_workspace_size(*sizes, 0)) if numbers is None else numbers
        self.constraint_ws = traced_module("kernels.constraints.stages").constraint_workspace_views(numbers, *sizes)
        self.workspace = self.kernels.stage_workspace(zeros(self.kernels.stage_workspace_size(n, nv, nc, m)), n, nv, nc, m)

    def write(self, what: str, *options) -> None:
        """write("pfaffian", mask, holonomic) and so on: `write_pfaffian` of `kernels.constraints.stages`."""
        getattr(self.kernels, f"write_{what}")(self.tree, self.loops, *options, self.constraint_ws, self.workspace)


def constraint_workspace_sizes(model, has_wrenches: bool) -> tuple[int, ...]:
    """What the size of a desk depends on."""
    return model.n_bodies, model.nq, model.nv, model.nc, sum(one.driven for one in model.constraints), has_wrenches


def trace_stages(model, group, ask: StageKey) -> list[Trace]:
    """The parts of a group as functions of the desk alone. Where there are two, the second is what rests on the multipliers.
    Raises NotALine."""
    ops = Operations()
    numbers = ops.inputs("desk", constraint_workspace_size(*constraint_workspace_sizes(model, ask.has_wrenches), 0))
    before = numbers.copy()
    mechanism = MechanismTracing(model, traced_module("joints.joint_model").tree_views(model.index, model.constants),
                                 ask.has_wrenches, numbers)
    late = {x.k for x in mechanism.constraint_ws.multipliers}
    prescribed, fixed, held = (np.array(mask) for mask in (ask.prescribed, ask.fixed_position, ask.fixed_velocity))
    options = {stages.EQUATIONS: ("equations", prescribed, ask.stabilized, ask.passive),
               stages.SOLUTION: ("solution", prescribed, ask.passive), stages.RESIDUALS: ("residuals",),
               stages.VELOCITIES: ("velocities",), stages.HOLONOMIC: ("pfaffian", fixed, True),
               stages.POSITION_CORRECTION: ("position_correction", fixed), stages.PFAFFIAN: ("pfaffian", held, False),
               stages.VELOCITY_CORRECTION: ("velocity_correction", held)}
    for part in group:
        mechanism.write(*options[part])
    whole = Trace(ops, (Array("desk", len(numbers), new_values(before, numbers)),), tuple(angle_bounds(ops)), ())
    return split_trace(whole, late, "desk") if len(group) == 2 else [whole]


# step -------------------------------------------------------------------------------------------------------------------

_ENTRY_POINT = "kernels.simulation.right_hand_side.right_hand_side"
_CONSTRAINED_ENTRY_POINT = "kernels.simulation.rate_evaluation.constrained_right_hand_side"


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

    Under constraints three functions are called with these: `address` writes the equations of the multipliers, `second_address`
    continues when they are known; `back` writes q, v and the drives at t of the state that is to go back onto the constraints.

    Returns 1 where the line does not hold, as for angles beyond the range of its sine: what is written is then worthless.
    """

    address: int
    second_address: int
    projection_address: int
    curves: np.ndarray
    numbers: np.ndarray
    engines: tuple


def generated_rhs(tables: ScenarioTables) -> GeneratedRhs | None:
    """None where loops do the work: too many operations, a law whose references have kinks, an old LLVM."""
    if not is_enabled():
        return None
    folder = cache_folder(_CONSTRAINED_ENTRY_POINT if tables.constraints else _ENTRY_POINT, "codegen.rhs")
    engines = load_or_build_engines(folder, tables.name(),
                                    lambda: trace_constrained_rhs(tables) if tables.constraints else [trace_rhs(tables)])
    if not engines:
        return None
    addresses = [engine.get_function_address("one") for engine in engines]
    return GeneratedRhs(*(addresses if tables.constraints else (*addresses, 0, 0)), tables.curves, tables.numbers,
                        engines)


class RhsTracing:
    """What recordings of a scenario begin with: inputs, and what the right-hand side works on."""

    def __init__(self, tables: ScenarioTables, sizes: dict[str, int], varying: tuple[int, ...] = ()):
        """sizes: of the inputs; varying: places of constants of the robot that are inputs, too."""
        self.ops, model, plant = Operations(), tables.model, tables.plant
        self.inputs = {name: self.ops.inputs(name, size) for name, size in sizes.items()}
        self.motion, nq, nv, slots = traced_module("kernels.simulation.right_hand_side"), model.nq, model.nv, len(plant.slot_link)
        self.tree = traced_module("joints.joint_model").tree_views(model.index, traced_constants(self.ops, model, varying))
        self.workspace = self.motion.MotionWorkspace(*map(zeros, (
            nq, nv, nv, nv, 6 * model.n_bodies if slots else 0, 6 * slots, 3 + 3 * tables.signals.code.size, 2,
            hybrid_workspace_size(model.n_bodies, nv), 2 * len(tables.schedule.integral))))


class _ScenarioTracing(RhsTracing):
    """desk: how many numbers it has."""

    def __init__(self, tables: ScenarioTables, constraint_ws: int = 0):
        nq, n, held = tables.model.nq, 2 * tables.model.nv + len(tables.schedule.integral) + 1, tables.signals.held.size
        super().__init__(tables, {"t": 1, "q0": nq, "y": n, "curves": CURVE_COEFFICIENTS * len(tables.curves), "held": held,
                                  "values": len(tables.numbers)})
        self.t, self.q0, self.y, self.dy = self.inputs["t"][0], self.inputs["q0"], self.inputs["y"], zeros(n)
        self.traced_tables = tables.traced_tables(self.inputs["values"], self.t, self.inputs["curves"], self.inputs["held"])
        self.constraint_ws = self.ops.inputs("desk", constraint_ws)
        self.before = self.constraint_ws.copy()

    def trace(self, **results) -> Trace:
        """results: what arrays hold; those that are not in it are not written."""
        w = self.workspace
        sizes = {"q": w.q.size, "v": w.v.size, "a": w.v.size, "tau": w.v.size, "wrench": w.wrench.size, "dy": self.dy.size,
                 "verdict": 2, "readings": self.traced_tables.signals.held.size // SWITCH_SIZE}
        arrays = [Array(name, x.size, (None,) * x.size) for name, x in self.inputs.items()]
        for name, size in sizes.items():
            after = results.get(name, (None,) * size)
            arrays.append(Array(name, size, tuple(x if x is None or isinstance(x, Tracer) else float(x) for x in after)))
        arrays.append(Array("desk", len(self.constraint_ws), new_values(self.before, self.constraint_ws)))
        return Trace(self.ops, tuple(arrays), tuple(angle_bounds(self.ops)), ())

    def motion_trace(self, code) -> Trace:
        w = self.workspace
        return self.trace(q=w.q, v=w.v, a=w.a, tau=w.tau, wrench=w.wrench, dy=self.dy, verdict=[code, w.flag[0]],
                              readings=self.traced_tables.signals.held[SWITCH_VALUE::SWITCH_SIZE])


def trace_rhs(tables: ScenarioTables) -> Trace:
    s = _ScenarioTracing(tables)
    return s.motion_trace(_trace_rates(s))


def _trace_rates(s: _ScenarioTracing):
    """Of an open tree, into s.dy. Returns the code."""
    with np.errstate(all="ignore"):
        return s.motion.right_hand_side(s.tree, *s.traced_tables[1:4], s.t, s.q0, s.y, s.dy, s.workspace)


def trace_rhs_jacobian(tables: ScenarioTables) -> Trace:
    """Derivatives of the rates of [x; v; z] along a direction of these: arrays `direction`, `by`. Raises NotALine."""
    s = _ScenarioTracing(tables)
    _trace_rates(s)
    n = len(s.dy) - 1
    direction = s.ops.inputs("direction", n)
    by = tangent(s.ops, zip(s.y, direction, strict=False), s.dy[:n])
    arrays = [Array(name, len(x), (None,) * len(x), True) for name, x in s.inputs.items() if len(x)]
    arrays += [Array("direction", n, (None,) * n), Array("by", n, tuple(by))]
    return Trace(s.ops, tuple(arrays), (), ())


def trace_constrained_rhs(tables: ScenarioTables) -> list[Trace]:
    """`address`, `second_address` and `back` of a `GeneratedRhs`."""
    late = _ConstrainedTracing(tables)
    motion, back = late.trace_motion(), _ConstrainedTracing(tables).trace_projection()
    return [*split_trace(motion, {x.k for x in late.mechanism.constraint_ws.multipliers}, "desk"), back]


class _ConstrainedTracing(_ScenarioTracing):
    def __init__(self, tables: ScenarioTables):
        has_wrenches = len(tables.plant.slot_link) > 0
        super().__init__(tables, constraint_workspace_size(*constraint_workspace_sizes(tables.model, has_wrenches), 0))
        self.mechanism = MechanismTracing(tables.model, self.tree, has_wrenches, self.constraint_ws)

    def trace_motion(self) -> Trace:
        """The whole of a right-hand side, from multipliers that are inputs."""
        s, w, constraint_ws = self.motion, self.workspace, self.mechanism.constraint_ws
        _, plant, schedule, signals, constraints = self.traced_tables
        with np.errstate(all="ignore"):
            s.evaluate_inputs(self.tree, plant, schedule, signals, self.t, self.q0, self.y, w)
        self._move_drives()
        self.mechanism.constraint_ws = constraint_ws._replace(q=w.q, v=w.v, a=w.a, tau=w.tau, f_ext=w.F)
        passive = bool(plant.passive[0])
        self.mechanism.write("equations", plant.prescribed, constraints.stabilized, passive)
        self.mechanism.write("solution", plant.prescribed, passive)
        w.a[:], w.tau[:] = constraint_ws.out_a, constraint_ws.out_tau
        with np.errstate(all="ignore"):
            s.evaluate_events(schedule, signals, self.t, w)
        power = constraint_ws.power[0]
        for x, rate in zip(constraint_ws.multipliers, constraint_ws.constraint_motion_rate, strict=True):
            power = power + x * rate
        return self.motion_trace(s.store_rates(self.tree, plant, signals, self.y, constraint_ws.deficit[0], power, self.dy, w))

    def trace_projection(self) -> Trace:
        """q, v and drives of a state that is to go back onto the constraints, on the desk."""
        w, nv, (_, _, schedule, signals, _) = self.workspace, self.workspace.v.size, self.traced_tables
        with np.errstate(all="ignore"):
            traced_module("kernels.manifold").retract(self.tree, self.q0, self.y[:nv], w.q)
            w.v[:] = self.y[nv:2 * nv]
            w.flag[0] = -1.0
            self.motion.set_prescribed_state(schedule, signals, self.t, w.q, w.v, w)
        self._move_drives()
        self.mechanism.constraint_ws.q[:], self.mechanism.constraint_ws.v[:] = w.q, w.v
        return self.trace(verdict=[None, w.flag[0]])

    def _move_drives(self) -> None:
        constraints = SimpleNamespace(**self.traced_tables.constraints._asdict(),
                                      constraint_motion=self.mechanism.constraint_ws.constraint_motion)
        with np.errstate(all="ignore"):
            traced_module("kernels.simulation.right_hand_side").prescribe_loop_motion(
                self.traced_tables.signals, constraints, self.t, self.workspace)


# The derivative of the right-hand side of a simulation by its state, as a line: for implicit methods --------------------

# The rates are recorded as for a `GeneratedRhs`, then their tangent along a direction of the state. Each direction is a state of
# a batch, so a register holds as many as it has numbers. What the directions share, the state and the arrays of `GeneratedCall`,
# is read once.

_SHARED_INPUTS = "t", "q0", "y", "curves", "held", "numbers"         # as a `GeneratedRhs` takes them


class RhsJacobian:
    """Of one run. Called with a `kernels.simulation.rate_evaluation.GeneratedCall`, q0 and y: the (n - 1, n - 1) derivative of
    the rates of [x; v; z] by these, at the time and with the signals of the last call of the line."""

    def __init__(self, batch: GeneratedBatchFunction, n: int):
        self.batch, self.y, self.by, self.directions = batch, np.zeros(n), np.zeros((n - 1, n - 1)), np.eye(n - 1)
        self.workspace, self.shared, self.run = cache_aligned(max(batch.workspace_size, 8)), (), None

    def __call__(self, call, q0, y) -> np.ndarray:
        if self.run is None or self.shared[0] is not call or self.shared[1] is not q0:
            self.shared, inputs = (call, q0), call._asdict() | {"q0": q0, "y": self.y}
            arrays = [*(inputs[name] for name in _SHARED_INPUTS), self.directions, self.by]
            self.run = self.batch.bind([x for x in arrays if x.size], self.workspace)        # finding addresses takes 8 us
        self.y[:] = y
        self.run(0, len(self.by))
        return self.by.T


def generated_rhs_jacobian(tables: ScenarioTables) -> GeneratedBatchFunction | None:
    """For `RhsJacobian`. None where there is no line: too many operations, a function without a known derivative, an old LLVM."""
    if not is_enabled() or not tables.model.nv:
        return None
    place = cache_folder("kernels.simulation.right_hand_side.right_hand_side", "codegen.rhs")
    return load_or_build_batch_function(tables.model, place, tables.name("slopes", simd_width()),
                                        lambda: trace_rhs_jacobian(tables), MAX_SEGMENT_OPERATIONS)
