"""Class means on the axes of R^C: a softmax layer's own outputs as latents, with nothing about its predictions changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.core.gaussian_density import LOG_2PI, Parts
from varclass.core.options import check_positive
from varclass.core.priors import ALL, ClassPrior, GaussianPrior, rows

NONE = torch.empty(0, 0)
LEAST = -30.0  # nats of log p(y), from the likeliest class's on, that move the means: who is below is never answered anyway


class AxesPrior(GaussianPrior):
    """p(z|y) = N(z; a e_y, I) with D = C: unit Gaussians around equidistant means, one on each axis.

    log p(z|y) = a z_y - 1/2 { |z|^2 + a^2 + C log 2 pi }

    With z = h / a, h being the C outputs of a linear layer, p(y|z) is softmax(h) for every a: a softmax layer is this
    prior's posterior as it stands, exactly and under any optimizer. What a decides is which h the prior expects,
    a^2 for the own class and 0 for the others, so it is the one number that the pull and log p(z) know of it. |mu_y| from
    the means' center is r = a sqrt((C - 1) / C), the separation. What held-out data settle counts in eval mode alone:
    wider Gaussians, around means that have all moved by `origin` (see `settle`), and, if they justify one, a covariance
    sigma^2 B^-2 with a `root` B. Otherwise no (C, C) table is held or multiplied by.

    >>> p, h = AxesPrior(3, 3, "unit", "axes", 2.0), torch.randn(5, 3)
    >>> relative, _ = p.log_prob_apart(p.support(h), torch.zeros(3))
    >>> bool(torch.allclose(relative.softmax(1), h.softmax(1), atol=1e-6))
    True
    """

    covariances: ClassVar[tuple[str, ...]] = ("unit",)
    length: Tensor
    origin: Tensor

    def __init__(self, num_classes: int, latent_dim: int, covariance: str, means: str, separation: float | None) -> None:
        ClassPrior.__init__(self, num_classes, latent_dim, covariance, means, separation)
        if latent_dim != num_classes:
            raise ValueError(f"means='axes' has one dimension for each of {num_classes} classes; got latent_dim={latent_dim}")
        self.register_buffer("origin", torch.zeros(latent_dim))
        self.register_buffer("length", torch.tensor(check_positive("separation", separation) * self._longer))
        self._make_log_scale(1, 1)
        self.root = NONE

    @property
    def root(self) -> Tensor:
        """B (C, C), symmetric; (0, 0) if there is none. Saved with the extra state: no buffer, since it may come and go."""
        return self._root

    @root.setter
    def root(self, root: Tensor) -> None:
        self._root = root
        self._log_det = float(torch.linalg.slogdet(root.detach().double())[1]) if root.numel() else 0.0

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self._root = fn(self._root)
        return super()._apply(fn, recurse)

    @torch.no_grad()
    def settle(self, temperature: float, log_label: Tensor, root: Tensor = NONE) -> None:
        """log p(z, y) divided by a temperature, as densities: a wider sigma, and a common move of the means.

        Wider Gaussians alone would give p(y) more weight, (h_y + log p(y)) / T would become h_y / T + log p(y), and samples of
        rare classes would be taken for those of frequent ones. A softmax layer was trained to decide by the former. So all
        means move by v = (T - 1) B^-2 log p(y) / a, T from the trained width on: p(y) stays what it is, and decisions too.
        """
        super().settle(temperature, log_label)
        self.root = root.to(self.length)
        rarer = torch.clamp(log_label - log_label.max(), min=LEAST)
        move = (self._settled**2 - 1) * self._scale_factor**2 / self.length * rarer
        self.origin.copy_(torch.linalg.solve(self.root @ self.root, move) if self._has_root else move)

    @contextmanager
    def as_trained(self) -> Iterator[None]:
        """Means on their axes and one sigma for all directions, while entered; it stays as wide as it is."""
        held = self.root, self.origin
        self.root, self.origin = NONE, torch.zeros_like(self.origin)
        try:
            yield
        finally:
            self.root, self.origin = held

    def get_extra_state(self) -> Tensor:
        """Both factors, and of a root what is on and above its diagonal."""
        above = self.root[tuple(torch.triu_indices(*self.root.shape))] if self._has_root else self.root.flatten()
        return torch.cat([super().get_extra_state(), above.detach().cpu().double()])

    def set_extra_state(self, state: Tensor) -> None:
        super().set_extra_state(state[:2])
        self.root = NONE
        if len(state) > 2:
            above = torch.zeros(self.num_classes, self.num_classes, dtype=torch.float64)
            above[tuple(torch.triu_indices(*above.shape))] = state[2:].cpu()
            place = "cpu" if self.length.is_meta else self.length.device  # of a model that is still being loaded
            self.root = (above + above.triu(1).T).to(place, self.length.dtype)

    @property
    def _has_root(self) -> bool:
        return self.root.numel() > 0

    @property
    def _shaped(self) -> bool:
        """Whether densities have a root now: as `settled`, it is no part of training, nor of what is compiled for it."""
        return not self.training and self._has_root

    @property
    def radius(self) -> float:
        if not self._has_root:
            return super().radius
        precision = (self.root @ self.root).double()
        spread = float(precision.trace() - precision.mean() * self.num_classes) / (self.num_classes - 1)
        return super().radius * math.sqrt(spread)

    @property
    def mean(self) -> Tensor:
        return self.offset if self.training else self.origin + self.offset

    @property
    def offset(self) -> Tensor:  # type: ignore[override]
        """a e_y for every class, (C, C): for those who look at the means, never for a density."""
        return torch.diag(self.length.expand(self.num_classes))

    @property
    def distance(self) -> float:
        return float(self.length) / self._longer / self._scale_factor

    @torch.no_grad()
    def scale_means(self, factor: float) -> None:
        self.length.mul_(check_positive("factor", factor))
        self.origin.div_(factor)

    def place(self, mean: Tensor, sigma: Tensor | float = 1.0) -> None:
        raise ValueError("means='axes' stay on their axes; means='learned' can be placed")

    def support(self, z: Tensor) -> Tensor:
        """h / a: a layer's outputs in the units of the prior."""
        return z / self.length

    def log_prob_apart(self, z: Tensor, shift: Tensor) -> Parts:
        return self._parts(z, shift, ALL)

    def log_joint(self, z: Tensor, shift: Tensor) -> Tensor:
        relative, common = self._parts(z, shift, ALL)
        return relative + common[:, None]

    def log_prob_split(self, z: Tensor, y: Tensor, shift: Tensor) -> Parts:
        return ClassPrior.log_prob_split(self, z, y, shift)

    def log_prob_of(self, z: Tensor, y: Tensor) -> Tensor:
        standard = self.standardize(z, y)
        return -0.5 * torch.linalg.vecdot(standard, standard) - self._log_volume()

    @torch.no_grad()
    def sample(self, y: Tensor) -> Tensor:
        noise = torch.randn(len(y), self.latent_dim, device=self.length.device, dtype=self.length.dtype)
        if self._shaped:
            noise = torch.linalg.solve(self.root.to(noise), noise.T).T
        around = self.length * F.one_hot(y, self.num_classes)
        return self._factor * noise + (around if self.training else self.origin + around)

    def standardize(self, z: Tensor, y: Tensor) -> Tensor:
        standard = self.shrink * torch.sub(self._from_origin(z), self.length * F.one_hot(y, self.num_classes))
        return standard @ self.root.to(z) if self._shaped else standard

    def _parts(self, z: Tensor, shift: Tensor | None, classes: slice) -> Parts:
        z = self._from_origin(z)
        if self._shaped:
            root = self.root.to(z)  # where a loader put the length alone
            precision = root @ root
            bias = (-0.5 * self.shrink**2 * self.length.square()) * (precision.diagonal() - 1)
            relative = (self.shrink**2 * self.length) * (z @ precision[:, classes]) + bias[classes]
            z = z @ root
        else:
            relative = (self.shrink**2 * self.length) * z[:, classes]
        common = -0.5 * self.shrink**2 * (torch.linalg.vecdot(z, z) + self.length.square())
        return relative if shift is None else relative + rows(shift, classes), common - self._log_volume()

    def _from_origin(self, z: Tensor) -> Tensor:
        return z if self.training else z - self.origin

    def _log_volume(self) -> float:
        volume = self.latent_dim * (math.log(self._factor) + 0.5 * LOG_2PI)
        return volume - self._log_det if self._shaped else volume

    @property
    def _longer(self) -> float:
        """From a mean's distance to the center of all to its distance to the origin."""
        return math.sqrt(self.num_classes / (self.num_classes - 1))
