"""The energy balance of a run, and what it is measured against."""
from __future__ import annotations

import math

import numpy as np

from liedyn.dynamics.scales import scales_of

GOOD = 1e-3              # a relative balance above it is said
_ROUNDINGS = 4.0         # that the energies of a step may be off by; they add up like a random walk
_FAR_MORE = 1e3          # energies and weights: forces of runs side by side do less work along 1 rad or a characteristic length


def inaccuracy(balance: float) -> list[str]:
    """The note about a run with this relative balance."""
    return [f"the relative error of the energy balance is {balance:.1e}: the motion is not accurate"] if balance > GOOD else []


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
        work that the forces, which may cancel each other, do along 1 rad or a characteristic length: some 1e-14 of them, so that
        a motion of any size is judged.
        """
        exchanged = max(self._most[0], *(self._most - self._least)[1:])
        size = np.maximum(np.abs(self._least), np.abs(self._most)).sum() + self._work_of_forces()
        return float(self._balance), float(self._balance / max(exchanged, _floor(size, steps), 1e-300))

    def _work_of_forces(self) -> float:
        """[J] that weight, joint forces and wrenches would do along 1 rad or a characteristic length."""
        units, (tau, wrench) = scales_of(self.model), self._forces
        along = np.tile(np.repeat([1.0, units.length], 3), len(wrench) // 6)
        return float(tau @ units.of_all(self.model.v_units) + wrench @ along) + work_of_weight(self.model)


def relative_balance(model, kinetic, potential, work, steps: int) -> np.ndarray:
    """(N,) the relative balance of N runs side by side from energies and supplied work (N, R), as `EnergyBalance` says it. NaN
    where so little energy was exchanged that the forces decide what is rounding, which are not known here."""
    total, energies = kinetic + potential, (kinetic, potential, work)
    balance = np.abs(total - total[:, :1] - work).max(axis=1)
    exchanged = np.maximum.reduce([kinetic.max(axis=1), np.ptp(potential, axis=1), np.ptp(work, axis=1)])
    size = sum(np.abs(x).max(axis=1) for x in energies)
    floor = _floor(size + _FAR_MORE * (size + work_of_weight(model)), steps)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(exchanged > floor, balance / exchanged, np.nan)


def work_of_weight(model) -> float:
    """[J] that the weight of the robot does along its characteristic length."""
    mass = math.fsum(link.mass for link in model.description.links)
    return mass * float(np.linalg.norm(model.gravity)) * scales_of(model).length


def _floor(size, steps: int):
    """The energy exchanged [J] of which rounding could be more than `GOOD`, where energies and forces are of this size [J]."""
    return _ROUNDINGS * np.finfo(float).eps * math.sqrt(1 + steps) * size / GOOD
