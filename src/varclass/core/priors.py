"""p_theta(z|y): the contract of a class prior, and the Gaussian family (von Mises-Fisher is in vmf.py)."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from varclass.core.directions import spread_directions
from varclass.core.gaussian_density import LOG_2PI, Parts, equal_log_density, equal_log_joint, gaussian_log_density
from varclass.core.options import Registry, check_choice, check_positive

PRIORS = Registry("prior")
MEANS = ("learned", "simplex", "axes")
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
    through the contract tests. Its scale parameter is `log_scale`, zero at the start; `scale_factor` is the one number
    that `VariationalHead.calibrate` fits, a common factor on every class's sigma; `settled` is another, which
    `VariationalHead.settle` fits and which counts in eval mode alone. Both are saved with the state dict.

    Variances can neither collapse nor explode: log sigma is L * sin(log_scale / L), so sigma stays within a factor
    exp(L) of where it started. The sine is the identity near zero and, unlike a clamp or tanh, has no dead end: a wild
    step lands inside the range and can come back. A scale shared by D dimensions has a likelihood D times as curved,
    so its parameter is in units of 1/sqrt(D), and one learning rate suits every covariance.
    """

    covariances: ClassVar[tuple[str, ...]] = ()  # the first is the family's default
    scale_limit: ClassVar[float] = 30.0  # sigma stays within this factor of its initial value, up and down
    log_scale: Tensor

    def __init__(self, num_classes: int, latent_dim: int, covariance: str, means: str, separation: float | None) -> None:
        super().__init__()
        check_choice(f"covariance of a {type(self).__name__}", covariance, self.covariances)
        check_choice("means", means, MEANS)
        if separation is not None:
            check_positive("separation", separation)
        elif means != "learned":
            raise ValueError(f"means={means!r} needs a separation, the distance of each mean from the centre; got None")
        self.num_classes, self.latent_dim = num_classes, latent_dim
        self.covariance, self.means, self.separation = covariance, means, separation
        self._scale_factor = self._settled = 1.0

    @abstractmethod
    def log_prob(self, z: Tensor, classes: slice = ALL) -> Tensor:
        """log p(z|y) of each latent under each class, (B, D) -> (B, C). Gradient: z yes, theta yes."""

    @abstractmethod
    def log_prob_of(self, z: Tensor, y: Tensor) -> Tensor:
        """log p(z_i|y_i), each latent under one class, (B, D), (B,) -> (B,). Gradient: z yes, theta yes."""

    def log_prob_apart(self, z: Tensor, shift: Tensor) -> Parts:
        """log p(z|y) + shift_y as (B, C) + (B,): what tells the classes apart, and what a family can tell is common to all.

        Only the sum is defined; Bayes' rule needs the first alone, in which float32 has more digits.
        """
        return self.log_prob(z) + shift, z.new_zeros(len(z))

    def log_joint(self, z: Tensor, shift: Tensor) -> Tensor:
        """log p(z|y) + shift_y, (B, D) -> (B, C)."""
        relative, common = self.log_prob_apart(z, shift)
        return relative + common[:, None]

    def log_prob_split(self, z: Tensor, y: Tensor, shift: Tensor) -> Parts:
        """The first part of `log_prob_apart`, and log p(z_i|y_i) + shift_y with z detached: they may share their work."""
        return self.log_prob_apart(z, shift)[0], self.log_prob_of(z.detach(), y) + rows(shift[:, None], y)[:, 0]

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
        log_sigma = limit * torch.sin(rows(self.log_scale, which) * (self._units() / limit))
        return log_sigma if self._factor == 1 else log_sigma + math.log(self._factor)

    @property
    def scale_factor(self) -> float:
        """What `VariationalHead.calibrate` multiplied every sigma by; 1 if it was not called."""
        return self._scale_factor

    @scale_factor.setter
    def scale_factor(self, factor: float) -> None:
        self._scale_factor = check_positive("scale_factor", factor)

    @property
    def settled(self) -> float:
        """What `VariationalHead.settle` multiplied every sigma by, for prediction; 1 if it was not called."""
        return self._settled

    @settled.setter
    def settled(self, factor: float) -> None:
        self._settled = check_positive("settled", factor)

    @property
    def _factor(self) -> float:
        """On every sigma, now: trained with the settled one, latents would grow with sigma and nothing would be settled."""
        return self._scale_factor if self.training else self._scale_factor * self._settled

    def get_extra_state(self) -> Tensor:
        """Both factors: numbers, not buffers, so that they cost a training step nothing."""
        return torch.tensor([self._scale_factor, self._settled], dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        self.scale_factor, self.settled = state.tolist()

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

    def _units(self) -> float:
        return self.latent_dim**-0.5 if self.log_scale.shape[-1] == 1 else 1.0


@PRIORS.register("gaussian")
class GaussianPrior(ClassPrior):
    """p(z|y) = N(z; mu_y, Sigma_y), Sigma_y diagonal: the paper's choice [sec. 4].

    log p(z|y) = -1/2 sum_d { (z_d - mu_yd)^2 / sigma_yd^2 + 2 log sigma_yd + log 2 pi }

    covariance: "diagonal" sigma_yd, the paper's; "isotropic" sigma_y; "shared" sigma_d, under which p(y|z) is exactly a
    softmax layer [eq:sce]; "unit" 1. Means sit at `separation` sigma from the origin, or are drawn from N(0, 1) if it
    is None (the authors' released code).

    The parameter is `offset`, with mu_y = origin + sigma_y offset_y: means are learned, or fixed, in units of sigma. In
    these units the likelihood has curvature one whatever sigma is, where in those of z it has 1 / sigma^2, and a step
    that shrinks sigma throws the means away. With bounded latents every gradient is then bounded: no NaN at beta = 1 and
    D = 2048. `origin` is a constant, the point that float32 keeps its digits around.

    >>> p = GaussianPrior(3, 2, "diagonal", "learned", 4.0)
    >>> reference = torch.distributions.Normal(p.mean, 1.0)
    >>> z = torch.randn(5, 2)
    >>> bool(torch.allclose(p.log_prob(z), reference.log_prob(z[:, None]).sum(-1), atol=1e-5))
    True
    """

    covariances: ClassVar[tuple[str, ...]] = ("diagonal", "isotropic", "shared", "unit")
    origin: Tensor
    offset: Tensor

    def __init__(self, num_classes: int, latent_dim: int, covariance: str, means: str, separation: float | None) -> None:
        super().__init__(num_classes, latent_dim, covariance, means, separation)
        self.register_buffer("origin", torch.zeros(latent_dim))
        self._make_means("offset", radius=separation or 1.0)
        shapes = {"diagonal": (num_classes, latent_dim), "isotropic": (num_classes, 1), "shared": (1, latent_dim)}
        self._make_log_scale(*shapes.get(covariance, (1, 1)))

    @property
    def mean(self) -> Tensor:
        """mu_y, (C, D). Gradient: theta."""
        return self.origin + self.shrink * self.log_sigma().exp() * self.offset

    @property
    def distance(self) -> float:
        """|mu_y| from the origin in units of the sigma that is trained with, the root mean square over classes."""
        return float(self.offset.detach().double().square().sum(1).mean().sqrt()) / self._scale_factor

    @property
    def radius(self) -> float:
        """The same in units of the sigma that predictions have: the separation."""
        return self.distance / self._settled

    def settle(self, temperature: float, log_label: Tensor) -> None:
        """Widen every sigma, for prediction, by what a held-out temperature says."""
        self.settled *= math.sqrt(check_positive("temperature", temperature))

    @torch.no_grad()
    def scale_means(self, factor: float) -> None:
        """Move every mean to `factor` times its distance from the origin."""
        self.offset.mul_(check_positive("factor", factor))

    @torch.no_grad()
    def place(self, mean: Tensor, sigma: Tensor | float = 1.0) -> None:
        """Set mu_y to `mean` (C, D) and sigma to what `covariance` can hold, and forget any calibration."""
        limit = math.log(self.scale_limit)
        log_sigma = torch.as_tensor(sigma, dtype=torch.float64, device=mean.device).log()
        if mean.shape != self.offset.shape:
            raise ValueError(f"mean must have shape {tuple(self.offset.shape)}; got {tuple(mean.shape)}")
        if not bool((log_sigma.abs() <= limit).all()) or (self.covariance == "unit" and bool(log_sigma.any())):
            allowed = "1" if self.covariance == "unit" else f"between 1/{self.scale_limit:g} and {self.scale_limit:g}"
            raise ValueError(
                f"sigma must be {allowed}; got {float(log_sigma.min().exp()):g} to {float(log_sigma.max().exp()):g}"
            )
        self.scale_factor = self.settled = 1.0
        self.log_scale.copy_(limit * torch.asin(log_sigma / limit) / self._units())
        self.origin.copy_(mean.double().mean(0))
        self.offset.copy_((mean.double() - self.origin) * torch.exp(-self.log_sigma().double()))

    def log_prob(self, z: Tensor, classes: slice = ALL) -> Tensor:
        relative, common = self._parts(z, None, classes)
        return relative + common[:, None]

    def log_prob_apart(self, z: Tensor, shift: Tensor) -> Parts:
        return self._parts(z, shift, ALL)

    def log_joint(self, z: Tensor, shift: Tensor) -> Tensor:
        if torch.is_grad_enabled() or not self._equal:
            return super().log_joint(z, shift)
        log_sigma = self.log_sigma()
        level = (log_sigma.mean() + 0.5 * LOG_2PI) * -self.latent_dim
        return equal_log_joint((z - self.origin) * torch.exp(-log_sigma), self.offset, self.shrink, shift, level)

    def log_prob_split(self, z: Tensor, y: Tensor, shift: Tensor) -> Parts:
        if torch.compiler.is_compiling() or self._equal:
            return super().log_prob_split(z, y, shift)
        relative, _, own = gaussian_log_density(z - self.origin, self.offset, self.log_sigma(), self.shrink, shift, y)
        return relative, own

    def log_prob_of(self, z: Tensor, y: Tensor) -> Tensor:
        log_sigma = self.log_sigma(y)
        standard = (z - self.origin) * torch.exp(-log_sigma) - self.shrink * rows(self.offset, y)
        at_mean = (log_sigma.mean(-1) + 0.5 * LOG_2PI) * -self.latent_dim
        return at_mean - 0.5 * torch.linalg.vecdot(standard, standard)

    @torch.no_grad()
    def sample(self, y: Tensor) -> Tensor:
        offset = rows(self.offset, y)
        standard = torch.add(torch.randn_like(offset), offset, alpha=self.shrink)
        return torch.addcmul(self.origin, self.log_sigma(y).exp(), standard)

    def standardize(self, z: Tensor, y: Tensor) -> Tensor:
        inverse = torch.exp(-self.log_sigma(y).detach())
        return (z - self.origin) * inverse - self.shrink * rows(self.offset.detach(), y)

    def _parts(self, z: Tensor, shift: Tensor | None, classes: slice) -> Parts:
        z, offset, log_sigma = z - self.origin, rows(self.offset, classes), self.log_sigma(classes)
        if not self._equal:
            return gaussian_log_density(z, offset, log_sigma, self.shrink, shift)
        relative, common = equal_log_density(z * torch.exp(-log_sigma), offset, self.shrink, shift)
        return relative, common - (log_sigma.mean() + 0.5 * LOG_2PI) * self.latent_dim

    @property
    def _equal(self) -> bool:
        """Whether all classes have one covariance, so that their log-odds are linear in z."""
        return len(self.log_scale) == 1

    @property
    def shrink(self) -> float:
        """Calibration widens sigma but leaves the means where they are: in the wider units they are nearer by this."""
        return 1 / self._factor
