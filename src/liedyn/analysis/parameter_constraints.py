"""What is known about the parameters of a robot apart from recordings: known values, and equal or mirrored links."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.dynamics.inertial_parameters import LINK_PARAMETERS, link_columns
from liedyn.errors import UsageError, list_names, unknown_name
from liedyn.model.name_patterns import values_by_name

_AXES = "xyz"
_LEAST_DEVIATION = 1e-9      # characteristic unit: smaller standard deviations of known values would be rounding


class EqualLinks(NamedTuple):
    """Two links, by their first columns, with the same ten parameters: those of `link` are `signs` times those of `other`."""

    link: int
    other: int
    signs: Array


def prior_equations(names: Sequence[str], sizes: Array, estimated: Mask,
                    prior: Mapping[str, Sequence[float]]) -> tuple[Array, Array]:
    """Return rows (k, P) and right-hand sides (k,) of known values {name or pattern: (value, deviation)}, in deviations.

    sizes      (P,) characteristic units of the parameters
    estimated  (P,) bool: parameters that do not keep the values of the robot file

    Raises NameLookupError and UsageError.
    """
    values = values_by_name(prior, names, "parameter")
    if fixed := [name for name in values if not estimated[names.index(name)]]:
        raise UsageError(f"prior: {list_names(fixed, 6)} keep the values of the robot file, and are not estimated")
    rows, y = np.zeros((len(values), len(names))), np.zeros(len(values))
    for k, (name, pair) in enumerate(values.items()):
        column = names.index(name)
        try:
            value, deviation = map(float, pair)
        except (TypeError, ValueError):
            value = deviation = math.nan
        if not (math.isfinite(value) and _LEAST_DEVIATION * sizes[column] <= deviation < math.inf):
            raise UsageError(f"prior of {name} must be a value and its standard deviation > 0, got {pair!r}; fixed values are "
                             "those of the robot file")
        rows[k, column], y[k] = 1.0 / deviation, value / deviation
    return rows, y


def equal_links(names: Sequence[str], equal: Mapping[str, str | Sequence[str]]) -> list[EqualLinks]:
    """Return pairs of links with the same parameters in their frames: {link: other link} or {link: (other link, axis)}.

    With an axis x, y or z, one link is the mirror image of the other at the plane that is normal to this axis of its frame.

    Raises NameLookupError and UsageError.
    """
    links, pairs, roots = link_columns(names), list[EqualLinks](), dict[str, str]()
    for link, value in equal.items():
        pair = (value, "") if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else ()
        if len(pair) != 2 or pair[1] not in ("", *_AXES):
            raise UsageError(f"equal[{link!r}] must be a link, or a link and an axis x, y or z of its mirror image, got "
                             f"{value!r}")
        other, axis = pair
        for name in (link, other):
            if name not in links:
                raise unknown_name("moving link", name, list(links))
        first, second = (_root(name, roots) for name in (link, other))
        if first == second:
            raise UsageError(f"equal: links {link} and {other} are already equal by other pairs, or the same")
        roots[first] = second
        pairs.append(EqualLinks(links[link], links[other], _mirror_signs(axis)))
    return pairs


def prior_of_texts(texts: Sequence[str]) -> dict[str, Sequence[float]]:
    """Return known values of texts such as "mass.hand=0.73,0.01". Raise UsageError for others."""
    pairs = _pairs("prior", texts, "PARAMETER=VALUE,DEVIATION")
    try:
        return {name: [float(x) for x in value.split(",")] for name, value in pairs.items()}
    except ValueError:
        raise UsageError(f"prior {', '.join(texts)}: expected numbers in PARAMETER=VALUE,DEVIATION") from None


def equal_of_texts(texts: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return pairs of links of texts such as "left=right" and "left=right,y". Raise UsageError for others."""
    pairs = _pairs("equal", texts, "LINK=OTHER")
    return {link: other.split(",") if "," in other else (other, "") for link, other in pairs.items()}


def weights_of_texts(texts: Sequence[str], recordings: Sequence[str]) -> list[float] | None:
    """Return the weight of each recording, of texts such as "second.csv=0.25"; the others have 1. None without texts.

    Raises UsageError for other texts and recordings.
    """
    pairs = _pairs("weight", texts, "RECORDING=WEIGHT")
    for name, value in pairs.items():
        if name not in recordings:
            raise unknown_name("recording", name, recordings, of="the recordings are")
        try:
            float(value)
        except ValueError:
            raise UsageError(f"weight {name}={value}: expected a number > 0") from None
    return [float(pairs.get(name, 1.0)) for name in recordings] if pairs else None


def _pairs(option: str, texts: Sequence[str], form: str) -> dict[str, str]:
    """Return {name: value} of texts NAME=VALUE. Raise UsageError for others, and for a name that appears twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        if not name or not value:
            raise UsageError(f"{option} {text!r}: expected {form}")
        if name in pairs:
            raise UsageError(f"{option}: {name} appears twice")
        pairs[name] = value
    return pairs


def check_estimated(names: Sequence[str], pairs: Sequence[EqualLinks], estimated: Sequence[int]) -> None:
    """Raise UsageError for equal links that are not all estimated. estimated: first columns of links."""
    missing = [names[k].partition(".")[2] for pair in pairs for k in (pair.link, pair.other) if k not in estimated]
    if missing:
        raise UsageError(f"equal: {list_names(missing, 6)} keep the values of the robot file: estimate both links")


def groups_of(pairs: Sequence[EqualLinks]) -> list[dict[int, Array]]:
    """Return groups of equal links: {first column: signs (10,) relative to the first link of the group}.

    The pairs have no loops: see `equal_links`.
    """
    groups: list[dict[int, Array]] = []
    remaining = list(pairs)
    while remaining:
        group = {remaining[0].link: np.ones(len(LINK_PARAMETERS))}
        while near := [pair for pair in remaining if pair.link in group or pair.other in group]:
            for pair in near:
                known, new = (pair.link, pair.other) if pair.link in group else (pair.other, pair.link)
                group[new] = pair.signs * group[known]
            remaining = [pair for pair in remaining if all(pair is not each for each in near)]
        groups.append(group)
    return groups


def _root(name: str, roots: Mapping[str, str]) -> str:
    while name in roots:
        name = roots[name]
    return name


def _mirror_signs(axis: str) -> Array:
    """Return the signs (10,) of the parameters of a mirror image: -1 for odd powers of the axis in a first or second moment."""
    powers = [name.removeprefix("h").removeprefix("I") if name != LINK_PARAMETERS[0] else "" for name in LINK_PARAMETERS]
    return np.array([-1.0 if axis and text.count(axis) % 2 else 1.0 for text in powers])
