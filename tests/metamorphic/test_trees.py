"""One mechanism written with several spanning trees, with redundant constraints, with mimic joints and couplings."""
from dataclasses import replace
from functools import partial
from itertools import cycle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from degenerate_mechanisms import CASES
from liedyn.model.description import WORLD, Coordinate, Coupling, Joint, Loop, Mimic
from liedyn.model.links import Link, Pose
from loop_zoo import as_pose, matrix, random_closure
from metamorphic.mechanisms import MECHANISMS, SEED, Mechanism, State, state_of
from metamorphic.observables import CONSTRAINED, outcome, within
from metamorphic.other_trees import CUT, common, connections, respanned, state_in
from metamorphic.test_scenarios import simulate
from zoo import SIMPLE, random_robot

# Another tree factors other matrices: rounding times the condition of the mechanism, up to 1e5, relative to the largest number of
# a result. Motions of 0.03 s keep the digits.
TOLERANCE = 1e-8
agree = partial(within, tolerance=TOLERANCE)


def closed_chain(seed: int, base: str, kind: str) -> Mechanism:
    """Return nine joints in a ring."""
    rng = np.random.default_rng([SEED, seed])
    robot = random_robot(SEED + seed, 9, base=base, types=SIMPLE, chain=True, springs=False, massless=False)
    model = ld.build(robot)
    q = ld.random_configuration(model, rng)
    return Mechanism(replace(robot, loops=(random_closure(rng, kind, "ring", model, q, "root", robot.joints[-1].child),)), q)


RINGS = {name: MECHANISMS[name] for name in ("parallelogram", "parallelogram, flat", "spherical, 0", "spherical, 1.3 rad",
                                             "slider-crank", "slider-crank, inner", "coaxial, revolute", "five-bar")}
RINGS |= {"random ring": lambda: closed_chain(11, "fixed", "revolute"),
          "random sliding ring": lambda: closed_chain(12, "fixed", "prismatic"),
          "random floating ring": lambda: closed_chain(13, "floating", "ball")}
SINGULAR = {"parallelogram, flat", "slider-crank", "slider-crank, inner"}          # other trees see other neighbours


def of_bodies(model, s: State, links, places) -> dict[str, np.ndarray]:
    """What does not depend on the coordinates, and accelerations of the velocities at `places`."""
    motion = ld.constrained_forward_dynamics(model, s.q, s.v, s.tau, f_ext=s.f_ext) if model.constraints else None
    a = motion.a if motion else ld.forward_dynamics(model, s.q, s.v, s.tau, f_ext=s.f_ext)
    found = {"a": a[places], "energy": ld.energy(model, s.q, s.v), "momentum": ld.momentum(model, s.q, s.v),
             "centre of mass": ld.centre_of_mass(model, s.q)}
    for link in links:
        found[f"pose of {link}"] = ld.link_pose(model, s.q, link)
        found[f"twist of {link}"] = ld.link_twist(model, s.q, s.v, link)
        found[f"acceleration of {link}"] = ld.link_acceleration(model, s.q, s.v, a, link)
    if motion:
        mobility = ld.mobility(model, s.q)
        found["degrees"] = mobility.degrees
        found["residual"] = np.abs(ld.constraint_residual(model, s.q)).max()
        found["constraint velocity"] = np.abs(ld.constraint_velocity(model, s.q, s.v)).max()
        found["da/dtau"] = ld.constrained_forward_derivatives(model, s.q, s.v, s.tau).da_dtau[np.ix_(places, places)]
        actuated = np.isin(np.arange(model.nv), places)
        found["tau"] = outcome_of(lambda: ld.constrained_inverse_dynamics(
            model, s.q, s.v, a, actuated, f_ext=s.f_ext, criterion="least_torque").tau[places])
        if all(motion.independent):
            found |= {f"reaction of {name}": F for name, F in reactions(model, s, motion).items()}
    return found


def outcome_of(compute):
    try:
        return compute()
    except ld.ComputationError as error:
        return type(error).__name__


def reactions(model, s, motion) -> dict[str, np.ndarray]:
    """The wrench of each connection on its link b, world axes, about the world's origin; b as the file writes it first."""
    found, joints = {}, {j.name: j for j in model.description.joints}
    wrenches = ld.joint_wrenches(model, s.q, s.v, motion.a, f_ext=s.f_ext, frame="world", multipliers=motion.multipliers)
    for joint, F in zip(model.joints, wrenches, strict=True):
        if joint.name in joints:                                 # not the base
            found[joint.name] = F
    closures = ld.closure_wrenches(model, s.q, motion.multipliers, frame="world")
    return found | {loop.name: F for loop, F in zip(model.description.loops, closures, strict=True)}


@pytest.mark.parametrize("name", RINGS)
def test_a_loop_cut_at_another_joint(name):
    mechanism = RINGS[name]()
    robot, old = mechanism.robot, ld.build(mechanism.robot)
    here = state_of(mechanism, old)
    ring = robot.loops[0].name
    root = WORLD if any(j.parent == WORLD for j in robot.joints) else "root"
    if name in SINGULAR:                                         # of others, some have no acceleration
        here = here._replace(v=np.array(CASES[name].v))
    if robot.base == "floating":
        here.tau[:6] = 0.0
    cut = 0
    for joint in [j for j in robot.joints if j.type in CUT]:
        try:
            changed = respanned(robot, root, (joint.name,))
        except ValueError:                                       # a joint outside the loop
            continue
        cut, new = cut + 1, ld.build(changed)
        tau = here.tau.copy()
        tau[old.v_index(joint.name)] = 0.0
        start = here._replace(tau=tau)
        ours, theirs = common(old, new)
        expected = of_bodies(old, start, old.link_names, ours)
        found = of_bodies(new, state_in(new, old, robot, start), old.link_names, theirs)
        if name in SINGULAR:
            for what in ("tau", "da/dtau"):                      # for all velocities, of neighbours too
                del expected[what]
        agree(found, signed(expected, robot, changed))
    assert cut >= 2 and ring in new.joint_names


def signed(expected, robot, changed):
    """Change the sign of reactions of reversed connections, which act on their other link."""
    first = {one.name: one.b for one in connections(robot)}
    place = {j.parent: j.child for j in changed.joints if j.name.endswith("_place")}
    for joint in changed.joints:
        if f"reaction of {joint.name}" in expected and place.get(joint.child, joint.child) != first[joint.name]:
            expected[f"reaction of {joint.name}"] = -expected[f"reaction of {joint.name}"]
    return expected


@pytest.mark.parametrize("seed", range(3))
def test_another_root_link(seed):
    """Each link of a floating tree of joints of one degree of freedom is its base once."""
    robot = random_robot(SEED + 20 + seed, 6, base="floating", types=SIMPLE, massless=False)
    robot = replace(robot, joints=tuple(replace(j, coordinates=tuple(replace(c, friction=0.0) for c in j.coordinates))
                                        for j in robot.joints))
    old = ld.build(robot)
    here = state_of(Mechanism(robot), old)
    here.tau[:6] = 0.0                                           # forces on the base act on another link
    for link in old.link_names[1:]:
        new = ld.build(respanned(robot, link))
        there, (ours, theirs) = state_in(new, old, robot, here), common(old, new)
        assert len(ours) == old.nv - 6
        agree(of_bodies(new, there, old.link_names, theirs), of_bodies(old, here, old.link_names, ours))


@pytest.mark.parametrize("name", ["parallelogram", "spherical, 1.3 rad", "five-bar", "random ring"])
def test_motions_with_impacts_and_locks_of_another_tree(name):
    mechanism = RINGS[name]()
    robot, old = mechanism.robot, ld.build(mechanism.robot)
    here = state_of(mechanism, old)
    root = WORLD if any(j.parent == WORLD for j in robot.joints) else "root"
    last = [j for j in robot.joints if j.type in CUT][-1].name
    new = ld.build(respanned(robot, root, (last,)))
    there, (ours, theirs) = state_in(new, old, robot, here), common(old, new)
    events = {"hit": {"at": 0.01, "do": {"impact": {"joint": old.v_names[ours[0]], "restitution": 0.5}}},
              "lock": {"at": 0.03, "do": {"lock": old.v_names[ours[-1]]}}}
    run, other = (simulate(model, s.q, s.v, 1.0, events=events) for model, s in ((old, here), (new, there)))
    rows = [(ld.link_poses(old, run.q), [ld.link_poses(new, other.q)[:, new.link_names.index(n)] for n in old.link_names])]
    agree({"v": other.v[:, theirs], "pose": np.swapaxes(rows[0][1], 0, 1), "t": other.t},
          {"v": run.v[:, ours], "pose": rows[0][0], "t": run.t})


# redundant constraints ---------------------------------------------------------------------------------------------
def with_redundant(robot):
    """Each closure again, also seen from its other link or as a part of it; each coupling again in other units."""
    loops = list(robot.loops)
    for one in robot.loops:
        loops.insert(0, replace(one, name=f"{one.name}_again"))
        if one.type in ("weld", "ball", "distance"):
            loops.append(replace(one, name=f"{one.name}_back", a=one.b, b=one.a, pose_a=one.pose_b, pose_b=one.pose_a))
        if one.type in ("weld", "revolute", "universal"):
            loops.append(Loop(f"{one.name}_ball", "ball", one.a, one.b, one.pose_a, one.pose_b))
        if one.type == "revolute":                               # elsewhere on the axis, turned about it
            x = 0.3 * np.array(one.axes[0]) / np.linalg.norm(one.axes[0])
            move = matrix(Pose(translation=tuple(x)))
            loops.append(replace(one, name=f"{one.name}_along", pose_a=as_pose(matrix(one.pose_a) @ move),
                                 pose_b=as_pose(matrix(one.pose_b) @ move)))
    couplings = [Coupling(f"{one.name}_again", tuple((j, c, -2.5 * x) for j, c, x in one.terms), -2.5 * one.offset)
                 for one in robot.couplings]
    return replace(robot, loops=tuple(loops), couplings=(*couplings, *robot.couplings))


SAME = ("project_velocity", "constrained_forward_dynamics", "constraint_forces", "assemble", "mobility:rank",
        "constrained_forward_derivatives:tau", "constrained_hybrid_derivatives:q", "constrained_hybrid_derivatives:v",
        "constrained_inverse_dynamics", "constrained_inverse_derivatives", "project_configuration", "constrained_hybrid_dynamics")
LOOPED = [name for name, make in MECHANISMS.items() if name not in SINGULAR and (make().robot.loops or make().robot.couplings)]


@pytest.mark.parametrize("name", [*LOOPED, "random ring", "random floating ring"])
def test_redundant_constraints_change_nothing(name):
    mechanism = (MECHANISMS | RINGS)[name]()
    old, new = ld.build(mechanism.robot), ld.build(with_redundant(mechanism.robot))
    assert new.nc > old.nc
    here, link = state_of(mechanism, old), old.link_names[-1]
    agree({what: outcome(CONSTRAINED[what], new, here, link) for what in SAME},
          {what: outcome(CONSTRAINED[what], old, here, link) for what in SAME})
    joint = [j for j in mechanism.robot.joints if j.type in SIMPLE][-1].name
    events = {"hit": {"at": 0.01, "do": {"impact": {"joint": joint, "restitution": 0.5}}},
              "lock": {"at": 0.03, "do": {"lock": joint}}}
    run, other = (simulate(model, here.q, here.v, 1.0, events=events) for model in (old, new))
    agree({"q": ld.difference(old, here.q, other.q), "v": other.v, "t": other.t},
          {"q": ld.difference(old, here.q, run.q), "v": run.v, "t": run.t})


# mimic joints ------------------------------------------------------------------------------------------------------
def followed(seed: int, base: str, way: str):
    """A tree in which joint1 follows joint0 and joint4 follows joint1: as mimic joints, as couplings, with the coupling of joint4
    written by the driver; and q = G x + d."""
    robot = random_robot(SEED + seed, 6, base=base, types=SIMPLE)
    robot = replace(robot, joints=tuple(replace(j, coordinates=tuple(replace(c, friction=0.0) for c in j.coordinates))
                                        for j in robot.joints))
    first, second, last = "joint0", "joint1", "joint4"
    m, c, n, d = 0.7, 0.2, -1.3, -0.1
    if way == "mimic":
        mimics = {second: Mimic(first, m, c), last: Mimic(second, n, d)}
        return replace(robot, joints=tuple(replace(j, mimic=mimics.get(j.name)) for j in robot.joints))
    if way == "chained couplings":
        pairs = (second, ((second, "", 1.0), (first, "", -m)), c), (last, ((second, "", 2 * n), (last, "", -2.0)), -2 * d)
    else:
        pairs = (last, ((last, "", 1.0), (first, "", -n * m)), n * c + d), (second, ((second, "", 1.0), (first, "", -m)), c)
    return replace(robot, couplings=tuple(Coupling(*pair) for pair in pairs))


def eliminated(model) -> tuple[np.ndarray, np.ndarray, int]:
    """Return q = G x + d with the joints that do not follow."""
    G, d = np.eye(model.nv), np.zeros(model.nv)
    i, j, k = (model.v_index(f"joint{n}") for n in (0, 1, 4))
    G[j], G[k] = 0.7 * G[i], -1.3 * 0.7 * G[i]
    d[j], d[k] = 0.2, -1.3 * 0.2 - 0.1
    return np.delete(G, [np.arange(model.nv)[j][0], np.arange(model.nv)[k][0]], axis=1), d, k


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_mimic_joints_written_as_couplings_and_eliminated_by_hand(base):
    models = {way: ld.build(followed(30, base, way)) for way in ("mimic", "chained couplings", "couplings by the driver")}
    model = models["mimic"]
    G, d, _ = eliminated(model)
    rng = np.random.default_rng([SEED, 30])
    shift = model.nq - model.nv
    x = rng.uniform(-0.5, 0.5, G.shape[1])
    q = np.concatenate([[*x[3:6], *Rotation.from_rotvec(x[:3]).as_quat()] if shift else [], (G @ x + d)[6 if shift else 0:]])
    v, tau = G @ rng.standard_normal(G.shape[1]), rng.standard_normal(model.nv)
    tree = model.spanning_tree()
    M, b = ld.mass_matrix(tree, q), ld.inverse_dynamics(tree, q, v, np.zeros(model.nv))
    a = G @ np.linalg.solve(G.T @ M @ G, G.T @ (tau - b))
    free = rng.standard_normal(model.nv)
    by_hand = {"constrained_forward_dynamics": a, "constraint_forces": M @ a + b - tau, "mobility:rank": 2,
               "project_velocity": G @ np.linalg.solve(G.T @ M @ G, G.T @ M @ free),
               "constrained_forward_derivatives:tau": G @ np.linalg.solve(G.T @ M @ G, G.T)}
    rows = np.zeros(2)
    here = State(q, free, a, tau, {}, free, 0.1 * free, rows, rng.random(model.nv) < 0.5)
    expected = None
    for one in models.values():
        assert one.v_names == model.v_names
        moving = here._replace(v=v)
        found = {what: outcome(CONSTRAINED[what], one, here if what == "project_velocity" else moving, one.link_names[-1])
                 for what in SAME}
        agree(found, by_hand)
        expected = expected or found
        agree(found, expected)


@pytest.mark.parametrize("way", ["mimic", "couplings by the driver"])
def test_motions_of_mimic_joints_are_those_of_chained_couplings(way):
    old, new = (ld.build(followed(31, "fixed", one)) for one in ("chained couplings", way))
    G, d, _ = eliminated(old)
    x, u = np.random.default_rng([SEED, 31]).uniform(-0.5, 0.5, (2, G.shape[1]))
    run, other = (simulate(one, G @ x + d, G @ u, 1.0) for one in (old, new))
    agree({"q": other.q, "v": other.v, "tau": other.tau}, {"q": run.q, "v": run.v, "tau": run.tau})


def unbalanced(model, q, v, a, actuated):
    """Return the residual forces of constrained inverse dynamics, and the sizes of all forces."""
    found, tree = ld.constrained_inverse_dynamics(model, q, v, a, actuated), model.spanning_tree()
    balance = ld.inverse_dynamics(tree, q, v, a) - found.tau - ld.constraint_jacobian(model, q).T @ found.multipliers
    return np.concatenate([balance, ld.inverse_dynamics(tree, q, v, a)])


def with_factors(robot, factors):
    """Return couplings written with other factors, one after the other."""
    couplings = (replace(one, terms=tuple((*names, x * c) for *names, c in one.terms), offset=x * one.offset)
                 for one, x in zip(robot.couplings, cycle(factors), strict=False))
    return replace(robot, couplings=tuple(couplings))


@pytest.mark.parametrize("factors", [(1e-12,), (-1e-6,), (1e9,), (1e-9, 1e9), (1e9, 1.0, 1e-9)])
@pytest.mark.parametrize("redundant", [False, True])
def test_a_coupling_may_be_written_with_any_factor(factors, redundant):
    """A state that is too far from it to satisfy it is rejected for each factor."""
    robot = followed(33, "fixed", "chained couplings")
    if redundant:
        again = followed(33, "fixed", "couplings by the driver").couplings[0]
        robot = replace(robot, couplings=(*robot.couplings, replace(again, name="again")))
    old, new = ld.build(robot), ld.build(with_factors(robot, factors))
    G, d, _ = eliminated(old)
    x, u, free, tau = np.random.default_rng([SEED, 33]).uniform(-0.5, 0.5, (4, old.nv))
    q, v = G @ x[:G.shape[1]] + d, G @ u[:G.shape[1]]
    a = ld.constrained_forward_dynamics(old, q, v, tau).a
    off = np.zeros(old.nv)
    off[old.v_index("joint4")] = 1e-3
    all_torques = {"actuated": np.ones(old.nv, bool), "criterion": "least_torque"}
    drivers = np.ones(old.nv, bool)
    drivers[old.v_index("joint1")] = drivers[old.v_index("joint4")] = False
    ways = {"assemble": lambda m: ld.assemble(m, q + free, fixed=["joint0"]).q,
            "project": lambda m: ld.project_configuration(m, q + free),
            "forces": lambda m: ld.constrained_inverse_dynamics(m, q, v, a, **all_torques).tau,
            "derivatives": lambda m: ld.constrained_inverse_derivatives(m, q, v, a, **all_torques).dtau_dq,
            "forces of drivers": lambda m: ld.constrained_inverse_dynamics(m, q, v, a, drivers).tau,
            "their derivatives": lambda m: ld.constrained_inverse_derivatives(m, q, v, a, drivers).dtau_dq,
            "balance": lambda m: unbalanced(m, q, v, a, drivers),
            "rank": lambda m: ld.mobility(m, q).rank,
            "off in a": lambda m: ld.constrained_inverse_dynamics(m, q, v, a + off, **all_torques).tau,
            "off in v": lambda m: ld.linearize(m, q, v + off, tau).A, "off in q": lambda m: ld.linearize(m, q + off, v, tau).A,
            "prescribed off in a": lambda m: ld.constrained_hybrid_dynamics(m, q, v, a + off, tau, np.ones(m.nv, bool)).tau}
    here, there = ({what: outcome_of(partial(one, m)) for what, one in ways.items()} for m in (old, new))
    contradicting = [what for what in ways if "off" in what]
    refused, there_too = ([what for what, value in found.items() if isinstance(value, str)] for found in (here, there))
    assert set(contradicting) <= set(refused) and there_too == refused, f"{refused}, {there_too}; repeat with LIEDYN_SEED={SEED}"
    agree(*({what: value for what, value in found.items() if what not in refused} for found in (there, here)))
    run, other = (simulate(one, q, v, 1.0) for one in (old, new))
    agree({"q": other.q, "v": other.v, "tau": other.tau}, {"q": run.q, "v": run.v, "tau": run.tau})


def test_a_geared_rotor_written_as_mimic_joint_and_as_armature():
    """A rotor on the ground that follows a joint with ratio n adds n^2 J to that joint, with its damping n^2 D."""
    robot = random_robot(SEED + 32, 3, types=("revolute",), chain=True, springs=False)
    turned = robot.joints[0].name
    n, J, D = -30.0, 2e-4, 1e-3
    armed = replace(robot,
                    joints=tuple(replace(j,
                                         coordinates=(replace(j.coordinate_parameters[0], armature=n * n * J, damping=n * n * D),
                                                      )) if j.name == turned else j for j in robot.joints))
    rotor = Joint("rotor", "continuous", "root", "wheel", axes=((0.0, 0.0, 1.0),), coordinates=(Coordinate(damping=D),),
                  mimic=Mimic(turned, n, 0.3))
    geared = replace(robot, links=(*robot.links, Link("wheel", 0.3, (0.0, 0.0, 0.2), (J, 0.0, 0.0, J, 0.0, J))),
                     joints=(*robot.joints, rotor))
    old, new = ld.build(armed), ld.build(geared)
    q, v = np.random.default_rng([SEED, 32]).uniform(-0.3, 0.3, (2, old.nv))
    place = [new.v_names.index(name) for name in old.v_names]
    q2, v2 = np.zeros(new.nv), np.zeros(new.nv)
    q2[place], v2[place] = q, v
    k = new.v_names.index("rotor")
    q2[k], v2[k] = n * q[old.v_names.index(turned)] + 0.3, n * v[old.v_names.index(turned)]
    events = {"lock": {"at": 0.02, "do": {"lock": turned}}}
    run, other = simulate(old, q, v, 1.0, events=events), simulate(new, q2, v2, 1.0, events=events)
    agree({"q": other.q[:, place], "v": other.v[:, place], "energy": ld.energy(new, q2, v2)[0]},
          {"q": run.q, "v": run.v, "energy": ld.energy(old, q, v)[0]})
