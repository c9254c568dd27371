"""MJCF -> Robot: the kinematic tree with its inertias, joints and equality constraints; limits of forces and thrusters from
actuators. What is left out is a finding; what would change the dynamics without a word is refused."""
from __future__ import annotations

import os
from pathlib import Path

from liedyn.errors import Place
from liedyn.io.robots.link_shapes import LinkShape
from liedyn.io.robots.mjcf.actuators import read_actuators
from liedyn.io.robots.mjcf.bodies import Tree, read_bodies
from liedyn.io.robots.mjcf.compiler import read_compiler, read_option
from liedyn.io.robots.mjcf.constraints import read_equality
from liedyn.io.robots.mjcf.defaults import Defaults
from liedyn.io.robots.mjcf.inertia import shape_of
from liedyn.io.robots.mjcf.tree import Element, read_mjcf_tree
from liedyn.model.description import Finding, Robot

_SECTIONS = ("compiler", "option", "size", "statistic", "visual", "default", "extension", "custom", "asset", "worldbody",
             "contact", "tendon", "equality", "actuator", "sensor", "keyframe", "deformable")
_SHOWN = 2                           # the last group of geoms that the viewer shows
_NO_FORCE = ("stiffness", "damping", "frictionloss", "armature", "springyield")      # of a tendon


def read_mjcf(path: str | os.PathLike) -> Robot:
    """The robot of an MJCF file, with the findings of reading it; not yet validated.

    Raises ModelError with file, line and element: no XML, a DOCTYPE, an included file that is missing, wrong attributes; meshes
    whose inertia would be needed; tendons with forces, fluids, compensation of gravity, free joints with armature, constraints
    that are not linear.
    """
    root = read_mjcf_tree(path)
    _check_sections(root)
    tree = _bodies(root)
    loops, couplings = read_equality(root, tree)
    actuators = read_actuators(root, tree)
    _refuse_tendons(root, tree)
    for kind in ("sensor", "keyframe"):
        for _ in root.within(kind):
            tree.count(f"{kind}s")
    return Robot(root.text("model") or Path(os.fspath(path)).stem, tuple(tree.links), tuple(tree.joints),
                 gravity=tree.option.gravity, actuators=actuators, loops=loops, couplings=couplings,
                 findings=_findings(root, tree), source=os.fspath(path))


def mjcf_shapes(path: str | os.PathLike) -> dict[str, tuple[LinkShape, ...]]:
    """Primitives by link, of a file that has been read without an error: of the groups that MuJoCo's viewer shows; of a link
    without, those of the others."""
    tree, found = _bodies(read_mjcf_tree(path)), {}
    for name, geoms in tree.geoms.items():
        drawn = [(geom.number("group", 0.0) <= _SHOWN, shape_of(geom, at, tree.compiler)) for geom, at in geoms]
        shapes = [(seen, one) for seen, one in drawn if one is not None]
        if shapes:
            found[name] = tuple(one for seen, one in shapes if seen) or tuple(one for _, one in shapes)
    return found


def count_mjcf_shaped(path: str | os.PathLike) -> int:
    """How many links of a file that has been read without an error have geoms, meshes included."""
    return sum(bool(geoms) for geoms in _bodies(read_mjcf_tree(path)).geoms.values())


def _bodies(root: Element) -> Tree:
    return read_bodies(root, read_compiler(root), read_option(root), Defaults(root))


def _check_sections(root: Element) -> None:
    for section in root.children:
        if section.tag not in _SECTIONS:
            raise section.problem("unknown element", found=f"<{section.tag}>", expected="one of " + ", ".join(_SECTIONS))
        if section.tag == "deformable":
            for child in section.every("flex"):
                raise child.problem("deformable bodies are not supported")


def _refuse_tendons(root: Element, tree: Tree) -> None:
    for child in root.within("tendon"):
        element = tree.defaults.of(child, kind="tendon")
        for key in _NO_FORCE:
            element.refuse(key, f"a tendon with {key} is not supported")
        tree.count("tendons")


def _findings(root: Element, tree: Tree) -> tuple[Finding, ...]:
    """One for all that is not read, and one for what is not quite the same."""
    place, found = Place(root.file, root.line), []
    if tree.counts:
        listed = ", ".join(f"{what} ({count})" for what, count in tree.counts.items())
        found.append(Finding("mjcf-not-read", "mujoco", f"not read: {listed}", place))
    if any(c.friction for joint in tree.joints for c in joint.coordinates):
        message = "is read as friction that is smooth below 0.01 rad/s or m/s"
        found.append(Finding("mjcf-friction", "frictionloss", message, place))
    return tuple(found)
