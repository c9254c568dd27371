"""What is suspicious is told by `warnings`, at the line of the caller, and once; commands print it once."""
import warnings

import numpy as np
import pytest

import liedyn as ld
from command_line import ok

PENDULUM = """
links: {arm: {mass: 1, com: [0, 0, -1], inertia: [0.1, 0.1, 0.1]}}
joints: {hinge: {type: revolute, parent: world, child: arm, axis: [0, 1, 0], limits: {lower: -1, upper: 1}, damping: %s}}
"""
SUSPICIOUS = PENDULUM.replace("0.1, 0.1, 0.1", "0.1, 0.1, 0.9") % 0.1


@pytest.fixture
def path(tmp_path):
    (tmp_path / "arm.yaml").write_text(PENDULUM % 0.1)
    return tmp_path / "arm.yaml"


@pytest.fixture
def suspicious(tmp_path):
    (tmp_path / "suspicious.yaml").write_text(SUSPICIOUS)
    return tmp_path / "suspicious.yaml"


def told(call) -> list[str]:
    """Texts of LiedynWarning, which must point here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    for one in caught:
        assert one.category is ld.LiedynWarning, one
        assert one.filename == __file__
    assert len(caught) == len({str(one.message) for one in caught})
    texts = [str(one.message) for one in caught]
    if hasattr(result, "warnings") and not isinstance(result, ld.Model):
        once = {warning for warning in result.warnings if "limits are not enforced in rollouts" in warning.message}    # per model
        once |= {warning for warning in result.warnings if warning.level == "information"}
        assert set(result.warnings) - once <= {one.message for one in caught}
    return texts


def recorded(model):
    """Columns of a motion whose positions are noisy."""
    t, rng = np.linspace(0.0, 2.0, 201), np.random.default_rng(0)
    return t, np.sin(3 * t)[:, None] + 1e-3 * rng.standard_normal((201, 1))


CALLS = {
    "simulate": (lambda model, path: ld.simulate(model, duration=0.1, q0=[2.0]), "hinge"),
    "run_scenario": (lambda model, path: ld.run_scenario({"robot": str(path), "duration": 0.1, "initial": {"q": {"hinge": 2.0}}}),
                     "hinge"),
    "identify": (lambda model, path: ld.identify(model, recorded(model)[0], recorded(model)[1], np.zeros((201, 1))), ""),
    "motion_of": (lambda model, path: ld.motion_of(model, ld.trajectory_of(model, *recorded(model))), ""),
    "linearize_scenario": (lambda model, path: ld.linearize_scenario(
        {"robot": str(path), "duration": 1, "initial": {"q": {"hinge": 2.0}}}, at=0.1), "hinge"),
    "find_equilibrium": (lambda model, path: ld.find_equilibrium(
        {"robot": str(path), "duration": 1, "joints": {"hinge": {"torque": "sin(t)"}}}), "forces depend on time"),
}


@pytest.mark.parametrize("name", CALLS)
def test_doubts_are_warnings_at_the_line_of_the_caller(name, path):
    call, text = CALLS[name]
    model = ld.load(path)
    found = told(lambda: call(model, path))
    assert found and any(text in one for one in found)
    with warnings.catch_warnings(), pytest.raises(ld.LiedynWarning):
        warnings.simplefilter("error", ld.LiedynWarning)
        call(model, path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", ld.LiedynWarning)
        call(model, path)
    assert not caught


def test_a_rollout_warns_of_a_step_that_is_too_long(path):
    model = ld.load(path)
    stiff = model.with_changes(damping={"hinge": 1e5})
    for _ in range(2):                                    # each time
        assert told(lambda: ld.rollout(stiff, [0.3], [0.0], dt=1e-3, steps=3))[0].startswith("dt is too long: ")
        assert told(lambda: ld.rollout(model, [0.3], [0.0], dt=1e-3, steps=3)) == []
    law = ld.Feedback.pd([1e9], [1e5], [0.0])             # other gains, after a rollout without doubts
    assert told(lambda: ld.rollout(model, [0.3], [0.0], dt=1e-3, steps=3, feedback=ld.Feedback.pd([1.0], [1.0], [0.0]))) == []
    assert told(lambda: ld.rollout(model, [0.3], [0.0], dt=1e-3, steps=3, feedback=law))[0].startswith("dt is too long: ")


def test_loading_a_suspicious_robot_warns_once(suspicious, path):
    text, = told(lambda: ld.load(suspicious))
    assert text.startswith("1 warning about the robot suspicious (model.warnings lists it); the first: ")
    assert "principal inertias" in text
    assert told(lambda: ld.load(path)) == []
    text, = told(lambda: ld.simulate(suspicious, duration=0.01))
    assert text.startswith("1 warning")


def test_commands_print_each_note_once(suspicious, tmp_path):
    result = ok("simulate", str(suspicious), "-S", "duration=0.1", "-S", "initial.q.hinge=2", "-o", str(tmp_path / "run"),
                "--no-plots")
    lines = [line for line in result.stderr.splitlines() if "hinge" in line or "warning" in line]
    assert lines and len(lines) == len(set(lines)) and all(line.startswith("warning: ") for line in lines)
    assert "Warning" not in result.stderr
