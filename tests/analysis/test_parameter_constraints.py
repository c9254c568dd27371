"""Known values and equal links: mirror images by mass points, groups, and texts of commands."""
import numpy as np
import pytest

from liedyn.analysis.parameter_constraints import (
    EqualLinks,
    equal_links,
    equal_of_texts,
    groups_of,
    prior_equations,
    prior_of_texts,
    weights_of_texts,
)
from liedyn.dynamics.inertial_parameters import LINK_PARAMETERS
from liedyn.errors import NameLookupError, UsageError

NAMES = [f"{name}.{link}" for link in ("left", "right", "head") for name in LINK_PARAMETERS]


def parameters(points, masses):
    """Return mass, first moments and inertia about the origin of points."""
    x, y, z = points.T
    second = {"xx": y * y + z * z, "xy": -x * y, "xz": -x * z, "yy": x * x + z * z, "yz": -y * z, "zz": x * x + y * y}
    values = {"mass": np.ones(len(masses))} | {f"h{axis}": points[:, k] for k, axis in enumerate("xyz")}
    values |= {f"I{name}": x for name, x in second.items()}
    return np.array([masses @ values[name] for name in LINK_PARAMETERS])


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_mirrored_links_have_the_parameters_of_mirrored_points(axis):
    points, masses = np.random.default_rng(0).standard_normal((6, 3)), np.arange(1.0, 7.0)
    pair, = equal_links(NAMES, {"left": ("right", axis)})
    mirrored = points * np.where(np.array(list("xyz")) == axis, -1.0, 1.0)
    np.testing.assert_allclose(pair.signs * parameters(points, masses), parameters(mirrored, masses), atol=1e-12)
    assert (pair.link, pair.other) == (0, 10)
    assert np.array_equal(equal_links(NAMES, {"left": "right"})[0].signs, np.ones(10))


def test_groups_have_the_signs_along_their_pairs():
    minus = np.where(np.arange(10) % 2, -1.0, 1.0)
    groups = groups_of([EqualLinks(0, 10, minus), EqualLinks(40, 50, minus), EqualLinks(20, 10, minus)])
    assert [set(group) for group in groups] == [{0, 10, 20}, {40, 50}]
    assert np.array_equal(groups[0][10], minus) and np.array_equal(groups[0][20], np.ones(10))


@pytest.mark.parametrize("equal, error, text", [
    ({"left": "tail"}, NameLookupError, "tail"), ({"left": ("right", "w")}, UsageError, "an axis x, y or z"),
    ({"left": "left"}, UsageError, "already equal"), ({"left": "right", "right": "left"}, UsageError, "already equal"),
    ({"left": 3}, UsageError, "must be a link")])
def test_pairs_that_cannot_be_are_errors(equal, error, text):
    with pytest.raises(error, match=text):
        equal_links(NAMES, equal)


def test_known_values_are_equations_in_their_deviations():
    sizes, estimated = np.ones(len(NAMES)), np.arange(len(NAMES)) != 10
    rows, y = prior_equations(NAMES, sizes, estimated, {"mass.left": (2.0, 0.5)})
    assert rows.shape == (1, 30) and rows[0, 0] == 2.0 and np.count_nonzero(rows) == 1 and y.tolist() == [4.0]
    for prior, text in (({"mass.right": (1.0, 1.0)}, "keep the values of the robot file"), ({"mass.left": (1.0, 0.0)}, "> 0"),
                        ({"mass.left": 1.0}, "must be a value and its standard deviation"),
                        ({"mass.left": (np.nan, 1.0)}, "must be a value")):
        with pytest.raises(UsageError, match=text):
            prior_equations(NAMES, sizes, estimated, prior)


def test_texts_of_commands():
    assert prior_of_texts(["mass.hand=0.73,0.01"]) == {"mass.hand": [0.73, 0.01]}
    assert equal_of_texts(["left=right", "a=b,y"]) == {"left": ("right", ""), "a": ["b", "y"]}
    assert weights_of_texts(["b.csv=0.25"], ["a.csv", "b.csv"]) == [1.0, 0.25]
    assert weights_of_texts([], ["a.csv"]) is None
    for call, text in ((lambda: prior_of_texts(["a=b,c"]), "expected numbers"),
                       (lambda: prior_of_texts(["a"]), "expected PARAMETER"),
                       (lambda: equal_of_texts(["a=b", "a=c"]), "a appears twice"),
                       (lambda: weights_of_texts(["a=b"], ["a"]), "expected a number > 0"),
                       (lambda: weights_of_texts(["c=1"], ["a"]), "no recording 'c'; the recordings are a$")):
        with pytest.raises((UsageError, NameLookupError), match=text):
            call()
