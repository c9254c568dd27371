"""A run that continues from its checkpoint is the run that was not interrupted, bit for bit; rows that go to disk are the
same."""
import importlib
import inspect
import json
import pkgutil
import signal
from collections import deque
from dataclasses import is_dataclass
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import Interrupted
from liedyn.integrators import solve
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.run_state import Record, mapped_zeros, release_memory
from liedyn.io.checkpoint_files import Unfinished, split_arrays
from liedyn.simulation import run_recorder
from liedyn.simulation.hybrid_simulation import HybridSimulation
from liedyn.simulation.run import SilentProgress, simulate_file
from liedyn.simulation.segment_problems import RunSegment

ROOT = Path(__file__).parents[2]
ARM = {"name": "arm", "links": {
    "base": {"mass": 1.0, "inertia": [0.1, 0.1, 0.1]},
    "upper": {"mass": 1.0, "com": [0, 0, -0.5], "inertia": [0.08, 0.08, 0.001]},
    "lower": {"mass": 0.7, "com": [0, 0, -0.4], "inertia": [0.05, 0.05, 0.001]}}, "joints": {
    "ball": {"type": "ball", "parent": "world", "child": "base"},
    "shoulder": {"type": "continuous", "parent": "base", "child": "upper", "axis": [0, 1, 0]},
    "elbow": {"type": "continuous", "parent": "upper", "child": "lower", "origin": {"xyz": [0, 0, -1]}, "axis": [0, 1, 0]}}}
SWING = {"initial": {"q": {"shoulder": 1.0}, "v": {"ball": [0.5, -0.3, 4.0]}}, "output_step": 0.02}
RUBS = {"joints": {"shoulder": {"torque": "-sign(v)"}, "elbow": {"torque": "-0.4*sign(v) + sin(9*t)"}}}
EVENTS = {
    "initial": {"q": {"shoulder": 1.0, "elbow": -0.1}, "v": {"ball": [0.5, -0.3, 4.0], "elbow": -4.0}}, "output_step": 0.02,
    "phases": {"first": {}, "second": {"joints": {"shoulder": {"torque": "-0.8*v"}}}},
    "events": {
        "stop": {"when": "q(elbow)", "value": -0.3, "direction": "falling", "debounce": 0.1,
                 "do": {"impact": {"joint": "elbow", "restitution": 0.7}}},
        "latch": {"when": "q(elbow)", "direction": "rising", "once": True, "do": {"lock": "elbow"}},
        "tick": {"every": 0.11, "do": {"set": {"v": {"shoulder": 0.5}}}},
        "load": {"at": 0.3, "do": [{"attach": {"link": "lower", "mass": 0.5, "inertia": [0.01, 0.01, 0.01]}},
                                   {"unlock": "elbow"}]},
        "drop": {"at": 0.7, "do": [{"detach": "lower"}, {"phase": "second"}]}}}
FIXED = {"method": "rk4", "step": 1e-3}
BALL = {"name": "ball", "links": {"ball": {"mass": 1.0, "inertia": [0.01, 0.01, 0.01]}},
        "joints": {"z": {"type": "prismatic", "parent": "world", "child": "ball", "axis": [0, 0, 1], "limits": {"lower": -0.3}}}}


class Stopping(Unfinished):
    """Asked to stop after so many looks."""

    def __init__(self, folder, looks):
        self.looks = looks
        super().__init__(folder)

    @property
    def stop(self):
        self.looks -= 1
        return signal.SIGINT if self.looks < 0 else 0

    @stop.setter
    def stop(self, number):
        pass


@pytest.fixture
def in_pieces(tmp_path, monkeypatch):
    """in_pieces(scenario, looks): the result of a run that is interrupted after so many looks at it each time, and the number of
    pieces."""
    monkeypatch.setattr(solve, "_FIRST_CHUNK", 8)
    monkeypatch.setattr(solve, "_CHUNK_SECONDS", np.inf)                       # chunks of 8, 32, 128, … steps on any machine

    def run(given, looks):
        for piece in range(100):
            disk = Stopping(tmp_path / "run", looks)
            try:
                result = simulate_file(given, (), SilentProgress(), disk=disk, resumed=piece > 0)
                disk.close(finished=True)
                return result, piece + 1
            except Interrupted:
                disk.close(finished=False)
        raise AssertionError("it does not get on")
    return run


def equal(one, other):
    """Compare bit by bit."""
    np.testing.assert_array_equal(one.t, other.t)
    for (name, unit, x), (name_there, unit_there, y) in zip(one.columns, other.columns, strict=True):
        assert (name, unit) == (name_there, unit_there)
        np.testing.assert_array_equal(x, y, err_msg=name)
    for name in ("check", "warnings", "limits"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("steps", "rejected", "evaluations", "warnings"):
        assert getattr(one.statistics, name) == getattr(other.statistics, name)
    assert [(x.t, x.name, x.phase, x.lost, *x.dv, *x.impulse) for x in one.events] == \
        [(x.t, x.name, x.phase, x.lost, *x.dv, *x.impulse) for x in other.events]


@pytest.mark.parametrize("integrator, looks", [
    (FIXED, 3), ({"method": "dopri5"}, 1), ({"method": "dop853"}, 1), ({"method": "rodas5p"}, 1), ({"method": "RK45"}, 1),
    ({"method": "DOP853"}, 1), ({"method": "Radau"}, 2), ({"method": "BDF"}, 2),
    ({"method": "generalized_alpha", "step": 1e-3}, 2), ({"method": "variational", "step": 1e-3}, 2)],
    ids=lambda x: x["method"] if isinstance(x, dict) else "")
def test_a_resumed_run_is_the_undisturbed_one(scenario, in_pieces, integrator, looks):
    given = scenario(json.dumps(ARM), **SWING, integrator=integrator)
    resumed, pieces = in_pieces(given, looks)
    assert pieces > 2
    equal(resumed, ld.run_scenario(given))


@pytest.mark.parametrize("integrator, looks, hold", [(FIXED, 40, "first"), ({"method": "dopri5"}, 40, "zero"),
                                                     ({"method": "rodas5p"}, 150, "first"),
                                                     ({"method": "generalized_alpha"}, 40, "first")],
                         ids=["rk4", "dopri5", "rodas5p", "generalized_alpha"])
def test_a_sampled_controller_goes_on(scenario, in_pieces, integrator, looks, hold):
    """With its integrals and delayed torques, next to friction whose switching times are located."""
    pid = {"pid": {"kp": 9, "ki": 4, "kd": 1, "target": 0.2}}
    given = scenario(json.dumps(ARM), **SWING, integrator=integrator, sampling={"rate": 90, "delay": 0.004, "hold": hold},
                     joints={"shoulder": {"torque": pid}, "elbow": {"torque": "-0.4*sign(v) + sin(9*t)"}})
    resumed, pieces = in_pieces(given, looks)
    assert pieces > 2
    equal(resumed, ld.run_scenario(given))


@pytest.mark.parametrize("integrator, looks", [(FIXED, 7), ({"method": "dopri5"}, 7), ({"method": "rodas5p"}, 60)],
                         ids=["rk4", "dopri5", "rodas5p"])
def test_integrals_of_pid_laws_go_on(scenario, in_pieces, integrator, looks):
    """Through events, where one joint is at its limit and the other has no law for some time."""
    pid = {"torque": {"pid": {"kp": 9, "ki": 40, "kd": 1, "target": 0.2}}}
    given = scenario(json.dumps(ARM), **EVENTS | {"joints": {"shoulder": pid, "elbow": pid}}, integrator=integrator,
                     saturate={"shoulder": 5})
    alone = ld.run_scenario(given)
    assert {one.name for one in alone.events} >= {"latch", "load",
                                                  "drop"} and any("at its limit of 5" in x for x in map(str, alone.warnings))
    resumed, pieces = in_pieces(given, looks)
    assert pieces > 2
    equal(resumed, alone)


def test_lsoda_begins_anew_at_a_checkpoint(scenario, in_pieces):
    """Its internal numbers are not accessible: results are equal within its tolerances."""
    given = scenario(json.dumps(ARM), **SWING, integrator={"method": "LSODA"})
    resumed, pieces = in_pieces(given, 2)
    alone = ld.run_scenario(given)
    assert pieces > 1 and np.abs(resumed.q - alone.q).max() < 1e-5


@pytest.mark.parametrize("integrator, looks", [(FIXED, 6), ({"method": "dopri5"}, 9), ({"method": "variational"}, 2),
                                               ({"method": "generalized_alpha"}, 2)],
                         ids=["rk4", "dopri5", "variational", "generalized_alpha"])
def test_switches_go_on_as_they_were(scenario, in_pieces, integrator, looks):
    """Switches whose steps are cut, and free ones."""
    given = scenario(json.dumps(ARM), **SWING, **RUBS, integrator=integrator)
    resumed, pieces = in_pieces(given, looks)
    assert pieces > 2
    equal(resumed, ld.run_scenario(given))


@pytest.mark.parametrize("integrator, looks", [(FIXED, 7), ({"method": "dopri5"}, 7), ({"method": "variational"}, 9),
                                               ({"method": "generalized_alpha"}, 9)],
                         ids=["rk4", "dopri5", "variational", "generalized_alpha"])
def test_events_go_on_as_they_were(scenario, in_pieces, integrator, looks):
    """Phases, locked joints, bodies, times of events and events that may occur once."""
    given = scenario(json.dumps(ARM), **EVENTS, integrator=integrator)
    alone = ld.run_scenario(given)
    assert {one.name for one in alone.events} == set(EVENTS["events"])
    resumed, pieces = in_pieces(given, looks)
    assert pieces > 2
    equal(resumed, alone)


@pytest.mark.filterwarnings("ignore:.*impacts at .* ended")
@pytest.mark.parametrize("method, looks", [("rk4", 9), ("dopri5", 4), ("dop853", 4), ("rodas5p", 40), ("RK45", 40),
                                           ("BDF", 60)])
@pytest.mark.parametrize("given", [
    {"events": {"bounce": {"when": "z(ball)", "value": 0.3, "direction": "falling",
                           "do": {"impact": {"joint": "z", "restitution": 0.4}}}}},
    {"events": {"a": {"when": "q(z)", "value": 0.7, "do": "record"}, "b": {"when": "sin(30*q(z))", "do": "record"}}},
    {"limits": {"mode": "hard", "restitution": 0.6}}], ids=["comes to rest", "passes", "hard stop"])
def test_a_resumed_run_has_the_same_events(scenario, in_pieces, method, looks, given):
    """It is interrupted within segments, also while an event is disarmed."""
    given = scenario(json.dumps(BALL), duration=1.6, output_step=0.05, initial={"q": {"z": 1.0}}, integrator={"method": method},
                     **given)
    alone = ld.run_scenario(given)
    resumed, pieces = in_pieces(given, looks)
    assert pieces > 2 and len(alone.events) > 2
    equal(resumed, alone)


@pytest.mark.parametrize("looks", [1, 2, 3, 4])
@pytest.mark.parametrize("action", ["record", "stop"])
def test_a_run_is_resumed_from_the_row_after_its_last_event(scenario, in_pieces, action, looks):
    given = scenario(json.dumps(BALL), duration=0.02, output_step=0.005, initial={"q": {"z": 1.0}},
                     events={"middle": {"at": 0.01, "do": "record"}, "last": {"at": 0.02, "do": action}})
    resumed, pieces = in_pieces(given, looks)
    assert pieces > 1
    equal(resumed, ld.run_scenario(given))


def test_constraints_go_on_as_they_were(in_pieces):
    given = {"robot": ROOT / "robots/four_bar.yaml", "duration": 0.3, "output_step": 0.01, "initial": {"v": {"crank": 3.0}}}
    resumed, pieces = in_pieces(given, 1)
    assert pieces > 2
    equal(resumed, ld.run_scenario(given))


def test_rows_on_disk_are_those_in_memory(scenario, tmp_path, monkeypatch):
    """Energies and checks are computed in blocks, equal except for rounding."""
    given = scenario(json.dumps(ARM), **EVENTS, integrator={"method": "dopri5"}, external_forces=[
        {"link": "lower", "wrench": [0, 0, 0, 1, 0, 0]}])
    alone = ld.run_scenario(given)
    monkeypatch.setattr(run_recorder, "MAX_BYTES_IN_MEMORY", 100.0)
    monkeypatch.setattr(run_recorder, "BLOCK_ROWS", 5)
    disk = Unfinished(tmp_path / "run")
    result = simulate_file(given, (), SilentProgress(), disk=disk)
    assert disk.is_open and result.q.base is not None and not result.q.flags.c_contiguous
    for name in ("t", "q", "v", "a", "tau", "wrench", "work"):
        np.testing.assert_array_equal(getattr(result, name), getattr(alone, name), err_msg=name)
    for name in ("kinetic", "potential"):
        np.testing.assert_allclose(getattr(result, name), getattr(alone, name), rtol=1e-12, atol=1e-12)
    assert result.limits == alone.limits and result.warnings == alone.warnings
    for name, value in alone.check.items():
        assert abs(result.check[name] - value) < 1e-12, name
    disk.close(finished=True)
    assert not disk.path.exists()


def test_memory_of_rows_is_given_back():
    x = mapped_zeros((400_000, 20))
    x[:] = 1.0
    before = _resident()
    release_memory(x, 300_000)
    assert before - _resident() > 0.9 * 300_000 * 160
    assert not x[:299_000].any() and (x[300_000:] == 1.0).all()
    small = mapped_zeros((10, 2))
    small[:] = 1.0
    release_memory(small, 10)
    assert (small == 1.0).all()


def _resident() -> int:
    """Return the resident memory of this process in bytes."""
    import mmap
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_an_error_has_the_motion_before_it(scenario):
    """A signal that leaves its domain at 0.5 s; the rows before are those of a run that ends there."""
    given = scenario(json.dumps(ARM), **SWING, integrator=FIXED, joints={"shoulder": {"torque": "sqrt(0.5 - t)"}})
    with pytest.raises(ld.ComputationError, match=r"not a finite number at or soon after t = 0\.5") as caught:
        ld.run_scenario(given)
    result = caught.value.result
    assert result.status == "diverged" and result.reason == str(caught.value)
    before = ld.run_scenario(given | {"duration": 0.48})
    for name in ("t", "q", "v", "work", "kinetic"):
        np.testing.assert_array_equal(getattr(result, name)[:len(before.t)], getattr(before, name), err_msg=name)
    assert 0.48 <= result.t[-1] <= 0.5 and before.status == "complete"
    with pytest.raises(ld.ComputationError) as caught:
        ld.run_scenario(given | {"joints": {"shoulder": {"torque": "sqrt(-1 - t)"}}})
    assert caught.value.result is None


# Attributes that change during a run and are no part of a state: inputs of a call, and what is computed anew before it is read
NOT_SAVED = {
    "HybridSimulation": {"_cached_state", "_cached_values",        # of expressions
                         "_zero_values", "_driven_into_stop",     # written where a segment ends, and where an event is applied
                         "_n_recorded_events"},                # written where a segment begins
    "SegmentProblems": {"_problems"},                              # compiled where they are needed
    "Actions": {"left_zero", "former_stops", "_other_stops", "event", "t", "expression", "initial",
                "direction"},                                      # of the last event
    "SampledController": {"_law"},                                 # compiled where it is needed
    "RunRecorder": {"_segments", "_segment_starts", "_current", "_next", "saved_state"},
    "Unfinished": {"looks", "_file", "_lock", "_hash"},            # _hash: compared as a digest, by its state_dict
    "ZeroCrossings": {"signals"},                                  # their switches are compared as `sign`, `value`, `chattering`
    "RightHandSide": {"generated", "generic", "signals", "constraints"},           # tables and scratch; addresses
    "Stepper": {"record"},
    "ImplicitStepper": {"_start", "_schedule", "evaluation"},      # of the step taken last
    "GeneralizedAlphaStepper": {"_call"}, "VariationalStepper": {"_call"},         # addresses of this process
    "SolverStepper": {"make_solver", "dense_output"},              # of the step taken last
    "RosenbrockSolver": {"y_old", "energy_polynomial", "method"},  # of the step taken last
    "RightHandSideJacobian": {"code", "rates", "generated_function"},
}
MADE_WITH_A_STATE = {"SegmentStart", "Statistics"}                 # by from_state_dict
BOUNCES = {"duration": 1.0, "output_step": 0.05, "initial": {"q": {"z": 0.5}}, "limits": {"mode": "hard", "restitution": 0.6},
           "events": {"pass": {"when": "q(z)", "value": 0.3, "do": "record"}}}
SAMPLED = {"sampling": {"rate": 90, "delay": 0.004, "hold": "first", "noise": {"q": 1e-3}},
           "observer": {"gain": {"q.shoulder": {"q.shoulder": 0.5}, "v.shoulder": {"q.shoulder": 5}},
                        "initial": {"q": {"shoulder": 1.0}, "v": {"ball": [0.5, -0.3, 4.0]}}},
           "joints": {"shoulder": {"torque": {"pid": {"kp": 9, "ki": 4, "kd": 1, "target": 0.2}}},
                      "elbow": {"torque": "-0.4*sign(v) + sin(9*t)"}}}


def classes_with_state():
    """Return the classes with state of the whole package."""
    modules = [importlib.import_module(one.name) for one in pkgutil.walk_packages(ld.__path__, "liedyn.")
               if one.name.startswith(("liedyn.integrators.", "liedyn.io.", "liedyn.simulation."))]
    return {one for module in modules for _, one in inspect.getmembers(module, inspect.isclass)
            if one.__module__.startswith("liedyn.") and "state_dict" in vars(one)}


def values_of(x, seen, found):
    """All numbers and texts that an object holds, those of other objects with state into `found` by class and attribute."""
    if isinstance(x, np.ndarray):
        return x.shape, x.tobytes()
    if isinstance(x, np.generic):
        return repr(x.item())
    if isinstance(x, (bool, int, float, str)) or x is None:
        return repr(x)
    if isinstance(x, (tuple, list, deque)):
        return [values_of(one, seen, found) for one in x]
    if isinstance(x, dict):
        return [(repr(k) if isinstance(k, (str, int)) else type(k), values_of(one, seen, found)) for k, one in x.items()]
    if hasattr(x, "state_dict") and not inspect.isclass(x):
        if id(x) not in seen:
            seen.add(id(x))
            names = [one.__name__ for one in type(x).__mro__]
            left_out = set().union(*(NOT_SAVED.get(name, ()) for name in names))
            for name, one in vars(x).items():
                if name not in left_out:
                    found[names[0], name] = values_of(one, seen, found)
        return names_of(x)
    if is_dataclass(x) and not isinstance(x, InitialValueProblem) and type(x).__module__.startswith("liedyn.simulation"):
        return [(name, values_of(one, seen, found)) for name, one in vars(x).items()]
    return type(x).__name__


def names_of(x):
    return type(x).__name__


def all_values(*objects):
    found = {}
    seen = set()
    for one in objects:
        values_of(one, seen, found)
    return found


@pytest.mark.filterwarnings("ignore")
def test_a_loaded_state_is_the_one_that_was_saved(scenario, in_pieces, monkeypatch):
    """For each class that has a state: its state_dict and each attribute."""
    motions, saved, loaded, visited = [], [], [], set()
    plain_run = HybridSimulation.run

    def run(motion, *arguments):
        motions.append(motion)
        return plain_run(motion, *arguments)
    monkeypatch.setattr(HybridSimulation, "run", run)
    plain, known = run_recorder.RunRecorder.checkpoint, []

    def state_of(rows, state_dict):
        objects = rows, motions[-1], state_dict.__self__
        arrays, values = split_arrays({str(k): one.state_dict() for k, one in enumerate(objects)})
        state = {name: (x.shape, x.tobytes()) for name, x in arrays.items()} | {"json": json.loads(json.dumps(values))}
        attributes = all_values(*objects)
        visited.update(name for name, _ in attributes)
        return state, attributes

    def checkpoint(rows, t, state_dict):
        if motions[-1] not in known:
            known.append(motions[-1])
            if rows.disk.is_open:
                loaded.append(state_of(rows, state_dict))
        try:
            plain(rows, t, state_dict)
        except Interrupted:
            saved.append(state_of(rows, state_dict))
            raise
    monkeypatch.setattr(run_recorder.RunRecorder, "checkpoint", checkpoint)
    for robot, given, method, looks in ((ARM, EVENTS | RUBS, "rk4", 5), (ARM, SWING | SAMPLED, "dopri5", 60),
                                        (BALL, BOUNCES, "rodas5p", 50), (BALL, BOUNCES, "Radau", 20),
                                        (ARM, SWING, "variational", 2), (BALL, BOUNCES, "variational", 4),
                                        (ARM, EVENTS | RUBS, "generalized_alpha", 5)):
        in_pieces(scenario(json.dumps(robot), **given, integrator={"method": method}), looks)
        assert len(saved) == len(loaded) > 1, method
        for (state, attributes), (state_there, attributes_there) in zip(saved, loaded, strict=True):
            for was, now in ((state, state_there), (attributes, attributes_there)):
                different = {name for name in was.keys() | now.keys() if was.get(name) != now.get(name)}
                assert not different, (method, different)
        saved.clear()
        loaded.clear()
    bases = {"Stepper", "ImplicitStepper"}
    assert {one.__name__ for one in classes_with_state()} - bases - MADE_WITH_A_STATE <= visited | {"Unfinished"}


@pytest.mark.parametrize(("name", "column", "value"), [("tau", 1, np.nan), ("a", 0, np.inf), ("supplied_energy", None, np.nan),
                                                       ("q", 1, 1e200)])
def test_rows_of_a_diverged_run_end_before_the_first_bad_number(name, column, value):
    """One bad number in one array is enough."""
    arrays = {field: np.zeros((5, 2)) for field in Record._fields}
    arrays |= {"t": np.arange(5.0), "supplied_energy": np.zeros(5)}
    arrays[name][(3,) if column is None else (3, column)] = value
    first, last = (RunSegment(None, Record(**{key: x.copy() for key, x in arrays.items()})) for _ in range(2))
    kept, cut = run_recorder.finite_segments([first, last])
    assert kept is first and cut.record.t.tolist() == [0.0, 1.0, 2.0] and all(len(x) == 3 for x in cut.record)
    arrays[name][:] = value if name != "t" else 0.0
    assert run_recorder.finite_segments([first, RunSegment(None, Record(**arrays))]) == [first]
