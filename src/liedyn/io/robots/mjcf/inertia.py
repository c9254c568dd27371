"""Mass, centre and inertia of a body: of its <inertial>, or of its geoms by their density or mass."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from liedyn.io.robots.link_shapes import LinkShape
from liedyn.io.robots.mjcf.compiler import Compiler
from liedyn.io.robots.mjcf.placement import compose, from_z, minus, orientation, placement, plus, unit
from liedyn.io.robots.mjcf.tree import Element
from liedyn.io.robots.shapes import Inertia, rotated_inertia, uniform
from liedyn.model.description import IDENTITY, Pose, Vector

SIZES = {"sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}      # numbers of `size`
_MASSLESS = ("plane", "hfield")
_DENSITY = 1000.0                    # kg/m^3: of water, MuJoCo's default
_WRITTEN = 'MuJoCo writes it: <compiler saveinertial="true"/>, then mujoco.mj_saveLastXML'
_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Mass:
    """Mass, centre of mass and inertia about it along the axes of one frame."""

    mass: float = 0.0
    com: Vector = _ZERO
    inertia: Inertia = (0.0,) * 6

    def seen_from(self, pose: Pose) -> Mass:
        """pose: of this frame in the other."""
        com = compose(pose, Pose(translation=self.com)).translation
        return Mass(self.mass, com, rotated_inertia(pose.rotation, self.inertia))


def of_inertial(element: Element, compiler: Compiler) -> Mass:
    mass = element.number("mass", -1.0)
    if mass < 0 or "pos" not in element.attributes:
        key = "pos" if mass >= 0 else "mass"
        raise element.problem(f"an <inertial> needs {key}", key, found=element.text(key), expected="mass of at least 0 and pos")
    com = element.vector("pos", _ZERO)
    if "fullinertia" in element.attributes:
        if "diaginertia" in element.attributes:
            raise element.problem("both fullinertia and diaginertia", "fullinertia", expected="one of them")
        R = orientation(element, compiler)
        if R != IDENTITY:
            raise element.problem("fullinertia is along the axes of the body", "fullinertia", expected="no orientation")
        xx, yy, zz, xy, xz, yz = element.vector("fullinertia", (0.0,) * 6)
        return Mass(mass, com, (xx, xy, xz, yy, yz, zz))
    xx, yy, zz = element.vector("diaginertia", _ZERO)
    return Mass(mass, com, rotated_inertia(orientation(element, compiler), (xx, 0.0, 0.0, yy, 0.0, zz)))


def of_geom(element: Element, compiler: Compiler) -> Mass:
    """In the frame of the geom's parent. A mesh is refused, since its file is not read, and so is a hollow shape."""
    kind = element.text("type", "sphere")
    given = element.number("mass", math.nan)
    density = element.number("density", _DENSITY)
    if kind in _MASSLESS or given == 0 or (math.isnan(given) and density == 0):
        return Mass()
    if given < 0 or density < 0:
        key = "mass" if given < 0 else "density"
        raise element.problem(f"negative {key}", key, found=element.text(key), expected="zero or more")
    if kind not in SIZES or is_mesh(element):
        known = is_mesh(element)
        raise element.problem("the inertia of a mesh is not computed" if known else "unknown type of geom",
                              "mesh" if "mesh" in element.attributes else "type", found=element.text("mesh") or kind,
                              expected="an <inertial> of the body" if known else "one of " + ", ".join((*SIZES, *_MASSLESS)),
                              hint=_WRITTEN if known else None)
    if element.switch("shellinertia", False):
        raise element.problem("the inertia of a hollow shape is not computed", "shellinertia",
                              expected="an <inertial> of the body")
    pose, sizes = shape(element, kind, compiler)
    volume, inertia = _ellipsoid(sizes) if kind == "ellipsoid" else uniform(kind, sizes)
    mass = density * volume if math.isnan(given) else given
    return Mass(mass, inertia=tuple(mass * x for x in inertia)).seen_from(pose)


def is_mesh(element: Element) -> bool:
    """Also a primitive that is fitted to one."""
    return element.text("type") in ("mesh", "sdf") or "mesh" in element.attributes


def shape(element: Element, kind: str, compiler: Compiler) -> tuple[Pose, tuple[float, ...]]:
    """Pose of a primitive in its parent, and its sizes as `io.robots.shapes.SHAPES` names them; of an ellipsoid the half axes."""
    count = SIZES[kind]
    if "fromto" in element.attributes:
        ends = element.vector("fromto", (0.0,) * 6)
        if kind == "sphere" or "pos" in element.attributes:
            raise element.problem("fromto is for a capsule, cylinder, box or ellipsoid without pos", "fromto")
        across = element.vector("size", (0.0, 0.0, 0.0), least=1)[0]
        along = minus(ends[:3], ends[3:])                       # z leads from the second end to the first
        pose = Pose(from_z(unit(along, element, "fromto")), tuple(x / 2 for x in plus(ends[:3], ends[3:])))
        sizes = (*(across,) * (count - 1), math.hypot(*along) / 2)
    else:
        pose, sizes = placement(element, compiler), element.vector("size", _ZERO, least=count)[:count]
    if min(sizes) <= 0:
        raise element.problem(f"the size of this {kind}", "size", found=element.text("size"),
                              expected=f"{count} number{'s' * (count > 1)} above 0")
    radii = {"box": 0, "ellipsoid": count}.get(kind, 1)                    # the first sizes; the others are half lengths
    return pose, tuple(x if k < radii else 2 * x for k, x in enumerate(sizes))


def shape_of(element: Element, frame: Pose, compiler: Compiler) -> LinkShape | None:
    """A primitive for pictures; None of what is none, and of ellipsoids. frame: of the geom's parent."""
    kind = element.text("type", "sphere")
    if kind not in SIZES or kind == "ellipsoid" or is_mesh(element):
        return None
    pose, sizes = shape(element, kind, compiler)
    return LinkShape(kind, sizes, compose(frame, pose))


def _ellipsoid(half_axes: Sequence[float]) -> tuple[float, Inertia]:
    """Volume and inertia for a mass of 1 kg."""
    a, b, c = (x * x / 5 for x in half_axes)
    return 4 / 3 * math.pi * math.prod(half_axes), (b + c, 0.0, 0.0, a + c, 0.0, a + b)


def total(parts: Sequence[Mass]) -> Mass:
    """Of parts in one frame."""
    parts = [part for part in parts if part.mass > 0]
    if len(parts) < 2:
        return parts[0] if parts else Mass()
    mass = math.fsum(part.mass for part in parts)
    com = tuple(math.fsum(part.mass * part.com[k] for part in parts) / mass for k in range(3))
    inertia = [0.0] * 6
    for part in parts:
        x, y, z = minus(part.com, com)
        moved = (y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y)
        inertia = [old + own + part.mass * step for old, own, step in zip(inertia, part.inertia, moved, strict=True)]
    return Mass(mass, com, tuple(inertia))


def bounded(body: Mass, compiler: Compiler) -> Mass:
    """With at least the mass and principal inertias that the compiler asks for, and with equal ones where they break the
    triangle inequality and are to be balanced."""
    mass = max(body.mass, compiler.least_mass)
    if not (compiler.least_inertia or compiler.balance):
        return Mass(mass, body.com, body.inertia)
    import numpy as np
    xx, xy, xz, yy, yz, zz = body.inertia
    values, R = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    found = np.maximum(values, compiler.least_inertia)
    if compiler.balance and found[0] + found[1] < found[2]:
        found[:] = found.mean()
    if np.array_equal(found, values):
        return Mass(mass, body.com, body.inertia)
    I = (R * found) @ R.T
    return Mass(mass, body.com, tuple(float(x) for x in I[np.triu_indices(3)]))
