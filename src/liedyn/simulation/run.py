"""Simulation of a scenario or a model, its `Result`, and the self-check of the result."""
from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from liedyn.arrays import Array, ArrayLike, Controller, Mask
from liedyn.dynamics.batching.arrays import as_array, as_single_state
from liedyn.errors import (
    ComputationError,
    Interrupted,
    LiedynError,
    LiedynWarning,
    NameLookupError,
    ScenarioError,
    ShapeError,
    UsageError,
    WarningLog,
    of_level,
    warn,
)
from liedyn.immutable import Immutable, read_only_property
from liedyn.integrators.problem import Statistics
from liedyn.io.scenarios.action_schema import Attach
from liedyn.io.scenarios.scenario import Prescribe, Scenario
from liedyn.io.scenarios.scenario_file import SCENARIO
from liedyn.io.trajectory_csv import Trajectory, complete_rows, data_frame
from liedyn.io.yaml_values import Overrides
from liedyn.model.model import Model
from liedyn.model.name_patterns import matching_names
from liedyn.public_calls import check_names, explained
from liedyn.robot_files import load, robot_file_warnings
from liedyn.simulation.contact_setup import ContactMotion
from liedyn.simulation.control.motors import bind_motors, motor_armatures, motor_columns, motor_energies, motor_warnings
from liedyn.simulation.control.slotine_li_control import Adaptation, adaptation_warnings
from liedyn.simulation.control.task_space_control import Tracking
from liedyn.simulation.joint_friction import rigid_frictions
from liedyn.simulation.joint_stops import limit_stops, stop_warnings
from liedyn.simulation.limits import LimitViolation, limit_warnings
from liedyn.simulation.name_binding import phase_rules
from liedyn.simulation.preparation import PreparedRun, output_times, prepare
from liedyn.simulation.run_checks import inaccuracy_warnings
from liedyn.simulation.run_recorder import RunRecorder
from liedyn.simulation.segment_problems import RunSegment
from liedyn.simulation.sensors import Measurements, measure, motion_times, output_segments
from liedyn.simulation.trajectory_columns import (
    constraint_columns,
    element_columns,
    energy_columns,
    motion_columns,
    thrust_names,
    trajectory_header,
)

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from liedyn.io.checkpoint_files import Unfinished
    from liedyn.simulation.control.observer import Estimate
    from liedyn.simulation.hybrid_simulation import OccurredEvent

# Tolerances of the self-check: rounding of unit quaternions, and of inverse dynamics compared with the integrated dynamics.
_NORM_TOLERANCE, _RESIDUAL_TOLERANCE = 1e-12, 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Result(Immutable):
    """A simulated motion of N output times.

    t         (N,) [s]
    q         (N, nq) [rad | m] in the order of model.q_names
    v, a, tau (N, nv) rates of q, and joint torques or forces [N m | N], in the order of model.v_names
    wrench    (N, len(forced_links), 6) external wrenches [m; f] on the links `forced_links`, in their local frames [N m | N]
    kinetic, potential   (N,) energies [J]
    work      (N,) energy supplied by motors, external wrenches and passive forces except springs since t[0] [J]
    multipliers   (N, m) of the constraints, in the order of model.constraint_equation_names [N m | N]; None without constraints
    reactions     (N, loops, 6) wrenches of the loops on their links b, see `closure_wrenches`; None without constraints
    drift         (N,) maximum residual of the constraints [rad | m]; None without constraints
    tracking  errors of links or joints relative to the desired motions of `control`; None without `control`
    adaptation   estimated parameters and Lyapunov function of `control: {law: slotine_li}`
              (`simulation.control.slotine_li_control.Adaptation`); None for other laws
    contacts  forces, depths and slips of `contacts` (`simulation.contact_setup.ContactMotion`); None without `contacts`
    stops     (N, nv) part of tau from stops at limits [N m | N]; None without `limits`
    friction  (N, nv) rigid friction of joints, which is not part of tau [N m | N]; None if no joint has any
    limits    coordinates beyond their limits: kind, coordinate, unit, first, at [s], worst, limit (`limits.LimitViolation`)
    events    events that occurred, in order (`hybrid_simulation.OccurredEvent`); the rows before and after have the same time
    check     values of the self-check, by name
    warnings  one line each
    timing    seconds by part of the run
    status    "complete", "diverged" or "interrupted"; the latter two have the rows before the end, and a reason
    reason    cause of an early end
    final_changes   joints that are locked and bodies that are attached by events at the end, as text; "" if there are none
    thrust_names, thrusts   thrusts (N, m) of actuators that the scenario drives, after limits [N]; None without such actuators
    estimate  states that the observer estimates at its samples (`simulation.control.observer.Estimate`); None without `observer`
    measurements   samples of `sensors` (`simulation.sensors.Measurements`); None without `sensors`

    Examples
    --------
    >>> run = ld.simulate("robots/double_pendulum.yaml", duration=0.1, q0=[0.3, 0.0])
    >>> run
    <Result double_pendulum: 0.1 s in 500 steps (rk4), 501 rows, nq 2, nv 2
      energy balance ..., inverse dynamics residual ...
      next: run.q, run.to_pandas(), run.plot("torques"), run.replay("run.html"), run.save("runs/name")>
    >>> run.to_pandas().columns[:2].to_list()
    ['q.shoulder[rad]', 'q.elbow[rad]']
    """

    scenario: Scenario
    model: Model
    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    forced_links: tuple[str, ...]
    wrench: Array
    kinetic: Array
    potential: Array
    work: Array
    prescribed: Mask
    check: dict[str, float]
    statistics: Statistics
    warnings: tuple[LiedynWarning, ...]
    timing: dict[str, float] = field(compare=False)
    multipliers: Array | None = None
    reactions: Array | None = None
    drift: Array | None = None
    tracking: Tracking | None = None
    adaptation: Adaptation | None = None
    limits: tuple[LimitViolation, ...] = ()
    events: tuple[OccurredEvent, ...] = ()
    contacts: ContactMotion | None = None
    stops: Array | None = None
    friction: Array | None = None
    status: str = "complete"
    reason: str = ""
    final_changes: str = ""
    thrust_names: tuple[str, ...] = ()
    thrusts: Array | None = None
    estimate: Estimate | None = None
    measurements: Measurements | None = None

    def __repr__(self) -> str:
        m, s = self.model, self.statistics
        ended = "" if self.status == "complete" else f"\n  {self.status}: {self.reason}"
        doubtful = of_level("warning", self.warnings)
        also = "".join(f", {len(x)} {name if len(x) > 1 else name[:-1]} (run.{name})"
                       for name, x in (("events", self.events), ("limits", self.limits), ("warnings", doubtful)) if x)
        return (f"<Result {m.name}: {self.t[-1]:g} s in {s.steps} steps ({self.scenario.integrator.method}), {len(self.t)} rows, "
                f"nq {m.nq}, nv {m.nv}{ended}\n  {self._check_summary}{also}\n"
                '  next: run.q, run.to_pandas(), run.plot("torques"), run.replay("run.html"), run.save("runs/name")>')

    @property
    def has_events(self) -> bool:
        """Whether events may occur during the run."""
        return bool(self.scenario.events or self.events)

    @property
    def attached(self) -> str:
        """Names of the links to which bodies are attached during the run; other commands do not include these bodies."""
        actions = [action for event in self.scenario.events if any(occurred.name == event.name for occurred in self.events)
                   for action in event.actions]
        return ", ".join(dict.fromkeys(action.link for action in actions if isinstance(action, Attach)))

    @property
    def armatures(self) -> dict[str, float]:
        """Armatures of the joints whose rotor inertia is given by `motors`, not by the robot file."""
        return motor_armatures(self.scenario, self.model)

    @read_only_property
    def power(self) -> dict[str, Array]:
        """Motor power (N,) tau . v [W] of each joint whose motion is prescribed in at least one phase."""
        phases: list[str | None] = [phase.name for phase in self.scenario.phases]
        rules = [phase_rules(self.scenario, self.model, phase) for phase in phases or [None]]
        return {joint.name: np.sum(self.tau[:, joint.v] * self.v[:, joint.v], axis=1) for joint in self.model.joints
                if any(joint.name in of_phase and isinstance(of_phase[joint.name].value, Prescribe) for of_phase in rules)}

    @property
    def motor_energies(self) -> dict[str, dict[str, float]]:
        """Energies [J] of each motor whose losses are known: of the joint, each loss, and the electrical one (`power`)."""
        driven = self.tau if self.stops is None else self.tau - self.stops
        return motor_energies(bind_motors(self.scenario, self.model), self.t, self.v, driven)

    @read_only_property
    def columns(self) -> list[tuple[str, str, Array]]:
        """(name, unit, (N,) array) of each column of trajectory.csv except the time."""
        columns = motion_columns(self.model, self.forced_links, self.wrench, q=self.q, v=self.v, a=self.a, tau=self.tau)
        columns += [] if self.thrusts is None else list(zip(self.thrust_names, ["N"] * len(self.thrust_names), self.thrusts.T,
                                                            strict=True))
        columns += [(f"power.{name}", "W", x) for name, x in self.power.items()]
        columns += constraint_columns(self.model, self.multipliers, self.reactions, self.drift)
        if self.tracking is not None:
            columns += self.tracking.columns
        if self.adaptation is not None:
            columns += self.adaptation.columns
        if self.estimate is not None:
            columns += self.estimate.columns(self.model, self.t)
        if self.scenario.motors:
            driven = self.tau if self.stops is None else self.tau - self.stops
            columns += motor_columns(bind_motors(self.scenario, self.model), self.t, self.v, driven)
        if self.contacts is not None:
            columns += self.contacts.columns
        if self.stops is not None:
            forces = motion_columns(self.model, tau=self.stops)
            stopped = sorted({stop.coordinate for stop in limit_stops(self.scenario, self.model)})
            columns += [(f"stop.{self.model.v_names[k]}", *forces[k][1:]) for k in stopped]
        if self.friction is not None:
            forces = motion_columns(self.model, tau=self.friction)
            columns += [(f"friction.{each.name}", *forces[each.coordinate][1:]) for each in rigid_frictions(self.model)]
        if self.scenario.passive:
            columns += element_columns(self.model, self.q, self.v)
        if self.measurements is not None:
            columns += self.measurements.received(self.t)
        return columns + energy_columns(self.kinetic, self.potential, self.work)

    def measured_trajectory(self) -> Trajectory:
        """Return the samples of the sensors as a recording, for `ld.identify` and functions along trajectories.

        Rows in which an encoder or torque sensor has no sample are left out. Raises UsageError without sensors, and
        TrajectoryError if no row remains.

        Examples
        --------
        >>> run = ld.run_scenario("configs/ur5_sensors.yaml", {"duration": 1})
        >>> run.measured_trajectory()
        <Trajectory of arrays: 125 rows, t = 0 to 1 s; columns q 6, tau 6, current 6, imu 6, force_torque 6>
        """
        if self.measurements is None:
            raise UsageError("the run has no measurements: the scenario needs the key sensors")
        samples = self.measurements.columns
        return complete_rows(Trajectory(trajectory_header(self.model, passive=self.scenario.passive), self.measurements.t,
                                        {name: x for name, _, x in samples}, {name: unit for name, unit, _ in samples}))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame with the columns of trajectory.csv, such as "q.elbow[rad]", and the time "t[s]" as index.

        Requires pandas, which liedyn does not install.
        """
        return data_frame(self.t, self.columns)

    @explained
    def save(self, folder: str | os.PathLike[str], *, force: bool = False, plots: bool = False) -> None:
        """Write a run folder, as `liedyn simulate` does: trajectory.csv, run.json, events.csv and measurements.csv.

        With `plots`, also write plots and replay.html.

        Raises UsageError where the folder exists and `force` is not given.
        """
        import liedyn
        liedyn.write_run(self, Path(folder), force=force, plots=plots)

    @explained
    def plot(self, what: str = "positions", *, against: Sequence[Result] = (), width: float | None = None,
             style: Literal["screen", "paper"] = "screen", joints: Sequence[str] = (),
             t: tuple[float, float] | None = None) -> Figure:
        """Return a Matplotlib figure. `what` is a plot of run folders: positions, velocities, torques, motion, …

        against (other runs in the same panels), width [inches], style "paper", joints and the times t (first, last) are as for
        `figure_of`. Raises NameLookupError for a plot that this motion does not have.
        """
        import liedyn
        return liedyn.figure_of(self, what, against=against, width=width, style=style, joints=joints, t=t)

    @explained
    def replay(self, path: str | os.PathLike[str], *, against: Sequence[Result] = (),       # noqa: PLR0913
               side_by_side: bool = False, traces: Sequence[str] = (), follow: str = "", speed: float = 1.0,
               meshes: bool | None = None, package_roots: Sequence[str] = (), force: bool = False) -> None:
        """Write a page that shows the motion in 3D, see `liedyn.replay_of`.

        Raises UsageError where the file exists and `force` is not given.
        """
        import liedyn
        from liedyn.io.atomic_output import open_output
        with open_output(os.fspath(path), force=force) as file:
            file.write(liedyn.replay_of(self, against=against, side_by_side=side_by_side, traces=traces, follow=follow,
                                        speed=speed, meshes=meshes, package_roots=package_roots))

    def _repr_html_(self) -> str:
        """Return the motion in 3D for notebooks."""
        import liedyn
        return liedyn.replay_of(self, inline=True)

    @property
    def balance(self) -> Array:
        """Energy minus initial energy and supplied work (N,) [J]: the error of the integrator."""
        energy = self.kinetic + self.potential
        return np.asarray(energy - energy[0] - self.work)

    @property
    def summary(self) -> str:
        """The run in one line and its self-check in another."""
        return (f"{self.model.name}: {self.t[-1]:g} s in {self.statistics.steps} steps ({self.scenario.integrator.method}), "
                f"computed in {self.timing['simulate']:.2f} s\nchecks: {self._check_summary}")

    @property
    def _check_summary(self) -> str:
        c = self.check
        closed = f", constraint residual {c['constraint_residual']:.1e}" if "constraint_residual" in c else ""
        followed = ""
        if self.tracking is not None:
            worst = int(np.argmax(np.abs(self.tracking.error).max(axis=0)))
            followed = (f", maximum tracking error {c['tracking_error']:.1e} {self.tracking.units[worst]} "
                        f"({self.tracking.names[worst]})")
        return (f"energy balance {c['energy_balance_relative']:.1e}, "
                f"inverse dynamics residual {c['inverse_dynamics_residual']:.1e}{closed}{followed}")


class SilentProgress:
    """Progress that is not displayed."""

    def stage(self, _text: str) -> AbstractContextManager[None]:
        """Return a context for a stage of the work."""
        return contextlib.nullcontext()

    def update(self, fraction: float) -> None:
        """Take the fraction of the stage that is done."""


def run_scenario(scenario: str | os.PathLike[str] | Mapping[str, Any], overrides: Overrides = (), *, strict: bool = False,
                 force_long: bool = False, controller: Controller | None = None) -> Result:
    """Simulate a scenario, or a robot file with defaults.

    Parameters
    ----------
    scenario : path or mapping
        A scenario YAML, robot YAML or URDF; or the keys of a scenario as a dict, whose paths are relative to the current folder.
    overrides : {"key.path": value} or iterable of "key.path=value"
        Replace values of the scenario.
    strict : bool
        Warnings of the robot become an error.
    force_long : bool
        Allow more than 1e8 steps or 1e7 rows (up to 1e12), and a result that may not fit into memory.
    controller : callable, optional
        ``controller(t, q, v)`` is called at each sample of the scenario's ``sampling`` with the time [s] and what is measured of
        the state, q (nq,) and v (nv,). It returns torques [N m | N], an array (nv,) or a dict by joint, which are added to those
        of the scenario and held until the next sample. Those of prescribed joints are ignored. Thrusts of actuators [N] may
        follow the torques in the array, or have names such as ``"thrust.rotor1"`` in the dict.

    Returns
    -------
    Result

    Raises
    ------
    ScenarioError, ModelError, TrajectoryError
        With file, line and key.
    ComputationError
        If the integration or the controller fails, with the motion before as its `result`; or the result would not fit into
        memory.
    UsageError
        For a controller without the key ``sampling``.

    Examples
    --------
    >>> run = ld.run_scenario("configs/double_pendulum.yaml", {"duration": 1, "output_step": 0.1})
    >>> run.status, run.q.shape
    ('complete', (11, 2))
    """
    result = simulate_file(scenario, overrides, SilentProgress(), strict, force_long, controller=controller)
    warn((*robot_file_warnings(result.model), *result.warnings))
    return result


def simulate_file(path: str | os.PathLike[str] | Mapping[str, Any], overrides: Overrides, progress: Any,  # noqa: PLR0913
                  strict: bool = False, force_long: bool = False, disk: Unfinished | None = None, resumed: bool = False,
                  controller: Callable[..., Any] | None = None, model: Model | None = None) -> Result:
    """Return the result of `run_scenario`, with progress: an object with `stage(text)`, a context, and `update(fraction)`.

    disk      for a result that is written into its folder
    resumed   whether the run continues from its checkpoint
    model     replaces that of the scenario

    Raises Interrupted when disk.stop requests it.
    """
    began = time.perf_counter()
    with progress.stage("preparing the run"):
        prepared = prepare(path, overrides, strict, force_long, disk.folder if disk else None, controller, model)
    return simulate_prepared(prepared, progress, disk, resumed, time.perf_counter() - began)


def simulate_prepared(prepared: PreparedRun, progress: Any, disk: Unfinished | None = None, resumed: bool = False,
                      loading: float = 0.0,
                      trials: bool = True) -> Result:
    """Return the result of a prepared run, see `simulate_file`.

    loading   time of the preparation [s]
    trials    whether other integrators are tried if this one fails or its result is suspicious (`simulation.trials`)
    """
    began = time.perf_counter() - loading
    with progress.stage("loading the compiled code"):
        scenario, problem = prepared.scenario, prepared.problem
        from liedyn.integrators.diagnosis import integrator_options
        from liedyn.integrators.solve import solve
        from liedyn.simulation.run_recorder import RunRecorder, accepting_signals, finite_segments, identity, resume
        options = integrator_options(scenario.integrator)
        run_identity = identity(prepared) if disk else {}      # before the arrays are modified
        ready = time.perf_counter()
        solve(problem, np.zeros(1), options)                   # compile or load the code; computes the first row only
        start = time.perf_counter()
        motion = prepared.hybrid_simulation
        rows = RunRecorder(prepared.model, problem, disk, prepared.frictions)
        previous_seconds = resume(motion, run_identity, rows) if resumed else 0.0
        rows.run_state = lambda: {"run": run_identity, "motion": motion.state_dict(),
                                  "seconds": previous_seconds + time.perf_counter() - start}
    with progress.stage("simulating"):
        ended = None
        try:
            with accepting_signals(disk):
                statistics = motion.run(motion_times(output_times(scenario), prepared.sensors), options, progress.update, rows)
        except (ComputationError, ScenarioError, Interrupted) as error:
            ended, statistics = error, motion.partial_statistics(rows.abort_segment())
        stop = time.perf_counter()
    timing = {"load": ready - began, "compile": start - ready, "simulate": previous_seconds + stop - start}

    def tried_integrators(segments: Sequence[RunSegment]) -> str:
        if not trials:
            return ""
        from liedyn.simulation.trials import try_integrators
        with accepting_signals(disk):
            return try_integrators(prepared, segments, progress, disk)

    with progress.stage("checking the result"):
        if ended is None:
            return _result(prepared, rows, rows.segments(), statistics, timing, tried_integrators)
        segments = rows.segments()
        if not isinstance(ended, Interrupted):
            segments = finite_segments(segments)
        if isinstance(ended, ComputationError):
            ended.args = (f"{ended}{tried_integrators(segments)}" if ended.depends_on_method else str(ended),)
        ended.result = _partial_result(ended, prepared, rows, segments, statistics, timing)
        try:
            raise ended
        finally:
            ended = None                     # its traceback holds this frame: the result would stay until garbage is collected


def _partial_result(ended: LiedynError, prepared: PreparedRun, rows: RunRecorder, segments: Sequence[RunSegment],
                    statistics: Statistics, timing: dict[str, float]) -> Result | None:
    """Return the motion up to an interrupt, or up to an error as far as it is meaningful; None if there is none."""
    status = "interrupted" if isinstance(ended, Interrupted) else "diverged"
    try:
        return _result(prepared, rows, segments, statistics, timing, lambda segments: "", status,
                       str(ended)) if segments else None
    except LiedynError:                                        # the motion is not meaningful: raise the error
        return None


def _result(prepared: PreparedRun, rows: RunRecorder, segments: Sequence[RunSegment], statistics: Statistics,
            timing: dict[str, float], tried_integrators: Callable[[Sequence[RunSegment]], str], status: str = "complete",
            reason: str = "") -> Result:
    """Return the result of a run.

    tried_integrators   segments -> the results of other integrators for a suspicious run, "" for none
    """
    from liedyn.integrators.diagnosis import find_unreliable_steps
    from liedyn.simulation.control.joint_control import saturation_warnings
    from liedyn.simulation.control.task_space_control import task_space_warnings
    from liedyn.simulation.control.thrusts import thrust_warnings
    from liedyn.simulation.event_actions import jump_warnings
    from liedyn.simulation.run_checks import SelfCheck
    began = time.perf_counter()
    scenario, model, problem, hybrid_simulation = prepared.scenario, prepared.model, prepared.problem, prepared.hybrid_simulation
    measurements = None
    if prepared.sensors:
        measurements = measure(prepared.sensors, scenario, model, segments)
        segments = output_segments(segments, output_times(scenario))
    record = rows.full_run_record(segments, selected=bool(prepared.sensors))
    checks = SelfCheck(prepared, rows, segments)
    check, loop_warnings = checks.values(statistics)
    wrench, thrusts = problem.split_wrench(record.wrench)
    tied = checks.reactions is not None
    multipliers, drift = (record.multipliers, record.residual[:, 0]) if tied else (None, None)
    prescribed = np.all([segment.problem.system().prescribed for segment in segments], axis=0)
    inaccurate = [*find_unreliable_steps(scenario.integrator, segments), *inaccuracy_warnings(check["energy_balance_relative"])]
    jumps, motors = jump_warnings(segments), bind_motors(scenario, model)
    if inaccurate and not jumps:                               # otherwise no integrator helps
        last = inaccurate[-1]
        inaccurate[-1] = LiedynWarning(last.code, last.message + tried_integrators(segments))
    warnings = WarningLog((
        *prepared.warnings, *prepared.integrator_reasons, *hybrid_simulation.warnings,
        *loop_warnings, *statistics.warnings, *_check_warnings(check), *jumps, *inaccurate, *checks.creep.warnings(),
        *checks.friction_warnings(),
        *limit_warnings(*checks.exceeded, {stop.name for stop in limit_stops(scenario, model)}), *stop_warnings(segments),
        *saturation_warnings(segments, model, motors, checks.stops), *thrust_warnings(segments, model),
        *task_space_warnings(segments), *motor_warnings(motors, segments, checks.stops),
        *adaptation_warnings(checks.adaptation, check, record.t)))
    links = tuple(model.link_names[k] for k in problem.forced_links)
    timing = timing | {"check": time.perf_counter() - began}
    return Result(scenario, model, record.t, record.q, record.v, record.a, record.tau, links, wrench, checks.kinetic,
                  checks.potential, record.supplied_energy, prescribed, check, statistics, tuple(warnings), timing,
                  multipliers, checks.reactions, drift, checks.tracking, checks.adaptation, checks.limits,
                  tuple(hybrid_simulation.occurred_events), checks.contacts, checks.stops, checks.friction, status, reason,
                  hybrid_simulation.problems.hybrid_state.changes, tuple(thrust_names(model)[j] for j in problem.thrusters),
                  thrusts if len(problem.thrusters) else None, hybrid_simulation.estimate, measurements)


def _check_warnings(check: dict[str, float]) -> WarningLog:
    """Return a warning for each value of the self-check that is too large with any integrator."""
    warnings = WarningLog()
    if check["quaternion_norm"] > _NORM_TOLERANCE:
        warnings.add("quaternion-norm", f"quaternions deviate from unit norm by {check['quaternion_norm']:.1e}")
    if check["inverse_dynamics_residual"] > _RESIDUAL_TOLERANCE:
        warnings.add("ill-conditioned",
                     "inverse dynamics of the motion differs from the applied forces by "
                     f"{check['inverse_dynamics_residual']:.1e} (relative): the robot is ill-conditioned")
    return warnings


# `ld.simulate`: the motion of a model with arrays and Python functions, without files -----------------------------------

InitialValues: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
Torques: TypeAlias = ArrayLike | Mapping[str, Any] | Controller


def simulate(model: Model | str | os.PathLike[str], scenario: Mapping[str, Any] | None = None, *,       # noqa: PLR0913
             duration: float | None = None, q0: InitialValues | None = None, v0: InitialValues | None = None,
             tau: Torques | None = None, rate: float | None = None,
             method: str | None = None, output_step: float | None = None, **keys: Any) -> Result:
    """Simulate a model and return a `Result`.

    Parameters
    ----------
    model : Model or path
    scenario : mapping, optional
        Keys of a scenario, without `robot`: `joints`, `external_forces`, `contacts`, `events`, … as in a file, see
        docs/scenarios.md. Keyword arguments replace them.
    duration : float
        Simulated time [s].
    q0, v0 : (nq,), (nv,), or {joint: value}, optional
        Initial state. Default: that of `scenario`, otherwise neutral and at rest. A dict contains values of some joints, as
        `initial` of a scenario: numbers, or lists for joints with several coordinates.
    tau : array, dict or callable, optional
        Generalized forces [N m | N]. An array (nv,) is constant. Each row of an array (S, nv) acts for 1 / `rate`, the last one
        until the end. A dict contains, by joint, numbers, expressions such as ``"2*sin(t) - 0.1*v"``, or signals of a scenario.
        It must not contain joints whose motion or torque `joints` defines. A function ``tau(t, q, v)`` is called `rate` times
        per second. It returns (nv,) or a dict by joint, which acts until the next call. Thrusts of actuators [N] may follow the
        nv numbers, or have names such as ``"thrust.rotor1"`` in the dict. Rows and functions are added to the
        torques of `joints`, whose laws (`pd`, `pid`, `control`) are then also sampled at `rate`. Arrays and functions are
        ignored for prescribed joints.
    rate : float
        Rate of the rows or calls of `tau` [1/s].
    method : str, optional
        Integrator, such as "rk4", "dopri5", "rodas5p"; ``integrator={…}`` also gives its options.
    output_step : float, optional
        Time between rows of the result [s]. Default: duration / 500.
    **keys
        Further keys of a scenario: ``integrator``, ``joints``, ``contacts``, ``limits``, …

    Raises
    ------
    ScenarioError, ShapeError, NameLookupError, UsageError
        For invalid arguments.
    ComputationError
        If the motion diverges. `error.result` contains the motion up to this time.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> run = ld.simulate(model, duration=1, q0=[0.3, 0.0], tau={"elbow": "-2*q - 0.5*v"})
    >>> run.q[-1].round(3)
    array([-0.252, -0.05 ])
    >>> run = ld.simulate(model, duration=1, tau=lambda t, q, v: -20 * q - 3 * v, rate=500)
    """
    if not isinstance(scenario, Mapping | None):
        raise UsageError(f"scenario must be a mapping of keys, got {type(scenario).__name__} (use run_scenario for a file)")
    check_names("simulate", keys, dict.fromkeys((*signature(simulate).parameters, *SCENARIO)))
    settings = dict(scenario or {})
    if "robot" in {**settings, **keys}:
        raise UsageError("the scenario of simulate must not name a robot: the model is the first argument")
    if not isinstance(model, Model):
        model = load(model, **{key: x for key, x in {**settings, **keys}.items() if key in ("base", "gravity", "loops")})
    elif {"base", "gravity", "loops"} & {*settings, *keys}:
        raise UsageError("base, gravity and loops belong to the model: set them in load")
    named = {"duration": duration, "output_step": output_step, "integrator": None if method is None else {"method": method}}
    settings |= {key: value for key, value in named.items() if value is not None} | keys
    if method is not None and "integrator" in keys:
        settings["integrator"] = {"method": method, **keys["integrator"]}
    if "duration" not in settings:
        raise UsageError("simulate needs a duration [s]")
    state = {"q": _values_by_joint(model, q0, "q0", "q"), "v": _values_by_joint(model, v0, "v0", "v")}
    if q0 is not None or v0 is not None:
        settings["initial"] = _merge_key(settings, "initial", {key: value for key, value in state.items() if value is not None})
    settings, function = _with_torques(model, settings, tau, rate)
    # a scenario names a file that exists; here there is none
    result = simulate_file({"robot": os.devnull, **settings}, (), SilentProgress(), controller=function, model=model)
    warn(result.warnings)
    return result


def _values_by_joint(model: Model, x: InitialValues | None, name: str, kind: str) -> dict[str, Any] | None:
    """Return coordinates by joint, as in a scenario."""
    if x is None:
        return None
    if isinstance(x, Mapping):
        _check_names(model, x, name)
        return {joint: np.asarray(value).tolist() for joint, value in x.items()}
    many = "use ld.rollout for many runs" if np.ndim(x) > 1 else ""
    x = as_single_state(x, name, (model.nq if kind == "q" else model.nv,), many)
    places = {joint: getattr(model, f"{kind}_index")(joint) for joint in model.joint_names}
    values = {joint: x[place].tolist() for joint, place in places.items() if place.stop > place.start}
    return {joint: value[0] if len(value) == 1 else value for joint, value in values.items()}


def _with_torques(model: Model, settings: dict[str, Any], tau: Torques | None,
                  rate: float | None) -> tuple[dict[str, Any], Controller | None]:
    """Return the scenario with constant torques and signals, or with a function that is called at samples."""
    if tau is None:
        return settings, None
    if callable(tau) or (not isinstance(tau, Mapping) and np.ndim(tau) == 2):
        if rate is None:
            raise UsageError("a function or rows of torques require the argument rate [1/s]")
        settings = settings | {"sampling": _sampling_with_rate(settings, rate)}
        return settings, tau if callable(tau) else _held_rows(model, settings, tau, rate)
    if rate is not None:
        raise UsageError("rate applies only to a function or to rows of torques")
    thrusts = thrust_names(model)
    if not isinstance(tau, Mapping):
        tau = np.asarray(tau, dtype=float)
        n = model.nv if tau.shape == (model.nv + len(thrusts),) else len(tau)               # the others are thrusts
        tau = _free_joint_torques(model, _values_by_joint(model, tau[:n], "tau", "v") or {}, settings) | dict(
            zip(thrusts, tau[n:].tolist(), strict=False))
    thrust_signals = {name.removeprefix("thrust."): value for name, value in tau.items() if name in thrusts}
    tau = {name: value for name, value in tau.items() if name not in thrusts}
    _check_names(model, tau, "tau")
    for name in {*thrust_signals} & {*settings.get("actuators", ())}:
        raise UsageError(f"actuator {name} has a thrust in `actuators`, and tau gives one, too: give one of them")
    if thrust_signals:
        settings = settings | {"actuators": _merge_key(settings, "actuators", thrust_signals)}
    for name in tau:
        if (rule := _joint_rule(name, settings, model)) is not None:
            conflict = "is prescribed" if "prescribe" in rule else "has a torque"
            raise UsageError(f"joint {name} {conflict} in `joints`, and tau gives a torque, too: give one of them")
    return settings | {"joints": _merge_key(settings, "joints", {name: {"torque": value} for name, value in tau.items()})}, None


def _check_names(model: Model, values: Mapping[str, Any], name: str) -> None:
    unknown = [joint for joint in values if joint not in model.joint_names]
    if unknown:
        raise NameLookupError(f"{name} names no joint of the robot: expected "
                              f"{', '.join(model.joint_names)}, got {unknown[0]!r}")


def _held_rows(model: Model, settings: dict[str, Any], tau: ArrayLike, rate: float) -> Controller:
    """Return the rows of torques as a function; warn if laws are sampled at their rate, too."""
    inputs = model.nv + len(thrust_names(model))
    rows = as_array(tau, "tau", (inputs if np.shape(tau)[-1] == inputs else model.nv,))
    if not len(rows):
        raise ShapeError(f"tau has no rows, got {rows.shape}")
    if "control" in settings or any(isinstance(rule, Mapping) and isinstance(rule.get("torque"), Mapping)
                                 and {"pd", "pid"} & {*rule["torque"]} for rule in _rules(settings).values()):
        warn([LiedynWarning("laws-sampled",
                            "the laws in `joints` and `control` are sampled at the rate of the rows of tau, too")])
    return lambda t, q, v: rows[min(round(t * rate), len(rows) - 1)]


def _free_joint_torques(model: Model, tau: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the torques without those of prescribed joints, which are ignored, and without zeros for joints in `joints`."""
    def acts(name: str, value: Any) -> bool:
        rule = _joint_rule(name, settings, model)
        return rule is None or ("prescribe" not in rule and bool(np.any(value)))
    return {name: value for name, value in tau.items() if acts(name, value)}


def _sampling_with_rate(settings: dict[str, Any], rate: float | None) -> dict[str, Any]:
    sampling = settings.get("sampling", {})
    if not isinstance(sampling, Mapping) or {"rate", "period"} & {*sampling}:
        raise UsageError("`sampling` gives a rate or a period, and so does the argument rate: leave it out of `sampling`")
    return {**sampling, "rate": rate}


def _rules(settings: dict[str, Any]) -> Mapping[str, Any]:
    """Return the rules of `joints`; empty if it is no mapping, which the reader of scenarios rejects."""
    rules = settings.get("joints", {})
    return rules if isinstance(rules, Mapping) else {}


def _joint_rule(name: str, settings: dict[str, Any], model: Model) -> Mapping[str, Any] | None:
    """Return the rule of a joint in `joints`, by its name or a pattern."""
    rules = _rules(settings)
    matching = [rule for pattern, rule in rules.items()
                if isinstance(pattern, str) and name in matching_names(pattern, model.joint_names)]
    candidates = [rules[name]] if name in rules else matching
    return next((rule for rule in candidates if isinstance(rule, Mapping)), None)


def _merge_key(settings: dict[str, Any], key: str, more: dict[str, Any]) -> Any:
    """Return the mapping under a key merged with `more`. Other values are returned for the reader of scenarios to reject."""
    present = settings.get(key, {})
    return dict(present) | more if isinstance(present, Mapping) else present
