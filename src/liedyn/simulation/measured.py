"""What expressions read besides coordinates: points of links, at a given state, and their derivatives by it."""
from __future__ import annotations

import numpy as np

from liedyn.codegen.plain import plain
from liedyn.dynamics.kinematics import link_pose, link_twist
from liedyn.integrators.touch import twist_slopes
from liedyn.kernels.simulation.link_points import COMPONENTS, NUMBERS, Points
from liedyn.kernels.simulation.signals import Signals
from liedyn.model.spatial import skew


def path_to(model, link: int) -> list[int]:
    """Bodies from the ground to that of a link."""
    parent, path, body = model.index[8:8 + model.n_bodies], [], int(model.link_body[link])
    while body > 0:
        path.append(body)
        body = int(parent[body])
    return path[::-1]


def joined(paths) -> tuple[np.ndarray, np.ndarray]:
    """Where each begins in all of them, one after the other; and these."""
    return np.cumsum([0, *map(len, paths)]).astype(np.int64), np.concatenate([[], *paths]).astype(np.int64)


def points_of(model, keys) -> Points:
    """keys: link and place on it, of each point."""
    links = np.array([link for link, _ in keys], dtype=np.int64)
    return Points(links, *joined([path_to(model, link) for link in links]),
                  np.array([at for _, at in keys], dtype=float).reshape(-1))


def measured_at(model, signals: Signals, q, v) -> Signals:
    """The signals, where the points of links are those of a state. Joint forces are not known here."""
    if not signals.measured.size:
        return signals
    measured, kernels = np.zeros(signals.measured.size), plain("kernels.simulation.link_points")
    tree = plain("joints.tree").tree_of(model.index, model.constants)
    kernels.look_at_points(signals.points, tree, np.asarray(q, dtype=float), np.asarray(v, dtype=float), measured)
    return signals._replace(measured=measured)


def measured_slope(model, signals: Signals, i: int, q, v) -> np.ndarray:
    """(2 nv,) derivative by [dq; dv] of number i of what is measured, of a point:
    d(R u) = R (du + dphi x u), where the link turns by dphi = J_w dq."""
    (j, component), points = divmod(i - model.nv, NUMBERS), signals.points
    model, link, p = model.open_tree(), model.link_names[points.link[j]], points.at[3 * j:3 * j + 3]
    R, V = link_pose(model, q, link)[:3, :3], link_twist(model, q, v, link)
    J, dV = twist_slopes(model, q, v, link)
    turned = np.hstack([J[:3], 0 * J[:3]])
    if component < 3:
        return (R @ np.hstack([J[3:] - skew(p) @ J[:3], 0 * J[3:]]))[component]
    u, du = (V[3:] + np.cross(V[:3], p), dV[3:] - skew(p) @ dV[:3]) if component < 6 else (V[:3], dV[:3])
    return (R @ (du - skew(u) @ turned))[component % 3]


def measured_name(model, signals: Signals, i: int) -> str:
    """For messages."""
    j, component = divmod(i - model.nv, NUMBERS)
    return f"{COMPONENTS[component]}({model.link_names[signals.points.link[j]]})"
