"""Constrained inverse dynamics: every branch of Kim 2012 v2.01, §3.1, on planar linkages of n bars; a dense quadratic program for
each criterion; the inverse through forward dynamics on random looped trees; and errors."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
import loop_reference as reference
from bridge import relative
from liedyn.model.description import Coupling
from loop_zoo import LOOPED, five_bar, looped_of, motion, n_bar, n_bar_motion
from zoo import model_of

N = 9
CRITERIA = ("unique", "least_constraint_force", "least_torque")


def obeyed(model, q, v, a, out, **options):
    """Return the residual of the equation of motion for tau and lambda, relative to its maximum force."""
    needed = ld.inverse_dynamics(model.spanning_tree(), q, v, a, **options)
    return relative(out.tau + ld.constraint_forces(model, q, out.multipliers), needed, np.abs(out.tau).max())


def program(model, q, v, a, mask, criterion, tau_p=None, weights=1.0, **options):
    """Return tau of the dense quadratic program."""
    A, _ = reference.equations(model, q)
    tau_r = ld.inverse_dynamics(model.spanning_tree(), q, v, a, **options)
    w = (weights, 0.0) if criterion == "least_torque" else (0.0, 1.0)
    return reference.inverse_program(A, tau_r, np.zeros(model.nv) if tau_p is None else tau_p, mask, *w)


def mask_of(model, *which):
    mask = np.zeros(model.nv, dtype=bool)
    mask[list(which)] = True
    return mask


# the branches of K2 §3.1 ------------------------------------------------------------------------------------------
def test_unique_a_five_bar_of_two_motors(worst):
    """m = n_p: (58), whatever the criterion; the same A_a, A_p solved as printed. Checks: K2 (56)-(58)."""
    model, q = five_bar()
    q, v, a, _ = n_bar_motion(model, q)
    mask = mask_of(model, 0, 3)
    A, _ = reference.equations(model, q)
    A = A[[2, 3, 4]]                                  # wz, vx, vy: the rows that are not zero in the plane
    tau_r = ld.inverse_dynamics(model.spanning_tree(), q, v, a)
    expected = tau_r[mask] - A[:, mask].T @ np.linalg.solve(A[:, ~mask].T, tau_r[~mask])
    for criterion in CRITERIA:
        out = ld.constrained_inverse_dynamics(model, q, v, a, ["pin0", "pin3"], criterion=criterion)
        assert out.case == "unique" and (out.tau[~mask] == 0).all()
        assert worst("inverse: K2 (58)", relative(out.tau[mask], expected), criterion) < 1e-12
        assert worst("inverse: equation of motion", obeyed(model, q, v, a, out)) < 1e-12


def test_redundant_a_five_bar_of_three_motors(worst):
    """m > n_p: (59)-(64), each criterion as printed, on the rows that are not zero. Checks: K2 (59)-(64)."""
    model, q = five_bar()
    q, v, a, _ = n_bar_motion(model, q, 1)
    mask = mask_of(model, 0, 3, 4)
    A, _ = reference.equations(model, q)
    A = A[[2, 3, 4]]
    Aa, Ap, tau_r = A[:, mask], A[:, ~mask], ld.inverse_dynamics(model.spanning_tree(), q, v, a)
    x = np.linalg.pinv(Ap.T) @ tau_r[~mask]                                    # (60)
    N = np.linalg.svd(Ap.T)[2][2:].T
    least = tau_r[mask] - Aa.T @ x
    s = np.linalg.pinv(Aa.T @ N) @ least                                       # (64)
    for criterion, expected, multipliers in (("least_constraint_force", least, x),
                                             ("least_torque", least - Aa.T @ N @ s, x + N @ s)):
        out = ld.constrained_inverse_dynamics(model, q, v, a, mask, criterion=criterion)
        assert out.case == "redundant"
        assert worst("inverse: K2 (59)-(64)", relative(out.tau[mask], expected), criterion) < 1e-12
        assert worst("inverse: K2 (59)-(64)", relative(out.multipliers[[2, 3, 4]], multipliers), criterion) < 1e-12
        assert worst("inverse: equation of motion", obeyed(model, q, v, a, out)) < 1e-12
    with pytest.raises(ld.ComputationError) as caught:
        ld.constrained_inverse_dynamics(model, q, v, a, mask)
    assert str(caught.value) == ("several sets of generalized forces produce this motion: 3 coordinates are actuated, 1 more "
                                 'than this motion requires (select with criterion="least_torque" or "least_constraint_force")')


def test_fully_actuated_a_four_bar(worst):
    """Checks: K2 (65), (66). lambda = 0 if constraint forces are minimal."""
    model, q = n_bar(4)
    q, v, a, _ = n_bar_motion(model, q, 2)
    every = np.ones(4, dtype=bool)
    A, _ = reference.equations(model, q)
    A, tau_r = A[[2, 3, 4]], ld.inverse_dynamics(model.spanning_tree(), q, v, a)
    x = np.linalg.solve(A @ A.T, A @ tau_r)                                    # (66)
    out = ld.constrained_inverse_dynamics(model, q, v, a, every, criterion="least_torque")
    assert out.case == "fully actuated"
    assert worst("inverse: K2 (65), (66)", relative(out.tau, tau_r - A.T @ x, np.abs(tau_r).max())) < 1e-12
    assert worst("inverse: K2 (65), (66)", relative(out.multipliers[[2, 3, 4]], x)) < 1e-12
    out = ld.constrained_inverse_dynamics(model, q, v, a, model.joint_names, criterion="least_constraint_force")
    assert out.case == "fully actuated" and (out.multipliers == 0).all() and relative(out.tau, tau_r) < 1e-14
    with pytest.raises(ld.ComputationError, match="4 coordinates are actuated, 3 more than this motion requires"):
        ld.constrained_inverse_dynamics(model, q, v, a, every)


@pytest.mark.parametrize("closure, n", [("weld", 3), ("revolute", 2)])
@pytest.mark.parametrize("actuated", [(0,), (0, 1), (1,)])
def test_immobile_a_truss(closure, n, actuated, worst):
    """n = m: the constraints carry all loads, and the minimum is tau = 0."""
    model, q = n_bar(n, closure)
    zero = np.zeros(n)
    mask = mask_of(model, *actuated)
    out = ld.constrained_inverse_dynamics(model, q, zero, zero, mask, criterion="least_torque")
    weight = np.abs(ld.inverse_dynamics(model.spanning_tree(), q, zero, zero)).max()
    assert out.case == "immobile" and worst("inverse: torque in a truss", np.abs(out.tau).max() / weight) < 1e-13
    assert obeyed(model, q, zero, zero, out) < 1e-12
    with pytest.raises(ld.ComputationError) as caught:
        ld.constrained_inverse_dynamics(model, q, zero, zero, mask)
    assert str(caught.value).startswith("several sets of generalized forces produce this motion: the constraints leave no "
                                        "motion, so any force is possible (select with ")
    out = ld.constrained_inverse_dynamics(model, q, zero, zero, mask, criterion="least_constraint_force")
    expected, _ = program(model, q, zero, zero, mask, "least_constraint_force")
    assert out.case == "immobile" and relative(out.tau, expected) < 1e-12
    out = ld.constrained_inverse_dynamics(model, q, zero, zero, [])              # no motor, nothing to choose
    assert out.case == "immobile" and (out.tau == 0).all() and obeyed(model, q, zero, zero, out) < 1e-12


def test_under_actuated_a_five_bar_of_one_motor():
    """m < n_p: there is no solution, except for motions of the passive joints without forces."""
    model, q = five_bar()
    q, v, a, tau = n_bar_motion(model, q, 3)
    with pytest.raises(ld.ComputationError) as caught:
        ld.constrained_inverse_dynamics(model, q, v, a, ["pin3"])
    text = str(caught.value)
    assert text.startswith("no force of the actuated joints (pin3) produces this motion: the forces of passive joints do not "
                           "balance, pin")
    assert text.endswith(" N m; the mechanism has 2 degrees of freedom in this configuration (actuate more or other joints)")
    given = mask_of(model, 3)
    a = ld.constrained_forward_dynamics(model, q, v, np.where(given, 0.7, 0.0)).a
    out = ld.constrained_inverse_dynamics(model, q, v, a, given)
    assert out.case == "unique" and abs(out.tau[3] - 0.7) < 1e-12
    a = ld.constrained_forward_dynamics(model, q, v, tau).a
    out = ld.constrained_inverse_dynamics(model, q, v, a, given, tau_passive=tau)
    assert relative(out.tau, tau) < 1e-12


def test_a_singular_configuration():
    """A four-bar in a line has a second degree of freedom: one motor does not hold it, two do."""
    model, q = n_bar(4, q=np.zeros(4))
    zero = np.zeros(4)
    with pytest.raises(ld.ComputationError, match="the mechanism has 2 degrees of freedom in this configuration"):
        ld.constrained_inverse_dynamics(model, q, zero, zero, ["pin0"])
    out = ld.constrained_inverse_dynamics(model, q, zero, zero, ["pin0", "pin1"])
    assert out.case == "unique" and obeyed(model, q, zero, zero, out) < 1e-13
    bent, q = n_bar(4)
    assert ld.constrained_inverse_dynamics(bent, q, zero, zero, ["pin0"]).case == "unique"


def test_motors_in_the_wrong_place():
    """As many motors as degrees of freedom, but at joints whose motions the constraints couple: there is no solution."""
    model, _ = n_bar(5)
    geared = ld.build(replace(model.description, loops=(), couplings=(
        *_gear("g1", "pin0", "pin1"), *_gear("g2", "pin2", "pin3"))))
    a = np.array([0.3, 0.3, -0.2, -0.2, 0.5])
    with pytest.raises(ld.ComputationError, match="3 degrees of freedom"):
        ld.constrained_inverse_dynamics(geared, np.zeros(5), np.zeros(5), a, ["pin0", "pin1", "pin4"])
    assert ld.constrained_inverse_dynamics(geared, np.zeros(5), np.zeros(5), a, ["pin0", "pin3", "pin4"]).case == "unique"


def _gear(name, one, other):
    return (Coupling(name, ((one, "", 1.0), (other, "", -1.0))),)


# dependent rows ---------------------------------------------------------------------------------------------------
def test_closed_twice_is_as_closed_once(worst):
    """tau is compared, not lambda: a repeated closure halves the multipliers and changes no torque."""
    once, q = five_bar()
    twice, _ = n_bar(5, repeated=2)
    q, v, a, _ = n_bar_motion(once, q, 5)
    for criterion, mask in (("unique", mask_of(once, 0, 3)), ("least_torque", mask_of(once, 0, 1, 3))):
        x, y = (ld.constrained_inverse_dynamics(m, q, v, a, mask, criterion=criterion) for m in (once, twice))
        assert x.case == y.case
        assert worst("inverse: closed twice", relative(y.tau, x.tau)) < 1e-12
        assert worst("inverse: closed twice", relative(y.multipliers, np.tile(x.multipliers / 2, 2))) < 1e-12


def test_passive_springs_and_wrenches(worst):
    """They contribute to the balance of passive joints."""
    model, q = five_bar()
    q, v, a, _ = n_bar_motion(model, q, 6)
    F = np.random.default_rng(6).standard_normal((5, 6))
    for options in ({}, {"passive": False}, {"f_ext": F}, {"f_ext": {"bar2": F[2]}, "passive": False}):
        out = ld.constrained_inverse_dynamics(model, q, v, a, ["pin1", "pin2"], **options)
        back = ld.constrained_forward_dynamics(model, q, v, out.tau, **options)
        assert worst("inverse: round trip of the five-bar", relative(back.a, a)) < 1e-12
        assert worst("inverse: equation of motion", obeyed(model, q, v, a, out, **options)) < 1e-12


# the quadratic program --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("criterion", CRITERIA[1:])
@pytest.mark.parametrize("n, actuated", [(4, (0, 2)), (5, (0, 2, 4)), (6, (0, 1, 2, 4, 5)), (7, range(7))])
def test_quadratic_program(criterion, n, actuated, worst):
    model, q = n_bar(n)
    mask = mask_of(model, *actuated)
    for seed in range(3):
        q, v, _, tau = n_bar_motion(model, q, seed)
        rng = np.random.default_rng(seed)
        weights = rng.uniform(0.1, 10, mask.sum()) if criterion == "least_torque" else None
        balanced = ld.constrained_forward_dynamics(model, q, v, tau).a
        out = ld.constrained_inverse_dynamics(model, q, v, balanced, mask, criterion=criterion, weights=weights, tau_passive=tau)
        expected = program(model, q, v, balanced, mask, criterion, tau, 1.0 if weights is None else weights)
        assert worst("inverse: dense quadratic program", relative(out.tau, expected[0]), f"{n}-bar") < 1e-9
        off = relative(out.multipliers, expected[1], np.abs(tau).max())
        assert worst("inverse: dense quadratic program", off, f"{n}-bar") < 1e-9


def test_weights(worst):
    """Twice the weight on all changes nothing; a heavy one is spared; weights over v are read where actuated."""
    model, q = five_bar()
    state = n_bar_motion(model, q, 7)[:3]
    mask = mask_of(model, 0, 1, 3)
    call = lambda w: ld.constrained_inverse_dynamics(model, *state, mask, criterion="least_torque", weights=w).tau   # noqa: E731
    plain = call(None)
    assert relative(call(2 * np.ones(3)), plain) < 1e-13
    heavy = call([1.0, 1e6, 1.0])
    assert abs(heavy[1]) < 1e-9 * np.abs(plain).max() < abs(plain[1])
    assert worst("inverse: a weight spares a motor", relative(heavy, ld.constrained_inverse_dynamics(
        model, *state, mask_of(model, 0, 3)).tau)) < 1e-9
    assert relative(call([1.0, 3.0, 7.0, 2.0, -1.0]), call([1.0, 3.0, 2.0])) == 0
    shares = call(np.array([[1.0, 3.0, 2.0], [1.0, 1.0, 1.0]]))
    assert shares.shape == (2, 5) and relative(shares[1], plain) < 1e-13


# random looped trees ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", LOOPED)
def test_round_trip_on_looped_trees(name, worst):
    """Forces -> motion -> forces that make it; each criterion against the quadratic program. Where the balance of passive joints
    is ill-conditioned, rounding times the square of its condition, which the program's equations have, is what can be asked."""
    case = looped_of(name)
    model, constraint_motion = case.model, case.constraint_motion
    q, v, _, tau = motion(case, 1)
    a = ld.constrained_forward_dynamics(model, q, v, tau, constraint_motion=constraint_motion).a
    A, _ = reference.equations(model, q, constraint_motion)
    tau_r = ld.inverse_dynamics(model.spanning_tree(), q, v, a)
    for seed, share in enumerate((0.5, 0.8, 1.0)):
        mask = np.random.default_rng([seed, 17]).random(model.nv) < share
        s = np.linalg.svd(A[:, ~mask].T, compute_uv=False)
        s = s[s > 1e-5 * max(s, default=0)]
        bound = 1e-9 * max(1.0, 1e-4 * (s[0] / s[-1])**2) if len(s) else 1e-9
        for criterion in CRITERIA[1:]:
            out = ld.constrained_inverse_dynamics(model, q, v, a, mask, criterion=criterion, tau_passive=tau,
                                                  constraint_motion=constraint_motion)
            weights = (1.0, 0.0) if criterion == "least_torque" else (0.0, 1.0)
            expected, _ = reference.inverse_program(A, tau_r, tau, mask, *weights)
            size = np.abs(tau_r).max()
            assert worst("inverse: looped trees, program", relative(out.tau, expected, size), name) < bound
            gap = out.tau + A.T @ out.multipliers - tau_r
            assert worst("inverse: looped trees, balance", np.abs(gap).max() / size, name) < 1e-9
            if out.case == "unique":
                assert worst("inverse: looped trees, forces come back", relative(out.tau, tau, size), name) < bound


@pytest.mark.parametrize("name", ["every kind, looped", "closed twice", "driven"])
def test_batches_and_other_shapes(name, worst):
    case = looped_of(name)
    model, constraint_motion = case.model, case.constraint_motion
    q, v, _, tau = motion(case, 2, (N,))
    a = ld.constrained_forward_dynamics(model, q, v, tau, constraint_motion=constraint_motion).a
    mask = np.random.default_rng(3).random(model.nv) < 0.8
    for criterion in CRITERIA[1:]:
        def call(*state, tau, criterion=criterion):
            return ld.constrained_inverse_dynamics(model, *state, mask, criterion=criterion, tau_passive=tau,
                                                   constraint_motion=constraint_motion)
        many = call(q, v, a, tau=tau)
        one = [call(q[k], v[k], a[k], tau=tau[k]) for k in range(N)]
        assert many.tau.shape == (N, model.nv) and many.multipliers.shape == (N, model.nc) and many.case.shape == (N,)
        assert many.case.tolist() == [x.case for x in one] and all(isinstance(x.case, str) for x in one)
        assert worst("inverse: batch against single", relative(many.tau, [x.tau for x in one])) < 1e-11
        shaped = call(*(x.reshape(3, 3, -1) for x in (q, v, a)), tau=tau.reshape(3, 3, -1))
        assert relative(shaped.tau.reshape(N, -1), many.tau) < 1e-12 and shaped.case.shape == (3, 3)
    empty = call(q[:0], v[:0], a[:0], tau=tau[:0])
    assert empty.tau.shape == (0, model.nv) and empty.case.shape == (0,)


# errors --------------------------------------------------------------------------------------------------
def refused(error, *args, **options):
    with pytest.raises(error) as caught:
        ld.constrained_inverse_dynamics(*args, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_what_is_refused():
    model, q = five_bar()
    state = q, v, a, _ = n_bar_motion(model, q, 8)
    state, pins = state[:3], ["pin0", "pin3"]
    assert "robot zoo6 has no constraints" in refused(ld.ModelError, model_of("one degree of freedom each"), *state, pins)
    assert refused(ld.LiedynError, model, *state, ["pin0", "pin9"]) == "no moving joint 'pin9'; did you mean 'pin4'?"
    assert "actuated is neither names of joints nor a mask over v: expected bool (5,), got bool of shape (2,)" in refused(
        ld.ShapeError, model, *state, np.ones(2, dtype=bool))
    assert "got float64 of shape (5,)" in refused(ld.ShapeError, model, *state, np.ones(5))
    assert refused(ld.LiedynError, model, *state, pins, criterion="least") == (
        "unknown criterion 'least': expected one of unique, least_constraint_force, least_torque")
    assert "weights apply to forces of joints, which the criterion 'unique' does not use" in refused(
        ld.LiedynError, model, *state, pins, weights=[1, 1])
    for bad in ([1.0, 0.0], [1.0, np.nan], [-1.0, 1.0]):
        assert "weights must be positive" in refused(ld.ConfigurationError, model, *state, pins, criterion="least_torque",
                                                         weights=bad)
    assert "weights has the wrong shape: expected (…, 2), got (3,)" in refused(
        ld.ShapeError, model, *state, pins, criterion="least_torque", weights=[1, 1, 1])
    assert "is not finite: got nan" in refused(
        ld.ConfigurationError, model, *state, pins, tau_passive=np.full(5, np.nan))
    assert "leading axes do not match: the motion (5,), the drive (6,), tau_passive (2, 5), weights (3, 2)" in refused(
        ld.ShapeError, model, *state, pins, tau_passive=np.zeros((2, 5)), criterion="least_torque", weights=np.ones((3, 2)))
    assert "a[1] (pin1) is not finite" in refused(ld.ConfigurationError, model, q, v, a * [1, np.nan, 1, 1, 1], pins)
    assert "no driven loop 'close0'" in refused(ld.LiedynError, model, *state, pins, constraint_motion={"close0": np.eye(4)})


def test_a_motion_that_breaks_a_constraint():
    model, q = five_bar()
    q, v, a, _ = n_bar_motion(model, q, 9)
    bad = a + np.eye(5)[2]
    text = refused(ld.ComputationError, model, q, v, bad, ["pin0", "pin3"])
    assert text.startswith("the motion violates a constraint: A a + gamma is ") and " rad/s^2 in row close0.wz (" in text
    assert text.endswith("(constrained_hybrid_dynamics gives consistent accelerations)")
    text = refused(ld.ComputationError, model, np.stack([q] * 3), v, np.stack([a, a, bad]), ["pin0", "pin3"])
    assert text.startswith("the motion violates a constraint in state 2: ")


def test_names_of_coordinates():
    """All coordinates of a joint are actuated, or one of them."""
    case = looped_of("cylindrical, looped")
    q, v, _, tau = motion(case, 4)
    a = ld.constrained_forward_dynamics(case.model, q, v, tau).a
    call = lambda names: ld.constrained_inverse_dynamics(case.model, q, v, a, names, criterion="least_torque",  # noqa: E731
                                                         tau_passive=tau).tau
    assert relative(call(["joint0", "joint2.slide"]), call(mask_of(case.model, 0, 1, 5))) == 0
    assert relative(call("joint0"), call(mask_of(case.model, 0, 1))) == 0
