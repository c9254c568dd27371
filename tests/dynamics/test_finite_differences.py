"""Differences and how far they may be off: smooth functions, bends, kinks, peaks narrower than the steps, and a robot whose
mass matrix is nearly singular."""
import numpy as np
import pytest

import liedyn as ld
from bridge import file_of
from liedyn.analysis.recorded_motion import SampledMotion
from liedyn.analysis.trajectory_derivatives import derivative_request, differences
from liedyn.dynamics.finite_differences import (
    MAX_EXCESS,
    DerivativeComparison,
    best_derivative,
    compare,
    extrapolated_derivative,
    mass_matrix_condition,
    numerical_derivative,
    rounding_error,
)
from liedyn.errors import ComputationError


def one(f):
    """As an array, as the dynamics give it."""
    return lambda s: np.array([f(s)])


def test_smooth_functions_to_ten_digits():
    found, doubt = extrapolated_derivative(lambda s: np.array([np.sin(1 + s), np.exp(s)]), 0.1)
    assert found == pytest.approx([np.cos(1), 1], rel=1e-12) and (doubt < 1e-10).all()
    found, doubt = extrapolated_derivative(lambda s: np.array([np.sin(1 + s)]), 0.1, levels=3)
    assert found == pytest.approx([np.cos(1)], rel=1e-9) and (np.abs(found - np.cos(1)) < doubt).all()
    assert (doubt < 1e-6).all()                                # the error of the value before it, 0.1**4 / 500, not of the first


def test_a_bend_within_a_hundredth_of_the_step():
    found, doubt = extrapolated_derivative(one(lambda s: s / np.sqrt(s * s + 1e-4)), 0.02)
    assert found == pytest.approx([100], rel=1e-7) and (np.abs(found - 100) < 10 * doubt).all()


def test_a_kink_is_no_derivative_and_no_doubt():
    """Else a law with a kink would pass as sound."""
    found, doubt = extrapolated_derivative(one(abs), 0.02)
    assert abs(found[0]) < 1e-12 and doubt[0] < 1e-12


def test_noise_is_doubted():
    """A function that is known to 1e-9 only."""
    rng = np.random.default_rng(0)
    found, doubt = extrapolated_derivative(one(lambda s: np.sin(s) + 1e-9 * rng.standard_normal()), 0.02)
    assert 1e-9 < abs(found[0] - 1) < 10 * doubt[0] < 1e-4


def test_a_peak_narrower_than_the_steps_is_found_where_the_condition_tells_of_it():
    width = 1e-5

    def peak(s):
        return 1 / (1 + ((s + width / 3) / width) ** 2)

    exact = -2 / 3 / width * peak(0.0) ** 2
    blind, doubt = extrapolated_derivative(one(peak), 0.02)
    assert abs(blind[0] - exact) > 0.9 * abs(exact) and doubt[0] < 1e-3 * abs(exact)       # so smooth from afar
    found, doubt = best_derivative(one(peak), (0.02,), condition=1e11)
    assert found[0] == pytest.approx(exact, rel=1e-6) and abs(found[0] - exact) < 10 * doubt[0]


def test_steps_that_lead_astray_do_not_count():
    def f(s):
        if abs(s) > 0.1:
            raise ComputationError("a body without inertia")
        return np.array([s, 3 * s])

    found, _ = best_derivative(f, (1.0, 0.1))
    assert found == pytest.approx([1, 3])
    with pytest.raises(ComputationError, match="a body without inertia"):
        best_derivative(f, (1.0,))
    with pytest.raises(ComputationError, match="finite differences cannot be computed here: they are not finite"):
        best_derivative(lambda s: np.array([np.nan]), (1.0,))


def test_compared():
    theirs, doubt = np.array([[1.0, 2.0]]), np.array([[0.0, 1e-4]])
    assert compare(theirs, theirs, 0 * doubt, 2.0) == DerivativeComparison(0, 0, 0)
    bent = compare(theirs + np.array([0, 9e-4]), theirs, doubt, 2.0)
    assert bent.sound and bent.off == pytest.approx(4.5e-4)
    assert str(bent) == "4.5e-04 (finite differences are accurate to 5e-04 only)"
    wrong = compare(theirs + np.array([1e-5, 0]), theirs, doubt, 2.0)
    assert not wrong.sound and wrong.excess == pytest.approx(5e-6)
    assert not compare(np.nan * theirs, theirs, doubt, 2.0).sound
    assert rounding_error(np.array([[[1e12]]]), theirs[None]).shape == (1, 1, 1) and MAX_EXCESS == 1e-6


# --- a fixed iCub: condition of its mass matrix up to 1e13 -------------------------------------------------------------------

@pytest.fixture(scope="module")
def icub():
    """Seeds of configurations, from an ordinary one to one whose mass matrix is singular except for rounding."""
    model = ld.load(file_of("icub.urdf"), base="fixed")
    q = np.array([ld.random_configuration(model, np.random.default_rng(seed)) for seed in (0, 541, 641, 1725, 1713)])
    v, tau = np.random.default_rng(1).standard_normal((2, len(q), model.nv))
    return model, SampledMotion(q, v, None, tau, None, True, ())


def test_a_sound_derivative_is_never_refused(icub, worst):
    model, motion = icub
    asked = derivative_request(model, "forward", (), ("q.*", "tau.*"), ())
    assert mass_matrix_condition(model, motion.q, ~asked.prescribed).max() > 1e12
    for k in range(len(motion.q)):
        for name, found in differences(model, asked, motion, [k]).items():
            assert found.sound and found.off <= max(found.doubt, MAX_EXCESS), (k, found)
            worst(f"verify, nearly singular: {name}", found.off, str(k))


@pytest.mark.parametrize("k, part", [(0, 1e-5), (1, 1e-4), (2, 1e-3), (3, 1e-2), (4, 0.1)])
def test_a_wrong_derivative_is_refused(icub, monkeypatch, k, part):
    from liedyn.analysis import trajectory_derivatives as module
    right = module.forward_dynamics_derivatives
    monkeypatch.setattr(module, "forward_dynamics_derivatives", lambda *x, **y: [(1 + part) * z for z in right(*x, **y)])
    model, motion = icub
    found = differences(model, derivative_request(model, "forward", (), ("q.*",), ()), motion, [k])
    assert not found["da/dq"].sound, found


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_extrapolated_differences_have_their_order(levels):
    """The error falls by 4^levels where the step is halved."""
    off = [abs(numerical_derivative(lambda s: np.exp(s), h, levels) - 1.0) for h in (0.4, 0.2)]
    assert off[0] / off[1] == pytest.approx(4.0**levels, rel=0.05)
    assert numerical_derivative(lambda s: np.outer(s, [1.0, 2.0]), 0.1, levels) == pytest.approx([1.0, 2.0])
