"""Constrained systems from file to motion: closed, in balance, led and misled."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ComputationError, ScenarioError
from liedyn.simulation.run import run_scenario
from mechanisms import four_bar
from simulation.constrained import FIVE_BAR, FOUR_BAR, HANGING, PARALLELOGRAM

METHODS = ("rk4", "dopri5", "dop853", "rodas5p", "RK45", "DOP853", "Radau", "BDF", "LSODA")
SWING = "duration: 2\ninitial: {q: {crank: 1.0}, v: {crank: 2.0}}\n"


@pytest.fixture
def write(tmp_path):
    def file(scenario: str, robot: str = FOUR_BAR) -> Path:
        (tmp_path / "robot.yaml").write_text(robot)
        (tmp_path / "run.yaml").write_text("robot: robot.yaml\n" + scenario)
        return tmp_path / "run.yaml"
    return file


# initial state ---------------------------------------------------------------------------------------------------------

def test_the_rest_follows_what_the_scenario_gives(write):
    """The crank has the stated position and velocity. Knee and rocker, which are not stated, close the loop without a message."""
    r = run_scenario(write(SWING + "output_step: 2\n"))
    assert r.q[0, 0] == 1.0 and r.v[0, 0] == 2.0 and (np.abs(r.q[0, 1:]) > 0.1).all()
    assert np.abs(ld.constraint_residual(r.model, r.q[0])).max() < 1e-12
    assert np.abs(ld.constraint_velocity(r.model, r.q[0], r.v[0])).max() < 1e-13
    assert r.warnings == ()


@pytest.mark.parametrize("digits, code", [(None, None), (4, "initial-state-rounded"), (1, "initial-state-projected")])
def test_only_noticeable_changes_of_stated_values_cause_a_warning(write, digits, code):
    r = run_scenario(write(SWING + "output_step: 2\n"))
    q = {name: x if digits is None else round(x, digits) for name, x in zip(r.model.q_names, r.q[0].tolist(), strict=True)}
    again = run_scenario(write(f"duration: 0.01\ninitial: {{q: {q}}}\n"))
    moved = np.abs(again.q[0] - list(q.values()))
    assert [warning.code for warning in again.warnings] == [code][:code is not None]
    assert moved.max() < (1e-11 if digits is None else 10.0**-digits)
    for name, change in zip(q, again.q[0] - list(q.values()), strict=True):
        assert code is None or abs(change) < 1e-9 or f"{name} by {change:.3g} rad" in again.warnings[0].message


@pytest.mark.parametrize("side", [1, -1])
def test_a_guess_selects_the_assembly_without_a_message(write, side):
    r = run_scenario(write(f"duration: 0.01\ninitial: {{q: {{crank: 1.0}}, guess: {{knee: {side}, rocker: {1.5 * side}}}}}\n"))
    assert r.q[0, 0] == 1.0 and np.sign(r.q[0, 2]) == side and not r.warnings
    assert np.abs(ld.constraint_residual(r.model, r.q[0])).max() < 1e-12


def test_assembly_does_not_change_coordinates_to_keep(write):
    stated = "duration: 0.01\ninitial: {q: {crank: 1.0, rocker: 1.2}, v: {crank: 2.0, rocker: 9.0}"
    moved, r = run_scenario(write(stated + "}\n")), run_scenario(write(stated + ", keep: [cr*]}\n"))
    assert abs(moved.q[0, 0] - 1.0) > 1e-3 and abs(moved.v[0, 0] - 2.0) > 1e-3
    assert r.q[0, 0] == 1.0 and r.v[0, 0] == 2.0
    assert np.abs(ld.constraint_velocity(r.model, r.q[0], r.v[0])).max() < 1e-13


@pytest.mark.parametrize("initial, message", [
    ("{q: {crank: 1.0}, guess: {crank: 1.1}}", r"initial\.guess\.crank: the guess has no effect: .* gives the position of crank"),
    ("{guess: {elbow: 1.1}}", r"initial\.guess\.elbow: no such joint: .*, got 'elbow'"),
    ("{keep: [elbow]}", r"initial\.keep\[0\]: no such joint: .*, got 'elbow'"),
    ("{guess: {crank: [1, 2]}}", r"initial\.guess\.crank: joint crank: wrong number of values: expected 1, got 2"),
    ("{keep: [crank], assemble: false}", r"initial\.keep: keep has no effect without assembly: .*, got 'assemble: false'"),
    ("{q: {crank: 1.0, rocker: 9.0}, keep: [crank, rocker]}",
     r"initial: .* cannot be assembled: .*\(in initial\.keep: crank, rocker\)"),
    ("{v: {crank: 1}, keep: ['cr*']}\njoints: {rocker: {prescribe: {velocity: 1}}}",
     r"initial: the prescribed motion or kept velocity contradicts .*velocities of crank, rocker with a residual"),
])
def test_guesses_and_coordinates_to_keep_that_are_wrong(write, initial, message):
    with pytest.raises(ScenarioError, match=message):
        run_scenario(write(f"duration: 0.01\ninitial: {initial}\n"))


@pytest.mark.parametrize("key", ["guess: {joint1: 1.0}", "keep: [joint1]"])
def test_robots_without_constraints_need_no_assembly(tmp_path, key):
    scenario = tmp_path / "run.yaml"
    scenario.write_text(f"robot: {Path('robots/double_pendulum.yaml').absolute()}\nduration: 0.01\ninitial: {{{key}}}\n")
    with pytest.raises(ScenarioError, match=rf"initial\.{key[:5].strip(':')}.*has no effect: the robot has no constraints"):
        run_scenario(scenario)


def test_a_stated_velocity_that_changes_causes_a_warning(write):
    r = run_scenario(write("duration: 0.01\ninitial: {q: {crank: 1.0}, v: {crank: 2.0, knee: 0.5, rocker: 0.1}}\n"))
    assert [warning.code for warning in r.warnings] == ["initial-state-projected"]
    assert r.warnings[0].message.startswith("the initial velocity was projected onto the constraints: ")


def test_what_is_not_assembled_is_said(write):
    r = run_scenario(write("duration: 0.01\ninitial: {q: {crank: 1.0}, v: {crank: 1}, assemble: false}\n"
                           "constraints: {stabilization: none}\n"))
    position, velocity, *_ = (one.message for one in r.warnings)
    assert position.startswith("the initial state violates the constraints: the constraint pin.v") and position.endswith(" m")
    assert "the velocity of constraint pin.v" in velocity and velocity.endswith(" m/s")
    assert "constraint residuals reach" in str(r.warnings[2]) and r.drift[0] > 0.1


def test_a_loop_that_cannot_be_closed_is_named(write):
    path = write("duration: 1\n", FOUR_BAR.replace("xyz: [2.5, 0, 0]", "xyz: [0.1, 0, 0]").replace("xyz: [3.2", "xyz: [9.2"))
    with pytest.raises(ScenarioError, match=r"run\.yaml: initial: the initial state cannot be assembled: .*pin"):
        run_scenario(path)


def test_prescribed_positions_that_leave_the_loop_open_are_named(write):
    path = write('duration: 1\njoints:\n  crank: {prescribe: {position: "1+t"}}\n  rocker: {prescribe: {position: "0.2"}}\n'
                 "  knee: {prescribe: {position: \"0.1\"}}\n")
    with pytest.raises(ScenarioError, match=r"cannot be assembled: .*pin.*\(prescribed at t = 0: crank, knee, rocker\)"):
        run_scenario(path)


def test_prescribed_velocities_that_contradict_are_named(write):
    path = write("duration: 1\ninitial: {q: {crank: 1}}\njoints:\n  crank: {prescribe: {velocity: 1}}\n"
                 "  rocker: {prescribe: {velocity: 1}}\n")
    with pytest.raises(ScenarioError, match=r"the prescribed motion contradicts the constraint pin\.v. at t = 0.*"
                                            r"got 'velocities of crank, rocker with a residual of \d"):
        run_scenario(path)


def test_a_singular_start_is_refused(write):
    """All bars of a parallelogram lie in one line: it may continue as a parallelogram or as an antiparallelogram."""
    path = write("duration: 1\ninitial: {q: {crank: 0, knee: 0, rocker: 0}}\n", PARALLELOGRAM)
    with pytest.raises(ScenarioError, match=r"run\.yaml: initial: the initial configuration is singular: the motion is not "
                                            r"unique: expected 2, as in neighbouring configurations, got '1 independent "
                                            r"equations of pin'"):
        run_scenario(path)


# on the constraints -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("method", METHODS)
def test_every_method_stays_closed_and_keeps_the_energy(write, method, worst):
    """Residuals at the outputs are those after a projection, whatever the error of the step."""
    tight = {"rk4": "step: 1e-3", "BDF": "rtol: 1e-9, atol: 1e-11", "LSODA": "rtol: 1e-10, atol: 1e-12"}
    options = tight.get(method, "rtol: 1e-9, atol: 1e-11")
    r = run_scenario(write(SWING), [f"integrator={{method: {method}, {options}}}"])
    assert worst("constraint residual of a run", r.check["constraint_residual"], method) < 1e-11
    assert r.check["constraint_velocity_residual"] < 1e-11
    assert r.check["inverse_dynamics_residual"] < 1e-11
    bound = 2e-5 if method == "BDF" else 1e-6                                 # its tolerance is of a step, not of the run
    assert worst(f"energy of a four-bar, {method}", r.check["energy_balance_relative"], method) < bound
    assert abs(r.check["closure_work"]) < 1e-10                              # pins do no work
    assert r.check["constraint_drift"] >= r.check["constraint_residual"]


def test_the_motion_is_that_of_the_linkage(write):
    """The crank rotates at constant speed: coupler and rocker agree with Freudenstein's equation."""
    r = run_scenario(write('duration: 3\ninitial: {q: {knee: 0, rocker: 2}}\n'
                           'joints: {crank: {prescribe: {position: "1 + 2*t"}}}\n'))
    phi = r.q[:, 0] + r.q[:, 1]
    branches = [four_bar(3.2, 1.0, 3.0, 2.5, r.q[:, 0], r.v[:, 0], r.a[:, 0], sign) for sign in (1, -1)]
    _, coupler, rocker = min(branches, key=lambda bars: abs(np.exp(1j * phi[0]) - np.exp(1j * bars[1].q[0])))
    assert np.array_equal(r.v[:, 0], np.full(len(r.t), 2.0))
    assert np.abs(np.exp(1j * phi) - np.exp(1j * coupler.q)).max() < 1e-11
    assert np.abs(np.exp(1j * r.q[:, 2]) - np.exp(1j * rocker.q)).max() < 1e-11
    assert np.abs(r.v[:, 2] - rocker.v).max() < 1e-11 and np.abs(r.a[:, 2] - rocker.a).max() < 1e-9
    assert r.check["energy_balance_relative"] < 1e-8 and r.check["inverse_dynamics_residual"] < 1e-12


def test_hybrid_five_bar_gives_back_its_forces(write):
    """One crank led, the other pushed, with damping: the balance holds and a second run under the forces found repeats it."""
    scenario = ("duration: 1\noutput_step: 0.001\ninitial: {q: {left: 2.3, right: 0.8}}\njoints:\n"
                '  left: {%s}\n  right: {torque: "2*cos(3*t)"}\n')
    r = run_scenario(write(scenario % 'prescribe: {position: "2.3 + 0.2*sin(4*t)"}', FIVE_BAR))
    assert r.check["constraint_residual"] < 1e-12 * 3.2 and r.check["energy_balance_relative"] < 1e-8        # of the longest bar
    scenario = scenario.replace("right: 0.8}}", "right: 0.8}, v: {left: 0.8}}")
    path = write(scenario % "torque: {csv: {file: tau.csv, column: tau, interpolation: quintic}}", FIVE_BAR)
    rows = [f"{float(t)!r},{float(x)!r}\n" for t, x in zip(r.t, r.tau[:, 0], strict=True)]
    path.with_name("tau.csv").write_text("t[s],tau\n" + "".join(rows))
    again = run_scenario(path)
    assert np.abs(again.q - r.q).max() < 1e-7


def test_breaks_of_the_schedule_are_met(write):
    """Fixed and adaptive steps agree for a force that begins and ends."""
    path = write(SWING + "external_forces: [{link: coupler, wrench: [0, 0, 0, 3, 5, 0], from: 0.503, until: 1.2}]\n")
    runs = [run_scenario(path, [f"integrator={{{text}}}"]) for text in ("method: rk4, step: 5e-4",
                                                                        "method: dopri5, rtol: 1e-11, atol: 1e-12")]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-8
    assert all(r.check["energy_balance_relative"] < 1e-8 for r in runs)


def test_baumgarte_takes_a_residual_away(write):
    """r'' + 2 f r' + f^2 r = 0 from r0, r' = 0: |r| = |r0| (1 + f t) exp(-f t), except for the square of w / 2f, since the
    components turn with the bars (w)."""
    q = run_scenario(write(SWING + "output_step: 2\n")).q[0]
    given = f"{{crank: {float(q[0])!r}, knee: {float(q[1]) + 1e-5!r}, rocker: {float(q[2])!r}}}"
    path = write(f"duration: 1\ninitial: {{q: {given}, assemble: false}}\n"
                 "constraints: {stabilization: baumgarte, frequency: 15}\n")
    r = run_scenario(path, ["integrator.step=2e-4"])
    size = np.linalg.norm(ld.constraint_residual(r.model, r.q), axis=1)
    assert np.abs(size - size[0] * (1 + 15 * r.t) * np.exp(-15 * r.t)).max() < 1e-3 * size[0]
    assert r.drift[0] > 1e-6 and r.drift[-1] < 2e-5 * r.drift[0]
    loose = run_scenario(path, ["constraints={stabilization: none}"])
    assert loose.drift[-1] > 0.5 * loose.drift[0]


def test_drift_without_stabilization_is_taken_away_by_projection(write):
    free = run_scenario(write(SWING), ["integrator.step=1e-2", "constraints.stabilization=none"])
    kept = run_scenario(write(SWING), ["integrator.step=1e-2"])
    assert free.check["constraint_residual"] > 1e-7 > 1e-11 > kept.check["constraint_residual"]
    assert 1e-11 < kept.check["constraint_drift"] < free.check["constraint_residual"]
    assert any("constraints.stabilization=projection removes them" in note for note in map(str, free.warnings))


# driven loops --------------------------------------------------------------------------------------------------------

CIRCLE = ('duration: 2\ninitial: {q: {bob: [0, 0, 1, 0, 0, 0, 1]}}\nintegrator: {method: %s}\n'
          'constraint_motion: {hand: {xyz: ["0.2*cos(3*t)", "0.2*sin(3*t)", "0.1*t"], rpy: ["0.3*t", "0.2*sin(t)", "t"]}}\n')


@pytest.mark.parametrize("method", ["rk4, step: 1e-3", "dopri5, rtol: 1e-9, atol: 1e-11", "DOP853, rtol: 1e-9, atol: 1e-11"])
def test_a_driven_ball_follows_its_circle(write, method, worst):
    r = run_scenario(write(CIRCLE % method, HANGING))
    T = ld.link_pose(r.model, r.q, "bob")
    held = T[:, :3, :3] @ [0.05, 0, 0.1] + T[:, :3, 3]
    from scipy.spatial.transform import Rotation
    frame = Rotation.from_euler("xyz", [0.3, -0.2, 0.5]).as_matrix()
    led = np.column_stack([0.2 * np.cos(3 * r.t), 0.2 * np.sin(3 * r.t), 0.1 * r.t]) @ frame.T + [0, 0, 1]
    assert worst("a driven ball against its circle [m]", np.abs(held - led).max(), method) < 1e-11
    assert r.check["energy_balance_relative"] < 1e-7                         # what the hand supplies is counted
    assert abs(r.check["closure_work"]) > 0.1
    supplied = r.kinetic[-1] + r.potential[-1] - r.kinetic[0] - r.potential[0]
    assert abs(r.check["closure_work"] - supplied) < 1e-3 * abs(supplied) + 1e-3      # by the trapezoidal rule


def test_a_driven_weld_turns_as_it_is_told(write):
    """The weld has roll, pitch and yaw as functions: the body's rotation is Rz Ry Rx, and its velocity the rate of that."""
    r = run_scenario(write(CIRCLE % "rk4", HANGING.replace("type: ball", "type: weld")))
    from scipy.spatial.transform import Rotation
    frame = Rotation.from_euler("xyz", [0.3, -0.2, 0.5])
    told = frame * Rotation.from_euler("xyz", np.column_stack([0.3 * r.t, 0.2 * np.sin(r.t), r.t]))
    R = ld.link_pose(r.model, r.q, "bob")[:, :3, :3]
    assert np.abs(R - told.as_matrix()).max() < 1e-11
    k, h = 200, r.t[1] - r.t[0]
    rate = sum(c * (R[k + j] - R[k - j]) for j, c in ((1, 0.75), (2, -0.15), (3, 1 / 60))) / h     # order 6
    w = R[k].T @ rate
    assert np.abs(r.v[k, :3] - [w[2, 1], w[0, 2], w[1, 0]]).max() < 1e-10


def test_an_unknown_drive_and_a_bad_signal_are_named(write):
    with pytest.raises(ScenarioError, match=r"run\.yaml:3: constraint_motion\.foot: no such driven loop: expected one of "
                                            r"hand, got 'foot'"):
        run_scenario(write("duration: 1\nconstraint_motion: {foot: {xyz: [0, 0, t]}}\n", HANGING))
    with pytest.raises(ScenarioError, match=r"constraint_motion\.hand\.xyz\[2\]: the z of closure hand is not finite at t = 0"):
        run_scenario(write('duration: 1\nconstraint_motion: {hand: {xyz: [0, 0, "log(t)"]}}\n', HANGING))
    with pytest.raises(ComputationError, match=r"the signal of yaw of closure hand is not a finite number at or soon after t ="):
        run_scenario(write('duration: 1\nconstraint_motion: {hand: {rpy: [0, 0, "sqrt(0.5-t)"]}}\n', HANGING))
    with pytest.raises(ScenarioError, match="linear interpolation has no acceleration at its points"):
        path = write("duration: 1\nconstraint_motion: {hand: {xyz: [{csv: {file: x.csv, column: x, interpolation: linear}}, 0, "
                     "0]}}\n",
                     HANGING)
        path.with_name("x.csv").write_text("t,x\n0,0\n1,1\n")
        run_scenario(path)


# misled -----------------------------------------------------------------------------------------------------------------

def test_accelerations_that_contradict_are_named_with_the_time(write):
    """Crank and rocker are at rest and agree, until only the rocker has an acceleration."""
    path = write('duration: 1\ninitial: {q: {crank: 1}}\njoints:\n  crank: {prescribe: {acceleration: 0}}\n'
                 '  rocker: {prescribe: {acceleration: "step(t-0.5)"}}\n')
    with pytest.raises(ComputationError, match=r"the prescribed motion contradicts the constraint pin at or soon after t = "
                                               r"0\.5\d* "
                                               r"s: its equation pin\.v. has a residual acceleration of .* prescribed: crank, "
                                               r"rocker \(prescribe fewer"):
        run_scenario(path)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "DOP853"])
def test_positions_that_leave_the_loop_are_named_with_the_time(write, method):
    """The rocker stays at its initial position while the crank, prescribed by position, continues."""
    r = run_scenario(write(SWING + "output_step: 2\n"))
    path = write(f'duration: 1\ninitial: {{q: {{crank: 1}}}}\njoints:\n  crank: {{prescribe: {{position: "1 + 0.1*t**3"}}}}\n'
                 f'  rocker: {{prescribe: {{position: {float(r.q[0, 2])!r}}}}}\n')
    with pytest.raises(ComputationError, match=r"(contradicts the constraint pin|the constraint pin cannot be closed) at or soon "
                                               r"after t = \S+ s.* prescribed: crank, rocker"):
        run_scenario(path, [f"integrator={{method: {method}}}"])


@pytest.mark.parametrize("method", ["rk4, step: 1e-3", "dopri5, max_step: 0.05", "DOP853, max_step: 0.05"])
def test_a_singular_configuration_that_is_passed_is_told(write, method):
    """A parallelogram without gravity rotates at constant speed through the line of its bars at crank = 0."""
    path = write("duration: 1\noutput_step: 0.01\ninitial: {q: {crank: -0.5003, knee: 0.5003, rocker: -0.5003}, "
                 f"v: {{crank: 1, knee: -1, rocker: 1}}}}\ngravity: [0, 0, 0]\nintegrator: {{method: {method}}}\n", PARALLELOGRAM)
    r = run_scenario(path)
    note = [n for n in map(str, r.warnings) if "singular" in n]
    assert len(note) == 1 and "the mechanism passed a singular configuration at t = " in note[0] and ": pin.v" in note[0]
    told = float(note[0].split("t = ")[1].split(" s")[0])
    assert abs(told - 0.5003) < 0.06                                 # to a step
    assert r.check["constraint_residual"] < 1e-10
    assert not any("singular" in n for n in map(str, run_scenario(path, ["duration=0.3"]).warnings))


def test_no_false_alarm_of_singular_configurations(write):
    """A crank that rotates, and a five-bar that falls: no configuration is singular."""
    for path in (write('duration: 5\njoints: {crank: {prescribe: {position: "3*t"}}}\n'), write(SWING),
                 write("duration: 1\ninitial: {q: {left: 2.3, right: 0.8}}\n", FIVE_BAR)):
        assert not any("singular" in note for note in map(str, run_scenario(path).warnings))


# files ------------------------------------------------------------------------------------------------------------------

def test_columns_and_self_check(write, tmp_path):
    from liedyn.io.trajectory_csv import read_trajectory
    from liedyn.report.run_folder import write_run
    r = run_scenario(write(SWING + "output_step: 0.1\n"))
    write_run(r, tmp_path / "out", plots=False)
    motion = read_trajectory(tmp_path / "out" / "trajectory.csv")
    parts = ("mx", "my", "mz", "fx", "fy", "fz")
    assert [n for n in motion.columns if n.startswith("reaction.")] == [f"reaction.pin.{part}" for part in parts]
    assert [motion.units[f"reaction.pin.{part}"] for part in parts] == ["N m"] * 3 + ["N"] * 3
    assert "world axes" in motion.header["reaction"]
    assert np.array_equal(np.column_stack([motion.columns[f"reaction.pin.{part}"] for part in parts]), r.reactions[:, 0])
    assert motion.units["drift"] == "rad or m" and np.array_equal(motion.columns["drift"], r.drift)
    # the forces of the pin with the motors' are those that the open tree needs
    A = ld.constraint_jacobian(r.model, r.q)
    left = ld.inverse_dynamics(r.model.spanning_tree(), r.q, r.v, r.a) - r.tau - np.einsum("trk,tr->tk", A, r.multipliers)
    assert np.abs(left).max() < 1e-11
    summary = (tmp_path / "out" / "run.json").read_text()
    figures = ("constraint_residual", "constraint_velocity_residual", "constraint_drift", "closure_work")
    assert all(key in summary for key in figures)
    assert "constraint residual" in r.summary


def test_loops_of_a_file_of_their_own(write, tmp_path):
    """The key `loops` closes the open robot of the file, and the recording names both files."""
    from liedyn.analysis.recorded_robot import robot_of
    from liedyn.io.trajectory_csv import read_trajectory
    from liedyn.report.run_folder import write_run
    tree, _, loops = FOUR_BAR.partition("loops:")
    path = write(SWING + "loops: closing.yaml\noutput_step: 1\n", tree)
    (tmp_path / "closing.yaml").write_text("loops:" + loops)
    r = run_scenario(path)
    assert r.model.nc == 5 and r.check["constraint_residual"] < 1e-11
    write_run(r, tmp_path / "out", plots=False)
    model, warnings = robot_of(read_trajectory(tmp_path / "out" / "trajectory.csv"))
    assert model.nc == 5 and warnings == ()
    (tmp_path / "closing.yaml").unlink()
    assert robot_of(read_trajectory(tmp_path / "out" / "trajectory.csv"))[0].nc == 5          # the folder holds the model
    (tmp_path / "out" / "model.yaml").unlink()
    with pytest.raises(ld.LiedynError, match=r"# loops: the loops file does not exist"):
        robot_of(read_trajectory(tmp_path / "out" / "trajectory.csv"))


FLAT_LINKS = """\
name: parallelogram
links: {a: {mass: 1, com: [0.5, 0, 0]}, b: {mass: 1, com: [1, 0, 0]}, c: {mass: 1, com: [0.5, 0, 0]}}
joints:
  left: {type: continuous, parent: world, child: a, axis: [0, 1, 0], armature: 0.1}
  middle: {type: continuous, parent: a, child: b, axis: [0, 1, 0], origin: {xyz: [1, 0, 0]}, armature: 0.1}
  right: {type: continuous, parent: world, child: c, axis: [0, 1, 0], origin: {xyz: [2, 0, 0]}, armature: 0.1}
loops: {pin: {type: revolute, a: {link: b, xyz: [2, 0, 0]}, b: {link: c, xyz: [1, 0, 0]}, axis: [0, 1, 0]}}
"""


@pytest.mark.parametrize("method", ["rk4", "rodas5p", "Radau", "generalized_alpha"])
def test_a_prescribed_motion_passes_a_singular_configuration(write, method):
    """A parallelogram passes its flat configuration at 0.5 s: equal rates satisfy the loop without contradiction."""
    start = "initial: {q: {middle: 0.5, right: -0.5}}"
    run = run_scenario(write(f'duration: 1\noutput_step: 0.05\nintegrator: {{method: {method}}}\n{start}\n'
                             'joints: {left: {prescribe: {position: "t - 0.5"}}}\n', FLAT_LINKS))
    np.testing.assert_allclose(run.q, np.outer(run.t - 0.5, [1, -1, 1]), atol=1e-5)          # the loop closes to the square of it
    assert "singular-configuration" in [warning.code for warning in run.warnings]
