"""Functions of a robot, and steps of a scenario, as WebAssembly modules with typed wrappers in JavaScript: `liedyn export`."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from liedyn import __version__
from liedyn.arrays import Precision
from liedyn.codegen.scenario_inputs import ScenarioTables
from liedyn.codegen.targets.wasm import WasmModule
from liedyn.codegen.trace import GeneratedProgram, single_call
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.errors import LiedynWarning, ScenarioError, warn
from liedyn.integrators.run_state import MIN_STEP_SPACINGS
from liedyn.interop.c_files import code_file, default_name, write_all
from liedyn.interop.function_comments import QUANTITIES, coordinate_names
from liedyn.interop.scenario_step import STEP_REASONS, ScenarioStep, piece_tables, scenario_step
from liedyn.interop.traced_functions import FunctionTrace, trace_function
from liedyn.io.atomic_output import stem_of
from liedyn.io.yaml_values import Overrides, override_texts
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS
from liedyn.kernels.simulation.right_hand_side import AT_EVENT
from liedyn.kernels.simulation.signals import ORDER
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.simulation.preparation import prepare

# the loader of both wrappers: of a URL or path by fetch, or by node from a file
_LOADER = """
async function bytesOf(source) {
  if (!(source instanceof URL || typeof source === "string")) return source;
  const url = new URL(source, import.meta.url);
  if (url.protocol === "file:") return (await import("node:fs/promises")).readFile(url);
  return (await fetch(url)).arrayBuffer();
}
"""


def simulation_script() -> str:
    """Return the class `Simulation` in JavaScript."""
    return (files("liedyn.interop") / "simulation.js").read_text(encoding="utf-8")


@dataclass(frozen=True, eq=False)
class WasmExport:
    """A module and its wrapper.

    name      of the files
    module    its content
    script    JavaScript
    types     declarations for TypeScript
    size      number of operations
    warnings  of the scenario
    """

    name: str
    module: bytes
    script: str
    types: str
    size: int
    warnings: tuple[LiedynWarning, ...] = ()

    def write(self, path: Path, *, force: bool) -> list[Path]:
        """Write NAME.wasm, NAME.js and NAME.d.ts next to each other. Return their paths."""
        return write_all({path: self.module, path.with_suffix(".js"): self.script, path.with_suffix(".d.ts"): self.types},
                         force=force)


# functions of robots ----------------------------------------------------------------------------------------------------

@explained
def write_wasm_export(model: Model, function: str, path: Path | None = None, *, dtype: Precision = "float64",
                      force: bool = False, **options: Any) -> tuple[WasmExport, list[Path]]:
    """Write a function of a robot as a WebAssembly module with a wrapper in JavaScript and its types.

    Arguments and errors are those of `c_files.write_export`; `path` has the ending .wasm.
    """
    traced = trace_function(model, function, options, libm=False, single=is_single(dtype, "write_wasm_export"))
    path = code_file(path, default_name(model, function, options), ".wasm")
    export = _function_export(traced, path.stem)
    return export, export.write(path, force=force)


def _function_export(traced: FunctionTrace, name: str) -> WasmExport:
    model, trace = traced.model, traced.trace
    module = WasmModule({"run": single_call(trace)})
    inputs, results = list(traced.inputs), list(traced.shapes)
    quantities = {x: QUANTITIES.get(x, x) for x in inputs} | {
        x.name: x.quantity for x in traced.function.results if x.axes in ("q", "v")}
    names = {array: list(coordinate_names(model, quantity)) for array, quantity in quantities.items()}
    head = (f"// {traced.name.replace('_', ' ')} of the robot {_line(model.name)}: {trace.size} operations. "
            f"Written by liedyn {__version__}.\n")
    places = {array: [module.places[array], size] for array, size in module.sizes.items()}
    arguments, array_class = ", ".join(inputs), _number_array(module)
    script = f"""{head}
export const names = {_json(names)};
const PLACES = {_json(places)};
{_LOADER}
export async function load(source = new URL("./{name}.wasm", import.meta.url)) {{
  const {{ instance: {{ exports }} }} = await WebAssembly.instantiate(await bytesOf(source), {{ math: Math }});
  const at = Object.fromEntries(Object.entries(PLACES).map(([name, [place, size]]) => (
    [name, new {array_class}(exports.memory.buffer, place, size)])));
  return ({arguments}) => {{
    for (const [name, x] of Object.entries({{ {arguments} }})) {{
      if (x.length !== at[name].length) throw new RangeError(`${{name}} needs ${{at[name].length}} numbers, got ${{x.length}}`);
      at[name].set(x);
    }}
    if (exports.run()) throw new RangeError("the result is not finite, or an argument is invalid");
    return {{ {", ".join(f"{name}: at.{name}.slice()" for name in results)} }};
  }};
}}
"""
    types = f"""{head}
/** Names of the numbers of each array. */
export const names: Readonly<Record<{" | ".join(map(_json, names))}, readonly string[]>>;
/** Results, matrices by rows. */
export interface Results {{ {" ".join(f"{result}: {array_class};" for result in results)} }}
export type Compute = ({", ".join(f"{array}: ArrayLike<number>" for array in inputs)}) => Results;
/** Compiles the module: {name}.wasm next to this file, another URL, or its bytes. */
export function load(source?: URL | string | BufferSource): Promise<Compute>;
"""
    return WasmExport(name, module.content, script, types, trace.size)


def _number_array(module: WasmModule) -> str:
    return f"Float{8 * module.number_type.size}Array"


def _json(x: Any) -> str:
    return json.dumps(x, ensure_ascii=True)


def _line(text: str) -> str:
    return _json(text)[1:-1]


# steps of scenarios -----------------------------------------------------------------------------------------------------

@explained
def write_wasm_step_export(scenario: str | os.PathLike[str] | Mapping[str, Any], path: Path | None = None, *,
                           overrides: Overrides = (), dtype: Precision = "float64", strict: bool = False,
                           force: bool = False) -> tuple[WasmExport, list[Path]]:
    """Write the steps of a scenario as a WebAssembly module with a class `Simulation` in JavaScript and its types.

    Arguments and errors are those of `c_files.write_step_export`; `path` has the ending .wasm.
    """
    step = scenario_step(prepare(scenario, override_texts(overrides, ScenarioError), strict),
                         single=is_single(dtype, "write_wasm_step_export"))
    path = code_file(path, "scenario" if isinstance(scenario, Mapping) else stem_of(scenario), ".wasm")
    module, model = step_module(step), step.problem.model
    names = {"q": list(model.q_names), "v": list(model.v_names), "values": step.value_names}
    head = (f"// A simulation of the robot {_line(model.name)}: {step.step.size} operations a step. "
            f"Written by liedyn {__version__}.\n")
    script = f"""{head}
export const names = {_json(names)};
const DATA = {_json(simulation_data(step, module))};
{_LOADER}
{simulation_script()}
export const load = async (source = new URL("./{path.stem}.wasm", import.meta.url)) => (
  Simulation.load(await bytesOf(source), DATA));
export {{ Simulation }};
"""
    types = head + _STEP_TYPES.replace("NAME", path.stem).replace("Float64Array", _number_array(module))
    export = WasmExport(path.stem, module.content, script, types, step.step.size, step.warnings)
    warn(step.warnings)
    return export, export.write(path, force=force)


_STEP_TYPES = """
/** Names of the numbers of each array. */
export const names: Readonly<Record<"q" | "v" | "values", readonly string[]>>;
export class Simulation {
  /** State. It may be changed between steps; then set `work` to zero, but for the supplied work. */
  readonly q: Float64Array;
  readonly v: Float64Array;
  /** Supplied work, then data of events; states of laws, such as integrals of pid. */
  readonly work: Float64Array;
  readonly z: Float64Array;
  /** Numbers of the scenario, such as gains; they may be changed. */
  readonly values: Float64Array;
  /** Accelerations, generalized forces and external wrenches of the last call of `outputs`. */
  readonly a: Float64Array;
  readonly tau: Float64Array;
  readonly wrench: Float64Array;
  /** Torques of the last sample of a controller, those that act in steps, its integrals, and the numbers of its laws. */
  readonly torque: Float64Array;
  acting: Float64Array;
  readonly integral: Float64Array;
  readonly law_values: Float64Array;
  /** Time [s], and why the simulation has ended; "" if it has not. */
  t: number;
  ended: string;
  /** Sets the initial state and, if they are given, other numbers by the name of their array. */
  reset(numbers?: Record<string, ArrayLike<number>>): void;
  /** One step of length h [s] that passes no sample time. Returns 0; otherwise the state is as before. */
  step(h?: number): number;
  /** Torques of the sampled controller at the present state. Returns 0, or 1 if they are not finite. */
  sample(): number;
  /** Steps of the scenario to a time [s] or to an event that ends the run. Returns the time. */
  run(until: number, each?: (simulation: Simulation, h: number) => void): number;
  /** Writes `a`, `tau` and `wrench`. Returns 0, or a code. */
  outputs(): number;
}
/** Compiles the module: NAME.wasm next to this file, another URL, or its bytes. */
export function load(source?: URL | string | BufferSource): Promise<Simulation>;
"""


def step_module(step: ScenarioStep) -> WasmModule:
    """Return the module of a step: functions advance, outputs, and sample of a sampled controller."""
    programs = {"advance": step.step, "outputs": step.outputs}
    if step.sampler is not None:
        trace = step.sampler.trace
        renamed = {"values": "law_values"}
        arrays = tuple(x if x.name not in renamed else type(x)(renamed[x.name], x.size, x.new_values) for x in trace.arrays)
        programs["sample"] = GeneratedProgram(arrays, ((trace, renamed),))
    return WasmModule(programs)


def simulation_data(step: ScenarioStep, module: WasmModule) -> dict[str, Any]:
    """Return what `simulation.js` needs besides the module, as plain values."""
    sampler, breaks = step.sampler, step.breaks
    near = breaks[:, 0] - MIN_STEP_SPACINGS * np.spacing(breaks[:, 0])
    work = [None if np.isnan(x) else float(x) for x in step.initial_work]
    problem = step.problem
    initial = {"q": problem.q.tolist(), "v": problem.v.tolist(), "work": work,
               "z": step.initial_states.tolist(), "values": step.tables.scenario_values.tolist(),
               "varying": problem.model.constants[list(step.varying)].tolist()}
    if step.tables.switchable:
        initial["modes"] = step.initial_modes.reshape(-1).tolist()
    if sampler is not None:
        initial["law_values"] = sampler.tables.scenario_values.tolist()
    places = {name: [module.places[name], size] for name, size in module.sizes.items()}
    return {"step": step.regular_step, "numbers": _number_array(module), "places": places,
            "initial": initial, "breaks": np.column_stack([breaks, near]).tolist(), "pieces": _pieces(step.tables),
            "ends": list(step.end_times), "event": AT_EVENT, "reasons": STEP_REASONS,
            "sampler": sampler and {"interval": sampler.interval, "delay": sampler.delay, "pieces": _pieces(sampler.tables),
                                    "torques": [[int(place), int(k)] for place, k in zip(sampler.torques, sampler.inputs,
                                                                                         strict=True)]}}


def _pieces(tables: ScenarioTables) -> dict[str, Any]:
    first, breaks, coefficients = piece_tables(tables)
    return {"first": first.tolist(), "breaks": breaks.tolist(), "coefficients": coefficients.reshape(-1).tolist(), "order": ORDER,
            "count": CURVE_COEFFICIENTS}
