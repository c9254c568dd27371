"""A sweep of a driver as text, plain data, CSV and plot."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.constraints.kinematic_sweep import KinematicSweep, SpecialPosition
from liedyn.errors import LiedynWarning, ModelError
from liedyn.io.atomic_output import STDIO
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.report.plots.plot_data import FORMATS
from liedyn.report.plots.save_plots import save_sheets
from liedyn.report.plots.saved_plots import SavedPlots
from liedyn.report.plots.sweep_plot import draw_sweep
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header

_DECIMALS = 12                              # of positions of dead centres in text: they are located no better


def transmission_angles_of(sweep: KinematicSweep) -> tuple[dict[str, Array], list[str]]:
    """Return the transmission angles [rad] of the driven coordinates that have one, and why the others have none."""
    angles, reasons = {}, []
    for name in sweep.driven:
        try:
            angles[name] = sweep.transmission_angle(name)
        except ModelError as error:
            reasons.append(error.message)
    return angles, reasons


def sweep_text(sweep: KinematicSweep) -> str:
    """Return lines about a sweep: its range, special positions, and the ranges of advantages and transmission angles."""
    unit = _unit(sweep, sweep.driver)
    lines = [f"{sweep.model.name}: {sweep.driver} from {sweep.positions[0]:.6g} to {sweep.positions[-1]:.6g} {unit}, "
             f"{len(sweep.positions)} rows"]
    lines += [special_text(sweep, each) for each in sweep.special_positions]
    angles, reasons = transmission_angles_of(sweep)
    for name in sweep.driven:
        size = np.abs(sweep.mechanical_advantage(name))
        unit = sweep.advantage_unit(name)
        lines.append(f"mechanical advantage of {name}: at least {size.min():.4g}{f' {unit}' if unit else ''}")
        if name in angles:
            low, high = np.degrees(angles[name].min()), np.degrees(angles[name].max())
            lines.append(f"transmission angle of {name}: {low:.4g} to {high:.4g} deg")
    if sweep.idle:
        lines.append(f"not moved by {sweep.driver}: {', '.join(sweep.idle)}")
    return "\n".join([*lines, *reasons])


def sweep_warnings(sweep: KinematicSweep) -> list[LiedynWarning]:
    """Return the warning that the driver does not reach the end of its range."""
    return [LiedynWarning("sweep-stopped", sweep.stop)] if sweep.stop else []


def special_text(sweep: KinematicSweep, special: SpecialPosition) -> str:
    """Return a line about a dead centre, change point or joint limit."""
    unit = _unit(sweep, sweep.driver)
    position = round(special.position, _DECIMALS) + 0.0                  # no minus zero
    degrees = f" ({np.degrees(position):.6g} deg)" if unit == "rad" else ""
    subject = f"{special.kind} of {special.coordinate}" if special.coordinate else special.kind
    return f"{subject} at {sweep.driver} = {position:.9g} {unit}{degrees}"


def sweep_to_dict(sweep: KinematicSweep) -> dict[str, Any]:
    """Return a sweep as plain data: without the rows, which are in the CSV."""
    angles, reasons = transmission_angles_of(sweep)
    return {"robot": sweep.model.source, "driver": sweep.driver, "first": float(sweep.positions[0]),
            "last": float(sweep.positions[-1]), "rows": len(sweep.positions), "driven": list(sweep.driven),
            "special_positions": [{"kind": each.kind, "coordinate": each.coordinate, "position": each.position,
                                   "q": each.q.tolist()} for each in sweep.special_positions],
            "transmission_angle": {name: [float(x.min()), float(x.max())] for name, x in angles.items()},
            "without_transmission_angle": reasons, "stop": sweep.stop or None, "idle": list(sweep.idle)}


def write_sweep(sweep: KinematicSweep, path: str, *, force: bool = False) -> None:
    """Write a sweep as a trajectory, in which the driver moves at 1 rad/s or 1 m/s: velocities are velocity ratios.

    Further columns are mechanical advantages, empty where infinite, and transmission angles. `-` is standard output.
    """
    folder = None if path == STDIO else Path(path).absolute().parent
    header = trajectory_header(sweep.model, folder=folder)
    header["sweep"] = f"{sweep.driver} moves at 1 {_unit(sweep, sweep.driver)}/s"
    if sweep.special_positions:
        header["special_positions"] = "; ".join(special_text(sweep, each) for each in sweep.special_positions)
    if sweep.stop:
        header["stop"] = sweep.stop
    direction = np.sign(sweep.positions[-1] - sweep.positions[0]) if len(sweep.positions) > 1 else 1.0
    columns = motion_columns(sweep.model, q=sweep.q, v=direction * sweep.rates)
    advantages = {name: sweep.mechanical_advantage(name) for name in sweep.driven}
    columns += [(f"mechanical_advantage.{name}", sweep.advantage_unit(name), np.where(np.isfinite(x), x, np.nan))
                for name, x in advantages.items()]
    columns += [(f"transmission_angle.{name}", "rad", x) for name, x in transmission_angles_of(sweep)[0].items()]
    write_trajectory(path, header, np.abs(sweep.positions - sweep.positions[0]), columns, force=force)


def plot_sweep(sweep: KinematicSweep, path: str) -> SavedPlots:
    """Draw a sweep next to its CSV: NAME.png and NAME.svg."""
    target = Path(path)
    angles = transmission_angles_of(sweep)[0]
    return save_sheets({target.stem: lambda: draw_sweep(sweep, angles)}, target.parent, FORMATS)


def _unit(sweep: KinematicSweep, name: str) -> str:
    return sweep.model.v_units[sweep.model.v_names.index(name)]
