"""How a model does on held-out data while it trains, and how its latents lie: sums that any number of processes can share."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.classifier import Classifier
from varclass.core.consistency import LOSSES, HeldOut, best_temperature, look_at, tempered_losses
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
def validate(
    model: Classifier,
    source: Source,
    share: Share,
    add_up: Callable[[Tensor], Tensor],
    low_precision: bool,
    settle: bool = True,
) -> Score:
    """Score a model on a source, each process on its share; `add_up` sums a tensor over the processes.

    With `settle` the score is that of the model once its sigma has been settled, if it can be.
    """
    device, classes, dim = source.device, model.head.num_classes, model.head.latent_dim
    totals = torch.zeros(3, dtype=torch.float64, device=device)
    moments = torch.zeros(classes, 1 + 2 * dim, dtype=torch.float64, device=device)  # count, sum, sum of squares
    tempered = torch.zeros(LOSSES, dtype=torch.float64, device=device)
    training, kept, settle = model.training, [], settle and model.head.settles
    model.eval()
    for features, y in _features(model, source, share, low_precision):
        log_posterior = model.head.log_posterior(features)
        right = (log_posterior.argmax(1) == y).sum()
        totals += torch.stack([torch.full_like(right, len(y)), right, F.nll_loss(log_posterior, y, reduction="sum")]).double()
        if isinstance(model.head.class_prior, GaussianPrior):
            u = model.head.class_prior.standardize(model.head.latent(features), y).double()
            moments.index_add_(0, y, torch.cat([torch.ones_like(u[:, :1]), u, u.square()], dim=1))
        if settle:
            tempered += tempered_losses(model.head, features, y)
            kept.append((features, y))
    temperature = None
    if settle:
        temperature = best_temperature(add_up(tempered), model.head.class_prior.settled)
        totals[2] = _settled_loss(model.head, kept, temperature)
    model.train(training)
    n, right, nll = add_up(totals).tolist()
    mean, variance = _standard_moments(add_up(moments), dim)
    return Score(int(n), nll / n if n else float("nan"), right / n if n else float("nan"), mean, variance, temperature)


@torch.no_grad()
def look_over(model: Classifier, source: Source, low_precision: bool) -> HeldOut:
    """`look_at` over a whole source, in every process alike."""
    model.eval()
    return HeldOut.of([look_at(model.head, *batch) for batch in _features(model, source, Share(0, 1), low_precision)])


def _features(model: Classifier, source: Source, share: Share, low_precision: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """What the encoder makes of this process's share of a source, and the labels, batch by batch."""
    mine = np.arange(len(source))[share.rank :: share.processes]
    batches = [mine[i : i + BATCH] for i in range(0, len(mine), BATCH)]
    for index, stored in zip(batches, source.read(iter(batches)), strict=True):
        with torch.autocast(source.device.type, torch.bfloat16, enabled=low_precision):
            features = model.encoder(model_input(stored))
        yield features, source.labels[on_device(index, source.device)]


def _settled_loss(head: VariationalHead, kept: list[tuple[Tensor, Tensor]], temperature: float) -> float:
    """The sum of -log p(y|z) as it will be once sigma has been settled by this temperature."""
    before = copy.deepcopy(head.class_prior.state_dict())
    head.settle_by(temperature)
    loss = sum(float(F.nll_loss(head.log_posterior(features), y, reduction="sum")) for features, y in kept)
    head.class_prior.load_state_dict(before)
    return loss


def _standard_moments(moments: Tensor, dim: int) -> tuple[float, float]:
    held = moments[moments[:, 0] > 1]
    if not len(held):
        return float("nan"), float("nan")
    count = held[:, :1]
    mean, square = held[:, 1 : 1 + dim] / count, held[:, 1 + dim :] / count
    variance = (square - mean.square()) * count / (count - 1)
    return float(mean.square().mean().sqrt()), float(variance.mean())
