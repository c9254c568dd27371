"""Functions of a robot, and rollouts, as functions of JAX: under `jax.jit`, `vmap`, `scan`, `jvp`, `grad` and `hessian`.

    import jax
    jax.config.update("jax_enable_x64", True)
    from liedyn.interop.jax import robot_function, rollout_function

    forward_dynamics = robot_function(model, "forward_dynamics")
    da_dtau = jax.jacobian(forward_dynamics, argnums=2)(q, v, tau)

    roll = rollout_function(model, dt=1e-3, steps=200)
    gradient = jax.grad(lambda tau: roll(q0, v0, tau)[1][-1].sum())(tau)

XLA, the compiler of JAX, calls generated code of the robot, and the rollouts, on this machine's processor.
"""
from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count
from math import prod
from pathlib import Path
from secrets import randbits
from typing import Any
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from liedyn.arrays import ArrayLike, Frame, Method, Precision
from liedyn.codegen.array_functions import ArrayFunction
from liedyn.codegen.specialize import (
    cache_folder,
    compile_object_code,
    is_supported,
    load_engine,
    load_or_build_batch_function,
)
from liedyn.codegen.trace import STATUS, validity
from liedyn.codegen.tracer import NotTraceableError, object_array
from liedyn.codegen.xla_call import MAJOR_VERSION, handler_text, python_handler
from liedyn.dynamics.batching.arrays import common_leading_axes
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.errors import ArgumentError, ShapeError, UsageError
from liedyn.interop.traced_functions import FunctionTrace, trace_function
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.rollouts.inputs import Feedback
from liedyn.rollouts.rollout import RolloutMap
from liedyn.simulation.control.thrusts import input_count


@explained
def robot_function(model: Model, function: str, *, link: str | None = None, frame: Frame | None = None,
                   passive: bool | None = None, prescribed: ArrayLike | None = None,
                   dtype: Precision = "float64") -> Callable[..., Any]:
    """Return a function of the package for one robot as a function of JAX arrays: for one state, or for many at once.

    Its arguments are the arrays of the public function in the same order, (…, nq) or (…, nv), which are broadcast. It returns
    an array (…, …), or a tuple where there are several results. Results of states that are not valid are NaN: an input is not
    finite, a quaternion is not of unit norm, or an articulated inertia vanishes. `jnp.isnan` of the results finds them.

    Derivatives of any order are those of the generated code. Derivatives with respect to quaternions have no component normal to
    the unit sphere.

    Parameters
    ----------
    model : Model
    function : str
        As for `liedyn.casadi_function`: dynamics and their derivatives, matrices, kinematics, regressors, constraints.
    link, frame, passive, prescribed
        As for `liedyn.casadi_function`.
    dtype : "float64" or "float32"
        Of all arrays. "float64" needs `jax_enable_x64`. Single precision has 4 to 7 digits, fewer for robots with light links on
        heavy ones.

    Returns
    -------
    function
        It runs on the CPU platform of JAX.

    Raises
    ------
    UsageError
        If an option is missing or does not belong to the function, or the generated code would be too long. Calls raise it
        for "float64" without `jax_enable_x64`, and for a derivative of an operation that has none.
    NameLookupError
        For an unknown function or link.
    ModelError
        For the dynamics of a robot with loops, or a robot without a moving joint.
    ShapeError
        Raised by calls.
    """
    single = is_single(dtype, "robot_function")
    options = {"link": link, "frame": frame, "passive": passive, "prescribed": prescribed}
    traced = trace_function(model, function, options, libm=False, single=single)
    call = _Call(_array_function(traced), model, f"{function} of {model.name}")
    shapes = call.function.inputs

    def compute(*arrays: Any) -> Any:
        """Return the results for arrays of states."""
        if len(arrays) != len(shapes):
            raise UsageError(f"{function} takes the arrays {', '.join(shapes)}, got {len(arrays)}")
        results = _call.bind(*_spread(function, dtype, list(zip(shapes, arrays, shapes.values(), strict=True))), call=call)
        return results[0] if len(results) == 1 else tuple(results)

    compute.__name__ = compute.__qualname__ = function
    return compute


def _array_function(traced: FunctionTrace) -> ArrayFunction:
    """Return a traced function as a function of its inputs."""
    values = {array.name: array.new_values for array in traced.trace.arrays}
    return ArrayFunction(
        traced.trace.ops, {name: (size,) for name, size in traced.inputs.items()},
        {name: object_array(values[name]).reshape(shape) for name, shape in traced.shapes.items()},
        values[STATUS][0] if STATUS in values else validity(traced.trace),
        tuple((name, place) for name in traced.inputs if name.startswith("q") for place in traced.model.quaternions.values()))


# The primitive ----------------------------------------------------------------------------------------------------------

@dataclass(frozen=True, repr=False)
class _Call:
    """The parameter of the primitive: a function, its robot, and the text that errors name."""

    function: ArrayFunction
    model: Model = field(compare=False)
    text: str = field(compare=False)

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def derivative(self, method: Callable[..., ArrayFunction], *names: tuple[str, ...]) -> _Call:
        """Return a call of a derivative of the function."""
        try:
            return _Call(method(*names), self.model, f"a derivative of {self.text.removeprefix('a derivative of ')}")
        except NotTraceableError:
            raise UsageError(f"{self.text} has no derivative: an expression of the robot contains a power") from None

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """The type of the numbers."""
        return np.float32 if self.function.ops.single else np.float64

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the results of one state."""
        return [x.shape for x in self.function.results.values()]


_call = Primitive("liedyn")
_call.multiple_results = True


@_call.def_abstract_eval  # type: ignore[untyped-decorator]   # JAX has no types of it
def _result_types(*arrays: Any, call: _Call) -> list[Any]:
    lead = arrays[0].shape[:-1]
    return [jax.core.ShapedArray((*lead, *shape), call.dtype) for shape in call.shapes]


@_call.def_impl  # type: ignore[untyped-decorator]
@partial(jax.jit, static_argnames="call")
def _compute(*arrays: Any, call: _Call) -> Any:
    return _call.bind(*arrays, call=call)


def _batch(arrays: Sequence[Any], axes: Sequence[int | None], *, call: _Call) -> tuple[Any, list[int]]:
    """Compute all states of a new axis in one call."""
    size = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
    rows = [jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
            for x, axis in zip(arrays, axes, strict=True)]
    return _call.bind(*rows, call=call), [0] * len(call.shapes)


def _differentiate(arrays: Sequence[Any], rates: Sequence[Any], *, call: _Call) -> tuple[Any, list[Any]]:
    results, function = _call.bind(*arrays, call=call), call.function
    names = tuple(name for name, rate in zip(function.inputs, rates, strict=True) if type(rate) is not ad.Zero)
    tangent = call.derivative(function.tangent, names)
    if tangent.function.is_zero:
        return results, [jnp.zeros_like(x) for x in results]
    return results, _call.bind(*arrays, *(rate for rate in rates if type(rate) is not ad.Zero), call=tangent)


def _transpose(costs: Sequence[Any], *arrays: Any, call: _Call) -> list[Any]:
    function = call.function
    unknown = tuple(name for name, x in zip(function.inputs, arrays, strict=True) if ad.is_undefined_primal(x))
    known = [x for name, x in zip(function.inputs, arrays, strict=True) if name not in function.linear]
    results = tuple(name for name, cost in zip(function.results, costs, strict=True) if type(cost) is not ad.Zero)
    transposed = call.derivative(function.transpose, unknown, results)
    computed = iter(_call.bind(*known, *(cost for cost in costs if type(cost) is not ad.Zero), call=transposed))
    return [next(computed) if ad.is_undefined_primal(x) else None for x in arrays]


def _lower_for_cpu(*arrays: Any, call: _Call) -> list[Any]:
    """Call the handler of the function over rows of states."""
    lead = arrays[0].shape[:-1]
    n = prod(lead)
    target, workspace_size = _target(call)
    results = [jax.ShapeDtypeStruct((n, *shape), call.dtype) for shape in call.shapes]
    workspace = jax.ShapeDtypeStruct((workspace_size,), np.int32)
    *computed, _ = jax.ffi.ffi_call(target, [*results, workspace])(*(x.reshape(n, *x.shape[len(lead):]) for x in arrays))
    return [x.reshape(*lead, *shape) for x, shape in zip(computed, call.shapes, strict=True)]


def _no_platform(*_arguments: Any, call: _Call) -> Any:
    raise UsageError(f'{call.text} runs on the platform cpu of JAX only: jax.config.update("jax_platforms", "cpu"), or '
                     'with jax.default_device(jax.devices("cpu")[0])')


for _rules, _rule in ((batching.primitive_batchers, _batch), (ad.primitive_jvps, _differentiate),
                      (ad.primitive_transposes, _transpose)):
    _rules.__setitem__(_call, _rule)                 # not rules[call] = …: the site imports this module without JAX
mlir.register_lowering(_call, _no_platform)
mlir.register_lowering(_call, mlir.lower_fun(_lower_for_cpu, multiple_results=True), platform="cpu")


# Targets: functions that XLA calls by name ------------------------------------------------------------------------------

_targets: dict[str, tuple[Any, ...]] = {}            # of this process: XLA never forgets one
_lock = threading.Lock()


def _target(call: _Call) -> tuple[str, int]:
    """Return the name of the handler of a function, which depends on its content, and the size of its workspace in int32."""
    name = f"liedyn_{call.function.digest}"
    with _lock:
        if name not in _targets:
            place = cache_folder("codegen.array_functions.ArrayFunction")
            generated = load_or_build_batch_function(call.model, place, name, call.function.trace) if is_supported() else None
            if generated is None:
                raise UsageError(f"{call.text} is too long for generated code" if is_supported() else
                                 "functions of JAX need generated code, which this version of llvmlite cannot compile")
            engine = load_engine(compile_object_code(handler_text(
                generated.address, len(call.function.inputs), len(call.shapes), _minor_version())))
            _register(name, engine.get_function_address("handler"))
            _targets[name] = generated, engine
        return name, 2 * _targets[name][0].workspace_size + 16


def _register(name: str, address: int) -> None:
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    jax.ffi.register_ffi_target(name, capsule(address, None, None), platform="cpu")


@cache
def _minor_version() -> int:
    """Return the minor version of XLA's interface. Raises UsageError if it has another major version than `xla_call`."""
    header = (Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
    version = dict(re.findall(r"define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header))
    if version.get("MAJOR") != str(MAJOR_VERSION) or "MINOR" not in version:
        raise UsageError(f"JAX {jax.__version__} has another interface for compiled functions: install an older version of JAX, "
                         "or a newer one of liedyn")
    return int(version["MINOR"])


# Python functions by key. Programs that JAX stores on disk contain the key of a function, so it differs between processes.
_functions: WeakValueDictionary[int, Any] = WeakValueDictionary()
_keys = count(randbits(60))


def _call_python(key: int, inputs: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
    if (function := _functions.get(key)) is None:
        raise UsageError("the rollout function of a compiled program no longer exists")
    for x, y in zip(results, function(*inputs), strict=True):
        x[...] = y


@cache
def _python_target() -> str:
    """Return the name of the handler that calls Python functions."""
    name, handler = "liedyn_python", python_handler(_call_python, _minor_version())
    _register(name, ctypes.cast(handler, ctypes.c_void_p).value or 0)
    _targets[name] = (handler,)
    return name


# Rollouts ---------------------------------------------------------------------------------------------------------------

@explained
def rollout_function(model: Model, *, dt: float, steps: int, method: Method = "rk4", passive: bool = True,
                     feedback: Feedback | None = None, contacts: Mapping[str, Any] | None = None,
                     dtype: Precision = "float64") -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """Return a function (q0, v0, tau) -> (q, v) of JAX arrays, (…, nq), (…, nv), (…, S, nv) -> (…, S + 1, nq), (…, S + 1, nv).

    tau may also be (…, 1, nv), or (nv,), for all steps. It has a derivative in reverse, by its adjoint: `jax.grad`, `jax.vjp`.
    Derivatives with respect to quaternions have no component normal to the unit sphere. States after the end of a run are NaN.
    dtype is the type of all arrays: "float64", which needs `jax_enable_x64`, or "float32". The steps are computed in double
    precision. Errors of a run are errors of JAX with the text of `liedyn.rollout`, whose other arguments these are.
    """
    nq, nv = model.nq, model.nv
    kind = np.float32 if is_single(dtype, "rollout_function") else np.float64
    rollouts = RolloutMap(model, dt=dt, steps=steps, method=method, passive=passive, feedback=feedback, contacts=contacts)

    def forward(q0: Any, v0: Any, tau: Any) -> tuple[Any, Any]:
        run = rollouts.run(q0, v0, tau)
        return run.q, run.v

    def backward(q0: Any, v0: Any, tau: Any, d_q: Any, d_v: Any) -> tuple[Any, ...]:
        return rollouts.back(rollouts.run(q0, v0, tau), q0, tau, d_q, d_v)

    def call(function: Callable[..., tuple[Any, ...]], shapes: Sequence[tuple[int, ...]], *arrays: Any) -> Any:
        """Call a function from XLA. shapes: of its results for one run."""
        results = [jax.ShapeDtypeStruct((*arrays[0].shape[:-1], *shape), kind) for shape in shapes]
        return tuple(jax.ffi.ffi_call(_python_target(), results, vmap_method="broadcast_all")(*arrays, number=keys[function]))

    keys = {function: np.int64(next(_keys)) for function in (forward, backward)}
    _functions.update({int(key): function for function, key in keys.items()})

    @jax.custom_vjp
    def roll(q0: Any, v0: Any, tau: Any) -> Any:
        return call(forward, ((steps + 1, nq), (steps + 1, nv)), q0, v0, tau)

    def roll_forward(q0: Any, v0: Any, tau: Any) -> tuple[Any, tuple[Any, Any, Any]]:
        return roll(q0, v0, tau), (q0, v0, tau)

    def roll_backward(inputs: tuple[Any, Any, Any], cotangents: tuple[Any, Any]) -> Any:
        return call(backward, ((nq,), (nv,), (steps, inputs[2].shape[-1])), *inputs, *cotangents)

    roll.defvjp(roll_forward, roll_backward)

    def compute(q0: Any, v0: Any, tau: Any) -> tuple[Any, Any]:
        """Return the states before each step and after the last."""
        tau = tau if np.ndim(tau) > 1 else jnp.reshape(tau, (1, -1))
        columns = input_count(model) if np.shape(tau)[-1] == input_count(model) else nv              # with or without thrusts
        q, v = roll(*_spread("rollout_function", dtype, [("q0", q0, (nq,)), ("v0", v0, (nv,)), ("tau", tau, (steps, columns))]))
        return q, v

    return compute


def _spread(function: str, dtype: Precision, arguments: Sequence[tuple[str, Any, tuple[int, ...]]]) -> list[jax.Array]:
    """Return the arguments (name, array, shape of one state) broadcast to all states and steps, of one type."""
    kind = np.dtype(dtype)
    if jax.dtypes.canonicalize_dtype(kind) != kind:
        raise UsageError(f'{function} in double precision needs numbers of 64 bits in JAX: jax.config.update("jax_enable_x64", '
                         'True), or pass dtype="float32"')
    arrays = [jnp.asarray(x) for _, x, _ in arguments]
    for (name, _, shape), x in zip(arguments, arrays, strict=True):
        last = x.shape[-len(shape):]
        if x.ndim < len(shape) or last[-1] != shape[-1] or (len(shape) == 2 and last[0] not in (1, shape[0])):
            raise ShapeError(f"{name} has the wrong shape: expected (…, {', '.join(map(str, shape))}), got {x.shape}")
        if not (jnp.issubdtype(x.dtype, jnp.floating) or jnp.issubdtype(x.dtype, jnp.integer)):
            raise ArgumentError(f"{name} must contain real numbers, got {x.dtype}")
    named: Any = [(name, x, len(shape)) for (name, _, shape), x in zip(arguments, arrays, strict=True)]
    lead = common_leading_axes(*named)
    return [jnp.broadcast_to(x, (*lead, *shape)).astype(kind) for (_, _, shape), x in zip(arguments, arrays, strict=True)]
