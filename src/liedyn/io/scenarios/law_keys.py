"""The keys of `control` and `saturate`: what `law_file` reads."""
from __future__ import annotations

from liedyn.io.keys import Boolean, Choice, Either, File, Key, Keys, List, Named, Number, Text, Vector, default_of
from liedyn.io.scenarios.joint_keys import NUMBERS, POSE_MOTION, SIGNAL
from liedyn.io.scenarios.scenario import EFFORT, LAWS, Control

TRACKING = tuple(law for law, poles in LAWS.items() if poles)
OF_JOINTS = "computed_torque", "feedback_linearization"          # laws with a motion of joints
_TASK = ("task_space",)
POLES = ("bandwidth", "poles")
MATRIX = "a list of rows of numbers, {tau.joint: {q.joint: number, …}, …}, or the path of a CSV file"

ABOUT = Keys("about", (
    Key("q", Named(NUMBERS, "joint"), "positions by joint [rad or m]", "neutral", example={"elbow": 0.5}),
    Key("v", Named(NUMBERS, "joint"), "velocities by joint [rad/s or m/s]", "zero", example={"elbow": 0})))
_GAIN = Either((File(), Named(Named(Number(), "q.joint"), "tau.joint"), List(List(Number(), 1), 1)), "gain_matrix")
CONTROL = Keys("control", (
    Key("law", Choice(tuple(LAWS)), "one of the laws above", required=True, missing="one of " + ", ".join(LAWS),
        example="computed_torque"),
    Key("motion", Named(SIGNAL, "joint"), "of `computed_torque` and `feedback_linearization`: desired motion by joint, a "
        "signal; of an elastic joint that of its link relative to the parent, by the name of the motor's joint", required=True,
        missing="the desired motion of each joint; of an elastic one by the name of its motor's", kinds=OF_JOINTS,
        example={"motor1": "0.5*sin(t)"}),
    Key("bandwidth", Number(above=0), "of these and `task_space`: all poles of the error at -bandwidth [rad/s]", kinds=TRACKING,
        example=20),
    Key("poles", List(Number(), min(LAWS[law] for law in TRACKING), max(LAWS.values())), "instead of `bandwidth`: a list of "
        "negative poles [1/s], four for `feedback_linearization` and two for the others", kinds=TRACKING, example=[-20, -25]),
    Key("link", Text(), "of `task_space`: the link that follows the target", required=True, kinds=_TASK,
        missing="the link that follows the target", example="hand"),
    Key("point", Vector(3), "of `task_space`: the point of the link that follows the target, in link coordinates [m]",
        default_of(Control, "point"), kinds=_TASK, example=[0, 0, 0.1]),
    Key("target", POSE_MOTION, "of `task_space`: the pose of the link's axes at the point in the world; `xyz` or `rpy` alone "
        "leave the other free", required=True, kinds=_TASK, example={"xyz": [0.4, "0.2*sin(t)", 0.5]},
        missing="xyz: [signal, signal, signal], rpy: the same, or waypoints"),
    Key("posture", Named(NUMBERS, "joint"), "of `task_space`: positions that joints go to as far as the target leaves them free "
        "[rad or m]", "they come to rest", kinds=_TASK, example={"elbow": -1.2}),
    Key("joints", List(Text(), 1), "of the other laws: a list of joints or patterns that are driven", "all that are not "
        "prescribed, except a free joint", kinds=("gravity_compensation", "state_feedback"), example=["elbow"]),
    Key("gain", _GAIN, "of `state_feedback`: the matrix K, by names or as rows; see below", required=True,
        kinds=("state_feedback",), missing=MATRIX, example="K.csv"),
    Key("about", ABOUT, "of `state_feedback`: the state about which the gain holds, `q` and `v` by joint; what is not listed is "
        "neutral", required=True, kinds=("state_feedback",), missing="the state about which the gain holds: q and v by joint",
        example={"q": {"elbow": 0.5}})), kind="law", one_of=(POLES,))

LIMIT = Number(above=0)
SATURATE = Either((Boolean(), Named(Either((Choice((EFFORT,)), LIMIT), "limit"), "joint*")), "saturation")
