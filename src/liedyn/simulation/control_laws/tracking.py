"""How well the joints or links of a robot under `control` followed."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Array
from liedyn.immutable import Immutable
from liedyn.jit import kernel
from liedyn.kernels.simulation.signals import signal


@dataclass(frozen=True, eq=False)
class Tracking(Immutable):
    """By joint, an elastic one under the name of its motor's joint; in task space by axis of the link, and the angle between its
    orientation and that of its target.

    link       (N, n) positions of joints, or of the link [rad | m]
    reference  (N, n) what was desired
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    link: Array
    reference: Array

    @property
    def error(self) -> Array:
        """(N, n)"""
        return self.link - self.reference

    @property
    def columns(self) -> list[tuple[str, str, Array]]:
        """(name, unit, (N,) array) link.<joint> and reference.<joint>, for the trajectory file."""
        return [(f"{kind}.{name}", unit, values[:, k]) for kind, values in (("link", self.link), ("reference", self.reference))
                for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True))]


def values_at(problem, numbers, t) -> np.ndarray:
    """(N, n) of signals `numbers`, functions of time, at the times t (N,)."""
    out, stack = np.zeros((len(t), len(numbers))), np.zeros(problem.stack_size)
    read_values(problem.signals, np.array(numbers, dtype=np.int64), np.array(t), problem.q, problem.v, stack, out)
    return out


@kernel
def read_values(signals, numbers, t, q, v, stack, out):
    for i in range(t.size):
        for j in range(numbers.size):
            out[i, j] = signal(signals, numbers[j], t[i], q, v, stack)[0]
