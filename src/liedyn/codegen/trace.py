"""Traces of kernels' entry points for one robot: their inputs, results and checks."""
from __future__ import annotations

import builtins
import inspect
import math
import types
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np

from liedyn.codegen import tracer
from liedyn.codegen.operations import OPERATIONS, c_math, quotient
from liedyn.codegen.trace_derivatives import adjoint
from liedyn.codegen.tracer import (
    NotTraceableError,
    Operand,
    Operations,
    SolvedUnknowns,
    Tracer,
    absolute,
    load,
    load_pose,
    maximum,
    object_array,
    operand,
    sincos,
    where_less,
    zeros,
)
from liedyn.kernels.couplings import NO_COUPLINGS
from liedyn.kernels.hybrid_dynamics import hybrid_workspace_size, mass_matrix_workspace_size
from liedyn.kernels.newton_euler import newton_euler_workspace_size
from liedyn.lie.simd import SINCOS_RANGE, SINGLE_SINCOS_RANGE
from liedyn.model.description import ONE_DOF, SINGULAR_PIVOT
from liedyn.numba_tools.compile_cache import source_path
from liedyn.numba_tools.numba_internals import split_workspace

# Rewrites with fewer operations -----------------------------------------------------------------------------------------

# Functions that replace those of kernels in a trace. Their results differ by rounding. The generic kernels would not gain by
# them.

# coordinates of a chain: up to here forward dynamics by the mass matrix is 10 to 20 % faster, from ten on slower
SHORT_CHAIN = 8


def complete_motion(traced_module, tree, prescribed, q, v, a, tau, f_ext, passive, workspace):      # noqa: PLR0913 - of the kernel
    """Replace `kernels.hybrid_dynamics.complete_motion`."""
    ops = next((x.ops for x in (*q, *v, *tau) if isinstance(x, Tracer)), None)
    if ops is None or ops.solved_unknowns is None or prescribed.all():
        return _hybrid_dynamics(traced_module, tree, prescribed, q, v, a, tau, f_ext, passive, workspace)
    return _implicit_hybrid_dynamics(traced_module, ops, tree, prescribed, q, v, a, tau, f_ext, passive, workspace)


def _hybrid_dynamics(traced_module, tree, prescribed, q, v, a, tau, f_ext, passive, workspace):     # noqa: PLR0913
    """Compute hybrid dynamics by the mass matrix if chains are short."""
    if _longest_chain(tree) > SHORT_CHAIN:
        return traced_module("kernels.hybrid_dynamics").hybrid(tree, prescribed, q, v, a, tau, f_ext, passive, workspace)
    kinematics, other = traced_module("kernels.kinematics"), traced_module("kernels.hybrid_dynamics")
    kinematics.joint_poses(tree, q, workspace.T)
    kinematics.body_twists(tree, workspace.T, v, workspace.V)
    room = zeros(mass_matrix_workspace_size(tree.parent.size, prescribed.size))
    return other.mass_matrix_hybrid(tree, NO_COUPLINGS, prescribed, q, v, a, tau, f_ext, passive,
                                    other.mass_matrix_workspace(room, prescribed.size))


def _implicit_hybrid_dynamics(traced_module, ops, tree, prescribed, q, v, a, tau, f_ext, passive, workspace):       # noqa: PLR0913
    """Return accelerations a_v that solve ID(q, v, a)_v = tau_v, where v is torque-specified.

    Let x = M_vv^-1 (derivatives of a cost with respect to a_v). The derivatives with respect to tau_v are x; those with respect
    to q, v and other inputs of ID are -x^T dID. This takes half the operations of a derivative of the solution's operations.
    """
    free, given_tau = np.flatnonzero(~prescribed), tau.copy()
    deficit = -1.0
    if ops.known_accelerations is None:
        deficit = _hybrid_dynamics(traced_module, tree, prescribed, q, v, a, tau, f_ext, passive, workspace)
    else:
        a[free] = ops.known_accelerations[free]
    # copies: each unknown belongs to one solution, even if evaluations share a result
    a[free] = object_array([ops.copy(x) for x in a[free]])
    inverse, nv, n = traced_module("kernels.newton_euler"), len(v), tree.parent.size
    force, bodies = zeros(nv), inverse.newton_euler_workspace(zeros(newton_euler_workspace_size(n, nv)), n, nv)
    inverse.newton_euler(tree, tree.J, q, v, a, f_ext, passive, force, bodies)
    workspace.V[:] = bodies.V
    tau[prescribed] = force[prescribed]
    still, at = tree._replace(dV0=zeros(6)), q.copy()                                      # copies: the arrays change later
    inputs = _strip_negations([*q, *v, *a[prescribed], *f_ext, *(x for part in tree for x in part)])
    ends = [*inputs, *a[free]]

    def back(shares):
        x, by = zeros(nv), zeros(nv)
        by[free] = object_array(shares)
        room = traced_module("kernels.hybrid_dynamics").hybrid_workspace(zeros(hybrid_workspace_size(n, nv)), n, nv)
        _hybrid_dynamics(traced_module, still, prescribed, at, zeros(nv), x, by, f_ext[:0], False, room)
        of_forces = adjoint(ops, [(force[k], -x[k]) for k in free], ends)
        return [*((given_tau[k], x[k]) for k in free), *((y, of_forces(y)) for y in inputs)]
    ops.solved_unknowns |= dict.fromkeys((x.k for x in a[free]), SolvedUnknowns(a[free], back))
    return deficit


def _strip_negations(values) -> list[Tracer]:
    """Return each operation once, x in place of -x."""
    recorded = (-x if x.is_negation else x for x in values if isinstance(x, Tracer))
    return list({x.k: x for x in recorded}.values())


def _longest_chain(tree) -> int:
    """Return the number of coordinates between the ground and the end of the longest chain."""
    depth: list[int] = []
    for above in tree.above:
        depth.append(1 + (depth[above] if above >= 0 else 0))
    return max(depth, default=0)


# The inertia beyond a screw is rotated about z and then placed in the parent. This takes a third of the operations of a general
# rotation, and placements consist of zeros and ones if axes are parallel or orthogonal. It saves 7 to 17 % of forward dynamics.
def inertia_to_parent(traced_module, tree, i, q, T, X):
    """Replace `joints.joint_model.inertia_to_parent`."""
    sym6_to_parent = traced_module("lie.inertia").sym6_to_parent
    if tree.kind[i] != ONE_DOF:
        return sym6_to_parent(T, X)
    (s, c), (A, H, M) = _joint_sincos(tree, i, q), X
    return sym6_to_parent((load_pose(tree.T0, i)[0], T[1]),
                          (_rotate_z_symmetric(s, c, A), _rotate_z(s, c, H), _rotate_z_symmetric(s, c, M)))


def rigid_to_parent(traced_module, tree, i, q, T, I):
    """Replace `joints.joint_model.rigid_to_parent`."""
    sym6_to_parent = traced_module("lie.inertia").rigid_to_parent
    if tree.kind[i] != ONE_DOF:
        return sym6_to_parent(T, I)
    (s, c), (m, h, A) = _joint_sincos(tree, i, q), I
    turned = m, (c * h[0] - s * h[1], s * h[0] + c * h[1], h[2]), _rotate_z_symmetric(s, c, A)
    return sym6_to_parent((load_pose(tree.T0, i)[0], T[1]), turned)


def _joint_sincos(tree, i, q):
    return sincos(load(tree.S, 2 * i) * load(q, tree.iq[i]))


def _rotate_z_symmetric(s, c, A):
    """Return R A R^T (xx, xy, xz, yy, yz, zz), where R rotates about z.

    With k = s (xx - yy) + 2 c xy, the other entries follow from c^2 + s^2 = 1.
    """
    k = s * (A[0] - A[3]) + 2.0 * c * A[1]
    return A[0] - s * k, c * k - A[1], c * A[2] - s * A[4], A[3] + s * k, s * A[2] + c * A[4], A[5]


def _rotate_z(s, c, H):
    """Return R H R^T by rows, as for a symmetric matrix with xy + yx in place of 2 xy."""
    k = s * (H[0] - H[4]) + c * (H[1] + H[3])
    return (H[0] - s * k, c * k - H[3], c * H[2] - s * H[5], c * k - H[1], H[4] + s * k, s * H[2] + c * H[5],
            c * H[6] - s * H[7], s * H[6] + c * H[7], H[8])


def rewrites(traced_module) -> dict[str, dict]:
    """Return the replacing functions by module and name."""
    return {"kernels.hybrid_dynamics": {"complete_motion": partial(complete_motion, traced_module)},
            "joints.joint_model": {f.__name__: partial(f, traced_module) for f in (inertia_to_parent, rigid_to_parent)}}


# The kernels as plain Python functions, run with tracers ----------------------------------------------------------------

# A kernel is written over *numbers*; decorators and three modules decide which. Here decorators return functions unchanged, the
# modules of numbers and views are replaced by plain ones, and the sources of algebra, joints and kernels are executed again in
# separate modules. Nothing of them is compiled.

SIMD_WIDTH = 8           # of `Lanes`: an entry point takes one step over the single state of a trace


def traced_module(name: str) -> types.ModuleType:
    """Return the module liedyn.`name` over tracers."""
    return _substitute_modules()[name] if name in _substitute_modules() else _execute_module(name)


@cache
def _execute_module(name: str) -> types.ModuleType:
    path = source_path(name)
    if path is None:
        raise ModuleNotFoundError(f"liedyn has no module {name}")
    module = types.ModuleType(f"liedyn.{name}")
    vars(module)["__builtins__"] = vars(builtins) | {"__import__": _import}
    exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), vars(module))
    replacements = REWRITES.get(name, {})
    if missing := replacements.keys() - vars(module).keys():
        raise AttributeError(f"REWRITES names functions that {name} does not have: {', '.join(sorted(missing))}")
    vars(module).update(replacements)
    return module


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    root, _, rest = name.partition(".")
    if root == "liedyn" and fromlist:
        return traced_module(rest)
    if root in ("numba", "llvmlite"):
        return _NUMBA_STUB
    return builtins.__import__(name, globals, locals, fromlist, level)


class _NumbaStub:
    """Replaces Numba while a module is executed: its decorators return functions unchanged."""

    def __getattr__(self, name): return self
    def __or__(self, other): return self

    def __call__(self, *args, **options):
        decorates = len(args) == 1 and not options and isinstance(args[0], types.FunctionType)
        return args[0] if decorates else self


_NUMBA_STUB = _NumbaStub()


def _identity_decorator(function):
    function.py_func = function
    return function


def _copy(values, to) -> None:
    to[:len(values)] = values[:len(to)]


def _pack(row, block) -> None:
    if len(row) != len(block):                 # wrong shapes: the generic kernels raise the error
        raise tracer.NotTraceableError
    block[:] = row


def _is_nonzero(x) -> bool:
    return isinstance(x, tracer.Tracer) or x != 0.0


_LIBM = "atan2", "exp", "log", "expm1", "log1p", "floor"               # functions of `lie.simd`


@cache
def _substitute_modules() -> dict[str, types.ModuleType]:
    """Return the modules that replace those with Numba."""
    names = "numba_tools.decorators", "numba_tools.numba_internals", "lie.simd", "numba_tools.deferred_kernels"
    decorators, views, lanes, deferred = (types.ModuleType(f"liedyn.{name}") for name in names)
    vars(decorators).update(dict.fromkeys(("array_at", "call_with_integers", "array_address"), _NUMBA_STUB))
    vars(decorators).update(dict.fromkeys(("inline_kernel", "ir_inline_kernel", "internal_kernel", "kernel", "ieee_inline_kernel",
                                           "jitable"), _identity_decorator),
                            compile_entry_point=_NUMBA_STUB, OPTIONS={}, entry_point=lambda *signatures,
                            **options: _identity_decorator)
    vars(views).update(split_workspace=split_workspace)
    known = {name: getattr(tracer, name) for name in (
        "load", "store", "number_like", "where_less", "maximum", "absolute", "sqrt", "sincos", "all_less")}
    vars(lanes).update(known, SIMD_WIDTH=SIMD_WIDTH, **{name: getattr(c_math, name) for name in _LIBM},
                       **dict.fromkeys(("Lanes", "lanes"), _NUMBA_STUB),
                       **dict.fromkeys(("lane", "with_lane", "simd_width", "nearest", "sincos_of_number"), tracer.not_traceable))
    vars(deferred).update(defer=lambda *_: None, call_deferred=lambda function, arguments: function(*arguments))
    return dict(zip(names, (decorators, views, lanes, deferred), strict=True))


# functions with a rewrite, and the few without a plain source, which access memory or belong to the C library
REWRITES = {
    **rewrites(traced_module),
    "lie.vectors": {"load_pose": tracer.load_pose},
    "kernels.batch_blocks": {"is_below": tracer.is_below, "all_finite": tracer.all_finite,
                             "all_finite_where": tracer.all_finite_where,
                             "states_per_block": lambda block: SIMD_WIDTH,
                             "load_block": lambda batch, row, block: _pack(batch[row], block),
                             "unpack_block": lambda block, batch, row: _copy(block, batch[row]),
                             "as_int64": lambda block: (np.zeros(block.size, dtype=np.int64),)},
    "kernels.simulation.signal_series": {"is_constant": lambda x: not any(_is_nonzero(y) for y in x[1:])},
    "kernels.simulation.signals": {"math": c_math, "floor": c_math.floor, "quotient": quotient,
                                   **{f.__name__: f for f in (tracer.load_entry, tracer.load_patch_entry, tracer.piece_number)}},
}


# Traces -----------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Array:
    """An array of an entry point: rows of `size` numbers, one per state.

    new_values  numbers of a state's row afterwards; None for those that do not change
    shared      one row for all states, which is read only
    blocks      whether a function for batches reads blocks (N / width, size, width) of states in place; otherwise rows (N, size)
    """

    name: str
    size: int
    new_values: tuple
    shared: bool = False
    blocks: bool = False

    @property
    def results(self) -> list:
        """Numbers that the function writes to the array."""
        return [x for x in self.new_values if x is not None]


@dataclass(frozen=True, eq=False)
class Trace:
    """The trace of a function for one robot.

    ops      its operations
    arrays   of the entry point, in its order, without empty ones
    bounds   (x, bound): if x < bound does not hold for a state, its results are meaningless and the code returns that
    finite   numbers that must be finite for a state; otherwise the same
    """

    ops: Operations
    arrays: tuple[Array, ...]
    bounds: tuple[tuple[Tracer, float], ...]
    finite: tuple[Tracer, ...]

    @cached_property
    def live_operations(self) -> list[int]:
        """Return the operations on which results and checks depend, in order."""
        results = [x for array in self.arrays for x in array.results]
        return self.ops.live_operations([*results, *(x for x, _ in self.bounds), *self.finite])

    @property
    def size(self) -> int:
        """Number of operations."""
        return len(self.live_operations)

    @property
    def cost(self) -> float:
        """Sum of the costs of the operations, see `operations.Operation`."""
        names = (self.ops.operations[k][0] for k in self.live_operations)
        return sum(OPERATIONS[name].cost for name in names if name != "input")

    @property
    def live_numbers(self) -> int:
        """Maximum number of numbers that are needed later, over all operations in their order."""
        last = {x: k for k in self.live_operations for x in self.ops.operand_indices(k)}
        last |= {x: -1 for x, *_ in self.outputs if isinstance(x, int)}
        ends = Counter(last.values())
        counts = accumulate(1 - ends[k] for k in self.live_operations)
        return max(counts, default=0)

    @property
    def input_arrays(self) -> list[Array]:
        """Return the arrays that are read."""
        names = {self.ops.operations[k][1] for k in self.live_operations if self.ops.operations[k][0] == "input"}
        return [array for array in self.arrays if array.name in names]

    @property
    def outputs(self) -> list[tuple[Operand, str, int]]:
        """Return (operation or constant, array, place) of each number that is written."""
        return [(operand(x), array.name, i) for array in self.arrays for i, x in enumerate(array.new_values) if x is not None]

    def dependent_operations(self, inputs: set[int]) -> set[int]:
        """Return the inputs (operations), and the operations that depend on them."""
        dependent = set(inputs)
        for k in self.live_operations:
            if not dependent.isdisjoint(self.ops.operand_indices(k)):
                dependent.add(k)
        return dependent


@dataclass(frozen=True, eq=False)
class GeneratedProgram:
    """Traces that are called consecutively for the same states, so that repeated operations are one piece of code.

    arrays          of the caller
    calls           traces, each with new names of its arrays in the program; arrays of new names are passed on by the program
    repeated        calls that follow these, `repetitions` times
    per_repetition  names of arrays of the caller that have `size` numbers for each repetition
    own_precision   whether arrays of the caller have the precision of the traces; otherwise they are of float64
    """

    arrays: tuple[Array, ...]
    calls: tuple[tuple[Trace, dict[str, str]], ...]
    repeated: tuple[tuple[Trace, dict[str, str]], ...] = ()
    repetitions: int = 1
    per_repetition: frozenset[str] = frozenset()
    own_precision: bool = False

    @property
    def all_calls(self) -> tuple[tuple[Trace, dict[str, str]], ...]:
        """All calls, in their order; repeated ones once."""
        return *self.calls, *self.repeated

    @property
    def traces(self) -> list[Trace]:
        """Return each trace once."""
        calls = self.all_calls
        return [trace for k, (trace, _) in enumerate(calls) if all(trace is not earlier for earlier, _ in calls[:k])]

    @property
    def size(self) -> int:
        """Number of operations of all traces, each once."""
        return sum(trace.size for trace in self.traces)


def single_call(trace: Trace, own_precision: bool = False) -> GeneratedProgram:
    """Return a program that consists of one trace."""
    return GeneratedProgram(trace.arrays, ((trace, {}),), own_precision=own_precision)


class BatchArray(NamedTuple):
    """An array of states (N, …) among the arguments of an entry point. shape: of one state."""

    shape: tuple[int, ...]


class Specialization(NamedTuple):
    """A function to be generated: the arguments of an entry point except the numbers of its states.

    entry_point  module and name below liedyn
    size         numbers of workspace for one state
    leading_arguments  arguments between workspace and arrays of states
    arrays       `BatchArray` for an array of states, else the argument
    varying      indices of the model's constants that differ between states: the last array of the generated function
    zero         names of arrays whose numbers are zero: they are no arrays of the generated function
    """

    entry_point: str
    size: int
    leading_arguments: tuple
    arrays: tuple
    varying: tuple[int, ...] = ()
    zero: tuple[str, ...] = ()

    @property
    def content(self) -> tuple:
        """Return the fields that identify the function."""
        return self.entry_point, tuple(map(_content, self.leading_arguments)), self.arrays, self.varying, self.zero


def _content(x):
    return (x.shape, x.tobytes()) if isinstance(x, np.ndarray) else x


def make_trace(model, specialization: Specialization, libm: bool = False, single: bool = False) -> Trace | None:
    """Return the trace, or None if the entry point branches on numbers. libm, single: see `Operations`.

    With `single`, the last array is `STATUS`.
    """
    if any(isinstance(x, BatchArray) and len(x.shape) != 1 for x in specialization.arrays):     # an axis of directions
        return None
    ops, (module, name) = Operations(libm, single), specialization.entry_point.rsplit(".", 1)
    try:
        function = getattr(traced_module(module), name)
        names = list(inspect.signature(function).parameters)[3 + len(specialization.leading_arguments):]
        rows = [_row(ops, names[k], x, names[k] in specialization.zero) for k, x in enumerate(specialization.arrays)]
        inputs = [x.copy() if isinstance(x, np.ndarray) else x for x in rows]
        constants = traced_constants(ops, model, specialization.varying)
        code = function(model.index, constants, zeros(specialization.size), *specialization.leading_arguments, *rows, 0, 1)
    except (NotTraceableError, ZeroDivisionError):                    # 0/0 of constants, NaN in kernels: the centre of no mass
        return None
    if code != 0 or not any(isinstance(x, np.ndarray) and x.size for x in rows):     # wrong shapes; a robot without coordinates
        return None
    arrays = [Array(names[k], x.size, new_values(inputs[k].flat, x.flat))
              for k, x in enumerate(rows) if isinstance(x, np.ndarray) and x.size and names[k] not in specialization.zero]
    if specialization.varying:
        arrays.append(Array(VARYING, len(specialization.varying), (None,) * len(specialization.varying), blocks=True))
    trace = Trace(ops, tuple(arrays), (*_merge_bounds(ops.bounds), *angle_bounds(ops)), tuple(ops.finite.values()))
    return _with_status(trace) if single else trace


VARYING = "varying"


def traced_constants(ops: Operations, model, varying: tuple[int, ...]) -> np.ndarray:
    """Return the constants of the robot; those at the indices `varying` are inputs. In single precision, floors are higher."""
    constants = model.constants
    if ops.single:
        constants = constants.copy()
        traced_module("joints.joint_model").tree_views(model.index, constants).floor[:] *= _SINGLE_PIVOT / SINGULAR_PIVOT
    if not varying:
        return constants
    constants = constants.astype(object)
    constants[list(varying)] = ops.inputs(VARYING, len(varying))
    return constants


def folded_constants(model, varying: tuple[int, ...]) -> bytes:
    """Return the constants of the robot that are part of generated code: all but those at the indices `varying`."""
    return np.delete(model.constants, varying).tobytes()


def _row(ops, name, x, is_zero):
    if not isinstance(x, BatchArray):
        return x
    return (zeros(prod(x.shape)) if is_zero else ops.inputs(name, prod(x.shape))).reshape(1, *x.shape)


def new_values(before, after) -> tuple:
    """Return the values of an array afterwards, None for those that do not change."""
    return tuple(None if x is y else y if isinstance(y, Tracer) else float(y) for x, y in zip(before, after, strict=True))


def _merge_bounds(bounds) -> list:
    """Return one bound for the maximum of the numbers with the same bound, which takes one comparison."""
    largest: dict[float, Tracer] = {}
    for x, bound in bounds:
        largest[bound] = maximum(x, largest[bound]) if bound in largest else x
    return [(x, bound) for bound, x in largest.items()]


def angle_bounds(ops: Operations) -> list:
    """Return bounds of angles, for which sine and cosine are valid."""
    largest = 0.0
    for x in ops.angles:
        largest = maximum(absolute(x), largest)
    return [] if isinstance(largest, float) else [(largest, SINGLE_SINCOS_RANGE if ops.single else SINCOS_RANGE)]


# Single precision ---------------------------------------------------------------------------------------------------------

# Pivots below this part of the inertia that they are made of are differences with few digits: an error of 6e-8 of the inertia is
# 1e-3 of the pivot.
_SINGLE_PIVOT = 1e-4
SINGLE_UNIT = 1e-5                     # maximum difference between |quaternion|^2 and 1: seven digits
SINGLE_NORMAL = 1.1754943508222875e-38  # smallest normal number: a test for zero
STATUS = "status"                       # array with one number for each state: 1 if its results are valid, else 0


def single_bound(bound: float) -> float:
    """Return a bound of a trace for single precision."""
    return SINGLE_NORMAL if 0.0 < bound < SINGLE_NORMAL else max(bound, SINGLE_UNIT)


def single_constant(x: float) -> float:
    """Return a constant rounded to float32. Thresholds next to zero stay positive."""
    with np.errstate(over="ignore"):
        return math.copysign(max(abs(float(np.float32(x))), SINGLE_NORMAL if x else 0.0), x)


def _with_status(trace: Trace) -> Trace:
    """Return the trace with the array `STATUS` in place of checks: a state that fails does not end the batch."""
    return Trace(trace.ops, (*trace.arrays, Array(STATUS, 1, (validity(trace),))), (), ())


def validity(trace: Trace) -> Tracer | float:
    """Return 1 for a state that passes the checks of the trace, else 0."""
    ops, totals = trace.ops, [0.0] * 4                              # four: additions to the same sum would wait for each other
    for x in trace.finite:                                          # 0 x is 0 or NaN; `fmul` of Python would leave it out
        totals = [*totals[1:], totals[0] + ops.emit("fmul", x.k, 0.0)]
    valid = where_less(sum(totals[1:], totals[0]), 1.0, 1.0, 0.0)
    for x, bound in trace.bounds:
        valid = where_less(x, single_bound(bound) if ops.single else bound, valid, 0.0)
    return valid


def split_trace(trace: Trace, late: set[int], array: str, late_arrays: Collection[str] = ()) -> list[Trace]:
    """Return a trace in two parts: operations that depend on none of the inputs `late` (operations), and the others.

    The first part leaves the numbers that the second needs at the end of an array, which is added if there is none of that name.
    The second part writes all results of `late_arrays`, also those that do not depend on the inputs.
    """
    ops, late_operations = trace.ops, trace.dependent_operations(late)
    used = {x for k in late_operations for x in ops.operand_indices(k)} | {
        x.k for y in trace.arrays if y.name in late_arrays for x in y.results if isinstance(x, Tracer)}
    arrays = list(trace.arrays)
    if array not in [x.name for x in arrays]:
        arrays.append(Array(array, 0, ()))
    place = next(i for i, x in enumerate(arrays) if x.name == array)
    size = arrays[place].size
    intermediate = sorted(k for k in used - late_operations if ops.operations[k][0] != "input")
    second = Operations()
    second.operations = list(ops.operations)
    for i, k in enumerate(intermediate):
        second.operations[k] = "input", array, size + i

    def part(is_late: bool) -> list[Array]:
        def part_value(x, is_late_array: bool):
            return x if (is_late_array or (isinstance(x, Tracer) and x.k in late_operations)) == is_late else None
        return [replace(x, new_values=tuple(part_value(y, x.name in late_arrays) for y in x.new_values)) for x in arrays]

    parts = part(False), part(True)
    for half, is_writer in zip(parts, (True, False), strict=True):
        values = tuple(Tracer(ops, k) if is_writer else None for k in intermediate)
        half[place] = replace(half[place], size=size + len(intermediate), new_values=half[place].new_values + values)
    return [Trace(ops, tuple(parts[0]), trace.bounds, trace.finite), Trace(second, tuple(parts[1]), (), ())]


_INTERMEDIATE = "intermediate"   # array of results of single calls that repeated calls read


def repeat_program(program: GeneratedProgram, names: Collection[str], repetitions: int) -> GeneratedProgram:
    """Return the program for several values of its arrays `names` in each state.

    What does not depend on these is computed once.
    """
    late, calls, repeated = set(names), [], []
    halves: dict[tuple[int, frozenset[str]], list[Trace]] = {}
    for n, (trace, renamed) in enumerate(program.calls):
        late_arrays = frozenset(x.name for x in trace.arrays if renamed.get(x.name, x.name) in late)
        inputs = {k for k in trace.live_operations if trace.ops.operations[k][0] == "input"
                  and trace.ops.operations[k][1] in late_arrays}
        if not inputs:
            calls.append((trace, renamed))
            continue
        if (id(trace), late_arrays) not in halves:
            dependent = trace.dependent_operations(inputs)
            written = {x.name for x in trace.arrays if any(isinstance(y, Tracer) and y.k in dependent for y in x.results)}
            halves[id(trace), late_arrays] = split_trace(trace, inputs, _INTERMEDIATE, late_arrays | written)
        first, second = halves[id(trace), late_arrays]
        late |= {renamed.get(x.name, x.name) for x in second.arrays if x.results}
        all_renamed = renamed | {_INTERMEDIATE: f"{_INTERMEDIATE}{n}"}
        if any(x.results for x in first.arrays):
            calls.append((first, all_renamed))
        repeated.append((second, all_renamed))
    return GeneratedProgram(program.arrays, tuple(calls), tuple(repeated), repetitions, frozenset(names))
