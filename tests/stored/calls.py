"""Public calls on some robots, with their results as JSON: `outputs.py record` runs this with the code under test."""
import json
import sys
from pathlib import Path

import numpy as np

import liedyn as ld

ROBOTS = Path(__file__).parents[2] / "robots"


def plain(value):
    """Return arrays and fields of results as lists of decimal numbers that return the same bits."""
    if isinstance(value, np.ndarray):
        return [repr(float(x)) for x in value.ravel()]
    if isinstance(value, tuple | list):
        return [plain(x) for x in value]
    if isinstance(value, int | float | str | bool | type(None) | np.generic):
        return str(value)
    names = getattr(value, "__dataclass_fields__", None) or getattr(value, "_fields", ())
    return {name: plain(getattr(value, name)) for name in names if not name.startswith("_")}


def calls_of_trees(model, rng):
    q, (v, a, tau) = ld.random_configuration(model, rng, 5), rng.standard_normal((3, 5, model.nv))
    link, mask = model.link_names[-1], np.arange(model.nv) % 2 == 0
    wrenches = {link: rng.standard_normal(6)}
    yield "inverse_dynamics", ld.inverse_dynamics(model, q, v, a, f_ext=wrenches)
    yield "inverse_dynamics one", ld.inverse_dynamics(model, q[0], v[0], a[0])
    yield "forward_dynamics", ld.forward_dynamics(model, q, v, tau, f_ext=wrenches)
    yield "hybrid_dynamics", ld.hybrid_dynamics(model, q, v, a, tau, mask)
    yield "inverse_dynamics_derivatives", ld.inverse_dynamics_derivatives(model, q, v, a)
    yield "forward_dynamics_derivatives", ld.forward_dynamics_derivatives(model, q, v, tau)
    yield "hybrid_dynamics_derivatives", ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
    for name in ("mass_matrix", "inverse_mass_matrix", "gravity_force", "link_poses", "centre_of_mass", "mass_matrix_derivative"):
        yield name, getattr(ld, name)(model, q)
    for name in ("bias_force", "energy", "momentum", "coriolis_matrix", "mass_matrix_rate", "momentum_regressor"):
        yield name, getattr(ld, name)(model, q, v)
    yield "jacobian", ld.jacobian(model, q, link)
    yield "link_acceleration", ld.link_acceleration(model, q, v, a, link)
    yield "joint_wrenches", ld.joint_wrenches(model, q, v, a)
    yield "regressor", ld.regressor(model, q, v, a)
    yield "base_parameters", ld.base_parameters(model)
    yield "higher_order_inverse_dynamics", ld.higher_order_inverse_dynamics(model, q[0], rng.standard_normal((4, model.nv)))
    yield "higher_order_forward_dynamics", ld.higher_order_forward_dynamics(model, q[0], v[0], rng.standard_normal((3, model.nv)))
    yield "difference", ld.difference(model, q[:-1], q[1:])
    yield "integrate", ld.integrate(model, q, v)
    runs = ld.rollout(model, q, v, dt=1e-3, steps=20)
    yield "rollout", (runs.q, runs.v)


def calls_of_mechanisms(model, rng):
    closed = ld.assemble(model)
    q = closed.q
    v, tau = ld.project_velocity(model, q, rng.standard_normal(model.nv)), rng.standard_normal(model.nv)
    yield "assemble", q
    yield "project_velocity", v
    yield "constrained_forward_dynamics", ld.constrained_forward_dynamics(model, q, v, tau)
    yield "constrained_forward_derivatives", ld.constrained_forward_derivatives(model, q, v, tau)
    yield "constraint_jacobian", ld.constraint_jacobian(model, q)
    yield "constraint_bias", ld.constraint_bias(model, q, v)
    yield "mobility", ld.mobility(model, q)


def main(path: str) -> None:
    results = {}
    for name in ("ur5.yaml", "panda.yaml", "showcase.yaml", "quadruped.yaml", "double_pendulum.urdf"):
        model = ld.load(ROBOTS / name)
        tree = model.spanning_tree() if model.constraints else model
        results[name] = collected(calls_of_trees(tree, np.random.default_rng(5)))
    for name in ("four_bar.yaml", "stewart.yaml", "five_bar.yaml", "closures.yaml"):
        results[name] = collected(calls_of_mechanisms(ld.load(ROBOTS / name), np.random.default_rng(6)))
    Path(path).write_text(json.dumps(results), encoding="utf-8")


def collected(calls) -> dict:
    """Return results by name. A call that fails ends its robot, and its error is stored."""
    found = {}
    try:
        for name, value in calls:
            found[name] = plain(value)
    except ld.LiedynError as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    main(sys.argv[1])
