"""Warnings about robots that can be computed but are probably not intended."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import LiedynWarning, Place
from liedyn.model.description import FREE, NV, ONE_DOF, SINGULAR_PIVOT, Joint, Link, Loop, Robot, Screw
from liedyn.model.link_tree import Body, Element, LinkTree, element_location, links_by_body, principal_inertias
from liedyn.model.spatial import adjoint, exp_screw, inertia_matrix, inverse, symmetric_matrix

TRIANGLE_ROUNDING = 1e-6             # of the maximum principal inertia: below it is the rounding of a printed number
SEMIDEFINITE_ROUNDING = 1e-9         # of the maximum principal inertia: a negative one that small is rounding
NO_INERTIA = 1e-12                   # m^2, in SI since files are: a radius of gyration below 1 um is noise of CAD programs
GYRATION = (1e-4, 10.0)              # m, in SI since it looks for wrong units: outside is absurd for a robot's body
DEPENDENT = 1e-9                     # of screws of unit length: a singular value below it is rounding of a printed number
UNIT_ROUNDING = 1e-5                 # of an axis's length: rounding of a printed number


def robot_warnings(robot: Robot, tree: LinkTree, bodies: dict[str, Body]) -> Iterator[LiedynWarning]:
    """Yield the warnings of a robot without errors. Its axes must not be normalized yet."""
    for first, links in links_by_body(tree).items():
        if len(links) > 1:
            for link in links:
                if is_not_semidefinite(symmetric_matrix(link.inertia), link.mass):
                    yield _warning("negative-inertia", link, "its own inertia is not positive semidefinite", "inertia")
        if first in tree.links and (first != tree.root or robot.base == "floating"):
            yield from _body_warnings(tree.links[first], bodies[first], len(links))
    names = {joint.name for joint in robot.joints}
    for joint in robot.joints:
        yield from _joint_warnings(joint, names)
    for loop in robot.loops:
        yield from _axis_warnings(loop)


def is_not_semidefinite(inertia: Array, mass: float) -> bool:
    """Return whether an inertia about the com is not positive semidefinite beyond rounding (and beyond that of a micrometre)."""
    values = principal_inertias(inertia)
    return bool(values[0] < -(SEMIDEFINITE_ROUNDING * np.abs(values).max() + NO_INERTIA * mass))


def _warning(code: str, element: Element, message: str, part: str | None = None) -> LiedynWarning:
    place = element_location(element, part)
    return LiedynWarning(code, message, place=Place(place.file, place.line, element.name))


def _body_warnings(link: Link, body: Body, count: int) -> Iterator[LiedynWarning]:
    of = "" if count == 1 else f" ({count} links welded together)"
    negligible = NO_INERTIA * body.mass
    small, middle, large = map(float, principal_inertias(body.inertia))
    if large > small + middle + TRIANGLE_ROUNDING * abs(large) and large > negligible:
        yield _warning("triangle-inequality", link, f"the body{of} has principal inertias {small:.4g}, {middle:.4g}, {large:.4g} "
                       "kg m^2: the maximum exceeds the sum of the others", "inertia")
    if body.mass > 0 and large <= negligible:
        yield _warning("point-mass", link, f"the body{of} has mass {body.mass:.4g} kg and no rotational inertia", "inertia")
    elif body.mass > 0 and not GYRATION[0] <= (radius := math.sqrt(large / body.mass)) <= GYRATION[1]:
        yield _warning("inertia-far-off", link, f"the body{of} of {body.mass:.4g} kg has a radius of gyration of {radius:.3g} m",
                       "inertia")
    elif body.mass == 0 and body.inertia.any():
        yield _warning("inertia-far-off", link, f"the body{of} has rotational inertia and no mass", "inertia")


def _axis_warnings(element: Joint | Loop) -> Iterator[LiedynWarning]:
    for axis in element.axes:
        length = math.hypot(*axis)
        if abs(length - 1) > UNIT_ROUNDING:
            yield _warning("axis-not-unit", element, f"the axis has length {length:.6g}; it was scaled to 1", "axis")


def _joint_warnings(joint: Joint, names: set[str]) -> Iterator[LiedynWarning]:
    yield from _axis_warnings(joint)
    for label, limits in zip(joint.labels, joint.coordinates, strict=True):
        of = f" of {label}" if label else ""
        missing = [name for name, value in (("lower", limits.lower), ("upper", limits.upper)) if math.isinf(value)]
        if joint.type in ("revolute", "prismatic") and missing:
            suggestion = ", or type: continuous if it turns without limits" if joint.type == "revolute" else ""
            yield _warning("limits-missing", joint, f"a {joint.type} joint without {' and '.join(missing)} limit "
                           f"(give it limits{suggestion})", "limits")
        if limits.lower == limits.upper:
            yield _warning("limits-zero-range", joint, f"lower and upper limit{of} are both {limits.lower:g}", "limits")
        for name, value in (("velocity", limits.velocity), ("effort", limits.effort)):
            if value < 0:
                yield _warning("limits-negative", joint, f"the {name} limit{of} is {value:g}", "limits")
    if joint.mimic and joint.labels and joint.mimic.joint not in names:
        yield _warning("mimic", joint, f"mimics {joint.mimic.joint}, which does not exist; it moves independently",
                       "mimic")
    if joint.type == "euler" and joint.sequence[0] == joint.sequence[2]:
        yield _warning("singular-at-zero", joint, f"the Euler angles {joint.sequence} are singular at zero", "sequence")
    if joint.type == "screws" and _are_dependent(joint.screws):
        yield _warning("singular-at-zero", joint, "the screws are linearly dependent at zero", "screws")


def _are_dependent(screws: Sequence[Screw]) -> bool:
    """Return whether screws are linearly dependent. The longest lever arm of the screws converts moments to directions."""
    S = np.array(screws, dtype=float)
    size = np.linalg.norm(S[:, :3], axis=1)
    turns = size > 0.0
    arm = (np.linalg.norm(S[turns, 3:], axis=1) / size[turns]).max(initial=0.0) or 1.0
    S[turns, 3:] /= arm
    return bool(np.linalg.matrix_rank(S / np.linalg.norm(S, axis=1, keepdims=True), tol=DEPENDENT) < len(screws))


# articulation -----------------------------------------------------------------------------------------------------------

# Does each joint have an inertia to act on? Decided on the articulated inertias (K1 Table 3) of random configurations,
# in plain NumPy: once a model.

# Smallest eigenvalue of D = S^T AI S + armature, relative to the inertia that it is made of: the moments and masses of all bodies
# that the joint carries, and its armature. Each coordinate is divided by its own, so that moments are not compared with masses.
# Rounding leaves 1e-16 to 1e-14; bodies in use leave more than 1e-9.
_VANISHING = 1e-12
_N_CONFIGURATIONS = 3              # a joint that is singular in one configuration only is a matter of the run, not of the model


def joints_without_inertia(parent: Sequence[int], kind: Sequence[int], S: Sequence[tuple[float, float]], T0: Sequence[Array],
                           I: Sequence[Array], armature: Array) -> tuple[list[int], Array]:
    """Return the bodies whose joint moves no inertia, and the pivots (nv,) below which a pivot is rounding.

    Their articulated inertia vanishes in every configuration tried; the outermost body is the first. The arguments are those of
    the kernels (`joints.joint_model`), one entry per body, and the armature (nv,).
    """
    rng = np.random.default_rng(7)
    bare = set(range(1, len(parent)))
    floor = np.zeros(len(armature))
    for _ in range(_N_CONFIGURATIONS):
        vanishing, scale = _vanishing_inertias(parent, kind, S, T0, I, armature, rng)
        bare &= vanishing
        floor = np.maximum(floor, SINGULAR_PIVOT * scale)
        if not bare:
            break
    return sorted(bare, reverse=True), floor


def _vanishing_inertias(parent: Sequence[int], kind: Sequence[int], S: Sequence[tuple[float, float]], T0: Sequence[Array],
                        I: Sequence[Array], armature: Array, rng: np.random.Generator) -> tuple[set[int], Array]:
    """Return the bodies whose joint moves no inertia in one random configuration, and the scale (nv,) of each pivot."""
    n = len(parent)
    AI = [inertia_matrix(x) for x in I]
    size = np.zeros((n, 2))       # turning and sliding: what the articulated inertia is made of, before joints took their part
    end = np.cumsum([0] + [NV[k] for k in kind[1:]])
    vanishing, scales = set(), np.empty(len(armature))
    for i in range(n - 1, 0, -1):
        columns, motion = _random_joint_motion(kind[i], S[i], rng)
        columns_of_joint = slice(end[i - 1], end[i])
        if np.any(I[i]):
            size[i] = np.trace(AI[i][:3, :3]), np.trace(AI[i][3:, 3:])
        U = AI[i] @ columns
        rotor = np.diag(armature[columns_of_joint])
        D = columns.T @ U + rotor
        scale = (columns[:3]**2).sum(0) * size[i, 0] + (columns[3:]**2).sum(0) * size[i, 1]
        scales[columns_of_joint] = scale
        whole = scale + armature[columns_of_joint]
        unit = np.sqrt(np.where(whole > 0.0, whole, 1.0))
        if np.linalg.eigvalsh(D / np.outer(unit, unit))[0] <= _VANISHING:
            vanishing.add(i)
            D = D + np.diag(unit**2)                                          # continue, to find others
        T = T0[i] @ motion
        X = adjoint(inverse(T))
        AI[parent[i]] = AI[parent[i]] + X.T @ _inertia_without_joint(AI[i], columns, U, D, rotor) @ X
        size[parent[i]] += size[i, 0] + size[i, 1] * (T[:3, 3] @ T[:3, 3]), size[i, 1]
    return vanishing, scales


def _inertia_without_joint(AI: Array, S: Array, U: Array, D: Array, rotor: Array) -> Array:
    """Return Pi = AI - U D^-1 U^T with U = AI S, the inertia that the joint transmits to the parent (K1 Table 3).

    Computed as L^T AI L + K J K^T with K = U D^-1, L = 1 - S K^T and the armature J: a sum of squares is symmetric and positive
    semidefinite, and S^T Pi S vanishes to the square of the rounding. With the difference, rounding in that block grows from
    joint to joint, until after some 90 ball joints it exceeds the inertia.
    """
    K = np.linalg.solve(D, U.T).T
    L = np.eye(6) - S @ K.T
    Pi: Array = L.T @ AI @ L + K @ rotor @ K.T
    symmetric: Array = 0.5 * (Pi + Pi.T)
    return symmetric


def _random_joint_motion(kind: int, S: tuple[float, float], rng: np.random.Generator) -> tuple[Array, Array]:
    """Return S (6, k) in the body frame and a random motion (4, 4) of a joint. S of ONE_DOF: (angular, linear) part along z."""
    if kind == ONE_DOF:
        screw = np.array([0, 0, S[0], 0, 0, S[1]])
        return screw[:, None], exp_screw(screw, rng.uniform(-2, 2))
    columns, T = np.eye(6)[:, :NV[kind]], np.eye(4)
    T[:3, :3] = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    T[:3, :3] *= np.linalg.det(T[:3, :3])
    if kind == FREE:
        T[:3, 3] = rng.standard_normal(3)
    return columns, T
