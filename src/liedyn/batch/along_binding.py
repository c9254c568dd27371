"""One run of a job along a trajectory, from the values of what varies: a robot and a trajectory."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass

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
    """notes: about the robot of the trajectory."""

    def _begin(self) -> Model:
        self.job = self.sweep.job
        self._models: dict[tuple, Model] = {}
        self._read: dict[str, Trajectory] = {}
        trajectory = self.trajectory(self.job.trajectory)
        model, self.notes = robot_of(trajectory, self.job.robot, base=self.job.base)
        self._models[self._key(trajectory)] = model
        return model

    def trajectory(self, path: str) -> Trajectory:
        if path not in self._read:
            if len(self._read) == _KEPT:
                del self._read[next(iter(self._read))]
            self._read[path] = read_trajectory(path, events=True)
        return self._read[path]

    def model_of(self, trajectory: Trajectory, edits: tuple[str, ...] = ()) -> Model:
        """The robot of a trajectory; the same one where its comments say the same."""
        key = self._key(trajectory)
        if edits or key not in self._models:
            model, _ = robot_of(trajectory, self.job.robot, base=self.job.base, edits=edits)
            if edits:
                return model
            self._models[key] = model
        return self._models[key]

    def _key(self, trajectory: Trajectory) -> tuple:
        return os.path.dirname(trajectory.source), *(trajectory.header.get(name) for name in _OF_ROBOT)

    def _made(self, overrides: list[str], edits: tuple[str, ...], parameters: dict[str, float]) -> AlongRun:
        paths = [json.loads(text.partition("=")[2]) for text in overrides]
        trajectory = self.trajectory(paths[0] if paths else self.job.trajectory)
        model = self.model_of(trajectory, edits)
        return AlongRun(build(with_parameters(model, parameters)) if parameters else model, trajectory)

    def path(self, values) -> str:
        """Of the trajectory of a run with these values."""
        return next((x for one, x in zip(self.sweep.vary, values, strict=True) if one.key == "trajectory"), self.job.trajectory)

    @property
    def robot_file(self) -> str:
        return self.model.source or ""

    def _check_key(self, one: Varied, name: str | None, known: set[str]) -> None:
        if one.of_robot is None and one.key != "trajectory":
            raise ScenarioError(f"the job {self.job.kind} has nothing of this name to vary", place=one.place, found=one.key,
                                expected="robot.<parameter or key of the robot YAML>, or trajectory")
        super()._check_key(one, name, known)

    def _own_value(self, key: str):
        return self.job.trajectory
