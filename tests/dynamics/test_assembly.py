"""Assembly against closed forms and a general optimizer; mobility of linkages whose answer is known; errors."""
from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.constraints.rank import coordinate_scales
from liedyn.model.description import Coordinate, Coupling, Joint, Loop, Mimic, Robot
from liedyn.model.links import Link, Pose

ROBOTS = Path(__file__).parents[2] / "robots"
CLOSED = 1e-12                       # what `assemble` promises; it continues to rounding
Z = ((0.0, 0.0, 1.0),)


def link(name):
    return Link(name, 1.0, (0.1, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))


def at(*xyz):
    return Pose(translation=xyz)


def revolute(name, parent, child, x=0.0, *limits, **given):
    """Return a joint about z, at x on the parent."""
    return Joint(name, "revolute" if limits else "continuous", parent, child, at(x, 0, 0), Z,
                 coordinates=(Coordinate(*limits),) if limits else (), **given)


def four_bar(ground=1.0, crank=0.4, coupler=1.1, rocker=0.8, limits=()) -> Robot:
    """In the plane x-y: crank about the origin, rocker about (ground, 0); the loop is cut where coupler and rocker meet.
    limits: of the rocker."""
    joints = (revolute("crank", "world", "a"), revolute("knee", "a", "b", crank),
              revolute("rocker", "world", "c", ground, *limits))
    return Robot("four_bar", (link("a"), link("b"), link("c")), joints,
                 loops=(Loop("pin", "revolute", "b", "c", at(coupler, 0, 0), at(rocker, 0, 0)),))


def freudenstein(angle, ground=1.0, crank=0.4, coupler=1.1, rocker=0.8) -> list[float]:
    """Return both angles of the rocker: K1 cos psi - K2 cos phi + K3 = cos(phi - psi) (F. Freudenstein, 1955)."""
    K1, K2 = ground / crank, ground / rocker
    K3 = (ground**2 + crank**2 - coupler**2 + rocker**2) / (2 * crank * rocker)
    c, s = math.cos(angle), math.sin(angle)
    A, B, C = c - K1 - K2 * c + K3, -2 * s, K1 - (K2 + 1) * c + K3
    root = math.sqrt(B * B - 4 * A * C)
    return [2 * math.atan2(-B + sign * root, 2 * A) for sign in (1, -1)]


def wrapped(x):
    return (x + math.pi) % (2 * math.pi) - math.pi


def apart(x, y):
    return abs(wrapped(x - y))


@pytest.mark.parametrize("angle", [0.0, 0.7, 2.0, 3.0, -1.2])
@pytest.mark.parametrize("branch", [1.0, -1.0])
def test_four_bar_against_freudenstein(angle, branch, worst):
    """Both branches, by the guess of the rocker."""
    model = ld.build(four_bar())
    found = ld.assemble(model, [angle, -angle, 1.5 * branch], fixed=["crank"])
    assert found.q[0] == angle and found.residual <= CLOSED and found.restarts == 0
    off = [apart(found.q[2], psi) for psi in freudenstein(angle)]
    assert worst("four-bar: rocker against Freudenstein [rad]", min(off)) < 1e-12
    assert np.sign(math.sin(found.q[2])) == branch or angle in (0.0, 3.0)
    assert (found.mobility.degrees, found.redundant, found.singular) == (1, ("pin.wx", "pin.wy", "pin.vz"), False)


def test_both_branches_of_freudenstein_are_reached():
    model = ld.build(four_bar())
    psi = [ld.assemble(model, [0.7, -0.7, guess], fixed="crank").q[2] for guess in (1.5, -1.5)]
    assert sorted(round(x, 9) for x in psi) == sorted(round(wrapped(x), 9) for x in freudenstein(0.7))


@pytest.mark.parametrize("angle", [0.3, 1.0, 2.5, -2.0])
def test_slider_crank_against_its_closed_form(angle, worst):
    """x = r cos a + sqrt(l^2 - r^2 sin^2 a)."""
    r, l = 0.2, 0.7
    joints = (revolute("crank", "world", "a"), revolute("pin", "a", "b", r),
              Joint("slide", "prismatic", "world", "c", axes=((1.0, 0.0, 0.0),), coordinates=(Coordinate(0.0, 2.0),)))
    model = ld.build(Robot("r", (link("a"), link("b"), link("c")), joints,
                           loops=(Loop("wrist", "revolute", "b", "c", at(l, 0, 0)),)))
    found = ld.assemble(model, [angle, -angle, 0.8], fixed=["crank"])
    expected = r * math.cos(angle) + math.sqrt(l**2 - (r * math.sin(angle))**2)
    assert worst("slider-crank: stroke [m]", abs(found.q[2] - expected)) < 1e-12 and found.mobility.degrees == 1


@pytest.mark.parametrize("name", ["delta", "stewart"])
def test_the_nearest_configuration_to_the_guess(name, worst):
    """The movement is minimal within the limits, as by SciPy's SLSQP. One leg of the platform is at its limit."""
    from scipy import optimize
    model = ld.load(ROBOTS / f"{name}.yaml")
    rng, unit = np.random.default_rng(2), coordinate_scales(model)
    base = ld.assemble(model).q
    guess = ld.integrate(model, base, 0.05 * unit * rng.standard_normal(model.nv))
    found = ld.assemble(model, guess)
    assert found.residual <= CLOSED and found.restarts == 0
    assert bool(found.at_limits) == (name == "stewart")
    places, low, high = limits_of(model)
    bounds = [(None, None)] * model.nv
    for q, v, a, b in zip(*places, low, high, strict=True):
        bounds[v] = (a - guess[q]) / unit[v], (b - guess[q]) / unit[v]
    other = optimize.minimize(
        lambda x: x @ x, ld.difference(model, guess, base) / unit, jac=lambda x: 2 * x, method="SLSQP", bounds=bounds,
        constraints={"type": "eq", "fun": lambda x: ld.constraint_residual(model, ld.integrate(model, guess, unit * x))},
        options={"ftol": 1e-14, "maxiter": 300})
    assert other.success
    # SLSQP ends where the square of the way is known to 1e-10 or so
    assert worst(f"{name}: way from the guess against SLSQP, relative", abs(found.moved / math.sqrt(other.fun) - 1)) < 1e-5


def test_the_end_is_quadratic():
    """From a guess that is off by 0.1, seven iterations reach rounding."""
    found = ld.assemble(ld.build(four_bar()), [0.7, -0.6, 1.2], fixed=["crank"])
    assert found.iterations <= 7 and found.residual < 1e-15


@pytest.mark.parametrize("name, degrees, redundant", [
    ("four_bar", 1, 3), ("slider_crank", 1, 3), ("five_bar", 2, 3), ("five_bar_redundant", 2, 3), ("bennett", 1, 3),
    ("bricard", 1, 1),
    ("andrews", 1, 9), ("delta", 3, 0), ("stewart", 6, 0), ("n_four_bar", 1, 6), ("rolling_disc", 3, 0), ("hand", 10, 0)])
def test_mobility_of_our_robots(name, degrees, redundant, worst):
    """Known results. Bennett's linkage and Bricard's move although counting constraints forbids it."""
    model = ld.load(ROBOTS / f"{name}.yaml")
    found = ld.assemble(model)
    assert worst("residual after assembly [rad | m]", found.residual) <= CLOSED
    assert (found.mobility.degrees, len(found.redundant), found.singular) == (degrees, redundant, False)
    assert found.mobility.gap[0] > 1e-3 and found.mobility.gap[1] < 1e-9
    (q, _), low, high = limits_of(model)
    assert (found.q[q] >= low - 1e-12).all() and (found.q[q] <= high + 1e-12).all()


def limits_of(model):
    """Return indices in q and in v of the coordinates that may have limits, and the limits."""
    places = [(joint.q.start + k, joint.v.start + k) for joint in model.joints if joint.screws is not None
              for k in range(joint.q.stop - joint.q.start)]
    q, v = (list(x) for x in zip(*places, strict=True)) if places else ([], [])
    return (q, v), model.lower[v], model.upper[v]


def test_redundant_rows_follow_from_those_before_them():
    """All equations of the second of two equal closures are redundant."""
    robot = four_bar()
    twice = replace(robot, loops=(*robot.loops, replace(robot.loops[0], name="again")))
    found = ld.assemble(ld.build(twice), [0.7, -0.6, 1.2])
    assert found.redundant[:3] == ("pin.wx", "pin.wy", "pin.vz") and set(found.redundant[3:]) == {
        f"again.{row}" for row in ("wx", "wy", "vx", "vy", "vz")}


def test_a_parallelogram_in_line_is_singular():
    """All bars lie along x, where two branches of motion intersect."""
    model = ld.build(four_bar(1.0, 0.5, 1.0, 0.5))
    here, beside = ld.mobility(model, [0.0, 0.0, 0.0]), ld.mobility(model, [0.4, -0.4, 0.4])
    assert (here.degrees, here.rank, here.generic_rank, here.singular, here.rigid) == (2, 1, 2, True, False)
    assert (beside.degrees, beside.singular) == (1, False)
    found = ld.assemble(model, [1e-7, 0.0, 0.0])                       # a guess that is next to it
    assert found.residual <= CLOSED


def test_singular_windows_of_bars_in_a_line():
    """The N-four-bar with N = 2: three degrees of freedom where its uprights lie (M. Gonzalez et al., 2006)."""
    model = ld.load(ROBOTS / "n_four_bar.yaml")
    q = ld.assemble(model, [math.pi / 2, -math.pi / 2, math.pi / 2, -math.pi / 2, math.pi / 2]).q
    found = ld.mobility(model, q)
    assert (found.degrees, found.generic_rank, found.singular) == (3, 4, True)


def test_a_dead_structure_gives_way_to_the_first_order_only():
    """Three bars between two pins lie in a line of exactly their length. If they are a little longer, they move."""
    shaky = ld.mobility(ld.build(four_bar(2.0, 0.6, 0.9, 0.5)), [0.0, 0.0, math.pi])
    assert (shaky.degrees, shaky.rigid, shaky.singular) == (2, True, True)
    longer = ld.assemble(ld.build(four_bar(2.0, 0.6, 0.95, 0.5)), [0.1, -0.1, 3.0]).mobility
    assert (longer.degrees, longer.rigid, longer.singular) == (1, False, False)


def test_an_immobile_structure():
    """A triangle: two bars with pins between fixed points."""
    joints = (revolute("j", "world", "a"), revolute("k", "world", "b", 1.0))
    model = ld.build(Robot("r", (link("a"), link("b")), joints,
                           loops=(Loop("top", "ball", "a", "b", at(0.8, 0, 0), at(0.9, 0, 0)),)))
    found = ld.assemble(model, [1.0, 2.0])
    assert (found.mobility.degrees, found.mobility.rigid, found.singular, found.redundant) == (0, True, False, ("top.vz",))
    c = (0.8**2 + 1 - 0.9**2) / (2 * 0.8)
    assert found.q[0] == pytest.approx(math.acos(c), abs=1e-14)


# limits, flips, turns ------------------------------------------------------------------------------------------------

def test_limits_choose_the_branch():
    """Limits of the rocker exclude the lower branch: its guess leads to the upper one."""
    model = ld.build(four_bar(limits=(0.1, 3.0)))
    found = ld.assemble(model, [0.7, -0.7, -1.5], fixed=["crank"])
    assert 0.1 <= found.q[2] <= 3.0 and min(apart(found.q[2], x) for x in freudenstein(0.7)) < 1e-12


def test_a_joint_at_its_limit_is_kept_there_and_named():
    """For a guess beyond the limit, the rocker stays at the limit and the other joints close the loop."""
    psi = max(map(wrapped, freudenstein(0.7)))
    model = ld.build(four_bar(limits=(psi - 0.4, psi + 0.1)))
    found = ld.assemble(model, [0.7, -0.5, psi + 1.5])
    assert found.q[2] == pytest.approx(psi + 0.1, abs=1e-11) and found.at_limits == ("rocker",) and found.residual <= CLOSED
    assert min(apart(found.q[2], x) for x in freudenstein(found.q[0])) < 1e-11


def test_opposite_axes_are_no_solution():
    """A revolute loop whose frames lie with their axes opposite: the residual is 2 there, and the search leaves it."""
    joints = (Joint("ball", "ball", "world", "a"), revolute("j", "world", "b", 1.0))
    robot = Robot("r", (link("a"), link("b")), joints, loops=(Loop("pin", "revolute", "a", "b", at(1.0, 0, 0)),))
    model = ld.build(robot)
    flipped = np.array([1.0, 0.0, 0.0, 0.0, 0.0])                       # half a turn about x
    assert np.linalg.norm(ld.constraint_residual(model, flipped)[:2]) == pytest.approx(2.0, abs=1e-12)
    found = ld.assemble(model, flipped)
    T = ld.link_pose(model, found.q, "a")
    assert found.residual <= CLOSED and T[2, 2] == pytest.approx(1.0, abs=1e-12)


def test_whole_turns_are_taken_back():
    """The result for a guess of several turns is within half a turn of the guess."""
    found = ld.assemble(ld.build(four_bar()), [0.7 + 20 * math.pi, -0.7, 1.5], fixed=["crank"])
    assert found.q[0] == 0.7 + 20 * math.pi and abs(found.q[2] - 1.5) < math.pi and abs(found.q[1] + 0.7) < math.pi


def test_couplings_and_mimics_are_met():
    """A gear of two joints and a mimic: the result is nearest to the guess, x = g + c (…)/(c.c)."""
    joints = (revolute("j", "world", "a"), revolute("k", "a", "b"), revolute("l", "b", "c", mimic=Mimic("k", -2.0, 0.5)))
    model = ld.build(Robot("r", (link("a"), link("b"), link("c")), joints,
                           couplings=(Coupling("gear", (("j", "", 1.0), ("k", "", -3.0)), 0.25),)))
    g, A, b = np.array([0.1, 0.2, 0.3]), np.array([[1, -3, 0], [0, 2, 1.0]]), np.array([0.25, 0.5])
    found = ld.assemble(model, g)
    np.testing.assert_allclose(found.q, g - A.T @ np.linalg.solve(A @ A.T, A @ g - b), atol=1e-12)
    assert found.mobility.degrees == 1 and found.iterations <= 6


def test_rolling_touches_the_plane_by_going_down_only():
    """Assembly may slip: the disc moves to the height of its radius without rotation."""
    model = ld.load(ROBOTS / "rolling_disc.yaml")
    q = model.neutral()
    q[2] = 0.3
    found = ld.assemble(model, q)
    assert found.residual <= CLOSED and found.moved == pytest.approx(0.2 / 0.1, abs=1e-12)          # in radii
    np.testing.assert_allclose(found.q, [0, 0, 0.1, *q[3:]], atol=1e-12)


def test_a_driven_closure_is_where_its_motion_has_it():
    """A point of the crank is moved to a point on its circle."""
    model = ld.build(Robot("r", (link("a"),), (revolute("j", "world", "a"),),
                           loops=(Loop("hand", "ball", "world", "a", Pose(), at(0.5, 0, 0), driven=True),)))
    T = np.eye(4)
    T[:2, 3] = 0.5 * math.cos(0.9), 0.5 * math.sin(0.9)
    assert ld.assemble(model, [0.3], constraint_motion={"hand": T}).q[0] == pytest.approx(0.9, abs=1e-13)
    with pytest.raises(ld.ComputationError, match=r'"hand" cannot be closed: .* 0.5 m .*\(it is driven: give its position'):
        ld.assemble(model, [0.3])


# far guesses ---------------------------------------------------------------------------------------------------------
def rod_between_sliders() -> Robot:
    """Two sliders along x, and a rod of 0.5 m between points that are 0.3 m apart across x: 0.4 m along it."""
    joints = tuple(Joint(name, "prismatic", "world", name, axes=((1.0, 0.0, 0.0),)) for name in "ab")
    rod = Loop("rod", "distance", "a", "b", at(0, 0, 0), at(0, 0.3, 0), length=0.5)
    return Robot("rod", (link("a"), link("b")), joints, loops=(rod,))


@pytest.mark.parametrize("far", [10.0, 1e3, -1e3, 1e6])
def test_sliders_far_apart_meet_halfway(far):
    """The nearest configuration moves both sliders by the same length. Positions round to 1e-16 of it."""
    found = ld.assemble(ld.build(rod_between_sliders()), [0.0, far])
    half = abs(far) / 2
    np.testing.assert_allclose(np.sign(far) * found.q, [half - 0.2, half + 0.2], rtol=0, atol=1e-12 + 1e-15 * half)
    assert found.restarts == 0 and found.iterations < 15


@pytest.mark.parametrize(("kind", "far"), [*((kind, 1e6) for kind in ("ball", "weld", "universal", "revolute", "distance")),
                                          ("ball", 100.0)])
def test_free_bodies_far_apart(kind, far):
    length = {"length": 0.2} if kind == "distance" else {}
    model = ld.build(Robot("two", (link("a"), link("b")), tuple(Joint(name, "free", "world", name) for name in "ab"),
                           loops=(Loop("u", kind, "a", "b", at(0.5, 0, 0.1), at(0.1, 0.2, -0.3), **length),)))
    guess = model.neutral()
    guess[7] = far
    found = ld.assemble(model, guess)
    assert found.residual < CLOSED + 4e-15 * far and found.restarts == 0
    assert found.moved < 1.01 * ld.assemble(model).moved + 1.4 * far / 0.5


def test_a_far_loop_that_cannot_close_is_still_refused():
    """A rod is shorter than the distance of its ends across the sliders: 0.3 m instead of 0.1 m remain."""
    robot = rod_between_sliders()
    short = replace(robot, loops=(replace(robot.loops[0], length=0.1),))
    with pytest.raises(ld.ComputationError, match=r'distance loop "rod" cannot be closed: .* is 0\.2 m'):
        ld.assemble(ld.build(short), [0.0, 1e3])


# errors -----------------------------------------------------------------------------------------------------

def test_a_loop_that_cannot_close_is_named_with_what_is_left():
    """Bars that are too short by 0.1 m lie in a line, with that residual."""
    model = ld.build(four_bar(2.0, 0.4, 1.0, 0.5))
    with pytest.raises(ld.ComputationError) as caught:
        ld.assemble(model, [0.1, 0.2, 3.0])
    assert str(caught.value) == ('revolute loop "pin" cannot be closed: its smallest residual in 25 starts is 0.1 m '
                                 "(check lengths and frames, or change the guess)")


def test_a_loop_that_cannot_close_within_the_limits():
    text = r'"pin" cannot be closed: .* with rocker at a limit \(crank is kept fixed: release, check'
    with pytest.raises(ld.ComputationError, match=text):
        ld.assemble(ld.build(four_bar(limits=(-0.1, 0.1))), [0.7, -0.7, 0.0], fixed=["crank"])


def tilted(robot, angle, kind) -> Robot:
    """Return the linkage with the axis of the crank rotated about x."""
    c, s = math.cos(angle), math.sin(angle)
    crank = replace(robot.joints[0], origin=Pose((1.0, 0.0, 0.0, 0.0, c, -s, 0.0, s, c)))
    return replace(robot, joints=(crank, *robot.joints[1:]), loops=(replace(robot.loops[0], type=kind, axes=Z),))


@pytest.mark.parametrize("kind", ["revolute", "cylindrical", "planar"])
@pytest.mark.parametrize("angle", [1e-10, 1e-8, 3.67e-6, 1e-4])
def test_axes_that_are_nearly_parallel_are_the_reason(angle, kind):
    model = ld.build(tilted(four_bar(), angle, kind))
    with pytest.raises(ld.ComputationError) as caught:
        ld.assemble(model, [0.7, -0.7, 1.5])
    text = str(caught.value)
    assert f'{kind} loop "pin" cannot be closed' in text and "check lengths" not in text
    off = float(text.split("not parallel (angle ")[1].split()[0])
    assert off == pytest.approx(angle, rel=0.05)
    assert ld.assemble(ld.build(tilted(four_bar(), 0.0, kind)), [0.7, -0.7, 1.5]).residual < CLOSED


def test_the_reason_is_named_where_the_search_ends_at_an_outer_position():
    """The residual in the plane is 3 % of the tilt."""
    with pytest.raises(ld.ComputationError, match=r"not parallel \(angle 3\.7e-06 rad"):
        ld.assemble(ld.build(tilted(four_bar(coupler=0.9, rocker=0.6), 1.5708 - math.pi / 2, "revolute")), [1.0, -0.6, 1.7])


@pytest.mark.parametrize("kind", ["prismatic", "weld"])
def test_axes_in_the_plane_of_a_loop_that_are_nearly_in_it(kind):
    """The frame of a slider along x is rotated out of the plane: the mean axis of the hinges is the normal."""
    robot = four_bar()
    joints = (*robot.joints[:2], Joint("slide", "prismatic", "world", "c", axes=((1.0, 0.0, 0.0),)))
    knee = replace(robot.joints[1], name="wrist", parent="b", child="d", origin=at(1.1, 0, 0))
    loop = Loop("pin", kind, "d", "c", Pose(), Pose(), **({"axes": ((1.0, 0.0, 0.0),)} if kind == "prismatic" else {}))
    crank = tilted(robot, 1e-6, "revolute").joints[0]
    model = ld.build(replace(robot, links=(*robot.links, link("d")), loops=(loop,), joints=(crank, *joints[1:], knee)))
    with pytest.raises(ld.ComputationError, match=r"not parallel \(angle (9\.[0-9]*e-07|1e-06) rad"):
        ld.assemble(model, [0.3, -0.3, 1.4, 0.1])


def test_a_cylindrical_loop_and_a_ball_joint_close_with_axes_that_are_not_parallel():
    robot = tilted(four_bar(), 1e-4, "cylindrical")
    knee = replace(robot.joints[1], type="ball", axes=())
    assert ld.assemble(ld.build(replace(robot, joints=(robot.joints[0], knee, robot.joints[2])))).mobility.degrees == 1


@pytest.mark.parametrize("guess, fixed, given", [
    ([0.1, 0.2, 3.0], (), {"coupler": 0.5, "crank": 0.4, "ground": 2.0, "rocker": 1.0}),
    ([0.7, 0.0, 0.0], ("crank", "knee", "rocker"), {})])
def test_other_reasons_are_not_taken_for_axes_that_are_not_parallel(guess, fixed, given):
    """Bars that are too short, and fixed joints, are combined with a tilt."""
    with pytest.raises(ld.ComputationError, match="check lengths and frames"):
        ld.assemble(ld.build(tilted(four_bar(**given), 1e-6, "revolute")), guess, fixed=fixed)


def test_a_coupling_that_cannot_be_met():
    joints = (revolute("j", "world", "a", 0.0, -1.0, 1.0), revolute("k", "a", "b", 0.0, -1.0, 1.0))
    model = ld.build(Robot("r", (link("a"), link("b")), joints,
                           couplings=(Coupling("gear", (("j", "", 1.0), ("k", "", 1.0)), 3.0),)))
    with pytest.raises(ld.ComputationError, match=r'"gear" cannot be closed: its smallest residual in .* starts is 1 rad, '
                                                  r"with j, k at a limit"):
        ld.assemble(model)


def test_everything_kept():
    model = ld.build(four_bar())
    with pytest.raises(ld.ComputationError, match="crank, knee, rocker are kept fixed: release"):
        ld.assemble(model, [0.7, 0.0, 0.0], fixed=["crank", "knee", "rocker"])
    q = ld.assemble(model, [0.7, -0.7, 1.5]).q
    np.testing.assert_array_equal(ld.assemble(model, q, fixed=["crank", "knee", "rocker"]).q, q)


def test_wrong_arguments():
    model = ld.build(four_bar())
    with pytest.raises(ld.ModelError, match="robot four_bar has no constraints"):
        ld.assemble(ld.build(replace(four_bar(), loops=())))
    with pytest.raises(ValueError, match=r"no moving joint 'krank'; did you mean 'crank'\?"):
        ld.assemble(model, fixed=["krank"])
    with pytest.raises(ld.ShapeError, match=r"q_guess has the wrong shape: expected \(3,\), got \(2, 3\)"):
        ld.assemble(model, np.zeros((2, 3)))
    with pytest.raises(ld.ShapeError, match=r"q has the wrong shape: expected \(3,\), got \(2, 3\)"):
        ld.mobility(model, np.zeros((2, 3)))
    with pytest.raises(ld.ConfigurationError):
        ld.assemble(model, [0.0, np.nan, 0.0])
    with pytest.raises(ld.ComputationError, match=r"the configuration violates the constraints: pin.v[xy] has a residual of "
                                                  r"0\..* \(assemble first\)"):
        ld.mobility(model, [0.7, 0.0, 0.0])


def test_the_same_seed_gives_the_same_answer():
    """All bars start in a line, where the first iteration has no direction."""
    model = ld.build(four_bar())
    first, second = (ld.assemble(model, [0.0, 0.0, 0.0], seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.q, second.q)
    assert first.restarts == second.restarts
