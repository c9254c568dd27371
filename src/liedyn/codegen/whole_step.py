"""A whole step of a simulation as a line over many runs side by side: the integrator, recorded with the right-hand side that it
calls. Runs share robot, modes and signals, and the times of their steps; each has its own state, numbers (gains, constants,
torques) and, if asked, parameters of the robot.

Constraints are solved by rows that are chosen in advance, and each step ends with a projection onto them (`_Closed`).
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.codegen.adjoint import adjoint
from liedyn.codegen.lines import Batch, folder, kept_batch, wanted, width
from liedyn.codegen.mechanism import Mechanism
from liedyn.codegen.plain import plain
from liedyn.codegen.recording import VARYING, Array, Recording, bounds_of_angles, written
from liedyn.codegen.scenario_tables import Tables
from liedyn.codegen.step import Scene
from liedyn.kernels.loops.by_parts import LOOP_OPEN
from liedyn.kernels.loops.chosen_rows import FAIR
from liedyn.kernels.simulation.line_stages import REFUSED, TERMS
from liedyn.kernels.simulation.right_hand_side import RUNNING
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.lie.recorded import NotALine, absolute, numbers, where_less, zeros

TIMES = 3            # of a step, at which signals are read: its beginning, middle and end
Rows = tuple[tuple[int, ...], ...]
PROJECTIONS = 2      # of the position after a step: the first leaves the square of its drift
OPEN = 1e-5          # rad or m: what the last of them squares
DEPENDENT_ROWS = 9   # a code beside those of `right_hand_side` and `by_parts`


@dataclass(frozen=True)
class WholeStep:
    """step(clock, curves, values, q, v, work, code, varying): one step of each run, in place.

    clock     (1, 4) length of the step, and its times
    curves    (1, 15 c) Taylor coefficients at these of the signals `curves`
    values    (N, k) numbers, for a run by itself `numbers`: as of a `Step`
    q, v      (N, nq), (N, nv)
    work      (N, 1) supplied
    code      (N, 1) of `right_hand_side`, REFUSED for angles beyond the range of sines, LOOP_OPEN where a step opens a loop too
              far, DEPENDENT_ROWS where the chosen rows of the constraints depend on each other: else RUNNING. What is written of
              a run with another code is worthless
    varying   (N, m) constants of the model at the places that the line was made for

    rows(clock, curves, values, q, v, work, a, tau, wrench, code, varying): accelerations, forces and wrenches of each run, at
    clock[1], and what is prescribed there into q, v.
    """

    step: Batch
    rows: Batch
    curves: np.ndarray
    numbers: np.ndarray


def whole_step(tables: Tables, method: str, varying: tuple[int, ...] = (), rows: Rows = ()) -> WholeStep | None:
    """None where there is no line: too many operations, a law that decides on numbers, switches of the state, integrals of pid
    laws, driven loops, an old LLVM.
    method: one of METHODS; varying: places in model.constants that differ from run to run; rows: of the constraints of the model
    that projections of the position, those of the velocity, and motions rest on."""
    schedule = tables.schedule
    if not wanted() or tables.signals.held.size or schedule.watch.size or schedule.integral.size or tables.model.nv == 0:
        return None
    lines = [_kept(record, tables, asked, varying, rows) for record, asked in ((record_whole_step, method), (record_rows, ""))]
    return WholeStep(*lines, tables.curves, tables.numbers) if all(lines) else None


def adjoint_line(tables: Tables, of: str, varying: tuple[int, ...] = (), rows: Rows = ()) -> Batch | None:
    """What takes derivatives of a cost by results to those by the state before them, by the values and by the parameters. of: one
    of METHODS, whose result is the state after a step, or one of RESULTS. With the arrays

        clock, curves, values, q, v, work, by_q, by_v, by_values, by_varying, code, varying        of a step, by_q, by_v in place
        clock, curves, values, q, v, work, by, by_q, by_v, by_values, by_varying, code, varying    of others

    by_q is by the numbers of q: quaternions are not tangent. None as for `whole_step`."""
    return _kept(record_adjoint, tables, of, varying, rows)


def _kept(record, tables: Tables, asked: str, varying, rows) -> Batch | None:
    place = folder("kernels.simulation.right_hand_side.right_hand_side", "codegen.whole_step")
    name = tables.name(record.__name__, asked, varying, rows, width())
    return kept_batch(tables.model, place, name, lambda: record(tables, asked, varying, rows))


class _Runs(Scene):
    """signals: at each of the times of a step."""

    def __init__(self, tables: Tables, varying: tuple[int, ...], rows: Rows):
        model = tables.model
        super().__init__(tables, {"clock": 1 + TIMES, "curves": TIMES * TERMS * len(tables.curves), "values": len(tables.numbers),
                                  "q": model.nq, "v": model.nv, "work": 1}, varying)
        at = [tables.over(self.given["values"], t, curves, zeros(0))
              for t, curves in zip(self.given["clock"][1:], self.given["curves"].reshape(TIMES, -1), strict=True)]
        _, self.plant, self.schedule, *_ = at[0]
        self.signals, self.varying = [one.signals for one in at], self.tape.inputs(VARYING, len(varying))
        self.mechanism = _Closed(self, model, rows) if rows else None

    def rates(self, k: int, q0, y):
        """(dy, code) at time k of the step."""
        dy = zeros(len(y))
        with np.errstate(all="ignore"):
            if self.mechanism:
                return dy, self.mechanism.rates(k, q0, y, dy)
            code = self.motion.right_hand_side(self.tree, self.plant, self.schedule, self.signals[k], self.given["clock"][1 + k],
                                               q0, y, dy, self.work)
        return dy, code

    def at_rest(self, v):
        """A state in the chart about its own configuration."""
        return np.concatenate([zeros(len(v)), v, self.given["work"]])

    def recording(self, code, **results) -> Recording:
        """results: what arrays hold afterwards."""
        for x, bound in bounds_of_angles(self.tape):
            code = where_less(x, bound, code, float(REFUSED))
        arrays = []
        for name, x in self.given.items():
            shared = name in ("clock", "curves")
            arrays.append(Array(name, len(x), written(x, results.pop(name)) if name in results else (None,) * len(x), shared))
        arrays += [Array(name, len(x), written(zeros(len(x)), x)) for name, x in results.items()]
        arrays.append(Array("code", 1, (code,)))
        arrays.append(Array(VARYING, len(self.varying), (None,) * len(self.varying)))
        return Recording(self.tape, tuple(arrays), (), ())


class _Closed(Mechanism):
    """The constraints of a robot, with `solve_chosen` between the parts."""

    def __init__(self, runs: _Runs, model, rows: Rows):
        if any(one.driven for one in model.constraints):
            raise NotALine
        super().__init__(model, runs.tree, len(runs.plant.slot_link) > 0)
        self.runs, self.rows = runs, [np.array(x, dtype=np.int64) for x in rows]
        self.rest = np.zeros(model.nv, dtype=bool)

    def solve(self, rows, rhs):
        """Multipliers on the desk. Returns the least pivot."""
        desk, k = self.desk, len(rows)
        solve_chosen = plain("kernels.loops.chosen_rows").solve_chosen
        return solve_chosen(rows, desk.solver.null, desk.solver.size, rhs, desk.multipliers, zeros(k * (k + 2)))

    def rates(self, k: int, q0, y, dy):
        """As `tied_right_hand_side`. Returns a code."""
        s, w, p = self.runs, self.runs.work, self.runs.plant
        s.motion.set_out(s.tree, p, s.schedule, s.signals[k], s.given["clock"][1 + k], q0, y, w)
        self.desk = d = self.desk._replace(q=w.q, v=w.v, a=w.a, tau=w.tau, f_ext=w.F)
        passive = bool(p.passive[0])
        self.write("equations", p.prescribed, False, passive)
        pivot = self.solve(self.rows[2], d.rhs)
        self.write("completed", p.prescribed, passive)
        w.a[:], w.tau[:] = d.found_a, d.found_tau
        code = s.motion.rates(s.tree, p, s.signals[k], y, d.deficit[0], d.power[0], dy, w)
        return where_less(FAIR, pivot, code, float(DEPENDENT_ROWS))

    def close(self, q, v):
        """Moves q, v back onto the constraints, as `by_parts.close` does, with a fixed number of steps. Returns a code."""
        code = float(RUNNING)
        self.desk = d = self.desk._replace(q=q, v=v)
        for _ in range(PROJECTIONS):
            self.write("residuals")
            self.write("rows", self.rest, True)
            pivot = self.solve(self.rows[0], -d.residual)
            self.write("moved", self.rest)
            q[:] = d.moved
            code = where_less(FAIR, pivot, code, float(DEPENDENT_ROWS))
        for x in d.residual:                                  # before the last step, which squares it
            code = where_less(absolute(x), OPEN, code, float(LOOP_OPEN))
        self.write("rows", self.rest, False)
        pivot = self.solve(self.rows[1], -d.velocity)
        self.write("change", self.rest)
        v[:] = v + d.change
        return where_less(FAIR, pivot, code, float(DEPENDENT_ROWS))


def record_whole_step(tables: Tables, method: str, varying: tuple[int, ...], rows: Rows) -> Recording:
    runs = _Runs(tables, varying, rows)
    (code, work), q, v = _after(runs, method)
    return runs.recording(code, q=q, v=v, work=work)


def _after(runs: _Runs, method: str):
    """(code, work), q, v at the end of the step."""
    code, q0, y = _STEPS[method](runs)
    w, nv = runs.work, len(runs.work.v)
    plain("joints.retraction").retract(runs.tree, q0, y[:nv], w.q)
    w.v[:] = y[nv:2 * nv]
    runs.motion.impose(runs.tree, runs.schedule, runs.signals[-1], runs.given["clock"][TIMES], w.q, w.v, w)
    if runs.mechanism:
        code = _first(code, runs.mechanism.close(w.q, w.v))
    return (code, y[-1:]), w.q, w.v


def _rk4(runs: _Runs):
    """The classical method in the chart about the configuration at the beginning. (code, origin of the chart, y at the end)."""
    q0, y0, h = runs.given["q"], runs.at_rest(runs.given["v"]), runs.given["clock"][0]
    k1, c1 = runs.rates(0, q0, y0)
    k2, c2 = runs.rates(1, q0, y0 + k1 * (0.5 * h))
    k3, c3 = runs.rates(1, q0, y0 + k2 * (0.5 * h))
    k4, c4 = runs.rates(2, q0, y0 + k3 * h)
    return _first(c1, c2, c3, c4), q0, y0 + (k1 + 2.0 * (k2 + k3) + k4) * (h / 6.0)


def _semi_implicit(runs: _Runs):
    """Symplectic Euler: v' = v + h a(q, v), q' = q (+) h v'."""
    q0, y0, h, nv = runs.given["q"], runs.at_rest(runs.given["v"]), runs.given["clock"][0], len(runs.given["v"])
    k, code = runs.rates(0, q0, y0)
    y = y0 + k * h
    y[:nv] = y[nv:2 * nv] * h
    return code, q0, y


_STEPS = {"rk4": _rk4, "semi_implicit": _semi_implicit}
METHODS = tuple(_STEPS)


def _first(*codes):
    """The first that is not RUNNING."""
    found = float(RUNNING)
    for code in reversed(codes):
        found = where_less(RUNNING + 0.5, code, code, found)
    return found


def record_adjoint(tables: Tables, of: str, varying: tuple[int, ...], rows: Rows) -> Recording:
    runs = _Runs(tables, varying, rows)
    results = {"by": RESULTS[of](runs)} if of in RESULTS else dict(zip(("by_q", "by_v"), _after(runs, of)[1:], strict=True))
    given = {name: runs.tape.inputs(name, len(x)) for name, x in results.items()}
    back = adjoint(runs.tape, [pair for name, x in results.items() for pair in zip(x, given[name], strict=True)])
    inputs = {name: runs.given[name] for name in ("q", "v", "values")} | {VARYING: runs.varying}
    runs.given |= given
    return runs.recording(float(RUNNING), **{f"by_{name}": numbers([back(y) for y in x]) for name, x in inputs.items()})


def _forces(runs: _Runs) -> list:
    """Accelerations, then joint forces."""
    runs.rates(0, runs.given["q"], runs.at_rest(runs.given["v"]))
    return [*runs.work.a, *runs.work.tau]


def _energies(runs: _Runs) -> np.ndarray:
    """Kinetic and potential."""
    kernels, q, v, out = plain("kernels.recursions.energy"), runs.given["q"], runs.given["v"], zeros(2)
    n = runs.tree.parent.size
    work = kernels.kinematics_work(zeros(kernels.kinematics_memory(n, len(v))), n)
    kernels.kinematics(runs.tree, q, v, v, kernels.TWISTS, work)
    kernels.energy(runs.tree, q, v, work, out)
    return out


def _work(runs: _Runs) -> np.ndarray:
    """Supplied until the end of a step of rk4."""
    (_, work), _, _ = _after(runs, "rk4")
    return work


RESULTS = {"forces": _forces, "energies": _energies, "work": _work}


def record_rows(tables: Tables, _: str, varying: tuple[int, ...], rows: Rows) -> Recording:
    runs = _Runs(tables, varying, rows)
    _, code = runs.rates(0, runs.given["q"], runs.at_rest(runs.given["v"]))
    w, q, v = runs.work, runs.given["q"].copy(), runs.given["v"].copy()
    for joint in tables.model.joints:
        if (tables.schedule.level[joint.v] != TORQUE).any():
            q[joint.q], v[joint.v] = w.q[joint.q], w.v[joint.v]
    return runs.recording(code, q=q, v=v, a=w.a, tau=w.tau, wrench=w.wrench)
