"""The robot of the command `identify`: tables, plain data, and a folder with the robot file and the parameters."""
from __future__ import annotations

import io
import json
import math
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.analysis.consistent_parameters import ConsistentParameters, Validation
from liedyn.analysis.identified_robot import IdentifiedRobot
from liedyn.analysis.nonlinear_parameters import NONLINEAR_FIELDS, nonlinear_unit, values_in_file
from liedyn.arrays import Array
from liedyn.errors import LiedynWarning, escape_nonprintable
from liedyn.io.atomic_output import open_folder
from liedyn.model.model import Model
from liedyn.report.plots.figure_files import PlotFigure, save_figure, words_only
from liedyn.report.plots.joint_plots import draw_forces
from liedyn.report.result_summary import narrow, parameter_text, parameters_to_dict, table_lines
from liedyn.robot_files import Conversion, convert, write

MARK, ROBOT, REPORT = "parameters.json", "identified", "report.html"          # MARK identifies a folder of results
_SECOND_MOMENTS = ("hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")     # only in the whole table


def identified_text(result: IdentifiedRobot, *, whole: bool = False) -> str:
    """Return the tables of `parameters --from` of each recording, of all parameters, and of the test.

    whole: do not shorten tables.
    """
    parts = []
    for name, fit in zip(result.recordings, result.fits, strict=True):
        title = [f"{name}:"] if len(result.recordings) > 1 else []
        parts.append("\n".join([*title, parameter_text(fit.model, fit.base, fit, whole=whole)]))
    parts.append(_consistent_text(result.consistent, result.fits[0].model, whole))
    parts += [_validation_text(result, name, validation)
              for name, validation in zip(result.tested, result.validations, strict=True)]
    return "\n\n".join(parts)


def _consistent_text(consistent: ConsistentParameters, file: Model, whole: bool) -> str:
    rows = [["parameter", "robot file", "identified", "deviation", "from data", "unit"]]
    for name, x0, x, s, part, unit in zip(consistent.names, consistent.prior, consistent.values, consistent.deviations,
                                          consistent.data_share, consistent.units, strict=True):
        if whole or not name.startswith(tuple(f"{number}." for number in _SECOND_MOMENTS)):
            fixed = s == 0.0
            rows.append([name, f"{x0:.5g}", f"{x:.5g}", "fixed" if fixed else f"{s:.2g}",
                         "" if fixed else f"{100.0 * part:.0f} %", unit])
    units = dict(zip(consistent.model.v_names, consistent.model.v_units, strict=True))
    for kind, key in NONLINEAR_FIELDS.items():
        estimates: dict[str, tuple[float, float]] = getattr(consistent, key)
        names = [f"{kind}.{name}" for name in estimates]
        in_file = values_in_file(file, names)
        rows += [[name, f"{x0:g}", f"{x:.5g}", f"{s:.2g}", "100 %", nonlinear_unit(kind, units[name.partition(".")[2]])]
                 for name, x0, (x, s) in zip(names, in_file, estimates.values(), strict=True)]
    head = (f"consistent parameters: chi^2 {consistent.misfit:.3g} for {consistent.expected_misfit} base parameters, "
            f"prior weight {consistent.prior_weight:g}")
    printed = rows if whole else narrow(rows)
    omitted = [name for name in rows[0] if name not in printed[0]]
    columns = f", and the columns {', '.join(omitted)}" if omitted else ""
    notes = [] if whole else [f"--verbose also prints first and second moments of mass{columns}"]
    return "\n".join([head, *table_lines(printed), *notes])


def _validation_text(result: IdentifiedRobot, name: str, validation: Validation) -> str:
    units = result.model.tau_units
    rows = [["joint", "explained", "by robot file", "residual", "of robot file"]]
    rows += [[joint, _percent(x), _percent(y), _force(r, unit), _force(s, unit)] for joint, x, y, r, s, unit in zip(
        validation.joints, validation.explained, validation.explained_by_file, validation.residual, validation.residual_of_file,
        units, strict=True)]
    kind = "fit to" if name in result.recordings else "test on"
    return "\n".join([f"{kind} {name}, {validation.rows} rows: variance of the force that is explained", *table_lines(rows)])


def _percent(x: float) -> str:
    return f"{100.0 * x:.4g} %" if math.isfinite(x) else "not measured"


def _force(x: float, unit: str) -> str:
    return f"{x:.3g} {unit}" if math.isfinite(x) else ""


def identified_to_dict(result: IdentifiedRobot) -> dict[str, Any]:
    """Return plain data for JSON, at full precision: parameters with their covariance, fits, and tests."""
    consistent = result.consistent
    listed = [{"name": name, "unit": unit, "value": x, "deviation": s, "robot_file": x0, "data_share": part}
              for name, unit, x, s, x0, part in zip(consistent.names, consistent.units, *map(np.ndarray.tolist, (
                  consistent.values, consistent.deviations, consistent.prior, consistent.data_share)), strict=True)]
    return {"robot": result.model.name, "base": result.model.base, "recordings": list(result.recordings),
            "prior_weight": consistent.prior_weight, "misfit": consistent.misfit, "expected_misfit": consistent.expected_misfit,
            "parameters": listed,
            **{key: {name: {"value": x, "deviation": s} for name, (x, s) in getattr(consistent, key).items()}
               for key in NONLINEAR_FIELDS.values()},
            "covariance": consistent.covariance.tolist(),
            "fits": [parameters_to_dict(fit.model, fit.base, fit) for fit in result.fits],
            "validations": [_validation_to_dict(name, validation) | {"used": name in result.recordings}
                            for name, validation in zip(result.tested, result.validations, strict=True)],
            "warnings": [warning.to_dict() for warning in result.warnings]}


def _validation_to_dict(name: str, validation: Validation) -> dict[str, Any]:
    def by_joint(x: Array) -> dict[str, float | None]:
        return dict(zip(validation.joints, (float(value) if math.isfinite(value) else None for value in x), strict=True))

    return {"recording": name, "rows": validation.rows, "explained": by_joint(validation.explained),
            "explained_by_file": by_joint(validation.explained_by_file), "residual": by_joint(validation.residual),
            "residual_of_file": by_joint(validation.residual_of_file)}


def write_identified(result: IdentifiedRobot, folder: str | Path, *,
                     force: bool = False) -> tuple[list[Path], tuple[LiedynWarning, ...]]:
    """Write the robot file, parameters.json and report.html. Return the paths, and warnings about what the robot file lacks.

    The robot file is a URDF if the robot was read from one and URDF can describe it, else a robot YAML.
    """
    folder = Path(folder)
    converted, name, warnings = _converted(result.model, folder)
    with open_folder(folder, mark=MARK, force=force) as part:
        paths = write(converted, part / name)
        (part / MARK).write_text(json.dumps(identified_to_dict(result), indent=2, allow_nan=False) + "\n", encoding="utf-8",
                                 newline="\n")
        (part / REPORT).write_text(report_page(result), encoding="utf-8", newline="\n")
    return [*(folder / path.name for path in paths), folder / MARK, folder / REPORT], warnings


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 1100px; margin: 2em auto; padding: 0 1em }}
pre {{ font-size: 12px; line-height: 1.35; overflow-x: auto; background: #f6f6f6; padding: 0.8em }}
svg {{ max-width: 100%; height: auto }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def report_page(result: IdentifiedRobot) -> str:
    """Return a page with verdicts, warnings, measured and predicted forces, and all tables. It needs no other file."""
    lines = [f"{name}: {fit.verdict}" for name, fit in zip(result.recordings, result.fits, strict=True)]
    body = [_list_of("Verdict", lines), _list_of("Warnings", [str(warning) for warning in result.warnings])]
    for name, validation in zip(result.tested, result.validations, strict=True):
        kind = "used for the fit" if name in result.recordings else "not used for the fit"
        body.append(f"<h2>Forces of {escape(name)}, {kind}</h2>\n{_svg(draw_forces(validation, list(result.model.tau_units)))}")
    tables = "\n".join(map(escape_nonprintable, identified_text(result, whole=True).split("\n")))
    body.append(f"<h2>Parameters</h2>\n<pre>{escape(tables)}</pre>")
    return _PAGE.format(title=escape(f"Identification of {result.model.name}"), body="\n".join(body))


def _list_of(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    items = "\n".join(f"<li>{escape(escape_nonprintable(line))}</li>" for line in lines)
    return f"<h2>{title}</h2>\n<ul>\n{items}\n</ul>"


def _svg(figure: PlotFigure) -> str:
    """Return a figure as an element of a page."""
    file = io.BytesIO()
    with words_only():
        save_figure(figure, file, "svg")
    text = file.getvalue().decode("utf-8")
    return text[text.index("<svg"):]


def _converted(model: Model, folder: Path) -> tuple[Conversion, str, tuple[LiedynWarning, ...]]:
    """Return the text of the robot, its file name, and warnings."""
    source = (model.source or "").lower()
    if source.endswith((".urdf", ".xacro")):
        name = f"{ROBOT}.urdf"
        converted = convert(model, "urdf", name, folder)
        lost = [str(loss) for loss in converted.losses if loss.dynamics]
        if not lost:
            return converted, name, converted.warnings
        other = convert(model, "yaml", f"{ROBOT}.yaml", folder)
        message = f"the identified robot is written as robot YAML, since a URDF cannot describe {lost[0]}"
        return other, f"{ROBOT}.yaml", (LiedynWarning("written-differently", message), *other.warnings)
    converted = convert(model, "yaml", f"{ROBOT}.yaml", folder)
    return converted, f"{ROBOT}.yaml", converted.warnings
