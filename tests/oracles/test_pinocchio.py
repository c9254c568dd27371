"""Every robot of example-robot-data against Pinocchio: fixed and floating base, one state at a time and in a batch.

Differences are relative to the largest entry of the same quantity in the same state. 1e-10 is what is promised; rounding
is what is found (see the table at the end of the session). Only forward dynamics and M^-1 of ill-conditioned robots may be
farther off, by eps cond(M): see `test_the_hand_of_icub_is_ill_conditioned_in_itself`."""
import numpy as np
import pinocchio as pin
import pytest

import liedyn as ld
from bridge import SWAP, PinocchioBridge, file_of, full, relative, robots_folder, urdf_files, worst_state
from liedyn.dynamics.singular_joints import joints_without_inertia

EPS, PROMISED, N = np.finfo(float).eps, 1e-10, 9        # nine states: a full block of Lanes and a remainder

# What we refuse, and why: each an error of the model, not of ours. Pinocchio loads the first one; its M is singular.
REFUSED = {
    "romeo_laas_small.urdf": 'link "body", <inertia>: the inertia is not positive semidefinite',
    "ur3.urdf": "no links in this robot",
}
# Joints at the ends of the fingers move no inertia: M is singular
WITHOUT_INERTIA = "romeo.urdf"
FILES = [path for path in urdf_files() if path.name not in (*REFUSED, WITHOUT_INERTIA)]

# One of each kind runs generated code: pendulum, arms, hand, quadrupeds, humanoid, mobile manipulator, lone body.
BY_LINES = {"double_pendulum_continuous", "kinova, fixed", "ur5_robot, fixed", "panda, floating", "allegro_left_hand, fixed",
            "solo12, floating", "go2, fixed", "anymal-kinova, floating", "talos_reduced, floating", "tiago_no_hand, fixed",
            "quadrotor_base"}
BASES = pytest.mark.parametrize("base", ["fixed", "floating"])


@pytest.fixture(scope="module", params=FILES, ids=[str(path.relative_to(robots_folder())) for path in FILES])
def path(request):
    return request.param


@pytest.fixture(scope="module", params=["fixed", "floating"])
def base(request):
    return request.param


@pytest.fixture(scope="module")
def case(path, base):
    """Read once for all tests of a robot, which pytest runs sequentially."""
    return Case(path, base)


@pytest.fixture
def by_few_lines(path, base, monkeypatch):
    """Whether generated code is used, of few robots where there is a function for each link, frame or mask."""
    few = (path.stem, base) in (("ur5_robot", "fixed"), ("allegro_left_hand", "fixed"), ("solo12", "floating"))
    if not few:
        monkeypatch.setenv("LIEDYN_CODE", "generic")
    return few


class Case:
    """A robot in random states: ours and Pinocchio's side by side."""

    def __init__(self, source, base="fixed", seed=1):
        self.model = model = source if isinstance(source, ld.Model) else ld.load(source, base=base).spanning_tree()
        self.bridge = PinocchioBridge(source if not isinstance(source, ld.Model) else model.source, model)
        rng = np.random.default_rng(seed)
        self.q = ld.random_configuration(model, rng, N)
        self.v, self.a, self.tau = rng.standard_normal((3, N, model.nv))
        self.Q = [self.bridge.q(x) for x in self.q]
        self.S = [self.bridge.S(x) for x in self.q]
        self.dS = [self.bridge.dS(x, y) for x, y in zip(self.q, self.v, strict=True)]
        self.V = [S @ v for S, v in zip(self.S, self.v, strict=True)]
        self.A = [S @ a + dS @ v for S, dS, v, a in zip(self.S, self.dS, self.v, self.a, strict=True)]

    @property
    def theirs(self):
        return self.bridge.pin, self.bridge.data

    def inverse(self):
        return np.array([S.T @ pin.rnea(*self.theirs, *x) for S, *x in zip(self.S, self.Q, self.V, self.A, strict=True)])

    def forward(self):
        out = []
        for S, dS, Q, V, v, tau in zip(self.S, self.dS, self.Q, self.V, self.v, self.tau, strict=True):
            A = pin.aba(*self.theirs, Q, V, np.linalg.solve(S.T, tau))
            out.append(np.linalg.solve(S, A - dS @ v))
        return np.array(out)

    def mass(self):
        return np.array([S.T @ full(pin.crba(*self.theirs, Q)) @ S for S, Q in zip(self.S, self.Q, strict=True)])

    def gravity(self):
        return np.array([S.T @ pin.computeGeneralizedGravity(*self.theirs, Q) for S, Q in zip(self.S, self.Q, strict=True)])

    def bias(self):
        return np.array([S.T @ pin.rnea(*self.theirs, Q, V, dS @ v)
                         for S, dS, Q, V, v in zip(self.S, self.dS, self.Q, self.V, self.v, strict=True)])


def one_by_one(function, model, *states):
    """Call the function with one state at a time (float64)."""
    return np.array([function(model, *row) for row in zip(*states, strict=True)])


def check(worst, case, what, ours, theirs, bound=PROMISED, least=0.0):
    """Compare on Lanes (a batch) and on float64 (one state at a time)."""
    function, states = ours
    for kind, values in (("Lanes", function(case.model, *states)), ("float64", one_by_one(function, case.model, *states))):
        off = worst_state(values, np.array(theirs), least)
        assert worst(f"Pinocchio, {kind}: {what}", off, f"{case.model.name}, {case.model.base}") < bound


def test_all_robots_are_here():
    """Of 69 files, two are errors by name, and one has joints without inertia."""
    assert len(urdf_files()) == 69 and len(FILES) == 66
    assert {path.stem for path in FILES} >= {name.partition(",")[0] for name in BY_LINES}


@pytest.mark.parametrize("name", REFUSED)
@BASES
def test_robots_that_are_refused(name, base):
    with pytest.raises(ld.ModelError) as caught:
        ld.load(file_of(name), base=base)
    assert str(caught.value).startswith(str(file_of(name))) and REFUSED[name] in str(caught.value)


@BASES
def test_inverse_dynamics_of_a_robot_without_inertia_at_the_fingertips(base):
    """Inverse dynamics, M, and hybrid dynamics in which these joints are prescribed. Forward dynamics names one of them."""
    case = Case(file_of(WITHOUT_INERTIA), base)
    model, tau = case.model, case.inverse()
    check(lambda _, off, __: off, case, "inverse dynamics", (ld.inverse_dynamics, (case.q, case.v, case.a)), tau)
    check(lambda _, off, __: off, case, "M", (ld.mass_matrix, (case.q,)), case.mass())
    names = joints_without_inertia(model)
    assert "RThumb3" in names
    mask = np.isin(model.v_names, names)
    found, forces = ld.hybrid_dynamics(model, case.q, case.v, case.a, tau, mask)
    assert np.abs(ld.inverse_dynamics(model, case.q, case.v, found) - forces).max() < 1e-9 * np.abs(tau).max()
    with pytest.raises(ld.ComputationError, match=f"the acceleration of joint '{names[0]}' is not defined"):
        ld.forward_dynamics(model, case.q, case.v, tau)


@pytest.mark.parametrize("name", [WITHOUT_INERTIA, "romeo_laas_small.urdf"])
def test_singular_robots_cannot_be_computed_by_pinocchio_either(name):
    """It loads them, and their M is singular: forward dynamics gives NaN."""
    model = pin.buildModelFromUrdf(str(file_of(name)))
    data, q, zero = model.createData(), pin.neutral(model), np.zeros(model.nv)
    assert np.linalg.eigvalsh(full(pin.crba(model, data, q)))[0] < 1e-15
    assert not np.isfinite(pin.aba(model, data, q, zero, zero + 1)).all()


def test_a_file_without_links_is_refused_by_pinocchio_too():
    with pytest.raises(ValueError, match="does not contain a valid URDF model"):
        pin.buildModelFromUrdf(str(file_of("ur3.urdf")))


def test_inverse_dynamics_and_what_follows_from_it(case, worst):
    m, q, v, a = case.model, case.q, case.v, case.a
    check(worst, case, "inverse dynamics", (lambda m, *x: ld.inverse_dynamics(m, *x, passive=False), (q, v, a)), case.inverse())
    check(worst, case, "bias", (ld.bias_force, (q, v)), case.bias())
    check(worst, case, "gravity", (ld.gravity_force, (q,)), case.gravity())
    assert m.nv == case.bridge.pin.nv and m.nq >= m.nv


def test_mass_matrix_and_forward_dynamics(case, worst):
    """Forward dynamics within 1e-10, or within eps cond(M) where that is more; its residual within 1e-12 always."""
    M = case.mass()
    check(worst, case, "mass matrix", (ld.mass_matrix, (case.q,)), M)
    if not case.model.nv:
        return
    forward = lambda m, q, v, tau: ld.forward_dynamics(m, q, v, tau, passive=False)      # noqa: E731
    cond = np.linalg.cond(M).max()
    bound = max(PROMISED, EPS * cond)
    label = "forward dynamics" if bound == PROMISED else "forward dynamics, cond(M) > 4e5"
    check(worst, case, label, (forward, (case.q, case.v, case.tau)), case.forward(), bound)
    label = label.replace("forward dynamics", "M^-1 M - 1")
    unit = np.broadcast_to(np.eye(case.model.nv), M.shape)
    check(worst, case, label, (lambda m, q, M: ld.inverse_mass_matrix(m, q) @ M, (case.q, M)), unit, 10 * bound)
    a = forward(case.model, case.q, case.v, case.tau)
    assert worst("residual of forward dynamics", residual(case, a), f"{case.model.name}, {case.model.base}") < 1e-12


def residual(case, a):
    """Return the residual of M a + b = tau by Pinocchio's inverse dynamics, relative to the maximum of its terms M_ij a_j."""
    out = 0.0
    for S, dS, Q, V, v, tau, x, M in zip(case.S, case.dS, case.Q, case.V, case.v, case.tau, a, case.mass(), strict=True):
        needed = S.T @ pin.rnea(*case.theirs, Q, V, S @ x + dS @ v)
        scale = max(np.abs(M * x).max(), np.abs(tau).max())
        out = max(out, np.abs(needed - tau).max() / scale)
    return out


def test_the_hand_of_icub_is_ill_conditioned_in_itself(worst):
    """Fingers of 1e-8 kg m^2 on a body of 30 kg: cond(M) reaches 5e9, so that the last bit of a force moves the answer by 1e-7.
    Ours and Pinocchio's then differ by 1e-9; both solve the equation to rounding, and neither better than the other."""
    case = Case(file_of("icub.urdf"))
    cond = np.linalg.cond(case.mass()).max()
    ours = ld.forward_dynamics(case.model, case.q, case.v, case.tau, passive=False)
    theirs = case.forward()
    assert cond > 1e8
    difference = worst_state(ours, theirs)
    assert PROMISED < difference < 0.1 * EPS * cond
    assert residual(case, ours) < max(2 * residual(case, theirs), 1e-15)
    nudged = ld.forward_dynamics(case.model, case.q, case.v, case.tau * (1 + EPS), passive=False)
    assert worst_state(nudged, ours) > 0
    exact = [refined(M, tau - b, a) for M, tau, b, a in zip(case.mass(), case.tau, case.bias(), ours, strict=True)]
    assert worst_state(ours, exact) < 20 * max(worst_state(theirs, exact), PROMISED)


def refined(M, rhs, a):
    """Return M^-1 rhs in extended precision, from an approximate solution."""
    M, rhs, a = (np.asarray(x, dtype=np.longdouble) for x in (M, rhs, a))
    for _ in range(5):
        a = a + np.linalg.solve(M.astype(float), (rhs - M @ a).astype(float))
    return a


def test_energy_momentum_and_centre_of_mass(case, worst):
    if not case.model.nv:
        return
    kinetic = np.array([[pin.computeKineticEnergy(*case.theirs, Q, V)] for Q, V in zip(case.Q, case.V, strict=True)])
    mass = pin.computeTotalMass(*case.theirs)
    potential = np.array([pin.computePotentialEnergy(*case.theirs, Q) for Q in case.Q]) / (9.81 * mass)     # a height
    centre, momentum = [], []
    for Q, V in zip(case.Q, case.V, strict=True):
        h = pin.computeCentroidalMomentum(*case.theirs, Q, V)
        centre.append(pin.centerOfMass(*case.theirs, Q).copy())
        momentum.append(np.r_[h.angular + np.cross(centre[-1], h.linear), h.linear])
    check(worst, case, "kinetic energy", (lambda m, q, v: np.reshape(ld.energy(m, q, v)[0], (-1, 1)), (case.q, case.v)), kinetic)
    height = lambda m, q, v: np.reshape(ld.energy(m, q, v)[1] / (9.81 * mass), (-1, 1))     # noqa: E731
    for function in (height, lambda *x: one_by_one(height, *x)):
        off = np.abs(np.ravel(function(case.model, case.q, case.v)) - potential).max()
        assert worst("Pinocchio: height of the centre of mass [m]", off, case.model.name) < PROMISED
    check(worst, case, "centre of mass", (ld.centre_of_mass, (case.q,)), centre)
    check(worst, case, "momentum", (ld.momentum, (case.q, case.v)), momentum)


FRAMES = {"local": pin.LOCAL, "world": pin.WORLD, "local_world_aligned": pin.LOCAL_WORLD_ALIGNED}


def test_poses_of_all_links(case, worst):
    theirs = []
    for Q in case.Q:
        pin.framesForwardKinematics(*case.theirs, Q)
        frames = [case.bridge.pin.getFrameId(name, pin.FrameType.BODY) for name in case.model.link_names]
        theirs.append([case.bridge.data.oMf[k].homogeneous for k in frames])
    check(worst, case, "link poses", (ld.link_poses, (case.q,)), theirs)


def test_jacobians_twists_and_accelerations_of_links(case, by_few_lines, worst):
    """Of six links (two by generated code), the last among them, in three frames. Accelerations are Pinocchio's spatial ones in
    LOCAL and WORLD, and its classical ones in LOCAL_WORLD_ALIGNED."""
    if not case.model.nv:
        return
    names = case.model.link_names
    links = [names[len(names) // 2]] if by_few_lines else names[::-(-len(names) // 5)]
    for name in dict.fromkeys([*links, names[-1]]):
        frame = case.bridge.pin.getFrameId(name, pin.FrameType.BODY)
        J, dJ, twists, accelerations = ({key: [] for key in FRAMES} for _ in range(4))
        for k in range(N):
            Q, V, A = case.Q[k], case.V[k], case.A[k]
            pin.computeJointJacobiansTimeVariation(*case.theirs, Q, V)
            pin.forwardKinematics(*case.theirs, Q, V, A)
            pin.updateFramePlacements(*case.theirs)
            for key, value in FRAMES.items():
                J0 = pin.getFrameJacobian(*case.theirs, frame, value)[SWAP]
                J[key].append(J0 @ case.S[k])
                dJ[key].append(pin.getFrameJacobianTimeVariation(*case.theirs, frame, value)[SWAP] @ case.S[k] + J0 @ case.dS[k])
                twists[key].append(pin.getFrameVelocity(*case.theirs, frame, value).vector[SWAP])
                rate = pin.getFrameClassicalAcceleration if value == pin.LOCAL_WORLD_ALIGNED else pin.getFrameAcceleration
                accelerations[key].append(rate(*case.theirs, frame, value).vector[SWAP])
        for key in FRAMES:
            check(worst, case, "twists", (lambda m, q, v, n=name, f=key: ld.link_twist(m, q, v, n, frame=f), (case.q, case.v)),
                  twists[key], least=1.0)
            check(worst, case, "accelerations", (lambda m, q, v, a, n=name, f=key: ld.link_acceleration(m, q, v, a, n, frame=f),
                                                 (case.q, case.v, case.a)), accelerations[key], least=1.0)
            check(worst, case, "Jacobians", (lambda m, q, n=name, f=key: ld.jacobian(m, q, n, frame=f), (case.q,)), J[key])
            check(worst, case, "derivatives of Jacobians", (
                lambda m, q, v, n=name, f=key: ld.jacobian_derivative(m, q, v, n, frame=f), (case.q, case.v)), dJ[key], least=1.0)


def test_hybrid_dynamics_of_random_masks_by_pinocchios_inverse_dynamics(case, by_few_lines, worst):
    m, rng = case.model, np.random.default_rng(2)
    if not m.nv:
        return
    for share in (0.1, 0.5, 0.9):
        mask = rng.random(m.nv) < share
        given = np.where(mask, case.a, np.nan), np.where(mask, np.nan, case.tau)
        many = ld.hybrid_dynamics(m, case.q, case.v, *given, mask, passive=False)
        one = ld.hybrid_dynamics(m, case.q[0], case.v[0], given[0][0], given[1][0], mask, passive=False)
        for kind, a, tau in (("Lanes", *many), ("float64", one[0][None], one[1][None])):
            np.testing.assert_array_equal(a[:, mask], case.a[:len(a), mask])
            np.testing.assert_array_equal(tau[:, ~mask], case.tau[:len(a), ~mask])
            for k in range(len(a)):
                needed = case.S[k].T @ pin.rnea(*case.theirs, case.Q[k], case.V[k], case.S[k] @ a[k] + case.dS[k] @ case.v[k])
                M = full(pin.crba(*case.theirs, case.Q[k]))
                scale = max(np.abs(case.S[k].T @ (M * (case.S[k] @ a[k]))).max(), np.abs(tau[k]).max())
                off = np.abs(needed - tau[k]).max() / scale
                assert worst(f"Pinocchio, {kind}: hybrid by ID", off, f"{m.name}, {m.base}") < PROMISED


PLANAR = """<robot name="planar">
  <link name="ground"/>
  {links}
  <joint name="skate" type="planar">
    <parent link="ground"/><child link="a"/><axis xyz="0 0 1"/><origin xyz="1 2 3" rpy=".1 .2 .3"/>
  </joint>
  <joint name="wheel" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/><origin xyz=".1 .2 .3"/></joint>
  <joint name="board" type="planar">
    <parent link="b"/><child link="c"/><axis xyz="0 0 1"/><origin xyz="-.1 .2 0" rpy="1 0 0"/>
  </joint>
  <joint name="rail" type="prismatic">
    <parent link="c"/><child link="d"/><axis xyz="1 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
  <joint name="kite" type="floating"><parent link="d"/><child link="e"/><origin xyz="0 0 1" rpy="0 .3 0"/></joint>
</robot>"""
LINK = """<link name="{}"><inertial><origin xyz=".1 .2 .3" rpy="0 .1 .2"/><mass value="2"/>
  <inertia ixx=".1" ixy=".01" ixz="0" iyy=".2" iyz=".02" izz=".15"/></inertial></link>"""


@BASES
def test_planar_continuous_and_floating_joints_inside_a_tree(base, tmp_path, worst):
    """Joint types that example-robot-data has not: Pinocchio's planar velocity is that of the moving frame."""
    text = PLANAR.format(links="\n".join(LINK.format(name) for name in "abcde"))
    if base == "floating":
        text = text.replace('<link name="ground"/>', LINK.format("ground"))
    path = tmp_path / "planar.urdf"
    path.write_text(text, encoding="utf-8")
    case = Case(path, base)
    assert {joint.type for joint in case.model.joints} >= {"planar", "continuous", "prismatic", "free"}
    check(worst, case, "planar joints", (ld.inverse_dynamics, (case.q, case.v, case.a)), case.inverse())
    check(worst, case, "planar joints", (ld.forward_dynamics, (case.q, case.v, case.tau)), case.forward())
    check(worst, case, "planar joints", (ld.mass_matrix, (case.q,)), case.mass())
    check(worst, case, "planar joints", (ld.bias_force, (case.q, case.v)), case.bias())
    assert relative(ld.gravity_force(case.model, case.q), case.gravity()) < PROMISED
