"""Kernels for devices, with one work item for each state: OpenCL C of any program, and PTX of a trace by LLVM.

A kernel has the arguments n (number of states); for each input a pointer and, in numbers, the place of the first number, the
distance between states, and that between the numbers of a state; and a pointer for each result. Results of states that are not
valid are NaN: an input or a result is not finite, a quaternion is not of unit norm, or an articulated inertia vanishes.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import llvmlite.binding as llvm

from liedyn.codegen.operations import LIBM, OPERATIONS
from liedyn.codegen.targets.c99 import CExpressions, program_functions
from liedyn.codegen.targets.llvm_ir import OK, Vector, pointers_text
from liedyn.codegen.targets.target import UnsupportedOperationError
from liedyn.codegen.trace import STATUS, GeneratedProgram, Trace, single_bound, single_call
from liedyn.kernels.batch_blocks import QUATERNION_TOLERANCE

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


class _Kernel:
    """The text of a kernel: arrays of a state are private arrays of the names that they have in the program."""

    def __init__(self, program: GeneratedProgram, dtype: str):
        self.number, suffix = NUMBERS[dtype], "f" if dtype == "float32" else ""
        self._arrays = {x.name: x.size for x in program.arrays if x.size and x.name != "code"}
        self._functions = [*([] if suffix else ["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"]),
                           _QUADRANT.format(self.number, _INTEGERS[self.number]),
                           *program_functions(program, "compute", lambda: OpenClExpressions(suffix), self.number)]
        self.is_valid = f"!code && {STATUS}[0] > 0" if STATUS in self._arrays else "!code"
        self.lines: list[str] = []

    def read(self, array: str, size: int, to: str = "", more: str = "") -> None:
        """Add statements that read an input of the caller to an array, by default that of its name.

        more  added to the place of its first number
        """
        self.lines.append(f"    first = {array}_at + i * {array}_state{more};")
        self.lines += [f"    {to or array}[{k}] = {array}_of[first + {k} * {array}_number];" for k in range(size)]

    def compute(self) -> None:
        """Add the call of the program."""
        self.lines.append(f"    code = compute({', '.join(self._arrays)});")

    def text(self, name: str, counts: Sequence[str], inputs: Iterable[str], results: Iterable[str]) -> str:
        """Return the text. counts: arguments after the number of states."""
        place = "const long {0}_at, const long {0}_state, const long {0}_number"
        arguments = ["const long n", *counts, *(f"global const {self.number} *{x}_of, {place.format(x)}" for x in inputs),
                     *(f"global {self.number} *{x}_of" for x in results)]
        declared = [f"    {self.number} {array}[{size}];" for array, size in self._arrays.items()]
        return "\n".join([*self._functions, "", f"kernel void {name}({', '.join(arguments)})", "{",
                          "    const long i = get_global_id(0);", "    long first;", "    int code;", "    if (i >= n) return;",
                          *declared, *self.lines, "}"]) + "\n"


def opencl_text(trace: Trace, name: str, inputs: Mapping[str, int], results: Mapping[str, Sequence[int]], dtype: str) -> str:
    """Return the text of a kernel.

    inputs   arrays that are read, and their sizes
    results  arrays that are written, and the places of their numbers: number k of state i is at `i + n places[k]`
    """
    kernel = _Kernel(single_call(trace), dtype)
    for array, size in inputs.items():
        kernel.read(array, size)
    kernel.compute()
    for array, places in results.items():
        kernel.lines += [f"    {array}_of[i + n * {at}] = {kernel.is_valid} ? {array}[{k}] : NAN;" for k, at in enumerate(places)]
    return kernel.text(name, (), inputs, results)


def opencl_rollout_text(step: GeneratedProgram, values: Sequence[float], forces: int, quaternions: Sequence[int],
                        dtype: str) -> str:
    """Return kernel rollout(n, steps, dt, tau_step, q …, v …, tau …, q_out, v_out) for n runs.

    It writes the states before each step and after the last, in Fortran order, (n, steps + 1, coordinates). After a step that
    fails, they are NaN.

    step      a `BatchStep.step` without curves and events, which does not depend on the time
    values    its array `values`, of which the first `forces` numbers are those of tau in each step
    tau_step  distance in tau between steps, 0 for the same forces in all
    quaternions  their first numbers in q; runs with one that is not of unit norm are NaN
    """
    kernel, sizes = _Kernel(step, dtype), {x.name: x.size for x in step.arrays}
    constant = OpenClExpressions("f" if dtype == "float32" else "").constant
    state = {"q": sizes["q"], "v": sizes["v"]}
    for array, size in state.items():
        kernel.read(array, size)
    kernel.lines += [f"    values[{k}] = {constant(x)};" for k, x in enumerate(values)]
    kernel.lines += [f"    work[{k}] = 0;" for k in range(sizes["work"])]
    kernel.lines += ["    clock[0] = dt;", *(f"    clock[{k}] = 0;" for k in range(1, sizes["clock"])), "    code = 0;"]
    bound = constant(single_bound(QUATERNION_TOLERANCE) if dtype == "float32" else QUATERNION_TOLERANCE)
    for first in quaternions:
        square = " + ".join(f"q[{k}] * q[{k}]" for k in range(first, first + 4))
        kernel.lines.append(f"    if (!(fabs({square} - 1) < {bound})) code = 1;")
    kernel.lines += ["    for (long s = 0; ; s++) {"]
    for array, size in state.items():
        kernel.lines += [f"    {array}_out_of[i + n * (s + (steps + 1) * {k})] = {kernel.is_valid} ? {array}[{k}] : NAN;"
                         for k in range(size)]
    kernel.lines += ["    if (s == steps) break;", "    if (code) continue;"]
    kernel.read("tau", forces, "values", " + s * tau_step")
    kernel.compute()
    kernel.lines.append("    }")
    return kernel.text("rollout", ("const long steps", f"const {kernel.number} dt", "const long tau_step"), (*state, "tau"),
                       [f"{x}_out" for x in state])


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
    module = llvm.parse_assembly("\n".join([f'target triple = "{_TRIPLE}"', text, *_ptx_kernel(trace, name, inputs, results)]))
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
