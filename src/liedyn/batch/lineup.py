"""How the values of a sweep enter the arrays of runs side by side, so that no run has to be bound by itself.

A run that goes side by side with others differs from them in numbers alone: its initial state, the `values` of its scenario and
constants of its robot (`codegen.whole_step`). Most of these are a value of the sweep itself, others, as inertias by a mass, are
affine in it. What is found so is checked against runs that are bound in full; where it does not hold, every run is bound.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.batch.binding import Binding
from liedyn.codegen.step import content, curves_of, values_of
from liedyn.codegen.whole_step import law_numbers, with_law
from liedyn.dynamics.variants import Variants
from liedyn.errors import LiedynError
from liedyn.integrators.many_runs import Grid, SideBySide, grid_of, side_by_side
from liedyn.simulation.preparation import Prepared
from liedyn.simulation.run import output_times

_ROUNDING = 1e-13        # relative: an affine map against a run that is bound in full
_OF_FLOORS = 0.5         # the same for pivots below which all is rounding, of which the size matters
_LOOKED_AT = 4096        # runs, at most, among which values are looked for that the map is found by
_CHECKED = 6             # runs that are bound in full to check it


@dataclass(frozen=True)
class Numbers:
    """Of runs: states (N, nq), (N, nv), values (N, k), and the varying constants of their robots (N, m)."""

    q: np.ndarray
    v: np.ndarray
    values: np.ndarray
    varying: np.ndarray


class Lineup:
    """Runs of a sweep that go side by side.

    first   a run, whose problem and times all share
    grid, times, line   the steps, the rows, and the compiled step
    affine  whether rows are found without binding each run
    """

    def __init__(self, binding: Binding, first: Prepared, places: np.ndarray, engine: SideBySide, affine):
        self.binding, self.first, self.places, self.engine, self._affine = binding, first, places, engine, affine
        self.times = output_times(first.scenario)
        self.grid: Grid = grid_of(first.problem.schedule, self.times, first.scenario.integrator.step)
        self._kind, self._base = signature(first), numbers_of(first)

    @property
    def affine(self) -> bool:
        return self._affine is not None

    def rows(self, values: list) -> tuple[Numbers, np.ndarray]:
        """Of runs with these values; and which of them cannot go side by side: theirs are those of the first run."""
        alone = np.zeros(len(values[0]), dtype=bool)
        if self._affine is not None:
            for i in np.flatnonzero(self._affine.beyond(values)):          # no run so far out was bound: it may not be valid
                alone[i] = not self._goes([x[i] for x in values])
            return self._parts(self._affine.rows(values)), alone
        rows = np.tile(self._base, (len(alone), 1))
        for i in range(len(alone)):
            try:
                run = self.binding.bind([x[i] for x in values])
            except LiedynError:
                alone[i] = True
                continue
            found = numbers_of(run) if signature(run) == self._kind else None
            if found is None or self._strays(found):
                alone[i] = True
            else:
                rows[i] = found
        return self._parts(rows), alone

    def engine_for(self, numbers: Numbers) -> SideBySide:
        return SideBySide(self.engine.problem, self.engine.line, numbers.varying)

    def variants(self, numbers: Numbers) -> Variants | None:
        """The robots of these runs; None where all have the same."""
        return Variants.of_numbers(self.first.model, self.places, numbers.varying) if len(self.places) else None

    def _goes(self, values) -> bool:
        """Whether a run with these values can start, and go with the others."""
        try:
            return signature(self.binding.bind(values)) == self._kind
        except LiedynError:
            return False

    def _strays(self, row: np.ndarray) -> bool:
        """Whether constants differ at other places than the line knows."""
        constants, base = (x[-len(self.first.model.constants):] for x in (row, self._base))
        return not set(np.flatnonzero(constants != base)) <= set(self.places)

    def _parts(self, rows: np.ndarray) -> Numbers:
        model = self.first.model
        ends = np.cumsum([model.nq, model.nv, rows.shape[1] - model.nq - model.nv - len(model.constants)])
        q, v, values, constants = (np.ascontiguousarray(x) for x in np.split(rows, ends, axis=1))
        return Numbers(q, v, values, np.ascontiguousarray(constants[:, self.places]))


def lineup_of(binding: Binding) -> Lineup | None:
    """None where runs cannot go side by side: other integrators than rk4, events, samples, loops, switches of the state, robots
    and control laws without straight-line code."""
    looked = binding.values(0, min(binding.design.count, _LOOKED_AT))
    origin = [_not_zero(x) for x in looked]
    try:
        first = binding.bind(origin)
    except LiedynError:
        return None
    if first.timeline is not None or first.scenario.integrator.method != "rk4":
        return None
    if first.problem.ties is not None or first.problem.sampled is not None or first.problem.model.nv == 0:
        return None
    affine, seen = _affine_map(binding, first, looked, origin)
    base, size = numbers_of(first), len(first.model.constants)
    moved = np.zeros(size, dtype=bool)
    for row in seen:
        moved |= row[-size:] != base[-size:]
    places = np.flatnonzero(moved)
    engine = side_by_side(first.problem, "rk4", tuple(map(int, places)))
    return engine and Lineup(binding, first, places, engine, affine)


def signature(run: Prepared) -> tuple:
    """What runs that go side by side have in common."""
    problem, scenario, plant = run.problem, run.scenario, run.problem.plant()
    if run.timeline is not None or problem.ties is not None or problem.sampled is not None:
        return ("alone", id(run))
    laws = plant.joint_laws
    plant = plant._replace(joint_laws=None if laws is None else with_law(laws, np.ones(law_numbers(laws).size)))
    index, _, *rest = content(problem.model, plant, problem.schedule, problem.signals)
    integrator, signals = scenario.integrator, problem.signals
    curves = curves_of(plant, problem.schedule, signals)
    return (index, tuple(rest), integrator.method, integrator.step, scenario.duration, scenario.output_step, problem.passive,
            problem.schedule.breaks.tobytes(), signals.breaks.tobytes(), signals.coefficients.tobytes(),
            signals.first[curves].tobytes(), signals.count[curves].tobytes(), len(run.model.constants))


def numbers_of(run: Prepared) -> np.ndarray:
    """q, v, values of the scenario, constants of the robot, one after the other."""
    problem = run.problem
    plant = problem.plant()
    values = values_of(plant, problem.schedule, problem.signals)
    return np.concatenate([problem.q, problem.v, values, law_numbers(plant.joint_laws), problem.model.constants])


class _Affine:
    """Numbers of a run = base + sum of slope (x - x0) by what varies; where a number is a value of the sweep, it is that."""

    def __init__(self, base: np.ndarray, origin: list, columns: list, looked: list):
        self.base, self.origin, self.columns = base, origin, columns
        self.spans = [(x.min(), x.max()) if isinstance(x, np.ndarray) else None for x in looked]

    def beyond(self, values: list) -> np.ndarray:
        """(N,) bool: runs with a value that is not between those that the map was found by."""
        found = np.zeros(len(values[0]), dtype=bool)
        for x, span in zip(values, self.spans, strict=True):
            if span is not None:
                found |= (x < span[0]) | (x > span[1])
        return found

    def rows(self, values: list) -> np.ndarray:
        rows = np.tile(self.base, (len(values[0]), 1))
        for x, x0, (same, moved, slope) in zip(values, self.origin, self.columns, strict=True):
            x = np.asarray(x)
            if len(moved):
                rows[:, moved] += (x - x0)[:, None] * slope
            rows[:, same] = x[:, None]
        return rows


def _not_zero(values):
    """The first value that is not zero: a zero may be left out of a line, and its place would not be known."""
    if isinstance(values, np.ndarray) and values.any():
        return values[np.flatnonzero(values)[0]]
    return values[0]


def _affine_map(binding: Binding, first: Prepared, looked: list, origin: list) -> tuple[_Affine | None, list[np.ndarray]]:
    """The map, or None; and the numbers of all runs that were bound to find it. looked: values of the first runs; origin: of
    `first`."""
    kind, base, seen = signature(first), numbers_of(first), []
    count, tolerance = binding.design.count, np.full(len(base), _ROUNDING)
    tolerance[len(base) - first.model.nv:] = _OF_FLOORS        # the last constants of a robot

    def bound(values) -> np.ndarray | None:
        try:
            run = binding.bind(values)
        except LiedynError:
            return None
        if signature(run) != kind:
            return None
        seen.append(numbers_of(run))
        return seen[-1]

    columns, held = [], True
    for k, values in enumerate(looked):
        if not isinstance(values, np.ndarray):
            held = held and all(x == values[0] for x in values)
            columns.append((np.zeros(0, int), np.zeros(0, int), np.zeros(0)))
            continue
        found = _column(values, origin[k], base, tolerance, lambda x, k=k: bound([*origin[:k], x, *origin[k + 1:]]))
        held = held and found is not None
        columns.append(found)
    if not held:
        for k in np.unique(np.linspace(0, count - 1, _CHECKED).astype(int)):
            bound([x[0] for x in binding.values(int(k), int(k) + 1)])
        return None, seen
    affine = _Affine(base, origin, columns, looked)
    return (affine if _agrees(binding, affine, tolerance, bound, looked) else None), seen


def _column(values: np.ndarray, x0: float, base: np.ndarray, tolerance: np.ndarray, bound) -> tuple | None:
    """What of the numbers follows one value: places that are the value itself; other places, and their slopes."""
    distinct = np.unique(values[values != 0.0])
    others = distinct[distinct != x0]
    if not len(others):
        return (np.zeros(0, int),) * 2 + (np.zeros(0),) if (values == x0).all() else None
    if x0 == 0.0:
        return None                                            # a zero is left out of a line: its places are not known
    probes = np.unique([others[0], others[-1], others[len(others) // 2]])
    rows = [bound(x) for x in probes]
    if any(row is None for row in rows):
        return None
    moved = np.flatnonzero(np.any([row != base for row in rows], axis=0))
    is_value = (base[moved] == x0) & np.all([row[moved] == x for row, x in zip(rows, probes, strict=True)], axis=0)
    same, rest = moved[is_value], moved[~is_value]
    far = int(np.argmax(np.abs(probes - x0)))
    slope = (rows[far][rest] - base[rest]) / (probes[far] - x0)
    for row, x in zip(rows, probes, strict=True):
        scale = np.abs(base[rest]) + np.abs(rows[far][rest])
        if (np.abs(base[rest] + slope * (x - x0) - row[rest]) > tolerance[rest] * scale).any():
            return None
    return same, rest, slope


def _agrees(binding: Binding, affine: _Affine, tolerance: np.ndarray, bound, looked: list) -> bool:
    """Against runs bound in full: the corners, and some from all over the sweep."""
    corners = [[pick(x) if isinstance(x, np.ndarray) else x[0] for x in looked] for pick in (np.min, np.max)]
    numbers = np.unique(np.linspace(0, binding.design.count - 1, _CHECKED).astype(int))
    runs = [[x[0] for x in binding.values(int(k), int(k) + 1)] for k in numbers]
    for values in (*runs, *corners):
        values = [x0 if isinstance(x, float) and x == 0.0 else x for x, x0 in zip(values, affine.origin, strict=True)]
        row = bound(values)
        if row is None:
            return False
        mapped = affine.rows([[x] for x in values])[0]
        if (np.abs(mapped - row) > 4.0 * tolerance * (np.abs(row) + np.abs(affine.base))).any():
            return False
    return True
