"""Constrained dynamics, stage by stage."""
import numpy as np
import pytest

from constrained_stages import quantities
from loop_zoo import LOOPED, anywhere, looped_of, motion

SOLVER = ("A M^-1 A^T lambda", "lambda of minimum norm")


@pytest.mark.parametrize("state", [motion, anywhere])
@pytest.mark.parametrize("name", LOOPED)
@pytest.mark.parametrize("n_prescribed", [0, 1])
def test_intermediate_quantities_against_dense_matrices(name, n_prescribed, state, worst):
    """By the kernels in plain Python, each against the reference from the quantities before it.

    Where loops are open, dependent equations contradict each other, and the multipliers depend on the choice of equations; also
    where the motion that remains is prescribed.
    """
    case = looped_of(name)
    q, v, a, tau = state(case)
    prescribed = np.arange(case.model.nv) >= case.model.nv - n_prescribed
    for one in quantities(case.model, q, v, a, tau, prescribed, case.constraint_motion):
        if one.name not in SOLVER or (state is motion and not n_prescribed):
            kind = one.name.partition(" of ")[0] if one.name.startswith("frames") else one.name
            assert worst(f"stages: {kind}", one.error, name) < 1e-7, one.name
