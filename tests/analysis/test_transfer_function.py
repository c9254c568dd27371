"""Frequency responses, zeros and delays of linear systems, compared with SciPy, python-control and closed forms."""
from dataclasses import replace

import control
import numpy as np
import pytest
import scipy.signal

import liedyn as ld
from liedyn.analysis.linear_system import LinearSystem
from liedyn.errors import ComputationError, ShapeError, UsageError
from linear_systems import cart_pole, oscillator, random_system, sorted_values, system

CART_POLE = "robots/cart_pole.yaml"


@pytest.fixture(scope="module")
def model():
    return ld.load(CART_POLE)


# frequency response -----------------------------------------------------------------------------------------------------

def test_the_response_of_an_oscillator():
    w = np.array([0.0, 0.3, 2.0, 50.0, -2.0])
    found = oscillator(2.0, 0.1).frequency_response(w)
    assert found.shape == (5, 1, 1)
    np.testing.assert_allclose(found[:, 0, 0], 1 / (4 - w**2 + 0.1j * w), rtol=1e-14)
    assert oscillator(2.0, 0.1).frequency_response(0.3).shape == (1, 1)


def test_the_response_equals_that_of_scipy():
    s = random_system(5, 1, 1, direct=True)
    w = np.logspace(-3, 3, 40)
    np.testing.assert_allclose(s.frequency_response(w)[:, 0, 0], scipy.signal.freqresp(s.to_scipy(), w)[1], rtol=1e-10)
    s = random_system(6, 2, 3, direct=True)
    np.testing.assert_allclose(s.frequency_response(w), np.moveaxis(s.to_control()(1j * w), 2, 0), rtol=1e-10)


@pytest.mark.parametrize("w", [2.0, 0.0])
def test_the_response_at_an_undamped_pole_names_the_mode(w):
    s = oscillator(w)
    with pytest.raises(ComputationError, match=rf"infinite at w = {w:g} rad/s: expected frequencies that are not poles, got that "
                                               "of an undamped mode of j0"):
        s.frequency_response([0.5, w])


def test_the_response_at_a_pole_that_outputs_do_not_contain():
    """The second oscillator is not excited, and the integrator is not seen."""
    A = np.zeros((5, 5))
    A[:2, :2], A[2:4, 2:4], A[4, 0] = [[0, 1], [-9, -0.5]], [[0, 1], [-4, 0]], 1.0
    s = system(A, [[0], [1], [0], [0], [0]], [[1, 0, 1, 0, 0]])
    np.testing.assert_allclose(s.frequency_response([0.0, 2.0])[:, 0, 0], [1 / 9, 1 / (9 - 4 + 1j)], rtol=1e-12)


def test_frequencies_are_checked():
    with pytest.raises(UsageError, match=r"w: expected finite frequencies \[rad/s\], got inf"):
        oscillator(1.0, 0.1).frequency_response([1.0, np.inf])
    with pytest.raises(ShapeError, match=r"expected a number or one axis, got \(1, 1\)"):
        oscillator(1.0, 0.1).frequency_response([[1.0]])


@pytest.mark.parametrize("call, message", [
    (lambda s: s.frequency_response(1j), "w: expected real frequencies"), (lambda s: s.frequency_response("a"), "got 'a'"),
    (lambda s: s.discretize("a"), "must be a positive number of seconds, got 'a'"),
    (lambda s: s.discretize(0.1, "a"), "delay: expected a number of seconds >= 0, got 'a'"),
    (lambda s: s.discretize(1e-6, 10.0), "delay: expected at most 10000 states .* a delay of 1e\\+07 steps of 2 inputs"),
    (lambda s: replace(s, A=1e20 * s.A).lqr(1.0, 1.0), "lqr: the Riccati equation has no accurate solution")])
def test_wrong_arguments_and_sizes_are_errors_by_name(call, message):
    """They raised TypeError, ValueError and MemoryError."""
    with pytest.raises(ld.LiedynError, match=message):
        call(two_pendulums(0.1))


def two_pendulums(damping):
    """Two pendulums that do not affect each other, with their own torques; the first one with this damping."""
    inertia, weight = 0.27, 4.905
    A = np.zeros((4, 4))
    A[0, 2] = A[1, 3] = 1.0
    A[2, 0] = A[3, 1] = -weight / inertia
    A[2, 2], A[3, 3] = -damping / inertia, -0.1 / inertia
    B = np.eye(4)[:, 2:] / inertia
    units = ("rad", "rad", "rad/s", "rad/s")
    return LinearSystem(A, B, np.eye(4)[:2], np.zeros((2, 2)), ("q.a", "q.b", "v.a", "v.b"), ("tau.a", "tau.b"), ("q.a", "q.b"),
                        units, ("N m", "N m"), ("rad", "rad"), np.ones(4, dtype=bool))


@pytest.mark.parametrize("damping, mixed", [(1e-9, False), (1e3, False), (1e6, False), (1e9, False), (1e-9, True),
                                            (1e3, True), (1e6, True), (1e9, True)])
def test_fast_poles_hide_no_slow_ones(damping, mixed):
    """The slow pole of the first pendulum, and both of the second one, were zero; inputs seemed to have no effect."""
    system = two_pendulums(damping)
    if mixed:                                                            # an output of one drives the other
        A = system.A.copy()
        A[3, 0] = 2.0
        system = replace(system, A=A)
    slow = -4.905 / damping if damping > 1.0 else -damping / 0.54 - 1j * np.sqrt(4.905 / 0.27)
    second = -0.1 / 0.54 + 1j * np.sqrt(4.905 / 0.27 - (0.1 / 0.54)**2)
    for expected in (slow, second, np.conj(second)):
        assert np.abs(system.poles - expected).min() <= 1e-5 * np.abs(expected)
        assert np.abs(system.poles.real - expected.real).min() <= 1e-5 * np.abs(expected.real)
    assert system.stability == "stable" and (system.controllable, system.observable) == (4, 4)
    response = system.frequency_response(0.0)
    assert np.diag(response).real == pytest.approx([1 / 4.905] * 2, rel=1e-9) and response[0, 1] == 0.0


def test_gains_beside_strong_damping():
    """The pole -4.905 / damping asks for a gain sqrt(4.905^2 + 1) - 4.905. SciPy is off by 1e-8 at 1e6 and by 3 % at 1e9."""
    expected = np.sqrt(4.905**2 + 1.0) - 4.905
    assert two_pendulums(1e6).lqr(1.0, 1.0).matrix[0, 0] == pytest.approx(expected, rel=1e-11)
    with pytest.warns(ld.LiedynWarning, match=r"lqr: .* from 4\.8e-07 to 3\.7e\+09 1/s.* use less damping.*\[gain-inaccurate\]"):
        two_pendulums(1e9).lqr(1.0, 1.0)
    with pytest.warns(ld.LiedynWarning, match=r"up to 3\.7e\+12 1/s, next to which others of 1 1/s .*\[modes-hidden\]"):
        assert 0.0 in two_pendulums(1e12).poles


def test_systems_without_inputs_or_outputs():
    s = random_system(4, 2, 2).select(inputs=[])
    assert s.frequency_response([1.0]).shape == (1, 2, 0) and len(s.zeros) == 0
    assert random_system(4, 2, 2).select(outputs=[]).zeros.shape == (0,)
    for export in (s.to_scipy, s.to_control):
        with pytest.raises(UsageError, match="expected a system with inputs and outputs, got 0 and 2"):
            export()


# poles and zeros --------------------------------------------------------------------------------------------------------

def test_poles_of_integrators_are_exactly_zero():
    rng = np.random.default_rng(3)
    T = rng.standard_normal((4, 4)) + 2 * np.eye(4)
    s = system(T @ np.diag([1.0, 1, 1], 1) @ np.linalg.inv(T), T[:, 3:], np.linalg.inv(T)[:1])
    assert list(s.poles) == [0, 0, 0, 0]
    assert np.abs(s.eigenvalues).max() > 1e-6                                        # of a general solver
    np.testing.assert_allclose(oscillator(2.0, 0.4).poles, np.roots([1, 0.4, 4]), rtol=1e-14)


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("n, m", [(3, 1), (6, 2), (7, 3)])
def test_zeros_equal_those_of_control(n, m, direct):
    s = random_system(n, m, m, seed=n, direct=direct)
    theirs = control.zeros(s.to_control())
    theirs = theirs[np.abs(theirs) < 1e4]                                            # its other ones are infinite
    np.testing.assert_allclose(sorted_values(s.zeros), sorted_values(theirs), rtol=1e-7)


@pytest.mark.parametrize("more", ["inputs", "outputs"])
def test_zeros_of_a_system_that_is_not_square(more):
    """A filter (s + 3)/(s + 1) at its only input or only output has a zero at -3, which remains."""
    s = random_system(4, 2, 1, seed=4)
    A, B, C = np.zeros((5, 5)), np.zeros((5, 2)), np.zeros((1, 5))
    A[:4, :4], B[:4], C[:, :4], A[4, :4], A[4, 4], C[0, 4] = s.A, s.B, s.C, 2 * s.C[0], -1.0, 1.0
    one = system(A, B, C) if more == "inputs" else system(A.T, C.T, B.T)
    np.testing.assert_allclose(one.zeros, [-3], rtol=1e-10)
    assert len(s.zeros) == 0


def test_zeros_of_a_cart_pole(model):
    """A cart whose position is fixed leaves a pendulum: its poles are the zeros of the cart's force and position."""
    fixed = ld.linearize(model, model.neutral(), np.zeros(2), np.zeros(2), a=[0, 0], prescribed=[True, False])
    pendulum = [mode.eigenvalue for mode in fixed.modes]
    zeros = cart_pole(model, inputs="tau.cart", outputs="q.cart").zeros
    np.testing.assert_allclose(sorted_values(zeros), sorted_values(pendulum), rtol=1e-12)
    assert len(cart_pole(model, inputs="tau.cart", outputs="q.pole").zeros) == 0     # its integrators cancel


def test_zeros_of_a_robot_with_parts_that_are_hardly_reached():
    """Zeros of a force and its coordinate are eigenvalues of A under the feedback that locks the coordinate.

    Those at zero are exact: removing the hardly reached states first gives 4e-4.
    """
    humanoid = ld.load("robots/humanoid.yaml")
    q = humanoid.neutral()
    whole = ld.linearize(humanoid, q, np.zeros(humanoid.nv), ld.gravity_force(humanoid, q))
    s = whole.select([whole.inputs[0]], [whole.outputs[0]])
    locked = np.linalg.eigvals(s.A - s.B @ np.linalg.solve(s.C @ s.A @ s.B, s.C @ s.A @ s.A))
    fast = np.abs(s.zeros) > 1e-3
    distances = np.abs(s.zeros[fast, None] - locked).min(axis=1) / np.abs(s.zeros[fast])
    assert distances.max() < 1e-9 and (s.zeros[~fast] == 0).all() and 20 < fast.sum() < len(s.zeros)


def test_hidden_modes_are_no_zeros():
    """An oscillator that is not reached, one that is not seen, and the zeros of the rest, at the same frequency."""
    A = np.zeros((8, 8))
    for k in range(3):
        A[2 * k:2 * k + 2, 2 * k:2 * k + 2] = [[0, 1], [-4.0 - k, -0.3 * k]]
    A[6:, 6:] = [[0, 1], [-4.0, 0]]
    A[7, 4], A[5, 6], A[3, 4] = 1.0, 1.0, 0.5
    unit = np.eye(8)
    s = system(A, unit[:, [5]], unit[[4]])
    np.testing.assert_allclose(sorted_values(s.zeros), [-2j, 2j], atol=1e-12)
    np.testing.assert_allclose(s.frequency_response([2.0]), 0, atol=1e-12)


def test_zeros_do_not_depend_on_units_and_states():
    s = random_system(6, 2, 2, seed=5)
    rng = np.random.default_rng(6)
    T, u, y = 10.0**rng.uniform(-3, 3, 6), 10.0**rng.uniform(-3, 3, 2), 10.0**rng.uniform(-3, 3, 2)
    other = system(s.A * T[:, None] / T, s.B * T[:, None] / u, s.C * y[:, None] / T)
    np.testing.assert_allclose(sorted_values(other.zeros), sorted_values(s.zeros), rtol=1e-8)


# delay ------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("delay", [0.0, 0.03, 0.1, 0.3, 0.25])
def test_a_discretization_with_delay_is_the_motion(delay):
    h, fine = 0.1, 0.01
    s, u = random_system(3, 2, 1, seed=7), np.random.default_rng(8).standard_normal((12, 2))
    Ad, Bd = s.discretize(h, delay)
    x, held = np.zeros(len(Ad)), np.zeros(3)
    af, bf = s.discretize(fine)
    for k in range(12):
        x = Ad @ x + Bd @ u[k]
        for i in range(10):
            step = (10 * k + i - round(delay / fine)) // 10
            held = af @ held + bf @ (u[step] if step >= 0 else np.zeros(2))
    np.testing.assert_allclose(x[:3], held, rtol=1e-10)
    assert Ad.shape == (3 + 2 * int(np.ceil(delay / h - 1e-9)),) * 2


def test_a_delay_is_not_negative():
    with pytest.raises(UsageError, match=r"delay: expected a number of seconds >= 0, got -0\.1"):
        oscillator(1.0).discretize(0.1, -0.1)
