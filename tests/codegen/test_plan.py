"""`ld.plan`: what it says is what calls do."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen import specialize
from liedyn.codegen.specialize import is_supported
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
