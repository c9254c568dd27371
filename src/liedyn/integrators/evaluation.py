"""The right-hand side at one state."""
from __future__ import annotations

import numpy as np

from liedyn.integrators.failure import failure
from liedyn.integrators.problem import Problem, state_vector
from liedyn.integrators.right_hand_side import RightHandSide
from liedyn.kernels.simulation.right_hand_side import RUNNING, MotionWork


def evaluated(problem: Problem, t: float, q, v, sides: RightHandSide | None = None, integral=None) -> MotionWork:
    """What is prescribed and what acts at a state, with accelerations. sides: where several states of a problem are evaluated;
    default: with the problem's own switches. integral (nv,): of pid laws; None: zero. Raises ComputationError where the scenario
    cannot be evaluated."""
    work, n, sides = problem.work(), problem.size, sides or RightHandSide(problem, problem.signals)
    y, K = state_vector(problem, v, integral), np.zeros((2, n))
    code = sides.at(t, np.array(q), y, K, 0, work)
    if code != RUNNING:
        raise failure(problem, code, t, work, sides.ties)
    integrals = slice(2 * problem.model.nv, n - 1)
    work.z[:] = np.concatenate([y[integrals], K[0, integrals]])          # which a line does not write there
    return work
