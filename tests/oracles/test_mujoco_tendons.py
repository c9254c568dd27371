"""Tendons against MuJoCo: springs with and without a dead zone and dampers between two sites; actuators on fixed tendons."""
import mujoco
import numpy as np
import pytest

import liedyn as ld

ARM = """<mujoco><worldbody><site name="w" pos="0.3 0.1 0.2"/>
<body name="a"><joint name="j" axis="0 1 0" ref="0.3"{}/><geom type="box" size=".05 .05 .2" pos="0 0 -.2"/>
 <site name="sa" pos="0 0 -0.35"/>
 <body name="b" pos="0 0 -0.4"><joint name="k" type="ball"/><geom type="box" size=".04 .05 .2" pos="0 0 -.2"/>
  <site name="sb" pos="0.05 0 -0.3"/></body></body></worldbody>
<tendon><spatial name="t1" stiffness="150" damping="3"><site site="w"/><site site="sa"/></spatial>
<spatial name="t2" stiffness="80" damping="2" springlength="0.1 0.2"><site site="w"/><site site="sb"/></spatial>
<spatial name="t3" damping="4"><site site="sa"/><site site="sb"/></spatial></tendon></mujoco>"""


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@pytest.mark.parametrize("disabled, types", [
    (None, ["spring", "spring", "damper"]), ("spring", ["damper"] * 3), ("damper", ["spring", "spring"])])
def test_forces_of_straight_tendons(disabled, types, tmp_path):
    text = ARM.format("")
    if disabled:
        text = text.replace("<worldbody>", f'<option><flag {disabled}="disable"/></option><worldbody>')
    (tmp_path / "arm.xml").write_text(text)
    model, theirs = ld.load(tmp_path / "arm.xml"), mujoco.MjModel.from_xml_string(text)
    assert [one.type for one in model.description.elements] == types
    data, rng = mujoco.MjData(theirs), np.random.default_rng(0)
    for _ in range(5):
        q, v = ld.integrate(model, model.neutral(), rng.standard_normal(model.nv)), rng.standard_normal(model.nv)
        data.qpos[:], data.qvel[:] = q[[0, 4, 1, 2, 3]], v
        mujoco.mj_forward(theirs, data)
        force = ld.inverse_dynamics(model, q, v, v, passive=False) - ld.inverse_dynamics(model, q, v, v)
        np.testing.assert_allclose(force, data.qfrc_passive, atol=1e-12)


def test_the_length_of_a_relaxed_tendon_must_be_known(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM.format(' springref="0.2" stiffness="1"'))
    with pytest.raises(ld.ModelError, match=r"arm.xml:6: .*the length of a relaxed tendon is not known.*springlength"):
        ld.load(tmp_path / "arm.xml")
    model = ld.load(tmp_path / "arm.xml", ignore=["tendons"])
    assert not model.description.elements


HAND = """<mujoco><worldbody><body name="palm"><geom size=".05"/><joint name="lift" type="slide" axis="0 0 1"/>
<body name="a"><joint name="f1" type="slide" axis="1 0 0" range="-1 1"/><geom size=".02"/></body>
<body name="b"><joint name="f2" type="slide" axis="-1 0 0" range="-1 1"/><geom size=".02"/></body></body></worldbody>
<tendon><fixed name="split"><joint joint="f1" coef="0.5"/><joint joint="f2" coef="0.25"/></fixed>
<fixed name="up"><joint joint="lift" coef="-2"/></fixed>
<fixed name="both"><joint joint="lift" coef="1"/><joint joint="f1" coef="1"/></fixed></tendon>
<equality><joint joint1="f2" joint2="f1" polycoef="0 -0.5 0 0 0"/></equality>
<actuator><motor tendon="split" gear="3" ctrlrange="-2 2"/><general tendon="up" forcerange="-5 5" gear="0.5"/>
<motor tendon="both" ctrlrange="-1 1"/><motor tendon="both" gear="2"/></actuator></mujoco>"""


def test_actuators_on_fixed_tendons(tmp_path):
    """Forces on followers of equalities act on the joint that they follow. A tendon over independent joints is an actuator."""
    (tmp_path / "hand.xml").write_text(HAND)
    robot, theirs = ld.load_description(tmp_path / "hand.xml"), mujoco.MjModel.from_xml_string(HAND)
    data = mujoco.MjData(theirs)
    data.ctrl[:2] = 2.0, 1e3
    theirs.actuator_gainprm[1, 0] = 1.0
    mujoco.mj_forward(theirs, data)
    lift, f1, f2 = data.qfrc_actuator.copy()
    data.ctrl[:] = 0.0, 0.0, 0.7, 0.0
    mujoco.mj_forward(theirs, data)
    pulled = dict(zip(("lift", "f1", "f2"), data.qfrc_actuator / 0.7, strict=True))
    efforts = {joint.name: joint.coordinates[0].effort for joint in robot.joints}
    assert efforts == {"lift": pytest.approx(abs(lift)), "f1": pytest.approx(f1 - 0.5 * f2), "f2": np.inf}
    assert robot.actuated == ("f1", "lift")
    both, second = robot.actuators
    assert (both.name, both.limits) == ("both", (-1.0, 1.0))
    assert (second.name, second.limits, dict(second.joints)["lift"]) == ("both_", None, 2.0)
    assert {**dict.fromkeys(pulled, 0.0), **dict(both.joints)} == pytest.approx(pulled)
    assert "actuators with gains (1)" in robot.warnings[0].message and "tendons" not in robot.warnings[0].message
