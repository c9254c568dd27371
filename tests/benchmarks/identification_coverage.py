"""Coverage of the intervals of `identify`, false alarms, and misses with wrong models, over many noisy recordings.

    PYTHONPATH=tests/support python tests/benchmarks/identification_coverage.py --seeds 1000
    PYTHONPATH=tests/support python tests/benchmarks/identification_coverage.py --robot ur5 --seeds 50 --encoder-noise 1e-4

Each robot moves once. Each seed has other noise of the torques: 2 % of the rms of each joint. With exact positions, velocities
and accelerations the regressor is the same for all seeds and is computed once; `--encoder-noise` adds noise to the positions,
from which all else is derived. Wrong models: Coulomb friction, backlash or a drift of the torques that the model lacks. The Go2
has a floating base, and a force-torque sensor there with noise of 2 %.
"""
from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

import liedyn as ld
from bridge import file_of
from liedyn.analysis import identification
from liedyn.dynamics.constraints.loop_reduction import LoopReduction, loop_reduction, projected
from liedyn.dynamics.inertial_parameters import joint_parameter_kinds

ROBOTS = Path(__file__).parents[2] / "robots"
NOISE = 0.02                                                 # of the rms torque of each joint
STEP = 0.01
FRICTION, BACKLASH, DRIFT = 0.1, 0.02, 0.2                   # of the rms torque; rad; of the rms torque, over the recording
QUANTILE = 1.959964
WRONG = ("friction", "backlash", "drift")


class Figure(NamedTuple):
    """Result for a robot: part of the errors within 95 % intervals, and of the seeds with the warning NOT RELIABLE."""

    robot: str
    error: str
    seeds: int
    coverage: float
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


def figures(names: tuple[str, ...] = NAMES, errors: tuple[str, ...] = ("", *WRONG), seeds: int = 1000,
            encoder_noise: float = 0.0, rows: int = 1000) -> Iterator[Figure]:
    """Yield the figures of each robot and error ("" for none)."""
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            motion = recording(robot_of(name), rows)
        for error in errors:
            yield figure(name, motion, error, seeds, encoder_noise)


def figure(name: str, motion: Recording, error: str, seeds: int, encoder_noise: float) -> Figure:
    """Return the figure of a robot and error."""
    exact = wrong_torques(motion, error)
    scores, alarms, cache = [], 0, {}

    def cached(function):
        def call(model, q, v, a, *args, **options):
            key = (function, id(model), q.tobytes(), a.tobytes(), str(args[1:] or sorted(options)))
            if key not in cache or options.get("f_ext") is not None:
                cache[key] = function(model, q, v, a, *args, **options)
            return cache[key]
        return call

    patches = [] if encoder_noise else [mock.patch.object(identification, each, cached(getattr(identification, each)))
                                        for each in ("inertial_regressor", "inverse_dynamics")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for patch in patches:
            patch.start()
        for seed in range(seeds):
            fit = fitted(motion, exact, np.random.default_rng(seed), encoder_noise,
                         without="friction" if error == "friction" else "")
            known = np.isfinite(fit.deviations)
            scores.append(np.abs((fit.values - fit.base.values) / fit.deviations)[known])
            alarms += any(warning.code in ("not-reliable", "not-physical") for warning in fit.warnings)
        for patch in patches:
            patch.stop()
    return Figure(name, error, seeds, float(np.mean(np.concatenate(scores) < QUANTILE)), alarms / seeds)


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
    options = parser.parse_args()
    errors = tuple("" if error == "none" else error for error in options.error or ("none", *WRONG))
    for row in figures(tuple(options.robot or NAMES), errors, options.seeds, options.encoder_noise):
        print(f"{row.robot:10} {row.error or 'complete':10} {row.seeds} seeds: {100 * row.coverage:.1f} % within 95 % intervals, "
              f"NOT RELIABLE in {100 * row.alarms:.1f} %", flush=True)


if __name__ == "__main__":
    main()
