"""Other integrators for a run that ends early or is suspicious: what messages say of them is what happens."""
import re
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import liedyn as ld
from liedyn.errors import ComputationError
from liedyn.io.scenarios.scenario import Integrator
from liedyn.io.scenarios.scenario_file import scenario_of
from liedyn.simulation import trials
from liedyn.simulation.preparation import prepare, prepare_run
from liedyn.simulation.run import SilentProgress, run_scenario, simulate_prepared
from sweeps import batch

PENDULUM = """
links: {a: {mass: 1.0, com: [0, 0, -0.5], inertia: [0.01, 0.01, 0.01]}}
joints: {j: {type: revolute, parent: world, child: a, axis: [0, 1, 0], %s}}
"""
FREE = PENDULUM % "armature: 0.74"
FOUR_BAR = "robots/four_bar.yaml"
STIFF = {"initial": {"q": {"j": 1.0}}, "integrator": {"method": "rk4", "step": 1e-3}}


@pytest.fixture(autouse=True)
def time_enough(monkeypatch):
    """Allow enough time on a busy machine."""
    monkeypatch.setattr(trials, "MAX_SECONDS", 600.0)


def character() -> str:
    """Return a trunk in free flight with two arms of ball joints whose masses decrease towards their ends."""
    links, joints = ["trunk: {mass: 30, inertia: [1, 1, 0.5]}"], []
    for side, y in (("l", 0.1), ("r", -0.1)):
        parent, mass, length = "trunk", 3.0, 0.3
        for k in range(6):
            inertia, name = mass * length**2 / 12, f"{side}{k}"
            links.append(f"{name}: {{mass: {mass:.6g}, com: [0, 0, {-length / 2:.6g}], "
                         f"inertia: [{inertia:.6g}, {inertia:.6g}, {0.01 * inertia:.6g}]}}")
            x = 0 if k else 0.2
            joints.append(f"j{name}: {{type: ball, parent: {parent}, child: {name}, origin: {{xyz: [{x}, {y}, {-length:.6g}]}}}}")
            parent, mass, length = name, 0.15 * mass, 0.8 * length
    return "links:\n  " + "\n  ".join(links) + "\njoints:\n  " + "\n  ".join(joints) + "\n"


def outcomes(text: str) -> list[tuple[str, str]]:
    """Return (integrator, outcome) of each trial in a message."""
    return re.findall(r"integrator=(\{[^}]*\}) (.*?)(?=, integrator=|;|$)", text.partition("; tried: ")[2])


def balance(text: str) -> float:
    return float(re.search(r"energy balance of (\S+)", text)[1])


def test_a_character_diverges_by_shorter_steps_too_and_is_computed_by_dopri5(tmp_path):
    (tmp_path / "character.yaml").write_text(character())
    model = ld.load(tmp_path / "character.yaml", base="floating")
    given = {"duration": 0.5, "v0": 20.0 * np.random.default_rng(1).standard_normal(model.nv)}
    with pytest.raises(ComputationError, match=r"no longer finite soon after t = 0.1") as caught:
        ld.simulate(model, integrator={"method": "rk4"}, **given)
    (shorter, ended), (found, passed) = outcomes(str(caught.value))
    assert yaml.safe_load(shorter) == {"method": "rk4", "step": 0.00025} and yaml.safe_load(found) == {"method": "dopri5"}
    with pytest.raises(ComputationError) as again:
        ld.simulate(model, integrator=yaml.safe_load(shorter), **given)
    assert ended == f"ends at t = {again.value.at:.6g} s"
    run = ld.simulate(model, integrator=yaml.safe_load(found), **given)
    assert run.status == "complete" and balance(passed) == float(f"{run.check['energy_balance_relative']:.1e}") < 1e-6
    assert caught.value.result.reason == str(caught.value)


def test_what_is_named_can_be_given_whatever_the_scenario_says_of_its_integrator(scenario):
    """-S integrator.method=rodas5p is an error where the scenario gives a step."""
    given = scenario(PENDULUM % "damping: 1000.0", **STIFF)
    told = "forces at j have a time constant of 2.6e-04 s, too short for steps of 0.001 s"
    with pytest.raises(ComputationError, match=told) as caught:
        run_scenario(given)
    (found, passed), = outcomes(str(caught.value))
    run = run_scenario(given, [f"integrator={found}"])
    assert run.scenario.integrator.method == "rodas5p" and run.scenario.integrator.named
    assert balance(passed) == float(f"{run.check['energy_balance_relative']:.1e}")


@pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas5p"])
def test_where_no_method_passes_it_is_said(scenario, method):
    """q'' = q'^2 is infinite after half a second."""
    given = scenario(FREE, gravity=[0, 0, 0], initial={"v": {"j": 2.0}}, joints={"j": {"torque": "v(j)*v(j)"}},
                     integrator={"method": method})
    with pytest.raises(ComputationError, match="the motion may diverge there") as caught:
        run_scenario(given)
    found = outcomes(str(caught.value))
    assert len(found) == (3 if method == "rk4" else 2) and all(re.match(r"ends at t = 0\.5\d* s$", what) for _, what in found)


def test_a_result_that_is_not_accurate_is_told_with_what_is(scenario):
    given = scenario(FREE, duration=20, output_step=1, initial={"q": {"j": 1.0}}, integrator={"method": "rk4", "step": 0.3})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = run_scenario(given)
    note, = (one.message.message for one in caught if one.message.code == "energy-balance")
    assert note.startswith("the relative error of the energy balance is 2.3e-02: the motion is not accurate; tried: ")
    assert tuple(one.message for one in run.warnings) == (note,)
    (found, passed), = outcomes(note)
    better = run_scenario(given, [f"integrator={found}"])
    assert not better.warnings and balance(passed) == float(f"{better.check['energy_balance_relative']:.1e}")


def test_a_step_that_is_named_against_instability_is_stable(scenario, monkeypatch):
    """Outputs shorten steps: the advice is a quarter of the actual step, not of the given one."""
    given = scenario(PENDULUM % "damping: 1000.0", **STIFF | {"output_step": 7.3e-3, "duration": 0.511})
    monkeypatch.setattr(trials, "MAX_RELATIVE_BALANCE", 0.0)                   # nothing is good enough: all are tried
    tried = outcomes(run_scenario(given, {"integrator.step": 7.3e-4}).warnings[-1].message)
    assert [yaml.safe_load(one) for one, _ in tried] == [{"method": "rodas5p"}, {"method": "rk4", "step": 1.825e-4},
                                                         {"method": "dopri5"}]
    assert "not stable" not in tried[1][1]
    shorter = trials._candidates(prepare(given | {"output_step": 1e-4}, {"integrator.step": 1e-3}), [])[0]
    assert shorter.step == 2.5e-5


def test_events_happen_in_trials_as_in_runs(scenario):
    """A trial begins with the first phase, and does not change the run."""
    given = scenario(FREE, duration=6, output_step=1, initial={"q": {"j": 1.0}}, integrator={"method": "rk4", "step": 0.3},
                     events={"low": {"when": "q(j)", "direction": "falling", "do": "record"}})
    run = run_scenario(given)
    (found, passed), = outcomes(run.warnings[-1].message)
    better = run_scenario(given, [f"integrator={found}"])
    assert balance(passed) == float(f"{better.check['energy_balance_relative']:.1e}")
    alone = simulate_prepared(prepare(given, ()), SilentProgress(), trials=False)
    assert np.array_equal(run.q, alone.q) and [one.t for one in run.events] == [one.t for one in alone.events] != []
    assert run.warnings[-1].message == f"{alone.warnings[-1].message}; tried: integrator={found} {passed}"


def test_trials_end_with_their_time(scenario, monkeypatch):
    """The first trial uses all the time: no other is run or named."""
    monkeypatch.setattr(trials, "MAX_SECONDS", 1e-6)
    with pytest.raises(ComputationError) as caught:
        run_scenario(scenario(PENDULUM % "damping: 1000.0", **STIFF))
    (_, what), = outcomes(str(caught.value))
    assert re.match(r"reaches t = \S+ s after 0\.\d s of computing$", what)
    assert "may diverge" not in str(caught.value)


@pytest.mark.parametrize("method", ["rodas5p", "rk4"])
def test_the_first_step_of_a_trial_which_may_compile_costs_no_time(scenario, method, monkeypatch):
    """Compilation takes 1 s here; the whole run is computed nevertheless."""
    monkeypatch.setattr(trials, "MAX_SECONDS", 0.5)
    prepared = prepare(scenario(PENDULUM % "damping: 1000.0", **STIFF | {"duration": 0.1}), ())
    checkpoint = trials._TimedRecorder.checkpoint

    def compiling(self, t, state_dict):
        checkpoint(self, t, state_dict)
        if t == 0.0:
            time.sleep(1.0)
    run = trials._trial
    run(prepared, Integrator(method), 600.0, None)                      # really compiled here
    monkeypatch.setattr(trials._TimedRecorder, "checkpoint", compiling)
    outcome, elapsed = run(prepared, Integrator(method, step=1e-4), 0.5, None)
    assert "computes the whole run" in outcome.text and elapsed < 0.5


def test_steps_cut_by_outputs_are_named_with_the_step_given(scenario):
    run = simulate_prepared(prepare(scenario(PENDULUM % "damping: 1000.0", **STIFF | {"duration": 0.146, "output_step": 7.3e-4}),
                                    {"integrator.step": 0.1}), SilentProgress(), trials=False)
    note, = (one for one in map(str, run.warnings) if "not stable" in one)
    assert "not stable there with steps of 0.00073 s (the step of 0.1 s is cut to output_step), and" in note


def test_a_signal_ends_trials(scenario):
    prepared = prepare(scenario(PENDULUM % "damping: 1000.0", **STIFF), ())
    disk = SimpleNamespace(stop=0)

    class Interrupting(SilentProgress):
        def stage(self, text):
            disk.stop = 2
            return super().stage(text)
    assert len(outcomes(trials.try_integrators(prepared, [], Interrupting(), disk))) == 1
    assert trials.try_integrators(prepared, [], SilentProgress(), disk) == ""


def test_a_controller_in_python_is_not_called_again(scenario):
    def controller(t, q, v):
        pytest.fail("called")
    prepared = prepare(scenario(FREE, sampling={"rate": 200}), (), controller=controller)
    told = "; no other integrator was tried, because that would call the controller again"
    assert trials.try_integrators(prepared, [], SilentProgress()) == told


def test_messages_that_no_integrator_changes_name_none(scenario):
    with pytest.raises(ComputationError, match=r"the signal of .* is not a finite number") as caught:
        run_scenario(scenario(FREE, joints={"j": {"torque": "sqrt(0.5 - t)"}}))
    assert "integrator" not in str(caught.value) and not caught.value.depends_on_method


def test_runs_of_a_batch_try_nothing(tmp_path, monkeypatch):
    """A thousand diverging runs take no additional time."""
    monkeypatch.setattr(trials, "try_integrators", lambda *_: pytest.fail("tried"))
    found = batch(tmp_path, "overrides: {integrator: {method: rk4, step: 0.05}}\n"
                            "parameters: [{key: joints.shoulder.torque.pd.kd, list: [1000.0, 2000.0]}]\n")
    table = found.evaluator.compute_chunk(0, 2)
    assert table.status == ["diverged"] * 2 and all("no longer finite" in one and "tried" not in one for one in table.reason)


def test_loops_are_tried_by_a_method_for_loops():
    prepared = prepare_run(scenario_of(FOUR_BAR, {"integrator": {"method": "rk4"}}), ld.load(FOUR_BAR))
    assert [one.method for one in trials._candidates(prepared, [])] == ["rk4", "dopri5", "Radau"]
    prepared = prepare_run(scenario_of(FOUR_BAR, {"integrator": {"method": "Radau", "rtol": 1e-13}}), ld.load(FOUR_BAR))
    assert [(one.method, one.rtol) for one in trials._candidates(prepared, [])] == [("Radau", 2.3e-14), ("dopri5", 1e-13)]


# jumps of prescribed motions, which no integrator mends ----------------------------------------------------------------
@pytest.mark.parametrize("given, told", [
    ({"position": "step(t-0.5)"}, "the prescribed position of j jumps by 1 rad at t = 0.5 s"),
    ({"velocity": "2 - 3*step(t-0.5)"}, "the prescribed velocity of j jumps by -3 rad/s at t = 0.5 s"),
    ({"position": "abs(t-0.25)"}, "the prescribed velocity of j jumps by 2 rad/s at t = 0.25 s"),
    ({"position": "0.5*max(t-0.5, 0)**2"}, None), ({"acceleration": "step(t-0.5)"}, None)])
def test_jumps_of_prescribed_motions_are_named_without_trials(scenario, given, told):
    run = simulate_prepared(prepare(scenario(PENDULUM % "damping: 0.0", output_step=0.1, joints={"j": {"prescribe": given}}), ()),
                            SilentProgress())
    assert [x.partition(", where no impulse acts")[0] for x in map(str, run.warnings) if "jumps" in x] == ([told] if told else [])
    assert not any("tried" in note for note in map(str, run.warnings)) and (told or not run.warnings)


def test_jumps_that_a_phase_does_not_reach_are_not_named(scenario):
    prescribe = {"joints": {"j": {"prescribe": {"position": "step(t-0.5)"}}}}
    given = scenario(PENDULUM % "damping: 0.0", output_step=0.1,
                     phases={"one": prescribe, "two": {"joints": {"j": {"torque": 0}}}},
                     events={"release": {"at": 0.3, "do": {"phase": "two"}}})
    run = simulate_prepared(prepare(given, ()), SilentProgress())
    assert [event.name for event in run.events] == ["release"] and not any("jumps" in note for note in map(str, run.warnings))
