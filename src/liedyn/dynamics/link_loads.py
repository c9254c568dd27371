"""Newton's and Euler's equations of each link of its own, in plain NumPy: what its motion and gravity ask for.

Kernels merge links that are welded together. Here each link stands alone, so that the wrench in a weld, the rate of the momentum
and the zero-moment point follow by sums.
"""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.frames import WORLD, wrenches_in
from liedyn.dynamics.kinematics import all_link_motions
from liedyn.model.model import Model
from liedyn.model.spatial import full


def link_loads(model: Model, q, v, a, *, gravity: bool = True) -> np.ndarray:
    """Wrench (N, n_links, 6) [m; f] [N m | N] that must act on each link besides its weight, in the "world" frame.

    World axes, about the world's origin. With r the centre of mass: f = mass (ddr - g), m = d/dt (I w) + r x f. Without
    `gravity`, the rate of the link's momentum.

    q : (N, nq) array; v, a : (N, nv) arrays. Raises ShapeError, ConfigurationError.
    """
    T, V, dV = all_link_motions(model, q, v, a)
    links = model.description.links
    mass, com = np.array([link.mass for link in links]), np.array([link.com for link in links])
    I = full([link.inertia for link in links])
    w, dw = V[..., :3], dV[..., :3]
    rate = dV[..., 3:] + np.cross(w, V[..., 3:] + np.cross(w, com)) + np.cross(dw, com)        # of the centre's velocity, local
    if gravity:
        rate = rate - np.einsum("nkji,j->nki", T[..., :3, :3], model.gravity)
    f = mass[:, None] * rate
    Iw, Idw = (np.einsum("kij,nkj->nki", I, x) for x in (w, dw))
    m = Idw + np.cross(w, Iw) + np.cross(com, f)
    return wrenches_in(WORLD, T, np.concatenate([m, f], axis=-1))


def moving_links(model: Model) -> np.ndarray:
    """(n_links,) bool: links that are not welded to the ground."""
    return np.asarray(model.link_body) > 0
