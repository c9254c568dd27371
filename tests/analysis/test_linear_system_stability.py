"""Stability by Jordan chains: robots in closed form, growth of the exponential, matrices with known chains."""
import numpy as np
import pytest
from scipy.linalg import block_diag, expm
from scipy.stats import ortho_group

import liedyn as ld
from liedyn.analysis.linear_system import stability_text
from liedyn.analysis.modes import modes

BODY = "{mass: 2, com: [0, 0, 0], inertia: [0.1, 0.2, 0.3]}"
POINT = "{mass: 2, com: [0, 0, -0.5], inertia: [0.01, 0.01, 0.01]}"
SLIDES = f"""
links: {{a: {BODY}, b: {BODY}, c: {BODY}}}
joints:
  x: {{type: prismatic, parent: world, child: a, axis: [1, 0, 0], limits: {{lower: -9, upper: 9}}}}
  y: {{type: prismatic, parent: world, child: b, axis: [1, 0, 0], limits: {{lower: -9, upper: 9}}}}
  z: {{type: prismatic, parent: world, child: c, axis: [1, 0, 0], limits: {{lower: -9, upper: 9}}}}
"""
PENDULUMS = f"""
links: {{a: {POINT}, b: {POINT}}}
joints:
  one: {{type: continuous, parent: world, child: a, axis: [0, 1, 0]}}
  two: {{type: continuous, parent: world, child: b, axis: [0, 1, 0], origin: {{xyz: [0, 3, 0]}}}}
"""
PLANAR = f"""
links: {{a: {{}}, b: {{}}, c: {BODY}}}
joints:
  x: {{type: prismatic, parent: world, child: a, axis: [1, 0, 0], limits: {{lower: -9, upper: 9}}}}
  y: {{type: prismatic, parent: a, child: b, axis: [0, 1, 0], limits: {{lower: -9, upper: 9}}}}
  turn: {{type: continuous, parent: b, child: c, axis: [0, 0, 1]}}
"""
# robot, joints of the scenario: stability, growth, {eigenvalue: chains} on the axis, joints that grow fastest
W = np.sqrt(2 * 9.81 * 0.5 / (2 * 0.25 + 0.01))                      # of the pendulums
CASES = {
    "a free mass": (SLIDES, {"y": {"torque": "-3*q - v"}, "z": {"torque": "-q - v"}}, "drifting", 1, {0: (2,)}, {"x"}),
    "a damped free mass": (SLIDES, {"x": {"torque": "-v"}, "y": {"torque": "-3*q - v"}, "z": {"torque": "-q - v"}},
                           "neutral", 0, {0: (1,)}, set()),
    "a mass pulled by a free mass": (
        SLIDES, {"y": {"torque": "3*q(x)"}, "z": {"torque": "-q - v"}}, "unstable", 3, {0: (4,)}, {"y"}),
    "a mass pulled through a damped one": (
        SLIDES, {"y": {"torque": "3*q(x) - v"}, "z": {"torque": "-q - v"}}, "unstable", 2, {0: (3,)}, {"y"}),
    "six integrators": (SLIDES, {"y": {"torque": "3*q(x)"}, "z": {"torque": "0.1*q(y)"}}, "unstable", 5, {0: (6,)}, {"z"}),
    "three free masses": (SLIDES, {}, "drifting", 1, {0: (2, 2, 2)}, {"x", "y", "z"}),
    "a free planar body": (PLANAR, {}, "drifting", 1, {0: (2, 2, 2)}, {"x", "y", "turn"}),
    "a planar body whose thrust turns with it": (
        PLANAR, {"x": {"torque": "-9*sin(q(turn))"}}, "unstable", 3, {0: (4, 2)}, {"x"}),
    "equal pendulums": (PENDULUMS, {}, "neutral", 0, {W: (1,)}, set()),
    "a pendulum that drives an equal one": (PENDULUMS, {"two": {"torque": "0.5*q(one)"}}, "drifting", 1, {W: (2,)}, {"two"}),
    "damped pendulums": (PENDULUMS, {"one": {"torque": "-v"}, "two": {"torque": "-v"}}, "stable", None, {}, set()),
    "one damped pendulum": (PENDULUMS, {"one": {"torque": "-v"}}, "neutral", 0, {W: (1,)}, set()),
}


@pytest.fixture
def system(tmp_path):
    def build(robot, joints, **options):
        path = tmp_path / "robot.yaml"
        path.write_text(f"gravity: [0, 0, -9.81]\n{robot}")
        return ld.linearize_scenario({"robot": str(path), "duration": 1.0, "joints": joints}, **options).system
    return build


def on_axis(found):
    return {round(mode.eigenvalue.imag, 6): mode.chains for mode in found if mode.chains}


@pytest.mark.parametrize("name", CASES)
def test_stability_of_robots_in_closed_form(system, name):
    robot, joints, stability, growth, chains, fastest = CASES[name]
    s = system(robot, joints)
    assert (s.stability, s.growth) == (stability, growth)
    assert on_axis(s.modes) == {round(w, 6): lengths for w, lengths in chains.items()}
    found = {joint: share for mode in s.modes if mode.growth == growth for joint, share in mode.fastest.items() if share > 1e-9}
    assert set(found) == fastest
    if growth is not None:
        assert growth_of_exponential(s.A) == pytest.approx(growth, abs=0.1)


def growth_of_exponential(A):
    """Power of t like which |exp(A t)| grows: largest over a period of the pendulums."""
    size = [max(np.linalg.norm(expm(A * t)) for t in t0 + np.linspace(0, 2 * np.pi / W, 9)) for t0 in (2e3, 4e3)]
    return np.log2(size[1] / size[0])


def test_an_upright_pendulum_is_unstable_exponentially(system):
    s = system(PENDULUMS, {}, overrides=["initial.q.one=3.141592653589793"])
    assert (s.stability, s.growth) == ("unstable", None) and s.modes[0].chains == ()
    assert s.modes[0].time_constant == pytest.approx(-1 / W) and stability_text(s) == "unstable"


@pytest.mark.parametrize("name, words", [("a free mass", "drifting (grows like t)"), ("equal pendulums", "neutral (bounded)"),
                                         ("six integrators", "unstable (grows like t^5)"), ("damped pendulums", "stable")])
def test_the_verdict_says_how_deviations_grow(system, name, words):
    assert stability_text(system(*CASES[name][:2])) == words


def jordan(length, value=0j):
    block = np.array([[value.real, value.imag], [-value.imag, value.real]]) if value.imag else np.array([[value.real]])
    return np.kron(np.eye(length), block) + np.kron(np.eye(length, k=1), np.eye(len(block)))


@pytest.mark.parametrize("chains", [{0: (1, 1)}, {0: (2, 1)}, {0: (4, 4, 2, 2, 1)}, {3: (1, 1)}, {3: (2,)}, {3: (2, 1)},
                                    {3: (3, 2)}, {3: (4,)}, {0: (3, 1), 2: (2, 2), 7: (2,)},
                                    {2: (2,), 2.001: (2,)}, {2: (2,), 2.00001: (1,)}])
@pytest.mark.parametrize("seed", range(3))
def test_chains_of_matrices_with_a_known_jordan_form(chains, seed):
    """In random directions: a solver scatters the eigenvalues of a chain by up to 1e-4."""
    rng = np.random.default_rng(seed)
    A = block_diag(*[jordan(length, 1j * w) for w, lengths in chains.items() for length in lengths], jordan(2, -0.5 + 1j), [[-4]])
    turn = ortho_group.rvs(len(A), random_state=rng) if seed else np.eye(len(A))
    found = modes(turn @ A @ turn.T, list(range(len(A))))
    assert sum(mode.count for mode in found) == len(A)
    for w, lengths in chains.items():
        here = [mode for mode in found if abs(mode.eigenvalue - 1j * w) < 1e-6]
        if w and max(lengths) == 1:                                  # equal ones without a chain stay apart
            assert [mode.chains for mode in here] == [(1,)] * len(lengths) and not any(mode.fastest for mode in here)
        else:
            assert [mode.chains for mode in here] == [lengths] and here[0].count == sum(lengths) * (2 if w else 1)


@pytest.mark.parametrize("A, stability", [
    (jordan(2, -1e-5 + 1j), "stable"), (jordan(2, 1e-5 + 1j), "unstable"), (jordan(3, -1e-2 + 0j), "stable"),
    (np.diag([-1e6, 1e-4]), "unstable"), (np.diag([-1e6, -1e-4]), "stable")])
def test_slow_growth_and_decay_are_not_taken_for_none(A, stability):
    found = modes(A, list(range(len(A))))
    assert found[0].stability == stability and not any(mode.chains for mode in found)


def test_a_chain_next_to_a_close_eigenvalue_is_not_taken_for_a_shorter_one():
    A = block_diag(jordan(3, 2j), jordan(1, 2.000008j))
    assert modes(A, list(range(8)))[0].stability == "unstable"
