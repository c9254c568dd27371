"""What the sensors of a scenario measure in a run.

    encoder        q
    torque         tau of the motor at the joint, `delay` before the sample
    imu            R^T w,  R^T (dv/dt - g)      angular velocity, and specific force of its origin; R: its axes
    force_torque   [m; f] on the child link of a joint from its parent link

Each measured value is scale x + offset + noise, rounded to multiples of the resolution. Samples are taken at the times k / rate
from the state of the integrator: the run has rows at these times, which its result does not have.

The noise of a column depends on the seed of the scenario, the name of the column and the number of the sample only. Which samples
are lost depends on the seed, the name of the sensor and the number of the sample only.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.dynamics.constraints.constraints import constraint_wrenches
from liedyn.dynamics.kinematics import all_link_motions
from liedyn.dynamics.transmitted_wrenches import transmitted_wrenches
from liedyn.errors import NameLookupError, ScenarioError, list_names, nearest
from liedyn.immutable import Immutable
from liedyn.io.column_map import is_motion_column
from liedyn.io.scenarios.scenario import Rule, Scenario, Sensor
from liedyn.io.trajectory_csv import data_frame
from liedyn.model.links import Pose
from liedyn.model.model import Model
from liedyn.model.spatial import pose
from liedyn.simulation.constraint_setup import constraint_motions
from liedyn.simulation.joint_stops import stop_forces
from liedyn.simulation.name_binding import bind_joints, bind_rules, find_index, v_to_q_indices
from liedyn.simulation.random_streams import normal_stream, random_stream
from liedyn.simulation.run_recorder import blocks
from liedyn.simulation.segment_problems import RunSegment
from liedyn.simulation.signals.curves import SAME_TIME
from liedyn.simulation.trajectory_columns import motion_columns

if TYPE_CHECKING:
    import pandas

MEASURED = "meas."                           # begin of the columns of trajectories with the last samples
_COMPONENTS = {"imu": (("wx", "rad/s"), ("wy", "rad/s"), ("wz", "rad/s"), ("ax", "m/s^2"), ("ay", "m/s^2"), ("az", "m/s^2")),
               "force_torque": (("mx", "N m"), ("my", "N m"), ("mz", "N m"), ("fx", "N"), ("fy", "N"), ("fz", "N"))}


@dataclass(frozen=True, eq=False)
class Measurements(Immutable):
    """Samples of the sensors of a run, at the S times at which any of them has one.

    t         (S,) [s]
    names     of the columns, such as q.elbow, tau.elbow, imu.head.wx, force_torque.wrist.fz
    units     of the columns
    values    (S, columns); NaN where a sensor has no sample, and where a sample is lost

    Examples
    --------
    >>> run = ld.run_scenario("configs/double_pendulum.yaml", {"duration": 0.1, "sensors": {
    ...     "encoders": {"type": "encoder", "rate": 100, "resolution": 0.01}}})
    >>> run.measurements
    <Measurements: 11 samples of 2 columns>
    >>> run.measurements["q.elbow"].round(2)[:3]
    array([0., 0., 0.])
    """

    t: Array
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array

    def __repr__(self) -> str:
        return f"<Measurements: {len(self.t)} samples of {len(self.names)} columns>"

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise NameLookupError(f"no measured column {name!r}; {nearest(name, self.names) or list_names(list(self.names), 12)}")
        return np.asarray(self.values[:, self.names.index(name)])

    @property
    def columns(self) -> list[tuple[str, str, Array]]:
        """(name, unit, (S,) array) of each column."""
        return list(zip(self.names, self.units, self.values.T, strict=True))

    @property
    def missing(self) -> int:
        """Number of rows in which a column of the motion, of an encoder or a torque sensor, has no value."""
        motion = [is_motion_column(name) for name in self.names]
        return int(np.isnan(self.values[:, motion]).any(axis=1).sum())

    def received(self, t: Array) -> list[tuple[str, str, Array]]:
        """Return (meas.name, unit, (N,) array) of each column: at the times t (N,), its last sample that is not lost."""
        columns, slack = [], 2 * SAME_TIME * float(t[-1])
        for name, unit, x in self.columns:
            samples = np.flatnonzero(~np.isnan(x))
            last = np.searchsorted(self.t[samples], t + slack, "right") - 1
            values = np.append(x[samples], np.nan)             # index -1: no sample so far
            columns.append((f"{MEASURED}{name}", unit, values[last]))
        return columns

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame of the columns "q.elbow[rad]", …, with the time "t[s]" as its index.

        Requires pandas, which liedyn does not install.
        """
        return data_frame(self.t, self.columns)


@dataclass(frozen=True, eq=False)
class BoundSensor:
    """A sensor of a run with c channels.

    times      (n,) of its samples [s]
    names, units   of the channels
    scale, offset, noise, resolution   (c,)
    coordinates    indices in q of an encoder, in v of a torque sensor
    constants      (c,) torques per current; NaN: its current is not a column
    """

    sensor: Sensor
    times: Array
    names: tuple[str, ...]
    units: tuple[str, ...]
    scale: Array
    offset: Array
    noise: Array
    resolution: Array
    coordinates: Integers
    constants: Array

    @property
    def sources(self) -> Array:
        """Times (n,) of the values that are sampled, which are `delay` before the samples but not before the start [s]."""
        return np.maximum(self.times - self.sensor.delay, 0.0)

    def exact(self, rows: MeasuredRows) -> Array:
        """Return the (N, c) exact values in N rows of a run."""
        sensor = self.sensor
        if sensor.type == "encoder":
            return np.asarray(rows.record.q[:, self.coordinates])
        if sensor.type == "torque":
            return np.asarray(rows.torque[:, self.coordinates])
        T = pose(Pose.from_xyz_rpy(sensor.at, sensor.rpy))
        R, p = T[:3, :3], T[:3, 3]
        if sensor.type == "imu":
            w, x = rows.motion_of(sensor.link, p)
        else:
            F = rows.wrenches(sensor.frame)[sensor.joint]
            w, x = F[:, :3] - np.cross(p, F[:, 3:]), F[:, 3:]
        return np.concatenate([w @ R, x @ R], axis=1)

    def samples(self, exact: Array, seed: int) -> Array:
        """Return the (n, c) samples of exact values, with NaN where they are lost."""
        x, n = self.scale * exact + self.offset, len(exact)
        for k in np.flatnonzero(self.noise):
            x[:, k] += self.noise[k] * normal_stream(seed, f"noise of {self.names[k]}", 0, n)
        rounded = self.resolution > 0.0
        x[:, rounded] = np.round(x[:, rounded] / self.resolution[rounded]) * self.resolution[rounded]
        if self.sensor.dropout:
            x[random_stream(seed, f"dropout of {self.sensor.name}", 0, n) < self.sensor.dropout] = np.nan
        return x


class MeasuredRows:
    """Exact quantities in N rows of a segment of a run. model: the robot with all constraints."""

    def __init__(self, segment: RunSegment, model: Model):
        self.segment, self.record, self._model = segment, segment.record, model
        self._wrenches: dict[str, dict[str, Array]] = {}

    @property
    def torque(self) -> Array:
        """(N, nv) forces of the motors: without those of stops."""
        return self.record.tau - stop_forces(self.segment.problem, self.record)

    @cached_property
    def _motions(self) -> tuple[Array, Array, Array]:
        return all_link_motions(self.segment.model, self.record.q, self.record.v, self.record.a)

    def motion_of(self, link: str, p: Array) -> tuple[Array, Array]:
        """Return (N, 3) angular velocities, and specific forces of the point p of a link, along its axes."""
        model = self.segment.model
        T, V, dV = (x[:, model.link_index(link)] for x in self._motions)
        w, dw = V[:, :3], dV[:, :3]
        acceleration = dV[:, 3:] + np.cross(dw, p) + np.cross(w, V[:, 3:] + np.cross(w, p))
        return w, acceleration - np.einsum("nji,j->ni", T[:, :3, :3], model.gravity)

    def wrenches(self, axes: str) -> dict[str, Array]:
        """Return the (N, 6) wrenches of all joints by name, see `transmitted_wrenches`."""
        if axes not in self._wrenches:
            record, problem, model = self.record, self.segment.problem, self._model
            f_ext, reactions = None, None
            if len(problem.forced_links):
                f_ext = np.zeros((len(record.t), len(model.link_names), 6))
                f_ext[:, problem.forced_links] = problem.split_wrench(record.wrench)[0]
            if model.description.loops:
                reactions = constraint_wrenches(model, record.q, record.multipliers,
                                                constraint_motion=constraint_motions(model, record.constraint_motion))
            self._wrenches[axes] = transmitted_wrenches(self.segment.model, record.q, record.v, record.a, axes, f_ext=f_ext,
                                                        reactions=reactions, passive=problem.passive)
        return self._wrenches[axes]


# sensors of a scenario, bound to a robot ----------------------------------------------------------------------------------

def bind_sensors(scenario: Scenario, model: Model) -> tuple[BoundSensor, ...]:
    """Return the sensors of a scenario. Raises ScenarioError for names that the robot does not have."""
    sensors, owners = [], dict[str, str]()
    for sensor in scenario.sensors:
        bound = (_bind_joint_sensor if sensor.type in ("encoder", "torque") else _bind_body_sensor)(sensor, scenario, model)
        for name in bound.names:
            if name in owners:
                raise ScenarioError(f"sensors {owners[name]} and {sensor.name} both measure {name}", place=sensor.place,
                                    hint="list the joints of each in `joints`")
            owners[name] = sensor.name
        sensors.append(bound)
    return tuple(sensors)


def _sample_times(sensor: Sensor, scenario: Scenario) -> Array:
    """Return the times of the samples [s]."""
    rate, step, duration = sensor.rate, scenario.output_step, scenario.duration
    count = int(np.floor((duration / step if rate is None else duration * rate) * (1.0 + SAME_TIME))) + 1
    k = np.arange(count, dtype=float)
    return np.minimum(k * step if rate is None else k / rate, duration)


def _bind_body_sensor(sensor: Sensor, scenario: Scenario, model: Model) -> BoundSensor:
    if sensor.type == "imu":
        find_index(sensor.link, model.link_names, "link", sensor.place.at("link"))
    else:
        joints = [*(joint.name for joint in model.description.joints), *model.joint_names]
        find_index(sensor.joint, list(dict.fromkeys(joints)), "joint", sensor.place.at("joint"))
    names, units = zip(*_COMPONENTS[sensor.type], strict=True)
    return BoundSensor(sensor, _sample_times(sensor, scenario), tuple(f"{sensor.type}.{sensor.name}.{part}" for part in names),
                       units, np.ones(6), np.array(sensor.biases), np.array(sensor.noises), np.zeros(6),
                       np.zeros(0, dtype=np.int64), np.full(6, np.nan))


def _bind_joint_sensor(sensor: Sensor, scenario: Scenario, model: Model) -> BoundSensor:
    kind = "q" if sensor.type == "encoder" else "tau"
    q_of_v, joints = v_to_q_indices(model), []
    rules = bind_joints(sensor.joints or (Rule("*", ()),), model)
    for name, rule in rules.items():
        joint = model.joint(name)
        if joint.screws is not None:
            joints.append(joint)
        elif rule.pattern == name:
            raise ScenarioError(f"sensors of type {sensor.type} are not supported for {joint.type} joints", place=rule.place,
                                found=name, expected="a joint whose coordinates are angles or lengths")
    if not joints:
        raise ScenarioError(f"sensor {sensor.name} has no joints", place=sensor.place, expected="a robot with joints that move")
    v = np.concatenate([np.arange(joint.v.start, joint.v.stop) for joint in joints])
    coordinates = q_of_v[v] if kind == "q" else v
    columns = motion_columns(model, q=model.neutral()) if kind == "q" else motion_columns(model, tau=np.zeros(model.nv))
    owners = [joint.name for joint in joints for _ in range(joint.v.start, joint.v.stop)]

    def values(rules: Sequence[Rule], default: float) -> Array:
        of_joint = {name: float(rule.value) for name, rule in bind_rules(rules, list(dict.fromkeys(owners)),  # type: ignore[arg-type]
                                                                         "joint").items()}
        return np.array([of_joint.get(name, default) for name in owners])

    return BoundSensor(sensor, _sample_times(sensor, scenario), tuple(columns[k][0] for k in coordinates),
                       tuple(columns[k][1] for k in coordinates), values(sensor.scale, 1.0), values(sensor.offset, 0.0),
                       values(sensor.noise, 0.0), values(sensor.resolution, 0.0), coordinates,
                       values(sensor.torque_constant, np.nan))


# rows of a run at the samples ---------------------------------------------------------------------------------------------

def _merged(times: Array, extra: Array, slack: float) -> Array:
    """Return sorted times with those of `extra` that differ from all by more than `slack`."""
    extra = np.unique(extra)
    extra = extra[np.diff(extra, prepend=-np.inf) > slack]
    if len(times):
        following = np.searchsorted(times, extra)
        gaps = [np.abs(times[k.clip(0, len(times) - 1)] - extra) for k in (following - 1, following)]
        extra = extra[np.minimum(*gaps) > slack]
    return np.sort(np.concatenate([times, extra]))


def motion_times(outputs: Array, sensors: Sequence[BoundSensor]) -> Array:
    """Return the times of the rows of a run: the output times, and those that sensors require."""
    if not sensors:
        return outputs
    return _merged(outputs, np.concatenate([sensor.sources for sensor in sensors]), SAME_TIME * float(outputs[-1]))


def output_segments(segments: Sequence[RunSegment], outputs: Array) -> list[RunSegment]:
    """Return the segments with the rows of the result: at output times, and at the ends of segments."""
    selected, end = [], np.nan
    for segment in segments:
        t = segment.record.t
        rows = np.isin(t, outputs) | (t == end) | (t == t[-1])
        end = t[-1]
        selected.append(segment.rows(rows))
    return selected


def measure(sensors: Sequence[BoundSensor], scenario: Scenario, model: Model, segments: Sequence[RunSegment]) -> Measurements:
    """Return what sensors measure in a run, from its rows at `motion_times`.

    At an event, samples are those of the state after it. Samples after the end of a run that ended early are omitted.
    """
    t, slack = np.concatenate([segment.record.t for segment in segments]), SAME_TIME * scenario.duration
    counts = [int(np.searchsorted(sensor.times, t[-1] + slack, "right")) for sensor in sensors]
    rows = [np.searchsorted(t, sensor.sources[:n] + 2 * slack, "right") - 1 for sensor, n in zip(sensors, counts, strict=True)]
    needed, index = np.unique(np.concatenate(rows), return_inverse=True)
    exact = [np.empty((len(needed), len(sensor.names))) for sensor in sensors]
    for place, block in blocks(_selected(segments, needed)):
        quantities = MeasuredRows(block, model)
        for values, sensor in zip(exact, sensors, strict=True):
            values[place] = sensor.exact(quantities)
    stamps = _merged(np.zeros(0), np.concatenate([sensor.times[:n] for sensor, n in zip(sensors, counts, strict=True)]), slack)
    columns: list[tuple[str, str, Array]] = []
    for sensor, n, values, k in zip(sensors, counts, exact, np.split(index, np.cumsum(counts)[:-1]), strict=True):
        samples = np.full((len(stamps), len(sensor.names)), np.nan)
        samples[np.searchsorted(stamps, sensor.times[:n] - slack)] = sensor.samples(values[k], scenario.seed or 0)
        columns += zip(sensor.names, sensor.units, samples.T, strict=True)
        currents = np.flatnonzero(np.isfinite(sensor.constants))
        columns += [(f"current.{sensor.names[k].partition('.')[2]}", "A", samples[:, k] / sensor.constants[k]) for k in currents]
    names, units, arrays = zip(*columns, strict=True)
    return Measurements(stamps, names, units, np.column_stack(arrays))


def _selected(segments: Sequence[RunSegment], rows: Integers) -> list[RunSegment]:
    """Return the segments with these rows (sorted indices in the run) only."""
    out, first = [], 0
    for segment in segments:
        n = len(segment.record.t)
        inside = rows[np.searchsorted(rows, first):np.searchsorted(rows, first + n)] - first
        out.append(segment.rows(inside))
        first += n
    return out
