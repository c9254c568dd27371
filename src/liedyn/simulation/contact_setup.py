"""Contacts of a scenario (`contacts`), bound to a model, and their forces, depths and slips in a motion."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, takewhile
from typing import NamedTuple, TypeAlias

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers
from liedyn.dynamics.variants import Variants
from liedyn.errors import LiedynWarning, Place, ScenarioError, list_names, summarized
from liedyn.immutable import Immutable
from liedyn.integrators.contact_forces import contact_forces
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.scenario import Contact, Event, Expression, Material, Pair, Shape, TouchEvent
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.simulation.contact import (
    FRICTION,
    GROUND,
    MATERIAL_SIZE,
    PLANE,
    SPHERE,
    STATIC_FRICTION,
    STICK_DAMPING,
    STICK_STIFFNESS,
    STIFFNESS,
    Contacts,
)
from liedyn.model.links import Pose
from liedyn.model.model import Model
from liedyn.model.name_patterns import matching_names
from liedyn.model.spatial import pose
from liedyn.simulation.name_binding import (
    bind_rules,
    body_path,
    concatenate_paths,
    find_index,
    select,
    unknown_name_error,
)

_STANDARD_GRAVITY = 9.81         # m/s^2: for the weight of a robot without gravity
_MAX_START_FORCE = 30.0          # of the weight: a larger contact force at the start causes a warning


@summarized
@dataclass(frozen=True, eq=False)
class ContactMotion(Immutable):
    """Motion of m contacts at N output times.

    names            link, with its corner and the plane where there are several; of a pair both links, with their corners
    force            (N, m) normal forces [N]
    depth            (N, m) [m], negative without contact
    slip             (N, m) speed of the contact point along the plane [m/s]
    centre           (N, 3) centre of pressure on all planes of the world, in world axes; NaN without contact
    tangential       (N, m) friction [N]
    friction         (m,) coefficients of friction, at rest of contacts that stick
    """

    names: tuple[str, ...]
    force: Array
    depth: Array
    slip: Array
    centre: Array
    tangential: Array
    friction: Array

    @property
    def utilization(self) -> Array:
        """Return the (N, m) tangential force relative to the maximum friction, from 0 to 1; 0 without contact."""
        available = self.friction * self.force
        used = np.divide(self.tangential, available, out=np.zeros_like(available), where=available > 0.0)
        return used + 0.0 * self.force                         # NaN stays

    @property
    def columns(self) -> list[tuple[str, str, Array]]:
        """Return (name, unit, (N,) array) of each column. The centre is 0 without contact: files contain finite numbers."""
        quantities = (("force", "N", self.force), ("depth", "m", self.depth), ("slip", "m/s", self.slip),
                      ("tangential", "N", self.tangential), ("utilization", "", self.utilization))
        of_each = [(f"contact.{name}.{quantity}", unit, x[:, k]) for k, name in enumerate(self.names)
                   for quantity, unit, x in quantities]
        return of_each + [(f"cop.{axis}", "m", np.nan_to_num(self.centre[:, k])) for k, axis in enumerate("xyz")]


def bind_contacts(contact: Contact | None, model: Model, events: Sequence[Event] = ()) -> tuple[Contacts | None, tuple[str, ...]]:
    """Return the contacts, including those that events detect, and their names.

    Raises ScenarioError
    - for links that do not exist, have no shape, or cannot move relative to the other one,
    - for a robot without weight if its stiffness is not given,
    - for events that detect no contact.
    """
    waiting = [(event, event.when, event.touch) for event in events if event.when and event.touch]
    if contact is None:
        if waiting:
            event, expression, _ = waiting[0]
            raise ScenarioError(f"event {event.name}: the scenario has no contacts", place=expression.place,
                                found=expression.text, expected="the key contacts")
        return None, ()
    rows, load = _contact_rows(contact, model)
    group, member = concatenate_paths([_event_contacts(*each, rows, model) for each in waiting])
    return _contact_arrays(rows, model, load)._replace(group=group, member=member), tuple(row.name for row in rows)


_Sphere: TypeAlias = tuple[Shape, Array]        # a corner of a shape and its centre in the frame of the link


class _Row(NamedTuple):
    """A sphere of `link`, and the plane or sphere of the link `other` or of the world that it can touch: `other_name`."""

    name: str
    link: str
    centre: Array
    radius: float
    kind: int
    other: str
    other_name: str
    normal: Array
    height: float
    material: Material
    scales_with_weight: bool


def _contact_rows(contact: Contact, model: Model) -> tuple[list[_Row], float]:
    touching, weight = _contact_shapes(contact, model), robot_weight(model, model.constants)
    load = weight / sum(shape.carrying for shapes in touching.values() for shape in shapes)
    parts = {link: [(shape, at) for shape in shapes for at in _corners(shape)] for link, shapes in touching.items()}
    rows = _plane_contacts(contact, model, parts, load)
    for pair in contact.pairs:
        rows += _pair_contacts(contact, model, pair, parts, load, {(row.link, row.other) for row in rows if row.kind == SPHERE})
    if not rows:
        raise ScenarioError("no moving link has a contact shape", place=contact.place)
    return rows, load


def _event_contacts(event: Event, expression: Expression, touch: TouchEvent, rows: list[_Row], model: Model) -> list[int]:
    """Return the indices of the contacts that an event detects, whose expression is `touch` as text."""
    place = expression.place
    links = matching_names(touch.link, model.link_names)
    if not links and touch.link in [row.other_name for row in rows]:
        raise ScenarioError(f"{touch.link} is a plane", place=place, found=expression.text,
                            expected=f"touch({touch.other or 'link'}, {touch.link})")
    if not links:
        raise unknown_name_error(touch.link, model.link_names, "link", place)
    contacts = [k for k, row in enumerate(rows) if row.link in links or (row.kind != GROUND and row.other in links)]
    if touch.other is not None:
        other_links, planes = {touch.other, *matching_names(touch.other, model.link_names)}, [row.other_name for row in rows]
        if len(other_links) == 1 and touch.other not in (*planes, *model.link_names):
            raise unknown_name_error(touch.other, list(dict.fromkeys((*planes, *model.link_names))), "plane or link", place)
        sides = ((k, {rows[k].other_name, *([rows[k].link] if rows[k].other in links else [])}) for k in contacts)
        contacts = [k for k, names in sides if other_links & names]
    if not contacts:
        touching = list(dict.fromkeys(x for row in rows for x in (row.link, row.other)))
        names = " and ".join(touching) if len(touching) < 3 else list_names(touching, 8)
        raise ScenarioError(f"event {event.name}: {expression.text} is not among the contacts", place=place,
                            expected=f"one of {names}")
    return contacts


def _plane_contacts(contact: Contact, model: Model, parts: Mapping[str, list[_Sphere]], load: float) -> list[_Row]:
    """Return the contacts of spheres and points with planes."""
    rows = []
    for link, corners in parts.items():
        for number, (shape, at) in enumerate(corners, 1):
            for plane in contact.planes:
                if plane.link:
                    find_index(plane.link, model.link_names, "link", plane.place.at("link"))
                if _body_index(model, link) == (_body_index(model, plane.link) if plane.link else 0):
                    continue
                normal = np.array(plane.normal) / math.hypot(*plane.normal)
                name = [link, *([str(number)] if len(corners) > 1 else []), *([plane.name] if len(contact.planes) > 1 else [])]
                rows.append(_Row(".".join(name), link, at, shape.radius, PLANE if plane.link else GROUND, plane.link or link,
                                 plane.name, normal, float(-normal @ plane.point), *_material(contact, load, shape)))
    return rows


def _pair_contacts(contact: Contact, model: Model, pair: Pair, parts: Mapping[str, list[_Sphere]], load: float,
                   known: set[tuple[str, str]]) -> list[_Row]:
    """Return the contacts of spheres and points of one link with spheres of the other."""
    rows = []
    if pair.links[0] == pair.links[1] and pair.links[0] in model.link_names:
        raise ScenarioError(f"the link {pair.links[0]} cannot touch itself", place=pair.place, expected="two links")
    for a, b in product(*(_links_with_shapes(name, model, parts, pair.place) for name in pair.links)):
        if _body_index(model, a) == _body_index(model, b) or {(a, b), (b, a)} & known:
            continue
        known = known | {(a, b)}
        for (n, (shape, centre)), (m, (other, other_centre)) in product(enumerate(parts[a], 1), enumerate(parts[b], 1)):
            if shape.radius + other.radius > 0.0:
                name = [a, *([str(n)] if len(parts[a]) > 1 else []), b, *([str(m)] if len(parts[b]) > 1 else [])]
                rows.append(_Row(".".join(name), a, centre, shape.radius, SPHERE, b, b, other_centre, other.radius,
                                 *_material(contact, load, other, shape)))
    if not rows:
        raise ScenarioError(f"{pair.links[0]} and {pair.links[1]} cannot touch each other", place=pair.place,
                            hint="contacts exist of spheres and ends of capsules with each other, with points and with box "
                                 "corners; the links must be able to move relative to each other, and each pair may appear only "
                                 "once")
    return rows


def _links_with_shapes(name: str, model: Model, parts: Mapping[str, list[_Sphere]], place: Place) -> list[str]:
    links = [model.link_names[k] for k in select(name, model.link_names, "link",
                                                 lambda pattern: unknown_name_error(pattern, model.link_names, "link", place))]
    with_shape = [link for link in links if link in parts]
    if not with_shape:
        raise ScenarioError(f"the link {name} of a pair has no shape", place=place, expected="a shape of it in contacts.links")
    return with_shape


def _contact_shapes(contact: Contact, model: Model) -> dict[str, tuple[Shape, ...]]:
    """Return the shapes by link, in the order of the model's links.

    Shapes fixed to the world can only touch bodies that move relative to it.
    """
    out: dict[str, tuple[Shape, ...]] = {}
    paired = {link for pair in contact.pairs for name in pair.links for link in matching_names(name, model.link_names)}
    for link, rule in bind_rules(contact.links, model.link_names, "link").items():
        if _body_index(model, link) or link in paired or any(plane.link for plane in contact.planes):
            assert isinstance(rule.value, tuple)
            out[link] = tuple(shape for shape in rule.value if isinstance(shape, Shape))
        elif rule.pattern == link:
            raise ScenarioError(f"the link {link} is fixed to the world, and so are the planes", place=rule.place)
    if not out:
        raise ScenarioError("no moving link has a contact shape", place=contact.place)
    return out


def _body_index(model: Model, link: str) -> int:
    return int(model.link_body[model.link_index(link)])


def _corners(shape: Shape) -> Array:
    """Return the (n, 3) corners in the frame of the link."""
    return np.array(shape.corners) @ pose(Pose.from_xyz_rpy(rpy=shape.rpy))[:3, :3].T + shape.at


def _material(contact: Contact, load: float, *shapes: Shape) -> tuple[Material, bool]:
    """Return the material with its stiffness, and whether the stiffness is derived from the weight. Later shapes take precedence.

    load   load of a contact [N]
    """
    parameters = dict(contact.material)
    for shape in shapes:
        changes = dict(shape.material)
        if "sink" in changes:
            parameters.pop("stiffness", None)
        parameters |= changes
    material = Material(**parameters)
    _check_sticking(material, load, shapes[-1].place)
    if material.stiffness is not None:
        return material, False
    if not load > 0.0:
        raise ScenarioError("the robot has no moving mass, so sink does not give a stiffness", place=shapes[-1].place,
                            hint="give stiffness")
    return replace(material, stiffness=load / material.sink**material.exponent), True


def _check_sticking(material: Material, load: float, place: Place) -> None:
    if material.stick is None:
        if material.static_friction is not None:
            raise ScenarioError("static_friction requires stick", place=place, expected="the key stick, such as stick: 1e-5")
        return
    if not load > 0.0:
        raise ScenarioError("the robot has no moving mass, so stick does not give a stiffness", place=place,
                            expected="contacts without stick")
    if not material.friction > 0.0:
        raise ScenarioError("a contact without friction cannot stick", place=place, found=f"friction: {material.friction:g}",
                            expected="friction > 0")
    if material.static_friction is not None and material.static_friction < material.friction:
        raise ScenarioError("static_friction is below friction", place=place, found=material.static_friction,
                            expected=f"at least {material.friction:g}")


def _material_parameters(material: Material, load: float) -> tuple[float, ...]:
    """Return the numbers of `Contacts.material`. A contact that sticks has critical damping with its share of the mass."""
    static = material.friction if material.static_friction is None else material.static_friction
    stiffness = 0.0 if material.stick is None else material.friction * load / material.stick
    assert material.stiffness is not None
    return (material.stiffness, material.damping, material.friction, material.friction_speed, material.smooth or 1.0, static,
            stiffness, 2.0 * math.sqrt(stiffness * load / _STANDARD_GRAVITY))


def robot_weight(model: Model, constants: Array) -> float:
    """Return the weight [N] of the moving bodies of a robot with the structure of `model` and the given constants."""
    tree = tree_views.py_func(model.index, constants)
    return _weight(tree.I[10::10], tree.dV0[3:])


def robot_weights(variants: Variants) -> Array:
    """Return the weight [N] of the moving bodies of each robot (N,)."""
    index = tree_views.py_func(variants.model.index, np.arange(variants.model.constants.size))
    masses, gravity = variants.constants_at(index.I[10::10]), variants.constants_at(index.dV0[3:])
    return np.array([_weight(*robot) for robot in zip(masses, gravity, strict=True)])


def _weight(masses: Array, gravity: Array) -> float:
    return math.fsum(masses) * (float(np.linalg.norm(gravity)) or _STANDARD_GRAVITY)


def weight_gradient(model: Model) -> Array:
    """Return the derivative of `robot_weight` with respect to the constants of the model, including a gravity other than zero."""
    gradient = np.zeros(model.constants.size)
    tree, rates = (tree_views.py_func(model.index, x) for x in (model.constants, gradient))
    g = float(np.linalg.norm(tree.dV0[3:]))
    rates.I[10::10] = g or _STANDARD_GRAVITY
    rates.dV0[3:] = math.fsum(tree.I[10::10]) * tree.dV0[3:] / (g or 1.0)
    return gradient


def scale_with_weight(contacts: Contacts, ratio: float) -> Contacts:
    """Return the contacts for a weight multiplied by `ratio`: stiffness and damping derived from it are multiplied, too."""
    return contacts._replace(material=contacts.material * material_scale(contacts, ratio),
                             weight_share=contacts.weight_share * ratio)


def material_scale(contacts: Contacts, ratio: ArrayLike) -> Array:
    """Return the (..., MATERIAL_SIZE m) factors of the material parameters for weights multiplied by ratio (...)."""
    scale = np.ones((*np.shape(ratio), len(contacts.link), MATERIAL_SIZE))
    for k in (STIFFNESS, STICK_STIFFNESS, STICK_DAMPING):
        scale[..., k] = np.where(contacts.scales_with_weight, np.asarray(ratio)[..., None], 1.0)
    return scale.reshape(*np.shape(ratio), MATERIAL_SIZE * len(contacts.link))


def _contact_arrays(rows: Sequence[_Row], model: Model, load: float) -> Contacts:
    _, link, centre, radius, kind, other, _, normal, height, materials, scales_with_weight = zip(*rows, strict=True)
    links, other_links = (np.array([model.link_index(name) for name in names], dtype=np.int64) for names in (link, other))
    paths = [_paths(model, a, b, k) for a, b, k in zip(links, other_links, kind, strict=True)]
    (first, path), (other_first, other_path) = (concatenate_paths(side) for side in zip(*paths, strict=True))
    m, no_event = len(links), np.zeros(0, dtype=np.int64)
    sticks = np.array([material.stick is not None for material in materials])
    return Contacts(
        links, np.zeros(m, dtype=np.int64), first, path, np.concatenate(centre), np.array(radius, dtype=float),
        np.array(kind, dtype=np.int64), other_links, np.zeros(m, dtype=np.int64), other_first, other_path, np.concatenate(normal),
        np.array(height, dtype=float),
        np.array([round(2 * material.exponent) for material in materials], dtype=np.int64),
        np.array([material.smooth is not None for material in materials]),
        np.array([_material_parameters(material, load) for material in materials], dtype=float).reshape(-1),
        np.where(sticks, 3 * np.cumsum(sticks) - 3, -1).astype(np.int64),
        np.full(m, load), np.array(scales_with_weight), no_event, np.zeros(1, dtype=np.int64), no_event.copy(), np.zeros(m))


def _paths(model: Model, a: int, b: int, kind: int) -> tuple[list[int], list[int]]:
    """Return the bodies from the ground to link a, or those to links a and b after their last common body."""
    on_a, on_b = (body_path(model, k) for k in (a, b))
    if kind == GROUND:
        return on_a, []
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(on_a, on_b, strict=False)))
    return on_a[common:], on_b[common:]


def deep_contact_warnings(problem: InitialValueProblem, names: Sequence[str]) -> list[LiedynWarning]:
    """Return a warning about the contact with the maximum force at the start, if that would throw the robot."""
    if problem.contacts is None:
        return []
    at = contact_forces(problem.model, problem.contacts, problem.q[None], problem.v[None])
    weight = robot_weight(problem.model, problem.model.constants)
    k = int(np.argmax(at.force[0]))
    if not (weight > 0.0 and at.force[0, k] > _MAX_START_FORCE * weight):
        return []
    return [LiedynWarning("deep-contact",
                          f"the contact of {names[k]} starts with a penetration of {at.depth[0, k]:.3g} m and a force of "
                          f"{at.force[0, k] / weight:.3g} times the weight of the robot: start higher (initial.q), or increase "
                          "contacts.sink")]


def place_stretches(contacts: Contacts, nv: int, integral: Integers) -> tuple[Contacts, Integers]:
    """Return the contacts with the places of their stretches, and the states of laws: integrals of pid laws, then stretches."""
    sticks = contacts.stretch >= 0
    stretches = nv + np.arange(3 * np.count_nonzero(sticks))
    return (contacts._replace(stretch=np.where(sticks, contacts.stretch + len(integral), -1)),
            np.concatenate([integral, stretches]))


def contact_motion(problem: InitialValueProblem, names: tuple[str, ...], q: Array, v: Array,
                   stretch: Array | None = None) -> ContactMotion | None:
    """Return the contacts in a motion q (N, nq), v (N, nv), with the stretches (N, 3s) of those that stick; None: zero."""
    if problem.contacts is None:
        return None
    forces = contact_forces(problem.model, problem.contacts, q, v, stretch)
    force = np.where(problem.contacts.kind == GROUND, forces.force, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (force[:, :, None] * forces.ground_point).sum(axis=1) / force.sum(axis=1, keepdims=True)
    return ContactMotion(names, forces.force, forces.depth, np.linalg.norm(forces.slip, axis=2), centre,
                         forces.tangential, friction_coefficients(problem.contacts))


def friction_coefficients(contacts: Contacts) -> Array:
    """Return the (m,) coefficients of friction at rest."""
    material = contacts.material.reshape(-1, MATERIAL_SIZE)
    return np.asarray(np.maximum(material[:, FRICTION], material[:, STATIC_FRICTION]))
