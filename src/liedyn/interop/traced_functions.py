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
from liedyn.codegen.trace import STATUS, Trace, make_trace
from liedyn.codegen.trace import Array as TraceArray
from liedyn.dynamics.batching.arrays import as_mask
from liedyn.dynamics.batching.calls import intercepted_specialization
from liedyn.dynamics.constraints.couplings import follow_couplings_unchecked, reduced_model
from liedyn.dynamics.coriolis import christoffel_symbols, coriolis_matrix
from liedyn.dynamics.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
from liedyn.dynamics.dynamics import (
    bias_force,
    forward_dynamics,
    gravity_force,
    hybrid_dynamics,
    inverse_dynamics,
    inverse_mass_matrix,
    mass_matrix,
)
from liedyn.dynamics.inertial_parameters import regressor
from liedyn.dynamics.kinematics import centre_of_mass, energy, jacobian, jacobian_derivative, link_pose
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import ModelError, NameLookupError, UsageError, nearest
from liedyn.interop.robot_parameters import RobotParameters
from liedyn.model.model import Model


class Result(NamedTuple):
    """A result: its name, the array of the kernel, its axes and its first number in the array.

    axes  "q" for nq, "v" for nv, a digit for its number, "p" for all that are left; "" for a number
    """

    name: str
    array: str
    axes: str
    first: int = 0


class TracedFunction(NamedTuple):
    """A public function that can be traced.

    compute     the public function
    inputs      its arrays, in its order
    results     what it returns
    zero        arrays of the kernel that are zero
    options     its other arguments
    of_tree     whether its results are those of the open tree: they do not depend on loops and couplings
    """

    compute: Callable[..., Any]
    inputs: tuple[str, ...]
    results: tuple[Result, ...]
    zero: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    of_tree: bool = False


FUNCTIONS: dict[str, TracedFunction] = {
    "inverse_dynamics": TracedFunction(inverse_dynamics, ("q", "v", "a"), (Result("tau", "tau", "v"),), options=("passive",)),
    "forward_dynamics": TracedFunction(forward_dynamics, ("q", "v", "tau"), (Result("a", "a", "v"),), options=("passive",)),
    "hybrid_dynamics": TracedFunction(hybrid_dynamics, ("q", "v", "a", "tau"), (Result("a_all", "a", "v"),
                                                                               Result("tau_all", "tau", "v")),
                                      options=("prescribed", "passive")),
    "mass_matrix": TracedFunction(mass_matrix, ("q",), (Result("M", "M", "vv"),)),
    "inverse_mass_matrix": TracedFunction(inverse_mass_matrix, ("q",), (Result("M_inverse", "out", "vv"),)),
    "bias_force": TracedFunction(bias_force, ("q", "v"), (Result("b", "tau", "v"),), zero=("a",), of_tree=True),
    "gravity_force": TracedFunction(gravity_force, ("q",), (Result("g", "tau", "v"),), zero=("v", "a"), of_tree=True),
    "coriolis_matrix": TracedFunction(coriolis_matrix, ("q", "v"), (Result("C", "C", "vv"),)),
    "christoffel_symbols": TracedFunction(christoffel_symbols, ("q",), (Result("Gamma", "out", "vvv"),)),
    "regressor": TracedFunction(regressor, ("q", "v", "a"), (Result("Y", "Y", "vp"),), options=("passive",)),
    "energy": TracedFunction(energy, ("q", "v"), (Result("kinetic", "out", ""), Result("potential", "out", "", 1)),
                             options=("passive",)),
    "centre_of_mass": TracedFunction(centre_of_mass, ("q",), (Result("c", "out", "3", 8),), zero=("v",), of_tree=True),
    "integrate": TracedFunction(integrate, ("q", "x"), (Result("q_next", "out", "q"),), of_tree=True),
    "difference": TracedFunction(difference, ("q0", "q1"), (Result("dv", "out", "v"),), of_tree=True),
    "link_pose": TracedFunction(link_pose, ("q",), (Result("T", "T", "44"),), options=("link",), of_tree=True),
    "jacobian": TracedFunction(jacobian, ("q",), (Result("J", "J", "6v"),), options=("link", "frame"), of_tree=True),
    "jacobian_derivative": TracedFunction(jacobian_derivative, ("q", "v"), (Result("dJ", "dJ", "6v"),),
                                          options=("link", "frame"), of_tree=True),
    "inverse_dynamics_derivatives": TracedFunction(
        inverse_dynamics_derivatives, ("q", "v", "a"),
        (Result("dtau_dq", "Dq", "vv"), Result("dtau_dv", "Dv", "vv"), Result("M", "M", "vv")), options=("passive",)),
    "forward_dynamics_derivatives": TracedFunction(
        forward_dynamics_derivatives, ("q", "v", "tau"),
        (Result("da_dq", "Dq", "vv"), Result("da_dv", "Dv", "vv"), Result("da_dtau", "Du", "vv")), options=("passive",)),
}


class FunctionTrace(NamedTuple):
    """A trace of a public function.

    name      of the public function
    function  its entry in `FUNCTIONS`
    model     the model of the trace, in which couplings are eliminated
    trace     of the kernel
    options   of the function: link, frame, passive, prescribed
    """

    name: str
    function: TracedFunction
    model: Model
    trace: Trace
    options: dict[str, Any]

    def input_size(self, name: str) -> int:
        """Return the number of numbers of an input."""
        return self.model.nq if name.startswith("q") else self.model.nv

    def shape(self, result: Result) -> tuple[int, ...]:
        """Return the shape of a result."""
        shape = _shape(self.model, result)
        size = next(array.size for array in self.trace.arrays if array.name == result.array)
        return tuple(-size // prod(shape) if n < 0 else n for n in shape)

    def results(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the results by name, in their shapes. values: of the arrays of the trace, flat."""
        return {result.name: values[result.array][_part(self.model, result, len(values[result.array]))].reshape(
            _shape(self.model, result)) for result in self.function.results}

    def evaluate(self, expressions: Expressions) -> dict[str, Array]:
        """Return the results by name, in their shapes: arrays of expressions."""
        arrays, sizes = {}, {x.name: x.size for x in self.trace.arrays}
        unwritten = {result.array: [None] * sizes[result.array] for result in self.function.results}
        for name, written in (unwritten | expressions.results(self.trace)).items():
            unchanged = expressions.arrays.get(name)           # accelerations and torques that hybrid dynamics does not write
            arrays[name] = np.empty(len(written), object)
            arrays[name][:] = [unchanged[i] if x is None and unchanged is not None else x for i, x in enumerate(written)]
        return self.results(arrays)


def _shape(model: Model, result: Result) -> list[int]:
    sizes = {"q": model.nq, "v": model.nv, "p": -1}
    return [sizes[axis] if axis in sizes else int(axis) for axis in result.axes]


def _part(model: Model, result: Result, size: int) -> slice:
    """Return the place of a result in an array of this size."""
    shape = _shape(model, result)
    return slice(result.first, size if -1 in shape else result.first + prod(shape))


def trace_function(model: Model, name: str, options: Mapping[str, Any],
                   parameters: RobotParameters | None = None, *, libm: bool = True, single: bool = False) -> FunctionTrace:
    """Return the trace of a public function.

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
    if name == "link_pose":
        trace = _pose_of_link(trace, model.link_index(options["link"]))
    returned = [(array, _returned(traced, array, function.results)) for array in trace.arrays]
    trace = replace(trace, arrays=tuple(part for array, part in returned if part.results or not array.results))
    return FunctionTrace(name, function, traced, trace, options)


def _function_options(model: Model, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a function, with defaults. Raises UsageError for a missing or superfluous one."""
    names = FUNCTIONS[name].options
    if superfluous := [option for option, value in values.items() if value is not None and option not in names]:
        raise UsageError(f"{name} has no option {superfluous[0]}")
    parameters = inspect.signature(FUNCTIONS[name].compute).parameters
    options: dict[str, Any] = {option: parameters[option].default if values.get(option) is None else values[option]
                               for option in names}
    if "link" in names and values.get("link") is None:
        raise UsageError(f"{name} needs the name of a link")
    if "prescribed" in names:
        if values.get("prescribed") is None:
            raise UsageError(f"{name} needs prescribed, a mask of the coordinates with prescribed acceleration")
        options["prescribed"] = as_mask(options["prescribed"], model.nv)
    return options


def _pose_of_link(trace: Trace, index: int) -> Trace:
    """Return the trace with the pose of one link as a matrix (4, 4), in place of the poses (n_links, 12) of all."""
    T = next(array for array in trace.arrays if array.name == "T")
    R, p = T.new_values[12 * index:12 * index + 9], T.new_values[12 * index + 9:12 * index + 12]
    rows = [(*R[3 * k:3 * k + 3], p[k]) for k in range(3)]
    values = tuple(x for row in (*rows, (0.0, 0.0, 0.0, 1.0)) for x in row)
    pose = replace(T, size=16, new_values=values)
    return replace(trace, arrays=tuple(pose if array is T else array for array in trace.arrays))


def _returned(model: Model, array: TraceArray, results: tuple[Result, ...]) -> TraceArray:
    """Return an array of a trace without the numbers that belong to no result, and are no status."""
    returned = np.full(array.size, array.name == STATUS)
    for result in results:
        if result.array == array.name:
            returned[_part(model, result, array.size)] = True
    return replace(array, new_values=tuple(x if used else None for x, used in zip(array.new_values, returned, strict=True)))
