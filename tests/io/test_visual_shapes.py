"""Shapes of a URDF that cannot be drawn: left out with a warning that names the place."""
import warnings

import pytest

import liedyn as ld

ROBOT = """<robot name="r">
<link name="base"/>
<link name="arm">
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="{xyz}"/><geometry>
{geometry}
</geometry></collision>
<collision><geometry><sphere radius="0.1"/></geometry></collision>
</link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
</robot>"""


def model_of(folder, geometry, xyz="0 0 0"):
    """Load the robot with a shape."""
    (folder / "r.urdf").write_text(ROBOT.format(geometry=geometry, xyz=xyz))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ld.load(folder / "r.urdf")


@pytest.mark.parametrize("geometry, xyz, line, found, expected", [
    ('<box size="0.1 0 0.2"/>', "0 0 0", 6, "'0.1 0 0.2'", "three numbers above 0"),
    ('<box size="0.1 0.2"/>', "0 0 0", 6, "'0.1 0.2'", "three numbers above 0"),
    ('<sphere radius="-1"/>', "0 0 0", 6, "'-1'", "one number above 0"),
    ('<cylinder radius="0.1" length="0"/>', "0 0 0", 6, "'0'", "one number above 0"),
    ('<cylinder radius="0.1"/>', "0 0 0", 6, "''", "one number above 0"),
    ('<mesh filename="a.stl" scale="1 0 1"/>', "0 0 0", 6, "'1 0 1'", "three numbers other than 0"),
    ('<box size="1 1 1"/>', "0 0", 5, "'0 0'", "three numbers"),
    ('<box size="1 1 1"/>', "0 0 nan", 5, "'0 0 nan'", "three numbers")])
def test_an_invalid_shape_is_left_out_with_a_warning(tmp_path, geometry, xyz, line, found, expected):
    model = model_of(tmp_path, geometry, xyz)
    warning, = (warning for warning in model.warnings if warning.code == "shape-left-out")
    assert f"r.urdf:{line}: " in str(warning)
    assert f"the shape of this collision is ignored: expected {expected}, got {found}" in str(warning)
    assert [shape.kind for shape in model.description.visuals["arm"].collision] == ["sphere"]
    assert not model.description.visuals["arm"].collision_meshes


@pytest.mark.parametrize("geometry", ['<box size="1 2 3"/>', '<mesh filename="a.stl" scale="-1 1 1"/>',
                                      '<mesh filename="a.stl"/>', '<plane normal="0 0"/>', ""])
def test_other_shapes_have_no_warning(tmp_path, geometry):
    assert not [warning for warning in model_of(tmp_path, geometry).warnings if warning.code == "shape-left-out"]
