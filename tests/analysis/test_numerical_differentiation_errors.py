"""Results from positions alone: how far they are off is estimated and told, whichever the command."""
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.analysis.numerical_differentiation import named_first
from liedyn.analysis.trajectory_derivatives import derivatives_along
from liedyn.analysis.trajectory_dynamics import dynamics_along
from liedyn.io.trajectory_csv import read_trajectory
from sampled_motion import motion, noisy, record

ROOT = Path(__file__).parents[2]
T = np.arange(400) * 0.01
COMMANDS = {
    "inverse": lambda model, file: dynamics_along(model, file, "inverse"),
    "forward": lambda model, file: dynamics_along(model, file, "forward"),
    "hybrid": lambda model, file: dynamics_along(model, file, "hybrid", [model.joint_names[-1]]),
    "derivatives": lambda model, file: derivatives_along(model, file),
    "derivatives of forward dynamics": lambda model, file: derivatives_along(model, file, of="forward"),
}


@pytest.fixture(scope="module")
def ur5():
    return ld.load(ROOT / "robots/ur5_gripper.yaml")


def swinging(model, t=T):
    """Return q, v, a and tau of a smooth motion."""
    q, v = motion(model, t, 2)
    return {"q": q, "v": v[:, 0], "a": v[:, 1], "tau": ld.inverse_dynamics(model, q, v[:, 0], v[:, 1])}


def file_of(tmp_path, model, t=T, noise=0.0, kinds=("q", "tau"), **changed):
    given = {**swinging(model, t), **changed}
    given["q"] = noisy(model, given["q"], noise)
    return read_trajectory(record(tmp_path / "motion.csv", model, t, **{kind: given[kind] for kind in kinds}))


def told(along) -> tuple[str, float, str]:
    """Return the column, its estimated error and its unit that a message states."""
    note = next(note for note in map(str, along.warnings) if note.startswith("estimated error"))
    found = re.match(r"estimated error of the worst column: (\S+) (?:[\d.e+-]+%|50% or more) \(([\d.e+-]+) ([^)]*)\)", note)
    return found[1], float(found[2]), found[3]


@pytest.mark.parametrize("command", COMMANDS)
def test_noise_of_positions_alone_is_told(ur5, tmp_path, command):
    """Noise of a milliradian at 100 Hz becomes an error of hundreds of N m after differentiation."""
    along = COMMANDS[command](ur5, file_of(tmp_path, ur5, noise=1e-3))
    assert any(x.startswith("NOT RELIABLE: ") and "noise of the rows is amplified" in x for x in map(str, along.warnings))


def test_all_columns_that_are_off_are_named(ur5, tmp_path):
    """Noise of a milliradian affects all torques of the arm; a kink of one joint affects the two torques that depend on it."""
    *_, note = map(str, dynamics_along(ur5, file_of(tmp_path, ur5, noise=1e-3), "inverse").warnings)
    assert note.startswith("NOT RELIABLE: ") and note.count(", error ") == note.count("; tau.") + 1 == ur5.nv
    assert all(f"tau.{name}, error " in note for name in ur5.v_names)
    q = swinging(ur5)["q"]
    q[:, :2] = np.abs(T % 1.0 - 0.5)[:, None]
    warnings = list(map(str, dynamics_along(ur5, file_of(tmp_path, ur5, q=q), "inverse").warnings))
    assert all(any(note.startswith("NOT RELIABLE: ") and f"tau.{name}, error " in note for note in warnings)
               for name in ur5.v_names[:2])


def test_columns_of_a_jacobian_are_counted():
    named = named_first([f"column {k}" for k in range(30)])
    assert named.startswith("column 0; column 1; ") and named.endswith("; column 23; and 6 more")
    assert named_first(["a", "b"]) == "a; b"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("robot", ["ur5_gripper", "hexarotor_arms"])
def test_clean_positions_are_no_alarm(tmp_path, robot, command):
    model = ld.load(ROOT / f"robots/{robot}.yaml")
    along = COMMANDS[command](model, file_of(tmp_path, model))
    assert sum(note.startswith("estimated error") for note in map(str, along.warnings)) == 1
    assert not any("NOT RELIABLE" in note for note in map(str, along.warnings)), along.warnings


@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-3])
def test_the_error_that_is_told_is_the_error(ur5, tmp_path, noise):
    """The estimate is within a factor of two of the error: it comes from one sample of noise over 400 rows."""
    true = swinging(ur5)["tau"]
    along = dynamics_along(ur5, file_of(tmp_path, ur5, noise=noise), "inverse")
    name, error, unit = told(along)
    found = {column: x for column, _, x in along.columns}[name]
    actual = np.sqrt(np.mean((found - true[:, ur5.v_names.index(name[4:])])[3:-3] ** 2))
    assert unit == "N m" and actual / 2 < error < 2 * actual
    assert any(warning.message.endswith("use --smooth auto, or give measured derivatives as columns")
               for warning in along.warnings) == (noise > 1e-5)


def test_accelerations_from_noisy_velocities_are_told(ur5, tmp_path):
    v = swinging(ur5)["v"] + 0.05 * np.random.default_rng(0).standard_normal((len(T), ur5.nv))
    along = dynamics_along(ur5, file_of(tmp_path, ur5, kinds=("q", "v"), v=v), "inverse")
    assert str(along.warnings[0]).startswith("accelerations are derived from the velocities")
    assert str(along.warnings[-1]).startswith("NOT RELIABLE: tau.")
    clean = dynamics_along(ur5, file_of(tmp_path, ur5, kinds=("q", "v")), "inverse")
    assert len(clean.warnings) == 2


def test_rows_too_far_apart_and_kinks_are_told(ur5, tmp_path):
    t = np.arange(60) * 1.6
    warnings = list(map(str, dynamics_along(ur5, file_of(tmp_path, ur5, t=t), "inverse").warnings))
    assert warnings[-1].startswith("NOT RELIABLE: tau.") and "too far apart" in warnings[-1]
    q = swinging(ur5)["q"]
    q[:, 0] = np.abs(T % 1.0 - 0.5)
    warnings = list(map(str, dynamics_along(ur5, file_of(tmp_path, ur5, q=q), "inverse").warnings))
    assert warnings[-1].startswith("NOT RELIABLE: tau.shoulder_pan_joint") and "has kinks" in warnings[-1]


def test_a_robot_at_rest_is_no_alarm(ur5, tmp_path):
    for command in COMMANDS.values():
        still = {"q": np.full((40, ur5.nq), 0.3), "tau": np.zeros((40, ur5.nv))}
        warnings = list(map(str, command(ur5, file_of(tmp_path, ur5, t=T[:40], **still)).warnings))
        assert not any("NOT RELIABLE" in note for note in warnings), warnings


@pytest.mark.parametrize("rows", [3, 4, 5, 8])
def test_few_rows(ur5, tmp_path, rows):
    warnings = list(map(str, dynamics_along(ur5, file_of(tmp_path, ur5, t=T[:rows]), "inverse").warnings))
    text = "not enough to estimate the error" if rows == 3 else "estimated error of the worst column"
    assert any(text in warning for warning in warnings)


def test_motions_of_mechanisms_are_estimated_too(tmp_path):
    model = ld.load(ROOT / "robots/four_bar.yaml")
    t = np.arange(60) * 0.01
    q = ld.assemble(model).q + 1e-9 * np.random.default_rng(0).standard_normal((60, model.nq))
    file = read_trajectory(record(tmp_path / "q.csv", model, t, q=q, tau=np.zeros((60, model.nv))))
    for along in (dynamics_along(model, file, "inverse", actuated=[model.joint_names[0]]),
                  dynamics_along(model, file, "forward")):
        assert any(note.startswith("estimated error of the worst column: ") for note in map(str, along.warnings))
        assert not any("--smooth" in x for x in map(str, along.warnings))        # mechanisms do not have this option


def body_on(joint, **options):
    """Return one body of 2 kg on a joint."""
    gravity = (0.0, 0.0, -9.81 if joint == "free" else 0.0)
    return ld.build(ld.Robot("r", [ld.Link("body", mass=2.0, inertia=[0.2, 0.2, 0.4])],
                             [ld.Joint("j", joint, "world", "body", **options)], gravity=gravity))


MOTIONS = {             # whose generalized forces are zero, although their terms are not: T is in [0, 4) s
    "free fall": (lambda: body_on("free"), lambda t: np.stack([t, 0 * t, 5 * t - 4.905 * t**2, *3 * [0 * t], 0 * t + 1], axis=1)),
    "precession without gravity": (lambda: body_on("ball"), lambda t: Rotation.from_euler("ZXZ", np.stack(
        [3 * t, 0 * t + 0.7, -1.5 * np.cos(0.7) * t], axis=1)).as_quat()),
    "spring without gravity": (lambda: body_on("prismatic", axis=[1, 0, 0], stiffness=8.0), lambda t: np.cos(2 * t)[:, None])}


@pytest.mark.parametrize("smooth", [None, 0.05])
@pytest.mark.parametrize("name, noise", [("free fall", 1e-5), ("precession without gravity", 1e-6),
                                         ("spring without gravity", 1e-6)])
def test_errors_are_judged_relative_to_terms_that_cancel(name, noise, smooth):
    """Noise of 1e-5 m makes forces of 0.7 N, which are small compared with a weight of 20 N, but all there is of their sum."""
    model, q = MOTIONS[name][0](), MOTIONS[name][1](T)
    reliable, unreliable = (dynamics_along(model, ld.trajectory_of(model, T, noisy(model, q, size)), "inverse", smooth=smooth)
                            for size in (noise if smooth is None else 10 * noise, 1e-2))
    assert all("within" in warning.message for warning in reliable.warnings if warning.code == "not-reliable")    # at the ends
    assert max(np.abs(x).max() for column, _, x in reliable.columns if column.startswith("tau")) > 1e-3
    assert "not-reliable" in {warning.code for warning in unreliable.warnings}


@pytest.mark.parametrize("smooth", [None, 0.05])
def test_errors_below_a_thousandth_are_information(smooth):
    model = body_on("prismatic", axis=[1, 0, 0])
    for rate, expected in ((1.0, False), (40.0, True)):
        along = dynamics_along(model, ld.trajectory_of(model, T, np.sin(rate * T)[:, None]), "inverse", smooth=smooth)
        codes = {warning.code for warning in along.warnings}
        assert codes & {"estimated-error", "negligible-error"} == {"estimated-error" if expected else "negligible-error"}
    along = dynamics_along(model, ld.trajectory_of(model, T, np.zeros((len(T), 1))), "inverse", smooth=smooth)
    assert smooth or not any("estimated error" in str(warning) for warning in along.warnings)
