"""Robots of example-robot-data under the friction and damping of their URDF, by the default method."""
import numpy as np
import pytest

from bridge import file_of
from liedyn.errors import ComputationError, LiedynWarning
from liedyn.simulation.run import run_scenario

SHORT = {"base": "fixed", "duration": 0.5, "output_step": 0.01}


def foreign(recwarn) -> list:
    """Return messages of warnings that are neither of liedyn nor about files of other packages."""
    return [f"{one.category.__name__}: {one.message}" for one in recwarn.list
            if not issubclass(one.category, LiedynWarning | ResourceWarning)]


def stiff_notes(result) -> list[str]:
    return [note for note in map(str, result.warnings) if ", time constant " in note]


@pytest.mark.parametrize("name", ["talos_reduced.urdf", "tiago_no_hand.urdf", "z1.urdf", "allegro_left_hand.urdf"])
def test_a_stiff_robot_by_default_is_right_to_a_thousandth(name, capfd, recwarn):
    """A joint of Talos had 0.279 rad/s instead of 0.0024, with a balance of 8e-4 and no message."""
    default = run_scenario(file_of(name), SHORT)
    converged = run_scenario(file_of(name), SHORT | {"integrator": {"method": "Radau", "rtol": 1e-9, "atol": 1e-11}})
    assert len(stiff_notes(default)) == 1 and default.scenario.integrator.method == "rodas5p"
    for x, y in ((default.q, converged.q), (default.v, converged.v)):
        assert np.abs(x - y).max() < 1e-3 * np.abs(y).max()
    assert foreign(recwarn) == [] and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["rodas5p", "Radau", "BDF"])
def test_talos_falls_on_beyond_the_first_second(method):
    """Radau ended at 0.9 s."""
    tolerances = {"rtol": 1e-6, "atol": 1e-8}
    r = run_scenario(file_of("talos_reduced.urdf"), SHORT | {"duration": 1.2, "integrator": {"method": method, **tolerances}})
    assert r.check["energy_balance_relative"] < 1e-5


def test_talos_by_rk4_is_noted():
    r = run_scenario(file_of("talos_reduced.urdf"), SHORT | {"integrator.method": "rk4"})
    assert len(stiff_notes(r)) == 1 and "not stable" in stiff_notes(r)[0]


@pytest.mark.parametrize("name", ["panda.urdf", "anymal-kinova.urdf", "go2.urdf", "hyq_no_sensors.urdf", "ur10_robot.urdf"])
def test_a_robot_that_rk4_carries_hears_nothing(name):
    r = run_scenario(file_of(name), SHORT)
    assert r.scenario.integrator.method == "rk4" and not stiff_notes(r)


@pytest.mark.parametrize("override", [{}, {"integrator.method": "rk4"}, {"integrator.method": "dopri5"},
                                      {"integrator.method": "LSODA"}], ids=str)
def test_icub_is_told_what_helps_and_it_does(override, capfd, recwarn):
    """Its neck moves no inertia. The message advised dopri5, which failed as well."""
    with pytest.raises(ComputationError, match=r"\(joints\.neck_(roll|yaw)\.prescribe\.velocity=0") as caught:
        run_scenario(file_of("icub.urdf"), SHORT | override)
    joint = str(caught.value).partition("(joints.")[2].partition(".")[0]
    assert run_scenario(file_of("icub.urdf"), SHORT | {f"joints.{joint}.prescribe.velocity": 0}).check["energy_balance"] < 1e-3
    assert foreign(recwarn) == [] and capfd.readouterr() == ("", "")
