"""Sequential runs whose robots differ share one generated right-hand side, which reads the constants that differ."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen import rhs
from liedyn.dynamics.model_parameters import with_parameters
from sweeps import batch

BALLS = """\
name: balls
links:
  cart: {mass: 1, com: [0, 0, 0.1], inertia: [0.1, 0.1, 0.1]}
  ball: {mass: 0.5, inertia: [0.02, 0.02, 0.02]}
joints:
  slide: {type: prismatic, parent: world, child: cart, axis: [0, 0, 1]}
  swing: {type: revolute, parent: cart, child: ball, axis: [0, 1, 0], origin: {xyz: [0.3, 0, 0]}, damping: 0.1}
"""
SCENARIO = """\
robot: balls.yaml
duration: 0.5
output_step: 0.05
integrator: {method: rodas5p, rtol: 1e-9, atol: 1e-11}
initial: {q: {slide: 0.2, swing: 0.4}}
joints: {swing: {torque: {pd: {kp: 5, kd: 1, target: 0}}}}
contacts: {links: {cart: {sphere: {radius: 0.1}}}}
"""
SWEEP = """\
parameters:
  - {key: robot.mass.ball, list: [0.2, 0.5, 1.5, 0.5]}
  - {key: robot.damping.swing, list: [0.1, 0.3, 0.2, 0.1]}
  - {key: robot.com.cart.x, list: [0.0, 0.02, -0.03, 0.0]}
combine: zip
outputs: {last: final(q.slide)}
"""
OPTIONS = {"duration": 0.5, "output_step": 0.05, "integrator": {"method": "rodas5p", "rtol": 1e-9, "atol": 1e-11},
           "initial": {"q": {"slide": 0.2, "swing": 0.4}}, "contacts": {"links": {"cart": {"sphere": {"radius": 0.1}}}},
           "joints": {"swing": {"torque": {"pd": {"kp": 5, "kd": 1, "target": 0}}}}}


@pytest.fixture
def evaluator(tmp_path):
    (tmp_path / "balls.yaml").write_text(BALLS)
    return batch(tmp_path, SWEEP, scenario=SCENARIO).evaluator


@pytest.fixture
def names(monkeypatch):
    """Names of the generated right-hand sides and Jacobians of the test."""
    found = {"load_or_build_engines": [], "load_or_build_batch_function": []}
    for function, called in found.items():
        original = getattr(rhs, function)

        def named(*x, original=original, called=called, position=1 if function == "load_or_build_engines" else 2):
            called.append(x[position])
            return original(*x)
        monkeypatch.setattr(rhs, function, named)
    return found


def test_robots_share_generated_code_and_move_as_those_that_are_built(evaluator, names, worst):
    binding = evaluator.binding
    assert not evaluator.is_vectorized
    found = [evaluator.simulate(binding.run(k)) for k in range(4)]
    assert [len(set(called)) for called in names.values()] == [2, 2]              # the last robot is that of the file
    assert [len(set(called[:3])) for called in names.values()] == [1, 1]
    for k, run in enumerate(found):
        parameters = dict(zip(("mass.ball", "damping.swing", "com.cart.x"), map(float, binding.values_of(k)), strict=True))
        model = ld.build(with_parameters(binding.model, parameters))
        expected = ld.simulate(model, **OPTIONS)
        assert worst("sequential runs with shared code", np.abs(run.q - expected.q).max()) < 1e-8
    assert np.abs(found[0].q[-1] - found[2].q[-1]).max() > 1e-4


def test_robots_that_differ_in_other_constants_use_generic_kernels(evaluator, names):
    binding = evaluator.binding
    expected, varying = evaluator.simulate(binding.run(2)), binding.varying_constants
    for called in names.values():
        called.clear()
    binding.varying_constants = varying[1:]
    found = evaluator.simulate(binding.run(2))
    assert not any(names.values())
    np.testing.assert_allclose(found.q, expected.q, atol=1e-7)


def test_generic_code_stays_generic(evaluator, names, monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    evaluator.simulate(evaluator.binding.run(0))
    assert not any(names.values())


def test_code_of_a_run_is_the_same_after_it(evaluator):
    """Its tables would otherwise miss the constants that the code reads."""
    run = evaluator.binding.run(0)
    evaluator.simulate(run)
    count = len(evaluator.binding.varying_constants)
    assert run.problem.code["rhs"] is not None and run.problem.tables().varying == evaluator.binding.varying_constants
    np.testing.assert_array_equal(run.problem.tables().scenario_values[-count:],
                                  run.model.constants[list(evaluator.binding.varying_constants)])


def test_values_of_wrenches_are_not_part_of_the_code(tmp_path, names):
    """Each run compiled its own code."""
    (tmp_path / "balls.yaml").write_text(BALLS)
    sweep = "parameters: [{key: external_forces.0.wrench.5, list: [3.0, -2.0]}]\noutputs: {last: final(q.slide)}\n"
    force = "external_forces: [{link: ball, wrench: [0, 0, 0, 0, 0, 1]}]\n"
    evaluator = batch(tmp_path, sweep, scenario=SCENARIO + force).evaluator
    found = [evaluator.simulate(evaluator.binding.run(k)) for k in range(2)]
    assert [len(set(called)) for called in names.values()] == [1, 1]
    for run, push in zip(found, (3.0, -2.0), strict=True):
        model = evaluator.binding.model
        expected = ld.simulate(model, **OPTIONS, external_forces=[{"link": "ball", "wrench": [0, 0, 0, 0, 0, push]}])
        np.testing.assert_allclose(run.q, expected.q, atol=1e-12)
    assert np.abs(found[0].q[-1] - found[1].q[-1]).max() > 1e-5
