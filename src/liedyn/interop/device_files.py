"""Functions of a robot as kernels of OpenCL C and of PTX, the assembly language of GPUs by NVIDIA: `liedyn export`."""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from liedyn.arrays import Precision
from liedyn.codegen.targets.c99 import block_comment, comment
from liedyn.codegen.targets.device_kernels import NUMBERS, opencl_text, ptx
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.errors import UsageError
from liedyn.interop.c_files import code_file, default_name, write_all
from liedyn.interop.device_drivers import GROUP, column_places, column_strides
from liedyn.interop.function_comments import array_comments, function_comment
from liedyn.interop.traced_functions import FunctionTrace, trace_function
from liedyn.model.model import Model
from liedyn.public_calls import explained

ENDINGS = {"opencl": ".cl", "ptx": ".ptx"}
PROCESSOR = "sm_80"              # default: newer GPUs run its code, too


class DeviceExport(NamedTuple):
    """name: of the kernel; size: number of operations."""

    name: str
    size: int


@explained
def write_device_export(model: Model, function: str, path: Path | None = None, *, to: str,
                        dtype: Precision = "float64", processor: str | None = None, force: bool = False,
                        **options: Any) -> tuple[DeviceExport, list[Path]]:
    """Write a function of a robot as a kernel. A comment in the file describes its arguments and how it is launched.

    Arguments and errors are those of `c_files.write_export`; `path` has the ending .cl or .ptx.

    to         "opencl" or "ptx"
    processor  for PTX: the oldest GPU on which the kernel runs, such as "sm_80", the default
    """
    if processor is not None and (to != "ptx" or not re.fullmatch(r"sm_([5-9]\d|1\d\d)a?", processor)):
        raise UsageError("processor applies to PTX" if to != "ptx" else
                         f"processor: expected the name of an architecture from sm_50 on, such as {PROCESSOR}, got {processor!r}")
    single = is_single(dtype, "write_device_export")
    traced = trace_function(model, function, options, libm=to == "opencl", single=single)
    path = code_file(path, default_name(model, function, options), ENDINGS[to], (*traced.inputs, *traced.shapes))
    places = {name: column_places(shape) for name, shape in traced.shapes.items()}
    number = "float32" if single else "float64"
    text = (opencl_text(traced.trace, path.stem, traced.inputs, places, number) if to == "opencl" else
            ptx(traced.trace, path.stem, traced.inputs, places, processor or PROCESSOR))
    lines = [*function_comment(traced), *_kernel_comment(traced, path.stem, to, NUMBERS[number]), *array_comments(traced)]
    head = "\n".join(block_comment(map(comment, lines)) if to == "opencl" else (f"// {comment(line)}" for line in lines))
    return DeviceExport(path.stem, traced.trace.size), write_all({path: f"{head}\n{text}"}, force=force)


def _kernel_comment(traced: FunctionTrace, name: str, to: str, number: str) -> Iterator[str]:
    """Yield lines about the arguments and the launch of a kernel."""
    inputs = "; ".join(f"{x} pointer, {x}_at, {x}_state, {x}_number" for x in traced.inputs)
    yield f"Kernel {name}(n; {inputs}; {'; '.join(f'{x} pointer' for x in traced.shapes)})."
    yield f"Each work item computes one state i = 0 ... n - 1. Arrays are of {number}; n and places are 64-bit integers."
    yield "Number k of an input x of state i is at x_at + i x_state + k x_number; x_state = 0: the same for all states."
    for x, shape in traced.shapes.items():
        letters = "jkl"[:len(shape)]
        place = " + ".join(letter if stride == 1 else f"{stride} {letter}"
                           for letter, stride in zip(letters, column_strides(shape), strict=True))
        yield f"Number [{', '.join(letters)}] of the result {x} of state i is at i + n ({place})." if shape else (
            f"The result {x} of state i is at i.")
    yield "Results of states that are not valid are NaN."
    yield (f"Launch: global size: n rounded up to a multiple of the local size, such as {GROUP}; see clEnqueueNDRangeKernel."
           if to == "opencl" else f"Launch: blocks of {GROUP} threads, n / {GROUP} rounded up; see cuLaunchKernel.")
