"""The model of a robot: flat arrays for the kernels, and names of joints, links and coordinates."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from liedyn.arrays import Array, ArrayLike, Base, Integers, Mask
from liedyn.errors import (
    LiedynWarning,
    ModelError,
    NameLookupError,
    Place,
    UsageError,
    WarningLog,
    list_names,
    nearest,
    of_level,
    summarized,
)
from liedyn.immutable import Immutable, read_only, read_only_property
from liedyn.model.articulated_inertia import BodyTree, joints_without_inertia, vanishing_coordinates
from liedyn.model.constraint_arrays import ConstraintAnchors, LeverArms, ModelConstraint, pack_constraints, packed_model
from liedyn.model.coupling_functions import function_program
from liedyn.model.couplings import (
    CoordinateIndex,
    Elimination,
    FunctionCoupling,
    check_function_couplings,
    eliminate,
    jointly_fixed,
)
from liedyn.model.description import (
    COUPLING,
    FREE,
    HAS_CHILDREN,
    INDEX_HEADER,
    JOINT_TYPES,
    LAST_CHILD,
    NO_AXIAL_INERTIA,
    NQ,
    NV,
    ONE_DOF,
    ROTATES,
    TRANSLATES,
    WORLD,
    Joint,
    Robot,
    coordinate_name,
)
from liedyn.model.element_values import as_each, as_inertia, check_finite, element_location
from liedyn.model.force_element import pack_elements
from liedyn.model.keyframes import JointState, keyframe_states
from liedyn.model.link_tree import LinkTree, build_link_tree, reduced_inertias
from liedyn.model.links import Link, Pose, as_pose, vector
from liedyn.model.model_cache import ModelCache, ModelValue
from liedyn.model.spatial import (
    adjoint,
    bracket,
    exp_screw,
    inertia_from_link,
    inverse,
    pose,
    pose_to_array,
    screw_frame,
    transform_inertia,
)
from liedyn.model.validate import linear_couplings, validate, validate_changes
from liedyn.model.warnings import fixed_joints_warning, inertia_warnings
from liedyn.public_calls import explained

Value = TypeVar("Value")
_SPANNING_TREE = ModelValue("spanning tree")


@dataclass(frozen=True)
class _EliminationKey:
    """Key of an `Elimination`. prescribed: the mask of prescribed coordinates as bytes."""

    prescribed: bytes


class KernelArrays(NamedTuple):
    """Arrays of a model for compiled functions: writeable, as their signatures require, but never written to."""

    index: Integers                      # type: ignore[assignment]  # instead of the method of tuples
    constants: Array
    loop_index: Integers
    loop_constants: Array
    packed_model: Array


@summarized
@dataclass(frozen=True, eq=False)
class ModelJoint(Immutable):
    """A moving joint of the model: one joint to the user, one or more bodies (screws) to the kernels.

    home     (4, 4) pose of the child link in the parent link at zero coordinates
    screws   (k, 6) rows [w; v] in the child's frame at zero coordinates: T(q) = home exp(S1 q1) … exp(Sk qk);
             None for ball and free joints
    """

    name: str
    type: str
    kind: int
    parent: str
    child: str
    q: slice
    v: slice
    home: Array
    screws: Array | None
    first_body: int
    body: int


@dataclass(frozen=True, eq=False, init=False)
class Model(Immutable):
    """A robot model for computation, created by `liedyn.load` or `liedyn.build`.

    Immutable: its arrays are read-only. `with_changes` returns a copy with other masses, gravity, damping, ….

    nq, nv               sizes of q and of v, a, tau
    joints               moving joints in order (`ModelJoint`); fixed joints are merged away
    link_names           all links of the file, also those merged into others
    q_names, q_units     one per coordinate: 'elbow', 'base.px', …; rad, m, or '' for quaternion components
    v_names, v_units     the same for velocities (rad or m; their forces are N m or N)
    a_names, tau_names   the same for accelerations and forces: 'elbow', 'base.dvz'; 'elbow', 'base.fz'
    lower, upper, velocity_limit, effort_limit, acceleration_limit, jerk_limit   (nv,), infinite if the file has none (also for
                  ball and free joints)
    gravity              (3,) m/s^2 in the world frame
    index, constants     arrays for the kernels; see `joints.joint_model`
    constraints          closures, couplings and mimics (`ModelConstraint`). Parts of the constrained equations (mass matrix, bias
                         force, regressor, …) are those of the open tree; dynamics that would ignore loops raise an error
    loop_index, loop_constants   constraints as arrays for the kernels; see `model.constraint_arrays`; empty without constraints
    packed_model         index, constants, loop_index and loop_constants as one array
    moves_inertia        whether every joint of the open tree moves an inertia: the mass matrix is positive definite, except in
                         singular configurations of compound joints
    single_calls         data that functions of one state reuse, by (function, options); without a lock, for speed

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> model.joint_names, model.v_index("elbow"), model.neutral()
    (('shoulder', 'elbow'), slice(1, 2, None), array([0., 0.]))
    """

    name: str
    description: Robot
    base: Base
    gravity: Array
    nq: int
    nv: int
    joints: tuple[ModelJoint, ...]
    link_names: tuple[str, ...]
    link_body: Integers
    link_pose: Array
    link_parents: tuple[str | None, ...]
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]
    q_units: tuple[str, ...]
    v_units: tuple[str, ...]
    lower: Array
    upper: Array
    velocity_limit: Array
    effort_limit: Array
    acceleration_limit: Array
    jerk_limit: Array
    index: Integers
    constants: Array
    warnings: tuple[LiedynWarning, ...] = field(default=(), compare=False)
    constraints: tuple[ModelConstraint, ...] = ()
    loop_index: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    loop_constants: Array = field(default_factory=lambda: np.zeros(0))
    packed_model: Array = field(default_factory=lambda: np.zeros(0))
    moves_inertia: bool = True
    _arrays: KernelArrays = field(init=False, repr=False, compare=False)
    single_calls: dict[Hashable, Any] = field(init=False, repr=False, compare=False)
    _cache: ModelCache = field(init=False, repr=False, compare=False)

    def __init__(self, *_: Any, **__: Any):
        """Raise UsageError, also for `dataclasses.replace`: it would leave fields that depend on the changed ones as they are."""
        raise UsageError("a Model is immutable and created by ld.load or ld.build (a copy with different parameters: "
                         "model.with_changes(gravity=..., mass={...}, ...); with other links, joints or loops: "
                         "ld.build(dataclasses.replace(model.description, ...)))")

    @classmethod
    def _from_fields(cls, **values: Any) -> Model:
        """Return a model with these values of all fields; fields with a default may be omitted."""
        model = object.__new__(cls)
        for item in fields(cls):
            if item.init and item.name not in values:
                values[item.name] = item.default_factory() if callable(item.default_factory) else item.default
        model.__setstate__(values)
        return model

    def _copy(self, **changes: Any) -> Model:
        """Return a copy with other values of some fields, and without generated code."""
        return self._from_fields(**self.__getstate__() | changes)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without those that are derived from others."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.init}

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = KernelArrays(*(np.require(state[name], requirements=["C", "A", "W"]) for name in KernelArrays._fields))
        values = state | arrays._asdict()
        vars(self).update({name: read_only(x) for name, x in values.items()} | {
            "_arrays": arrays, "single_calls": {}, "_cache": ModelCache()})

    @explained
    def with_changes(self, *,                                                # noqa: PLR0913  # one for each kind of number
                     gravity: ArrayLike | None = None, mass: Mapping[str, float] | None = None,
                     com: Mapping[str, ArrayLike] | None = None, inertia: Mapping[str, ArrayLike] | None = None,
                     origin: Mapping[str, ArrayLike] | None = None, armature: Mapping[str, ArrayLike] | None = None,
                     damping: Mapping[str, ArrayLike] | None = None, friction: Mapping[str, ArrayLike] | None = None,
                     stiffness: Mapping[str, ArrayLike] | None = None, rest: Mapping[str, ArrayLike] | None = None,
                     lower: Mapping[str, ArrayLike] | None = None, upper: Mapping[str, ArrayLike] | None = None,
                     velocity_limit: Mapping[str, ArrayLike] | None = None,
                     effort_limit: Mapping[str, ArrayLike] | None = None,
                     acceleration_limit: Mapping[str, ArrayLike] | None = None,
                     jerk_limit: Mapping[str, ArrayLike] | None = None) -> Model:
        """Return a copy with other numbers, as if they were in the robot file. All other numbers are unchanged.

        Parameters
        ----------
        gravity : (3,) array, optional
            [m/s^2] in the world frame.
        mass : {link: number}
            [kg]. The centre of mass and the inertia about it stay.
        com : {link: (3,) array}
            Centre of mass in the link frame [m].
        inertia : {link: (3, 3) array, its xx, xy, xz, yy, yz, zz, or its diagonal xx, yy, zz}
            About the centre of mass, along the axes of the link [kg m^2].
        origin : {joint: (4, 4) array}
            Pose of the child link in the parent link at zero coordinates, also of fixed joints.
        armature, damping, friction, stiffness, rest, lower, upper : {joint or coordinate: number}
        velocity_limit, effort_limit, acceleration_limit, jerk_limit : {joint or coordinate: number}
            A name of `joint_names`, or of `v_names` for one coordinate; for a joint also one number for each of its coordinates.

        Raises
        ------
        NameLookupError
            For links, joints and coordinates that the model does not have, with the nearest name.
        ModelError
            For numbers that cannot be computed with: a negative mass, an inertia that is not positive semidefinite, …

        Examples
        --------
        >>> model = ld.load("robots/double_pendulum.yaml")
        >>> moon = model.with_changes(gravity=[0, 0, -1.62], mass={"lower": 2.0}, damping={"elbow": 0.1})
        >>> ld.gravity_force(moon, [0.3, -0.2]).round(3)
        array([1.597, 0.242])
        """
        return apply_changes(self, gravity, {"mass": mass, "com": com, "inertia": inertia}, origin, {
            "armature": armature, "damping": damping, "friction": friction, "stiffness": stiffness, "rest": rest,
            "lower": lower, "upper": upper, "velocity": velocity_limit, "effort": effort_limit,
            "acceleration": acceleration_limit, "jerk": jerk_limit})

    def cached(self, key: Hashable, build: Callable[[], Value], limit: int | None = None) -> Value:
        """Return the cached value of `key`. The first call builds it.

        Parameters
        ----------
        key : hashable
            A frozen dataclass with all that the value depends on, except for the model (see `model.model_cache`).
        build : function
            Returns the value. One thread builds at a time, so it must not wait for another thread that calls this method.
        limit : int, optional
            So many values with a limit are kept; the least recently used are removed. Default: the value is kept.
        """
        value: Value = self._cache.get(key, build, limit)
        return value

    def clear_cache(self) -> None:
        """Remove generated code, tables and workspaces, which later calls build or load again."""
        self._cache.clear()
        self.single_calls.clear()

    @cached_property
    def sizes(self) -> tuple[int, int, int, int]:
        """Numbers of bodies (with the ground), of coordinates nq and nv, and of links."""
        return int(self.index[0]), self.nq, self.nv, len(self.link_names)

    @cached_property
    def paths(self) -> Integers:
        """(3, nv): above, top and last of each velocity coordinate (see `joints.joint_model`)."""
        first = INDEX_HEADER + 6 * self.n_bodies + len(self.link_names)
        return self.index[first:first + 3 * self.nv].reshape(3, self.nv)

    @cached_property
    def quaternions(self) -> dict[str, slice]:
        """Slice of q of the quaternion of each ball or free joint, by the name of the joint."""
        return {joint.name: slice(joint.q.stop - 4, joint.q.stop) for joint in self.joints if joint.kind != ONE_DOF}

    @cached_property
    def nc(self) -> int:
        """Number of constraint equations."""
        return self.constraints[-1].rows.stop if self.constraints else 0

    @property
    def n_frames(self) -> int:
        """Number of frames in workspaces of constraints: see `joints.loop_joints.frame_count`."""
        return len(self.constraints) + int(self.loop_index[5]) if self.constraints else 0

    @cached_property
    def driven(self) -> int:
        """Number of driven loops."""
        return sum(constraint.driven for constraint in self.constraints)

    @cached_property
    def constraint_equation_names(self) -> tuple[str, ...]:
        """Names of the constraint equations: "tip.vx", …; the name of the constraint if it has only one equation."""
        return tuple(name for constraint in self.constraints for name in constraint.constraint_equation_names)

    @property
    def constraint_equation_units(self) -> tuple[str, ...]:
        """Unit of each constraint equation, rad or m."""
        return tuple(unit for constraint in self.constraints for unit in constraint.units)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of `joints`."""
        return tuple(joint.name for joint in self.joints)

    @property
    def source(self) -> str | None:
        """Path of the robot file, or None."""
        return self.description.source

    @property
    def n_bodies(self) -> int:
        """Number of bodies of the kernels, with the ground."""
        return int(self.index[0])

    @property
    def has_passive_forces(self) -> bool:
        """Whether a joint has damping, friction or a spring, or the robot has force elements."""
        return bool(self.index[4])

    def spanning_tree(self) -> Model:
        """The robot without loops, couplings and mimics, for dynamics of the open tree; the model itself if it has none."""
        if not self.constraints:
            return self
        return self.cached(_SPANNING_TREE, self._without_constraints)

    def _without_constraints(self) -> Model:
        robot, none = self.description, np.zeros(0)
        robot = replace(robot, loops=(), couplings=(), joints=tuple(replace(joint, mimic=None) for joint in robot.joints))
        return self._copy(description=robot, constraints=(), loop_index=none.astype(np.int64), loop_constants=none,
                          packed_model=none)

    @cached_property
    def has_only_linear_couplings(self) -> bool:
        """Whether all constraints are linear couplings and mimic joints, which dynamics eliminate; True without constraints.

        Loops and nonlinear couplings have multipliers.
        """
        return all(constraint.kind == COUPLING for constraint in self.constraints)

    @cached_property
    def has_only_couplings(self) -> bool:
        """Whether the robot has no loops: its constraints are couplings, also nonlinear ones, and mimic joints."""
        return all(constraint.kind >= COUPLING for constraint in self.constraints)

    @cached_property
    def function_couplings(self) -> tuple[FunctionCoupling, ...]:
        """Nonlinear couplings, in the order of the file."""
        couplings = []
        for coupling in self.description.couplings:
            if coupling.function is not None:
                follower, driver = (self._single_coordinate(joint, label) for joint, label, _ in coupling.terms)
                couplings.append(FunctionCoupling(coupling.name, follower, driver, function_program(coupling.function)))
        return tuple(couplings)

    def _single_coordinate(self, joint: str, label: str) -> CoordinateIndex:
        name = coordinate_name(joint, label)                   # of one coordinate: the same in q and v
        return CoordinateIndex(self.q_names.index(name), self.v_names.index(name))

    def elimination(self, prescribed: Mask | None = None) -> Elimination:
        """Return the followers of linear couplings and mimic joints, and their values by independent coordinates.

        prescribed: (nv,) bool, coordinates that are independent where the couplings allow it. Raises ModelError if couplings
        contradict each other.
        """
        mask = np.zeros(self.nv, dtype=bool) if prescribed is None else prescribed
        return self.cached(_EliminationKey(mask.tobytes()), lambda: self._eliminate(mask))

    def _eliminate(self, prescribed: Mask) -> Elimination:
        robot, names = self.description, {joint.name: joint for joint in self.description.joints}
        coordinates = [(joint.name, label) for joint in self.joints            # a floating base has no joint in the description
                       for label in (names[joint.name].labels if joint.name in names else [""] * NV[FREE])]
        length = max((constraint.length for constraint in self.constraints if constraint.kind == COUPLING), default=1.0)
        unit = np.array([length if unit == "m" else 1.0 for unit in self.v_units])
        mimics = np.array([not label and names[joint].mimic is not None if joint in names else False
                           for joint, label in coordinates], dtype=bool)
        return eliminate(linear_couplings(robot), coordinates, unit, mimics, prescribed)

    @cached_property
    def a_names(self) -> tuple[str, ...]:
        """Name of each acceleration in files: that of its velocity, and of twists dwx … dvz."""
        return self._component_names(("dw", "dv"))

    @cached_property
    def tau_names(self) -> tuple[str, ...]:
        """Name of each generalized force in files: that of its velocity, and of twists mx … fz."""
        return self._component_names(("m", "f"))

    def _component_names(self, parts: tuple[str, str]) -> tuple[str, ...]:
        names = list(self.v_names)
        for joint in self.joints:
            if joint.screws is None:                           # a ball or a free joint: its velocity is a twist
                components = [f"{joint.name}.{part}{axis}" for part in parts for axis in "xyz"]
                names[joint.v] = components[:joint.v.stop - joint.v.start]
        return tuple(names)

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of the velocity coordinates that no coupling and no mimic joint determines: the drivers."""
        if not self.function_couplings:
            return tuple(self.v_names[k] for k in self.elimination().independent)
        return tuple(self.v_names[k] for k in np.flatnonzero(~self.follows))

    @read_only_property
    def follows(self) -> Mask:
        """(nv,) bool, coordinates that couplings and mimic joints determine."""
        follows = self.function_followers.copy()
        follows[self.elimination(self.function_followers).follower] = True
        return follows

    @read_only_property
    def function_followers(self) -> Mask:
        """(nv,) bool, coordinates that nonlinear couplings determine."""
        follows = np.zeros(self.nv, dtype=bool)
        follows[[coupling.follower.v for coupling in self.function_couplings]] = True
        return follows

    @property
    def actuated(self) -> tuple[str, ...]:
        """Names of the joints with motors, as the robot file says; empty if it does not."""
        return self.description.actuated

    @cached_property
    def keyframes(self) -> dict[str, JointState]:
        """State of each keyframe of the robot file by name: q and v in the order of the coordinates.

        Examples
        --------
        >>> ld.load("robots/hopper.xml").keyframes["crouched"].q
        array([0.  , 0.  , 0.78, 0.  , 0.  , 0.  , 1.  , 0.  , 0.3 , 0.1 ])
        """
        return keyframe_states(self, base_joint_name(self.description))

    def joint(self, name: str) -> ModelJoint:
        """Return the moving joint with this name. Raise NameLookupError, with the nearest name, if there is none."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise _unknown_name("moving joint", name, self.joint_names)

    def constraint(self, name: str) -> ModelConstraint:
        """Return the closure, coupling or mimic with this name. Raise NameLookupError if there is none."""
        for constraint in self.constraints:
            if constraint.name == name:
                return constraint
        raise _unknown_name("constraint", name, [constraint.name for constraint in self.constraints])

    def link_index(self, name: str) -> int:
        """Return the index of a link in `link_names` and in f_ext. Raise NameLookupError if there is none."""
        try:
            return self.link_names.index(name)
        except ValueError:
            raise _unknown_name("link", name, self.link_names) from None

    def q_index(self, name: str) -> slice:
        """Return the slice of the joint in q."""
        return self.joint(name).q

    def v_index(self, name: str) -> slice:
        """Return the slice of the joint in v, a and tau."""
        return self.joint(name).v

    def neutral(self) -> Array:
        """Return q with zero coordinates and identity quaternions."""
        q = np.zeros(self.nq)
        for quaternion in self.quaternions.values():
            q[quaternion.stop - 1] = 1.0
        return q

    def __repr__(self) -> str:
        robot, loops, warnings = self.description, len(self.description.loops), of_level("warning", self.warnings)
        counts = [(loops, "loop"), (len(self.constraints) - loops, "coupling"), (len(warnings), "warning")]
        more = "".join(f", {_count_noun(n, noun)}" for n, noun in counts if n)
        return (f"<Model {self.name}: {_count_noun(len(self.joints), 'joint')}, nq {self.nq}, nv {self.nv}, "
                f"{base_text(self)} base; {_count_noun(len(self.link_names), 'link')}, "
                f"{sum(link.mass for link in robot.links):.4g} kg{more}>")

    def _repr_html_(self) -> str:
        """Return the tree of links and joints for notebooks."""
        from liedyn.model.model_html import model_html
        return model_html(self)


def base_text(model: Model) -> str:
    """Return "floating", "fixed", or "free joint" for a robot that only free joints of its file connect to the ground."""
    kinds = {joint.type for joint in model.description.joints if joint.parent == WORLD}
    return "free joint" if model.base == "fixed" and kinds == {"free"} else model.base


def _count_noun(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _unknown_name(kind: str, name: object, names: Iterable[str]) -> NameLookupError:
    hint = nearest(name, names, written=repr) or f"the model has {list_names(list(names), 12) or 'none'}"
    return NameLookupError(f"no {kind} {name!r}; {hint}")


# From a description to the arrays of the kernels ------------------------------------------------------------------------

# Fixed joints are merged into their parents; every joint but ball and free becomes screws about the z axes of their own
# bodies, with massless bodies between where a joint has several (DESIGN §2).

def build(robot: Robot) -> Model:
    """Validate a robot description and return its model, as `liedyn.build` without issuing a warning."""
    return build_validated(validate(robot))


def build_validated(robot: Robot) -> Model:
    """Return the model of a validated description, with a warning for each joint that moves no inertia."""
    tree = _ModelBuilder(robot)
    tree.add_links()
    bodies = tree.bodies()
    without_inertia, tree.pivot_threshold = joints_without_inertia(bodies)
    model = tree.model()
    assert model.keyframes is not None                         # checks them
    elimination = model.elimination(model.function_followers) if model.constraints else None
    if elimination is not None:
        places, couplings = {coupling.name: coupling.place for coupling in robot.couplings}, linear_couplings(robot)
        check_function_couplings(model.function_couplings, elimination, places)
        if fixed := jointly_fixed(couplings, [model.v_names[k] for k in elimination.fixed]):
            model = model._copy(warnings=tuple(WarningLog((*model.warnings, fixed_joints_warning(couplings, fixed)))))
    if not without_inertia:
        return model
    joints = [tree.joint_of_body[i - 1] for i in without_inertia]
    if elimination is not None and model.has_only_linear_couplings:          # a follower moves the inertia of its drivers
        follows = np.isin(np.arange(model.nv), elimination.follower)
        vanishing = vanishing_coordinates(bodies, follows, elimination.projection)
        joints = [moving for joint, moving in zip(model.joints, tree.moving, strict=True)
                  if not set(vanishing).isdisjoint(range(joint.v.start, joint.v.stop))]
    return model._copy(warnings=tuple(WarningLog((*model.warnings, *inertia_warnings(robot, joints)))), moves_inertia=False)


@dataclass
class _ModelBuilder:
    """The tree under construction: one entry of each list per body. Body 0 is the ground, which has no joint."""

    robot: Robot
    parent: list[int] = field(default_factory=lambda: [-1])
    kind: list[int] = field(default_factory=lambda: [ONE_DOF])
    S: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0)])
    T0: list[Array] = field(default_factory=lambda: [np.eye(4)])
    I: list[Array] = field(default_factory=lambda: [np.zeros(10)])
    joint_of_body: list[Joint] = field(default_factory=list)                      # without the ground
    joints: list[ModelJoint] = field(default_factory=list)
    links: dict[str, tuple[int, Array, str | None]] = field(default_factory=dict)   # body, pose in it, parent link
    nq: int = 0
    nv: int = 0
    moving: list[Joint] = field(default_factory=list)
    pivot_threshold: Array = field(default_factory=lambda: np.zeros(0))      # (nv,) pivots below it are rounding

    def add_links(self) -> None:
        """Add the bodies of all joints, and the links to them."""
        tree = build_link_tree(self.robot)
        if tree.root in tree.links:
            floating = self.robot.base == "floating"
            body, frame = self._add_joint(self._root_joint(tree)) if floating else (0, np.eye(4))
            self._place_link(tree.links[tree.root], body, frame, None)
        for joint in tree.joints:
            body, frame = self._add_joint(joint)
            self._place_link(tree.links[joint.child], body, frame, joint.parent if joint.parent in tree.links else None)

    def _root_joint(self, tree: LinkTree) -> Joint:
        return Joint(base_joint_name(self.robot), "free", WORLD, tree.root, place=tree.links[tree.root].place)

    def _place_link(self, link: Link, body: int, frame: Array, parent: str | None) -> None:
        self.links[link.name] = (body, frame, parent)
        self.I[body] = self.I[body] + transform_inertia(frame, inertia_from_link(link))

    def _add_joint(self, joint: Joint) -> tuple[int, Array]:
        """Add the bodies of a joint. Return the body of the child link, and the pose of the link in it."""
        body, frame = self.links[joint.parent][:2] if joint.parent in self.links else (0, np.eye(4))
        home = frame @ pose(joint.origin)
        if joint.type == "fixed":
            return body, home
        first, nq, nv = len(self.parent), self.nq, self.nv
        self.moving.append(joint)
        screws, offset = None, np.eye(4)                      # offset: frame after the screws so far, in the last body
        if joint.kind != ONE_DOF:
            body = self._add_body(body, joint.kind, (0.0, 0.0), home, joint)
        else:
            screws = joint_screws(joint)
            for screw in screws:
                z_frame, S = screw_frame(screw)
                body = self._add_body(body, ONE_DOF, S, home @ offset @ z_frame, joint)
                home, offset = np.eye(4), inverse(z_frame)
        self.joints.append(ModelJoint(joint.name, joint.type, joint.kind, joint.parent, joint.child, slice(nq, self.nq),
                                      slice(nv, self.nv), pose(joint.origin), screws, first, body))
        return body, offset

    def _add_body(self, parent: int, kind: int, S: tuple[float, float], T0: Array, joint: Joint) -> int:
        self.parent.append(parent)
        self.kind.append(kind)
        self.S.append(S)
        self.T0.append(T0)
        self.I.append(np.zeros(10))
        self.joint_of_body.append(joint)
        self.nq += NQ[kind]
        self.nv += NV[kind]
        return len(self.parent) - 1

    def bodies(self) -> BodyTree:
        """Return the bodies, after `add_links`."""
        return BodyTree(self.parent, self.kind, self.S, self.T0, self.I, self.coordinate("armature"))

    def coordinate(self, name: str) -> Array:
        """Return a parameter (nv,) of the velocity coordinates, by its field of `Coordinate`."""
        return np.array([getattr(c, name) for joint in self.moving for c in joint.coordinate_parameters], dtype=float)

    def model(self) -> Model:
        """Return the model, after `add_links`."""
        index, constants = self._arrays()
        names = [link.name for link in self.robot.links]
        q_names, q_units, v_names, v_units = _names(self.moving)
        constraints, loop_index, loop_constants = pack_constraints(
            self.robot, self._anchors(), LeverArms(self.parent, self.kind, self.S, self.T0, self.I))
        return Model._from_fields(
            name=self.robot.name, description=self.robot, base=self.robot.base, gravity=np.array(self.robot.gravity, dtype=float),
            nq=self.nq, nv=self.nv, joints=tuple(self.joints), link_names=tuple(names),
            link_body=np.array([self.links[n][0] for n in names], dtype=np.int64),
            link_pose=np.array([self.links[n][1] for n in names]).reshape(-1, 4, 4),
            link_parents=tuple(self.links[n][2] for n in names),
            q_names=q_names, v_names=v_names, q_units=q_units, v_units=v_units,
            lower=self.coordinate("lower"), upper=self.coordinate("upper"),
            velocity_limit=self.coordinate("velocity"), effort_limit=self.coordinate("effort"),
            acceleration_limit=self.coordinate("acceleration"), jerk_limit=self.coordinate("jerk"),
            index=index, constants=constants, warnings=self.robot.warnings,
            constraints=constraints, loop_index=loop_index, loop_constants=loop_constants,
            packed_model=packed_model(index, constants, loop_index, loop_constants))

    def _anchors(self) -> ConstraintAnchors:
        coordinates = {}
        for moving, joint in zip(self.joints, self.moving, strict=True):
            if moving.kind == ONE_DOF:
                for k, (label, unit) in enumerate(zip(joint.labels, joint.units, strict=True)):
                    coordinates[joint.name, label] = (moving.first_body + k, moving.v.start + k, moving.q.start + k, unit)
        return ConstraintAnchors(self.parent, self.kind, {name: link[:2] for name, link in self.links.items()}, coordinates)

    def _frame(self, link: str, at: Pose) -> tuple[int, Array]:
        """Return the body of a frame in a link or the ground, and the pose of the frame in the body."""
        body, frame = self.links[link][:2] if link in self.links else (0, np.eye(4))
        return body, frame @ pose(at)

    def _home(self, body: int) -> Array:
        """Return the pose of a body at zero coordinates."""
        T = np.eye(4)
        while body > 0:
            T, body = self.T0[body] @ T, self.parent[body]
        return T

    def _size(self) -> float:
        """Return the maximum distance in the placements of bodies and frames of force elements; 1 m if all are zero."""
        places = [*self.T0, *(pose(at) for element in self.robot.elements for at in (element.pose_a, element.pose_b))]
        return max((float(np.linalg.norm(T[:3, 3])) for T in places), default=0.0) or 1.0

    def _arrays(self) -> tuple[Integers, Array]:
        """Return `index` and `constants` in the layout of `joints.joint_model`."""
        n, links = len(self.parent), [self.links[link.name] for link in self.robot.links]
        iq = np.cumsum([0, 0] + [NQ[k] for k in self.kind[1:]])[:n]
        iv = np.cumsum([0, 0] + [NV[k] for k in self.kind[1:]])[:n]
        marks, slot = _backward_plan(self.parent)
        rotors = [0.0, *self.coordinate("armature")[iv[1:]]]              # of screws; that of a ball or free joint is not used
        marks = [mark | ROTATES * (a != 0) | TRANSLATES * (b != 0) | NO_AXIAL_INERTIA * (a != 0 and b == 0 and rotor == 0)
                 for mark, (a, b), rotor in zip(marks, self.S, rotors, strict=True)]
        passive = bool(self.robot.elements) or any(self.coordinate(c).any() for c in ("damping", "friction", "stiffness"))
        friction = self.coordinate("friction").any()
        element, element_pose, element_values = pack_elements(self.robot.elements, self._frame, self._home, self._size())
        header = [n, self.nq, self.nv, len(links), int(passive), int(friction), 0, 0, len(self.robot.elements),
                  element_values.size]
        on = [link[0] for link in links]
        paths = _coordinate_paths(self.parent, iv, [NV[k] for k in self.kind])
        index = np.concatenate([header, self.parent, self.kind, iq, iv, marks, slot, on, *paths, element]).astype(np.int64)
        constants = np.concatenate([
            np.zeros(3), -np.array(self.robot.gravity, dtype=float), np.ravel(self.S), *map(pose_to_array, self.T0),
            np.ravel(self.I),
            np.ravel(reduced_inertias(self.parent, self.kind, self.S, self.T0, self.I)),
            *[pose_to_array(link[1]) for link in links],
            *[self.coordinate(c) for c in ("armature", "damping", "friction", "stiffness", "rest")], self.pivot_threshold,
            element_pose, element_values])
        return index, np.ascontiguousarray(constants, dtype=float)


def base_joint_name(robot: Robot) -> str:
    """Return the name of the free joint of a floating base."""
    return "base" if all(joint.name != "base" for joint in robot.joints) else "floating_base"


def joint_screws(joint: Joint) -> Array:
    """Return the (k, 6) screws [w; v] of a joint in its frame: motion = exp(S1 q1) … exp(Sk qk)."""
    screws = JOINT_TYPES[joint.type].screws
    if screws is None:
        raise ModelError(f"joint type {joint.type!r} has no screws", place=joint.place)
    return np.array(screws(joint), dtype=float).reshape(-1, 6)


def joint_motion(joint: ModelJoint, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """Return the pose (4, 4) of the child in the parent link, S and dS/dt (6, k) in the child's frame, of a joint with screws.

    S_j = Ad_{E^-1} S_j with E the product of the exponentials that follow, so dS_j = -ad_{E^-1 dE} S_j.
    """
    assert joint.screws is not None
    tail, twist = np.eye(4), np.zeros(6)
    S: list[Array] = []
    dS: list[Array] = []
    for screw, x, dx in zip(joint.screws[::-1], q[::-1], v[::-1], strict=True):
        column = adjoint(inverse(tail)) @ screw
        S.insert(0, column)
        dS.insert(0, -bracket(twist) @ column)
        twist = twist + column * dx
        tail = exp_screw(screw, x) @ tail
    return joint.home @ tail, np.array(S).T, np.array(dS).T


def _backward_plan(parent: list[int]) -> tuple[list[int], list[int]]:
    """Return the marks and slots of the bodies (see `joints.joint_model`).

    A slot of a body is taken by the first of its children in a backward pass and free again after the body itself. A chain needs
    one slot, so that the pass works within the nearest cache.
    """
    n = len(parent)
    marks, slot, taken = [0] * n, [0] * n, 0
    free: list[int] = []
    for i in range(n - 1, 0, -1):
        if marks[i] & HAS_CHILDREN:
            free.append(slot[i])
        p = parent[i]
        if p > 0 and not marks[p] & HAS_CHILDREN:
            if not free:
                free.append(taken)
                taken += 1
            slot[p] = free.pop()
        if not marks[p] & HAS_CHILDREN:
            marks[i] |= LAST_CHILD
        marks[p] |= HAS_CHILDREN
    return marks, slot


def _coordinate_paths(parent: list[int], iv: Integers, size: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return above, top and last of the velocity coordinates (see `joints.joint_model`).

    Bodies are ordered depth first, so the coordinates that a coordinate moves are consecutive.
    """
    above: list[int] = []
    top: list[int] = []
    for i in range(1, len(parent)):
        p = parent[i]
        previous = int(iv[p]) + size[p] - 1 if p > 0 else -1
        for c in range(size[i]):
            above.append(previous if c == 0 else len(above) - 1)
            top.append(len(top) if above[-1] < 0 else top[above[-1]])
    last = list(range(len(above)))
    for k in range(len(above) - 1, -1, -1):
        if above[k] >= 0:
            last[above[k]] = max(last[above[k]], last[k])
    return above, top, last


def _names(joints: list[Joint]) -> tuple[tuple[str, ...], ...]:
    q_names: list[str] = []
    q_units: list[str] = []
    v_names: list[str] = []
    v_units: list[str] = []
    for joint in joints:
        v_names += joint.coordinate_names
        v_units += joint.units
        if joint.kind != ONE_DOF:
            position = ["px", "py", "pz"] if joint.kind == FREE else []
            q_names += [f"{joint.name}.{label}" for label in [*position, "qx", "qy", "qz", "qw"]]
            q_units += ["m"] * len(position) + [""] * 4
        else:
            q_names += joint.coordinate_names
            q_units += joint.units
    return tuple(q_names), tuple(q_units), tuple(v_names), tuple(v_units)


# A model with other numbers: its description is changed and assembled again, of which only what has changed is checked ---

_Changes = Mapping[str, ArrayLike]           # by name of the link, joint or coordinate


def apply_changes(model: Model, gravity: ArrayLike | None, of_links: Mapping[str, _Changes | None], origins: _Changes | None,
                  of_coordinates: Mapping[str, _Changes | None]) -> Model:
    """Return the model of `Model.with_changes`. Its errors name the argument and no line of the robot file.

    of_links, of_coordinates  by field of `Link` and of `Coordinate`, then by name
    """
    try:
        return build_validated(validate_changes(_changed_robot(model.description, gravity, of_links, origins, of_coordinates),
                                                model.description))
    except ModelError as error:
        place = error.place and Place(key=f"with_changes: {error.place.key}")
        raise ModelError(error.message, place=place, found=error.found, expected=error.expected, hint=error.hint) from None


def _changed_robot(robot: Robot, gravity: Any, of_links: Mapping[str, _Changes | None], origins: _Changes | None,
                   of_coordinates: Mapping[str, _Changes | None]) -> Robot:
    """Return the robot with other numbers, of which the positions and the counts are checked."""
    if gravity is not None:
        check_finite(gravity, 3, Place(key="gravity"), "gravity")
        robot = replace(robot, gravity=vector(gravity))
    links, joints = {link.name: link for link in robot.links}, {joint.name: joint for joint in robot.joints}
    for key, values in of_links.items():
        for name, value in _named_values(values, key):
            link = _look_up(links, name, "link")
            links[name] = _replace_link_value(link, key, value)
    for name, T in _named_values(origins, "origin"):
        joint = _look_up(joints, name, "joint")
        place = element_location(joint, "origin")
        if np.shape(T) == (3,):
            raise ModelError("a position does not determine the rotation of the origin", place=place,
                             found=np.asarray(T).tolist(), expected="a Pose, or a (4, 4) matrix whose last row is 0 0 0 1")
        joints[name] = replace(joint, origin=as_pose(T, place, "origin"))
    for key, values in of_coordinates.items():
        for name, value in _named_values(values, key):
            joint, indices = _find_coordinates(joints, name)
            joints[joint.name] = _replace_coordinates(joint, indices, key, value)
    return replace(robot, links=tuple(links[link.name] for link in robot.links),
                   joints=tuple(joints[joint.name] for joint in robot.joints))


def _named_values(values: _Changes | None, field: str) -> Iterable[tuple[str, Any]]:
    if values is None:
        return ()
    if not isinstance(values, Mapping):
        raise ModelError(f"{field} is given by name", found=values, expected="a dict such as {'name': value}")
    return values.items()


def _look_up(elements: Mapping[str, Value], name: str, kind: str) -> Value:
    if name not in elements:
        raise _unknown_name(kind, name, elements)
    return elements[name]


def _replace_link_value(link: Link, field: str, value: Any) -> Link:
    """Return the link with another mass, com or inertia (`field`)."""
    place = element_location(link, field)
    if field == "mass":
        check_finite((value,), 1, place, "mass")
        return replace(link, mass=float(value))
    if field == "com":
        check_finite(value, 3, place, "centre of mass")
        return replace(link, com=vector(value))
    entries = as_inertia(value, place)
    check_finite(entries, 6, place, "inertia")
    return replace(link, inertia=entries)


def _find_coordinates(joints: Mapping[str, Joint], name: str) -> tuple[Joint, list[int]]:
    """Return the joint with this name or coordinate, and the indices of its coordinates that the name denotes."""
    moving = [joint for joint in joints.values() if joint.labels]
    whole = {joint.name: (joint, list(range(len(joint.labels)))) for joint in moving}
    single = {f"{joint.name}.{label}": (joint, [k]) for joint in moving for k, label in enumerate(joint.labels) if label}
    return _look_up(whole | single, name, "joint or coordinate")


def _replace_coordinates(joint: Joint, indices: list[int], field: str, value: Any) -> Joint:
    """Return the joint with one number for all coordinates `indices`, or one for each, in a field of `Coordinate`."""
    values = as_each(value, len(indices), element_location(joint, field), field)
    coordinates = list(joint.coordinate_parameters)
    for k, x in zip(indices, values, strict=True):
        coordinates[k] = replace(coordinates[k], **{field: x})
    return replace(joint, coordinates=tuple(coordinates))
