import numpy as np
import pytest
from scipy import stats

from varclass.metrics import normality


@pytest.mark.parametrize(("n", "dim"), [(1, 1), (10, 3), (60, 25)])
@pytest.mark.parametrize("shift", [0.0, 0.6])
def test_p_values_are_those_of_scipys_exact_tests_with_holms_correction(n, dim, shift):
    u = np.random.default_rng(dim).standard_normal((n, dim))
    u[:, : max(1, dim // 3)] += shift
    found = normality(u, np.zeros(n, int), 1)
    radius = stats.ks_1samp((u**2).sum(1), stats.chi2(dim).cdf, method="exact").pvalue
    each = np.sort([stats.ks_1samp(u[:, d], stats.norm.cdf, method="exact").pvalue for d in range(dim)])
    assert found.p_radius[0] == pytest.approx(radius, rel=1e-9)
    assert found.p_dimensions[0] == pytest.approx(min(1, dim * each[0]), rel=1e-9)
    passed = each <= 0.05 / (dim - np.arange(dim))
    assert found.rejected[0] == (dim if passed.all() else passed.argmin())
    assert found.p[0] == pytest.approx(min(1, 2 * min(radius, dim * each[0])), rel=1e-9)
    assert found.count[0] == n


def test_holm_goes_on_where_bonferroni_stops():
    # The distances of n = 200 uniform quantiles moved by a constant are known; so is each one's p-value.
    n = 200
    grid = (np.arange(n) + 0.5) / n
    moved = [stats.kstwo.isf(p, n) - 0.5 / n for p in (0.004, 0.011, 0.015, 0.6)]
    u = stats.norm.ppf(np.stack([np.clip(grid + d, 1e-12, 1 - 1e-12) for d in moved], axis=1))
    found = normality(u, np.zeros(n, int), 1)
    assert found.rejected[0] == 3  # .004 <= .05/4, .011 <= .05/3, .015 <= .05/2, .6 > .05
    assert normality(u, np.zeros(n, int), 1, level=0.03).rejected[0] == 1  # .004 <= .03/4, .011 > .03/3


def test_a_perfect_fit_is_rejected_no_more_often_than_the_level_even_if_dimensions_depend():
    repeats, n, dim, level = 300, 12, 4, 0.1
    rng = np.random.default_rng(0)
    bound = level + 5 * np.sqrt(level * (1 - level) / repeats)
    labels = np.repeat(np.arange(repeats), n)
    found = normality(rng.standard_normal((repeats * n, dim)), labels, repeats, level)
    for p in (found.p_radius, found.p_dimensions, found.p):
        assert (p <= level).mean() <= bound
    assert (found.p_radius <= level).mean() >= level - (bound - level)  # one test, exact: neither too often nor too rarely
    np.testing.assert_array_equal(found.rejected > 0, found.p_dimensions <= level)
    same = np.repeat(rng.standard_normal((repeats * n, 1)), dim, axis=1)
    assert (normality(same, labels, repeats, level).p_dimensions <= level).mean() <= bound


def test_each_test_sees_what_it_says_and_is_blind_to_the_rest():
    rng = np.random.default_rng(0)
    n, dim = 2000, 20
    clean = rng.standard_normal((n, dim))
    shared = rng.standard_normal((n, 1)) * np.sqrt(0.3) + clean * np.sqrt(0.7)  # every dimension N(0, 1), all dependent
    one_shifted = clean + np.eye(dim)[0] * 0.3
    heavy = rng.standard_t(5, (n, dim)) / np.sqrt(5 / 3)
    folded = np.abs(clean)  # every |u| kept
    kinds = {"clean": clean, "shared": shared, "shifted": one_shifted, "heavy": heavy, "folded": folded}
    found = {name: normality(u, np.zeros(n, int), 1) for name, u in kinds.items()}
    sees_radius = {name: bool(test.p_radius[0] < 1e-4) for name, test in found.items()}
    sees_dimensions = {name: bool(test.p_dimensions[0] < 1e-4) for name, test in found.items()}
    assert sees_radius == {"clean": False, "shared": True, "shifted": False, "heavy": True, "folded": False}
    assert sees_dimensions == {"clean": False, "shared": False, "shifted": True, "heavy": True, "folded": True}
    assert found["folded"].p_radius[0] == found["clean"].p_radius[0]
    assert found["shifted"].rejected[0] == 1
    assert found["folded"].rejected[0] == dim


def test_a_class_without_rows_is_nan_and_unlabeled_rows_are_left_out():
    found = normality(np.random.default_rng(0).standard_normal((6, 2)), [0, 0, 0, 2, -1, -1], 4)
    assert found.count.tolist() == [3, 0, 1, 0]
    assert np.isnan(found.p).tolist() == [False, True, False, True]
    assert found.rejected.tolist() == [0, 0, 0, 0]
    assert np.isnan(normality(np.empty((0, 2)), [], 2).p).all()
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1; got 5"):
        normality(np.zeros((1, 1)), [0], 1, level=5)


def test_thousands_of_dimensions_take_seconds_only():
    u = 1.3 * np.random.default_rng(0).standard_normal((300, 2048))
    found = normality(u, np.zeros(300, int), 1)
    assert found.p_radius[0] < 1e-9
    assert found.rejected[0] < 2048
