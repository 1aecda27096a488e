"""Blurs: Gaussian, defocus, glass, motion, zoom."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from varclass.data.corruptions import linear, motion
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.constants import Row, scale_of
from varclass.data.corruptions.levels import truncated


def gaussian_blur(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """Gaussian smoothing of `sigma` pixels."""
    (sigma,) = constants
    return linear.smooth(x, sigma)


def motion_blur(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """One-sided Gaussian smoothing along a line of a random angle within 45 degrees of the horizontal."""
    radius, sigma = constants
    return motion.along(x, radius, sigma, chance.between(-math.pi / 4, math.pi / 4))


def defocus_blur(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """The mean over a disk of `radius` pixels, its edge softened by a Gaussian."""
    radius, softness = constants
    return linear.spread(x, _disk_map(radius, softness, x.shape[2], x.shape[3]))


@lru_cache(maxsize=8)
def _disk_map(radius: float, softness: float, height: int, width: int) -> Tensor:
    kernel = disk(radius, softness)
    stretch = linear.stretching(len(kernel) // 2, scale_of(min(height, width)))
    return linear.kernel_map(stretch @ kernel @ stretch.mT, height, width)


def disk(radius: float, softness: float) -> Tensor:
    """A disk of `radius` pixels, smoothed over 3 pixels each way by a Gaussian of `softness`; it sums to 1.

    >>> float(disk(1.5, 0.1).sum())
    1.0
    """
    reach = int(radius) + 1
    line = torch.arange(-reach, reach + 1, dtype=torch.float64)
    inside = (line[:, None] ** 2 + line**2 <= radius**2).double()
    taps = torch.exp(-0.5 * (torch.arange(-1, 2, dtype=torch.float64) / softness) ** 2)
    soft = torch.nn.functional.conv2d(inside[None, None], torch.outer(taps, taps)[None, None], padding=1)[0, 0]
    return soft / soft.sum()


def zoom_blur(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """The mean of the image and its enlargements by 1, 1.01, 1.02, ... (`count` of them, the first being the image itself)."""
    (count,) = constants
    return linear.spread(x, _zoom_map(int(count), *x.shape[-2:]))


@lru_cache(maxsize=8)
def _zoom_map(count: int, height: int, width: int) -> Tensor:
    # 1.01 - 1 is a little more than 0.01 in binary: with it 26 pixels times 1.25 are 33, as in the published sets, and not 32.
    factors = [1.0, *(1 + (1.01 - 1) * step for step in range(count))]
    return linear.mean_map([(linear.zooming(height, factor), linear.zooming(width, factor)) for factor in factors])


def glass_blur(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """Pixels replaced by near neighbors, between two Gaussian blurs of `sigma`."""
    sigma, most, rounds = constants
    x, most = truncated(linear.smooth(x, sigma)), max(1, round(most))
    for _ in range(int(rounds)):
        source = scattered(x.shape[2], x.shape[3], most, chance)
        x = x.flatten(2).gather(2, source[:, None].expand(-1, x.shape[1], -1)).reshape(x.shape)
    return linear.smooth(x, sigma)


def scattered(height: int, width: int, most: int, chance: Chance) -> Tensor:
    """(B, HW): from which pixel each takes its value when all, from the last to the first, copy a neighbor in turn.

    Offsets run from -most to most - 1 each way, `most` + 1 rows and columns at the start and `most` - 1 at the end stay.
    The published loop means to swap two pixels; on color images it copies one onto the other, and so does this. A neighbor
    that comes later in the image has been replaced before: its source is followed, in doubling steps, to where it ends.
    """
    position = torch.arange(height * width, device=chance.keys.device)
    row, column = position // width, position % width
    moves = (row > most) & (row <= height - most) & (column > most) & (column <= width - most)
    offset = chance.whole(-most, most, 2, height * width)
    source = torch.where(moves, position + offset[:, 0] * width + offset[:, 1], position)
    replaced = (source > position) & moves[source]
    while bool(replaced.any()):
        source, replaced = (
            torch.where(replaced, source.gather(1, source), source),
            replaced & replaced.gather(1, source),
        )
    return source
