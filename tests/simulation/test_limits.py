"""A run beyond the limits of its robot says so."""
import json
from pathlib import Path

import numpy as np
import pytest

from liedyn.report.run_folder import summary
from liedyn.simulation.run import run_scenario

ROOT = Path(__file__).parents[2]
ARM = """
links: {a: {mass: 1.0, com: [0, 0, -0.5]}, b: {mass: 1.0, com: [0, 0, -0.5], inertia: [0.01, 0.01, 0.01]}}
joints:
  shoulder: {type: revolute, parent: world, child: a, axis: [0, 1, 0], armature: 0.1, limits: %s}
  elbow: {type: revolute, parent: a, child: b, origin: {xyz: [0, 0, -1]}, axis: [0, 1, 0], limits: %s}
"""
WIDE = "{lower: -9, upper: 9, velocity: 99, effort: 99}"


@pytest.fixture
def run(tmp_path):
    def result(scenario: dict, shoulder: str = WIDE, elbow: str = WIDE):
        (tmp_path / "arm.yaml").write_text(ARM % (shoulder, elbow))
        return run_scenario({"robot": str(tmp_path / "arm.yaml"), "duration": 2, "output_step": 0.01, **scenario})
    return result


SWING = {"joints": {"shoulder": {"prescribe": {"position": "0.5*t*t"}}, "elbow": {"prescribe": {"position": 0}}}}


def test_a_run_far_beyond_its_limits_is_no_silent_run(run):
    """q = t^2/2, v = t: 1 rad is exceeded after sqrt(2) s, 0.5 rad/s after 0.5 s, and the torque by the weight of the links."""
    r = run(SWING, "{lower: -1, upper: 1, velocity: 0.5, effort: 5}")
    by_kind = {one.kind: one for one in r.limits}
    assert [one.kind for one in r.limits] == ["position", "velocity", "effort"]
    assert {one.coordinate for one in r.limits} == {"shoulder"}
    assert by_kind["position"].first == pytest.approx(1.42) and by_kind["position"].worst == pytest.approx(2.0)
    assert by_kind["velocity"].first == pytest.approx(0.51) and by_kind["velocity"].worst == pytest.approx(2.0)
    assert by_kind["effort"].worst == pytest.approx(np.abs(r.tau[:, 0]).max())
    assert by_kind["position"].at == by_kind["velocity"].at == r.t[-1]
    warnings = [note for note in map(str, r.warnings) if "limits are exceeded" in note]
    assert len(warnings) == 3
    assert "shoulder from t = 1.42 s (worst 2 rad at t = 2 s, limit 1 rad)" in warnings[0]
    assert "(worst 2 rad/s at t = 2 s, limit 0.5 rad/s)" in warnings[1] and "N m at t" in warnings[2]
    written = json.loads(json.dumps(summary(r)))["limits"]
    one = by_kind["position"]
    assert written[0] == {"kind": "position", "coordinate": "shoulder", "unit": "rad", "first": one.first, "at": 2.0,
                          "worst": one.worst, "limit": 1.0}


def test_small_limits_are_judged_by_themselves(run):
    """They had a tolerance of 1e-9 rad or m, whatever their size, as of a slide in large units of length."""
    swing = {"joints": {"shoulder": {"prescribe": {"position": "0.5e-9*t*t"}}, "elbow": {"prescribe": {"position": 0}}}}
    one, = run(swing, "{lower: -1e-9, upper: 1e-9, velocity: 99, effort: 99}").limits
    assert one.kind == "position" and one.first == pytest.approx(1.42)


def test_a_motion_up_to_its_limits_is_within_them(run):
    """The last value is the limit except for rounding."""
    effort = float(np.abs(run(SWING).tau[:, 0]).max())
    assert run(SWING, f"{{lower: -1, upper: 2, velocity: 2, effort: {effort!r}}}").limits == ()


def test_limits_on_the_lower_side_have_their_sign(run):
    swing = {"joints": {"shoulder": {"prescribe": {"position": "-0.5*t*t"}}}}
    one = run(swing, "{lower: -1, upper: 1, velocity: 99, effort: 99}").limits[0]
    assert (one.limit, one.worst) == (-1.0, pytest.approx(-2.0))


def test_limits_that_urdf_files_leave_at_zero_are_none(run):
    assert run(SWING, "{lower: 0, upper: 0, velocity: 0, effort: 0}", "{lower: 0, upper: 0, velocity: 0, effort: 0}").limits == ()


def test_many_joints_beyond_their_limits_are_one_line_a_kind():
    r = run_scenario(ROOT / "robots/panda.yaml", {"duration": 1})
    speeds = [one for one in r.limits if one.kind == "velocity"]
    warnings = [note for note in map(str, r.warnings) if note.startswith("velocity limits")]
    assert len(speeds) > 4 and len(warnings) == 1
    assert f"and {len(speeds) - 3} more" in warnings[0]


@pytest.mark.parametrize("mode", ["hard", "stop"])
def test_stops_do_not_hide_limits_that_a_prescribed_motion_exceeds(run, mode):
    """A joint has no stop while it is prescribed: no option makes its limits act."""
    r = run({**SWING, "limits": mode, "saturate": True}, "{lower: -1, upper: 1, velocity: 99, effort: 5}")
    warnings = [note for note in map(str, r.warnings) if "limits are exceeded" in note]
    assert len(warnings) == 2 and warnings[0].startswith("position") and warnings[1].startswith("effort")
    assert all("limits are exceeded: shoulder from t = " in note for note in warnings)
    assert all("; limits are not enforced while a joint is prescribed or locked" in note for note in warnings)


def test_limits_of_joints_that_are_prescribed_and_of_those_that_move_are_two_lines(run):
    """The elbow is free: limits can act on it, and do where `limits` includes it."""
    swing = {"joints": {"shoulder": SWING["joints"]["shoulder"], "elbow": {"torque": 20}}, "duration": 1.5}
    narrow = "{lower: -1, upper: 1, velocity: 99, effort: 99}"

    def told(**more):
        return [note for note in map(str, run(swing | more, narrow, narrow).warnings) if note.startswith("position")]
    free, fixed = told()
    assert "exceeded: elbow" in free and "limits: stop enforces them" in free
    assert "exceeded: shoulder" in fixed and "elbow" not in fixed and "prescribed or locked" in fixed
    assert told(limits="stop") == [fixed]
    assert "limits are not enforced (limits.joints excludes them)" in told(limits={"joints": ["shoulder"]})[0]


def test_limits_are_exceeded_in_one_phase_and_stopped_in_another(run):
    """It is prescribed beyond its limit, then free: the stop acts from then on only."""
    r = run({"limits": "stop", "joints": {"elbow": {"prescribe": {"position": 0}}}, "phases": {
        "driven": {"joints": {"shoulder": {"prescribe": {"position": "1.2*sin(t)"}}}}, "free": {}},
        "events": {"release": {"at": 1.9, "do": {"phase": "free"}}}}, "{lower: -1, upper: 1, velocity: 99, effort: 99}")
    note, = [note for note in map(str, r.warnings) if note.startswith("position")]
    one, = [one for one in r.limits if one.kind == "position"]
    assert "exceeded: shoulder from t = 0.99 s (worst 1.2 rad at t = 1.57 s, limit 1 rad); limits are not enforced" in note
    assert one.first == pytest.approx(0.99) and one.worst == pytest.approx(1.2, abs=1e-4)


@pytest.mark.parametrize("start, hint", [(90.0, "check whether the angles are in degrees"), (3.0, None)])
def test_a_start_far_beyond_limits_may_be_in_degrees(run, start, hint):
    limits = WIDE.replace("-9", "-1").replace("upper: 9", "upper: 1")
    result = run({"initial": {"q": {"shoulder": start}}, "duration": 0.01}, limits)
    assert [one.hint for one in result.warnings if "shoulder starts at" in one.message] == [hint]


@pytest.mark.parametrize("beyond, is_told", [(0.9e-6, False), (1.1e-6, True)])
@pytest.mark.parametrize("limit", [1e-3, 1.0, 1e3])
def test_a_start_at_a_rounded_limit_is_not_beyond_it(run, limit, beyond, is_told):
    """Rounding is relative to the limit."""
    limits = WIDE.replace("-9", f"{-limit}").replace("upper: 9", f"upper: {limit}")
    for side in -1, 1:
        result = run({"initial": {"q": {"shoulder": side * limit * (1 + beyond)}}, "duration": 0.01}, limits)
        assert any("shoulder starts at" in one.message for one in result.warnings) == is_told
