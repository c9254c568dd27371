"""Linear system of a scenario or model about an operating point, in tangent coordinates.

States are the independent coordinates, their velocities and the integrals of pid laws.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.analysis.linear_system import LinearSystem, choose
from liedyn.analysis.operating_point import LinearizationSetup, OperatingPoint, chart, signal_at, thrust_columns
from liedyn.dynamics.constraints.constrained_derivatives import constrained_hybrid_derivatives
from liedyn.dynamics.derivatives import SplitDerivatives, hybrid_dynamics_derivatives
from liedyn.dynamics.kinematics import jacobian
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ModelError
from liedyn.integrators.segment import evaluate_state
from liedyn.kernels.simulation.joint_laws import COMPUTED
from liedyn.model.description import FREE, ONE_DOF
from liedyn.model.spatial import bracket, skew
from liedyn.simulation.constraint_setup import constraint_motions_at
from liedyn.simulation.control.law_derivatives import (
    joint_force_jacobian,
    saturated_forces,
    signal_gradient,
    wrench_force_jacobian,
)

# A, B, C, D of a robot about an operating point -------------------------------------------------------------------------

# Deviations x = [dq; dv] from a motion q0(t), v0(t): q = q0 (+) dq, v = v0 + dv. Since T = T0 exp(dq) for each joint,
#
#     d(dq)/dt = dv - ad_V0 dq            for a ball or free joint of body twist V0; dv alone for the others
#     d(dv)/dt = da/dq dq + da/dv dv + da/du u
#
# With constraints, da are the derivatives of constrained motion, and the system is written in independent coordinates
# (`analysis.operating_point`).
#
# The integrals z of pid laws are further states: each is a force at its joint, and the laws define d(dz)/dt.
#
# Inputs: u_k = a_k for a prescribed coordinate (also if its position or velocity is prescribed, which follow by integration);
# u_k = an addition to tau_k for others; and an addition to each thrust.

_FORCE = {"rad": "N m", "m": "N"}


def check_all_matched(model, prescribed, inputs, outputs) -> None:
    """Raise UsageError for a pattern that matches nothing, and ModelError for a robot without moving joints."""
    if not model.nv:
        raise ModelError(f"the robot {model.name} has no moving joint: there is nothing to linearize")
    for patterns, known, what in ((inputs, _inputs(model, prescribed), "input"), (outputs, _known_outputs(model), "output")):
        choose([name for name, _ in known], patterns, what)


@dataclass(frozen=True, eq=False)
class Integrals:
    """Derivatives of m pid laws.

    k      (m,) their coordinates
    rate   (m, 2 nv) derivatives of the rates of the integrals with respect to the state
    force  (nv, m) derivatives of joint forces with respect to the integrals
    """

    k: np.ndarray
    rate: np.ndarray
    force: np.ndarray


def tangent_system(model, here: OperatingPoint, prescribed, passive, force, push, inputs, outputs, chart=None,
                   constraint_motion=None, integrals: Integrals | None = None) -> LinearSystem:
    """Return the linear system of a model about the operating point `here`.

    prescribed         mask (nv,) of coordinates whose acceleration is the input
    force, push        (nv, 2 nv) derivatives of joint forces and of generalized forces of wrenches with respect to the state, as
                       control laws define them
    inputs, outputs    names or patterns
    chart              `operating_point.CoordinatePartition` of a constrained model
    constraint_motion  motion of driven loops
    integrals          None without pid laws
    """
    check_all_matched(model, prescribed, inputs, outputs)
    nv = model.nv
    integrals = integrals or Integrals(np.zeros(0, dtype=int), np.zeros((0, 2 * nv)), np.zeros((nv, 0)))
    n, last = 2 * nv + len(integrals.k), slice(2 * nv, None)
    d, free, none = _derivatives(model, here, prescribed, passive, constraint_motion), ~prescribed, np.zeros_like(integrals.force)

    def answers(force, push):
        """Return the changes (nv, k) of accelerations and joint forces.

        force  (nv, k) changes of joint forces, read where not prescribed
        push   (nv, k) changes of generalized forces of wrenches
        """
        acting = (force + push)[free]
        da, dtau = d.da_du[:, free] @ acting, d.dtau_du[:, free] @ acting
        dtau[~free] -= push[~free]
        dtau[free] = force[free]
        return da, dtau

    motion_laws, force_laws = answers(np.hstack([force, integrals.force]), np.hstack([push, none]))
    motion_x = np.hstack([d.da_dq, d.da_dv, none]) + motion_laws
    force_x = np.hstack([d.dtau_dq, d.dtau_dv, none]) + force_laws
    thrusts = thrust_columns(model, here.q)
    motion_thrust, force_thrust = answers(np.zeros_like(thrusts), thrusts)
    motion_u, force_u = np.hstack([d.da_du, motion_thrust]), np.hstack([d.dtau_du, force_thrust])
    m = motion_u.shape[1]
    A, B = np.zeros((n, n)), np.vstack([np.zeros((nv, m)), motion_u, np.zeros((n - 2 * nv, m))])
    A[:nv, :nv], A[:nv, nv:2 * nv], A[nv:2 * nv] = -carried(model, here.v), np.eye(nv), motion_x
    A[last, :2 * nv] = integrals.rate
    x = np.eye(n)
    table = {"q": (x[:nv], np.zeros((nv, m))), "v": (x[nv:2 * nv], np.zeros((nv, m))), "a": (motion_x, motion_u),
             "tau": (force_x, force_u)}
    names, C, D, units = _outputs(model, here.q, table, m, outputs)
    sums = _named(model, ["z"] * nv)
    states = _named(model, ["q"] * nv) + _named(model, ["v"] * nv) + [sums[k] for k in integrals.k]
    (state_names, state_units), (input_names, input_units) = (zip(*rows, strict=True)
                                                              for rows in (states, _inputs(model, prescribed)))
    moves = np.append(moving(model, prescribed), np.ones(len(integrals.k), dtype=bool))
    system = LinearSystem(A, B, C, D, state_names, input_names, names, state_units, input_units, units, moves,
                          model_scales(model)).select(inputs=inputs)
    return system if chart is None else chart.reduced(system)


def _named(model, kinds) -> list[tuple[str, str]]:
    """Return (name, unit) of each coordinate as a q, v, a, tau or z."""
    return [(f"{kind}.{name}", {"q": unit, "v": f"{unit}/s", "a": f"{unit}/s^2"}.get(kind, _FORCE[unit]))
            for kind, name, unit in zip(kinds, model.v_names, model.v_units, strict=True)]


def _inputs(model, prescribed) -> list[tuple[str, str]]:
    kinds = ["a" if given else "tau" for given in prescribed]
    return _named(model, kinds) + [(f"thrust.{actuator.name}", "N") for actuator in model.description.actuators]


def _known_outputs(model) -> list[tuple[str, str]]:
    """Return (name, unit) of all outputs: q, v, a and tau of coordinates, then positions of link origins."""
    coordinates = [entry for kind in ("q", "v", "a", "tau") for entry in _named(model, [kind] * model.nv)]
    return coordinates + [(f"p.{link}.{axis}", "m") for link in model.link_names for axis in "xyz"]


def _outputs(model, q, table, m: int, patterns):
    """Return names, C, D and units of the outputs that match the patterns.

    table  {kind: (C, D)} of all coordinates
    m      number of inputs
    """
    n, known = table["q"][0].shape[1], _known_outputs(model)
    chosen = [known[k] for k in choose([name for name, _ in known], patterns, "output")]
    C, D = np.zeros((len(chosen), n)), np.zeros((len(chosen), m))
    for row, (name, _) in enumerate(chosen):
        kind, _, rest = name.partition(".")
        if kind == "p":
            link, _, axis = rest.rpartition(".")
            C[row, :model.nv] = jacobian(model, q, link, frame="local_world_aligned")[3 + "xyz".index(axis)]
        else:
            C[row], D[row] = (block[model.v_names.index(rest)] for block in table[kind])
    return tuple(name for name, _ in chosen), C, D, tuple(unit for _, unit in chosen)


def _derivatives(model, here: OperatingPoint, prescribed, passive, constraint_motion) -> SplitDerivatives:
    state = model, here.q, here.v, here.a, here.tau, prescribed
    if model.nc:
        return constrained_hybrid_derivatives(*state, f_ext=here.f_ext, passive=passive,
                                              constraint_motion=constraint_motion).split()
    return hybrid_dynamics_derivatives(*state, f_ext=here.f_ext, passive=passive).split()


def carried(model, v) -> np.ndarray:
    """Return ad (nv, nv) of the body twists of ball and free joints, zero for other joints: d(dq)/dt = dv - ad dq."""
    out = np.zeros((model.nv, model.nv))
    for joint in model.joints:
        if joint.kind != ONE_DOF:
            out[joint.v, joint.v] = bracket(v[joint.v]) if joint.kind == FREE else skew(v[joint.v])
    return out


def moving(model, prescribed) -> np.ndarray:
    """Return the mask (2 nv,) of the states that forces affect.

    If forces affect one coordinate of a ball or free joint, they affect all its positions, which are coupled.
    """
    position = ~prescribed
    for joint in model.joints:
        if joint.kind != ONE_DOF:
            position[joint.v] = position[joint.v].any()
    return np.concatenate([position, ~prescribed])


# linear system of a scenario ---------------------------------------------------------------------------------------------

def linear_system(setup: LinearizationSetup, problem, here: OperatingPoint, inputs="*", outputs="q.*", prescribed=None,
                  independent=(), acting: bool = True) -> LinearSystem:
    """Return the linear system about an operating point of a problem from `with_fixed_inputs`.

    prescribed   mask (nv,); default: that of the setup
    independent  names or patterns of independent coordinates of a constrained model
    acting       False: the integrals of pid laws have no effect on forces
    """
    prescribed = setup.prescribed if prescribed is None else prescribed
    force, push = joint_force_jacobian(problem, here.t, here.q, here.v,
                                       here.integral), wrench_force_jacobian(problem, here.t, here.q, here.v)
    constraint_motion = constraint_motions_at(problem, here.t)
    independent = chart(problem.model, here.q, here.v, prescribed, constraint_motion, independent)
    return tangent_system(setup.model, here, prescribed, problem.passive, force, push, inputs, outputs, independent,
                          constraint_motion, integrals_of(problem, here, acting))


def integrals_of(problem, here: OperatingPoint, acting: bool = True) -> Integrals:
    """Return the derivatives of the integrals of pid laws, and of joint forces with respect to the integrals.

    An integral that rests because a force is at its limit keeps its value. A force at its limit does not depend on integrals.
    """
    schedule, nv, laws = problem.schedule, problem.model.nv, problem.joint_laws
    k = schedule.integral
    rate, force = np.zeros((len(k), 2 * nv)), np.zeros((nv, len(k)))
    if not len(k):
        return Integrals(k, rate, force)
    for row, i, ki in zip(rate, k, schedule.ki, strict=True):
        at_target = signal_at(problem, schedule.target[i], here) == here.q[schedule.q_of_v[i]]
        if here.integral_rate[i] != 0.0 or at_target:          # else the integral is stopped by a limit
            row += ki * signal_gradient(problem, schedule.target[i], here.t, here.q, here.v)
            row[i] -= ki
    if acting:
        force[k, np.arange(len(k))] = 1.0
        if laws is not None and (laws.active_laws[COMPUTED] or laws.task is not None):
            force[laws.driven] = _of_computed(problem, here)[laws.driven]          # computed torque depends on all forces
        if laws is not None:
            force[saturated_forces(problem, here.t, here.q, here.v, here.integral)[1]] = 0.0
    return Integrals(k, rate, force)


def _of_computed(problem, here: OperatingPoint) -> np.ndarray:
    """Return the derivatives (nv, m) of joint forces with respect to integrals by differences: forces are affine in them."""
    p, nv = problem.without_stops, problem.model.nv

    def forces(x):
        return evaluate_state(p, here.t, here.q, here.v, integral=here.integral + x).tau.copy()
    return np.column_stack([0.5 * (forces(e) - forces(-e)) for e in np.eye(nv)[problem.schedule.integral]])
