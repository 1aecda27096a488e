import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from varclass.metrics import gaussian_kl, moments, typicality


def classes(rng, counts, dim):
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return rng.standard_normal((len(labels), dim)), labels


# ----------------------------------------------------------------------------------------------------------------- moments


def test_moments_are_those_of_scipy():
    rng = np.random.default_rng(0)
    u, labels = classes(rng, [10, 4, 200], 5)
    u = u**3 + np.arange(5)
    found = moments(u, labels, 3)
    assert found.count.tolist() == [10, 4, 200]
    for c in range(3):
        part = u[labels == c]
        mean, variance = part.mean(0), part.var(0, ddof=1)
        skewness, kurtosis = stats.skew(part, bias=False), stats.kurtosis(part, bias=False)
        expected = {
            "mean_rms": np.sqrt((mean**2).mean()),
            "mean_worst": mean[np.abs(mean).argmax()],
            "variance": variance.mean(),
            "variance_worst": variance[np.abs(np.log(variance)).argmax()],
            "skewness_rms": np.sqrt((skewness**2).mean()),
            "skewness_worst": skewness[np.abs(skewness).argmax()],
            "kurtosis": kurtosis.mean(),
            "kurtosis_worst": kurtosis[np.abs(kurtosis).argmax()],
        }
        assert {name: getattr(found, name)[c] for name in expected} == pytest.approx(expected, rel=1e-9)


def test_the_moments_of_a_perfect_fit_are_within_their_sampling_error():
    n, dim = 1000, 200
    found = moments(np.random.default_rng(1).standard_normal((n, dim)), np.zeros(n, int), 1)
    # Each is an average over independent dimensions of an unbiased estimate; variances of normal theory.
    assert abs(found.variance[0] - 1) <= 5 * np.sqrt(2 / (n - 1) / dim)
    assert abs(found.kurtosis[0]) <= 5 * np.sqrt(24 * n * (n - 1) ** 2 / ((n - 3) * (n - 2) * (n + 3) * (n + 5)) / dim)
    assert abs(found.mean_rms[0] ** 2 * n - 1) <= 5 * np.sqrt(2 / dim)  # n mean^2 is chi-square
    skew_variance = 6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3))
    assert abs(found.skewness_rms[0] ** 2 / skew_variance - 1) <= 5 * np.sqrt(2.5 / dim)  # its square: kurtosis below 3.5


def test_too_few_rows_are_nan_from_the_moment_that_needs_more():
    u, labels = np.arange(10.0).reshape(10, 1) ** 2, np.array([1, 2, 2, 3, 3, 3, 4, 4, 4, 4])
    found = moments(u, labels, 5)
    assert found.count.tolist() == [0, 1, 2, 3, 4]
    assert np.isnan(found.mean_rms).tolist() == [True, False, False, False, False]
    assert np.isnan(found.variance).tolist() == np.isnan(found.variance_worst).tolist() == [True, True, False, False, False]
    assert np.isnan(found.skewness_rms).tolist() == [True, True, True, False, False]
    assert np.isnan(found.kurtosis).tolist() == [True, True, True, True, False]
    still = moments(np.zeros((5, 2)), np.zeros(5, int), 1)
    assert (still.variance[0], still.variance_worst[0]) == (0, 0)
    assert np.isnan([still.skewness_rms[0], still.kurtosis_worst[0]]).all()


def test_rows_without_a_label_and_the_order_of_rows_do_not_matter():
    rng = np.random.default_rng(0)
    u, labels = classes(rng, [20, 30], 3)
    more, turned = np.vstack([u, 100 + u]), rng.permutation(50)
    padded = np.concatenate([labels, np.full(50, -1)])
    for function in (lambda *a: np.stack(list(vars(moments(*a)).values())), gaussian_kl):
        expected = function(u, labels, 2)
        np.testing.assert_allclose(function(more, padded, 2), expected, rtol=1e-9)
        np.testing.assert_allclose(function(u[turned], labels[turned], 2), expected, rtol=1e-9)


# ---------------------------------------------------------------------------------------------------------------------- KL


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (0.7, 0.5), (-0.3, 2.0)])
def test_the_kl_is_unbiased_however_few_the_rows(n, mean, sd):
    repeats, dim = 4000, 2
    u = mean + sd * np.random.default_rng(n).standard_normal((repeats * n, dim))
    found = gaussian_kl(u, np.repeat(np.arange(repeats), n), repeats)
    truth = dim * (sd**2 + mean**2 - 1 - 2 * np.log(sd)) / 2
    assert abs(found.mean() - truth) <= 5 * found.std() / np.sqrt(repeats)
    plugged = [(part.var(0) + part.mean(0) ** 2 - 1 - np.log(part.var(0))).sum() / 2 for part in u.reshape(repeats, n, dim)]
    assert np.mean(plugged) - truth > 5 * np.std(plugged) / np.sqrt(repeats)  # what is put right here


def test_the_kl_of_few_rows_is_nan_and_of_a_constant_infinite():
    found = gaussian_kl([[1.0], [2.0], [2.0]], [1, 2, 2], 3)
    assert np.isnan(found[:2]).all()
    assert found[2] == np.inf
    assert np.isnan(gaussian_kl(np.empty((0, 2)), [], 2)).all()


# -------------------------------------------------------------------------------------------------------------- typicality


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=12), st.lists(st.integers(-5, 5), min_size=1, max_size=5))
def test_typicality_by_counting(reference, values):
    known = np.array(reference)
    expected = [min(1, 2 * (1 + min((known <= v).sum(), (known >= v).sum())) / (len(known) + 1)) for v in values]
    np.testing.assert_allclose(typicality(values, reference), expected, rtol=1e-9)


def test_typicality_is_a_p_value_for_every_size_of_the_reference():
    repeats = 4000
    rng = np.random.default_rng(0)
    for m in (1, 7, 40):
        p = np.array([typicality(draw[:1], draw[1:])[0] for draw in rng.standard_normal((repeats, m + 1))])
        for t in (0.05, 0.1, 0.5):
            assert (p <= t).mean() <= t + 5 * np.sqrt(t * (1 - t) / repeats)
        assert p.min() >= 2 / (m + 1) or m == 1


def test_typicality_without_a_reference_is_nan_and_infinite_scores_have_a_rank():
    assert np.isnan(typicality([1.0, 2.0], [])).all()
    assert typicality([], [1.0]).shape == (0,)
    assert typicality([-np.inf], np.zeros(39))[0] == 0.05
    with pytest.raises(ValueError, match="reference must hold numbers; got 1 NaN of 1"):
        typicality([0.0], [np.nan])


def test_arrays_of_the_wrong_kind_are_refused():
    for call, message in [
        (lambda: moments(np.zeros(3), [0, 0, 0], 1), r"u must have shape \(N, D\); got \(3,\)"),
        (lambda: moments(np.zeros((3, 0)), [0, 0, 0], 1), "with D > 0"),
        (lambda: moments(np.full((1, 2), np.nan), [0], 1), "u must be finite; got 2 entries"),
        (lambda: gaussian_kl(np.zeros((2, 2)), [0], 1), r"labels must have shape \(2,\); got \(1,\)"),
        (lambda: gaussian_kl(np.zeros((2, 2)), [0, 1], 1), "labels must lie from -1 to 0; got 0 to 1"),
        (lambda: gaussian_kl(np.zeros((2, 2)), [0, 0], 0), "num_classes must be a whole number of at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
