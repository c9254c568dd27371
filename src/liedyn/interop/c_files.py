"""Dynamics and kinematics of a robot, and steps of a scenario, as C files: `liedyn export`."""
from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.arrays import Array, Frame
from liedyn.codegen.targets.c99 import RESERVED, CFunction, identifier
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.manifold import random_configuration
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ScenarioError, UsageError, warn
from liedyn.interop.c_step import CStep
from liedyn.interop.scenario_step import scenario_step
from liedyn.interop.traced_functions import FunctionTrace, trace_function
from liedyn.io.atomic_output import check_output, open_output, path_part, stem_of
from liedyn.io.yaml_values import Overrides, override_texts
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.simulation.preparation import prepare
from liedyn.simulation.run import SilentProgress, simulate_prepared

Units = dict[str, Array]                     # characteristic sizes of q, v, a, tau and of twists


def _sizes_of(quantity: str, *variables: str) -> Callable[[Units], tuple[Array, ...]]:
    """Return the function that gives sizes of a quantity, or of its derivatives with respect to variables."""
    if not variables:
        return lambda units: (units[quantity],)
    return lambda units: tuple(units[quantity][:, None] / units[x] for x in variables)


# functions that are written, and characteristic sizes of their results
FUNCTIONS: dict[str, Callable[[Units], tuple[Array, ...]]] = {
    "inverse_dynamics": _sizes_of("tau"), "forward_dynamics": _sizes_of("a"),
    "mass_matrix": _sizes_of("tau", "a"), "inverse_mass_matrix": _sizes_of("a", "tau"),
    "bias_force": _sizes_of("tau"), "gravity_force": _sizes_of("tau"),
    "link_pose": _sizes_of("pose"), "jacobian": _sizes_of("twist", "v"),
    "inverse_dynamics_derivatives": _sizes_of("tau", "q", "v", "a"),
    "forward_dynamics_derivatives": _sizes_of("a", "q", "v", "tau"),
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
    traced = trace_function(model, function, {"link": link, "frame": frame, "passive": passive})
    path = code_file(path, "_".join(name for name in (model.name, link, function) if name))
    c_function = CFunction(traced.model, function, traced.trace, path.stem, traced.options, single=single)
    texts: dict[Path, str | bytes] = {path: c_function.source, path.with_suffix(".h"): c_function.header}
    if with_test:
        texts[path.with_name(f"{path.stem}_test.c")] = _test_program(model, traced, c_function)
    return c_function, write_all(texts, force=force)


def write_all(texts: Mapping[Path, str | bytes], *, force: bool) -> list[Path]:
    """Write all files, or none if one exists and `force` is false. Return their paths."""
    for file in texts:
        check_output(file, force=force)
    for file, text in texts.items():
        with open_output(file, force=force) as stream:
            if isinstance(text, bytes):
                stream.buffer.write(text)
            else:
                stream.write(text)
    return list(texts)


_FORMATS = {".c": "C", ".wasm": "WebAssembly", ".tex": "LaTeX", ".casadi": "CasADi"}


def code_file(path: Path | None, default: str, ending: str = ".c") -> Path:
    """Return the file of exported code, whose name without the ending is that of its functions. Raises UsageError."""
    if path is None:
        name = identifier(default)
        return Path(path_part(f"{name}_" if name in RESERVED else name) + ending)
    if path.suffix != ending or not path.stem.isidentifier() or not path.stem.isascii():
        raise UsageError(f"{path} is not the name of a {_FORMATS[ending]} file: expected a name of letters, digits and _, "
                         f"and the ending {ending}")
    if path.stem in RESERVED and ending == ".c":
        raise UsageError(f"{path}: the function would have the name {path.stem}, which C uses: expected another name")
    return path


def _test_program(model: Model, traced: FunctionTrace, function: CFunction) -> str:
    rng, units = np.random.default_rng(0), _units(model)
    compute, rate_names = traced.function.compute, traced.function.inputs[1:]
    sizes = np.reshape([units[name] for name in rate_names], (-1, model.nv))
    rates = rng.standard_normal(sizes.shape) * sizes
    state = {"q": random_configuration(model, rng), **dict(zip(rate_names, rates, strict=True))}
    state |= dict(zip("qva", follow_couplings(model, *(state[name] for name in "qva" if name in state)), strict=False))
    result = compute(model, *state.values(), **traced.options)
    results = result if isinstance(result, tuple) else (result,)
    sizes_of_results = FUNCTIONS[traced.name](units)
    return function.test(state, *(dict(zip(function.outputs, arrays, strict=True)) for arrays in (results, sizes_of_results)))


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
    path = code_file(path, "scenario" if isinstance(scenario, Mapping) else stem_of(scenario))
    c_step = CStep(step, path.stem)
    files: dict[Path, str | bytes] = {path: c_step.source, path.with_suffix(".h"): c_step.header}
    if with_test:
        files[path.with_name(f"{path.stem}_test.c")] = _step_test_program(scenario, texts, c_step)
    warn(c_step.warnings)
    return c_step, write_all(files, force=force)


def _step_test_program(scenario: str | os.PathLike[str] | Mapping[str, Any], overrides: tuple[str, ...], c_step: CStep) -> str:
    """Return the test program for the first steps of the scenario. Its expected state is that of a run."""
    step = c_step.step
    h = step.regular_step
    steps = min(_TEST_STEPS, math.floor(step.run.scenario.duration / h * (1.0 + 1e-9)))
    end, delay = h * steps, step.sampler.delay if step.sampler else 0.0
    if abs(delay / h - round(delay / h)) > 1e-9:
        raise ScenarioError("the test program needs a delay of whole steps", place=step.run.scenario.sampling.place
                            if step.run.scenario.sampling else None, found=delay, expected=f"a multiple of {h:g} s")
    result = simulate_prepared(prepare(scenario, (*overrides, f"duration={end!r}", f"output_step={end!r}")), SilentProgress(),
                               trials=False)
    if result.t[-1] < end:                                     # an event has ended the run
        raise ScenarioError(f"the run ends at t = {result.t[-1]:g} s, before the {steps} steps of the test program")
    model = step.problem.model
    sizes = model_scales(model).unit_scales(tuple(unit or "rad" for unit in model.q_units))        # of quaternions: 1
    return c_step.test(steps, {"q": result.q[-1], "v": result.v[-1]}, {"q": sizes, "v": _units(model)["v"]})
