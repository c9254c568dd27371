"""What a scenario is: the description of a run, checked as far as can be without the robot (`scenario_file` reads it).

Signals keep what was asked for (an expression stays text); `simulation.schedule` binds names to a model and compiles them.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from liedyn.errors import Place

if TYPE_CHECKING:
    from liedyn.io.scenarios.contact_shapes import Contact
    from liedyn.io.scenarios.events import Event, Phase
    from liedyn.io.scenarios.sampling import Sampling
    from liedyn.io.scenarios.stop_keys import LimitStops
    from liedyn.io.scenarios.waypoints import Waypoints

ADAPTIVE = ("rtol", "atol", "max_step")
METHODS = {"rk4": ("step",), "generalized_alpha": ("step", "rho"), "variational": ("step",)}
METHODS |= dict.fromkeys(("dopri5", "dop853", "rodas5p", "RK45", "DOP853", "Radau", "BDF", "LSODA"), ADAPTIVE)
WITHOUT_EVENTS = "generalized_alpha", "variational"       # their steps do not end at events, and they know no slopes of contacts
STABILIZATIONS = {"projection": ("tolerance",), "baumgarte": ("frequency",), "none": ()}
# and how many poles the error of each joint has
LAWS = {"feedback_linearization": 4, "computed_torque": 2, "task_space": 2, "gravity_compensation": 0, "state_feedback": 0}
EFFORT = "effort"                # of `saturate`: the limit of the robot file


@dataclass(frozen=True, slots=True)
class Constant:
    value: float
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of time and state, such as "2*sin(t) - q(elbow)"."""

    text: str
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Quintic:
    """Waypoints (t, x, dx, ddx) joined by polynomials of degree five; constant before the first and after the last."""

    points: tuple[tuple[float, float, float, float], ...]
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Spline:
    """Points (t, x) joined by a clamped C2 cubic; constant before the first and after the last."""

    points: tuple[tuple[float, float], ...]
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Sine:
    """offset + amplitude sin(2 pi frequency t + phase)."""

    amplitude: float
    frequency: float             # Hz
    phase: float = 0.0           # rad
    offset: float = 0.0
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a CSV. No name: the one that belongs to the coordinate; no interpolation: linear for a force, else quintic."""

    file: str
    name: str | None = None
    interpolation: str | None = None
    place: Place = field(default=Place(), compare=False)


PHASE_START = "phase"            # of `from`: the beginning of the present phase


@dataclass(frozen=True, slots=True)
class Begun:
    """A curve whose time begins with the present phase, `start` PHASE_START, or with the last time of an event; before that it
    has its first value."""

    curve: Quintic | Spline | Sine | Column
    start: str
    place: Place = field(default=Place(), compare=False)


Signal = Constant | Expression | Quintic | Spline | Sine | Column | Begun


@dataclass(frozen=True, slots=True)
class Torque:
    """Joint force by signals: one for each coordinate, or a single one for all of them."""

    signals: Signal | tuple[Signal, ...]
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Pd:
    """tau = kp (target - q) + kd (d target/dt - v) + feedforward, and the gravity force where `gravity`; tuples have an entry for
    each coordinate. ki: of the integral of target - q, a pid law, by a sum where it is sampled; None: a pd law."""

    kp: float | tuple[float, ...]
    kd: float | tuple[float, ...]
    target: Signal | tuple[Signal, ...]
    feedforward: Signal | tuple[Signal, ...]
    gravity: bool = False
    place: Place = field(default=Place(), compare=False)
    ki: float | tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Prescribe:
    """Motion given at one of LEVELS; at position level, that of a ball or free joint by a pose."""

    level: str
    signals: Signal | tuple[Signal, ...] | Motion | Waypoints
    place: Place = field(default=Place(), compare=False)


Drive = Torque | Pd | Prescribe


@dataclass(frozen=True, slots=True)
class Motion:
    """Motion of a driven loop's frame A in its link, or of a ball or free joint: position x y z [m], then R = Rz(yaw) Ry(pitch)
    Rx(roll) [rad]; three signals each, none: zero."""

    xyz: tuple[Signal, ...] = ()
    rpy: tuple[Signal, ...] = ()
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Stabilization:
    """What keeps a simulated motion on its constraints.

    projection   after each step, position and velocity move onto the constraints by the shortest way in the metric of the mass
                 matrix, until the largest residual is below `tolerance` [rad | m per
                 length of the loop]
    baumgarte    accelerations that take a residual r away: r'' + 2 f r' + f^2 r = 0, f = `frequency` [rad/s]
    none         nothing: residuals grow with time
    """

    method: str = "projection"
    tolerance: float = 1e-12
    frequency: float = 20.0
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for the joints, actuators or driven loops whose name is, or matches, `pattern`."""

    pattern: str
    value: Drive | Motion | Signal | tuple[float, ...] | float | str
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Control:
    """A law that gives forces of joints, see `control` (elastic joints) and `laws` (rigid joints) in `simulation.control_laws`.

    law        feedback_linearization   the links' error e obeys a linear equation of fourth order; elastic joints only
               computed_torque          of second order: for the motors of elastic joints as if these were rigid, else for joints
               task_space               of second order, of the pose of a link
               gravity_compensation     the gravity force
               state_feedback           what holds the state `about` less gain times the deviation from it
    motion     of the first two: desired motion of each joint; for elastic ones of each link relative to its parent, by the name
               of its motor's joint
    poles      of the error of each joint, LAWS[law] of them [1/s], below zero; or
    bandwidth  [rad/s]: all of them at -bandwidth
    joints     of the last two: names or patterns; none: all that are not prescribed, but a free one
    gain       rows by coordinate of `joints`, columns by deviation of q (tangent), then of v; or with names:
    rows, columns   of the gain: tau.<coordinate>; q.<coordinate>, v.<coordinate>
    link, point   of task_space: a point of a link, in link coordinates [m], whose pose is `target`
    posture    of task_space: positions by joint
    about_q, about_v   values by joint; those that are not given are neutral, zero
    """

    law: str
    motion: tuple[Rule, ...] = ()
    poles: tuple[float, ...] = ()
    bandwidth: float | None = None
    joints: tuple[Rule, ...] = ()
    gain: tuple[tuple[float, ...], ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    link: str = ""
    point: tuple[float, ...] = (0.0, 0.0, 0.0)
    target: Motion | Waypoints | None = None
    posture: tuple[Rule, ...] = ()
    about_q: tuple[Rule, ...] = ()
    about_v: tuple[Rule, ...] = ()
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class StartFrom:
    """The last row of a trajectory as initial state."""

    file: str
    place: Place = field(default=Place(), compare=False)


FORCE_FRAMES = ("local", "local_world_aligned")        # link axes; world axes


@dataclass(frozen=True, slots=True)
class ExternalForce:
    """Wrench [m; f] on a link about `point` of it, from `start` until `end`.

    frame: one of FORCE_FRAMES, of which the wrench has the axes; `point` is always along link axes.
    """

    link: str
    frame: str
    wrench: tuple[Signal, ...]
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    start: float = -math.inf
    end: float = math.inf
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Integrator:
    """The method of integration, and its options."""

    method: str = "rk4"
    step: float = 1e-3           # rk4, generalized_alpha, variational
    rho: float = 0.9             # generalized_alpha: spectral radius at infinite frequency; 1 damps nothing, 0 all of it
    rtol: float = 1e-8           # the others
    atol: float = 1e-10
    max_step: float = math.inf
    named: bool = field(default=True, compare=False)     # whether the scenario names method or step; else a run may choose
    place: Place = field(default=Place(), compare=False)

    @property
    def step_is_fixed(self) -> bool:
        return "step" in METHODS[self.method]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What `simulate` runs: a scenario file as it was read, with paths that can be opened."""

    robot: str                   # path as it can be opened from the current folder
    duration: float
    output_step: float
    base: str | None = None      # None: as the robot file says
    gravity: tuple[float, float, float] | None = None
    integrator: Integrator = Integrator(named=False)
    passive: bool = True
    seed: int | None = None
    initial_q: tuple[Rule, ...] = ()
    initial_v: tuple[Rule, ...] = ()
    joints: tuple[Rule, ...] = ()
    forces: tuple[ExternalForce, ...] = ()
    actuators: tuple[Rule, ...] = ()
    loops: str | None = None     # path of a file of closures and couplings; None: what belongs to the robot file
    assemble: bool = True        # the initial state of a robot with constraints is moved onto them
    stabilization: Stabilization = Stabilization()
    initial_from: StartFrom | None = None
    drives: tuple[Rule, ...] = ()                # motions of driven loops
    control: Control | None = None
    sampling: Sampling | None = None             # of the laws; None: they are continuous
    saturate: tuple[Rule, ...] = ()              # limits of joint forces: EFFORT or a number
    motors: tuple[Rule, ...] = ()                # of joints: `motor_keys.Motor`
    contacts: Contact | None = None
    limits: LimitStops | None = None             # stops at position limits; None: limits are only noted
    phases: tuple[Phase, ...] = ()
    events: tuple[Event, ...] = ()
    source: str | None = field(default=None, compare=False)
    overrides: tuple[str, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)          # for people: what overrides replaced
