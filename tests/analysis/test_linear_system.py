"""Linear systems alone: discretization, modes, reachable states, names."""
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import ortho_group

from liedyn.analysis.linear_system import LinearSystem
from liedyn.analysis.modes import modes, reachable
from liedyn.errors import ComputationError, UsageError


def system(A, B=None, C=None, names=None):
    A = np.array(A, dtype=float)
    n = len(A)
    B = np.eye(n) if B is None else np.array(B, dtype=float).reshape(n, -1)
    C = np.eye(n) if C is None else np.array(C, dtype=float).reshape(-1, n)
    names = names or [f"{kind}.{k}" for kind in "qv" for k in range(n // 2)]
    inputs, outputs = tuple(f"tau.{k}" for k in range(B.shape[1])), tuple(f"q.{k}" for k in range(len(C)))
    return LinearSystem(A, B, C, np.zeros((len(C), B.shape[1])), tuple(names), inputs, outputs, ("",) * n, ("N",) * len(inputs),
                        ("rad",) * len(outputs), np.ones(n, dtype=bool))


def oscillator(frequency, damping):
    w = 2 * np.pi * frequency
    return np.array([[0, 1], [-w * w, -2 * damping * w]])


def test_discretization_of_a_double_integrator():
    Ad, Bd = system([[0, 1], [0, 0]], [[0], [1]]).discretize(0.1)
    np.testing.assert_allclose(Ad, [[1, 0.1], [0, 1]], atol=1e-16)
    np.testing.assert_allclose(Bd, [[0.005], [0.1]], atol=1e-16)


def test_discretization_is_the_motion_under_a_held_input():
    rng = np.random.default_rng(0)
    A, B, u, x = rng.standard_normal((6, 6)), rng.standard_normal((6, 2)), rng.standard_normal(2), rng.standard_normal(6)
    Ad, Bd = system(A, B).discretize(0.7)
    held = solve_ivp(lambda t, x: A @ x + B @ u, (0, 0.7), x, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(Ad @ x + Bd @ u, held, rtol=1e-9)


@pytest.mark.parametrize("rate", [1e4, 1e308])
def test_a_discretization_that_overflows(rate):
    with pytest.raises(ComputationError, match="the discretization overflows: an unstable mode grows without bounds within 10 s"):
        system([[0, 1], [0, rate]]).discretize(10.0)


@pytest.mark.parametrize("step", [0.0, -1.0, float("inf"), float("nan")])
def test_a_step_must_be_positive(step):
    with pytest.raises(UsageError, match=f"the step of the discretization must be a positive number of seconds, got {step:g}"):
        system(np.eye(2)).discretize(step)


@pytest.mark.parametrize("frequency, damping, stability", [(2.0, 0.1, "stable"), (0.5, 0.0, "neutral"), (3.0, -0.05, "unstable")])
def test_the_mode_of_an_oscillator(frequency, damping, stability):
    (mode,) = system(oscillator(frequency, damping)).modes
    assert (mode.count, mode.stability) == (2, stability)
    assert mode.frequency == pytest.approx(frequency) and mode.damping == pytest.approx(damping, abs=1e-14)
    assert mode.participation == {"0": pytest.approx(1)}
    if damping:
        assert mode.time_constant == pytest.approx(1 / (damping * 2 * np.pi * frequency))
    else:
        assert mode.time_constant == np.inf


def test_real_modes_do_not_oscillate():
    fast, slow = system([[-3, 0], [1, -1]]).modes[::-1]
    assert (fast.frequency, fast.damping, fast.time_constant) == (0, 1, pytest.approx(1 / 3))
    assert (slow.count, slow.damping, slow.stability) == (1, 1, "stable")


def test_chains_of_zeros_are_counted_and_not_scattered():
    """Attitude over two integrators drives position over two more: eigvals would give four of size 1e-4."""
    rng = np.random.default_rng(1)
    A = np.zeros((7, 7))
    A[:4, :4] = np.diag([9.81, 1, 1], 1)
    A[4:6, 4:6], A[6, 6], A[0, 4] = oscillator(1.0, 0.3), -5, 2
    turn = ortho_group.rvs(7, random_state=rng)
    found = modes(turn @ A @ turn.T, list("abcdefg"))
    assert [mode.count for mode in found] == [4, 2, 1] and found[0].eigenvalue == 0 and found[0].chains == (4,)
    assert found[1].eigenvalue == pytest.approx(complex(*np.array([-0.3, np.sqrt(1 - 0.09)]) * 2 * np.pi), rel=1e-9)
    assert found[2].eigenvalue == pytest.approx(-5, rel=1e-9)
    assert all(sum(mode.participation.values()) == pytest.approx(1) for mode in found)


def test_participation_does_not_depend_on_units():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((6, 6))
    scale = 10.0 ** rng.uniform(-2, 2, 6)
    for one, other in zip(modes(A, list("abcabc")), modes(A / scale[:, None] * scale, list("abcabc")), strict=True):
        assert one.eigenvalue == pytest.approx(other.eigenvalue)
        assert one.participation == pytest.approx(other.participation, abs=1e-9)


def test_only_moving_states_make_modes():
    whole = system(np.diag([-1.0, -2, -3, -4]))
    part = LinearSystem(**{**whole.__dict__, "moving": np.array([True, False, True, False])})
    assert [mode.eigenvalue for mode in part.modes] == [-1, -3] and set(part.modes[0].participation) == {"0"}
    assert part.stability == "stable" and list(part.eigenvalues) == [-1, -2, -3, -4]


def test_the_worst_mode_gives_the_stability():
    assert system(np.diag([-1.0, 0.5])).stability == "unstable"
    assert system(np.diag([-1.0, 0.0])).stability == "neutral"
    assert system(np.diag([-1.0, -2.0])).stability == "stable"


@pytest.mark.parametrize("n, reached", [(6, 6), (12, 12), (40, 40)])
def test_reachable_states_of_a_chain_of_masses(n, reached):
    """Pulled at one end: every state, also where powers of A have long lost their rank to rounding."""
    m = n // 2
    K = 2 * np.eye(m) - np.eye(m, k=1) - np.eye(m, k=-1)
    A = np.block([[np.zeros((m, m)), np.eye(m)], [-50 * K, -0.1 * np.eye(m)]])
    B = np.zeros((n, 1))
    B[m] = 1
    assert reachable(A, B) == reached
    assert system(A, B, np.eye(n)[:1]).controllable == system(A, B, np.eye(n)[:1]).observable == reached


def test_a_symmetric_pair_is_not_reached_by_a_force_on_both():
    A = np.kron([[0, 1], [-1, 0]], np.eye(2))
    assert reachable(A, np.array([[0], [0], [1.0], [1.0]])) == 2
    assert reachable(A, np.array([[0], [0], [1.0], [0.9]])) == 2           # equal oscillators: one input moves one combination
    A[3, 1] = -1.1
    assert reachable(A, np.array([[0], [0], [1.0], [1.0]])) == 4
    assert reachable(A, np.zeros((4, 1))) == 0 and reachable(A, np.zeros((4, 0))) == 0


def test_reach_does_not_depend_on_rounding_errors_in_empty_places():
    """Balancing would blow an entry of 1e-18 up to the size of the others."""
    A = np.block([[np.zeros((3, 3)), np.eye(3)], [-np.diag([1.0, 100, 1e4]), -np.eye(3)]])
    A[3, 4] = A[5, 0] = 1e-18
    assert reachable(A, np.vstack([np.zeros((3, 3)), np.eye(3)])) == 6


def test_selection_by_names():
    s = system(np.eye(4), names=["q.a", "q.b", "v.a", "v.b"]).select(["tau.1", "tau.3"], ["q.[01]"])
    assert s.inputs == ("tau.1", "tau.3") and s.outputs == ("q.0", "q.1") and s.B.shape == (4, 2) and s.D.shape == (2, 2)
    with pytest.raises(UsageError, match=r"no output matches 'x'; the names are q.0, q.1"):
        s.select(outputs=["x"])
