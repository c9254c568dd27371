"""Steps whose modes of joints are inputs: compared with runs of scenarios that prescribe these joints, or do not."""
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.codegen.batch_step import CONTRADICTED_MODES
from liedyn.codegen.joint_modes import FREE, PRESCRIBED
from liedyn.integrators.batch_integrator import curve_coefficients
from liedyn.interop.scenario_step import scenario_step
from liedyn.interop.wasm_files import simulation_data, step_module
from liedyn.simulation.preparation import prepare
from wasm_instance import WasmInstance

ROOT = Path(__file__).parents[2]
H, STEPS = 1e-3, 20
SETTINGS = (f"integrator={{method: rk4, step: {H}}}", f"duration={STEPS * H}", f"output_step={STEPS * H}")
LOOPS = (*SETTINGS, "constraints.tolerance=1e-15")


@cache
def traced(config: str, settings: tuple[str, ...]):
    """Return the step of a scenario with modes, and its module."""
    step = scenario_step(prepare(ROOT / f"configs/{config}.yaml", settings), has_modes=True)
    return step, step_module(step)


def simulated(config: str, settings: tuple[str, ...], modes: dict[str, tuple[float, ...]]):
    """Return the code of the last step, and the instance with outputs. modes: numbers by name of the coordinate."""
    step, module = traced(config, settings)
    instance, names = WasmInstance(module), step.problem.model.v_names
    for name, x in simulation_data(step, module)["initial"].items():
        if name in module.sizes and name != "work":
            instance[name] = x
    numbers = step.initial_modes
    for name, x in modes.items():
        numbers[[*step.tables.switchable.v].index(names.index(name))] = x
    instance["modes"] = numbers.reshape(-1)

    def at(h: float, t: float) -> None:
        clock = np.array([[h, t, t + 0.5 * h, t + h]])
        instance["clock"], instance["curves"] = clock, curve_coefficients(step.tables.signals, step.tables.curves, clock)
    for k in range(STEPS):
        at(H, k * H)
        code = instance.run("advance")
        if code:
            return code, instance
    at(0.0, STEPS * H)
    return instance.run("outputs"), instance


def constant(a: float) -> tuple[float, ...]:
    return PRESCRIBED, a, 0.0, 0.0


IS_FREE = (FREE, 0.0, 0.0, 0.0)
SHIP = {f"base.{axis}": constant(x) for axis, x in zip(("wx", "wy", "wz", "vx", "vy", "vz"), (0, 2, 0, 0.5, 0, 1), strict=True)}
# configuration, settings, modes, changes of the scenario that say the same
CASES = {
    "scenario": ("panda_hybrid", SETTINGS, {}, ()),
    "free joint": ("panda_hybrid", SETTINGS, {"panda_joint4": constant(-3.0), "panda_joint6": constant(2.0)},
                   ("joints.panda_joint4={prescribe: {acceleration: -3}}", "joints.panda_joint6={prescribe: {acceleration: 2}}")),
    "prescribed joints": ("panda_hybrid", SETTINGS, {"panda_joint2": IS_FREE, "panda_joint3": IS_FREE},
                          ("joints.panda_joint2={torque: 0}", "joints.panda_joint3={torque: 0}")),
    "crank of a loop": ("four_bar", LOOPS, {"crank": IS_FREE}, ("joints.crank={torque: 0}", "initial.guess=null")),
    "leader of a coupling": ("gripper", LOOPS, {"left_crank": constant(4.0)},
                             ("joints.left_crank={prescribe: {acceleration: 4}}",)),
    "base": ("tennis_racket", SETTINGS, SHIP, ("joints.base={prescribe: {acceleration: [0, 2, 0, 0.5, 0, 1]}}",)),
    "a base with velocities, and long chains": ("hexarotor_circle", SETTINGS, {"left_1": IS_FREE},
                                                ("joints.left_1={torque: 0}",)),
    "contacts": ("quadruped_stands", SETTINGS, {"FL_hip": constant(1.0)}, ("joints.FL_hip={prescribe: {acceleration: 1}}",)),
}


@pytest.mark.filterwarnings("ignore:.*after the end of the run")
@pytest.mark.parametrize("case", CASES)
def test_switched_joints_move_as_in_a_scenario_that_says_so(case, worst):
    """Also the forces of prescribed joints, and from states on prescribed motions."""
    config, settings, modes, changes = CASES[case]
    start, model = traced(config, settings)[0].problem, traced(config, settings)[0].problem.model
    initial = [f"initial.{name}={{{', '.join(f'{joint.name}: {x[at(joint)].tolist()}' for joint in model.joints)}}}"
               for name, x, at in (("q", start.q, lambda joint: joint.q), ("v", start.v, lambda joint: joint.v))]
    expected = ld.run_scenario(ROOT / f"configs/{config}.yaml", (*settings, *changes, *initial))
    code, computed = simulated(config, settings, modes)
    assert code == 0
    for name in ("q", "v", "a", "tau"):
        x = getattr(expected, name)[-1]
        error = np.abs(computed[name] - x).max() / max(1.0, np.abs(x).max())
        # projections do not move the crank in a scenario that prescribes it
        assert worst("steps with modes", error, f"{case}, {name}") < (1e-10 if "crank" in modes else 1e-12)
    assert not changes or np.abs(computed["q"] - simulated(config, settings, {})[1]["q"]).max() > 1e-8


def test_prescribed_accelerations_may_depend_on_the_state():
    numbers = PRESCRIBED, 5.0, 40.0, 3.0
    code, computed = simulated("panda_hybrid", SETTINGS, {"panda_joint7": numbers})
    k = traced("panda_hybrid", SETTINGS)[0].problem.model.v_names.index("panda_joint7")
    assert code == 0 and computed["a"][k] == pytest.approx(5.0 - 40.0 * computed["q"][k] - 3.0 * computed["v"][k], rel=1e-14)


def test_loops_do_not_move_where_too_many_joints_are_prescribed():
    """A four-bar has one degree of freedom: two joints cannot have accelerations that contradict each other."""
    assert simulated("four_bar", LOOPS, {"crank": IS_FREE, "rocker": constant(1.0)})[0] == 0
    assert simulated("four_bar", LOOPS, {"crank": constant(0.0), "rocker": constant(1.0)})[0] == CONTRADICTED_MODES
    all_joints = {name: constant(1.0) for name in ("crank", "knee", "rocker")}
    assert simulated("four_bar", LOOPS, all_joints)[0] == CONTRADICTED_MODES


@pytest.mark.parametrize("config, reasons", [
    ("gripper", {"right_crank": "it follows other joints"}),
    ("panda_on_ship", {"base.wx": "the scenario prescribes its pose"}),
    ("panda_hybrid", {}),
])
def test_coordinates_that_cannot_switch_have_a_reason(config, reasons):
    step, _ = traced(config, LOOPS if config == "gripper" else SETTINGS)
    names = step.problem.model.v_names
    assert {names[k]: reason for k, reason in step.fixed.items() if names[k] in reasons or not reasons} == reasons
    assert sorted([*step.fixed, *step.tables.switchable.v]) == [*range(len(names))]
