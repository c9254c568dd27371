"""Inertias of meshes against MuJoCo's compiler, and against trimesh and closed forms."""
import mujoco
import numpy as np
import pytest
import trimesh

import liedyn as ld
from bridge import robots_folder
from liedyn.errors import ModelError
from liedyn.io.robots.visual_shapes import link_meshes
from liedyn.model.mass_properties import uniform_triangles
from liedyn.model.spatial import pose

VERSION = tuple(map(int, mujoco.__version__.split(".")[:2]))
pytestmark = pytest.mark.skipif(VERSION < (4,), reason="older versions have other defaults")
INSTALLED = robots_folder()
ROUNDING = 1e-12                     # of masses and centres: both compute with the numbers of the file in single precision
AXES = 1e-7                          # of inertias: MuJoCo finds the principal axes of a mesh to 5e-9
KINDS = ("legacy", "exact", "convex", "shell")


def stone(seed, shift=(0.1, -0.2, 0.3)):
    """Return a closed mesh that is not convex."""
    rng = np.random.default_rng(seed)
    mesh = trimesh.creation.icosphere(2, 0.1)
    mesh.vertices = mesh.vertices * rng.uniform(0.5, 2, 3) + 0.012 * rng.standard_normal(mesh.vertices.shape) + shift
    return mesh


def write_obj(path, meshes, quads=False):
    lines, first = ["# objects", "mtllib none.mtl"], 1
    for k, mesh in enumerate(meshes):
        lines += [f"o part{k}", *(f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()), "vn 0 0 1", "usemtl red"]
        for k, (a, b, c) in enumerate((mesh.faces + first).tolist()):
            a, b, c = (i - first - len(mesh.vertices) for i in (a, b, c)) if k % 3 == 0 else (a, b, c)
            lines.append(f"f {a}//1 {b}//1 {c}//1")
        first += len(mesh.vertices)
    path.write_text("\n".join(lines))


def write_msh(path, mesh):
    """Write a file of MuJoCo with normals and texture coordinates, which are not read."""
    n = len(mesh.vertices)
    path.write_bytes(b"".join(np.asarray(x, kind).tobytes() for x, kind in (
        ((n, n, n, len(mesh.faces)), "<i4"), (mesh.vertices, "<f4"), (mesh.vertex_normals, "<f4"), (np.zeros((n, 2)), "<f4"),
        (mesh.faces, "<i4"))))


def attributes(mesh):
    return (f'vertex="{" ".join(map(repr, mesh.vertices.ravel().tolist()))}" '
            f'face="{" ".join(map(str, mesh.faces.ravel().tolist()))}"')


@pytest.fixture
def compared(tmp_path, monkeypatch, worst):
    """Return compared(mesh, geom, head): mass properties of the body in liedyn and in MuJoCo."""
    monkeypatch.chdir(tmp_path)

    def of(mesh, geom='<geom type="mesh" mesh="m"/>', head=""):
        (tmp_path / "robot.xml").write_text(
            f'<mujoco>{head}<asset>{mesh}</asset><worldbody><body name="a"><joint/>{geom}</body></worldbody></mujoco>')
        link = next(link for link in ld.load_description(tmp_path / "robot.xml").links if link.name == "a")
        theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))    # its cache goes by the path
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, theirs.body_iquat[1])
        R = R.reshape(3, 3)
        I = (R * theirs.body_inertia[1]) @ R.T
        scale = np.linalg.norm(I)
        assert link.mass == pytest.approx(theirs.body_mass[1], rel=ROUNDING)
        assert np.abs(link.com - theirs.body_ipos[1]).max() < ROUNDING
        assert worst("MJCF: inertias of meshes", np.abs(np.array(link.inertia) - I[np.triu_indices(3)]).max() / scale) < AXES
        return link
    return of


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", ["stl", "obj", "msh", "numbers"])
def test_inertias_are_mujocos(tmp_path, compared, source, kind, seed):
    mesh = stone(seed)
    rng = np.random.default_rng([seed, 1])
    placement = 'refpos="0.01 -0.02 0.03" refquat="1 -2 0.3 0.4" scale="1.5 0.7 2"' if seed else ""
    if source == "stl":
        mesh.export(tmp_path / "m.stl")
    elif source == "obj":
        write_obj(tmp_path / "m.obj", [mesh])
    elif source == "msh":
        write_msh(tmp_path / "m.msh", mesh)
    data = attributes(mesh) if source == "numbers" else f'file="m.{source}"'
    weight = ("", 'density="2700"', 'mass="3"')[seed]
    compared(f'<mesh name="m" inertia="{kind}" {data} {placement}/>',
             f'<geom type="mesh" mesh="m" pos="0.1 0.2 0.3" quat="{" ".join(map(str, rng.standard_normal(4)))}" {weight}/>'
             '<geom size="0.05" pos="0.1 0 0"/>')


@pytest.mark.parametrize("kind", KINDS)
def test_mirrored_files_are_mujocos(tmp_path, compared, kind):
    stone(4).export(tmp_path / "m.stl")
    compared(f'<mesh file="m.stl" scale="1 -2 1" inertia="{kind}"/>')


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_object_of_a_file_counts_and_all_points_for_the_hull(tmp_path, compared, kind):
    write_obj(tmp_path / "m.obj", [stone(5), stone(6, (1, 0, 0))])
    compared(f'<mesh file="m.obj" inertia="{kind}"/>')


@pytest.mark.parametrize("kind", KINDS)
def test_files_with_quadrilaterals(tmp_path, compared, kind):
    """They are not flat, so that the diagonal matters."""
    points = trimesh.creation.box((0.1, 0.2, 0.3)).vertices + 0.02 * np.random.default_rng(1).standard_normal((8, 3))
    faces = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    (tmp_path / "m.obj").write_text("".join(f"v {x!r} {y!r} {z!r}\n" for x, y, z in points.tolist())
                                    + "".join(f"f {' '.join(str(k + 1) for k in face)}\n" for face in faces))
    compared(f'<mesh file="m.obj" inertia="{kind}"/>')


@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder", "box", "ellipsoid"])
def test_primitives_that_are_fitted_to_meshes(compared, kind):
    link = compared(f'<mesh name="m" {attributes(stone(7))}/>', f'<geom type="{kind}" mesh="m" fitscale="1.3" pos="1 0 0"/>')
    assert link.com[0] > 1


def test_names_folders_and_classes(tmp_path, compared):
    """A mesh has the name of its file; `meshdir` is relative to the file; a class has a scale; without faces, the hull."""
    (tmp_path / "parts").mkdir()
    stone(8).export(tmp_path / "parts" / "stone.stl")
    head = '<compiler meshdir="parts" strippath="true"/><default><mesh scale="2 2 2"/><default class="h"><mesh inertia="exact"/>'
    compared('<mesh file="../elsewhere/stone.stl" class="h"/>', '<geom type="mesh" mesh="stone"/>', head + "</default></default>")
    compared('<mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1  .1 .1 .1"/>')
    compared(f'<mesh name="m" {attributes(stone(8))} inertia="convex" maxhullvert="61"/>')
    compared('<mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>', '<geom mesh="m"/>')


def test_static_meshes_count_in_a_total_mass(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.xml").write_text(
        f'<mujoco><compiler settotalmass="3"/><asset><mesh name="m" {attributes(stone(9))}/></asset><worldbody><body name="s">'
        '<geom type="mesh" mesh="m"/></body><body name="a"><joint/><geom size="0.1"/></body></worldbody></mujoco>')
    masses = {link.name: link.mass for link in ld.load_description(tmp_path / "r.xml").links}
    theirs = mujoco.MjModel.from_xml_path("r.xml")
    assert [masses["s"], masses["a"]] == pytest.approx(theirs.body_mass[1:].tolist(), rel=1e-12)


@pytest.mark.parametrize("file", ["cassie_description/meshes/pelvis.stl", "panda_description/meshes/collision/link5.stl",
                                  "so_arm_description/meshes/so100/Upper_Arm.stl"])
@pytest.mark.parametrize("kind", ["legacy", "convex", "shell"])
def test_installed_meshes(compared, file, kind):
    """Files of robots that several programs have written."""
    compared(f'<mesh name="m" file="{INSTALLED / file}" inertia="{kind}"/>')


# --- against others ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(5))
def test_moments_of_closed_meshes_are_those_of_trimesh(seed):
    mesh = stone(seed)
    body = uniform_triangles(mesh.vertices, mesh.faces, "exact")
    assert mesh.is_volume and body.mass == pytest.approx(mesh.volume, rel=1e-13)
    assert np.allclose(body.com, mesh.center_mass, rtol=0, atol=1e-14)
    assert np.allclose(body.inertia, mesh.moment_inertia[np.triu_indices(3)], rtol=0, atol=1e-12 * body.mass)
    hull = mesh.convex_hull
    assert np.allclose(uniform_triangles(hull.vertices, hull.faces, "legacy").inertia,
                       hull.moment_inertia[np.triu_indices(3)], rtol=0, atol=1e-12 * hull.volume)


def test_moments_of_a_box_and_of_its_surface():
    x, y, z = 0.1, 0.2, 0.3
    box = trimesh.creation.box((x, y, z))
    for kind in ("exact", "legacy"):
        body = uniform_triangles(box.vertices + np.array([1, 2, 3]), box.faces, kind)
        assert body.mass == pytest.approx(x * y * z) and body.com == pytest.approx((1, 2, 3))
        assert body.inertia == pytest.approx(np.array([y*y + z*z, 0, 0, x*x + z*z, 0, x*x + y*y]) * x * y * z / 12, abs=1e-15)
    shell = uniform_triangles(box.vertices, box.faces, "shell")
    areas = 2 * np.array([y * z, x * z, x * y])                            # of the pairs of sides across x, y and z
    second = [areas[k] * (a / 2)**2 + sum(areas[j] for j in range(3) if j != k) * a * a / 12 for k, a in enumerate((x, y, z))]
    assert shell.mass == pytest.approx(areas.sum())
    assert shell.inertia[0] == pytest.approx(second[1] + second[2]) and shell.inertia[5] == pytest.approx(second[0] + second[1])


# --- what is wrong ----------------------------------------------------------------------------------------------------

FLAT = 'vertex="0 0 0 1 0 0 0 1 0 1 1 0"'
OUT = 'vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 2  0 1 3  1 2 3  0 2 3"'


@pytest.mark.parametrize("mesh, geom, message", [
    ('<mesh name="n" file="m.stl"/>', "", "<geom mesh>: unknown mesh: expected the name of a <mesh>, got 'm'"),
    ('<mesh name="m" file="none.stl"/>', "", "the file of the mesh does not exist, and the mass of a body depends on it: "
                                             "expected "
                                             r".*none.stl, got 'none.stl' \(an <inertial> of the body needs no mesh\)"),
    ('<mesh name="m" file="m.dae"/>', "", "the inertia of this kind of mesh is not computed: expected an STL, OBJ or MSH "
                                          "file, got 'm.dae'"),
    ('<mesh name="m" file="m.stl"/>', "", "m.stl cannot be read as a mesh"),
    ('<mesh name="m" file="m.obj"/>', "", "the file of the mesh cannot be read: expected an OBJ file with at least 4 points, "
                                          "got 'm.obj'"),
    ('<mesh name="m" file="m.msh"/>', "", "the file of the mesh cannot be read: expected an MSH file, got 'm.msh'"),
    ('<mesh name="m"/>', "", "a mesh requires a file or vertices: expected 3 numbers for each of at least 4 points"),
    ('<mesh name="m" builtin="sphere" params="2"/>', "",
     "the inertia of a mesh by builtin is not computed: expected a file or vertices, got 'sphere'"),
    ('<mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 4"/>', "",
     "expected 3 indices from 0 to 3 for each triangle, got '0 1 4'"),
    (f'<mesh name="m" {FLAT}/>', "", "the points of the mesh have no convex hull: expected points that are not in one plane, "
                                     "got 'm'"),
    (f'<mesh name="m" {FLAT} face="0 1 2"/>', "",
     "the volume of the mesh is too small, or its triangles face inwards: expected a volume above 1e-15, got 'legacy'"),
    (f'<mesh name="m" {OUT} inertia="exact"/>', "",
     "the triangles of the mesh are not all oriented alike: expected convex, legacy or shell, got 'exact'"),
    (f'<mesh name="m" {attributes(stone(8))} maxhullvert="60" inertia="convex"/>', "",
     "the inertia of a simplified convex hull is not computed: expected at least its 61 vertices, got 60 .MuJoCo writes"),
    (f'<mesh name="m" {OUT} inertia="hollow"/>', "", "expected one of legacy, exact, convex, shell, got 'hollow'"),
    (f'<mesh name="m" {OUT}/>', 'shellinertia="true"', "a hollow shape is not computed: expected inertia of the <mesh>"),
    (f'<mesh name="m" {OUT}/>', 'fromto="0 0 0 1 0 0"', "fromto does not apply to meshes: expected pos"),
])
def test_what_is_wrong_is_one_line(tmp_path, mesh, geom, message):
    for kind in ("stl", "dae", "obj", "msh"):
        (tmp_path / f"m.{kind}").write_text("v 0 0\nf 1 2 3\n")
    (tmp_path / "robot.xml").write_text(f'<mujoco><asset>{mesh}</asset><worldbody><body><joint/>'
                                        f'<geom type="mesh" mesh="m" {geom}/></body></worldbody></mujoco>')
    with pytest.raises(ModelError, match=message) as error:
        ld.load_description(tmp_path / "robot.xml")
    assert "\n" not in str(error.value) and "robot.xml:1: " in str(error.value)


def test_a_missing_reader_is_named(tmp_path, monkeypatch):
    stone(1).export(tmp_path / "m.stl")
    monkeypatch.setattr("liedyn.io.robots.mjcf_meshes.find_spec", lambda _: None)
    (tmp_path / "robot.xml").write_text('<mujoco><asset><mesh file="m.stl"/></asset><worldbody><body><joint/>'
                                        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>')
    with pytest.raises(ModelError, match=r"<mesh file>: computing the inertia of this mesh requires trimesh, which is not "
                                         r"installed: expected an <inertial> of the body, got 'm.stl' \(pip install "
                                         r"'liedyn\[meshes\]'\)"):
        ld.load_description(tmp_path / "robot.xml")


@pytest.mark.parametrize("mesh", ['scale="2 -1 0.5"', 'scale="2 -1 0.5" refpos="0.1 0.2 -0.3"',
                                  'scale="2 2 2" refpos="0.1 0.2 -0.3" refquat="0.5 -0.5 0.5 0.7"'])
def test_meshes_are_drawn_where_mujoco_has_them(tmp_path, monkeypatch, mesh):
    """Vertices in the world. Materials and rgba give colours; a group that is not shown holds the shapes of collisions."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    write_obj(tmp_path / "parts" / "stone.obj", [stone(3)])
    (tmp_path / "robot.xml").write_text(f"""<mujoco><compiler meshdir="parts"/>
<asset><mesh name="m" file="stone.obj" {mesh}/><material name="red" rgba="0.9 0.1 0.2 1"/></asset>
<worldbody><body name="a" pos="0 0 1" euler="10 20 30"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<geom type="mesh" mesh="m" pos="0.3 0.1 -0.2" quat="0.5 0.5 -0.5 0.1" material="red"/>
<geom type="box" size="1 2 3" group="3"/><geom type="sphere" size="0.1" rgba="0 0.5 1 0.3"/></body></worldbody></mujoco>""")
    model = ld.load(tmp_path / "robot.xml")
    visuals = model.description.visuals["a"]
    drawn, = link_meshes(model.description)["a"]
    assert drawn.file == tmp_path / "parts" / "stone.obj" and drawn.colour == (0.9, 0.1, 0.2)
    assert [(one.kind, one.colour) for one in visuals.shapes] == [("sphere", (0.0, 0.5, 1.0))]
    assert [one.kind for one in visuals.collision] == ["box"] and not visuals.complete
    points = stone(3).vertices * drawn.scale
    mine = ld.link_pose(model, [0.0], "a") @ pose(drawn.pose) @ np.vstack([points.T, np.ones(len(points))])
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, data)
    wanted = theirs.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    distances = np.linalg.norm(mine[:3].T[:, None] - wanted[None], axis=2)              # in any order
    assert distances.min(axis=1).max() < 1e-5 and distances.min(axis=0).max() < 1e-5
