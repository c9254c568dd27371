"""Robot YAML -> Robot: every joint type, bodies by inertia or by shape, thrusters, tendons."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from liedyn.errors import ElementPlace, LiedynWarning, ModelError, Place
from liedyn.io.atomic_output import stem_of
from liedyn.io.file_schema import File
from liedyn.io.recorded_paths import text_digest
from liedyn.io.robots.coupling_function import points_of_columns, read_csv, read_force_csv
from liedyn.io.robots.curve_joint import read_curve_joint
from liedyn.io.robots.robot_schema import (
    ACTUATOR,
    COUPLING,
    CURVE,
    ELEMENT,
    INCLUDE,
    JOINT,
    KEYFRAME,
    LINK,
    LOOP,
    LOOPS_FILE,
    ROBOT,
    each_number,
    friction_of_coordinates,
    read_limit,
)
from liedyn.io.yaml_nodes import Node, read_yaml
from liedyn.io.yaml_values import override
from liedyn.model.composition import attach_robot, mount_name
from liedyn.model.coupling_expression import CouplingFunction, read_expression
from liedyn.model.description import (
    JOINT_TYPES,
    STANDARD_GRAVITY,
    Actuator,
    Coordinate,
    Coupling,
    CurveJoint,
    Joint,
    Keyframe,
    Loop,
    Robot,
)
from liedyn.model.force_element import FORCE_ELEMENT_TYPES, ForceElement
from liedyn.model.links import Link, Pose, Shape

# What robot files in YAML have in common: elements by name, and where each stands ---------------------------------------

def named(root: Node, key: str, read: Callable[[str, Node], Any]) -> tuple[Any, ...]:
    """Return the elements under a key, read from their names and nodes; none without the key."""
    node = root.get(key)
    return tuple(read(name, child) for name, child in node.mapping().items()) if node else ()


def place_of_keys(node: Node, **parts: str) -> ElementPlace:
    """Return the location of an element and of its keys. `parts`: keys by the names that they have in the description."""
    lines = {key: child.place for key, child in node.mapping().items()}
    lines.update({name: lines[key] for name, key in parts.items() if key in lines})
    return ElementPlace(node.file, node.line, node.key, lines)


# loops ------------------------------------------------------------------------------------------------------------------

# Closures and couplings in YAML: the keys `loops` and `couplings` of a robot file, or a file of their own next to a URDF.

@dataclass(frozen=True, slots=True)
class LoopsFile:
    """A file of constraints: path of the robot file or None, closures, couplings, actuated joints, and force elements."""

    robot: str | None
    loops: tuple[Loop, ...]
    couplings: tuple[Coupling, ...]
    actuated: tuple[str, ...]
    elements: tuple[ForceElement, ...] = ()


def read_loops_file(path: str | os.PathLike[str]) -> LoopsFile:
    """Read a loops file, with the keys of `LOOPS_FILE`. Raise ModelError with file, line and key."""
    root = read_yaml(path, ModelError)
    nodes = root.mapping(LOOPS_FILE)
    return LoopsFile(LOOPS_FILE.value(nodes, "robot"), named(root, "loops", _loop), named(root, "couplings", _coupling),
                     LOOPS_FILE.value(nodes, "actuated", ()), named(root, "elements", _element))


def robot_of_loops(path: str | os.PathLike[str]) -> str:
    """Return the path of the robot file that a loops file names. Raise ModelError if it names none."""
    robot = read_loops_file(path).robot
    if robot is None:
        raise ModelError("the loops file does not name a robot", place=Place(os.fspath(path)), expected="the key robot",
                         hint="or use the robot file")
    return robot


def loops_path_of(path: Path) -> Path:
    """Return the path of the loops file of a URDF: `arm.loops.yaml` for `arm.urdf` and `arm.urdf.xacro`."""
    return path.with_name(f"{stem_of(path)}.loops.yaml")


def loops_beside(path: str | os.PathLike[str]) -> tuple[LoopsFile | None, tuple[LiedynWarning, ...]]:
    """Return the constraints of the loops file next to a URDF, or None without one, and the warnings about the file.

    They are in `arm.loops.yaml` for `arm.urdf`, else in `loops.yaml` if its key `robot` names the URDF (by its file name, if the
    folder was moved since). A `loops.yaml` that names no robot, or another file with this file name, is ignored with a warning.
    """
    path = Path(path)
    separate, common = loops_path_of(path), path.with_name("loops.yaml")
    if separate.is_file():
        return read_loops_file(separate), ()
    if not common.is_file():
        return None, ()
    loops_file, place = read_loops_file(common), Place(os.fspath(common), key=common.name)
    if loops_file.robot is None:
        return None, (LiedynWarning("loops-unused", f"does not name a robot and is ignored; add robot: {path.name}",
                                    place=place),)
    if os.path.basename(loops_file.robot) != path.name:
        return None, ()
    named = os.path.abspath(common.parent / loops_file.robot)
    if named != os.path.abspath(path) and os.path.isfile(named):
        return None, (LiedynWarning("loops-unused", f"belongs to another file of that name, {loops_file.robot}, and is ignored",
                                    place=place),)
    return loops_file, ()


def _loop(name: str, node: Node) -> Loop:
    values = LOOP.values(node)
    if "axis" in values and values.get("shape") == "sphere":
        raise node.value["axis"].problem("a sphere has no axis")
    place = place_of_keys(node, axis="axes" if "axes" in values else "axis")
    if "axis" in values:
        values["axes"] = (values.pop("axis"),)
    (a, pose_a), (b, pose_b) = values.pop("a"), values.pop("b")
    return Loop(name, a=a, b=b, pose_a=pose_a, pose_b=pose_b, **values, place=place)


def _coupling(name: str, node: Node) -> Coupling:
    values, place = COUPLING.values(node), place_of_keys(node, terms="terms", function="table")
    forms = [key for key in ("terms", "function", "table") if key in values]
    if len(forms) > 1:
        raise node.problem("a coupling takes one of terms, function, table", found=", ".join(forms))
    if forms in ([], ["terms"]) and "follower" not in values:
        node.require("terms", "coefficients by joint: {joint1: 1, joint2: -2}, or follower, driver and function or table")
    linear = forms == ["terms"]
    for key in values:
        if key in (("follower", "driver", "interpolation", "periodic") if linear else ("offset",)):
            raise node.value[key].problem(f"{key} does not apply to a {'linear' if linear else 'nonlinear'} coupling")
        if key in ("interpolation", "periodic") and "table" not in values:
            raise node.value[key].problem(f"{key} requires a table")
    if linear:
        return Coupling(name, tuple((joint, "", factor) for joint, factor in values["terms"].items()), values.get("offset", 0.0),
                        place=place)
    for key in ("follower", "driver"):
        node.require(key, "a joint's name, or joint.label")
    if not forms:
        node.require("function", "an expression of the driver, or a table")
    return Coupling(name, ((values["follower"], "", 1.0), (values["driver"], "", 0.0)), place=place,
                    function=_function(node, values))


def _element(name: str, node: Node) -> ForceElement:
    values = ELEMENT.values(node)
    (a, pose_a), (b, pose_b) = values.pop("a"), values.pop("b")
    if isinstance(values.get("table"), str):
        _, unit, force = FORCE_ELEMENT_TYPES[values["type"]].coordinate
        units = (unit + "/s" if values["type"] == "damper" else unit), force
        values["table"] = read_force_csv(File("CSV file").read(node.value["table"]), units)
    return ForceElement(name, a=a, b=b, pose_a=pose_a, pose_b=pose_b, **values, place=place_of_keys(node))


def _function(node: Node, values: dict[str, Any]) -> CouplingFunction:
    if "function" in values:
        return read_expression(values["function"], values["driver"], node.value["function"].place)
    points, units = values["table"], ("", "")
    if isinstance(points, str):
        points, units = read_csv(File("CSV file").read(node.value["table"]), values["driver"], values["follower"])
    elif isinstance(points, dict):
        points, units = points_of_columns(points, node.value["table"])
    options = {key: values[key] for key in ("interpolation", "periodic") if key in values}
    return CouplingFunction(points=points, units=units, **options)


# robot yaml -------------------------------------------------------------------------------------------------------------

_POSITION_LIMITS = ("lower", "upper")
_COORDINATE = tuple(key for key in JOINT if key in {field.name for field in fields(Coordinate)})


def read_robot_yaml(path: str | os.PathLike[str], overrides: Iterable[str] = (), load: LoadIncluded | None = None) -> Robot:
    """Return the robot of a YAML file, with `overrides` ("key.path=value"). It is not validated.

    `load` returns an included robot, from its path, the location of its key, and options.

    Lengths are in metres, angles in radians, masses in kilograms, densities in kg/m^3. Raises ModelError with file, line and key
    for invalid YAML, unknown, missing or repeated keys, values of the wrong kind, and numbers that are not finite.
    """
    root = read_yaml(path, ModelError)
    for text in overrides:
        override(root, text, ModelError)
    if "robot" in root.mapping() and "links" not in root.value:
        raise root.value["robot"].problem("the file names a robot file but does not describe a robot",
                                          found=root.value["robot"].excerpt(),
                                          expected="links and joints", hint="use that file")
    nodes = ROBOT.nodes(root)
    included = [_Included.read(node, load) for node in _included_nodes(root)]
    joints = nodes["joints"].mapping() if "joints" in nodes else {}
    names = [*joints, *(name for part in included for name in part.joint_names)]
    actuated = ROBOT.value(nodes, "actuated", ())
    for node in nodes["actuated"].value if actuated and names else ():
        node.choice(names)
    each: list[Joint | CurveJoint] = []
    for name, node in joints.items():
        kind = node.get("type") if node.kind == "mapping" else None
        if kind is not None and kind.kind == "text" and kind.value == CURVE:
            each.append(read_curve_joint(name, node, names))
        else:
            each.append(_joint(name, node, names))
    robot = Robot(name=ROBOT.value(nodes, "name", Path(os.fspath(path)).stem),
                 links=named(root, "links", _link), joints=each,
                 base=ROBOT.value(nodes, "base", "fixed"), gravity=ROBOT.value(nodes, "gravity", STANDARD_GRAVITY),
                 actuators=named(root, "actuators", _actuator), loops=named(root, "loops", _loop),
                 couplings=named(root, "couplings", _coupling),
                 actuated=actuated, keyframes=named(root, "keyframes", _keyframe),
                 elements=named(root, "elements", _element), source=os.fspath(path))
    for part in included:
        robot = attach_robot(robot, part.robot, part.mount, part.prefix)
    return robot


# included robots ------------------------------------------------------------------------------------------------------

LoadIncluded = Callable[..., Robot]


@dataclass(frozen=True, slots=True)
class _Included:
    """A robot that is included, with the joint that carries it."""

    robot: Robot
    mount: Joint | CurveJoint
    prefix: str

    @staticmethod
    def read(node: Node, load: LoadIncluded | None) -> _Included:
        values, place = INCLUDE.values(node), place_of_keys(node)
        path, parent, prefix, joint = (values.pop(key, None) for key in ("robot", "parent", "prefix", "joint"))
        origin = values.pop("origin", Pose())
        if load is None:
            raise node.problem("included robots are not supported here")
        robot, prefix = load(path, node.value["robot"].place, **values), prefix or ""
        name = (joint or {}).pop("name", mount_name(robot, prefix))
        if joint is None:
            return _Included(robot, Joint(name, "fixed", parent, "", origin, place=place), prefix)
        more = {"parent": parent, "child": "", "origin": origin}
        if joint["type"] == CURVE:
            curve = read_curve_joint(name, node.value["joint"], (), more)
            return _Included(robot, curve._replace(joints=tuple(replace(each, place=place) for each in curve.joints)), prefix)
        mount = _joint(name, node.value["joint"], (), joint | more)
        parts = {**mount.place.parts, **place.parts} if isinstance(mount.place, ElementPlace) else place.parts
        return _Included(robot, replace(mount, place=replace(place, parts=parts)), prefix)

    @property
    def joint_names(self) -> tuple[str, ...]:
        mount = (self.mount,) if isinstance(self.mount, Joint) else self.mount.joints
        return (*(joint.name for joint in mount), *(self.prefix + joint.name for joint in self.robot.joints))


def _included_nodes(root: Node) -> list[Node]:
    """Return the nodes of included robots: that of the key, or the entries of its list."""
    node = root.get("include")
    if node is None:
        return []
    return node.items(minimum=1, of="included robots") if node.kind == "list" else [node]


def files_of_robot(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the path of a robot file, and those of the robot files and loops files that it includes. Each is returned once."""
    files: dict[Path, None] = {}
    _add_files(Path(os.path.abspath(path)), files)
    return tuple(files)


def _add_files(path: Path, files: dict[Path, None]) -> None:
    if path in files:
        return
    files[path] = None
    try:
        if path.suffix.lower() not in (".yaml", ".yml") or b"include" not in path.read_bytes():
            return
        for node in _included_nodes(read_yaml(path, ModelError)):
            robot = Path(os.path.abspath(File().read(node.require("robot"))))
            loops = node.get("loops")
            for file in (robot, loops_path_of(robot) if loops is None else Path(os.path.abspath(File().read(loops)))):
                if file.is_file():
                    _add_files(file, files)
    except (OSError, ModelError):                    # a file that was changed since: its digest is another one anyway
        return


def robot_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 digest of a robot file, and of the files that it includes if there are some."""
    digests = [text_digest(file.read_bytes()) for file in files_of_robot(path)]
    return digests[0] if len(digests) == 1 else text_digest("".join(digests).encode())


# links --------------------------------------------------------------------------------------------------------------

def _link(name: str, node: Node) -> Link:
    values = LINK.values(node)
    if "shape" not in values:
        for key in ("density", "rpy"):
            if key in values and (key == "rpy" or "shapes" not in values):
                raise node.value[key].problem(f"{key} requires a shape", hint="without a shape, give mass and inertia")
        return Link(name, **values, place=place_of_keys(node, shape="shapes"))
    if "shapes" in values:
        raise node.value["shapes"].problem("shape and shapes cannot be combined", expected="one of them")
    if "inertia" in values:
        raise node.value["inertia"].problem("shape and inertia cannot be combined", expected="one of them")
    if ("mass" in values) == ("density" in values):
        raise node.problem("a shape needs either mass or density", found=list(values), expected="one of mass, density")
    (kind, sizes), pose = values["shape"], Pose.from_xyz_rpy(rpy=values.get("rpy", (0.0, 0.0, 0.0)))
    return Link(name, values.get("mass"), values.get("com"), shape=Shape(kind, sizes, pose), density=values.get("density"),
                place=place_of_keys(node, inertia="shape"))


# joints -------------------------------------------------------------------------------------------------------------

def _joint(name: str, node: Node, joints: Iterable[str], values: dict[str, Any] | None = None) -> Joint:
    """Return the joint of a node. values: of its keys, if it is not a node of `joints`."""
    values = JOINT.values(node) if values is None else values
    if "mimic" in values:
        node.value["mimic"].value["joint"].choice(joints)
    fields_of_joint = {field.name: values[field.name] for field in fields(Joint) if field.name in values}
    if "axis" in values:
        fields_of_joint["axes"] = (values["axis"],)
    joint = Joint(name, **fields_of_joint,
                  place=place_of_keys(node, axis="axes" if "axes" in values else "axis"))
    return _with_coordinates(joint, node)


def _with_coordinates(joint: Joint, node: Node) -> Joint:
    """Return the joint with its limits and passive forces: a number for all coordinates, or a list with one for each."""
    count = len(joint.labels)
    values: dict[str, tuple[Any, ...]] = {}
    for key, child in node.value.items():
        if key == "friction" and child.kind == "mapping":
            values |= friction_of_coordinates(child, count)
        elif key in _COORDINATE:
            values[key] = each_number(child, count)
    if "limits" in node.value:
        for key, child in node.value["limits"].mapping().items():
            if key in _POSITION_LIMITS and not JOINT_TYPES[joint.type].bounded:
                raise child.problem(f"a {joint.type} joint has no {key} limit")
            values[key] = tuple(read_limit(x) for x in each_number(child, count))
    return replace(joint, coordinates=tuple(Coordinate(**{key: each[k] for key, each in values.items()}) for k in range(count)))


# actuators ----------------------------------------------------------------------------------------------------------

def _actuator(name: str, node: Node) -> Actuator:
    return Actuator(name, **ACTUATOR.values(node), place=place_of_keys(node))


# keyframes ----------------------------------------------------------------------------------------------------------

def _keyframe(name: str, node: Node) -> Keyframe:
    return Keyframe(name, **KEYFRAME.values(node), place=place_of_keys(node))
