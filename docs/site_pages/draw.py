"""Draw the figures of the tutorials, next to their pages: python docs/site_pages/draw.py [NAME …]"""
from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import liedyn as ld
from liedyn.report.plots.figure_files import PlotFigure

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
BLUE, ORANGE, GREY = "#1f77b4", "#d9730d", "#8a8a8a"


def block_of(page: str, name: str) -> None:
    """Write the YAML of a tutorial to its file in the current folder."""
    text = (TUTORIALS / page).read_text(encoding="utf-8")
    Path(name).write_text(re.search(rf"```yaml\n(# {re.escape(name)}\n.*?)```", text, re.DOTALL)[1], encoding="utf-8")


def python_of(page: str, first: int, last: int) -> dict:
    """Names after running blocks of a tutorial's Python."""
    blocks = re.findall(r"```python\n(.*?)```", (TUTORIALS / page).read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {"np": np, "ld": ld}
    with redirect_stdout(None):
        for block in blocks[first:last]:
            exec(block, names)
    return names


def first_motion():
    block_of("first-motion.md", "first.yaml")
    run = ld.run_scenario("first.yaml")
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 3.6), sharex=True)
    above.plot(run.t, run.q[:, 0], color=BLUE, label="shoulder (free)")
    above.plot(run.t, run.q[:, 1], color=ORANGE, label="elbow (prescribed)")
    above.set_ylabel("angle [rad]")
    above.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8, frameon=False)
    below.plot(run.t, run.tau[:, 1], color=ORANGE)
    below.set(ylabel="elbow torque [N m]", xlabel="time [s]")
    return figure


def arm_torques():
    python_of("arm.md", 0, 1)
    from liedyn.cli.app import main

    main(["inverse", "move.csv", "--robot", "robots/ur5.yaml", "-o", "torques.csv", "-q"], standalone_mode=False)
    names = python_of("arm.md", 1, 3)
    figure, axes = plt.subplots(figsize=(7, 3))
    for k, name in enumerate(names["model"].joint_names[:4]):
        axes.plot(names["file"].t, names["file"].columns[f"tau.{name}"], color=f"C{k}", label=name.removesuffix("_joint"))
        axes.plot(names["file"].t, names["tau"][:, k], "--", color=f"C{k}")
    axes.plot([], [], "--", color=GREY, label="with 3 kg")
    axes.set(xlabel="time [s]", ylabel="torque [N m]")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, fontsize=8, frameon=False)
    return figure


def landing():
    block_of("floating-robot.md", "landing.yaml")
    run = ld.run_scenario("landing.yaml")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6))
    left.plot(run.t, run.q[:, 2], color=BLUE)
    left.set(xlabel="time [s]", ylabel="height of the body [m]")
    for foot, (color, label) in enumerate(((ORANGE, "front"), (ORANGE, None), (GREY, "hind"), (GREY, None))):
        right.plot(run.t, run.contacts.force[:, foot], color=color, label=label)
    right.set(xlabel="time [s]", ylabel="normal force of a foot [N]")
    right.legend(fontsize=8)
    return figure


def four_bar():
    block_of("mechanism.md", "crank.yaml")
    run = ld.run_scenario("crank.yaml")
    foot = ld.link_pose(run.model, run.q, "foot")[:, :3, 3]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6))
    left.plot(foot[:, 0], foot[:, 2], color=BLUE)
    left.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
    right.plot(run.t, run.tau[:, 0], color=ORANGE)
    right.set(xlabel="time [s]", ylabel="torque of the crank [N m]")
    return figure


def four_bar_sweep():
    from liedyn.report.plots.sweep_plot import draw_sweep
    sweep = ld.kinematic_sweep(ld.load("robots/four_bar.yaml"), "crank", np.linspace(0, 2 * np.pi, 181), driven=["rocker"])
    return draw_sweep(sweep, {"rocker": sweep.transmission_angle("rocker")})


def cart_pole():
    block_of("control.md", "balance.yaml")
    python_of("control.md", 0, 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6))
    for keys, label, style in (({}, "ideal", "-"), ({"saturate": {"cart": 5}}, "5 N at most", "--"),
                               ({"sampling": {"rate": 20, "delay": 0.03}}, "20 Hz, delay 30 ms", ":")):
        run = ld.run_scenario("balance.yaml", {"duration": 4, "output_step": 0.005, **keys})
        left.plot(run.t, run.q[:, 1], style, label=label, color=BLUE)
        right.plot(run.t, run.tau[:, 0], style, color=ORANGE)
    left.set(xlabel="time [s]", ylabel="angle of the pole [rad]")
    left.legend(fontsize=8)
    right.set(xlabel="time [s]", ylabel="force of the cart [N]", xlim=(0, 1.5))
    return figure


def rollouts():
    names = python_of("learning.md", 0, 2)
    figure, axes = plt.subplots(1, 2, figsize=(7, 2.6), sharey=True)
    for place, policy, title in zip(axes, (np.zeros(2), names["policy"]), ("without forces", "with the policy"), strict=True):
        run = ld.rollout(names["model"], names["q0"][:60], np.zeros(2), policy, dt=0.01, steps=120, every=4)
        place.plot(run.t, run.q[..., 1].T, color=BLUE, linewidth=0.6)
        place.set(xlabel="time [s]", title=title, ylim=(-3.5, 3.5))
    axes[0].set_ylabel("angle of the pole [rad]")
    return figure


def arm2r():
    block_of("teaching.md", "arm2r.yaml")
    model, angle = ld.load("arm2r.yaml"), np.linspace(-np.pi, np.pi, 121)
    q = np.stack([0 * angle, angle], axis=1)
    M, gravity = ld.mass_matrix(model, q), ld.gravity_force(model, q)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6))
    for i, j, style in ((0, 0, "-"), (0, 1, "--"), (1, 1, ":")):
        left.plot(angle, M[:, i, j], style, color=BLUE, label=f"M{i + 1}{j + 1}")
    left.set(xlabel="angle of the elbow [rad]", ylabel="mass matrix [kg m²]")
    left.legend(fontsize=8)
    right.plot(angle, gravity[:, 0], color=ORANGE, label="shoulder")
    right.plot(angle, gravity[:, 1], "--", color=ORANGE, label="elbow")
    right.set(xlabel="angle of the elbow [rad]", ylabel="gravity force [N m]")
    right.legend(fontsize=8)
    return figure


PICTURES: tuple[Callable, ...] = (first_motion, arm_torques, landing, four_bar, four_bar_sweep, cart_pole, rollouts, arm2r)


def main(names: list[str]) -> None:
    for draw in PICTURES:
        if not names or draw.__name__ in names:
            with tempfile.TemporaryDirectory() as folder, chdir(folder):
                for name in ("configs", "robots"):
                    Path(name).symlink_to(ROOT / name)
                figure = draw()
                if not isinstance(figure, PlotFigure):                # has its layout
                    figure.tight_layout()
                figure.savefig(TUTORIALS / f"{draw.__name__}.png", dpi=80)
                plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
