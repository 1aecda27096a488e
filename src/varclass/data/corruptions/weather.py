"""Weather: snow, frost, fog."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from varclass.data.corruptions import linear, motion
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.constants import Row
from varclass.data.corruptions.ice import textures
from varclass.data.corruptions.levels import luminance, truncated


def snow(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """Bright flakes, the peaks of enlarged noise, smeared along their fall, over an image that is whitened a little.

    The layer of flakes is added twice, the second time turned by 180 degrees.
    """
    mean, spread, zoom, threshold, radius, sigma, kept = constants
    height, width = x.shape[-2:]
    flakes = mean + spread * chance.normal(1, height, width)
    flakes = linear.separable(flakes, linear.zooming(height, zoom), linear.zooming(width, zoom))
    flakes = truncated(torch.where(flakes < threshold, 0, flakes))
    flakes = motion.along(flakes, radius, sigma, chance.between(-3 * math.pi / 4, -math.pi / 4))
    whitened = kept * x + (1 - kept) * torch.maximum(x, luminance(x) * 1.5 + 0.5)
    return whitened + flakes + flakes.flip(2, 3)


def frost(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """A weighted sum of the image and a random window of one of five textures of ice.

    The published sets use photographs of frost. None is distributed here: the textures are generated, with the photographs'
    mean and spread in each color channel, and the weights are the published ones.
    """
    kept, added = constants
    channels, height, width = x.shape[1:]
    ice = textures(max(height, width)).to(x.device)  # (5, 3, S, S)
    ice = ice if channels == 3 else luminance(ice)
    which = chance.whole(0, len(ice))[:, None, None]
    top, left = (chance.whole(0, ice.shape[-1] - size + 1)[:, None, None] for size in (height, width))
    rows = top + torch.arange(height, device=x.device)[:, None]
    columns = left + torch.arange(width, device=x.device)
    window = ice.permute(0, 2, 3, 1)[which, rows, columns].permute(0, 3, 1, 2)
    return kept * x + added * window


def fog(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """A cloud added and the sum scaled back to the image's own maximum."""
    thickness, decay = constants
    height, width = x.shape[-2:]
    cloud = plasma(2 ** math.ceil(math.log2(max(height, width))), decay, chance)[:, None, :height, :width]
    brightest = x.amax((1, 2, 3), keepdim=True)
    return (x + thickness * cloud) * brightest / (brightest + thickness)


def plasma(side: int, decay: float, chance: Chance) -> Tensor:
    """(B, side, side) from 0 to 1: a cloud by midpoint displacement on a torus; `side` is a power of two.

    Midpoints of squares, then of their edges, are the mean of four neighbors plus uniform noise; each halving of the step
    divides the noise by `decay` squared (the published loop multiplies its amplitude by itself).
    """
    cloud = torch.zeros(len(chance), side, side, dtype=torch.float64, device=chance.keys.device)
    amplitude, step = 100.0, side
    while step >= 2:
        half, count = step // 2, side // step
        corners = cloud[:, ::step, ::step]
        noise = chance.between(-(amplitude**2), amplitude**2, 3, count, count)
        pairs = corners + corners.roll(-1, 1)
        middles = (pairs + pairs.roll(-1, 2)) / 4 + noise[:, 0]
        cloud[:, half::step, half::step] = middles
        across = middles + middles.roll(1, 1) + corners + corners.roll(-1, 2)
        down = middles + middles.roll(1, 2) + corners + corners.roll(-1, 1)
        cloud[:, ::step, half::step] = across / 4 + noise[:, 1]
        cloud[:, half::step, ::step] = down / 4 + noise[:, 2]
        step, amplitude = half, amplitude / decay
    cloud = cloud - cloud.amin((1, 2), keepdim=True)
    return cloud / cloud.amax((1, 2), keepdim=True).clamp(min=1e-12)  # one pixel alone has no range
