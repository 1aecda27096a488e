"""The covariance that all classes share, as held-out data justify it: for a head with means on axes that settles.

Held-out latents are not as wide in every direction: they stray towards the classes that theirs is taken for. So what is asked
of sigma is asked of Sigma = sigma^2 B^-2 too, with B = I + S and S symmetric:

    argmin_{T, S} -E log softmax_y { log N(z; a e_y, T sigma^2 B^-2) + log p(y) / T },    S close to 0 a priori

where T counts from the trained width on.

One covariance keeps log-odds linear, so predictions are still those of a softmax layer. It is asked for from `fewest_for_shape`
samples on, and kept if it predicts parts of them better that it was not fitted to than sigma alone does, by more than the
standard error of that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.core.axes import AxesPrior
from varclass.core.label_prior import possible_classes

PRIOR_DEVIATION = 1.0  # of the log of all that was settled, around 0: as much as some four samples say against it
MOST_CLASSES = 128  # whose covariance is settled: its C^2 / 2 numbers take C^2 operations per sample and step
MOST_SAMPLES = 10_000  # that settle it
FOLDS = 5  # of the held-out samples, to compare by
CLOSENESS = (1.0, 0.3)  # of S to 0 a priori, from the safest on: the one that compares best is taken


def fewest_for_shape(num_classes: int) -> int:
    """Held-out samples that can say something about a covariance.

    >>> fewest_for_shape(2), fewest_for_shape(100)
    (100, 1000)
    """
    return max(100, 10 * num_classes)


@dataclass(frozen=True)
class Shape:
    """Sigma = T sigma^2 B^-2, as -E log p(y|z) has it on some outputs (n, C) of a layer; on the CPU in float64."""

    root: Tensor  # B (C, C)
    temperature: float

    def log_posterior(self, prior: AxesPrior, outputs: Tensor, log_label: Tensor) -> Tensor:
        """log p(y|z), (n, C)."""
        return _log_posterior(self.root, self.temperature, prior, outputs, log_label)


def best_shape(
    prior: AxesPrior, log_label: Tensor, outputs: Tensor, labels: Tensor, weight: Tensor | None = None
) -> Shape | None:
    """The likeliest covariance given a layer's outputs (n, C) and labels, or None: see the head of this file."""
    counted = slice(None) if weight is None else weight > 0
    outputs, labels, weight = outputs[counted], labels[counted], None if weight is None else weight[counted]
    if len(labels) < fewest_for_shape(prior.num_classes) or not bool(outputs.isfinite().all()):
        return None
    some = slice(MOST_SAMPLES)
    with torch.inference_mode(False), torch.enable_grad():
        h, log_label = (each.detach().to("cpu", torch.float64).clone() for each in (outputs[some], log_label))
        y = labels[some].detach().cpu().clone()
        w = torch.ones(len(y), dtype=torch.float64) if weight is None else weight[some].detach().cpu().double().clone()
        left_out = torch.arange(len(y)) % FOLDS

        def predicted(closeness: float | None) -> Tensor:
            """The log posterior of each sample, (n,), by the parts that it is not in."""
            found = torch.empty_like(w)
            for fold in range(FOLDS):
                out, rest = left_out == fold, left_out != fold
                shape = _fit(prior, log_label, h[rest], y[rest], w[rest], closeness)
                found[out] = w[out] * shape.log_posterior(prior, h[out], log_label).gather(1, y[out][:, None])[:, 0]
            return found

        alone = predicted(None)
        gains = {closeness: predicted(closeness) - alone for closeness in CLOSENESS}
        best = max(gains, key=lambda closeness: float(gains[closeness].sum()))
        if not bool(gains[best].mean() > gains[best].std() / math.sqrt(len(y))):  # of what is not finite neither
            return None
        shape = _fit(prior, log_label, h, y, w, best)
        return shape if bool(shape.root.isfinite().all()) else None


def _log_posterior(root: Tensor, temperature: Tensor | float, prior: AxesPrior, outputs: Tensor, log_label: Tensor) -> Tensor:
    precision = root @ root
    apart = outputs @ precision - 0.5 * float(prior.length) ** 2 * (precision.diagonal() - 1)
    return torch.log_softmax((apart * prior.shrink**2 + log_label / prior.settled**2) / temperature, dim=1)


def _fit(
    prior: AxesPrior, log_label: Tensor, outputs: Tensor, labels: Tensor, weight: Tensor, closeness: float | None
) -> Shape:
    """B and T, or T alone without a closeness.

    The terms of `best_temperature` stay: its prior on T, and the sample of which nothing is known.
    """
    one, count = torch.eye(prior.num_classes, dtype=torch.float64), float(weight.sum())
    mistakes = float((weight * ((outputs * prior.shrink**2 + log_label / prior.settled**2).argmax(1) != labels)).sum())
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    half = torch.zeros_like(one, requires_grad=closeness is not None)
    possible = possible_classes(log_label)
    # With a closeness of 1, entries of S deviate from 0 by 1 / (2 C) a priori, by 1 / 20 where classes are few: of C^2 / 2
    # numbers, few matter.
    stiffness = (closeness or 1.0) * max(100.0, float(prior.num_classes) ** 2)
    moved = [log_temperature] if closeness is None else [log_temperature, half]
    optimizer = torch.optim.LBFGS(moved, max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        log_posterior = _log_posterior(one + half + half.T, log_temperature.exp(), prior, outputs, log_label)
        own = (weight * F.nll_loss(log_posterior, labels, reduction="none")).sum()
        any_other = -(weight * log_posterior[:, possible].mean(1)).sum()
        before = 0.5 * ((2 * math.log(prior.settled) + log_temperature) / PRIOR_DEVIATION) ** 2
        loss = own + any_other / (count * (1 + mistakes)) + before + stiffness * (half + half.T).square().sum()
        (loss / count).backward()
        return loss / count

    optimizer.step(closure)
    return Shape((one + half + half.T).detach(), math.exp(float(log_temperature.detach())))
