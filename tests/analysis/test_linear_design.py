"""Frequency responses, zeros, gains and exports of linear systems, compared with SciPy, python-control and closed forms."""
from dataclasses import replace

import control
import numpy as np
import pytest
import scipy.signal

import liedyn as ld
from liedyn.analysis import linear_system
from liedyn.analysis.linear_system import LinearSystem
from liedyn.errors import ComputationError, ScenarioError, ShapeError, UsageError

CART_POLE = "robots/cart_pole.yaml"


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


@pytest.fixture(scope="module")
def model():
    return ld.load(CART_POLE)


def cart_pole(model, **options):
    return ld.linearize(model, model.neutral(), np.zeros(2), np.zeros(2), **options)


def oscillator(w, damping=0.0):
    return system([[0, 1], [-w * w, -damping]], [[0], [1]], [[1, 0]])


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


def sorted_values(values):
    return np.array(sorted(values, key=lambda z: (round(z.real, 6), round(z.imag, 6))))


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


# gains ------------------------------------------------------------------------------------------------------------------

def test_the_regulator_of_a_double_integrator():
    gain = system([[0, 1], [0, 0]], [[0], [1]], [[1, 0]]).lqr({"q.j0": 1}, 1)
    np.testing.assert_allclose(gain.matrix, [[1, np.sqrt(2)]], rtol=1e-12)
    np.testing.assert_allclose(gain.P, [[np.sqrt(2), 1], [1, np.sqrt(2)]], rtol=1e-12)
    np.testing.assert_allclose(sorted(gain.poles.imag), [-np.sqrt(0.5), np.sqrt(0.5)], rtol=1e-12)


def test_the_filter_of_an_integrator():
    gain = system([[0]], [[1]], [[1]], states=("q.j0",)).lqe(4.0, 1.0)
    np.testing.assert_allclose(gain.matrix, [[2]], rtol=1e-12)
    assert gain.rows == ("q.j0",) and gain.columns == ("q.j0",) and gain.poles == [-2]


def test_gains_equal_those_of_control():
    s = random_system(5, 2, 3, seed=9)
    rng = np.random.default_rng(10)
    root = rng.standard_normal((5, 5))
    Q, R, V = root @ root.T, np.diag([1.0, 3.0]), np.diag([1.0, 2.0, 3.0])
    gain, filter_gain, sampled = s.lqr(Q, [1.0, 3.0]), s.lqe(Q, V), s.lqr(Q, R, step=0.1)
    K, P, poles = control.lqr(s.A, s.B, Q, R)
    for ours, theirs in ((gain.matrix, K), (gain.P, P), (filter_gain.matrix, control.lqe(s.A, np.eye(5), s.C, Q, V)[0]),
                         (sampled.matrix, control.dlqr(*s.discretize(0.1), Q, R)[0]),
                         (s.lqe(Q, V, step=0.1).matrix, control.dlqe(s.discretize(0.1)[0], np.eye(5), s.C, Q, V)[0])):
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(ours / scale, theirs / scale, atol=1e-9)
    np.testing.assert_allclose(sorted_values(gain.poles), sorted_values(poles), rtol=1e-8)


def test_weights_by_name_pattern_and_number():
    s = random_system(4, 2, 2)
    by_name = s.lqr({"q.*": 2, "q.j1": 3, "v.j0": 1}, {"*": 0.5})
    np.testing.assert_array_equal(by_name.matrix, s.lqr([2, 3, 1, 0], 0.5).matrix)
    assert not np.allclose(by_name.matrix, s.lqr([2, 2, 1, 0], 0.5).matrix)


def test_a_gain_follows_the_units():
    """States in thousandths: weights by their square, gains by the unit."""
    s = random_system(4, 1, 2, seed=11)
    T = np.array([1e3, 1, 1e3, 1])
    other = system(s.A * T[:, None] / T, s.B * T[:, None], s.C / T)
    np.testing.assert_allclose(other.lqr(1 / T**2, 1).matrix, s.lqr(1, 1).matrix / T, rtol=1e-8)
    np.testing.assert_allclose(other.lqe(T**2, 1).matrix, s.lqe(1, 1).matrix * T[:, None], rtol=1e-8)


@pytest.mark.parametrize("Q, R, message", [
    ({"q.j7": 1}, 1, "no state matches 'q.j7'"),
    ({"q.j0": "1"}, 1, "Q: q.j0: expected a number, got '1'"),
    ({"q.j0": -1}, 1, "Q: q.j0: expected a number >= 0, got -1"),
    (1, {"tau.j0": 1}, r"R: tau.j1: expected a number > 0, got 0 \(each input needs a weight; select the inputs to use\)"),
    (1, np.nan, "R: expected finite numbers, got nan"),
    ([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], 1, "Q: expected a symmetric matrix, got one that differs"),
    (1, [[1, 2], [2, 1]], "R: expected a matrix with eigenvalues > 0, got -1"),
    ("heavy", 1, "Q: expected numbers, or numbers by name such as {'q.j0': 10}, got 'heavy'")])
def test_weights_are_checked(Q, R, message):
    with pytest.raises(UsageError, match=message):
        random_system(4, 2, 2).lqr(Q, R)


def test_the_shape_of_weights():
    with pytest.raises(ShapeError, match=r"Q has the wrong shape: expected \(\), \(4,\) or \(4, 4\) for q.j0, q.j1, v.j0, v.j1, "
                                         r"got \(3,\)"):
        random_system(4, 2, 2).lqr([1, 2, 3], 1)


def two_masses(stiffness, damping=0.0):
    """Only the first mass is pushed and seen; the second is independent."""
    A = np.zeros((4, 4))
    A[:2, 2:], A[2:, :2], A[3, 3] = np.eye(2), np.diag([-1.0, -stiffness]), -damping
    return system(A, [[0], [0], [1], [0]], [[1, 0, 0, 0]])


@pytest.mark.parametrize("stiffness, text", [(4.0, "0 ± 2i [1/s] of j1, which is neutral"),
                                             (-4.0, "2 [1/s] of j1, which is unstable"),
                                             (0.0, "0 [1/s] of j1, which is drifting")])
def test_modes_that_no_gain_stabilizes_are_named(stiffness, text):
    s = two_masses(stiffness)
    with pytest.raises(ComputationError) as error:
        s.lqr(1, 1)
    assert str(error.value) == (f"lqr: the inputs tau.j0 do not affect the mode {text}: expected a system in which it decays "
                                "or is affected")
    with pytest.raises(ComputationError, match=r"lqe: the outputs q\.j0 do not contain the mode"):
        s.lqe(1, 1)
    assert two_masses(4.0, 0.1).lqr(1, 1).matrix[0, 1] == pytest.approx(0, abs=1e-12)        # it decays


def test_weights_without_an_undamped_mode_are_refused():
    s = system([[0, 1], [0, 0]], [[0], [1]], [[1, 0]])
    with pytest.raises(ComputationError, match=r"lqr: the weights Q do not contain the mode 0 \[1/s\] of j0, which is neutral: "
                                               "expected a positive number for one of its states"):
        s.lqr({"v.j0": 1}, 1)
    with pytest.raises(ComputationError, match="lqe: the noise W does not excite the mode 0"):
        s.lqe({"q.j0": 1}, 1)


def test_a_gain_without_inputs_or_outputs():
    s = random_system(4, 2, 2)
    with pytest.raises(UsageError, match="lqr: expected a system with inputs, got none"):
        s.select(inputs=[]).lqr(1, 1)
    with pytest.raises(UsageError, match="lqe: expected a system with outputs, got none"):
        s.select(outputs=[]).lqe(1, 1)


def test_states_of_prescribed_coordinates_have_no_gain(model):
    s = ld.linearize(model, model.neutral(), np.zeros(2), np.zeros(2), a=[0, 0], prescribed=[True, False], inputs="tau.pole")
    gain = s.lqr(1, 1)
    assert gain.columns == ("q.pole", "v.pole")
    with pytest.raises(UsageError, match=r"no state matches 'q\.cart'"):
        s.lqr({"q.cart": 1}, 1)
    whole = ld.linearize(model, model.neutral(), np.zeros(2), np.zeros(2), a=[0, 0], prescribed=[True, False]).lqr(1, 1)
    assert whole.rows == ("a.cart", "tau.pole") and len(whole.columns) == 4


# gains in use -----------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def gain(model):
    return cart_pole(model, inputs="tau.cart").lqr({"q.cart": 4, "q.pole": 10, "v.*": 1}, 0.2)


@pytest.mark.parametrize("from_file", [False, True])
def test_a_gain_in_a_scenario(gain, tmp_path, from_file):
    gain.write(tmp_path / "K.csv")
    with pytest.raises(ld.UsageError, match="exists"):
        gain.write(tmp_path / "K.csv")
    gain.write(tmp_path / "K.csv", force=True)
    law = {"law": "state_feedback", "gain": str(tmp_path / "K.csv") if from_file else gain.by_name,
           "setpoint": {}}
    closed = ld.linearize_scenario({"robot": CART_POLE, "duration": 1, "control": law}, equilibrium=True).system
    np.testing.assert_allclose(sorted_values(closed.poles), sorted_values(gain.poles), rtol=1e-9)


def test_a_gain_in_a_rollout(model, gain):
    law = ld.Feedback.by_name(model, gain.by_name, model.neutral())
    np.testing.assert_array_equal(law.gain, np.vstack([gain.matrix, np.zeros(4)]))
    with pytest.raises(ScenarioError, match=r"gain: no such row of a gain: got 'tau\.crat'"):
        ld.Feedback.by_name(model, {"tau.crat": {"q.cart": 1.0}}, model.neutral())
    with pytest.raises(ScenarioError, match=r"gain: a row of a gain is the force of a joint or a thrust: expected tau\.… or "
                                            r"thrust\.…, got 'a\.cart'"):
        ld.Feedback.by_name(model, {"a.cart": {"q.cart": 1.0}}, model.neutral())


def test_a_gain_with_names(gain):
    assert repr(gain) == "<Gain 1 x 4: rows tau.cart; columns q.cart, q.pole, v.cart, v.pole>"
    assert list(gain.by_name["tau.cart"]) == ["q.cart", "q.pole", "v.cart", "v.pole"]
    assert (gain.row_units, gain.column_units) == (("N",), ("m", "rad", "m/s", "rad/s"))


# export -----------------------------------------------------------------------------------------------------------------

def test_exported_systems(model):
    s = cart_pole(model, inputs="tau.cart")
    theirs = s.to_control()
    assert theirs.input_labels == ["tau_cart"] and theirs.state_labels == ["q_cart", "q_pole", "v_cart", "v_pole"]
    for other in (theirs, s.to_scipy()):
        for name in "ABCD":
            np.testing.assert_array_equal(getattr(other, name), getattr(s, name))


def test_export_without_the_package(monkeypatch):
    monkeypatch.setattr(linear_system, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"to_control requires the package control: pip install 'liedyn\[control\]'"):
        oscillator(1.0).to_control()
