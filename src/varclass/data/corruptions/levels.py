"""Between bytes and shares of full brightness, and what color means in an image that may have none.

All arithmetic is in float64. A sum over pixels then differs between batch sizes and between devices by some 1e-14 of a level,
which the step back to whole levels swallows: the bytes come out the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

SLACK = 1e-6  # levels: a value that should be whole, such as a blurred constant, must not fall below it by rounding
LUMINANCE = (0.299, 0.587, 0.114)


def to_unit(images: Tensor) -> Tensor:
    """uint8 (B, C, H, W) as float64 from 0 to 1."""
    return images.double().div_(255)


def whole_levels(x: Tensor) -> Tensor:
    """Levels (0 to 255, as int64) of values that are known to be whole levels."""
    return (x * 255).round_().long()


def truncated(x: Tensor) -> Tensor:
    """Values from 0 to 1, clipped and cut down to a whole level, as the published sets have them.

    >>> truncated(torch.tensor([-1.0, 0.5, 128 / 255, 2.0])).mul(255).tolist()
    [0.0, 127.0, 128.0, 255.0]
    """
    return x.clamp(0, 1).mul_(255).add_(SLACK).floor_().div_(255)


def to_bytes(x: Tensor) -> Tensor:
    """Values from 0 to 1 as uint8, cut down."""
    return x.clamp(0, 1).mul_(255).add_(SLACK).to(torch.uint8)


def luminance(x: Tensor) -> Tensor:
    """(B, 1, H, W): the brightness of colors; a gray image is its own."""
    if x.shape[1] == 1:
        return x
    return (x * x.new_tensor(LUMINANCE)[:, None, None]).sum(1, keepdim=True)


def tint(color: tuple[int, int, int], like: Tensor) -> Tensor:
    """A color of bytes as (C, 1, 1) from 0 to 1; in a gray image, its luminance."""
    shares = like.new_tensor(color)[None, :, None, None] / 255
    return (shares if like.shape[1] == 3 else luminance(shares))[0]
