"""The folder of a linearization: matrices and linear.json, written whole or not at all, then the modes as a picture."""
from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from liedyn import __version__
from liedyn.analyse.linearization.linear_system import Mode, chains_in_words, growth_in_words, verdict
from liedyn.analyse.linearization.linearize import Linearization
from liedyn.dynamics.scales import scales_of
from liedyn.errors import CheckFailed
from liedyn.io.csv import cell
from liedyn.io.output import open_folder
from liedyn.io.scenarios.plain_scenario import to_plain
from liedyn.report.pictures.beside_data import Written, draw_beside
from liedyn.report.pictures.picture_data import FORMATS
from liedyn.report.texts.text_table import counted
from liedyn.simulation.extrapolation import BOUND

MARK = "linear.json"                    # what tells such a folder from others
_SHOWN = 3                              # coordinates named for a mode
_PLACES = 8                             # coordinates of an equilibrium that are printed
_MOVING = 1e-6                          # of characteristic velocities and accelerations: less is called at rest


def write_linearization(result: Linearization, folder: str | Path, *, force: bool = False, plots: bool = True,
                        formats: Sequence[str] = FORMATS) -> Written:
    """Write A, B, C, D, Ad, Bd as CSV, all of it as system.npz for NumPy, linear.json and the picture; returns the
    files, and why there is no picture where it cannot be drawn.

    Raises UsageError where the folder exists and `force` is not given, or cannot be written.
    """
    folder = Path(folder)
    tables = matrices(result)
    with open_folder(folder, mark=MARK, force=force) as part:
        for name, (matrix, rows, columns) in tables.items():
            _write_matrix(part / f"{name}.csv", name, matrix, rows, columns)
        names = {name: np.array(getattr(result.system, name), dtype=str) for name in ("states", "inputs", "outputs")}
        np.savez(part / "system.npz", **{name: matrix for name, (matrix, _, _) in tables.items()}, **names, step=result.step)
        (part / MARK).write_text(json.dumps(summary(result, folder), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    written = Written([*(folder / f"{name}.csv" for name in tables), folder / "system.npz", folder / MARK])
    return written + draw_beside(folder, partial(_draw, result, formats)) if plots else written


def matrices(result: Linearization) -> dict[str, tuple[np.ndarray, list[str], list[str]]]:
    """{name: (matrix, names of its rows, names of its columns)}, with units."""
    s = result.system
    named = {kind: [f"{name}[{unit}]" for name, unit in zip(names, units, strict=True)]
             for kind, names, units in (("x", s.states, s.state_units), ("u", s.inputs, s.input_units),
                                        ("y", s.outputs, s.output_units))}
    return {name: (matrix, named[rows], named[columns]) for name, matrix, rows, columns in (
        ("A", s.A, "x", "x"), ("B", s.B, "x", "u"), ("C", s.C, "y", "x"), ("D", s.D, "y", "u"), ("Ad", result.Ad, "x", "x"),
        ("Bd", result.Bd, "x", "u"))}


def summary(result: Linearization, folder: str | Path | None = None) -> dict:
    """What linear.json holds, and --json prints."""
    s, here, m = result.system, result.here, result.model
    by_name = lambda names, x: {name: float(value) for name, value in zip(names, x, strict=True)}    # noqa: E731
    return {
        "liedyn": __version__, "robot": m.name, "t": here.t, "at_rest": result.offset is not None,
        "states": list(s.states), "inputs": list(s.inputs), "outputs": list(s.outputs),
        "units": {"states": list(s.state_units), "inputs": list(s.input_units), "outputs": list(s.output_units)},
        "q": by_name(m.q_names, here.q), "v": by_name(m.v_names, here.v), "a": by_name(m.v_names, here.a),
        "tau": by_name(m.v_names, here.tau), "held_by": result.offset or {},
        "integrals": {name[2:]: float(here.integral[m.v_names.index(name[2:])]) for name in s.states if name.startswith("z.")},
        "stability": s.stability, "growth_power": s.growth, "modes": [_plain(mode) for mode in s.modes],
        "controllable_states": s.controllable, "observable_states": s.observable,
        "discretization": {"method": "zero-order hold", "step": result.step},
        "verified": {name: one.off for name, one in result.differences.items()} if result.differences else None,
        "scenario": to_plain(result.scenario, os.path.abspath(folder) if folder is not None else None),
        "notes": list(result.notes),
    }


def _plain(mode: Mode) -> dict:
    constant = mode.time_constant
    return {"eigenvalue": [mode.eigenvalue.real, mode.eigenvalue.imag], "count": mode.count, "stability": mode.stability,
            "chains": list(mode.chains), "growth_power": mode.growth,
            "frequency_hz": mode.frequency, "damping_ratio": mode.damping,
            "time_constant": constant if math.isfinite(constant) else None,
            "participation": _rounded(mode.participation), "fastest": _rounded(mode.fastest)}


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    return {name: round(share, 6) for name, share in shares.items() if share >= 5e-7}


def _largest(shares: dict[str, float]) -> list[tuple[str, float]]:
    return [(name, share) for name, share in shares.items() if share >= 0.05]


def _listed(texts: list[str], most: int) -> str:
    return ", ".join([*texts[:most], *["…"] * (len(texts) > most)])


def _place(result: Linearization) -> str:
    """The configuration; what is left of zero by rounding is zero."""
    m = result.model
    return _listed([f"{name} {round(x, 9) + 0.0:.5g} {unit}".rstrip()
                    for name, x, unit in zip(m.q_names, result.here.q.tolist(), m.q_units, strict=True)], _PLACES)


def text(result: Linearization, most: int = 24) -> str:
    """For people: the least stable modes and what they move, ranks, and how well it agrees with differences."""
    s, n = result.system, len(result.system.states)
    where = "at rest" if result.offset is not None else f"at t = {result.here.t:g} s"
    units = scales_of(result.model)
    moving = np.abs([result.here.v * units.time, result.here.a * units.time**2]) > _MOVING * units.of_all(result.model.v_units)
    frozen = " (frozen-time, not an equilibrium)" if moving.any() else ""
    lines = [f"{result.model.name} {where}: {n} states, {counted(len(s.inputs), 'input')}, {counted(len(s.outputs), 'output')}; "
             f"{verdict(s)}{frozen}"]
    if s.modes:
        lines += [f"  {'eigenvalue [1/s]':>24}  {'f [Hz]':>8}  {'damping':>8}  {'time const. [s]':>15}  {'stability':<9}  "
                  "participation"]
        lines += [f"  {_line(mode)}" for mode in s.modes[:most]]
    if len(s.modes) > most:
        lines += [f"  … and {len(s.modes) - most} more, in {MARK}"]
    lines += [f"  {_value(mode)}: {chains_in_words(mode)}; {growth_in_words(mode.growth)}: "
              + _listed([name for name, _ in _largest(mode.fastest)], _SHOWN) for mode in s.modes if mode.growth]
    fixed = int((~s.moving).sum())
    if fixed:
        lines += [f"  {fixed} more states belong to prescribed coordinates, which forces do not affect"]
    if result.offset is not None:
        lines += [f"equilibrium at {_place(result)}"]
    if result.offset:
        lines += ["held by " + ", ".join(f"{name} {value:.6g}" for name, value in result.offset.items())]
    lines += [f"controllable: {s.controllable} of {n} states; observable: {s.observable} of {n}"]
    if result.differences:
        lines += ["largest relative difference from extrapolated finite differences: "
                  + ", ".join(f"{name} {one}" for name, one in result.differences.items())]
    return "\n".join(lines)


def _value(mode: Mode) -> str:
    shown = f"{0.0 if mode.chains else mode.eigenvalue.real:.5g}"
    return shown + (f" ± {mode.eigenvalue.imag:.5g}i" if mode.eigenvalue.imag else "")


def _line(mode: Mode) -> str:
    pair = 2 if mode.eigenvalue.imag else 1
    shown = _value(mode) + (f"  ({mode.count // pair}x)" if mode.count > pair else "")
    parts = _listed([f"{name} {100 * share:.0f}%" for name, share in _largest(mode.participation)], _SHOWN)
    damping = 0.0 if mode.chains else mode.damping
    frequency, damped = (f"{mode.frequency:.4g}", f"{damping:.3g}") if mode.eigenvalue.imag else ("", "")
    constant = "" if mode.chains else f"{mode.time_constant:.4g}"
    return f"{shown:>24}  {frequency:>8}  {damped:>8}  {constant:>15}  {mode.stability:<9}  {parts}"


def check(result: Linearization) -> None:
    """CheckFailed where the comparison with differences is beyond its bound."""
    bad = {name: one for name, one in (result.differences or {}).items() if not one.sound}
    if bad:
        shown = ", ".join(f"{name} {one.off:.1e}" for name, one in bad.items())
        raise CheckFailed(f"the linearization differs from extrapolated finite differences by {shown} (relative), more than "
                          f"{BOUND:g}: a force may have a kink here (abs, min, max, step, sign), or friction may be steep")


def _write_matrix(path: Path, name: str, matrix: np.ndarray, rows: list[str], columns: list[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([name, *map(cell, columns)])
        writer.writerows([cell(row), *map(repr, values)] for row, values in zip(rows, matrix.tolist(), strict=True))


def _draw(result: Linearization, formats: Sequence[str], folder: Path) -> Written:
    from liedyn.report.modes import draw_modes
    from liedyn.report.pictures.all_pictures import save_sheets

    where = "at rest" if result.offset is not None else f"at t = {result.here.t:g} s"
    return save_sheets({"modes": lambda: draw_modes(result.system, f"{result.model.name}, {where}")}, folder, formats)
