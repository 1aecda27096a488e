"""p_theta(z|y) as von Mises-Fisher distributions on the unit sphere, and the Bessel function their constant needs."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.core.gaussian_density import LOG_2PI
from varclass.core.priors import ALL, PRIORS, ClassPrior, rows

DEBYE_ORDER = 30  # from this order on, four terms of the expansion are exact to about 1e-9
PROPOSALS = 16  # at least two in three are accepted, so all sixteen fail less than once in 10^7


@PRIORS.register("vmf")
class VonMisesFisherPrior(ClassPrior):
    """p(z|y) = C_D(kappa_y) exp(kappa_y m_y.z) on the unit sphere, |z| = |m_y| = 1: the paper's comparison [tab:ece].

    Latents are normalised first (`support`), and densities integrate to one over the sphere. `separation` keeps its
    meaning, the length of the class mean in units of sigma: |E z| / sigma with sigma^2 = (1 - |E z|^2) / (D - 1).

    covariance: "isotropic" kappa_y, "shared" one kappa, "unit" a fixed one. There is no diagonal on a sphere. kappa is
    1 / sigma^2, so that it stays within a factor of 900 of its start.

    >>> p = VonMisesFisherPrior(3, 4, "isotropic", "learned", 4.0)
    >>> bool(torch.allclose(p.sample(torch.tensor([0, 1])).norm(dim=1), torch.ones(2)))
    True
    """

    covariances = ("isotropic", "shared", "unit")
    direction: Tensor

    def __init__(self, num_classes: int, latent_dim: int, covariance: str, means: str, separation: float | None) -> None:
        if latent_dim < 2:
            raise ValueError(f"prior='vmf' needs latent_dim >= 2, a sphere to live on; got {latent_dim}")
        super().__init__(num_classes, latent_dim, covariance, means, separation)
        self._make_means("direction", radius=1.0)
        self._make_log_scale(num_classes if covariance == "isotropic" else 1, 1)
        r2 = latent_dim if separation is None else separation**2  # |m| of N(0, 1) draws is sqrt(D)
        resultant = math.sqrt(r2 / (r2 + latent_dim - 1))
        self.initial_kappa = resultant * (latent_dim - resultant**2) / (1 - resultant**2)

    def support(self, z: Tensor) -> Tensor:
        return F.normalize(z, dim=-1)

    def kappa(self, which: Tensor | slice = ALL) -> Tensor:
        """Concentrations of all classes, a slice of them, or those of labels; (1,) if they share one."""
        return self.initial_kappa * torch.exp(-2 * self.log_sigma(which)[:, 0])

    def mode(self, y: Tensor) -> Tensor:
        """m_y of each label, (B,) -> (B, D)."""
        return F.normalize(rows(self.direction, y), dim=-1)

    def log_prob(self, z: Tensor, classes: slice = ALL) -> Tensor:
        kappa = self.kappa(classes)
        weight = kappa[:, None] * F.normalize(rows(self.direction, classes), dim=-1)
        peak = log_density_at_mode(kappa, self.latent_dim)
        return F.linear(z, weight, (peak - kappa).expand(len(weight)))

    def log_prob_of(self, z: Tensor, y: Tensor) -> Tensor:
        kappa = self.kappa(y)
        cosine = (z * self.mode(y)).sum(-1)
        return log_density_at_mode(kappa, self.latent_dim) - kappa * (1 - cosine)

    @torch.no_grad()
    def sample(self, y: Tensor) -> Tensor:
        """Wood's rejection sampler (1994), with a fixed number of proposals at once instead of a loop.

        In terms of 1 - cosine throughout: a concentrated class lives where the cosine itself has no digits left.
        """
        d = self.latent_dim - 1
        kappa = self.kappa(y).expand(len(y))[:, None]  # (B, 1)
        b = d / (2 * kappa + torch.sqrt(4 * kappa.square() + d**2))
        center = 2 * b / (1 + b)  # 1 - cosine at the envelope's peak
        gamma = torch._standard_gamma(kappa.new_full((2, len(y), PROPOSALS), d / 2))
        beta = gamma[0] / gamma.sum(0)
        drop = 2 * b * beta / (1 - (1 - b) * beta)  # 1 - cosine
        log_accept = kappa * (center - drop) + d * torch.log((center + drop - center * drop) / (center * (2 - center)))
        first = (log_accept >= torch.rand_like(drop).log()).int().argmax(1, keepdim=True)
        drop = drop.gather(1, first)
        mode = self.mode(y)
        tangent = torch.randn_like(mode)
        tangent = F.normalize(tangent - (tangent * mode).sum(-1, keepdim=True) * mode, dim=-1)
        return F.normalize((1 - drop) * mode + torch.sqrt(drop * (2 - drop)) * tangent, dim=-1)

    def standardize(self, z: Tensor, y: Tensor) -> Tensor:
        """Reflect the class's mean direction to the first axis: the shortest orthogonal map that does it."""
        axis = self.mode(y).detach()
        axis = axis - F.pad(axis.new_ones(1), (0, self.latent_dim - 1))
        axis = F.normalize(axis, dim=-1)
        return z - 2 * (z * axis).sum(-1, keepdim=True) * axis


def log_density_at_mode(kappa: Tensor, dim: int) -> Tensor:
    """log C_D(kappa) + kappa, the log density at z = m: the size of D log kappa where its two parts are each of size kappa.

    log C_D(kappa) = nu log kappa - (nu + 1) log 2 pi - log I_nu(kappa),  nu = D/2 - 1
    """
    nu = dim / 2 - 1
    return nu * kappa.log() - (nu + 1) * LOG_2PI - log_bessel_scaled(nu, kappa)


def log_bessel_scaled(nu: float, kappa: Tensor) -> Tensor:
    """log I_nu(kappa) - kappa for kappa > 0, differentiable, at any order nu >= 0.

    Debye's uniform expansion at an order of at least 30, then Miller's stable downward recurrence to nu:
    I_{k-1} / I_k = 2k / kappa + I_{k+1} / I_k.
    """
    steps = max(0, math.ceil(DEBYE_ORDER - nu))
    order = nu + steps
    log_bessel = _debye(order, kappa)
    if steps:
        ratio = torch.exp(_debye(order + 1, kappa) - log_bessel)  # I_{k+1} / I_k
        for k in range(steps):
            inverse = 2 * (order - k) / kappa + ratio
            log_bessel, ratio = log_bessel + inverse.log(), 1 / inverse
    return log_bessel


def _debye(nu: float, kappa: Tensor) -> Tensor:
    root = torch.sqrt(kappa.square() + nu**2)
    p = nu / root
    p2 = p.square()
    u1 = p * (3 - 5 * p2) / 24
    u2 = p2 * (81 + p2 * (-462 + p2 * 385)) / 1152
    u3 = p * p2 * (30375 + p2 * (-369603 + p2 * (765765 - p2 * 425425))) / 414720
    u4 = p2 * p2 * (4465125 + p2 * (-94121676 + p2 * (349922430 + p2 * (-446185740 + p2 * 185910725)))) / 39813120
    series = 1 + (u1 + (u2 + (u3 + u4 / nu) / nu) / nu) / nu
    exponent = nu**2 / (root + kappa) + nu * torch.log(kappa / (nu + root))  # nu * eta - kappa, without cancellation
    return exponent - 0.5 * (LOG_2PI + root.log()) + series.log()
