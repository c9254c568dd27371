"""What joints transmit along a motion, fixed joints and the cut joints of loops among them, in axes that a person chooses."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.frames import WORLD, wrenches_in
from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.link_loads import link_loads
from liedyn.dynamics.loops.constraint_wrenches import closure_wrenches, constraint_wrenches
from liedyn.model.model import Model
from liedyn.model.spatial import pose
from liedyn.simulation.records.motion_columns import reaction_comment

AXES = ("world", "link", "joint")
_OF_JOINTS = {"world": "world axes", "link": "axes of the child link",
              "joint": "axes of the joint's frame, fixed in the parent link"}
_OF_LOOPS = {"world": "world axes", "link": "axes of link b", "joint": "axes of frame b"}


def joint_wrenches_along(model: Model, motion, axes: str) -> dict[str, np.ndarray]:
    """{joint: (N, 6)} [m; f] [N m | N]: wrench on the child link from the parent link, about the child link's origin.

    All joints, fixed ones too, and the free joint of a floating base. A joint carries what the links beyond it need, less the
    external wrenches and the reactions of loops on them.

    motion : with q, v, a, f_ext and, of a robot with constraints, multipliers (`Motion`); axes of `AXES`.
    """
    T = link_poses(model, motion.q)
    carried = link_loads(model, motion.q, motion.v, motion.a)
    if motion.f_ext is not None:
        carried = carried - wrenches_in(WORLD, T, motion.f_ext)
    if motion.multipliers is not None:
        carried = carried - wrenches_in(WORLD, T, constraint_wrenches(model, motion.q, motion.multipliers))
    joints = {one.name: (one.parent, one.child, pose(one.origin)) for one in model.description.joints}
    joints |= {one.name: (one.parent, one.child, one.home) for one in model.joints if one.name not in joints}
    out = {}
    for name in _outermost_first(joints):
        parent, child, home = joints[name]
        k = model.link_index(child)
        F, R = carried[:, k], T[:, k, :3, :3]
        inwards = parent in model.link_names
        if inwards:
            above = model.link_index(parent)
            carried[:, above] += F
        m, f = F[:, :3] - np.cross(T[:, k, :3, 3], F[:, 3:]), F[:, 3:]
        if axes == "joint":
            R = (T[:, above, :3, :3] if inwards else np.eye(3)) @ home[:3, :3]
        if axes != "world":
            m, f = (np.einsum("nji,nj->ni", np.broadcast_to(R, (len(m), 3, 3)), x) for x in (m, f))
        out[name] = np.concatenate([m, f], axis=1)
    return {name: out[name] for name in joints}


def reactions_along(model: Model, q: np.ndarray, multipliers: np.ndarray, axes: str) -> np.ndarray:
    """(N, n_closures, 6): on link b from link a, about the origin of frame b, in `axes`: "joint" are those of frame b."""
    if axes == "world":
        return closure_wrenches(model, q, multipliers)
    F = closure_wrenches(model, q, multipliers, frame="local")
    if axes == "link":
        for k, loop in enumerate(model.description.loops):
            R = pose(loop.pose_b)[:3, :3]
            F[:, k] = np.concatenate([F[:, k, :3] @ R.T, F[:, k, 3:] @ R.T], axis=1)
    return F


def wrench_comments(model: Model, axes: str) -> dict[str, str]:
    """Comments of the file that name the axes."""
    out = {"wrench": f"on the child link from the parent link, with the motor's force; {_OF_JOINTS[axes]}, about the child "
                     "link's origin"}
    if model.description.loops:
        out["reaction"] = reaction_comment(_OF_LOOPS[axes])
    return out


def _outermost_first(joints: dict[str, tuple]) -> list[str]:
    """Names of joints, each before the one that carries its parent link."""
    carrier = {child: parent for parent, child, _ in joints.values()}

    def depth(link: str) -> int:
        count = 0
        while link in carrier:
            link, count = carrier[link], count + 1
        return count
    return sorted(joints, key=lambda name: -depth(joints[name][1]))
