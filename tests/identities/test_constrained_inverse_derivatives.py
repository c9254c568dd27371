"""Derivatives of constrained inverse dynamics, by every criterion, along motions that obey the constraints."""
import numpy as np
import pytest

import liedyn as ld
import loop_zoo
from liedyn.dynamics.finite_differences import best_derivative
from loop_curves import Curve, null_space

CASES = {
    "least_constraint_force": ["closure: weld", "closure: universal", "closed twice", "driven"],
    "least_torque": ["closure: revolute", "closure: rolling", "closed twice, floating", "closure: coupling"],
    "unique": ["closure: weld", "closure: ball", "closed twice"],
}


def actuated_of(case, q, several: bool):
    """As many passive coordinates as the constraints can hold, two fewer where several forces should do."""
    A = ld.constraint_jacobian(case.model, q, constraint_motion=case.constraint_motion)
    rank = np.linalg.matrix_rank(A, tol=1e-6)
    passive, left = [], A.copy()
    for _ in range(max(rank - 2 * several, 0)):
        k = int(np.argmax(np.linalg.norm(left, axis=0)))
        d = left[:, k] / np.linalg.norm(left[:, k])
        left = left - np.outer(d, d @ left)
        passive.append(k)
    return ~np.isin(np.arange(case.model.nv), passive)


@pytest.mark.parametrize(("criterion", "name"), [(criterion, name) for criterion, names in CASES.items() for name in names])
def test_along_motions(criterion, name, worst):
    case = loop_zoo.looped_of(name)
    model, nv, constraint_motion = case.model, case.model.nv, case.constraint_motion
    q, v, _, tau = loop_zoo.motion(case)
    rng = np.random.default_rng(4)
    actuated, given = actuated_of(case, q, criterion != "unique"), {"criterion": criterion, "passive": False,
                                                                    "constraint_motion": constraint_motion}
    if criterion == "least_torque":
        given["weights"] = rng.uniform(0.5, 2, int(actuated.sum()))
    tau_p = {"tau_passive": rng.standard_normal(nv)}
    Z = null_space(ld.constraint_jacobian(model, q, constraint_motion=constraint_motion))
    dtau = rng.standard_normal(nv)

    def motion(s, curve):
        q, v = curve.at(s)
        return q, v, ld.constrained_forward_dynamics(model, q, v, tau + s * dtau, passive=False,
                                                     constraint_motion=constraint_motion).a

    def along(s, curve):
        q, v, a = motion(s, curve)
        found = ld.constrained_inverse_dynamics(model, q, v, a, actuated, **given, **tau_p)
        return np.concatenate([v, a, found.tau, found.multipliers])

    for x in rng.standard_normal((2, Z.shape[1])):
        curve = Curve(case, q, v, Z @ x / np.linalg.norm(x), rng.standard_normal(nv))
        d = ld.constrained_inverse_derivatives(model, *motion(0.0, curve), actuated, **given, **tau_p)
        slope, doubt = best_derivative(lambda s, curve=curve: along(s, curve), (0.02, 2e-3))
        dv, da, dtau_true, dlambda = np.split(slope, np.cumsum([nv, nv, nv]))
        for what, (by_q, by_v, by_a), true in (("tau", d[:3], dtau_true), ("lambda", d[3:], dlambda)):
            size = max(np.abs(true).max(initial=0.0), 1.0)
            error = np.abs(by_q @ curve.dq + by_v @ dv + by_a @ da - true).max(initial=0.0)
            worst(f"constrained inverse derivatives, {what}", error / size, f"{criterion}, {name}")
            unsure = 10 * doubt.max() * (1.0 + np.abs(by_v).max(initial=0.0) + np.abs(by_a).max(initial=0.0))
            assert error < 1e-8 * size + unsure and unsure < 1e-2 * size, f"{what}: {error / size:.1e}"


def test_passive_rows_are_zero_and_batches():
    case = loop_zoo.looped_of("closure: ball")
    model = case.model
    q, v, _, tau = loop_zoo.motion(case, size=(2,))
    a = ld.constrained_forward_dynamics(model, q, v, tau).a
    actuated = actuated_of(case, case.q, True)
    d = ld.constrained_inverse_derivatives(model, q, v, a, actuated, criterion="least_torque")
    for k in range(2):
        alone = ld.constrained_inverse_derivatives(model, q[k], v[k], a[k], actuated, criterion="least_torque")
        for x, y in zip(d, alone, strict=True):
            np.testing.assert_allclose(x[k], y, rtol=0, atol=1e-11 * max(np.abs(y).max(), 1.0))
    for x in d[:3]:
        assert not np.any(x[:, ~actuated])
