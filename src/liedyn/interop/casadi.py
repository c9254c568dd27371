"""Dynamics and kinematics of a robot as functions of CasADi, for optimal control: IPOPT, acados and others.

    import liedyn as ld

    f = ld.casadi_function(model, "forward_dynamics")          # f(q, v, tau) -> a, a casadi.Function of SX

The function consists of the operations of the robot's trace, so CasADi differentiates it, generates C code and maps it.
"""
from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from liedyn.arrays import ArrayLike, Frame
from liedyn.codegen.operations import LIBM
from liedyn.codegen.targets.target import Expressions
from liedyn.codegen.trace import VARYING
from liedyn.errors import UsageError
from liedyn.interop.robot_parameters import RobotParameters
from liedyn.interop.traced_functions import trace_function
from liedyn.model.model import Model
from liedyn.public_calls import explained


@explained
def casadi_function(model: Model, function: str, *, link: str | None = None, frame: Frame | None = None,
                    passive: bool | None = None, prescribed: ArrayLike | None = None, parameters: Sequence[str] = ()) -> Any:
    """Return a function of the package for one robot as a `casadi.Function` of SX expressions.

    Its inputs are the arrays of the public function for one state, in the same order, as column vectors. Its outputs are the
    results in their shapes; those with three axes are matrices whose rows have the first axis. Inputs and outputs have names:
    `f(q=..., v=..., tau=...)["a"]`. The function does not check its inputs: with NaN, a quaternion that is not of unit norm or a
    singular inertia, its results are meaningless.

    Parameters
    ----------
    model : Model
    function : str
        inverse_dynamics, forward_dynamics, hybrid_dynamics, mass_matrix, inverse_mass_matrix, bias_force, gravity_force,
        coriolis_matrix, christoffel_symbols, regressor, energy, centre_of_mass, integrate, difference, link_pose,
        jacobian, jacobian_derivative, inverse_dynamics_derivatives or forward_dynamics_derivatives.
    link : str, optional
        For link_pose, jacobian and jacobian_derivative.
    frame : "local", "local_world_aligned" or "world", optional
        For jacobian and jacobian_derivative; default: "local".
    passive : bool, optional
        For dynamics, regressor and energy: whether joint springs, damping and friction act; default: True.
    prescribed : (nv,) array of bool
        For hybrid_dynamics: coordinates with prescribed acceleration. It has the outputs a_all and tau_all.
    parameters : sequence of str
        Names of `parameter_names` that become another input, `parameters`: masses, centres of mass, inertias, gravity, positions
        of joints, springs, damping, friction, armature.

    Returns
    -------
    casadi.Function

    Raises
    ------
    UsageError
        If CasADi is not installed, or an option is missing or does not belong to the function.
    NameLookupError
        For an unknown function, link or parameter.
    ModelError
        For the dynamics of a robot with loops, or a robot without a moving joint.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> f = ld.casadi_function(model, "forward_dynamics")
    >>> f
    Function(forward_dynamics:(q[2],v[2],tau[2])->(a[2]) SXFunction)
    >>> np.allclose(f([0.3, -0.2], [1, 0], [0, 0]).full().ravel(), ld.forward_dynamics(model, [0.3, -0.2], [1, 0], [0, 0]))
    True
    """
    casadi = _casadi()
    of_robot = RobotParameters(model, parameters) if parameters else None
    traced = trace_function(model, function, {"link": link, "frame": frame, "passive": passive, "prescribed": prescribed},
                            of_robot)
    symbols = {name: casadi.SX.sym(name, traced.input_size(name)) for name in traced.function.inputs}
    arrays = dict(symbols)
    if of_robot is not None:
        symbols["parameters"] = casadi.SX.sym("parameters", len(of_robot.names))
        arrays[VARYING] = of_robot.values(dict(zip(of_robot.names, casadi.vertsplit(symbols["parameters"]), strict=True)), float)
    results = traced.evaluate(Expressions(_table(casadi), arrays))
    return casadi.Function(function, list(symbols.values()), [_matrix(casadi, x) for x in results.values()], list(symbols),
                           list(results))


def _casadi() -> Any:
    if find_spec("casadi") is None:
        raise UsageError("casadi_function requires the package casadi: pip install 'liedyn[casadi]'")
    return import_module("casadi")


def _table(casadi: Any) -> Mapping[str, Any]:
    return {"fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fdiv": operator.truediv,
            "quotient": operator.truediv, "fneg": operator.neg, "fabs": casadi.fabs, "sqrt": casadi.sqrt,
            "less": lambda a, b, yes, no: casadi.if_else(a < b, yes, no),
            **{name: getattr(casadi, {"pow": "power"}.get(name, name)) for name in LIBM}}


def _matrix(casadi: Any, x: np.ndarray) -> Any:
    """Return an array of expressions as a matrix: a column of a vector, rows of the first axis otherwise."""
    rows = x.reshape(len(x), -1) if x.ndim else x.reshape(1, 1)
    return casadi.vertcat(*(casadi.horzcat(*row) for row in rows))
