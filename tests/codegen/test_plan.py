"""`ld.plan`: what it says is what calls do."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from assembler import assembled
from liedyn.codegen import specialize
from liedyn.codegen.specialize import is_supported
from liedyn.codegen.targets.device_kernels import ptx
from liedyn.interop.traced_functions import trace_function
from zoo import ROBOTS, model_of, state

LINES = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")


@LINES
@pytest.mark.parametrize("function, options", [
    ("forward_dynamics", {}), ("inverse_dynamics", {"passive": False}), ("bias_force", {}), ("mass_matrix", {}),
    ("hybrid_dynamics", {"prescribed": np.arange(9) % 2 == 0}), ("jacobian", {"link": 0}), ("integrate", {}),
    ("forward_dynamics_derivatives", {}), ("higher_order_inverse_dynamics", {"v_derivatives": np.zeros((3, 9))}),
])
def test_functions_go_by_line(function, options, monkeypatch):
    model = ld.build(ROBOTS["planar"])
    options = {name: model.link_names[-1] if name == "link" else x for name, x in options.items()}
    plan = ld.plan(model, function, **options)
    assert plan.way == "generated" and 0 < plan.operations <= plan.longest == specialize.MAX_OPERATIONS
    assert 0 < plan.cost < 20 * plan.operations                        # inputs cost nothing, a square root 17
    assert plan.function == function
    monkeypatch.setattr(specialize, "MAX_OPERATIONS", plan.operations - 1)
    short = ld.plan(model, function, **options)
    assert short.way == "generic" and short.operations == plan.operations and str(specialize.MAX_OPERATIONS) in short.reason


@LINES
def test_operations_are_those_of_the_line_that_a_call_makes(monkeypatch):
    model, sizes = ld.build(ROBOTS["planar"]), []
    build = specialize.build
    monkeypatch.setattr(specialize, "build", lambda trace, *how: sizes.append(trace.size) or build(trace, *how))
    monkeypatch.setattr(specialize.compile_cache, "load_or_build", lambda folder, name, make: make())
    q, v, _, tau = state(model, 1, (4,))
    ld.forward_dynamics(model, q, v, tau)
    assert sizes == [ld.plan(model, "forward_dynamics").operations]


def test_without_lines_it_says_so(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    plan = ld.plan(model_of("planar"), "forward_dynamics")
    assert plan.way == "generic" and plan.operations is None and "LIEDYN_CODE" in plan.reason


@pytest.mark.parametrize("function, error, words", [
    ("forward_dynamic", ld.LiedynError, "no function 'forward_dynamic'"), ("jacobian", ld.LiedynError, "needs link="),
    ("closed_form", ld.LiedynError, "calls no entry"),
])
def test_what_it_cannot_say_is_refused(function, error, words):
    with pytest.raises(error, match=words):
        ld.plan(model_of("planar"), function)


@pytest.mark.parametrize(("function", "options", "words"), [
    ("forward_dynamics", {"target": "fpga"}, "target must be one of 'cpu', 'c', .* got 'fpga'"),
    ("forward_dynamics", {"dtype": "int8"}, "dtype must be float64 or float32"),
    ("regressor", {"dtype": "float32"}, "regressor has no dtype"),
    ("forward_dynamics_directional", {"target": "c", "dq": np.zeros(9)}, "has no code for c"),
    ("constrained_forward_dynamics", {"target": "ptx"}, "on this processor in double precision only")])
def test_targets_without_code_are_errors(function, options, words):
    with pytest.raises(ld.UsageError, match=words):
        ld.plan(model_of("planar"), function, **options)


@LINES
@pytest.mark.parametrize("target", ["cpu", "c", "wasm", "opencl", "ptx"])
def test_size_and_time_of_targets(target):
    """They grow with the number of operations; single precision takes half of the memory, and at most the same time."""
    model = model_of("planar")
    double, single, more = (ld.plan(model, name, target=target, dtype=dtype) for name, dtype in (
        ("forward_dynamics", "float64"), ("forward_dynamics", "float32"), ("forward_dynamics_derivatives", "float64")))
    assert double.target == target and double.bytes == 2 * single.bytes == 8 * (model.nq + 3 * model.nv)
    assert more.code_size > double.code_size > 5 * double.operations and more.time > double.time >= 0.9 * single.time > 0
    assert (double.registers is not None) == (target in ("opencl", "ptx"))
    if double.registers:
        assert single.registers < double.registers <= more.registers <= 255


@LINES
@pytest.mark.parametrize("robot", ["double_pendulum", "panda"])
def test_registers_are_those_of_the_assembler(robot, tmp_path):
    """Within a third; it reorders operations."""
    model = ld.load(f"robots/{robot}.yaml")
    traced = trace_function(model, "inverse_dynamics", {}, libm=False, single=True)
    text = ptx(traced.trace, "f", traced.inputs, {"tau": range(model.nv)}, "sm_90")
    registers = assembled(text, "sm_90", tmp_path).registers
    assert ld.plan(model, "inverse_dynamics", target="ptx", dtype="float32").registers == pytest.approx(registers, rel=0.34)


@LINES
def test_constrained_motion_goes_by_two_parts():
    model = ld.load(Path(__file__).parents[2] / "robots" / "five_bar.yaml")
    found = ld.plan(model, "constrained_forward_dynamics")
    assert found.way == "generated" and 0 < found.operations < found.longest
    fewer = ld.plan(model, "constrained_hybrid_dynamics", prescribed=[True] + [False] * (model.nv - 1))
    assert 0 < fewer.operations < found.operations
    with pytest.raises(ld.LiedynError, match="needs prescribed="):
        ld.plan(model, "constrained_hybrid_dynamics")
    with pytest.raises(ld.LiedynError):
        ld.plan(model.spanning_tree(), "constrained_forward_dynamics")
