"""Derivative of the rates of a problem with respect to the state y = [x; v; z; work], for implicit methods.

It is exact for robots without constraints, and for those with constraints and an expression of the state. If the rates are
generated code, so is their derivative. Otherwise it is composed of the derivatives of hybrid dynamics, of the laws of the
schedule, and of the chart q = q0 (+) x. Integrals of pid laws, laws in task space, and laws without a derivative use finite
differences. It is always finite: for a state that cannot be evaluated the last Jacobian is returned. Then Newton's iteration
fails and the solver shortens its step.

The row of the supplied energy stays zero: nothing depends on it, and its error does not control the step.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite

import numpy as np
from scipy.special import bernoulli, factorial

from liedyn.arrays import Array
from liedyn.codegen.rhs import RhsJacobian
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError
from liedyn.integrators.contact_forces import sliding_friction
from liedyn.integrators.problem import InitialValueProblem, estimate_units
from liedyn.integrators.segment import RightHandSide
from liedyn.kernels.simulation.right_hand_side import RUNNING, MotionWorkspace
from liedyn.kernels.simulation.signals import POSITION, PROGRAM, VELOCITY
from liedyn.model.description import ONE_DOF
from liedyn.model.spatial import bracket, skew

_DIFFERENCE_STEP = 1.5e-8            # of differences, of a state or of its characteristic unit: the root of a rounding
_SERIES = bernoulli(30) / factorial(np.arange(31))      # of t / (e^t - 1): good to rounding for turns below 1.6 rad
_UNITS = {n: np.array([ad(e).ravel() for e in np.eye(n)]) for n, ad in ((3, skew), (6, bracket))}       # u @ units: ad_u


class RightHandSideJacobian:
    """Callable (t, y) -> (n, n) derivative; it stores the rates there and their code.

    evaluate  (t, y) -> (code, rates); writes the state at y to `ws`
    rhs       the `RightHandSide` of the evaluation, and origin: that of its chart; used if it is generated code
    """

    def __init__(self, problem: InitialValueProblem, ws: MotionWorkspace, evaluate: Callable[[float, Array], tuple[int, Array]],
                 rhs: RightHandSide | None = None, origin: Array | None = None):
        self.problem, self.workspace, self.evaluate, self.rhs, self.origin = problem, ws, evaluate, rhs, origin
        self.generated_function: RhsJacobian | None = None
        units = model_scales(problem.model)
        reach = units.unit_scales(problem.model.v_units)
        of_pid = problem.schedule.integral[:len(problem.schedule.ki)]
        stretches = np.full(len(problem.schedule.integral) - len(of_pid), units.length)
        self.units = np.concatenate([reach, reach / units.time, reach[of_pid] * units.time, stretches,
                                     units.unit_scales(estimate_units(problem.joint_laws))])
        level = np.asarray(problem.schedule.level)
        follows_signal = np.isin(level, (POSITION, VELOCITY))    # coordinates that follow their signals, independent of y
        of_laws = np.zeros(problem.size - 2 * problem.model.nv - 1, dtype=bool)
        self.ignored = np.concatenate([level == POSITION, follows_signal, of_laws, [True]])
        self.prescribed = problem.prescribed
        laws = problem.joint_laws
        self.exact = (problem.law is None and problem.input_jacobian is not None and not len(of_laws)
                      and (laws is None or (laws.task is None and laws.slotine_li is None)))       # derivatives take longer
        # differences are faster under constraints, but may not resolve an expression
        if problem.constraints is not None and problem.solves_constraints:
            self.exact &= (not problem.model.driven and problem.constraints.frequency == 0.0
                           and bool((problem.signals.kind == PROGRAM).any()))
        self.last, self.tree = np.zeros((problem.size,) * 2), problem.model.spanning_tree()
        self.links, self.multi_dof_joints = problem.forced_links, [joint for joint in problem.model.joints
                                                                   if joint.kind != ONE_DOF]
        self.depends_on_inputs = bool((problem.signals.kind == PROGRAM).any() or (np.asarray(problem.schedule.target) >= 0).any()
                          or len(self.links) or problem.joint_laws is not None               # forces can depend on the state
                                      or problem.stops is not None)

    def state_dict(self) -> dict[str, Array]:
        """Return the last Jacobian, which replaces those that cannot be computed."""
        return {"last": self.last}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Restore the last Jacobian."""
        self.last = np.array(state["last"])

    def __call__(self, t: float, y: Array) -> np.ndarray:
        """Return the (n, n) derivative of the rates at t with respect to y."""
        code, rates = self.evaluate(t, y)
        self.code, self.rates = code, rates
        if code != RUNNING:
            return self.last
        J = self.from_generated(y)
        if J is None:
            try:
                J = self.from_derivatives(t, y) if self.exact else None
            except ComputationError:                             # a law without a derivative here, a singular position
                J = None
            if J is None or not np.isfinite(J).all():
                J = self.from_differences(t, y, rates)
        self.last = J
        return J

    def from_generated(self, y: Array) -> np.ndarray | None:
        """Evaluate generated code at the time and signals of the last evaluation.

        None if not available or not differentiable here.
        """
        generated = self.rhs.generated if self.rhs else None
        batch = self.problem.generated_jacobian if generated else None
        if batch is None:
            return None
        if self.generated_function is None:
            self.generated_function = RhsJacobian(batch, self.problem.size)
        J = np.zeros(self.last.shape)
        J[:-1, :-1] = self.generated_function(generated, self.origin, y)
        return J if isfinite(J.sum()) else None

    def from_derivatives(self, t: float, y: Array) -> np.ndarray:
        """Compose the Jacobian at the state in `ws` from derivatives."""
        from liedyn.dynamics.constraints.constrained_derivatives import constrained_hybrid_derivatives
        from liedyn.dynamics.derivatives import hybrid_dynamics_derivatives

        p, nv, free = self.problem, self.problem.model.nv, ~self.prescribed
        q, v, a, tau = (np.array(x) for x in (self.workspace.q, self.workspace.v, self.workspace.a, self.workspace.tau))
        tau += sliding_friction(p, v[None])[0]
        wrenches = self._wrenches()
        d = (hybrid_dynamics_derivatives(self.tree, q, v, a, tau, self.prescribed, f_ext=wrenches, passive=p.passive)
             if p.constraints is None else
             constrained_hybrid_derivatives(p.model, q, v, a, tau, self.prescribed, f_ext=wrenches, passive=p.passive))
        J = np.zeros_like(self.last)
        J[nv:2 * nv, :nv], J[nv:2 * nv, nv:2 * nv] = d.dy_dq, d.dy_dv
        if self.depends_on_inputs:
            assert p.input_jacobian is not None
            by_forces, by_wrenches = p.input_jacobian(p, t, q, v)
            J[nv:2 * nv, :2 * nv] += d.dy_du[:, free] @ (by_forces + by_wrenches)[free]
        J[nv:2 * nv][self.prescribed] = 0.0
        J[:nv, nv:2 * nv] = np.eye(nv)
        by_x = {}
        for joint in self.multi_dof_joints:                               # q (+) J_r(x) dx = q0 (+) (x + dx), with P = 1 / J_r
            k, m = joint.v, slice(nv + joint.v.start, nv + joint.v.stop)
            P, by_x[k.start] = chart_jacobian(y[k], v[k])
            J[k, m], J[k, k] = P, by_x[k.start]
            J[nv:2 * nv, k] = J[nv:2 * nv, k] @ np.linalg.inv(P)
        J[:, self.ignored] = 0.0
        for joint in self.multi_dof_joints:      # dx/dt of a prescribed pose depends on x, but nothing else
            if self.ignored[joint.v.start]:
                J[joint.v, joint.v] = by_x[joint.v.start]
        return J

    def _wrenches(self) -> Array | None:
        if not len(self.links):
            return None
        f_ext = np.zeros((len(self.problem.model.link_names), 6))
        f_ext[self.links] = self.problem.split_wrench(self.workspace.wrench)[0]
        return f_ext

    def from_differences(self, t: float, y: Array, rates: Array) -> np.ndarray:
        """Return forward differences; backward ones if the state ahead cannot be evaluated, zero if neither can."""
        J = np.zeros_like(self.last)
        for k in np.flatnonzero(~self.ignored):
            for h in _DIFFERENCE_STEP * max(self.units[k], abs(y[k])) * np.array([1.0, -1.0]):
                moved = np.array(y)
                moved[k] += h
                code, moved_rates = self.evaluate(t, moved)
                if code == RUNNING:
                    J[:-1, k] = (moved_rates - rates)[:-1] / (moved[k] - y[k])
                    break
        return J


def chart_jacobian(x: Array, v: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return P = sum_k c_k (-ad_x)^k and d(P v)/dx, where dx/dt = P v in the chart of a ball (3,) or free joint (6,)."""
    n, units = len(x), _UNITS[len(x)]
    A, terms = -(x @ units).reshape(n, n), np.column_stack([np.eye(n), np.zeros((n, n)), v])      # A^k, d(A^k v)/dx, u = A^k v
    total = np.zeros_like(terms)
    for c in _SERIES:
        total += c * terms
        turned = (terms[:, -1] @ units).reshape(n, n)
        terms = A @ terms
        terms[:, n:2 * n] += turned                              # d(A u) = A du - ad_dx u = A du + ad_u dx
    return total[:, :n], total[:, n:2 * n]
