"""Contacts at given states: forces, their derivatives, and how fast they act. The law is that of `kernels.simulation.contact`."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.dynamics.kinematics import jacobian, link_pose, link_twist
from liedyn.kernels.simulation.contact import DAMPING_WIDTH, GROUND, MATERIAL_SIZE, SPHERE, Contacts, contact_wrench_jacobian
from liedyn.kernels.simulation.joint_laws import STOP_SIZE
from liedyn.model.spatial import bracket, skew


class ContactState(NamedTuple):
    """m contacts at N states; vectors in the frames of the links a but for point_world.

    normal, point, slip   (N, m, 3): out of what is touched, the point of contact, its velocity along the plane
    depth, force          (N, m): depth is below zero where nothing touches; normal force
    """

    normal: np.ndarray
    point: np.ndarray
    slip: np.ndarray
    depth: np.ndarray
    force: np.ndarray
    point_world: np.ndarray


def contact_forces(model, contacts: Contacts, q, v) -> ContactState:
    """Of states q (N, nq), v (N, nv)."""
    rows, seen, still = [], {}, (np.eye(4)[None], np.zeros((1, 6)))
    for link in {*contacts.link, *contacts.other}:
        name = model.link_names[link]
        seen[link] = link_pose(model, q, name), link_twist(model, q, v, name)
    for j, (a, b) in enumerate(zip(contacts.link, contacts.other, strict=True)):
        (T, V), (Tb, Vb) = seen[a], still if contacts.kind[j] == GROUND else seen[b]
        R = T[:, :3, :3]
        turn = np.swapaxes(R, 1, 2) @ Tb[:, :3, :3]                    # from b to a
        away = np.einsum("nji,nj->ni", R, Tb[:, :3, 3] - T[:, :3, 3])
        w = np.einsum("nij,nj->ni", turn, Vb[:, :3])
        u = np.einsum("nij,nj->ni", turn, Vb[:, 3:]) + np.cross(away, w)
        n, p, depth = _geometry(contacts, j, turn, away)
        u = V[:, 3:] - u + np.cross(V[:, :3] - w, p)
        rate = -(n * u).sum(axis=1)
        p_world = T[:, :3, 3] + np.einsum("nij,nj->ni", R, p)
        rows.append((n, p, u + rate[:, None] * n, depth, _force(contacts, j, depth, rate), p_world))
    return ContactState(*(np.stack(x, axis=1) for x in zip(*rows, strict=True)))


def _geometry(contacts: Contacts, j: int, turn, away):
    """Normal, point of contact, depth. turn, away: rotation and origin of what is touched, in the frame of a."""
    x, centre = contacts.normal[3 * j:3 * j + 3], contacts.centre[3 * j:3 * j + 3]
    radius, height = contacts.radius[j], contacts.height[j]
    if contacts.kind[j] != SPHERE:
        n = turn @ x
        p = centre - radius * n
        return n, p, -height - (n * (p - away)).sum(axis=1)
    x = away + turn @ x
    length = np.linalg.norm(centre - x, axis=1)
    n, depth = (centre - x) / length[:, None], radius + height - length
    return n, x + (height - depth / 2)[:, None] * n, depth


def _force(contacts: Contacts, j: int, depth, rate):
    k, c, _, _, w = materials(contacts)[:, j]
    if contacts.smooth[j]:
        hit, factor = _regularized(depth, w), _regularized(1.0 + c * rate, DAMPING_WIDTH)
    else:
        hit, factor = np.maximum(depth, 0.0), np.maximum(1.0 + c * rate, 0.0)
    return k * hit ** (contacts.twice[j] / 2) * factor


def _regularized(x, w):
    return np.where(x > w, x, np.maximum(x + w, 0.0)**2 / (4 * w))


def materials(contacts: Contacts) -> np.ndarray:
    """(MATERIAL_SIZE, m) k, c, mu, e, w."""
    return contacts.material.reshape(-1, MATERIAL_SIZE).T


def contact_jacobian(model, contacts: Contacts, q, v) -> np.ndarray:
    """(nv, 2 nv) derivative by x = [dq; dv] of the generalized force sum J^T F of the contact wrenches F, less what it would be
    if each F stood still in its link's frame."""
    out, room = np.zeros((model.nv, 2 * model.nv)), np.zeros((2, 6 * model.nv))
    contact_wrench_jacobian(*model._arrays[:2], contacts, np.array(q), np.array(v), *room, out)
    return out


def twist_jacobian(model, q, v, link) -> tuple[np.ndarray, np.ndarray]:
    """J (6, nv) of the link, and the derivative (6, 2 nv) of its twist by [dq; dv], link frame: dV/dq_j = ad_{V before j} J_j."""
    J = jacobian(model, q, link)
    by_q, before = np.zeros_like(J), np.zeros(6)
    for joint in model.joints:
        # each screw of a compound joint turns those before it, but a ball or free joint moves as one
        parts = [slice(i, i + 1) for i in range(joint.v.start, joint.v.stop)] if joint.screws is not None else [joint.v]
        for part in parts:
            if J[:, part].any():
                by_q[:, part] = bracket(before) @ J[:, part]
                before = before + J[:, part] @ v[part]
    return J, np.hstack([by_q, J])


def contact_coefficients(model, contacts: Contacts, q, v, with_load: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Directions (3m, nv) in which contacts resist, damping and stiffness (3m,) along them. pressed: each carries its share of
    the weight at the least."""
    at, (k, c, mu, e, _), power = contact_forces(model, contacts, q[None], v[None]), materials(contacts), contacts.twice / 2
    N = np.maximum(at.force[0], contacts.share if with_load else 0.0)
    depth = np.maximum((N / k) ** (1.0 / power), 1e-300)
    friction = mu * N / np.hypot(np.linalg.norm(at.slip[0], axis=1), e)
    rows, resist, spring, of, poses = [], [], [], {}, {}
    for i in {*contacts.link, *contacts.other}:
        of[i], poses[i] = jacobian(model, q, model.link_names[i]), link_pose(model, q, model.link_names[i])
    for j, (a, b) in enumerate(zip(contacts.link, contacts.other, strict=True)):
        n, p = at.normal[0, j], at.point[0, j]
        moved = of[a][3:] - skew(p) @ of[a][:3]
        if contacts.kind[j] != GROUND:
            R = poses[b][:3, :3]
            there = R.T @ (at.point_world[0, j] - poses[b][:3, 3])
            moved = moved - poses[a][:3, :3].T @ R @ (of[b][3:] - skew(there) @ of[b][:3])
        _, _, axes = np.linalg.svd(n[None])                                  # the normal, and two along the plane
        rows.append(axes @ moved)
        resist.append([c[j] * N[j], friction[j], friction[j]])
        spring.append([power[j] * N[j] / depth[j] if N[j] else 0.0, 0.0, 0.0])
    return np.vstack(rows), np.concatenate(resist), np.concatenate(spring)


# stop forces ------------------------------------------------------------------------------------------------------------

# Compliant stops at given states in NumPy: forces, their derivatives, and how fast they act. The law is that of
# `kernels.simulation.joint_laws`.

class PressedStops(NamedTuple):
    """m stops at N states: depth (N, m) [rad | m], below zero inside the limits; force (N, m) [N m | N], not negative;
    damping_factor (N, m), 1 + c d', not negative."""

    depth: np.ndarray
    force: np.ndarray
    damping_factor: np.ndarray


def evaluate_stops(problem, q, v) -> PressedStops:
    """Of states q (N, nq), v (N, nv)."""
    stops = problem.stops
    limit, k, c = stops.numbers.reshape(-1, STOP_SIZE).T
    depth = stops.side * (q[:, problem.schedule.q_of_v[stops.coordinate]] - limit)
    damping_factor = np.maximum(1.0 + c * stops.side * v[:, stops.coordinate], 0.0)
    return PressedStops(depth, k * np.maximum(depth, 0.0) * damping_factor, damping_factor)


def stop_jacobian(problem, q, v) -> np.ndarray:
    """(nv, 2 nv) derivative of joint forces of compliant stops by x = [dq; dv]."""
    stops, nv = problem.stops, problem.model.nv
    out, at = np.zeros((nv, 2 * nv)), evaluate_stops(problem, q[None], v[None])
    _, stiffness, c = stops.numbers.reshape(-1, STOP_SIZE).T
    for j in np.flatnonzero(at.force[0] > 0.0):
        k = stops.coordinate[j]
        out[k, k] -= stiffness[j] * at.damping_factor[0, j]
        out[k, nv + k] -= stiffness[j] * c[j] * at.depth[0, j]
    return out


def stop_coefficients(problem, q, v, with_load: bool) -> tuple[np.ndarray, np.ndarray]:
    """(nv,) damping and stiffness of each coordinate. pressed: each stop carries the load of its joint at the least."""
    stops, nv = problem.stops, problem.model.nv
    resist, spring = np.zeros(nv), np.zeros(nv)
    force = evaluate_stops(problem, q[None], v[None]).force[0]
    _, k, c = stops.numbers.reshape(-1, STOP_SIZE).T
    if with_load:
        force = np.maximum(force, problem.stop_loads)
    np.maximum.at(resist, stops.coordinate, c * force)
    np.maximum.at(spring, stops.coordinate, np.where(force > 0.0, k, 0.0))
    return resist, spring
