"""A linear system for people: its modes as a table and as a picture."""
from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from liedyn.analyse.linearization.linear_system import LinearSystem, Mode, growth_in_words
from liedyn.report.pictures import style

_COLOURS = {"unstable": style.VERMILLION, "drifting": style.PURPLE, "neutral": style.ORANGE, "stable": style.BLUE}
_DECADES = 4                             # of the complex plane about zero
_MOST_ROWS, _NAMED = 30, 6               # coordinates of the map; eigenvalues with a name
_SIDE, _TOP, _LEFT, _GAP, _WORDS = 3.9, 1.15, 0.75, 1.75, 1.8        # inches


def draw_modes(system: LinearSystem, title: str = "") -> Figure:
    """Eigenvalues of the moving states in the complex plane, and which coordinates take part in each mode."""
    modes = system.modes
    names = _rows(system)
    right = 0.35 + max(2.0, 0.22 * len(modes))
    height = _TOP + max(_SIDE, 0.16 * len(names) + _WORDS) + 0.6
    figure = style.new_figure(_LEFT + _SIDE + _GAP + right, height, "Modes", title)
    for k, (word, colour) in enumerate(_COLOURS.items()):
        count = sum(mode.count for mode in modes if mode.stability == word)
        figure.text((_LEFT + 1.1 * k) / figure.get_figwidth(), 1 - 0.75 / height, f"{count} {word}", size=style.NAME,
                    color=colour if count else style.FAINT, weight="bold" if count else "normal", va="top")
    bottom = height - _TOP - _SIDE
    _draw_plane(style.plain_axes(figure, _LEFT, bottom, _SIDE, _SIDE), modes)
    if names:
        tall = min(height - _TOP - 0.5 - _WORDS, max(1.0, 0.26 * len(names)))
        wide = min(right - 0.35, 0.5 * len(modes))
        _draw_shares(style.plain_axes(figure, _LEFT + _SIDE + _GAP, height - _TOP - tall, wide, tall), modes, names)
    return figure


def _rows(system: LinearSystem) -> list[str]:
    """Coordinates in the robot's order; where there are many, those that take part most."""
    if not system.modes:
        return []
    order = [name for name in dict.fromkeys(state.partition(".")[2] for state in system.states)
             if name in system.modes[0].participation]
    kept = sorted(order, key=lambda name: -max(mode.participation[name] for mode in system.modes))[:_MOST_ROWS]
    return [name for name in order if name in kept]


class _Plane:
    """Both axes logarithmic either way from a linear middle, so that slow and fast modes are told apart."""

    def __init__(self, values: np.ndarray):
        parts = np.abs(np.concatenate([values.real, values.imag]))
        largest = parts.max(initial=0.0) or 1.0                    # modes at zero are exactly zero
        seen = parts[parts > largest * 10.0**-_DECADES]
        self.top = math.ceil(math.log10(largest * 1.2))
        least = math.floor(math.log10(seen.min() if len(seen) else largest))
        self.unit = 10.0 ** max(min(least, self.top - 2), self.top - _DECADES)
        self.end = self(10.0**self.top)

    def __call__(self, x):
        return np.sign(x) * np.log10(1.0 + np.abs(x) / self.unit)

    def ticks(self) -> tuple[list[float], list[str]]:
        first = round(math.log10(self.unit))
        sizes = [10.0**k for k in range(first, self.top + 1)]
        values = [-x for x in reversed(sizes)] + [0.0] + sizes
        crowded = self.top - first > 2                     # about zero
        return [float(self(x)) for x in values], ["" if crowded and abs(x) == sizes[0] else f"{x:g}" for x in values]


def _draw_plane(axes: Axes, modes: tuple[Mode, ...]) -> None:
    values = np.array([mode.eigenvalue for mode in modes] or [0j])
    plane = _Plane(values)
    end = 1.06 * plane.end
    left, right = (max(float(plane(x)) + 0.1 * end, 0.2 * end) for x in (-values.real.min(), values.real.max()))
    axes.set_xlim(-left, right)
    axes.set_ylim(-end, end)
    axes.axvspan(0, right, color="#FBEFE8", zorder=-2, linewidth=0)
    at, labels = plane.ticks()
    across = {x: label for x, label in zip(at, labels, strict=True) if -left <= x <= right}
    style.rulers(axes, list(across), at, "real part", x_labels=list(across.values()), y_labels=labels)
    axes.axvline(0, color=style.FAINT, linewidth=1.0, zorder=1)
    named: list[tuple[float, float]] = []
    for number, mode in enumerate(modes, 1):
        x, y = plane(mode.eigenvalue.real), plane(mode.eigenvalue.imag)
        for side in (1, -1) if mode.eigenvalue.imag else (1,):
            axes.plot([x], [side * y], marker="x", markersize=7, markeredgewidth=1.6, color=_COLOURS[mode.stability],
                      linestyle="none", label=f"mode {number}" if side == 1 else "_")
        if number <= _NAMED and all(math.hypot(x - a, y - b) > 0.06 * end for a, b in named):
            named.append((float(x), float(y)))
            style.words(axes, str(number), named[-1], (5, 4), "left", "baseline", color=style.INK)
    style.heading(axes, "Eigenvalues", "1/s; unstable to the right of the line, or in chains on it")
    style.words(axes, "imaginary part", (0, 0.5), (-42, 0), xycoords="axes fraction", rotation=90, color=style.INK)


def _draw_shares(axes: Axes, modes: tuple[Mode, ...], names: list[str]) -> None:
    shares = np.array([[mode.participation[name] for mode in modes] for name in names])
    axes.pcolormesh(shares, cmap=LinearSegmentedColormap.from_list("shares", ["#FFFFFF", style.BLUE]), vmin=0, vmax=1,
                    edgecolors=style.GRID, linewidth=0.5)
    axes.set_xlim(0, len(modes))
    axes.set_ylim(len(names), 0)
    for k, name in enumerate(names):
        style.words(axes, style.shortened(name, 22), (0, k + 0.5), (-4, 0), "right", color=style.INK, annotation_clip=False)
    every = -(-len(modes) // 40)
    for k in range(0, len(modes), every):
        for text, down, turn in ((str(k + 1), 4, 0), (_words(modes[k]), 17, 90)):
            style.words(axes, text, (k + 0.5, len(names)), (0, -down), va="top", rotation=turn,
                        color=_COLOURS[modes[k].stability], annotation_clip=False)
    style.heading(axes, "", "", ("Participation of joints in each mode", style.INK, "bold"))


def _words(mode: Mode) -> str:
    """What a person asks of a mode first: how fast it swings and how well that is damped, or how fast it dies away."""
    if mode.growth:
        swings = f"{mode.frequency:.3g} Hz, " if mode.eigenvalue.imag else ""
        return f"{swings}chain of {mode.chains[0]}, {growth_in_words(mode.growth)}"
    if mode.eigenvalue.imag:
        damping = 0.0 if mode.chains else mode.damping
        return f"{mode.frequency:.3g} Hz, damping {damping:.2g}"
    if mode.chains:
        return "stays"
    return f"{'decays' if mode.time_constant > 0 else 'grows'} in {abs(mode.time_constant):.3g} s"
