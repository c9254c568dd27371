"""The tangent of a line, operation by operation: from rates of its inputs to those of its results (forward accumulation:
Griewank and Walther, Evaluating Derivatives, 2008, ch. 3)."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from liedyn.codegen.adjoint import PARTS
from liedyn.lie.recorded import NotALine, Recorded, Tape, where_less

Number = Recorded | float


def tangent(tape: Tape, inputs: Iterable[tuple[Recorded, Number]], results: Sequence[Number]) -> list[Number]:
    """Rates of the results. inputs: pairs of an input and its rate; those of others are zero.

    Raises NotALine for an operation whose derivative is not known here."""
    rates: dict[int, Number] = {x.k: rate for x, rate in inputs}

    def rate_of(x) -> Number:
        return rates.get(x, 0.0) if isinstance(x, int) else 0.0

    for k in tape.needed(results):
        name, *operands = tape.operations[k]
        if name == "input":
            continue
        if k in tape.turned:                                    # sine or cosine of x: the pair differentiates itself
            x, derivative = tape.turned[k]
            rates[k] = rate_of(x.k) * derivative
        elif any(not isinstance(rate_of(x), float) or rate_of(x) != 0.0 for x in operands):
            rates[k] = _rate(tape, name, Recorded(tape, k), operands, [rate_of(x) for x in operands])
    return [rate_of(x.k) if isinstance(x, Recorded) else 0.0 for x in results]


def _rate(tape: Tape, name: str, y: Recorded, operands: list, rates: list[Number]) -> Number:
    a, *rest = (Recorded(tape, x) if isinstance(x, int) else x for x in operands)
    if name == "less":
        return where_less(a, rest[0], *rates[2:])
    if name == "sqrt":                                          # at 0, where a force begins, what it is multiplied with is 0, too
        return where_less(0.0, y, rates[0] * 0.5 / y, 0.0)
    if name not in PARTS:
        raise NotALine
    total = 0.0
    for part, rate in zip(PARTS[name](1.0, y, a, *rest), rates, strict=True):
        total = total + rate * part
    return total
