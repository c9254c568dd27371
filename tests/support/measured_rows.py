"""Rows of a run that were not simulated, and what a sensor measures in them."""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from liedyn.integrators.run_state import Record
from liedyn.io.scenarios.scenario import Sensor
from liedyn.simulation.segment_problems import RunSegment
from liedyn.simulation.sensors import BoundSensor, MeasuredRows


def rows_of(model, q, v, a, tau=None, f_ext=None, multipliers=None, passive=True) -> MeasuredRows:
    """Return rows of a run with these arrays (N, …)."""
    forced = np.arange(0 if f_ext is None else len(model.link_names))
    problem = SimpleNamespace(model=model, stops=None, passive=passive, forced_links=forced, split_wrench=lambda F: (F, None))
    record = {name: None for name in Record._fields} | {"t": np.arange(len(q)), "q": q, "v": v, "a": a, "wrench": f_ext,
                                                        "tau": np.zeros_like(v) if tau is None else tau,
                                                        "multipliers": multipliers, "constraint_motion": np.zeros((len(q), 0))}
    return MeasuredRows(RunSegment(problem, Record(**record)), model)


def exact(rows, **keys):
    """Return the exact values (N, c) of a sensor."""
    empty = np.zeros(0)
    return BoundSensor(Sensor("s", **keys), empty, (), (), empty, empty, empty, empty, empty, empty).exact(rows)
