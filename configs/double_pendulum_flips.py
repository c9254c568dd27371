"""When does a double pendulum flip over? One rollout from every pair of initial angles, each run stopped by an event.

    python configs/double_pendulum_flips.py [-o FOLDER] [--force] [--size N] [--duration T]

Both rods start at rest. A run ends when one of them first passes the upright position. Where 3 cos a + cos b > 2, for the angles
a and b of the rods with the vertical, the energy does not suffice for that; elsewhere the time depends on the initial angles in
an endlessly fine pattern. The folder takes a picture and the times as CSV. 160,000 runs of 20 s take ten seconds on two cores.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import liedyn as ld

ROBOT = Path(__file__).parents[1] / "robots" / "double_pendulum.yaml"
DT = 5e-3
FLIPS = {"upper flips": {"when": "abs(q(shoulder))", "value": np.pi, "direction": "rising", "do": "stop"},
         "lower flips": {"when": "abs(q(shoulder) + q(elbow))", "value": np.pi, "direction": "rising", "do": "stop"}}


def flip_times(model, angles: np.ndarray, duration: float) -> np.ndarray:
    """(N, N) [s]: of the upper rod at the angles of the rows, the lower one at those of the columns; NaN: it does not flip."""
    upper, lower = np.meshgrid(angles, angles, indexing="ij")
    q0, steps = np.stack([upper, lower - upper], axis=-1), round(duration / DT)
    return ld.rollout(model, q0, np.zeros(2), dt=DT, steps=steps, every=steps, events=FLIPS).stopped_at


def draw(angles: np.ndarray, times: np.ndarray, duration: float, path: Path) -> None:
    figure, degrees = Figure(figsize=(8, 7), layout="constrained"), np.degrees(angles)
    axes = figure.subplots()
    axes.set_facecolor("black")
    image = axes.pcolormesh(degrees, degrees, times.T, norm="log", cmap="plasma_r", vmin=0.1, vmax=duration, rasterized=True)
    axes.contour(degrees, degrees, (3 * np.cos(angles)[:, None] + np.cos(angles)).T, levels=[2.0], colors="white", linewidths=0.8)
    axes.set(xlabel="upper rod at the start [deg]", ylabel="lower rod at the start [deg]", aspect="equal",
             title=f"First flip of a double pendulum (black: none in {duration:g} s; inside the line: never)")
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if t <= duration]
    figure.colorbar(image, label="time of the first flip [s]", shrink=0.9, ticks=ticks, format="%g").minorticks_off()
    figure.savefig(path, dpi=150)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/double_pendulum_flips"))
    parser.add_argument("--force", action="store_true", help="replace an existing result")
    parser.add_argument("--size", type=int, default=400, help="angles of each rod, at least 2")
    parser.add_argument("--duration", type=float, default=20.0, help="of each run [s], at most 1000")
    given = parser.parse_args(arguments)
    if given.size < 2:
        parser.error(f"--size is too small; found {given.size}, expected at least 2")
    if not DT <= given.duration <= 1000.0:
        parser.error(f"--duration is out of range; found {given.duration:g}, expected {DT} to 1000 s")
    if given.output.exists() and not given.force:
        print(f"{given.output} exists (--force replaces it)", file=sys.stderr)
        return 2
    angles = np.linspace(-np.pi, np.pi, 2 * given.size + 1)[1::2]              # middles of equal parts
    times = flip_times(ld.load(ROBOT), angles, given.duration)
    given.output.mkdir(parents=True, exist_ok=True)
    upper, lower = np.meshgrid(angles, angles, indexing="ij")
    np.savetxt(given.output / "flips.csv", np.stack([upper.ravel(), lower.ravel(), times.ravel()], axis=1), delimiter=",",
               header="upper [rad],lower [rad],time [s]", comments="", fmt="%.9g")
    draw(angles, times, given.duration, given.output / "flips.png")
    print(f"{np.isfinite(times).sum()} of {times.size} pendulums flip within {given.duration:g} s; see {given.output}/flips.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
