"""Generated code in folders whose tests otherwise run with generic kernels (LIEDYN_CODE=generic, see conftest.py)."""
from contextlib import contextmanager

import pytest


@contextmanager
def generated_code():
    """Use generated code, which is the default outside the tests, within the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIEDYN_CODE", "auto")
        yield
