"""Trajectory files: comma-separated columns over time, with `# key: value` comments first.

    # robot: ../robots/arm.yaml
    t[s],q.elbow[rad],v.elbow[rad/s],tau.elbow[N m]
    0.0,0.1,0.0,2.5

Columns bind by name, in any order. This module checks neither what the columns mean nor whether they fit a robot.
`io.csv_table` reads and writes the text. `io.column_map` gives foreign columns these names and units.
"""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import add, mul, sub, truediv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from liedyn.arrays import Array, Integers
from liedyn.errors import ComputationError, LiedynWarning, Place, TrajectoryError, UsageError, list_names, warn
from liedyn.immutable import Immutable
from liedyn.io.atomic_output import STDIO, check_output, open_output
from liedyn.io.column_map import (
    AppliedMap,
    BoundColumn,
    MapArgument,
    bind_map,
    columns_option,
    is_motion_column,
    map_file,
    read_column_map,
)
from liedyn.io.csv_table import CsvTable, column_title, read_table, title_cell, write_table
from liedyn.io.recorded_paths import relative_path, text_digest
from liedyn.io.ros_bag import BagTable, is_bag, read_bag
from liedyn.io.units import unit_of
from liedyn.public_calls import explained

if TYPE_CHECKING:
    import pandas

LARGEST_TRAJECTORY = 1_000_000_000      # bytes: a million rows of 50 columns; reading takes some eight times this memory
_EPOCH = 1e8                            # s, 3 years: larger times are those of a calendar
_OPERATIONS = {"+": add, "-": sub, "*": mul, "/": truediv}
MAY_BE_EMPTY = ("zmp.x", "zmp.y")       # columns that are not defined in some rows: NaN, and an empty cell of the file
# the same, of a driven coordinate at its dead centre, and of sensors without a sample
MISSING = "missing"                     # comment of files with empty cells in columns of the motion
_BEGIN_OF_MAY_BE_EMPTY = ("mechanical_advantage.", "meas.", "imu.", "force_torque.", "current.")


@dataclass(frozen=True, eq=False)
class Trajectory(Immutable):
    """Columns of finite numbers over increasing time. The zero-moment point is NaN in flight.

    Time increases strictly, except that an event may have two rows at its time: before and after it.

    header   the `# key: value` comments before the column names
    t        (N,) time [s]
    columns  {name without unit: (N,) array}, in the file's order, without `t`
    units    {name: unit}, empty where the file gives none
    source   the file, `-` for standard input, None where there is no file
    lines    (N,) the line number of each row in the file; of the rows themselves where there is none
    model    text of the robot YAML that `save` writes next to the file; empty where the comments name the robot
    mapping  the map with which the columns of a foreign file were read; None without a map
    warnings messages about the reading of a ROS bag, such as missing messages

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.trajectory_of(model, [0.0, 0.1], [[0.3, 0.0], [0.2, 0.1]])
    <Trajectory of arrays: 2 rows, t = 0 to 0.1 s; columns q 2>
    """

    header: dict[str, str]
    t: Array
    columns: dict[str, Array]
    units: dict[str, str]
    source: str | None = None
    lines: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    model: str = ""
    mapping: AppliedMap | None = None
    warnings: tuple[LiedynWarning, ...] = ()

    @property
    def passive(self) -> bool:
        """Whether springs, damping and friction act, from the comment `# passive`; true if there is none."""
        text = self.header.get("passive", "true")
        if text.lower() not in ("true", "false"):
            place = Place(self.source, None, "# passive")
            raise TrajectoryError("wrong value", place=place, found=text, expected="true or false")
        return text.lower() == "true"

    def __post_init__(self) -> None:
        if len(self.lines) != len(self.t):
            object.__setattr__(self, "lines", np.arange(1, len(self.t) + 1))
        super().__post_init__()

    def __len__(self) -> int:
        return len(self.t)

    if not TYPE_CHECKING:                                  # a type checker would accept attributes of any name
        def __getattr__(self, name: str):
            hint = f": columns have names such as columns['q.elbow'], and ld.motion_of(model, trajectory).{name} is the array"
            raise AttributeError(f"'Trajectory' object has no attribute {name!r}{hint if name in ('q', 'v', 'a', 'tau') else ''}",
                                 name=name, obj=self)

    def __repr__(self) -> str:
        kinds = Counter(name.partition(".")[0] for name in self.columns)
        counts = ", ".join(f"{kind} {n}" for kind, n in kinds.items())
        span = f", t = {self.t[0]:.12g} to {self.t[-1]:.12g} s" if len(self) else ""
        return f"<Trajectory {self.source or 'of arrays'}: {len(self)} rows{span}; columns {counts or 'none'}>"

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame of the columns "q.elbow[rad]", …, with the time "t[s]" as its index.

        Requires pandas, which is not installed with liedyn.
        """
        return data_frame(self.t, self._named)

    @explained
    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a trajectory file, completely or not at all. `read_trajectory` returns the same numbers.

        Paths in the comments `robot`, `loops` and `model` become relative to the folder of the file. If the robot differs from
        its file, its model is written next to it: `motion.model.yaml` for `motion.csv`. Raises UsageError if a file exists and
        `force` is not given, and ComputationError for a number that is not finite.
        """
        path = os.fspath(path)
        header = self.header | self._paths(Path(path).absolute().parent)
        if not self.model:
            write_trajectory(path, header, self.t, self._named, force=force)
            return
        model = model_file(path)
        if path == STDIO:
            raise UsageError("the robot of this trajectory differs from its file; its model is written next to the trajectory: "
                             "give the name of a file")
        if self.header.get("robot") and os.path.realpath(self._path("robot")) == os.path.realpath(model):
            raise UsageError(f"the model of the trajectory would replace the robot file {model}: use another name")
        header |= {"model": model.name, "model_sha256": text_digest(self.model.encode())}
        check_output(path, force=force)
        with open_output(model, force=force) as file:
            file.write(self.model)
            write_trajectory(path, header, self.t, self._named, force=force)

    @property
    def _named(self) -> list[tuple[str, str, Array]]:
        return [(name, self.units.get(name, ""), x) for name, x in self.columns.items()]

    def _paths(self, folder: Path) -> dict[str, str]:
        """Return the comments that name files, with paths relative to another folder."""
        return {key: relative_path(self._path(key), folder)
                for key in ("robot", "loops", "model") if self.header.get(key)}

    def _path(self, key: str) -> Path:
        """Return the path of the file that a comment names."""
        folder = Path.cwd() if self.source is None or self.source == STDIO else Path(self.source).absolute().parent
        return folder / self.header[key]


def model_file(path: str | os.PathLike[str]) -> Path:
    """Return the file next to a trajectory file to which `Trajectory.save` writes a model that differs from its robot file."""
    return Path(path).with_suffix(".model.yaml")


def read_trajectory(path: str | Path, *, columns: MapArgument | None = None, topics: str | Sequence[str] | None = None,
                    base_frame: str | None = None, interpolate: bool = False, log_times: bool = False) -> Trajectory:
    """Read a trajectory file or a ROS bag.

    Times of a calendar, such as 1700000000.25, become relative to the first row, whose time is the comment `start`. Time
    increases strictly. If the comments have the key `events`, two rows may have one time, before and after an event. If they have
    the key `missing`, rows without a value in a column of q, v, a, tau or fext are left out.

    Parameters
    ----------
    path : path
        A CSV or a bag, see docs/files.md; "-" is standard input. A bag of ROS 2 is a folder or a file `.mcap` or `.db3`, one of
        ROS 1 a file `.bag`; both need the package rosbags.
    columns : str, dict or path, optional
        Map of a file with other names and units: "t=stamp[ms],q.elbow=joint_3_pos[deg]", {"q.elbow": "joint_3_pos[deg]", ...}, or
        a YAML file. Default: the file `motion.columns.yaml` next to `motion.csv`, if there is one.
    topics : str or list of str, optional
        Topics of a bag. Default: the only one with joint states.
    base_frame : str, optional
        Frame of the floating base in the transforms of a bag, such as "base_link", or with the frame of the world, such as
        "odom:base_link". Default of the latter: the frame that has no parent.
    interpolate : bool
        Whether topics of a bag whose messages have different times are interpolated linearly at those of the first topic, with
        unwrapped angles. Without it they are an error.
    log_times : bool
        Whether the times of the recorder are used instead of the stamps of the messages.

    Returns
    -------
    Trajectory

    Raises
    ------
    TrajectoryError
        With file, line and column, if the file is not valid. With the entry, if the map is not valid. With topic and message, if
        a bag is not valid.
    UsageError
        If the package rosbags is not installed, or an argument for bags is given with a CSV.

    Examples
    --------
    >>> trajectory = ld.read_trajectory("configs/ur5_encoders.csv")
    >>> trajectory.t.shape, list(trajectory.columns)[:2]
    ((201,), ['q.shoulder_pan_joint', 'q.shoulder_lift_joint'])
    >>> log = ld.read_trajectory("configs/logs/ur5_log.csv", columns={"t": "stamp[ms]", "q.elbow_joint": "actual_q_2[deg]"})
    >>> log.columns["q.elbow_joint"][:2].round(3), log.units["q.elbow_joint"]
    (array([1.394, 1.44 ]), 'rad')
    """
    table: CsvTable
    if is_bag(path):
        table = read_bag(str(path), topics=topics, base_frame=base_frame, interpolate=interpolate, log_times=log_times)
    elif topics or base_frame or interpolate or log_times:
        raise UsageError(f"{path} is not a ROS bag: topics, base_frame, interpolate and log_times have no effect")
    else:
        table = read_table(str(path), TrajectoryError, largest=LARGEST_TRAJECTORY, standard_input=True)
    header, warnings = table.comments, table.warnings if isinstance(table, BagTable) else ()
    bound, mapping = _mapped_columns(table, columns)
    if mapping is None:
        _check_time_column(table)
        bound = [BoundColumn(name, unit, k) for k, (name, unit) in enumerate(table.units().items())]
    else:
        header = header | {"columns": mapping.text}
    time = next((column for column in bound if column.name == "t"), None)
    if time is None:
        raise TrajectoryError("no column is mapped to `t`", place=table.place(), expected="an entry such as t=stamp[ms]")
    if time.unit not in ("", "s"):
        raise TrajectoryError("time is not in seconds", place=table.place(column="t"), found=time.unit, expected="t[s]",
                              hint=f"convert it with {columns_option({'t': 't'})}" if unit_of(time.unit) else None)
    if not len(table.lines):
        raise TrajectoryError("the file has column names but no rows", place=table.place())
    may_be_empty = [] if mapping and MISSING not in header else [name for name in table.names if _may_be_empty(name, header)]
    values = table.parse_numbers(may_be_empty, {column.index for column in bound if column.index is not None}
                                 if mapping else None)
    t = time.values(values)
    if t[0] >= _EPOCH and time.index is not None:
        t, start = _relative_times(table, time, t)
        header = header | {"start": start}
    _check_time(t, table.lines, table.file, "events" in header)
    series = [column for column in bound if column is not time]
    warn(warnings)
    trajectory = Trajectory(header, t, {column.name: column.values(values) for column in series},
                            {column.name: column.unit for column in series}, table.file, table.lines, mapping=mapping,
                            warnings=warnings)
    return complete_rows(trajectory) if MISSING in header else trajectory


def complete_rows(trajectory: Trajectory) -> Trajectory:
    """Return the rows with a value in each column of the motion, and information about the others.

    Raises TrajectoryError if there is none.
    """
    motion = {name: np.isnan(x) for name, x in trajectory.columns.items() if is_motion_column(name)}
    incomplete = np.any([*motion.values()], axis=0) if motion else np.zeros(len(trajectory), dtype=bool)
    if not incomplete.any():
        return trajectory
    if incomplete.all():
        raise TrajectoryError("no row has a value in each column of the motion", place=Place(trajectory.source),
                              found=f"{len(trajectory)} rows", expected=f"rows with {list_names(list(motion), 4)}")
    warning = LiedynWarning("rows-left-out", f"{incomplete.sum()} of {len(trajectory)} rows are left out: they have no value in "
                            f"{list_names([name for name, empty in motion.items() if empty.any()], 3)}")
    header = {key: text for key, text in trajectory.header.items() if key != MISSING}
    return replace(trajectory, header=header, t=trajectory.t[~incomplete], lines=trajectory.lines[~incomplete],
                   columns={name: x[~incomplete] for name, x in trajectory.columns.items()},
                   warnings=(*trajectory.warnings, warning))


def _relative_times(table: CsvTable, time: BoundColumn, t: Array) -> tuple[Array, str]:
    """Return the times (N,) relative to the first row, and the time of this row as text [s], without loss of digits."""
    assert time.index is not None, "checked by the caller"
    with suppress(ArithmeticError):                            # a number that Decimal does not read
        raw = [Decimal(cells[time.index].strip()) for _, cells in table.cells()]
        steps = [(operation, c) for operation, c in time.steps if operation in "*/"]
        relative = replace(time, index=0, steps=tuple(steps)).values(np.array([[float(x - raw[0])] for x in raw]))
        start = raw[0]
        for operation, c in time.steps:
            start = _OPERATIONS[operation](start, Decimal(repr(c)))
        return relative, f"{start:.9f}"
    return t - t[0], f"{t[0]:.9f}"


def _mapped_columns(table: CsvTable, columns: MapArgument | None) -> tuple[list[BoundColumn], AppliedMap | None]:
    """Return the columns that a map makes of a file, and the applied map; None without a map."""
    automatic = None
    if columns is None and not {"columns", "liedyn"} & table.comments.keys():        # of files that liedyn has written
        automatic = map_file(table.file)
    if columns is None and automatic is None:
        return [], None
    column_map = read_column_map(columns if columns is not None else str(automatic))
    bound, mapping = bind_map(column_map, table, automatic=automatic is not None)
    if column_map.robot and not table.comments.get("robot"):
        folder = Path() if table.file == STDIO else Path(table.file).parent
        table.comments["robot"] = relative_path(column_map.robot, folder)
    return bound, mapping


_TIMES = ("time", "timestamp", "stamp", "secs", "seconds", "Time", "T")       # names of columns for which a hint is given
_ROBOT_ENDINGS = ".urdf", ".yaml", ".yml", ".xml", ".mjcf"


def _check_time_column(table: CsvTable) -> None:
    """Raise without a time column. The error does not show the content: it may be any file that a scenario names."""
    if "t" not in table.names:
        if Path(table.file).suffix.lower() in _ROBOT_ENDINGS:
            raise TrajectoryError("this is a robot file, not a trajectory", place=table.place(),
                                  hint="`liedyn info` describes a robot, `liedyn simulate` moves it and shows it in 3D")
        time = next((name for name in _TIMES if name in table.names), None)
        hint = f"{columns_option({'t': time})} reads the column {time} as time; other units: 't={time}[ms]'" if time else \
            "map columns of other names with --columns (or columns=)"
        raise TrajectoryError("there is no column `t`", place=table.place(), expected="column names such as t[s],q.elbow[rad]",
                              hint=table.separator_hint or hint)


def write_trajectory(path: str | Path, header: Mapping[str, object], t: ArrayLike,
                     columns: Sequence[tuple[str, str, ArrayLike]], *, force: bool = False) -> None:
    """Write a trajectory file, completely or not at all, or to standard output for `-`.

    Numbers are the shortest that read back as the same float64.

    Parameters
    ----------
    header : {key: value}, written as comments
    t : (N,) array [s]
    columns : list of (name, unit, (N,) array); a unit may be empty
    force : bool
        Whether an existing file is replaced; without it that is a UsageError.

    Raises
    ------
    UsageError, ComputationError (a number that is not finite)
    """
    arrays = [(name, unit, np.asarray(values, dtype=float)) for name, unit, values in (("t", "s", t), *columns)]
    _check_written(arrays, header)                                     # before anything is written, also to standard output
    with open_output(path, force=force) as file:
        write_table(file, [(title_cell(name, unit), values) for name, unit, values in arrays], header)


def _may_be_empty(name: str, header: Mapping[str, object]) -> bool:
    return name in MAY_BE_EMPTY or name.startswith(_BEGIN_OF_MAY_BE_EMPTY) or (MISSING in header and is_motion_column(name))


def _check_written(columns: Sequence[tuple[str, str, Array]], header: Mapping[str, object]) -> None:
    """Raise ComputationError for the first number, in order of time, that is not finite."""
    t, problems = columns[0][2], []
    for k, (name, _, values) in enumerate(columns):
        bad = np.isinf(values) if _may_be_empty(name, header) else ~np.isfinite(values)
        if bad.any():
            problems.append((int(bad.argmax()), k))
    if problems:
        row, k = min(problems)
        name, unit, values = columns[k]
        raise ComputationError(f"{column_title(name, unit)} is {values[row]} at t = {float(t[row])!r} s: nothing is written")


def data_frame(t: Array, columns: Sequence[tuple[str, str, Array]], runs: tuple[int, ...] = ()) -> pandas.DataFrame:
    """Return a DataFrame of columns (name, unit, (N,) array), by their titles, with the time as its index.

    runs  lengths of the axes of runs of arrays (*runs, N); the index then has the levels run (or run.0, run.1, …) and time
    """
    try:
        import pandas
    except ImportError:
        raise UsageError("to_pandas needs pandas: pip install pandas") from None
    time = column_title("t", "s")
    index = pandas.Index(t, name=time)
    if runs:
        names = ["run"] if len(runs) == 1 else [f"run.{k}" for k in range(len(runs))]
        index = pandas.MultiIndex.from_product([*map(range, runs), t], names=[*names, time])
    return pandas.DataFrame({column_title(name, unit): x.ravel() for name, unit, x in columns}, index=index)


def check_no_events(trajectory: Trajectory, quantity: str) -> None:
    """Raise if two rows have the same time: the motion jumps there, and `quantity` cannot be differentiated across it."""
    k = repeated_row(trajectory)
    if k is not None:
        raise TrajectoryError(f"two rows have one time, before and after an event: {quantity} cannot be derived across it",
                              place=Place(trajectory.source, int(trajectory.lines[k]), "t"), found=float(trajectory.t[k]),
                              expected="a file with all columns of q, v and a, or rows between two events")


def repeated_row(trajectory: Trajectory) -> int | None:
    """Return the index of the first row that has the time of the row before it, None if there is none."""
    repeated = np.flatnonzero(np.diff(trajectory.t) == 0.0)
    return int(repeated[0]) + 1 if repeated.size else None


def _check_time(t: Array, lines: Integers, source: str, has_events: bool) -> None:
    back = np.flatnonzero(t[1:] < t[:-1] if has_events else t[1:] <= t[:-1])
    if back.size:
        k = int(back[0]) + 1
        hint = "two rows of an event need the comment `# events: 1` before the column names" if t[k] == t[k - 1] else None
        raise TrajectoryError("time does not increase", place=Place(source, int(lines[k]), "t"),
                              found=float(t[k]), expected=f"a time above {float(t[k - 1])!r}", hint=hint)
