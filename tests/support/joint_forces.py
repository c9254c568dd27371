"""Passive generalized forces by their formulas, from the description."""
import numpy as np

from liedyn.model.description import BALL, FREE, Coordinate


def coordinates(model) -> list[Coordinate]:
    """Return the description of each velocity coordinate."""
    moving = {joint.name: joint for joint in model.description.joints}
    return [c for joint in model.joints for c in (moving[joint.name].coordinates if joint.name in moving else [Coordinate()] * 6)]


def figures(model, name: str) -> np.ndarray:
    """Return a parameter (nv,) of all coordinates, such as damping or friction."""
    return np.array([getattr(c, name) for c in coordinates(model)])


def positions(model, q):
    """Return the positions (…, nv) of all coordinates, zero for ball and free joints."""
    x = np.zeros((*q.shape[:-1], model.nv))
    for joint in model.joints:
        if joint.kind not in (BALL, FREE):
            x[..., joint.v] = q[..., joint.q]
    return x


def passive_force(model, q, v, springs: bool = True):
    force = -(figures(model, "damping") * v + figures(model, "friction") * v / np.hypot(v, figures(model, "friction_speed")))
    return force - figures(model, "stiffness") * (positions(model, q) - figures(model, "rest")) if springs else force
