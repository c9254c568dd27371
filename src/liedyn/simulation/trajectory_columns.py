"""Conversion of a motion to the columns of a trajectory file and back.

Kinds of columns are q, v, a, tau and fext, and their further time derivatives: d1a, d2a, … of accelerations, d1tau, d2tau, … of
generalized forces, d1fext, … of external wrenches by component.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from liedyn import __version__
from liedyn.arrays import Array
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.force_elements import element_forces
from liedyn.errors import Place, TrajectoryError, list_names, nearest
from liedyn.io.column_map import MOTION_KIND, SOURCE, columns_option, is_motion_column
from liedyn.io.recorded_paths import relative_path
from liedyn.io.robots.robot_yaml import files_of_robot, robot_digest
from liedyn.io.trajectory_csv import Trajectory
from liedyn.io.units import unit_name, unit_of
from liedyn.model.force_element import FORCE_ELEMENT_TYPES
from liedyn.model.model import Model

_FORCE = {"rad": "N m", "m": "N"}
_WRENCH = (("mx", "N m"), ("my", "N m"), ("mz", "N m"), ("fx", "N"), ("fy", "N"), ("fz", "N"))
WRENCH = tuple(part for part, _ in _WRENCH)
_ORDER = ("q", "v", "a", "tau")
_OTHER_KINDS = ("reaction", "reference", "link", "energy", "drift", "contact", "cop", "power", "stop", "friction",
                "element", "motor", "thrust", "meas", "imu", "force_torque", "current",   # kinds that only runs write
                "measured", "wrench", "pose", "twist", "speed", "acceleration", "jacobian", "manipulability", "com", "momentum",
                "zmp", "mechanical_advantage", "transmission_angle")


def derivative_kind(kind: str, k: int) -> str:
    """Return the kind of the columns of the k-th time derivative: "a", "d1a", "d2a", …"""
    return f"d{k}{kind}" if k else kind


def trajectory_header(model: Model, *, passive: bool = True, folder: str | Path | None = None) -> dict[str, str]:
    """Return comments of a trajectory file that name the robot file and its file of loops.

    Paths are relative to `folder` if it is given.
    """
    header = {}
    if model.source:
        robot = os.path.abspath(model.source)
        places = [loop.place for loop in model.description.loops]
        places += [coupling.place for coupling in model.description.couplings]
        loops = {os.path.abspath(place.file) for place in places if place.file}
        for key, path in (("robot", robot), *(("loops", path) for path in loops - set(map(str, files_of_robot(robot))))):
            header[key] = relative_path(path, folder) if folder is not None else Path(path).as_posix()
        if Path(robot).is_file():
            header["robot_sha256"] = robot_digest(robot)
    if model.nc:
        header["reaction"] = reaction_comment()
    return header | {"base": model.base, "gravity": " ".join(repr(float(x)) for x in model.gravity),
                     "passive": "true" if passive else "false", "liedyn": __version__}


def reaction_comment(axes: str = "world axes") -> str:
    """Return the comment of a trajectory file that defines the reactions."""
    return (f"of a loop: wrench on link b from link a, {axes}, about the origin of frame b; of a coupling: force on a joint "
            "with coefficient 1; where constraints are redundant: those of the multipliers of minimum norm")


def motion_columns(model: Model, forced_links: Sequence[str] = (), wrench: Array | None = None,
                   **arrays: Array | None) -> list[tuple[str, str, Array]]:
    """Return (name, unit, (…, N) array) of the given quantities of a motion.

    arrays         q (…, N, nq), v, a, tau (…, N, nv) and rates such as d1a
    forced_links   links with external wrenches
    wrench         (…, N, len(forced_links), 6)
    """
    out = []
    known = {kind: x for kind, x in arrays.items() if x is not None}
    for kind in sorted(known, key=_file_order):
        out += [(f"{kind}.{name}", unit, known[kind][..., k]) for k, (name, unit) in enumerate(_units(model, kind).items())]
    for k, link in enumerate(forced_links):
        assert wrench is not None
        out += _component_columns(f"fext.{link}", wrench[..., k, :])
    return out


def coordinate_columns(model: Model, kind: str) -> tuple[str, ...]:
    """Return the name of the column of each velocity coordinate, such as v.elbow, tau.base.fz, d1a.base.dvx."""
    names = {"a": model.a_names, "tau": model.tau_names}.get(kind.lstrip("d0123456789"), model.v_names)
    return tuple(f"{kind}.{name}" for name in names)


def thrust_names(model: Model) -> tuple[str, ...]:
    """Return the names of the thrusts of all actuators, such as thrust.rotor1: inputs, and columns of runs."""
    return tuple(f"thrust.{actuator.name}" for actuator in model.description.actuators)


def coordinate_index(model: Model, column: str) -> int:
    """Return the index of the velocity coordinate of a column such as tau.base.fz. Raises ValueError if there is none."""
    kind, _, name = column.partition(".")
    names = coordinate_columns(model, kind)
    return names.index(column) if column in names else model.v_names.index(name)


def with_current_names(model: Model, trajectory: Trajectory) -> Trajectory:
    """Return the trajectory with the names of columns of older files replaced: `tau.base.vz` became `tau.base.fz`."""
    current = current_names(model)
    names = {column: name for column in trajectory.columns
             if (name := current(column)) != column and name not in trajectory.columns}
    if not names:
        return trajectory
    return replace(trajectory, columns={names.get(column, column): x for column, x in trajectory.columns.items()},
                   units={names.get(column, column): unit for column, unit in trajectory.units.items()})


def current_names(model: Model) -> Callable[[str], str]:
    """Return a function of the name of a column that returns its current name."""
    older = {kind: {v: name for v, name in zip(model.v_names, names, strict=True) if v != name}
             for kind, names in (("a", model.a_names), ("tau", model.tau_names))}

    def current(column: str) -> str:
        kind, _, name = column.partition(".")
        if name not in older["a"] or not is_motion_column(column):
            return column
        return f"{kind}.{older.get(_split_kind(kind)[0], {}).get(name, name)}"

    return current


def _component_columns(name: str, F: Array) -> list[tuple[str, str, Array]]:
    """Return the columns of F (…, 6) [m; f]."""
    return [(f"{name}.{part}", unit, F[..., k]) for k, (part, unit) in enumerate(_WRENCH)]


def energy_columns(kinetic: Array, potential: Array, work: Array) -> list[tuple[str, str, Array]]:
    """Return (name, unit, array) of energies [J]."""
    return [(f"energy.{name}", "J", x) for name, x in (("kinetic", kinetic), ("potential", potential), ("work", work))]


def element_columns(model: Model, q: Array, v: Array) -> list[tuple[str, str, Array]]:
    """Return (name, unit, (N,) array) of length, rate and force of each force element; of a bushing its wrench on b."""
    if not model.description.elements:
        return []
    state, columns = element_forces(model, q, v), []
    for k, element in enumerate(model.description.elements):
        name, unit, force = FORCE_ELEMENT_TYPES[element.type].coordinate
        columns += _component_columns(f"element.{element.name}", state.wrench[..., k, :]) if not name else [
            (f"element.{element.name}.{name}", unit, state.length[..., k]),
            (f"element.{element.name}.rate", f"{unit}/s", state.rate[..., k]),
            (f"element.{element.name}.{'force' if force == 'N' else 'torque'}", force, state.force[..., k])]
    return columns


def wrench_columns(names: Sequence[str], rates: Iterable[Array]) -> list[tuple[str, str, Array]]:
    """Return (name, unit, (N,) array) of wrench components and their rates.

    names   of the components, such as "hand.fx"
    rates   (N, names) of each order
    """
    units = dict(_WRENCH)
    return [(f"{derivative_kind('fext', k)}.{name}", _per_second(units[name.rpartition(".")[2]], k), x[:, j])
            for k, x in enumerate(rates) for j, name in enumerate(names)]


def joint_wrench_columns(wrenches: Mapping[str, Array]) -> list[tuple[str, str, Array]]:
    """Return the columns wrench.<joint>.mx … fz of {joint: (N, 6)} [m; f]."""
    return [column for joint, F in wrenches.items() for column in _component_columns(f"wrench.{joint}", F)]


def constraint_columns(model: Model, multipliers: Array | None, wrenches: Array | None,
                       drift: Array | None) -> list[tuple[str, str, Array]]:
    """Return the columns of reactions and drift of constraints; empty without constraints.

    reaction.<loop>.mx … fz    wrench on link b from link a [N m | N], `closure_wrenches` (N, loops, 6)
    reaction.<coupling>        force on a joint of the coupling whose coefficient is 1 [N m | N, as of its first joint]
    drift                      maximum residual [rad | m, or `rad or m` with both]
    """
    if multipliers is None:
        return []
    assert wrenches is not None and drift is not None
    columns, loops = [], len(model.description.loops)
    for k, constraint in enumerate(model.constraints):
        if k < loops:
            columns += _component_columns(f"reaction.{constraint.name}", wrenches[:, k])
        else:
            columns.append((f"reaction.{constraint.name}", _FORCE[constraint.units[0]], multipliers[:, constraint.rows.start]))
    units = {unit for constraint in model.constraints for unit in constraint.units}
    return [*columns, ("drift", " or ".join(sorted(units, reverse=True)), drift)]


def _units(model: Model, kind: str) -> dict[str, str]:
    """Return the unit of each possible column of a kind, by the name without the kind."""
    if kind == "q":
        return dict(zip(model.q_names, model.q_units, strict=True))
    quantity, rate = _split_kind(kind)
    if quantity == "fext":
        return {f"{link}.{part}": _per_second(unit, rate) for link in model.link_names for part, unit in _WRENCH}
    names, power = {"v": (model.v_names, rate + 1), "a": (model.a_names, rate + 2), "tau": (model.tau_names, rate)}[quantity]
    return {name: _per_second(_FORCE[unit] if quantity == "tau" else unit, power)
            for name, unit in zip(names, model.v_units, strict=True)}


def _per_second(unit: str, power: int) -> str:
    return unit if power == 0 else f"{unit}/s" if power == 1 else f"{unit}/s^{power}"


def _file_order(kind: str) -> tuple[int, int]:
    quantity, rate = _split_kind(kind)
    return _ORDER.index(quantity), rate


def _split_kind(kind: str) -> tuple[str, int]:
    """Return the quantity of a kind of columns, such as tau of d2tau, and the order of its time derivative."""
    parts = MOTION_KIND.fullmatch(kind)
    assert parts is not None
    return parts["kind"], int(parts["rate"] or 0)


def bind_columns(model: Model, trajectory: Trajectory, kind: str, *, partial: bool = False) -> Array | None:
    """Return the (N, n) array of the columns of `kind` (q, v, a, tau, or a rate such as d1a), by name; None without such columns.

    Missing columns of coordinates that couplings determine are computed; missing forces at them are zero. Other missing columns
    raise TrajectoryError, or are NaN if `partial`. Raises TrajectoryError for a different unit.
    """
    units, trajectory = _units(model, kind), with_current_names(model, trajectory)
    present = [name for name in units if f"{kind}.{name}" in trajectory.columns]
    for name in present:
        check_column_unit(trajectory, f"{kind}.{name}", units[name])
    if present and model.nc and model.has_only_couplings:
        followers = {model.v_names[k] for k in np.flatnonzero(model.follows)}       # single coordinates: their names in q, too
        absent = [name for name in units if name not in present and (name in followers or not partial)]
        if absent and followers.issuperset(absent):
            missing = np.zeros(len(trajectory.t))
            x = np.column_stack([trajectory.columns.get(f"{kind}.{name}", missing if name in followers else missing * np.nan)
                                 for name in units])
            if not model.function_couplings or _split_kind(kind)[0] == "tau":
                return _with_followers(model, kind, x, absent)
            if kind in _MOTION:
                bound = [bind_columns(model, trajectory, each) for each in _MOTION[:_MOTION.index(kind)]]
                lower = [each for each in bound if each is not None]
                if len(lower) == len(bound):
                    followed, names = follow_couplings(model, *lower, x)[-1], list(units)
                    return _replaced(x, followed, [names.index(name) for name in absent])
    if partial and present:
        missing = np.full(len(trajectory.t), np.nan)
        return np.column_stack([trajectory.columns.get(f"{kind}.{name}", missing) for name in units])
    return _stack_columns(trajectory, kind, list(units), present)


_MOTION = ("q", "v", "a")          # rates of followers of nonlinear couplings depend on the kinds before


def _with_followers(model: Model, kind: str, x: Array, absent: list[str]) -> Array:
    """Return x (N, n) with the values of the absent coordinates, which linear couplings determine."""
    quantity, _ = _split_kind(kind)
    if quantity == "tau":
        return x
    if quantity == "q":
        followed, places = follow_couplings(model, x)[0], [model.q_names.index(name) for name in absent]
    else:
        followed, places = x @ model.elimination().projection.T, [model.v_names.index(name) for name in absent]
    return _replaced(x, followed, places)


def _replaced(x: Array, followed: Array, places: list[int]) -> Array:
    x[:, places] = followed[:, places]
    return x


def unused_columns(model: Model, trajectory: Trajectory) -> list[str]:
    """Return the columns that do not belong to the robot, including misspelled ones."""
    known = _columns_by_kind(model)
    return [column for column in with_current_names(model, trajectory).columns
            if not (_belongs(column, known) if is_motion_column(column) else column.partition(".")[0] in _OTHER_KINDS)]


def column_units(model: Model, trajectory: Trajectory) -> dict[str, str]:
    """Return the unit of each column: where the trajectory has none, that with which the column is read."""
    known = _columns_by_kind(model)

    def expected(column: str) -> str:
        kind, _, name = column.partition(".")
        return known(kind).get(name, "") if is_motion_column(column) else ""

    return {column: trajectory.units.get(column) or expected(column) for column in trajectory.columns}


def check_mapped_columns(model: Model, trajectory: Trajectory) -> None:
    """Raise TrajectoryError for an entry of the map of the trajectory with a target that the robot does not have."""
    if trajectory.mapping is None:
        return
    known, current = _columns_by_kind(model), current_names(model)
    for column, place in trajectory.mapping.places.items():
        if column != "t" and not _belongs(current(column), known):
            kind = column.partition(".")[0]
            names = [f"{kind}.{name}" for name in known(kind)]
            raise TrajectoryError(f"the robot {model.name} has no such column", place=place, found=column,
                                  expected=f"one of {list_names(names, 20)}", hint=nearest(column, names))


def _belongs(column: str, known: Callable[[str], dict[str, str]]) -> bool:
    kind, _, name = column.partition(".")
    return name in known(kind)


def _columns_by_kind(model: Model) -> Callable[[str], dict[str, str]]:
    """Return a function of a kind of columns that returns the unit of each column, by the name without the kind."""
    return lru_cache(None)(partial(_units, model))


def check_column_unit(trajectory: Trajectory, column: str, unit: str) -> None:
    """Raise TrajectoryError if a column has another unit."""
    actual = trajectory.units.get(column, "")
    if actual and actual.replace("·", " ").replace("*", " ") != unit:
        raise TrajectoryError("wrong unit", place=column_location(trajectory, column), found=actual,
                              expected=unit or "none", hint=_conversion(trajectory, actual, unit))


def _conversion(trajectory: Trajectory, actual: str, expected: str) -> str | None:
    """Return a hint with the map that converts columns with units such as deg; None if nothing converts to the expected unit."""
    def name_in_si(text: str) -> str | None:
        unit = unit_of(text)
        return None if unit is None else unit_name(unit.exponents)

    if trajectory.mapping is not None or name_in_si(actual) != expected:
        return None
    kinds = dict.fromkeys(name.partition(".")[0] for name, unit in trajectory.units.items()
                          if is_motion_column(name) and unit and name_in_si(unit) not in (unit, None))
    return f"convert them with {columns_option({f'{kind}.*': f'{kind}.*' for kind in kinds})}" if kinds else None


def _stack_columns(trajectory: Trajectory, kind: str, names: Sequence[str], present: list[str]) -> Array | None:
    """Return the (N, names) columns of a kind; None if none is present. Raises TrajectoryError if only some are."""
    if not present:
        return None
    expected = [f"{kind}.{name}" for name in names]
    for name in expected:
        if name not in trajectory.columns:
            unexpected = [x for x in trajectory.columns if x.startswith(f"{kind}.") and x not in expected]
            alike = next((x for x in unexpected if nearest(x, [name])), None)
            option = columns_option({name: "0"}) if kind in _MOTION else ""
            raise TrajectoryError("a column is missing", place=column_location(trajectory, name),
                                  found=alike or list_names(unexpected, 4) or None,
                                  expected=f"one for each coordinate, because there is {kind}.{present[0]}",
                                  hint=f"is {alike} a misspelling of {name}?" if alike else
                                  f"for a joint that stays at 0, {option}" if option else None)
    return np.column_stack([trajectory.columns[f"{kind}.{name}"] for name in names])


def bind_wrenches(model: Model, trajectory: Trajectory) -> Array | None:
    """Return the (N, n_links, 6) external wrenches of the columns fext.<link>.<component>; None without such columns."""
    names = wrench_components(model, trajectory)
    if not names:
        return None
    out = np.zeros((len(trajectory.t), len(model.link_names), 6))
    for name in names:
        link, _, part = name.rpartition(".")
        out[:, model.link_index(link), WRENCH.index(part)] = trajectory.columns[f"fext.{name}"]
    return out


def wrench_components(model: Model, trajectory: Trajectory, rate: int = 0) -> list[str]:
    """Return the components <link>.<component> of external wrenches, or of their rates, in the file.

    Raises TrajectoryError for a column that belongs to no link, and for a different unit.
    """
    kind, names = derivative_kind("fext", rate), []
    units = _units(model, kind)
    for column in trajectory.columns:
        if not column.startswith(f"{kind}."):
            continue
        name = column[len(kind) + 1:]
        if name not in units:
            raise TrajectoryError("the robot has no link of this column", place=column_location(trajectory, column),
                                  expected=f"{kind}.<link>.mx … {kind}.<link>.fz")
        check_column_unit(trajectory, column, units[name])
        names.append(name)
    return names


def bind_wrench_rate(model: Model, trajectory: Trajectory, names: list[str], rate: int) -> Array | None:
    """Return the (N, names) rates of these components of external wrenches; None without such columns.

    Raises TrajectoryError if only some are present, or others.
    """
    kind, wrenches = derivative_kind("fext", rate), wrench_components(model, trajectory, rate)
    for name in wrenches:
        if name not in names:
            raise TrajectoryError("a column is missing", place=column_location(trajectory, f"fext.{name}"),
                                  expected=f"the wrench itself, because there is its rate {kind}.{name}")
    return _stack_columns(trajectory, kind, names, wrenches)


def column_location(trajectory: Trajectory, column: str) -> Place:
    """Return the location of a column: that of its entry, if the trajectory was read with a map."""
    mapping = trajectory.mapping
    if mapping is not None and column in mapping.sources:
        return mapping.places.get(column) or Place(mapping.file or SOURCE, None, column)
    return Place(trajectory.source, None, f"column {column}")
