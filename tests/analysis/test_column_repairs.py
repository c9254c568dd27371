"""Kinds of bad recordings: each ends in an error, or in a verdict that names the column and the fault."""
import re

import numpy as np
import pytest

import liedyn as ld

ROBOT = """
name: arm
links:
  a: {mass: 2, com: [0.1, 0.02, 0.05], inertia: [0.02, 0.03, 0.025]}
  b: {mass: 1.5, com: [0.2, 0.01, 0], inertia: [0.01, 0.02, 0.02]}
  c: {mass: 0.8, com: [0.1, 0.03, 0.02], inertia: [0.005, 0.006, 0.004]}
joints:
  j1: {type: revolute, parent: world, child: a, axis: [0, 0, 1], limits: {lower: -3, upper: 3}, damping: 0.3}
  j2: {type: revolute, parent: a, child: b, axis: [0, 1, 0], origin: {xyz: [0, 0, 0.3]}, limits: {lower: -3, upper: 3},
       damping: 0.3}
  j3: {type: prismatic, parent: b, child: c, axis: [1, 0, 0], origin: {xyz: [0.4, 0, 0]}, limits: {lower: -1, upper: 1},
       damping: 3}
"""
TITLES = ["t[s]", "q.j1[rad]", "q.j2[rad]", "q.j3[m]", "tau.j1[N m]", "tau.j2[N m]", "tau.j3[N]"]
T = 0.02 * np.arange(601)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The robot, and a recording as an array of the columns of TITLES, and of the torques of a robot that hangs."""
    path = tmp_path_factory.mktemp("arm") / "arm.yaml"
    path.write_text(ROBOT)
    model, rng = ld.load(path), np.random.default_rng(7)
    w, size = np.array([[0.9], [2.1], [3.7]]) * rng.uniform(0.8, 1.2, (3, 3)), rng.uniform(0.3, 0.6, (3, 3)) * [1.0, 1.0, 0.3]
    phase = rng.uniform(0, 6, (3, 3))
    q, v, a = ((size * w**k * np.sin(w * T[:, None, None] + phase + 0.5 * np.pi * k)).sum(axis=1) for k in range(3))
    tau = ld.inverse_dynamics(model, q, v, a)
    tau = tau + 0.01 * np.abs(tau).max(axis=0) * rng.standard_normal(q.shape)
    return model, np.column_stack([T, q + 1e-4 * rng.standard_normal(q.shape), tau, tau - 2.0 * ld.gravity_force(model, q)])


def change(columns, function):
    """Edit of columns, by number."""
    def edit(x):
        x = x.copy()
        x[:, columns] = function(x[:, columns])
        return x
    return edit


def rows(selected):
    return lambda x: x[selected]


def entry(column, text):
    """Edit of row 300 of a column of texts."""
    def edit(x):
        x = x.astype(object)
        x[300, column] = text
        return x
    return edit


def filled(first, last):
    """Rows that repeat the first one."""
    def edit(x):
        x = x.copy()
        x[first:last] = x[first]
        return x
    return edit


def added(at, size):
    def edit(x):
        x = x.copy()
        x[at] += size
        return x
    return edit


def late(n):
    return lambda x: np.concatenate([np.repeat(x[:1], n, axis=0), x[:-n]])


Q, TAU, DEGREE = slice(1, 4), slice(4, 7), 180.0 / np.pi
FAULTS = {
    "degrees": (change([1, 2], np.rad2deg), "the angles seem to be in degrees: j2 reaches .* 'q.j1=q.j1.deg.,q.j2=q.j2.deg.'"),
    "one joint in degrees": (change(2, np.rad2deg), "the angles seem to be in degrees: j2 reaches .* 'q.j2=q.j2.deg.'"),
    "mm": (change(3, lambda x: 1e3 * x), "better if q.j3 is in mm"),
    "torque of one joint in N mm": (change(5, lambda x: 1e3 * x), "better if tau.j2 is in Nmm"),
    "all torques in other units": (change(TAU, lambda x: 1e3 * x), "which are 1000 times those of the robot file"),
    "current of one motor": (change(6, lambda x: 7.3 * x), r"better if tau.j3 is divided by 7\.\d"),
    "swapped positions": (rows((slice(None), [0, 2, 1, 3, 4, 5, 6])), "better if q.j1 and q.j2 are swapped"),
    "swapped torques": (rows((slice(None), [0, 1, 2, 3, 5, 4, 6])), "better if tau.j1 and tau.j2 are swapped"),
    "sign of a position": (change(2, np.negative), "better if the sign of q.j2 changes"),
    "sign of a torque": (change(5, np.negative), "the measured torques of j2 have the opposite sign"),
    "sign of all torques": (change(TAU, np.negative), "all measured torques have the opposite sign"),
    "saturated torque": (change(5, lambda x: np.clip(x, -6, 6)), r"tau.j2 is at its minimum of -6 N m in \d+ of 601 rows"),
    "stuck encoder": (change(2, filled(300, 601)), "q.j2 is constant from t = 6 to 12 s, while other joints move"),
    "stuck encoder for a while": (change(2, filled(200, 300)),
                                  r"q.j2 jumps .* \(t = 6 s\).*; q.j2 is constant from t = 4 to 5.98 s"),
    "constant pose": (change(Q, filled(0, 601)), "j1, j2, j3 do not move in the recording"),
    "one joint locked": (change(1, filled(0, 601)), "q.j1 is constant from t = 0 to 12 s, while other joints move"),
    "time jump": (change(0, added(slice(300, None), 5.0)), r"the times have 1 gap of up to 5.02 s \(t = 5.98 s\)"),
    "missing rows": (rows(np.r_[0:280, 320:601]), r"the times have 1 gap of up to 0.82 s \(t = 5.58 s\)"),
    "missing rows without missing times": (lambda x: np.column_stack([T[:501], x[np.r_[0:230, 330:601], 1:]]),
                                           r"q.j1 jumps by up to 0.\d+ rad from one row to the next \(t = 4.6 s\)"),
    "times in ms": (change(0, lambda t: 1e3 * t), "the times seem to be in ms"),
    "drift of a torque": (change(5, lambda x: x + 0.1 * T), r"the torques of j2 \(a drift of the torque\)"),
    "torques 40 ms late": (change(TAU, late(2)), r"the torques of j1 \(a time shift between q and tau\), j2 \(a time shift"),
    "torques 0.3 s late": (change(TAU, late(15)), r"better if the torques are 0\.(29|3|31) s late"),
    "too few rows for a fit": (rows(slice(0, 40)), "the recording is short: 40 rows of 0.78 s"),
    "coarse encoder": (change(2, lambda x: np.round(x / 0.1) * 0.1), "q.j2 changes in steps of 0.1 rad"),
    "encoder with one step in most rows": (change(2, lambda x: np.round(x / 0.05) * 0.05),
                                           "q.j2 changes in steps of 0.05 rad, and by at most one step in most rows"),
    "outliers of a position": (change(2, added([150, 251, 450], 0.6)), r"q.j2 differs .* in 3 rows \(t = 3, 5.02, 9 s\)"),
    "outliers of a torque": (change(5, added([150, 251, 450], 30.0)), r"tau.j2 differs .* in 3 rows \(t = 3, 5.02, 9 s\)"),
    "robot on the ceiling": (rows((slice(None), [0, 1, 2, 3, 7, 8, 9])), r"better if gravity is \[0, 0, 9.81\] m/s"),
}
# of a robot with wide limits: factors of q and v, and of the times
WITH_VELOCITIES = {
    "angles in degrees": ([DEGREE, DEGREE, 1.0], [1.0, 1.0, 1.0], 1.0,
                          "the angles seem to be in degrees: v.j1 is 0.017. times the rate of q.j1; .* 'q.j1=q.j1.deg.,q.j2"),
    "one angle in degrees": ([1.0, DEGREE, 1.0], [1.0, 1.0, 1.0], 1.0,
                             "the angles seem to be in degrees: v.j2 is 0.017. times the rate of q.j2; .* 'q.j2=q.j2.deg.'"),
    "angles and velocities in degrees": ([DEGREE, DEGREE, 1.0], [DEGREE, DEGREE, 1.0], 1.0,
                                         "better if all angles are in degrees"),
    "sign of a position": ([1.0, -1.0, 1.0], [1.0, 1.0, 1.0], 1.0,
                           "v.j2 is -0.999 times the rate of q.j2.* better if the sign of q.j2 changes"),
    "times in ms": ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], 1e3, "the times seem to be in ms: velocities are 1000 times"),
}
ERRORS = {
    "missing positions": (rows((slice(None), [0, 1, 2, 4, 5, 6])), TITLES[:3] + TITLES[4:], "column q.j3: a column is missing"),
    "missing torques": (rows((slice(None), slice(4))), TITLES[:4], "there are no columns of the generalized forces"),
    "repeated time": (change(0, added(300, -0.02)), TITLES, ":302: t: time does not increase"),
    "decreasing time": (change(0, added(slice(300, None), -1.0)), TITLES, ":302: t: time does not increase"),
    "empty cell": (entry(2, ""), TITLES, ":302: q.j2: a value is missing"),
    "not a number": (entry(5, "nan"), TITLES, ":302: tau.j2: the value is not finite"),
    "text": (entry(5, "fault"), TITLES, ":302: tau.j2: "),
    "too few rows": (rows(slice(0, 8)), TITLES, r"8 row\(s\) are not enough for derivatives"),
    "another robot": (rows(slice(None)), [title.replace("j", "axis") for title in TITLES],
                      "no column belongs to a joint of the robot arm"),
}


def written(path, x, titles=TITLES):
    path.write_text("\n".join([",".join(titles), *(",".join(map(str, row)) for row in x[:, :len(titles)].tolist())]) + "\n")
    return path


@pytest.mark.parametrize("name", FAULTS)
def test_the_verdict_names_the_fault(recorded, tmp_path, name):
    model, x = recorded
    edit, words = FAULTS[name]
    fit = ld.identify(model, written(tmp_path / "recording.csv", edit(x)))
    assert re.search(words, fit.verdict), fit.verdict


@pytest.mark.parametrize("name", WITH_VELOCITIES)
def test_the_verdict_names_the_fault_although_velocities_were_measured(recorded, tmp_path, name):
    x, (of_q, of_v, of_t, words) = recorded[1], WITH_VELOCITIES[name]
    (tmp_path / "wide.yaml").write_text(ROBOT.replace("lower: -3, upper: 3", "lower: -300, upper: 300"))
    v = np.gradient(x[:, 1:4], T, axis=0)
    columns = np.column_stack([x[:, 0] * of_t, x[:, 1:4] * of_q, x[:, 4:7], v * of_v])
    path = written(tmp_path / "recording.csv", columns, [*TITLES, "v.j1[rad/s]", "v.j2[rad/s]", "v.j3[m/s]"])
    fit = ld.identify(ld.load(tmp_path / "wide.yaml"), path)
    assert re.search(words, fit.verdict), fit.verdict
    assert not fit.reliable.any()


@pytest.mark.parametrize(("edit", "words"), [
    (change(0, lambda t: 1e3 * t), "better if the times are in ms"),
    (change([1, 2], np.rad2deg), "better if all angles are in degrees")])
def test_units_of_a_file_that_names_its_units_are_suspected_by_the_fit(recorded, tmp_path, edit, words):
    """Units of the result of a run are known, but a person may have edited it."""
    model, x = recorded
    path = written(tmp_path / "trajectory.csv", edit(x), ["# liedyn: 1\n# model: model.yaml\n" + TITLES[0], *TITLES[1:]])
    fit = ld.identify(model, path)
    assert re.search(words, fit.verdict), fit.verdict


@pytest.mark.parametrize("name", ["torque of one joint in N mm", "all torques in other units", "sign of all torques"])
def test_values_that_depend_on_torques_of_wrong_signs_or_units_are_not_reliable(recorded, tmp_path, name):
    model, x = recorded
    fit = ld.identify(model, written(tmp_path / "recording.csv", FAULTS[name][0](x)))
    assert not {*fit.verdicts} & {"reliable", "imprecise"} or name == "torque of one joint in N mm"
    assert not any(fit.reliable[k] for k, misfit in enumerate(fit.misfits) if "j2" in misfit) and any(fit.misfits)
    if name == "torque of one joint in N mm":
        assert "the measured torques of j2 are about 1000 times those of the robot file: they seem to be in Nmm" in fit.verdict
        assert not any("estimated parameters" in one.message for one in fit.warnings)


@pytest.mark.parametrize("name", ERRORS)
def test_the_error_names_the_fault(recorded, tmp_path, name):
    model, x = recorded
    edit, titles, words = ERRORS[name]
    with pytest.raises(ld.TrajectoryError, match=words):
        ld.identify(model, written(tmp_path / "recording.csv", edit(x), titles))


def test_a_good_recording_has_no_fault(recorded, tmp_path):
    model, x = recorded
    fit = ld.identify(model, written(tmp_path / "recording.csv", x))
    assert fit.verdict == "the model explains the torques" and fit.reliable.sum() > 12
    assert {one.code for one in fit.warnings} == {"derived-motion", "position-noise", "forces-filtered"}


def test_an_encoder_with_several_steps_in_most_rows_is_not_coarse(recorded):
    model, x = recorded
    fit = ld.identify(model, T, np.round(x[:, 1:4] / 0.002) * 0.002, x[:, 4:7])
    assert "coarse-positions" not in {one.code for one in fit.warnings}


@pytest.mark.parametrize("name", ["swapped positions", "one joint in degrees", "sign of a position", "mm"])
def test_the_map_of_the_warning_repairs_the_recording(recorded, tmp_path, name):
    model, x = recorded
    path = written(tmp_path / "recording.csv", FAULTS[name][0](x))
    hint, = (one.hint for one in ld.identify(model, path).warnings if one.code == "suspected-columns")
    columns, = re.findall(r"--columns \(or columns=\) '?([^']*)'?", hint)
    assert ld.identify(model, ld.read_trajectory(path, columns=columns)).verdict == "the model explains the torques"


def test_faults_that_a_right_model_explains_are_not_suspected(recorded):
    """A joint that stays, and a torque at its limit, in exact data: the model explains them."""
    model, x = recorded
    q = x[:, 1:4].copy()
    q[:300, 1] = q[300, 1]
    v = np.gradient(q, T, axis=0)
    a = np.gradient(v, T, axis=0)
    fit = ld.identify(model, T, q, ld.inverse_dynamics(model, q, v, a), v=v, a=a)
    assert fit.verdict == "the model explains the torques"
