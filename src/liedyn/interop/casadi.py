"""Dynamics and kinematics of a robot as functions of CasADi, for optimal control: IPOPT, acados and others.

    import liedyn as ld

    f = ld.casadi_function(model, "forward_dynamics")          # f(q, v, tau) -> a, a casadi.Function of SX

The function consists of the operations of the robot's trace, so CasADi differentiates it, generates C code and maps it.
"""
from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np

from liedyn.arrays import ArrayLike, Frame
from liedyn.codegen.operations import LIBM
from liedyn.codegen.rhs import trace_rhs
from liedyn.codegen.scenario_inputs import ScenarioTables
from liedyn.codegen.targets.target import Expressions
from liedyn.codegen.trace import VARYING
from liedyn.codegen.tracer import NotTraceableError
from liedyn.errors import NameLookupError, ScenarioError, UsageError, list_names, nearest, warn
from liedyn.interop.robot_parameters import RobotParameters
from liedyn.interop.scenario_step import common_obstacles, piece_tables, raise_for_obstacles, state_switches, value_names
from liedyn.interop.traced_functions import trace_function
from liedyn.io.yaml_values import Overrides, override_texts
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS
from liedyn.kernels.simulation.signals import ORDER
from liedyn.model.model import Model
from liedyn.public_calls import explained
from liedyn.simulation.preparation import prepare


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
        One of those that `liedyn export --help` lists: dynamics and their derivatives, matrices, kinematics, regressors,
        constraints.
    link : str, optional
        For link_pose, link_twist, link_acceleration, jacobian and jacobian_derivative.
    frame : "local", "local_world_aligned" or "world", optional
        For twists, accelerations and Jacobians of links; default: "local".
    passive : bool, optional
        For dynamics, regressor and energy: whether joint springs, damping and friction act; default: True.
    prescribed : (nv,) array of bool
        For hybrid_dynamics and its derivatives: coordinates with prescribed acceleration. hybrid_dynamics has the outputs a_all
        and tau_all.
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
    symbols = {name: casadi.SX.sym(name, size) for name, size in traced.inputs.items()}
    arrays = dict(symbols)
    if of_robot is not None:
        symbols["parameters"] = casadi.SX.sym("parameters", len(of_robot.names))
        arrays[VARYING] = of_robot.values(dict(zip(of_robot.names, casadi.vertsplit(symbols["parameters"]), strict=True)), float)
    results = traced.evaluate(Expressions(_table(casadi), arrays))
    return casadi.Function(function, list(symbols.values()), [_matrix(casadi, x) for x in results.values()], list(symbols),
                           list(results))


@explained
def casadi_right_hand_side(scenario: str | os.PathLike[str] | Mapping[str, Any], overrides: Overrides = (), *,
                           inputs: Sequence[str] = ()) -> Any:
    """Return the accelerations of a scenario as a `casadi.Function` of SX expressions: robot, laws, contacts, motors, signals.

    It has the inputs t, q, v, z and inputs, and the outputs a, tau and dz: accelerations, generalized forces and the rates of the
    states z of control laws, which are empty for most laws.

    Parameters
    ----------
    scenario, overrides
        As for `run_scenario`.
    inputs : sequence of str
        Numbers of the scenario that are inputs, such as gains ("kp of elbow") and constant signals. An unknown name is an error
        that lists them.

    Returns
    -------
    casadi.Function

    Raises
    ------
    ScenarioError
        For an invalid scenario, and for one with constraints, a sampled controller, rigid friction, several phases, or limits,
        motors and stops that switch: the message names the key.
    NameLookupError
        For an input that the scenario does not have.
    UsageError
        If CasADi is not installed.

    Examples
    --------
    >>> scenario = {"robot": "robots/double_pendulum.yaml", "duration": 1, "joints": {"elbow": {"torque": 0.4}}}
    >>> ld.casadi_right_hand_side(scenario, inputs=["torque of elbow"])
    Function(right_hand_side:(t,q[2],v[2],z[0],inputs)->(a[2],tau[2],dz[0]) SXFunction)
    """
    casadi = _casadi()
    run = prepare(scenario, override_texts(overrides, ScenarioError))
    problem = run.problem
    tables = problem.tables()._replace(varying=())
    raise_for_obstacles("a function of CasADi", [
        *common_obstacles(run), ("constraints", problem.solves_constraints, None, "a robot without loops"),
        ("a sampled controller", problem.sampled is not None, None, "continuous laws"),
        *((f"switches of the state: {name}", True, place, "smooth laws and signals, without limits, stops, gears with losses, "
           "abs, min, step") for name, place in state_switches(problem))])
    names, nv = list(value_names(problem, tables)), problem.model.nv
    if unknown := next((name for name in inputs if name not in names), None):
        hint = nearest(unknown, dict.fromkeys(names), written=repr) or f"it has {list_names(names, 20) or 'none'}"
        raise NameLookupError(f"the scenario has no number {unknown!r}; {hint}")
    try:
        trace = trace_rhs(tables, libm=True)
    except NotTraceableError:
        raise ScenarioError("a function of CasADi cannot contain a law or signal that branches on the state") from None
    warn(run.warnings)
    t, q, v, z, chosen = (casadi.SX.sym(name, size) for name, size in (
        ("t", 1), ("q", problem.model.nq), ("v", nv), ("z", tables.law_states), ("inputs", len(inputs))))
    values = casadi.SX(tables.scenario_values)
    for k, name in enumerate(inputs):
        values[names.index(name)] = chosen[k]
    # y: [displacement from q; v; z; work]
    arrays = {"t": t, "q0": q, "y": casadi.vertcat(casadi.SX.zeros(nv), v, z, 0), "values": values,
              "curves": list(_curves(casadi, t, tables))}
    results = Expressions(_table(casadi), arrays).results(trace)
    outputs = results["a"], results["tau"], results["dy"][2 * nv:2 * nv + tables.law_states]
    return casadi.Function("right_hand_side", [t, q, v, z, chosen], [casadi.vertcat(*x) for x in outputs],
                           ["t", "q", "v", "z", "inputs"], ["a", "tau", "dz"])


def _curves(casadi: Any, t: Any, tables: ScenarioTables) -> Iterator[Any]:
    """Yield the Taylor coefficients at t of the curves of a scenario: moves and tables."""
    first, breaks, coefficients = piece_tables(tables)
    for begin, end in pairwise(first):
        for i in range(CURVE_COEFFICIENTS):
            pieces = [sum(comb(j, i) * coefficients[k, j] * (t - breaks[k])**(j - i) for j in range(i, ORDER))
                      for k in range(begin, end)]
            yield reduce(lambda x, piece: casadi.if_else(t < piece[0], x, piece[1]), zip(breaks[begin + 1:end], pieces[1:],
                                                                                         strict=True), pieces[0])


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
