"""Sweeps of a driver against closed forms: positions, dead centres, limits, mechanical advantage and transmission angle."""
from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import run as command
from command_line import said
from dynamics.test_assembly import apart, four_bar, freudenstein, link, revolute
from dynamics.test_assembly_branches import COINCIDENT, scissor, slider_crank
from liedyn.errors import UsageError
from liedyn.io.trajectory_csv import read_trajectory

ROBOTS = Path(__file__).parents[2] / "robots"
PI = math.pi
GROUND, CRANK, COUPLER, ROCKER = 1.0, 0.4, 1.1, 0.8


def specials(sweep, kind="dead centre"):
    return [(each.coordinate, each.position) for each in sweep.special_positions if each.kind == kind]


def triangle(a, b, c):
    """The angle between the sides a and b, across c."""
    return math.acos((a * a + b * b - c * c) / (2 * a * b))


# four-bar ------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("branch", [0, 1])
def test_a_turn_of_a_four_bar_is_that_of_freudenstein(branch, worst):
    angles = np.linspace(0.1, 0.1 + 2 * PI, 25)
    start = freudenstein(angles[0])[branch]
    sweep = ld.kinematic_sweep(ld.build(four_bar()), "crank", angles, {"crank": 0.1, "rocker": start}, driven=["rocker"])
    expected = np.array([freudenstein(angle)[branch] for angle in angles])
    assert worst("rocker of a sweep", float(apart_all(sweep.position("rocker"), expected).max()), f"branch {branch}") < 1e-12
    assert (np.abs(np.diff(sweep.position("rocker"))) < 1.0).all()                     # no jumps by turns
    assert not sweep.stop and sweep.idle == () and np.abs(sweep.positions - angles).max() == 0.0
    # crank and coupler in line, once stretched and once folded
    inner, outer = COUPLER - CRANK, COUPLER + CRANK
    side = 1 if math.sin(start) > 0 else -1
    expected = [(side * triangle(outer, GROUND, ROCKER)) % (2 * PI), (PI + side * triangle(inner, GROUND, ROCKER)) % (2 * PI)]
    found = [position for name, position in specials(sweep) if name == "rocker"]
    assert len(found) == 2 and np.abs(np.sort(np.mod(found, 2 * PI)) - np.sort(expected)).max() < 1e-11
    # transmission angle by the diagonal of the quadrangle
    diagonal = GROUND**2 + CRANK**2 - 2 * GROUND * CRANK * np.cos(angles)
    mu = np.arccos((COUPLER**2 + ROCKER**2 - diagonal) / (2 * COUPLER * ROCKER))
    assert np.abs(sweep.transmission_angle("rocker") - mu).max() < 1e-12


def apart_all(x, y):
    return np.abs((x - y + PI) % (2 * PI) - PI)


def test_mechanical_advantage_is_that_of_virtual_power_and_statics():
    """Rates against differences; and a torque on the rocker is balanced by the torque on the crank that the advantage gives."""
    model = ld.build(replace(four_bar(), gravity=(0.0, 0.0, 0.0)))
    h = 1e-5
    sweep = ld.kinematic_sweep(model, "crank", 0.7 + h * np.arange(-1, 2), {"crank": 0.7, "rocker": 1.2}, driven=["rocker"])
    slope = (sweep.q[2] - sweep.q[0]) / (2 * h)
    assert np.abs(sweep.rates[1] - slope).max() < 1e-9 and sweep.velocity_ratio("crank")[1] == 1.0
    # a torque of 1 N m on the rocker: the crank balances it
    motion = ld.constrained_hybrid_dynamics(model, sweep.q[1], np.zeros(3), np.zeros(3), [0.0, 0.0, 1.0], [True, False, False])
    assert abs(motion.tau[0] + 1.0 / sweep.mechanical_advantage("rocker")[1]) < 1e-12
    assert sweep.advantage_unit("rocker") == ""


@pytest.mark.parametrize("target, length", [(3.0, 1.0 + 1.2), (-3.0, 1.2 - 1.0)])
def test_a_crank_that_cannot_turn_round_stops_at_its_dead_centre(target, length):
    """Coupler and rocker are in line where the crank stops, stretched or folded."""
    model = ld.build(four_bar(2.0, 1.9, 1.0, 1.2))
    with pytest.warns(ld.LiedynWarning, match=r"cannot move from crank = .* on to .*3 rad: crank is at a dead centre"):
        sweep = ld.kinematic_sweep(model, "crank", np.linspace(0.6, target, 30), {"crank": 0.6, "rocker": 1.5})
    name, position = specials(sweep)[-1]
    assert name == "crank" and abs(position - triangle(2.0, 1.9, length)) < 1e-12
    assert len(sweep.positions) == len(sweep.q) < 30 and (position - sweep.positions[-1]) * target > 0
    assert np.abs(ld.constraint_residual(model, sweep.q)).max() < 1e-12
    end = sweep.special_positions[-1].q
    assert apart(end[1] + end[0] - end[2], 0.0) < 1e-6 or apart(end[1] + end[0] - end[2], PI) < 1e-6     # in line


@pytest.mark.parametrize("change", ["rotated", "scaled", "renamed", "reversed"])
def test_dead_centres_do_not_depend_on_the_world_units_and_names(change):
    def result(robot, names=("crank", "rocker"), angles=(0.1, 6.3)):
        sweep = ld.kinematic_sweep(ld.build(robot), names[0], np.linspace(*angles, 9), {names[0]: angles[0], names[1]: 1.2},
                                   driven=names[1:])
        order = slice(None, None, -1 if angles[1] < angles[0] else 1)
        return np.array([x.position for x in sweep.special_positions][order]), sweep.transmission_angle(names[1])[order]

    expected, robot = result(four_bar()), four_bar()
    if change == "rotated":
        turn = ld.Pose.from_xyz_rpy((3.0, -1.0, 2.0), (0.4, -0.3, 2.0))
        R = np.array(turn.rotation).reshape(3, 3)
        joints = tuple(replace(j, origin=ld.Pose.from_xyz_rpy(tuple(R @ j.origin.translation), (0.4, -0.3, 2.0)))
                       if j.parent == "world" else j for j in robot.joints)
        other = result(replace(robot, joints=joints))
    elif change == "scaled":
        other = result(four_bar(*(1e3 * x for x in (GROUND, CRANK, COUPLER, ROCKER))))
    elif change == "renamed":
        names = dict(zip(("crank", "knee", "rocker"), ("z *", "a", "b"), strict=True))
        other = result(replace(robot, joints=tuple(replace(j, name=names[j.name]) for j in robot.joints)), ("z *", "b"))
    else:
        end = ld.kinematic_sweep(ld.build(robot), "crank", [0.1, 6.3], {"crank": 0.1, "rocker": 1.2}).q[-1]
        assert apart(end[2], freudenstein(6.3)[0]) < 1e-9 or apart(end[2], freudenstein(6.3)[1]) < 1e-9
        other = result(robot, angles=(6.3, 0.1))
    for x, y in zip(other, expected, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-9)


def test_a_parallelogram_stays_one_through_its_change_points():
    model = ld.build(four_bar(2.0, 1.0, 2.0, 1.0))
    sweep = ld.kinematic_sweep(model, "crank", np.linspace(0.4, 6.8, 17), {"crank": 0.4, "knee": -0.4, "rocker": 0.4})
    assert np.abs(sweep.q - np.outer(sweep.positions, [1, -1, 1])).max() < 1e-9
    found = [position for _, position in specials(sweep, "change point")]
    assert np.abs(np.array(found) - [PI, 2 * PI]).max() < 1e-6 and not specials(sweep) and not sweep.stop
    with pytest.raises(ld.ComputationError, match="starts at a singular configuration, where crank does not determine"):
        ld.kinematic_sweep(model, "crank", [0.0, 1.0], {"crank": 0.0})


# other mechanisms --------------------------------------------------------------------------------------------------------------

def test_a_slider_crank_against_its_closed_form():
    model, angles = ld.build(slider_crank()), np.linspace(0.0, 2 * PI, 13)
    sweep = ld.kinematic_sweep(model, "crank", angles, {"slider": 0.45}, driven=["slider"])
    across = np.sqrt(0.3**2 - (0.15 * np.sin(angles))**2)
    assert np.abs(sweep.position("slider") - 0.15 * np.cos(angles) - across).max() < 1e-12
    slope = -0.15 * np.sin(angles) * (1.0 + 0.15 * np.cos(angles) / across)
    assert np.abs(sweep.velocity_ratio("slider") - slope).max() < 1e-12
    assert np.abs([position for _, position in specials(sweep)] - np.array([0.0, PI, 2 * PI])).max() < 1e-12
    assert np.abs(np.cos(sweep.transmission_angle("slider")) - np.abs(0.5 * np.sin(angles))).max() < 1e-12
    assert sweep.advantage_unit("slider") == "rad/m" and np.abs(sweep.mechanical_advantage("slider")[[0, 6]]).min() > 1e12
    with pytest.warns(ld.LiedynWarning, match="slider is at a dead centre, where it cannot drive the other coordinates"):
        back = ld.kinematic_sweep(model, "slider", np.linspace(0.4, 0.1, 7), {"crank": 1.0, "pin": -2.0})
    assert specials(back)[-1][0] == "slider" and abs(specials(back)[-1][1] - 0.15) < 1e-12


def test_the_toggle_clamp_passes_its_dead_centre_and_stops_at_a_limit():
    model, guess = ld.load(ROBOTS / "toggle_clamp.yaml"), {"crank": 1.0, "knee": -2.0, "ram": 0.09}
    with pytest.warns(ld.LiedynWarning, match=r"cannot move from crank = -0\.06 rad on to -0\.2 rad: crank is at its limit"):
        sweep = ld.kinematic_sweep(model, "crank", np.linspace(1.0, -0.2, 13), guess, driven=["ram"])
    assert np.abs(sweep.position("ram") - 0.2 * (1 - np.cos(sweep.positions))).max() < 1e-12
    assert [name for name, _ in specials(sweep)] == ["ram"] and abs(specials(sweep)[0][1]) < 1e-12
    (name, position), = specials(sweep, "joint limit")
    assert name == "crank" and abs(position + 0.06) < 1e-12 and abs(sweep.positions[-1]) < 1e-12
    free = ld.kinematic_sweep(model, "crank", np.linspace(1.0, -0.2, 13), guess, limits=False)
    assert len(free.positions) == 13 and not free.stop


def test_bennetts_linkage_keeps_its_ratio_of_half_tangents():
    """tan(q1/2) tan(q2/2) is constant (G. T. Bennett, 1903)."""
    model = ld.load(ROBOTS / "bennett.yaml")
    first, second = model.joint_names[:2]
    sweep = ld.kinematic_sweep(model, first, np.linspace(0.3, 2.8, 9))
    x, y = (np.tan(sweep.position(name) / 2) for name in (first, second))
    ratio = min((x * y, x / y), key=lambda r: np.ptp(r) / np.abs(r).max())
    assert np.ptp(ratio) < 1e-9 * np.abs(ratio).max() and not sweep.stop


def test_a_second_driver_is_named_and_may_be_fixed():
    model = ld.load(ROBOTS / "five_bar.yaml")
    with pytest.raises(ld.ComputationError, match="left does not determine the motion: there are 2 degrees of freedom; fix one "
                                                  "more of left_elbow, right, right_elbow"):
        ld.kinematic_sweep(model, "left", [2.2, 1.8])
    start = ld.assemble(model, {"left": 2.2, "right": 0.9}, fixed=["left", "right"]).q
    sweep = ld.kinematic_sweep(model, "left", np.linspace(2.2, 1.8, 5), start, fixed=["right"])
    assert (sweep.position("right") == 0.9).all() and np.abs(ld.constraint_residual(model, sweep.q)).max() < 1e-12


def test_a_scissor_lifts_and_its_coincident_arms_turn_together():
    """The platform is free then, and not moved."""
    model = ld.build(scissor())
    sweep = ld.kinematic_sweep(model, "left", np.linspace(0.5, 1.2, 5), {"left": 0.5, "right": PI - 0.5, "slider": 0.9})
    assert np.abs(np.abs(sweep.position("slider")) - np.cos(sweep.positions)).max() < 1e-12
    folded = ld.kinematic_sweep(model, "left", [0.7, 0.9], COINCIDENT)
    assert "hinge" in folded.idle and np.abs(folded.q[1] - [0.9, 0.0, 0.9, 0.4, 0.0]).max() < 1e-12


def test_other_parts_of_the_robot_stay_and_are_named():
    robot = four_bar()
    model = ld.build(replace(robot, links=(*robot.links, link("d")), joints=(*robot.joints, revolute("spare", "world", "d"))))
    sweep = ld.kinematic_sweep(model, "crank", [0.5, 1.0], {"crank": 0.5, "rocker": 1.2, "spare": 0.3})
    assert sweep.idle == ("spare",) and (sweep.position("spare") == 0.3).all()


# wrong arguments and missing angles ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("driver, positions, error, message", [
    ("crank", [1.0], UsageError, "positions: expected at least two finite numbers that increase or decrease"),
    ("crank", [0.0, 1.0, 0.5], UsageError, "positions: expected at least two"),
    ("crank", [0.0, math.nan], UsageError, "positions: expected at least two"),
    ("elbow", [0.0, 1.0], ld.errors.NameLookupError, "no moving joint 'elbow'"),
    ("rocker", [0.1, 0.5], ld.ComputationError, r"no assembly with rocker = 0\.1 rad, where the sweep starts: revolute loop")])
def test_wrong_arguments(driver, positions, error, message):
    with pytest.raises(error, match=message):
        ld.kinematic_sweep(ld.build(four_bar()), driver, positions)


def test_limits_of_the_driver_and_robots_without_a_curve():
    limited = ld.build(four_bar(limits=(1.0, 2.0)))
    with pytest.raises(UsageError, match=r"starts at rocker = 0\.5 rad, which is beyond its limits: expected 1 to 2"):
        ld.kinematic_sweep(limited, "rocker", [0.5, 1.0])
    with pytest.raises(ld.ModelError, match="has no constraints"):
        ld.kinematic_sweep(ld.load(ROBOTS / "double_pendulum.yaml"), "shoulder", [0.0, 1.0])
    rolling = ld.load(ROBOTS / "rolling_disc.yaml")
    with pytest.raises(UsageError, match=r"joint disc has 6 coordinates: expected one of disc\.wx"):
        ld.kinematic_sweep(rolling, "disc", [0.0, 1.0])


def test_a_link_without_one_coupler_has_no_transmission_angle():
    model = ld.load(ROBOTS / "bennett.yaml")
    sweep = ld.kinematic_sweep(model, model.joint_names[0], [0.5, 0.6], driven=model.joint_names[1:])
    for name in sweep.driven:
        with pytest.raises(ld.ModelError, match=f"{name} has no transmission angle: .* expected a link on a revolute"):
            sweep.transmission_angle(name)


def test_a_figure_has_a_panel_for_each_quantity():
    sweep = ld.kinematic_sweep(ld.build(slider_crank()), "crank", np.linspace(0.5, 2.0, 5), {"slider": 0.4}, driven=["slider"])
    screen, paper = ld.figure_of(sweep), ld.figure_of(sweep, width=3.5, style="paper")
    assert len(screen.axes) == len(paper.axes) == 4                       # angles, positions, advantage, transmission angle
    line = screen.axes[1].lines[0]
    assert np.abs(line.get_ydata() - sweep.position("slider")).max() == 0.0
    assert np.abs(line.get_xdata() - np.degrees(sweep.positions)).max() < 1e-12
    with pytest.raises(ld.NameLookupError, match="unknown plot 'torques' of this motion: expected one of positions"):
        ld.figure_of(sweep, "torques")
    with pytest.raises(UsageError, match="joints, t and against are for the plot of one run, not of a sweep"):
        ld.figure_of(sweep, joints=["crank"])


# command -------------------------------------------------------------------------------------------------------------------

@pytest.fixture
def bars(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ld.save(four_bar(), "bars.yaml")
    return "bars.yaml"


SWEEP = ("--q", "crank=0.5", "--q", "rocker=1.2")


def test_the_command_writes_a_trajectory_and_a_plot(bars):
    result = command("assemble", bars, *SWEEP, "--sweep", "crank=30:390deg:12", "--driven", "ro*", "-o", "sweep.csv")
    assert result.exit_code == 0, result.stderr
    lines = said(result)
    assert lines[0] == "four_bar: crank from 0.523599 to 6.80678 rad, 13 rows"
    assert [line.split(" at ")[0] for line in lines[1:3]] == ["dead centre of rocker"] * 2
    assert any(line.startswith("transmission angle of rocker: ") for line in lines)
    motion = read_trajectory("sweep.csv")
    assert motion.header["sweep"] == "crank moves at 1 rad/s" and "dead centre of rocker" in motion.header["special_positions"]
    assert abs(motion.columns["q.crank"][0] - math.radians(30)) < 1e-15 and (motion.columns["v.crank"] == 1.0).all()
    advantage = 1.0 / motion.columns["v.rocker"]
    assert np.abs(motion.columns["mechanical_advantage.rocker"] / advantage - 1.0).max() < 1e-12
    assert all(Path(name).stat().st_size > 1000 for name in ("sweep.png", "sweep.svg"))
    text = Path("sweep.svg").read_text()
    assert "mechanical advantage" in text and "transmission angle" in text
    moved = command("kinematics", "sweep.csv", "--link", "b", "-o", "b.csv")
    assert moved.exit_code == 0 and "unknown columns" not in moved.stderr


def test_an_infinite_advantage_is_an_empty_cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ld.save(slider_crank(), "slider.yaml")
    result = command("assemble", "slider.yaml", "--q", "slider=0.45", "--sweep", "crank=0:1:2", "--driven", "slider",
                     "-o", "s.csv")
    assert result.exit_code == 0, result.stderr
    values = read_trajectory("s.csv").columns["mechanical_advantage.slider"]
    assert not np.isinf(values).any() and np.isfinite(values[1:]).all()


def test_the_command_says_where_the_mechanism_stops(bars):
    plain = command("assemble", bars, "--q", "rocker=1.5", "--sweep", "rocker=1.5:3:8", "--json")
    report = json.loads(plain.stdout)
    assert report["stop"].startswith("the mechanism cannot move from rocker = ") and report["rows"] < 9
    assert report["special_positions"][-1]["kind"] == "dead centre" and "[sweep-stopped]" in plain.stderr


@pytest.mark.parametrize("arguments, message", [
    (["--sweep", "crank"], "--sweep crank: expected JOINT=FROM:TO[:STEPS], such as crank=0:360deg"),
    (["--sweep", "crank=0:1:0"], "with 1 to 100000 steps"),
    (["--sweep", "crank=0:x"], "--sweep crank=0:x: expected JOINT=FROM:TO[:STEPS]"),
    (["--sweep", "crank=0:1mm"], "--sweep crank=0:1mm: crank is in rad: expected a unit such as deg, got 'mm'"),
    (["--sweep", "crank=1:1"], "--sweep crank=1:1: expected two different positions"),
    (["--sweep", "elbow=0:1"], "--sweep elbow=0:1: no coordinate 'elbow'; the robot has crank, knee, rocker"),
    (["--sweep", "crank=0:1", "--driven", "x*"], "no coordinate matches 'x*'"),
    (["--sweep", "crank=0:1", "--all"], "--sweep cannot be combined with --all"),
    (["--sweep", "crank=0:1", "--v", "crank=1"], "--sweep cannot be combined with --v"),
    (["--driven", "rocker"], "--driven requires --sweep"),
    (["--no-limits"], "--no-limits requires --sweep"),
    (["--sweep", "crank=0.5:1:2", *SWEEP, "-o", "sweep.yaml"], "-o sweep.yaml: a sweep is written as CSV")])
def test_wrong_options_of_the_command(bars, arguments, message):
    result = command("assemble", bars, *arguments)
    assert result.exit_code == 2 and message in result.stderr and not Path("sweep.yaml").exists()
