"""What a published version needs: one version number, its changelog and citation, and a workflow of targets that run here."""
import importlib.util
import re
import shutil
from pathlib import Path

import pytest
import yaml

import liedyn

ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8"))
spec = importlib.util.spec_from_file_location("check_release", ROOT / "packaging" / "check_release.py")
check_release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_release)


@pytest.fixture
def ready(tmp_path):
    """A copy of the files, with what a person adds."""
    for name in ("pyproject.toml", "CHANGELOG.md", "CITATION.cff", "src/liedyn/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    change(tmp_path / "pyproject.toml", r"^\[project.urls\]\n(Source = .*\n)?",
           '[project.urls]\nSource = "https://host.example/liedyn"\n')
    version = liedyn.__version__
    change(tmp_path / "CHANGELOG.md", rf"^## \[{re.escape(version)}\] - .*$", f"## [{version}] - 2026-12-24")
    change(tmp_path / "CITATION.cff", r"(^date-released: .*\n)?\Z", "date-released: 2026-12-24\n")
    return tmp_path


def change(path, pattern, text):
    changed, count = re.subn(pattern, text, path.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE)
    assert count == 1, path
    path.write_text(changed, encoding="utf-8")


def test_only_what_a_person_must_decide_is_missing():
    """The address, and the date in the changelog and the citation."""
    missing = check_release.problems(ROOT)
    assert all("Source" in text or "YYYY-MM-DD" in text for text in missing), missing
    assert check_release.version_of(ROOT) == liedyn.__version__


def test_a_version_is_ready_with_address_and_dates(ready):
    assert check_release.problems(ready, f"v{liedyn.__version__}") == []


@pytest.mark.parametrize(("file", "pattern", "text", "message"), [
    ("src/liedyn/__init__.py", r'^__version__ = ".*"', '__version__ = "9.8.7"', "the tag .* is not that of the version 9.8.7"),
    ("pyproject.toml", r"^Source = .*\n", "", "has no Source"),
    ("pyproject.toml", r"^Source = .*\n", 'Source = "TODO"\n', "has no Source"),
    ("CHANGELOG.md", r"2026-12-24", "soon", "no heading"),
    ("CITATION.cff", r"^version: .*", "version: 0.0.1", "the version is not"),
    ("CITATION.cff", r"^date-released: .*\n", "", "no line `date-released"),
])
def test_what_is_missing_is_named(ready, file, pattern, text, message):
    change(ready / file, pattern, text)
    assert any(re.search(message, problem) for problem in check_release.problems(ready, f"v{liedyn.__version__}"))


def test_the_changelog_has_the_form_of_keep_a_changelog():
    """Versions from new to old, and known kinds of changes, each once in a version."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert versions[0].startswith("[Unreleased]\n") and versions[1].startswith(f"[{liedyn.__version__}] - ")
    for version in versions:
        kinds = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert len(set(kinds)) == len(kinds) and set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_has_the_keys_of_its_format():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["title"].startswith("liedyn")
    assert all("name" in author for author in citation["authors"]) and citation["license"] == "MIT"


def test_the_workflow_calls_targets_of_the_makefile_only():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    commands = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]
    assert len(commands) >= 5
    for command in commands:
        program, *words = command.split()
        assert program == "make" and {word for word in words if re.fullmatch(r"[\w-]+", word)} <= targets, command
    assert targets - {"clean"} <= set(re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[1].split())


def test_the_workflow_tests_all_systems_and_pythons_and_publishes_tags_after_all_else():
    jobs = WORKFLOW["jobs"]
    matrices = [jobs[name]["strategy"]["matrix"] for name in ("test", "test-core")]
    assert {system.split("-")[0] for matrix in matrices for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    classifiers = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for matrix in matrices:
        assert all(f"Python :: {version}" in classifiers for version in matrix["python"]) and len(matrix["python"]) == 4
    assert set(jobs["release"]["needs"]) == set(jobs) - {"release"} and "refs/tags/v" in jobs["release"]["if"]
    assert WORKFLOW["permissions"] == {"contents": "read"}
