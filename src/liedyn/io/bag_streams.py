"""Streams of samples of a ROS bag, and their rows at common times.

A stream has the samples that are published together: of a topic, of some joints of a topic, or of one transform. Nothing is
resampled unless it is requested. Gaps, irregular steps and jumps of the clock are reported.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.errors import LiedynWarning, Place, TrajectoryError, list_names
from liedyn.model.spatial import full_turns

_GAP = 1.7               # of the typical step: longer steps are gaps. A lost message doubles a step; less than 0.7 is jitter
_JITTER = 0.1            # of the typical step: maximum standard deviation of regular steps
_CLOCK = 0.5             # of a gap between stamps: where the recorder received the messages within less time, the clock jumped
_MIN_STEPS = 5           # minimum number of steps that have a typical step
_NORM = 1e-3             # error of the norm of a quaternion: that of numbers with four digits
_ROUNDING = 4e-10        # error of the norm of a quaternion with ten digits, which needs no scaling
_NAMED = 4               # maximum number of streams in a message


class BagReport:
    """Errors and warnings about a bag."""

    def __init__(self, path: str):
        self.path = path
        self.warnings: list[LiedynWarning] = []

    def error(self, message: str, key: str | None = None, **details: Any) -> TrajectoryError:
        """Return an error about the bag."""
        return TrajectoryError(message, place=Place(self.path, None, key), **details)

    def add_warning(self, code: str, message: str) -> None:
        """Add a warning about the bag."""
        self.warnings.append(LiedynWarning(code, message, place=Place(self.path)))


@dataclass(frozen=True, eq=False)
class Stream:
    """Samples of a topic or of a part of it.

    name      for messages
    topic     from which it is read
    stamps    (N,) times of the headers [ns]
    log       (N,) times of the recorder [ns]
    columns   {name: (N,)}
    pose      beginning of the names of columns px … qw of a pose; empty without one
    constant  whether it is one sample, of a static transform
    """

    name: str
    topic: str
    stamps: Integers
    log: Integers
    columns: dict[str, Array]
    pose: str = ""
    constant: bool = False

    def rows(self, index: Any) -> Stream:
        """Return the stream of some of the samples."""
        return replace(self, stamps=self.stamps[index], log=self.log[index],
                       columns={name: x[index] for name, x in self.columns.items()})

    @property
    def period(self) -> float:
        """The typical step [s], half the median of two steps, so that steps that alternate have it, too; 0 with fewer rows."""
        return float(np.median(self.stamps[2:] - self.stamps[:-2])) / 2e9 if len(self.stamps) > 2 else 0.0

    @property
    def description(self) -> str:
        """The name, the number of messages and the rate."""
        rate = f" at {1 / self.period:.4g} Hz" if self.period > 0 else ""
        return f"{self.name} ({len(self.stamps)} messages{rate})"


def checked_order(stream: Stream, report: BagReport) -> Stream:
    """Return the stream without messages that repeat the one before. Raise if times do not increase."""
    steps = np.diff(stream.stamps)
    if (steps < 0).any():
        k = int(np.argmax(steps < 0)) + 1
        raise report.error("time stamps decrease: messages are out of order, or a clock was set back",
                           f"message {k + 1} of {stream.name}", found=f"{-steps[k - 1] / 1e9:.9g} s before message {k}",
                           expected="increasing stamps", hint="--log-times (or log_times=True) uses the times of the recorder")
    table = np.column_stack(list(stream.columns.values())) if stream.columns else np.zeros((len(stream.stamps), 0))
    equal = np.concatenate([[False], steps == 0])
    same = np.concatenate([[False], ((table[1:] == table[:-1]) | (np.isnan(table[1:]) & np.isnan(table[:-1]))).all(axis=1)])
    if (equal & ~same).any():
        k = int(np.argmax(equal & ~same))
        raise report.error("two different messages have the same time", f"message {k + 1} of {stream.name}",
                           found=f"the time of message {k}", expected="increasing times")
    if equal.any():
        report.add_warning("repeated-messages",
                           f"repeated messages of {stream.name} are not read: {int(equal.sum())}")
    return stream.rows(~equal)


def with_unit_norm(stream: Stream, report: BagReport) -> Stream:
    """Return the stream of a pose with quaternions of unit norm. Raise for those that are far from it."""
    parts = [f"{stream.pose}.{part}" for part in ("qx", "qy", "qz", "qw")]
    quaternions = np.column_stack([stream.columns[part] for part in parts])
    norms = np.linalg.norm(quaternions, axis=1)
    errors = np.abs(norms - 1.0)
    if errors.max() > _NORM:
        k = int(errors.argmax())
        raise report.error("an orientation is not of unit norm", f"message {k + 1} of {stream.name}",
                           found=f"|q| = {norms[k]:.6g}", expected="1")
    if errors.max() <= _ROUNDING:
        return stream
    report.add_warning("quaternion-scaled", f"orientations of {stream.name} were scaled to unit norm; the largest error was "
                f"{errors.max():.2g}")
    scaled = quaternions / norms[:, None]
    return replace(stream, columns=stream.columns | {part: scaled[:, k] for k, part in enumerate(parts)})


# Common times -----------------------------------------------------------------------------------------------------------

def merged_streams(streams: Sequence[Stream], report: BagReport, *, interpolate: bool) -> tuple[Integers, dict[str, Array]]:
    """Return times (N,) [ns] and the columns of all streams at these times.

    The times are those within the common interval, which must be equal. With `interpolate` they are those of the first stream.
    """
    begin, end = max(stream.stamps[0] for stream in streams), min(stream.stamps[-1] for stream in streams)
    if begin > end:
        raise report.error("the topics have no common time interval", found=_listing(streams),
                           expected="topics that were recorded at the same time",
                           hint="do the publishers use one clock? See --log-times (or log_times=True)")
    common = [stream.rows((stream.stamps >= begin) & (stream.stamps <= end)) for stream in streams]
    first, omitted = common[0], [len(whole.stamps) - len(part.stamps) for whole, part in zip(streams, common, strict=True)]
    different = [whole for whole, part in zip(streams, common, strict=True) if not np.array_equal(part.stamps, first.stamps)]
    if different and not interpolate:
        raise report.error("messages have different times", found=_listing([streams[0], *different]), expected="equal stamps",
                           hint=f"--interpolate (or interpolate=True) interpolates at the times of {first.name}")
    if different:
        verb = "is" if len(different) == 1 else "are"
        report.add_warning("interpolated",
                    f"{_listing(different)} {verb} interpolated linearly at the times of {streams[0].description}")
        omitted = omitted[:1]
        if not len(first.stamps):
            raise report.error(f"no message of {first.name} is within the time of all topics", found=_listing(streams),
                               expected="topics that were recorded at the same time")
    if any(omitted):
        report.add_warning("rows-omitted",
                           f"messages before or after the common interval of the topics are not read: {sum(omitted)}")
    columns: dict[str, Array] = {}
    for whole, part in zip(streams, common, strict=True):
        columns |= part.columns if np.array_equal(part.stamps, first.stamps) else _interpolated(whole, first.stamps, report)
    return first.stamps, columns


def _listing(streams: Sequence[Stream]) -> str:
    return list_names([stream.description for stream in streams], _NAMED)


def _interpolated(whole: Stream, times: Integers, report: BagReport) -> dict[str, Array]:
    """Return the columns at times [ns], interpolated linearly; orientations along the shortest rotation.

    Positions of joints that jump by full turns are unwrapped. Whether they are angles is not known here; a length that changes by
    2 pi m between two messages is not to be expected.
    """
    from scipy.spatial.transform import Rotation, Slerp

    first, last = np.searchsorted(whole.stamps, times[0], "right") - 1, np.searchsorted(whole.stamps, times[-1])
    stream = whole.rows(slice(first, last + 1))
    t, at = stream.stamps - times[0], times - times[0]
    turns = {name: full_turns(x) for name, x in stream.columns.items() if name.startswith("q.") and not stream.pose}
    jumps = [f"{name} ({n} times)" for name, x in turns.items() if (n := np.count_nonzero(np.diff(x)))]
    if jumps:
        report.add_warning("angles-unwrapped", f"angles of {stream.name} that jump by 2 pi were unwrapped to interpolate them: "
                           f"{list_names(jumps, _NAMED)}")
    columns = {name: np.interp(at, t, x - turns.get(name, 0.0)) for name, x in stream.columns.items()}
    parts = [f"{stream.pose}.{part}" for part in ("qx", "qy", "qz", "qw")]
    if stream.pose and len(t) > 1:
        quaternions = Slerp(t, Rotation.from_quat(np.column_stack([stream.columns[part] for part in parts])))(at).as_quat()
        columns |= {part: quaternions[:, k] for k, part in enumerate(parts)}
    return columns


def composed_poses(poses: Sequence[Array]) -> Array:
    """Return the product (N, 7) of transforms (N, 7) of position and quaternion x y z w, from the outermost one."""
    from scipy.spatial.transform import Rotation

    product = poses[0]
    for pose in poses[1:]:
        rotation = Rotation.from_quat(product[:, 3:])
        orientation = rotation * Rotation.from_quat(pose[:, 3:])
        product = np.hstack([product[:, :3] + rotation.apply(pose[:, :3]), orientation.as_quat()])
    return product


# Times of a stream ------------------------------------------------------------------------------------------------------

def sampling_warnings(stream: Stream, start: int, source: str) -> list[LiedynWarning]:
    """Return warnings about gaps, irregular steps and jumps of the clock. start: time of the first row [ns]."""
    steps = np.diff(stream.stamps) / 1e9
    if len(steps) < _MIN_STEPS:
        return []
    period, warnings = stream.period, []
    gaps = steps > _GAP * period
    jumps = gaps & (np.diff(stream.log) / 1e9 < _CLOCK * steps)
    def longest(steps_of_kind: Mask) -> str:
        k, n = int(np.argmax(np.where(steps_of_kind, steps, 0.0))), int(steps_of_kind.sum())
        return (f"{f'{n} steps, the longest of' if n > 1 else 'a step of'} {steps[k]:.4g} s at t = "
                f"{(stream.stamps[k] - start) / 1e9:.6g} s instead of {period:.4g} s")

    if jumps.any():
        warnings.append(LiedynWarning("clock-jump", f"stamps of {stream.name} jump while the recorder received messages without "
                                      f"a gap: {longest(jumps)}", place=Place(source)))
    if (gaps & ~jumps).any():
        warnings.append(LiedynWarning("time-gaps", f"messages of {stream.name} are missing: {longest(gaps & ~jumps)}",
                                      place=Place(source)))
    regular = steps[~gaps]
    if len(regular) >= _MIN_STEPS and (deviation := float(np.std(regular))) > _JITTER * period:
        percent = 100 * deviation / period
        warnings.append(LiedynWarning("time-jitter", f"steps between messages of {stream.name} are irregular: "
                                      f"{regular.min():.4g} to {regular.max():.4g} s, standard deviation {percent:.0f} % of "
                                      f"{period:.4g} s",
                                      place=Place(source)))
    return warnings
