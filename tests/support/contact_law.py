"""The law of contact in complex arithmetic, after the words of docs/scenarios.md: on top of `complex_step.Reference`, so that the
imaginary part of what comes out is its exact derivative along the change of the state that the reference carries."""
import numpy as np

from complex_step import H, adjoint, inverse
from liedyn.integrators.contact_forces import materials
from liedyn.kernels.simulation.contact import GROUND, SPHERE

_SOFT = 0.5              # width of the smooth form of 1 + c d'


def length(x):
    """Return the length of a vector. numpy.linalg.norm has no complex continuation."""
    return np.sqrt(x @ x)


class Placed:
    """Pose (4, 4) in the world and twist in its own frame of each link, by its place in the model."""

    def __init__(self, reference):
        self.T, self.V, T, V = {}, {}, [], []
        for link in reference.links:
            root = link.parent < 0
            own = link.S @ reference.v[link.v]
            T.append(link.T if root else T[link.parent] @ link.T)
            V.append(own if root else adjoint(inverse(link.T)) @ V[link.parent] + own)
            self.T[link.place], self.V[link.place] = T[-1], V[-1]

    def point(self, link, x):
        """Return a point of a link in the world."""
        T = self.T[link]
        return T[:3, :3] @ x + T[:3, 3]

    def speed(self, link, p):
        """Return the velocity of the point of the link that is at p in the world."""
        R, o = self.T[link][:3, :3], self.T[link][:3, 3]
        return R @ self.V[link][3:] + np.cross(R @ self.V[link][:3], p - o)

    def wrench(self, link, p, f):
        """Return the wrench in the link's frame about its origin of a force at p, both in the world."""
        R, o = self.T[link][:3, :3], self.T[link][:3, 3]
        return np.r_[R.T @ np.cross(p - o, f), R.T @ f]


def normal_force(depth, rate, k, c, n, width):
    """Return the normal force. width: of the smooth form, or None."""
    factor = 1.0 + c * rate
    if width is not None:
        depth, factor = softened(depth, width), softened(factor, _SOFT)
    return k * depth**n * factor if depth.real > 0.0 and factor.real > 0.0 else 0.0j


def softened(x, w):
    return x if x.real >= w else (x + w)**2 / (4.0 * w) if x.real > -w else 0.0j


def contact_wrenches(reference, contacts):
    """Return the complex wrenches (links, 6) in link frames."""
    at, F = Placed(reference), np.zeros((len(reference.model.link_names), 6), complex)
    for j, (a, b) in enumerate(zip(contacts.link, contacts.other, strict=True)):
        k, c, mu, e, w, *_ = materials(contacts)[:, j]
        given, centre = contacts.normal[3 * j:3 * j + 3], at.point(a, contacts.centre[3 * j:3 * j + 3])
        if contacts.kind[j] == SPHERE:
            away = centre - at.point(b, given)
            n = away / length(away)
            depth = contacts.radius[j] + contacts.height[j] - length(away)
            p = centre - (contacts.radius[j] - depth / 2) * n
        else:
            plane = contacts.kind[j] != GROUND
            n, origin = (at.T[b][:3, :3] @ given, at.T[b][:3, 3]) if plane else (given + 0j, np.zeros(3))
            p = centre - contacts.radius[j] * n
            depth = -contacts.height[j] - n @ (p - origin)
        u = at.speed(a, p) - (0.0 if contacts.kind[j] == GROUND else at.speed(b, p))
        slip = u - (n @ u) * n
        N = normal_force(depth, -n @ u, k, c, contacts.doubled_exponent[j] / 2, w if contacts.smooth[j] else None)
        f = N * (n - mu * slip / np.sqrt(slip @ slip + e**2))
        F[a] += at.wrench(a, p, f)
        if contacts.kind[j] != GROUND:
            F[b] -= at.wrench(b, p, f)
    return F


def derivative(F):
    return np.imag(F) / H
