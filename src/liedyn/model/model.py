"""The computable robot: flat arrays for the kernels, names for people."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers
from liedyn.errors import NameLookupError, UsageError, nearest
from liedyn.immutable import Immutable, read_only
from liedyn.joints.kinds import BALL, FREE
from liedyn.model.constraints import ModelConstraint
from liedyn.model.description import Finding, Robot
from liedyn.public_calls import explained


class KernelArrays(NamedTuple):
    """Arrays of a model as compiled code takes them: writeable for its signatures only. Nothing writes to them."""

    index: Integers
    constants: Array
    loop_index: Integers
    loop_constants: Array
    loop_machine: Array


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
    """A robot that is ready for computation. Made by `liedyn.load` or `liedyn.build`.

    Immutable: its arrays are read-only. `with_changes` returns a copy with other masses, gravity, damping, ….

    nq, nv               sizes of q and of v, a, tau
    joints               moving joints in order (`ModelJoint`); fixed joints are merged away
    link_names           all links of the file, also those merged into others
    q_names, q_units     one per coordinate: 'elbow', 'base.px', …; rad, m, or '' for quaternion components
    v_names, v_units     the same for velocities (rad or m; their forces are N m or N)
    lower, upper, velocity_limit, effort_limit   (nv,), infinite if the file has none (also for ball and free joints)
    gravity              (3,) m/s^2 in the world frame
    index, constants     what the kernels read; see `joints.tree`
    constraints          closures, couplings and mimics (`ModelConstraint`), which bind the tree further. Parts of the constrained
                         equations (mass matrix, bias force, regressor, …) are those of the open tree; dynamics that would leave
                         the constraints out refuse the robot
    loop_index, loop_constants   what the kernels read of them; see `model.constraints`; empty without
    loop_machine         index, constants, loop_index and loop_constants as one array

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> model.joint_names, model.v_index("elbow"), model.neutral()
    (('shoulder', 'elbow'), slice(1, 2, None), array([0., 0.]))
    """

    name: str
    description: Robot
    base: str
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
    index: Integers
    constants: Array
    findings: tuple[Finding, ...] = field(default=(), compare=False)
    constraints: tuple[ModelConstraint, ...] = ()
    loop_index: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    loop_constants: Array = field(default_factory=lambda: np.zeros(0))
    loop_machine: Array = field(default_factory=lambda: np.zeros(0))
    _arrays: KernelArrays = field(init=False, repr=False, compare=False)
    _cache: dict[Any, Any] = field(init=False, repr=False, compare=False)      # generated code and buffers

    def __init__(self, *_: Any, **__: Any):
        """Raises UsageError. `dataclasses.replace` comes here, too: it would change some of the numbers of a model and not those
        that follow from them."""
        raise UsageError("a Model is immutable and made by ld.load or ld.build (a copy with other numbers: "
                         "model.with_changes(gravity=..., mass={...}, ...); with other links, joints or loops: "
                         "ld.build(dataclasses.replace(model.description, ...)))")

    @classmethod
    def _made(cls, **values: Any) -> Model:
        """Of all its fields; those that have a default may be left out."""
        model = object.__new__(cls)
        for one in fields(cls):
            if one.init and one.name not in values:
                values[one.name] = one.default_factory() if callable(one.default_factory) else one.default
        model.__setstate__(values)
        return model

    def _copy(self, **changes: Any) -> Model:
        """With other values of some fields, and without generated code."""
        return self._made(**self.__getstate__() | changes)

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without what follows from them."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.init}

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = KernelArrays(*(np.require(state[name], requirements=["C", "A", "W"]) for name in KernelArrays._fields))
        values = state | arrays._asdict()
        vars(self).update({name: read_only(x) for name, x in values.items()} | {"_arrays": arrays, "_cache": {}})

    @explained
    def with_changes(self, *, gravity: ArrayLike | None = None, mass: Mapping[str, float] | None = None,
                     com: Mapping[str, ArrayLike] | None = None, inertia: Mapping[str, ArrayLike] | None = None,
                     origin: Mapping[str, ArrayLike] | None = None, armature: Mapping[str, ArrayLike] | None = None,
                     damping: Mapping[str, ArrayLike] | None = None, friction: Mapping[str, ArrayLike] | None = None,
                     stiffness: Mapping[str, ArrayLike] | None = None, rest: Mapping[str, ArrayLike] | None = None,
                     lower: Mapping[str, ArrayLike] | None = None, upper: Mapping[str, ArrayLike] | None = None,
                     velocity_limit: Mapping[str, ArrayLike] | None = None,
                     effort_limit: Mapping[str, ArrayLike] | None = None) -> Model:
        """Return a copy with other numbers, as if they stood in the robot file. What is not given stays.

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
        armature, damping, friction, stiffness, rest, lower, upper, velocity_limit, effort_limit : {joint or coordinate: number}
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
        from liedyn.model.changes import changed
        return changed(self, gravity, {"mass": mass, "com": com, "inertia": inertia}, origin, {
            "armature": armature, "damping": damping, "friction": friction, "stiffness": stiffness, "rest": rest,
            "lower": lower, "upper": upper, "velocity": velocity_limit, "effort": effort_limit})

    @cached_property
    def sizes(self) -> tuple[int, int, int, int]:
        """Bodies of the kernels (ground included), nq, nv, links."""
        return int(self.index[0]), self.nq, self.nv, len(self.link_names)

    @cached_property
    def paths(self) -> Integers:
        """(3, nv): above, top and last of each velocity coordinate (see `joints.tree`)."""
        return self.index[self.index.size - 3 * self.nv:].reshape(3, self.nv)

    @cached_property
    def nc(self) -> int:
        """Rows of all constraints."""
        return self.constraints[-1].rows.stop if self.constraints else 0

    @cached_property
    def driven(self) -> int:
        """How many loops are driven."""
        return sum(one.driven for one in self.constraints)

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """A name a row: "tip.vx", …; that of the constraint alone where it has one row."""
        return tuple(name for one in self.constraints for name in one.row_names)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def source(self) -> str | None:
        return self.description.source

    @property
    def n_bodies(self) -> int:
        """Bodies of the kernels, ground included."""
        return int(self.index[0])

    @property
    def has_passive_forces(self) -> bool:
        return bool(self.index[4])

    def open_tree(self) -> Model:
        """The robot without loops, couplings and mimics: for the dynamics of the open tree, such as `inverse_dynamics`. The model
        itself where it has none."""
        if not self.constraints:
            return self
        try:
            return self._cache["open tree"]
        except KeyError:
            return self._cache.setdefault("open tree", self._without_constraints())

    def _without_constraints(self) -> Model:
        robot, none = self.description, np.zeros(0)
        robot = replace(robot, loops=(), couplings=(), joints=tuple(replace(joint, mimic=None) for joint in robot.joints))
        return self._copy(description=robot, constraints=(), loop_index=none.astype(np.int64), loop_constants=none,
                          loop_machine=none)

    def joint(self, name: str) -> ModelJoint:
        """The moving joint of that name. Raises NameLookupError, with the nearest name."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise NameLookupError(_unknown("moving joint", name, self.joint_names))

    def constraint(self, name: str) -> ModelConstraint:
        """The closure, coupling or mimic of that name. Raises NameLookupError."""
        for one in self.constraints:
            if one.name == name:
                return one
        raise NameLookupError(_unknown("constraint", name, tuple(one.name for one in self.constraints)))

    def link_index(self, name: str) -> int:
        """Index of a link in `link_names` and in f_ext. Raises NameLookupError."""
        try:
            return self.link_names.index(name)
        except ValueError:
            raise NameLookupError(_unknown("link", name, self.link_names)) from None

    def q_index(self, name: str) -> slice:
        """Slice of q that belongs to the joint."""
        return self.joint(name).q

    def v_index(self, name: str) -> slice:
        """Slice of v, a and tau that belongs to the joint."""
        return self.joint(name).v

    def neutral(self) -> Array:
        """Zero coordinates, identity quaternions."""
        q = np.zeros(self.nq)
        for joint in self.joints:
            if joint.kind in (BALL, FREE):
                q[joint.q.stop - 1] = 1.0
        return q

    def __repr__(self) -> str:
        robot, loops = self.description, len(self.description.loops)
        counts = [(loops, "loop"), (len(self.constraints) - loops, "coupling"), (len(self.findings), "finding")]
        more = "".join(f", {_counted(n, what)}" for n, what in counts if n)
        return (f"<Model {self.name}: {_counted(len(self.joints), 'joint')}, nq {self.nq}, nv {self.nv}, {self.base} base; "
                f"{_counted(len(self.link_names), 'link')}, {sum(link.mass for link in robot.links):.4g} kg{more}>")


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _unknown(what: str, name: str, known: tuple[str, ...]) -> str:
    hint = nearest(name, known, written=repr) or f"the model has {', '.join(known[:12]) or 'none'}"
    return f"no {what} {name!r}; {hint}"
