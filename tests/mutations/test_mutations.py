"""The instrument that judges the tests: what it changes, that a seed says what it draws, and which tests it runs."""
import ast
import json
import shutil
from pathlib import Path

import pytest

from mutations.mutants import KINDS, draw, is_python, mutants_of
from mutations.run import EQUIVALENT, Copy, judge, packages
from mutations.targets import FOLDERS, nearest_tests

ROOT = Path(__file__).parents[2]


@pytest.fixture
def changed(tmp_path):
    """Return the changes of a source: {(kind, whole text)}."""
    def given(text: str) -> set[tuple[str, str]]:
        (tmp_path / "a.py").write_text(text, encoding="utf-8")
        return {(each.kind, each.source(tmp_path)) for each in mutants_of(Path("a.py"), tmp_path)}
    return given


@pytest.mark.parametrize("text, expected", [
    ("x = a + b", {("sign", "x = a - b"), ("term", "x = a"), ("term", "x = b")}),
    ("x = (a) - (β)", {("sign", "x = (a) + (β)"), ("term", "x = a")}),
    ("x = add(V, scale(u, W))", {("sign", "x = sub(V, scale(u, W))"), ("term", "x = V")}),
    ("x -= y", {("sign", "x += y"), ("term", "pass")}),
    ("x = -y", {("sign", "x = y")}),
    ("x = p and not q", {("term", "x = (p)"), ("term", "x = ((not q))"), ("comparison", "x = p and (q)")}),
    ("if x:\n    raise E(a + b)", {("check", "if False:\n    raise E(a + b)")}),
    ("_check_units(x)", {("check", "pass")}),
    ("x = y[0]", {("index", "x = y[1]")}),
    ("x = y[i]", {("index", "x = y[i - 1]")}),
    ("for i in range(1, n): f(i)", {("index", "for i in range(1, n - 1): f(i)")}),
    ("x = a is None", {("comparison", "x = a is not None")}),
    ("x = (a) < (b)", {("comparison", "x = (a) <= (b)"), ("comparison", "x = (a) > (b)")}),
    ("x = Ad_inv(T, V)", {("swap", "x = Ad(T, V)")}),
    ("x = R.T", {("swap", "x = R")}),
    ("x = f('local')", {("swap", "x = f('world')")}),
    ("x = 0.5", {("swap", "x = 1.0")}),
    ("x = 1e-9", {("swap", "x = 1e-05")}),
])
def test_a_change_is_what_its_kind_says(changed, text, expected):
    assert changed(text) == expected


@pytest.mark.parametrize("text", ['"""a - b"""', "from a import b", "def f(x: a[0]) -> b[1]: pass", "x = f'{a + b}'",
                                  "@f(True)\ndef g(): pass", "if TYPE_CHECKING:\n    x = a + b"])
def test_nothing_else_changes(changed, text):
    assert changed(text) == set()


def test_a_seed_draws_the_same_mutants_of_every_package():
    chosen = packages(["kernels/constraints", "batch"], ["kernels/constraints/driver.py", "batch/trajectory"])
    assert not {"driver", "trajectory_jobs"} & {path.stem for paths in chosen.values() for path in paths}
    drawn = draw(ROOT, chosen, 12, 3)
    assert drawn == draw(ROOT, chosen, 12, 3) != draw(ROOT, chosen, 12, 4)
    assert len(set(drawn)) == 12 and {each.kind for each in drawn} <= set(KINDS)
    assert sum(each.path.parts[2] == "batch" for each in drawn) == 6
    for each in drawn:
        assert is_python(each.source(ROOT)) and f"\n-{_line(each)}\n" in each.diff(ROOT) + "\n"


def _line(mutant) -> str:
    return (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1]


def test_the_nearest_tests_come_first():
    def names(module):
        return [each.as_posix() for each in nearest_tests(Path("src/liedyn") / module, ROOT)]
    assert names("io/trajectory_csv.py")[0] == "tests/io/test_trajectory_csv.py"
    assert names("simulation/signals/switching_times.py")[0] == "tests/simulation/test_switching_times.py"
    assert "tests/cli/test_simulate_events.py" in names("io/scenarios/event_schema.py")[:3]
    assert "tests/dynamics/test_assembly.py" in names("dynamics/constraints/assembly.py")
    for _, always in FOLDERS.values():
        assert all((ROOT / "tests" / name).exists() for name in always)


def test_tests_that_reach_a_module_through_a_helper_are_found():
    """`sweeps` of tests/support was not taken for a helper, and no test that uses it ran."""
    nearest = [each.name for each in nearest_tests(Path("src/liedyn/batch/simulations.py"), ROOT)]
    assert nearest[0] == "test_simulations.py"
    assert {*nearest[1:5]} == {f"test_simulations_{topic}.py" for topic in ("inaccurate", "creep", "limits", "generated")}


def test_a_mutant_is_found_only_by_a_test_that_passes_without_it(tmp_path, monkeypatch):
    project = tmp_path / "project"
    for name, text in {"src/liedyn/io/half.py": "def half(x):\n    return x * 0.5\n",
                       "src/liedyn/io/__init__.py": "", "src/liedyn/__init__.py": "", "src/liedyn/__init__.pyi": "",
                       "tests/io/test_half.py": "from liedyn.io.half import half\ndef test_broken(): assert False\n"
                                                "def test_half(): assert half(0.0) == 0.0\n",
                       "tests/io/test_half_of_none.py": "from liedyn.io.half import half\nfrom liedyn import nothing\n"}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / "tests/mutations").mkdir()
    shutil.copy(Path(__file__).with_name("times.py"), project / "tests/mutations")
    monkeypatch.setattr("mutations.run.ROOT", project)
    copy, seconds = Copy(tmp_path / "copy"), {}
    doubled, = (each for each in mutants_of(Path("src/liedyn/io/half.py"), project) if each.kind == "swap")
    assert judge(doubled, copy, 60, seconds)["verdict"] == "missed"            # the broken test does not find it
    test = copy.root / "tests/io/test_half.py"
    test.write_text(test.read_text().replace("half(0.0) == 0.0", "half(1.0) == 0.5"))
    record = judge(doubled, copy, 60, seconds)
    assert (record["verdict"], record["by"]) == ("found", "tests/io/test_half.py::test_half")
    assert record["failing"] == ["tests/io/test_half_of_none.py", "tests/io/test_half.py::test_broken"]
    assert "+    return x * 1.0" in record["diff"]
    assert (copy.root / "src/liedyn/io/half.py").read_text() == (project / "src/liedyn/io/half.py").read_text()


def test_equivalent_mutants_have_a_reason():
    for each in json.loads(EQUIVALENT.read_text(encoding="utf-8")):
        assert set(each) == {"file", "diff", "reason"} and len(each["reason"].split()) > 4
        assert ast.parse((ROOT / each["file"]).read_text(encoding="utf-8"))
        removed = [line[1:] for line in each["diff"].splitlines() if line.startswith("-")]
        assert removed and set(removed) <= set((ROOT / each["file"]).read_text(encoding="utf-8").splitlines())
