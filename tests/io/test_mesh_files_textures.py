"""Textures that a robot file names: colours of faces by texture coordinates, otherwise mean colours."""
import mujoco
import numpy as np
import pytest
from PIL import Image

import liedyn as ld
from command_line import ok
from liedyn.io.robots.visual_shapes import painted_robot
from liedyn.report.replay.page import data_of

RED, BLUE, PURPLE, GREEN = [1, 0, 0], [0, 0, 1], [0.5, 0, 0.5], [0, 1, 0]
# a tetrahedron: two faces at the upper half of an image, two at its lower half
OBJ = """v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0.25 0.75\nvt 0.25 0.25
f 1/1 3/1 2/1\nf 1/1 2/1 4/1\nf 1/2 4/2 3/2\nf 2/2 3/2 4/2\n"""
URDF = """<robot name="r"><material name="image"><color rgba="{rgb} 1"/><texture filename="{file}"/></material><link name="base"/>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><box size="1 1 1"/></geometry><material name="image"/></visual>
<visual><geometry><mesh filename="{mesh}"/></geometry><material name="image"/></visual></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""
MJCF = """<mujoco><compiler assetdir="assets"/><asset>{texture}
<material name="m" {material}/><mesh file="tetra.obj"/></asset><worldbody><body><joint name="j"/>
<geom type="mesh" mesh="tetra" material="m" mass="1"/><geom type="box" size="1 1 1" material="m"/></body></worldbody></mujoco>"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Create a folder with a mesh and an image, red above blue."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/tetra.obj").write_text(OBJ)
    pixels = np.zeros((8, 4, 3), np.uint8)
    pixels[:4, :, 0] = pixels[4:, :, 2] = 255
    Image.fromarray(pixels).save(tmp_path / "assets/image.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def drawn(file):
    """Return colours of the box and of the parts of the mesh, and the warnings of `liedyn view`."""
    said = ok("view", file, "--no-open", "-o", "page.html", "--force")
    with open("page.html", encoding="utf-8") as page:
        data = data_of(page.read())
    box, = (solid for solid in data["runs"][0]["scene"]["solids"] if solid["kind"] == "box")
    visual, = data["runs"][0]["scene"]["visuals"]
    return box["colour"], sorted(part["colour"] or visual["colour"] for part in data["meshes"][visual["mesh"]]), said.stderr


def test_textures_of_a_urdf(folder):
    """A colour multiplies their colours; a mesh without texture coordinates has their mean."""
    (folder / "r.urdf").write_text(URDF.format(rgb="1 1 1", file="assets/image.png", mesh="assets/tetra.obj"))
    box, mesh, said = drawn("r.urdf")
    assert box == PURPLE and mesh == [BLUE, RED] and "warning" not in said
    (folder / "r.urdf").write_text(URDF.format(rgb="1 0 0.5", file="package://assets/image.png", mesh="assets/plain.obj"))
    (folder / "assets/plain.obj").write_text("\n".join(line for line in OBJ.replace("/1", "").replace("/2", "").splitlines()
                                                       if not line.startswith("vt")))
    box, mesh, _ = drawn("r.urdf")
    assert box == [0.5, 0, 0.25] and mesh == [pytest.approx(box, abs=2e-3)]


def test_a_missing_or_unreadable_texture_leaves_the_colour_of_the_material(folder):
    (folder / "assets/text.png").write_text("no image")
    for name, code, words in (("package://p/none.png", "texture-not-found", "folder that contains p by --package-root"),
                              ("assets/text.png", "not-drawn", "cannot be read as an image")):
        (folder / "r.urdf").write_text(URDF.format(rgb="0 1 0", file=name, mesh="assets/tetra.obj"))
        box, mesh, said = drawn("r.urdf")
        assert box == GREEN and mesh == [GREEN] and said.count(f"[{code}]") == 1 and words in said
    (folder / "roots/p").mkdir(parents=True)
    (folder / "assets/image.png").rename(folder / "roots/p/none.png")
    (folder / "r.urdf").write_text(URDF.format(rgb="1 1 1", file="package://p/none.png", mesh="assets/tetra.obj"))
    shape, = painted_robot(ld.load_description("r.urdf", package_roots=["roots"]))[0].visuals["arm"].shapes
    assert list(shape.colour) == PURPLE


@pytest.mark.parametrize("texture, material, box, mesh", [
    ('<texture type="2d" name="t" file="image.png"/>', 'texture="t"', PURPLE, [BLUE, RED]),
    ('<texture type="2d" file="image.png"/>', 'texture="image" rgba="1 0 0.5 1"', [0.5, 0, 0.25], [[0, 0, 0.5], RED]),
    ('<texture type="2d" file="image.png"/>', 'texture="image" texrepeat="1 2"', PURPLE, [BLUE]),
    ('<texture file="image.png"/>', 'texture="image"', PURPLE, [PURPLE]),
    ('<texture name="t" builtin="checker" type="2d" rgb1="1 0 0" rgb2="0 0 1"/>', 'texture="t"', PURPLE, [BLUE, RED]),
    ('<texture name="t" builtin="flat" type="2d" rgb1="0 1 0"/>', 'texture="t"', GREEN, [GREEN]),
    ("", 'texture="none" rgba="0 1 0 1"', GREEN, [GREEN]), ("", 'rgba="0 1 0 1"', GREEN, [GREEN])])
def test_textures_of_mjcf(folder, texture, material, box, mesh):
    (folder / "r.xml").write_text(MJCF.format(texture=texture, material=material))
    box_colour, mesh_colours, said = drawn("r.xml")
    assert box_colour == pytest.approx(box, abs=2e-3) and np.allclose(mesh_colours, mesh, atol=2e-3)
    assert ("no file for the texture none" in said) == ("none" in material)


@pytest.mark.parametrize("kind", ["checker", "gradient", "flat"])
@pytest.mark.parametrize("shape", ["2d", "cube"])
def test_builtin_textures_have_the_mean_colours_of_mujoco(folder, kind, shape):
    texture = f'<texture name="t" builtin="{kind}" type="{shape}" rgb1="1 0 0" rgb2="0 0.5 1" width="32" height="32"/>'
    (folder / "r.xml").write_text(MJCF.format(texture=texture, material='texture="t"'))
    visuals, = painted_robot(ld.load_description("r.xml"))[0].visuals.values()
    model = mujoco.MjModel.from_xml_string(f"<mujoco><asset>{texture}</asset></mujoco>")
    mean = model.tex_data.reshape(-1, 3).mean(axis=0) / 255
    assert np.allclose(visuals.shapes[0].colour, mean, atol=0.04 if kind == "gradient" else 2e-3)
