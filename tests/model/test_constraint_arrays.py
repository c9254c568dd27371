"""Closures and couplings: errors, and the arrays that kernels read."""
from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ModelError, NameLookupError
from liedyn.model.description import COUPLING, INDEX_HEADER, LOOP_TYPES, Coordinate, Coupling, Joint, Loop, Mimic, Robot
from liedyn.model.links import Link, Pose
from liedyn.model.validate import validate
from matrices import pose
from messages import has_parts
from zoo import ROBOTS

BODY = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
Z = ((0.0, 0.0, 1.0),)
LIMITED = (Coordinate(-1.0, 1.0),)


def revolute(name, parent, child, **given):
    return Joint(name, "revolute", parent, child, **{"axes": Z, "coordinates": LIMITED} | given)


JOINTS = (revolute("ja", "world", "a"), revolute("jb", "a", "b"),
          Joint("weld", "fixed", "b", "b2", Pose((1.0, 0, 0, 0, 0, -1.0, 0, 1.0, 0))), revolute("jc", "a", "c"),
          Joint("jd", "ball", "world", "d"), Joint("ju", "universal", "c", "e", axes=((1, 0, 0), (0, 1, 0))))
TREE = Robot("r", tuple(Link(name, 1.0, (0.1, 0.0, 0.2), BODY) for name in ("a", "b", "b2", "c", "d", "e")), JOINTS)
FRAME = Pose.from_xyz_rpy((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))


def with_loop(type="weld", a="b", b="c", **given):
    return replace(TREE, loops=(Loop("tip", type, a, b, **given),))


def coupled(*terms, offset=0.0):
    return replace(TREE, couplings=(Coupling("gear", tuple((name, "", c) for name, c in terms), offset),))


def mimicking(**changed):
    """Return the joints with one or more of them changed."""
    return replace(TREE, joints=tuple(replace(j, **changed.get(j.name, {})) for j in JOINTS))


def refused(robot):
    with pytest.raises(ld.ModelError) as caught:
        validate(robot)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("robot, text", [
    (with_loop("hinge"), 'loop "tip", type: unknown type of loop: expected one of weld, revolute … got \'hinge\''),
    (with_loop("bal"), "(did you mean ball?)"),
    (with_loop(a="bb"), 'loop "tip", a: frame a is not on a link of this robot: expected a link\'s name or world, got \'bb\' '
                        "(did you mean"),
    (with_loop(b="nowhere"), 'loop "tip", b: frame b is not on a link of this robot: expected a link\'s name or world, got '
                             "'nowhere'"),
    (with_loop(b="b"), 'loop "tip", b: the loop joins a link to itself: expected two links, got \'b\''),
    (with_loop(b="b2"), 'loop "tip", b: the loop joins two links of one body: there is no moving joint between them: '
                        "expected links that move relative to each other, got ['b', 'b2']"),
    (with_loop(pose_a=Pose((2.0, 0, 0, 0, 1, 0, 0, 0, 1))), "loop \"tip\", a: the rotation of the frame is not a rotation "
                                                            "matrix"),
    (with_loop(pose_b=Pose(translation=(0, math.nan, 0))), "loop \"tip\", b: not a finite number in the frame"),
    (with_loop("revolute", axes=((0, 0, 0),)), 'loop "tip", axis: the axis is the zero vector: expected a non-zero vector, '
                                               "got [0.0, 0.0, 0.0]"),
    (with_loop("universal", axes=((1, 0, 0), (0, 0, 0))), 'loop "tip", axis: the axis is the zero vector'),
    (with_loop("universal", axes=((1, 0, 0),)), "wrong number of axes: expected 2 for a universal closure, got 1"),
    (with_loop("ball", axes=Z), "wrong number of axes: expected 0 for a ball closure, got 1"),
    (with_loop("rolling", radius=0.1, shape="sphere", axes=Z), "expected 0 for a rolling closure of a sphere"),
    (with_loop("rolling", radius=0.1, shape="cone"), 'loop "tip", shape: unknown shape: expected disc or sphere, got \'cone\''),
    (with_loop("distance"), 'loop "tip", length: a distance closure needs a length: expected a number > 0, got 0.0 (use '
                            "ball for points that coincide)"),
    (with_loop("distance", length=math.inf), 'loop "tip", length: not a finite number in the length: got inf'),
    (with_loop("rolling", radius=-1.0), 'loop "tip", radius: a rolling closure needs a radius: expected a number > 0, '
                                        "got -1.0"),
    (replace(TREE, loops=(Loop("tip", "weld", "b", "c"),) * 2), 'loop "tip": two constraints are called "tip"'),
    (replace(coupled(("ja", 1.0)), loops=(Loop("gear", "weld", "b", "c"),)),
     'coupling "gear": two constraints are called "gear"'),
    (replace(TREE, loops=(Loop("a\nb", "weld", "b", "c"),)), "a constraint needs a name of printable"),
    (coupled(), 'coupling "gear", terms: the coupling has no terms … got []'),
    (coupled(("ja", 0.0)), 'coupling "gear", terms: the coupling has no terms: expected at least one coefficient other than '
                           "0, got [0.0]"),
    (coupled(("ja", 1.0), ("ja", 2.0)),
     'coupling "gear", terms: the coordinate "ja" appears twice: expected one term per coordinate'),
    (coupled(("ju.1", 1.0), ("ju.1", 2.0)), 'the coordinate "ju.1" appears twice'),
    (coupled(("jx", 1.0)),
     'coupling "gear", terms: unknown joint in a coupling: expected a joint\'s name, or joint.label, got \'jx\''),
    (coupled(("ju.3", 1.0)), "expected a joint's name, or joint.label, got 'ju.3' (did you mean ju.2?)"),
    (coupled(("jd", 1.0)), 'joint "jd" cannot be coupled: a ball joint has a quaternion for coordinates'),
    (coupled(("jd.wx", 1.0)), "unknown joint in a coupling: expected a joint's name, or joint.label, got 'jd.wx'"),
    (coupled(("weld", 1.0)), 'joint "weld" cannot be coupled: a fixed joint has no coordinate: expected joints such as '
                             "revolute or prismatic"),
    (coupled(("ju", 1.0)), 'joint "ju" has 2 coordinates: expected one of ju.1, ju.2, got \'ju\''),
    (coupled(("ja", math.nan)), 'coupling "gear", terms: not a finite number in the coefficient'),
    (coupled(("ja", 1.0), offset=math.inf), 'coupling "gear", offset: not a finite number in the offset'),
    (mimicking(jb={"mimic": Mimic("jd")}), 'joint "jb", mimic: joint "jd" cannot be coupled: a ball joint'),
    (mimicking(jb={"mimic": Mimic("weld")}), 'joint "jb", mimic: joint "weld" cannot be coupled: a fixed joint'),
    (mimicking(jd={"mimic": Mimic("ja")}), 'joint "jd", mimic: joint "jd" cannot be coupled: a ball joint'),
    (mimicking(ju={"mimic": Mimic("ja")}), 'joint "ju", mimic: joint "ju" has 2 coordinates'),
    (mimicking(ja={"mimic": Mimic("ja", 2.0)}), 'joint "ja", mimic: the joint mimics itself'),
    (replace(mimicking(jb={"mimic": Mimic("ja")}), couplings=(Coupling("jb", (("ja", "", 1.0),)),)),
     'joint "jb", mimic: two constraints are called "jb"'),
])
def test_errors_name_constraint_found_and_expected(robot, text):
    assert has_parts(refused(robot), text)


def test_the_ground_is_the_body_of_a_fixed_root():
    """A loop between the ground and a link welded to it has no effect; with a floating base it has one."""
    robot = Robot("r", TREE.links[:2], (revolute("j", "a", "b"),), loops=(Loop("tip", "weld", "world", "a"),))
    assert "one body" in refused(robot)
    assert ld.build(replace(robot, base="floating")).nc == 6
    assert "the loop joins a link to itself" in refused(replace(robot, loops=(Loop("tip", "weld", "world", "world"),)))


def test_axes_are_filled_in_and_made_unit():
    robot = replace(TREE, loops=(Loop("r", "revolute", "b", "c"), Loop("u", "universal", "b", "d"),
                                 Loop("p", "planar", "b", "e", axes=((0.0, 3.0, 4.0),)),
                                 Loop("w", "rolling", "world", "e", radius=0.1),
                                 Loop("s", "rolling", "world", "d", radius=0.1, shape="sphere"), Loop("b", "ball", "b", "d")))
    checked = validate(robot)
    assert [loop.axes for loop in checked.loops] == [Z, ((1, 0, 0), (0, 1, 0)), ((0.0, 0.6, 0.8),), Z, (), ()]
    assert [str(warning) for warning in checked.warnings] == ["p: the axis has length 5; it was scaled to 1 [axis-not-unit]"]
    assert validate(checked) == checked
    hash(checked)


def test_a_model_without_constraints_has_empty_arrays():
    model = ld.build(TREE)
    assert model.constraints == () and model.constraint_equation_names == () and model.nc == 0
    assert model.loop_index.size == model.loop_constants.size == model.packed_model.size == 0


def test_constraints_leave_the_open_tree_as_it_is():
    """The arrays of the tree are bitwise those without constraints."""
    bare, bound = ld.build(TREE), ld.build(everything())
    for name in ("index", "constants", "lower", "upper", "link_pose"):
        np.testing.assert_array_equal(getattr(bare, name), getattr(bound, name))


def everything():
    """Return one closure of each type, couplings and a mimic."""
    ends = [("b", "c"), ("world", "b2"), ("e", "d"), ("a", "d")]
    loops = tuple(Loop(f"l{k}", type, *ends[k % 4], FRAME, FRAME, length=0.5 * (type == "distance"),
                       radius=0.25 * (type == "rolling"), driven=k in (2, 5)) for k, type in enumerate(LOOP_TYPES))
    couplings = (Coupling("g", (("ja", "", 1.0), ("ju.2", "", -0.5)), 0.1), Coupling("lock", (("jc", "", 2.0),)))
    return replace(mimicking(jb={"mimic": Mimic("jc", 1.5, -0.25)}), loops=loops, couplings=couplings)


def test_names_rows_and_units():
    model, counts = ld.build(everything()), [len(one.labels) for one in LOOP_TYPES.values()]
    assert [one.name for one in model.constraints] == [*(f"l{k}" for k in range(9)), "g", "lock", "jb"]
    assert [one.rows.start for one in model.constraints] == np.cumsum([0, *counts, 1, 1]).tolist()
    assert model.nc == sum(counts) + 3 == len(model.constraint_equation_names)
    assert model.constraint_equation_names[:6] == ("l0.wx", "l0.wy", "l0.wz", "l0.vx", "l0.vy", "l0.vz")
    assert model.constraint_equation_names[-3:] == ("g", "lock", "jb")
    assert model.constraint("l1").units == ("rad", "rad", "m", "m", "m") and model.constraint("l7").units == ("m",)
    assert model.constraint("g").units == ("rad",) and model.constraint("g").type == "coupling"
    assert [one.driven for one in model.constraints] == [k in (2, 5) for k in range(12)]
    with pytest.raises(NameLookupError, match="no constraint 'l99'; the model has l0, l1"):
        model.constraint("l99")


@pytest.mark.parametrize("kind", LOOP_TYPES)
def test_labels_of_equations_differ(kind):
    labels = LOOP_TYPES[kind].labels
    assert len(set(labels)) == len(labels)


def arrays(model):
    """Return the parts of `loop_index` and `loop_constants` by the description of their layout."""
    index, c = model.loop_index, model.loop_constants
    nc, m, terms, driven, chains = index[:5]
    table = index[8:8 + 11 * nc].reshape(nc, 11).T
    names = ("kind", "body_a", "body_b", "row", "rows", "common", "drive", "term", "terms", "chain", "chain_length")
    k = 8 + 11 * nc
    v, q, chain = np.split(index[k:k + 2 * terms + chains], [terms, 2 * terms])
    k += 2 * terms + chains
    first, shared = np.split(index[k:], [nc * (nc + 1) // 2 + 1])
    assert index[6] == index.size - k and first[-1] == shared.size
    figures = c[24 * nc:26 * nc].reshape(nc, 2).T
    return ((m, driven), dict(zip(names, table, strict=True)), (v, q, c[27 * nc:]), chain, figures,
            c[:24 * nc].reshape(nc, 2, 12), np.split(shared, first[1:-1]))


def test_layout_of_the_arrays():
    model = ld.build(everything())
    (m, driven), table, (v, q, coefficients), chain, (figure, sign), _, shared = arrays(model)
    assert (m, driven) == (model.nc, 2)
    body = dict(zip(model.link_names, model.link_body.tolist(), strict=True)) | {"world": 0}
    parent = model.index[INDEX_HEADER:INDEX_HEADER + model.n_bodies].tolist()

    def above(i):
        return [] if i <= 0 else [i, *above(parent[i])]
    for k, (one, loop) in enumerate(zip(model.constraints, model.description.loops, strict=False)):
        a, b = body[loop.a], body[loop.b]
        assert (table["kind"][k], table["body_a"][k], table["body_b"][k]) == (one.kind, a, b)
        assert (table["row"][k], table["rows"][k]) == (one.rows.start, one.rows.stop - one.rows.start)
        assert table["common"][k] == max({*above(a)} & {*above(b)}, default=0)
        bodies = chain[table["chain"][k]:table["chain"][k] + table["chain_length"][k]].tolist()
        assert bodies == sorted({*above(a), *above(b)}, reverse=True)
        assert figure[k] == loop.length + loop.radius and sign[k] == (loop.type == "rolling") and table["terms"][k] == 0
    assert table["drive"].tolist() == [-1, -1, 0, -1, -1, 1, *[-1] * 6]
    assert table["kind"][9:].tolist() == [COUPLING] * 3 and (table["common"][9:] == 0).all() and (table["body_b"][9:] == 0).all()
    assert table["term"][9:].tolist() == [0, 2, 3] and table["terms"][9:].tolist() == [2, 1, 2]
    at = {name: k for k, name in enumerate(model.v_names)}
    assert v.tolist() == [at[name] for name in ("ja", "ju.2", "jc", "jb", "jc")]
    assert q.tolist() == [model.q_names.index(name) for name in ("ja", "ju.2", "jc", "jb", "jc")]
    assert model.loop_constants[26 * 12:27 * 12].tolist() == [one.length for one in model.constraints]
    assert coefficients.tolist() == [1.0, -0.5, 2.0, 1.0, -1.5] and figure[9:].tolist() == [0.1, 0.0, -0.25]
    ju = model.joint("ju")
    assert chain[table["chain"][9]:][:table["chain_length"][9]].tolist() == above(ju.first_body + 1)
    movable = [{model.v_names[k] for k in range(model.nv) if body_of(model, k) in
                chain[table["chain"][c]:table["chain"][c] + table["chain_length"][c]]} for c in range(12)]
    pairs = [(c, other) for c in range(12) for other in range(c + 1)]
    for (c, other), coordinates in zip(pairs, shared, strict=True):
        assert {model.v_names[k] for k in coordinates} == movable[c] & movable[other]
        assert len(set(coordinates)) == len(coordinates)


def body_of(model, coordinate):
    """Return the body whose joint has a velocity coordinate."""
    joint = next(joint for joint in model.joints if joint.v.start <= coordinate < joint.v.stop)
    return joint.body if joint.screws is None else joint.first_body + coordinate - joint.v.start


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (0.6, 0.0, 0.8), (0.0, -1.0, 0.0)])
def test_frames_are_turned_so_that_the_axis_is_z(axis):
    """In their bodies, also on welded links; both frames by the same rotation. Of rolling closures, the axle is rotated."""
    for loop in (Loop("tip", "revolute", "c", "b2", FRAME, Pose(), (axis,)),
                 Loop("tip", "rolling", "c", "b2", FRAME, Pose(), (axis,), radius=1.0)):
        model = ld.build(replace(TREE, loops=(loop,)))
        pose_a, pose_b = (pose(x[:9], x[9:]) for x in arrays(model)[5][0])
        T_a, T_b = pose(FRAME.rotation, FRAME.translation), model.link_pose[model.link_index("b2")]
        turn = model.constraints[0].turn
        np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=2e-15)
        np.testing.assert_allclose(pose_b[:3, 2], T_b[:3, :3] @ axis, atol=2e-15)
        np.testing.assert_allclose(pose_a[:3, :3], T_a[:3, :3] @ turn, atol=2e-15)
        np.testing.assert_array_equal(pose_a[:3, 3], T_a[:3, 3])
        if loop.type == "revolute":
            np.testing.assert_allclose(turn[:, 2], axis, atol=0)
            np.testing.assert_allclose(T_b[:3, :3] @ turn, pose_b[:3, :3], atol=2e-15)
        else:
            np.testing.assert_array_equal(turn, np.eye(3))


def test_axes_of_a_universal_closure_are_x_of_one_and_y_of_the_other():
    u, w = (0.6, 0.0, 0.8), (0.0, -0.8, 0.6)
    model = ld.build(with_loop("universal", axes=(u, w)))
    pose_a, pose_b = arrays(model)[5][0, :, :9].reshape(2, 3, 3)
    np.testing.assert_allclose(pose_a[:, 0], u, atol=2e-16)
    np.testing.assert_allclose(pose_b[:, 1], w, atol=2e-16)
    np.testing.assert_array_equal(arrays(ld.build(with_loop("universal")))[5][0, :, :9].reshape(2, 3, 3), [np.eye(3)] * 2)


def test_one_array_holds_all_four():
    model = ld.build(everything())
    pieces = np.cumsum([x.size for x in (model.index, model.constants, model.loop_index, model.loop_constants)])
    index, constants, loop_index, loop_constants = np.split(model.packed_model, pieces[:-1])
    np.testing.assert_array_equal(index.view(np.int64), model.index)
    np.testing.assert_array_equal(constants, model.constants)
    np.testing.assert_array_equal(loop_index.view(np.int64), model.loop_index)
    np.testing.assert_array_equal(loop_constants, model.loop_constants)
    other = pickle.loads(pickle.dumps(model))
    assert other.constraint_equation_names == model.constraint_equation_names and (other.loop_index == model.loop_index).all()


def test_a_mimic_by_a_fixed_joint_binds_nothing():
    """Files of reduced robots contain them."""
    assert ld.build(mimicking(weld={"mimic": Mimic("ja")})).nc == 0


def test_a_mimic_of_a_joint_that_does_not_exist_is_an_error():
    """In a description. Published URDF files have them (hands whose joints are called otherwise): a warning."""
    with pytest.raises(ModelError, match=r"joint \"jb\", mimic: unknown joint in a coupling: .*got 'j_a' .*did you mean ja"):
        ld.build(mimicking(jb={"mimic": Mimic("j_a")}))


@pytest.mark.parametrize("name", ROBOTS)
def test_couplings_of_every_joint_kind(name):
    """Each coordinate that is not part of a quaternion can be coupled; the indices are those of its name."""
    robot = ROBOTS[name]
    names = [f"{j.name}.{label}" if label else j.name for j in robot.joints if j.type not in ("ball", "free")
             for label in j.labels]
    model = ld.build(replace(robot, couplings=tuple(Coupling(f"c {one}", ((one, "", 1.0),)) for one in names)))
    if names:
        v, q, _ = arrays(model)[2]
        assert [model.v_names[k] for k in v] == names == [model.q_names[k] for k in q]
        assert [one.units[0] for one in model.constraints] == [model.v_units[k] for k in v]
