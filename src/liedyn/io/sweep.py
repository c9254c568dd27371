"""What a sweep is: a scenario or trajectory, what varies from run to run, what is kept of each run (`sweep_file` reads it)."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from liedyn.errors import Place

COMBINATIONS, SAMPLINGS, SCALES = ("grid", "zip", "sample"), ("random", "latin_hypercube", "sobol"), ("absolute", "relative")
MOST_RUNS = 100_000_000
SIMULATE, JOBS = "simulate", ("inverse", "forward", "hybrid", "derivatives")
CRITERIA, WRENCH_AXES = ("unique", "least_torque", "least_constraint_force"), ("world", "link", "joint")


@dataclass(frozen=True, slots=True)
class Distribution:
    """kind: uniform or log_uniform between `low` and `high`; normal of `centre` and `spread`; log_normal of the median `centre`,
    whose logarithm has the standard deviation `spread`. The last two are cut off at low and high."""

    kind: str
    low: float
    high: float
    centre: float = 0.0
    spread: float = 1.0


@dataclass(frozen=True, slots=True)
class Range:
    """So many values, equally spaced; made when they are asked for, since there may be very many."""

    first: float
    last: float
    count: int

    def __len__(self) -> int:
        return self.count

    def at(self, places: np.ndarray) -> np.ndarray:
        if self.count == 1:
            return np.full(len(places), self.first)
        return np.where(places == self.count - 1, self.last, self.first + (self.last - self.first) * places / (self.count - 1))


@dataclass(frozen=True, slots=True)
class Varied:
    """A quantity that differs from run to run.

    key      path of a scenario key, or robot.<parameter or key of the robot file>, or `trajectory` of a job along one
    name     of its column
    values   the list of them; or
    drawn    the distribution that they are drawn from
    scale    relative: values are factors of what the scenario or robot has
    """

    key: str
    name: str
    values: tuple[Any, ...] | Range | None = None
    drawn: Distribution | None = None
    scale: str = "absolute"
    place: Place = field(default=Place(), compare=False)

    @property
    def is_number(self) -> bool:
        """Whether all values are."""
        return self.values is None or isinstance(self.values, Range) or all(isinstance(x, float) for x in self.values)

    @property
    def of_robot(self) -> str | None:
        """Parameter or key of the robot; None for a key of the scenario."""
        return self.key.removeprefix("robot.") if self.key.startswith("robot.") else None


@dataclass(frozen=True, slots=True)
class Output:
    """A named expression over a run."""

    name: str
    text: str
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of each trajectory: every so many rows, of the columns that match one of the patterns."""

    every: int = 1
    columns: tuple[str, ...] = ("*",)
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, slots=True)
class AlongJob:
    """What is computed along a trajectory: the command of this kind, with its options.

    kind         one of JOBS
    trajectory, robot   paths as they can be opened from the current folder; robot None: that which the trajectory names
    smooth       seconds, "auto" or None
    """

    kind: str
    trajectory: str
    robot: str | None = None
    base: str | None = None
    prescribed: tuple[str, ...] = ()
    of: str = "inverse"
    by: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    order: int = 0
    smooth: float | str | None = None
    wrenches: str | None = None
    actuated: tuple[str, ...] = ()
    criterion: str = "unique"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A number of runs.

    scenario    path as it can be opened from the current folder; "" of a job along a trajectory
    overrides   of the scenario, "key.path=value"
    combine     grid: each value with each, the last quantity changes first; zip: the k-th values together; sample: drawn
    samples     number of runs that are drawn
    sampling    one of SAMPLINGS
    trajectories   None: they are not kept
    """

    scenario: str
    vary: tuple[Varied, ...]
    combine: str
    samples: int = 0
    sampling: str = "random"
    seed: int = 0
    outputs: tuple[Output, ...] = ()
    trajectories: Kept | None = None
    overrides: tuple[str, ...] = ()
    job: AlongJob | None = None
    source: str | None = field(default=None, compare=False)

    @property
    def begins_with(self) -> str:
        """The file that all runs begin with."""
        return self.job.trajectory if self.job else self.scenario
