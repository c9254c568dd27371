"""How a call is computed: by code generated for the robot, or by generic kernels."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from liedyn.arrays import ArrayLike
from liedyn.codegen import specialize
from liedyn.codegen.rhs import StageKey, trace_stages
from liedyn.codegen.targets.llvm_ir import MAX_SEGMENT_OPERATIONS
from liedyn.codegen.trace import make_trace
from liedyn.codegen.tracer import NotTraceableError
from liedyn.dynamics.batching.arrays import as_mask
from liedyn.dynamics.batching.calls import intercepted_specialization
from liedyn.dynamics.constraints.constrained_dynamics import constrained_forward_dynamics, constrained_hybrid_dynamics
from liedyn.dynamics.constraints.constraints import check_has_constraints
from liedyn.dynamics.constraints.couplings import follow_couplings_unchecked
from liedyn.errors import NameLookupError, UsageError, summarized
from liedyn.kernels.constraints.stages import EQUATIONS, SOLUTION
from liedyn.model.model import Model
from liedyn.public_calls import known


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


def plan(model: Model, function: str, **options: Any) -> Plan:
    """Return how a function would be computed for this robot. Nothing is compiled.

    Parameters
    ----------
    model : Model
    function : str
        Name of a function of the package whose first argument is a model, for example "forward_dynamics".
    options
        Its other arguments that have no default and are not states: ``link="hand"``, ``prescribed=mask``. Options such as
        ``f_ext`` and ``passive`` lead to other generated code.

    Raises
    ------
    NameLookupError
        For a name that the package does not have.
    UsageError
        For a function that is not computed by a kernel.

    Examples
    --------
    >>> ld.plan(ld.load("robots/double_pendulum.yaml"), "forward_dynamics").way
    'generated'
    """
    called = _function(function)
    options = known(called, options)
    if called in (constrained_forward_dynamics, constrained_hybrid_dynamics):
        return _constrained_plan(model, function, **options)
    specialization, of = intercepted_specialization(called, model, *_arguments(called, model, options),
                                                    **_keyword_options(called, options))
    if not specialize.is_enabled():
        return _disabled_plan(function, specialize.MAX_OPERATIONS)
    trace = make_trace(of, specialization)
    longest, width = specialize.MAX_OPERATIONS, specialize.simd_width()
    if trace is None:
        return Plan(function, "generic", None, None, longest, width,
                    "the algorithm branches on numbers, which generated code cannot")
    if trace.size > longest:
        return Plan(function, "generic", trace.size, trace.cost, longest, width,
                    f"the generated code would have more than {longest} operations")
    return Plan(function, "generated", trace.size, trace.cost, longest, width, f"it has at most {longest} operations")


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
