"""T_psi(z, y): the adversary that estimates log q_phi(z|y) / p_theta(z|y), and the logistic loss that trains it."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from varclass.core.options import Registry
from varclass.core.priors import ClassPrior, rows

RATIOS = Registry("ratio")


class RatioEstimator(nn.Module):
    """T_psi(z, y) ~ log q(z|y) - log p(z|y), read off a classifier of latents against prior samples [eq:bin_classifier].

    Every family starts at T = 0: no difference seen yet. Gradient: z yes, psi yes, theta no.
    """

    def __init__(self, num_classes: int, latent_dim: int) -> None:
        super().__init__()
        self.num_classes, self.latent_dim = num_classes, latent_dim

    @abstractmethod
    def of_class(self, z: Tensor, y: Tensor, prior: ClassPrior) -> Tensor:
        """T(z_i, y_i), (..., B, D), (B,) -> (..., B)."""

    def of_all(self, z: Tensor, prior: ClassPrior) -> Tensor:
        """T(z_i, y) for every y, (B, D) -> (B, C): what soft labels average over."""
        labels = torch.arange(self.num_classes, device=z.device)
        return torch.stack([self.of_class(z, y.expand(len(z)), prior) for y in labels], dim=1)

    def forward(self, z: Tensor, y: Tensor | None, prior: ClassPrior) -> Tensor:
        """T for one class each, or for all classes if y is None."""
        return self.of_all(z, prior) if y is None else self.of_class(z, y, prior)

    def frozen(self, z: Tensor, y: Tensor | None, prior: ClassPrior) -> Tensor:
        """`forward` with psi held fixed. Gradient: z yes, psi no."""
        psi = {name: value.detach() for name, value in self.named_parameters()}
        return functional_call(self, psi, (z, y, prior))


class _LinearInFeatures(RatioEstimator):
    """T(z, y) = w_y . features(z) + b_y."""

    def __init__(self, num_classes: int, latent_dim: int, num_features: int) -> None:
        super().__init__(num_classes, latent_dim)
        self.weight = nn.Parameter(torch.zeros(num_classes, num_features))
        self.bias = nn.Parameter(torch.zeros(num_classes))

    def features(self, z: Tensor) -> Tensor:
        return z

    def of_class(self, z: Tensor, y: Tensor, prior: ClassPrior) -> Tensor:
        return linear_in(self.features(z), y, self.weight, self.bias)

    def of_all(self, z: Tensor, prior: ClassPrior) -> Tensor:
        return F.linear(self.features(z), self.weight, self.bias)

    def frozen(self, z: Tensor, y: Tensor | None, prior: ClassPrior) -> Tensor:
        if y is None or self._modules:
            return super().frozen(z, y, prior)
        return linear_in(self.features(z), y, self.weight.detach(), self.bias.detach())  # without functional_call's swaps


def linear_in(features: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """w_y . features + b_y, (..., B, F), (B,) -> (..., B)."""
    return torch.linalg.vecdot(features, rows(weight, y)) + rows(bias[:, None], y)[:, 0]


@RATIOS.register("linear")
class LinearRatio(_LinearInFeatures):
    """T(z, y) = w_y . z + b_y, the paper's. It can see that q(z|y) and p(z|y) differ in their means, and nothing else."""

    def __init__(self, num_classes: int, latent_dim: int) -> None:
        super().__init__(num_classes, latent_dim, latent_dim)


@RATIOS.register("quadratic")
class QuadraticRatio(_LinearInFeatures):
    """T(z, y) = a_y . z^2 + w_y . z + b_y: the true log ratio between two Gaussians with diagonal covariances."""

    def __init__(self, num_classes: int, latent_dim: int) -> None:
        super().__init__(num_classes, latent_dim, 2 * latent_dim)

    def features(self, z: Tensor) -> Tensor:
        return torch.cat([z, z.square()], dim=-1)


@RATIOS.register("mlp")
class MLPRatio(_LinearInFeatures):
    """T(z, y) = w_y . h(z) + b_y with h a small network shared by the classes: any difference, given the samples."""

    def __init__(self, num_classes: int, latent_dim: int, width: int = 64) -> None:
        super().__init__(num_classes, latent_dim, width)
        self.trunk = nn.Sequential(nn.Linear(latent_dim, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())

    def features(self, z: Tensor) -> Tensor:
        return self.trunk(z)


@RATIOS.register("shared")
class SharedRatio(RatioEstimator):
    """T(z, y) = a . u^2 + w . u + b on latents u standardized by their class: one adversary for all classes.

    It pools every class's samples, so it works with a thousand classes and a batch that holds few of each. The
    standardization detaches theta: T does not see it.
    """

    def __init__(self, num_classes: int, latent_dim: int) -> None:
        super().__init__(num_classes, latent_dim)
        self.linear = nn.Linear(2 * latent_dim, 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def of_class(self, z: Tensor, y: Tensor, prior: ClassPrior) -> Tensor:
        u = prior.standardize(z, y)
        return self.linear(torch.cat([u, u.square()], dim=-1)).squeeze(-1)
