"""Actions of events: of many states as of one, and one that is added as CONTRIBUTING.md says."""
import os
import re
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.io.scenarios.action_schema import ACTION_KEYS, Impact, Set
from liedyn.io.scenarios.scenario import Action, Constant, Event, Prescribe, Rule, Scenario
from liedyn.simulation.event_actions import _FUNCTIONS, action_function
from liedyn.simulation.impacts import EventState
from liedyn.simulation.input_schedule import compile_schedule
from zoo import model_of, state

ROOT = Path(__file__).parents[2]
TREES = "every kind, floating", "one degree of freedom each"


def test_each_key_has_a_function():
    assert {one.kind for one in ACTION_KEYS} == set(_FUNCTIONS)


def test_an_action_without_function_is_a_named_error():
    @dataclass(frozen=True, slots=True)
    class Whistle(Action):
        tone: float

    with pytest.raises(ld.UsageError, match=r"the action Whistle has no function .*@event_action\(Whistle\)"):
        action_function(Whistle(440.0))


# energies in closed form ----------------------------------------------------------------------------------------------

MASS, GRAVITY, LIFT = 2.0, 9.81, """
links: {load: {mass: 2.0, inertia: [0.1, 0.1, 0.1]}}
joints: {lift: {type: prismatic, parent: world, child: load, axis: [0, 0, 1], limits: {lower: -9, upper: 9}}}
gravity: [0, 0, -9.81]
"""


@pytest.fixture
def lift(tmp_path):
    """Return a mass that slides vertically."""
    path = tmp_path / "lift.yaml"
    path.write_text(LIFT, encoding="utf-8")
    return ld.load(path)


def apply_to_lift(model, q, v, action):
    context = Context(compile_schedule(Scenario("lift", 1.0, 0.1, assemble=False), model).problem)
    before = EventState(model, np.array([q]), np.array([v]), np.zeros(1), work=0.7, lost=0.2)
    return action_function(action).apply(context, before, action)


def test_work_and_loss_of_an_impact(lift):
    """The speed 3 becomes 0.5 * 3: the impulse removes m v^2 (1 - e^2) / 2, which is the loss; no other work is done."""
    after = apply_to_lift(lift, 0.5, 3.0, Impact(0.5, "lift"))
    lost = MASS * 3.0**2 * (1.0 - 0.5**2) / 2
    assert after.v == pytest.approx([-1.5], rel=1e-14) and after.impulse == pytest.approx([-MASS * 4.5], rel=1e-14)
    assert after.lost == pytest.approx(0.2 + lost, rel=1e-14) and after.work == pytest.approx(0.7 - lost, rel=1e-14)


def test_work_of_a_state_that_is_set(lift):
    """The work is the change of m v^2 / 2 + m g z, without an impulse."""
    after = apply_to_lift(lift, 0.5, 3.0, Set((Rule("lift", (0.25,)),), (Rule("lift", (-1.0,)),)))
    work = MASS * (1.0**2 - 3.0**2) / 2 + MASS * GRAVITY * (0.25 - 0.5)
    assert after.work == pytest.approx(0.7 + work, rel=1e-14)
    assert after.lost == 0.2 and not after.impulse.any()


# many states ----------------------------------------------------------------------------------------------------------

@dataclass
class Context:
    """An `EventContext` in which nothing comes to rest."""

    problem: object
    event: Event = Event("it", ())
    t: float = 0.0
    resting_stops: tuple = ()

    def complete_action(self, before, after, place):
        return after.with_work_since(before)

    def complete_impact(self, before, after, action, row, coordinates):
        return after


def check_states(model, q, v, action, prescribed=()):
    """Apply the action to all states (n, …) at once, and to each."""
    rules = tuple(Rule(name, Prescribe("acceleration", Constant(0.0))) for name in prescribed)
    context = Context(compile_schedule(Scenario("zoo", 1.0, 0.1, joints=rules, assemble=False), model).problem)
    apply, zero = action_function(action).apply, np.zeros(model.nv)
    together = apply(context, EventState(model, q, v, np.zeros_like(v)), action)
    each = [apply(context, EventState(model, one, speed, zero), action) for one, speed in zip(q, v, strict=True)]
    for field in [field for field in fields(EventState)[1:] if field.name != "evaluate"]:
        expected = np.array([getattr(one, field.name) for one in each], dtype=float)
        found = np.broadcast_to(getattr(together, field.name), expected.shape)
        size = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * size, err_msg=field.name)
    return together


@pytest.mark.parametrize("name", TREES)
def test_impacts_of_many_states_are_those_of_each(name):
    model = model_of(name)
    q, v, _, _ = state(model, 3, (6,))
    v[2] = 0.0                                                 # nothing hits
    for k in (0, model.nv - 1):
        after = check_states(model, q, v, Impact(0.4, model.v_names[k]), [model.joints[1].name])
        np.testing.assert_allclose(after.v[:, k], -0.4 * v[:, k], rtol=1e-12, atol=1e-14)
        assert (after.lost >= 0.0).all() and after.lost[2] == 0.0 < after.lost.max()
    after = check_states(model, q, np.concatenate([v[:3], -v[:3]]), Impact(0.3, None, model.link_names[-1], (0.1, 0.0, 0.2)))
    assert 0 < np.count_nonzero(after.lost) < 6                # a link that moves away is not hit


def test_impacts_of_many_states_of_a_mechanism():
    model = ld.load(ROOT / "robots" / "four_bar.yaml")
    q = np.tile(ld.assemble(model, model.neutral()).q, (3, 1))
    v = ld.project_velocity(model, q, np.random.default_rng(2).standard_normal((3, model.nv)))
    after = check_states(model, q, v, Impact(0.5, model.v_names[0]))
    np.testing.assert_allclose(after.v, -0.5 * v, rtol=1e-9)                   # one degree of freedom


def test_many_states_are_set():
    model = model_of("every kind, floating")
    q, v, _, _ = state(model, 3, (4,))
    joint = next(one for one in model.joints if one.q.stop - one.q.start == 1)
    after = check_states(model, q, v, Set((Rule(joint.name, (0.25,)),), (Rule(joint.name, (-1.5,)),)))
    assert (after.q[:, joint.q] == 0.25).all() and (after.v[:, joint.v] == -1.5).all() and not after.impulse.any()


# an action from outside ------------------------------------------------------------------------------------------------

EXAMPLE = re.search(r"^### An action of events$.*?```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
                    re.DOTALL | re.MULTILINE)[1]
RUN = '''
import liedyn as ld
events = {"slow": {"at": 0.1, "do": {"brake": {"joint": "elbow", "factor": 0.2}}}}
path = "robots/double_pendulum.yaml"
model = ld.load(path)
q, v = np.array([[0.3, 0.1], [0.5, -0.2]]), np.array([[1.0, 2.0], [0.0, -1.0]])
runs = ld.rollout(model, q, v, dt=1e-3, steps=200, every=100, events=events)
M = ld.mass_matrix(model, runs.events.q)
for k in range(2):
    run = ld.simulate(path, duration=0.2, output_step=0.1, integrator={"method": "rk4", "step": 1e-3}, events=events,
                      initial={"q": {"shoulder": q[k, 0], "elbow": q[k, 1]}, "v": {"shoulder": v[k, 0], "elbow": v[k, 1]}})
    event, = run.events
    before, after = runs.events.v[k], runs.events.v_after[k]
    impulse = M[k] @ (after - before)
    np.testing.assert_allclose(after[1], 0.2 * before[1], rtol=1e-13)
    np.testing.assert_allclose(event.dv, after - before, rtol=1e-9)
    np.testing.assert_allclose(impulse[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(event.impulse, impulse, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(event.lost, 0.5 * (before @ M[k] @ before - after @ M[k] @ after), rtol=1e-9)
    np.testing.assert_allclose(run.v[-1], runs.v[k, -1], rtol=1e-9)
from liedyn.io.scenarios.event_schema import event_to_dict
from liedyn.io.scenarios.scenario import Event
written = event_to_dict(Event("slow", (Brake("elbow", 0.2),), at=(0.1,)))
assert written["do"] == [{"brake": {"joint": "elbow", "factor": 0.2}}]
for wrong in ({"joint": "elbow", "factor": 2}, {"joint": "hip", "factor": 0.2}, {"joint": "elbow"}):
    try:
        ld.rollout(model, q, v, dt=1e-3, steps=200, events={"slow": {"at": 0.1, "do": {"brake": wrong}}})
    except ld.ScenarioError as error:
        print(error)
'''


def test_an_action_is_added_as_the_example_says():
    environment = os.environ | {"PYTHONPATH": str(Path(ld.__file__).parents[1])}
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", EXAMPLE + RUN], cwd=ROOT, env=environment, capture_output=True,
                           text=True)
    assert found.returncode == 0, found.stderr
    errors = found.stdout.splitlines()
    assert len(errors) == 3
    for error, text in zip(errors, ("<= 1", "coordinate", "missing"), strict=True):
        assert text in error
