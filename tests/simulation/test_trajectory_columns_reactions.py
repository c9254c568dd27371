"""What the loops of a run transmit, as trajectory.csv has it: real forces and moments, in world axes."""
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from bridge import relative
from liedyn.analysis.trajectory_dynamics import dynamics_along
from liedyn.io.trajectory_csv import read_trajectory, write_trajectory
from liedyn.report.run_folder import write_run
from liedyn.simulation.run import run_scenario
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header
from mechanisms import G, four_bar

ROBOTS = Path(__file__).parents[2] / "robots"
PARTS = ("mx", "my", "mz", "fx", "fy", "fz")
STANDING = {"abd": 0.1, "hip": 0.8, "knee": -1.6}


@pytest.fixture
def standing(tmp_path):
    """Return the quadruped with its feet pinned to the ground, one on a slope, and its state."""
    free = ld.load(ROBOTS / "quadruped.yaml")
    q = free.neutral()
    q[2] = 0.3
    for joint in free.joints:
        if joint.kind == 0:
            q[joint.q] = STANDING[joint.name.split("_")[1]]
    feet = [name for name in free.link_names if name.endswith("_foot")]
    lines = ["loops:"]
    for foot, turn in zip(feet, ((0, 0, 0), (0.3, 0.2, 0.1), (0, 0, 2), (1, 0, 0)), strict=True):
        x, y, z = ld.link_pose(free, q, foot)[:3, 3]
        lines.append(f"  {foot}: {{type: ball, a: {{link: world, xyz: [{x!r}, {y!r}, {z!r}], rpy: {list(turn)}}}, "
                     f"b: {{link: {foot}, rpy: {list(turn)}}}}}".replace("np.float64(", "").replace(")", ""))
    loops = tmp_path / "feet.loops.yaml"
    loops.write_text("\n".join(lines) + "\n")
    model = ld.load(ROBOTS / "quadruped.yaml", loops=loops)
    return model, q, loops


def mass_of(model) -> float:
    return sum(link.mass for link in model.description.links)


def test_four_pinned_feet_bear_the_weight(standing, tmp_path):
    """They once summed to 59 % of it: each was in the axes of its shank. At rest the sum is the weight to rounding (1e-10)."""
    model, q, loops = standing
    names = [name for joint in model.joints for name in model.v_names[joint.v] if joint.name != "base"]
    initial = {"q": {name: float(q[model.q_index(name)][0]) for name in names}}
    initial["q"]["base"] = [float(x) for x in q[:7]]
    scenario = {"robot": str(ROBOTS / "quadruped.yaml"), "loops": str(loops), "duration": 0.01, "output_step": 0.005,
                "initial": initial, "joints": {name: {"prescribe": {"acceleration": 0}} for name in names}}
    result = run_scenario(scenario)
    assert np.abs(result.v).max() < 1e-12
    write_run(result, tmp_path / "run", plots=False)
    file = read_trajectory(tmp_path / "run" / "trajectory.csv")
    assert not any(name.startswith("lambda") for name in file.columns)
    F = np.array([[file.columns[f"reaction.{one.name}.{part}"] for part in PARTS] for one in model.constraints])     # (4, 6, N)
    weight = mass_of(model) * G
    assert np.abs(F[:, 3:].sum(axis=0) - np.array([0, 0, weight])[:, None]).max() < 1e-10 * weight
    assert np.abs(F[:, :3]).max() < 1e-12 * weight                              # a ball bears no moment
    assert (F[:, 5] > 0.1 * weight).all()
    # and about the centre of mass they balance, at the points where the feet stand
    arms = np.array([ld.link_pose(model, q, one.b)[:3, 3] for one in model.constraints]) - ld.centre_of_mass(model, q)
    moment = np.cross(arms[:, None], np.moveaxis(F[:, 3:], 1, 2)).sum(axis=0)
    assert np.abs(moment).max() < 1e-9 * weight                                 # 1e-10 of digits in q, and arms of 0.3 m
    # inverse dynamics of the file finds them again
    along = dynamics_along(model, file, "inverse", actuated=names, criterion="least_constraint_force")
    again = {name: x for name, _, x in along.columns}
    total = sum(again[f"reaction.{one.name}.fz"] for one in model.constraints)
    assert np.abs(total - weight).max() < 1e-8 * weight


# four-bar --------------------------------------------------------------------------------------------------------------
CRANK, COUPLER, ROCKER, GROUND = 0.1, 0.25, 0.25, 0.2            # robots/four_bar.yaml; the coupler, 0.5 long, is pinned halfway
BAR = 7850 * 0.005 * 0.02


def pin_forces(q: float, v: float, a: float, sign: int) -> dict[str, complex]:
    """Newton-Euler of the three bars in their plane, x + i z: the forces of the pins and the motor's moment, from nine equations.

    crank, knee, pin, rocker: the force on the crank from the ground, on the coupler from the crank, on the rocker from the
    coupler, on the rocker from the ground; motor: the moment on the crank, from x towards z."""
    angles = four_bar(GROUND, CRANK, COUPLER, ROCKER, q, v, a, sign)
    knee, pin = angles[0].point(CRANK), angles[0].point(CRANK) + angles[1].point(COUPLER)
    bars = [(CRANK, angles[0], np.zeros(3)), (0.5, angles[1], knee), (ROCKER, angles[2], np.array([GROUND, 0, 0]))]
    unknown = ("crank", "knee", "pin", "rocker")
    rows, right = [], []
    at = [{"crank": (0, 1), "knee": (knee[0], -1)}, {"knee": (knee[0], 1), "pin": (pin[0], -1)},
          {"pin": (pin[0], 1), "rocker": (GROUND, 1)}]
    for (length, turn, origin), forces in zip(bars, at, strict=True):
        mass = BAR * length
        centre = origin + turn.point(length / 2)
        inertia = mass * (length**2 + 0.02**2) / 12
        x, z, m = np.zeros(9), np.zeros(9), np.zeros(9)
        for name, (place, way) in forces.items():
            k, arm = 2 * unknown.index(name), place - centre[0]
            x[k], z[k + 1] = way, way
            m[k], m[k + 1] = -way * np.imag(arm), way * np.real(arm)
        if turn is angles[0]:
            m[8] = 1.0
        rows += [x, z, m]
        right += [mass * centre[2].real, mass * (centre[2].imag + G), inertia * turn.a]
    found = np.linalg.solve(np.array(rows), np.array(right))
    return {name: complex(found[2 * k], found[2 * k + 1]) for k, name in enumerate(unknown)} | {"motor": found[8]}


def turning(q, v, a):
    """Return the four-bar's state for a motion of the crank, its motor's force and multipliers, and its branch."""
    model = ld.load(ROBOTS / "four_bar.yaml")
    start = ld.assemble(model, [q, 0.0, 0.0], fixed=["crank"]).q
    mask = np.array([True, False, False])
    speed = ld.project_velocity(model, start, np.array([v, 0.0, 0.0]), prescribed=mask)
    motion = ld.constrained_hybrid_dynamics(model, start, speed, np.array([a, 0.0, 0.0]), np.zeros(3), mask, passive=False)
    return model, start, speed, motion


@pytest.mark.parametrize("state", [(0.4, 0.0, 0.0), (1.1, 3.0, -2.0), (2.5, -6.0, 5.0)])
def test_every_pin_of_a_four_bar_as_newton_and_euler_have_it(state):
    model, q, v, motion = turning(*state)
    coupler = np.angle(np.exp(1j * (q[0] + q[1])))                       # angles turn x towards z
    sign = next(s for s in (1, -1) if abs(np.exp(1j * four_bar(GROUND, CRANK, COUPLER, ROCKER, *state, s)[1].q)
                                          - np.exp(1j * coupler)) < 1e-6)
    expected = pin_forces(*state, sign)
    reaction = ld.closure_wrenches(model, q, motion.multipliers)[0]
    F = ld.joint_wrenches(model, q, v, motion.a, multipliers=motion.multipliers, frame="local_world_aligned")
    got = {"pin": reaction} | dict(zip(model.joint_names, F, strict=True))
    largest = max(abs(x) for name, x in expected.items() if name != "motor")
    for name, W in got.items():
        assert abs(complex(W[3], W[5]) - expected[name]) < 1e-10 * largest, name      # of a mechanism closed to 1e-12
        assert np.abs(W[[0, 2, 4]]).max() < 1e-10 * largest                             # nothing out of the plane
    assert abs(-got["crank"][1] - expected["motor"]) < 1e-10 * largest                 # y turns z towards x
    assert abs(motion.tau[0] - expected["motor"]) < 1e-10 * largest
    for name in ("knee", "pin", "rocker"):
        assert abs(got[name][1]) < 1e-10 * largest                                      # pins bear no moment


def test_inverse_writes_the_forces_of_every_pin_in_the_axes_that_are_asked_for(tmp_path):
    """From a file of positions, velocities and accelerations: wrench.<joint> of the tree, reaction.<loop> of the cut pin."""
    states = [(0.4, 0.5, 0.0), (1.1, 3.0, -2.0), (2.5, -6.0, 5.0)]
    found = [turning(*one) for one in states]
    model = found[0][0]
    q, v, a = (np.array([(one[1], one[2], one[3].a)[k] for one in found]) for k in range(3))
    write_trajectory(tmp_path / "m.csv", trajectory_header(model, passive=False), range(3), motion_columns(model, q=q, v=v, a=a))
    motion = read_trajectory(tmp_path / "m.csv")
    along = {axes: dynamics_along(model, motion, "inverse", actuated=["crank"], wrenches=axes)
             for axes in ("world", "link", "joint")}
    W = {axes: {name: x for name, _, x in one.columns} for axes, one in along.items()}
    assert "world axes, about the child link's origin" in along["world"].header["wrench"]
    assert "on link b from link a, axes of link b, about the origin of frame b" in along["link"].header["reaction"]
    for k, (crank, *rates) in enumerate(states):
        coupler = np.exp(1j * (q[k, 0] + q[k, 1]))
        sign = next(s for s in (1, -1)
                    if abs(np.exp(1j * four_bar(GROUND, CRANK, COUPLER, ROCKER, crank, *rates, s)[1].q) - coupler) < 1e-6)
        expected = pin_forces(crank, *rates, sign)
        largest = max(abs(x) for name, x in expected.items() if name != "motor")
        along_bar, rocker = q[k, 0] + q[k, 1], q[k, 2]
        angles = {"crank": (q[k, 0], 0.0), "knee": (along_bar, q[k, 0]), "pin": (rocker, rocker), "rocker": (rocker, 0.0)}
        for name, (link, joint) in angles.items():                              # of the child and of the joint's frame
            kind = "reaction" if name == "pin" else "wrench"
            for axes, turn in (("world", 0.0), ("link", link), ("joint", joint)):
                x, z = (W[axes][f"{kind}.{name}.{part}"][k] for part in ("fx", "fz"))
                assert abs((x + 1j * z) * np.exp(1j * turn) - expected[name]) < 1e-10 * largest, (name, axes)
        assert abs(-W["world"]["wrench.crank.my"][k] - expected["motor"]) < 1e-10 * largest


def test_the_pins_on_the_ground_carry_the_bars_at_rest():
    model, q, v, motion = turning(0.4, 0.0, 0.0)
    weight = BAR * (CRANK + 0.5 + ROCKER) * G
    F = ld.joint_wrenches(model, q, v, motion.a, multipliers=motion.multipliers, frame="local_world_aligned")
    assert np.abs(F[[0, 2], 3:].sum(axis=0) - [0, 0, weight]).max() < 1e-10 * weight


def legs_of(model, q, v, a):
    """Of each leg of the quadruped: its joints' axes and points, by link the moment about the world's origin and the force
    that it needs, and where its foot stands; and the load of the body. By plain products along the legs, from the description."""
    links = {link.name: link for link in model.description.links}
    R, p, w = Rotation.from_quat(q[3:7]).as_matrix(), q[:3], v[:3]
    body = {"R": R, "p": p, "w": R @ w, "dw": R @ a[:3], "v": R @ v[3:6], "dv": R @ (a[3:6] + np.cross(w, v[3:6]))}

    def load(state, link):
        x, y, z = link.inertia[:3], link.inertia[3:5], link.inertia[5]
        I = state["R"] @ np.array([x, [x[1], *y], [x[2], y[1], z]]) @ state["R"].T
        arm = state["R"] @ link.com
        acceleration = state["dv"] + np.cross(state["dw"], arm) + np.cross(state["w"], np.cross(state["w"], arm))
        f = link.mass * (acceleration - np.array([0, 0, -G]))
        return np.cross(state["p"] + arm, f) + I @ state["dw"] + np.cross(state["w"], I @ state["w"]), f

    legs, k = [], 0
    for first in ("FL", "FR", "HL", "HR"):
        state, axes, points, loads = body, [], [], []
        for joint in (one for one in model.description.joints if one.name.startswith(first)):
            arm = state["R"] @ joint.origin.translation
            at = {"R": state["R"] @ np.reshape(joint.origin.rotation, (3, 3)), "p": state["p"] + arm, "w": state["w"],
                  "dw": state["dw"], "v": state["v"] + np.cross(state["w"], arm),
                  "dv": state["dv"] + np.cross(state["dw"], arm) + np.cross(state["w"], np.cross(state["w"], arm))}
            if joint.type != "fixed":
                axis = at["R"] @ joint.axes[0]
                at["dw"] = at["dw"] + np.cross(at["w"], axis * v[6 + k]) + axis * a[6 + k]
                at["w"] = at["w"] + axis * v[6 + k]
                at["R"] = at["R"] @ Rotation.from_rotvec(np.array(joint.axes[0]) * q[7 + k]).as_matrix()
                axes, points, k = [*axes, axis], [*points, at["p"]], k + 1
            state, loads = at, [*loads, load(at, links[joint.child])]
        legs.append((np.array(axes), np.array(points), loads, state["p"]))
    return legs, load(body, links["body"])


@pytest.mark.parametrize("moving", [False, True])
def test_each_pinned_foot_as_newton_and_euler_of_its_leg_have_it(standing, moving):
    """Three motors of a leg tell the three components of the force on its foot; together the feet carry weight and inertia."""
    model, q, _ = standing
    rng = np.random.default_rng(8)
    v = ld.project_velocity(model, q, rng.standard_normal(model.nv)) if moving else np.zeros(model.nv)
    tau = np.r_[np.zeros(6), rng.uniform(-4, 4, 12)] if moving else None
    if moving:
        motion = ld.constrained_forward_dynamics(model, q, v, tau, passive=False)
        a = motion.a
    else:
        a = np.zeros(model.nv)
        motion = ld.constrained_inverse_dynamics(model, q, v, a, [name for name in model.joint_names if name != "base"],
                                                 criterion="least_torque", passive=False)
        tau = motion.tau
    F = ld.closure_wrenches(model, q, motion.multipliers)[:, 3:]
    weight = mass_of(model) * G
    legs, (_, needed) = legs_of(model, q, v, a)
    armature = np.array([one.coordinate_parameters[0].armature for one in model.description.joints if one.type != "fixed"])
    for k, (axes, points, loads, foot) in enumerate(legs):
        mine = slice(6 + 3 * k, 9 + 3 * k)
        motors = tau[mine] - armature[3 * k:3 * k + 3] * a[mine]
        rows, right = [], []
        for j in range(3):
            moment = sum(m - np.cross(points[j], f) for m, f in loads[j:])       # of the links beyond, about the joint
            rows.append(np.cross(axes[j], foot - points[j]))
            right.append(axes[j] @ moment - motors[j])
        np.testing.assert_allclose(F[k], np.linalg.solve(rows, right), rtol=0, atol=1e-10 * weight)
        needed = needed + sum(f for _, f in loads)
    np.testing.assert_allclose(F.sum(axis=0), needed, rtol=0, atol=1e-10 * weight)
    if not moving:
        np.testing.assert_allclose(F.sum(axis=0), [0, 0, weight], rtol=0, atol=1e-10 * weight)


def test_frames_of_closure_wrenches():
    model, q, _, motion = turning(1.1, 3.0, -2.0)
    F = {frame: ld.closure_wrenches(model, q, motion.multipliers, frame=frame)[0]
         for frame in ("local", "local_world_aligned", "world")}
    T = ld.link_pose(model, q, "rocker")
    R, p = T[:3, :3], T[:3, :3] @ [0.25, 0, 0] + T[:3, 3]
    m, f = R @ F["local"][:3], R @ F["local"][3:]
    assert relative(F["local_world_aligned"], np.r_[m, f]) < 1e-13
    assert relative(F["world"], np.r_[m + np.cross(p, f), f]) < 1e-13
    # on the links, about their origins: the opposite on the coupler
    on = ld.constraint_wrenches(model, q, motion.multipliers)
    C = ld.link_pose(model, q, "coupler")
    assert relative(C[:3, :3] @ on[model.link_index("coupler")][3:], -f) < 1e-13
    with pytest.raises(ld.ShapeError, match="frame must be one of local, local_world_aligned, world, got 'link'"):
        ld.closure_wrenches(model, q, motion.multipliers, frame="link")


def test_the_reaction_of_a_coupling_is_a_joint_force(tmp_path):
    """Gears of 1 : 2 on parallel axes, one driven, the other bearing a load: the coupling hands it on."""
    (tmp_path / "gears.yaml").write_text("""name: gears
gravity: [0, 0, 0]
links: {a: {mass: 1, inertia: [0.1, 0.1, 0.1]}, b: {mass: 1, inertia: [0.4, 0.4, 0.4]}}
joints:
  ja: {type: continuous, parent: world, child: a, axis: [0, 0, 1]}
  jb: {type: continuous, parent: world, child: b, axis: [0, 0, 1], origin: {xyz: [1, 0, 0]}}
couplings: {gear: {terms: {jb: 1, ja: -0.5}}}
""")
    (tmp_path / "s.yaml").write_text("robot: gears.yaml\nduration: 0.01\noutput_step: 0.01\n"
                                     "joints: {ja: {torque: 3}, jb: {torque: 0}}\n")
    result = run_scenario(tmp_path / "s.yaml")
    columns = {name: (unit, x) for name, unit, x in result.columns}
    unit, force = columns["reaction.gear"]
    # (0.1 + 0.4/4) a = 3; the wheel b gets 0.4 a/2 from the gear, which is the force on the joint with coefficient 1
    assert unit == "N m" and np.allclose(force, 0.4 * 15 / 2, atol=1e-12)
    assert not any(name.startswith("reaction.gear.") for name in columns)


def test_a_driven_closure_and_rolling_have_reactions_too():
    """The arm that is led along a path, the disc that rolls: their wrenches on links move the open tree as the run does."""
    for name in ("delta_guided", "rolling_disc"):
        result = run_scenario(ROBOTS.parent / "configs" / f"{name}.yaml", {"duration": 0.05})
        model = result.model
        f = ld.link_poses(model, result.q)
        assert result.reactions.shape == (len(result.t), len(model.description.loops), 6) and np.abs(result.reactions).max() > 0
        # the sum of the reactions that come from the ground is what gravity and the change of momentum leave
        if all(loop.a == "world" for loop in model.description.loops) and model.base == "floating":
            total = result.reactions[:, :, 3:].sum(axis=1)
            rate = np.gradient(ld.momentum(model, result.q, result.v)[:, 3:], result.t, axis=0)[1:-1]
            left = total[1:-1] - rate + mass_of(model) * np.array(model.gravity)
            assert np.abs(left).max() < 1e-2 * mass_of(model) * G                      # differences over an output step
        assert np.isfinite(f).all()
