"""Coriolis matrices and derivatives of M of real robots against Pinocchio, whose C is that of the Levi-Civita connection."""
import numpy as np
import pinocchio as pin
import pytest

import liedyn as ld
from bridge import PinocchioBridge, file_of, full, relative
from matrices import derivative

ROBOTS = ["ur5_robot.urdf", "panda.urdf", "z1.urdf", "talos_reduced.urdf", "solo12.urdf", "double_pendulum.urdf",
          "hyq_no_sensors.urdf", "kinova.urdf", "tiago_no_hand.urdf", "simple_humanoid.urdf"]
BY_LINES = {"double_pendulum", "ur5_robot", "panda", "solo12"}


def case(name, base):
    path = file_of(name)
    model = ld.load(path, base=base)
    bridge = PinocchioBridge(path, model)
    rng = np.random.default_rng(0)
    q, v = ld.random_configuration(model, rng, 9), rng.standard_normal((9, model.nv))
    return model, bridge, q, v


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ROBOTS)
def test_coriolis_matrix(name, base, worst):
    model, bridge, q, v = case(name, base)
    batch = {method: ld.coriolis_matrix(model, q, v, method=method) for method in ("recursive", "christoffel")}
    rate = ld.mass_matrix_rate(model, q, v)
    for k in range(9):
        S, V = bridge.S(q[k]), bridge.S(q[k]) @ v[k]
        theirs = S.T @ pin.computeCoriolisMatrix(bridge.pin, bridge.data, bridge.q(q[k]), V) @ S
        size = np.abs(theirs).max() + np.abs(S.T @ full(pin.crba(bridge.pin, bridge.data, bridge.q(q[k]))) @ S).max()
        for ours in (*(C[k] for C in batch.values()), ld.coriolis_matrix(model, q[k], v[k])):
            assert worst("Pinocchio: C v", np.abs(ours @ v[k] - theirs @ v[k]).max() / size, name) < 1e-12
        assert worst("Pinocchio: C + C^T", np.abs(rate[k] - theirs - theirs.T).max() / size, name) < 1e-12
        assert worst("Pinocchio: C", np.abs(batch["christoffel"][k] - theirs).max() / size, name) < 1e-12


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ROBOTS[:4])
def test_mass_matrix_derivative(name, base, worst):
    """dM/dq_k is how dtau/dq_k changes with the acceleration: Pinocchio's RNEA derivatives, with a and without."""
    model, bridge, q, _ = case(name, base)
    zero = np.zeros(model.nv)
    dM = ld.mass_matrix_derivative(model, q)
    for k in range(2):
        for j in range(0, model.nv, 5):
            a, Q = np.eye(model.nv)[bridge.v[j]], bridge.q(q[k])
            theirs = (pin.computeRNEADerivatives(bridge.pin, bridge.data, Q, zero, a)[0].copy()
                      - pin.computeRNEADerivatives(bridge.pin, bridge.data, Q, zero, zero)[0])[np.ix_(bridge.v, bridge.v)]
            size = np.abs(ld.mass_matrix(model, q[k])).max()
            assert worst("Pinocchio: dM/dq", np.abs(dM[k, :, j, :] - theirs).max() / size, name) < 1e-12
    e = np.eye(model.nv)[-1]
    slope = derivative(lambda h: ld.mass_matrix(model, ld.integrate(model, q[0], h * e)))
    assert relative(dM[0, ..., -1], slope, np.abs(ld.mass_matrix(model, q[0])).max()) < 1e-10
