"""The comparison of stored outputs sees what differs, and only that."""
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("outputs.py")
FILES = {"a.csv": "t[s],q.x[rad]\n0,1.5\n1,-2.25\n", "run.json": '{"status": "complete", "seconds": {"load": 1}, "q": [1, 2.5]}',
         "a.output": "exit status 0\n--- stdout\n0.3 s in 20 steps, 0.01 s of computing\n"}


def store(folder: Path, **changed) -> Path:
    folder.mkdir()
    for name, text in {**FILES, **changed}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def compare(*words):
    return subprocess.run([sys.executable, str(SCRIPT), "compare", *map(str, words)], capture_output=True, text=True)


@pytest.mark.parametrize("name, text, found", [
    ("a.csv", "t[s],q.x[rad]\n0,1.5\n1,-2.2500000000000004\n", "a.csv: column q.x[rad]: differs by 4.44e-16 of 2.25"),
    ("a.csv", "t[s],q.y[rad]\n0,1.5\n1,-2.25\n", "column q.y[rad] is only in one"),
    ("a.csv", "t[s],q.x[rad]\n0,1.5\n", "2 values, 1 values"),
    ("run.json", '{"status": "stopped", "seconds": {"load": 9}, "q": [1, 2.5]}', "'complete' became 'stopped'"),
    ("a.output", "exit status 1\n--- stdout\n0.3 s in 20 steps, 7 s of computing\n", "+ exit status 1"),
])
def test_what_differs_is_printed(tmp_path, name, text, found):
    done = compare(store(tmp_path / "before"), store(tmp_path / "after", **{name: text}))
    assert done.returncode == 4 and found in done.stdout, done.stdout


def test_rounding_and_durations_may_differ(tmp_path):
    changed = {"a.csv": "t[s],q.x[rad]\n0,1.5\n1,-2.2500000000000004\n", "run.json": FILES["run.json"].replace("1}", "7}"),
               "a.output": FILES["a.output"].replace("0.01 s", "12 ms")}
    done = compare(store(tmp_path / "before"), store(tmp_path / "after", **changed), "--tolerance", "1e-15")
    assert done.returncode == 0, done.stdout
