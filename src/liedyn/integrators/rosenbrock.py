"""Linearly implicit steps for stiff forces: Rosenbrock methods with the exact Jacobian of the rates, on the manifold.

A step needs one Jacobian and one factorization, and no iteration. The Jacobian leaves out the work, whose power is integrated
after the step, along its dense output, by Lobatto's formula of order 6. With y = [x; v; work] and J = [[X, P], [A, B]], where
X and P have blocks only for ball and free joints, the x are eliminated: only a matrix of the size of v is factored. Integrals z
of pid laws, with dz'/d[x; v] = D and dv'/dz = C, are eliminated before: A and B stand for [A, B] + C D / g.

The solver has the interface of SciPy's `OdeSolver`, so that `scipy_solvers` runs it as it runs SciPy's; a step is compiled.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy import int64

from liedyn.integrators.rosenbrock_tableau import METHODS
from liedyn.integrators.run_state import SMALLEST_STEP
from liedyn.integrators.runge_kutta import rates_at
from liedyn.jit import kernel, primitive
from liedyn.joints.kinds import SCREW
from liedyn.kernels.simulation.line_stages import REFUSED
from liedyn.kernels.simulation.right_hand_side import NOT_FINITE, RUNNING, SINGULAR
from liedyn.lie.lanes import sqrt

_SAFETY, _LEAST, _MOST = 0.9, 0.2, 6.0
_PATIENCE = 3             # shorter steps where a trial is too far for the line, before loops go on: angles may be that large
_GLANCE = 1e-6            # of a step: over which df/dt is a difference
_NODES = 0.0, 0.5 - 0.5 / 5**0.5, 0.5 + 0.5 / 5**0.5, 1.0                            # of Lobatto's formula
_WORK = np.linalg.inv(np.vander(_NODES, increasing=True)) / np.arange(1.0, 5.0)[:, None]   # powers there -> work / h: s … s^4


class Lone(NamedTuple):
    """A and c of an evaluation that is no stage of an explicit method."""

    A: np.ndarray
    c: np.ndarray


class Room(NamedTuple):
    full: np.ndarray       # (n, n) the Jacobian
    J: np.ndarray          # (n, n) the same, without z
    W: np.ndarray          # (nv, nv) factors of the matrix of v
    order: np.ndarray      # (nv,) int64 rows in the order of the pivots
    block: np.ndarray      # (b, 2) int64 first coordinate and size of ball and free joints
    E: np.ndarray          # (nv, 6) rows of 1 / (g - X) of their blocks
    room: np.ndarray       # (6, 12) where they are inverted
    U: np.ndarray          # (stages, n)
    slope: np.ndarray      # (n,) df/dt
    right: np.ndarray      # (n,)
    y: np.ndarray          # (n,) of a stage
    end: np.ndarray        # (n,) after the step
    swap: np.ndarray       # (nv,)
    power: np.ndarray      # (4,) at the nodes of the work
    size: np.ndarray       # (nv,) what errors of x are relative to besides x
    atol: np.ndarray       # (n,)


@kernel
def try_step(line, loops, lone, method, t, h, ceiling, q0, y, K, stage, room, rtol, work):
    """The step of length h from y, whose rates are in K[1], into room.end. Returns a code and the norm of the error.
    K[2] is overwritten."""
    n, g = y.size, 1.0 / (method.gamma * h)
    if not factor(g, room):
        return SINGULAR, np.inf
    code = time_slope(line, loops, lone, t, h, ceiling, q0, y, K, stage, room, work)
    for i in range(method.b.size):
        if code != RUNNING:
            return code, np.inf
        for k in range(n):
            room.y[k] = y[k]
        for j in range(i):
            if method.A[i, j] != 0.0:
                for k in range(n):
                    room.y[k] += method.A[i, j] * room.U[j, k]
        if i > 0:
            now = min(t + method.c[i] * h, ceiling)
            code = rates_at(line, loops, lone, now, 0.0, ceiling, q0, room.y, Rows(K, stage), int64(0), int64(1), int64(2), work)
        rates = K[2] if i > 0 else K[1]
        for k in range(n):
            room.right[k] = rates[k] + h * method.d[i] * room.slope[k]
        for j in range(i):
            w = method.C[i, j] / h
            for k in range(n):
                room.right[k] += w * room.U[j, k]
        solve_stage(g, room, room.U[i])
    for k in range(n):
        room.end[k] = y[k]
    for j in range(method.b.size):
        for k in range(n):
            room.end[k] += method.b[j] * room.U[j, k]
    error = error_norm(method, y, room, rtol)
    if error < 1.0:
        code = powers(line, loops, lone, method, t, h, ceiling, q0, y, K, stage, room, work)
    return code, error


@primitive
def powers(line, loops, lone, method, t, h, ceiling, q0, y, K, stage, room, work):
    """Into room.power, along the dense output of the step."""
    code, n = RUNNING, y.size - 1
    room.power[0] = K[1, n]
    for i in range(1, 4):
        s = _NODES[i]
        for k in range(n):
            x = 0.0
            for r in range(method.dense.shape[0] - 1, -1, -1):
                u = 0.0
                for j in range(method.b.size):
                    u += method.dense[r, j] * room.U[j, k]
                x = u + s * x
            room.y[k] = (1.0 - s) * y[k] + s * (room.end[k] + (1.0 - s) * x)
        code = rates_at(line, loops, lone, min(t + s * h, ceiling), 0.0, ceiling, q0, room.y, Rows(K, stage), int64(0), int64(1),
                        int64(2), work)
        room.power[i] = K[2, n]
        if code != RUNNING:
            return code
    return code


class Rows(NamedTuple):
    """The part of `Stages` that an evaluation writes."""

    K: np.ndarray
    y: np.ndarray


@primitive
def time_slope(line, loops, lone, t, h, ceiling, q0, y, K, stage, room, work):
    """df/dt into room.slope, by a difference."""
    n, ahead = y.size, min(t + _GLANCE * h, ceiling) - t
    for k in range(n):
        room.slope[k] = 0.0
    if ahead <= 0.0:
        return RUNNING
    code = rates_at(line, loops, lone, t + ahead, 0.0, ceiling, q0, y, Rows(K, stage), int64(0), int64(1), int64(2), work)
    for k in range(n):
        room.slope[k] = (K[2, k] - K[1, k]) / ahead
    return code


@primitive
def error_norm(method, y, room, rtol):
    """Root mean square over x and v, relative to atol + rtol size."""
    n, nv, total = y.size - 1, room.size.size, 0.0
    for k in range(n):
        e = 0.0
        for j in range(method.error.size):
            e += method.error[j] * room.U[j, k]
        size = max(abs(y[k]), abs(room.end[k]))
        if k < nv:
            size += room.size[k]
        total += (e / (room.atol[k] + rtol * size))**2
    return sqrt(total / max(n, 1))


@primitive
def factor(g, room):
    """W = g - B - A (g - X)^-1 P, factored with row pivoting. False: singular."""
    J, W, E, nv = room.J, room.W, room.E, room.W.shape[0]
    eliminate_integrals(g, room)
    for r in range(nv):
        for c in range(nv):
            W[r, c] = -J[nv + r, nv + c] - J[nv + r, c] * J[c, nv + c] / g
        W[r, r] += g
    for b in range(room.block.shape[0]):
        k, m = room.block[b, 0], room.block[b, 1]
        invert_block(g, k, m, J, E, room.room)
        for r in range(nv):
            for c in range(m):
                total = 0.0
                for i in range(m):
                    ep = 0.0
                    for j in range(m):
                        ep += E[k + i, j] * J[k + j, nv + k + c]
                    total += J[nv + r, k + i] * ep
                W[r, k + c] = (g if r == k + c else 0.0) - J[nv + r, nv + k + c] - total
    return lu(W, room.order)


@primitive
def eliminate_integrals(g, room):
    """[A, B] + C D / g into J."""
    full, nv, n = room.full, room.W.shape[0], room.full.shape[0]
    for r in range(nv, 2 * nv):
        for k in range(2 * nv, n - 1):
            if k == 2 * nv:
                for c in range(2 * nv):
                    room.J[r, c] = full[r, c]
            for c in range(2 * nv):
                room.J[r, c] += full[r, k] * full[k, c] / g


@primitive
def invert_block(g, k, m, J, E, room):
    """(g - X)^-1 of a ball's or a free body's block into E: Gauss and Jordan. Diagonally dominant where the step is short."""
    for i in range(m):
        for j in range(m):
            room[i, j] = (g if i == j else 0.0) - J[k + i, k + j]
            room[i, m + j] = 1.0 if i == j else 0.0
    for p in range(m):
        best = p
        for i in range(p + 1, m):
            if abs(room[i, p]) > abs(room[best, p]):
                best = i
        for j in range(2 * m):
            x = room[p, j]
            room[p, j] = room[best, j]
            room[best, j] = x
        x = room[p, p]
        for j in range(2 * m):
            room[p, j] = room[p, j] / x
        for i in range(m):
            if i != p:
                x = room[i, p]
                for j in range(2 * m):
                    room[i, j] -= x * room[p, j]
    for i in range(m):
        for j in range(m):
            E[k + i, j] = room[i, m + j]


@primitive
def lu(W, order):
    """Factors in place. False where a pivot is zero or not a number."""
    n = order.size
    for i in range(n):
        order[i] = i
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(W[i, k]) > abs(W[best, k]):
                best = i
        if not (abs(W[best, k]) > 0.0 and abs(W[best, k]) < np.inf):
            return False
        if best != k:
            i = order[k]
            order[k] = order[best]
            order[best] = i
            for j in range(n):
                x = W[k, j]
                W[k, j] = W[best, j]
                W[best, j] = x
        for i in range(k + 1, n):
            x = W[i, k]
            if x != 0.0:
                x = x / W[k, k]
                W[i, k] = x
                for j in range(k + 1, n):
                    W[i, j] -= x * W[k, j]
    return True


@primitive
def solve_stage(g, room, U):
    """(g - J) U = room.right, by the factors."""
    J, W, right, z, nv = room.J, room.W, room.right, room.swap, room.W.shape[0]
    full, n = room.full, room.full.shape[0]
    for k in range(nv):
        U[k] = right[k] / g
    eliminate_blocks(room, right, U)                       # (g - X)^-1 r_x
    for r in range(nv):
        x = right[nv + r]
        for c in range(nv):
            x += J[nv + r, c] * U[c]
        for c in range(2 * nv, n - 1):
            x += full[nv + r, c] * right[c] / g
        z[r] = x
    for k in range(nv):
        x = z[room.order[k]]
        for j in range(k):
            x -= W[k, j] * U[nv + j]
        U[nv + k] = x
    for i in range(nv):
        k = nv - 1 - i
        x = U[nv + k]
        for j in range(k + 1, nv):
            x -= W[k, j] * U[nv + j]
        U[nv + k] = x / W[k, k]
    for k in range(nv):
        U[k] = (right[k] + J[k, nv + k] * U[nv + k]) / g
    for b in range(room.block.shape[0]):
        k, m = room.block[b, 0], room.block[b, 1]
        for i in range(m):
            for c in range(m):
                right[k + i] += J[k + i, nv + k + c] * U[nv + k + c]
    eliminate_blocks(room, right, U)
    for k in range(2 * nv, n):
        x = right[k]
        if k < n - 1:
            for c in range(2 * nv):
                x += full[k, c] * U[c]
        U[k] = x / g


@primitive
def eliminate_blocks(room, right, U):
    for b in range(room.block.shape[0]):
        k, m = room.block[b, 0], room.block[b, 1]
        for i in range(m):
            x = 0.0
            for j in range(m):
                x += room.E[k + i, j] * right[k + j]
            U[k + i] = x


# from Python ------------------------------------------------------------------------------------------------------
class RosenbrockSolver:
    """Of a run of `scipy_solvers`, with the attributes of SciPy's `OdeSolver` that it reads."""

    def __init__(self, run, fun, t0, y0, t_bound, rtol, atol, max_step, first_step, jac):
        self.run, self.fun, self.jacobian, self.t, self.y, self.t_bound = run, fun, jac, t0, y0, t_bound
        self.method, model = METHODS[run.options.method](), run.model
        self.rtol, self.most, self.status, self.t_old, self.step_size = rtol, max_step, "running", None, None
        n, nv, blocks = len(y0), model.nv, [joint for joint in model.joints if joint.kind != SCREW]
        block = np.array([(j.v.start, j.v.stop - j.v.start) for j in blocks], dtype=np.int64).reshape(-1, 2)
        q_of_v = run.problem.schedule.q_of_v
        size = np.where(q_of_v >= 0, np.abs(run.state.q[q_of_v]), 1.0)
        self.room = Room(np.zeros((n, n)), np.zeros((n, n)), np.zeros((nv, nv)), np.zeros(nv, dtype=np.int64), block,
                         np.zeros((nv, 6)), np.zeros((6, 12)), np.zeros((len(self.method.b), n)), *np.zeros((4, n)),
                         np.zeros(nv), np.zeros(4), size, np.asarray(atol, dtype=float))
        self.K, self.lone = np.zeros((3, n)), Lone(np.zeros((1, 1)), np.zeros(1))
        self.h_abs = max(first_step or self._first_step(), SMALLEST_STEP * np.spacing(t_bound))

    def _first_step(self) -> float:
        """From the size of the rates (Hairer, Norsett, Wanner, Solving ODEs I, II.4), as `step_size.first_step`."""
        f, room = self.fun(self.t, self.y)[:-1], self.room
        size = np.abs(self.y[:-1]) + np.r_[room.size, np.zeros(len(f) - len(room.size))]
        scale = room.atol[:-1] + self.rtol * size
        d0, d1 = (np.linalg.norm(x / scale) / max(len(f), 1)**0.5 for x in (size, f))
        h = 0.01 * d0 / d1 if d0 > 1e-5 and 1e-5 < d1 < np.inf else 1e-6
        return min(h, self.t_bound - self.t, self.most)

    def step(self) -> None:
        """As `OdeSolver.step`."""
        t, y, run, room = self.t, self.y, self.run, self.room
        room.full[:] = self.jacobian(t, y)
        room.J[:] = room.full
        run.check(run.jacobian.code)
        self.K[1] = run.jacobian.rates
        smallest, rejected, refused = SMALLEST_STEP * np.spacing(self.t_bound), False, 0
        h = min(self.h_abs, self.most)
        while True:
            left = self.t_bound - t
            if h < smallest and h < left:
                self.status = "failed"
                return
            h, last = (left, True) if h >= 0.99 * left else (h, False)
            code, error = self._try(t, h, y)
            if code == REFUSED and refused == _PATIENCE:
                run.sides.turn_to_loops()
                continue
            if code in (NOT_FINITE, SINGULAR, REFUSED) or not np.isfinite(error):
                refused += code == REFUSED
                run.trouble = NOT_FINITE if code == REFUSED else code
                h, rejected = 0.25 * h, True
            elif error >= 1.0:
                h, rejected = h * max(_LEAST, _SAFETY * error**(-1 / self.method.order)), True
            else:
                break
        factor = _MOST if error == 0.0 else min(_MOST, max(_LEAST, _SAFETY * error**(-1 / self.method.order)))
        if not last or factor < 1.0 or h >= self.h_abs:        # a step cut by a wall says nothing of the next
            self.h_abs = h * (min(1.0, factor) if rejected else factor)
        self.before, self.t_old, self.t, self.step_size = y, t, self.t_bound if last else t + h, self.h_abs
        self.y, self.work = room.end.copy(), h * _WORK @ room.power
        self.y[-1] = y[-1] + self.work.sum()
        if last:
            self.status = "finished"

    def _try(self, t, h, y):
        run = self.run
        sides = run.sides
        code, error = try_step(sides.line, sides.loops, self.lone, self.method, t, h, run.ceiling, run.state.q, y, self.K,
                               run.stages.y, self.room, self.rtol, run.work)
        run.evaluations += len(self.method.b)
        if code not in (RUNNING, NOT_FINITE, SINGULAR, REFUSED):
            run.check(code)
        return code, error

    def dense_output(self):
        t, h, y, end, work = self.t_old, self.t - self.t_old, self.before, self.y, self.work
        dense, U = self.method.dense, self.room.U

        def at(time):
            s, D = (time - t) / h, dense @ U
            out = (1 - s) * y + s * (end + (1 - s) * (D[0] + s * (D[1] + s * D[2])))
            out[-1] = y[-1] + s**np.arange(1, 5) @ work
            return out
        return at
