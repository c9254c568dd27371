"""Figures 3 and 4 of a paper on recursive dynamics of higher order.

The paper: A. Ali, C. Gabellieri and A. Franchi, "Lie Group Formulation of Recursive Dynamics Algorithms of Higher Order for
Floating-Base Robots". This script computes the figures again.

    python configs/aerial_manipulator_paper.py [-o FOLDER] [--force] [--quick]
    liedyn inverse runs/aerial_manipulator_paper/reference.csv --order 5       # the same forces, base in body coordinates

Fig. 3: the aerial manipulator (a hexarotor with tilted propellers and two 3-joint arms, 12 DoF) on its reference. Inverse
dynamics to order 5, in the spatial coordinates of the paper, give wrench and torques and their time derivatives; forward
dynamics to order 5 turn these back into the motion, which is compared with the reference.
Fig. 4: cost against the number of bodies, cost against the order for 101 bodies, and automatic differentiation by CasADi with
and without elimination of common subexpressions. 3 minutes, most of them CasADi's. Needs the test extra, pip install '.[test]';
without CasADi alone, Fig. 4c is left out.

The text that we have of the paper lost its numbers: geometry, masses, reference and amplitudes are stand-ins, those of
tests/oracles/aerial_manipulator.json. The same motion as a scenario: configs/aerial_manipulator.yaml.

Source: AGF (27), (29), (30), Figures 2-4, Tables 3-4.
"""
from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from math import comb, pi
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "tests" / "support")]

import numpy as np  # noqa: E402

import liedyn as ld  # noqa: E402
from benchmarks import higher_order, measure  # noqa: E402
from liedyn.cli.console import Progress  # noqa: E402
from liedyn.errors import LiedynError  # noqa: E402
from liedyn.io.atomic_output import open_folder  # noqa: E402
from liedyn.io.trajectory_csv import write_trajectory  # noqa: E402
from liedyn.report.plots import palette, style  # noqa: E402
from liedyn.simulation.trajectory_columns import derivative_kind, motion_columns, trajectory_header  # noqa: E402

ROBOT = HERE.parent / "robots" / "hexarotor_arms.yaml"
MARK = "summary.json"                               # what tells such a folder from others
ORDER = 5
CIRCLE, YAW, YAW_RATE, HALF_PERIOD = 0.8, 0.5, 1.2, 5.0                          # rad/s, rad, rad/s, s
START = np.array([0.1, 0.2, -0.3, -0.1, 0.15, 0.25])                             # rad, joints of the left arm, then of the right
AMPLITUDE = np.array([0.6, -0.8, 0.7, -0.5, 0.9, 0.4])                           # rad


# the reference --------------------------------------------------------------------------------------------------------
def reference(t: np.ndarray, order: int = ORDER) -> tuple[np.ndarray, np.ndarray]:
    """q (N, 13) and v, a, … (N, order + 2, 12) in the paper's coordinates: the base's spatial twist, then the joints. Exact.

    p = (cos 0.8t, sin 0.8t, 2), yaw = 0.5 sin 1.2t, q_j = q0_j + A_j (1 - cos(pi t/5))/2; the twist is w = (0, 0, yaw'),
    v = p' - w x p: the velocity of the point of the base that passes the world's origin.
    """
    count = order + 2
    p = [np.stack([wave(t, CIRCLE, k), wave(t, CIRCLE, k, -pi / 2), 0 * t + 2 * (k == 0)], axis=1) for k in range(count + 1)]
    yaw = [YAW * wave(t, YAW_RATE, k, -pi / 2) for k in range(count + 1)]
    arms = [np.outer(-wave(t, pi / HALF_PERIOD, k), AMPLITUDE / 2) for k in range(count + 1)]
    q = np.zeros((len(t), 13))
    q[:, :3], q[:, 5], q[:, 6], q[:, 7:] = p[0], np.sin(yaw[0] / 2), np.cos(yaw[0] / 2), START + AMPLITUDE / 2 + arms[0]
    v = np.zeros((len(t), count, 12))
    for k in range(count):
        v[:, k, 2], v[:, k, 3:6], v[:, k, 6:] = yaw[k + 1], p[k + 1], arms[k + 1]
        for j in range(k + 1):
            turn = comb(k, j) * yaw[j + 1]
            v[:, k, 3] += turn * p[k - j][:, 1]
            v[:, k, 4] -= turn * p[k - j][:, 0]
    return q, v


def wave(t: np.ndarray, rate: float, k: int, phase: float = 0.0) -> np.ndarray:
    """k-th derivative of cos(rate t + phase)."""
    return rate**k * np.cos(rate * t + phase + k * pi / 2)


def there_and_back(model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wrench and torques with their derivatives (N, order + 1, 12) of a motion, and the motion that follows from them."""
    tau = ld.higher_order_inverse_dynamics(model, q, v, passive=False, base_frame="world")
    return tau, ld.higher_order_forward_dynamics(model, q, v[:, 0], tau, passive=False, base_frame="world")


# Fig. 3 ---------------------------------------------------------------------------------------------------------------
MOTION = (("base, angular", "rad", "ωx ωy ωz"), ("base, linear", "m", "vx vy vz"), ("left arm", "rad", "q₁ q₂ q₃"),
          ("right arm", "rad", "q₁ q₂ q₃"))
FORCES = (("base, moment", "N m", "mx my mz"), ("base, force", "N", "fx fy fz"), ("left arm, torque", "N m", "τ₁ τ₂ τ₃"),
          ("right arm, torque", "N m", "τ₁ τ₂ τ₃"))
PRIMES = ("", "′", "″", "‴", "⁗", "⁽⁵⁾")
COLOURS = (palette.BLUE, palette.ORANGE, palette.GREEN)
LEFT, PANEL_WIDTH, PANEL_HEIGHT, GAP_X, GAP_Y, TOP = 1.15, 2.6, 0.95, 0.72, 0.34, 0.2      # inches


def draw_motion(t, reference_a, returned, errors):
    """Fig. 3a: accelerations and their derivatives: the reference, over it what forward dynamics return, below the error."""
    figure = page("Fig. 3a: motion, and what forward dynamics return of it", "rate of the base's spatial twist, joint "
                  "accelerations, and their time derivatives; pale: reference, dashed: from inverse, then forward dynamics",
                  below=2.0)
    grid(figure, t, reference_a, MOTION, "a", 2, dashed=returned)
    axes = style.plain_axes(figure, LEFT, 0.55, figure.get_size_inches()[0] - LEFT - 1.2, 1.15)
    axes.set_xlim(*style.time_span(t))
    spans = np.array_split(np.arange(len(t)), min(len(t), 100))
    middle, shown = t[[span[len(span) // 2] for span in spans]], np.log10([errors[span].max(axis=0) for span in spans])
    axes.set_ylim(np.floor(shown.min()), np.ceil(shown.max()))
    levels = [y for y in range(-18, 1) if y % 2 == 0 and axes.get_ylim()[0] <= y <= axes.get_ylim()[1]]
    style.rulers(axes, 10, levels, "t [s]", y_labels=style.powers(levels))
    for k, colour in enumerate(palette.CURVES):
        axes.plot(middle, shown[:, k], color=colour, linewidth=1.2)
        axes.annotate(f"order {k}: {errors[:, k].max():.0e}", (1, 1), (8, -6 - 13 * k), xycoords="axes fraction",
                      textcoords="offset points", va="top", size=7.5, color=colour, weight="bold")
    style.heading(axes, "error of what is returned", "of the worst coordinate in 0.1 s, relative to the largest value of that "
                  "derivative; right: over all time")
    return figure


def draw_forces(t, tau):
    """Fig. 3b: spatial wrench of the base, torques, and their derivatives."""
    figure = page("Fig. 3b: wrench of the propellers and torques of the arms", "inverse dynamics of orders 0 to 5 along the "
                  "reference; the wrench in world axes about the world's origin", below=0.35)
    grid(figure, t, tau, FORCES, "τ", 0)
    return figure


def page(title, subtitle, below):
    return style.new_figure(LEFT + 4 * PANEL_WIDTH + 3 * GAP_X + 0.3, TOP + (ORDER + 1) * (PANEL_HEIGHT + GAP_Y) + below,
                            title, subtitle)


def grid(figure, t, x, columns, letter, power, dashed=None):
    """A row an order, a column a group of three coordinates of x (N, orders, 12); at order 0 the unit has s^-power."""
    height = figure.get_size_inches()[1] - 0.8                  # without the titles
    for k in range(x.shape[1]):
        for c, (name, unit, labels) in enumerate(columns):
            axes = style.plain_axes(figure, LEFT + c * (PANEL_WIDTH + GAP_X), height - TOP - PANEL_HEIGHT
                                    - k * (PANEL_HEIGHT + GAP_Y), PANEL_WIDTH, PANEL_HEIGHT)
            curves = x[:, k, 3 * c:3 * c + 3]
            low, high = curves.min(), curves.max()
            slack = 0.08 * max(high - low, 1e-3)
            axes.set_xlim(*style.time_span(t))
            axes.set_ylim(low - slack, high + slack)
            style.rulers(axes, 5, 3, "t [s]" if k == x.shape[1] - 1 else None)
            for j, colour in enumerate(COLOURS):            # equal curves show beside each other
                if dashed is None:
                    axes.plot(t, curves[:, j], color=colour, linewidth=2.4 - 0.5 * j)
                else:
                    axes.plot(t, curves[:, j], color=colour, alpha=0.4, linewidth=4.2 - 0.7 * j)
                    axes.plot(t, dashed[:, k, 3 * c + j], color=colour, linewidth=1.4, linestyle=(0, (3, 2)))
            words = [(label, colour, "bold") for label, colour in zip(labels.split(), COLOURS, strict=True)]
            style.heading(axes, name if k == 0 else "", rate_unit(unit, k + power), *(words if k == 0 else ()))
            if c == 0:
                axes.annotate(f"order {k}:  {letter}{PRIMES[k]}", (0, 0.5), (-52, 0), xycoords="axes fraction",
                              textcoords="offset points", ha="center", va="center", rotation=90, size=9,
                              weight="bold", color=palette.INK)


def rate_unit(unit: str, power: int) -> str:
    """The unit by the power of the second that belongs to a derivative."""
    return style.unit_text(unit) + ("" if power == 0 else "/s" if power == 1 else "/s" + raised(power))


def raised(x: int) -> str:
    return "".join("⁻" if digit == "-" else "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(x))


def figure_3(folder: Path, samples: int) -> np.ndarray:
    """Draws and writes Fig. 3; returns the largest relative error of each order."""
    model, t = ld.load(ROBOT), np.linspace(0, 2 * HALF_PERIOD, samples)
    q, v = reference(t)
    tau, a = there_and_back(model, q, v)
    errors = np.abs(a - v[:, 1:]).max(axis=2) / np.abs(v[:, 1:]).max(axis=(0, 2))
    save(draw_motion(t, v[:, 1:], a, errors), folder / "fig3a_motion")
    save(draw_forces(t, tau), folder / "fig3b_forces")
    columns = [(f"{what}.{name}", unit, x) for what, kind, rates in (("reference", "a", v[:, 1:]), ("returned", "a", a),
                                                                     ("force", "tau", tau))
               for name, unit, x in motion_columns(model, **by_rate(kind, rates))]
    header = trajectory_header(model, passive=False, folder=folder)
    write_trajectory(folder / "fig3.csv", header | {"coordinates of the base": "spatial twist, spatial wrench"}, t, columns)
    v[..., :6] = ld.body_twists(q[:, :7], v[..., :6])
    write_trajectory(folder / "reference.csv", header, t, motion_columns(model, q=q, v=v[:, 0], **by_rate("a", v[:, 1:])))
    return errors.max(axis=0)


def by_rate(kind: str, x: np.ndarray) -> dict[str, np.ndarray]:
    """{"a", "d1a", "d2a", …} of (N, orders, nv)."""
    return {derivative_kind(kind, k): x[:, k] for k in range(x.shape[1])}


# Fig. 4 ---------------------------------------------------------------------------------------------------------------
HOW = {"one": "one call a state", "batch": "in a batch"}
LINES = {("inverse", "one"): palette.BLUE, ("forward", "one"): palette.VERMILLION, ("inverse", "batch"): palette.SKY,
         ("forward", "batch"): palette.ORANGE}
OURS, PLAIN, ELIMINATED, AUTHORS = "ours", "CasADi", "CasADi with elimination", "the authors' program"
AUTOMATIC = {(OURS, "inverse"): palette.BLUE, (OURS, "forward"): palette.VERMILLION, (ELIMINATED, "inverse"): palette.GREEN,
             (ELIMINATED, "forward"): palette.PURPLE, (PLAIN, "inverse"): palette.INK, (PLAIN, "forward"): palette.FAINT}


class Cost(NamedTuple):
    """A row of cost.csv."""
    figure: str            # 4a, 4b, 4c
    program: str
    dynamics: str          # inverse, forward
    how: str               # one, batch
    bodies: int
    order: int
    us: float              # a state
    operations: int | str = ""
    built: float | str = ""      # s


def measure_growth(quick: bool, progress: Progress) -> Iterator[Cost]:
    """Ours against the number of bodies and against the order; the authors' as multiples of rnea's time here."""
    lengths, orders, bodies, few = higher_order.LENGTHS, range(13), 20, {}
    if quick:
        lengths, orders, bodies, few = (1, 2), range(3), 2, {"repeats": 3, "states": 8}
    for how, words in HOW.items():
        with progress.stage(f"cost against the number of bodies, {words}"):
            for what, times in higher_order.by_bodies(how, lengths, **few).items():
                yield from (Cost("4a", OURS, what, how, 1 + 5 * n, 3, us) for n, us in zip(lengths, times, strict=True))
        with progress.stage(f"cost against the order, {words}"):
            for what, times in higher_order.by_order(how, orders, bodies=bodies, **few).items():
                yield from (Cost("4b", OURS, what, how, 1 + 5 * bodies, k, us) for k, us in zip(orders, times, strict=True))
    if installed("pinocchio") and not quick:
        rnea = higher_order.rnea_microseconds()
        for what, multiples in higher_order.AUTHORS.items():
            yield from (Cost("4b", AUTHORS, what, "one", 101, k, rnea * x) for k, x in enumerate(multiples))


def measure_automatic(quick: bool, progress: Progress) -> Iterator[Cost]:
    """CasADi's derivatives beside ours."""
    if not installed("casadi"):
        print("CasADi is not installed: Fig. 4c is left out. pip install casadi, or all that tests and benchmarks need: "
              "pip install '.[test]'", file=sys.stderr)
        return
    bodies, few = (2, {"repeats": 3, "states": 8}) if quick else (20, {})
    for what, most in (("inverse", ORDER), ("forward", ORDER - 1)):                 # order 5 of forward: minutes, and gigabytes
        with progress.stage(f"automatic differentiation of {what} dynamics by CasADi"):
            for x in higher_order.against_casadi(what, range(3 if quick else most + 1), bodies=bodies, **few):
                program = ELIMINATED if x.eliminate else PLAIN
                yield Cost("4c", program, what, "one", 1 + 5 * bodies, x.order, x.theirs, x.operations, x.built)
                if x.eliminate:
                    yield Cost("4c", OURS, what, "one", 1 + 5 * bodies, x.order, x.us)


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def exponents(costs: list[Cost]) -> dict[str, float]:
    """Fitted growth: p of n^p, of (r + 1)^p from order 2 on where there are enough, and the factor an order of automatic
    differentiation without elimination."""
    fits = {}
    for what, how in LINES:
        rows = [x for x in costs if (x.program, x.dynamics, x.how) == (OURS, what, how)]
        bodies = [x for x in rows if x.figure == "4a"]
        orders = [x for x in rows if x.figure == "4b"]
        orders = orders[2:] if len(orders) > 4 else orders
        fits[f"bodies, {what}, {how}"] = higher_order.exponent([x.bodies for x in bodies], [x.us for x in bodies])
        fits[f"order, {what}, {how}"] = higher_order.exponent([x.order + 1 for x in orders], [x.us for x in orders])
    for program in (PLAIN, ELIMINATED):
        for what in higher_order.AUTHORS:
            times = [x.us for x in costs if (x.program, x.dynamics) == (program, what)]
            if times:
                fits[f"factor from order to order, {program}, {what}"] = float((times[-1] / times[0])**(1 / (len(times) - 1)))
    return fits


class Curve(NamedTuple):
    label: str
    colour: str
    rows: list[Cost]


def draw_costs(costs: list[Cost], fits: dict[str, float]):
    """Fig. 4 a, b, c: logarithmic scales, on which a power law is straight."""
    figure = style.new_figure(16.9, 4.7, "Fig. 4: cost of inverse and forward dynamics and of their time derivatives",
                              "a floating base with five branches of revolute bodies; one core, processor time, medians; dotted: "
                              "the authors', as a multiple of the time of Pinocchio's rnea here")
    of = {letter: [x for x in costs if x.figure == letter] for letter in ("4a", "4b", "4c")}
    ours = {letter: [Curve(f"{what}, {'one call' if how == 'one' else 'batch'}: {base}^{fits[f'{name}, {what}, {how}']:.2f}",
                           colour, [x for x in of[letter] if (x.program, x.dynamics, x.how) == (OURS, what, how)])
                     for (what, how), colour in LINES.items()]
            for letter, name, base in (("4a", "bodies", "n"), ("4b", "order", "(r+1)"))}
    theirs = [Curve(f"the authors', {what}", palette.FAINT, [x for x in of["4b"] if (x.program, x.dynamics) == (AUTHORS, what)])
              for what in higher_order.AUTHORS]
    automatic = [Curve(f"{program}, {what}", colour, [x for x in of["4c"] if (x.program, x.dynamics) == (program, what)])
                 for (program, what), colour in AUTOMATIC.items()]
    draw_panel(figure, 0.8, f"a   against the number of bodies n, order {of['4a'][0].order}", "bodies", ours["4a"],
               lambda x: np.log10(x.bodies), {str(n): np.log10(n) for n in (10, 20, 50, 100, 200, 500, 1000)})
    draw_panel(figure, 6.3, f"b   against the order r, {of['4b'][0].bodies} bodies", "order", ours["4b"] + theirs,
               lambda x: np.log10(x.order + 1), {str(r): np.log10(r + 1) for r in (0, 1, 2, 3, 5, 8, 12)})
    if of["4c"]:
        draw_panel(figure, 11.8, f"c   automatic differentiation, {of['4c'][0].bodies} bodies", "order", automatic,
                   lambda x: x.order, {str(r): r for r in range(ORDER + 1)})
    else:
        figure.text(0.73, 0.5, "c   needs CasADi: pip install casadi", size=9, color=palette.VERMILLION)
    return figure


def draw_panel(figure, left: float, title: str, name: str, curves: list[Curve], place: Callable[[Cost], float],
               ticks: dict[str, float]) -> None:
    """Curves of log10 us over place(cost), each named where it ends."""
    axes = style.plain_axes(figure, left, 0.65, 2.95, 3.0)
    curves = [curve for curve in curves if curve.rows]
    x = [[place(row) for row in curve.rows] for curve in curves]
    y = [[np.log10(row.us) for row in curve.rows] for curve in curves]
    low, high = min(map(min, x)), max(map(max, x))
    axes.set_xlim(low - 0.03 * (high - low), high + 0.03 * (high - low))
    axes.set_ylim(np.floor(10 * min(map(min, y))) / 10 - 0.1, np.ceil(10 * max(map(max, y))) / 10 + 0.2)
    levels = [np.log10(a) + b for b in range(-3, 6) for a in (1, 2, 5)]
    levels = [level for level in levels if axes.get_ylim()[0] <= level <= axes.get_ylim()[1]]
    shown = {label: at for label, at in ticks.items() if low - 1e-9 <= at <= high + 1e-9}
    style.rulers(axes, list(shown.values()), levels, name, x_labels=list(shown),
                 y_labels=[f"{10**level:.5g}" for level in levels])
    gap, at = 0.055 * np.diff(axes.get_ylim())[0], -np.inf
    for k in sorted(range(len(curves)), key=lambda k: y[k][-1]):
        curve, dotted = curves[k], curves[k].rows[0].program == AUTHORS
        axes.plot(x[k], y[k], color=curve.colour, linewidth=1.4, marker="o", markersize=3.5, linestyle=":" if dotted else "-",
                  markerfacecolor="white" if dotted else curve.colour)
        at = max(y[k][-1], at + gap)
        axes.annotate(curve.label, (1, at), (6, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points", va="center",
                      size=7.5, color=curve.colour, weight="bold", annotation_clip=False)
    style.heading(axes, "", "", (title, palette.INK, "bold"), ("µs a state", palette.FAINT, "normal"))


# all of it ------------------------------------------------------------------------------------------------------------
def make(folder: Path, quick: bool, progress: Progress) -> dict:
    os.environ["LIEDYN_THREADS"], where = "1", measure.pin_to_one_core()           # before the first batch: that decides
    with progress.stage("inverse and forward dynamics along the reference (the first run compiles the kernels)"):
        errors = figure_3(folder, 51 if quick else 1001)
    costs = [*measure_growth(quick, progress), *measure_automatic(quick, progress)]
    fits = exponents(costs)
    save(draw_costs(costs, fits), folder / "fig4_cost")
    with open(folder / "fig4.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([Cost._fields, *costs])
    summary = {"robot": ROBOT.name, "returned motion, largest relative error by order": errors.tolist(), "growth": fits,
               "machine": f"{platform.machine()}, Python {platform.python_version()}, {where}", "liedyn": ld.__version__,
               "quick": quick}
    (folder / MARK).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return summary


def save(figure, path: Path) -> None:
    for kind in ("png", "svg"):
        figure.savefig(f"{path}.{kind}", dpi=150)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Figures 3 and 4 of Ali, Gabellieri and Franchi, made anew.")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/aerial_manipulator_paper"), metavar="FOLDER")
    parser.add_argument("--force", action="store_true", help="replace an earlier result")
    parser.add_argument("--quick", action="store_true", help="few samples and small trees: figures to try, not to quote")
    options = parser.parse_args(arguments)
    try:
        with open_folder(options.output, mark=MARK, force=options.force) as part:
            summary = make(part, options.quick, Progress(delay=0))
    except LiedynError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for k, error in enumerate(summary["returned motion, largest relative error by order"]):
        print(f"order {k}: the motion comes back to {error:.1e}")
    for name, value in summary["growth"].items():
        print(f"{name}: {value:.2f}")
    print(f"wrote {options.output}: {', '.join(sorted(path.name for path in options.output.iterdir()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
