"""The driver of CUDA, with a driver API that has the functions of cuda.bindings.driver on memory of this machine."""
from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen.targets.device_kernels import cuda_text, opencl_programs_text
from liedyn.interop.devices import _RolloutStep


class Api(ModuleType):
    """Memory are NumPy arrays by their address. A launched kernel computes forward dynamics of `model` with its arguments."""

    class CUdevice_attribute:
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 75, 76

    def __init__(self, model, failing: str = ""):
        super().__init__("cuda.bindings.driver")
        self.model, self.failing, self.memory, self.texts, self.synchronized = model, failing, {}, [], []

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)
        result = {"cuDevicePrimaryCtxRetain": "context", "cuDeviceGet": 0, "cuModuleGetFunction": "kernel"}.get(name)
        return lambda *_: (2 if name == self.failing else 0, *([] if result is None else [result]))

    def cuDeviceGetAttribute(self, attribute, _device): return 0, {75: 9, 76: 0}[attribute]

    def cuStreamSynchronize(self, stream):
        self.synchronized.append(stream)
        return 0,

    def cuMemAlloc(self, size):
        x = np.zeros(size, dtype=np.uint8)
        self.memory[x.ctypes.data] = x
        return 0, x.ctypes.data

    def cuMemFree(self, pointer):
        del self.memory[pointer]
        return 0,

    def cuMemcpyHtoD(self, to, source, size):
        ctypes.memmove(to, source, size)
        return 0,

    cuMemcpyDtoH = cuMemcpyHtoD

    def cuModuleLoadData(self, text):
        self.texts.append(text.decode())
        return 2 if self.failing == "cuModuleLoadData" else 0, "module"

    def cuLaunchKernel(self, _kernel, blocks, *rest):
        (threads, _, _, _, _, (values, types), _) = rest[2:]
        assert len(types) == len(values) == len(re.findall(r"\.param \.u?b?64.* forward_dynamics_param_\d+", self.texts[-1]))
        n, *values = values
        assert (blocks - 1) * threads < n <= blocks * threads
        arrays = []
        for size in (self.model.nq, self.model.nv, self.model.nv):
            (pointer, first, *strides), values = values[:4], values[4:]
            count = 1 + first + int(np.dot(strides, (n - 1, size - 1)))
            memory = np.ctypeslib.as_array((ctypes.c_double * count).from_address(pointer))
            arrays.append(np.lib.stride_tricks.as_strided(memory[first:], (n, size), np.multiply(strides, 8)))
        result = np.ctypeslib.as_array((ctypes.c_double * (n * self.model.nv)).from_address(values[0]))
        result[:] = ld.forward_dynamics(self.model, *arrays).ravel(order="F")
        return 0,


@pytest.fixture
def api(monkeypatch):
    package, bindings = ModuleType("cuda"), ModuleType("cuda.bindings")
    bindings.driver = api = Api(ld.load("robots/double_pendulum.yaml"))
    for name, module in (("cuda", package), ("cuda.bindings", bindings), ("cuda.bindings.driver", api)):
        monkeypatch.setitem(sys.modules, name, module)
    return api


class OnDevice:
    """An array of another library."""

    def __init__(self, x, stream=None, contiguous=False):
        self._x, strides = x, None if contiguous else x.strides
        self.__cuda_array_interface__ = {"shape": x.shape, "typestr": x.dtype.str, "strides": strides, "version": 3,
                                         "data": (x.ctypes.data, False), "stream": stream}


def test_arrays_reach_the_kernel_and_come_back(api):
    device = ld.to_device(api.model, "cuda")
    q, v, tau = np.random.default_rng(0).standard_normal((3, 70, 2))
    expected = ld.forward_dynamics(api.model, q, v, tau)
    wide = np.hstack([v, tau])
    for arrays in ((q, v, tau), (OnDevice(q, contiguous=True), OnDevice(wide[:, :2], stream=7), OnDevice(wide[:, 2:]))):
        result = device.forward_dynamics(*arrays)
        np.testing.assert_array_equal(result.get(), expected)
    assert result.__cuda_array_interface__["strides"] == (8, 560)
    assert api.synchronized == [7]
    assert ".target sm_90" in api.texts[0]
    assert len(api.texts) == 1
    np.testing.assert_array_equal(device.forward_dynamics(q[0], v, tau).get(), ld.forward_dynamics(api.model, q[0], v, tau))
    del result
    assert not api.memory                                  # arrays were freed


def test_errors_of_the_driver_are_named(api):
    device, (q, v, tau) = ld.to_device(api.model, "cuda"), np.zeros((3, 2))
    api.failing = "cuModuleLoadData"
    with pytest.raises(ld.UsageError, match="the CUDA driver's cuModuleLoadData failed: 2"):
        device.forward_dynamics(q, v, tau)
    api.failing = ""
    with pytest.raises(ld.UsageError, match="tau has the wrong dtype: expected float64, got float32"):
        device.forward_dynamics(q, v, OnDevice(tau.astype(np.float32)))
    api.failing = "cuInit"
    with pytest.raises(ld.UsageError, match="the CUDA driver's cuInit failed: 2"):
        ld.to_device(api.model, "cuda")


class Compiler(ModuleType):
    """NVRTC, which returns the text."""

    def __init__(self, failing=False):
        super().__init__("cuda.bindings.nvrtc")
        self.failing, self.options = failing, []

    def nvrtcCreateProgram(self, text, *_): return 0, text
    def nvrtcGetProgramLogSize(self, _): return 0, 6
    def nvrtcGetPTXSize(self, text): return 0, len(text)

    def nvrtcCompileProgram(self, _text, _count, options):
        self.options = options
        return int(self.failing),

    def nvrtcGetProgramLog(self, _, log):
        ctypes.memmove(log, b"line 1", 6)
        return 0,

    def nvrtcGetPTX(self, text, assembly):
        ctypes.memmove(assembly, text, len(text))
        return 0,


def test_rollouts_are_compiled_by_nvrtc(api, monkeypatch):
    """And launched with a number of the type of the device for dt."""
    compiler, launched = Compiler(), []
    monkeypatch.setattr(sys.modules["cuda.bindings"], "nvrtc", compiler, raising=False)
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", compiler)
    monkeypatch.setattr(Api, "cuLaunchKernel", lambda _self, *arguments: launched.append(arguments[-2]) or (0,))
    for dtype, number in (("float64", ctypes.c_double), ("float32", ctypes.c_float)):
        roll = ld.to_device(api.model, "cuda", dtype=dtype).rollout_function(dt=1e-3, steps=2)
        q, v = roll(np.zeros((3, 2)), np.zeros((3, 2)))
        values, types = launched.pop()
        assert q.shape == v.shape == (3, 3, 2) and values[:4] == (3, 2, 1e-3, 0) and types[2] is number
        assert set(types[:2] + types[3:]) == {ctypes.c_int64} and len(values) == 4 + 3 * 4 + 2
        assert roll.adjoint(q, v).tau.shape == (3, 2, 2)
        assert len(launched.pop()[0]) == 8 + 5 * 4 + 3
    assert compiler.options == [b"--gpu-architecture=compute_90", b"--device-as-default-execution-space"]
    assert 'extern "C" __global__ void adjoint(const long n' in api.texts[-1]
    compiler.failing = True
    with pytest.raises(ld.UsageError, match="NVRTC cannot compile the rollout: line 1"):
        ld.to_device(api.model, "cuda").rollout_function(dt=1e-3, steps=2)
    def missing(*_):
        raise RuntimeError("Failure finding libnvrtc.so.12")
    monkeypatch.setattr(compiler, "nvrtcCreateProgram", missing, raising=False)
    with pytest.raises(ld.UsageError, match="require the compiler NVRTC: pip install nvidia-cuda-nvrtc-cu12"):
        ld.to_device(api.model, "cuda").rollout_function(dt=1e-3, steps=2)


# what CUDA C++ has and C++ has not
CUDA_HOST = """
#include <math.h>
#include <string.h>
#define __global__
static struct { long x; } blockIdx = {0}, blockDim = {0}, threadIdx;
static long __double_as_longlong(double x) { long n; memcpy(&n, &x, 8); return n; }
extern "C" void thread(long k) { threadIdx.x = k; }
"""


def test_the_text_for_cuda_computes_rollouts(api, tmp_path):
    """Compiled for this processor."""
    model, steps, n = api.model, 5, 3
    programs = _RolloutStep(model, "rk4", True, None, None, None, 1e-3, steps, single=False).programs()
    (tmp_path / "f.cpp").write_text(CUDA_HOST + cuda_text(opencl_programs_text(programs, "float64")[1]))
    subprocess.run(["c++", "-O0", "-shared", "-fPIC", "f.cpp", "-o", "f.so"], cwd=tmp_path, check=True)
    library, (q, v, tau) = ctypes.CDLL(str(tmp_path / "f.so")), np.random.default_rng(0).standard_normal((3, n, 2))
    outputs = [np.empty((n, steps + 1, 2), order="F") for _ in range(2)]
    long, places = ctypes.c_long, [ctypes.c_long(x) for x in (0, 2, 1)]
    for k in range(n):
        library.thread(long(k))
        library.rollout(long(n), long(steps), ctypes.c_double(1e-3), long(0),
                        *(y for x in (q, v, tau) for y in (ctypes.c_void_p(x.ctypes.data), *places)),
                        *(ctypes.c_void_p(x.ctypes.data) for x in outputs))
    expected = ld.rollout(model, q, v, tau[:, None], dt=1e-3, steps=steps)
    np.testing.assert_allclose(outputs, [expected.q, expected.v], rtol=0, atol=1e-13)


def test_missing_driver_and_package(api, monkeypatch):
    def missing(*_):
        raise RuntimeError("libcuda.so was not found\nin …")
    monkeypatch.setattr(api, "cuInit", missing, raising=False)
    with pytest.raises(ld.UsageError, match=r"no CUDA device was found \(libcuda.so was not found\)"):
        ld.to_device(api.model, "cuda")
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(ld.UsageError, match="require the package cuda-bindings"):
        ld.to_device(api.model, "cuda")
