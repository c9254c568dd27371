"""Patterns select names by one function, for all commands: in their order, each once, with one message where nothing matches."""
import pytest

from liedyn.errors import Place, ScenarioError, UsageError
from liedyn.simulation.name_binding import find_indices, select

NAMES = ["hip", "knee", "ankle[1]", "a*"]


@pytest.mark.parametrize("patterns, indices", [
    ("knee", [1]), (["knee", "hip", "knee"], [1, 0]), ("*", [0, 1, 2, 3]), ("?*e*", [1, 2]), ([], []), ("ankle[1]", [2]),
    ("a*", [3]), ("[hk]*", [0, 1])])
def test_names_that_patterns_select(patterns, indices):
    """A name that contains the signs of a pattern is that name."""
    assert select(patterns, NAMES, "joint") == indices


@pytest.mark.parametrize("pattern, names, message", [
    ("kne", NAMES, "no joint matches 'kne'; did you mean knee?"),
    ("KNEE*x", NAMES, "no joint matches 'KNEE*x'; did you mean knee?"),
    ("zz", NAMES, "no joint matches 'zz'; the names are hip, knee, ankle[1], a*"), ("", NAMES, "no joint matches ''; the names "
                                                                                               "are hip"),
    ("*", [], "no joint matches '*'; the names are none"), ("x", [f"q{k}" for k in range(20)], "q11 and 8 more")])
def test_what_is_said_of_a_pattern_that_matches_nothing(pattern, names, message):
    with pytest.raises(UsageError) as caught:
        select(["*", pattern] if names else pattern, names, "joint")
    assert message in str(caught.value)


def test_the_caller_may_raise_its_own_error():
    with pytest.raises(ScenarioError, match="of x"):
        select("x", NAMES, "joint", lambda pattern: ScenarioError(f"of {pattern}"))


def test_an_unknown_name_of_a_quantity_suggests_names_of_this_quantity():
    """`q.hip` resembles `p.tip.z` more than any q."""
    names = ("q.shoulder", "q.elbow", "p.tip.x", "p.tip.z")
    with pytest.raises(UsageError, match=r"no output matches 'q.hip'; the names are q\.shoulder, q\.elbow$"):
        select("q.hip", names, "output")
    with pytest.raises(UsageError, match=r"no output matches 'q.elbwo'; did you mean q\.elbow"):
        select("q.elbwo", names, "output")


def test_indices_of_names_each_once():
    place = Place("scenario.yaml", 3, "control.gain")
    assert find_indices(["knee", "hip"], NAMES, "row of a gain", place) == [1, 0]
    with pytest.raises(ScenarioError, match=r"scenario\.yaml:3: control\.gain: a row of a gain is given twice: got 'knee'"):
        find_indices(["knee", "hip", "knee"], NAMES, "row of a gain", place)
    with pytest.raises(ScenarioError, match="no such row of a gain: got 'kne'"):
        find_indices(["kne"], NAMES, "row of a gain", place)
