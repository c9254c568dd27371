"""Rollouts as tables, plots and pages."""
import json
import re

import numpy as np
import pandas
import pytest

import liedyn as ld

RNG = np.random.default_rng(2)


@pytest.fixture(scope="module")
def model():
    return ld.load("robots/double_pendulum.yaml")


def rollout(model, shape, **options):
    return ld.rollout(model, RNG.uniform(-1, 1, (*shape, 2)), [0.0, 0.0], **({"dt": 1e-3, "steps": 20, "every": 5} | options))


def test_a_table_has_a_row_for_each_run_and_time(model):
    runs = rollout(model, (3,), forces=True)
    table = runs.to_pandas()
    assert table.index.names == ["run", "t[s]"] and table.shape == (3 * 5, 8)
    assert table.columns[:3].to_list() == ["q.shoulder[rad]", "q.elbow[rad]", "v.shoulder[rad/s]"]
    for k in range(3):
        np.testing.assert_array_equal(table.loc[k].index, runs.t)
        np.testing.assert_array_equal(table.loc[k, ["v.shoulder[rad/s]", "v.elbow[rad/s]"]], runs.v[k])
        np.testing.assert_array_equal(table.loc[k, "tau.elbow[N m]"], runs.tau[k, :, 1])


def test_several_axes_of_runs_are_levels_and_a_single_run_has_the_time_alone(model):
    runs = rollout(model, (2, 3))
    table = runs.to_pandas()
    assert table.index.names == ["run.0", "run.1", "t[s]"]
    np.testing.assert_array_equal(table.loc[1, 2]["q.elbow[rad]"], runs.q[1, 2, :, 1])
    single = rollout(model, ()).to_pandas()
    assert isinstance(single.index, pandas.Index) and single.index.name == "t[s]" and len(single) == 5
    assert rollout(model, (0,)).to_pandas().shape == (0, 4)


def test_rows_after_the_end_of_a_run_are_nan(model):
    runs = ld.rollout(model, np.zeros((2, 2)), [0, 0], np.array([[[0.0, 0]], [[1e300, 0]]]), dt=1e-3, steps=4)
    assert not runs.complete[1] and runs.to_pandas().loc[1].isna().any(axis=None)
    assert not runs.to_pandas().loc[0].isna().any(axis=None)
    runs.plot()._repr_png_()


@pytest.mark.parametrize("shape", [(), (1,), (12,), (13,), (2, 10)])
def test_a_figure_has_a_panel_for_each_coordinate(model, shape):
    """It has a curve for each run, or bands around the median of many runs."""
    runs = rollout(model, shape, forces=True)
    for what in ("positions", "velocities", "accelerations", "torques"):
        figure = runs.plot(what)
        assert len(figure.axes) == 2 and figure._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"
        count = runs.ended_at.size
        for k, axes in enumerate(figure.axes):
            curves = [line for line in axes.lines if len(line.get_xdata()) == 5]
            assert len(curves) == (count if count <= 12 else 1) and len(axes.collections) >= 2 * (count > 12)
            if what == "positions" and count > 12:
                np.testing.assert_allclose(curves[0].get_ydata(), np.median(runs.q[..., k].reshape(count, 5), axis=0))


def test_a_plot_that_does_not_exist(model):
    with pytest.raises(ld.NameLookupError, match=r"unknown plot 'tau' of this rollout: expected one of positions, velocities$"):
        rollout(model, (2,)).plot("tau")
    with pytest.raises(ld.NameLookupError, match="forces=True of the rollout adds accelerations and torques"):
        rollout(model, (2,)).plot("torques")
    with pytest.raises(ld.UsageError, match="the rollout has no runs to plot"):
        rollout(model, (0,)).plot()


def runs_of(page: str) -> list:
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])["runs"]


def test_a_page_shows_the_chosen_runs(model, tmp_path):
    runs = rollout(model, (2, 3), forces=True)
    runs.replay(tmp_path / "runs.html", runs=[4, 0], side_by_side=True)
    shown = runs_of((tmp_path / "runs.html").read_text(encoding="utf-8"))
    assert [run["name"] for run in shown] == ["run 4", "run 0"]
    with pytest.raises(ld.UsageError, match="exists"):
        runs.replay(tmp_path / "runs.html")
    for chosen, text in (([6], "there is no run 6; the rollout has 6 runs, from 0 to 5"), ([], "1 to 16 runs, got 0"),
                         (range(17), "1 to 16 runs, got 17"), ([-1], "there is no run -1")):
        with pytest.raises(ld.UsageError, match=text):
            runs.replay(tmp_path / "no.html", runs=chosen)
    with pytest.raises(ld.UsageError, match="against is for results"):
        ld.replay_of(runs, against=[ld.simulate(model, duration=0.01)])


def test_a_page_of_variants_shows_the_robot_of_each_run(model, tmp_path):
    longer = model.with_changes(origin={"elbow": ld.Pose([1, 0, 0, 0, 1, 0, 0, 0, 1], [0, 0, -2.0])})
    runs = ld.rollout(ld.Variants([model, longer]), [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=5)
    from liedyn.report.replay.sources import shown_rollout
    first, second = shown_rollout(runs, [0, 1])
    heights = [ld.link_pose(run.model, [0, 0], "tip")[2, 3] for run in (first, second)]
    assert heights == [ld.link_pose(robot, [0, 0], "tip")[2, 3] for robot in (model, longer)] and heights[0] > heights[1]
    runs.replay(tmp_path / "runs.html", runs=[0, 1])


def test_notebooks_show_the_first_run(model):
    text = rollout(model, (2,))._repr_html_()
    assert text.startswith("<pre>&lt;Rollout: 2 runs") and "<iframe" in text
    assert "<iframe" not in rollout(model, (0,))._repr_html_()
