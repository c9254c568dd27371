"""Recordings of robots with mimic joints and couplings: columns of drivers only, few digits, derivatives, identification."""
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from command_line import run
from liedyn.analysis.trajectory_derivatives import derivatives_along
from liedyn.analysis.trajectory_dynamics import dynamics_along
from liedyn.analysis.trajectory_kinematics import kinematics_along
from liedyn.errors import TrajectoryError
from simulation.test_joint_control_couplings import ROBOT
from sweeps import table

T = np.linspace(0.0, 2.0, 401)


@pytest.fixture
def model(tmp_path):
    (tmp_path / "robot.yaml").write_text(ROBOT)
    return ld.load(tmp_path / "robot.yaml")


def motion(model, t=T):
    """Return q, v, a of a smooth motion."""
    w, phase, size = np.array([2.0, 3.1]), np.array([0.3, 1.0]), np.array([0.7, 0.5])
    angle = np.outer(t, w) + phase
    return ld.expand(model, size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle))


def write(path, columns, digits=17):
    names = [f"{name}[{unit}]" for name, unit, _ in columns]
    rows = [",".join(f"{x:.{digits}g}" for x in row) for row in zip(T, *(x for *_, x in columns), strict=True)]
    path.write_text("\n".join(["# robot: robot.yaml", ",".join(["t[s]", *names]), *rows]) + "\n")
    return path


def columns(model, names, **arrays):
    units = {"q": "", "v": "/s", "a": "/s^2"}
    return [(f"{kind}.{name}", model.v_units[k] + units[kind], x[:, k]) for kind, x in arrays.items()
            for k, name in enumerate(model.v_names) if name in names]


@pytest.mark.parametrize("names", [("j1", "j2"), ("j1", "j2", "j4"), ("j1", "j2", "j3", "j4")])
def test_columns_of_followers_are_completed(model, tmp_path, names):
    q, v, a = motion(model)
    path = write(tmp_path / "motion.csv", columns(model, names, q=q, v=v, a=a))
    result = run("inverse", path, "-o", tmp_path / f"out{len(names)}.csv")
    assert result.exit_code == 0 and "actuated" not in result.stderr
    table = ld.read_trajectory(tmp_path / f"out{len(names)}.csv")
    tau = np.column_stack([table.columns[f"tau.{name}"] for name in model.v_names])
    np.testing.assert_allclose(tau, ld.inverse_dynamics(model, q, v, a), atol=1e-12)


def test_a_missing_driver_is_an_error_and_a_contradiction_too(model, tmp_path):
    q, v, a = motion(model)
    path = write(tmp_path / "motion.csv", columns(model, ("j2", "j3"), q=q, v=v, a=a))
    with pytest.raises(TrajectoryError, match="a column is missing"):
        dynamics_along(model, ld.read_trajectory(path), of="inverse")
    q[:, 2] += 0.1
    path = write(tmp_path / "wrong.csv", columns(model, model.v_names, q=q, v=v, a=a))
    with pytest.raises(TrajectoryError, match=r"wrong.csv: the positions of j3 contradict its coupling: .*got 'a diff.* 0.1 "):
        dynamics_along(model, ld.read_trajectory(path), of="inverse")


def test_orders_and_smoothing_are_those_of_the_exact_motion(model, tmp_path):
    q, v, a = motion(model)
    path = write(tmp_path / "motion.csv", columns(model, ("j1", "j2"), q=q))
    for options in ("--order", 1), ("--smooth", "auto"):
        result = run("inverse", path, *options, "-o", tmp_path / "out.csv", "--force")
        assert result.exit_code == 0, result.stderr
        table = ld.read_trajectory(tmp_path / "out.csv")
        tau = np.column_stack([table.columns[f"tau.{name}"] for name in model.v_names])
        exact = ld.inverse_dynamics(model, q, v, a)
        np.testing.assert_allclose(tau[50:-50], exact[50:-50], atol=2e-3 * np.abs(exact).max())


def test_few_digits_are_enough(model, tmp_path):
    """In a recording with seven digits, followers deviate by 1e-7."""
    q, v, a = motion(model)
    path = write(tmp_path / "motion.csv", columns(model, model.v_names, q=q, v=v, a=a), digits=7)
    table = derivatives_along(model, ld.read_trajectory(path), of="inverse")
    exact = ld.inverse_dynamics_derivatives(model, q, v, a).dtau_dq
    found = {name: x for name, _, x in table.columns}
    np.testing.assert_allclose(found["dtau.j1/dq.j1"], exact[:, 0, 0], atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("of, prescribed", [("inverse", ()), ("forward", ()), ("hybrid", ("j1",)), ("hybrid", ("j3",))])
def test_derivatives_are_those_of_differences(model, tmp_path, of, prescribed):
    """--verify raises where they differ. Friction is left out, since its differences are inaccurate."""
    q, v, a = motion(model)
    tau = np.zeros_like(q) if of == "inverse" else np.column_stack([np.sin(T), np.cos(T), 0 * T, 0 * T])
    given = columns(model, model.v_names, q=q, v=v, a=a)
    given += [(f"tau.{name}", "N" if name == "j3" else "N m", tau[:, k]) for k, name in enumerate(model.v_names)]
    path = write(tmp_path / "motion.csv", given)
    trajectory = ld.read_trajectory(path)
    result = derivatives_along(model.with_changes(friction={"j4": 0.0}), trajectory, of=of, prescribed=prescribed, verify=True)
    assert any(warning.code == "compared" for warning in result.warnings)


def test_identification_finds_what_the_drivers_determine(model):
    t = np.linspace(0.0, 20.0, 4001)
    q, v, a = (x + 0.0 for x in motion(model, t))
    rng = np.random.default_rng(0)
    tau = ld.inverse_dynamics(model, q, v, a)
    tau[:, :2] += 1e-4 * rng.standard_normal((len(t), 2))
    other = model.with_changes(mass={"c": 0.9}, damping={"j3": 0.6})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = ld.identify(other, t, q, tau, v=v, a=a)
    values = dict(zip(fit.base.names, fit.values, strict=True))
    assert values["mass.c"] == pytest.approx(0.5, abs=1e-3)
    assert values["damping.j1"] == pytest.approx(0.3 + 0.25 * 0.4, abs=1e-3)           # with that of j3, half as fast
    assert values["friction.j1"] == pytest.approx(0.2, abs=5e-3)                          # of j4
    assert fit.residual.max() < 3e-4


@pytest.mark.parametrize(("error", "count"), [(0.0, 0), (1e-4, 1)])
def test_followers_that_encoders_measured_are_replaced_in_every_computation(model, error, count):
    """`parameters` replaced them without a message, and all other computations raised an error."""
    t = np.linspace(0.0, 2.0, 201)
    q, v, a = motion(model, t)
    tau = ld.inverse_dynamics(model, q, v, a)
    noise = error * np.random.default_rng(0).standard_normal((len(t), 1)) * (np.arange(4) == 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = ld.identify(model, t, q + noise, tau, v=v, a=a, smooth=None)
        recorded, positions = (ld.trajectory_of(model, t, q + noise, *rest) for rest in ((v, a, tau), (v + noise,)))
        back = ld.motion_of(model, recorded)
        along = [dynamics_along(model, recorded, "inverse"), dynamics_along(model, recorded, "forward"),
                 dynamics_along(model, recorded, "inverse", order=1), kinematics_along(model, positions, ["c"])]
    for result in (fit, *along):
        texts = [str(w) for w in result.warnings if w.code == "moved-onto-constraints" and "recorded values" in str(w)]
        assert len(texts) == count and all("are used instead: q.j4 by up to 0.000" in text for text in texts)
    assert not count or "v.j4 by up to 0.000" in " ".join(map(str, along[3].warnings))
    np.testing.assert_allclose(ld.inverse_dynamics(model, back.q, back.v, back.a), tau, atol=1e-12)
    np.testing.assert_allclose(dict((name, x) for name, _, x in along[0].columns)["tau.j1"], tau[:, 0], atol=1e-12)


def test_followers_that_contradict_a_recording_are_an_error(model):
    """The error names both remedies."""
    t = np.linspace(0.0, 2.0, 201)
    q, v, a = motion(model, t)
    tau = ld.inverse_dynamics(model, q, v, a)
    q[:, 3] += 0.5
    recorded = ld.trajectory_of(model, t, q, v, a, tau)
    text = (r"the positions of j4 contradict its coupling: expected at most 0.01\d* rad, got 'a difference of 0.5 rad \(rms\)' "
            r"\(leave out the columns of j4; if it moves independently, use --ignore-mimic")
    for compute in (lambda: ld.identify(model, t, q, tau, v=v, a=a), lambda: ld.identify(model, recorded),
                    lambda: ld.motion_of(model, recorded), lambda: dynamics_along(model, recorded, "inverse"),
                    lambda: dynamics_along(model, recorded, "inverse", order=1),
                    lambda: derivatives_along(model, recorded, of="inverse")):
        with pytest.raises(TrajectoryError, match=text):
            compute()


def test_mimic_joints_can_be_ignored(model, tmp_path):
    """Each joint then has a separate force, also in results that are computed from the result."""
    rng = np.random.default_rng(1)
    q, v, a = 0.1 * rng.standard_normal((3, len(T), 4))
    path = write(tmp_path / "motion.csv", columns(model, model.v_names, q=q, v=v, a=a))
    refused = run("inverse", path, "-o", tmp_path / "none.csv")
    assert refused.exit_code == 3 and "contradict its coupling" in refused.stderr and "--ignore-mimic" in refused.stderr
    tree = ld.load(tmp_path / "robot.yaml", ignore_mimic=True)
    assert not tree.nc and tree.independent == tree.v_names
    result = run("inverse", path, "--ignore-mimic", "-o", tmp_path / "tau.csv")
    assert result.exit_code == 0, result.stderr
    table = ld.read_trajectory(tmp_path / "tau.csv")
    tau = np.column_stack([table.columns[f"tau.{name}"] for name in model.v_names])
    np.testing.assert_allclose(tau, ld.inverse_dynamics(tree, q, v, a), atol=1e-12)
    again = run("forward", tmp_path / "tau.csv", "-o", tmp_path / "a.csv")
    assert again.exit_code == 0, again.stderr
    assert ld.read_trajectory(tmp_path / "a.csv").header["mimic"] == "ignored"
    robot = tmp_path / "robot.yaml"
    listed, independent = (run("parameters", robot, "--json", *options).stdout for options in ((), ("--ignore-mimic",)))
    assert len(listed) < len(independent)
    exported = run("export", robot, "--ignore-mimic", "-o", tmp_path / "fd.c")
    assert exported.exit_code == 0


def test_runs_can_ignore_mimic_joints(model, tmp_path):
    """As an option, a key of the scenario, and in a sweep over keys of the robot. Commands on the run ignore them, too."""
    robot = tmp_path / "robot.yaml"
    scenario = tmp_path / "free.yaml"
    scenario.write_text("robot: robot.yaml\nignore_mimic: true\nduration: 0.2\ninitial: {q: {j1: 0.3}}\n")
    options = ("-S", "duration=0.2", "-S", "initial.q.j1=0.3", "--no-plots")
    for k, arguments in enumerate(((robot, "--ignore-mimic", *options), (scenario, "--no-plots"))):
        result = run("simulate", *arguments, "-o", tmp_path / f"run{k}")
        assert result.exit_code == 0, result.stderr
    runs = [ld.read_trajectory(tmp_path / f"run{k}/trajectory.csv") for k in range(2)]
    tree = ld.load(robot, ignore_mimic=True)
    q, v, a = (np.column_stack([runs[0].columns[f"{kind}.{name}"] for name in tree.v_names]) for kind in "qva")
    assert all(x.header["mimic"] == "ignored" for x in runs)
    np.testing.assert_array_equal(q, np.column_stack([runs[1].columns[f"q.{name}"] for name in tree.v_names]))
    np.testing.assert_allclose(a, ld.forward_dynamics(tree, q, v, 0 * v), atol=1e-9)
    for options in ((), ("--robot", robot)):
        result = run("inverse", tmp_path / "run0/trajectory.csv", *options, "-o", tmp_path / "tau.csv", "--force")
        assert result.exit_code == 0, result.stderr
        tau = ld.read_trajectory(tmp_path / "tau.csv").columns
        assert max(np.abs(tau[f"tau.{name}"]).max() for name in tree.v_names) < 1e-9
    linear = run("linearize", robot, "--ignore-mimic", "--json", "-o", tmp_path / "linear", "--no-plots")
    assert linear.exit_code == 0 and len(json.loads(linear.stdout)["states"]) == 2 * tree.nv, linear.stderr
    (tmp_path / "sweep.yaml").write_text("scenario: free.yaml\nparameters: [{key: robot.links.a.mass, name: m, list: [1, 2]}]\n"
                                         "outputs: {x: 'final(q.j1)'}\n")
    batch = run("batch", tmp_path / "sweep.yaml", "-o", tmp_path / "sweep")
    assert batch.exit_code == 0, batch.stderr
    robots = [replace(tree.description, links=tuple(replace(link, mass=m) if link.name == "a" else link
                                                    for link in tree.description.links)) for m in (1.0, 2.0)]
    finals = [ld.simulate(ld.build(robot), duration=0.2, q0=q[0]).q[-1, 0] for robot in robots]
    assert table(tmp_path / "sweep")["x"] == pytest.approx(finals, abs=1e-6) and abs(finals[0] - finals[1]) > 1e-4
