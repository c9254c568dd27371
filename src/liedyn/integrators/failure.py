"""Why a run ended early, in words."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.loops.constraints import constraint_jacobian
from liedyn.dynamics.loops.rank import scaled_equations, significant
from liedyn.errors import ComputationError, Place
from liedyn.integrators.problem import LOST, Options, Problem
from liedyn.integrators.stiffness import mend_inertia, probable_cause, weakest
from liedyn.integrators.touch import touch
from liedyn.kernels.loops.by_parts import CONTRADICTION, LOOP_OPEN, LOOSE_JOINT
from liedyn.kernels.loops.desk import BAD_ROW, BAD_SIZE
from liedyn.kernels.loops.loop_motion import LoopPlant
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, NOT_FINITE, SINGULAR, STEP_TOO_SMALL, MotionWork


def failure(problem: Problem, code: int, t: float, work: MotionWork, ties: LoopPlant | None = None,
            options: Options | None = None) -> ComputationError:
    """What to tell when a run ends early. What may help is tried by `simulation.trials`."""
    return early_end(*_reason(problem, code, t, work, ties, options), t)


def early_end(text: str, depends_on_method: bool, t: float) -> ComputationError:
    """Of a run that ends at t. depends_on_method: another may go on."""
    error = ComputationError(text)
    error.at, error.depends_on_method = float(t), depends_on_method
    return error


def _reason(problem: Problem, code: int, t: float, work: MotionWork, ties: LoopPlant | None,
            options: Options | None) -> tuple[str, bool]:
    """In words, and whether another method may go on."""
    if code in (LOOP_OPEN, CONTRADICTION):
        return _constraint_reason(problem, code, t, ties)
    if code in (BAD_SIGNAL, SINGULAR, LOOSE_JOINT) and not (np.abs([*work.q, *work.v]) < LOST).all():
        code = NOT_FINITE                                      # what follows from it tells nothing
    if code == BAD_SIGNAL:
        k = int(work.flag[0])
        name = problem.signal_names[k] if k < len(problem.signal_names) else f"number {k}"
        place = problem.signal_places[k] if k < len(problem.signal_places) else Place()
        where = f"{place}: " if str(place) else ""
        return f"{where}the signal of {name} is not a finite number at or soon after t = {t:.6g} s", False
    if code in (SINGULAR, LOOSE_JOINT):
        loose = weakest(problem, work.q)[1]
        return (f"a joint's articulated inertia vanishes at or soon after t = {t:.6g} s: the acceleration of "
                f"{loose or 'a coordinate'} is not defined (a body without inertia about an axis, or a compound "
                f"joint in a singular position); {mend_inertia(problem.model, loose)}"), False
    if code not in (NOT_FINITE, STEP_TOO_SMALL):
        return f"the run ended early at t = {t:.6g} s (code {code})", False
    cause, depends_on_method = probable_cause(problem, options)
    causes = [cause] if cause else []
    if problem.sampled is not None and code == NOT_FINITE:
        causes.append("the gains may be too large for the rate of sampling")
    if problem.joint_laws is not None and problem.joint_laws.task is not None:
        causes.append("the target of task_space may be out of reach, or near a singular configuration")
    what = "the motion is no longer finite soon after" if code == NOT_FINITE else "the step size became too small at"
    worst = _worst_coordinates(problem.model.v_names, work) + _deepest_contact(problem, work)
    why = f": {'; or '.join(causes)}" if causes else ""
    see = "; see docs/running.md#runs-that-end-early" if code == NOT_FINITE else ""
    return f"{what} t = {t:.6g} s{worst}{why}{see}", depends_on_method


def _worst_coordinates(names: tuple[str, ...], work: MotionWork) -> str:
    """Which coordinates to look at: that of the largest force, which a gain may be too large for, and the fastest."""
    forces, speeds = (np.nan_to_num(np.abs(x), nan=0.0, posinf=np.inf) for x in (work.tau, work.v))
    told = [f"{what} {names[int(np.argmax(sizes))]}" for what, sizes in (("the largest force was that of", forces),
                                                                        ("the fastest coordinate was", speeds)) if sizes.any()]
    return "".join(f"; {one}" for one in told)


def _deepest_contact(problem: Problem, work: MotionWork) -> str:
    """A robot that starts below the ground is thrown out of it."""
    if problem.contacts is None or not (np.abs([*work.q, *work.v]) < LOST).all():
        return ""
    at = touch(problem.model, problem.contacts, work.q[None], work.v[None])
    k = int(np.argmax(at.depth[0]))
    depth, link = at.depth[0, k], problem.model.link_names[problem.contacts.link[k]]
    return f"; the contact of {link} was {depth:.3g} m deep" if depth > 0.0 else ""


def _constraint_reason(problem: Problem, code: int, t: float, ties: LoopPlant) -> tuple[str, bool]:
    model, row, size = problem.model, int(ties.figures[BAD_ROW]), float(ties.figures[BAD_SIZE])
    name = next(one.name for one in model.constraints if one.rows.start <= row < one.rows.stop)
    given = _given_on(problem, name)
    at = f"at or soon after t = {t:.6g} s"
    if code == CONTRADICTION:
        return (f"the prescribed motion contradicts the constraint {name} {at}: its row {model.row_names[row]} has a residual "
                f"acceleration of {size:.3g}; prescribed: {', '.join(given)} (prescribe fewer joints, or consistent "
                "motions)"), False
    open_ = f"the constraint {name} cannot be closed {at}: the residual of {model.row_names[row]} stays at {size:.3g}"
    if given:
        return f"{open_}; prescribed: {', '.join(given)} (prescribe fewer joints, or a motion that the mechanism allows)", False
    return f"{open_} (a mechanism may jam or snap through in a singular configuration)", True


def _given_on(problem: Problem, name: str) -> list[str]:
    """Prescribed coordinates that the constraint feels, or all of them, and driven loops."""
    model, prescribed = problem.model, problem.prescribed
    A = scaled_equations(model, constraint_jacobian(model, problem.q))[model.constraint(name).rows]
    felt = prescribed & significant(np.abs(A).max(axis=0))
    among = felt if felt.any() else prescribed
    driven = [one.name for one in model.constraints if one.driven]
    return [model.v_names[i] for i in np.flatnonzero(among)] + [f"the motion of closure {one}" for one in driven]
