"""The start of a run from a rough guess: the nearest closed configuration, without whole turns."""
from __future__ import annotations

import json

import numpy as np
import pytest

import liedyn as ld

pytestmark = pytest.mark.filterwarnings("ignore:the initial position was projected")
TURN = 2 * np.pi
LINK = {"mass": 1, "inertia": [0.1, 0.1, 0.1]}


def bars(turned=None, scale=1.0) -> dict:
    """Two bars of 0.3 m and one of 0.6 m between points 1 m apart; b has a torsion spring."""
    def joint(parent, child, x, **more):
        return {"type": "continuous", "parent": parent, "child": child, "axis": [0, 0, 1],
                "origin": {"xyz": [x * scale, 0, 0]}, **more}

    base = {"type": "fixed", "parent": "world", "child": "base", "origin": {"xyz": [0, 0, 0], "rpy": turned or [0, 0, 0]}}
    return {"name": "bars", "gravity": [0, 0, 0], "links": dict.fromkeys(("base", "a", "b", "c"), LINK),
            "joints": {"base": base, "a": joint("base", "a", 0), "b": joint("a", "b", 0.3, stiffness=10, rest=0.0),
                       "c": joint("base", "c", 1)},
            "loops": {"pin": {"type": "revolute", "a": {"link": "b", "xyz": [0.3 * scale, 0, 0]},
                              "b": {"link": "c", "xyz": [0.6 * scale, 0, 0]}, "axis": [0, 0, 1]}}}


def closed(a: float) -> list[np.ndarray]:
    """Return both pairs (b, c) that close the loop at the angle a, by intersecting circles."""
    knee = 0.3 * np.exp(1j * a)
    way = 1 - knee
    along = (0.3**2 - 0.6**2 + abs(way)**2) / (2 * abs(way))
    found = []
    for side in (1, -1):
        pin = knee + way / abs(way) * (along + side * 1j * np.sqrt(0.3**2 - along**2))
        found.append(np.array([np.angle((pin - knee) / np.exp(1j * a)), np.angle(pin - 1)]))
    return found


@pytest.fixture
def start(tmp_path):
    def run(robot, guess, **joints):
        path = tmp_path / "bars.yaml"
        path.write_text(json.dumps(robot))
        return ld.run_scenario({"robot": str(path), "duration": 0.01, "initial": {"q": guess}, "joints": joints})

    return run


@pytest.mark.parametrize("turned", [None, [0.4, -0.7, 0.2]])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_rough_guess_leads_to_the_nearest_configuration(start, turned, scale):
    rng = np.random.default_rng(7)
    robot = bars(turned, scale)
    for guess in [(-0.5, 1.5), (-1.0, 1.5), *rng.uniform(-3.0, 3.0, (8, 2))]:
        result = start(robot, dict(zip("bc", map(float, guess), strict=True)), a={"prescribe": {"position": 0.3}})
        nearest = min((x + TURN * np.round((guess - x) / TURN) for x in closed(0.3)), key=lambda x: np.linalg.norm(x - guess))
        np.testing.assert_allclose(result.q[0], [0.3, *nearest], atol=1e-9, err_msg=f"guess {guess}")
        assert result.potential[0] == pytest.approx(5 * nearest[0]**2, rel=1e-9)
        assert any("b by" in note and "c by" in note for note in map(str, result.warnings))


def test_the_start_is_what_assemble_finds(start):
    for guess in ([0.3, -1.0, 2.0], [2.0, 2.0, -1.0]):
        result = start(bars(), dict(zip("abc", guess, strict=True)), a={"torque": 0})
        np.testing.assert_allclose(result.q[0], ld.assemble(result.model, guess).q, atol=1e-8)


def test_joints_do_not_wind_from_the_neutral_configuration():
    result = ld.run_scenario({"robot": "robots/four_bar.yaml", "duration": 0.01})
    assert np.abs(result.q[0]).max() < np.pi


def test_a_start_beyond_limits_is_taken_where_none_lies_within_them(start):
    robot = bars()
    robot["joints"]["b"]["limits"] = {"lower": -0.2, "upper": 0.2}
    robot["joints"]["b"]["type"] = "revolute"
    with pytest.warns(ld.LiedynWarning, match="limit"):
        result = start(robot, {"b": 0.1, "c": 2.0}, a={"prescribe": {"position": 0.3}})
    np.testing.assert_allclose(result.q[0], [0.3, *closed(0.3)[0]], atol=1e-9)
