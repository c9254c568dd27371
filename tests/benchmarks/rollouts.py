"""Many runs at once: steps a second of `ld.rollout`, of `mujoco.rollout` and of a Python loop over Pinocchio."""
from __future__ import annotations

import dataclasses

import numpy as np

import liedyn as ld
from benchmarks.chains import chain
from benchmarks.measure import side_by_side
from benchmarks.peer_models import mjcf, mujoco_states, pinocchio_of
from bridge import robots_folder
from liedyn.model.description import ONE_DOF

DT, RUNS, STEPS = 1e-3, 512, 100
AGREE = {"rk4": 1e-6, "semi_implicit": 1e-4}        # of the ends: Euler's steps of a free body differ by their second order


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
        if joint.kind == ONE_DOF:
            q[:, joint.q] = rng.uniform(-0.5, 0.5, (runs, joint.q.stop - joint.q.start))
    return q, 0.2 * rng.standard_normal((runs, model.nv))


def against_mujoco(runs: int = RUNS, steps: int = STEPS, repeats: int = 11):
    """Return (robot, method, microseconds per step, Pair)."""
    for name, model, method in robots():
        ours, theirs = _pair_with_mujoco(name, model, method, runs, steps)
        pair = side_by_side(ours, theirs, repeats)
        yield name, method, pair.ours / runs / steps * 1e6, pair


def _pair_with_mujoco(name, model, method, runs, steps):
    import mujoco
    from mujoco import rollout
    q, v = _start(model, runs)
    theirs = mujoco.MjModel.from_xml_string(mjcf(model, DT, {"rk4": "RK4", "semi_implicit": "Euler"}[method]))
    data = mujoco.MjData(theirs)
    start = np.concatenate([np.zeros((runs, 1)), *mujoco_states(model, q, v)], axis=1)
    out = np.zeros((runs, steps, start.shape[1]))

    def ours():
        return ld.rollout(model, q, v, dt=DT, steps=steps, every=steps, method=method, passive=False).q

    def mujocos():
        rollout.rollout(theirs, data, start, nstep=steps, state=out)
        return out
    end, found = mujoco_states(model, ours()[:, -1], v)[0], mujocos()[:, -1, 1:1 + model.nq]
    difference = np.abs(end - found).max()
    assert difference < AGREE[method], f"{name}, {method}: differs from MuJoCo by {difference:.1e}"
    return ours, mujocos


def against_pinocchio(runs: int = RUNS, steps: int = STEPS, repeats: int = 5):
    """Return (robot, microseconds per step, those of a Python loop over Pinocchio's aba and integrate, ratio), by rk4."""
    for name, model in (("chain of 7", ld.build(chain(7))), ("quadruped, floating", ld.load("robots/quadruped.yaml")),
                        ("Talos, floating", ld.load(robots_folder() / "talos_data/robots/talos_reduced.urdf", base="floating"))):
        ours, loop, few = _pair_with_pinocchio(name, model, runs, steps)
        pair = side_by_side(ours, loop, repeats)
        yield name, pair.ours / runs / steps * 1e6, pair.theirs / few / steps * 1e6, pair.ratio * runs / few


def _pair_with_pinocchio(name, model, runs, steps, few: int = 4):
    import pinocchio as pin
    theirs, order_q, order_v = pinocchio_of(model)
    data, (q, v), h, none = theirs.createData(), _start(model, runs), DT, np.zeros(model.nv)

    def ours():
        return ld.rollout(model, q, v, dt=DT, steps=steps, every=steps, passive=False).q

    def loop():
        ends = []
        for x, v1 in zip(q[:few, order_q], v[:few, order_v], strict=True):
            for _ in range(steps):
                a1 = pin.aba(theirs, data, x, v1, none).copy()
                v2 = v1 + h / 2 * a1
                a2 = pin.aba(theirs, data, pin.integrate(theirs, x, h / 2 * v1), v2, none).copy()
                v3 = v1 + h / 2 * a2
                a3 = pin.aba(theirs, data, pin.integrate(theirs, x, h / 2 * v2), v3, none).copy()
                v4 = v1 + h * a3
                a4 = pin.aba(theirs, data, pin.integrate(theirs, x, h * v3), v4, none)
                x = pin.integrate(theirs, x, h / 6 * (v1 + 2 * (v2 + v3) + v4))
                v1 = v1 + h / 6 * (a1 + 2 * (a2 + a3) + a4)
            ends.append(x)
        return np.array(ends)
    difference = np.abs(ours()[:few, -1][:, order_q] - loop()).max()
    assert difference < AGREE["rk4"], f"{name}: differs from Pinocchio by {difference:.1e}"
    return ours, loop, few


def cost_of_masses(runs: int = RUNS, steps: int = STEPS, repeats: int = 15) -> float:
    """Return the ratio of a Panda's rollouts whose links have separate masses to those of one robot."""
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
    """Return microseconds per semi-implicit step of a quadruped that stands on its feet by servos."""
    model = ld.load("robots/quadruped.yaml")
    q, legs = model.neutral(), np.arange(model.nv) >= 6
    q[model.q_index("base")] = 0, 0, 0.3, 0, 0, 0, 1
    for leg in ("FL", "FR", "HL", "HR"):
        q[model.q_index(f"{leg}_hip")], q[model.q_index(f"{leg}_knee")] = 0.8, -1.6
    options = {"dt": 5e-4, "method": "semi_implicit", "feedback": ld.Feedback.pd(legs * 100.0, legs * 4.0, q),
               "contacts": {"links": {"*_foot": {"sphere": {"radius": 0.0175}}}, "friction_speed": 0.1, "sink": 0.003}}
    stands = ld.rollout(model, np.tile(q, (runs, 1)), np.zeros(model.nv), steps=1000, every=1000, **options)
    assert (stands.contacts.force[:, -1] > 5.0).all() and not stands.warnings
    q, v = stands.q[:, -1].copy(), stands.v[:, -1].copy()

    def run():
        return ld.rollout(model, q, v, steps=steps, every=steps, **options).q
    return side_by_side(run, run, repeats).ours / runs / steps * 1e6


def variants_by_name(robots: int = 4096, repeats: int = 11) -> tuple[float, float]:
    """Return seconds of `robots` variants of a quadruped from arrays of parameters, and of as many separate robots."""
    model, rng = ld.load("robots/quadruped.yaml"), np.random.default_rng(0)
    arrays = {"mass.body": rng.uniform(3.0, 6.0, robots), "friction.*": rng.uniform(0.0, 1.0, robots),
              "com.FL_foot": rng.uniform(-0.01, 0.01, (robots, 3))}
    few = 20

    def each():
        return [model.with_changes(mass={"body": m}) for m in arrays["mass.body"][:few]]
    pair = side_by_side(lambda: ld.Variants(model, arrays), each, repeats)
    return pair.ours, pair.theirs * robots / few


def steppers(repeats: int = 31, calls: int = 20):
    """(robot, runs, us of a call of `Stepper.step`, us of its arithmetic, us of the same by `ld.rollout`), by rk4.

    The arithmetic is the additional time of each step of a call with 101 steps. Calls of a stepper follow each other.
    """
    for name, path in (("double pendulum", "double_pendulum"), ("Panda", "panda"), ("quadruped, floating", "quadruped")):
        model = ld.load(f"robots/{path}.yaml")
        for runs in (1, 64):
            one, many = (ld.Stepper(model, 1e-5, runs=runs, steps=steps) for steps in (1, 101))
            q, v = _start(model, runs)
            tau = np.zeros((runs, model.nv))
            for stepper in (one, many):
                stepper.reset(q=q, v=v)

            def roll(model=model, q=q, v=v, tau=tau):
                return ld.rollout(model, q, v, tau[:, None], dt=1e-5, steps=1).q

            def loop(one=one, tau=tau):
                for _ in range(calls):
                    one.step(one.q, one.v, tau)
                return one.q
            pair = side_by_side(loop, roll, repeats)
            one_call = pair.ours / calls
            long_call = side_by_side(lambda many=many, tau=tau: many.step(many.q, many.v, tau), roll, repeats).ours
            yield name, runs, one_call * 1e6, (long_call - one_call) / 100 * 1e6, pair.theirs * 1e6


def events(runs: int = RUNS, steps: int = 1000, repeats: int = 11) -> tuple[float, float, int]:
    """Double pendulums: the time with an event that does not happen by that without one, us an impact, and how many there are."""
    model, v = ld.load("robots/double_pendulum.yaml"), np.zeros(2)
    q = np.random.default_rng(0).uniform([-1.0, -1.0], [1.0, 0.2], (runs, 2))

    def run(value=None):
        bounce = {"impact": {"joint": "elbow", "restitution": 0.6}}
        hit = {"when": "q(elbow)", "value": value, "direction": "rising", "do": bounce}
        return ld.rollout(model, q, v, dt=DT, steps=steps, every=steps, events=None if value is None else {"hit": hit})
    never = side_by_side(run, lambda: run(50.0), repeats)
    some = side_by_side(lambda: run(50.0), lambda: run(0.3), repeats)
    count = len(run(0.3).events)
    assert not len(run(50.0).events) and count > runs // 2
    return never.ratio, (some.theirs - some.ours) / count * 1e6, count


def mechanisms(runs: int = RUNS, steps: int = STEPS, repeats: int = 11):
    """Return (mechanism, microseconds per step of rk4)."""
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
    """Return (robot, method, ratio of the time of rollout and adjoint to that of the rollout)."""
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
    for name, us, theirs, ratio in against_pinocchio(**few):
        line(ratio >= 200.0, f"{name:20s} rk4          : ours {us:6.3f}, Python loop over Pinocchio {theirs:6.1f}, "
             f"{ratio:5.0f}x (asked 200x)")
    us = on_its_feet(**few)
    line(us <= 2.0, f"quadruped on its feet, semi_implicit: {us:6.3f}, {1 / us:5.2f} million steps a second (asked 0.5)")
    for name, us in mechanisms(**few):
        line(True, f"{name:20s} rk4          : {us:6.3f}, {1 / us:5.2f} million steps a second")
    ratio, us, count = events(**({"steps": 1000, "repeats": 3} if quick else {}))
    line(ratio <= 1.15, f"double pendulum, rk4, an event that does not happen: {ratio:4.2f} times without; {count} impacts, "
         f"{us:4.1f} each")
    ratio = cost_of_masses(**few)
    line(ratio <= 1.15, f"Panda, masses of their own: {ratio:4.2f} times one robot (asked 1.15)")
    seconds, one_by_one = variants_by_name(**({"robots": 256, "repeats": 3} if quick else {}))
    line(seconds <= 0.1, f"4096 variants of a quadruped by names: {seconds:.3f} s (asked 0.1), "
         f"built one by one {one_by_one:.0f} s")
    for name, runs, us, arithmetic, rollout in steppers(**({"repeats": 3} if quick else {})):
        line(us - arithmetic <= 10.0, f"{name:20s} {runs:3d} runs: a call of a Stepper {us:6.1f}, of which arithmetic "
             f"{arithmetic:5.1f} (asked 10 besides); of rollout {rollout:6.1f}")
    for name, method, ratio in gradients(**({"steps": 20, "repeats": 3} if quick else {})):
        line(ratio <= 4.0, f"{name:20s} {method:13s}: rollout and adjoint {ratio:4.2f} times the rollout (asked 4)")
