"""The choice of followers, and couplings that contradict each other."""
import pytest

import liedyn as ld
from command_line import run

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
    """`check` reported no warnings, and the error came with the first use."""
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT.format(mimic=mimic, couplings=couplings))
    with pytest.raises(ld.ModelError, match=f"the coupling {name} contradicts the other couplings"):
        ld.load(path)
    result = run("check", path)
    assert result.exit_code != 0 and f"the coupling {name} contradicts" in result.output
    consistent = couplings.replace("offset: 1}", "offset: 0}").replace("offset: 0.5", "offset: 0")
    path.write_text(ROBOT.format(mimic=mimic, couplings=consistent))
    assert len(ld.load(path).independent) == (2 if name != "three" else 1)
