"""The energy balance of a run, and what it is measured against."""
from __future__ import annotations

import math

import numpy as np

GOOD = 1e-3              # a relative balance above it is said
_ROUNDINGS = 4.0         # that the energies of a step may be off by; they add up like a random walk


def energy_balance(model, record, kinetic, potential, steps: int) -> tuple[float, float]:
    """The largest balance [J] in a run, and the same relative to the energy exchanged.

    What the integrator lost or made counts against the energy that went to and fro: kinetic, potential, supplied. At rest that is
    rounding as well, and nothing can be said of it: where rounding alone could be more than `GOOD` of the energy exchanged, the
    balance is relative to 1 / `GOOD` of that rounding. It is a rounding of the energies themselves, and of the work that the
    forces, which may cancel each other, do along 1 rad or 1 m: some 1e-14 of them, so that a motion of any size is judged.
    """
    total = kinetic + potential
    balance = np.abs(total - total[0] - record.work).max()
    exchanged = max(kinetic.max(), np.ptp(potential), np.ptp(record.work))
    weight = math.fsum(link.mass for link in model.description.links) * float(np.linalg.norm(model.gravity))
    forces = sum(np.abs(x).max(axis=0, initial=0.0).sum() for x in (record.tau, record.wrench)) + weight
    energies = np.abs(kinetic).max() + np.abs(potential).max() + np.abs(record.work).max()
    rounding = _ROUNDINGS * np.finfo(float).eps * math.sqrt(1 + steps) * (energies + forces)
    return float(balance), float(balance / max(exchanged, rounding / GOOD, 1e-300))
