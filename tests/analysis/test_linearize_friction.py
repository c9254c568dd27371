"""Linear systems with rigid friction: the operating point of the run, the slope of sliding friction, joints that stick."""
import numpy as np
import pytest

import liedyn as ld

STICK_SLIP = "configs/stick_slip.yaml"
BELT, STRIBECK, LEVEL, STATIC = 0.1, 0.05, 4.0, 6.0                      # of robots/stick_slip.yaml
INERTIA = [0.001, 0.02, 0.02]


def arm(*frictions, constrained=None):
    links = [ld.Link(f"l{k}", 1.0, com=[0.25, 0, 0], inertia=INERTIA) for k in range(len(frictions))]
    joints = [ld.Joint(f"j{k}", "revolute", f"l{k - 1}" if k else "world", f"l{k}", [0.5 * (k > 0), 0, 0], axis=[0, 1, 0],
                       limits=(-9, 9), friction={"model": "rigid", **friction} if friction else 0.0,
                       mimic=ld.Mimic("j0", multiplier=-0.5) if constrained == k else None)
              for k, friction in enumerate(frictions)]
    return ld.Robot("arm", links=links, joints=joints)


@pytest.mark.parametrize("t, sticks", [(0.0, True), (1.0, True), (1.5, False)])
def test_the_operating_point_is_that_of_the_run(t, sticks):
    """The run up to it used regularized friction: other positions, without a message."""
    run = ld.run_scenario(STICK_SLIP, {"duration": 1.6})
    row = int(np.searchsorted(run.t, t - 1e-9))
    if sticks:
        with pytest.warns(ld.LiedynWarning, match=r"friction holds slip at rest: small inputs do not move it .* \[friction-st"):
            found = ld.linearize_scenario(STICK_SLIP, at=t, outputs="*", verify=True)
    else:
        found = ld.linearize_scenario(STICK_SLIP, at=t, outputs="*", verify=True)
    for name in ("q", "v", "a", "tau"):
        assert getattr(found.here, name) == pytest.approx(getattr(run, name)[row], abs=1e-9)
    assert found.system.inputs == ("a.drive", "tau.slip") and bool(found.system.B[3, 1]) is not sticks
    assert all(comparison.excess < 1e-9 for comparison in found.differences.values())
    assert bool(found.system.moving.any()) is not sticks


def test_friction_that_falls_with_the_speed_makes_steady_sliding_unstable():
    """The block at rest in the world on the moving belt: A = [[0, 1], [-k/m, -f'/m]]. The slope had been left out: stable."""
    rate = BELT / STRIBECK
    slope = 2 * (STATIC - LEVEL) * BELT / STRIBECK**2 * np.exp(-rate**2)
    rest = (LEVEL + (STATIC - LEVEL) * np.exp(-rate**2)) / 50.0
    found = ld.linearize_scenario({"robot": "robots/stick_slip.yaml", "duration": 1.0, "joints": {
        "drive": {"prescribe": {"velocity": BELT}}, "slip": {"torque": "-50*(q(drive) + q(slip))"}},
        "initial": {"q": {"slip": rest}, "v": {"drive": BELT, "slip": -BELT}}}, outputs="*")
    expected = np.roots([2.0, -slope, 50.0])
    assert np.abs(found.here.a).max() < 1e-12 and found.system.stability == "unstable"
    assert np.sort_complex(found.system.poles[:2]) == pytest.approx(np.sort_complex(expected), rel=1e-12)
    model = ld.load("robots/stick_slip.yaml")
    by_state = ld.linearize(model, found.here.q, found.here.v, found.here.tau, a=[0, 0], prescribed=[True, False], outputs="*")
    closed = found.system.A.copy()
    closed[3, :2] = 0.0                                                  # without the spring, which is a law
    np.testing.assert_allclose(by_state.A, closed, atol=1e-12)
    assert by_state.C[by_state.outputs.index("tau.drive")] == pytest.approx(2.0 * by_state.A[3], abs=1e-12)      # carries it


STRIBECK_LOW = {"level": 0.5, "static": 0.9, "stribeck": 0.8}


@pytest.mark.parametrize("frictions, constrained, joints, sticking", [
    (({"level": 40.0}, STRIBECK_LOW, STRIBECK_LOW), None, {}, ["j0"]),
    (({"level": 0.2}, STRIBECK_LOW, {"level": 40.0}), None, {}, ["j2"]),
    (({"level": 0.2}, STRIBECK_LOW, STRIBECK_LOW), 1, {}, []),
    (({"level": 40.0}, STRIBECK_LOW, STRIBECK_LOW), 1, {}, ["j0"]),
    ((STRIBECK_LOW, None, {"level": 40.0}), None, {"j0": {"prescribe": {"velocity": "0.4 + t"}},
                                                   "j1": {"torque": {"pd": {"kp": 5, "kd": 1, "target": 0.3}}}}, ["j2"])])
def test_mixed_modes_agree_with_differences(frictions, constrained, joints, sticking, tmp_path):
    """Accelerations depend on sliding friction, forces of prescribed joints on its slope, those of stuck joints on their laws."""
    ld.save(arm(*frictions, constrained=constrained), tmp_path / "arm.yaml")
    v = {"j0": 0.4 * ("j0" not in sticking), "j1": -0.7, "j2": 0.5 * ("j2" not in sticking)}
    if constrained:
        del v["j1"]
    found = ld.linearize_scenario({"robot": str(tmp_path / "arm.yaml"), "duration": 1.0, "joints": joints,
                                   "initial": {"q": {"j0": 0.3, "j2": 0.8}, "v": v}}, at=0.01, outputs="*", verify=True)
    assert all(comparison.excess < 1e-9 for comparison in found.differences.values()), found.differences
    told = [str(warning) for warning in found.warnings if warning.code == "friction-sticks"]
    assert all(name in " ".join(told) for name in sticking) and bool(told) == bool(sticking)
    model = ld.load(tmp_path / "arm.yaml")
    run = ld.simulate(model, {"joints": joints}, duration=0.01, q0={"j0": 0.3, "j2": 0.8}, v0=v)
    assert found.here.a == pytest.approx(run.a[-1], abs=1e-6) and found.here.tau == pytest.approx(run.tau[-1], abs=1e-6)
    for name in sticking:
        k = found.system.states.index(f"v.{name}") if f"v.{name}" in found.system.states else None
        assert k is None or not (found.system.A[k].any() or found.system.moving[k])


def test_joints_stick_at_an_equilibrium(tmp_path):
    """Also if the run is far from it at that time; the equilibrium itself needs no friction."""
    ld.save(arm({"level": 0.3}, None), tmp_path / "arm.yaml")
    with pytest.warns(ld.LiedynWarning, match="friction holds j0 at rest"):
        found = ld.linearize_scenario({"robot": str(tmp_path / "arm.yaml"), "duration": 1.0,
                                       "initial": {"q": {"j0": 1.4, "j1": 0.2}}}, at=0.02, equilibrium=True, verify=True)
    assert found.here.q == pytest.approx([np.pi / 2, 0.0], abs=1e-8) and np.abs(found.here.a).max() < 1e-9
    assert all(comparison.excess < 1e-9 for comparison in found.differences.values())
    pendulum = found.system.A[np.ix_([1, 3], [1, 3])]
    assert pendulum == pytest.approx(np.array([[0, 1], [-0.25 * 9.81 / (0.02 + 0.25**2), 0]]), rel=1e-9)
    assert not found.system.A[2].any() and found.system.stability == "neutral"
