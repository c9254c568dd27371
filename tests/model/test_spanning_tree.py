"""Robots with loops or couplings: functions of the open tree raise an error and name what obeys; `spanning_tree` is the way
around."""
import copy
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from bridge import relative

ROBOTS = Path(__file__).parents[2] / "robots"
TREE = "or model.spanning_tree() for the robot without them"

# function -> (arguments after the model, what the error names)
REFUSING = {
    "inverse_dynamics": ("q v a", "constrained_inverse_dynamics"),
    "forward_dynamics": ("q v tau", "constrained_forward_dynamics"),
    "hybrid_dynamics": ("q v a tau mask", "constrained_hybrid_dynamics"),
    "inverse_dynamics_derivatives": ("q v a", "constrained_inverse_derivatives"),
    "forward_dynamics_derivatives": ("q v tau", "constrained_forward_derivatives"),
    "hybrid_dynamics_derivatives": ("q v a tau mask", "constrained_hybrid_derivatives"),
    "inverse_dynamics_second_derivatives": ("q v a", None),
    "inverse_dynamics_directional": ("q v a", "constrained_inverse_derivatives"),
    "forward_dynamics_directional": ("q v tau", "constrained_forward_derivatives"),
    "hybrid_dynamics_directional": ("q v a tau mask", "constrained_hybrid_derivatives"),
    "parameter_derivatives": ("q v a", None),
    "higher_order_inverse_dynamics": ("q rows", None),
    "higher_order_forward_dynamics": ("q v taus", None),
    "higher_order_hybrid_dynamics": ("q v taus taus mask", None),
}


@cache
def four_bar():
    return ld.load(ROBOTS / "four_bar.yaml")


def given(model, size=()):
    rng = np.random.default_rng(7)
    q = ld.assemble(model).q if not size else np.broadcast_to(ld.assemble(model).q, (*size, model.nq)).copy()
    v, a, tau = rng.standard_normal((3, *size, model.nv))
    rows = rng.standard_normal((*size, 3, model.nv))
    return {"q": q, "v": v, "a": a, "tau": tau, "rows": rows, "taus": rows[..., :2, :],
            "mask": np.arange(model.nv) % 2 == 0}


@pytest.mark.parametrize("size", [(), (3,)], ids=["one", "batch"])
@pytest.mark.parametrize("name", REFUSING)
def test_what_leaves_the_loops_out_refuses_and_names_what_obeys(name, size):
    model, (arguments, instead) = four_bar(), REFUSING[name]
    values = given(model, size)
    for _ in range(2):                                       # the second call may go a shorter way
        with pytest.raises(ld.ModelError) as caught:
            getattr(ld, name)(model, *(values[key] for key in arguments.split()))
        text = str(caught.value)
        assert f"{name} does not account for the constraints of robot four_bar (pin)" in text and "model.spanning_tree()" in text
        assert instead is None or f"use {instead}, {TREE}" in text
        assert instead is None or callable(getattr(ld, instead))
    result = getattr(ld, name)(model.spanning_tree(), *(values[key] for key in arguments.split()))
    assert result is not None


@cache
def hand():
    return ld.load(ROBOTS / "hand.yaml")


@pytest.mark.parametrize("name", REFUSING)
def test_couplings_and_mimics_are_accepted(name):
    """Dynamics eliminate them (tests/dynamics/test_couplings.py)."""
    model = hand()
    values = given(model)
    v, a, *rows = (values["v"] @ (N := model.elimination().projection).T, values["a"] @ N.T, *values["rows"] @ N.T)
    values |= {"v": v, "a": a, "rows": np.array(rows)}
    values["taus"] = np.where(values["mask"], values["rows"][:2], values["taus"]) if name == "higher_order_hybrid_dynamics" \
        else values["taus"]
    arguments = [values[key] for key in REFUSING[name][0].split()]
    result, of_tree = (getattr(ld, name)(robot, *arguments) for robot in (model, model.spanning_tree()))
    assert isinstance(result, type(of_tree))


def test_parts_of_the_constrained_equations_are_those_of_the_open_tree():
    """M a + b = tau + A^T lambda holds with them, and they are what the open tree has."""
    model = ld.load(ROBOTS / "five_bar.yaml")
    tree, q = model.spanning_tree(), ld.assemble(model).q
    rng = np.random.default_rng(1)
    v = ld.project_velocity(model, q, rng.standard_normal(model.nv))
    tau = rng.standard_normal(model.nv)
    motion = ld.constrained_forward_dynamics(model, q, v, tau, passive=False)
    right = tau + ld.constraint_forces(model, q, motion.multipliers)
    left = ld.mass_matrix(model, q) @ motion.a + ld.bias_force(model, q, v)
    assert relative(left, right) < 1e-12
    assert relative(ld.regressor(model, q, v, motion.a) @ ld.inertial_parameters(model).values, right) < 1e-12
    assert relative(ld.inverse_dynamics(tree, q, v, motion.a, passive=False), right) < 1e-12
    for function, arguments in (("mass_matrix", (q,)), ("bias_force", (q, v)), ("gravity_force", (q,)),
                                ("coriolis_matrix", (q, v)), ("link_poses", (q,))):
        assert relative(getattr(ld, function)(model, *arguments), getattr(ld, function)(tree, *arguments)) < 1e-14


def test_an_open_tree_is_a_robot_of_its_own():
    model = ld.load(ROBOTS / "gripper.urdf")
    tree = model.spanning_tree()
    assert tree.nc == 0 and tree.constraints == () and not tree.description.loops and model.nc > 0
    assert not any(joint.mimic for joint in tree.description.joints)
    assert tree is model.spanning_tree() and tree.spanning_tree() is tree
    values = given(model)
    a = ld.forward_dynamics(tree, values["q"], values["v"], values["tau"])
    for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), ld.build(tree.description)):
        assert relative(ld.forward_dynamics(same.spanning_tree(), values["q"], values["v"], values["tau"]), a) < 1e-14
    with pytest.raises(ld.ModelError, match="has no constraints"):
        ld.constrained_forward_dynamics(tree, values["q"], values["v"], values["tau"])


def test_wrenches_of_joints_take_the_loops_part_or_ask_for_it():
    model = ld.load(ROBOTS / "four_bar.yaml")
    q = ld.assemble(model).q
    rest = np.zeros(model.nv)
    with pytest.raises(ld.ModelError, match=r"robot four_bar has loops, whose reactions also act on its links \(give "
                                            r"multipliers=, as constrained_forward_dynamics"):
        ld.joint_wrenches(model, q, rest, rest)
    motion = ld.constrained_forward_dynamics(model, q, rest, rest, passive=False)
    W = ld.joint_wrenches(model, q, rest, motion.a, multipliers=motion.multipliers)
    along = [ld.joint_motion(model, joint.name, q[joint.q])[1].T @ F for joint, F in zip(model.joints, W, strict=True)]
    assert np.abs(along).max() < 1e-12 * np.abs(W).max()                  # no motor, and none of the pins bears a moment
    F = ld.constraint_wrenches(model, q, motion.multipliers)
    assert relative(ld.joint_wrenches(model.spanning_tree(), q, rest, motion.a, f_ext=F), W) < 1e-13
    push = {"foot": [0, 0, 0, 1.0, 0, 0]}
    both = ld.joint_wrenches(model, q, rest, motion.a, f_ext=push, multipliers=motion.multipliers)
    assert relative(both - W, ld.joint_wrenches(model.spanning_tree(), q, rest, rest, f_ext=push)
                    - ld.joint_wrenches(model.spanning_tree(), q, rest, rest)) < 1e-12
    batch = ld.joint_wrenches(model, np.stack([q, q]), rest, motion.a, multipliers=motion.multipliers, frame="world")
    assert batch.shape == (2, 3, 6)
    with pytest.raises(ld.ShapeError, match="leading axes do not match"):
        ld.joint_wrenches(model, np.stack([q, q]), rest, motion.a, multipliers=motion.multipliers,
                          f_ext={"foot": np.zeros((3, 6))})


def test_couplings_alone_leave_the_wrenches_of_joints_determined():
    model = ld.build(ld.load_description(ROBOTS / "ur5_gripper.yaml"))
    loops, couplings = model.description.loops, [one for one in model.constraints if one.type == "coupling"]
    if loops or not couplings:
        model = ld.load(ROBOTS / "hand.yaml")
        assert not model.description.loops and model.nc
    q = model.neutral()
    rest = np.zeros(model.nv)
    assert relative(ld.joint_wrenches(model, q, rest, rest), ld.joint_wrenches(model.spanning_tree(), q, rest, rest)) < 1e-14
