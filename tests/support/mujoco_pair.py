"""Our model and MuJoCo's in one state."""
from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

import liedyn as ld
from zoo import state


class MuJoCoPair:
    """Our model and MuJoCo's in one state; G maps our velocities to MuJoCo's, with rate r: a_mj = G a + r.

    MuJoCo's free joint has its linear velocity in the world frame; ball joints and angular velocities are in the body frame.
    theirs: the name there of the first joint of one of ours."""

    def __init__(self, model, mj, seed: int, theirs: Callable = lambda joint: joint.name):
        self.model, self.mj, self.data = model, mj, mujoco.MjData(mj)
        assert (mj.nq, mj.nv) == (model.nq, model.nv)
        self.joints = [(joint, mj.joint(theirs(joint))) for joint in model.joints]
        self.set(*state(model, seed))

    def set(self, q, v, a, tau) -> None:
        self.q, self.v, self.a, self.tau = q, v, a, tau
        self.G, self.rate = np.zeros((self.model.nv, self.model.nv)), np.zeros(self.model.nv)
        for joint, there in self.joints:
            q, v = self.q[joint.q], self.v[joint.v]
            at, block = there.dofadr[0], np.eye(len(v))
            where = slice(at, at + len(v))
            if joint.type == "free":
                R = Rotation.from_quat(q[3:]).as_matrix()
                block = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
                self.rate[at:at + 3] = R @ np.cross(v[:3], v[3:])
            self.G[where, joint.v] = block
            if joint.type in ("ball", "free"):
                q = np.r_[q[:-4], q[-1], q[-4:-1]]
            self.data.qpos[there.qposadr[0]:there.qposadr[0] + len(q)] = q
        self.data.qvel[:] = self.G @ self.v

    def start(self):
        """Return the coordinates of liedyn for MuJoCo's qpos0."""
        out = np.empty(self.model.nq)
        for joint, there in self.joints:
            q = self.mj.qpos0[there.qposadr[0]:there.qposadr[0] + joint.q.stop - joint.q.start]
            out[joint.q] = np.r_[q[:-4], q[-3:], q[-4]] if joint.type in ("ball", "free") else q
        return out

    def forward(self, wrenches=None):
        self.data.qfrc_applied[:] = np.linalg.solve(self.G.T, self.tau)
        mujoco.mj_kinematics(self.mj, self.data)
        mujoco.mj_comPos(self.mj, self.data)
        for name, F in (wrenches or {}).items():
            body = self.mj.body(name).id
            T = ld.link_pose(self.model, self.q, name)
            m, f = T[:3, :3] @ F[:3], T[:3, :3] @ F[3:]
            self.data.xfrc_applied[body] = np.r_[f, m + np.cross(T[:3, 3] - self.data.xipos[body], f)]
        mujoco.mj_forward(self.mj, self.data)
        return np.linalg.solve(self.G, self.data.qacc - self.rate)

    def inverse(self):
        self.data.qacc[:] = self.G @ self.a + self.rate
        mujoco.mj_inverse(self.mj, self.data)
        return self.G.T @ self.data.qfrc_inverse

    def mass(self):
        mujoco.mj_forward(self.mj, self.data)
        M = np.zeros((self.mj.nv, self.mj.nv))
        for column, unit in zip(M, np.eye(self.mj.nv), strict=True):
            mujoco.mj_mulM(self.mj, self.data, column, unit)
        return self.G.T @ M @ self.G

    def bias(self):
        """Return b of M a + b, with the terms of the rate of the free joints."""
        mujoco.mj_forward(self.mj, self.data)
        rate = np.zeros(self.mj.nv)
        mujoco.mj_mulM(self.mj, self.data, rate, self.rate)
        return self.G.T @ (self.data.qfrc_bias + rate)

    def passive(self):
        mujoco.mj_forward(self.mj, self.data)
        return self.G.T @ self.data.qfrc_passive

    def equality(self):
        """Return the rows of each equality constraint in the velocities of liedyn, and their residuals."""
        mujoco.mj_forward(self.mj, self.data)
        J, data = np.zeros((self.data.nefc, self.mj.nv)), self.data
        if mujoco.mj_isSparse(self.mj):
            mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
        else:
            J = data.efc_J.reshape(J.shape)
        rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        return [(J[rows & (data.efc_id == k)] @ self.G, data.efc_pos[rows & (data.efc_id == k)]) for k in range(self.mj.neq)]
