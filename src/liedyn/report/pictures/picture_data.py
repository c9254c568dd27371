"""What the pictures are drawn from: plain arrays with names and units, no robot and no dynamics."""
from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from liedyn.io.csv import Trajectory, cell, name_in_cell

FORMATS = ("png", "svg")                # of pictures, where nothing else is asked for

# the labels that a coordinate of a joint, or a component of a wrench, may have behind its joint's name
_LABELS = frozenset([*(a + b for a in "pqwvmf" for b in "xyz"), "qw", *(a + b for a in "xyz" for b in ("", "1", "2", "3")),
                     *"123456", "w", "angle", "slide"])

# prefix of the columns, file name of the figure, its title
_GROUPS = (("q", "positions", "Joint positions"),
           ("v", "velocities", "Joint velocities"),
           ("a", "accelerations", "Joint accelerations"),
           ("tau", "torques", "Joint forces"),
           ("stop", "stops", "Forces of stops at joint limits (part of the joint forces)"),
           ("motor", "motors", "Motors: torque and speed before the gear"),
           ("reaction", "reactions", "Reactions of loops (on link b, at frame b) and couplings"),
           ("wrench", "joint_wrenches", "Wrenches of joints on their child links"),
           ("fext", "external_forces", "External forces (link axes, at the link's origin)"),
           ("pose", "link_poses", "Poses of links"),
           ("twist", "link_twists", "Twists of links"),
           ("speed", "link_speeds", "Speeds of points of links"),
           ("acceleration", "link_accelerations", "Accelerations of links"),
           ("manipulability", "manipulability", "Manipulability"),
           ("com", "centre_of_mass", "Centre of mass: position, velocity, acceleration"),
           ("momentum", "momentum", "Momentum (angular about the centre of mass)"),
           ("zmp", "zero_moment_point", "Zero-moment point on the plane z = 0, and the vertical force"))

# comment of the file that names the axes of what has the prefix
_COMMENTS = {"reaction": "reaction", "wrench": "wrench", "twist": "frame", "acceleration": "frame"}
_AXES = re.compile(r"\b(?:world axes|axes of )[^;]*")


@dataclass(frozen=True, eq=False)
class Series:
    """One curve. Series of the same `joint` and `unit` share a panel and are told apart by `label`."""

    joint: str
    label: str
    unit: str
    values: np.ndarray                  # (N,)
    lower: float = -math.inf
    upper: float = math.inf
    prescribed: bool = False            # its motion is given, its force is computed


@dataclass(frozen=True, eq=False)
class Group:
    """Curves of one kind: one figure, or several pages of it. `name` is its file name; axes: of vectors, in words."""

    name: str
    title: str
    series: tuple[Series, ...]
    axes: str = ""


@dataclass(frozen=True, eq=False)
class Energy:
    """(N,) arrays [J]. `residual` is what the balance of energy and supplied work leaves over."""

    kinetic: np.ndarray
    potential: np.ndarray
    work: np.ndarray | None = None      # supplied to the robot since t[0]
    residual: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class BasePath:
    """Pose of a floating base, or of a link, in the world: (N, 3) position [m], (N, 4) unit quaternion x y z w.

    of: what moves, as in the title; name: of the figure's file."""

    position: np.ndarray
    quaternion: np.ndarray
    of: str = "the base"
    name: str = "base_path"


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The robot as points and the lines between them, over time.

    t       (F,) times of the frames [s]; many frames make smooth trails, ten of them are shown as poses
    points  (F, P, 3) positions in the world [m]
    edges   pairs of points (parent, child)
    masses  (P,) what the dots' areas are proportional to; None: no dots
    rims    points around what rolls, each rim closed
    """

    t: np.ndarray
    points: np.ndarray
    edges: tuple[tuple[int, int], ...]
    masses: np.ndarray | None = None
    rims: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, eq=False)
class Followed:
    """How the links of a run followed their references: {joint: (unit, (N,) link, (N,) reference)} at the times t (N,)."""

    label: str
    t: np.ndarray
    joints: dict[str, tuple[str, np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Recording:
    """A motion to draw. `t` is (N,) [s]; the drift is drawn with the energy; tracking: this run, then those to compare with."""

    title: str
    t: np.ndarray
    groups: tuple[Group, ...]
    energy: Energy | None = None
    base: BasePath | None = None
    skeleton: Skeleton | None = None
    drift: np.ndarray | None = None     # (N,) the largest residual of constraints
    tracking: tuple[Followed, ...] = ()


def groups_of_columns(columns: Mapping[str, np.ndarray], units: Mapping[str, str], *,
                      limits: Mapping[str, tuple[float, float]] | None = None, joints: Collection[str] = (),
                      prescribed: Collection[str] = (), comments: Mapping[str, str] | None = None) -> tuple[Group, ...]:
    """Groups of the columns of a trajectory, by the prefix of their names (`q.`, `v.`, `a.`, `tau.`, `stop.`, `motor.`,
    `reaction.`, `wrench.`, `fext.`, and those of kinematics: `pose.`, `twist.`, …).

    Accelerations are left out where there are positions. Other columns are passed over.

    Parameters
    ----------
    columns : {name: (N,) array}, units : {name: unit}
    limits : {column name: (lower, upper)}, optional
    joints : names of the joints, where known: a name in it is not split at its dots
    prescribed : names of velocity coordinates (`elbow`, `ball.wx`) or joints whose motion is given
    comments : of the file, which name the axes of twists and wrenches
    """
    present = {prefix: [name for name in columns if name.startswith(prefix + ".")] for prefix, _, _ in _GROUPS}
    if present["q"]:
        present["a"] = []
    limits = limits or {}

    def series(column: str) -> Series:
        name = column.partition(".")[2]
        joint, label = _joint_and_label(name, joints)
        lower, upper = limits.get(column, (-math.inf, math.inf))
        return Series(joint, label, units.get(column, ""), np.asarray(columns[column], dtype=float), lower, upper,
                      name in prescribed or joint in prescribed)

    def axes(prefix: str) -> str:
        found = _AXES.search((comments or {}).get(_COMMENTS.get(prefix, ""), ""))
        return found[0] if found else ""

    return tuple(Group(name, title, tuple(map(series, present[prefix])), axes(prefix)) for prefix, name, title in _GROUPS
                 if present[prefix])


def base_path_of_columns(columns: Mapping[str, np.ndarray]) -> BasePath | None:
    """The path of the free joint `base`, else of the first link with columns `pose.<link>`, where the columns have one."""
    link = next((name[5:-3] for name in columns if name.startswith("pose.") and name.endswith(".px")), None)
    for kind, *what in (("q.base", "the base", "base_path"), (f"pose.{link}", f"{link}", "link_path")):
        try:
            return BasePath(np.column_stack([columns[f"{kind}.{x}"] for x in ("px", "py", "pz")]),
                            np.column_stack([columns[f"{kind}.{x}"] for x in ("qx", "qy", "qz", "qw")]), *what)
        except KeyError:
            continue
    return None


def energy_of_columns(columns: Mapping[str, np.ndarray]) -> Energy | None:
    """The energy and its balance, where the columns have them: `energy.kinetic`, `energy.potential`, `energy.work`."""
    try:
        kinetic, potential, work = (columns[f"energy.{name}"] for name in ("kinetic", "potential", "work"))
    except KeyError:
        return None
    total = kinetic + potential
    return Energy(kinetic, potential, work, total - total[0] - work)


def followed_of(motion: Trajectory) -> tuple[Followed, ...]:
    """One run's, where it has the columns `reference.<joint>` and `link.<joint>`; else nothing."""
    columns = motion.columns
    names = [name.partition(".")[2] for name in columns if name.startswith("reference.")]
    joints = {name: (motion.units.get(f"reference.{name}", ""), columns[f"link.{name}"], columns[f"reference.{name}"])
              for name in names if f"link.{name}" in columns}
    return (Followed(motion.header.get("control", ""), motion.t, joints),) if joints else ()


def carried(edges: Sequence[tuple[int, int]], count: int) -> np.ndarray:
    """(edges,) shares of the points of a skeleton that hang on each line: lines are thick where it is much, as limbs are."""
    above, weights = {b: a for a, b in edges}, np.ones(count)
    for point in range(count):
        while point in above:
            point = above[point]
            weights[point] += 1
    return weights[[b for _, b in edges]] / weights.max() if edges else np.zeros(0)


def prescribed_comment(names: Collection[str]) -> dict[str, str]:
    """The comment of a trajectory file that tells which velocity coordinates were prescribed."""
    return {"prescribed": ", ".join(cell(name).replace(",", r"\x2c") for name in names)} if names else {}


def prescribed_of_comments(header: Mapping[str, str]) -> list[str]:
    """The names in `prescribed_comment`."""
    return [name_in_cell(name.strip()) for name in header.get("prescribed", "").split(",") if name.strip()]


def _joint_and_label(name: str, joints: Collection[str]) -> tuple[str, str]:
    joint, _, label = name.rpartition(".")
    if name in joints or not joint or label not in _LABELS:
        return name, ""
    return joint, label
