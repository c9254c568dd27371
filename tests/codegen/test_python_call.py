"""Calls from Python to machine code: that NumPy is found as expected whatever the garbage collector does."""
import gc

import numpy as np
import pytest

from liedyn.codegen import python_call


@pytest.fixture
def collector():
    before = gc.get_threshold()
    yield gc
    gc.unfreeze()
    gc.set_threshold(*before)
    gc.enable()


def test_a_garbage_collection_during_the_check_of_numpy_changes_nothing(collector):
    """At each allocation in turn. The shape was in a temporary array that was freed before the call: 2 of 600 calls failed."""
    np.zeros(1).ctypes                                         # noqa: B018 - NumPy imports the module at its first use
    collector.freeze()                                         # objects of other tests: a collection would take 0.2 s
    for allocation in range(150):
        collector.collect()
        collector.disable()
        for _ in range(60):                                    # garbage: arrays of two words, as the shape was
            cycle = [np.empty(2), np.empty(2, dtype=object)]
            cycle.append(cycle)
        del cycle
        collector.set_threshold(1 + allocation, 1, 1)
        collector.enable()
        assert python_call._allocation_works()
        collector.set_threshold(700, 10, 10)
