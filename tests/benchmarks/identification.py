"""Identification of a UR5 and a Panda from 10 s at 500 Hz, consistent parameters, masses, and a planned motion of a UR5."""
from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import liedyn as ld

NOISE = 0.05                                                 # of the rms torque of each joint
FILE_ERROR = 0.05                                            # standard deviation of the masses of the robot file


class Figure(NamedTuple):
    """Processor time [s], or an error [%], and what is asked."""

    what: str
    value: float
    asked: float
    unit: str = "s"


def processor_time(call: Callable[[], object], repeats: int) -> float:
    call()                                                   # compiles
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return statistics.median(times)


def recording(model: ld.Model, rows: int) -> dict[str, np.ndarray]:
    """Return a motion of 10 s with noisy torques."""
    rng, t = np.random.default_rng(0), np.linspace(0.0, 10.0, rows)
    w, phase = rng.uniform(0.5, 3.0, (5, model.nv)), rng.uniform(0.0, 6.0, (5, model.nv))
    waves = np.exp(1j * (t[:, None, None] * w + phase))
    q, v, a = (0.25 * (waves * (1j * w)**k).imag.sum(axis=1) for k in range(3))
    tau = ld.inverse_dynamics(model, q, v, a)
    return {"t": t, "q": q, "v": v, "a": a, "tau": tau + NOISE * tau.std(axis=0) * rng.standard_normal(tau.shape)}


def figures(rows: int = 5000, starts: int = 20, repeats: int = 5, seeds: int = 20) -> Iterator[Figure]:
    """Yield the figures: medians of repeated calls, and the error of masses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, limits in (("ur5", (0.5, 2.0)), ("panda", (np.inf, 2.0))):
            model = ld.load(f"robots/{name}.yaml")
            if model.nc:
                model = model.spanning_tree()
            data = recording(model, rows)
            t, q, tau = (data.pop(key) for key in ("t", "q", "tau"))
            yield Figure(f"identify, {name}, {rows} rows", processor_time(lambda model=model, t=t, q=q, tau=tau, data=data:
                         ld.identify(model, t, q, tau, **data), repeats), limits[0])
            fit = ld.identify(model, t, q, tau, **data)
            yield Figure(f"consistent parameters, {name}", processor_time(lambda fit=fit: ld.consistent_parameters(fit), repeats),
                         limits[1])
        model = ld.load("robots/ur5.yaml")
        yield Figure("excite, ur5, 10 s", processor_time(lambda: ld.excite(model, starts=starts), 1), 10.0)
        arm = ld.load("robots/iiwa.yaml")
        yield Figure("excite, iiwa, condition number", processor_time(
            lambda: ld.excite(arm, starts=max(starts // 6, 1), criterion="condition"), 1), 10.0)
        if seeds:
            model, t = ld.load("robots/panda.yaml").spanning_tree(), np.linspace(0.0, 10.0, rows)
            errors = mass_errors(model, t, *ld.excite(model, starts=max(starts // 5, 1)).at(t), seeds)
            yield Figure(f"masses, panda, planned motion, {rows} rows, noise of 5 %, median of {seeds} seeds and ten links",
                         100.0 * float(np.median(errors)), 1.2, "%")


def mass_errors(model: ld.Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, seeds: int) -> np.ndarray:
    """Return the relative errors (seeds, links) of masses from a motion, if the robot file is wrong by `FILE_ERROR`.

    The inertias are wrong in proportion. Links that do not move are not estimated.
    """
    names = {name for name in ld.inertial_parameters(model).names if name.startswith("mass.")}
    links = [link for link in model.description.links if f"mass.{link.name}" in names and link.mass]
    errors = np.empty((seeds, len(links)))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        factors = dict(zip((link.name for link in links), 1.0 + FILE_ERROR * rng.standard_normal(len(links)), strict=True))
        robot = model.with_changes(mass={link.name: factors[link.name] * link.mass for link in links},
                                   inertia={link.name: factors[link.name] * np.array(link.inertia) for link in links})
        tau = ld.inverse_dynamics(robot, q, v, a)
        tau += NOISE * np.sqrt(np.mean(tau**2, axis=0)) * rng.standard_normal(tau.shape)
        result = ld.consistent_parameters(ld.identify(model, t, q, tau, v=v, a=a), prior_weight="auto")
        estimates = dict(zip(result.names, result.values, strict=True))
        errors[seed] = [estimates[f"mass.{link.name}"] / (factors[link.name] * link.mass) - 1.0 for link in links]
    return np.abs(errors)
