"""The tables of a scenario as inputs of generated code: constants of the code, numbers that it reads, and workspace."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from liedyn.codegen.specialize import processor
from liedyn.codegen.trace import folded_constants
from liedyn.codegen.tracer import object_array, zeros
from liedyn.joints.joint_model import Tree, constants_sizes
from liedyn.kernels.simulation import joint_laws, slotine_li_law, task_space_law
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS
from liedyn.kernels.simulation.right_hand_side import SystemModel
from liedyn.kernels.simulation.signals import (
    CONSTANT,
    ORDER,
    POLYNOMIAL,
    POSITION,
    SWITCH_SIGN,
    SWITCH_SIZE,
    TORQUE,
    InputSchedule,
    Signals,
)
from liedyn.model.model import Model
from liedyn.numba_tools import compile_cache

_WORKSPACE_FIELDS = {"law": ("q", "v", "a", "tau", "series", "memory", "stack", "reference"),
                     "joint_laws": joint_laws.WORKSPACE_FIELDS, "task": task_space_law.WORKSPACE_FIELDS,
                     "slotine_li": slotine_li_law.WORKSPACE_FIELDS, "contacts": ("depth",), "stops": ("applied",),
                     "signals": ("measured", "switches")}
# fields that generated code does not read: break times, curves, and fields of estimates only
_UNUSED_FIELDS = {"schedule": ("breaks", "before"), "signals": ("breaks", "coefficients"),
                  "contacts": ("weight_share", "scales_with_weight")}

_CONSTANTS = Tree._fields[Tree._fields.index("dV0"):]                  # the arrays in `Model.constants`, in order
_PARTS_OF_CODE = {"S", "T0", "link_pose", "element_pose", "element_values"}     # of a law's model


class ConstraintTables(NamedTuple):
    """Dependencies of generated code under constraints.

    signal, turn: as in `ConstrainedSystem`; stabilized: whether Baumgarte's stabilization acts.
    """

    signal: np.ndarray
    turn: np.ndarray
    stabilized: bool


class SwitchableCoordinates(NamedTuple):
    """Coordinates whose modes, free or prescribed, are inputs of a step: see `codegen.joint_modes`.

    v, q           (m,) indices; -1 in q for coordinates of ball and free joints
    level, signal  (m,) of the scenario
    """

    v: np.ndarray
    q: np.ndarray
    level: np.ndarray
    signal: np.ndarray


class ScenarioTables(NamedTuple):
    """Tables of a scenario.

    constraints  for right-hand sides of robots with constraints
    varying      indices of the constants of the robot that are not part of generated code, but the last `scenario_values`
    single       whether generated code computes in single precision; its arrays are of float64 all the same
    switchable   coordinates whose modes are inputs of a step; steps in the cache have none
    """

    model: Model
    plant: SystemModel
    schedule: InputSchedule
    signals: Signals
    constraints: ConstraintTables | None = None
    varying: tuple[int, ...] = ()
    single: bool = False
    switchable: SwitchableCoordinates | None = None

    def with_switchable(self, coordinates: np.ndarray) -> ScenarioTables:
        """Return tables for steps in which the modes of coordinates (indices in v) are inputs.

        The kernels skip coordinates with prescribed positions that have no place in q. `JointModes` replaces what they skip.
        """
        schedule, plant = self.schedule, self.plant
        switchable = SwitchableCoordinates(coordinates, *(x[coordinates] for x in (schedule.q_of_v, schedule.level,
                                                                                   schedule.signal)))
        moved = coordinates[switchable.level != TORQUE]
        level, q_of_v, *masks = (x.copy() for x in (schedule.level, schedule.q_of_v, plant.prescribed, plant.acceleration_known))
        level[moved], q_of_v[moved] = POSITION, -1
        for mask in masks:
            mask[coordinates] = False
        return self._replace(schedule=schedule._replace(level=level, q_of_v=q_of_v), switchable=switchable,
                             plant=plant._replace(prescribed=masks[0], acceleration_known=masks[1]))

    @property
    def levels(self) -> np.ndarray:
        """(nv,) levels of the scenario."""
        level = self.schedule.level.copy()
        if self.switchable:
            level[self.switchable.v] = self.switchable.level
        return level

    @property
    def law_states(self) -> int:
        """Number of states of laws: integrals of pid laws and estimated parameters."""
        return self.schedule.integral.size + slotine_li_law.estimate_count(self.plant.joint_laws)

    @property
    def scenario_values(self) -> np.ndarray:
        """Numbers that generated code reads and that are not part of it.

        Constants, gains and wrenches that are not zero, clocks, stops, materials of contacts; state feedback with its reference
        state and forces; the constants `varying` of the robot.
        """
        tables = self._parts
        values = [getattr(tables[table], field)[chosen] for table, field, chosen in self.number_masks]
        return np.concatenate([*values, self.model.constants[list(self.varying)]])

    def places_of_constants(self, signals: np.ndarray) -> np.ndarray:
        """Return the places in `scenario_values` of the numbers of signals that are constants other than zero."""
        _, _, mask = next(iter(self.number_masks))
        return (np.cumsum(mask) - 1)[self.signals.first[signals]]

    @property
    def curves(self) -> np.ndarray:
        """Indices of the signals in use that are curves. Generated code reads their Taylor coefficients."""
        schedule, law, laws = self.schedule, self.plant.law, self.plant.joint_laws
        used = [schedule.signal, schedule.target, schedule.force_signal, schedule.watch, schedule.poses.signal]
        used += [self.constraints.signal] if self.constraints else []
        used += [law.signal] if law else []
        used += [laws.signal[laws.driven], laws.torque_signal, laws.gain_signal, laws.setpoint_signal] if laws else []
        used += [laws.task.poses.signal] if laws and laws.task else []
        indices = np.unique(np.concatenate(used)).astype(int)
        indices = indices[indices >= 0]                                # -1: none
        return indices[self.signals.kind[indices] == POLYNOMIAL]

    @property
    def content(self) -> list[bytes]:
        """Return all that generated code depends on, as bytes, except for the constants of the robot."""
        tables, signals = self.with_values(np.ones(self.scenario_values.size)), self.signals
        first, count = (np.where(signals.kind == POLYNOMIAL, 0, x) for x in (signals.first, signals.count))
        tables = tables._replace_fields(_WORKSPACE_FIELDS,
                                        lambda x: np.array(x.shape))._replace_fields(_UNUSED_FIELDS, lambda x: np.zeros(0))
        tables = tables._replace(signals=tables.signals._replace(first=first, count=count))
        arrays = self.model.index, self.model.loop_index, self.model.loop_constants
        return [*_bytes(arrays), repr(processor()).encode(), *_bytes(tables[1:-3]), repr((self.varying, self.single)).encode()]

    def name(self, *more: object, varying: tuple[int, ...] = ()) -> str:
        """Return the name under which generated code is stored. varying: indices of constants of the robot that are inputs."""
        return compile_cache.digest(folded_constants(self.model, (*self.varying, *varying)), *self.content,
                                    repr((varying, *more)).encode())

    def with_values(self, values: np.ndarray) -> ScenarioTables:
        """Return tables with these values, of any number type, in place of `scenario_values`, except constants of the robot."""
        tables, places = self._parts, list(self.number_masks)
        ends = np.cumsum([np.count_nonzero(chosen) for *_, chosen in places])
        for (table, field, chosen), part in zip(places, np.split(values[:ends[-1]], ends[:-1]), strict=True):
            x = getattr(tables[table], field).astype(values.dtype)
            x[chosen] = part
            tables[table] = tables[table]._replace(**{field: x})
        return self._from_parts(tables)

    def traced_tables(self, values, t, curves, switches) -> ScenarioTables:
        """Return tables over the inputs of generated code.

        values    as in the property `scenario_values`
        t        time
        curves   Taylor coefficients of curves at t; a curve has one piece, which begins at t
        switches  the sides of switches are read, the rest is written
        """
        tables = self.with_values(values)._replace_fields(_WORKSPACE_FIELDS, lambda x: zeros(x.size).reshape(x.shape))
        signals, used = tables.signals, self.curves
        n = len(used)
        coefficients, first, count = zeros(ORDER * n).reshape(n, ORDER), signals.first.copy(), signals.count.copy()
        first[used], count[used], coefficients[:, :CURVE_COEFFICIENTS] = np.arange(n), 1, curves.reshape(n, CURVE_COEFFICIENTS)
        signals.switches[SWITCH_SIGN::SWITCH_SIZE] = switches[SWITCH_SIGN::SWITCH_SIZE]
        return tables._replace(signals=signals._replace(first=first, count=count, breaks=object_array([t] * n),
                                                        coefficients=coefficients.reshape(-1)))

    @property
    def number_masks(self) -> Iterator[tuple[str, str, np.ndarray]]:
        """Yield table, field and mask of `scenario_values`."""
        literals, laws = self.signals.literals, self.plant.joint_laws
        constants = self.signals.first[self.signals.kind == CONSTANT]
        yield "signals", "literals", np.isin(np.arange(literals.size), constants) & (literals != 0.0)
        for field in ("kp", "kd", "force_basis"):
            yield "schedule", field, getattr(self.schedule, field) != 0.0
        yield "signals", "clocks", np.ones(self.signals.clocks.size, dtype=bool)
        for field in ("coefficients", "release", "sliding_friction"):
            yield "stops", field, np.ones(getattr(self.plant.stops, field).size, dtype=bool)
        if self.plant.contacts:
            yield "contacts", "material", np.ones(self.plant.contacts.material.size, dtype=bool)
        if laws and laws.model_index.size:
            yield "joint_laws", "model_constants", _numbers_of_law_model(laws.model_index, laws.model_constants)
        if laws and (laws.row >= 0).any():
            yield "joint_laws", "gain", laws.gain != 0.0
            for field in ("setpoint_q", "setpoint_v", "setpoint_tau"):
                yield "joint_laws", field, np.ones(getattr(laws, field).size, dtype=bool)
        if laws and laws.slotine_li:
            for field in ("damping", "bandwidth", "gain", "inertia", "parameters"):
                yield "slotine_li", field, getattr(laws.slotine_li, field) != 0.0

    @property
    def _parts(self) -> dict[str, Any]:
        """Named tuples of arrays by name."""
        plant, laws = self.plant, self.plant.joint_laws
        tables = {"schedule": self.schedule, "signals": self.signals, "law": plant.law, "contacts": plant.contacts,
                  "stops": plant.stops, "joint_laws": laws, "task": laws and laws.task,
                  "slotine_li": laws and laws.slotine_li}
        return {name: table for name, table in tables.items() if table is not None}

    def _from_parts(self, parts: dict[str, Any]) -> ScenarioTables:
        laws = parts.get("joint_laws")
        plant = self.plant._replace(law=parts.get("law"), contacts=parts.get("contacts"), stops=parts["stops"],
                                    joint_laws=laws and laws._replace(task=parts.get("task"), slotine_li=parts.get("slotine_li")))
        return self._replace(plant=plant, schedule=parts["schedule"], signals=parts["signals"])

    def _replace_fields(self, fields: Mapping[str, tuple[str, ...]], change) -> ScenarioTables:
        """Return tables with change(array) in place of these fields."""
        parts = self._parts
        for name, names in fields.items():
            if name in parts:
                parts[name] = parts[name]._replace(**{field: change(getattr(parts[name], field)) for field in names})
        return self._from_parts(parts)


def _numbers_of_law_model(index: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Return the mask of numbers of a law's model that are not part of the code: gravity, inertias, parameters of joints."""
    sizes = constants_sizes(index)
    ends = np.cumsum(sizes)
    mask = constants != 0.0
    for k, field in enumerate(_CONSTANTS):
        if field in _PARTS_OF_CODE:
            mask[ends[k] - sizes[k]:ends[k]] = False
    return mask


def _bytes(x) -> list[bytes]:
    """Return the bytes of all arrays in tables."""
    return [y for part in x for y in _bytes(part)] if isinstance(x, tuple) else [b"" if x is None else np.asarray(x).tobytes()]
