"""Gains of linear systems and their export, compared with SciPy, python-control and closed forms."""

import control
import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis import linear_system
from liedyn.errors import ComputationError, ScenarioError, ShapeError, UsageError
from linear_systems import cart_pole, oscillator, random_system, sorted_values, system

CART_POLE = "robots/cart_pole.yaml"


@pytest.fixture(scope="module")
def model():
    return ld.load(CART_POLE)


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
