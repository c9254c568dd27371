"""The Go2 stands on its feet: statics by Pinocchio, from its own kinematics of the URDF and the law of contact."""
import numpy as np
import pytest

import liedyn as ld
from bridge import PinocchioBridge, file_of

FEET = "FL_foot", "FR_foot", "RL_foot", "RR_foot"
RADIUS, STIFFNESS, KP, G = 0.022, 2e5, 200.0, 9.81
LEGS = {"*_hip_joint": 0.0, "*_thigh_joint": 0.8, "*_calf_joint": -1.6}


def scenario(base, legs=LEGS) -> dict:
    return {"robot": str(file_of("go2.urdf")), "base": "floating", "duration": 0.2, "output_step": 0.05,
            "integrator": {"method": "rodas5p", "rtol": 1e-8, "atol": 1e-10},
            "joints": {name: {"torque": {"pd": {"kp": KP, "kd": 4, "target": x}}} for name, x in LEGS.items()},
            "initial": {"q": legs | {"base": base}},
            "contacts": {"links": {"*_foot": {"sphere": {"radius": RADIUS}}}, "stiffness": STIFFNESS}}


@pytest.fixture(scope="module")
def model():
    return ld.load(file_of("go2.urdf"), base="floating")


@pytest.fixture(scope="module")
def q(model):
    """Return the configuration at rest, near which feet are 1 mm deep and legs at their targets."""
    guess = model.neutral()
    for joint in model.joints[1:]:
        guess[joint.q] = next(x for name, x in LEGS.items() if joint.name.endswith(name[1:]))
    low = min(ld.link_pose(model, guess, foot)[2, 3] for foot in FEET) - RADIUS
    return ld.find_equilibrium(scenario([0, 0, float(-low) - 1e-3, 0, 0, 0, 1])).q


def test_four_feet_of_the_go2_carry_its_weight(model, q, worst):
    """Torques of the servos and forces of the feet balance gravity in all 18 coordinates of Pinocchio's model, without friction;
    so the forces add up to the weight and act below the centre of mass."""
    import pinocchio as pin

    bridge = PinocchioBridge(file_of("go2.urdf"), model)
    x, theirs, data, rest = bridge.q(q), bridge.pin, bridge.data, np.zeros(model.nv)
    weight = G * pin.computeTotalMass(theirs)
    pin.framesForwardKinematics(theirs, data, x)
    feet = [theirs.getFrameId(foot) for foot in FEET]
    at = np.array([data.oMf[foot].translation for foot in feet])
    force = STIFFNESS * (RADIUS - at[:, 2])**1.5
    assert (force > 0.2 * weight).all()
    assert worst("weight on the Go2's feet", abs(force.sum() / weight - 1)) < 1e-10
    centre = pin.centerOfMass(theirs, data, x)
    assert worst("centre of pressure of the Go2", np.abs(force @ at[:, :2] / weight - centre[:2]).max()) < 1e-10
    left = pin.rnea(theirs, data, x, rest, rest)
    for joint in model.joints[1:]:
        left[bridge.v[joint.v]] -= KP * (next(y for name, y in LEGS.items() if joint.name.endswith(name[1:])) - q[joint.q])
    for foot, N in zip(feet, force, strict=True):
        left -= pin.computeFrameJacobian(theirs, data, x, foot, pin.LOCAL_WORLD_ALIGNED)[2] * N
    assert worst("statics of the Go2", np.abs(left).max() / weight) < 1e-10


def test_the_go2_goes_on_standing(model, q, worst):
    run = ld.run_scenario(scenario(q[:7].tolist(), dict(zip(model.q_names[7:], q[7:].tolist(), strict=True))))
    weight = G * sum(link.mass for link in model.description.links)
    assert worst("weight on the Go2's feet", np.abs(run.contacts.force.sum(axis=1) / weight - 1).max(), "run") < 1e-10
    centre = ld.centre_of_mass(model, run.q)
    assert worst("centre of pressure of the Go2", np.abs(run.contacts.centre - centre)[:, :2].max(), "run") < 1e-10
