"""Bind the values of a sweep: return one run as a prepared scenario with its robot, or as a robot and a trajectory."""
from __future__ import annotations

import json
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from liedyn.analysis.recorded_robot import robot_of
from liedyn.arrays import Array, Integers
from liedyn.dynamics.model_parameters import parameter_names, parameter_value, with_parameters
from liedyn.errors import LiedynError, LiedynWarning, ModelError, ScenarioError, nearest
from liedyn.io.robots.robot_formats import formats_of_ending
from liedyn.io.scenarios.scenario import Scenario
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.io.sweep_file import Distribution, Range, Sweep, SweepParameter, TrajectoryJob
from liedyn.io.trajectory_csv import Trajectory, read_trajectory
from liedyn.io.yaml_nodes import read_yaml
from liedyn.io.yaml_values import first_key, path_parts
from liedyn.model.model import Model, build
from liedyn.robot_files import read_model
from liedyn.simulation.control.control_model import bind_control_models
from liedyn.simulation.name_binding import bind_rules
from liedyn.simulation.preparation import PreparedRun, prepare_run
from liedyn.simulation.random_streams import BITS, random_stream

Run = TypeVar("Run")
Value: TypeAlias = Any                              # of a parameter in one run: a number, text, a boolean or a tuple of numbers
Values: TypeAlias = Array | list[Value]             # of a parameter in several runs
ValueList: TypeAlias = tuple[Value, ...] | Array | Range

# Values of each run of a sweep, as a function of its number -------------------------------------------------------------

class Design:
    """Values of the runs of a sweep, which have the numbers 0 … count - 1.

    With `sample`, the values of run k follow from numbers in (0, 1), one per parameter. With `random` sampling each parameter has
    a separate stream, which depends on the seed and its name. Other samplings assign their dimensions in the order of the names.
    So the order of the entries of `parameters` has no effect. Increasing the count keeps the samples of smaller counts, except
    for Latin hypercubes, which depend on the count.
    """

    def __init__(self, sweep: Sweep):
        self.sweep, self.parameters = sweep, sweep.parameters
        self._lists = [_value_list(parameter) for parameter in sweep.parameters]
        self._lengths = [len(values) for values in self._lists]

    @property
    def count(self) -> int:
        """Number of runs."""
        if self.sweep.combine == "sample":
            return self.sweep.samples
        return self._lengths[0] if self.sweep.combine == "zip" else math.prod(self._lengths)

    def values(self, first: int, until: int) -> list[Values]:
        """Return the values of runs first … until - 1 of each parameter: arrays of numbers, or lists.

        Relative values are not yet multiplied by the nominal values.
        """
        runs = np.arange(first, until)
        if self.sweep.combine == "sample":
            u = self._uniforms(first, until)
            return [_sample(parameter, values, u[:, k])
                    for k, (parameter, values) in enumerate(zip(self.parameters, self._lists, strict=True))]
        indices = [runs] * len(self._lists) if self.sweep.combine == "zip" else np.unravel_index(runs, self._lengths)
        return [_select(values, index) for values, index in zip(self._lists, indices, strict=True)]

    def _uniforms(self, first: int, until: int) -> Array:
        """Return (runs, d) numbers in (0, 1)."""
        if self.sweep.sampling != "random":
            return self._low_discrepancy[first:until]
        return np.stack([random_stream(self.sweep.seed, parameter.key, first, until) for parameter in self.parameters], axis=1)

    @cached_property
    def _low_discrepancy(self) -> Array:
        """(count, d) numbers in (0, 1) of a Latin hypercube or of Sobol's sequence."""
        from scipy.stats import qmc
        kind = {"latin_hypercube": qmc.LatinHypercube, "sobol": qmc.Sobol}[self.sweep.sampling]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)              # counts that are no power of two: a warning says so
            u = kind(len(self.parameters), seed=np.random.default_rng(self.sweep.seed)).random(self.count)
        # independent of the order of the entries
        dimensions = np.argsort(np.argsort([parameter.key for parameter in self.parameters]))
        ordered: Array = np.clip(u[:, dimensions], 0.5 * BITS, 1.0 - BITS)
        return ordered


def _sample(parameter: SweepParameter, values: ValueList, u: Array) -> Values:
    """Return the values for numbers u in (0, 1): quantiles of the distribution, or entries of the list."""
    if parameter.drawn is not None:
        return quantile(parameter.drawn, u)
    return _select(values, np.minimum((u * len(values)).astype(int), len(values) - 1))


def quantile(distribution: Distribution, u: Array) -> Array:
    """Return the quantiles of a distribution: where its distribution function has the values u."""
    low, high, median = distribution.low, distribution.high, float(distribution.centre)
    if distribution.kind == "uniform":
        return low + (high - low) * u
    if distribution.kind == "log_uniform":
        logarithm: Array = np.log(low) + np.log(high / low) * u
        return np.clip(np.exp(logarithm), low, high)
    from scipy.special import ndtr, ndtri
    is_log_normal = distribution.kind == "log_normal"
    if is_log_normal:
        median = np.log(median)
        low, high = (np.log(bound) if bound > 0.0 else -np.inf for bound in (low, high))
    a, b = (low - median) / distribution.spread, (high - median) / distribution.spread
    if a > 0.0:                                                        # by the other tail, where numbers are dense
        z = -ndtri(ndtr(-a) * (1.0 - u) + ndtr(-b) * u)
    else:
        z = ndtri(ndtr(a) * (1.0 - u) + ndtr(b) * u)
    x: Array = median + distribution.spread * z
    return np.clip(np.exp(x) if is_log_normal else x, distribution.low, distribution.high)


def _value_list(parameter: SweepParameter) -> ValueList:
    """Return the values of a parameter: an array if they are numbers. Empty for a distribution."""
    values = parameter.values
    if values is None or isinstance(values, Range):
        return values or ()
    return np.array(values) if parameter.is_number else values


def _select(values: ValueList, indices: Integers) -> Values:
    if isinstance(values, Range):
        return values.at(indices)
    return values[indices] if isinstance(values, np.ndarray) else [values[k] for k in indices]


# binding ----------------------------------------------------------------------------------------------------------------

N_SAMPLES, _N_CHECKED = 4096, 6     # runs
_CACHED_TRAJECTORIES = 8
# comments that describe the robot of a trajectory
_ROBOT_COMMENTS = ("robot", "model", "base", "gravity", "loops", "armatures", "mimic", "robot_options")
_ROBOT_SECTIONS = ("links", "joints", "gravity", "loops", "couplings", "actuators", "elements")      # of a robot YAML


class SweepBinding(ABC, Generic[Run]):
    """Base class: binds the varied parameters of a sweep to parameters of the robot and keys of the scenario.

    model       the robot as it is in its file
    parameters  parameter of the robot that each varied parameter sets; None for keys of files
    nominal     factor of each varied parameter with relative values; 1 for absolute ones
    """

    def __init__(self, sweep: Sweep):
        self.sweep, self.design = sweep, Design(sweep)
        self.model = self._read_model()
        known = set(parameter_names(self.model)) if self.of_robot else set()
        self.parameters = [parameter.of_robot if parameter.of_robot in known else None for parameter in sweep.parameters]
        for parameter, name in self._assigned_parameters():
            self._check_key(parameter, name, known)
        self.nominal = [self._nominal_value(parameter, name) for parameter, name in self._assigned_parameters()]

    # overridden by subclasses
    @abstractmethod
    def _read_model(self) -> Model:
        """Read the inputs that all runs share, and return the robot."""

    @abstractmethod
    def _create_run(self, settings: dict[str, Value], edits: tuple[str, ...], parameters: dict[str, float]) -> Run:
        """Return a run.

        settings    values of the keys of the scenario or job
        edits       changes of the robot file ("key=value")
        parameters  values of parameters of the robot
        """

    @abstractmethod
    def _nominal_setting(self, key: str) -> Value:
        """Return the value of a key of the scenario or job if nothing varies."""

    def _assigned_parameters(self) -> Iterable[tuple[SweepParameter, str | None]]:
        """Return each varied parameter with the robot parameter that it sets, or None."""
        return zip(self.sweep.parameters, self.parameters, strict=True)

    @property
    def of_robot(self) -> bool:
        """Whether the robot differs between runs."""
        return any(parameter.of_robot for parameter in self.sweep.parameters)

    def values(self, first: int, until: int) -> list[Values]:
        """Return the values of runs first … until - 1 of each parameter, multiplied by the nominal values."""
        return [x * factor if isinstance(x, np.ndarray) and parameter.scale == "relative" else x
                for parameter, x, factor in zip(self.sweep.parameters, self.design.values(first, until), self.nominal,
                                                strict=True)]

    def values_of(self, number: int) -> list[Value]:
        """Return the values of one run."""
        return [x[0] for x in self.values(number, number + 1)]

    @property
    def samples(self) -> list[Values]:
        """Values of the first runs, from which affine maps are determined."""
        return self.values(0, min(self.design.count, N_SAMPLES))

    @property
    def checked_values(self) -> list[list[Value]]:
        """Values of a few runs from all parts of the sweep, for which affine maps are checked."""
        return [self.values_of(int(k)) for k in np.unique(np.linspace(0, self.design.count - 1, _N_CHECKED).astype(int))]

    def run(self, number: int) -> Run:
        """Return the run with this number."""
        return self.bind(self.values_of(number))

    def bind(self, values: Sequence[Value]) -> Run:
        """Return the run with these values of the varied parameters."""
        return self._bind_some((parameter, name, x) for (parameter, name), x
                               in zip(self._assigned_parameters(), values, strict=True))

    def _bind_some(self, assignments: Iterable[tuple[SweepParameter, str | None, Value]]) -> Run:
        """Return a run with some parameters changed.

        assignments  (varied parameter, its parameter of the robot, value) of each
        """
        settings, parameters, edits = {}, {}, []
        for parameter, name, x in assignments:
            if name is not None:
                parameters[name] = float(x)
            elif parameter.of_robot:
                edits.append(f"{parameter.of_robot}={json.dumps(x)}")
            else:
                settings[parameter.key] = x
        return self._create_run(settings, tuple(edits), parameters)

    def first_run(self) -> Run:
        """Return the first run. If it cannot be prepared, the error names the parameter that causes it."""
        values = self.values_of(0)
        try:
            return self.bind(values)
        except LiedynError as error:
            for (parameter, name), x in zip(self._assigned_parameters(), values, strict=True):
                try:
                    self._bind_some([(parameter, name, x)])
                except LiedynError as cause:
                    raise ScenarioError(f"the first run cannot start: {cause}", place=parameter.place.at("key")) from None
            raise ScenarioError(f"the first run cannot start: {error}", place=None) from None

    def _check_key(self, parameter: SweepParameter, name: str | None, known: set[str]) -> None:
        if name is not None and isinstance(parameter.values, tuple):
            for x in parameter.values:
                if not isinstance(x, float):
                    raise ScenarioError(f"{parameter.key} must be a number", place=parameter.place.at("list"), found=x)
        key, is_yaml = parameter.of_robot, any(format.has_keys for format in formats_of_ending(str(self.model.source)))
        if key is None or name is not None or (is_yaml and key.partition(".")[0] in _ROBOT_SECTIONS):
            return
        alternative = ", or a key such as links.hand.mass of the robot YAML" if is_yaml else ""
        raise ScenarioError("no such parameter of the robot", place=parameter.place.at("key"), found=key,
                            expected=f"one of ld.parameter_names(model){alternative}",
                            hint=nearest(key, known, written=lambda name: f"robot.{name}"))

    def _nominal_value(self, parameter: SweepParameter, name: str | None) -> float:
        if parameter.scale == "absolute":
            return 1.0
        if name is not None:
            if name.startswith(("origin.", "screw.")):
                raise ScenarioError("placements and screws have no relative values", place=parameter.place.at("scale"),
                                    found=parameter.key, expected="scale: absolute, the change")
            nominal = parameter_value(self.model, name)
        elif parameter.of_robot:
            nominal = _value_at(read_yaml(str(self.model.source), ModelError).plain(), parameter.of_robot)
        else:
            nominal = self._nominal_setting(parameter.key)
        if isinstance(nominal, bool) or not isinstance(nominal, int | float):
            raise ScenarioError("relative values require a number to multiply", place=parameter.place.at("scale"),
                                found=f"{parameter.key} = {nominal}" if nominal is not None else f"{parameter.key} has no value",
                                expected="scale: absolute")
        return float(nominal)


class ScenarioBinding(SweepBinding[PreparedRun]):
    """Binding of simulations. prepared: the run of the scenario without variation."""

    def _read_model(self) -> Model:
        self._load = cache(read_model)
        scenario = scenario_of(self.sweep.scenario, self.sweep.overrides)
        model = self._model(scenario)
        self.prepared = prepare_run(scenario, model)
        return model

    def _check_key(self, parameter: SweepParameter, name: str | None, known: set[str]) -> None:
        super()._check_key(parameter, name, known)
        kind, _, coordinate = (name or "").partition(".")
        replaced = bind_rules(self.prepared.scenario.friction, self.model.joint_names, "joint")
        if kind in ("friction", "friction_speed") and coordinate.partition(".")[0] in replaced:
            raise ScenarioError("the friction of the scenario replaces that of the robot", place=parameter.place.at("key"),
                                found=parameter.key, expected=f"a key of the scenario such as friction.{coordinate}")

    def _create_run(self, settings: dict[str, Value], edits: tuple[str, ...], parameters: dict[str, float]) -> PreparedRun:
        """Return a prepared run. Raises the same errors as `run_scenario`."""
        overrides = (f"{key}={json.dumps(x)}" for key, x in settings.items())
        scenario = scenario_of(self.sweep.scenario, (*self.sweep.overrides, *overrides))
        model = self._model(scenario, edits)
        nominal = self._model(replace(scenario, gravity=self.prepared.scenario.gravity))    # the controller knows no variation
        scenario = bind_control_models(scenario, model, nominal, self._load)
        if parameters:
            model = build(with_parameters(model, parameters))
        return prepare_run(scenario, model)

    @cached_property
    def varying_constants(self) -> tuple[int, ...]:
        """Indices of the constants in which the robots of the sweep differ, from runs of all its parts and their extremes."""
        base, different = self.prepared.model, np.zeros(len(self.prepared.model.constants), dtype=bool)
        extremes = [[pick(x) if isinstance(x, np.ndarray) else x[0] for x in self.samples] for pick in (np.min, np.max)]
        for values in (*self.checked_values, *extremes) if self.of_robot else ():
            try:
                constants = self.bind(values).model.constants
            except LiedynError:                                 # its own error comes with the run
                continue
            if constants.shape == base.constants.shape:
                different |= constants != base.constants
        return tuple(map(int, np.flatnonzero(different)))

    def _model(self, scenario: Scenario, edits: tuple[str, ...] = ()) -> Model:
        return (read_model if edits else self._load)(scenario.robot, **scenario.robot_options, overrides=edits)

    def _nominal_setting(self, key: str) -> Value:
        return _value_at(to_plain(self.prepared.scenario), key)


@dataclass(frozen=True, eq=False)
class TrajectoryRun:
    """A run of a job along a trajectory."""

    model: Model
    trajectory: Trajectory


class TrajectoryBinding(SweepBinding[TrajectoryRun]):
    """Binding of jobs along a trajectory.

    warnings    warnings about the robot of the trajectory
    trajectory  function of a path: returns the trajectory
    """

    def __init__(self, sweep: Sweep, job: TrajectoryJob):
        self.job = job
        self._robots: dict[tuple[str | None, ...], tuple[Model, tuple[LiedynWarning, ...]]] = {}
        self.trajectory = lru_cache(_CACHED_TRAJECTORIES)(partial(read_trajectory, columns=job.columns))
        super().__init__(sweep)

    def _read_model(self) -> Model:
        model, self.warnings = self._robot_of(self.trajectory(self.job.trajectory))
        return model

    def _robot_of(self, trajectory: Trajectory, edits: tuple[str, ...] = ()) -> tuple[Model, tuple[LiedynWarning, ...]]:
        """Return the robot of a trajectory and warnings; trajectories with equal comments share a robot."""
        if edits:
            return robot_of(trajectory, self.job.robot, base=self.job.base, edits=edits)
        folder = str(Path(str(trajectory.source)).parent)
        key = folder, *(trajectory.header.get(name) for name in _ROBOT_COMMENTS)
        if key not in self._robots:
            self._robots[key] = robot_of(trajectory, self.job.robot, base=self.job.base)
        return self._robots[key]

    def _create_run(self, settings: dict[str, Value], edits: tuple[str, ...], parameters: dict[str, float]) -> TrajectoryRun:
        trajectory = self.trajectory(settings.get("trajectory", self.job.trajectory))
        model, _ = self._robot_of(trajectory, edits)
        return TrajectoryRun(build(with_parameters(model, parameters)) if parameters else model, trajectory)

    def path(self, values: Sequence[Value]) -> str:
        """Return the path of the trajectory of the run with these values."""
        paths = (x for parameter, x in zip(self.sweep.parameters, values, strict=True) if parameter.key == "trajectory")
        return next(paths, self.job.trajectory)

    def _check_key(self, parameter: SweepParameter, name: str | None, known: set[str]) -> None:
        if parameter.of_robot is None and parameter.key != "trajectory":
            raise ScenarioError(f"the job {self.job.kind} has no parameter of this name", place=parameter.place.at("key"),
                                found=parameter.key, expected="robot.<parameter or key of the robot YAML>, or trajectory")
        super()._check_key(parameter, name, known)

    def _nominal_setting(self, _key: str) -> Value:            # `trajectory` is the only key of a job that varies
        return self.job.trajectory


def _value_at(tree: Value, path: str) -> Value:
    """Return the value at a dotted path of keys in plain values, as in overrides. None if it does not exist."""
    parts = path_parts(path)
    while parts:
        key = first_key(tree if isinstance(tree, dict) else (), parts)
        part, parts = ".".join(key), parts[len(key):]
        if isinstance(tree, list):
            tree = tree[int(part)] if part.isdecimal() and int(part) < len(tree) else None
        else:
            tree = tree.get(part) if isinstance(tree, dict) else None
    return tree
