"""Motions along the constraints of a looped tree, for slopes."""
import numpy as np

import liedyn as ld
from liedyn.dynamics.finite_differences import best_derivative

STEPS = (0.02, 2e-3)


def null_space(A):
    """Return the directions (nv, k) that the constraints allow."""
    _, s, Vt = np.linalg.svd(A)
    return Vt[(s > 1e-6 * s[0]).sum():].T


class Curve:
    """Motion along the constraints from q, v: the configuration goes along dq, the velocity along dv, both projected."""

    def __init__(self, case, q, v, dq, dv):
        self.case, self.q, self.v, self.dq, self.dv = case, q, v, dq, dv

    def at(self, s):
        model, constraint_motion = self.case.model, self.case.constraint_motion
        q = ld.project_configuration(model, ld.integrate(model, self.q, s * self.dq), constraint_motion=constraint_motion,
                                     tolerance=1e-14)
        return q, ld.project_velocity(model, q, self.v + s * self.dv, constraint_motion=constraint_motion)

    def slopes(self, function):
        """Return the derivatives of v and of a function of the state along the curve, and their uncertainties."""
        both, doubt = best_derivative(lambda s: np.concatenate([(x := self.at(s))[1], function(*x)]), STEPS)
        return *np.split(both, [len(self.v)]), doubt.max()
