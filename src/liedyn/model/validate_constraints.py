"""Whether closures and couplings can be computed rightly: what `model.validate` refuses of them."""
from __future__ import annotations

from dataclasses import replace

from liedyn.errors import ModelError, Place, nearest
from liedyn.model.description import LOOP_TYPES, WORLD, Coupling, Joint, Loop, Robot
from liedyn.model.link_tree import Tree, bodies_of, check_names, place_of
from liedyn.model.numbers import check_axes, check_finite, check_pose

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
# axes of each type of closure where none are written (those that are not here have none)
_DEFAULT_AXES = {**dict.fromkeys(("revolute", "prismatic", "cylindrical", "planar", "rolling"), (_Z,)), "universal": (_X, _Y)}
_SHAPES = ("disc", "sphere")


def checked_constraints(robot: Robot, tree: Tree) -> tuple[tuple[Loop, ...], tuple[Coupling, ...]]:
    """Loops with their axes (as written) and couplings whose terms name joint and label, or a ModelError that names them."""
    check_names((*robot.loops, *robot.couplings, *mimic_couplings(robot)), "constraint")
    if not (robot.loops or robot.couplings or any(joint.mimic for joint in robot.joints)):
        return (), ()
    ground = WORLD if robot.base == "floating" else tree.root
    body_of = {WORLD: ground} | {link.name: first for first, links in bodies_of(tree).items() for link in links}
    coordinates = _coordinates(robot.joints)
    loops = tuple(_checked_loop(loop, tree, body_of) for loop in robot.loops)
    couplings = tuple(_checked_coupling(coupling, coordinates, robot.joints, place_of(coupling, "terms"))
                      for coupling in robot.couplings)
    _refuse_mimic_cycles(robot)
    for mimic in mimic_couplings(robot):
        _checked_coupling(mimic, coordinates, robot.joints, mimic.place)
    return loops, couplings


def mimic_couplings(robot: Robot) -> tuple[Coupling, ...]:
    """What the joints' `mimic` says, as couplings by the names of the joints: q - multiplier q_followed = offset. Not of fixed
    joints, which follow nothing, and not of joints that follow one which does not exist (a finding)."""
    names = {joint.name for joint in robot.joints}
    return tuple(Coupling(joint.name, ((joint.name, "", 1.0), (joint.mimic.joint, "", -joint.mimic.multiplier)),
                          joint.mimic.offset, place_of(joint, "mimic"))
                 for joint in robot.joints if joint.mimic and joint.type != "fixed" and joint.mimic.joint in names)


def _refuse_mimic_cycles(robot: Robot) -> None:
    """Joints that follow each other in a cycle have no driver: they would lock."""
    driver = {joint.name: joint.mimic.joint for joint in robot.joints if joint.mimic and joint.type != "fixed"}
    acyclic: set[str] = set()
    for joint in robot.joints:
        name, path = joint.name, []
        while name in driver and name not in acyclic:
            if name in path:
                cycle = path[path.index(name):]
                message = "the joint mimics itself" if len(cycle) == 1 else "the joints mimic each other in a cycle"
                first = next(one for one in robot.joints if one.name == name)
                raise ModelError(message, place=place_of(first, "mimic"), found=" -> ".join([*cycle, name]),
                                 expected="a joint that does not depend on this one")
            path.append(name)
            name = driver[name]
        acyclic.update(path)


# loops --------------------------------------------------------------------------------------------------------------

def _checked_loop(loop: Loop, tree: Tree, body_of: dict[str, str]) -> Loop:
    if loop.type not in LOOP_TYPES:
        raise ModelError("unknown type of loop", place=place_of(loop, "type"), found=loop.type,
                         expected="one of " + ", ".join(LOOP_TYPES), hint=nearest(loop.type, LOOP_TYPES))
    for part in ("a", "b"):
        _check_end(loop, part, tree)
    _check_apart(loop, body_of)
    for part, pose in (("a", loop.pose_a), ("b", loop.pose_b)):
        check_pose(pose, place_of(loop, part), "frame")
    default = _DEFAULT_AXES.get(loop.type, ())
    if loop.type == "rolling":
        if loop.shape not in _SHAPES:
            raise ModelError("unknown shape", place=place_of(loop, "shape"), found=loop.shape, expected="disc or sphere")
        default = default if loop.shape == "disc" else ()
    axes = loop.axes or default
    check_axes(axes, len(default), f"a {loop.type} closure" + (" of a sphere" if loop.shape == "sphere" else ""),
               place_of(loop, "axis"))
    for name, kind in (("length", "distance"), ("radius", "rolling")):
        value = getattr(loop, name)
        check_finite((value,), 1, place_of(loop, name), name)
        if loop.type == kind and not value > 0:
            raise ModelError(f"a {kind} closure needs a {name}", place=place_of(loop, name), found=value,
                             expected="a number above 0",
                             hint="use ball for points that coincide" if kind == "distance" else None)
    return replace(loop, axes=axes)


def _check_end(loop: Loop, part: str, tree: Tree) -> None:
    name = getattr(loop, part)
    if name not in tree.links and name != WORLD:
        raise ModelError(f"frame {part} is not on a link of this robot", place=place_of(loop, part), found=name,
                         expected=f"a link's name or {WORLD}", hint=nearest(name, tree.links))


def _check_apart(loop: Loop, body_of: dict[str, str]) -> None:
    """The frames must be on two bodies, else there is no joint for the loop to act on."""
    if loop.a == loop.b:
        raise ModelError("the loop joins a link to itself", place=place_of(loop, "b"), found=loop.b, expected="two links")
    if body_of[loop.a] == body_of[loop.b]:
        raise ModelError("the loop joins two links of one body: there is no moving joint between them",
                         place=place_of(loop, "b"), found=[loop.a, loop.b], expected="links that move relative to each other")


# couplings ----------------------------------------------------------------------------------------------------------

def _coordinates(joints: tuple[Joint, ...]) -> dict[str, tuple[str, str]]:
    """Joint and label of each coordinate that a coupling may hold, by its name in files."""
    return {f"{joint.name}.{label}" if label else joint.name: (joint.name, label)
            for joint in joints if joint.type not in ("ball", "free") for label in joint.labels}


def _checked_coupling(coupling: Coupling, coordinates: dict[str, tuple[str, str]], joints: tuple[Joint, ...],
                      place: Place) -> Coupling:
    terms: dict[tuple[str, str], float] = {}
    for name, label, coefficient in coupling.terms:
        check_finite((coefficient,), 1, place, "coefficient")
        written = f"{name}.{label}" if label else name
        if written not in coordinates:
            raise _no_coordinate(written, coordinates, joints, place)
        if coordinates[written] in terms:
            raise ModelError(f'the coordinate "{written}" appears twice', place=place, expected="one term per coordinate")
        terms[coordinates[written]] = float(coefficient)
    if not any(terms.values()):
        raise ModelError("a coupling without terms", place=place, found=[term[2] for term in coupling.terms],
                         expected="at least one coefficient other than 0")
    check_finite((coupling.offset,), 1, place_of(coupling, "offset"), "offset")
    return replace(coupling, terms=tuple((*who, c) for who, c in terms.items()), offset=float(coupling.offset))


def _no_coordinate(written: str, coordinates, joints: tuple[Joint, ...], place: Place) -> ModelError:
    for joint in joints:
        if joint.name == written and joint.type in ("fixed", "ball", "free"):
            what = "has no coordinate" if joint.type == "fixed" else "has a quaternion for coordinates"
            return ModelError(f'joint "{joint.name}" cannot be coupled: a {joint.type} joint {what}', place=place,
                              expected="joints such as revolute or prismatic")
        if joint.name == written:
            return ModelError(f'joint "{joint.name}" has {len(joint.labels)} coordinates', place=place, found=written,
                              expected="one of " + ", ".join(f"{joint.name}.{label}" for label in joint.labels))
    return ModelError("unknown joint in a coupling", place=place, found=written, expected="a joint's name, or joint.label",
                      hint=nearest(written, coordinates))
