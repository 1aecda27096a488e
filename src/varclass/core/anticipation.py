"""How accurate a head would be if latents followed its class priors: known without data, and what a separation has to match."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor

from varclass.core.axes import AxesPrior
from varclass.core.equidistant import error_probability, negative_log_likelihood, score_deviation
from varclass.core.options import check_count, check_positive, check_probabilities
from varclass.core.priors import ClassPrior, GaussianPrior

EQUAL = 1e-4  # means as nearly equidistant as this count as such: sampling would be further off
TOLERANCE = 1e-8  # of a separation, relative where it is above 1
CHUNK_ENTRIES = 2**22
WIDEST = math.log(1000)  # factors on sigma that `width_for` looks among


@dataclass(frozen=True)
class Anticipated:
    """What to expect of predictions if y ~ p(y), z ~ p(z|y). A head is calibrated then: its confidence is its accuracy.

    From `samples` draws, with standard errors; 0 samples and errors mean that it is exact. Of draws, `confidence`,
    mean max_y p(y|z), estimates the same number as `accuracy` with the smaller error.
    """

    accuracy: float
    confidence: float
    nll: float  # E[-log p(y|z)]
    accuracy_error: float = 0.0
    confidence_error: float = 0.0
    nll_error: float = 0.0
    samples: int = 0


def anticipate(
    class_prior: ClassPrior, label_probs: Tensor | None = None, *, samples: int = 2**14, seed: int = 0
) -> Anticipated:
    """What p(z|y) and p(y) anticipate: exact if the means are equidistant under one covariance, otherwise by sampling.

    For a head: `anticipate(head.class_prior, head.label_prior.probs())`, as wide as predictions have it. Gradient: none. The
    global random state stays as it was.

    Args:
        class_prior: any family. Two classes of one covariance are always equidistant; C > D + 1 never are.
        label_probs: p(y), (C,); uniform if None.
        samples: draws, where they are needed; the accuracy's standard error is at most 1 / (2 sqrt(samples)).
        seed: of the draws.

    >>> round(anticipate(GaussianPrior(10, 9, "unit", "simplex", 3.0)).accuracy, 4)
    0.9239
    """
    probs = _label_probs(label_probs, class_prior.num_classes)
    check_count("samples", samples, 2)
    with _predicting(class_prior):
        separation = _equidistance(class_prior)
        if separation:
            return anticipate_simplex(separation, class_prior.num_classes, probs)
        return _sampled(class_prior, probs, samples, seed)


def anticipate_simplex(separation: float, num_classes: int, label_probs: Tensor | None = None) -> Anticipated:
    """The exact numbers for equidistant means at |mu_y| = separation, in units of a common sigma; C from 2 to 10,000.

    Two classes, p(y) uniform: accuracy = Phi(r). Many classes that all differ in p(y) take a second or two.

    >>> round(anticipate_simplex(1.0, 2).accuracy, 6)
    0.841345
    """
    probs = _label_probs(label_probs, check_count("num_classes", num_classes, 2))
    a = score_deviation(check_positive("separation", separation), num_classes)
    accuracy = 1 - error_probability(a, probs)
    return Anticipated(accuracy, accuracy, negative_log_likelihood(a, probs))


def separation_for(accuracy: float, num_classes: int, label_probs: Tensor | None = None) -> float:
    """The r at which a simplex anticipates this accuracy, by bisection: the inverse of `anticipate_simplex`.

    More separation is less noise, so the accuracy grows with r: from the largest p(y), always the same answer, to 1.

    >>> round(separation_for(0.841345, 2), 4)
    1.0
    """
    probs = _label_probs(label_probs, check_count("num_classes", num_classes, 2))
    least = float(probs.max())
    if not isinstance(accuracy, Real) or not least < accuracy < 1:
        raise ValueError(
            f"accuracy must lie between {least:.6g}, the largest p(y), and 1, both excluded; got {accuracy!r}, "
            "which no separation anticipates: give the separation as a number"
        )

    def too_near(separation: float) -> bool:
        return error_probability(score_deviation(separation, num_classes), probs) > 1 - accuracy

    low, high = 0.0, 1.0
    while too_near(high):
        low, high = high, 2 * high
    while high - low > TOLERANCE * max(1.0, high):
        middle = (low + high) / 2
        low, high = (middle, high) if too_near(middle) else (low, middle)
    return (low + high) / 2


def width_for(
    accuracy: float, class_prior: ClassPrior, label_probs: Tensor | None = None, *, samples: int = 2**14, seed: int = 0
) -> float:
    """The factor on every sigma at which these priors, means where they are, anticipate this accuracy: `anticipate`'s inverse.

    Above 1 they would have to be wider. By bisection, to 1e-4; where accuracies are sampled, on the same draws throughout. The
    priors stay as they are.

    >>> round(width_for(0.841345, GaussianPrior(2, 2, "unit", "simplex", 3.0)), 3)
    3.0
    """
    probs = _label_probs(label_probs, class_prior.num_classes)
    found = class_prior.scale_factor

    def accuracy_at(log_width: float) -> float:
        class_prior.scale_factor = found * math.exp(log_width)
        return anticipate(class_prior, probs, samples=samples, seed=seed).accuracy

    low, high = -WIDEST, WIDEST
    try:
        most, least = accuracy_at(low), accuracy_at(high)
        if not isinstance(accuracy, Real) or not least < accuracy < most:
            raise ValueError(
                f"accuracy must lie between {least:.6g} and {most:.6g}, which these priors anticipate a thousand times as wide "
                f"and a thousandth as wide; got {accuracy!r}"
            )
        while high - low > 1e-4:
            middle = (low + high) / 2
            low, high = (middle, high) if accuracy_at(middle) > accuracy else (low, middle)
    finally:
        class_prior.scale_factor = found
    return math.exp((low + high) / 2)


@contextmanager
def _predicting(class_prior: ClassPrior) -> Iterator[None]:
    """As wide as predictions have it, whatever the mode."""
    training = class_prior.training
    class_prior.eval()
    try:
        yield
    finally:
        class_prior.train(training)


@torch.no_grad()
def _sampled(class_prior: ClassPrior, probs: Tensor, samples: int, seed: int) -> Anticipated:
    like = class_prior.log_scale
    log_label = probs.clamp(min=1e-300).log().to(like)
    rows = max(1, CHUNK_ENTRIES // max(class_prior.num_classes, 4 * class_prior.latent_dim, 64))
    found = []
    with _seeded(like.device, seed), torch.autocast(like.device.type, enabled=False):
        for y in torch.multinomial(probs, samples, replacement=True).to(like.device).split(rows):
            relative, _ = class_prior.log_prob_apart(class_prior.sample(y), log_label)
            log_posterior = torch.log_softmax(relative, dim=1)
            log_confidence, answer = log_posterior.max(1)
            own = log_posterior.gather(1, y[:, None])[:, 0]
            found.append(torch.stack([(answer == y).to(own), log_confidence.exp(), -own], dim=1).cpu().double())
    deviation, mean = torch.std_mean(torch.cat(found), dim=0)
    numbers = [*mean.tolist(), *(deviation / math.sqrt(samples)).tolist(), samples]
    return Anticipated(*numbers)


@contextmanager
def _seeded(device: torch.device, seed: int) -> Iterator[None]:
    """A random state of one's own. `torch.manual_seed` would also seed the devices that are not restored afterwards."""
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)
        if cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _equidistance(class_prior: ClassPrior) -> float | None:
    """|mu_y| from their centre in units of the common sigma, if the means are equidistant in these units; otherwise None."""
    if isinstance(class_prior, AxesPrior):
        return None if class_prior.root.numel() else class_prior.radius
    classes = class_prior.num_classes
    if not isinstance(class_prior, GaussianPrior) or len(class_prior.log_scale) > 1 or classes > class_prior.latent_dim + 1:
        return None
    offset = class_prior.offset.detach().cpu().double() * class_prior.shrink
    offset = offset - offset.mean(0)
    separation = math.sqrt(float(offset.square().sum()) / classes)
    # Gram = a^2 (I - 1/C), asked of a few vectors: all pairs would take C^2 D operations
    probe = torch.randn(classes, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = score_deviation(separation, classes) ** 2 * (probe - probe.mean(0))
    off = torch.linalg.norm(offset @ (offset.T @ probe) - expected)
    return separation if float(off) <= EQUAL * float(torch.linalg.norm(expected)) else None


def _label_probs(given: Tensor | None, num_classes: int) -> Tensor:
    if given is None:
        return torch.full((num_classes,), 1 / num_classes, dtype=torch.float64)
    return check_probabilities("label_probs", given, num_classes).detach().cpu()
