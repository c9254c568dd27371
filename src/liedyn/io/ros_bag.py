"""Recordings of ROS as tables of columns: bags of ROS 1 (`.bag`) and of ROS 2 (folder, `.mcap`, `.db3`).

    sensor_msgs/JointState        q, v and tau of joints
    nav_msgs/Odometry             q and v of the joint `base`: pose and body twist of a floating base
    tf2_msgs/TFMessage            q of the joint `base`: transforms from a frame of the world to one of the robot
    geometry_msgs/WrenchStamped   fext of the link `header.frame_id`

The package rosbags reads the messages. `io.bag_streams` brings topics with different times to common rows.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.errors import LiedynError, LiedynWarning, Place, TrajectoryError, UsageError, list_names, nearest
from liedyn.io.bag_streams import (
    BagReport,
    Stream,
    checked_order,
    composed_poses,
    merged_streams,
    sampling_warnings,
    with_unit_norm,
)
from liedyn.io.csv_table import CsvTable, title_cell

BASE = "base"                            # joint of a floating base, as `--base floating` names it
_NAMED = 8                               # maximum number of names in a message
_JOINTS, _ODOMETRY, _TRANSFORMS, _WRENCH = ("sensor_msgs/msg/JointState", "nav_msgs/msg/Odometry", "tf2_msgs/msg/TFMessage",
                                            "geometry_msgs/msg/WrenchStamped")
_SAME_TYPE = {"tf/msg/tfMessage": _TRANSFORMS}                                     # the name in old bags
_FILES = {".bag": "`rosbag reindex` repairs a bag that was not closed",
          ".mcap": "`mcap recover` repairs a file that was not closed",
          ".db3": "was the recorder stopped before it closed the file?"}
_FOLDER = "`ros2 bag reindex` repairs a bag that was not closed"
_COMPRESSED = (".db3.zstd", ".mcap.zstd")                 # files of a bag with compressed files, which is read as a folder
_ZSTD = b"\x28\xb5\x2f\xfd"                               # first bytes of a compressed message; those of CDR begin with 0
_POSE = (("px", "m"), ("py", "m"), ("pz", "m"), ("qx", ""), ("qy", ""), ("qz", ""), ("qw", ""))
_TWIST = (("wx", "rad/s"), ("wy", "rad/s"), ("wz", "rad/s"), ("vx", "m/s"), ("vy", "m/s"), ("vz", "m/s"))
_FORCES = (("mx", "N m"), ("my", "N m"), ("mz", "N m"), ("fx", "N"), ("fy", "N"), ("fz", "N"))


class BagOptions(TypedDict, total=False):
    """How a ROS bag is read, as keyword arguments of `read_trajectory`, which explains them."""

    topics: str | Sequence[str] | None
    base_frame: str | None
    interpolate: bool
    log_times: bool


@dataclass(frozen=True, eq=False)
class BagTable(CsvTable):
    """The rows of a bag, with the titles of a trajectory file. values: (N, columns)."""

    values: Array
    warnings: tuple[LiedynWarning, ...]

    def place(self, line: int | None = None, column: str | None = None) -> Place:
        """Return the location of a row; without a line, that of the bag."""
        return Place(self.file, line, column)

    def parse_numbers(self, *_: object) -> Array:
        """Return the (N, columns) finite numbers."""
        return self.values


class _Message(NamedTuple):
    log: int                             # time of the recorder [ns]
    content: Any


def is_bag(path: str | Path) -> bool:
    """Return whether this is a file or folder of a ROS bag, by its name and the names in the folder.

    A compressed file of a bag is one; `read_bag` raises an error that names its folder. A run folder is none, even with an MCAP
    file of its replay.
    """
    try:
        if not Path(path).is_dir():
            return Path(path).suffix.lower() in _FILES or Path(path).name.endswith(_COMPRESSED)
        files = list(Path(path).iterdir())
    except OSError:
        return False
    names = {file.name for file in files}
    return "metadata.yaml" in names or ("trajectory.csv" not in names
                                        and any(file.suffix.lower() in (".mcap", ".db3") for file in files))


def read_bag(path: str, *, topics: str | Sequence[str] | None = None, base_frame: str | None = None, interpolate: bool = False,
             log_times: bool = False) -> BagTable:
    """Read topics of a bag. The arguments are those of `io.trajectory_csv.read_trajectory`.

    Raises
    ------
    TrajectoryError
        For a bag, topic or message that cannot be used.
    UsageError
        If the package rosbags is not installed.
    """
    requested = [topics] if isinstance(topics, str) else list(topics or ())
    reading = _Reading(path)
    types, messages = reading.messages(requested)
    streams, world = [], base_frame.rpartition(":")[0] if base_frame else ""
    frame, selected = base_frame.rpartition(":")[2] if base_frame else None, [name for name in types if name in messages]
    for topic in selected:
        match types[topic]:
            case "sensor_msgs/msg/JointState":
                streams += _joint_streams(reading, topic, messages[topic])
            case "nav_msgs/msg/Odometry":
                streams.append(_odometry_stream(reading, topic, messages[topic], frame))
            case "tf2_msgs/msg/TFMessage":
                if not topic.endswith("_static"):
                    static = messages.get(f"{topic}_static", [])
                    streams += _transform_streams(reading, topic, messages[topic], static, world, frame)
            case _:
                streams.append(_wrench_stream(reading, topic, messages[topic]))
    return _table(reading, _timed(reading, streams, log_times), interpolate, [name for name in selected if messages[name]])


# Messages ---------------------------------------------------------------------------------------------------------------

class _Reading(BagReport):
    """A bag that is read, and the frame of its base."""

    base_frame: str | None = None

    def messages(self, requested: Sequence[str]) -> tuple[dict[str, str], dict[str, list[_Message]]]:
        """Return {topic: type} in the order of reading, and the messages of each topic that is read."""
        if find_spec("rosbags") is None:
            raise UsageError("reading ROS bags requires the package rosbags: pip install 'liedyn[bags]'")
        try:
            return self._messages(requested)
        except (LiedynError, MemoryError):
            raise
        except Exception as error:           # of damaged files: of rosbags, its parsers, decompressors and SQLite
            folder = Path(self.path).is_dir()
            if "Profile" in str(error) or "Serialization format" in str(error):
                raise self.error("the messages are not ROS messages", found=str(error), expected="ROS 2 messages in CDR encoding",
                                 hint="MCAP files for Foxglove have other messages") from None
            raise self.error("the bag cannot be read", found=str(error) or type(error).__name__,
                             expected="a complete bag with ROS messages",
                             hint=_FOLDER if folder else _FILES.get(Path(self.path).suffix)) from None

    def _messages(self, requested: Sequence[str]) -> tuple[dict[str, str], dict[str, list[_Message]]]:
        from rosbags.rosbag1 import Reader as Reader1
        from rosbags.rosbag2 import Reader as Reader2
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        if self.path.endswith(_COMPRESSED) and Path(self.path).is_file():
            raise self._compression_error("the file is compressed")
        ros1 = Path(self.path).suffix.lower() == ".bag" and not Path(self.path).is_dir()
        # The types of messages are those of ROS, not those in the bag: a definition of another topic cannot prevent reading.
        store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_JAZZY)
        if ros1:
            store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms\n", _TRANSFORMS))
        decode = store.deserialize_ros1 if ros1 else store.deserialize_cdr
        with Reader1(Path(self.path)) if ros1 else Reader2(Path(self.path)) as reader:
            connections = list(reader.connections)
            types = {each.topic: _SAME_TYPE.get(each.msgtype, each.msgtype) for each in connections}
            selected = self._selected(types, requested)
            read = [each for each in connections if each.topic in selected]
            for each in read:
                kind = types[each.topic]
                digest = store.generate_msgdef(kind)[1] if ros1 else store.hash_rihs01(kind)
                if each.digest and each.digest != digest:
                    raise self.error("the definition of the message type is not that of ROS", each.topic, found=each.digest,
                                     expected=f"{_short(kind)} {digest}")
            messages: dict[str, list[_Message]] = {topic: [] for topic in selected}
            for connection, log, data in reader.messages(read) if read else ():
                if not ros1 and data[:4] == _ZSTD:
                    raise self._compression_error("the messages are compressed")
                messages[connection.topic].append(_Message(log, decode(data, types[connection.topic])))
        for topic in selected:
            if not messages[topic] and not topic.endswith("_static"):
                raise self.error("the topic has no messages", topic, expected="at least one message")
        return {topic: types[topic] for topic in selected}, messages

    def _compression_error(self, message: str) -> TrajectoryError:
        return self.error(message, found="compression by zstd", expected="the folder of the bag, with the file metadata.yaml",
                          hint=f"give {Path(self.path).absolute().parent.name}/ instead of the file")

    def _selected(self, types: dict[str, str], requested: Sequence[str]) -> list[str]:
        """Return the topics to read: those requested, by default the only one with joint states."""
        readable = {topic: kind for topic, kind in types.items() if kind in _READ}
        if not types:
            raise self.error("the bag is empty", expected=f"a topic of the type {', '.join(map(_short, _READ))}")
        if not requested:
            joints = [topic for topic, kind in types.items() if kind == _JOINTS]
            if len(joints) != 1:
                count = "several topics" if joints else "no topic"
                raise self.error(f"the bag has {count} of the type {_short(_JOINTS)}", found=_listing(readable or types),
                                 expected="topics that are named with --topic (or topics=)")
            requested = joints
        selected: list[str] = []
        for name in requested:
            topic = name if name in types else f"/{name}"
            if topic not in types:
                raise self.error("the bag has no such topic", name, expected=f"one of {_listing(readable or types)}",
                                 hint=nearest(topic, types))
            if topic not in readable:
                raise self.error("the type of the topic cannot be read", topic, found=_short(types[topic]),
                                 expected=", ".join(map(_short, _READ)))
            selected += [topic] if topic not in selected else []
        unread = {topic: kind for topic, kind in readable.items()
                  if topic not in selected and topic.removesuffix("_static") not in selected}
        if unread:
            self.add_warning("topics-not-read", f"other topics are not read: {_listing(unread)}; --topic (or topics=) names all "
                             "topics to read")
        static = [f"{topic}_static" for topic in selected if types[topic] == _TRANSFORMS]
        return [*selected, *(topic for topic in static if types.get(topic) == _TRANSFORMS and topic not in selected)]


_READ = (_JOINTS, _ODOMETRY, _TRANSFORMS, _WRENCH)


def _short(kind: str) -> str:
    return kind.replace("/msg/", "/")


def _listing(types: dict[str, str]) -> str:
    return list_names([f"{topic} ({_short(kind)})" for topic, kind in types.items()], _NAMED)


def _stamps(headers: Iterator[Any]) -> Integers:
    """Return the stamps (N,) of headers [ns]. ROS 1 and ROS 2 have the same names here."""
    return np.array([header.stamp.sec * 10**9 + header.stamp.nanosec for header in headers], dtype=np.int64)


def _stream(name: str, topic: str, messages: Sequence[_Message], columns: dict[str, Array], pose: str = "") -> Stream:
    log = np.array([message.log for message in messages], dtype=np.int64)
    return Stream(name, topic, _stamps(message.content.header for message in messages), log, columns, pose)


def _timed(reading: _Reading, streams: list[Stream], log_times: bool) -> list[Stream]:
    """Return the streams in order of time, with the times of the recorder if these are requested or stamps are not positive."""
    without = [stream.name for stream in streams if not (stream.constant or (stream.stamps > 0).all())]
    if without and not log_times:
        negative = any((stream.stamps < 0).any() for stream in streams)
        reading.add_warning("log-times", f"stamps of {list_names(without, _NAMED)} are {'negative' if negative else 'zero'}: the "
                            "times of the recorder are used")
    if without or log_times:
        streams = [replace(stream, stamps=stream.log) for stream in streams]
    return [checked_order(stream, reading) for stream in streams]


# Joints -----------------------------------------------------------------------------------------------------------------

def _joint_streams(reading: _Reading, topic: str, messages: list[_Message]) -> list[Stream]:
    """Return a stream for each set of joints that messages list, the one with the most messages first."""
    groups: dict[frozenset[str], list[int]] = {}
    for k, (_, content) in enumerate(messages):
        names = frozenset(content.name)
        if not names or len(names) < len(content.name):
            raise reading.error("joint names are not distinct" if names else "there are no joint names", _message(topic, k),
                                found=", ".join(content.name) or None, expected="the name of each joint")
        groups.setdefault(names, []).append(k)
    ordered = sorted(groups, key=lambda names: -len(groups[names]))
    for j, names in enumerate(ordered):
        for larger in ordered[:j]:
            if names & larger:
                raise reading.error(f"messages list the joint {min(names & larger)} with different joints",
                                    _message(topic, groups[names][0]), found=list_names(sorted(names), _NAMED),
                                    expected=list_names(sorted(larger), _NAMED),
                                    hint="publishers with a common joint need different topics")
    streams = []
    for names in ordered:
        columns = _joint_columns(reading, topic, messages, groups[names])
        label = topic if len(ordered) == 1 else f"{topic} ({list_names(sorted(names), 3)})"
        streams.append(_stream(label, topic, [messages[k] for k in groups[names]], columns))
    return streams


def _joint_columns(reading: _Reading, topic: str, messages: Sequence[_Message], indices: Sequence[int]) -> dict[str, Array]:
    """Return the columns of messages that list the same joints, in the order of the first one."""
    names = list(messages[indices[0]].content.name)
    columns: dict[str, Array] = {}
    for kind, attribute in (("q", "position"), ("v", "velocity"), ("tau", "effort")):
        x = np.full((len(indices), len(names)), np.nan)
        for row, k in enumerate(indices):
            content = messages[k].content
            values = getattr(content, attribute)
            if len(values) == len(names):
                x[row] = values if list(content.name) == names else [values[content.name.index(name)] for name in names]
            elif len(values):
                raise reading.error(f"{attribute} and name have different lengths", _message(topic, k), found=len(values),
                                    expected=f"{len(names)}, or none")
        finite = np.isfinite(x)
        for j, name in enumerate(names):
            missing = int(np.count_nonzero(~finite[:, j]))
            if not missing:
                columns[f"{kind}.{name}"] = x[:, j]
            elif missing < len(x) and kind == "q":
                raise reading.error(f"the position of {name} is not finite, or is missing",
                                    _message(topic, indices[int(np.argmin(finite[:, j]))]), expected="a number in each message")
            elif missing < len(x):
                reading.add_warning("incomplete-topic",
                                    f"{attribute} of {name} is missing in {missing} of {len(x)} messages of {topic}: it is not "
                                    "read")
    return columns


def _message(topic: str, k: int) -> str:
    return f"message {k + 1} of {topic}"


# Base and external wrenches ---------------------------------------------------------------------------------------------

def _odometry_stream(reading: _Reading, topic: str, messages: Sequence[_Message], base_frame: str | None) -> Stream:
    """Return pose and twist of the base. The twist of nav_msgs/Odometry is in the child frame, as ours is."""
    frame = _frame(reading, topic, messages, lambda content: content.child_frame_id, "child_frame_id")
    _frame(reading, topic, messages, lambda content: content.header.frame_id, "header.frame_id")
    if base_frame is not None and frame != base_frame:
        raise reading.error("the topic gives the motion of another frame", topic, found=frame, expected=base_frame)
    _set_base_frame(reading, topic, frame)
    poses = np.array([_pose(content.pose.pose.position, content.pose.pose.orientation) for _, content in messages])
    twists = np.array([[x for vector in (content.twist.twist.angular, content.twist.twist.linear)
                        for x in (vector.x, vector.y, vector.z)] for _, content in messages])
    _check_finite(reading, topic, np.hstack([poses, twists]))
    columns = {f"q.{BASE}.{part}": poses[:, k] for k, (part, _) in enumerate(_POSE)}
    columns |= {f"v.{BASE}.{part}": twists[:, k] for k, (part, _) in enumerate(_TWIST)}
    return with_unit_norm(_stream(topic, topic, messages, columns, pose=f"q.{BASE}"), reading)


def _transform_streams(reading: _Reading, topic: str, messages: Sequence[_Message], static: Sequence[_Message], world: str,
                       base_frame: str | None) -> list[Stream]:
    """Return a stream for each transform between the frame of the world and the base that changes, or may change.

    Static transforms become columns of the first stream. `composed_poses` multiplies them.
    """
    edges: dict[str, tuple[str, list[tuple[_Message, Any]]]] = {}
    constant = {transform.child_frame_id.lstrip("/") for message in static for transform in message.content.transforms}
    for message in (*messages, *static):
        for transform in message.content.transforms:
            parent, child = (name.lstrip("/") for name in (transform.header.frame_id, transform.child_frame_id))
            if edges.setdefault(child, (parent, []))[0] != parent:
                raise reading.error(f"the frame {child} has two parents", topic, found=parent, expected=edges[child][0])
            edges[child][1].append((message, transform))
    if base_frame is None or base_frame not in edges:
        reason = "the frame of the base is missing" if base_frame is None else f"there is no frame {base_frame}"
        raise reading.error(reason, topic, expected=f"--base-frame (or base_frame=) with one of "
                            f"{list_names(list(edges), _NAMED)}", hint=nearest(base_frame or "base_link", edges))
    chain, frame = [], base_frame
    while frame in edges and frame != world and frame not in chain:
        chain.append(frame)
        frame = edges[frame][0]
    if frame != (world or frame) or frame in chain:
        raise reading.error(f"no transforms lead from {world or 'a first frame'} to {base_frame}", topic,
                            found=" -> ".join(reversed([*chain, frame])), expected="a chain of transforms")
    moving = [child for child in reversed(chain) if child not in constant]
    if not moving:
        raise reading.error(f"all transforms from {frame} to {base_frame} are static", topic, expected="a base that moves")
    _set_base_frame(reading, topic, base_frame)
    streams = []
    for child in reversed(chain):
        parent, samples = edges[child]
        samples = samples[-1:] if child in constant else samples
        poses = np.array([_pose(each.transform.translation, each.transform.rotation) for _, each in samples])
        name = f"{topic} ({parent} -> {child})"
        _check_finite(reading, name, poses)
        columns = {f"{child}.{part}": poses[:, k] for k, (part, _) in enumerate(_POSE)}
        stamps = np.array([0]) if child in constant else _stamps(each.header for _, each in samples)
        log = np.array([message.log for message, _ in samples], dtype=np.int64)
        streams.append(with_unit_norm(Stream(name, topic, stamps, log, columns, pose=child, constant=child in constant), reading))
    return streams


def _wrench_stream(reading: _Reading, topic: str, messages: Sequence[_Message]) -> Stream:
    link = _frame(reading, topic, messages, lambda content: content.header.frame_id, "header.frame_id")
    x = np.array([[x for vector in (content.wrench.torque, content.wrench.force) for x in (vector.x, vector.y, vector.z)]
                  for _, content in messages])
    _check_finite(reading, topic, x)
    return _stream(topic, topic, messages, {f"fext.{link}.{part}": x[:, k] for k, (part, _) in enumerate(_FORCES)})


def _pose(position: Any, orientation: Any) -> list[float]:
    return [position.x, position.y, position.z, orientation.x, orientation.y, orientation.z, orientation.w]


def _frame(reading: _Reading, topic: str, messages: Sequence[_Message], of: Callable[[Any], str], key: str) -> str:
    """Return the frame that all messages name, without the slash of ROS 1 at its begin."""
    frames = [of(content).lstrip("/") for _, content in messages]
    k = next((k for k, frame in enumerate(frames) if not frame or frame != frames[0]), None)
    if k is not None:
        raise reading.error(f"{key} changes" if frames[k] else f"{key} is empty", _message(topic, k),
                            found=frames[k] or None, expected=frames[0] if frames[k] else "the name of a frame")
    return frames[0]


def _set_base_frame(reading: _Reading, topic: str, frame: str) -> None:
    if reading.base_frame is not None:
        raise reading.error("two topics give the motion of the base", topic, expected="one of them")
    reading.base_frame = frame


def _check_finite(reading: _Reading, stream: str, x: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if bad.size:
        raise reading.error("a value is not finite", _message(stream, int(bad[0])), expected="finite numbers")


# Rows -------------------------------------------------------------------------------------------------------------------

def _table(reading: _Reading, streams: list[Stream], interpolate: bool, topics: Sequence[str]) -> BagTable:
    """Return the table of all streams at common times, which begin at zero."""
    names = [name for stream in streams for name in stream.columns]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise reading.error("two topics contain the same quantity", found=repeated,
                            expected="topics of different joints and links")
    moving = [stream for stream in streams if not stream.constant]
    times, columns = merged_streams(moving, reading, interpolate=interpolate)
    start = int(times[0])
    for stream in moving:
        reading.warnings += sampling_warnings(stream, start, reading.path)
    transforms = [stream for stream in streams if stream.pose and stream.pose != f"q.{BASE}"]
    if transforms:
        poses = [np.column_stack([np.broadcast_to(stream.columns[name] if stream.constant else columns.pop(name), times.shape)
                                  for name in stream.columns]) for stream in transforms]
        columns |= {f"q.{BASE}.{part}": x for (part, _), x in zip(_POSE, composed_poses(poses).T, strict=True)}
    columns = _complete_kinds(reading, columns)
    units = {f"{kind}.{BASE}.{part}": unit for kind, parts in (("q", _POSE), ("v", _TWIST)) for part, unit in parts}
    units |= {f"tau.{BASE}.{part}": unit for part, unit in _FORCES}
    units |= {name: dict(_FORCES)[name.rpartition(".")[2]] for name in columns if name.startswith("fext.")}
    titles = [title_cell("t", "s"), *(title_cell(name, units.get(name, "")) for name in columns)]
    comments = {"topics": ", ".join(topics), "start": f"{start // 10**9}.{start % 10**9:09d}"}
    if reading.base_frame is not None:
        comments["base_frame"] = reading.base_frame
    values = np.column_stack([(times - start) / 1e9, *columns.values()])
    return BagTable(reading.path, TrajectoryError, comments, titles, 0, [], np.arange(1, len(times) + 1), values,
                    tuple(reading.warnings))


def _complete_kinds(reading: _Reading, columns: dict[str, Array]) -> dict[str, Array]:
    """Return the columns without velocities, if only some of the joints have them. No motor acts on the base.

    Efforts that only some of the joints have remain: they are measurements.
    """
    joints = [name[2:] for name in columns if name.startswith("q.") and not name.startswith(f"q.{BASE}.")]
    for kind in ("v", "tau"):
        has_base = f"q.{BASE}.px" in columns
        if kind == "tau" and has_base and any(name.startswith("tau.") for name in columns):
            columns = columns | {f"tau.{BASE}.{part}": np.zeros(len(columns[f"q.{BASE}.px"])) for part, _ in _FORCES}
        present = [name for name in columns if name.startswith(f"{kind}.")]
        expected = [*joints, *(f"{BASE}.{part}" for part, _ in _TWIST if has_base and kind == "v")]
        missing = [name for name in expected if f"{kind}.{name}" not in columns]
        if present and missing and kind == "tau":
            reading.add_warning("incomplete-topic", f"efforts are missing: {list_names(missing, _NAMED)}")
        elif present and missing:
            reading.add_warning("incomplete-topic",
                                f"velocities are not read, because some are missing: {list_names(missing, _NAMED)}")
            columns = {name: x for name, x in columns.items() if name not in present}
    return columns
