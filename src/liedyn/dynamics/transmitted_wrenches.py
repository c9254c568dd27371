"""Wrenches that all joints transmit along a motion: moving and fixed ones, and the free joint of a floating base."""
from __future__ import annotations

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.batching.arrays import WORLD, wrenches_in_frame
from liedyn.dynamics.dynamics import newton_euler_residual
from liedyn.dynamics.force_elements import element_wrenches
from liedyn.dynamics.kinematics import link_poses
from liedyn.model.model import Model
from liedyn.model.spatial import pose


def transmitted_wrenches(model: Model, q: Array, v: Array, a: Array, axes: str, *, f_ext: Array | None = None,
                         reactions: Array | None = None, passive: bool = True) -> dict[str, Array]:
    """Return {joint: (N, 6)} wrenches [m; f] [N m | N] on the child link from the parent link, about the child link's origin.

    A joint transmits the inertial forces of the links beyond it, minus the other forces on these links.

    q, v, a      (N, nq), (N, nv), (N, nv)
    axes         world: of the world; link: of the child link; joint: of the joint's frame, which is fixed in the parent link
    f_ext        (N, n_links, 6) external wrenches, in link axes
    reactions    (N, n_links, 6) of constraints, in link axes
    passive      whether force elements act
    """
    T = link_poses(model, q)
    wrench = newton_euler_residual(model, q, v, a)             # on each link, then also on those beyond
    elements = element_wrenches(model, q, v) if passive and model.description.elements else None
    for applied in (f_ext, reactions, elements):
        if applied is not None:
            wrench = wrench - wrenches_in_frame(WORLD, T, applied)
    joints = {joint.name: (joint.parent, joint.child, pose(joint.origin)) for joint in model.description.joints}
    joints |= {joint.name: (joint.parent, joint.child, joint.home) for joint in model.joints if joint.name not in joints}
    out = {}
    for name in _outermost_first(joints):
        parent, child, home = joints[name]
        k = model.link_index(child)
        F, R, R_parent = wrench[:, k], T[:, k, :3, :3], np.eye(3)
        if parent in model.link_names:
            wrench[:, model.link_index(parent)] += F
            R_parent = T[:, model.link_index(parent), :3, :3]
        m, f = F[:, :3] - np.cross(T[:, k, :3, 3], F[:, 3:]), F[:, 3:]
        if axes == "joint":
            R = R_parent @ home[:3, :3]
        if axes != "world":
            m, f = (np.einsum("nji,nj->ni", np.broadcast_to(R, (len(m), 3, 3)), x) for x in (m, f))
        out[name] = np.concatenate([m, f], axis=1)
    return {name: out[name] for name in joints}


def _outermost_first(joints: dict[str, tuple[str, str, Array]]) -> list[str]:
    """Return the names of joints {name: (parent, child, pose)}, each before the joint that moves its parent link."""
    parents = {child: parent for parent, child, _ in joints.values()}

    def depth(link: str) -> int:
        count = 0
        while link in parents:
            link, count = parents[link], count + 1
        return count
    return sorted(joints, key=lambda name: -depth(joints[name][1]))
