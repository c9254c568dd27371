"""Mobility of a mechanism as text and as plain data, for `info`, `check` and `assemble`."""
from __future__ import annotations

from typing import Any

from liedyn.dynamics.constraints.mobility import Mobility, MobilitySurvey, survey_mobility
from liedyn.errors import ComputationError, LiedynWarning, counted, list_names
from liedyn.model.model import Model
from liedyn.model.model_cache import ModelValue

_SHOWN = 8                                  # names in a line
_SURVEY = ModelValue("mobility survey")


def mobility_text(model: Model, mobility: Mobility) -> str:
    """Return degrees of freedom and redundant equations in a line."""
    count, names = len(mobility.redundant), list_names(mobility.redundant, _SHOWN)
    return f"{counted(mobility.degrees, 'degree')} of freedom: " \
           f"{model.nv} coordinates, {model.nc} equations" + (f", {count} of them redundant: {names}" if count else "")


def singular_text(mobility: Mobility) -> str:
    """Return what is singular at a configuration: ranks, coordinates and equations."""
    concerned = f"; coordinates that move in more ways: {list_names(mobility.singular_coordinates, _SHOWN)}"
    if mobility.rigid:
        return f"singular: the mechanism is rigid, but movable to first order{concerned}"
    return (f"singular: the constraint Jacobian has rank {mobility.rank} here and {mobility.generic_rank} nearby; degrees of "
            f"freedom nearby: {mobility.degrees - mobility.generic_rank + mobility.rank}{concerned}; "
            f"equations that depend on others here: {list_names(mobility.singular_equations, _SHOWN)}")


def mobility_to_dict(mobility: Mobility) -> dict[str, Any]:
    """Return the mobility of a configuration as plain data."""
    return {"degrees_of_freedom": mobility.degrees, "rank": mobility.rank, "generic_rank": mobility.generic_rank,
            "redundant": list(mobility.redundant), "singular": mobility.singular, "rigid": mobility.rigid,
            "gap": list(mobility.gap), "immobile": list(mobility.immobile),
            "singular_equations": list(mobility.singular_equations),
            "singular_coordinates": list(mobility.singular_coordinates)}


def survey(model: Model) -> tuple[MobilitySurvey | None, LiedynWarning | None]:
    """Return the mobility of a robot with loops or nonlinear couplings, or a warning that no assembly was reached.

    Both are None for other robots, and for driven loops, whose motion is not part of the robot.
    """
    if model.has_only_couplings or not model.nc or model.driven:
        return None, None

    def result() -> tuple[MobilitySurvey | None, LiedynWarning | None]:
        try:
            return survey_mobility(model), None
        except ComputationError as error:
            return None, LiedynWarning("no-assembly", f"no assembly of the robot is found: {error}")
    return model.cached(_SURVEY, result)


def survey_lines(model: Model, result: MobilitySurvey | None) -> list[str]:
    """Return lines about the mobility of a robot: degrees of freedom, immobile coordinates, degenerate assemblies."""
    if result is None:
        return ["mobility: not computed, since it depends on the motion of driven loops"] if model.driven else []
    lines = [f"mobility: {mobility_text(model, result.mobility)}"]
    if result.immobile:
        lines.append(f"the constraints hold {list_names(result.immobile, _SHOWN)}")
    lines += [f"degenerate assemblies have {counted(degrees, 'degree')} of freedom; coordinates that move in more ways: "
              f"{list_names(names, _SHOWN)}" for degrees, names in result.degenerate]
    if result.at_zero is not None and result.at_zero.singular:
        lines.append(f"at zero coordinates {singular_text(result.at_zero)}")
    return lines


def survey_to_dict(result: MobilitySurvey | None) -> dict[str, Any] | None:
    """Return the mobility of a robot as plain data; None without it."""
    if result is None:
        return None
    return {**mobility_to_dict(result.mobility), "immobile": list(result.immobile),
            "degenerate": [{"degrees_of_freedom": degrees, "coordinates": list(names)} for degrees, names in result.degenerate],
            "at_zero": None if result.at_zero is None else mobility_to_dict(result.at_zero)}
