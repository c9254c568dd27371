"""Public functions, and how each result transforms. Axes and units: `Maps.result`."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import liedyn as ld
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.scales import model_scales
from metamorphic.mechanisms import SEED

# masses, lengths and speeds are of the order of one: below this, a result is a sum that cancels
SMALL = 1e-3


class Observable(NamedTuple):
    compute: Callable                     # (model, state, link) -> array
    axes: str
    units: tuple[int, int, int] = (0, 0, 0)


ENERGY, MOTION, FORCE = (1, 2, 0), (0, 0, -2), (1, 2, -2)
# Of the fastest eigenvalue: the search ends at accelerations of 1e-12, which leave 1e-9 of slower directions open.
INDIFFERENT = 1e-3
# of the largest singular value of a Jacobian: with a smaller one, a configuration is near a singular one
REGULAR = 1e-2


def rates(*x):
    """Return a quantity and its time derivatives, one order per row."""
    return np.stack(x, axis=-2)


def reference(s):
    """A reference velocity, and a reference acceleration."""
    return 0.5 * s.v + 0.3 * s.time * s.a, s.a


def joint_above(model, link):
    """Return the joint that moves the link."""
    above, moving = {one.child: one for one in model.description.joints}, {one.name: one for one in model.joints}
    while link in above:
        if above[link].name in moving:
            return moving[above[link].name]
        link = above[link].parent
    return model.joints[0]                                       # the floating base


def motion_of_joint(model, s, link, result):
    joint = joint_above(model, link)
    return ld.joint_motion(model, joint.name, s.q[joint.q], s.v[joint.v])[result] @ s.v[joint.v]


def transmitted(model, s, link, **options):
    """Return the wrench in the joint that moves the link."""
    place = [one.name for one in model.joints].index(joint_above(model, link).name)
    return ld.joint_wrenches(model, s.q, s.v, s.a, f_ext=s.f_ext, **options)[..., place, :]


def block_of(model, s, link):
    """Return the closed form, and its block of the body that carries the link."""
    f = ld.closed_form(model, s.q)
    return f, f.links.index(joint_above(model, link).child)


def spatial_jacobian(model, s, link):
    place = int(model.link_body[model.link_names.index(link)]) - 1
    return ld.spatial_closed_form(model, s.q).J[6 * place:6 * place + 6]


def spatial(model, s, link):
    """Return the pose of a link, its body twist with a derivative, and a wrench with a derivative."""
    wrench = s.f_ext[link]
    return (ld.link_pose(model, s.q, link), ld.link_twist_derivatives(model, s.q, rates(s.v, s.a), link),
            rates(wrench, 3 * wrench / s.time))


def moved(model, s):
    return ld.integrate(model, s.q, s.step)


def reaching(model, s, link):
    """Towards the pose of a link in a neighbouring configuration of the couplings.

    Near a singular one, q is known to the root of rounding.
    """
    length = model_scales(model).length
    unit = np.where(np.array(model.v_units) == "m", length, 1.0)
    J = ld.jacobian(model, s.q, link) * unit / np.repeat([1.0, length], 3)[:, None]
    if model.constraints:
        coupled = model.elimination()
        J = (J + J[:, coupled.follower] @ (coupled.ratios * unit / unit[coupled.follower, None]))[:, coupled.independent]
    sizes = np.linalg.svd(J[:, (J != 0.0).any(axis=0)], compute_uv=False)
    if not len(sizes) or sizes[-1] < REGULAR * sizes[0]:
        return np.zeros(model.nv)
    target = ld.link_pose(model, follow_couplings(model, ld.integrate(model, s.q, 0.02 * s.step))[0], link)
    # by default, an error of 1e-10 ends the search, which amplifies to 1e-8 in q
    solution = ld.inverse_kinematics(model, {link: target}, s.q, restarts=0, limits=False, tolerance=1e-12)
    assert solution.reached
    return ld.difference(model, s.q, solution.q)


def difference_of_energy(model, s, _):
    """Return the difference of the energy of gravity and springs, whose zero is arbitrary."""
    return ld.energy(model, moved(model, s), s.v)[1] - ld.energy(model, s.q, s.v)[1]


def difference_by_regressor(model, s, _):
    values = np.asarray(ld.inertial_parameters(model).values)
    (kinetic, there), (_, here) = (ld.energy_regressor(model, q, s.v) for q in (moved(model, s), s.q))
    return np.stack([kinetic @ values, (there - here) @ values])


def recorded(model, s):
    """Return what is derived from a sampled motion."""
    t = np.linspace(-1.0, 1.0, 41)
    q = ld.integrate(model, np.repeat(s.q[None], 41, axis=0), np.outer(np.sin(2 * t), s.step))
    return ld.motion_of(model, ld.trajectory_of(model, t * s.time, follow_couplings(model, q)[0]))


def equilibrium(model, s, _):
    """Under forces that balance at q, found from a place near it. Free bodies could turn about the force: they are left out."""
    zero = np.zeros(model.nv)
    if any(len(model.q_names[one.q]) > 6 for one in model.joints):
        return zero
    tau = ld.inverse_dynamics(model, s.q, zero, zero)
    size = np.abs(np.linalg.eigvals(ld.forward_dynamics_derivatives(model, s.q, zero, tau)[0]))
    if size.min(initial=np.inf) < INDIFFERENT * size.max(initial=0.0):
        return zero
    start = moved(model, s._replace(step=0.05 * s.step))
    return ld.difference(model, start, ld.find_equilibrium(model, start, tau=tau).q)


def closed_again(model, s, _):
    if ld.mobility(model, s.q).singular:                         # the nearest closed configuration is no smooth function there
        return np.zeros(model.nv)
    start = moved(model, s._replace(step=2e-2 * s.step))
    return ld.difference(model, s.q, ld.project_configuration(model, start))


def actuated(model, s):
    """Return the solution with all joints actuated, by a criterion that is the same in all units."""
    return {"actuated": np.ones(model.nv, bool), "criterion": "least_torque",
            "weights": 1 / np.sqrt(np.diag(ld.mass_matrix(model, s.q)))}


def inverse_along_the_motion(model, s, _):
    """The rate of constrained inverse dynamics along a motion of constant forces, which obeys the constraints: a sum that may
    cancel. Next to it, that along a change of the acceleration."""
    d, a = ld.constrained_forward_derivatives(model, s.q, s.v, s.tau), s.a
    by = ld.constrained_inverse_derivatives(model, s.q, s.v, a, **actuated(model, s))
    return np.stack([by.dtau_dq @ s.v + by.dtau_dv @ a + by.dtau_da @ (d.da_dq @ s.v + d.da_dv @ a),
                     by.dtau_da @ s.v * ld.energy(model, s.q, a)[0] / ld.energy(model, s.q, s.v)[0]])


def hybrid_along_velocity(model, s, _):
    if ld.mobility(model, s.q).singular:                         # neighbours have no such velocity
        return np.zeros(model.nv)
    return ld.constrained_hybrid_derivatives(model, s.q, s.v, s.a, s.tau, np.zeros(model.nv, bool)).dy_dv @ s.v


def of_link(values, model, link):
    return values[..., model.link_names.index(link), :]


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
    "inverse_kinematics": Observable(reaching, "v"),
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
    "slotine_li_regressor": Observable(
        lambda m, s, _: (ld.slotine_li_regressor(m, s.q, s.v, *reference(s))
                         @ np.asarray(ld.inertial_parameters(m).values)), "f", FORCE),
    "slotine_li_inverse_dynamics": Observable(
        lambda m, s, _: ld.slotine_li_inverse_dynamics(m, s.q, s.v, *reference(s)), "f", FORCE),
    "inertial_parameters": Observable(
        lambda m, s, _: ld.regressor(m, s.q, 0 * s.v, s.a) @ np.asarray(ld.inertial_parameters(m).values), "f", FORCE),
    "base_parameters": Observable(lambda m, s, _: len(ld.base_parameters(m).values), ""),
    "energy:potential": Observable(difference_of_energy, "", FORCE),
    "energy_regressor": Observable(difference_by_regressor, "-", FORCE),
    "momentum_regressor": Observable(
        lambda m, s, _: ld.momentum_regressor(m, s.q, s.v) @ np.asarray(ld.inertial_parameters(m).values), "M", (1, 2, -1)),
    "link_poses": Observable(lambda m, s, link: ld.link_poses(m, s.q)[..., m.link_names.index(link), :, :], "P"),
    "link_pose_derivatives": Observable(
        lambda m, s, link: ld.link_pose_derivatives(m, s.q, rates(s.v, s.a), link)[2], "D", MOTION),
    "joint_motion:S": Observable(lambda m, s, link: motion_of_joint(m, s, link, 1), "t", (0, 0, -1)),
    "joint_motion:dS": Observable(lambda m, s, link: motion_of_joint(m, s, link, 2), "t", MOTION),
    "joint_wrenches": Observable(transmitted, "h", FORCE),
    "element_forces": Observable(lambda m, s, _: ld.element_forces(m, s.q, s.v).energy, "-", FORCE),
    "element_wrenches": Observable(lambda m, s, link: ld.element_wrenches(m, s.q, s.v)[m.link_names.index(link)], "h", FORCE),
    "higher_order_forward_dynamics": Observable(
        lambda m, s, _: ld.higher_order_forward_dynamics(m, s.q, s.v, rates(s.tau, 0 * s.tau))[..., 1, :], "v", (0, 0, -3)),
    "higher_order_hybrid_dynamics:a": Observable(
        lambda m, s, _: ld.higher_order_hybrid_dynamics(m, s.q, s.v, rates(s.a, 0 * s.a), rates(s.tau, 0 * s.tau),
                                                        s.mask)[0][..., 1, :], "v", (0, 0, -3)),
    "higher_order_hybrid_dynamics:tau": Observable(
        lambda m, s, _: ld.higher_order_hybrid_dynamics(m, s.q, s.v, rates(s.a, 0 * s.a), rates(s.tau, 0 * s.tau),
                                                        s.mask)[1][..., 1, :], "f", (1, 2, -3)),
    "hybrid_dynamics_directional:a": Observable(
        lambda m, s, _: ld.hybrid_dynamics_directional(m, s.q, s.v, s.a, s.tau, s.mask, dq=s.v, dv=s.a)[2], "v", (0, 0, -3)),
    "hybrid_dynamics_directional:tau": Observable(
        lambda m, s, _: ld.hybrid_dynamics_directional(m, s.q, s.v, s.a, s.tau, s.mask, dq=s.v, dv=s.a)[3], "f", (1, 2, -3)),
    "parameter_derivatives:mass": Observable(
        lambda m, s, link: ld.parameter_derivatives(m, s.q, s.v, s.a, [f"mass.{link}"])[..., 0], "f", (0, 2, -2)),
    "parameter_derivatives:com": Observable(
        lambda m, s, link: ld.parameter_derivatives(m, s.q, s.v, s.tau, [f"com.{link}.x"], of="forward")[..., 0], "v",
        (0, -1, -2)),
    "kim_tables": Observable(lambda m, s, _: ld.kim_tables(m, s.q, s.v).table_2(s.a), "f", FORCE),
    "closed_form:mass matrix": Observable(lambda m, s, _: ld.closed_form(m, s.q).mass_matrix, "ff", ENERGY),
    "closed_form:pose": Observable(lambda m, s, link: (lambda f, k: f.poses[k])(*block_of(m, s, link)), "P"),
    "closed_form:J": Observable(
        lambda m, s, link: (lambda f, k: f.body_jacobians[k])(*block_of(m, s, link)), "tf"),
    "spatial_closed_form:mass matrix": Observable(lambda m, s, _: ld.spatial_closed_form(m, s.q).mass_matrix, "ff", ENERGY),
    "spatial_closed_form:J": Observable(spatial_jacobian, "Sf"),
    "spatial_twists": Observable(lambda m, s, link: ld.spatial_twists(*spatial(m, s, link)[:2])[1], "S", MOTION),
    "body_twists": Observable(
        lambda m, s, link: ld.body_twists(ld.link_pose(m, s.q, link), ld.link_twist_derivatives(
            m, s.q, rates(s.v, s.a), link, frame="world"))[1], "t", MOTION),
    "spatial_wrenches": Observable(lambda m, s, link: ld.spatial_wrenches(*spatial(m, s, link))[1], "M", (1, 2, -3)),
    "body_wrenches": Observable(
        lambda m, s, link: (lambda T, V, F: ld.body_wrenches(T, V, ld.spatial_wrenches(T, V, F)))(*spatial(m, s, link))[1], "h",
        (1, 2, -3)),
    "curvature_tensor": Observable(lambda m, s, _: ld.curvature_tensor(m, s.q), "ffff", ENERGY),
    "scalar_curvature": Observable(lambda m, s, _: ld.scalar_curvature(m, s.q), "", (-1, -2, 0)),
    "sectional_curvature": Observable(lambda m, s, _: ld.sectional_curvature(m, s.q, s.v, s.a), "", (-1, -2, 0)),
    "d_integrate:q": Observable(lambda m, s, _: ld.d_integrate(m, s.q, s.step)[0], "vf"),
    "d_integrate:v": Observable(lambda m, s, _: ld.d_integrate(m, s.q, s.step)[1], "vf"),
    "d_difference": Observable(lambda m, s, _: ld.d_difference(m, s.q, moved(m, s))[0], "vf"),
    "motion_of": Observable(lambda m, s, _: recorded(m, s).a[25], "v", MOTION),
    "trajectory_of": Observable(lambda m, s, _: ld.difference(m, s.q, recorded(m, s).q[25]), "v"),
    "find_equilibrium": Observable(equilibrium, "v"),
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
    "assemblies": Observable(lambda m, s, _: ld.difference(m, s.q, ld.assemblies(m, s.q, searches=1)[0].q), "v"),
    "mobility:rank": Observable(lambda m, s, _: ld.mobility(m, s.q).rank, ""),
    "constrained_forward_derivatives:tau": Observable(
        lambda m, s, _: ld.constrained_forward_derivatives(m, s.q, s.v, s.tau).da_dtau, "vv", (-1, -2, 0)),
    "constrained_hybrid_derivatives:q": Observable(
        lambda m, s, _: ld.constrained_hybrid_derivatives(m, s.q, s.v, s.a, s.tau, np.zeros(m.nv, bool)).dy_dq @ s.v, "v",
        (0, 0, -3)),
    "constrained_hybrid_derivatives:v": Observable(hybrid_along_velocity, "v", MOTION),
    "constrained_inverse_dynamics": Observable(
        lambda m, s, _: ld.constrained_inverse_dynamics(m, s.q, s.v, s.a, **actuated(m, s)).tau, "f", FORCE),
    "constrained_inverse_derivatives": Observable(inverse_along_the_motion, "-f", (1, 2, -3)),
    "balance_derivatives:forces by q": Observable(
        lambda m, s, _: ld.balance_derivatives(m, s.q, s.v, s.a, s.multipliers).dR1_dq, "ff", FORCE),
    "balance_derivatives:constraints by q": Observable(
        lambda m, s, _: ld.balance_derivatives(m, s.q, s.v, s.a, s.multipliers).dR2_dq, "rf", MOTION),
    "balance_derivatives:velocity by q": Observable(
        lambda m, s, _: ld.balance_derivatives(m, s.q, s.v, s.a, s.multipliers, s.free).dAx_dq, "rf", (0, 0, -1)),
    "closure_wrenches": Observable(
        lambda m, s, _: ld.closure_wrenches(m, s.q, s.multipliers), "cH", FORCE),
    "constraint_wrenches": Observable(
        lambda m, s, link: of_link(ld.constraint_wrenches(m, s.q, s.multipliers), m, link), "h", FORCE),
    "joint_wrenches:with multipliers": Observable(
        lambda m, s, link: transmitted(m, s, link, multipliers=s.multipliers), "h", FORCE),
    "project_configuration": Observable(closed_again, "v"),
    "constrained_hybrid_dynamics": Observable(
        lambda m, s, _: ld.constrained_hybrid_dynamics(m, s.q, s.v, s.a, s.tau, np.zeros(m.nv, bool)).a, "v", MOTION),
}
_KINEMATIC = ("energy:potential", "momentum", "momentum_regressor", "link_poses", "link_pose_derivatives", "joint_motion:S",
              "joint_motion:dS", "centre_of_mass_derivatives", "bias_force", "gravity_force", "mass_matrix", "energy:kinetic",
              "centre_of_mass", "link_pose", "link_twist",
              "link_twist:world axes", "link_acceleration", "jacobian", "jacobian:world axes")


def outcome(one: Observable, model, state, link) -> np.ndarray | str:
    """Return the result, or the name of the error."""
    try:
        return np.asarray(one.compute(model, state, link), float)
    except ld.ComputationError as error:
        return type(error).__name__
    except ld.ModelError as error:
        if "not supported for robots with force elements" not in error.message:
            raise
        return type(error).__name__


def observables(model, same_order: bool = True) -> dict[str, Observable]:
    """Those of the model: dynamics of trees accept couplings, but no loops.

    same_order: of the coordinates, which decides which of those of a coupling follows the others and has no force.
    """
    if not model.constraints:
        return TREE
    of_tree = model.has_only_linear_couplings and (same_order or not model.description.couplings)
    return (TREE if of_tree else {name: TREE[name] for name in _KINEMATIC}) | CONSTRAINED


_FILES = "reads or writes files, texts and pictures: computes nothing"
_SCENARIO = "compared as a whole motion in test_scenarios.py"
_INPUT = "makes the input of the relations"
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("figure_of", "load", "load_description", "parameter_names", "plan", "read_trajectory", "replay_of", "save",
                     "view", "warmup", "write_run"), _FILES),
    **dict.fromkeys(("simulate", "rollout", "difference"), _SCENARIO),
    **dict.fromkeys(("attach", "build", "curve_joint", "fix_joints", "random_configuration", "random_motion", "expand", "reduce",
                     "integrate"), _INPUT),
    "run_scenario": "the computation of simulate, which test_scenarios.py compares",
    "rollout_derivatives": "requires generated code; compared in test_scenarios.py",
    "tvlqr": "requires generated code; compared in test_linear_steps.py",
    **dict.fromkeys(("casadi_function", "casadi_right_hand_side", "symbolic"),
                    "expressions of functions that are compared; see tests/interop"),
    "to_device": "functions compared here, on a device; compared in test_devices.py",
    "plan_move": "a duration; compared in test_moves.py",
    "excite": "a motion; compared in test_excitation.py",
    "kinematic_sweep": "of mechanisms with one degree of freedom; compared in test_kinematic_sweep.py",
    **dict.fromkeys(("identify", "consistent_parameters"), "compared for a recorded motion in test_scenarios.py"),
    "linearize_scenario": "reads files; compared in test_scenarios.py",
}


def within(found: dict, expected: dict, tolerance: float):
    """Compare results by name: arrays within the tolerance, or the same errors."""
    wrong = {}
    for name, value in expected.items():
        if isinstance(value, str) or isinstance(found[name], str):
            if found[name] != value:
                wrong[name] = f"{found[name]!s:.200} and {value!s:.200}"
            continue
        x, y = np.asarray(found[name], float), np.asarray(value, float)
        error = np.abs(x - y).max(initial=0.0) / max(np.abs(y).max(initial=0.0), SMALL)
        if not error <= tolerance:
            wrong[name] = f"{error:.1e}"
    assert not wrong, f"{wrong}; repeat with LIEDYN_SEED={SEED}"
