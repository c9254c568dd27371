"""How a call is computed: by code generated for the robot, or by generic kernels. Size and time of generated code for targets.

Times are estimates: a time for each state, one for each unit of cost, and one for each byte. Those of processors were measured
(Zen 5 with AVX-512, one thread, 12 functions of three robots) and are right within a factor of two. That of a GPU is a bound by
its arithmetic units and its memory, on paper: it leaves out fetching instructions and numbers that do not fit into registers.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from liedyn.arrays import ArrayLike, Precision
from liedyn.codegen import specialize
from liedyn.codegen.rhs import StageKey, trace_stages
from liedyn.codegen.targets.llvm_ir import MAX_SEGMENT_OPERATIONS
from liedyn.codegen.trace import STATUS, Trace, make_trace
from liedyn.codegen.tracer import NotTraceableError
from liedyn.dynamics.batching.arrays import as_mask
from liedyn.dynamics.batching.calls import intercepted_specialization
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.dynamics.constraints.constrained_dynamics import constrained_forward_dynamics, constrained_hybrid_dynamics
from liedyn.dynamics.constraints.constraints import check_has_constraints
from liedyn.dynamics.constraints.couplings import follow_couplings_unchecked
from liedyn.errors import NameLookupError, UsageError, summarized
from liedyn.kernels.constraints.stages import EQUATIONS, SOLUTION
from liedyn.model.model import Model
from liedyn.public_calls import known

Target = Literal["cpu", "c", "wasm", "opencl", "ptx"]


@summarized
@dataclass(frozen=True)
class Plan:
    """How a function is computed for a robot.

    function     name
    way          "generated": code generated for this robot; or "generic": kernels compiled once for all robots
    operations   number of operations of the generated code; None where there is none
    cost         their approximate time in units of an addition: a square root takes 17, a function of the C library hundreds
    longest      maximum number of operations of generated code; longer functions use the generic kernels
    width        states of a batch that the generated code computes at once
    reason       why it is computed in this way
    target       "cpu", "c", "wasm", "opencl" or "ptx"
    code_size    estimated bytes of machine code
    registers    numbers that are needed at once, in 32-bit registers of a GPU: an estimate; None for other targets
    bytes        of inputs and results of a state
    time         expected time of a state [s]: in a batch on one thread, or one call in C and WebAssembly; on a GPU, an H100, the
                 time between states. None for generic kernels

    Examples
    --------
    >>> plan = ld.plan(ld.load("robots/double_pendulum.yaml"), "mass_matrix")
    >>> plan.way, plan.operations < 100
    ('generated', True)
    """

    function: str
    way: Literal["generated", "generic"]
    operations: int | None
    cost: float | None
    longest: int
    width: int
    reason: str
    target: Target = "cpu"
    code_size: int | None = None
    registers: int | None = None
    bytes: int | None = None
    time: float | None = None


class _Figures(NamedTuple):
    """Times of a state, of a unit of cost (divided by the width) and of a byte [s]; bytes of code: minimum, per operation."""

    state: float
    cost: float
    byte: float
    code: int
    operation: float


_FIGURES = {"cpu": _Figures(8e-9, 83e-12, 11e-12, 4000, 9.0), "c": _Figures(40e-9, 0.11e-9, 0.0, 0, 12.0),
            "wasm": _Figures(0.0, 0.29e-9, 0.0, 0, 7.0)}


class Accelerator(NamedTuple):
    """A GPU: multiprocessors, operations of each in a cycle in single and double precision, clock [Hz], bandwidth [B/s]."""

    multiprocessors: int
    single: int
    double: int
    clock: float
    bandwidth: float

    def time(self, cost: float, size: int, *, single: bool) -> float:
        """Return the time between states [s], at least. size: bytes of inputs and results of a state."""
        rate = self.multiprocessors * (self.single if single else self.double) * self.clock
        return max(cost / rate, size / self.bandwidth)


H100 = Accelerator(132, 128, 64, 1.755e9, 3.35e12)         # SXM5: NVIDIA H100 Tensor Core GPU Architecture, 2022
_GPU_CODE, _GPU_REGISTERS, _OTHER_REGISTERS = 15.0, 255, 12            # bytes per operation; maximum; of addresses


def plan(model: Model, function: str, *, target: Target = "cpu", dtype: Precision = "float64", **options: Any) -> Plan:
    """Return how a function would be computed for this robot, and size and expected time of its code. Nothing is compiled.

    Parameters
    ----------
    model : Model
    function : str
        Name of a function of the package whose first argument is a model, for example "forward_dynamics".
    options
        Its other arguments that have no default and are not states: ``link="hand"``, ``prescribed=mask``. Options such as
        ``f_ext`` and ``passive`` lead to other generated code.
    target : "cpu", "c", "wasm", "opencl" or "ptx"
        What it is computed on: this processor by a call; a program with the code of `liedyn export`; a GPU, see `to_device`.
    dtype : "float64" or "float32"

    Raises
    ------
    NameLookupError
        For a name that the package does not have.
    UsageError
        For a function that is not computed by a kernel, for another target, and for a target other than "cpu" for a function
        that generated code cannot compute.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.plan(model, "forward_dynamics").way
    'generated'
    >>> kernel = ld.plan(model, "forward_dynamics", target="ptx", dtype="float32")
    >>> kernel.registers < 40, kernel.bytes, 1 / kernel.time > 1e10
    (True, 32, True)
    """
    called, single = _function(function), is_single(dtype, "plan")
    if target not in get_args(Target):
        raise UsageError(f"target must be one of {', '.join(map(repr, get_args(Target)))}, got {target!r}")
    options = known(called, options)
    if called in (constrained_forward_dynamics, constrained_hybrid_dynamics):
        if target != "cpu" or single:
            raise UsageError(f"{function} is computed on this processor in double precision only")
        return _constrained_plan(model, function, **options)
    specialization, of = intercepted_specialization(called, model, *_arguments(called, model, options),
                                                    **_keyword_options(called, options))
    if single and target == "cpu" and "dtype" not in inspect.signature(called).parameters:
        raise UsageError(f"{function} has no dtype: it is computed on this processor in double precision only")
    if target != "cpu":
        return _target_plan(function, make_trace(of, specialization, single=single), target, single=single)
    if not specialize.is_enabled():
        return _disabled_plan(function, specialize.MAX_OPERATIONS)
    trace = make_trace(of, specialization, single=single)
    longest, width = specialize.MAX_OPERATIONS, specialize.simd_width(single)
    if trace is None:
        return Plan(function, "generic", None, None, longest, width,
                    "the algorithm branches on numbers, which generated code cannot")
    if trace.size > longest:
        return Plan(function, "generic", trace.size, trace.cost, longest, width,
                    f"the generated code would have more than {longest} operations")
    return Plan(function, "generated", trace.size, trace.cost, longest, width, f"it has at most {longest} operations",
                **_size_and_time(trace, _FIGURES["cpu"], width, single=single))


def _target_plan(function: str, trace: Trace | None, target: Target, *, single: bool) -> Plan:
    if trace is None:
        raise UsageError(f"{function} has no code for {target}: the algorithm branches on numbers")
    longest = specialize.MAX_OPERATIONS
    if target in _FIGURES:
        return Plan(function, "generated", trace.size, trace.cost, longest, 1, f"exported code for {target} computes one state",
                    target, **_size_and_time(trace, _FIGURES[target], 1, single=single))
    size, registers = _bytes(trace, single=single), trace.live_numbers * (1 if single else 2) + _OTHER_REGISTERS
    return Plan(function, "generated", trace.size, trace.cost, longest, 1,
                "a work item computes one state; the time is that of an H100 on paper", target,
                round(_GPU_CODE * trace.size), min(registers, _GPU_REGISTERS), size,
                H100.time(trace.cost, size, single=single))


def _size_and_time(trace: Trace, figures: _Figures, width: int, *, single: bool) -> dict[str, Any]:
    """Return the fields code_size, bytes and time of a plan."""
    size = _bytes(trace, single=single)
    return {"code_size": round(figures.code + figures.operation * trace.size), "bytes": size,
            "time": figures.state + figures.cost * trace.cost / width + figures.byte * size}


def _bytes(trace: Trace, *, single: bool) -> int:
    return (4 if single else 8) * sum(array.size for array in trace.arrays if array.name != STATUS)


def _disabled_plan(function: str, longest: int) -> Plan:
    return Plan(function, "generic", None, None, longest, specialize.simd_width(),
                "generated code is switched off by LIEDYN_CODE=generic, or this LLVM is too old for it")


def _constrained_plan(model: Model, function: str, prescribed: ArrayLike | None = None, f_ext: Any = None, passive: bool = True,
                      baumgarte: float = 0.0, **_: Any) -> Plan:
    """Return the plan of constrained motion: two generated functions, and one dense solver for all robots between them."""
    check_has_constraints(model)
    if prescribed is None and function == "constrained_hybrid_dynamics":
        raise UsageError(f"{function} needs prescribed=")
    mask = (False,) * model.nv if prescribed is None else tuple(map(bool, as_mask(prescribed, model.nv)))
    if not specialize.is_enabled():
        return _disabled_plan(function, MAX_SEGMENT_OPERATIONS)
    key = StageKey(mask, mask, mask, bool(passive and model.has_passive_forces), baumgarte > 0.0, f_ext is not None)
    try:
        traces = trace_stages(model, (EQUATIONS, SOLUTION), key)
    except NotTraceableError:
        traces = []
    fits = bool(traces) and max(trace.size for trace in traces) <= MAX_SEGMENT_OPERATIONS
    reason = (f"its two parts have at most {MAX_SEGMENT_OPERATIONS} operations each; a dense solver for all robots works between "
              f"them" if fits
              else f"the generated code would have more than {MAX_SEGMENT_OPERATIONS} operations")
    return Plan(function, "generated" if fits else "generic", sum(trace.size for trace in traces),
                sum(trace.cost for trace in traces), MAX_SEGMENT_OPERATIONS, 1, reason)


def _function(name: str) -> Callable[..., Any]:
    package = import_module("liedyn")
    if name not in package.__all__ or not callable(getattr(package, name)):
        raise NameLookupError(f"liedyn has no function {name!r}")
    function: Callable[..., Any] = inspect.unwrap(getattr(package, name))
    return function


def _arguments(function: Callable[..., Any], model: Model, options: dict[str, Any]) -> list[Any]:
    """Return states at rest for positional arguments."""
    q, *_ = follow_couplings_unchecked(model, model.neutral())
    states = dict.fromkeys(("q", "q0", "q1"), q)
    states |= dict.fromkeys(("v", "a", "tau", "dv"), np.zeros(model.nv))
    arguments = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or parameter.default is not parameter.empty:
            break
        if parameter.name not in states and parameter.name not in options:
            raise UsageError(f"{function.__name__} needs {parameter.name}=")
        arguments.append(options[parameter.name] if parameter.name in options else states[parameter.name])
    return arguments


def _keyword_options(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    by_position = {x.name for x in inspect.signature(function).parameters.values() if x.default is x.empty}
    return {name: value for name, value in options.items() if name not in by_position}
