"""Every public function is in the table of observables, or on the list of those that are not, with the reason."""
import inspect

import liedyn as ld
from metamorphic.observables import CONSTRAINED, ELSEWHERE, TREE


def test_every_public_function_is_in_the_table_or_left_out_with_a_reason():
    functions = {name for name in ld.__all__ if inspect.isfunction(getattr(ld, name))}
    observed = {name.split(":")[0] for name in TREE | CONSTRAINED}
    assert observed <= functions and set(ELSEWHERE) <= functions
    assert not observed & set(ELSEWHERE)
    assert functions == observed | set(ELSEWHERE)
