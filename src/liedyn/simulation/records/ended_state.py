"""The state in which a recorded motion ended, as initial state of another one."""
from __future__ import annotations

from liedyn.errors import Place, ScenarioError, TrajectoryError
from liedyn.io.csv import read_trajectory
from liedyn.io.scenarios.scenario import Rule, StartFrom
from liedyn.model.model import Model
from liedyn.simulation.records.motion_columns import bind, passed_over


def ended_state(given: StartFrom | None, model: Model) -> tuple[dict[str, Rule], dict[str, Rule]]:
    """Initial q and v of each joint, by its name: the last row of the trajectory. Nothing without `given`.

    Raises ScenarioError for a trajectory of other coordinates than those of the model, with their names.
    """
    if given is None:
        return {}, {}
    trajectory = read_trajectory(given.file, events=True)
    others = [name for name in passed_over(model, trajectory) if name.startswith(("q.", "v."))]
    if others:
        raise ScenarioError(f"the motion in {given.file} is of another robot", place=given.place, found=", ".join(others),
                            expected=f"coordinates of {model.name}: q.{model.q_names[0]}, …" if model.nq else "no coordinates")
    return (_last(given, model, trajectory, "q", "positions", model.q_index),
            _last(given, model, trajectory, "v", "velocities", model.v_index))


def _last(given: StartFrom, model: Model, trajectory, kind: str, what: str, index) -> dict[str, Rule]:
    try:
        values = bind(model, trajectory, kind)
    except TrajectoryError as error:
        raise ScenarioError(f"{error.place}: {error.message}", place=given.place, found=error.found,
                            expected=error.expected) from None
    if values is None and model.nv:
        raise ScenarioError(f"{given.file} has no columns of {what}", place=given.place, expected=f"{kind}.<joint>")
    place = Place(given.place.file, given.place.line, f"{given.place.key} ({given.file})")
    return {name: Rule(name, tuple(values[-1, index(name)].tolist()), place) for name in model.joint_names}
