"""The page of a motion in a browser without a window. Install one with `apt install chromium` on Debian; any Chrome does."""
import base64
import io
import json
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import liedyn as ld
from command_line import ok
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.report.plots import palette
from liedyn.report.replay.video import browser, chromium
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium or Chrome on the path: `apt install chromium` on Debian")
ROOT = Path(__file__).parents[2]
SECONDS, RATE = 2.0, 60
FORCE = np.array([30.0, -20.0, 50.0])           # on the hand, in its axes


@pytest.fixture(scope="module")
def motion(tmp_path_factory):
    """Return the folder with two runs and their page, the model, times and positions of a Panda whose hand is pushed."""
    folder = tmp_path_factory.mktemp("browser")
    model = ld.load(ROOT / "robots/panda.yaml")
    t = np.arange(int(SECONDS * RATE) + 1) / RATE
    swing = np.sin(np.outer(t, 1 + 0.3 * np.arange(model.nv)))
    q = ld.integrate(model, model.neutral(), 0.5 * swing)
    push = [(f"fext.panda_hand.{part}", "N", x + 0 * t) for part, x in zip(("fx", "fy", "fz"), FORCE, strict=True)]
    for name, motion in (("run", q), ("other", 0.5 * q)):
        (folder / name).mkdir()
        write_trajectory(folder / name / "trajectory.csv", trajectory_header(model, folder=folder / name), t,
                         [*motion_columns(model, q=motion, v=0 * motion), *push])
    (folder / "run" / "events.csv").write_text("t[s],event,phase\n0.5,lift,flight\n1.5,land,stance\n")
    (folder / "run" / "run.json").write_text(json.dumps({"status": "complete", "scenario": {"phases": {"stance": {}}}}))
    ok("replay", folder / "run")
    return folder, model, t, q


@pytest.fixture(scope="module")
def page(motion):
    """Open the page of the run."""
    folder, *_ = motion
    with browser(chromium()) as page:
        opened(page, folder / "run" / "replay.html")
        page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        yield page


def opened(page, path: Path, hash: str = "") -> None:
    page.open(path.absolute().as_uri() + hash, 1000, 700)
    page.wait_for("window.replay || !document.getElementById('problem').hidden")
    problem = page.ask("document.getElementById('problem').textContent")
    if "WebGL 2" in problem:
        pytest.skip(f"this Chromium draws without WebGL 2: {problem}")
    assert problem == ""


def faults_of(page) -> list:
    """Return errors, messages in the console, and requests except for the page itself, since the last call."""
    spoken = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    faults = [(name, told) for name, told in page.events if name in spoken
              or (name == "Network.requestWillBeSent" and not told["request"]["url"].startswith(("file:///", "data:", "blob:")))]
    page.events.clear()
    return faults


def press(page, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": key} if len(key) == 1 and kind == "keyDown" else {}))


def click(page, x: float, y: float, count: int = 1) -> None:
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)


def box(page, id: str) -> dict:
    return page.ask(f"document.getElementById('{id}').getBoundingClientRect().toJSON()")


def now(page) -> float:
    return page.ask("replay.viewer.time")


def pixels(page) -> np.ndarray:
    """Return the pixels (h, w, 3) of the drawing in the page."""
    text = page.ask("""(() => {
        const { viewer } = replay, { gl, canvas } = viewer.drawing;
        viewer.draw();
        const bytes = new Uint8Array(4 * canvas.width * canvas.height);
        gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
        let text = `${canvas.width} ${canvas.height} `;
        const parts = [];
        for (let i = 0; i < bytes.length; i += 32768) parts.push(String.fromCharCode(...bytes.subarray(i, i + 32768)));
        return text + btoa(parts.join(""));
    })()""")
    w, h, data = text.split()
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(int(h), int(w), 4)[::-1, :, :3].astype(int)


def on_screen(page, link: str) -> np.ndarray:
    """Return the position of a link's origin on the screen: -1 to 1 from left to right and from bottom to top."""
    return np.array(page.ask(f"""(() => {{
        const {{ viewer }} = replay, at = replay.position('{link}');
        const {{ view: m }} = viewer.camera.look(viewer.follow < 0 ? undefined : viewer.main.link(viewer.follow).slice(12, 15));
        const [x, y, , w] = [0, 1, 2, 3].map((i) => m[i] * at[0] + m[4 + i] * at[1] + m[8 + i] * at[2] + m[12 + i]);
        return [x / w, y / w];
    }})()"""))


def test_it_opens_without_an_error_or_a_request(motion, page):
    assert faults_of(page) == []
    assert page.ask("[...document.querySelectorAll('#marks button')].map((mark) => mark.title)") == [
        "lift at 0.5000 s, then flight", "land at 1.5000 s, then stance"]
    assert page.ask("document.querySelectorAll('#phases div').length") == 3
    assert page.ask("document.getElementById('status').textContent") == "complete"


def test_positions_are_those_of_link_poses(motion, page):
    _, model, t, q = motion
    rows = np.linspace(0, len(t) - 1, 10).astype(int)
    script = "%s.map((t) => { replay.seek(t); return %s.map((link) => replay.position(link)); })"
    found = page.ask(script % (json.dumps(t[rows].tolist()), json.dumps(model.link_names)))
    assert np.abs(np.array(found) - ld.link_poses(model, q[rows])[..., :3, 3]).max() < 1e-4
    assert faults_of(page) == []


def test_it_plays_pauses_steps_and_loops(motion, page):
    page.ask("replay.seek(0.2)")
    press(page, " ")
    page.wait_for("replay.viewer.time > 0.25")
    press(page, " ")
    stopped = now(page)
    assert page.ask("document.getElementById('play').textContent") == "Play" and stopped < SECONDS
    page.ask("new Promise((done) => setTimeout(done, 100))")
    assert now(page) == stopped
    press(page, "Home")
    for key, wanted in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", SECONDS * RATE)):
        press(page, key)
        assert now(page) == pytest.approx(wanted / RATE, abs=2e-6)
    press(page, "+")
    assert page.ask("replay.viewer.speed") == 2
    press(page, "-")
    page.ask("replay.seek(1.9)")
    press(page, " ")
    page.wait_for("replay.viewer.time < 1")                    # over the end and on from the start
    press(page, " ")
    press(page, "l")
    page.ask("replay.seek(1.9)")
    press(page, " ")
    page.wait_for("!replay.viewer.playing")
    assert now(page) == SECONDS
    press(page, "l")
    assert faults_of(page) == []


def test_slider_plot_marks_and_address_set_the_time(motion, page):
    slider = box(page, "scrub")
    click(page, slider["x"] + slider["width"] / 2, slider["y"] + slider["height"] / 2)
    assert now(page) == pytest.approx(1.0, abs=0.01)
    curves = box(page, "curves")                               # the plot has margins of 52 and 14 pixels
    click(page, curves["x"] + 52 + 0.25 * (curves["width"] - 66), curves["y"] + 60)
    assert now(page) == pytest.approx(0.25 * SECONDS, abs=0.01)
    page.ask("document.querySelectorAll('#marks button')[1].click()")
    assert now(page) == 1.5 and page.ask("location.hash") == "#t=1.5"
    assert page.ask("document.getElementById('phase').textContent") == "stance"
    line = page.ask("document.getElementById('cursor').getBoundingClientRect().x")
    assert line == pytest.approx(curves["x"] + 52 + 0.75 * (curves["width"] - 66), abs=1.5)
    page.ask("location.hash = '#t=0.75'")
    page.wait_for("replay.viewer.time === 0.75")
    assert faults_of(page) == []


def test_the_camera_follows_a_link_and_comes_back(motion, page):
    _, model, *_ = motion
    page.ask("replay.seek(0.3)")
    assert np.abs(on_screen(page, "panda_hand")).max() < 1 and np.abs(on_screen(page, "panda_link0")).max() < 1
    page.ask(f"document.getElementById('follow').value = {model.link_names.index('panda_hand')}; "
             "document.getElementById('follow').dispatchEvent(new Event('change'))")
    for t in (0.3, 0.9, 1.7):
        page.ask(f"replay.seek({t})")
        assert np.abs(on_screen(page, "panda_hand")).max() < 1e-6
    view = box(page, "view")
    azimuth = page.ask("replay.viewer.camera.azimuth")
    page.call("Input.dispatchMouseEvent", type="mousePressed", x=view["x"] + 200, y=view["y"] + 200, button="left", buttons=1)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=view["x"] + 260, y=view["y"] + 220, button="left", buttons=1)
    page.call("Input.dispatchMouseEvent", type="mouseReleased", x=view["x"] + 260, y=view["y"] + 220, button="left")
    assert page.ask("replay.viewer.camera.azimuth") == pytest.approx(azimuth - 60 * 0.008)                 # 60 pixels
    assert np.abs(on_screen(page, "panda_hand")).max() < 1e-6
    press(page, "r")
    x, y = (on_screen(page, "panda_link7") * [1, -1] + 1) / 2 * [view["width"], view["height"]] + [view["x"], view["y"]]
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert page.ask("document.getElementById('view').title") in ("panda_link7", "panda_link8")             # close together
    for count in (1, 2):
        click(page, x, y, count)
    assert page.ask("replay.viewer.main.links[replay.viewer.follow].name") == page.ask("document.getElementById('view').title")
    for count in (1, 2):
        click(page, view["x"] + 5, view["y"] + 5, count)
    press(page, "r")
    assert page.ask("replay.viewer.follow") == -1 and np.abs(on_screen(page, "panda_link0")).max() < 1
    assert faults_of(page) == []


def test_forces_are_drawn_from_where_they_act(motion, page):
    """An arrow in its colour stands between the hand and the tip of the vector, 0.3 sizes of the robot along it; else nothing."""
    _, model, _, q = motion
    page.ask("replay.seek(0.8)")
    page.ask("for (const what of ['grid', 'shadows']) replay.viewer.toggle(what, false)")
    page.ask("{ const { marks } = replay.viewer.main; window.shapes = marks.solids; marks.solids = []; }")      # they hide arrows
    shown = pixels(page)
    press(page, "e")
    hidden = pixels(page)
    press(page, "e")
    page.ask("replay.viewer.main.marks.solids = window.shapes")
    page.ask("for (const what of ['grid', 'shadows']) replay.viewer.toggle(what, true)")
    changed = np.argwhere(np.abs(shown - hidden).max(axis=2) > 30)
    assert len(changed) > 100
    T = ld.link_poses(model, q[int(0.8 * RATE)])[model.link_index("panda_hand")]
    size = page.ask("replay.viewer.main.scene.size")
    tip = T[:3, 3] + T[:3, :3] @ FORCE / np.linalg.norm(FORCE) * 0.3 * size
    view = np.reshape(page.ask("replay.viewer.camera.look().view"), (4, 4)).T
    ends = []
    for point in (T[:3, 3], tip):
        x, y, _, w = view @ [*point, 1.0]
        ends.append([(1 - y / w) / 2 * shown.shape[0], (1 + x / w) / 2 * shown.shape[1]])
    ends = np.array(ends)
    low, high = ends.min(axis=0) - 25, ends.max(axis=0) + 25
    assert ((changed > low) & (changed < high)).all() and np.ptp(changed, axis=0).max() > 0.7 * np.ptp(ends, axis=0).max()
    red, green, blue = shown[tuple(changed[len(changed) // 2])]
    assert red > 1.5 * green > 1.5 * blue                                          # orange
    assert faults_of(page) == []


def test_frames_and_videos_are_saved(motion, page):
    folder, *_ = motion
    page.ask("replay.seek(0.5)")
    press(page, "s")
    assert saved(folder / "run_0.500s.png")[:8] == b"\x89PNG\r\n\x1a\n"
    page.ask("replay.viewer.setSpeed(5)")
    press(page, "v")
    page.wait_for("!replay.viewer.recorder")
    page.ask("replay.viewer.setSpeed(1)")
    ending = page.ask("['video/mp4', 'video/webm'].find((kind) => MediaRecorder.isTypeSupported(kind))").partition("/")[2]
    assert saved(folder / f"run.{ending}")[:8].endswith({"mp4": b"ftyp", "webm": b""}[ending])
    assert faults_of(page) == []


def saved(path: Path) -> bytes:
    until = time.monotonic() + 20
    while not (path.is_file() and path.stat().st_size):
        assert time.monotonic() < until, f"{path.name}: not saved, or empty"
        time.sleep(0.05)
    return path.read_bytes()


def test_runs_stand_beside_each_other_under_their_names(motion, page):
    folder, model, _, q = motion
    ok("replay", folder / "run", "--against", folder / "other", "--side-by-side", "-o", folder / "both.html")
    opened(page, folder / "both.html", "#t=1")
    assert now(page) == 1.0
    labels = page.ask("[...document.querySelectorAll('#labels span')].map((one) => "
                      "[one.textContent, one.getBoundingClientRect().x, one.getBoundingClientRect().right])")
    view = box(page, "view")
    assert [name for name, *_ in labels] == ["run", "other"] and labels[0][2] < labels[1][1]
    assert all(view["x"] <= left and right <= view["x"] + view["width"] for _, left, right in labels)
    number = model.link_index("panda_hand")
    found = page.ask(f"replay.viewer.runs.map((run) => [0, 1, 2].map((k) => run.link({number})[12 + k] - run.shift[k]))")
    for position, motion_of in zip(found, (q, 0.5 * q), strict=True):
        assert np.abs(ld.link_poses(model, motion_of[RATE])[number, :3, 3] - position).max() < 1e-4
    press(page, "End")
    assert faults_of(page) == []


def test_meshes_are_drawn_with_sharp_edges(page, tmp_path):
    """The scripts unpack the corners of a box, each with the normals of its three sides, and turn the triangles outwards."""
    corners = np.array([[x, y, z] for x in (0.0, 0.1) for y in (0.0, 0.2) for z in (0.0, 0.3)])
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    (tmp_path / "box.obj").write_text("".join(f"v {x} {y} {z}\n" for x, y, z in corners)
                                      + "".join("f " + " ".join(str(k + 1) for k in side) + "\n" for side in sides))
    (tmp_path / "robot.urdf").write_text(
        '<robot name="box"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<visual><geometry><mesh filename="box.obj"/></geometry></visual>'
        '<collision><origin xyz="-0.01 0.22 -0.02"/><geometry><mesh filename="box.obj" scale="1.2 -1.2 1.2"/></geometry>'
        '</collision></link>'
        '<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>')
    model = ld.load(tmp_path / "robot.urdf")
    (tmp_path / "run").mkdir()
    write_trajectory(tmp_path / "run" / "trajectory.csv", trajectory_header(model, folder=tmp_path / "run"), np.arange(2.0),
                     motion_columns(model, q=np.zeros((2, 1)), v=np.zeros((2, 1))))
    ok("replay", tmp_path / "run", "--meshes")
    opened(page, tmp_path / "run" / "replay.html")
    (part,), = page.ask("replay.viewer.main.meshes")
    points, normals = np.split(np.reshape(part["vertices"], (-1, 6)), 2, axis=1)
    triangles = np.reshape(part["triangles"], (-1, 3))
    assert len(points) == 24 and len(triangles) == 12
    assert np.abs(points[:, None] - corners).sum(axis=2).min(axis=1).max() < 2e-4                  # steps of 0.3 m / 4096
    a, b, c = points[triangles.T]
    outward = np.cross(b - a, c - a)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    assert np.abs(normals[triangles] - outward[:, None]).max() < 1e-2
    assert (np.einsum("ni,ni->n", outward, a - points.mean(axis=0)) > 0).all()
    shown = pixels(page)
    press(page, "m")
    of_mesh = np.abs(shown - pixels(page)).max(axis=2) > 30
    assert of_mesh.sum() > 1000
    press(page, "m")
    press(page, "k")                                # a mirrored box around it, through which it is seen
    assert (np.abs(shown - pixels(page)).max(axis=2) > 15)[of_mesh].mean() > 0.9
    press(page, "k")
    assert faults_of(page) == []


def test_sliders_move_the_robot_and_a_click_tells_its_mass(page, tmp_path):
    """A slider of a crank moves all links as the library does; in the orthographic view from above, x is right and y is up."""
    model = ld.load(ROOT / "robots/four_bar.yaml")
    ok("view", ROOT / "robots/four_bar.yaml", "--no-open", "-o", tmp_path / "view.html")
    opened(page, tmp_path / "view.html")
    page.ask("document.querySelector('#joint-list input[type=range]').value = 2; "
             "document.querySelector('#joint-list input[type=range]').dispatchEvent(new Event('input'))")
    q = page.ask("replay.viewer.main.mechanism.q")
    assert q[0] == 2.0 and np.abs(ld.constraint_residual(model, q)).max() < 1e-8
    positions = np.array(page.ask(f"{json.dumps(model.link_names)}.map((link) => replay.position(link))"))
    assert np.abs(positions - ld.link_poses(model, q)[:, :3, 3]).max() < 1e-8             # the page rounds poses of links
    numbers = page.ask("[...document.querySelectorAll('#joint-list input[type=number]')].map((one) => Number(one.value))")
    assert numbers == pytest.approx(q, abs=1e-4)
    press(page, "3")
    press(page, "o")
    at = np.array([on_screen(page, link) for link in model.link_names])
    view = box(page, "view")
    scale = np.array([view["width"], view["height"]]) / 2                                 # pixels
    shifted = (at - at[0]) * scale
    metres = positions[:, :2] - positions[0, :2]
    assert shifted == pytest.approx(metres * np.abs(shifted).max() / np.abs(metres).max(), abs=0.1)
    x, y = (at[1] * [1, -1] + 1) / 2 * [view["width"], view["height"]] + [view["x"], view["y"]]
    click(page, x, y)
    card = page.ask("document.getElementById('card').textContent")
    link = page.ask("document.getElementById('card-name').textContent")
    mass = next(one.mass for one in model.description.links if one.name == link)
    assert f"mass{mass:.4g} kg" in card.replace("\n", "")
    for key in ("j", "c", "i", "k", "a"):                                                 # each switch draws something else
        before = pixels(page)
        press(page, key)
        assert key == "k" or np.abs(pixels(page) - before).max() > 30
    text = page.ask("(() => { try { navigator.clipboard = undefined; } catch {} return replay.viewer.sliders.copy(); })()")
    assert json.loads(text)["crank"] == 2.0 and set(json.loads(text)) == set(model.joint_names)
    assert not page.ask("document.getElementById('play').offsetParent") and faults_of(page) == []


def test_turns_of_a_base_are_angles(page, tmp_path):
    """Sliders of roll, pitch and yaw: R = Rz Ry Rx. Each stays while others move, also where they are not unique."""
    ok("view", ROOT / "robots/quadruped.yaml", "--floating", "--no-open", "-o", tmp_path / "view.html")
    opened(page, tmp_path / "view.html")
    rows = page.ask("replay.viewer.sliders.rows.slice(0, 6).map(({ name }) => name)")
    assert [name.partition(".")[2] for name in rows] == ["x", "y", "z", "roll", "pitch", "yaw"]
    values = [0.1, -0.2, 0.3, 0.4, np.pi / 2, -0.6]
    page.ask(f"{values}.forEach((x, k) => {{ const {{ sliders }} = replay.viewer; sliders.move(sliders.rows[k], x); }})")
    q = np.array(page.ask("replay.viewer.main.mechanism.q"))
    model = ld.load(ROOT / "robots/quadruped.yaml", base="floating")
    wanted = ld.Pose.from_xyz_rpy(values[:3], values[3:])
    assert np.allclose(ld.link_poses(model, q)[0, :3, :3], np.reshape(wanted.rotation, (3, 3))) and np.allclose(q[:3], values[:3])
    shown = page.ask("replay.viewer.sliders.rows.slice(0, 6).map((row) => Number(row.range.value))")
    assert shown == pytest.approx(values, abs=1e-6)
    assert faults_of(page) == []


def test_the_origin_of_the_world_is_in_sight_unless_far_away(page, tmp_path):
    """The pivots of the four-bar are above the ground, on which the axes of the world are drawn."""
    ok("view", ROOT / "robots/four_bar.yaml", "--no-open", "-o", tmp_path / "view.html")
    opened(page, tmp_path / "view.html")
    origin = """(() => {
        const m = replay.viewer.camera.look().view, low = replay.viewer.arrangement.bounds[0];
        return [m[12] / m[15], m[13] / m[15], low[2]];
    })()"""
    x, y, lowest = page.ask(origin)
    assert lowest > 0.3 and abs(x) < 0.9 and abs(y) < 0.9
    page.ask("replay.viewer.arrangement.bounds.forEach((p) => { p[2] += 9; })")
    page.ask("replay.viewer.resetView()")
    assert abs(page.ask(origin)[1]) > 1.0 and faults_of(page) == []


def test_attached_bodies_planes_and_pictures_without_a_background(motion, page, tmp_path):
    """A payload rests until it is attached, moves with its link, and disappears; transparent plots have the colours drawn."""
    _, model, t, q = motion
    (tmp_path / "run").mkdir()
    write_trajectory(tmp_path / "run" / "trajectory.csv", trajectory_header(model, folder=tmp_path / "run"), t,
                     motion_columns(model, q=q, v=0 * q))
    attach = {"link": "panda_hand", "mass": 2.0, "com": [0, 0, 0.1], "inertia": [0.008, 0, 0, 0.008, 0, 0.008]}
    events = {"pick": {"do": [{"attach": attach}]}, "place": {"do": [{"detach": "panda_hand"}]}}
    planes = {"wall": {"point": [1, 0, 0], "normal": [-1, 0, 0]}}
    (tmp_path / "run" / "run.json").write_text(json.dumps({"status": "complete", "scenario": {"events": events,
                                                                                              "contacts": {"planes": planes}}}))
    (tmp_path / "run" / "events.csv").write_text("t[s],event,phase\n0.5,pick,\n1.5,place,\n")
    ok("replay", tmp_path / "run", "--trace", "panda_hand")
    opened(page, tmp_path / "run" / "replay.html")
    brown = "[0.55,0.38,0.22]"
    script = f"""(time) => {{
        replay.seek(time);
        const {{ main, show, arrowScale }} = replay.viewer, {{ solid, clear }} = main.solids({{ ...show, arrowScale }});
        const spheres = [...(solid.sphere ?? []), ...(clear.sphere ?? [])], places = [];
        for (let k = 0; k < spheres.length; k += 20) {{
            if (JSON.stringify(spheres.slice(k + 16, k + 19)) === {brown!r}) places.push(spheres.slice(k + 12, k + 15));
        }}
        return places;
    }}"""
    hand = model.link_index("panda_hand")
    for time_s, held_at in ((0.1, 0.5), (0.5, 0.5), (1.2, 1.2)):
        T = ld.link_poses(model, q[round(held_at * RATE)])[hand]
        place, = page.ask(f"({script})({time_s})")
        assert np.abs(T[:3, :3] @ [0, 0, 0.1] + T[:3, 3] - place).max() < 2e-4
    assert page.ask(f"({script})(1.7)") == []
    assert page.ask("[...document.querySelectorAll('#toggles label')].map((one) => one.textContent.trim())")[-2:] == [
        "planes", "payloads"]
    page.ask("replay.seek(1.2); for (const what of ['grid', 'shadows', 'planes']) replay.viewer.toggle(what, false)")
    drawn = pixels(page)
    text = page.ask("""(() => {
        window.cut = cutOutForTests(replay.viewer);
        return cut.toDataURL();
    })()""".replace("cutOutForTests", "replay.cutOut"))

    cut = np.asarray(Image.open(io.BytesIO(base64.b64decode(text.partition(",")[2]))).convert("RGBA")).astype(int)
    assert (cut[0, 0] == 0).all() and (cut[..., 3] == 255).sum() > 1000
    opaque = cut[..., 3] == 255
    assert np.abs(cut[opaque][:, :3] - drawn[opaque]).max() <= 2
    assert faults_of(page) == []


def test_plots_have_one_unit_can_be_resized_and_compare_two_runs(motion, page, tmp_path):
    folder, *_ = motion
    ok("replay", folder / "run", "--against", folder / "other", "-o", tmp_path / "both.html")
    opened(page, tmp_path / "both.html")
    plots = page.ask("replay.viewer.main.data.plots.map((one) => [one.title, one.unit, one.curves.map(([, unit]) => unit)])")
    assert [plot[:2] for plot in plots[:2]] == [["positions", "rad"], ["positions", "m"]]
    assert all(set(units) == {unit} for _, unit, units in plots)
    assert page.ask("[...document.getElementById('plot').options].map((one) => one.textContent)")[:2] == [
        "positions [rad]", "positions [m]"]
    assert page.ask("document.getElementById('plot-runs').textContent") == "solid: run, dashed: other"
    page.ask("replay.seek(1)")
    values = page.ask("[...document.querySelectorAll('#curve-list output')].map((one) => one.textContent)")
    pairs = np.array([[float(x) for x in text.split(" | ")] for text in values])
    assert pairs[:, 1] == pytest.approx(0.5 * pairs[:, 0], abs=2e-4)                   # the other run moves half as far
    assert len({len(x.strip("-").split(".")[1]) for text in values for x in text.split(" | ")}) == 1
    shown = page.ask("replay.viewer.plots.curves.shown.map(({ colour, dash }) => [colour, dash])")
    assert len(shown) == 14 and sum(dash == [4, 4] for _, dash in shown) == 7
    assert page.ask("new Set(replay.colours).size") == 20 and page.ask("replay.colours")[:6] == list(palette.CURVES)
    edge, panel = box(page, "divider"), box(page, "panel")
    page.call("Input.dispatchMouseEvent", type="mousePressed", x=edge["x"] + 2, y=300, button="left", buttons=1)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=edge["x"] - 98, y=300, button="left", buttons=1)
    page.call("Input.dispatchMouseEvent", type="mouseReleased", x=edge["x"] - 98, y=300, button="left")
    assert box(page, "panel")["width"] == pytest.approx(panel["width"] + 100, abs=8)
    page.ask("document.querySelector('.sheet').style.height = '333px'")
    page.wait_for("replay.viewer.plots.curves.h === 333")
    assert faults_of(page) == []
