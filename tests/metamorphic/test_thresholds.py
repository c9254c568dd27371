"""Verdicts that must not depend on units or on the place: the same problem in other numbers is accepted or rejected alike."""
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from degenerate_mechanisms import at, body
from liedyn.analysis.configurations import assembled_state
from liedyn.analysis.recorded_motion import SampledMotion
from liedyn.analysis.trajectory_derivatives import derivative_request, differences
from liedyn.analysis.trajectory_dynamics import satisfy_acceleration_constraints, satisfy_constraints
from liedyn.dynamics.finite_differences import MAX_EXCESS
from liedyn.model.description import WORLD, Coordinate, Joint, Loop, Robot
from liedyn.report.plots.plot_data import skeleton
from liedyn.simulation.prescribed_poses import rotation_spline
from liedyn.simulation.run_checks import ConstraintCheck, EnergyBalance
from metamorphic.transformations import other_units

FOUR_BAR = ld.load("robots/four_bar.yaml")
CLOSED = ld.assemble(FOUR_BAR, [1.2, 0.2, 1.8], fixed=["crank"]).q
SPEED = ld.project_velocity(FOUR_BAR, CLOSED, [1.0, 0.0, 0.0], prescribed=[True, False, False])
UNITS = {"SI": (1.0, 1.0, 1.0), "large, heavy": (1e3, 1e9, 1.0), "small, light, slow": (1e-6, 1e-9, 1e4)}


@pytest.fixture(autouse=True)
def generic_kernels(monkeypatch):
    """Compiled once for all robots."""
    monkeypatch.setenv("LIEDYN_CODE", "generic")


every_unit = pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)


def in_units(model, units):
    """Return the model in other units, and the maps of its states."""
    by = other_units(*units)
    new = ld.build(by.change(model.description))
    return new, by.maps(model, new)


def sliders(lower: float = -np.inf, upper: float = np.inf) -> Robot:
    """Return an arm that slides and rotates, and a hand that slides along it."""
    links = (body("a", 1.0, (0.3, 0.0, 0.1), (0.01, 0.03, 0.03)), body("b", 0.7, (0.2, 0.1, 0.0), (0.01, 0.02, 0.02)),
             body("c", 0.4, (0.1, 0.0, 0.05), (0.01, 0.01, 0.02)))
    joints = (Joint("x", "prismatic", WORLD, "a", at(), ((1.0, 0.0, 0.0),), coordinates=(Coordinate(lower=lower, upper=upper),)),
              Joint("r", "revolute", "a", "b", at((0.5, 0.0, 0.0)), ((0.0, 1.0, 0.0),)),
              Joint("s", "prismatic", "b", "c", at((0.2, 0.0, 0.0)), ((1.0, 0.0, 0.0),)))
    return Robot("sliders", links, joints, gravity=(0.0, 0.0, -9.81))


# states off the constraints -------------------------------------------------------------------------------------------------
@every_unit
def test_a_state_off_its_constraints_is_not_linearized(units):
    """An error of 1e-5 in an angle or a speed is rejected; 1e-9 is accepted."""
    model, _ = in_units(FOUR_BAR, units)
    v, rest = SPEED / units[2], np.zeros(3)
    ld.linearize(model, CLOSED + np.array([0.0, 1e-9, 0.0]), v * (1.0 + np.array([0.0, 1e-9, 0.0])), rest)
    for q, speed in ((CLOSED + np.array([0.0, 1e-5, 0.0]), v), (CLOSED, v * (1.0 + np.array([0.0, 1e-5, 0.0])))):
        with pytest.raises(ld.ComputationError, match="violates the constraints"):
            ld.linearize(model, q, speed, rest)


@every_unit
def test_a_velocity_off_the_constraints_starts_no_rollout(units):
    model, _ = in_units(FOUR_BAR, units)
    wrong = SPEED * (1.0 + np.array([0.0, 1e-3, 0.0])) / units[2]
    dt = 1e-3 * units[2]
    ld.rollout(model, CLOSED, SPEED * (1.0 + 1e-9) / units[2], dt=dt, steps=1)
    with pytest.raises(ld.ConfigurationError, match="v0 of run 0 violates the constraints"):
        ld.rollout(model, CLOSED, wrong, dt=dt, steps=1)


@every_unit
def test_a_velocity_off_the_constraints_in_a_recorded_motion_is_refused(units):
    model, _ = in_units(FOUR_BAR, units)
    rows = SimpleNamespace(source=None, lines=np.array([1]), columns=("v.crank",))
    for off, refused in ((1e-7, False), (1e-3, True)):
        v = SPEED * (1.0 + np.array([0.0, off, 0.0])) / units[2]
        motion = SampledMotion(CLOSED[None], v[None], np.zeros((1, 3)), None, None, True, ())
        if refused:
            with pytest.raises(ld.TrajectoryError, match="the velocity violates the constraints"):
                satisfy_constraints(model, rows, motion)
        else:
            satisfy_constraints(model, rows, motion)


@every_unit
def test_accelerations_that_are_moved_onto_the_constraints_are_told(units):
    model, _ = in_units(FOUR_BAR, units)
    a = ld.constrained_forward_dynamics(model, CLOSED, np.zeros(3), np.zeros(3)).a
    for share, told in ((1e-9, 0), (1e-2, 1)):
        motion = SampledMotion(CLOSED[None], np.zeros((1, 3)), (a * (1.0 + np.array([0.0, share, 0.0])))[None], None, None, True,
                               ())
        assert len(satisfy_acceleration_constraints(model, motion)[1]) == told


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_given_velocities_that_contradict_are_refused_whatever_their_size(size):
    angles = [f"{name}={x!r}" for name, x in zip(FOUR_BAR.joint_names, CLOSED.tolist(), strict=True)]
    good, wrong = ([f"crank={size * SPEED[0]:.17g}", f"rocker={size * x:.17g}"] for x in (SPEED[2], 1.01 * SPEED[2]))
    np.testing.assert_allclose(assembled_state(FOUR_BAR, angles, good).v, size * SPEED, rtol=1e-9)
    with pytest.raises(ld.ComputationError, match="contradict the constraints"):
        assembled_state(FOUR_BAR, angles, wrong)


# contradictions -------------------------------------------------------------------------------------------------------------
@every_unit
def test_prescribed_velocities_that_contradict_are_refused(units):
    model, _ = in_units(FOUR_BAR, units)
    given = [True, False, True]
    ld.project_velocity(model, CLOSED, SPEED / units[2], prescribed=given)
    with pytest.raises(ld.ComputationError, match="no velocity satisfies the constraints"):
        ld.project_velocity(model, CLOSED, SPEED * [1.0, 1.0, 1.0001] / units[2], prescribed=given)


@every_unit
def test_prescribed_accelerations_that_contradict_are_refused(units):
    model, _ = in_units(FOUR_BAR, units)
    given, rest = np.array([True, False, True]), np.zeros(3)
    a = ld.constrained_forward_dynamics(model, CLOSED, rest, rest).a
    ld.constrained_hybrid_dynamics(model, CLOSED, rest, a, rest, given)
    ld.constrained_inverse_dynamics(model, CLOSED, rest, a, ["crank"])
    wrong = a * [1.0, 1.0, 1.001]
    with pytest.raises(ld.ComputationError, match="contradict the constraint"):
        ld.constrained_hybrid_dynamics(model, CLOSED, rest, wrong, rest, given)
    with pytest.raises(ld.ComputationError, match="the motion violates a constraint"):
        ld.constrained_inverse_dynamics(model, CLOSED, rest, wrong, ["crank"])


@every_unit
def test_a_run_with_accelerations_that_contradict_ends(units):
    """They agree at first: the crank follows its own motion, and the rocker that of the start."""
    model, _ = in_units(FOUR_BAR, units)
    rest, time = np.zeros(3), units[2]
    a = ld.constrained_forward_dynamics(model, CLOSED, rest, rest).a
    joints = {name: {"prescribe": {"acceleration": float(a[k] * share)}} for name, k, share in (("crank", 0, 1.0),
                                                                                               ("rocker", 2, 1.001))}
    with pytest.raises(ld.ComputationError, match="contradicts the constraint"):
        ld.simulate(model, {"duration": 0.01 * time, "output_step": 0.01 * time, "joints": joints,
                            "integrator": {"method": "rk4", "step": 1e-3 * time}}, q0=CLOSED)


@every_unit
def test_constraints_of_a_function_are_judged_alike(units):
    """One follows from those of the robot; another contradicts the prescribed motion."""
    model, _ = in_units(FOUR_BAR, units)
    v = SPEED / units[2]
    free = ld.constrained_forward_dynamics(model, CLOSED, v, np.zeros(3))
    A = ld.constraint_jacobian(model, CLOSED)

    def own(q):                                   # the first equation that does not vanish
        J = ld.constraint_jacobian(model, q)
        return J[:, [np.abs(A).max(axis=1).argmax()]]
    tied = ld.constrained_forward_dynamics(model, CLOSED, v, np.zeros(3), pfaffian=own)
    assert not tied.independent[-1]
    np.testing.assert_allclose(tied.a, free.a, rtol=1e-6)
    rigid = lambda q: np.array([[1.0, 0.0, 0.0]])                         # noqa: E731
    with pytest.raises(ld.ComputationError, match="pfaffian constraint cannot be satisfied"):
        ld.constrained_hybrid_dynamics(model, CLOSED, v, free.a, np.zeros(3), [True, False, False], pfaffian=rigid)


# self-checks ----------------------------------------------------------------------------------------------------------------
@every_unit
def test_residuals_are_told_in_lengths_of_the_loop(units):
    model, _ = in_units(FOUR_BAR, units)
    for share, told in ((1e-11, 0), (1e-7, 1)):
        check, q = ConstraintCheck(), CLOSED + np.array([0.0, share, 0.0])
        record = SimpleNamespace(t=np.zeros(1), q=q[None], v=np.zeros((1, 3)), constraint_motion=np.zeros((1, 0)),
                                 residual=np.abs(ld.constraint_residual(model, q)).max() * np.ones((1, 2)))
        check.add(np.zeros((1, 3)), record)
        check.check_residuals(model, record, np.ones(model.nc))
        _, warnings = check.value(model, SimpleNamespace(loops=None))
        assert len(warnings) == told


@every_unit
def test_the_check_of_a_run_is_the_same_in_all_units(units):
    """The residual of inverse dynamics is relative to forces of the magnitude of the robot's own."""
    model, maps = in_units(ld.build(sliders()), units)
    time, q = units[2], np.array([0.1, 0.4, 0.2])
    run = ld.simulate(model, {"duration": 0.1 * time, "output_step": 0.05 * time,
                              "integrator": {"method": "rk4", "step": 0.01 * time}}, q0=maps.configuration(q))
    assert 1e-18 < run.check["inverse_dynamics_residual"] < 1e-14
    assert run.check["energy_balance_relative"] == pytest.approx(balance_in_si(), rel=1e-3)


def balance_in_si() -> float:
    run = ld.simulate(ld.build(sliders()), {"duration": 0.1, "output_step": 0.05, "integrator": {"method": "rk4", "step": 0.01}},
                      q0=[0.1, 0.4, 0.2])
    return run.check["energy_balance_relative"]


@every_unit
def test_what_rounding_may_be_of_energies_is_the_same_in_all_units(units):
    """The energies of a body that hangs on its joints are no larger than rounding."""
    model, maps = in_units(ld.build(sliders()), units)
    q, energy = maps.configuration(np.array([0.1, 0.4, 0.2])), units[1] * units[0]**2 / units[2]**2
    force = ld.inverse_dynamics(model, q, np.zeros(3), np.zeros(3))
    found = []
    for own, tau, size in ((model, force, energy), (ld.build(sliders()), ld.inverse_dynamics(ld.build(sliders()), [0.1, 0.4, 0.2],
                                                                                            np.zeros(3), np.zeros(3)), 1.0)):
        balance = EnergyBalance(own)
        none = np.zeros((1, 0))
        balance.add(SimpleNamespace(tau=tau[None], wrench=none, supplied_energy=np.zeros(2), multipliers=none,
                                    residual=np.zeros((1, 2))),
                    np.array([0.0, 1e-13 * size]), np.zeros(2))
        found.append(balance.value(100)[1])
    assert 1e-4 < found[1] < 1.0 and found[0] == pytest.approx(found[1], rel=1e-6)


# motions --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("distance", [0.0, 1e6])
def test_a_pose_that_contradicts_its_motion_is_refused_at_any_place(distance):
    """The error of an orientation is not relative to the distance from the origin."""
    base = Robot("base", (body("a", 1.0, (0.0, 0.0, 0.0), (0.01, 0.02, 0.03)),), (), base="floating")
    model = ld.build(base)
    points = [{"t": t, "xyz": [distance, 0.0, 0.0], "rpy": [0.0, 0.0, angle]} for t, angle in ((0.0, 0.0), (1.0, 0.5))]
    turned = [distance, 0.0, 0.0, *Rotation.from_euler("z", 0.5).as_quat().tolist()]
    scenario = {"duration": 0.1, "output_step": 0.1, "joints": {"base": {"prescribe": {"position": {"waypoints": points}}}}}
    with pytest.raises(ld.ScenarioError, match="contradicts the prescribed motion"):
        ld.simulate(model, scenario | {"initial": {"q": {"base": turned}}})


@every_unit
def test_an_initial_value_that_contradicts_its_motion_is_refused(units):
    model, _ = in_units(ld.build(sliders()), units)
    length, time = units[0], units[2]
    scenario = {"duration": 0.1 * time, "output_step": 0.1 * time, "integrator": {"method": "rk4", "step": 0.01 * time},
                "joints": {"x": {"prescribe": {"position": 0.001 * length}}}}
    ld.simulate(model, scenario | {"initial": {"q": {"x": (0.001 + 1e-8) * length}}})
    with pytest.raises(ld.ScenarioError, match="contradicts the prescribed motion"):
        ld.simulate(model, scenario | {"initial": {"q": {"x": (0.001 + 1e-5) * length}}})


@every_unit
def test_a_start_beyond_a_hard_stop_is_refused(units):
    model, _ = in_units(ld.build(sliders(lower=0.0, upper=1.0)), units)
    length, time = units[0], units[2]
    scenario = {"duration": 0.01 * time, "output_step": 0.01 * time, "limits": "hard",
                "integrator": {"method": "rk4", "step": 0.01 * time}}
    ld.simulate(model, scenario | {"initial": {"q": {"x": -1e-11 * length}}})
    with pytest.raises(ld.ScenarioError, match="a hard stop"):
        ld.simulate(model, scenario | {"initial": {"q": {"x": -1e-7 * length}}})


@pytest.mark.parametrize("time", [1.0, 1e3, 1e8])
def test_a_slow_curve_of_rotations_is_as_smooth_as_a_fast_one(time):
    rng = np.random.default_rng(3)
    t, u = np.arange(6.0), Rotation.from_rotvec(rng.normal(0.0, 1.0, (6, 3))).as_quat()
    powers = time ** np.arange(4.0)
    fast, slow = rotation_spline(t, u)[1], rotation_spline(time * t, u)[1] * powers
    np.testing.assert_allclose(slow, fast, atol=1e-13 * np.abs(fast).max())


# derivatives, identification, plots --------------------------------------------------------------------------------------
@every_unit
def test_differences_are_as_sure_in_all_units(units):
    """They verify derivatives: none deviates, and none is uncertain."""
    model, _ = in_units(ld.build(sliders()), units)
    rng, (length, mass, time) = np.random.default_rng(5), units
    reach = np.array([length, 1.0, length])
    q, v, a = rng.normal(0.0, 0.5, (3, 4, 3)) * reach
    tau = rng.normal(0.0, 1.0, (4, 3)) * mass * length**2 / time**2 / reach
    motion = SampledMotion(q, v / time, a / time**2, tau, None, True, ())
    for of in ("inverse", "forward"):
        parameters = () if of == "forward" else ("q.*", "v.*", "a.*", "com.*", "origin.*", "mass.*", "armature.*", "damping.*")
        asked = derivative_request(model, of, (), parameters, ())
        for kind, one in differences(model, asked, motion, np.arange(4)).items():
            assert one.off < MAX_EXCESS and one.doubt < MAX_EXCESS, (of, kind, one)


@pytest.mark.parametrize("length", [1.0, 1e-6, 1e6])
def test_parameters_are_identified_in_all_units(length):
    model, _ = in_units(ld.build(sliders()), (length, 1.0, 1.0))
    t = np.linspace(0.0, 4.0, 400)
    phase = np.outer(t, [2.0, 3.1, 4.3]) + np.array([0.3, 1.0, 2.0])
    rate, reach = np.array([2.0, 3.1, 4.3]), np.array([length, 1.0, length])
    q, v, a = np.sin(phase) * reach, rate * np.cos(phase) * reach, -rate**2 * np.sin(phase) * reach
    tau = ld.inverse_dynamics(model, q, v, a)
    found = ld.identify(model, t, q, tau, v=v, a=a, smooth=None)
    assert set(found.verdicts) == {"reliable"}
    np.testing.assert_allclose(found.values, found.base.values, rtol=1e-8,
                               atol=1e-8 * np.abs(found.base.values).min(initial=np.inf))


@every_unit
def test_limits_that_an_assembly_reaches_are_told_alike(units):
    """A slider that ends a millionth before its limit is not at it."""
    links = [body(name, 1.0, (0.1, 0.0, 0.0), (0.01, 0.03, 0.03)) for name in "abc"]
    joints = (Joint("r", "revolute", WORLD, "a", at(), ((0.0, 0.0, 1.0),)),
              Joint("s", "revolute", "a", "b", at((0.1, 0.0, 0.0)), ((0.0, 0.0, 1.0),)),
              Joint("x", "prismatic", WORLD, "c", at(), ((1.0, 0.0, 0.0),), coordinates=(Coordinate(),)))
    robot = Robot("crank", tuple(links), joints, loops=(Loop("pin", "revolute", "b", "c", at((0.3, 0.0, 0.0)), at()),))
    model, maps = in_units(ld.build(robot), units)
    x = ld.assemble(model, maps.configuration(np.array([0.3, -0.1, 0.39])), fixed=["r"]).q
    for upper, told in ((x[2] * (1.0 + 1e-6), ()), (x[2], ("x",))):
        *others, slide = model.description.joints
        limited = replace(slide, coordinates=(replace(slide.coordinates[0], upper=float(upper)),))
        assert ld.assemble(ld.build(replace(model.description, joints=(*others, limited))), x, fixed=["r"]).at_limits == told


@every_unit
def test_robots_of_all_sizes_are_drawn(units):
    model, _ = in_units(ld.build(sliders()), units)
    drawn = skeleton(model, np.arange(2.0), np.zeros((2, 3)))
    same = skeleton(ld.build(sliders()), np.arange(2.0), np.zeros((2, 3)))
    assert drawn.edges == same.edges
    np.testing.assert_allclose(drawn.points, units[0] * same.points, atol=1e-12 * units[0])
