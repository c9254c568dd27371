"""Force elements: gradients of their energies, derivatives, closed forms, zero length, files."""
import dataclasses
import warnings

import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code

STEP = 1e-6
K = np.diag([3.0, 4.0, 5.0, 100.0, 120.0, 130.0]) + 0.5
A, B = ld.Pose.from_xyz_rpy([0.1, 0, 0.1], [0.1, 0.2, 0.3]), ld.Pose.from_xyz_rpy([0.1, 0.2, -0.2], [0.4, 0.2, 0.3])


def element(name, kind, a, b, **values):
    return ld.ForceElement(name, kind, a, b, **({"pose_a": A, "pose_b": B} | values))


ELEMENTS = [
    element("spring", "spring", "world", "c", stiffness=200, free_length=0.3, preload=2, damping=5),
    element("dead zone", "spring", "c", "e", stiffness=150, free_length=[0.2, 0.4], damping=(3, 7)),
    element("table", "spring", "d", "c", table=[[0.1, -20], [0.3, 2], [0.5, 10], [0.9, 40]], interpolation="cubic"),
    element("damper", "damper", "a", "c", table=[[-1, -5], [-0.1, -1], [0, 0], [0.3, 4], [2, 8]]),
    element("gas", "gas_spring", "b", "e", force=100, extended_length=1.9, stroke=1.5, progression=1.5),
    element("isothermal", "gas_spring", "b", "c", force=100, extended_length=1.5, stroke=0.8, progression=1.5, exponent=1),
    element("cable", "cable", "b", "e", stiffness=300, free_length=0.2, damping=10),
    element("torsion", "torsion", "a", "e", stiffness=30, rest=0.2, damping=1, axis=[0, 1, 0.2]),
    element("bushing", "bushing", "b", "e", stiffness=K, damping=K / 20),
]
NAMES = [one.name for one in ELEMENTS]


def robot(*elements, **options):
    links = [ld.Link(name, mass=1.0, com=[0.01, 0.02, -0.25], inertia=[0.1, 0.12, 0.05]) for name in "abcde"]
    joints = [ld.Joint("j1", "free", "world", "a"), ld.Joint("j2", "continuous", "a", "b", [0.1, 0, -0.5], axis=[0, 1, 0]),
              ld.Joint("j3", "ball", "b", "c", [0, 0, -0.5]),
              ld.Joint("j4", "prismatic", "a", "d", [0.2, 0.1, 0], axis=[1, 0, 0], limits=(-9, 9)),
              ld.Joint("j5", "universal", "d", "e", [0.2, 0.1, 0.3], axes=[[1, 0, 0], [0, 1, 0]], limits=(-9, 9))]
    return ld.build(ld.Robot("tree", links, joints, elements=elements, **options))


def state(model, seed=0, size=0.4):
    rng = np.random.default_rng(seed)
    x, v, a = rng.standard_normal((3, model.nv))
    return ld.integrate(model, model.neutral(), size * x), v, a


def forces(model, q, v):
    """Generalized forces of the elements."""
    rest = np.zeros(model.nv)
    return ld.inverse_dynamics(model, q, v, rest, passive=False) - ld.inverse_dynamics(model, q, v, rest)


def gradient(f, model, q):
    return np.stack([(f(ld.integrate(model, q, STEP * e)) - f(ld.integrate(model, q, -STEP * e))) / (2 * STEP)
                     for e in np.eye(model.nv)], axis=-1)


def close(x, y, tolerance):
    np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * max(1.0, np.abs(y).max()))


@pytest.fixture(scope="module", params=range(len(ELEMENTS)), ids=NAMES)
def model(request):
    return robot(ELEMENTS[request.param])


def test_forces_at_rest_are_minus_the_gradient_of_the_stored_energy(model):
    q, v, _ = state(model)
    close(forces(model, q, 0 * v), -gradient(lambda x: ld.element_forces(model, x, 0 * v).energy[0], model, q), 1e-8)


def test_power_is_the_rate_of_stored_energy_and_dissipation(model):
    q, v, _ = state(model)
    now = ld.element_forces(model, q, v)
    stored = gradient(lambda x: ld.element_forces(model, x, v).energy[0], model, q) @ v
    close(forces(model, q, v) @ v, -stored + now.power[0], 1e-8)
    assert now.power[0] <= 0


def test_energy_contains_what_elements_store(model):
    q, v, _ = state(model)
    stored = ld.energy(model, q, v)[1] - ld.energy(model, q, v, passive=False)[1]
    close(stored, ld.element_forces(model, q, v).energy.sum(), 1e-13)


def test_wrenches_on_links_give_the_generalized_forces(model):
    q, v, a = state(model)
    F = ld.element_wrenches(model, q, v)
    close(sum(ld.jacobian(model, q, link).T @ x for link, x in zip(model.link_names, F, strict=True)), forces(model, q, v), 1e-12)
    tau = ld.joint_wrenches(model, q, v, a)[1][:3] @ [0, 1, 0]                        # of the revolute joint j2
    close(tau, ld.inverse_dynamics(model, q, v, a)[6], 1e-12)


def test_derivatives_are_those_of_differences(model):
    q, v, a = state(model)
    d = ld.inverse_dynamics_derivatives(model, q, v, a)
    close(d.dtau_dq, gradient(lambda x: ld.inverse_dynamics(model, x, v, a), model, q), 1e-7)
    of_v = [(ld.inverse_dynamics(model, q, v + STEP * e, a) - ld.inverse_dynamics(model, q, v - STEP * e, a)) / (2 * STEP)
            for e in np.eye(model.nv)]
    close(d.dtau_dv, np.transpose(of_v), 1e-7)


def test_derivatives_of_all_functions_agree():
    model = robot(*ELEMENTS)
    q, v, a = state(model)
    d, tau = ld.inverse_dynamics_derivatives(model, q, v, a), ld.inverse_dynamics(model, q, v, a)
    close(ld.forward_dynamics(model, q, v, tau), a, 1e-12)
    forward = ld.forward_dynamics_derivatives(model, q, v, tau)
    close(forward.da_dq, -forward.M_inverse @ d.dtau_dq, 1e-12)
    close(forward.da_dv, -forward.M_inverse @ d.dtau_dv, 1e-12)
    u, w = np.arange(model.nv) % 3 == 0, np.arange(model.nv) % 3 != 0
    hybrid = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, u)
    of_q = np.linalg.solve(d.M[np.ix_(w, w)], -d.dtau_dq[w])
    close(hybrid.dy_dq[w], of_q, 1e-12)
    close(hybrid.dy_dq[u], d.dtau_dq[u] + d.M[np.ix_(u, w)] @ of_q, 1e-12)
    dq, dv = np.random.default_rng(1).standard_normal((2, model.nv))
    close(ld.inverse_dynamics_directional(model, q, v, a, dq=dq, dv=dv)[1], d.dtau_dq @ dq + d.dtau_dv @ dv, 1e-12)


def test_forces_between_links_change_no_momentum():
    model = robot(*(one for one in ELEMENTS if one.a != "world"), gravity=[0, 0, 0])
    q, v, _ = state(model)
    close(forces(model, q, v)[:6], np.zeros(6), 1e-11)
    a = ld.forward_dynamics(model, q, v, np.zeros(model.nv))
    h = [ld.momentum(model, ld.integrate(model, q, s * (v + 0.5 * s * a)), v + s * a) for s in (-1e-5, 1e-5)]
    close(h[1], h[0], 1e-9)


def test_generated_code_gives_the_same_forces():
    q, v, tau = state(robot())
    generic = ld.forward_dynamics(robot(*ELEMENTS), q, v, tau)
    with generated_code():
        close(ld.forward_dynamics(robot(*ELEMENTS), q, v, tau), generic, 1e-12)


def test_many_states_are_those_of_single_ones():
    model = robot(*ELEMENTS)
    states = [state(model, k)[:2] for k in range(11)]
    q, v = map(np.array, zip(*states, strict=True))
    close(ld.element_forces(model, q, v).wrench[9], ld.element_forces(model, *states[9]).wrench, 1e-13)
    close(ld.inverse_dynamics(model, q, v, v)[9], ld.inverse_dynamics(model, q[9], v[9], v[9]), 1e-12)


# closed forms ------------------------------------------------------------------------------------------------------------
def slider(*elements, **options):
    """A mass of 2 kg that moves along x."""
    return ld.build(ld.Robot("slider", [ld.Link("mass", 2.0, inertia=[0.1, 0.1, 0.1])],
                             [ld.Joint("x", "prismatic", "world", "mass", axis=[1, 0, 0], limits=(-9, 9))], gravity=[0, 0, 0],
                             elements=elements, **options))


def tension(element, x, speed=0.0):
    return ld.element_forces(slider(element), [x], [speed]).force[0]


def test_a_gas_spring_pushes_with_its_force_and_progression():
    spring = ld.ForceElement("gas", "gas_spring", "world", "mass", force=400, extended_length=0.5, stroke=0.2, progression=1.6)
    assert tension(spring, 0.5) == pytest.approx(-400, rel=1e-12)
    assert tension(spring, 0.3) == pytest.approx(-640, rel=1e-12)
    # adiabatic: T V^(n - 1) and F V^n are constant, with a volume that vanishes at h
    h = 0.2 / (1 - 1.6 ** (-1 / 1.4))
    assert tension(spring, 0.4) == pytest.approx(-400 * (1 - 0.1 / h) ** -1.4, rel=1e-12)
    stored = ld.element_forces(slider(spring), [0.3], [0.0]).energy[0]
    assert stored == pytest.approx(400 * h / 0.4 * ((1 - 0.2 / h) ** -0.4 - 1), rel=1e-12)


@pytest.mark.parametrize(("exponent", "progression"), [(1.4, 1 + 1e-9), (1 + 1e-9, 1.6), (1 + 1e-13, 1 + 1e-13)])
def test_the_energy_of_a_gas_keeps_its_digits_towards_its_limits(exponent, progression):
    """A constant force, and slow motion: their differences from these limits are of order 1e-9."""
    gas = {"force": 400, "extended_length": 0.5, "stroke": 0.2}
    spring = ld.ForceElement("gas", "gas_spring", "world", "mass", **gas, progression=progression, exponent=exponent)
    slow = ld.ForceElement("gas", "gas_spring", "world", "mass", **gas, progression=1.6, exponent=1)
    stored = ld.element_forces(slider(spring), [0.4], [0.0]).energy[0]
    limit = 400 * 0.1 if progression < 1.1 else ld.element_forces(slider(slow), [0.4], [0.0]).energy[0]
    assert stored == pytest.approx(limit, rel=1e-8)


def test_a_cable_pulls_only():
    cable = ld.ForceElement("cable", "cable", "world", "mass", stiffness=100, free_length=0.5, damping=30)
    assert tension(cable, 0.4, 3.0) == 0
    assert tension(cable, 0.7) == pytest.approx(20)
    assert tension(cable, 0.7, 0.1) == pytest.approx(23)
    assert tension(cable, 0.7, -9.0) == 0                                                 # never below zero
    assert tension(cable, 0.7, 9.0) == pytest.approx(40)                                  # continuous at the free length


def test_damping_may_differ_in_compression_and_extension():
    damper = ld.ForceElement("damper", "damper", "world", "mass", damping=(2, 8))
    assert [tension(damper, 0.5, speed) for speed in (-0.5, 0.5)] == [-1, 4]


@pytest.mark.parametrize("interpolation", ["linear", "monotone", "cubic"])
def test_a_table_goes_through_its_points_and_continues_straight(interpolation):
    points = [[0.2, -10], [0.3, 0], [0.5, 8], [0.6, 9]]
    spring = ld.ForceElement("spring", "spring", "world", "mass", table=points, interpolation=interpolation)
    assert [tension(spring, x) for x, _ in points] == pytest.approx([y for _, y in points], abs=1e-12)
    assert tension(spring, 0.9) - tension(spring, 0.8) == pytest.approx(tension(spring, 0.8) - tension(spring, 0.7))


def test_without_a_free_length_the_spring_is_relaxed_at_zero_coordinates():
    spring = ld.ForceElement("spring", "spring", "world", "mass", pose_b=[0, 0.3, 0], stiffness=100, preload=7)
    assert tension(spring, 0.0) == pytest.approx(7)


def test_two_masses_vibrate_with_their_reduced_mass():
    links = [ld.Link(name, mass, inertia=[0.1, 0.1, 0.1]) for name, mass in (("a", 1.0), ("b", 3.0))]
    joints = [ld.Joint(name, "prismatic", "world", name, axis=[1, 0, 0], limits=(-9, 9)) for name in "ab"]
    spring = ld.ForceElement("s", "spring", "a", "b", pose_b=[1, 0, 0], stiffness=300, damping=2)
    model = ld.build(ld.Robot("two", links, joints, gravity=[0, 0, 0], elements=[spring]))
    with generated_code():
        result = ld.simulate(model, duration=1.0, q0=[0, 0.1], output_step=0.1)
    rate, w = 2 / 1.5, np.sqrt(300 / 0.75 - (2 / 1.5) ** 2)                               # reduced mass 0.75
    x = 0.1 * np.exp(-rate * result.t) * (np.cos(w * result.t) + rate / w * np.sin(w * result.t))
    np.testing.assert_allclose(result.q[:, 1] - result.q[:, 0], x, atol=1e-8)
    assert result.check["energy_balance"] < 1e-8
    columns = {name: values for name, _, values in result.columns}
    np.testing.assert_allclose(columns["element.s.force"], 300 * x + 2 * columns["element.s.rate"], atol=1e-5)


# zero length, and undefined forces ----------------------------------------------------------------------------------------
def test_an_element_without_force_at_length_zero_may_have_this_length():
    spring = ld.ForceElement("spring", "spring", "world", "mass", stiffness=100, free_length=0)
    model = slider(spring)
    assert ld.forward_dynamics(model, [0.0], [1.0], [0.0]) == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(ld.forward_dynamics_derivatives(model, [0.0], [1.0], [0.0]).da_dq, [[-50]])


@pytest.mark.parametrize(("kind", "values"), [("spring", {"stiffness": 100, "free_length": 0, "damping": 5}),
                                              ("damper", {"damping": 5}), ("damper", {"table": [[-1, -5], [0, 0], [1, 5]]})])
def test_damping_without_a_direction_is_reported(kind, values):
    model = slider(ld.ForceElement("s", kind, "world", "mass", **values))
    for call in (lambda: ld.linearize(model, [1e-10], [0.0], [0.0]), lambda: ld.find_equilibrium(model, [0.0])):
        with pytest.warns(ld.LiedynWarning, match=r"s: the ends coincide, so that the damping has no direction.*undirected"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ld.linearize(model, [0.1], [0.0], [0.0]).A[1, 1] == pytest.approx(-2.5)
        ld.linearize(model, [0.0], [0.0], [0.0], passive=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.linearize(slider(ld.ForceElement("s", "spring", "world", "mass", stiffness=100, free_length=0)), [0.0], [0.0], [0.0])


@pytest.mark.parametrize(("element", "x", "text"), [
    (ld.ForceElement("s", "spring", "world", "mass", stiffness=1, free_length=0.2), 0.0,
     "the force of the spring s has no direction: its ends coincide"),
    (ld.ForceElement("g", "gas_spring", "world", "mass", force=1, extended_length=0.5, stroke=0.2, progression=4), 0.1,
     "the gas spring g is 0.1 m long, but its gas has no volume left"),
])
def test_a_force_that_is_not_defined_names_the_element(element, x, text):
    with pytest.raises(ld.ComputationError, match=text):
        ld.forward_dynamics(slider(element), [x], [0.0], [0.0])


def test_functions_that_do_not_support_elements_say_so():
    model = slider(ld.ForceElement("s", "spring", "world", "mass", stiffness=1))
    state = [0.1], [0.0], [0.0]
    for call in (lambda **o: ld.higher_order_inverse_dynamics(model, state[0], [state[1], state[2]], **o),
                 lambda **o: ld.inverse_dynamics_second_derivatives(model, *state, **o),
                 lambda **o: ld.regressor(model, *state, **{"passive": True, **o})):
        with pytest.raises(ld.ModelError, match="not supported for robots with force elements"):
            call()
        call(passive=False)
    with pytest.raises(ld.ModelError, match=r"origin\.x\.wx are not supported"):
        ld.parameter_derivatives(model, *state, ["origin.x.wx"])
    rates = {"origin.x.wx": 1.0}
    d = ld.parameter_derivatives(model, *state, [*rates], passive=False)[:, 0]
    close(d, ld.inverse_dynamics_directional(model, *state, parameters=rates, passive=False)[1], 1e-15)


@pytest.mark.parametrize("field", ["name", "type", "a", "b", "stiffness", "damping", "free_length", "table", "preload"])
def test_values_of_wrong_types_are_named(field):
    for value in (1j, None, {"x": 1}, object(), [1, "a"]):
        values = {"name": "s", "type": "spring", "a": "world", "b": "mass", "stiffness": 1.0, field: value}
        if field == "table":
            del values["stiffness"]
        with pytest.raises(ld.ModelError, match=field.replace("_", " ")):
            slider(ld.ForceElement(**values))
    with pytest.raises(ld.ModelError, match="an element needs a name of printable characters"):
        slider(ld.ForceElement("", "spring", "world", "mass", stiffness=1))


# files -------------------------------------------------------------------------------------------------------------------
YAML = """links: {{b: {{mass: 1, inertia: [1, 1, 1]}}, c: {{}}}}
joints:
  j: {{type: continuous, parent: world, child: b, axis: [0, 1, 0]}}
  k: {{type: fixed, parent: b, child: c}}
elements:
  e: {{{}}}
"""


@pytest.mark.parametrize(("text", "message"), [
    ("type: sprin, a: world, b: b", r"r.yaml:6: elements.e.type: expected one of spring"),
    ("type: spring, a: world, b: b", r"r.yaml:6: elements.e: a spring element needs stiffness or table"),
    ("type: spring, a: world, b: x, stiffness: 1", r"r.yaml:6: elements.e.b: frame b is not on a link of this robot"),
    ("type: spring, a: b, b: c, stiffness: 1", r"r.yaml:6: elements.e.b: .*two frames of one body"),
    ("type: spring, a: world, b: b, stiffness: -1", r"r.yaml:6: elements.e.stiffness: negative stiffness"),
    ("type: spring, a: world, b: b, stiffness: 1, free_length: [2, 1]", r"free_length: the range of free lengths is swapped"),
    ("type: spring, a: world, b: b, stiffness: 1, table: [[0, 1], [1, 2]]", "both stiffness and table"),
    ("type: spring, a: world, b: b, table: [[1, 1], [1, 2]]", "the lengths in a table must increase"),
    ("type: damper, a: world, b: b, table: [[0, 1], [1, 2]]", r"the point \[0, 0\]: expected force 0 at speed 0"),
    ("type: damper, a: world, b: b, table: [[1, 1], [2, 5]]", r"does not contain the point \[0, 0\]"),
    ("type: damper, a: world, b: b, table: [[-1, 1], [0, 0], [1, 1]]", r"a damper cannot supply energy: .*got \[-1.0, 1.0\]"),
    ("type: damper, a: world, b: b, table: [[0, 0], [1, 5], [2, 4]], interpolation: linear", r"supply energy.*\[10.0, -4.0\]"),
    ("type: damper, a: world, b: b, table: [[-2, -4], [-1, -5], [0, 0]]", "beyond the points, got .-4.66"),
    ("type: damper, a: world, b: b, table: [[0, 0], [1, 0], [2, 0], [3, 5]], interpolation: cubic",
     "cannot supply energy.*got .1.57.*interpolation: monotone does not overshoot"),
    ("type: damper, a: world, b: b, damping: 1, stroke: 2", r"r.yaml:6: elements.e.stroke: a damper element has no stroke"),
    ("type: gas_spring, a: world, b: b, force: 1, extended_length: 1, stroke: 2, progression: 2", "stroke is not shorter"),
    ("type: gas_spring, a: world, b: b, force: 1, extended_length: 1, stroke: 0.5", "progression.*a number above 1"),
    ("type: bushing, a: world, b: b, stiffness: [1, 2, 3]", "6 numbers or rows"),
    ("type: spring, a: world, b: b, stiffness: 1, damping: [5, 9]", "a number, or a mapping with compression and extension;"),
    ("type: bushing, a: world, b: b, stiffness: [1, 1, 1, 1, 1, -1]", "not positive semidefinite"),
    ("type: torsion, a: world, b: b, stiffness: 1, axis: [0, 0, 0]", "the axis is the zero vector"),
])
def test_wrong_elements_give_one_line(tmp_path, text, message):
    (tmp_path / "r.yaml").write_text(YAML.format(text))
    with pytest.raises(ld.ModelError, match=message) as error:
        ld.load(tmp_path / "r.yaml")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["r.yaml", "r.urdf"])
def test_elements_are_written_and_read(tmp_path, name):
    one = ld.load_description("robots/double_pendulum.yaml")
    ends = 3 * [("world", "lower"), ("lower", "upper"), ("upper", "lower")]
    elements = [dataclasses.replace(x, a=a, b=b) for x, (a, b) in zip(ELEMENTS, ends, strict=True)]
    model = ld.build(dataclasses.replace(one, actuators=(), elements=elements))
    ld.save(model, tmp_path / name)
    again = ld.load(tmp_path / name)
    assert [x.name for x in again.description.elements] == NAMES
    q, v = [0.3, -0.2], [1.0, 0.5]
    np.testing.assert_allclose(ld.inverse_dynamics(again, q, v, v), ld.inverse_dynamics(model, q, v, v), rtol=1e-12)


def test_a_table_may_be_a_file_with_units(tmp_path):
    (tmp_path / "f.csv").write_text("x[mm],F[kN]\n100,-0.02\n200,0\n300,0.01\n")
    (tmp_path / "r.yaml").write_text(YAML.format("type: spring, a: {link: world, xyz: [1, 0, 0]}, b: b, table: f.csv"))
    assert ld.load(tmp_path / "r.yaml").description.elements[0].table == ((0.1, -20.0), (0.2, 0.0), (0.3, 10.0))
    (tmp_path / "f.csv").write_text("x[rad],F[kN]\n100,-0.02\n200,0\n")
    with pytest.raises(ld.ModelError, match=r"f.csv.*another unit: expected m, got 'rad'"):
        ld.load(tmp_path / "r.yaml")
