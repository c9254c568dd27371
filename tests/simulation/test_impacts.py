"""What actions of events do to velocities, on random trees over every kind of joint and on trees with loops: against the dense
equations M (v+ - v-) = G^T p, G v+ = b, with M in plain NumPy by the virtual powers of all links."""
from __future__ import annotations

import numpy as np
import pytest

import liedyn as ld
from complex_step import Reference
from liedyn.io.scenarios.action_schema import Attach, EnterPhase, Impact, Lock
from liedyn.io.scenarios.scenario import Constant, Event, Phase, Prescribe, Rule, Scenario
from liedyn.model.spatial import skew, symmetric_matrix
from liedyn.simulation.event_actions import Actions
from liedyn.simulation.impacts import EventState, HardStops
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.segment_problems import SegmentProblems
from loop_zoo import looped_of, motion
from zoo import model_of, state

TREES = "every kind", "every kind, floating", "every kind, a chain", "one degree of freedom each"
LOOPS = "every kind, looped", "every kind, floating, looped", "closed twice, floating", "more rows than freedom"
BODY = {"mass": 0.8, "com": (0.1, -0.2, 0.05), "inertia": (0.02, 0.001, 0.002, 0.03, -0.001, 0.015)}


class Dense:
    """State and motion of a robot in events; `kept`: rows of v that stay."""

    def __init__(self, model, q, v):
        self.model, self.q, self.v = model.spanning_tree(), q, v
        self.M = np.real(Reference(self.model, q, v).equation()[0])
        self.impulse, self.lost, self.condition = np.zeros(model.nv), 0.0, 1.0

    def hit(self, G, b, kept=()):
        """Return the jump after which G v is b. Rows may be dependent."""
        kept = np.reshape(kept, (-1, len(self.v)))
        rows, values = np.vstack([G, kept]), np.r_[b, kept @ self.v]
        none = np.zeros((len(rows), len(rows)))
        system = np.block([[self.M, -rows.T], [rows, none]])
        x = np.linalg.lstsq(system, np.r_[self.M @ self.v, values], rcond=1e-12)[0]
        after, p = np.split(x, [len(self.v)])
        self.lost -= 0.5 * p[:len(G)] @ (G @ (after + self.v))
        self.impulse = self.impulse + rows.T @ p
        size = np.linalg.svd(system, compute_uv=False)
        self.condition = max(self.condition, size[0] / size[size > 1e-12 * size[0]].min())
        self.v = after

    def attach(self, body: Attach, kept=()):
        """Return the jump that conserves the common momentum; the body, in link axes about its origin, adds J^T I J."""
        c, m = skew(body.com), body.mass
        I = np.block([[symmetric_matrix(body.inertia) - m * c @ c, m * c], [-m * c, m * np.eye(3)]])
        J = ld.jacobian(self.model, self.q, body.link)
        momentum, before = self.M @ self.v, 0.5 * self.v @ self.M @ self.v
        kept = np.reshape(kept, (-1, len(self.v)))
        speeds = kept @ self.v
        self.M = self.M + J.T @ I @ J
        system = np.block([[self.M, -kept.T], [kept, np.zeros((len(kept), len(kept)))]])
        self.v, p = np.split(np.linalg.solve(system, np.r_[momentum, speeds]), [len(self.v)])
        self.condition = max(self.condition, np.linalg.cond(system))
        self.impulse = self.impulse + kept.T @ p
        self.lost += before + p @ speeds - 0.5 * self.v @ self.M @ self.v


def happen(model, q, v, actions, prescribed=(), phases=()):
    """Return the state after an event with these actions."""
    event = Event("it", tuple(actions), at=(0.5,))
    zero = Constant(0.0)
    rules = tuple(Rule(joint.name, Prescribe("acceleration", (zero,) * (joint.v.stop - joint.v.start))) for joint in model.joints
                  if joint.name in prescribed)
    scenario = Scenario("zoo", 1.0, 0.1, joints=rules, events=(event,), phases=phases, assemble=False)
    modes = SegmentProblems(scenario, model, compile_schedule(scenario, model).problem)
    actions = Actions(modes, HardStops((), model, 1.0, None), (event,))
    state = EventState(modes.current.model, q.copy(), v.copy(), np.zeros(model.nv))
    return actions.apply_actions(state, event, 0.5, expression=None, sign=0.0, left_zero=True, former_stops=())


def check(moment, dense, worst, where):
    """Compare within the rounding of M times the condition of the equations."""
    eps = 3e-16 * dense.condition
    speed = np.abs(dense.v).max() + 1.0
    assert worst("velocities after events", np.abs(moment.v - dense.v).max() / speed / eps, where) < 30
    force = np.abs(dense.M).max() * speed
    assert np.abs(moment.impulse - dense.impulse).max() < 30 * eps * force
    energy = 0.5 * np.abs(dense.M).max() * speed**2
    assert worst("energy lost in events", abs(moment.lost - dense.lost) / energy / eps, where) < 30
    assert moment.lost >= -30 * eps * energy                  # also where motors do work


def rows_of(model, *names) -> np.ndarray:
    return np.vstack([np.eye(model.nv)[model.v_index(name)] for name in names])


def approach(model, q, v, link, point, rng):
    """Return a direction of the world against which the point moves, and the row of v that is its speed along it."""
    n = rng.standard_normal(3)
    R = ld.link_pose(model, q, link)[:3, :3]
    row = np.r_[np.cross(R @ point, n), n] @ ld.jacobian(model, q, link, frame="local_world_aligned")
    return (n, row) if row @ v < 0 else (-n, -row)


@pytest.mark.parametrize("name", TREES)
def test_each_joint_that_locks(name, worst):
    """Also while others are prescribed, whose speeds are unchanged."""
    model = model_of(name).spanning_tree()
    joints = [joint.name for joint in model.joints]
    for k, joint in enumerate(joints):
        q, v, _, _ = state(model, k)
        given = [] if k % 2 else [other for other in joints[k % 3::3] if other != joint]
        dense = Dense(model, q, v)
        dense.hit(rows_of(model, joint), np.zeros(len(rows_of(model, joint))), rows_of(model, *given) if given else ())
        moment = happen(model, q, v, [Lock((joint,), True)], given)
        check(moment, dense, worst, f"{name}, {joint}")
        assert np.abs(moment.v[model.v_index(joint)]).max() < 1e-12 * np.abs(v).max() * dense.condition
        if not given:                                        # the momenta of all other coordinates stay
            kept = np.setdiff1d(np.arange(model.nv), np.arange(model.nv)[model.v_index(joint)])
            change = np.abs(dense.M[kept] @ (moment.v - v)).max(initial=0.0) / np.abs(dense.M @ v).max()
            assert worst("momenta kept by a lock", change, f"{name}, {joint}") < 1e-12


@pytest.mark.parametrize("name", TREES)
def test_impacts_at_each_coordinate_and_at_points_of_links(name, worst):
    model, rng = model_of(name).spanning_tree(), np.random.default_rng(8)
    for k, coordinate in enumerate(model.v_names):
        q, v, _, _ = state(model, 100 + k)
        dense = Dense(model, q, v)
        dense.hit(np.eye(model.nv)[[k]], -0.4 * v[[k]])
        check(happen(model, q, v, [Impact(0.4, coordinate)]), dense, worst, f"{name}, {coordinate}")
    for k, link in enumerate(model.link_names[1::3]):
        q, v, _, _ = state(model, 200 + k)
        point, given = rng.uniform(-0.3, 0.3, 3), [model.joints[k % len(model.joints)].name]
        n, row = approach(model, q, v, link, point, rng)
        dense, kept = Dense(model, q, v), rows_of(model, *given)
        if np.linalg.norm(row - row @ np.linalg.pinv(kept) @ kept) < 1e-6:     # only what is prescribed moves the point
            continue
        dense.hit(row[None], [-0.6 * (row @ v)], kept)
        moment = happen(model, q, v, [Impact(0.6, None, link, tuple(point), tuple(n))], given)
        check(moment, dense, worst, f"{name}, {link}")


@pytest.mark.parametrize("name", TREES)
def test_several_actions_at_once_and_bodies_that_attach(name, worst):
    """One event locks two joints, attaches a body to them, and hits with a point of another link."""
    model, rng = model_of(name).spanning_tree(), np.random.default_rng(9)
    joints = [joint.name for joint in model.joints]
    for k in range(4):
        q, v, _, _ = state(model, 300 + k)
        locked, given = joints[k:k + 2], joints[k + 2:k + 3]
        links = [link for link, body in zip(model.link_names, model.link_body, strict=True) if body]
        body, link, point = Attach(links[-1 - k], **BODY), links[k], rng.uniform(-0.3, 0.3, 3)
        dense, fixed = Dense(model, q, v), rows_of(model, *locked)
        dense.hit(fixed, np.zeros(len(fixed)), rows_of(model, *given))
        held = np.vstack([fixed, rows_of(model, *given)])
        dense.attach(body, held)
        n, row = approach(model, q, dense.v, link, point, rng)
        actions = [Lock(tuple(locked), True), body]
        if np.linalg.norm(row - row @ np.linalg.pinv(held) @ held) > 1e-6:
            dense.hit(row[None], [-0.3 * (row @ dense.v)], held)
            actions.append(Impact(0.3, None, link, tuple(point), tuple(n)))
        check(happen(model, q, v, actions, given), dense, worst, f"{name}, {k}")


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_closes_and_a_joint_that_locks_under_loops(name, worst):
    """A closure that was open closes on velocities that it does not allow; then a joint locks while all of them act. Rows of a
    mechanism may depend on each other."""
    case = looped_of(name)
    model, q, nv = case.model, case.q, case.model.nv
    first = model.constraints[0]
    phases = Phase("open", (), open=(first.name,)), Phase("closed", ())
    A = ld.constraint_jacobian(model, q)
    closing = np.arange(model.nc)[first.rows]
    v = motion(case, 1)[1]
    others = np.delete(A, closing, axis=0)
    free = np.random.default_rng(3).standard_normal(nv)
    v = v + free - np.linalg.pinv(others) @ (others @ free)
    joint = next((joint.name for joint in model.joints
                  if np.linalg.matrix_rank(np.vstack([A, rows_of(model, joint.name)]), tol=1e-8)
                  > np.linalg.matrix_rank(A, tol=1e-8)), model.joints[0].name)
    dense = Dense(model, q, v)
    dense.hit(A[closing], np.zeros(len(closing)), others)
    dense.hit(rows_of(model, joint), np.zeros(len(rows_of(model, joint))), A)
    moment = happen(model, q, v, [EnterPhase("closed"), Lock((joint,), True)], (), phases)
    check(moment, dense, worst, f"{name}, {joint}")
    assert np.abs(A @ moment.v).max() < 1e-11 * (1 + np.abs(v).max()) * np.abs(A).max()
