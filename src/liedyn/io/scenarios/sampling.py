"""A scenario's `sampling`: control laws are computed at sample times, and their torques are held in between."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from liedyn.errors import Place
from liedyn.io.scenarios.scenario import Rule
from liedyn.io.yaml_text import Node

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

    @property
    def interval(self) -> float:
        """[s]"""
        return self.period if self.rate is None else 1.0 / self.rate

    def time(self, k: int) -> float:
        """Of sample k [s]."""
        return k * self.period if self.rate is None else k / self.rate


def read_sampling(node: Node, duration: float, most: int) -> Sampling:
    """most: samples that a run may take."""
    from liedyn.io.scenarios.sampling_keys import QUANTIZATION, RATE, SAMPLING
    given = node.mapping(SAMPLING)
    chosen = [key for key in RATE if key in given]
    if len(chosen) != 1:
        raise node.problem("sampling takes exactly one of " + ", ".join(RATE), found=" and ".join(chosen) or "neither",
                           expected="rate: samples in a second, or period: seconds")
    finer = given["quantization"].mapping(QUANTIZATION) if "quantization" in given else {}
    resolutions = {key: _resolutions(finer[key]) for key in finer}
    found = Sampling(SAMPLING.value(given, "rate"), SAMPLING.value(given, "period"), SAMPLING.value(given, "delay", 0.0),
                     SAMPLING.value(given, "hold", "zero"), **resolutions, place=node.place)
    if duration / found.interval > most:
        raise given[chosen[0]].problem(f"about {duration / found.interval:.3g} samples in {duration:g} s",
                                       found=given[chosen[0]].shown(), expected=f"at most {most:g}",
                                       hint="--force-long or force_long=True allows more")
    return found


def _resolutions(node: Node) -> tuple[Rule, ...]:
    if node.kind == "mapping":
        return tuple(Rule(name, child.number(least=0), child.place) for name, child in node.value.items())
    return (Rule("*", node.number(least=0), node.place),)


def plain_sampling(sampling: Sampling) -> dict:
    """In the layout of the file."""
    when = {"period": sampling.period} if sampling.rate is None else {"rate": sampling.rate}
    resolutions = {key: {rule.pattern: rule.value for rule in rules} for key in MEASURED if (rules := getattr(sampling, key))}
    return {**when, "delay": sampling.delay, "hold": sampling.hold, **({"quantization": resolutions} if resolutions else {})}
