"""Steps whose right-hand side is a line that they call, against steps that repeat it; in segments, and for other registers."""
from functools import cache

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from codegen.test_variants import changed
from liedyn.codegen import batch_step, specialize
from liedyn.codegen.specialize import is_supported
from liedyn.codegen.targets import llvm_ir
from liedyn.codegen.targets.llvm_ir import program_text
from liedyn.integrators import batch_integrator
from liedyn.io.scenarios.scenario import Scenario
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS
from liedyn.kernels.simulation.rollout_loop import RUNS_PER_BLOCK
from liedyn.simulation.input_schedule import compile_schedule
from zoo import ROBOTS, state

pytestmark = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")

RUNS, NEVER = RUNS_PER_BLOCK + 3, 10**9


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(specialize.compile_cache, "load_or_build", lambda folder, name, make: make())


def rolled(name, monkeypatch, called=0, **options):
    monkeypatch.setattr(batch_step, "MIN_CALLED_OPERATIONS", called)
    model = ld.build(ROBOTS[name]) if name in ROBOTS else ld.load(name)
    if model.nc:
        q = np.tile(ld.assemble(model, model.neutral()).q, (RUNS, 1))
        v = ld.project_velocity(model, q, np.random.default_rng(0).standard_normal((RUNS, model.nv)))
        tau = np.zeros((1, model.nv))
    else:
        q, v, _, tau = state(model, 1, (RUNS,))
    found = ld.rollout(model, q, 0.3 * v, tau[:, None], dt=2e-3, steps=5, forces=True, **options)
    assert found.complete.all()
    return np.concatenate([found.q, found.v, found.a, found.tau], axis=-1)


@cache
def whole(name, called):
    """Return `rolled` without other changes, compiled once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        return rolled(name, patch, called)


@pytest.mark.parametrize("name", ["every kind, floating", "ball", "robots/four_bar.yaml"])
def test_a_called_line_gives_what_a_repeated_one_gives(name, worst):
    found, expected = (whole(name, called) for called in (0, NEVER))
    assert worst("rollout: called lines", relative(found, expected), name) < 1e-13


@pytest.mark.parametrize("called", [0, NEVER])
def test_repeated_adjoints_of_a_step(called, monkeypatch, worst):
    """A linear model has the adjoints of a step for all numbers of the state, which share the operations of the step itself."""
    monkeypatch.setattr(batch_step, "MIN_CALLED_OPERATIONS", called)
    model = ld.build(ROBOTS["ball"])
    q, v, _, tau = state(model, 1, (RUNS,))
    run, n = ld.rollout(model, q, 0.3 * v, tau[:, None], dt=2e-3, steps=1), 2 * model.nv
    linear, by = run.linearize(), np.zeros((n, RUNS, 2, n))
    by[np.arange(n), :, 1, np.arange(n)] = 1.0
    rows = [run.adjoint(x[..., :model.nv], x[..., model.nv:]) for x in by]
    for k, back in enumerate(rows):
        expected = np.concatenate([back.q0, back.v0, back.tau[:, 0]], axis=-1)
        assert worst("rollout: repeated adjoints", relative(np.concatenate([linear.A, linear.B], axis=-1)[:, 0, k], expected),
                     str(called)) < 1e-13


def test_programs_are_those_of_the_robots(monkeypatch):
    """The short right-hand side of a pendulum is repeated in the code; that of a quadruped is called."""
    made = []
    monkeypatch.setattr(specialize, "program_text", lambda program, width: made.append(program) or program_text(program, width))
    for name, calls in (("robots/double_pendulum.yaml", 1), ("robots/quadruped.yaml", 9)):
        made.clear()
        model = ld.load(name)
        ld.rollout(model, model.neutral(), np.zeros(model.nv), dt=1e-3, steps=1)
        assert {len(one.calls) for one in made} == {calls, 1}, name                # the step, and accelerations of rows
    assert sum(line.size for line in made[0].traces) == made[0].size < 4 * made[0].calls[1][0].size


@pytest.mark.parametrize("called, name, size", [(0, "every kind, floating", 700), (NEVER, "ball", 200)])
def test_programs_of_several_segments(called, name, size, monkeypatch, worst):
    """Numbers that a step reads are written at its end only."""
    expected, cut = whole(name, called), []
    monkeypatch.setattr(llvm_ir, "MAX_SEGMENT_OPERATIONS", size)
    segments = llvm_ir.segments
    monkeypatch.setattr(llvm_ir, "segments", lambda *arguments, **late: cut.append(segments(*arguments, **late)) or cut[-1])
    found = rolled(name, monkeypatch, called)
    assert max(map(len, cut)) > 4
    assert worst("rollout: segments", relative(found, expected), f"called from {called} on") < 1e-13


@pytest.mark.parametrize("width", [4, 8])
def test_registers_of_any_width(width, monkeypatch, worst):
    expected = whole("every kind, floating", 0)
    for module in (specialize, batch_step):
        monkeypatch.setattr(module, "simd_width", lambda single=False: width)
    found = rolled("every kind, floating", monkeypatch)
    assert worst("rollout: registers", relative(found, expected), str(width)) < 1e-13


def test_robots_and_masks_of_their_own(monkeypatch, worst):
    rng = np.random.default_rng(5)
    robots = [ld.build(changed(ROBOTS["universal"], rng)) for _ in range(RUNS)]
    q, v, a, tau = state(robots[0], 2, (RUNS,))
    mask = np.arange(robots[0].nv) % 3 == 0
    found = []
    for called in (0, NEVER):
        monkeypatch.setattr(batch_step, "MIN_CALLED_OPERATIONS", called)
        variants = ld.Variants(robots)
        one = ld.rollout(variants, q, 0.3 * v, tau[:, None], dt=2e-3, steps=5, prescribed=mask, a=a[:, None], forces=True)
        found.append(np.concatenate([one.q, one.v, one.a, one.tau], axis=-1))
    assert worst("rollout: called lines", relative(*found), "variants") < 1e-13


def test_events_are_those_of_steps_in_place(monkeypatch, worst):
    found = []
    for called in (0, NEVER):
        monkeypatch.setattr(batch_step, "MIN_CALLED_OPERATIONS", called)
        model = ld.load("robots/double_pendulum.yaml")
        q = np.random.default_rng(0).uniform([-1.0, -1.0], [1.0, 0.2], (RUNS, 2))
        hit = {"when": "q(elbow)", "value": 0.3, "direction": "rising", "do": {"impact": {"joint": "elbow", "restitution": 0.6}}}
        one = ld.rollout(model, q, np.zeros(2), dt=1e-3, steps=800, every=100, events={"hit": hit})
        found.append((one.events, np.concatenate([one.q, one.v], axis=-1)))
    (events, x), (others, y) = found
    assert len(events) == len(others) > RUNS // 4 and np.array_equal(events.run, others.run)
    assert worst("rollout: called lines", relative(x, y), "events") < 1e-10                 # impacts enlarge rounding


@pytest.mark.parametrize("rates", [False, True])
def test_a_run_that_goes_wrong_is_told_also_with_rates(rates):
    """One joint rotates beyond the range of sines; the other runs continue."""
    model = ld.load("robots/double_pendulum.yaml")
    problem, wide = compile_schedule(Scenario("robot", 0.1, 0.1), model).problem, 2 if rates else 1
    line = batch_step.compile_batch_step(problem.tables(), "rk4", rates=rates)
    q, v = np.zeros((RUNS, 2 * wide + rates)), np.zeros((RUNS, 2 * wide))
    q[5, 0] = 2e5
    engine = batch_integrator.BatchIntegrator(problem, line, np.zeros((RUNS, 0)), 4 * model.nv + 2 if rates else None)
    grid = batch_integrator.make_grid(problem.schedule, np.array([0.0, 0.1]), 1e-2)
    moving = batch_integrator.BatchStates.from_states(q, v, np.full(RUNS, grid.steps))
    out = batch_integrator.BatchOutputs.allocate(RUNS, 2, q.shape[1], v.shape[1], 0)
    engine.advance(moving, grid, out, np.zeros((RUNS, wide * len(line.scenario_values))))
    assert np.flatnonzero(moving.ended >= 0).tolist() == [5] and moving.codes[5] == INVALID_ARGUMENTS
