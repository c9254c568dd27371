"""Public functions as traces for targets: what each one reads and returns, and with which options it is traced."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array
from liedyn.codegen.targets.target import Expressions
from liedyn.codegen.trace import STATUS, VARYING, Trace, make_trace
from liedyn.codegen.trace import Array as TraceArray
from liedyn.codegen.tracer import Tracer, object_array
from liedyn.dynamics.batching.arrays import accelerations_in_frame, as_mask, twists_in_frame
from liedyn.dynamics.batching.calls import intercepted_specialization
from liedyn.dynamics.constraints.constraints import (
    constraint_bias,
    constraint_jacobian,
    constraint_residual,
    constraint_velocity,
)
from liedyn.dynamics.constraints.couplings import follow_couplings_unchecked, reduced_model
from liedyn.dynamics.coriolis import christoffel_symbols, coriolis_matrix, slotine_li_inverse_dynamics
from liedyn.dynamics.derivatives import (
    d_difference,
    d_integrate,
    forward_dynamics_derivatives,
    hybrid_dynamics_derivatives,
    inverse_dynamics_derivatives,
)
from liedyn.dynamics.dynamics import (
    bias_force,
    forward_dynamics,
    gravity_force,
    hybrid_dynamics,
    inverse_dynamics,
    inverse_mass_matrix,
    mass_matrix,
)
from liedyn.dynamics.inertial_parameters import regressor, slotine_li_regressor
from liedyn.dynamics.kinematics import (
    centre_of_mass,
    energy,
    jacobian,
    jacobian_derivative,
    link_acceleration,
    link_pose,
    link_twist,
    momentum,
)
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import ModelError, NameLookupError, UsageError, checked_flag, nearest
from liedyn.interop.robot_parameters import RobotParameters
from liedyn.model.model import Model


class Result(NamedTuple):
    """A result: its name, axes, quantity, the array of the kernel, and its first number in the array.

    axes      "q" for nq, "v" for nv, "c" for the number of constraint equations, a digit for its number, "p" for all that are
              left; "" for a number
    quantity  such as "tau", or "tau/v" for its derivative with respect to v; "x": of the tangent coordinates of q
    array     of the kernel, or of `TracedFunction.derived`; default: that of its name
    """

    name: str
    axes: str
    quantity: str
    array: str = ""
    first: int = 0


Values = dict[str, Array]                       # numbers of the arrays of a trace, flat


class TracedFunction(NamedTuple):
    """A public function that can be traced.

    compute     the public function
    inputs      its arrays, in its order
    results     what it returns
    zero        arrays of the kernel that are zero
    options     its other arguments
    of_tree     whether it supports robots with loops, since its results are those of the open tree or of the constraints
    derived     (numbers of the kernel's arrays, index of the link, options) -> other arrays that results are part of
    """

    compute: Callable[..., Any]
    inputs: tuple[str, ...]
    results: tuple[Result, ...]
    zero: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    of_tree: bool = False
    derived: Callable[[Values, int, Mapping[str, Any]], Values] | None = None


def _hybrid_derivatives(model: Model, q: Any, v: Any, a: Any, tau: Any, prescribed: Any, *,
                        passive: bool = True) -> tuple[Array, Array, Array]:
    """Return the matrices of `hybrid_dynamics_derivatives`."""
    derivatives = hybrid_dynamics_derivatives(model, q, v, a, tau, prescribed, passive=passive)
    return derivatives.dy_dq, derivatives.dy_dv, derivatives.dy_du


def _pose(values: Values, link: int) -> Array:
    """Return the pose (4, 4) of a link: the kernel writes R by rows, then p."""
    T = values["T"][12 * link:12 * link + 12]
    return np.vstack([np.hstack([T[:9].reshape(3, 3), T[9:, None]]), object_array([0.0, 0.0, 0.0, 1.0])[None]])


def _twist(values: Values, link: int, options: Mapping[str, Any]) -> Values:
    return {"twist": twists_in_frame(options["frame"], _pose(values, link), values["V"][6 * link:6 * link + 6])}


def _acceleration(values: Values, link: int, options: Mapping[str, Any]) -> Values:
    V, dV = (values[name][6 * link:6 * link + 6] for name in ("V", "dV"))
    return {"acceleration": accelerations_in_frame(options["frame"], _pose(values, link), V, dV)}


_OF_LINK = "link", "frame"
FUNCTIONS: dict[str, TracedFunction] = {
    "inverse_dynamics": TracedFunction(inverse_dynamics, ("q", "v", "a"), (Result("tau", "v", "tau"),), options=("passive",)),
    "forward_dynamics": TracedFunction(forward_dynamics, ("q", "v", "tau"), (Result("a", "v", "a"),), options=("passive",)),
    "hybrid_dynamics": TracedFunction(hybrid_dynamics, ("q", "v", "a", "tau"), (Result("a_all", "v", "a", "a"),
                                                                               Result("tau_all", "v", "tau", "tau")),
                                      options=("prescribed", "passive")),
    "mass_matrix": TracedFunction(mass_matrix, ("q",), (Result("M", "vv", "tau/a"),)),
    "inverse_mass_matrix": TracedFunction(inverse_mass_matrix, ("q",), (Result("M_inverse", "vv", "a/tau", "out"),)),
    "bias_force": TracedFunction(bias_force, ("q", "v"), (Result("b", "v", "tau", "tau"),), zero=("a",), of_tree=True),
    "gravity_force": TracedFunction(gravity_force, ("q",), (Result("g", "v", "tau", "tau"),), zero=("v", "a"), of_tree=True),
    "coriolis_matrix": TracedFunction(coriolis_matrix, ("q", "v"), (Result("C", "vv", "tau/v"),)),
    "christoffel_symbols": TracedFunction(christoffel_symbols, ("q",), (Result("Gamma", "vvv", "tau/v/v", "out"),)),
    "slotine_li_inverse_dynamics": TracedFunction(slotine_li_inverse_dynamics, ("q", "v", "v_r", "a_r"),
                                                  (Result("tau", "v", "tau"),), options=("passive",)),
    "regressor": TracedFunction(regressor, ("q", "v", "a"), (Result("Y", "vp", "tau/parameter"),), options=("passive",)),
    "slotine_li_regressor": TracedFunction(slotine_li_regressor, ("q", "v", "v_r", "a_r"), (Result("Y", "vp", "tau/parameter"),),
                                           options=("passive",)),
    "energy": TracedFunction(energy, ("q", "v"), (Result("kinetic", "", "energy", "out"),
                                                  Result("potential", "", "energy", "out", 1)), options=("passive",)),
    "momentum": TracedFunction(momentum, ("q", "v"), (Result("h", "6", "momentum", "out", 2),), of_tree=True),
    "centre_of_mass": TracedFunction(centre_of_mass, ("q",), (Result("c", "3", "length", "out", 8),), zero=("v",), of_tree=True),
    "integrate": TracedFunction(integrate, ("q", "x"), (Result("q_next", "q", "q", "out"),), of_tree=True),
    "difference": TracedFunction(difference, ("q0", "q1"), (Result("dv", "v", "x", "out"),), of_tree=True),
    "d_integrate": TracedFunction(d_integrate, ("q", "x"), (Result("by_q", "vv", "x/x", "wrt_q"),
                                                            Result("by_x", "vv", "x/x", "wrt_x")), of_tree=True),
    "d_difference": TracedFunction(d_difference, ("q0", "q1"), (Result("by_q0", "vv", "x/x", "wrt_q0"),
                                                                Result("by_q1", "vv", "x/x", "wrt_q1")), of_tree=True),
    "link_pose": TracedFunction(link_pose, ("q",), (Result("T", "44", "pose", "pose"),), options=("link",), of_tree=True,
                                derived=lambda values, link, _: {"pose": _pose(values, link)}),
    "link_twist": TracedFunction(link_twist, ("q", "v"), (Result("V", "6", "twist", "twist"),), options=_OF_LINK, of_tree=True,
                                 derived=_twist),
    "link_acceleration": TracedFunction(link_acceleration, ("q", "v", "a"), (Result("dV", "6", "acceleration", "acceleration"),),
                                        options=_OF_LINK, of_tree=True, derived=_acceleration),
    "jacobian": TracedFunction(jacobian, ("q",), (Result("J", "6v", "twist/v"),), options=_OF_LINK, of_tree=True),
    "jacobian_derivative": TracedFunction(jacobian_derivative, ("q", "v"), (Result("dJ", "6v", "acceleration/v"),),
                                          options=_OF_LINK, of_tree=True),
    "inverse_dynamics_derivatives": TracedFunction(
        inverse_dynamics_derivatives, ("q", "v", "a"),
        (Result("dtau_dq", "vv", "tau/x", "Dq"), Result("dtau_dv", "vv", "tau/v", "Dv"), Result("M", "vv", "tau/a")),
        options=("passive",)),
    "forward_dynamics_derivatives": TracedFunction(
        forward_dynamics_derivatives, ("q", "v", "tau"),
        (Result("da_dq", "vv", "a/x", "Dq"), Result("da_dv", "vv", "a/v", "Dv"), Result("da_dtau", "vv", "a/tau", "Du")),
        options=("passive",)),
    "hybrid_dynamics_derivatives": TracedFunction(
        _hybrid_derivatives, ("q", "v", "a", "tau"),
        (Result("dy_dq", "vv", "y/x", "Dq"), Result("dy_dv", "vv", "y/v", "Dv"), Result("dy_du", "vv", "y/u", "Du")),
        options=("prescribed", "passive")),
    "constraint_residual": TracedFunction(constraint_residual, ("q",), (Result("residual", "c", "constraint", "out"),),
                                          zero=("v",), of_tree=True),
    "constraint_velocity": TracedFunction(constraint_velocity, ("q", "v"), (Result("rate", "c", "constraint rate", "out"),),
                                          of_tree=True),
    "constraint_bias": TracedFunction(constraint_bias, ("q", "v"), (Result("bias", "c", "constraint acceleration", "out"),),
                                      of_tree=True),
    "constraint_jacobian": TracedFunction(constraint_jacobian, ("q",), (Result("J", "cv", "constraint rate/v", "out"),),
                                          zero=("v",), of_tree=True),
}


class FunctionTrace(NamedTuple):
    """A trace of a public function.

    name      of the public function
    function  its entry in `FUNCTIONS`
    model     the model of the trace, in which couplings are eliminated
    trace     with an array for each input and each result
    options   of the function: link, frame, passive, prescribed
    """

    name: str
    function: TracedFunction
    model: Model
    trace: Trace
    options: dict[str, Any]

    @property
    def inputs(self) -> dict[str, int]:
        """Names of the inputs, and how many numbers they have."""
        return {name: self.model.nq if name.startswith("q") else self.model.nv for name in self.function.inputs}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names of the results, and their shapes."""
        sizes = {array.name: array.size for array in self.trace.arrays}
        return {result.name: _shape(self.model, result, sizes[result.name]) for result in self.function.results}

    def evaluate(self, expressions: Expressions) -> dict[str, Array]:
        """Return the results by name, in their shapes: arrays of expressions."""
        values = expressions.results(self.trace)
        return {name: object_array(values[name]).reshape(shape) for name, shape in self.shapes.items()}


def _shape(model: Model, result: Result, size: int) -> tuple[int, ...]:
    """Return the shape of a result. size: numbers of it, or of all that are left in its array."""
    sizes = {"q": model.nq, "v": model.nv, "c": model.nc, "p": -1}
    shape = [sizes[axis] if axis in sizes else int(axis) for axis in result.axes]
    return tuple(-size // prod(shape) if n < 0 else n for n in shape)


def trace_function(model: Model, name: str, options: Mapping[str, Any],
                   parameters: RobotParameters | None = None, *, libm: bool = True, single: bool = False) -> FunctionTrace:
    """Return the trace of a public function. It has an array for each input and each result.

    Parameters
    ----------
    model : Model
    name : str
        One of `FUNCTIONS`.
    options : {str: value}
        link, frame, passive, prescribed; None for those that are not set.
    parameters : RobotParameters, optional
        Parameters of the robot that the trace reads, from the array `codegen.trace.VARYING`. It is then that of their model.
    libm : bool
        Whether sine and cosine are operations of the trace.
    single : bool
        Whether the trace is for single precision, with the array `trace.STATUS`.

    Raises
    ------
    NameLookupError
        For another name, and for a link that the model does not have.
    UsageError
        If an option does not belong to the function, or one is missing.
    ModelError
        For the dynamics of a robot with loops, or a robot without a moving joint.
    """
    if name not in FUNCTIONS:
        hint = nearest(name, dict.fromkeys(FUNCTIONS), written=repr) or f"one of {', '.join(FUNCTIONS)}"
        raise NameLookupError(f"no function {name!r} can be traced; {hint}")
    if parameters is not None:
        model = parameters.model
    function, options = FUNCTIONS[name], _function_options(model, name, options)
    if "link" in options:
        model.link_index(options["link"])
    if model.nc and not function.of_tree:
        reduced_model(model, name)
    q, *_ = follow_couplings_unchecked(model, model.neutral())
    arrays = [q if array.startswith("q") else np.zeros(model.nv) for array in function.inputs[1:]]
    keywords = dict(options)
    if "prescribed" in keywords:
        arrays.append(keywords.pop("prescribed"))
    specialization, traced = intercepted_specialization(function.compute, model, q, *arrays, **keywords)
    specialization = specialization._replace(zero=function.zero)
    if parameters is not None:
        traced, specialization = parameters.read(traced), specialization._replace(varying=parameters.varying)
    trace = make_trace(traced, specialization, libm=libm, single=single)
    if trace is None:
        raise ModelError(f"{name} of the robot {model.name} cannot be traced"
                         f"{': it has no moving joint' if not model.nv else ''}")
    return FunctionTrace(name, function, traced, _with_results(traced, function, trace, options), options)


def _function_options(model: Model, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a function, with defaults. Raises UsageError for a missing or superfluous one."""
    names = FUNCTIONS[name].options
    if superfluous := [option for option, value in values.items() if value is not None and option not in names]:
        raise UsageError(f"{name} has no option {superfluous[0]}")
    parameters = inspect.signature(FUNCTIONS[name].compute).parameters
    options: dict[str, Any] = {option: parameters[option].default if values.get(option) is None else values[option]
                               for option in names}
    if "passive" in names:
        options["passive"] = checked_flag(name, "passive", options["passive"])
    if "link" in names and values.get("link") is None:
        raise UsageError(f"{name} needs the name of a link")
    if "prescribed" in names:
        if values.get("prescribed") is None:
            raise UsageError(f"{name} needs prescribed, a mask of the coordinates with prescribed acceleration")
        options["prescribed"] = as_mask(options["prescribed"], model.nv)
    return options


def _with_results(model: Model, function: TracedFunction, trace: Trace, options: Mapping[str, Any]) -> Trace:
    """Return the trace with an array for each result, in place of the kernel's arrays, of which inputs are only read."""
    ops, values = trace.ops, Values()
    for array in trace.arrays:                             # hybrid dynamics does not write what is prescribed
        values[array.name] = object_array([ops.emit("input", array.name, k) if x is None else x
                                           for k, x in enumerate(array.new_values)])
    if function.derived:
        values |= function.derived(values, model.link_index(options["link"]), options)
    inputs = [replace(x, new_values=(None,) * x.size) for x in trace.arrays if x.name in (*function.inputs, VARYING)]
    results = []
    for result in function.results:
        remaining = values[result.array or result.name].ravel()[result.first:]
        part = remaining[:prod(_shape(model, result, len(remaining)))]
        results.append(TraceArray(result.name, len(part), tuple(x if isinstance(x, Tracer) else float(x) for x in part)))
    return replace(trace, arrays=(*inputs, *results, *(x for x in trace.arrays if x.name == STATUS)))
