"""Between liedyn's coordinates and Pinocchio's: joints bind by name, twists swap their halves."""
from pathlib import Path

import numpy as np


def robots_folder() -> Path:
    """The robots of the package example-robot-data."""
    import cmeel
    return Path(cmeel.__file__).parents[1] / "cmeel.prefix/share/example-robot-data/robots"


def urdf_files() -> list[Path]:
    return sorted(robots_folder().rglob("*.urdf"))


class PinocchioBridge:
    """Pinocchio's model of a URDF file beside ours, and maps of q and v."""

    def __init__(self, path, model):
        import pinocchio as pin
        args = (pin.JointModelFreeFlyer(),) if model.base == "floating" else ()
        self.model = model
        self.pin = pin.buildModelFromUrdf(str(path), *args)
        self.data = self.pin.createData()
        assert self.pin.nv == model.nv, f"{path}: nv {self.pin.nv} of Pinocchio, {model.nv} of ours"
        self.joints = []
        self.v = np.empty(model.nv, dtype=int)          # where our coordinate stands in Pinocchio's v
        self.S = np.eye(model.nv)                       # v_pin[self.v] = S v for joints with another velocity
        for joint in model.joints:
            name = "root_joint" if joint.type == "free" and joint.name in ("base", "floating_base") else joint.name
            theirs = self.pin.joints[self.pin.getJointId(name)]
            self.joints.append((joint, theirs))
            swap = [3, 4, 5, 0, 1, 2] if joint.type == "free" else range(theirs.nv)
            self.v[joint.v] = theirs.idx_v + np.array(swap)

    def q(self, q):
        """(N, nq) of ours -> (N, nq) of Pinocchio's."""
        out = np.empty((len(q), self.pin.nq))
        for joint, theirs in self.joints:
            x, o = q[:, joint.q], theirs.idx_q
            if joint.type == "planar":
                out[:, o:o + 4] = np.c_[x[:, 0], x[:, 1], np.cos(x[:, 2]), np.sin(x[:, 2])]
            elif theirs.nq == 2 and theirs.nv == 1:
                out[:, o:o + 2] = np.c_[np.cos(x[:, 0]), np.sin(x[:, 0])]
            else:
                out[:, o:o + theirs.nq] = x
        return out

    def vector(self, x):
        """(N, nv) of ours -> of Pinocchio's (velocities, accelerations, forces)."""
        out = np.empty_like(x)
        out[:, self.v] = x
        return out

    def back(self, x):
        """(…, nv) of Pinocchio's -> ours."""
        return np.asarray(x)[..., self.v]


def relative(x, y):
    """Largest difference against the largest value."""
    scale = np.abs(y).max(initial=0.0)
    return np.abs(np.asarray(x) - y).max(initial=0.0) / (scale if scale > 0 else 1.0)
