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
    coordinate_columns,
    coordinate_index,
    derivative_kind,
    motion_columns,
    unused_columns,
    with_current_names,
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
    """Read a file of these columns."""
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
    assert (units["d1a.socket.dwy"], units["d2tau.socket.my"]) == ("rad/s^3", "N m/s^2")
    for kind, x in arrays.items():
        assert (bind_columns(model, read(columns), kind) == x).all()
    assert bind_columns(model, read(columns), "d3a") is None


def test_columns_with_the_names_of_older_files_are_read(model):
    columns = motion_columns(model, q=numbers(3, 5), a=numbers(3, 4), d1tau=numbers(3, 4))
    older = {"a.socket.dwx": "a.socket.wx", "a.socket.dwz": "a.socket.wz", "d1tau.socket.my": "d1tau.socket.wy"}
    file = read([(older.get(name, name), unit, x) for name, unit, x in columns])
    for kind in ("a", "d1tau"):
        assert (bind_columns(model, file, kind) == numbers(3, 4)).all()
    assert not unused_columns(model, file)
    assert [*with_current_names(model, file).columns] == [name for name, _, _ in columns]
    both = read([*columns, ("a.socket.wx", "rad/s^2", np.ones(3))])                # the current name counts
    assert (bind_columns(model, both, "a") == numbers(3, 4)).all() and with_current_names(model, both) is both
    wrong = read([(older.get(name, name), "N/s" if name == "d1tau.socket.my" else unit, x) for name, unit, x in columns])
    with pytest.raises(TrajectoryError, match=r"column d1tau\.socket\.my: wrong unit.*got 'N/s'"):
        bind_columns(model, wrong, "d1tau")


def test_a_column_is_of_one_coordinate(model):
    columns = [name for kind in ("q", "v", "d2a", "tau") for name in coordinate_columns(model, kind)]
    assert columns[8:] == ["d2a.slide", "d2a.socket.dwx", "d2a.socket.dwy", "d2a.socket.dwz",
                           "tau.slide", "tau.socket.mx", "tau.socket.my", "tau.socket.mz"]
    assert [coordinate_index(model, name) for name in columns] == [*range(4)] * 4
    assert coordinate_index(model, "tau.socket.wx") == coordinate_index(model, "tau.socket.mx")
    with pytest.raises(ValueError, match="not in"):
        coordinate_index(model, "tau.socket.fx")


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
    ("d1a", "d1a.slide", "m/s^2", r"column d1a\.slide: wrong unit: expected m/s\^3, got 'm/s\^2'"),
    ("d2tau", "d2tau.socket.mx", "N/s^2", r"column d2tau\.socket\.mx: wrong unit.*expected N m/s\^2"),
    ("d1tau", "d1tau.slide", None, r"column d1tau\.slide: a column is missing: expected one for each coordinate, because there "
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
    ([("fext.bob.fx", "N"), ("d1fext.bob.fx", "N")], r"column d1fext\.bob\.fx: wrong unit: expected N/s, got 'N'"),
    ([("fext.bob.fx", "kN"), ("d1fext.bob.fx", "N/s")], r"column fext\.bob\.fx: wrong unit.*got 'kN'"),
    ([("fext.bob.fx", "N"), ("d1fext.bob.fy", "N/s")], r"column fext\.bob\.fy: a column is missing.*its rate d1fext\.bob\.fy"),
    ([("fext.bob.fx", "N"), ("fext.bob.fy", "N"), ("d1fext.bob.fy", "N/s")], r"column d1fext\.bob\.fx: a column is missing"),
])
def test_wrench_rates_that_do_not_fit_are_named(model, columns, words):
    file = read([(name, unit, np.ones(3)) for name, unit in columns])
    with pytest.raises(TrajectoryError, match=words):
        bind_wrench_rate(model, file, wrench_components(model, file), 1)


def test_kinds_of_rates():
    assert [derivative_kind("tau", k) for k in range(3)] == ["tau", "d1tau", "d2tau"]
