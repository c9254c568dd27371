"""WebAssembly of traces, run by wasmtime and compared with what liedyn computes."""
import json
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen.operations import OPERATIONS
from liedyn.codegen.targets.wasm import WasmModule, signed, unsigned
from liedyn.codegen.trace import Array, Trace, single_call
from liedyn.codegen.tracer import Operations
from liedyn.integrators.batch_integrator import curve_coefficients
from liedyn.interop.scenario_step import STEP_REASONS, scenario_step
from liedyn.interop.traced_functions import FUNCTIONS, trace_function
from liedyn.interop.wasm_files import simulation_data, step_module, write_wasm_export, write_wasm_step_export
from liedyn.simulation.preparation import prepare
from traced_cases import expected_of, function_options, inputs_of, robot_of
from wasm_instance import WasmInstance
from zoo import model_of

ROOT = Path(__file__).parents[3]
ARITY = {"fneg": 1, "fabs": 1, "sqrt": 1, "less": 4, "quadrant_sine": 3, "quadrant_cosine": 3}        # of other operations 2
RK4 = "integrator={method: rk4, step: 0.001}"
node = pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js on the path: `apt install nodejs` on Debian")


@pytest.mark.parametrize("n", [0, 1, 63, 64, 127, 128, 8191, 65_536, 2**31])
def test_integers_are_those_of_leb128(n):
    """By the definition: seven bits a byte, and the sign in bit 6 of the last."""
    def value(data, has_sign):
        total = sum((byte & 127) << 7 * k for k, byte in enumerate(data))
        return total - (1 << 7 * len(data)) if has_sign and data[-1] & 64 else total
    assert value(unsigned(n), False) == n and value(signed(n), True) == n and value(signed(-n), True) == -n
    assert all(byte & 128 for byte in unsigned(n)[:-1]) and not unsigned(n)[-1] & 128


@pytest.mark.parametrize("single", [False, True])
def test_each_operation_has_its_meaning(single):
    """Each operation of the table on numbers, among them 0, -0, infinity and NaN."""
    number, magic = (np.float32, 2.0**23) if single else (np.float64, 2.0**52)
    for name, operation in OPERATIONS.items():
        count = operation.arity or ARITY.get(name, 2)
        ops = Operations(single=single)
        x = ops.inputs("x", count)
        module = WasmModule({"f": single_call(Trace(ops, (Array("x", count, (None,) * count),
                                                          Array("y", 1, (ops.emit(name, *(each.k for each in x)),))), (), ()))})
        instance, rng = WasmInstance(module), np.random.default_rng(0)
        turns = 1.5 * magic + np.arange(-5.0, 6.0)
        rows = rng.uniform(0.1, 0.9, (11, count))
        if name.startswith("quadrant"):
            rows[:, 0] = turns
        elif name in ("fadd", "fmul", "fneg", "fabs", "less"):
            rows[:4, 0] = 0.0, -0.0, np.inf, np.nan
        for row in rows:
            instance["x"] = row
            assert instance.run("f") == 0
            with np.errstate(all="ignore"):
                expected = float(operation.meaning(*row.astype(number)))
            assert instance["y"][0] == pytest.approx(expected, rel=4 * float(np.finfo(number).eps), nan_ok=True), (name, row)
            assert np.signbit(instance["y"][0]) == np.signbit(expected) or np.isnan(expected)


SHORT = "mass_matrix", "inverse_dynamics", "link_pose"       # of a robot with every kind of joint
CASES = [*((name, "ball", False) for name in FUNCTIONS), *((name, "every kind, floating", False) for name in SHORT),
         *((name, "ball", True) for name in ("forward_dynamics", "regressor", "link_acceleration", "constraint_jacobian"))]


@pytest.mark.parametrize(("function", "name", "single"), CASES)
def test_functions_give_what_liedyn_gives(function, name, single, worst):
    model = robot_of(function, name)
    inputs, options = inputs_of(model, function), function_options(model, function)
    traced = trace_function(model, function, options, libm=False, single=single)
    instance = WasmInstance(WasmModule({"run": single_call(traced.trace)}))
    for array, x in inputs.items():
        instance[array] = x
    assert instance.run("run") == 0
    results = expected_of(model, function, inputs, options)
    for (result, shape), expected in zip(traced.shapes.items(), results, strict=True):
        assert np.shape(expected) == shape
        error = np.abs(instance[result] - np.ravel(expected)).max() / max(1.0, np.abs(expected).max())
        assert worst(f"WebAssembly, {'float' if single else 'double'}: functions", error, function) < (1e-5 if single else 1e-12)


@pytest.mark.parametrize("single", [False, True])
def test_bad_numbers_are_a_code(single):
    traced = trace_function(model_of("ball"), "inverse_dynamics", {}, libm=False, single=single)
    instance = WasmInstance(WasmModule({"run": single_call(traced.trace)}))
    instance["q"] = model_of("ball").neutral()
    assert instance.run("run") == 0
    instance["q"] = 2.0 * model_of("ball").neutral()
    assert instance.run("run") == 1
    instance["q"], instance["v"] = model_of("ball").neutral(), np.full(model_of("ball").nv, np.nan)
    assert instance.run("run") == 1


SCENARIOS = {"hybrid panda": ("panda_hybrid", ("external_forces.0.from=0.01", "external_forces.0.until=0.015")),
             "four-bar": ("four_bar", (RK4, "constraints.tolerance=1e-15")),
             "sampled controller": ("ur5_sampled", ("events=null",)),
             "adapted parameters": ("ur5_adaptive", (RK4, "events=null")),
             "arm with pd": ("double_pendulum_lift", ())}


def ran(folder: Path, script: str):
    """Run a script of Node.js next to the exported files and return what it prints as JSON."""
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "run.js").write_text(script)
    done = subprocess.run(["node", "run.js"], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.parametrize(("name", "dtype"), [*((name, "float64") for name in SCENARIOS), ("hybrid panda", "float32")])
def test_steps_equal_a_run_of_the_scenario(name, dtype, worst, tmp_path):
    """20 steps; those that a controller samples need the JavaScript."""
    scenario, overrides = SCENARIOS[name]
    step = scenario_step(prepare(ROOT / f"configs/{scenario}.yaml", overrides), single=dtype == "float32")
    h, until = step.regular_step, 20 * step.regular_step
    run = ld.run_scenario(ROOT / f"configs/{scenario}.yaml", (*overrides, f"duration={until!r}", f"output_step={until!r}"))
    results = []
    if step.sampler is None:
        instance, initial = WasmInstance(step_module(step)), simulation_data(step, step_module(step))["initial"]
        for array in ("q", "v", "values", "z") if len(step.initial_states) else ("q", "v", "values"):
            instance[array] = initial[array]
        breaks = {np.nextafter(np.float32(time), np.float32(0)) if dtype == "float32" else before: time
                  for time, before in step.breaks}
        for k in range(20):
            clock = np.array([[h, k * h, (k + 0.5) * h, (k + 1) * h]])
            clock[0, 3] = next((before for before, time in breaks.items() if abs(time - clock[0, 3]) < 1e-9), clock[0, 3])
            instance["clock"] = clock
            instance["curves"] = curve_coefficients(step.tables.signals, step.tables.curves, clock)
            assert instance.run("advance") == 0
        results.append((instance["q"], instance["v"]))
    if shutil.which("node"):
        write_wasm_step_export(ROOT / f"configs/{scenario}.yaml", tmp_path / "f.wasm", overrides=overrides, dtype=dtype)
        results.append(ran(tmp_path, f"""import {{ load }} from "./f.js";
            const s = await load(); s.run({until!r}); console.log(JSON.stringify([[...s.q], [...s.v]]))"""))
    for q, v in results:
        error = max(np.abs(q - run.q[-1]).max(), np.abs(v - run.v[-1]).max())
        assert worst(f"WebAssembly, {dtype}: 20 steps of a scenario", error, name) < (1e-12 if dtype == "float64" else 1e-5)


@node
def test_the_wrapper_checks_lengths_and_computes(tmp_path):
    model = ld.load(ROOT / "robots/double_pendulum.yaml")
    _, files = write_wasm_export(model, "forward_dynamics", tmp_path / "fd.wasm")
    assert [path.name for path in files] == ["fd.wasm", "fd.js", "fd.d.ts"]
    assert files[0].read_bytes()[:8] == b"\0asm" + struct.pack("<I", 1)
    a, names, message, other = ran(tmp_path, """import { load, names } from "./fd.js";
        const f = await load(), said = (x) => { try { f(...x); return ""; } catch (error) { return error.message; } };
        console.log(JSON.stringify([[...f([0.3, 0.1], [0, 1], [0, 0]).a], names.q, said([[0.3], [0, 1], [0, 0]]),
          said([[NaN, 0], [0, 1], [0, 0]])]))""")
    assert np.abs(a - ld.forward_dynamics(model, [0.3, 0.1], [0, 1], [0, 0])).max() < 1e-13 and names == list(model.q_names)
    assert message == "q needs 2 numbers, got 1" and "not finite" in other
    assert "export type Compute = (q: ArrayLike<number>, v: ArrayLike<number>, tau: ArrayLike<number>) => Results;" in (
        tmp_path / "fd.d.ts").read_text()


@node
def test_a_simulation_stops_at_an_event_and_leaves_the_state_at_a_code(tmp_path):
    """The pendulum falls through zero. A number that is not finite is no step."""
    scenario = {"robot": str(ROOT / "robots/double_pendulum.yaml"), "duration": 2, "output_step": 0.01,
                "integrator": {"method": "rk4", "step": 0.01}, "initial": {"q": {"shoulder": 0.5}},
                "events": {"down": {"when": "q(shoulder)", "do": "stop"}, "late": {"at": 1.5, "do": "stop"}}}
    write_wasm_step_export(scenario, tmp_path / "f.wasm")
    run = ld.run_scenario(scenario)
    t, q, ended, code, reason, same, again, first = ran(tmp_path, """import { load } from "./f.js";
        const s = await load(); s.run(2);
        const state = [s.t, [...s.q], s.ended];
        s.reset(); s.v[0] = NaN; const q = [...s.q], code = s.step(); s.run(1); const reason = s.ended;
        s.reset({ q: [0, 0] }); s.run(0.005); const later = s.t;
        s.reset({ q: [1e-3, 0], v: [-1, 0] }); s.run(0.5);                         // within the first step
        console.log(JSON.stringify([...state, code, reason, q.every((x, k) => x === s.data.initial.q[k]), later, s.t]))""")
    assert ended == "stopped by an event" and t == pytest.approx(run.t[-1], abs=1e-9)
    assert np.abs(np.array(q) - run.q[-1]).max() < 1e-9 and abs(q[0]) < 1e-9
    assert STEP_REASONS[code] == reason and "not finite" in reason and same and again == pytest.approx(0.005)
    assert first == pytest.approx(1e-3, rel=1e-2)
