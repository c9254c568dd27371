"""Data of plots: plain arrays with names and units, without robot and dynamics."""
from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from liedyn.dynamics.scales import model_scales
from liedyn.errors import UsageError, list_names
from liedyn.io.csv_table import cell, name_in_cell
from liedyn.io.robots.visual_shapes import link_shapes, simple_shapes
from liedyn.io.trajectory_csv import Trajectory
from liedyn.model.description import WORLD
from liedyn.model.links import Shape
from liedyn.model.model import Model
from liedyn.model.spatial import rotation_of_z
from liedyn.report.plots.palette import SCREEN, Look
from liedyn.simulation.name_binding import select
from liedyn.simulation.trajectory_columns import column_units, with_current_names

FORMATS: tuple[str, ...] = ("png", "svg")                # default formats of plots

Point = tuple[str, tuple[float, float, float]]             # a link and a position in its frame

# labels of a coordinate of a joint, or of a component of a wrench, which follow the name of the joint
_LABELS = frozenset([*(a + b for a in ("p", "q", "w", "v", "dw", "dv", "m", "f") for b in "xyz"), "qw",
                     *(a + b for a in "xyz" for b in ("", "1", "2", "3")), *"123456", "w", "angle",
                     "slide", "force", "depth", "slip", "tangential", "utilization", "torque", "speed"])
_RATES_AND_FORCES = {f"{part}{axis}": (f"d{part}{axis}", f"{force}{axis}") for part, force in ("wm", "vf") for axis in "xyz"}

# prefix of the columns, file name of the figure, its title
_GROUPS = (("q", "positions", "Joint positions"),
           ("v", "velocities", "Joint velocities"),
           ("a", "accelerations", "Joint accelerations"),
           ("tau", "torques", "Forces of joints"),
           ("stop", "stops", "Stop forces at joint limits (included in the joint forces)"),
           ("friction", "friction", "Friction that holds (in addition to the forces of joints)"),
           ("motor", "motors", "Motors: torque and speed before the gear, power and load"),
           ("thrust", "thrusts", "Thrusts of actuators"),
           ("reaction", "reactions", "Reactions of loops (on link b) and couplings"),
           ("wrench", "joint_wrenches", "Wrenches of joints on their child links"),
           ("contact", "contacts", "Contacts"),
           ("fext", "external_forces", "External forces (link axes, at the link's origin)"),
           ("pose", "link_poses", "Poses of links"),
           ("twist", "link_twists", "Twists of links"),
           ("speed", "link_speeds", "Speeds of points of links"),
           ("acceleration", "link_accelerations", "Accelerations of links"),
           ("manipulability", "manipulability", "Manipulability"),
           ("com", "centre_of_mass", "Centre of mass: position, velocity, acceleration"),
           ("momentum", "momentum", "Momentum (angular about the centre of mass)"),
           ("zmp", "zero_moment_point", "Zero-moment point on the plane z = 0, and the vertical force"))

# comment of the file that names the axes of columns with the prefix
_COMMENTS = {"reaction": "reaction", "wrench": "wrench", "twist": "frame", "acceleration": "frame"}
_AXES = re.compile(r"\b(?:world axes|axes of )[^;]*")


@dataclass(frozen=True, eq=False)
class Series:
    """One curve. Series with the same `joint` and `unit` share a panel and are distinguished by `label`."""

    joint: str
    label: str
    unit: str
    values: np.ndarray                  # (N,)
    lower: float = -math.inf
    upper: float = math.inf
    prescribed: bool = False            # its motion is given, its force is computed
    run: int = 0                        # of runs that are compared
    t: np.ndarray | None = None         # (N,) its times, where they are not those of the plot data


@dataclass(frozen=True, eq=False)
class Group:
    """Curves of one kind, such as q: a figure of one or more pages. `name` is its file name; axes: axes of vectors, in words."""

    name: str
    title: str
    series: tuple[Series, ...]
    axes: str = ""
    kind: str = ""


@dataclass(frozen=True, eq=False)
class Energy:
    """Energies (N,) [J]; `residual` is that of the balance of energy and supplied work."""

    kinetic: np.ndarray
    potential: np.ndarray
    work: np.ndarray | None = None      # supplied to the robot since t[0]
    residual: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class BasePath:
    """Pose of a floating base, or of a link, in the world: (N, 3) position [m], (N, 4) unit quaternion x y z w.

    of: name of the body for the title; name: file name of the figure.
    """

    position: np.ndarray
    quaternion: np.ndarray
    of: str = "the base"
    name: str = "base_path"


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The robot as points and lines between them, over time.

    t       (F,) times of the frames [s]; many frames make smooth trails, ten of them are shown as poses
    points  (F, P, 3) positions in the world [m]
    edges   pairs of points (parent, child)
    masses  (P,) proportional to the areas of the dots; None: no dots
    rims    points around rolling bodies, each rim closed
    outlines  points, the last ones, of closed lines on the shapes of links that have no line
    """

    t: np.ndarray
    points: np.ndarray
    edges: tuple[tuple[int, int], ...]
    masses: np.ndarray | None = None
    rims: tuple[tuple[int, ...], ...] = ()
    outlines: tuple[tuple[int, ...], ...] = ()

    @property
    def line_points(self) -> np.ndarray:
        """Positions (F, P, 3) without those of outlines, if there are others."""
        count = min((k for outline in self.outlines for k in outline), default=self.points.shape[1])
        return self.points[:, :count] if self.edges or self.rims else self.points


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A planar mechanism at one time, with curves of its points over all times, in a plane of the world such as xz.

    points  (P, 2) [m]
    edges   pairs of points of a link
    fixed   points on the ground
    rims    points around rolling bodies, each rim closed
    curves  name and (N, 2) positions of each point [m]
    """

    plane: str
    points: np.ndarray
    edges: tuple[tuple[int, int], ...]
    fixed: tuple[int, ...]
    rims: tuple[tuple[int, ...], ...]
    curves: tuple[tuple[str, np.ndarray], ...]


@dataclass(frozen=True, eq=False)
class TrackedReferences:
    """Links of a run and their references: {joint: (unit, (N,) link, (N,) reference)} at the times t (N,)."""

    label: str
    t: np.ndarray
    joints: dict[str, tuple[str, np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class PlotData:
    """A motion to draw. `t` is (N,) [s]; the drift is drawn with the energy; tracking: this run, then those to compare with.

    events  (time, name, next phase) of a run; phase: the first one
    contacts  {link: whether it is in contact, (N,) bool}
    runs    names of the runs that are compared, to which `Series.run` refers; empty for one motion
    """

    title: str
    t: np.ndarray
    groups: tuple[Group, ...]
    energy: Energy | None = None
    base: BasePath | None = None
    skeleton: Skeleton | None = None
    drift: np.ndarray | None = None     # (N,) the maximum residual of constraints
    drift_unit: str = "rad or m"
    tracking: tuple[TrackedReferences, ...] = ()
    events: tuple[tuple[float, str, str], ...] = ()
    phase: str = ""
    contacts: Mapping[str, np.ndarray] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    mechanism: Mechanism | None = None
    look: Look = SCREEN

    @property
    def event_times(self) -> list[float]:
        """Times at which something happens [s]."""
        return sorted({t for t, _, _ in self.events})

    @property
    def event_names(self) -> str:
        """The names of the events with their times or their counts, in words."""
        times: dict[str, list[float]] = {}
        for t, name, _ in self.events:
            times.setdefault(name, []).append(t)
        names = [f"{name} (at {at[0]:.4g} s)" if len(at) == 1 else f"{name} ({len(at)} times, from {at[0]:.4g} s)"
                 for name, at in times.items()]
        return f"marks: {list_names(names, 4)}" if names else ""

    @property
    def phases(self) -> list[tuple[float, float, str]]:
        """Begin, end and name of each phase; empty if there is one only."""
        changes = [(t, phase) for t, _, phase in self.events if phase]
        names = [self.phase, *(phase for _, phase in changes)]
        times = [float(self.t[0]), *(t for t, _ in changes), float(self.t[-1])]
        spans = [(a, b, name) for a, b, name in zip(times, times[1:], names, strict=False) if b > a]
        return spans if len({name for _, _, name in spans}) > 1 else []


def groups_of_columns(columns: Mapping[str, np.ndarray], units: Mapping[str, str], comments: Mapping[str, str],
                      limits: Mapping[str, tuple[float, float]], joints: Collection[str]) -> tuple[Group, ...]:
    """Groups of the columns of a trajectory, by the prefix of their names (`q.`, `v.`, `a.`, `tau.`, `stop.`,
    `friction.`, `motor.`, `thrust.`, `reaction.`, `wrench.`, `fext.`, and those of kinematics: `pose.`, `twist.`, …).

    Accelerations are left out where there are positions. Other columns are passed over.

    Parameters
    ----------
    columns : {name: (N,) array}, units : {name: unit}
    comments : of the file, which name the axes of twists and wrenches, and the velocity coordinates (`elbow`, `ball.wx`) or
        joints whose motion is given
    limits : {column name: (lower, upper)}
    joints : names of the joints, where known: a name in it is not split at its dots
    """
    present = {prefix: [name for name in columns if name.startswith(prefix + ".")] for prefix, _, _ in _GROUPS}
    if present["q"]:
        present["a"] = []
    prescribed = prescribed_of_comments(comments)
    prescribed += [f"{joint}.{part}" for joint, label in [_joint_and_label(name, joints) for name in prescribed]
                   for part in _RATES_AND_FORCES.get(label, ())]

    def series(column: str) -> Series:
        name = column.partition(".")[2]
        joint, label = _joint_and_label(name, joints)
        lower, upper = limits.get(column, (-math.inf, math.inf))
        return Series(joint, label, units.get(column, ""), np.asarray(columns[column], dtype=float), lower, upper,
                      name in prescribed or joint in prescribed)

    def curves(column: str) -> list[Series]:
        """Return the curve of a column, with that of the measured torque if there is one."""
        curve, measured = series(column), columns.get(f"measured.{column.partition('.')[2]}")
        if measured is None or not column.startswith("tau."):
            return [curve]
        return [replace(curve, label=f"{curve.label} {kind}".lstrip(), values=np.asarray(x, dtype=float))
                for kind, x in (("computed", curve.values), ("measured", measured))]

    def axes(prefix: str) -> str:
        match = _AXES.search(comments.get(_COMMENTS.get(prefix, ""), ""))
        return match[0] if match else ""

    return tuple(Group(name, title, tuple(curve for column in present[prefix] for curve in curves(column)), axes(prefix), prefix)
                 for prefix, name, title in _GROUPS if present[prefix])


def base_path_of_columns(columns: Mapping[str, np.ndarray]) -> BasePath | None:
    """Return the path of the free joint `base`, else of the first link with columns `pose.<link>`; None without such columns."""
    link = next((name[5:-3] for name in columns if name.startswith("pose.") and name.endswith(".px")), None)
    for kind, *labels in (("q.base", "the base", "base_path"), (f"pose.{link}", f"{link}", "link_path")):
        try:
            return BasePath(np.column_stack([columns[f"{kind}.{x}"] for x in ("px", "py", "pz")]),
                            np.column_stack([columns[f"{kind}.{x}"] for x in ("qx", "qy", "qz", "qw")]), *labels)
        except KeyError:
            continue
    return None


def energy_of_columns(columns: Mapping[str, np.ndarray]) -> Energy | None:
    """Return energy and balance from the columns `energy.kinetic`, `energy.potential`, `energy.work`; None without them."""
    try:
        kinetic, potential, work = (columns[f"energy.{name}"] for name in ("kinetic", "potential", "work"))
    except KeyError:
        return None
    total = kinetic + potential
    return Energy(kinetic, potential, work, total - total[0] - work)


def contacts_of_columns(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return whether each link with a column `contact.<link>.force` is in contact, (N,) bool."""
    return {name.removeprefix("contact.").removesuffix(".force"): x > 0.0 for name, x in columns.items()
            if name.startswith("contact.") and name.endswith(".force")}


def followed_of(motion: Trajectory) -> tuple[TrackedReferences, ...]:
    """Return the tracked references of a run with the columns `reference.<joint>` and `link.<joint>`, else nothing."""
    columns = motion.columns
    names = [name.partition(".")[2] for name in columns if name.startswith("reference.")]
    joints = {name: (motion.units.get(f"reference.{name}", ""), columns[f"link.{name}"], columns[f"reference.{name}"])
              for name in names if f"link.{name}" in columns}
    return (TrackedReferences(motion.header.get("control", ""), motion.t, joints),) if joints else ()


# Parts of plot data, and several runs in one ----------------------------------------------------------------------------

def select_quantities(recording: PlotData, quantities: Sequence[str], joints: Sequence[str]) -> PlotData:
    """Return the plot data of some quantities, and of some joints.

    quantities  starts of columns, such as q and tau, or names of figures, such as energy and motion; empty: all
    joints      names or patterns of joints or links; empty: all. Figures without panels of joints are omitted, unless named
    """
    figures = {"motion": recording.skeleton, "energy": recording.energy, "tracking": recording.tracking,
               "mechanism": recording.mechanism, recording.base.name if recording.base else "": recording.base}
    names = {group.name for group in recording.groups} | {name for name, x in figures.items() if x}
    kinds = {group.kind: group.name for group in recording.groups if group.kind}
    unknown = [name for name in quantities if name not in names | kinds.keys()]
    if unknown:
        raise UsageError(f"nothing to plot for {list_names(unknown, 4)}: expected any of {', '.join([*kinds, *sorted(names)])}")
    by_joint = {group.name for group in recording.groups}
    chosen = {kinds.get(name, name) for name in quantities} or (by_joint if joints else names)
    groups = [group for group in recording.groups if group.name in chosen]
    if joints:
        available = list(dict.fromkeys(s.joint for group in groups for s in group.series))
        places = {available[k] for k in select(joints, available, "joint or link")}
        groups = [replace(group, series=tuple(s for s in group.series if s.joint in places)) for group in groups]
    return replace(recording, groups=tuple(group for group in groups if group.series),
                   skeleton=recording.skeleton if "motion" in chosen else None,
                   energy=recording.energy if "energy" in chosen else None,
                   tracking=recording.tracking if "tracking" in chosen else (),
                   base=recording.base if recording.base and recording.base.name in chosen else None)


def select_times(recording: PlotData, start: float | None, end: float | None) -> PlotData:
    """Return the plot data between two times [s]. Raise UsageError if there are none."""
    if start is None and end is None:
        return recording
    low, high = -math.inf if start is None else start, math.inf if end is None else end

    def cut(x: Any, t: np.ndarray, **more: Any) -> Any:
        """Return an object of plot data with the rows of its arrays over t that are between the times."""
        rows = (t >= low) & (t <= high)
        if not rows.any():
            between = " ".join(text for text, x in ((f"from {low:g} s", start), (f"until {high:g} s", end)) if x is not None)
            raise UsageError(f"no row {between}: the motion is from {t[0]:g} to {t[-1]:g} s")
        arrays = {item.name: value[rows] for item in fields(x) if isinstance(value := getattr(x, item.name), np.ndarray)
                  and len(value) == len(t) and item.name != "masses"}
        return replace(x, **arrays | more)

    t, events = recording.t, recording.events
    earlier = [phase for at, _, phase in events if at < low and phase]
    more: dict[str, Any] = {
        "groups": tuple(replace(group, series=tuple(cut(s, t if s.t is None else s.t) for s in group.series
                                                    if s.t is None or (s.t[-1] >= low and s.t[0] <= high)))
                        for group in recording.groups),
        "tracking": tuple(cut(run, run.t, joints={name: (unit, *(x[(run.t >= low) & (run.t <= high)] for x in both))
                                                  for name, (unit, *both) in run.joints.items()}) for run in recording.tracking),
        "contacts": {link: x[(t >= low) & (t <= high)] for link, x in recording.contacts.items()},
        "events": tuple(event for event in events if low <= event[0] <= high),
        "phase": earlier[-1] if earlier else recording.phase,
        "energy": recording.energy and cut(recording.energy, t), "base": recording.base and cut(recording.base, t),
        "skeleton": recording.skeleton and cut(recording.skeleton, recording.skeleton.t)}
    if recording.runs and any(group.series for group in more["groups"]):        # its times are the first and the last one only
        return replace(recording, t=np.clip(t, low, high), **more)
    selected: PlotData = cut(recording, t, **more)
    return selected


def compare_runs(recordings: Sequence[PlotData], names: Sequence[str]) -> PlotData:
    """Return the plot data of several runs, whose curves share panels. Energies are a group, without their balance."""
    by_run = [(*recording.groups, *_energy_group(recording.energy)) for recording in recordings]
    groups = []
    for first in {group.name: group for groups_of_run in by_run for group in groups_of_run}.values():
        series = [replace(s, run=k, t=recordings[k].t) for k, of_run in enumerate(by_run) for group in of_run
                  if group.name == first.name for s in group.series]
        groups.append(replace(first, series=tuple(series)))
    ends = np.array([end for recording in recordings for end in (recording.t[0], recording.t[-1])])
    return PlotData("", np.array([ends.min(), ends.max()]), tuple(groups), runs=tuple(names))


def _energy_group(energy: Energy | None) -> list[Group]:
    if energy is None:
        return []
    curves = {"kinetic energy": energy.kinetic, "potential energy": energy.potential - energy.potential[0],
              "total energy": energy.kinetic + energy.potential - energy.potential[0]}
    return [Group("energy", "Energy (potential: 0 at the start)", tuple(Series(name, "", "J", x) for name, x in curves.items()),
                  kind="energy")]


def carried(edges: Sequence[tuple[int, int]], count: int) -> np.ndarray:
    """Return for each line of a skeleton the fraction (edges,) of points beyond it; it determines the line width."""
    above, weights = {b: a for a, b in edges}, np.ones(count)
    for point in range(count):
        ancestor = above.get(point)
        while ancestor is not None:
            weights[ancestor] += 1
            ancestor = above.get(ancestor)
    return weights[[b for _, b in edges]] / weights.max() if edges else np.zeros(0)


def prescribed_comment(names: Collection[str]) -> dict[str, str]:
    """Return the comment of a trajectory file that lists the prescribed velocity coordinates."""
    return {"prescribed": ", ".join(cell(name).replace(",", r"\x2c") for name in names)} if names else {}


def prescribed_of_comments(header: Mapping[str, str]) -> list[str]:
    """Return the names in `prescribed_comment`."""
    return [name_in_cell(name.strip()) for name in header.get("prescribed", "").split(",") if name.strip()]


def _joint_and_label(name: str, joints: Collection[str]) -> tuple[str, str]:
    joint, _, label = name.rpartition(".")
    if name in joints or not joint or label not in _LABELS:
        return name, ""
    return joint, label


# Plot data of a robot's motion: columns, limits, energy and skeleton ----------------------------------------------------

FRAMES = 4000                           # of the skeleton, at most: enough for smooth trails
RIM = 48                                # points
_ROUND = 24                             # points of a circle of an outline
_SHORTEST = 0.01                        # of the characteristic length: the minimum of a line that shows a link
_POINT = 1e-6                           # of the characteristic length: a shorter line is a point


def record(motion: Trajectory, model: Model | None, title: str) -> PlotData:
    """Return the plot data of a motion: its columns (`q.elbow`, …) and, with a model, limits, energy and skeleton.

    Energy has a balance if the columns contain it; otherwise it is computed if q and v are complete. The skeleton needs q.
    Comments name the prescribed coordinates, the axes of vectors and the control law.
    """
    if model is not None:
        motion = with_current_names(model, motion)
        motion = replace(motion, units=column_units(model, motion))
    columns = motion.columns
    limits: dict[str, tuple[float, float]] = {}
    joints: tuple[str, ...] = ()
    energy, lines = energy_of_columns(columns), None
    if model is not None:
        q, v = (_stacked(columns, prefix, names) for prefix, names in (("q.", model.q_names), ("v.", model.v_names)))
        if energy is None and q is not None and v is not None:
            from liedyn.dynamics.kinematics import energy as energy_at
            energy = Energy(*energy_at(model, q, v, passive=motion.passive))
        limits, joints, lines = column_limits(model), model.joint_names, None if q is None else skeleton(model, motion.t, q)
    groups = groups_of_columns(columns, motion.units, motion.header, limits, joints)
    return PlotData(title, motion.t, groups, energy, base_path_of_columns(columns), lines, columns.get("drift"),
                    motion.units.get("drift", ""), followed_of(motion), contacts=contacts_of_columns(columns))


def column_limits(model: Model) -> dict[str, tuple[float, float]]:
    """Return {column: (lower, upper)} of positions, velocities, forces and thrusts."""
    limits = {}
    for k, name in enumerate(model.v_names):
        limits[f"q.{name}"] = (float(model.lower[k]), float(model.upper[k]))
        speed, force = abs(float(model.velocity_limit[k])), abs(float(model.effort_limit[k]))
        limits |= {f"v.{name}": (-speed, speed), f"tau.{model.tau_names[k]}": (-force, force)}
    return limits | {f"thrust.{x.name}": x.limits for x in model.description.actuators if x.limits is not None}


def skeleton(model: Model, t: np.ndarray, q: np.ndarray) -> Skeleton | None:
    """Return the robot as lines, or None if there is no line.

    Lines lead between the origins of joints, from links to their closures, along rods, around rolling bodies, from the last links
    to their centres of mass, and along thrusters. Links without a line have the outlines of their shapes. `q` is (N, nq); at most
    FRAMES of the N states are used.
    """
    from liedyn.dynamics.kinematics import link_poses

    rows = np.append(np.arange(0, len(t) - 1, -(-len(t) // FRAMES)), len(t) - 1)          # evenly spaced: trails are smoothed
    points, edges, masses = stick_figure(model)
    rims = rolling_rims(model, points)
    elements = element_lines(model, points)
    outlines = _outlines(model, link_poses(model, q[:1])[0], points, edges)
    if not edges and not rims and not outlines:
        return None
    T = with_ground(link_poses(model, q[rows]))[:, [ground_or_index(model, link) for link, _ in points]]
    placed = np.einsum("fpij,pj->fpi", T[..., :3, :3], np.array([at for _, at in points])) + T[..., :3, 3]
    if np.ptp(placed.reshape(-1, 3), axis=0).max() <= _POINT * model_scales(model).length:
        return None
    coils = [placed[:, [a, b]] if not is_spring else zigzag(placed[:, a], placed[:, b]) for a, b, is_spring in elements]
    count = placed.shape[1]
    for coil in coils:                                          # there and back: a closed line
        first, last = count, count + coil.shape[1] - 1
        rims += ((*range(first, last + 1), *range(last - 1, first, -1)),)
        count = last + 1
    placed = np.concatenate([placed, *coils], axis=1)
    dots = np.array(masses + [0.0] * (placed.shape[1] - len(masses))) if any(masses) else None
    return Skeleton(t[rows], placed, tuple(edges), dots, rims, outlines)


COILS = 6                               # of a spring
_COIL_WIDTH = 0.06                      # of the length of a spring


def zigzag(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the points (F, n, 3) of a spring from a to b (F, 3)."""
    span = b - a
    side = np.cross(span, np.eye(3)[np.argmin(np.abs(span).max(axis=0))])
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), np.finfo(float).tiny)
    s = np.concatenate([[0.0, 0.15], 0.15 + 0.7 * (np.arange(2 * COILS) + 0.5) / (2 * COILS), [0.85, 1.0]])
    height = np.concatenate([[0.0, 0.0], np.tile([1.0, -1.0], COILS), [0.0, 0.0]]) * _COIL_WIDTH
    width = np.linalg.norm(span, axis=1).max()
    points: np.ndarray = a[:, None] + s[:, None] * span[:, None] + width * height[:, None] * side[:, None]
    return points


def element_lines(model: Model, points: list[Point]) -> list[tuple[int, int, bool]]:
    """Return the ends of force elements between two points, and whether it is a spring; the points of the ends are added."""
    lines = []
    for element in model.description.elements:
        if element.type not in ("torsion", "bushing"):
            lines.append((len(points), len(points) + 1, element.type == "spring"))
            points += [(element.a, element.pose_a.translation), (element.b, element.pose_b.translation)]
    return lines


def with_ground(T: np.ndarray) -> np.ndarray:
    """Return poses of links (..., n, 4, 4) and that of the ground."""
    return np.concatenate([T, np.broadcast_to(np.eye(4), (*T.shape[:-3], 1, 4, 4))], axis=-3)


def ground_or_index(model: Model, link: str) -> int:
    """Return the index of a link, or of the ground, in `with_ground`."""
    return model.link_index(link) if link in model.link_names else len(model.link_names)


def _outlines(model: Model, T: np.ndarray, points: list[Point], edges: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Return closed lines on the shapes of links without a line; their points are added. T: poses of the links at the start."""
    T = with_ground(T)
    places = [T[ground_or_index(model, link)] @ [*at, 1.0] for link, at in points]
    shortest = _SHORTEST * model_scales(model).length
    drawn = {points[a][0] for a, b in edges if np.linalg.norm(places[a] - places[b]) > shortest}
    outlines = []
    for link, shapes in link_shapes(model.description).items():
        if link in drawn or link not in model.link_names:
            continue
        for part in (part for shape in shapes for part in simple_shapes(shape)):
            R, translation = np.reshape(part.pose.rotation, (3, 3)), np.array(part.pose.translation)
            for line in _outline(part):
                outlines.append(tuple(range(len(points), len(points) + len(line))))
                points += [(link, tuple(at)) for at in line @ R.T + translation]
    return tuple(outlines)


def _outline(shape: Shape) -> list[np.ndarray]:
    """Return closed lines (n, 3) on a box, sphere or cylinder, in its frame."""
    angle = 2 * np.pi * np.arange(_ROUND) / _ROUND
    circle = np.array([np.cos(angle), np.sin(angle), 0 * angle]).T
    square = np.array([[1, 1, 1], [1, -1, 1], [-1, -1, 1], [-1, 1, 1.0]])
    if shape.kind == "sphere":
        return [shape.sizes[0] * circle[:, order] for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1])]
    if shape.kind == "box":
        return [0.5 * np.array(shape.sizes) * sides for flat in (square, square * [1, 1, -1])
                for sides in (flat, flat[:, [2, 0, 1]])]
    radius, length = shape.sizes
    middle = square * [1, 1, 0] * [radius, length / 2, 0]
    return [*(radius * circle + [0, 0, z] for z in (-length / 2, length / 2)), middle[:, [0, 2, 1]], middle[:, [2, 0, 1]]]


def stick_figure(model: Model) -> tuple[list[Point], list[tuple[int, int]], list[float]]:
    """Return points (link, position in it), lines between them, and masses of the points."""
    links = {link.name: link for link in model.description.links}
    parents = dict(zip(model.link_names, model.link_parents, strict=True))
    link_names = _shown_links(model, parents)
    points: list[Point] = [(name, (0.0, 0.0, 0.0)) for name in link_names]
    edges = [(link_names.index(parent), k) for k, name in enumerate(link_names) if (parent := parents[name]) in link_names]
    masses = [0.0] * len(points)
    _add_closures(model, link_names, points, edges)
    masses += [0.0] * (len(points) - len(masses))
    ends = [k for k in range(len(link_names)) if k not in {a for a, _ in edges}]
    dots = len(ends) <= 3               # more would hide the lines
    for k in ends:
        link = links[link_names[k]]
        if link.mass > 0 and math.hypot(*link.com) > _POINT * model_scales(model).length:
            edges.append((k, len(points)))
            points.append((link.name, link.com))
            masses.append(link.mass if dots else 0.0)
    for actuator in (x for x in model.description.actuators if not x.joints):
        edges.append((link_names.index(actuator.link), len(points)))
        points.append((actuator.link, actuator.position))
        masses.append(0.0)
    return points, edges, masses


def _add_closures(model: Model, link_names: list[str], points: list[Point], edges: list[tuple[int, int]]) -> None:
    """Add a line from a link's origin to each of its closures, and the rods between links."""
    for loop in model.description.loops:
        ends = []
        for link, pose in ((loop.a, loop.pose_a), (loop.b, loop.pose_b)):
            if link in link_names:
                ends.append(link_names.index(link))
                if math.hypot(*pose.translation) > _POINT * model_scales(model).length:
                    edges.append((ends[-1], len(points)))
                    ends[-1] = len(points)
                    points.append((link, pose.translation))
        if loop.type == "distance" and len(ends) == 2:
            edges.append((ends[0], len(points)))                 # to a separate point, so that lines remain a tree
            points.append(points[ends[1]])


def rolling_rims(model: Model, points: list[Point]) -> tuple[tuple[int, ...], ...]:
    """Return the rim of each rolling disc and three great circles of each rolling sphere; their points are added."""
    angle, rims = 2 * np.pi * np.arange(RIM) / RIM, []
    circle = np.array([np.cos(angle), np.sin(angle), 0 * angle])
    for loop in model.description.loops:
        if loop.type == "rolling" and loop.b != WORLD:
            axis = np.array(loop.axes[0] if loop.axes else (0.0, 0.0, 1.0))
            turn = np.reshape(loop.pose_b.rotation, (3, 3)) @ rotation_of_z(axis)
            for order in ((0, 1, 2),) if loop.shape == "disc" else ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
                around = np.array(loop.pose_b.translation) + loop.radius * (turn @ circle[list(order)]).T
                rims.append(tuple(range(len(points), len(points) + RIM)))
                points += [(loop.b, tuple(at)) for at in around]
    return tuple(rims)


def _shown_links(model: Model, parents: dict[str, str | None]) -> list[str]:
    """Return all links except massless leaves with siblings: sensors and markers."""
    links = {link.name: link for link in model.description.links}
    moving = {joint.child for joint in model.joints} | {actuator.link for actuator in model.description.actuators}
    siblings: dict[str | None, int] = {}
    for parent in parents.values():
        siblings[parent] = siblings.get(parent, 0) + 1
    return [name for name in model.link_names
            if name in moving or name in siblings or links[name].mass > 0 or siblings[parents[name]] == 1]


def _stacked(columns: Mapping[str, np.ndarray], prefix: str, names: tuple[str, ...]) -> np.ndarray | None:
    """Return an (N, n) array of the columns, or None if one is missing."""
    column_names = [prefix + name for name in names]
    if not column_names or any(name not in columns for name in column_names):
        return None
    return np.column_stack([columns[name] for name in column_names])
