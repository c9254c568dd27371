"""Functions of a robot on devices such as GPUs, over arrays on the device: `ld.to_device`."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from liedyn.arrays import Array, Method
from liedyn.codegen.batch_step import trace_adjoint_step, trace_event_values, trace_step
from liedyn.codegen.targets.device_kernels import AdjointPrograms, RolloutPrograms
from liedyn.codegen.trace import Array as TraceArray
from liedyn.codegen.trace import GeneratedProgram, Trace, single_call
from liedyn.codegen.tracer import Operations
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.dynamics.constraints.couplings import follow_couplings_unchecked, reduced_model
from liedyn.dynamics.manifold import coordinate_gradient, tangent_gradient
from liedyn.errors import ShapeError, UsageError
from liedyn.interop.device_drivers import CudaDriver, DeviceInput, Driver, OpenClDriver, column_places
from liedyn.interop.traced_functions import FUNCTIONS, FunctionTrace, trace_function
from liedyn.io.scenarios.action_schema import EndRun
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.rollouts.engine import checked_problem, moving_model, pivots
from liedyn.rollouts.events import Events
from liedyn.rollouts.inputs import ContactSettings, Feedback, RolloutInputs
from liedyn.rollouts.rollout import check_numbers, constant_tangents

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

    @property
    def step_stride(self) -> int:
        """Stride of steps; 0 for numbers of all steps."""
        return self.x.strides[-2] if self.axes > 1 and self.x.shape[-2] > 1 else 0

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


class DeviceAdjoint(NamedTuple):
    """Derivatives of the cost of each run, arrays of the device: see `DeviceRollout.adjoint`.

    q0, v0      (N, nv) with respect to the initial state; that of q0 is tangent: with respect to x of q0 (+) x
    tau         (N, steps, nv) with respect to the generalized forces of each step
    parameters  (N, m) with respect to the parameters; None without parameters
    """

    q0: Any
    v0: Any
    tau: Any
    parameters: Any = None


class DeviceRollout:
    """Rollouts compiled for a device: `DeviceModel.rollout_function`."""

    def __init__(self, driver: Driver, step: _RolloutStep, *, steps: int, dt: float):
        self._driver, self._step, self._model, self._steps, self._dt = driver, step, step.model, steps, float(dt)
        self._has_events = step.events is not None
        self._adjoints: dict[tuple[str, ...], Any] = {}
        self._kernel = driver.rollout_kernel(step.programs())

    def __call__(self, q0: Any, v0: Any, tau: Any = None) -> tuple[Any, ...]:
        """Return the states q, v before each step and after the last.

        With events, it returns q, v, stopped_at, q_end, v_end: the time (N,) of the first event, NaN for runs without one, and
        the state (N, nq), (N, nv) at that time or at the end.
        """
        nq, nv, steps = self._model.nq, self._model.nv, self._steps
        arguments = [*self._states(("q0", q0, nq), ("v0", v0, nv)), self._forces(tau)]
        lead = _common_lead(arguments)
        n = prod(lead)
        shapes = [(steps + 1, nq), (steps + 1, nv), *([(), (nq,), (nv,)] if self._has_events else [])]
        results = [self._driver.new((*lead, *shape)) for shape in shapes]
        if n:
            self._driver.launch(self._kernel, n, [steps, self._dt, arguments[2].step_stride,
                                                  *(y for x in arguments for y in x.place),
                                                  *(self._driver.buffer(x) for x in results)])
        return tuple(results)

    def adjoint(self, q: Any, v: Any, tau: Any = None, d_q: Any = None, d_v: Any = None,
                parameters: Sequence[str] = ()) -> DeviceAdjoint:
        """Return derivatives of a cost with respect to initial states, generalized forces and parameters of the robot.

        They are exact for the computed steps, and NaN for runs that failed.

        Parameters
        ----------
        q, v : (N, steps + 1, nq), (N, steps + 1, nv)
            The result of the rollout.
        tau
            Its generalized forces.
        d_q, d_v : (N, steps + 1, nv), optional
            Derivatives of the cost with respect to each state alone; those for q are tangent: with respect to x of q (+) x.
            Default: zero.
        parameters : sequence of str
            As for `Rollout.adjoint`.

        Raises
        ------
        UsageError
            For a rollout with events, and for parameters of a robot whose contacts have `sink`.
        """
        if self._has_events:
            raise UsageError("the adjoint of a rollout with events is not available")
        names, nq, nv, steps = tuple(parameters), self._model.nq, self._model.nv, self._steps
        if names not in self._adjoints:
            self._adjoints[names] = self._driver.rollout_kernel(self._step.adjoint_programs(names))
        none = np.zeros((steps + 1, nv))
        arguments = [*self._states(("q", q, nq), ("v", v, nv), steps=steps + 1), self._forces(tau),
                     *self._states(("d_q", none if d_q is None else d_q, nv), ("d_v", none if d_v is None else d_v, nv),
                                   steps=steps + 1)]
        lead = _common_lead(arguments)
        n = prod(lead)
        shapes = [(nv,), (nv,), (steps, nv), *([(len(names),)] if names else [])]
        results = [self._driver.new((*lead, *shape)) for shape in shapes]
        q_of, v_of, forces, by_q, by_v = (x.step_stride for x in arguments)
        if n:
            self._driver.launch(self._adjoints[names], n, [steps, self._dt, forces, q_of, v_of, by_q, by_v,
                                                           *(y for x in arguments for y in x.place),
                                                           *(self._driver.buffer(x) for x in results)])
        return DeviceAdjoint(*results)

    def _states(self, *arrays: tuple[str, Any, int], steps: int = 0) -> list[_Argument]:
        """Return arrays of states, or of the states of all steps. arrays: name, array, number of coordinates."""
        out = []
        for name, x, size in arrays:
            shape = (steps, size) if steps else (size,)
            text = ", ".join(map(str, shape))
            out.append(_Argument(name, self._driver.read(x, name), len(shape)))
            out[-1].check([shape], f"(N, {text}) or ({text}{',' if not steps else ''})")
        return out

    def _forces(self, tau: Any) -> _Argument:
        nv, steps = self._model.nv, self._steps
        forces = self._driver.read(np.zeros(nv) if tau is None else tau, "tau")
        argument = _Argument("tau", forces, min(len(forces.shape), 2))
        argument.check([(nv,), (1, nv), (steps, nv)], f"(N, S, {nv}), (S, {nv}) or ({nv},) with S = {steps} or 1")
        return argument


class _RolloutStep:
    """A step of rollouts on a device, as programs."""

    def __init__(self, model: Model, method: Method, passive: bool, feedback: Feedback | None,     # noqa: PLR0913
                 contacts: Mapping[str, Any] | None, events: Mapping[str, Any] | None, dt: float, steps: int, *, single: bool):
        self.model, self.method, self.settings = model, method, ContactSettings.read(contacts, model)
        self.events = Events.read(events, model, dt, steps)
        if model.nc:
            reduced_model(model, "rollout_function")
        q, *_ = follow_couplings_unchecked(model, model.neutral())
        self.runs = RolloutInputs(model, None, q[None], np.zeros((1, model.nv)), None, feedback, None, 1, self.settings, None,
                                  None)
        if obstacle := next(filter(None, self._obstacles(passive)), ""):
            raise UsageError(f"rollouts on a device cannot contain {obstacle}; use ld.rollout")
        problem = checked_problem(model, self.runs, self.runs.masks[0], passive, self.events)
        self.directions = tuple(problem.directions)
        self.tables = problem.tables()._replace(single=single)
        self.pivots = pivots(problem, self.runs.rows.get(self.runs.masks[0].tobytes(), ()))
        self.values = self.tables.scenario_values.copy()
        self.values[:self.runs.values().shape[1]] = self.runs.values()[0]

    def _obstacles(self, passive: bool) -> Iterator[str]:
        model, runs = self.model, self.runs
        yield "rigid friction" if moving_model(model, passive) is not model else ""
        yield "contacts that stick" if self.settings is not None and self.settings.sticking else ""
        yield "" if model.nv else "a robot without a moving joint"
        yield "gains or setpoints of runs or steps" if runs.moving or runs.count != 1 else ""
        yield "" if runs.n_inputs == model.nv else "thrusts"
        for event in self.events.definitions if self.events else ():
            yield f"the time of event {event.name}" if event.at or event.every else ""
            yield "" if all(isinstance(action, EndRun) for action in event.actions) else f"what event {event.name} does"

    def programs(self) -> RolloutPrograms:
        """Return the programs of a rollout."""
        step = trace_step(self.tables, self.method, (), self.pivots, self.directions)
        readings = trace_event_values(self.tables, self.directions) if self.directions else None
        return RolloutPrograms(step, self.values.tolist(), self.model.nv, [x.start for x in self.model.quaternions.values()],
                               readings)

    def adjoint_programs(self, parameters: tuple[str, ...]) -> AdjointPrograms:
        """Return the programs of the adjoint."""
        if parameters and self.settings is not None and self.settings.contacts.scales_with_weight.any():
            raise UsageError("the adjoint on a device has no derivative with respect to parameters if contacts have `sink`; give "
                             "`stiffness`, or use ld.rollout")
        places, rates = constant_tangents(self.model, parameters)
        back = trace_adjoint_step(self.tables, self.method, tuple(places.tolist()), self.pivots, ())
        gradient = _map_program(self.model, coordinate_gradient, "d_q", "numbers", single=self.tables.single)
        tangent = _map_program(self.model, tangent_gradient, "by_q", "q0", single=self.tables.single)
        return AdjointPrograms(back, gradient, tangent, self.values.tolist(), self.model.nv,
                               self.model.constants[places].tolist(), rates.tolist())


def _map_program(model: Model, function: Callable[..., Array], argument: str, result: str, *, single: bool) -> GeneratedProgram:
    """Return the program of function(model, q, argument) -> result, which maps derivatives."""
    ops = Operations(single=single)
    q, x = ops.inputs("q", model.nq), ops.inputs(argument, model.nq if argument == "by_q" else model.nv)
    mapped = function(model, q, x)
    arrays = (TraceArray("q", len(q), (None,) * len(q)), TraceArray(argument, len(x), (None,) * len(x)),
              TraceArray(result, len(mapped), tuple(mapped)))
    return single_call(Trace(ops, arrays, (), ()))


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
                         feedback: Feedback | None = None, contacts: Mapping[str, Any] | None = None,
                         events: Mapping[str, Any] | None = None) -> DeviceRollout:
        """Return a function (q0, v0, tau) -> (q, v), (N, nq), (N, nv), (N, S, nv) -> (N, steps + 1, nq), (N, steps + 1, nv).

        tau may also be (N, 1, nv), or (nv,), for all steps. States after a step that fails, and after an event, are NaN. For the
        other arguments see `liedyn.rollout`; gains and setpoints are those of all runs and steps. Events have `when` and stop
        the run: the function then also returns the time of the first event, and the state at that time, see
        `DeviceRollout.__call__`. Its method `adjoint` returns derivatives of a cost.

        Raises
        ------
        UsageError
            For runs that need more than a fixed step: rigid friction, contacts that stick, events that do not stop the run, a
            robot without a moving joint.
        ModelError
            For a robot with loops.
        """
        check_numbers(method, dt, steps=steps)
        step = _RolloutStep(self.model, method, passive, feedback, contacts, events, dt, steps, single=self.dtype == "float32")
        return DeviceRollout(self._driver, step, steps=steps, dt=dt)

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


