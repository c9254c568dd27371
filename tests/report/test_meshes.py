"""Visual meshes in the page of a motion: found, read, made small, placed."""
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import liedyn as ld
from command_line import ok, run
from liedyn.io.robots.visual_shapes import link_meshes
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.model.description import Robot
from liedyn.report.replay.meshes import unpacked
from liedyn.report.replay.page import data_of
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header

CORNERS = np.array([[x, y, z] for x in (0.0, 0.1) for y in (0.0, 0.2) for z in (0.0, 0.3)])
QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
TRIANGLES = np.array([[quad[0], *pair] for quad in QUADS for pair in pairwise(quad[1:])])
URDF = """<robot name="boxes">
<material name="red"><color rgba="1 0.25 0 1"/></material>
<link name="base"><visual><geometry><mesh filename="{}" scale="1 1 1"/></geometry><material name="red"/></visual></link>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="0.5 0 0" rpy="0 0 1.5707963267948966"/><geometry><mesh filename="{}" scale="2 -1 1"/></geometry></visual>
<collision><geometry><box size="1 1 1"/></geometry></collision></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def binary_stl(path):
    faces = b"".join(struct.pack("<12fH", 0, 0, 0, *CORNERS[face].ravel(), 0) for face in TRIANGLES)
    path.write_bytes(bytes(80) + struct.pack("<I", len(TRIANGLES)) + faces)


def ascii_stl(path):
    corners = ("".join(f"vertex {x} {y} {z}\n" for x, y, z in CORNERS[face]) for face in TRIANGLES)
    path.write_text("solid box\n" + "".join(f"facet normal 0 0 0\nouter loop\n{text}endloop\nendfacet\n" for text in corners)
                    + "endsolid box\n")


def obj(path):
    path.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS)
                    + "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in TRIANGLES))


def dae(path):
    """Return a mesh in centimetres, green, and moved by a node, 0.1 m along x."""
    numbers, indices = (" ".join(map(str, x.ravel())) for x in (100 * CORNERS, TRIANGLES))
    path.write_text(f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><created>2020-01-01T00:00:00</created><modified>2020-01-01T00:00:00</modified><unit name="centimeter" meter="0.01"/>
<up_axis>Z_UP</up_axis></asset>
<library_effects><effect id="e"><profile_COMMON><technique sid="t"><lambert><diffuse><color>0 1 0 1</color></diffuse></lambert>
</technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh><source id="s"><float_array id="a" count="24">{numbers}</float_array>
<technique_common><accessor source="#a" count="8" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
<triangles count="12" material="x"><input semantic="VERTEX" source="#v" offset="0"/><p>{indices}</p></triangles></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="w"><node><translate>10 0 0</translate><instance_geometry url="#g">
<bind_material><technique_common><instance_material symbol="x" target="#m"/></technique_common></bind_material>
</instance_geometry></node></visual_scene></library_visual_scenes><scene><instance_visual_scene url="#w"/></scene></COLLADA>""")


def motion(folder: Path, urdf: str) -> ld.Model:
    """Return a robot file, and a run of it without motion."""
    (folder / "robot.urdf").write_text(urdf)
    model = ld.load(folder / "robot.urdf")
    (folder / "run").mkdir()
    write_trajectory(folder / "run" / "trajectory.csv", trajectory_header(model, folder=folder / "run"), np.arange(3.0),
                     motion_columns(model, q=np.zeros((3, 1)), v=np.zeros((3, 1))))
    return model


def mesh_in(pack):
    """Return points (n, 3) and triangles (m, 3) of a part in the page."""
    behind, new, corners = unpacked(pack["corners"])[:, 0].astype(int), 0, []
    for one in behind:
        corners.append(new - one)
        new += one == 0
    return unpacked(pack["points"]) + pack["low"], np.reshape(corners, (-1, 3))


@pytest.mark.parametrize("name, robot, roots, variables", [
    ("package://arm/part one.stl", "ws/arm/urdf/robot.urdf", (), {}),
    ("model://arm/part one.stl", "ws/arm/urdf/robot.urdf", (), {}),
    ("../part one.stl", "ws/arm/urdf/robot.urdf", (), {}),
    ("file://{}/ws/arm/part%20one.stl", "robot.urdf", (), {}),
    ("package://arm/part one.stl", "robot.urdf", ("ws",), {}),
    ("package://arm/part one.stl", "robot.urdf", ("ws/arm",), {}),                  # the package itself
    ("package://arm/part one.stl", "robot.urdf", (), {"ROS_PACKAGE_PATH": "/nowhere:{}/ws"}),
    ("package://arm/part one.stl", "robot.urdf", (), {"AMENT_PREFIX_PATH": "{}/prefix"})])
def test_mesh_files_are_found(tmp_path, monkeypatch, name, robot, roots, variables):
    for folder in ("ws/arm/urdf", "prefix"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ws/arm/part one.stl").touch()
    (tmp_path / "prefix/share").symlink_to(tmp_path / "ws")
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.setenv(variable, variables.get(variable, "").format(tmp_path))
    (tmp_path / robot).write_text(URDF.format(name.format(tmp_path), "missing.stl"))
    found = link_meshes(ld.load_description(tmp_path / robot), [tmp_path / root for root in roots])
    base, lost = (group[0] for group in found.values())
    assert base.file is not None and base.file.samefile(tmp_path / "ws/arm/part one.stl")
    assert base.colour == (1.0, 0.25, 0.0) and lost.file is None and lost.colour is None
    assert lost.scale == (2.0, -1.0, 1.0) and lost.pose.translation == (0.5, 0.0, 0.0)


def test_visuals_that_cannot_be_read_are_passed_over(tmp_path):
    (tmp_path / "b.urdf").write_text(URDF.format("a&#10;.stl", "b.stl").replace('scale="2 -1 1"', 'scale="2 1"'))
    assert [group[0].file for group in link_meshes(ld.load_description(tmp_path / "b.urdf")).values()] == [None]
    assert link_meshes(Robot("r", (), ())) == {}


@pytest.mark.parametrize("write", [binary_stl, ascii_stl, obj, dae])
def test_meshes_are_in_the_page_as_they_are_in_the_file(tmp_path, write):
    """Corners agree to half of 1/4096 of the box, each triangle has the same orientation; two links share one mesh."""
    ending = {binary_stl: "stl", ascii_stl: "stl"}.get(write, write.__name__)
    write(tmp_path / f"box.{ending}")
    motion(tmp_path, URDF.format(f"box.{ending}", f"box.{ending}"))
    ok("replay", tmp_path / "run", "--meshes")
    data = data_of((tmp_path / "run" / "replay.html").read_text(encoding="utf-8"))
    (part,), = data["meshes"]
    points, triangles = mesh_in(part)
    corners = CORNERS + ([0.1, 0, 0] if write is dae else [0, 0, 0])
    rows = [int(np.argmin(np.abs(corners - point).sum(axis=1))) for point in points]
    assert sorted(rows) == list(range(8)) and np.abs(corners[rows] - points).max() <= 0.51 * 0.3 / 4096 + 1e-6
    turned = {tuple(np.roll(face, -int(np.argmin(face)))) for face in np.array(rows)[triangles]}
    assert turned == {tuple(np.roll(face, -int(np.argmin(face)))) for face in TRIANGLES.tolist()}
    assert part["colour"] == ([0.0, 1.0, 0.0] if write is dae else None)
    scene = data["runs"][0]["scene"]
    base, arm = scene["visuals"]
    assert (base["link"], base["mesh"], base["colour"], base["scale"]) == ("base", 0, [1.0, 0.25, 0.0], [1, 1, 1])
    assert (arm["link"], arm["mesh"], arm["colour"], arm["scale"]) == ("arm", 0, None, [2, -1, 1])
    assert np.allclose(arm["at"], [0, -1, 0, 1, 0, 0, 0, 0, 1, 0.5, 0, 0], atol=1e-9)
    assert scene["collision_meshes"] == []
    assert {one["covered"] for one in (*scene["solids"], *scene["ellipsoids"])} == {1}    # no box of <collision> next to them


@pytest.mark.parametrize("hull, numbers, counts", [("hull.stl", [1], [1, 1]), ("box.stl", [0], [1])])
def test_meshes_of_collisions_are_in_the_page(tmp_path, hull, numbers, counts):
    """A file that is also visible is in the page once."""
    binary_stl(tmp_path / "box.stl")
    binary_stl(tmp_path / "hull.stl")
    motion(tmp_path, URDF.format("box.stl", "box.stl").replace('<box size="1 1 1"/>', f'<mesh filename="{hull}" scale="1 2 1"/>'))
    ok("replay", tmp_path / "run", "--meshes")
    data = data_of((tmp_path / "run" / "replay.html").read_text(encoding="utf-8"))
    scene, = (run["scene"] for run in data["runs"])
    assert [(one["link"], one["scale"]) for one in scene["collision_meshes"]] == [("arm", [1, 2, 1])]
    assert [one["mesh"] for one in scene["collision_meshes"]] == numbers and [len(parts) for parts in data["meshes"]] == counts


def test_meshes_of_groups_that_are_not_shown_are_those_of_collisions(tmp_path):
    binary_stl(tmp_path / "box.stl")
    (tmp_path / "robot.xml").write_text("""<mujoco><asset><mesh name="box" file="box.stl"/></asset><worldbody><body name="arm">
<joint name="hinge" type="hinge"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom type="mesh" mesh="box" group="2"/>
<geom type="mesh" mesh="box" group="3"/></body></worldbody></mujoco>""")
    visuals = ld.load_description(tmp_path / "robot.xml").visuals["arm"]
    assert [len(group) for group in (visuals.meshes, visuals.collision_meshes)] == [1, 1]


def test_large_meshes_are_thinned_out(tmp_path):
    """Two balls of 20,480 triangles and 1 m and 0.25 m keep their shapes, and the larger ball keeps more triangles."""
    import trimesh

    from liedyn.report.replay.meshes import packed_mesh, read_drawn_mesh, thinned
    for name, radius in (("large", 1.0), ("small", 0.25)):
        trimesh.creation.icosphere(5, radius).export(tmp_path / f"{name}.stl")
    whole = {tmp_path / f"{name}.stl": read_drawn_mesh(tmp_path / f"{name}.stl") for name in ("large", "small")}
    large, small = (packed_mesh(parts)[0] for parts in thinned(whole, 5000).values())
    counts = [pack["corners"]["rows"] // 3 for pack in (large, small)]
    assert sum(counts) <= 5000 and counts[0] == pytest.approx(4000, rel=0.05) and counts[1] == pytest.approx(1000, rel=0.05)
    for pack, radius, worst in ((large, 1.0, 0.01), (small, 0.25, 0.04)):          # sagitta of n triangles: about 7 / n
        points, triangles = mesh_in(pack)
        assert np.abs(np.linalg.norm(points, axis=1) / radius - 1).max() < worst
        assert set(triangles.ravel()) == set(range(len(points)))


def ply_of_faces(path):
    lines = [f"{x} {y} {z}\n" for x, y, z in CORNERS]
    lines += [f"3 {a} {b} {c} {'255 0 0' if k < 2 else '0 0 255'}\n" for k, (a, b, c) in enumerate(TRIANGLES)]
    path.write_text("ply\nformat ascii 1.0\nelement vertex 8\nproperty float x\nproperty float y\nproperty float z\n"
                    "element face 12\nproperty list uchar int vertex_indices\nproperty uchar red\nproperty uchar green\n"
                    "property uchar blue\nend_header\n" + "".join(lines))


def obj_of_materials(path):
    (path.parent / "box.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n")
    obj_with(path, ["usemtl red\n", "", "usemtl blue\n"])


def obj_with_texture(path):
    """Write a mesh whose texture is red with some noise on the left and blue on the right."""
    picture = np.zeros((8, 16, 3), np.uint8)
    picture[:, :8, 0], picture[:, 8:, 2], picture[::2, :, 1] = 255, 255, 8
    Image.fromarray(picture).save(path.parent / "picture.png")
    (path.parent / "box.mtl").write_text("newmtl both\nKd 1 1 1\nmap_Kd picture.png\n")
    obj_with(path, ["usemtl both\n"], "vt 0.25 0.5\nvt 0.75 0.5\n")


def obj_with(path, uses, coordinates=""):
    lines = ["mtllib box.mtl\n", *(f"v {x} {y} {z}\n" for x, y, z in CORNERS), coordinates]
    for k, face in enumerate(TRIANGLES):
        corners = (f"{p + 1}/{1 + (k >= 2)}" if coordinates else f"{p + 1}" for p in face)
        lines += [uses[k] if k < len(uses) else "", f"f {' '.join(corners)}\n"]
    path.write_text("".join(lines))


@pytest.mark.parametrize("write", [ply_of_faces, obj_of_materials, obj_with_texture])
def test_faces_have_their_own_colours(tmp_path, write):
    """One side of the box is red and five are blue; nearly equal colours of a texture are one."""
    from liedyn.report.replay.meshes import read_drawn_mesh
    path = tmp_path / f"box.{write.__name__[:3]}"
    write(path)
    red, blue = sorted(read_drawn_mesh(path), key=lambda part: len(part.triangles))
    assert (len(red.triangles), len(red.points), len(blue.triangles), len(blue.points)) == (2, 4, 10, 8)
    assert red.colour == pytest.approx((1, 0, 0), abs=0.04) and blue.colour == pytest.approx((0, 0, 1), abs=0.04)


def test_thinned_parts_meet_at_their_borders(tmp_path):
    """Both halves of a ball of two colours are thinned, and each keeps the points at which they meet."""
    import trimesh

    from liedyn.report.replay.meshes import Part, thinned
    ball = trimesh.creation.icosphere(4)
    above = ball.triangles_center[:, 2] > 0.0
    halves = [Part(ball.vertices[np.unique(faces)], np.unique(faces, return_inverse=True)[1].reshape(-1, 3), None)
              for faces in (ball.faces[above], ball.faces[~above])]
    seam = set(map(tuple, halves[0].points.round(9))) & set(map(tuple, halves[1].points.round(9)))
    thin = thinned({Path("ball.dae"): halves}, 800)[Path("ball.dae")]
    assert len(seam) > 50 and sum(len(part.triangles) for part in thin) < 1000 < len(ball.faces)
    assert all(seam <= set(map(tuple, part.points.round(9))) for part in thin)


def test_what_is_missing_is_said(tmp_path):
    motion(tmp_path, URDF.format("package://boxes/box.stl", "box.stl"))
    (tmp_path / "box.stl").write_text("no mesh")
    said = ok("replay", tmp_path / "run").stderr
    assert "warning: the meshes are not drawn: no file for the mesh package://boxes/box.stl" in said
    assert len(ok("replay", tmp_path / "run", "--no-meshes", "--force").stderr.splitlines()) == 1
    (tmp_path / "cart.yaml").write_text("links: {a: {mass: 1, inertia: [1, 1, 1]}}\n"
                                        "joints: {hinge: {type: continuous, parent: world, child: a, axis: [0, 0, 1]}}\n")
    said = run("replay", tmp_path / "run", "--robot", tmp_path / "cart.yaml", "--meshes", "--force")
    assert said.exit_code == 2 and "has no meshes; a URDF names them in <visual>" in said.stderr
    (tmp_path / "box.stl").rename(tmp_path / "part.stl")
    said = run("replay", tmp_path / "run", "--meshes", "--force")
    assert said.exit_code == 2 and len(said.stderr.splitlines()) == 1
    assert "no file for the mesh package://boxes/box.stl, box.stl: " in said.stderr
    assert "give the folder that contains boxes by --package-root or package_roots=" in said.stderr
    (tmp_path / "part.stl").rename(tmp_path / "box.stl")
    (tmp_path / "boxes").mkdir()
    binary_stl(tmp_path / "boxes" / "box.stl")
    said = ok("replay", tmp_path / "run", "--package-root", tmp_path, "--force").stderr
    assert "warning: not drawn: " in said and "box.stl cannot be read as a mesh: " in said and len(said.splitlines()) == 2


def test_a_missing_reader_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("liedyn.io.mesh_files.find_spec", lambda name: None if name == "collada" else object())
    motion(tmp_path, URDF.format("a.stl", "b.stl"))
    said = run("replay", tmp_path / "run", "--meshes")
    assert said.exit_code == 2 and "drawing meshes requires pycollada: pip install 'liedyn[meshes]'" in said.stderr
    said = ok("replay", tmp_path / "run").stderr
    assert "the robot file has 2 meshes: `pip install 'liedyn[meshes]'` draws them [meshes-available]" in said


def test_run_folders_have_a_page_with_meshes(tmp_path, monkeypatch):
    """The page of `simulate` draws them if the packages that read them are installed, and states how to install these."""
    from liedyn.report.plots.saved_plots import SavedPlots
    from liedyn.report.run_folder import write_run

    class NoPlots:
        def save_figures(self, *_):
            return SavedPlots()

    binary_stl(tmp_path / "box.stl")
    result = ld.simulate(motion(tmp_path, URDF.format("box.stl", "box.stl")), duration=0.1, q0=[0.3])
    written = write_run(result, tmp_path / "one", plot_process=NoPlots())
    data = data_of((tmp_path / "one" / "replay.html").read_text(encoding="utf-8"))
    assert len(data["meshes"]) == 1 and len(data["runs"][0]["scene"]["visuals"]) == 2 and written.warnings == ()
    monkeypatch.setattr("liedyn.io.mesh_files.find_spec", lambda name: None)
    written = write_run(result, tmp_path / "two", plot_process=NoPlots())
    assert data_of((tmp_path / "two" / "replay.html").read_text(encoding="utf-8"))["meshes"] == []
    assert [one.code for one in written.warnings] == ["meshes-available"] and not written.failures


def test_many_loose_pieces_are_thinned_out():
    """5000 separate triangles on a ball have no edges that could go; those that are close become one, and stay near the ball."""
    from liedyn.report.replay.meshes import Part, thinned
    rng = np.random.default_rng(2)
    centres = rng.standard_normal((5000, 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    corners = (centres[:, None] + 0.01 * rng.standard_normal((5000, 3, 3))).reshape(-1, 3)
    part, = thinned({Path("dust.stl"): [Part(corners, np.arange(15000).reshape(-1, 3), None)]}, 1000)[Path("dust.stl")]
    assert 100 < len(part.triangles) <= 1200
    assert np.abs(np.linalg.norm(part.points, axis=1) - 1).max() < 0.1
