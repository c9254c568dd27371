"""How many cores this process may use."""
from __future__ import annotations

import os
from functools import cache
from math import ceil
from pathlib import Path

from liedyn.errors import UsageError

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


@cache
def cores() -> int:
    """Cores that this process may use: those of its affinity, at most the quota of its container. LIEDYN_THREADS lowers it."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, quota(), _asked(os.environ.get("LIEDYN_THREADS", ""), available)))


def _asked(text: str, available: int) -> int:
    """What LIEDYN_THREADS asks for; empty: as if it were not set."""
    if not text.strip():
        return available
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise UsageError(f"LIEDYN_THREADS is not a number of threads; found {text[:40]!r}, expected a whole number from 1 on "
                         "(unset it for all cores)")
    return number


def quota(groups: Path = _GROUPS, own: Path = _OWN) -> int:
    """Cores that the control groups of a container allow in the mean, rounded up; very many where nothing limits them.

    Every group above limits too. A container that has no view of its own of the tree sees a path that is not there: its own
    group is then the root that it sees."""
    least = float(1 << 30)
    for line in _read(own).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        for root in [groups, groups / "unified"] if not controllers else [groups / controllers, groups / "cpu"]:
            place = root / path.lstrip("/")
            for group in [place, *place.parents]:
                least = min(least, _limit(group))
                if group == root:
                    break
    return ceil(least)


def _limit(group: Path) -> float:
    """Cores that one group allows: version 2 keeps "quota period" or "max period", version 1 a file for each, -1 for none."""
    words = _read(group / "cpu.max").split() or [_read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")]
    try:
        limit, period = float(words[0]), float(words[1])
    except (ValueError, IndexError):
        return float("inf")
    return limit / period if limit > 0 and period > 0 else float("inf")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):                 # no such file on this system, or not for us
        return ""
