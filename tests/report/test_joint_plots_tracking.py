"""Tracking errors of one run and of several: what is drawn, how runs are told apart, what cannot be compared."""
from pathlib import Path

import numpy as np
import pytest

from command_line import run
from liedyn.errors import UsageError
from liedyn.io.trajectory_csv import Trajectory
from liedyn.report.motion_plots import PlotOptions, plot_trajectories
from liedyn.report.plots.joint_plots import draw_tracking
from liedyn.report.plots.plot_data import PlotData, TrackedReferences, followed_of
from liedyn.report.plots.save_plots import figures

T = np.linspace(0.0, 2.0, 201)
REFERENCE = np.sin(3 * T)


def followed(label="law", error=1e-6, t=T, **more):
    joints = {"waist": ("rad", np.sin(3 * t) + error * np.cos(9 * t), np.sin(3 * t)), "rail": ("m", t + error, t)}
    return TrackedReferences(label, t, joints | more)


def curves(axes):
    return [line for line in axes.lines if len(line.get_xdata()) > 2]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def track(*runs):
    return draw_tracking(PlotData("arm", T, (), tracking=runs))


@pytest.mark.parametrize("size", [1.0, 1e-12])
def test_motions_of_any_size_fill_their_axes(size):
    axes = track(TrackedReferences("law", T, {"rail": ("m", size * REFERENCE, size * REFERENCE)})).axes[0]
    low, high = np.array(axes.get_ylim()) / size
    assert -1.2 < low < -1.0 and 1.0 < high < 1.2


def test_a_row_a_joint_motion_and_error():
    figure = track(followed())
    motion, error, rail, _ = figure.axes
    link, reference = curves(motion)
    assert np.array_equal(reference.get_ydata(), REFERENCE) and np.abs(link.get_ydata() - REFERENCE).max() < 2e-6
    line, = curves(error)
    np.testing.assert_allclose(line.get_ydata(), np.log10(np.abs(1e-6 * np.cos(9 * T))), atol=1e-3)
    assert {"waist", "angle [rad]"} <= set(texts(motion)) and {"rail", "position [m]"} <= {*texts(rail)}
    assert "|error|" in texts(error)
    low, high = error.get_ylim()
    assert low <= -8 and -6 < high <= -5 and "10⁻⁶" in texts(error)
    assert {text.get_text() for text in figure.texts} == {"Tracking", "arm", "— law", "- - reference"}


def test_runs_have_colours_and_names_of_their_own_and_may_differ_in_time():
    long = np.linspace(0.0, 3.0, 50)
    figure = track(followed("feedback_linearization"), followed("computed_torque", 1e-2, long))
    motion, error = figure.axes[:2]
    first, second = curves(error)
    assert first.get_color() != second.get_color() and len(second.get_xdata()) == 50
    assert error.get_xlim() == motion.get_xlim() == (0, 3) and error.get_ylim()[1] >= -2
    named = {text.get_text(): text.get_color() for text in figure.texts}
    assert named["— feedback linearization"] == first.get_color() and named["— computed torque"] == second.get_color()


def test_no_error_at_all_is_an_empty_panel():
    figure = track(TrackedReferences("", T, {"waist": ("rad", REFERENCE, REFERENCE)}))
    assert curves(figure.axes[1]) == [] and np.isfinite(figure.axes[1].get_ylim()).all()
    assert [text.get_text() for text in figure.texts] == ["Tracking", "arm", "- - reference"]


def test_panels_stay_on_the_page_and_apart():
    many = {f"joint{k}": ("rad", REFERENCE, REFERENCE + 1e-3) for k in range(7)}
    figure = track(followed(**many))
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == 18 and all(0 < box.x0 < box.x1 < 1 and 0 < box.y0 < box.y1 < 1 for box in boxes)
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_a_recording_with_tracking_has_the_picture():
    columns = {"link.waist": REFERENCE, "reference.waist": REFERENCE, "q.waist": REFERENCE, "reference.lonely": T}
    found = followed_of(Trajectory({"control": "law"}, T, columns, {"reference.waist": "rad"}))
    assert [list(one.joints) for one in found] == [["waist"]] and found[0].joints["waist"][0] == "rad"
    assert followed_of(Trajectory({"control": "law"}, T, {"q.waist": T}, {})) == ()
    assert list(figures(PlotData("arm", T, (), tracking=found))) == ["tracking"]
    assert list(figures(PlotData("arm", T, ()))) == []


# files -------------------------------------------------------------------------------------------------------------------
@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = "t[s],link.waist[rad],reference.waist[rad]\n"
    for name, law, error in (("one", "feedback_linearization", 1e-9), ("two", "computed_torque", 1e-2),
                             ("three", "computed_torque", 2e-2)):
        (tmp_path / name).mkdir()
        rows = "".join(f"{t},{t + error},{t}\n" for t in T)
        (tmp_path / name / "trajectory.csv").write_text(f"# control: {law}\n" + head + rows)
    (tmp_path / "other.csv").write_text("t[s],q.waist[rad]\n0,0\n1,1\n")
    (tmp_path / "knee.csv").write_text(head.replace("waist", "knee") + "0,0,0\n1,1,1\n")
    return tmp_path



def test_of_a_run_folder_alone(folder):
    written, warnings = plot_trajectories(["one/trajectory.csv"], None, Path("out"), ("png",))
    assert [path.name for path in written.paths] == ["tracking.png"] and len(warnings) == 1


@pytest.mark.parametrize(("others", "labels"), [
    (["two"], ["feedback linearization", "computed torque"]),
    (["two", "three/trajectory.csv"], ["one", "two", "three"]),
])
def test_against_other_runs_by_the_command(folder, others, labels, monkeypatch):
    seen = []
    monkeypatch.setattr("liedyn.report.plots.save_plots.draw_tracking",
                        lambda recording: seen.extend(recording.tracking) or draw_tracking(recording))
    args = [word for other in others for word in ("--against", other)]
    done = run("plot", "one", "-f", "png", *args)
    assert done.exit_code == 0, done.output
    assert Path("one/plots/tracking.png").is_file() and "tracking.png" in done.output
    assert [run.label.replace("_", " ") for run in seen] == labels
    assert [round(float(np.log10(np.abs(np.subtract(*run.joints["waist"][1:])).max()))) for run in seen][:2] == [-9, -2]


@pytest.mark.parametrize(("first", "against", "message"), [
    ("one/trajectory.csv", "other.csv", r"other\.csv cannot be compared: .* are missing: only runs with control have them"),
    ("other.csv", "one", r"other\.csv cannot be compared: .* are missing"),
    ("one/trajectory.csv", "knee.csv", r"knee\.csv cannot be compared: .* are of other joints"),
])
def test_what_cannot_be_compared(folder, first, against, message):
    with pytest.raises(UsageError, match=message):
        plot_trajectories([first], None, Path("out"), ("png",), PlotOptions(against=(against,)))
    assert not Path("out").exists()
