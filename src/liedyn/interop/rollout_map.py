"""A rollout as a map of arrays and its adjoint: what derivatives in other libraries are made of."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.tangent_numbers import numbers_of_tangent, tangent_of_numbers
from liedyn.model.model import Model
from liedyn.simulation.rollouts.rollout import Rollout, rollout


class RolloutMap:
    """(q0, v0, tau) -> (q, v) of NumPy arrays, (…, nq), (…, nv), (…, S, nv) -> (…, S + 1, nq), (…, S + 1, nv)."""

    def __init__(self, model: Model, **options):
        """options: of `liedyn.rollout`."""
        self.model, self.steps, self.options = model, options["steps"], options

    def run(self, q0, v0, tau) -> Rollout:
        return rollout(self.model, *(np.asarray(x, dtype=float) for x in (q0, v0, tau)), **self.options)

    def back(self, run: Rollout, q0, d_q, d_v) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives of a cost by q0, v0, tau from those by q and v. Those by the numbers of quaternions have no part across the
        unit sphere."""
        found = run.adjoint(tangent_of_numbers(self.model, run.q, np.asarray(d_q, dtype=float)), np.asarray(d_v, dtype=float))
        lead = run.ended_at.shape
        q0 = np.broadcast_to(np.asarray(q0, dtype=float), (*lead, self.model.nq))
        return numbers_of_tangent(self.model, q0, found.q0), found.v0, found.tau
