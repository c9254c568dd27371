"""Linearly implicit steps for stiff forces: Rosenbrock methods with the exact Jacobian of the rates, on the manifold.

A step needs one Jacobian, one factorization and no iteration. The Jacobian omits the supplied energy, whose power is integrated
after the step, along its dense output, by Lobatto's formula of order 6. With y = [x; u; work], u = [v; z] and
J = [[X, P], [A, B]], where X and P have blocks of 1, or of the size of ball and free joints, the x are eliminated: only a matrix
of the size of u is inverted.

The solver has the interface of SciPy's `OdeSolver`, so that `scipy_solvers` runs it like a solver of SciPy; a step is compiled.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy import int64

from liedyn.arrays import Array
from liedyn.integrators.run_state import MIN_STEP_SPACINGS, T_BEFORE, arrays_of, load_arrays
from liedyn.integrators.runge_kutta import MIN_FIRST_STEP
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS, rates_compiled
from liedyn.kernels.simulation.right_hand_side import NOT_FINITE, RUNNING, SINGULAR
from liedyn.lie.simd import sqrt
from liedyn.model.description import ONE_DOF
from liedyn.numba_tools.decorators import inline_kernel, kernel

# rosenbrock tableau -----------------------------------------------------------------------------------------------------

# Coefficients of Rosenbrock methods, in the form without products with the Jacobian J (Hairer, Wanner, Solving ODEs II, IV.7):
#
#     (1 / (gamma h) - J) U_i = f(t + c_i h, y + sum_j A_ij U_j) + sum_j C_ij U_j / h + d_i h df/dt
#     y1 = y + sum_i b_i U_i, its error sum_i error_i U_i
#     y(t + s h) = (1 - s) y + s (y1 + (1 - s) (D_1 + s (D_2 + s D_3))), D = dense U

class Rosenbrock(NamedTuple):
    """Coefficients of a Rosenbrock method."""

    A: np.ndarray          # (s, s)
    C: np.ndarray          # (s, s)
    b: np.ndarray          # (s,)
    c: np.ndarray          # (s,)
    d: np.ndarray          # (s,)
    error: np.ndarray      # (s,)
    dense: np.ndarray      # (k, s)
    gamma: float
    order: int


@cache
def rodas5p() -> Rosenbrock:
    """Return a method of order 5 with an error estimate of order 4, L-stable and stiffly accurate.

    G. Steinebach, Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia Differential
    Equations package, BIT 63, 2023.
    """
    A, C = np.zeros((8, 8)), np.zeros((8, 8))
    A[1, :1] = 3.0
    A[2, :2] = 2.849394379747939, 0.45842242204463923
    A[3, :3] = -6.954028509809101, 2.489845061869568, -10.358996098473584
    A[4, :4] = 2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641
    A[5:, :5] = -7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946
    A[6:, 5], A[7, 6] = 1.0, 1.0
    C[1, :1] = -14.155112264123755
    C[2, :2] = -17.97296035885952, -2.859693295451294
    C[3, :3] = 147.12150275711716, -1.41221402718213, 71.68940251302358
    C[4, :4] = 165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306
    C[5, :5] = 24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471
    C[6, :6] = (30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623,
                -28.087943162872662)
    C[7, :7] = (37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002,
                -54.66780262877968, -9.48861652309627)
    gamma = 0.21193756319429014
    c = np.array([0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0])
    d = np.array([gamma, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069, 0.0, 0.0, 0.0])
    dense = np.array([[25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204, 0.524948541321073,
                       1.1241088310450404, 0.4272876194431874, -0.17202221070155493],
                      [-9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796, 20.176138334709044,
                       15.98066361424651, -6.789040303419874, -6.710236069923372],
                      [11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643, -52.072871366152654,
                       -59.78993625266729, -0.15582684282751913, 4.883087185713722]])
    last = np.eye(8)[7]
    return Rosenbrock(A, C, A[7] + last, c, d, last, dense, gamma, 5)


METHODS = {"rodas5p": rodas5p}


# rosenbrock -------------------------------------------------------------------------------------------------------------

_SAFETY_FACTOR, _MIN_FACTOR, _MAX_FACTOR = 0.9, 0.2, 6.0
# Trials outside the range of generated code, in consecutive steps, that only shorten the step: that cures a trial that diverges.
# After one more, the motion itself leaves the range, and generic kernels are used.
_MAX_REFUSALS = 3
_TIME_DIFFERENCE = 1e-6            # of a step: interval of the difference for df/dt
_NODES = 0.0, 0.5 - 0.5 / 5**0.5, 0.5 + 0.5 / 5**0.5, 1.0                            # of Lobatto's formula
# powers there -> work / h: s … s^4
_ENERGY_QUADRATURE = np.linalg.inv(np.vander(_NODES, increasing=True)) / np.arange(1.0, 5.0)[:, None]


class RosenbrockWorkspace(NamedTuple):
    """Workspace of a step, with n entries of y, m of u and nv of x."""

    J: np.ndarray          # (n - 1, n - 1) the Jacobian without the work, transposed
    W: np.ndarray          # (m, m) inverse of what is left for u, transposed
    E: np.ndarray          # (nv, 6) rows of the blocks of (g - X)^-1
    order: np.ndarray      # (m,) int64 workspace of `invert`
    block: np.ndarray      # (b, 2) int64 first coordinate and size of each block
    U: np.ndarray          # (stages, n)
    df_dt: np.ndarray      # (n,) df/dt
    right_hand_side: np.ndarray      # (n,)
    y: np.ndarray          # (n,) of a stage
    end: np.ndarray        # (n,) after the step
    power: np.ndarray      # (4,) at the nodes of the work
    size: np.ndarray       # (nv,) what errors of x are relative to besides x
    atol: np.ndarray       # (n,)


@kernel
def try_step(generated, generic, method, t, h, ceiling, q0, y, K, method_ws, rtol, ws):
    """Compute the step of length h from y, whose rates are in K[1], in method_ws.end. Return a code and the norm of the error.

    K[2] is overwritten.
    """
    if not factorize(1.0 / (method.gamma * h), method_ws):
        return SINGULAR, np.inf
    code = time_derivative(generated, generic, t, h, ceiling, q0, y, K, method_ws, ws)
    for i in range(method.b.size):
        if code != RUNNING:
            return code, np.inf
        if i > 0:
            add_stages(method.A[i, :i], y, method_ws.U, method_ws.y)
            code = rates_compiled(generated, generic, min(t + method.c[i] * h, ceiling), q0, method_ws.y, K, int64(2), ws)
        set_right_hand_side(method, i, h, K[2] if i > 0 else K[1], method_ws)
        solve_stage(method_ws, method_ws.U[i])
    add_stages(method.b, y, method_ws.U, method_ws.end)
    error = error_norm(method, y, method_ws, rtol)
    if error < 1.0:
        code = quadrature_powers(generated, generic, method, t, h, ceiling, q0, y, K, method_ws, ws)
    return code, error


@inline_kernel
def set_right_hand_side(method, i, h, rates, method_ws):
    """Write method_ws.right_hand_side of stage i from the rates of its state."""
    for k in range(rates.size):
        method_ws.right_hand_side[k] = rates[k] + h * method.d[i] * method_ws.df_dt[k]
    for j in range(i):
        w = method.C[i, j] / h
        for k in range(rates.size):
            method_ws.right_hand_side[k] += w * method_ws.U[j, k]


@inline_kernel
def add_stages(weights, y, U, end):
    """Write end = y plus the weighted sum of the stages U."""
    for k in range(y.size):
        end[k] = y[k]
    for j in range(weights.size):
        for k in range(y.size):
            end[k] += weights[j] * U[j, k]


@inline_kernel
def quadrature_powers(generated, generic, method, t, h, ceiling, q0, y, K, method_ws, ws):
    """Write method_ws.power: the supplied power at the nodes of the quadrature, along the dense output of the step."""
    code, n = RUNNING, y.size - 1
    method_ws.power[0] = K[1, n]
    for i in range(1, 4):
        s = _NODES[i]
        for k in range(n):
            x = 0.0
            for r in range(method.dense.shape[0] - 1, -1, -1):
                u = 0.0
                for j in range(method.b.size):
                    u += method.dense[r, j] * method_ws.U[j, k]
                x = u + s * x
            method_ws.y[k] = (1.0 - s) * y[k] + s * (method_ws.end[k] + (1.0 - s) * x)
        code = rates_compiled(generated, generic, min(t + s * h, ceiling), q0, method_ws.y, K, int64(2), ws)
        method_ws.power[i] = K[2, n]
        if code != RUNNING:
            return code
    return code


@inline_kernel
def time_derivative(generated, generic, t, h, ceiling, q0, y, K, method_ws, ws):
    """Write df/dt to method_ws.df_dt, by a finite difference."""
    n, ahead = y.size, min(t + _TIME_DIFFERENCE * h, ceiling) - t
    for k in range(n):
        method_ws.df_dt[k] = 0.0
    if ahead <= 0.0:
        return RUNNING
    code = rates_compiled(generated, generic, t + ahead, q0, y, K, int64(2), ws)
    for k in range(n):
        method_ws.df_dt[k] = (K[2, k] - K[1, k]) / ahead
    return code


@inline_kernel
def error_norm(method, y, method_ws, rtol):
    """Return the root mean square of the error over x and v, relative to atol + rtol size."""
    n, nv, total = y.size - 1, method_ws.size.size, 0.0
    for k in range(n):
        e = 0.0
        for j in range(method.error.size):
            e += method.error[j] * method_ws.U[j, k]
        size = max(abs(y[k]), abs(method_ws.end[k]))
        if k < nv:
            size += method_ws.size[k]
        total += (e / (method_ws.atol[k] + rtol * size))**2
    return sqrt(total / max(n, 1))


@inline_kernel
def factorize(g, method_ws):
    """Compute the inverses of g - X and of g - B - A (g - X)^-1 P. Return False if singular."""
    J, W, nv, m = method_ws.J, method_ws.W, method_ws.E.shape[0], method_ws.W.shape[0]
    for c in range(m):
        for r in range(m):
            W[c, r] = (g if r == c else 0.0) - J[nv + c, nv + r]
    for b in range(method_ws.block.shape[0]):
        k, n = method_ws.block[b, 0], method_ws.block[b, 1]
        E = method_ws.E[k:k + n, :n]
        for i in range(n):
            for j in range(n):
                E[i, j] = (g if i == j else 0.0) - J[k + j, k + i]
        if not invert(E, method_ws.order):
            return False
        for c in range(n):
            for i in range(n):
                x = 0.0
                for j in range(n):
                    x += E[i, j] * J[nv + k + c, k + j]
                for r in range(m):
                    W[k + c, r] -= J[k + i, nv + r] * x
    return invert(W, method_ws.order)


@inline_kernel
def invert(M, order):
    """Invert M in place by Gauss-Jordan elimination with row pivoting. Return False if a pivot is zero or not a number."""
    n = M.shape[0]
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(M[i, k]) > abs(M[best, k]):
                best = i
        order[k], pivot = best, M[best, k]
        if not 0.0 < abs(pivot) < np.inf:
            return False
        for j in range(n):
            x = M[best, j]
            M[best, j] = M[k, j]
            M[k, j] = x / pivot
        M[k, k] = 1.0 / pivot
        for i in range(n):
            x = M[i, k]
            if i != k and x != 0.0:
                M[i, k] = 0.0
                for j in range(n):
                    M[i, j] -= x * M[k, j]
    for k in range(n - 1, -1, -1):
        for i in range(n):
            x = M[i, k]
            M[i, k] = M[i, order[k]]
            M[i, order[k]] = x
    return True


@inline_kernel
def solve_stage(method_ws, U):
    """Solve (g - J) U = method_ws.right_hand_side, which is overwritten. The entry of U for the supplied energy stays zero."""
    J, W, right, nv, m = method_ws.J, method_ws.W, method_ws.right_hand_side, method_ws.E.shape[0], method_ws.W.shape[0]
    eliminate_positions(method_ws, U)
    for r in range(m):
        U[nv + r] = 0.0
    for c in range(nv):
        for r in range(m):
            right[nv + r] += J[c, nv + r] * U[c]
    for c in range(m):
        for r in range(m):
            U[nv + r] += W[c, r] * right[nv + c]
    for b in range(method_ws.block.shape[0]):
        k, n = method_ws.block[b, 0], method_ws.block[b, 1]
        for c in range(nv + k, nv + k + n):
            for i in range(k, k + n):
                right[i] += J[c, i] * U[c]
    eliminate_positions(method_ws, U)


@inline_kernel
def eliminate_positions(method_ws, U):
    """Write the x of U: (g - X)^-1 times the x of method_ws.right_hand_side."""
    for b in range(method_ws.block.shape[0]):
        k, n = method_ws.block[b, 0], method_ws.block[b, 1]
        for i in range(n):
            x = 0.0
            for j in range(n):
                x += method_ws.E[k + i, j] * method_ws.right_hand_side[k + j]
            U[k + i] = x


# from Python ------------------------------------------------------------------------------------------------------
class RosenbrockSolver:
    """Solver of a run of `scipy_solvers`, with the attributes of SciPy's `OdeSolver` that the run reads."""

    def __init__(self, run, fun, t0, y0, t_bound, rtol, atol, max_step, first_step, jac):
        self.run, self.fun, self.jacobian, self.t, self.y, self.t_bound = run, fun, jac, t0, y0, t_bound
        self.method, model = METHODS[run.options.method](), run.model
        self.rtol, self.max_step, self.status, self.t_old, self.step_size = rtol, max_step, "running", None, None
        n, nv = len(y0), model.nv
        m, block = n - 1 - nv, [part for joint in model.joints for part in _blocks(joint)]
        q_of_v = run.problem.schedule.q_of_v
        size = np.where(q_of_v >= 0, np.abs(run.state.q[q_of_v]), 1.0)
        self.method_ws = RosenbrockWorkspace._make((
            np.zeros((n - 1, n - 1)), np.zeros((m, m)), np.zeros((nv, 6)), np.zeros(max(m, 6), dtype=np.int64),
            np.array(block, dtype=np.int64).reshape(-1, 2), np.zeros((len(self.method.b), n)), *np.zeros((4, n)), np.zeros(4),
            size, np.asarray(atol, dtype=float)))
        self.K = np.zeros((4, n))               # the last row would be of an output: see `rate_evaluation.rates_generic`
        self.h_abs = max(first_step or self._first_step(), MIN_STEP_SPACINGS * np.spacing(t_bound))
        self.refusals = 0                       # in the last steps, see `_MAX_REFUSALS`

    def _first_step(self) -> float:
        """Return a first step from the magnitude of the rates (Hairer, Norsett, Wanner, II.4), as `runge_kutta.first_step`."""
        f, method_ws = self.fun(self.t, self.y)[:-1], self.method_ws
        size = np.abs(self.y[:-1]) + np.r_[method_ws.size, np.zeros(len(f) - len(method_ws.size))]
        scale = method_ws.atol[:-1] + self.rtol * size
        d0, d1 = (np.linalg.norm(x / scale) / max(len(f), 1)**0.5 for x in (size, f))
        h = 0.01 * d0 / d1 if d0 > 1e-5 and 1e-5 < d1 < np.inf else 1e-6
        span = self.t_bound - self.t
        return float(min(max(h, MIN_FIRST_STEP * span), span, self.max_step))

    def state_dict(self) -> dict[str, Any]:
        """Return the state on which the next steps depend."""
        return {"t": self.t, "y": self.y, "t_old": self.t_old, "h_abs": self.h_abs, "step_size": self.step_size, "K": self.K,
                "refusals": self.refusals, "method_ws": arrays_of(self.method_ws)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        self.t, self.t_old, self.h_abs, self.step_size = (state[name] for name in ("t", "t_old", "h_abs", "step_size"))
        self.y, self.K, self.refusals = np.array(state["y"]), np.array(state["K"]), int(state["refusals"])
        load_arrays(self.method_ws, state["method_ws"])

    def step(self) -> None:
        """Take one step, as `OdeSolver.step`."""
        t, y, run, method_ws = self.t, self.y, self.run, self.method_ws
        method_ws.J[:] = self.jacobian(t, y)[:-1, :-1].T
        run.check(t, run.jacobian.code, 0)
        self.K[1] = run.jacobian.rates
        smallest, rejected, refusals_before = MIN_STEP_SPACINGS * np.spacing(self.t_bound), False, self.refusals
        h = min(self.h_abs, self.max_step)
        while True:
            remaining = self.t_bound - t
            if h < smallest and h < remaining:
                self.status = "failed"
                return
            h, last = (remaining, True) if h >= 0.99 * remaining else (h, False)
            code, error = self._try(t, h, y)
            if code == INVALID_ARGUMENTS and self.refusals == _MAX_REFUSALS:
                run.rhs.use_generic_kernels()
                h = min(self.h_abs, self.max_step)
                continue
            if code in (NOT_FINITE, SINGULAR, INVALID_ARGUMENTS) or not np.isfinite(error):
                self.refusals += code == INVALID_ARGUMENTS
                run.trial_code = NOT_FINITE if code == INVALID_ARGUMENTS else code
                h, rejected = 0.25 * h, True
            elif error >= 1.0:
                h, rejected = h * max(_MIN_FACTOR, _SAFETY_FACTOR * error**(-1 / self.method.order)), True
            else:
                break
        if self.refusals == refusals_before:
            self.refusals = 0
        ratio = _MAX_FACTOR if error == 0.0 else min(_MAX_FACTOR,
                                                     max(_MIN_FACTOR, _SAFETY_FACTOR * error**(-1 / self.method.order)))
        if not last or ratio < 1.0 or h >= self.h_abs:        # a shortened step does not change the next one
            self.h_abs = h * (min(1.0, ratio) if rejected else ratio)
        self.y_old, self.t_old, self.t, self.step_size = y, t, self.t_bound if last else t + h, self.h_abs
        self.y, self.energy_polynomial = method_ws.end.copy(), h * _ENERGY_QUADRATURE @ method_ws.power
        self.y[-1] = y[-1] + self.energy_polynomial.sum()
        if last:
            self.status = "finished"

    def _try(self, t: float, h: float, y: Array) -> tuple[int, float]:
        run = self.run
        rhs = run.rhs
        code, error = try_step(rhs.generated, rhs.generic, self.method, t, h, run.state.clock[T_BEFORE], run.state.q, y, self.K,
                               self.method_ws, self.rtol, run.workspace)
        is_trial = code in (NOT_FINITE, SINGULAR, INVALID_ARGUMENTS)
        run.check(t, RUNNING if is_trial else code, len(self.method.b))
        return code, error

    def dense_output(self) -> Callable[[float], Array]:
        """Return the state in the last step as a function of time."""
        assert self.t_old is not None
        t, h, y, end, energy_polynomial = self.t_old, self.t - self.t_old, self.y_old, self.y, self.energy_polynomial
        dense, U = self.method.dense, self.method_ws.U

        def at(time: float) -> Array:
            s, D = (time - t) / h, dense @ U
            out: Array = (1 - s) * y + s * (end + (1 - s) * (D[0] + s * (D[1] + s * D[2])))
            out[-1] = y[-1] + s**np.arange(1, 5) @ energy_polynomial
            return out
        return at


def _blocks(joint) -> list[tuple[int, int]]:
    """Return the first coordinate and the size of each block of a joint."""
    first, last = joint.v.start, joint.v.stop
    return [(k, 1) for k in range(first, last)] if joint.kind == ONE_DOF else [(first, last - first)]
