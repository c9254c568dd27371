"""A control law is an entry of `LAWS` (its keys) and one of `LAW_BINDERS` (what it does), also one that is added from outside."""
from dataclasses import dataclass

import numpy as np
import pytest

import liedyn as ld
from liedyn.io.file_schema import Field, Number
from liedyn.io.scenarios import control_schema
from liedyn.io.scenarios.control_schema import CONTROL, LAWS, ControlLaw, declare_law
from liedyn.io.scenarios.scenario import Control
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.simulation.control.control_law import controlled_coordinates
from liedyn.simulation.control.joint_control import LAW_BINDERS
from liedyn.simulation.control.rigid_joint_laws import setpoint_of, with_feedback

ROBOT = "robots/double_pendulum.yaml"
START = {"q": {"shoulder": 0.4, "elbow": -0.3}}


@dataclass(frozen=True, slots=True)
class Impedance(Control):
    stiffness: float = 0.0
    damping: float = 0.0


def bind_impedance(context, laws):
    """Return springs and dampers to the setpoint, and gravity compensation."""
    control, mask = context.control, controlled_coordinates(context)
    rows, unit = np.flatnonzero(mask), np.eye(context.model.nv)[mask]
    laws = with_feedback(context, laws, rows, np.hstack([control.stiffness * unit, control.damping * unit]), setpoint_of(context),
                         np.zeros(len(rows)))
    return laws._replace(gravity=laws.gravity | (mask & ~context.prescribed))


@pytest.fixture(autouse=True)
def impedance(monkeypatch):
    keys, by_name = CONTROL.keys, dict(CONTROL._by_name)
    monkeypatch.setitem(LAW_BINDERS, "impedance", bind_impedance)
    monkeypatch.setattr(control_schema, "_PLAIN", dict(control_schema._PLAIN))
    declare_law("impedance", ControlLaw(("joints", "setpoint", "stiffness", "damping"), make=Impedance),
                Field("stiffness", Number(minimum=0), "of the springs", required=True, kinds=("impedance",)),
                Field("damping", Number(minimum=0), "of the dampers", 0, kinds=("impedance",)))
    yield
    del LAWS["impedance"]
    object.__setattr__(CONTROL, "keys", keys)
    CONTROL._by_name.clear()
    CONTROL._by_name.update(by_name)


def scenario(**more):
    control = {"law": "impedance", "stiffness": 30.0, "damping": 2.0, "setpoint": {"q": {"elbow": 0.5}}}
    return {"robot": ROBOT, "duration": 0.5, "initial": START, "control": control} | more


def with_pd(**more):
    """Return the same forces by a pd law."""
    pd = lambda target: {"torque": {"pd": {"kp": 30.0, "kd": 2.0, "target": target, "gravity": True}}}     # noqa: E731
    return {"robot": ROBOT, "duration": 0.5, "initial": START, "joints": {"shoulder": pd(0.0), "elbow": pd(0.5)}} | more


@pytest.mark.parametrize("more", [{}, {"saturate": {"*": 5.0}}], ids=["free", "limited"])
def test_an_added_law_moves_the_robot(more):
    run, same = ld.run_scenario(scenario(**more)), ld.run_scenario(with_pd(**more))
    np.testing.assert_allclose(run.q, same.q, atol=1e-9)
    np.testing.assert_allclose(run.tau, same.tau, atol=1e-7)
    assert np.abs(run.tau).max() > 4.0


def test_an_added_law_is_linearized():
    system, same = (ld.linearize_scenario(one).system for one in (scenario(), with_pd()))
    np.testing.assert_allclose(system.A, same.A, atol=1e-9)


def test_keys_of_an_added_law():
    found = scenario_of(scenario())
    assert isinstance(found.control, Impedance) and found.control.damping == 2.0
    assert to_plain(scenario_of(to_plain(found))) == to_plain(found)
    with pytest.raises(ld.ScenarioError, match=r"does not apply to the law gravity_compensation: .*write law: impedance"):
        scenario_of({"robot": ROBOT, "duration": 1, "control": {"law": "gravity_compensation", "stiffness": 1.0}})
    with pytest.raises(ld.ScenarioError, match="stiffness"):
        scenario_of({"robot": ROBOT, "duration": 1, "control": {"law": "impedance", "setpoint": {}}})


def test_each_law_of_scenarios_is_bound():
    """Feedback linearization is for the motors of elastic joints."""
    assert set(LAWS) - {"feedback_linearization"} == set(LAW_BINDERS)
