"""One run of a job along a trajectory, from the values of what varies: a robot and a trajectory."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache, partial

from liedyn.analyse.along.robot_of_file import robot_of
from liedyn.analyse.along.varied import with_parameters
from liedyn.batch.binding import Binding
from liedyn.errors import ScenarioError
from liedyn.io.csv import Trajectory, read_trajectory
from liedyn.io.sweep import Varied
from liedyn.model.build import build
from liedyn.model.model import Model

_KEPT = 8                # trajectories in memory
_OF_ROBOT = ("robot", "base", "gravity", "loops", "armatures")          # comments that tell it


@dataclass(frozen=True, eq=False)
class AlongRun:
    model: Model
    trajectory: Trajectory


class AlongBinding(Binding):
    """notes: about the robot of the trajectory; trajectory(path): as it is read."""

    def _begin(self) -> Model:
        self.job = self.sweep.job
        self._robots: dict[tuple, tuple[Model, tuple[str, ...]]] = {}
        self.trajectory = lru_cache(_KEPT)(partial(read_trajectory, events=True))
        model, self.notes = self._robot_of(self.trajectory(self.job.trajectory))
        return model

    def _robot_of(self, trajectory: Trajectory, edits: tuple[str, ...] = ()) -> tuple[Model, tuple[str, ...]]:
        """Of a trajectory, with notes; the same one where its comments say the same."""
        key = os.path.dirname(trajectory.source), *(trajectory.header.get(name) for name in _OF_ROBOT)
        if edits:
            return robot_of(trajectory, self.job.robot, base=self.job.base, edits=edits)
        if key not in self._robots:
            self._robots[key] = robot_of(trajectory, self.job.robot, base=self.job.base)
        return self._robots[key]

    def _made(self, overrides: list[str], edits: tuple[str, ...], parameters: dict[str, float]) -> AlongRun:
        paths = [json.loads(text.partition("=")[2]) for text in overrides]
        trajectory = self.trajectory(paths[0] if paths else self.job.trajectory)
        model, _ = self._robot_of(trajectory, edits)
        return AlongRun(build(with_parameters(model, parameters)) if parameters else model, trajectory)

    def path(self, values) -> str:
        """Of the trajectory of a run with these values."""
        return next((x for one, x in zip(self.sweep.vary, values, strict=True) if one.key == "trajectory"), self.job.trajectory)

    def _check_key(self, one: Varied, name: str | None, known: set[str]) -> None:
        if one.of_robot is None and one.key != "trajectory":
            raise ScenarioError(f"the job {self.job.kind} has nothing of this name to vary", place=one.place, found=one.key,
                                expected="robot.<parameter or key of the robot YAML>, or trajectory")
        super()._check_key(one, name, known)

    def _own_value(self, key: str):
        return self.job.trajectory
