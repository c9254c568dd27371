"""Tables of expressions: values and derivatives against SciPy, corners as switches, closed forms of motions, units, errors."""
import math

import numpy as np
import pytest
import yaml
from scipy.interpolate import CubicSpline, PchipInterpolator

import liedyn as ld
from controlled_robots import ARM, CART, FINE
from liedyn.analysis.linearize import linearize_scenario
from liedyn.codegen.trace import traced_module
from liedyn.errors import ComputationError, ScenarioError
from liedyn.io.scenarios.scenario import Table
from liedyn.io.scenarios.scenario_file import read_scenario, scenario_of, to_plain
from liedyn.kernels.simulation.signal_series import series_stack_size, signal_series
from liedyn.kernels.simulation.signals import evaluate_signal
from liedyn.simulation.run import run_scenario
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose
from liedyn.simulation.signals.switching_times import switches_in_time

X, Y = np.array([-1.0, -0.2, 0.1, 0.9, 1.3]), np.array([2.0, -1.0, 0.5, 0.4, 3.0])
GRID_X, GRID_Y = np.array([-1.0, -0.4, 0.1, 0.7, 1.2]), np.array([-2.0, -0.5, 0.5, 1.0])
GRID = np.random.default_rng(3).normal(size=(5, 4))
LIMITS = {"limits": (-9, 9)}
MODEL = ld.build(ld.Robot("arm", [ld.Link(name, mass=1.0, inertia=[0.1, 0.1, 0.1]) for name in ("upper", "lower", "hand")], [
    ld.Joint("shoulder", "revolute", "world", "upper", axis=[0, 1, 0], **LIMITS),
    ld.Joint("elbow", "revolute", "upper", "lower", axis=[1, 0, 0], **LIMITS),
    ld.Joint("slide", "prismatic", "lower", "hand", axis=[0, 0, 1], **LIMITS)]))
CURVES = {"linear": lambda x: np.interp(x, X, Y), "monotone": PchipInterpolator(X, Y), "cubic": CubicSpline(X, Y)}
CIRCLE = {"linear": lambda x: np.interp(x % 3.0, [0, 1, 2, 3], [1, -1, 2, 1]),
          "cubic": CubicSpline([0, 1, 2, 3], [1, -1, 2, 1], bc_type="periodic", extrapolate="periodic")}


def points(x=X, y=Y):
    return tuple(zip(x.tolist(), y.tolist(), strict=True))


def grid(interpolation):
    rows = tuple((x, y, float(GRID[i, j])) for i, x in enumerate(GRID_X) for j, y in enumerate(GRID_Y))
    return Table(("q(elbow)", "v(slide)"), rows[::-1], interpolation)


def signals(*tables):
    """The signals of a compiler with these tables, and the size of their stack."""
    compiler = SignalCompiler(MODEL, 1.0, np.arange(3))
    for table in tables:
        compiler.add(table, SignalPurpose("force"))
    return compiler.arrays(np.zeros(0), np.zeros(0)), compiler.stack_size


def jet(table, t=0.0, q=(0.0, 0.0, 0.0), v=(0.0, 0.0, 0.0), module=None):
    arrays, size = signals(table)
    function = evaluate_signal if module is None else module.evaluate_signal
    with np.errstate(all="ignore"):
        return np.array(function(arrays, 0, t, np.array(q), np.array(v), np.zeros(size)))


@pytest.mark.parametrize("interpolation", CURVES)
def test_values_and_derivatives(interpolation):
    """Of time: x = 1.1 sin(t), whose second derivative is -x."""
    table, curve = Table(("1.1*sin(t)",), points(), interpolation, "linear"), CURVES[interpolation]
    of_state = Table(("q(elbow)",), points(), interpolation)
    for t in (-0.8, -0.1, 0.05, 0.4, 1.2):
        x, dx = 1.1 * math.sin(t), 1.1 * math.cos(t)
        f = [float(curve(x, k)) if interpolation != "linear" else [curve(x), np.gradient(curve(x + 1e-4 * np.arange(3)), 1e-4)[1],
                                                                   0.0][k] for k in range(3)]
        np.testing.assert_allclose(jet(table, t), [f[0], f[1] * dx, f[2] * dx**2 - f[1] * x], rtol=0, atol=1e-9)
        np.testing.assert_allclose(jet(of_state, q=(0, x, 0)), [f[0], 0, 0], rtol=0, atol=1e-14)
        np.testing.assert_allclose(jet(table, t, module=traced_module("kernels.simulation.signals")), jet(table, t), atol=1e-13)


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
@pytest.mark.parametrize("module", [None, traced_module("kernels.simulation.signals")], ids=["kernel", "traced"])
def test_two_expressions(interpolation, module):
    for x, y in np.random.default_rng(1).uniform((-1, -2), (1.2, 1.0), (20, 2)):
        if interpolation == "linear":
            value = np.interp(y, GRID_Y, [np.interp(x, GRID_X, column) for column in GRID.T])
        else:
            value = CubicSpline(GRID_Y, CubicSpline(GRID_X, GRID)(x))(y)
        assert jet(grid(interpolation), q=(0, x, 0), v=(0, 0, y), module=module)[0] == pytest.approx(float(value), abs=1e-13)


def test_derivatives_of_two_expressions_of_time():
    rows = tuple((x, y, float(GRID[i, j])) for i, x in enumerate(GRID_X) for j, y in enumerate(GRID_Y))
    table = Table(("sin(t)", "cos(2*t)"), rows, "cubic")

    def series(t, order=4):
        arrays, size = signals(table)
        out = np.zeros(order)
        signal_series(arrays, 0, t, np.zeros(series_stack_size(size // 3, order - 1)), out)
        return out

    h = 1e-4
    x, dx, ddx = jet(table, 0.4)
    rates = [jet(table, 0.4 + s)[:2] for s in (h, -h)]
    np.testing.assert_allclose([dx, ddx], (rates[0] - rates[1]) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(series(0.4)[:3], [x, dx, ddx / 2], rtol=1e-12)
    assert series(0.4)[3] == pytest.approx((series(0.4 + h)[2] - series(0.4 - h)[2]) / (6 * h), rel=1e-6)
    one = Table(("sin(t)",), points(), "cubic")
    arrays, size = signals(one)
    out = np.zeros(4)
    signal_series(arrays, 0, 0.4, np.zeros(series_stack_size(size // 3, 3)), out)
    np.testing.assert_allclose(out[:3], jet(one, 0.4) / [1, 1, 2], rtol=1e-12)


@pytest.mark.parametrize("rows", [((0, 1), (1, -1), (2, 2)), ((0, 1), (1, -1), (2, 2), (3, 1))], ids=["open", "closed"])
@pytest.mark.parametrize("interpolation", ["linear", "monotone", "cubic"])
def test_periodic_tables(interpolation, rows):
    table = Table(("q(elbow)",), tuple((float(x), float(y)) for x, y in rows), interpolation, period=(3.0,))
    for x in (-4.2, -0.3, 0.7, 2.9, 8.4):
        value = jet(table, q=(0, x, 0))[0]
        if interpolation in CIRCLE:
            assert value == pytest.approx(float(CIRCLE[interpolation](x)), abs=1e-12)
        assert value == pytest.approx(jet(table, q=(0, x + 9.0, 0))[0], abs=1e-12)
    slopes = [(jet(table, q=(0, 3.0 + s, 0))[0] - 1.0) / s for s in (1e-7, -1e-7)]
    assert (abs(slopes[0] - slopes[1]) < 1e-5) == (interpolation != "linear")


@pytest.mark.parametrize("outside, ends", [("hold", (2.0, 3.0)), ("linear", (2.0 + 3.75 * 0.5, 3.0 + 6.5 * 0.5)),
                                           ("error", (math.nan, math.nan))])
def test_beyond_the_points(outside, ends):
    table = Table(("q(elbow)",), points(), "linear", outside)
    for x, value in zip((-1.5, 1.8), ends, strict=True):
        np.testing.assert_allclose(jet(table, q=(0, x, 0))[0], value, atol=1e-13)
    np.testing.assert_allclose([jet(table, q=(0, x, 0))[0] for x in (-1.0, 1.3)], [2.0, 3.0], atol=1e-13)


def test_smooth_tables_continue_with_the_slope_of_their_ends():
    for interpolation in ("monotone", "cubic"):
        curve, table = CURVES[interpolation], Table(("q(elbow)",), points(), interpolation, "linear")
        for x, end in ((-1.7, X[0]), (2.1, X[-1])):
            assert jet(table, q=(0, x, 0))[0] == pytest.approx(float(curve(end) + curve(end, 1) * (x - end)), abs=1e-12)


@pytest.mark.parametrize("outside", ["linear", "hold"])
def test_switching_times_of_a_table_of_time(outside):
    compiler = SignalCompiler(MODEL, 3.0, np.arange(3))
    program = compiler.compile(Table(("2*t - 1.5",), points(), "linear", outside), SignalPurpose("force"))
    found = switches_in_time(program, 0.0, 3.0)
    assert found.complete
    np.testing.assert_allclose(np.unique(found.windows[:, 1].round(12)), (X + 1.5) / 2, atol=1e-12)
    smooth = compiler.compile(Table(("2*t - 1.5",), points(), "cubic", "linear"), SignalPurpose("force"))
    np.testing.assert_allclose(switches_in_time(smooth, 0.0, 3.0).windows[:, 1], (X + 1.5) / 2, atol=1e-12)


# motions ----------------------------------------------------------------------------------------------------------------

TWO_SPRINGS = {"of": "q(x)", "points": [[-1, 8], [0, 0], [1, -2]], "interpolation": "linear"}
WITHOUT_PASSIVE = {"passive": False, "initial": {"v": {"x": 0.5}}}


@pytest.mark.parametrize("integrator", [{"method": "rk4", "step": 0.01}, FINE, {"method": "rodas5p", "rtol": 1e-10,
                                                                               "atol": 1e-11}], ids=lambda given: given["method"])
def test_a_mass_between_two_springs(scenario, integrator):
    """Half periods of two oscillators: pi sqrt(m/k) with k = 2 and 8. Steps end at the corner, so each method keeps its order."""
    joints = {"x": {"torque": {"table": TWO_SPRINGS}}}
    half = math.pi, math.pi / 2
    run = run_scenario(scenario(CART, **WITHOUT_PASSIVE, joints=joints, duration=4.5, integrator=integrator))
    t, first = run.t, run.t < half[0]
    q = np.where(first, 0.5 * np.sin(t), -0.25 * np.sin(2.0 * (t - half[0])))
    q = np.where(t < sum(half), q, 0.0)
    within = t < sum(half)
    np.testing.assert_allclose(run.q[within, 0], q[within], rtol=0, atol=2e-9)
    assert run.check["energy_balance_relative"] < 1e-8


def test_corners_at_several_speeds_and_beyond_the_ends(scenario):
    """A staircase of forces of the speed, held beyond its ends: v obeys m v' = f(v), a straight line in each piece."""
    table = {"of": "v", "points": [[0, 4], [0.5, 3], [0.8, 1]], "interpolation": "linear", "outside": "hold"}
    run = run_scenario(scenario(CART, passive=False, joints={"x": {"torque": {"table": table}}}, duration=2,
                                integrator={"method": "rk4", "step": 0.02}))
    knee = math.log(4 / 3)                                         # m v' = 4 - 2 v
    end = knee + 0.3 * math.log(3)                                 # m v' = 3 - 20/3 (v - 0.5)
    t = run.t
    v = np.where(t < end, 0.5 + 0.45 * (1 - np.exp(-(t - knee) / 0.3)), 0.8 + 0.5 * (t - end))
    v = np.where(t < knee, 2 * (1 - np.exp(-t)), v)
    np.testing.assert_allclose(run.v[:, 0], v, rtol=0, atol=1e-7)


def test_generated_code_agrees(scenario, monkeypatch):
    """A grid with corners, a smooth table and a wrench in one scenario."""
    rows = [[float(x), float(y), float(GRID[i, j])] for i, x in enumerate(GRID_X) for j, y in enumerate(GRID_Y)]
    joints = {"elbow": {"torque": {"table": {"of": ["q(elbow)", "0.2*v"], "points": rows, "outside": "linear"}}},
              "slide": {"torque": {"table": {"of": "q", "points": points(), "outside": "linear"}}}}
    forces = [{"link": "hand", "wrench": [0, 0, 0, 0, {"table": {"of": "z(hand)", "points": points(), "outside": "hold"}}, 0]}]
    keys = scenario(ARM, joints=joints, external_forces=forces, duration=0.5, integrator=FINE, initial={"q": {"shoulder": 0.4}})
    runs = []
    for kind in ("auto", "generic"):
        monkeypatch.setenv("LIEDYN_CODE", kind)
        runs.append(run_scenario(keys))
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-9)
    assert runs[0].check["energy_balance_relative"] < 1e-9
    found = linearize_scenario(keys, at=0.3, verify=True)
    assert all(x.off < 1e-7 for x in found.differences.values())


def test_a_written_scenario_reads_back_equal(scenario):
    table = {"of": ["q(elbow)", "v(slide)"], "points": [[0, 0, 1], [0, 1, 2], [1, 0, 3], [1, 1, 4]], "period": ["360deg", None]}
    read = scenario_of(scenario(ARM, joints={"elbow": {"torque": {"table": table}}}))
    assert scenario_of(to_plain(read)) == read
    assert read.joints[0].value.signals.period == (2 * math.pi, 0.0)


# files ------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ["angle[deg],force[kN]\n0,2\n180,4\n", "angle_deg,force_kN\n0,2\n180,4\n"])
def test_units_of_columns(scenario, tmp_path, text):
    (tmp_path / "gas.csv").write_text(text)
    table = {"of": "q(shoulder)", "points": str(tmp_path / "gas.csv")}
    force = scenario_of(scenario(ARM, joints={"slide": {"torque": {"table": table}}})).joints[0].value.signals
    assert force.points == ((0.0, 2000.0), (math.pi, 4000.0)) and force.units == ("rad", "N")
    columns = {"of": "q(shoulder)", "points": {"angle[deg]": [0, 180], "force[kN]": [2, 4]}}
    assert scenario_of(scenario(ARM, joints={"slide": {"torque": {"table": columns}}})).joints[0].value.signals == force


CSV = {"text.csv": "a,b\n0,one\n", "one.csv": "a\n0\n1\n", "short.csv": "a,b\n0,1\n", "unit.csv": "a[degs],b\n0,1\n1,2\n",
       "length.csv": "a[mm],b\n0,1\n1,2\n", "falls.csv": "a,b\n0,1\n2,2\n1,3\n", "force.csv": "a,b[N]\n0,1\n1,2\n"}
BROKEN = {
    "no points": ("of: q", ["joints.elbow.torque.table", "the key points is missing", "rows, a CSV, or lists by title"]),
    "no expression": ("points: [[0, 1], [1, 2]]", ["the key of is missing", "an expression, or a list of two"]),
    "one row": ("of: q, points: [[0, 1]]", ["wrong number of rows", "got 1", "2 to 10000"]),
    "no row": ("of: q, points: []", ["wrong number of rows", "got 0"]),
    "three numbers": ("of: q, points: [[0, 1, 2], [1, 2, 3]]", ["table.points[0]", "expected a list of 2 numbers"]),
    "not sorted": ("of: q, points: [[0, 1], [2, 1], [1, 2]]", ["table.points[2]", "the values of q in the table must increase",
                                                              "got 1", "a number above 2"]),
    "twice": ("of: q, points: [[0, 1], [0, 2]]", ["must increase", "got 0", "a number above 0"]),
    "NaN": ("of: q, points: [[0, 1], [.nan, 2]]", ["table.points[1][0]", "not a finite number"]),
    "text": ("of: q, points: [[0, a], [1, 2]]", ["table.points[0][1]", "expected a number, got a"]),
    "no file": ("of: q, points: nowhere.csv", ["no such CSV file", "nowhere.csv"]),
    "text in a file": ("of: q, points: text.csv", ["text.csv:2", "not a number", "got 'one'"]),
    "one column": ("of: q, points: one.csv", ["one.csv:1", "wrong number of columns", "got 1", "expected 2"]),
    "one row in a file": ("of: q, points: short.csv", ["wrong number of rows", "got 1"]),
    "misspelt unit": ("of: q, points: unit.csv", ["unit.csv:1", "unknown unit of the column a", "degs", "did you mean deg?"]),
    "a length for an angle": ("of: q, points: length.csv", ["the table of q has another unit", "expected rad, got 'm'"]),
    "a force for a torque": ("of: q, points: force.csv", ["the table of torque of elbow has another unit",
                                                          "expected N m, got 'N'"]),
    "not sorted in a file": ("of: q, points: falls.csv", ["falls.csv:4", "must increase", "a number above 2"]),
    "few points": ("of: q, points: [[0, 1], [1, 2]], interpolation: cubic", ["too few points for cubic interpolation", "got 2",
                                                                             "at least 4"]),
    "spline": ("of: q, points: [[0, 1], [1, 2]], interpolation: spline", ["interpolation", "did you mean cubic?"]),
    "kind": ("of: q, points: [[0, 1], [1, 2]], kind: linear", ["unknown key", "did you mean interpolation?"]),
    "outside": ("of: q, points: [[0, 1], [1, 2]], outside: clamp", ["expected one of error, hold, linear", "clamp"]),
    "outside of a period": ("of: q, points: [[0, 1], [1, 2]], outside: hold, period: 3", ["outside does not apply to a perio"]),
    "long": ("of: q, points: [[0, 1], [4, 2]], period: 3", ["longer than its period", "got 4", "at most 3"]),
    "ends differ": ("of: q, points: [[0, 1], [3, 2]], period: 3", ["the first and the last value of the periodic table differ",
                                                                   "[1.0, 2.0]"]),
    "period": ("of: q, points: [[0, 1], [1, 2]], period: 3 apples", ["period", "such as 720deg", "3 apples"]),
    "unit of the period": ("of: q, points: [[0, 1], [1, 2]], period: 3 m", ["the table of q has another unit", "got 'm'"]),
    "two periods": ("of: q, points: [[0, 1], [1, 2]], period: [3, 4]", ["wrong number of periods", "got 2"]),
    "three expressions": ("of: [q, v, t], points: [[0, 1], [1, 2]]", ["table.of", "expected a list of 2 expressions"]),
    "monotone grid": ("of: [q, v], points: [[0, 0, 1], [1, 0, 2], [0, 1, 1], [1, 1, 2]], interpolation: monotone",
                      ["tables of two expressions are not monotone", "linear or cubic"]),
    "hole": ("of: [q, v], points: [[0, 0, 1], [1, 0, 2], [0, 1, 1]]", ["the table has no row with 1, 1", "lacks 1 of 4"]),
    "repeated row": ("of: [q, v], points: [[0, 0, 1], [1, 1, 2], [0, 0, 1]]", ["table.points[2]", "same values", "[0.0, 0.0]"]),
    "unknown name": ("of: q(elbo), points: [[0, 1], [1, 2]]", ["table.of", "elbo", "did you mean elbow?"]),
    "a long expression": (f"of: '{'q+' * 500}q', points: [[0, 1], [1, 2]]", ["the expression is too long", "1001",
                                                                             "at most 1000 characters"]),
}


@pytest.mark.parametrize("keys, parts", BROKEN.values(), ids=BROKEN)
def test_broken_tables(tmp_path, keys, parts):
    for name, text in {"arm.yaml": ARM, **CSV}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "s.yaml").write_text(f"robot: arm.yaml\nduration: 1\njoints:\n  elbow: {{torque: {{table: {{{keys}}}}}}}\n")
    with pytest.raises(ScenarioError) as error:
        scenario = read_scenario(tmp_path / "s.yaml")
        compiler = SignalCompiler(MODEL, 1.0, np.arange(3))
        compiler.add(scenario.joints[0].value.signals, compiler.joint_purpose("torque", 1))
    assert not [part for part in parts if part not in str(error.value)]


@pytest.mark.parametrize("drive, parts", [
    ("prescribe: {position: {table: {of: t, points: [[0, 0], [1, 1]], interpolation: linear}}}", ["jumps", "monotone or cubic"]),
    ("prescribe: {position: {table: {of: t, points: [[0, 0], [1, 1]], outside: hold}}}", ["jumps", "outside error or linear"]),
    ("prescribe: {position: {table: {of: q, points: [[0, 0], [1, 1]]}}}", ["q may not be used here"]),
    ("torque: {table: {of: t, points: [[0, 0], [1, 1]]}, from: phase}", ["from cannot be combined with table", "t_phase"])])
def test_tables_that_do_not_fit(scenario, drive, parts):
    with pytest.raises(ScenarioError) as error:
        run_scenario(scenario(ARM, joints={"elbow": yaml.safe_load(f"{{{drive}}}")}))
    assert not [part for part in parts if part not in str(error.value)]


def test_the_end_of_a_table_is_an_error_that_names_it(scenario):
    table = {"of": "q", "points": [[-1, 1], [0.2, 1]]}
    keys = scenario(CART, passive=False, joints={"x": {"torque": {"table": table}}})
    with pytest.raises(ComputationError) as error:
        run_scenario(keys)
    assert not [part for part in ["the signal of torque of x is not a finite number", "its table is from -1 to 0.2",
                                 "the key outside or period"] if part not in str(error.value)]


def test_a_table_in_degrees_without_a_unit_is_a_warning(scenario):
    table = {"of": "q", "points": [[0, 0], [90, 1], [360, 0]], "outside": "hold"}
    run = run_scenario(scenario(ARM, joints={"elbow": {"torque": {"table": table}}}, duration=0.01))
    assert any(x.code == "table-units" and "reaches 360 rad" in x.message for x in run.warnings)
