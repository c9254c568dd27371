"""A model is immutable; a copy with other numbers is what building the changed description gives."""
import copy
import dataclasses
import pickle
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from liedyn.model.description import Coordinate, Joint, Mimic
from liedyn.model.links import Link, Pose
from liedyn.model.model_cache import ModelValue
from loop_zoo import n_bar, random_closure, random_coupling
from matrices import exp
from zoo import random_robot

PENDULUM = ld.Robot("pendulum", (Link("upper", 1.0, (0.0, 0.0, -0.5), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)), Link("hand", 0.5)), (
    Joint("shoulder", "revolute", "world", "upper", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate(-2.0, 2.0, damping=0.1),)),
    Joint("wrist", "fixed", "upper", "hand", Pose(translation=(0.0, 0.0, -1.0)))))


def changes_of(model, rng) -> dict:
    """Return every kind of change, for every link and joint that supports it."""
    robot = model.description
    links, joints = [link.name for link in robot.links], robot.joints
    moving = [joint for joint in joints if joint.labels]
    springs = [joint.name for joint in moving if joint.type not in ("ball", "free")]

    def each(names, make):
        return {name: make() for name in names if rng.random() < 0.7}

    def number():
        return float(rng.uniform(0.1, 1.0))

    I = np.diag([0.5, 0.6, 0.7]) + 0.01
    return {"gravity": rng.standard_normal(3), "mass": each(links, number), "com": each(links, lambda: rng.uniform(-0.1, 0.1, 3)),
            "inertia": each(links, lambda: I * number()), "origin": each([j.name for j in joints if j.mimic is None],
                                                                        lambda: exp(rng.uniform(-0.5, 0.5, 6))),
            **{name: each([joint.name for joint in moving], number) for name in ("armature", "damping", "friction")},
            "stiffness": each(springs, number), "rest": each(springs, number),
            **{name: each([joint.name for joint in moving], number) for name in ("velocity_limit", "effort_limit")}}


def description_with(robot, changes: dict) -> ld.Robot:
    """Return the description with the same changes, without `with_changes`."""
    links, joints = [], []
    for link in robot.links:
        given = {key: changes[key][link.name] for key in ("mass", "com", "inertia") if link.name in changes[key]}
        if "inertia" in given:
            given["inertia"] = tuple(np.asarray(given["inertia"])[np.triu_indices(3)].tolist())
        if "com" in given:
            given["com"] = tuple(given["com"].tolist())
        links.append(replace(link, **given))
    keys = {"velocity_limit": "velocity", "effort_limit": "effort"}
    for joint in robot.joints:
        given = {keys.get(key, key): changes[key][joint.name]
                 for key in ("armature", "damping", "friction", "stiffness", "rest", *keys) if joint.name in changes[key]}
        joint = replace(joint, coordinates=tuple(replace(one, **given) for one in joint.coordinate_parameters))
        if joint.name in changes["origin"]:
            T = changes["origin"][joint.name]
            joint = replace(joint, origin=Pose(tuple(T[:3, :3].ravel().tolist()), tuple(T[:3, 3].tolist())))
        joints.append(joint)
    return replace(robot, gravity=tuple(changes["gravity"].tolist()), links=tuple(links), joints=tuple(joints), warnings=())


def with_loops(seed: int):
    """A tree of every joint type with fixed links, a closure, a coupling and a mimic joint."""
    robot = random_robot(seed, 12, base="floating" if seed % 2 else "fixed")
    model, rng = ld.build(robot), np.random.default_rng(seed)
    q = ld.random_configuration(model, rng)
    loop = random_closure(rng, "ball", "loop", model, q, model.link_names[1], model.link_names[-1])
    coupling = random_coupling(rng, "gear", model, q)
    single = [joint.name for joint in robot.joints if len(joint.labels) == 1]
    joints = tuple(replace(joint, mimic=Mimic(single[0], 2.0, 0.1)) if joint.name == single[1] else joint
                   for joint in robot.joints)
    return replace(robot, joints=joints, loops=(loop,), couplings=() if coupling is None else (coupling,))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", [lambda seed: random_robot(seed, 11, base="floating" if seed % 2 else "fixed"), with_loops])
def test_a_changed_copy_is_what_the_changed_description_gives(make, seed):
    robot = make(seed)
    model = ld.build(robot)
    mark = ModelValue("mark")
    model.cached(mark, lambda: "of the old model")
    changes = changes_of(model, np.random.default_rng(seed))
    found, expected = model.with_changes(**changes), ld.build(description_with(robot, changes))
    assert found == expected and set(found.warnings) == set(expected.warnings)
    assert found.cached(mark, lambda: "of the new model") == "of the new model"
    assert found != model
    for name, x in expected._arrays._asdict().items():
        assert np.array_equal(getattr(found._arrays, name), x, equal_nan=True), name          # integers as floats
    back = model.with_changes()
    assert back == model and back is not model


def test_a_changed_copy_computes_with_its_own_numbers():
    """With generic kernels, and after calls that filled the cache of the first model."""
    model = ld.build(PENDULUM)
    before = ld.gravity_force(model, [0.3])
    heavy = model.with_changes(mass={"hand": 2.0}, gravity=[0, 0, -1.62])
    assert np.allclose(before, (0.5 * 1.0 + 1.0 * 0.5) * 9.81 * np.sin(0.3))
    assert np.allclose(ld.gravity_force(heavy, [0.3]), (1.0 * 0.5 + 2.0 * 1.0) * 1.62 * np.sin(0.3))
    assert np.allclose(ld.gravity_force(model, [0.3]), before)
    assert np.allclose(ld.mass_matrix(heavy, [0.3]), 0.1 + 0.25 + 2.0)
    assert heavy.with_changes(damping={"shoulder": 0.0}).has_passive_forces is False


def test_a_changed_mechanism_keeps_its_loops():
    model, q = n_bar(4)
    light = model.with_changes(mass={"bar0": 0.1}, damping={"pin0": 2.0})
    scratch = ld.build(replace(model.description, links=tuple(replace(link, mass=0.1) if link.name == "bar0" else link
                                                              for link in model.description.links),
                               joints=tuple(replace(j, coordinates=(replace(j.coordinates[0], damping=2.0),)) if j.name == "pin0"
                                            else j for j in model.description.joints)))
    state = q, np.zeros(4), [1.0, 0.2, 0.0, 0.0]
    assert np.array_equal(ld.constrained_forward_dynamics(light, *state).a, ld.constrained_forward_dynamics(scratch, *state).a)
    assert light.spanning_tree() == scratch.spanning_tree()


@pytest.mark.parametrize(("changes", "error", "text"), [
    ({"mass": {"hnad": 2.0}}, ld.NameLookupError, "no link 'hnad'; did you mean 'hand'?"),
    ({"damping": {"sholder": 2.0}}, ld.NameLookupError, "no joint or coordinate 'sholder'; did you mean 'shoulder'?"),
    ({"damping": {"wrist": 2.0}}, ld.NameLookupError, "no joint or coordinate 'wrist'"),
    ({"origin": {"rist": np.eye(4)}}, ld.NameLookupError, "no joint 'rist'; did you mean 'wrist'?"),
    ({"mass": {"hand": -1.0}}, ld.ModelError, 'with_changes: link "hand", mass: negative mass: expected zero or more, got -1.0'),
    ({"mass": {"hand": np.nan}}, ld.ModelError, "not a finite number in the mass"),
    ({"mass": {"hand": "heavy"}}, ld.ModelError, r"wrong mass: expected a number, got \('heavy',\)"),
    ({"mass": 2.0}, ld.ModelError, "mass is given by name: expected a dict such as {'name': value}, got 2.0"),
    ({"com": {"hand": [0.0, 0.0]}}, ld.ModelError, "wrong centre of mass"),
    ({"inertia": {"upper": np.diag([1.0, 1.0, -1.0])}}, ld.ModelError, "not positive semidefinite"),
    ({"inertia": {"hand": -np.eye(3)}}, ld.ModelError, "not positive semidefinite"),
    ({"inertia": {"upper": [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}}, ld.ModelError, "not symmetric"),
    ({"origin": {"wrist": 2 * np.eye(4)}}, ld.ModelError, "the origin is not a pose"),
    ({"origin": {"wrist": [0.0, 0.0, 0.1]}}, ld.ModelError, "a position does not determine the rotation of the origin"),
    ({"origin": {"wrist": np.diag([2.0, 1.0, 1.0, 1.0])}}, ld.ModelError, "not a rotation matrix"),
    ({"friction": {"shoulder": -0.1}}, ld.ModelError, "negative friction"),
    ({"friction": {"shoulder": [0.1, 0.2]}}, ld.ModelError, "wrong friction: expected one number, or 1, got 2"),
    ({"lower": {"shoulder": 3.0}}, ld.ModelError, "the limits are swapped"),
    ({"gravity": [0.0, np.inf, 0.0]}, ld.ModelError, "not a finite number in the gravity"),
])
def test_numbers_that_a_robot_cannot_have_are_refused(changes, error, text):
    with pytest.raises(error, match=text):
        ld.build(PENDULUM).with_changes(**changes)


def test_a_link_without_inertia_has_a_warning_until_it_gets_one():
    model = ld.build(PENDULUM)
    bare = model.with_changes(mass={"upper": 0.0, "hand": 0.0}, inertia={"upper": np.zeros(6)})
    new, = set(bare.warnings) - set(model.warnings)
    assert new.code == "no-inertia" and not bare.moves_inertia
    again = bare.with_changes(mass={"upper": 1.0})
    assert again.moves_inertia and "no-inertia" not in {warning.code for warning in again.warnings}


def test_three_numbers_are_the_diagonal_of_an_inertia():
    model = ld.build(PENDULUM)
    three, matrix = (model.with_changes(inertia={"upper": value}) for value in ([0.1, 0.2, 0.15], np.diag([0.1, 0.2, 0.15])))
    assert three == matrix
    for value in (["a", 1, 2], [np.nan, 1, 2], [1, 2], [1, 2, 3, 4]):
        with pytest.raises(ld.ModelError, match='with_changes: link "upper", inertia'):
            model.with_changes(inertia={"upper": value})


def test_findings_follow_the_numbers():
    model = ld.build(PENDULUM)
    point = model.with_changes(inertia={"upper": np.zeros(6), "hand": np.zeros(6)}, mass={"hand": 0.0})
    assert [one.code for one in point.warnings] == ["point-mass"]
    assert point.with_changes(inertia={"upper": np.eye(3)}).warnings == model.warnings == ()


# immutable --------------------------------------------------------------------------------------------------------
def test_replace_points_to_the_right_way():
    model = ld.build(PENDULUM)
    with pytest.raises(ld.UsageError, match=r"model\.with_changes\(gravity=\.\.\., mass=\{\.\.\.\}"):
        dataclasses.replace(model, gravity=np.zeros(3))
    with pytest.raises(ld.UsageError, match=r"ld\.build"):
        ld.Model()
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.gravity = np.zeros(3)


@pytest.mark.parametrize("through", [lambda model: model, lambda model: pickle.loads(pickle.dumps(model)), copy.copy,
                                     copy.deepcopy, lambda model: model.spanning_tree(),
                                     lambda model: model.with_changes(gravity=[0, 0, 0])])
def test_arrays_of_a_model_are_read_only(through):
    model = through(ld.build(with_loops(3)))
    arrays = {name: x for name, x in vars(model).items() if isinstance(x, np.ndarray)} | {"paths": model.paths}
    arrays |= {f"{one.name}.{name}": x for one in (*model.joints, *model.constraints) for name, x in vars(one).items()
               if isinstance(x, np.ndarray)}
    assert len(arrays) > 12
    for name, x in arrays.items():
        assert not x.flags.writeable, name


def test_a_model_is_equal_after_unpickling_and_copying():
    model = ld.build(with_loops(2))
    model.spanning_tree()
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert other == model and hash(other) == hash(model) and not other._cache
    assert model.with_changes(gravity=[0, 0, 1]) != model
