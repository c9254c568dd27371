"""Parts of plot data, runs that are compared, and the options of the command that select them."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.errors import UsageError
from liedyn.report.plots import palette
from liedyn.report.plots.palette import look_of
from liedyn.report.plots.plot_data import (
    BasePath,
    Energy,
    Group,
    PlotData,
    Series,
    Skeleton,
    TrackedReferences,
    compare_runs,
    select_quantities,
    select_times,
)
from liedyn.report.plots.save_plots import figures

T = np.linspace(0.0, 2.0, 21)


def whole():
    def group(kind, name, unit):
        curves = tuple(Series(joint, "", unit, np.sin(T + k)) for k, joint in enumerate(("hip", "knee")))
        return Group(name, name, curves, kind=kind)

    still = np.tile([0.0, 0.0, 0.0, 1.0], (21, 1))
    skeleton = Skeleton(T[::2], np.zeros((11, 2, 3)), ((0, 1),))
    followed = TrackedReferences("law", T, {"hip": ("rad", T, T)})
    return PlotData("leg", T, (group("q", "positions", "rad"), group("tau", "torques", "N m")), Energy(T, -T, T, 0 * T),
                    BasePath(still[:, :3], still), skeleton, 0 * T, "rad", (followed,),
                    ((0.5, "lands", "stance"), (1.5, "jumps", "flight")), "flight", {"foot": T > 1})


@pytest.mark.parametrize("quantities, joints, expected", [
    ((), (), ["motion", "positions", "torques", "tracking", "energy", "base_path"]),
    (("q", "energy"), (), ["positions", "energy"]),
    (("torques",), ("kn*",), ["torques"]),
    ((), ("hip",), ["positions", "torques"]),
    (("motion", "q"), ("hip",), ["motion", "positions"]),
])
def test_quantities_and_joints(quantities, joints, expected):
    data = select_quantities(whole(), quantities, joints)
    others = {"motion": data.skeleton, "tracking": data.tracking, "energy": data.energy, "base_path": data.base}
    assert {*(name for name, x in others.items() if x), *(group.name for group in data.groups)} == set(expected)
    drawn = {s.joint for group in data.groups for s in group.series}
    assert drawn == ({"hip"} if joints == ("hip",) else {"knee"} if joints else {"hip", "knee"} if data.groups else set())


@pytest.mark.parametrize("quantities, joints, message", [
    (("speed",), (), "nothing to plot for speed: expected any of q, tau, base_path, energy, motion, positions, torques, track"),
    ((), ("ankle",), "joint or link"),
])
def test_what_is_not_there_is_named(quantities, joints, message):
    with pytest.raises(UsageError, match=message):
        select_quantities(whole(), quantities, joints)


def test_times_cut_everything():
    data = select_times(whole(), 1.0, 1.6)
    assert data.t[0] == 1.0 and data.t[-1] == pytest.approx(1.6) and len(data.t) == 7
    lengths = {len(x) for x in (data.drift, data.energy.kinetic, data.energy.residual, data.base.position, data.base.quaternion,
                                data.groups[0].series[0].values, data.tracking[0].joints["hip"][1], data.contacts["foot"])}
    assert lengths == {7} and data.skeleton.points.shape == (4, 2, 3) and data.skeleton.edges == ((0, 1),)
    assert data.events == ((1.5, "jumps", "flight"),) and data.phase == "stance"
    assert select_times(whole(), None, None).t is T
    with pytest.raises(UsageError, match=r"no row from 3 s: the motion is from 0 to 2 s"):
        select_times(whole(), 3.0, None)


def test_runs_share_panels():
    other = PlotData("leg", 2 * T, (Group("torques", "torques", (Series("hip", "", "N m", T),), kind="tau"),), Energy(T, T))
    data = compare_runs([whole(), other], ["soft", "stiff"])
    assert [group.name for group in data.groups] == ["positions", "torques", "energy"] and data.runs == ("soft", "stiff")
    drawn = figures(data)
    hip = drawn["torques"].axes[0]
    curves = [line for line in hip.lines if len(line.get_xdata()) > 2]
    assert [line.get_color() for line in curves] == list(palette.CURVES[:2]) and hip.get_xlim() == (0.0, 4.0)
    assert np.array_equal(curves[1].get_xdata(), 2 * T)
    assert [text.get_text() for text in drawn["torques"].texts][-2:] == ["— soft", "— stiff"]
    late = select_times(data, 2.5, None)
    assert late.t.tolist() == [2.5, 4.0] and [[s.run for s in group.series] for group in late.groups] == [[], [1], [1, 1, 1]]
    assert list(figures(select_quantities(late, (), ()))) == ["torques", "energy"]
    with pytest.raises(UsageError, match="no row from 9"):
        select_times(data, 9.0, None)


def test_components_of_runs_differ_by_colour_and_pattern():
    forces = tuple(Series("base", x, "N", np.sin(T + k)) for k, x in enumerate(("fx", "fy")))
    base = [PlotData("", T, (Group("torques", "", forces, kind="tau"),))] * 2
    axes, = figures(compare_runs(base, ["a", "b"]))["torques"].axes
    lines = axes.lines[-4:]
    assert [line.get_color() for line in lines] == 2 * [palette.VERMILLION, palette.GREEN]
    assert [line.is_dashed() for line in lines] == [False, False, True, True]


@pytest.mark.parametrize("style, width, message", [("poster", None, "unknown style 'poster': expected screen or paper"),
                                                   ("paper", 0.5, "must be 1.5 to 40 inches, got 0.5"),
                                                   ("screen", float("nan"), "got nan")])
def test_looks_that_do_not_exist(style, width, message):
    assert look_of("paper").width == 3.5 and look_of("screen").width is None and look_of("paper", 7.0).paper
    with pytest.raises(UsageError, match=message):
        look_of(style, width)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, sign in (("soft", 1), ("stiff", -1)):
        rows = "".join(f"{t},{sign * t},{2 * t},{sign}\n" for t in T)
        Path(f"{name}.csv").write_text("t[s],q.hip[rad],q.knee[rad],tau.hip[N m]\n" + rows)
    return tmp_path


def test_runs_without_common_joints_are_a_warning(folder):
    Path("other.csv").write_text(Path("soft.csv").read_text().replace("hip", "toe").replace("knee", "heel"))
    done = ok("plot", "soft.csv", "other.csv", "-f", "svg")
    assert "have no joints in common: no panel compares them [nothing-compared]" in done.stderr and "the runs soft" in done.stderr


def test_the_command_selects_and_compares(folder):
    assert "nothing-compared" not in ok("plot", "soft.csv", "stiff.csv", "-f", "svg").stderr
    assert sorted(path.name for path in Path("soft_stiff_plots").iterdir()) == ["positions.svg", "torques.svg"]
    ok("plot", "soft.csv", "--style", "paper", "--quantities", "q", "--joints", "knee", "--from", "0.5", "--until", "1.5")
    assert sorted(path.name for path in Path("soft_plots").iterdir()) == ["positions.pdf", "positions.svg"]
    assert 'width="252pt"' in Path("soft_plots/positions.svg").read_text()                  # 3.5 inches


@pytest.mark.parametrize("args, message", [
    (["--joints", "toe"], "toe"), (["--joints", ","], "expected names, separated by commas"),
    (["--quantities", "v"], "expected any of q, tau"),
    (["--from", "9"], "no row from 9"), (["--width", "100"], "1.5 to 40 inches"), (["--style", "poster"], "poster"),
])
def test_options_that_select_nothing(folder, args, message):
    done = run("plot", "soft.csv", *args)
    assert done.exit_code == 2 and message in done.stderr and not Path("soft_plots").exists()


def test_a_result_is_drawn_for_a_column_of_a_page():
    result = ld.simulate("robots/double_pendulum.yaml", duration=0.1, q0=[0.3, 0.0])
    figure = result.plot("positions", width=3.5, style="paper", joints=["elbow"], t=(0.02, 0.08))
    axes, = figure.axes
    assert figure.get_figwidth() == 3.5 and axes.get_xlim() == (pytest.approx(0.02), pytest.approx(0.08))
    with pytest.raises(UsageError, match="style"):
        result.plot(style="slides")


def test_results_are_compared_in_the_same_panels():
    slow, fast = (ld.simulate("robots/double_pendulum.yaml", duration=0.1, q0=[q, 0.0]) for q in (0.3, 0.9))
    axes, = slow.plot("positions", against=[fast], joints=["shoulder"]).axes
    assert [line.get_ydata()[0] for line in axes.lines] == [0.3, 0.9]
    other = ld.simulate("robots/cart_pole.yaml", duration=0.1)
    with pytest.warns(ld.LiedynWarning, match="the runs double_pendulum 1, cart_pole 2 have no joints in common"):
        slow.plot(against=[other])
    for against, kind in ((fast, "Result"), (["runs/fast"], "str"), ("runs/fast", "str"), ([fast, None], "NoneType")):
        for draw in (slow.plot, lambda **keys: ld.replay_of(slow, **keys)):
            with pytest.raises(ld.ArgumentError, match=rf"against must be a list of Result, such as \[run\], got {kind}$"):
                draw(against=against)
