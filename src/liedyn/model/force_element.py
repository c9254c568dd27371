"""Force elements of a robot description: springs, dampers, gas springs, cables, torsion springs and bushings between two frames.

`pack_elements` writes their numbers for the kernels (`kernels.force_elements`): the energy and the resistance of an element are
piecewise polynomials of its length (or angle) and speed.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers
from liedyn.errors import ModelError, Place, nearest, summarized
from liedyn.model.element_values import as_float, as_floats, as_vectors, check_finite, check_pose, element_location, set_fields
from liedyn.model.interpolation import INTERPOLATIONS, MIN_POINTS, cubic_pieces
from liedyn.model.links import Pose, PoseLike, Vector, as_pose, vector
from liedyn.model.spatial import pose, pose_to_array
from liedyn.public_calls import explained

# Kinds of element in the kernels, the integers of an element (kind, body of A, body of B, first value, pieces of the energy,
# pieces of the resistance), the numbers of a gas, and those of a piece: its start and five ascending coefficients
AXIAL, CABLE, GAS, GAS_ISOTHERMAL, TORSION, BUSHING = range(6)
ELEMENT_SIZE = 6
GAS_VALUES = 4
PIECE_SIZE = 6

ZERO_LENGTH = 1e-12        # of the size of the robot: up to it, an element without force at distance zero has no direction
_MAX_POINTS = 500          # of a table: each piece is a selection in generated code
_UNIT_ROUNDING = 4 * 2.0**-52        # of the length of a normalized axis, as in `model.validate`
_SYMMETRIC = 1e-9          # of the maximum entry of a matrix: difference of entries that should be equal
_SEMIDEFINITE = 1e-9       # of the maximum eigenvalue of a matrix: a negative eigenvalue that is rounding
_ROUNDING = 1e-12          # of the maximum force of a table: of an interpolated force that should be zero


class ForceElementType(NamedTuple):
    """A type of force element.

    required     fields that it needs; of a tuple, exactly one
    optional     further fields that it may have
    coordinate   name and unit of what shortens or turns, and the unit of its force; empty for a bushing
    """

    required: tuple[str | tuple[str, ...], ...]
    optional: tuple[str, ...] = ()
    coordinate: tuple[str, str, str] = ("length", "m", "N")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of all fields that elements of this type may have."""
        names = (name for entry in self.required for name in ((entry,) if isinstance(entry, str) else entry))
        return (*names, *self.optional)


FORCE_ELEMENT_TYPES: dict[str, ForceElementType] = {
    "spring": ForceElementType((("stiffness", "table"),), ("free_length", "preload", "damping", "interpolation")),
    "damper": ForceElementType((("damping", "table"),), ("interpolation",)),
    "gas_spring": ForceElementType(("force", "extended_length", "stroke", "progression"), ("exponent", "damping")),
    "cable": ForceElementType(("stiffness", "free_length"), ("damping",)),
    "torsion": ForceElementType((("stiffness", "table"),), ("rest", "preload", "damping", "interpolation", "axis"),
                                ("angle", "rad", "N m")),
    "bushing": ForceElementType(("stiffness",), ("damping",), ("", "", "")),
}
_MATRIX = (6, 36)                      # numbers of the stiffness of a bushing: the diagonal, or all rows


@summarized
@dataclass(frozen=True, slots=True, init=False)
class ForceElement:
    """A spring, damper, gas spring, cable, torsion spring or bushing between two frames of links, or of the ground `world`.

    It acts with opposite forces on both links. Forces of springs, gas springs, dampers and cables act along the line between the
    origins of the frames and are positive where they pull the origins together.

    type             spring, damper, gas_spring, cable, torsion or bushing
    a, b             names of the links
    pose_a, pose_b   frames in them: a position [m], a `Pose`, or a (4, 4) matrix
    stiffness        [N/m], torsion [N m/rad]; of a bushing six numbers (about x y z, along x y z) or a (6, 6) matrix
    damping          [N s/m], torsion [N m s/rad]; a number, or (compression, extension); of a bushing as its stiffness
    free_length      [m] at which a spring has no force, or (lower, upper) between which it has none; default: the length where
                     all coordinates are zero, also those of followers. Length up to which a cable is slack
    rest             [rad] angle of B relative to A about the axis at which a torsion spring has no torque
    preload          [N] or [N m], added to the force of a linear spring
    table            instead of stiffness, points (length, force); of a damper instead of damping, (speed, force) with (0, 0)
    interpolation    of the table: linear, monotone or cubic. Straight lines continue it
    axis             of a torsion spring, with the same components in both frames; default: z
    force            [N] that a gas spring pushes with at its extended length
    extended_length, stroke   of a gas spring [m]
    progression      force at the end of the stroke divided by `force`
    exponent         polytropic exponent of the gas: 1 for slow and 1.4 for fast motion (nitrogen)

    Examples
    --------
    >>> rod = ld.Link("rod", mass=1.0, com=[0, 0, -0.5], inertia=[0.1, 0.1, 0.001])
    >>> pivot = ld.Joint("pivot", "revolute", "world", "rod", axis=[0, 1, 0])
    >>> spring = ld.ForceElement("spring", "spring", "world", "rod", pose_a=[0.3, 0, 0], pose_b=[0, 0, -0.4], stiffness=200,
    ...                          free_length=0.3)
    >>> model = ld.build(ld.Robot("pendulum", links=[rod], joints=[pivot], elements=[spring]))
    >>> ld.inverse_dynamics(model, [0.0], [0.0], [0.0]).round(3)
    array([9.6])
    """

    name: str
    type: str
    a: str
    b: str
    pose_a: Pose = Pose()
    pose_b: Pose = Pose()
    stiffness: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    free_length: tuple[float, ...] = ()
    rest: float = 0.0
    preload: float = 0.0
    table: tuple[tuple[float, float], ...] = ()
    interpolation: str = "monotone"
    axis: Vector = (0.0, 0.0, 1.0)
    force: float | None = None
    extended_length: float | None = None
    stroke: float | None = None
    progression: float | None = None
    exponent: float = 1.4
    place: Place = field(default=Place(), compare=False)

    @explained
    def __init__(self, name: str, type: str, a: str, b: str, pose_a: PoseLike = Pose(), pose_b: PoseLike = Pose(),   # noqa: PLR0913, B008
                 stiffness: ArrayLike = (), damping: ArrayLike = (), free_length: ArrayLike = (), rest: float = 0.0,
                 preload: float = 0.0, table: ArrayLike = (), interpolation: str = "monotone",
                 axis: ArrayLike = (0.0, 0.0, 1.0), force: float | None = None, extended_length: float | None = None,
                 stroke: float | None = None, progression: float | None = None, exponent: float = 1.4,
                 place: Place = Place()):                                                                        # noqa: B008
        optional = {"force": force, "extended_length": extended_length, "stroke": stroke, "progression": progression}
        set_fields(self, name=name, type=type, a=a, b=b, interpolation=interpolation, place=place, rest=as_float(rest),
                   preload=as_float(preload), exponent=as_float(exponent), axis=as_floats(axis), table=_as_points(table),
                   **{key: x if x is None else as_float(x) for key, x in optional.items()})
        set_fields(self, pose_a=as_pose(pose_a, element_location(self, "a"), "frame"),
                   pose_b=as_pose(pose_b, element_location(self, "b"), "frame"),
                   stiffness=_as_numbers(stiffness), damping=_as_numbers(damping), free_length=_as_numbers(free_length))


def _as_numbers(values: Any) -> tuple[Any, ...]:
    """Return a number, a sequence or a matrix as a flat tuple of floats."""
    try:
        return tuple(map(float, np.ravel(np.asarray(values, dtype=float))))
    except (TypeError, ValueError, OverflowError):
        return tuple(values) if isinstance(values, (list, tuple)) else (values,)


def _as_points(values: Any) -> tuple[Any, ...]:
    points = as_vectors(values)
    return points if isinstance(points, tuple) else (points,)


# Validation ------------------------------------------------------------------------------------------------------------------

def validate_element(element: ForceElement, links: Mapping[str, Any], body_of: Mapping[str, str]) -> ForceElement:
    """Return the element with a unit axis. Raise ModelError if it cannot be computed.

    body_of   the first link of the body of each link, and of the ground
    """
    if element.type not in FORCE_ELEMENT_TYPES:
        raise ModelError("unknown type of element", place=element_location(element, "type"), found=element.type,
                         expected="one of " + ", ".join(FORCE_ELEMENT_TYPES), hint=nearest(element.type, FORCE_ELEMENT_TYPES))
    for part, name in (("a", element.a), ("b", element.b)):
        if name not in body_of:
            raise ModelError(f"frame {part} is not on a link of this robot", place=element_location(element, part), found=name,
                             expected="a link's name or world", hint=nearest(name, links))
        check_pose(getattr(element, f"pose_{part}"), element_location(element, part), "frame")
    if body_of[element.a] == body_of[element.b]:
        raise ModelError("the element joins two frames of one body, which do not move relative to each other",
                         place=element_location(element, "b"), found=[element.a, element.b],
                         expected="links that move relative to each other")
    _check_parameters(element)
    if element.type == "bushing":
        for name in ("stiffness", "damping"):
            _check_matrix(element, name)
    else:
        _check_scalars(element)
    if element.table:
        _check_table(element)
    length = math.hypot(*element.axis)
    return replace(element, axis=vector(x / length for x in element.axis)) if abs(length - 1.0) > _UNIT_ROUNDING else element


def _check_parameters(element: ForceElement) -> None:
    """Raise ModelError for missing fields, and for fields of other types."""
    type_, default = FORCE_ELEMENT_TYPES[element.type], ForceElement("", element.type, "", "")
    present = {name for entry in FORCE_ELEMENT_TYPES.values() for name in entry.parameters
               if getattr(element, name) != getattr(default, name)}
    for name in sorted(present - set(type_.parameters)):
        raise ModelError(f"a {element.type} element has no {name}", place=element_location(element, name),
                         expected="one of " + ", ".join(type_.parameters))
    for entry in type_.required:
        names = (entry,) if isinstance(entry, str) else entry
        count = len(present.intersection(names))
        if count != 1:
            raise ModelError(f"a {element.type} element needs {' or '.join(names)}" if not count else
                             f"both {' and '.join(names)}", place=element_location(element, names[-1] if count else None),
                             expected="one of them" if count else None)
    if "interpolation" in present and not element.table:
        raise ModelError("interpolation needs a table", place=element_location(element, "interpolation"))
    if element.table and ("preload" in present or element.free_length or "rest" in present):
        name = "preload" if "preload" in present else "free_length" if element.free_length else "rest"
        raise ModelError(f"a table already contains the {name}", place=element_location(element, name), expected="one of them")
    check_finite(element.axis, 3, element_location(element, "axis"), "axis")
    if not math.hypot(*element.axis) > 0.0:
        raise ModelError("the axis is the zero vector", place=element_location(element, "axis"), expected="a non-zero vector")


# minimum of a number, and whether it must be larger
_BOUNDS = {"force": (0.0, True), "extended_length": (0.0, True), "stroke": (0.0, True), "progression": (1.0, True),
           "exponent": (1.0, False)}


def _check_scalars(element: ForceElement) -> None:
    for name in FORCE_ELEMENT_TYPES[element.type].parameters:
        value = getattr(element, name)
        if name in _BOUNDS:
            lower, strict = _BOUNDS[name]
            check_finite((value,), 1, element_location(element, name), name)
            if not (value > lower if strict else value >= lower):
                raise ModelError(f"wrong {name}", place=element_location(element, name), found=value,
                                 expected=f"a number {'above' if strict else 'of at least'} {lower:g}")
        elif name in ("rest", "preload"):
            check_finite((value,), 1, element_location(element, name), name)
        elif name in ("stiffness", "damping", "free_length") and value != ():
            _check_one_or_two(element, name)
    if element.type == "gas_spring" and not element.stroke < element.extended_length:          # type: ignore[operator]
        raise ModelError("the stroke is not shorter than the extended length", place=element_location(element, "stroke"),
                         found=element.stroke, expected=f"less than {element.extended_length:g}")
    if len(element.free_length) == 2 and element.preload:
        raise ModelError("a spring with a range of free lengths has no preload", place=element_location(element, "preload"))


def _check_one_or_two(element: ForceElement, name: str) -> None:
    values, place = getattr(element, name), element_location(element, name)
    pairs = {"damping": ("spring", "damper", "gas_spring", "torsion"), "free_length": ("spring",)}
    count = 2 if len(values) == 2 and element.type in pairs.get(name, ()) else 1
    check_finite(values, count, place, name.replace("_", " "))
    if min(values) < 0.0:
        raise ModelError(f"negative {name.replace('_', ' ')}", place=place, found=min(values), expected="zero or more")
    if name == "free_length" and values[-1] < values[0]:
        raise ModelError("the range of free lengths is swapped", place=place, found=list(values),
                         expected="the lower length first")


def _check_matrix(element: ForceElement, name: str) -> None:
    values, place = getattr(element, name), element_location(element, name)
    if values == () and name == "damping":
        return
    if len(values) not in _MATRIX:
        raise ModelError(f"wrong {name}", place=place, found=len(values), expected="6 numbers, or 6 rows of 6")
    check_finite(values, len(values), place, name)
    K = _matrix(values)
    if np.abs(K - K.T).max() > _SYMMETRIC * np.abs(K).max():
        raise ModelError(f"the {name} of a bushing is not symmetric", place=place, expected="a symmetric matrix")
    eigenvalues = np.linalg.eigvalsh(K)
    if eigenvalues[0] < -_SEMIDEFINITE * np.abs(eigenvalues).max():
        raise ModelError(f"the {name} of a bushing is not positive semidefinite", place=place,
                         found=[float(f"{x:.4g}") for x in eigenvalues], expected="eigenvalues of at least zero")


def _check_table(element: ForceElement) -> None:
    place = element_location(element, "table")
    if element.interpolation not in INTERPOLATIONS:
        raise ModelError("unknown interpolation", place=element_location(element, "interpolation"), found=element.interpolation,
                         expected="one of " + ", ".join(INTERPOLATIONS), hint=nearest(element.interpolation, INTERPOLATIONS))
    minimum = MIN_POINTS[element.interpolation]
    if not minimum <= len(element.table) <= _MAX_POINTS:
        raise ModelError(f"wrong number of points for {element.interpolation} interpolation", place=place,
                         found=len(element.table), expected=f"{minimum} to {_MAX_POINTS}")
    for point in element.table:
        check_finite(point, 2, place, "table")
    name = "speed" if element.type == "damper" else FORCE_ELEMENT_TYPES[element.type].coordinate[0]
    for (x, _), (following, _) in pairwise(element.table):
        if not following > x:
            raise ModelError(f"the {name}s in a table must increase", place=place, found=following,
                             expected=f"a number above {x:g}")
    if element.type == "damper":
        _check_dissipation(element, place)


def _check_dissipation(element: ForceElement, place: Place) -> None:
    """Raise ModelError if the force of a damper with a table has the sign opposite to its speed somewhere."""
    if (0.0, 0.0) not in element.table:
        raise ModelError("the table of a damper does not contain the point [0, 0]", place=place,
                         found=[list(point) for point in element.table], expected="force 0 at speed 0")
    pieces = _integrated(element.table, element.interpolation)
    speeds = [x for x, _ in element.table]
    rounding = _ROUNDING * max(abs(y) for _, y in element.table)
    span = speeds[-1] - speeds[0]
    for k, (start, _, force, c2, c3, c4) in enumerate(pieces):
        low, high = start if k else -math.inf, pieces[k + 1, 0] if k + 1 < len(pieces) else math.inf
        extrema = start + np.roots([12.0 * c4, 6.0 * c3, 2.0 * c2]).real
        speeds += [float(x) for x in extrema if low < x < high]
        if span * c2 < -rounding and k in (0, len(pieces) - 1):                   # a line that changes sign farther out
            speeds.append(float(start - force / c2))
    for x in speeds:
        y = _force_at(pieces, x)
        if x * y < 0.0 and abs(y) > rounding:
            overshoots = element.interpolation == "cubic" and (x, y) not in element.table
            raise ModelError("a damper cannot supply energy: its force has the sign of the speed", place=place, found=[x, y],
                             expected="that sign between and beyond the points",
                             hint="interpolation: monotone does not overshoot" if overshoots else None)


# Numbers for the kernels ---------------------------------------------------------------------------------------------------

FrameInBody = tuple[int, Array]                    # body, pose in it


def pack_elements(elements: Sequence[ForceElement], frame_of: Callable[[str, Pose], FrameInBody],
                  home: Callable[[int], Array], size: float) -> tuple[Integers, Array, Array]:
    """Return the integers (6 n,), the frames (24 n,) and the values of validated elements for the kernels.

    frame_of   body of a frame in a link, and its pose in the body
    home       pose of a body at zero coordinates
    size       of the robot [m]: see `ZERO_LENGTH`
    """
    integers: list[int] = []
    frames: list[Array] = []
    values: list[Array] = []
    for element in elements:
        turn = axis_frame(element.axis) if element.type == "torsion" else np.eye(4)
        (a, Ta), (b, Tb) = (frame_of(link, x) for link, x in ((element.a, element.pose_a), (element.b, element.pose_b)))
        length = float(np.linalg.norm((home(a) @ Ta)[:3, 3] - (home(b) @ Tb)[:3, 3]))
        kind, packed, counts = _packed_values(element, length, size)
        integers += [kind, a, b, sum(map(len, values)), *counts]
        frames += [pose_to_array(Ta @ turn), pose_to_array(Tb @ turn)]
        values.append(packed)
    return (np.array(integers, dtype=np.int64), np.concatenate([np.zeros(0), *frames]), np.concatenate([np.zeros(0), *values]))


def axis_frame(axis: Vector) -> Array:
    """Return a rotation, as a pose, that turns z to the axis."""
    z = np.array(axis, dtype=float)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, :3] = np.column_stack([x, np.cross(z, x), z]) if abs(z[2]) < 1.0 or z[2] < 0.0 else np.eye(3)
    return T


def _packed_values(element: ForceElement, length: float, size: float) -> tuple[int, Array, tuple[int, int]]:
    """Return the kind, the values, and the numbers of pieces of energy and resistance.

    length   of the element at zero coordinates
    """
    if element.type == "bushing":
        return BUSHING, np.concatenate([_matrix(element.stiffness).ravel(), _matrix(element.damping).ravel()]), (0, 0)
    if element.type == "gas_spring":
        return _gas_numbers(element)
    resistance = _resistance_pieces(element)
    energy = _energy_pieces(element, length)
    kind = {"cable": CABLE, "torsion": TORSION}.get(element.type, AXIAL)
    start = ZERO_LENGTH * size if kind != TORSION and _force_at(energy, 0.0) == 0.0 else 0.0
    return kind, np.concatenate([[start], energy.ravel(), resistance.ravel()]), (len(energy), len(resistance))


def _gas_numbers(element: ForceElement) -> tuple[int, Array, tuple[int, int]]:
    """Return the numbers of a gas spring: force, length of the gas at the extended length, exponent, extended length."""
    resistance = _resistance_pieces(element)
    height = -element.stroke / math.expm1(-math.log(element.progression) / element.exponent)     # type: ignore[arg-type,operator]
    gas = [element.force, height, element.exponent, element.extended_length]
    return (GAS_ISOTHERMAL if element.exponent == 1.0 else GAS,
            np.concatenate([[0.0], np.array(gas, dtype=float), resistance.ravel()]), (0, len(resistance)))


def _resistance_pieces(element: ForceElement) -> Array:
    """Return the pieces (n, 6) of the dissipation potential, whose derivative is the resistance as a function of the speed."""
    if element.type == "damper" and element.table:
        return _integrated(element.table, element.interpolation)
    if not any(element.damping):
        return np.zeros((0, PIECE_SIZE))
    return np.array([[0.0, 0.0, 0.0, 0.5 * c, 0.0, 0.0] for c in element.damping])


def _energy_pieces(element: ForceElement, length: float) -> Array:
    """Return the pieces (n, 6) of the stored energy as a function of the length or the angle."""
    if element.type == "damper":
        return np.zeros((1, PIECE_SIZE))
    if element.table:
        return _integrated(element.table, element.interpolation)
    k, = element.stiffness

    def piece(start: float, stiffness: float, force: float = 0.0) -> list[float]:
        return [start, 0.0, force, 0.5 * stiffness, 0.0, 0.0]

    if element.type == "torsion":
        return np.array([piece(element.rest, k, element.preload)])
    if element.type == "cable":
        return np.array([piece(element.free_length[0], 0.0), piece(element.free_length[0], k)])
    free = element.free_length or (length,)
    if len(free) == 1:
        return np.array([piece(free[0], k, element.preload)])
    return np.array([piece(free[0], k), piece(free[0], 0.0), piece(free[1], k)])


def _force_at(pieces: Array, x: float) -> float:
    """Return the derivative of pieces at x."""
    start, _, c1, c2, c3, c4 = pieces[np.searchsorted(pieces[1:, 0], x, side="right")]
    s = x - start
    return float(c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * 4.0 * c4)))


def _integrated(points: Iterable[tuple[float, float]], interpolation: str) -> Array:
    """Return the pieces (n, 6) of the integral of a table, zero at its first point. Straight lines continue the table."""
    x, y = np.array(points, dtype=float).T
    starts, coefficients = cubic_pieces(x, y, interpolation)
    pieces = np.column_stack([starts, np.zeros(len(starts)), coefficients / np.arange(1, 5)])
    h = np.diff(x)
    pieces[2:, 1] = np.cumsum(sum(pieces[1:-1, 1 + k] * h ** k for k in range(1, 5)))
    return pieces


def _matrix(values: tuple[float, ...]) -> Array:
    """Return the (6, 6) matrix of a bushing: zero without values, from its diagonal, or from all rows."""
    if not values:
        return np.zeros((6, 6))
    x = np.array(values, dtype=float)
    K = np.diag(x) if len(x) == 6 else x.reshape(6, 6)
    return 0.5 * (K + K.T)


def element_frame(element: ForceElement, side: str) -> Array:
    """Return the pose (4, 4) of frame A or B, of a torsion spring with its axis along z, in its link."""
    T = pose(getattr(element, f"pose_{side}"))
    return T @ axis_frame(element.axis) if element.type == "torsion" else T


def undefined_force_text(element: ForceElement, length: float) -> str:
    """Return a text about the cause of a force that is not finite, at this length or angle."""
    if element.type == "gas_spring":
        _, height, _, extended = _gas_numbers(element)[1][1:1 + GAS_VALUES]
        shortest = extended - height
        if 0.0 < length <= shortest:
            return (f"the gas spring {element.name} is {length:.6g} m long, but its gas has no volume left at {shortest:.6g} m; "
                    f"expected a length above that, up to {extended:g} m")
    if element.type == "torsion":
        return f"the torsion spring {element.name} has no angle: b is turned by half a turn about an axis normal to that of a"
    return (f"the force of the {element.type.replace('_', ' ')} {element.name} has no direction: its ends coincide, and it has a "
            "force at length zero")
