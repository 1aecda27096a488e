"""score: every clean metric of one set of predictions, ready for a JSON file."""

from __future__ import annotations

from varclass.metrics.arguments import average
from varclass.metrics.calibration import BINS, adaptive_ece, classwise_ece, ece, mce
from varclass.metrics.predictions import Predictions
from varclass.metrics.scores import accuracy, aurc, brier, e_aurc, nll, top_k_accuracy

OTHER_BINS = 15


def score(predictions: Predictions, bins: int = BINS) -> dict[str, float]:
    """All clean metrics over the n rows with a label; NaN for every one of them, and n = 0, if there is none.

    The conventions are those of the single functions. ece_15 is the ECE in 15 bins; mce, adaptive_ece and classwise_ece
    are in `bins` like ece. mean_confidence, mean_entropy (nats) and mean_log_evidence are averages over the same rows.

    >>> import math
    >>> found = score(Predictions.of([[0.0, -9.0], [-9.0, 0.0]], [0, 1]))
    >>> found["n"], found["accuracy"], round(found["nll"], 6) == round(math.log1p(math.exp(-9)), 6)
    (2, 1.0, True)
    """
    held = predictions.in_scope()
    return {
        "n": len(held),
        "num_classes": held.num_classes,
        "bins": bins,
        "accuracy": accuracy(held),
        "top5_accuracy": top_k_accuracy(held, 5),
        "nll": nll(held),
        "brier": brier(held),
        "ece": ece(held, bins),
        "ece_15": ece(held, OTHER_BINS),
        "mce": mce(held, bins),
        "adaptive_ece": adaptive_ece(held, bins),
        "classwise_ece": classwise_ece(held, bins),
        "aurc": aurc(held),
        "e_aurc": e_aurc(held),
        "mean_confidence": average(held.confidence),
        "mean_entropy": average(held.entropy),
        "mean_log_evidence": average(held.log_evidence),
    }
