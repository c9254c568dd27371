"""Linear system of a scenario or model about an operating point, in tangent coordinates.

States are the independent coordinates, their velocities and the integrals of pid laws.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.analysis.linear_system import LinearSystem, choose
from liedyn.analysis.operating_point import (
    CoordinatePartition,
    LinearizationSetup,
    OperatingPoint,
    partition_coordinates,
    signal_at,
)
from liedyn.arrays import Array, Integers, Mask, Patterns
from liedyn.dynamics.constraints.constrained_derivatives import constrained_hybrid_derivatives
from liedyn.dynamics.derivatives import SplitDerivatives, hybrid_dynamics_derivatives
from liedyn.dynamics.kinematics import jacobian
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ModelError
from liedyn.integrators.contact_forces import sliding_friction
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.segment import evaluate_state
from liedyn.kernels.simulation.joint_laws import COMPUTED
from liedyn.model.description import FREE, ONE_DOF
from liedyn.model.model import Model
from liedyn.model.spatial import bracket, skew
from liedyn.simulation.constraint_setup import constraint_motions_at
from liedyn.simulation.control.law_derivatives import (
    joint_force_jacobian,
    saturated_forces,
    signal_gradient,
    wrench_force_jacobian,
)
from liedyn.simulation.control.thrusts import thrust_columns
from liedyn.simulation.joint_friction import prescribed_slopes
from liedyn.simulation.trajectory_columns import coordinate_columns, coordinate_index, thrust_names

# A, B, C, D of a robot about an operating point -------------------------------------------------------------------------

# Deviations x = [dq; dv; dz] from a motion q0(t), v0(t): q = q0 (+) dq, v = v0 + dv. Since T = T0 exp(dq) for each joint,
# d(dq)/dt = dv - ad_V0 dq for a ball or free joint of body twist V0, and dv for the others. The integrals z of pid laws are
# further states: each is a force at its joint, and the laws define d(dz)/dt.
#
#              dq       dv      dz                du
#          [ -ad_V0     1       0    ]         [   0   ]
#      A = [ da/dq    da/dv   da/dz  ]     B = [ da/du ]      the rates of dq, dv and dz
#          [ dz./dq   dz./dv    0    ]         [   0   ]
#
#          [   1        0       0    ]         [   0   ]
#      C = [   0        1       0    ]     D = [   0   ]      outputs q, v, a and tau
#          [ da/dq    da/dv   da/dz  ]         [ da/du ]
#          [ dtau/dq  dtau/dv dtau/dz]         [dtau/du]
#
# da and dtau are the derivatives of dynamics at constant forces, and the responses to the forces that control laws change with
# the state. With constraints they are the derivatives of constrained motion, and the system is then written in independent
# coordinates (`operating_point.CoordinatePartition`).
#
# Inputs: u_k = a_k for a prescribed coordinate (also if its position or velocity is prescribed, which follow by integration);
# u_k = an addition to tau_k for others; and an addition to each thrust.

_FORCE = {"rad": "N m", "m": "N"}


def check_all_matched(model: Model, prescribed: Mask, inputs: Patterns, outputs: Patterns) -> None:
    """Raise UsageError for a pattern that matches nothing, and ModelError for a robot without moving joints."""
    if not model.nv:
        raise ModelError(f"the robot {model.name} has no moving joint: there is nothing to linearize")
    for patterns, known, kind in ((inputs, _inputs(model, prescribed), "input"), (outputs, _known_outputs(model), "output")):
        choose([name for name, _ in known], patterns, kind)


@dataclass(frozen=True, eq=False)
class Integrals:
    """Derivatives of m pid laws.

    coordinates  (m,) their coordinates
    rate         (m, 2 nv) derivatives of the rates of the integrals with respect to q, v
    force        (nv, m) derivatives of generalized forces with respect to the integrals
    """

    coordinates: Integers
    rate: Array
    force: Array


@dataclass(frozen=True, eq=False)
class LawDerivatives:
    """Derivatives of the forces that control laws define.

    joint_force   (nv, 2 nv) derivatives of generalized forces with respect to q, v
    wrench_force  (nv, 2 nv) derivatives of generalized forces of wrenches and of friction, which are not part of tau
    integrals     derivatives of pid laws
    """

    joint_force: Array
    wrench_force: Array
    integrals: Integrals

    @classmethod
    def zero(cls, nv: int) -> LawDerivatives:
        """Return the derivatives of forces that do not depend on the state."""
        joint_force, wrench_force = np.zeros((2, nv, 2 * nv))
        return cls(joint_force, wrench_force, Integrals(np.zeros(0, dtype=int), np.zeros((0, 2 * nv)), np.zeros((nv, 0))))


@dataclass(frozen=True, eq=False)
class _Responses:
    """Derivatives of accelerations and generalized forces with respect to the state (nv, n) and the inputs (nv, m)."""

    a_x: Array
    a_u: Array
    tau_x: Array
    tau_u: Array


def tangent_system(model: Model, point: OperatingPoint, dynamics: SplitDerivatives, laws: LawDerivatives,      # noqa: PLR0913
                   prescribed: Mask, inputs: Patterns, outputs: Patterns, partition: CoordinatePartition | None,
                   sticking: Mask | bool = False) -> LinearSystem:
    """Return the linear system of a model about an operating point.

    dynamics         derivatives of the motion at the point, from `motion_derivatives`
    prescribed       mask (nv,) of coordinates whose acceleration is the input
    inputs, outputs  names or patterns
    partition        independent coordinates of a constrained model, in which the system is written
    sticking         mask (nv,) of coordinates that friction holds at rest
    """
    check_all_matched(model, prescribed, inputs, outputs)
    responses, sums = _responses(model, point, dynamics, laws, prescribed), laws.integrals.coordinates
    known_outputs = _known_outputs(model)
    selected = choose([name for name, _ in known_outputs], outputs, "output")
    names, units = zip(*(known_outputs[k] for k in selected), strict=True)
    C, D = _output_matrices(model, point.q, responses, names)
    integral_states = _named(model, ["z"] * model.nv)
    states = _named(model, ["q"] * model.nv) + _named(model, ["v"] * model.nv) + [integral_states[k] for k in sums]
    state_names, state_units = zip(*states, strict=True)
    input_names, input_units = zip(*_inputs(model, prescribed), strict=True)
    moving = np.append(moving_states(model, prescribed | sticking), np.ones(len(sums), dtype=bool))
    system = LinearSystem(_state_matrix(model, point, responses, laws.integrals), _input_matrix(responses), C, D, state_names,
                          input_names, names, state_units, input_units, units, moving, model_scales(model)).select(inputs=inputs)
    return system if partition is None else partition.reduced(system)


def motion_derivatives(model: Model, point: OperatingPoint, prescribed: Mask, passive: bool,
                       constraint_motion: Mapping[str, Any] | None, sticking: Mask | bool = False,
                       friction: Array | float = 0.0) -> SplitDerivatives:
    """Return the derivatives of accelerations and generalized forces at constant forces of the control laws.

    constraint_motion  motions of driven loops
    sticking           mask (nv,) of coordinates that friction holds at rest: forces have no effect on them
    friction           (nv,) friction, which acts in addition to tau
    """
    state = model, point.q, point.v, point.a, point.tau + friction, prescribed | sticking
    d = (constrained_hybrid_derivatives(*state, f_ext=point.f_ext, passive=passive, constraint_motion=constraint_motion)
         if model.nc else hybrid_dynamics_derivatives(*state, f_ext=point.f_ext, passive=passive)).split()
    at_rest = np.flatnonzero(np.broadcast_to(sticking, point.v.shape))
    for derivative in (d.da_du, d.dtau_du):
        derivative[:, at_rest] = 0.0
    for derivative in (d.dtau_dq, d.dtau_dv, d.dtau_du):
        derivative[at_rest] = 0.0
    d.dtau_du[at_rest, at_rest] = 1.0
    return d


def _responses(model: Model, point: OperatingPoint, d: SplitDerivatives, laws: LawDerivatives, prescribed: Mask) -> _Responses:
    """Return the derivatives of dynamics, with the responses to forces that change with the state and to thrusts."""
    free, no_wrench = ~prescribed, np.zeros_like(laws.integrals.force)

    def response(joint_force: Array, wrench_force: Array) -> tuple[Array, Array]:
        """Return the changes (nv, k) of accelerations and generalized forces.

        joint_force   (nv, k) changes of generalized forces, read where not prescribed
        wrench_force  (nv, k) changes of generalized forces of wrenches
        """
        force = (joint_force + wrench_force)[free]
        da, dtau = d.da_du[:, free] @ force, d.dtau_du[:, free] @ force
        dtau[~free] -= wrench_force[~free]
        dtau[free] = joint_force[free]
        return da, dtau

    a_laws, tau_laws = response(np.hstack([laws.joint_force, laws.integrals.force]), np.hstack([laws.wrench_force, no_wrench]))
    thrusts = thrust_columns(model, point.q)
    a_thrust, tau_thrust = response(np.zeros_like(thrusts), thrusts)
    return _Responses(np.hstack([d.da_dq, d.da_dv, no_wrench]) + a_laws, np.hstack([d.da_du, a_thrust]),
                      np.hstack([d.dtau_dq, d.dtau_dv, no_wrench]) + tau_laws, np.hstack([d.dtau_du, tau_thrust]))


def _state_matrix(model: Model, point: OperatingPoint, responses: _Responses, integrals: Integrals) -> Array:
    """Return A (n, n)."""
    nv, n = responses.a_x.shape
    A = np.zeros((n, n))
    A[:nv, :nv], A[:nv, nv:2 * nv] = -_twist_adjoint(model, point.v), np.eye(nv)
    A[nv:2 * nv] = responses.a_x
    A[2 * nv:, :2 * nv] = integrals.rate
    return A


def _input_matrix(responses: _Responses) -> Array:
    """Return B (n, m)."""
    (nv, n), m = responses.a_x.shape, responses.a_u.shape[1]
    return np.vstack([np.zeros((nv, m)), responses.a_u, np.zeros((n - 2 * nv, m))])


def _output_matrices(model: Model, q: Array, responses: _Responses, names: Sequence[str]) -> tuple[Array, Array]:
    """Return C (p, n) and D (p, m) of the outputs with these names."""
    (nv, n), m = responses.a_x.shape, responses.a_u.shape[1]
    C, D, x = np.zeros((len(names), n)), np.zeros((len(names), m)), np.eye(n)
    blocks = {"q": (x[:nv], np.zeros((nv, m))), "v": (x[nv:2 * nv], np.zeros((nv, m))),
              "a": (responses.a_x, responses.a_u), "tau": (responses.tau_x, responses.tau_u)}
    for row, name in enumerate(names):
        kind, _, coordinate = name.partition(".")
        if kind == "p":
            link, _, axis = coordinate.rpartition(".")
            C[row, :nv] = jacobian(model, q, link, frame="local_world_aligned")[3 + "xyz".index(axis)]
        else:
            C[row], D[row] = (block[coordinate_index(model, name)] for block in blocks[kind])
    return C, D


def _named(model: Model, kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Return (name, unit) of each coordinate as a q, v, a, tau or z."""
    return [(coordinate_columns(model, kind)[k], {"q": unit, "v": f"{unit}/s", "a": f"{unit}/s^2"}.get(kind, _FORCE[unit]))
            for k, (kind, unit) in enumerate(zip(kinds, model.v_units, strict=True))]


def _inputs(model: Model, prescribed: Mask) -> list[tuple[str, str]]:
    kinds = ["a" if is_prescribed else "tau" for is_prescribed in prescribed]
    return _named(model, kinds) + [(name, "N") for name in thrust_names(model)]


def _known_outputs(model: Model) -> list[tuple[str, str]]:
    """Return (name, unit) of all outputs: q, v, a and tau of coordinates, then positions of link origins."""
    coordinates = [entry for kind in ("q", "v", "a", "tau") for entry in _named(model, [kind] * model.nv)]
    return coordinates + [(f"p.{link}.{axis}", "m") for link in model.link_names for axis in "xyz"]


def _twist_adjoint(model: Model, v: Array) -> Array:
    """Return ad (nv, nv) of the body twists of ball and free joints, zero for other joints: d(dq)/dt = dv - ad dq."""
    out = np.zeros((model.nv, model.nv))
    for joint in model.joints:
        if joint.kind != ONE_DOF:
            out[joint.v, joint.v] = bracket(v[joint.v]) if joint.kind == FREE else skew(v[joint.v])
    return out


def moving_states(model: Model, prescribed: Mask) -> Mask:
    """Return the mask (2 nv,) of the states that forces affect.

    If forces affect one coordinate of a ball or free joint, they affect all its positions, which are coupled.
    """
    position = ~prescribed
    for joint in model.joints:
        if joint.kind != ONE_DOF:
            position[joint.v] = position[joint.v].any()
    return np.concatenate([position, ~prescribed])


# linear system of a scenario --------------------------------------------------------------------------------------------

def linear_system(setup: LinearizationSetup, problem: InitialValueProblem, point: OperatingPoint, *, inputs: Patterns = "*",
                  outputs: Patterns = "q.*", prescribed: Mask | None = None, independent: Patterns = (),
                  integrals_act: bool = True) -> LinearSystem:
    """Return the linear system about an operating point of a problem from `with_fixed_inputs`.

    prescribed     mask (nv,); default: that of the setup
    independent    names or patterns of independent coordinates of a constrained model
    integrals_act  False: the integrals of pid laws have no effect on forces
    """
    mask, sticking = setup.prescribed if prescribed is None else prescribed, setup.sticking
    wrench_force = wrench_force_jacobian(problem, point.t, point.q, point.v)
    wrench_force[:, problem.model.nv:] += np.diag(prescribed_slopes(problem, setup.frictions, point.v))
    laws = LawDerivatives(joint_force_jacobian(problem, point.t, point.q, point.v, point.integral), wrench_force,
                          integral_derivatives(problem, point, integrals_act))
    constraint_motion = constraint_motions_at(problem, point.t)
    partition = partition_coordinates(problem.model, point.q, point.v, mask | sticking, constraint_motion, independent)
    dynamics = motion_derivatives(setup.model, point, mask, problem.passive, constraint_motion, sticking,
                                  sliding_friction(problem, point.v[None])[0])
    return tangent_system(setup.model, point, dynamics, laws, mask, inputs, outputs, partition, sticking)


def integral_derivatives(problem: InitialValueProblem, point: OperatingPoint, act: bool = True) -> Integrals:
    """Return the derivatives of the integrals of pid laws, and of generalized forces with respect to the integrals.

    An integral that rests because a force is at its limit keeps its value. A force at its limit does not depend on integrals.
    """
    schedule, nv, laws = problem.schedule, problem.model.nv, problem.joint_laws
    coordinates = schedule.integral
    rate, force = np.zeros((len(coordinates), 2 * nv)), np.zeros((nv, len(coordinates)))
    if not len(coordinates):
        return Integrals(coordinates, rate, force)
    for row, (i, ki) in enumerate(zip(coordinates, schedule.ki, strict=True)):
        at_target = signal_at(problem, schedule.target[i], point) == point.q[schedule.q_of_v[i]]
        if point.integral_rate[i] != 0.0 or at_target:         # else the integral is stopped by a limit
            rate[row] += ki * signal_gradient(problem, schedule.target[i], point.t, point.q, point.v)
            rate[row, i] -= ki
    if act:
        force[coordinates, np.arange(len(coordinates))] = 1.0
        if laws is not None and (laws.active_laws[COMPUTED] or laws.task is not None):
            force[laws.driven] = _computed_torque_derivatives(problem, point)[laws.driven]     # depends on all forces
        if laws is not None:
            force[saturated_forces(problem, point.t, point.q, point.v, point.integral)[1]] = 0.0
    return Integrals(coordinates, rate, force)


def _computed_torque_derivatives(problem: InitialValueProblem, point: OperatingPoint) -> Array:
    """Return the derivatives (nv, m) of generalized forces with respect to integrals by differences, since they are affine."""
    p, nv = problem.without_stops, problem.model.nv

    def forces(x: Array) -> Array:
        return evaluate_state(p, point.t, point.q, point.v, integral=point.integral + x).tau.copy()
    return np.column_stack([0.5 * (forces(e) - forces(-e)) for e in np.eye(nv)[problem.schedule.integral]])
