"""`ld.simulate`: the motion of a model from arrays and Python functions, without files."""
from __future__ import annotations

import os
from collections.abc import Mapping
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from liedyn.dynamics.calling.annotations import ArrayLike, Controller
from liedyn.dynamics.calling.arguments import as_array
from liedyn.errors import NameLookupError, ShapeError, UsageError, warn
from liedyn.io.scenarios.scenario_keys import SCENARIO
from liedyn.loading import load
from liedyn.model.model import Model
from liedyn.public_calls import refuse_names
from liedyn.simulation.names import matching
from liedyn.simulation.run import Result, Silent, simulate_file

Torques: TypeAlias = ArrayLike | Mapping[str, Any] | Controller


def simulate(model: Model | str | os.PathLike[str], scenario: Mapping[str, Any] | None = None, *, duration: float | None = None,
             q0: ArrayLike | None = None, v0: ArrayLike | None = None, tau: Torques | None = None, rate: float | None = None,
             method: str | None = None, output_step: float | None = None, **keys: Any) -> Result:
    """Simulate a model; returns a `Result`.

    Parameters
    ----------
    model : Model or path
    scenario : mapping, optional
        Keys of a scenario, without `robot`: `joints`, `external_forces`, `contacts`, `events`, … as in a file, see
        docs/scenarios.md. Keyword arguments replace them.
    duration : float
        [s].
    q0, v0 : (nq,), (nv,), optional
        Initial state; default: neutral and at rest, or as `scenario` says.
    tau : array, dict or callable, optional
        Joint forces [N m | N]. (nv,): constant. (S, nv): each row is held for 1 / `rate`; the last one to the end. A dict by
        joint: numbers, expressions such as ``"2*sin(t) - 0.1*v"``, or signals as in a scenario; not for joints that `joints`
        prescribes or gives a torque. A function ``tau(t, q, v)``, called `rate` times a second: it returns (nv,) or a dict by
        joint, which is held until the next call. Rows and functions add to torques of `joints`, whose laws (`pd`, `pid`,
        `control`) are then sampled at `rate`, too. Arrays and functions do nothing to prescribed joints.
    rate : float
        [1/s] of rows or calls of `tau`.
    method : str, optional
        Integrator, such as "rk4", "dopri5", "rodas5p"; ``integrator={…}`` gives its options, too.
    output_step : float, optional
        [s] between rows of the result; default: duration / 500.
    **keys
        Further keys of a scenario: ``integrator``, ``joints``, ``contacts``, ``limits``, …

    Raises
    ------
    ScenarioError, ShapeError, NameLookupError, UsageError
        For what is wrong with the arguments.
    ComputationError
        If the motion diverges; its `result` is the motion before.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> run = ld.simulate(model, duration=1, q0=[0.3, 0.0], tau={"elbow": "-2*q - 0.5*v"})
    >>> run.q[-1].round(3)
    array([-0.252, -0.05 ])
    >>> run = ld.simulate(model, duration=1, tau=lambda t, q, v: -20 * q - 3 * v, rate=500)
    """
    if not isinstance(scenario, Mapping | None):
        raise UsageError(f"scenario is a mapping of keys; found {type(scenario).__name__} (a file: run_scenario)")
    refuse_names("simulate", keys, dict.fromkeys((*signature(simulate).parameters, *SCENARIO)))
    given = dict(scenario or {})
    if "robot" in {**given, **keys}:
        raise UsageError("the scenario of simulate must not name a robot: the model is the first argument")
    if not isinstance(model, Model):
        model = load(model, **{key: x for key, x in {**given, **keys}.items() if key in ("base", "gravity", "loops")})
    elif {"base", "gravity", "loops"} & {*given, *keys}:
        raise UsageError("base, gravity and loops are those of the model: give them to load")
    named = {"duration": duration, "output_step": output_step, "integrator": None if method is None else {"method": method}}
    given |= {key: value for key, value in named.items() if value is not None} | keys
    if method is not None and "integrator" in keys:
        given["integrator"] = {"method": method, **keys["integrator"]}
    if "duration" not in given:
        raise UsageError("simulate needs a duration [s]")
    state = {"q": _by_joint(model, q0, "q0", "q"), "v": _by_joint(model, v0, "v0", "v")}
    if q0 is not None or v0 is not None:
        given["initial"] = _merged(given, "initial", {key: value for key, value in state.items() if value is not None})
    given, function = _with_torques(model, given, tau, rate)
    # a scenario names a file that exists; here there is none
    result = simulate_file({"robot": os.devnull, **given}, (), Silent(), controller=function, model=model)
    warn(result.notes)
    return result


def _by_joint(model, x, name: str, kind: str) -> dict | None:
    """Coordinates as a scenario writes them."""
    if x is None:
        return None
    x = as_array(x, name, (model.nq if kind == "q" else model.nv,))
    if x.ndim != 1:
        raise ShapeError(f"{name} is one state; found {x.shape}, expected {x.shape[-1:]} (many runs at once: ld.rollout)")
    places = {joint: getattr(model, f"{kind}_index")(joint) for joint in model.joint_names}
    values = {joint: x[place].tolist() for joint, place in places.items() if place.stop > place.start}
    return {joint: value[0] if len(value) == 1 else value for joint, value in values.items()}


def _with_torques(model, given: dict, tau, rate) -> tuple[dict, Controller | None]:
    """The scenario with constant torques and signals in it, or with a function that is called at samples."""
    if tau is None:
        return given, None
    held = callable(tau) or (not isinstance(tau, Mapping) and np.ndim(tau) == 2)
    if held and rate is None:
        raise UsageError("a function or rows of torques need a rate [1/s], at which they are called or follow each other: the "
                         "argument rate")
    if not held and rate is not None:
        raise UsageError("rate applies only to a function or to rows of torques")
    if held:
        given = given | {"sampling": _sampled(given, rate)}
    if callable(tau):
        return given, tau
    if held:
        if "control" in given or any(isinstance(rule, Mapping) and isinstance(rule.get("torque"), Mapping)
                                     and {"pd", "pid"} & {*rule["torque"]} for rule in _rules(given).values()):
            warn(["the laws in `joints` and `control` are sampled at the rate of the rows of tau, too"])
        rows = as_array(tau, "tau", (model.nv,))
        if not len(rows):
            raise ShapeError(f"tau has no rows; found {rows.shape}")
        return given, lambda t, q, v: rows[min(round(t * rate), len(rows) - 1)]
    if not isinstance(tau, Mapping):
        tau = _of_free_joints(model, _by_joint(model, tau, "tau", "v"), given)
    unknown = [name for name in tau if name not in model.joint_names]
    if unknown:
        raise NameLookupError(f"tau names no joint of the robot; found {unknown[0]!r}, expected {', '.join(model.joint_names)}")
    for name in tau:
        if (rule := _rule_of(name, given, model)) is not None:
            what = "is prescribed" if "prescribe" in rule else "has a torque"
            raise UsageError(f"joint {name} {what} in `joints`, and tau gives a torque, too: give one of them")
    return given | {"joints": _merged(given, "joints", {name: {"torque": value} for name, value in tau.items()})}, None


def _of_free_joints(model, tau: dict, given: dict) -> dict:
    """Torques without those of prescribed joints, which are ignored, and without zeros beside what `joints` gives."""
    def acts(name: str, value) -> bool:
        rule = _rule_of(name, given, model)
        return rule is None or ("prescribe" not in rule and np.any(value))
    return {name: value for name, value in tau.items() if acts(name, value)}


def _sampled(given: dict, rate) -> dict:
    sampling = given.get("sampling", {})
    if not isinstance(sampling, Mapping) or {"rate", "period"} & {*sampling}:
        raise UsageError("`sampling` gives a rate or a period, and so does the argument rate: leave it out of `sampling`")
    return {**sampling, "rate": rate}


def _rules(given: dict) -> Mapping:
    """What is said of joints; nothing, where it is no mapping, for the reader of scenarios to refuse."""
    rules = given.get("joints", {})
    return rules if isinstance(rules, Mapping) else {}


def _rule_of(name: str, given: dict, model) -> Mapping | None:
    """What `joints` says of a joint, by its name or a pattern."""
    rules = _rules(given)
    own = [rules[name]] if name in rules else [
        rule for pattern, rule in rules.items() if isinstance(pattern, str) and name in matching(pattern, model.joint_names)]
    return next((rule for rule in own if isinstance(rule, Mapping)), None)


def _merged(given: dict, key: str, more: dict):
    """What is given under a key, and more; what is no mapping stays, for the reader of scenarios to refuse."""
    before = given.get(key, {})
    return dict(before) | more if isinstance(before, Mapping) else before
