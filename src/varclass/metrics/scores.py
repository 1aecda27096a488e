"""Accuracy, log likelihood and Brier score, and the risk of answering only where the classifier is sure.

Rows without a label are left out; with no row left, every number is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varclass.metrics.arguments import average, check_count, check_scores
from varclass.metrics.predictions import Predictions


def accuracy(predictions: Predictions) -> float:
    """Share of rows whose most probable class is the label."""
    return average(predictions.in_scope().correct)


def top_k_accuracy(predictions: Predictions, k: int = 5) -> float:
    """Share of rows whose label is among the k most probable classes; 1 if k is C or more. Ties go to the first class.

    >>> top_k_accuracy(Predictions.of(np.log([[0.5, 0.3, 0.2]] * 3), [0, 1, 2]), k=2)
    0.6666666666666666
    """
    held, k = predictions.in_scope(), check_count("k", k)
    own = np.take_along_axis(held.log_joint, held.labels[:, None], axis=1)
    first = np.arange(held.num_classes) < held.labels[:, None]
    ahead = (held.log_joint > own) | ((held.log_joint == own) & first)
    return average(ahead.sum(1) < k)


def nll(predictions: Predictions) -> float:
    """Mean of -log p(y|x) in nats; infinite if a label was given probability 0."""
    return average(negative_log_likelihoods(predictions))


def negative_log_likelihoods(predictions: Predictions) -> np.ndarray:
    """-log p(y|x) of every row with a label, (n,)."""
    held = predictions.in_scope()
    return -np.take_along_axis(held.log_posterior, held.labels[:, None], axis=1)[:, 0] + 0.0


def brier(predictions: Predictions) -> float:
    """Mean of sum_c (p(c|x) - 1[y = c])^2: Brier's own form, from 0 to 2, not divided by C and not halved for two classes.

    >>> brier(Predictions.of(np.log([[0.5, 0.5]]), [0]))  # .5^2 + .5^2
    0.5
    """
    held = predictions.in_scope()
    gap = held.probabilities
    gap[np.arange(len(held)), held.labels] -= 1
    return average((gap**2).sum(1))


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The error rate among the samples whose score reaches a threshold, for thresholds from the highest down.

    threshold: the score itself, descending; coverage: share of samples that reach it; risk: share of those that are wrong.
    All (points,), the last at coverage 1.
    """

    threshold: np.ndarray
    coverage: np.ndarray
    risk: np.ndarray


def risk_coverage(predictions: Predictions, score: np.ndarray | None = None, points: int | None = None) -> RiskCoverage:
    """The risk-coverage curve, at every distinct score, or at `points` of them, evenly spaced and with both ends.

    `score` is one number per row of the predictions, higher for the surer; max log p(y|x) unless given.
    """
    distinct, size, wrong = _by_score(predictions, score)
    keep = np.arange(len(distinct))
    if points is not None and len(distinct) > check_count("points", points, 2):
        keep = np.linspace(0, len(distinct) - 1, points).round().astype(np.int64)
    covered, errors = size.cumsum()[keep], wrong.cumsum()[keep]
    return RiskCoverage(distinct[keep], covered / max(1, size.sum()), errors / covered)


def aurc(predictions: Predictions, score: np.ndarray | None = None) -> float:
    """Area under the risk-coverage curve: the mean over i = 1..n of the error rate among the i surest samples.

    Samples of equal score stand in random order, and the expectation over it is taken exactly: no result depends on the
    order of the rows. `score` as in `risk_coverage`.

    >>> held = Predictions.of(np.log([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]), [0, 1, 0])
    >>> round(aurc(held), 6) == round((0 / 1 + 1 / 2 + 1 / 3) / 3, 6)
    True
    """
    _, size, wrong = _by_score(predictions, score)
    rank = np.arange(1, size.sum() + 1)
    errors = np.repeat(wrong / size, size).cumsum()
    return average(errors / rank)


def e_aurc(predictions: Predictions, score: np.ndarray | None = None) -> float:
    """Excess AURC: above that of a score that puts every wrong answer last, at the same accuracy (exact, not in the limit)."""
    right = int(predictions.in_scope().correct.sum())
    rank = np.arange(1, len(predictions.in_scope()) + 1)
    return aurc(predictions, score) - average(np.maximum(0, rank - right) / rank)


def _by_score(predictions: Predictions, score: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct scores from the highest down, how many samples have each, and how many of these are wrong."""
    score = predictions.log_confidence if score is None else check_scores("score", score, len(predictions))
    labeled = predictions.labels >= 0
    # Negated, so that np.unique sorts from the surest on.
    distinct, place = np.unique(-score[labeled], return_inverse=True)
    wrong = np.bincount(place, weights=~predictions.correct[labeled], minlength=len(distinct))
    return -distinct, np.bincount(place, minlength=len(distinct)), wrong
