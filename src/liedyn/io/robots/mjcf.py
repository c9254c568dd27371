"""MuJoCo's XML format (MJCF) -> Robot."""
from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.errors import LiedynWarning, ModelError, Place, nearest
from liedyn.io.robots.mjcf_bodies import BodyTree, read_bodies
from liedyn.io.robots.mjcf_expansion import expand
from liedyn.io.robots.mjcf_geometry import (
    ACTUATORS,
    Defaults,
    LeftOut,
    compiler_of,
    quaternion_rotation,
    read_compiler,
    read_option,
    rotate,
    shape_of,
)
from liedyn.io.robots.mjcf_keyframes import read_keyframes
from liedyn.io.robots.mjcf_materials import read_materials
from liedyn.io.robots.xml_elements import XmlElement, read_mjcf_tree
from liedyn.model.description import WORLD, Actuator, Coordinate, Coupling, Loop, Robot
from liedyn.model.force_element import ForceElement
from liedyn.model.links import LinkMesh, LinkVisuals, Pose, Shape, vector
from liedyn.model.spatial import inverse, pose

# actuators --------------------------------------------------------------------------------------------------------------

# Actuators of MJCF: the maximum force of joints, rotor inertias and damping, thrusters at sites, fixed tendons. Gains and
# dynamics are not read.

_PARALLEL = 1e-9                     # of the torque of a thruster: what of it is across its force


def read_actuators(root: XmlElement, tree: BodyTree,
                   couplings: Sequence[Coupling]) -> tuple[tuple[Actuator, ...], tuple[str, ...]]:
    """Return thrusters and tendons, and the driven joints. Write force limits, armature and damping to the joints of `tree`."""
    efforts: dict[str, list[tuple[float, float]]] = {}
    thrusters: list[Actuator] = []
    tendons, driven = dict(_fixed_tendons(root, tree)), list[str]()
    for child in root.within("actuator"):
        element = tree.defaults.of(child, kind="actuator")
        if (name := element.text("joint")) is not None:
            _of_joint(element, name, efforts, tree)
            driven += [name] if name in tree.ref else []
        elif terms := tendons.get(element.text("tendon", ""), ({}, 0.0))[0]:
            _check_not_passive(element)
            if driver := _driver_of_tendon(terms, couplings):
                _add_forces(element, *driver, efforts, tree)
                driven.append(driver[0])
            else:
                thrusters += _tendon(element, terms, tree)
        else:
            _check_not_passive(element)
            thrusters += _thruster(element, tree)
    for k, joint in enumerate(tree.joints):
        min_force, max_force = tree.force_ranges.get(joint.name, (-math.inf, math.inf))
        if joint.name in efforts:
            lower, upper = (math.fsum(side) for side in zip(*efforts[joint.name], strict=True))
            min_force, max_force = min(max(lower, min_force), max_force), min(max(upper, min_force), max_force)
            coordinate, = joint.coordinates
            tree.joints[k] = replace(joint, coordinates=(replace(coordinate, effort=max(abs(min_force), abs(max_force))),))
        if min_force != -max_force:
            tree.count("the smaller force limit of the two directions")
    return tuple(_with_unique_names(thrusters)), tuple(dict.fromkeys(driven))


def _with_unique_names(actuators: Iterable[Actuator]) -> Iterator[Actuator]:
    """Yield the actuators. Those without a name in the file have that of their site or tendon, on which others may act, too."""
    names = set[str]()
    for actuator in actuators:
        name = actuator.name
        while name in names:
            name += "_"
        names.add(name)
        yield replace(actuator, name=name)


def _driver_of_tendon(terms: Terms, couplings: Sequence[Coupling]) -> tuple[str, float] | None:
    """Return the joint that moves a fixed tendon, and the force on it by a tension of 1 N; None if several joints move it.

    Joints that are coupled to one joint move with it: the forces of the tendon on them act on that one by their ratios.
    """
    relations: dict[str, tuple[str, float]] = {}
    for coupling in couplings:
        if len(coupling.terms) == 2 and coupling.function is None:                   # q1 = a0 + a1 q2
            (follower, _, factor), (leader, _, other) = coupling.terms
            relations[follower] = leader, -other / factor
    forces = dict(terms)
    for _ in relations:                                                             # followers of followers
        for follower, (leader, ratio) in relations.items():
            if follower in forces:
                forces[leader] = forces.get(leader, 0.0) + ratio * forces.pop(follower)
    drivers = [(joint, force) for joint, force in forces.items() if force]
    return drivers[0] if len(drivers) == 1 else None


def _of_joint(element: XmlElement, joint: str, efforts: dict[str, list[tuple[float, float]]], tree: BodyTree) -> None:
    if joint not in tree.joint_names:
        raise element.problem("unknown joint", "joint", found=joint, expected="a joint's name", hint=nearest(joint, tree.ref))
    if joint not in tree.ref:                            # ball and free
        _check_not_passive(element)
        tree.count("actuators of ball and free joints")
        return
    gear = _add_forces(element, joint, 1.0, efforts, tree)
    additions = {"armature": element.number("armature", 0.0), "damping": tree.option.dampers * element.constant("damping")}
    if any(additions.values()):
        k = next(k for k, candidate in enumerate(tree.joints) if candidate.name == joint)
        old: Coordinate = tree.joints[k].coordinates[0]
        added = {key: getattr(old, key) + gear * gear * value for key, value in additions.items()}
        tree.joints[k] = replace(tree.joints[k], coordinates=(replace(old, **added),))


def _add_forces(element: XmlElement, joint: str, ratio: float, efforts: dict[str, list[tuple[float, float]]],
                tree: BodyTree) -> float:
    """Add the force limits of an actuator to those of a joint. Return its gear. ratio: force on the joint by a unit force."""
    gear = element.vector("gear", (1.0,) + (0.0,) * 5, minimum=1)[0]
    factor = ratio * gear
    min_force, max_force = (factor * force if factor else 0.0 for force in _force_range(element, tree))
    efforts.setdefault(joint, []).append((min(min_force, max_force), max(min_force, max_force)))
    if element.tag != "motor":
        tree.count("actuators with gains")
    return gear


def _force_range(element: XmlElement, tree: BodyTree) -> tuple[float, float]:
    """Return the force range before the gear. The force of a motor is its control, which is limited first."""
    min_force, max_force = -math.inf, math.inf
    for key in ("ctrl", "force") if element.tag == "motor" else ("force",):
        low, high = element.vector(f"{key}range", (0.0, 0.0))
        setting = element.choice(f"{key}limited", ("true", "false", "auto"), "auto")
        if setting == "true" or (setting == "auto" and low < high and compiler_of(element, tree.compiler).autolimits):
            min_force, max_force = min(max(min_force, low), high), min(max(max_force, low), high)
    return min_force, max_force


def _check_not_passive(element: XmlElement) -> None:
    for key in ("armature", "damping"):
        element.refuse(key, f"{key} of an actuator that does not act on a hinge or slide joint is not supported")


def _tendon(element: XmlElement, terms: Terms, tree: BodyTree) -> Iterator[Actuator]:
    """Yield the actuator of a fixed tendon over several joints. Its command is the force before the gear."""
    gear = element.vector("gear", (1.0,) + (0.0,) * 5, minimum=1)[0]
    if element.tag != "motor":
        tree.count("actuators with gains")
    joints = {joint: gear * factor for joint, factor in terms.items() if gear * factor}
    if joints:
        yield Actuator(element.name or element.require("tendon"), limits=_thrust_limits(element, 1.0, "tendons", tree),
                       joints=joints, place=element.place())


def _thrust_limits(element: XmlElement, size: float, kind: str, tree: BodyTree) -> tuple[float, float] | None:
    """Return the limits of a thrust, `size` times the force; None if there are none on one side."""
    low, high = (size * x for x in _force_range(element, tree))
    limits = (low, high) if math.isfinite(low) and math.isfinite(high) and low < high else None
    if limits is None and (math.isfinite(low) or math.isfinite(high)):
        tree.count(f"limits of {kind}")
    return limits


def _thruster(element: XmlElement, tree: BodyTree) -> Iterator[Actuator]:
    """Yield the actuator of a motor at a site, whose force and torque have one axis. Its command is the thrust."""
    if element.tag != "motor" or "site" not in element.attributes or "refsite" in element.attributes:
        tree.count(f"actuators of type {element.tag}" if element.tag in ACTUATORS else "actuators")
        return
    name = element.name_of("site", tree.site, "unknown site", "a site's name")
    gear = element.vector("gear", (1.0,) + (0.0,) * 5, minimum=1)
    force, torque, size = gear[:3], gear[3:], math.hypot(*gear[:3])
    if size == 0 or math.hypot(*np.cross(force, torque)) > _PARALLEL * size * math.hypot(*torque):
        tree.count("actuators whose force and torque have other axes")
        return
    limits = _thrust_limits(element, size, "motors at sites", tree)
    link, frame = tree.site[name]
    axis = vector(x / size for x in rotate(frame, force))
    along = sum(a * b for a, b in zip(force, torque, strict=True)) / (size * size)
    yield Actuator(element.name or name, link, frame.translation, axis, along, limits, place=element.place())


# Equality constraints of MJCF as closures and couplings. MuJoCo's are soft; ours hold exactly ---------------------------

_ZERO = (0.0, 0.0, 0.0)
_LINEAR = (0.0, 1.0, 0.0, 0.0, 0.0)
Terms = dict[str, float]


def read_equality(root: XmlElement, tree: BodyTree) -> tuple[tuple[Loop, ...], tuple[Coupling, ...]]:
    """Return the closures of <connect> and <weld>, and the couplings of <joint> and <tendon>. Inactive ones are counted."""
    loops: list[Loop] = []
    couplings: list[Coupling] = []
    taken: set[str] = set()
    tendons = dict(_fixed_tendons(root, tree))
    for k, child in enumerate(root.within("equality")):
        element = tree.defaults.of(child, kind="equality")
        if not tree.option.equality or not element.switch("active", True):
            tree.count("constraints that are not active")
            continue
        name = element.name or f"equality{k + 1}"
        if name in taken:
            raise element.problem("another constraint has the same name", "name", found=name)
        taken.add(name)
        if element.tag in ("connect", "weld"):
            loops.append(_loop(element, name, tree))
        elif element.tag == "joint":
            couplings += _coupling(element, name, "joint", {joint: ({joint: 1.0}, ref) for joint, ref in tree.ref.items()}, tree)
        elif element.tag == "tendon":
            couplings += _coupling(element, name, "tendon", tendons, tree)
        else:
            raise element.problem(f"a constraint of type {element.tag} is not supported",
                                  expected="connect, weld, joint or tendon")
    return tuple(loops), tuple(couplings)


def _loop(element: XmlElement, name: str, tree: BodyTree) -> Loop:
    weld = element.tag == "weld"
    if "site1" in element.attributes or "site2" in element.attributes:
        (a, pose_a), (b, pose_b) = (_site(element, key, tree) for key in ("site1", "site2"))
    else:
        a, b = _body(element, "body1", tree), _body(element, "body2", tree)
        anchor = Pose(translation=element.vector("anchor", _ZERO))
        relative = inverse(pose(tree.at_start[a])) @ pose(tree.at_start[b])          # of b in a, at the start
        if not weld:
            if "anchor" not in element.attributes:
                raise element.problem("the attribute anchor is missing", "anchor", expected="3 numbers")
            pose_a, pose_b = anchor, Pose.from_matrix(inverse(relative) @ pose(anchor))
        else:
            relpose = element.vector("relpose", (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            pose_b = anchor
            pose_a = Pose.from_matrix(relative @ pose(anchor))
            if any(relpose[3:]):
                pose_a = Pose(quaternion_rotation(relpose[3:], element, "relpose"), relpose[:3])
    if not weld:
        pose_a, pose_b = Pose(translation=pose_a.translation), Pose(translation=pose_b.translation)
    return Loop(name, "weld" if weld else "ball", a, b, pose_a, pose_b, place=element.place())


def _body(element: XmlElement, key: str, tree: BodyTree) -> str:
    name = element.text(key, WORLD) if key == "body2" else element.require(key)
    if name not in tree.at_start or (name != WORLD and tree.names[name].tag != "body"):
        raise element.problem("unknown body", key, found=name, expected="a body's name", hint=nearest(name, tree.at_start))
    return name


def _site(element: XmlElement, key: str, tree: BodyTree) -> tuple[str, Pose]:
    return tree.site[element.name_of(key, tree.site, "unknown site", "a site's name")]


def _coupling(element: XmlElement, name: str, prefix: str, known: dict[str, tuple[Terms, float]],
              tree: BodyTree) -> Iterator[Coupling]:
    """Yield y1 - y1(start) = a0 + a1 (y2 - y2(start)), with coordinates of joints or lengths of tendons y."""
    a0, a1, *higher = element.vector("polycoef", _LINEAR, minimum=1)
    second = f"{prefix}2" in element.attributes
    if second and any(higher):
        tree.left_out.add("couplings", element, "a constraint that is not linear is not supported", "polycoef", "a0 a1 0 0 0")
        return
    first, start = _of(element, f"{prefix}1", known)
    terms, offset = dict(first), a0 + start
    if second:
        other_terms, start = _of(element, f"{prefix}2", known)
        for joint, factor in other_terms.items():
            terms[joint] = terms.get(joint, 0.0) - a1 * factor
        offset -= a1 * start
    yield Coupling(name, tuple((joint, "", factor) for joint, factor in terms.items()), offset, place=element.place())


def _of(element: XmlElement, key: str, known: dict[str, tuple[Terms, float]]) -> tuple[Terms, float]:
    expected = "a hinge or slide joint" if key.startswith("joint") else "a fixed tendon"
    return known[element.name_of(key, known, "no joint of that name can be coupled", expected)]


def _fixed_tendons(root: XmlElement, tree: BodyTree) -> Iterator[tuple[str, tuple[Terms, float]]]:
    """Yield each fixed tendon: its name, the terms of its length, and its length at the start."""
    for element in (child for section in root.every("tendon") for child in section.every("fixed")):
        terms: Terms = {}
        for part in element.every("joint"):
            joint = part.name_of("joint", tree.ref, "a tendon requires joints with one coordinate", "a hinge or slide joint")
            terms[joint] = terms.get(joint, 0.0) + part.number("coef", 0.0)
        if element.name:
            yield element.name, (terms, sum(factor * tree.ref[joint] for joint, factor in terms.items()))


# read -------------------------------------------------------------------------------------------------------------------

# MJCF -> Robot: the kinematic tree with its inertias, joints and equality constraints; limits of forces and thrusters from
# actuators. Omitted parts cause a warning, or an error if they change the dynamics.

_SECTIONS = ("compiler", "option", "size", "statistic", "visual", "default", "extension", "custom", "asset", "worldbody",
             "contact", "tendon", "equality", "actuator", "sensor", "keyframe", "deformable")
_SHOWN = 2                           # the last group of geoms that the viewer shows
_LIMITS = ("limits of ball joints", "limits of motors at sites", "limits of tendons",
           "the smaller force limit of the two directions")
_NO_FORCE = ("stiffness", "damping", "frictionloss", "armature", "springyield")      # of a tendon


def read_mjcf(path: str | os.PathLike[str], ignore: Iterable[str] = ()) -> Robot:
    """Return the robot of an MJCF file, with the warnings of reading it. It is not validated.

    ignore  names of parts that are left out with a warning, from `IGNORABLE`; other parts that change the motion are errors

    Raises ModelError with file, line and element for a file that is not XML, a DOCTYPE, an included file that is missing, wrong
    attributes, parts that change the motion and are not computed, and an unknown name in `ignore`.
    """
    left_out = LeftOut(ignore)
    root = read_mjcf_tree(path)
    _check_sections(root, left_out)
    expansion, defaults = expand(root), Defaults(root)
    defaults.classes |= expansion.classes
    tree = read_bodies(root, read_compiler(root), read_option(root, left_out), defaults, left_out)
    tree.counts |= expansion.counts
    loops, couplings = read_equality(root, tree)
    actuators, actuated = read_actuators(root, tree, couplings)
    elements = tuple(_read_tendons(root, tree))
    keyframes = tuple(read_keyframes(root, tree))
    for _ in root.within("sensor"):
        tree.count("sensors")
    left_out.check()
    return Robot(root.text("model") or Path(os.fspath(path)).stem, tuple(tree.links), tuple(tree.joints),
                 gravity=tree.option.gravity, actuators=actuators, loops=loops, couplings=couplings, actuated=actuated,
                 keyframes=keyframes, warnings=_warnings(root, tree), source=os.fspath(path), visuals=_visuals(root, tree),
                 elements=elements)


def _visuals(root: XmlElement, tree: BodyTree) -> dict[str, LinkVisuals]:
    """Return the primitives and meshes by link of the groups that MuJoCo's viewer shows; without these, those of the others.

    Primitives and meshes of groups that it does not show are those of collisions.
    """
    materials, visuals = read_materials(root, tree.meshes.compiler, tree.defaults), {}
    for name, geoms in tree.geoms.items():
        shapes: tuple[list[Shape], list[Shape]] = [], []       # hidden, visible
        meshes: tuple[list[LinkMesh], list[LinkMesh]] = [], []
        with suppress(ModelError):                             # of geoms without mass, which dynamics does not need
            for geom, at in geoms:
                (colour, texture), is_visible = materials.of(geom), geom.number("group", 0.0) <= _SHOWN
                shape, mesh = shape_of(geom, at, tree.compilers[name]), tree.meshes.drawn(geom, at, tree.compilers[name])
                if shape is not None:
                    shapes[is_visible].append(replace(shape, colour=colour, texture=texture))
                elif mesh is not None:
                    meshes[is_visible].append(replace(mesh, colour=colour, texture=texture))
        hidden, visible = map(tuple, shapes)
        if not visible and not meshes[True]:
            hidden, visible = (), hidden
        if geoms:
            visuals[name] = LinkVisuals(visible, hidden, tuple(meshes[True]), len(visible) == len(geoms), tuple(meshes[False]))
    return visuals


def _check_sections(root: XmlElement, left_out: LeftOut) -> None:
    for section in root.children:
        if section.tag not in _SECTIONS:
            raise section.problem("unknown element", found=f"<{section.tag}>", expected="one of " + ", ".join(_SECTIONS))
        if section.tag == "deformable":
            for child in section.every("flex"):
                left_out.add("flex", child, "deformable bodies are not supported")


def _read_tendons(root: XmlElement, tree: BodyTree) -> Iterator[ForceElement]:
    """Yield a spring with damping for each tendon that runs straight between two sites and has stiffness or damping."""
    for number, child in enumerate(root.within("tendon"), 1):
        element = tree.defaults.of(child, kind="tendon")
        if _is_straight(element, child) and "tendons" not in tree.left_out.ignored:
            yield from _straight_tendon(element, child, f"tendon{number}", tree)
            continue
        for key in _NO_FORCE:
            tree.left_out.add_numbers("tendons", element, key, f"a tendon with {key} is not supported")
        if child.tag != "fixed":                             # those are read with what acts on them
            tree.count("tendons")
        elif any(any(element.vector(key, (0.0, 0.0))) for key in ("range", "actuatorfrcrange")):
            tree.count("limits of tendons")


def _is_straight(element: XmlElement, child: XmlElement) -> bool:
    """Return whether a tendon runs between two sites and has no force but those of a linear spring and a linear damper."""
    passive = [element.floats(key) for key in ("stiffness", "damping")]
    return (child.tag == "spatial" and [part.tag for part in child.children] == ["site", "site"]
            and any(x[:1] != (0.0,) and x for x in passive) and not any(any(x[1:]) for x in passive)
            and not any(element.number(key, 0.0) for key in ("frictionloss", "armature")))


def _straight_tendon(element: XmlElement, child: XmlElement, name: str, tree: BodyTree) -> Iterator[ForceElement]:
    (a, at_a), (b, at_b) = (tree.site[part.name_of("site", tree.site, "unknown site", "a site's name")]
                            for part in child.children)
    stiffness, damping = (acts * (element.floats(key) or (0.0,))[0] for key, acts in (
        ("stiffness", tree.option.springs), ("damping", tree.option.dampers)))
    values: dict[str, Any] = {"damping": damping}
    if stiffness:
        values |= {"stiffness": stiffness, "free_length": _spring_length(element, tree)}
    if any(element.vector("range", (0.0, 0.0))):
        tree.count("limits of tendons")
    if stiffness or damping:
        yield ForceElement(element.name or name, "spring" if stiffness else "damper", a, b, at_a, at_b, **values,
                           place=element.place())


def _spring_length(element: XmlElement, tree: BodyTree) -> tuple[float, ...]:
    """Return the lengths between which a tendon has no spring force; empty for the length at zero coordinates.

    Without springlength it is the length where hinges and slides are at their springref, and other joints at their start.
    """
    lengths = element.floats("springlength")
    if lengths and lengths != (-1.0, -1.0) and lengths != (-1.0,):
        return lengths[:1] if lengths[0] == lengths[-1] else (lengths[0], lengths[-1])
    for joint in tree.joints:
        if joint.type == "free" or any(c.rest for c in joint.coordinates):
            raise element.problem("the length of a relaxed tendon is not known: its robot has a free joint or a springref",
                                  expected="springlength")
    return ()


def _warnings(root: XmlElement, tree: BodyTree) -> tuple[LiedynWarning, ...]:
    """Return a message for all parts that are not read, one for limits among them, and one for friction, which differs."""
    warnings, place = list(root.warnings), Place(root.file, root.line, "mujoco")
    limits, parts = ({part: count for part, count in tree.counts.items() if (part in _LIMITS) == is_limit}
                      for is_limit in (True, False))
    if parts:
        warnings.append(LiedynWarning("mjcf-not-read", f"not read: {_listed(parts)}", place=place))
    if limits:
        warnings.append(LiedynWarning("mjcf-limits", f"not read: {_listed(limits)}", place=place))
    if tree.left_out.counts:
        message = f"omitted because of --ignore or ignore=, which changes the motion: {_listed(tree.left_out.counts)}"
        warnings.append(LiedynWarning("mjcf-left-out", message, place=place))
    if any(c.friction for joint in tree.joints for c in joint.coordinates):
        message = "is read as friction that is smooth below 0.01 rad/s or m/s"
        warnings.append(LiedynWarning("mjcf-friction", message, place=Place(root.file, root.line, "frictionloss")))
    return tuple(warnings)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{part} ({count})" for part, count in counts.items())
