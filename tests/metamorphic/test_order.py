"""Runs that must agree although events, variants or samples come in another order, or on another number of threads."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from liedyn.batch.run_batch import PreparedSweep
from liedyn.dynamics.batching import threads
from liedyn.io.sweep_file import read_sweep
from metamorphic.mechanisms import MECHANISMS, SEED, State, state_of
from metamorphic.test_scenarios import limited_chain, simulate
from metamorphic.test_states import agree, results
from sweeps import DRAWN, OUTPUTS, written

THREADED = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_dynamics_derivatives:q", "link_poses", "jacobian",
            "higher_order_forward_dynamics", "constrained_forward_dynamics", "project_velocity", "constraint_jacobian")
RUN = {"impacts": {"hit": {"at": 0.012, "do": {"impact": {"joint": "p", "restitution": 0.5}}},
                   "lock": {"at": 0.035, "do": {"lock": "r"}}, "free": {"at": 0.042, "do": {"unlock": "r"}}},
       "conditions": {"turn": {"when": "v(p)", "do": "record"}, "hit": {"when": "q(r)", "value": -0.24, "do": {"impact": {
           "joint": "r", "restitution": 0.3}}}, "low": {"when": "z(b, 0.2, 0, 0)", "value": -0.13, "do": "record"},
           "late": {"at": 0.04, "do": "record"}}}


def in_order(rng, entries: dict) -> dict:
    names = list(rng.permutation(list(entries)))
    return {str(name): entries[name] for name in names}


@pytest.mark.parametrize("limits", [{}, {"limits": {"mode": "hard", "restitution": 0.4}}])
@pytest.mark.parametrize("name", RUN)
def test_events_in_another_order(name, limits):
    """They occur at different times: simultaneous ones occur in the order of the file."""
    model, rng = ld.build(limited_chain()), np.random.default_rng([SEED, 40])
    q, v = np.array([0.27, -0.2]) + rng.uniform(-0.01, 0.01, 2), np.array([2.0, -3.0])
    run, *others = (simulate(model, q, v, 1.0, events=events, **limits)
                    for events in (RUN[name], dict(reversed(RUN[name].items())), in_order(rng, RUN[name])))
    assert len(run.events) >= 2
    for other in others:
        assert [one.name for one in other.events] == [one.name for one in run.events]
        agree({"q": other.q, "v": other.v, "t": other.t, "tau": other.tau}, {"q": run.q, "v": run.v, "t": run.t, "tau": run.tau})


def variants() -> list:
    """Return falling bodies of several masses with contacts, whose stiffness follows from the weight."""
    rng, models = np.random.default_rng([SEED, 41]), []
    for _ in range(5):
        robot = limited_chain()
        links = tuple(replace(one, mass=one.mass * float(rng.uniform(0.5, 2.0))) for one in robot.links)
        models.append(ld.build(replace(robot, links=links, gravity=(0.0, 0.0, float(rng.uniform(-12, -5))))))
    return models


CONTACTS = {"links": {"b": {"sphere": {"radius": 0.05}, "at": [0.3, 0.0, 0.0]}},
            "planes": {"ground": {"point": [0.0, 0.0, -0.05]}}, "sink": 0.01}
OPTIONS = {"bare": {}, "contacts": {"contacts": CONTACTS},
           "events": {"events": {"hit": {"when": "q(p)", "value": 0.32, "do": {"impact": {"joint": "p", "restitution": 0.5}}}}}}


@pytest.mark.parametrize("options", OPTIONS)
def test_variants_in_another_order_and_alone(options, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    models, rng = variants(), np.random.default_rng([SEED, 42])
    q, v = rng.uniform(-0.1, 0.3, (5, 2)), rng.uniform(-2, 2, (5, 2))
    how = {"dt": 1e-3, "steps": 60, "every": 10, **OPTIONS[options]}
    run, order = ld.rollout(ld.Variants(models), q, v, **how), rng.permutation(5)
    other = ld.rollout(ld.Variants([models[k] for k in order]), q[order], v[order], **how)
    agree({"q": other.q, "v": other.v}, {"q": run.q[order], "v": run.v[order]})
    for k in range(5):
        alone = ld.rollout(models[k], q[k], v[k], **how)
        agree({"q": alone.q, "v": alone.v}, {"q": run.q[k], "v": run.v[k]})
    if options != "events":
        found = ld.rollout_derivatives(ld.Variants([models[k] for k in order]), q[order], v[order],
                                       **{key: x for key, x in how.items() if key != "every"})
        expected = ld.rollout_derivatives(ld.Variants(models), q, v, **{key: x for key, x in how.items() if key != "every"})
        agree({"q0": found.q0}, {"q0": expected.q0[order]})


def test_functions_of_variants_in_another_order_and_alone(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    models, rng = variants(), np.random.default_rng([SEED, 43])
    q, v, x = rng.uniform(-1, 1, (3, 5, 2))
    order = rng.permutation(5)

    def every(robots, *states):
        one = ld.Variants(robots)
        return {"inverse": one.inverse_dynamics(*states), "forward": one.forward_dynamics(*states),
                "M": one.mass_matrix(states[0])}
    found, expected = every([models[k] for k in order], q[order], v[order], x[order]), every(models, q, v, x)
    agree(found, {name: value[order] for name, value in expected.items()})
    for k, model in enumerate(models):
        agree({"inverse": ld.inverse_dynamics(model, q[k], v[k], x[k]), "M": ld.mass_matrix(model, q[k])},
              {name: expected[name][k] for name in ("inverse", "M")})


def test_samples_of_a_sweep_do_not_depend_on_the_order_of_entries_and_outputs(tmp_path):
    head, *entries = DRAWN.rstrip().split("\n")
    top, *outputs = OUTPUTS.rstrip().split("\n")
    rng, rows = np.random.default_rng([SEED, 44]), []
    for k in range(2):
        (tmp_path / str(k)).mkdir()
        if k:
            entries, outputs = list(rng.permutation(entries)), list(rng.permutation(outputs))
        text = "\n".join([head, *entries, "samples: 6", "seed: 5", top, *outputs]) + "\n"
        found = PreparedSweep(read_sweep(written(tmp_path / str(k), text)))
        values = found.evaluator.compute_chunk(0, 6).outputs
        rows.append({line.split(":")[0]: values[:, i] for i, line in enumerate(outputs)})
    first, other = rows
    agree(other, first)


@pytest.mark.parametrize("name", ["random tree", "random floating tree", "random loops", "five-bar"])
def test_batches_on_one_and_two_threads(name, monkeypatch):
    """Each state is computed independently: results are bitwise equal."""
    monkeypatch.setattr(threads, "cores", lambda: 2)
    monkeypatch.setattr(threads, "_MIN_WORK_PER_THREAD", 1)
    threads._pool.cache_clear()
    mechanism = MECHANISMS[name]()
    model, rng = ld.build(mechanism.robot), np.random.default_rng([SEED, 45])
    here = state_of(mechanism, model)
    many = State(*(np.repeat(x[None], 1000, axis=0) for x in here[:4]), {})
    if mechanism.q is None:
        many = many._replace(q=ld.random_configuration(model, rng, 1000))
    many = many._replace(v=many.v * rng.uniform(-2, 2, (1000, 1)), tau=many.tau * rng.uniform(-2, 2, (1000, 1)))
    both = results(model, many, THREADED)
    with threads.limit_threads(1):
        one = results(model, many, THREADED)
    threads._pool.cache_clear()
    for what, value in both.items():
        assert np.array_equal(value, one[what]), f"{what}; repeat with LIEDYN_SEED={SEED}"
