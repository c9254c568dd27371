"""Planar mechanisms: what is drawn, at which scale, and what a CAD program reads."""
from pathlib import Path

import ezdxf
import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.errors import NameLookupError, UsageError
from liedyn.report.plots import palette
from liedyn.report.plots.mechanism_drawing import check_dxf, curve_point, draw_mechanism, drawing_scale, mechanism_of, save_dxf
from liedyn.report.plots.plot_data import PlotData

T = np.linspace(0.0, 1.0, 25)


@pytest.fixture(scope="module")
def model():
    """Return a crank of 0.1 m and a rod of 0.3 m in the plane x-z."""
    body = {"mass": 1.0, "inertia": (0.1, 0.0, 0.0, 0.1, 0.0, 0.1)}
    links = (ld.Link("crank", com=(0.05, 0.0, 0.0), **body), ld.Link("rod", com=(0.3, 0.0, 0.0), **body))
    joints = (ld.Joint("shaft", "continuous", "world", "crank", axes=((0.0, -1.0, 0.0),)),
              ld.Joint("pin", "continuous", "crank", "rod", axes=((0.0, -1.0, 0.0),), origin=(0.1, 0.0, 0.0)))
    return ld.build(ld.Robot("slider", links, joints))


def motion():
    return np.column_stack([2 * np.pi * T, -2 * np.pi * T])


def test_links_pivots_and_curves(model):
    mechanism, warnings = mechanism_of(model, T, motion(), "xz", ["crank:0.1,0,0", "rod"])
    assert not warnings and [name for name, _ in mechanism.curves] == ["crank:0.1,0,0", "rod"]
    circle = 0.1 * np.column_stack([np.cos(2 * np.pi * T), np.sin(2 * np.pi * T)])
    for _, path in mechanism.curves:
        np.testing.assert_allclose(path, circle, atol=1e-14)
    fixed, = mechanism.fixed
    assert mechanism.points[fixed] == pytest.approx([0.0, 0.0])
    lengths = sorted(np.linalg.norm(np.subtract(*mechanism.points[list(edge)])) for edge in mechanism.edges)
    assert lengths == pytest.approx([0.1, 0.3])


def test_the_figure_is_to_scale(model):
    mechanism, _ = mechanism_of(model, T, motion(), "xz", ["rod:0.3,0,0"])
    factor, text = drawing_scale(mechanism, 6.1)
    assert text == "1:5" and factor == 0.2                    # 0.5 m wide, 6.1 inches are 0.155 m
    for width in (7.0, 3.5):
        figure = draw_mechanism(mechanism, PlotData("slider", T, (), look=palette.Look(width)))
        axes, = figure.axes
        factor = drawing_scale(mechanism, width - 0.9)[0]
        box, (x0, x1), (y0, y1) = axes.get_position(), axes.get_xlim(), axes.get_ylim()
        assert box.width * width * 0.0254 / (x1 - x0) == pytest.approx(factor)
        assert box.height * figure.get_figheight() * 0.0254 / (y1 - y0) == pytest.approx(factor)
        outline = np.concatenate([mechanism.points, mechanism.curves[0][1]])
        assert (outline > (x0, y0)).all() and (outline < (x1, y1)).all()


def test_another_size_has_no_scale(model):
    """The bar is as long as its label states, with the same scale along both axes."""
    figure = draw_mechanism(mechanism_of(model, T, motion(), "xz", ["rod:0.3,0,0"])[0], PlotData("slider", T, ()))
    axes, = figure.axes

    def labels():
        return [text.get_text() for text in (*figure.texts, *axes.texts) if "mm" in text.get_text() or "1:" in text.get_text()]

    assert labels() == ["100 mm   scale 1:5"]
    figure.set_size_inches(4.0, 4.0)
    assert labels() == ["100 mm"] and axes.get_aspect() == 1.0


def test_a_motion_out_of_the_plane_is_projected_with_a_warning(model):
    mechanism, (warning,) = mechanism_of(model, T, motion(), "xy", ["rod"])
    assert warning.code == "not-planar" and "by up to 0.2 m" in str(warning) and np.ptp(mechanism.curves[0][1][:, 1]) == 0.0


def test_a_cad_program_reads_millimetres_and_layers(model, tmp_path):
    mechanism, _ = mechanism_of(model, T, motion(), "xz", ["rod"])
    save_dxf(mechanism, tmp_path / "one.dxf")
    save_dxf(mechanism, tmp_path / "two.dxf")
    assert (tmp_path / "one.dxf").read_bytes() == (tmp_path / "two.dxf").read_bytes()
    drawing = ezdxf.readfile(tmp_path / "one.dxf")
    assert drawing.units == ezdxf.units.MM and not drawing.audit().errors
    by_layer = {}
    for entity in drawing.modelspace():
        by_layer.setdefault(entity.dxf.layer, []).append(entity)
    assert sorted(line.dxf.start.distance(line.dxf.end) for line in by_layer["LINKS"]) == pytest.approx([100.0, 300.0])
    assert len(by_layer["GROUND"]) == 1 and by_layer["GROUND"][0].dxf.center.magnitude == pytest.approx(0.0)
    points = np.array([point[:2] for point in by_layer["CURVE_1"][0].get_points()])
    np.testing.assert_allclose(points, 1000 * mechanism.curves[0][1], atol=1e-9)


@pytest.mark.parametrize("text", ["rod:0.1,0", "rod:a,b,c", "rod:nan,0,0", "tube"])
def test_curves_that_are_none(model, text):
    assert curve_point("rod", model) == ("rod", (0.0, 0.0, 0.0)) and curve_point("rod:0.1,-2,3e-1", model)[1] == (0.1, -2.0, 0.3)
    with pytest.raises(UsageError, match=r"is not LINK or LINK:X,Y,Z.*the robot has the links crank, rod"):
        curve_point(text, model)


def test_a_link_that_does_not_exist_is_named(model):
    with pytest.raises(NameLookupError, match="tube"):
        curve_point("tube:0,0,0", model)


def test_by_the_command(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ld.save(model, "slider.yaml")
    rows = "".join(f"{t},{a},{b}\n" for t, (a, b) in zip(T, motion(), strict=True))
    Path("turn.csv").write_text("# robot: slider.yaml\nt[s],q.shaft[rad],q.pin[rad]\n" + rows)
    ok("plot", "turn.csv", "--plane", "xz", "--curve", "rod:0.3,0,0", "-f", "svg", "-f", "dxf", "--until", "0.5")
    assert sorted(path.name for path in Path("turn_plots").iterdir()) == ["mechanism.dxf", "mechanism.svg"]
    ok("plot", "turn.csv", "--plane", "xz", "--quantities", "q,mechanism", "-f", "svg", "--force")
    assert Path("turn_plots/positions.svg").exists()
    for args, message in ((["--curve", "rod"], "--curve and -f dxf require --plane"), (["-f", "dxf"], "require --plane"),
                          (["--plane", "xx"], "xx"), (["--plane", "xz", "--curve", "rood"], "rood"),
                          (["--plane", "xz", "--from", "9"], "no row")):
        done = run("plot", "turn.csv", "-o", "other", *args)
        assert done.exit_code == 2 and message in done.stderr and not Path("other").exists()


def test_without_the_package_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setattr("liedyn.report.plots.mechanism_drawing.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'liedyn\[dxf\]'"):
        check_dxf()
