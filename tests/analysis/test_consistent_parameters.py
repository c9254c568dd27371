"""Consistent parameters: against a conic solver, closed forms, exact data, frames of links, and what cannot be done."""
import re
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.nonlinear_parameters import stribeck_friction
from liedyn.model.spatial import (
    exp3,
    inertia_from_link,
    inertia_of_pseudo_inertia,
    pseudo_inertia,
    transform_inertia,
)
from sampled_motion import motion

T = np.linspace(0.0, 4.0, 401)


def motion_of(model):
    q, v = motion(model, T, 2, speed=4.0)
    return q, v[:, 0], v[:, 1]


def fitted(file, truth=None, noise=0.0, **options):
    """Fit of the robot `file` to a motion of the robot `truth`, with white noise relative to the maximum torque."""
    q, v, a = motion_of(file)
    tau = ld.inverse_dynamics(truth or file, q, v, a)
    tau = tau + noise * np.abs(tau).max() * np.random.default_rng(4).standard_normal(tau.shape)
    return ld.identify(file, T, q, tau, v=v, a=a, **options)


def eigenvalues(result):
    """Of the pseudo-inertias of all links, relative to the maximum of each."""
    links = [k for k, name in enumerate(result.names) if name.startswith("mass.")]
    found = np.array([np.linalg.eigvalsh(pseudo_inertia(result.values[k:k + 10])) for k in links])
    return found / found.max(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def chain():
    """Two links of different shapes and a damped joint."""
    links = [ld.Link("one", shape=ld.Shape.box(0.6, 0.1, 0.2), density=300, com=[0.3, 0.02, 0.1]),
             ld.Link("two", shape=ld.Shape.box(0.1, 0.3, 0.4), density=200, com=[0.1, 0.0, -0.2])]
    joints = [ld.Joint("p", "revolute", "world", "one", axis=[0, 1, 0], damping=0.3),
              ld.Joint("r", "revolute", "one", "two", [0.6, 0.0, 0.0], axis=[1, 0, 0])]
    return ld.build(ld.Robot("chain", links, joints))


@pytest.fixture(scope="module")
def body():
    return ld.load("robots/asymmetric_body.yaml")


def objective(fit, weight, values):
    links = pseudo_inertia(values.reshape(-1, 10)), pseudo_inertia(fit.base.parameters.values.reshape(-1, 10))
    relative = np.linalg.solve(links[1], links[0])
    distance = np.trace(relative, axis1=1, axis2=2) - np.linalg.slogdet(relative)[1] - 4.0
    return 0.5 * np.sum((fit.root_information @ (fit.base.matrix @ values - fit.values))**2) + weight * distance.sum()


def by_conic_solver(fit, weight):
    """Parameters of the same problem, without joint parameters, by linear matrix inequalities and exponential cones.

    The logarithm of a determinant is the maximum of the sum of log D_ii, where [J Z; Z^T diag(Z)] is positive semidefinite and Z
    is lower triangular with the diagonal D. Variables: parameters, then for each link ten entries of Z and four bounds of log D.
    """
    import clarabel
    from scipy.sparse import csc_matrix
    A, prior = fit.root_information @ fit.base.matrix, fit.base.parameters.values
    count, P = len(prior) // 10, len(prior)
    n = P + 14 * count
    quadratic, linear = np.zeros((n, n)), np.zeros(n)
    quadratic[:P, :P], linear[:P] = A.T @ A, -A.T @ fit.root_information @ fit.values
    basis = pseudo_inertia(np.eye(10))
    rows, rhs, cones = [], [], []
    lower = list(zip(*np.tril_indices(4), strict=True))
    for link in range(count):
        own = slice(10 * link, 10 * link + 10)
        linear[own] += weight * np.einsum("ij,kji->k", np.linalg.inv(pseudo_inertia(prior[own])), basis)
        Z, t = P + 14 * link, P + 14 * link + 10
        linear[t:t + 4] -= weight
        M = np.zeros((n, 8, 8))
        M[own, :4, :4] = basis
        for k, (i, j) in enumerate(lower):
            M[Z + k, i, 4 + j] = M[Z + k, 4 + j, i] = 1.0
            if i == j:
                M[Z + k, 4 + i, 4 + i] = 1.0
        i, j = np.tril_indices(8)                                   # by columns of the upper triangle
        rows.append(-(M[:, j, i] * np.where(i == j, 1.0, np.sqrt(2.0))).T)
        rhs.append(np.zeros(36))
        cones.append(clarabel.PSDTriangleConeT(8))
        for k in range(4):                                          # exp(t) <= D
            block = np.zeros((3, n))
            block[0, t + k], block[2, Z + lower.index((k, k))] = -1.0, -1.0
            rows.append(block)
            rhs.append(np.array([0.0, 1.0, 0.0]))
            cones.append(clarabel.ExponentialConeT())
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(csc_matrix(np.triu(quadratic)), linear, csc_matrix(np.concatenate(rows)),
                                    np.concatenate(rhs), cones, settings)
    return np.array(solver.solve().x)[:P]


@pytest.mark.parametrize("weight", [1.0, 1e-3])
def test_the_minimum_is_that_of_a_conic_solver(chain, weight):
    """Whether the estimates of the base parameters are possible or not."""
    heavy = chain.with_changes(mass={"two": 2.0}, com={"one": [0.25, 0.0, 0.0]})
    fit = fitted(chain, heavy, 0.1, joints=(), offset=False)
    result = ld.consistent_parameters(fit, prior_weight=weight)
    expected = by_conic_solver(fit, weight)
    assert np.abs(result.values - expected).max() < 2e-6 / weight * np.abs(expected).max()    # the solver's, of a flat minimum
    assert objective(fit, weight, result.values) <= objective(fit, weight, expected) + 1e-9
    assert eigenvalues(result).min() > 0.0


def test_a_damping_alone_has_a_closed_form(chain):
    """4 w (x / x0 - log(x / x0) - 1) + (x - m)^2 / (2 s^2) is minimal at the positive root of a quadratic equation."""
    fit = fitted(chain, chain.with_changes(damping={"p": 0.5}), 0.3, joints=["damping"], offset=False)
    result = ld.consistent_parameters(fit, only=[], prior_weight=3.0)
    k, other = (result.names.index(f"damping.{name}") for name in "pr")
    fixed = result.prior.copy()
    fixed[k], fixed[other] = 0.0, result.values[other]
    A = fit.root_information @ fit.base.matrix
    column, y = A[:, k], fit.root_information @ fit.values - A @ fixed
    variance, mean, x0 = 1.0 / (column @ column), column @ y / (column @ column), 0.3
    half = 0.5 * (mean - 12.0 * variance / x0)
    assert result.values[k] == pytest.approx(half + np.sqrt(half**2 + 12.0 * variance), rel=1e-9)
    assert result.values[k] != pytest.approx(mean, rel=1e-3)


def test_a_joint_without_damping_is_not_pushed(chain):
    """Noise gives a negative estimate of a value that is zero in the robot file."""
    fit = fitted(chain, chain.with_changes(damping={"r": 0.0}), 0.3, joints=["damping"])
    k = fit.names.index("damping.r")
    negative = replace(fit, values=np.where(np.arange(len(fit)) == k, -10.0 * fit.deviations[k], fit.values))
    result = ld.consistent_parameters(negative)
    assert result.values[result.names.index("damping.r")] == 0.0 and result.deviations[result.names.index("damping.r")] > 0.0
    assert result.model.description.joints[1].damping == 0.0


def test_exact_data_give_the_true_body_whatever_the_robot_file(body):
    """All ten parameters of a body that moves freely have an effect."""
    other = body.with_changes(mass={"block": 9.0}, com={"block": [0.1, 0.2, -0.1]}, inertia={"block": [0.3, 0.2, 0.25]})
    fit = fitted(other, body)
    result = ld.consistent_parameters(fit)
    expected = inertia_from_link(body.description.links[0])
    np.testing.assert_allclose(result.values[:10], expected, rtol=0, atol=1e-9)
    link = result.model.description.links[0]
    assert link.mass == pytest.approx(4.2) and np.abs(link.com).max() < 1e-8
    assert (result.data_share[:10] > 0.99).all() and not result.warnings


def test_a_floating_base_has_no_damping(body):
    """It is no joint of the robot file; its columns of the regressor have estimates."""
    result = ld.consistent_parameters(fitted(body, noise=0.01, joints=["armature", "damping"]))
    base = [k for k, name in enumerate(result.names) if ".base." in name]
    assert len(base) == 12 and not result.values[base].any() and not result.deviations[base].any()
    assert result.changes.keys() == {"mass", "com", "inertia"}


def test_an_estimate_that_cannot_exist_becomes_a_body(body):
    thin = body.with_changes(inertia={"block": [0.01, 0.0101, 0.02]})
    fit = fitted(body, thin, 0.05, offset=False)
    assert np.linalg.eigvalsh(pseudo_inertia(fit.values[np.argsort(fit.base.columns)])).min() < 0.0
    result = ld.consistent_parameters(fit, prior_weight=0.01)
    assert 0.0 < eigenvalues(result).min() < 0.01
    assert ld.mass_matrix(result.model, result.model.neutral()).shape == (6, 6)


def test_the_frame_of_a_link_has_no_effect(chain):
    """A body that is fixed to its frame in another way is the same body. Frames without mass stay without."""
    at = np.eye(4)
    at[:3, :3], at[:3, 3] = exp3([0.3, -0.8, 0.5]), [0.2, 0.4, -0.1]
    results = []
    for P in (np.eye(4), at):
        links, joints = [], []
        for joint, link in zip(chain.description.joints, chain.description.links, strict=True):
            I = transform_inertia(np.linalg.inv(P), inertia_from_link(link))
            c = I[1:4] / I[0]
            about = np.array(link.inertia)[[[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
            links += [ld.Link(link.name), ld.Link(f"{link.name} body", I[0], c, P[:3, :3].T @ about @ P[:3, :3])]
            joints += [joint, ld.Joint(f"{link.name} mount", "fixed", link.name, f"{link.name} body", P)]
        model = ld.build(ld.Robot("framed", links, joints))
        fit = fitted(model, model.with_changes(mass={"two body": 3.0}), 0.05)
        with pytest.warns(ld.LiedynWarning, match="one, two have no mass") as messages:
            result = ld.consistent_parameters(fit)
        assert [message.message.code for message in messages] == ["links-without-prior"]
        starts = [result.names.index(f"mass.{name} body") for name in ("one", "two")]
        results.append([transform_inertia(P, result.values[k:k + 10]) for k in starts])
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=1e-8)


def test_a_spring_gets_its_rest_position(chain):
    true = chain.with_changes(stiffness={"r": 4.0}, rest={"r": 0.3})
    fit = fitted(chain.with_changes(stiffness={"r": 1.0}), true, joints=["stiffness"], offset=False)
    result = ld.consistent_parameters(fit)
    joint = result.model.description.joints[1].coordinate_parameters[0]
    assert joint.stiffness == result.values[result.names.index("stiffness.r")] > 2.0
    assert joint.stiffness * joint.rest == pytest.approx(1.2, abs=1e-6)


def test_several_fits_are_combined_by_their_information(chain):
    fit = fitted(chain, noise=0.05)
    twice = ld.consistent_parameters([fit, fit], prior_weight=0.1)
    once = ld.consistent_parameters(replace(fit, root_information=np.sqrt(2.0) * fit.root_information), prior_weight=0.1)
    np.testing.assert_allclose(twice.values, once.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(twice.deviations, once.deviations, rtol=1e-9, atol=1e-12)
    with pytest.raises(ld.UsageError, match="of different robots"):
        ld.consistent_parameters([fit, fitted(chain.with_changes(mass={"two": 2.0}))])
    with pytest.raises(ld.UsageError, match="there is no fit"):
        ld.consistent_parameters([])


@pytest.mark.parametrize("only", [None, ["two"], []])
def test_misfit_is_the_distance_from_all_estimates(chain, only):
    """Also from those that links with the values of the robot file determine."""
    fit = fitted(chain, chain.with_changes(mass={"one": 4.0, "two": 6.0}), 0.02)
    result = ld.consistent_parameters(fit, only=only)
    residual = fit.root_information @ (fit.base.matrix @ result.values - fit.values)
    assert result.misfit == pytest.approx(residual @ residual, rel=1e-6)


def test_recordings_that_contradict_each_other_are_told(chain):
    """They do not count in the misfit of the parameters, which is the distance from the common estimate."""
    fit = fitted(chain, noise=0.02)
    fits = [replace(fit, values=fit.values + np.linalg.solve(fit.root_information, noise))
            for noise in np.random.default_rng(2).standard_normal((5, len(fit)))]
    result, common = ld.consistent_parameters(fits), np.mean([one.values for one in fits], axis=0)
    residual = fit.root_information @ (fit.base.matrix @ result.values - common)
    assert result.misfit == pytest.approx(5.0 * residual @ residual, rel=1e-6)
    assert not {"recordings-contradict", "consistent-misfit"} & {warning.code for warning in result.warnings}
    with pytest.warns(ld.LiedynWarning, match="estimates of the 2 recordings differ from each other by chi.* for 14 degrees"):
        ld.consistent_parameters([fits[0], fitted(chain, chain.with_changes(mass={"two": 3.0}), 0.02)])


@pytest.fixture(scope="module")
def legs():
    """A body with three links, two of which are mirror images, with an estimate of noisy torques, and the true parameters."""
    box = ld.Shape.box(0.1, 0.3, 0.4)
    links = [ld.Link("body", shape=ld.Shape.box(0.6, 0.1, 0.2), density=300, com=[0.3, 0.02, 0.1]),
             *(ld.Link(name, shape=box, density=200, com=[0.1, 0.0, -0.2]) for name in ("left", "right", "tail"))]
    joints = [ld.Joint("p", "revolute", "world", "body", axis=[0, 1, 0], damping=0.3),
              ld.Joint("l", "revolute", "body", "left", [0.6, 0.3, 0.0], axis=[1, 0, 0]),
              ld.Joint("r", "revolute", "body", "right", [0.6, -0.3, 0.0], axis=[1, 0, 0]),
              ld.Joint("t", "revolute", "body", "tail", [0.0, 0.0, 0.0], axis=[0, 1, 1])]
    file = ld.build(ld.Robot("legs", links, joints))
    true = file.with_changes(mass=dict.fromkeys(("left", "right"), 3.0),
                             com={"left": [0.15, 0.05, -0.1], "right": [0.15, -0.05, -0.1]})
    return fitted(file, true, noise=3e-3), dict(zip(*ld.inertial_parameters(true)[1::-1], strict=True))


def test_mirrored_links_are_mirror_images_and_nearer_to_the_truth(legs):
    fit, true = legs
    alone, mirrored, heavy = (ld.consistent_parameters(fit, equal=equal, total_mass=mass) for equal, mass in (
        ({}, None), ({"left": ("right", "y")}, None), ({"right": ("left", "y"), "tail": "left"}, 30.0)))
    of = [dict(zip(result.names, result.values, strict=True)) for result in (alone, mirrored, heavy)]
    for values in of[1:]:
        for number in ("mass", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"):
            sign = -1.0 if number.count("y") == 1 else 1.0
            assert values[f"{number}.left"] == pytest.approx(sign * values[f"{number}.right"], rel=1e-9, abs=1e-12)
    assert sum(x for name, x in of[2].items() if name.startswith("mass.")) == pytest.approx(30.0)
    assert of[2]["hy.tail"] == pytest.approx(of[2]["hy.left"])
    errors = [[abs(values[f"mass.{leg}"] - true[f"mass.{leg}"]) for leg in ("left", "right")] for values in of]
    assert max(errors[1]) < max(errors[0]) and (eigenvalues(heavy) > 0.0).all()
    k = mirrored.names.index("mass.left")
    assert mirrored.deviations[k] < 0.9 * alone.deviations[k] and mirrored.misfit > alone.misfit


def test_a_known_value_counts_by_its_deviation(legs):
    """Between the value without it and the known one, by inverse variances; it is no part of the data."""
    fit, _ = legs
    alone, (k, other) = ld.consistent_parameters(fit), map(fit.base.parameters.names.index, ("damping.p", "mass.tail"))
    x, s = alone.values[k], alone.deviations[k]
    known = ld.consistent_parameters(fit, prior={"damping.p": (x + s, s)})
    assert known.values[k] == pytest.approx(x + 0.5 * s, abs=0.05 * s)
    assert known.deviations[k] == pytest.approx(s / 2**0.5, rel=0.05)
    exact = ld.consistent_parameters(fit, prior={"mass.tail": (2.5, 1e-5)}, fixed=["damping.*", "*.body"])
    assert exact.values[other] == pytest.approx(2.5, abs=1e-4) and exact.data_share[other] < 0.01
    kept = [name in ("damping.p",) or name.endswith(".body") for name in exact.names]
    assert (exact.deviations[kept] == 0.0).all() and (exact.values[kept] == exact.prior[kept]).all()


def test_weights_multiply_the_information_of_fits(legs):
    fit, _ = legs
    twice, weighted = ld.consistent_parameters([fit, fit]), ld.consistent_parameters(fit, weights=[2.0])
    np.testing.assert_allclose(weighted.values, twice.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weighted.deviations, twice.deviations, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options, text", [
    ({"weights": [1.0, 2.0]}, "weights must be 1 numbers > 0, one for each fit"), ({"weights": [0.0]}, r"> 0, .* got \[0.0\]"),
    ({"equal": {"left": "left"}}, "links left and left are already equal by other pairs, or the same"),
    ({"equal": {"left": "rigth"}}, "no moving link 'rigth'; did you mean 'right'"), ({"equal": {"left": 3}}, "got 3"),
    ({"equal": {"left": ("right", "w")}}, "an axis x, y or z of its mirror image"),
    ({"equal": {"left": "right"}, "only": ["left"]}, "equal: right keep the values of the robot file: estimate both"),
    ({"fixed": "mass.left"}, "only some of the parameters of link left are fixed: fix all ten"),
    ({"fixed": ["demping.p"]}, "no parameter 'demping.p'; did you mean 'damping.p'"),
    ({"prior": {"mass.left": (3.0, 0.0)}}, "prior of mass.left must be a value and its standard deviation > 0"),
    ({"prior": {"mass.left": 3.0}}, "got 3.0"), ({"prior": {"mass.left": (3.0, 1.0)}, "fixed": "*.left"}, "are not estimated")])
def test_what_cannot_be_known(legs, options, text):
    with pytest.raises((ld.UsageError, ld.NameLookupError), match=text):
        ld.consistent_parameters(legs[0], **options)


def test_a_fit_that_is_passed_twice_is_told(chain):
    fits = [fitted(chain, chain.with_changes(mass={"two": m}), noise=1e-3) for m in (2.0, 2.01)]
    codes = [warning.code for warning in ld.consistent_parameters([*fits, fits[0]]).warnings]
    assert "recording-repeated" in codes
    assert "recording-repeated" not in [warning.code for warning in ld.consistent_parameters(fits).warnings]


@pytest.mark.parametrize("weight", [1.0, 25.0])
def test_the_weight_is_the_deviation_of_the_robot_file(chain, weight):
    """Mass and second moments of mass of a link are known to 1 / sqrt(weight), and a joint parameter to half of this."""
    fit = fitted(chain, noise=0.02)
    result = ld.consistent_parameters(replace(fit, root_information=0.0 * fit.root_information), prior_weight=weight)
    deviation = dict(zip(result.names, result.deviations / np.abs(result.prior), strict=True))
    assert deviation["mass.one"] == pytest.approx(1.0 / np.sqrt(weight))
    assert deviation["damping.p"] == pytest.approx(0.5 / np.sqrt(weight))


def test_only_a_payload(chain):
    """The other links keep the values of the robot file."""
    fit = fitted(chain, chain.with_changes(mass={"two": 6.0}), 0.01)
    result = ld.consistent_parameters(fit, only=["tw*"], prior_weight=0.01)
    assert (result.values[:10] == result.prior[:10]).all() and not result.covariance[:10].any()
    assert not result.data_share[:10].any() and (result.deviations[10:] > 0.0).all()
    assert abs(result.values[10] - 6.0) < 4.0 * result.deviations[10] and result.data_share[10:20].max() > 0.99
    with pytest.raises(ld.NameLookupError, match=r"no moving link 'tow'; did you mean 'two'\?"):
        ld.consistent_parameters(fit, only=["tow"])


def test_total_mass(chain):
    fit = fitted(chain, chain.with_changes(mass={"one": 5.0}), 0.02)
    result = ld.consistent_parameters(fit, total_mass=7.4)
    assert sum(link.mass for link in result.model.description.links) == pytest.approx(7.4, rel=1e-12)
    assert np.ones(2) @ result.covariance[::10, ::10][:2, :2] @ np.ones(2) < 1e-12
    with pytest.raises(ld.UsageError, match=r"total_mass is 3\.0 kg: expected more than 3\.6 kg"):
        ld.consistent_parameters(fit, only=["two"], total_mass=3.0)
    with pytest.raises(ld.UsageError, match=r"total_mass is inf kg: expected more than 0 kg, .* and a finite number"):
        ld.consistent_parameters(fit, total_mass=np.inf)
    with pytest.raises(ld.UsageError, match="total_mass needs a link whose inertia is estimated"):
        ld.consistent_parameters(fit, only=[], total_mass=9.0)


@pytest.mark.parametrize(("total_mass", "is_wrong"), [(7.4, False), (30.0, True)])
def test_a_total_mass_that_contradicts_the_recording_is_named(chain, total_mass, is_wrong):
    """Without it, the recording and the robot file give the true mass. The robot file is not blamed."""
    fit = fitted(chain, chain.with_changes(mass={"one": 5.0}), 0.02)
    warnings = ld.consistent_parameters(fit, total_mass=total_mass, prior_weight=25.0).warnings
    codes = {one.code for one in warnings}
    assert ("total-mass-contradicted" in codes) == is_wrong and not codes & {"consistent-misfit", "prior-contradicts-recordings"}
    if is_wrong:
        mass, deviation = re.search(r"^the total mass of 30 kg contradicts .* which give (\S+) \+- (\S+) kg: correct total_mass$",
                                    warnings[0].message).groups()
        assert abs(float(mass) - 7.4) < 5.0 * float(deviation) < 7.4


@pytest.mark.parametrize("only", [None, ["two"]])
@pytest.mark.parametrize(("factor", "weight", "is_wrong"), [
    (1.0, 1.0, False), (1.05, 25.0, False), (0.95, 100.0, False), (30.0, 1.0, True), (2.0, 100.0, True), (2.0, 0.01, False)])
def test_a_robot_file_that_its_weight_makes_wrong_is_named(chain, only, factor, weight, is_wrong):
    two = chain.description.links[1]
    truth = chain.with_changes(mass={"two": factor * two.mass}, inertia={"two": factor * np.array(two.inertia)})
    result = ld.consistent_parameters(fitted(chain, truth, 0.02), only=only, prior_weight=weight)
    warnings = [one.message for one in result.warnings if one.code == "prior-contradicts-recordings"]
    assert len(warnings) == is_wrong
    if is_wrong:
        assert re.search(rf"^the recordings contradict the robot file: .*two \(\S+ deviations\)\. With its weight of {weight:g}, "
                         ".* lower prior_weight$", warnings[0])


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf, True, "none"])
def test_a_weight_is_positive(chain, weight):
    with pytest.raises(ld.UsageError, match=r"prior_weight is .*expected a number >= 1e-06"):
        ld.consistent_parameters(fitted(chain), prior_weight=weight)


@pytest.mark.parametrize("true, expected", [(0.5, None), (400.0, 0.01), (1e-3, 1e4)])
def test_the_likeliest_weight_of_a_damping_alone_has_a_closed_form(chain, true, expected):
    """An estimate m with the variance s^2 and the prior variance 1 / (4 w) about 0 is likeliest for 1 / (4 w) = m^2 - s^2."""
    fit = fitted(chain, chain.with_changes(damping={"r": true}), 1e-3, joints=["damping"], offset=False, fixed="damping.p")
    result = ld.consistent_parameters(fit, only=[], prior_weight="auto")
    k = result.names.index("damping.r")
    column = fit.root_information @ fit.base.matrix[:, k]
    variance = 1.0 / (column @ column)
    mean = variance * column @ (fit.root_information @ (fit.values - fit.base.matrix @ np.where(
        np.arange(len(result)) == k, 0.0, result.prior)))
    weight = 0.25 * fit.base.sizes[k]**2 / max(mean**2 - variance, 1e-12)
    assert result.prior_weight == pytest.approx(weight if expected is None else expected, rel=0.06)
    np.testing.assert_array_equal(result.values, ld.consistent_parameters(fit, only=[], prior_weight=result.prior_weight).values)


def test_the_likeliest_weight_is_larger_for_a_better_robot_file(chain):
    """Noise of 10 % of the torques: the masses are nearer to the true ones than with the weight 1."""
    weights, errors = [], []
    for error in (0.02, 0.3):
        truth = chain.with_changes(mass={"one": chain.description.links[0].mass * (1.0 + error)})
        fit = fitted(chain, truth, 0.1, offset=False)
        results = [ld.consistent_parameters(fit, prior_weight=weight) for weight in ("auto", 1.0)]
        weights.append(results[0].prior_weight)
        k = results[0].names.index("mass.one")
        errors.append([abs(each.values[k] - truth.description.links[0].mass) for each in results])
    assert weights[0] > 3.0 * weights[1] and errors[0][0] < errors[0][1], (weights, errors)


def test_a_flat_link_of_the_robot_file_is_told(chain):
    for inertia, com in (([0.0, 0.0, 0.0], [0.3, 0.0, 0.0]), ([0.1, 0.2, 0.4], [0.3, 0.0, 0.0])):
        fit = fitted(chain.with_changes(inertia={"one": inertia}, com={"one": com}), chain)
        with pytest.warns(ld.LiedynWarning, match="inertias of the links one in the robot file cannot exist"):
            result = ld.consistent_parameters(fit)
        assert eigenvalues(result).min() > 0.0


def test_offsets_are_told_and_deviations_are_those_of_the_minimum(chain):
    q, v, a = motion_of(chain)
    tau = ld.inverse_dynamics(chain, q, v, a) + [0.5, 0.0] + 0.01 * np.random.default_rng(1).standard_normal(v.shape)
    with pytest.warns(ld.LiedynWarning, match=r"does not contain the offsets of p 0\.[45]"):
        result = ld.consistent_parameters(ld.identify(chain, T, q, tau, v=v, a=a))
    k = result.names.index("offset.p")
    assert abs(result.values[k] - 0.5) < 4.0 * result.deviations[k] < 0.5
    assert (np.linalg.eigvalsh(result.covariance) > -1e-12).all()


def test_a_test_on_another_recording(chain):
    """Offsets count, and forces that were not measured do not."""
    true, offset = chain.with_changes(mass={"two": 4.0}), np.array([0.5, 0.0])
    q, v, a = motion_of(chain)
    tau = ld.inverse_dynamics(true, q, v, a) + offset + 0.01 * np.random.default_rng(1).standard_normal(v.shape)
    result = ld.consistent_parameters(ld.identify(chain, T, q, tau, v=v, a=a))
    q, v, a = q[::2], v[::2] * [1.2, 0.7], a[::2] * [0.8, 1.3]
    tau = ld.inverse_dynamics(true, q, v, a) + offset
    unmeasured = ld.trajectory_of(chain, T[::2], q, v, a, tau=tau)
    del unmeasured.columns["tau.r"]
    test = result.validate(unmeasured)
    assert test.joints == ("p", "r") and test.rows == 201 and np.isnan([test.explained[1], test.residual[1]]).all()
    assert test.residual[0] < 0.03 < test.residual_of_file[0] and test.explained[0] > 0.9999
    assert test.explained_by_file[0] == pytest.approx(1.0 - test.residual_of_file[0]**2 / np.var(tau[:, 0]), rel=1e-9)


def test_a_robot_file_that_contradicts_the_recording_is_told(chain):
    fit = fitted(chain, chain.with_changes(mass={"two": 9.0}), 0.01)
    with pytest.warns(ld.LiedynWarning, match=r"chi\^2 = .* the weight of the robot file, 1e\+06, is too large"):
        ld.consistent_parameters(fit, prior_weight=1e6)


def test_pseudo_inertia_and_back():
    I = np.random.default_rng(0).standard_normal((3, 10))
    np.testing.assert_allclose(inertia_of_pseudo_inertia(pseudo_inertia(I)), I, rtol=0, atol=1e-14)
    np.testing.assert_allclose(pseudo_inertia(inertia_from_link(ld.Link("a", 2.0, [1, 2, 3]))),
                               2.0 * np.outer([1, 2, 3, 1], [1, 2, 3, 1]), rtol=0, atol=1e-14)


def test_zero_offsets_are_common_to_the_recordings_and_to_the_test(chain):
    """That of a test on another recording with the same encoders, too. A recording with others contradicts."""
    def recording(seed, offset):
        q, v = motion(chain, T, 2, speed=4.0, seed=seed)
        tau = ld.inverse_dynamics(chain, q, v[:, 0], v[:, 1])
        tau = tau + 1e-3 * np.random.default_rng(seed).standard_normal(tau.shape)
        return ld.trajectory_of(chain, T, q + np.array([offset, 0.0]), v[:, 0], v[:, 1], tau)

    fits = [ld.identify(chain, recording(seed, offset), zero_offsets=["p"]) for seed, offset in ((1, 0.02), (2, 0.02), (3, -0.1))]
    estimates = np.array([fit.nonlinear.of("zero_offset")["p"] for fit in fits[:2]])
    result = ld.consistent_parameters(fits[:2])
    (value, deviation), weights = result.zero_offsets["p"], estimates[:, 1]**-2
    assert value == pytest.approx(weights @ estimates[:, 0] / weights.sum()) and deviation == pytest.approx(weights.sum()**-0.5)
    assert abs(value - 0.02) < 5.0 * deviation < 0.01
    codes = [warning.code for warning in result.warnings]
    assert "zero-offsets-not-in-model" in codes and "recordings-contradict" not in codes
    other = recording(4, 0.02)
    assert (result.validate(other).residual < 2e-3).all()
    assert (replace(result, zero_offsets={}).validate(other).residual > 0.05).any()
    contradicting = ld.consistent_parameters(fits).warnings
    assert any("different zero offsets of the encoders of p" in str(warning) for warning in contradicting)


def test_scales_of_torques_are_common_to_the_recordings_and_to_the_test(chain):
    q, v, a = motion_of(chain)
    tau = (ld.inverse_dynamics(chain, q, v, a) + 1e-3 * np.random.default_rng(1).standard_normal(q.shape)) * [1.2, 1.0]
    result = ld.consistent_parameters(ld.identify(chain, T, q, tau, v=v, a=a, torque_scales="p", fixed="*.two"))
    value, deviation = result.torque_scales["p"]
    assert abs(value - 1.2) < 5.0 * deviation < 0.05
    k = result.names.index("mass.two")
    assert result.deviations[k] == 0.0 and result.values[k] == result.prior[k]           # known in the fit, and so here
    other = ld.trajectory_of(chain, T, q, v, a, tau)
    assert (result.validate(other).explained > 0.999).all()
    assert replace(result, torque_scales={}).validate(other).explained[0] < 0.99
    with pytest.raises(ld.UsageError, match="fits are of different robots, gravities or parameters"):
        ld.consistent_parameters([ld.identify(chain, T, q, tau, v=v, a=a, fixed=fixed) for fixed in ((), "*.two")])


def test_stribeck_friction_is_part_of_the_model_and_of_the_test(chain):
    """Its static level and its speed are those of rigid friction in a robot file."""
    file = chain.with_changes(friction={"p": 2.0}, friction_speed={"p": 1e-3})
    q, v, a = motion_of(file)
    tau = ld.inverse_dynamics(file, q, v, a) + stribeck_friction(file, {"p": (3.0, 0.3)}, v)
    tau = tau + 0.02 * np.random.default_rng(1).standard_normal(q.shape)
    result = ld.consistent_parameters(ld.identify(file, T, q, tau, v=v, a=a, stribeck="p"))
    (rise, of_rise), (speed, of_speed) = result.friction_rises["p"], result.stribeck_speeds["p"]
    assert abs(rise - 3.0) < 5.0 * of_rise < 1.0 and abs(speed - 0.3) < 5.0 * of_speed < 0.1
    joint = result.model.description.joints[0].coordinate_parameters[0]
    assert joint.rigid_friction and joint.stribeck_speed == speed and joint.static_friction == joint.friction + rise
    assert result.applied_to(file).description.joints == result.model.description.joints
    other = ld.trajectory_of(file, T, q, v, a, tau)
    assert result.validate(other).residual[0] < 0.03
    assert replace(result, friction_rises={}).validate(other).residual[0] > 0.3
