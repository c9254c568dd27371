"""Bind the values of a sweep: return one run as a prepared scenario with its robot, or as a robot and a trajectory."""
from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial

import numpy as np

from liedyn.analysis.recorded_motion import robot_of
from liedyn.analysis.trajectory_derivatives import value, with_parameters
from liedyn.dynamics.model_parameters import parameter_names
from liedyn.errors import LiedynError, LiedynWarning, ModelError, ScenarioError, nearest
from liedyn.io.robots.robot_formats import formats_of_ending
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.io.sweep_file import Distribution, Range, Sweep, SweepParameter
from liedyn.io.trajectory_csv import Trajectory, read_trajectory
from liedyn.io.yaml_nodes import read_yaml
from liedyn.io.yaml_values import path_parts
from liedyn.model.model import Model, build
from liedyn.robot_files import load_description, read_model
from liedyn.simulation.preparation import PreparedRun, prepare_run

# Values of each run of a sweep, as a function of its number -------------------------------------------------------------

_BITS = 2.0**-53


class Design:
    """Values of the runs of a sweep, which have the numbers 0 … count - 1.

    With `sample`, the values of run k follow from numbers in (0, 1), one per parameter. With `random` sampling each parameter has
    its own stream, which depends on the seed and its name. Other samplings assign their dimensions in the order of the names. So
    the order of the entries of `parameters` has no effect. Increasing the count keeps the samples of smaller counts, except for
    Latin hypercubes, which depend on the count.
    """

    def __init__(self, sweep: Sweep):
        self.sweep, self.parameters = sweep, sweep.parameters
        self.listed = [one.values if one.values is None or isinstance(one.values, Range) else _numbers(one.values)
                       for one in sweep.parameters]
        self.counts = [len(x) for x in self.listed if x is not None]

    @property
    def count(self) -> int:
        if self.sweep.combine == "sample":
            return self.sweep.samples
        return self.counts[0] if self.sweep.combine == "zip" else math.prod(self.counts)

    def values(self, first: int, until: int) -> list[np.ndarray | list]:
        """Return the values of runs first … until - 1 of each parameter: arrays of numbers, or lists.

        Factors are not yet multiplied.
        """
        runs = np.arange(first, until)
        if self.sweep.combine == "sample":
            u = self._uniforms(first, until)
            return [quantile(one.drawn, u[:, k]) if listed is None
                    else _picked(listed, np.minimum((u[:, k] * len(listed)).astype(int), len(listed) - 1))
                    for k, (one, listed) in enumerate(zip(self.parameters, self.listed, strict=True))]
        places = [runs] * len(self.listed) if self.sweep.combine == "zip" else np.unravel_index(runs, self.counts)
        return [_picked(listed, at) for listed, at in zip(self.listed, places, strict=True)]

    def _uniforms(self, first: int, until: int) -> np.ndarray:
        """Return (runs, d) numbers in (0, 1)."""
        if self.sweep.sampling != "random":
            return self._whole[first:until]
        return np.stack([_stream(self.sweep.seed, one.key, first, until) for one in self.parameters], axis=1)

    @cached_property
    def _whole(self) -> np.ndarray:
        from scipy.stats import qmc
        kind = {"latin_hypercube": qmc.LatinHypercube, "sobol": qmc.Sobol}[self.sweep.sampling]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)              # counts that are no power of two: a warning says so
            u = kind(len(self.parameters), seed=np.random.default_rng(self.sweep.seed)).random(self.count)
        dimensions = np.argsort(np.argsort([one.key for one in self.parameters]))         # whatever the order of the entries
        return np.clip(u[:, dimensions], 0.5 * _BITS, 1.0 - _BITS)


def _stream(seed: int, key: str, first: int, until: int) -> np.ndarray:
    """Return the numbers first … until - 1 in (0, 1) of the stream of a parameter, which depends on the seed and its name."""
    name = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "little")
    numbers = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(name & 0xFFFFFFFF, name >> 32 & 0xFFFFFFFF)))
    return ((numbers.advance(first).random_raw(until - first) >> np.uint64(11)) + 0.5) * _BITS


def quantile(x: Distribution, u: np.ndarray) -> np.ndarray:
    """Return the quantiles of a distribution: where its distribution function has the values u."""
    if x.kind == "uniform":
        return x.low + (x.high - x.low) * u
    if x.kind == "log_uniform":
        return np.clip(np.exp(np.log(x.low) + np.log(x.high / x.low) * u), x.low, x.high)
    from scipy.special import ndtr, ndtri
    of_logarithm = x.kind == "log_normal"
    low, high = (np.log(max(b, 0.0)) if of_logarithm and b > 0.0 else -np.inf if of_logarithm else b for b in (x.low, x.high))
    centre = np.log(x.centre) if of_logarithm else x.centre
    a, b = (low - centre) / x.spread, (high - centre) / x.spread
    if a > 0.0:                                                        # by the other tail, where numbers are dense
        z = -ndtri(ndtr(-a) * (1.0 - u) + ndtr(-b) * u)
    else:
        z = ndtri(ndtr(a) * (1.0 - u) + ndtr(b) * u)
    found = centre + x.spread * z
    return np.clip(np.exp(found) if of_logarithm else found, x.low, x.high)


def _numbers(values: tuple) -> np.ndarray | tuple:
    """Return an array if all values are numbers, otherwise `values`."""
    return np.array(values) if all(isinstance(x, float) for x in values) else values


def _picked(values: np.ndarray | tuple | Range, places: np.ndarray) -> np.ndarray | list:
    if isinstance(values, Range):
        return values.at(places)
    return values[places] if isinstance(values, np.ndarray) else [values[k] for k in places]


# binding ----------------------------------------------------------------------------------------------------------------

LOOKED_AT, _SOME = 4096, 6          # runs
_KEPT = 8                           # trajectories in memory
_OF_ROBOT = ("robot", "base", "gravity", "loops", "armatures")          # comments that describe the robot of a trajectory


class SweepBinding:
    """Base class: binds the varied parameters of a sweep to parameters of the robot and keys of the scenario.

    model    the robot as it is in its file
    nominal  factor of each varied parameter with relative values; 1 for absolute ones
    """

    def __init__(self, sweep: Sweep):
        self.sweep, self.design = sweep, Design(sweep)
        self.model = self._begin()
        known = set(parameter_names(self.model)) if any(one.of_robot for one in sweep.parameters) else set()
        self.parameters = [one.of_robot if one.of_robot in known else None for one in sweep.parameters]
        for one, name in zip(sweep.parameters, self.parameters, strict=True):
            self._check_key(one, name, known)
        self.nominal = [self._nominal(one, name) for one, name in zip(sweep.parameters, self.parameters, strict=True)]

    # overridden by subclasses
    def _begin(self) -> Model:
        """Read the inputs that all runs share, and return the robot."""
        raise NotImplementedError

    def _made(self, own: dict[str, object], edits: tuple[str, ...], parameters: dict[str, float]):
        """Return a run.

        own         values of the keys of the scenario or job
        edits       changes of the robot file ("key=value")
        parameters  values of parameters of the robot
        """
        raise NotImplementedError

    def _own_value(self, key: str):
        """Return the value of a key if nothing varies."""
        raise NotImplementedError

    @property
    def of_robot(self) -> bool:
        """Whether the robot differs between runs."""
        return any(one.of_robot for one in self.sweep.parameters)

    def values(self, first: int, until: int) -> list[np.ndarray | list]:
        """Return the values of runs first … until - 1 of each parameter, multiplied by the nominal values."""
        found = self.design.values(first, until)
        return [x * factor if one.scale == "relative" else x
                for one, x, factor in zip(self.sweep.parameters, found, self.nominal, strict=True)]

    def values_of(self, number: int) -> list:
        """Return the values of one run."""
        return [x[0] for x in self.values(number, number + 1)]

    @property
    def looked_at(self) -> list[np.ndarray | list]:
        """Values of the first runs, from which affine maps are determined."""
        return self.values(0, min(self.design.count, LOOKED_AT))

    @property
    def some(self) -> list[list]:
        """Values of a few runs from all parts of the sweep."""
        return [self.values_of(int(k)) for k in np.unique(np.linspace(0, self.design.count - 1, _SOME).astype(int))]

    def run(self, number: int):
        return self.bind(self.values_of(number))

    def bind(self, values):
        """Return the run with these values of the varied parameters."""
        return self._bound(zip(self.sweep.parameters, self.parameters, values, strict=True))

    def _bound(self, given: Iterable[tuple[SweepParameter, str | None, object]]):
        """Return a run with some parameters changed. given: (varied parameter, its parameter of the robot, value) of each."""
        own, parameters, edits = {}, {}, []
        for one, name, x in given:
            if name is not None:
                parameters[name] = float(x)
            elif one.of_robot:
                edits.append(f"{one.of_robot}={json.dumps(x)}")
            else:
                own[one.key] = x
        return self._made(own, tuple(edits), parameters)

    def first_checked(self):
        """Return the first run. If it cannot be prepared, the error names the parameter that causes it."""
        values = self.values_of(0)
        try:
            return self.bind(values)
        except LiedynError as error:
            for one, name, x in zip(self.sweep.parameters, self.parameters, values, strict=True):
                try:
                    self._bound([(one, name, x)])
                except LiedynError as cause:
                    raise ScenarioError(f"the first run cannot start: {cause}", place=one.place) from None
            raise ScenarioError(f"the first run cannot start: {error}", place=None) from None

    def _check_key(self, one: SweepParameter, name: str | None, known: set[str]) -> None:
        if name is not None and not one.is_number:
            found = next(x for x in one.values if not isinstance(x, float))
            raise ScenarioError(f"{one.key} is a number", place=one.place, found=found)
        rest, is_yaml = one.of_robot, any(format.has_keys for format in formats_of_ending(str(self.model.source)))
        if rest is None or name is not None or (is_yaml and rest.partition(".")[0] in ("links", "joints", "gravity", "loops",
                                                                                      "couplings", "actuators")):
            return
        also = ", or a key such as links.hand.mass of the robot YAML" if is_yaml else ""
        raise ScenarioError("no such parameter of the robot", place=one.place, found=rest,
                            expected=f"one of ld.parameter_names(model){also}",
                            hint=nearest(rest, known, written=lambda name: f"robot.{name}"))

    def _nominal(self, one: SweepParameter, name: str | None) -> float:
        if one.scale == "absolute":
            return 1.0
        if name is not None:
            if name.startswith(("origin.", "screw.")):
                raise ScenarioError("placements and screws have no relative values", place=one.place, found=one.key,
                                    expected="scale: absolute, the change")
            found = value(self.model, name)
        elif one.of_robot:
            found = _at_path(read_yaml(self.model.source, ModelError).plain(), one.of_robot)
        else:
            found = self._own_value(one.key)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise ScenarioError("relative values need a number to multiply", place=one.place,
                                found=f"{one.key} = {found}" if found is not None else f"{one.key} has no value",
                                expected="scale: absolute")
        return float(found)


class ScenarioBinding(SweepBinding):
    """Binding of simulations. prepared: the run of the scenario without variation."""

    def _begin(self) -> Model:
        self._load = cache(read_model)
        scenario = scenario_of(self.sweep.scenario, self.sweep.overrides)
        model = self._model(scenario)
        self.prepared = prepare_run(scenario, model)
        return model

    def _made(self, own: dict[str, object], edits: tuple[str, ...], parameters: dict[str, float]) -> PreparedRun:
        """Return a prepared run. Raises the same errors as `run_scenario`."""
        overrides = (f"{key}={json.dumps(x)}" for key, x in own.items())
        scenario = scenario_of(self.sweep.scenario, (*self.sweep.overrides, *overrides))
        model = self._model(scenario, edits)
        if parameters:
            model = build(with_parameters(model, parameters))
        return prepare_run(scenario, model)

    def _model(self, scenario, edits: tuple[str, ...] = ()) -> Model:
        if edits:
            robot = load_description(scenario.robot, scenario.base, scenario.loops, edits)
            return build(robot if scenario.gravity is None else replace(robot, gravity=scenario.gravity))
        return self._load(scenario.robot, base=scenario.base, gravity=scenario.gravity, loops=scenario.loops)

    def _own_value(self, key: str):
        return _at_path(to_plain(self.prepared.scenario), key)


@dataclass(frozen=True, eq=False)
class TrajectoryRun:
    """A run of a job along a trajectory."""

    model: Model
    trajectory: Trajectory


class TrajectoryBinding(SweepBinding):
    """Binding of jobs along a trajectory.

    warnings    warnings about the robot of the trajectory
    trajectory  function of a path: returns the trajectory
    """

    def _begin(self) -> Model:
        self.job = self.sweep.job
        self._robots: dict[tuple, tuple[Model, tuple[LiedynWarning, ...]]] = {}
        self.trajectory = lru_cache(_KEPT)(partial(read_trajectory, events=True))
        model, self.warnings = self._robot_of(self.trajectory(self.job.trajectory))
        return model

    def _robot_of(self, trajectory: Trajectory, edits: tuple[str, ...] = ()) -> tuple[Model, tuple[LiedynWarning, ...]]:
        """Return the robot of a trajectory and warnings; trajectories with equal comments share a robot."""
        key = os.path.dirname(trajectory.source), *(trajectory.header.get(name) for name in _OF_ROBOT)
        if edits:
            return robot_of(trajectory, self.job.robot, base=self.job.base, edits=edits)
        if key not in self._robots:
            self._robots[key] = robot_of(trajectory, self.job.robot, base=self.job.base)
        return self._robots[key]

    def _made(self, own: dict[str, object], edits: tuple[str, ...], parameters: dict[str, float]) -> TrajectoryRun:
        trajectory = self.trajectory(own.get("trajectory", self.job.trajectory))
        model, _ = self._robot_of(trajectory, edits)
        return TrajectoryRun(build(with_parameters(model, parameters)) if parameters else model, trajectory)

    def path(self, values) -> str:
        """Return the path of the trajectory of the run with these values."""
        return next((x for one, x in zip(self.sweep.parameters, values, strict=True) if one.key == "trajectory"),
                    self.job.trajectory)

    def _check_key(self, one: SweepParameter, name: str | None, known: set[str]) -> None:
        if one.of_robot is None and one.key != "trajectory":
            raise ScenarioError(f"the job {self.job.kind} has nothing of this name to vary", place=one.place, found=one.key,
                                expected="robot.<parameter or key of the robot YAML>, or trajectory")
        super()._check_key(one, name, known)

    def _own_value(self, key: str):
        return self.job.trajectory


def _at_path(tree, path: str):
    """Return the value at a dotted path of keys in plain values, as in overrides. None if it does not exist."""
    for part in path_parts(path):
        if isinstance(tree, list):
            tree = tree[int(part)] if part.isdecimal() and int(part) < len(tree) else None
        else:
            tree = tree.get(part) if isinstance(tree, dict) else None
    return tree
