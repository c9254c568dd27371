"""Values of a function for several arguments: in their order, and by processes only where they take long."""
from contextlib import contextmanager
from itertools import count

import pytest

from liedyn.dynamics.batching import processes


class Pool:
    """An executor that computes in this process and counts its calls."""

    def __init__(self):
        self.arguments = []

    def map(self, function, arguments):
        """Return the values."""
        self.arguments += arguments
        return map(function, arguments)


@pytest.mark.parametrize("jobs, limit, pooled", [(2, 1e9, []), (1, 0.0, []), (2, 0.5, [1, 2, 3]), (2, 1.5, [2, 3])])
def test_processes_compute_what_takes_long(jobs, limit, pooled, monkeypatch):
    pool = Pool()

    @contextmanager
    def process_pool(size):
        assert size == jobs
        yield pool
    monkeypatch.setattr(processes, "process_pool", process_pool)
    monkeypatch.setattr(processes, "perf_counter", count().__next__)              # a second for each question
    monkeypatch.setattr(processes, "_MAX_SEQUENTIAL_SECONDS", limit)
    with processes.process_map(jobs) as values:
        assert values(lambda x: x * x, [1, 2, 3]) == [1, 4, 9]
        assert values(lambda x: x, []) == []
    assert pool.arguments == pooled
