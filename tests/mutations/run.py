"""Does the suite find mistakes? Changes the sources at random, a place at a time, and runs the tests that concern it.

    python tests/mutations/run.py --n 40 --seed 7 [--package simulation] [--output build/mutations.jsonl]

A mutant is found if a test fails that passes without it. The output has a JSON line per mutant; a second run with the same output
continues. `--again` runs those once more that were missed. Mutants that change nothing are listed in equivalent.json.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutations.mutants import Mutant, draw
from mutations.targets import FOLDERS, nearest_tests

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.json")
_COPIED = ("src", "tests", "robots", "configs", "docs", "README.md", "CONTRIBUTING.md", "pyproject.toml", "Makefile", "LICENSE")


class Copy:
    """A private copy of the project, with a cache of compiled code that begins as the user's."""

    def __init__(self, folder: Path):
        self.root, self.cache, self.times = folder / "project", folder / "cache", folder / "times.txt"
        self._passes: dict[str, bool] = {}
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "runs", ".hypothesis")
        self.root.mkdir(parents=True)
        for name in _COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.root / name, ignore=ignored)
            elif (ROOT / name).exists():
                shutil.copy2(ROOT / name, self.root / name)
        users = Path(os.environ.get("LIEDYN_CACHE_DIR") or Path.home() / ".cache/liedyn")
        if users.is_dir():
            shutil.copytree(users, self.cache, copy_function=_linked, ignore=shutil.ignore_patterns(".*"))

    def test(self, tests: list[str], limit: float, leave_out: list[str] = ()) -> tuple[str, str]:
        """Return 'passed', 'failed' or 'timeout', and the first test that failed or the last that started."""
        self.times.unlink(missing_ok=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.root / "src"), str(self.root / "tests")]),
                       "LIEDYN_CACHE_DIR": str(self.cache), "PYTHONDONTWRITEBYTECODE": "1", "MUTATION_TIMES": str(self.times)}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "mutations.times", "--tb=no",
                   "-n", "0", "--hypothesis-seed=0", "-o", "addopts=--import-mode=importlib",
                   *(f"--deselect={each}" for each in leave_out),
                   *(each for each in tests if each not in leave_out)]          # a file that cannot be collected
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, cwd=self.root, env=environment,
                                       stdout=output, stderr=output, start_new_session=True)
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
            output.seek(0)
            text = output.read().decode(errors="replace")
        events = self._events()
        if code is None:
            return "timeout", events[-1]["test"] if events else ""
        if code in (0, 5):                                        # 5: no test is left
            return "passed", ""
        failed = [each["test"] for each in events if each["failed"]]
        if code < 0 and events:                                   # the process crashed in the test that it had begun
            failed = [events[-1]["test"]]
        if not failed:
            raise RuntimeError(f"pytest ended with {code}:\n{text[-2000:]}")
        return "failed", failed[0]

    def passes_unchanged(self, test: str, limit: float) -> bool:
        """Return whether one test passes with the unchanged sources."""
        if test not in self._passes:
            self._passes[test] = self.test([test], limit)[0] == "passed"
        return self._passes[test]

    def _events(self) -> list[dict]:
        """Return the events that the last run of tests wrote. A time limit may have cut the last line."""
        lines = self.times.read_text(encoding="utf-8").splitlines() if self.times.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def seconds(self) -> dict[str, float]:
        """Return the time of each file of tests in the last run."""
        found = defaultdict(float)
        for each in self._events():
            found[each["test"].split("::")[0].removeprefix("tests/")] += each["seconds"]
        return found


def _linked(source, target):
    """Return a link: files of the cache are replaced and never overwritten, so that it serves as a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _end(process) -> None:
    """End a process with those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def judge(mutant: Mutant, copy: Copy, limit: float, seconds: dict[str, float], tests: list[str] = ()) -> dict:
    """Run the tests of the mutant's module, or these, with it: 'found', 'missed', or 'undecided' where the limit ends them."""
    path, original = copy.root / mutant.path, (copy.root / mutant.path).read_bytes()
    tests = list(tests) or [str(each) for each in nearest_tests(mutant.path, copy.root, seconds)]
    failing: list[str] = []
    start = time.monotonic()
    try:
        while True:
            path.write_text(mutant.source(copy.root), encoding="utf-8")
            outcome, test = copy.test(tests, limit, failing)
            seconds.update(copy.seconds())
            path.write_bytes(original)
            if outcome != "failed" or test in failing or copy.passes_unchanged(test, limit):
                break
            failing.append(test)
        if outcome == "timeout":
            # is the mutant slow, or are the tests? They compile the changed module anew; so do they with one more comment
            path.write_bytes(original + f"# {mutant.name} {time.time()}\n".encode())
            slow = copy.test(tests, limit / 2, failing)[0] != "passed"
            verdict = "undecided" if slow else "found"
        else:
            verdict = {"failed": "found", "passed": "missed"}[outcome]
    finally:
        path.write_bytes(original)
    return {"mutant": mutant.name, "kind": mutant.kind, "verdict": verdict, "by": test, "outcome": outcome, "failing": failing,
            "seconds": round(time.monotonic() - start, 1), "tests": tests, "diff": mutant.diff(copy.root)}


def packages(names: list[str], leave_out: list[str]) -> dict[str, list[Path]]:
    """Return the files of each package, without those whose path begins with one of `leave_out`."""
    found = {}
    for name in names:
        folder = ROOT / "src/liedyn" / name
        files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
        found[name] = [each.relative_to(ROOT) for each in files
                       if not any(each.relative_to(ROOT / "src/liedyn").as_posix().startswith(out) for out in leave_out)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=40, help="how many mutants")
    parser.add_argument("--seed", type=int, help="of the draw; default: another one each time")
    parser.add_argument("--package", action="append", help=f"of src/liedyn; default: {', '.join(FOLDERS)}")
    parser.add_argument("--leave-out", action="append", default=[], help="a file or folder of src/liedyn")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds per mutant")
    parser.add_argument("--output", type=Path, help="default: build/mutations-SEED.jsonl")
    parser.add_argument("--tests", nargs="+", default=[], help="files of tests to run, in this order; default: the nearest")
    parser.add_argument("--again", action="store_true", help="run those once more that were missed or undecided")
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    output = options.output or ROOT / f"build/mutations-{seed}.jsonl"
    output.parent.mkdir(parents=True, exist_ok=True)
    records = _read(output)
    drawn = draw(ROOT, packages(options.package or list(FOLDERS), options.leave_out), options.n, seed)
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy, seconds = Copy(Path(folder) / "private"), {}
        compiled_last = sorted(enumerate(drawn, 1), key=lambda each: "kernels" in each[1].path.parts)
        for number, mutant in compiled_last:
            old = records.get(mutant.name)
            if old and not (options.again and old["verdict"] != "found"):
                continue
            record = records[mutant.name] = judge(mutant, copy, options.limit, seconds, options.tests)
            with output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            print(f"{number:3} {record['verdict']:9} {record['seconds']:6.1f} s  {mutant.name}  {record['by']}", flush=True)
    report([records[each.name] for each in drawn], seed)


def _read(output: Path) -> dict[str, dict]:
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    return {record["mutant"]: record for record in map(json.loads, lines)}


def report(records: list[dict], seed: int) -> None:
    """Report what was found and what was missed; equivalent mutants do not count."""
    equivalent = {each["diff"] for each in json.loads(EQUIVALENT.read_text(encoding="utf-8"))}
    counted = [each for each in records if _changed(each["diff"]) not in equivalent]
    missed = [each for each in counted if each["verdict"] != "found"]
    for each in missed:
        print(f"\n{each['verdict']} ({each['kind']})\n{each['diff']}")
    print(f"\nseed {seed}: {len(counted) - len(missed)} of {len(counted)} found, {len(records) - len(counted)} equivalent")


def _changed(diff: str) -> str:
    """Return the changed lines of a diff, which do not depend on lines inserted above."""
    return "\n".join(line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---"))


if __name__ == "__main__":
    main()
