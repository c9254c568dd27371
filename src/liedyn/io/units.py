"""Units of the columns of foreign files: their factors to SI, and the names of the units in our own files.

    deg/s -> rad/s,  rpm -> rad/s,  mm -> m,  N·m -> N m,  us -> s,  mA -> A
"""
from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_BASE = ("rad", "N", "m", "A", "s")                        # the order in which our own files write a product
_ANGLE, _FORCE, _LENGTH, _CURRENT, _TIME = ((1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 0, 1, 0), (0, 0, 0, 0, 1))
_NUMBER = (0, 0, 0, 0, 0)
_TORQUE, _SPEED, _MASS = (0, 1, 1, 0, 0), (1, 0, 0, 0, -1), (0, 1, -1, 0, 2)
_POWER = (0, 1, 1, 0, -1)
_TURN = 2.0 * math.pi


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: a value in SI is the number times `multiply`, divided by `divide`. exponents: those of rad, N, m, A, s.

    A division by 1000 rounds correctly, so 300 ms is the same number as 0.3 s; a product with 0.001 may differ in the last bit.
    """

    multiply: float
    divide: float
    exponents: tuple[int, ...]

    def in_si(self, values: Any) -> Any:
        """Return numbers of this unit in SI."""
        return values * self.multiply / self.divide

    def power(self, n: int) -> Unit:
        """Return the n-th power."""
        up, down = (self.multiply, self.divide) if n >= 0 else (self.divide, self.multiply)
        return Unit(up**abs(n), down**abs(n), tuple(n * k for k in self.exponents))

    def times(self, other: Unit) -> Unit:
        """Return the product."""
        return Unit(self.multiply * other.multiply, self.divide * other.divide, product(self.exponents, other.exponents))


def product(a: Iterable[int], b: Iterable[int], sign: int = 1) -> tuple[int, ...]:
    """Return the exponents of a product, or of a quotient for sign -1."""
    return tuple(i + sign * j for i, j in zip(a, b, strict=True))


_ROWS: tuple[tuple[str, float, float, tuple[int, ...]], ...] = (
    ("1", 1, 1, _NUMBER),
    ("rad radian radians", 1, 1, _ANGLE), ("mrad", 1, 1e3, _ANGLE), ("deg degree degrees °", math.pi / 180.0, 1, _ANGLE),
    ("rev turn turns", _TURN, 1, _ANGLE), ("rpm", _TURN, 60, _SPEED),
    ("m", 1, 1, _LENGTH), ("cm", 1, 1e2, _LENGTH), ("mm", 1, 1e3, _LENGTH), ("um µm μm", 1, 1e6, _LENGTH),
    ("in inch", 254, 1e4, _LENGTH),
    ("s sec", 1, 1, _TIME), ("ms", 1, 1e3, _TIME), ("us µs μs", 1, 1e6, _TIME), ("ns", 1, 1e9, _TIME), ("min", 60, 1, _TIME),
    ("h", 3600, 1, _TIME),
    ("N", 1, 1, _FORCE), ("mN", 1, 1e3, _FORCE), ("kN", 1e3, 1, _FORCE),
    ("Nm", 1, 1, _TORQUE), ("mNm", 1, 1e3, _TORQUE), ("Ncm", 1, 1e2, _TORQUE), ("Nmm", 1, 1e3, _TORQUE),
    ("kNm", 1e3, 1, _TORQUE),
    ("A", 1, 1, _CURRENT), ("mA", 1, 1e3, _CURRENT),
    ("kg", 1, 1, _MASS), ("g", 1, 1e3, _MASS), ("J", 1, 1, _TORQUE), ("kJ", 1e3, 1, _TORQUE),
    ("W", 1, 1, _POWER), ("mW", 1, 1e3, _POWER), ("kW", 1e3, 1, _POWER), ("% percent", 1, 1e2, _NUMBER))
UNITS = {name: Unit(multiply, divide, exponents) for names, multiply, divide, exponents in _ROWS for name in names.split()}
_FACTOR = re.compile(r"(?P<name>1|°|%|[^\W\d²³]+)(?:(?:\^|\*\*)?(?P<power>-?\d+)|(?P<superscript>[²³]))?")
_POWERS = {"²": 2, "³": 3}


def unit_of(text: str) -> Unit | None:
    """Return the unit of a text such as `deg/s^2`, `N m` or `N·m`; None if it is not known."""
    unit = UNITS["1"]
    for k, part in enumerate(text.split("/")):
        words = re.split(r"[ ·.]+|(?<!\*)\*(?!\*)", part.strip())
        for word in words:
            match = _FACTOR.fullmatch(word)
            if match is None or match["name"] not in UNITS:
                return None
            power = int(match["power"] or _POWERS.get(match["superscript"] or "", 1))
            unit = unit.times(UNITS[match["name"]].power(-power if k else power))
    return unit


# units that end a name, such as those of base_deg, vel_deg_per_s, PosDeg and force_Nm; others, as in q_min and v_in, are words
_AT_END = re.compile(r"""(?:[\W_]|(?<=[a-z\d])(?=[A-Z]))
                         (?P<unit>(?i:deg|degrees?|rad|radians?|mrad|rpm)|mm|cm|ms|us|ns|Nm|mNm|Nmm|Ncm|kN)
                         (?P<rate>(?:_?per_?|[_/])?(?:s|sec)(?:\^?(?P<power>2))?)?$""", re.VERBOSE)
_LOWEST_SIMILARITY = 0.75                                  # of a text to a unit from which it seems to be one


def unit_in_name(name: str) -> str:
    """Return the unit that ends a name of a column, such as "deg/s" of "elbow_deg_per_s"; empty if none does."""
    match = _AT_END.search(name)
    if match is None or not match.start():
        return ""
    unit = match["unit"] if match["unit"] in UNITS else match["unit"].lower()
    return f"{unit}/s^2" if match["power"] else f"{unit}/s" if match["rate"] else unit


def resembles_unit(text: str) -> bool:
    """Return whether a text is a unit, or a misspelt one, such as "degs" and "Grad/s"."""
    first = text.split("/")[0].strip().lower()
    return unit_of(text) is not None or bool(
        difflib.get_close_matches(first, [name for name in UNITS if len(name) > 2], 1, _LOWEST_SIMILARITY))


def unit_name(exponents: Iterable[int]) -> str:
    """Return the name of a unit in our own files: `rad/s^2`, `N m`, `kg m^2`; empty for a number."""
    powers = dict(zip(_BASE, exponents, strict=True))
    if powers["s"] == 2 * powers["N"] != 0:                # without times, masses are shorter
        powers = {"kg": powers["N"]} | powers | {"N": 0, "m": powers["m"] + powers["N"], "s": 0}
    above, below = ([f"{name}^{abs(n)}" if abs(n) > 1 else name for name, n in powers.items() if sign * n > 0]
                    for sign in (1, -1))
    return "/".join([" ".join(above) or "1", *below]) if above or below else ""


# exponents with a meaning of their own
NUMBER, TIME, CURRENT = _NUMBER, _TIME, _CURRENT
