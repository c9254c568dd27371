"""Many different scenarios in one process: what a model keeps of them is bounded, and a model that no one holds is freed."""
import gc
import weakref

import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen import specialize
from liedyn.model.description import Coordinate, Joint
from liedyn.model.links import Link

PENDULUM = ld.Robot("pendulum", (Link("arm", 1.0, (0.0, 0.0, -0.5), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)),), (
    Joint("hinge", "continuous", "world", "arm", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate(damping=0.1),)),))


def batches() -> int:
    gc.collect()
    return sum(type(one) is specialize.GeneratedBatchFunction for one in gc.get_objects())


def roll(model, k: int):
    events = {"e": {"when": "q(hinge)", "value": 0.1 + 0.01 * k, "do": "stop"}}
    return ld.rollout(model, [0.3], [0.0], dt=1e-2, steps=4, events=events)


def stiff(model, k: int):
    return ld.simulate(model, duration=0.02, q0=[0.3], method="rodas5p", tau={"hinge": f"{k + 1} * sin(t) - {k + 1} * q"})


@pytest.mark.parametrize("run", [roll, stiff])
def test_a_model_keeps_the_code_of_its_last_scenarios(run, monkeypatch):
    monkeypatch.setattr(specialize, "MAX_CACHED_SCENARIOS", 4)
    model = ld.build(PENDULUM)
    first, before = run(model, 0), batches()
    for k in range(1, 12):
        run(model, k)
    assert len(model._cache.recent) <= 4
    assert batches() <= before + 4 * 3                                  # a rollout has up to three functions
    again = run(model, 0)                                               # loaded again
    assert np.array_equal(again.q, first.q) and np.array_equal(again.v, first.v)


@pytest.mark.parametrize("run", [roll, stiff])
def test_the_last_scenario_stays(run):
    model = ld.build(PENDULUM)
    run(model, 0)
    kept = dict(model._cache.recent)
    run(model, 0)
    assert model._cache.recent.keys() == kept.keys()
    assert all(model._cache.recent[key] is one for key, one in kept.items())


def eventful(model, k: int):
    return ld.simulate(model, duration=0.1, events={"e": {"at": 0.05, "do": "record"}})


@pytest.mark.parametrize("run", [stiff, eventful])
def test_results_are_freed_without_collecting_garbage(run):
    gc.collect()
    gc.disable()
    try:
        held = weakref.ref(run(ld.build(PENDULUM), 0))
        assert held() is None
    finally:
        gc.enable()


def test_the_result_of_a_run_that_diverged_is_freed_without_collecting_garbage():
    gc.collect()
    gc.disable()
    try:
        held = None
        try:
            ld.simulate(ld.build(PENDULUM), duration=1, tau={"hinge": "1e4*exp(3000*t)"})
        except ld.ComputationError as error:
            held = weakref.ref(error.result)
        assert held is not None and held() is None
    finally:
        gc.enable()


def test_a_model_that_nobody_holds_is_freed():
    model = ld.build(PENDULUM)
    held = weakref.ref(model)
    for run in (roll, stiff):
        run(model, 0)
    ld.inverse_dynamics(model, [0.1], [0.0], [0.0])
    model.spanning_tree()
    del model
    gc.collect()
    assert held() is None
