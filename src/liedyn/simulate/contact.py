"""`contacts` of a scenario bound to a model, and what a motion shows of them."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from liedyn.errors import ScenarioError
from liedyn.integrators.touch import touch
from liedyn.io.contact_shapes import Contact, Material, Shape
from liedyn.kernels.simulation.contact import Contacts
from liedyn.model.description import Pose
from liedyn.model.spatial import pose
from liedyn.simulate.names import bind

_STANDARD = 9.81         # m/s^2: for the weight of a robot without gravity


@dataclass(frozen=True, eq=False)
class ContactMotion:
    """Of m contacts at N output times.

    names    link, and its corner and the plane where there are several
    force    (N, m) normal forces [N]
    depth    (N, m) [m], below zero where nothing touches
    slip     (N, m) [m/s] of the lowest point along the plane
    centre   (N, 3) centre of pressure of all of them, world; NaN where nothing touches
    """

    names: tuple[str, ...]
    force: np.ndarray
    depth: np.ndarray
    slip: np.ndarray
    centre: np.ndarray

    @property
    def columns(self) -> list[tuple[str, str, np.ndarray]]:
        """(name, unit, (N,) array); the centre is 0 where nothing touches: files hold finite numbers."""
        of_each = [(f"contact.{name}.{what}", unit, x[:, k]) for k, name in enumerate(self.names)
                   for what, unit, x in (("force", "N", self.force), ("depth", "m", self.depth), ("slip", "m/s", self.slip))]
        return of_each + [(f"cop.{axis}", "m", np.nan_to_num(self.centre[:, k])) for k, axis in enumerate("xyz")]


def bind_contacts(contact: Contact | None, model) -> tuple[Contacts | None, tuple[str, ...]]:
    """The contacts and their names. Raises ScenarioError for links that the model does not have or that are fixed to the world,
    and for a robot without weight whose stiffness is not given."""
    if contact is None:
        return None, ()
    rows, names, touching, weight = [], [], _touching(contact, model), _weight(model)
    share = weight / sum(shape.carrying for shapes in touching.values() for shape in shapes)
    for link, shapes in touching.items():
        corners = [(shape, at) for shape in shapes for at in _corners(shape)]
        for number, (shape, at) in enumerate(corners, 1):
            material = _material(contact, shape, share)
            for plane in contact.planes:
                normal = np.array(plane.normal) / math.hypot(*plane.normal)
                rows.append((link, at, shape.radius, normal, -normal @ plane.point, material))
                names.append(".".join([link, *([str(number)] if len(corners) > 1 else []),
                                       *([plane.name] if len(contact.planes) > 1 else [])]))
    return _arrays(rows, model, share), tuple(names)


def _touching(contact: Contact, model) -> dict[str, tuple[Shape, ...]]:
    """Shapes by link, in the order of the model's links."""
    out = {}
    for link, rule in bind(contact.links, model.link_names, "link").items():
        if model.link_body[model.link_index(link)]:
            out[link] = rule.value
        elif rule.pattern == link:
            raise ScenarioError(f"the link {link} is fixed to the world, and so are the planes", place=rule.place)
    if not out:
        raise ScenarioError("no moving link touches anything", place=contact.place)
    return out


def _corners(shape: Shape) -> np.ndarray:
    """(n, 3) in the link's frame."""
    return np.array(shape.corners) @ pose(Pose.from_xyz_rpy(rpy=shape.rpy))[:3, :3].T + shape.at


def _material(contact: Contact, shape: Shape, share: float) -> Material:
    """With its stiffness; `share` of the weight [N]."""
    given, own = dict(contact.material), dict(shape.material)
    if "sink" in own:
        given.pop("stiffness", None)
    material = Material(**given | own)
    if material.stiffness is not None:
        return material
    if not share > 0.0:
        raise ScenarioError("the robot has no moving mass, so that sink gives no stiffness", place=shape.place,
                            hint="give stiffness")
    return replace(material, stiffness=share / material.sink**material.exponent)


def _weight(model) -> float:
    moving = {name for name, body in zip(model.link_names, model.link_body, strict=True) if body}
    mass = math.fsum(link.mass for link in model.description.links if link.name in moving)
    return mass * (float(np.linalg.norm(model.gravity)) or _STANDARD)


def _arrays(rows, model, share: float) -> Contacts:
    link, centre, radius, normal, height, material = zip(*rows, strict=True)
    links = np.array([model.link_index(name) for name in link], dtype=np.int64)
    paths = [_path(model, int(model.link_body[k])) for k in links]
    return Contacts(
        links, np.zeros(len(links), dtype=np.int64), np.cumsum([0, *map(len, paths)]).astype(np.int64),
        np.concatenate(paths).astype(np.int64), np.array(centre, dtype=float).reshape(-1), np.array(radius, dtype=float),
        np.array(normal, dtype=float).reshape(-1), np.array(height, dtype=float),
        np.array([round(2 * m.exponent) for m in material], dtype=np.int64),
        np.array([(m.stiffness, m.damping, m.friction, m.creep) for m in material], dtype=float).reshape(-1),
        np.full(len(links), share))


def _path(model, body: int) -> list[int]:
    parent, path = model.index[8:8 + model.n_bodies], []
    while body > 0:
        path.append(body)
        body = int(parent[body])
    return path[::-1]


def contact_motion(problem, names, q, v) -> ContactMotion | None:
    """Along a motion q (N, nq), v (N, nv)."""
    if problem.contacts is None:
        return None
    found = touch(problem.model, problem.contacts, q, v)
    total = found.force.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (found.force[:, :, None] * found.point_world).sum(axis=1) / total
    return ContactMotion(names, found.force, found.depth, np.linalg.norm(found.slip, axis=2), centre)
