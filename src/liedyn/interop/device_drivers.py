"""Devices on which kernels run: OpenCL by the package pyopencl, and GPUs by NVIDIA by cuda-bindings, without a toolkit."""
from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, NamedTuple, Protocol

import numpy as np

from liedyn.arrays import Array
from liedyn.codegen.targets.device_kernels import (
    AdjointPrograms,
    RolloutPrograms,
    cuda_text,
    opencl_programs_text,
    opencl_text,
    ptx,
)
from liedyn.dynamics.batching.arrays import as_array
from liedyn.errors import UsageError
from liedyn.interop.traced_functions import FunctionTrace

GROUP = 64               # states of a work group: a multiple of the width of GPUs


class DeviceInput(NamedTuple):
    """An array of the caller on the device.

    buffer        as the driver passes it to kernels
    first         place of the first number, in numbers
    strides       distance between the numbers of each axis, in numbers
    shape         numbers along each axis
    owner         of the memory
    """

    buffer: Any
    first: int
    strides: tuple[int, ...]
    shape: tuple[int, ...]
    owner: Any


class Driver(Protocol):
    """What `DeviceModel` needs of a device. libm: whether it has the functions sine and cosine."""

    libm: bool

    def kernel(self, traced: FunctionTrace, results: Mapping[str, Sequence[int]]) -> Any:
        """Return the kernel of a function, compiled. results: places of their numbers, see `opencl_text`."""

    def rollout_kernel(self, programs: RolloutPrograms | AdjointPrograms) -> Any:
        """Return the kernel of rollouts or of their adjoint, compiled; see `opencl_rollout_text` and `opencl_adjoint_text`."""

    def read(self, x: Any, name: str) -> DeviceInput:
        """Return an array of the device, or a copy there of an array of this machine. name: for errors."""

    def new(self, shape: tuple[int, ...]) -> Any:
        """Return a new array, of which states are adjacent."""

    def buffer(self, x: Any) -> Any:
        """Return the buffer of a new array."""

    def launch(self, kernel: Any, n: int, arguments: Sequence[Any]) -> None:
        """Run a kernel for n states. arguments: after n; int are int64, and float are of the type of the device."""


def _check_dtype(name: str, dtype: Any, expected: np.dtype[Any]) -> None:
    if dtype != expected:
        raise UsageError(f"{name} has the wrong dtype: expected {expected}, got {dtype}")


class OpenClDriver:
    """A device of OpenCL. cl: the package pyopencl."""

    libm = True

    def __init__(self, cl: Any, queue: Any, dtype: str):
        self._cl, self._queue, self._dtype = cl, queue, np.dtype(dtype)
        if dtype == "float64" and not queue.device.double_fp_config:
            raise UsageError(f"{queue.device.name} does not compute with float64; use dtype='float32'")

    def kernel(self, traced: FunctionTrace, results: Mapping[str, Sequence[int]]) -> Any:
        """Return the kernel of a function, compiled."""
        text = opencl_text(traced.trace, traced.name, traced.inputs, results, self._dtype.name)
        return self._compile(text, traced.name, (), len(traced.inputs), len(results))

    def rollout_kernel(self, programs: RolloutPrograms | AdjointPrograms) -> Any:
        """Return the kernel of rollouts or of their adjoint, compiled."""
        name, text = opencl_programs_text(programs, self._dtype.name)
        strides, inputs, results = ((5, 5, 3 + bool(programs.rates)) if isinstance(programs, AdjointPrograms) else
                                    (1, 3, 5 if programs.readings else 2))
        return self._compile(text, name, (np.int64, self._dtype, *[np.int64] * strides), inputs, results)

    def _compile(self, text: str, name: str, counts: Sequence[Any], inputs: int, results: int) -> Any:
        """Return a kernel. counts: types of its numbers after that of states."""
        kernel = getattr(self._cl.Program(self._queue.context, text).build(), name)
        kernel.set_scalar_arg_dtypes([np.int64, *counts, *[None, np.int64, np.int64, np.int64] * inputs, *[None] * results])
        return kernel

    def read(self, x: Any, name: str) -> DeviceInput:
        """Return an array of the device, or a copy there."""
        if not isinstance(x, self._cl.array.Array):
            x = self._cl.array.to_device(self._queue, np.ascontiguousarray(as_array(x, name, ()), dtype=self._dtype))
        _check_dtype(name, x.dtype, self._dtype)
        size = self._dtype.itemsize
        return DeviceInput(x.base_data, x.offset // size, tuple(stride // size for stride in x.strides), x.shape, x)

    def new(self, shape: tuple[int, ...]) -> Any:
        """Return a new array."""
        return self._cl.array.empty(self._queue, shape, self._dtype, order="F")

    def buffer(self, x: Any) -> Any:
        """Return the buffer of a new array."""
        return x.base_data

    def launch(self, kernel: Any, n: int, arguments: Sequence[Any]) -> None:
        """Run a kernel for n states."""
        kernel(self._queue, (-(-n // GROUP) * GROUP,), (GROUP,), n, *arguments)


# CUDA -----------------------------------------------------------------------------------------------------------------------

_DEFAULT_STREAMS = 1, 2                                    # as `__cuda_array_interface__` names them


def column_places(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the place of each number of a result, by rows, among the numbers in Fortran order."""
    return tuple(np.arange(prod(shape)).reshape(shape, order="F").ravel().tolist())


def column_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array in Fortran order, in numbers."""
    return tuple(accumulate(shape[:-1], mul, initial=1))[:len(shape)]


class CudaArray:
    """An array on a GPU, in Fortran order. CuPy, PyTorch, JAX and Numba read it without a copy (`__cuda_array_interface__`)."""

    def __init__(self, driver: CudaDriver, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self.shape, self.dtype, self._driver = shape, dtype, driver
        self.strides = tuple(n * dtype.itemsize for n in column_strides(shape))
        self.nbytes = prod(shape) * dtype.itemsize
        self.pointer = driver.allocate(max(1, self.nbytes))
        weakref.finalize(self, driver.release, self.pointer)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        stream = _DEFAULT_STREAMS[0]                       # on which kernels run
        return {"shape": self.shape, "typestr": self.dtype.str, "strides": self.strides, "data": (self.pointer, False),
                "version": 3, "stream": stream}

    def get(self) -> Array:
        """Return a copy as NumPy array."""
        x = np.empty(self.shape, self.dtype, order="F")
        self._driver.copy_from(self.pointer, x)
        return x


class CudaDriver:
    """A GPU by NVIDIA. api: the module cuda.bindings.driver."""

    libm = False

    def __init__(self, api: Any, dtype: str, ordinal: int = 0):
        self._api, self._dtype = api, np.dtype(dtype)
        try:
            self._call("cuInit", 0)
            device = self._call("cuDeviceGet", ordinal)
            self._context = self._call("cuDevicePrimaryCtxRetain", device)
        except (RuntimeError, OSError) as error:           # of the package: the driver was not found
            raise UsageError(f"no CUDA device was found ({str(error).splitlines()[0]})") from None
        attributes = api.CUdevice_attribute
        major, minor = (self._call("cuDeviceGetAttribute", getattr(attributes, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}"),
                                   device) for part in ("MAJOR", "MINOR"))
        self.processor = f"sm_{major}{minor}"

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the driver and return its result. Raises UsageError with the driver's name of an error."""
        code, *results = getattr(self._api, name)(*arguments)
        if int(code):
            raise UsageError(f"the CUDA driver's {name} failed: {getattr(code, 'name', code)}")
        return results[0] if results else None

    # memory -------------------------------------------------------------------------------------------------------------
    def allocate(self, size: int) -> int:
        """Return the address of new memory of this many bytes."""
        self._call("cuCtxSetCurrent", self._context)
        return int(self._call("cuMemAlloc", size))

    def release(self, pointer: int) -> None:
        """Free memory."""
        self._call("cuMemFree", pointer)

    def copy_from(self, pointer: int, x: Array) -> None:
        """Copy memory of the device to an array. This waits for the kernels before."""
        self._call("cuCtxSetCurrent", self._context)
        if x.nbytes:
            self._call("cuMemcpyDtoH", x.ctypes.data, pointer, x.nbytes)

    # of `Driver` --------------------------------------------------------------------------------------------------------
    def kernel(self, traced: FunctionTrace, results: Mapping[str, Sequence[int]]) -> Any:
        """Return the kernel of a function, compiled."""
        self._call("cuCtxSetCurrent", self._context)
        text = ptx(traced.trace, traced.name, traced.inputs, results, self.processor)
        module = self._call("cuModuleLoadData", text.encode())
        return self._call("cuModuleGetFunction", module, traced.name.encode())

    def rollout_kernel(self, programs: RolloutPrograms | AdjointPrograms) -> Any:
        """Return the kernel of rollouts or of their adjoint, compiled by NVRTC from the text for OpenCL."""
        name, text = opencl_programs_text(programs, self._dtype.name)
        self._call("cuCtxSetCurrent", self._context)
        module = self._call("cuModuleLoadData", _compiled_by_nvrtc(cuda_text(text), self.processor))
        return self._call("cuModuleGetFunction", module, name.encode())

    def read(self, x: Any, name: str) -> DeviceInput:
        """Return an array of the device, or a copy there."""
        interface = getattr(x, "__cuda_array_interface__", None)
        if interface is None:
            values = np.asfortranarray(as_array(x, name, ()), dtype=self._dtype)
            copy = CudaArray(self, values.shape, self._dtype)
            if values.size:
                self._call("cuMemcpyHtoD", copy.pointer, values.ctypes.data, values.nbytes)
            x, interface = copy, copy.__cuda_array_interface__
        _check_dtype(name, np.dtype(interface["typestr"]), self._dtype)
        shape, strides, stream = interface["shape"], interface.get("strides"), interface.get("stream")
        if stream is not None and stream not in _DEFAULT_STREAMS:
            self._call("cuStreamSynchronize", stream)      # until the array is complete
        distances = (column_strides(shape[::-1])[::-1] if strides is None else
                     tuple(stride // self._dtype.itemsize for stride in strides))
        return DeviceInput(interface["data"][0], 0, distances, shape, x)

    def new(self, shape: tuple[int, ...]) -> Any:
        """Return a new array."""
        return CudaArray(self, shape, self._dtype)

    def buffer(self, x: Any) -> Any:
        """Return the buffer of a new array."""
        return x.pointer

    def launch(self, kernel: Any, n: int, arguments: Sequence[Any]) -> None:
        """Run a kernel for n states."""
        self._call("cuCtxSetCurrent", self._context)
        values = n, *arguments
        number = ctypes.c_float if self._dtype == np.float32 else ctypes.c_double
        types = tuple(number if isinstance(x, float) else ctypes.c_int64 for x in values)    # a pointer is passed as its address
        self._call("cuLaunchKernel", kernel, -(-n // GROUP), 1, 1, GROUP, 1, 1, 0, 0, (values, types), 0)


def _compiled_by_nvrtc(text: str, processor: str) -> bytes:
    """Return PTX of a text in CUDA C++. Raises UsageError if the compiler is missing."""
    try:
        from cuda.bindings import nvrtc
        _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])
    except (ImportError, RuntimeError) as error:           # of the package: the library was not found
        raise UsageError("rollouts on GPUs by NVIDIA require the compiler NVRTC: pip install nvidia-cuda-nvrtc-cu12 "
                         f"({str(error).splitlines()[0]})") from None
    options = [f"--gpu-architecture={processor.replace('sm', 'compute')}".encode(), b"--device-as-default-execution-space"]
    code, = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(code):
        log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
        nvrtc.nvrtcGetProgramLog(program, log)
        raise UsageError(f"NVRTC cannot compile the rollout: {log.decode(errors='replace').strip()[:400]}")
    assembly: bytes = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, assembly)
    return assembly
