"""Between liedyn's coordinates and Pinocchio's: joints bind by name, twists swap their halves, planar joints turn theirs."""
from pathlib import Path

import numpy as np

SWAP = [3, 4, 5, 0, 1, 2]            # Pinocchio's twists, wrenches and Jacobian rows are linear first


def robots_folder() -> Path:
    """Return the folder of robots of the package example-robot-data."""
    import cmeel
    return Path(cmeel.__file__).parents[1] / "cmeel.prefix/share/example-robot-data/robots"


def urdf_files() -> list[Path]:
    return sorted(robots_folder().rglob("*.urdf"))


def file_of(name: str) -> Path:
    """Return the only robot file with this name."""
    path, = (path for path in urdf_files() if path.name == name)
    return path


def full(upper) -> np.ndarray:
    """Return the full symmetric matrix of one whose upper half Pinocchio fills."""
    return np.triu(upper) + np.triu(upper, 1).T


class PinocchioBridge:
    """Pinocchio's model of a URDF file (or text, or its model) next to ours. Its velocity is S(q) v: a permutation except for
    planar joints, whose velocity it writes in the moving frame."""

    def __init__(self, source, model):
        import pinocchio as pin
        args = (pin.JointModelFreeFlyer(),) if model.base == "floating" else ()
        text = model.name if isinstance(source, pin.Model) else str(source)
        self.model = model
        build = pin.buildModelFromXML if text.startswith("<") else pin.buildModelFromUrdf
        self.pin = source if isinstance(source, pin.Model) else build(text, *args)
        self.pin.gravity.linear = model.gravity
        self.data = self.pin.createData()
        assert self.pin.nv == model.nv, f"{text}: nv {self.pin.nv} of Pinocchio, {model.nv} of ours"
        self.joints = []
        self.v = np.empty(model.nv, dtype=int)          # where our coordinate stands in Pinocchio's v
        for joint in model.joints:
            name = "root_joint" if joint.type == "free" and joint.name in ("base", "floating_base") else joint.name
            theirs = self.pin.joints[self.pin.getJointId(name)]
            self.joints.append((joint, theirs))
            self.v[joint.v] = theirs.idx_v + np.array(SWAP if joint.type == "free" else range(theirs.nv))

    def q(self, q):
        """Return Pinocchio's configuration (nq,) of that of liedyn."""
        out = np.empty(self.pin.nq)
        for joint, theirs in self.joints:
            x, at = q[joint.q], slice(theirs.idx_q, theirs.idx_q + theirs.nq)
            if joint.type == "planar":
                out[at] = x[0], x[1], np.cos(x[2]), np.sin(x[2])
            elif theirs.nq == 2 and theirs.nv == 1:
                out[at] = np.cos(x[0]), np.sin(x[0])
            else:
                out[at] = x
        return out

    def S(self, q):
        """Return S (nv, nv): Pinocchio's velocity is S v; its force F acts as S^T F."""
        S = np.zeros((self.model.nv, self.model.nv))
        S[self.v, np.arange(self.model.nv)] = 1
        for joint, theirs in self.joints:
            if joint.type == "planar":
                c, s = np.cos(q[joint.q][2]), np.sin(q[joint.q][2])
                S[theirs.idx_v:theirs.idx_v + 2, joint.v][:, :2] = [[c, s], [-s, c]]
        return S

    def dS(self, q, v):
        """Return the time derivative of S: Pinocchio's acceleration is S a + dS v."""
        dS = np.zeros((self.model.nv, self.model.nv))
        for joint, theirs in self.joints:
            if joint.type == "planar":
                c, s, w = np.cos(q[joint.q][2]), np.sin(q[joint.q][2]), v[joint.v][2]
                dS[theirs.idx_v:theirs.idx_v + 2, joint.v][:, :2] = w * np.array([[-s, c], [-c, -s]])
        return dS


def relative(x, y, least: float = 0.0):
    """Return the maximum difference relative to the maximum value, which is at least `least`."""
    scale = max(np.abs(y).max(initial=0.0), least)
    return np.abs(np.asarray(x) - y).max(initial=0.0) / (scale if scale > 0 else 1.0)


def worst_state(x, y, least: float = 0.0):
    """Return the maximum of the relative differences of each state (first axis)."""
    return max(relative(a, b, least) for a, b in zip(x, y, strict=True))
