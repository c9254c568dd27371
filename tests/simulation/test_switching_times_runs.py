"""Runs whose forces jump or have kinks, at times and at states, against closed forms."""
import math
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld

ROOT = Path(__file__).parents[2]
METHODS = ("rk4", "dopri5", "dop853", "rodas5p", "RK45", "DOP853", "Radau", "BDF", "LSODA", "generalized_alpha")


@pytest.fixture(autouse=True, params=["auto", "generic"])
def code(request, monkeypatch):
    """Use generated code, then generic kernels."""
    monkeypatch.setenv("LIEDYN_CODE", request.param)


BOX = """
links:
  body: {mass: 1.0, inertia: [1, 1, 1]}
joints:
  x: {type: prismatic, parent: world, child: body, axis: [1, 0, 0],
      limits: {lower: -99, upper: 99, velocity: 99, effort: 99}}
"""


@pytest.fixture
def run(tmp_path):
    """Return a mass of 1 kg on a rail under a force."""
    (tmp_path / "box.yaml").write_text(BOX)

    def run(force, *overrides, method="dopri5", duration=10, initial="{}"):
        path = tmp_path / "run.yaml"
        path.write_text(f"robot: box.yaml\ngravity: [0, 0, 0]\nduration: {duration}\noutput_step: 0.5\ninitial: {initial}\n"
                        f"joints: {{x: {{torque: '{force}'}}}}\n")
        return ld.run_scenario(path, [f"integrator.method={method}", *overrides])
    return run


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("force, impulse", [("step(t-2.0003)-step(t-2.3003)", 0.3),
                                            ("1000*(step(t-2.0003)-step(t-2.0004))", 0.1)])
def test_pulses_are_not_jumped_over(run, method, force, impulse):
    """The pulse's impulse to the rounding of its ends, 4e-16 s at 1000 N, and of ten thousand steps; the energy balance holds."""
    result = run(force, method=method)
    assert abs(result.v[-1, 0] - impulse) < 1e-11
    assert abs(result.work[-1] - 0.5 * impulse**2) < 1e-4 * impulse**2       # of BDF, whose order begins anew at a break
    assert not result.warnings and result.check["energy_balance_relative"] < 1e-4


def test_switches_that_are_too_many_are_told(run):
    result = run("sign(sin(1e5*t))", duration=2)
    assert len(result.warnings) == 1 and "torque of x has more switching times than can be located" in str(result.warnings[0])


def sine_from_a_time(t, t0=0.4321):
    s = t - t0
    return s * math.cos(3 * t0) / 3 - (math.sin(3 * t) - math.sin(3 * t0)) / 9, (math.cos(3 * t0) - math.cos(3 * t)) / 3


def softening_spring(t):
    """-4 q up to 0.5, then a constant force, from v = 2 at q = 0: it goes out and has not come back at t."""
    t0 = math.asin(0.5) / 2
    s, v = t - t0, 2 * math.cos(2 * t0)
    return 0.5 + v * s - s * s, v - 2 * s


def dry_friction(t):
    """x'' = -9 x - sign(v) from rest at 1: a half swing about 1/9, then one about -1/9."""
    s = 3 * (t - math.pi / 3)
    return -1 / 9 - 6 / 9 * math.cos(s), 2 * math.sin(s)


def second_spring(t):
    """x'' = -9 x, less 5 more beyond 0.3, from v = 3 at 0."""
    t0 = math.asin(0.3) / 3
    s, a, b = 3 * (t - t0), 0.3 + 5 / 9, math.cos(3 * t0)
    return -5 / 9 + a * math.cos(s) + b * math.sin(s), 3 * (b * math.cos(s) - a * math.sin(s))


BREAKS = {"sine from a time": ("sin(3*t)*step(t-0.4321)", "{}", 1.0, sine_from_a_time),
          "softening spring": ("-4*clip(q, -0.5, 0.5)", "{v: {x: 2}}", 1.0, softening_spring),
          "dry friction": ("-9*q-sign(v)", "{q: {x: 1}}", 1.5, dry_friction),
          "second spring": ("-9*q-5*step(q-0.3)", "{v: {x: 3}}", 0.5, second_spring)}


@pytest.mark.parametrize("case", BREAKS)
@pytest.mark.parametrize("method, order", [("rk4", 4), ("dopri5", 5), ("dop853", 8)])
def test_methods_keep_their_order_across_breaks(run, method, order, case):
    """Steps of a quarter: the error falls by 4^order, less a half in the exponent, since cut steps are of other lengths; or
    to rounding."""
    force, initial, duration, motion = BREAKS[case]
    errors = []
    for h in (0.4, 0.1) if order == 8 else (0.1, 0.025):
        steps = [f"integrator.step={h}"] if method == "rk4" else [
            f"integrator.max_step={h}", "integrator.rtol=0.1", "integrator.atol=0.1"]
        result = run(force, *steps, f"output_step={duration}", method=method, duration=duration, initial=initial)
        x, v = motion(duration)
        errors.append(abs(result.q[-1, 0] - x) + abs(result.v[-1, 0] - v))
    assert errors[1] * 4**(order - 0.5) < errors[0] or errors[1] < 1e-13


@pytest.mark.parametrize("method", METHODS[:-1])
@pytest.mark.parametrize("case", BREAKS)
def test_steps_are_cut_where_the_state_switches(run, method, case):
    """To what tolerances of 1e-8 a step add up to (5e-7 of BDF); a step across a break would be 3e-4 off. Nothing is said."""
    force, initial, duration, motion = BREAKS[case]
    result = run(force, method=method, duration=duration, initial=initial)
    np.testing.assert_allclose([result.q[-1, 0], result.v[-1, 0]], motion(duration), rtol=0, atol=3e-6)
    assert not result.warnings and result.check["energy_balance_relative"] < 1e-5


@pytest.mark.parametrize("method", METHODS[:-1])
def test_switches_at_the_start_take_the_side_of_the_motion(run, method):
    """From rest on the switch: -2 - sign(v) pushes back, 1 + floor(q) continues by 1 and then by 2."""
    result = run("-2-sign(v)", method=method, duration=1)
    np.testing.assert_allclose([result.q[-1, 0], result.v[-1, 0]], [-0.5, -1.0], rtol=0, atol=1e-8)
    s, t0 = 1.5 - math.sqrt(2), math.sqrt(2)
    result = run("1+floor(q)", method=method, duration=1.5)
    np.testing.assert_allclose([result.q[-1, 0], result.v[-1, 0]], [1 + t0 * s + s * s, t0 + 2 * s], rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "RK45"])
def test_sticking_does_not_cut_for_ever(run, method):
    """Pulled by half of the friction, the mass stops at t = 2 and q = 1 and remains there to first order in the step."""
    result = run("0.5-sign(v)", method=method, duration=3, initial="{v: {x: 1}}")
    assert abs(result.q[-1, 0] - 1) < 2e-3 and abs(result.v[-1, 0]) < 2e-3
    assert "the torque of x switches too often from t = 2 s (sticking" in str(result.warnings[0])
    assert all("creep" in note for note in map(str, result.warnings[1:]))


@pytest.mark.parametrize("method", ["rk4", "dopri5", "RK45"])
def test_many_switches_that_follow_each_other_are_all_cut(run, method):
    """A force quantized by millimetres, 0.01 N for each that is behind, passed at 1 m/s: its work is a sum."""
    result = run("-0.01*floor(1000*q)", method=method, duration=0.5, initial="{v: {x: 1}}")
    n = int(1000 * result.q[-1, 0])
    work = -1e-5 * n * (n - 1) / 2 - 0.01 * n * (result.q[-1, 0] - n / 1000)
    assert abs(result.work[-1] - work) < 1e-9 and n > 250 and not result.warnings


def test_a_switch_of_a_mechanism_is_cut(tmp_path):
    """A closed loop under a force that begins at an angle: with half the steps, 15 times less is lost of the energy, as rk4 does
    where nothing switches."""
    path = tmp_path / "run.yaml"
    path.write_text(f"robot: {ROOT / 'robots' / 'four_bar.yaml'}\nduration: 1\n"
                    "initial: {q: {knee: -1.3694, rocker: -1.7722}, v: {crank: 4}}\n"
                    "joints: {crank: {torque: '0.02*step(q-0.6)-0.004*abs(q(rocker)+1.5)'}}\n")
    lost = [ld.run_scenario(path, ["integrator.method=rk4", f"integrator.step={h}"]).check["energy_balance_relative"]
            for h in (1e-3, 5e-4)]
    assert lost[1] < 1e-6 and lost[1] * 2**3.5 < lost[0]
