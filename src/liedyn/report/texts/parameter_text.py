"""Base parameters and their estimates, as text for people, as plain data and as CSV."""
from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from pathlib import Path

from liedyn.analyse.identification.identify import RELIABLE, UNRELIABLE, Identification
from liedyn.dynamics.parameters.base_parameters import BaseParameters
from liedyn.io.csv import cell
from liedyn.io.output import open_output
from liedyn.report.texts.text_table import table

_TERMS, _NAMES = 3, 12                   # on a line for people
_WIDEST = 100_000                        # characters of a cell: all in one line, as programs that read it expect


def parameter_text(model, base: BaseParameters, fit: Identification | None, *, whole: bool = False) -> str:
    """A table: name, value, unit, what is regrouped; with a fit also estimate and standard deviation.

    whole: however long its lines become."""
    lines = [f"{model.name}: {len(base)} base parameters of {len(base.parameters.names)}, {model.base} base"]
    of_fit = ["estimate", "deviation", "relative", "scale error", "verdict"] if fit else []
    head = ["parameter", "robot file", *of_fit, "unit", "stands for"]
    rows = [[base.names[k], *figures, base.units[k], base.regrouping(k) if whole else _beginning(base.regrouping(k))]
            for k, figures in enumerate(_figures(base, fit))]
    lines += table([head, *rows], (0, len(head) - 2, len(head) - 1), _WIDEST)
    if base.unidentifiable:
        lines.append(f"without effect on the joint forces: {_listed(base.unidentifiable, whole)}")
    if fit:
        lines += _fit_text(model, fit, whole)
    return "\n".join(lines)


def weak_notes(base: BaseParameters) -> list[str]:
    """What the angles of the robot file let act that its makers did not mean to."""
    if not base.weak:
        return []
    return [f"{', '.join(base.weak[:4])}{', …' if len(base.weak) > 4 else ''} have less than 1e-4 of the effect of others, "
            "perhaps because angles in the robot file are rounded; --tolerance 1e-4 ignores them"]


def plain_parameters(model, base: BaseParameters, fit: Identification | None) -> dict:
    """For JSON: numbers at full precision, null for a deviation that is infinite."""
    listed = []
    for k, name in enumerate(base.names):
        row = base.matrix[k]
        one = {"name": name, "unit": base.units[k], "value": float(base.values[k]),
               "stands_for": {base.parameters.names[j]: float(row[j]) for j in row.nonzero()[0]}}
        if fit:
            one |= {"estimate": float(fit.values[k]), "deviation": _finite(fit.deviations[k]),
                    "relative_deviation": _finite(fit.relative[k]), "scale_error": _finite(fit.scale_errors[k]),
                    "verdict": fit.verdicts[k], "misfit": fit.misfits[k]}
        listed.append(one)
    out = {"robot": model.name, "base": model.base, "parameters": len(base.parameters.names), "base_parameters": listed,
           "condition": base.condition, "unidentifiable": list(base.unidentifiable), "weak": list(base.weak)}
    if fit:
        out["fit"] = {"rows": fit.rows, "condition": _finite(fit.condition), "verdict": fit.verdict, "premise": fit.premise,
                      "joints": [{name: _finite(x) if isinstance(x, float) else x for name, x in vars(joint).items()}
                                 for joint in fit.joints],
                      "residual": dict(zip(model.v_names, map(float, fit.residual), strict=True)),
                      "force": dict(zip(model.v_names, map(float, fit.force), strict=True)), "notes": list(fit.notes)}
    return out


def write_parameters(path: str | Path, base: BaseParameters, fit: Identification | None, *, force: bool = False) -> None:
    """CSV with the columns name, unit, value, (estimate, deviation, relative_deviation, scale_error, verdict,) stands_for; `-` is
    standard output. The deviation of what the motion does not excite is empty: a spreadsheet would take `inf` for a word."""
    with open_output(path, force=force) as file:
        writer = csv.writer(file, lineterminator="\n")
        of_fit = ["estimate", "deviation", "relative_deviation", "scale_error", "verdict"] if fit else []
        writer.writerow(["name", "unit", "value", *of_fit, "stands_for"])
        for k, name in enumerate(base.names):
            found = [repr(float(fit.values[k])), _cell(fit.deviations[k]), _cell(fit.relative[k]),
                     _cell(fit.scale_errors[k]), fit.verdicts[k]] if fit else []
            writer.writerow([cell(name), base.units[k], repr(float(base.values[k])), *found, cell(base.regrouping(k))])


def _figures(base: BaseParameters, fit: Identification | None) -> list[list[str]]:
    if fit is None:
        return [[f"{x:.6g}"] for x in base.values]
    return [[f"{x:.6g}", f"{y:.6g}", f"{s:.2g}" if math.isfinite(s) else "",
             f"{100 * ratio:.2g} %" if math.isfinite(ratio) else "",
             f"{scale:.2g}" if math.isfinite(scale) else "",
             verdict if verdict == RELIABLE else f"{verdict.upper()} (misfit at {misfit})" if misfit else verdict.upper()]
            for x, y, s, ratio, scale, verdict, misfit in zip(base.values, fit.values, fit.deviations, fit.relative,
                                                              fit.scale_errors, fit.verdicts, fit.misfits, strict=True)]


def _fit_text(model, fit: Identification, whole: bool) -> list[str]:
    lines = [f"fitted to {fit.rows} rows, condition {fit.condition:.3g}" if math.isfinite(fit.condition)
             else f"fitted to {fit.rows} rows, which do not excite all parameters"]
    rows = [[name, f"{r:.3g}", f"{100 * r / f:.2g} %" if f else "", f"{joint.noise:.2g}", f"{1 / joint.inflation:.2g}",
             f"{100 * joint.scale:.2g} %" if joint.scale < 1.0 else "no", "" if joint.explained else joint.candidate or "unknown"]
            for name, r, f, joint in zip(model.v_names, fit.residual, fit.force, fit.joints, strict=True)]
    head = ["joint", "residual force", "of its force", "noise", "independent", "scale tested to", "missing"]
    lines += table([head, *rows], (0, 6), _WIDEST)
    lines += [fit.verdict, fit.premise]
    doubtful = [name for name, verdict in zip(fit.names, fit.verdicts, strict=True) if verdict == UNRELIABLE]
    if doubtful:
        lines.append(f"NOT RELIABLE: {_listed(doubtful, whole)}")
    return lines


def _beginning(regrouping: str) -> str:
    """Its first terms, and how many more there are."""
    terms = re.split(r" (?=[+-] )", regrouping)
    if len(terms) <= _TERMS + 1:
        return regrouping
    return f"{' '.join(terms[:_TERMS])} … {len(terms) - _TERMS} more"


def _listed(names: Sequence[str], whole: bool) -> str:
    if whole or len(names) <= _NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMES])} … and {len(names) - _NAMES} more"


def _cell(x: float) -> str:
    return repr(float(x)) if math.isfinite(x) else ""


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
