"""Functions of a robot on devices such as GPUs, over arrays on the device: `ld.to_device`."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from liedyn.arrays import Array, Method
from liedyn.codegen.batch_step import trace_step
from liedyn.codegen.trace import GeneratedProgram
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.dynamics.constraints.couplings import follow_couplings_unchecked, reduced_model
from liedyn.errors import ShapeError, UsageError
from liedyn.interop.device_drivers import CudaDriver, DeviceInput, Driver, OpenClDriver, column_places
from liedyn.interop.traced_functions import FUNCTIONS, FunctionTrace, trace_function
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.rollouts.engine import checked_problem, moving_model, pivots
from liedyn.rollouts.inputs import ContactSettings, Feedback, RolloutInputs
from liedyn.rollouts.rollout import check_numbers

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
        self._driver, self._sizes, self._shapes = driver, traced.inputs, traced.shapes
        self.inputs, self.results = tuple(self._sizes), tuple(self._shapes)
        self._kernel = driver.kernel(traced, {name: column_places(shape) for name, shape in self._shapes.items()})

    def __call__(self, *arrays: Any) -> Any:
        """Return the results for arrays of states."""
        if len(arrays) != len(self.inputs):
            raise UsageError(f"the function takes the arrays {', '.join(self.inputs)}, got {len(arrays)}")
        arguments = [_Argument(name, self._driver.read(x, name)) for name, x in zip(self.inputs, arrays, strict=True)]
        for argument, size in zip(arguments, self._sizes.values(), strict=True):
            argument.check([(size,)], f"(N, {size}) or ({size},)")
        lead = _common_lead(arguments)
        n = prod(lead)
        results = [self._driver.new((*lead, *shape)) for shape in self._shapes.values()]
        if n:
            self._driver.launch(self._kernel, n, [*(y for x in arguments for y in x.place),
                                                  *(self._driver.buffer(x) for x in results)])
        return results[0] if len(results) == 1 else tuple(results)


class _Argument(NamedTuple):
    """An array on the device, of states or of one state for all. axes: those of a state."""

    name: str
    x: DeviceInput
    axes: int = 1

    @property
    def lead(self) -> tuple[int, ...]:
        """The axis of states; none for one state."""
        return self.x.shape[:len(self.x.shape) - self.axes]

    @property
    def place(self) -> tuple[Any, ...]:
        """Buffer, first number, and strides of states and of the numbers of a state."""
        return self.x.buffer, self.x.first, self.x.strides[0] if self.lead else 0, self.x.strides[-1]

    def check(self, shapes: Sequence[tuple[int, ...]], forms: str) -> None:
        """Raise ShapeError unless a state has one of the shapes. forms: for the message."""
        if len(self.lead) > 1 or self.x.shape[len(self.lead):] not in shapes:
            raise ShapeError(f"{self.name} has the wrong shape: expected {forms}, got {self.x.shape}")


def _common_lead(arguments: Sequence[_Argument]) -> tuple[int, ...]:
    """Return the axis of states that arguments with one have. Raises ShapeError if they differ."""
    leads = {argument.lead for argument in arguments} - {()}
    if len(leads) > 1:
        raise ShapeError(f"the arrays have different numbers of states: expected one number, got "
                         f"{', '.join(f'{name} {x.shape}' for name, x, _ in arguments)}")
    return leads.pop() if leads else ()


class DeviceRollout:
    """Rollouts compiled for a device: `DeviceModel.rollout_function`."""

    def __init__(self, driver: Driver, model: Model, step: GeneratedProgram, values: Array, *, steps: int, dt: float):
        self._driver, self._model, self._steps, self._dt = driver, model, steps, dt
        self._kernel = driver.rollout_kernel(step, values, model.nv, [x.start for x in model.quaternions.values()])

    def __call__(self, q0: Any, v0: Any, tau: Any = None) -> tuple[Any, Any]:
        """Return the states q, v before each step and after the last."""
        nq, nv, steps = self._model.nq, self._model.nv, self._steps
        forces = self._driver.read(np.zeros(nv) if tau is None else tau, "tau")
        arguments = [_Argument("q0", self._driver.read(q0, "q0")), _Argument("v0", self._driver.read(v0, "v0")),
                     _Argument("tau", forces, min(len(forces.shape), 2))]
        for argument, size in zip(arguments[:2], (nq, nv), strict=True):
            argument.check([(size,)], f"(N, {size}) or ({size},)")
        arguments[2].check([(nv,), (1, nv), (steps, nv)], f"(N, S, {nv}), (S, {nv}) or ({nv},) with S = {steps} or 1")
        lead = _common_lead(arguments)
        n = prod(lead)
        q, v = (self._driver.new((*lead, steps + 1, size)) for size in (nq, nv))
        tau_step = forces.strides[-2] if len(forces.shape) > 1 and forces.shape[-2] > 1 else 0
        if n:
            self._driver.launch(self._kernel, n, [steps, self._dt, tau_step, *(y for x in arguments for y in x.place),
                                                  *(self._driver.buffer(x) for x in (q, v))])
        return q, v


def _step_program(model: Model, method: Method, passive: bool, feedback: Feedback | None, contacts: Mapping[str, Any] | None,
                  *, single: bool) -> tuple[Model, GeneratedProgram, Array]:
    """Return the robot, a step of its rollouts, and the array `values` of a run without forces."""
    settings = ContactSettings.read(contacts, model)
    if model.nc:
        reduced_model(model, "rollout_function")
    q, *_ = follow_couplings_unchecked(model, model.neutral())
    runs = RolloutInputs(model, None, q[None], np.zeros((1, model.nv)), None, feedback, None, 1, settings, None, None)
    obstacle = ("rigid friction" if moving_model(model, passive) is not model else
                "contacts that stick" if settings is not None and settings.sticking else
                "a robot without a moving joint" if not model.nv else
                "gains or setpoints of runs or steps" if runs.moving or runs.count != 1 else
                "thrusts" if runs.n_inputs != model.nv else "")
    if obstacle:
        raise UsageError(f"rollouts on a device cannot contain {obstacle}; use ld.rollout")
    problem = checked_problem(model, runs, runs.masks[0], passive, None)
    tables = problem.tables()._replace(single=single)
    step = trace_step(tables, method, (), pivots(problem, runs.rows.get(runs.masks[0].tobytes(), ())), ())
    values = tables.scenario_values.copy()
    values[:runs.values().shape[1]] = runs.values()[0]
    return model, step, values


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

    @explained
    def rollout_function(self, *, dt: float, steps: int, method: Method = "rk4", passive: bool = True,
                         feedback: Feedback | None = None, contacts: Mapping[str, Any] | None = None) -> DeviceRollout:
        """Return a function (q0, v0, tau) -> (q, v), (N, nq), (N, nv), (N, S, nv) -> (N, steps + 1, nq), (N, steps + 1, nv).

        tau may also be (N, 1, nv), or (nv,), for all steps. States after a step that fails are NaN. For the other arguments see
        `liedyn.rollout`; gains and setpoints are those of all runs and steps.

        Raises
        ------
        UsageError
            For a CUDA device, and for runs that need more than a fixed step: rigid friction, contacts that stick, a robot
            without a moving joint.
        ModelError
            For a robot with loops.
        """
        check_numbers(method, dt, steps=steps)
        return DeviceRollout(self._driver, *_step_program(self.model, method, passive, feedback, contacts,
                                                          single=self.dtype == "float32"), steps=steps, dt=dt)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function without options."""
        if name not in FUNCTIONS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.function(name)

    def __repr__(self) -> str:
        return f"<DeviceModel {self.model.name}: {self.dtype}>"

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
    dtype = "float32" if is_single(dtype, "to_device") else "float64"
    if device not in get_args(DeviceName) if isinstance(device, str) else not hasattr(device, "device"):
        raise UsageError(f"device must be 'opencl', 'cuda' or a pyopencl.CommandQueue, got {device!r}")
    if not isinstance(model, Model):
        raise TypeError("the model is used by the functions only")                # `explained` says what it must be
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


