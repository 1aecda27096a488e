"""How a model does on held-out data while it trains, and how its latents lie: sums that any number of processes can share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.classifier import Classifier
from varclass.core.consistency import LOSSES, best_temperature, tempered_losses
from varclass.core.head import VariationalHead
from varclass.core.priors import GaussianPrior
from varclass.training.batches import Share, Source, on_device
from varclass.training.model import model_input

BATCH = 1024


@dataclass(frozen=True)
class Score:
    """Numbers on n held-out samples.

    latent_mean and latent_variance are moments of latents standardized by their class's prior, averaged over classes and
    dimensions: 0 and 1 if q(z|y) follows p(z|y). The mean is the root of the average squared class mean.
    """

    n: int
    nll: float
    accuracy: float
    latent_mean: float
    latent_variance: float
    temperature: float | None = None  # for separation="auto": what sigma has to be settled by; the NLL is after that


@torch.no_grad()
def validate(model: Classifier, source: Source, share: Share, add_up: Callable[[Tensor], Tensor], low_precision: bool) -> Score:
    """Score a model on a source, each process on its share; `add_up` sums a tensor over the processes."""
    device, classes, dim = source.device, model.head.num_classes, model.head.latent_dim
    totals = torch.zeros(3, dtype=torch.float64, device=device)
    moments = torch.zeros(classes, 1 + 2 * dim, dtype=torch.float64, device=device)  # count, sum, sum of squares
    tempered = torch.zeros(LOSSES, dtype=torch.float64, device=device)
    mine = np.arange(len(source))[share.rank :: share.processes]
    batches = [mine[i : i + BATCH] for i in range(0, len(mine), BATCH)]
    training, kept = model.training, []
    model.eval()
    for index, stored in zip(batches, source.read(iter(batches)), strict=True):
        y = source.labels[on_device(index, device)]
        with torch.autocast(device.type, torch.bfloat16, enabled=low_precision):
            features = model.encoder(model_input(stored))
        log_posterior = model.head.log_posterior(features)
        right = (log_posterior.argmax(1) == y).sum()
        totals += torch.stack([torch.full_like(right, len(y)), right, F.nll_loss(log_posterior, y, reduction="sum")]).double()
        if isinstance(model.head.class_prior, GaussianPrior):
            u = model.head.class_prior.standardize(model.head.latent(features), y).double()
            moments.index_add_(0, y, torch.cat([torch.ones_like(u[:, :1]), u, u.square()], dim=1))
        if model.head.settles:
            tempered += tempered_losses(model.head, features, y)
            kept.append((features, y))
    temperature = None
    if model.head.settles:
        temperature = best_temperature(add_up(tempered), model.head.class_prior.settled)
        totals[2] = _settled_loss(model.head, kept, temperature)
    model.train(training)
    n, right, nll = add_up(totals).tolist()
    mean, variance = _standard_moments(add_up(moments), dim)
    return Score(int(n), nll / n if n else float("nan"), right / n if n else float("nan"), mean, variance, temperature)


def _settled_loss(head: VariationalHead, kept: list[tuple[Tensor, Tensor]], temperature: float) -> float:
    """The sum of -log p(y|z) as it will be once sigma has been settled by this temperature."""
    prior = head.class_prior
    before, prior.settled = prior.settled, prior.settled * math.sqrt(temperature)
    loss = sum(float(F.nll_loss(head.log_posterior(features), y, reduction="sum")) for features, y in kept)
    prior.settled = before
    return loss


def _standard_moments(moments: Tensor, dim: int) -> tuple[float, float]:
    held = moments[moments[:, 0] > 1]
    if not len(held):
        return float("nan"), float("nan")
    count = held[:, :1]
    mean, square = held[:, 1 : 1 + dim] / count, held[:, 1 + dim :] / count
    variance = (square - mean.square()) * count / (count - 1)
    return float(mean.square().mean().sqrt()), float(variance.mean())
