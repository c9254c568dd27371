"""Every benchmark runs, computes the same as its peer (asserted inside), and has a figure to tell."""
import pytest

from benchmarks import chains, derivatives, dynamics


@pytest.mark.parametrize("name", dynamics.ROBOTS)
def test_dynamics_cases_agree_with_pinocchio(name):
    case = dynamics.Case(name, 16)
    pair = case.one_by_one(dynamics.ld.forward_dynamics, case.pin.aba, 1)
    assert pair.ours > 0 and pair.theirs > 0 and pair.ratio > 0


def test_chain_is_mujocos_chain():
    ours, theirs, _ = chains.rk4_step(3, steps=20, repeats=1)
    assert ours > 0 and theirs > 0


def test_cost_per_body_is_told():
    rows = chains.microseconds_per_body((10, 20), repeats=1)
    assert [row[0] for row in rows["Lanes"]] == [10, 20] and all(row[1] > 0 for kind in rows for row in rows[kind])
    assert rows["Lanes"][0][2] == rows["float64"][0][2] == 1.0


@pytest.mark.parametrize("name", derivatives.ROBOTS)
def test_derivative_cases_agree_with_pinocchio(name):
    case = derivatives.Case(name, 8)
    for what in ("inverse", "forward"):
        assert case.one_by_one(what, 1).ratio > 0 and case.batch(what, 1).ratio > 0


def test_hybrid_derivatives_are_told():
    assert [row[0] for row in derivatives.hybrid_chains(1)] == [7, 30]
