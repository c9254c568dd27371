"""Names and units of columns, there and back, with derivatives of any order."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import TrajectoryError
from liedyn.io.trajectory_csv import Trajectory
from liedyn.model.description import Joint, Robot
from liedyn.model.links import Link
from liedyn.simulation.trajectory_columns import (
    bind_columns,
    bind_wrench_rate,
    bind_wrenches,
    derivative_kind,
    motion_columns,
    wrench_columns,
    wrench_components,
)

LINK = {"mass": 1.0, "inertia": (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)}


@pytest.fixture(scope="module")
def model():
    links = (Link("rail", **LINK), Link("cart", **LINK), Link("bob", **LINK))
    joints = (Joint("slide", "prismatic", "rail", "cart", axes=((1.0, 0.0, 0.0),)), Joint("socket", "ball", "cart", "bob"))
    return ld.build(Robot("crane", links, joints))


def read(columns):
    """As a file of these columns is read."""
    return Trajectory({}, np.arange(3.0), {name: x for name, _, x in columns}, {name: unit for name, unit, _ in columns},
                      "motion.csv", np.arange(3) + 2)


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def test_names_and_units_of_rates(model):
    arrays = {kind: numbers(3, 4) for kind in ("d2tau", "v", "tau", "d1a", "a", "d10a", "d1tau", "d2a")}
    columns = motion_columns(model, **arrays)
    assert list(dict.fromkeys(name.partition(".")[0] for name, _, _ in columns)) == [
        "v", "a", "d1a", "d2a", "d10a", "tau", "d1tau", "d2tau"]
    units = {name: unit for name, unit, _ in columns}
    assert [units[f"{kind}.slide"] for kind in ("v", "a", "d1a", "d2a", "d10a", "tau", "d1tau", "d2tau")] == [
        "m/s", "m/s^2", "m/s^3", "m/s^4", "m/s^12", "N", "N/s", "N/s^2"]
    assert [units[f"{kind}.socket.wy"] for kind in ("d1a", "d2tau")] == ["rad/s^3", "N m/s^2"]
    for kind, x in arrays.items():
        assert (bind_columns(model, read(columns), kind) == x).all()
    assert bind_columns(model, read(columns), "d3a") is None


def test_names_and_units_of_wrench_rates(model):
    names, rates = ["bob.fx", "bob.mz"], numbers(3, 3, 2)
    columns = wrench_columns(names, rates)
    assert [(name, unit) for name, unit, _ in columns] == [
        ("fext.bob.fx", "N"), ("fext.bob.mz", "N m"), ("d1fext.bob.fx", "N/s"), ("d1fext.bob.mz", "N m/s"),
        ("d2fext.bob.fx", "N/s^2"), ("d2fext.bob.mz", "N m/s^2")]
    file = read(columns)
    assert wrench_components(model, file) == names == wrench_components(model, file, 2)
    for k in range(3):
        assert (bind_wrench_rate(model, file, names, k) == rates[k]).all()
    assert bind_wrench_rate(model, file, names, 3) is None
    dense = bind_wrenches(model, file)
    assert dense.shape == (3, 3, 6) and (dense[:, 2, [3, 2]] == rates[0]).all() and np.count_nonzero(dense) == 6


@pytest.mark.parametrize("kind, name, unit, words", [
    ("d1a", "d1a.slide", "m/s^2", r"column d1a\.slide: wrong unit; found 'm/s\^2'; expected m/s\^3"),
    ("d2tau", "d2tau.socket.wx", "N/s^2", r"column d2tau\.socket\.wx: wrong unit.*expected N m/s\^2"),
    ("d1tau", "d1tau.slide", None, r"column d1tau\.slide: a column is missing; expected one for each coordinate, because there "
                                   r"is"),
])
def test_rates_that_do_not_fit_are_named(model, kind, name, unit, words):
    columns = [(n, unit if n == name else u, x) for n, u, x in motion_columns(model, **{kind: numbers(3, 4)})
               if unit is not None or n != name]
    with pytest.raises(TrajectoryError, match=words):
        bind_columns(model, read(columns), kind)


def test_units_may_be_left_out_and_written_with_a_dot(model):
    columns = [(name, {"N m/s": "N·m/s", "N/s": ""}[unit], x) for name, unit, x in motion_columns(model, d1tau=numbers(3, 4))]
    assert (bind_columns(model, read(columns), "d1tau") == numbers(3, 4)).all()


@pytest.mark.parametrize("columns, words", [
    ([("fext.bob.fx", "N"), ("d1fext.bib.fx", "N/s")], r"column d1fext\.bib\.fx: the robot has no link of this "
                                                       r"column.*d1fext\.<link>\.mx"),
    ([("fext.bob.fx", "N"), ("d1fext.bob.tx", "N/s")], r"column d1fext\.bob\.tx: the robot has no link of this column"),
    ([("fext.bob.fx", "N"), ("d1fext.bob.fx", "N")], r"column d1fext\.bob\.fx: wrong unit.*found 'N'; expected N/s"),
    ([("fext.bob.fx", "kN"), ("d1fext.bob.fx", "N/s")], r"column fext\.bob\.fx: wrong unit; found 'kN'"),
    ([("fext.bob.fx", "N"), ("d1fext.bob.fy", "N/s")], r"column fext\.bob\.fy: a column is missing.*its rate d1fext\.bob\.fy"),
    ([("fext.bob.fx", "N"), ("fext.bob.fy", "N"), ("d1fext.bob.fy", "N/s")], r"column d1fext\.bob\.fx: a column is missing"),
])
def test_wrench_rates_that_do_not_fit_are_named(model, columns, words):
    file = read([(name, unit, np.ones(3)) for name, unit in columns])
    with pytest.raises(TrajectoryError, match=words):
        bind_wrench_rate(model, file, wrench_components(model, file), 1)


def test_kinds_of_rates():
    assert [derivative_kind("tau", k) for k in range(3)] == ["tau", "d1tau", "d2tau"]
