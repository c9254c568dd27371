"""Public functions, and how each result transforms. Axes and units: `Maps.result`."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import liedyn as ld


class Observable(NamedTuple):
    compute: Callable                     # (model, state, link) -> array
    axes: str
    units: tuple[int, int, int] = (0, 0, 0)


ENERGY, MOTION, FORCE = (1, 2, 0), (0, 0, -2), (1, 2, -2)


# Trees: M, b and their derivatives, kinematics of a link. Names end in : and a part where a function has several results.
TREE: dict[str, Observable] = {
    "inverse_dynamics": Observable(lambda m, s, _: ld.inverse_dynamics(m, s.q, s.v, s.a, f_ext=s.f_ext), "f", FORCE),
    "forward_dynamics": Observable(lambda m, s, _: ld.forward_dynamics(m, s.q, s.v, s.tau, f_ext=s.f_ext), "v", MOTION),
    "hybrid_dynamics": Observable(
        lambda m, s, _: ld.hybrid_dynamics(m, s.q, s.v, s.a, s.tau, np.ones(m.nv, bool))[1], "f", FORCE),
    "bias_force": Observable(lambda m, s, _: ld.bias_force(m, s.q, s.v, f_ext=s.f_ext), "f", FORCE),
    "gravity_force": Observable(lambda m, s, _: ld.gravity_force(m, s.q), "f", FORCE),
    "mass_matrix": Observable(lambda m, s, _: ld.mass_matrix(m, s.q), "ff", ENERGY),
    "inverse_mass_matrix": Observable(lambda m, s, _: ld.inverse_mass_matrix(m, s.q), "vv", (-1, -2, 0)),
    "mass_matrix_derivative": Observable(lambda m, s, _: ld.mass_matrix_derivative(m, s.q), "fff", ENERGY),
    "mass_matrix_rate": Observable(lambda m, s, _: ld.mass_matrix_rate(m, s.q, s.v), "ff", (1, 2, -1)),
    "coriolis_matrix": Observable(lambda m, s, _: ld.coriolis_matrix(m, s.q, s.v), "ff", (1, 2, -1)),
    "energy:kinetic": Observable(lambda m, s, _: ld.energy(m, s.q, s.v)[0], "", FORCE),
    "centre_of_mass": Observable(lambda m, s, _: ld.centre_of_mass(m, s.q), "X"),
    "inverse_dynamics_derivatives:q": Observable(
        lambda m, s, _: ld.inverse_dynamics_derivatives(m, s.q, s.v, s.a, f_ext=s.f_ext)[0], "ff", FORCE),
    "inverse_dynamics_derivatives:v": Observable(
        lambda m, s, _: ld.inverse_dynamics_derivatives(m, s.q, s.v, s.a)[1], "ff", (1, 2, -1)),
    "forward_dynamics_derivatives:q": Observable(
        lambda m, s, _: ld.forward_dynamics_derivatives(m, s.q, s.v, s.tau, f_ext=s.f_ext)[0], "vf", MOTION),
    "link_pose": Observable(lambda m, s, link: ld.link_pose(m, s.q, link), "P"),
    "link_twist": Observable(lambda m, s, link: ld.link_twist(m, s.q, s.v, link), "t", (0, 0, -1)),
    "link_twist:world axes": Observable(
        lambda m, s, link: ld.link_twist(m, s.q, s.v, link, frame="local_world_aligned"), "T", (0, 0, -1)),
    "link_acceleration": Observable(lambda m, s, link: ld.link_acceleration(m, s.q, s.v, s.a, link), "t", MOTION),
    "jacobian": Observable(lambda m, s, link: ld.jacobian(m, s.q, link), "tf"),
    "jacobian:world axes": Observable(lambda m, s, link: ld.jacobian(m, s.q, link, frame="local_world_aligned"), "Tf"),
    "jacobian_derivative": Observable(lambda m, s, link: ld.jacobian_derivative(m, s.q, s.v, link), "tf", (0, 0, -1)),
    "momentum": Observable(lambda m, s, _: ld.momentum(m, s.q, s.v), "M", (1, 2, -1)),
    "christoffel_symbols": Observable(lambda m, s, _: ld.christoffel_symbols(m, s.q), "fff", ENERGY),
    "inverse_dynamics_directional": Observable(
        lambda m, s, _: ld.inverse_dynamics_directional(m, s.q, s.v, s.a, dq=s.v, dv=s.a)[1], "f", (1, 2, -3)),
    "forward_dynamics_directional": Observable(
        lambda m, s, _: ld.forward_dynamics_directional(m, s.q, s.v, s.tau, dq=s.v, dv=s.a)[1], "v", (0, 0, -3)),
    "hybrid_dynamics_derivatives": Observable(
        lambda m, s, _: ld.hybrid_dynamics_derivatives(m, s.q, s.v, s.a, s.tau, np.zeros(m.nv, bool)).dy_dq, "vf", MOTION),
    "inverse_dynamics_second_derivatives": Observable(
        lambda m, s, _: ld.inverse_dynamics_second_derivatives(m, s.q, s.v, s.a).dqdq, "fff", FORCE),
    "higher_order_inverse_dynamics": Observable(
        lambda m, s, _: ld.higher_order_inverse_dynamics(m, s.q, np.stack([s.v, s.a, 0 * s.a]))[1], "f", (1, 2, -3)),
    "link_twist_derivatives": Observable(
        lambda m, s, link: ld.link_twist_derivatives(m, s.q, np.stack([s.v, s.a]), link)[1], "t", MOTION),
    "centre_of_mass_derivatives": Observable(
        lambda m, s, _: ld.centre_of_mass_derivatives(m, s.q, np.stack([s.v, s.a]))[2], "w", (0, 1, -2)),
    "momentum_derivatives": Observable(
        lambda m, s, _: ld.momentum_derivatives(m, s.q, np.stack([s.v, s.a]))[1], "M", FORCE),
    "jacobian_derivatives": Observable(
        lambda m, s, link: ld.jacobian_derivatives(m, s.q, np.stack([s.v, s.a]), link)[1], "tf", (0, 0, -1)),
    "regressor": Observable(
        lambda m, s, _: ld.regressor(m, s.q, s.v, s.a) @ np.asarray(ld.inertial_parameters(m).values), "f", FORCE),
    "inertial_parameters": Observable(
        lambda m, s, _: ld.regressor(m, s.q, 0 * s.v, s.a) @ np.asarray(ld.inertial_parameters(m).values), "f", FORCE),
    "base_parameters": Observable(lambda m, s, _: len(ld.base_parameters(m).values), ""),
    "linearize": Observable(lambda m, s, _: np.trace(ld.linearize(m, s.q, s.v, s.tau).A), "", (0, 0, -1)),
}


def constraint_forces(model, s, _):
    return ld.constraint_forces(model, s.q, ld.constrained_forward_dynamics(model, s.q, s.v, s.tau).multipliers)


# Robots with constraints: multipliers of dependent equations depend on the units, the forces of the constraints do not.
CONSTRAINED: dict[str, Observable] = {
    "project_velocity": Observable(lambda m, s, _: ld.project_velocity(m, s.q, s.v), "v", (0, 0, -1)),
    "constrained_forward_dynamics": Observable(
        lambda m, s, _: ld.constrained_forward_dynamics(m, s.q, s.v, s.tau, f_ext=s.f_ext).a, "v", MOTION),
    "constraint_forces": Observable(constraint_forces, "f", FORCE),
    "constraint_jacobian": Observable(lambda m, s, _: ld.constraint_jacobian(m, s.q), "rf"),
    "constraint_bias": Observable(lambda m, s, _: ld.constraint_bias(m, s.q, s.v), "r", MOTION),
    "constraint_velocity": Observable(lambda m, s, _: ld.constraint_velocity(m, s.q, s.free), "r", (0, 0, -1)),
    "constraint_residual": Observable(lambda m, s, _: ld.constraint_residual(m, s.q), "r"),
    "assemble": Observable(lambda m, s, _: ld.difference(m, s.q, ld.assemble(m, s.q).q), "v"),
    "mobility:rank": Observable(lambda m, s, _: ld.mobility(m, s.q).rank, ""),
    "constrained_forward_derivatives:tau": Observable(
        lambda m, s, _: ld.constrained_forward_derivatives(m, s.q, s.v, s.tau).da_dtau, "vv", (-1, -2, 0)),
    "constrained_hybrid_dynamics": Observable(
        lambda m, s, _: ld.constrained_hybrid_dynamics(m, s.q, s.v, s.a, s.tau, np.zeros(m.nv, bool)).a, "v", MOTION),
}
_KINEMATIC = ("bias_force", "gravity_force", "mass_matrix", "energy:kinetic", "centre_of_mass", "link_pose", "link_twist",
              "link_twist:world axes", "link_acceleration", "jacobian", "jacobian:world axes")


def observables(model) -> dict[str, Observable]:
    """Those of the model: dynamics of trees refuse constraints."""
    if model.constraints:
        return {name: TREE[name] for name in _KINEMATIC} | CONSTRAINED
    return TREE

_FILES = "reads or writes files, texts and pictures: computes nothing"
_SCENARIO = "compared as a whole motion in test_scenarios.py"
_INPUT = "makes the input of the relations"
_OPEN = "not yet in the table"
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("figure_of", "load", "load_description", "parameter_names", "plan", "read_trajectory", "replay_of", "save",
                     "warmup", "write_run"), _FILES),
    **dict.fromkeys(("simulate", "rollout", "difference"), _SCENARIO),
    **dict.fromkeys(("build", "random_configuration", "integrate"), _INPUT),
    "run_scenario": "the computation of simulate, which test_scenarios.py compares",
    **dict.fromkeys((
        "balance_derivatives", "body_twists", "body_wrenches", "closed_form", "closure_wrenches",
        "constrained_hybrid_derivatives", "constrained_inverse_derivatives", "constrained_inverse_dynamics",
        "constraint_wrenches", "curvature_tensor", "d_difference", "d_integrate", "energy_regressor", "find_equilibrium",
        "higher_order_forward_dynamics", "higher_order_hybrid_dynamics", "hybrid_dynamics_directional", "identify",
        "joint_motion", "joint_wrenches", "kim_tables", "linearize_scenario", "link_pose_derivatives", "link_poses",
        "momentum_regressor", "motion_of", "parameter_derivatives", "project_configuration", "rollout_derivatives",
        "scalar_curvature", "sectional_curvature", "spatial_closed_form", "spatial_twists", "spatial_wrenches",
        "trajectory_of"), _OPEN),
}
