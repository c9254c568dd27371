"""Outputs of runs against NumPy on their trajectories, one run and many side by side."""

import numpy as np
import pytest

import liedyn as ld
from liedyn.batch.output_expressions import BatchMotion, compile_output, evaluate_in_blocks, motion_of_run, robots_of_rows
from liedyn.dynamics.variants import Variants
from liedyn.errors import ScenarioError
from liedyn.io.sweep_file import Output
from liedyn.model.expression_parser import MAX_DEPTH
from sweeps import ROBOT


@pytest.fixture(scope="module")
def result():
    return ld.run_scenario({"robot": str(ROBOT), "duration": 1.0, "output_step": 0.07,
                            "joints": {"elbow": {"torque": "sin(5*t)"}}, "initial": {"q": {"shoulder": 1.0}, "v": {"elbow": 2}}})


def value(text, motion):
    return compile_output(Output("x", text)).value(motion)


def trapezoid(t, x):
    return float(np.sum(np.diff(t) * (x[1:] + x[:-1]) / 2))


def expected(text, r):
    t, q, v, tau, m = r.t, r.q, r.v, r.tau, r.model
    tip = np.array([ld.link_pose(m, x, "tip") for x in q])
    low = np.array([ld.link_pose(m, x, "lower") @ [0.1, 0.2, -0.5, 1.0] for x in q])
    twist = np.array([ld.link_twist(m, x, y, "tip", frame="local_world_aligned") for x, y in zip(q, v, strict=True)])
    reach = np.array([np.cross(w[:3], (T[:3, :3] @ [0, 0, 0.3])) + w[3:] for w, T in zip(twist, tip, strict=True)])
    return {"final(q.elbow)": q[-1, 1], "initial(v(elbow))": v[0, 1], "min(z(tip))": tip[:, 2, 3].min(),
            "max(abs(tau.elbow))": np.abs(tau[:, 1]).max(), "mean(q.shoulder)": trapezoid(t, q[:, 0]) / t[-1],
            "integral(tau.elbow*v.elbow)": trapezoid(t, tau[:, 1] * v[:, 1]), "at(0.5, q.elbow)": np.interp(0.5, t, q[:, 1]),
            "at(2, q.elbow)": np.nan, "max(q.elbow - initial(q.elbow))": (q[:, 1] - q[0, 1]).max(),
            "final(x(lower, 0.1, 0.2, -0.5)) + 2**2": low[-1, 0] + 4, "max(vx(tip))": twist[:, 3].max(),
            "final(wy(tip))": twist[-1, 1],
            "final(vz(tip, 0, 0, 0.3))": reach[-1, 2], "final(energy.kinetic) + final(energy.potential) - final(energy.work)":
                (r.kinetic + r.potential - r.work)[-1], "-atan2(final(q.elbow), 2) + step(-1)": -np.arctan2(q[-1, 1], 2),
            "max(1, final(t), 3)": 3.0, "sqrt(mean(q.elbow**2)) / pi": np.sqrt(trapezoid(t, q[:, 1]**2) / t[-1]) / np.pi,
            "max(sin(t) * q.elbow)": (np.sin(t) * q[:, 1]).max(), "min(3, 2) - 1": 1.0}[text]


def twice(result, variants=None):
    """The run two times, side by side."""
    columns = [(name, unit, np.stack([x, x])) for name, unit, x in result.columns]
    return BatchMotion(result.model, result.t, columns, *(np.stack([x, x]) for x in (result.q, result.v)), variants)


TEXTS = ["final(q.elbow)", "initial(v(elbow))", "min(z(tip))", "max(abs(tau.elbow))", "mean(q.shoulder)",
         "integral(tau.elbow*v.elbow)", "at(0.5, q.elbow)",
         "at(2, q.elbow)", "max(q.elbow - initial(q.elbow))", "final(x(lower, 0.1, 0.2, -0.5)) + 2**2",
         "max(vx(tip))", "final(wy(tip))", "final(vz(tip, 0, 0, 0.3))",
         "final(energy.kinetic) + final(energy.potential) - final(energy.work)", "-atan2(final(q.elbow), 2) + step(-1)",
         "max(1, final(t), 3)", "sqrt(mean(q.elbow**2)) / pi", "max(sin(t) * q.elbow)", "min(3, 2) - 1"]


@pytest.mark.parametrize("text", TEXTS)
def test_outputs_are_those_of_numpy(result, text):
    want = expected(text, result)
    # rounding of sums of 16 terms
    assert np.allclose(np.broadcast_to(value(text, motion_of_run(result)), (1,)), want, rtol=1e-12, atol=1e-12, equal_nan=True)
    several = twice(result)
    assert np.allclose(np.broadcast_to(value(text, several), (2,)), want, rtol=1e-12, atol=1e-12, equal_nan=True)


def test_robots_of_their_own_have_their_own_energies_and_places(result):
    places = np.flatnonzero(result.model.constants)[-3:]
    numbers = result.model.constants[places] * [[1.0], [1.25]]
    variants = Variants.of_numbers(result.model, places, numbers)
    several = twice(result, variants)
    with robots_of_rows(result.model, variants, len(result.t)) as robots:
        kinetic, _ = ld.energy(robots, several.q, several.v)
    assert kinetic[0] == pytest.approx(result.kinetic, rel=1e-12)
    heavier = variants.robot(1)
    assert kinetic[1] == pytest.approx(ld.energy(heavier, result.q, result.v)[0], rel=1e-12)
    for text in ("min(z(tip))", "final(vz(tip, 0, 0, 0.3))"):
        assert value(text, several)[0] == pytest.approx(float(np.ravel(value(text, motion_of_run(result)))[0]), rel=1e-12)


def test_at_a_time_of_each_run(result):
    """It was an error where runs went side by side."""
    columns = [(name, unit, np.stack([x, 0.5 * x])) for name, unit, x in result.columns]
    motion, t, q = BatchMotion(result.model, result.t, columns), result.t, result.q[:, 1]
    found = value("at(0.3 + max(q.elbow)/4, q.elbow)", motion)
    assert found == pytest.approx([np.interp(0.3 + q.max() / 4, t, q), 0.5 * np.interp(0.3 + q.max() / 8, t, q)], rel=1e-12)
    beyond = value("at(1 + min(0, initial(q.shoulder) - 0.7), t)", motion)
    assert beyond == pytest.approx([1.0, 0.8], rel=1e-12)
    assert np.array_equal(np.isnan(value("at(1.3 - initial(q.shoulder), 2*t)", motion)), [False, False])
    assert np.array_equal(np.isnan(value("at(1.7 - initial(q.shoulder), 2*t)", motion)), [False, True])


def test_names_with_other_signs_stand_in_brackets():
    found = compile_output(Output("x", "final(q(left-arm 2)) + final(q.base.px)"))
    assert found.columns == ("q.left-arm 2", "q.base.px")


@pytest.mark.parametrize(("states_per_block", "rows"), [(6, [3, 3, 1]), (100, [7]), (1, [1] * 7)])
def test_states_are_evaluated_in_blocks_of_rows(states_per_block, rows):
    """At least a row of all runs at once, also where a block has fewer states than there are runs."""
    model, (q, v), blocks = ld.load(ROBOT), np.random.default_rng(0).standard_normal((2, 2, 7, 2)), []

    def first_coordinate(_model, q, v):
        blocks.append(q.shape[1])
        return q[..., 0] + v[..., 1]
    assert np.array_equal(evaluate_in_blocks(first_coordinate, model, q, v, None, states_per_block), q[..., 0] + v[..., 1])
    assert blocks == rows


@pytest.mark.parametrize("call", ["final({})", "final(sin({}))", "final(max({}, 1))", "final(1 + {})", "at(0.1, {})",
                                  "at(event(hit), {})", "before(hit, {})", "-before(hit, {})", "before(hit, abs({}))"])
def test_each_operation_is_a_level_of_nesting(call):
    """Operations before the last are levels, too."""
    levels = call.replace("event(", "").count("(") + call.count("+") + call.startswith("-")
    compile_output(Output("x", call.format("-" * (MAX_DEPTH - levels - 1) + "t")))
    with pytest.raises(ScenarioError, match="too deeply nested"):
        compile_output(Output("x", call.format("-" * (MAX_DEPTH - levels) + "t")))


@pytest.mark.parametrize("text, unit", [
    ("max(abs(q(elbow)))", "rad"), ("final(v.elbow) - 0.5", "rad/s"), ("max(q.elbow - q.rail)", None), ("2 * max(x(hand))", "m"),
    ("integral(tau.elbow * v.elbow)", "J"), ("max(tau.elbow * v.elbow)", "W"), ("max(q.elbow) / max(q.elbow)", ""),
    ("max(v.rail) / 2", "m/s"), ("integral(q.rail)", "m s"), ("max(sin(q.elbow))", ""), ("atan2(final(q.rail), 1)", "rad"),
    ("max(q.elbow)**2", "rad^2"), ("max(q.elbow)**max(v.rail)", None), ("max(q.rail)**0.5", None), ("2**3", ""),
    ("sqrt(max(v.rail)**2 + final(v.rail)**2)", "m/s"), ("max(v.rail)**-1", "s/m"), ("sqrt(max(q.rail))", None),
    ("sqrt(final(energy.work)*2)", None), ("final(energy.work)/max(t)", "N m/s"), ("abs(sqrt(2))", ""),
    ("count(lands)", ""), ("at(lands, q.rail)", "m"), ("at(0.5, wz(hand))", "rad/s"),
    ("min(final(q.rail), 0.2)", "m"), ("max(q.unknown)", None), ("final(energy.work) + 1", "J"), ("max(t)", "s"),
    ("-max(q.rail)", "m"), ("3", ""),
])
def test_units_follow_from_those_of_the_columns(text, unit):
    units = {"q.elbow": "rad", "v.elbow": "rad/s", "tau.elbow": "N m", "q.rail": "m", "v.rail": "m/s", "energy.work": "J"}
    assert compile_output(Output("x", text)).unit(units) == unit
