"""The plan of a run: which joints are prescribed, which a law drives, which are free."""
import pytest

from controlled_robots import ARM
from liedyn.simulation.preparation import prepare

NAMES = ["shoulder", "elbow", "slide"]
GAIN = {"tau.elbow": {"q.elbow": -3.0, "v.elbow": -0.2}}


@pytest.mark.parametrize("control, prescribed, driven", [
    (None, ["elbow"], []),
    ({"law": "gravity_compensation"}, [], NAMES),
    ({"law": "gravity_compensation"}, ["slide"], ["shoulder", "elbow"]),
    ({"law": "gravity_compensation", "joints": ["elbow", "slide"]}, ["shoulder"], ["elbow", "slide"]),
    ({"law": "computed_torque", "bandwidth": 5, "motion": {"elbow": 0.2}}, ["slide"], ["elbow"]),
    ({"law": "computed_torque", "bandwidth": 5, "motion": {"s*": 0.2}}, [], ["shoulder", "slide"]),
    ({"law": "state_feedback", "gain": GAIN, "setpoint": {"q": {"elbow": 0}}}, [], ["elbow"]),
])
def test_each_joint_is_prescribed_driven_or_free(scenario, control, prescribed, driven):
    keys = {"joints": {name: {"prescribe": {"position": 0}} for name in prescribed}} | ({"control": control} if control else {})
    joints = prepare(scenario(ARM, **keys), {}).report()["joints"]
    assert joints["prescribed"] == prescribed and joints["driven"] == driven and joints["given_force"] == []
    assert joints["free"] == [name for name in NAMES if name not in (*prescribed, *driven)]
