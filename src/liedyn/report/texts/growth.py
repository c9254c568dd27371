"""Stability of linear systems in words."""
from __future__ import annotations

from liedyn.analyse.linearization.linear_system import LinearSystem, Mode


def verdict(system: LinearSystem) -> str:
    """"stable", "neutral (bounded)", "drifting (grows like t)", "unstable" or "unstable (grows like t^3)"."""
    if system.stability == "neutral":
        return "neutral (bounded)"
    return f"{system.stability} ({growth_in_words(system.growth)})" if system.growth else system.stability


def growth_in_words(power: int) -> str:
    return "grows like t" + (f"^{power}" if power > 1 else "")


def chains_in_words(mode: Mode) -> str:
    """"Jordan chain of 4", or "Jordan chains of 4, 4, 2"."""
    return f"Jordan chain{'s' * (len(mode.chains) > 1)} of {', '.join(map(str, mode.chains))}"
