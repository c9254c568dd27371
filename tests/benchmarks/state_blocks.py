"""Batches in blocks of states, compared with rows in the same process."""
from __future__ import annotations

from functools import partial

import numpy as np

import liedyn as ld
from benchmarks.measure import side_by_side
from benchmarks.single_precision import ROBOTS

FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "forward_dynamics_derivatives")
ASKED = {"float64": 0.75, "float32": 0.9}          # long functions, such as forward dynamics of a quadruped, gain nothing


def batches(names: tuple[str, ...] = ("ur5", "panda", "quadruped"), numbers: int = 500_000, repeats: int = 25):
    """Yield (robot, function, dtype, states, us a state in blocks, pair). Results have about so many numbers."""
    for name in names:
        model, rng = ld.load(ROBOTS / f"{name}.yaml"), np.random.default_rng(0)
        for what in FUNCTIONS:
            function = getattr(ld, what)
            size = model.nv if what.endswith("dynamics") else 3 * model.nv**2 if "derivatives" in what else model.nv**2
            states = min(32_768, numbers // size)
            inputs = [ld.random_configuration(model, rng, states), *rng.standard_normal((2, states, model.nv))]
            inputs = inputs[:1] if what == "mass_matrix" else inputs
            for dtype in ASKED:
                rows, blocks = [x.astype(dtype) for x in inputs], [ld.StateBlocks.of(x, dtype) for x in inputs]

                def call(states, function=function, model=model, dtype=dtype):
                    return function(model, *states, dtype=dtype)
                _check(call(blocks), call(rows))
                pair = side_by_side(partial(call, blocks), partial(call, rows), repeats)
                yield name, what, dtype, states, pair.ours / states * 1e6, pair


def _check(blocks, rows) -> None:
    x, y = (result[-1] if isinstance(result, tuple) else result for result in (blocks, rows))
    assert np.abs(x.rows() - y).max() <= 1e-4 * np.abs(y).max()


def report(line, quick: bool = False) -> None:
    print("\nblocks of states (us a state), in times of rows")
    given: dict = {"names": ("ur5",), "numbers": 3000, "repeats": 3} if quick else {}
    for name, what, dtype, states, us, pair in batches(**given):
        line(pair.ratio >= ASKED[dtype], f"{name:10s} {what:28s}: {states:6d} states of {dtype}, {us:7.4f}, {pair.ratio:4.2f}x "
             f"(asked {ASKED[dtype]:g}x)")
