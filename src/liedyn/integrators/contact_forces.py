"""Contacts and compliant stops at given states: forces, their derivatives, and their stiffness and damping.

The laws are evaluated by `kernels.simulation.contact` and `kernels.simulation.joint_laws`.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.kinematics import jacobian, link_pose
from liedyn.integrators.problem import InitialValueProblem
from liedyn.kernels.simulation.contact import (
    CONTACT_STATE_SIZE,
    DEPTH,
    FORCE,
    GROUND,
    GROUND_POINT,
    MATERIAL_SIZE,
    NORMAL,
    POINT,
    SLIP,
    STICK_DAMPING,
    STICK_STIFFNESS,
    TANGENTIAL,
    Contacts,
    contact_states,
    contact_wrench_jacobian,
)
from liedyn.kernels.simulation.joint_laws import FRICTION_SIZE, STOP_SIZE, stop_states
from liedyn.model.model import Model
from liedyn.model.spatial import bracket, skew


class ContactState(NamedTuple):
    """m contacts at N states; vectors are in the frames of the links a, except ground_point.

    normal, point, slip  (N, m, 3) outward normal of the touched surface, contact point, its velocity tangential to the surface
    depth, force         (N, m) depth, negative without contact; normal force
    ground_point         (N, m, 3) contact point in the world frame for contacts with the ground, zero for others
    tangential           (N, m) friction
    """

    normal: np.ndarray
    point: np.ndarray
    slip: np.ndarray
    depth: np.ndarray
    force: np.ndarray
    ground_point: np.ndarray
    tangential: np.ndarray


def contact_forces(model: Model, contacts: Contacts, q: Array, v: Array, stretch: Array | None = None) -> ContactState:
    """Return the contacts at states q (N, nq), v (N, nv), with the stretches (N, 3s) of those that stick; None: zero."""
    stretch = np.zeros((len(q), 3 * np.count_nonzero(contacts.stretch >= 0))) if stretch is None else stretch
    x = np.empty((len(q), contacts.link.size, CONTACT_STATE_SIZE))
    contact_states(*model._arrays[:2], contacts, np.array(q), np.array(v), np.array(stretch), x)
    return ContactState(x[..., NORMAL:POINT], x[..., POINT:SLIP], x[..., SLIP:DEPTH], x[..., DEPTH], x[..., FORCE],
                        x[..., GROUND_POINT:TANGENTIAL], x[..., TANGENTIAL])


def materials(contacts: Contacts) -> np.ndarray:
    """Return the parameters of the contacts (MATERIAL_SIZE, m)."""
    return contacts.material.reshape(-1, MATERIAL_SIZE).T


def contact_jacobian(model: Model, contacts: Contacts, q: Array, v: Array) -> np.ndarray:
    """Return the (nv, 2 nv) derivative of the generalized force sum J^T F of the contact wrenches F with respect to [dq; dv].

    The part for wrenches F that are constant in the frames of their links is not included.
    """
    out, room = np.zeros((model.nv, 2 * model.nv)), np.zeros((2, 6 * model.nv))
    contact_wrench_jacobian(*model._arrays[:2], contacts, np.array(q), np.array(v), *room, out)
    return out


def twist_jacobian(model: Model, q: Array, v: Array, link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return J (6, nv) of a link, and the derivative (6, 2 nv) of its twist with respect to [dq; dv], in the link frame.

    dV/dq_j = ad_{V before j} J_j.
    """
    J = jacobian(model, q, link)
    by_q, partial_twist = np.zeros_like(J), np.zeros(6)
    for joint in model.joints:
        # each screw of a compound joint turns those before it, but a ball or free joint moves as one
        parts = [slice(i, i + 1) for i in range(joint.v.start, joint.v.stop)] if joint.screws is not None else [joint.v]
        for part in parts:
            if J[:, part].any():
                by_q[:, part] = bracket(partial_twist) @ J[:, part]
                partial_twist = partial_twist + J[:, part] @ v[part]
    return J, np.hstack([by_q, J])


def contact_coefficients(model: Model, contacts: Contacts, q: Array, v: Array,
                         with_load: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the directions (3m, nv) in which contacts resist, and damping and stiffness (3m,) along them.

    with_load: each contact carries at least its share of the weight.
    """
    at, power = contact_forces(model, contacts, q[None], v[None]), contacts.doubled_exponent / 2
    k, c, mu, e, *_ = parameters = materials(contacts)
    sticks = contacts.stretch >= 0
    N = np.maximum(at.force[0], contacts.weight_share if with_load else 0.0)
    depth = np.maximum((N / k) ** (1.0 / power), 1e-300)
    friction = np.where(sticks, parameters[STICK_DAMPING], mu * N / np.hypot(np.linalg.norm(at.slip[0], axis=1), e))
    holding = np.where(sticks, parameters[STICK_STIFFNESS], 0.0)
    rows, resist, spring, of, poses = [], [], [], {}, {}
    for i in {*contacts.link, *contacts.other}:
        of[i], poses[i] = jacobian(model, q, model.link_names[i]), link_pose(model, q, model.link_names[i])
    for j, (a, b) in enumerate(zip(contacts.link, contacts.other, strict=True)):
        n, p = at.normal[0, j], at.point[0, j]
        moved = of[a][3:] - skew(p) @ of[a][:3]
        if contacts.kind[j] != GROUND:
            R = poses[b][:3, :3]
            p_b = R.T @ (poses[a][:3, :3] @ p + poses[a][:3, 3] - poses[b][:3, 3])
            moved = moved - poses[a][:3, :3].T @ R @ (of[b][3:] - skew(p_b) @ of[b][:3])
        _, _, axes = np.linalg.svd(n[None])                                  # the normal and two tangents
        rows.append(axes @ moved)
        resist.append([c[j] * N[j], friction[j], friction[j]])
        spring.append([power[j] * N[j] / depth[j] if N[j] else 0.0, holding[j], holding[j]])
    return np.vstack(rows), np.concatenate(resist), np.concatenate(spring)


# stop forces ------------------------------------------------------------------------------------------------------------

class PressedStops(NamedTuple):
    """m stops at N states.

    depth           (N, m) [rad | m], negative inside the limits
    force           (N, m) [N m | N], not negative
    damping_factor  (N, m) 1 + c d', not negative
    """

    depth: np.ndarray
    force: np.ndarray
    damping_factor: np.ndarray


def evaluate_stops(problem: InitialValueProblem, q: Array, v: Array) -> PressedStops:
    """Return the stops at states q (N, nq), v (N, nv)."""
    stops = problem.stops
    assert stops is not None
    x = np.empty((3, len(q), len(stops.coordinate)))
    stop_states(stops, problem.schedule.q_of_v, np.array(q), np.array(v), x)
    return PressedStops(*x)


def stop_jacobian(problem: InitialValueProblem, q: Array, v: Array) -> np.ndarray:
    """Return the (nv, 2 nv) derivative of generalized forces of compliant stops with respect to x = [dq; dv]."""
    stops, nv = problem.stops, problem.model.nv
    assert stops is not None
    out, at = np.zeros((nv, 2 * nv)), evaluate_stops(problem, q[None], v[None])
    _, stiffness, c = stops.coefficients.reshape(-1, STOP_SIZE).T
    for j in np.flatnonzero(at.force[0] > 0.0):
        k = stops.coordinate[j]
        out[k, k] -= stiffness[j] * at.damping_factor[0, j]
        out[k, nv + k] -= stiffness[j] * c[j] * at.depth[0, j]
    return out


# sliding friction of joints -----------------------------------------------------------------------------------------------

def sliding_friction(problem: InitialValueProblem, v: Array) -> Array:
    """Return friction (N, nv) of the coordinates that slide at v (N, nv)."""
    out, stops = np.zeros_like(v), problem.stops
    if stops is not None:
        for k, (c0, c1, c2) in zip(stops.sliding, stops.sliding_friction.reshape(-1, FRICTION_SIZE), strict=True):
            out[:, k] = c0 + c1 * np.exp(-c2 * v[:, k] ** 2)
    return out


def sliding_friction_slopes(problem: InitialValueProblem, v: Array) -> Array:
    """Return the derivatives (nv,) of friction of the coordinates that slide with respect to their velocities v (nv,)."""
    out, stops = np.zeros(len(v)), problem.stops
    if stops is not None:
        for k, c in zip(stops.sliding, stops.sliding_friction.reshape(-1, FRICTION_SIZE), strict=True):
            out[k] = friction_slope(c[1], c[2], v[k])
    return out


def friction_slope(c1: float, c2: float, v: float) -> float:
    """Return the derivative of c1 exp(-c2 v^2) with respect to v."""
    return float(-2.0 * c1 * c2 * v * np.exp(-c2 * v**2))


def stop_coefficients(problem: InitialValueProblem, q: Array, v: Array, with_load: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return damping and stiffness (nv,) of each coordinate. with_load: each stop carries at least the load of its joint."""
    stops, nv = problem.stops, problem.model.nv
    assert stops is not None
    resist, spring = np.zeros(nv), np.zeros(nv)
    force = evaluate_stops(problem, q[None], v[None]).force[0]
    _, k, c = stops.coefficients.reshape(-1, STOP_SIZE).T
    if with_load:
        force = np.maximum(force, problem.stop_loads)
    np.maximum.at(resist, stops.coordinate, c * force)
    np.maximum.at(spring, stops.coordinate, np.where(force > 0.0, k, 0.0))
    return resist, spring
