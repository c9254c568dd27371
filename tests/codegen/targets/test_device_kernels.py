"""Kernels for GPUs by NVIDIA, assembled without one."""
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen.targets.device_kernels import DeviceResult, ptx
from liedyn.codegen.targets.target import UnsupportedOperationError
from liedyn.codegen.trace import Array, Trace, make_trace
from liedyn.codegen.tracer import Operations
from liedyn.dynamics.batching.calls import intercepted_specialization

HOPPER = "sm_90"


def ptxas():
    """Return the assembler: of a CUDA toolkit, or of the package nvidia-cuda-nvcc."""
    package = find_spec("nvidia") and next((path for folder in find_spec("nvidia").submodule_search_locations
                                            for path in Path(folder).glob("*/bin/ptxas")), None)
    program = shutil.which("ptxas") or package
    return program or pytest.skip("needs ptxas, such as that of the package nvidia-cuda-nvcc")


@pytest.mark.parametrize(("robot", "single", "spills"), [("double_pendulum", False, 0), ("panda", False, 8), ("panda", True, 0)])
def test_assembly_of_forward_dynamics(robot, single, spills, tmp_path):
    model = ld.load(f"robots/{robot}.yaml")
    specialization, model = intercepted_specialization(ld.forward_dynamics, model, model.neutral(), *np.zeros((2, model.nv)),
                                                       passive=True)
    trace = make_trace(model, specialization, single=single)
    text = ptx(trace, "forward", {"q": model.nq, "v": model.nv, "tau": model.nv},
               {"a": DeviceResult("a", 0, tuple(range(model.nv)))}, HOPPER)
    assert ".visible .entry forward(" in text
    assert len(re.findall(r"\.param \.\w+.* forward_param_\d+", text)) == 1 + 3 * 4 + 1
    assert len(re.findall(r"st\.global", text)) == model.nv
    assert ".local" not in text                            # arrays of a state are registers
    (tmp_path / "kernel.ptx").write_text(text)
    run = subprocess.run([ptxas(), "-v", "--gpu-name", HOPPER, "kernel.ptx", "-o", "kernel.cubin"], cwd=tmp_path, check=False,
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(re.search(r"(\d+) bytes spill stores", run.stderr)[1]) <= spills


def test_functions_of_the_c_library_are_named():
    ops = Operations(True)
    x, = ops.inputs("x", 1)
    trace = Trace(ops, (Array("x", 1, (None,)), Array("y", 1, (ops.emit("tan", x.k),))), (), ())
    with pytest.raises(UnsupportedOperationError, match="PTX has no operation tan"):
        ptx(trace, "f", {"x": 1}, {"y": DeviceResult("y", 0, (0,))}, HOPPER)
