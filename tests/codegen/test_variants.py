"""Robots that differ in numbers, one a state of a batch: as each of them alone."""
import copy
import dataclasses
import pickle

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.dynamics.batching import calls
from liedyn.dynamics.variants import FUNCTIONS
from liedyn.integrators.diagnosis import fastest_motion
from liedyn.joints.joint_model import tree_views
from liedyn.numba_tools import compile_cache
from liedyn.rollouts import rollout_warnings
from zoo import ROBOTS, model_of, random_pose, state

COUNT = 11


def changed(robot, rng):
    """Return a robot of the same tree with other masses, inertias, frames, pitches, rotors, springs, losses and gravity."""
    def inertia(link):
        k = 1.0 + 0.3 * rng.random()
        return dataclasses.replace(link, mass=link.mass * k, inertia=tuple(k * x for x in link.inertia),
                                   com=tuple(x + 0.01 * rng.standard_normal() for x in link.com) if link.mass else link.com)

    def coordinate(one):
        keys = "damping", "friction", "armature", "stiffness", "rest"
        return dataclasses.replace(one, **{key: getattr(one, key) * rng.uniform(0.5, 2) for key in keys})

    def joint(one):
        return dataclasses.replace(one, origin=random_pose(rng), pitch=one.pitch * rng.uniform(0.5, 2),
                                   coordinates=tuple(map(coordinate, one.coordinates)))
    return dataclasses.replace(robot, links=tuple(map(inertia, robot.links)), joints=tuple(map(joint, robot.joints)),
                               gravity=(0.1 * rng.random(), 0.0, -9.0 - rng.random()))


def variants_of(name):
    rng = np.random.default_rng(5)
    return [ld.build(changed(ROBOTS[name], rng)) for _ in range(COUNT)]


def arguments(model, function, given, k=slice(None)):
    q, v, a, tau = (x[k] for x in given)
    link = model.link_names[-1]
    mask = np.arange(model.nv) % 2 == 0
    return {"inverse_dynamics": (q, v, a), "forward_dynamics": (q, v, tau), "hybrid_dynamics": (q, v, a, tau, mask),
            "bias_force": (q, v), "gravity_force": (q,), "link_twist": (q, v, link), "link_acceleration": (q, v, a, link),
            "jacobian": (q, link), "energy": (q, v), "momentum": (q, v), "coriolis_matrix": (q, v),
            "inverse_dynamics_derivatives": (q, v, a), "forward_dynamics_derivatives": (q, v, tau),
            "hybrid_dynamics_derivatives": (q, v, a, tau, mask)}.get(function, (q,))


def arrays(result):
    return [np.asarray(x, dtype=float) for x in (result if isinstance(result, tuple) else [result])]


@pytest.mark.parametrize("code", ["auto", "generic"])
@pytest.mark.parametrize("name", ["universal", "every kind, floating"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_state_is_that_of_its_robot(name, function, code, monkeypatch, worst):
    if code == "auto" and name != "universal" and "dynamics" not in function:
        pytest.skip("long lines compile for long")
    models, given = variants_of(name), state(model_of(name), 2, (COUNT,))
    monkeypatch.setenv("LIEDYN_CODE", code)
    found = arrays(getattr(ld.Variants(models), function)(*arguments(models[0], function, given)))
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    for k, model in enumerate(models):
        expected = arrays(getattr(ld, function)(model, *arguments(model, function, given, k)))
        for x, y in zip(found, expected, strict=True):
            if x.shape != y.shape:                                      # a mask is one for all
                bound = 1e-11 if function in ("forward_dynamics_derivatives", "hybrid_dynamics_derivatives") else 1e-13
                assert worst(f"variants by {code}: {function}", relative(x[k], y), name) < bound


def test_variants_differ():
    """Otherwise the test above would compare one robot with itself."""
    models, (q, v, a, _) = variants_of("universal"), state(model_of("universal"), 2, (COUNT,))
    tau = ld.Variants(models).inverse_dynamics(q[0], v[0], np.broadcast_to(a[0], a.shape))
    assert np.abs(tau - tau[0])[1:].min() > 1e-6


def test_errors_are_told():
    models, (q, v, a, _) = variants_of("universal"), state(model_of("universal"), 2, (COUNT,))
    variants = ld.Variants(models)
    with pytest.raises(ld.ShapeError, match="there are 11 variants: expected arrays with 11 states, got 10 states"):
        variants.inverse_dynamics(q[1:], v[1:], a[1:])
    with pytest.raises(ld.ShapeError, match="got one state"):
        variants.inverse_dynamics(q[0], v[0], a[0])
    with pytest.raises(ld.LiedynError, match="unknown function 'regressor' of variants"):
        variants.regressor(q, v, a)
    with pytest.raises(ld.ModelError, match="variant 1 has another structure"):
        ld.Variants([models[0], model_of("planar")])
    bars = ld.load("robots/four_bar.yaml")
    with pytest.raises(ld.ModelError, match="variant 1 has other loops, couplings or mimics than variant 0"):
        ld.Variants([bars, bars.spanning_tree()])
    with pytest.raises(ld.ModelError, match="there is no variant"):
        ld.Variants([])
    v[4, 2] = np.nan
    with pytest.raises(ld.LiedynError, match="of state 4 is not finite"):
        variants.inverse_dynamics(q, v, a)
    assert "11 robots" in repr(variants) and len(variants) == COUNT and "forward_dynamics" in dir(variants)


@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix", "inverse_dynamics_derivatives"])
def test_one_state_was_computed_for_robot_0_alone_where_that_had_a_line_for_it(function, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    models, given = variants_of("universal"), state(model_of("universal"), 2, (COUNT,))
    one = arguments(models[0], function, given, 0)
    getattr(ld, function)(models[0], *one)
    with pytest.raises(ld.ShapeError, match="there are 11 variants: expected arrays with 11 states, got one state"):
        getattr(ld.Variants(models), function)(*one)


def in_turn(robot, key):
    """Return three robots: without passive forces and armature, with them at the first coordinate, and at the last one."""
    model = ld.build(robot)
    zero = dict.fromkeys(model.v_names, 0.0)
    bare = model.with_changes(damping=zero, friction=zero, armature=zero, stiffness=zero)
    return [bare, *(bare.with_changes(**{key: {name: 0.3}}) for name in (model.v_names[0], model.v_names[-1]))]


@pytest.mark.parametrize("code", ["auto", "generic"])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("key", ["damping", "friction", "armature", "stiffness"])
def test_what_acts_in_one_robot_may_be_zero_in_another(key, first, code, monkeypatch, worst):
    models = in_turn(ROBOTS["universal"], key)
    models = [*models[first:], *models[:first]]
    q, v, a, tau = (x[:3] for x in state(model_of("universal"), 2, (3,)))
    variants = ld.Variants(models)
    for function, arrays in (("inverse_dynamics", (q, v, a)), ("forward_dynamics", (q, v, tau))):
        monkeypatch.setenv("LIEDYN_CODE", code)
        found = getattr(variants, function)(*arrays)
        monkeypatch.setenv("LIEDYN_CODE", "generic")
        each = [getattr(ld, function)(model, *(x[k] for x in arrays)) for k, model in enumerate(models)]
        copies = [getattr(ld, function)(variants.robot(k), *(x[k] for x in arrays)) for k in range(3)]
        assert np.abs(each[0] - getattr(ld, function)(models[1], *(x[0] for x in arrays))).max() > 1e-6
        for k, expected in enumerate(each):
            for name, x in (("variants", found[k]), ("robot", copies[k])):
                assert worst(f"{name} with and without {key} by {code}", relative(x, expected), function) < 1e-12


@pytest.mark.parametrize("function", ["forward_dynamics_derivatives", "hybrid_dynamics_derivatives"])
@pytest.mark.parametrize("key", ["damping", "armature"])
def test_derivatives_of_bases_with_and_without_passive_forces(key, function, monkeypatch, worst):
    """Bases without passive forces have a closed form. One code computes both."""
    monkeypatch.setattr("liedyn.dynamics.variants.compile_entry_point", lambda *_: pytest.fail("generic kernels"))
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    models = in_turn(ROBOTS["free"], key)
    given = state(models[0], 2, (3,))
    found = arrays(getattr(ld.Variants(models), function)(*arguments(models[0], function, given)))
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    for k, model in enumerate(models):
        expected = arrays(getattr(ld, function)(model, *arguments(model, function, given, k)))
        for x, y in zip(found, expected, strict=True):
            if x.shape != y.shape:
                assert worst(f"{function} of variants of a base with and without {key}", relative(x[k], y)) < 1e-11


@pytest.mark.parametrize("code", ["auto", "generic"])
def test_states_and_robots_that_fail_are_nan_in_the_others_results(code, monkeypatch):
    """State 4 is not finite, robot 9 has a joint that moves no mass."""
    monkeypatch.setenv("LIEDYN_CODE", code)
    model, (q, v, tau, _) = ld.build(ROBOTS["revolute"]), state(model_of("revolute"), 2, (COUNT,))
    model = model.with_changes(armature=dict.fromkeys(model.v_names, 0.0))
    robots = [model.with_changes(gravity=[0.0, 0.0, -k]) for k in range(COUNT)]
    numbers = np.array([robot.constants for robot in robots])
    empty = tree_views.py_func(model.index, numbers[9])
    empty.I[-10:], empty.J[-10:] = 0.0, 0.0
    v[4, 0], errors = np.nan, {}
    variants = ld.Variants.of_numbers(model, range(len(model.constants)), numbers)
    found = variants.forward_dynamics(q, v, tau, on_error=lambda k, error: errors.update({k: type(error)}))
    assert errors == {4: ld.ConfigurationError, 9: ld.ComputationError}
    for k, robot in enumerate(robots):
        expected = np.full(robot.nv, np.nan) if k in errors else ld.forward_dynamics(robot, q[k], v[k], tau[k])
        np.testing.assert_allclose(found[k], expected, rtol=1e-10)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("key", ["damping", "friction", "armature"])
@pytest.mark.parametrize("name", ["double_pendulum", "four_bar"])
def test_rollouts_with_what_acts_in_one_robot_alone(name, key, first, worst):
    models = in_turn(ld.load_description(f"robots/{name}.yaml"), key)
    models = [*models[first:], *models[:first]]
    q = ld.project_configuration(models[0], np.full(models[0].nq, 0.3)) if models[0].nc else [0.3, -0.2]
    options = {"v0": np.zeros(models[0].nv), "dt": 2e-4, "steps": 100}
    found = ld.rollout(ld.Variants(models), q, **options)
    each = np.array([ld.rollout(model, q, **options).q for model in models])
    assert np.abs(each[0, -1] - each[1, -1]).max() > 1e-6
    assert worst(f"rollouts of variants with and without {key}", relative(found.q, each), name) < 1e-11


@pytest.fixture
def names(monkeypatch):
    """Return the names of generated code that is built or loaded during a test, by entry point."""
    found, load_or_build = {}, compile_cache.load_or_build

    def named(place, name, make):
        found.setdefault(place.removeprefix("generated.").rpartition("-")[0], []).append(name)
        return load_or_build(place, name, make)
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    monkeypatch.setattr(compile_cache, "load_or_build", named)
    return found


@pytest.mark.parametrize(("entry", "compute"), [
    ("hybrid_batch", lambda robots, q, v, tau: robots.forward_dynamics(q, v, tau)),
    ("right_hand_side", lambda robots, q, v, tau: ld.rollout(robots, q[0], v[0], dt=1e-3, steps=1).v[:, -1])])
def test_other_numbers_of_the_same_constants_use_the_same_code(entry, compute, names):
    models, (q, v, tau, _) = variants_of("universal"), state(model_of("universal"), 2, (2,))
    results = [compute(ld.Variants(pair), q, v, tau) for pair in (models[:2], models[2:4])]
    first, second = np.split(np.array(names[entry]), 2)
    np.testing.assert_array_equal(first, second)
    assert np.abs(results[0] - results[1]).max() > 1e-9


def test_other_numbers_of_other_constants_use_other_code(names):
    model, (q, *_) = model_of("universal"), state(model_of("universal"), 2, (2,))
    for one in (model, model.with_changes(mass={model.link_names[-1]: 2.5})):
        ld.Variants([one, one.with_changes(gravity=[0.0, 0.1, -1.6])]).gravity_force(q)
    assert len(set(names["inverse_batch"])) == 2


def test_threads_and_remainders(monkeypatch):
    """Gravity forces are linear in gravity. Three threads compute blocks of eight of 1003 robots."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    monkeypatch.setattr(calls, "chunks", lambda count, *_: [0, 8, 504, count])
    model, (q, *_) = model_of("universal"), state(model_of("universal"), 2, (1003,))
    g = np.linspace(1.0, 2.0, len(q))
    robots = [model.with_changes(gravity=[0.0, 0.0, x]) for x in g]
    expected = g[:, None] * ld.gravity_force(robots[0].with_changes(gravity=[0.0, 0.0, 1.0]), q)
    assert relative(ld.Variants(robots).gravity_force(q), expected) < 1e-13


def test_warnings_of_a_training_loop_are_computed_once_for_the_same_variants(monkeypatch):
    calls_of = []
    monkeypatch.setattr(rollout_warnings, "fastest_motion",
                        lambda *arguments: calls_of.append(arguments) or fastest_motion(*arguments))
    model = ld.load("robots/double_pendulum.yaml")
    first, second = (ld.Variants([model, model.with_changes(mass={"upper": m})]) for m in (2.0, 3.0))
    counts = []
    for robots in (first, first, second, first, model):
        ld.rollout(robots, [0.3, -0.2], [0.0, 0.0], dt=1e-3, steps=2)
        counts.append(len(calls_of))
    assert np.diff([0, *counts]).astype(bool).tolist() == [True, False, True, True, True]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
                         ids=["copy", "deepcopy", "pickle"])
def test_copies_of_used_variants_compute_the_same(duplicate):
    """A pickled copy had its constants at another alignment, and generated code crashed."""
    robots = variants_of("universal")
    variants = ld.Variants(robots)
    q, v, a, _ = state(model_of("universal"), 2, (COUNT,))
    expected = variants.inverse_dynamics(q, v, a)
    for _ in range(8):                      # memory of another alignment is likely for one of them
        again = duplicate(variants)
        np.testing.assert_array_equal(again.inverse_dynamics(q, v, a), expected)


def test_a_function_that_variants_lack_is_no_attribute():
    variants = ld.Variants(variants_of("universal"))
    assert not hasattr(variants, "parameters") and getattr(variants, "parameters", None) is None
    with pytest.raises(ld.LiedynError, match="unknown function 'parameters' of variants: expected one of inverse_dynamics"):
        variants.parameters()
