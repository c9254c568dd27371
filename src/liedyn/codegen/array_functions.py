"""Functions of arrays as traces, whose derivatives are functions of arrays, too: for programs that differentiate, such as JAX."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from liedyn.codegen.specialize import processor
from liedyn.codegen.trace import Array, Trace
from liedyn.codegen.trace_derivatives import Number, adjoint, tangent
from liedyn.codegen.tracer import Operations, Tracer, object_array, operand, where_less
from liedyn.numba_tools import compile_cache

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ArrayFunction:
    """A function of arrays.

    ops       its operations
    inputs    names and shapes
    results   names and arrays of numbers
    validity  1 for a valid state, else 0: then all results are NaN
    unit      (input, places) of vectors of unit norm: derivatives have no component along them
    linear    inputs on which the results depend linearly
    """

    ops: Operations
    inputs: Mapping[str, Shape]
    results: Mapping[str, np.ndarray]
    validity: Number
    unit: tuple[tuple[str, slice], ...] = ()
    linear: tuple[str, ...] = ()
    _derivatives: dict[tuple[Any, ...], ArrayFunction] = field(default_factory=dict)

    def input_values(self, name: str) -> np.ndarray:
        """Return the numbers of an input."""
        return self.ops.inputs(name, prod(self.inputs[name]))

    def tangent(self, names: tuple[str, ...]) -> ArrayFunction:
        """Return the rates of the results as function of the inputs and of the rates of some inputs, which follow them.

        Raises NotTraceableError for an operation without a derivative.
        """
        if names not in self._derivatives:
            added = self._added({name: self.inputs[name] for name in names})
            pairs = []
            for name, rate in zip(names, added, strict=True):
                x, rates = self.input_values(name), self.ops.inputs(rate, prod(added[rate]))
                for place in (place for vector, place in self.unit if vector == name):
                    rates[place] = rates[place] - x[place] * (x[place] @ rates[place])
                pairs += list(zip(x, rates, strict=True))
            self._derivatives[names] = self._like({**self.inputs, **added}, _split(
                tangent(self.ops, pairs, _joined(self.results.values())),
                {name: x.shape for name, x in self.results.items()}), tuple(added))
        return self._derivatives[names]

    def transpose(self, names: tuple[str, ...], results: tuple[str, ...]) -> ArrayFunction:
        """Return the derivatives of a cost with respect to linear inputs, as function of those with respect to some results.

        Its inputs are those that are not linear, then derivatives with respect to the results `results`.
        """
        if (names, results) not in self._derivatives:
            added = self._added({name: self.results[name].shape for name in results})
            costs = _joined(self.ops.inputs(name, prod(shape)) for name, shape in added.items())
            derivative = adjoint(self.ops, zip(_joined(self.results[name] for name in results), costs, strict=True))
            constants = {name: shape for name, shape in self.inputs.items() if name not in self.linear}
            values = {name: object_array([derivative(x) for x in self.input_values(name)]).reshape(self.inputs[name])
                      for name in names}
            self._derivatives[names, results] = self._like({**constants, **added}, values, tuple(added))
        return self._derivatives[names, results]

    def _added(self, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        """Return shapes with names that no input has."""
        added: dict[str, Shape] = {}
        for name, shape in shapes.items():
            new = f"d_{name}"
            while new in self.inputs or new in added:
                new = f"d_{new}"
            added[new] = shape
        return added

    def _like(self, inputs: Mapping[str, Shape], results: Mapping[str, np.ndarray], linear: tuple[str, ...]) -> ArrayFunction:
        return ArrayFunction(self.ops, inputs, results, self.validity, self.unit, linear)

    @property
    def is_zero(self) -> bool:
        """Whether all results are zero."""
        return all(not isinstance(x, Tracer) and x == 0.0 for x in _joined(self.results.values()))

    def trace(self) -> Trace:
        """Return the trace: arrays of the inputs, then those of the results."""
        inputs = [Array(name, prod(shape), (None,) * prod(shape)) for name, shape in self.inputs.items()]
        results = [Array(f"result{k}", x.size, tuple(where_less(0.5, self.validity, y, np.nan) for y in x.ravel()))
                   for k, x in enumerate(self.results.values())]
        return Trace(self.ops, (*inputs, *results), (), ())

    @property
    def digest(self) -> str:
        """Return a digest of the operations, inputs and results, and of the processor."""
        operands = [operand(x) for x in (*_joined(self.results.values()), self.validity)]
        live = self.ops.live_operations([Tracer(self.ops, k) for k in operands if isinstance(k, int)])
        content = ([(k, self.ops.operations[k]) for k in live], operands, list(self.inputs.items()),
                   [x.shape for x in self.results.values()], self.ops.single, processor())
        return compile_cache.digest(repr(content).encode())


def _joined(arrays: Iterable[np.ndarray]) -> list[Number]:
    """Return the numbers of all arrays."""
    return [x for array in arrays for x in array.ravel()]


def _split(values: Sequence[Number], shapes: Mapping[str, Shape]) -> dict[str, np.ndarray]:
    """Return arrays of these shapes that contain the values in this order."""
    ends = np.cumsum([prod(shape) for shape in shapes.values()])
    return {name: object_array(values[end - prod(shape):end]).reshape(shape)
            for (name, shape), end in zip(shapes.items(), ends, strict=True)}
