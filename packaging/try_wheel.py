"""Install the wheel of `dist` with its requirements into an empty environment, and use it as a stranger would: `make test-wheel`.

Prints the time of the first result with empty caches. Then runs the commands and the Python of the README in a folder with
nothing but the copied examples. Takes two minutes.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST_RESULT = 10.0                                     # s of CPU time; more than that is reported


def main() -> None:
    wheel, = (ROOT / "dist").glob("liedyn-*.whl")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        programs = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        python = programs / "python"
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, wheel], check=True)
        print(f"{wheel.name}: {sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) / 1e6:.0f} MB installed")
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LIEDYN_CODE")}
        environment |= {"LIEDYN_CACHE_DIR": str(folder / "code"), "MPLCONFIGDIR": str(folder / "matplotlib")}
        began, computed = time.monotonic(), _child_seconds()
        subprocess.run([programs / "liedyn", "demo", "arm", "--no-open"], cwd=folder, env=environment, check=True)
        seconds, computed = time.monotonic() - began, _child_seconds() - computed
        slow = "; MORE THAN PROMISED" if computed > FIRST_RESULT else ""
        print(f"first result: {seconds:.1f} s, {computed:.1f} s of CPU time (promised {FIRST_RESULT:g} s){slow}", flush=True)
        subprocess.run([*install, "pytest"], check=True)                # runs the README, with liedyn of the wheel
        shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        for path in ("README.md", "pyproject.toml", "docs"):
            (shutil.copytree if (ROOT / path).is_dir() else shutil.copy)(ROOT / path, folder / path)
        subprocess.run([python, "-m", "pytest", "-p", "no:cacheprovider", "tests/documents/test_pages_run.py", "-k", "README.md"],
                       cwd=folder, env=environment, check=True)


def _child_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    main()
