"""Store the outputs of a fixed set of commands and public calls, and compare two stores.

    python tests/stored/outputs.py record build/before
    ... change the code ...
    python tests/stored/outputs.py record build/after
    python tests/stored/outputs.py compare build/before build/after --tolerance 1e-12

A change that only moves or renames leaves every number bit for bit. `--source` records another checkout.
Durations, versions and paths are left out; everything else that a person or a program can see counts.
"""
from __future__ import annotations

import csv
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
SHORT = ("-S", "duration=0.3")

# Scenarios: trees, loops, contacts, events, limits, each integrator, each control law.
SCENARIOS = {
    "aerial_manipulator": SHORT, "andrews": (), "bennett": SHORT, "bouncing_arm": ("-S", "duration=3"), "cart_pole": SHORT,
    "crane": SHORT, "delta": SHORT, "double_pendulum": ("-S", "duration=2"), "double_pendulum_dop853": ("-S", "duration=2"),
    "elastic_arm": SHORT, "engine": SHORT, "five_bar_swing": SHORT, "four_bar": SHORT, "gripper": SHORT, "hand": SHORT,
    "hexarotor_feedback": SHORT, "hopper": ("-S", "duration=1"), "humanoid_dive": SHORT, "panda_computed_torque": SHORT,
    "panda_hybrid": SHORT, "panda_on_ship": SHORT, "panda_task_space": SHORT, "pendulum_latch": ("-S", "duration=3"),
    "pendulum_throw": ("-S", "duration=2"), "quadruped_walks": ("-S", "duration=0.5"), "rolling_disc": SHORT,
    "slider_crank": SHORT, "stewart": SHORT, "stick_slip": (),
    "tennis_racket": SHORT, "top_nutation": SHORT, "ur5_motors": SHORT, "ur5_pick": SHORT, "ur5_sampled": SHORT,
}
METHODS = ("rk4", "dopri5", "dop853", "RK45", "DOP853", "Radau", "BDF", "LSODA", "rodas5p",
           "semi_implicit", "generalized_alpha", "variational")

# Commands on files of earlier cases: {name: (words, case whose folder it runs in)}.
COMMANDS = {
    "inverse": ("inverse runs/panda_hybrid/trajectory.csv -o out.csv", "simulate panda_hybrid"),
    "inverse order": ("inverse runs/panda_hybrid/trajectory.csv --order 2 -o order.csv", "simulate panda_hybrid"),
    "inverse wrenches": ("inverse runs/panda_hybrid/trajectory.csv --wrenches world -o wrenches.csv", "simulate panda_hybrid"),
    "forward": ("forward runs/panda_hybrid/trajectory.csv -o forward.csv", "simulate panda_hybrid"),
    "hybrid": ("hybrid runs/panda_hybrid/trajectory.csv --prescribed panda_joint[1-4] -o hybrid.csv", "simulate panda_hybrid"),
    "kinematics": ("kinematics runs/panda_hybrid/trajectory.csv --link panda_hand --jacobian --com --momentum --zmp -o k.csv",
                   "simulate panda_hybrid"),
    "derivatives": ("derivatives runs/double_pendulum/trajectory.csv --function forward -o d.csv", "simulate double_pendulum"),
    "derivatives parameters": ("derivatives runs/double_pendulum/trajectory.csv --wrt mass.* -o dm.csv",
                               "simulate double_pendulum"),
    "inverse smooth": (f"inverse {ROOT}/configs/ur5_encoders.csv --robot {ROOT}/robots/ur5.yaml --smooth auto -o s.csv", None),
    "inverse loops": ("inverse runs/four_bar/trajectory.csv -o loops.csv", "simulate four_bar"),
    "linearize": (f"linearize {ROOT}/configs/panda_hybrid.yaml --at 0.5 --no-plots", None),
    "linearize equilibrium": (f"linearize {ROOT}/configs/cart_pole.yaml --equilibrium --open-loop --inputs tau.cart "
                              "--no-plots", None),
    "parameters": (f"parameters {ROOT}/robots/ur5.yaml -o p.csv", None),
    "parameters floating": (f"parameters {ROOT}/robots/double_pendulum.yaml --base floating", None),
    "assemble": (f"assemble {ROOT}/robots/four_bar.yaml --q crank=1.2 --keep crank", None),
    "export": (f"export {ROOT}/robots/double_pendulum.yaml --function forward_dynamics -o fd.c", None),
    "info": (f"info {ROOT}/robots/panda.yaml", None),
    "info loops": (f"info {ROOT}/robots/stewart.yaml --json", None),
    "check": (f"check {ROOT}/robots/panda.yaml {ROOT}/robots/gripper.urdf", None),
    "convert": (f"convert {ROOT}/robots/double_pendulum.urdf -o robot.yaml", None),
    "convert urdf": (f"convert {ROOT}/robots/ur5.yaml -o robot.urdf", None),
    "batch": (f"batch {ROOT}/configs/sweeps/pendulum_release.yaml --csv -j 1 -S duration=0.5", None),
    "batch along": (f"batch {ROOT}/configs/sweeps/latch_times.yaml --csv -j 1", None),
    "template": ("template scenario", None),
    "schema": ("schema scenario", None),
    "dry run": (f"simulate {ROOT}/configs/panda_hybrid.yaml --dry-run", None),
    "unknown key": (f"simulate {ROOT}/configs/panda_hybrid.yaml -S integrater.step=1", None),
    "bad value": (f"simulate {ROOT}/configs/panda_hybrid.yaml -S duration=-1", None),
    "no file": ("simulate missing.yaml", None),
}
UNSTORED_KEYS = {"liedyn", "python", "packages", "seconds", "created", "machine"}       # of JSON files
UNSTORED_TEXT = re.compile(r"[\d.,]+ (?:m?s|min|us|µs) of comput\w+|compil\w+[^\n]*|(?:/[\w.@+-]+)+/"
                           r"|\b[\d.]+ s\b(?= (?:for|to) )")


def cases():
    for name, options in SCENARIOS.items():
        yield f"simulate {name}", ["simulate", f"{ROOT}/configs/{name}.yaml", "--no-plots", *options], None
    for method in METHODS:
        yield f"method {method}", ["simulate", f"{ROOT}/configs/double_pendulum.yaml", "--no-plots", "-S", "duration=0.5",
                                   "-S", f"integrator={{method: {method}}}"], None
    for name, (words, folder) in COMMANDS.items():
        yield name, words.split(), folder


@click.group()
def main():
    """Store outputs of commands and public calls, or compare two stores."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--source", default=ROOT, type=click.Path(path_type=Path), help="Checkout whose code runs. Default: this one.")
@click.option("--only", default="", help="Cases whose name contains this.")
def record(folder, source, only):
    """Run all cases and write what they print and write to FOLDER."""
    environment = os.environ | {"PYTHONPATH": str(source / "src"), "COLUMNS": "100"}
    for name, words, at in cases():
        if only not in name:
            continue
        place = folder / (at or name).replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([sys.executable, "-m", "liedyn", *words], cwd=place, env=environment,
                              capture_output=True, text=True)
        (place / f"{name.replace(' ', '_')}.output").write_text(
            f"exit status {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}", encoding="utf-8")
        click.echo(f"{name}: {done.returncode}")
    if only in "calls":
        subprocess.run([sys.executable, str(Path(__file__).with_name("calls.py")), str((folder / "calls.json").absolute())],
                       cwd=folder, env=environment, check=True)


@main.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@click.option("--tolerance", default=0.0, help="Allowed difference, relative to the largest value of a column.")
def compare(before, after, tolerance):
    """Print the differences between two stores; the exit status is 4 if there are any."""
    names = sorted({path.relative_to(root) for root in (before, after) for path in root.rglob("*") if path.is_file()})
    different = 0
    for name in names:
        if name.suffix not in (".output", ".csv", ".json", ".yaml", ".urdf", ".c", ".h", ".txt"):
            continue
        missing = [str(root) for root in (before, after) if not (root / name).exists()]
        found = [f"is missing in {missing[0]}"] if missing else list(differences(before / name, after / name, tolerance))
        different += bool(found)
        for text in found[:6]:
            click.echo(f"{name}: {text}")
    click.echo(f"{different} of {len(names)} files differ")
    sys.exit(4 if different else 0)


def differences(before: Path, after: Path, tolerance: float):
    """Return descriptions of the differences between two files."""
    if before.suffix == ".csv":
        columns, others = table_of(before), table_of(after)
        for name in {**columns, **others}:
            if name not in columns or name not in others:
                yield f"column {name} is only in one"
            else:
                yield from different_values(f"column {name}", columns[name], others[name], tolerance)
    elif before.suffix == ".json":
        tree, other = (dict(leaves(json.loads(path.read_text(encoding="utf-8")))) for path in (before, after))
        for name in {**tree, **other}:
            if name not in tree or name not in other:
                yield f"key {name} is only in one"
            else:
                yield from different_values(name, tree[name], other[name], tolerance)
    else:
        lines, others = (UNSTORED_TEXT.sub("", path.read_text(encoding="utf-8")).splitlines() for path in (before, after))
        if len(lines) != len(others):
            yield f"{len(lines)} lines, {len(others)} lines"
        for line, other in zip(lines, others, strict=False):
            if line != other:
                yield f"\n  - {line[:200]}\n  + {other[:200]}"


def table_of(path: Path) -> dict[str, list[str]]:
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    rows = [row for row in rows if row and not row[0].startswith("#")]
    return {name: [row[k] for row in rows[1:]] for k, name in enumerate(rows[0])} if rows else {}


def leaves(tree, place=""):
    """Return (key, list of values) of each leaf of a JSON tree; a list of numbers is one leaf."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key not in UNSTORED_KEYS:
                yield from leaves(value, f"{place}.{key}")
    elif isinstance(tree, list) and not all(isinstance(x, int | float | str) for x in tree):
        for k, value in enumerate(tree):
            yield from leaves(value, f"{place}[{k}]")
    else:
        yield place, [str(x) for x in tree] if isinstance(tree, list) else [str(tree)]


def different_values(name: str, values: list[str], others: list[str], tolerance: float):
    if len(values) != len(others):
        yield f"{name}: {len(values)} values, {len(others)} values"
        return
    pairs = [(x, y) for x, y in zip(values, others, strict=True) if UNSTORED_TEXT.sub("", x) != UNSTORED_TEXT.sub("", y)]
    if not pairs:
        return
    try:
        worst = max(abs(float(x) - float(y)) for x, y in pairs)
        scale = max(abs(float(x)) for x in values if math.isfinite(float(x or "nan")))
    except ValueError:
        yield f"{name}: {pairs[0][0][:150]!r} became {pairs[0][1][:150]!r}"
        return
    if not worst <= tolerance * scale:
        yield f"{name}: differs by {worst:.3g} of {scale:.3g}"



if __name__ == "__main__":
    main()
