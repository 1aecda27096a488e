import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from torchmetrics.functional.classification import binary_auroc

from varclass.metrics import Predictions, aupr, auroc, detection_scores, fpr_at_tpr, mahalanobis, separation

side = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=15)  # few values, so that ties are common


def draw(seed, n_in=300, n_out=200, decimals=None):
    rng = np.random.default_rng(seed)
    inside, outside = rng.normal(1, 1, n_in), rng.normal(0, 2, n_out)
    return (inside, outside) if decimals is None else (inside.round(decimals), outside.round(decimals))


@pytest.mark.parametrize("decimals", [None, 1, 0])
@pytest.mark.parametrize("sizes", [(300, 200), (1, 50), (50, 1)])
def test_areas_are_those_of_scikit_learn_and_torchmetrics(decimals, sizes):
    inside, outside = draw(0, *sizes, decimals)
    scores, is_in = np.concatenate([inside, outside]), np.repeat([1, 0], sizes)
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(is_in, scores), rel=1e-9)
    assert aupr(inside, outside) == pytest.approx(average_precision_score(is_in, scores), rel=1e-9)
    assert aupr(inside, outside, "out") == pytest.approx(average_precision_score(1 - is_in, -scores), rel=1e-9)
    ranks = np.unique(scores, return_inverse=True)[1] / len(scores)  # torchmetrics takes scores beyond [0, 1] for logits
    reference = binary_auroc(torch.tensor(ranks), torch.tensor(is_in))
    assert auroc(inside, outside) == pytest.approx(float(reference), rel=1e-5)  # float32


@pytest.mark.parametrize("tpr", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("decimals", [None, 0])
def test_fpr_is_read_off_scikit_learns_whole_curve(tpr, decimals):
    inside, outside = draw(1, decimals=decimals)
    fprs, tprs, _ = roc_curve(np.repeat([1, 0], [300, 200]), np.concatenate([inside, outside]), drop_intermediate=False)
    reached = np.round(tprs * 300) >= np.ceil(round(tpr * 300, 6))
    assert fpr_at_tpr(inside, outside, tpr) == pytest.approx(fprs[reached].min(), rel=1e-9)


def test_no_rounding_of_the_rate_costs_a_sample():
    for hundredths in range(1, 100):
        for n in range(1, 120):
            needed = -(-hundredths * n // 100)
            threshold = n - needed  # the smallest of the scores 0..n-1 that must pass
            probe = [threshold - 0.5, threshold + 0.5]
            assert fpr_at_tpr(np.arange(float(n)), probe, hundredths / 100) == 0.5, (hundredths, n)


@given(side, side)
def test_auroc_counts_pairs_and_average_precision_counts_thresholds(inside, outside):
    a, b = np.array(inside)[:, None], np.array(outside)[None]
    assert auroc(inside, outside) == pytest.approx(((a > b) + 0.5 * (a == b)).mean(), rel=1e-9)
    assert auroc(inside, outside) + auroc(outside, inside) == pytest.approx(1, rel=1e-9)
    before, total = 0.0, 0.0
    for t in sorted({*inside, *outside}, reverse=True):
        hits, alarms = (a >= t).sum(), (b >= t).sum()
        total += (hits - before) / len(inside) * hits / (hits + alarms)
        before = hits
    assert aupr(inside, outside) == pytest.approx(total, rel=1e-9)


@given(side, side, st.sampled_from([np.exp, np.cbrt, np.arctan, lambda x: 7 * x - 3]), st.randoms(use_true_random=False))
def test_only_the_order_of_the_scores_matters(inside, outside, rising, random):
    before = separation(inside, outside)
    turned = [random.sample(part, len(part)) for part in (inside, outside)]
    assert separation(*(rising(np.array(part)) for part in turned)) == pytest.approx(before, rel=1e-9)
    assert all(0 <= before[name] <= 1 for name in ("auroc", "aupr_in", "aupr_out", "fpr95"))
    swapped = separation(-np.array(outside), -np.array(inside))
    assert swapped["auroc"] == pytest.approx(before["auroc"], rel=1e-9)
    assert swapped["aupr_in"] == pytest.approx(before["aupr_out"], rel=1e-9)


def test_degenerate_cases_are_as_stated():
    assert separation([1, 1, 1], [1]) == {"n_in": 3, "n_out": 1, "auroc": 0.5, "aupr_in": 0.75, "aupr_out": 0.25, "fpr95": 1}
    assert separation([2], [1]) == {"n_in": 1, "n_out": 1, "auroc": 1, "aupr_in": 1, "aupr_out": 1, "fpr95": 0}
    for inside, outside in ([[], [1.0]], [[1.0], []], [[], []]):
        found = separation(inside, outside)
        assert (found["n_in"], found["n_out"]) == (len(inside), len(outside))
        assert all(np.isnan(found[name]) for name in ("auroc", "aupr_in", "aupr_out", "fpr95"))
    assert auroc([np.inf, 0], [-np.inf, 0]) == 0.875
    assert separation([np.inf, 1.0], [-np.inf])["auroc"] == 1
    for function in (auroc, aupr, fpr_at_tpr):
        with pytest.raises(ValueError, match="outside must hold numbers; got 1 NaN of 2"):
            function([0.0], [np.nan, 0.0])
        with pytest.raises(ValueError, match=r"inside must have shape \(N,\); got \(1, 1\)"):
            function([[0.0]], [0.0])
    with pytest.raises(ValueError, match="positive must be one of 'in', 'out'; got 'inside'"):
        aupr([0.0], [1.0], "inside")
    with pytest.raises(ValueError, match="tpr must lie strictly between 0 and 1; got 95"):
        fpr_at_tpr([0.0], [1.0], 95)


def test_scores_are_higher_for_what_is_more_in_distribution():
    near, far = Predictions.of([[0.0, -9.0]] * 3), Predictions.of([[-50.0, -50.5]] * 3)
    inside, outside = detection_scores(near), detection_scores(far)
    assert list(inside) == ["max_probability", "entropy", "log_evidence"]
    assert all(auroc(inside[name], outside[name]) == 1 for name in inside)
    sure = detection_scores(Predictions.of([[0.0, -50.0], [0.0, -60.0]]))
    assert all(sure[name][1] > sure[name][0] for name in ("max_probability", "entropy"))


@pytest.mark.parametrize("shared", [True, False])
def test_mahalanobis_is_scipys_distance_to_the_nearest_class(shared):
    rng = np.random.default_rng(0)
    z, means = 3 * rng.standard_normal((40, 6)) + 100, rng.standard_normal((5, 6)) + 100
    variances = rng.uniform(0.5, 2, 6 if shared else (5, 6))
    rows = np.broadcast_to(variances, (5, 6))
    squared = [cdist(z, means[c : c + 1], "seuclidean", V=rows[c])[:, 0] ** 2 for c in range(5)]
    np.testing.assert_allclose(mahalanobis(z, means, variances), -np.min(squared, axis=0), rtol=1e-9)
    assert (mahalanobis(means, means, variances) >= -1e-12).all()
    assert (mahalanobis(means, means, variances) <= 0).all()
    assert mahalanobis(np.empty((0, 6)), means, variances).shape == (0,)


@pytest.mark.parametrize(
    ("z", "means", "variances", "message"),
    [
        (np.zeros((2, 3)), np.zeros((2, 2)), np.ones(2), r"latents must have shape \(N, 2\); got \(2, 3\)"),
        (np.zeros((2, 2)), np.zeros((2, 2)), np.ones(3), r"of shape \(2, 2\) or \(2,\); got \(3,\)"),
        (np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), "variances must be finite, above 0"),
        (np.full((2, 2), np.nan), np.zeros((2, 2)), np.ones(2), "latents must be finite; got 4 entries"),
        (np.zeros((2, 2)), np.zeros((0, 2)), np.ones(2), "means must hold at least one class"),
    ],
)
def test_arrays_of_the_wrong_kind_are_refused(z, means, variances, message):
    with pytest.raises(ValueError, match=message):
        mahalanobis(z, means, variances)
