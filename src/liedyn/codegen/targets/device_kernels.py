"""Kernels for devices, with one work item for each state: OpenCL C of any program, and PTX of a trace by LLVM.

A kernel has the arguments n (number of states); for each input a pointer and, in numbers, the place of the first number, the
distance between states, and that between the numbers of a state; and a pointer for each result. Results of states that are not
valid are NaN: an input or a result is not finite, a quaternion is not of unit norm, or an articulated inertia vanishes.
"""
from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import llvmlite
import llvmlite.binding as llvm

from liedyn.codegen.operations import LIBM, OPERATIONS
from liedyn.codegen.targets.c99 import CExpressions, program_functions
from liedyn.codegen.targets.llvm_ir import OK, Vector, pointers_text
from liedyn.codegen.targets.target import UnsupportedOperationError
from liedyn.codegen.trace import STATUS, GeneratedProgram, Trace, single_bound, single_call
from liedyn.errors import UsageError
from liedyn.kernels.batch_blocks import QUATERNION_TOLERANCE
from liedyn.kernels.simulation.right_hand_side import AT_EVENT

NUMBERS = {"float64": "double", "float32": "float"}


# OpenCL C -------------------------------------------------------------------------------------------------------------------

_QUADRANT = """
static {0} quadrant({0} turns, {0} even, {0} odd, int shift)
{{
    const {1} n = as_{1}(turns);
    const {0} x = n & 1 ? odd : even;
    return (n + shift) & 2 ? -x : x;
}}"""
_INTEGERS = {"double": "long", "float": "int"}             # of the size of a number


class OpenClExpressions(CExpressions):
    """Operations in OpenCL C, in which a function has the same name for all types."""

    def __init__(self, suffix: str = ""):
        super().__init__(suffix)
        self.table = {**self.table, **{name: f"{name}({', '.join(['{}'] * (OPERATIONS[name].arity or 1))})"
                                       for name in ("fabs", "sqrt", *LIBM)}}


class RolloutPrograms(NamedTuple):
    """What a rollout consists of.

    step         a `BatchStep.step` without curves
    values       its array `values`, of which the first `forces` numbers are those of tau in each step
    quaternions  their first numbers in q; runs with one that is not of unit norm are NaN
    readings     values of the events at a state, see `trace_event_values`; None without events
    """

    step: GeneratedProgram
    values: Sequence[float]
    forces: int
    quaternions: Sequence[int]
    readings: GeneratedProgram | None


class AdjointPrograms(NamedTuple):
    """What the adjoint of a rollout consists of.

    back        `trace_adjoint_step`
    gradient    derivatives `numbers` with respect to the numbers of q from tangent ones `d_q`
    tangent     tangent derivatives `q0` from those `by_q` with respect to the numbers of q
    values, forces   as in `RolloutPrograms`
    constants   of the robot that vary
    rates       (parameters, constants) their derivatives with respect to parameters
    """

    back: GeneratedProgram
    gradient: GeneratedProgram
    tangent: GeneratedProgram
    values: Sequence[float]
    forces: int
    constants: Sequence[float]
    rates: Sequence[Sequence[float]]


class _Kernel:
    """The text of a kernel: arrays of a state are private arrays of the names that they have in programs."""

    def __init__(self, programs: Mapping[str, GeneratedProgram], dtype: str):
        self.number, self._suffix = NUMBERS[dtype], "f" if dtype == "float32" else ""
        self.constant = OpenClExpressions(self._suffix).constant
        self._programs = {name: [x.name for x in program.arrays if x.size and x.name != "code"]
                          for name, program in programs.items()}
        self.sizes = {x.name: x.size for program in programs.values() for x in program.arrays if x.size and x.name != "code"}
        self._functions = [*([] if self._suffix else ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"]),
                           _QUADRANT.format(self.number, _INTEGERS[self.number]),
                           *(line for name, program in programs.items() for line in program_functions(
                               program, name, lambda: OpenClExpressions(self._suffix), self.number))]
        self.is_valid = f"!code && {STATUS}[0] > 0" if STATUS in self.sizes else "!code"
        self.lines: list[str] = []

    def read(self, array: str, size: int, to: str = "", more: str = "") -> None:
        """Add statements that read an input of the caller to an array, by default that of its name.

        more  added to the place of its first number
        """
        self.lines.append(f"    first = {array}_at + i * {array}_state{more};")
        self.lines += [f"    {to or array}[{k}] = {array}_of[first + {k} * {array}_number];" for k in range(size)]

    def write(self, result: str, array: str, size: int, place: str = "{}", condition: str = "") -> None:
        """Add statements that write an array to a result; NaN where a condition is false, by default `is_valid`.

        place  of its number k, in numbers of all states
        """
        self.lines += [f"    {result}_of[i + n * ({place.format(k)})] = {condition or self.is_valid} ? {array}[{k}] : NAN;"
                       for k in range(size)]

    def set(self, **arrays: Iterable[float]) -> None:
        """Add statements that set arrays to constants."""
        self.lines += [f"    {name}[{k}] = {self.constant(x)};" for name, constants in arrays.items()
                       for k, x in enumerate(constants) if name in self.sizes]

    def copy(self, array: str, to: str) -> None:
        """Add statements that copy an array."""
        self.lines += [f"    {to}[{k}] = {array}[{k}];" for k in range(self.sizes.get(array, 0))]

    def call(self, name: str) -> None:
        """Add the call of a program."""
        self.lines.append(f"    code = {name}({', '.join(self._programs[name])});")

    def text(self, name: str, counts: Sequence[str], inputs: Iterable[str], results: Iterable[str]) -> str:
        """Return the text. counts: arguments after the number of states."""
        place = "const long {0}_at, const long {0}_state, const long {0}_number"
        arguments = ["const long n", *counts, *(f"global const {self.number} *{x}_of, {place.format(x)}" for x in inputs),
                     *(f"global {self.number} *{x}_of" for x in results)]
        declared = [f"    {self.number} {array}[{size}];" for array, size in self.sizes.items()]
        return "\n".join([*self._functions, "", f"kernel void {name}({', '.join(arguments)})", "{",
                          "    const long i = get_global_id(0);", "    long first;", "    int code;", "    if (i >= n) return;",
                          *declared, *self.lines, "}"]) + "\n"


def opencl_text(trace: Trace, name: str, inputs: Mapping[str, int], results: Mapping[str, Sequence[int]], dtype: str) -> str:
    """Return the text of a kernel.

    inputs   arrays that are read, and their sizes
    results  arrays that are written, and the places of their numbers: number k of state i is at `i + n places[k]`
    """
    kernel = _Kernel({"compute": single_call(trace)}, dtype)
    for array, size in inputs.items():
        kernel.read(array, size)
    kernel.call("compute")
    for array, places in results.items():
        kernel.lines += [f"    {array}_of[i + n * {at}] = {kernel.is_valid} ? {array}[{k}] : NAN;" for k, at in enumerate(places)]
    return kernel.text(name, (), inputs, results)


def opencl_programs_text(programs: RolloutPrograms | AdjointPrograms, dtype: str) -> tuple[str, str]:
    """Return the name and the text of the kernel of rollouts or of their adjoint."""
    if isinstance(programs, AdjointPrograms):
        return "adjoint", opencl_adjoint_text(programs, dtype)
    return "rollout", opencl_rollout_text(programs, dtype)


_HALVINGS = {"float64": 44, "float32": 20}                 # of a step in which an event happens


def opencl_rollout_text(rollout: RolloutPrograms, dtype: str) -> str:
    """Return kernel rollout(n, steps, dt, tau_step, q …, v …, tau …, q_out, v_out[, stopped, q_end, v_end]) for n runs.

    It writes the states before each step and after the last, in Fortran order, (n, steps + 1, coordinates). After a step that
    fails, and after an event, they are NaN. With events, it writes the time of the first event (NaN: none), and the state at
    that time or at the end.

    tau_step  distance in tau between steps, 0 for the same forces in all
    """
    readings = rollout.readings
    kernel = _Kernel({"step_once": rollout.step} | ({"read_events": readings} if readings else {}), dtype)
    sizes, events = kernel.sizes, kernel.sizes.get("reading", 0)
    state = {"q": sizes["q"], "v": sizes["v"]}
    for array, size in state.items():
        kernel.read(array, size)
    work = [0.0] * sizes["work"]
    work[1 + events:1 + 3 * events] = [math.nan] * 2 * events
    kernel.set(values=rollout.values, work=work, clock=[0.0] * 4)
    if readings:
        kernel.call("read_events")
        kernel.lines += [f"    work[{1 + k}] = reading[{k}] > 0 ? 1 : reading[{k}] < 0 ? -1 : 0;" for k in range(events)]
        kernel.lines += [f"    {kernel.number} {x}_0[{sizes[x]}];" for x in (*state, "work")]
        kernel.lines.append(f"    {kernel.number} stopped = NAN;")
    kernel.lines.append("    code = 0;")
    bound = kernel.constant(single_bound(QUATERNION_TOLERANCE) if dtype == "float32" else QUATERNION_TOLERANCE)
    for first in rollout.quaternions:
        square = " + ".join(f"q[{k}] * q[{k}]" for k in range(first, first + 4))
        kernel.lines.append(f"    if (!(fabs({square} - 1) < {bound})) code = 1;")
    kernel.lines += ["    for (long s = 0; ; s++) {"]
    for array, size in state.items():
        kernel.write(f"{array}_out", array, size, "s + (steps + 1) * {}")
    kernel.lines += ["    if (s == steps) break;", "    if (code) continue;", f"    const {kernel.number} t = s * dt;"]
    kernel.read("tau", rollout.forces, "values", " + s * tau_step")
    kernel.lines += _set_clock("dt")
    kernel.call("step_once")
    if readings:
        _locate_event(kernel, _HALVINGS[dtype])
    kernel.lines.append("    }")
    if readings:
        kernel.lines.append("    stopped_of[i] = stopped;")
        for array, size in state.items():
            kernel.write(f"{array}_end", array, size, condition=f"!code || code == {AT_EVENT}")
    return kernel.text("rollout", ("const long steps", f"const {kernel.number} dt", "const long tau_step"), (*state, "tau"),
                       [f"{x}_out" for x in state] + (["stopped", "q_end", "v_end"] if readings else []))


def _set_clock(length: str) -> list[str]:
    """Return statements that set the clock of a step of this length at t."""
    half = f"t + {length} / 2"
    return [f"    clock[{k}] = {x};" for k, x in enumerate((length, "t", half, f"t + {length}"))]


def _locate_event(kernel: _Kernel, halvings: int) -> None:
    """Add statements that move a run to the event within a step, by halving: a step with an event leaves the state as it was."""
    state = "q", "v", "work"
    kernel.lines += [f"    if (code == {AT_EVENT}) {{", f"    {kernel.number} low = 0, high = dt;"]
    for x in state:
        kernel.copy(x, f"{x}_0")
    kernel.lines += [f"    for (int j = 0; j <= {halvings} && (!code || code == {AT_EVENT}); j++) {{",
                     f"    const {kernel.number} part = j < {halvings} ? (low + high) / 2 : low;", *_set_clock("part")]
    kernel.call("step_once")
    kernel.lines += [f"    if (j == {halvings}) break;", f"    if (code == {AT_EVENT}) {{ high = part; continue; }}",
                     "    low = part;"]
    for x in state:
        kernel.lines += [f"    {x}[{k}] = {x}_0[{k}];" for k in range(kernel.sizes[x])]
    kernel.lines += ["    }", f"    if (!code || code == {AT_EVENT}) {{ stopped = t + high; code = {AT_EVENT}; }}", "    }"]


def opencl_adjoint_text(adjoint: AdjointPrograms, dtype: str) -> str:
    """Return kernel adjoint(n, steps, dt, tau_step, …, q …, v …, tau …, d_q …, d_v …, q0, v0, tau, parameters) for n runs.

    The inputs are the states of a rollout, its forces, and derivatives of a cost with respect to each state, tangent for q.
    The results are derivatives with respect to the initial state, forces of steps (n, steps, forces) and parameters. Those of
    runs with a state that is not finite are NaN.

    …_step  distance in an input between steps
    """
    kernel = _Kernel({"back": adjoint.back, "gradient": adjoint.gradient, "tangent": adjoint.tangent}, dtype)
    sizes, inputs = kernel.sizes, ("q", "v", "tau", "d_q", "d_v")
    nv, varying = sizes["v"], sizes.get("varying", 0)
    kernel.set(values=adjoint.values, work=[0.0] * sizes["work"], by_q=[0.0] * sizes["q"], by_v=[0.0] * nv,
               varying=adjoint.constants)
    kernel.lines += [f"    {kernel.number} d_v[{nv}];", "    int failed = 0;"]
    if varying:
        kernel.lines.append(f"    {kernel.number} total[{varying}] = {{0}};")
    kernel.lines += ["    for (long s = steps; ; s--) {"]
    kernel.read("q", sizes["q"], more=" + s * q_step")
    for array in ("d_q", "d_v"):
        kernel.read(array, nv, more=f" + s * {array}_step")
    kernel.call("gradient")
    kernel.lines += [*(f"    by_q[{k}] += numbers[{k}];" for k in range(sizes["q"])),
                     *(f"    by_v[{k}] += d_v[{k}];" for k in range(nv)), "    if (s == 0) break;",
                     f"    const {kernel.number} t = (s - 1) * dt;"]
    for array in ("q", "v"):
        kernel.read(array, sizes[array], more=f" + (s - 1) * {array}_step")
    kernel.read("tau", adjoint.forces, "values", " + (s - 1) * tau_step")
    kernel.lines += _set_clock("dt")
    kernel.call("back")
    kernel.lines += ["    failed |= code != 0;", *(f"    total[{k}] += by_varying[{k}];" for k in range(varying))]
    kernel.write("by_tau", "by_values", adjoint.forces, "s - 1 + steps * {}", "!failed")
    kernel.lines.append("    }")
    kernel.call("tangent")
    kernel.write("by_q0", "q0", nv, condition="!failed")
    kernel.write("by_v0", "by_v", nv, condition="!failed")
    for k, row in enumerate(adjoint.rates):
        products = " + ".join(f"total[{j}] * {kernel.constant(x)}" for j, x in enumerate(row) if x) or "0"
        kernel.lines.append(f"    by_parameters_of[i + n * {k}] = !failed ? {products} : NAN;")
    counts = "const long steps", f"const {kernel.number} dt", *(f"const long {x}_step" for x in ("tau", "q", "v", "d_q", "d_v"))
    return kernel.text("adjoint", counts, inputs, ["by_q0", "by_v0", "by_tau", *(["by_parameters"] if adjoint.rates else [])])


# CUDA C++ -------------------------------------------------------------------------------------------------------------------

# what OpenCL C has and CUDA C++ has not, for NVRTC with --device-as-default-execution-space
_CUDA_HEAD = """
#define get_global_id(k) ((long)blockIdx.x * blockDim.x + threadIdx.x)
#define as_long(x) __double_as_longlong(x)
#define as_int(x) __float_as_int(x)
#ifndef NAN
#define NAN __int_as_float(0x7fc00000)
#define INFINITY __int_as_float(0x7f800000)
#endif
"""


def cuda_text(text: str) -> str:
    """Return a kernel of OpenCL C as CUDA C++."""
    lines = [line for line in text.splitlines() if not line.startswith("#pragma OPENCL")]
    text = "\n".join(lines).replace("kernel void ", 'extern "C" __global__ void ')
    return _CUDA_HEAD + re.sub(r"\bglobal ", "", text) + "\n"


# PTX ------------------------------------------------------------------------------------------------------------------------

_TRIPLE, _PTX_VERSION = "nvptx64-nvidia-cuda", "+ptx80"
_NAN = "0x7FF8000000000000"
_REGISTERS = "tid", "ctaid", "ntid"             # place in the block, block, and size of a block
_THREAD = ["%i0 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()", "%i1 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
           "%i2 = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()", "%i3 = zext i32 %i0 to i64", "%i4 = zext i32 %i1 to i64",
           "%i5 = zext i32 %i2 to i64", "%i6 = mul i64 %i4, %i5", "%i = add i64 %i6, %i3"]


def ptx(trace: Trace, name: str, inputs: Mapping[str, int], results: Mapping[str, Sequence[int]], processor: str) -> str:
    """Return a kernel in the assembly language of GPUs by NVIDIA. processor: such as "sm_90".

    The trace computes sine and cosine itself; see `opencl_text` for other arguments.

    Raises UnsupportedOperationError for other functions of the C library, which drivers do not have.
    """
    if missing := {trace.ops.operations[k][0] for k in trace.live_operations}.intersection(LIBM):
        raise UnsupportedOperationError(f"PTX has no operation {min(missing)}")
    text = pointers_text(trace).replace("define i64 @one(", "define internal i64 @one(")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(_TRIPLE).create_target_machine(cpu=processor, features=_PTX_VERSION, opt=3)
    whole = "\n".join([f'target triple = "{_TRIPLE}"', text, *_ptx_kernel(trace, name, inputs, results)])
    try:
        module = llvm.parse_assembly(whole)
    except RuntimeError:
        raise UsageError(f"PTX requires a newer version of llvmlite: expected 0.44, got {llvmlite.__version__}") from None
    module.data_layout = str(machine.target_data)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    assembly: str = machine.emit_assembly(module)
    return assembly


def _ptx_kernel(trace: Trace, name: str, inputs: Mapping[str, int], results: Mapping[str, Sequence[int]]) -> list[str]:
    """Return LLVM text of a kernel that calls @one. Once this is inlined, arrays of a state are registers."""
    far, number, align = "ptr addrspace(1)", Vector(1, trace.ops.single).number, Vector(1, trace.ops.single).size
    arrays = {x.name: x.size for x in trace.arrays}
    arguments = ["i64 %n", *(f"{far} %{x}_of, i64 %{x}_at, i64 %{x}_state, i64 %{x}_number" for x in inputs),
                 *(f"{far} %{x}_of" for x in results)]
    lines = [*(f"declare i32 @llvm.nvvm.read.ptx.sreg.{x}.x()" for x in _REGISTERS),
             f"define ptx_kernel void @{name}({', '.join(arguments)}) {{", *_THREAD,
             *(f"%{x} = alloca [{max(1, size)} x {number}], align {align}" for x, size in arrays.items()),
             "%is_state = icmp slt i64 %i, %n", "br i1 %is_state, label %body, label %end", "body:"]
    for x, size in inputs.items():
        lines += [f"%{x}_far = mul i64 %i, %{x}_state", f"%{x}_first = add i64 %{x}_at, %{x}_far"]
        for k in range(size):
            lines += [f"%{x}_step{k} = mul i64 %{x}_number, {k}", f"%{x}_place{k} = add i64 %{x}_first, %{x}_step{k}",
                      f"%{x}_from{k} = getelementptr {number}, {far} %{x}_of, i64 %{x}_place{k}",
                      f"%{x}_value{k} = load {number}, {far} %{x}_from{k}, align {align}",
                      f"%{x}_to{k} = getelementptr {number}, ptr %{x}, i64 {k}",
                      f"store {number} %{x}_value{k}, ptr %{x}_to{k}, align {align}"]
    pointers = ", ".join(f"ptr %{x}" for x in arrays)
    lines += [f"%code = call i64 @one({pointers})",
              *([f"%status_of_state = load {number}, ptr %{STATUS}", f"%is_valid = fcmp ogt {number} %status_of_state, 0.0"]
                if STATUS in arrays else [f"%is_valid = icmp eq i64 %code, {OK}"])]
    for x, places in results.items():
        for k, place in enumerate(places):
            lines += [f"%{x}_result{k} = getelementptr {number}, ptr %{x}, i64 {k}",
                      f"%{x}_number{k} = load {number}, ptr %{x}_result{k}, align {align}",
                      f"%{x}_valid{k} = select i1 %is_valid, {number} %{x}_number{k}, {number} {_NAN}",
                      f"%{x}_row{k} = mul i64 %n, {place}", f"%{x}_index{k} = add i64 %{x}_row{k}, %i",
                      f"%{x}_out{k} = getelementptr {number}, {far} %{x}_of, i64 %{x}_index{k}",
                      f"store {number} %{x}_valid{k}, {far} %{x}_out{k}, align {align}"]
    return [*lines, "br label %end", "end:", "ret void", "}"]
