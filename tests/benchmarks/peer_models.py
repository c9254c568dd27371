"""A model, as it stands in our arrays, for MuJoCo and for Pinocchio. Without passive forces and contacts."""
from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from liedyn.joints.joint_model import tree_views
from liedyn.model.description import BALL, FREE, NV, ONE_DOF


def _tree(model):
    return tree_views.py_func(model.index, model.constants)


def mjcf(model, step: float, integrator: str) -> str:
    """Return the bodies of the model's arrays, with joints about z, balls or free; without contacts and passive forces."""
    tree = _tree(model)
    children = {i: [k for k in range(1, len(tree.parent)) if tree.parent[k] == i] for i in range(len(tree.parent))}

    def pose(i: int):
        T = tree.T0[12 * i:12 * i + 12]
        return T[:9].reshape(3, 3), T[9:]

    def joint(i: int, R, p) -> str:
        """Of body i, whose axes stand as R in those of the one that has the mass, about p there."""
        if tree.kind[i] != ONE_DOF:
            return {BALL: '<joint type="ball"/>', FREE: '<freejoint/>'}[tree.kind[i]]
        turns, slides = tree.S[2 * i:2 * i + 2]
        assert turns * slides == 0.0, "no helical joints here"
        kind, rotor = "hinge" if turns else "slide", float(tree.armature[tree.iv[i]])
        return f'<joint type="{kind}" axis="{_text(R[:, 2])}" pos="{_text(p)}" armature="{rotor!r}"/>'

    def body(i: int) -> str:
        """With the bodies without mass before the next one that has some: MuJoCo wants their joints in one body."""
        chain = [i]
        while tree.I[10 * chain[-1]] == 0.0:
            child, = children[chain[-1]]
            chain.append(child)
        R, p, joints = np.eye(3), np.zeros(3), []
        for k in reversed(chain):
            joints.append(joint(k, R.T, -R.T @ p))
            turn, shift = pose(k)
            R, p = turn @ R, shift + turn @ p
        i, (x, y, z, w) = chain[-1], Rotation.from_matrix(R).as_quat()
        I = tree.I[10 * i:10 * i + 10]
        m, c = I[0], I[1:4] / I[0]
        A = np.zeros((3, 3))
        A[np.triu_indices(3)] = I[4:]
        A = A + np.triu(A, 1).T - m * (c @ c * np.eye(3) - np.outer(c, c))
        numbers = " ".join(repr(float(A[j, k])) for j, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
        return (f'<body pos="{_text(p)}" quat="{_text((w, x, y, z))}"><inertial pos="{_text(c)}" mass="{float(m)!r}" '
                f'fullinertia="{numbers}"/>{"".join(reversed(joints))}{"".join(map(body, children[i]))}</body>')

    return ('<mujoco><compiler inertiafromgeom="false" balanceinertia="false" boundmass="0" boundinertia="0" angle="radian"/>'
            f'<option integrator="{integrator}" timestep="{step!r}" gravity="{_text(-tree.dV0[3:])}">'
            f'<flag contact="disable" constraint="disable" eulerdamp="disable"/></option>'
            f'<worldbody>{"".join(map(body, children[0]))}</worldbody></mujoco>')


def _text(x) -> str:
    return " ".join(repr(float(y)) for y in x)


def mujoco_states(model, q, v):
    """Return states of MuJoCo: quaternions are w x y z, the linear velocity of a free joint is along world axes."""
    q, v = q.copy(), v.copy()
    for joint in model.joints:
        if joint.kind == FREE:
            R = Rotation.from_quat(q[:, joint.q][:, 3:])
            v[:, joint.v] = np.concatenate([R.apply(v[:, joint.v][:, 3:]), v[:, joint.v][:, :3]], axis=1)
            q[:, joint.q] = q[:, joint.q][:, [0, 1, 2, 6, 3, 4, 5]]
        elif joint.kind == BALL:
            q[:, joint.q] = q[:, joint.q][:, [3, 0, 1, 2]]
    return q, v


def our_states(model, q, v):
    """Return states of liedyn from those of MuJoCo."""
    q, v = q.copy(), v.copy()
    for joint in model.joints:
        if joint.kind == FREE:
            q[:, joint.q] = q[:, joint.q][:, [0, 1, 2, 4, 5, 6, 3]]
            R = Rotation.from_quat(q[:, joint.q][:, 3:])
            v[:, joint.v] = np.concatenate([v[:, joint.v][:, 3:], R.apply(v[:, joint.v][:, :3], inverse=True)], axis=1)
        elif joint.kind == BALL:
            q[:, joint.q] = q[:, joint.q][:, [1, 2, 3, 0]]
    return q, v


def pinocchio_of(model):
    """Return Pinocchio's model, and the indices of its q and v in those of liedyn."""
    tree, theirs, order_q, order_v = _tree(model), pin.Model(), [], []
    theirs.gravity.linear = np.array(model.gravity)
    for i in range(1, len(tree.parent)):
        T, I, kind = tree.T0[12 * i:12 * i + 12], tree.I[10 * i:10 * i + 10], tree.kind[i]
        turns, slides = tree.S[2 * i:2 * i + 2]
        assert kind != ONE_DOF or turns * slides == 0.0, "no helical joints here"
        one = {BALL: pin.JointModelSpherical, FREE: pin.JointModelFreeFlyer}.get(kind) or (
            pin.JointModelRZ if turns else pin.JointModelPZ)
        joint = theirs.addJoint(int(tree.parent[i]), one(), pin.SE3(T[:9].reshape(3, 3), T[9:]), f"joint{i}")
        c = I[1:4] / I[0] if I[0] else np.zeros(3)
        A = np.zeros((3, 3))
        A[np.triu_indices(3)] = I[4:]
        A = A + np.triu(A, 1).T - I[0] * (c @ c * np.eye(3) - np.outer(c, c))
        theirs.appendBodyToJoint(joint, pin.Inertia(I[0], c, A), pin.SE3.Identity())
        nv = NV[kind]
        theirs.armature[theirs.idx_vs[joint]:theirs.idx_vs[joint] + nv] = tree.armature[tree.iv[i]:tree.iv[i] + nv]
        order_q += range(tree.iq[i], tree.iq[i] + one().nq)
        order_v += [tree.iv[i] + k for k in ((3, 4, 5, 0, 1, 2) if nv == 6 else range(nv))]
    return theirs, np.array(order_q), np.array(order_v)
