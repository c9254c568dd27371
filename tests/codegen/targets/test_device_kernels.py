"""Kernels for GPUs by NVIDIA, assembled without one."""
import re

import numpy as np
import pytest

import liedyn as ld
from assembler import assembled
from liedyn.codegen.targets.device_kernels import ptx
from liedyn.codegen.targets.target import UnsupportedOperationError
from liedyn.codegen.trace import Array, Trace, make_trace
from liedyn.codegen.tracer import Operations
from liedyn.dynamics.batching.calls import intercepted_specialization

HOPPER = "sm_90"


@pytest.mark.parametrize(("robot", "single", "spills"), [("double_pendulum", False, 0), ("panda", False, 8), ("panda", True, 0)])
def test_assembly_of_forward_dynamics(robot, single, spills, tmp_path):
    model = ld.load(f"robots/{robot}.yaml")
    specialization, model = intercepted_specialization(ld.forward_dynamics, model, model.neutral(), *np.zeros((2, model.nv)),
                                                       passive=True)
    trace = make_trace(model, specialization, single=single)
    text = ptx(trace, "forward", {"q": model.nq, "v": model.nv, "tau": model.nv},
               {"a": range(model.nv)}, HOPPER)
    assert ".visible .entry forward(" in text
    assert len(re.findall(r"\.param \.\w+.* forward_param_\d+", text)) == 1 + 3 * 4 + 1
    assert len(re.findall(r"st\.global", text)) == model.nv
    assert ".local" not in text                            # arrays of a state are registers
    assert assembled(text, HOPPER, tmp_path).spilled <= spills


def test_functions_of_the_c_library_are_named():
    ops = Operations(True)
    x, = ops.inputs("x", 1)
    trace = Trace(ops, (Array("x", 1, (None,)), Array("y", 1, (ops.emit("tan", x.k),))), (), ())
    with pytest.raises(UnsupportedOperationError, match="PTX has no operation tan"):
        ptx(trace, "f", {"x": 1}, {"y": (0,)}, HOPPER)
