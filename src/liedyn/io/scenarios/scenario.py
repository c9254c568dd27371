"""Scenarios as data: the description of a run, checked as far as possible without the robot. `scenario_file` reads them.

Signals are stored as they are written (an expression stays text). `simulation.input_schedule` compiles them for a model.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar

import numpy as np

from liedyn.arrays import Base
from liedyn.errors import InputElement, LiedynWarning, summarized

ADAPTIVE = ("rtol", "atol", "max_step")
METHODS = {"rk4": ("step",), "generalized_alpha": ("step", "rho"), "variational": ("step",)}
METHODS |= dict.fromkeys(("dopri5", "dop853", "rodas5p", "RK45", "DOP853", "Radau", "BDF", "LSODA"), ADAPTIVE)
# methods whose steps solve the equations of motion: they know no integrals of pid laws and no derivatives of contact forces
MECHANICAL_METHODS = "generalized_alpha", "variational"
STABILIZATIONS = {"projection": ("tolerance",), "baumgarte": ("frequency",), "none": ()}
ROBOT_LIMITS = "limits"          # of `saturate`: the effort limit of the robot file


@dataclass(frozen=True, slots=True)
class Constant(InputElement):
    """A signal with one value."""

    value: float


@dataclass(frozen=True, slots=True)
class Expression(InputElement):
    """An expression of time and state, such as "2*sin(t) - q(elbow)"."""

    text: str


@dataclass(frozen=True, slots=True)
class Quintic(InputElement):
    """Waypoints (t, x, dx, ddx) joined by polynomials of degree five; constant before the first and after the last."""

    points: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Spline(InputElement):
    """Points (t, x) joined by a clamped C2 cubic; constant before the first and after the last."""

    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Sine(InputElement):
    """offset + amplitude sin(2 pi frequency t + phase)."""

    amplitude: float
    frequency: float             # Hz
    phase: float = 0.0           # rad
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Move(InputElement):
    """Fastest motions between points at which the joint rests, under limits. The joint stays at a point until the next time.

    points   (t, x, dx, ddx) of the start; then (t, x) with the time at which the motion to x starts, None: at once
    limits   velocity, acceleration and jerk; None: that of the robot file
    """

    points: tuple[tuple[float | None, ...], ...]
    velocity: float | None = None
    acceleration: float | None = None
    jerk: float | None = None


@dataclass(frozen=True, slots=True)
class Column(InputElement):
    """A column of a CSV. Defaults: the column of the coordinate; linear interpolation of a force, quintic of other quantities."""

    file: str
    name: str | None = None
    interpolation: str | None = None


@dataclass(frozen=True, slots=True)
class Table(InputElement):
    """A table of one or two expressions of time and state.

    of             the expressions
    points         rows: a value of each expression, and that of the signal; of two expressions, all combinations of values
    interpolation  linear, monotone or cubic
    outside        beyond the points: error, hold (the value at the end) or linear (the straight line from the end)
    period         of each expression, 0: none; empty: none of all
    units          of the columns of the points, "": unknown; empty: all unknown
    """

    of: tuple[str, ...]
    points: tuple[tuple[float, ...], ...]
    interpolation: str = "monotone"
    outside: str = "error"
    period: tuple[float, ...] = ()
    units: tuple[str, ...] = field(default=(), compare=False)

    @property
    def periods(self) -> tuple[float, ...]:
        """The period of each expression; 0: none."""
        return self.period or (0.0,) * len(self.of)


PHASE_START = "phase"            # of `from`: the beginning of the present phase


@dataclass(frozen=True, slots=True)
class RelativeTime(InputElement):
    """A curve whose time is relative to the start of the present phase (`start` is PHASE_START) or to the last event `start`.

    Before the event it has its first value.
    """

    curve: Quintic | Spline | Sine | Column | Move
    start: str


Signal = Constant | Expression | Quintic | Spline | Sine | Column | Move | Table | RelativeTime


@dataclass(frozen=True, slots=True)
class Torque(InputElement):
    """Generalized forces by signals: one for each coordinate, or one for all of them."""

    signals: Signal | tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class Pd(InputElement):
    """Control law tau = kp (target - q) + kd (d target/dt - v) + feedforward, plus the gravity force if `gravity`.

    Tuples have an entry for each coordinate. ki is the gain of the integral of target - q (a sum if the law is sampled); None:
    there is no integral.
    """

    kp: float | tuple[float, ...]
    kd: float | tuple[float, ...]
    target: Signal | tuple[Signal, ...]
    feedforward: Signal | tuple[Signal, ...]
    gravity: bool = False
    ki: float | tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Prescribe(InputElement):
    """Prescribed motion at one of LEVELS. At position level, that of a ball or free joint is a pose."""

    level: str
    signals: Signal | tuple[Signal, ...] | Motion | Waypoints


Drive = Torque | Pd | Prescribe


@dataclass(frozen=True, slots=True)
class Motion(InputElement):
    """Motion of frame A of a driven loop in its link, or of a ball or free joint.

    xyz  position [m]
    rpy  angles of R = Rz(yaw) Ry(pitch) Rx(roll) [rad]

    Both have three signals; empty: zero.
    """

    xyz: tuple[Signal, ...] = ()
    rpy: tuple[Signal, ...] = ()


@dataclass(frozen=True, slots=True)
class Stabilization(InputElement):
    """Method that keeps a simulated motion on its constraints.

    projection   after each step, position and velocity are projected onto the constraints, orthogonally in the metric of the mass
                 matrix, until the maximum residual is below `tolerance` [rad | m per length of the loop]
    baumgarte    accelerations that reduce a residual r: r'' + 2 f r' + f^2 r = 0, f = `frequency` [rad/s]
    none         no stabilization: residuals grow with time
    """

    method: str = "projection"
    tolerance: float = 1e-12
    frequency: float = 20.0


@dataclass(frozen=True, slots=True)
class Motor:
    """A motor behind a gear.

    gear              turns of the motor for one of the joint [rad/rad | rad/m]
    curve             points (speed, torque) of the motor [rad/s, N m] with increasing speeds; none: no limit
    inertia           of the rotor [kg m^2]
    voltage           [V], instead of a curve; None: no limit
    current           maximum current [A]; None: no limit
    resistance        of the winding [ohm]; None: unknown
    torque_constant   [N m/A], which is also that of the back EMF [V s/rad]; None: unknown
    peak              maximum torque [N m]; None: no limit
    gear_efficiency   where the motor drives the joint, and where the joint drives the motor
    loss_map          rows (speed, torque, loss) of other losses [rad/s, N m, W]
    efficiency_map    rows (speed, torque, efficiency) of all losses of the motor
    regeneration      whether electrical power is returned; otherwise a resistor dissipates it
    thermal           continuous torque [N m], time constant [s], and load at the start of the winding; None: no thermal model
    """

    gear: float = 1.0
    curve: tuple[tuple[float, float], ...] = ()
    inertia: float = 0.0
    voltage: float | None = None
    current: float | None = None
    resistance: float | None = None
    torque_constant: float | None = None
    peak: float | None = None
    gear_efficiency: tuple[float, float] = (1.0, 1.0)
    loss_map: tuple[tuple[float, float, float], ...] = ()
    efficiency_map: tuple[tuple[float, float, float], ...] = ()
    regeneration: bool = True
    thermal: tuple[float, float, float] | None = None

    @property
    def torque_limit(self) -> float:
        """Maximum torque at all speeds by `peak` and `current` [N m]; infinite without them."""
        by_current = math.inf if self.current is None or self.torque_constant is None else self.current * self.torque_constant
        return min(by_current, math.inf if self.peak is None else self.peak)

    @property
    def has_limit(self) -> bool:
        """Whether the torque is limited."""
        return bool(self.curve) or self.voltage is not None or self.torque_limit < math.inf

    @property
    def has_losses(self) -> bool:
        """Whether electrical losses are known."""
        return self.resistance is not None or bool(self.loss_map or self.efficiency_map)


@dataclass(frozen=True, slots=True)
class Friction(InputElement):
    """Friction of a joint, which replaces that of the robot file: its keys and their values, as there."""

    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Rule(InputElement):
    """A value for the joints, actuators or driven loops whose name matches `pattern`."""

    pattern: str
    value: Drive | Motion | Signal | Motor | Friction | tuple[Shape, ...] | tuple[float, ...] | float | str


@dataclass(frozen=True, slots=True)
class ControlModel(InputElement):
    """The robot that a law computes with: a robot file, or the robot of the scenario, with other values of parameters by name."""

    robot: str | None = None
    parameters: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ObserverSettings(InputElement):
    """An observer, whose estimate the sampled laws use in place of the state.

    gain, rows, columns      gain L of the error of the measured coordinates: states q.…, v.… by outputs q.…, v.…
    initial_q, initial_v     first estimate by joint; those that are not given are neutral, zero
    model, bound_model       as of `Control`: with which it predicts
    """

    gain: tuple[tuple[float, ...], ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    initial_q: tuple[Rule, ...] = ()
    initial_v: tuple[Rule, ...] = ()
    model: ControlModel | None = None
    bound_model: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PythonController(InputElement):
    """A controller in Python: a function or a class of a file or module, and arguments by name.

    model, bound_model   as of `Control`: for objects of a class
    """

    module: str
    name: str
    is_file: bool = True
    arguments: tuple[tuple[str, Any], ...] = ()
    model: ControlModel | None = None
    bound_model: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Control(InputElement):
    """A law that gives forces of joints, see `elastic_joint_control` and `rigid_joint_laws` in `simulation.control`.

    law        feedback_linearization   the links' error e obeys a linear equation of fourth order; elastic joints only
               computed_torque          of second order: for the motors of elastic joints as if these were rigid, else for joints
               task_space               of second order, of the pose of a link
               gravity_compensation     the gravity force
               state_feedback           the force that holds the state `setpoint`, less gain times the deviation from it
               slotine_li               passivity-based control, see `SlotineLiControl`
    motion     of feedback_linearization, computed_torque, slotine_li: desired motion of each joint; for elastic ones of each link
               relative to its parent, by the name of its motor's joint
    poles      of the error of each joint, as many as the law has [1/s], below zero; or
    bandwidth  [rad/s]: all of them at -bandwidth
    joints     of gravity_compensation and state_feedback: names or patterns; none: those with motors, or all not prescribed
    gain       of state_feedback: rows by coordinate of `joints`, columns by deviation of q (tangent), then of v; or with names:
    rows, columns   of the gain: tau.<coordinate>; q.<coordinate>, v.<coordinate>
    link, point   of task_space: a point of a link, in link coordinates [m], whose pose is `target`
    posture    of task_space: positions by joint
    gain_file, gain_titles   CSV with gains by time, in columns row/column; empty: gains are constant
    setpoint_q, setpoint_v   values by joint; those that are not given are neutral, zero
    setpoint_file   CSV with a motion in place of these; empty: none
    model, bound_model   the robot that the law computes with, and its model (`simulation.control.control_model`); None: the robot
                         that is simulated
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
    setpoint_q: tuple[Rule, ...] = ()
    setpoint_v: tuple[Rule, ...] = ()
    gain_file: str = ""
    gain_titles: tuple[str, ...] = ()
    setpoint_file: str = ""
    model: ControlModel | None = None
    bound_model: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SlotineLiControl(Control):
    """Passivity-based control, which may adapt inertial parameters of links.

    kd                by joint or pattern: gain of s = e' + bandwidth e [N m s/rad | N s/m]
    adapt             names or patterns of the parameters that are adapted, such as mass.hand; none: no adaptation
    adaptation_gain   [1/J] of the natural gradient
    """

    kd: tuple[Rule, ...] = ()
    adapt: tuple[Rule, ...] = (Rule("*", "adapt"),)
    adaptation_gain: float = 1.0


@dataclass(frozen=True, slots=True)
class StartFrom(InputElement):
    """The initial state: a keyframe of the robot, or else the last or first row of a trajectory file."""

    file: str | None = None
    keyframe: str | None = None
    row: str = "last"


FORCE_FRAMES = ("local", "local_world_aligned")        # link axes; world axes


@dataclass(frozen=True, slots=True)
class ExternalForce(InputElement):
    """Wrench [m; f] on a link about `point` of it, from `start` until `end`.

    frame: one of FORCE_FRAMES, of which the wrench has the axes; `point` is always along link axes.
    """

    link: str
    frame: str
    wrench: tuple[Signal, ...]
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    start: float = -math.inf
    end: float = math.inf


@dataclass(frozen=True, slots=True)
class Integrator(InputElement):
    """The integration method and its options."""

    method: str = "rk4"
    step: float = 1e-3           # rk4, generalized_alpha, variational
    rho: float = 0.9             # generalized_alpha: spectral radius at infinite frequency; 1 damps nothing, 0 all of it
    rtol: float = 1e-8           # the others
    atol: float = 1e-10
    max_step: float = math.inf
    named: bool = field(default=True, compare=False)     # whether the scenario names method or step; else a run may choose

    @property
    def step_is_fixed(self) -> bool:
        """Whether the method takes steps of a fixed length."""
        return "step" in METHODS[self.method]


@summarized
@dataclass(frozen=True, slots=True)
class Scenario:
    """A run of `simulate`: the content of a scenario file. Its paths are relative to the current folder or absolute."""

    robot: str                   # path as it can be opened from the current folder
    duration: float
    output_step: float
    base: Base | None = None     # None: as the robot file says
    gravity: tuple[float, float, float] | None = None
    inertia_from_meshes: float | None = None     # density of links of a URDF without inertial
    ignore: tuple[str, ...] = ()                 # parts of an MJCF file that are left out
    xacro_args: tuple[tuple[str, str], ...] = ()     # arguments of a xacro file
    package_roots: tuple[str, ...] = ()          # folders in which `package://` meshes are searched
    ignore_mimic: bool = False   # mimic joints and couplings of the robot are left out
    integrator: Integrator = Integrator(named=False)
    passive: bool = True
    seed: int | None = None
    initial_q: tuple[Rule, ...] = ()
    initial_v: tuple[Rule, ...] = ()
    initial_guess: tuple[Rule, ...] = ()         # of positions: where assembly starts
    initial_keep: tuple[Rule, ...] = ()          # joints that assembly does not move
    joints: tuple[Rule, ...] = ()
    forces: tuple[ExternalForce, ...] = ()
    actuators: tuple[Rule, ...] = ()
    loops: str | None = None     # path of a file of closures and couplings; None: what belongs to the robot file
    assemble: bool = True        # the initial state of a robot with constraints is moved onto them
    stabilization: Stabilization = Stabilization()
    initial_from: StartFrom | None = None
    constraint_motion: tuple[Rule, ...] = ()     # motions of driven loops
    control: Control | None = None
    sampling: Sampling | None = None             # of the laws; None: they are continuous
    controller: PythonController | None = None   # is called at samples
    observer: ObserverSettings | None = None     # estimates the state that sampled laws use
    sensors: tuple[Sensor, ...] = ()
    saturate: tuple[Rule, ...] = ()              # limits of generalized forces: ROBOT_LIMITS or a number
    motors: tuple[Rule, ...] = ()                # of joints: `Motor`
    friction: tuple[Rule, ...] = ()              # of joints: `Friction`
    contacts: Contact | None = None
    limits: LimitStops | None = None             # stops at position limits; None: limits are only noted
    phases: tuple[Phase, ...] = ()
    events: tuple[Event, ...] = ()
    source: str | None = field(default=None, compare=False)
    overrides: tuple[str, ...] = field(default=(), compare=False)
    warnings: tuple[LiedynWarning, ...] = field(default=(), compare=False)          # for people: what overrides replaced

    @property
    def robot_options(self) -> dict[str, Any]:
        """Arguments of `robot_files.read_model` for the robot; hashable."""
        names = ("base", "gravity", "loops", "ignore", "ignore_mimic", "inertia_from_meshes", "xacro_args", "package_roots")
        return {name: getattr(self, name) for name in names}


# Waypoints of a pose ----------------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Waypoint(InputElement):
    """Pose at time t [s]: position xyz [m] (empty: zero), rpy [rad] or quaternion x y z w (both empty: no rotation)."""

    t: float
    xyz: tuple[float, ...] = ()
    rpy: tuple[float, ...] = ()
    quaternion: tuple[float, ...] = ()

    @property
    def turn(self) -> np.ndarray:
        """Orientation as a (4,) unit quaternion x y z w."""
        if self.quaternion:
            return np.array(self.quaternion) / math.hypot(*self.quaternion)
        from scipy.spatial.transform import Rotation
        return np.asarray(Rotation.from_euler("xyz", self.rpy or (0.0, 0.0, 0.0)).as_quat())


@dataclass(frozen=True, slots=True)
class Waypoints(InputElement):
    """A smooth motion through poses, at rest at both ends; the pose stays before the first and after the last."""

    points: tuple[Waypoint, ...]


# A scenario's `sampling`: control laws are computed at sample times, and their torques are held in between --------------

FORCE_LONG = "--force-long or force_long=True allows more"     # hint of errors about long runs
LEAST_PERIOD = 1e-12             # s
MEASURED = "q", "v", "tau"
HOLDS = "zero", "first"


@dataclass(frozen=True, slots=True)
class Sampling(InputElement):
    """When a sampled controller acts, and how exactly.

    rate        [Hz], or None and
    period      between samples [s]
    delay       from a sample to the torque that is computed from it [s]
    hold        of order `zero`: torques are constant between samples; `first`: they continue as between the last two
    q, v, tau   resolutions by joint of what is measured and put out [rad | m, their rates, N m | N]; without one it is exact
    noise_q, noise_v   standard deviations by joint of what is measured [rad | m, their rates]; without one it is exact
    function    (t, q, v) -> torques, added to those of the laws; given from Python only
    """

    rate: float | None = None
    period: float | None = None
    delay: float = 0.0
    hold: str = "zero"
    q: tuple[Rule, ...] = ()
    v: tuple[Rule, ...] = ()
    tau: tuple[Rule, ...] = ()
    noise_q: tuple[Rule, ...] = ()
    noise_v: tuple[Rule, ...] = ()
    function: Callable[..., Any] | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the function, which may have no importable name."""
        values = {each_field.name: getattr(self, each_field.name) for each_field in fields(self)}
        return partial(type(self), **values | {"function": None}), ()

    @property
    def interval(self) -> float:
        """Interval between samples [s]."""
        if self.rate is not None:
            return 1.0 / self.rate
        assert self.period is not None                         # a sampling has either of them
        return self.period

    def time(self, k: int) -> float:
        """Return the time of sample k [s]."""
        return k * self.interval if self.rate is None else k / self.rate


# What is measured of a run: `sensors` of a scenario --------------------------------------------------------------------

WRENCH_AXES = "link", "joint", "world"


@dataclass(frozen=True, slots=True)
class Sensor(InputElement):
    """A sensor of a run, see `simulation.sensors`.

    type       one of SENSORS
    rate       [Hz]; None: at the output times
    dropout    fraction of the samples that are lost
    joints     of `encoder` and `torque`: names or patterns; none: all with one coordinate or several screws
    noise, resolution, offset   of these by joint: standard deviation, step and constant error [rad | m, N m | N]
    scale, torque_constant   of `torque` by joint: measured for true torque; torque for current [N m/A | N/A]
    delay      of `torque` [s]
    link       of `imu`
    joint, frame   of `force_torque`: the wrench through the joint, along one of WRENCH_AXES
    at, rpy    pose on the link, or on the child link of the joint [m, rad]
    noises, biases   of `imu` and `force_torque`: of three components of the first quantity, then of the second
    """

    name: str
    type: str
    rate: float | None = None
    dropout: float = 0.0
    joints: tuple[Rule, ...] = ()
    noise: tuple[Rule, ...] = ()
    resolution: tuple[Rule, ...] = ()
    offset: tuple[Rule, ...] = ()
    scale: tuple[Rule, ...] = ()
    torque_constant: tuple[Rule, ...] = ()
    delay: float = 0.0
    link: str = ""
    joint: str = ""
    frame: str = WRENCH_AXES[0]
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    noises: tuple[float, ...] = (0.0,) * 6
    biases: tuple[float, ...] = (0.0,) * 6


# What of which links touches which planes: `contacts` of a scenario -----------------------------------------------------

# What can touch, and what is given of it, as in robot files: a point its position, a box its lengths.
SHAPES = {"point": (), "sphere": ("radius",), "capsule": ("radius", "length"), "box": ("x", "y", "z")}
EXPONENTS = (1.0, 1.5, 2.0)
LEAST_LENGTH = 1e-12     # m: of what a contact sinks, and of the width of the smooth form


@dataclass(frozen=True, slots=True)
class Material:
    """N = stiffness d^exponent (1 + damping d'), friction mu N u / sqrt(u^2 + friction_speed^2), by `kernels.simulation.contact`.

    stiffness    [N/m^exponent]; None: such that a contact sinks by `sink` [m] under its share of the weight
    smooth       width [m] of the smooth form; None: the law itself
    stick        the contact sticks, and gives way by so much [m] where friction of its share of the weight is at its limit; None:
                 it creeps
    static_friction   coefficient of friction at rest of a contact that sticks; None: `friction`
    """

    friction: float = 0.8
    stiffness: float | None = None
    sink: float = 1e-3
    exponent: float = 1.5
    damping: float = 2.0         # s/m
    friction_speed: float = 1e-3          # m/s
    smooth: float | None = None  # m
    stick: float | None = None   # m
    static_friction: float | None = None


@dataclass(frozen=True, slots=True)
class Shape(InputElement):
    """A contact shape of a link.

    kind      one of SHAPES
    sizes     its lengths [m]
    at, rpy   position [m] and orientation [rad] in the frame of the link; the position of a point
    material  parameters that differ from those of the other contacts
    """

    kind: str
    sizes: tuple[float, ...]
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    material: tuple[tuple[str, float], ...] = ()

    @property
    def radius(self) -> float:
        """Radius of a sphere or capsule [m]; 0 for points and boxes."""
        return self.sizes[0] if self.kind in ("sphere", "capsule") else 0.0

    @property
    def carrying(self) -> int:
        """Number of points that share the load when the shape lies on a plane."""
        return {"point": 1, "sphere": 1, "capsule": 2, "box": 4}[self.kind]

    @property
    def corners(self) -> tuple[tuple[float, float, float], ...]:
        """Points of a box in its frame [m], or both ends of a capsule."""
        if self.kind == "box":
            x, y, z = (s / 2 for s in self.sizes)
            return tuple((a * x, b * y, c * z) for c in (-1, 1) for a in (1, -1) for b in (1, -1))
        if self.kind == "capsule":
            return (0.0, 0.0, -self.sizes[1] / 2), (0.0, 0.0, self.sizes[1] / 2)
        return ((0.0, 0.0, 0.0),)


@dataclass(frozen=True, slots=True)
class Plane(InputElement):
    """A half space that is solid below the plane.

    normal  any nonzero length
    link    link that carries the plane, in whose frame both vectors are; None: the ground
    """

    name: str
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Pair(InputElement):
    """Two links in contact with each other, by names or patterns."""

    links: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Contact(InputElement):
    """Contacts of a scenario. Each shape touches each plane. Links of a pair touch each other.

    links  rules with tuples of `Shape`
    """

    links: tuple[Rule, ...]
    planes: tuple[Plane, ...] = (Plane("ground"),)
    material: tuple[tuple[str, float], ...] = ()
    pairs: tuple[Pair, ...] = ()


# Phases and events of a scenario: what they are -------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class LimitStops(InputElement):
    """Stops at the position limits of joints.

    mode         compliant: beyond the limit a force acts; hard: the velocity jumps at the limit
    stiffness    [N m/rad | N/m] None: by `sink`
    sink         [rad | m] depth under the load of the joint; None: 0.01 rad, 1 mm
    damping      of the force, relative to that of the spring [s/rad | s/m]
    restitution  of hard stops
    joints       names or patterns; none: all joints with limits
    """

    mode: str = "compliant"
    stiffness: float | None = None
    sink: float | None = None
    damping: float = 2.0
    restitution: float = 0.0
    joints: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Phase(InputElement):
    """A phase of a scenario.

    joints     rules that replace those of the scenario for these joints
    impulsive  whether prescribed velocities may jump, by an impulse, when the phase begins
    open       loops and couplings that are inactive
    """

    name: str
    joints: tuple[Rule, ...] = ()
    impulsive: bool = False
    open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Action(InputElement):
    """Base class of the actions of events (see `action_schema`).

    is_impact  whether the action reverses the quantity that its event measures. Then an expression that stays at zero is on the
               side from which it came.
    """

    is_impact: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class TouchEvent:
    """Begin of the first contact, or end of the last contact, of a link or of links that match a pattern.

    other      plane or link in contact; None: any
    direction  1 for the begin, -1 for the end
    """

    link: str
    other: str | None = None
    direction: int = 1


@dataclass(frozen=True, slots=True)
class Event(InputElement):
    """Happens at the times `at`, or after each `every` seconds, or when an expression passes `value`.

    touch       instead of the expression: a contact that begins or ends
    direction   of `when`: 1 rising, -1 falling, 0 both
    debounce    [s] after it has happened, in which it does not happen again
    phases      in which it happens; empty: in all
    once        only the first time
    """

    name: str
    actions: tuple[Action, ...]
    at: tuple[float, ...] = ()
    every: float | None = None
    when: Expression | None = None
    value: float = 0.0
    direction: int = 0
    debounce: float = 0.0
    phases: tuple[str, ...] = ()
    once: bool = False
    touch: TouchEvent | None = None

    @property
    def has_impact(self) -> bool:
        """Whether one of the actions is an impact."""
        return any(action.is_impact for action in self.actions)
