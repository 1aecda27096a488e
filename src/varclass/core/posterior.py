"""q_phi(z|x): where the encoder places the latent of an input, a point or a Gaussian around it."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn

from varclass.core.options import Registry

POSTERIORS = Registry("posterior")


class Posterior(nn.Module):
    """q_phi(z|x) given an encoder's features and the latent mean they map to. All its parameters belong to phi."""

    stochastic = False

    @abstractmethod
    def sample(self, features: Tensor, mean: Tensor) -> Tensor:
        """One z ~ q(z|x) per input, reparameterized, (B, F), (B, D) -> (B, D). Gradient: phi."""

    def scale(self, features: Tensor) -> Tensor:
        """The standard deviations of a Gaussian q(z|x), (B, F) -> (B, D)."""
        raise NotImplementedError

    def draws(self, features: Tensor, mean: Tensor, number: int) -> list[Tensor]:
        """Latents to average predictions over: `number` of them, or the mean alone if q(z|x) is a point."""
        return [mean]


@POSTERIORS.register("delta")
class DeltaPosterior(Posterior):
    """q(z|x) = delta(z - f(x)), the paper's: z is the encoder's output, as in a softmax classifier [eq:sce (i)]."""

    def __init__(self, in_features: int, latent_dim: int) -> None:
        super().__init__()

    def sample(self, features: Tensor, mean: Tensor) -> Tensor:
        return mean


@POSTERIORS.register("gaussian")
class GaussianPosterior(Posterior):
    """q(z|x) = N(z; f(x), diag s(x)^2), z = f(x) + s(x) * noise; log s(x) is linear in the features, bounded to +-L.

    s starts at 0.5 for every input: wide enough to matter beside a class prior of sigma 1, narrow enough to learn.
    """

    stochastic = True
    initial_scale = 0.5
    log_limit = math.log(1e3)

    def __init__(self, in_features: int, latent_dim: int) -> None:
        super().__init__()
        self.log_scale = nn.Linear(in_features, latent_dim)
        nn.init.zeros_(self.log_scale.weight)
        nn.init.constant_(self.log_scale.bias, self.log_limit * math.asin(math.log(self.initial_scale) / self.log_limit))

    def scale(self, features: Tensor) -> Tensor:
        """s(x), (B, F) -> (B, D), between 1e-3 and 1e3."""
        return torch.exp(self.log_limit * torch.sin(self.log_scale(features) / self.log_limit))

    def sample(self, features: Tensor, mean: Tensor) -> Tensor:
        return mean + self.scale(features) * torch.randn_like(mean)

    def draws(self, features: Tensor, mean: Tensor, number: int) -> list[Tensor]:
        """Antithetic pairs with fresh noise for every input, so that inputs do not share their Monte-Carlo error."""
        scale = self.scale(features)
        found: list[Tensor] = []
        for _ in range(number // 2):
            step = scale * torch.randn_like(mean)
            found += [mean + step, mean - step]
        return found if number % 2 == 0 else [*found, mean + scale * torch.randn_like(mean)]
