"""Dynamics and kinematics of a robot, and steps of a scenario, as C files: `liedyn export`."""
from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.arrays import Array, Precision
from liedyn.codegen.targets.c99 import RESERVED, CFunction, identifier
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.manifold import random_configuration
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ScenarioError, UsageError, warn
from liedyn.interop.c_step import CControl, CStep
from liedyn.interop.function_comments import QUANTITIES, array_comments, function_comment
from liedyn.interop.scenario_step import scenario_control, scenario_step
from liedyn.interop.traced_functions import FunctionTrace, trace_function
from liedyn.io.atomic_output import check_output, open_output, path_part, stem_of
from liedyn.io.yaml_values import Overrides, override_texts
from liedyn.model.constraint_arrays import residual_weights
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.simulation.preparation import prepare
from liedyn.simulation.run import SilentProgress, simulate_prepared


@explained
def write_export(model: Model, function: str, path: Path | None = None, *, dtype: Precision = "float64", with_test: bool = False,
                 force: bool = False, **options: Any) -> tuple[CFunction, list[Path]]:
    """Write a function of a robot as C code with a header and, optionally, a test program. The function has the file's name.

    Parameters
    ----------
    function : str
        One of `traced_functions.FUNCTIONS`.
    path : Path, optional
        With the ending .c; default: ROBOT_FUNCTION.c or ROBOT_LINK_FUNCTION.c in the current folder.
    dtype : "float64" or "float32"
        `double` or `float`.
    options
        Of the function: link, frame, passive, prescribed.

    Raises
    ------
    UsageError
        If an option does not belong to the function, a file exists and `force` is false, or a file cannot be written.
    ModelError
        For the dynamics of a robot with loops, or for a robot without a moving joint.
    """
    single = is_single(dtype, "write_export")
    traced = trace_function(model, function, options, single=single)
    path = code_file(path, default_name(model, function, options), names=(*traced.inputs, *traced.shapes))
    c_function = CFunction(traced.trace, path.stem, [*function_comment(traced), *array_comments(traced)], single=single)
    texts: dict[Path, str | bytes] = {path: c_function.source, path.with_suffix(".h"): c_function.header}
    if with_test:
        texts[path.with_name(f"{path.stem}_test.c")] = _test_program(model, traced, c_function)
    return c_function, write_all(texts, force=force)


def default_name(model: Model, function: str, options: Mapping[str, Any]) -> str:
    """Return the name of the files of a function."""
    return "_".join(name for name in (model.name, options.get("link"), function) if name)


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


_FORMATS = {".c": "C", ".wasm": "WebAssembly", ".tex": "LaTeX", ".casadi": "CasADi", ".cl": "kernel", ".ptx": "kernel"}


def code_file(path: Path | None, default: str, ending: str = ".c", names: Collection[str] = ()) -> Path:
    """Return the file of exported code, whose name without the ending is that of its functions. Raises UsageError.

    names   of its arrays
    """
    names = {*names, *RESERVED}
    if path is None:
        name = identifier(default)
        return Path(path_part(f"{name}_" if name in names else name) + ending)
    if path.suffix != ending or not path.stem.isidentifier() or not path.stem.isascii():
        raise UsageError(f"{path} is not the name of a {_FORMATS[ending]} file: expected a name of letters, digits and _, "
                         f"and the ending {ending}")
    if path.stem in names and ending in (".c", ".cl"):
        raise UsageError(f"{path}: the function would have the name {path.stem}, which C or an array uses: expected another name")
    return path


def _test_program(model: Model, traced: FunctionTrace, function: CFunction) -> str:
    state = random_inputs(model, traced)
    expected = public_results(model, traced, state)
    return function.test(state, expected, {result.name: _result_sizes(model, result.quantity, expected[result.name])
                                           for result in traced.function.results})


def random_inputs(model: Model, traced: FunctionTrace) -> dict[str, Array]:
    """Return a state for a function: random rates and forces in characteristic units, which satisfy couplings."""
    rng, units = np.random.default_rng(0), _units(model)
    state = {name: random_configuration(model, rng) if name.startswith("q") else
             rng.standard_normal(model.nv) * units[QUANTITIES.get(name, name)] for name in traced.inputs}
    state |= zip("qva", follow_couplings(model, *(state[name] for name in "qva" if name in state)), strict=False)
    return state


def public_results(model: Model, traced: FunctionTrace, state: Mapping[str, Array]) -> dict[str, Array]:
    """Return what the public function returns, by the names of the results."""
    options = dict(traced.options)
    positional = [options.pop("prescribed")] if "prescribed" in options else []
    result = traced.function.compute(model, *state.values(), *positional, **options)
    return dict(zip(traced.shapes, result if isinstance(result, tuple) else (result,), strict=True))


def _result_sizes(model: Model, quantity: str, expected: Array) -> Array:
    """Return characteristic sizes of a quantity, which may be a derivative."""
    units = _units(model)
    of, *by = quantity.split("/")
    if "parameter" in by:                                  # a column of a regressor
        columns = np.abs(expected / units[of][:, None]).max(axis=0)
        return units[of][:, None] * np.where(columns > 0.0, columns, 1.0)
    if of == "y" or "u" in by:                             # of a mixed vector of accelerations and forces
        return np.broadcast_to(np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1e-300), expected.shape)
    return reduce(lambda sizes, x: sizes[..., None] / units[x], by, units[of])


def _units(model: Model) -> dict[str, Array]:
    """Return characteristic sizes of quantities of `traced_functions.Result`."""
    scales = model_scales(model)
    reach = scales.unit_scales(model.v_units)
    pose = np.ones((4, 4))
    pose[:3, 3] = scales.length
    twist, force = np.repeat([1.0, scales.length], 3), scales.force_scales(("m",))[0]
    closure = 1.0 / residual_weights(model.constraints)
    sizes = {"q": scales.unit_scales(tuple(unit or "rad" for unit in model.q_units)), "x": reach, "v": reach, "a": reach,
             "tau": scales.force_scales(model.v_units), "twist": twist, "acceleration": twist, "pose": pose,
             "length": np.full(3, scales.length), "energy": np.array(force * scales.length),
             "momentum": np.repeat([force * scales.length, force], 3) * scales.time, "constraint": closure,
             "constraint rate": closure, "constraint acceleration": closure}
    orders = {"v": 1, "a": 2, "twist": 1, "acceleration": 2, "constraint rate": 1, "constraint acceleration": 2}
    return {name: x / scales.time**orders.get(name, 0) for name, x in sizes.items()}


# steps ------------------------------------------------------------------------------------------------------------------

_TEST_STEPS = 1000         # maximum number of steps of the test program


@explained
def write_step_export(scenario: str | os.PathLike[str] | Mapping[str, Any], path: Path | None = None, *,
                      overrides: Overrides = (), dtype: Precision = "float64", control: bool = False,
                      with_test: bool = False, strict: bool = False, force: bool = False) -> tuple[CStep, list[Path]]:
    """Write a whole step of a scenario as C code with a header and, optionally, a test program.

    Parameters
    ----------
    scenario : path or mapping
        As for `run_scenario`.
    path : Path, optional
        With the ending .c; default: NAME.c in the current folder. Its functions are NAME_reset, NAME_step, NAME_outputs, and
        NAME_sample of a sampled controller.
    dtype : "float64" or "float32"
        `double` or `float`; times are `double`.
    control : bool
        Only the control laws, motors and signals: NAME_reset, and NAME_control or NAME_sample.

    Raises
    ------
    ScenarioError
        For a part of the scenario that the step cannot contain, such as an adaptive integrator.
    UsageError
        If a file exists and `force` is false, or a file cannot be written.
    """
    texts = override_texts(overrides, ScenarioError)
    if control and with_test:
        raise UsageError("test programs are written for functions and steps, and not for control laws alone")
    make, kind = (scenario_control, CControl) if control else (scenario_step, CStep)
    step = make(prepare(scenario, texts, strict), single=is_single(dtype, "write_step_export"))
    path = code_file(path, "scenario" if isinstance(scenario, Mapping) else stem_of(scenario))
    c_step = kind(step, path.stem)
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
    units = _units(step.problem.model)
    return c_step.test(steps, {"q": result.q[-1], "v": result.v[-1]}, {name: units[name] for name in "qv"})
