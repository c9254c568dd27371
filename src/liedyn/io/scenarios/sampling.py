"""A scenario's `sampling`: control laws are computed at sample times, and their torques are held in between."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from liedyn.errors import Place
from liedyn.io.scenarios.scenario import Rule

LEAST_PERIOD = 1e-12             # s
MEASURED = "q", "v", "tau"
HOLDS = "zero", "first"


@dataclass(frozen=True, slots=True)
class Sampling:
    """When a sampled controller acts, and how exactly.

    rate        [Hz], or None and
    period      between samples [s]
    delay       from a sample to the torque that is computed from it [s]
    hold        of order `zero`: torques are constant between samples; `first`: they go on as between the last two
    q, v, tau   resolutions by joint of what is measured and put out [rad | m, their rates, N m | N]; without one it is exact
    function    (t, q, v) -> torques, added to those of the laws; given from Python only
    """

    rate: float | None = None
    period: float | None = None
    delay: float = 0.0
    hold: str = "zero"
    q: tuple[Rule, ...] = ()
    v: tuple[Rule, ...] = ()
    tau: tuple[Rule, ...] = ()
    function: Callable | None = field(default=None, compare=False)
    place: Place = field(default=Place(), compare=False)

    def __reduce__(self):
        """Without the function, which may have no name to be found by."""
        return type(self), (*(getattr(self, one.name) for one in fields(self) if one.name not in ("function", "place")), None,
                            self.place)

    @property
    def interval(self) -> float:
        """[s]"""
        return self.period if self.rate is None else 1.0 / self.rate

    def time(self, k: int) -> float:
        """Of sample k [s]."""
        return k * self.period if self.rate is None else k / self.rate
