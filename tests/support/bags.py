"""Bags of ROS 1 and ROS 2, written with the package rosbags."""
from pathlib import Path

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

FORMS = ("sqlite3", "mcap", "mcap file", "ros1")
START = 1_700_000_000_000_000_000                # ns of the first message
JOINTS, ODOMETRY, TF, WRENCH, IMAGE = ("sensor_msgs/msg/JointState", "nav_msgs/msg/Odometry", "tf2_msgs/msg/TFMessage",
                                       "geometry_msgs/msg/WrenchStamped", "sensor_msgs/msg/CompressedImage")


class Bag:
    """Messages of one kind of ROS, which `write` writes in the order of their log times."""

    def __init__(self, form="sqlite3"):
        self.form = form
        self.store = get_typestore(Stores.ROS1_NOETIC if form == "ros1" else Stores.ROS2_JAZZY)
        if form == "ros1":                                   # the store lacks it
            self.store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms\n", TF))
        self.topics: dict[str, str] = {}
        self.messages: list[tuple[int, str, object]] = []

    def make(self, kind, **fields):
        return self.store.types[kind](**fields)

    def header(self, t, frame=""):
        stamp = self.make("builtin_interfaces/msg/Time", sec=int(t // 10**9), nanosec=int(t % 10**9))
        return self.make("std_msgs/msg/Header", stamp=stamp, frame_id=frame, **({"seq": 0} if self.form == "ros1" else {}))

    def vector(self, x):
        return self.make("geometry_msgs/msg/Vector3", x=float(x[0]), y=float(x[1]), z=float(x[2]))

    def add(self, topic, kind, t, message, log=None):
        self.topics[topic] = kind
        self.messages.append((int(t if log is None else log), topic, message))

    def joints(self, t, names, q, v=(), tau=(), *, topic="/joint_states", log=None):
        arrays = {key: np.array(x, float) for key, x in (("position", q), ("velocity", v), ("effort", tau))}
        self.add(topic, JOINTS, t, self.make(JOINTS, header=self.header(t), name=list(names), **arrays), log)

    def odometry(self, t, pose, twist, *, frame="odom", child="base_link", topic="/odom"):
        """Return an odometry message. pose: p, quaternion; twist: [w; v] in the child frame."""
        types = "geometry_msgs/msg/"
        point = self.make(f"{types}Point", **dict(zip("xyz", map(float, pose[:3]), strict=True)))
        turn = self.make(f"{types}Quaternion", **dict(zip("xyzw", map(float, pose[3:]), strict=True)))
        placed = self.make(f"{types}PoseWithCovariance", pose=self.make(f"{types}Pose", position=point, orientation=turn),
                           covariance=np.zeros(36))
        moved = self.make(f"{types}TwistWithCovariance", covariance=np.zeros(36),
                          twist=self.make(f"{types}Twist", linear=self.vector(twist[3:]), angular=self.vector(twist[:3])))
        self.add(topic, ODOMETRY, t, self.make(ODOMETRY, header=self.header(t, frame), child_frame_id=child, pose=placed,
                                               twist=moved))

    def transform(self, t, parent, child, pose, *, topic="/tf", log=None):
        types = "geometry_msgs/msg/"
        turn = self.make(f"{types}Quaternion", **dict(zip("xyzw", map(float, pose[3:]), strict=True)))
        transform = self.make(f"{types}Transform", translation=self.vector(pose[:3]), rotation=turn)
        stamped = self.make(f"{types}TransformStamped", header=self.header(t, parent), child_frame_id=child, transform=transform)
        self.add(topic, TF, t, self.make(TF, transforms=[stamped]), log)

    def wrench(self, t, frame, F, *, topic="/wrench"):
        """Return a wrench message. F: [m; f]."""
        wrench = self.make("geometry_msgs/msg/Wrench", force=self.vector(F[3:]), torque=self.vector(F[:3]))
        self.add(topic, WRENCH, t, self.make(WRENCH, header=self.header(t, frame), wrench=wrench))

    def image(self, t):
        self.add("/camera", IMAGE, t, self.make(IMAGE, header=self.header(t), format="png", data=np.zeros(3, np.uint8)))

    def write(self, path, compression=CompressionMode.NONE):
        """Write the bag, and return the path of its file or folder."""
        path = Path(path)
        encode = self.store.serialize_ros1 if self.form == "ros1" else self.store.serialize_cdr
        if self.form == "ros1":
            path = path.with_suffix(".bag")
            writer = Writer1(path)
        else:
            plugin = StoragePlugin.SQLITE3 if self.form == "sqlite3" else StoragePlugin.MCAP
            writer = Writer2(path, version=9, storage_plugin=plugin)
            if compression is not CompressionMode.NONE:
                writer.set_compression(compression, CompressionFormat.ZSTD)
        with writer:
            connections = {topic: writer.add_connection(topic, kind, typestore=self.store) for topic, kind in self.topics.items()}
            for log, topic, message in sorted(self.messages, key=lambda row: row[0]):
                writer.write(connections[topic], log, encode(message, self.topics[topic]))
        return str(next(path.glob("*.mcap")) if self.form == "mcap file" else path)


def ns(t):
    """Return times in nanoseconds of times in seconds after START."""
    return START + np.round(np.asarray(t) * 1e9).astype(np.int64)
