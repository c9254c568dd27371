"""Each public name has an example in its docstring that runs, next to what a reader needs to know: shapes, errors."""
import dataclasses
import doctest
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from opencl import has_opencl

ROOT = Path(__file__).parents[1]
NAMES = [name for name in ld.__all__ if name != "__version__"]
NOT_RUN = {"warmup", "Warmup"}              # they compile for minutes
_MINUS_ZERO = re.compile(r"-0\.(?=0*(?:[^0-9]|$))")


class Checker(doctest.OutputChecker):
    """Without blanks, which NumPy sets by the signs that it meets, and without the sign of zero, which is that of rounding."""

    def check_output(self, want, got, optionflags):
        want, got = ("".join(_MINUS_ZERO.sub("0.", text).split()) for text in (want, got))
        return super().check_output(want, got, optionflags)


def examples_of(name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(getattr(ld, name)) or "", name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with robots/ and configs/, in which examples may write."""
    for each in ("robots", "configs"):
        (tmp_path / each).symlink_to(ROOT / each)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIEDYN_CODE", "auto")           # as users run it


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_each_public_name_runs(name, folder):
    examples = examples_of(name)
    assert examples, f"ld.{name} has no example"
    assert any(re.search(r"\bld\.|\brun\b", one.source) for one in examples)
    if name in NOT_RUN:
        assert all(one.options == {doctest.SKIP: True} for one in examples)
        return
    if name == "to_device" and not has_opencl():
        pytest.skip("needs an OpenCL device")
    assert not any(one.options for one in examples)
    test = doctest.DocTest(examples, {"ld": ld, "np": np, "dataclasses": dataclasses, "Path": Path}, name, None, 0, None)
    told = []
    with np.printoptions(precision=6, suppress=False, linewidth=75, legacy=False):
        doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    assert not told, "".join(told)


def test_a_wrong_example_is_told():
    """What is compared is compared: another digit, another sign, another error."""
    check = Checker().check_output
    assert check("array([ 0., 1.])\n", "array([-0.,  1.])\n", 0)
    for want, got in (("array([1.])", "array([-1.])"), ("array([0.5])", "array([-0.5])"), ("1.25", "1.26"), ("", "1")):
        assert not check(want + "\n", got + "\n", doctest.ELLIPSIS)


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isfunction(getattr(ld, name))])
def test_docstrings_of_functions_name_each_argument(name):
    """Where the arguments have a section, it has all of them; those of a state may be said to be as in another function's."""
    function = getattr(ld, name)
    text = inspect.getdoc(function)
    if "\nParameters\n---" not in text:
        assert re.search(r"\(.*\)|see `|[Aa]s in `|`", text), f"ld.{name}: neither parameters nor where they are told"
        return
    told = re.split(r"\n\n\w+\n---", text.partition("\nParameters\n---")[2])[0]
    missing = [x for x in inspect.signature(function).parameters
               if not re.search(rf"(?:^|[\s,*`]){re.escape(x)}(?:[\s,:`]|$)", told) and x != "model"]
    assert not missing, f"ld.{name} does not tell {missing}"
