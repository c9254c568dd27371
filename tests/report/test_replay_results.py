"""The page of results in memory, and in notebooks."""
import html
import re

import numpy as np
import pytest

import liedyn as ld
from command_line import ok
from liedyn.report.replay import replay
from liedyn.report.replay.meshes import unpacked
from liedyn.report.replay.page import data_of


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "arm.yaml"
    path.write_text("links: {arm: {mass: 1, com: [0, 0, -1], inertia: [1, 1, 1]}, tip: {}}\n"
                    "joints:\n  hinge: {type: continuous, parent: world, child: arm, axis: [0, 1, 0]}\n"
                    "  end: {type: fixed, parent: arm, child: tip, origin: {xyz: [0, 0, -2]}}\n")
    return ld.run_scenario({"robot": str(path), "duration": 0.4, "initial": {"q": {"hinge": 0.5}}})


def test_a_notebook_shows_the_motion(result):
    text = result._repr_html_()
    found = re.fullmatch(r'<iframe srcdoc="([^"]*)" title="([^"]*)" sandbox="allow-scripts allow-downloads" width="100%" '
                         r'height="\d+" style="[^"]*"></iframe>', text)
    page = html.unescape(found[1])
    assert page == ld.replay_of(result) and html.unescape(found[2]) == repr(result)
    run, = data_of(page)["runs"]
    t, q = unpacked(run["t"])[:, 0], unpacked(run["curves"])[:, 0]
    rows = np.searchsorted(result.t, t - 1e-6)
    assert np.abs(q - result.q[rows, 0]).max() < 1e-4 * np.ptp(result.q) and (run["name"], run["robot"]) == ("arm", "arm")


def test_a_long_motion_is_not_kept_in_the_notebook(result, monkeypatch):
    monkeypatch.setattr(replay, "_MOST", 1000)
    text = result._repr_html_()
    assert "iframe" not in text and html.escape(repr(result)) in text and 'run.replay("replay.html")' in text


def test_pages_of_several_results(result, tmp_path):
    result.replay(tmp_path / "page.html", against=[result], side_by_side=True, traces=["tip"], follow="arm", speed=0.5)
    data = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [one["name"] for one in data["runs"]] == ["arm 1", "arm 2"] and data["title"] == "arm"
    assert (data["beside"], data["traces"], data["follow"], data["speed"]) == (True, ["tip"], "arm", 0.5)
    with pytest.raises(ld.UsageError, match=r"page\.html already exists"):
        result.replay(tmp_path / "page.html")
    with pytest.raises(ld.NameLookupError, match="no link 'tup'; did you mean 'tip'"):
        ld.replay_of(result, traces=["tup"])
    with pytest.raises(ld.UsageError, match="has no meshes; a URDF names them in <visual>"):
        ld.replay_of(result, meshes=True)


def test_it_is_the_page_of_the_command(result, tmp_path):
    result.save(tmp_path / "arm")
    ok("replay", tmp_path / "arm")
    commanded = data_of((tmp_path / "arm" / "replay.html").read_text(encoding="utf-8"))["runs"][0]
    mine = data_of(ld.replay_of(result))["runs"][0]
    assert commanded == mine
