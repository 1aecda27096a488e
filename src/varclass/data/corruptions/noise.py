"""Noise: Gaussian, shot, impulse, speckle."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.constants import Row
from varclass.data.corruptions.levels import SLACK, whole_levels


def gaussian_noise(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """x + sigma e with e standard normal, in every channel of every pixel."""
    (sigma,) = constants
    return x + sigma * chance.normal(*x.shape[1:])


def speckle_noise(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """x + x sigma e with e standard normal: black stays black."""
    (sigma,) = constants
    return x + x * sigma * chance.normal(*x.shape[1:])


def impulse_noise(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """A share of the values, channel by channel, replaced by 0 or by 1 at even odds."""
    (share,) = constants
    u = chance.uniform(*x.shape[1:])
    return torch.where(u < share, (u < share / 2).to(x.dtype), x)


def shot_noise(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """n / photons with n ~ Poisson(photons x): the noise of counted light.

    A byte has 256 values before and after, so that all there is to draw from is a table of 256 distributions over levels;
    one search in their distribution functions, laid end to end, draws exactly.
    """
    (photons,) = constants
    before = whole_levels(x).contiguous()  # a view of channels-last images is slow to search, with a warning
    found = torch.searchsorted(_shot_table(int(photons)).to(x.device), before + chance.uniform(*x.shape[1:]))
    return (found - 256 * before).clamp_(0, 255) / 255


@lru_cache(maxsize=16)
def _shot_table(photons: int) -> Tensor:
    """(256 * 256,): b + P(level <= l | byte b before), for all b and, within each, all l."""
    counts = torch.arange(photons, dtype=torch.float64)  # from `photons` on, the level is 255
    mean = torch.arange(256, dtype=torch.float64)[:, None] / 255 * photons
    pmf = (torch.special.xlogy(counts, mean) - mean - torch.lgamma(counts + 1)).exp()
    below = torch.nn.functional.pad(pmf.cumsum(1).clamp(max=1), (1, 0))  # P(n < 0, 1, ...)
    level = (counts * 255 / photons + SLACK).floor()
    counted = torch.searchsorted(level, torch.arange(255, dtype=torch.float64), right=True)  # n with a level <= l
    table = torch.cat([below[:, counted], torch.ones(256, 1, dtype=torch.float64)], dim=1)
    return (table + torch.arange(256)[:, None]).flatten()
