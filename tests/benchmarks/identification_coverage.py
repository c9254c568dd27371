"""Coverage of the intervals of `identify`, false alarms, and misses with wrong models, over many noisy recordings.

    PYTHONPATH=tests/support python tests/benchmarks/identification_coverage.py --seeds 1000
    PYTHONPATH=tests/support python tests/benchmarks/identification_coverage.py --robot ur5 --seeds 50 --encoder-noise 1e-4
    PYTHONPATH=tests/support python tests/benchmarks/identification_coverage.py --seeds 1000 --append seeds.csv

Each robot moves once. Each seed has other noise of the torques: 2 % of the rms of each joint. What is the same for all seeds is
computed once: the base parameters and, with exact positions, velocities and accelerations, the regressor, the closed positions
of loops and their projection. `--encoder-noise` adds noise to the positions, from which all else is derived. Neither intervals
nor the warning NOT RELIABLE depend on the smallest wrong scale of the torques that would be seen (`JointFit.scale`) and on
warnings about probable causes, which are not computed. Errors of a robot's parameters are correlated, so the standard deviation
of a coverage is that of the mean over seeds. `--append` writes one row per seed to a file, and omits the seeds that the file
contains. Wrong models: Coulomb friction, backlash or a drift of the torques that the model lacks. The Go2 has a floating base,
and a force-torque sensor there with noise of 2 %.
"""
from __future__ import annotations

import argparse
import csv
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

import liedyn as ld
from bridge import file_of
from liedyn.analysis import identification, weighted_least_squares
from liedyn.dynamics.constraints.loop_reduction import LoopReduction, loop_reduction, projected
from liedyn.dynamics.inertial_parameters import joint_parameter_kinds

ROBOTS = Path(__file__).parents[2] / "robots"
NOISE = 0.02                                                 # of the rms torque of each joint
STEP = 0.01
FRICTION, BACKLASH, DRIFT = 0.1, 0.02, 0.2                   # of the rms torque; rad; of the rms torque, over the recording
QUANTILE = 1.959964
WRONG = ("friction", "backlash", "drift")


class Seed(NamedTuple):
    """Result for one recording: how many errors are within 95 % intervals, and whether a warning is NOT RELIABLE."""

    robot: str
    error: str
    seed: int
    covered: int
    parameters: int
    alarm: int


class Figure(NamedTuple):
    """Result for a robot: part of the errors within 95 % intervals, its deviation, and part of the seeds with the warning."""

    robot: str
    error: str
    seeds: int
    coverage: float
    deviation: float
    alarms: float


def robot_of(name: str) -> ld.Model:
    """Return the robot."""
    match name:
        case "go2":
            model = ld.load(file_of("go2.urdf"), base="floating")
        case "talos arm":
            model = ld.load(file_of("talos_left_arm.urdf"))
        case _:
            model = ld.load(ROBOTS / f"{name}.yaml")
    return model.spanning_tree() if name == "panda" else model


NAMES = ("ur5", "panda", "go2", "four_bar", "talos arm")
# what is the same for all seeds: of the model, and of exact states
FIXED = ((identification, "base_parameters"), (identification, "inertial_regressor"), (identification, "inverse_dynamics"),
         (identification, "projection_at"), (LoopReduction, "closed_positions"))


class Recording(NamedTuple):
    """Exact states of a motion, and its generalized forces. f_ext: of a sensor at the base of a floating robot, or None."""

    model: ld.Model
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    base_wrench: np.ndarray | None


def recording(model: ld.Model, rows: int) -> Recording:
    """Return a motion of sines of all coordinates about the neutral configuration."""
    rng, t = np.random.default_rng(0), STEP * np.arange(rows)
    w, phase, size = rng.uniform(0.5, 6.0, (5, model.nv)), rng.uniform(0.0, 6.0, (5, model.nv)), rng.uniform(0.1, 0.3, (5, 1))
    x, rate, rate2 = (np.sum(size * w**k * np.sin(w * t[:, None, None] + phase + 0.5 * np.pi * k), axis=1) for k in range(3))
    if model.nc:
        return _loop_recording(model, loop_reduction(model), t, x, rate, rate2)
    start = np.broadcast_to(model.neutral(), (rows, model.nq))
    q = ld.integrate(model, start, x)
    v, a = rate, rate2
    if model.base == "floating":
        v, a = ld.motion_of(model, ld.trajectory_of(model, t, q))[2:4]
    tau, wrench = ld.inverse_dynamics(model, q, v, a), None
    if model.base == "floating":
        wrench, tau = tau[:, :6].copy(), tau * (np.arange(model.nv) >= 6)
    return Recording(model, t, q, v, a, tau, wrench)


def _loop_recording(model: ld.Model, reduction: LoopReduction, t: np.ndarray, x: np.ndarray, rate: np.ndarray,
                    rate2: np.ndarray) -> Recording:
    """Return a motion whose independent coordinates follow sines about the assembled configuration."""
    independent, q = np.flatnonzero(reduction.independent), np.empty((len(t), model.nq))
    current = ld.assemble(model).q
    start = current[independent] - x[0, independent]
    for k in range(len(t)):
        current = current.copy()
        current[independent] = start + x[k, independent]
        current = q[k] = reduction.closed_positions(current[None])[0]
    q, v, a = reduction.closed(q, rate, rate2)
    tau = projected(reduction.projection(q), ld.inverse_dynamics(model.spanning_tree(), q, v, a))
    return Recording(model, t, q, v, a, tau, None)


def wrong_torques(motion: Recording, error: str) -> np.ndarray:
    """Return torques that the model does not explain."""
    tau, size = motion.tau, np.sqrt(np.mean(motion.tau**2, axis=0))
    if error == "friction":
        return tau + FRICTION * size * np.tanh(motion.v / 0.02)          # fitted without friction
    if error == "drift":
        return tau + DRIFT * size * (motion.t / motion.t[-1])[:, None]
    if error == "backlash":
        play = 0.5 * BACKLASH * np.tanh(motion.v / 0.02) * (size > 0.0)
        tree = motion.model.spanning_tree()
        change = ld.inverse_dynamics(tree, ld.integrate(tree, motion.q, play), motion.v, motion.a)
        change -= ld.inverse_dynamics(tree, motion.q, motion.v, motion.a)
        return tau + change * (size > 0.0)
    return tau


def runs(names: tuple[str, ...] = NAMES, errors: tuple[str, ...] = ("", *WRONG), seeds: int = 1000, encoder_noise: float = 0.0,
         rows: int = 1000, known: Iterable[Seed] = ()) -> Iterator[Seed]:
    """Yield the results of each robot and error ("" for none), sorted by these. known: results that are not repeated."""
    results = {(row.robot, row.error, row.seed): row for row in known}
    for name, error in itertools.product(names, errors):
        motion = None
        with warnings.catch_warnings(), ExitStack() as stack:
            warnings.simplefilter("ignore")
            for seed in range(seeds):
                if (name, error, seed) in results:
                    yield results[name, error, seed]
                    continue
                if motion is None:
                    motion = recording(robot_of(name), rows)
                    exact = wrong_torques(motion, error)
                    for module, each in FIXED[:1] if encoder_noise else FIXED:
                        stack.enter_context(mock.patch.object(module, each, cached(getattr(module, each))))
                    stack.enter_context(mock.patch.object(weighted_least_squares, "_detectable_scale", return_value=np.inf))
                    stack.enter_context(mock.patch.object(identification, "_cause_warnings", return_value=[]))
                fit = fitted(motion, exact, np.random.default_rng(seed), encoder_noise,
                             without="friction" if error == "friction" else "")
                scores = np.abs((fit.values - fit.base.values) / fit.deviations)[np.isfinite(fit.deviations)]
                alarm = any(warning.code in ("not-reliable", "not-physical") for warning in fit.warnings)
                yield Seed(name, error, seed, int(np.count_nonzero(scores < QUANTILE)), len(scores), int(alarm))


def cached(function: Callable) -> Callable:
    """Return the function with a memory of results, except of those for external wrenches."""
    results = {}

    def call(*args: object, **options: object) -> object:
        if options.get("f_ext") is not None:
            return function(*args, **options)
        key = tuple(x.tobytes() if isinstance(x, np.ndarray) else str(x) for x in (*args, *sorted(options.items())))
        if key not in results:
            results[key] = function(*args, **options)
        return results[key]
    return call


def figures(rows: Iterable[Seed]) -> Iterator[Figure]:
    """Yield the figures of results that are sorted by robot and error."""
    for (name, error), group in itertools.groupby(rows, key=lambda row: row[:2]):
        covered, parameters, alarms = np.array([row[3:] for row in group], dtype=float).T
        coverage = covered.sum() / parameters.sum()
        deviation = np.std(covered - coverage * parameters) / parameters.mean() / np.sqrt(len(covered))
        yield Figure(name, error, len(covered), float(coverage), float(deviation), float(alarms.mean()))


def fitted(motion: Recording, exact: np.ndarray, rng: np.random.Generator, encoder_noise: float,
           without: str) -> ld.Identification:
    """Return the fit of a noisy recording. without: kind of joint parameters that is not estimated."""
    model = motion.model
    noise = NOISE * np.sqrt(np.mean(exact**2, axis=0)) * rng.standard_normal(exact.shape)
    options = {"v": motion.v, "a": motion.a}
    if without:
        options["joints"] = [kind for kind in joint_parameter_kinds(model, True, None) if kind != without]
    if motion.base_wrench is not None:
        size = NOISE * np.sqrt(np.mean(motion.base_wrench**2, axis=0))
        measured = motion.base_wrench + size * rng.standard_normal(motion.base_wrench.shape)
        options["f_ext"] = {model.joints[0].child: measured}
    q = motion.q
    if encoder_noise:
        q = ld.integrate(model, q, encoder_noise * rng.standard_normal(motion.v.shape))
        del options["v"], options["a"]
    return ld.identify(model, motion.t, q, exact + noise, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--encoder-noise", type=float, default=0.0, metavar="RAD")
    parser.add_argument("--robot", action="append", choices=NAMES)
    parser.add_argument("--error", action="append", choices=("none", *WRONG))
    parser.add_argument("--append", metavar="CSV")
    options = parser.parse_args()
    errors = tuple("" if error == "none" else error for error in options.error or ("none", *WRONG))
    known = read(Path(options.append)) if options.append else set()
    rows = runs(tuple(options.robot or NAMES), errors, options.seeds, options.encoder_noise, known=known)
    for row in figures(appended(rows, Path(options.append), known) if options.append else rows):
        print(f"{row.robot:10} {row.error or 'complete':10} {row.seeds} seeds: {100 * row.coverage:.1f} % (deviation "
              f"{100 * row.deviation:.1f} %) within 95 % intervals, NOT RELIABLE in {100 * row.alarms:.1f} %", flush=True)


def read(path: Path) -> set[Seed]:
    """Return the results in a file."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {Seed(robot, error, *map(int, numbers)) for robot, error, *numbers in csv.reader(file)}


def appended(rows: Iterable[Seed], path: Path, known: set[Seed]) -> Iterator[Seed]:
    """Yield results, and append those that are not known to a file."""
    for row in rows:
        if row not in known:
            with path.open("a", newline="") as file:
                csv.writer(file).writerow(row)
        yield row


if __name__ == "__main__":
    main()
