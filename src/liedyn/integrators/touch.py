"""Contacts at given states in NumPy: forces, their derivatives, and how fast they act. The law is that of
`kernels.simulation.contact`."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.dynamics.kinematics import jacobian, link_pose, link_twist
from liedyn.kernels.simulation.contact import MATERIAL, Contacts
from liedyn.model.spatial import bracket, skew


class Touch(NamedTuple):
    """m contacts at N states; vectors in link frames but for point_world.

    normal, point, velocity, slip   (N, m, 3): of the plane, of the sphere's lowest point, its velocity, that along the plane
    depth, rate, force              (N, m): below zero, and d/dt, where nothing touches; normal force
    """

    normal: np.ndarray
    point: np.ndarray
    velocity: np.ndarray
    slip: np.ndarray
    depth: np.ndarray
    rate: np.ndarray
    force: np.ndarray
    point_world: np.ndarray


def touch(model, contacts: Contacts, q, v) -> Touch:
    """Of states q (N, nq), v (N, nv)."""
    rows = []
    k, c, _, _ = materials(contacts)
    for j, link in enumerate(model.link_names[i] for i in contacts.link):
        T, V = link_pose(model, q, link), link_twist(model, q, v, link)
        world = contacts.normal[3 * j:3 * j + 3]
        n = np.einsum("nij,i->nj", T[:, :3, :3], world)
        p = contacts.centre[3 * j:3 * j + 3] - contacts.radius[j] * n
        u = V[:, 3:] + np.cross(V[:, :3], p)
        p_world = T[:, :3, 3] + np.einsum("nij,nj->ni", T[:, :3, :3], p)
        depth, rate = -contacts.height[j] - p_world @ world, -(n * u).sum(axis=1)
        force = k[j] * np.maximum(depth, 0.0) ** (contacts.twice[j] / 2) * np.maximum(1.0 + c[j] * rate, 0.0)
        rows.append((n, p, u, u + rate[:, None] * n, depth, rate, force, p_world))
    return Touch(*(np.stack(x, axis=1) for x in zip(*rows, strict=True)))


def materials(contacts: Contacts) -> np.ndarray:
    """(MATERIAL, m) k, c, mu, e."""
    return contacts.material.reshape(-1, MATERIAL).T


def touch_slopes(model, contacts: Contacts, q, v) -> np.ndarray:
    """(nv, 2 nv) derivative by x = [dq; dv] of the generalized force sum J^T F of the contact wrenches F, less what it would be
    if each F stood still in its link's frame."""
    nv, at = model.nv, touch(model, contacts, q[None], v[None])
    out = np.zeros((nv, 2 * nv))
    for j in np.flatnonzero(at.force[0] > 0.0):
        link = model.link_names[contacts.link[j]]
        J, dV = twist_slopes(model, q, v, link)
        out += J.T @ _wrench_slopes(contacts, j, at, link_twist(model, q, v, link)[:3], J, dV)
    return out


def twist_slopes(model, q, v, link) -> tuple[np.ndarray, np.ndarray]:
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


def _wrench_slopes(contacts: Contacts, j: int, at: Touch, w, J, dV) -> np.ndarray:
    """(6, 2 nv) of the wrench of contact j in its link's frame."""
    n, p, u, slip = (x[0, j] for x in (at.normal, at.point, at.velocity, at.slip))
    d, rate, N = at.depth[0, j], at.rate[0, j], at.force[0, j]
    (k, c, mu, e), power = materials(contacts)[:, j], contacts.twice[j] / 2
    still = np.zeros_like(J)
    dn = np.hstack([skew(n) @ J[:3], still[:3]])                             # R^T n turns by n x w
    dp = -contacts.radius[j] * dn
    dd = -(n @ np.hstack([J[3:], still[3:]])) - contacts.centre[3 * j:3 * j + 3] @ dn
    du = dV[3:] - skew(p) @ dV[:3] + skew(w) @ dp
    drate = -(u @ dn + n @ du)
    dN = k * d**power * c * drate + power * N / d * dd
    dslip = du + np.outer(n, drate) + rate * dn
    s = 1.0 / np.sqrt(slip @ slip + e * e)
    ds = -s**3 * (slip @ dslip)
    f = N * (n - mu * s * slip)
    df = np.outer(n - mu * s * slip, dN) + N * (dn - mu * (np.outer(slip, ds) + s * dslip))
    return np.vstack([skew(p) @ df - skew(f) @ dp, df])


def touch_coefficients(model, contacts: Contacts, q, v, pressed: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Directions (3m, nv) in which contacts resist, damping and stiffness (3m,) along them. pressed: each carries its share of
    the weight at the least."""
    at, (k, c, mu, e), power = touch(model, contacts, q[None], v[None]), materials(contacts), contacts.twice / 2
    N = np.maximum(at.force[0], contacts.share if pressed else 0.0)
    depth = np.maximum((N / k) ** (1.0 / power), 1e-300)
    friction = mu * N / np.hypot(np.linalg.norm(at.slip[0], axis=1), e)
    rows, resist, spring = [], [], []
    for j, link in enumerate(model.link_names[i] for i in contacts.link):
        J, n, p = jacobian(model, q, link), at.normal[0, j], at.point[0, j]
        _, _, axes = np.linalg.svd(n[None])                                  # the normal, and two along the plane
        rows.append(axes @ (J[3:] - skew(p) @ J[:3]))
        resist.append([c[j] * N[j], friction[j], friction[j]])
        spring.append([power[j] * N[j] / depth[j] if N[j] else 0.0, 0.0, 0.0])
    return np.vstack(rows), np.concatenate(resist), np.concatenate(spring)
