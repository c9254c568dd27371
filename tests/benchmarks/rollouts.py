"""Many runs at once: steps a second of `ld.rollout`, of `mujoco.rollout` and of a Python loop over Pinocchio."""
from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

import liedyn as ld
from benchmarks.chains import chain
from benchmarks.measure import side_by_side
from liedyn.joints.kinds import FREE, SCREW
from liedyn.joints.tree import tree_of

DT, RUNS, STEPS = 1e-3, 512, 100
AGREE = {"rk4": 1e-6, "semi_implicit": 1e-4}        # of the ends: Euler's steps of a free body differ by their second order


def mjcf(model, integrator: str) -> str:
    """Its bodies as they stand in the model's arrays, with joints about z or free; without contacts and passive forces."""
    tree = tree_of.py_func(model.index, model.constants)
    children = {i: [k for k in range(1, len(tree.parent)) if tree.parent[k] == i] for i in range(len(tree.parent))}

    def body(i: int) -> str:
        T, I = tree.T0[12 * i:12 * i + 12], tree.I[10 * i:10 * i + 10]
        x, y, z, w = Rotation.from_matrix(T[:9].reshape(3, 3)).as_quat()
        m, c = I[0], I[1:4] / I[0]
        A = np.zeros((3, 3))
        A[np.triu_indices(3)] = I[4:]
        A = A + np.triu(A, 1).T - m * (c @ c * np.eye(3) - np.outer(c, c))
        joint = '<freejoint/>'
        if tree.kind[i] == SCREW:
            turns, slides = tree.S[2 * i:2 * i + 2]
            assert turns * slides == 0.0, "no helical joints here"
            kind, rotor = "hinge" if turns else "slide", float(tree.armature[tree.iv[i]])
            joint = f'<joint type="{kind}" axis="0 0 1" armature="{rotor!r}"/>'
        else:
            assert tree.kind[i] == FREE
        numbers = " ".join(repr(float(A[j, k])) for j, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
        return (f'<body pos="{_text(T[9:])}" quat="{_text((w, x, y, z))}"><inertial pos="{_text(c)}" mass="{float(m)!r}" '
                f'fullinertia="{numbers}"/>{joint}{"".join(map(body, children[i]))}</body>')

    return ('<mujoco><compiler inertiafromgeom="false" balanceinertia="false" boundmass="0" boundinertia="0" angle="radian"/>'
            f'<option integrator="{integrator}" timestep="{DT!r}" gravity="{_text(-tree.dV0[3:])}">'
            f'<flag contact="disable" constraint="disable" eulerdamp="disable"/></option>'
            f'<worldbody>{"".join(map(body, children[0]))}</worldbody></mujoco>')


def _text(x) -> str:
    return " ".join(repr(float(y)) for y in x)


def _theirs(model, q, v):
    """States of MuJoCo: its quaternions are w x y z, the linear velocity of its free joint is in world axes."""
    q, v = q.copy(), v.copy()
    for joint in model.joints:
        if joint.kind == FREE:
            R = Rotation.from_quat(q[:, joint.q][:, 3:])
            v[:, joint.v] = np.concatenate([R.apply(v[:, joint.v][:, 3:]), v[:, joint.v][:, :3]], axis=1)
            q[:, joint.q] = q[:, joint.q][:, [0, 1, 2, 6, 3, 4, 5]]
    return q, v


def robots():
    quadruped = ld.load("robots/quadruped.yaml")
    yield "chain of 7", ld.build(chain(7)), "rk4"
    yield "chain of 30", ld.build(chain(30)), "rk4"
    yield "quadruped, floating", quadruped, "rk4"
    yield "quadruped, floating", quadruped, "semi_implicit"


def _start(model, runs: int):
    rng = np.random.default_rng(0)
    q = np.tile(model.neutral(), (runs, 1))
    for joint in model.joints:
        if joint.kind == SCREW:
            q[:, joint.q] = rng.uniform(-0.5, 0.5, (runs, joint.q.stop - joint.q.start))
    return q, 0.2 * rng.standard_normal((runs, model.nv))


def against_mujoco(runs: int = RUNS, steps: int = STEPS, repeats: int = 11):
    """(robot, method, us a step of ours, Pair)."""
    for name, model, method in robots():
        ours, theirs = _pair_with_mujoco(name, model, method, runs, steps)
        pair = side_by_side(ours, theirs, repeats)
        yield name, method, pair.ours / runs / steps * 1e6, pair


def _pair_with_mujoco(name, model, method, runs, steps):
    import mujoco
    from mujoco import rollout
    q, v = _start(model, runs)
    theirs = mujoco.MjModel.from_xml_string(mjcf(model, {"rk4": "RK4", "semi_implicit": "Euler"}[method]))
    data = mujoco.MjData(theirs)
    start = np.concatenate([np.zeros((runs, 1)), *_theirs(model, q, v)], axis=1)
    out = np.zeros((runs, steps, start.shape[1]))

    def ours():
        return ld.rollout(model, q, v, dt=DT, steps=steps, every=steps, method=method, passive=False).q

    def mujocos():
        rollout.rollout(theirs, data, start, nstep=steps, state=out)
        return out
    end, found = _theirs(model, ours()[:, -1], v)[0], mujocos()[:, -1, 1:1 + model.nq]
    difference = np.abs(end - found).max()
    assert difference < AGREE[method], f"{name}, {method}: differs from MuJoCo by {difference:.1e}"
    return ours, mujocos


def against_pinocchio(runs: int = RUNS, steps: int = STEPS, repeats: int = 5):
    """The same, of a Python loop over Pinocchio's aba and integrate, by rk4, for a chain of 7."""
    import pinocchio as pin
    source = chain(7)
    model, theirs = ld.build(source), pin.Model()
    at = 0
    for k, (link, joint) in enumerate(zip(source.links, source.joints, strict=True)):
        axis = pin.JointModelRX() if joint.axes[0][0] else pin.JointModelRY()
        at = theirs.addJoint(at, axis, pin.SE3(np.eye(3), np.array(joint.origin.translation)), f"j{k}")
        xx, xy, xz, yy, yz, zz = link.inertia
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        theirs.appendBodyToJoint(at, pin.Inertia(link.mass, np.array(link.com), inertia), pin.SE3.Identity())
    data, (q, v) = theirs.createData(), _start(model, runs)
    few, none = 4, np.zeros(7)

    def ours():
        return ld.rollout(model, q, v, dt=DT, steps=steps, every=steps, passive=False).q

    def rates(x, dx):
        return dx, pin.aba(theirs, data, x, dx, none).copy()

    def loop():
        ends = []
        for x, dx in zip(q[:few], v[:few], strict=True):
            for _ in range(steps):
                k1 = rates(x, dx)
                k2 = rates(pin.integrate(theirs, x, DT / 2 * k1[0]), dx + DT / 2 * k1[1])
                k3 = rates(pin.integrate(theirs, x, DT / 2 * k2[0]), dx + DT / 2 * k2[1])
                k4 = rates(pin.integrate(theirs, x, DT * k3[0]), dx + DT * k3[1])
                rate, force = ((a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
                x, dx = pin.integrate(theirs, x, DT * rate), dx + DT * force
            ends.append(x)
        return np.array(ends)
    difference = np.abs(ours()[:few, -1] - loop()).max()
    assert difference < 1e-9, f"differs from Pinocchio by {difference:.1e}"
    pair = side_by_side(ours, loop, repeats)
    one, other = pair.ours / runs / steps, pair.theirs / few / steps
    return one * 1e6, other * 1e6, pair.ratio * runs / few


def cost_of_masses(runs: int = RUNS, steps: int = STEPS, repeats: int = 15) -> float:
    """Time of a Panda's rollouts whose links have masses of their own, by that of one robot."""
    rng = np.random.default_rng(0)
    robot = ld.load_description("robots/panda.yaml")
    first = ld.build(robot)

    def other():
        links = tuple(dataclasses.replace(link, mass=link.mass * k, inertia=tuple(k * x for x in link.inertia))
                      for link, k in zip(robot.links, rng.uniform(0.9, 1.1, len(robot.links)), strict=True))
        return ld.build(dataclasses.replace(robot, links=links))
    variants = ld.Variants([other() for _ in range(runs)])
    q, v = _start(first, runs)
    pair = side_by_side(*(lambda model=model: ld.rollout(model, q, v, dt=DT, steps=steps, every=steps).q
                          for model in (first, variants)), repeats)
    return pair.ratio


def on_its_feet(runs: int = RUNS, steps: int = 400, repeats: int = 11) -> float:
    """us a semi-implicit step of a quadruped that stands on its feet by servos."""
    model = ld.load("robots/quadruped.yaml")
    q, legs = model.neutral(), np.arange(model.nv) >= 6
    q[model.q_index("base")] = 0, 0, 0.3, 0, 0, 0, 1
    for leg in ("FL", "FR", "HL", "HR"):
        q[model.q_index(f"{leg}_hip")], q[model.q_index(f"{leg}_knee")] = 0.8, -1.6
    options = {"dt": 5e-4, "method": "semi_implicit", "feedback": ld.Feedback.pd(legs * 100.0, legs * 4.0, q),
               "contacts": {"links": {"*_foot": {"sphere": {"radius": 0.0175}}}, "creep": 0.1, "sink": 0.003}}
    stands = ld.rollout(model, np.tile(q, (runs, 1)), np.zeros(model.nv), steps=1000, every=1000, **options)
    assert (stands.contacts.force[:, -1] > 5.0).all() and not stands.notes
    q, v = stands.q[:, -1].copy(), stands.v[:, -1].copy()

    def run():
        return ld.rollout(model, q, v, steps=steps, every=steps, **options).q
    return side_by_side(run, run, repeats).ours / runs / steps * 1e6


def mechanisms(runs: int = RUNS, steps: int = STEPS, repeats: int = 11):
    """(mechanism, us a step of rk4)."""
    for name in ("four_bar", "five_bar", "delta"):
        model = ld.load(f"robots/{name}.yaml")
        q = np.tile(ld.assemble(model, model.neutral()).q, (runs, 1))
        v = ld.project_velocity(model, q, np.random.default_rng(0).standard_normal((runs, model.nv)))

        def ours(model=model, q=q, v=v):
            return ld.rollout(model, q, v, dt=DT, steps=steps, every=steps).q
        end = ld.simulate(model, duration=DT * steps, output_step=DT * steps, integrator={"method": "rk4", "step": DT},
                          initial={"q": _by_joint(model, q[0], "q"), "v": _by_joint(model, v[0], "v")}).q[-1]
        difference = np.abs(ours()[0, -1] - end).max()
        assert difference < 1e-9, f"{name}: differs from a single run by {difference:.1e}"
        yield name, side_by_side(ours, ours, repeats).ours / runs / steps * 1e6


def _by_joint(model, x, which: str) -> dict:
    return {joint.name: x[getattr(joint, which)].tolist() for joint in model.joints}


def gradients(runs: int = 64, steps: int = 200, repeats: int = 11):
    """(robot, method, time of rollout and adjoint by that of the rollout)."""
    for name, path, method in (("Panda", "panda", "rk4"), ("Panda", "panda", "semi_implicit"),
                               ("quadruped, floating", "quadruped", "semi_implicit")):
        model = ld.load(f"robots/{path}.yaml")
        yield name, method, _gradient(model, method, *_start(model, runs), np.ones((runs, steps + 1, model.nv)), repeats)


def _gradient(model, method, q, v, d_v, repeats) -> float:
    def run():
        return ld.rollout(model, q, v, dt=DT, steps=d_v.shape[1] - 1, method=method)
    return side_by_side(lambda: run().q, lambda: run().adjoint(None, d_v).tau, repeats).ratio


def report(line, quick: bool) -> None:
    few = {"runs": 64, "steps": 20, "repeats": 3} if quick else {}
    print("\nrollouts of many runs, us a step of one run, one core; mujoco.rollout with one thread, without contacts")
    asked = {"chain of 7": 20.0, "chain of 30": 15.0, "quadruped, floating": 15.0}
    for name, method, us, pair in against_mujoco(**few):
        line(pair.ratio >= asked[name], f"{name:20s} {method:13s}: ours {us:6.3f}, MuJoCo {us * pair.theirs / pair.ours:7.3f}, "
             f"{pair.ratio:5.1f}x (asked {asked[name]:g}x), {1 / us:5.2f} million steps a second")
    us, theirs, ratio = against_pinocchio(**few)
    line(ratio >= 200.0, f"chain of 7, rk4: ours {us:6.3f}, Python loop over Pinocchio {theirs:6.1f}, {ratio:5.0f}x (asked 200x)")
    us = on_its_feet(**few)
    line(us <= 2.0, f"quadruped on its feet, semi_implicit: {us:6.3f}, {1 / us:5.2f} million steps a second (asked 0.5)")
    for name, us in mechanisms(**few):
        line(True, f"{name:20s} rk4          : {us:6.3f}, {1 / us:5.2f} million steps a second")
    ratio = cost_of_masses(**few)
    line(ratio <= 1.15, f"Panda, masses of their own: {ratio:4.2f} times one robot (asked 1.15)")
    for name, method, ratio in gradients(**({"steps": 20, "repeats": 3} if quick else {})):
        line(ratio <= 4.0, f"{name:20s} {method:13s}: rollout and adjoint {ratio:4.2f} times the rollout (asked 4)")
