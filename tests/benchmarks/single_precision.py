"""Batches in single precision, compared with double precision in the same process."""
from __future__ import annotations

from pathlib import Path

import numpy as np

import liedyn as ld
from benchmarks.measure import side_by_side

ROBOTS = Path(__file__).parents[2] / "robots"
FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "forward_dynamics_derivatives")


def batches(names: tuple[str, ...] = ("ur5", "panda", "quadruped"), numbers: int = 1_000_000, repeats: int = 25):
    """Yield (robot, function, states, us a state in single precision, maximum error relative to the result of a state, pair).

    Results have about so many numbers, and there are at most 32,768 states.
    """
    for name in names:
        model, rng = ld.load(ROBOTS / f"{name}.yaml"), np.random.default_rng(0)
        for what in FUNCTIONS:
            function = getattr(ld, what)
            states = min(32_768, numbers // (3 * model.nv**2 if "derivatives" in what else model.nv))
            q, (v, x) = ld.random_configuration(model, rng, states), rng.standard_normal((2, states, model.nv))
            single = [y.astype(np.float32) for y in (q, v, x)]
            found, exact = function(model, *single, dtype="float32"), function(model, q, v, x)
            error = max(_error(a, b) for a, b in zip(_matrices(found), _matrices(exact), strict=True))
            del found, exact
            pair = side_by_side(lambda function=function, model=model, single=single: function(model, *single, dtype="float32"),
                                lambda function=function, model=model, given=(q, v, x): function(model, *given), repeats)
            yield name, what, states, pair.ours / states * 1e6, error, pair


def rollouts(names: tuple[str, ...] = ("ur5", "panda", "quadruped"), runs: int = 8192, steps: int = 100, repeats: int = 7):
    """Yield (robot, method, runs, us a step in single precision, maximum difference of final positions, pair)."""
    for name in names:
        model, rng = ld.load(ROBOTS / f"{name}.yaml"), np.random.default_rng(0)
        q, v = ld.random_configuration(model, rng, runs), 0.3 * rng.standard_normal((runs, model.nv))
        for method in ("rk4", "semi_implicit"):
            options = {"dt": 1e-3, "steps": steps, "every": steps, "method": method}

            def run(dtype, model=model, q=q, v=v, options=options):
                return ld.rollout(model, q, v, dtype=dtype, **options).q
            error = float(np.abs(run("float32") - run("float64")).max())
            pair = side_by_side(lambda run=run: run("float32"), lambda run=run: run("float64"), repeats)
            yield name, method, runs, pair.ours / runs / steps * 1e6, error, pair


def _matrices(result):
    return result if isinstance(result, tuple) else (result,)


def _error(x: np.ndarray, exact: np.ndarray) -> float:
    axes = tuple(range(1, x.ndim))
    return float((np.abs(x - exact).max(axes) / np.abs(exact).max(axes)).max())


def report(line, quick: bool = False) -> None:
    print("\nsingle precision (us a state), in times of double precision")
    given: dict = {"names": ("ur5",), "numbers": 3000, "repeats": 3} if quick else {}
    runs: dict = {"names": ("ur5",), "runs": 64, "steps": 3, "repeats": 3} if quick else {}
    for name, what, states, us, error, pair in (*batches(**given), *rollouts(**runs)):
        line(pair.ratio >= 1.9, f"{name:10s} {what:28s}: {states:6d} states, {us:7.4f}, error {error:.0e}, {pair.ratio:4.2f}x "
             "(asked 1.9x)")
