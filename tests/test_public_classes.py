"""All public classes, and all that public functions return: pickled, copied, compared, and read-only."""
import copy
import dataclasses
import inspect
import pickle
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.immutable import Immutable, same
from loop_zoo import n_bar

ARM = """
gravity: [0, -9.81, 0]
links:
  upper: {mass: 1, com: [0.5, 0, 0], inertia: [0.1, 0.1, 0.1]}
  lower: {mass: 1, com: [0.5, 0, 0], inertia: [0.1, 0.1, 0.1]}
joints:
  one: {type: revolute, parent: world, child: upper, axis: [0, 0, 1], limits: {lower: -3, upper: 3}}
  two: {type: revolute, parent: upper, child: lower, origin: {xyz: [1, 0, 0]}, axis: [0, 0, 1], limits: {lower: -3, upper: 3}}
"""
Q, V, REST = np.array([0.3, 0.2]), np.array([0.1, -0.2]), np.zeros(2)
EVENTS = {"low": {"when": "q(one)", "value": 0.29, "do": "record"}}


@pytest.fixture(autouse=True, scope="module")
def generated_code():
    """Adjoints and events of rollouts need it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIEDYN_CODE", "auto")
        yield


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("public") / "arm.yaml"
    path.write_text(ARM)
    return path


@cache
def model_of(path):
    return ld.load(path)


@cache
def bars():
    """A four-bar linkage in a closed configuration."""
    model, q = n_bar(4)
    return model, q, np.zeros(4)


def swept():
    """A sweep of a four-bar linkage with a dead centre."""
    model = ld.load(Path(__file__).parents[1] / "robots" / "four_bar.yaml")
    return ld.kinematic_sweep(model, "crank", [0.7, 0.8], driven=["rocker"])


def raised(call):
    try:
        call()
    except ld.LiedynError as error:
        return error
    raise AssertionError


def scenario(path) -> dict:
    return {"robot": str(path), "duration": 0.05, "output_step": 0.01, "initial": {"q": {"one": 0.3}},
            "contacts": {"links": {"lower": {"sphere": {"radius": 0.01}}},
                         "planes": {"ground": {"point": [0, -5, 0], "normal": [0, 1, 0]}}}, "events": EVENTS, "limits": "stop"}


def rollout(path, **more):
    return ld.rollout(model_of(path), [Q, Q + 0.1], REST, dt=1e-3, steps=3, **more)


def recorded(path):
    """A motion with its generalized forces."""
    model, t = model_of(path), np.linspace(0, 2, 201)
    q = np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)
    motion = ld.motion_of(model, ld.trajectory_of(model, t, q))
    return model, t, q, ld.inverse_dynamics(model, motion.q, motion.v, motion.a), motion


def described() -> ld.Robot:
    """A robot with every element of a description."""
    links = [ld.Link("a", shape=ld.Shape.box(0.1, 0.2, 0.3), density=1000), ld.Link("b", 1.0, [0, 0, 1], np.eye(3)),
             ld.Link("c", 1)]
    joints = [ld.Joint("one", "revolute", "world", "a", axis=np.array([0, 0, 1]), limits=[-1, 1], damping=0.1),
              ld.Joint("two", "prismatic", "a", "b", [0, 0, 1], axis=(1, 0, 0), mimic=ld.Mimic("one", 2)),
              ld.Joint("three", "revolute", "b", "c", ld.Pose(np.eye(3), [0, 0, 1]), [[0, 0, 1]], armature=0.1)]
    return ld.Robot("described", links, joints, actuators=[ld.Actuator("rotor", "c", [0, 0, 1])],
                    loops=[ld.Loop("rod", "distance", "world", "c", length=0.5)],
                    couplings=[ld.Coupling("gear", {"one": 1, "three": 2})], keyframes=[ld.Keyframe("bent", {"one": 0.5})])


# class -> one or more of its objects, from the path of the robot file
EXAMPLES = {
    "Actuator": lambda p: described().actuators,
    "ArgumentError": lambda p: raised(lambda: ld.mass_matrix(p, Q)),
    "Assembly": lambda p: ld.assemble(bars()[0], bars()[1]),
    "BalanceDerivatives": lambda p: ld.balance_derivatives(*bars(), np.zeros(4), np.zeros(6)),
    "BaseParameters": lambda p: ld.base_parameters(model_of(p)),
    "CheckFailed": lambda p: ld.CheckFailed("not as it should be"),
    "ClosedForm": lambda p: ld.closed_form(model_of(p), Q),
    "ComputationError": lambda p: raised(lambda: ld.simulate(model_of(p), duration=1, tau={"one": "1e4*exp(300*t)"})),
    "ConfigurationError": lambda p: raised(lambda: ld.mass_matrix(model_of(p), [0.1, np.nan])),
    "ConsistentParameters": lambda p: ld.consistent_parameters(ld.identify(*recorded(p)[:4])),
    "ConstrainedForwardDerivatives": lambda p: ld.constrained_forward_derivatives(*bars(), np.zeros(4)),
    "ConstrainedHybridDerivatives": lambda p: ld.constrained_hybrid_derivatives(
        *bars(), np.zeros(4), np.zeros(4), [True, False, False, False]),
    "ConstrainedInverse": lambda p: ld.constrained_inverse_dynamics(*bars(), np.zeros(4), ["pin0"]),
    "ConstrainedInverseDerivatives": lambda p: ld.constrained_inverse_derivatives(*bars(), np.zeros(4), ["pin0"]),
    "ConstrainedMotion": lambda p: (ld.constrained_forward_dynamics(*bars(), np.zeros(4)),
                                    ld.constrained_forward_dynamics(bars()[0], bars()[1][None], *np.zeros((2, 1, 4)))),
    "Coupling": lambda p: described().couplings,
    "CurveJoint": lambda p: (ld.curve_joint("knee", "thigh", "shank", "pitch", {"x": "-0.012*sin(q)"}),),
    "ElementForces": lambda p: ld.element_forces(model_of(p), Q, V),
    "EnergyRegressor": lambda p: ld.energy_regressor(model_of(p), Q, V),
    "Equilibrium": lambda p: ld.find_equilibrium(model_of(p), [-1.5, 0.1]),
    "Feedback": lambda p: ld.Feedback.pd([1.0, 2.0], [1.0, 2.0], Q),
    "ForwardDerivatives": lambda p: ld.forward_dynamics_derivatives(model_of(p), Q, V, REST),
    "Gain": lambda p: ld.linearize(model_of(p), Q, V, REST).lqr(1.0, 1.0),
    "HybridDerivatives": lambda p: ld.hybrid_dynamics_derivatives(model_of(p), Q, V, REST, REST, np.array([True, False])),
    "Identification": lambda p: ld.identify(*recorded(p)[:4]),
    "InertialParameters": lambda p: ld.inertial_parameters(model_of(p)),
    "InputError": lambda p: raised(lambda: ld.run_scenario({"robot": str(p), "duration": -1})),
    "ForceElement": lambda p: (ld.ForceElement("spring", "spring", "world", "lower", stiffness=2.0),),
    "InverseKinematics": lambda p: ld.inverse_kinematics(model_of(p), {model_of(p).link_names[-1]: [9.0, 0.0, 0.0]}, Q),
    "InverseDerivatives": lambda p: ld.inverse_dynamics_derivatives(model_of(p), Q, V, REST),
    "Joint": lambda p: described().joints,
    "Excitation": lambda p: ld.excite(model_of(p), velocity=2.0, noise=0.1, harmonics=2, starts=1),
    "Move": lambda p: ld.plan_move(model_of(p), {"two": 0.5}, acceleration=2.0),
    "Keyframe": lambda p: described().keyframes,
    "KinematicSweep": lambda p: swept(),
    "KimTables": lambda p: ld.kim_tables(model_of(p), Q, V),
    "LiedynError": lambda p: ld.LiedynError("wrong"),
    "LiedynWarning": lambda p: ld.LiedynWarning("stiff-step", "suspicious"),
    "LinearSystem": lambda p: ld.linearize(model_of(p), Q, V, REST),
    "Linearization": lambda p: ld.linearize_scenario(scenario(p) | {"events": {}}, equilibrium=False, verify=True),
    "Link": lambda p: described().links,
    "Loop": lambda p: described().loops,
    "Mimic": lambda p: described().joints[1].mimic,
    "Mobility": lambda p: ld.mobility(bars()[0], bars()[1]),
    "Model": lambda p: (model_of(p), bars()[0]),
    "ModelError": lambda p: raised(lambda: ld.load(p.with_name("none.yaml"))),
    "NameLookupError": lambda p: raised(lambda: model_of(p).q_index("on")),
    "Plan": lambda p: ld.plan(model_of(p), "mass_matrix"),
    "Pose": lambda p: described().joints[2].origin,
    "RecordedMotion": lambda p: recorded(p)[4],
    "Result": lambda p: (ld.run_scenario(scenario(p)), ld.simulate(model_of(p), duration=0.01, rate=1000.0,
                                                                  tau=lambda t, q, v: -q)),
    "Robot": lambda p: (ld.load_description(p), described()),
    "Rollout": lambda p: (rollout(p), rollout(p, events=EVENTS, feedback=ld.Feedback.pd(1, V, Q)),
                          rollout(p, tau=lambda t, q, v: -q), ld.rollout(ld.Variants([model_of(p)] * 2), Q, V, dt=1e-3, steps=2),
                          rollout(p, forces=True, every=2), rollout(p, contacts=scenario(p)["contacts"])),
    "RolloutAdjoint": lambda p: rollout(p).adjoint(np.ones((2, 4, 2)), parameters=["mass.upper"]),
    "TimeVaryingGain": lambda p: ld.tvlqr(rollout(p), 1.0, 1.0),
    "LinearSteps": lambda p: rollout(p).linearize(),
    "RolloutDerivatives": lambda p: ld.rollout_derivatives(model_of(p), Q, V, dt=1e-3, steps=3),
    "RolloutEvents": lambda p: ld.rollout(model_of(p), Q, REST, dt=1e-2, steps=9, events=EVENTS).events,
    "ScenarioError": lambda p: raised(lambda: ld.run_scenario({"robot": str(p), "duration": -1})),
    "SecondDerivatives": lambda p: ld.inverse_dynamics_second_derivatives(model_of(p), Q, V, REST),
    "ShapeError": lambda p: raised(lambda: ld.mass_matrix(model_of(p), [0.1])),
    "SpatialClosedForm": lambda p: ld.spatial_closed_form(model_of(p), Q),
    "Shape": lambda p: described().links[0].shapes,
    "Symbolic": lambda p: ld.symbolic(model_of(p), "mass_matrix"),
    "Task": lambda p: ld.Task(link="tip", position=[1.0, 0.0, 0.0]),
    "SplitDerivatives": lambda p: EXAMPLES["HybridDerivatives"](p).split(),
    "StateBlocks": lambda p: (ld.StateBlocks.of(np.ones((5, 2))), ld.StateBlocks.of(np.ones((20, 2, 3)), "float32")),
    "Stepper": lambda p: (ld.Stepper(model_of(p), 1e-3), ld.Stepper(ld.Variants([model_of(p)] * 2), 1e-3)),
    "Trajectory": lambda p: ld.trajectory_of(model_of(p), [0.0, 0.1], [Q, Q]),
    "TrajectoryError": lambda p: raised(lambda: ld.motion_of(model_of(p), ld.Trajectory({}, [0.0], {"q.two": [0.0]}, {}))),
    "UsageError": lambda p: raised(lambda: rollout(p, prescribed=[1, 2])),
    "Variants": lambda p: ld.Variants([model_of(p), model_of(p).with_changes(mass={"upper": 2.0})]),
    "Warmup": lambda p: ld.Warmup((), "folder", 1, 2),
    "SpecialPosition": lambda p: swept().special_positions,
    "SavedPlots": lambda p: ld.write_run(ld.simulate(model_of(p), duration=0.01), p.with_name("run"), plots=False, force=True),
}


ON_A_DEVICE = {"DeviceModel"}                          # it has no copies; see tests/interop/test_devices.py


def classes() -> set[str]:
    """Public classes, and those of the package that public functions return."""
    public = {name: getattr(ld, name) for name in ld.__all__}
    found = {name for name, one in public.items() if inspect.isclass(one)}
    for one in public.values():
        if inspect.isfunction(one):
            module = inspect.unwrap(one).__globals__
            for word in re.findall(r"\w+", str(one.__annotations__["return"])):
                kind = module.get(word)
                if inspect.isclass(kind) and kind.__module__.startswith("liedyn"):
                    found.add(word)
    return found


def examples(name, path) -> tuple:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.LiedynWarning)
        made = EXAMPLES[name](path)
    return made if type(made) is tuple else (made,)


def equal(x, y) -> bool:
    if x is y:
        return True
    if isinstance(x, BaseException):
        return str(x) == str(y) and x.args == y.args and vars(x).keys() == vars(y).keys()
    if isinstance(x, (list, tuple)):
        return len(x) == len(y) and all(map(equal, x, y))
    if type(x).__eq__ is not object.__eq__:
        return same(x, y)
    if isinstance(x, ld.ConstrainedMotion):
        return same(tuple(x), tuple(y))
    return vars(x).keys() == vars(y).keys() and all(equal(one, vars(y)[name]) for name, one in vars(x).items())


def test_every_public_class_has_an_example():
    assert classes() - ON_A_DEVICE == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_objects_can_be_pickled_and_copied_and_are_equal_then(name, arm):
    for one in examples(name, arm):
        for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
            assert type(one) in type(other).__mro__ or name == "ConstrainedMotion"
            assert equal(one, other) and equal(other, one)
            assert repr(other) == repr(one) or name in ("Variants", "KimTables")
            if type(one).__hash__ is not None and isinstance(one, Immutable):
                assert hash(one) == hash(other)


TABLES = {"BaseParameters", "InertialParameters", "Identification", "Result", "Symbolic"}    # of several lines, or a formula


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not name.endswith("Error") and name != "CheckFailed"])
def test_representations_are_summaries_without_the_numbers_of_arrays(name, arm):
    """One line each: not the fields of a dataclass, with defaults, places in files and numbers in full."""
    for one in examples(name, arm):
        assert "array(" not in repr(one) and "Place(" not in repr(one)
        assert name in TABLES or re.fullmatch(r"<.{,220}>", repr(one)), repr(one)


def test_representations_have_values_that_are_not_defaults():
    robot = described()
    assert [*map(repr, robot.joints[:2])] == [
        "<Joint one: type revolute, parent world, child a, axes ((0, 0, 1)), coordinates 1>",
        "<Joint two: type prismatic, parent a, child b, origin <Pose: translation (0, 0, 1)>, axes ((1, 0, 0)), "
        "mimic <Mimic: joint one, multiplier 2>>"]
    assert repr(robot.joints[0].coordinates[0]) == "<Coordinate: lower -1, upper 1, damping 0.1>"
    assert repr(robot.keyframes[0]) == "<Keyframe bent: q ((one, (0.5)))>" and repr(ld.Pose()) == "<Pose>"


def arrays_of(x, where=""):
    """All arrays within, by where they are; those that are computed when they are asked for, too."""
    if isinstance(x, np.ndarray):
        yield where, x
    elif isinstance(x, dict):
        for name, one in x.items():
            yield from arrays_of(one, f"{where}[{name!r}]")
    elif type(x) in (tuple, list):
        for k, one in enumerate(x):
            yield from arrays_of(one, f"{where}[{k}]")
    elif isinstance(x, Immutable):
        cached = [name for name in dir(type(x)) if hasattr(getattr(type(x), name), "func")]
        names = [one.name for one in dataclasses.fields(x) if one.name not in ("_cache", "_arrays", "single_calls")]
        for name in names + cached:
            yield from arrays_of(getattr(x, name), f"{where}.{name}")


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not name.endswith("Error")])
def test_arrays_are_read_only_also_after_unpickling_and_copying(name, arm):
    """But those of named tuples, which nothing but the caller holds, and of KimTables, which are there to be changed."""
    for one in examples(name, arm):
        for through in (lambda x: x, lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy):
            for where, x in arrays_of(through(one)):
                assert not x.flags.writeable, f"{name}{where}"


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not name.endswith("Error")])
def test_objects_with_arrays_are_immutable(name, arm):
    for one in examples(name, arm):
        if isinstance(one, Immutable):
            with pytest.raises(dataclasses.FrozenInstanceError):
                one.anything = 1
        elif any(isinstance(x, np.ndarray) for x in getattr(one, "__dict__", {}).values()):
            assert name in ("KimTables", "Variants", "Stepper"), "its class is no Immutable"


def test_an_unpickled_rollout_gives_the_same_adjoint_contacts_and_notes(arm):
    law = ld.Feedback.pd([10.0, 20.0], [1.0, 2.0], Q)
    run = rollout(arm, feedback=law, contacts=scenario(arm)["contacts"])
    other = pickle.loads(pickle.dumps(run))
    d_q = np.random.default_rng(0).standard_normal((2, 4, 2))
    assert other.adjoint(d_q, parameters=["mass.lower"]) == run.adjoint(d_q, parameters=["mass.lower"])
    assert other.contacts == run.contacts and other.warnings == run.warnings
    policy = pickle.loads(pickle.dumps(rollout(arm, tau=lambda t, q, v: -q)))
    with pytest.raises(ld.UsageError, match="has no derivatives of a policy"):
        policy.adjoint()


def test_equality_is_that_of_the_content(arm):
    run, again = rollout(arm), rollout(arm)
    assert run == again and run != rollout(arm, every=2) and run != "rollout"
    nan = dataclasses.replace(run, ended_at=np.array([np.nan, 1.0]))
    assert nan == dataclasses.replace(run, ended_at=np.array([np.nan, 1.0])) and nan != run
    assert {run: 1}[again] == 1


def test_an_interrupted_run_can_be_pickled():
    from liedyn.errors import Interrupted
    other = pickle.loads(pickle.dumps(Interrupted(2, 0.5)))
    assert str(other) == "interrupted at t = 0.5 s" and other.exit_status == 130
