"""Closures and couplings as two flat arrays for the kernels, and their names.

`loop_index` (int64)  header (8): constraints, rows m, terms, driven loops, chain entries, frames of registers, numbers of the
                      last list, numbers of the code;
                      then for each constraint
                      kind, body_a, body_b, first row, rows, common, drive, first term, terms, first chain entry, chain entries;
                      then the terms: v index, q index; then the chains; then what two chains share:
                      for each constraint and each up to it where their list begins (and the end), and the coordinates;
                      then the code of the functions of nonlinear couplings (`model.coupling_functions`).
`loop_constants`      pose_a and pose_b of each constraint (12 each: rotation by rows, translation); extent and sign of each;
                      length of each; then coefficients of the terms; then the constants of the functions.

common    the last common ancestor of both bodies, or the ground
drive     index of the prescribed motion that moves frame A, or -1
chain     the bodies whose joints can move a frame or a term: these bodies and their ancestors without the ground, descending
pose      frames A and B in their bodies, turned so that the axis is z (universal: x of A, y of B)
extent    length, radius or offset
sign      rolling: -1 for a sphere, 1 for a disc; else 0
body_a    nonlinear coupling: start of its code; body_b: number of its instructions
registers of functions, which all couplings share, are in frames of the workspace after those of the constraints
coefficient of the driver of a nonlinear coupling: a characteristic value, since -f' depends on q
length    characteristic length of the loop (see `LeverArms`); 0 for couplings, whose equations have no lever arms
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.errors import summarized
from liedyn.immutable import Immutable
from liedyn.model.coupling_functions import FunctionProgram, characteristic_slope, function_program
from liedyn.model.description import (
    COUPLING,
    FREE,
    LOOP_TYPES,
    NONLINEAR_COUPLING,
    NV,
    ONE_DOF,
    Coupling,
    Loop,
    Robot,
    coordinate_name,
)
from liedyn.model.links import Vector
from liedyn.model.spatial import pose, pose_to_array, rotation_of_z
from liedyn.model.validate import mimic_couplings

FRAME_SIZE = 12         # numbers of a frame in workspaces, which also hold the registers of functions
_CoordinateAnchor: TypeAlias = tuple[int, int, int, str]            # body, v index, q index, unit


@summarized
@dataclass(frozen=True, eq=False)
class ModelConstraint(Immutable):
    """A closure or coupling of the model.

    type           type in files; "coupling" for couplings and mimics
    kind           number of the type in the kernels (`model.description`)
    rows           slice of the residual and of the multipliers
    labels         names of the constraint equations: "vx", …; empty if there is only one equation
    units          unit of each residual, rad or m. Coupling: unit of its first term with the coefficient 1 or -1, else of its
                   first term
    a, b           names of the links, or `world`; empty for a coupling
    driven         whether frame A moves in its link by a prescribed motion
    turn           (3, 3) rotation from frame A of the kernels, whose axis is z, to frame A of the file
    length         characteristic length [m] of the loop (see `LeverArms`). Coupling: the longest of these, or that of the robot
    scales         residual of each equation that counts as one: 1 rad, or the length. Coupling: norm of its terms for
                   coordinates of 1 rad and of the length, because it may be written with any factor
    """

    name: str
    type: str
    kind: int
    rows: slice
    labels: tuple[str, ...]
    units: tuple[str, ...]
    a: str = ""
    b: str = ""
    driven: bool = False
    turn: Array | None = None
    length: float = 0.0
    scales: tuple[float, ...] = ()

    @property
    def constraint_equation_names(self) -> tuple[str, ...]:
        """Names of the constraint equations: "tip.vx", …; the name of the constraint if it has only one equation."""
        return tuple(coordinate_name(self.name, label) for label in self.labels)


@dataclass(slots=True)
class ConstraintAnchors:
    """The bodies, links and coordinates of the tree to which constraints refer."""

    parent: Sequence[int]                                       # of each body; -1 of the ground
    kind: Sequence[int]                                         # of each body's joint
    links: Mapping[str, tuple[int, Array]]                 # body, pose of the link in it
    coordinates: Mapping[tuple[str, str], _CoordinateAnchor]            # by joint and label

    def support(self, body: int) -> list[int]:
        """Return the body and its ancestors without the ground, starting with the body."""
        bodies = []
        while body > 0:
            bodies.append(body)
            body = self.parent[body]
        return bodies


def pack_constraints(robot: Robot, anchors: ConstraintAnchors,
                     arms: LeverArms) -> tuple[tuple[ModelConstraint, ...], Integers, Array]:
    """Return the constraints, `loop_index` and `loop_constants` of a validated robot.

    The constraints are its loops, couplings and mimics, in this order. All three results are empty if there are none.
    """
    elements: tuple[Loop | Coupling, ...] = (*robot.loops, *robot.couplings, *mimic_couplings(robot))
    if not elements:
        return (), np.zeros(0, np.int64), np.zeros(0)
    parts, row = [], 0
    for element in elements:
        part = _pack_closure(element, anchors, row) if isinstance(element, Loop) else _pack_coupling(element, anchors, row)
        parts.append(part)
        row = part.constraint.rows.stop
    closures = [part for part in parts if part.constraint.kind < COUPLING]
    lengths, of_robot = arms.closure_lengths((part.bodies, part.common, part.poses, part.extent if part.sign else 0.0)
                                             for part in closures)
    for part, length in zip(closures, lengths, strict=True):
        part.constraint = replace(part.constraint, length=length, scales=tuple(_unit_scales(part.constraint.units, length)))
    _place_programs(parts)
    length = max(lengths, default=of_robot)
    for part in parts:
        if part.constraint.kind >= COUPLING:
            sizes = (c * unit for (*_, c), unit in zip(part.terms, _unit_scales(part.term_units, length), strict=True))
            part.constraint = replace(part.constraint, length=length, scales=(math.hypot(*sizes),))
    return tuple(part.constraint for part in parts), _index(parts, anchors), _constants(parts)


def _unit_scales(units: Iterable[str], length: float) -> Iterator[float]:
    return (length if unit == "m" else 1.0 for unit in units)


def residual_weights(constraints: Iterable[ModelConstraint]) -> Array:
    """Return the (m,) factors that make residuals dimensionless: the inverse `scales` of the constraints."""
    return 1.0 / np.array([scale for constraint in constraints for scale in constraint.scales])


def constraint_geometry(loop_constants: Array, constraints: int) -> Array:
    """Return `loop_constants` without the lengths, which also depend on the joints and inertias of the robot."""
    return np.delete(loop_constants, np.arange(26 * constraints, 27 * constraints))


def packed_model(index: Integers, constants: Array, loop_index: Integers, loop_constants: Array) -> Array:
    """Return the four arrays as one array (see `joints.loop_joints.unpack_constraints`)."""
    if not loop_index.size:
        return np.zeros(0)
    return np.concatenate([index.view(np.float64), constants, loop_index.view(np.float64), loop_constants])


@dataclass(slots=True)
class _PackedConstraint:
    """A constraint and its entries in the arrays."""

    constraint: ModelConstraint
    bodies: tuple[int, int] = (0, 0)
    common: int = 0
    chain: list[int] = field(default_factory=list)
    poses: tuple[Array, Array] = (np.eye(4), np.eye(4))
    extent: float = 0.0
    sign: float = 0.0
    terms: list[tuple[int, int, float]] = field(default_factory=list)          # v index, q index, coefficient
    term_units: tuple[str, ...] = ()
    program: FunctionProgram | None = None


def _pack_closure(loop: Loop, anchors: ConstraintAnchors, row: int) -> _PackedConstraint:
    type_ = LOOP_TYPES[loop.type]
    bodies, frames = zip(*(anchors.links[name] if name in anchors.links else (0, np.eye(4)) for name in (loop.a, loop.b)),
                         strict=True)
    turns = _axis_rotations(loop)
    poses = tuple(frame @ pose(origin) @ turn
                  for frame, origin, turn in zip(frames, (loop.pose_a, loop.pose_b), turns, strict=True))
    constraint = ModelConstraint(loop.name, loop.type, type_.kind, slice(row, row + len(type_.labels)), type_.labels, type_.units,
                                 loop.a, loop.b, loop.driven, turns[0][:3, :3])
    above_a, above_b = (anchors.support(body) for body in bodies)
    return _PackedConstraint(constraint, bodies, next((body for body in above_a if body in above_b), 0),
                             sorted({*above_a, *above_b}, reverse=True), poses,
                             getattr(loop, type_.parameters[0]) if type_.parameters else 0.0,
                             {"disc": 1.0, "sphere": -1.0}[loop.shape] if "shape" in type_.parameters else 0.0)


def _pack_coupling(coupling: Coupling, anchors: ConstraintAnchors, row: int) -> _PackedConstraint:
    coordinates = [anchors.coordinates[joint, label] for joint, label, _ in coupling.terms]
    if coupling.function is not None:
        return _pack_nonlinear_coupling(coupling, coordinates, anchors, row)
    units = tuple(unit for *_, unit in coordinates)
    unit = next((unit for unit, (*_, c) in zip(units, coupling.terms, strict=True) if abs(c) == 1.0), units[0])
    constraint = ModelConstraint(coupling.name, "coupling", COUPLING, slice(row, row + 1), ("",), (unit,))
    return _PackedConstraint(constraint, chain=_coupled_bodies(coordinates, anchors), extent=coupling.offset,
                             terms=[(v, q, c) for (_, v, q, _), (_, _, c) in zip(coordinates, coupling.terms, strict=True)],
                             term_units=units)


def _coupled_bodies(coordinates: Iterable[_CoordinateAnchor], anchors: ConstraintAnchors) -> list[int]:
    return sorted({above for body, *_ in coordinates for above in anchors.support(body)}, reverse=True)


def _pack_nonlinear_coupling(coupling: Coupling, coordinates: Sequence[_CoordinateAnchor], anchors: ConstraintAnchors,
                             row: int) -> _PackedConstraint:
    """Return q_1 - f(q_2) = 0. The coefficient of q_2 is characteristic."""
    (_, v, q, unit), (_, driver_v, driver_q, driver_unit) = coordinates
    assert coupling.function is not None, "the coupling is nonlinear"
    program = function_program(coupling.function)
    constraint = ModelConstraint(coupling.name, "coupling", NONLINEAR_COUPLING, slice(row, row + 1), ("",), (unit,))
    return _PackedConstraint(constraint, chain=_coupled_bodies(coordinates, anchors), program=program,
                             terms=[(v, q, 1.0), (driver_v, driver_q, -characteristic_slope(coupling.function, program))],
                             term_units=(unit, driver_unit))


def _place_programs(parts: Sequence[_PackedConstraint]) -> None:
    """Write start and number of the instructions of each nonlinear coupling to its `bodies`."""
    first = 0
    for part in parts:
        if part.program is not None:
            part.bodies = first, len(part.program.code)
            first += part.program.code.size


def _axis_rotations(loop: Loop) -> tuple[Array, Array]:
    """Return the (4, 4) rotations from the frames A and B of the kernels to those of the file."""
    if not loop.axes:
        return np.eye(4), np.eye(4)
    type_ = LOOP_TYPES[loop.type]
    turns = [_axis_rotation(axis, default.index(1.0)) for axis, default in zip(loop.axes, type_.axes, strict=True)]
    return turns[0] if type_.turns_a else np.eye(4), turns[-1]


def _axis_rotation(axis: Vector, k: int) -> Array:
    """Return the shortest rotation that takes unit vector k to the axis."""
    order, T = [(k + 1) % 3, (k + 2) % 3, k], np.eye(4)
    T[np.ix_(order, order)] = rotation_of_z(np.array(axis)[order]) + 0.0          # no negative zeros
    return T


def _index(parts: list[_PackedConstraint], anchors: ConstraintAnchors) -> Integers:
    constraints, terms = [part.constraint for part in parts], [term for part in parts for term in part.terms]
    chains, n_terms = [part.chain for part in parts], [len(part.terms) for part in parts]
    driven = np.cumsum([constraint.driven for constraint in constraints])
    header = [len(parts), constraints[-1].rows.stop, len(terms), driven[-1], sum(map(len, chains)), 0, 0, 0]
    table = zip([constraint.kind for constraint in constraints], *zip(*(part.bodies for part in parts), strict=True),
                [constraint.rows.start for constraint in constraints], [len(constraint.labels) for constraint in constraints],
                [part.common for part in parts], np.where([constraint.driven for constraint in constraints], driven - 1, -1),
                _offsets(n_terms), n_terms, _offsets(map(len, chains)), list(map(len, chains)), strict=True)
    first = np.cumsum([0] + [NV[kind] for kind in anchors.kind[1:]])                # coordinate of body i: first[i - 1]
    shared = [[k for body in chain if body in other for k in range(first[body - 1], first[body])]
              for c, chain in enumerate(chains) for other in chains[:c + 1]]
    header[6] = len(shared) + 1 + sum(map(len, shared))
    programs = [part.program for part in parts if part.program is not None]
    first_constants = _offsets(len(program.constants) for program in programs)
    code = [program.moved(first).ravel() for program, first in zip(programs, first_constants, strict=True)]
    header[5], header[7] = -(-max((program.registers for program in programs), default=0) // FRAME_SIZE), sum(map(len, code))
    return np.concatenate([header, *table, [v for v, _, _ in terms], [q for _, q, _ in terms], *chains,
                           _offsets([*map(len, shared), 0]), *shared, *code]).astype(np.int64)


def _offsets(counts: Iterable[int]) -> list[int]:
    """Return the offsets of pieces of the given lengths in their concatenation."""
    return [0, *accumulate(counts)][:-1]


def _constants(parts: list[_PackedConstraint]) -> Array:
    poses = [pose_to_array(T) for part in parts for T in part.poses]
    extents = [x for part in parts for x in (part.extent, part.sign)]
    lengths = [part.constraint.length for part in parts]
    constants = [part.program.constants for part in parts if part.program is not None]
    return np.concatenate([*poses, extents, lengths, [c for part in parts for _, _, c in part.terms], *constants])


# Lever arms -------------------------------------------------------------------------------------------------------------

# Characteristic lengths of a robot: with them, quantities in metres and in radians are compared (ranks, pivots, residuals).
#
# A lever arm is the distance between two anchors on one rigid body: axes of rotation, and frames of closures. The ground counts
# only within a loop, so that lengths do not depend on the place of the robot; axes of translation have no place.

_ZERO_ARM = 1e-9         # of the maximum number among positions: lever arms that are shorter are zero (axes through one point)


@dataclass(slots=True)
class LeverArms:
    """Lever arms of a tree of bodies, of which body 0 is the ground.

    parent, kind  of the joint of each body
    S             (angular, linear) part of its screw
    T0            its pose (4, 4) in the parent at zero coordinates
    I             ten inertia parameters of the body
    """

    parent: Sequence[int]
    kind: Sequence[int]
    S: Sequence[tuple[float, float]]
    T0: Sequence[Array]
    I: Sequence[Array]

    def closure_lengths(self, closures: Iterable[tuple[tuple[int, int], int, Sequence[Array], float]]
                        ) -> tuple[list[float], float]:
        """Return the characteristic length [m] of each closure, and that of the robot.

        A closure consists of its two bodies, the last body that moves both, the poses of its frames in them and its radius (or
        zero). Its length is the longest lever arm of the loop or, if all are zero, that of the robot. The length of the robot is
        its longest lever arm, else the longest radius of gyration, else one metre.
        """
        closures = list(closures)
        arms = [max(self._longest_arm(bodies, common, poses), radius) for bodies, common, poses, radius in closures]
        on_bodies = [float(np.linalg.norm(self.T0[i][:3, 3])) for i in range(1, len(self.parent))
                     if self.parent[i] > 0 and self._rotates(i) and self._rotates(self.parent[i])]
        gyration = [math.sqrt(max(I[4] + I[7] + I[9], 0.0) / (2.0 * I[0])) for I in self.I[1:] if I[0] > 0.0]
        distances = [float(np.linalg.norm(T[:3, 3])) for T in (*self.T0, *(T for _, _, poses, _ in closures for T in poses))]
        minimum = _ZERO_ARM * max(distances, default=0.0)
        fallbacks = max([*arms, *on_bodies], default=0.0), max(gyration, default=0.0), 1.0
        *lengths, of_robot = (next(x for x in (arm, *fallbacks) if x > minimum) for arm in (*arms, 0.0))
        return lengths, of_robot

    def _rotates(self, body: int) -> bool:
        """Return whether the joint of a body has an axis, or a point, about which it turns."""
        return body > 0 and (self.kind[body] != ONE_DOF or self.S[body][0] != 0.0)

    def _longest_arm(self, bodies: tuple[int, int], common: int, poses: Sequence[Array]) -> float:
        longest, ends = 0.0, []
        for end, T in zip(bodies, poses, strict=True):
            body, point, turns = end, T[:3, 3], True
            while body != common:
                if turns and self._rotates(body):
                    longest = max(longest, float(np.linalg.norm(point)))
                point, turns = self.T0[body][:3, 3], self._rotates(body) and self.kind[body] != FREE
                body = self.parent[body]
            ends.append((point, turns))
        (a, a_turns), (b, b_turns) = ends
        return max(longest, float(np.linalg.norm(a - b))) if a_turns and b_turns else longest
