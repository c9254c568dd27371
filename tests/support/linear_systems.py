"""Linear systems of tests: by matrices, at random, an oscillator, and a cart with a pole."""
import numpy as np

import liedyn as ld
from liedyn.analysis.linear_system import LinearSystem


def system(A, B, C, D=None, states=None, moving=None):
    A, B, C = (np.array(x, dtype=float) for x in (A, B, C))
    (n, m), p = B.shape, len(C)
    states = states or tuple(f"{kind}.j{k}" for kind in "qv" for k in range(n // 2)) + ("z.j0",) * (n % 2)
    moving = np.ones(n, dtype=bool) if moving is None else np.array(moving)
    return LinearSystem(A, B, C, np.zeros((p, m)) if D is None else np.array(D, dtype=float), states,
                        tuple(f"tau.j{k}" for k in range(m)), tuple(f"q.j{k}" for k in range(p)), ("1",) * n, ("N",) * m,
                        ("rad",) * p, moving)


def random_system(n, m, p, seed=0, direct=False):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((p, m)) if direct else np.zeros((p, m))
    return system(rng.standard_normal((n, n)), rng.standard_normal((n, m)), rng.standard_normal((p, n)), D)


def cart_pole(model, **options):
    return ld.linearize(model, model.neutral(), np.zeros(2), np.zeros(2), **options)


def oscillator(w, damping=0.0):
    return system([[0, 1], [-w * w, -damping]], [[0], [1]], [[1, 0]])


def sorted_values(values):
    return np.array(sorted(values, key=lambda z: (round(z.real, 6), round(z.imag, 6))))
