"""The interface of targets: what a trace is written as, or evaluated with.

A target is a table of operations and a page: how numbers are read, named and written. The walk over a trace is the same for
all targets. `docs/design.md` describes how to add one.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from liedyn.codegen.operations import OPERATIONS
from liedyn.codegen.trace import Trace
from liedyn.codegen.tracer import Operand, Operations


class UnsupportedOperationError(Exception):
    """The table of a target lacks an operation."""


class Target:
    """What operations become: expressions of any type, by the name of the operation.

    libm    whether sine and cosine are operations, see `make_trace`; otherwise the target has quadrant_sine and quadrant_cosine
    table   for each operation, how it is written: a template of text for its operands, or a function of them
    values  numbers of the trace so far, as operands of later ones
    """

    libm = True
    table: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}

    def constant(self, x: float) -> Any:
        """Return a constant as operand."""
        return x

    def input(self, array: str, i: int) -> Any:
        """Return the expression that reads number i of an array."""
        raise NotImplementedError

    def operation(self, name: str, *operands: Any) -> Any:
        """Return the expression of an operation."""
        if name not in self.table:
            raise UnsupportedOperationError(f"{type(self).__name__} has no operation {name}")
        write = self.table[name]
        return write.format(*operands) if isinstance(write, str) else write(*operands)

    def named(self, _k: int, expression: Any) -> Any:
        """Return operation k as operand of later ones. Targets that write text return the name that their page gives to it."""
        return expression

    def value(self, x: Operand) -> Any:
        """Return a number of the trace, or a constant, as operand."""
        return self.values[x] if isinstance(x, int) else self.constant(x)

    def walk(self, ops: Operations, indices: Iterable[int]) -> Iterator[tuple[int, Any]]:
        """Yield operations and their expressions, in order."""
        for k in indices:
            name, *operands = ops.operations[k]
            expression = self.input(*operands) if name == "input" else self.operation(name, *map(self.value, operands))
            self.values[k] = self.named(k, expression)
            yield k, expression


class Expressions(Target):
    """Expressions of a library with operators: NumPy, CasADi, SymPy.

    table     functions of the library
    arrays    inputs by name: arrays of numbers or symbols
    constant  converts a constant
    """

    def __init__(self, table: Mapping[str, Callable[..., Any]], arrays: Mapping[str, Any],
                 constant: Callable[[float], Any] = float) -> None:
        super().__init__()
        self.table, self.arrays, self._constant = table, arrays, constant

    def constant(self, x: float) -> Any:
        """Return a constant, converted."""
        return self._constant(x)

    def input(self, array: str, i: int) -> Any:
        """Return number i of an input."""
        return self.arrays[array][i]

    def results(self, trace: Trace) -> dict[str, list[Any]]:
        """Return the values of arrays that a trace writes. Checks of the trace are not part of it."""
        for _ in self.walk(trace.ops, trace.ops.live_operations([x for array in trace.arrays for x in array.results])):
            pass
        results: dict[str, list[Any]] = {array.name: [None] * array.size for array in trace.arrays if array.results}
        for x, name, i in trace.outputs:
            results[name][i] = self.value(x)
        return results


# float64 by NumPy, of numbers or of arrays with one number per state
NUMPY: dict[str, Callable[..., Any]] = {name: operation.meaning for name, operation in OPERATIONS.items()}
