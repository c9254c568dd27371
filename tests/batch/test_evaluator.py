"""Sizes of chunks of a sweep: by memory where runs are vectorized, by work where they are sequential."""
from types import SimpleNamespace

import pytest

from liedyn.batch.evaluator import SweepEvaluator


@pytest.mark.parametrize("work, count, size", [
    (4e6, 1000, 1), (1e6, 1000, 4), (1e6, 10, 1), (1.0, 1000, 64), (1.0, 10**6, 256), (1e9, 10**6, 1), (1.0, 1, 1)])
def test_sequential_runs_are_an_eighth_of_the_sweep_or_a_second(work, count, size):
    evaluator = SimpleNamespace(costs=lambda: (10, work), is_vectorized=False)
    assert SweepEvaluator.chunk_size(evaluator, count) == size


@pytest.mark.parametrize("numbers, rows, size", [(10, 1000, 512), (10, 1, 4096), (100, 10**6, 64)])
def test_vectorized_runs_fill_the_memory_of_a_chunk(numbers, rows, size):
    """48 MB of float64, down to a power of two of runs."""
    evaluator = SimpleNamespace(costs=lambda: (numbers, 1.0), is_vectorized=True, rows=lambda: rows, min_chunk_runs=64)
    assert SweepEvaluator.chunk_size(evaluator, 10**6) == size
