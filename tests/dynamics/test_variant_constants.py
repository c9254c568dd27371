"""Variants from arrays of parameters by name: equal to robots that are built one by one, with errors that name the parameter."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.dynamics.model_parameters import parameter_value, with_parameters
from liedyn.joints.joint_model import tree_views
from zoo import ROBOTS, model_of, state

COUNT = 3
FIELDS = ("armature", "damping", "friction", "stiffness", "rest")


def random_values(model, rng):
    """Arrays for each link, each coordinate and gravity."""
    links = {link.name: link for link in model.description.links if link.mass}
    arrays = {f"mass.{name}": rng.uniform(0.5, 2.0, COUNT) * link.mass for name, link in links.items()}
    arrays |= {f"com.{name}": np.array(link.com) + 0.01 * rng.standard_normal((COUNT, 3)) for name, link in links.items()}
    arrays |= {f"inertia.{name}": rng.uniform(0.9, 1.1, (COUNT, 1)) * np.array(link.inertia) for name, link in links.items()}
    known = ld.parameter_names(model)
    described = {joint.name for joint in model.description.joints}
    arrays |= {name: rng.uniform(0.1, 1.0, COUNT) for name in known
               if name.partition(".")[0] in FIELDS and name.split(".")[1] in described}
    return arrays | {"gravity": rng.standard_normal((COUNT, 3)) - [0.0, 0.0, 9.0]}


def edited(model, arrays, k):
    """The robot with the values of row k, by `with_changes`."""
    changes = {}
    for name, x in arrays.items():
        head, _, element = name.partition(".")
        if head == "gravity":
            changes["gravity"] = x[k]
        else:
            changes.setdefault(head, {})[element] = x[k]
    return model.with_changes(**changes)


def check_equal(model, variants, robots, worst, label):
    """Compare constants and dynamics of variants with those of robots."""
    q, v, a, tau = state(model, 2, (len(robots),))
    if model.nc:
        q, v = np.tile(model.neutral(), (len(robots), 1)), 0.0 * v
    for k, robot in enumerate(robots):
        mine, other = (tree_views.py_func(model.index, x) for x in (variants.constants_of(k), robot.constants))
        for name in set(mine._fields[10:]) - {"floor"}:
            x, y = getattr(mine, name), getattr(other, name)
            assert worst(f"constants by name: {name}", relative(x, y) if y.any() else np.abs(x).max(initial=0.0), label) < 1e-12
        np.testing.assert_allclose(mine.floor, other.floor, rtol=0.9)          # their size matters
    for function, arrays in (("inverse_dynamics", (q, v, a)), ("forward_dynamics", (q, v, tau))):
        found = getattr(variants, function)(*arrays)
        expected = np.array([getattr(ld, function)(robot, *(x[k] for x in arrays)) for k, robot in enumerate(robots)])
        assert worst(f"variants by name: {function}", relative(found, expected), label) < 1e-11


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_are_those_that_are_built(name, worst, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    model, rng = model_of(name), np.random.default_rng(3)
    arrays = random_values(model, rng)
    check_equal(model, ld.Variants(model, arrays), [edited(model, arrays, k) for k in range(COUNT)], worst, name)


@pytest.mark.parametrize("name", ["helical", "every kind, floating"])
def test_placements_screws_and_pitches(name, worst, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    model, rng = model_of(name), np.random.default_rng(3)
    names = [key for key in ld.parameter_names(model) if key.partition(".")[0] in ("origin", "screw", "pitch", "mass")]
    arrays = {key: parameter_value(model, key) + 0.1 * rng.uniform(0.5, 1.0, COUNT) for key in names[::3]}
    robots = [ld.build(with_parameters(model, {key: x[k] for key, x in arrays.items()})) for k in range(COUNT)]
    check_equal(robots[0], ld.Variants(model, arrays), robots, worst, name)


@pytest.mark.parametrize("robot", ["robots/four_bar.yaml", "robots/hand.yaml", "robots/quadruped.yaml"])
def test_rollouts_with_loops_couplings_and_contacts(robot, worst, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model, rng = ld.load(robot), np.random.default_rng(4)
    arrays = {f"mass.{link.name}": rng.uniform(0.5, 2.0, COUNT) * link.mass for link in model.description.links if link.mass}
    q, options = model.neutral(), {"dt": 1e-4, "steps": 50, "method": "semi_implicit"}
    if model.nc:
        q = ld.assemble(model, q).q
    if "quadruped" in robot:
        options["contacts"] = {"links": {"*_foot": {"sphere": {"radius": 0.0175}}}, "sink": 0.003, "friction_speed": 0.1}
        q[model.q_index("base")] = 0, 0, 0.3, 0, 0, 0, 1
        for leg in ("FL", "FR", "HL", "HR"):
            q[model.q_index(f"{leg}_hip")], q[model.q_index(f"{leg}_knee")] = 0.8, -1.6
        q[2] -= ld.link_pose(model, q, "FL_foot")[2, 3] - 0.0165
    found = ld.rollout(ld.Variants(model, arrays), q, np.zeros(model.nv), **options)
    each = [ld.rollout(edited(model, arrays, k), q, np.zeros(model.nv), **options) for k in range(COUNT)]
    assert worst("rollouts of variants by name", relative(found.q, np.array([run.q for run in each])), model.name) < 1e-12
    assert np.abs(found.q[0, -1] - found.q[1, -1]).max() > 1e-9
    if "contacts" in options:
        assert relative(found.contacts.force, np.array([run.contacts.force for run in each])) < 1e-9


def test_zeros_in_some_robots_only(worst):
    """A joint that moves no inertia in one robot only: its error, and the results of the others."""
    model = ld.build(ROBOTS["revolute"]).with_changes(armature=dict.fromkeys(model_of("revolute").v_names, 0.0))
    last = model.link_names[-1]
    inertia = np.array([link.inertia for link in model.description.links][-1])
    scale = np.array([1.0, 0.0, 2.0])
    q, v, _, tau = state(model, 2, (COUNT,))
    arrays = {f"mass.{last}": scale, f"inertia.{last}": scale[:, None] * inertia, "damping.*": [0.0, 0.2, 0.0]}
    variants = ld.Variants(model, arrays)
    errors = {}
    found = variants.forward_dynamics(q, v, tau, on_error=lambda k, error: errors.update({k: type(error)}))
    assert errors == {1: ld.ComputationError}
    for k in (0, 2):
        robot = model.with_changes(mass={last: scale[k]}, inertia={last: scale[k] * inertia},
                                   damping=dict.fromkeys(model.v_names, 0.0))
        expected = ld.forward_dynamics(robot, q[k], v[k], tau[k])
        assert worst("variants by name, one without inertia", relative(found[k], expected)) < 1e-11


def test_patterns_groups_and_precedence():
    model = ld.load("robots/double_pendulum.yaml")
    robots = ld.Variants(model, {"friction.*": [0.1, 0.2], "friction.elbow": 0.7, "mass.*": [[1.0, 2.0, 3.0]], "com.tip.z": -0.4,
                                 "com.tip": [[0.1, 0.2, 0.3], [0.0, 0.0, 0.0]]})
    assert len(robots) == 2
    first, second = (tree_views.py_func(model.index, robots.constants_of(k)) for k in range(2))
    assert first.friction.tolist() == [0.1, 0.7] and second.friction.tolist() == [0.2, 0.7]
    assert sum(first.I[::10]) == 6.0
    expected = model.with_changes(mass={"upper": 1.0, "lower": 2.0, "tip": 3.0}, com={"tip": [0.1, 0.2, -0.4]},
                                  friction={"shoulder": 0.1, "elbow": 0.7})
    np.testing.assert_allclose(robots.constants_of(0), expected.constants, rtol=1e-14, atol=1e-16)


def test_patterns_leave_the_floating_base_alone():
    """Friction of the base would act between the robot and the world."""
    model = ld.load("robots/quadruped.yaml")
    robots = ld.Variants(model, {"friction.*": [0.1, 0.2]})
    friction = tree_views.py_func(model.index, robots.constants_of(1)).friction
    assert not friction[:6].any() and (friction[6:] == 0.2).all()
    assert (tree_views.py_func(model.index, ld.Variants(model, {"friction.base.wx": [0.5, 0.6]}).constants_of(1)).friction[0]
            == 0.6)


@pytest.mark.parametrize(("arrays", "error", "message"), [
    ({"mass.uper": [1.0]}, ld.NameLookupError, "no parameter 'mass.uper'; did you mean 'mass.upper'"),
    ({3: [1.0]}, ld.NameLookupError, "the name of a parameter is text: got int 3"),
    ({"masses.*": [1.0]}, ld.NameLookupError, r"no parameter matches 'masses.\*'; did you mean"),
    ({"com.tipp": [[0, 0, 1]]}, ld.NameLookupError, "did you mean 'com.tip'"),
    ({"mass.upper": [1.0, -0.5]}, ld.ModelError, "mass.upper of robot 1 is negative: expected zero or more, got -0.5"),
    ({"friction.*": [1.0, np.nan]}, ld.ModelError, "friction.shoulder of robot 1 is not finite"),
    ({"rest.elbow": [1e300]}, ld.ModelError, "rest.elbow of robot 0 is too large"),
    ({"inertia.upper": [[1, 0, 0, 1, 0, 1], [-1, 0, 0, 1, 0, 1]]}, ld.ModelError,
     "robot 1: the inertia is not positive semidefinite"),
    ({"mass.upper": [1, 2], "mass.lower": [1, 2, 3]}, ld.ShapeError, "got mass.upper: 2, mass.lower: 3"),
    ({"com.tip": [0.1, 0.2]}, ld.ShapeError,
     r"com.tip has the wrong shape: expected \(N, 3\) for N robots \(com.tip.x"),
    ({"mass.*": np.ones((2, 2))}, ld.ShapeError, r"expected \(N,\) or \(N, 3\) for N robots \(mass.upper, mass.lower, mass.tip"),
    ({"mass.upper": "heavy"}, ld.ShapeError, "mass.upper is not an array of numbers"),
    ({"mass.*er": 1.0, "mass.u*r": [2.0, 3.0]}, ld.UsageError, "mass.upper matches two patterns of the same length"),
    ({}, ld.UsageError, "expected for example {'mass.hand': masses"),
    ([1.0], ld.UsageError, "got list"),
])
def test_errors_name_the_parameter(arrays, error, message):
    with pytest.raises(error, match=message):
        ld.Variants(ld.load("robots/double_pendulum.yaml"), arrays)


def test_errors_of_models():
    model = ld.load("robots/double_pendulum.yaml")
    with pytest.raises(ld.ModelError, match="variants of one model need parameters"):
        ld.Variants(model)
    with pytest.raises(ld.UsageError, match="parameters are those of one model"):
        ld.Variants([model], {"mass.upper": [1.0]})
