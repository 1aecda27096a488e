"""separation="auto": class priors as wide, beside the distance of their means, as the held-out data justify.

The separation r = |mu_y| / sigma sets how sure a head is: latents that follow priors at r are told apart with `anticipate`'s
accuracy, and if they follow them less well on held-out data, predictions are too sure. The rule asks held-out data for the
temperature T that minimises -E log p(y|z), with log p(z|y) divided by T, and makes every sigma sqrt(T) times as wide, so that
r^2 becomes r^2 / T and the held-out temperature 1. Predictions alone take the wider sigma: with it in training, latents would
grow along. Where T is below 1, predictions become surer than they were trained to be, and no surer than they are right: T
stays where mean confidence would exceed accuracy, which costs a little log p(y|z) and saves calibration under shift.

With means on axes, log p(y) is divided by T too, and all means move together by what makes that of it: which class is
predicted stays as it was (`AxesPrior.settle`). The same question is then asked of a covariance that all classes share: see
`covariance`.

How far apart the means are in training is another matter. Far apart they make a better classifier and a surer one, which is
no harm to those who settle; who does not should stay near. So "auto" starts near, and goes far with the first held-out data.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from varclass.core.anticipation import separation_for
from varclass.core.axes import AxesPrior
from varclass.core.covariance import MOST_CLASSES, PRIOR_DEVIATION, best_shape
from varclass.core.label_prior import possible_classes
from varclass.core.posterior import DeltaPosterior
from varclass.core.priors import GaussianPrior

if TYPE_CHECKING:
    from varclass.core.head import VariationalHead

AUTO = "auto"
NEAR, FAR = 0.9, 0.9999  # anticipated accuracy without held-out data, and with them
FEWEST = 20  # held-out samples that can settle anything
STEP, STEPS = 0.1, 25  # of log T, and how many of them up and down: T from 0.08 to 12
GRID = 2 * STEPS + 1
LOSSES = 3 * GRID + 2
ENTRIES = 2**24  # of a log joint that are looked at together, at every temperature


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


@dataclass(frozen=True)
class HeldOut:
    """What held-out samples say: sums to settle sigma by, and a layer's outputs to settle a covariance by. Parts of it join."""

    losses: Tensor  # (LOSSES,), of `tempered_losses`
    outputs: Tensor | None = None  # (n, C), where there is a covariance to settle
    labels: Tensor | None = None  # (n,)
    weight: Tensor | None = None  # (n,), 0 of what does not count

    @property
    def count(self) -> float:
        return float(self.losses[-1])

    @classmethod
    def of(cls, parts: Sequence[HeldOut]) -> HeldOut:
        """Several batches, folds or processes together."""

        def joined(name: str) -> Tensor | None:
            found = [getattr(part, name) for part in parts]
            return None if any(each is None for each in found) else torch.cat([each.to(found[0].device) for each in found])

        losses = torch.stack([part.losses.to(parts[0].losses.device) for part in parts]).sum(0)
        return cls(losses, joined("outputs"), joined("labels"), joined("weight"))


def look_at(head: VariationalHead, features: Tensor, y: Tensor, *, shape: bool = True) -> HeldOut:
    """What `VariationalHead.settle_from` takes, of any number of samples; without `shape`, what settles sigma alone."""
    rows = max(1, ENTRIES // head.num_classes)
    if head.read_target(features, y).labels is None or y.numel() <= rows:
        return _look_at(head, features, y, shape)
    parts = zip(head._flatten(features).split(rows), y.flatten().split(rows), strict=True)
    return HeldOut.of([_look_at(head, *part, shape) for part in parts])


@torch.no_grad()
def _look_at(head: VariationalHead, features: Tensor, y: Tensor, shape: bool) -> HeldOut:
    losses, prior = tempered_losses(head, features, y), head.class_prior
    linear = isinstance(prior, AxesPrior) and isinstance(head.posterior, DeltaPosterior)
    if not (shape and linear and head.num_classes <= MOST_CLASSES):
        return HeldOut(losses)
    target, flat = head.read_target(features, y), head._flatten(features)
    assert target.labels is not None
    with torch.autocast(flat.device.type, enabled=False):
        outputs, weight = head.projection(flat), target.weight_per_sample()
    return HeldOut(losses, outputs, target.labels, torch.ones_like(outputs[:, 0]) if weight is None else weight)


@torch.no_grad()
def tempered_losses(head: VariationalHead, features: Tensor, y: Tensor) -> Tensor:
    """What `best_temperature` asks of held-out data, (LOSSES,) in float64; that of several batches or processes adds up.

    At each temperature the sum over samples of -log p(y|z), then of its average over the possible y, then of max p(y|z); then
    the number of mistakes and of samples. With a Gaussian posterior, predictions are averages over draws, as always.
    """
    target = head.read_target(features, y)
    if target.labels is None:
        raise ValueError(f"separation='auto' needs hard labels of held-out data; got y of shape {tuple(y.shape)}, {y.dtype}")
    flat, prior, log_label = head._flatten(features), head.class_prior, head.log_label()
    weight = target.weight_per_sample()
    on_axes = isinstance(prior, AxesPrior)
    trained = prior.as_trained() if isinstance(prior, AxesPrior) else contextlib.nullcontext()
    with torch.autocast(flat.device.type, enabled=False), trained:
        latents = head.posterior.draws(flat, head.projection(flat), head.draws)
        apart = [prior.log_prob_apart(prior.support(z), torch.zeros_like(log_label))[0] for z in latents]

    def summed(values: Tensor) -> Tensor:
        return (values.double() if weight is None else values.double() * weight).sum()

    own, any_other, sure, possible = [], [], [], possible_classes(log_label)
    for step in range(-STEPS, STEPS + 1):
        temperature = math.exp(STEP * step)
        label = log_label / (prior.settled**2 * temperature) if on_axes else log_label
        drawn = [torch.log_softmax(each / temperature + label, dim=1) for each in apart]
        log_posterior = drawn[0] if len(drawn) == 1 else torch.logsumexp(torch.stack(drawn), dim=0) - math.log(len(drawn))
        own.append(summed(-log_posterior.gather(1, target.labels[:, None])[:, 0]))
        any_other.append(summed(-log_posterior[:, possible].mean(1)))
        sure.append(summed(log_posterior.amax(1).exp()))
        if step == 0:
            mistakes = summed(log_posterior.argmax(1) != target.labels)
    return torch.stack([*own, *any_other, *sure, mistakes, summed(torch.ones_like(target.labels))])


def best_temperature(losses: Tensor, settled: float = 1.0) -> float:
    """The likeliest temperature given these sums, between the steps by a parabola; 1 if there are too few samples.

    `settled` is the factor on sigma already; the prior is on the log of its square after this temperature. Without a single
    mistake the sums would ask for predictions ever more sure. So one more sample counts, of which nothing is known, and
    less the more mistakes there are: 1 / (1 + mistakes) of it. See the head of this file for what keeps T from below 1.
    """
    own, any_other, sure = losses[:-2].split(GRID)
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
    likeliest, trained = STEP * (least - STEPS + between), -2 * math.log(settled)
    return math.exp(max(likeliest, min(trained, _no_surer((sure / count).tolist(), 1 - mistakes / count))))


def _no_surer(confidence: Sequence[float], accuracy: float) -> float:
    """The lowest log T at which mean confidence is no higher than this accuracy, between the steps by a line."""
    beyond = next((step for step, mean in enumerate(confidence) if mean <= accuracy), GRID)
    if beyond in (0, GRID):
        return -math.inf if beyond == 0 else math.inf
    higher, lower = confidence[beyond - 1 : beyond + 1]
    return STEP * (beyond - 1 - STEPS + (higher - accuracy) / (higher - lower))


def settle(head: VariationalHead, held: HeldOut) -> float:
    """`VariationalHead.settle_from`: sigma and, on axes, a covariance; too few samples settle nothing."""
    prior = head.class_prior
    assert isinstance(prior, GaussianPrior)
    if held.count < FEWEST:
        return prior.radius
    if not bool(held.losses.isfinite().all()):
        raise ValueError("settle needs features with finite log p(y|z); got NaN or infinity among the held-out ones")
    before = prior.distance
    head.widen()
    # Log-odds grow with the distance of the means from here on; on axes they are a softmax layer's whatever it is.
    grown = 1.0 if isinstance(prior, AxesPrior) else prior.distance / before
    separation = head.settle_by(grown * best_temperature(held.losses, prior.settled * math.sqrt(grown)))
    return settle_shape(prior, head.log_label(), held) if isinstance(prior, AxesPrior) else separation


def settle_shape(class_prior: AxesPrior, log_label: Tensor, held: HeldOut) -> float:
    """Give all classes, for prediction, the covariance that held-out data justify; returns the separation in units of it."""
    if held.outputs is not None and held.labels is not None:
        shape = best_shape(class_prior, log_label, held.outputs, held.labels, held.weight)
        if shape is not None:
            class_prior.settle(shape.temperature, log_label, shape.root)
    return class_prior.radius
