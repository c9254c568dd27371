"""`liedyn check`: every warning, every refusal, and the error of the command."""
import pytest

from liedyn.errors import CheckFailed, ModelError
from liedyn.report.robot_summary import examine, raise_for_warnings

GOOD = """
links: {bar: {mass: 1, inertia: [1, 1, 1]}}
joints: {hinge: {type: continuous, parent: world, child: bar, axis: [0, 1, 0]}}
"""


@pytest.fixture
def robots(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "odd.yaml").write_text(GOOD.replace("continuous", "revolute").replace("[1, 1, 1]", "[1, 1, 9]"))
    (tmp_path / "bad.yaml").write_text(GOOD.replace("[0, 1, 0]", "[0, 0, 0]"))


def test_a_good_robot(robots):
    good = examine("good.yaml")
    assert good.text() == "good.yaml: no warnings"
    assert good.to_dict() == {"file": "good.yaml", "error": None, "constraints": "", "mobility": None, "warnings": [],
                              "information": []}
    raise_for_warnings([good])


def test_every_finding_is_listed(robots):
    odd = examine("odd.yaml")
    first, *lines = odd.text().splitlines()
    assert first == "odd.yaml: 2 warnings"
    assert [line.rsplit("[")[-1] for line in lines] == ["triangle-inequality]", "limits-missing]"]
    assert all(line.startswith("  odd.yaml:") for line in lines)
    warning = odd.to_dict()["warnings"][1]
    assert (warning["code"], warning["key"], warning["file"]) == ("limits-missing", "hinge", "odd.yaml")
    assert warning["line"] == 3
    with pytest.raises(CheckFailed, match=r"^2 warnings in 1 robot of 2$"):
        raise_for_warnings([examine("good.yaml"), odd])


def test_a_refused_robot_does_not_hide_the_others(robots):
    bad = examine("bad.yaml")
    assert bad.text().startswith("bad.yaml: error\n  bad.yaml:3: joints.hinge.axis: ")
    assert "axis" in bad.to_dict()["error"] and bad.to_dict()["warnings"] == []
    with pytest.raises(ModelError, match=r"^1 robot of 2 cannot be used: bad\.yaml$"):
        raise_for_warnings([bad, examine("odd.yaml")])


def test_findings_depend_on_the_base(tmp_path):
    (tmp_path / "rock.yaml").write_text("links: {rock: {mass: 1, inertia: [1, 1, 9]}}\n")
    assert examine(str(tmp_path / "rock.yaml")).warnings == ()
    assert [warning.code for warning in examine(str(tmp_path / "rock.yaml"), "floating").warnings] == ["triangle-inequality"]
