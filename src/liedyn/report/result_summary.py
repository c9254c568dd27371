"""Base parameters and their estimates, plans of runs and reached targets, as text, plain data and files."""
from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from liedyn.analysis.excitation import Excitation
from liedyn.analysis.identification import IMPRECISE_FROM, RELIABLE, UNRELIABLE, Identification
from liedyn.analysis.nonlinear_parameters import values_in_file
from liedyn.dynamics.inertial_parameters import BaseParameters
from liedyn.dynamics.inverse_kinematics import InverseKinematics
from liedyn.errors import LiedynWarning, list_names, size_text
from liedyn.io.atomic_output import STDIO, open_output
from liedyn.io.csv_table import Column, write_table
from liedyn.io.sweep_file import SIMULATE
from liedyn.io.trajectory_csv import Trajectory, write_trajectory
from liedyn.model.model import Model
from liedyn.report.assembly_report import coordinates_by_joint, write_states
from liedyn.report.robot_summary import table
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header

_NAMES, _WIDTH = 12, 80                  # names of a list; characters of a line
_REGROUPING = "stands for"
_LEFT = ("parameter", "unit", _REGROUPING, "joint", "missing")       # columns that are aligned to the left
_FEWEST_CHARACTERS = 12                  # of a regrouping that is worth a column
# columns that are left out of a wide table, in this order
_OPTIONAL = ("independent fraction", "scale tested to", "noise and kinks", "scale error", "relative", "unit", "robot file")
_MAX_RATIO = 1e3                         # of a deviation to its value; above it, the value is zero but for noise or rounding
_WIDEST = 100_000                        # characters of a cell: no line breaks, for programs that read the table


def parameter_text(model: Model, base: BaseParameters, fit: Identification | None, *, whole: bool = False) -> str:
    """Return a table: name, value, unit, regrouped parameters; with a fit also estimate and standard deviation.

    whole: do not shorten lines.
    """
    lines = [f"{model.name}: {len(base)} base parameters of {len(base.parameters.names)}, {model.base} base"]
    of_fit = ["estimate", "deviation", "relative", "scale error", "verdict"] if fit else []
    head = ["parameter", "robot file", *of_fit, "unit", _REGROUPING]
    rows = [[base.names[k], *figures, base.units[k], base.regrouping(k)] for k, figures in enumerate(_figures(base, fit, whole))]
    rows += _nonlinear_rows(fit) if fit else []
    parts = [[head, *rows], *([_joint_rows(model, fit)] if fit else [])]
    printed = parts if whole else [narrow(part) for part in parts]
    tables = [table_lines(part) for part in printed]
    notes = [f"without effect on the generalized forces: {_listed(base.unidentifiable, whole)}"] if base.unidentifiable else []
    if omitted := [name for part, narrow in zip(parts, printed, strict=True) for name in part[0] if name not in narrow[0]]:
        notes.append(f"--verbose also prints the columns {', '.join(omitted)}")
    lines += [*tables[0], *_lines(notes, whole)]
    if fit:
        lines += [*_lines(_fit_head(fit), whole), *tables[1], *_lines(_fit_notes(fit, whole), whole)]
    return "\n".join(lines)


def table_lines(rows: list[list[str]]) -> list[str]:
    """Return the lines of a table with a head."""
    return table(rows, [k for k, name in enumerate(rows[0]) if name in _LEFT], _WIDEST)


def _lines(texts: Sequence[str], whole: bool) -> list[str]:
    """Return the lines of texts, of at most 80 characters unless they are whole."""
    return [line for text in texts for line in ([text] if whole else wrap(text, _WIDTH, break_on_hyphens=False))]


def weak_warnings(base: BaseParameters) -> list[LiedynWarning]:
    """Return a warning if parameters have a small effect, perhaps only because angles in the robot file are rounded."""
    if not base.weak:
        return []
    return [LiedynWarning("weak-parameters",
                          f"{list_names(base.weak, 4)} have an effect below 1e-4 of that of others, perhaps because angles in "
                          "the robot file are rounded; --tolerance 1e-4 ignores them")]


def parameters_to_dict(model: Model, base: BaseParameters, fit: Identification | None) -> dict[str, Any]:
    """Return plain data for JSON: numbers at full precision, null for a deviation that is infinite."""
    listed = []
    for k, name in enumerate(base.names):
        row = base.matrix[k]
        entry = {"name": name, "unit": base.units[k], "value": float(base.values[k]),
                 "stands_for": {base.parameters.names[j]: float(row[j]) for j in row.nonzero()[0]}}
        if fit:
            entry |= {"estimate": float(fit.values[k]), "deviation": _finite(fit.deviations[k]),
                      "relative_deviation": _finite(fit.relative[k]), "scale_error": _finite(fit.scale_errors[k]),
                      "verdict": fit.verdicts[k], "misfit": fit.misfits[k]}
        listed.append(entry)
    out = {"robot": model.name, "base": model.base, "parameters": len(base.parameters.names), "base_parameters": listed,
           "condition": base.condition, "unidentifiable": list(base.unidentifiable), "weak": list(base.weak)}
    if fit:
        out["fit"] = {"rows": fit.rows, "condition": _finite(fit.condition), "verdict": fit.verdict, "premise": fit.premise,
                      "joints": [{name: _finite(x) if isinstance(x, float) else x for name, x in vars(joint).items()}
                                 for joint in fit.joints],
                      "nonlinear": [dict(zip(("name", "unit", "estimate", "deviation", "verdict"), (
                          name, unit, _finite(x), _finite(s), reliability), strict=True))
                          for name, unit, x, s, reliability in zip(*fit.nonlinear, strict=True)],
                      "residual": dict(zip(model.v_names, map(_finite, fit.residual), strict=True)),
                      "force": dict(zip(model.v_names, map(_finite, fit.force), strict=True)),
                      "warnings": [warning.to_dict() for warning in fit.warnings]}
    return out


def _or_nan(x: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(x), x, np.nan)


def write_parameters(path: str | Path, base: BaseParameters, fit: Identification | None, *, force: bool = False) -> None:
    """Write the parameters as CSV; `-` is standard output.

    Columns: name, unit, value, (estimate, deviation, relative_deviation, scale_error, verdict,) stands_for. The deviation of a
    parameter that the motion does not excite is empty, since spreadsheets read `inf` as text.
    """
    regroupings = [base.regrouping(k) for k in range(len(base.names))]
    columns: list[Column] = [("name", base.names), ("unit", base.units), ("value", base.values), ("stands_for", regroupings)]
    if fit:
        extra = fit.nonlinear
        unknown = np.full(len(extra.names), np.nan)
        right = values_in_file(fit.model, extra.names)
        columns = [("name", (*base.names, *extra.names)), ("unit", (*base.units, *extra.units)),
                   ("value", np.r_[base.values, right]), ("estimate", np.r_[fit.values, extra.values]),
                   ("deviation", _or_nan(np.r_[fit.deviations, extra.deviations])),
                   ("relative_deviation", _or_nan(np.r_[fit.relative, unknown])),
                   ("scale_error", _or_nan(np.r_[fit.scale_errors, unknown])),
                   ("verdict", (*fit.verdicts, *extra.verdicts)), ("stands_for", (*regroupings, *extra.names))]
    with open_output(path, force=force) as file:
        write_table(file, columns)


def _figures(base: BaseParameters, fit: Identification | None, whole: bool) -> list[list[str]]:
    if fit is None:
        return [[f"{x:.6g}"] for x in base.values]
    return [[f"{x:.6g}", f"{y:.6g}", f"{s:.2g}" if math.isfinite(s) else "", _percent(ratio),
             f"{scale:.2g}" if math.isfinite(scale) else "", reliability
             if reliability == RELIABLE else f"{reliability.upper()}{_misfit_text(misfit, whole)}"]
            for x, y, s, ratio, scale, reliability,
            misfit in zip(base.values, fit.values, fit.deviations, fit.relative, fit.scale_errors, fit.verdicts, fit.misfits,
                          strict=True)]


def _nonlinear_rows(fit: Identification) -> list[list[str]]:
    """Return rows of the table of base parameters for parameters in which the forces are not linear."""
    return [[name, f"{x0:g}", f"{x:.6g}" if math.isfinite(x) else "",
             f"{s:.2g}" if math.isfinite(s) else "", "", "",
             reliability if reliability == RELIABLE else reliability.upper(), unit, name]
            for x0, name, unit, x, s, reliability in zip(values_in_file(fit.model, fit.nonlinear.names), *fit.nonlinear,
                                                         strict=True)]


def _misfit_text(joints: str, whole: bool) -> str:
    return "" if not joints else f" (misfit at {joints})" if whole else " (misfit)"


def _percent(ratio: float) -> str:
    if not math.isfinite(ratio):
        return ""
    return f"{100 * ratio:.2g} %" if ratio <= _MAX_RATIO else "-"


def _fit_head(fit: Identification) -> list[str]:
    return [f"fitted to {fit.rows} rows, condition {fit.condition:.3g}" if math.isfinite(fit.condition)
            else f"fitted to {fit.rows} rows, which do not excite all parameters"]


def _joint_rows(model: Model, fit: Identification) -> list[list[str]]:
    """Return a table with the test of each joint."""
    rows = [[name, f"{r:.3g} {unit}", f"{100 * r / f:.2g} %" if f else "", f"{joint.noise:.2g} {unit}",
             f"{1 / joint.inflation:.2g}", f"{100 * joint.scale:.2g} %" if joint.scale < 1.0 else "no",
             "" if joint.explained else joint.candidate or "unknown"] if joint.measured else [name, "not measured", *[""] * 5]
            for name, unit, r, f, joint in zip(model.v_names, model.tau_units, fit.residual, fit.force, fit.joints, strict=True)]
    head = ["joint", "residual force", "of its force", "noise and kinks", "independent fraction", "scale tested to", "missing"]
    return [head, *rows]


def _fit_notes(fit: Identification, whole: bool) -> list[str]:
    lines = [fit.verdict, fit.premise]
    if any(fit.misfits) and not whole:
        lines.append("misfit: the value depends on a joint whose torque the model does not explain, or whose torque has a wrong "
                     "sign or unit; --verbose lists these joints for each value")
    unreliable = [name for name, reliability in zip(fit.names, fit.verdicts, strict=True) if reliability == UNRELIABLE]
    if unreliable:
        lines.append(f"NOT RELIABLE: {_listed(unreliable, whole)}")
    return lines


def narrow(rows: list[list[str]]) -> list[list[str]]:
    """Return a table of at most 80 columns, if possible: regroupings are shortened, and columns are left out."""
    columns = [list(column) for column in zip(*rows, strict=True)]

    def room() -> int:
        return _WIDTH + 2 - sum(max(map(len, column)) + 2 for column in columns)

    if columns[-1][0] == _REGROUPING:
        terms = columns.pop()
        if room() >= _FEWEST_CHARACTERS + 2:
            columns.append([_beginning(text, room() - 2) for text in terms])
    for name in _OPTIONAL:
        if room() < 0:
            columns = [column for column in columns if column[0] != name]
    return [list(row) for row in zip(*columns, strict=True)]


def _beginning(regrouping: str, width: int) -> str:
    """Return the first terms, in at most `width` characters, and the number of further ones."""
    terms = re.split(r" (?=[+-] )", regrouping)
    texts = [regrouping, *(f"{' '.join(terms[:k])} … {len(terms) - k} more" for k in range(len(terms) - 1, 0, -1))]
    return next((text for text in texts if len(text) <= width), f"{len(terms)} terms")


def _listed(names: Sequence[str], whole: bool) -> str:
    return list_names(names, len(names) if whole else _NAMES)


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


# Motions for identification ---------------------------------------------------------------------------------------------

def excitation_text(motion: Excitation, fit: Identification | None = None, *, whole: bool = False) -> str:
    """Return a table of base parameters with the deviations that the motion promises, and the parameters that none identifies.

    fit   of a rehearsal
    """
    base = motion.base
    head = ["parameter", "robot file", "deviation", *(["rehearsed", "error"] if fit else []), "relative", "unit", _REGROUPING]
    errors: list[list[str]] = [[]] * len(base)
    if fit:
        errors = [[f"{s:.2g}", f"{x:.2g}"] for s, x in zip(fit.deviations, fit.values - base.values, strict=True)]
    rows = [[base.names[k], f"{x:.6g}", f"{s:.2g}", *errors[k], _percent(ratio), base.units[k], base.regrouping(k)]
            for k, (x, s, ratio) in enumerate(zip(base.values, motion.deviations, motion.relative, strict=True))]
    part = [head, *rows] if whole else narrow([head, *rows])
    imprecise = [name for name, ratio in zip(base.names, motion.relative, strict=True) if ratio > IMPRECISE_FROM]
    notes = [f"no motion identifies: {_listed(base.unidentifiable, whole)}" if base.unidentifiable else
             "every parameter is identifiable, alone or in a sum with others"]
    if imprecise:
        notes.append(f"{len(imprecise)} of {len(base)} deviations are above {100 * IMPRECISE_FROM:g} % of the value: "
                     f"{_listed(imprecise, whole)}")
    if fit:
        ratio = np.sqrt(np.mean(((fit.values - base.values) / motion.deviations)**2))
        notes.append(f"rehearsal: {fit.verdict}; root mean square of the errors in predicted deviations: {ratio:.3g} (1 on "
                     "average)")
    lines = table(part, [k for k, name in enumerate(part[0]) if name in _LEFT], _WIDEST)
    return "\n".join([f"{motion.model.name}: {len(base)} base parameters of {len(base.parameters.names)}, and their predicted "
                      "deviations", *lines, *_lines(notes, whole)])


def excitation_to_dict(motion: Excitation, fit: Identification | None = None) -> dict[str, Any]:
    """Return plain data for JSON: numbers at full precision. fit: of a rehearsal, whose deviations are `rehearsed`."""
    base, model = motion.base, motion.model
    out = parameters_to_dict(model, base, None)
    if fit:
        out["rehearsal"] = parameters_to_dict(model, fit.base, fit)
    for entry, deviation, relative in zip(out["base_parameters"], motion.deviations, motion.relative, strict=True):
        entry |= {"deviation": float(deviation), "relative_deviation": float(relative)}
    fourier = {} if motion.kind != "fourier" else {
        "center": dict(zip(model.q_names, motion.center.tolist(), strict=True)), "sine": motion.sine.tolist(),
        "cosine": motion.cosine.tolist()}
    return out | {"duration": motion.duration, "period": motion.period, "rate": motion.rate, "log_det": motion.log_det,
                  "condition": motion.condition, "optima": motion.optima.tolist(),
                  "kind": motion.kind, **fourier,
                  "noise": dict(zip(model.v_names, map(_finite, motion.noise), strict=True)),
                  "limits": [use._asdict() for use in motion.limits], "not_compared": list(motion.not_compared)}


# Plan of a run (dry run) -------------------------------------------------------------------------------------------------

def plan_text(plan: dict[str, Any]) -> str:
    """Return `Prepared.report` as text."""
    robot, joints, size = plan["robot"], plan["joints"], plan["bytes"]
    closed = f", {robot['constraint_rows']} constraint equations" if robot["constraint_rows"] else ""
    modes = {"prescribed": "prescribed", "driven": f"driven by {joints['law']}", "given_force": "with a given force",
             "free": "driven by the controller" if plan["sampling"] and plan["sampling"]["controller"] else "without force"}
    counts = [f"{len(joints[mode])} {description}" for mode, description in modes.items() if joints[mode]]
    integrator = dict(plan["integrator"])
    method = integrator.pop("method")
    options = ", ".join(f"{key} {value:g}" for key, value in integrator.items())
    rows = [["robot", f"{robot['name']} from {robot['file']}: nq {robot['nq']}, nv {robot['nv']}, {robot['base']} base{closed}"],
            ["joints", ", ".join(counts) or "none"],
            ["motion", f"{plan['duration']:g} s, {plan['rows']} rows, {steps_text(plan['steps'])}"],
            ["integrator", f"{method}: {options}; {plan['why']}"],
            ["size", f"about {size_text(size['memory'])} of memory, {size_text(size['disk'])} of disk"]]
    if plan["events"]:
        rows.insert(2, ["events", ", ".join(plan["events"])])
    if plan["sampling"]:
        rows.insert(-2, ["sampling", _sampling_text(plan["sampling"])])
    if plan["samples"]:
        rows.insert(-2, ["sensors", ", ".join(f"{name} ({count} samples)" for name, count in plan["samples"].items())])
    if plan["folder"] is not None:
        rows.append(["folder", f"{plan['folder']} would be written"])
    return "\n".join(table(rows, range(2)))


def _sampling_text(sampling: dict[str, Any]) -> str:
    """Return the times of a sampled controller, what it measures, and its parts as text."""
    parts = [f"each {sampling['interval']:g} s"]
    parts += [f"delay {sampling['delay']:g} s"] if sampling["delay"] else []
    parts += ["first-order hold"] if sampling["hold"] == "first" else []
    parts += [key for key in ("quantization", "noise") if sampling[key]]
    parts += [f"controller {sampling['controller']}"] if sampling["controller"] else []
    parts += [f"observer of {list_names(sampling['observer'], 4)}"] if sampling["observer"] else []
    return ", ".join(parts)


def steps_text(steps: int | None) -> str:
    """Return the number of steps as text. steps: None for an adaptive method."""
    return "steps chosen by error control" if steps is None else f"{steps} steps"


# Plan of a batch (dry run) -----------------------------------------------------------------------------------------------

def batch_text(report: dict[str, Any]) -> str:
    """Return `Batch.report` as text."""
    stored = f"; trajectories of {report['rows']} rows each" if report["trajectories"] else ""
    chunks = "1 chunk" if report["chunks"] == 1 else f"{report['chunks']} chunks of {report['runs_in_a_chunk']} runs"
    length = f"{report['rows']} rows"
    if report["job"] == SIMULATE:
        length = f"{steps_text(report['steps'])}, {length}"
    varied = (f"{name} ({key})" if name != key else name for name, key in report["parameters"].items())
    rows = [["  varied", ", ".join(varied)],
            ["  outputs", f"{', '.join(report['outputs']) or 'none'}{stored}"],
            ["  mode", f"{report['mode']}, {chunks}"],
            ["  first run", length],
            ["  disk", f"about {size_text(report['bytes'])} in {report['folder']}"]]
    return "\n".join([f"{report['runs']} runs of {report['robot']} ({report['scenario']})", *table(rows, range(2))])


# inverse kinematics -----------------------------------------------------------------------------------------------------

def reached_text(model: Model, solution: InverseKinematics) -> str:
    """Return a short text about configurations for targets."""
    count, reached = solution.reached.size, int(solution.reached.sum())
    errors = f"largest error {solution.position_error.max(initial=0.0):.2g} m, {solution.angle_error.max(initial=0.0):.2g} rad"
    subject = "target" if solution.reached.ndim == 0 else f"{reached} of {count} targets"
    verb = "reached" if reached or solution.reached.ndim else "not reached"
    return f"{model.name}: {subject} {verb}, {int(solution.iterations.sum())} iterations, {errors}"


def reached_to_dict(model: Model, solution: InverseKinematics) -> dict[str, Any]:
    """Return configurations for targets as plain data: lists over targets, or values of a single one."""
    q = [coordinates_by_joint(model, x, "q") for x in solution.q.reshape(-1, model.nq)]
    return {"robot": model.source, "q": q if solution.reached.ndim else q[0], "reached": solution.reached.tolist(),
            "tasks": list(solution.tasks), "position_error": solution.position_error.tolist(),
            "angle_error": solution.angle_error.tolist(), "closure_error": solution.closure_error.tolist(),
            "iterations": solution.iterations.tolist(), "searches": solution.searches.tolist(),
            "warnings": [warning.to_dict() for warning in solution.warnings]}


def write_reached(model: Model, solution: InverseKinematics, targets: Trajectory | None, path: str,
                  comments: dict[str, str], *, force: bool = False) -> None:
    """Write a configuration as `write_assemblies` does, or a trajectory with the times of the targets."""
    if targets is None:
        write_states(model, solution.q[None], None, path, "reached" if solution.reached else "nearest", comments, force=force)
        return
    folder = None if path == STDIO else Path(path).absolute().parent
    write_trajectory(path, trajectory_header(model, folder=folder) | comments, targets.t, motion_columns(model, q=solution.q),
                     force=force)
