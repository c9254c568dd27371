"""The energy balance of a run, and what it is measured against."""
from __future__ import annotations

import math

import numpy as np

GOOD = 1e-3              # a relative balance above it is said
_ROUNDINGS = 4.0         # that the energies of a step may be off by; they add up like a random walk


class EnergyBalance:
    """Of a run of `model`, some rows after the other."""

    def __init__(self, model):
        self.model, self._first, self._balance = model, None, 0.0
        self._least, self._most = np.full(3, np.inf), np.full(3, -np.inf)              # of each energy
        self._forces = None

    def add(self, record, kinetic, potential) -> None:
        """Rows of a record, with their energies (N,) [J]."""
        total, energies = kinetic + potential, (kinetic, potential, record.work)
        if self._first is None:
            self._first, self._forces = total[0], [np.zeros(x.shape[1]) for x in (record.tau, record.wrench)]
        self._balance = np.maximum(self._balance, np.abs(total - self._first - record.work).max())       # NaN stays
        self._least = np.minimum(self._least, [x.min() for x in energies])
        self._most = np.maximum(self._most, [x.max() for x in energies])
        self._forces = [np.maximum(most, np.abs(x).max(axis=0, initial=0.0))
                        for most, x in zip(self._forces, (record.tau, record.wrench), strict=True)]

    def value(self, steps: int) -> tuple[float, float]:
        """The largest balance [J] in a run of so many steps, and the same relative to the energy exchanged.

        What the integrator lost or made counts against the energy that went to and fro: kinetic, potential, supplied. At rest
        that is rounding as well, and nothing can be said of it: where rounding alone could be more than `GOOD` of the energy
        exchanged, the balance is relative to 1 / `GOOD` of that rounding. It is a rounding of the energies themselves, and of the
        work that the forces, which may cancel each other, do along 1 rad or 1 m: some 1e-14 of them, so that a motion of any
        size is judged.
        """
        exchanged = max(self._most[0], *(self._most - self._least)[1:])
        forces = sum(x.sum() for x in self._forces) + _weight(self.model)
        size = np.maximum(np.abs(self._least), np.abs(self._most)).sum()
        return float(self._balance), float(self._balance / max(exchanged, _floor(size + forces, steps), 1e-300))


def relative_balance(model, kinetic, potential, work, steps: int) -> np.ndarray:
    """(N,) the relative balance of N runs side by side from energies and supplied work (N, R), as `EnergyBalance` says it. NaN
    where so little energy was exchanged that the forces decide what is rounding, which are not known here."""
    total, energies = kinetic + potential, (kinetic, potential, work)
    balance = np.abs(total - total[:, :1] - work).max(axis=1)
    exchanged = np.maximum.reduce([kinetic.max(axis=1), np.ptp(potential, axis=1), np.ptp(work, axis=1)])
    size = sum(np.abs(x).max(axis=1) for x in energies)
    forces = 1e3 * (size + _weight(model) + 1.0)               # far more than acts along 1 rad or 1 m
    floor = _floor(size + forces, steps)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(exchanged > floor, balance / exchanged, np.nan)


def _weight(model) -> float:
    return math.fsum(link.mass for link in model.description.links) * float(np.linalg.norm(model.gravity))


def _floor(size, steps: int):
    """The energy exchanged [J] of which rounding could be more than `GOOD`, where energies and forces are of this size [J]."""
    return _ROUNDINGS * np.finfo(float).eps * math.sqrt(1 + steps) * size / GOOD
