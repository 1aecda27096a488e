"""p_theta(z|y): the contract of a class prior, and the Gaussian family (von Mises-Fisher is in vmf.py)."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from varclass.core.directions import spread_directions
from varclass.core.gaussian_density import LOG_2PI, gaussian_log_density
from varclass.core.options import Registry, check_choice, check_positive

PRIORS = Registry("prior")
MEANS = ("learned", "simplex")
ALL = slice(None)


def rows(table: Tensor, which: Tensor | slice) -> Tensor:
    """Rows of a (C, ...) table by label or slice; a table of one row is common to all classes."""
    if len(table) == 1:
        return table
    if isinstance(which, slice):
        return table if which == ALL else table[which]
    return F.embedding(which, table)


class ClassPrior(nn.Module):
    """p_theta(z|y) for every class y, the distribution the latents of a class are *anticipated* to follow.

    A family implements the four methods below, registers itself (`@PRIORS.register("name")`), and thereby passes
    through the contract tests. Its scale parameter is `log_scale`, zero at the start; `log_factor` is the one scalar
    that `VariationalHead.calibrate` fits, the log of a common factor on every class's sigma.

    Variances can neither collapse nor explode: log sigma is L * sin(log_scale / L), so sigma stays within a factor
    exp(L) of where it started. The sine is the identity near zero and, unlike a clamp or tanh, has no dead end: a wild
    step lands inside the range and can come back. A scale shared by D dimensions has a likelihood D times as curved,
    so its parameter is in units of 1/sqrt(D), and one learning rate suits every covariance.
    """

    covariances: ClassVar[tuple[str, ...]] = ()  # the first is the family's default
    scale_limit: ClassVar[float] = 1e3  # sigma stays within this factor of its initial value, up and down
    log_factor: Tensor

    def __init__(self, num_classes: int, latent_dim: int, covariance: str, means: str, separation: float | None) -> None:
        super().__init__()
        check_choice(f"covariance of a {type(self).__name__}", covariance, self.covariances)
        check_choice("means", means, MEANS)
        if separation is not None:
            check_positive("separation", separation)
        elif means == "simplex":
            raise ValueError("means='simplex' needs a separation, the distance of each mean from the centre; got None")
        self.num_classes, self.latent_dim = num_classes, latent_dim
        self.covariance, self.means, self.separation = covariance, means, separation
        self.register_buffer("log_factor", torch.zeros(()))

    @abstractmethod
    def log_prob(self, z: Tensor, classes: slice = ALL) -> Tensor:
        """log p(z|y) of each latent under each class, (B, D) -> (B, C). Gradient: z yes, theta yes."""

    @abstractmethod
    def log_prob_of(self, z: Tensor, y: Tensor) -> Tensor:
        """log p(z_i|y_i), each latent under one class, (B, D), (B,) -> (B,). Gradient: z yes, theta yes."""

    def log_prob_split(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """`log_prob(z)` and `log_prob_of(z.detach(), y)`, which a family may be able to share work between."""
        return self.log_prob(z), self.log_prob_of(z.detach(), y)

    @abstractmethod
    def sample(self, y: Tensor) -> Tensor:
        """z_i ~ p(z|y_i), (B,) -> (B, D). Gradient: none."""

    @abstractmethod
    def standardize(self, z: Tensor, y: Tensor) -> Tensor:
        """Latents in the frame of their class, where its prior is the same for all. Gradient: z yes, theta no."""

    def support(self, z: Tensor) -> Tensor:
        """Carry an encoder's output onto the set where the density lives; the identity unless a family says otherwise."""
        return z

    def log_sigma(self, which: Tensor | slice = ALL) -> Tensor:
        """log sigma, bounded and calibrated, of all classes, a slice of them, or those of labels. Gradient: theta."""
        limit = math.log(self.scale_limit)
        units = self.latent_dim**-0.5 if self.log_scale.shape[-1] == 1 else 1.0
        return torch.add(self.log_factor, torch.sin(rows(self.log_scale, which) * (units / limit)), alpha=limit)

    @property
    def scale_factor(self) -> float:
        """What `VariationalHead.calibrate` multiplied every sigma by; 1 if it was not called."""
        return math.exp(float(self.log_factor))

    @scale_factor.setter
    def scale_factor(self, factor: float) -> None:
        with torch.no_grad():
            self.log_factor.fill_(math.log(check_positive("scale_factor", factor)))

    def _make_means(self, name: str, radius: float) -> None:
        """Register the (C, D) locations under `name`: a parameter if they are learned, a buffer if they are fixed."""
        if self.separation is None:
            where = torch.randn(self.num_classes, self.latent_dim)
        else:
            where = radius * spread_directions(self.num_classes, self.latent_dim)
        if self.means == "learned":
            self.register_parameter(name, nn.Parameter(where))
        else:
            self.register_buffer(name, where)

    def _make_log_scale(self, *shape: int) -> None:
        if self.covariance == "unit":
            self.register_buffer("log_scale", torch.zeros(1, 1))
        else:
            self.log_scale = nn.Parameter(torch.zeros(*shape))


@PRIORS.register("gaussian")
class GaussianPrior(ClassPrior):
    """p(z|y) = N(z; mu_y, Sigma_y), Sigma_y diagonal: the paper's choice [sec. 4].

    log p(z|y) = -1/2 sum_d { (z_d - mu_yd)^2 / sigma_yd^2 + 2 log sigma_yd + log 2 pi }

    covariance: "diagonal" sigma_yd, the paper's; "isotropic" sigma_y; "shared" sigma_d, under which p(y|z) is exactly a
    softmax layer [eq:sce]; "unit" 1. Means sit at `separation` sigma from the origin, or are drawn from N(0, 1) if it
    is None (the authors' released code).

    >>> p = GaussianPrior(3, 2, "diagonal", "learned", 4.0)
    >>> reference = torch.distributions.Normal(p.mean, 1.0)
    >>> z = torch.randn(5, 2)
    >>> bool(torch.allclose(p.log_prob(z), reference.log_prob(z[:, None]).sum(-1), atol=1e-5))
    True
    """

    covariances = ("diagonal", "isotropic", "shared", "unit")
    mean: Tensor

    def __init__(self, num_classes: int, latent_dim: int, covariance: str, means: str, separation: float | None) -> None:
        super().__init__(num_classes, latent_dim, covariance, means, separation)
        self._make_means("mean", radius=separation or 1.0)
        shapes = {"diagonal": (num_classes, latent_dim), "isotropic": (num_classes, 1), "shared": (1, latent_dim)}
        self._make_log_scale(*shapes.get(covariance, (1, 1)))

    def log_prob(self, z: Tensor, classes: slice = ALL) -> Tensor:
        return gaussian_log_density(z, rows(self.mean, classes), self.log_sigma(classes))

    def log_prob_split(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return gaussian_log_density(z, self.mean, self.log_sigma(), y)

    def log_prob_of(self, z: Tensor, y: Tensor) -> Tensor:
        log_sigma = self.log_sigma(y)
        standard = (z - rows(self.mean, y)) * torch.exp(-log_sigma)
        at_mean = (log_sigma.mean(-1) + 0.5 * LOG_2PI) * -self.latent_dim
        return at_mean - 0.5 * torch.linalg.vecdot(standard, standard)

    @torch.no_grad()
    def sample(self, y: Tensor) -> Tensor:
        mean = rows(self.mean, y)
        return mean + self.log_sigma(y).exp() * torch.randn_like(mean)

    def standardize(self, z: Tensor, y: Tensor) -> Tensor:
        return (z - rows(self.mean.detach(), y)) * torch.exp(-self.log_sigma(y).detach())
