"""A page in which a scenario is simulated: `liedyn replay --live` and `liedyn view --live`."""
from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.model_parameters import parameter_names, parameter_value, with_parameters
from liedyn.errors import LiedynWarning, NameLookupError, UsageError, nearest, of_level
from liedyn.integrators.diagnosis import STABILITY_LIMIT, fastest_motion
from liedyn.interop.scenario_step import METHOD, ScenarioStep, scenario_step
from liedyn.interop.wasm_files import simulation_data, step_module
from liedyn.io.atomic_output import check_output, open_output, path_part, stem_of
from liedyn.io.scenarios.scenario import Constant, ExternalForce, Integrator, Scenario
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.io.yaml_values import Overrides
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model, build
from liedyn.report.replay.mechanism import mechanism_data
from liedyn.report.replay.page import DEFAULT, ReplayOptions, replay_page
from liedyn.report.replay.scene import drawn_meshes
from liedyn.report.replay.sources import ReplayRun, scenery_keys
from liedyn.robot_files import read_model
from liedyn.simulation.preparation import PreparedRun, prepare_run
from liedyn.simulation.trajectory_columns import motion_columns

STEP = 1e-3                  # s: of scenarios that name another integrator
_MARGIN = 0.5                # of the stability limit: states change by hand
_SHORTEST = 1e-4             # s: shorter steps of robots with contacts would not be in real time
_AFFINE = 1e-9               # relative to the change of a constant
_MOST_CONSTANTS = 6          # constants of signals with a slider
_MOST_MASSES = 2
_FRICTION = ", friction"     # end of the name of a value


@dataclass(frozen=True)
class Slider:
    """A slider of the page.

    terms   (array, place, factor): a number of the simulation changes by factor times the change of x
    """

    name: str
    x: float
    low: float
    high: float
    terms: tuple[tuple[str, int, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the page."""
        return {"name": self.name, "x": self.x, "low": self.low, "high": self.high, "terms": [list(term) for term in self.terms]}


def live_output(source: str) -> str:
    """Return the default output: NAME_live.html in the current folder."""
    return f"{path_part(stem_of(source))}_live.html"


def write_live(source: str | os.PathLike[str] | Mapping[str, Any], output: str | Path,                      # noqa: PLR0913
               look: ReplayOptions = DEFAULT, *, overrides: Overrides = (), sliders: Sequence[str] = (),
               meshes: bool | None = None, package_roots: Sequence[str | os.PathLike[str]] = (), strict: bool = False,
               force: bool = False) -> tuple[dict[str, Any], tuple[LiedynWarning, ...]]:
    """Write the page of a scenario or robot, in which it is simulated. Return a report and warnings.

    Parameters
    ----------
    source : scenario or robot file
    look : title, link that the camera follows, and speed; traces are not drawn
    sliders : names of parameters (`ld.parameter_names`) or of values of the step, or NAME=LOW:HIGH, in addition to those for
        gravity, masses, gains, friction of contacts and constants

    Raises
    ------
    ScenarioError
        For a part of the scenario that the step cannot contain.
    NameLookupError
        For an unknown slider or link.
    UsageError
        For a range that is none, a parameter on which the numbers of the robot do not depend linearly, and a file that exists.
    """
    check_output(output, force=force)
    scenario = scenario_of(source, overrides)
    model = read_model(scenario.robot, **scenario.robot_options, strict=strict)
    look = replace(look, title=look.title or stem_of(scenario.source or scenario.robot))
    look.check(model)
    live = _LiveScenario(scenario, model, sliders)
    run = live.run
    page_model = run.model
    zeros = np.zeros((1, page_model.nv))
    columns = motion_columns(page_model, q=np.zeros((1, page_model.nq)), v=zeros, a=zeros, tau=zeros)
    mechanism = mechanism_data(page_model, run.problem.q) | {"messages": []}
    displayed = ReplayRun(look.title, page_model, np.zeros(1), run.problem.q[None], {column: x for column, _, x in columns},
                      {column: unit for column, unit, _ in columns}, scenario=scenery_keys(to_plain(scenario)),
                      mechanism=mechanism, live=live.data({column: k for k, (column, _, _) in enumerate(columns)}))
    visuals, of_meshes = drawn_meshes([page_model], package_roots, meshes)
    text = replay_page([displayed], look, visuals)
    with open_output(output, force=force) as file:
        file.write(text)
    report = {"file": os.fspath(output), "robot": model.name, "bytes": len(text.encode()), "step": live.step.regular_step,
              "sliders": [slider.name for slider in live.sliders]}
    return report, (*of_level("warning", live.step.warnings), *live.messages, *of_meshes)


class _LiveScenario:
    """A scenario with forces for the mouse, an integrator with fixed steps, and sliders."""

    def __init__(self, scenario: Scenario, model: Model, sliders: Sequence[str]):
        self.model, self.links = model, _links_of_bodies(model)
        drags = tuple(ExternalForce(link, "local", (Constant(1.0),) * 6) for link in self.links)
        self.scenario, self.messages = replace(scenario, forces=(*scenario.forces, *drags)), tuple[LiedynWarning, ...]()
        chosen = [text.partition("=") for text in sliders]
        named = {name: _range(bounds, text) for (name, _, bounds), text in zip(chosen, sliders, strict=True)}
        robot_parameters = set(parameter_names(model))
        for name in [name for name in _default_parameters(model) if name not in named]:
            named[name] = None
        # code omits damping, friction and springs of robots without any
        zero = {name: max(bounds[1] if bounds else 1.0, 1e-3) for name, bounds in named.items()
                if name in robot_parameters and not parameter_value(model, name)}
        self.traced_model = build(with_parameters(model, zero)) if zero else model
        self.run = self._with_fixed_steps()
        self.constants = self._constants({})
        of_robot = [self._robot_slider(name, bounds) for name, bounds in named.items() if name in robot_parameters]
        self.varying = tuple(sorted({place for slider in of_robot for array, place, _ in slider.terms if array == "varying"}))
        self.step: ScenarioStep = scenario_step(self.run, self.varying, has_modes=True)
        arrays = [("values", self.step.value_names, self.step.tables)]
        if self.step.sampler is not None:
            arrays.append(("law_values", self.step.law_value_names, self.step.sampler.tables))
        self.numbers = [(array, k, float(x)) for array, _, tables in arrays for k, x in enumerate(tables.scenario_values)]
        self.names = [name for _, names, _ in arrays for name in names]
        place = {index: k for k, index in enumerate(self.varying)}
        of_robot = [replace(slider, terms=tuple((array, place[k] if array == "varying" else k, factor)
                                                for array, k, factor in slider.terms)) for slider in of_robot]
        of_values = [self._value_slider(name, bounds) for name, bounds in named.items() if name not in robot_parameters]
        self.sliders = [*of_robot, *of_values, *(slider for slider in self._default_values()
                                                 if slider.name not in named)]

    def _with_fixed_steps(self) -> PreparedRun:
        integrator = self.scenario.integrator
        if integrator.method != METHOD or not integrator.named:
            self.scenario = replace(self.scenario, integrator=Integrator(METHOD, STEP))
        run = prepare_run(self.scenario, self.traced_model)
        if integrator.method == METHOD and integrator.named:
            return run
        problem = run.problem
        fastest = fastest_motion(problem, 0.0, problem.q, problem.v)
        limit = _MARGIN * STABILITY_LIMIT / max(fastest.rate, 1e-9)
        if limit < STEP:
            self.scenario = replace(self.scenario, integrator=Integrator(METHOD, max(_rounded_down(limit), _SHORTEST)))
            run = prepare_run(self.scenario, self.traced_model)
        step = self.scenario.integrator.step
        self.messages = (LiedynWarning("live-steps", f"the page uses {METHOD} with steps of {step:g} s"),)
        if limit < step:
            self.messages += (LiedynWarning("stiff-step", f"{fastest.description}, and the page would need steps of {limit:.1g} "
                                            "s: contacts at rest creep and vibrate a little"),)
        return run

    # sliders ------------------------------------------------------------------------------------------------------------
    def _robot_slider(self, name: str, bounds: tuple[float, float] | None) -> Slider:
        """Return the slider of a parameter of the robot. Its terms have indices in the constants of the robot."""
        x = parameter_value(self.model, name)
        size = abs(x) or 1.0
        low, high = bounds or ((0.2 * x, 3.0 * x) if name.startswith("mass.") else (min(0.0, 2.0 * x), max(0.0, 2.0 * x)) if x
                               else (0.0, size))
        low, high = min(low, x), max(high, x)
        first, middle, last = (self._constants({name: value}) for value in (low, 0.5 * (low + high), high))
        change, scale = (last - first) / (high - low), np.abs(first) + np.abs(last)
        errors = [middle - 0.5 * (first + last), self.constants - first - change * (x - low)]
        if (np.abs(errors) > _AFFINE * scale).any():
            raise UsageError(f"{name} cannot have a slider: numbers of the robot do not depend on it linearly")
        return Slider(name, x, low, high, tuple(("varying", int(k), float(change[k])) for k in np.flatnonzero(change)))

    def _constants(self, values: Mapping[str, float]) -> Array:
        """Return the constants of the robot with values of parameters. The last are minimum pivots, which remain."""
        model = build(with_parameters(self.model, values)) if values else self.model
        changed = prepare_run(self.scenario, model).problem.model.constants
        pivots = len(changed) - self.model.nv
        return np.concatenate([changed[:pivots], self.run.problem.model.constants[pivots:]])

    def _value_slider(self, name: str, bounds: tuple[float, float] | None) -> Slider:
        if name not in self.names:
            known = dict.fromkeys((*self.names, *parameter_names(self.model)))
            hint = nearest(name, known, written=repr) or "ld.parameter_names lists those of the robot"
            raise NameLookupError(f"no parameter or value {name!r}; {hint}")
        array, k, x = self.numbers[self.names.index(name)]
        low, high = bounds or (x - max(abs(x), 1.0), x + max(abs(x), 1.0))
        return Slider(name, x, min(low, x), max(high, x), ((array, k, 1.0),))

    def _default_values(self) -> Iterator[Slider]:
        """Yield sliders for all gains, friction of contacts, and constants of signals."""
        values, names = self.numbers, self.names
        for gain, title in (("kp", "stiffness of pd laws ×"), ("kd", "damping of pd laws ×")):
            terms = tuple(number for number, name in zip(values, names, strict=True) if name.startswith(f"{gain} of "))
            if terms:
                yield Slider(title, 1.0, 0.0, 3.0, terms)
        friction = [k for k, name in enumerate(names) if name.endswith(_FRICTION)]
        if len({values[k][2] for k in friction}) == 1:
            x = values[friction[0]][2]
            yield Slider("friction of contacts", x, 0.0, max(1.5, 2.0 * x), tuple((*values[k][:2], 1.0) for k in friction))
        drags, count = set(self._drag_places().values()), 0
        for k, name in enumerate(names):
            is_constant = name.startswith(("target of ", "torque of ", "thrust of ", "position of ", "velocity of "))
            if is_constant and k not in drags and count < _MOST_CONSTANTS:
                count += 1
                yield self._value_slider(name, None)

    # modes --------------------------------------------------------------------------------------------------------------
    def _modes(self) -> Iterator[dict[str, Any]]:
        """Yield the modes of each coordinate, or of a ball or free joint: places of their numbers, or why they are fixed."""
        model, step = self.model, self.step
        switchable = step.tables.switchable
        place, levels = {int(k): j for j, k in enumerate(switchable.v)} if switchable else {}, step.problem.schedule.level
        for joint in model.joints:
            indices = range(joint.v.start, joint.v.stop)
            for part in [[k] for k in indices] if joint.kind == ONE_DOF else [[*indices]]:
                k, is_scalar = part[0], joint.kind == ONE_DOF
                yield {"name": model.v_names[k] if is_scalar else joint.name, "unit": model.v_units[k] if is_scalar else "",
                       "q": joint.q.start + k - joint.v.start if is_scalar else -1, "v": part,
                       "places": [place[j] for j in part if j in place], "of_scenario": bool(levels[k] != TORQUE),
                       "limits": [float(x) if np.isfinite(x) else None for x in (model.lower[k], model.upper[k])],
                       "reason": next((step.fixed[j] for j in part if j in step.fixed), "")}

    # data ---------------------------------------------------------------------------------------------------------------
    def _drag_places(self) -> dict[str, int]:
        """Return the index of the first of six numbers of the wrench of each link that the mouse can pull."""
        end = int((self.step.tables.schedule.force_actuator < 0).sum()) + 1      # the last of these, before thrusts
        first = end - len(self.links)
        return {link: self.names.index(f"external force {k}, mx") for k, link in enumerate(self.links, first)}

    def data(self, columns: Mapping[str, int]) -> dict[str, Any]:
        """Return plain values for the page. columns: index of each curve in [q, v, a, tau]."""
        module, places = step_module(self.step), self._drag_places()
        simulation = simulation_data(self.step, module)
        simulation["initial"]["varying"] = self.constants[list(self.varying)].tolist()
        for place in places.values():
            simulation["initial"]["values"][place:place + 6] = [0.0] * 6
        body_of = dict(zip(self.model.link_names, self.model.link_body, strict=True))
        first = {body_of[link]: link for link in self.links}
        of_links = {name: first[body] for name, body in body_of.items() if body in first}
        mass = sum(link.mass for link in self.model.description.links)
        return {"module": base64.b64encode(module.content).decode(), "simulation": simulation, "columns": dict(columns),
                "mass": float(mass), "drags": {name: [link, places[link]] for name, link in of_links.items()},
                "sliders": [slider.to_dict() for slider in self.sliders], "modes": list(self._modes())}


def _rounded_down(x: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above x."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(max(k * power for k in (1.0, 2.0, 5.0) if k * power <= x * (1.0 + 1e-12)))


def _range(text: str, option: str) -> tuple[float, float] | None:
    if not text:
        return None
    low, _, high = text.partition(":")
    try:
        bounds = float(low), float(high)
    except ValueError:
        bounds = 0.0, 0.0
    if not bounds[0] < bounds[1]:
        raise UsageError(f"slider {option}: expected NAME or NAME=LOW:HIGH with LOW < HIGH")
    return bounds


def _default_parameters(model: Model) -> list[str]:
    """Return gravity, and the masses of the heaviest links that move and of the last one."""
    links = {link.name: link.mass for link in model.description.links if model.link_body[model.link_index(link.name)] > 0}
    heavy = sorted((name for name, mass in links.items() if mass > 0.0), key=lambda name: -links[name])[:_MOST_MASSES - 1]
    last = [name for name, mass in links.items() if mass > 0.0][-1:]
    gravity = [f"gravity.{axis}" for axis, g in zip("xyz", model.gravity, strict=True) if g]
    return [*gravity, *(f"mass.{name}" for name in dict.fromkeys((*heavy, *last)))]


def _links_of_bodies(model: Model) -> list[str]:
    """Return the first link of each body that moves."""
    links: dict[int, str] = {}
    for name, body in zip(model.link_names, model.link_body, strict=True):
        if body > 0:
            links.setdefault(int(body), name)
    return list(links.values())
