"""Variational integrator: fixed steps, for long motion without energy drift."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.arrays import ArrayLike
from liedyn.errors import Place, ScenarioError, list_names
from liedyn.integrators.problem import InitialValueProblem, Options, SegmentStart
from liedyn.integrators.run_state import (
    EVALUATIONS,
    FIRST_RATE_KNOWN,
    NEXT_OUTPUT,
    STEPS,
    T_NOW,
    next_fixed_step,
    output_is_due,
    store_evaluation,
)
from liedyn.integrators.segment import ImplicitStepper, SampledTorques
from liedyn.joints.joint_model import resistance_derivative, tree_views
from liedyn.kernels.constraints.driver import copy_array
from liedyn.kernels.constraints.pivoting import PivotWorkspace, factor_pivoted, isolate_prescribed, solve_pivoted
from liedyn.kernels.coriolis import coriolis
from liedyn.kernels.hybrid_dynamics import hybrid, hybrid_workspace
from liedyn.kernels.inverse_dynamics_derivatives import DerivativesWorkspace, derivatives_workspace, derivatives_workspace_size
from liedyn.kernels.manifold import retract
from liedyn.kernels.mass_matrix import CompositeWorkspace, composite_rigid_body
from liedyn.kernels.newton_euler import NewtonEulerWorkspace, newton_euler
from liedyn.kernels.simulation.joint_laws import remove_friction
from liedyn.kernels.simulation.rate_evaluation import GenericArguments
from liedyn.kernels.simulation.right_hand_side import (
    BAD_SIGNAL,
    FINISHED,
    NOT_CONVERGED,
    NOT_FINITE,
    RUNNING,
    SINGULAR,
    apply_inputs,
    joint_power,
    without_laws,
)
from liedyn.kernels.simulation.signals import ACCELERATION, CONSTANT, TORQUE, InputSchedule, Signals
from liedyn.lie.se3 import dexp_inv, dot, neg_dad
from liedyn.lie.so3 import dexp_inv3
from liedyn.lie.vectors import clear, cross, load3, store3
from liedyn.model.description import NV, ONE_DOF
from liedyn.model.model import Model
from liedyn.numba_tools.decorators import (
    address_for,
    array_address,
    call_with_values,
    inline_kernel,
    internal_kernel,
    kernel,
    packed_values,
    value_at,
)

# variational ------------------------------------------------------------------------------------------------------------

# Variational integrator on the configuration manifold: it conserves momentum maps, and the energy error stays bounded.
#
# For the discrete Lagrangian by the trapezoidal rule, with constant velocity v in a step, q_1 = q_0 (+) h v,
#
#     L_d(q_0, q_1) = h/2 (L(q_0, v) + L(q_1, v)),          L(q, v) = 1/2 v^T M(q) v - V(q)
#
# the discrete Euler-Lagrange equations (Marsden and West 2001, 1.5.2; with forces, 3.2.1) say, with x = h v, the right Jacobian
# J(x) of exp, p-bar = 1/2 (M(q_0) + M(q_1)) v and Phi = dL/dq + f (by q in the body frames of the joints, v constant):
#
#     p_0 = J(-x)^-T p-bar - h/2 Phi(q_0, v)
#     p_1 = J(x)^-T p-bar + h/2 Phi(q_1, v)
#
# p = M(q) v is the momentum at the ends. The first equation is solved for v by Newton's method, whose matrix omits the curvature
# of the charts. The Newton-Euler algorithm computes b = ID(q, v, 0). With the Coriolis matrix, dM/dt = C + C^T, so that
#
#     Phi = (dM/dt) v - ad*_v (M v) - b + tau
#
# where ad* is that of ball and free joints. Coordinates of locked joints and at stops keep v = 0: their rows are omitted.

MAX_ITERATIONS = 30          # Newton iterations
_ROUNDING = 4e-16            # of the velocity: smaller corrections are rounding
_STALL_TOLERANCE = 1e-9      # of the velocity: accepted correction if the iteration stalls
_SLOW_CONVERGENCE = 0.1      # reduction factor of the correction in an iteration above which the matrix is updated


class VariationalWorkspace(NamedTuple):
    """State and workspace of the method."""

    q: np.ndarray             # (nq,) at the end of the step
    v: np.ndarray             # (nv,) of the step
    x: np.ndarray             # (nv,) h v
    p: np.ndarray             # (nv,) momentum at the beginning, then at the end
    previous_v: np.ndarray          # (nv,) v of the step before
    zero: np.ndarray          # (nv,)
    momentum: np.ndarray      # (nv,) M(q) v
    mean_momentum: np.ndarray          # (nv,) p-bar
    transported_momentum: np.ndarray       # (nv,) J^-T p-bar
    bias: np.ndarray          # (nv,)
    force: np.ndarray          # (nv,) Phi
    M: np.ndarray             # (nv nv,) at the beginning
    M_end: np.ndarray         # (nv nv,)
    C: np.ndarray             # (nv nv,)
    solver: PivotWorkspace
    tree: NewtonEulerWorkspace
    coriolis_ws: DerivativesWorkspace
    composite: CompositeWorkspace


class InputCall(NamedTuple):
    """Address of `write_inputs`, and its packed arguments: `run_variational` is compiled once for all laws and contacts."""

    address: int
    arguments: np.ndarray


@kernel
def write_inputs(arguments, t, ws):
    """Run `apply_inputs` at t for the state in ws. arguments: pointer to `GenericArguments`."""
    index, constants, system, schedule, signals, _ = value_at(arguments)
    apply_inputs(system, tree_views(index, constants), schedule, signals, t, ws)
    return int64(0)


@inline_kernel
def call_write_inputs(inputs, t, ws):
    """Call `write_inputs`."""
    call_with_values(inputs.address, (array_address(inputs.arguments), t, ws))


@internal_kernel
def is_end_body(tree, inputs, system, t, q, ws, method_ws):
    """Write method_ws.C and Phi + ad*_v (M v) (method_ws.force) at an end q of a step, for the velocity method_ws.v.

    ws gets q, v, the forces there, and a flag if a signal is not finite. Returns the power of motors, wrenches and passive forces
    except springs.
    """
    nv = method_ws.v.size
    for k in range(q.size):
        ws.q[k] = q[k]
    for k in range(nv):
        ws.v[k] = method_ws.v[k]
    call_write_inputs(inputs, t, ws)
    newton_euler(tree, tree.J, ws.q, ws.v, method_ws.zero, ws.F, system.passive[0], method_ws.bias, method_ws.tree)
    clear(method_ws.C)
    coriolis(tree, ws.q, ws.v, method_ws.zero, 0.0, method_ws.C, method_ws.coriolis_ws)
    for k in range(nv):
        method_ws.force[k] = ws.tau[k] - method_ws.bias[k]
        for j in range(nv):
            method_ws.force[k] += (method_ws.C[k * nv + j] + method_ws.C[j * nv + k]) * ws.v[j]
    remove_friction(system.stops, ws)
    power = joint_power(tree, system, ws, 0.0)
    for i in range(ws.F.size):
        power += ws.F[i] * method_ws.tree.V[i]
    return power


@inline_kernel
def matvec(M, v, out):
    """Write out = M v."""
    n = v.size
    for k in range(n):
        out[k] = 0.0
        for j in range(n):
            out[k] += M[k * n + j] * v[j]


@inline_kernel
def subtract_joint_coadjoint(tree, v, p, out):
    """Subtract ad*_v p from out, joint by joint: the rotation of the frames of ball and free joints."""
    for i in range(1, tree.parent.size):
        k = tree.iv[i]
        if tree.kind[i] == ONE_DOF:
            continue
        if NV[tree.kind[i]] == 3:
            turned = cross(load3(p, k), load3(v, k))                        # ad*_w m = m x w
            for j in range(3):
                out[k + j] -= turned[j]
        else:
            m, f = neg_dad((load3(v, k), load3(v, k + 3)), (load3(p, k), load3(p, k + 3)))
            for j in range(3):
                out[k + j] += m[j]
                out[k + 3 + j] += f[j]


@inline_kernel
def chart_rate_transposed(tree, x, p, out):
    """Write out = J(x)^-T p with the right Jacobian J of exp: the transpose of `manifold.chart_rate`."""
    for i in range(1, tree.parent.size):
        k = tree.iv[i]
        if tree.kind[i] == ONE_DOF:
            out[k] = p[k]
        elif NV[tree.kind[i]] == 3:
            store3(out, k, dexp_inv3(load3(x, k), load3(p, k)))             # dexp_w^-T = dexp_{-w}^-1
        else:
            w, u = load3(x, k), load3(x, k + 3)
            y = (-w[0], -w[1], -w[2]), (-u[0], -u[1], -u[2])
            P = load3(p, k), load3(p, k + 3)
            for j in range(6):
                out[k + j] = dot(P, dexp_inv(y, (_column(j, 0), _column(j, 3))))


@inline_kernel
def _column(j, first):
    """Return three entries of column j of the identity matrix."""
    return (1.0 if j == first else 0.0), (1.0 if j == first + 1 else 0.0), (1.0 if j == first + 2 else 0.0)


@internal_kernel
def variational_step(tree, inputs, system, t, end, h, q0, ws, method_ws):
    """Advance from q0 and momentum method_ws.p over h: write q, v and p at the end of the step to method_ws.

    t, end: times at which the signals are evaluated at the beginning and at the end of the step.

    Returns the supplied energy and the number of iterations: 0 if the iteration does not converge or a signal is not finite
    (ws.flag), -1 if the matrix is singular.
    """
    nv, previous_change = method_ws.v.size, np.inf
    composite_rigid_body(tree, q0, method_ws.M, method_ws.composite)
    renew, supplied = True, 0.0
    for k in range(nv):
        method_ws.v[k] = 2.0 * method_ws.v[k] - method_ws.previous_v[k]
    for iteration in range(1, MAX_ITERATIONS + 1):
        supplied = is_end_body(tree, inputs, system, t, q0, ws, method_ws)
        matvec(method_ws.M, method_ws.v, method_ws.momentum)
        subtract_joint_coadjoint(tree, method_ws.v, method_ws.momentum, method_ws.force)
        if ws.flag[0] >= 0.0 or not move_endpoint(tree, q0, h, method_ws):
            return 0.0, 0
        chart_rate_transposed(tree, method_ws.x, method_ws.mean_momentum, method_ws.transported_momentum)
        if renew:
            fill_matrix(tree, system, h, method_ws)
            if not factor_pivoted(nv, method_ws.solver):
                return 0.0, -1 if iteration == 1 else 0
        for k in range(nv):
            method_ws.solver.b[k] = method_ws.p[k] + 0.5 * h * method_ws.force[k] - method_ws.transported_momentum[k]
        clear_locked(system, method_ws.solver.b)
        solve_pivoted(method_ws.solver)
        change, size = 0.0, 0.0
        for k in range(nv):
            method_ws.v[k] += method_ws.solver.b[k]
            change, size = max(change, abs(method_ws.solver.b[k])), max(size, abs(method_ws.v[k]))
        if not change < np.inf:
            return 0.0, 0
        if change <= _ROUNDING * size or (change <= _STALL_TOLERANCE * size and change >= 0.5 * previous_change):
            return 0.5 * h * (supplied + finish_step(tree, inputs, system, end, q0, h, ws, method_ws)), iteration
        renew = iteration > 1 and change > _SLOW_CONVERGENCE * previous_change
        previous_change = change
    return 0.0, 0


@inline_kernel
def move_endpoint(tree, q0, h, method_ws):
    """Write method_ws.q, M_end, p-bar of method_ws.v, and x = -h v. Return False if they are not finite."""
    total = 0.0
    for k in range(method_ws.v.size):
        method_ws.x[k] = h * method_ws.v[k]
        total += abs(method_ws.x[k])
    if not total < np.inf:
        return False
    retract(tree, q0, method_ws.x, method_ws.q)
    composite_rigid_body(tree, method_ws.q, method_ws.M_end, method_ws.composite)
    matvec(method_ws.M_end, method_ws.v, method_ws.mean_momentum)
    for k in range(method_ws.v.size):
        method_ws.mean_momentum[k] = 0.5 * (method_ws.mean_momentum[k] + method_ws.momentum[k])
        method_ws.x[k] = -method_ws.x[k]
    return True


@inline_kernel
def fill_matrix(tree, system, h, method_ws):
    """Write the Newton matrix 1/2 (M(q_0) + M(q_1)) + h/2 (C - C^T) + h/2 (derivative of resistances with respect to v)."""
    nv = method_ws.v.size
    for k in range(nv):
        for j in range(nv):
            method_ws.solver.J[k, j] = 0.5 * (method_ws.M[k * nv + j] + method_ws.M_end[k * nv + j] + h *
                                              (method_ws.C[k * nv + j] - method_ws.C[j * nv + k]))
        if system.passive[0]:
            method_ws.solver.J[k, k] += 0.5 * h * resistance_derivative(tree, k, method_ws.v)
    isolate_prescribed(system.prescribed, method_ws.solver.J)


@inline_kernel
def clear_locked(system, b):
    """Set the entries of locked coordinates to zero."""
    for k in range(b.size):
        if system.prescribed[k]:
            b[k] = 0.0


@inline_kernel
def finish_step(tree, inputs, system, end, q0, h, ws, method_ws):
    """Write method_ws.p at the end of the step from v. Return the power there."""
    matvec(method_ws.M, method_ws.v, method_ws.momentum)
    move_endpoint(tree, q0, h, method_ws)
    power = is_end_body(tree, inputs, system, end, method_ws.q, ws, method_ws)
    matvec(method_ws.M_end, method_ws.v, method_ws.momentum)
    subtract_joint_coadjoint(tree, method_ws.v, method_ws.momentum, method_ws.force)
    for k in range(method_ws.v.size):
        method_ws.x[k] = -method_ws.x[k]
    chart_rate_transposed(tree, method_ws.x, method_ws.mean_momentum, method_ws.transported_momentum)
    for k in range(method_ws.v.size):
        method_ws.p[k] = method_ws.transported_momentum[k] + 0.5 * h * method_ws.force[k]
    return power


# variational ------------------------------------------------------------------------------------------------------------

@kernel
def run_variational(inputs, index, constants, system, schedule, state, record, ws, method_ws, step, max_steps):
    """Advance until the last output is stored or `max_steps` are done. Return a code of `right_hand_side`.

    Without steps, store an output that is due.

    inputs  an `InputCall`
    system  without laws and contacts
    """
    tree, nv = tree_views(index, constants), method_ws.v.size
    for _ in range(max(max_steps, 1)):
        if state.count[FIRST_RATE_KNOWN] == 0:
            begin_momentum(tree, state, method_ws)
        if output_is_due(state, record):
            code = record_state(tree, inputs, system, state, record, ws, method_ws)
            if code != RUNNING:
                return code
        if state.count[NEXT_OUTPUT] == record.t.size:
            return FINISHED
        if max_steps == 0:
            return RUNNING
        h, end, stop_time, before, _ = next_fixed_step(schedule, state, record, step)
        seen = before if end == stop_time else end
        supplied, iterations = variational_step(tree, inputs, system, state.clock[T_NOW], seen, h, state.q, ws, method_ws)
        if iterations <= 0:
            return BAD_SIGNAL if ws.flag[0] >= 0.0 else (SINGULAR if iterations < 0 else NOT_CONVERGED)
        copy_array(method_ws.q, state.q)
        if not solve_velocity(tree, system, state.q, method_ws):
            return SINGULAR
        for k in range(nv):
            method_ws.previous_v[k] = method_ws.v[k]
            method_ws.v[k] = state.y[nv + k] = method_ws.solver.b[k]
        state.y[2 * nv] += supplied
        state.clock[T_NOW] = end
        state.count[STEPS], state.count[EVALUATIONS] = state.count[STEPS] + 1, state.count[EVALUATIONS] + iterations
    return RUNNING


@inline_kernel
def begin_momentum(tree, state, method_ws):
    """Compute the momentum from the velocity at the start of a segment."""
    nv = method_ws.v.size
    composite_rigid_body(tree, state.q, method_ws.M, method_ws.composite)
    for k in range(nv):
        method_ws.v[k] = method_ws.previous_v[k] = state.y[nv + k]
    matvec(method_ws.M, method_ws.v, method_ws.p)
    state.count[FIRST_RATE_KNOWN] = 1


@inline_kernel
def solve_velocity(tree, system, q, method_ws):
    """Write M(q)^-1 p to method_ws.solver.b."""
    composite_rigid_body(tree, q, method_ws.M, method_ws.composite)
    nv = method_ws.v.size
    for k in range(nv):
        for j in range(nv):
            method_ws.solver.J[k, j] = method_ws.M[k * nv + j]
        method_ws.solver.b[k] = method_ws.p[k]
    isolate_prescribed(system.prescribed, method_ws.solver.J)
    clear_locked(system, method_ws.solver.b)
    sound = factor_pivoted(nv, method_ws.solver)
    solve_pivoted(method_ws.solver)
    return sound


@inline_kernel
def record_state(tree, inputs, system, state, record, ws, method_ws):
    """Store the state and its forces. Return a code."""
    nv = method_ws.v.size
    copy_array(state.q, ws.q)
    for k in range(nv):
        ws.v[k] = state.y[nv + k]
    call_write_inputs(inputs, state.clock[T_NOW], ws)
    inner = hybrid_workspace(ws.memory, tree.parent.size, nv)
    deficit = hybrid(tree, system.prescribed, ws.q, ws.v, ws.a, ws.tau, ws.F, system.passive[0], inner)
    if ws.flag[0] >= 0.0 or deficit > 0.0:
        return BAD_SIGNAL if ws.flag[0] >= 0.0 else SINGULAR
    total = 0.0
    for k in range(nv):
        total += abs(ws.a[k])
    if not total < np.inf:
        return NOT_FINITE
    remove_friction(system.stops, ws)
    store_evaluation(ws, state.y[2 * nv], record, state.count[NEXT_OUTPUT])
    state.count[NEXT_OUTPUT] += 1
    return RUNNING


# from Python ------------------------------------------------------------------------------------------------------

class VariationalStepper(ImplicitStepper):
    """Steps of the variational method, of length options.step.

    The method is of second order. Without forces that depend on time or velocity the energy error stays bounded over
    exponentially many steps of one length, and momenta of symmetries are conserved to rounding.

    Raises ScenarioError for constraints and prescribed motions.

    Notes
    -----
    J. E. Marsden, M. West, Discrete mechanics and variational integrators, Acta Numerica 10, 2001.
    """

    step_arrays = ("v", "p", "previous_v")

    def __init__(self, problem: InitialValueProblem, start: SegmentStart, times: ArrayLike, options: Options,
                 controller: SampledTorques | None):
        check_supported(problem, start.v)
        super().__init__(problem, start, times, options, controller, _make_workspace(problem.model), None)
        self.system = problem.system()
        self._call: tuple[InputCall, GenericArguments] | None = None

    def run(self, schedule: InputSchedule, signals: Signals, max_steps: int) -> int:
        """Call `run_variational`."""
        index, constants, *_ = self.problem.model._arrays
        arguments = GenericArguments(index, constants, self.system, schedule, signals, None)
        if self._call is None or any(x is not y for x, y in zip(arguments, self._call[1], strict=True)):
            address = address_for(write_inputs, arguments, 0.0, self.workspace)
            self._call = InputCall(address, packed_values(arguments)), arguments
        code: int = run_variational(self._call[0], index, constants, without_laws(self.system), schedule, self.state, self.record,
                                    self.workspace, self.method_ws, self.step, max_steps)
        return code


def check_supported(problem: InitialValueProblem, v: np.ndarray, place: Place | None = None) -> None:
    """Raise ScenarioError if the motion is not that of a kinematic tree with applied forces, some of whose joints may be locked.

    v  (nv,) velocity at the start of the motion
    """
    schedule, signals = problem.schedule, problem.signals
    first = signals.first[schedule.signal]
    locked = (schedule.level == ACCELERATION) & (signals.kind[schedule.signal] == CONSTANT) & (v == 0.0)
    locked[locked] = signals.literals[first[locked]] == 0.0
    prescribed = [name for name, level, rests in zip(problem.model.v_names, schedule.level, locked, strict=True)
                  if level != TORQUE and not rests]
    if problem.constraints is not None or prescribed:
        raise ScenarioError(f"variational does not support {'prescribed motions' if prescribed else 'loops and couplings'}",
                            place=place, found=list_names(prescribed, 3) or None, expected="another integrator.method")


def _make_workspace(model: Model) -> VariationalWorkspace:
    n, nq, nv = model.n_bodies, model.nq, model.nv
    order = (np.zeros(nv, dtype=np.int64), np.zeros(nv, dtype=np.int64), np.zeros(1, dtype=np.int64))
    solver = PivotWorkspace._make((np.zeros((nv, nv)), *np.zeros((3, nv)), *order, np.zeros((0, 0)), np.zeros((0, nv))))
    tree = NewtonEulerWorkspace._make((np.zeros(12 * n), *np.zeros((3, 6 * n)), np.zeros(nv)))
    coriolis_ws = derivatives_workspace.py_func(np.zeros(derivatives_workspace_size(n, nv)), n, nv)
    return VariationalWorkspace._make((np.zeros(nq), *np.zeros((10, nv)), *np.zeros((3, nv * nv)), solver, tree, coriolis_ws,
                                       CompositeWorkspace(np.zeros(12 * n), np.zeros(10 * n))))
