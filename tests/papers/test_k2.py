"""Kim 2012, v2.01 (K2), §3, on a planar five-bar linkage: (54)-(66) evaluated as printed from M, b and the constraints' matrix A.
What comes before is K1's; every case of §3.1, with errors: tests/dynamics/test_constrained_inverse.py."""
from types import SimpleNamespace

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from differences import by_q
from loop_zoo import five_bar, n_bar_motion

CLOSE = 1e-11          # rounding times the condition of A


@pytest.fixture(scope="module")
def case():
    """A motion that obeys the constraints, and the forces of the open chain that would make it. Passive forces are left out; the
    three rows of the closure that are not zero in the plane: m = 3 constraints on n = 5 joints."""
    model, q = five_bar()
    q, v, a, _ = n_bar_motion(model, q, 5)
    tree = model.spanning_tree()
    A = ld.constraint_jacobian(model, q)[[2, 3, 4]]
    return SimpleNamespace(model=model, tree=tree, q=q, v=v, a=a, A=A, M=ld.mass_matrix(tree, q),
                           b=ld.inverse_dynamics(tree, q, v, 0 * v, passive=False),
                           tau_r=ld.inverse_dynamics(tree, q, v, a, passive=False))


def split(case, actuated):
    mask = np.isin(np.arange(case.model.nv), actuated)
    return mask, case.A[:, mask], case.A[:, ~mask], case.tau_r[mask], case.tau_r[~mask]


def test_equations_of_motion(case):
    """Checks: K2 (54), (55). Of forward dynamics: M a + b = tau + A^T lambda; A v = 0 and its derivative. A is df/dq."""
    tau = np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    out = ld.constrained_forward_dynamics(case.model, case.q, case.v, tau, passive=False)
    multipliers = out.multipliers[[2, 3, 4]]
    assert relative(case.M @ out.a + case.b - tau, case.A.T @ multipliers) < CLOSE                   # (54)
    assert np.abs(case.A @ case.v).max() < 1e-13                                                     # (55)
    gamma = ld.constraint_bias(case.model, case.q, case.v)[[2, 3, 4]]
    assert relative(case.A @ out.a, -gamma) < CLOSE
    slope = by_q(lambda q: ld.constraint_residual(case.model, q)[[2, 3, 4]], case.model, case.q)
    assert relative(slope, case.A) < 1e-9


def test_as_many_constraints_as_passive_joints(case):
    """Checks: K2 (56)-(58). Two of five joints actuated: a unique solution."""
    actuated = [0, 3]
    mask, Aa, Ap, ra, rp = split(case, actuated)
    out = ld.constrained_inverse_dynamics(case.model, case.q, case.v, case.a, mask, passive=False)
    multipliers = np.linalg.solve(Ap.T, rp)                                                          # (57), tau_p = 0
    tau = ra - Aa.T @ np.linalg.solve(Ap.T, rp)                                                      # (58)
    assert relative(out.tau[mask], tau) < CLOSE
    assert relative(out.multipliers[[2, 3, 4]], multipliers) < CLOSE
    assert relative(case.tau_r - case.A.T @ multipliers, out.tau, np.abs(out.tau).max()) < CLOSE     # (56)


def test_more_constraints_than_passive_joints(case):
    """Checks: K2 (59)-(64). Four joints actuated: all of (59) make the motion, and the two choices are the least ones."""
    mask, Aa, Ap, ra, rp = split(case, [0, 1, 3, 4])
    base, N = np.linalg.pinv(Ap.T) @ rp, np.linalg.svd(Ap.T)[2][1:].T
    s = np.linalg.pinv(Aa.T @ N) @ (ra - Aa.T @ base)                                                # (64)
    least = (np.eye(4) - Aa.T @ N @ np.linalg.pinv(Aa.T @ N)) @ (ra - Aa.T @ base)                   # (62)
    assert relative(ra - Aa.T @ (base + N @ s), least) < CLOSE                                       # (60), (63)
    for free in np.random.default_rng(1).standard_normal((5, 2)):
        multipliers = base + N @ free                                                                # (59)
        tau = np.zeros(5)
        tau[mask] = ra - Aa.T @ multipliers                                                          # (60), (61)
        assert np.linalg.norm(multipliers) > np.linalg.norm(base)
        assert np.linalg.norm(tau) > np.linalg.norm(least)
        again = ld.constrained_forward_dynamics(case.model, case.q, case.v, tau, passive=False)
        assert relative(again.a, case.a) < 1e-10
    for criterion, tau, multipliers in (("least_constraint_force", ra - Aa.T @ base, base),
                                        ("least_torque", least, base + N @ s)):
        out = ld.constrained_inverse_dynamics(case.model, case.q, case.v, case.a, mask, criterion=criterion, passive=False)
        assert relative(out.tau[mask], tau) < CLOSE
        assert relative(out.multipliers[[2, 3, 4]], multipliers) < CLOSE


def test_all_joints_actuated(case):
    """Checks: K2 (65), (66)."""
    multipliers = np.linalg.solve(case.A @ case.A.T, case.A @ case.tau_r)                            # (66)
    tau = case.tau_r - case.A.T @ multipliers                                                        # (65)
    out = ld.constrained_inverse_dynamics(case.model, case.q, case.v, case.a, np.ones(5, bool), criterion="least_torque",
                                          passive=False)
    assert relative(out.tau, tau) < CLOSE and relative(out.multipliers[[2, 3, 4]], multipliers) < CLOSE
