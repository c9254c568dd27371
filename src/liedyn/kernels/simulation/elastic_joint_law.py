"""Control laws for motors of a robot with elastic joints (Spong 1987).

Every joint has a rotor of inertia B and a spring of stiffness K. With the motors' angles theta and the links' q,

    B theta'' + K (theta - q) = tau,      M(q) q'' + h(q, q') = sigma,      sigma = K (theta - q).

Since theta = q + sigma / K, the torque follows from the links' motion and its first four derivatives:

    tau = B (q'' + sigma'' / K) + sigma,

with sigma'' by the second time derivative of inverse dynamics (De Luca and Lucibello 1998). With feedback q'''' = u, where u is a
linear law of the error, the closed loop is linear: four integrators per joint.

In the coordinates of a model, theta is that of the motor's joint and delta = q - theta that of the spring's joint.
"""
from typing import NamedTuple

import numpy as np
from numpy import int64  # converts literals: Numba would compile a function for each literal argument

from liedyn.joints.joint_model import resistance, tree_of_law, tree_views
from liedyn.kernels.kinematics import LOCAL
from liedyn.kernels.simulation.signal_series import signal_series
from liedyn.kernels.simulation.signals import flag_nonfinite
from liedyn.kernels.taylor_hybrid import higher_order_hybrid, hybrid_series_workspace, hybrid_series_workspace_size
from liedyn.kernels.taylor_inverse import (
    higher_order_inverse,
    inverse_series_workspace,
    inverse_series_workspace_size,
    wrench_series_workspace,
)
from liedyn.lie.simd import absolute
from liedyn.numba_tools.decorators import inline_kernel, kernel

REFERENCE_COEFFICIENTS = 5                # Taylor coefficients of a reference, up to the fourth derivative
# coefficients of v in forward dynamics of order 1 and in inverse dynamics of order 2
JERK_COEFFICIENTS, FORCE_COEFFICIENTS = 3, 4


class MotorLaw(NamedTuple):
    """A law by coordinates of the rigid robot, in which the joints of a motor and its spring are one."""

    rigid_index: np.ndarray  # of the rigid robot, see `joints.joint_model`
    rigid_constants: np.ndarray
    model_index: np.ndarray  # of the law's model with elastic joints; empty: that of the robot
    model_constants: np.ndarray
    elastic: np.ndarray      # (1,) bool: the law takes the springs into account
    motor: np.ndarray        # (n,) int64 coordinate of the motor in the robot; q and v have the same indices
    spring: np.ndarray       # (n,) int64 that of its spring
    stiffness: np.ndarray    # (n,)
    rest: np.ndarray         # (n,)
    inertia: np.ndarray      # (n,) of the rotor
    gains: np.ndarray        # (4,) or (2,) of the error and its derivatives
    signal: np.ndarray       # (n,) int64
    reference: np.ndarray    # (n, REFERENCE_COEFFICIENTS) Taylor coefficients now
    q: np.ndarray            # (n,) of the rigid robot
    v: np.ndarray            # (n,)
    a: np.ndarray            # (2n,) Taylor coefficients, order by order
    tau: np.ndarray          # (3n,) the same
    series: np.ndarray       # (4n,) of v, coordinate by coordinate
    free: np.ndarray         # (n,) bool: no coordinate is prescribed
    stack: np.ndarray        # workspace of signals
    memory: np.ndarray       # workspace of the rigid robot's dynamics, `rigid_workspace_size` numbers


@kernel
def apply_motor_law(law, tree, signals, t, ws):
    """Add the motors' torques to ws.tau. law: MotorLaw, or None (not compiled). ws.flag: a reference that is not finite."""
    if law is None:
        return
    read_references(law, signals, t, ws.flag)
    rigid = tree_views(law.rigid_index, law.rigid_constants)
    if law.elastic[0]:
        feedback_linearization(law, rigid, ws)
    else:
        computed_torque(law, rigid, ws)
    model = tree_of_law(law.model_index, law.model_constants, tree)
    for k in range(law.motor.size):
        ws.tau[law.motor[k]] += law.tau[k] - resistance(model, law.motor[k], ws.v)


@inline_kernel
def read_references(law, signals, t, flag):
    """Write the Taylor coefficients of all references."""
    for k in range(law.signal.size):
        signal_series(signals, law.signal[k], t, law.stack, law.reference[k])
        total = 0.0
        for i in range(REFERENCE_COEFFICIENTS):
            total += absolute(law.reference[k, i])
        flag_nonfinite(flag, law.signal[k], total)


# laws: law.tau[:n] from the state and law.reference ---------------------------------------------------------------------
@inline_kernel
def feedback_linearization(law, tree, ws):
    """Write tau = B (q'' + sigma'' / K) + sigma, with u for the fourth derivative of q."""
    n, g, x = law.motor.size, law.gains, law.series
    for k in range(n):
        m, s = law.motor[k], law.spring[k]
        law.q[k], law.v[k] = ws.q[m] + ws.q[s], ws.v[m] + ws.v[s]
        law.tau[k] = -law.stiffness[k] * (ws.q[s] - law.rest[k])            # sigma
        law.tau[n + k] = -law.stiffness[k] * ws.v[s]
    rigid_accelerations(law, tree)
    for k in range(n):
        r, a, jerk = law.reference[k], law.a[k], law.a[n + k]
        u = (24.0 * r[4] + g[3] * (6.0 * r[3] - jerk) + g[2] * (2.0 * r[2] - a) + g[1] * (r[1] - law.v[k])
             + g[0] * (r[0] - law.q[k]))
        c = FORCE_COEFFICIENTS * k
        x[c], x[c + 1], x[c + 2], x[c + 3] = law.v[k], a, jerk / 2.0, u / 6.0
    rigid_forces(law, tree, int64(FORCE_COEFFICIENTS))
    for k in range(n):
        law.tau[k] += law.inertia[k] * (law.a[k] + 2.0 * law.tau[2 * n + k] / law.stiffness[k])


@inline_kernel
def computed_torque(law, tree, ws):
    """Write tau = B a + M a + h, where a makes the motors' error linear if theta = q."""
    n, g, x = law.motor.size, law.gains, law.series
    for k in range(n):
        m, r = law.motor[k], law.reference[k]
        law.q[k], x[2 * k] = ws.q[m], ws.v[m]
        x[2 * k + 1] = 2.0 * r[2] + g[1] * (r[1] - ws.v[m]) + g[0] * (r[0] - ws.q[m])
    rigid_forces(law, tree, int64(2))
    for k in range(n):
        law.tau[k] += law.inertia[k] * x[2 * k + 1]


# the rigid robot --------------------------------------------------------------------------------------------------------
@inline_kernel
def rigid_accelerations(law, tree):
    """Write law.a, acceleration and jerk, from law.q, law.v and two orders of law.tau."""
    K, n, nv, m = int64(JERK_COEFFICIENTS), tree.parent.size, law.q.size, law.memory
    ws, factors, _ = hybrid_series_workspace(m, n, nv, K)
    wrenches = wrench_series_workspace(m, n, tree.link_body.size, K, int64(LOCAL), False)
    higher_order_hybrid(tree, K, law.free, law.q, law.v, law.a, law.tau, wrenches, int64(-1), False, False, ws, factors)


@inline_kernel
def rigid_forces(law, tree, K):
    """Write K - 1 orders of law.tau, from law.q and law.series with K coefficients."""
    m, n = law.memory, tree.parent.size
    wrenches = wrench_series_workspace(m, n, tree.link_body.size, K, int64(LOCAL), False)
    ws, _ = inverse_series_workspace(m, n, law.q.size, K)
    higher_order_inverse(tree, K, law.q, law.series, wrenches, False, False, law.tau, ws)


def rigid_workspace_size(n, nv):
    """Return the size (numbers) of the workspace of the series of rigid dynamics that the law uses."""
    return max(hybrid_series_workspace_size(n, nv, JERK_COEFFICIENTS), inverse_series_workspace_size(n, nv, FORCE_COEFFICIENTS))


# initial state ----------------------------------------------------------------------------------------------------------
@inline_kernel
def state_on_reference(law, signals, t, q, v, flag):
    """Write the q and v of motors and springs with which the links follow the reference up to the third derivative.

    Returns False if a reference is not finite.
    """
    n = law.motor.size
    flag[0] = -1.0
    read_references(law, signals, t, flag)
    if flag[0] >= 0.0:
        return False
    for k in range(n):
        law.q[k] = law.reference[k, 0]
        for i in range(3):
            law.series[3 * k + i] = (i + 1.0) * law.reference[k, i + 1]
    rigid_forces(law, tree_views(law.rigid_index, law.rigid_constants), int64(3))
    for k in range(n):
        m, s = law.motor[k], law.spring[k]
        q[s], v[s] = law.rest[k] - law.tau[k] / law.stiffness[k], -law.tau[n + k] / law.stiffness[k]
        q[m], v[m] = law.q[k] - q[s], law.series[3 * k] - v[s]
    return True
