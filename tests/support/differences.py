"""Derivatives of arrays by each coordinate, by differences of eighth order (`matrices.derivative`)."""
import numpy as np

import liedyn as ld
from matrices import derivative


def by_each(function, n, h=0.02):
    """Return the derivative with respect to x_k at x = 0 of function(x), x (n,): last axis k."""
    return np.stack([derivative(lambda t, e=e: function(t * e), h) for e in np.eye(n)], axis=-1)


def by_q(function, model, q, h=0.02):
    """Return the tangent derivative with respect to q_k of function(q): last axis k."""
    return by_each(lambda d: function(ld.integrate(model, q, d)), model.nv, h)
