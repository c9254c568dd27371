"""Steps of a variational integrator on the configuration manifold: momentum maps that are kept, energy that stays near its value.

Of the discrete Lagrangian of trapezoids, with the constant velocity v of a step, q_1 = q_0 (+) h v,

    L_d(q_0, q_1) = h/2 (L(q_0, v) + L(q_1, v)),          L(q, v) = 1/2 v^T M(q) v - V(q)

the discrete Euler-Lagrange equations (Marsden and West 2001, 1.5.2; with forces, 3.2.1) say, with x = h v, the right Jacobian
J(x) of exp, p-bar = 1/2 (M(q_0) + M(q_1)) v and Phi = dL/dq + f (by q in the body frames of the joints, v constant):

    p_0 = J(-x)^-T p-bar - h/2 Phi(q_0, v)
    p_1 = J(x)^-T p-bar + h/2 Phi(q_1, v)

p = M(q) v is the momentum at the ends. The first is solved for v by Newton's method; what the charts curve is left to the
iteration. Newton-Euler gives b = ID(q, v, 0), and the Coriolis matrix dM/dt = C + C^T, so that

    Phi = (dM/dt) v - ad*_v (M v) - b + tau

where ad* is that of ball and free joints.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.joints.kinds import NV, SCREW
from liedyn.joints.passive import resistance_slope
from liedyn.joints.retraction import retract
from liedyn.kernels.derivatives.inverse_derivatives import DerivativesWork
from liedyn.kernels.loops.pivoting import PivotWork, factor_pivoted, solve_pivoted
from liedyn.kernels.recursions.composite import CompositeWork, composite
from liedyn.kernels.recursions.coriolis import coriolis
from liedyn.kernels.recursions.newton_euler import NewtonEulerWork, newton_euler
from liedyn.kernels.simulation.right_hand_side import act, joint_power
from liedyn.lie.rows import clear, load3, store3
from liedyn.lie.se3 import dexp_inv, dot, minus_dad
from liedyn.lie.so3 import dexp_inv3
from liedyn.lie.vec3 import cross

MOST = 30                    # Newton iterations
_ROUNDING = 4e-16            # of the velocity: nothing is left to correct
_NEAR = 1e-9                 # of the velocity: within which an iteration that gains nothing more is done
_SLOW = 0.1                  # of the correction that an iteration leaves, beyond which the matrix is renewed


class VariationalWork(NamedTuple):
    q: np.ndarray             # (nq,) at the end of the step
    v: np.ndarray             # (nv,) of the step
    x: np.ndarray             # (nv,) h v
    p: np.ndarray             # (nv,) momentum at the beginning, then at the end
    last: np.ndarray          # (nv,) v of the step before
    zero: np.ndarray          # (nv,)
    momentum: np.ndarray      # (nv,) M(q) v
    mean: np.ndarray          # (nv,) p-bar
    carried: np.ndarray       # (nv,) J^-T p-bar
    bias: np.ndarray          # (nv,)
    push: np.ndarray          # (nv,) Phi
    M: np.ndarray             # (nv nv,) at the beginning
    M_end: np.ndarray         # (nv nv,)
    C: np.ndarray             # (nv nv,)
    solver: PivotWork
    tree: NewtonEulerWork
    outward: DerivativesWork
    composite: CompositeWork


@kernel
def at_an_end(tree, plant, schedule, signals, t, q, work, own):
    """Phi and M v of the velocity own.v at an end q of a step, and own.C. work: the forces there, and its q and v. Returns the
    power that goes in: of motors, wrenches and passive forces but springs. False where a signal is not finite."""
    nv = own.v.size
    for k in range(q.size):
        work.q[k] = q[k]
    for k in range(nv):
        work.v[k] = own.v[k]
    act(plant, tree, schedule, signals, t, work)
    newton_euler(tree, tree.J, work.q, work.v, own.zero, work.F, plant.passive[0], own.bias, own.tree)
    clear(own.C)
    coriolis(tree, work.q, work.v, own.zero, 0.0, own.C, own.outward)
    for k in range(nv):
        own.push[k] = work.tau[k] - own.bias[k]
        for j in range(nv):
            own.push[k] += (own.C[k * nv + j] + own.C[j * nv + k]) * work.v[j]
    power = joint_power(tree, plant, work, 0.0)
    for i in range(work.F.size):
        power += work.F[i] * own.tree.V[i]
    return power


@primitive
def multiply(M, v, out):
    n = v.size
    for k in range(n):
        out[k] = 0.0
        for j in range(n):
            out[k] += M[k * n + j] * v[j]


@primitive
def less_joint_coadjoint(tree, v, p, out):
    """out -= ad*_v p, joint by joint: what turns with the frame of a ball or free joint."""
    for i in range(1, tree.parent.size):
        k = tree.iv[i]
        if tree.kind[i] == SCREW:
            continue
        if NV[tree.kind[i]] == 3:
            turned = cross(load3(p, k), load3(v, k))                        # ad*_w m = m x w
            for j in range(3):
                out[k + j] -= turned[j]
        else:
            m, f = minus_dad((load3(v, k), load3(v, k + 3)), (load3(p, k), load3(p, k + 3)))
            for j in range(3):
                out[k + j] += m[j]
                out[k + 3 + j] += f[j]


@primitive
def chart_rate_transposed(tree, x, p, out):
    """out = J(x)^-T p with the right Jacobian J of exp: the transpose of `retraction.chart_rate`."""
    for i in range(1, tree.parent.size):
        k = tree.iv[i]
        if tree.kind[i] == SCREW:
            out[k] = p[k]
        elif NV[tree.kind[i]] == 3:
            store3(out, k, dexp_inv3(load3(x, k), load3(p, k)))             # dexp_w^-T = dexp_{-w}^-1
        else:
            w, u = load3(x, k), load3(x, k + 3)
            y = (-w[0], -w[1], -w[2]), (-u[0], -u[1], -u[2])
            P = load3(p, k), load3(p, k + 3)
            for j in range(6):
                out[k + j] = dot(P, dexp_inv(y, (_column(j, 0), _column(j, 3))))


@primitive
def _column(j, first):
    """Three entries of column j of the unit matrix."""
    return (1.0 if j == first else 0.0), (1.0 if j == first + 1 else 0.0), (1.0 if j == first + 2 else 0.0)


@kernel
def variational_step(tree, plant, schedule, signals, t, end, h, q0, work, own):
    """From q0 and own.p over h: own.q, own.v and own.p at the end. t, end: when the signals are read. Returns the work that goes
    in, and the number of iterations; 0 where none converges, or a signal is not finite (work.flag), and -1 where the matrix is
    singular."""
    nv, before = own.v.size, np.inf
    composite(tree, q0, own.M, own.composite)
    renew, supplied = True, 0.0
    for k in range(nv):
        own.v[k] = 2.0 * own.v[k] - own.last[k]
    for iteration in range(1, MOST + 1):
        supplied = at_an_end(tree, plant, schedule, signals, t, q0, work, own)
        multiply(own.M, own.v, own.momentum)
        less_joint_coadjoint(tree, own.v, own.momentum, own.push)
        if work.flag[0] >= 0.0 or not move(tree, q0, h, own):
            return 0.0, 0
        chart_rate_transposed(tree, own.x, own.mean, own.carried)
        if renew:
            fill(tree, plant, h, own)
            if not factor_pivoted(nv, own.solver):
                return 0.0, -1 if iteration == 1 else 0
        for k in range(nv):
            own.solver.b[k] = own.p[k] + 0.5 * h * own.push[k] - own.carried[k]
        solve_pivoted(own.solver)
        change, size = 0.0, 0.0
        for k in range(nv):
            own.v[k] += own.solver.b[k]
            change, size = max(change, abs(own.solver.b[k])), max(size, abs(own.v[k]))
        if not change < np.inf:
            return 0.0, 0
        if change <= _ROUNDING * size or (change <= _NEAR * size and change >= 0.5 * before):
            return 0.5 * h * (supplied + finish(tree, plant, schedule, signals, end, q0, h, work, own)), iteration
        renew = iteration > 1 and change > _SLOW * before
        before = change
    return 0.0, 0


@primitive
def move(tree, q0, h, own):
    """own.q, own.M_end and p-bar of own.v; own.x = -h v. False where it is not finite."""
    total = 0.0
    for k in range(own.v.size):
        own.x[k] = h * own.v[k]
        total += abs(own.x[k])
    if not total < np.inf:
        return False
    retract(tree, q0, own.x, own.q)
    composite(tree, own.q, own.M_end, own.composite)
    multiply(own.M_end, own.v, own.mean)
    for k in range(own.v.size):
        own.mean[k] = 0.5 * (own.mean[k] + own.momentum[k])
        own.x[k] = -own.x[k]
    return True


@primitive
def fill(tree, plant, h, own):
    """The matrix of Newton's method: 1/2 (M(q_0) + M(q_1)) + h/2 (C - C^T) + h/2 of the resistance's slope."""
    nv = own.v.size
    for k in range(nv):
        for j in range(nv):
            own.solver.J[k, j] = 0.5 * (own.M[k * nv + j] + own.M_end[k * nv + j] + h * (own.C[k * nv + j] - own.C[j * nv + k]))
        if plant.passive[0]:
            own.solver.J[k, k] += 0.5 * h * resistance_slope(tree, k, own.v)


@primitive
def finish(tree, plant, schedule, signals, end, q0, h, work, own):
    """own.p at the end, once v is known. Returns the power there."""
    multiply(own.M, own.v, own.momentum)
    move(tree, q0, h, own)
    power = at_an_end(tree, plant, schedule, signals, end, own.q, work, own)
    multiply(own.M_end, own.v, own.momentum)
    less_joint_coadjoint(tree, own.v, own.momentum, own.push)
    for k in range(own.v.size):
        own.x[k] = -own.x[k]
    chart_rate_transposed(tree, own.x, own.mean, own.carried)
    for k in range(own.v.size):
        own.p[k] = own.carried[k] + 0.5 * h * own.push[k]
    return power
