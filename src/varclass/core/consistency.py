"""separation="auto": class priors as wide, beside the distance of their means, as the held-out data justify.

The separation r = |mu_y| / sigma sets how sure a head is: latents that follow priors at r are told apart with `anticipate`'s
accuracy, and if they follow them less well on held-out data, predictions are too sure. The rule asks held-out data for the
temperature T that minimises -E log p(y|z), with log p(z|y) divided by T, and makes every sigma sqrt(T) times as wide, so that
r^2 becomes r^2 / T and the held-out temperature 1. Predictions alone take the wider sigma: with it in training, latents would
grow along.

How far apart the means are in training is another matter. Far apart they make a better classifier and a surer one, which is
no harm to those who settle; who does not should stay near. So "auto" starts near, and goes far with the first held-out data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from varclass.core.anticipation import separation_for
from varclass.core.options import check_positive
from varclass.core.priors import GaussianPrior

if TYPE_CHECKING:
    from varclass.core.head import VariationalHead

AUTO = "auto"
NEAR, FAR = 0.9, 0.9999  # anticipated accuracy without held-out data, and with them
FEWEST = 20  # held-out samples that can settle anything
STEP, STEPS = 0.1, 25  # of log T, and how many of them up and down: T from 0.08 to 12
GRID = 2 * STEPS + 1
LOSSES = 2 * GRID + 2
PRIOR_DEVIATION = 1.0  # of the log of all that was settled, around 0: as much as some four samples say against it


def near(num_classes: int) -> float:
    """Where "auto" starts, and stays without held-out data: at 90% anticipated accuracy.

    >>> round(near(10), 2), round(near(100), 2)
    (2.83, 3.88)
    """
    return separation_for(NEAR, num_classes)


def far(num_classes: int) -> float:
    """Where "auto" trains from the first held-out data on: at 99.99% anticipated accuracy.

    >>> round(far(10), 2), round(far(100), 2)
    (5.68, 6.65)
    """
    return separation_for(FAR, num_classes)


@torch.no_grad()
def tempered_losses(head: VariationalHead, features: Tensor, y: Tensor) -> Tensor:
    """What `best_temperature` asks of held-out data, (LOSSES,) in float64; that of several batches or processes adds up.

    At each temperature the sum over samples of -log p(y|z), then of its average over all y, then the number of mistakes and
    of samples. With a Gaussian posterior, predictions are averages over draws, as always.
    """
    target = head.read_target(features, y)
    if target.labels is None:
        raise ValueError(f"separation='auto' needs hard labels of held-out data; got y of shape {tuple(y.shape)}, {y.dtype}")
    flat, prior, log_label = head._flatten(features), head.class_prior, head.log_label()
    weight = target.weight_per_sample()
    with torch.autocast(flat.device.type, enabled=False):
        latents = head.posterior.draws(flat, head.projection(flat), head.draws)
        apart = [prior.log_prob_apart(prior.support(z), torch.zeros_like(log_label))[0] for z in latents]

    def summed(values: Tensor) -> Tensor:
        return (values.double() if weight is None else values.double() * weight).sum()

    own, any_other = [], []
    for step in range(-STEPS, STEPS + 1):
        drawn = torch.stack([torch.log_softmax(each / math.exp(STEP * step) + log_label, dim=1) for each in apart])
        log_posterior = torch.logsumexp(drawn, dim=0) - math.log(len(drawn))
        own.append(summed(-log_posterior.gather(1, target.labels[:, None])[:, 0]))
        any_other.append(summed(-log_posterior.mean(1)))
        if step == 0:
            mistakes = summed(log_posterior.argmax(1) != target.labels)
    return torch.stack([*own, *any_other, mistakes, summed(torch.ones_like(target.labels))])


def best_temperature(losses: Tensor, settled: float = 1.0) -> float:
    """The likeliest temperature given these sums, between the steps by a parabola; 1 if there are too few samples.

    `settled` is the factor on sigma already; the prior is on the log of its square after this temperature. Without a single
    mistake the sums would ask for predictions ever more sure. So one more sample counts, of which nothing is known, and
    less the more mistakes there are: 1 / (1 + mistakes) of it.
    """
    own, any_other = losses[:GRID], losses[GRID : 2 * GRID]
    mistakes, count = losses[-2:].tolist()
    if count < FEWEST or not bool(losses.isfinite().all()):
        return 1.0
    log_temperature = STEP * torch.arange(-STEPS, STEPS + 1, dtype=torch.float64, device=losses.device)
    prior = 0.5 * ((2 * math.log(settled) + log_temperature) / PRIOR_DEVIATION) ** 2
    sums = (own + any_other / (count * (1 + mistakes)) + prior).tolist()
    least = min(range(len(sums)), key=sums.__getitem__)
    between = 0.0
    if 0 < least < len(sums) - 1:
        before, here, beyond = sums[least - 1 : least + 2]
        bend = before - 2 * here + beyond
        between = 0.5 * (before - beyond) / bend if bend > 0 else 0.0
    return math.exp(STEP * (least - STEPS + between))


def settle(class_prior: GaussianPrior, temperature: float) -> float:
    """Widen every sigma, for prediction, by what a held-out temperature says; returns the separation in units of it."""
    class_prior.settled *= math.sqrt(check_positive("temperature", temperature))
    return class_prior.radius
