"""Compile what simulations need into the folder `prebuilt` of the package, which a wheel brings: `make wheel`.

Runs every scenario of `configs`, and every method with and without loops, by generated code and by the generic kernels. Code of
single robots is not kept. Takes five minutes of CPU time.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / "build" / "prebuilt"                 # stays, so that the next time only changes are compiled
METHODS = ("rk4", "dopri5", "dop853", "rodas5p", "generalized_alpha", "RK45", "Radau")
FIXED_STEP = ("rk4", "generalized_alpha", "variational")


def main():
    from liedyn.numba_tools.compile_cache import PREBUILT, PREBUILT_CPU
    for code in ("", "generic"):
        environment = {**os.environ, "NUMBA_CPU_NAME": PREBUILT_CPU, "NUMBA_CPU_FEATURES": "", "LIEDYN_CACHE_DIR": str(CACHE),
                       "LIEDYN_CODE": code}
        subprocess.run([sys.executable, "-W", "ignore", __file__, code], env=environment, check=True)
    shutil.rmtree(PREBUILT, ignore_errors=True)
    for path in CACHE.iterdir():
        if not path.name.startswith("generated."):                  # of one robot
            shutil.copytree(path, PREBUILT / path.name, ignore=shutil.ignore_patterns(".*"))
    files = [path for path in PREBUILT.rglob("*") if path.is_file()]
    print(f"{len(files)} compiled functions, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB, in {PREBUILT}")


def run_all(code: str) -> None:
    import liedyn as ld
    for scenario, changes in scenarios(code):
        print(scenario.stem, changes, flush=True)
        ld.run_scenario(scenario, changes)


def scenarios(code: str):
    """(path, changes)"""
    if code != "generic":
        yield from ((path, {}) for path in sorted((ROOT / "configs").glob("*.yaml")))
    for name, methods in (("double_pendulum", (*METHODS, "variational")), ("four_bar", METHODS)):
        for method in methods:
            step = {"step": 1e-3} if method in FIXED_STEP else {"rtol": 1e-6, "atol": 1e-9}
            yield ROOT / "configs" / f"{name}.yaml", {"integrator": {"method": method, **step}, "duration": 0.1}


if __name__ == "__main__":
    run_all(sys.argv[1]) if sys.argv[1:] else main()
