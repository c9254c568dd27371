"""Figures of the model by name: derivatives by each, against complex arithmetic and against robots rebuilt with other figures."""
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

import liedyn as ld
from bridge import relative
from complex_step import Reference
from joint_forces import figures
from liedyn.errors import NameLookupError
from liedyn.model.description import Joint, Robot
from liedyn.model.links import Link, Pose
from matrices import derivative, hat, pose
from zoo import ROBOTS, floats, model_of, random_robot, state

GROUPS = ("mass", "com", "inertia", "origin", "screw", "pitch", "armature", "damping", "friction", "stiffness", "rest", "gravity")
SIZE = {"inertia": 0.01, "origin": 0.1, "screw": 0.1, "gravity": 10.0}        # rates that keep robots robots; 0.3 of the others
UPPER = ("xx", "xy", "xz", "yy", "yz", "zz")
TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")


# every figure for itself ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["universal", "screws", "every kind", "every kind, floating"])
def test_each_figure_alone_agrees_with_complex_arithmetic(name, worst):
    """To rounding of the largest entry of its own column. Forward: times the condition of M, 1e4."""
    model = model_of(name)
    q, v, a, tau = state(model, 11)
    F = np.random.default_rng(11).standard_normal((len(model.link_names), 6))
    names = ld.parameter_names(model)
    mask = np.arange(model.nv) % 2 == 0
    inverse = ld.parameter_derivatives(model, q, v, a, f_ext=F)
    forward = ld.parameter_derivatives(model, q, v, tau, names, of="forward", f_ext=F)
    hybrid = ld.parameter_derivatives(model, q, v, np.where(mask, a, tau), names, of="hybrid", prescribed=mask, f_ext=F)
    assert inverse.shape == forward.shape == hybrid.shape == (model.nv, len(names))
    sizes = np.abs(inverse).max(), np.abs(forward).max(), np.abs(hybrid).max()
    for k in range(0, len(names), 1 + len(names) // 60):
        figure = names[k]
        reference = Reference(model, q, v, f_ext=F, rates={figure: 1.0})
        expected = reference.inverse(a)[1]
        assert worst("one figure, inverse", relative(inverse[:, k], expected, 1e-3 * sizes[0]), figure) < 1e-12
        expected = reference.hybrid(a, tau, mask & False)[2]
        assert worst("one figure, forward", relative(forward[:, k], expected, 1e-3 * sizes[1]), figure) < 1e-9
        *_, da, dtau = reference.hybrid(a, tau, mask)
        assert worst("one figure, hybrid", relative(hybrid[:, k], np.where(mask, dtau, da), 1e-3 * sizes[2]), figure) < 1e-9


def test_names_of_a_small_robot():
    """Links, placements (fixed ones, too), screws, coordinates, gravity; ball and free joints have no screw and no spring."""
    a, b = (Link(name, 1.0, (0, 0, 0), (1, 0, 0, 1, 0, 1)) for name in "ab")
    robot = Robot("r", (a, b, Link("c")), (Joint("cyl", "cylindrical", "world", "a", axes=((0.0, 0.0, 1.0),)),
                                           Joint("j", "ball", "a", "b"), Joint("weld", "fixed", "b", "c")))
    names = ld.parameter_names(ld.build(robot))
    assert names[:10] == ("mass.a", "com.a.x", "com.a.y", "com.a.z", *(f"inertia.a.{x}" for x in UPPER))
    joints = [f"origin.cyl.{x}" for x in TWIST] + [f"screw.cyl.{k}.{x}" for k in (1, 2) for x in TWIST]
    joints += [f"origin.{joint}.{x}" for joint in ("j", "weld") for x in TWIST]
    assert names[30:60] == tuple(joints)
    coordinates = ["cyl.angle", "cyl.slide", "j.wx", "j.wy", "j.wz"]
    assert names[60:] == (*(f"{figure}.{x}" for figure in ("armature", "damping", "friction") for x in coordinates),
                          *(f"{figure}.{x}" for figure in ("stiffness", "rest") for x in coordinates[:2]),
                          *(f"friction_speed.{x}" for x in coordinates),
                          *(f"gravity.{x}" for x in "xyz"))
    assert len(set(names)) == len(names)


def test_pitch_is_a_figure_of_helical_joints():
    names = ld.parameter_names(model_of("helical"))
    assert [name for name in names if name.startswith("pitch")] == ["pitch.joint0", "pitch.joint1", "pitch.joint2"]
    assert not any(name.startswith("pitch") for name in ld.parameter_names(model_of("revolute")))


def test_an_unknown_name_is_told_with_the_nearest():
    model = model_of("revolute")
    states = state(model, 1)[:3]
    with pytest.raises(NameLookupError, match=r"no parameter 'mas\.link1'; did you mean 'mass\.link1'\?"):
        ld.parameter_derivatives(model, *states, ["mas.link1"])
    with pytest.raises(NameLookupError, match=r"no parameter '€'; ld\.parameter_names\(model\) lists them all"):
        ld.inverse_dynamics_directional(model, *states, parameters={"€": 1.0})


def test_two_figures_of_one_name_are_refused():
    """Joint `j` with its screw 1, and joint `j.1` with its only screw: told when figures are asked for, not before."""
    links = tuple(Link(name, 1.0, (0, 0, 0), (1, 0, 0, 1, 0, 1)) for name in "abc")
    axes = ((1.0, 0.0, 0.0),)
    robot = Robot("r", links, (Joint("j", "cylindrical", "a", "b", axes=axes), Joint("j.1", "revolute", "b", "c", axes=axes)))
    with pytest.raises(NameLookupError, match=r"two parameters are called 'screw\.j\.1\.wx': rename the joint or the link"):
        ld.parameter_names(ld.build(robot))


@pytest.mark.parametrize(("of", "prescribed", "found"), [
    ("hybrid", None, "got 'hybrid' without prescribed"), ("inverse", [True, False, False], "got 'inverse' with prescribed"),
    ("fwd", None, "got 'fwd' without prescribed")])
def test_what_is_differentiated_must_be_said_rightly(of, prescribed, found):
    model = model_of("revolute")
    with pytest.raises(ld.ShapeError, match=found):
        ld.parameter_derivatives(model, *state(model, 1)[:3], ["mass.link1"], of=of, prescribed=prescribed)


def test_no_figure_one_figure_and_batches():
    model = model_of("every kind")
    q, v, a, tau = state(model, 12, (2, 5))
    F = np.random.default_rng(12).standard_normal((5, len(model.link_names), 6))
    names = ld.parameter_names(model)[::17]
    together = ld.parameter_derivatives(model, q, v, a, names, f_ext=F)
    assert together.shape == (2, 5, model.nv, len(names))
    mask = np.arange(model.nv) % 3 == 0
    hybrid = ld.parameter_derivatives(model, q, v, np.where(mask, a, tau), names, of="hybrid", prescribed=mask)
    for i, j in ((0, 0), (1, 4)):
        alone = ld.parameter_derivatives(model, q[i, j], v[i, j], a[i, j], names, f_ext=F[j])
        assert relative(together[i, j], alone) < 1e-12
        x = np.where(mask, a, tau)[i, j]
        alone = ld.parameter_derivatives(model, q[i, j], v[i, j], x, names, of="hybrid", prescribed=mask)
        assert relative(hybrid[i, j], alone) < 1e-10
    assert ld.parameter_derivatives(model, q, v, a, []).shape == (2, 5, model.nv, 0)
    assert ld.parameter_derivatives(model, q[0, 0], v[0, 0], a[0, 0], []).shape == (model.nv, 0)
    one = ld.parameter_derivatives(model, q, v, a, "gravity.z")
    np.testing.assert_array_equal(one, ld.parameter_derivatives(model, q, v, a, ["gravity.z"]))
    assert ld.parameter_derivatives(model, q[:0], v[:0], a[:0], names).shape == (0, 5, model.nv, len(names))


def test_rates_may_vary_along_the_batch():
    """Of a figure alone, and of several with separate axes."""
    model = model_of("every kind, floating")
    q, v, a, _ = state(model, 13, (3, 4))
    rng = np.random.default_rng(13)
    mass, twist = rng.standard_normal(4), rng.standard_normal((3, 1))
    _, dtau = ld.inverse_dynamics_directional(model, q, v, a, parameters={"mass.link2": mass, "origin.joint3.vy": twist})
    columns = ld.parameter_derivatives(model, q, v, a, ["mass.link2", "origin.joint3.vy"])
    assert relative(dtau, columns[..., 0] * mass[:, None] + columns[..., 1] * twist[..., None]) < 1e-12
    _, dtau = ld.inverse_dynamics_directional(model, q[0, 0], v[0, 0], a[0, 0], parameters={"mass.link2": mass})
    assert dtau.shape == (4, model.nv)
    assert relative(dtau, columns[0, 0, :, 0] * mass[:, None]) < 1e-12


def test_torques_are_linear_in_masses_inertias_and_gravity():
    """Euler's theorem: with all of a kind in proportion, the derivative is the whole (springs and rotors apart)."""
    model = ld.build(random_robot(31, 9, base="floating", springs=False))
    q, v, a, _ = state(model, 14)
    rates = {}
    for link in model.description.links:                       # m, m c and I in proportion: c is held
        rates[f"mass.{link.name}"] = link.mass
        rates |= {f"inertia.{link.name}.{x}": value for x, value in zip(UPPER, link.inertia, strict=True)}
    tau, dtau = ld.inverse_dynamics_directional(model, q, v, a, parameters=rates)
    assert relative(dtau, tau) < 1e-13
    g = {f"gravity.{x}": value for x, value in zip("xyz", model.gravity, strict=True)}
    _, dtau = ld.inverse_dynamics_directional(model, q, v, a, parameters=g)
    assert relative(dtau, ld.gravity_force(model, q)) < 1e-13


def test_the_twist_of_the_whole_placement_of_a_free_base_does_what_gravity_and_its_pose_do():
    """Moving the world frame under a free robot at rest turns gravity only: d tau = d tau by gravity along -[w] g."""
    model = model_of("every kind, floating")
    q, v, a, _ = state(model, 15)
    w = np.array([0.3, -0.5, 0.7])
    moved = ld.inverse_dynamics_directional(model, q, v, a, parameters=dict(zip(
        [f"origin.base.{x}" for x in TWIST], [*w, 0.4, 0.1, -0.2], strict=True)))[1]
    turned = ld.inverse_dynamics_directional(model, q, v, a, parameters=dict(zip(
        ["gravity.x", "gravity.y", "gravity.z"], -np.cross(w, model.gravity), strict=True)))[1]
    assert relative(moved, turned) < 1e-12


# robots rebuilt ---------------------------------------------------------------------------------------------------
def rebuilt(robot: Robot, model, rates: dict[str, float], e: float) -> Robot:
    """The robot with its figures at e along the rates. Screws that change make a joint of type `screws`, which has the same
    motion at e = 0."""
    def figure(name, value): return float(value + e * rates.get(name, 0.0))

    links = tuple(replace(
        link, mass=figure(f"mass.{link.name}", link.mass),
        com=tuple(figure(f"com.{link.name}.{x}", c) for x, c in zip("xyz", link.com, strict=True)),
        inertia=tuple(figure(f"inertia.{link.name}.{x}", I) for x, I in zip(UPPER, link.inertia, strict=True)))
        for link in robot.links)
    joints = tuple(_rebuilt_joint(joint, model, rates, e, figure) for joint in model.description.joints)
    gravity = tuple(figure(f"gravity.{x}", g) for x, g in zip("xyz", robot.gravity, strict=True))
    return replace(robot, links=links, joints=joints, gravity=gravity)


def _rebuilt_joint(joint, model, rates, e, figure):
    twist = np.array([e * rates.get(f"origin.{joint.name}.{x}", 0.0) for x in TWIST])
    T = pose(joint.origin.rotation, joint.origin.translation) @ expm(hat(twist))
    coordinates = []
    for label, c in zip(joint.labels, joint.coordinates, strict=True):
        name = f"{joint.name}.{label}" if label else joint.name
        coordinates.append(replace(c, **{x: figure(f"{x}.{name}", getattr(c, x))
                                         for x in ("armature", "damping", "friction", "stiffness", "rest")}))
    made = replace(joint, origin=Pose(floats(T[:3, :3].ravel()), floats(T[:3, 3])), coordinates=tuple(coordinates),
                   pitch=figure(f"pitch.{joint.name}", joint.pitch))
    if not any(name.startswith(f"screw.{joint.name}.") for name in rates):
        return made
    screws = model.joint(joint.name).screws
    changed = tuple(tuple(figure(f"screw.{joint.name}.{f'{k + 1}.' if len(screws) > 1 else ''}{x}", s)
                          for x, s in zip(TWIST, screw, strict=True)) for k, screw in enumerate(screws))
    return replace(made, type="screws", axes=(), pitch=0.0, sequence="", screws=changed)


def rates_of_group(model, group: str) -> dict[str, float]:
    """Random rates of all figures of a group that a description may have a little less or more of."""
    rng = np.random.default_rng(21)
    bare = {link.name for link in model.description.links if link.mass == 0}
    names = [name for name in ld.parameter_names(model) if name.startswith(f"{group}.") and name.split(".")[1] != "base"
             and not (group in ("mass", "com", "inertia") and name.split(".")[1] in bare)]
    rates = {name: SIZE.get(group, 0.3) * float(rng.uniform(-1, 1)) for name in names}
    if group == "screw":            # a slide that turns a little turns about a far axis, which costs the rebuilt robot its digits
        rates = {name: rate for name, rate in rates.items() if not (name[-2] == "w" and _slides(model, name))}
    if group in ("armature", "damping", "friction", "stiffness"):                      # in proportion: none gets below zero
        value = dict(zip(model.v_names, figures(model, group), strict=True))
        rates = {name: rate * value[name.partition(".")[2]] for name, rate in rates.items()}
    return rates


def _slides(model, name: str) -> bool:
    _, joint, *k, _ = name.split(".")
    return not model.joint(joint).screws[int(k[0]) - 1 if k else 0][:3].any()


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", ["every kind", "every kind, floating", "every kind, a chain", "screws", "planar", "helical"])
def test_figures_agree_with_robots_rebuilt(name, group, worst):
    """All figures of a group at once. Differences of eighth order, 1e-12 of tau at best and less where M is badly conditioned."""
    robot, model = ROBOTS[name], model_of(name)
    rates = rates_of_group(model, group)
    if not rates:
        pytest.skip("this robot has none of these")
    q, v, a, tau = state(model, 16)
    F = np.random.default_rng(16).standard_normal((len(model.link_names), 6))

    def both(e):
        changed = ld.build(rebuilt(robot, model, rates, e))
        return np.array([ld.inverse_dynamics(changed, q, v, a, f_ext=F), ld.forward_dynamics(changed, q, v, tau, f_ext=F)])

    expected, whole = derivative(both), both(0.0)
    inverse, dtau = ld.inverse_dynamics_directional(model, q, v, a, f_ext=F, parameters=rates)
    forward, da = ld.forward_dynamics_directional(model, q, v, tau, f_ext=F, parameters=rates)
    assert relative(inverse, whole[0]) < 1e-12 and relative(forward, whole[1]) < 1e-10
    assert worst("figures against robots rebuilt, inverse", relative(dtau, expected[0], np.abs(whole[0]).max()), group) < 1e-11
    assert worst("figures against robots rebuilt, forward", relative(da, expected[1], np.abs(whole[1]).max()), group) < 1e-8
