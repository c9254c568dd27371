"""A type of joint is a row of `JOINT_TYPES`: whatever reads robots finds types that are added from outside."""
from dataclasses import fields, replace

import jsonschema
import numpy as np
import pytest
import yaml

import liedyn as ld
import zoo
from liedyn.analysis.trajectory_derivatives import perturbed_model
from liedyn.io.robots.robot_schema import JOINT, ROBOT
from liedyn.io.schema_export import json_schema
from liedyn.model.description import JOINT_TYPES, Joint, JointType
from liedyn.model.links import Pose
from liedyn.model.model_joint import joint_screws

OFFSET = 0.1        # m between the axes of a crank


def spiral_screws(joint):
    """A rotation about each axis, which advances along it."""
    return [(*axis, *(joint.pitch * x for x in axis)) for axis in joint.axes]


def crank_screws(joint):
    """Two parallel axes, the second one OFFSET away along x."""
    axis = joint.axes[0]
    return [(*axis, 0.0, 0.0, 0.0), (*axis, *np.cross([OFFSET, 0.0, 0.0], axis).tolist())]


@pytest.fixture(autouse=True)
def types(monkeypatch):
    monkeypatch.setitem(JOINT_TYPES, "spiral", JointType(("1", "2"), ("rad", "rad"), spiral_screws,
                                                         ("the first axis", "the second axis"), ("pitch",)))
    monkeypatch.setitem(JOINT_TYPES, "crank", JointType(("a", "b"), ("rad", "rad"), crank_screws, ("the joint axis",)))


def robot(seed=0, **more):
    return zoo.random_robot(seed, 8, types=("spiral", "crank", "revolute", "ball"), **more)


def as_screws(described: ld.Robot) -> ld.Robot:
    """Return the same robot with joints of type screws."""
    def changed(joint):
        if joint.type not in ("spiral", "crank"):
            return joint
        return replace(joint, type="screws", axes=(), pitch=0.0, screws=tuple(map(tuple, joint_screws(joint).tolist())))
    return replace(described, joints=tuple(map(changed, described.joints)))


@pytest.mark.parametrize("name", JOINT_TYPES)
def test_units_are_those_of_the_screws(name):
    """There are as many units as labels."""
    if (one := JOINT_TYPES[name]).screws is None:
        return
    joint = zoo.random_joint(np.random.default_rng(3), "joint", name, "a", "b")
    assert joint.units == tuple("rad" if any(screw[:3]) else "m" for screw in one.screws(joint))
    assert len(joint.labels) == len(joint.units)


@pytest.mark.parametrize("name", JOINT_TYPES)
def test_parameters_have_fields_and_keys(name):
    """Readers and writers take them from the two."""
    keys = {field.name for field in JOINT.keys}
    assert set(JOINT_TYPES[name].parameters) <= {field.name for field in fields(Joint)} & keys


def test_screws_are_linear_in_the_pitch():
    """Derivatives with respect to the pitch assume it."""
    for name in (name for name, joint_type in JOINT_TYPES.items() if "pitch" in joint_type.parameters):
        joint = zoo.random_joint(np.random.default_rng(4), "joint", name, "a", "b")
        without, unit, more = (joint_screws(replace(joint, pitch=pitch)) for pitch in (0.0, 1.0, -2.5))
        np.testing.assert_allclose(more, without - 2.5 * (unit - without), rtol=0, atol=1e-14)


def test_dynamics_of_an_added_type():
    model = ld.build(robot())
    q, v, a, tau = zoo.state(model)
    other = ld.build(as_screws(model.description))
    assert np.array_equal(model.index, other.index) and np.array_equal(model.constants, other.constants)
    assert model.v_names != other.v_names
    np.testing.assert_allclose(ld.inverse_dynamics(model, q, v, ld.forward_dynamics(model, q, v, tau)), tau, atol=1e-9)
    np.testing.assert_allclose(ld.mass_matrix(model, q) @ a + ld.inverse_dynamics(model, q, v, 0 * a),
                               ld.inverse_dynamics(model, q, v, a), atol=1e-9)


def test_derivative_with_respect_to_the_pitch_of_an_added_type():
    model = ld.build(robot(springs=False))
    q, v, a, _ = zoo.state(model)
    name = next(name for name in ld.parameter_names(model) if name.startswith("pitch."))
    h = 1e-6
    up, down = (ld.inverse_dynamics(perturbed_model(model, name, step), q, v, a) for step in (h, -h))
    _, found = ld.inverse_dynamics_directional(model, q, v, a, parameters={name: 1.0})
    np.testing.assert_allclose(found, (up - down) / (2 * h), atol=1e-6 * np.abs(up).max())


def test_yaml_of_an_added_type_reads_back(tmp_path):
    model = ld.build(robot())
    ld.save(model, tmp_path / "robot.yaml")
    found, given = ([replace(joint, origin=Pose()) for joint in described.joints]              # which is written to rounding
                    for described in (ld.load_description(tmp_path / "robot.yaml"), model.description))
    assert found == given
    jsonschema.validate(yaml.safe_load((tmp_path / "robot.yaml").read_text(encoding="utf-8")), json_schema(ROBOT))


def test_keys_that_an_added_type_lacks_are_errors(tmp_path):
    text = ("{links: {a: {mass: 1, inertia: [1, 1, 1]}},"
            " joints: {j: {type: crank, parent: world, child: a, axis: [0, 0, 1], pitch: 1}}}")
    (tmp_path / "robot.yaml").write_text(text)
    with pytest.raises(ld.ModelError, match="a crank joint has no pitch"):
        ld.load_description(tmp_path / "robot.yaml")


def test_urdf_of_an_added_type(tmp_path):
    """Joints without pitch are split exactly, the frame after an axis away from the origin included."""
    model = ld.build(zoo.random_robot(5, 5, types=("crank", "revolute"), springs=False))
    model = ld.build(replace(model.description, gravity=(0.0, 0.0, -9.81)))
    ld.save(model, tmp_path / "robot.urdf")
    other = ld.load(tmp_path / "robot.urdf")
    q, v, a, _ = zoo.state(model)
    np.testing.assert_allclose(ld.inverse_dynamics(other, q, v, a), ld.inverse_dynamics(model, q, v, a), atol=1e-12)


def test_simulation_of_an_added_type(tmp_path):
    described = ld.build(robot(springs=False)).description
    ld.save(described, tmp_path / "robot.yaml")
    ld.save(as_screws(described), tmp_path / "screws.yaml")
    first, second = (ld.run_scenario({"robot": str(tmp_path / name), "duration": 0.2, "output_step": 0.02})
                     for name in ("robot.yaml", "screws.yaml"))
    assert first.v.any() and np.array_equal(first.q, second.q)
