"""The figures of docs/benchmarks/history.csv: for each machine, a table with a curve of each figure over the commits."""
from __future__ import annotations

import csv
import html
from pathlib import Path

HISTORY = Path(__file__).resolve().parents[1] / "benchmarks" / "history.csv"
_WIDTH, _HEIGHT, _MARGIN = 160, 28, 3


def history_page(path: Path = HISTORY) -> str:
    """The tables; a sentence if nothing was measured yet."""
    rows = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    return "\n".join(_machine(name, [row for row in rows if row["machine"] == name]) for name in machines) \
        or "No figures have been recorded yet.\n"


def _machine(name: str, rows: list[dict[str, str]]) -> str:
    lines = [f"### {html.escape(name)}\n", "| benchmark | µs | times the other library | over time | last measured |",
             "|---|---|---|---|---|"]
    for benchmark in dict.fromkeys(row["benchmark"] for row in rows):
        own = [row for row in rows if row["benchmark"] == benchmark]
        last, drawn = own[-1], curve([float(row["us"]) for row in own])
        lines.append(f"| {html.escape(benchmark)} | {last['us']} | {float(last['ratio']):.1f} | {drawn} | {last['date']}, "
                     f"`{last['commit']}` |")
    return "\n".join(lines) + "\n"


def curve(values: list[float]) -> str:
    """An SVG of values over their number, from zero to their maximum, with a dot at the last one."""
    step = (_WIDTH - 2 * _MARGIN) / max(len(values) - 1, 1)
    points = [(_MARGIN + k * step, _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * value / (max(values) or 1.0))
              for k, value in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    title = f"{len(values)} measurements: {', '.join(f'{value:g}' for value in values)} µs"
    return (f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{title}">'
            f'<polyline points="{line}" fill="none" stroke="currentColor"></polyline>'
            f'<circle cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="2.5" fill="currentColor"></circle></svg>')
