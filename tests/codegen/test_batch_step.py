"""Right-hand sides as lines against the loops: scenarios, every kind of joint and signal, runs of every method, errors."""
import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from integrators.problems import floating_robot, turning_state
from liedyn.analysis.operating_point import prepare
from liedyn.codegen.rhs import generated_rhs, read_signal, trace_rhs
from liedyn.codegen.specialize import is_supported
from liedyn.errors import ComputationError
from liedyn.integrators.problem import Options
from liedyn.integrators.segment import RightHandSide
from liedyn.integrators.solve import solve
from liedyn.io.scenarios.scenario import Constant, Expression, ExternalForce, Pd, Prescribe, Quintic, Rule, Scenario, Sine, Torque
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS, rates_compiled
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, NOT_FINITE, RUNNING, SINGULAR
from liedyn.model.description import ONE_DOF, Coordinate, Joint, Robot
from liedyn.model.links import Link, Pose
from liedyn.simulation.input_schedule import compile_schedule
from zoo import ROBOTS, model_of

pytestmark = pytest.mark.skipif(not is_supported(), reason="this LLVM cannot read the text of lines: loops are used")
CONFIGS = Path(__file__).parents[2] / "configs"
# functions of time and of a state whose own coordinates are q and v; all of the operations of `kernels.simulation.signals`
EXPRESSIONS = ("0.3*sin(2*t+1)", "exp(-t)*cos(3*t) - q/4", "tan(t/3)*0.2 + asin(0.3*sin(t))", "acos(0.5*cos(t)) + atan(v)",
               "sinh(t/3) - cosh(q/5) + tanh(v)", "log(2+t*t) + sqrt(1.5+sin(q))",
               "(2+sin(t))**1.7 - t**2/9 + (1.1+q*q)**(0.3*v)",
               "atan2(sin(t), 2+cos(q)) / (3+t)", "abs(sin(7*t)) + floor(3*t) + step(t-0.6) + sign(cos(5*t))",
               "min(0.5, sin(4*t)) - max(-0.2, cos(6*t))", "0.4*sign(v) - 0.3*abs(q) + 0.1*step(q-0.1)",
               "clip(-4*q-v, -0.5, 0.5) + 0.2*floor(3*q)", "-(-t)**3")


def scenario_of_all(model, seed) -> Scenario:
    """Return a scenario with joints prescribed at every level, pd laws, expressions as torques, and wrenches in both frames."""
    rng, rules, first, last = np.random.default_rng(seed), [], model.link_names[0], model.link_names[-1]
    expression = lambda: Expression(str(rng.choice(EXPRESSIONS)))                        # noqa: E731
    of_time = lambda: [Sine(0.5, 0.7, 0.2, 0.1), Expression(EXPRESSIONS[int(rng.integers(2)) * 8]), Constant(0.4)]       # noqa: E731
    waypoints = Quintic(((0.0, 0.1, 0.0, 0.0), (0.5, 0.6, 0.1, 0.0), (1.0, -0.2, 0.0, 0.0)))
    for joint in model.joints:
        n, choice = joint.v.stop - joint.v.start, int(rng.integers(6))
        signals = tuple(of_time()[int(rng.integers(3))] for _ in range(n))
        if choice < 3 and (choice < 2 or joint.kind == ONE_DOF):
            level = ("acceleration", "velocity", "position")[choice]
            drive = Prescribe(level, tuple(waypoints if level == "position" else x for x in signals))
        elif choice == 3 and joint.kind == ONE_DOF:
            target = Expression(f"0.2*x({last}, 0, 0.1, 0)*sin(3*t) + 0.1*q*q") if n == 1 else waypoints
            drive = Pd(20.0, (2.0,) * n, (target,) * n, expression() if n == 1 else Constant(1.0))
        elif n == 1:
            drive = Torque(expression())
        else:
            drive = Torque(signals)
        rules.append(Rule(joint.name, drive))
    law = Expression(f"exp(-t) + 0.3*z({last}) - vx({last}, 0.1, 0, -0.2) * wy({first})")
    wrench = tuple([*(Constant(float(x)) for x in rng.standard_normal(4)), Sine(2.0, 1.0), law])
    forces = (ExternalForce(last, "local", wrench, (0.1, 0.2, -0.1)),
              ExternalForce(first, "local_world_aligned", wrench, (0.3, 0.0, 0.1), start=0.2, end=0.7))
    return Scenario("robot", 1.0, 0.1, joints=tuple(rules), forces=forces)


def problem_of(model, scenario):
    return compile_schedule(scenario, model).problem


def both(problem, t, q0, y, held=()):
    """Return code, rates, state and readings of the generic kernels and of generated code."""
    out = []
    for line in (False, True):
        signals = problem.signals._replace(switches=np.array(problem.signals.switches if not len(held) else held))
        rhs, work, K = RightHandSide(problem, signals), problem.workspace(), np.zeros((2, len(y)))
        assert rhs.generated
        code = rates_compiled(*(rhs.generated, None) if line else (None, rhs.generic_call()), t, q0.copy(), y, K, 0, work)
        out.append((code, np.concatenate([K[0], work.q, work.v, work.a, work.tau, work.wrench, signals.switches]), work.flag[0]))
    return out


def compare(problem, rng, worst, where, held=False):
    m = problem.model
    for trial in range(8):
        t = 0.0 if trial == 0 else rng.uniform(0, 1)
        q0 = ld.integrate(m, problem.q, 0.3 * rng.standard_normal(m.nv))
        y = np.r_[0.3 * rng.standard_normal(m.nv) * (trial % 3 > 0), rng.standard_normal(m.nv), 0.7]
        switches = np.zeros(len(problem.signals.switches))
        switches[::4] = rng.choice([np.nan, -1.0, 1.0], len(switches) // 4)
        (code, x, _), (found, z, _) = both(problem, t, q0, y, switches if held else ())
        assert code == found == RUNNING
        same = np.isnan(x) & np.isnan(z)
        # 1e-10: the loops of wrists near a singular position lose digits, in other orders of sums
        assert worst("right-hand sides as lines", np.max(np.abs(x - z)[~same] / (1 + np.abs(x[~same]).max())), where) < 1e-10


@pytest.mark.parametrize("name", [name for name in ROBOTS if model_of(name).nv <= 20])
def test_lines_of_every_joint_kind_give_what_the_loops_give(name, worst):
    model = model_of(name)
    problem = problem_of(model, scenario_of_all(model, 4))
    compare(problem, np.random.default_rng(1), worst, name)
    compare(problem, np.random.default_rng(2), worst, name, held=True)


@pytest.mark.parametrize("config", ["panda_hybrid", "showcase", "hexarotor_feedback", "humanoid_dive", "crane", "elastic_arm"])
def test_lines_of_scenarios_give_what_the_loops_give(config, worst):
    problem = prepare(CONFIGS / f"{config}.yaml").problem
    compare(problem, np.random.default_rng(3), worst, config)



@pytest.mark.parametrize("text", EXPRESSIONS)
def test_every_operation_of_expressions(pendulum, text, worst):
    """Generic kernels, generated code and Python agree."""
    problem = problem_of(pendulum, Scenario("robot", 1.0, 0.1, joints=(Rule("swing", Torque(Expression(text))),)))
    compare(problem, np.random.default_rng(5), worst, text)
    t, q, v = 0.37, np.array([0.4]), np.array([-0.3])
    y = np.r_[0.0, v, 0.0]
    (_, x, _), _ = both(problem, t, q, y)
    read = read_signal(problem.signals, int(problem.schedule.signal[0]), t, q, v)[0]
    assert abs(x[len(y) + 3] - read) < 1e-14 * max(1.0, abs(read))


@pytest.fixture(scope="module")
def pendulum():
    joint = Joint("swing", "revolute", "world", "bob", Pose(), ((0.0, 1.0, 0.0),), coordinates=(Coordinate(-99, 99, 99, 99),))
    return ld.build(Robot("pendulum", (Link("bob", 1.0, (0.0, 0.0, -0.4), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)),), (joint,)))


def torque(model, text, **options):
    rule = Rule("swing", Torque(Expression(text)))
    return problem_of(model, Scenario("robot", options.pop("duration", 1.0), 0.1, joints=(rule,), **options))


# codes -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text, t", [("sqrt(0.5-t)", 0.7), ("log(q)", 0.0), ("1/(t-0.5)", 0.5), ("acos(2*t)", 0.9)])
def test_a_signal_that_is_not_finite_is_named(pendulum, text, t):
    problem = torque(pendulum, text)
    (code, _, flag), (found, _, other) = both(problem, t, np.array([-0.2]), np.array([0.0, 0.1, 0.0]))
    assert code == found == BAD_SIGNAL and flag == other == problem.schedule.signal[0]


def test_numbers_that_are_not_finite_are_told(pendulum):
    problem = torque(pendulum, "0.1*t")
    (code, _, _), (found, _, _) = both(problem, 0.1, np.array([0.3]), np.array([0.0, np.inf, 0.0]))
    assert code == found == NOT_FINITE


def test_a_vanishing_inertia_is_told():
    """The inner bodies of a joint in gimbal lock have no mass."""
    ball = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
    model = ld.build(Robot("r", (Link("a", 1.0, (0.0, 0.0, 0.0), ball), Link("b", 1.0, (0.0, 0.0, 0.0), ball)),
                           (Joint("j", "euler", "a", "b", sequence="zyx"),)))
    problem = problem_of(model, Scenario("robot", 1.0, 0.1))
    (code, _, _), (found, _, _) = both(problem, 0.0, np.array([0.3, np.pi / 2, 0.1]), np.zeros(7))
    assert code == found == SINGULAR


# what is compiled ------------------------------------------------------------------------------------------------------
def test_gains_and_constants_are_inputs():
    """Another gain needs no other generated code and has an effect."""
    model = model_of("every kind, floating")
    a = problem_of(model, scenario_of_all(model, 4))
    b = replace(a, schedule=a.schedule._replace(kp=1.5 * a.schedule.kp, kd=0.5 * a.schedule.kd))
    assert a.tables().name() == b.tables().name()
    compare(b, np.random.default_rng(6), lambda what, value, where: value, "gains")


def test_curves_of_any_length_add_nothing_to_a_line(pendulum):
    points = tuple((t, float(np.sin(t)), 0.0, 0.0) for t in np.linspace(0, 1, 500))
    few, many = (problem_of(pendulum, Scenario("robot", 1.0, 0.1, joints=(Rule("swing", Prescribe("position", (Quintic(p),))),)))
                 for p in (points[::400], points))
    sizes = [trace_rhs(p.tables()).size for p in (few, many)]
    assert sizes[0] == sizes[1] < 100
    assert few.tables().name() == many.tables().name()
    compare(many, np.random.default_rng(7), lambda what, value, where: value, "curve")


def test_loops_do_the_work_where_they_are_asked_for(pendulum, monkeypatch):
    problem = torque(pendulum, "sin(t)")
    assert generated_rhs(problem.tables()) is not None
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    assert generated_rhs(problem.tables()) is None


def test_references_with_kinks_are_left_to_the_loops():
    """Their series depend on the sign of a number, on which generated code cannot branch."""
    def following(motion):
        return prepare(CONFIGS / "elastic_arm.yaml", {"control.motion.elbow": motion}).problem

    assert following("abs(sin(t+1))").generated_rhs is None
    for motion in ("0.3*sin(t)**3 + exp(-t)/(2+t)", {"quintic": [[0, 0.1], [0.4, 0.5], [5, 0.2]]}):
        compare(following(motion), np.random.default_rng(8), lambda what, value, where: value, "law")


# runs ------------------------------------------------------------------------------------------------------------------
def by_both(monkeypatch, make, times, options):
    found = [solve(make(), times, options)]
    monkeypatch.setenv("LIEDYN_CODE", "generic")
    return *found, solve(make(), times, options)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "RK45", "DOP853", "Radau"])
def test_runs_by_lines_and_by_loops_are_the_same(method, monkeypatch, worst):
    model = floating_robot()
    q, v = turning_state(model)
    rules = (Rule("arm", Prescribe("position", (Quintic(((0.0, 0.4, 0.0, 0.0), (0.3, 0.8, 0.0, 0.0), (1.0, 0.1, 0.0, 0.0))),))),)
    force = ExternalForce("hand", "local_world_aligned", (Constant(0.0),) * 5 + (Expression("3*step(t-0.4567)"),))

    def make():
        return replace(problem_of(model, Scenario("robot", 1.0, 0.1, joints=rules, forces=(force,))), q=q, v=v * (v != 2.0))

    options = Options(method, step=0.004, rtol=1e-9, atol=1e-11)
    (a, lines), (b, loops) = by_both(monkeypatch, make, np.linspace(0, 1, 11), options)
    if method in ("rk4", "dopri5"):
        assert (lines.steps, lines.rejected) == (loops.steps, loops.rejected)
    for name in ("q", "v", "a", "tau", "wrench", "supplied_energy"):
        x, y = getattr(a, name), getattr(b, name)
        # the state's rounding over some hundred steps; implicit methods stop their iterations by a tolerance
        bound = 1e-7 if method == "Radau" else 1e-11
        assert worst(f"runs by lines: {method}", np.abs(x - y).max() / (1 + np.abs(y).max()), name) < bound


@pytest.mark.parametrize("method", ["rk4", "dopri5", "DOP853"])
def test_steps_are_cut_at_switches_of_the_state(pendulum, method, monkeypatch):
    make = lambda: replace(torque(pendulum, "-2*sign(q-0.2)-3*max(v,0)"), q=np.array([0.5]))                  # noqa: E731
    (a, _), (b, _) = by_both(monkeypatch, make, np.linspace(0, 1, 11), Options(method, step=0.01, rtol=1e-9, atol=1e-11))
    np.testing.assert_allclose(a.q, b.q, rtol=0, atol=1e-9)           # times of switches are found to 1e-14 of a step


@pytest.mark.parametrize("method", ["rk4", "dopri5", "RK45"])
@pytest.mark.parametrize("text, initial", [("sqrt(0.55-t)", 0.0), ("50*q*q*q*q*q + 60*q", 3.0)])
def test_errors_are_those_of_the_loops(pendulum, method, text, initial, monkeypatch):
    told = []
    for code in ("auto", "generic"):
        monkeypatch.setenv("LIEDYN_CODE", code)
        with pytest.raises(ComputationError) as error:
            problem = torque(pendulum, text, duration=9.0)
            solve(replace(problem, v=np.array([initial])), np.linspace(0, 9, 5), Options(method, step=0.01))
        told.append(str(error.value))
    assert told[0] == told[1]


def test_a_joint_that_turns_beyond_the_range_of_sines_goes_on_by_loops(pendulum, monkeypatch):
    """At 1e5 rad, generated code returns an error code and the generic kernels continue with the sine of the C library."""
    make = lambda: replace(torque(pendulum, "0"), q=np.array([99_999.0]), v=np.array([100.0]))               # noqa: E731
    (a, lines), (b, loops) = by_both(monkeypatch, make, np.linspace(0, 0.1, 11), Options("rk4", step=1e-3))
    assert a.q[-1, 0] > 1.00005e5 and lines.steps == loops.steps
    np.testing.assert_allclose(a.q, b.q, rtol=1e-14)


def test_a_refusal_is_no_code_of_the_loops(pendulum):
    problem = torque(pendulum, "0")
    (code, _, _), (found, _, _) = both(problem, 0.0, np.array([2e5]), np.zeros(3))
    assert (code, found) == (RUNNING, INVALID_ARGUMENTS)


def test_the_address_is_that_of_plain_pointers(pendulum):
    problem = torque(pendulum, "1+0*t")
    step = generated_rhs(problem.tables())
    arrays = [np.zeros(1), np.array([0.3]), np.array([0.0, 0.2, 0.0]), np.zeros(0), np.zeros(0), step.scenario_values,
              *(np.zeros(n) for n in (1, 1, 1, 1, 0, 3, 2, 0))]
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(arrays))(step.address)
    assert call(*(x.ctypes.data for x in arrays)) == 0
    a = ld.forward_dynamics(pendulum, arrays[1], arrays[2][1:2], np.ones(1))
    np.testing.assert_allclose(arrays[11], [0.2, a[0], 0.2], rtol=1e-14)
