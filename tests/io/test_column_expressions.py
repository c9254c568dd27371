"""Expressions of maps of columns: what they compute, and what is not an expression of one column."""
import math

import numpy as np
import pytest

from liedyn.errors import TrajectoryError
from liedyn.io.column_expressions import negative
from liedyn.io.column_map import read_column_map
from liedyn.io.trajectory_csv import read_trajectory
from messages import has_parts

TITLES = 'stamp,x,"joint 3",cur[mA],deg[deg],pos[0],pos[1],/arm/j-1,"a,b",e,Knee (deg),joint (2),arm (left)'
X = np.array([1.0, -7.25, 3000.0])


@pytest.mark.parametrize("text", ["x", "-x", "x - 3", "-(x + 1)*2", "-x[mm]", "-x - 3", "'/arm/j-1'", "-'/arm/j-1'",
                                  "(x - 90)[deg]"])
def test_an_expression_with_the_other_sign(log, text):
    (x, unit), (y, same) = values(log, text), values(log, negative(text))
    np.testing.assert_array_equal(y, -x)
    assert same == unit and len(negative(text)) <= len(text) + 3


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(TITLES + "\n" + "".join(f"{k}{f',{x!r}' * 12}\n" for k, x in enumerate(X.tolist())))
    return path


def values(log, expression, target="q.a"):
    trajectory = read_trajectory(log, columns={"t": "stamp", target: expression})
    return trajectory.columns[target], trajectory.units[target]


@pytest.mark.parametrize("expression, expected, unit", [
    ("x", X, ""), ("-x", -X, ""), ("x*0.12", X * 0.12, ""), ("0.12 * x", X * 0.12, ""), ("x/4", X / 4, ""), ("x - 3", X - 3, ""),
    ("3 - x", 3 - X, ""), ("-(x + 1)*2", -(X + 1) * 2, ""), ("x[deg]", X * (math.pi / 180), "rad"),
    ("(x - 2048)*0.088[deg]", (X - 2048) * (0.088 * math.pi / 180), "rad"), ("(x - 90)[deg]", (X - 90) * (math.pi / 180), "rad"),
    ("x[deg] - 90[deg]", X * (math.pi / 180) - 90 * math.pi / 180, "rad"), ("-x[mm]", -X / 1000, "m"),
    ("x[rpm]", X * 2 * math.pi / 60, "rad/s"), ("x*pi/180", X * math.pi / 180, ""), ("x * 2**3", X * 8, ""),
    ("x*360[deg]/4096", X * 2 * math.pi / 4096, "rad"), ('"joint 3"[deg]', X * (math.pi / 180), "rad"),
    ("joint 3[deg]", X * (math.pi / 180), "rad"), ("'joint 3' * 2", X * 2, ""), ("deg", X * (math.pi / 180), "rad"),
    ("-deg", -X * (math.pi / 180), "rad"), ("deg - 90", (X - 90) * (math.pi / 180), "rad"), ("deg[rad]", X, "rad"),
    ("pos[1]", X, ""), ('"pos[1]"[deg]', X * (math.pi / 180), "rad"), ("/arm/j-1", X, ""), ('"/arm/j-1"*2', X * 2, ""),
    ("a,b", X, ""), ("e", X, ""), ("e*2", X * 2, ""), ("2.5", 0 * X + 2.5, ""), ("90[deg]", 0 * X + math.pi / 2, "rad"),
    ("1e-3*x", X * 1e-3, ""), (" x ", X, ""), ("Knee (deg)", X * (math.pi / 180), "rad"),
    ('"Knee (deg)"', X * (math.pi / 180), "rad"),
    ("Knee", X * (math.pi / 180), "rad"), ('"Knee (deg)"[mrad]', X * 1e-3, "rad"), ("joint (2)", X, ""), ("arm (left)", X, "")])
def test_values_and_units(log, expression, expected, unit):
    x, found = values(log, expression)
    np.testing.assert_allclose(x, expected, rtol=1e-15, atol=0)
    assert found == unit


@pytest.mark.parametrize("expression", ["cur*0.12", "x[mA]*0.12", "0.12*x[mA]", "(x*0.12)[mA]", "x[mA]*0.12[N m/A]",
                                        "x/1000*0.12"])
def test_a_current_is_scaled_by_a_torque_constant(log, expression):
    x, unit = values(log, expression, "tau.a")
    np.testing.assert_allclose(x, X * 0.12e-3, rtol=1e-15)
    assert unit == ("N m" if "N m" in expression else "")


@pytest.mark.parametrize("expression", ["cur", "-cur", "x[A]", "x[mA] + 3[mA]"])
def test_a_current_is_not_a_torque(log, expression):
    with pytest.raises(TrajectoryError, match=r"^columns: tau\.a: a current cannot be used as a force: expected .*"
                                              r"current_3\[mA\]\*0\.12, got "):
        values(log, expression, "tau.a")


@pytest.mark.parametrize("expression, words", [
    ("x*deg", "an entry reads one column: expected one column with constant factors and offsets, got 'x*deg'"),
    ("x + x", "an entry contains its column once"), ("x**2", "powers are not supported"), ("1/x", "the column is a divisor"),
    ("sin(x)", "functions are not supported"), ("x/0", "division by zero"), ("x - 90[deg]", "a sum of different units"),
    ("x[deg] + 1", "a sum of different units"), ("x[deg][mm]", "two units"), ("x[foo]", "unknown unit … got 'foo'"),
    ("pos[0]*2", "unknown unit: expected a unit such as deg, rpm, deg/s, mm, N m, ms or mA, got '0' (write a name with brackets "
                 "in quotes)"),
    ("3 x", "not an expression of a column"),
    ("x *", "not an expression of a column"), ("x; 2", "not an expression of a column"),
    ("x if x", "not an expression of a column"), ("x < 2", "not an affine expression … got 'x < 2'"),
    ("", "the entry has no column"),
    ("y", "has no such column: expected one of stamp, x, joint 3, cur, deg, pos[0] … got 'y'"),
    ("joint3", "(did you mean joint 3?)"), ("3_pos", "has no such column … got '3_pos'"), ("x*1e999", "not a finite number")])
def test_not_expressions_of_one_column(log, expression, words):
    with pytest.raises(TrajectoryError) as caught:
        values(log, expression)
    text = str(caught.value)
    assert text.startswith("columns: q.a: ") and has_parts(text, words) and "\n" not in text


def test_a_current_of_the_file_without_a_factor_and_an_unknown_unit(log):
    log.write_text("stamp,x[ticks]\n0,1\n")
    with pytest.raises(TrajectoryError, match=r"unknown unit of the column x.*got 'ticks'"):
        values(log, "x")
    assert values(log, "x*0.1")[1] == "" and values(log, "x[deg]")[1] == "rad"
    assert read_trajectory(log, columns="t=stamp,q.a=x,q=[rad]").units == {"q.a": "rad"}


def test_the_map_needs_no_file():
    assert [entry.target for entry in read_column_map("t=a,q.b=c").entries] == ["t", "q.b"]
