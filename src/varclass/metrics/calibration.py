"""Calibration: whether a confidence of 80% is right 80% of the time. Reliability bins, and the errors made from them.

Bins of equal width are those of torchmetrics, to the last bit of a float64: bin k of B is [k/B, (k+1)/B), closed on the
left, and a confidence of exactly 1 has a bin of its own, so there are B + 1. (Its multiclass function rounds confidences to
float32 first, so that one within 6e-8 of an edge may change bins.) Rows without a label are left out; no row gives NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from varclass.metrics.arguments import average, check_count
from varclass.metrics.intervals import wilson
from varclass.metrics.predictions import Predictions

BINS = 20  # the paper's; 15 is the other common choice


@dataclass(frozen=True, eq=False)
class Reliability:
    """One reliability diagram, as data; all (B + 1,), the last bin for confidences of exactly 1.

    lower, upper: the bin's ends; count: samples in it; confidence, accuracy: their means, NaN in an empty bin; low, high:
    Wilson's interval (95%) of the accuracy.
    """

    lower: np.ndarray
    upper: np.ndarray
    count: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    low: np.ndarray
    high: np.ndarray


def reliability(predictions: Predictions, bins: int = BINS) -> Reliability:
    """Confidence and accuracy in bins of equal width.

    >>> diagram = reliability(Predictions.of(np.log([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]]), [0, 1, 1]), bins=2)
    >>> diagram.count.tolist(), diagram.confidence.round(3).tolist(), diagram.accuracy.round(3).tolist()
    ([0, 3, 0], [nan, 0.8, nan], [nan, 0.667, nan])
    """
    held = predictions.in_scope()
    edges = bin_edges(bins)
    count, confidence, right = _sums(held.confidence, held.correct, edges)
    filled = np.where(count > 0, count, np.nan)
    low, high = wilson(right, count)
    return Reliability(edges, np.append(edges[1:], 1.0), count, confidence / filled, right / filled, low, high)


def ece(predictions: Predictions, bins: int = BINS) -> float:
    """Expected calibration error of the predicted class: sum over bins of count / n |accuracy - confidence|."""
    held = predictions.in_scope()
    return _error(held.confidence, held.correct, bin_edges(bins))


def mce(predictions: Predictions, bins: int = BINS) -> float:
    """Maximum calibration error: the largest |accuracy - confidence| of a bin that holds anything, however little."""
    diagram = reliability(predictions, bins)
    gaps = np.abs(diagram.accuracy - diagram.confidence)[diagram.count > 0]
    return float(gaps.max()) if len(gaps) else math.nan


def adaptive_ece(predictions: Predictions, bins: int = BINS) -> float:
    """ECE with bins of equal mass: the sorted confidences cut into `bins` runs whose lengths differ by one at most.

    Samples of equal confidence may fall on both sides of a cut: each then counts with their common accuracy, so that the
    order of the rows does not matter. Fewer samples than bins are one bin each.
    """
    held, bins = predictions.in_scope(), check_count("bins", bins)
    if not len(held):
        return math.nan
    distinct, place, size = np.unique(held.confidence, return_inverse=True, return_counts=True)
    common = np.bincount(place, weights=held.correct) / size
    starts = np.unique(np.arange(bins) * len(held) // bins)
    gaps = np.repeat(common - distinct, size)  # already in order: np.unique sorts
    return float(np.abs(np.add.reduceat(gaps, starts)).sum() / len(held))


def classwise_ece(predictions: Predictions, bins: int = BINS) -> float:
    """The mean over all C classes of the ECE of p(c|x) as a forecast of y = c, in bins of equal width.

    Classes without a sample count: a forecast of an event that never came can be wrong too.
    """
    held, edges = predictions.in_scope(), bin_edges(bins)
    probabilities = held.probabilities
    each = [_error(probabilities[:, c], held.labels == c, edges) for c in range(held.num_classes)]
    return average(np.array(each))


def bin_edges(bins: int) -> np.ndarray:
    """0, 1/B, ..., 1, (B + 1,): to the bit those of torch.linspace where it has fused multiply-add, as all recent CPUs do.

    Counted from both ends in steps of the float nearest 1/B, each edge rounded once.
    """
    step = Fraction(1 / check_count("bins", bins))
    number = range(bins + 1)
    return np.array([float(step * k if k < (bins + 1) // 2 else 1 - step * (bins - k)) for k in number])


def _sums(forecast: np.ndarray, event: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per bin: how many samples, the sum of their forecasts, and how many events."""
    place = np.searchsorted(edges, forecast, side="right") - 1
    width = len(edges)
    sums = np.bincount(place, weights=forecast, minlength=width)
    return np.bincount(place, minlength=width), sums, np.bincount(place, weights=event, minlength=width)


def _error(forecast: np.ndarray, event: np.ndarray, edges: np.ndarray) -> float:
    _, sums, events = _sums(forecast, event, edges)
    return float(np.abs(events - sums).sum() / len(forecast)) if len(forecast) else math.nan
