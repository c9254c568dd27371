"""Values of the runs of a sweep: by number alone, in the order of the documents, distributed as asked for."""
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from liedyn.batch.sweep_binding import Design, quantile
from liedyn.io.sweep_file import MOST_RUNS, Distribution, Range, Sweep, SweepParameter

ONE, TWO = SweepParameter("a", "a", (1.0, 2.0, 3.0)), SweepParameter("b", "b", (4.0, 5.0))
WORDS = SweepParameter("c", "c", ("x", "y"))
UNIFORM = SweepParameter("u", "u", None, Distribution("uniform", -1.0, 2.0))
OTHER = replace(UNIFORM, key="other", name="other")


def sweep(*vary, combine="grid", **more):
    return Design(Sweep("", vary, combine, **more))


def test_a_grid_has_each_with_each_and_the_last_changes_first():
    found = sweep(ONE, TWO, WORDS)
    a, b, c = found.values(0, found.count)
    assert found.count == 12
    assert [*zip(a[:5], b, c, strict=False)] == [(1, 4, "x"), (1, 4, "y"), (1, 5, "x"), (1, 5, "y"), (2, 4, "x")]
    assert len({*zip(a, b, c, strict=True)}) == 12


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_range_is_equally_spaced_and_ends_where_it_should(count):
    x = sweep(SweepParameter("r", "r", Range(-0.1, 0.7, count))).values(0, count)[0]
    assert np.allclose(x, np.linspace(-0.1, 0.7, count), rtol=1e-15) and x[0] == -0.1 and (count == 1 or x[-1] == 0.7)


def test_of_a_range_of_very_many_values_only_those_are_made_that_are_asked_for():
    found = sweep(SweepParameter("r", "r", Range(0.0, 1.0, MOST_RUNS)))
    assert found.count == MOST_RUNS and not isinstance(found._lists[0], np.ndarray)
    last = found.values(MOST_RUNS - 3, MOST_RUNS)[0]
    assert np.allclose(1.0 - last, [2e-8, 1e-8, 0.0], atol=1e-16)


def test_zip_takes_values_together():
    found = sweep(TWO, WORDS, combine="zip")
    assert found.count == 2 and [list(x) for x in found.values(0, 2)] == [[4.0, 5.0], ["x", "y"]]
    alone = sweep(ONE, combine="zip")
    assert alone.count == 3 and alone.values(0, 3)[0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("combine, sampling", [("grid", "random"), ("sample", "random"), ("sample", "latin_hypercube"),
                                               ("sample", "sobol")])
def test_values_depend_on_the_number_alone(combine, sampling):
    vary = (ONE, TWO, WORDS) if combine == "grid" else (UNIFORM, ONE)
    found = sweep(*vary, combine=combine, samples=12, sampling=sampling, seed=3)
    whole = found.values(0, 12)
    for first, until in ((0, 5), (5, 12), (7, 8)):
        again = sweep(*vary, combine=combine, samples=12, sampling=sampling, seed=3)
        for part, all_ in zip(again.values(first, until), whole, strict=True):
            assert list(part) == list(all_[first:until])


@pytest.mark.parametrize("sampling", ["random", "sobol"])
def test_more_samples_leave_those_before_as_they_are(sampling):
    few, many = (sweep(UNIFORM, OTHER, combine="sample", samples=n, sampling=sampling, seed=1) for n in (8, 32))
    assert all(np.array_equal(a, b) for a, b in zip(few.values(0, 8), many.values(0, 8), strict=True))


@pytest.mark.parametrize("sampling", ["random", "latin_hypercube", "sobol"])
def test_samples_do_not_depend_on_the_order_of_the_entries(sampling):
    one, other = (sweep(*vary, combine="sample", samples=8, sampling=sampling, seed=1).values(0, 8)
                  for vary in ((UNIFORM, OTHER), (OTHER, UNIFORM)))
    assert np.array_equal(one[0], other[1]) and np.array_equal(one[1], other[0]) and not np.array_equal(one[0], one[1])


def test_another_seed_draws_other_values():
    assert not np.array_equal(*(sweep(UNIFORM, combine="sample", samples=9, seed=k).values(0, 9)[0] for k in (0, 1)))


def test_random_samples_are_independent_and_uniform():
    found = sweep(UNIFORM, OTHER, combine="sample", samples=4000, seed=5).values(0, 4000)
    u, w = ((x + 1) / 3 for x in found)
    assert min(stats.kstest(x, "uniform").pvalue for x in (u, w)) > 1e-3                 # the seed is fixed: no chance is left
    assert abs(np.corrcoef(u, w)[0, 1]) < 4 / np.sqrt(4000)
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / np.sqrt(4000)


def test_a_latin_hypercube_has_one_value_in_each_slice():
    u = (sweep(UNIFORM, OTHER, combine="sample", samples=50, sampling="latin_hypercube").values(0, 50)[1] + 1) / 3
    assert sorted((50 * u).astype(int)) == [*range(50)]


def test_lists_are_drawn_with_equal_chances():
    found = sweep(ONE, WORDS, combine="sample", samples=3000).values(0, 3000)
    assert np.allclose(np.bincount(found[0].astype(int))[1:] / 3000, 1 / 3, atol=4 * np.sqrt(2 / 9 / 3000))
    assert abs(found[1].count("x") / 3000 - 0.5) < 4 * np.sqrt(0.25 / 3000)


U = np.concatenate([[1e-15, 1e-6], np.linspace(0.001, 0.999, 21), [1 - 1e-9]])


@pytest.mark.parametrize("x, of_scipy", [
    (Distribution("uniform", -1, 3), stats.uniform(-1, 4)),
    (Distribution("log_uniform", 0.1, 10), stats.loguniform(0.1, 10)),
    (Distribution("normal", -np.inf, np.inf, 2, 0.5), stats.norm(2, 0.5)),
    (Distribution("normal", 1.8, 2.1, 2, 0.5), stats.truncnorm(-0.4, 0.2, 2, 0.5)),
    (Distribution("normal", 5, np.inf, 2, 0.5), stats.truncnorm(6, np.inf, 2, 0.5)),               # far in a tail
    (Distribution("normal", -np.inf, -2, 2, 0.5), stats.truncnorm(-np.inf, -8, 2, 0.5)),
    (Distribution("log_normal", -np.inf, np.inf, 3, 0.2), stats.lognorm(0.2, scale=3))])
def test_quantiles_are_those_of_scipy(x, of_scipy):
    # 1e-9: truncnorm works with logarithms of tails, and loses digits of its own near the ends
    assert np.allclose(quantile(x, U), of_scipy.ppf(U), rtol=1e-9, atol=1e-9)


def test_a_truncated_log_normal_is_the_conditional_distribution():
    x, whole = Distribution("log_normal", 2.5, 4.0, 3, 0.2), stats.lognorm(0.2, scale=3)
    found, ends = whole.cdf(quantile(x, U)), whole.cdf([2.5, 4.0])
    assert np.allclose((found - ends[0]) / np.diff(ends), U, atol=1e-12)
    assert quantile(x, U).min() >= 2.5 and quantile(x, U).max() <= 4.0
