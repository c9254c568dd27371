"""Codes of warnings: each is documented in one table, issued by some place, and the same in Python, JSON and on the terminal."""
import ast
import copy
import json
import pickle
import warnings
from pathlib import Path

import pytest

import liedyn as ld
from command_line import ok
from liedyn.cli import console
from liedyn.errors import LiedynWarning, Place, WarningLog, warn
from liedyn.warning_codes import WARNING_CODES
from sources import nodes_of

ROOT = Path(__file__).parents[1]
ISSUERS = "LiedynWarning", "warnings.add", "self.warn", "_warning"       # what is called with a code first
FULL = LiedynWarning("axis-not-unit", "the axis has length 2", place=Place("arm.yaml", 3, "hinge"), hint="write a unit axis")


def issued() -> dict[str, str]:
    """Every code that the source writes as the first argument of such a call, and one place."""
    found = {}
    for path in (ROOT / "src/liedyn").rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(ISSUERS) and node.args:
                code = node.args[0]
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    found[code.value] = f"{path.name}:{node.lineno}"
    return found


def test_the_table_has_exactly_the_codes_that_are_issued():
    assert issued().keys() == WARNING_CODES.keys()


def test_documentation_lists_every_code():
    text = (ROOT / "docs/warnings.md").read_text(encoding="utf-8")
    rows = [f"| `{code}` | {level} | {meaning} |" for code, (level, meaning) in WARNING_CODES.items()]
    assert [line for line in text.splitlines() if line.startswith("| `")] == rows


def test_every_code_has_a_level():
    assert {level for level, _ in WARNING_CODES.values()} == {"warning", "information"}


def test_after_information_there_is_nothing_to_do():
    assert {level for level, meaning in WARNING_CODES.values() if meaning.endswith("Nothing to do.")} == {"information"}


def test_information_is_in_results_but_is_no_python_warning():
    """So that `simplefilter("error")` accepts a success; the terminal names the level."""
    information = LiedynWarning("compared", "maximum relative difference 1.5e-15")
    assert (information.level, FULL.level) == ("information", "warning")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn([information])


def test_commands_name_the_level(capsys):
    console.Console().warn(LiedynWarning("rerun", "run 2: mass = 3"), LiedynWarning("mimic", "text"))
    assert capsys.readouterr().err == "information: run 2: mass = 3 [rerun]\nwarning: text [mimic]\n"


def test_codes_are_kebab_case_and_say_what_to_do():
    for code, (_, meaning) in WARNING_CODES.items():
        assert code == code.lower() and all(map(str.isalnum, code.split("-"))), code
        assert meaning.count(". ") >= 1 and meaning.endswith("."), code


def test_an_unknown_code_is_refused():
    with pytest.raises(ValueError, match="unknown warning code 'axis-not-uni'"):
        LiedynWarning("axis-not-uni", "the axis has length 2")


def test_text_has_place_hint_and_code():
    assert str(FULL) == "arm.yaml:3: hinge: the axis has length 2 (write a unit axis) [axis-not-unit]"
    assert str(LiedynWarning("mimic", "line one\nline two")) == r"line one\nline two [mimic]"
    assert repr(FULL) == f"<LiedynWarning {FULL}>"


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy,
                                    lambda x: LiedynWarning.from_dict(json.loads(json.dumps(x.to_dict())))])
@pytest.mark.parametrize("warning", [FULL, LiedynWarning("mimic", "text"),
                                     LiedynWarning("mimic", "text", place=Place(key="hinge"))])
def test_copies_are_equal(copied, warning):
    other = copied(warning)
    assert other == warning and hash(other) == hash(warning) and str(other) == str(warning) and type(other) is LiedynWarning


def test_equality_is_by_content():
    parts = {"code": "axis-not-unit", "message": "text", "place": Place("a"), "hint": "hint"}
    others = ({"code": "mimic"}, {"message": "other"}, {"place": None}, {"hint": None})
    assert len({LiedynWarning(**parts), *(LiedynWarning(**parts | other) for other in others)}) == 5
    assert LiedynWarning(**parts) != str(LiedynWarning(**parts))


def test_a_log_has_each_warning_once():
    log = WarningLog([FULL, FULL])
    log.add("mimic", "first", cause="hinge")
    log.add("mimic", "second", cause="hinge")
    log.add("mimic", "first", cause=3)
    log.extend([FULL])
    assert [one.message for one in log] == [FULL.message, "first", "first"] and len(log) == 3 and log and not WarningLog()
    again = WarningLog.from_state_dict(json.loads(json.dumps(log.state_dict())))
    again.extend([FULL])
    again.add("mimic", "third", cause=3)
    assert list(again) == list(log)


def test_python_warnings_are_the_objects_and_can_be_filtered_by_code():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn([FULL, FULL])
    assert [one.message for one in caught] == [FULL]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", r".*\[axis-not-unit\]", ld.LiedynWarning)
        warn([FULL, LiedynWarning("mimic", "text")])
    assert [one.message.code for one in caught] == ["mimic"]


ROBOT = """
links: {arm: {mass: 1, com: [0, 0, -1], inertia: [0.1, 0.1, 0.9]}}
joints: {hinge: {type: revolute, parent: world, child: arm, axis: [0, 1, 0], limits: {lower: -1, upper: 1}}}
"""


def test_run_folder_and_terminal_have_the_warnings_of_the_result(tmp_path):
    (tmp_path / "arm.yaml").write_text(ROBOT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.LiedynWarning)
        result = ld.simulate(tmp_path / "arm.yaml", duration=0.1, q0=[2.0])
    assert [one.code for one in result.warnings] == ["beyond-limits"]
    assert [one.code for one in result.model.warnings] == ["triangle-inequality"]
    done = ok("simulate", tmp_path / "arm.yaml", "-S", "duration=0.1", "-S", "initial.q.hinge=2", "-o", tmp_path / "run",
              "--no-plots")
    told = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert tuple(map(LiedynWarning.from_dict, told["warnings"])) == result.warnings
    assert tuple(map(LiedynWarning.from_dict, told["robot_warnings"])) == result.model.warnings
    assert told["warnings"][0].keys() == {"level", "code", "message"} and told["robot_warnings"][0]["key"] == "arm"
    assert f"warning: {result.warnings[0]}" in done.stderr.splitlines()
    assert done.stderr.count("[beyond-limits]") == done.stderr.count("[robot-warnings]") == 1
