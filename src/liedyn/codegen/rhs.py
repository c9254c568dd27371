"""The right-hand side of a simulation as generated code: robot, joint modes, signals and wrenches of one scenario.

Curves are not part of the code: their Taylor coefficients are inputs, evaluated before each call.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from liedyn.arrays import cache_aligned
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
from liedyn.codegen.targets.llvm_ir import MAX_SEGMENT_OPERATIONS
from liedyn.codegen.trace import Array, Trace, angle_bounds, new_values, split_trace, traced_constants, traced_module
from liedyn.codegen.trace_derivatives import tangent
from liedyn.codegen.tracer import Operations, Tracer, zeros
from liedyn.kernels.constraints import stages
from liedyn.kernels.constraints.stages import constraint_workspace_size
from liedyn.kernels.hybrid_dynamics import coupled_motion_workspace_size
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS
from liedyn.kernels.simulation.signals import CLOCK, CONSTANT, FROZEN_CLOCK, ORDER, PROGRAM, SWITCH_SIZE, SWITCH_VALUE, TIME
from liedyn.numba_tools import compile_cache
from liedyn.numba_tools.decorators import entry_point_address

# Signals evaluated in Python with the source of the kernels: a few values need no compilation ----------------------------

def read_signal(signals, k: int, t: float, q, v) -> tuple[float, float, float]:
    """Return the value and two time derivatives of signal k, as `kernels.simulation.signals.evaluate_signal` does."""
    stack = np.zeros(3 * max(1, int(signals.count[k])))
    with np.errstate(all="ignore"):
        x, dx, ddx = traced_module("kernels.simulation.signals").evaluate_signal(signals, k, np.float64(t), q, v, stack)
    return float(x), float(dx), float(ddx)


def signal_instructions(signals, k: int) -> np.ndarray:
    """Return the instructions of signal k; empty if it is not a program."""
    first = signals.first[k]
    return signals.code[first:first + signals.count[k]] if signals.kind[k] == PROGRAM else np.zeros(0, dtype=np.int64)


def depends_on_time(signals, k: int) -> bool:
    """Return whether signal k depends on time: a program that reads the time, or a curve that is not constant."""
    if signals.kind[k] in (CONSTANT, PROGRAM):
        return bool(np.isin(signal_instructions(signals, k) & 255, (TIME, CLOCK, FROZEN_CLOCK)).any())
    first, count = signals.first[k], signals.count[k]
    pieces = signals.coefficients.reshape(-1, ORDER)[first:first + count]
    return bool(pieces[:, 1:].any() or (pieces[:, 0] != pieces[0, 0]).any())


def state_on_reference(law, signals, t: float, q, v, flag) -> bool:
    """Return the same as `kernels.simulation.elastic_joint_law.state_on_reference`, in Python."""
    with np.errstate(all="ignore"):
        return traced_module("kernels.simulation.elastic_joint_law").state_on_reference(law, signals, np.float64(t), q, v, flag)


# Generated code for the stages of constrained dynamics (`kernels.constraints.stages`); generic kernels if it were too long ------

@dataclass(frozen=True)
class StageKey:
    """Dependencies of the stages besides the model.

    prescribed      (nv,) mask of coordinates with prescribed acceleration
    fixed_position  (nv,) mask of coordinates that projections of the position do not change
    fixed_velocity  (nv,) mask of coordinates that projections of the velocity do not change
    passive         whether springs and damping act
    stabilized      whether Baumgarte's stabilization acts
    has_wrenches    whether external wrenches act
    """

    prescribed: tuple[bool, ...]
    fixed_position: tuple[bool, ...]
    fixed_velocity: tuple[bool, ...]
    passive: bool
    stabilized: bool
    has_wrenches: bool


_WORKSPACE = "constraint_workspace"        # name of the array in traces

# groups of stages, and the fields of `StageKey` on which they depend; the second of two continues with numbers of the first
_GROUPS = {(stages.EQUATIONS, stages.SOLUTION): ("prescribed", "passive", "stabilized", "has_wrenches"), (stages.RESIDUALS,): (),
           (stages.VELOCITIES,): (), (stages.HOLONOMIC, stages.POSITION_CORRECTION): ("fixed_position",),
           (stages.PFAFFIAN, stages.VELOCITY_CORRECTION): ("fixed_velocity",)}


def stage_addresses(model, key: StageKey, functions=stages.STAGES, generic: bool = False) -> np.ndarray:
    """Return the addresses (8,) of stages, 0 for those that are not in `functions`. generic: use generic kernels only."""
    addresses = np.zeros(len(stages.STAGES), dtype=np.int64)
    for group, depends in _GROUPS.items():
        if set(group) & set(functions):
            content = key.has_wrenches, *(getattr(key, name) for name in depends)
            engines = () if generic or not is_enabled() else _stage_engines(model, group, content, key)
            for k, part in enumerate(group):
                addresses[part] = (engines[k].get_function_address("one") if engines
                                   else entry_point_address(stages.GENERIC_STAGES[part]))
    return addresses


@dataclass(frozen=True)
class StageEnginesKey:
    """Key of the engines of a group of stages. content: the fields of `StageKey` on which they depend."""

    group: tuple[int, ...]
    content: tuple


def _stage_engines(model, group, content, key):
    def load():
        arrays = (model.index, model.constants, model.loop_index, model.loop_constants)
        name = compile_cache.digest(*(x.tobytes() for x in arrays), repr((group, content, processor())).encode())
        place = cache_folder("kernels.constraints.stages.parts", "codegen.rhs")
        return load_or_build_engines(place, name, lambda: trace_stages(model, group, key))
    return model.cached(StageEnginesKey(group, content), load)


# tracing ----------------------------------------------------------------------------------------------------------
class MechanismTracing:
    """The stages over traced numbers. Their workspace may be exchanged for other arrays."""

    def __init__(self, model, tree, has_wrenches: bool, workspace_values=None):
        """workspace_values: numbers of the workspace; None: zeros."""
        sizes = constraint_workspace_dimensions(model, has_wrenches)
        n, _, nv, m, *_ = sizes
        self.kernels, self.tree, frames = traced_module("kernels.constraints.stages"), tree, model.n_frames
        self.loops = traced_module("joints.loop_joints").constraint_views(model.loop_index, model.loop_constants)
        workspace_values = zeros(constraint_workspace_size(*sizes, 0)) if workspace_values is None else workspace_values
        self.constraint_ws = traced_module("kernels.constraints.stages").constraint_workspace_views(workspace_values, *sizes)
        self.workspace = self.kernels.stage_workspace(zeros(self.kernels.stage_workspace_size(n, nv, frames, m)), n, nv,
                                                      frames, m)

    def write(self, stage: str, *options) -> None:
        """Call a stage by name: write("pfaffian", mask, holonomic) calls `write_pfaffian` of `kernels.constraints.stages`."""
        getattr(self.kernels, f"write_{stage}")(self.tree, self.loops, *options, self.constraint_ws, self.workspace)


def constraint_workspace_dimensions(model, has_wrenches: bool) -> tuple[int, int, int, int, int, bool]:
    """Return the sizes on which the size of a constraint workspace depends."""
    return model.n_bodies, model.nq, model.nv, model.nc, model.driven, has_wrenches


def trace_stages(model, group, key: StageKey) -> list[Trace]:
    """Return the traces of a group of stages as functions of the workspace alone.

    Of two traces, the second depends on the multipliers. Raises NotTraceableError.
    """
    ops = Operations()
    dimensions = constraint_workspace_dimensions(model, key.has_wrenches)
    workspace_values = ops.inputs(_WORKSPACE, constraint_workspace_size(*dimensions, 0))
    initial = workspace_values.copy()
    mechanism = MechanismTracing(model, traced_module("joints.joint_model").tree_views(model.index, model.constants),
                                 key.has_wrenches, workspace_values)
    late = {x.k for x in mechanism.constraint_ws.multipliers}
    prescribed, fixed_position, fixed_velocity = map(np.array, (key.prescribed, key.fixed_position, key.fixed_velocity))
    options: dict[int, tuple[Any, ...]] = {
        stages.EQUATIONS: ("equations", prescribed, key.stabilized, key.passive),
        stages.SOLUTION: ("solution", prescribed, key.passive), stages.RESIDUALS: ("residuals",),
        stages.VELOCITIES: ("velocities",), stages.HOLONOMIC: ("pfaffian", fixed_position, True),
        stages.POSITION_CORRECTION: ("position_correction", fixed_position), stages.PFAFFIAN: ("pfaffian", fixed_velocity, False),
        stages.VELOCITY_CORRECTION: ("velocity_correction", fixed_velocity)}
    for part in group:
        mechanism.write(*options[part])
    workspace = Array(_WORKSPACE, len(workspace_values), new_values(initial, workspace_values))
    whole = Trace(ops, (workspace,), tuple(angle_bounds(ops)), ())
    return split_trace(whole, late, _WORKSPACE) if len(group) == 2 else [whole]


# step -------------------------------------------------------------------------------------------------------------------

_ENTRY_POINT = "kernels.simulation.right_hand_side.right_hand_side"
_CONSTRAINED_ENTRY_POINT = "kernels.simulation.rate_evaluation.constrained_right_hand_side"


@dataclass(frozen=True)
class GeneratedRhs:
    """i64 one(t, q0, y, curves, switches, values; q, v, a, tau, wrench, dy, status, readings, workspace), pointers to float64.

    t, q0, y    as for `right_hand_side`
    curves      (5 c,) Taylor coefficients at t of the signals `curves`
    switches    states of switches: see `Signals`; their sides are read
    values      (k,) `ScenarioTables.scenario_values`: gains, constants, clocks, stops, materials of contacts and state feedback
    status     (2,) a code, and the signal that is not finite
    readings    (s,) the argument of each switch
    workspace   see `kernels.constraints.stages`: read and written under constraints

    Under constraints there are three functions with these arguments. `address` writes the equations of the multipliers,
    `second_address` continues when they are solved. `projection_address` writes q, v and the motion of driven loops at t, for the
    projection onto the constraints.

    Returns 1 if the code is not valid for these inputs, as for angles beyond the range of its sine; the outputs are then invalid.
    """

    address: int
    second_address: int
    projection_address: int
    curves: np.ndarray
    scenario_values: np.ndarray
    engines: tuple


def generated_rhs(tables: ScenarioTables) -> GeneratedRhs | None:
    """Return the generated right-hand side, or None if generic kernels are to be used.

    They are used with too many operations, a law whose references have kinks, or an old LLVM.
    """
    if not is_enabled(tables.varying):
        return None
    folder = cache_folder(_CONSTRAINED_ENTRY_POINT if tables.constraints else _ENTRY_POINT, "codegen.rhs")
    engines = load_or_build_engines(folder, tables.name(),
                                    lambda: trace_constrained_rhs(tables) if tables.constraints else [trace_rhs(tables)])
    if not engines:
        return None
    addresses = [engine.get_function_address("one") for engine in engines]
    address, second, projection = addresses if tables.constraints else (*addresses, 0, 0)
    return GeneratedRhs(address, second, projection, tables.curves, tables.scenario_values, engines)


class RhsTracing:
    """Inputs and workspace with which a trace of a scenario begins."""

    def __init__(self, tables: ScenarioTables, sizes: dict[str, int], varying: tuple[int, ...] = (), *, libm: bool = False):
        """sizes: of the inputs; varying: indices of constants of the robot that are inputs, too; libm: see `Operations`."""
        self.ops, model, plant = Operations(libm, single=tables.single), tables.model, tables.plant
        self.inputs = {name: self.ops.inputs(name, size) for name, size in sizes.items()}
        self.motion, nq, nv, slots = traced_module("kernels.simulation.right_hand_side"), model.nq, model.nv, len(plant.slot_link)
        constants = traced_constants(self.ops, model, varying)
        if tables.varying:
            constants = constants.astype(object)
            constants[list(tables.varying)] = self.inputs["values"][-len(tables.varying):]
        self.tree = traced_module("joints.joint_model").tree_views(model.index, constants)
        thrusts = np.count_nonzero(tables.schedule.force_actuator >= 0)
        self.workspace = self.motion.MotionWorkspace(*map(zeros, (
            nq, nv, nv, nv, 6 * model.n_bodies if slots else 0, 6 * slots + thrusts, 3 + 3 * tables.signals.code.size, 2,
            coupled_motion_workspace_size(model.n_bodies, nv, plant.couplings), 2 * tables.law_states)))


class _ScenarioTracing(RhsTracing):
    """Tracing of a right-hand side. constraint_ws: size of the constraint workspace."""

    def __init__(self, tables: ScenarioTables, constraint_ws: int = 0, *, libm: bool = False):
        nq, n = tables.model.nq, 2 * tables.model.nv + tables.law_states + 1
        super().__init__(tables, {"t": 1, "q0": nq, "y": n, "curves": CURVE_COEFFICIENTS * len(tables.curves),
                                  "switches": tables.signals.switches.size, "values": len(tables.scenario_values)},
                         libm=libm)
        self.t, self.q0, self.y, self.dy = self.inputs["t"][0], self.inputs["q0"], self.inputs["y"], zeros(n)
        self.traced_tables = tables.traced_tables(self.inputs["values"], self.t, self.inputs["curves"], self.inputs["switches"])
        self.constraint_ws = self.ops.inputs(_WORKSPACE, constraint_ws)
        self.before = self.constraint_ws.copy()

    def trace(self, **results) -> Trace:
        """Return the trace. results: arrays by name; others are not written."""
        w = self.workspace
        sizes = {"q": w.q.size, "v": w.v.size, "a": w.v.size, "tau": w.v.size, "wrench": w.wrench.size, "dy": self.dy.size,
                 "status": 2, "readings": self.traced_tables.signals.switches.size // SWITCH_SIZE}
        arrays = [Array(name, x.size, (None,) * x.size) for name, x in self.inputs.items()]
        for name, size in sizes.items():
            new_entries = results.get(name, (None,) * size)
            arrays.append(Array(name, size, tuple(x if x is None or isinstance(x, Tracer) else float(x) for x in new_entries)))
        arrays.append(Array(_WORKSPACE, len(self.constraint_ws), new_values(self.before, self.constraint_ws)))
        return Trace(self.ops, tuple(arrays), tuple(angle_bounds(self.ops)), ())

    def motion_trace(self, code) -> Trace:
        """Return the trace that writes the motion, the rates, the code, and the arguments of switches."""
        w = self.workspace
        return self.trace(q=w.q, v=w.v, a=w.a, tau=w.tau, wrench=w.wrench, dy=self.dy, status=[code, w.flag[0]],
                          readings=self.traced_tables.signals.switches[SWITCH_VALUE::SWITCH_SIZE])


def trace_rhs(tables: ScenarioTables, *, libm: bool = False) -> Trace:
    """Trace the right-hand side of an open tree, see `GeneratedRhs`."""
    s = _ScenarioTracing(tables, libm=libm)
    return s.motion_trace(_trace_rates(s))


def _trace_rates(s: _ScenarioTracing):
    """Trace the rates of an open tree into s.dy. Return the code."""
    with np.errstate(all="ignore"):
        return s.motion.right_hand_side(s.tree, *s.traced_tables[1:4], s.t, s.q0, s.y, s.dy, s.workspace)


def trace_rhs_jacobian(tables: ScenarioTables) -> Trace:
    """Trace the derivatives of the rates of [x; v; z] along a direction.

    The direction is the input array `direction`; the derivatives are written to the array `by`. Raises NotTraceableError.
    """
    s = _ScenarioTracing(tables)
    _trace_rates(s)
    n = len(s.dy) - 1
    direction = s.ops.inputs("direction", n)
    by = tangent(s.ops, zip(s.y, direction, strict=False), [*s.dy[:n]])
    arrays = [Array(name, len(x), (None,) * len(x), True) for name, x in s.inputs.items() if len(x)]
    arrays += [Array("direction", n, (None,) * n), Array("by", n, tuple(by))]
    return Trace(s.ops, tuple(arrays), (), ())


def trace_constrained_rhs(tables: ScenarioTables) -> list[Trace]:
    """Return the traces for `address`, `second_address` and `projection_address` of a `GeneratedRhs`."""
    late = _ConstrainedTracing(tables)
    motion, back = late.trace_motion(), _ConstrainedTracing(tables).trace_projection()
    return [*split_trace(motion, {x.k for x in late.mechanism.constraint_ws.multipliers}, _WORKSPACE), back]


class _ConstrainedTracing(_ScenarioTracing):
    def __init__(self, tables: ScenarioTables):
        has_wrenches = len(tables.plant.slot_link) > 0
        super().__init__(tables, constraint_workspace_size(*constraint_workspace_dimensions(tables.model, has_wrenches), 0))
        self.mechanism = MechanismTracing(tables.model, self.tree, has_wrenches, self.constraint_ws)
        assert self.traced_tables.constraints is not None, "the scenario has constraints"
        self.constraints = self.traced_tables.constraints

    def trace_motion(self) -> Trace:
        """Return the trace of a whole right-hand side with the multipliers as inputs."""
        s, w, constraint_ws = self.motion, self.workspace, self.mechanism.constraint_ws
        _, plant, schedule, signals, *_ = self.traced_tables
        with np.errstate(all="ignore"):
            s.evaluate_inputs(self.tree, plant, schedule, signals, self.t, self.q0, self.y, w)
        self._move_drives()
        self.mechanism.constraint_ws = constraint_ws._replace(q=w.q, v=w.v, a=w.a, tau=w.tau, f_ext=w.F)
        passive = bool(plant.passive[0])
        self.mechanism.write("equations", plant.prescribed, self.constraints.stabilized, passive)
        self.mechanism.write("solution", plant.prescribed, passive)
        w.a[:], w.tau[:] = constraint_ws.out_a, constraint_ws.out_tau
        with np.errstate(all="ignore"):
            s.measure_stop_forces(plant.stops, signals, w)
            s.evaluate_events(schedule, signals, self.t, w)
        power = constraint_ws.power[0]
        for x, rate in zip(constraint_ws.multipliers, constraint_ws.constraint_motion_rate, strict=True):
            power = power + x * rate
        return self.motion_trace(s.store_rates(self.tree, plant, signals, self.y, constraint_ws.deficit[0], power, self.dy, w))

    def trace_projection(self) -> Trace:
        """Return the trace of `GeneratedRhs.projection_address`: q, v and the motion of driven loops, in the workspace."""
        w, nv, (_, _, schedule, signals, *_) = self.workspace, self.workspace.v.size, self.traced_tables
        with np.errstate(all="ignore"):
            traced_module("kernels.manifold").retract(self.tree, self.q0, self.y[:nv], w.q)
            w.v[:] = self.y[nv:2 * nv]
            w.flag[0] = -1.0
            self.motion.set_prescribed_state(schedule, signals, self.t, w.q, w.v, w)
        self._move_drives()
        self.mechanism.constraint_ws.q[:], self.mechanism.constraint_ws.v[:] = w.q, w.v
        return self.trace(status=[None, w.flag[0]])

    def _move_drives(self) -> None:
        constraints = SimpleNamespace(**self.constraints._asdict(),
                                      constraint_motion=self.mechanism.constraint_ws.constraint_motion)
        with np.errstate(all="ignore"):
            traced_module("kernels.simulation.right_hand_side").prescribe_loop_motion(
                self.traced_tables.signals, constraints, self.t, self.workspace)


# The derivative of the right-hand side with respect to the state, as generated code for implicit methods -----------------

# The rates are traced as for a `GeneratedRhs`, then their tangent along a direction of the state. Each direction is a state of
# a batch, so that directions are vectorized. The shared inputs, the state and the arrays of `GeneratedCall`, are read once.

_SHARED_INPUTS = "t", "q0", "y", "curves", "switches", "scenario_values"         # arguments of a `GeneratedRhs`


class RhsJacobian:
    """Jacobian of the right-hand side in one run.

    Called with a `kernels.simulation.rate_evaluation.GeneratedCall`, q0 and y, it returns the (n - 1, n - 1) derivative of the
    rates of [x; v; z] with respect to these, at the time and with the signals of the last call of the generated function.
    """

    def __init__(self, batch: GeneratedBatchFunction, n: int):
        self.batch, self.y, self.by, self.directions = batch, np.zeros(n), np.zeros((n - 1, n - 1)), np.eye(n - 1)
        self.workspace = cache_aligned(max(batch.workspace_size, 8))
        self.shared: tuple[Any, ...] = ()
        self.run: Callable[[int, int], int] | None = None

    def __call__(self, call, q0, y) -> np.ndarray:
        """Return the Jacobian, a view of an array that the next call overwrites."""
        if self.run is None or self.shared[0] is not call or self.shared[1] is not q0:
            self.shared, inputs = (call, q0), call._asdict() | {"q0": q0, "y": self.y}
            arrays = [*(inputs[name] for name in _SHARED_INPUTS), self.directions, self.by]
            self.run = self.batch.bind([x for x in arrays if x.size], self.workspace)        # addresses take 8 us
        self.y[:] = y
        self.run(0, len(self.by))
        return self.by.T


def generated_rhs_jacobian(tables: ScenarioTables) -> GeneratedBatchFunction | None:
    """Return the function for `RhsJacobian`, or None if it cannot be generated.

    Reasons are too many operations, a function without a known derivative, or an old LLVM.
    """
    if not is_enabled(tables.varying) or not tables.model.nv:
        return None
    place = cache_folder("kernels.simulation.right_hand_side.right_hand_side", "codegen.rhs")
    return load_or_build_batch_function(tables.model, place, tables.name("slopes", simd_width()),
                                        lambda: trace_rhs_jacobian(tables), MAX_SEGMENT_OPERATIONS)
