"""Variants of the recommended head that the library does not have, for benchmarks/default.py: what was tried beside it.

A softmax layer can hold any common covariance and any means in its own weights, so none of these changes which predictions a
head can make, but for the tails. What they change is where the pull wants latents to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from varclass import VariationalHead
from varclass.core.axes import NONE, AxesPrior
from varclass.core.gaussian_density import Parts
from varclass.core.objectives import (
    VC,
    Around,
    Drawn,
    Terms,
    discriminator_term,
    label_term,
    posterior_and_prior_terms,
    ratio_term,
)
from varclass.core.presets import AUTO, beta_at
from varclass.core.priors import GaussianPrior
from varclass.core.targets import Target

FREEDOM = 5.0  # of the Student t with heavier tails
RATE = 10.0  # of what is learned, times the encoder's: at the same it hardly moves in so few steps
DECAY = 1.0  # of the same, back to the axes: by a percent a step


class OtherPrior(AxesPrior):
    """Densities of its own around the axes. Settled, its log joint is divided as a whole, as the recommended head's is."""

    def density(self, z: Tensor) -> Tensor:
        """log p(z|y), (B, D) -> (B, C), but for a constant, as it is trained."""
        raise NotImplementedError

    def settle(self, temperature: float, log_label: Tensor, root: Tensor = NONE) -> None:
        GaussianPrior.settle(self, temperature, log_label)

    def _parts(self, z: Tensor, shift: Tensor | None, classes: slice) -> Parts:
        density = self.density(z) if shift is None else self.density(z) + shift
        return self.shrink**2 * density[:, classes], torch.zeros_like(z[:, 0])

    def log_prob_of(self, z: Tensor, y: Tensor) -> Tensor:
        return self.log_prob(z).gather(1, y[:, None])[:, 0]


class TailedPrior(OtherPrior):
    """A multivariate Student t around each mean: log p(z|y) = -(nu + D) / 2 log(1 + |z - a e_y|^2 / nu) + const."""

    def density(self, z: Tensor) -> Tensor:
        square = z.square().sum(1, keepdim=True) - 2 * self.length * z + self.length.square()
        return -0.5 * (FREEDOM + self.latent_dim) * torch.log1p(square / FREEDOM)


class LearnedPrior(OtherPrior):
    """Gaussians that start on the axes and learn: each mean's length, whole means, or a covariance that all share."""

    def __init__(self, num_classes: int, separation: float, what: str) -> None:
        super().__init__(num_classes, num_classes, "unit", "axes", separation)
        one = torch.zeros(num_classes, num_classes)
        self.what, self.learned = what, nn.Parameter(one.diagonal().clone() if what == "lengths" else one)

    def density(self, z: Tensor) -> Tensor:
        one = torch.eye(self.num_classes)
        moved = torch.diag(self.learned) if self.what == "lengths" else self.learned
        mean = self.length * (one if self.what == "covariance" else one + moved)
        root = one + (moved + moved.T) / 2 if self.what == "covariance" else one
        z, mean = z @ root, mean @ root
        square = torch.linalg.vecdot(z, z)[:, None] - 2 * z @ mean.T + torch.linalg.vecdot(mean, mean)
        return torch.linalg.slogdet(root)[1] - 0.5 * square


class UndividedPrior(GaussianPrior):
    """The axes as any other fixed means: what settles is sigma alone, so log p(y) keeps its weight and decisions may change."""

    def __init__(self, num_classes: int, separation: float) -> None:
        super().__init__(num_classes, num_classes, "unit", "simplex", separation)
        self.length = separation * math.sqrt(num_classes / (num_classes - 1))
        self.offset.copy_(self.length * torch.eye(num_classes))

    def support(self, z: Tensor) -> Tensor:
        return z / self.length


class PullAndRatio(VC):
    """VC whose prior term reaches the encoder: the pull, and the adversary on top of it."""

    def terms(
        self, head: VariationalHead, z: Tensor, target: Target, drawn: Drawn | None = None, around: Around | None = None
    ) -> Terms:
        posterior, prior = posterior_and_prior_terms(head, z, target, pull=True)
        label, ratio = label_term(head, target), ratio_term(head, z, target)
        discriminator, judged = discriminator_term(head, z.detach(), target, drawn)
        total = posterior + label + self.beta * (prior + ratio) + discriminator
        return Terms(total, posterior, label, prior, ratio, discriminator, judged)


Build = Callable[[int, int, int, float], VariationalHead]  # of features, classes, samples and a separation to train at


def with_prior(make: Callable[[int, float], GaussianPrior]) -> Build:
    """The recommended head with another class prior."""

    def build(features: int, classes: int, samples: int, separation: float) -> VariationalHead:
        head = VariationalHead(features, classes, samples=samples, means="axes", objective="pull", separation=separation)
        head.class_prior = make(classes, separation)
        return head

    return build


def with_ratio(features: int, classes: int, samples: int, separation: float) -> VariationalHead:
    """The recommended head with a quadratic ratio on top of its pull."""
    objective = PullAndRatio(beta_at(AUTO, classes, samples / classes))
    return VariationalHead(features, classes, objective=objective, means="axes", ratio="quadratic", separation=separation)


def learning(what: str) -> Build:
    """The recommended head with a part of its class prior learned."""
    return with_prior(lambda classes, separation: LearnedPrior(classes, separation, what))


VARIANTS: dict[str, tuple[str, Build]] = {
    "tails": (
        f"the default with heavier tails: Student's t, {FREEDOM:g} degrees of freedom",
        with_prior(lambda classes, separation: TailedPrior(classes, classes, "unit", "axes", separation)),
    ),
    "lengths": ("the default with a separation learned for each class", learning("lengths")),
    "means": ("the default with means learned from the axes on", learning("means")),
    "means, prior": ("the same, and a prior that keeps means near the axes", learning("means")),
    "covariance": ("the default with a covariance learned while training", learning("covariance")),
    "undivided": ("the default, sigma alone settled and log p(y) undivided", with_prior(UndividedPrior)),
    "ratio": ("the default with VC's adversary on top of the pull, quadratic ratio", with_ratio),
}
RATES = {name: {"theta": RATE} for name in ("lengths", "means", "means, prior", "covariance")}
DECAYS = {"means, prior": {"theta": DECAY}}
