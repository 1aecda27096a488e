from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss, top_k_accuracy_score
from torchmetrics.functional.classification import multiclass_accuracy

from varclass.metrics import Predictions, accuracy, aurc, brier, e_aurc, nll, risk_coverage, top_k_accuracy
from varclass.metrics.scores import negative_log_likelihoods


@pytest.mark.parametrize("classes", [2, 3, 12])
def test_scores_are_those_of_torchmetrics_and_scikit_learn(simulate, classes):
    held = simulate(500, classes)
    probabilities, labels = held.probabilities, held.labels
    exact = torch.tensor(probabilities), torch.tensor(labels)
    assert accuracy(held) == pytest.approx(float(multiclass_accuracy(*exact, classes, average="micro")), rel=1e-7)  # float32
    assert nll(held) == pytest.approx(log_loss(labels, probabilities, labels=range(classes)), rel=1e-9)
    reference = brier_score_loss(labels, probabilities, labels=range(classes), scale_by_half=False)
    assert brier(held) == pytest.approx(reference, rel=1e-9)
    if classes > 2:
        for k in range(1, classes):
            expected = top_k_accuracy_score(labels, probabilities, k=k, labels=range(classes))
            assert top_k_accuracy(held, k) == pytest.approx(expected, rel=1e-9)


def test_scores_by_hand():
    held = Predictions.of(np.log([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]), [1, 1])
    assert accuracy(held) == 0.5
    assert nll(held) == pytest.approx(-(np.log(0.3) + np.log(0.8)) / 2, rel=1e-9)
    assert brier(held) == pytest.approx((0.25 + 0.49 + 0.04 + 0.01 + 0.04 + 0.01) / 2, rel=1e-9)
    assert top_k_accuracy(held, 2) == top_k_accuracy(held, 99) == 1
    assert negative_log_likelihoods(held).shape == (2,)


def test_probabilities_of_exactly_zero_and_one():
    held = Predictions.of([[0.0, -np.inf], [0.0, -np.inf]], [0, 1])
    assert accuracy(held) == 0.5
    assert nll(held) == np.inf
    assert brier(held) == 1
    right = held.take(np.array([0]))
    assert (nll(right), brier(right), aurc(right)) == (0, 0, 0)


@given(st.integers(1, 6), st.data())
def test_the_best_of_tied_classes_is_the_first_for_accuracy_and_top_k_alike(classes, data):
    rows = data.draw(st.lists(st.lists(st.integers(0, 2), min_size=classes, max_size=classes), min_size=1, max_size=8))
    labels = data.draw(st.lists(st.integers(0, classes - 1), min_size=len(rows), max_size=len(rows)))
    held = Predictions.of(np.array(rows, float), labels)
    assert top_k_accuracy(held, 1) == accuracy(held)
    shares = [top_k_accuracy(held, k) for k in range(1, classes + 1)]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    ranks = [list(np.argsort(-np.array(row), kind="stable")).index(y) for row, y in zip(rows, labels, strict=True)]
    assert shares == [np.mean(np.array(ranks) < k) for k in range(1, classes + 1)]


# ------------------------------------------------------------------------------------------------------- risk and coverage


def with_scores(wrong):
    """Predictions of two classes, wrong where asked, to be ordered by a score of their own."""
    return Predictions.of(np.tile([0.0, -1.0], (len(wrong), 1)), np.array(wrong, int))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=6))
def test_aurc_is_the_mean_over_all_orders_of_tied_samples(samples):
    wrong, score = np.array([a for a, _ in samples], float), np.array([b for _, b in samples])
    areas = []
    for order in permutations(range(len(wrong))):
        if (np.diff(score[list(order)]) <= 0).all():
            areas.append((wrong[list(order)].cumsum() / np.arange(1, len(wrong) + 1)).mean())
    held = with_scores(wrong)
    assert aurc(held, score) == pytest.approx(np.mean(areas), rel=1e-9, abs=1e-15)
    best = np.sort(wrong).cumsum() / np.arange(1, len(wrong) + 1)
    assert e_aurc(held, score) == pytest.approx(np.mean(areas) - best.mean(), rel=1e-9, abs=1e-15)


@given(st.lists(st.tuples(st.booleans(), st.floats(-5, 5, width=16)), min_size=1, max_size=30))
def test_aurc_depends_on_the_order_alone_and_excess_is_none_for_the_best_order(samples):
    wrong, score = np.array([a for a, _ in samples]), np.array([b for _, b in samples])
    held = with_scores(wrong)
    area = aurc(held, score)
    assert 0 <= area <= 1
    assert aurc(held, np.exp(score.astype(float))) == pytest.approx(area, rel=1e-9)
    assert aurc(held.take(np.arange(len(wrong))[::-1]), score[::-1]) == pytest.approx(area, rel=1e-9)
    assert e_aurc(held, score) >= -1e-15
    assert e_aurc(held, ~wrong) == pytest.approx(0, abs=1e-15)
    assert aurc(held, np.zeros(len(wrong))) == pytest.approx(wrong.mean(), rel=1e-9)


def test_the_risk_coverage_curve_by_hand():
    curve = risk_coverage(with_scores([False, True, True, False]), np.array([3.0, 2.0, 2.0, 1.0]))
    assert curve.threshold.tolist() == [3, 2, 1]
    assert curve.coverage.tolist() == [0.25, 0.75, 1]
    np.testing.assert_allclose(curve.risk, [0, 2 / 3, 1 / 2], rtol=1e-9)


def test_confidences_that_round_to_one_keep_their_order():
    held = Predictions.of([[0.0, -60.0], [0.0, -50.0], [0.0, -40.0]], [0, 0, 1])
    assert set(held.confidence) == {1}
    assert len(risk_coverage(held).threshold) == 3
    assert e_aurc(held) == pytest.approx(0, abs=1e-15)


def test_a_thinned_curve_is_part_of_the_whole_with_its_ends(simulate):
    held = simulate(300)
    whole, thin = risk_coverage(held), risk_coverage(held, points=20)
    assert len(thin.risk) == 20
    where = np.searchsorted(whole.coverage, thin.coverage)
    np.testing.assert_array_equal(thin.risk, whole.risk[where])
    assert where[0] == 0
    assert thin.coverage[-1] == 1
    assert thin.risk[-1] == pytest.approx(1 - accuracy(held), rel=1e-9)


def test_scores_of_the_wrong_kind_are_refused():
    held = with_scores([True, False])
    with pytest.raises(ValueError, match=r"score must have shape \(2,\); got \(3,\)"):
        aurc(held, np.zeros(3))
    with pytest.raises(ValueError, match="score must hold numbers; got 1 NaN of 2"):
        aurc(held, np.array([0, np.nan]))
    with pytest.raises(ValueError, match="k must be a whole number of at least 1; got 0"):
        top_k_accuracy(held, 0)
    with pytest.raises(ValueError, match="points must be a whole number of at least 2; got 1"):
        risk_coverage(held, np.arange(2), points=1)
