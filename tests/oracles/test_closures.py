"""Each closure of robots/closures.yaml by the formula that a book has for it."""
from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from bridge import relative

G = 9.81
RNG = np.random.default_rng(21)
COUNT = 10                                               # states: a batch for the lanes
BETA = np.pi / 6                                         # between the Cardan joint's shafts
SLOPE, WIRE, TRACK = (Rotation.from_euler("y", angle) for angle in (0.3, 1.0, 0.2))

AT = {"sign": np.array([3, 0, 1]), "puck": np.array([0, 2, 1]), "bead": np.array([1, 2, 1]), "marble": np.array([2, 2, 1])}
UP = np.array([0, 0, 0.05])                              # the marble's centre above its track


@cache
def model():
    return ld.load(Path(__file__).parents[2] / "robots/closures.yaml")


class State:
    """q and v of the whole collection, by joints; and its accelerations."""

    def __init__(self, torques: dict):
        self.q, self.v = np.tile(model().neutral(), (COUNT, 1)), np.zeros((COUNT, model().nv))
        self.tau = np.zeros((COUNT, model().nv))
        for joint, tau in torques.items():
            self.tau[:, model().v_index(joint)] = np.reshape(tau, (COUNT, 1))

    def put(self, joint: str, q, v) -> None:
        self.q[:, model().q_index(joint)] = np.reshape(q, (COUNT, -1))
        self.v[:, model().v_index(joint)] = np.reshape(v, (COUNT, -1))

    def put_free(self, joint: str, R: Rotation, place, w, v) -> None:
        """Return the state for w and v in the world."""
        self.put(joint, np.column_stack([place, R.as_quat()]), np.column_stack([R.inv().apply(w), R.inv().apply(v)]))

    def acceleration(self, joint: str) -> np.ndarray:
        return self.found.a[:, model().v_index(joint)]

    def free_acceleration(self, joint: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the angular acceleration and the acceleration of the origin, in the world."""
        R = Rotation.from_quat(self.q[:, model().q_index(joint)][:, 3:])
        a, v = self.acceleration(joint), self.v[:, model().v_index(joint)]
        return R.apply(a[:, :3]), R.apply(a[:, 3:] + np.cross(v[:, :3], v[:, 3:]))


def pendulums() -> tuple[np.ndarray, np.ndarray]:
    """Angles and rates of two pendulums whose ends stay 0.5 m apart: the right one by Newton's method."""
    left, right, rate = RNG.uniform(-0.4, 0.8, COUNT), np.zeros(COUNT), RNG.uniform(-2, 2, COUNT)
    for _ in range(30):
        way, _, to_right = ends(left, right)
        right = right - ((way**2).sum(0) - 0.25) / (2 * (way * to_right).sum(0))
    way, to_left, to_right = ends(left, right)
    return np.array([left, right]), np.array([rate, -rate * (way * to_left).sum(0) / (way * to_right).sum(0)])


def ends(left, right):
    """Return the distance between the ends in x and z, and its derivatives with respect to the angles."""
    way = np.array([0.4 - 0.5 * np.sin(right) + 0.5 * np.sin(left), 0.5 * np.cos(left) - 0.5 * np.cos(right)])
    return way, 0.5 * np.array([np.cos(left), -np.sin(left)]), 0.5 * np.array([-np.cos(right), np.sin(right)])


@pytest.fixture(scope="module")
def state() -> State:
    made = State({"input_shaft": RNG.uniform(-1, 1, COUNT), "output_shaft": RNG.uniform(-1, 1, COUNT),
                  "lower_shaft": RNG.uniform(-1, 1, COUNT), "pinion": RNG.uniform(-1, 1, COUNT)})
    (left, right), rates = pendulums()
    made.put("left_bob", left, rates[0])
    made.put("right_bob", right, rates[1])
    q, v = RNG.uniform(-1.5, 1.5, COUNT), RNG.uniform(-3, 3, COUNT)
    made.put("input_shaft", q, v)
    made.put("output_shaft", np.arctan2(np.sin(q), np.cos(q) * np.cos(BETA)), v * ratio(q))
    made.put("lower_shaft", q, v)
    made.put("upper_shaft", q, v)
    made.put("oldham_slot", 0.05 * np.sin(q), 0.05 * np.cos(q) * v)
    made.put("post", q, v)
    R = Rotation.from_rotvec(np.outer(q, [0, 1, 0]))
    arm = R.apply([0, 0, -0.4])
    turning = np.outer(v, [0, 1, 0])
    made.put_free("sign", R * Rotation.from_euler("y", -0.1), AT["sign"] + arm, turning, np.cross(turning, arm))
    in_plane = np.column_stack([RNG.uniform(-1, 1, (COUNT, 2)), np.zeros(COUNT)])
    spin = SLOPE.apply(np.outer(v, [0, 0, 1]))
    made.put_free("puck", SLOPE * Rotation.from_rotvec(np.outer(q, [0, 0, 1])), AT["puck"] + SLOPE.apply(in_plane), spin,
                  SLOPE.apply(in_plane[::-1]))
    along = WIRE.apply(np.outer(q, [0, 0, 1]))
    made.put_free("bead", WIRE * Rotation.from_rotvec(np.outer(v, [0, 0, 1])), AT["bead"] + along, along, -2 * along)
    w = RNG.uniform(-5, 5, (COUNT, 3))
    made.put_free("marble", Rotation.from_rotvec(w / 5), AT["marble"] + TRACK.apply(in_plane + UP), w,
                  np.cross(w, TRACK.apply(UP)))
    made.put("wheel", q, v)
    made.put("pinion", -2 * q, -2 * v)
    made.put("rack", 0.1 * q + 0.05, 0.1 * v)
    made.found = ld.constrained_forward_dynamics(model(), made.q, made.v, made.tau)
    return made


def ratio(q):
    """Return d(output) / d(input) of a Cardan joint."""
    return np.cos(BETA) / (1 - np.sin(BETA)**2 * np.cos(q)**2)


def test_pieces_are_closed_and_move_within_their_closures(state):
    assert np.abs(ld.constraint_residual(model(), state.q)).max() < 1e-14
    assert np.abs(ld.constraint_velocity(model(), state.q, state.v)).max() < 1e-13


def test_one_state_as_in_a_batch(state):
    for row in range(2):
        found = ld.constrained_forward_dynamics(model(), state.q[row], state.v[row], state.tau[row])
        assert relative(found.a, state.found.a[row]) < 1e-12


def test_rows_that_follow_from_others():
    """Shafts are in bearings: one of four rows of a Cardan joint and two of five of an Oldham coupling are independent."""
    found = ld.constrained_forward_dynamics(model(), model().neutral(), np.zeros(35), np.zeros(35))
    needed = {part.name: int(found.independent[part.rows].sum()) for part in model().constraints}
    assert needed == {"rod": 1, "cross": 1, "oldham": 2, "slope": 3, "wire": 4, "screws": 6, "track": 3, "teeth": 1, "rack": 1}


def test_pendulums_tied_by_a_rod(state):
    """Lagrange's equations of the first kind, three by three."""
    angles = np.column_stack([state.q[:, model().q_index(name)] for name in ("left_bob", "right_bob")])
    rates = np.column_stack([state.v[:, model().v_index(name)] for name in ("left_bob", "right_bob")])
    found = np.column_stack([state.acceleration(name) for name in ("left_bob", "right_bob")])
    for (left, right), (dleft, dright), a in zip(angles, rates, found, strict=True):
        way, to_left, to_right = ends(left, right)
        A = np.array([way @ to_left, way @ to_right])
        bend = [np.sin(right) * dright**2 - np.sin(left) * dleft**2, np.cos(right) * dright**2 - np.cos(left) * dleft**2]
        speed = to_left * dleft + to_right * dright
        K = np.zeros((3, 3))
        K[[0, 1], [0, 1]], K[2, :2], K[:2, 2] = (0.01 + 0.25, 0.005 + 0.125), A, A
        gravity = [-G * 0.5 * np.sin(left), -0.5 * G * 0.5 * np.sin(right)]
        expected = np.linalg.solve(K, [*gravity, -(0.5 * way @ bend + speed @ speed)])
        assert relative(a, expected[:2]) < 1e-12


def test_cardan_joint_turns_unevenly(state):
    """tan(output) = tan(input) / cos(30 deg)."""
    q = state.q[:, model().q_index("input_shaft")][:, 0]
    v, tau, tau_out = (x[:, model().v_index(name)][:, 0] for x, name in
                       ((state.v, "input_shaft"), (state.tau, "input_shaft"), (state.tau, "output_shaft")))
    k = ratio(q)
    dk = -np.cos(BETA) * np.sin(BETA)**2 * np.sin(2 * q) / (1 - np.sin(BETA)**2 * np.cos(q)**2)**2
    a = (tau + k * tau_out - 0.003 * k * dk * v**2) / (0.002 + 0.003 * k**2)
    assert relative(state.acceleration("input_shaft")[:, 0], a) < 1e-12
    assert relative(state.acceleration("output_shaft")[:, 0], k * a + dk * v**2) < 1e-12


def test_oldham_coupling_turns_evenly(state):
    """The disc's centre moves on a circle of 5 cm through both shafts, at twice their speed."""
    a = state.tau[:, model().v_index("lower_shaft")] / (0.002 + 0.003 + 0.001 + 0.4 * 0.05**2)
    assert relative(state.acceleration("lower_shaft"), a) < 1e-12
    assert relative(state.acceleration("upper_shaft"), a) < 1e-12


def test_puck_slides_down_its_slope(state):
    normal = SLOPE.apply([0, 0, 1])
    dw, a = state.free_acceleration("puck")
    assert np.abs(dw).max() < 1e-12
    assert relative(a, np.tile([0, 0, -G] + G * normal[2] * normal, (COUNT, 1))) < 1e-12


def test_bead_slides_down_its_wire(state):
    along = WIRE.apply([0, 0, 1])
    dw, a = state.free_acceleration("bead")
    assert np.abs(dw).max() < 1e-12
    assert relative(a, np.tile(-G * along[2] * along, (COUNT, 1))) < 1e-12


def test_sign_swings_with_its_post(state):
    q = state.q[:, model().q_index("post")][:, 0]
    inertia = 0.007 + 0.5 * 0.2**2 + 0.8 * (0.3**2 + 0.2**2) / 12 + 0.8 * 0.4**2
    assert relative(state.acceleration("post")[:, 0], -G * (0.5 * 0.2 + 0.8 * 0.4) * np.sin(q) / inertia) < 1e-12


def test_marble_rolls_with_five_sevenths(state):
    normal = TRACK.apply([0, 0, 1])
    dw, a = state.free_acceleration("marble")
    expected = np.tile(([0, 0, -G] + G * normal[2] * normal) * 5 / 7, (COUNT, 1))
    assert relative(a, expected) < 1e-12
    assert relative(dw, np.cross(normal, expected) / 0.05) < 1e-12


def test_gears_drive_a_rack(state):
    tau = state.tau[:, model().v_index("pinion")]
    a = (-2 * tau - 0.5 * G * 0.1) / (0.0002 * 4 + 0.002 + 0.5 * 0.1**2)
    assert relative(state.acceleration("wheel"), a) < 1e-12
    assert relative(state.acceleration("pinion"), -2 * a) < 1e-12
    assert relative(state.acceleration("rack"), 0.1 * a) < 1e-12
