"""Thirty functions as a user writes them: run by the tests, and read by a type checker, which finds nothing to say."""
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import liedyn as ld

ROOT = Path(__file__).parents[2]
Array = NDArray[np.float64]


def dynamics(model: ld.Model) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    q = ld.random_configuration(model, rng)
    v, tau = 0.1 * rng.standard_normal(model.nv), rng.standard_normal(model.nv)
    a = ld.forward_dynamics(model, q, v, tau, f_ext={"panda_hand": [0, 0, 0, 0, 0, -5]})
    torque = ld.inverse_dynamics(model, q, v, a)
    prescribed = np.arange(model.nv) < 4
    a, tau = ld.hybrid_dynamics(model, q, v, a, tau, prescribed)
    M, b, g = ld.mass_matrix(model, q), ld.bias_force(model, q, v), ld.gravity_force(model, q)
    inverse = ld.inverse_mass_matrix(model, q)
    C = ld.coriolis_matrix(model, q, v)
    kinetic, potential = ld.energy(model, q, v)
    return {"a": a, "torque": torque, "M": M @ inverse, "b": b - g, "C": C @ v, "energy": np.add(kinetic, potential)}


def kinematics(model: ld.Model) -> Array:
    q, v = model.neutral(), np.ones(model.nv)
    T, J = ld.link_pose(model, q, "panda_hand"), ld.jacobian(model, q, "panda_hand")
    V, dV = ld.link_twist(model, q, v, "panda_hand"), ld.link_acceleration(model, q, v, np.zeros(model.nv), "panda_hand")
    c, h = ld.centre_of_mass(model, q), ld.momentum(model, q, v)
    dJ = ld.jacobian_derivative(model, q, v, "panda_hand")
    q1 = ld.integrate(model, q, 1e-3 * v)
    error: Array = J @ v - V
    return np.concatenate([error, T[:3, 3], dV, c, h, dJ @ v, ld.difference(model, q, q1)])


def derivatives(model: ld.Model) -> float:
    q, v = model.neutral(), np.zeros(model.nv)
    d = ld.inverse_dynamics_derivatives(model, q, v, v)
    da_dq, da_dv, M_inverse = ld.forward_dynamics_derivatives(model, q, v, v)
    H = ld.inverse_dynamics_second_derivatives(model, q, v, v)
    tau, dtau = ld.inverse_dynamics_directional(model, q, v, v, parameters={"mass.panda_hand": 1.0})
    rates = ld.higher_order_inverse_dynamics(model, q, np.zeros((4, model.nv)))
    base = ld.base_parameters(model)
    print(len(base.names), d.dtau_dq.shape, rates.shape, dtau.shape, tau.shape, da_dv.shape, M_inverse.shape)
    return float(np.abs(H.dqdq).max() + np.abs(da_dq).max())


def runs() -> float:
    run = ld.run_scenario(ROOT / "configs/tennis_racket.yaml", {"duration": 0.1})
    system = ld.linearize_scenario(ROOT / "configs/cart_pole.yaml", equilibrium=True).system
    rest = ld.find_equilibrium(ROOT / "configs/cart_pole.yaml")
    found = ld.assemble(ld.load(ROOT / "robots/four_bar.yaml"), fixed=["crank"])
    print(run, system.A.shape, system.discretize(0.01), rest.q, found.mobility.degrees, run.warnings, run.t[-1])
    return run.check["energy_balance"]


if __name__ == "__main__":
    panda = ld.load(ROOT / "robots/panda.yaml")
    assert ld.parameter_names(panda)
    print(dynamics(panda), kinematics(panda), derivatives(panda), runs())
