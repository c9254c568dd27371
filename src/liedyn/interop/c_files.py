"""Dynamics and kinematics of a robot, and steps of a scenario, as C files: `liedyn export`."""
from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array, Frame
from liedyn.codegen.targets.c99 import RESERVED, CFunction, identifier
from liedyn.codegen.trace import Trace, make_trace
from liedyn.dynamics.batching.calls import intercepted_specialization
from liedyn.dynamics.constraints.couplings import follow_couplings, follow_couplings_unchecked, reduced_model
from liedyn.dynamics.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
from liedyn.dynamics.dynamics import (
    bias_force,
    forward_dynamics,
    gravity_force,
    inverse_dynamics,
    inverse_mass_matrix,
    mass_matrix,
)
from liedyn.dynamics.kinematics import jacobian, link_pose
from liedyn.dynamics.manifold import random_configuration
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ModelError, ScenarioError, UsageError
from liedyn.interop.c_step import CStep
from liedyn.interop.scenario_step import scenario_step
from liedyn.io.atomic_output import check_output, open_output, path_part, stem_of
from liedyn.io.yaml_values import Overrides, override_texts
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.simulation.preparation import prepare
from liedyn.simulation.run import SilentProgress, simulate_prepared

Units = dict[str, Array]                     # characteristic sizes of q, v, a, tau and of twists


class Export(NamedTuple):
    """A function that can be written.

    compute     the public function
    inputs      its arrays besides q
    sizes       returns characteristic sizes of each result
    zero        arrays of the kernel that are zero
    options     its other arguments
    """

    compute: Callable[..., Any]
    inputs: tuple[str, ...]
    sizes: Callable[[Units], tuple[Array, ...]]
    zero: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def accounts_for_constraints(self) -> bool:
        """Whether results depend on couplings, and loops are not supported. Otherwise they are those of the open tree."""
        return not self.zero and "link" not in self.options


def _sizes_of(quantity: str, *variables: str) -> Callable[[Units], tuple[Array, ...]]:
    """Return the function that gives sizes of a quantity, or of its derivatives with respect to variables."""
    if not variables:
        return lambda units: (units[quantity],)
    return lambda units: tuple(units[quantity][:, None] / units[x] for x in variables)


FUNCTIONS: dict[str, Export] = {
    "inverse_dynamics": Export(inverse_dynamics, ("v", "a"), _sizes_of("tau"), options=("passive",)),
    "forward_dynamics": Export(forward_dynamics, ("v", "tau"), _sizes_of("a"), options=("passive",)),
    "mass_matrix": Export(mass_matrix, (), _sizes_of("tau", "a")),
    "inverse_mass_matrix": Export(inverse_mass_matrix, (), _sizes_of("a", "tau")),
    "bias_force": Export(bias_force, ("v",), _sizes_of("tau"), zero=("a",)),
    "gravity_force": Export(gravity_force, (), _sizes_of("tau"), zero=("v", "a")),
    "link_pose": Export(link_pose, (), lambda units: (units["pose"],), options=("link",)),
    "jacobian": Export(jacobian, (), _sizes_of("twist", "v"), options=("link", "frame")),
    "inverse_dynamics_derivatives": Export(inverse_dynamics_derivatives, ("v", "a"), _sizes_of("tau", "q", "v", "a"),
                                           options=("passive",)),
    "forward_dynamics_derivatives": Export(forward_dynamics_derivatives, ("v", "tau"), _sizes_of("a", "q", "v", "tau"),
                                           options=("passive",)),
}


@explained
def write_export(model: Model, function: str, path: Path | None = None, *, link: str | None = None,     # noqa: PLR0913
                 frame: Frame | None = None, passive: bool | None = None, single: bool = False, with_test: bool = False,
                 force: bool = False) -> tuple[CFunction, list[Path]]:
    """Write a function of a robot as C code with a header and, optionally, a test program. The function has the file's name.

    Parameters
    ----------
    function : str
        One of `FUNCTIONS`.
    path : Path, optional
        With the ending .c; default: ROBOT_FUNCTION.c or ROBOT_LINK_FUNCTION.c in the current folder.
    link : str, optional
        For link_pose and jacobian.
    frame : "local", "local_world_aligned" or "world", optional
        For jacobian, as in `liedyn.jacobian`; default: "local".
    passive : bool, optional
        For dynamics: whether joint springs, damping and friction act; default: True.
    single : bool
        `float` in place of `double`.

    Raises
    ------
    UsageError
        If an option does not belong to the function, a file exists and `force` is false, or a file cannot be written.
    ModelError
        For the dynamics of a robot with loops, or for a robot without a moving joint.
    """
    export = FUNCTIONS[function]
    options = _function_options(function, {"link": link, "frame": frame, "passive": passive})
    if link is not None:
        model.link_index(link)
    if model.nc and export.accounts_for_constraints:
        reduced_model(model, function)
    path = _c_file(path, "_".join(name for name in (model.name, link, function) if name))
    neutral, *_ = follow_couplings_unchecked(model, model.neutral())
    specialization, traced = intercepted_specialization(export.compute, model, neutral,
                                                        *np.zeros((len(export.inputs), model.nv)), **options)
    trace = make_trace(traced, specialization._replace(zero=export.zero), libm=True)
    if trace is None:
        raise ModelError(f"{function} of the robot {model.name} cannot be written as C code"
                         f"{': it has no moving joint' if not model.nv else ''}")
    if function == "link_pose":
        trace = _pose_of_link(trace, model.link_index(options["link"]))
    c_function = CFunction(traced, function, trace, path.stem, options, single=single)
    texts = {path: c_function.source, path.with_suffix(".h"): c_function.header}
    if with_test:
        texts[path.with_name(f"{path.stem}_test.c")] = _test_program(model, export, options, c_function)
    return c_function, _write(texts, force=force)


def _write(texts: dict[Path, str], *, force: bool) -> list[Path]:
    for file in texts:
        check_output(file, force=force)
    for file, text in texts.items():
        with open_output(file, force=force) as stream:
            stream.write(text)
    return list(texts)


def _function_options(function: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a function, with defaults. Raises UsageError for a missing or superfluous one."""
    names = FUNCTIONS[function].options
    if superfluous := [name for name, value in values.items() if value is not None and name not in names]:
        raise UsageError(f"{function} has no option {superfluous[0]}")
    if "link" in names and values["link"] is None:
        raise UsageError(f"{function} needs the name of a link")
    defaults = {"frame": "local", "passive": True}
    return {name: defaults[name] if values[name] is None else values[name] for name in names}


def _c_file(path: Path | None, default: str) -> Path:
    if path is None:
        name = identifier(default)
        return Path(path_part(f"{name}_" if name in RESERVED else name) + ".c")
    if path.suffix != ".c" or not path.stem.isidentifier() or not path.stem.isascii():
        raise UsageError(f"{path} is not the name of a C file: expected a name of letters, digits and _, and the ending .c")
    if path.stem in RESERVED:
        raise UsageError(f"{path}: the function would have the name {path.stem}, which C uses: expected another name")
    return path


def _pose_of_link(trace: Trace, index: int) -> Trace:
    """Return the trace with the pose of one link as a matrix (4, 4), in place of the poses (n_links, 12) of all."""
    *inputs, T = trace.arrays
    R, p = T.new_values[12 * index:12 * index + 9], T.new_values[12 * index + 9:12 * index + 12]
    rows = [(*R[3 * k:3 * k + 3], p[k]) for k in range(3)]
    values = tuple(x for row in (*rows, (0.0, 0.0, 0.0, 1.0)) for x in row)
    return replace(trace, arrays=(*inputs, replace(T, size=16, new_values=values)))


def _test_program(model: Model, export: Export, options: dict[str, Any], function: CFunction) -> str:
    rng, units = np.random.default_rng(0), _units(model)
    sizes = np.reshape([units[name] for name in export.inputs], (-1, model.nv))
    rates = rng.standard_normal(sizes.shape) * sizes
    state = {"q": random_configuration(model, rng), **dict(zip(export.inputs, rates, strict=True))}
    state |= dict(zip("qva", follow_couplings(model, *(state[name] for name in "qva" if name in state)), strict=False))
    result = export.compute(model, *state.values(), **options)
    results = result if isinstance(result, tuple) else (result,)
    return function.test(state, *(dict(zip(function.outputs, arrays, strict=True)) for arrays in (results, export.sizes(units))))


def _units(model: Model) -> Units:
    """Return characteristic sizes of coordinates, their rates, forces, and of the entries of twists and poses."""
    scales = model_scales(model)
    reach = scales.unit_scales(model.v_units)
    pose = np.ones((4, 4))
    pose[:3, 3] = scales.length
    return {"q": reach, "v": reach / scales.time, "a": reach / scales.time**2, "tau": scales.force_scales(model.v_units),
            "twist": np.repeat([1.0, scales.length], 3) / scales.time, "pose": pose}


# steps ------------------------------------------------------------------------------------------------------------------

_TEST_STEPS = 1000         # maximum number of steps of the test program


@explained
def write_step_export(scenario: str | os.PathLike[str] | Mapping[str, Any], path: Path | None = None, *,
                      overrides: Overrides = (), with_test: bool = False, strict: bool = False,
                      force: bool = False) -> tuple[CStep, list[Path]]:
    """Write a whole step of a scenario as C code with a header and, optionally, a test program.

    Parameters
    ----------
    scenario : path or mapping
        As for `run_scenario`.
    path : Path, optional
        With the ending .c; default: NAME.c in the current folder. Its functions are NAME_reset, NAME_step, NAME_outputs, and
        NAME_sample of a sampled controller.

    Raises
    ------
    ScenarioError
        For a part of the scenario that the step cannot contain, such as an adaptive integrator.
    UsageError
        If a file exists and `force` is false, or a file cannot be written.
    """
    texts = override_texts(overrides, ScenarioError)
    step = scenario_step(prepare(scenario, texts, strict))
    path = _c_file(path, "scenario" if isinstance(scenario, Mapping) else stem_of(scenario))
    c_step = CStep(step, path.stem)
    files = {path: c_step.source, path.with_suffix(".h"): c_step.header}
    if with_test:
        files[path.with_name(f"{path.stem}_test.c")] = _step_test_program(scenario, texts, c_step)
    return c_step, _write(files, force=force)


def _step_test_program(scenario: str | os.PathLike[str] | Mapping[str, Any], overrides: tuple[str, ...], c_step: CStep) -> str:
    """Return the test program for the first steps of the scenario. Its expected state is that of a run."""
    step = c_step.step
    h = step.regular_step
    steps = min(_TEST_STEPS, math.floor(step.run.scenario.duration / h * (1.0 + 1e-9)))
    end = h * steps
    result = simulate_prepared(prepare(scenario, (*overrides, f"duration={end!r}", f"output_step={end!r}")), SilentProgress(),
                               trials=False)
    if result.t[-1] < end:                                     # an event has ended the run
        raise ScenarioError(f"the run ends at t = {result.t[-1]:g} s, before the {steps} steps of the test program")
    model = step.problem.model
    sizes = model_scales(model).unit_scales(tuple(unit or "rad" for unit in model.q_units))        # of quaternions: 1
    return c_step.test(steps, {"q": result.q[-1], "v": result.v[-1]}, {"q": sizes, "v": _units(model)["v"]})
