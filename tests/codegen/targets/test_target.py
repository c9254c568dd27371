"""Each target has each operation of the table, and traces evaluated with NumPy give what liedyn computes."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen.operations import LIBM, OPERATIONS
from liedyn.codegen.targets.c99 import CExpressions
from liedyn.codegen.targets.device_kernels import OpenClExpressions
from liedyn.codegen.targets.llvm_ir import Vector, _TraceWriter
from liedyn.codegen.targets.target import NUMPY, Expressions, UnsupportedOperationError
from liedyn.codegen.trace import make_trace
from liedyn.codegen.tracer import Operations
from liedyn.dynamics.batching.calls import intercepted_specialization
from zoo import model_of, state

TARGETS = [CExpressions(), CExpressions("f"), OpenClExpressions(), _TraceWriter(Vector(1), {}),
           _TraceWriter(Vector(16, True), {}), Expressions(NUMPY, {})]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: type(target).__name__)
def test_targets_have_each_operation(target):
    """Sine and cosine of targets with a library, and those of the others."""
    quadrants = {name for name in OPERATIONS if name.startswith("quadrant")}
    assert OPERATIONS.keys() - (quadrants if target.libm else set()) <= set(target.table) <= OPERATIONS.keys()
    assert {"sin", "cos"} <= set(LIBM)


def test_an_operation_that_a_target_lacks_is_named():
    ops = Operations()
    x, = ops.inputs("x", 1)
    k = ops.emit("gamma", x.k).k
    with pytest.raises(UnsupportedOperationError, match="CExpressions has no operation gamma"):
        list(CExpressions().walk(ops, [x.k, k]))


@pytest.mark.parametrize("libm", [False, True])
@pytest.mark.parametrize("name", ["universal", "free"])
def test_traces_of_states_in_arrays(name, libm, worst):
    """The meaning of the operations, for batches: inputs are arrays with one number per state."""
    model = model_of(name)
    q, v, _, tau = state(model, 1, (5,))
    specialization, _ = intercepted_specialization(ld.forward_dynamics, model, q[0], v[0], tau[0])
    trace = make_trace(model, specialization, libm)
    results = Expressions(NUMPY, {"q": q.T, "v": v.T, "tau": tau.T}).results(trace)
    assert [array.name for array in trace.input_arrays] == ["q", "v", "tau"] and set(results) == {"a"}
    expected = ld.forward_dynamics(model, q, v, tau)
    found = np.stack(results["a"], axis=-1)
    assert worst("traces by NumPy", np.abs(found - expected).max() / np.abs(expected).max(), name) < 1e-13
