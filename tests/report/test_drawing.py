"""Drawing in another process gives the same plots, and its failure is no failure."""
import os
import sys
from dataclasses import replace

import numpy as np

from liedyn.report.plots.drawing import PlotProcess
from liedyn.report.plots.plot_data import FORMATS, Group, PlotData, Series
from liedyn.report.plots.save_plots import save_figures

T = np.linspace(0, 1, 11)
WAVE = PlotData("arm", T, (Group("positions", "Joint positions", (Series("elbow", "", "rad", np.sin(T)),)),))


def contents(written):
    assert not written.failures
    return {path.name: path.read_bytes() for path in written.paths}


def test_the_same_pictures(tmp_path):
    with PlotProcess() as plot_process:
        process = plot_process._process
        far = plot_process.save_figures(WAVE, tmp_path / "far", FORMATS)
    assert process.returncode == 0
    assert contents(far) == contents(save_figures(WAVE, tmp_path / "near"))
    assert list(contents(far)) == ["positions.png", "positions.svg"]


def test_two_orders(tmp_path):
    with PlotProcess() as plot_process:
        first = plot_process.save_figures(WAVE, tmp_path / "first", FORMATS)
        assert contents(first) == contents(plot_process.save_figures(WAVE, tmp_path / "second", FORMATS))


def test_without_a_process_the_caller_draws(tmp_path, monkeypatch):
    for command in ("/no/such/python", "false"):
        monkeypatch.setattr(sys, "executable", command)
        with PlotProcess() as plot_process:
            written = plot_process.save_figures(WAVE, tmp_path / command.strip("/"), ("svg",))
        assert list(contents(written)) == ["positions.svg"]


def test_what_fails_there_is_told_here(tmp_path):
    bad = replace(WAVE, groups=(replace(WAVE.groups[0], name="no/such/folder"), *WAVE.groups))
    with PlotProcess() as plot_process:
        written = plot_process.save_figures(bad, tmp_path, ("svg",))
    assert [path.name for path in written.paths] == ["positions.svg"] and os.listdir(tmp_path) == ["positions.svg"]
    assert list(written.failures) == ["no/such/folder"]


def test_the_process_is_gone_where_nothing_is_drawn():
    with PlotProcess() as plot_process:
        process = plot_process._process
    assert process.poll() is not None
