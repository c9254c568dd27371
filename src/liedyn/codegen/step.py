"""The right-hand side of a simulation as a line: robot, joint modes, signals and wrenches of one scenario.

What stays outside is what would not be short: curves are inputs, evaluated before each call.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn import code_cache
from liedyn.codegen.compiled import loaded, object_code, processor
from liedyn.codegen.lines import LONGEST, folder, wanted
from liedyn.codegen.llvm import pointers_text
from liedyn.codegen.plain import plain
from liedyn.codegen.recording import Array, Recording, _angles
from liedyn.kernels.recursions.hybrid import hybrid_memory
from liedyn.kernels.simulation.signals import BEYOND, CONSTANT, POLYNOMIAL, READING, SIDE, SWITCH
from liedyn.lie.recorded import Recorded, Tape, zeros

_ENTRY = "kernels.simulation.right_hand_side.right_hand_side"


@dataclass(frozen=True)
class Step:
    """i64 one(t, q0, y, curves, sides, values; q, v, a, tau, wrench, dy, verdict, readings), pointers to float64.

    t, q0, y    as for `right_hand_side`
    curves      (3 c,) values and two derivatives at t of the signals `curves`
    sides       (s,) of the switches of the state, FREE where there is none
    values      (k,) `numbers`: gains and constants of the scenario, which are no part of the code
    verdict     (2,) a code, and the signal that is not finite
    readings    (2 s,) of each switch its argument, and 1 where that is beyond its side

    Returns 1 where the line does not hold, as for angles beyond the range of its sine: what is written is then worthless.
    """

    address: int
    size: int
    curves: np.ndarray
    numbers: np.ndarray
    engine: object


def step_of(model, plant, schedule, signals) -> Step | None:
    """None where loops do the work: a law of motors, too many operations, an old LLVM."""
    if plant.law is not None or not wanted():
        return None
    curves, values = curves_of(schedule, signals), values_of(schedule, signals)
    place, name = folder(_ENTRY, "codegen.step"), _name(model, plant, schedule, signals)
    built = code_cache.kept(place, name)
    if built is None:
        recording = record_step(model, plant, schedule, signals)
        size = recording.size
        built = size, object_code(pointers_text(recording)) if size <= LONGEST else b""
        code_cache.keep(place, name, built)
    size, code = built
    if not code:
        return None
    engine = loaded(code)
    return Step(engine.get_function_address("one"), size, curves, values, engine)


def _name(model, plant, schedule, signals) -> str:
    """What the code depends on: not on times of breaks, on curves, or on `values`."""
    shape = schedule._replace(kp=schedule.kp != 0.0, kd=schedule.kd != 0.0, breaks=np.zeros(0), before=np.zeros(0))
    constant, literals = _constants(signals), signals.literals.copy()
    literals[constant] = 1.0
    kinds = signals._replace(literals=literals, breaks=np.zeros(0), coefficients=np.zeros(0), held=np.array([signals.held.size]))
    arrays = (*plant[:-1], *shape, *kinds)
    return code_cache.digest(model.index.tobytes(), model.constants.tobytes(), repr(processor()).encode(),
                             *(np.asarray(x).tobytes() for x in arrays))


def curves_of(schedule, signals) -> np.ndarray:
    """Signals in use that are curves."""
    used = np.unique(np.concatenate([schedule.signal, schedule.target[schedule.target >= 0], schedule.force_signal])).astype(int)
    return used[signals.kind[used] == POLYNOMIAL]


def _constants(signals) -> np.ndarray:
    """Places in literals of constant signals that are not zero."""
    places = signals.first[signals.kind == CONSTANT]
    return places[signals.literals[places] != 0.0]


def values_of(schedule, signals) -> np.ndarray:
    gains = (x[x != 0.0] for x in (schedule.kp, schedule.kd))
    return np.concatenate([signals.literals[_constants(signals)], *gains])


def record_step(model, plant, schedule, signals) -> Recording:
    tape, nq, nv, slots = Tape(), model.nq, model.nv, len(plant.slot_link)
    curves, count, switches = curves_of(schedule, signals), len(values_of(schedule, signals)), signals.held.size // SWITCH
    sizes = {"t": 1, "q0": nq, "y": 2 * nv + 1, "curves": 3 * len(curves), "sides": switches, "values": count}
    given = {name: tape.inputs(name, size) for name, size in sizes.items()}
    motion = plain("kernels.simulation.right_hand_side")
    schedule, signals = _with_inputs(schedule, signals, curves, given)
    sizes_of_work = (nq, nv, nv, nv, 6 * model.n_bodies if slots else 0, 6 * slots, 3 + 3 * signals.code.size, 2,
                     hybrid_memory(model.n_bodies, nv))
    work = motion.MotionWork(*map(zeros, sizes_of_work))
    dy, tree = zeros(2 * nv + 1), plain("joints.tree").tree_of(model.index, model.constants)
    with np.errstate(all="ignore"):
        code = motion.right_hand_side(tree, plant, schedule, signals, given["t"][0], given["q0"], given["y"], dy, work)
    readings = signals.held.reshape(-1, SWITCH)[:, [READING, BEYOND]].reshape(-1)
    results = {"q": work.q, "v": work.v, "a": work.a, "tau": work.tau, "wrench": work.wrench, "dy": dy,
               "verdict": [code, work.flag[0]], "readings": readings}
    arrays = [Array(name, size, (None,) * size) for name, size in sizes.items()]
    arrays += [Array(name, len(x), tuple(one if isinstance(one, Recorded) else float(one) for one in x))
               for name, x in results.items()]
    return Recording(tape, tuple(arrays), tuple(_angles(tape)), ())


def _with_inputs(schedule, signals, curves, given):
    """Curves, sides and numbers are what the line reads. `polynomial` finds the jet of curve k in the place of its breaks."""
    first, literals = signals.first.copy(), signals.literals.astype(object)
    first[curves] = 3 * np.arange(len(curves))
    constant, kp, kd = _constants(signals), schedule.kp.astype(object), schedule.kd.astype(object)
    first_kp = len(constant)
    first_kd = first_kp + np.count_nonzero(schedule.kp)
    literals[constant] = given["values"][:first_kp]
    kp[schedule.kp != 0.0], kd[schedule.kd != 0.0] = given["values"][first_kp:first_kd], given["values"][first_kd:]
    held = zeros(signals.held.size)
    held[SIDE::SWITCH] = given["sides"]
    return (schedule._replace(kp=kp, kd=kd),
            signals._replace(first=first, literals=literals, breaks=given["curves"], held=held))


def _jet(original):
    def polynomial(breaks, coefficients, first, count, t):
        return tuple(breaks[first:first + 3]) if breaks.dtype == object else original(breaks, coefficients, first, count, t)
    return polynomial


plain("kernels.simulation.signals").polynomial = _jet(plain("kernels.simulation.signals").polynomial)
