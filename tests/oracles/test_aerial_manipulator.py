"""The authors' program of higher-order dynamics (Ali, Gabellieri, Franchi) on a hexarotor with two arms of three joints:
aerial_manipulator.json, whose `conventions` say what each number is. Twists and wrenches of the base are spatial there."""
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.model.description import Joint, Robot
from liedyn.model.links import Link, Pose
from spatial_series import reference_hybrid, reference_inverse

DATA = json.loads(Path(__file__).with_name("aerial_manipulator.json").read_text())
CASES = pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: case["name"])
ORDERS = 6
BLOCKS = {"base moment": slice(0, 3), "base force": slice(3, 6), "joint torques": slice(6, None)}
INVERSE_BOUND = 1e-12     # of the largest of its block and order; long double shows that their own figures are wrong by 2e-13
UNAVOIDABLE = 10          # times the error of the long double solution for the same arguments: measured 3
MASKS = {"forward": [], "inverse": [*range(12)], "base's motion given": [*range(6)], "joints' motion given": [*range(6, 12)],
         "base's and two joints' motion given": [*range(6), 7, 10], "two joints' motion given": [8, 9]}


@pytest.fixture(scope="module")
def model():
    """Bodies' frames are at their centres of mass in the data; here a link's frame is at its joint. All axes are the world's at
    home, so that only places differ."""
    given = DATA["model"]
    homes = []
    for parent, Ap in zip(given["parent"], given["Ap"], strict=True):
        homes.append((homes[parent] if parent >= 0 else np.eye(4)) @ Ap)
    points = [np.zeros(3)] + [np.array(p) for p in given["joint_point_home"][1:]]
    links, joints = [], []
    for i, (mass, J) in enumerate(zip(given["mass"], given["inertia_about_com_body_axes"], strict=True)):
        com = homes[i][:3, 3] - points[i] + given["com_in_body_frame"][i]
        links.append(Link(f"body{i}", mass, tuple(com), tuple(np.array(J)[np.triu_indices(3)])))
        if i:
            parent, axis = given["parent"][i], tuple(map(float, given["axis_home"][i]))
            origin = Pose(translation=tuple(points[i] - points[parent]))
            joints.append(Joint(f"joint{i}", "revolute", f"body{parent}", f"body{i}", origin, axes=(axis,)))
    return ld.build(Robot("aerial manipulator", tuple(links), tuple(joints), "floating", (0.0, 0.0, -DATA["g"])))


def motion_of(case):
    """q (13,); v, a, … (7, 12), the base's spatial."""
    given = case["inputs"]
    C, joints = np.array(given["C0_1"]), np.array(given["q_derivs"])[1:]
    q = np.concatenate([C[:3, 3], Rotation.from_matrix(C[:3, :3]).as_quat(), joints[:, 0]])
    return q, np.concatenate([np.array(given["V_derivs"]), joints[:, 1:ORDERS + 2].T], axis=1)


def forces_of(case):
    given = case["outputs"]
    return np.concatenate([np.array(given["Qbase"]), np.array(given["tau"])[1:].T], axis=1)


def by_block(x, truth, k):
    """Return the maximum error of order k, relative to the maximum true value of its block."""
    return max(float(np.abs(x[k, at] - truth[k, at]).max() / np.abs(truth[k, at]).max()) for at in BLOCKS.values())


def test_the_data_are_as_described(model):
    """They contain no external wrenches; spatial quantities are named; the model's joints have the order of the data."""
    assert all(not np.any(case["inputs"]["Wapp"]) for case in DATA["cases"])
    assert model.v_names[6:] == tuple(f"joint{i}" for i in range(1, 7)) and model.nv == 12
    for i, Y in enumerate(DATA["model"]["Y"][1:], 1):
        axis, point = DATA["model"]["axis_home"][i], DATA["model"]["joint_point_home"][i]
        np.testing.assert_allclose(Y, [*axis, *np.cross(point, axis)], atol=1e-15)


@CASES
def test_reference(model, case, worst):
    q, v = motion_of(case)
    for dtype in (np.float64, np.longdouble):
        tau = reference_inverse(model, q, v, base="world", dtype=dtype)
        for k in range(ORDERS):
            error = worst(f"authors' data, {np.dtype(dtype).name} reference, order {k}", by_block(tau, forces_of(case), k))
            assert error < INVERSE_BOUND


@CASES
@pytest.mark.parametrize("count", [None, 1, 11])
def test_inverse(model, case, count, worst):
    """Checks: AGF Algorithms 1-2, Table 5."""
    q, v = motion_of(case)
    lead = () if count is None else (count,)
    tau = ld.higher_order_inverse_dynamics(model, np.broadcast_to(q, (*lead, 13)), np.broadcast_to(v, (*lead, ORDERS + 1, 12)),
                                           base_frame="world")
    assert tau.shape == (*lead, ORDERS, 12)
    for one in tau.reshape(-1, ORDERS, 12):
        for k in range(ORDERS):
            error = worst(f"authors' data, inverse, order {k}", by_block(one, forces_of(case), k), case["name"])
            assert error < INVERSE_BOUND


@CASES
@pytest.mark.parametrize("given", MASKS)
def test_forward_and_hybrid(model, case, given, worst):
    """The authors' forces to motion. Their figures are doubles and wrong in the last digits: `least` is what long double makes of
    the same figures, and of figures that differ by half a last digit from them.
    Checks: AGF Algorithms 3-4, Table 5."""
    q, v = motion_of(case)
    tau, mask = forces_of(case), np.zeros(12, bool)
    mask[MASKS[given]] = True
    if given == "forward":
        got = ld.higher_order_forward_dynamics(model, q, v[0], tau, base_frame="world"), tau
    else:
        got = ld.higher_order_hybrid_dynamics(model, q, v[0], np.where(mask, v[1:], np.nan), np.where(mask, np.nan, tau), mask,
                                              base_frame="world")
    np.testing.assert_array_equal(got[0][:, mask], v[1:, mask])
    np.testing.assert_array_equal(got[1][:, ~mask], tau[:, ~mask])
    least, rng = np.zeros((2, ORDERS)), np.random.default_rng(1)
    for size in (0.0, 1.0, 1.0, 1.0):
        x, y = (z * (1 + size * 2.0**-53 * rng.choice([-1.0, 1.0], z.shape).astype(np.longdouble)) for z in (v, tau))
        found = reference_hybrid(model, q, x[0], x[1:], y, mask, base="world", dtype=np.longdouble)
        least = np.maximum(least, [np.abs(found[0] - v[1:]).max(1), np.abs(found[1] - tau).max(1)])
    for name, x, truth, bound in zip(("a", "tau"), got, (v[1:], tau), least, strict=True):
        for k in range(ORDERS):
            error, scale = np.abs(x[k] - truth[k]).max(), np.abs(truth[k]).max()
            worst(f"authors' data, forward and hybrid, {name}, order {k}", error / scale, f"{case['name']}, {given}")
            note = worst(f"authors' data, forward and hybrid, {name}: error by the unavoidable, order {k}",
                         error / max(bound[k], 2.0**-53 * scale), f"{case['name']}, {given}")
            assert note < UNAVOIDABLE


@CASES
def test_closed_form(model, case, worst):
    """Orders 0 and 1 as Proposition 1 has them. Checks: AGF (10), (14), Proposition 1."""
    q, v = motion_of(case)
    form = ld.spatial_closed_form(model, q, base_frame="world")
    tau = np.stack([form.inverse_dynamics(*v[:2]), form.inverse_dynamics_rate(*v[:3])])
    for k in range(2):
        assert worst(f"authors' data, closed form, order {k}", by_block(tau, forces_of(case), k)) < INVERSE_BOUND
