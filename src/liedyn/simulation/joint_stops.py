"""Position limits of joints in a scenario (`limits`), bound to a model as stops. See `kernels.simulation.joint_laws`.

The stiffness of a compliant stop follows from the load of its joint: the effort limit of the robot file, otherwise g sqrt(m M).
Here m is the mass that the joint carries and M its inertia in the neutral configuration. By the Cauchy-Schwarz inequality no
gravity force of the joint exceeds g sqrt(m M). A pendulum with a point mass and a slider reach it.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.dynamics.scales import model_scales
from liedyn.errors import LiedynWarning, ScenarioError
from liedyn.integrators.contact_forces import evaluate_stops
from liedyn.integrators.diagnosis import mass_matrix_by_columns
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.run_state import Record
from liedyn.integrators.segment import RightHandSide, evaluate_state
from liedyn.io.scenarios.scenario import LimitStops, Rule, Scenario
from liedyn.kernels.simulation import signals as code
from liedyn.kernels.simulation.joint_laws import Stops
from liedyn.model.model import Model
from liedyn.model.model_joint import ModelJoint
from liedyn.simulation.joint_friction import (
    FrictionState,
    friction_event_names,
    matches_friction_event,
    rigid_frictions,
)
from liedyn.simulation.name_binding import bind_joints
from liedyn.simulation.signals.expression import SignalProgram, sign_of_difference
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose

if TYPE_CHECKING:
    from liedyn.simulation.segment_problems import RunSegment  # imports this module

_SINK = {"rad": 0.01, "m": 0.001}
_STANDARD_GRAVITY = 9.81         # m/s^2: for the load of a robot without gravity
_MAX_DEPTH_RATIO = 3.0           # relative to the depth under the load: deeper penetration causes a warning


@dataclass(frozen=True)
class JointStop:
    """One active position limit of a coordinate.

    coordinate   index in v
    q            index in q
    side         1 upper, -1 lower
    limit        position of the stop [rad | m]
    hard         whether the velocity jumps at the stop, with the coefficient `restitution`
    unit_scale   characteristic size of the coordinate: 1 rad, or the characteristic length [m]
    stiffness    [N m/rad | N/m] of a compliant stop
    damping      [s/rad | s/m] of a compliant stop
    load         [N m | N] of a compliant stop
    """

    name: str
    coordinate: int
    q: int
    side: int
    limit: float
    hard: bool
    restitution: float = 0.0
    unit_scale: float = 1.0
    stiffness: float = 0.0
    damping: float = 0.0
    load: float = 0.0

    @property
    def size(self) -> float:
        """Scale for distances of the coordinate from the limit."""
        return max(self.unit_scale, abs(self.limit))


def limit_stops(scenario: Scenario, model: Model) -> tuple[JointStop, ...]:
    """Return the stops of a scenario in the order of the coordinates, the lower limit first.

    Raises ScenarioError where the scenario names a joint without limits.
    """
    limits = scenario.limits
    if limits is None:
        return ()
    stops: list[JointStop] = []
    inertia, hard = None, limits.mode == "hard"
    for name, rule in bind_joints(limits.joints or (Rule("*", "stop"),), model).items():
        joint = model.joint(name)
        limited = [k for k in range(joint.v.start, joint.v.stop) if joint.screws is not None and model.lower[k] < model.upper[k]
                   and np.isfinite([model.lower[k], model.upper[k]]).any()]
        if not limited and rule.pattern == name:
            raise ScenarioError(f"joint {name} has no position limits in the robot file", place=rule.place,
                                expected="lower and upper in its limits")
        for k in limited:
            compliance: dict[str, float] = {}
            if not hard:
                inertia = np.diag(mass_matrix_by_columns(model, model.neutral())) if inertia is None else inertia
                compliance = _compliance(limits, model, joint, k, float(inertia[k]))
            stops += [JointStop(model.v_names[k], k, joint.q.start + k - joint.v.start, side, float(limit), hard,
                                limits.restitution, model_scales(model).unit_scale(model.v_units[k]), **compliance)
                      for side, limit in ((-1, model.lower[k]), (1, model.upper[k])) if math.isfinite(limit)]
    return tuple(stops)


def _compliance(limits: LimitStops, model: Model, joint: ModelJoint, k: int, inertia: float) -> dict[str, float]:
    effort, mass = float(model.effort_limit[k]), _mass_behind(model, joint)
    gravity = float(np.linalg.norm(model.gravity)) or _STANDARD_GRAVITY
    load = effort if 0.0 < effort < math.inf else gravity * math.sqrt(mass * inertia) or gravity * inertia
    sink = limits.sink or _SINK[model.v_units[k]]
    stiffness = limits.stiffness or load / sink
    if not stiffness > 0.0:
        raise ScenarioError(f"the stop of {model.v_names[k]} has no load: no mass moves with this coordinate", place=limits.place,
                            expected="limits.stiffness")
    return {"stiffness": stiffness, "damping": limits.damping, "load": load}


def _mass_behind(model: Model, joint: ModelJoint) -> float:
    robot, behind = model.description, [joint.child]
    for link in behind:
        behind += [child_joint.child for child_joint in robot.joints if child_joint.parent == link]
    return math.fsum(link.mass for link in robot.links if link.name in behind)


# events of hard stops -------------------------------------------------------------------------------------------------
_LIMIT_PREFIX, _RELEASE_SUFFIX = "limit of ", " off its limit"


def impact_name(stops: Sequence[JointStop]) -> str:
    """Return the name of the event in which coordinates reach these stops simultaneously."""
    return _LIMIT_PREFIX + _names(stops)


def release_name(stops: Sequence[JointStop]) -> str:
    """Return the name of the event in which coordinates leave these stops after resting at them."""
    return _names(stops) + _RELEASE_SUFFIX


def _names(stops: Sequence[JointStop]) -> str:
    return " and ".join(dict.fromkeys(stop.name for stop in stops))


def stop_event_names(stops: Sequence[JointStop], model: Model) -> list[str]:
    """Return the names of the events of hard stops, one impact and one release for each coordinate, and of rigid friction."""
    each = [(stop,) for stop in {stop.name: stop for stop in stops if stop.hard}.values()]
    return [*map(impact_name, each), *map(release_name, each), *friction_event_names(rigid_frictions(model))]


def matches_event(name: str, event: str) -> bool:
    """Return whether the name of an occurred event is `event`, or combines it with other coordinates at their stops."""
    for prefix, suffix in ((_LIMIT_PREFIX, ""), ("", _RELEASE_SUFFIX)):
        if all(x.startswith(prefix) and x.endswith(suffix) for x in (name, event)):
            coordinate, coordinates = (x[len(prefix):len(x) - len(suffix)] for x in (event, name))
            return coordinate == coordinates or coordinate in coordinates.split(" and ")
    return name == event or matches_friction_event(name, event)


# stops of a phase -------------------------------------------------------------------------------------------------------
class BoundStops(NamedTuple):
    """The stops of a phase as an initial value problem requires them, without those of prescribed coordinates.

    stops           None if there are none
    event_signals   signals of the hard stops at which no coordinate rests, then of the velocities of coordinates that slide
    directions      crossing directions of the events: these, then the stops at which coordinates rest, and two for each
                    coordinate that sticks. A limit is crossed outwards. A stop releases its coordinate when its force would pull,
                    beyond the friction of the coordinate.
    sizes           scales of the expressions of these events: a position, a velocity, or the force of a stop or of friction
    loads           loads of the compliant stops
    """

    stops: Stops | None
    event_signals: tuple[int, ...]
    directions: tuple[int, ...]
    sizes: tuple[float, ...]
    loads: Array


def _integers(values: Iterable[int]) -> Integers:
    return np.array(list(values), dtype=np.int64)


def stops_by_state(stops: tuple[JointStop, ...], level: Integers,
                   resting: tuple[JointStop, ...]) -> tuple[tuple[JointStop, ...], tuple[JointStop, ...]]:
    """Return the hard stops at which no coordinate rests, and those at which one does. Prescribed coordinates have none."""
    acting = [stop for stop in stops if stop.hard and level[stop.coordinate] == code.TORQUE]
    still = [stop.coordinate for stop in resting]
    return (tuple(stop for stop in acting if stop.coordinate not in still), tuple(stop for stop in resting if stop in acting))


def bind_stops(stops: tuple[JointStop, ...], level: Integers, resting: tuple[JointStop, ...], friction: FrictionState,
               compiler: SignalCompiler, model: Model) -> BoundStops:
    """Return the stops and the rigid friction that act in a phase.

    level     (nv,) how each coordinate is actuated
    resting   hard stops at which coordinates rest
    friction  modes of the other coordinates with rigid friction
    """
    compliant = [stop for stop in stops if not stop.hard and level[stop.coordinate] == code.TORQUE]
    hard, resting = stops_by_state(stops, level, resting)
    event_signals = tuple(compiler.add_program(sign_of_difference(SignalProgram((code.STATE_Q + 256 * stop.q,), (), 1),
                                                                  stop.limit), SignalPurpose(f"limit of {stop.name}"))
                          for stop in hard)
    moving = [mode for mode in friction if mode.moves]
    event_signals += tuple(compiler.add_program(sign_of_difference(
        SignalProgram((code.STATE_V + 256 * mode.friction.coordinate,), (), 1), 0.0),
        SignalPurpose(f"velocity of {mode.friction.name}")) for mode in moving)
    sticking, sliding = ([mode for mode in friction if bool(mode.direction) == slides] for slides in (False, True))
    coefficients = [mode.friction.coefficients(mode.direction, mode.at_rest) for mode in sliding]
    static = {mode.friction.coordinate: mode.friction.static for mode in friction}
    at_rest = [(stop.coordinate, stop.side, stop.side * static.get(stop.coordinate, 0.0)) for stop in resting]
    at_rest += [(mode.friction.coordinate, side, side * mode.friction.release) for mode in sticking for side in (1, -1)]
    parameters = np.array([(stop.limit, stop.stiffness, stop.damping) for stop in compliant], dtype=float).reshape(-1)
    bound = Stops(_integers(stop.coordinate for stop in compliant), _integers(stop.side for stop in compliant), parameters,
                  _integers(compiler.reserve_switches(2, f"stop of {stop.name}") for stop in compliant),
                  _integers(k for k, *_ in at_rest), _integers(compiler.reserve_switches(1) for _ in at_rest),
                  np.array([force for *_, force in at_rest], dtype=float),
                  _integers(mode.friction.coordinate for mode in sticking),
                  _integers(mode.friction.coordinate for mode in sliding), np.array(coefficients, dtype=float).reshape(-1),
                  np.zeros(len(level)))
    sizes = [stop.size for stop in hard] + [mode.friction.speed_scale for mode in moving]
    sizes += model_scales(model).force_scales(model.v_units[stop.coordinate] for stop in resting).tolist()
    sizes += [mode.friction.force_scale for mode in sticking for _ in range(2)]
    sides = [stop.side for stop in hard] + [-mode.direction for mode in moving] + [side for _, side, _ in at_rest]
    return BoundStops(bound if compliant or hard or resting or friction else None, event_signals, tuple(sides), tuple(sizes),
                      np.array([stop.load for stop in compliant]))


# evaluation of a motion -------------------------------------------------------------------------------------------------
def stop_warnings(segments: Sequence[RunSegment]) -> list[LiedynWarning]:
    """Return warnings about compliant stops that are pressed in much more than by the load of their joint."""
    worst: dict[str, tuple[float, float, str, float]] = {}
    for segment in segments:
        p, record = segment.problem, segment.record
        if p.stops is None or not len(p.stops.coordinate):
            continue
        depth = evaluate_stops(p, record.q, record.v).depth
        row = depth.argmax(axis=0)
        for j, k in enumerate(p.stops.coordinate):
            stiffness = p.stops.coefficients.reshape(-1, 3)[j, 1]
            sink, name, depth_of_row = p.stop_loads[j] / stiffness, segment.model.v_names[k], float(depth[row[j], j])
            if depth_of_row > _MAX_DEPTH_RATIO * sink and depth_of_row > worst.get(name, (0.0,))[0]:
                worst[name] = depth_of_row, float(record.t[row[j]]), segment.model.v_units[k], sink
    return [LiedynWarning("stop-yields",
                          f"the stop of {name} deflects by {depth:.3g} {unit} at t = {t:.6g} s, but by {sink:.3g} {unit} under "
                          "the load of the joint: increase limits.stiffness") for name, (depth, t, unit, sink) in worst.items()]


def stop_forces(problem: InitialValueProblem, record: Record) -> Array:
    """Return the (N, nv) generalized forces of stops in a motion [N m | N], which are part of its tau.

    NaN for coordinates at rest under pid or sampled laws, whose forces are states that rows do not have.
    """
    out, stops = np.zeros_like(record.tau), problem.stops
    if stops is None:
        return out
    force = evaluate_stops(problem, record.q, record.v).force
    for j, k in enumerate(stops.coordinate):
        out[:, k] -= stops.side[j] * force[:, j]
    if len(stops.resting) and (problem.sampled is not None or len(problem.schedule.ki)):
        out[:, stops.resting] = np.nan
    elif len(stops.resting):
        rhs, reading = RightHandSide(problem, problem.signals), problem.signals.switches[code.SWITCH_VALUE::code.SWITCH_SIZE]
        last = np.nextafter(record.t[-1], -np.inf)             # the last row precedes the event at its time
        integral = np.hstack([np.zeros_like(record.v), record.stretch])       # see `SegmentStart`
        for i, (t, q, v) in enumerate(zip(np.minimum(record.t, last), record.q, record.v, strict=True)):
            evaluate_state(problem, t, q, v, rhs, integral[i])
            out[i, stops.resting] = reading[stops.resting_switch]
    return out
