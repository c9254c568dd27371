"""Equality constraints of MJCF as closures and couplings. MuJoCo's are soft; ours hold exactly."""
from __future__ import annotations

from collections.abc import Iterator

from liedyn.errors import nearest
from liedyn.io.robots.mjcf.bodies import Tree
from liedyn.io.robots.mjcf.placement import compose, inverse, placement
from liedyn.io.robots.mjcf.tree import Element
from liedyn.model.description import WORLD, Coupling, Loop, Pose

_ZERO = (0.0, 0.0, 0.0)
_LINEAR = (0.0, 1.0, 0.0, 0.0, 0.0)
Terms = dict[str, float]


def read_equality(root: Element, tree: Tree) -> tuple[tuple[Loop, ...], tuple[Coupling, ...]]:
    """Closures of <connect> and <weld>, couplings of <joint> and <tendon>; what is not active is counted and left out."""
    loops, couplings, taken = [], [], set()
    tendons = dict(_fixed_tendons(root, tree))
    for k, child in enumerate(root.within("equality")):
        element = tree.defaults.of(child, kind="equality")
        if not tree.option.equality or not element.switch("active", True):
            tree.count("constraints that are not active")
            continue
        name = element.name or f"equality{k + 1}"
        if name in taken:
            raise element.problem("the name is taken by another constraint", "name", found=name)
        taken.add(name)
        if element.tag in ("connect", "weld"):
            loops.append(_loop(element, name, tree))
        elif element.tag == "joint":
            couplings.append(_coupling(element, name, "joint", {joint: ({joint: 1.0}, ref) for joint, ref in tree.ref.items()}))
        elif element.tag == "tendon":
            couplings.append(_coupling(element, name, "tendon", tendons))
        else:
            raise element.problem(f"a constraint of type {element.tag} is not supported",
                                  expected="connect, weld, joint or tendon")
    return tuple(loops), tuple(couplings)


def _loop(element: Element, name: str, tree: Tree) -> Loop:
    weld = element.tag == "weld"
    if "site1" in element.attributes or "site2" in element.attributes:
        (a, pose_a), (b, pose_b) = (_site(element, key, tree) for key in ("site1", "site2"))
    else:
        a, b = _body(element, "body1", tree), _body(element, "body2", tree)
        anchor = Pose(translation=element.vector("anchor", _ZERO))
        relative = compose(inverse(tree.at_start[a]), tree.at_start[b])          # of b in a, at the start
        if not weld:
            if "anchor" not in element.attributes:
                raise element.problem("the attribute anchor is missing", "anchor", expected="3 numbers")
            pose_a, pose_b = anchor, compose(inverse(relative), anchor)
        else:
            given = element.vector("relpose", (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            pose_b = anchor
            pose_a = compose(relative, anchor)
            if any(given[3:]):
                pose_a = placement(Element("weld", _pose_attributes(element), element.file, element.line), tree.compiler)
    if not weld:
        pose_a, pose_b = Pose(translation=pose_a.translation), Pose(translation=pose_b.translation)
    return Loop(name, "weld" if weld else "ball", a, b, pose_a, pose_b, place=element.place())


def _pose_attributes(element: Element):
    """relpose as pos and quat."""
    written = element.attributes["relpose"]
    words = written.text.split()
    return {"pos": written._replace(text=" ".join(words[:3])), "quat": written._replace(text=" ".join(words[3:]))}


def _body(element: Element, key: str, tree: Tree) -> str:
    name = element.text(key, WORLD) if key == "body2" else element.require(key)
    if name not in tree.at_start or (name != WORLD and tree.names[name].tag != "body"):
        raise element.problem("unknown body", key, found=name, expected="a body's name", hint=nearest(name, tree.at_start))
    return name


def _site(element: Element, key: str, tree: Tree) -> tuple[str, Pose]:
    return tree.site[element.name_of(key, tree.site, "unknown site", "a site's name")]


def _coupling(element: Element, name: str, what: str, known: dict[str, tuple[Terms, float]]) -> Coupling:
    """y1 - y1(start) = a0 + a1 (y2 - y2(start)), y a joint's coordinate or a tendon's length."""
    a0, a1, *higher = element.vector("polycoef", _LINEAR, least=1)
    second = f"{what}2" in element.attributes
    if second and any(higher):
        raise element.problem("a constraint that is not linear is not supported", "polycoef", found=element.text("polycoef"),
                              expected="a0 a1 0 0 0")
    first, start = _of(element, f"{what}1", known)
    terms, offset = dict(first), a0 + start
    if second:
        others, start = _of(element, f"{what}2", known)
        for joint, factor in others.items():
            terms[joint] = terms.get(joint, 0.0) - a1 * factor
        offset -= a1 * start
    return Coupling(name, tuple((joint, "", factor) for joint, factor in terms.items()), offset, place=element.place())


def _of(element: Element, key: str, known: dict[str, tuple[Terms, float]]) -> tuple[Terms, float]:
    expected = "a hinge or slide joint" if key.startswith("joint") else "a fixed tendon"
    return known[element.name_of(key, known, "nothing of that name can be coupled", expected)]


def _fixed_tendons(root: Element, tree: Tree) -> Iterator[tuple[str, tuple[Terms, float]]]:
    """Length of each fixed tendon: its terms, and its value at the start."""
    for element in (child for section in root.every("tendon") for child in section.every("fixed")):
        terms: Terms = {}
        for part in element.every("joint"):
            joint = part.name_of("joint", tree.ref, "a tendon needs joints with one coordinate", "a hinge or slide joint")
            terms[joint] = terms.get(joint, 0.0) + part.number("coef", 0.0)
        if element.name:
            yield element.name, (terms, sum(factor * tree.ref[joint] for joint, factor in terms.items()))
