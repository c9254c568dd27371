"""Functions of a robot on devices such as GPUs, over arrays on the device: `ld.to_device`."""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Literal, get_args

import numpy as np

from liedyn.codegen.targets.device_kernels import NUMBERS, DeviceResult
from liedyn.errors import ShapeError, UsageError
from liedyn.interop.device_drivers import CudaDriver, Driver, OpenClDriver
from liedyn.interop.traced_functions import FUNCTIONS, FunctionTrace, trace_function
from liedyn.model.model import Model
from liedyn.public_calls import explained

DeviceName = Literal["opencl", "cuda"]
Dtype = Literal["float64", "float32"]


class DeviceFunction:
    """A function of a robot, compiled for a device: `DeviceModel.function`.

    Call it with arrays (N, n) or (n,), of the device or of NumPy, in the order of `inputs`. It returns an array (N, …) for each
    result, of the device; one array is not in a tuple. States are along the first axis and adjacent in memory (Fortran order).
    Results of states that are not valid are NaN.

    inputs   names of the arrays
    results  names of the results
    """

    def __init__(self, traced: FunctionTrace, driver: Driver):
        self._driver, self._sizes = driver, {name: traced.input_size(name) for name in traced.function.inputs}
        self.inputs = tuple(self._sizes)
        self._shapes = {result.name: traced.shape(result) for result in traced.function.results}
        self.results = tuple(self._shapes)
        self.operations = traced.trace.size
        self._kernel = driver.kernel(traced, {
            result.name: DeviceResult(result.array, result.first, _places(self._shapes[result.name]))
            for result in traced.function.results})

    def __call__(self, *arrays: Any) -> Any:
        """Return the results for arrays of states."""
        if len(arrays) != len(self.inputs):
            raise UsageError(f"the function takes the arrays {', '.join(self.inputs)}, got {len(arrays)}")
        read = [self._driver.read(x, name) for name, x in zip(self.inputs, arrays, strict=True)]
        for name, x in zip(self.inputs, read, strict=True):
            if len(x.shape) not in (1, 2) or x.shape[-1] != self._sizes[name]:
                raise ShapeError(f"{name} has the wrong shape: expected (N, {self._sizes[name]}) or ({self._sizes[name]},), "
                                 f"got {x.shape}")
        counts = {x.shape[0] for x in read if len(x.shape) == 2}
        if len(counts) > 1:
            shapes = ", ".join(f"{name} {x.shape}" for name, x in zip(self.inputs, read, strict=True))
            raise ShapeError(f"the arrays have different numbers of states: expected one number, got {shapes}")
        lead, n = tuple(counts), max(counts, default=1)
        results = [self._driver.new((*lead, *shape)) for shape in self._shapes.values()]
        if n:
            places = [(x.buffer, x.first, x.strides[0] if len(x.shape) == 2 else 0, x.strides[-1]) for x in read]
            self._driver.launch(self._kernel, n, [y for place in places for y in place]
                                + [self._driver.buffer(x) for x in results])
        return results[0] if len(results) == 1 else tuple(results)


def _places(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the place of each number of a result, by rows, among the numbers in Fortran order."""
    return tuple(np.arange(prod(shape)).reshape(shape, order="F").ravel().tolist())


class DeviceModel:
    """A robot whose functions run on a device: `to_device`.

    `device.inverse_dynamics(q, v, a)` calls `device.function("inverse_dynamics")`, and so for the other functions. Each is
    compiled at its first use.

    model  the robot
    dtype  of all arrays
    """

    def __init__(self, model: Model, driver: Driver, dtype: Dtype):
        self.model, self.dtype, self._driver = model, dtype, driver
        self._functions: dict[tuple[Any, ...], DeviceFunction] = {}

    @explained
    def function(self, name: str, **options: Any) -> DeviceFunction:
        """Return a function, compiled for the device.

        Parameters
        ----------
        name : str
            Such as "forward_dynamics"; see `dir(device)`.
        options
            As those of the function of liedyn: link, frame, passive, prescribed.

        Raises
        ------
        NameLookupError
            For another name, or a link that the robot does not have.
        UsageError
            If an option does not belong to the function, or one is missing.
        ModelError
            For the dynamics of a robot with loops.
        """
        key = name, *sorted((option, np.asarray(x).tobytes() if option == "prescribed" else x) for option, x in options.items())
        if key not in self._functions:
            self._functions[key] = DeviceFunction(
                trace_function(self.model, name, options, libm=self._driver.libm, single=self.dtype == "float32"), self._driver)
        return self._functions[key]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function without options."""
        if name not in FUNCTIONS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.function(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *FUNCTIONS})


@explained
def to_device(model: Model, device: DeviceName | Any = "opencl", *, dtype: Dtype = "float64") -> DeviceModel:
    """Return the robot with functions that run on a device.

    Arrays of the device are read without a copy; NumPy arrays are copied to it.

    Parameters
    ----------
    model : Model
    device : "opencl", "cuda" or pyopencl.CommandQueue
        "opencl": the default device, which the environment variable PYOPENCL_CTX selects (`pip install 'liedyn[opencl]'`).
        "cuda": a GPU by NVIDIA with its driver (`pip install 'liedyn[cuda]'`); arrays are those of CuPy, PyTorch, JAX or Numba.
    dtype : "float64" or "float32"
        Of all arrays. Single precision has 4 to 7 digits, fewer for robots with light links on heavy ones.

    Returns
    -------
    DeviceModel

    Raises
    ------
    UsageError
        If a package or a device is missing, or the device does not compute with float64.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> device = ld.to_device(model, "opencl")
    >>> q, v, tau = np.zeros((3, 1000, 2))
    >>> device.forward_dynamics(q, v, tau).get().shape
    (1000, 2)
    """
    if dtype not in NUMBERS:
        raise UsageError(f"dtype must be {' or '.join(map(repr, NUMBERS))}, got {dtype!r}")
    if isinstance(device, str) and device not in get_args(DeviceName):
        raise UsageError(f"device must be 'opencl', 'cuda' or a pyopencl.CommandQueue, got {device!r}")
    driver = _cuda_driver(dtype) if device == "cuda" else _opencl_driver(device, dtype)
    return DeviceModel(model, driver, dtype)


def _opencl_driver(device: Any, dtype: Dtype) -> Driver:
    try:
        import pyopencl
        import pyopencl.array
    except ImportError:
        raise UsageError("OpenCL devices require the package pyopencl: pip install 'liedyn[opencl]'") from None
    return OpenClDriver(pyopencl, _queue(pyopencl) if device == "opencl" else device, dtype)


def _cuda_driver(dtype: Dtype) -> Driver:
    try:
        from cuda.bindings import driver
    except ImportError:
        raise UsageError("GPUs by NVIDIA require the package cuda-bindings: pip install 'liedyn[cuda]'") from None
    return CudaDriver(driver, dtype)


def _queue(cl: Any) -> Any:
    """Return a queue of the default device."""
    try:
        return cl.CommandQueue(cl.create_some_context(interactive=False))
    except cl.Error as error:
        raise UsageError(f"no OpenCL device was found ({error}): install the driver of a GPU, or pip install 'pyopencl[pocl]' "
                         "for this processor") from None


