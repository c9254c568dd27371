"""Identification of a UR5 and a Panda from 10 s at 500 Hz, consistent parameters, and a planned motion of a UR5."""
from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import liedyn as ld

NOISE = 0.05                                                 # of the rms torque of each joint


class Figure(NamedTuple):
    """Processor time [s], and what is asked."""

    what: str
    seconds: float
    asked: float


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


def figures(rows: int = 5000, starts: int = 20, repeats: int = 5) -> Iterator[Figure]:
    """Yield the figures: medians of repeated calls."""
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
