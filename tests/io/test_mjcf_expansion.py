"""`attach` and `replicate` of MJCF files against MuJoCo's compiler."""
import mujoco
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.errors import ModelError
from mujoco_pair import MuJoCoPair

VERSION = tuple(map(int, mujoco.__version__.split(".")[:2]))
pytestmark = pytest.mark.skipif(VERSION < (3, 3), reason="older versions have fewer elements and attributes")
ROUNDING = 1e-10 if VERSION >= (4,) else 1e-5            # MuJoCo turns meshes to principal axes, good to 4e-12

GEOM = '<geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/>'
HAND = f"""<mujoco model="hand">
  <compiler angle="radian" eulerseq="zyx" inertiafromgeom="true" autolimits="false" meshdir="shapes"/>
  <option gravity="0 0 -1"/>
  <default><joint damping="0.3" armature="0.02"/><default class="soft"><geom density="300"/></default></default>
  <asset><mesh name="tip" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/><mesh file="rock.obj"/></asset>
  <worldbody>
    <body childclass="soft">
      <frame pos="9 9 9"><body name="palm" pos="0.1 0 0" euler="0.1 0.2 0.3">
        <joint name="turn" axis="0 1 0" range="-1 1" limited="true"/>{GEOM}
        <body name="finger" pos="0 0 0.2"><joint name="bend" axis="1 0 0" ref="0.3"/><geom type="mesh" mesh="tip"/>
          <geom type="mesh" mesh="rock" pos="0 1 0"/><site name="end"/></body>
      </body></frame><joint name="unused"/>{GEOM}
    </body>
    <body name="other"><joint name="free" axis="0 0 1"/>{GEOM}</body>
  </worldbody>
  <tendon><fixed name="cable"><joint joint="turn" coef="2"/><joint joint="bend" coef="1"/></fixed>
    <fixed name="partly"><joint joint="turn" coef="2"/><joint joint="free" coef="1"/></fixed></tendon>
  <equality><tendon name="tied" tendon1="cable"/></equality>
  <actuator><motor joint="bend" ctrlrange="-3 3" ctrllimited="true"/><motor name="m" joint="free"/></actuator>
  <keyframe><key qpos="0.2 0.1 0 0"/></keyframe>
</mujoco>"""
ROCK = "v 0 0 0\nv 0.5 0 0\nv 0 0.4 0\nv 0 0 0.3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MODEL = '<asset><model file="parts/hand.xml"/><model name="other" file="parts/hand.xml"/></asset>'
HEAD = '<default><joint damping="1"/><geom density="7"/></default>'


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """Return pair(bodies, rest): both models of a file, which may attach `hand`. MuJoCo writes a log into the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts" / "shapes").mkdir(parents=True)
    (tmp_path / "parts" / "hand.xml").write_text(HAND)
    (tmp_path / "parts" / "shapes" / "rock.obj").write_text(ROCK)

    def of(bodies: str, rest: str = "") -> MuJoCoPair:
        path = tmp_path / "robot.xml"
        path.write_text(f"<mujoco>{MODEL}{HEAD}<worldbody>{bodies}</worldbody>{rest}</mujoco>")
        model = ld.build(ld.load_description(path))
        return MuJoCoPair(model, mujoco.MjModel.from_xml_path(str(path)), 1, model.joints.index)
    return of


ARM = '<body name="arm" pos="0 0 1" euler="10 20 30"><joint name="base" axis="1 2 3" range="-90 90"/>' + GEOM + "{}</body>"
TREES = {
    "a body": ARM.format('<frame pos="0.3 0 0" euler="0 90 0"><attach model="hand" body="palm" prefix="left_"/></frame>'
                         '<attach model="other" body="palm" prefix="right_"/>'),
    "copies": '<replicate count="12" offset="0.1 0.2 0.3" euler="10 20 30" sep="-"><body name="pole" pos="1 0 0">'
              f'<joint name="p" axis="0 1 0"/>{GEOM}<site name="s"/></body></replicate>',
    "copies of copies": ARM.format(f'<replicate count="2" offset="0 1 0">{GEOM}<replicate count="2" offset="0 0 0.5">'
                                   f'<body name="b" pos="2 2 0"><joint axis="1 0 0"/>{GEOM}</body></replicate></replicate>'),
    "copies of an attached body": ARM.format(
        '<replicate count="3" euler="0 0 40"><attach model="hand" body="palm" prefix="x"/></replicate>'),
}


@pytest.mark.parametrize("name", TREES)
def test_bodies_move_as_those_of_mujoco(name, pair):
    both = pair(TREES[name])
    model, q, v, mj = both.model, both.q, both.v, both.mj
    masses = {link.name: link.mass for link in model.description.links}
    for k in range(1, mj.nbody):
        link = mj.body(k).name or f"body{k}"
        assert masses[link] == pytest.approx(mj.body_mass[k], rel=1e-12 if VERSION >= (4,) else 1e-6)
    assert relative(ld.mass_matrix(model, q), both.mass()) < ROUNDING
    assert relative(ld.bias_force(model, q, v), both.bias()) < ROUNDING
    assert len(model.description.couplings) == mj.neq
    damping = [c.damping for joint in model.description.joints for c in joint.coordinates]
    assert damping == pytest.approx(mj.dof_damping)
    limits = np.where(mj.jnt_limited[:, None], mj.jnt_range, [-np.inf, np.inf])
    assert np.array_equal([model.lower, model.upper], limits.T) and np.isfinite(limits).any() == ("arm" in TREES[name])


def test_references_follow_the_copies(pair):
    """Elements of which a part is not copied are omitted, as by MuJoCo, and counted."""
    rest = """<tendon><fixed name="t"><joint joint="p" coef="2"/></fixed></tendon>
    <equality><joint name="lock" joint1="p"/><tendon tendon1="t"/><connect body1="pole" body2="base" anchor="0 0 0"/></equality>
    <actuator><motor joint="p" ctrlrange="-2 2"/><motor joint="p1" ctrlrange="-1 1"/></actuator>
    <keyframe><key name="home" qpos="0.1 0.2"/></keyframe>"""
    both = pair(f'<body name="base">{GEOM}</body><replicate count="2" offset="1 0 0"><body name="pole"><joint name="p"/>{GEOM}'
                "</body></replicate>", rest)
    robot = both.model.description
    assert [coupling.terms for coupling in robot.couplings] == [
        (("p0", "", 1.0),), (("p1", "", 1.0),), (("p0", "", 2.0),), (("p1", "", 2.0),)]
    assert [coupling.name for coupling in robot.couplings][:2] == ["lock0", "lock1"] and both.mj.neq == 4 and not robot.loops
    assert both.model.effort_limit.tolist() == [2.0, 3.0] and both.model.keyframes["home"].q.tolist() == [0.1, 0.2]
    assert "constraints and actuators of copies together with other elements (1)" in robot.warnings[0].message


def test_attached_parts_have_the_names_of_mujoco(pair):
    both = pair(TREES["a body"])
    robot, mj = both.model.description, both.mj
    assert {mj.body(k).name for k in range(1, mj.nbody)} <= {link.name for link in robot.links} >= {"left_end", "right_end"}
    assert both.model.joint_names == ("base", "left_turn", "left_bend", "right_turn", "right_bend")
    assert {coupling.name for coupling in robot.couplings} == {"left_tied", "right_tied"}
    assert both.model.effort_limit.tolist() == [np.inf, np.inf, 3, np.inf, 3] and both.model.gravity.tolist() == [0, 0, -9.81]
    message = robot.warnings[0].message
    assert "key frames of attached models (2), other options of attached models (2)" in message


def test_a_whole_model_is_attached(pair, tmp_path):
    (tmp_path / "parts" / "hand.xml").write_text(HAND.replace('eulerseq="zyx"', ""))
    both = pair('<body name="base" pos="1 0 0"><attach model="hand" prefix="x"/></body>')
    assert both.model.nv == 4
    assert relative(ld.mass_matrix(both.model, both.q), both.mass()) < ROUNDING
    (tmp_path / "parts" / "hand.xml").write_text(HAND.replace("<worldbody>", '<worldbody><site name="s"/>'))
    with pytest.raises(ModelError, match="a world with a <site> and other settings of <compiler> cannot be attached"):
        pair('<attach model="hand" prefix="x"/>')


@pytest.mark.parametrize("bodies, message", [
    ('<attach model="hnd" body="palm" prefix="x"/>', r"unknown model: .*got 'hnd' \(did you mean hand\?\)"),
    ('<attach model="hand" body="plam" prefix="x"/>', r"unknown body: .*got 'plam' \(did you mean palm\?\)"),
    ('<attach model="hand" body="palm"/>', "the attribute prefix is missing"),
    ('<attach model="hand" body="palm" prefix="x" frame="f"/>', "unknown attribute: got 'frame'"),
    ('<attach model="hand" body="palm" prefix="x"/><attach model="hand" body="palm" prefix="x"/>', "another element has the same "
                                                                                                   "name"),
])
def test_wrong_attachments(pair, bodies, message):
    with pytest.raises(ModelError, match=message) as error:
        pair(bodies)
    assert "\n" not in str(error.value) and ".xml:" in str(error.value)
