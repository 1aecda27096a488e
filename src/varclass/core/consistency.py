"""separation="auto": equidistant means as far apart as the held-out data justify, found while training.

The separation r sets how sure a head is: latents that follow priors at r are told apart with `anticipate`'s accuracy, and if
they follow them less well on held-out data, predictions are too sure. The rule asks held-out data for the temperature T that
minimises -E log p(y|z), with log p(z|y) divided by T. Above 1, the means are too far apart. Latents move along with the
means, so log-odds grow as r^2, and the r at which T would be 1 is r / sqrt(T); each time a part of that way is gone.
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
START = 0.9  # anticipated accuracy before anything is known
RATE = 0.3  # of the way that held-out data ask for, in logs: what one epoch's noise says is not followed at once
STEP, STEPS = 0.1, 20  # of log T, and how many of them up and down: T from 0.14 to 7.4
NARROWEST, WIDEST = 0.1, 100.0  # a separation that no data can leave


def first_separation(num_classes: int) -> float:
    """Where "auto" starts, and stays without held-out data: at 90% anticipated accuracy.

    >>> round(first_separation(10), 2), round(first_separation(100), 2)
    (2.83, 3.88)
    """
    return separation_for(START, num_classes)


@torch.no_grad()
def tempered_losses(head: VariationalHead, features: Tensor, y: Tensor) -> Tensor:
    """Sums over samples of -log p(y|z) at each temperature, and the number of samples, (2 STEPS + 2,) in float64.

    Sums of several batches or processes add up. With a Gaussian posterior, predictions are averages over draws, as always.
    """
    target = head.read_target(features, y)
    if target.labels is None:
        raise ValueError(f"separation='auto' needs hard labels of held-out data; got y of shape {tuple(y.shape)}, {y.dtype}")
    flat, prior, log_label = head._flatten(features), head.class_prior, head.log_label()
    weight = target.weight_per_sample()
    with torch.autocast(flat.device.type, enabled=False):
        latents = head.posterior.draws(flat, head.projection(flat), head.draws)
        apart = [prior.log_prob_apart(prior.support(z), torch.zeros_like(log_label))[0] for z in latents]
    sums = []
    for step in range(-STEPS, STEPS + 1):
        drawn = torch.stack([torch.log_softmax(each / math.exp(STEP * step) + log_label, dim=1) for each in apart])
        log_posterior = torch.logsumexp(drawn, dim=0) - math.log(len(drawn))
        own = -log_posterior.gather(1, target.labels[:, None])[:, 0].double()
        sums.append((own if weight is None else own * weight).sum())
    count = own.new_tensor(float(len(own))) if weight is None else weight.double().sum()
    return torch.stack([*sums, count])


def best_temperature(losses: Tensor) -> float:
    """The temperature at which these sums are least, between the steps by a parabola; 1 if there are no samples."""
    *sums, count = losses.tolist()
    if not count > 0 or not all(map(math.isfinite, sums)):
        return 1.0
    least = min(range(len(sums)), key=sums.__getitem__)
    between = 0.0
    if 0 < least < len(sums) - 1:
        before, here, after = sums[least - 1 : least + 2]
        bend = before - 2 * here + after
        between = 0.5 * (before - after) / bend if bend > 0 else 0.0
    return math.exp(STEP * (least - STEPS + between))


def move(class_prior: GaussianPrior, temperature: float, rate: float = RATE) -> float:
    """Bring the means nearer, or farther apart, by what a held-out temperature says; returns the separation they have now."""
    check_positive("temperature", temperature)
    now = class_prior.radius
    wanted = min(max(now * temperature ** (-rate / 2), NARROWEST), WIDEST)
    class_prior.scale_means(wanted / now)
    return wanted
