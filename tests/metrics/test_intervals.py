import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from varclass.metrics import Interval, bootstrap, over_seeds, paired_difference, wilson
from varclass.metrics import intervals as module


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_t_intervals_are_those_of_scipy(n, level):
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal(n) + 3, rng.standard_normal(n)
    one, pair = over_seeds(a, level), paired_difference(a, b, level)
    for got, expected in [
        (one, stats.ttest_1samp(a, 0).confidence_interval(level)),
        (pair, stats.ttest_rel(a, b).confidence_interval(level)),
    ]:
        assert (got.low, got.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert (one.mean, one.sd, one.n, one.level) == (a.mean(), a.std(ddof=1), n, level)
    assert (one.note == "") == (n >= 5)


def test_t_intervals_hold_the_truth_as_often_as_they_say():
    draws, level = 4000, 0.95
    values = np.random.default_rng(0).normal(2, 3, (draws, 5))
    covered = sum(found.low <= 2 <= found.high for found in (over_seeds(row, level) for row in values))
    assert abs(covered - draws * level) <= 5 * math.sqrt(draws * level * (1 - level))


def test_pairing_removes_what_two_methods_share():
    rng = np.random.default_rng(0)
    shared, noise = rng.normal(0, 10, 8), rng.normal(0, 0.1, 8)
    pair = paired_difference(shared + 1 + noise, shared)
    assert pair.low > 0
    assert (pair.mean, pair.sd) == pytest.approx((1 + noise.mean(), noise.std(ddof=1)), rel=1e-9)
    assert over_seeds(shared + 1 + noise).low < 0


def test_one_seed_has_no_interval_and_says_so():
    one = over_seeds([0.7])
    assert (one.mean, one.n) == (0.7, 1)
    assert np.isnan([one.low, one.high, one.sd]).all()
    assert "one seed has no interval" in one.note
    none = over_seeds([])
    assert np.isnan([none.mean, none.low, none.high, none.sd]).all()
    assert (none.n, none.note) == (0, "n = 0: no data")
    assert paired_difference([1.0], [0.5]).mean == 0.5


def test_infinite_and_missing_values_pass_through_without_a_warning():
    infinite = over_seeds([math.inf, 1.0, 2.0])
    assert infinite.mean == math.inf
    assert math.isnan(infinite.sd)
    assert math.isnan(over_seeds([math.nan, 1.0]).mean)
    assert math.isnan(paired_difference([math.inf, 1.0], [math.inf, 1.0]).mean)
    assert bootstrap([math.inf, 1.0, 2.0]).mean == math.inf


# -------------------------------------------------------------------------------------------------------------- bootstrap


def test_the_bootstrap_of_a_mean_has_the_standard_error_it_should():
    values = np.random.default_rng(0).standard_normal(400)
    found = bootstrap(values, resamples=4000)
    error = values.std() / math.sqrt(400)
    # A sample standard deviation of R nearly normal values scatters by 1 / sqrt(2 R) of itself.
    assert abs(found.sd - error) <= 5 * error / math.sqrt(2 * 4000)
    assert (found.mean, found.n) == (values.mean(), 400)
    # A quantile q of R normal values scatters by sqrt(q (1 - q) / R) / density.
    scatter = error * math.sqrt(0.025 * 0.975 / 4000) / stats.norm.pdf(1.96)
    expected = values.mean() + np.array([-1, 1]) * stats.norm.ppf(0.975) * error
    # Skewness moves the ends by (z^2 - 1) skew / (6 sqrt(n)) standard errors (Cornish and Fisher); this sample has its own.
    skew = error * abs(stats.skew(values)) * (1.96**2 - 1) / (6 * math.sqrt(400))
    assert (np.abs([found.low, found.high] - expected) <= 5 * scatter + skew).all()


def test_the_bootstrap_is_seeded():
    values = np.random.default_rng(0).random(50)
    assert bootstrap(values, seed=3) == bootstrap(values, seed=3)
    assert bootstrap(values, seed=3) != bootstrap(values, seed=4)


def test_blocks_only_bound_the_memory(monkeypatch):
    sizes = []

    def mean(resampled):
        sizes.append(len(resampled))
        return resampled.mean(1)

    monkeypatch.setattr(module, "BLOCK", 500)
    found = bootstrap(np.arange(100.0), mean, resamples=12)
    assert sizes == [5, 5, 2, 1]  # the last is the data itself
    assert found.low < 49.5 < found.high


def test_any_statistic_of_rows_can_be_resampled():
    pairs = np.random.default_rng(0).random((200, 2))
    found = bootstrap(pairs, lambda block: np.abs(block[..., 0].mean(1) - block[..., 1].mean(1)), resamples=500)
    assert found.mean == pytest.approx(abs(pairs[:, 0].mean() - pairs[:, 1].mean()), rel=1e-9)
    assert 0 <= found.low <= found.high


def test_the_bootstrap_of_nothing_and_of_one():
    none = bootstrap([])
    assert np.isnan([none.mean, none.low, none.high, none.sd]).all()
    assert none.n == 0
    one = bootstrap([0.3])
    assert one == Interval(0.3, 0.3, 0.3, one.sd, 1, 0.95, "n = 1: one sample has no spread")


# ----------------------------------------------------------------------------------------------------------------- Wilson


@given(st.integers(1, 300), st.data(), st.sampled_from([0.5, 0.95, 0.999]))
def test_wilsons_interval_is_that_of_scipy(n, data, level):
    hits = data.draw(st.integers(0, n))
    expected = stats.binomtest(hits, n).proportion_ci(level, method="wilson")
    low, high = wilson(hits, n, level)
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-15)
    assert 0 <= low <= hits / n <= high + 1e-15
    assert high <= 1


def test_wilsons_interval_of_arrays_and_of_nothing():
    low, high = wilson([0, 5, 10], [0, 10, 10])
    assert np.isnan([low[0], high[0]]).all()
    assert low[1] + high[1] == pytest.approx(1, rel=1e-9)
    assert high[2] == 1
    assert wilson([], [])[0].shape == (0,)


def test_what_is_wrong_is_refused():
    for call, message in [
        (lambda: over_seeds([[1.0]]), r"values must have shape \(seeds,\); got \(1, 1\)"),
        (lambda: over_seeds([1.0], 95), "level must lie strictly between 0 and 1; got 95"),
        (lambda: paired_difference([1.0, 2.0], [1.0]), r"same shape \(seeds,\); got \(2,\) and \(1,\)"),
        (lambda: bootstrap(1.0), "got a single number"),
        (lambda: bootstrap([1.0], resamples=1), "resamples must be a whole number of at least 2"),
        (lambda: bootstrap([1.0], seed=-1), "seed must be a whole number of at least 0; got -1"),
        (lambda: wilson(3, 2), "successes must lie from 0 to n; got 3 and n = 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
