"""Pages that simulate a scenario: their data, and the motion in a browser compared with runs."""
import json
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import run
from liedyn.report.replay.live import write_live
from liedyn.report.replay.page import ReplayOptions, data_of
from liedyn.report.replay.video import browser, chromium

ROOT = Path(__file__).parents[2]
SCENARIO = {"robot": str(ROOT / "robots/double_pendulum.yaml"), "duration": 0.2, "output_step": 0.2,
            "integrator": {"method": "rk4", "step": 1e-3}, "initial": {"q": {"shoulder": 0.5}},
            "joints": {"elbow": {"torque": {"pd": {"kp": 5, "kd": 0.5, "target": 0.3}}}}}        # `pd` below


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Open the page of the scenario."""
    path = tmp_path_factory.mktemp("live") / "live.html"
    report, warnings = write_live(SCENARIO, path, sliders=["damping.elbow=0:2"])
    assert report["bytes"] == path.stat().st_size < 1e6 and not warnings
    if chromium() is None:
        pytest.skip("no Chromium or Chrome on the path: `apt install chromium` on Debian")
    with browser(chromium()) as tab:
        tab.open(path.as_uri(), 1000, 700)
        tab.wait_for("window.replay || !document.getElementById('problem').hidden")
        problem = tab.ask("document.getElementById('problem').textContent")
        if "WebGL 2" in problem:
            pytest.skip(f"this Chromium draws without WebGL 2: {problem}")
        assert problem == ""
        tab.ask("window.live = replay.viewer.main.live; 0")
        yield tab
        assert [told for name, told in tab.events if name == "Runtime.exceptionThrown"] == []


def simulated(page, script: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Run the page from the start, after a script. Return q and v."""
    page.ask(f"""live.sliders.forEach((slider) => slider.set(slider.start));
        live.modes.rows.forEach((row) => row.choose(row.start));
        {script}; live.reset(); live.simulation.run(0.2)""")
    return tuple(np.array(json.loads(page.ask(f"JSON.stringify([...live.simulation.{name}])"))) for name in "qv")


def slider(name: str, value: float) -> str:
    return f"live.sliders.find((slider) => slider.name === {json.dumps(name)}).set({value})"


def mode(*arguments) -> str:
    return f"live.modes.choose(...{json.dumps(arguments)})"


def pd(kp: float = 5, target: float = 0.3) -> dict:
    return {"joints": {"elbow": {"torque": {"pd": {"kp": kp, "kd": 0.5, "target": target}}}}}


CHANGES = {
    "default": ("", {}, {}),
    "gravity": (slider("gravity.z", -3.5), {"gravity": [0, 0, -3.5]}, {}),
    "gains": (slider("stiffness of pd laws ×", 2.0), pd(kp=10), {}),
    "target": (slider("target of elbow", -0.4), pd(target=-0.4), {}),
    "mass": (slider("mass.upper", 2.5), {}, {"mass.upper": 2.5}),
    "damping": (slider("damping.elbow", 1.5), {}, {"damping.elbow": 1.5}),
    "prescribed": (mode("elbow", "acceleration", 3), {"joints": {"elbow": {"prescribe": {"acceleration": 3}}}}, {}),
    "prescribed in place": (f"live.reset(); {mode('elbow', 'position')}",
                            {"joints": {"elbow": {"prescribe": {"position": 0}}}}, {}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_browser_gives_the_motion_of_python(page, name, worst):
    script, keys, parameters = CHANGES[name]
    model = ld.load(SCENARIO["robot"], gravity=keys.get("gravity"))
    for parameter, value in parameters.items():
        model = ld.Variants(model, {parameter: [value]}).robot(0)
    settings = {key: value for key, value in (SCENARIO | keys).items() if key not in ("robot", "gravity", "duration")}
    expected = ld.simulate(model, settings, duration=0.2)
    q, v = simulated(page, script)
    error = max(np.abs(q - expected.q[-1]).max(), np.abs(v - expected.v[-1]).max())
    assert worst("live page in Chromium", error, name) < 1e-12
    assert name == "default" or np.abs(q - simulated(page)[0]).max() > 1e-4


def test_the_mouse_pulls_a_link(page):
    """The link follows the mouse while its button is down; then the force is zero, and the page plays on."""
    simulated(page)
    page.ask("""{ const v = replay.viewer, box = document.getElementById("view").getBoundingClientRect(); v.restart();
        const m = v.camera.look(v.followed()).view, p = replay.position("tip");
        const at = [0, 1, 3].map((i) => m[i] * p[0] + m[4 + i] * p[1] + m[8 + i] * p[2] + m[12 + i]);
        window.spot = [box.left + (at[0] / at[2] + 1) / 2 * box.width, box.top + (1 - at[1] / at[2]) / 2 * box.height]; }""")
    x, y = page.ask("spot")

    def mouse(kind: str, x: float, y: float) -> None:
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    mouse("mousePressed", x, y)
    mouse("mouseMoved", x + 60, y - 60)
    page.wait_for("live.time > 0.1")
    place = page.ask("live.pull.place")
    force = page.ask(f"Math.hypot(...live.simulation.values.slice({place}, {place} + 6))")
    assert force > 0.0 and page.ask("replay.viewer.playing")
    assert page.ask("Math.hypot(...[0, 1, 2].map((k) => live.pull.target[k] - live.pull.point[k]))") > 0.0
    mouse("mouseReleased", x + 60, y - 60)
    assert page.ask("live.pull") is None
    assert page.ask(f"Math.max(...live.simulation.values.slice({place}, {place} + 6))") == 0.0
    page.ask("replay.viewer.play(false)")


def test_joints_that_become_prescribed_keep_their_motion(page):
    """A prescribed velocity is the present one; a prescribed position is reached without a jump; then the joint is free."""
    simulated(page)
    v = page.ask("live.simulation.v[0]")
    page.ask(f'{mode("shoulder", "velocity")}; live.simulation.run(0.3)')
    assert v != 0.0 and page.ask("live.simulation.v[0]") == pytest.approx(v, rel=1e-12)
    q = page.ask("live.simulation.q[0]")
    page.ask(f'{mode("shoulder", "position")}; live.simulation.run(0.31)')
    assert page.ask("live.simulation.v[0]") == pytest.approx(v, rel=0.4)
    page.ask("live.simulation.run(2)")
    assert page.ask("live.simulation.q[0]") == pytest.approx(q, abs=1e-8) and abs(page.ask("live.simulation.v[0]")) < 1e-6
    assert page.ask("document.querySelectorAll('#mode-list select').length") == 2
    assert page.ask("document.querySelector('#mode-list label input').ariaLabel") == "position of shoulder"
    page.ask("replay.viewer.sliders.move(replay.viewer.sliders.rows[0], 0.25); live.simulation.run(2.1)")
    assert page.ask("live.simulation.q[0]") == 0.25
    page.ask(f"{mode('shoulder', 'free')}; live.simulation.run(2.2)")
    assert page.ask("live.simulation.q[0]") != pytest.approx(0.25, abs=1e-3)


def test_curves_run_along_and_joints_set_the_state(page):
    simulated(page)
    page.ask("replay.viewer.restart(); replay.viewer.step(1); replay.viewer.step(1)")
    assert page.ask("live.t.length") == 3 and page.ask("live.curves.every((x) => x.length === 3)")
    page.ask("replay.viewer.sliders.move(replay.viewer.sliders.rows[0], 1.25)")
    assert page.ask("live.simulation.q[0]") == 1.25 and page.ask("live.simulation.v.every((x) => x === 0)")
    assert page.ask("document.getElementById('time').textContent").endswith(" s")


def test_an_embedded_page_shows_the_motion_alone(page):
    page.open(f"{page.ask('location.href')}?again#embedded&dark", 400, 300)
    page.wait_for("window.replay && replay.viewer.main.live.time > 0.02")
    shown = "getComputedStyle(document.querySelector({!r})).display"
    assert page.ask("replay.viewer.playing && replay.viewer.dark")
    assert [page.ask(shown.format(part)) for part in ("header", "#panel", "#legend")] == ["none"] * 3
    assert page.ask(shown.format("footer")) == "block" and page.ask("document.getElementById('view').clientHeight") > 200


def test_pages_have_sliders_for_what_the_scenario_contains(tmp_path):
    report, warnings = write_live(ROOT / "configs/quadruped_stands.yaml", tmp_path / "live.html",
                                  ReplayOptions(follow="body", speed=0.5))
    assert report["step"] == 1e-4 and report["bytes"] < 1e6
    assert report["sliders"] == ["gravity.z", "mass.body", "mass.HR_shank", "stiffness of pd laws ×", "damping of pd laws ×",
                                 "friction of contacts"]
    assert [warning.code for warning in warnings] == ["live-steps", "stiff-step"]
    text = (tmp_path / "live.html").read_text(encoding="utf-8")
    data = data_of(text)
    live = data["runs"][0]["live"]
    assert (data["title"], data["follow"], data["speed"]) == ("quadruped_stands", "body", 0.5)
    assert "'wasm-unsafe-eval'" in text and set(live["drags"]) >= {"body", "FL_shank", "FL_foot"}
    assert live["drags"]["FL_foot"] == live["drags"]["FL_shank"]                  # of the same body


def test_sliders_and_forces_have_their_numbers(tmp_path):
    """Gains of a sampled controller are those of its laws; forces of a scenario by component precede those of the mouse."""
    write_live(ROOT / "configs/ur5_sampled.yaml", tmp_path / "live.html",
               overrides=("events=null", "joints.wrist_3_joint={prescribe: {position: 0}}"))
    live = data_of((tmp_path / "live.html").read_text(encoding="utf-8"))["runs"][0]["live"]
    terms = {slider["name"]: slider["terms"] for slider in live["sliders"]}
    gains = live["simulation"]["initial"]["law_values"]
    assert [array for array, _, _ in terms["stiffness of pd laws ×"]] == ["law_values"] * 5
    assert [gains[k] for _, k, _ in terms["stiffness of pd laws ×"]] == [400, 600, 250, 12, 12]
    rows = {row["name"]: (row["places"], row["of_scenario"], row["reason"]) for row in live["modes"]}
    assert rows["wrist_3_joint"] == ([], True, "the sampled controller computes with its prescribed motion")
    assert rows["wrist_2_joint"] == ([4], False, "") and len(live["simulation"]["initial"]["modes"]) == 5 * 4
    write_live(ROOT / "configs/showcase.yaml", tmp_path / "live.html", force=True)
    live = data_of((tmp_path / "live.html").read_text(encoding="utf-8"))["runs"][0]["live"]
    values, places = live["simulation"]["initial"]["values"], sorted({place for _, place in live["drags"].values()})
    assert np.diff(places).tolist() == [6] * (len(places) - 1)
    assert not any(values[places[0]:places[-1] + 6]) and any(values[:places[0]])


@pytest.mark.parametrize("arguments, status, message", [
    (["--slider", "mass.lowr"], 3, "no parameter or value 'mass.lowr'; did you mean 'mass.lower'"),
    (["--slider", "mass.lower=3:1"], 2, "slider mass.lower=3:1: expected NAME or NAME=LOW:HIGH with LOW < HIGH"),
    (["--slider", "origin.elbow.wx"], 2, "origin.elbow.wx cannot have a slider: numbers of the robot do not depend on it"),
    (["-S", "integrator=rk5"], 3, "integrator"),
    (["--against", "."], 2, "--against and --live cannot be combined"),
    (["--follow", "lowr"], 3, "lowr"),
])
def test_bad_options_of_live_pages_are_one_line(arguments, status, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("replay", str(ROOT / "robots/double_pendulum.yaml"), "--live", *arguments)
    assert done.exit_code == status and message in done.stderr and not list(tmp_path.iterdir())
    assert run("replay", str(ROOT / "robots/double_pendulum.yaml"), "--slider", "mass.lower").exit_code == 2


def test_a_view_of_a_robot_is_live(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("view", str(ROOT / "robots/double_pendulum.yaml"), "--live", "--no-open", "--q", "elbow=0.7", "-o", "page.html")
    assert done.exit_code == 0 and "steps of 0.001 s" in done.stderr, done.stderr
    live = data_of(Path("page.html").read_text(encoding="utf-8"))["runs"][0]["live"]
    assert live["simulation"]["initial"]["q"] == [0.0, 0.7]
