"""The tests that concern a module of liedyn, nearest first.

Nearest are `test_<module>.py` and `test_<module>_<topic>.py`, then those that have a word of its name. Then follow those with the
fewest imports between them and the module: by way of other modules of liedyn, of public names (`ld.rollout`) and of the tests'
helpers. Only folders of tests of its package count.
"""
from __future__ import annotations

import ast
from collections import deque
from functools import cache
from pathlib import Path

# The folders of the tests of a package, and the files that run through most of it.
FOLDERS = {
    "simulation": (("simulation", "rollouts", "scenarios", "integrators", "batch", "analysis", "io"),
                   ("simulation/test_run.py", "simulation/test_hybrid_simulation.py", "rollouts/test_rollout.py",
                    "scenarios/test_scenarios.py", "io/test_scenario_file_broken.py")),
    "kernels/constraints": (("dynamics", "identities", "kernels", "integrators", "joints", "simulation", "rollouts", "codegen"),
                            ("dynamics/test_constrained_dynamics.py", "dynamics/test_constraints_degenerate.py",
                             "identities/test_constrained.py", "identities/test_constrained_derivatives.py",
                             "integrators/test_solve_constrained.py", "codegen/test_rhs.py", "oracles/test_constrained.py")),
    "dynamics/constraints": (("dynamics", "identities", "joints", "model", "integrators", "simulation", "rollouts"),
                             ("dynamics/test_constrained_dynamics.py", "dynamics/test_constraints_degenerate.py",
                              "dynamics/test_assembly.py", "identities/test_constrained.py")),
    "io": (("io", "model", "cli", "batch", "report", "simulation", "rollouts"),
           ("io/test_robots_broken.py", "io/test_scenario_file_broken.py", "io/test_scenario_file.py", "io/test_yaml_values.py",
            "test_robot_files.py")),
    "integrators": (("integrators", "simulation", "scenarios", "rollouts", "oracles"),
                    ("integrators/test_solve.py", "simulation/test_hybrid_simulation.py", "scenarios/test_scenarios.py")),
    "rollouts": (("rollouts", "codegen", "interop", "batch"), ("rollouts/test_rollout.py", "rollouts/test_events.py")),
    "batch": (("batch", "cli", "report"), ("batch/test_run_batch.py", "batch/test_trajectory_jobs.py", "cli/test_app.py")),
    "analysis": (("analysis", "identities", "cli", "report"),
                 ("analysis/test_identification.py", "analysis/test_linearize.py", "analysis/test_trajectory_dynamics.py")),
}
EVERYWHERE = (("dynamics", "identities", "simulation", "rollouts", "io", "batch", "cli", "model"), ())
_OF_NO_SUBJECT = {"test", "by", "key", "file", "of", "text", "many", "run", "state", "with", ""}
_AS_MANY = 14                       # files of tests


def nearest_tests(path: Path, root: Path, seconds: dict[str, float] | None = None) -> list[Path]:
    """Return the files of tests for the source `path`, which is relative to `root`; of those as near, the fastest first."""
    seconds = seconds or {}
    inside = path.relative_to("src/liedyn").as_posix()
    package = next((each for each in FOLDERS if inside.startswith(each + "/")), "")
    folders, always = FOLDERS.get(package, EVERYWHERE)
    distances, tests = _distances(_module(path), root), root / "tests"
    found = []
    for file in sorted(each for folder in folders for each in (tests / folder).rglob("test_*.py")):
        name = file.relative_to(tests).as_posix()
        if file in distances or name in always:
            near = distances.get(file, 9)
            named = file.stem.removeprefix("test_")
            if file in distances and named == path.stem:
                near = 0
            elif file in distances and named.startswith(path.stem + "_") and file.parent.name == folders[0]:
                near = 0.25
            elif file in distances and _subjects(path) & _subjects(file):
                near = 0.5
            found.append((near, folders.index(name.split("/")[0]), seconds.get(name, file.stat().st_size / 1000), file))
    found = [each[-1].relative_to(root) for each in sorted(found)]
    whole = [Path("tests") / name for name in always if (tests / name).exists()]
    nearest = found[:_AS_MANY - len(whole)]
    return nearest + [each for each in whole if each not in nearest]


def _subjects(path: Path) -> set[str]:
    """Return the words of a file's name that state its subject, in the singular."""
    return {word.rstrip("s") for word in path.stem.split("_")} - _OF_NO_SUBJECT


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")


def _distances(module: str, root: Path) -> dict[Path, int]:
    """Return the minimum number of imports between each file of tests and the module."""
    importers = _importers(root)
    distances, waiting = {module: 0}, deque([module])
    while waiting:
        each = waiting.popleft()
        for other in importers.get(each, ()):
            if other not in distances:
                distances[other] = distances[each] + 1
                waiting.append(other)
    return {file: distance for file, distance in distances.items() if isinstance(file, Path)}


@cache
def _importers(root: Path) -> dict[str, set[str | Path]]:
    """Return the importers of a module: modules of liedyn and helpers of the tests by name, files of tests by path."""
    public = _public(root)
    files = {_module(file.relative_to(root)): file for file in (root / "src").rglob("*.py")}
    helpers = {file.stem: file for file in (root / "tests").glob("*.py")}
    helpers |= {f"{file.parent.name}.{file.stem}": file for file in (root / "tests").glob("*/*.py")}
    helpers |= {file.stem: file for file in (root / "tests/support").glob("*.py")}
    tests = {file: file for file in (root / "tests").rglob("test_*.py")}
    found: dict[str, set[str | Path]] = {}
    for name, file in {**files, **helpers, **tests}.items():
        for target in _imports(file, public):
            while target not in files and target not in helpers and "." in target:
                target = target.rpartition(".")[0]                # a function of a module
            if target != "liedyn":
                found.setdefault(target, set()).add(name)
    return found


def _imports(file: Path, public: dict[str, str]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.ImportFrom(module=str() as module, names=names):
                found |= {public.get(each.name, f"{module}.{each.name}") if module == "liedyn" else f"{module}.{each.name}"
                          for each in names}
            case ast.Import(names=names):
                found |= {each.name for each in names}
            case ast.Attribute(value=ast.Name(id="ld"), attr=name) if name in public:
                found.add(public[name])
    return found


def _public(root: Path) -> dict[str, str]:
    """Return the module of each public name."""
    stub = ast.parse((root / "src/liedyn/__init__.pyi").read_bytes())
    imports = (node for node in stub.body if isinstance(node, ast.ImportFrom))
    return {name.name: f"{node.module}.{name.name}" for node in imports for name in node.names}
