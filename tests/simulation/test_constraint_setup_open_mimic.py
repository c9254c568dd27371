"""A mimic joint that a phase opens moves independently."""
import json

import numpy as np
import pytest

import liedyn as ld


@pytest.fixture
def start(tmp_path):
    def slide(parent, child, **more):
        return {"type": "prismatic", "parent": parent, "child": child, "axis": [1, 0, 0], **more}
    path = tmp_path / "two.yaml"
    path.write_text(json.dumps({"name": "two", "gravity": [0, 0, 0], "links": {"a": {"mass": 1}, "b": {"mass": 3}},
                                "joints": {"a": slide("world", "a"),
                                           "b": slide("world", "b", mimic={"joint": "a", "multiplier": 2})}}))
    return lambda name: ld.run_scenario({
        "robot": str(path), "duration": 2, "output_step": 1, "joints": {"b": {"torque": 6}},
        "phases": {"tied": {}, "free": {"open": [name]}}, "events": {"go": {"at": 1, "do": {"phase": "free"}}}})


def test_a_mimic_can_be_opened(start):
    """Coupled: 1 a' + 3 (2 a') 2 = 2 (6). Open: a continues, b moves under its force only."""
    result = start("b")
    a = 12 / 13
    np.testing.assert_allclose(result.q[-1], [1.5 * a, a + 2 * a + 1], atol=1e-9)


def test_another_name_is_an_error(start):
    with pytest.raises(ld.ScenarioError, match="expected one of b"):
        start("c")
