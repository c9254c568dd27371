"""The choice of followers, and couplings that contradict each other."""
import itertools
import re

import numpy as np
import pytest

import liedyn as ld
from command_line import run
from liedyn.simulation.constraint_setup import solve_coupled_position, solve_coupled_velocity

ROBOT = """
links: {{a: {{mass: 1, inertia: [1, 1, 1]}}, b: {{mass: 1, inertia: [1, 1, 1]}}, c: {{mass: 1, inertia: [1, 1, 1]}}}}
joints:
  i: {{type: continuous, parent: world, child: a, axis: [0, 1, 0]}}
  j: {{type: continuous, parent: a, child: b, axis: [0, 1, 0]{mimic}}}
  k: {{type: continuous, parent: b, child: c, axis: [0, 1, 0]}}
couplings: {couplings}
"""
MIMIC = ", mimic: {joint: i, multiplier: 2}"


@pytest.mark.parametrize(("mimic", "couplings", "name"), [
    ("", "{one: {terms: {i: 1, j: -1}}, two: {terms: {i: 2, j: -2}, offset: 1}}", "two"),
    (MIMIC, "{one: {terms: {i: -2, j: 1}, offset: 0.5}}", "j"),
    ("", "{one: {terms: {i: 1, j: 1}}, two: {terms: {j: 1, k: 1}}, three: {terms: {i: 1, k: -1}, offset: 1}}", "three")])
def test_contradictory_couplings_are_an_error_of_the_file(mimic, couplings, name, tmp_path):
    """`check` reported no warnings, and the error was raised at the first use."""
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT.format(mimic=mimic, couplings=couplings))
    with pytest.raises(ld.ModelError, match=f"the coupling {name} contradicts coupling"):
        ld.load(path)
    result = run("check", path)
    assert result.exit_code != 0 and f"the coupling {name} contradicts" in result.output
    consistent = couplings.replace("offset: 1}", "offset: 0}").replace("offset: 0.5", "offset: 0")
    path.write_text(ROBOT.format(mimic=mimic, couplings=consistent))
    assert len(ld.load(path).independent) == (2 if name != "three" else 1)


@pytest.mark.parametrize(("terms", "offset", "message"), [
    ("{i: 1, j: -2.000000002}", 0.1, "nearly repeats coupling one: the coefficient of i is 1, and 1.000000001 follows from"),
    ("{i: 3, j: -6.00003}", 0.3, "nearly repeats coupling one: the coefficient of i is 3, and 3.000015 follows from"),
    ("{i: 0.5, j: -1}", 0.0500000005, "contradicts coupling one: the offset is 0.0500000005, and 0.05 follows from")])
def test_couplings_that_nearly_repeat_each_other_are_an_error(terms, offset, message, tmp_path):
    """The elimination took them as independent, so that the joints were at rest; mobility took them as one."""
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT.format(mimic="", couplings=f"{{one: {{terms: {{i: 1, j: -2}}, offset: 0.1}}, "
                                                     f"two: {{terms: {terms}, offset: {offset}}}}}"))
    with pytest.raises(ld.ModelError, match=re.escape(f"couplings.two: the coupling two {message}")):
        ld.load(path)


def test_several_couplings_that_nearly_give_another_are_named(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT.format(mimic=MIMIC, couplings="{one: {terms: {j: 1, k: 1}}, two: {terms: {i: 2.0000001, k: 1}}}"))
    with pytest.raises(ld.ModelError, match="the coupling j nearly repeats couplings one, two: the coefficient of"):
        ld.load(path)


def test_rounding_of_a_repeated_coupling_keeps_the_state(tmp_path):
    """The initial state moved to the intersection of both."""
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT.format(mimic="", couplings="{one: {terms: {i: 1, j: -2}}, two: {terms: {i: 1, j: -2.000000000001}}}"))
    model = ld.load(path)
    assert model.independent == ("i", "k")
    x, masks = np.array([1.0, 0.0, 0.0]), (np.zeros(3, dtype=bool),)
    for closed in solve_coupled_position(model, x, masks, None), solve_coupled_velocity(model, np.zeros(3), x, masks, None):
        np.testing.assert_allclose(closed, [0.8, 0.4, 0.0], atol=1e-9)


def test_couplings_that_fix_joints_together_are_a_warning(tmp_path):
    """A third coupling, rounded to four digits, immobilized a simulation."""
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT.format(mimic=", mimic: {joint: i, multiplier: 0.3333}", couplings="{one: {terms: {i: 1, j: -3}}}"))
    warning, = ld.load(path).warnings
    assert warning.code == "couplings-fix-joints"
    assert "j: the couplings one, j together fix i, j: a simulation does not move them" in str(warning)
    path.write_text(ROBOT.format(mimic=MIMIC, couplings="{lock: {terms: {i: 1}, offset: 0.3}, k: {terms: {k: 1, j: 2}}}"))
    assert not ld.load(path).warnings                          # a coupling with one term fixes its joint as written


@pytest.mark.parametrize("terms", ["{i: 1, j: -628318.5}", "{i: 1, j: 3.0e-8}"])
def test_equations_with_coordinates_of_their_own_are_independent(terms, tmp_path):
    """Two gears of a large ratio on one joint are nearly equal except for the joints that follow."""
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT.format(mimic="", couplings=f"{{one: {{terms: {terms}}}, two: {{terms: {terms.replace('i', 'k')}}}}}"))
    model = ld.load(path)
    G = model.elimination().projection
    ratio = float(re.search(r"j: ([-\d.e]+)", terms)[1])
    assert len(model.independent) == 1 and np.allclose(G[[0, 2]], -ratio * G[1], rtol=1e-12, atol=0)


@pytest.mark.parametrize("order", list(itertools.permutations(("one: {terms: {i: 1, j: -1}}", "two: {terms: {i: 1, j: -1.0001}}",
                                                               "three: {terms: {i: 1}}"))))
def test_a_redundant_coupling_loads_in_any_order(order, tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT.format(mimic="", couplings=f"{{{', '.join(order)}}}"))
    assert ld.load(path).independent == ("k",)


@pytest.mark.parametrize("ratio", [1.6e-6, -3.0e-8, 1.1e5, 4.0e7])
@pytest.mark.parametrize("prescribed", ["i", "j"])
def test_a_prescribed_coordinate_does_not_follow_whatever_the_ratio(ratio, prescribed, tmp_path):
    """A coefficient of a gear below 1e-5 of the other one was taken for zero, and the prescribed acceleration was ignored."""
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT.format(mimic=f", mimic: {{joint: i, multiplier: {ratio}}}", couplings="{}"))
    model, z = ld.load(path), np.zeros(3)
    mask, a = np.array([prescribed == "i", prescribed == "j", False]), np.zeros(3)
    assert model.independent == ("i", "k")
    a[mask] = 0.2
    expected = (0.2, 0.2 * ratio) if prescribed == "i" else (0.2 / ratio, 0.2)
    for motion in (z, np.zeros((2, 3))):
        result, _ = ld.hybrid_dynamics(model, motion, motion, a, z, mask)
        np.testing.assert_allclose(result[..., :2], np.broadcast_to(expected, (*motion.shape[:-1], 2)), rtol=1e-12)
