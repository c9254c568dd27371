"""All assemblies against closed forms; degenerate ones, and the coordinates that they concern; values by joint and pattern."""
from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from command_line import run as command
from command_line import said
from dynamics.test_assembly import apart, at, four_bar, freudenstein, link, revolute
from liedyn.dynamics.constraints.branch_search import BranchSearch
from liedyn.dynamics.constraints.mobility import survey_mobility
from liedyn.errors import NameLookupError, UsageError
from liedyn.model.description import Coupling, Joint, Loop, Robot
from liedyn.report.mobility_report import survey_lines

# scissor -----------------------------------------------------------------------------------------------------------------

X = ((1.0, 0.0, 0.0),)
Z = ((0.0, 0.0, 1.0),)


def scissor(names=("left", "right", "slider", "hinge", "top"), unit=1.0, rotation=(0.0, 0.0, 0.0)) -> Robot:
    """Two arms of length 1 with a common pin in the middle, on the ground and under a platform: one degree of freedom.

    The left arm turns about the origin, the right one stands on a slider. The platform hangs on a hinge at the top of the right
    arm; its slider `top` is on the left arm. If both arms coincide, the platform turns about the hinge in addition.
    """
    left, right, slider, hinge, top = names
    arm = unit / 2
    links = tuple(link(name) for name in ("a", "s", "b", "p", "t"))
    base = ld.Pose.from_xyz_rpy((0, 0, 0), rotation)
    joints = (replace(revolute(left, "world", "a"), origin=base), Joint(slider, "prismatic", "world", "s", base, X),
              revolute(right, "s", "b"), revolute(hinge, "b", "p", 2 * arm), Joint(top, "prismatic", "p", "t", at(0, 0, 0), X))
    loops = (Loop("pin", "revolute", "a", "b", at(arm, 0, 0), at(arm, 0, 0)),
             Loop("roller", "revolute", "a", "t", at(2 * arm, 0, 0)))
    return Robot("scissor", links, joints, loops=loops)


def slider_crank(crank=0.15, rod=0.3) -> Robot:
    joints = (revolute("crank", "world", "a"), revolute("pin", "a", "b", crank),
              Joint("slider", "prismatic", "world", "c", at(0, 0, 0), X))
    return Robot("slider_crank", tuple(map(link, "abc")), joints, loops=(Loop("end", "revolute", "b", "c", at(rod, 0, 0)),))


COINCIDENT = [0.7, 0.0, 0.7, 0.4, 0.0]


def test_coincident_arms_are_a_degenerate_assembly():
    """Everywhere near them the mechanism has two degrees of freedom, so that no neighbour shows it: other assemblies do."""
    model = ld.build(scissor())
    assert ld.mobility(model, COINCIDENT).degrees == 2 and not ld.mobility(model, COINCIDENT).singular
    results = ld.assemblies(model, {"left": 0.7, "right": 0.7}, fixed=["left"])
    usual = [each for each in results if not each.degenerate]
    assert {each.mobility.degrees for each in usual} == {1}
    lifted = usual[0].q                                      # x = cos(left), the right arm is the mirror image
    assert abs(abs(lifted[1]) - 2 * 0.5 * math.cos(0.7)) < 1e-12 and apart(lifted[2], math.pi - 0.7) < 1e-12
    flat = [each for each in results if each.degenerate]
    assert flat and all(each.mobility.degrees == 2 and abs(each.q[1]) < 1e-9 for each in flat)
    assert all({"left", "right", "hinge"} <= {*each.degenerate} for each in flat)


@pytest.mark.parametrize("change", [{"names": ("slider", "top", "left", "hinge", "right")}, {"unit": 1e-3}, {"unit": 1e3},
                                    {"rotation": (0.3, 1.2, -0.4)}])
def test_degenerate_assemblies_do_not_depend_on_names_units_and_the_world(change):
    """The same coordinates are concerned, by their places in the tree."""
    def kinds(robot):
        model = ld.build(robot)
        survey = survey_mobility(model)
        return (survey.mobility.degrees, len(survey.mobility.redundant), survey.degenerate[0][0],
                [model.v_names.index(name) for name in survey.degenerate[0][1]])
    assert kinds(scissor(**change)) == kinds(scissor())
    assert kinds(scissor())[0] == 1 and kinds(scissor())[2] == 2


def test_check_info_and_assemble_report_degenerate_assemblies(tmp_path):
    path = str(tmp_path / "scissor.yaml")
    ld.save(scissor(), path)
    expected = "degenerate assemblies have 2 degrees of freedom; coordinates that move in more ways: left, "
    checked, shown = command("check", path), command("info", path)
    assert expected in checked.stdout
    assert "mobility: 1 degree of freedom: 5 coordinates, 10 equations, 6 of them redundant" in checked.stdout
    assert expected in " ".join(shown.stdout.split())
    mobility = json.loads(command("info", path, "--json").stdout)["mobility"]
    assert mobility["degenerate"][0]["degrees_of_freedom"] == 2 and "hinge" in mobility["degenerate"][0]["coordinates"]
    assert json.loads(command("check", path, "--json").stdout)[0]["mobility"] == mobility
    folded = command("assemble", path, "--q", "[lr]*=0.7", "--keep", "left", "--keep", "right", "-o", str(tmp_path / "q.yaml"))
    assert "warning: degenerate: this assembly has 2 degrees of freedom, more than others; coordinates" in folded.stderr
    lifted = command("assemble", path, "--q", "left=0.7", "--q", "right=2.4", "--keep", "left", "-o", str(tmp_path / "r.yaml"))
    assert lifted.exit_code == 0 and "degenerate" not in lifted.stderr


# singular configurations -----------------------------------------------------------------------------------------------

def test_a_flat_parallelogram_names_what_branches():
    """Another four-bar on the same robot is not concerned."""
    flat, other = four_bar(2.0, 1.0, 2.0, 1.0), four_bar()
    rename = {"crank": "other crank", "knee": "other knee", "rocker": "other rocker", "a": "d", "b": "e", "c": "f"}
    joints = tuple(replace(j, name=rename[j.name], parent=rename.get(j.parent, j.parent), child=rename[j.child])
                   for j in other.joints)
    robot = Robot("both", (*flat.links, link("d"), link("e"), link("f")), (*flat.joints, *joints),
                  loops=(*flat.loops, replace(other.loops[0], name="other pin", a="e", b="f")))
    model = ld.build(robot)
    psi = freudenstein(0.7)[0]
    end = complex(1 + 0.8 * math.cos(psi), 0.8 * math.sin(psi)) - 0.4 * complex(math.cos(0.7), math.sin(0.7))
    found = ld.mobility(model, [0.0, 0.0, 0.0, 0.7, math.atan2(end.imag, end.real) - 0.7, psi])
    assert found.degrees == 3 and found.generic_rank == found.rank + 1
    assert found.singular_coordinates == ("crank", "knee", "rocker")
    assert len(found.singular_equations) == 1 and found.singular_equations[0].startswith("pin.v")


def test_immobile_coordinates_are_named():
    """A bar between three parallel ones holds nothing else; a spare coordinate with a coupling to zero does not move."""
    robot = four_bar()
    robot = replace(robot, links=(*robot.links, link("d")), joints=(*robot.joints, revolute("spare", "a", "d")),
                    couplings=(Coupling("hold", (("spare", "", 1.0),), 0.2),))
    assert ld.mobility(ld.build(robot), ld.assemble(ld.build(robot), {"crank": 0.7, "rocker": 1.0}).q).immobile == ("spare",)
    assert "the constraints hold spare" in survey_lines(ld.build(robot), survey_mobility(ld.build(robot)))


def test_a_loop_that_no_assembly_closes_is_a_warning_of_check(tmp_path):
    path = str(tmp_path / "open.yaml")
    ld.save(four_bar(ground=9.0), path)
    result = command("check", path)
    assert result.exit_code == 4 and "no assembly of the robot is found: revolute loop \"pin\" cannot be closed" in result.stdout


def test_mobility_of_driven_loops_is_not_that_of_the_robot(tmp_path):
    robot = four_bar()
    ld.save(replace(robot, loops=(replace(robot.loops[0], type="weld", axes=(), driven=True),)), tmp_path / "driven.yaml")
    result = command("check", str(tmp_path / "driven.yaml"))
    assert "mobility: not computed, since it depends on the motion of driven loops" in result.stdout


# all assemblies ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("angle", [0.7, 2.5, -1.1])
def test_all_assemblies_of_a_four_bar_are_those_of_freudenstein(angle):
    results = ld.assemblies(ld.build(four_bar()), {"crank": angle}, fixed=["crank"], searches=12)
    assert [each.q[0] for each in results] == [angle, angle]
    found, expected = (sorted(psi % (2 * math.pi) for psi in values) for values in
                       ([each.q[2] for each in results], freudenstein(angle)))
    assert max(map(apart, found, expected)) < 1e-9
    assert results[0].moved <= results[1].moved


def test_whole_turns_make_no_other_assembly():
    """Distances between assemblies leave out turns of joints that turn, and nothing else."""
    search, q = BranchSearch(ld.build(slider_crank())), np.array([3.1, -3.0, 0.4])
    assert search.turned_distance(q, np.add(q, [2 * math.pi, -4 * math.pi, 0.0])) < 1e-12
    assert search.turned_distance(q, np.add(q, [0.0, 0.0, 2 * math.pi])) > 1.0
    assert abs(search.turned_distance(q, [-3.1, -3.0, 0.4]) - (2 * math.pi - 6.2)) < 1e-12


def test_half_turns_of_legs_make_no_other_assembly():
    """Legs between universal and ball joints turn about their lines: 12 searches gave 12 assemblies with equal poses."""
    robot = ld.load_description("robots/stewart.yaml")
    joints = [replace(joint, coordinates=tuple(replace(x, lower=-math.inf, upper=math.inf) for x in joint.coordinates))
              if joint.type == "universal" else joint for joint in robot.joints]
    model = ld.build(replace(robot, joints=tuple(joints)))
    guess = ld.assemble(model, model.neutral()).q
    results = ld.assemblies(model, guess, fixed=["leg_*"], searches=12)
    poses = np.array([ld.link_pose(model, each.q, "platform") for each in results])
    apart = np.abs(poses[:, None] - poses).max(axis=(2, 3)) + np.eye(len(poses))
    assert len(poses) > 3 and apart.min() > 0.1
    assert [each.moved for each in results] == sorted(each.moved for each in results)


def test_assemblies_stay_within_joint_limits():
    low, high = sorted(apart(psi, 0.0) * np.sign(math.sin(psi)) for psi in freudenstein(0.7))
    results = ld.assemblies(ld.build(four_bar(limits=(0.0, 3.0))), {"crank": 0.7}, fixed=["crank"], searches=12)
    assert [round(each.q[2], 9) for each in results] == [round(high, 9)] and low < 0


def test_assemblies_turn_with_the_world_and_scale_with_the_robot():
    """Angles are the same, in the same order."""
    def angles(robot):
        return [each.q for each in ld.assemblies(ld.build(robot), {"crank": 0.7}, fixed=["crank"], searches=12)]

    turn = ld.Pose.from_xyz_rpy((3.0, -1.0, 2.0), (0.4, -0.3, 2.0))
    R, p = np.array(turn.rotation).reshape(3, 3), np.array(turn.translation)
    robot = four_bar()
    moved = replace(robot, joints=tuple(
        replace(j, origin=ld.Pose.from_xyz_rpy(tuple(R @ j.origin.translation + p), (0.4, -0.3, 2.0)))
        if j.parent == "world" else j for j in robot.joints))
    for other in (moved, four_bar(100.0, 40.0, 110.0, 80.0)):
        np.testing.assert_allclose(angles(other), angles(robot), atol=1e-8)


def test_all_assemblies_of_the_command(tmp_path):
    ld.save(four_bar(), tmp_path / "bars.yaml")
    arguments = ("assemble", str(tmp_path / "bars.yaml"), "--q", "cr*=0.7", "--keep", "crank", "--all", "--searches", "12")
    result = command(*arguments)
    assert said(result)[0] == "four_bar: 2 different assemblies, the nearest first"
    listed = [[float(line.split(": ")[1]) for line in part.splitlines() if line.startswith("    rocker")]
              for part in result.stdout.split("- q:")[1:]]
    assert [apart(each[0], psi) < 1e-9 for each, psi in zip(listed, sorted(freudenstein(0.7), key=abs), strict=True)]
    plain = json.loads(command(*arguments, "--json").stdout)["assemblies"]
    assert [each["q"]["rocker"] for each in plain] == [each[0] for each in listed]
    command(*arguments, "-o", str(tmp_path / "all.csv"))
    assert (tmp_path / "all.csv").read_text().splitlines()[-1].startswith("1.0,0.7,")
    failed = command("assemble", str(tmp_path / "bars.yaml"), "--searches", "3")
    assert failed.exit_code == 2 and "--searches requires --all (see" in failed.stderr


def test_no_assembly_at_all_is_an_error_that_names_the_loop():
    with pytest.raises(ld.ComputationError, match=r'loop "pin" cannot be closed: its smallest residual in 3 starts is'):
        ld.assemblies(ld.build(four_bar(ground=9.0)), searches=3)
    with pytest.raises(UsageError, match="searches: expected a number >= 1, got 0"):
        ld.assemblies(ld.build(four_bar()), searches=0)


# values by joint -----------------------------------------------------------------------------------------------------------

def test_a_guess_may_be_a_dict_by_joint_or_pattern():
    model, guess = ld.build(four_bar()), [0.7, 0.5, 0.9]
    expected = ld.assemble(model, guess, fixed=["crank"])
    assert ld.assemble(model, {"crank": 0.7, "knee": 0.5, "rocker": 0.9}, fixed=["crank"]) == expected
    assert ld.assemble(model, {"*": 0.5, "*r*": 0.9, "crank": 0.7}, fixed=["cr*"]) == expected


@pytest.mark.parametrize("guess, error, message", [
    ({"leg*": 0.5}, NameLookupError, r"no moving joint 'leg\*'; the model has crank, knee, rocker"),
    ({"cra*": 0.5, "*ank": 0.1}, UsageError, "crank matches two patterns of the same length, 'cra\\*' and '\\*ank'"),
    ({"crank": [0.5, 1.0]}, ld.ShapeError, r"position of 'crank' has the wrong shape: expected \(1,\), got \(2,\)")])
def test_wrong_values_by_joint(guess, error, message):
    with pytest.raises(error, match=message):
        ld.assemble(ld.build(four_bar()), guess)


def test_the_command_takes_patterns(tmp_path):
    ld.save(four_bar(), tmp_path / "bars.yaml")
    path = str(tmp_path / "bars.yaml")
    by_name = command("assemble", path, "--q", "crank=0.7", "--q", "rocker=0.7", "--keep", "crank")
    assert command("assemble", path, "--q", "*r*=0.7", "--keep", "cr*").stdout == by_name.stdout
    failed = command("assemble", path, "--q", "leg*=0.1")
    assert failed.exit_code == 2 and "--q leg*=0.1: no moving joint 'leg*'; the robot has crank, knee, rocker" in failed.stderr

