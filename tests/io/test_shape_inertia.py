"""Masses and inertias of links of a URDF from their shapes and meshes: against MuJoCo, trimesh and closed forms, and saved."""
import mujoco
import numpy as np
import pytest
import trimesh

import liedyn as ld
from bridge import relative
from command_line import ok, run
from liedyn.errors import ModelError
from liedyn.io.robots.shape_inertia import with_inertia_of_shapes

INERTIAL = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
MESH = '<{0}><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><geometry><mesh filename="{1}" scale="{2}"/></geometry></{0}>'
BOX = '<collision><origin xyz="0 0 1"/><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'


def urdf(*links):
    """Return a chain of links with this content."""
    parts = [f'<link name="l{k}">{text}</link>' for k, text in enumerate(links)]
    parts += [f'<joint name="j{k}" type="continuous"><parent link="{"base" if not k else f"l{k - 1}"}"/><child link="l{k}"/>'
              '<origin xyz="0.1 0 0.2" rpy="1 0 0"/><axis xyz="0 1 0"/></joint>' for k in range(len(links))]
    return f'<robot name="r"><link name="base"/>{"".join(parts)}</robot>'


def solid(seed=0):
    """Return a closed convex mesh."""
    rng = np.random.default_rng(seed)
    return trimesh.convex.convex_hull(rng.standard_normal((30, 3)) * [0.1, 0.2, 0.15] + [0.3, 0, 0])


@pytest.fixture
def read(tmp_path):
    """Return read(text): the description of a URDF, with 500 kg/m^3."""
    def of(text, density=500):
        (tmp_path / "robot.urdf").write_text(text)
        return ld.load_description(tmp_path / "robot.urdf", inertia_from_meshes=density)
    return of


def mass(model):
    return sum(link.mass for link in model.description.links)


def links(robot):
    return {link.name: link for link in robot.links}


def test_the_dynamics_are_mujocos(tmp_path, read, monkeypatch):
    """MuJoCo takes collision shapes, too, with 1000 kg/m^3; of convex meshes, its sum of tetrahedra is the volume."""
    monkeypatch.chdir(tmp_path)
    solid(0).export(tmp_path / "a.stl")
    solid(1).export(tmp_path / "b.stl")
    capsule = '<collision><geometry><sphere radius="0.2"/></geometry></collision>'
    text = urdf(MESH.format("collision", "a.stl", "1 1 1") + BOX, INERTIAL + BOX, MESH.format("collision", "b.stl", "2 1 0.5"),
                capsule)
    model = ld.build(read(text, 1000))
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.urdf"))
    data, rng = mujoco.MjData(theirs), np.random.default_rng(3)
    for _ in range(3):
        data.qpos[:], data.qvel[:], a = rng.standard_normal((3, model.nv))
        theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        data.qacc[:] = a
        mujoco.mj_inverse(theirs, data)
        assert relative(ld.inverse_dynamics(model, data.qpos, data.qvel, a), data.qfrc_inverse) < 1e-6
    assert links(model.description)["l1"].mass == 2


@pytest.mark.parametrize("scale", [(1, 1, 1), (1, -2, 0.5)])
@pytest.mark.parametrize("inside_out", [False, True])
@pytest.mark.parametrize("kind", ["stl", "obj", "ply", "dae"])
def test_meshes_are_those_of_trimesh(tmp_path, read, kind, inside_out, scale):
    mesh = trimesh.creation.icosphere(2, 0.1)
    mesh.vertices = mesh.vertices * [1, 2, 3] + 0.01 * np.random.default_rng(1).standard_normal(mesh.vertices.shape)
    stored = mesh.copy()
    if inside_out:
        stored.invert()
    stored.export(tmp_path / f"m.{kind}")
    link = links(read(urdf(MESH.format("visual", f"m.{kind}", " ".join(map(str, scale))))))["l0"]
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(ld.Pose.from_xyz_rpy(rpy=[0.4, 0.5, 0.6]).rotation, (3, 3)), [0.1, 0.2, 0.3]
    mesh.apply_transform(np.diag([*scale, 1]))
    mesh.apply_transform(T)
    if mesh.volume < 0:
        mesh.invert()
    assert link.mass == pytest.approx(500 * mesh.volume, rel=1e-6)                         # files have single precision
    assert np.abs(link.com - mesh.center_mass).max() < 1e-7
    assert relative(link.inertia, 500 * mesh.moment_inertia[np.triu_indices(3)]) < 1e-6


def test_shapes_of_collisions_come_before_visible_ones(read):
    ball = '<visual><geometry><sphere radius="1"/></geometry></visual>'
    robot = read(urdf(ball + BOX, ball, "", '<inertial><mass value="0"/></inertial>' + BOX))
    box, sphere, frame, written = (links(robot)[f"l{k}"] for k in range(4))
    assert (box.mass, box.com) == (pytest.approx(500 * 0.006), (0, 0, 1))
    assert box.inertia == pytest.approx(np.array([0.13, 0, 0, 0.1, 0, 0.05]) * 3 / 12)
    assert sphere.mass == pytest.approx(500 * 4 / 3 * np.pi) and (frame.mass, written.mass) == (0, 0)
    message, = robot.warnings
    assert (message.code, message.level) == ("inertia-from-meshes", "information")
    assert message.message == "masses with 500 kg/m^3 from collision shapes: l0 3 kg; from visual shapes: l1 2094 kg"


def test_an_open_mesh_is_its_convex_hull(tmp_path, read):
    box = trimesh.creation.box((0.1, 0.2, 0.3))
    trimesh.Trimesh(box.vertices, box.faces[:-2]).export(tmp_path / "m.stl")
    robot = read(urdf(MESH.format("collision", "m.stl", "1 1 1")))
    assert links(robot)["l0"].mass == pytest.approx(3)
    assert "the convex hull gives the inertia of meshes whose surface is not closed: m.stl" in str(robot.warnings[-1])
    assert (robot.warnings[-1].code, robot.warnings[-1].level) == ("mesh-not-closed", "warning")


@pytest.mark.parametrize("ending", ["urdf", "yaml"])
def test_saved_robots_have_the_masses(tmp_path, read, ending):
    solid(0).export(tmp_path / "m.stl")
    model = ld.build(read(urdf(MESH.format("collision", "m.stl", "1 1 1"), INERTIAL, BOX)))
    ld.save(model, tmp_path / f"saved.{ending}")
    other, rng = ld.load(tmp_path / f"saved.{ending}"), np.random.default_rng(1)
    q, v, a = rng.standard_normal((3, 3))
    assert mass(other) == mass(model)
    assert relative(ld.inverse_dynamics(other, q, v, a), ld.inverse_dynamics(model, q, v, a)) < 1e-13
    if ending == "urdf":
        assert 'filename="m.stl"' in (tmp_path / "saved.urdf").read_text()                # the meshes stay


def test_commands_and_scenarios(tmp_path, read):
    read(urdf(BOX, INERTIAL), 1)
    file = tmp_path / "robot.urdf"
    ok("convert", file, "--inertia-from-meshes", 1000, "-o", tmp_path / "with.urdf")
    assert mass(ld.load(tmp_path / "with.urdf")) == pytest.approx(8)
    assert "8 kg" in ok("info", file, "--inertia-from-meshes", 1000).stdout
    assert "no mass" not in ok("check", file, "--inertia-from-meshes", 1000, "-v").stdout
    result = ld.run_scenario({"robot": str(file), "duration": 0.01, "inertia_from_meshes": 1000})
    assert mass(result.model) == pytest.approx(8)
    wrong = run("info", file, "--inertia-from-meshes", "steel")
    assert wrong.exit_code == 2 and "expected a positive number [kg/m^3], got 'steel'" in wrong.stderr


def test_trajectories_keep_the_model(tmp_path, read):
    """A CSV of such a model names the model in addition to the URDF, which has no masses."""
    model = ld.build(read(urdf(BOX, INERTIAL), 1000))
    ld.trajectory_of(model, [0.0, 0.1], np.zeros((2, 2))).save(tmp_path / "motion.csv")
    assert mass(ld.load(tmp_path / "motion.model.yaml")) == pytest.approx(8)


@pytest.mark.parametrize("text, message", [
    (MESH.format("collision", "none.stl", "1 1 1"), 'link "l0": the file of the mesh does not exist: expected'),
    (MESH.format("collision", "package://p/none.stl", "1 1 1"), "(--package-root or package_roots= names the folder of its"),
    (MESH.format("collision", "bad.stl", "1 1 1"), "bad.stl cannot be read as a mesh"),
    (MESH.format("collision", "flat.stl", "1 1 1"), "the mesh is not closed, and its points are in one plane: expected"),
])
def test_what_is_wrong_is_one_line(tmp_path, read, text, message):
    (tmp_path / "bad.stl").write_text("no mesh")
    trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).export(tmp_path / "flat.stl")
    with pytest.raises(ModelError) as error:
        read(urdf(text))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_densities_other_files_and_missing_readers(tmp_path, read, monkeypatch):
    for density in (0, -1, np.nan, "x"):
        with pytest.raises(ModelError, match=r"wrong density for inertias from meshes: expected a number > 0 .*, got "):
            read(urdf(BOX), density)
    with pytest.raises(ModelError, match="inertias from meshes are supported for URDF only; a robot YAML file has"):
        ld.load("robots/double_pendulum.yaml", inertia_from_meshes=1)
    solid().export(tmp_path / "m.stl")
    monkeypatch.setattr("liedyn.io.mesh_files.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="computing the inertia of meshes requires trimesh, pycollada: expected an <inertial> of "
                                         "the link"):
        read(urdf(MESH.format("collision", "m.stl", "1 1 1")))
    assert with_inertia_of_shapes(read(urdf(BOX)), 1)                              # shapes need no package
