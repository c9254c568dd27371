"""The driver of CUDA, with a driver API that has the functions of cuda.bindings.driver on memory of this machine."""
from __future__ import annotations

import ctypes
import re
import sys
from types import ModuleType

import numpy as np
import pytest

import liedyn as ld


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
    with pytest.raises(ld.UsageError, match="rollouts run on devices of OpenCL"):
        device.rollout_function(dt=1e-3, steps=1)
    api.failing = "cuInit"
    with pytest.raises(ld.UsageError, match="the CUDA driver's cuInit failed: 2"):
        ld.to_device(api.model, "cuda")


def test_missing_driver_and_package(api, monkeypatch):
    def missing(*_):
        raise RuntimeError("libcuda.so was not found\nin …")
    monkeypatch.setattr(api, "cuInit", missing, raising=False)
    with pytest.raises(ld.UsageError, match=r"no CUDA device was found \(libcuda.so was not found\)"):
        ld.to_device(api.model, "cuda")
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(ld.UsageError, match="require the package cuda-bindings"):
        ld.to_device(api.model, "cuda")
