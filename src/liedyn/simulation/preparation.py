"""Preparation of a run: the scenario bound to its robot, the integrator and the estimated size of the result."""
from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from liedyn.arrays import Array, Controller
from liedyn.errors import ComputationError, LiedynWarning, ScenarioError, UsageError, WarningLog, of_level, size_text
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.action_schema import Lock
from liedyn.io.scenarios.event_schema import late_warnings
from liedyn.io.scenarios.scenario import MECHANICAL_METHODS, METHODS, ROBOT_LIMITS, Prescribe, Scenario, SlotineLiControl
from liedyn.io.scenarios.scenario_file import scenario_of
from liedyn.io.yaml_values import Overrides
from liedyn.model.model import Model
from liedyn.robot_files import read_model
from liedyn.simulation.contact_setup import deep_contact_warnings
from liedyn.simulation.control.control_model import bind_control_models
from liedyn.simulation.control.motors import add_rotor_inertias
from liedyn.simulation.control.observer import check_observer
from liedyn.simulation.control.python_controller import with_python_controller
from liedyn.simulation.control.thrusts import driven_actuators, split_limit_rules, thrust_limits
from liedyn.simulation.joint_friction import JointFriction, rigid_frictions, with_scenario_friction, without_friction
from liedyn.simulation.joint_stops import limit_stops
from liedyn.simulation.limits import start_within_limits, velocity_and_force_limits
from liedyn.simulation.name_binding import bind_joints, bind_rules, continuous_pid
from liedyn.simulation.segment_problems import with_open_loops
from liedyn.simulation.sensors import BoundSensor, bind_sensors, motion_times
from liedyn.simulation.trajectory_columns import coordinate_columns, current_names

# Memory and disk space of the result, estimated before the run starts ---------------------------------------------------

_BYTES_IN_MEMORY = 80          # bytes per number of a result in memory: the record, its checks and its columns
# bytes in memory if the rows are on disk: for the time of each row with its copies, and for buffers
_BYTES_PER_ROW, _BYTES_OF_BUFFERS = 40, 64_000_000
_BYTES_ON_DISK = 28            # bytes per number: 20 of the CSV, 8 of the rows until the run is finished
_MIN_CHECKED_BYTES = 100e6     # bytes: smaller results are not checked


def check_resources(problem: InitialValueProblem, rows: int, folder: str | os.PathLike[str] | None = None) -> None:
    """Raise ComputationError with the estimate if a result of so many rows needs more memory or disk space than is free.

    folder   determines the disk, and may not exist yet; without it the rows are in memory
    """
    memory, disk = result_size(problem, rows, folder is not None)
    _check_fits(memory, available_memory(), rows, "memory")
    if folder is not None:
        free, place = free_disk(folder)
        _check_fits(disk, free, rows, f"disk in {place}")


def free_disk(folder: str | os.PathLike[str]) -> tuple[int, Path]:
    """Return the free bytes on the disk of a folder that may not exist yet, and its nearest existing parent."""
    place = next(p for p in (Path(folder).absolute(), *Path(folder).absolute().parents) if p.is_dir())
    return shutil.disk_usage(place).free, place


def result_size(problem: InitialValueProblem, rows: int, to_disk: bool) -> tuple[int, int]:
    """Return the approximate bytes of a result of so many rows in memory and on disk."""
    values = rows * row_size(problem)
    memory = values * _BYTES_IN_MEMORY
    return min(memory, rows * _BYTES_PER_ROW + _BYTES_OF_BUFFERS) if to_disk else memory, values * _BYTES_ON_DISK


def row_size(problem: InitialValueProblem) -> int:
    """Return the number of values of a row: time, state, accelerations, forces, wrenches, contacts, stops and so on."""
    model = problem.model
    touching = 0 if problem.contacts is None else 3 * len(problem.contacts.link) + 3
    stops = 0 if problem.stops is None else len(np.unique(problem.stops.coordinate)) + len(problem.hard_stop_scales)
    tied = model.nc if problem.constraints is not None else 0
    return model.nq + 3 * model.nv + problem.wrench_size + touching + stops + tied + 6


def available_memory() -> float:
    """Return the bytes that a process may still allocate; infinite if the system does not report it."""
    limit, used = _system_value("/sys/fs/cgroup/memory.max"), _system_value("/sys/fs/cgroup/memory.current")
    return min(_system_value("/proc/meminfo", "MemAvailable:", 1024.0), limit - used if used < limit else limit)


def _system_value(path: str, key: str = "", unit: float = 1.0) -> float:
    """Return the number after `key` in a system file; infinite if there is none."""
    try:
        words = Path(path).read_text(encoding="ascii").split()
        return float(words[words.index(key) + 1 if key else 0]) * unit
    except (OSError, ValueError, IndexError):
        return float("inf")                                    # also for the value "max"


def _check_fits(needed: float, free: float, rows: int, resource: str) -> None:
    if needed > max(free, _MIN_CHECKED_BYTES):
        raise ComputationError(f"the result of {rows} rows needs about {size_text(needed)} of {resource}; {size_text(free)} "
                               "are free (increase output_step; --force-long or force_long=True overrides this check)")


# preparation ------------------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from liedyn.simulation.hybrid_simulation import HybridSimulation


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """A run that is ready to start.

    scenario            with the integrator that is used
    problem             for `integrators.solve`
    warnings            one line each
    integrator_reasons  why an integrator other than the default is used, one line each
    hybrid_simulation   simulates the segments
    contact_names       names of the contacts
    frictions           rigid friction of `model`, which `problem` does not have
    sensors             sensors of the scenario
    """

    scenario: Scenario
    model: Model
    problem: InitialValueProblem
    warnings: tuple[LiedynWarning, ...]
    integrator_reasons: tuple[LiedynWarning, ...]
    hybrid_simulation: HybridSimulation
    contact_names: tuple[str, ...] = ()
    frictions: tuple[JointFriction, ...] = ()
    sensors: tuple[BoundSensor, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows of the result, at times 0, output_step, … and the end."""
        return math.ceil(self.scenario.duration / self.scenario.output_step - 1e-9) + 1

    @property
    def steps(self) -> int | None:
        """Number of steps of a fixed-step method without discontinuities; None for other methods."""
        integrator, between = self.scenario.integrator, self.scenario.output_step
        if not integrator.step_is_fixed:
            return None
        if self.sensors:
            intervals = np.diff(motion_times(output_times(self.scenario), self.sensors))
            return int(np.ceil(intervals / integrator.step * (1 - 1e-9)).sum())
        last = self.scenario.duration - (self.rows - 2) * between
        each, few = (math.ceil(length / integrator.step * (1 - 1e-9)) for length in (between, last))
        return (self.rows - 2) * each + few

    def report(self, folder: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Return the properties of the run as plain values."""
        scenario, model, integrator = self.scenario, self.model, self.scenario.integrator
        memory, disk = result_size(self.problem, self.rows, folder is not None)
        rules = bind_rules(scenario.joints, model.joint_names, "joint")
        prescribed = [name for name, rule in rules.items() if isinstance(rule.value, Prescribe)]
        driven = _driven_joints(scenario, model, prescribed)
        options = {key: value for key in METHODS[integrator.method] if math.isfinite(value := getattr(integrator, key))}
        why = "named in the scenario" if integrator.named else "the default"
        if self.integrator_reasons:
            why = self.integrator_reasons[0].message
        return {"robot": {"name": model.name, "file": scenario.robot, "nq": model.nq, "nv": model.nv, "base": model.base,
                          "constraint_rows": model.nc, "warnings": len(of_level("warning", model.warnings))},
                "joints": {"prescribed": prescribed, "given_force": [name for name in rules if name not in prescribed],
                           "driven": driven, "free": [name for name in model.joint_names if name not in (*rules, *driven)],
                           "law": scenario.control and scenario.control.law},
                "events": [event.name for event in scenario.events],
                "sampling": _sampling_report(scenario),
                "samples": {sensor.sensor.name: len(sensor.times) for sensor in self.sensors},
                "duration": scenario.duration, "rows": self.rows,
                "integrator": {"method": integrator.method, **options}, "why": why, "steps": self.steps,
                "bytes": {"memory": memory, "disk": disk}, "folder": None if folder is None else os.fspath(folder),
                "warnings": [warning.to_dict() for warning in self.warnings]}


def _sampling_report(scenario: Scenario) -> dict[str, Any] | None:
    """Return when a sampled controller acts, what it measures, and who computes: laws, functions in Python, observers."""
    sampling, named = scenario.sampling, scenario.controller
    if sampling is None:
        return None
    function = None if sampling.function is None else getattr(sampling.function, "__name__", type(sampling.function).__name__)
    return {"interval": sampling.interval, "delay": sampling.delay, "hold": sampling.hold,
            "quantization": any((sampling.q, sampling.v, sampling.tau)), "noise": any((sampling.noise_q, sampling.noise_v)),
            "controller": function if named is None else f"{named.module}:{named.name}",
            "observer": None if scenario.observer is None else list(scenario.observer.columns)}


def _driven_joints(scenario: Scenario, model: Model, prescribed: list[str]) -> list[str]:
    """Return the names of the joints that the control law drives."""
    control = scenario.control
    if control is None:
        return []
    names = bind_joints(control.motion or control.joints, model) or model.joint_names
    joints = [joint for joint in model.joints if joint.name in names and joint.name not in prescribed and joint.type != "free"]
    if control.rows:                                           # of a gain, by coordinate
        driven, forces = set(map(current_names(model), control.rows)), coordinate_columns(model, "tau")
        joints = [joint for joint in joints if driven.intersection(forces[joint.v])]
    return [joint.name for joint in joints]


def _with_controller(scenario: Scenario, controller: Controller) -> Scenario:
    """Return the scenario with a user function that is called at samples."""
    if not callable(controller):
        raise UsageError(f"controller must be a function of (t, q, v), got {type(controller).__name__}")
    if scenario.sampling is None:
        raise UsageError("a controller is called at sample times: the scenario needs the key sampling, for example "
                         "sampling: {rate: 1000} (in continuous time it would be called at trial steps of the integrator, too); "
                         "see docs/python.md#controllers-in-python")
    return replace(scenario, sampling=replace(scenario.sampling, function=controller))


def check_supports_integrals(scenario: Scenario, method: str) -> None:
    """Raise ScenarioError where states of laws that are not sampled cannot be combined with the integrator or with hard stops.

    These are integrals of pid laws and estimated parameters.
    """
    adapts = isinstance(scenario.control, SlotineLiControl) and bool(scenario.control.adapt)
    if continuous_pid(scenario) is None and not adapts:
        return
    laws = "laws that adapt parameters" if adapts else "pid laws"
    if method in MECHANICAL_METHODS:
        raise ScenarioError(f"{laws} are not supported by {method}", place=scenario.integrator.place.at("method"),
                            expected="another integrator.method, or the key sampling")
    if scenario.limits is not None and scenario.limits.mode == "hard":
        raise ScenarioError(f"hard stops cannot be combined with {laws}", place=scenario.limits.place,
                            expected="compliant stops, limits: stop")


def _no_effect_warnings(scenario: Scenario, model: Model) -> WarningLog:
    """Return warnings about keys that have no effect in this run."""
    warnings = WarningLog()
    for number, force in enumerate(scenario.forces, 1):
        if force.start >= scenario.duration:
            warnings.add("no-effect",
                         f"external force {number} on link {force.link} begins at t = {force.start:g} s, after the end of the "
                         "run")
    of_joints, of_thrusts = split_limit_rules(scenario, model)
    saturated = bind_rules(of_joints, model.joint_names, "joint")
    by_robot = [k for name, rule in saturated.items() if rule.value == ROBOT_LIMITS
                for k in range(model.v_index(name).start, model.v_index(name).stop)]
    if by_robot and not (np.isfinite(velocity_and_force_limits(model)[1][by_robot]).any() or thrust_limits(scenario, model)):
        warnings.add("no-effect", "saturate has no effect: the robot file has no effort limits for these joints")
    named = any(rule.pattern != "*" for rule in of_thrusts)
    if named and scenario.sampling is None and not {*driven_actuators(scenario, model, None)} & {*thrust_limits(scenario, model)}:
        warnings.add("no-effect", "saturate has no effect on thrusts: `actuators` and `control` drive none of them")
    for sensor in scenario.sensors:
        if sensor.rate is not None and sensor.rate * scenario.duration < 1.0:
            warnings.add("no-effect", f"sensor {sensor.name} has only the sample at the start: its rate is {sensor.rate:g} Hz")
        elif sensor.delay >= scenario.duration:
            warnings.add("no-effect", f"sensor {sensor.name} measures only the torque of the start: its delay is "
                         f"{sensor.delay:g} s")
    if scenario.limits is not None and not limit_stops(scenario, model):
        warnings.add("no-effect", "limits has no effect: the robot file has no position limits for these joints")
    return warnings


def prepare(path: str | os.PathLike[str] | Mapping[str, Any], overrides: Overrides, strict: bool = False,
            force_long: bool = False, folder: str | os.PathLike[str] | None = None, controller: Controller | None = None,
            model: Model | None = None) -> PreparedRun:
    """Check the scenario and compile its signals, without a step of the run. Raises the errors of `run_scenario`.

    model   replaces that of the scenario
    """
    scenario = scenario_of(path, overrides, force_long)
    if controller is not None:
        scenario = _with_controller(scenario, controller)
    if model is not None:
        scenario = replace(scenario, robot=model.name)
    else:
        model = read_model(scenario.robot, **scenario.robot_options, strict=strict)
    return prepare_run(scenario, model, force_long, folder)


def prepare_run(scenario: Scenario, model: Model, force_long: bool = False,
                folder: str | os.PathLike[str] | None = None) -> PreparedRun:
    """Prepare the run of a scenario and robot that are loaded already, see `prepare`."""
    model = with_scenario_friction(scenario, model)
    scenario = bind_control_models(start_within_limits(scenario, model), model)
    model = add_rotor_inertias(scenario, model)
    scenario = with_python_controller(scenario, model)
    from liedyn.integrators.diagnosis import check_inertia, choose_integrator
    from liedyn.simulation.hybrid_simulation import HybridSimulation
    from liedyn.simulation.input_schedule import compile_schedule
    frictions = rigid_frictions(model) if scenario.passive else ()
    moving = without_friction(model, frictions)
    first = with_open_loops(moving, scenario.phases[0] if scenario.phases else None)
    problem, contact_names, warnings = compile_schedule(scenario, first)
    problem = problem.with_transferred_inertia()
    check_inertia(problem)
    integrator, integrator_reasons = choose_integrator(scenario, problem, scenario.output_step)
    check_supports_integrals(scenario, integrator.method)
    sensors = bind_sensors(scenario, model)
    if not force_long:
        samples = sum(len(sensor.times) for sensor in sensors)
        check_resources(problem, int(scenario.duration / scenario.output_step) + 2 + samples, folder)
    scenario = replace(scenario, integrator=integrator)
    observer_warnings = WarningLog()
    check_observer(scenario, model, problem.prescribed, observer_warnings)
    warnings = (*warnings, *observer_warnings, *late_warnings(scenario.events, scenario.duration),
                *_no_effect_warnings(scenario, model),
                *deep_contact_warnings(problem, contact_names))
    hybrid_simulation = HybridSimulation(scenario, moving, problem, frictions)
    if not any(isinstance(action, Lock) for event in scenario.events for action in event.actions):    # it prescribes joints
        for phase_problem in hybrid_simulation.problems.compiled:
            check_inertia(phase_problem)
    if integrator.method == "variational":
        from liedyn.integrators.variational import check_supported
        check_supported(problem, problem.v, integrator.place.at("method"))
        for phase_problem in hybrid_simulation.problems.compiled:
            check_supported(phase_problem, np.zeros(model.nv), integrator.place.at("method"))
    return PreparedRun(scenario, model, problem, warnings, tuple(integrator_reasons), hybrid_simulation, contact_names,
                       frictions, sensors)


def output_times(scenario: Scenario) -> Array:
    """Return the times 0, output_step, … and the end of the run. The last interval may be shorter."""
    n = int(np.floor(scenario.duration / scenario.output_step * (1 + 1e-12)))
    times = np.arange(n + 1, dtype=float) * scenario.output_step
    if scenario.duration - times[-1] > 1e-9 * scenario.output_step:
        return np.asarray(np.append(times, scenario.duration), dtype=float)
    times[-1] = scenario.duration
    return times
