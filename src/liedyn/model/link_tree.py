"""The tree of links and joints of a description: its checks, its order, and its rigid bodies."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Array, ArrayLike, Base, Integers
from liedyn.errors import ModelError, Place, first_of, nearest
from liedyn.model.description import BALL, ONE_DOF, WORLD, Actuator, Coupling, Joint, Keyframe, Loop, Robot
from liedyn.model.element_values import element_location
from liedyn.model.force_element import ForceElement
from liedyn.model.links import Link
from liedyn.model.spatial import pose, symmetric_matrix, transform_inertia

Element = Link | Joint | Loop | Coupling | Actuator | Keyframe | ForceElement


@dataclass(frozen=True, slots=True)
class LinkTree:
    """Links and joints by name, and the joints ordered so that each parent link comes before its children."""

    links: dict[str, Link]
    joints: tuple[Joint, ...]            # depth first, document order
    parent_joint: dict[str, Joint]           # by child link
    root: str                            # the root link, or WORLD


def build_link_tree(robot: Robot) -> LinkTree:
    """Return the tree of a robot. Raise ModelError for duplicate names, unknown links, two parents, cycles, or no single root."""
    links = {link.name: link for link in robot.links}
    check_names(robot.links, "link")
    check_names(robot.joints, "joint")
    check_names(robot.actuators, "actuator")
    check_names(robot.elements, "element")
    if not links:
        raise ModelError("no links in this robot", place=Place(robot.source), expected="at least one link")
    parent_joint: dict[str, Joint] = {}
    for joint in robot.joints:
        _check_ends(joint, links)
        first = parent_joint.setdefault(joint.child, joint)
        if first is not joint:
            raise ModelError(f'link "{joint.child}" has two parents: it is also the child of joint "{first.name}"',
                             place=element_location(joint, "child"), hint=_first_line(first))
    root = _find_root(robot, links, parent_joint)
    joints = _order_joints(robot, root)
    if len(joints) < len(robot.joints):
        _raise_cycle(parent_joint, reached={joint.name for joint in joints})
    return LinkTree(links, joints, parent_joint, root)


def links_by_body(tree: LinkTree) -> dict[str, list[Link]]:
    """Return the links of each rigid body (links joined by fixed joints), by the name of its first link (WORLD: the ground)."""
    top = {tree.root: tree.root}
    bodies: dict[str, list[Link]] = {tree.root: [tree.links[tree.root]] if tree.root in tree.links else []}
    for joint in tree.joints:
        first = top[joint.parent] if joint.type == "fixed" else joint.child
        top[joint.child] = first
        bodies.setdefault(first, []).append(tree.links[joint.child])
    return bodies


def body_by_link(tree: LinkTree, base: Base) -> dict[str, str]:
    """Return the name of the first link of the rigid body of each link, and of that of the ground."""
    ground = WORLD if base == "floating" else tree.root
    return {WORLD: ground} | {link.name: first for first, links in links_by_body(tree).items() for link in links}


def _first_line(element: Element) -> str | None:
    return f"first on line {element.place.line}" if element.place.line is not None else None


def check_names(elements: Sequence[Element], kind: str) -> None:
    """Raise ModelError if a name is not printable or occurs twice."""
    first: dict[str, Element] = {}
    for element in elements:
        if not isinstance(element.name, str) or not element.name or not element.name.isprintable():
            article = "an" if kind[0] in "aeiou" else "a"
            raise ModelError(f"{article} {kind} needs a name of printable characters", place=element_location(element),
                             found=element.name)
        if element.name in first:
            raise ModelError(f'two {kind}s are called "{element.name}"', place=element_location(element),
                             hint=_first_line(first[element.name]))
        first[element.name] = element


def _check_ends(joint: Joint, links: dict[str, Link]) -> None:
    for part, name in (("parent", joint.parent), ("child", joint.child)):
        if name not in links and not (name == WORLD and part == "parent"):
            if name == WORLD:
                raise ModelError("the ground cannot be a child", place=element_location(joint, part),
                                 expected="a link of this robot")
            raise ModelError(f"the {part} is not a link of this robot", place=element_location(joint, part), found=name,
                             expected="a link's name", hint=nearest(name, links))
    if joint.parent == joint.child:
        raise ModelError("a link cannot be its own child", place=element_location(joint, "child"), found=joint.child)


def _find_root(robot: Robot, links: dict[str, Link], parent_joint: dict[str, Joint]) -> str:
    loose = [name for name in links if name not in parent_joint]
    grounded = WORLD not in links and any(joint.parent == WORLD for joint in robot.joints)
    if grounded and robot.base == "floating":
        joint = next(joint for joint in robot.joints if joint.parent == WORLD)
        raise ModelError("a floating base needs a root link, but this joint is attached to the "
                         "ground", place=element_location(joint, "parent"),
                         hint="use base: fixed, or remove the joint")
    if grounded and loose:
        raise ModelError("the link is not connected", place=element_location(links[loose[0]]),
                         expected="a joint with this link as child",
                         hint=f"join it to {WORLD} with a fixed joint")
    if len(loose) > 1:
        raise ModelError(f"not connected: {len(loose)} links are not the child of a joint",
                         place=element_location(links[loose[1]]),
                         found=loose, expected="one root link")
    if not grounded and not loose:
        _raise_cycle(parent_joint, reached=set())
    return WORLD if grounded else loose[0]


def _order_joints(robot: Robot, root: str) -> tuple[Joint, ...]:
    children: dict[str, list[Joint]] = {}
    for joint in robot.joints:
        children.setdefault(joint.parent, []).append(joint)
    ordered, waiting = [], children.get(root, [])[::-1]
    while waiting:
        joint = waiting.pop()
        ordered.append(joint)
        waiting += children.get(joint.child, [])[::-1]
    return tuple(ordered)


def _raise_cycle(parent_joint: dict[str, Joint], reached: set[str]) -> None:
    """Raise ModelError for a cycle: every link has a parent, and walking up from an unreachable link ends in the cycle."""
    link = next(joint for joint in parent_joint.values() if joint.name not in reached).child
    seen: dict[str, None] = {}
    while link not in seen:
        seen[link] = None
        link = parent_joint[link].parent
    names = list(seen)[list(seen).index(link):][::-1]
    inside = set(names)
    joint = next(joint for joint in parent_joint.values() if joint.child in inside)          # the first in the file
    start = names.index(joint.parent)
    names = [*names[start:], *names[:start], joint.parent]
    first, count = first_of(names, 20)
    more = f" -> … ({count} more)" if count else ""
    raise ModelError(f"the joints form a cycle: {' -> '.join(first)}{more}", place=element_location(joint),
                     expected="a tree")


# Mass, centre and inertia of links that are welded together -------------------------------------------------------------

@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A rigid body: `com` (3,) in the frame of its first link, `inertia` (3, 3) about the com along that link's axes."""

    mass: float
    com: Array
    inertia: Array


def principal_inertias(inertia: Array) -> Array:
    """Return the eigenvalues (3,) of an inertia matrix (3, 3), ascending."""
    return np.asarray(np.linalg.eigvalsh(inertia), dtype=float)


def merge_links(tree: LinkTree, first: str, links: list[Link]) -> Body:
    """Return the body of `links` (parents before children), which fixed joints join to the link `first`."""
    frames = {first: np.eye(4)}
    parts = []
    for link in links:
        if link.name != first:
            joint = tree.parent_joint[link.name]
            frames[link.name] = frames[joint.parent] @ pose(joint.origin)
        R, p = frames[link.name][:3, :3], frames[link.name][:3, 3]
        parts.append((link.mass, p + R @ np.array(link.com), R @ symmetric_matrix(link.inertia) @ R.T))
    return combine_bodies(parts)


def combine_bodies(parts: list[tuple[float, Array, Array]]) -> Body:
    """Return the body of parts (mass, com, (3, 3) inertia about the com), all in one frame."""
    mass = sum(m for m, _, _ in parts)
    com = sum((m * c for m, c, _ in parts), np.zeros(3)) / mass if mass > 0 else np.zeros(3)
    inertia = np.zeros((3, 3))
    for m, c, I in parts:                              # directly about the com, to avoid cancellation
        d = c - com
        inertia += I + m * (d @ d * np.eye(3) - np.outer(d, d))
    return Body(mass, com, inertia)


# Regrouped inertias: the part of a body's inertia that its joint cannot distinguish from the parent's is added to the parent

# Inertia that a joint does not accelerate relative to the parent, such as a mass on its axis of rotation, has the same effect on
# generalized forces if it is added to the parent. This leaves zeros: a revolute joint keeps 7 of 10 numbers, a prismatic one 4
# (Gautier and Khalil 1990; Khalil and Kleinfinger 1987). Generalized forces, accelerations and all derivatives are those of the
# robot; wrenches at joints, momenta and energies are not.

_ROUNDING = 1e-15         # of the maximum moment of a body: smaller ones are what the subtraction leaves


def reduced_inertias(parent: Sequence[int] | Integers, kind: Sequence[int] | Integers, S: ArrayLike, T0: Sequence[Array] | Array,
                     I: ArrayLike) -> Array:
    """Return the regrouped inertias (…, n, 10) of bodies with inertias I (…, n, 10), which are linear in I.

    The other arguments are as in `joints.joint_model`, with S (n, 2) and T0 (n, 4, 4).
    """
    screws, reduced = np.asarray(S, dtype=float), np.array(I, dtype=float)
    for i in range(len(screws) - 1, 0, -1):
        moved = _regrouped_inertia(kind[i], screws[i], reduced[..., i, :])
        if moved.any():
            reduced[..., i, :] -= moved
            reduced[..., parent[i], :] += transform_inertia(T0[i], moved)
    for moments in (reduced[..., 1:4], reduced[..., 4:]):
        moments[np.abs(moments) < _ROUNDING * np.abs(moments).max(axis=-1, keepdims=True)] = 0.0
    return reduced


def _regrouped_inertia(kind: int, S: Array, I: Array) -> Array:
    """Return the part of I (…, 10) that has no momentum in the motion of the joint and is the same in the parent everywhere."""
    out = np.zeros(I.shape)
    turns, slides = kind == ONE_DOF and S[0] != 0.0, kind == ONE_DOF and S[1] != 0.0
    if kind == BALL or (turns and not slides):
        out[..., 0] = I[..., 0]
    if turns:
        out[..., 4] = out[..., 7] = I[..., 7]
    if turns and not slides:
        out[..., 3] = I[..., 3]
    if slides and not turns:
        out[..., 4:] = I[..., 4:]
    return out
