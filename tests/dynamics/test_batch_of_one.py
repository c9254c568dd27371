"""A batch of one state is computed as if it were no batch."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.calling import calls
from liedyn.model.description import Coordinate, Joint, Link

LINKS = Link("upper", 1.0, (0.5, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)), Link("lower", 1.0, (0.5, 0.1, 0.0))
ARM = ld.Robot("arm", LINKS, (
    Joint("one", "continuous", "world", "upper", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate(damping=0.1),)),
    Joint("two", "continuous", "upper", "lower", axes=((0.0, 0.0, 1.0),))))
Q, V, A, TAU = np.array([[0.3, -0.2], [1.0, 0.5], [0.1, 0.2], [0.7, -0.4]])
MASK = np.array([True, False])
CALLS = {
    "inverse_dynamics": lambda m, q, v, a, tau: ld.inverse_dynamics(m, q, v, a),
    "forward_dynamics": lambda m, q, v, a, tau: ld.forward_dynamics(m, q, v, tau),
    "hybrid_dynamics": lambda m, q, v, a, tau: ld.hybrid_dynamics(m, q, v, a, tau, MASK),
    "mass_matrix": lambda m, q, v, a, tau: ld.mass_matrix(m, q),
    "bias_force": lambda m, q, v, a, tau: ld.bias_force(m, q, v),
    "gravity_force": lambda m, q, v, a, tau: ld.gravity_force(m, q),
    "forward_dynamics_derivatives": lambda m, q, v, a, tau: tuple(ld.forward_dynamics_derivatives(m, q, v, tau)),
    "energy": lambda m, q, v, a, tau: ld.energy(m, q, v),
    "centre_of_mass": lambda m, q, v, a, tau: ld.centre_of_mass(m, q),
}


@pytest.fixture(scope="module")
def model():
    return ld.build(ARM)


@pytest.mark.parametrize("name", CALLS)
def test_a_batch_of_one_takes_the_way_of_one_state(name, model, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    call, one = CALLS[name], np.array([Q, V, A, TAU])
    expected = call(model, *one)
    expected = expected if isinstance(expected, tuple) else (expected,)
    monkeypatch.setattr(calls, "states", lambda *args: pytest.fail("the arrays are prepared as a batch"))
    found = call(model, *one[:, None])
    for x, y in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        assert x.shape == (1, *np.shape(y)) and np.array_equal(x[0], y)


def test_what_is_no_batch_of_one_is_computed_all_the_same(model):
    tau = ld.inverse_dynamics(model, Q, V, A)
    for q, v, shape in ((Q[None], V, (1, 2)), (Q[None, None], V[None], (1, 1, 2)), (np.stack([Q, Q]), V[None], (2, 2)),
                        (Q[None].tolist(), V, (1, 2)), (np.empty((0, 2)), V[None], (0, 2))):
        found = ld.inverse_dynamics(model, q, v, A)
        assert found.shape == shape and np.allclose(found, tau, rtol=1e-13, atol=0)
    out = np.empty((1, 2))
    assert ld.inverse_dynamics(model, Q[None], V[None], A[None], out=out) is out and np.allclose(out, tau, rtol=1e-13, atol=0)
    F = np.zeros((1, 2, 6))
    F[0, 1, 5] = 1.0
    found = ld.inverse_dynamics(model, Q[None], V[None], A[None], f_ext=F)
    assert found.shape == (1, 2) and np.allclose(found[0], ld.inverse_dynamics(model, Q, V, A, f_ext=F[0]), rtol=1e-13)
    with pytest.raises(ld.ConfigurationError, match=r"q\[0\] \(one\) is not finite"):
        ld.inverse_dynamics(model, np.array([[np.nan, 0.0]]), V[None], A[None])
    assert ld.Variants([model]).inverse_dynamics(Q[None], V[None], A[None]).shape == (1, 2)
