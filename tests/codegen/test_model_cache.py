"""What a model keeps between calls: different questions never share a key."""
import dataclasses
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen.rhs import StageEnginesKey
from liedyn.codegen.specialize import GeneratedFunctionKey, StoredFunctionKey
from liedyn.dynamics.constraints.constrained_dynamics import ConstraintWorkspaceKey
from liedyn.dynamics.constraints.mobility import GenericRankKey
from liedyn.dynamics.inertial_parameters import ColumnPlanKey
from liedyn.model.model import Model
from liedyn.model.model_cache import ModelValue
from liedyn.rollouts.engine import RolloutKey

# two values of each field
FIELDS = {
    GeneratedFunctionKey: {"shapes": (None, ((2,),)), "content": (("entry",), ("another",)), "single": (False, True),
                           "blocks": (False, True)},
    StoredFunctionKey: {"name": ("a", "b")},
    StageEnginesKey: {"group": ((0, 1), (2,)), "content": ((True,), (False,))},
    GenericRankKey: {"prescribed": (None, b"\1")},
    ColumnPlanKey: {"passive": (True, False), "joints": (None, ("damping",))},
    ConstraintWorkspaceKey: {"thread": (1, 2), "prescribed": (b"\0", b"\1"), **dict.fromkeys(
        ("passive", "stabilized", "forced", "generic"), (True, False))},
    RolloutKey: {"pattern": (None, b"\1"), "n_inputs": (2, 3), "contacts": (None, "{}"), "prescribed": (b"\0", b"\1"),
                 "passive": (True, False), "method": ("rk4", "semi_implicit"), "places": ((), (3,)), "rows": ((), ((0,),)),
                 "events": (None, "{}"), "generated": (True, False), "single": (False, True)},
}


def variations(first: dict, others: dict):
    """Return the first arguments, then those with one other value each."""
    yield first
    for name, values in others.items():
        for value in values if isinstance(values, list) else [values]:
            yield first | {name: value}


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_each_field_of_a_key_distinguishes_values(kind):
    """A new field needs two values in FIELDS."""
    assert set(FIELDS[kind]) == {one.name for one in dataclasses.fields(kind)}
    first, other = ({name: values[k] for name, values in FIELDS[kind].items()} for k in (0, 1))
    model = ld.load("robots/double_pendulum.yaml")
    values = [model.cached(kind(**fields), object) for fields in variations(first, other)]
    assert len(set(map(id, values))) == len(values) == len(first) + 1
    assert [model.cached(kind(**fields), object) for fields in variations(first, other)] == values


def test_keys_of_other_classes_and_of_the_model_alone_are_never_equal():
    model = ld.load("robots/double_pendulum.yaml")
    one, other = ModelValue("scales"), ModelValue("scales")
    keys = one, other, GenericRankKey(None), StoredFunctionKey(None), ColumnPlanKey(None, None), GeneratedFunctionKey(None, None)
    assert len({id(model.cached(key, object)) for key in keys}) == len(keys)


ROLLOUT = {"passive": True, "method": "rk4", "prescribed": None, "feedback": None, "contacts": None, "events": None,
           "variants": None, "dtype": "float64"}
OTHER_ROLLOUTS = {
    "passive": False, "method": "semi_implicit", "prescribed": [np.array([True, False]), np.array([False, True])],
    "feedback": [ld.Feedback.pd([2.0, 1.0], [0.4, 0.1], target=[0.5, 0.0]),
                 ld.Feedback(np.full((2, 4), 0.1), [0.5, 0.0])],
    "contacts": [{"links": {"lower": {"sphere": {"radius": r}}}} for r in (0.02, 0.03)],
    "events": [{"e": {"when": when, "value": value, "direction": direction, "do": do}} for when, value, direction, do in (
        ("q(shoulder)", 0.2, "falling", "stop"), ("q(elbow)", 0.2, "falling", "stop"), ("q(shoulder)", 0.25, "falling", "stop"),
        ("q(shoulder)", 0.2, "rising", "stop"), ("q(shoulder)", 0.2, "falling", "record"))],
    "variants": ["mass", "damping"], "dtype": "float32"}


def rollout_of(model, **arguments):
    """Return states of a rollout of one robot or of two."""
    changed = arguments.pop("variants")
    if changed:
        name = "lower" if changed == "mass" else "elbow"
        model = ld.Variants([model, model.with_changes(**{changed: {name: 0.7}})])
    if arguments["prescribed"] is not None:
        arguments["a"] = [0.3, -0.4]
    found = ld.rollout(model, [0.3, 0.2], [-0.3, 0.5], dt=0.01, steps=30, **arguments)
    return np.concatenate([found.q, found.v], axis=-1)


def keys_of(monkeypatch, question) -> list:
    """Return the cache keys that a call looks up, the last one first."""
    keys, cached = [], Model.cached
    def spy(model, key, *others, **options):
        keys.append(key)
        return cached(model, key, *others, **options)
    monkeypatch.setattr(Model, "cached", spy)
    question()
    monkeypatch.undo()
    return keys


def test_different_rollouts_have_different_keys_and_the_results_of_a_new_model(monkeypatch):
    shared, results, keys = ld.load("robots/double_pendulum.yaml"), [], set()
    questions = list(variations(ROLLOUT, OTHER_ROLLOUTS))
    for arguments in questions:
        found = keys_of(monkeypatch, lambda: results.append(rollout_of(shared, **arguments)))        # noqa: B023
        keys |= {key for key in found if isinstance(key, RolloutKey)}
    assert len(keys) == len(questions)
    for arguments, found in zip(questions, results, strict=True):
        assert np.array_equal(rollout_of(shared, **arguments), found, equal_nan=True)
        assert np.array_equal(rollout_of(ld.load("robots/double_pendulum.yaml"), **arguments), found, equal_nan=True), arguments


@pytest.mark.parametrize("key, given", [
    ("events", lambda x: {"e": {"when": "q(shoulder)", "value": x, "do": "stop"}}),
    ("contacts", lambda x: {"links": {"lower": {"sphere": {"radius": x}}}})])
def test_arrays_that_print_alike_do_not_share_a_rollout(key, given):
    """The representation of arrays has eight digits."""
    model, values = ld.load("robots/double_pendulum.yaml"), [np.array(0.1), np.array(0.1 + 3e-10)]
    texts = [repr(given(x)) for x in values]
    assert texts[0] == texts[1]
    keys = set()
    with pytest.MonkeyPatch.context() as patch:
        for x in values:
            keys |= {one for one in keys_of(patch, lambda: rollout_of(model, **ROLLOUT | {key: given(x)}))       # noqa: B023
                     if isinstance(one, RolloutKey)}
    assert len(keys) == 2


MASKS = [np.array(mask) for mask in ((True, False), (False, True), (True, True))]
Q, V, A, TAU = [0.3, -0.2], [1.0, 0.5], [0.4, -0.7], [0.2, 0.1]
OPEN_TREE = {
    ld.inverse_dynamics: ((Q, V, A), {"passive": False, "f_ext": {"lower": [0, 0, 0, 1, 0, 0]}}),
    ld.forward_dynamics: ((Q, V, TAU), {"passive": False}),
    ld.hybrid_dynamics: ((Q, V, A, TAU, MASKS[0]), {"passive": False}, {4: MASKS[1:]}),
    ld.inverse_dynamics_derivatives: ((Q, V, A), {"passive": False}),
    ld.forward_dynamics_derivatives: ((Q, V, TAU), {"passive": False}),
    ld.hybrid_dynamics_derivatives: ((Q, V, A, TAU, MASKS[0]), {"passive": False}, {4: MASKS[1:]}),
    ld.coriolis_matrix: ((Q, V), {"method": ["christoffel", "factorized"]}),
    ld.jacobian: ((Q, "lower"), {"frame": ["world", "local_world_aligned"]}, {1: ["upper", "tip"]}),
    ld.regressor: ((Q, V, A), {"passive": False, "joints": [("damping",), ("friction",), ("damping", "friction")]}),
    ld.higher_order_inverse_dynamics: ((Q, [V, A, V]), {"passive": False}, {1: [[[V, A]], [[V, A, V, A]]]}),
}


def flat(result) -> list:
    return [result] if isinstance(result, np.ndarray) else [x for x in result if isinstance(x, np.ndarray)]


def questions_about(entry):
    arguments, options, *changed = entry
    yield arguments, {}
    for name, values in options.items():
        for value in values if isinstance(values, list) else [values]:
            yield arguments, {name: value}
    for k, values in (changed[0] if changed else {}).items():
        for value in values:
            yield (*arguments[:k], value, *arguments[k + 1:]), {}


def arrays(arguments):
    """Return lists as arrays: calls for one state reuse functions only for arrays."""
    return [np.array(x, dtype=float) if isinstance(x, list) else x for x in arguments]


@pytest.mark.parametrize("robot, functions", [("double_pendulum", OPEN_TREE)])
def test_questions_to_one_model_are_answered_as_by_a_new_model(robot, functions):
    shared = ld.load(f"robots/{robot}.yaml")
    found = [[flat(function(shared, *arrays(given), **options)) for given, options in questions_about(entry)]
             for _ in range(2) for function, entry in functions.items()]
    expected = [[flat(function(ld.load(f"robots/{robot}.yaml"), *arrays(given), **options))
                 for given, options in questions_about(entry)] for function, entry in functions.items()] * 2
    for one, other in zip(found, expected, strict=True):
        for x, y in zip(one, other, strict=True):
            assert len(x) == len(y) and all(map(np.array_equal, x, y))


def test_one_thread_builds_a_value_and_the_others_wait_for_it():
    model, key, built, ready = ld.load("robots/double_pendulum.yaml"), StoredFunctionKey("x"), [], threading.Barrier(4)
    def build():
        built.append(object())
        return built[-1]
    found = []
    def ask():
        ready.wait()
        found.append(model.cached(key, build))
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(built) == 1 and all(x is built[0] for x in found)


def test_of_values_with_a_limit_those_used_last_are_kept():
    model = ld.load("robots/double_pendulum.yaml")
    first = [model.cached(StoredFunctionKey(name), object, limit=2) for name in "ab"]
    assert model.cached(StoredFunctionKey("a"), object, limit=2) is first[0]
    model.cached(StoredFunctionKey("c"), object, limit=2)                              # in place of b
    assert model.cached(StoredFunctionKey("a"), object, limit=2) is first[0]
    assert model.cached(StoredFunctionKey("b"), object, limit=2) is not first[1]


def test_a_cleared_cache_builds_again():
    model = ld.load("robots/four_bar.yaml")
    q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    def ask():
        return ld.constrained_forward_dynamics(model, q, np.zeros(3), np.array([0.5, 0.0, 0.0])).a
    expected = [ask(), ask()]
    assert model.single_calls and model._cache
    model.clear_cache()
    assert not model.single_calls and not model._cache
    assert all(np.array_equal(ask(), x) for x in expected)


FORK = """
import os, signal, threading
import liedyn as ld
from liedyn.model.model_cache import ModelValue

model = ld.load("robots/double_pendulum.yaml")
started, forked = threading.Event(), threading.Event()
def build():
    started.set()
    return forked.wait()
thread = threading.Thread(target=model.cached, args=(ModelValue("slow"), build))
thread.start()
started.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)                      # a child that hangs ends by it
    os._exit(0 if model.cached(ModelValue("another"), lambda: 3) == 3 else 1)
print(os.waitpid(child, 0)[1])
forked.set()
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_forked_while_a_thread_builds_a_value_can_build_others():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "0\n", done.stderr
