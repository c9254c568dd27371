"""The right-hand side of a simulation as a line: robot, joint modes, signals and wrenches of one scenario.

What stays outside is what would not be short: curves are inputs, evaluated before each call.
"""
from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from liedyn.codegen.lines import folder, kept_parts, wanted
from liedyn.codegen.plain import plain
from liedyn.codegen.recording import Array, Recording, bounds_of_angles, constants_of, cut, written
from liedyn.codegen.steps.mechanism import Mechanism, desk_sizes
from liedyn.codegen.steps.scenario_tables import Tables
from liedyn.codegen.tangent import tangent
from liedyn.kernels.loops.desk import desk_memory
from liedyn.kernels.recursions.hybrid import hybrid_memory
from liedyn.kernels.simulation.by_line import TERMS
from liedyn.kernels.simulation.signals import READING, SWITCH
from liedyn.lie.recorded import Recorded, Tape, zeros

_ENTRY, _TIED = "kernels.simulation.right_hand_side.right_hand_side", "kernels.simulation.by_loops.tied_right_hand_side"


@dataclass(frozen=True)
class Step:
    """i64 one(t, q0, y, curves, held, values; q, v, a, tau, wrench, dy, verdict, readings, desk), pointers to float64.

    t, q0, y    as for `right_hand_side`
    curves      (5 c,) Taylor coefficients at t of the signals `curves`
    held        of the switches of the state: see `Signals`; their sides are read
    values      (k,) `numbers`: gains, constants, clocks, stops, materials of contacts and state feedback of the scenario: no part
                of the code
    verdict     (2,) a code, and the signal that is not finite
    readings    (s,) of each switch its argument
    desk        see `kernels.loops.desk`: read and written under constraints

    Under constraints three functions are called with these: `address` writes the equations of the multipliers, `second` goes on
    when they are known; `back` writes q, v and the drives at t of the state that is to go back onto the constraints.

    Returns 1 where the line does not hold, as for angles beyond the range of its sine: what is written is then worthless.
    """

    address: int
    second: int
    back: int
    curves: np.ndarray
    numbers: np.ndarray
    engines: tuple


def step_of(tables: Tables) -> Step | None:
    """None where loops do the work: too many operations, a law whose references have kinks, an old LLVM."""
    if not wanted():
        return None
    engines = kept_parts(folder(_TIED if tables.tied else _ENTRY, "codegen.steps.step"), tables.name(),
                         lambda: record_tied(tables) if tables.tied else [record_step(tables)])
    if not engines:
        return None
    addresses = [engine.get_function_address("one") for engine in engines]
    return Step(*(addresses if tables.tied else (*addresses, 0, 0)), tables.curves, tables.numbers, engines)


class Scene:
    """What recordings of a scenario begin with: inputs, and what the right-hand side works on."""

    def __init__(self, tables: Tables, sizes: dict[str, int], varying: tuple[int, ...] = ()):
        """sizes: of the inputs; varying: places of constants of the robot that are inputs, too."""
        self.tape, model, plant = Tape(), tables.model, tables.plant
        self.given = {name: self.tape.inputs(name, size) for name, size in sizes.items()}
        self.motion, nq, nv, slots = plain("kernels.simulation.right_hand_side"), model.nq, model.nv, len(plant.slot_link)
        self.tree = plain("joints.tree").tree_of(model.index, constants_of(self.tape, model, varying))
        self.work = self.motion.MotionWork(*map(zeros, (
            nq, nv, nv, nv, 6 * model.n_bodies if slots else 0, 6 * slots, 3 + 3 * tables.signals.code.size, 2,
            hybrid_memory(model.n_bodies, nv), 2 * len(tables.schedule.integral))))


class _Scenario(Scene):
    """desk: how many numbers it has."""

    def __init__(self, tables: Tables, desk: int = 0):
        nq, n, held = tables.model.nq, 2 * tables.model.nv + len(tables.schedule.integral) + 1, tables.signals.held.size
        super().__init__(tables, {"t": 1, "q0": nq, "y": n, "curves": TERMS * len(tables.curves), "held": held,
                                  "values": len(tables.numbers)})
        self.t, self.q0, self.y, self.dy = self.given["t"][0], self.given["q0"], self.given["y"], zeros(n)
        self.over = tables.over(self.given["values"], self.t, self.given["curves"], self.given["held"])
        self.desk = self.tape.inputs("desk", desk)
        self.before = self.desk.copy()

    def recording(self, **results) -> Recording:
        """results: what arrays hold; those that are not in it are not written."""
        w = self.work
        sizes = {"q": w.q.size, "v": w.v.size, "a": w.v.size, "tau": w.v.size, "wrench": w.wrench.size, "dy": self.dy.size,
                 "verdict": 2, "readings": self.over.signals.held.size // SWITCH}
        arrays = [Array(name, x.size, (None,) * x.size) for name, x in self.given.items()]
        for name, size in sizes.items():
            after = results.get(name, (None,) * size)
            arrays.append(Array(name, size, tuple(x if x is None or isinstance(x, Recorded) else float(x) for x in after)))
        arrays.append(Array("desk", len(self.desk), written(self.before, self.desk)))
        return Recording(self.tape, tuple(arrays), tuple(bounds_of_angles(self.tape)), ())

    def motion_recorded(self, code) -> Recording:
        w = self.work
        return self.recording(q=w.q, v=w.v, a=w.a, tau=w.tau, wrench=w.wrench, dy=self.dy, verdict=[code, w.flag[0]],
                              readings=self.over.signals.held[READING::SWITCH])


def record_step(tables: Tables) -> Recording:
    s = _Scenario(tables)
    return s.motion_recorded(_rates(s))


def _rates(s: _Scenario):
    """Of an open tree, into s.dy. Returns the code."""
    with np.errstate(all="ignore"):
        return s.motion.right_hand_side(s.tree, *s.over[1:4], s.t, s.q0, s.y, s.dy, s.work)


def record_slopes(tables: Tables) -> Recording:
    """Derivatives of the rates of [x; v; z] along a direction of these: arrays `direction`, `by`. Raises NotALine."""
    s = _Scenario(tables)
    _rates(s)
    n = len(s.dy) - 1
    direction = s.tape.inputs("direction", n)
    by = tangent(s.tape, zip(s.y, direction, strict=False), s.dy[:n])
    arrays = [Array(name, len(x), (None,) * len(x), True) for name, x in s.given.items() if len(x)]
    arrays += [Array("direction", n, (None,) * n), Array("by", n, tuple(by))]
    return Recording(s.tape, tuple(arrays), (), ())


def record_tied(tables: Tables) -> list[Recording]:
    """`address`, `second` and `back` of a `Step`."""
    late = _Constrained(tables)
    motion, back = late.record_motion(), _Constrained(tables).record_back()
    return [*cut(motion, {x.k for x in late.mechanism.desk.multipliers}, "desk"), back]


class _Constrained(_Scenario):
    def __init__(self, tables: Tables):
        forced = len(tables.plant.slot_link) > 0
        super().__init__(tables, desk_memory(*desk_sizes(tables.model, forced), 0))
        self.mechanism = Mechanism(tables.model, self.tree, forced, self.desk)

    def record_motion(self) -> Recording:
        """The whole of a right-hand side, from multipliers that are inputs."""
        s, w, desk, _, plant, schedule, signals, tied = self.motion, self.work, self.mechanism.desk, *self.over
        with np.errstate(all="ignore"):
            s.set_out(self.tree, plant, schedule, signals, self.t, self.q0, self.y, w)
        self._move_drives()
        self.mechanism.desk = desk._replace(q=w.q, v=w.v, a=w.a, tau=w.tau, f_ext=w.F)
        passive = bool(plant.passive[0])
        self.mechanism.write("equations", plant.prescribed, tied.stabilized, passive)
        self.mechanism.write("completed", plant.prescribed, passive)
        w.a[:], w.tau[:] = desk.found_a, desk.found_tau
        with np.errstate(all="ignore"):
            s.watch(schedule, signals, self.t, w)
        power = desk.power[0]
        for x, rate in zip(desk.multipliers, desk.drive_rate, strict=True):
            power = power + x * rate
        return self.motion_recorded(s.rates(self.tree, plant, signals, self.y, desk.deficit[0], power, self.dy, w))

    def record_back(self) -> Recording:
        """q, v and drives of a state that is to go back onto the constraints, on the desk."""
        w, nv, (_, _, schedule, signals, _) = self.work, self.work.v.size, self.over
        with np.errstate(all="ignore"):
            plain("joints.retraction").retract(self.tree, self.q0, self.y[:nv], w.q)
            w.v[:] = self.y[nv:2 * nv]
            w.flag[0] = -1.0
            self.motion.impose(schedule, signals, self.t, w.q, w.v, w)
        self._move_drives()
        self.mechanism.desk.q[:], self.mechanism.desk.v[:] = w.q, w.v
        return self.recording(verdict=[None, w.flag[0]])

    def _move_drives(self) -> None:
        tied = SimpleNamespace(**self.over.tied._asdict(), drive=self.mechanism.desk.drive)
        with np.errstate(all="ignore"):
            plain("kernels.loops.loop_motion").move_drives(self.over.signals, tied, self.t, self.work)
