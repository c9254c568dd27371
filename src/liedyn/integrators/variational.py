"""A variational integrator over a run: fixed steps, for long motion whose energy must not drift."""
from __future__ import annotations

import numpy as np

from liedyn.errors import Place, ScenarioError
from liedyn.integrators.chunks import solve_in_chunks
from liedyn.integrators.problem import Problem
from liedyn.integrators.run_state import keep_evaluated, next_part
from liedyn.jit import kernel, primitive
from liedyn.joints.tree import tree_of
from liedyn.kernels.derivatives.inverse_derivatives import derivatives_memory, derivatives_work
from liedyn.kernels.loops.by_parts import copy
from liedyn.kernels.loops.pivoting import PivotWork, factor_pivoted, solve_pivoted
from liedyn.kernels.recursions.composite import CompositeWork, composite
from liedyn.kernels.recursions.hybrid import hybrid, hybrid_work
from liedyn.kernels.recursions.newton_euler import NewtonEulerWork
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, FINISHED, NOT_CONVERGED, NOT_FINITE, RUNNING, SINGULAR, act
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.kernels.simulation.variational import VariationalWork, multiply, variational_step


@kernel
def run_variational(index, constants, plant, schedule, signals, state, record, work, own, step, most_steps):
    """Advance until the last output is kept or `most_steps` are done. Returns a code of `right_hand_side`."""
    tree, nv = tree_of(index, constants), own.v.size
    for _ in range(most_steps):
        if state.count[5] == 0:
            begin_momentum(tree, state, own)
        if state.clock[0] >= record.t[state.count[0]]:
            code = keep_state(tree, plant, schedule, signals, state, record, work, own)
            if code != RUNNING:
                return code
        if state.count[0] == record.t.size:
            return FINISHED
        h, end, wall, before, _ = next_part(schedule, state, record, step)
        seen = before if end == wall else end
        supplied, iterations = variational_step(tree, plant, schedule, signals, state.clock[0], seen, h, state.q, work, own)
        if iterations <= 0:
            return BAD_SIGNAL if work.flag[0] >= 0.0 else (SINGULAR if iterations < 0 else NOT_CONVERGED)
        copy(own.q, state.q)
        if not velocity(tree, state.q, own):
            return SINGULAR
        for k in range(nv):
            own.last[k] = own.v[k]
            own.v[k] = state.y[nv + k] = own.solver.b[k]
        state.y[2 * nv] += supplied
        state.clock[0] = end
        state.count[2], state.count[4] = state.count[2] + 1, state.count[4] + iterations
    return RUNNING


@primitive
def begin_momentum(tree, state, own):
    nv = own.v.size
    composite(tree, state.q, own.M, own.composite)
    for k in range(nv):
        own.v[k] = own.last[k] = state.y[nv + k]
    multiply(own.M, own.v, own.p)
    state.count[5] = 1


@primitive
def velocity(tree, q, own):
    """own.solver.b = M(q)^-1 p."""
    composite(tree, q, own.M, own.composite)
    nv = own.v.size
    for k in range(nv):
        for j in range(nv):
            own.solver.J[k, j] = own.M[k * nv + j]
        own.solver.b[k] = own.p[k]
    sound = factor_pivoted(nv, own.solver)
    solve_pivoted(own.solver)
    return sound


@primitive
def keep_state(tree, plant, schedule, signals, state, record, work, own):
    """The state, and what acts there. Returns a code."""
    nv = own.v.size
    copy(state.q, work.q)
    for k in range(nv):
        work.v[k] = state.y[nv + k]
    act(plant, tree, schedule, signals, state.clock[0], work)
    inner = hybrid_work(work.memory, tree.parent.size, nv)
    deficit = hybrid(tree, plant.prescribed, work.q, work.v, work.a, work.tau, work.F, plant.passive[0], inner)
    if work.flag[0] >= 0.0 or deficit > 0.0:
        return BAD_SIGNAL if work.flag[0] >= 0.0 else SINGULAR
    total = 0.0
    for k in range(nv):
        total += abs(work.a[k])
    if not total < np.inf:
        return NOT_FINITE
    keep_evaluated(work, state.y[2 * nv], record, state.count[0])
    state.count[0] += 1
    return RUNNING


# from Python ------------------------------------------------------------------------------------------------------
def solve_variational(problem: Problem, times: np.ndarray, options, progress, keeper):
    """As `solve`: the motion at `times` (increasing, from 0) by steps of options.step, and what it took.

    Of second order. Without forces that depend on time or velocity the energy error stays bounded over exponentially many steps,
    and momenta that belong to symmetries are kept to rounding.

    Raises ComputationError where a step finds no solution, or as `solve`; ScenarioError for constraints and prescribed motions.

    Notes
    -----
    J. E. Marsden, M. West, Discrete mechanics and variational integrators, Acta Numerica 10, 2001.
    """
    refuse_what_is_given(problem)
    model, plant, own = problem.model, problem.plant(), _work(problem.model)

    def advance(state, record, work, steps):
        return run_variational(*model._arrays[:2], plant, problem.schedule, problem.signals, state, record, work, own,
                               float(options.step), steps)

    return solve_in_chunks(advance, problem, times, options, progress, keeper, own, None)


def refuse_what_is_given(problem: Problem, place: Place | None = None) -> None:
    """ScenarioError where the motion is not that of a tree under forces."""
    given = [name for name, level in zip(problem.model.v_names, problem.schedule.level, strict=True) if level != TORQUE]
    if problem.ties is not None or given:
        raise ScenarioError(f"variational does not know {'prescribed motions' if given else 'loops and couplings'}", place=place,
                            found=", ".join(given[:3]) or None, expected="another integrator.method")


def _work(model) -> VariationalWork:
    n, nq, nv = model.n_bodies, model.nq, model.nv
    order = (np.zeros(nv, dtype=np.int64), np.zeros(nv, dtype=np.int64), np.zeros(1, dtype=np.int64))
    solver = PivotWork(np.zeros((nv, nv)), *np.zeros((3, nv)), *order, np.zeros((0, 0)), np.zeros((0, nv)))
    tree = NewtonEulerWork(np.zeros(12 * n), *np.zeros((3, 6 * n)), np.zeros(nv))
    outward = derivatives_work.py_func(np.zeros(derivatives_memory(n, nv)), n, nv)
    return VariationalWork(np.zeros(nq), *np.zeros((10, nv)), *np.zeros((3, nv * nv)), solver, tree, outward,
                           CompositeWork(np.zeros(12 * n), np.zeros(10 * n)))
