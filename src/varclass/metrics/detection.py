"""Telling inputs of another distribution apart: scores, and how well they separate inside from outside.

One convention: a higher score is more in-distribution. Nothing on either side gives NaN; equal scores on the two sides count
half, so a score that is the same everywhere has AUROC 1/2; infinite scores have their rank; NaN is refused.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from varclass.metrics.arguments import check_matrix, check_scores, check_share
from varclass.metrics.predictions import Predictions


def detection_scores(predictions: Predictions) -> dict[str, np.ndarray]:
    """The scores that follow from the log joint, each (N,), higher for more in-distribution.

    max_probability: log max p(y|x), in logs so that confidences that round to 1 keep their order; entropy: that of p(y|x)
    in nats, negated; log_evidence: log p(z).

    >>> scores = detection_scores(Predictions.of([[0.0, 0.0], [-9.0, 0.0]]))
    >>> {name: bool(values[1] > values[0]) for name, values in scores.items()}
    {'max_probability': True, 'entropy': True, 'log_evidence': False}
    """
    return {
        "max_probability": predictions.log_confidence,
        "entropy": -predictions.entropy,
        "log_evidence": predictions.log_evidence,
    }


def mahalanobis(latents: object, means: object, variances: object) -> np.ndarray:
    """-min_c sum_d (z_d - mean_cd)^2 / variance_cd, (N,): the squared distance to the nearest class, negated.

    Args:
        latents: (N, D).
        means: (C, D).
        variances: (C, D), or (D,) if the classes share them; above 0.

    >>> mahalanobis([[3.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]], [4.0, 1.0])
    array([-1.])
    """
    centers = check_matrix("means", means)
    z = check_matrix("latents", latents, centers.shape[1])
    spread = np.asarray(variances, dtype=np.float64)
    if spread.shape not in (centers.shape, centers.shape[1:]) or not ((spread > 0) & np.isfinite(spread)).all():
        raise ValueError(
            f"variances must be finite, above 0, of shape {centers.shape} or {centers.shape[1:]}; got {spread.shape}"
        )
    if not len(centers):
        raise ValueError(f"means must hold at least one class; got shape {centers.shape}")
    # As matrix products, never (N, C, D); around the classes' common center, where the squares to be subtracted are small.
    origin = centers.mean(0)
    z, centers = z - origin, centers - origin
    precision = np.broadcast_to(1 / spread, centers.shape)
    distance = z**2 @ precision.T - 2 * z @ (centers * precision).T + (centers**2 * precision).sum(1)
    return -np.maximum(distance.min(1), 0)


def auroc(inside: object, outside: object) -> float:
    """The probability that a sample from inside scores higher than one from outside, ties counting half.

    >>> auroc([3.0, 2.0], [1.0, 2.0])
    0.875
    """
    high, low = check_scores("inside", inside), np.sort(check_scores("outside", outside))
    if not len(high) or not len(low):
        return math.nan
    beaten = np.searchsorted(low, high, side="left").sum() + np.searchsorted(low, high, side="right").sum()
    return float(beaten / (2 * len(high) * len(low)))


def aupr(inside: object, outside: object, positive: str = "in") -> float:
    """Average precision, sum_k (R_k - R_k-1) P_k over the distinct scores, without interpolation.

    `positive` is the side to be found: "in" by high scores, "out" by low ones. It depends on the two sides' sizes; a score
    that is the same everywhere has the positive side's share.
    """
    if positive not in ("in", "out"):
        raise ValueError(f"positive must be one of 'in', 'out'; got {positive!r}")
    found, other = check_scores("inside", inside), check_scores("outside", outside)
    if positive == "out":
        found, other = -other, -found
    if not len(found) or not len(other):
        return math.nan
    _, hits, alarms = accepted(found, other)
    gained = np.diff(hits, prepend=0) / len(found)
    return float((gained * hits / (hits + alarms)).sum())


def fpr_at_tpr(inside: object, outside: object, tpr: float = 0.95) -> float:
    """Share of outside that passes the highest threshold that at least `tpr` of inside passes (FPR95); no interpolation.

    >>> fpr_at_tpr(np.arange(100.0), [4.0, 5.0, -1.0, -2.0])
    0.25
    """
    high, low = np.sort(check_scores("inside", inside)), check_scores("outside", outside)
    # As the fraction that was written: 0.95 * n in floats can land above a whole number and cost a sample.
    needed = math.ceil(Fraction(str(check_share("tpr", tpr))) * len(high))
    return float((low >= high[len(high) - needed]).mean()) if len(high) and len(low) else math.nan


def separation(inside: object, outside: object) -> dict[str, float]:
    """auroc, aupr_in, aupr_out and fpr95, with the two sides' sizes n_in and n_out."""
    return {
        "n_in": len(np.asarray(inside)),
        "n_out": len(np.asarray(outside)),
        "auroc": auroc(inside, outside),
        "aupr_in": aupr(inside, outside, "in"),
        "aupr_out": aupr(inside, outside, "out"),
        "fpr95": fpr_at_tpr(inside, outside),
    }


def accepted(inside: np.ndarray, outside: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct scores from the highest down, and how many of inside and of outside reach each."""
    distinct, place = np.unique(-np.concatenate([inside, outside]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(distinct)).cumsum() for part in (place[: len(inside)], place[len(inside) :])]
    return -distinct, counts[0], counts[1]
