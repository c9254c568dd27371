"""The computable robot: flat arrays for the kernels, names for people."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.errors import NameLookupError, nearest
from liedyn.joints.kinds import BALL, FREE
from liedyn.model.constraints import ModelConstraint
from liedyn.model.description import Finding, Robot


@dataclass(frozen=True, eq=False)
class ModelJoint:
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


@dataclass(frozen=True, eq=False)
class Model:
    """A robot that is ready for computation. Immutable; made by `liedyn.load` or `liedyn.build`.

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
    findings: tuple[Finding, ...] = ()
    constraints: tuple[ModelConstraint, ...] = ()
    loop_index: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    loop_constants: Array = field(default_factory=lambda: np.zeros(0))
    loop_machine: Array = field(default_factory=lambda: np.zeros(0))
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)          # a replaced model starts a new one

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made again where it is needed: scratch, on its border of cache lines."""
        return vars(self) | {"_cache": {}}

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
        return replace(self, description=robot, constraints=(), loop_index=none.astype(np.int64), loop_constants=none,
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
