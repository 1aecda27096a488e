"""Other class frequencies at test time: predictions under a replaced label prior, and EM's estimate of it."""

from __future__ import annotations

import math

import numpy as np

from varclass.metrics.arguments import check_probabilities
from varclass.metrics.predictions import Predictions
from varclass.metrics.scores import accuracy, nll


def replace_label_prior(predictions: Predictions, trained: object, new: object) -> Predictions:
    """log p(z, y) - log p_trained(y) + log p_new(y): the same p(z|y) under another p(y), (C,); log p(z) changes with it.

    A class of new probability 0 is ruled out; one of trained probability 0 cannot be brought back and is refused.

    >>> held = Predictions.of(np.log([[0.25, 0.25]]))
    >>> replace_label_prior(held, [0.5, 0.5], [0.9, 0.1]).probabilities.round(3).tolist()
    [[0.9, 0.1]]
    """
    before = _positive("trained", trained, predictions.num_classes)
    after = check_probabilities("new", new, predictions.num_classes)
    with np.errstate(divide="ignore"):
        shift = np.log(after) - np.log(before)
    return Predictions(predictions.log_joint + shift, predictions.labels, predictions.index)


def estimate_label_prior(
    predictions: Predictions, trained: object, *, max_steps: int = 1000, tolerance: float = 1e-8
) -> np.ndarray:
    """p(y) of the rows, (C,), from their predictions alone by EM, as `varclass.estimate_label_prior` does for tensors.

    p_new(y) = mean_i p(y|x_i) p_old(y) / p_train(y) / Z_i from p_train on, until no probability moves by more than
    `tolerance` (Saerens, Latinne and Decaestecker 2002). It uses every row, labeled or not; none at all gives NaN.
    """
    start = _positive("trained", trained, predictions.num_classes)
    if not len(predictions):
        return np.full(predictions.num_classes, math.nan)
    if not np.isfinite(predictions.log_joint).all():
        raise ValueError("log_joint must be finite to estimate p(y); got a class ruled out by -inf")
    log_likelihood = predictions.log_posterior - np.log(start)
    log_likelihood -= log_likelihood.max(1, keepdims=True)
    likelihood = np.exp(log_likelihood)  # of each row up to a factor, the largest being 1
    probs = start
    for _ in range(max_steps):
        weight = likelihood * probs
        previous, probs = probs, (weight / weight.sum(1, keepdims=True)).mean(0)
        if np.abs(probs - previous).max() <= tolerance:
            break
    return probs


def label_shift(predictions: Predictions, trained: object, true: object) -> dict[str, object]:
    """Accuracy and NLL of the rows with a label under three label priors: as trained, the true one, and EM's estimate.

    `trained` and `true` are p(y), (C,). With the three come n, EM's estimate as a list, and its total variation distance
    from the true one, half the sum of |differences|. No row gives NaN.
    """
    held = predictions.in_scope()
    after = check_probabilities("true", true, held.num_classes)
    estimated = estimate_label_prior(held, trained)
    found: dict[str, object] = {"n": len(held)}
    # Nothing to estimate from gives NaN, which no prior may hold; the metrics of nothing are NaN under any prior.
    for name, prior in {"trained": trained, "true": after, "estimated": estimated if len(held) else after}.items():
        shifted = replace_label_prior(held, trained, prior)
        found |= {f"accuracy_{name}": accuracy(shifted), f"nll_{name}": nll(shifted)}
    return found | {"estimated_prior": estimated.tolist(), "estimate_distance": float(np.abs(estimated - after).sum() / 2)}


def _positive(name: str, values: object, num_classes: int) -> np.ndarray:
    probs = check_probabilities(name, values, num_classes)
    if not (probs > 0).all():
        raise ValueError(f"{name} must give every class a probability above 0; got 0 for class {int(probs.argmin())}")
    return probs
