"""When the events of runs have happened, which decides whether they may happen again. Single runs are the case of one run."""
from __future__ import annotations

import numpy as np

from liedyn.io.scenarios.scenario import Event


class EventLedger:
    """Of runs with the same events. In all methods, `runs` is the index of a run or an array of indices.

    last_times      (runs, events) when each event happened last [s]; -inf: not yet
    short_flights   (runs, events) its impacts in a row that have followed at once
    """

    def __init__(self, events: tuple[Event, ...], count: int = 1):
        self._names = [event.name for event in events]
        self._columns = {name: k for k, name in enumerate(self._names)}
        self.last_times = np.full((count, len(events)), -np.inf)
        self.short_flights = np.zeros((count, len(events)), dtype=np.int64)

    def last_time(self, event: Event, runs=0):
        """When it happened last [s]; -inf: not yet."""
        return self.last_times[runs, self._columns[event.name]]

    def is_over(self, event: Event, runs=0, phase: str | None = None):
        """Whether it does not happen again, for good or in this phase."""
        return (event.once & np.isfinite(self.last_time(event, runs))) | (bool(event.phases) and phase not in event.phases)

    def is_too_soon(self, event: Event, t, runs=0):
        """Whether less time than its debounce has passed since it happened last."""
        return t - self.last_time(event, runs) < event.debounce

    def may_happen(self, event: Event, t, runs=0, phase: str | None = None):
        return ~(self.is_over(event, runs, phase) | self.is_too_soon(event, t, runs))

    def record(self, event: Event, t, runs=0) -> None:
        self.last_times[runs, self._columns[event.name]] = t

    def count_short_flight(self, event: Event, is_short, runs=0) -> None:
        """Count an impact that has followed at once, or begin anew."""
        k = self._columns[event.name]
        self.short_flights[runs, k] = np.where(is_short, self.short_flights[runs, k] + 1, 0)

    def n_short_flights(self, event: Event, runs=0):
        """Impacts in a row that have followed at once."""
        return self.short_flights[runs, self._columns[event.name]]

    def times_by_name(self, run: int = 0) -> dict[str, float]:
        """When the events of one run that have happened did so last [s]."""
        times = self.last_times[run]
        return {self._names[k]: float(times[k]) for k in np.flatnonzero(np.isfinite(times))}

    def state_dict(self) -> dict:
        return {"last_times": self.last_times, "short_flights": self.short_flights}

    def load_state_dict(self, state: dict) -> None:
        self.last_times[:], self.short_flights[:] = state["last_times"], state["short_flights"]
