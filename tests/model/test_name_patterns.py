"""Patterns of names: the name itself is before the longest pattern, and "*" is last."""
import pytest

from liedyn.errors import NameLookupError, UsageError
from liedyn.model.name_patterns import matching_names, most_specific, pattern_rank, values_by_name

NAMES = ["leg_left", "leg_right", "arm", "arm*"]


@pytest.mark.parametrize("pattern, names", [
    ("arm", ["arm"]), ("arm*", ["arm*"]), ("leg_*", NAMES[:2]), ("?rm", ["arm"]), ("*", NAMES), ("ARM", [])])
def test_a_name_with_signs_of_a_pattern_is_that_name(pattern, names):
    assert matching_names(pattern, NAMES) == names


@pytest.mark.parametrize("values, expected", [
    ({"*": 0}, dict.fromkeys(NAMES, 0)),
    ({"leg_*": 1, "*": 0, "arm": 2}, {"leg_left": 1, "leg_right": 1, "arm": 2, "arm*": 0}),
    ({"leg_left": 3, "leg_*": 1, "l*": 2}, {"leg_left": 3, "leg_right": 1}),
    ({"leg_l*": 1, "leg*": 2}, {"leg_left": 1, "leg_right": 2}), ({}, {})])
@pytest.mark.parametrize("order", [1, -1])
def test_the_most_specific_pattern_gives_the_value(values, expected, order):
    """The order of the patterns does not count; the result has the order of the names."""
    found = values_by_name(dict(list(values.items())[::order]), NAMES, "joint")
    assert found == expected and list(found) == [name for name in NAMES if name in expected]


def test_two_patterns_of_one_length_are_an_error():
    with pytest.raises(UsageError, match=r"joint leg_left matches two patterns of the same length, 'leg_l\*' and '\*_left': "
                                         "name leg_left separately"):
        values_by_name({"leg_l*": 1, "*_left": 2}, NAMES, "joint")


@pytest.mark.parametrize("order", [1, -1])
def test_a_separate_entry_settles_two_patterns_of_one_length(order):
    """It may stand behind the patterns: the message of the error advises it."""
    values = {"leg_l*": 1, "*_left": 2, "leg_left": 3}
    assert values_by_name(dict(list(values.items())[::order]), NAMES, "joint") == {"leg_left": 3}


def test_a_pattern_without_match_is_an_error():
    with pytest.raises(NameLookupError, match="armm"):
        values_by_name({"armm": 1}, NAMES, "joint")


def test_ranks_of_a_name_a_pattern_and_all():
    assert pattern_rank("arm*", NAMES) > pattern_rank("leg_l*", NAMES) > pattern_rank("leg*", NAMES) > pattern_rank("*", NAMES)


def test_only_two_values_of_the_highest_rank_conflict():
    def conflict(name, first, second):
        return ValueError(f"{name}: {first} {second}")

    assert most_specific([("a", 1.0, "x"), ("a", 2.0, "y"), ("b", 1.0, "z")], conflict) == {"a": "y", "b": "z"}
    with pytest.raises(ValueError, match="a: y z"):
        most_specific([("a", 2.0, "y"), ("a", 1.0, "x"), ("a", 2.0, "z")], conflict)
