"""Derivatives of traces, operation by operation, in reverse and forward.

In reverse, each operation y = f(a, b, …) adds its share a* += y* df/da, from the last operation to the first (Griewank and
Walther, Evaluating Derivatives, 2008, ch. 3). Values that the shares need are computed again.
"""
from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from liedyn.codegen.operations import OPERATIONS
from liedyn.codegen.tracer import NotTraceableError, Operations, Tracer, where_less

Number = Tracer | float


def adjoint(ops: Operations, results: Iterable[tuple[Number, Number]],
            ends: Iterable[Number] = ()) -> Callable[[Number], Number]:
    """Return a function from a number to the derivative of a cost with respect to it.

    results  pairs of a result and the derivative with respect to it
    ends     numbers in addition to inputs of the trace whose derivatives are needed; the derivative does not continue beyond them

    Raises NotTraceableError for an operation with an unknown derivative.
    """
    cotangents: dict[int, Number] = {}
    waiting: list[int] = []                                     # operations with shares, from the last to the first
    ended, solved_unknowns = {x.k for x in ends if isinstance(x, Tracer)}, ops.solved_unknowns or {}

    def accumulate(x: Number, cotangent: Number) -> None:
        if isinstance(x, Tracer):
            if x.k not in cotangents:
                heapq.heappush(waiting, -x.k)
            cotangents[x.k] = cotangents.get(x.k, 0.0) + cotangent

    for x, cotangent in results:
        accumulate(x, cotangent)
    while waiting:
        k = -heapq.heappop(waiting)
        name, *rest = ops.operations[k]
        if k in ended:
            continue
        if k in solved_unknowns:
            places = solved_unknowns[k].places
            if k == next(x for x in reversed(places) if x in cotangents):         # the last: the others are below it
                for x, cotangent in solved_unknowns[k].back([cotangents.get(x, 0.0) for x in places]):
                    accumulate(x, cotangent)
        elif k in ops.sincos_pairs:                                  # sine or cosine of x: derivatives from the pair
            x, derivative = ops.sincos_pairs[k]
            accumulate(x, cotangents[k] * derivative)
        elif name != "input":
            _propagate(accumulate, name, [Tracer(ops, y) if isinstance(y, int) else y for y in rest], Tracer(ops, k),
                       cotangents[k])
    return lambda x: cotangents.get(x.k, 0.0) if isinstance(x, Tracer) else 0.0


def _propagate(accumulate, name: str, operands: list[Number], y: Tracer, cotangent: Number) -> None:
    for x, part in zip(operands, _rule(name)(cotangent, y, *operands), strict=True):
        accumulate(x, part)


def _rule(name: str) -> Callable[..., tuple[Number, ...]]:
    """Return the derivative of an operation, see `Operation`. Raises NotTraceableError if it is unknown."""
    if (rule := OPERATIONS[name].derivative) is None:
        raise NotTraceableError
    return rule


# Tangent: from rates of the inputs to rates of the results (forward accumulation, ibid.) --------------------------------

def tangent(ops: Operations, inputs: Iterable[tuple[Tracer, Number]], results: Sequence[Number]) -> list[Number]:
    """Return the rates of the results. inputs: pairs of an input and its rate; those of others are zero.

    Raises NotTraceableError for an operation with an unknown derivative.
    """
    rates: dict[int, Number] = {x.k: rate for x, rate in inputs}

    def rate_of(x) -> Number:
        return rates.get(x, 0.0) if isinstance(x, int) else 0.0

    for k in ops.live_operations(results):
        name, *operands = ops.operations[k]
        if name == "input":
            continue
        if k in ops.sincos_pairs:                                    # sine or cosine of x: derivatives from the pair
            x, derivative = ops.sincos_pairs[k]
            rates[k] = rate_of(x.k) * derivative
        elif any(not isinstance(rate_of(x), float) or rate_of(x) != 0.0 for x in operands):
            rates[k] = _rate(ops, name, Tracer(ops, k), operands, [rate_of(x) for x in operands])
    return [rate_of(x.k) if isinstance(x, Tracer) else 0.0 for x in results]


def _rate(ops: Operations, name: str, y: Tracer, operands: list, rates: list[Number]) -> Number:
    a, *rest = (Tracer(ops, x) if isinstance(x, int) else x for x in operands)
    if name == "less":
        return where_less(a, rest[0], *rates[2:])
    if name == "sqrt":                                          # at 0, where a force begins, its factor is 0, too
        return where_less(0.0, y, rates[0] * 0.5 / y, 0.0)
    total = 0.0
    for part, rate in zip(_rule(name)(1.0, y, a, *rest), rates, strict=True):
        total = total + rate * part
    return total
