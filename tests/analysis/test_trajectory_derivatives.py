"""Derivatives along trajectories: every column against extrapolated differences, over every kind of joint."""
import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from bridge import file_of
from liedyn.analysis import trajectory_derivatives
from liedyn.analysis import trajectory_derivatives as module
from liedyn.analysis.recorded_motion import motion_of_trajectory
from liedyn.analysis.trajectory_derivatives import (
    derivative_request,
    derivatives_along,
    differences,
    quotient,
    unit_of,
)
from liedyn.errors import CheckFailed, UsageError
from liedyn.io.trajectory_csv import Trajectory
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header
from zoo import ROBOTS, model_of, state

# Differences have an error of their own of 1e-10 where friction bends within 0.01 rad/s, and that of the state's condition.
BOUND = 1e-8


def trajectory(model, *, rows=3, f_ext=False, passive=True, without=()):
    """Return unrelated random states as rows, which need not be consistent."""
    q, v, a, tau = state(model, 5, rows)
    arrays = {name: x for name, x in (("q", q), ("v", v), ("a", a), ("tau", tau)) if name not in without}
    links = tuple(model.link_names) if f_ext else ()
    wrench = np.random.default_rng(6).standard_normal((rows, len(links), 6)) if f_ext else None
    columns = motion_columns(model, links, wrench, **arrays)
    return Trajectory(trajectory_header(model, passive=passive), np.arange(rows) / 10, {name: x for name, _, x in columns},
                      {name: unit for name, unit, _ in columns}, "states.csv", np.arange(rows) + 3)


def half(model):
    """Return patterns that prescribe about half of the joints."""
    return tuple(model.joint_names[::2])


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("of", ["inverse", "forward", "hybrid"])
def test_by_the_state_and_the_inputs(name, of, worst):
    model = model_of(name)
    motion = motion_of_trajectory(model, trajectory(model, f_ext=True), derive_a=True)
    asked = derivative_request(model, of, half(model) if of == "hybrid" else (), (), ())
    for what, one in differences(model, asked, motion, np.arange(3)).items():
        assert worst(f"along, {of}: {what}", one.off, name) < BOUND


@pytest.mark.parametrize("name", ["every kind", "every kind, floating", "helical", "a lone body"])
@pytest.mark.parametrize("of", ["inverse", "forward", "hybrid"])
def test_by_figures_of_the_model(name, of, worst):
    """Compared with robots that are built with a changed parameter; each function has other parameters."""
    model = model_of(name)
    names = ld.parameter_names(model)
    step = max(1, len(names) // 14)
    by = tuple(names[("inverse", "forward", "hybrid").index(of) * step // 3::step])
    motion = motion_of_trajectory(model, trajectory(model, rows=1, f_ext=True), derive_a=True)
    asked = derivative_request(model, of, half(model) if of == "hybrid" else (), by, ())
    assert asked.by == by
    for what, one in differences(model, asked, motion, np.arange(1)).items():
        # differences of screws near a singular configuration are uncertain by 1e-7
        assert worst(f"along, {of}: {what}", one.off, name) < max(BOUND, min(one.doubt, 1e-6))


def test_the_columns_are_the_matrices():
    model = model_of("ball")
    motion = trajectory(model, rows=9)
    along = derivatives_along(model, motion)
    names = [name for name, _, _ in along.columns]
    table = np.column_stack([x for _, _, x in along.columns]).reshape(9, model.nv, 3, model.nv)
    q, v, a, _ = state(model, 5, 9)
    expected = ld.inverse_dynamics_derivatives(model, q, v, a)
    for k, x in enumerate(expected):
        np.testing.assert_allclose(table[:, :, k], x, rtol=0, atol=1e-12 * np.abs(x).max())
    assert names[:2] == ["dtau.joint0.mx/dq.joint0.wx", "dtau.joint0.mx/dq.joint0.wy"]
    assert names[-1] == "dtau.joint2.mz/da.joint2.dwz" and len(names) == 3 * model.nv**2
    assert along.columns[0][1] == "N m/rad" and along.columns[-1][1] == "N m/(rad/s^2)"


def test_rows_are_taken_in_parts(monkeypatch):
    model = model_of("revolute")
    motion = trajectory(model, rows=20)
    whole = derivatives_along(model, motion)
    monkeypatch.setattr(module, "_ROWS", 7)
    for (_, _, x), (_, _, y) in zip(whole.columns, derivatives_along(model, motion).columns, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_patterns_choose_outputs_and_variables():
    model = model_of("every kind, floating")
    motion = trajectory(model)
    along = derivatives_along(model, motion, of="forward", by=("mass.link1", "q.base.*", "mass.*"), joints=("base",))
    names = [name for name, _, _ in along.columns]
    links = len(model.description.links)
    assert names[0] == "da.base.dwx/dmass.link1" and names[1] == "da.base.dwx/dq.base.wx"
    assert len(names) == 6 * (6 + links) and len(set(names)) == len(names)
    hybrid = derivatives_along(model, motion, of="hybrid", prescribed=("base",), by=("tau.*", "a.*"))
    names = {name for name, _, _ in hybrid.columns}
    assert any(name.startswith("dtau.base.fz/da.base") for name in names)
    assert not any(name.startswith(("da.base", "dtau.joint")) for name in names)


@pytest.mark.parametrize("name, unit", [
    ("q.base.wx", "rad"), ("q.base.vz", "m"), ("v.base.vz", "m/s"), ("a.base.dwx", "rad/s^2"), ("tau.base.fx", "N"),
    ("tau.base.mx", "N m"), ("mass.root", "kg"), ("com.root.x", "m"), ("inertia.root.xy", "kg m^2"), ("gravity.z", "m/s^2"),
    ("origin.base.wx", "rad"), ("origin.base.vx", "m"), ("armature.base.wx", "kg m^2"), ("armature.base.vx", "kg"),
    ("damping.base.wx", "N m s/rad"), ("friction.base.vy", "N"),
])
def test_units(name, unit):
    assert unit_of(model_of("every kind, floating"), name) == unit


def test_every_figure_has_a_unit():
    model = model_of("every kind, floating")
    assert all(isinstance(unit_of(model, name), str) for name in ld.parameter_names(model))
    assert (quotient("rad", "rad"), quotient("N m", "kg"), quotient("rad/s^2", "N m"), quotient("N", "")) == (
        "", "N m/kg", "(rad/s^2)/(N m)", "N")


@pytest.mark.parametrize("given, words", [
    ({"of": "hybrid"}, "--prescribed and --function hybrid must be used together"),
    ({"prescribed": ("base",)}, "--prescribed and --function hybrid must be used together"),
    ({"of": "hybrid", "prescribed": ("bse",)}, "no moving joint matches 'bse'"),
    ({"joints": ("hip",)}, "no moving joint matches 'hip'"),
    ({"by": ("mass.rot",)}, "no variable of --wrt matches 'mass.rot'; did you mean mass.root"),
    ({"by": ("zzz",)}, "no variable of --wrt matches 'zzz'; the names are q.*, v.*, a.*, mass.*, com.*"),
    ({"by": ("tau.*",)}, "no variable of --wrt matches 'tau.*'"),
])
def test_what_cannot_be_asked(given, words):
    model = model_of("every kind, floating")
    with pytest.raises(UsageError) as caught:
        derivatives_along(model, trajectory(model), **given)
    assert words in str(caught.value)


def test_too_many_columns():
    model = model_of("every kind twice, floating")
    with pytest.raises(UsageError, match=r"59 forces or accelerations with respect to \d+ variables\. The maximum is 20000: "):
        derivatives_along(model, trajectory(model), by=("*",))


def test_names_that_make_a_line_too_long_to_read():
    robot = ROBOTS["every kind, floating"]
    joints = tuple(dataclasses.replace(joint, name="a_very_" + "long_" * 20 + joint.name) for joint in robot.joints)
    model = ld.build(dataclasses.replace(robot, joints=joints))
    with pytest.raises(UsageError, match="columns make the header line too long"):
        derivatives_along(model, trajectory(model), by=("q.*", "v.*", "a.*", "origin.*"), joints=("*",))


def test_forces_are_needed_where_they_go_in():
    model = model_of("revolute")
    motion = trajectory(model, without=("tau",))
    assert derivatives_along(model, motion).columns
    for given in ({"of": "forward"}, {"of": "hybrid", "prescribed": ("joint0",)}):
        with pytest.raises(ld.TrajectoryError, match="there are no columns of the generalized forces"):
            derivatives_along(model, motion, **given)


def test_verify_tells_and_fails(monkeypatch):
    model = model_of("revolute")
    along = derivatives_along(model, trajectory(model), verify=True, by=("q.*", "mass.*"))
    assert "maximum relative difference from extrapolated differences, on 3 rows: " in str(along.warnings[-1])
    right = trajectory_derivatives.inverse_dynamics_derivatives
    monkeypatch.setattr(trajectory_derivatives, "inverse_dynamics_derivatives",
                        lambda *x, **y: [1.001 * z for z in right(*x, **y)])
    with pytest.raises(CheckFailed, match=r"1.0e-03 \(dtau/dq\): expected at most 1e-06; nothing is written"):
        derivatives_along(model, trajectory(model), verify=True, by=("q.*",))


def test_verify_tells_where_differences_are_no_measure():
    model = ld.load(file_of("icub.urdf"), base="fixed")
    q = ld.random_configuration(model, np.random.default_rng(1725))[None]
    columns = motion_columns(model, q=q, v=np.zeros((1, model.nv)), tau=np.ones((1, model.nv)))
    motion = Trajectory(trajectory_header(model), np.zeros(1), {name: x for name, _, x in columns}, {}, "states.csv",
                        np.array([3]))
    told = derivatives_along(model, motion, of="forward", by=("tau.*",), verify=True).warnings[-1].message
    assert re.search(r"on 1 row: .*; where the mass matrix is nearly singular, finite differences are accurate to .* only$", told)


def test_many_columns_are_told():
    model = model_of("every kind, floating")
    messages = [one.message for one in derivatives_along(model, trajectory(model)).warnings]
    assert "3072 columns; select with --wrt and --joint" in messages


@pytest.mark.parametrize("name, ratio", [("mass.tool0", 1e4), ("armature.elbow_joint", 1e4), ("damping.elbow_joint", None)])
def test_steps_of_inertias_reach_from_the_link_to_the_largest_one(name, ratio):
    """A link without mass and a joint without armature are taken as 1e-4 of the largest mass or of the unit."""
    steps = module._steps(ld.load(Path(__file__).parents[2] / "robots/ur5.yaml"), name)
    assert len(steps) == (3 if ratio else 1) and steps[-1] > 0.0
    if ratio:
        np.testing.assert_allclose(np.array(steps[1:]) / steps[:2], np.sqrt(ratio), rtol=1e-12)
