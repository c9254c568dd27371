"""The model of a robot: flat arrays for the kernels, and names of joints, links and coordinates."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from liedyn.arrays import Array, ArrayLike, Base, Integers, Mask
from liedyn.errors import LiedynWarning, ModelError, Place, UsageError, WarningLog, counted, of_level, unknown_name
from liedyn.immutable import Immutable, read_only, read_only_property
from liedyn.model.articulated_inertia import joints_without_inertia, vanishing_coordinates
from liedyn.model.constraint_arrays import ModelConstraint
from liedyn.model.coupling_functions import function_program
from liedyn.model.couplings import (
    CoordinateIndex,
    Elimination,
    FunctionCoupling,
    check_function_couplings,
    eliminate,
    jointly_fixed,
)
from liedyn.model.description import COUPLING, FREE, INDEX_HEADER, NV, ONE_DOF, WORLD, Robot, coordinate_name
from liedyn.model.keyframes import JointState, keyframe_states
from liedyn.model.model_builder import ModelBuilder, base_joint_name
from liedyn.model.model_cache import ModelCache, ModelValue
from liedyn.model.model_joint import ModelJoint
from liedyn.model.robot_changes import Changes, changed_robot
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
                     friction_speed: Mapping[str, ArrayLike] | None = None,
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
        armature, damping, friction, friction_speed, stiffness, rest, lower, upper : {joint or coordinate: number}
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
            "friction_speed": friction_speed,
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

    @property
    def tau_units(self) -> tuple[str, ...]:
        """Unit of each generalized force: N m of coordinates in rad, N of those in m."""
        return tuple("N m" if unit == "rad" else "N" for unit in self.v_units)

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
        raise unknown_name("moving joint", name, self.joint_names)

    def constraint(self, name: str) -> ModelConstraint:
        """Return the closure, coupling or mimic with this name. Raise NameLookupError if there is none."""
        for constraint in self.constraints:
            if constraint.name == name:
                return constraint
        raise unknown_name("constraint", name, [constraint.name for constraint in self.constraints])

    def link_index(self, name: str) -> int:
        """Return the index of a link in `link_names` and in f_ext. Raise NameLookupError if there is none."""
        try:
            return self.link_names.index(name)
        except ValueError:
            raise unknown_name("link", name, self.link_names) from None

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
        more = "".join(f", {counted(n, noun)}" for n, noun in counts if n)
        return (f"<Model {self.name}: {counted(len(self.joints), 'joint')}, nq {self.nq}, nv {self.nv}, "
                f"{base_text(self)} base; {counted(len(self.link_names), 'link')}, "
                f"{sum(link.mass for link in robot.links):.4g} kg{more}>")

    def _repr_html_(self) -> str:
        """Return the tree of links and joints for notebooks."""
        from liedyn.model.model_html import model_html
        return model_html(self)


def base_text(model: Model) -> str:
    """Return "floating", "fixed", or "free joint" for a robot that only free joints of its file connect to the ground."""
    kinds = {joint.type for joint in model.description.joints if joint.parent == WORLD}
    return "free joint" if model.base == "fixed" and kinds == {"free"} else model.base


def build(robot: Robot) -> Model:
    """Validate a robot description and return its model, as `liedyn.build` without issuing a warning."""
    return build_validated(validate(robot))


def build_validated(robot: Robot) -> Model:
    """Return the model of a validated description, with a warning for each joint that moves no inertia."""
    tree = ModelBuilder(robot)
    tree.add_links()
    bodies = tree.bodies()
    without_inertia, tree.pivot_threshold = joints_without_inertia(bodies)
    model = Model._from_fields(**tree.fields())
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


def apply_changes(model: Model, gravity: ArrayLike | None, of_links: Mapping[str, Changes | None], origins: Changes | None,
                  of_coordinates: Mapping[str, Changes | None]) -> Model:
    """Return the model of `Model.with_changes`: its description is changed and built again; only what has changed is checked.

    Errors name the argument and no line of the robot file.

    of_links, of_coordinates  by field of `Link` and of `Coordinate`, then by name
    """
    try:
        return build_validated(validate_changes(changed_robot(model.description, gravity, of_links, origins, of_coordinates),
                                                model.description))
    except ModelError as error:
        place = error.place and Place(key=f"with_changes: {error.place.key}")
        raise ModelError(error.message, place=place, found=error.found, expected=error.expected, hint=error.hint) from None

