"""Derivatives of constrained dynamics, over every kind of closure: against differences along the constraints, and identities."""
import os
import subprocess
import sys

import numpy as np
import pytest

import liedyn as ld
import loop_zoo
from differences import by_each, by_q
from liedyn.dynamics.finite_differences import best_derivative
from loop_curves import STEPS, Curve, null_space
from rounding import assert_same

BOUND = 1e-8         # of the largest entry, beyond what extrapolated differences are unsure of themselves
_STEP = 0.01


def curves(case, q, v, most=3):
    Z = null_space(ld.constraint_jacobian(case.model, q, constraint_motion=case.constraint_motion))
    rng = np.random.default_rng(5)
    for x in rng.standard_normal((min(most, Z.shape[1]), Z.shape[1])):
        yield Curve(case, q, v, Z @ x / np.linalg.norm(x), rng.standard_normal(case.model.nv))


def relative(x, truth, scale=1.0):
    return np.abs(x - truth).max(initial=0.0) / max(np.abs(truth).max(initial=0.0), scale)


def test_a_process_that_does_nothing_else():
    """What it needs is imported by the package, not by a test before this one."""
    code = ("import liedyn as ld, loop_zoo\n"
            "case = loop_zoo.looped_of(loop_zoo.LOOPED[0])\n"
            "q, v, _, tau = loop_zoo.motion(case)\n"
            "found = ld.constrained_forward_derivatives(case.model, q, v, tau, constraint_motion=case.constraint_motion)\n"
            "print(found.da_dq.shape[0] == case.model.nv)")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize("name", loop_zoo.LOOPED)
def test_forward_along_the_constraints(name, worst):
    case = loop_zoo.looped_of(name)
    q, v, _, tau = loop_zoo.motion(case)
    d = ld.constrained_forward_derivatives(case.model, q, v, tau, passive=False, constraint_motion=case.constraint_motion)

    def result(q, v):
        found = ld.constrained_forward_dynamics(case.model, q, v, tau, passive=False, constraint_motion=case.constraint_motion)
        return np.concatenate([found.a, found.multipliers])
    for curve in curves(case, q, v):
        dv, truth, doubt = curve.slopes(result)
        assert doubt < 1e-4 * max(np.abs(truth).max(), 1.0)
        for what, by_q_, by_v, true in (("a", d.da_dq, d.da_dv, truth[:case.model.nv]),
                                        ("lambda", d.dlambda_dq, d.dlambda_dv, truth[case.model.nv:])):
            ours, size = by_q_ @ curve.dq + by_v @ dv, max(np.abs(true).max(initial=0.0), 1.0)
            doubted = 10 * doubt * (1.0 + np.abs(by_v).max(initial=0.0))          # that of dv goes through da/dv
            error = max(np.abs(ours - true).max(initial=0.0) - doubted, 0.0) / size
            worst(f"constrained forward derivatives, {what}", np.abs(ours - true).max(initial=0.0) / size, name)
            assert worst(f"constrained forward derivatives, {what}, beyond doubt", error, name) < BOUND, what


def independent(name):
    case = loop_zoo.looped_of(name)
    q, v, _, tau = loop_zoo.motion(case)
    return ld.constrained_forward_dynamics(case.model, q, v, tau, constraint_motion=case.constraint_motion).independent.all()


@pytest.mark.parametrize("name", loop_zoo.CLOSURES)
def test_hybrid_in_every_direction(name, worst):
    """Where rows do not depend on each other the formulas have derivatives off the constraints too, and by the inputs."""
    case = loop_zoo.looped_of(name)
    model, nv = case.model, case.model.nv
    q, v, a, tau = loop_zoo.motion(case)
    prescribed = np.arange(nv) % 7 == 2
    A = ld.constraint_jacobian(model, q)
    prescribed &= np.linalg.matrix_rank(A[:, ~prescribed], tol=1e-3) == len(A)
    d = ld.constrained_hybrid_derivatives(model, q, v, a, tau, prescribed, passive=False)
    u = np.where(prescribed, a, tau)

    def result(q, v, u):
        found = ld.constrained_hybrid_dynamics(model, q, v, u, u, prescribed, passive=False)
        return np.concatenate([np.where(prescribed, found.tau, found.a), found.multipliers])
    one, truth = np.eye(nv), []
    for f in (lambda x: result(ld.integrate(model, q, x), v, u), lambda x: result(q, v + x, u), lambda x: result(q, v, u + x)):
        columns = [best_derivative(lambda s, f=f, e=e: f(s * e), STEPS) for e in one]
        truth.append([np.stack(x, axis=-1) for x in zip(*columns, strict=True)])
    for what, y, multipliers, (true, doubt) in zip("qvu", d[:3], d[3:6], truth, strict=True):
        off = np.abs(np.vstack([y, multipliers]) - true)
        assert doubt.max() < 1e-5 * np.abs(true).max()
        error = np.maximum(off - 10 * doubt, 0.0).max() / np.abs(true).max()
        worst(f"constrained hybrid derivatives by {what}", off.max() / np.abs(true).max(), name)
        assert worst(f"constrained hybrid derivatives by {what}, beyond doubt", error, name) < BOUND


def test_couplings_alone_leave_the_derivatives_of_the_tree(worst):
    """A is constant then: the tree's own inverse derivatives, with friction and springs, under a dense saddle point system."""
    case = loop_zoo.looped_of("closure: coupling")
    model, nv, m = case.model, case.model.nv, case.model.nc
    q, v, _, tau = loop_zoo.motion(case)
    F = np.random.default_rng(0).standard_normal((len(model.link_names), 6))
    found = ld.constrained_forward_dynamics(model, q, v, tau, f_ext=F)
    d = ld.constrained_forward_derivatives(model, q, v, tau, f_ext=F)
    tree, A = ld.inverse_dynamics_derivatives(model.spanning_tree(), q, v, found.a, f_ext=F), ld.constraint_jacobian(model, q)
    saddle = np.block([[tree.M, -A.T], [A, np.zeros((m, m))]])
    for ours, multipliers, R in ((d.da_dq, d.dlambda_dq, -tree.dtau_dq), (d.da_dv, d.dlambda_dv, -tree.dtau_dv),
                                 (d.da_dtau, d.dlambda_dtau, np.eye(nv))):
        truth = np.linalg.solve(saddle, np.vstack([R, np.zeros((m, nv))]))
        assert worst("couplings: derivatives of the tree", relative(np.vstack([ours, multipliers]), truth)) < 1e-11


@pytest.mark.parametrize("name", ["closure: revolute", "closed twice, floating"])
def test_hybrid_at_its_extremes(name):
    case = loop_zoo.looped_of(name)
    model, nv = case.model, case.model.nv
    q, v, _, tau = loop_zoo.motion(case)
    found, forward = (f(model, q, v, tau) for f in (ld.constrained_forward_dynamics, ld.constrained_forward_derivatives))
    hybrid = ld.constrained_hybrid_derivatives(model, q, v, found.a, tau, np.zeros(nv, dtype=bool))
    for x, y in zip(hybrid[:6], forward, strict=True):
        assert_same(x, y)
    split = hybrid.split()
    assert_same(split.da_dq, forward.da_dq)
    np.testing.assert_array_equal(split.dtau_du, np.eye(nv))
    # the response to forces is symmetric, of as many directions as there is freedom, and none of them opens the constraints
    A, G = ld.constraint_jacobian(model, q), forward.da_dtau
    size = np.abs(G).max()
    np.testing.assert_allclose(G, G.T, atol=1e-11 * size)
    np.testing.assert_allclose(A @ G, 0.0, atol=1e-10 * size)
    s = np.linalg.svd(G, compute_uv=False)
    assert (s > 1e-9 * s[0]).sum() == null_space(A).shape[1]


def test_all_prescribed_is_inverse_dynamics(worst):
    """With every acceleration given, tau = R1 for the multipliers that are least: none."""
    case = loop_zoo.looped_of("closure: universal")
    model, nv = case.model, case.model.nv
    q, v, _, tau = loop_zoo.motion(case)
    a = ld.constrained_forward_dynamics(model, q, v, tau).a
    d = ld.constrained_hybrid_derivatives(model, q, v, a, tau, np.ones(nv, dtype=bool))
    tree = ld.inverse_dynamics_derivatives(model.spanning_tree(), q, v, a)
    for x, y in zip(d[:3], tree, strict=True):
        assert worst("all prescribed", relative(x, y)) < 1e-12
    assert not any(np.any(x) for x in d[3:6])


@pytest.mark.parametrize("name", ["closure: rolling", "driven, the others", "closure: distance"])
def test_rates_of_the_balance(name, worst):
    case = loop_zoo.looped_of(name)
    model, constraint_motion = case.model, case.constraint_motion
    q, v, a, _ = loop_zoo.anywhere(case)
    multipliers = np.random.default_rng(1).standard_normal(model.nc)
    d = ld.balance_derivatives(model, q, v, a, multipliers, a, passive=False, constraint_motion=constraint_motion)

    def balance(q, v):
        tree = model.spanning_tree()
        R1 = ld.inverse_dynamics(tree, q, v, a,
                                 passive=False) - ld.constraint_jacobian(model, q,
                                                                         constraint_motion=constraint_motion).T @ multipliers
        R2 = ld.constraint_jacobian(model, q,
                                    constraint_motion=constraint_motion) @ a + ld.constraint_bias(
            model, q, v, constraint_motion=constraint_motion)
        return np.concatenate([R1, R2, ld.constraint_velocity(model, q, a, constraint_motion=constraint_motion)])
    truth = by_q(lambda q: balance(q, v), model, q, _STEP), by_each(lambda x: balance(q, v + x), model.nv)
    m = model.nc
    found = np.vstack([d.dR1_dq, d.dR2_dq, d.dAx_dq]), np.vstack([d.dR1_dv, d.dR2_dv, np.zeros((m, model.nv))])
    for x, y in zip(found, truth, strict=True):
        assert worst("rates of the balance", relative(x, y), name) < 1e-9
    assert relative(d.M, ld.mass_matrix(model, q)) < 1e-13
    assert relative(d.A, ld.constraint_jacobian(model, q, constraint_motion=constraint_motion)) < 1e-13


def test_by_wrench(worst):
    case = loop_zoo.looped_of("closure: ball")
    model = case.model
    q, v, _, tau = loop_zoo.motion(case)
    link = model.link_names[-1]
    d = ld.constrained_forward_derivatives(model, q, v, tau).wrt_wrench(ld.jacobian(model, q, link, frame="local"))

    def result(F):
        found = ld.constrained_forward_dynamics(model, q, v, tau, f_ext={link: F})
        return np.concatenate([found.a, found.multipliers])
    truth = by_each(result, 6)
    assert worst("constrained derivatives by a wrench", relative(np.vstack(d), truth)) < 1e-11


@pytest.mark.parametrize("name", ["closure: weld", "driven", "closed twice"])
def test_a_batch_is_its_states(name):
    case = loop_zoo.looped_of(name)
    model = case.model
    q, v, _, tau = loop_zoo.motion(case, size=(3, 3))
    d = ld.constrained_forward_derivatives(model, q, v, tau, constraint_motion=case.constraint_motion)
    for i, j in np.ndindex(3, 3):
        # forward dynamics of a batch rounds otherwise than that of a state
        alone = ld.constrained_forward_derivatives(model, q[i, j], v[i, j], tau[i, j], constraint_motion=case.constraint_motion)
        for x, y in zip(d, alone, strict=True):
            assert x.shape == (3, 3, *y.shape)
            np.testing.assert_allclose(x[i, j], y, rtol=0, atol=1e-10 * max(np.abs(y).max(), 1.0))
    none = ld.constrained_forward_derivatives(model, q[:0], v[:0], tau[:0], constraint_motion=case.constraint_motion)
    assert none.da_dq.shape == (0, 3, model.nv, model.nv)


def test_errors():
    case = loop_zoo.looped_of("closure: weld")
    model = case.model
    q, v, a, tau = loop_zoo.motion(case)
    with pytest.raises(ld.ModelError, match="has no constraints"):
        ld.constrained_forward_derivatives(ld.build(loop_zoo.random_robot(3, 3)), q, v, tau)
    with pytest.raises(ld.ShapeError, match="tau has the wrong shape"):
        ld.constrained_forward_derivatives(model, q, v, tau[1:])
    with pytest.raises(ld.ConfigurationError, match=r"v\[0\]"):
        ld.constrained_forward_derivatives(model, q, v * np.nan, tau)
    with pytest.raises(ld.ShapeError, match="multipliers has the wrong shape"):
        ld.balance_derivatives(model, q, v, a, np.zeros(1))
    with pytest.raises(ld.LiedynError, match="f_ext or the motion of a driven loop contains NaN"):
        ld.balance_derivatives(model, q, v, a, np.zeros(model.nc), f_ext={model.link_names[0]: np.full(6, np.inf)})
    driven = loop_zoo.looped_of("driven")
    q, v, a, _ = loop_zoo.motion(driven)
    lost = {name: (pose, np.full(6, np.nan), *rest) for name, (pose, _, *rest) in driven.constraint_motion.items()}
    with pytest.raises(ld.LiedynError, match="f_ext or the motion of a driven loop contains NaN"):
        ld.balance_derivatives(driven.model, q, v, a, np.zeros(driven.model.nc), constraint_motion=lost)
