"""What `kernels.simulation.joint_laws` answers to a small change of the state, exactly; not in task space."""
from __future__ import annotations

import numpy as np

from liedyn.codegen.steps.signals import read_signal
from liedyn.dynamics.derivatives.first_derivatives import hybrid_dynamics_derivatives, inverse_dynamics_derivatives
from liedyn.dynamics.derivatives.manifold_derivatives import d_difference
from liedyn.integrators.evaluation import evaluated
from liedyn.kernels.simulation.joint_laws import COMPUTED, FEEDBACK, GRAVITY
from liedyn.simulation.control_laws.laws import limits_at
from liedyn.simulation.control_laws.signal_slopes import signal_gradient


def with_joint_laws(problem, t: float, q, v, out: np.ndarray, integral=None) -> np.ndarray:
    """out (nv, 2 nv), the derivative of the schedule's joint forces, with that of the joint laws, and that of its limit
    where a force is there. integral (nv,): of pid laws, None: zero. Raises ComputationError where the scenario cannot be
    evaluated."""
    laws, model, nv = problem.joint_laws, problem.model, problem.model.nv
    out, saturated, here, by_speed = out.copy(), np.zeros(nv, dtype=bool), None, np.zeros_like(out)
    if laws.acts[COMPUTED] or (laws.limit < np.inf).any():
        here, saturated, high = at_limits(problem, t, q, v, integral)
        by_speed = _of_limits(problem, t, q, v, high)
    if laws.acts[GRAVITY]:
        rest = np.zeros(nv)
        by_q = inverse_dynamics_derivatives(model.open_tree(), q, rest, rest, passive=False).dtau_dq
        out[laws.gravity, :nv] += by_q[laws.gravity]
    if laws.acts[FEEDBACK]:
        gain, has = laws.gain.reshape(-1, 2 * nv), laws.row >= 0
        by_state = np.hstack([gain[:, :nv] @ d_difference(model, laws.about_q, q)[1], gain[:, nv:]])
        out[has] -= by_state[laws.row[has]]
    still = saturated & ~laws.driven
    out[still] = by_speed[still]
    if laws.acts[COMPUTED]:
        out[laws.driven] += _computed(problem, t, q, v, here, out)[laws.driven]
        out[saturated] = by_speed[saturated]
    return out


def at_limits(problem, t: float, q, v, integral=None):
    """The problem's laws evaluated, (nv,) bool whether a force is at a limit, and at the highest."""
    here = evaluated(problem.without_stops, t, q, v, integral=integral)          # laws know nothing of stops
    bottom, top = limits_at(problem, problem.joint_laws.limit, t, q, v)
    return here, (here.tau <= bottom) | (here.tau >= top), here.tau >= top


def _of_limits(problem, t: float, q, v, high) -> np.ndarray:
    """(nv, 2 nv) derivative of the limits of joint forces, of the highest force where `high`; zero but for those of motors."""
    laws, out = problem.joint_laws, np.zeros((len(high), 2 * len(high)))
    for k in np.flatnonzero(laws.top >= 0):
        out[k] = signal_gradient(problem, (laws.top if high[k] else laws.bottom)[k], t, q, v)
    return out


def _computed(problem, t, q, v, here, others) -> np.ndarray:
    """(nv, 2 nv) derivative of the forces that computed torque asks for; others: of the forces of coordinates not driven."""
    laws, model, nv = problem.joint_laws, problem.model, problem.model.nv
    a, inputs, driven = here.a.copy(), others.copy(), np.flatnonzero(laws.driven)
    inputs[laws.given] = 0.0
    for k in driven:
        r, dr, ddr = read_signal(problem.signals, laws.signal[k], t, q, v)
        a[k] = ddr + laws.gains[1] * (dr - v[k]) + laws.gains[0] * (r - q[problem.schedule.q_of_v[k]])
        inputs[k, k], inputs[k, nv + k] = -laws.gains[0], -laws.gains[1]
    d = hybrid_dynamics_derivatives(model.open_tree(), q, v, a, here.tau, laws.given, passive=problem.passive).split()
    return np.hstack([d.dtau_dq, d.dtau_dv]) + d.dtau_du @ inputs
