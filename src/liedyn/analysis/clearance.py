"""Distances of the links of a robot from each other and from planes, by spheres that cover their shapes.

A pair of links has the distance of its nearest spheres. `Clearance.smooth` replaces the minimum by a smooth lower bound,
-s log sum exp(-d/s), at most s log(n) below it for n pairs of spheres. Its derivative is exact: forces of unit sum along the
lines between the spheres, whose wrenches the Jacobians of the links map to coordinates.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, compress
from math import ceil, hypot, pi, sqrt
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.dynamics.kinematics import jacobian, link_poses
from liedyn.dynamics.scales import model_scales
from liedyn.errors import LiedynWarning, UsageError, WarningLog, list_names
from liedyn.io.robots.visual_shapes import link_shapes
from liedyn.model.links import Shape
from liedyn.model.model import Model
from liedyn.model.spatial import pose

AXES = "x", "y", "z"
SCALE = 0.2               # of the characteristic length: a distance that counts as far from a limit
ROOM = 0.1                # of SCALE: what is never farther than its limit and this is not limited
_SOFT = 1e-3              # of the characteristic length: s above
_NO_PART = 1e-15          # of a smooth minimum: rounding
_ROUNDING = 1e-9          # of an edge of a cell
_SHORT = 1.5              # radii: rings of spheres cover shorter cylinders
_DEEP = 0.6               # radii: the center of the sphere at an end of a longer one is so deep in it
_SPHERES = 20             # along a cylinder, at most
_CELLS = 4                # along the longest edge of a box, at most

Space = Mapping[str, Sequence[float]] | None


class Gap(NamedTuple):
    """What must not come nearer: two links, or a link and a plane such as "z > 0.05 m".

    limit   distance, or position of the plane [m]
    sign    of the distance: -1 for a plane whose free side has smaller positions
    """

    link: str
    other: str
    limit: float
    sign: float = 1.0


@dataclass(frozen=True, eq=False)
class Clearance:
    """Pairs of spheres by gap: those of two links, then those of a link and a plane.

    model     without its couplings
    gaps      what is compared
    link      (spheres,) index of the link
    center    (spheres, 3) in the frame of the link [m]
    first     (gaps,) index of the first pair of each gap
    pairs     (2, pairs) indices of spheres, twice the same for planes
    planes_from  index of the first pair of a link and a plane
    normal    (planes, 3) of their planes, into the free space
    offset    (pairs,) distance = |p - p'| - offset or n p - offset [m]
    scale     [m] of distances that are far from a limit
    excluded  links that are always nearer than their limit, and links without shapes, as text
    """

    model: Model
    gaps: tuple[Gap, ...]
    link: Integers
    center: Array
    first: Integers
    pairs: Integers
    planes_from: int
    normal: Array
    offset: Array
    scale: float
    excluded: tuple[str, ...]

    def distances(self, q: Array) -> tuple[Array, Array]:
        """Return the distances (n, pairs) beyond the limits [m], and the positions (3, n, spheres)."""
        T = link_poses(self.model, q)[:, self.link]
        p = np.ascontiguousarray(np.moveaxis((T[..., :3, :3] @ self.center[..., None])[..., 0] + T[..., :3, 3], -1, 0))
        bodies = slice(0, self.planes_from)
        i, j = self.pairs[:, bodies]
        d = np.empty((len(q), len(self.offset)))
        d[:, bodies] = np.sqrt(sum((x[:, i] - x[:, j])**2 for x in p))
        d[:, self.planes_from:] = np.einsum("inp,pi->np", p[:, :, self.pairs[0, self.planes_from:]], self.normal)
        return d - self.offset, p

    def nearest(self, q: Array) -> Array:
        """Return the distances (n, gaps) beyond the limits [m]."""
        return np.asarray(np.minimum.reduceat(self.distances(q)[0], self.first, axis=1))

    def smooth(self, q: Array) -> Array:
        """Return smooth lower bounds (n, gaps) of `nearest`."""
        return self._smooth(self.distances(q)[0])[0]

    def _smooth(self, d: Array) -> tuple[Array, Array]:
        """Return smooth minima, and the parts (n, pairs) that pairs have in them."""
        softness = _SOFT / SCALE * self.scale
        counts = np.diff(np.append(self.first, d.shape[1]))
        minimum = np.minimum.reduceat(d, self.first, axis=1)
        part = np.exp(-(d - np.repeat(minimum, counts, axis=1)) / softness)
        total = np.add.reduceat(part, self.first, axis=1)
        return minimum - softness * np.log(total), part / np.repeat(total, counts, axis=1)

    def smooth_derivatives(self, q: Array) -> Array:
        """Return the derivatives (n, gaps, nv) of the smooth lower bounds with respect to the configuration."""
        d, p = self.distances(q)
        part = self._smooth(d)[1]
        n, k = np.nonzero(part > _NO_PART)
        gap = np.searchsorted(self.first, k, side="right") - 1
        a, b = (p[:, n, sphere[k]].T for sphere in self.pairs)
        is_plane = k >= self.planes_from
        line = a - b
        line[is_plane] = self.normal[k[is_plane] - self.planes_from]
        length = np.linalg.norm(line, axis=1)
        force = line * (part[n, k] / np.where(length > 0.0, length, 1.0))[:, None]
        out = np.zeros((len(q), len(self.gaps), self.model.nv))
        links = self.link[self.pairs[:, self.first]]
        for at, weight, side in ((a, force, links[0]), (b, np.where(is_plane[:, None], 0.0, -force), links[1])):
            wrench = np.zeros((len(q), len(self.gaps), 6))
            np.add.at(wrench, (n, gap), np.hstack([np.cross(at, weight), weight]))
            for link in np.unique(side[self.model.link_body[side] > 0]):
                J = jacobian(self.model, q, self.model.link_names[link], frame="world")
                out[:, side == link] += wrench[:, side == link] @ J
        return out


def clearance(model: Model, self_distance: float | None, space: Space,
              postures: Array) -> tuple[Clearance | None, tuple[LiedynWarning, ...]]:
    """Return what must not come nearer, and warnings about what is not compared; None if nothing is limited.

    Links of one body and of bodies connected by a joint are not compared with each other, nor links on the ground with planes.

    postures   (n, nv) random ones: what is below its limit in all of them, or hardly above it, is not compared
    """
    planes = _planes(space)
    if self_distance is not None and (isinstance(self_distance, bool) or not 0.0 <= self_distance < np.inf):
        raise UsageError(f"self_distance must be a finite number of metres >= 0, got {self_distance!r}")
    if self_distance is None and not planes:
        return None, ()
    bodies = dict(zip(model.link_names, model.link_body.tolist(), strict=True))
    spheres = {link: np.concatenate([covering_spheres(shape) for shape in shapes])
               for link, shapes in link_shapes(model.description).items() if link in bodies}
    gaps: list[_Part] = []
    if self_distance is not None:
        adjacent = {frozenset((bodies[link], bodies[parent])) for link, parent in zip(model.link_names, model.link_parents,
                                                                                     strict=True) if parent is not None}
        gaps += [_pair_part(spheres, a, b, self_distance) for a, b in combinations(spheres, 2)
                 if bodies[a] != bodies[b] and frozenset((bodies[a], bodies[b])) not in adjacent]
    gaps += [_plane_part(spheres, link, *plane) for plane in planes for link in spheres if bodies[link]]
    if not gaps:
        raise UsageError("no distance can be limited: no two links that can move relative to each other, or to the planes, have "
                         "boxes, spheres, cylinders or capsules")
    bare = [link.name for link in model.description.links
            if bodies.get(link.name) and link.mass > 0.0 and link.name not in spheres]
    return _without_touching(model, spheres, gaps, postures, bare)


def _without_touching(model: Model, spheres: Mapping[str, Array], parts: Sequence[_Part], postures: Array,
                      bare: Sequence[str]) -> tuple[Clearance, tuple[LiedynWarning, ...]]:
    """Return the clearance without what is below its limit in all postures, and warnings."""
    every = _joined(model, spheres, parts)
    touching: Mask = np.all(every.smooth(postures) < ROOM * every.scale, axis=0)
    warnings, names = WarningLog(), [f"{part.gap.link} and {part.gap.other}" for part in compress(parts, touching)]
    if touching.all():
        raise UsageError(f"no posture is within the distance limits of {list_names(names, 6)}; reduce the limits")
    if bare:
        warnings.add("no-shape", f"the distances of {list_names(bare, 6)} are not limited, since they have no box, sphere, "
                     "cylinder or capsule", hint="give them `shapes` in the robot file")
    if names:
        warnings.add("always-near", f"the distance of {list_names(names, 6)} is not limited, and they may touch: their spheres "
                     f"are nearer than the limit and {ROOM * every.scale:.2g} m in all random postures", hint="reduce the limit")
    return _joined(model, spheres, list(compress(parts, ~touching)), (*names, *bare)), tuple(warnings)


def covering_spheres(shape: Shape) -> Array:
    """Return spheres (n, 4) whose union contains a shape, in the frame of the link: centers and radii [m].

    They exceed capsules of 1 to 20 radii by at most 12 % of the radius, cylinders of 0.5 to 1.5 radii by 38 % (flatter ones by up
    to 58 %), and those of 1.5 to 20 radii by 57 % at the ends, 17 % at the sides near them, and 12 % elsewhere. Cells of boxes
    are about as long as the shortest edge.
    """
    radius: Array | float
    if shape.kind == "box":
        edges = np.array(shape.sizes)
        counts = np.minimum(np.ceil(edges / max(edges.min(), edges.max() / _CELLS) - _ROUNDING), _CELLS).astype(int)
        grid = np.meshgrid(*(((np.arange(n) + 0.5) / n - 0.5) * edge for n, edge in zip(counts, edges, strict=True)))
        at, radius = np.stack([x.ravel() for x in grid], axis=1), 0.5 * float(np.linalg.norm(edges / counts))
    elif shape.kind == "sphere":
        at, radius = np.zeros((1, 3)), shape.sizes[0]
    elif shape.kind == "capsule":
        radius, length = shape.sizes
        count = min(max(ceil(length / radius), 1), _SPHERES)
        at, radius = _on_axis(np.linspace(-0.5, 0.5, count + 1) * length), hypot(radius, 0.5 * length / count)
    else:
        at, radius = _cylinder_spheres(*shape.sizes)
    T = pose(shape.pose)
    return np.column_stack([at @ T[:3, :3].T + T[:3, 3], np.broadcast_to(radius, len(at))])


def _cylinder_spheres(radius: float, length: float) -> tuple[Array, Array]:
    """Return centers (n, 3) and radii (n,) of spheres that contain a cylinder about the z axis.

    Of short cylinders, six circles whose centers are at radius / sqrt(3) from the axis, and which meet there, cover a disc.
    Spheres through them at both faces of a slice cover the slice.
    """
    if length <= _SHORT * radius:
        slices = 1 if length <= radius else 2
        angles, ring, half = np.arange(6) * (pi / 3.0), radius / sqrt(3.0), 0.5 * length / slices
        z = [0.0] if slices == 1 else [-half, half]
        rings = [np.column_stack([ring * np.cos(angles), ring * np.sin(angles), np.full(6, at)]) for at in z]
        return np.concatenate(rings), np.full(6 * slices, hypot(ring, half))
    half = min(_DEEP * radius, 0.5 * length)
    between = max(length - 4.0 * half, 0.0)
    count = min(ceil(between / radius - _ROUNDING), _SPHERES)
    middle = ((np.arange(count) + 0.5) / max(count, 1) - 0.5) * between
    ends = np.unique([half - 0.5 * length, 0.5 * length - half])
    return _on_axis(np.r_[ends, middle]), np.r_[np.full(len(ends), hypot(radius, half)),
                                               np.full(count, hypot(radius, 0.5 * between / max(count, 1)))]


def _on_axis(z: Array) -> Array:
    points: Array = np.outer(z, [0.0, 0.0, 1.0])
    return points


class _Plane(NamedTuple):
    """A limit of positions along an axis of the world."""

    axis: int
    sign: float
    limit: float


def _planes(space: Space) -> list[_Plane]:
    """Return the planes of limits by axis. Raise UsageError for others."""
    planes = []
    for axis, span in sorted((space or {}).items()):
        if axis not in AXES:
            raise UsageError(f"space: the axis must be one of {', '.join(AXES)}, got {axis!r}")
        try:
            lower, upper = map(float, span)
        except (TypeError, ValueError):
            lower = upper = np.nan
        if not lower < upper:
            raise UsageError(f"space[{axis!r}] must be two numbers, lower < upper, got {span!r}")
        planes += [_Plane(AXES.index(axis), sign, limit) for sign, limit in ((1.0, lower), (-1.0, upper)) if np.isfinite(limit)]
    return planes


class _Part(NamedTuple):
    """The pairs of spheres of one gap: indices in those of both links, and arrays of `Clearance`. normal: none for two links."""

    gap: Gap
    links: tuple[str, str]
    pairs: Integers
    normal: Array
    offset: Array


def _pair_part(spheres: Mapping[str, Array], a: str, b: str, limit: float) -> _Part:
    """Return the pairs of spheres of two links."""
    pairs = np.indices((len(spheres[a]), len(spheres[b]))).reshape(2, -1)
    radii = spheres[a][pairs[0], 3] + spheres[b][pairs[1], 3]
    return _Part(Gap(a, b, limit), (a, b), pairs, np.zeros((0, 3)), limit + radii)


def _plane_part(spheres: Mapping[str, Array], name: str, axis: int, sign: float, limit: float) -> _Part:
    """Return the spheres of a link and a plane."""
    radii = spheres[name][:, 3]
    return _Part(Gap(name, f"{AXES[axis]} {'>' if sign > 0.0 else '<'} {limit:g} m", limit, sign), (name, name),
                 np.tile(np.arange(len(radii)), (2, 1)), np.tile(sign * np.eye(3)[axis], (len(radii), 1)), sign * limit + radii)


def _joined(model: Model, spheres: Mapping[str, Array], parts: Sequence[_Part], excluded: tuple[str, ...] = ()) -> Clearance:
    """Return the clearance of all parts."""
    start = dict(zip(spheres, np.cumsum([0, *map(len, spheres.values())]).tolist(), strict=False))
    every = np.concatenate(list(spheres.values()))
    pairs = [part.pairs + np.array([[start[link]] for link in part.links]) for part in parts]
    normal, offset = (np.concatenate([part[k] for part in parts]) for k in (-2, -1))
    return Clearance(model.spanning_tree() if model.nc else model, tuple(part.gap for part in parts),
                     np.repeat([model.link_index(link) for link in spheres], [len(x) for x in spheres.values()]), every[:, :3],
                     np.cumsum([0, *(len(part.offset) for part in parts[:-1])]), np.concatenate(pairs, axis=1),
                     len(offset) - len(normal), normal, offset, SCALE * model_scales(model).length, excluded)
