"""Nonlinear couplings in robot files: expressions, tables, CSV files with units, what is an error, and writing."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ModelError
from liedyn.model.coupling_functions import evaluate
from messages import has_parts

HEAD = """links: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}}
joints:
  cam: {type: continuous, parent: world, child: a, axis: [0, 0, 1]}
  valve-1: {type: prismatic, parent: a, child: b, axis: [0, 0, 1], limits: {lower: -1, upper: 1}}
couplings:
"""


def write(tmp_path, coupling, name="robot.yaml"):
    path = tmp_path / name
    path.write_text(f"{HEAD}  lobe: {{follower: valve-1, driver: cam, {coupling}}}\n")
    return path


def value(path, x):
    return evaluate(ld.load(path).function_couplings[0].program, x)


@pytest.mark.parametrize("text", ["0.1*(1 - cos(cam))", "0.1*(1 - cos(q))", "0.1 - 0.1*cos(cam)*1"])
def test_the_driver_has_two_names(tmp_path, text):
    f, df, _, _ = value(write(tmp_path, f'function: "{text}"'), 0.7)
    np.testing.assert_allclose([f, df], [0.1 * (1 - np.cos(0.7)), 0.1 * np.sin(0.7)], rtol=1e-14)


def test_an_empty_function_is_one_of_the_driver(tmp_path):
    with pytest.raises(ModelError, match=r"the expression is empty.*expected a number or an expression of the driver, cam or q"):
        ld.load(write(tmp_path, 'function: ""'))


def test_a_driver_with_any_name(tmp_path):
    """Also a name that is not an identifier of Python."""
    path = write(tmp_path, "function: 2*q")
    text = path.read_text().replace("cam:", "arm/cam-1:").replace("driver: cam", 'driver: "arm/cam-1"')
    path.write_text(text.replace("2*q", '"2*arm/cam-1 + q"'))
    assert value(path, 0.7)[0] == pytest.approx(2.1)


@pytest.mark.parametrize("titles", ["cam[deg],valve-1[mm]", "cam (deg),valve-1 (mm)", "cam_deg,lift_mm"])
def test_a_csv_with_units(tmp_path, titles):
    x, y = np.linspace(-180.0, 180.0, 25), 10.0 * (1 + np.cos(np.linspace(-np.pi, np.pi, 25)))
    rows = "\n".join(f"{a!r},{b!r}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    (tmp_path / "lobe.csv").write_text(f"# a cam\n{titles}\n{rows}\n")
    path = write(tmp_path, "table: lobe.csv, interpolation: quintic, periodic: true")
    f, df, ddf, _ = value(path, 7.0)
    np.testing.assert_allclose([f, df, ddf], [0.01 * (1 + np.cos(7)), -0.01 * np.sin(7), -0.01 * np.cos(7)], atol=2e-7)
    model = ld.load(path)
    ld.save(model, tmp_path / "out.yaml")
    assert ld.load(tmp_path / "out.yaml").loop_constants.tolist() == model.loop_constants.tolist()


@pytest.mark.parametrize("coupling", [
    'function: "0.1*(1 - cos(cam))**2 + 1e-3*exp(-cam)"', "table: [[-1, 0.1], [0, 0.2], [1, 0.1], [2, 0.3]]",
    "table: [[-1, 0.1], [0, 0.2], [1, 0.1], [2, 0.3], [3, 0.1], [4, 0.1]], interpolation: quintic, periodic: true"])
def test_a_written_robot_is_the_same(tmp_path, coupling):
    model = ld.load(write(tmp_path, coupling))
    ld.save(model, tmp_path / "out.yaml")
    other = ld.load(tmp_path / "out.yaml")
    for name in ("loop_index", "loop_constants"):
        np.testing.assert_array_equal(getattr(other, name), getattr(model, name))
    assert other.description.couplings == model.description.couplings
    ld.save(model, tmp_path / "out.urdf")                                  # with a loops file
    assert ld.load(tmp_path / "out.urdf").loop_constants.tolist() == model.loop_constants.tolist()


def test_columns_with_units(tmp_path):
    text = 'table: {"%s": [-90, 0, 90, 180], "%s": [0, 3, 5, 0]}'
    f, *_ = value(write(tmp_path, text % ("driver[deg]", "follower[mm]")), np.pi / 2)
    np.testing.assert_allclose(f, 0.005, rtol=1e-14)
    assert ld.load(tmp_path / "robot.yaml").warnings[0].code == "coupling-beyond-table"                # of the continuous cam
    for titles, message in ((("driver[mm]", "follower"),
        "the column of the driver has the unit of another quantity: expected rad, got 'm'"),
                            (("driver", "x"), "wrong columns in the table of a coupling: expected driver"),
                            (("driver[kg]", "follower"),
                             "wrong unit in the table of a coupling: expected a unit of angle or length: rad, deg, m, mm, …, got "
                             "'kg'")):
        with pytest.raises(ModelError) as caught:
            ld.load(write(tmp_path, text % titles))
        assert message in str(caught.value) and caught.value.place.line == 6, str(caught.value)
    with pytest.raises(ModelError, match=r"have different lengths: got \[2, 3\]"):
        ld.load(write(tmp_path, "table: {driver: [0, 1], follower: [0, 1, 2]}"))


@pytest.mark.parametrize("points, message", [
    ([[-180, 0], [-90, 0.1], [90, 0.2], [180, 0]], "cam reaches 180 rad"),
    ([[-3, 0], [-1, 5], [1, 10], [3, 20]], "valve-1 reaches 20 m, its limit is 1 m"),
    ([[-3, 0], [-1, 0.1], [1, 0.2], [3, 0.3]], None)])
def test_a_table_in_degrees_or_millimetres_is_a_warning(tmp_path, points, message):
    codes = {one.code: str(one) for one in ld.load(write(tmp_path, f"table: {points}")).warnings}
    assert ("table-units" in codes) == (message is not None)
    assert message is None or f"the table does not seem to be in rad and m: {message}" in codes["table-units"]


def test_a_table_of_angles_with_an_absurd_slope_is_a_warning(tmp_path):
    path = write(tmp_path, "table: [[0, 0], [0.001, 1], [0.002, 2], [0.003, 3]]")
    path.write_text(path.read_text().replace("prismatic", "revolute"))
    assert "valve-1 turns by 1e+03 rad per rad of cam" in str(ld.load(path).warnings[0])


FOUR = "table: [[0, 1], [1, 2], [2, 2], [3, 1.5]]"
BROKEN = {
    'function: "abs(cam)"': "lobe.function: abs has kinks or jumps, but a coupling must be smooth … got 'abs(cam)'",
    'function: "sin(t)"': "lobe.function: unknown name t: expected cam or q, pi, e, got 'sin(t)' (t is not available",
    'function: "sine(cam)"': "lobe.function: unknown function sine … got 'sine(cam)'",
    'function: "sin(cam, 1)"': "lobe.function: wrong arguments of sin: expected 1 argument, got 'sin(cam, 1)'",
    'function: "cam/0"': "lobe.function: a division by zero",
    'function: "cam^2"': "lobe.function: the operator ^ is not allowed in an expression",
    'function: "__import__(\'os\')"': "lobe.function: the character",
    "interpolation: cubic": "lobe.interpolation: interpolation requires a table",
    "table: [[0, 1], [1, 2]]": "lobe.table: wrong number of points for cubic interpolation: expected 4 to 2000, got 2",
    "table: [[0, 1], [1]]": "lobe.table[1]: expected a list of 2 numbers, got [1]",
    "table: none.csv": "lobe.table: no such CSV file: got",
    f"{FOUR}, function: q": "lobe: a coupling takes one of terms, function, table: got 'function, table'",
    "function: q, periodic: true": "lobe.periodic: periodic requires a table",
    "function: q, offset: 1": "lobe.offset: offset does not apply to a nonlinear coupling",
    "terms: {cam: 1}": "lobe.follower: follower does not apply to a linear coupling",
    f"{FOUR}, interpolation: linear": "lobe.interpolation: expected one of cubic, quintic, got linear",
    f"{FOUR}, periodic: true": "lobe.table: the last value of a periodic table must be the first one: expected 1, got 1.5",
}


@pytest.mark.parametrize("coupling", BROKEN)
def test_broken_functions(tmp_path, coupling):
    path = write(tmp_path, coupling)
    with pytest.raises(ModelError) as caught:
        ld.load(path)
    assert has_parts(str(caught.value), f"{path}:6: couplings.{BROKEN[coupling]}"), str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line, text", [
    ("lobe: {follower: valve-1, function: q}", "lobe: the key driver is missing: expected a joint's name, or joint.label"),
    ("lobe: {driver: cam, function: q}", "lobe: the key follower is missing"),
    ("lobe: {follower: valve-1, driver: cam}",
     "lobe: the key function is missing: expected an expression of the driver, or a table"),
    ("lobe: {driver: x, follower: valve-1, function: q}",
     "lobe: unknown joint in a coupling: expected a joint's name, or joint.label, got 'x'")])
def test_incomplete_couplings(tmp_path, line, text):
    path = tmp_path / "robot.yaml"
    path.write_text(f"{HEAD}  {line}\n")
    with pytest.raises(ModelError) as caught:
        ld.load(path)
    assert has_parts(str(caught.value), text), str(caught.value)


@pytest.mark.parametrize("titles, text", [
    ("cam[deg],valve[deg]", "the column of the follower has the unit of another quantity: expected m, got 'rad'"),
    ("cam[s],valve", "wrong unit in the table of a coupling: expected a unit of angle or length: rad, deg, m, mm, …, "
                     "got 's'"),
    ("cam[grd],valve", "wrong unit in the table of a coupling: expected a unit of angle or length: rad, deg, m, mm, …, got "
                       "'grd'"),
    ("valve-1,cam", "the driver must be the first column in the table of a coupling: expected cam,valve-1, got 'valve-1,cam'"),
    ("cam", "wrong number of columns in the table of a coupling … got 1")])
def test_broken_csv(tmp_path, titles, text):
    n = titles.count(",") + 1
    (tmp_path / "lobe.csv").write_text(titles + "\n" + "\n".join(",".join([str(k)] * n) for k in range(5)) + "\n")
    with pytest.raises(ModelError) as caught:
        ld.load(write(tmp_path, "table: lobe.csv"))
    assert has_parts(str(caught.value), text), str(caught.value)


def test_info_shows_the_function(tmp_path):
    from liedyn.report.robot_summary import constraint_count, robot_summary
    model = ld.load(write(tmp_path, 'function: "0.1*cam"'))
    assert constraint_count(model) == "1 coupling, 1 equation"
    assert "'function': '0.1*cam'" in str(robot_summary(model))
