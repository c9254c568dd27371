"""The table of robot files in packages: its rows for files that the tests install, and its text."""
import pytest

import liedyn as ld
from oracles.robot_packages import PROMISED, Row, folders_of, is_candidate, row_of, rows_of, table


class Here:
    """Computes rows in this process."""

    def row(self, path):
        return row_of(str(path))


@pytest.fixture(autouse=True)
def generic(monkeypatch):
    monkeypatch.setenv("LIEDYN_CODE", "generic")


def test_files_of_gymnasium_agree(tmp_path):
    """All files with which MuJoCo computes, except for those that move in a fluid."""
    rows = rows_of("gymnasium", tmp_path, Here())
    assert len(rows) >= 14 and sum(row.agrees for row in rows) >= 13
    for row in rows:
        assert row.agrees or "forces of a fluid" in row.reason, row
    assert max(row.difference for row in rows if row.agrees) < 1e-12


def test_a_urdf_is_compared_with_pinocchio(tmp_path):
    row = row_of("robots/double_pendulum.urdf")
    assert row.theirs and row.difference < 1e-14 and row.agrees
    robot = ld.load_description("robots/asymmetric_body.yaml", base="fixed")
    ld.save(robot, tmp_path / "body.urdf")
    assert row_of(str(tmp_path / "body.urdf")).difference < 1e-14             # with a floating base


def test_what_is_not_computed_has_a_reason(tmp_path):
    (tmp_path / "a.xml").write_text("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    (tmp_path / "b.xml").write_text('<mujoco><option viscosity="1"/><worldbody>'
                                    '<body><joint/><geom size="1"/></body></worldbody></mujoco>')
    row = row_of(str(tmp_path / "a.xml"))
    assert not row.theirs and row.reason == "ValueError: nothing moves"
    row = row_of(str(tmp_path / "b.xml"))
    assert row.theirs and not row.agrees and row.explanation.startswith("line 1: <option viscosity>: forces of a fluid")
    (tmp_path / "c.xml").write_text("<other/>")
    assert [is_candidate(tmp_path / f"{name}.xml") for name in "abc"] == [True, True, False]


def test_the_table_lists_what_does_not_agree():
    rows = [Row("a.urdf", True, 1e-12), Row("b.urdf", True, 1e-3), Row("c.urdf", True, reason="no links"), Row("d.urdf", False)]
    assert table({"p": rows, "q": "not downloaded: TimeoutExpired"}).splitlines() == [
        "| package | files | MuJoCo or Pinocchio computes | agree to 1e-9 | largest difference of these |",
        "|---|---|---|---|---|",
        "| p | 4 | 3 | 1 | 1.0e-12 |", "| q | not downloaded: TimeoutExpired | | | |", "", "| file | reason |", "|---|---|",
        "| p: b.urdf | differs by 1.0e-03 |", "| p: c.urdf | no links |"]
    assert PROMISED == 1e-9


def test_installed_packages_are_found(tmp_path):
    assert any(folder.name == "assets" for folder in folders_of("gymnasium", tmp_path)) and not list(tmp_path.iterdir())
