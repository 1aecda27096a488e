"""Split conformal prediction: sets of classes that hold the label with probability 1 - alpha, whatever the classifier.

The promise is for samples exchangeable with the calibration rows, averaged over both; with `by_class` it holds within
each class (Mondrian). Label by label, y is in the set if its score is at most the k-th smallest of the n calibration scores,
k = ceil((n + 1)(1 - alpha)). If k > n, n is too small to promise anything short of the full set: that is what is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from varclass.metrics.arguments import average, check_labels, check_share
from varclass.metrics.draws import uniform
from varclass.metrics.predictions import Predictions

METHODS = ("threshold", "aps")


@dataclass(frozen=True, eq=False)
class Conformal:
    """What `fit_conformal` keeps: each class's threshold on the scores (C,), and the n calibration rows behind it (C,).

    Scores are those of `conformity_scores`; a threshold of +inf lets every set hold the class.
    """

    method: str
    alpha: float
    randomized: bool
    by_class: bool
    thresholds: np.ndarray
    n: np.ndarray
    seed: int

    @property
    def full(self) -> np.ndarray:
        """Whether a class is in every set because too few rows stand behind its threshold, (C,) of bool."""
        return np.array([rank(int(count), self.alpha) > count for count in self.n])

    def apply(self, predictions: Predictions) -> np.ndarray:
        """The sets, (N, C) of bool."""
        if predictions.num_classes != len(self.thresholds):
            raise ValueError(f"predictions must have {len(self.thresholds)} classes; got {predictions.num_classes}")
        draws = uniform(len(predictions), self.seed, stream=1) if self.randomized else None
        return conformity_scores(predictions, self.method, draws) <= self.thresholds


def fit_conformal(
    predictions: Predictions,
    alpha: float = 0.1,
    method: str = "threshold",
    *,
    randomized: bool = False,
    by_class: bool = False,
    seed: int = 0,
) -> Conformal:
    """Thresholds from calibration predictions; rows without a label are left out.

    Args:
        alpha: the share of sets that may miss their label.
        method: "threshold" (Sadinle et al. 2019: all classes probable enough) or "aps" (Romano et al. 2020: the most
            probable ones up to a total).
        randomized: for "aps", only a share U ~ U[0, 1) of a class's own probability counts, so that coverage is 1 - alpha and
            hardly more. Without it all least probable classes tie: if a share alpha of labels are such, every set is full.
        by_class: a threshold for each class from its own rows.
        seed: of the draws of U; those of calibration and of `apply` are independent.

    >>> held = Predictions.of(np.log([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]]), [0, 0, 0, 0])
    >>> fit_conformal(held, alpha=0.25).apply(Predictions.of(np.log([[0.5, 0.5], [0.35, 0.65]]))).tolist()
    [[False, False], [False, True]]
    >>> fit_conformal(held, alpha=0.1).full.tolist()
    [True, True]
    """
    check_share("alpha", alpha)
    if randomized and method != "aps":
        raise ValueError(f"randomized needs method 'aps'; got {method!r}")
    held = predictions.in_scope()
    draws = uniform(len(held), seed) if randomized else None
    scores = np.take_along_axis(conformity_scores(held, method, draws), held.labels[:, None], axis=1)[:, 0]
    groups = [scores[held.labels == c] for c in range(held.num_classes)] if by_class else [scores]
    thresholds = np.broadcast_to([_threshold(group, alpha) for group in groups], held.num_classes)
    counts = np.broadcast_to([len(group) for group in groups], held.num_classes)
    return Conformal(method, float(alpha), randomized, by_class, thresholds, counts, seed)


def conformity_scores(predictions: Predictions, method: str, draws: np.ndarray | None = None) -> np.ndarray:
    """The score of every class, (N, C); lower fits better. Made to keep their order where probabilities round to 0 or 1.

    "threshold": -log p(y|x), which orders as 1 - p(y|x) does. "aps": the total probability of the classes at least as
    probable as y, minus 1, so minus that of all less probable ones (ties: the later class is the less probable). With
    `draws` U, (N,), only the share U of p(y|x) itself is in the total.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}")
    if method == "threshold":
        return -predictions.log_posterior
    probabilities = predictions.probabilities
    order = np.argsort(-predictions.log_joint, axis=1, kind="stable")[:, ::-1]
    ascending = np.take_along_axis(probabilities, order, axis=1)
    # Summed from the smallest up: 1 minus a sum from the largest down would round most of the tail away.
    below = np.zeros_like(ascending)
    below[:, 1:] = ascending.cumsum(1)[:, :-1]
    if draws is not None:
        below += (1 - draws[:, None]) * ascending
    scores = np.empty_like(below)
    np.put_along_axis(scores, order, -below, axis=1)
    return scores


def rank(n: int, alpha: float) -> int:
    """ceil((n + 1)(1 - alpha)), with alpha as it was written: in floats, 10 * 0.9 and the like can step over a whole number."""
    return math.ceil((n + 1) * (1 - Fraction(str(float(alpha)))))


def _threshold(scores: np.ndarray, alpha: float) -> float:
    k = rank(len(scores), alpha)
    return math.inf if k > len(scores) else float(np.partition(scores, k - 1)[k - 1])


def set_summary(sets: np.ndarray, labels: object) -> dict[str, object]:
    """How sets (N, C) do: coverage and coverage_by_class over the rows with a label, size, empty and singleton over all.

    n counts all rows and n_labeled those with a label; NaN where there is none, for a class too.

    >>> found = set_summary(np.array([[True, False], [True, True]]), [0, 1])
    >>> found["coverage"], found["size"], found["singleton"], found["empty"]
    (1.0, 1.5, 0.5, 0.0)
    """
    members = np.asarray(sets)
    if members.ndim != 2 or members.dtype != np.bool_:
        raise ValueError(f"sets must be bool with shape (N, C); got {members.dtype} with shape {members.shape}")
    y = check_labels("labels", labels, *members.shape)
    known, size = np.flatnonzero(y >= 0), members.sum(1)
    hit = members[known, y[known]]
    return {
        "n": len(members),
        "n_labeled": len(known),
        "coverage": average(hit),
        "coverage_by_class": [average(hit[y[known] == c]) for c in range(members.shape[1])],
        "size": average(size),
        "empty": average(size == 0),
        "singleton": average(size == 1),
    }
