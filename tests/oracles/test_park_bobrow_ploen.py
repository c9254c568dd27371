"""Park, Bobrow and Ploen 1995, §4, written out again from the page with matrix exponentials, separate links and joints:
(40), (55)-(57), (59), and the 2R example (60)-(64). Nothing of liedyn's algebra is used for it."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from matrices import bracket, pose
from pbp_page import Page, chain


@pytest.mark.parametrize("types", ["R", "RR", "RRPR", "PRRP", "RPRRR"])
def test_chains(types, worst):
    """Ours, compiled and in closed form, one state and a batch, against the page; bounds: rounding of the page's sums.
    Checks: PBP (40), (55)-(57), (59)."""
    kinds = [{"R": "revolute", "P": "prismatic"}[letter] for letter in types]
    robot = chain(len(types), kinds)
    model, rng = ld.build(robot), np.random.default_rng(len(types))
    q, v = rng.uniform(-2, 2, (2, 9, len(types)))
    symbols = ld.christoffel_symbols(model, q)
    for k in range(9):
        page, form = Page(robot, q[k]), ld.closed_form(model, q[k])
        M, Gamma, phi = page.mass(), page.christoffel(), page.gravity_force()
        size = np.abs(M).max()
        assert worst("PBP (40)", relative(ld.mass_matrix(model, q[k]), M)) < 1e-13
        for ours in (symbols[k], ld.christoffel_symbols(model, q[k]), form.christoffel_symbols):
            assert worst("PBP (55)-(57)", np.abs(ours - Gamma).max() / size) < 1e-13
        assert worst("PBP (59)", relative(ld.gravity_force(model, q[k]), phi)) < 1e-13
        assert relative(form.gravity_force_from_home, phi) < 1e-13
        C = np.einsum("ijk,i->kj", Gamma, v[k])
        assert np.abs(ld.coriolis_matrix(model, q[k], v[k], method="christoffel") - C).max() < 1e-12 * size


@pytest.mark.parametrize("seed", range(3))
def test_the_2R_example(seed, worst):
    """(60)-(64). As printed, (61)-(63) have the second rate in them, so that rows sum to C v; (63) lost its minus sign.
    Checks: PBP (60)-(64)."""
    robot = chain(seed, ["revolute", "revolute"])
    model = ld.build(robot)
    x, (dx1, dx2) = np.random.default_rng(seed).uniform(-2, 2, (2, 2))
    page = Page(robot, x)
    A1, A2 = page.A[1:]
    a, turned = page.Ad(2, 2, A1), page.Ad(2, 2, bracket(A1) @ A2)
    M = [[page.metric(1, A1, A1) + page.metric(2, a, a), page.metric(2, a, A2)],
         [page.metric(2, a, A2), page.metric(2, A2, A2)]]                                                # (60)
    c11 = page.metric(2, turned, a) * dx1 * dx2                                                          # (61)
    c12 = page.metric(2, turned, a) * dx1 * dx2 + page.metric(2, turned, A2) * dx2**2                    # (62)
    c21 = -page.metric(2, turned, a) * dx1**2                                                            # (63)
    c22 = 0.0                                                                                            # (64)
    assert relative(ld.mass_matrix(model, x), M) < 1e-13
    v = np.array([dx1, dx2])
    for method in ("recursive", "christoffel", "factorized"):
        force = ld.coriolis_matrix(model, x, v, method=method) @ v
        assert worst("PBP (61)-(64)", np.abs(force - [c11 + c12, c21 + c22]).max() / np.abs(M).max()) < 1e-13
    C = ld.coriolis_matrix(model, x, v, method="christoffel")
    assert np.abs(C * v - [[c11, c12], [c21, c22]]).max() < 1e-13 * np.abs(M).max()      # entry by entry, rates inside


def test_poses_of_a_product_of_exponentials():
    """(13): e^{A_1 x_1} … e^{A_n x_n} M. Checks: PBP (13)."""
    robot = chain(9, ["revolute", "prismatic", "revolute"])
    model, x = ld.build(robot), np.array([0.4, -0.7, 1.1])
    page, form, T = Page(robot, x), ld.closed_form(model, x), np.eye(4)
    for i in range(3):
        T = T @ page.e(i + 1)
        assert relative(form.space_screws[:, i], page.A[i + 1]) < 1e-14
        assert relative(form.exponentials[i], page.e(i + 1)) < 1e-14
        assert relative(form.poses[i], T @ form.home[i]) < 1e-14
    assert relative(ld.link_pose(model, x, "link2")[:3, 3], (T @ _home(robot))[:3, 3]) < 1e-14


def _home(robot):
    M = np.eye(4)
    for joint in robot.joints:
        M = M @ pose(joint.origin.rotation, joint.origin.translation)
    return M

