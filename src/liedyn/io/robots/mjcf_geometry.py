"""Elements of MJCF files: settings of the compiler, default classes, poses, and masses of <inertial> and geoms."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from liedyn.errors import ModelError, nearest
from liedyn.io.robots import IGNORABLE
from liedyn.io.robots.xml_elements import LocatedText, Numbers, XmlElement
from liedyn.model.description import STANDARD_GRAVITY
from liedyn.model.links import IDENTITY, Pose, Rotation, Shape, Vector, inertia_of, vector
from liedyn.model.mass_properties import Inertia, Mass, rotated_inertia, uniform
from liedyn.model.spatial import exp3, pose, rotation_by_rows, rotation_of_z

# What <compiler> and <option> say about how a file is to be read --------------------------------------------------------

_ANGLE = {"degree": math.pi / 180, "radian": 1.0}
_FROM_GEOMS = {"true": True, "false": False, "auto": None}


@dataclass(frozen=True, slots=True)
class Compiler:
    """Settings of <compiler>.

    angle               radians per unit of an angle
    sequence            axes of Euler angles; capital letters are fixed axes
    autolimits          whether a range is a limit without a further attribute
    inertia_from_geoms  whether geoms define inertias; None: only of bodies without <inertial>
    groups              first and last group of the geoms that define inertias
    total_mass          mass [kg] to which the robot is scaled, or None
    minimum_mass, minimum_inertia   minimum of each body [kg], [kg m^2]
    balance             whether principal inertias that violate the triangle inequality are made equal
    align_free          whether frames of free bodies are moved to their centres of mass
    mesh_folder         folder of mesh files, relative to that of the file; texture_folder: of images
    strip_path          whether folders in the names of mesh files are ignored
    fit_to_box          whether primitives are fitted to the bounding box of a mesh, not to its inertia
    """

    angle: float
    sequence: str
    autolimits: bool
    inertia_from_geoms: bool | None
    groups: tuple[float, float]
    total_mass: float | None
    minimum_mass: float
    minimum_inertia: float
    balance: bool
    align_free: bool
    mesh_folder: str
    texture_folder: str
    strip_path: bool
    fit_to_box: bool


def merged_elements(elements: Iterable[XmlElement], tag: str) -> XmlElement:
    """Return all elements of a tag merged into one: later attributes replace earlier ones."""
    all_elements = list(elements)
    attributes: dict[str, LocatedText] = {}
    for element in all_elements:
        attributes |= element.attributes
    children = [child for element in all_elements for child in element.children]
    return XmlElement(tag, attributes, all_elements[0].file if all_elements else "", all_elements[0].line if all_elements else 0,
                      children)


def read_compiler(root: XmlElement) -> Compiler:
    """Return the settings of <compiler>. Raise for those that are not supported."""
    settings = merged_elements(root.every("compiler"), "compiler")
    if settings.text("coordinate", "local") != "local":
        raise settings.problem("global coordinates are not supported", "coordinate", found=settings.text("coordinate"),
                               expected="local")
    sequence = settings.text("eulerseq", "xyz")
    if len(sequence) != 3 or set(sequence) - set("xyzXYZ"):
        raise settings.problem("wrong value", "eulerseq", found=sequence, expected="three of x y z X Y Z")
    total = settings.number("settotalmass", -1.0)
    mesh_folder, texture_folder = (settings.text(key, settings.text("assetdir", "")).replace("\\", "/")
                                   for key in ("meshdir", "texturedir"))
    groups = settings.vector("inertiagrouprange", (-math.inf, math.inf))
    return Compiler(_ANGLE[settings.choice("angle", _ANGLE, "degree")], sequence, settings.switch("autolimits", True),
                    _FROM_GEOMS[settings.choice("inertiafromgeom", _FROM_GEOMS, "auto")], groups,
                    total if total > 0 else None, settings.number("boundmass", 0.0), settings.number("boundinertia", 0.0),
                    settings.switch("balanceinertia", False), settings.switch("alignfree", False),
                    mesh_folder, texture_folder, settings.switch("strippath", False), settings.switch("fitaabb", False))


def compiler_of(element: XmlElement, compiler: Compiler) -> Compiler:
    """Return the settings for an element: those of the attached model that it is from, or else of the file."""
    return compiler if element.model is None else read_compiler(element.model)


def asset_path(element: XmlElement, attribute: str, compiler: Compiler, asset_folder: str, folder: Path) -> Path:
    """Return the path of a file that an element names. folder: of the robot file; asset_folder: of such files, relative to it."""
    name = element.require(attribute).replace("\\", "/")
    folder = Path(element.model.file).parent if element.model else folder
    return folder / asset_folder / (Path(name).name if compiler.strip_path else name)


def check_known(element: XmlElement, known: tuple[str, ...]) -> None:
    """Raise for unknown attributes, which may change the dynamics or be misspelled."""
    for key in element.attributes:
        if key not in known:
            raise element.problem("unknown attribute", key, found=key, hint=nearest(key, known))


class LeftOut:
    """Parts of a file that change the motion and are not computed: they are an error, unless the caller has them left out.

    ignored  names of parts, from `IGNORABLE`
    counts   of parts, by their description
    errors   error about the first part of each name that is not in `ignored`
    """

    def __init__(self, ignored: Iterable[str] = ()):
        self.ignored = tuple(ignored)
        self.counts: dict[str, int] = {}
        self.errors: dict[str, ModelError] = {}
        for name in self.ignored:
            if name not in IGNORABLE:
                raise ModelError("unknown part to ignore", found=name, expected="one of " + ", ".join(IGNORABLE),
                                 hint=nearest(name, IGNORABLE))

    def add(self, part: str, element: XmlElement, message: str, attribute: str | None = None,
            expected: str | None = None) -> None:
        """Count a part. Unless it is left out, `check` raises ModelError with the message."""
        if part not in self.ignored and part not in self.errors:
            self.errors[part] = element.problem(message, attribute, found=element.text(attribute) if attribute else None,
                                                expected=expected)
        self.counts[IGNORABLE[part]] = self.counts.get(IGNORABLE[part], 0) + 1

    def check(self) -> None:
        """Raise ModelError for the parts that are not left out: all of them in one error."""
        if not self.errors:
            return
        first, *further = self.errors.values()
        parts = [*self.ignored, *self.errors]
        written = ", ".join(f'"{part}"' for part in parts)
        hint = (f"{' '.join(f'--ignore {part}' for part in parts)} leaves {'it' if len(parts) == 1 else 'them'} out; "
                f"ignore=[{written}] in Python")
        if further:
            hint = f"also {', '.join(f'{error.place}: {error.message}' for error in further)}; {hint}"
        raise ModelError(first.message, place=first.place, found=first.found, expected=first.expected, hint=hint)

    def add_numbers(self, part: str, element: XmlElement, attribute: str, message: str, expected: str = "0") -> None:
        """As `add`, if an attribute has numbers other than zero."""
        if any(element.floats(attribute)):
            self.add(part, element, message, attribute, expected)


@dataclass(frozen=True, slots=True)
class Option:
    """Settings of <option>: gravity [m/s^2], and which forces and constraints act."""

    gravity: Vector
    springs: bool
    dampers: bool
    friction: bool
    limits: bool
    equality: bool


def read_option(root: XmlElement, left_out: LeftOut) -> Option:
    """Return the settings of <option>. Raise for those that are not supported and not left out."""
    settings = merged_elements(root.every("option"), "option")
    for key in ("density", "viscosity"):
        left_out.add_numbers("fluid", settings, key, "forces of a fluid are not supported")
    flag = merged_elements(settings.every("flag"), "flag")

    def on(name: str) -> bool:
        return flag.choice(name, ("enable", "disable"), "enable") == "enable"
    constraints, passive = on("constraint"), on("passive")
    gravity = settings.vector("gravity", STANDARD_GRAVITY) if on("gravity") else (0.0, 0.0, 0.0)
    return Option(gravity, on("spring") and passive, on("damper") and passive, on("frictionloss") and constraints,
                  on("limit") and constraints, on("equality") and constraints)


# Default classes: an element's attributes with those of its class, the class's parents and `main` -----------------------

MAIN = "main"
ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
ACTUATORS = ("general", "motor", "position", "velocity", "intvelocity", "orientation", "pid", "damper", "cylinder", "muscle",
             "adhesion", "dcmotor")


class Defaults:
    """Attributes by class and tag, with those that a class inherits. Classes of attached models can be added."""

    def __init__(self, root: XmlElement):
        self.classes: dict[str, dict[str, dict[str, LocatedText]]] = {MAIN: {}}
        for section in root.every("default"):
            name = section.text("class", MAIN)
            if name != MAIN and len(self.classes) == 1:
                self.classes[name] = self.classes[MAIN]                # the outermost class may have another name
            self._read(section, self.classes[MAIN])

    def _read(self, section: XmlElement, attributes: dict[str, dict[str, LocatedText]]) -> None:
        for child in section.children:
            if child.tag != "default":
                tag = _kind(child.tag)
                attributes[tag] = merged_defaults(attributes.get(tag, {}), child)
        for child in section.every("default"):
            name = child.require("class")
            if name in self.classes:
                raise child.problem("the default class is defined twice", "class", found=name)
            self.classes[name] = {tag: dict(values) for tag, values in attributes.items()}
            self._read(child, self.classes[name])

    def of(self, element: XmlElement, childclass: str = MAIN, kind: str | None = None) -> XmlElement:
        """Return the element with the attributes of its class. kind: the tag of its defaults, if it is another."""
        name = element.text("class", childclass)
        self.check(name, element, "class")
        return replace(element, attributes=merged_defaults(self.classes[name].get(kind or _kind(element.tag), {}), element))

    def check(self, name: str, element: XmlElement, attribute: str) -> None:
        """Raise for a default class that the file does not define."""
        if name not in self.classes:
            raise element.problem("unknown default class", attribute, found=name, expected="one of " + ", ".join(self.classes),
                                  hint=nearest(name, self.classes))


def merged_defaults(inherited: dict[str, LocatedText], element: XmlElement) -> dict[str, LocatedText]:
    """Return the attributes of an element and those that it inherits. Its orientation replaces an inherited one of any kind."""
    attributes_of_element = element.attributes
    if any(key in attributes_of_element for key in ORIENTATIONS):
        inherited = {key: written for key, written in inherited.items() if key not in ORIENTATIONS}
    return inherited | attributes_of_element


def _kind(tag: str) -> str:
    """Return the tag of the defaults of an element: all actuators share theirs."""
    return "actuator" if tag in ACTUATORS else tag


# Placements of MJCF: `pos` and one of five orientations; products of poses ------------------------------

_SMALL = 1e-14                       # a vector shorter than this has no direction


def placement(element: XmlElement, compiler: Compiler) -> Pose:
    """Return the pose of an element in its parent."""
    return Pose(orientation(element, compiler), element.vector("pos", _ZERO))


def orientation(element: XmlElement, compiler: Compiler) -> Rotation:
    """Return the rotation of an element, which is given by one of five attributes."""
    keys = [key for key in ORIENTATIONS if key in element.attributes]
    if len(keys) > 1:
        raise element.problem("several orientations", keys[1], found=keys, expected="one of them")
    if not keys:
        return IDENTITY
    kind, = keys
    if kind == "quat":
        return quaternion_rotation(element.vector("quat", (1.0, 0.0, 0.0, 0.0)), element, "quat")
    if kind == "axisangle":
        wx, wy, wz, angle = element.vector("axisangle", (0.0, 0.0, 0.0, 0.0))
        return axis_rotation(unit((wx, wy, wz), element, "axisangle"), angle * compiler.angle)
    if kind == "euler":
        return euler_rotation(element.vector("euler", _ZERO), compiler)
    if kind == "xyaxes":
        axes = element.vector("xyaxes", (0.0,) * 6)
        x_axis = unit(axes[:3], element, "xyaxes")
        along = sum(a * b for a, b in zip(x_axis, axes[3:], strict=True))
        y_axis = unit(vector(b - along * a for a, b in zip(x_axis, axes[3:], strict=True)), element, "xyaxes")
        return rotation_by_rows(np.column_stack([x_axis, y_axis, np.cross(x_axis, y_axis)]))
    return rotation_by_rows(rotation_of_z(np.array(unit(element.vector("zaxis", _ZERO), element, "zaxis"))))


def quaternion_rotation(quaternion: tuple[float, float, float, float], element: XmlElement, attribute: str) -> Rotation:
    """Return the rotation of a quaternion w x y z of any length."""
    w, x, y, z = quaternion
    return Pose.from_xyz_quaternion(_ZERO, unit((x, y, z, w), element, attribute)).rotation


def unit(direction: Numbers, element: XmlElement, attribute: str) -> Numbers:
    """Return the unit vector in a direction. Raise for the zero vector."""
    length = math.hypot(*direction)
    if length < _SMALL:
        raise element.problem("the zero vector", attribute, found=element.text(attribute), expected="a direction")
    return cast(Numbers, tuple(x / length for x in direction))


def axis_rotation(axis: Vector, angle: float) -> Rotation:
    """Return the rotation by an angle about a unit axis."""
    return rotation_by_rows(exp3(angle * np.array(axis)))


def euler_rotation(angles: Vector, compiler: Compiler) -> Rotation:
    """Return the rotation of Euler angles. Lower-case letters of the sequence are moving axes, capital letters fixed axes."""
    R = np.eye(3)
    for letter, angle in zip(compiler.sequence, angles, strict=True):
        Q = exp3(angle * compiler.angle * (np.array(list("xyz")) == letter.lower()))
        R = R @ Q if letter.islower() else Q @ R
    return rotation_by_rows(R)


def compose(A: Pose, B: Pose) -> Pose:
    """Return the product A B of two poses."""
    return Pose.from_matrix(pose(A) @ pose(B))


def rotate(A: Pose, x: Vector) -> Vector:
    """Return R x, with the rotation R of the pose A."""
    return vector(pose(A)[:3, :3] @ x)


def minus(a: Sequence[float], b: Sequence[float]) -> Vector:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


# inertia ----------------------------------------------------------------------------------------------------------------

SIZES = {"sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}      # numbers of `size`
_MASSLESS = ("plane", "hfield")
_MESHES = ("mesh", "sdf")
_DENSITY = 1000.0                    # kg/m^3: of water, MuJoCo's default
COMPILED = 'MuJoCo writes it: <compiler saveinertial="true"/>, then mujoco.mj_saveLastXML'
_ZERO = (0.0, 0.0, 0.0)


def of_inertial(element: XmlElement, compiler: Compiler) -> Mass:
    """Return the mass, centre of mass and inertia of an <inertial>."""
    mass = element.number("mass", -1.0)
    if mass < 0 or "pos" not in element.attributes:
        key = "pos" if mass >= 0 else "mass"
        raise element.problem(f"an <inertial> requires {key}", key, found=element.text(key),
                                                                                       expected="mass of at least 0 and pos")
    com = element.vector("pos", _ZERO)
    if "fullinertia" in element.attributes:
        if "diaginertia" in element.attributes:
            raise element.problem("fullinertia and diaginertia cannot be combined", "fullinertia", expected="one of them")
        R = orientation(element, compiler)
        if R != IDENTITY:
            raise element.problem("fullinertia cannot be combined with an orientation: it is in the axes of the body",
                                  "fullinertia", expected="no orientation")
        xx, yy, zz, xy, xz, yz = element.vector("fullinertia", (0.0,) * 6)
        return Mass(mass, com, (xx, xy, xz, yy, yz, zz))
    xx, yy, zz = element.vector("diaginertia", _ZERO)
    return Mass(mass, com, rotated_inertia(orientation(element, compiler), (xx, 0.0, 0.0, yy, 0.0, zz)))


def of_geom(element: XmlElement, compiler: Compiler, mesh_mass: Callable[[XmlElement], Mass]) -> Mass:
    """Return the mass of a geom, in the frame of its parent. Raise for a hollow shape.

    mesh_mass: the mass of the mesh of a geom for a density of 1, in the frame of the geom
    """
    kind = element.text("type", "sphere")
    written_mass = element.number("mass", math.nan)
    density = element.number("density", _DENSITY)
    if kind in _MASSLESS or written_mass == 0 or (math.isnan(written_mass) and density == 0):
        return Mass()
    if written_mass < 0 or density < 0:
        key = "mass" if written_mass < 0 else "density"
        raise element.problem(f"negative {key}", key, found=element.text(key), expected="zero or more")
    if kind not in (*SIZES, *_MESHES):
        raise element.problem("unknown type of geom", "type", found=kind,
                              expected="one of " + ", ".join((*SIZES, *_MESHES, *_MASSLESS)))
    if element.switch("shellinertia", False):
        raise element.problem("the inertia of a hollow shape is not computed", "shellinertia",
                              expected="inertia of the <mesh>" if is_mesh(element) else "an <inertial> of the body")
    if is_mesh(element):
        if "fromto" in element.attributes:
            raise element.problem("fromto does not apply to meshes", "fromto", expected="pos")
        frame, body = placement(element, compiler), mesh_mass(element)
        if kind in SIZES:
            at, sizes = _fitted(element, kind, body, compiler)
            frame, body = compose(frame, at), _uniform(kind, sizes)
    else:
        frame, sizes = shape(element, kind, compiler)
        body = _uniform(kind, sizes)
    mass = density * body.mass if math.isnan(written_mass) else written_mass
    return Mass(mass, body.com, inertia_of(mass / body.mass * x for x in body.inertia)).seen_from(frame)


def _uniform(kind: str, sizes: Sequence[float]) -> Mass:
    """Return a primitive of density 1."""
    volume, inertia = _ellipsoid(sizes) if kind == "ellipsoid" else uniform(kind, sizes)
    return Mass(volume, inertia=inertia_of(volume * x for x in inertia))


def _fitted(element: XmlElement, kind: str, body: Mass, compiler: Compiler) -> tuple[Pose, tuple[float, ...]]:
    """Return the pose and the sizes of the primitive that MuJoCo fits to a mesh: by the box with the inertia of the mesh."""
    if compiler.fit_to_box:
        raise element.problem("a primitive that is fitted to the bounding box of a mesh is not supported", "mesh",
                              found=element.text("mesh"), expected="an <inertial> of the body", hint=COMPILED)
    frame, (x, y, z) = box_of(body)
    scale, radius = element.number("fitscale", 1.0), (x + y) / 2
    sizes = {"sphere": ((x + y + z) / 3,), "capsule": (radius, 2 * max(0.0, z - radius / 2)), "cylinder": (radius, 2 * z),
             "ellipsoid": (x, y, z), "box": (2 * x, 2 * y, 2 * z)}[kind]
    return frame, tuple(scale * size for size in sizes)


def box_of(body: Mass) -> tuple[Pose, Vector]:
    """Return the pose and the half lengths of the box that has the inertia of a body for its mass, the longest side along z."""
    xx, xy, xz, yy, yz, zz = body.inertia
    values, R = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    values, R = values[::-1], R[:, ::-1] * [1, 1, np.sign(np.linalg.det(R[:, ::-1]))]     # the smallest inertia is about z
    return Pose(rotation_by_rows(R), body.com), vector(np.sqrt(np.maximum(1.5 * (values.sum() - 2 * values) / body.mass, 0.0)))


def is_mesh(element: XmlElement) -> bool:
    """Return whether a geom is a mesh, or a primitive that is fitted to one."""
    return element.text("type") in _MESHES or "mesh" in element.attributes


def shape(element: XmlElement, kind: str, compiler: Compiler) -> tuple[Pose, tuple[float, ...]]:
    """Return the pose of a primitive in its parent, and its sizes [m] as in `SHAPES`; the half axes of an ellipsoid."""
    count = SIZES[kind]
    if "fromto" in element.attributes:
        ends = element.vector("fromto", (0.0,) * 6)
        if kind == "sphere" or "pos" in element.attributes:
            raise element.problem("fromto applies only to a capsule, cylinder, box or ellipsoid without pos", "fromto")
        across = element.vector("size", (0.0, 0.0, 0.0), minimum=1)[0]
        along = minus(ends[:3], ends[3:])                       # z leads from the second end to the first
        frame = Pose(rotation_by_rows(rotation_of_z(np.array(unit(along, element, "fromto")))),
                     vector((a + b) / 2 for a, b in zip(ends[:3], ends[3:], strict=True)))
        sizes = (*(across,) * (count - 1), math.hypot(*along) / 2)
    else:
        frame, sizes = placement(element, compiler), element.vector("size", _ZERO, minimum=count)[:count]
    if min(sizes) <= 0:
        raise element.problem(f"wrong size of a {kind}", "size", found=element.text("size"),
                              expected=f"{count} number{'s' * (count > 1)} above 0")
    radii = {"box": 0, "ellipsoid": count}.get(kind, 1)                    # the first sizes; the others are half lengths
    return frame, tuple(x if k < radii else 2 * x for k, x in enumerate(sizes))


def shape_of(element: XmlElement, frame: Pose, compiler: Compiler) -> Shape | None:
    """Return the primitive of a geom for drawing, or None for meshes, planes and ellipsoids. frame: pose of its parent."""
    kind = element.text("type", "sphere")
    if kind not in SIZES or kind == "ellipsoid" or is_mesh(element):
        return None
    frame_of_shape, sizes = shape(element, kind, compiler)
    return Shape(kind, sizes, compose(frame, frame_of_shape))


def _ellipsoid(half_axes: Sequence[float]) -> tuple[float, Inertia]:
    """Return the volume, and the inertia for a mass of 1 kg."""
    a, b, c = (x * x / 5 for x in half_axes)
    return 4 / 3 * math.pi * math.prod(half_axes), (b + c, 0.0, 0.0, a + c, 0.0, a + b)


def bounded(body: Mass, compiler: Compiler) -> Mass:
    """Return a body with at least the minimum mass and the minimum principal inertias of the compiler.

    With `balance`, principal inertias that violate the triangle inequality are made equal.
    """
    mass = max(body.mass, compiler.minimum_mass)
    if not (compiler.minimum_inertia or compiler.balance):
        return Mass(mass, body.com, body.inertia)
    xx, xy, xz, yy, yz, zz = body.inertia
    values, R = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    bounded_values = np.maximum(values, compiler.minimum_inertia)
    if compiler.balance and bounded_values[0] + bounded_values[1] < bounded_values[2]:
        bounded_values[:] = bounded_values.mean()
    if np.array_equal(bounded_values, values):
        return Mass(mass, body.com, body.inertia)
    I = (R * bounded_values) @ R.T
    return Mass(mass, body.com, inertia_of(I[np.triu_indices(3)]))
