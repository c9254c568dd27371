"""YAML that our reader reads back equal, whatever the words and numbers are."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from liedyn.io.yaml_nodes import parse_yaml
from liedyn.io.yaml_values import flow_yaml, to_yaml

WORDS = ["yes", "no", "on", "null", "~", "", "1e5", "1e-3", "12", "1_000", "0x10", "012", "12:30", "2001-01-01", ".inf", "inf",
         "NaN", "=", "<<", "-", "- a", "a: b", "a #b", "#", "*x", "&x", "!x", "@x", "%x", "'", '"', "a\nb", "\t", " a", "a ",
         "\x1b", "é", "[", "{", "?", "true", "t*2", "-0.5*q", "---", "...", "a" * 200 + " b" * 60]
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029\ufeff"), min_size=1, max_size=8)
VALUES = st.recursive(st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | NAMES | st.none(),
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("write", [to_yaml, flow_yaml])
def test_words(word, write):
    values = {"word": word, "list": [word, [word]], **({word: 1.0} if word else {})}
    assert parse_yaml(write(values)).plain() == values


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -3.0, 1e-5, 2.5e22, 1e300, 5e-324, 0.1, 123456789012345678.0])
def test_numbers(x):
    assert str(parse_yaml(f"x: {flow_yaml(x)}").plain()["x"]) == str(x)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_any_values(values):
    assert parse_yaml(to_yaml(values)).plain() == parse_yaml(flow_yaml(values)).plain() == values


def test_equal_parts_are_written_out():
    point = [1.0, 2.0]
    assert parse_yaml(to_yaml({"a": point, "b": point})).plain() == {"a": point, "b": point}


def test_values_that_do_not_fit_on_a_line_have_lines_of_their_parts():
    point, name = {"at": [0.5, -1e-05, 2.0], "on": True}, "a" * 60
    values = {"short": [point], "mapping": {name: 1.0, "b" * 60: None}, "list": [point] * 6, "numbers": [1.0] * 60, "none": {}}
    assert to_yaml(values | {"nested": [{"list": [point] * 6}]}) == "\n".join([
        "short: [{at: [0.5, -1.0e-05, 2], 'on': true}]",
        "mapping:", f"  {name}: 1", f"  {'b' * 60}: null",
        "list:", *["  - {at: [0.5, -1.0e-05, 2], 'on': true}"] * 6,
        f"numbers: [{', '.join(['1'] * 60)}]",
        "none: {}",
        "nested:", "  - list:", *["      - {at: [0.5, -1.0e-05, 2], 'on': true}"] * 6]) + "\n"


@pytest.mark.parametrize("nest", [lambda entry: {"k": entry}, lambda entry: {"k": [entry]},
                                  lambda entry: {"k": [entry, {"c": "b" * 120}]}], ids=["mapping", "list", "entry"])
def test_what_has_130_characters_fits_on_a_line(nest):
    """A mapping, a list and an entry of a list, with one and two keys."""
    def lines(size):
        return to_yaml(nest({"a": "x" * size, "b": 1})).splitlines()

    fitting = max(size for size in range(5, 140) if len(lines(size)) == len(lines(5)))
    assert max(map(len, lines(fitting))) == 130 and max(map(len, lines(fitting + 1))) < 131
    assert parse_yaml("\n".join(lines(fitting + 1))).plain() == nest({"a": "x" * (fitting + 1), "b": 1})
